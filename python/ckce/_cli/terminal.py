"""Words, tables and colours for a terminal."""

import os
import sys
from typing import IO

from ckce._input import printable

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
    line = " ".join(printable(message).split())
    print(style("red" if kind == "error" else "yellow", f"ckce: {kind}:"), line, file=sys.stderr)
