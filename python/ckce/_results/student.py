"""Student's t: standard errors of few groups are themselves uncertain."""

import math

import numpy as np
from numpy.typing import NDArray


def student_tail(t: float, df: float) -> float:
    """P(|T| > t) for T with `df` degrees of freedom: I_x(df / 2, 1 / 2), x = df / (df + t^2)."""
    square = t * t / df
    if math.isinf(square):
        return 0.0
    log_x, log_rest = -math.log1p(square), -math.log1p(1.0 / square) if square > 0.0 else -math.inf
    a, b, x = df / 2.0, 0.5, math.exp(log_x)
    if x <= (a + 1.0) / (a + b + 2.0):
        return _incomplete_beta(a, b, x, log_x, log_rest)
    if square == 0.0:
        return 1.0
    return 1.0 - _incomplete_beta(b, a, math.exp(log_rest), log_rest, log_x)


def student_quantile(level: float, df: float) -> float:
    """t with P(|T| < t) = level, by bisection."""
    low, high = 0.0, 1.0
    while student_tail(high, df) > 1.0 - level:
        low, high = high, 2.0 * high
    while high - low > 4e-16 * high:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if student_tail(middle, df) > 1.0 - level:
            low = middle
        else:
            high = middle
    return high


def student_factor(factor: float, df: NDArray[np.float64]) -> NDArray[np.float64]:
    """What Student's t needs in place of a factor of standard normal errors; at most df = 2 is asked.

    Between 17 values of 1 / df, where a line lies above the curve.
    """
    level = min(math.erf(factor / math.sqrt(2.0)), 1.0 - 1e-12)
    inverse = np.linspace(0.0, 0.5, 17)
    known = [factor, *(student_quantile(level, 1.0 / each) for each in inverse[1:])]
    return np.interp(1.0 / np.maximum(df, 2.0), inverse, known)


def _incomplete_beta(a: float, b: float, x: float, log_x: float, log_rest: float) -> float:
    """I_x(a, b) by its continued fraction 1 / (1 + d_1 / (1 + d_2 / ...)), from the front.

    d_2k = k (b - k) x / ((a + 2k - 1) (a + 2k)), d_2k+1 = -(a + k) (a + b + k) x / ((a + 2k)
    (a + 2k + 1)); it converges in O(sqrt(a)) steps for x < (a + 1) / (a + b + 2).
    """
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * log_x + b * log_rest
    value = numerator = 1.0
    denominator = 0.0
    for step in range(1, 100_000):
        k, odd = divmod(step, 2)
        if odd:
            d = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
        else:
            d = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
        denominator = 1.0 / (1.0 + d * denominator)
        numerator = 1.0 + d / numerator
        value *= numerator * denominator
        if abs(numerator * denominator - 1.0) < 1e-15:
            break
    return math.exp(scale) / (a * value)
