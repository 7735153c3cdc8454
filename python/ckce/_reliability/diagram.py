"""Reliability diagrams: the numbers, and their picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import (
    Samples,
    check_choice,
    check_classifier,
    check_level,
    check_samples,
    check_threads,
)
from ckce._metrics.ece import STRATEGIES, check_bins, scalar_bins
from ckce._problem import one_vs_rest, top_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HISTOGRAM_BINS = 20


@dataclass(frozen=True)
class ReliabilityCurve:
    """Confidence and frequency of one model, bin by bin; empty bins are left out.

    Attributes
    ----------
    name : str
        The model.
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
    edges: NDArray[np.float64] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    confidence: NDArray[np.float64] = field(repr=False)
    frequency: NDArray[np.float64] = field(repr=False)
    low: NDArray[np.float64] = field(repr=False)
    high: NDArray[np.float64] = field(repr=False)
    histogram: NDArray[np.float64] = field(repr=False)


def _wilson(
    hits: NDArray[np.float64], weight: NDArray[np.float64], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interval of a frequency that stays within [0, 1] and does not vanish at 0 and 1."""
    from statistics import NormalDist

    z = NormalDist().inv_cdf(0.5 + level / 2)
    rate = hits / weight
    centre = (rate + z**2 / (2 * weight)) / (1 + z**2 / weight)
    spread = np.sqrt(np.maximum(rate * (1 - rate), 0.0) / weight + z**2 / (4 * weight**2))
    half = z / (1 + z**2 / weight) * spread
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def _curve(
    name: str, samples: Samples, n_bins: int, strategy: str, level: float, n_threads: int
) -> ReliabilityCurve:
    """The curve of a binary problem, of its class 1."""
    table = scalar_bins(samples, "class_wise", strategy, n_bins, n_threads)
    bins = np.column_stack(
        [array[:, 1] for array in (table.weight, table.prob, table.hits, table.count)]
    )
    spread = scalar_bins(samples, "class_wise", "uniform", HISTOGRAM_BINS, n_threads).weight[:, 1]
    return curve_of_bins(name, table.edges[:, 1], bins, spread, level)


def curve_of_bins(
    name: str,
    edges: NDArray[np.float64],
    bins: NDArray[np.float64],
    spread: NDArray[np.float64],
    level: float,
) -> ReliabilityCurve:
    """The curve of a table of bins, whose columns are weight, sum of p, hits and rows."""
    kept = bins[:, 3] > 0
    weight, prob, hits, count = bins[kept].T
    low, high = _wilson(hits, weight, level)
    return ReliabilityCurve(
        name=name,
        edges=np.column_stack([edges[:-1], edges[1:]])[kept],
        counts=count.astype(np.int64),
        confidence=prob / weight,
        frequency=hits / weight,
        low=low,
        high=high,
        histogram=spread / spread.sum(),
    )


@dataclass(frozen=True)
class ReliabilityDiagram:
    """Reliability curves of one model or several; `plot` draws them.

    Attributes
    ----------
    curves : tuple of ReliabilityCurve
        One for each model.
    target : str
        What is predicted: ``"top label"``, or the name of a class.
    strategy, level
        Bins, and the level of the band.
    """

    curves: tuple[ReliabilityCurve, ...]
    target: str
    strategy: str
    level: float

    def __getitem__(self, name: str) -> ReliabilityCurve:
        for curve in self.curves:
            if curve.name == name:
                return curve
        raise KeyError(name)

    def __repr__(self) -> str:
        wide = max(len(curve.name) for curve in self.curves)
        lines = [f"reliability of the {self.target}, {self.strategy} bins"]
        for curve in self.curves:
            fewest, most = curve.counts.min(), curve.counts.max()
            outside = (curve.confidence < curve.low) | (curve.confidence > curve.high)
            lines.append(
                f"{curve.name:<{wide}}  {len(curve.counts)} bins of {fewest} to {most} samples, "
                f"{int(outside.sum())} with the diagonal outside the {self.level:.0%} band"
            )
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None, *, histogram: bool = True, counts: bool = True) -> Axes:
        """Draw frequency against confidence, with bands, and the histogram of confidence below.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default. The histogram takes the lower part of it.
        histogram : bool
            Draw the histogram of confidence.
        counts : bool
            Let the markers' areas grow with the samples in their bins, and write the number beside
            bins with fewer than 30.

        Returns
        -------
        matplotlib Axes
            The upper axes, with the curves.
        """
        from ckce._plots.reliability import plot

        return plot(self, ax, histogram=histogram, counts=counts)


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
    target : "top_label" or a class
        The confidence in the predicted class, against accuracy; or the probability of one class,
        against its frequency. A class is given as in `labels`, or as the number of its column.
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
    shown = "top label"
    for name, probs in models.items():
        samples = check_samples(
            y_true,
            probs,
            labels=labels,
            sample_weight=sample_weight,
            input=input,
            normalize=normalize,
            n_threads=threads,
        )
        if isinstance(target, str) and target == "top_label":
            binary = top_label(samples)
        else:
            column, shown = _column(target, samples.classes)
            binary = one_vs_rest(samples, column)
        curves.append(_curve(str(name), binary, bins, strategy, level, threads))
    return ReliabilityDiagram(tuple(curves), shown, strategy, level)


def _column(target: Any, classes: Sequence[Any]) -> tuple[int, str]:
    """Column and name of a class."""
    if target in classes:
        return classes.index(target), f"class {target}"
    raise ValueError(
        f"target must be 'top_label' or one of the classes {list(classes)[:20]}, got {target!r}"
    )


class CalibrationDisplay:
    """Reliability diagram in the manner of scikit-learn's displays.

    Attributes
    ----------
    diagram : ReliabilityDiagram
        The numbers.
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn, after `plot`.
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, diagram: ReliabilityDiagram) -> None:
        self.diagram = diagram

    def plot(self, ax: Axes | None = None, **options: Any) -> CalibrationDisplay:
        """Draw, as `ReliabilityDiagram.plot` does."""
        self.ax_ = self.diagram.plot(ax, **options)
        figure = self.ax_.get_figure(root=True)
        assert figure is not None
        self.figure_ = figure
        return self

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> CalibrationDisplay:
        """Draw the diagram of predictions.

        Parameters
        ----------
        y_true, y_prob
            As in `reliability_diagram`.
        name : str, optional
            Name of the model in the legend.
        ax : matplotlib Axes, optional
            Where to draw.
        **options
            Of `reliability_diagram`.

        Returns
        -------
        CalibrationDisplay

        Examples
        --------
        >>> import ckce
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> display = ckce.CalibrationDisplay.from_predictions([0, 1, 1, 0], [0.2, 0.9, 0.7, 0.6])
        >>> len(display.diagram.curves)
        1
        """
        models = y_prob if isinstance(y_prob, Mapping) or name is None else {name: y_prob}
        return cls(reliability_diagram(y_true, models, **options)).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> CalibrationDisplay:
        """Draw the diagram of a fitted classifier with ``predict_proba`` and ``classes_``.

        Parameters
        ----------
        estimator : fitted classifier
        X, y
            Data, and its labels.
        name : str, optional
            Name in the legend; the class of the estimator by default.
        ax : matplotlib Axes, optional
            Where to draw.
        **options
            Of `reliability_diagram`.

        Returns
        -------
        CalibrationDisplay
        """
        title = type(estimator).__name__ if name is None else name
        check_classifier(estimator)
        options.setdefault("labels", estimator.classes_)
        return cls.from_predictions(y, estimator.predict_proba(X), name=title, ax=ax, **options)
