"""How numbers are said: one list of columns becomes text, the lines of a terminal, and HTML."""

import importlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ckce._input.words import printable
from ckce._results.names import shortened

#: Characters of a line of text.
WIDTH = 100
ROUNDING = 1e-15  # an end of an interval below it is 0
#: Paints words on a terminal: (style, words) -> words; the styles are bold, dim and yellow.
Paint = Callable[[str, str], str]

_LEFT = "text-align:left"
_RIGHT = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"


def plain(_: str, words: str) -> str:
    """Words without paint."""
    return words


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    title : str
        What stands above it.
    keys : tuple of str
        Where a row has its value: one key, or those of both ends of an interval. The same word
        is the field of the result, the key in dicts and JSON, and the column in frames.
    unit : str
        Numbers of one unit have the same decimals, across columns too; words have none.
    form : str
        Format of a number that needs no common decimals, such as ``.1%``.
    strong : bool
        Whether the eye should go here first.
    """

    title: str
    keys: tuple[str, ...]
    unit: str = ""
    form: str = ""
    strong: bool = False

    @property
    def words(self) -> bool:
        """Whether it holds words, which are flush left."""
        return not self.unit and not self.form


@dataclass(frozen=True)
class Table:
    """Rows under columns, with what is said above and below; the columns that matter come first.

    Columns without a single value are left out. A narrow window shows the first columns.
    """

    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any], ...]
    heading: str = ""
    lead: str = ""  # the result in a sentence
    notes: tuple[str, ...] = ()
    cautions: tuple[tuple[str, str], ...] = ()  # name, message
    signature: str = ""

    def cells(self) -> list[tuple[Column, list[str]]]:
        """The columns that are shown, and their cells as text."""
        shown = [
            c for c in self.columns if any(row[k] is not None for row in self.rows for k in c.keys)
        ]
        values: dict[str, list[float]] = {}
        for column in shown:
            numbers = [row[key] for row in self.rows for key in column.keys]
            values.setdefault(column.unit, []).extend(
                x for x in numbers if column.unit and x is not None
            )
        forms = {unit: form_of(numbers) for unit, numbers in values.items()}
        return [
            (column, [_cell(column, row, column.form or forms[column.unit]) for row in self.rows])
            for column in shown
        ]

    def lines(self, width: int | None = None, paint: Paint = plain) -> list[str]:
        """The header and the rows, as many columns of them as fit, and which ones do not.

        Long names are shortened where not all columns fit.
        """
        cells = self.cells()
        if width is not None and span(_lines(cells)[0]) > width and cells[0][0].words:
            column, names = cells[0]
            brief = shortened(names, 2 * width // 5)
            cells[0] = column, [brief[name] for name in names]
        lines = _lines(cells, paint)
        hidden: list[str] = []
        while width is not None and len(cells) > 2 and span(_lines(cells)[0]) > width:
            hidden.insert(0, cells[-1][0].title)
            cells = cells[:-1]
            lines = _lines(cells, paint)
        if width is not None and hidden:
            words = f"not shown here: {', '.join(hidden)}; a wider window or --json shows them"
            lines += [paint("dim", line) for line in wrapped(words, width)]
        return lines

    def text(self, width: int | None = None, paint: Paint = plain) -> str:
        """For terminals and ``repr``; sentences are broken at words."""
        limit = WIDTH if width is None else width
        parts = [*wrapped(self.heading, limit), *self.lines(width, paint)]
        below = [*(paint("bold", line) for line in wrapped(self.lead, limit))]
        for note in self.notes:
            below += wrapped(note, limit)
        for name, message in self.cautions:
            first, *more = wrapped(f"caution ({name}): {message}", limit)
            label = f"caution ({name}):"
            below += [first.replace(label, paint("yellow", label), 1), *more]
        if below:
            parts += ["", *below]
        if self.signature:
            parts.append(paint("dim", f"signature {self.signature}"))
        return "\n".join(parts)

    def html(self) -> str:
        """For notebooks and the report."""
        cells = self.cells()
        head = "".join(
            f'<th style="{_LEFT if c.words else "text-align:right"}">{harmless(c.title)}</th>'
            for c, _ in cells
        )
        body = "".join(
            "<tr>"
            + "".join(_html_cell(j, c, words[row]) for j, (c, words) in enumerate(cells))
            + "</tr>"
            for row in range(len(self.rows))
        )
        parts = [
            '<table cellpadding="4">',
            f'<caption style="{_LEFT}">{harmless(self.heading)}</caption>' if self.heading else "",
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
            f"<p><strong>{harmless(self.lead)}</strong></p>" if self.lead else "",
            *(f"<p>{harmless(note)}</p>" for note in self.notes),
            *(
                f"<p><strong>Caution, {harmless(name)}</strong>: {harmless(message)}</p>"
                for name, message in self.cautions
            ),
            _html_signature(self.signature) if self.signature else "",
        ]
        return "".join(parts)


@dataclass(frozen=True)
class Facts:
    """One result, line by line: a name, a number and a remark.

    A line without a number is a name and a text.
    """

    rows: tuple[tuple[str, str, str], ...]
    signature: str = ""
    heading: str = ""

    def text(self, width: int | None = None, paint: Paint = plain) -> str:
        """For terminals and ``repr``; remarks are broken at words."""
        left = iter(aligned([number for _, number, _ in self.rows if number]))
        name_width = 2 + max(len("signature"), *(span(name) for name, _, _ in self.rows))
        lines = [paint("bold", self.heading)] if self.heading else []
        for name, number, remark in self.rows:
            start = padded(name, name_width)
            if number:
                start += next(left) + "  "
            first, *more = wrapped(remark, (WIDTH if width is None else width) - span(start)) or [
                ""
            ]
            lines.append((start + first).rstrip())
            lines += [" " * span(start) + line for line in more]
        if self.signature:
            lines.append(padded("signature", name_width) + paint("dim", self.signature))
        return "\n".join(lines)

    def html(self) -> str:
        """For notebooks."""
        cells = "".join(
            f'<tr><th style="{_LEFT}">{harmless(name)}</th><td style="{_RIGHT}">{harmless(number)}</td>'
            f'<td style="{_LEFT};opacity:0.7">{harmless(remark)}</td></tr>'
            for name, number, remark in self.rows
        )
        caption = f'<caption style="{_LEFT}">{harmless(self.heading)}</caption>'
        return (
            f'<table cellpadding="4">{caption if self.heading else ""}<tbody>{cells}</tbody></table>'
            f"{_html_signature(self.signature) if self.signature else ''}"
        )


class Said:
    """A result that prints as text and shows as HTML in notebooks."""

    def _said(self) -> Table | Facts:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._said().text()

    def _repr_html_(self) -> str:
        return self._said().html()


def form_of(values: Iterable[float]) -> str:
    """The format that numbers share: four decimals, or three digits of the largest."""
    sizes = [abs(x) for x in values if math.isfinite(x) and x != 0]
    if not sizes:
        return ".4f"
    decimals = max(4, 2 - math.floor(math.log10(max(sizes))))
    return f".{decimals}f" if decimals <= 7 else ".2e"


def number(value: float | None, form: str = "") -> str:
    """A number by itself: four decimals, or three digits of what is smaller."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return str(value)
    return _signed(f"{value:{form or form_of([value])}}")


def _signed(words: str) -> str:
    """Without the sign of a zero."""
    return words.removeprefix("-") if words.strip("-0.%") == "" else words


def _cell(column: Column, row: Mapping[str, Any], form: str) -> str:
    values = [row[key] for key in column.keys]
    if any(value is None for value in values):
        return "-"
    if column.words:
        return printable(str(values[0]))
    if len(values) == 2:
        ends = cut(*values)
        return "no sign" if ends is None else " to ".join(number(end, form) for end in ends)
    return number(values[0], form)


def cut(low: float, high: float) -> tuple[float, float] | None:
    """The part of an interval at or above 0, where the population value lies; None if there is none.

    The ends of a result are never cut: only words and tables are.
    """
    return None if high <= ROUNDING else (max(low, 0.0), high)


def span(words: str) -> int:
    """Columns of a terminal that words take: two for a Chinese character."""
    if words.isascii():
        return len(words)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in words)


def padded(words: str, width: int, right: bool = False) -> str:
    """Filled up with spaces."""
    space = " " * (width - span(words))
    return space + words if right else words + space


def wrapped(words: str, width: int = WIDTH, indent: int = 2) -> list[str]:
    """Lines of a sentence, broken at words; later ones are indented. A number keeps its unit."""
    lines: list[str] = []
    for word in re.split(r" (?!%|points\b)", printable(words)) if words else []:
        if lines and span(lines[-1]) + 1 + span(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(" " * indent + word if lines else word)
    return lines


def aligned(numbers: Sequence[str]) -> list[str]:
    """Padded so that the decimal points make a column."""
    halves = [text.partition(".") for text in numbers]
    left = max((len(before) for before, dot, _ in halves if dot or before.isdigit()), default=0)
    right = max((len(after) for _, _, after in halves), default=0)
    width = max([left + 1 + right, *map(len, numbers)]) if numbers else 0
    return [
        f"{before:>{width - right - 1}}{dot or ' '}{after:<{right}}"
        if dot or before.isdigit()
        else f"{before:>{width}}"
        for before, dot, after in halves
    ]


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Aligned lines, the header first; all but the first `left` columns are flush right."""
    widths = [max(span(row[j]) for row in [header, *rows]) for j in range(len(header))]
    return [
        "  ".join(
            padded(cell, width, right=j >= left)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]


def _lines(cells: Sequence[tuple[Column, Sequence[str]]], paint: Paint = plain) -> list[str]:
    columns = []
    for column, words in cells:
        width = max(map(span, [column.title, *words]))
        title, *rest = (padded(w, width, right=not column.words) for w in [column.title, *words])
        columns.append(
            [paint("bold", title), *(paint("bold", w) if column.strong else w for w in rest)]
        )
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def harmless(words: str) -> str:
    """Words of a user, as text of a page."""
    from html import escape  # 3 ms that importing ckce should not cost

    return escape(printable(words))


def breakable(name: str) -> str:
    """A name as text of a page; a line may end behind an underscore."""
    return harmless(name).replace("_", "_<wbr>")


def _side(column: Column) -> str:
    return _LEFT if column.words else _RIGHT


def _html_cell(position: int, column: Column, words: str) -> str:
    if position == 0:
        return f'<th style="{_LEFT}">{breakable(words)}</th>'
    strong = ";font-weight:bold" if column.strong else ""
    return f'<td style="{_side(column)}{strong}">{harmless(words)}</td>'


def _html_signature(signature: str) -> str:
    return f'<code style="font-size:smaller;overflow-wrap:anywhere">{harmless(signature)}</code>'


def finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """Ready for JSON: what is not finite becomes None."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in values.items()
    }


def load_pandas() -> Any:
    """The module pandas, for `to_frame`."""
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None
