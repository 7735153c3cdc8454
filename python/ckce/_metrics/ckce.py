"""CKCE: the squared Hilbert-Schmidt distance between two conditional mean operators."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import KernelLike, warn
from ckce._methods import Cholesky, Exact, Fourier, Landmarks, Method, better_method, iterates
from ckce._problem import Problem, Progress, ReductionLike, part, progress_bar, settle

#: Share of value and debias term that an error must have for a warning.
_LARGE_ERROR = 0.1


def ckce(
    y_true: Any,
    y_prob: Any,
    *,
    method: str | Method = "auto",
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | str | None = None,
    reduction: ReductionLike = None,
    label_kernel: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
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
    method : {"auto", "exact", "fourier", "cholesky", "landmarks"}, or an object with options
        `Exact`, `Fourier`, `Cholesky` or `Landmarks`: a word stands for the object's defaults.
        ``auto`` takes the most accurate that is affordable, by a fixed rule: ``exact`` for two
        classes, for n <= 2000, for ``kernel="linear"``, for n <= m up to n = 8192, and while
        n^2 (m + 16) <= 2e10; else ``cholesky`` of rank 500 with random pivots for m <= 100 and
        n <= 2^18; else ``fourier``, or 500 ``landmarks`` for m > 4000. A factor whose certificate
        exceeds the value and the debias term together is not kept: ``exact`` takes its place, or
        ``fourier``, and a warning if its error is large.
    kernel : {"linear_gaussian", "gaussian", "linear", "laplace"} or callable
        Kernel on the simplex. The default is the paper's,
        :math:`p^\top q + \exp(-\lVert p-q \rVert^2 / (2 \gamma^2))`; ``laplace`` is
        :math:`\exp(-\lVert p-q \rVert_1 / \gamma)`. A callable ``kernel(P, Q)`` returns the Gram
        matrix of two arrays of rows (``exact`` only, O(n^2) memory).
    bandwidth : float, "median" or "default"
        gamma; by default the median heuristic, see `median_bandwidth`. ``"default"`` is
        1 - 3 / (2 m), which does not depend on the predictions: for scores of several models that
        cannot share a median, as in cross-validation.
    regularization : float or "loo", optional
        lambda; by default n^(-1/4). ``"loo"`` takes the one of 1e-4, 10^-3.5, ..., 1 with the smallest
        leave-one-out error of the regression of e_y - q on q (closed form; about ten evaluations by
        features). It ranked models worse more often than better: see docs/comparing.md.
    label_kernel : array of shape (n_classes, n_classes), optional
        Positive semi-definite kernel on the labels; by default the Kronecker kernel.
    reduction : {"top_label", "class_wise"} or `TopK`, optional
        By default all classes at once: strong calibration. ``top_label`` asks for confidence
        calibration only: the binary problem whether the predicted class (the first maximum) was
        right, with predictions [1 - c, c]. ``class_wise`` is the mean of the m one-vs-rest
        problems, under one bandwidth: the median over the pairs of all of them. ``TopK(k)`` keeps
        the k largest entries of each prediction in order, and one class for the rest.
    sample_weight : array of shape (n_samples,), optional
        Frequency weights: integers count as repetitions, zeros drop rows.
    labels : sequence, optional
        The label of each column of `y_prob`.
    random_state : int
        Seed of everything random: frequencies, random pivots, the median's subsample.
    input : {"probs", "logits", "log_probs"}
        Kind of numbers in `y_prob`, never guessed: logits go through a softmax, log-probabilities
        through the exponential function.
    normalize : bool
        Rescale rows of probabilities to sum to 1 first. Never done silently.
    n_threads : int, optional
        Threads; CKCE_NUM_THREADS, or all CPUs, by default. Never changes a bit of the result.
    progress : bool, optional
        Show a progress bar (needs tqdm); by default on a terminal or in a notebook after 2 seconds.

    Returns
    -------
    float
        CKCE, at least 0.

    Notes
    -----
    Cost: ``exact`` O(n) for two classes; for more O(n^3) up to n = 40 m + 150 (at most 2000), then O(n^2 m) per
    product with K (two to ten of them) with O(n (m + 256)) memory; ``fourier`` O(n (m + 2D)^2) with memory independent of n;
    ``cholesky`` O(n rank (m + rank)) with O(n rank) memory.

    Examples
    --------
    >>> import ckce
    >>> y_true = [0, 1, 1, 0]
    >>> y_prob = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]
    >>> round(ckce.ckce(y_true, y_prob), 6)
    0.023432
    """
    problem = settle(
        "ckce",
        y_true,
        y_prob,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
        reduction=reduction,
        label_kernel=label_kernel,
        sample_weight=sample_weight,
        labels=labels,
        random_state=random_state,
        input=input,
        normalize=normalize,
        n_threads=n_threads,
    )
    problem, solved = solve(problem, full=False, progress=progress)
    return sum(each.solution.value for each in solved) / problem.n_parts


@dataclass(frozen=True)
class Solved:
    """The solution of one part of a problem, and the number of features behind it."""

    solution: _core.Solution
    n_features: int | None


def solve(
    problem: Problem, *, full: bool, progress: bool | None = None
) -> tuple[Problem, list[Solved]]:
    """The problem that was solved, and the solution of each of its parts.

    A factor that "auto" chose must be worth its name: where its certificate exceeds the value and
    the debias term together, another method takes its place, or a warning says so. Where the error of
    random features that "auto" chose is known and large, a warning says that.
    """
    chosen = problem.auto and isinstance(problem.method, (Cholesky, Landmarks))
    solved = _solve_parts(problem, full or chosen, progress)
    trusted = not chosen or all(each.solution.bound <= _terms(each.solution) for each in solved)
    if not trusted and isinstance(problem.method, Cholesky):
        samples = problem.samples
        problem = replace(problem, method=better_method(samples.n, samples.m))
        full = full or isinstance(problem.method, Fourier)  # for its error
        solved = _solve_parts(problem, full, progress)
    elif not trusted:
        warn(
            f"method='auto' took {problem.method!r}, because {problem.samples.m} classes leave nothing "
            "better, and its bound exceeds the value; reduction=ckce.TopK(20) looks at the largest "
            "entries, and needs no approximation of all classes",
            RuntimeWarning,
        )
    if problem.auto and isinstance(problem.method, Fourier):
        _warn_of_error(problem.method, [each.solution for each in solved])
    return problem, solved


def feature_error(solution: _core.Solution) -> float | None:
    """How far random features may have moved the value; none if that is not known."""
    return jackknife(solution.value, solution.replicates)


def jackknife(value: float, replicates: NDArray[np.float64]) -> float | None:
    """Error of a value by the draw of its frequencies, from the values without each group of them."""
    n = len(replicates)
    if n == 0:
        return None
    bias = (n - 1) * (replicates.mean() - value)
    variance = (n - 1) * replicates.var()
    return float(math.sqrt(bias**2 + variance))


def _terms(solution: _core.Solution) -> float:
    """What errors are compared with."""
    return solution.value + solution.debias


def _warn_of_error(method: Fourier, solutions: list[_core.Solution]) -> None:
    for solution in solutions:
        error = feature_error(solution)
        if error is not None and error > _LARGE_ERROR * _terms(solution):
            more = replace(method, n_frequencies=4 * method.n_frequencies)
            warn(
                f"method='auto' took {method!r}, whose error is about {error:.2g} where the value is "
                f"{solution.value:.2g}; method={more!r} has about half of it, method='exact' none",
                RuntimeWarning,
            )
            return


def _solve_parts(problem: Problem, full: bool, progress: bool | None) -> list[Solved]:
    with progress_bar(progress, f"CKCE {problem.method.word}") as report:
        return [_solve(each, full, report) for each in problem.parts]


def _solve(problem: Problem, full: bool, progress: Progress | None) -> Solved:
    problem.check_memory(full)
    settings: dict[str, Any] = {
        "ridge": problem.ridge,
        "groups": problem.samples.groups,
        "full": full,
        "n_threads": problem.n_threads,
    }
    method, kernel = problem.method, problem.kernel
    if kernel.gram is not None:
        gram = kernel.gram_of(problem.samples.probs)
        solution = _core.ckce_gram(*problem.data, gram=gram, progress=progress, **settings)
        if solution.value < 0.0:
            raise ValueError(
                "kernel(P, P) must be positive semi-definite, got one for which CKCE is "
                f"{solution.value:.3g}, below 0"
            )
        return Solved(solution, None)
    if isinstance(method, Exact) and problem.rows.on_a_line:
        solution = _core.ckce_two_classes(
            *problem.data, kernel=problem.rows.core_kernel, progress=progress, **settings
        )
        return Solved(solution, None)
    if isinstance(method, Exact):
        solution = _core.ckce_exact(
            *problem.data,
            kernel=kernel.core(problem.bandwidth.value),
            tol=method.tol,
            solver=_core.Solver.iterate
            if iterates(problem.samples.n, problem.samples.m)
            else _core.Solver.factorise,
            progress=progress,
            **settings,
        )
        return Solved(solution, None)
    features = problem.features(method, part(progress, 0.0, 0.5))
    solution = _core.ckce_features(
        *problem.data,
        features=features,
        precision=getattr(_core.Precision, getattr(method, "precision", "float64")),
        progress=part(progress, 0.5, 1.0),
        **settings,
    )
    return Solved(solution, features.n_features)
