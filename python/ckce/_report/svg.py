"""A few lines of SVG: shapes with classes, whose colours the page's style sheet gives."""

import math
from collections.abc import Iterable, Iterator, Sequence

from ckce._plots.style import in_digits, round_numbers
from ckce._results import harmless


class Svg:
    """A picture of fixed size that scales with its place; all text is escaped.

    A fluid one has a fixed height and takes its width from its place: its x are per cent, and its
    text keeps its size.
    """

    def __init__(self, width: float, height: float, label: str, *, fluid: bool = False) -> None:
        self._unit = "%" if fluid else ""
        size = f'height="{_n(height)}"' if fluid else f'viewBox="0 0 {_n(width)} {_n(height)}"'
        self._parts = [f'<svg {size} role="img" aria-label="{harmless(label)}">']

    def __str__(self) -> str:
        return "".join([*self._parts, "</svg>"])

    def _x(self, value: float) -> str:
        return f"{_n(value, 2 if self._unit else 1)}{self._unit}"

    def _add(self, shape: str, style: str, title: str) -> None:
        end = f"><title>{harmless(title)}</title></{shape.split()[0]}>" if title else "/>"
        self._parts.append(f'<{shape} class="{style}"{end}')

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """A straight line."""
        ends = f'x1="{self._x(x1)}" y1="{_n(y1)}" x2="{self._x(x2)}" y2="{_n(y2)}"'
        self._add(f"line {ends}", style, "")

    def rect(
        self, x: float, y: float, width: float, height: float, style: str, title: str = ""
    ) -> None:
        """A rectangle from its upper left corner."""
        size = f'width="{self._x(max(width, 0.0))}" height="{_n(max(height, 0.0))}"'
        self._add(f'rect x="{self._x(x)}" y="{_n(y)}" {size}', style, title)

    def circle(self, x: float, y: float, radius: float, style: str, title: str = "") -> None:
        """A circle."""
        self._add(f'circle cx="{self._x(x)}" cy="{_n(y)}" r="{_n(radius)}"', style, title)

    def strip(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        mark: tuple[float, float],
        style: str,
        title: str,
    ) -> None:
        """A place to point at: it says its title, and its mark shows."""
        place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0.0))}" height="{_n(height)}"'
        dot = f'<circle class="dot {style}" cx="{_n(mark[0])}" cy="{_n(mark[1])}" r="3.5"/>'
        words = f"<title>{harmless(title)}</title>"
        self._parts.append(f'<g class="hit"><rect {place}/>{dot}{words}</g>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """A line with a head, which is left out of short ones."""
        length = math.hypot(x2 - x1, y2 - y1)
        steps = f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}"
        if length > 2.0:
            across, along = (x2 - x1) / length, (y2 - y1) / length
            head = min(5.0, length)
            for side in (0.5, -0.5):
                x = x2 - head * (across - side * along)
                y = y2 - head * (along + side * across)
                steps += f"M{_n(x2)} {_n(y2)}L{_n(x)} {_n(y)}"
        self._parts.append(f'<path class="{style}" d="{steps}"/>')

    def path(self, points: Iterable[tuple[float, float]], style: str) -> None:
        """Straight lines from point to point; not in fluid pictures."""
        steps = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        self._add(f'path d="M{steps}"', style, "")

    def square(self, x: "Axis", y: "Axis", ticks: Sequence[float], below: float) -> None:
        """The grid and the diagonal of a picture of probabilities, and their ticks in words."""
        for tick, words in zip(ticks, in_digits(ticks), strict=True):
            self.line(x(tick), y(y.low), x(tick), y(y.high), "tick")
            self.line(x(x.low), y(tick), x(x.high), y(tick), "tick")
            self.text(x(x.low) - 6, y(tick) + 4, words, "end")
            self.text(x(tick), below, words, "middle")
        self.line(x(x.low), y(y.low), x(x.high), y(y.high), "diagonal")

    def columns(self, x: "Axis", shares: Sequence[float]) -> Iterator[tuple[int, float, float]]:
        """Number, left and right end of each column of a histogram from 0 to 1 that is in sight."""
        for k in range(len(shares)):
            left, right = max(k / len(shares), x.low), min((k + 1) / len(shares), x.high)
            if left < right:
                yield k, x(left) + 0.5, x(right) - 0.5

    def text(self, x: float, y: float, words: str, anchor: str = "start", style: str = "") -> None:
        """Words; `anchor` is start, middle or end."""
        place = f'x="{self._x(x)}" y="{_n(y)}" text-anchor="{anchor}"'
        look = f' class="{style}"' if style else ""
        self._parts.append(f"<text {place}{look}>{harmless(words)}</text>")


def _n(value: float, digits: int = 1) -> str:
    """A coordinate to a tenth of a pixel."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


class Axis:
    """Maps an interval of numbers to pixels."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high if high > low else low + 1.0
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self._start + share * (self._end - self._start)

    def cut(self, value: float) -> float:
        """Where a value is, or the end that it is beyond."""
        return self(min(max(value, self.low), self.high))

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers inside the interval."""
        edge = 1e-9 * (self.high - self.low)
        every = round_numbers(self.low, self.high, about)
        return [tick for tick in every if self.low - edge <= tick <= self.high + edge]
