"""The picture of a reliability diagram; the only module that draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ckce._reliability.diagram import ReliabilityCurve, ReliabilityDiagram

# Okabe and Ito's colours, told apart by colour-blind readers too; blue and orange first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLE: Any = {
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
}
_FEW = 30  # samples of a bin below which their number is written beside the point


def plot(diagram: ReliabilityDiagram, ax: Axes | None, *, histogram: bool, counts: bool) -> Axes:
    """Curves with bands above, histograms of confidence below."""
    try:
        import matplotlib as mpl
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install matplotlib") from None
    with mpl.rc_context(STYLE):
        if ax is None:
            size = (3.5, 4.1) if histogram else (3.5, 3.3)
            ax = plt.figure(figsize=size, layout="constrained").add_subplot()
        # The histogram hangs below the curves as an inset, so that any axes can take both and every
        # layout engine makes room for it.
        below = ax.inset_axes((0.0, -0.33, 1.0, 0.27), sharex=ax) if histogram else None
        for each in (ax, below):
            if each is not None:
                each.spines[["top", "right"]].set_visible(False)
                each.yaxis.set_label_coords(-0.14, 0.5)
                each.tick_params(labelsize=8)  # axes of the caller come with other sizes
        ax.plot([0, 1], [0, 1], color="0.55", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        many = len(diagram.curves) > 1
        for number, curve in enumerate(diagram.curves):
            colour = COLOURS[number % len(COLOURS)]
            marker = MARKERS[number % len(MARKERS)]
            _draw_curve(ax, curve, colour, marker, counts)
            if below is not None:
                _draw_histogram(below, curve, colour, filled=not many)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal", anchor="N")
        top = diagram.target == "top label"
        ax.set_ylabel("Accuracy" if top else "Frequency", fontsize=9)
        lowest = ax if below is None else below
        lowest.set_xlabel(
            "Confidence" if top else f"Predicted probability of {diagram.target}", fontsize=9
        )
        ticks = np.linspace(0, 1, 6)
        ax.set_xticks(ticks)
        ax.set_yticks(ticks)
        if below is not None:
            ax.tick_params(labelbottom=False)
            below.set_ylabel("Share")
            below.set_ylim(bottom=0)
            below.locator_params(axis="y", nbins=3)
        if many or diagram.curves[0].name != "model":
            ax.legend(loc="best", handlelength=1.6, borderaxespad=0.2)
    return ax


def _draw_curve(ax: Axes, curve: ReliabilityCurve, colour: str, marker: str, counts: bool) -> None:
    ax.fill_between(
        curve.confidence, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0, zorder=2
    )
    # Areas in proportion to the counts, within what the eye can read.
    share = curve.counts / curve.counts.max()
    sizes: Any = np.clip(30 * share, 9, None) if counts else 16
    ax.plot(curve.confidence, curve.frequency, color=colour, zorder=3)
    ax.scatter(
        curve.confidence,
        curve.frequency,
        s=sizes,
        color=colour,
        marker=marker,
        edgecolors="white",
        linewidths=0.4,
        zorder=4,
    )
    ax.plot([], [], color=colour, marker=marker, label=curve.name)
    if counts:
        from matplotlib.patheffects import withStroke

        halo = [withStroke(linewidth=1.5, foreground="white")]
        for x, y, count in zip(curve.confidence, curve.frequency, curve.counts, strict=True):
            if count < _FEW:
                ax.annotate(
                    str(count),
                    (x, y),
                    xytext=(0, 4 if y < 0.5 else -9),
                    textcoords="offset points",
                    ha="center",
                    fontsize=6.5,
                    color=colour,
                    path_effects=halo,
                    zorder=5,
                )


def _draw_histogram(ax: Axes, curve: ReliabilityCurve, colour: str, *, filled: bool) -> None:
    edges = np.linspace(0, 1, len(curve.histogram) + 1)
    ax.stairs(curve.histogram, edges, color=colour, alpha=0.35 if filled else 0.18, fill=True)
    ax.stairs(curve.histogram, edges, color=colour, linewidth=1.0)
