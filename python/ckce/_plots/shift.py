"""Calibration errors over shifted data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ckce._plots.style import COLOURS, HANDLE, INSIDE, LINE, MARKERS, canvas, width_of
from ckce._results import LETTERS, shortened

if TYPE_CHECKING:
    from ckce._compare.curve import ShiftPoint

_PANELS = {  # the key of the line, of the ends of its band, and of a second, dashed line
    "Debiased CKCE (dashed: CKCE)": ("ckce_debiased", ("ckce_low", "ckce_high"), "ckce"),
    "JKCE": ("jkce", ("jkce_low", "jkce_high"), None),
    "ECE (top label)": ("ece_top_label", None, None),
}


def panels(
    points: dict[str, list[ShiftPoint]], shifts: Sequence[float | str], axes: Any, xlabel: str
) -> Any:
    """Three axes: debiased CKCE, JKCE and ECE of each model over the shifts, with intervals."""
    if axes is not None and len(axes) != len(_PANELS):
        raise ValueError(f"axes must be three axes, got {len(axes)}")
    new = axes is None
    # A legend for more hides the curves.
    beside = new and (len(points) > 4 or any(len(name) > INSIDE for name in points))
    names = shortened(points, LETTERS if beside else INSIDE)
    room = HANDLE + width_of(names.values()) if beside else 0.0
    size = (7.2 + room, max(2.5, LINE * len(points)))
    with canvas(size, None if axes is None else axes[0]) as (figure, _):
        if new:
            axes = figure.subplots(1, len(_PANELS), sharex=True)
        words = any(isinstance(shift, str) for shift in shifts)
        x: Any = np.arange(len(shifts)) if words else np.array(shifts, dtype=float)
        for ax, (title, (key, ends, second)) in zip(axes, _PANELS.items(), strict=True):
            for k, (name, row) in enumerate(points.items()):
                look: Any = {
                    "color": COLOURS[k % len(COLOURS)],
                    "marker": MARKERS[k % len(MARKERS)],
                    "markersize": 3.2,
                    "linewidth": 1.2,
                }
                ax.plot(x, [getattr(p, key) for p in row], label=names[name], **look)
                if second is not None:
                    dashed = [getattr(p, second) for p in row]
                    ax.plot(x, dashed, color=look["color"], linewidth=0.9, linestyle="--")
                if ends is not None:
                    low, high = ([getattr(p, end) for p in row] for end in ends)
                    ax.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0)
            _frame(ax, title, xlabel)
            if words:
                ax.set_xticks(x, [str(shift) for shift in shifts], rotation=45, ha="right")
        if beside:
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside right upper", handlelength=1.6)
        else:
            axes[-1].legend(loc="best", handlelength=1.6)
    return axes


def _frame(ax: Any, title: str, xlabel: str) -> None:
    ax.set_title(title, fontsize=9)
    ax.set_xlabel(xlabel)
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0.03)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
