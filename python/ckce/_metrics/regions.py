"""Regions of predictions in which most is to be corrected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import Samples
from ckce._results import effective_groups, wilson

Values = NDArray[np.float64]
MOST_ROWS = 10_000  # among which regions are sought
CANDIDATES = 200  # centres that are tried for each region
TRIED = 3000  # balls that differ, as it were: what chance shows in simulations
STEPS = 4  # of moving a centre to the mean of its region
MANY_CLASSES = 100  # above which only some centres are looked at in all classes
_DIRECTIONS, _CLOSELY = 40, 20
_TOGETHER = 1024  # rows whose distances are computed at a time
LEAST_ROWS, LEAST_SHARE, MOST_SHARE = 20, 0.005, 0.3  # of a region


@dataclass(frozen=True)
class Region:
    """A ball of predictions that are off in the same direction.

    Attributes
    ----------
    center : ndarray of shape (n_classes,)
        Mean prediction in the region.
    observed : ndarray of shape (n_classes,)
        How often the classes occur there: the frequencies of the labels in the region.
    low, high : ndarray of shape (n_classes,)
        95 % interval of each frequency (Wilson's), as if the region had not been sought.
    shown : bool
        Whether a class occurs more or less often than predicted even if the region is the worst of
        3000, by binomial tails and Bonferroni. If not, it may be chance. In simulations 1 of 492
        calibrated models had a region that is shown.
    share : float
        Share of all cases that are in the region.
    rows : ndarray of int
        Indices of these rows (of those of positive weight).
    words : str
        "when it says cat 0.60 / dog 0.30 it is cat 0.45 / dog 0.44; 3.1 % of cases"; of two classes
        with the interval; "may be chance" at the end if it is not `shown`.
    """

    center: Values
    observed: Values
    low: Values
    high: Values
    shown: bool
    share: float
    rows: NDArray[np.intp] = field(repr=False, compare=False)
    words: str

    def __str__(self) -> str:
        return self.words

    @property
    def correction(self) -> Values:
        """``observed - center``: what the labels in the region ask to add."""
        return self.observed - self.center


def find_regions(
    samples: Samples, correction: Values, names: Sequence[Any], count: int, seed: int
) -> list[Region]:
    """Up to `count` regions, those that are shown first; each row belongs to one at most."""
    probs, n = samples.probs, samples.n
    w = np.ones(n) if samples.weights is None else samples.weights
    free = np.ones(n, bool)
    regions: list[Region] = []
    while len(regions) < count and free.any():
        left = np.flatnonzero(free)
        if len(left) > MOST_ROWS:
            left = np.sort(np.random.default_rng(seed).choice(left, MOST_ROWS, replace=False))
        q = probs[left].astype(np.float64)
        off = -q
        off[np.arange(len(left)), samples.labels[left]] += 1.0
        ball = _worst_ball(q, correction[left], off, w[left], len(left) / free.sum())
        if ball is None:
            break
        center, radius = ball
        inside = free & (_squares(probs, center[None])[0] <= radius)
        rows = np.flatnonzero(inside)
        regions.append(_region(rows, samples, w, names))
        free &= ~inside
    return sorted(regions, key=lambda region: not region.shown)


def _worst_ball(
    q: Values, f: Values, r: Values, w: Values, sampled: float
) -> tuple[Values, float] | None:
    """Centre and squared radius with the largest <sum w f, sum w r> / sum w, in a few steps.

    f are the corrections and r the residuals: where few rows speak a smooth f may be far off, and
    where it says nothing r is noise.
    """
    n = len(q)
    least = max(LEAST_ROWS * sampled, LEAST_SHARE * n)
    if n <= least:
        return None
    by_size = np.argsort(-(f**2).sum(axis=1), kind="stable")[: max(1, n // 2)]
    candidates = by_size[:: max(1, len(by_size) // CANDIDATES)]
    squares = _squares(q, q[candidates])
    if q.shape[1] > MANY_CLASSES:
        few = _promising(squares, f, r, w, least)
        candidates, squares = candidates[few], squares[few]
    found = [_best_radius(each, f, r, w, least) for each in squares]
    best = int(np.argmax([score for score, _ in found]))
    (score, radius), center = found[best], q[candidates[best]]
    for _ in range(STEPS):
        inside = _squares(q, center[None])[0] <= radius
        moved = w[inside] @ q[inside] / w[inside].sum()
        better, its_radius = _best_radius(_squares(q, moved[None])[0], f, r, w, least)
        if better <= score:
            break
        score, radius, center = better, its_radius, moved
    return (center, radius) if score > 0.0 else None


def _best_radius(
    squares: Values, f: Values, r: Values, w: Values, least: float
) -> tuple[float, float]:
    """The largest score of a ball, and its squared radius, by squared distances to its centre."""
    order = np.argsort(squares, kind="stable")
    ahead = squares[order]
    mass = np.cumsum(w[order])
    small = (mass <= MOST_SHARE * mass[-1]) | (ahead == 0.0)  # a single prediction may be large
    some = order[: max(1, np.count_nonzero(small))]
    sums = _sums(f, w, some)
    sums *= _sums(r, w, some)
    scores = sums.sum(axis=1) / mass[: len(some)]
    ends = np.append(ahead[1:] > ahead[:-1], True)  # equal predictions stay together
    places = np.arange(1, len(w) + 1)
    scores[~(ends & (places >= least) & small)[: len(some)]] = 0.0
    best = int(np.argmax(scores))
    return float(scores[best]), float(ahead[best])


def _squares(q: NDArray[np.floating], centers: Values) -> Values:
    """Squared distances to each centre, (centres, rows), some rows at a time.

    Of many classes by products of matrices, 20 times as fast; rounded, because equal predictions must
    stay at equal distances.
    """
    (n, m), norms = q.shape, (centers**2).sum(axis=1)
    result = np.empty((len(centers), n))
    for at in range(0, n, _TOGETHER):
        some, here = (
            q[at : at + _TOGETHER].astype(np.float64, copy=False),
            slice(at, at + _TOGETHER),
        )
        if m > MANY_CLASSES:
            result[:, here] = norms[:, None] + (some**2).sum(axis=1) - 2.0 * (centers @ some.T)
            continue
        for k, center in enumerate(centers):
            result[k, here] = ((some - center) ** 2).sum(axis=1)
    if m > MANY_CLASSES:
        np.round(np.maximum(result, 0.0, out=result), 12, out=result)
    return result


def _promising(squares: Values, f: Values, r: Values, w: Values, least: float) -> NDArray[np.intp]:
    """The centres of many classes that are looked at closely.

    They have the largest scores in the directions in which corrections differ most, nearly.
    """
    drawn = np.random.default_rng(0).standard_normal((f.shape[1], _DIRECTIONS))
    basis = np.linalg.qr(f.T @ (f @ drawn))[0]
    narrow_f, narrow_r = f @ basis, r @ basis
    scores = [_best_radius(each, narrow_f, narrow_r, w, least)[0] for each in squares]
    return np.sort(np.argsort(-np.array(scores), kind="stable")[:_CLOSELY])


def _sums(x: Values, w: Values, order: NDArray[np.intp]) -> Values:
    weighted = x[order]
    weighted *= w[order, None]
    sums: Values = np.cumsum(weighted, axis=0)
    return sums


def _region(rows: NDArray[np.intp], samples: Samples, w: Values, names: Sequence[Any]) -> Region:
    m, w_in = samples.m, w[rows]
    mass = float(w_in.sum())
    center = w_in @ samples.probs[rows] / mass
    observed = np.bincount(samples.labels[rows], w_in, m) / mass
    # Rows of a group may all repeat each other.
    groups = None if samples.groups is None else samples.groups[rows]
    speak = effective_groups(groups, w_in) or mass
    low, high = wilson(observed, speak, 0.95)
    shown = any(
        _off(*each, speak) < 0.05 / (TRIED * m) for each in zip(center, observed, strict=True)
    )
    share = mass / float(w.sum())
    words = _words(names, center, observed, low, high)
    return Region(
        center=center,
        observed=observed,
        low=low,
        high=high,
        shown=shown,
        share=share,
        rows=rows,
        words=f"{words}; {100 * share:.1f} % of cases{'' if shown else '; may be chance'}",
    )


def _off(said: float, found: float, n: float) -> float:
    """Chance that one of two sides of a frequency of n cases is that far off, at most.

    Wilson's interval is too short for rare classes: two of 22 cases, where 0.0035 is said, leave it.
    """
    if found < said:
        said, found = 1.0 - said, 1.0 - found
    return min(1.0, 2.0 * _tail(n * found, n * (1.0 - found), said))


def _tail(hits: float, others: float, p: float) -> float:
    """P(at least so many hits) by the first term and a geometric series, at most; p is below their share."""
    if not 0.0 < p < 1.0:
        return 1.0 if hits == 0.0 or p >= 1.0 else 0.0
    falls = others * p / ((hits + 1.0) * (1.0 - p))  # from each term to the next, at least as fast
    ways = math.lgamma(hits + others + 1.0) - math.lgamma(hits + 1.0) - math.lgamma(others + 1.0)
    first = math.exp(ways + hits * math.log(p) + others * math.log1p(-p))
    return first / (1.0 - falls) if falls < 1.0 else 1.0


def _words(
    names: Sequence[Any], center: Values, observed: Values, low: Values, high: Values
) -> str:
    """Two classes: the positive one, with its interval. Else the two that move most, and the largest."""
    if len(center) == 2:
        rare = min(center)
        digits = 2 if rare >= 0.1 else 3 if rare >= 0.01 else 4
        name, said, found = _name(names[1]), f"{center[1]:.{digits}f}", f"{observed[1]:.{digits}f}"
        interval = f"{low[1]:.{digits}f} to {high[1]:.{digits}f}"
        return f"when it says {name} {said} it is {name} {found} ({interval})"
    moved = np.argsort(-np.abs(observed - center), kind="stable")[:2]
    classes = sorted({*map(int, moved), int(center.argmax())}, key=lambda j: -center[j])

    def listed(values: Values) -> str:
        return " / ".join(f"{_name(names[j])} {values[j]:.2f}" for j in classes)

    return f"when it says {listed(center)} it is {listed(observed)}"


def _name(label: Any) -> str:
    """A number would read as one of the probabilities."""
    word = str(label)
    return f"class {word}" if word[:1].isdigit() or word[:1] == "-" else word
