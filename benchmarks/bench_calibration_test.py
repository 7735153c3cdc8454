"""The exact test: 999 resamples beside one evaluation by the same features."""

from functools import cache

import pytest
from simulate import Inputs

import ckce

inputs = cache(Inputs)

TEST = {
    "one evaluation": lambda y, q, **options: ckce.ckce(y, q, **options),
    "one estimate": lambda y, q, **options: ckce.estimate(y, q, **options).value,
    "test, 999 resamples": lambda y, q, **options: ckce.calibration_test(y, q, **options).ckce,
}


@pytest.mark.parametrize("who", TEST)
@pytest.mark.parametrize(("n", "m"), [(10_000, 10), (2000, 100)])
def bench_calibration_test(benchmark, n, m, who):
    benchmark.group = f"calibration test, n={n:,}, m={m}, fourier"
    data = inputs(n, m)
    options = {"method": "fourier", "bandwidth": data.bandwidth}
    value = benchmark(TEST[who], data.y_true, data.y64, **options)
    expected = ckce.ckce(data.y_true, data.y64, **options)
    assert value == pytest.approx(expected, rel=1e-9)
