"""Debiased CKCE of several models with intervals, CKCE and its floor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ckce._plots.style import BLUE, GREY, ORANGE, background, canvas, width_of
from ckce._results import percent, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ckce._compare.comparison import ComparedModel
    from ckce._metrics.segments import Segment


def forest(models: Sequence[ComparedModel | Segment], level: float, ax: Axes | None) -> Axes:
    """Models from the best (top) down: debiased value with interval, raw value, floor."""
    names = list(shortened(m.name for m in models).values())
    with canvas((4.2 + width_of(names), 0.9 + 0.26 * len(models)), ax) as (figure, given):
        ax = figure.add_subplot() if given is None else given
        rows = np.arange(len(models))
        floors = [(m.ckce_floor, row) for row, m in enumerate(models) if m.ckce_floor is not None]
        debiased = np.array([m.ckce_debiased for m in models])
        ends = np.array([[m.ckce_low, m.ckce_high] for m in models])
        ax.axvline(0, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        bar: Any = {"marker": "|", "s": 60, "color": ORANGE, "linewidths": 1.3, "zorder": 2}
        if floors:
            ax.scatter(*zip(*floors, strict=True), label="floor of CKCE", **bar)
        hollow: Any = {"s": 14, "facecolors": background(ax), "edgecolors": GREY, "linewidths": 0.9}
        ax.scatter([m.ckce for m in models], rows, label="CKCE", zorder=3, **hollow)
        ax.errorbar(
            debiased,
            rows,
            xerr=np.abs(ends - debiased[:, None]).T,
            fmt="o",
            color=BLUE,
            markersize=4.5,
            elinewidth=1.3,
            capsize=2.5,
            label=f"debiased, {percent(round(level, 4))} interval",
            zorder=4,
        )
        ax.set_yticks(rows, names)
        ax.set_ylim(len(models) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.grid(axis="y", color=GREY, alpha=0.2, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.set_xlabel("Conditional kernel calibration error (better to the left)")
        _legend(ax)
    return ax


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(
        handles[::-1],
        labels[::-1],
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=3,
        borderaxespad=0.2,
        columnspacing=1.2,
        handletextpad=0.4,
    )
