"""The pictures of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ckce._report.svg import Axis, Svg, shortened
from ckce._results import number

if TYPE_CHECKING:
    from ckce._reliability.diagram import ReliabilityCurve

_FEW = 30  # samples of a bin below which their number is written beside the point
COLOURS = 7
TOP_CLASSES = 8


def forest(models: Sequence[dict[str, Any]], level: float) -> Svg:
    """Debiased CKCE with its interval, raw CKCE and floor of each model."""
    left, right, row, top = 210.0, 700.0, 34.0, 34.0
    bottom = top + row * len(models)
    svg = Svg(920, bottom + 40, "debiased CKCE of the models with intervals and floors")
    ends = [
        m[key] for m in models for key in ("low", "high", "ckce", "floor") if m[key] is not None
    ]
    spread = max([*ends, 0.0]) - min([*ends, 0.0])
    axis = Axis(min([*ends, 0.0]) - 0.03 * spread, max([*ends, 0.0]) + 0.03 * spread, left, right)
    ticks = axis.ticks(6)
    digits = max((len(f"{tick:.6g}".partition(".")[2]) for tick in ticks), default=0)
    for tick in ticks:
        x = axis(tick)
        svg.line(x, top - 6, x, bottom, "grid" if abs(tick) > 1e-12 else "zero")
        svg.text(x, bottom + 18, f"{tick:.{digits}f}", "small", "middle")
    svg.text((left + right) / 2, bottom + 36, "CKCE", "small", "middle")
    svg.text(right + 20, top - 14, f"debiased, {100 * level:g} % interval", "small")
    for k, m in enumerate(models):
        y = top + row * (k + 0.5)
        colour = f"c{k % COLOURS}"
        svg.text(left - 14, y + 4, shortened(m["name"], 24), "name", "end")
        svg.line(axis(m["floor"]), y - 10, axis(m["floor"]), y + 10, "floor")
        raw = f"{m['name']}: CKCE {number(m['ckce'])}, floor {number(m['floor'])}"
        svg.circle(axis(m["ckce"]), y, 4, f"hollow {colour}", raw)
        words = number(m["debiased"])
        if m["low"] is not None:
            svg.line(axis(m["low"]), y, axis(m["high"]), y, f"whisker {colour}")
            words += f"  ({number(m['low'])} to {number(m['high'])})"
        svg.circle(axis(m["debiased"]), y, 5, f"dot {colour}", f"{m['name']}: debiased {words}")
        svg.text(right + 20, y + 4, words, "small num")
    return svg


def reliability(curve: ReliabilityCurve, colour: int) -> Svg:
    """Accuracy against confidence above the histogram of confidence."""
    style = f"c{colour % COLOURS}"
    svg = Svg(300, 372, f"reliability diagram of {curve.name}")
    x, y = Axis(0, 1, 40, 290), Axis(0, 1, 262, 12)
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        svg.line(x(tick), y(0), x(tick), y(1), "grid")
        svg.line(x(0), y(tick), x(1), y(tick), "grid")
        svg.text(x(0) - 6, y(tick) + 4, f"{tick:.1f}", "small", "end")
        svg.text(x(tick), 350, f"{tick:.1f}", "small", "middle")
    svg.line(x(0), y(0), x(1), y(1), "diagonal")
    points = list(zip(curve.confidence.tolist(), curve.frequency.tolist(), strict=True))
    low, high = curve.low.tolist(), curve.high.tolist()
    band = [(x(p[0]), y(h)) for p, h in zip(points, high, strict=True)]
    band += [(x(p[0]), y(b)) for p, b in zip(reversed(points), reversed(low), strict=True)]
    svg.path(band, f"band {style}")
    svg.path([(x(c), y(f)) for c, f in points], f"curve {style}")
    total = int(curve.counts.sum())
    for k, (c, f) in enumerate(points):
        count = int(curve.counts[k])
        words = (
            f"confidence {c:.3f}, accuracy {f:.3f} ({low[k]:.3f} to {high[k]:.3f}), n = {count:,}"
        )
        svg.circle(x(c), y(f), 2.5 + 5 * (count / total) ** 0.5, f"dot {style}", words)
        if count < _FEW:
            svg.text(x(c) + 6, y(f) + 12, f"n={count}", "tiny")
    svg.text(46, 24, "accuracy", "small")
    shares = curve.histogram.tolist()
    tallest = max(shares)
    height = Axis(0, tallest, 336, 284)
    for k, share in enumerate(shares):
        lower = k / len(shares)
        words = (
            f"{round(share * total):,} samples with confidence {lower:.2f} to {lower + 0.05:.2f}"
        )
        svg.rect(x(lower) + 0.5, height(share), 11.5, 336 - height(share), f"bar {style}", words)
    svg.line(x(0), 336, x(1), 336, "axis")
    svg.text(34, 293, f"{tallest:.0%}", "small", "end")
    svg.text(165, 368, f"confidence (n = {total:,})", "small", "middle")
    return svg


def classes(name: str, blames: Sequence[Any]) -> Svg:
    """Contributions of the classes to CKCE, the largest first."""
    shown = list(blames[:TOP_CLASSES])
    rest = list(blames[TOP_CLASSES:])
    rows = [
        (str(b.label), b.share, b.direction.split("-")[0], f"{b.mean_residual:+.4f}") for b in shown
    ]
    if rest:
        rows.append((f"{len(rest)} others", sum(b.share for b in rest), "rest", ""))
    svg = Svg(300, 26 + 22 * len(rows), f"contributions of the classes to the CKCE of {name}")
    longest = max([share for _, share, _, _ in rows] + [1e-12])
    x = Axis(0, longest, 92, 206)
    svg.text(92, 12, "share of CKCE", "small")
    svg.text(298, 12, "mean y - q", "small", "end")
    for k, (label, share, direction, residual) in enumerate(rows):
        y = 22 + 22 * k
        svg.text(86, y + 12, shortened(label, 13), "small", "end")
        svg.rect(92, y + 1, x(share) - 92, 14, direction, f"{label}: {share:.1%} of CKCE")
        svg.text(x(share) + 4, y + 12, f"{share:.1%}", "tiny")
        svg.text(298, y + 12, residual, "small num", "end")
    return svg


def heat_map(sensitivity: Any) -> Svg:
    """Share of the significant pairs that keep their order, over bandwidth and lambda."""
    gammas, lambdas = sensitivity.factors
    width, height, left, top = 84.0, 38.0, 150.0, 12.0
    right, bottom = left + width * len(gammas), top + height * len(lambdas)
    svg = Svg(right + 20, bottom + 44, "does the ranking survive other settings")
    shares = sensitivity.agreement.tolist()
    for i, gamma in enumerate(gammas):
        svg.text(left + width * (i + 0.5), bottom + 18, f"x {gamma:g}", "small", "middle")
        for j, lam in enumerate(lambdas):
            share = shares[i * len(lambdas) + j]
            x, y = left + width * i, bottom - height * (j + 1)
            style = "kept" if share >= 1.0 else "half" if share >= 0.75 else "lost"
            svg.rect(x + 1, y + 1, width - 2, height - 2, f"cell {style}")
            svg.text(x + width / 2, y + height / 2 + 4, f"{share:.0%}", "small ink", "middle")
            if i == 0:
                svg.text(left - 10, y + height / 2 + 4, f"x {lam:g}", "small", "end")
    svg.text((left + right) / 2, bottom + 38, "bandwidth", "small", "middle")
    svg.text(left - 60, (top + bottom) / 2 + 4, "lambda", "small", "end")
    return svg
