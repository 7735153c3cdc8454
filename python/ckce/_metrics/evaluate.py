"""The paper's table for one model."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, field
from typing import Any

from ckce._config import resolve_threads
from ckce._input.samples import Samples, check_bool, check_samples, class_names
from ckce._metrics.calibration_test import CalibrationTest, calibration_test, check_test
from ckce._metrics.ckce import estimate
from ckce._metrics.ece import EceEstimate, check_bins, estimate_ece, preparation
from ckce._metrics.estimate import Estimate
from ckce._metrics.jkce import JkceEstimate, jkce_estimate
from ckce._metrics.scores import BrierDecomposition, brier_decomposition, scores_of


@dataclass(frozen=True)
class Evaluation:
    """Accuracy, scoring rules and calibration errors of one model.

    Prints as a table, shows as HTML in notebooks.

    Attributes
    ----------
    n_samples, n_classes : int
        Shape of the data (rows of weight zero are not counted).
    accuracy, log_loss, brier : float
        See the functions of these names.
    mean_confidence : float
        Mean of the largest probability; above `accuracy` the model is overconfident.
    brier_parts : BrierDecomposition
        Calibration and refinement parts of the Brier score, class by class.
    ckce : Estimate
        CKCE with floor, debiased value, standard error, contributions of the classes.
    jkce : JkceEstimate
        JKCE with standard error.
    ece, ece_top_label, ece_class_wise : EceEstimate
        ECE, L1, by the bins of the paper, of the confidence, and of each class.
    test : CalibrationTest or None
        The exact test of calibration, if it was asked for.
    """

    n_samples: int
    n_classes: int
    accuracy: float
    log_loss: float
    brier: float
    mean_confidence: float
    brier_parts: BrierDecomposition = field(repr=False)
    ckce: Estimate = field(repr=False)
    jkce: JkceEstimate = field(repr=False)
    ece: EceEstimate = field(repr=False)
    ece_top_label: EceEstimate = field(repr=False)
    ece_class_wise: EceEstimate = field(repr=False)
    test: CalibrationTest | None = field(default=None, repr=False)

    def _rows(self) -> list[tuple[str, str, str]]:
        """Name, number and remark of each line of the table."""
        c, j = self.ckce, self.jkce
        low, high = c.interval()
        j_low, j_high = j.interval()
        lean = "over" if self.mean_confidence > self.accuracy else "under"
        gap = abs(self.mean_confidence - self.accuracy)
        parts = self.brier_parts
        rows = [
            ("accuracy", self.accuracy, f"mean confidence {_digits(self.mean_confidence)}"),
            ("log loss", self.log_loss, "" if math.isfinite(self.log_loss) else _ZERO),
            (
                "Brier",
                self.brier,
                f"calibration {_digits(parts.calibration)} + refinement "
                f"{_digits(parts.refinement)} + within bins {round(parts.within_bins, 4) + 0.0:.4f}",
            ),
            ("CKCE", c.value, f"floor {_digits(c.floor)}: the mean of a calibrated model"),
            ("debiased", c.debiased, f"95 % interval {_digits(low)} to {_digits(high)}"),
            ("JKCE", j.value, f"unbiased, 95 % interval {_digits(j_low)} to {_digits(j_high)}"),
            ("ECE", self.ece.value, _bins_remark(self.ece)),
            ("top label", self.ece_top_label.value, f"ECE; {lean}confident by {_digits(gap)}"),
            ("class-wise", self.ece_class_wise.value, "ECE; mean over classes"),
        ]
        if self.test is not None:
            drawn = f"{self.test.n_resamples} resamples, debiased CKCE"
            rows.append(("p-value", self.test.p_value, f"test of calibration; {drawn}"))
        return [(name, _digits(number), remark) for name, number, remark in rows]

    def _heading(self) -> str:
        bandwidth = self.ckce.bandwidth
        kernel = "" if bandwidth is None else f", bandwidth {bandwidth:.6g}"
        return (
            f"n = {self.n_samples}, m = {self.n_classes}, CKCE {self.ckce.method}, "
            f"JKCE {self.jkce.method}{kernel}"
        )

    def __repr__(self) -> str:
        return table_text(self._heading(), self._rows(), self.ckce.signature)

    def _repr_html_(self) -> str:
        import html

        cells = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:right;font-variant-numeric:tabular-nums">'
            f"{html.escape(number)}</td>"
            f'<td style="text-align:left;opacity:0.7">{html.escape(note)}</td></tr>'
            for name, number, note in self._rows()
        )
        return (
            f'<table><caption style="text-align:left">{html.escape(self._heading())}</caption>'
            f"<tbody>{cells}</tbody></table>"
            f'<code style="font-size:smaller">{html.escape(self.ckce.signature)}</code>'
        )

    def to_dict(self) -> dict[str, float | int | str | None]:
        """All numbers, flat and ready for JSON; what is not finite becomes None."""
        c, j, parts = self.ckce, self.jkce, self.brier_parts
        low, high = c.interval()
        numbers: dict[str, float | int | str | None] = {
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "accuracy": self.accuracy,
            "mean_confidence": self.mean_confidence,
            "log_loss": self.log_loss,
            "brier": self.brier,
            "brier_calibration": parts.calibration,
            "brier_refinement": parts.refinement,
            "brier_within_bins": parts.within_bins,
            "ckce": c.value,
            "ckce_floor": c.floor,
            "ckce_debiased": c.debiased,
            "ckce_se": c.se,
            "ckce_low": low,
            "ckce_high": high,
            "ckce_bound": c.bound,
            "ckce_method": c.method,
            "bandwidth": c.bandwidth,
            "regularization": c.regularization,
            "jkce": j.value,
            "jkce_se": j.se,
            "jkce_biased": j.biased,
            "jkce_method": j.method,
            "ece": self.ece.value,
            "ece_occupied_bins": self.ece.n_occupied,
            "ece_single_bins": self.ece.n_single,
            "ece_share_in_small_bins": self.ece.share_in_small_bins,
            "ece_top_label": self.ece_top_label.value,
            "ece_class_wise": self.ece_class_wise.value,
            "n_bins": self.ece.n_bins,
            "ckce_signature": c.signature,
            "jkce_signature": j.signature,
            "ece_signature": self.ece.signature,
            "p_value": None if self.test is None else self.test.p_value,
            "test_signature": None if self.test is None else self.test.signature,
        }
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in numbers.items()
        }

    def to_frame(self, name: str = "model") -> Any:
        """`to_dict` as a pandas DataFrame with one row, called `name`; stack them with concat."""
        pandas = load_pandas()
        numbers = {
            key: math.nan if value is None else value for key, value in self.to_dict().items()
        }
        numbers["log_loss"] = self.log_loss
        return pandas.DataFrame(numbers, index=[name])


def load_pandas() -> Any:
    """The module pandas, for `to_frame`."""
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None


def top_label_ece(samples: Samples, n_threads: int) -> float:
    """ECE of the confidence, L1, ten uniform bins: the column "ECE" of tables of models."""
    return estimate_ece(
        samples,
        variant="top_label",
        n_bins=10,
        strategy="uniform",
        norm="l1",
        debias=False,
        n_threads=n_threads,
    ).value


_ZERO = "a label had probability 0"


def _digits(number: float) -> str:
    return f"{number:.3g}" if abs(number) < 1e-3 and number != 0.0 else f"{number:.4f}"


def _under_one_another(numbers: list[str]) -> list[str]:
    """Padded so that the decimal points make a column."""
    halves = [number.partition(".") for number in numbers]
    left = max(len(before) for before, _, _ in halves)
    right = max(len(after) for _, _, after in halves)
    return [f"{before:>{left}}{dot or ' '}{after:<{right}}" for before, dot, after in halves]


def table_text(heading: str, rows: list[tuple[str, str, str]], signature: str) -> str:
    """Rows of name, number and remark under a heading, the signature last."""
    numbers = _under_one_another([number for _, number, _ in rows])
    lines = [heading]
    lines += [
        f"{name:<11}{number}  {note}".rstrip()
        for (name, _, note), number in zip(rows, numbers, strict=True)
    ]
    lines.append(f"{'signature':<11}{signature}")
    return "\n".join(lines)


def _bins_remark(e: EceEstimate) -> str:
    text = f"{e.n_bins} bins per class, {e.n_occupied} occupied, {e.n_single} with one sample"
    return text + ("; mostly noise" if e.mostly_noise else "")


def evaluate(
    y_true: Any,
    y_prob: Any,
    *,
    method: str = "auto",
    kernel: str = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | str | None = None,
    n_bins: int = 10,
    test: bool | int = False,
    sample_weight: Any = None,
    labels: Any = None,
    random_state: int = 0,
    normalize: bool = False,
    from_logits: bool = False,
    n_threads: int | None = None,
    progress: bool = False,
) -> Evaluation:
    """Everything the paper's comparison reports of a model, in one call.

    Accuracy, log loss, Brier score with its decomposition, CKCE (with floor, debiased value and
    confidence interval), JKCE (with standard error) and ECE in three variants. CKCE and JKCE share
    kernel and bandwidth.

    Parameters
    ----------
    method : {"auto", "exact", "fourier", "cholesky"}
        Of CKCE and JKCE alike; see `ckce`.
    n_bins : int
        Bins of a probability, for ECE and the decomposition.
    test : bool or int
        Whether to add the p-value of `calibration_test`, by 999 resamples or by as many as given.
    y_true, y_prob, kernel, bandwidth, regularization, sample_weight, labels, random_state,
    normalize, from_logits, n_threads, progress
        As in `ckce`.

    Returns
    -------
    Evaluation
        With ``to_dict()`` and ``to_frame()``.

    Notes
    -----
    The formulas, bias and sign of each number are with the function of its name; debiased CKCE,
    JKCE and the within-bins part of the Brier score may be negative. The cost is that of `estimate`
    and `jkce_estimate`; the rest takes a few passes over the rows, `test` some tens of evaluations.

    Examples
    --------
    >>> import ckce
    >>> y_true = [0, 1, 1, 0, 1, 0]
    >>> ckce.evaluate(y_true, [0.1, 0.8, 0.4, 0.3, 0.9, 0.6])
    n = 6, m = 2, CKCE exact, JKCE exact, bandwidth 0.424264
    accuracy    0.6667  mean confidence 0.7500
    log loss    0.4372
    Brier       0.2900  calibration 0.2900 + refinement 0.0000 + within bins 0.0000
    CKCE        0.0039  floor 0.0504: the mean of a calibrated model
    debiased   -0.0343  95 % interval -0.0535 to -0.0151
    JKCE       -0.0857  unbiased, 95 % interval -0.2631 to 0.0916
    ECE         0.6333  10 bins per class, 6 occupied, 6 with one sample; mostly noise
    top label   0.3167  ECE; overconfident by 0.0833
    class-wise  0.3167  ECE; mean over classes
    signature  ckce|v0.1|method:exact|k:linear_gaussian|gamma:0.42426406871192857(median)|lam:n^-0.25|n:6|m:2|p:float64
    """
    threads = resolve_threads(n_threads)
    bins = check_bins(n_bins)
    resamples = check_test(test, regularization)
    samples = check_samples(
        y_true,
        y_prob,
        labels=labels,
        sample_weight=sample_weight,
        normalize=check_bool("normalize", normalize),
        from_logits=check_bool("from_logits", from_logits),
        n_threads=threads,
    )
    names = class_names(y_true, labels, samples.m)
    common: dict[str, Any] = {
        "method": method,
        "kernel": kernel,
        "bandwidth": bandwidth,
        "random_state": random_state,
        "normalize": normalize,  # done already; for the signature
        "from_logits": from_logits,
        "n_threads": threads,
        "progress": progress,
    }
    scores = scores_of(samples, threads)
    ece = {
        variant: estimate_ece(
            samples,
            variant=variant,
            n_bins=bins,
            strategy="uniform",
            norm="l1",
            debias=False,
            n_threads=threads,
            prepared=preparation(normalize, from_logits),
        )
        for variant in ("simplex", "top_label", "class_wise")
    }
    return Evaluation(
        n_samples=samples.n,
        n_classes=samples.m,
        accuracy=scores.hits / scores.weight,
        log_loss=scores.log_loss / scores.weight,
        brier=scores.brier / scores.weight,
        mean_confidence=scores.confidence / scores.weight,
        brier_parts=brier_decomposition(
            samples, None, variant="class_wise", n_bins=bins, n_threads=threads
        ),
        ckce=estimate(samples, None, regularization=regularization, labels=names, **common),
        jkce=jkce_estimate(samples, None, **common),
        ece=ece["simplex"],
        ece_top_label=ece["top_label"],
        ece_class_wise=ece["class_wise"],
        test=calibration_test(
            samples,
            None,
            n_resamples=resamples,
            **{
                **common,
                "regularization": regularization,
                "method": "fourier" if method == "fourier" else "auto",
            },
        )
        if resamples
        else None,
    )
