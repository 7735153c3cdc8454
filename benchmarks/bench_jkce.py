"""Exact JKCE: the literal formula, NumPy and ours do the same work, and agree."""

from functools import cache

import numpy_fast
import numpy_plain
import pytest
from simulate import Inputs

import ckce
from ckce import reference

inputs = cache(Inputs)

JKCE = {
    "literal formula": lambda y, q, gamma: reference.jkce(y, q, bandwidth=gamma),
    "NumPy": numpy_plain.jkce_exact,
    "NumPy, our identities": numpy_fast.jkce_exact,
    "ckce": lambda y, q, gamma: ckce.jkce(y, q, bandwidth=gamma),
}


@cache
def value_of(n, m):
    data = inputs(n, m)
    return reference.jkce(data.y_true, data.y64, bandwidth=data.bandwidth)


@pytest.mark.parametrize("who", JKCE)
@pytest.mark.parametrize(("n", "m"), [(2000, 10), (1000, 100)])
def bench_jkce(benchmark, n, m, who):
    benchmark.group = f"exact JKCE, n={n:,}, m={m}"
    data = inputs(n, m)
    value = benchmark(JKCE[who], data.y_true, data.y64, data.bandwidth)
    # The unbiased estimate is a difference: its scale is the diagonal that it leaves out, 2 / n.
    assert value == pytest.approx(value_of(n, m), rel=1e-9, abs=1e-12 / n)
