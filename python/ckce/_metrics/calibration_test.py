"""Is the model calibrated? An exact test by labels drawn from the predictions."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._config import resolve_threads
from ckce._input.samples import (
    Samples,
    check_bool,
    check_choice,
    check_count,
    check_positive,
    check_samples,
)
from ckce._methods.auto import CHOLESKY_CLASSES, CHOLESKY_ROWS, FEATURE_TOL, feature_rank
from ckce._metrics.ckce import (
    Problem,
    _check_options,
    _progress,
    _resolve,
    affordable_rank,
    check_memory_for,
    check_rank,
)
from ckce._problem.kernels import KERNELS
from ckce._problem.memory import check_memory

N_RESAMPLES = 999
STATISTICS = ("debiased", "ckce", "jkce")
_TABLE = 2**26  # doubles that all features, or the sums of some resamples, may take: 512 MB
# Columns of what the core returns.
_COLUMN = {"ckce": 0, "debiased": 1, "jkce": 2}


@dataclass(frozen=True)
class CalibrationTest:
    """A test of calibration; ``float(t)`` is the p-value.

    Attributes
    ----------
    p_value : float
        Of the chosen `statistic`.
    statistic : str
        ``debiased``, ``ckce`` or ``jkce``.
    ckce, debiased, jkce : float
        The statistics of the given labels, by the features of the test: CKCE, debiased CKCE and
        unbiased JKCE. They differ from `ckce.estimate` by what the features leave out of the kernel.
    p_ckce, p_debiased, p_jkce : float
        The p-value of each.
    n_resamples : int
        B, the number of label sets drawn; p-values are multiples of 1 / (B + 1).
    n_samples, n_classes : int
        Shape of the data.
    method : str
        Features: ``cholesky`` or ``fourier``.
    rank : int or None
        Rank of the Cholesky factor.
    bandwidth, regularization : float
        Of the kernel, and lambda.
    null : ndarray of shape (n_resamples, 3)
        CKCE, debiased CKCE and JKCE of the labels that were drawn.
    signature : str
        Names everything that changes the numbers.
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

    def __float__(self) -> float:
        return self.p_value

    def __str__(self) -> str:
        lines = [
            f"{'':<10}{'value':>11}  {'calibrated':>22}  {'p-value':>8}",
        ]
        for name, title in (("debiased", "debiased"), ("ckce", "CKCE"), ("jkce", "JKCE")):
            drawn = self.null[:, _COLUMN[name]]
            spread = f"{drawn.mean():.3g} +- {drawn.std():.2g}"
            mark = " *" if name == self.statistic else ""
            lines.append(
                f"{title:<10}{getattr(self, name):>11.4g}  {spread:>22}  "
                f"{getattr(self, 'p_' + name):>8.4g}{mark}"
            )
        rank = "" if self.rank is None else f" of rank {self.rank}"
        lines.append(
            f"{'data':<10}n = {self.n_samples}, m = {self.n_classes}, {self.n_resamples} resamples, "
            f"{self.method}{rank}"
        )
        lines.append(f"{'signature':<10}{self.signature}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, float | int | str | None]:
        """All numbers, flat and ready for JSON; of the draws their mean and deviation."""
        means, deviations = self.null.mean(axis=0), self.null.std(axis=0)
        numbers: dict[str, float | int | str | None] = {
            "p_value": self.p_value,
            "statistic": self.statistic,
        }
        for name in ("ckce", "debiased", "jkce"):
            numbers[name] = getattr(self, name)
            numbers[f"p_{name}"] = getattr(self, f"p_{name}")
            numbers[f"null_mean_{name}"] = float(means[_COLUMN[name]])
            numbers[f"null_sd_{name}"] = float(deviations[_COLUMN[name]])
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


def calibration_test(
    y_true: Any,
    y_prob: Any,
    *,
    n_resamples: int = N_RESAMPLES,
    statistic: str = "debiased",
    method: str = "auto",
    kernel: str = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | None = None,
    n_frequencies: int = 100,
    sampler: str = "gaussian",
    frequencies: Any = None,
    rank: int | None = None,
    tol: float | None = None,
    pivoting: str = "greedy",
    reduction: str | None = None,
    sample_weight: Any = None,
    labels: Any = None,
    random_state: int = 0,
    normalize: bool = False,
    from_logits: bool = False,
    n_threads: int | None = None,
    progress: bool = False,
) -> CalibrationTest:
    r"""Test whether a model is calibrated.

    Given the predictions, the labels of a calibrated model are independent draws from them. That
    hypothesis is simple: B label sets are drawn, the statistic T of each is computed with one
    factorisation for all, and

    .. math:: p = \frac{1 + \#\{b : T_b \ge T\}}{B + 1}

    is exact: under calibration P(p <= a) <= a for every n, kernel, bandwidth and lambda. A small p
    says that the model is not calibrated; a large one that this sample does not show it.

    Parameters
    ----------
    n_resamples : int
        B, the number of label sets.
    statistic : {"debiased", "ckce", "jkce"}
        Whose p-value is `p_value`; all three are computed.
    method : {"auto", "cholesky", "fourier"}
        Features in which the statistics are computed. ``auto``: a Cholesky factor with random
        pivots, of rank 512 or what misses 1e-8 of the trace of K (less above n = 131,072);
        ``fourier`` for m > 100 and n > 4096, and for n > 2^18.
    reduction : {"top_label"}, optional
        Test confidence calibration only: the binary problem whether the predicted class was right.
    sample_weight : array of shape (n_samples,), optional
        Whole numbers: a row of weight w stands for w rows, whose labels are drawn independently.
        Other weights are refused; they have no null hypothesis to draw from.
    random_state : int
        Seed of the draws, and of frequencies and pivots.
    y_true, y_prob, kernel, bandwidth, regularization, n_frequencies, sampler, frequencies, rank,
    tol, pivoting, labels, normalize, from_logits, n_threads, progress
        As in `ckce`; no callable kernels.

    Returns
    -------
    CalibrationTest
        ``float(t)`` is its p-value.

    Notes
    -----
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
    check_choice("method", method, ("auto", "cholesky", "fourier"))
    count = check_count("n_resamples", n_resamples)
    features = {
        "n_frequencies": n_frequencies,
        "sampler": sampler,
        "frequencies": frequencies,
        "rank": rank,
        "tol": tol,
        "pivoting": pivoting,
    }
    _check_options(method, features)
    if callable(kernel):
        raise ValueError(
            "kernel must be one of the named kernels: the test draws in features, which a callable "
            "does not have"
        )
    if regularization is not None:
        # Leave-one-out would look at the labels, and the draws would need a lambda of their own.
        check_positive("regularization", regularization)
    if reduction is not None:
        check_choice("reduction", reduction, ("top_label",))
    threads = resolve_threads(n_threads)
    samples = _repeated(
        check_samples(
            y_true,
            y_prob,
            labels=labels,
            sample_weight=sample_weight,
            normalize=check_bool("normalize", normalize),
            from_logits=check_bool("from_logits", from_logits),
            n_threads=threads,
        )
    )
    if samples.n < 2:
        raise ValueError(f"y_prob must have at least 2 rows for a test, got {samples.n}")
    if method == "auto":
        method = _choose(samples.n, samples.m if reduction is None else 2, kernel)
        if method == "cholesky":
            chosen = {"rank": feature_rank(samples.n), "tol": FEATURE_TOL, "pivoting": "random"}
            features.update(chosen)
    problem = _resolve(
        "ckce",
        samples,
        None,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
        **features,
        label_kernel=None,
        reduction=reduction,
        sample_weight=None,
        labels=None,
        random_state=random_state,
        precision="float64",
        normalize=normalize,
        from_logits=from_logits,
        n_threads=threads,
    )
    statistics, rank_used = _resample(problem, count, progress)
    observed, null = statistics[0], statistics[1:]
    p_values = (1 + (null >= observed).sum(axis=0)) / (count + 1)
    named = {name: (float(observed[j]), float(p_values[j])) for name, j in _COLUMN.items()}
    return CalibrationTest(
        p_value=named[statistic][1],
        statistic=statistic,
        ckce=named["ckce"][0],
        debiased=named["debiased"][0],
        jkce=named["jkce"][0],
        p_ckce=named["ckce"][1],
        p_debiased=named["debiased"][1],
        p_jkce=named["jkce"][1],
        n_resamples=count,
        n_samples=samples.n,
        n_classes=samples.m,
        method=problem.method,
        rank=rank_used,
        bandwidth=problem.bandwidth,
        regularization=problem.regularization,
        null=null,
        signature=_signature(problem, count, statistic),
    )


def check_test(test: object, regularization: object) -> int:
    """How many resamples ``test=`` asks for: False is none, True 999."""
    count = int(test) * N_RESAMPLES if isinstance(test, bool) else check_count("test", test)
    if count and isinstance(regularization, str):
        raise ValueError(
            f"test must be False with regularization={regularization!r}: the labels chose lambda, "
            "and those that are drawn would choose another"
        )
    return count


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


def _choose(n: int, m: int, kernel: str) -> str:
    check_choice("kernel", kernel, list(KERNELS))
    affordable = n <= CHOLESKY_ROWS and (m <= CHOLESKY_CLASSES or n <= 4096)
    if affordable or KERNELS[kernel].spectrum is None:
        return "cholesky"
    return "fourier"


def _resample(
    problem: Problem, count: int, progress: bool
) -> tuple[NDArray[np.float64], int | None]:
    samples = problem.samples
    check_memory_for(problem, full=False)
    with _progress(progress, f"calibration test {problem.method}") as report:
        tail = (problem.ridge, count, problem.seed, _TABLE, problem.n_threads, report)
        if problem.method == "fourier":
            assert problem.frequencies is not None
            statistics = _core.resample_fourier(
                samples.probs, samples.labels, problem.frequencies, problem.linear_part, *tail
            )
            return statistics, None
        assert isinstance(problem.kernel, str)
        limit = affordable_rank(problem)
        statistics, rank = _core.resample_cholesky(
            samples.probs,
            samples.labels,
            problem.kernel,
            1.0 if problem.bandwidth is None else problem.bandwidth,
            limit,
            problem.tol,
            problem.pivoting == "random",
            problem.seed,
            *tail,
        )
        check_rank(problem, limit, rank)
        return statistics, rank


def _signature(problem: Problem, count: int, statistic: str) -> str:
    words = problem.signature.split("|")
    words[0] = "calibration_test"
    words.insert(2, f"statistic:{statistic}")
    words.insert(-1, f"draws:{count},s{problem.seed}")
    return "|".join(words)
