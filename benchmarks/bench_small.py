"""Small calls: what a call costs before there is work, beside a scikit-learn metric."""

import pytest
from simulate import Inputs

import ckce
from ckce import reference

DATA = Inputs(100, 3)


@pytest.mark.benchmark(group="small call, n=100, m=3")
def bench_ckce(benchmark):
    value = benchmark(ckce.ckce, DATA.y_true, DATA.y64)
    gamma = reference.median_bandwidth(DATA.y64)
    assert value == pytest.approx(reference.ckce(DATA.y_true, DATA.y64, bandwidth=gamma), rel=1e-10)


@pytest.mark.benchmark(group="small call, n=100, m=3")
def bench_log_loss(benchmark):
    metrics = pytest.importorskip("sklearn.metrics")
    y_prob = DATA.y64 / DATA.y64.sum(axis=1, keepdims=True)
    assert benchmark(metrics.log_loss, DATA.y_true, y_prob) > 0


@pytest.mark.benchmark(group="small call, n=100, m=3")
def bench_literal(benchmark):
    def literal():
        gamma = reference.median_bandwidth(DATA.y64)
        return reference.ckce(DATA.y_true, DATA.y64, bandwidth=gamma)

    assert benchmark(literal) > 0
