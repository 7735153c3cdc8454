"""Miscalibration in units of the Brier score: what perfect recalibration would gain."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import KEPT_FREE, check_level, check_memory, check_samples
from ckce._methods import Landmarks, choose_points, pool_of
from ckce._methods.method import in_panels
from ckce._problem import (
    Bandwidth,
    ClassWise,
    Problem,
    ReductionLike,
    TopK,
    check_reduction,
    check_settings,
    median_of,
    problem_of,
    progress_bar,
)
from ckce._results import (
    FEW_ROWS,
    Facts,
    Said,
    by_groups,
    finite,
    form_of,
    in_words,
    number,
    percent,
    quantile,
    standard_error,
)

POOL = 3000  # distinct predictions among which landmarks are sought
LANDMARKS = (100, 200)  # of CKCE's kernel, and of the Gaussian kernel at an eighth of the bandwidth
FINE = 8.0
_TRACE_LEFT = 1e-9  # of a kernel's trace, where landmarks stop
FINER = "errors finer than this sample resolves would come on top"


def miscalibration(
    y_true: Any,
    y_prob: Any,
    *,
    level: float = 0.95,
    bandwidth: float | str = "median",
    reduction: ReductionLike = None,
    sample_weight: Any = None,
    groups: Any = None,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> Miscalibration:
    r"""Mean squared miscalibration: what perfect recalibration would take off the Brier score.

    .. math:: \theta = \mathbb{E}\, \lVert \mathbb{E}[e_Y - q \mid q] \rVert^2

    0 for a calibrated model, 2 at most, and comparable across data sets and sample sizes. A smoother
    A of the rows :math:`r_i = e_{y_i} - q_i`, which depends on the predictions alone, estimates it
    without a split of the rows:

    .. math::
        \hat\theta = \frac{1}{n - \mathrm{df}} \sum_{i \ne j} r_i^\top A_{ij} r_j, \qquad
        A = A_1 + V (X^\top V)^{-1} V^\top, \quad A_1 = 2H - H^2, \quad V = (I - A_1) X .

    H is a ridge smoother on landmarks of CKCE's kernel and of a Gaussian kernel at an eighth of the
    bandwidth, X three shapes (flatter, sharper, uniform predictions) that are fitted without
    penalty, and df is the trace of :math:`A_1`. lambda is the smallest with df <= n / 8 and a null
    standard deviation of at most :math:`0.4\, n^{-3/4}`: no label is looked at.

    Parameters
    ----------
    level : float
        Level of the interval.
    bandwidth : float or "median"
        Bandwidth of the kernel; the median distance by default.
    reduction : "top_label" or `TopK`, optional
        The confidence only, or the k largest entries: another theta, of another Brier score, which
        may be larger than the one of all classes.
    groups : array of shape (n_samples,), optional
        Ids of rows that depend on each other, at least 10 groups: pairs within a group are dropped,
        the standard error is by group, and df counts against the groups.
    random_state : int
        Seed of the landmarks.
    y_true, y_prob, sample_weight, labels, input, normalize, n_threads, progress
        As in `ckce`.

    Returns
    -------
    Miscalibration
        ``float(m)`` is its value; ``m.headline`` says it in words.

    Notes
    -----
    Given the predictions, the mean is exactly 0 under calibration, so the value may be negative; it
    is never clipped. Otherwise the bias is that of the smoother, nearly always downwards: errors in
    narrow regions, or of single classes out of many, are finer than a small sample resolves. The
    lower end of the interval is the promise, the upper end is not: see studies/MISCALIBRATION.md.

    Cost O(n d (d + 3 m)) for d <= 300 features, memory independent of n beyond the result. From 4096
    rows of two classes on: O(n), with numbers for at most n / 4 or 65,536 predictions in memory.

    Examples
    --------
    >>> import ckce
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.uniform(0.2, 0.8, 4000)
    >>> y_true = (rng.random(4000) < truth).astype(int)
    >>> overconfident = 0.5 + 1.5 * (truth - 0.5)
    >>> m = ckce.miscalibration(y_true, overconfident)
    >>> print(m.headline)
    Perfect recalibration would lower the Brier score by about 0.0174 (95 %: 0.0117 to 0.0231). Probabilities are off by about 9.3 points in root mean square (7.6 to 10.8).
    """
    level = check_level(level)
    check_reduction(reduction, ("top_label",))
    settings = check_settings(
        "miscalibration",
        method=Landmarks(sum(LANDMARKS)),
        bandwidth=bandwidth,
        reduction=reduction,
        random_state=random_state,
        n_threads=n_threads,
    )
    samples = check_samples(
        y_true,
        y_prob,
        labels=labels,
        sample_weight=sample_weight,
        input=input,
        normalize=normalize,
        n_threads=settings.n_threads,
        groups=groups,
        scan=not isinstance(settings.reduction, TopK),
        ranked=True,
    )
    return miscalibration_of(problem_of("miscalibration", samples, settings), level, progress)


@dataclass(frozen=True, repr=False)
class Miscalibration(Said):
    """Mean squared miscalibration with its interval; ``float(m)`` is the value.

    Attributes
    ----------
    value : float
        Estimate of theta, in units of the Brier score. It may be negative.
    se : float
        Standard error, at least the standard deviation that a calibrated model has.
    low, high : float
        Ends of the interval, as computed, also below 0.
    root, root_low, root_high : float
        Root mean square of the error of a predicted vector, in points (hundredths), and its ends:
        ``100 sqrt(max(0, .) / 2)``: from 0 to 100, and with two classes the points by which the
        probability of each is off. A class that never occurs does not change them.
    level : float
        Level of the interval.
    influence : ndarray of shape (n_samples,)
        Influence of each sample on the value. For two models on the same rows, the standard
        deviation of the difference of their influences over sqrt(n) is the standard error of the
        difference.
    df, regularization : float
        Degrees of freedom of the smoother, and its lambda.
    n_samples, n_classes : int
        Shape of the data; the classes are those before a reduction.
    n_groups : int or None
        Number of groups, if there are any.
    subject : str
        Whose Brier score it is a part of; empty for all classes.
    signature : str
        Names everything that changes the number.
    """

    value: float
    se: float
    low: float
    high: float
    root: float
    root_low: float
    root_high: float
    level: float
    influence: NDArray[np.float64] = field(repr=False, compare=False)
    df: float
    regularization: float
    n_samples: int
    n_classes: int
    n_groups: int | None
    subject: str
    signature: str

    def __float__(self) -> float:
        return self.value

    @property
    def shown(self) -> bool:
        """Whether miscalibration is shown: the interval lies above 0."""
        return self.low > 0.0 and self.n_samples >= FEW_ROWS

    @property
    def headline(self) -> str:
        """The result in words."""
        if self.n_samples < FEW_ROWS:
            return f"Too few rows to tell how large miscalibration is: fewer than {FEW_ROWS}."
        brier = f"Brier score{self.subject}"
        if self.shown:
            form = form_of([self.value, self.low, self.high])
            ends = f"{number(self.low, form)} to {number(self.high, form)}"
            return (
                f"Perfect recalibration would lower the {brier} by about "
                f"{number(self.value, form)} ({percent(self.level)}: {ends}). Probabilities are off "
                f"by about {self.root:.1f} points in root mean square "
                f"({self.root_low:.1f} to {self.root_high:.1f})."
            )
        most = max(self.high, quantile(self.level, self.n_groups) * self.se)
        points = in_points(most)
        return (
            f"No miscalibration is shown. If there is any that this sample can resolve, it is at most "
            f"{number(most)} of the {brier} ({points:.1f} points)."
        )

    def _said(self) -> Facts:
        ends = f"{percent(self.level)} interval {number(self.low)} to {number(self.high)}"
        points = f"{self.root_low:.1f} to {self.root_high:.1f} points in root mean square"
        groups = "" if self.n_groups is None else f", {by_groups(self.n_groups)}"
        shape = f"n = {self.n_samples}, m = {self.n_classes}, df {self.df:.1f}{groups}"
        rows = (
            ("miscalibration", number(self.value), f"of the Brier score{self.subject}; {ends}"),
            ("points", f"{self.root:.1f}", points),
            ("in words", "", f"{self.headline} Note: {FINER}."),
            ("data", "", shape),
        )
        return Facts(rows, self.signature)

    def to_dict(self) -> dict[str, float | int | str | None]:
        """All numbers and the headline, flat and ready for JSON; what is not finite becomes None."""
        names = ("value", "se", "low", "high", "root", "root_low", "root_high", "level", "df")
        more = ("regularization", "n_samples", "n_classes", "n_groups", "headline", "signature")
        return finite({name: getattr(self, name) for name in (*names, *more)})


def remark_of(found: Miscalibration, rejected: bool) -> str:
    """Interval and points in words, for a table; the exact test may have `rejected` calibration."""
    if found.n_samples < FEW_ROWS:
        return f"too few rows to tell: fewer than {FEW_ROWS}"
    spread = in_words(found.low, found.high, found.level, rejected)
    ends = f"{found.root_low:.1f} to {found.root_high:.1f}"
    points = f"; {found.root:.1f} points ({ends})" if found.shown else ""
    return spread + points


def in_points(theta: float) -> float:
    """The root in hundredths of the largest distance of two predictions, sqrt(2)."""
    return 100.0 * math.sqrt(max(0.0, theta) / 2.0)


def beside(problem: Problem, own_median: Bandwidth | None = None) -> Problem:
    """The problem of the smoother, for the rows of a problem of CKCE.

    The number is that of `miscalibration`: of CKCE's settings only a bandwidth that was given counts,
    if it is that of a Euclidean distance. Else the median distance of the rows does, if need be the
    one that is known.
    """
    samples = problem.samples
    key = (id(samples.probs), id(samples.labels), problem.bandwidth, problem.reduction)
    if key in problem.smoothed:
        known: Problem = problem.smoothed[key]
        return known
    method, threads = Landmarks(sum(LANDMARKS)), problem.n_threads
    settings = check_settings("miscalibration", method=method, n_threads=threads)
    assert settings.method is not None
    gamma = problem.bandwidth
    if own_median is not None and gamma.kind != "given":
        gamma = own_median
    elif not gamma.of_all_rows or problem.kernel.distance != "l2":
        gamma = median_of([samples], settings.kernel, problem.seed, problem.n_threads)
    made = replace(
        problem,
        metric="miscalibration",
        method=settings.method,
        kernel=settings.kernel,
        bandwidth=gamma,
        label_kernel=None,
        cache={},
        smoothed={},
    )
    if not problem.smoothed:  # the first is the problem's own; one that lives keeps its id
        problem.smoothed[key] = made
    return made


def miscalibration_fields(found: Miscalibration | None) -> dict[str, Any]:
    """The fields that every record of a model has of it."""
    names = {"": "value", "_low": "low", "_high": "high"}
    return {
        f"miscalibration{end}": None if found is None else getattr(found, name)
        for end, name in names.items()
    }


def miscalibration_beside(
    problem: Problem, level: float, own_median: Bandwidth | None = None
) -> Miscalibration | None:
    """Of the rows of a problem of CKCE; none where there is no one problem, or one row."""
    if isinstance(problem.reduction, ClassWise) or problem.samples.weight <= 1.0:
        return None
    return miscalibration_of(beside(problem, own_median), level, False)


def smoother_features(problem: Problem) -> _core.Features:
    """Landmarks of CKCE's kernel, and of a Gaussian kernel at a fraction of its bandwidth."""
    samples, gamma = problem.samples, problem.bandwidth.value
    assert gamma is not None
    if samples.weight <= 1.0:
        raise ValueError(
            f"y_prob must have at least 2 rows for miscalibration, got {samples.n} of weight "
            f"{samples.weight:g}: a row alone has no neighbour"
        )
    check_smoother(problem)
    pool = pool_of([samples.probs], POOL)
    kernels = (problem.kernel.core(gamma), _core.Kernel("gaussian", gamma / FINE))
    maps = []
    for kernel, count in zip(kernels, LANDMARKS, strict=True):
        points = choose_points(
            pool,
            kernel,
            count=min(count, len(pool)),
            tol=_TRACE_LEFT,
            pivoting=_core.Pivoting.random,
            seed=problem.seed,
            n_threads=problem.n_threads,
        )
        factor = np.asfortranarray(Landmarks(points).factor(kernel, problem.n_threads))
        maps.append(_core.landmark_features(points, factor, kernel=kernel))
    return _core.joined_features(maps)


def smooth(
    problem: Problem, progress: bool | None = None
) -> tuple[_core.Features, _core.Miscalibration]:
    """Features and what the core finds with them; made once for a problem."""
    if "smoother" not in problem.smoothed:
        samples, features = problem.samples, smoother_features(problem)
        with progress_bar(progress, "miscalibration") as report:
            found = _core.miscalibration(
                samples.probs,
                samples.labels,
                samples.weights,
                groups=samples.groups,
                features=features,
                n_threads=problem.n_threads,
                progress=report,
            )
        problem.smoothed["smoother"] = features, found
    features, found = problem.smoothed["smoother"]
    return features, found


def miscalibration_of(
    problem: Problem, level: float = 0.95, progress: bool | None = None
) -> Miscalibration:
    """The miscalibration of a settled problem."""
    return worded(problem, smooth(problem, progress)[1], level)


def worded(problem: Problem, found: _core.Miscalibration, level: float) -> Miscalibration:
    """The core's result with its interval."""
    samples, reduction = problem.samples, problem.reduction
    n_groups = samples.n_groups
    se = max(standard_error(found.influence, samples.weights, samples.groups), found.null_sd)
    half = quantile(level, n_groups) * se
    subject = "" if reduction is None else " of the confidence"
    if isinstance(reduction, TopK):
        subject = f" of the {reduction.k} largest probabilities"
    low, high = found.value - half, found.value + half
    signature = problem.signature.but(
        "miscalibration",
        landmarks="+".join(map(str, LANDMARKS)),
        lam="label-free",
        level=repr(level),
    )
    return Miscalibration(
        value=found.value,
        se=se,
        low=low,
        high=high,
        root=in_points(found.value),
        root_low=in_points(low),
        root_high=in_points(high),
        level=level,
        influence=found.influence,
        df=found.df,
        regularization=found.regularization,
        n_samples=samples.n,
        n_classes=problem.n_classes,
        n_groups=n_groups,
        subject=subject,
        signature=str(signature),
    )


def check_smoother(problem: Problem, beside: float = 0.0) -> None:
    """Refuse a smoother that does not fit into memory, `beside` other bytes."""
    n, m = problem.samples.n, problem.samples.m
    pool = min(n, POOL)
    d = sum(min(count, pool) for count in LANDMARKS)
    threads = min(problem.n_threads, math.ceil(n / 1024))
    blocks = threads * (136.0 + min(n, 1024)) * (8 * m + 3 * d)
    choosing = in_panels(pool) * (4.0 * m + d)
    nodes = max(n / 4.0, min(n, 65536.0)) if m == 2 else 0.0  # line_nodes.hpp
    doubles = 5.0 * n + 16.0 * nodes + max(choosing, blocks + d * (15.0 * m + 6 * d))
    what = f"the smoother with n = {n}, m = {m}"
    advice = "pass reduction=ckce.TopK(k), which needs k + 1 classes"
    check_memory(8.0 * doubles + beside, what, advice)


def refuse_without_memory(problems: Iterable[Problem]) -> None:
    """Refuse what evaluating these problems would be refused for, before anything is computed."""
    problems = list(problems)
    factors = [8.0 * problem.method.kept(problem.rows) for problem in problems]
    freed = KEPT_FREE if len(problems) > 1 else 0.0  # by the model before
    for problem, own in zip(problems, factors, strict=True):
        others = sum(factors) - own + freed
        for each in (problem, problem.of_jkce()):
            next(iter(each.parts)).check_memory(full=True, beside=others)
        if not isinstance(problem.reduction, ClassWise):
            check_smoother(problem, sum(factors) + freed)
