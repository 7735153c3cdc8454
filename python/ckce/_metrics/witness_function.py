"""F(q) = sum_i v_i k(q_i, q), by the kernel itself or by features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._methods import Cholesky, Exact, Fourier, Landmarks, choose_points
from ckce._problem import Problem

Values = NDArray[np.float64]


def _by_gram(problem: Problem) -> bool:
    """Whether F is a sum over the rows: the kernel itself, but for the linear one and for a line."""
    if not isinstance(problem.method, Exact) or not problem.kernel.has_bandwidth:
        return False
    few = problem.samples.n <= _core.FACTORISATION_LIMIT
    return few or not problem.rows.could_be_a_line or problem.kernel.distance != "l2"


def function_of(problem: Problem, report: Any) -> Callable[[NDArray[np.floating]], Values]:
    samples, threads = problem.samples, problem.n_threads
    data = (samples.probs, samples.labels, samples.weights)
    if _by_gram(problem):
        v = _core.witness_exact(
            *data,
            kernel=problem.rows.core_kernel,
            ridge=problem.ridge,
            solver=_core.Solver.iterate
            if samples.n > _core.FACTORISATION_LIMIT
            else _core.Solver.factorise,
            n_threads=threads,
            progress=report,
        )
        return of_points(problem.rows.core_kernel, samples.probs, v, threads)
    features = _features_of(problem)
    x = _core.witness_features(
        *data, features=features, ridge=problem.ridge, own=False, n_threads=threads, progress=report
    )
    return of_features(features, x, threads)


def of_points(
    kernel: _core.Kernel, points: NDArray[np.floating], v: Values, n_threads: int
) -> Callable[[NDArray[np.floating]], Values]:
    """F(q) = sum_i v_i k(p_i, q)."""
    factors = np.asfortranarray(v)
    return lambda q: _core.kernel_sums(q, points, factors, kernel=kernel, n_threads=n_threads)


def of_features(
    features: _core.Features, x: Values, n_threads: int
) -> Callable[[NDArray[np.floating]], Values]:
    """F(q) = phi(q) X."""
    factors, none = np.asfortranarray(x), np.zeros(0)
    return lambda q: _core.correction(
        q, features=features, coefficients=factors, fit=none, n_threads=n_threads
    )


def _features_of(problem: Problem) -> _core.Features:
    """A feature map of any rows: a Cholesky factor is that of its pivots as landmarks."""
    method, rows = problem.method, problem.rows
    if not problem.kernel.has_bandwidth and not isinstance(method, Fourier):
        return _core.linear_features(problem.samples.m)
    if method.streams:
        return problem.features(method)
    n = problem.samples.n
    how: dict[str, Any] = {"count": n, "tol": 0.0, "pivoting": _core.Pivoting.greedy, "seed": 0}
    if isinstance(method, Cholesky):
        how = {
            "count": n if method.rank is None else min(method.rank, n),
            "tol": method.tol,
            "pivoting": getattr(_core.Pivoting, method.pivoting),
            "seed": problem.seed,
        }
    points = choose_points(
        problem.samples.probs, rows.core_kernel, n_threads=problem.n_threads, **how
    )
    return problem.features(Landmarks(points))


def own_values(problem: Problem) -> Values:
    """F at the rows themselves, each by all others."""
    samples, method = problem.samples, problem.method
    if samples.groups is not None:
        raise ValueError(
            "own() needs independent rows, got groups: other rows of a group would speak for a row"
        )
    line = problem.rows.could_be_a_line
    if isinstance(method, Exact) and not line and samples.n > _core.FACTORISATION_LIMIT:
        raise ValueError(
            f"own() of method='exact' needs n <= {_core.FACTORISATION_LIMIT} with more than two "
            f"classes, got n = {samples.n}; use method='cholesky' or 'fourier'"
        )
    data = (samples.probs, samples.labels, samples.weights)
    how: dict[str, Any] = {"ridge": problem.ridge, "n_threads": problem.n_threads}
    how["progress"] = None
    if _by_gram(problem):
        return _core.own_witness_exact(*data, kernel=problem.rows.core_kernel, **how)
    return _core.witness_features(*data, features=_features_of(problem), own=True, **how)
