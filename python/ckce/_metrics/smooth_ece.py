"""Smooth ECE: the calibration error of a probability without bins."""

from __future__ import annotations

from typing import Any

from ckce import _core
from ckce._input import Samples, check_samples, check_threads


def smooth_ece(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
) -> float:
    r"""Smooth ECE (Blasiok and Nakkiran 2023): ECE with a kernel in place of bins.

    .. math::
        \mathrm{smECE}_\sigma = \frac{\int_0^1 |\sum_i k_\sigma(t, p_i) (p_i - h_i)| \, dt}
        {\int_0^1 \sum_i k_\sigma(t, p_i) \, dt}

    with a Gaussian kernel of width :math:`\sigma` that is reflected at 0 and 1, and the width that
    equals the value, :math:`\mathrm{smECE}_\sigma = \sigma`. For two classes p is the probability of
    the second class and h whether it happened; for more classes p is the confidence in the predicted
    class (the first maximum) and h whether it is the label. 0 is what a calibrated model has in the
    limit. On a finite sample the value is biased upwards, because chance alone gives a positive one.
    Never negative; at most 1.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, input, normalize, n_threads
        As in `ece`.

    Returns
    -------
    float
        The number that ``relplot.smECE`` gives.

    Notes
    -----
    The grid and the search for the width are those of ``relplot`` 1.0.3, so that numbers can be
    compared: the width is a multiple of 1/1024, the value that of this width, and no width is below
    0.001. As there, a prediction of exactly 0 or 1 has half the weight of others, because its
    reflection is left out: with half of the rows at 1.0 (60 % right) and half at 0.5 (50 % right)
    the value is 0.135, and 0.172 if 0.9995 stands in place of 1.0. `evaluate` says so where it
    matters. Weights are frequency weights.

    One look at each row, O(n m), then O(n) for each of at most seven grids; 16 bytes of memory for
    each row.

    Examples
    --------
    >>> import ckce
    >>> y_prob = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]
    >>> round(ckce.smooth_ece([0, 1, 1, 0], y_prob), 4)
    0.1493
    """
    threads = check_threads(n_threads)
    samples = check_samples(
        y_true,
        y_prob,
        labels=labels,
        sample_weight=sample_weight,
        input=input,
        normalize=normalize,
        n_threads=threads,
        scan=True,
    )
    return smooth_ece_of(samples, threads).value


def smooth_ece_of(samples: Samples, n_threads: int) -> _core.SmoothEce:
    """Smooth ECE of checked samples, with its width."""
    probs, labels = samples.probs, samples.labels
    if samples.ranked is not None:
        probs = probs[:, :1]  # the first rank is the prediction, although the rest may be larger
    elif samples.m == 2:
        probs, labels = probs[:, 1:], 1 - labels  # label 0 is a hit of the only column
    return _core.smooth_ece(probs, labels, samples.weights, n_threads=n_threads)
