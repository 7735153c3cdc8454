"""The k largest entries: a full sort, NumPy and ours do the same work, and agree."""

from functools import cache

import numpy_fast
import numpy_plain
import pytest
from simulate import Inputs

import ckce
from ckce import reference

inputs = cache(Inputs)
K = 20
SELECTIONS = {"full sort": reference.top_k, "NumPy": numpy_plain.top_k}


def fourier(select):
    return lambda y, q, w: numpy_fast.ckce_fourier(*select(y, q, K), w)


CONTENDERS = {
    **{name: fourier(select) for name, select in SELECTIONS.items()},
    "ckce": lambda y, q, w: ckce.ckce(
        y, q, method=ckce.Fourier(frequencies=w), reduction=ckce.TopK(K)
    ),
}


@pytest.mark.parametrize("name", CONTENDERS)
@pytest.mark.parametrize(("n", "m"), [(20_000, 100), (5_000, 1000)])
def bench_ckce_of_the_top_20(benchmark, n, m, name):
    data = inputs(n, m)
    w = ckce.fourier_frequencies(K + 1, 100, bandwidth=0.5)
    y, q = data.y_true, data.y32
    expected = CONTENDERS["full sort"](y, q, w)
    assert benchmark(CONTENDERS[name], y, q, w) == pytest.approx(expected, rel=1e-9)
