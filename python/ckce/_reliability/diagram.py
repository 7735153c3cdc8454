"""Reliability diagrams: the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import Samples, check_choice, check_level, check_samples, check_threads
from ckce._metrics.ece import STRATEGIES, check_bins, scalar_bins
from ckce._problem import one_vs_rest, top_label
from ckce._results import Column, Said, Table, percent, wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HISTOGRAM_BINS = 20
TOP_LABEL = "top label"
CLASS_WISE = "class-wise"


@dataclass(frozen=True)
class ReliabilityCurve:
    """Confidence and frequency of one model, bin by bin; empty bins are left out.

    Attributes
    ----------
    name : str
        The model.
    target : str
        The predicted event: ``"top label"``, or a class such as ``"class 3"``.
    edges : ndarray of shape (n_bins, 2)
        Lower and upper edge of each bin.
    counts : ndarray of shape (n_bins,)
        Rows in each bin.
    confidence, frequency : ndarray of shape (n_bins,)
        Mean prediction, and how often it came true.
    low, high : ndarray of shape (n_bins,)
        Wilson confidence band of the frequency.
    histogram : ndarray
        Share of the samples in equal intervals of the confidence: 20 of them, or the bins that an
        accumulator has.
    """

    name: str
    target: str
    edges: NDArray[np.float64] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    confidence: NDArray[np.float64] = field(repr=False)
    frequency: NDArray[np.float64] = field(repr=False)
    low: NDArray[np.float64] = field(repr=False)
    high: NDArray[np.float64] = field(repr=False)
    histogram: NDArray[np.float64] = field(repr=False)

    @property
    def off_diagonal(self) -> int:
        """Bins whose confidence is outside the band of their frequency."""
        return int(((self.confidence < self.low) | (self.confidence > self.high)).sum())

    @property
    def mean_confidence(self) -> float:
        """Over all rows."""
        return float(np.average(self.confidence, weights=self.counts))

    @property
    def mean_frequency(self) -> float:
        """Over all rows."""
        return float(np.average(self.frequency, weights=self.counts))


def _curve(
    name: str, target: str, samples: Samples, bins: tuple[str, int], level: float, n_threads: int
) -> ReliabilityCurve:
    """The curve of a binary problem, of its class 1."""
    table = scalar_bins(samples, "class_wise", *bins, n_threads)
    sums = np.column_stack(
        [array[:, 1] for array in (table.weight, table.prob, table.hits, table.count)]
    )
    spread = scalar_bins(samples, "class_wise", "uniform", HISTOGRAM_BINS, n_threads).weight[:, 1]
    return curve_of_bins(name, table.edges[:, 1], sums, spread, level, target)


def curve_of_bins(
    name: str,
    edges: NDArray[np.float64],
    bins: NDArray[np.float64],
    spread: NDArray[np.float64],
    level: float,
    target: str = TOP_LABEL,
) -> ReliabilityCurve:
    """The curve of a table of bins, whose columns are weight, sum of p, hits and rows."""
    kept = bins[:, 3] > 0
    weight, prob, hits, count = bins[kept].T
    low, high = wilson(hits / weight, weight, level)
    return ReliabilityCurve(
        name=name,
        target=target,
        edges=np.column_stack([edges[:-1], edges[1:]])[kept],
        counts=count.astype(np.int64),
        confidence=prob / weight,
        frequency=hits / weight,
        low=low,
        high=high,
        histogram=spread / spread.sum(),
    )


@dataclass(frozen=True, repr=False)
class ReliabilityDiagram(Said):
    """Reliability curves of one model or several; `plot` draws them.

    Attributes
    ----------
    curves : tuple of ReliabilityCurve
        One for each model; with ``target="class_wise"`` one for each class and model.
    target : str
        The predicted event: ``"top label"``, the name of a class, or ``"class-wise"``.
    strategy, level
        Bins, and the level of the band.
    """

    curves: tuple[ReliabilityCurve, ...]
    target: str
    strategy: str
    level: float

    def __getitem__(self, name: str) -> ReliabilityCurve:
        """The curve of a model, the first one where there are several."""
        for curve in self.curves:
            if curve.name == name:
                return curve
        raise KeyError(name)

    def _said(self) -> Table:
        band = f"outside the {percent(self.level)} band"
        of = {TOP_LABEL: "the top label", CLASS_WISE: "every class"}.get(self.target, self.target)
        return Table(
            columns=(
                Column("model", ("name",)),
                *((Column("of", ("target",)),) if self.target == CLASS_WISE else ()),
                Column("confidence", ("mean_confidence",), "rate"),
                Column("frequency", ("mean_frequency",), "rate"),
                Column("bins", ("bins",), form="d"),
                Column("fewest samples", ("fewest",), form="d"),
                Column(f"bins {band}", ("off_diagonal",), form="d", strong=True),
            ),
            rows=tuple(
                {
                    "name": curve.name,
                    "target": curve.target,
                    "mean_confidence": curve.mean_confidence,
                    "mean_frequency": curve.mean_frequency,
                    "bins": len(curve.counts),
                    "fewest": int(curve.counts.min()),
                    "off_diagonal": curve.off_diagonal,
                }
                for curve in self.curves
            ),
            heading=f"reliability of {of}, {self.strategy} bins",
        )

    def plot(self, ax: Axes | None = None, *, histogram: bool = True, counts: bool = True) -> Any:
        """Draw frequency against confidence, with bands, and the histogram of confidence below.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default. The histogram takes the lower part of it. With
            ``target="class_wise"`` there is a grid of axes, in a figure of its own.
        histogram : bool
            Draw the histogram of confidence.
        counts : bool
            Let the markers' areas grow with the samples in their bins, and write the number beside
            bins with fewer than 30.

        Returns
        -------
        matplotlib Axes
            The upper axes, with the curves; with ``target="class_wise"`` an array of them, of at
            most 16 classes, those farthest from the diagonal first.

        Notes
        -----
        More than three models are drawn without bands, which would hide one another.
        """
        from ckce._plots.reliability import diagram, grid

        if self.target != CLASS_WISE:
            return diagram(self, ax, histogram=histogram, counts=counts)
        if ax is not None:
            raise ValueError(
                "ax must be None with target='class_wise', which draws a grid; draw one class with "
                "target=<class>"
            )
        return grid(self)


def reliability_diagram(
    y_true: Any,
    y_prob: Any,
    *,
    target: Any = "top_label",
    n_bins: int = 15,
    strategy: str = "quantile",
    level: float = 0.95,
    sample_weight: Any = None,
    labels: Any = None,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
) -> ReliabilityDiagram:
    r"""Accuracy against confidence, bin by bin, of one model or several.

    For each bin b of the confidence: its mean :math:`\bar q_b`, the frequency :math:`\bar y_b` with
    which the prediction came true, the number of samples, and the Wilson interval of the frequency.
    On the diagonal a model is calibrated; below it is overconfident.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        Labels, as in `ckce`.
    y_prob : array of shape (n_samples, n_classes) or (n_samples,), or dict of such arrays
        Predicted probabilities; a dict names several models for the same labels.
    target : "top_label", "class_wise" or a class
        The confidence in the predicted class, against accuracy; the probability of each class,
        against its frequency; or that of one class, given as in `labels` or as the number of its
        column.
    n_bins : int
        Number of bins.
    strategy : {"quantile", "uniform"}
        Bins with equal numbers of samples, so that no point stands on a few; or of equal width.
    level : float
        Level of the band, bin by bin.
    sample_weight, labels, input, normalize, n_threads
        As in `ece`.

    Returns
    -------
    ReliabilityDiagram
        With `plot`.

    Notes
    -----
    O(n m), and a sort for quantile bins. Weights count as copies, also in the band.

    Examples
    --------
    >>> import ckce
    >>> d = ckce.reliability_diagram([0, 1, 1, 0], [0.2, 0.9, 0.7, 0.6], target=1, n_bins=2)
    >>> d.curves[0].confidence, d.curves[0].frequency
    (array([0.4, 0.8]), array([0., 1.]))
    """
    check_choice("strategy", strategy, STRATEGIES)
    bins = check_bins(n_bins)
    level = check_level(level)
    threads = check_threads(n_threads)
    models = dict(y_prob) if isinstance(y_prob, Mapping) else {"model": y_prob}
    if not models:
        raise ValueError("y_prob must hold at least one model, got an empty dict")
    curves = []
    shown = TOP_LABEL
    for name, probs in models.items():
        samples = check_samples(
            y_true,
            probs,
            labels=labels,
            sample_weight=sample_weight,
            input=input,
            normalize=normalize,
            n_threads=threads,
            ranked=True,
        )
        problems, shown = _problems(target, samples, samples.classes)
        for of, binary in problems:
            curves.append(_curve(str(name), of, binary, (strategy, bins), level, threads))
    return ReliabilityDiagram(tuple(curves), shown, strategy, level)


def _problems(
    target: Any, samples: Samples, classes: Sequence[Any]
) -> tuple[Iterator[tuple[str, Samples]], str]:
    """The binary problems of a target, each with its name; and what the target is called."""
    if isinstance(target, str) and target == "top_label":
        return iter([(TOP_LABEL, top_label(samples))]), TOP_LABEL
    if isinstance(target, str) and target == "class_wise" and target not in classes:
        columns = enumerate(classes)
        return ((f"class {name}", one_vs_rest(samples, j)) for j, name in columns), CLASS_WISE
    if target not in classes:
        raise ValueError(
            "target must be 'top_label', 'class_wise' or one of the classes "
            f"{list(classes)[:20]}, got {target!r}"
        )
    name = f"class {target}"
    return iter([(name, one_vs_rest(samples, classes.index(target)))]), name
