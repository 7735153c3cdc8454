"""The median heuristic on the rows that are all used (n = 2000)."""

import numpy_fast
import pytest
from simulate import Inputs

import ckce
from ckce import reference

MEDIAN = {
    "literal formula": reference.median_bandwidth,
    "SciPy pdist": numpy_fast.median_bandwidth,
    "ckce": ckce.median_bandwidth,
}


@pytest.mark.parametrize("who", MEDIAN)
@pytest.mark.benchmark(group="median bandwidth, n=2,000, m=10")
def bench_median(benchmark, who):
    y_prob = Inputs(2000, 10).y64
    value = benchmark(MEDIAN[who], y_prob)
    assert value == pytest.approx(numpy_fast.median_bandwidth(y_prob), rel=1e-12)
