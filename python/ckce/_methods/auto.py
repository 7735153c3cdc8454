"""Which estimator of CKCE to use."""

from ckce import _core
from ckce._problem.kernels import KERNELS

METHODS = ("auto", "exact", "fourier", "cholesky")

#: n^2 (m + 16) up to which "auto" affords the exact kernel (about a second on two cores).
EXACT_BUDGET = 2e10
#: Rows up to which "auto" affords a Cholesky factor of AUTO_RANK columns (1 GB).
CHOLESKY_ROWS = 2**18
AUTO_RANK = 500
#: Classes above which the linear part alone takes most of that rank, and "fourier" is closer.
CHOLESKY_CLASSES = 100


def affords_exact(n: int, m: int) -> bool:
    """Whether the exact kernel is within the budget of "auto"."""
    return n * n * (m + 16) <= EXACT_BUDGET


def choose_method(n: int, m: int, kernel: str) -> str:
    """The most accurate method that is affordable; a function of n, m and kernel only."""
    if kernel == "linear" or n <= _core.FACTORISATION_LIMIT:
        return "exact"
    if m == 2 and KERNELS[kernel].smooth:
        return "cholesky"  # reaches 1e-10 at a rank of 10 to 20
    if affords_exact(n, m):
        return "exact"
    if m <= CHOLESKY_CLASSES and n <= CHOLESKY_ROWS:
        return "cholesky"
    return "fourier"


#: Share of the trace of K that a Cholesky factor may miss where any features will do.
FEATURE_TOL = 1e-8


def feature_rank(n: int) -> int:
    """Largest rank of such a factor."""
    return max(64, min(512, 2**26 // n))
