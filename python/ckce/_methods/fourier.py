"""Frequencies of the random Fourier features."""

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input.samples import check_bandwidth, check_choice, check_count, check_seed
from ckce._problem.kernels import KERNELS
from ckce._problem.memory import check_memory

SAMPLERS = ("gaussian", "orthogonal", "sobol")


def fourier_frequencies(
    n_classes: int,
    n_frequencies: int = 100,
    *,
    bandwidth: float = 1.0,
    kernel: str = "linear_gaussian",
    sampler: str = "gaussian",
    random_state: int = 0,
) -> NDArray[np.float64]:
    r"""Draw the frequencies :math:`w_1, \dots, w_D` that ``method="fourier"`` uses.

    They satisfy :math:`E \cos(w^\top (p - q)) = k(p, q)` for p, q in the simplex and the
    shift-invariant part of the kernel: normal with variance :math:`\gamma^{-2}` for the Gaussian
    kernels, Cauchy with scale :math:`\gamma^{-1}` for ``laplace``.

    Parameters
    ----------
    n_classes : int
        m, the number of classes, at least 2.
    n_frequencies : int
        D; the feature map has 2 D trigonometric features.
    bandwidth : float
        The kernel's bandwidth; the frequencies are divided by it.
    kernel : {"linear_gaussian", "gaussian", "laplace"}
        The kernel.
    sampler : {"gaussian", "orthogonal", "sobol"}
        Independent draws; orthogonal in groups of m - 1; or quasi-random. ``laplace`` has no
        orthogonal sampler.
    random_state : int
        Seed.

    Returns
    -------
    ndarray of shape (n_frequencies, n_classes)

    Notes
    -----
    Random numbers are the project's own, so a seed means the same for ever: SplitMix64 started at
    the seed, uniforms (top 53 bits + 1/2) / 2^53, quantiles by AS 241. Gaussian frequencies are
    drawn in the m - 1 coordinates of Helmert's basis of the plane orthogonal to (1, ..., 1), since
    the rest of a frequency does not act on the simplex. The error of the kernel is unbiased, of
    order D^(-1/2) for independent draws. Cost O(D m), orthogonal O(D m min(D, m)).

    Examples
    --------
    >>> import ckce
    >>> ckce.fourier_frequencies(3, 2, bandwidth=0.5).round(4)
    array([[ 1.5445, -1.8262,  0.2817],
           [-1.1915,  4.2843, -3.0928]])
    """
    m = check_count("n_classes", n_classes)
    if m < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes}")
    check_choice("kernel", kernel, list(KERNELS))
    check_choice("sampler", sampler, SAMPLERS)
    spectrum = KERNELS[kernel].spectrum
    if spectrum is None:
        raise ValueError(f"kernel={kernel!r} has no Fourier features, it needs none")
    if spectrum == "cauchy" and sampler == "orthogonal":
        raise ValueError("sampler='orthogonal' needs a Gaussian kernel, got kernel='laplace'")
    count = check_count("n_frequencies", n_frequencies)
    seed = check_seed(random_state)
    gamma = check_bandwidth(bandwidth)
    needed = 16.0 * count * m  # the draws, and what is returned
    check_memory(needed, f"{count} frequencies of {m} classes", "pass a smaller n_frequencies")
    unit = _core.draw_frequencies(sampler, spectrum == "cauchy", count, m, seed)
    return np.asarray(unit / gamma)
