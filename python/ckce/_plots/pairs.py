"""All differences of a comparison at equal predictions as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ckce._plots.style import GREY, background, canvas, width_of
from ckce._results import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ckce._compare.verdict import CommonGround


_LETTERS = 24  # of a name


def matrix(names: Sequence[str], pairs: Sequence[CommonGround], ax: Axes | None) -> Axes:
    """Row minus column at equal predictions; those that are shown have a colour, by their z."""
    from matplotlib.colors import FuncNorm, ListedColormap

    count = len(names)
    z, differences, significant = _squares(names, pairs)
    shown = np.where(significant, z, np.nan)
    limit = max(5.0, float(np.nanmax(np.abs(shown), initial=0.0)))
    words = list(shortened(names, _LETTERS).values())
    cells, label = max(0.46 * count, 1.9), width_of(words)
    with canvas((cells + label + 1.2, cells + 0.8 * label + 0.7), ax) as (figure, given):
        ax = figure.add_subplot() if given is None else given
        # A square root keeps small differences visible beside one of 50 standard errors.
        norm = FuncNorm((_root, _square), vmin=-limit, vmax=limit)
        image = ax.imshow(shown, cmap="RdBu_r", norm=norm)
        rest = np.where(np.isfinite(shown), np.nan, 0.0 * z)  # compared, and not shown
        ax.imshow(rest, cmap=ListedColormap([GREY]), alpha=0.15)
        power = _power([pair.difference for pair in pairs if np.isfinite(pair.difference)])
        for row, column in np.argwhere(np.isfinite(z)):
            bold = bool(significant[row, column])
            look: Any = {"fontweight": "bold", "color": _ink(image, z[row, column])} if bold else {}
            ax.text(
                column,
                row,
                f"{differences[row, column] * 10**power:+.1f}",
                ha="center",
                va="center",
                fontsize=6.5,
                **look,
            )
        _frame(ax, words)
        unit = f" in $10^{{-{power}}}$" if power else ""
        title = f"CKCE at equal predictions{unit}\nrow minus column, coloured if shown"
        ax.set_title(title, fontsize=8, loc="left")
        bar: Any = figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02)
        bar.set_ticks(_ticks(limit))
        bar.set_label("difference / standard error", fontsize=8)
        bar.outline.set_visible(False)
    return ax


def _ink(image: Any, value: float) -> str:
    """Black or white, whichever is easier to read on the colour of a value."""
    red, green, blue, _ = (part**2.2 for part in image.cmap(image.norm(value)))  # the light of each
    return "black" if 0.21 * red + 0.72 * green + 0.07 * blue > 0.18 else "white"


def _squares(
    names: Sequence[str], pairs: Sequence[CommonGround]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Differences over standard errors, differences, and which are shown; NaN if not compared."""
    position = {name: row for row, name in enumerate(names)}
    z, differences = np.full((2, len(names), len(names)), np.nan)
    significant = np.zeros(z.shape, dtype=bool)
    for pair in pairs:
        if pair.verdict in ("no common ground", "too few rows"):
            continue
        a, b = position[pair.first], position[pair.second]
        z[a, b], z[b, a] = pair.z[0], -pair.z[0]
        differences[a, b], differences[b, a] = pair.difference, -pair.difference
        significant[a, b] = significant[b, a] = pair.significant
    return z, differences, significant


def _root(x: Any) -> Any:
    return np.sign(x) * np.sqrt(np.abs(x))


def _square(x: Any) -> Any:
    return np.sign(x) * np.square(x)


def _ticks(limit: float) -> list[float]:
    """Of the colour bar: 0, 2 and round numbers up to the limit, on both sides."""
    ticks = [t for t in (2.0, 10.0, 30.0, 100.0, 300.0, 1000.0) if t <= limit]
    return [*(-t for t in reversed(ticks)), 0.0, *ticks]


def _power(numbers: list[float]) -> int:
    """Power of ten that leaves the largest of them with one or two digits before the point."""
    largest = max(map(abs, numbers), default=0.0)
    return 0 if largest == 0.0 or largest >= 10 else int(np.ceil(1 - np.log10(largest)))


def _frame(ax: Axes, names: Sequence[str]) -> None:
    count = len(names)
    ax.set_xticks(range(count), names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(count), names)
    ax.spines[:].set_visible(False)
    ax.set_xticks(np.arange(count - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(count - 1) + 0.5, minor=True)
    ax.grid(which="minor", color=background(ax), linewidth=1.2)
    ax.tick_params(which="both", length=0)
