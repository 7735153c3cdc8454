"""Regions of predictions in which most is to be corrected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
MOST_ROWS = 10_000  # among which regions are sought
CANDIDATES = 200  # centres that are tried for each region
STEPS = 4  # of moving a centre to the mean of its region
LEAST_ROWS, LEAST_SHARE, MOST_SHARE = 20, 0.005, 0.3  # of a region


@dataclass(frozen=True)
class Region:
    """A ball of predictions that are off in the same direction.

    Attributes
    ----------
    center : ndarray of shape (n_classes,)
        Mean prediction in the region.
    correction : ndarray of shape (n_classes,)
        Mean of the correction there: what the labels ask to add.
    observed : ndarray of shape (n_classes,)
        ``center + correction``: how often the classes occur there, by the smoother.
    share : float
        Share of all cases that are in the region.
    rows : ndarray of int
        Indices of these rows (of those of positive weight).
    words : str
        "when it says cat 0.60 / dog 0.30 it is cat 0.45 / dog 0.44; 3.1 % of cases".
    """

    center: Values
    correction: Values
    observed: Values
    share: float
    rows: NDArray[np.intp] = field(repr=False, compare=False)
    words: str


def find_regions(
    probs: NDArray[np.floating],
    correction: Values,
    weights: Values | None,
    labels: Sequence[Any],
    count: int,
    seed: int,
) -> list[Region]:
    """Up to `count` regions, the worst first; each row belongs to one at most."""
    n = len(probs)
    w = np.ones(n) if weights is None else weights
    total = float(w.sum())
    free = np.ones(n, bool)
    regions: list[Region] = []
    while len(regions) < count and free.any():
        left = np.flatnonzero(free)
        if len(left) > MOST_ROWS:
            left = np.sort(np.random.default_rng(seed).choice(left, MOST_ROWS, replace=False))
        ball = _worst_ball(
            probs[left].astype(np.float64), correction[left], w[left], len(left) / free.sum()
        )
        if ball is None:
            break
        center, radius = ball
        inside = free & (_squares(probs, center) <= radius)
        rows = np.flatnonzero(inside)
        regions.append(_region(rows, probs, correction, w, total, labels))
        free &= ~inside
    return regions


def _worst_ball(q: Values, f: Values, w: Values, sampled: float) -> tuple[Values, float] | None:
    """Centre and squared radius with the largest |sum w f|^2 / sum w, in a few steps."""
    n = len(q)
    least = max(LEAST_ROWS * sampled, LEAST_SHARE * n)
    if n <= least:
        return None
    by_size = np.argsort(-(f**2).sum(axis=1), kind="stable")[: max(1, n // 2)]
    candidates = by_size[:: max(1, len(by_size) // CANDIDATES)]
    found = [_best_radius(q, f, w, q[i], least) for i in candidates]
    best = int(np.argmax([score for score, _ in found]))
    (score, radius), center = found[best], q[candidates[best]]
    for _ in range(STEPS):
        inside = _squares(q, center) <= radius
        moved = w[inside] @ q[inside] / w[inside].sum()
        better, its_radius = _best_radius(q, f, w, moved, least)
        if better <= score:
            break
        score, radius, center = better, its_radius, moved
    return (center, radius) if score > 0.0 else None


def _best_radius(
    q: Values, f: Values, w: Values, center: Values, least: float
) -> tuple[float, float]:
    """The largest score of a ball around a centre, and its squared radius."""
    squares = _squares(q, center)
    order = np.argsort(squares, kind="stable")
    ahead = squares[order]
    mass = np.cumsum(w[order])
    sums = np.cumsum(w[order, None] * f[order], axis=0)
    scores = (sums**2).sum(axis=1) / mass
    ends = np.append(ahead[1:] > ahead[:-1], True)  # equal predictions stay together
    places = np.arange(1, len(q) + 1)
    large = (mass > MOST_SHARE * mass[-1]) & (ahead > 0.0)  # but a single prediction may be
    scores[~ends | (places < least) | large] = 0.0
    best = int(np.argmax(scores))
    return float(scores[best]), float(ahead[best])


def _squares(q: NDArray[np.floating], center: Values) -> Values:
    result: Values = ((q - center) ** 2).sum(axis=1)
    return result


def _region(
    rows: NDArray[np.intp],
    probs: NDArray[np.floating],
    correction: Values,
    w: Values,
    total: float,
    labels: Sequence[Any],
) -> Region:
    mass = float(w[rows].sum())
    center, off = w[rows] @ probs[rows] / mass, w[rows] @ correction[rows] / mass
    share = mass / total
    return Region(
        center=center,
        correction=off,
        observed=center + off,
        share=share,
        rows=rows,
        words=_words(labels, center, np.clip(center + off, 0.0, 1.0) + 0.0, share),
    )


def _words(labels: Sequence[Any], center: Values, observed: Values, share: float) -> str:
    """Two classes: the positive one. Else the two that move most, and the largest."""
    classes = [1]
    if len(center) > 2:
        moved = np.argsort(-np.abs(observed - center), kind="stable")[:2]
        classes = sorted({*map(int, moved), int(center.argmax())}, key=lambda j: -center[j])

    def said(values: Values) -> str:
        return " / ".join(f"{_name(labels[j])} {values[j]:.2f}" for j in classes)

    return f"when it says {said(center)} it is {said(observed)}; {100 * share:.1f} % of cases"


def _name(label: Any) -> str:
    """A number would read as one of the probabilities."""
    word = str(label)
    return f"class {word}" if word[:1].isdigit() or word[:1] == "-" else word
