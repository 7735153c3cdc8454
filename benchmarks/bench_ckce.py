"""CKCE by each method: the literal formula, NumPy and ours do the same work, and agree."""

from functools import cache

import numpy as np
import numpy_fast
import numpy_plain
import pytest
import torch_fast
from simulate import Inputs
from workloads import HAS_TORCH

import ckce
from ckce import reference

inputs = cache(Inputs)

EXACT = {
    "literal formula": lambda y, q, gamma: reference.ckce(y, q, bandwidth=gamma),
    "NumPy": numpy_plain.ckce_exact,
    "NumPy, our identities": numpy_fast.ckce_exact,
    "ckce": lambda y, q, gamma: ckce.ckce(y, q, method="exact", bandwidth=gamma),
}
FOURIER = {
    "literal formula": lambda y, q, w: reference.ckce_fourier(y, q, frequencies=w),
    "NumPy": numpy_plain.ckce_fourier,
    "NumPy, our identities": numpy_fast.ckce_fourier,
    "ckce": lambda y, q, w: ckce.ckce(y, q, method=ckce.Fourier(frequencies=w)),
    "ckce, 1 thread": lambda y, q, w: ckce.ckce(
        y, q, method=ckce.Fourier(frequencies=w), n_threads=1
    ),
    "ckce mixed": lambda y, q, w: ckce.ckce(
        y, q.astype(np.float32), method=ckce.Fourier(frequencies=w, precision="mixed")
    ),
}
if HAS_TORCH:
    FOURIER["PyTorch"] = torch_fast.ckce_fourier
CHOLESKY = {
    "literal formula": lambda y, q, gamma: reference.ckce_cholesky(y, q, bandwidth=gamma, rank=50),
    "ckce": lambda y, q, gamma: ckce.ckce(y, q, method=ckce.Cholesky(50), bandwidth=gamma),
}


@cache
def exact_value(n, m):
    data = inputs(n, m)
    return reference.ckce(data.y_true, data.y64, bandwidth=data.bandwidth)


@cache
def fourier_value(n, m):
    data = inputs(n, m)
    return reference.ckce_fourier(data.y_true, data.y64, frequencies=data.frequencies)


@cache
def cholesky_value(n, m):
    data = inputs(n, m)
    return reference.ckce_cholesky(data.y_true, data.y64, bandwidth=data.bandwidth, rank=50)


@pytest.mark.parametrize("who", EXACT)
@pytest.mark.benchmark(group="exact CKCE, n=800, m=10 (factorised)")
def bench_exact(benchmark, who):
    data = inputs(800, 10)
    value = benchmark(EXACT[who], data.y_true, data.y64, data.bandwidth)
    assert value == pytest.approx(exact_value(800, 10), rel=1e-10)


@pytest.mark.parametrize("who", EXACT)
@pytest.mark.benchmark(group="exact CKCE, n=2,048, m=10 (conjugate gradients)")
def bench_exact_iterated(benchmark, who):
    data = inputs(2048, 10)
    rounds = {"rounds": 1} if who == "literal formula" else {"rounds": 3}
    value = benchmark.pedantic(EXACT[who], (data.y_true, data.y64, data.bandwidth), **rounds)
    assert value == pytest.approx(exact_value(2048, 10), rel=1e-9)


@pytest.mark.parametrize("who", FOURIER)
@pytest.mark.parametrize(("n", "m"), [(10_000, 10), (2_000, 200), (20_000, 2)])
def bench_fourier(benchmark, n, m, who):
    benchmark.group = f"fourier CKCE, n={n:,}, m={m}, D=100"
    data = inputs(n, m)
    value = benchmark(FOURIER[who], data.y_true, data.y64, data.frequencies)
    assert value == pytest.approx(fourier_value(n, m), rel=1e-5 if "mixed" in who else 1e-10)


@pytest.mark.parametrize("who", CHOLESKY)
@pytest.mark.benchmark(group="cholesky CKCE, n=1,000, m=10, rank 50")
def bench_cholesky(benchmark, who):
    data = inputs(1000, 10)
    value = benchmark(CHOLESKY[who], data.y_true, data.y64, data.bandwidth)
    assert value == pytest.approx(cholesky_value(1000, 10), rel=1e-9)


@pytest.mark.parametrize("who", EXACT)
@pytest.mark.benchmark(group="exact CKCE, n=2,000, m=2 (one pass)")
def bench_two_classes(benchmark, who):
    data = inputs(2000, 2)
    rounds = {"rounds": 1} if who == "literal formula" else {"rounds": 3}
    value = benchmark.pedantic(EXACT[who], (data.y_true, data.y64, data.bandwidth), **rounds)
    assert value == pytest.approx(exact_value(2000, 2), rel=1e-6)  # float32 rows miss the simplex
