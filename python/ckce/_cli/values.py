"""How the text after an option becomes a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ckce._cli.messages import UsageError


def classes(text: str) -> list[Any]:
    """``cat,dog`` or ``1..10``."""
    if found := re.fullmatch(r"(-?[0-9]+)\.\.(-?[0-9]+)", text):
        first, last = int(found[1]), int(found[2])
        if not 0 < last - first < 10**6:
            raise UsageError(f"must be a range such as 1..10, got {text!r}")
        return list(range(first, last + 1))
    names = words(text)
    integers = all(re.fullmatch(r"-?[0-9]+", name) for name in names)
    return [int(name) for name in names] if integers else list(names)


def probs(text: str) -> str | list[str]:
    return text.split(",") if "," in text else text


def words(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def models(text: str) -> dict[str, str]:
    """``a=prob_a_*,b=prob_b_*``, or ``a,b``."""
    pairs = [name.partition("=") for name in words(text)]
    models = {name: probs or name for name, _, probs in pairs}
    if "" in models or len(models) < len(pairs):
        raise UsageError(f"must give different names, such as a=prob_a_*,b=prob_b_*, got {text!r}")
    return models


def level(text: str) -> float:
    value = positive(text)
    if value >= 1.0:
        raise UsageError(f"must be between 0 and 1, got {text!r}")
    return value


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not text.isascii() or not 0.0 < value < float("inf"):
        raise UsageError(f"must be a positive number, got {text!r}")
    return value


def bandwidth(text: str) -> float | str:
    if text in ("median", "default"):
        return text
    try:
        return positive(text)
    except UsageError:
        raise UsageError(
            f"must be 'median', 'default' or a positive number, got {text!r}"
        ) from None


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _is_whole(text) or not low <= int(text) <= high:
            raise UsageError(f"must be an integer from {low} to {high}, got {text!r}")
        return int(text)

    return parse


def landmarks(text: str) -> int | str:
    """How many, or the state that has them."""
    return integer(1, 10**6)(text) if _is_whole(text) else text
