"""Kernels on the labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import check_matrix, digest


@dataclass(frozen=True)
class LabelKernel:
    """L = F F' on the labels."""

    factor: NDArray[np.float64]
    name: str  # its digest


def check_label_kernel(value: Any, m: int) -> LabelKernel | None:
    """F with L = F F', or None for the Kronecker kernel."""
    if value is None:
        return None
    matrix = check_matrix("label_kernel", value, (m, m))
    largest = np.abs(matrix).max()
    if not (largest == 0.0 or 1e-100 <= largest <= 1e100):
        raise ValueError(
            f"label_kernel must have its largest entry from 1e-100 to 1e100, got {largest:.3g}"
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=1e-14 * np.abs(matrix).max()):
        raise ValueError("label_kernel must be symmetric, got a matrix that is not")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values[0] < -1e-10 * max(values[-1], 0.0) or values[-1] <= 0.0:
        raise ValueError(
            "label_kernel must be positive semi-definite and not zero, got eigenvalues from "
            f"{values[0]:.3g} to {values[-1]:.3g}"
        )
    kept = values > 1e-15 * values[-1]
    factor = np.asfortranarray(vectors[:, kept] * np.sqrt(values[kept]))
    return LabelKernel(factor, digest(matrix))
