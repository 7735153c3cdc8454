"""Blocks of rows, for JKCE."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ckce._input import Kernel, check_count
from ckce._methods.method import Method, Rows, working


@dataclass(frozen=True, repr=False, eq=False)
class Blocks(Method):
    """JKCE only: the mean of the unbiased estimates of blocks of consecutive rows.

    O(n size m) time. The value depends on the order of the rows; those that do not fill a last block
    are left out, as in Widmann et al. (2019), whose linear estimator has blocks of two.

    Parameters
    ----------
    size : int, optional
        Rows of a block; by default the square root of n, rounded down.

    Examples
    --------
    >>> import ckce
    >>> ckce.Blocks(2)
    Blocks(size=2)
    """

    word: ClassVar[str] = "blocks"

    size: int | None = None

    def __post_init__(self) -> None:
        if self.size is not None:
            object.__setattr__(self, "size", check_count("size", self.size))

    def check(self, metric: str, kernel: Kernel, m: int) -> None:
        """JKCE has blocks, CKCE has none."""
        if metric != "jkce":
            raise ValueError(f"method='blocks' is for jkce, got it for {metric}")
        super().check(metric, kernel, m)

    def price(self, rows: Rows, full: bool, metric: str = "ckce") -> float:
        n, m = rows.shape
        block = 3.0 * self.rows(n) * m
        return working(rows.n_threads, block) * block + n

    def words(self, metric: str, n: int, m: int, seed: int) -> dict[str, str]:
        return {"block": str(self.rows(n))}

    def rows(self, n: int) -> int:
        """Rows of a block."""
        size = max(2, math.isqrt(n)) if self.size is None else self.size
        if not 2 <= size <= n:
            raise ValueError(
                f"size of ckce.Blocks must be from 2 to the number of samples ({n}), got {size}"
            )
        return size
