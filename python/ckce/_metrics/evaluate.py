"""The paper's table for one model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ckce._input import check_bool, check_level, check_samples, check_segments, take_column
from ckce._methods import Method
from ckce._metrics.calibration_test import CalibrationTest, check_test, of_test, run_test
from ckce._metrics.ece import TITLES, VARIANTS, EceEstimate, ece_estimate_of
from ckce._metrics.estimate import Estimate, ckce_fields, estimate_of
from ckce._metrics.jkce import JkceEstimate, check_pairs, jkce_estimate_of
from ckce._metrics.miscalibration import (
    Miscalibration,
    miscalibration_beside,
    refuse_without_memory,
    remark_of,
)
from ckce._metrics.score_table import Scores, score_lines, score_values, told_scores
from ckce._metrics.scores import BrierDecomposition, brier_decomposition_of, scores_of
from ckce._metrics.segments import Segments, segments_of
from ckce._metrics.smooth_ece import smooth_ece_of
from ckce._metrics.views import Where, where_of
from ckce._problem import (
    ReductionLike,
    check_reduction,
    check_settings,
    problem_of,
)
from ckce._results import (
    FEW_ROWS,
    NO_SIGN,
    Facts,
    by_groups,
    finite,
    gap_of,
    in_words,
    load_pandas,
    number,
    percent,
)

_MANY_AT_ENDS = 0.01  # share of predictions of exactly 0 or 1 that moves smooth ECE


def evaluate(
    y_true: Any,
    y_prob: Any,
    *,
    method: str | Method = "auto",
    kernel: str = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | str | None = None,
    reduction: ReductionLike = None,
    n_bins: int | None = None,
    level: float = 0.95,
    test: bool | int = False,
    sample_weight: Any = None,
    groups: Any = None,
    by: Any = None,
    where: bool = False,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Everything the paper's comparison reports of a model, in one call.

    Accuracy, log loss, Brier score with its decomposition, what recalibration would take off it
    (`miscalibration`), CKCE (with floor, debiased value and confidence interval), JKCE (with standard
    error), ECE in three variants and smooth ECE. CKCE and JKCE share
    kernel and bandwidth.

    Parameters
    ----------
    method : {"auto", "exact", "fourier", "cholesky", "landmarks"}, or an object with options
        Of CKCE and JKCE alike; see `ckce`.
    n_bins : int, optional
        Bins of a probability, for ECE and the decomposition: by default 15, 10 for the simplex.
    reduction : {"top_label", "class_wise"} or `TopK`, optional
        Of CKCE, JKCE and the test, as in `ckce`; the test takes no ``class_wise``.
    level : float
        Level of the intervals.
    test : bool or int
        Whether to add the p-value of `calibration_test`, by 999 resamples or by as many as given.
        Not with groups, because the test needs independent labels.
    groups : array of shape (n_samples,), optional
        Ids of rows that depend on each other, as in `estimate`: CKCE is debiased, JKCE unbiased, and
        their standard errors are by group.
    by : array of shape (n_samples,), dict of such arrays, or str, optional
        Segments of the rows, such as regions or tasks, whose CKCE is reported one by one in
        `segments`: any values, a dict (or a table) of several attributes, or the name of a column in
        a table `y_prob`. All segments share the bandwidth and lambda of all rows; their intervals
        hold for all segments at once (Sidak). Segments with fewer than 50 rows are named and have no
        value.
    where : bool
        Whether to say where the model is off: the worst regions in words and the numbers of the
        pictures, see `witness`. They cost a few times `estimate`.
    y_true, y_prob, kernel, bandwidth, regularization, sample_weight, labels, random_state,
    input, normalize, n_threads, progress
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
    accuracy           0.6667   mean confidence 0.7500
    log loss           0.4372
    Brier              0.2900   both classes count: twice scikit-learn's
    miscalibration     0.0395   too few rows to tell: fewer than 50
    CKCE               0.00387  floor 0.0504: the mean of a calibrated model
    debiased          -0.0343   too few rows to tell: fewer than 50
    JKCE              -0.0857   unbiased; too few rows to tell: fewer than 50
    ECE (top label)    0.3167   overconfident by 0.0833
    ECE (class-wise)   0.3167   mean over classes
    ECE (simplex)      0.6333   10 bins per class, 6 occupied, 6 with one sample; mostly noise
    ECE (smooth)       0.1135   of the second class, kernel width 0.1143
    signature         ckce|v0.1|method:exact|k:linear_gaussian|gamma:0.42426406871192857(median)|lam:n^-0.25|n:6|m:2|p:float64
    """
    check_bool("where", where)
    by, y_prob = take_column(by, y_prob)
    level, resamples = check_level(level), check_test(test, regularization, groups)
    if resamples:
        check_reduction(reduction, ("top_label",))
    settings = check_settings(
        "ckce",
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
        reduction=reduction,
        random_state=random_state,
        n_threads=n_threads,
    )
    threads = settings.n_threads
    samples = check_samples(
        y_true,
        y_prob,
        labels=labels,
        sample_weight=sample_weight,
        input=input,
        normalize=normalize,
        n_threads=threads,
        groups=groups,
        ranked=True,
    )
    check_pairs(samples)
    problem = problem_of("ckce", samples, settings)
    refuse_without_memory([problem])
    scores = scores_of(samples, threads)
    ece: dict[str, Any] = {
        f"ece_{variant}": ece_estimate_of(samples, threads, variant=variant, n_bins=n_bins)
        for variant in VARIANTS
    }
    partitions = check_segments(by, y_true, sample_weight)
    smooth = smooth_ece_of(samples, threads)
    bins = ece["ece_class_wise"].n_bins
    tested = None
    if resamples:
        asked = of_test(settings)
        tested = run_test(samples, asked, resamples, progress=progress, beside=problem)
    return Evaluation(
        n_samples=samples.n,
        n_classes=samples.m,
        **score_values(scores, samples, threads),
        brier_parts=brier_decomposition_of(samples, "class_wise", bins, "uniform", True, threads),
        ckce=estimate_of(problem, progress, level),
        jkce=jkce_estimate_of(problem.of_jkce(), progress, level),
        miscalibration=miscalibration_beside(problem, level),
        smooth_ece=smooth.value,
        smooth_ece_bandwidth=smooth.bandwidth,
        smooth_ece_at_ends=smooth.at_ends,
        test=tested,
        level=level,
        segments=segments_of({"": (samples, problem)}, partitions, level),
        where=where_of(problem, level) if where else None,
        **ece,
    )


@dataclass(frozen=True)
class Evaluation(Scores):
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
        Calibration and refinement parts of the Brier score by bins of each class, debiased. They miss
        what classes do together; `miscalibration` does not.
    ckce : Estimate
        CKCE with floor, debiased value, standard error, contributions of the classes.
    jkce : JkceEstimate
        JKCE with standard error.
    ece_top_label, ece_class_wise, ece_simplex : EceEstimate
        ECE, L1, by the bins of the confidence, of each class, and of the whole vector (the paper's).
    smooth_ece, smooth_ece_bandwidth, smooth_ece_at_ends : float
        Smooth ECE, of the second of two classes or of the top label; the width of its kernel; the
        share of predictions of exactly 0 or 1, which count half in it.
    miscalibration : Miscalibration or None
        What perfect recalibration would take off the Brier score; None with
        ``reduction="class_wise"``, and of one row.
    test : CalibrationTest or None
        The exact test of calibration, if it was asked for.
    level : float
        Level of the intervals.
    segments : Segments or None
        The same model segment by segment, if ``by`` was given.
    where : Where or None
        Where the model is off, if it was asked for and there are at least 50 rows.
    """

    n_samples: int
    n_classes: int
    brier_parts: BrierDecomposition = field(repr=False)
    ckce: Estimate = field(repr=False)
    jkce: JkceEstimate = field(repr=False)
    ece_top_label: EceEstimate = field(repr=False)
    ece_class_wise: EceEstimate = field(repr=False)
    ece_simplex: EceEstimate = field(repr=False)
    smooth_ece: float
    smooth_ece_bandwidth: float
    smooth_ece_at_ends: float
    miscalibration: Miscalibration | None = field(default=None, repr=False)
    test: CalibrationTest | None = field(default=None, repr=False)
    level: float = 0.95
    segments: Segments | None = field(default=None, repr=False)
    where: Where | None = field(default=None, repr=False, compare=False)

    def _facts(self) -> Facts:
        c, j = self.ckce, self.jkce
        rejected = self.test is not None and self.test.p_value < 1 - self.level
        spread = in_words(*c.interval(self.level), self.level, rejected, len(c.classes))
        joint = in_words(*j.interval(self.level), self.level, rejected)
        if self.n_samples < FEW_ROWS:
            spread = joint = f"too few rows to tell: fewer than {FEW_ROWS}"
        rows = score_lines(self, brier=self._brier_remark())
        if self.miscalibration is not None:
            off = self.miscalibration
            rows.append(("miscalibration", off.value, remark_of(off, rejected)))
        rows += [
            ("CKCE", c.value, _floor_remark(c)),
            ("debiased", c.debiased, spread),
            ("JKCE", j.value, f"unbiased; {joint}"),
            (TITLES["top_label"], self.ece_top_label.value, gap_of(self)),
            (TITLES["class_wise"], self.ece_class_wise.value, "mean over classes"),
            (TITLES["simplex"], self.ece_simplex.value, _bins_remark(self.ece_simplex)),
            ("ECE (smooth)", self.smooth_ece, self._smooth_remark()),
        ]
        if self.test is not None:
            found = "the model is miscalibrated" if rejected else NO_SIGN
            drawn = f"{self.test.n_resamples} resamples"
            rows.append(("p-value", self.test.p_value, f"test of calibration; {drawn}: {found}"))
        bandwidth = "" if c.bandwidth is None else f", bandwidth {c.bandwidth:.6g}"
        groups = "" if c.n_groups is None else f", {by_groups(c.n_groups)}"
        heading = (
            f"n = {self.n_samples}, m = {self.n_classes}, CKCE {c.method}, JKCE {j.method}"
            f"{bandwidth}{groups}"
        )
        lines = tuple((name, number(value), remark) for name, value, remark in rows)
        return Facts(lines, c.signature, heading)

    def _brier_remark(self) -> str:
        text = ["both classes count: twice scikit-learn's"] if self.n_classes == 2 else []
        off = self.miscalibration
        if off is not None and not off.subject and self.n_samples >= FEW_ROWS:
            text.append(f"miscalibration + refinement {number(self.brier - off.value)}")
        return "; ".join(text)

    def _smooth_remark(self) -> str:
        of = "the second class" if self.n_classes == 2 else "the top label"
        text = f"of {of}, kernel width {number(self.smooth_ece_bandwidth)}"
        if self.smooth_ece_at_ends >= _MANY_AT_ENDS:
            share = percent(round(self.smooth_ece_at_ends, 3))
            text += f"; {share} of the predictions are 0 or 1 and count half, as in relplot"
        return text

    def __repr__(self) -> str:
        parts = [self._facts().text()]
        parts += [repr(part) for part in (self.segments, self.where) if part is not None]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        parts = [part for part in (self.segments, self.where) if part is not None]
        return "".join([self._facts().html(), *(part._repr_html_() for part in parts)])

    def to_dict(self) -> dict[str, float | int | str | None]:
        """All numbers, flat and ready for JSON; what is not finite becomes None."""
        c, j, parts = self.ckce, self.jkce, self.brier_parts
        numbers: dict[str, float | int | str | None] = {
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "n_groups": c.n_groups,
            **told_scores(self),
            "brier_calibration": parts.calibration,
            "brier_refinement": parts.refinement,
            "brier_within_bins": parts.within_bins,
            **ckce_fields(c, self.level),
            "level": self.level,
            "ckce_bound": c.bound,
            "ckce_method": c.method,
            "bandwidth": c.bandwidth,
            "regularization": c.regularization,
            "jkce": j.value,
            "jkce_se": j.se,
            "jkce_biased": j.biased,
            "jkce_method": j.method,
            "ece_top_label": self.ece_top_label.value,
            "ece_class_wise": self.ece_class_wise.value,
            "ece_simplex": self.ece_simplex.value,
            "ece_simplex_occupied_bins": self.ece_simplex.n_occupied,
            "ece_simplex_single_bins": self.ece_simplex.n_single,
            "ece_simplex_share_in_small_bins": self.ece_simplex.share_in_small_bins,
            "smooth_ece": self.smooth_ece,
            "smooth_ece_bandwidth": self.smooth_ece_bandwidth,
            "ckce_signature": c.signature,
            "jkce_signature": j.signature,
            "ece_top_label_signature": self.ece_top_label.signature,
            **_in_points(self.miscalibration),
            "p_value": None if self.test is None else self.test.p_value,
            "test_signature": None if self.test is None else self.test.signature,
        }
        return finite(numbers)

    def to_frame(self, name: str = "model") -> Any:
        """`to_dict` as a pandas DataFrame with one row, called `name`; stack them with concat."""
        pandas = load_pandas()
        numbers = {
            key: math.nan if value is None else value for key, value in self.to_dict().items()
        }
        numbers["log_loss"] = self.log_loss
        return pandas.DataFrame(numbers, index=[name])


def _in_points(found: Miscalibration | None) -> dict[str, float | str | None]:
    names = {"": "value", "_se": "se", "_low": "low", "_high": "high", "_signature": "signature"}
    names.update({"_points": "root", "_points_low": "root_low", "_points_high": "root_high"})
    return {
        f"miscalibration{end}": None if found is None else getattr(found, name)
        for end, name in names.items()
    }


def _floor_remark(e: Estimate) -> str:
    if e.floor is None:
        return "no floor, which assumes independent rows"
    return f"floor {number(e.floor)}: the mean of a calibrated model"


def _bins_remark(e: EceEstimate) -> str:
    text = f"{e.n_bins} bins per class, {e.n_occupied} occupied, {e.n_single} with one sample"
    return text + ("; mostly noise" if e.mostly_noise else "")
