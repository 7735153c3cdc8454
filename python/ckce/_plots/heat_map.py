"""Whether a ranking survives, over bandwidth and lambda."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ckce._plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def heat_map(
    share: NDArray[np.float64], factors: tuple[Sequence[float], Sequence[float]], ax: Axes | None
) -> Axes:
    """Share of pairs that keep their order by factor of bandwidth (down) and lambda (right)."""
    rows, columns = share.shape
    with canvas((2.2 + 0.62 * columns, 1.3 + 0.42 * rows), ax) as (figure, given):
        ax = figure.add_subplot() if given is None else given
        ax.imshow(share, cmap="Blues", vmin=0.0, vmax=1.25, aspect="auto")
        for (row, column), kept in np.ndenumerate(share):
            ax.text(
                column,
                row,
                f"{kept:.0%}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if kept > 0.75 else "black",
            )
        ax.set_xticks(range(columns), [f"{factor:g}" for factor in factors[1]])
        ax.set_yticks(range(rows), [f"{factor:g}" for factor in factors[0]])
        ax.set_xlabel("lambda multiplied by")
        ax.set_ylabel("bandwidth multiplied by")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_title("Pairs that keep their order", fontsize=8, loc="left")
    return ax
