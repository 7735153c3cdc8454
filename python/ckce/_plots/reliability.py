"""Reliability diagrams: curves with bands above, histograms of confidence below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ckce._plots.style import (
    COLOURS,
    GREY,
    HANDLE,
    INSIDE,
    LINE,
    MARKERS,
    background,
    canvas,
    columns_of,
    square,
    strength,
    width_of,
)
from ckce._results import LETTERS, short, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ckce._reliability.diagram import ReliabilityCurve, ReliabilityDiagram

FEW = 30  # samples of a bin below which their number is written beside the point
_BANDS = 3  # curves; the bands of more hide one another
_LEGEND = 6  # names inside the axes of a caller; more hide the curves
_PANELS = 16  # of a grid
_LOW = 0.27  # height of the histogram, as a share of that of the square above
_GAP = 0.05  # between them


def diagram(shown: ReliabilityDiagram, ax: Axes | None, *, histogram: bool, counts: bool) -> Axes:
    """One picture of one model or several."""
    many = len(shown.curves) > _BANDS
    beside = ax is None and (many or any(len(curve.name) > INSIDE for curve in shown.curves))
    curves = _renamed(shown.curves, LETTERS if beside else INSIDE)
    height = 4.2 if histogram else 3.3
    columns = -(-len(curves) // int(height / LINE))
    room = columns * (HANDLE + width_of(c.name for c in curves)) if beside else 0.0
    with canvas((3.3 + room, height), ax) as (figure, given):
        ax = figure.add_subplot() if given is None else given
        below = _split(figure, ax) if histogram else None
        for each in (ax, below):
            if each is not None:
                each.spines[["top", "right"]].set_visible(False)
                each.tick_params(labelsize=8)  # axes of the caller come with other sizes
        _square(ax, curves, 0.02)
        _diagonal(ax)
        for k, curve in enumerate(curves):
            look = (COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)])
            _draw_curve(ax, curve, look, counts and not many, band=not many)
            if below is not None:
                _draw_histogram(below, curve, look[0], filled=len(curves) == 1)
        top = shown.target == "top label"
        ax.set_ylabel("Accuracy" if top else "Frequency", fontsize=9)
        label = "Confidence" if top else f"Predicted probability of {short(shown.target)}"
        (ax if below is None else below).set_xlabel(label, fontsize=9)
        if below is not None:
            ax.tick_params(labelbottom=False)
            below.set_ylabel("Share", fontsize=9)
            below.set_ylim(bottom=0)
            below.locator_params(axis="y", nbins=3)
            figure.align_ylabels([ax, below])
        if len(curves) > 1 or curves[0].name != "model":
            _legend(figure, (ax, below), beside, columns)
    return ax


def _split(figure: Any, ax: Axes) -> Axes:
    """Take the lower part of the axes for a histogram, so that both stay where the axes were."""
    cell = ax.get_subplotspec()
    if cell is None:  # placed by hand
        box = ax.get_position(original=True)
        unit = box.height / (1 + _GAP + _LOW)
        ax.set_position((box.x0, box.y1 - unit, box.width, unit))
        below: Axes = figure.add_axes((box.x0, box.y0, box.width, _LOW * unit), sharex=ax)
    else:
        parts = cell.subgridspec(2, 1, height_ratios=(1, _LOW), hspace=2 * _GAP / (1 + _LOW))
        ax.set_subplotspec(parts[0])
        below = figure.add_subplot(parts[1], sharex=ax)
    # Both are as wide as the square, and close to each other.
    below.set_box_aspect(_LOW)
    ax.set_anchor("S")
    below.set_anchor("N")
    return below


def _renamed(curves: Sequence[ReliabilityCurve], most: int) -> list[ReliabilityCurve]:
    names = shortened((curve.name for curve in curves), most)
    return [replace(curve, name=names[curve.name]) for curve in curves]


def _legend(figure: Any, axes: tuple[Axes, Axes | None], beside: bool, columns: int) -> None:
    ax = axes[0]
    if not beside and len(ax.get_legend_handles_labels()[0]) <= _LEGEND:
        ax.legend(loc="best", handlelength=1.6, borderaxespad=0.2)
        return
    # What the squares leave of the width is room for the legend.
    for each, anchor in zip(axes, ("SW", "NW"), strict=True):
        if each is not None:
            each.set_anchor(anchor)
    if beside:
        figure.legend(loc="outside right upper", handlelength=1.6, ncols=columns)
    else:
        place: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": 7}
        ax.legend(handlelength=1.6, **place)


def _square(ax: Axes, curves: Sequence[ReliabilityCurve], margin: float, steps: int = 5) -> None:
    """Equal limits and ticks of both axes."""
    ticks = ticks_of(curves, steps)
    margin *= ticks[-1] - ticks[0]
    limits = (ticks[0] - margin, ticks[-1] + margin)
    ax.set(xlim=limits, ylim=limits, xticks=ticks, yticks=ticks)
    ax.set_box_aspect(1)


def ticks_of(curves: Iterable[ReliabilityCurve], steps: int = 5) -> list[float]:
    """Those of axes that show these curves."""
    return square(((c.confidence, c.frequency, c.low, c.high) for c in curves), steps)


def _diagonal(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)


def _draw_curve(
    ax: Axes, curve: ReliabilityCurve, look: tuple[str, str], counts: bool, band: bool
) -> None:
    colour, marker = look
    x, y = curve.confidence, curve.frequency
    if len(x) == 1:  # a band of one point would have no width
        ax.vlines(x, curve.low, curve.high, color=colour, alpha=strength(ax, 0.5), zorder=2)
    elif band:
        pale: Any = {"alpha": strength(ax, 0.18), "linewidth": 0, "zorder": 2}
        ax.fill_between(x, curve.low, curve.high, color=colour, **pale)
    # Areas in proportion to the counts, within what the eye can read.
    share = curve.counts / curve.counts.max()
    sizes: Any = np.clip(30 * share, 9, None) if counts else 16
    ax.plot(x, y, color=colour, zorder=3)
    edge: Any = {"edgecolors": [background(ax)], "linewidths": 0.4}
    ax.scatter(x, y, s=sizes, color=colour, marker=marker, zorder=4, **edge)
    ax.plot([], [], color=colour, marker=marker, label=curve.name)
    if counts:
        _draw_counts(ax, curve, colour)


def _draw_counts(ax: Axes, curve: ReliabilityCurve, colour: str) -> None:
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=1.5, foreground=background(ax))]
    start, end = ax.get_xlim()
    written: list[tuple[float, float]] = []
    for x, y, count in zip(curve.confidence, curve.frequency, curve.counts, strict=True):
        # Numbers that would lie on another one are left out.
        across, up = x / (end - start), y / (end - start) + (0.04 if y < 0.5 else -0.03)
        clear = all(abs(across - a) > 0.06 or abs(up - b) > 0.05 for a, b in written)
        if count < FEW and clear:
            written.append((across, up))
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
    if filled:
        ax.stairs(curve.histogram, edges, color=colour, alpha=strength(ax, 0.35), fill=True)
    ax.stairs(curve.histogram, edges, color=colour, linewidth=1.0)


def grid(shown: ReliabilityDiagram) -> Any:
    """Small multiples, a panel for each class; the ones farthest from the diagonal come first."""
    panels: dict[str, list[ReliabilityCurve]] = {}
    for curve in _renamed(shown.curves, LETTERS):
        panels.setdefault(curve.target, []).append(curve)
    every = len(panels)
    if every > _PANELS:
        worst = sorted(panels, key=lambda of: -max(c.off_diagonal for c in panels[of]))
        panels = {of: panels[of] for of in worst[:_PANELS]}
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    drawn = [curve for each in panels.values() for curve in each]
    names = list(dict.fromkeys(curve.name for curve in drawn))
    width = max(1.7 * columns + 0.5, HANDLE + width_of(names))
    in_legend = columns_of(names, width)
    above = LINE * -(-len(names) // in_legend) if len(names) > 1 else 0.0
    height = 1.75 * rows + 0.6 + above
    with canvas((width, height), None) as (figure, _):
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for ax, (of, curves) in zip(axes.flat, panels.items(), strict=False):
            _diagonal(ax)
            for k, curve in enumerate(curves):
                look = (COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)])
                _draw_curve(ax, curve, look, counts=False, band=len(curves) <= _BANDS)
            _square(ax, drawn, 0.04, steps=3)
            ax.set_title(short(of, INSIDE), fontsize=8)
        for ax in axes.flat[len(panels) :]:
            ax.set_visible(False)
        for ax in axes.flat[max(0, len(panels) - columns) : len(panels)]:
            ax.tick_params(labelbottom=True)
        note = f" ({_PANELS} of {every} classes, farthest from the diagonal)"
        figure.supxlabel("Predicted probability" + (note if every > _PANELS else ""), fontsize=9)
        figure.supylabel("Frequency", fontsize=9, y=0.5 * (1.0 - above / height))
        if len(names) > 1:
            handles, _ = axes[0, 0].get_legend_handles_labels()
            figure.legend(handles, names, loc="outside upper center", ncols=in_legend)
    return axes.flat[: len(panels)]
