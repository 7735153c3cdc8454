"""Kernels on the labels: O(m^3), however few rows there are."""

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import check_matrix, check_memory, digest

_ROWS = 256  # that are compared with columns at a time
# Pivots above this share of the largest entry are no rounding errors, which are about m eps of it.
_CLEARLY = 1e-9


@dataclass(frozen=True)
class LabelKernel:
    """L = F F' on the labels."""

    factor: NDArray[np.float64]
    name: str  # its digest


def check_label_kernel(value: Any, m: int) -> LabelKernel | None:
    """F with L = F F', or None for the Kronecker kernel; O(m^3)."""
    if value is None:
        return None
    _check_price(4.0, m)  # a copy of L, its symmetric part, a factor, and room for LAPACK
    matrix = check_matrix("label_kernel", value, (m, m))
    largest = max(float(matrix.max()), -float(matrix.min()))
    if not (largest == 0.0 or 1e-100 <= largest <= 1e100):
        raise ValueError(
            f"label_kernel must have its largest entry from 1e-100 to 1e100, got {largest:.3g}"
        )
    if not _is_symmetric(matrix, 1e-14 * largest):
        raise ValueError("label_kernel must be symmetric, got a matrix that is not")
    return LabelKernel(_factor(matrix), digest(matrix))


def _check_price(squares: float, m: int) -> None:
    what = f"label_kernel of {m} classes"
    check_memory(8.0 * squares * m**2, what, "leave label_kernel out, or join classes")


def _is_symmetric(matrix: NDArray[np.float64], atol: float) -> bool:
    """Some rows at a time, because comparing takes several copies."""
    for at in range(0, len(matrix), _ROWS):
        rows, columns = matrix[at : at + _ROWS], matrix[:, at : at + _ROWS].T
        if not np.allclose(rows, columns, rtol=1e-12, atol=atol):
            return False
    return True


def _factor(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """F, by Cholesky where L is clearly positive definite: eigenvalues take ten times as long."""
    symmetric = matrix + matrix.T
    symmetric *= 0.5
    with contextlib.suppress(np.linalg.LinAlgError):
        factor = np.linalg.cholesky(symmetric)
        pivots = np.diag(factor) ** 2
        if pivots.min() > _CLEARLY * np.diag(symmetric).max():
            del symmetric
            return np.asfortranarray(factor)
        del factor
    _check_price(7.0, len(matrix))
    values, vectors = np.linalg.eigh(symmetric)
    if values[0] < -1e-10 * max(values[-1], 0.0) or values[-1] <= 0.0:
        raise ValueError(
            "label_kernel must be positive semi-definite and not zero, got eigenvalues from "
            f"{values[0]:.3g} to {values[-1]:.3g}"
        )
    kept = values > 1e-15 * values[-1]
    return np.asfortranarray(vectors[:, kept] * np.sqrt(values[kept]))
