"""Standard errors, confidence intervals, two-sided p-values, and how they are said."""

import math

import numpy as np
from numpy.typing import NDArray

from ckce._input import check_level
from ckce._results.student import student_quantile, student_tail
from ckce._results.table import cut, form_of, number

#: Rows below which no verdict is given: intervals were not studied with fewer.
FEW_ROWS = 50
NO_SIGN = "no sign of miscalibration"
MANY_CLASSES = 100  # above, the floor hides the miscalibration of most models


def standard_error(
    influence: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    groups: NDArray[np.int64] | None = None,
) -> float:
    r"""Of an estimate whose rows have this influence, 0 on average; NaN of one row.

    Independent rows: sum_i w_i psi_i^2 / (N (N - 1)). Rows in groups: (G - 1) / G times the sum of
    (sum_{i in g} w_i psi_i / (N - N_g))^2 over the G groups, as the jackknife over groups has it: a
    large group pulls the estimate towards itself. The same where every row of weight 1 is a group.
    """
    total = float(len(influence)) if weights is None else float(weights.sum())
    if total <= 1.0:
        return math.nan
    if groups is not None:
        sums = np.bincount(groups, influence if weights is None else weights * influence)
        others = total - np.bincount(groups, weights)
        count = len(sums)
        return math.sqrt((count - 1.0) / count * float(((sums / others) ** 2).sum()))
    squares = influence**2 if weights is None else weights * influence**2
    return math.sqrt(squares.sum() / (total - 1.0) / total)


def effective_groups(
    groups: NDArray[np.int64] | None, weights: NDArray[np.float64] | None
) -> float | None:
    """N^2 / sum_g N_g^2: as many groups of one size would tell as much; G where all have one size."""
    if groups is None:
        return None
    sizes = np.bincount(groups, weights)
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def quantile(level: float, groups: float | None = None) -> float:
    """z with P(-z < Z < z) = level for a standard normal Z; of groups, Student's t.

    `groups` is their effective number; it has one degree of freedom more than t.
    """
    if groups is not None:
        return student_quantile(check_level(level), max(groups - 1.0, 1.0))
    tail, z, before = 1.0 - check_level(level), 0.0, -1.0
    while z > before:  # Newton's method: from the left it stays there, because erfc is convex
        before = z
        z += (
            (math.erfc(z / math.sqrt(2.0)) - tail)
            * math.sqrt(math.pi / 2.0)
            * math.exp(z * z / 2.0)
        )
    return z


def interval(
    centre: float, se: float, level: float, groups: float | None = None
) -> tuple[float, float]:
    """The interval of this level around an estimate; of groups, their effective number."""
    half = quantile(level, groups) * se
    return centre - half, centre + half


def wilson(
    rate: NDArray[np.float64], weight: NDArray[np.float64] | float, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interval of a frequency that stays within [0, 1] and does not vanish at 0 and 1."""
    z = quantile(level)
    centre = (rate + z**2 / (2 * weight)) / (1 + z**2 / weight)
    spread = np.sqrt(np.maximum(rate * (1 - rate), 0.0) / weight + z**2 / (4 * weight**2))
    half = z / (1 + z**2 / weight) * spread
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def interval_above_0(
    value: float, se: float, level: float, groups: float | None = None, raw: float = 0.0
) -> tuple[float, float]:
    """The interval of a value that cannot be negative: around 0 where its estimate is.

    The truth is no further from 0 than from a negative estimate, so this covers at least as often.

    `value` is `raw`, a squared norm |F|^2, minus what noise adds to it: an estimate that is too small
    by chance has a standard error that is too small, too, so the interval reaches further up than
    down. |F| has the standard error se / (2 |F|); the upper end is (|F| + z se / (2 |F|))^2 minus the
    noise, that is value + z se + (z se)^2 / (4 raw).

    Of groups the interval holds the theta with
    |value - theta| <= t se sqrt((theta + raw - value) / raw), because there are few of them.
    """
    centre = 0.0 if value < 0.0 else value
    half = quantile(level, groups) * se
    if raw <= 0.0:
        return centre - half, centre + half
    if groups is None:
        return centre - half, max(centre + half, value + half + half**2 / (4.0 * raw))
    shift = half**2 / (2.0 * raw)
    reach = math.hypot(half, shift)
    return centre + shift - reach, centre + shift + reach


def in_words(
    low: float, high: float, level: float, rejected: bool = False, n_classes: int = 0
) -> str:
    """An interval of a value that cannot be negative: ``95 % interval 0.0359 to 0.0590``.

    Of many classes at once little can be seen: that no sign is found says little, and TopK sees more.

    Where the exact test has `rejected` calibration, an interval that reaches 0 is no sign of it: the
    interval is cautious there, the test is not.
    """
    if math.isnan(low) or math.isnan(high):
        return "no interval"
    ends = cut(low, high)
    if ends is None:
        found = "" if rejected else f"{NO_SIGN}: "
        return f"{found}the {percent(level)} interval lies below 0{_little(n_classes, rejected)}"
    form = form_of(ends)
    start = "0" if ends[0] == 0.0 else number(ends[0], form)
    words = f"{percent(level)} interval {start} to {number(ends[1], form)}"
    return words if low > 0.0 or rejected else f"{words}: {NO_SIGN}{_little(n_classes, rejected)}"


def _little(n_classes: int, rejected: bool) -> str:
    if rejected or n_classes <= MANY_CLASSES:
        return ""
    return f" among {n_classes} classes; their 20 largest probabilities, TopK(20), would show more"


def percent(level: float) -> str:
    """A level in words: ``95 %``."""
    return f"{100 * level:g} %"


def apart(a: float, b: float) -> float:
    """a - b; 0 where that is rounding, whose standard error is rounding, too."""
    return 0.0 if abs(a - b) <= 1e-10 * max(abs(a), abs(b)) else a - b


def p_value(difference: float, se: float, groups: float | None = None) -> float:
    """Two-sided, for a difference of 0; NaN where the standard error is not known."""
    if difference == 0.0:
        return 1.0
    if math.isnan(se):
        return math.nan
    if se == 0.0:
        return 0.0
    if groups is not None:
        return student_tail(abs(difference) / se, max(groups - 1.0, 1.0))
    return math.erfc(abs(difference) / se / math.sqrt(2.0))


def by_groups(n_groups: int | None) -> str:
    """What groups change, in words; nothing without."""
    return "" if n_groups is None else f"standard errors by {n_groups} groups"
