"""The section of the report that says where a model is off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ckce._plots.style import INSIDE
from ckce._report.svg import Axis, Svg
from ckce._results import harmless, percent, short

if TYPE_CHECKING:
    from ckce._metrics.views import CorrectionArrows, CorrectionCurve, Where

_TALL = 318.0
_HISTOGRAM = 0.2  # its height, as a share of the square
_CORNERS = ((20.0, 258.0), (280.0, 258.0), (150.0, 258.0 - 130.0 * math.sqrt(3.0)))


def where_section(where: Where, colour: int, ticks: Sequence[float]) -> str:
    """Regions in words, then the pictures of one model."""
    style = f"c{colour}"
    figures = [
        _figure(_title(where, each.name), curve(each, style, ticks), each.level)
        for each in where.curves
    ]
    if where.arrows is not None:
        figures.insert(0, _figure("all three classes", arrows(where.arrows, style), None))
    drawn = [each.frequency.tolist() for each in where.curves]
    figures += [
        _figure(_class(each.name), curve(each, style, ticks), each.level)
        for each in where.classes
        if each.frequency.tolist() not in drawn  # the classes of sorted choices are ranks
    ]
    return f'{where._repr_html_()}<div class="grid">{"".join(figures)}</div>'


def one_prediction(where: Where) -> str:
    """A model that always predicts the same has one region at most, and no curve."""
    lines = zip(where.lines, where.regions, strict=True)
    off = "".join(f" {line}" for line, region in lines if region.shown)
    return f"<p>The model makes one prediction, whatever the case.{harmless(off)}</p>"


def _title(where: Where, name: str) -> str:
    return _class(name) if where.two_classes else f"the {name}"


def _class(name: str) -> str:
    return short(name) if name.startswith("rank ") else f"class {short(name)}"


def _figure(title: str, picture: Svg, level: float | None) -> str:
    note = (
        "arrows lead to the frequencies that the labels show; pale ones may be chance"
        if level is None
        else f"frequency against probability, {percent(level)} band"
    )
    return (
        f"<figure><figcaption>{harmless(title)} <span>{note}</span></figcaption>{picture}</figure>"
    )


def curve(shown: CorrectionCurve, style: str, ticks: Sequence[float]) -> Svg:
    """Frequency against probability with its band, over the histogram."""
    svg = Svg(312, _TALL, f"smooth reliability curve: {shown.name}")
    x, y = Axis(ticks[0], ticks[-1], 46, 296), Axis(ticks[0], ticks[-1], 270, 12)
    shares = shown.histogram.tolist()
    height = Axis(0, max([*shares, 1e-12]), 0, _HISTOGRAM * (270 - 12))
    for k, left, right in svg.columns(x, shares):
        if shares[k] > 0.0:
            svg.rect(left, 270 - height(shares[k]), right - left, height(shares[k]), "cases")
    svg.square(x, y, ticks, below=286)
    points = list(
        zip(
            shown.probability.tolist(),
            shown.frequency.clip(0.0, 1.0).tolist(),
            shown.low.clip(0.0, 1.0).tolist(),
            shown.high.clip(0.0, 1.0).tolist(),
            strict=True,
        )
    )
    if len(points) == 1:
        p, f, low, high = points[0]
        svg.line(x(p), y(low), x(p), y(high), f"whisker {style}")
        svg.circle(x(p), y(f), 5, f"dot {style}")
    else:
        band = [(x(p), y.cut(high)) for p, _, _, high in points]
        band += [(x(p), y.cut(low)) for p, _, low, _ in reversed(points)]
        svg.path(band, f"band {style}")
        svg.path([(x(p), y(f)) for p, f, _, _ in points], f"curve {style}")
    _hover(svg, points, x, y, style)
    svg.text(171, 306, f"predicted probability (n = {shown.n_samples:,})", "middle")
    return svg


def _hover(
    svg: Svg, points: Sequence[tuple[float, float, float, float]], x: Axis, y: Axis, style: str
) -> None:
    """Strips that say what the curve is there; the mark in each shows while it is pointed at."""
    middles = [x(x.low), *((x(a[0]) + x(b[0])) / 2 for a, b in pairwise(points))]
    ends = [*middles[1:], x(x.high)]
    for (p, f, low, high), left, right in zip(points, middles, ends, strict=True):
        words = f"says {p:.3f}, is {f:.3f} ({low:.3f} to {high:.3f})"
        svg.strip(left, 12, right - left, 270 - 12, (x(p), y(f)), style, words)


def arrows(shown: CorrectionArrows, style: str) -> Svg:
    """The simplex of three classes, its corners the classes."""
    svg = Svg(300, _TALL - 18, "corrections on the simplex of three classes")
    for t in (0.2, 0.4, 0.6, 0.8):
        for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            (x1, y1), (x2, y2) = _mix(t, a, b), _mix(t, a, c)
            svg.line(x1, y1, x2, y2, "tick")
    for a, b in ((0, 1), (1, 2), (2, 0)):
        svg.line(*_CORNERS[a], *_CORNERS[b], "axis")
    most = max([*shown.share.tolist(), 1e-12])
    rows = zip(
        shown.start.tolist(),
        shown.end.tolist(),
        shown.shown.tolist(),
        shown.share.tolist(),
        strict=True,
    )
    for start, end, sure, share in rows:
        says, is_ = (" / ".join(f"{value:.2f}" for value in each) for each in (start, end))
        words = f"says {says}, is {is_}; {100 * share:.1f} % of cases"
        x1, y1 = _place(start)
        svg.circle(x1, y1, 3 + 5 * math.sqrt(share / most), "cases", words)
        svg.arrow(x1, y1, *_place(end), f"arrow {style}" if sure else "arrow pale")
    names = [short(str(label), INSIDE) for label in shown.labels]
    svg.text(_CORNERS[0][0] - 10, 276, names[0], "start")
    svg.text(_CORNERS[1][0] + 10, 276, names[1], "end")
    svg.text(_CORNERS[2][0], _CORNERS[2][1] - 8, names[2], "middle")
    svg.text(150, 294, f"n = {shown.n_samples:,}", "middle")
    return svg


def _place(q: Sequence[float]) -> tuple[float, float]:
    """The point of a prediction, whatever its corrected entries sum to."""
    x = sum(weight * corner[0] for weight, corner in zip(q, _CORNERS, strict=True))
    y = sum(weight * corner[1] for weight, corner in zip(q, _CORNERS, strict=True))
    return x, y


def _mix(t: float, a: int, b: int) -> tuple[float, float]:
    (x1, y1), (x2, y2) = _CORNERS[a], _CORNERS[b]
    return t * x1 + (1 - t) * x2, t * y1 + (1 - t) * y2
