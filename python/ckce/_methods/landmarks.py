"""Landmarks: rows of the simplex that span the features.

phi(q) = L^-1 k(S, q) with L L' = k(S, S), so that Phi Phi' is the Nystroem approximation of K.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import Kernel, check_count, check_matrix, check_memory, digest, warn
from ckce._methods.method import (
    Arrays,
    FeatureMap,
    Method,
    Progress,
    Rows,
    Space,
    halves,
    in_panels,
    price_of_features,
)
from ckce._methods.pool import some_rows

# Of the row sums, wide enough for half precision: landmarks only say where features are.
_SUM_TOLERANCE = 5e-3
# A pivot is at least 1e-12 of the largest k(q, q): the diagonal of L at least 1e-6 of the largest.
_LEAST_DIAGONAL = 5e-7
# Rows among which landmarks are sought: at least so many, and so many for each of them.
_POOL, _POOL_OF_EACH = 3000, 6
_MUCH = 0.05  # of the trace of K; relative errors of CKCE were 0.3 to 5 times the share left out


@dataclass(frozen=True, repr=False, eq=False)
class Landmarks(Method):
    r"""Features of landmarks S: :math:`\Phi = K_{QS} L^{-\top}` with :math:`L L^\top = K_{SS}`.

    The Nystroem approximation of K, which never exceeds K: a certified bound comes with it. Closer to
    the exact kernel than Fourier features where S resembles the data. O(n r (r + m)) time for r
    landmarks, memory independent of n; streams and merges.

    Parameters
    ----------
    points : int, or array of shape (r, n_classes)
        How many rows of the data to take, drawn as the random pivots of a Cholesky factorisation
        (fewer where the rest adds nothing); or the landmarks themselves. They are sought among 3000
        rows, or 6 for each of them if that is more, which ``random_state`` draws out of all.

    Examples
    --------
    >>> import ckce
    >>> ckce.Landmarks(50)
    Landmarks(points=50)
    """

    word: ClassVar[str] = "landmarks"
    streams: ClassVar[bool] = True
    certified: ClassVar[bool] = True
    advice: ClassVar[str] = "pass fewer landmarks"

    points: Any = 200

    def __post_init__(self) -> None:
        if np.ndim(self.points) == 0:
            object.__setattr__(self, "points", check_count("points", self.points))
            return
        points = check_matrix("landmarks", self.points, (None, None)).copy(order="C")
        fault = _fault(points)
        if fault is not None:
            raise ValueError(f"landmarks must hold probabilities whose rows sum to 1, got {fault}")
        points.setflags(write=False)
        object.__setattr__(self, "points", points)

    @property
    def given(self) -> bool:
        """The landmarks are known, not only their number."""
        return isinstance(self.points, np.ndarray)

    @property
    def count(self) -> int:
        """How many landmarks there are, or may be."""
        return len(self.points) if self.given else int(self.points)

    @property
    def name(self) -> str:
        """Their number and, if they are given, their digest."""
        return f"{self.count}({digest(self.points)})" if self.given else str(self.points)

    def check(self, metric: str, kernel: Kernel, m: int) -> None:
        super().check(metric, kernel, m)
        if not kernel.has_bandwidth:
            raise ValueError(f"{kernel} needs no features, got landmarks")
        if self.given:
            check_matrix("landmarks", self.points, (None, m))

    def price(self, rows: Rows, full: bool, metric: str = "ckce") -> float:
        """The points and the sums; before, what chooses the points."""
        m = rows.shape[1]
        r = self.n_features(rows)
        choosing = 0.0 if self.given else self._price_of_choosing(rows)
        return max(choosing, r * (3.0 * m + 2.0 * r) + price_of_features(rows, r, full))

    def _pool_size(self, n: int) -> int:
        return min(n, max(_POOL, _POOL_OF_EACH * self.count))

    def _price_of_choosing(self, rows: Rows) -> float:
        """Rows of the pool, as they were and twice in panels, and their factor."""
        n, m = rows.shape
        size = self._pool_size(n)
        return size * min(self.count, size) + (2 * in_panels(size) + (size if size < n else 0)) * m

    def smaller(self) -> Iterator[Landmarks]:
        if not self.given:
            yield from (replace(self, points=count) for count in halves(self.count, 32))

    def n_features(self, rows: Rows) -> float:
        return float(self.count if self.given else min(self.count, rows.shape[0]))

    def words(self, metric: str, n: int, m: int, seed: int) -> dict[str, str]:
        words = {"landmarks": self.name}
        return words if self.given else {**words, "s": str(seed)}

    def features(self, rows: Rows, progress: Progress = None) -> _core.Features:
        known = self if self.given else self.choose(rows)
        factor = known.factor(rows.core_kernel, rows.n_threads)
        return _core.landmark_features(
            known.points, np.asfortranarray(factor), kernel=rows.core_kernel
        )

    def check_stream(self, asked: Any) -> None:
        if not self.given:
            raise ValueError(
                f"landmarks must be given, got {asked!r}: take them from a sample with "
                "CKCEAccumulator.from_sample(y, q, method=ckce.Landmarks(200))"
            )

    def state_words(self, seed: int) -> dict[str, Any]:
        return {"landmarks": self.name}

    @classmethod
    def from_state(cls, words: Mapping[str, Any], arrays: Arrays) -> Landmarks:
        return cls(np.ascontiguousarray(arrays["landmarks"]))

    def fix(self, space: Space, n_threads: int) -> FeatureMap:
        return LandmarkMap(self.points, self.factor(space.core_kernel, n_threads))

    def read_map(self, space: Space, arrays: Arrays) -> FeatureMap:
        if self.points.shape[1] != space.m or space.bandwidth is None:
            raise ValueError(f"landmarks of shape {self.points.shape} for {space.m} classes")
        _check_stored_factor(self.points, arrays["landmark_factor"])
        return LandmarkMap(self.points, arrays["landmark_factor"])

    def choose(self, rows: Rows) -> Landmarks:
        """Landmarks out of these rows, fewer than asked for where the others add nothing."""
        n, m = rows.shape
        size = self._pool_size(n)
        what = f"choosing {self.count} landmarks out of {size} rows of {m} classes"
        advice = "pass fewer landmarks" if size > _POOL else "pass fewer rows, or give landmarks"
        check_memory(8.0 * self._price_of_choosing(rows), what, advice)
        pool = rows.probs if size == n else rows.probs[some_rows(n, size, rows.seed)]
        return Landmarks(
            choose_points(
                pool,
                rows.core_kernel,
                count=min(self.count, size),
                tol=0.0,
                pivoting=_core.Pivoting.random,
                seed=rows.seed,
                n_threads=rows.n_threads,
            )
        )

    def factor(self, kernel: _core.Kernel, n_threads: int) -> NDArray[np.float64]:
        """L (r, r); landmarks that repeat each other are refused."""
        r, m = self.points.shape
        what = f"a state of {m} classes and {r} landmarks"
        check_memory(8.0 * r * (6.0 * r + m), what, "pass fewer landmarks")
        factor, repeated = _core.landmark_factor(self.points, kernel=kernel, n_threads=n_threads)
        if repeated:
            raise ValueError(
                f"landmarks must differ, got row {repeated[0]}, which the rows before it explain to "
                f"12 digits of k(q, q) ({len(repeated)} of {r} rows are such); leave them out, or "
                "pass their number to let them be chosen"
            )
        return factor


@dataclass(frozen=True)
class LandmarkMap(FeatureMap):
    """Landmarks S and L with L L' = k(S, S)."""

    points: NDArray[np.float64]
    stored: NDArray[np.float64]

    def n_features(self, space: Space) -> int:
        return len(self.points)

    def core(self, space: Space) -> _core.Features:
        factor = np.asfortranarray(self.stored)
        return _core.landmark_features(self.points, factor, kernel=space.core_kernel)

    def arrays(self, space: Space) -> Arrays:
        return {"landmarks": self.points, "landmark_factor": self.stored}

    def same(self, other: LandmarkMap, space: Space) -> bool:
        a, b = self.stored, other.stored
        return np.array_equal(a, b) or bool(np.allclose(a @ a.T, b @ b.T, rtol=0.0, atol=1e-12))


def choose_points(
    sample: NDArray[np.floating], kernel: _core.Kernel, *, n_threads: int, **how: Any
) -> NDArray[np.float64]:
    """Rows of a sample that make good landmarks, see `_core.choose_landmarks`."""
    chosen = _core.choose_landmarks(sample, kernel=kernel, n_threads=n_threads, **how)
    points = np.ascontiguousarray(sample[chosen], dtype=np.float64)
    fault = _fault(points) if chosen else "numbers that are not finite"
    if fault is not None:  # the rows were checked, but they are still the caller's
        raise ValueError(f"y_prob must not change while landmarks are chosen, got {fault}")
    while True:
        # In coordinates of their own, as wherever they are given: a last one may fall below the
        # level of round-off that was above it in the sample's.
        _, repeated = _core.landmark_factor(points, kernel=kernel, n_threads=n_threads)
        if not repeated:
            return points
        points = np.delete(points, repeated, axis=0)


def _check_stored_factor(points: NDArray[np.float64], factor: NDArray[np.float64]) -> None:
    """Refuse a factor out of a file that cannot be one of these landmarks."""
    r = len(points)
    if factor.shape != (r, r):
        raise ValueError(f"landmark_factor of shape {factor.shape} for {r} landmarks")
    diagonal = np.diag(factor)
    possible = (np.abs(factor) <= 2.0).all() and not np.triu(factor, 1).any()
    least = _LEAST_DIAGONAL * np.abs(diagonal).max()
    if not possible or not 0.0 < diagonal.min() >= least:
        raise ValueError("landmark_factor that is no factor of a kernel matrix")


def warn_of_missing(share: float) -> None:
    """Say that landmarks do not span the data, which nothing else would tell."""
    if share > _MUCH:
        warn(
            f"landmarks leave out {100 * share:.0f} % of the kernel's trace, and CKCE may be off by "
            "about as much; take more of them, several times the number of classes, out of a sample "
            "that resembles the data, or Fourier features"
        )


def _fault(points: NDArray[np.float64]) -> str | None:
    """What keeps rows from being predictions."""
    r = len(points)
    report = _core.validate(
        points, np.zeros(r, np.int64), sum_tolerance=_SUM_TOLERANCE, n_threads=1
    )
    for found in (report.not_finite, report.negative, report.above_one):
        if found.count:
            return f"{found.value:.6g} in row {found.row} column {found.column}"
    found = report.bad_sum
    if found.count:
        return (
            f"row {found.row} with the sum {found.value:.6f} ({found.count} of {r} rows are such)"
        )
    return None
