"""What a streaming state can tell."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._methods import Landmarks
from ckce._metrics.ece import EceEstimate
from ckce._metrics.score_table import Scores, score_lines, score_values, told_scores
from ckce._problem import TopLabel
from ckce._reliability.diagram import ReliabilityDiagram, curve_of_bins
from ckce._results import (
    Attribution,
    Facts,
    Said,
    attribute,
    finite,
    gap_of,
    in_words,
    interval_above_0,
    number,
)
from ckce._stream.config import StreamConfig


@dataclass(frozen=True, repr=False)
class StreamEvaluation(Said, Scores):
    """Accuracy, scoring rules and calibration errors out of one pass; ``float(e)`` is the CKCE.

    Two classes have intervals (``method="exact"``). Other states have none: standard errors need a
    second pass over the rows. `ckce.estimate` gives them for data in memory.

    Attributes
    ----------
    n_samples, n_classes : int
        Shape of the data (rows of weight zero are not counted).
    weight : float
        N, the sum of the weights; `n_samples` without weights.
    accuracy, log_loss, brier, mean_confidence : float
        As in `Evaluation`. A reduced stream has the log loss and the Brier score of its reduced
        problem; accuracy, confidence and ECE are those of the predicted class.
    ckce : float
        CKCE, biased upwards: see `ckce_floor`.
    ckce_debiased, ckce_floor : float or None
        Centred at 0 under calibration; mean of `ckce` for a calibrated model. None with
        ``debias=False``.
    ckce_se, ckce_low, ckce_high : float or None
        Standard error and 95 % interval of `ckce_debiased`, for two classes.
    ckce_bound : float or None
        `ckce` differs by at most so much from that of the exact kernel, on all rows and with the
        same bandwidth and lambda: round-off for two classes; for landmarks it certifies and does not
        estimate, usually it is far too large. None for other features.
    missing_trace : float or None
        For landmarks: the share of the trace of the kernel matrix that they leave out. The relative
        error of `ckce` was 0.3 to 5 times as large wherever it was measured.
    jkce : float or None
        Unbiased JKCE, may be negative; None for a weight of at most 1.
    jkce_se : float or None
        Its standard error, for two classes.
    jkce_biased : float
        Biased JKCE, at least 0.
    ece_top_label : EceEstimate
        ECE of the confidence over uniform bins, L1.
    reliability : ReliabilityDiagram
        The same bins as a diagram; `plot` draws it.
    per_class : ndarray of shape (n_classes,) or None
        Contributions of the classes, or of the ranks of `TopK`, to `ckce`; None with a label kernel
        or ``reduction="top_label"``.
    mean_residual : ndarray of shape (n_classes,)
        Mean of e_y - q of the classes, or of those of the reduced problem.
    classes : tuple
        The classes, in the order of the columns; or those of the reduced problem.
    bandwidth, bandwidth_source : float or None, str
        Bandwidth and where it comes from.
    regularization : float
        lambda.
    method : str
        ``exact`` for two classes; else the features, ``fourier``, ``linear`` or ``landmarks``.
    signature : str
        Names everything that changes the CKCE.
    """

    n_samples: int
    n_classes: int
    weight: float
    ckce: float
    ckce_debiased: float | None
    ckce_floor: float | None
    ckce_se: float | None
    ckce_low: float | None
    ckce_high: float | None
    ckce_bound: float | None
    missing_trace: float | None
    jkce: float | None
    jkce_se: float | None
    jkce_biased: float
    ece_top_label: EceEstimate = field(repr=False)
    reliability: ReliabilityDiagram = field(repr=False, compare=False)
    per_class: NDArray[np.float64] | None = field(repr=False, compare=False)
    mean_residual: NDArray[np.float64] = field(repr=False, compare=False)
    classes: tuple[Any, ...] = field(repr=False)
    bandwidth: float | None
    bandwidth_source: str
    regularization: float
    method: str
    signature: str

    def __float__(self) -> float:
        return self.ckce

    def attribution(self) -> Attribution:
        """Which classes are to blame, as in `Estimate.attribution`."""
        if self.per_class is None:
            raise ValueError(
                "attribution needs contributions of single classes, which a label kernel or "
                "reduction='top_label' does not leave"
            )
        return attribute(self.classes, self.per_class, self.mean_residual, self.ckce)

    def _said(self) -> Facts:
        floor = "no floor kept"
        if self.ckce_floor is not None:
            floor = f"floor {number(self.ckce_floor)}: the mean of a calibrated model"
        spread = "no interval: needs the rows"
        if self.ckce_low is not None and self.ckce_high is not None:
            spread = in_words(self.ckce_low, self.ckce_high, 0.95)
        rows: list[tuple[str, float | None, str]] = [
            *score_lines(self),
            ("CKCE", self.ckce, floor),
            ("debiased", self.ckce_debiased, spread),
            ("JKCE", self.jkce, f"unbiased; biased {number(self.jkce_biased)}"),
            ("ECE (top label)", self.ece_top_label.value, gap_of(self)),
        ]
        if self.missing_trace is not None:
            note = f"on the distance to exact CKCE; missing trace {self.missing_trace:.1e}"
            rows.insert(len(rows) - 3, ("bound", self.ckce_bound, note))
        bandwidth = "" if self.bandwidth is None else f", bandwidth {self.bandwidth:.6g}"
        features = "" if self.method == "exact" else " features"
        heading = f"n = {self.n_samples}, m = {self.n_classes}, {self.method}{features}{bandwidth}"
        lines = [(name, number(value), note) for name, value, note in rows if value is not None]
        return Facts(tuple(lines), self.signature, heading)

    def to_dict(self) -> dict[str, float | int | str | None]:
        """All numbers, flat and ready for JSON; what is not finite becomes None."""
        numbers: dict[str, float | int | str | None] = {
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "weight": self.weight,
            **told_scores(self),
            "ckce": self.ckce,
            "ckce_floor": self.ckce_floor,
            "ckce_debiased": self.ckce_debiased,
            "ckce_se": self.ckce_se,
            "ckce_low": self.ckce_low,
            "ckce_high": self.ckce_high,
            "ckce_bound": self.ckce_bound,
            "missing_trace": self.missing_trace,
            "ckce_method": self.method,
            "bandwidth": self.bandwidth,
            "regularization": self.regularization,
            "jkce": self.jkce,
            "jkce_se": self.jkce_se,
            "jkce_biased": self.jkce_biased,
            "ece_top_label": self.ece_top_label.value,
            "n_bins": self.ece_top_label.n_bins,
            "ckce_signature": self.signature,
            "ece_top_label_signature": self.ece_top_label.signature,
        }
        return finite(numbers)


def evaluation_of(
    config: StreamConfig, result: _core.AccumulatorResult, weighted: bool
) -> StreamEvaluation:
    """All that the sums tell."""
    scores, solution, n = result.scores, result.solution, result.rows
    weight = scores.weight
    placed = isinstance(config.method, Landmarks)
    debiased = solution.value - solution.debias if config.debias else None
    se, jkce_se = _standard_errors(result)
    low, high = (None, None)
    if se is not None and debiased is not None:
        low, high = interval_above_0(debiased, se, 0.95, raw=solution.value)
    return StreamEvaluation(
        n_samples=n,
        n_classes=config.n_classes,
        weight=weight,
        **score_values(scores),
        ckce=solution.value,
        ckce_debiased=debiased,
        ckce_floor=solution.floor if config.debias else None,
        ckce_se=se,
        ckce_low=low,
        ckce_high=high,
        ckce_bound=solution.bound if config.method.certified else None,
        missing_trace=result.missing if placed else None,
        jkce=result.off_diagonal / (weight * (weight - 1.0)) if weight > 1.0 + 1e-6 else None,
        jkce_se=jkce_se,
        jkce_biased=(result.off_diagonal + result.diagonal) / weight**2,
        ece_top_label=_top_label_ece(config, result, weighted),
        reliability=_reliability(config, result),
        per_class=solution.per_class if _has_classes(config) else None,
        mean_residual=scores.residual / weight,
        classes=config.classes,
        bandwidth=config.bandwidth.value,
        bandwidth_source=config.bandwidth.source,
        regularization=result.regularization,
        method=config.method.word,
        signature=str(config.signature(n, weight if weighted else None)),
    )


def _has_classes(config: StreamConfig) -> bool:
    """Whether the value is a sum over classes."""
    return config.label_kernel is None and not isinstance(config.reduction, TopLabel)


def _standard_errors(result: _core.AccumulatorResult) -> tuple[float | None, float | None]:
    """Of debiased CKCE and unbiased JKCE, where the sums tell them."""
    total = result.scores.weight
    if math.isnan(result.influence_square) or total <= 1.0 + 1e-6:
        return None, None
    jkce = result.off_diagonal / (total * (total - 1.0))
    spread = result.rows_square / (total - 1.0) ** 2 - total * jkce**2
    both = result.influence_square, 4.0 * max(spread, 0.0)
    se, jkce_se = (math.sqrt(square / (total - 1.0) / total) for square in both)
    return se, jkce_se


def _top_label_ece(
    config: StreamConfig, result: _core.AccumulatorResult, weighted: bool
) -> EceEstimate:
    weight, prob, hits, count = result.bins.T
    total = result.scores.weight
    signature = config.ece_signature(result.rows, total if weighted else None)
    with np.errstate(invalid="ignore"):  # 0 / 0 in empty bins
        confidence, frequency = prob / weight, hits / weight
    return EceEstimate(
        value=float(np.abs(hits - prob).sum() / total),
        variant="top_label",
        norm="l1",
        strategy="uniform",
        debias=False,
        n_bins=config.n_bins,
        n_samples=result.rows,
        n_classes=config.n_classes,
        counts=count.astype(np.int64),
        edges=np.arange(config.n_bins + 1) / config.n_bins,
        confidence=confidence,
        frequency=frequency,
        per_class=None,
        signature=str(signature),
    )


def _reliability(config: StreamConfig, result: _core.AccumulatorResult) -> ReliabilityDiagram:
    edges = np.arange(config.n_bins + 1) / config.n_bins
    curve = curve_of_bins("model", edges, result.bins, result.bins[:, 0], 0.95)
    return ReliabilityDiagram((curve,), "top label", "uniform", 0.95)
