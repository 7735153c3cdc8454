"""What Python must know of the kernels that the core computes."""

from typing import NamedTuple


class Kernel(NamedTuple):
    """A kernel k(p, q) on the simplex."""

    distance: str  # "l2" or "l1": what the median heuristic measures
    linear_part: bool  # k contains <p, q>
    spectrum: str | None  # law of the Fourier frequencies, if the rest is shift-invariant
    smooth: bool  # eigenvalues fall fast: a factor of low rank is exact for two classes


KERNELS = {
    "linear_gaussian": Kernel("l2", True, "gaussian", True),
    "gaussian": Kernel("l2", False, "gaussian", True),
    "laplace": Kernel("l1", False, "cauchy", False),
    "linear": Kernel("l2", True, None, True),
}
