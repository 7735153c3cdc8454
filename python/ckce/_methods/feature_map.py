"""Features that a stream fixes before its first row, and keeps in its state.

Sums of other features cannot be added to a state, so whatever could differ in its last digits between
machines (a factor of landmarks, a Chebyshev expansion) is stored beside the sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ckce import _core
from ckce._input import Kernel

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Space:
    """What features are made for: a kernel on the predictions of m classes, and how to draw."""

    m: int
    kernel: Kernel
    bandwidth: float | None
    seed: int
    pending: bool = False  # the bandwidth is to come from the first rows

    @property
    def core_kernel(self) -> _core.Kernel:
        return self.kernel.core(self.bandwidth)


class FeatureMap:
    """What a state keeps of its features; a method that streams has one."""

    def n_features(self, space: Space) -> int:
        """Columns of Phi."""
        raise NotImplementedError

    def core(self, space: Space) -> _core.Features:
        """The map itself."""
        raise NotImplementedError

    def arrays(self, space: Space) -> Arrays:
        """What a file keeps."""
        return {}

    def same(self, other: Any, space: Space) -> bool:
        """Whether sums of both can be added; their methods are the same."""
        return True

    def fresh(self) -> FeatureMap:
        """The same for another bandwidth."""
        return self
