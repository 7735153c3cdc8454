"""Words for names that do not exist."""

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
