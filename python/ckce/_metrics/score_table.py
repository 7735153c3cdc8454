"""The scores that every table of models shows; a new one gets its field and its row here."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ckce._input import Samples
from ckce._results import FEW_ROWS, Column, number, percent


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The fields that results have of `SCORES`; a score that is no sum is None of a stream."""

    accuracy: float
    mean_confidence: float
    log_loss: float
    brier: float


@dataclass(frozen=True)
class Score:
    """A row of `SCORES`.

    Attributes
    ----------
    column : Column
        Its key is the field of results, the key of dicts and the column of frames.
    mean : callable
        The score out of the sums over rows.
    by_rows : callable
        The score out of samples and the number of threads, where it is no sum.
    remark : callable
        The words beside it where one model is printed, out of the result; None leaves out the line.
    """

    column: Column
    mean: Callable[[Any], float] | None = None
    by_rows: Callable[[Samples, int], float] | None = None
    remark: Callable[[Any], str] | None = lambda found: ""

    @property
    def key(self) -> str:
        return self.column.keys[0]


def _accuracy_remark(found: Any) -> str:
    text = f"mean confidence {number(found.mean_confidence)}"
    surprised = found.mean_confidence - found.accuracy > 0.3 and found.n_samples >= FEW_ROWS
    if surprised and found.accuracy <= _by_guessing(found):
        text += "; guessing does as well: do the columns of y_prob fit the labels?"
    return text


def _by_guessing(found: Any) -> float:
    """The accuracy that guessing reaches, two standard errors up."""
    share = 1.0 / found.n_classes
    return float(share + 2.0 * math.sqrt(share * (1.0 - share) / found.n_samples))


def _log_loss_remark(found: Scores) -> str:
    return "" if math.isfinite(found.log_loss) else "a label had probability 0"


SCORES = (
    Score(
        Column("accuracy", ("accuracy",), form=".4f"),
        lambda sums: sums.hits / sums.weight,
        remark=_accuracy_remark,
    ),
    Score(
        Column("confidence", ("mean_confidence",), form=".4f"),
        lambda sums: sums.confidence / sums.weight,
        remark=None,
    ),
    Score(
        Column("log loss", ("log_loss",), "log loss"),
        lambda sums: sums.log_loss / sums.weight,
        remark=_log_loss_remark,
    ),
    Score(Column("Brier", ("brier",), "brier"), lambda sums: sums.brier / sums.weight),
)


def score_values(sums: Any, samples: Samples | None = None, n_threads: int = 1) -> dict[str, Any]:
    """The fields of `Scores`, out of `scores_of` or of a stream, which has no samples."""
    found: dict[str, float | None] = {}
    for score in SCORES:
        if score.mean is not None:
            found[score.key] = score.mean(sums)
        elif score.by_rows is not None:
            found[score.key] = None if samples is None else score.by_rows(samples, n_threads)
    return found


def told_scores(found: Scores) -> dict[str, Any]:
    """The fields of `Scores` of a result."""
    return {score.key: getattr(found, score.key) for score in SCORES}


def score_lines(found: Scores, **remarks: str) -> list[tuple[str, Any, str]]:
    """Title, value and remark of each, for a result by itself; `remarks` by key go before."""
    return [
        (score.column.title, getattr(found, score.key), remarks.get(score.key, score.remark(found)))
        for score in SCORES
        if score.remark is not None
    ]


def score_columns() -> tuple[Column, ...]:
    """Those of all scores."""
    return tuple(score.column for score in SCORES)


def model_columns(level: float) -> tuple[Column, ...]:
    """What is said of a model, by importance, with intervals of this level."""
    accuracy, confidence, *others = score_columns()
    return (
        Column("debiased", ("ckce_debiased",), "ckce", strong=True),
        Column(f"{percent(level)} interval", ("ckce_low", "ckce_high"), "ckce"),
        Column("p-value", ("p_value",), form=".4f"),
        Column("miscalibration", ("miscalibration",), "brier"),
        Column("CKCE", ("ckce",), "ckce"),
        Column("floor", ("ckce_floor",), "ckce"),
        accuracy,
        confidence,
        Column("ECE (top label)", ("ece_top_label",), "ece"),
        Column("JKCE", ("jkce",), "jkce"),
        *others,
    )
