"""What holds the sums of a stream: of features, or of the cells of two classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import Samples, check_memory, check_named_kernel
from ckce._methods import Arrays
from ckce._methods.method import working
from ckce._metrics.witness_function import OfFeatures, cell_bytes, of_cells

_DENSE_CELLS = 2**14  # of which a vector of fixed size may hold the moments, 25 MB
_CELLS = ("cell_ids", "cell_points", "cell_numbers")
_FEWER = (
    "make the accumulator with reduction=ckce.TopK(20) or 'top_label', whose state does not grow "
    "with the classes"
)
_ADVICE = "pass a larger bandwidth, or method='fourier', whose state does not grow"


class _Sums:
    """Sums over rows in the core, which works on a copy of them."""

    _sums: Any  # of the core

    def check(self, what: str, n_threads: int = 1) -> None:
        """Refuse what a copy of the sums does not fit into memory for."""
        raise NotImplementedError

    def update(self, probs: Any, labels: Any, weights: Any, *, n_threads: int) -> None:
        self._sums.update(probs, labels, weights, n_threads=n_threads)

    def merge(self, other: Any, *, n_threads: int) -> None:
        self.check("merging", n_threads)
        self._sums.merge(other, n_threads=n_threads)

    def state(self) -> Any:
        self.check("a copy")
        return self._sums.state()

    def rows(self) -> int:
        return int(self._sums.rows())


@dataclass(frozen=True)
class FeaturePrice:
    """Doubles that sums of d features take, and what is done with them."""

    d: int
    m: int
    debias: bool

    @property
    def state(self) -> float:
        return self.d * (self.m + (3.0 if self.debias else 1.0) * self.d)

    @property
    def packed(self) -> float:
        """Triangles, as a file has them."""
        return self.d * (self.m + (1.5 if self.debias else 0.5) * self.d)

    def block(self, n_threads: int) -> float:
        """Blocks of rows, and the sums of each."""
        d, m = self.d, self.m
        rows, sums = 1160.0 * (2 * d + m), d * (d + m)
        return working(n_threads, rows + sums) * (rows + sums)

    def solve(self, full: bool) -> float:
        """X, and its certificate; the inverse square of the debias term."""
        d, m = self.d, self.m
        return d * ((4.0 if full else 2.0) * m + (2.0 * d if full and self.debias else 0.0))


class FeatureEngine(_Sums):
    """Sums of features."""

    def __init__(
        self,
        core: _core.Accumulator,
        n_classes: int,
        features: Callable[[], _core.Features],
        price: FeaturePrice,
    ) -> None:
        self._sums: _core.Accumulator = core
        self._n_classes, self._features, self._price = n_classes, features, price

    def check(self, what: str, n_threads: int = 1, more: float = 0.0) -> None:
        self._check(what, self._price.state + max(self._price.block(n_threads), more))

    def _check(self, what: str, doubles: float) -> None:
        check_memory(8.0 * doubles, f"{what} of a state of {self._n_classes} classes", _FEWER)

    def update(self, probs: Any, labels: Any, weights: Any, *, n_threads: int) -> None:
        self.check("an update", min(n_threads, len(labels) // 1024 + 1))
        super().update(probs, labels, weights, n_threads=n_threads)

    def solve(
        self, *, regularization: float | None, full: bool, n_threads: int
    ) -> _core.AccumulatorResult:
        self.check("CKCE", more=self._price.solve(full))
        return self._sums.solve(regularization=regularization, full=full, n_threads=n_threads)

    def witness(
        self, *, regularization: float | None, n_threads: int
    ) -> Callable[[NDArray[np.floating]], NDArray[np.float64]]:
        self.check("the witness", more=self._price.solve(False))
        x = self._sums.witness(regularization=regularization, n_threads=n_threads)
        return OfFeatures(self._features, x, n_threads)

    def sums(self) -> NDArray[np.float64]:
        """All rows as one vector that adds up."""
        self.check("sums", more=2.0 * self._price.packed)
        return self._sums.settled()

    def add_sums(self, sums: NDArray[np.float64], n_threads: int) -> None:
        probs = np.zeros((0, self._n_classes), order="F")
        none = np.zeros(0, np.int64), np.zeros(0)
        self.check("sums", more=self._price.state + self._price.packed)
        self._sums.merge_arrays(sums, probs, *none, n_threads=n_threads)

    def arrays(self, state: _core.AccumulatorState) -> Arrays:
        """What a file keeps of a state, but its tail."""
        self._check("the bytes", 3.0 * self._price.packed)
        return {"sums": state.sums}

    def restore(self, arrays: Arrays, tail: Samples, n_threads: int) -> None:
        probs = np.asfortranarray(tail.probs)
        self.check("reading", more=self._price.state + self._price.packed)
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
        self._kernel = check_named_kernel("linear_gaussian" if linear_part else "gaussian")
        self._bandwidth = bandwidth
        self._sums: _core.CellAccumulator = _core.CellAccumulator(
            bandwidth=bandwidth,
            linear_part=linear_part,
            label_factor=label_factor,
            n_bins=n_bins,
            predicted=predicted,
        )

    def check(self, what: str, n_threads: int = 1) -> None:
        what = f"{what} of a state of up to {self._sums.n_cells:.3g} cells"
        check_memory(2.0 * self._sums.state_price(), what, _ADVICE)

    def update(self, probs: Any, labels: Any, weights: Any, *, n_threads: int) -> None:
        added = cell_bytes(len(labels), self._sums.n_cells)
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
        return of_cells(self._sums, self._kernel, self._bandwidth, regularization, n_threads)

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
