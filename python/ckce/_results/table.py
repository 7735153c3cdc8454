"""How numbers are said: one result line by line, several under columns; as text and as HTML."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """One result, line by line: a name, a number and a remark.

    A line without a number is a name and a text.
    """

    rows: tuple[tuple[str, str, str], ...]
    signature: str
    heading: str = ""

    def text(self) -> str:
        """For terminals and ``repr``."""
        numbers = aligned([number for _, number, _ in self.rows if number])
        left = iter(numbers)
        width = 2 + max(len("signature"), *(len(name) for name, _, _ in self.rows))
        lines = [self.heading] if self.heading else []
        for name, number, remark in self.rows:
            words = f"{next(left)}  {remark}" if number else remark
            lines.append(f"{name:<{width}}{words}".rstrip())
        return "\n".join([*lines, f"{'signature':<{width}}{self.signature}"])

    def html(self) -> str:
        """For notebooks."""
        from html import escape  # 3 ms that importing ckce should not cost

        cells = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:right;font-variant-numeric:tabular-nums">{escape(number)}</td>'
            f'<td style="text-align:left;opacity:0.7">{escape(remark)}</td></tr>'
            for name, number, remark in self.rows
        )
        caption = f'<caption style="text-align:left">{escape(self.heading)}</caption>'
        return (
            f"<table>{caption if self.heading else ''}<tbody>{cells}</tbody></table>"
            f'<code style="font-size:smaller">{escape(self.signature)}</code>'
        )


def number(value: float | None) -> str:
    """Four decimals, or three digits of what is smaller."""
    if value is None:
        return "-"
    return f"{value:.3g}" if 0.0 < abs(value) < 1e-3 else f"{value:.4f}"


def aligned(numbers: Sequence[str]) -> list[str]:
    """Padded so that the decimal points make a column."""
    halves = [text.partition(".") for text in numbers]
    left = max((len(before) for before, _, _ in halves), default=0)
    right = max((len(after) for _, _, after in halves), default=0)
    return [f"{before:>{left}}{dot or ' '}{after:<{right}}" for before, dot, after in halves]


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Aligned lines, the header first; all but the first `left` columns are flush right."""
    widths = [max(len(row[j]) for row in [header, *rows]) for j in range(len(header))]
    return [
        "  ".join(
            f"{cell:<{width}}" if j < left else f"{cell:>{width}}"
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]
