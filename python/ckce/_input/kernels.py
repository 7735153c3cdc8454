"""Kernels on the simplex: what Python must know of those that the core computes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input.options import check_choice, check_matrix

Gram = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
KernelLike = str | Gram


@dataclass(frozen=True)
class Kernel:
    """A kernel k(p, q), by name or as a callable that returns Gram matrices."""

    name: str
    distance: str = "l2"  # "l2" or "l1": what the median heuristic measures
    linear_part: bool = False  # k contains <p, q>
    spectrum: str | None = None  # law of the Fourier frequencies, if the rest is shift-invariant
    smooth: bool = True  # it has a gradient everywhere
    line: bool = False  # the core computes two classes in one pass, see cpp/core/binary
    gram: Gram | None = None

    @property
    def has_bandwidth(self) -> bool:
        return self.gram is None and self.name != "linear"

    def has_cells(self, m: int) -> bool:
        """Whether moments of cells hold all of it: two classes, and a Gaussian part."""
        return m == 2 and self.spectrum == "gaussian"

    @property
    def word(self) -> str:
        """Its name in a signature."""
        if self.gram is None:
            return self.name
        return f"callable({getattr(self.gram, '__name__', 'k')})"

    def __str__(self) -> str:
        return "a callable kernel" if self.gram is not None else f"kernel={self.name!r}"

    def core(self, bandwidth: float | None) -> _core.Kernel:
        """What the core computes with."""
        return _core.Kernel(self.name, 1.0 if bandwidth is None else bandwidth)

    def gram_of(self, probs: NDArray[np.floating]) -> NDArray[np.float64]:
        """The Gram matrix of a callable, checked as far as it can be."""
        assert self.gram is not None
        n, points = len(probs), probs.astype(np.float64)
        gram = check_matrix("kernel(P, P)", self.gram(points, points), (n, n))
        if not np.allclose(gram, gram.T, rtol=1e-10, atol=1e-12 * np.abs(gram).max()):
            raise ValueError("kernel(P, P) must be symmetric, got a matrix that is not")
        if np.diag(gram).min() < 0.0:
            raise ValueError(
                "kernel(P, P) must be positive semi-definite, got a diagonal with "
                f"{np.diag(gram).min():.3g} in row {int(np.argmin(np.diag(gram)))}"
            )
        _check_definite(gram)
        return gram


def _check_definite(gram: NDArray[np.float64]) -> None:
    """Refuse a kernel with a negative eigenvalue beyond rounding."""
    shift = 1e-8 * max(float(np.diag(gram).max()), 1e-300)
    try:
        np.linalg.cholesky(gram + shift * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        raise ValueError(
            "kernel(P, P) must be positive semi-definite, got a matrix with a negative eigenvalue"
        ) from None


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("linear_gaussian", linear_part=True, spectrum="gaussian", line=True),
        Kernel("gaussian", spectrum="gaussian", line=True),
        Kernel("laplace", distance="l1", spectrum="cauchy", smooth=False, line=True),
        Kernel("linear", linear_part=True),
    )
}


def check_kernel(value: Any) -> Kernel:
    """One of the named kernels, or a callable."""
    if callable(value):
        return Kernel("callable", gram=value)
    return check_named_kernel(value)


def check_named_kernel(value: Any) -> Kernel:
    """One of the named kernels."""
    return KERNELS[check_choice("kernel", value, KERNELS)]
