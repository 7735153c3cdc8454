"""Reliability diagrams in the manner of scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ckce._input import check_classifier
from ckce._reliability.diagram import ReliabilityDiagram, reliability_diagram

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class CalibrationDisplay:
    """Reliability diagram in the manner of scikit-learn's displays.

    Attributes
    ----------
    diagram : ReliabilityDiagram
        The numbers.
    ax_, figure_ : matplotlib Axes and Figure
        The drawing, after `plot`; with ``target="class_wise"`` an array of Axes.
    """

    ax_: Any
    figure_: Figure

    def __init__(self, diagram: ReliabilityDiagram) -> None:
        self.diagram = diagram

    def plot(self, ax: Axes | None = None, **options: Any) -> CalibrationDisplay:
        """Draw, as `ReliabilityDiagram.plot` does."""
        self.ax_ = self.diagram.plot(ax, **options)
        self.figure_ = np.ravel(self.ax_)[0].figure
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
