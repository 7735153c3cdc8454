"""Long names in little room."""

from collections.abc import Iterable

LETTERS = 32  # of a name in a picture


def short(name: str, most: int = LETTERS) -> str:
    """A long name without its middle; tables have all of it."""
    head = most // 2
    return name if len(name) <= most else f"{name[:head]}\u2026{name[head + 1 - most :]}"


def shortened(names: Iterable[str], most: int = LETTERS) -> dict[str, str]:
    """Short forms of names that stay different from one another."""
    found = {name: short(name, most) for name in names}
    if len(set(found.values())) < len(found):
        ends = zip(min(found), max(found), strict=False)  # what these share, all share
        shared = next((k for k, (a, b) in enumerate(ends) if a != b), len(min(found)))
        start = max(0, shared - 5)  # the first digits of a number belong to it
        found = {name: short(f"\u2026{name[start:]}", most) for name in found}
    if len(set(found.values())) < len(found):
        found = {name: f"{k}: {words}" for k, (name, words) in enumerate(found.items(), 1)}
    return found
