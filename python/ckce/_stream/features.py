"""What sums over rows a state holds: of features, or of the cells of two classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._methods import Arrays, Exact, FeatureMap
from ckce._stream.config import StreamConfig
from ckce._stream.engine import CellEngine, Engine, FeatureEngine, FeaturePrice


@dataclass(frozen=True)
class KeptFeatures:
    """What a state keeps beside its sums: the feature map of the method."""

    map: FeatureMap

    def engine(self, config: StreamConfig, label_factor: NDArray[np.float64] | None) -> Engine:
        features = partial(self.map.core, config.space)
        made = features()
        core = _core.Accumulator(
            made,
            n_classes=config.columns,
            label_factor=label_factor,
            scattered=config.scattered,
            debias=config.debias,
            n_bins=config.n_bins,
            predicted=config.predicted,
        )
        price = FeaturePrice(made.n_features, config.columns, config.debias)
        return FeatureEngine(core, config.columns, features, price)

    def n_sums(self, config: StreamConfig) -> int:
        """Numbers in the sums of a file."""
        m, d = config.columns, self.map.n_features(config.space)
        triangles = d * (d + 1) // 2 * (3 if config.debias else 1)
        return 8 + 2 * m + 4 * config.n_bins + m * d + triangles

    def price(self, config: StreamConfig, n_threads: int = 1) -> float:
        """Bytes of a state and of an update, which works on a copy."""
        d = self.map.n_features(config.space)
        price = FeaturePrice(d, config.columns, config.debias)
        return 8.0 * (2.0 * price.state + price.block(n_threads))

    def arrays(self, config: StreamConfig) -> Arrays:
        return self.map.arrays(config.space)

    def same(self, other: Any, config: StreamConfig) -> bool:
        """Whether sums of both can be added; the configurations are the same."""
        return self.map.same(other.map, config.space)

    def fresh(self) -> KeptFeatures:
        """The same for another bandwidth."""
        return KeptFeatures(self.map.fresh())


@dataclass(frozen=True)
class KeptCells:
    """Cells of [0, 1] for two classes: nothing is approximated, and nothing is kept but the grid."""

    def engine(self, config: StreamConfig, label_factor: NDArray[np.float64] | None) -> Engine:
        assert config.bandwidth.value is not None
        linear = config.kernel.linear_part
        return CellEngine(
            config.bandwidth.value, linear, label_factor, config.n_bins, config.predicted
        )

    def n_sums(self, config: StreamConfig) -> int:
        return 14 + 4 * config.n_bins

    def price(self, config: StreamConfig, n_threads: int = 1) -> float:
        """Nothing but the cells that a file holds, which are in memory already."""
        return 0.0

    def arrays(self, config: StreamConfig) -> Arrays:
        return {}

    def same(self, other: Any, config: StreamConfig) -> bool:
        return True

    def fresh(self) -> KeptCells:
        return self


Kept = KeptFeatures | KeptCells


def make_kept(config: StreamConfig, n_threads: int) -> Kept:
    """Of a new stream."""
    if isinstance(config.method, Exact):
        return KeptCells()
    return KeptFeatures(config.method.fix(config.space, n_threads))


def read_kept(config: StreamConfig, arrays: Arrays) -> Kept:
    """Of a file, checked."""
    if not isinstance(config.method, Exact):
        return KeptFeatures(config.method.read_map(config.space, arrays))
    m, bandwidth = config.columns, config.bandwidth.value
    if not config.kernel.has_cells(m) or not (config.pending or bandwidth):
        raise ValueError(f"cells for {m} classes, {config.kernel}, bandwidth {bandwidth!r}")
    return KeptCells()
