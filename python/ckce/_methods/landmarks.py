"""Landmarks: rows that a stream's features are fixed to before its first row.

phi(q) = L^-1 k(S, q) with L L' = k(S, S), so that Phi Phi' is the Nystroem approximation of K.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input.samples import Samples, check_bandwidth, check_matrix, digest
from ckce._problem.memory import check_memory

# Of the row sums, wide enough for half precision: landmarks only say where features are.
_SUM_TOLERANCE = 5e-3
# A pivot is at least 1e-12 of the largest k(q, q): the diagonal of L at least 1e-6 of the largest.
_LEAST_DIAGONAL = 5e-7
_MUCH = 0.05  # of the trace of K; relative errors of CKCE were 0.3 to 5 times the share left out


@dataclass(frozen=True)
class Landmarks:
    """The landmarks S (r, m), and L (r, r), which a state keeps: see landmarks.hpp."""

    points: NDArray[np.float64]
    factor: NDArray[np.float64]

    @property
    def name(self) -> str:
        """Their number and their digest, for configurations and signatures."""
        return f"{len(self.points)}({digest(self.points)})"

    def same_features(self, other: "Landmarks") -> bool:
        """Whether both factors are of one matrix, though maybe by other instructions."""
        a, b = self.factor, other.factor
        return np.array_equal(a, b) or bool(np.allclose(a @ a.T, b @ b.T, rtol=0.0, atol=1e-12))


def given_landmarks(value: Any, m: int, kernel: str, bandwidth: Any, n_threads: int) -> Landmarks:
    """Landmarks that the user chose: none is left out."""
    _check_kernel(kernel)
    if isinstance(bandwidth, str):
        raise ValueError(
            f"bandwidth must be given beside landmarks, got {bandwidth!r}; or take both from a "
            "sample: CKCEAccumulator.from_sample(y, q, n_landmarks=...)"
        )
    gamma = check_bandwidth(bandwidth)
    points = np.array(check_matrix("landmarks", value, (None, m)), order="C")
    fault = _fault(points)
    if fault is not None:
        raise ValueError(f"landmarks must hold probabilities whose rows sum to 1, got {fault}")
    factor, repeated = _factor(points, kernel, gamma, n_threads)
    if repeated:
        raise ValueError(
            f"landmarks must differ, got row {repeated[0]}, which the rows before it explain to 12 "
            f"digits of k(q, q) ({len(repeated)} of {len(points)} rows are such); leave them out, "
            "or let CKCEAccumulator.from_sample(..., n_landmarks=) choose"
        )
    return Landmarks(points, factor)


def chosen_landmarks(
    samples: Samples, count: int, kernel: str, bandwidth: float, seed: int, n_threads: int
) -> NDArray[np.float64]:
    """At most `count` rows of a sample, fewer where the others add nothing."""
    _check_kernel(kernel)
    count = min(count, samples.n)
    needed = 8.0 * samples.n * (count + 2.0 * samples.m)
    what = f"choosing {count} landmarks out of {samples.n} rows"
    check_memory(needed, what, "pass a smaller sample, or a smaller n_landmarks")
    rows = _core.choose_landmarks(samples.probs, kernel, bandwidth, count, seed, n_threads)
    points = np.ascontiguousarray(samples.probs[rows], dtype=np.float64)
    fault = _fault(points) if rows else "numbers that are not finite"
    if fault is not None:  # the rows were checked, but they are still the caller's
        raise ValueError(f"y_prob must not change while landmarks are chosen, got {fault}")
    while True:
        # In coordinates of their own, as wherever they are given: a last one may fall below the
        # level of round-off that was above it in the sample's.
        _, repeated = _factor(points, kernel, bandwidth, n_threads)
        if not repeated:
            return points
        points = np.delete(points, repeated, axis=0)


def stored_landmarks(points: NDArray[np.float64], factor: NDArray[np.float64], m: int) -> Landmarks:
    """Landmarks out of a file, checked as far as they can be."""
    r = len(points)
    if points.ndim != 2 or points.shape[1] != m or r < 1:
        raise ValueError(f"landmarks of shape {points.shape} for {m} classes")
    if factor.shape != (r, r):
        raise ValueError(f"landmark_factor of shape {factor.shape} for {r} landmarks")
    fault = _fault(points)
    if fault is not None:
        raise ValueError(f"landmarks that are no predictions: {fault}")
    diagonal = np.diag(factor)
    possible = (np.abs(factor) <= 2.0).all() and not np.triu(factor, 1).any()
    least = _LEAST_DIAGONAL * np.abs(diagonal).max()
    if not possible or not 0.0 < diagonal.min() >= least:
        raise ValueError("landmark_factor that is no factor of a kernel matrix")
    return Landmarks(points, factor)


def warn_of_missing(share: float, stacklevel: int) -> None:
    """Say that landmarks do not span the data, which nothing else would tell."""
    if share > _MUCH:
        warnings.warn(
            f"landmarks leave out {100 * share:.0f} % of the kernel's trace, and CKCE may be off by "
            "about as much; take more of them, several times the number of classes, out of a sample "
            "that resembles the data, or Fourier features",
            stacklevel=stacklevel,
        )


def _check_kernel(kernel: str) -> None:
    if kernel == "linear":
        raise ValueError("kernel='linear' needs no features, got landmarks")


def _factor(
    points: NDArray[np.float64], kernel: str, bandwidth: float, n_threads: int
) -> tuple[NDArray[np.float64], list[int]]:
    r, m = points.shape
    what = f"a state of {m} classes and {r} landmarks"
    check_memory(8.0 * r * (6.0 * r + m), what, "pass fewer landmarks")
    return _core.landmark_factor(points, kernel, bandwidth, n_threads)


def _fault(points: NDArray[np.float64]) -> str | None:
    """What keeps rows from being predictions."""
    r = len(points)
    report = _core.validate(points, np.zeros(r, np.int64), _SUM_TOLERANCE, 1)
    for found in (report.not_finite, report.negative, report.above_one):
        if found.count:
            return f"{found.value:.6g} in row {found.row} column {found.column}"
    found = report.bad_sum
    if found.count:
        return (
            f"row {found.row} with the sum {found.value:.6f} ({found.count} of {r} rows are such)"
        )
    return None
