"""Some rows out of many, by content or by a seed: where landmarks are sought."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

_CHUNK = 16384  # rows whose hashes stay in cache
_LARGEST = 2.0**64 - 2048.0  # the largest float64 that is a uint64


def pool_of(models: Sequence[NDArray[np.floating]], size: int) -> NDArray[np.float64]:
    """Distinct predictions, sorted; of many, an equal number of each model, drawn by content."""
    count = max(1, size // len(models))
    drawn = [probs[_draw(probs, count)].astype(np.float64) + 0.0 for probs in models]
    return np.unique(np.vstack(drawn), axis=0)


def some_rows(n: int, count: int, seed: int) -> NDArray[np.intp]:
    """Different rows, ascending: those of Floyd's algorithm with the project's own random numbers."""
    drawn: set[int] = set()
    bits = _split_mix(seed)
    for last in range(n - count, n):
        row = next(bits) % (last + 1)
        drawn.add(last if row in drawn else row)
    return np.array(sorted(drawn), np.intp)


def _split_mix(state: int) -> Iterator[int]:
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def _draw(probs: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """Rows whose hashes are the smallest: whatever the order of the rows, and how often they occur."""
    n = len(probs)
    if n <= count:
        return np.arange(n)
    hashes = np.concatenate([_hashes(probs[at : at + _CHUNK]) for at in range(0, n, _CHUNK)])
    few = np.flatnonzero(hashes <= np.uint64(_LARGEST * min(1.0, 4.0 * count / n)))
    for candidates in (few, np.arange(n)):  # all of them, if equal predictions fill the few
        distinct, first = np.unique(hashes[candidates], return_index=True)
        if len(distinct) >= count:
            break
    return candidates[first[:count]]


def _hashes(probs: NDArray[np.floating]) -> NDArray[np.uint64]:
    """64 bits of each row that look random and depend on its numbers alone."""
    mixed = np.zeros(len(probs), np.uint64)
    for column in probs.T:
        mixed ^= (column.astype(np.float64) + 0.0).view(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed ^= mixed >> np.uint64(shift)
            mixed *= np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return mixed
