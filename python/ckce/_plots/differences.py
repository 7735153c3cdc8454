"""Differences of pairs of models at equal predictions, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ckce._plots.style import BLUE, GREY, canvas, width_of
from ckce._results import percent, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ckce._compare.verdict import CommonGround


_ROWS = 30  # of pairs; the picture of more would be too high to read
_LETTERS = 24  # of a name, of which a row has two


def differences(pairs: Sequence[CommonGround], level: float, ax: Axes | None) -> Axes:
    """Worse minus better of each pair; grey where no difference is shown, empty where none can be."""
    every, pairs = len(pairs), _chosen(pairs)
    names = shortened(dict.fromkeys(n for p in pairs for n in (p.first, p.second)), _LETTERS)
    words = [_words(pair, names) for pair in pairs]
    with canvas((3.8 + width_of(words), 1.0 + 0.26 * len(pairs)), ax) as (figure, given):
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
        ax.set_yticks(range(len(pairs)), words)
        ax.set_ylim(len(pairs) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.grid(axis="y", color=GREY, alpha=0.2, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.locator_params(axis="x", nbins=6)
        ax.set_xlabel(f"Difference at equal predictions, {percent(level)} interval")
        if len(pairs) < every:
            note = f"{len(pairs)} of {every} pairs: neighbours in the ranking, the best first"
            ax.set_title(note, fontsize=8, loc="left")
    return ax


def _chosen(pairs: Sequence[CommonGround]) -> Sequence[CommonGround]:
    """All of a few pairs; of many, those of neighbours: pairs come in the order of the ranking."""
    if len(pairs) <= _ROWS:
        return pairs
    nearest = {pair.first: pair for pair in reversed(pairs)}
    return list(reversed(nearest.values()))[:_ROWS]


def _words(pair: CommonGround, names: Mapping[str, str]) -> str:
    first, second = names[pair.first], names[pair.second]
    if pair.better is None:
        # The interval is of this pair alone and may leave 0 out; the verdict is about all pairs.
        beside = pair.verdict == "not shown" and pair.low * pair.high > 0.0
        p = f" (p = {pair.p_holm:.2g})" if beside else ""
        return f"{first} - {second}: {pair.verdict}{p}"
    better, worse = (first, second) if pair.better == pair.first else (second, first)
    return f"{worse} is worse than {better}"
