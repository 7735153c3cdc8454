"""The pictures of the report.

They share their numbers with those of `_plots`, and nothing else: a page that needs no script and fits
phones and paper, light and dark, has its shapes from SVG and HTML and its colours from CSS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckce._plots.style import in_digits
from ckce._report.svg import Axis, Svg
from ckce._results import breakable, cut, form_of, harmless, in_words, number, shortened

if TYPE_CHECKING:
    from ckce._compare.comparison import ComparedModel
    from ckce._compare.sensitivity import Sensitivity
    from ckce._metrics.segments import Segment
    from ckce._reliability.diagram import ReliabilityCurve
    from ckce._results.attribution import Attribution

_FEW = 30  # samples of a bin below which their number is written beside the point
COLOURS = 14
TOP_CLASSES = 8


def forest(
    models: Sequence[ComparedModel | Segment], level: float, colours: Sequence[int] | None = None
) -> str:
    """Debiased CKCE with its interval, raw CKCE and floor of each model, or of its segments."""
    colours = range(len(models)) if colours is None else colours
    ends = [
        x
        for m in models
        for x in (m.ckce_low, m.ckce_high, m.ckce, m.ckce_floor, m.ckce_debiased, 0.0)
        if x is not None and math.isfinite(x)
    ]
    margin = 0.03 * (max(ends) - min(ends))
    axis = Axis(min(ends) - margin, max(ends) + margin, 4, 96)
    form = form_of([m.ckce_debiased for m in models])
    names = shortened(m.name for m in models)
    rows = [
        f'<div class="row"><b>{named(m.name, names[m.name])}</b>'
        f'<div class="words">{harmless(_value(m, form))}</div>'
        f'<div class="strip">{_strip(m, axis, level, f"c{k % COLOURS}")}</div></div>'
        for k, m in zip(colours, models, strict=True)
    ]
    letters = max(map(len, names.values()))
    return (
        f'<div style="--letters:{letters}ch">{"".join(rows)}'
        f'<div class="row"><div class="strip">{_scale(axis)}</div></div></div>'
    )


def named(full: str, words: str) -> str:
    """Words in the place of a name, which they say when they are pointed at."""
    if words == full:
        return breakable(full)
    return f'<abbr title="{harmless(full)}">{breakable(words)}</abbr>'


def _value(m: ComparedModel | Segment, form: str) -> str:
    """Debiased CKCE and its interval, as they stand beside the strip."""
    if not math.isfinite(m.ckce_low) or not math.isfinite(m.ckce_high):
        return number(m.ckce_debiased, form)
    ends = cut(m.ckce_low, m.ckce_high)
    words = "no sign" if ends is None else " to ".join(number(end, form) for end in ends)
    return f"{number(m.ckce_debiased, form)} ({words})"


def _strip(m: ComparedModel | Segment, axis: Axis, level: float, colour: str) -> Svg:
    words = f"debiased CKCE of {m.name}: {number(m.ckce_debiased)}"
    if math.isfinite(m.ckce_low):
        words += f", {in_words(m.ckce_low, m.ckce_high, level)}"
    height, y = 34.0, 17.0
    svg = Svg(100, height, words, fluid=True)
    for tick in _ticks(axis):
        svg.line(axis(tick), 0, axis(tick), height, "tick" if abs(tick) > 1e-12 else "zero")
    raw = f"{m.name}: CKCE {number(m.ckce)}"
    if m.ckce_floor is not None:
        svg.line(axis(m.ckce_floor), y - 10, axis(m.ckce_floor), y + 10, "floor")
        raw += f", floor {number(m.ckce_floor)}"
    svg.circle(axis(m.ckce), y, 4, f"hollow {colour}", raw)
    if math.isfinite(m.ckce_low):
        svg.line(axis(m.ckce_low), y, axis(m.ckce_high), y, f"whisker {colour}")
    svg.circle(axis(m.ckce_debiased), y, 5, f"dot {colour}", words)
    return svg


def _scale(axis: Axis) -> Svg:
    svg = Svg(100, 22, "scale of CKCE", fluid=True)
    ticks = _ticks(axis)
    for tick, words in zip(ticks, in_digits(ticks), strict=True):
        svg.text(axis(tick), 15, words, "middle")
    return svg


def _ticks(axis: Axis) -> list[float]:
    """A few round numbers; one alone is no scale."""
    few = axis.ticks(4)
    return few if len(few) > 1 else axis.ticks(8)


def reliability(curve: ReliabilityCurve, colour: int, ticks: Sequence[float]) -> Svg:
    """Accuracy against confidence above the histogram of confidence."""
    style = f"c{colour % COLOURS}"
    svg = Svg(312, 372, f"reliability diagram of {curve.name}")
    x, y = Axis(ticks[0], ticks[-1], 46, 296), Axis(ticks[0], ticks[-1], 262, 12)
    svg.square(x, y, ticks, below=350)
    _curve(svg, curve, x, y, style)
    svg.text(52, 24, "accuracy")
    _histogram(svg, curve, x, style)
    svg.text(171, 368, f"confidence (n = {int(curve.counts.sum()):,})", "middle")
    return svg


def _curve(svg: Svg, curve: ReliabilityCurve, x: Axis, y: Axis, style: str) -> None:
    points = list(zip(curve.confidence.tolist(), curve.frequency.tolist(), strict=True))
    low, high = curve.low.tolist(), curve.high.tolist()
    band = [(x(p[0]), y.cut(h)) for p, h in zip(points, high, strict=True)]
    band += [(x(p[0]), y.cut(b)) for p, b in zip(reversed(points), reversed(low), strict=True)]
    if len(points) == 1:
        svg.line(*band[1], *band[0], f"whisker {style}")
    else:
        svg.path(band, f"band {style}")
        svg.path([(x(c), y(f)) for c, f in points], f"curve {style}")
    total = int(curve.counts.sum())
    written: list[tuple[float, float]] = []
    for k, (c, f) in enumerate(points):
        count = int(curve.counts[k])
        words = (
            f"confidence {c:.3f}, accuracy {f:.3f} ({low[k]:.3f} to {high[k]:.3f}), n = {count:,}"
        )
        svg.circle(x(c), y(f), 2.5 + 5 * (count / total) ** 0.5, f"dot {style}", words)
        # Numbers that would lie on another one are left out, and none sticks out.
        side, anchor = (-6, "end") if x(c) > 261 else (6, "start")
        left, top = x(c) + (6 if side > 0 else -34), y(f) + 12
        if count < _FEW and all(abs(left - a) > 30 or abs(top - b) > 12 for a, b in written):
            written.append((left, top))
            svg.text(x(c) + side, top, f"n={count}", anchor, "tiny")


def _histogram(svg: Svg, curve: ReliabilityCurve, x: Axis, style: str) -> None:
    shares, total = curve.histogram.tolist(), int(curve.counts.sum())
    tallest, width = max(shares), 1 / len(shares)
    height = Axis(0, tallest, 336, 284)
    for k, left, right in svg.columns(x, shares):
        share = shares[k]
        words = (
            f"{round(share * total):,} samples with confidence {k * width:.2f} to "
            f"{(k + 1) * width:.2f}"
        )
        svg.rect(left, height(share), right - left, 336 - height(share), f"column {style}", words)
    svg.line(x(x.low), 336, x(x.high), 336, "axis")
    svg.text(40, 293, f"{tallest:.0%}", "end")


def classes(name: str, blames: Attribution) -> str:
    """Contributions of the classes to CKCE, the largest first."""
    rest = blames.rows[TOP_CLASSES:]
    rows = [
        (str(b.label), b.share, b.direction.split("-")[0], f"{b.mean_residual:+.4f}")
        for b in blames.rows[:TOP_CLASSES]
    ]
    if rest:
        rows.append((f"{len(rest)} others", sum(b.share for b in rest), "rest", ""))
    longest = max([share for _, share, _, _ in rows] + [1e-12])
    body = "".join(
        f'<tr><th>{harmless(label)}</th><td class="bar"><i class="{direction}" '
        f'style="width:{62 * share / longest:.1f}%"></i>{share:.1%}</td><td>{residual}</td></tr>'
        for label, share, direction, residual in rows
    )
    return (
        f'<table class="classes" aria-label="{harmless(f"classes of {name}")}"><thead><tr>'
        '<th>class</th><th class="bar">share of CKCE</th><th>mean y - q</th></tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def heat_map(sensitivity: Sensitivity) -> str:
    """Share of the verdicts that keep their sign, over bandwidth and lambda."""
    of_bandwidth, of_lambda = sensitivity.factors
    head = "".join(f"<th>lambda x {factor:g}</th>" for factor in of_lambda)
    rows = "".join(
        f"<tr><th>bandwidth x {factor:g}</th>"
        + "".join(f'<td class="{_kept(share)}">{share:.0%}</td>' for share in shares)
        + "</tr>"
        for factor, shares in zip(of_bandwidth, sensitivity.grid.tolist(), strict=True)
    )
    return (
        f'<div class="scroll"><table class="heat"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _kept(share: float) -> str:
    return "kept" if share >= 1.0 else "half" if share >= 0.75 else "lost"
