"""CKCE: resolve what the user asked for, call the core, say what was done."""

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._config import resolve_threads
from ckce._input.samples import (
    Samples,
    check_bandwidth,
    check_bool,
    check_choice,
    check_count,
    check_matrix,
    check_positive,
    check_samples,
    check_seed,
    class_names,
    digest,
)
from ckce._methods.auto import AUTO_RANK, METHODS, affords_exact, choose_method
from ckce._methods.fourier import SAMPLERS, fourier_frequencies
from ckce._metrics.estimate import Estimate
from ckce._problem.bandwidth import class_wise_median, pooled_median
from ckce._problem.kernels import KERNELS
from ckce._problem.loo import choose_lambda, loo_errors
from ckce._problem.memory import SMALL, available_memory, check_memory
from ckce._problem.reduction import one_vs_rest, top_label

KernelLike = str | Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]

_DEFAULT_TOL = 1e-10
_CALLABLE_LIMIT = 20_000
# What each method understands besides kernel, bandwidth, regularization and the data.
_OPTIONS: dict[str, dict[str, Any]] = {
    "auto": {},
    "exact": {"tol": None},
    "fourier": {
        "n_frequencies": 100,
        "sampler": "gaussian",
        "frequencies": None,
        "precision": "float64",
    },
    "cholesky": {"rank": None, "tol": None, "pivoting": "greedy"},
    "block": {"block_size": None},
}
REDUCTIONS = ("top_label", "class_wise")
_DEFAULTS = {name: default for options in _OPTIONS.values() for name, default in options.items()}


@dataclass(frozen=True)
class Problem:
    """A fully resolved estimation problem; everything that changes the number is in `signature`.

    With ``reduction="class_wise"`` it stands for the m one-vs-rest problems in `parts`.
    """

    samples: Samples
    n_classes: int
    reduction: str | None
    method: str
    kernel: KernelLike
    bandwidth: float | None
    bandwidth_source: str
    regularization: float
    frequencies: NDArray[np.float64] | None
    rank: int | None
    tol: float
    pivoting: str
    label_factor: NDArray[np.float64] | None
    seed: int
    precision: str
    n_threads: int
    signature: str

    @property
    def parts(self) -> Iterator["Problem"]:
        """The problems over whose values the mean is taken."""
        if self.reduction != "class_wise":
            yield self
            return
        for column in range(self.n_classes):
            yield replace(self, samples=one_vs_rest(self.samples, column), reduction=None)

    @property
    def n_parts(self) -> int:
        return self.n_classes if self.reduction == "class_wise" else 1

    @property
    def ridge(self) -> float:
        return self.regularization * self.samples.weight

    @property
    def data(self) -> tuple[Any, Any, Any, Any]:
        """Leading arguments of every function of the core."""
        samples = self.samples
        return samples.probs, samples.labels, samples.weights, self.label_factor

    @property
    def linear_part(self) -> bool:
        return not callable(self.kernel) and KERNELS[self.kernel].linear_part


def _check_options(method: str, options: dict[str, Any]) -> None:
    """Refuse options that the method would have to ignore."""
    check_choice("sampler", options["sampler"], SAMPLERS)
    check_choice("pivoting", options["pivoting"], ("greedy", "random"))
    for name, value in options.items():
        if name in _OPTIONS[method] or value is None or value is _DEFAULTS[name]:
            continue
        if isinstance(value, (int, str)) and value == _DEFAULTS[name]:
            continue
        takers = [taker for taker, known in _OPTIONS.items() if name in known]
        raise ValueError(
            f"{name} belongs to method={' or '.join(map(repr, takers))}, got method={method!r}"
            + ("; name the method to set it" if method == "auto" else "")
        )


def _check_kernel(kernel: object, method: str) -> KernelLike:
    if callable(kernel):
        if method not in ("auto", "exact"):
            raise ValueError(f"a callable kernel needs method='exact', got method={method!r}")
        return kernel
    name = check_choice("kernel", kernel, list(KERNELS))
    if method == "fourier" and KERNELS[name].spectrum is None:
        raise ValueError(
            f"kernel={name!r} has no Fourier features; use method='exact', which costs O(n m^2) here"
        )
    return name


def _check_regularization(value: object, weight: float) -> tuple[float, str]:
    if value is None:
        return weight**-0.25, "n^-0.25"
    if isinstance(value, str) and value == "loo":
        return math.nan, "loo"  # chosen when the rest is settled
    singular = ": K + lambda n I would be singular in float64"
    lam = check_positive("regularization", value, 1e-12, why=singular)
    check_positive("regularization", value, high=1e12)  # the value is of order lambda^-2
    if lam < 1e-8:
        warnings.warn(
            f"regularization={lam!r} leaves a condition number of up to {2 / lam:.1e}; digits are "
            "lost, see the bound of ckce.estimate",
            RuntimeWarning,
            stacklevel=4,
        )
    return lam, repr(lam)


def _label_factor(label_kernel: Any, m: int) -> NDArray[np.float64] | None:
    """F with L = F F', or None for the Kronecker kernel."""
    if label_kernel is None:
        return None
    matrix = check_matrix("label_kernel", label_kernel, (m, m))
    largest = np.abs(matrix).max()
    if not (largest == 0.0 or 1e-100 <= largest <= 1e100):
        raise ValueError(
            f"label_kernel must have its largest entry from 1e-100 to 1e100, got {largest:.3g}"
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=1e-14 * np.abs(matrix).max()):
        raise ValueError("label_kernel must be symmetric, got a matrix that is not")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values[0] < -1e-10 * max(values[-1], 0.0) or values[-1] <= 0.0:
        raise ValueError(
            "label_kernel must be positive semi-definite and not zero, got eigenvalues from "
            f"{values[0]:.3g} to {values[-1]:.3g}"
        )
    kept = values > 1e-15 * values[-1]
    return np.asfortranarray(vectors[:, kept] * np.sqrt(values[kept]))


def _bandwidth(
    value: Any,
    kernel: KernelLike,
    samples: Samples,
    class_wise: bool,
    seed: int,
    n_threads: int,
) -> tuple[float | None, str]:
    if callable(kernel) or kernel == "linear":
        if not (isinstance(value, str) and value == "median"):
            name = "a callable kernel" if callable(kernel) else "kernel='linear'"
            raise ValueError(f"{name} takes no bandwidth, got bandwidth={value!r}")
        return None, "none"
    if isinstance(value, str):
        check_choice("bandwidth", value, ["median"])
        if class_wise:
            return class_wise_median(samples, kernel, seed, n_threads)
        return pooled_median([samples], kernel, seed, n_threads)
    return check_bandwidth(value), "given"


def _check_frequencies_for_float32(frequencies: NDArray[np.float64]) -> None:
    largest = float(np.abs(frequencies).max())
    if largest > 1000.0:
        raise ValueError(
            f"precision='mixed' needs frequencies of at most 1000, got {largest:.3g}: their products "
            "with y_prob have too few digits in float32; use precision='float64' or a larger bandwidth"
        )


def _refuse_beside_frequencies(bandwidth: Any, n_frequencies: int, sampler: str) -> None:
    given = {"bandwidth": bandwidth, "n_frequencies": n_frequencies, "sampler": sampler}
    defaults = {"bandwidth": "median", "n_frequencies": 100, "sampler": "gaussian"}
    for name, value in given.items():
        if not (isinstance(value, type(defaults[name])) and value == defaults[name]):
            raise ValueError(
                f"frequencies are used as given, so {name} would be ignored, got {name}={value!r}"
            )


def _resolve(
    metric: str,
    y_true: Any,
    y_prob: Any,
    *,
    method: str,
    kernel: Any,
    bandwidth: Any,
    regularization: Any,
    n_frequencies: int,
    sampler: str,
    frequencies: Any,
    rank: Any,
    tol: Any,
    pivoting: str,
    label_kernel: Any,
    reduction: str | None,
    sample_weight: Any,
    labels: Any,
    random_state: int,
    precision: str,
    normalize: bool,
    from_logits: bool,
    n_threads: int | None,
    block_size: Any = None,
) -> Problem:
    """Check every argument once and settle what will be computed."""
    check_choice("method", method, (*METHODS, "block") if metric == "jkce" else METHODS)
    check_choice("precision", precision, ("float64", "mixed"))
    kernel = _check_kernel(kernel, method)
    _check_options(
        method,
        {
            "n_frequencies": n_frequencies,
            "sampler": sampler,
            "frequencies": frequencies,
            "rank": rank,
            "tol": tol,
            "pivoting": pivoting,
            "precision": precision,
            "block_size": block_size,
        },
    )
    if metric == "jkce" and method == "exact" and tol is not None:
        raise ValueError(
            f"tol belongs to method='cholesky', got method='exact' and tol={tol!r}: exact JKCE is a sum"
        )
    if reduction is not None:
        check_choice("reduction", reduction, REDUCTIONS)
        if label_kernel is not None:
            raise ValueError(
                f"label_kernel must be None with reduction={reduction!r}: the labels become binary"
            )
    seed = check_seed(random_state)
    threads = resolve_threads(n_threads)
    samples = check_samples(
        y_true,
        y_prob,
        labels=labels,
        sample_weight=sample_weight,
        normalize=check_bool("normalize", normalize),
        from_logits=check_bool("from_logits", from_logits),
        n_threads=threads,
    )
    n, n_classes = samples.n, samples.m
    m = n_classes if reduction is None else 2
    if reduction == "top_label":
        samples = top_label(samples)
    lam, lam_text = _check_regularization(regularization, samples.weight)
    if frequencies is None:
        class_wise = reduction == "class_wise"
        gamma, source = _bandwidth(bandwidth, kernel, samples, class_wise, seed, threads)
    else:
        gamma, source = None, "frequencies"
    factor = _label_factor(label_kernel, m)

    named = "callable" if callable(kernel) else kernel
    if callable(kernel) and n > _CALLABLE_LIMIT:
        raise ValueError(
            f"a callable kernel needs the whole Gram matrix, and n must be at most "
            f"{_CALLABLE_LIMIT}, got {n}; use a named kernel"
        )
    if method == "auto":
        method = "exact" if callable(kernel) else choose_method(n, m, kernel)
        if method == "cholesky":
            rank = AUTO_RANK
            # Random pivots come in blocks, which is 6 times faster; for m = 2 the rank is small.
            pivoting = "greedy" if m == 2 else "random"

    words = [metric, "v0.1", f"method:{method}"]
    if reduction is not None:
        words.insert(2, f"reduction:{reduction}")
    frequency_matrix = None
    if method == "fourier":
        if frequencies is None:
            frequency_matrix = np.asfortranarray(
                fourier_frequencies(
                    m,
                    n_frequencies,
                    bandwidth=gamma if gamma is not None else 1.0,
                    kernel=kernel,
                    sampler=sampler,
                    random_state=seed,
                )
            )
            words += [f"sampler:{sampler}"]
        else:
            _refuse_beside_frequencies(bandwidth, n_frequencies, sampler)
            frequency_matrix = check_matrix("frequencies", frequencies, (None, m))
            words += [f"frequencies:{digest(frequency_matrix)}"]
    if precision == "mixed" and frequency_matrix is not None:
        _check_frequencies_for_float32(frequency_matrix)
    words.append(
        f"k:{named}" + (f"({getattr(kernel, '__name__', 'k')})" if callable(kernel) else "")
    )
    if gamma is not None:
        words.append(f"gamma:{gamma!r}" + ("" if source == "given" else f"({source})"))
    if frequency_matrix is not None:
        words.append(f"D:{frequency_matrix.shape[0]}")
    if method == "cholesky":
        rank = None if rank is None else check_count("rank", rank)
        words += [f"rank:{'any' if rank is None else rank}", f"pivoting:{pivoting}"]
    tolerance = _DEFAULT_TOL if tol is None else check_positive("tol", tol, high=0.5)
    if method == "cholesky" or (
        method == "exact" and n > _core.FACTORISATION_LIMIT and metric == "ckce"
    ):
        words.append(f"tol:{tolerance!r}")
    if (method == "fourier" and frequencies is None) or pivoting == "random":
        words.append(f"s:{seed}")
    if metric == "ckce":
        words.append(f"lam:{lam_text}")
    if method == "block":
        words.append(f"block:{block_size}")
    words += [f"n:{n}", f"m:{n_classes}"]
    if samples.weights is not None:
        words.append(f"w:{samples.weight!r}({digest(samples.weights)})")
    if factor is not None:
        words.append(f"l:{digest(check_matrix('label_kernel', label_kernel, (m, m)))}")
    if normalize or from_logits:
        words.append("in:normalized" if normalize else "in:logits")
    words.append(f"p:{precision}")
    problem = Problem(
        samples=samples,
        n_classes=n_classes,
        reduction=reduction,
        method=method,
        kernel=kernel,
        bandwidth=gamma,
        bandwidth_source=source,
        regularization=lam,
        frequencies=frequency_matrix,
        rank=rank,
        tol=tolerance,
        pivoting=pivoting,
        label_factor=factor,
        seed=seed,
        precision=precision,
        n_threads=threads,
        signature="|".join(words),
    )
    if lam_text != "loo":
        return problem
    lam = choose_lambda(list(_loo_errors(problem)))
    signature = problem.signature.replace("|lam:loo|", f"|lam:loo({lam!r})|")
    return replace(problem, regularization=lam, signature=signature)


def _loo_errors(problem: Problem) -> Iterator[NDArray[np.float64]]:
    """Leave-one-out errors of the parts of a problem."""
    if callable(problem.kernel):
        raise ValueError("regularization='loo' needs one of the named kernels, got a callable")
    for part in problem.parts:
        yield loo_errors(
            part.samples,
            problem.kernel,
            1.0 if problem.bandwidth is None else problem.bandwidth,
            problem.frequencies,
            problem.linear_part,
            problem.label_factor,
            problem.seed,
            problem.n_threads,
        )


def shared_lambda(models: Sequence[Samples], options: dict[str, Any]) -> float:
    """The lambda that leave-one-out chooses for several models together."""
    errors: list[NDArray[np.float64]] = []
    for samples in models:
        settled = {**options, "regularization": 1.0, "label_kernel": None, "labels": None}
        problem = _resolve("ckce", samples, None, sample_weight=None, **settled)
        errors += _loo_errors(problem)
    return choose_lambda(errors)


def _callable_gram(problem: Problem) -> NDArray[np.float64]:
    assert callable(problem.kernel)
    points = problem.samples.probs.astype(np.float64)
    n = problem.samples.n
    gram = check_matrix("kernel(P, P)", problem.kernel(points, points), (n, n))
    if not np.allclose(gram, gram.T, rtol=1e-10, atol=1e-12 * np.abs(gram).max()):
        raise ValueError("kernel(P, P) must be symmetric, got a matrix that is not")
    if np.diag(gram).min() < 0.0:
        raise ValueError(
            "kernel(P, P) must be positive semi-definite, got a diagonal with "
            f"{np.diag(gram).min():.3g} in row {int(np.argmin(np.diag(gram)))}"
        )
    return gram


@contextlib.contextmanager
def _progress(wanted: bool, text: str) -> Iterator[Callable[[float], None] | None]:
    """A progress bar (tqdm), if wanted."""
    if not check_bool("progress", wanted):
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ImportError("progress=True needs tqdm: pip install tqdm") from None
    with tqdm(total=100, desc=text, unit="%", bar_format="{l_bar}{bar}| {elapsed}") as bar:

        def report(fraction: float) -> None:
            bar.update(max(0.0, 100.0 * fraction - bar.n))

        yield report
        bar.update(100.0 - bar.n)


def check_memory_for(problem: Problem, full: bool) -> None:
    """Refuse a problem whose matrices do not fit into memory."""
    n, m, threads = problem.samples.n, problem.samples.m, problem.n_threads
    what, advice = f"method={problem.method!r}", "use method='fourier', whose memory is flat in n"
    if callable(problem.kernel):
        doubles, advice = 4.0 * n**2, "use a named kernel, which needs no Gram matrix"
    elif problem.frequencies is not None:
        d = m + 2.0 * len(problem.frequencies)
        doubles = (2 + threads) * min(n, d) * d + threads * 1200 * (d + m)
        advice = "pass a smaller n_frequencies, or fewer n_threads"
    elif problem.method == "cholesky" and problem.rank is not None:
        rank = float(min(problem.rank, n))
        doubles = n * (rank + m) + (2 + threads) * rank**2 + threads * 1200 * (rank + m)
        what, advice = f"{what} of rank {problem.rank}", "pass a smaller rank"
    elif problem.method == "exact" and n <= _core.FACTORISATION_LIMIT:
        doubles = 3.0 * n**2
    else:  # panels of Q, R and the iteration, and a factor of low rank
        doubles = n * (12.0 * m + (768 if full else 256))
    check_memory(8.0 * doubles, f"{what} with n = {n}, m = {m}", advice)


def affordable_rank(problem: Problem) -> int:
    """Columns that a factor may have: the rank asked for, or what half of the memory can hold."""
    n = problem.samples.n
    if problem.rank is not None:
        return min(problem.rank, n)
    if 8.0 * n * n <= SMALL:
        return n
    return int(min(n, max(64.0, available_memory() / (16.0 * n))))


def check_rank(problem: Problem, limit: int, reached: int) -> None:
    """Refuse a factor that stopped for want of memory, not at its tolerance."""
    n = problem.samples.n
    if problem.rank is None and reached >= limit and limit < n:
        raise MemoryError(
            f"method='cholesky' did not reach tol={problem.tol!r} with the {limit} columns that fit "
            f"into memory at n = {n}; pass rank= or a larger tol, or use method='exact'"
        )


def _solve(problem: Problem, full: bool, progress: bool) -> _core.Solution:
    check_memory_for(problem, full)
    solution = _solved(problem, full, progress)
    if callable(problem.kernel) and solution.value < 0.0:
        raise ValueError(
            "kernel(P, P) must be positive semi-definite, got one for which CKCE is "
            f"{solution.value:.3g}, below 0"
        )
    return solution


def _solved(problem: Problem, full: bool, progress: bool) -> _core.Solution:
    with _progress(progress, f"CKCE {problem.method}") as report:
        tail = (problem.ridge, full, problem.n_threads, report)
        if callable(problem.kernel):
            return _core.ckce_gram(_callable_gram(problem), *problem.data, *tail)
        gamma = 1.0 if problem.bandwidth is None else problem.bandwidth
        if problem.method == "exact":
            iterate = problem.samples.n > _core.FACTORISATION_LIMIT
            return _core.ckce_exact(
                *problem.data,
                problem.kernel,
                gamma,
                problem.ridge,
                problem.tol,
                full,
                iterate,
                problem.n_threads,
                report,
            )
        if problem.method == "fourier":
            assert problem.frequencies is not None
            return _core.ckce_fourier(
                *problem.data,
                problem.frequencies,
                problem.linear_part,
                problem.precision == "mixed",
                *tail,
            )
        limit = affordable_rank(problem)
        solution = _core.ckce_cholesky(
            *problem.data,
            problem.kernel,
            gamma,
            limit,
            problem.tol,
            problem.pivoting == "random",
            problem.seed,
            *tail,
        )
        check_rank(problem, limit, solution.rank)
        return solution


def _solutions(
    y_true: Any, y_prob: Any, full: bool, progress: bool, **options: Any
) -> tuple[Problem, list[_core.Solution]]:
    """The problem that was asked for, and the solution of each of its parts.

    A factor that "auto" chose must be worth its name: where its certificate exceeds the value and
    the debias term together, the exact kernel takes its place, or a warning says so.
    """
    problem = _resolve("ckce", y_true, y_prob, **options)
    chosen = options["method"] == "auto" and problem.method == "cholesky"
    solutions = [_solve(part, full or chosen, progress) for part in problem.parts]
    if not chosen or all(each.bound <= each.value + each.debias for each in solutions):
        return problem, solutions
    if affords_exact(problem.samples.n, problem.samples.m):
        return _solutions(y_true, y_prob, full, progress, **{**options, "method": "exact"})
    worst = max(each.bound for each in solutions)
    warnings.warn(
        f"method='auto' took method='cholesky' with rank={AUTO_RANK}, whose error may reach "
        f"{worst:.2g} where the largest value is {max(s.value for s in solutions):.2g}: the "
        "predictions span many bandwidths; pass a larger bandwidth, method='exact', or a larger rank",
        RuntimeWarning,
        stacklevel=3,
    )
    return problem, solutions


def ckce(
    y_true: Any,
    y_prob: Any,
    *,
    method: str = "auto",
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | str | None = None,
    n_frequencies: int = 100,
    sampler: str = "gaussian",
    frequencies: Any = None,
    rank: int | None = None,
    tol: float | None = None,
    pivoting: str = "greedy",
    label_kernel: Any = None,
    reduction: str | None = None,
    sample_weight: Any = None,
    labels: Any = None,
    random_state: int = 0,
    precision: str = "float64",
    normalize: bool = False,
    from_logits: bool = False,
    n_threads: int | None = None,
    progress: bool = False,
) -> float:
    r"""Conditional kernel calibration error.

    .. math::
        \widehat{\mathrm{CKCE}}_{k,\ell}
        = \lVert \widehat{C}_{Y|Q} - \widehat{C}_{Z|Q} \rVert_{HS}^2
        = \operatorname{Tr}(L V^\top K V), \quad V = (K + \lambda n I)^{-1} R, \quad
        r_i = e_{y_i} - q_i

    0 is strong calibration. The value is already squared, never negative, and biased upwards: a
    calibrated model scores its *floor*, not 0. `estimate` gives the floor, the debiased value and
    a confidence interval.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        Labels: integers 0..m-1 that index the columns of `y_prob`, or strings or other values
        together with `labels`.
    y_prob : array of shape (n_samples, n_classes), or (n_samples,) for the positive class
        Predicted probabilities. Any layout and float dtype; not copied as a whole. Rows and columns
        go by position; pandas names that say otherwise are refused.
    method : {"auto", "exact", "fourier", "cholesky"}
        ``exact``: the kernel itself, by factorisation up to n = 2000, by conjugate gradients
        above. ``fourier``: random Fourier features. ``cholesky``: incomplete Cholesky
        factorisation. ``auto`` takes the most accurate that is affordable, by a fixed rule:
        ``exact`` for n <= 2000 or ``kernel="linear"``; else ``cholesky`` for two classes and a
        Gaussian kernel; else ``exact`` while n^2 (m + 16) <= 2e10; else ``cholesky`` of rank 500
        with random pivots for m <= 100 and n <= 2^18; else ``fourier``.
    kernel : {"linear_gaussian", "gaussian", "linear", "laplace"} or callable
        Kernel on the simplex. The default is the paper's,
        :math:`p^\top q + \exp(-\lVert p-q \rVert^2 / (2 \gamma^2))`; ``laplace`` is
        :math:`\exp(-\lVert p-q \rVert_1 / \gamma)`. A callable ``kernel(P, Q)`` returns the Gram
        matrix of two arrays of rows (``exact`` only, O(n^2) memory).
    bandwidth : float or "median"
        gamma; by default the median heuristic, see `median_bandwidth`.
    regularization : float or "loo", optional
        lambda; by default n^(-1/4). ``"loo"`` takes the one of 1e-4, 10^-3.5, ..., 1 with the smallest
        leave-one-out error of the regression of e_y - q on q (closed form; about ten evaluations by
        features). It ranked models worse more often than better: see docs/comparing.md.
    n_frequencies, sampler, frequencies
        ``fourier`` only: D and how frequencies are drawn, or a (D, m) array that is used as given
        (already divided by the bandwidth). See `fourier_frequencies`.
    rank, tol, pivoting
        ``cholesky``: stop at this rank, or when the trace of what is missing is at most `tol`
        (1e-10) of the trace of K; ``pivoting`` is "greedy" or "random". ``exact``: `tol` bounds
        the relative error of the iteration (1e-10).
    label_kernel : array of shape (n_classes, n_classes), optional
        Positive semi-definite kernel on the labels; by default the Kronecker kernel.
    reduction : {"top_label", "class_wise"}, optional
        By default all classes at once: strong calibration. ``top_label`` asks for confidence
        calibration only: the binary problem whether the predicted class (the first maximum) was
        right, with predictions [1 - c, c]. ``class_wise`` is the mean of the m one-vs-rest
        problems, under one bandwidth: the median over the pairs of all of them.
    sample_weight : array of shape (n_samples,), optional
        Frequency weights: integers count as repetitions, zeros drop rows.
    labels : sequence, optional
        The label of each column of `y_prob`.
    random_state : int
        Seed of everything random: frequencies, random pivots, the median's subsample.
    precision : {"float64", "mixed"}
        ``fourier`` only. ``mixed`` multiplies blocks of rows in float32 and adds them up in float64;
        the relative error was below 1e-5 wherever it was measured. Input of any dtype is otherwise
        computed in float64.
    normalize, from_logits : bool
        Rescale the rows to sum to 1, or apply a softmax, first. Never done silently.
    n_threads : int, optional
        Threads; CKCE_NUM_THREADS, or all CPUs, by default. Never changes a bit of the result.
    progress : bool
        Show a progress bar (needs tqdm).

    Returns
    -------
    float
        CKCE, at least 0.

    Notes
    -----
    Cost: ``exact`` O(n^3) up to n = 2000, then O(n^2 m) per product with K (two to ten of
    them) with O(n (m + 256)) memory; ``fourier`` O(n (m + 2D)^2) with memory independent of n;
    ``cholesky`` O(n rank (m + rank)) with O(n rank) memory.

    Examples
    --------
    >>> import ckce
    >>> y_true = [0, 1, 1, 0]
    >>> y_prob = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]
    >>> round(ckce.ckce(y_true, y_prob), 6)
    0.023432
    """
    problem, solutions = _solutions(
        y_true,
        y_prob,
        False,
        progress,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
        n_frequencies=n_frequencies,
        sampler=sampler,
        frequencies=frequencies,
        rank=rank,
        tol=tol,
        pivoting=pivoting,
        label_kernel=label_kernel,
        reduction=reduction,
        sample_weight=sample_weight,
        labels=labels,
        random_state=random_state,
        precision=precision,
        normalize=normalize,
        from_logits=from_logits,
        n_threads=n_threads,
    )
    return sum(solution.value for solution in solutions) / problem.n_parts


def estimate(
    y_true: Any,
    y_prob: Any,
    *,
    method: str = "auto",
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | str | None = None,
    n_frequencies: int = 100,
    sampler: str = "gaussian",
    frequencies: Any = None,
    rank: int | None = None,
    tol: float | None = None,
    pivoting: str = "greedy",
    label_kernel: Any = None,
    reduction: str | None = None,
    sample_weight: Any = None,
    labels: Any = None,
    random_state: int = 0,
    precision: str = "float64",
    normalize: bool = False,
    from_logits: bool = False,
    n_threads: int | None = None,
    progress: bool = False,
) -> Estimate:
    r"""CKCE with its floor, debiased value, standard error, error bound and signature.

    With :math:`W = (K + \lambda n I)^{-1}` and :math:`A = W K W`,

    .. math::
        \text{floor} = \sum_i A_{ii} (1 - \lVert q_i \rVert^2), \qquad
        \text{debiased} = \mathrm{CKCE} - \sum_i A_{ii} \lVert r_i \rVert^2 .

    Given the predictions, the floor is the mean of CKCE for a perfectly calibrated model, and the
    debiased value has mean 0 then; it may be negative and is never clipped. `value` is bit for bit
    that of `ckce`.

    Parameters
    ----------
    y_true, y_prob, method, kernel, bandwidth, regularization, n_frequencies, sampler, frequencies,
    rank, tol, pivoting, label_kernel, reduction, sample_weight, labels, random_state, precision,
    normalize, from_logits, n_threads, progress
        As in `ckce`.

    Returns
    -------
    Estimate
        With ``reduction="class_wise"`` all its numbers are means over the classes, and `per_class`
        holds what each adds to the mean.

    Notes
    -----
    Costs a second pass over the rows (``fourier``, ``cholesky``), O(n^3) (``exact`` up to
    n = 2000), or a Cholesky factor of K that misses at most 1e-4 of the debias term (``exact``
    above).

    Examples
    --------
    >>> import ckce
    >>> e = ckce.estimate([0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    >>> print(f"{e.value:.4f} with floor {e.floor:.4f}, debiased {e.debiased:.4f}")
    0.0234 with floor 0.0607, debiased -0.0124
    >>> e.signature
    'ckce|v0.1|method:exact|k:linear_gaussian|gamma:0.4949747468305833(median)|lam:n^-0.25|n:4|m:2|p:float64'
    """
    problem, solutions = _solutions(
        y_true,
        y_prob,
        True,
        progress,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
        n_frequencies=n_frequencies,
        sampler=sampler,
        frequencies=frequencies,
        rank=rank,
        tol=tol,
        pivoting=pivoting,
        label_kernel=label_kernel,
        reduction=reduction,
        sample_weight=sample_weight,
        labels=labels,
        random_state=random_state,
        precision=precision,
        normalize=normalize,
        from_logits=from_logits,
        n_threads=n_threads,
    )
    samples, parts = problem.samples, problem.n_parts
    values, sums, highest = [], np.zeros(4), np.zeros(3, np.int64)
    influence: NDArray[np.float64] = np.zeros(samples.n)
    for solution in solutions:
        values.append(solution.value)
        sums += (solution.debias, solution.floor, solution.bound, solution.debias_error)
        highest = np.maximum(highest, (solution.iterations, solution.rank, solution.debias_rank))
        influence += solution.influence / parts
    value = sum(values) / parts
    debias, floor, bound, debias_error = (float(number) for number in sums / parts)
    iterations, rank_used, debias_rank = (int(number) for number in highest)
    weights, total = samples.weights, samples.weight
    squares = influence**2 if weights is None else weights * influence**2
    se = math.sqrt(squares.sum() / (total - 1.0) / total) if total > 1.0 else math.nan
    per_class: NDArray[np.float64] | None = None
    if problem.reduction == "class_wise":
        per_class = np.array(values) / parts
    elif problem.reduction is None and problem.label_factor is None:
        per_class = solution.per_class
    mean_residual = None
    if problem.reduction != "top_label":
        scores = _core.scores(samples.probs, samples.labels, weights, problem.n_threads)
        mean_residual = scores.residual / total
    return Estimate(
        value=value,
        debiased=value - debias,
        floor=floor,
        se=se,
        bound=None if problem.method == "fourier" else bound,
        method=problem.method,
        bandwidth=problem.bandwidth,
        bandwidth_source=problem.bandwidth_source,
        regularization=problem.regularization,
        n_samples=samples.n,
        n_classes=problem.n_classes,
        iterations=iterations or None,
        rank=rank_used if problem.method == "cholesky" else None,
        debias_rank=debias_rank or None,
        debias_error=debias_error if debias_rank else None,
        per_class=per_class,
        influence=influence,
        signature=problem.signature,
        mean_residual=mean_residual,
        classes=class_names(y_true, labels, problem.n_classes),
    )
