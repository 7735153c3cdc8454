"""Colours, markers, ticks and the canvas of every picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Numbers = Sequence[float] | NDArray[np.float64]

# Okabe and Ito's colours first, which colour-blind readers distinguish too; the report has the same
# ones in style.css. Fourteen models have fourteen colours.
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#3a9bd9", "#555555"),
    *("#7b3fa0", "#8c4a2f", "#6b8e23", "#d81b60", "#00838f", "#1f3b73", "#e57373"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d", "8")
BLUE, ORANGE, GREY = COLOURS[0], COLOURS[1], "0.55"
INSIDE = 18  # of a name in a legend inside the axes
LINE = 0.165  # inches of a line of a legend
HANDLE = 0.45  # inches beside a name in a legend
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


def width_of(words: Iterable[str], size: float = 8) -> float:
    """About how many inches the longest of them needs."""
    return max(map(len, words), default=0) * 0.6 * size / 72


def round_numbers(low: float, high: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from one at or below `low` to one at or above `high`."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= 0.999 * rough)
    return [
        k * step for k in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)
    ]


def in_digits(ticks: Sequence[float]) -> list[str]:
    """Ticks in words, with as many decimals as make them differ."""
    step = min((b - a for a, b in pairwise(ticks)), default=1.0)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{tick + 0.0:.{decimals}f}" for tick in ticks]


def square(
    curves: Iterable[tuple[Numbers, Numbers, Numbers, Numbers]], steps: int = 5
) -> list[float]:
    """Ticks of both axes of a diagram of probabilities: from 0 to 1, or where the curves are.

    A curve is its x, y, and the ends of its band, of which the narrowest place is in sight. Curves
    of a rare class would lie in a corner.
    """
    every: list[float] = []
    for x, y, low, high in curves:
        best = min(range(len(x)), key=lambda k: high[k] - low[k])
        every += [*x, *y, low[best], high[best]]
    start, end = max(0.0, float(min(every))), min(1.0, float(max(every)))
    return round_numbers(*((start, end) if 0.0 < end - start < 0.5 else (0.0, 1.0)), steps)


def columns_of(names: Sequence[str], width: float) -> int:
    """Columns of a legend of this width, in inches."""
    return max(1, min(len(names), int(width / (HANDLE + width_of(names)))))


def background(ax: Axes) -> Any:
    """The colour behind the axes, also in dark styles."""
    return ax.get_facecolor()


def strength(ax: Axes, alpha: float) -> float:
    """An alpha that shows as well on dark backgrounds, where pale colours drown."""
    from matplotlib.colors import to_rgb

    return alpha if sum(to_rgb(background(ax))) > 1.5 else min(1.0, 1.7 * alpha)
