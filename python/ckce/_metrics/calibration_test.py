"""Is the model calibrated? An exact test by labels drawn from the predictions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import Samples, check_choice, check_count, check_level, check_memory, check_samples
from ckce._methods import Exact, Method, choose_features, stand_in
from ckce._problem import (
    Problem,
    Progress,
    ReductionLike,
    Settings,
    check_reduction,
    check_settings,
    part,
    problem_of,
    progress_bar,
)
from ckce._results import NO_SIGN, Column, Table

N_RESAMPLES = 999
MOST_RESAMPLES = 10**6
STATISTICS = ("debiased", "ckce", "jkce")
_TABLE = 2**26  # doubles that all features, or the sums of some resamples, may take: 512 MB
_SETS = 4096  # kTestSets of the core
# Columns of what the core returns.
_COLUMN = {"ckce": 0, "debiased": 1, "jkce": 2}
_COLUMNS = (
    Column("statistic", ("statistic",)),
    Column("value", ("value",), "value"),
    Column("p-value", ("p_value",), form=".4f", strong=True),
    Column("mean if calibrated", ("mean",), "value"),
    Column("deviation", ("sd",), "value"),
)


def calibration_test(
    y_true: Any,
    y_prob: Any,
    *,
    n_resamples: int = N_RESAMPLES,
    statistic: str = "debiased",
    level: float = 0.95,
    method: str | Method = "auto",
    kernel: str = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | None = None,
    reduction: ReductionLike = None,
    sample_weight: Any = None,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> CalibrationTest:
    r"""Test whether a model is calibrated.

    Given the predictions, the labels of a calibrated model are independent draws from them, unless
    rows depend on each other (below). That hypothesis is simple: B label sets are drawn, the
    statistic T of each is computed with one factorisation for all, and

    .. math:: p = \frac{1 + \#\{b : T_b \ge T\}}{B + 1}

    is exact: under calibration P(p <= a) <= a for every n, kernel, bandwidth and lambda. A small p
    says that the model is not calibrated; a large one that this sample does not show it.

    Parameters
    ----------
    n_resamples : int
        B, the number of label sets.
    statistic : {"debiased", "ckce", "jkce"}
        Whose p-value is `p_value`; all three are computed.
    level : float
        A model with a p-value below 1 - level is called miscalibrated.
    method : {"auto", "exact", "cholesky", "fourier", "landmarks"}, or an object with options
        Features in which the statistics are computed. ``auto``: ``exact``, the kernel itself, for
        more than 160 rows of two classes and a Gaussian kernel; else a Cholesky factor with random
        pivots, of rank 512 or what misses 1e-8 of the trace of K (less above n = 131,072);
        ``fourier`` for m > 100 and n > 4096, and for n > 2^18.
    reduction : "top_label" or `TopK`, optional
        Test confidence calibration only: the binary problem whether the predicted class was right.
        Or that of the k largest entries; given the predictions, ranks are drawn by the same law.
    sample_weight : array of shape (n_samples,), optional
        Whole numbers: a row of weight w stands for w rows, whose labels are drawn independently.
        Other weights are refused; they have no null hypothesis to draw from.
    random_state : int
        Seed of the draws, and of frequencies and pivots.
    y_true, y_prob, kernel, bandwidth, regularization, labels, input, normalize, n_threads,
    progress
        As in `ckce`; no callable kernels, and no ``"loo"``.

    Returns
    -------
    CalibrationTest
        ``float(t)`` is its p-value.

    Notes
    -----
    The test needs labels that are independent *given the predictions*. Where the label of one row
    tells about that of another beyond the predictions, as of frames of one video with one label or of
    questions on a passage that the model misread, it rejects calibrated models: 33 to 68 % of them at
    5 % in studies/GROUPS.md. Use the intervals of ``estimate(..., groups=...)`` there. In a sequence,
    where each label is drawn from its prediction given all before, as of next tokens, it is not exact,
    because later predictions tell about earlier labels; it rejected 3.5 % there.

    Cost: one evaluation by the features, then O(n d) for each label set, d features; memory does not
    grow with n beyond that of a Cholesky factor. Each label set has its own stream of random
    numbers, so p-values have the same bits for any number of threads.

    Examples
    --------
    >>> import ckce
    >>> y_prob = [0.1, 0.2, 0.3, 0.8, 0.9, 0.7] * 20
    >>> t = ckce.calibration_test([0, 0, 0, 1, 1, 1] * 20, y_prob)
    >>> t.p_value
    0.001
    """
    check_choice("statistic", statistic, STATISTICS)
    count, level = check_resamples("n_resamples", n_resamples), check_level(level)
    check_reduction(reduction, ("top_label",))
    settings = check_settings(
        "calibration_test",
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
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
        ranked=True,
    )
    return replace(run_test(samples, settings, count, statistic, progress), level=level)


@dataclass(frozen=True)
class CalibrationTest:
    """A test of calibration; ``float(t)`` is the p-value.

    Attributes
    ----------
    p_value : float
        The p-value of the chosen `statistic`.
    statistic : str
        ``debiased``, ``ckce`` or ``jkce``.
    ckce, debiased, jkce : float
        The statistics of the given labels, by the features of the test: CKCE, debiased CKCE and
        unbiased JKCE. They differ from `ckce.estimate` by what the features leave out of the kernel:
        nothing for two classes.
    p_ckce, p_debiased, p_jkce : float
        The p-value of each.
    n_resamples : int
        B, the number of label sets drawn; p-values are multiples of 1 / (B + 1).
    n_samples, n_classes : int
        Shape of the data.
    method : str
        Features: ``cholesky``, ``fourier`` or ``landmarks``; or ``exact``.
    rank : int or None
        Rank of the Cholesky factor.
    bandwidth, regularization : float
        Bandwidth of the kernel, and lambda.
    null : ndarray of shape (n_resamples, 3)
        CKCE, debiased CKCE and JKCE of the labels that were drawn.
    signature : str
        Names everything that changes the numbers.
    level : float
        Level of the verdict in words.
    """

    p_value: float
    statistic: str
    ckce: float
    debiased: float
    jkce: float
    p_ckce: float
    p_debiased: float
    p_jkce: float
    n_resamples: int
    n_samples: int
    n_classes: int
    method: str
    rank: int | None
    bandwidth: float | None
    regularization: float
    null: NDArray[np.float64] = field(repr=False, compare=False)
    signature: str
    level: float = 0.95

    def __float__(self) -> float:
        return self.p_value

    def _table(self) -> Table:
        rank = "" if self.rank is None else f" of rank {self.rank}"
        titles = {"debiased": "debiased CKCE", "ckce": "CKCE", "jkce": "JKCE"}
        rows = []
        for name, title in titles.items():
            drawn = self.null[:, _COLUMN[name]]
            p = getattr(self, f"p_{name}")
            row = {"statistic": title, "value": getattr(self, name), "p_value": p}
            rows.append({**row, "mean": float(drawn.mean()), "sd": float(drawn.std())})
        found = NO_SIGN if self.p_value >= 1 - self.level else "the model is miscalibrated"
        return Table(
            columns=_COLUMNS,
            rows=tuple(rows),
            heading=f"n = {self.n_samples}, m = {self.n_classes}, {self.n_resamples} resamples, "
            f"{self.method}{rank}",
            lead=f"{found}: p = {self.p_value:.2g} by {titles[self.statistic]}",
            signature=self.signature,
        )

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def to_dict(self) -> dict[str, float | int | str | None]:
        """All numbers, flat and ready for JSON; of the draws their mean and deviation."""
        means, deviations = self.null.mean(axis=0), self.null.std(axis=0)
        numbers: dict[str, float | int | str | None] = {
            "p_value": self.p_value,
            "statistic": self.statistic,
            "level": self.level,
        }
        keys = {"ckce": "ckce", "debiased": "ckce_debiased", "jkce": "jkce"}
        for name, key in keys.items():
            numbers[key] = getattr(self, name)
            numbers[f"p_{key}"] = getattr(self, f"p_{name}")
            numbers[f"null_mean_{key}"] = float(means[_COLUMN[name]])
            numbers[f"null_sd_{key}"] = float(deviations[_COLUMN[name]])
        return {
            **numbers,
            "n_resamples": self.n_resamples,
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "method": self.method,
            "rank": self.rank,
            "bandwidth": self.bandwidth,
            "regularization": self.regularization,
            "signature": self.signature,
        }


def run_test(
    samples: Samples,
    settings: Settings,
    n_resamples: int,
    statistic: str = "debiased",
    progress: bool | None = None,
    *,
    beside: Problem | None = None,
) -> CalibrationTest:
    """The test of checked samples; `beside` an estimate of the same it shares what is settled."""
    if settings.kernel.gram is not None:
        raise ValueError(
            "kernel must be one of the named kernels: the test draws in features, which a callable "
            "does not have"
        )
    samples = _repeated(samples)
    if samples.n < 2:
        raise ValueError(f"y_prob must have at least 2 rows for a test, got {samples.n}")
    chosen = settings.method is None
    if chosen:
        m = settings.columns(samples.m)
        settings = replace(settings, method=choose_features(samples.n, m, settings.kernel))
    if beside is None:
        problem = problem_of("calibration_test", samples, settings)
    else:
        problem = problem_of(
            "calibration_test",
            samples,
            settings,
            bandwidth=beside.bandwidth,
            regularization=beside.regularization,
            reduced=beside.samples if beside.samples.weights is None else None,
        )
        problem = replace(problem, cache=beside.cache)
    if chosen and isinstance(problem.method, Exact) and not problem.rows.on_a_line:
        problem = replace(problem, method=stand_in(samples.n))  # a bandwidth too small for cells
    statistics, n_features = _resample(problem, n_resamples, progress)
    observed, null = statistics[0], statistics[1:]
    p_values = (1 + (null >= observed).sum(axis=0)) / (n_resamples + 1)
    value = {name: float(observed[j]) for name, j in _COLUMN.items()}
    p_value = {name: float(p_values[j]) for name, j in _COLUMN.items()}
    signature = problem.signature.but(
        "calibration_test", statistic=statistic, draws=f"{n_resamples},s{problem.seed}"
    )
    return CalibrationTest(
        p_value=p_value[statistic],
        statistic=statistic,
        **value,
        **{f"p_{name}": p for name, p in p_value.items()},
        n_resamples=n_resamples,
        n_samples=samples.n,
        n_classes=samples.m,
        method=problem.method.word,
        rank=None if problem.method.word == "fourier" else n_features,
        bandwidth=problem.bandwidth.value,
        regularization=problem.regularization.value,
        null=null,
        signature=str(signature),
    )


def check_resamples(name: str, value: object) -> int:
    """A number of label sets to draw."""
    count = check_count(name, value)
    if count > MOST_RESAMPLES:
        raise ValueError(
            f"{name} must be at most {MOST_RESAMPLES}, got {count}: p-values are then exact to a "
            "millionth"
        )
    return count


def check_test(test: object, regularization: object, groups: object = None) -> int:
    """How many resamples ``test=`` asks for: False is none, True 999."""
    count = int(test) * N_RESAMPLES if isinstance(test, bool) else check_resamples("test", test)
    if count and groups is not None:
        raise ValueError(
            "test must be False with groups: the exact test draws the label of each row "
            "independently given the predictions, and rejects calibrated models whose labels depend "
            "on each other within a group; read the interval of the debiased value instead"
        )
    if count and isinstance(regularization, str):
        raise ValueError(
            f"test must be False with regularization={regularization!r}: the labels chose lambda, "
            "and those that are drawn would choose another"
        )
    return count


def of_test(settings: Settings) -> Settings:
    """The settings of a test beside an estimate: the kernel itself has no features to draw in."""
    method = settings.method
    if method is None or isinstance(method, Exact):
        return replace(settings, method=None)
    return replace(settings, method=method.of_jkce())


def _repeated(samples: Samples) -> Samples:
    """Rows of weight w become w rows."""
    if samples.weights is None:
        return samples
    counts = samples.weights.astype(np.int64)
    broken = counts != samples.weights
    if broken.any():
        row = int(np.argmax(broken))
        raise ValueError(
            f"sample_weight must hold whole numbers for a test, got {samples.weights[row]} "
            f"({int(broken.sum())} of {samples.n} weights are not): a label cannot be drawn a "
            "fraction of a time"
        )
    doubles = samples.weight * (samples.m + 2.0)
    check_memory(
        8.0 * doubles, f"a row for each of {samples.weight:.3g} copies", "pass smaller weights"
    )
    rows = np.repeat(np.arange(samples.n), counts)
    return replace(samples, labels=samples.labels[rows], probs=samples.probs[rows], weights=None)


def _resample(
    problem: Problem, count: int, progress: bool | None
) -> tuple[NDArray[np.float64], int | None]:
    """The statistics of the labels and of those that are drawn, and the number of features."""
    samples = problem.samples
    check_memory(
        _price(problem, count),
        f"a test by method={problem.method.word!r} with n = {samples.n}, m = {samples.m}",
        f"{problem.method.advice}, or draw fewer label sets",
    )
    with progress_bar(progress, f"calibration test {problem.method.word}") as report:
        if isinstance(problem.method, Exact):
            return _resample_two_classes(problem, count, report), None
        features = problem.features(problem.method, part(report, 0.0, 0.3))
        statistics = _core.resample_features(
            samples.probs,
            samples.labels,
            features=features,
            ridge=problem.ridge,
            n_resamples=count,
            seed=problem.seed,
            table=_TABLE,
            n_threads=problem.n_threads,
            progress=part(report, 0.3, 1.0),
        )
    return statistics, features.n_features


def _price(problem: Problem, count: int) -> float:
    """Bytes of a test: features, then rows of them and the sums of the label sets of one round."""
    rows, method = problem.rows, problem.method
    n, m = rows.shape
    sets = 96.0 * count
    if isinstance(method, Exact):
        if not rows.could_be_a_line:
            return 0.0  # refused for another reason
        kernel = rows.core_kernel
        return sets + _core.price_resamples(kernel=kernel, n=n, n_resamples=count, table=_TABLE)
    d = method.n_features(rows)
    with_t = d * m > 4 * n
    whole = with_t and 2 * (d + m) * n <= _TABLE
    width = 2 * d if with_t else d
    loaded = (n if whole else 512) * (width + 3 * m)  # a product copies q
    at_once = min(max(1, _TABLE // (width * m)), count + 1, _SETS)
    sums = width * m * (1 if whole else 1 + at_once)
    drawing = method.kept(rows) + 2 * d * d + loaded + sums
    return sets + 8.0 * max(drawing, method.price(rows, False))


def _resample_two_classes(
    problem: Problem, count: int, progress: Progress | None
) -> NDArray[np.float64]:
    if not (problem.rows.could_be_a_line and problem.kernel.has_cells(problem.samples.m)):
        raise ValueError(
            "method='exact' of the test needs two classes and a Gaussian kernel, got "
            f"{problem.samples.m} classes and {problem.kernel}; use method='auto'"
        )
    return _core.resample_two_classes(
        problem.samples.probs,
        problem.samples.labels,
        kernel=problem.rows.core_kernel,
        ridge=problem.ridge,
        n_resamples=count,
        seed=problem.seed,
        table=_TABLE,
        n_threads=problem.n_threads,
        progress=progress,
    )
