"""What holds the sums of a stream: of features, or of the cells of two classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import Samples, check_memory
from ckce._methods import Arrays
from ckce._metrics.witness_function import of_features, of_points

_DENSE_CELLS = 2**14  # of which a vector of fixed size may hold the moments, 25 MB
_CELLS = ("cell_ids", "cell_points", "cell_numbers")
_ROW = 200.0  # bytes that a row may add to a state: a cell of its own
_ADVICE = "pass a larger bandwidth, or method='fourier', whose state does not grow"


class _Sums:
    """Sums over rows in the core."""

    _sums: Any  # of the core

    def update(self, probs: Any, labels: Any, weights: Any, *, n_threads: int) -> None:
        self._sums.update(probs, labels, weights, n_threads=n_threads)

    def merge(self, other: Any, *, n_threads: int) -> None:
        self._sums.merge(other, n_threads=n_threads)

    def state(self) -> Any:
        return self._sums.state()

    def rows(self) -> int:
        return int(self._sums.rows())


class FeatureEngine(_Sums):
    """Sums of features."""

    def __init__(self, core: _core.Accumulator, n_classes: int, features: _core.Features) -> None:
        self._sums: _core.Accumulator = core
        self._n_classes, self._features = n_classes, features

    def solve(
        self, *, regularization: float | None, full: bool, n_threads: int
    ) -> _core.AccumulatorResult:
        return self._sums.solve(regularization=regularization, full=full, n_threads=n_threads)

    def witness(
        self, *, regularization: float | None, n_threads: int
    ) -> Callable[[NDArray[np.floating]], NDArray[np.float64]]:
        x = self._sums.witness(regularization=regularization, n_threads=n_threads)
        return of_features(self._features, x, n_threads)

    def sums(self) -> NDArray[np.float64]:
        """All rows as one vector that adds up."""
        return self._sums.settled()

    def add_sums(self, sums: NDArray[np.float64], n_threads: int) -> None:
        probs = np.zeros((0, self._n_classes), order="F")
        none = np.zeros(0, np.int64), np.zeros(0)
        self._sums.merge_arrays(sums, probs, *none, n_threads=n_threads)

    def arrays(self, state: _core.AccumulatorState) -> Arrays:
        """What a file keeps of a state, but its tail."""
        return {"sums": state.sums}

    def restore(self, arrays: Arrays, tail: Samples, n_threads: int) -> None:
        probs = np.asfortranarray(tail.probs)
        sums = np.ascontiguousarray(arrays["sums"])
        self._sums.merge_arrays(sums, probs, tail.labels, tail.weights, n_threads=n_threads)


class CellEngine(_Sums):
    """Moments of the cells of two classes."""

    def __init__(
        self,
        bandwidth: float,
        linear_part: bool,
        label_factor: NDArray[np.float64] | None,
        n_bins: int,
        predicted: int | None,
    ) -> None:
        if bandwidth < _core.LEAST_BANDWIDTH:
            raise ValueError(
                f"bandwidth must be at least {_core.LEAST_BANDWIDTH:.2g} for the exact stream of two "
                f"classes, got {bandwidth!r}; pass a larger one, or method='fourier'"
            )
        word = "linear_gaussian" if linear_part else "gaussian"
        self._kernel = _core.Kernel(word, bandwidth)
        self._sums: _core.CellAccumulator = _core.CellAccumulator(
            bandwidth=bandwidth,
            linear_part=linear_part,
            label_factor=label_factor,
            n_bins=n_bins,
            predicted=predicted,
        )

    def update(self, probs: Any, labels: Any, weights: Any, *, n_threads: int) -> None:
        added = _ROW * min(len(labels), self._sums.n_cells)
        what = f"a state of up to {self._sums.n_cells:.3g} cells"
        check_memory(self._sums.state_price() + added, what, _ADVICE)
        super().update(probs, labels, weights, n_threads=n_threads)

    def solve(
        self, *, regularization: float | None, full: bool, n_threads: int
    ) -> _core.AccumulatorResult:
        what = f"CKCE of a state of up to {self._sums.n_cells:.3g} cells"
        check_memory(self._sums.state_price() + self._sums.solve_price(), what, _ADVICE)
        return self._sums.solve(regularization=regularization, n_threads=n_threads)

    def witness(
        self, *, regularization: float | None, n_threads: int
    ) -> Callable[[NDArray[np.floating]], NDArray[np.float64]]:
        x, v = self._sums.witness(regularization=regularization, n_threads=n_threads).T
        points, weights = np.column_stack([1.0 - x, x]), np.column_stack([-v, v])
        return of_points(self._kernel, points, weights, n_threads)

    def sums(self) -> NDArray[np.float64]:
        if self._sums.n_cells > _DENSE_CELLS:
            raise ValueError(
                f"bandwidth must leave at most {_DENSE_CELLS} cells for sums of a fixed size, got "
                f"{self._sums.n_cells:.0f}; pass a larger bandwidth, or method='fourier'"
            )
        return self._sums.settled()

    def add_sums(self, sums: NDArray[np.float64], n_threads: int) -> None:
        self._sums.merge_dense(sums, n_threads=n_threads)

    def arrays(self, state: _core.CellState) -> Arrays:
        return {"sums": state.sums, **dict(zip(_CELLS, state.cells, strict=True))}

    def restore(self, arrays: Arrays, tail: Samples, n_threads: int) -> None:
        ids, points, numbers = (np.ascontiguousarray(arrays[name]) for name in _CELLS)
        if not (ids.ndim == points.ndim == numbers.ndim == 1):
            raise ValueError("cells must be vectors")
        if not (ids.dtype == points.dtype == np.int64 and numbers.dtype == np.float64):
            raise ValueError(f"cells of {ids.dtype}, {points.dtype} and {numbers.dtype}")
        self._sums.merge_arrays(
            np.ascontiguousarray(arrays["sums"]),
            ids,
            points,
            numbers,
            np.asfortranarray(tail.probs),
            tail.labels,
            tail.weights,
            n_threads=n_threads,
        )


Engine = FeatureEngine | CellEngine
