"""Incomplete Cholesky factorisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ckce import _core
from ckce._input import SMALL, available_memory, check_choice, check_count, check_positive
from ckce._methods.method import Method, Progress, Rows, halves, in_panels, price_of_features


@dataclass(frozen=True, repr=False, eq=False)
class Cholesky(Method):
    r"""Incomplete Cholesky factorisation: :math:`K \approx G G^\top` with pivoting.

    The accurate method for batches: what is missing is known, and gives a certified bound.
    O(n rank (m + rank)) time, O(n rank) memory.

    Parameters
    ----------
    rank : int, optional
        Stop at this rank; by default at whatever `tol` needs.
    tol : float
        Stop when the trace of what is missing is at most this share of the trace of K.
    pivoting : {"greedy", "random"}
        The row with the largest residual next; or rows drawn with probabilities in proportion to the
        residuals, in blocks, which is several times faster at the same rank.

    Examples
    --------
    >>> import ckce
    >>> ckce.Cholesky(rank=100, pivoting="random")
    Cholesky(rank=100, pivoting='random')
    """

    word: ClassVar[str] = "cholesky"
    certified: ClassVar[bool] = True
    advice: ClassVar[str] = "pass a smaller rank"

    rank: int | None = None
    tol: float = 1e-10
    pivoting: str = "greedy"

    def __post_init__(self) -> None:
        if self.rank is not None:
            object.__setattr__(self, "rank", check_count("rank", self.rank))
        object.__setattr__(self, "tol", check_positive("tol", self.tol, high=0.5))
        check_choice("pivoting", self.pivoting, ("greedy", "random"))

    def price(self, rows: Rows, full: bool, metric: str = "ckce") -> float:
        """The factor and the sums; without a rank it takes what there is, see `features`."""
        n, m = rows.shape
        rank = self.n_features(rows)
        return self.kept(rows) + max(
            2 * in_panels(n) * m + (n**2 if n <= m and n <= min(2 * rank, 4096) else 0),
            price_of_features(rows, rank, full),
        )

    def n_features(self, rows: Rows) -> float:
        return float(min(768 if self.rank is None else self.rank, rows.shape[0]))

    def smaller(self) -> Iterator[Cholesky]:
        yield from (replace(self, rank=rank) for rank in halves(self.rank or 768, 32))

    def kept(self, rows: Rows) -> float:
        return rows.shape[0] * self.n_features(rows)

    def words(self, metric: str, n: int, m: int, seed: int) -> dict[str, str]:
        words = {
            "rank": "any" if self.rank is None else str(self.rank),
            "pivoting": self.pivoting,
            "tol": repr(self.tol),
        }
        return {**words, "s": str(seed)} if self.pivoting == "random" else words

    def features(self, rows: Rows, progress: Progress = None) -> _core.Features:
        n, _ = rows.shape
        limit = self._affordable_rank(n)
        factor = _core.cholesky_features(
            rows.probs,
            kernel=rows.core_kernel,
            rank=limit,
            tol=self.tol,
            pivoting=getattr(_core.Pivoting, self.pivoting),
            seed=rows.seed,
            n_threads=rows.n_threads,
            progress=progress,
        )
        if self.rank is None and factor.n_features >= limit and limit < n:
            raise MemoryError(
                f"method='cholesky' did not reach tol={self.tol!r} with the {limit} columns that fit "
                f"into memory at n = {n}; pass rank= or a larger tol, or use method='exact'"
            )
        return factor

    def _affordable_rank(self, n: int) -> int:
        """Columns that a factor may have: the rank asked for, or what half of the memory can hold."""
        if self.rank is not None:
            return min(self.rank, n)
        if 8.0 * n * n <= SMALL:
            return n
        return int(min(n, max(64.0, available_memory() / (16.0 * n))))
