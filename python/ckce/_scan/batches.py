"""What is done with batches of rows: joined, drawn from, and their labels numbered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import Choices, TopKPredictions, join_choices, join_top_k, listed
from ckce._scan.columns import suggest

Batch = tuple[Any, ...]


def joined(batches: list[Batch]) -> Batch:
    return tuple(_column(arrays) for arrays in zip(*batches, strict=True))


def _column(parts: tuple[Any, ...]) -> Any:
    if isinstance(parts[0], Choices):
        return join_choices(list(parts))
    if isinstance(parts[0], TopKPredictions):
        return join_top_k(list(parts))
    return np.concatenate(parts)


def find_classes(
    labels: NDArray[Any],
    classes: Sequence[Any],
    path: str,
    first_row: int,
    lines: Sequence[int] | None,
) -> NDArray[Any]:
    """Numbers of the columns that the labels name."""
    names = classes
    if labels.dtype.kind == "U":
        names = [str(name) for name in classes]
    elif all(isinstance(name, str) for name in classes):
        numbers = [int(name) for name in classes if re.fullmatch(r"-?\d+", name)]
        if len(numbers) == len(classes) and numbers != list(range(len(classes))):
            raise ValueError(
                f"classes must be integers where the labels of {path} are, got the strings "
                f"{listed(classes)}"
            )
        return labels  # integers number the columns, whatever these are called
    values, inverse = np.unique(labels, return_inverse=True)
    column_of = {name: column for column, name in enumerate(names)}
    columns = np.array([column_of.get(value, -1) for value in values.tolist()], np.int64)
    indices = columns[inverse.reshape(-1)]
    if (indices < 0).any():
        row = int(np.argmax(indices < 0))
        label = labels[row].item()
        hint = suggest(label, names) if isinstance(label, str) else ""
        where = f"row {first_row + row}" if lines is None else f"line {lines[row]}"
        raise ValueError(
            f"{path} {where} has the label {label!r}, but the classes are "
            f"{listed(map(str, names))}{hint}"
        )
    return indices


def _hash(numbers: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """SplitMix64 of row numbers, the project's generator counted instead of iterated."""
    state = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state += np.uint64(seed)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(state ^ (state >> np.uint64(31)))


def draw(batches: Iterable[Batch], count: int, seed: int) -> Batch:
    """`count` rows, with every set of rows equally likely, whatever the batches are."""
    first = 0
    # The rows with the smallest hashes: drawn in one pass, whatever their number.
    hashes: NDArray[np.uint64] = np.empty(0, np.uint64)
    kept: list[Batch] = []
    for batch in batches:
        numbers = np.arange(first, first + len(batch[0]))
        first += len(batch[0])
        drawn = _hash(numbers, seed)
        here = np.arange(len(drawn))
        if len(hashes) == count:
            here = np.flatnonzero(drawn < hashes.max())
        if not len(here):
            continue
        kept.append(tuple(array[here] for array in batch))
        hashes = np.concatenate([hashes, drawn[here]])
        if len(hashes) > count:
            best = np.sort(np.argpartition(hashes, count - 1)[:count])
            hashes, kept = hashes[best], [tuple(a[best] for a in joined(kept))]
    return joined(kept)
