"""Normal confidence intervals, two-sided p-values, and how they are said."""

import math

from ckce._input import check_level
from ckce._results.table import cut, form_of, number

#: Rows below which no verdict is given: intervals were not studied with fewer.
FEW_ROWS = 50
NO_SIGN = "no sign of miscalibration"


def quantile(level: float) -> float:
    """z with P(-z < Z < z) = level for a standard normal Z."""
    from statistics import NormalDist  # 5 ms that importing ckce should not cost

    return NormalDist().inv_cdf(0.5 + check_level(level) / 2)


def interval(centre: float, se: float, level: float) -> tuple[float, float]:
    """The normal interval of this level around an estimate."""
    half = quantile(level) * se
    return centre - half, centre + half


def in_words(low: float, high: float, level: float, rejected: bool = False) -> str:
    """An interval of a value that cannot be negative: ``95 % interval 0.0359 to 0.0590``.

    Where the exact test has `rejected` calibration, an interval that reaches 0 is no sign of it: the
    interval is cautious there, the test is not.
    """
    if math.isnan(low) or math.isnan(high):
        return "no interval"
    ends = cut(low, high)
    if ends is None:
        found = "" if rejected else f"{NO_SIGN}: "
        return f"{found}the {percent(level)} interval lies below 0"
    form = form_of(ends)
    start = "0" if ends[0] == 0.0 else number(ends[0], form)
    words = f"{percent(level)} interval {start} to {number(ends[1], form)}"
    return words if low > 0.0 or rejected else f"{words}: {NO_SIGN}"


def percent(level: float) -> str:
    """A level in words: ``95 %``."""
    return f"{100 * level:g} %"


def p_value(difference: float, se: float) -> float:
    """Two-sided, for a difference of 0; NaN where the standard error is not known."""
    if difference == 0.0:
        return 1.0
    if math.isnan(se):
        return math.nan
    return math.erfc(abs(difference) / se / math.sqrt(2.0)) if se > 0.0 else 0.0
