"""Differences of pairs of models at equal predictions, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckce._plots.style import BLUE, GREY, canvas
from ckce._results import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ckce._compare.verdict import CommonGround


def differences(pairs: Sequence[CommonGround], level: float, ax: Axes | None) -> Axes:
    """Worse minus better of each pair; grey where no difference is shown, empty where none can be."""
    with canvas((5.6, 1.0 + 0.26 * len(pairs)), ax) as (figure, given):
        ax = figure.add_subplot() if given is None else given
        ax.axvline(0, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        for row, pair in enumerate(pairs):
            if pair.verdict in ("no common ground", "too few rows"):
                ax.text(0, row, f" {pair.verdict}", va="center", fontsize=7, color=GREY)
                continue
            sign = -1.0 if pair.better == pair.first else 1.0
            difference = sign * pair.difference
            half = (pair.high - pair.low) / 2
            ax.errorbar(
                [difference],
                [row],
                xerr=[[half], [half]],
                fmt="o",
                color=BLUE if pair.better else GREY,
                markersize=4.5,
                elinewidth=1.3,
                capsize=2.5,
                zorder=3,
            )
        ax.set_yticks(range(len(pairs)), [_words(pair) for pair in pairs])
        ax.set_ylim(len(pairs) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.grid(axis="y", color=GREY, alpha=0.2, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.set_xlabel(f"Difference at equal predictions, {percent(level)} interval")
    return ax


def _words(pair: CommonGround) -> str:
    if pair.better is not None:
        return f"{pair.worse} is worse than {pair.better}"
    return f"{pair.first} - {pair.second}: {pair.verdict}"
