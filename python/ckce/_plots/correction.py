"""Where a model is off: smooth reliability curves, and arrows on the simplex of three classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ckce._plots.style import BLUE, GREY, INSIDE, ORANGE, canvas, square, strength
from ckce._results import percent, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ckce._metrics.views import CorrectionArrows, CorrectionCurve

_HEIGHT = 0.2  # of the histogram inside the square


def curve(shown: CorrectionCurve, label: str, ax: Axes | None) -> Axes:
    """Frequency against predicted probability, with its band, above the histogram."""
    with canvas((3.6, 3.7), ax) as (figure, given):
        ax = figure.add_subplot() if given is None else given
        _draw(ax, shown, ticks_of([shown]))
        ax.set_xlabel(f"Predicted probability of class {short(label)}", fontsize=9)
        ax.set_ylabel("Frequency", fontsize=9)
        ax.legend(loc="upper left", handlelength=1.6, borderaxespad=0.2)
    return ax


def curves(shown: Sequence[CorrectionCurve], what: str) -> Any:
    """A panel for each class or rank."""
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    with canvas((2.5 * columns + 0.4, 2.6 * rows + 0.4), None) as (figure, _):
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for ax, each in zip(axes.flat, shown, strict=False):
            _draw(ax, each, ticks_of(shown))
            ax.set_title(short(f"{what} {each.name}".strip()), fontsize=9)
        for ax in axes.flat[len(shown) :]:
            ax.set_visible(False)
        figure.supxlabel("Predicted probability", fontsize=9)
        figure.supylabel("Frequency", fontsize=9)
    return axes.flat[: len(shown)]


def ticks_of(shown: Sequence[CorrectionCurve]) -> list[float]:
    """Those of axes that show all of these."""
    return square((c.probability, c.frequency, c.low, c.high) for c in shown)


def _draw(ax: Axes, shown: CorrectionCurve, ticks: list[float]) -> None:
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    tallest = max(float(shown.histogram.max()), 1e-12)
    edges = np.linspace(0, 1, len(shown.histogram) + 1)
    start, side = ticks[0], ticks[-1] - ticks[0]
    heights = start + side * _HEIGHT * shown.histogram / tallest
    pale: Any = {"alpha": strength(ax, 0.3), "zorder": 0}
    ax.stairs(heights, edges, baseline=start, fill=True, color=GREY, label="cases", **pale)
    low, high, frequency = (np.clip(x, 0, 1) for x in (shown.low, shown.high, shown.frequency))
    pale = {"alpha": strength(ax, 0.2), "zorder": 2}
    ax.fill_between(shown.probability, low, high, color=BLUE, linewidth=0, **pale)
    only: Any = {"marker": "o"} if len(shown.probability) == 1 else {}
    label = f"frequency, {percent(shown.level)} band"
    ax.plot(shown.probability, frequency, color=BLUE, zorder=3, label=label, **only)
    limits = (start - 0.02 * side, ticks[-1] + 0.02 * side)
    ax.set(xlim=limits, ylim=limits, xticks=ticks, yticks=ticks)
    ax.set_box_aspect(1)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)


def arrows(shown: CorrectionArrows, ax: Axes | None) -> Axes:
    """From predictions to what the labels ask for; pale where the band does not leave out 0."""
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 3**0.5 / 2]])
    with canvas((4.4, 4.1), ax) as (figure, given):
        ax = figure.add_subplot() if given is None else given
        edge = corners[[0, 1, 2, 0]]
        for t in (0.2, 0.4, 0.6, 0.8):
            for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
                ends = np.array(
                    [t * corners[a] + (1 - t) * corners[b], t * corners[a] + (1 - t) * corners[c]]
                )
                ax.plot(*ends.T, color=GREY, alpha=0.25, linewidth=0.5, zorder=0)
        ax.plot(*edge.T, color=GREY, linewidth=0.9, zorder=1)
        start, end = shown.start @ corners, shown.end @ corners
        if len(start):
            sizes = 8 + 90 * shown.share / shown.share.max()
            ax.scatter(
                start[:, 0], start[:, 1], s=sizes, color=GREY, alpha=0.3, linewidths=0, zorder=2
            )
        for a, b, sure in zip(start, end, shown.shown, strict=True):
            look: Any = {"color": ORANGE if sure else GREY, "alpha": 1.0 if sure else 0.6}
            style: Any = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, "linewidth": 1.2, **look}
            ax.annotate("", xy=b, xytext=a, arrowprops={**style, "mutation_scale": 8}, zorder=3)
        places = (("right", "top", -0.02), ("left", "top", -0.02), ("center", "bottom", 0.02))
        for label, place, (across, down, up) in zip(shown.labels, corners, places, strict=True):
            ax.text(
                place[0], place[1] + up, short(str(label), INSIDE), ha=across, va=down, fontsize=9
            )
        ax.set_aspect("equal")
        ax.set(xlim=(-0.08, 1.08), ylim=(-0.09, 0.95))
        ax.axis("off")
        words = f"orange: the {percent(shown.level)} band over all arrows leaves out 0"
        ax.text(0.5, -0.08, words, ha="center", va="top", fontsize=7.5, color=GREY)
    return ax
