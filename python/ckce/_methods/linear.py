"""The linear kernel's own features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ckce import _core
from ckce._methods.method import Arrays, FeatureMap, Method, Progress, Rows, Space


@dataclass(frozen=True, repr=False, eq=False)
class Linear(Method):
    """phi(q) = q: what a stream with ``kernel="linear"`` takes; nobody asks for it by name."""

    word: ClassVar[str] = "linear"
    streams: ClassVar[bool] = True
    starts_with_q: ClassVar[bool] = True

    def price(self, rows: Rows, full: bool, metric: str = "ckce") -> float:
        return (2.0 + rows.n_threads) * rows.shape[1] ** 2

    def words(self, metric: str, n: int, m: int, seed: int) -> dict[str, str]:
        return {}

    def features(self, rows: Rows, progress: Progress = None) -> _core.Features:
        return _core.linear_features(rows.shape[1])

    def fix(self, space: Space, n_threads: int) -> FeatureMap:
        return LinearMap()

    def read_map(self, space: Space, arrays: Arrays) -> FeatureMap:
        return LinearMap()


class LinearMap(FeatureMap):
    """Nothing is kept."""

    def n_features(self, space: Space) -> int:
        return space.m

    def core(self, space: Space) -> _core.Features:
        return _core.linear_features(space.m)
