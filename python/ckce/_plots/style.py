"""Colours, markers and the canvas of every picture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours first, which colour-blind readers distinguish too; the report has the same
# ones in style.css. Fourteen models have fourteen colours.
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#3a9bd9", "#555555"),
    *("#7b3fa0", "#8c4a2f", "#6b8e23", "#d81b60", "#00838f", "#1f3b73", "#e57373"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d", "8")
BLUE, ORANGE, GREY = COLOURS[0], COLOURS[1], "0.55"
_STYLE: Any = {
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


@contextmanager
def canvas(size: tuple[float, float], ax: Axes | None) -> Iterator[tuple[Any, Axes | None]]:
    """A figure in our style: that of the axes, or a new one of this size; and the axes."""
    try:
        import matplotlib as mpl
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install matplotlib") from None
    if ax is None:
        # Before the style, which is taken back at the end: the first figure of a session starts
        # the backend, and in notebooks that turns interactive drawing on.
        figure: Any = plt.figure(figsize=size, layout="constrained")
    else:
        figure = ax.figure
    with mpl.rc_context(_STYLE):
        yield figure, ax


def background(ax: Axes) -> Any:
    """The colour behind the axes, also in dark styles."""
    return ax.get_facecolor()


def strength(ax: Axes, alpha: float) -> float:
    """An alpha that shows as well on dark backgrounds, where pale colours drown."""
    from matplotlib.colors import to_rgb

    return alpha if sum(to_rgb(background(ax))) > 1.5 else min(1.0, 1.7 * alpha)
