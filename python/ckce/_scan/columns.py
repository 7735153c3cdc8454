"""Labels, predictions and weights among the names of a table."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ckce._input import InputError, listed


class Wanted(NamedTuple):
    """What to look for in a file."""

    probs: str | Sequence[str] | None
    labels: tuple[str, ...]  # the first that is there; empty if they are elsewhere
    weights: str | None = None
    left_out: tuple[str, ...] = ()  # names that no pattern of `probs` may take


class Columns(NamedTuple):
    """Where a table keeps what is wanted."""

    label: str | None
    probs: tuple[str, ...]
    classes: tuple[Any, ...] | None  # what the columns call the classes
    weight: str | None

    @property
    def used(self) -> list[str]:
        """Names of all of them."""
        return [name for name in (self.label, self.weight) if name is not None] + list(self.probs)

    def places(self, where: str) -> dict[str, str]:
        """What messages call them."""
        first, last = self.probs[0], self.probs[-1]
        several = f"{where} columns {first!r} to {last!r}"
        places = {"probs": several if first != last else f"{where} column {first!r}"}
        if self.label is not None:
            places["labels"] = f"{where} column {self.label!r}"
        if self.weight is not None:
            places["weights"] = f"{where} column {self.weight!r}"
        return places


def suggest(name: str, known: Iterable[str], *, patterns: bool = False) -> str:
    """``; did you mean ...?`` for a name that is nearly another's, or begins it.

    With `patterns`, columns that differ in a number behind their name are one: ``p_*``.
    """
    from difflib import get_close_matches  # 3 ms that importing ckce should not cost

    others = [other for other in dict.fromkeys(known) if other and other != name]
    if patterns:
        stems = [re.sub(r"\d+$", "*", other) for other in others]
        others = [s if stems.count(s) > 1 else o for s, o in zip(stems, others, strict=True)]
    spelled = {other.lower(): other for other in reversed(others)}
    word = name.lower()
    near = get_close_matches(word, spelled, n=1, cutoff=0.6)
    start = word[: max(3, math.ceil(0.75 * len(word)))]
    begun = [low for low in spelled if len(start) > 2 and low.startswith(start)]
    found = near or begun
    return f"; did you mean {spelled[found[0]]!r}?" if found else ""


def find_columns(where: str, names: Sequence[str], wanted: Wanted) -> Columns:
    """Settle the columns from their names alone; what is not there is an error."""
    labels = [name for name in wanted.labels if name in names]
    if len(labels) > 1:
        raise InputError(
            f"{where} must hold one of the columns {labels[0]!r} and {labels[1]!r}, got both",
            NAME_IT["labels"],
        )
    label = labels[0] if labels else None
    if label is None and wanted.labels:
        raise _unknown(where, wanted.labels[0], names, "labels")
    weight = wanted.weights
    if weight is not None and weight not in names:
        raise _unknown(where, weight, names, "weights")
    probs = "probs" if wanted.probs is None else wanted.probs
    if isinstance(probs, str):
        found = _match(where, probs, names, (label, weight, *wanted.left_out))
    else:
        found = tuple(probs), tuple(probs)
    for name in found[0]:
        if name not in names:
            raise _unknown(where, name, names, "probs")
    return _checked(where, Columns(label, *found, weight), names)


def _match(
    where: str, probs: str, names: Sequence[str], taken: tuple[str | None, ...]
) -> tuple[tuple[str, ...], tuple[Any, ...] | None]:
    """Columns that a name or a pattern means, and what it calls the classes."""
    # A column without a name is an index that pandas has written.
    others = [name for name in names if name and name not in taken]
    if probs in names:
        return (probs,), None
    starred = "*" in probs
    before, _, after = probs.partition("*")
    star = ".*" if starred else r"[_.]?\d+"
    pattern = re.compile(f"{re.escape(before)}({star}){re.escape(after)}")
    found = [(name, match[1]) for name in others if (match := pattern.fullmatch(name))]
    if not found:
        raise _unknown(where, probs, names, "probs")
    parts = [part if starred else part.lstrip("_.") for _, part in found]
    if not all(part.isdecimal() for part in parts):
        return tuple(name for name, _ in found), tuple(parts)
    # Numbers name the classes: p_10 stands before p_2 in many files.
    order = sorted(range(len(parts)), key=lambda i: int(parts[i]))
    numbers = [int(parts[i]) for i in order]
    gap = next((k for k in range(numbers[0], numbers[-1] + 1) if k not in numbers), None)
    if not starred and gap is not None:
        raise ValueError(f"{where} has no column of {probs!r} for class {gap}, but later ones")
    classes = None if numbers == list(range(len(numbers))) else tuple(numbers)
    return tuple(found[i][0] for i in order), classes


#: How to name what was not found, by argument.
NAME_IT = {
    "labels": ("name_labels", "name it with labels="),
    "weights": ("name_weights", "name it with weights="),
    "probs": ("name_probs", "name the columns with probs=, '*' stands for any"),
}


def _unknown(where: str, name: str, names: Sequence[str], argument: str) -> InputError:
    near = suggest(name, names, patterns=argument == "probs")
    problem = f"{where} has no column {name!r}, it has {listed(names)}{near}"
    return InputError(problem, *([] if near else [NAME_IT[argument]]))


def _checked(where: str, columns: Columns, names: Sequence[str]) -> Columns:
    if columns.label is not None and columns.label in columns.probs:
        raise ValueError(
            f"{where} column {columns.label!r} holds the labels, so it cannot hold predictions, too"
        )
    used = columns.used
    twice = [name for name in used if used.count(name) + list(names).count(name) > 2]
    if twice:
        raise ValueError(f"{where} must have each column once, got {twice[0]!r} twice")
    classes = columns.classes
    if classes is not None and len(set(classes)) < len(classes):
        raise ValueError(f"{where} must have each class once, got {listed(map(str, classes))}")
    return columns


def find_models(names: Iterable[str], lists: Iterable[str] = ()) -> dict[str, str]:
    """Models of a table by name, and their columns: lists, or a name with numbers behind it."""
    found = list(lists)
    if found:
        return {name: name for name in found}
    stems: dict[str, list[str]] = {}
    for name in names:
        if match := re.fullmatch(r"(.*?\D)([_.]?)(\d+)", name):
            stems.setdefault(match[1].rstrip("_."), []).append(match[3])
    most = max(map(len, stems.values()), default=0)
    return {stem: stem for stem, numbers in stems.items() if len(numbers) == most > 1}
