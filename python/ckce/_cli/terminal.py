"""Words, tables and colours for a terminal."""

import os
import re
import shutil
import sys
from typing import IO

from ckce._input import printable
from ckce._results.table import wrapped

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Style:
    """Paints text, or leaves it as it is."""

    def __init__(self, colours: bool) -> None:
        self.colours = colours

    def __call__(self, style: str, text: str) -> str:
        """`text` in a style of `_CODES`; spaces around it stay plain."""
        bare = text.strip()
        if not self.colours or not bare:
            return text
        return text.replace(bare, f"\x1b[{_CODES[style]}m{bare}\x1b[0m", 1)

    def facts(self, lines: str) -> str:
        """A result line by line: its heading and the CKCE stand out, remarks recede."""
        # Lines that were broken at another width are whole again before they are broken at this one.
        heading, *rows = re.sub(r"\n +", " ", lines).split("\n")
        return "\n".join([self("bold", wrap(heading)), *map(self._fact, rows)])

    def _fact(self, row: str) -> str:
        found = re.fullmatch(r"(\S+(?: \S+)*)(\s{2,})(-?[\d.]\S*|inf|nan)?(\s*)(.*)", row)
        if found is None:
            return row
        name, gap, value, space, remark = found.groups("")
        indent = len(name + gap + value + space)
        folded = remark
        if " " in remark:
            folded = wrap("." * indent + remark, indent=indent)[indent:]
        strong = self("bold", value) if name in ("CKCE", "debiased") else value
        return f"{name}{gap}{strong}{space}{self('dim', folded)}"


def width() -> int | None:
    """Columns of the terminal; None in a pipe."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size((120, 24)).columns


def wrap(line: str, stream: IO[str] | None = None, *, indent: int = 0) -> str:
    """A sentence broken at words where the window of a terminal ends."""
    stream = sys.stdout if stream is None else stream
    columns = shutil.get_terminal_size((120, 24)).columns
    if len(line) <= columns or not stream.isatty():
        return line
    return "\n".join(wrapped(line, columns, indent if indent < columns - 20 else 4))


def wants_colours(stream: IO[str], choice: str = "auto") -> bool:
    """Colours if asked for; else on a terminal, unless NO_COLOR is set (https://no-color.org)."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def complain(kind: str, message: str) -> None:
    """One line on stderr."""
    style = Style(wants_colours(sys.stderr))
    head = f"ckce: {kind}:"
    line = wrap(" ".join([head, *printable(message).split()]), sys.stderr)
    colour = {"error": "red", "warning": "yellow"}.get(kind, "dim")
    print(line.replace(head, style(colour, head), 1), file=sys.stderr)
