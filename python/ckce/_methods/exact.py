"""The kernel itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ckce import _core
from ckce._input import Kernel, check_positive
from ckce._methods.method import Method, Rows

_TOL = 1e-10


@dataclass(frozen=True, repr=False, eq=False)
class Exact(Method):
    r"""The kernel itself: :math:`\operatorname{Tr} V^\top K V` with :math:`(K + \lambda n I) V = R`.

    Two classes: in one pass over the rows, O(n), at any n. More: by factorisation up to n = 2000,
    O(n^3); above by certified conjugate gradients, O(n^2 m) for each of two to ten products with K,
    in O(n (m + 256)) memory.

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

    def price(self, rows: Rows, full: bool) -> float:
        """A few Gram matrices, or panels of Q, R and the iteration and a factor of low rank."""
        n, m = rows.shape
        if rows.on_a_line:
            return _core.price_two_classes(kernel=rows.core_kernel, n=n, full=full) / 8.0
        if n <= _core.FACTORISATION_LIMIT:
            return 3.0 * n**2
        return n * (12.0 * m + (768 if full else 256))

    def words(self, metric: str, n: int, m: int, seed: int) -> dict[str, str]:
        iterates = metric != "jkce" and m != 2 and n > _core.FACTORISATION_LIMIT
        return {"tol": repr(self.tol)} if iterates else {}
