"""The kernel itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ckce import _core
from ckce._input import Kernel, check_positive
from ckce._methods.method import Method, Rows, in_panels, price_of_features, price_of_gram

_TOL = 1e-10


def iterates(n: int, m: int) -> bool:
    """Whether the iteration takes less time than a factorisation; with n <= m it takes more memory."""
    return n > max(m, min(_core.FACTORISATION_LIMIT, 40 * m + 150))


def _helper(n: int, m: int) -> int:
    """Doubles of the factor of low rank that speeds the iteration up."""
    return n * min(max(min(max(5_000_000 // n, 64), 256), m // 2), 512)


def price_of_iteration(n: int, m: int) -> float:
    """Doubles of conjugate gradients."""
    return 12 * in_panels(n) * m + _helper(n, m)


@dataclass(frozen=True, repr=False, eq=False)
class Exact(Method):
    r"""The kernel itself: :math:`\operatorname{Tr} V^\top K V` with :math:`(K + \lambda n I) V = R`.

    Two classes: in one pass over the rows, O(n), at any n. More: by factorisation up to
    n = 40 m + 150 (at most 2000) or n = m, O(n^2 (n + m)); above by certified conjugate gradients,
    O(n^2 m) for each of two to ten products with K, in O(n (m + 256)) memory.

    Parameters
    ----------
    tol : float
        Bound on the relative error of the iteration.

    Examples
    --------
    >>> import ckce
    >>> ckce.Exact(tol=1e-6)
    Exact(tol=1e-06)
    """

    word: ClassVar[str] = "exact"
    certified: ClassVar[bool] = True

    tol: float = _TOL

    def __post_init__(self) -> None:
        object.__setattr__(self, "tol", check_positive("tol", self.tol, high=0.5))

    def check(self, metric: str, kernel: Kernel, m: int) -> None:
        """Exact JKCE is a sum: there is nothing to tolerate."""
        if metric == "jkce" and self.tol != _TOL:
            raise ValueError(
                f"tol belongs to ckce, or to ckce.Cholesky, got Exact(tol={self.tol!r}): exact JKCE "
                "is a sum"
            )

    def of_jkce(self) -> Exact:
        return Exact()

    def price(self, rows: Rows, full: bool, metric: str = "ckce") -> float:
        """Gram matrices, or panels of Q, R and the iteration and a factor of low rank."""
        n, m = rows.shape
        if rows.on_a_line:
            return _core.price_two_classes(kernel=rows.core_kernel, n=n, full=full) / 8.0
        if not rows.kernel.has_bandwidth and metric != "jkce" and n >= m:
            return price_of_features(rows, m, full)
        panels = in_panels(n) * m  # of one matrix
        if metric == "jkce":
            strips = min(rows.n_threads, in_panels(n) / 128.0) * 128.0 * m  # of K R, in each thread
            all_panels = 4 * panels + 2 * strips if full else 3 * panels + strips
            return all_panels + (m**2 if n > 2 * m else 0)
        if not iterates(n, m):
            return max(2 * panels + n**2, price_of_gram(n, rows.n_threads, full))
        helper = _helper(n, m)
        iteration = price_of_iteration(n, m)
        if m >= 256 and n >= 6 * m:  # by blocks, beside a factor of more columns
            columns = min(2 * m, n // 6)
            iteration = max(iteration, 11 * panels + n * columns + 4 * columns**2)
        if not full:
            return iteration
        gram = price_of_gram(n, rows.n_threads, full)  # if no factor serves the debias term
        if n <= _core.FACTORISATION_LIMIT:
            return max(iteration, 2 * panels + max(helper, n * (3 * n // 10)) + gram)
        rank = min(n // 3 if n <= 8192 else max(512, 2 * m), 2048)
        probes = 64 + 3 * min(32 + 3 * m // 4, 128)  # and a small space beside them
        factor = 2 * panels + n * (rank + probes) + 4 * rank**2
        if n > 4096:
            return max(iteration, factor)
        return max(iteration, factor, 2 * panels + n * rank + gram)

    def words(self, metric: str, n: int, m: int, seed: int) -> dict[str, str]:
        tolerant = metric != "jkce" and m != 2 and iterates(n, m)
        return {"tol": repr(self.tol)} if tolerant else {}
