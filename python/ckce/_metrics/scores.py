"""Accuracy, and the proper scoring rules with the Brier score's decomposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import Samples, check_bool, check_samples, check_threads
from ckce._metrics.ece import check_binning, scalar_bins, simplex_bins
from ckce._problem import top_label
from ckce._results import Facts, Said, number


@dataclass(frozen=True)
class _RankScores:
    """Sums over samples whose columns are ranks: the first is the predicted class."""

    hits: float
    confidence: float
    brier: float
    log_loss: float
    sharpness: float
    weight: float
    residual: NDArray[np.float64]
    labels: NDArray[np.float64]


def scores_of(samples: Samples, n_threads: int) -> _core.Scores | _RankScores:
    """The sums of all scoring rules over checked samples."""
    sums = _core.scores(samples.probs, samples.labels, samples.weights, n_threads=n_threads)
    if samples.ranked is None:
        return sums
    weights = np.ones(samples.n) if samples.weights is None else samples.weights
    return _RankScores(
        hits=float(weights[samples.labels == 0].sum()),
        confidence=float(weights @ samples.probs[:, 0]),
        brier=sums.brier,
        log_loss=sums.log_loss,
        sharpness=sums.sharpness,
        weight=sums.weight,
        residual=sums.residual,
        labels=sums.labels,
    )


def _scores(
    y_true: Any, y_prob: Any, *, n_threads: int | None, **options: Any
) -> _core.Scores | _RankScores:
    threads = check_threads(n_threads)
    return scores_of(check_samples(y_true, y_prob, n_threads=threads, **options), threads)


def accuracy(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
) -> float:
    r"""Share of samples whose label has the largest probability.

    .. math:: \frac1n \sum_i 1\{y_i = \arg\max_j q_{ij}\}

    If several classes have the largest probability, the first one counts as the prediction, as in
    ``numpy.argmax``. Unbiased; 1 is best. O(n m).

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, input, normalize, n_threads
        As in `ece`.

    Returns
    -------
    float

    Examples
    --------
    >>> import ckce
    >>> ckce.accuracy([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    0.6666666666666666
    """
    scores = _scores(
        y_true,
        y_prob,
        sample_weight=sample_weight,
        labels=labels,
        input=input,
        normalize=normalize,
        n_threads=n_threads,
    )
    return scores.hits / scores.weight


def brier(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
) -> float:
    r"""Brier score, summed over all classes.

    .. math:: \frac1n \sum_i \lVert e_{y_i} - q_i \rVert^2 = \frac1n \sum_i \sum_j (1\{y_i = j\}
        - q_{ij})^2

    From 0 (certain and right) to 2 (certain and wrong). Unbiased. This is Brier's own definition;
    for two classes it is *twice* the mean of (y - p)^2 that scikit-learn reports there
    (``brier_score_loss(..., scale_by_half=False)`` gives the number here). O(n m).

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, input, normalize, n_threads
        As in `ece`.

    Returns
    -------
    float

    Examples
    --------
    >>> import ckce
    >>> ckce.brier([0, 1], [[0.5, 0.5], [0.0, 1.0]])
    0.25
    """
    scores = _scores(
        y_true,
        y_prob,
        sample_weight=sample_weight,
        labels=labels,
        input=input,
        normalize=normalize,
        n_threads=n_threads,
    )
    return scores.brier / scores.weight


def log_loss(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
) -> float:
    r"""Cross entropy, the mean negative log-likelihood in nats.

    .. math:: -\frac1n \sum_i \log q_{i y_i}

    0 is best. Unbiased. A label that had probability 0 makes it infinite: nothing is clipped.
    O(n m).

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, input, normalize, n_threads
        As in `ece`.

    Returns
    -------
    float

    Examples
    --------
    >>> import ckce
    >>> ckce.log_loss([0, 1], [[0.5, 0.5], [0.0, 1.0]])
    0.34657359027997264
    >>> ckce.log_loss([0, 0], [[0.5, 0.5], [0.0, 1.0]])
    inf
    """
    scores = _scores(
        y_true,
        y_prob,
        sample_weight=sample_weight,
        labels=labels,
        input=input,
        normalize=normalize,
        n_threads=n_threads,
    )
    return scores.log_loss / scores.weight


@dataclass(frozen=True, repr=False)
class BrierDecomposition(Said):
    """What `brier_decomposition` returns.

    ``brier == calibration + refinement + within_bins`` and
    ``refinement == uncertainty - resolution``.

    Attributes
    ----------
    brier : float
        The score that is decomposed.
    calibration : float
        Squared distance of mean prediction and frequency in a bin (ECE with ``l2_squared``).
    refinement : float
        Variance of the labels in a bin: what no recalibration of the bins can remove.
    within_bins : float
        The part that binning hides: the spread of the predictions in a bin, less the part of the
        labels that they explain there. May be negative; 0 if all predictions in a bin are equal.
    uncertainty, resolution : float
        Variance of the labels in all, and the part of it that the bins explain.
    variant : str
        The bins.
    """

    brier: float
    calibration: float
    refinement: float
    within_bins: float
    uncertainty: float
    resolution: float
    variant: str

    def _said(self) -> Facts:
        bins = {
            "class_wise": "of each class",
            "simplex": "of the vector",
            "top_label": "of the top label",
        }
        rows = (
            (
                "Brier",
                self.brier,
                f"calibration + refinement + within bins, bins {bins[self.variant]}",
            ),
            ("calibration", self.calibration, "distance of mean prediction and frequency in a bin"),
            ("refinement", self.refinement, "uncertainty - resolution: what recalibration leaves"),
            ("within bins", round(self.within_bins, 12) + 0.0, "what the bins hide"),
            ("uncertainty", self.uncertainty, "variance of the labels"),
            ("resolution", self.resolution, "the part of it that the bins explain"),
        )
        return Facts(tuple((name, number(value), remark) for name, value, remark in rows))


def brier_decomposition(
    y_true: Any,
    y_prob: Any,
    *,
    variant: str = "class_wise",
    n_bins: int | None = None,
    strategy: str = "uniform",
    debias: bool = False,
    sample_weight: Any = None,
    labels: Any = None,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
) -> BrierDecomposition:
    r"""Calibration and refinement parts of the Brier score, by the bins of `ece`.

    .. math::
        \mathrm{Brier} = \underbrace{\sum_b \tfrac{n_b}{n} \lVert \bar y_b - \bar q_b
        \rVert^2}_{\text{calibration}} + \underbrace{\sum_b \tfrac{n_b}{n} (1 - \lVert \bar y_b
        \rVert^2)}_{\text{refinement}} + \text{within bins}

    (DeGroot and Fienberg 1983; the last term, Stephenson et al. 2008.) Calibration is biased
    upwards and refinement downwards, by the same amount.

    Parameters
    ----------
    variant : {"class_wise", "simplex", "top_label"}
        Bins of each class apart, the parts added over classes, as in `evaluate`; bins of the whole
        vector; or the score mean (hit - confidence)^2 of the predicted class by its bins.
    debias : bool
        Move the bias estimate of `ece` from calibration to refinement.
    y_true, y_prob, n_bins, strategy, sample_weight, labels, input, normalize, n_threads
        As in `ece`.

    Returns
    -------
    BrierDecomposition

    Notes
    -----
    The cost is that of `ece`.

    Examples
    --------
    >>> import ckce
    >>> parts = ckce.brier_decomposition([0, 1, 1, 1], [0.8, 0.8, 0.8, 0.2], n_bins=5)
    >>> round(parts.calibration, 6), round(parts.refinement, 6), round(abs(parts.within_bins), 6)
    (0.346667, 0.333333, 0.0)
    """
    bins = check_binning(variant, strategy, n_bins)
    check_bool("debias", debias)
    threads = check_threads(n_threads)
    samples = check_samples(
        y_true,
        y_prob,
        labels=labels,
        sample_weight=sample_weight,
        input=input,
        normalize=normalize,
        n_threads=threads,
    )
    return brier_decomposition_of(samples, variant, bins, strategy, debias, threads)


def brier_decomposition_of(
    samples: Samples, variant: str, n_bins: int, strategy: str, debias: bool, n_threads: int
) -> BrierDecomposition:
    """The decomposition of checked samples."""
    if variant == "simplex":
        gaps = [simplex_bins(samples, n_bins, n_threads).gaps]
    else:
        gaps = scalar_bins(samples, variant, strategy, n_bins, n_threads).gaps
    scores = scores_of(top_label(samples) if variant == "top_label" else samples, n_threads)
    half = 0.5 if variant == "top_label" else 1.0  # one of two classes with the same error
    score = half * scores.brier / scores.weight
    frequencies = scores.labels / scores.weight
    uncertainty = half * float((frequencies * (1.0 - frequencies)).sum())
    bias = sum(each.debias for each in gaps) if debias else 0.0
    calibration = sum(each.l2_squared for each in gaps) - bias
    refinement = sum(each.refinement for each in gaps) + bias
    return BrierDecomposition(
        brier=score,
        calibration=calibration,
        refinement=refinement,
        within_bins=score - calibration - refinement,
        uncertainty=uncertainty,
        resolution=uncertainty - refinement,
        variant=variant,
    )
