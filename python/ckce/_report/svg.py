"""A few lines of SVG: shapes with classes, whose colours the page's style sheet gives."""

import math
from collections.abc import Iterable
from html import escape

from ckce._input import printable


def harmless(words: str) -> str:
    """Words of a user, as text of a page."""
    return escape(printable(words))


def _n(value: float) -> str:
    """A coordinate to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


class Svg:
    """A picture of fixed size that scales with its place; all text is escaped."""

    def __init__(self, width: float, height: float, label: str) -> None:
        self.width, self.height = width, height
        self._parts = [
            f'<svg viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-label="{harmless(label)}">'
        ]

    def __str__(self) -> str:
        return "".join([*self._parts, "</svg>"])

    def _add(self, shape: str, style: str, title: str) -> None:
        end = f"><title>{harmless(title)}</title></{shape.split()[0]}>" if title else "/>"
        self._parts.append(f'<{shape} class="{style}"{end}')

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """A straight line."""
        self._add(f'line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"', style, "")

    def rect(
        self, x: float, y: float, width: float, height: float, style: str, title: str = ""
    ) -> None:
        """A rectangle from its upper left corner."""
        size = f'width="{_n(max(width, 0.0))}" height="{_n(max(height, 0.0))}"'
        self._add(f'rect x="{_n(x)}" y="{_n(y)}" {size}', style, title)

    def circle(self, x: float, y: float, radius: float, style: str, title: str = "") -> None:
        """A circle."""
        self._add(f'circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"', style, title)

    def path(self, points: Iterable[tuple[float, float]], style: str, title: str = "") -> None:
        """Straight lines from point to point."""
        steps = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        self._add(f'path d="M{steps}"', style, title)

    def text(self, x: float, y: float, words: str, style: str = "", anchor: str = "start") -> None:
        """Words; `anchor` is start, middle or end."""
        place = f'x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"'
        self._parts.append(f'<text {place} class="{style}">{harmless(words)}</text>')


class Axis:
    """Maps an interval of numbers to pixels."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high if high > low else low + 1.0
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self._start + share * (self._end - self._start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers inside the interval."""
        rough = (self.high - self.low) / about
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * k for k in (1, 2, 5, 10) if power * k >= 0.999 * rough)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def shortened(name: str, length: int) -> str:
    """A name that fits, cut in the middle: both ends tell models apart."""
    if len(name) <= length:
        return name
    head = (length - 1) // 2
    return f"{name[:head]}…{name[len(name) - (length - 1 - head) :]}"
