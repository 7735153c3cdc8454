"""F(q) = sum_i v_i k(q_i, q), by the kernel itself, by cells of two classes, or by features."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import Kernel, check_memory, check_named_kernel
from ckce._methods import Cholesky, Exact, Fourier, Landmarks, Linear, Method, choose_points
from ckce._methods.exact import price_of_iteration
from ckce._methods.method import in_panels
from ckce._problem import FEW_CLASSES, Problem, progress_bar

Values = NDArray[np.float64]
_FEW_NODES = 1024  # that are all looked at
_TOGETHER = 128  # predictions whose nodes are cut out
_REACH = 7.0  # bandwidths beyond which exp(-49) counts for nothing


def _by_cells(problem: Problem) -> bool:
    """Whether F is that of moments of two classes."""
    has_cells = problem.kernel.has_cells(problem.samples.m)
    return isinstance(problem.method, Exact) and has_cells and problem.rows.on_a_line


def _by_gram(problem: Problem) -> bool:
    """Whether F is a sum over the rows: the kernel itself, but for the linear one and for cells."""
    exact = isinstance(problem.method, Exact) and problem.kernel.has_bandwidth
    return exact and not _by_cells(problem)


class OfProblem:
    """F of a problem, computed when it is first asked for."""

    def __init__(self, problem: Problem, progress: bool | None) -> None:
        self._problem, self._progress = problem, progress
        self._found: Callable[[NDArray[np.floating]], Values] | None = None

    def __call__(self, q: NDArray[np.floating]) -> Values:
        if self._found is None:
            check_function(self._problem, self._progress)
            with progress_bar(self._progress, f"witness {self._problem.method.word}") as report:
                self._found = _function_of(self._problem, report)
        return self._found(q)


def check_function(problem: Problem, progress: bool | None) -> None:
    """Refuse what `OfProblem` would be refused for, before it is asked for."""
    progress_bar(progress, "")
    (n, m), gamma = problem.rows.shape, problem.bandwidth.value
    if _by_cells(problem):
        assert gamma is not None
        cells = math.ceil(1.0 / min(gamma, 1.0))
        what = f"F of a state of up to {cells:.3g} cells"
        check_memory(cell_bytes(n, cells), what, "pass a larger bandwidth")
    elif _by_gram(problem) and problem.rows.on_a_line:  # `laplace`, whose value alone is that cheap
        what = f"F of {n} rows"
        check_memory(8.0 * price_of_iteration(n, m), what, "pass fewer rows, or method='fourier'")
    else:
        problem.check_memory(full=False)
    if problem.method.streams:
        problem.features(problem.method)


def _function_of(problem: Problem, report: Any) -> Callable[[NDArray[np.floating]], Values]:
    samples, threads = problem.samples, problem.n_threads
    data = (samples.probs, samples.labels, samples.weights)
    if _by_cells(problem):
        gamma, kernel = problem.bandwidth.value, problem.kernel
        assert gamma is not None
        cells = _core.CellAccumulator(
            bandwidth=gamma,
            linear_part=kernel.linear_part,
            label_factor=None,
            n_bins=1,
            predicted=None,
        )
        cells.update(*data, n_threads=threads)
        return of_cells(cells, kernel, gamma, problem.regularization.value, threads)
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
        make_kernel = partial(problem.kernel.core, problem.bandwidth.value)
        return OfPoints(make_kernel, samples.probs, v, threads)
    method = _method_of(problem)
    if isinstance(method, Landmarks) and not method.given:
        method = method.choose(problem.rows)
    make = partial(problem.features, method)
    x = _core.witness_features(
        *data, features=make(), ridge=problem.ridge, own=False, n_threads=threads, progress=report
    )
    return OfFeatures(make, x, threads)


def cell_bytes(n: float, cells: float) -> float:
    """Bytes that n rows may add to a state: a point each, or moments of every cell."""
    return min(200.0 * n, 1700.0 * cells)


def of_cells(
    cells: _core.CellAccumulator,
    kernel: Kernel,
    bandwidth: float,
    regularization: float | None,
    n_threads: int,
) -> OfNodes:
    """F of all rows that the cells have seen."""
    what = f"F of a state of up to {cells.n_cells:.3g} cells"
    # The factor alone: of the three bands that a solve is priced for, two are of the debias term.
    price = cells.state_price() + cells.solve_price() / 3.0
    check_memory(price, what, "pass a larger bandwidth")
    x, v = cells.witness(regularization=regularization, n_threads=n_threads).T
    return OfNodes(kernel, bandwidth, x, v, n_threads)


class OfNodes:
    """F(q) = sum_i v_i k([1 - x_i, x_i], q) [-1, 1] of two classes.

    Where nodes are many only those within a few bandwidths count: with predictions in order, some at
    a time, the cost is O(nodes + predictions).
    """

    def __init__(
        self, kernel: Kernel, bandwidth: float, x: Values, v: Values, n_threads: int
    ) -> None:
        order = np.argsort(x)
        self._x, self._v = x[order], v[order]
        self._kernel, self._bandwidth, self._n_threads = kernel, bandwidth, n_threads

    def __call__(self, q: NDArray[np.floating]) -> Values:
        if len(self._x) <= _FEW_NODES:
            return self._sums(self._kernel, q, slice(None))
        out = np.zeros((len(q), 2))
        gaussian = check_named_kernel("gaussian")
        order, far = np.argsort(q[:, 1]), _REACH * self._bandwidth
        for at in range(0, len(q), _TOGETHER):
            rows = order[at : at + _TOGETHER]
            ends = q[rows[0], 1] - far, q[rows[-1], 1] + far
            first, past = np.searchsorted(self._x, ends)
            if first < past:
                out[rows] = self._sums(gaussian, q[rows], slice(first, past))
        if self._kernel.linear_part:
            of_class_1 = float(self._x @ self._v)
            linear = q @ np.array([self._v.sum() - of_class_1, of_class_1])
            out += np.column_stack([-linear, linear])
        return out

    def _sums(self, kernel: Kernel, q: NDArray[np.floating], nodes: slice) -> Values:
        x, v = self._x[nodes], self._v[nodes]
        return _core.kernel_sums(
            q,
            np.column_stack([1.0 - x, x]),
            np.asfortranarray(np.column_stack([-v, v])),
            kernel=kernel.core(self._bandwidth),
            n_threads=self._n_threads,
        )


class OfPoints:
    """F(q) = sum_i v_i k(p_i, q); a pickle makes the kernel again."""

    def __init__(
        self,
        kernel: Callable[[], _core.Kernel],
        points: NDArray[np.floating],
        v: Values,
        n_threads: int,
    ) -> None:
        self._kernel, self._points, self._n_threads = kernel, points, n_threads
        self._factors = np.asfortranarray(v)

    def __call__(self, q: NDArray[np.floating]) -> Values:
        (n, m), k = self._points.shape, len(q)
        known = (2.0 * in_panels(n) + 640.0 * self._n_threads) * m
        _check_values(known, 2.0 * k * m, k, m)
        return _core.kernel_sums(
            q, self._points, self._factors, kernel=self._kernel(), n_threads=self._n_threads
        )


class OfFeatures:
    """F(q) = phi(q) X; a pickle makes phi again."""

    def __init__(self, make: Callable[[], _core.Features], x: Values, n_threads: int) -> None:
        self._given = make, x, n_threads
        self._features, self._factors, self._n_threads = make(), np.asfortranarray(x), n_threads

    def __reduce__(self) -> tuple[Any, ...]:
        return OfFeatures, self._given

    def __call__(self, q: NDArray[np.floating]) -> Values:
        k, m = q.shape
        block = min(k, 1024) * (2.0 * m + self._features.n_features)
        _check_values(min(self._n_threads, k / 1024 + 1) * block, 2.0 * k * m, k, m)
        return _core.correction(
            q,
            features=self._features,
            coefficients=self._factors,
            fit=np.zeros(0),
            n_threads=self._n_threads,
        )


def _check_values(fixed: float, growing: float, k: int, m: int) -> None:
    """Refuse values at k predictions that take so many doubles, but for those that grow with k."""

    def advice(available: float) -> str:
        if 8.0 * fixed + growing / k < available:
            return "pass fewer predictions at a time"
        return f"make the witness with reduction=ckce.TopK({FEW_CLASSES}), or of fewer rows"

    what = f"F at {k} predictions of {m} classes"
    check_memory(8.0 * (fixed + growing), what, advice)


def _method_of(problem: Problem) -> Method:
    """A method with features of any rows: a Cholesky factor is that of its pivots as landmarks."""
    method, rows = problem.method, problem.rows
    if not problem.kernel.has_bandwidth and not isinstance(method, Fourier):
        return Linear()
    if method.streams:
        return method
    assert isinstance(method, Cholesky)
    n = problem.samples.n
    points = choose_points(
        problem.samples.probs,
        rows.core_kernel,
        count=n if method.rank is None else min(method.rank, n),
        tol=method.tol,
        pivoting=getattr(_core.Pivoting, method.pivoting),
        seed=problem.seed,
        n_threads=problem.n_threads,
    )
    return Landmarks(points)


def own_price(problem: Problem) -> float:
    """Bytes that `own_values` takes, at most."""
    (n, m), threads = problem.rows.shape, problem.n_threads
    if _by_cells(problem):
        kernel = problem.rows.core_kernel
        return _core.price_two_classes(kernel=kernel, n=n, full=True) + 32.0 * n
    if not _by_gram(problem):
        return problem.price(False) + 8.0 * n * m
    points = n**2 + 2.0 * in_panels(n) * m
    return 8.0 * max(points, n**2 + 64.0 * n * threads + 3.0 * n * m)


def own_values(problem: Problem) -> Values:
    """F at the rows themselves, each by all others."""
    samples = problem.samples
    if samples.groups is not None:
        raise ValueError(
            "own() needs independent rows, got groups: other rows of a group would speak for a row"
        )
    line = problem.rows.could_be_a_line
    if _by_gram(problem) and not line and samples.n > _core.FACTORISATION_LIMIT:
        raise ValueError(
            f"own() of method='exact' needs n <= {_core.FACTORISATION_LIMIT} with more than two "
            f"classes, got n = {samples.n}; use method='cholesky' or 'fourier'"
        )
    data = (samples.probs, samples.labels, samples.weights)
    how: dict[str, Any] = {"ridge": problem.ridge, "n_threads": problem.n_threads}
    how["progress"] = None
    check_memory(own_price(problem), f"own() of {samples.n} rows", "use method='fourier'")
    if _by_cells(problem):
        return _core.own_witness_two_classes(*data, kernel=problem.rows.core_kernel, **how)
    if _by_gram(problem):
        return _core.own_witness_exact(*data, kernel=problem.rows.core_kernel, **how)
    features = problem.features(_method_of(problem))
    return _core.witness_features(*data, features=features, own=True, **how)
