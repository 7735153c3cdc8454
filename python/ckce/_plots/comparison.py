"""Pictures of comparisons and shift curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ckce._plots.reliability import COLOURS, MARKERS, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ckce._compare.comparison import Comparison
    from ckce._compare.sensitivity import Sensitivity
    from ckce._compare.shift import ShiftCurve

_BLUE, _ORANGE, _GREY = COLOURS[0], COLOURS[1], "0.55"


def _matplotlib() -> tuple[Any, Any]:
    try:
        import matplotlib as mpl
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install matplotlib") from None
    return mpl, plt


def forest(comparison: Comparison, ax: Axes | None) -> Axes:
    """Models from the best (top) down: debiased value with interval, raw value, floor."""
    mpl, plt = _matplotlib()
    models = comparison.models
    with mpl.rc_context(STYLE):
        if ax is None:
            size = (5.2, 0.9 + 0.26 * len(models))
            ax = plt.figure(figsize=size, layout="constrained").add_subplot()
        rows = np.arange(len(models))
        debiased = np.array([m.debiased for m in models])
        spans = np.array([[m.debiased - m.low, m.high - m.debiased] for m in models]).T
        ax.axvline(0, color=_GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        ax.scatter(
            [m.floor for m in models],
            rows,
            marker="|",
            s=60,
            color=_ORANGE,
            linewidths=1.3,
            label="floor of CKCE",
            zorder=2,
        )
        ax.scatter(
            [m.ckce for m in models],
            rows,
            s=14,
            facecolors="white",
            edgecolors=_GREY,
            linewidths=0.9,
            label="CKCE",
            zorder=3,
        )
        ax.errorbar(
            debiased,
            rows,
            xerr=spans,
            fmt="o",
            color=_BLUE,
            markersize=4.5,
            elinewidth=1.3,
            capsize=2.5,
            label=f"debiased, {100 * comparison.level:g} % interval",
            zorder=4,
        )
        ax.set_yticks(rows, [m.name for m in models])
        ax.set_ylim(len(models) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.grid(axis="y", color="0.92", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.set_xlabel("Conditional kernel calibration error (better to the left)")
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
    return ax


def matrix(comparison: Comparison, ax: Axes | None) -> Axes:
    """Row minus column in debiased CKCE, over its standard error."""
    mpl, plt = _matplotlib()
    names = comparison.names
    count = len(names)
    position = {name: row for row, name in enumerate(names)}
    z = np.full((count, count), np.nan)
    with mpl.rc_context(STYLE):
        if ax is None:
            side = 1.8 + 0.42 * count
            ax = plt.figure(figsize=(side + 0.6, side), layout="constrained").add_subplot()
        for pair in comparison.pairs:
            a, b = position[pair.better], position[pair.worse]
            score = pair.difference / pair.se if pair.se > 0 else 0.0
            z[b, a], z[a, b] = score, -score
        limit = 5.0
        image = ax.imshow(z, cmap="RdBu_r", vmin=-limit, vmax=limit)
        decimals = _decimals([pair.difference for pair in comparison.pairs])
        for pair in comparison.pairs:
            a, b = position[pair.better], position[pair.worse]
            for row, column, sign in ((b, a, 1), (a, b, -1)):
                dark = abs(z[row, column]) > 0.6 * limit
                ax.text(
                    column,
                    row,
                    f"{sign * pair.difference * 10**decimals:+.1f}",
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    fontweight="bold" if pair.significant else "normal",
                    color="white" if dark else ("black" if pair.significant else "0.35"),
                )
        ax.set_xticks(range(count), names, rotation=45, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(count), names)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_xticks(np.arange(count - 1) + 0.5, minor=True)
        ax.set_yticks(np.arange(count - 1) + 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=1.2)
        ax.tick_params(which="minor", length=0)
        unit = f" in $10^{{-{decimals}}}$" if decimals else ""
        ax.set_title(
            f"Debiased CKCE, row minus column{unit}\nbold: significant (Holm)",
            fontsize=8,
            loc="left",
        )
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02)
        bar.set_label("difference / standard error", fontsize=8)
        bar.outline.set_visible(False)
    return ax


def _decimals(numbers: list[float]) -> int:
    """Power of ten that leaves the largest of them with one or two digits before the point."""
    largest = max(map(abs, numbers), default=0.0)
    return 0 if largest == 0.0 or largest >= 10 else int(np.ceil(1 - np.log10(largest)))


def heat_map(sensitivity: Sensitivity, ax: Axes | None) -> Axes:
    """Agreement with the comparison over the factors of bandwidth (down) and lambda (right)."""
    mpl, plt = _matplotlib()
    of_bandwidth, of_lambda = sensitivity.factors
    shape = (len(of_bandwidth), len(of_lambda))
    share = sensitivity.agreement[: shape[0] * shape[1]].reshape(shape)
    best = sensitivity.debiased[: shape[0] * shape[1]].argmin(axis=1).reshape(shape)
    with mpl.rc_context(STYLE):
        if ax is None:
            size = (2.2 + 0.62 * shape[1], 1.3 + 0.42 * shape[0])
            ax = plt.figure(figsize=size, layout="constrained").add_subplot()
        ax.imshow(share, cmap="Blues", vmin=0.0, vmax=1.25, aspect="auto")
        for row in range(shape[0]):
            for column in range(shape[1]):
                kept = share[row, column]
                ax.text(
                    column,
                    row,
                    f"{kept:.0%}" + ("" if best[row, column] == 0 else " *"),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if kept > 0.75 else "black",
                )
        ax.set_xticks(range(shape[1]), [f"{factor:g}" for factor in of_lambda])
        ax.set_yticks(range(shape[0]), [f"{factor:g}" for factor in of_bandwidth])
        ax.set_xlabel(r"$\lambda$, factor of the comparison's")
        ax.set_ylabel("bandwidth, factor")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_title(
            "Significant pairs that keep their order"
            + ("" if (best == 0).all() else "; * other winner"),
            fontsize=8,
            loc="left",
        )
    return ax


def shift_panels(curve: ShiftCurve, axes: Any, xlabel: str) -> Any:
    """Three axes: CKCE (raw dashed, debiased with its interval), JKCE with its interval, ECE."""
    mpl, plt = _matplotlib()
    with mpl.rc_context(STYLE):
        if axes is None:
            figure = plt.figure(figsize=(7.2, 2.5), layout="constrained")
            axes = figure.subplots(1, 3, sharex=True)
        if len(axes) != 3:
            raise ValueError(f"axes must be three axes, got {len(axes)}")
        words = any(isinstance(shift, str) for shift in curve.shifts)
        x: Any = np.arange(len(curve.shifts)) if words else np.array(curve.shifts, dtype=float)
        columns = {
            name: {
                metric: curve.values(metric)[name] for metric in ("ckce", "debiased", "jkce", "ece")
            }
            for name in curve.names
        }
        for number, name in enumerate(curve.names):
            style = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": MARKERS[number % len(MARKERS)],
                "markersize": 3.2,
                "linewidth": 1.2,
            }
            points = [point for point in curve.points if point.model == name]
            bands = (
                ([p.low for p in points], [p.high for p in points]),
                ([p.jkce_low for p in points], [p.jkce_high for p in points]),
            )
            axes[0].plot(
                x, columns[name]["ckce"], color=style["color"], linewidth=0.9, linestyle="--"
            )
            for ax, metric in zip(axes, ("debiased", "jkce", "ece"), strict=True):
                ax.plot(x, columns[name][metric], label=name, **style)
            for ax, (low, high) in zip(axes, bands, strict=False):
                ax.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0)
        titles = ("Debiased CKCE (dashed: CKCE)", "JKCE", "ECE, top label")
        for ax, title in zip(axes, titles, strict=True):
            ax.set_title(title, fontsize=9)
            ax.set_xlabel(xlabel)
            ax.spines[["top", "right"]].set_visible(False)
            ax.margins(x=0.03)
            ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
            if words:
                ax.set_xticks(x, [str(shift) for shift in curve.shifts], rotation=45, ha="right")
        axes[2].legend(loc="best", handlelength=1.6)
    return axes
