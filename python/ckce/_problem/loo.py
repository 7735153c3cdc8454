"""Regularisation by leave-one-out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input.samples import Samples
from ckce._methods.auto import FEATURE_TOL, feature_rank

#: The values of lambda among which leave-one-out chooses.
LAMBDAS = tuple(10.0 ** (k / 2) for k in range(-8, 1))


def loo_errors(
    samples: Samples,
    kernel: str,
    bandwidth: float,
    frequencies: NDArray[np.float64] | None,
    linear_part: bool,
    label_factor: NDArray[np.float64] | None,
    seed: int,
    n_threads: int,
) -> NDArray[np.float64]:
    """Leave-one-out error at each of `LAMBDAS`, by the given frequencies or a Cholesky factor."""
    data = (samples.probs, samples.labels, samples.weights, label_factor)
    ridges = [lam * samples.weight for lam in LAMBDAS]
    if frequencies is not None:
        return _core.loo_fourier(*data, frequencies, linear_part, ridges, n_threads)
    rank = feature_rank(samples.n)
    return _core.loo_cholesky(*data, kernel, bandwidth, rank, FEATURE_TOL, seed, ridges, n_threads)


def choose_lambda(errors: Sequence[NDArray[np.float64]]) -> float:
    """The lambda with the smallest sum of errors; of equal ones the largest."""
    total = np.sum(errors, axis=0)
    last = len(total) - 1 - int(np.argmin(total[::-1]))
    return float(LAMBDAS[last])
