"""Words for names that do not exist, and names that are not ours."""

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'probs'?`` if a known name is close, else nothing."""
    from difflib import get_close_matches  # 3 ms that importing ckce should not cost

    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def listed(names: Iterable[str], limit: int = 8) -> str:
    """The first few names, and how many more there are."""
    everything = list(names)
    shown = ", ".join(map(repr, everything[:limit]))
    more = len(everything) - limit
    return f"{shown} and {more} more" if more > 0 else shown or "nothing"


def printable(text: str) -> str:
    """Without what could steer a terminal: names of files and classes are not ours."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)
