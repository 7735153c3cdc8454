"""Expected calibration error by binning."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import (
    Samples,
    check_bool,
    check_choice,
    check_count,
    check_samples,
    check_threads,
    digest,
    raise_for,
)
from ckce._problem import Signature
from ckce._results import Facts, Said

VARIANTS = ("top_label", "class_wise", "simplex")
STRATEGIES = ("uniform", "quantile")
NORMS = ("l1", "tv", "l2", "l2_squared", "max")
MAX_BINS = 100_000
_FEW = 10  # a bin with fewer samples says little
_MANY = 100  # samples of a bin, on average, that leave little to chance
#: What each variant is called wherever it is printed.
TITLES = {
    "top_label": "ECE (top label)",
    "class_wise": "ECE (class-wise)",
    "simplex": "ECE (simplex)",
}


def ece(
    y_true: Any,
    y_prob: Any,
    *,
    variant: str = "top_label",
    n_bins: int | None = None,
    strategy: str = "uniform",
    norm: str = "l1",
    debias: bool = False,
    sample_weight: Any = None,
    labels: Any = None,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
) -> float:
    r"""Expected calibration error by binning.

    .. math::
        \mathrm{ECE}_1 = \sum_b \frac{n_b}{n} \lVert \bar y_b - \bar q_b \rVert_1, \qquad
        \mathrm{ECE}_2 = \Bigl(\sum_b \frac{n_b}{n} \lVert \bar y_b - \bar q_b \rVert_2^2
        \Bigr)^{1/2}

    with the mean prediction :math:`\bar q_b` (not the middle of the bin) and the label frequencies
    :math:`\bar y_b` of the samples in bin b. 0 is what a calibrated model has in the limit; on a
    finite sample the value is biased upwards, and the fewer samples a bin holds the more. Never
    negative, unless debiased.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        Labels, as in `ckce`.
    y_prob : array of shape (n_samples, n_classes), or (n_samples,) for the positive class
        Predicted probabilities.
    variant : {"top_label", "class_wise", "simplex"}
        ``top_label``: bins of the confidence in the predicted class (the first maximum), against
        accuracy; what most libraries call ECE. ``class_wise``: the mean over classes of the
        one-vs-rest error. ``simplex``: bins of the whole vector, by the bins of its m coordinates;
        the paper's ECE.
    n_bins : int, optional
        Number of bins of a probability: by default 15, and 10 for ``simplex``.
    strategy : {"uniform", "quantile"}
        ``uniform``: [b/B, (b+1)/B), with 1.0 in the last bin. ``quantile``: equal numbers of
        samples, ties together (not for ``simplex``).
    norm : {"l1", "tv", "l2", "l2_squared", "max"}
        ``l1`` as above; ``tv`` is half of it; ``l2`` as above; ``l2_squared`` without the root,
        the mean squared MMD under the Kronecker kernel; ``max`` the largest \|y_bj - q_bj\| of
        all bins and classes (for ``top_label`` also known as MCE).
    debias : bool
        With ``norm="l2_squared"``: subtract what chance adds (Kumar, Liang and Ma 2019), the
        variance of the labels in a bin over n_b - 1. May be negative, never clipped; bins with one
        sample count 0.
    sample_weight : array of shape (n_samples,), optional
        Frequency weights.
    labels : sequence, optional
        The label of each column of `y_prob`.
    input : {"probs", "logits", "log_probs"}
        Kind of numbers in `y_prob`, as in `ckce`.
    normalize : bool
        Rescale the rows to sum to 1 first.
    n_threads : int, optional
        Threads; never changes a bit of the result.

    Returns
    -------
    float
        ECE.

    Notes
    -----
    One pass over blocks of rows, O(n m) time; memory is O(n_bins), times m for ``class_wise``. For
    ``simplex`` only occupied bins exist, O(1) memory for each with one sample and O(m) with more.
    ``quantile`` adds a sort of each column, O(n m log n).

    With 10 classes or more nearly every sample has a ``simplex`` bin of its own, and the value is
    mostly noise: `ece_estimate` counts. For two classes ``simplex`` is twice the one-vs-rest gap,
    since an error in one class is one in the other.

    Examples
    --------
    >>> import ckce
    >>> y_true = [0, 1, 1, 0]
    >>> y_prob = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]
    >>> round(ckce.ece(y_true, y_prob), 6)
    0.3
    >>> round(ckce.ece(y_true, y_prob, variant="simplex"), 6)
    0.6
    """
    return ece_estimate(
        y_true,
        y_prob,
        variant=variant,
        n_bins=n_bins,
        strategy=strategy,
        norm=norm,
        debias=debias,
        sample_weight=sample_weight,
        labels=labels,
        input=input,
        normalize=normalize,
        n_threads=n_threads,
    ).value


def ece_estimate(
    y_true: Any,
    y_prob: Any,
    *,
    variant: str = "top_label",
    n_bins: int | None = None,
    strategy: str = "uniform",
    norm: str = "l1",
    debias: bool = False,
    sample_weight: Any = None,
    labels: Any = None,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
) -> EceEstimate:
    """ECE with the contents of its bins, and a word of caution where they hold too little.

    Parameters
    ----------
    y_true, y_prob, variant, n_bins, strategy, norm, debias, sample_weight, labels, input,
    normalize, n_threads
        As in `ece`.

    Returns
    -------
    EceEstimate
        Its value is bit for bit that of `ece`.

    Examples
    --------
    >>> import ckce
    >>> y_prob = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]
    >>> ckce.ece_estimate([0, 1, 1, 1], y_prob, n_bins=2)
    ECE (top label)  0.25  l1, 2 uniform bins
    data             n = 4, m = 2
    bins             1 occupied, 0 with one sample, 1 with fewer than 10, 4.0 samples on average
    caution          mostly noise: 100% of the samples lie in bins with fewer than 10, at m = 2
    signature        ece|v0.1|variant:top_label|norm:l1|bins:2(uniform)|n:4|m:2
    """
    bins = check_binning(variant, strategy, n_bins)
    check_choice("norm", norm, NORMS)
    if check_bool("debias", debias) and norm != "l2_squared":
        raise ValueError(
            f"debias=True needs norm='l2_squared', got norm={norm!r}: only the mean of a square is "
            "known without bias"
        )
    threads = check_threads(n_threads)
    samples = check_samples(
        y_true,
        y_prob,
        labels=labels,
        sample_weight=sample_weight,
        input=input,
        normalize=normalize,
        n_threads=threads,
        scan=variant == "simplex" or strategy == "quantile",
    )
    return ece_estimate_of(
        samples,
        threads,
        variant=variant,
        n_bins=bins,
        strategy=strategy,
        norm=norm,
        debias=debias,
    )


@dataclass(frozen=True, repr=False)
class EceEstimate(Said):
    """An ECE with what is in its bins; ``float(e)`` is the value.

    Attributes
    ----------
    value : float
        ECE. Biased upwards, more so the fewer samples the bins hold.
    variant, norm, strategy, debias, n_bins
        As asked for.
    n_samples, n_classes : int
        Shape of the data (rows of weight zero are not counted).
    counts : ndarray of int64
        Rows in each bin: (occupied bins,) for ``simplex``, in order of appearance; (n_bins,) for
        ``top_label``; (n_classes, n_bins) for ``class_wise``.
    edges, confidence, frequency : ndarray or None
        Edges of the bins (n_bins + 1 of them), mean prediction and observed frequency in each (NaN
        where it is empty), shaped like `counts`; None for ``simplex``.
    per_class : ndarray of shape (n_classes,) or None
        ECE of each class (``class_wise``), of which the value is the mean.
    signature : str
        Names everything that changes the number.
    """

    value: float
    variant: str
    norm: str
    strategy: str
    debias: bool
    n_bins: int
    n_samples: int
    n_classes: int
    counts: NDArray[np.int64] = field(repr=False, compare=False)
    edges: NDArray[np.float64] | None = field(repr=False, compare=False)
    confidence: NDArray[np.float64] | None = field(repr=False, compare=False)
    frequency: NDArray[np.float64] | None = field(repr=False, compare=False)
    per_class: NDArray[np.float64] | None = field(repr=False, compare=False)
    signature: str

    def __float__(self) -> float:
        return self.value

    @property
    def n_occupied(self) -> int:
        """Bins that hold a sample, of all classes together."""
        return int(np.count_nonzero(self.counts))

    @property
    def n_single(self) -> int:
        """Bins that hold exactly one row: its label is all they know of the frequency."""
        return int(np.count_nonzero(self.counts == 1))

    @property
    def share_in_small_bins(self) -> float:
        """Share of the rows that lie in bins with fewer than 10 rows."""
        return float(self.counts[self.counts < _FEW].sum() / self.counts.sum())

    @property
    def mostly_noise(self) -> bool:
        """Whether half the rows are in small bins; ``simplex`` with 10 classes needs 100 rows a bin.

        If so, the number measures chance: a perfectly calibrated model scores about as much.
        """
        thin = self.counts.sum() < _MANY * self.n_occupied
        crowded = self.variant == "simplex" and self.n_classes >= 10 and thin
        return crowded or self.share_in_small_bins > 0.5

    def _said(self) -> Facts:
        per = {"simplex": " per class", "top_label": "", "class_wise": " per class"}[self.variant]
        note = ", debiased" if self.debias else ""
        what = f"{self.norm}{note}, {self.n_bins} {self.strategy} bins{per}"
        small = int(np.count_nonzero((self.counts > 0) & (self.counts < _FEW)))
        mean = self.counts.sum() / self.n_occupied
        held = (
            f"{self.n_occupied} occupied, {self.n_single} with one sample, {small} with fewer than "
            f"{_FEW}, {mean:.1f} samples on average"
        )
        rows = [
            (TITLES[self.variant], f"{self.value:.6g}", what),
            ("data", "", f"n = {self.n_samples}, m = {self.n_classes}"),
            ("bins", "", held),
        ]
        if self.mostly_noise:
            share = (
                f"{self.share_in_small_bins:.0%} of the samples lie in bins with fewer than {_FEW}"
            )
            rows.append(("caution", "", f"mostly noise: {share}, at m = {self.n_classes}"))
        return Facts(tuple(rows), self.signature)


def check_bins(n_bins: object) -> int:
    """A number of bins."""
    count = check_count("n_bins", n_bins)
    if count > MAX_BINS:
        raise ValueError(f"n_bins must be at most {MAX_BINS}, got {count}")
    return count


def check_binning(variant: object, strategy: object, n_bins: object) -> int:
    """Refuse bins that do not exist; the number of bins, 15 by default and 10 for the simplex."""
    check_choice("variant", variant, VARIANTS)
    check_choice("strategy", strategy, STRATEGIES)
    if variant == "simplex" and strategy == "quantile":
        raise ValueError(
            "strategy='quantile' needs variant='top_label' or 'class_wise', got variant='simplex': "
            "points of the simplex have no order"
        )
    if n_bins is None:
        return 10 if variant == "simplex" else 15
    return check_bins(n_bins)


def scalar_bins(
    samples: Samples, variant: str, strategy: str, n_bins: int, n_threads: int
) -> _core.ScalarBins:
    """Bins of the confidence, or of each class's probability; checks what is unchecked.

    The confidence of ranks is the first, although the rest may be larger: the first group.
    """
    if samples.ranked is not None and variant == "top_label":
        variant = "class_wise"
        labels = np.minimum(samples.labels, 1)
        samples = replace(samples, labels=labels, probs=samples.probs[:, :2])
    table = _core.ece_scalar(
        samples.probs,
        samples.labels,
        samples.weights,
        variant=getattr(_core.Variant, variant),
        strategy=getattr(_core.Strategy, strategy),
        n_bins=n_bins,
        sum_tolerance=math.inf if samples.unchecked is None else samples.unchecked,
        n_threads=n_threads,
    )
    raise_for(table.report, samples.n, samples.m, check_sums=True, probs=samples.probs)
    return table


def simplex_bins(samples: Samples, n_bins: int, n_threads: int) -> _core.SimplexBins:
    """Bins of the whole vector."""
    return _core.ece_simplex(
        samples.probs, samples.labels, samples.weights, n_bins=n_bins, n_threads=n_threads
    )


def ece_estimate_of(
    samples: Samples,
    n_threads: int,
    *,
    variant: str = "top_label",
    n_bins: int | None = None,
    strategy: str = "uniform",
    norm: str = "l1",
    debias: bool = False,
) -> EceEstimate:
    """ECE of checked samples."""
    bins = check_binning(variant, strategy, n_bins)
    edges = confidence = frequency = per_class = None
    if variant == "simplex":
        occupied = simplex_bins(samples, bins, n_threads)
        counts = occupied.counts
        value = _finish(occupied.gaps, norm, debias)
    else:
        table = scalar_bins(samples, variant, strategy, bins, n_threads)
        kept = table.gaps[:1] if variant == "top_label" else table.gaps
        groups = np.array([_finish(gaps, norm, debias) for gaps in kept])
        value = float(groups.mean())
        with np.errstate(invalid="ignore"):  # 0 / 0 in empty bins
            arrays = [table.edges, table.prob / table.weight, table.hits / table.weight]
        if variant == "class_wise":
            per_class = groups
            edges, confidence, frequency = (array.T.copy() for array in arrays)
            counts = table.count.T.astype(np.int64)
        else:
            edges, confidence, frequency = (array[:, 0] for array in arrays)
            counts = table.count[:, 0].astype(np.int64)
    return EceEstimate(
        value=value,
        variant=variant,
        norm=norm,
        strategy=strategy,
        debias=debias,
        n_bins=bins,
        n_samples=samples.n,
        n_classes=samples.m,
        counts=counts,
        edges=edges,
        confidence=confidence,
        frequency=frequency,
        per_class=per_class,
        signature=str(_signature(samples, variant, bins, strategy, norm, debias)),
    )


def _signature(
    samples: Samples, variant: str, n_bins: int, strategy: str, norm: str, debias: bool
) -> Signature:
    words = {
        "variant": variant,
        "norm": norm,
        "bins": f"{n_bins}({strategy})",
        "n": str(samples.n),
        "m": str(samples.m),
    }
    if debias:
        words["debias"] = ""
    if samples.weights is not None:
        words["w"] = f"{samples.weight!r}({digest(samples.weights)})"
    if samples.prepared is not None:
        words["in"] = samples.prepared
    return Signature("ece", words)


def _finish(gaps: _core.Gaps, norm: str, debias: bool) -> float:
    if norm == "l1":
        return gaps.l1
    if norm == "tv":
        return 0.5 * gaps.l1
    if norm == "l2":
        return math.sqrt(gaps.l2_squared)
    if norm == "l2_squared":
        return gaps.l2_squared - gaps.debias if debias else gaps.l2_squared
    return gaps.max
