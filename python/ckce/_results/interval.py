"""Normal confidence intervals and two-sided p-values."""

import math

from ckce._input import check_level


def quantile(level: float) -> float:
    """z with P(-z < Z < z) = level for a standard normal Z."""
    from statistics import NormalDist  # 5 ms that importing ckce should not cost

    return NormalDist().inv_cdf(0.5 + check_level(level) / 2)


def interval(centre: float, se: float, level: float) -> tuple[float, float]:
    """The normal interval of this level around an estimate."""
    half = quantile(level) * se
    return centre - half, centre + half


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
