"""The features of a stream: fixed before its first row, and kept in its state.

Sums of other features cannot be added to a state, so whatever could differ in its last digits between
machines (a factor of landmarks, a Chebyshev expansion) is stored beside the sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._methods import Exact, Fourier, Landmarks, Linear, Method, check_stored_factor
from ckce._stream.config import StreamConfig
from ckce._stream.engine import Arrays, CellEngine, Engine, FeatureEngine

_LARGEST = 1e100  # of a frequency that can have been drawn


class FeatureMap(Protocol):
    """What a state keeps of its features."""

    def engine(self, config: StreamConfig, label_factor: NDArray[np.float64] | None) -> Engine:
        """What holds the sums."""
        ...

    def n_sums(self, config: StreamConfig) -> int:
        """Numbers in the sums of a file."""
        ...

    def price(self, config: StreamConfig) -> float:
        """Bytes of a state, at most."""
        ...

    def arrays(self, config: StreamConfig) -> Arrays:
        """What a file keeps."""
        ...

    def same(self, other: Any, config: StreamConfig) -> bool:
        """Whether sums of both can be added; the configurations are the same."""
        ...

    def fresh(self) -> FeatureMap:
        """The same for another bandwidth."""
        ...


class _Features:
    """Maps whose engine sums features."""

    def core(self, config: StreamConfig) -> _core.Features:
        raise NotImplementedError

    def n_features(self, config: StreamConfig) -> int:
        raise NotImplementedError

    def engine(self, config: StreamConfig, label_factor: NDArray[np.float64] | None) -> Engine:
        core = _core.Accumulator(
            self.core(config),
            n_classes=config.columns,
            label_factor=label_factor,
            scattered=config.scattered,
            debias=config.debias,
            n_bins=config.n_bins,
            predicted=config.predicted,
        )
        return FeatureEngine(core, config.columns)

    def n_sums(self, config: StreamConfig) -> int:
        m, d = config.columns, self.n_features(config)
        triangles = d * (d + 1) // 2 * (3 if config.debias else 1)
        return 8 + 2 * m + 4 * config.n_bins + m * d + triangles

    def price(self, config: StreamConfig) -> float:
        m, d = config.columns, self.n_features(config)
        return 8.0 * d * (m + (6 if config.debias else 2) * d)


@dataclass(frozen=True)
class LinearMap(_Features):
    """phi(q) = q."""

    def n_features(self, config: StreamConfig) -> int:
        return config.columns

    def core(self, config: StreamConfig) -> _core.Features:
        return _core.linear_features(config.columns)

    def arrays(self, config: StreamConfig) -> Arrays:
        return {}

    def same(self, other: Any, config: StreamConfig) -> bool:
        return True

    def fresh(self) -> LinearMap:
        return self


@dataclass(frozen=True)
class FourierMap(_Features):
    """Frequencies at bandwidth 1, or as given; a state that was loaded brings its expansion."""

    unit: NDArray[np.float64]
    stored: NDArray[np.float64] | None = None

    def n_features(self, config: StreamConfig) -> int:
        linear = config.columns if config.kernel.linear_part else 0
        return (len(self._chebyshev(config)) or 2 * len(self.unit)) + linear

    def _frequencies(self, config: StreamConfig) -> NDArray[np.float64]:
        scale = 1.0 if config.bandwidth.value is None else config.bandwidth.value
        return np.asfortranarray(self.unit / scale)

    def _chebyshev(self, config: StreamConfig) -> NDArray[np.float64]:
        """What stands for the trigonometric features of two classes; empty if nothing does."""
        if self.stored is not None:
            return np.asfortranarray(self.stored)
        return np.asfortranarray(_core.chebyshev_factor(self._frequencies(config)))

    def core(self, config: StreamConfig) -> _core.Features:
        return _core.fourier_features(
            self._frequencies(config),
            linear_part=config.kernel.linear_part,
            chebyshev=self._chebyshev(config),
        )

    def arrays(self, config: StreamConfig) -> Arrays:
        if config.pending:
            return {"frequencies": self.unit}
        return {"frequencies": self.unit, "chebyshev": self._chebyshev(config)}

    def same(self, other: FourierMap, config: StreamConfig) -> bool:
        a, b = self._chebyshev(config), other._chebyshev(config)
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=0.0, atol=1e-12))

    def fresh(self) -> FourierMap:
        return FourierMap(self.unit)


@dataclass(frozen=True)
class LandmarkMap(_Features):
    """Landmarks S and L with L L' = k(S, S)."""

    points: NDArray[np.float64]
    factor: NDArray[np.float64]

    def n_features(self, config: StreamConfig) -> int:
        return len(self.points)

    def core(self, config: StreamConfig) -> _core.Features:
        kernel = config.kernel.core(config.bandwidth.value)
        return _core.landmark_features(self.points, np.asfortranarray(self.factor), kernel=kernel)

    def arrays(self, config: StreamConfig) -> Arrays:
        return {"landmarks": self.points, "landmark_factor": self.factor}

    def same(self, other: LandmarkMap, config: StreamConfig) -> bool:
        a, b = self.factor, other.factor
        return np.array_equal(a, b) or bool(np.allclose(a @ a.T, b @ b.T, rtol=0.0, atol=1e-12))

    def fresh(self) -> LandmarkMap:
        return self


@dataclass(frozen=True)
class CellMap:
    """Cells of [0, 1] for two classes: nothing is approximated, and nothing is kept but the grid."""

    def engine(self, config: StreamConfig, label_factor: NDArray[np.float64] | None) -> Engine:
        assert config.bandwidth.value is not None
        linear = config.kernel.linear_part
        return CellEngine(
            config.bandwidth.value, linear, label_factor, config.n_bins, config.predicted
        )

    def n_sums(self, config: StreamConfig) -> int:
        return 14 + 4 * config.n_bins

    def price(self, config: StreamConfig) -> float:
        """Nothing but the cells that a file holds, which are in memory already."""
        return 0.0

    def arrays(self, config: StreamConfig) -> Arrays:
        return {}

    def same(self, other: Any, config: StreamConfig) -> bool:
        return True

    def fresh(self) -> CellMap:
        return self


def make_map(config: StreamConfig, n_threads: int) -> FeatureMap:
    """The features of a new stream."""
    method = config.method
    if isinstance(method, Exact):
        return CellMap()
    if isinstance(method, Landmarks):
        factor = method.factor(config.kernel.core(config.bandwidth.value), n_threads)
        return LandmarkMap(method.points, factor)
    if isinstance(method, Fourier):
        return FourierMap(method.draw(config.columns, config.kernel, 1.0, config.seed))
    return LinearMap()


def method_of(word: str, header: dict[str, Any], arrays: Arrays) -> Method:
    """The method that a file claims, out of its words and arrays."""
    if word == Exact.word:
        return Exact()
    if word == Landmarks.word:
        return Landmarks(np.ascontiguousarray(arrays["landmarks"]))
    if word == Linear.word:
        return Linear()
    if header["frequencies"] is None:
        return Fourier(header["n_frequencies"], header["sampler"])
    return Fourier(frequencies=arrays["frequencies"])


def read_map(config: StreamConfig, arrays: Arrays) -> FeatureMap:
    """The features that a file holds, checked."""
    m = config.columns
    if isinstance(config.method, Exact):
        if not config.kernel.has_cells(m) or not (config.pending or config.bandwidth.value):
            raise ValueError(
                f"cells for {m} classes, {config.kernel}, bandwidth {config.bandwidth.value!r}"
            )
        return CellMap()
    if isinstance(config.method, Landmarks):
        points = config.method.points
        if points.shape[1] != m or config.bandwidth.value is None:
            raise ValueError(f"landmarks of shape {points.shape} for {m} classes")
        check_stored_factor(points, arrays["landmark_factor"])
        return LandmarkMap(points, arrays["landmark_factor"])
    if isinstance(config.method, Linear):
        return LinearMap()
    frequencies = arrays["frequencies"]
    if frequencies.ndim != 2 or frequencies.shape[1] != m or len(frequencies) < 1:
        raise ValueError(f"frequencies of shape {frequencies.shape} for {m} classes")
    if config.drawn is not None and config.drawn.n_frequencies != len(frequencies):
        raise ValueError(f"{len(frequencies)} frequencies of {config.drawn.n_frequencies!r}")
    chebyshev = arrays.get("chebyshev", np.zeros((0, 0)))
    if not all((np.abs(array) <= _LARGEST).all() for array in (frequencies, chebyshev)):
        raise ValueError("frequencies that cannot have been drawn")
    if chebyshev.ndim != 2 or chebyshev.shape[0] != chebyshev.shape[1]:
        raise ValueError(f"chebyshev of shape {chebyshev.shape}")
    if len(chebyshev) and m != 2:
        raise ValueError(f"chebyshev for {m} classes")
    return FourierMap(frequencies, arrays.get("chebyshev"))
