"""Reductions, JKCE's further estimators, attribution."""

import math

import numpy as np
import pytest

import ckce
from ckce import reference

KERNELS = ["linear_gaussian", "gaussian", "laplace", "linear"]


def sample(n=60, m=4, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(m), n)
    odds = np.sqrt(q) / np.sqrt(q).sum(axis=1, keepdims=True)
    return (odds.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), q


def close(value, rel=1e-9):
    return pytest.approx(value, rel=rel, abs=1e-15)


def oracle(metric, y, q, reduction, kernel, bandwidth, **options):
    options |= {"kernel": kernel, "bandwidth": bandwidth}
    function = getattr(reference, metric)
    if reduction == "top_label":
        return function(*reference.top_label(y, q), **options)
    problems = [reference.one_vs_rest(y, q, j) for j in range(q.shape[1])]
    return np.mean([function(*problem, **options) for problem in problems])


@pytest.mark.parametrize("method", ["exact", "cholesky"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("reduction", ["top_label", "class_wise"])
def test_ckce_and_jkce(reduction, kernel, method):
    y, q = sample()
    options = {"reduction": reduction, "kernel": kernel, "method": method}
    if kernel != "linear":
        options["bandwidth"] = 0.4
    expected = oracle("ckce", y, q, reduction, kernel, 0.4)
    assert ckce.ckce(y, q, **options) == close(expected, rel=1e-8)
    for estimator in ("unbiased", "biased"):
        expected = oracle("jkce", y, q, reduction, kernel, 0.4, estimator=estimator)
        assert ckce.jkce(y, q, estimator=estimator, **options) == close(expected, rel=1e-7)


@pytest.mark.parametrize("function", [ckce.ckce, ckce.estimate, ckce.jkce])
@pytest.mark.parametrize("method", [ckce.Cholesky(rank=60), ckce.Landmarks(60)])
def test_no_class_gets_the_features_of_another_one(function, method):
    # Rows of one class are freed before those of the next are made, often at the same address.
    options = {"reduction": "class_wise", "bandwidth": 0.4}
    for seed in range(20):
        y, q = sample(m=4 + seed % 3, seed=seed)
        parts = [reference.one_vs_rest(y, q, j) for j in range(q.shape[1])]  # all live at once
        alone = [float(function(*part, method=method, bandwidth=0.4)) for part in parts]
        for _ in range(3):
            value = float(function(y, q, method=method, **options))
            assert value == close(np.mean(alone))


@pytest.mark.parametrize("reduction", ["top_label", "class_wise"])
def test_estimate(reduction):
    y, q = sample(seed=1)
    e = ckce.estimate(y, q, reduction=reduction, bandwidth=0.4)
    arguments = (y, q, reduction, "linear_gaussian", 0.4)
    assert e.value == ckce.ckce(y, q, reduction=reduction, bandwidth=0.4)
    assert e.floor == close(oracle("floor", *arguments))
    assert e.debiased == close(e.value - oracle("debias_term", *arguments))
    assert f"|reduction:{reduction}|" in e.signature
    assert e.n_classes == 4
    if reduction == "top_label":
        assert e.se == close(oracle("standard_error", *arguments))
        assert e.per_class is None
        with pytest.raises(ValueError, match="attribution needs contributions"):
            e.attribution()
    else:
        assert e.per_class.sum() == close(e.value)
        assert 0.0 < e.se < 1.0


@pytest.mark.parametrize("kernel", ["linear_gaussian", "laplace"])
@pytest.mark.parametrize("n", [2, 3, 40, 41])
def test_class_wise_bandwidth_is_pooled(n, kernel):
    y, q = sample(n, 3, seed=2)
    e = ckce.estimate(y, q, reduction="class_wise", kernel=kernel)
    assert e.bandwidth == close(reference.class_wise_bandwidth(q, kernel), rel=1e-14)
    many = {ckce.estimate(y, q, reduction="class_wise", n_threads=t).bandwidth for t in (1, 3)}
    assert len(many) == 1


@pytest.mark.parametrize("q", [np.eye(3)[[0, 0, 0, 0, 1]], np.full((4, 2), 0.5)])
def test_class_wise_bandwidth_of_hard_and_constant_predictions(q):
    e = ckce.estimate(np.zeros(len(q), int), q, reduction="class_wise")
    assert e.bandwidth == close(reference.class_wise_bandwidth(q), rel=1e-14)


def test_class_wise_bandwidth_counts_copies():
    y, q = sample(30, 3, seed=3)
    weights = np.arange(30) % 4
    copies = np.repeat(q, weights, axis=0)
    e = ckce.estimate(y, q, reduction="class_wise", sample_weight=weights)
    assert e.bandwidth == close(reference.class_wise_bandwidth(copies), rel=1e-14)
    assert e.value == close(ckce.ckce(np.repeat(y, weights), copies, reduction="class_wise"))


def test_two_classes_reduce_to_themselves():
    y, q = sample(50, 2, seed=4)
    value = ckce.ckce(y, q, reduction="class_wise", bandwidth=0.5)
    assert value == close(ckce.ckce(y, q, bandwidth=0.5))


def test_reduction_refuses():
    y, q = sample()
    with pytest.raises(ValueError, match="reduction must be one of"):
        ckce.ckce(y, q, reduction="top")
    for function in (ckce.ckce, ckce.estimate, ckce.jkce, ckce.jkce_estimate):
        with pytest.raises(ValueError, match="label_kernel must be None with reduction="):
            function(y, q, reduction="top_label", label_kernel=np.eye(4))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("method", ["exact", "cholesky", "fourier"])
def test_jkce_standard_error(method, kernel):
    if (method, kernel) == ("fourier", "linear"):
        pytest.skip("no features")
    y, q = sample(150, 3, seed=5)
    options = {"kernel": kernel, "method": method}
    oracle_kernel = kernel
    if method == "fourier":
        frequencies = ckce.fourier_frequencies(3, 20, kernel=kernel, bandwidth=0.4)
        linear = kernel == "linear_gaussian"
        options["method"] = ckce.Fourier(frequencies=frequencies)

        def oracle_kernel(a, b):
            return (
                reference.fourier_features(a, frequencies, linear)
                @ reference.fourier_features(b, frequencies, linear).T
            )

    elif kernel != "linear":
        options["bandwidth"] = 0.4
    e = ckce.jkce_estimate(y, q, **options)
    fixed = {"kernel": oracle_kernel, "bandwidth": 0.4}
    assert e.value == close(reference.jkce(y, q, **fixed), rel=1e-6)
    assert e.biased == close(reference.jkce(y, q, estimator="biased", **fixed), rel=1e-8)
    assert e.se == close(reference.jkce_standard_error(y, q, **fixed), rel=1e-7)
    assert float(e) == e.value
    low, high = e.interval()
    assert low < e.value < high


def test_jkce_estimate_of_a_callable_and_a_label_kernel():
    y, q = sample(30, 3, seed=6)
    ell = np.diag([1.0, 2.0, 3.0])
    fixed = {"kernel": lambda a, b: a @ b.T + 1.0, "label_kernel": ell}
    e = ckce.jkce_estimate(y, q, **fixed)
    assert e.value == close(reference.jkce(y, q, bandwidth=1.0, **fixed))
    assert e.se == close(reference.jkce_standard_error(y, q, bandwidth=1.0, **fixed))


def test_jkce_estimate_counts_copies():
    y, q = sample(40, 3, seed=7)
    weights = np.arange(40) % 3
    e = ckce.jkce_estimate(y, q, sample_weight=weights, bandwidth=0.4)
    copies = ckce.jkce_estimate(np.repeat(y, weights), np.repeat(q, weights, axis=0), bandwidth=0.4)
    assert (e.value, e.se, e.biased) == close((copies.value, copies.se, copies.biased))


def test_jkce_standard_error_covers():
    values, errors = [], []
    for seed in range(200):
        y, q = sample(100, 3, seed=1000 + seed)
        e = ckce.jkce_estimate(y, q, bandwidth=0.4)
        values.append(e.value)
        errors.append(e.se)
    assert 0.8 < np.mean(errors) / np.std(values) < 1.5


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("block_size", [2, 3, 50, 128, 129, 300])
def test_blocks(block_size, kernel):
    y, q = sample(700, 3, seed=9)
    fixed = {"kernel": kernel} | ({"bandwidth": 0.4} if kernel != "linear" else {})
    e = ckce.jkce_estimate(y, q, method=ckce.Blocks(block_size), **fixed)
    blocks = reference.jkce_block(y, q, block_size=block_size, kernel=kernel, bandwidth=0.4)
    assert e.value == close(blocks.mean(), rel=1e-8)
    assert e.se == close(blocks.std(ddof=1) / math.sqrt(len(blocks)), rel=1e-8)
    assert e.n_blocks == 700 // block_size
    assert e.biased is None
    values = {
        ckce.jkce(y, q, method=ckce.Blocks(block_size), n_threads=t, **fixed) for t in (1, 2, 5)
    }
    assert values == {e.value}


def test_one_block_is_the_whole():
    y, q = sample(90, 3, seed=10)
    e = ckce.jkce_estimate(y, q, method=ckce.Blocks(90))
    assert e.value == close(ckce.jkce(y, q))
    assert math.isnan(e.se)
    assert "|block:9|" in ckce.jkce_estimate(y, q, method="blocks").signature


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": ckce.Blocks(1)}, "size of ckce.Blocks must be from 2 to"),
        ({"method": ckce.Blocks(61)}, "size of ckce.Blocks must be from 2 to"),
        ({"method": "blocks", "estimator": "biased"}, "method='blocks' has no biased estimator"),
        ({"method": "blocks", "sample_weight": np.ones(60)}, "sample_weight must be None"),
        ({"method": "blocks", "kernel": lambda a, b: a @ b.T}, "callable kernel needs"),
        ({"method": "block"}, "method must be one of"),
    ],
)
def test_blocks_refuse(options, words):
    with pytest.raises(ValueError, match=words):
        ckce.jkce(*sample(), **options)
    for function in (ckce.ckce, ckce.estimate, ckce.evaluate, ckce.calibration_test):
        for method in ("blocks", ckce.Blocks(5)):
            with pytest.raises(ValueError, match=r"method must be one of .*, got 'blocks'"):
                function(*sample(), method=method)


def test_total_variation_kernel_of_the_literature():
    """kernel = exp(-TV / median TV), the median over the full matrix with its zero diagonal."""
    y, q = sample(80, 4, seed=11)
    tv = 0.5 * np.abs(q[:, None] - q[None, :]).sum(axis=-1)
    r = np.eye(4)[y] - q
    h = np.exp(-tv / np.median(tv)) * (r @ r.T)
    bandwidth = 2 * np.median(tv)
    biased = ckce.jkce(y, q, kernel="laplace", bandwidth=bandwidth, estimator="biased")
    assert biased == close(h.mean())
    unbiased = ckce.jkce(y, q, kernel="laplace", bandwidth=bandwidth)
    assert unbiased == close((h.sum() - np.trace(h)) / (80 * 79))


def test_attribution():
    y, q = sample(200, 4, seed=12)
    y[y == 2] = 1  # class 2 never occurs
    names = ["red", "green", "blue", "grey"]
    e = ckce.estimate(np.array(names)[y], q, labels=names)
    rows = e.attribution()
    assert len(rows) == 4
    assert sum(row.contribution for row in rows) == close(e.value)
    assert sum(row.share for row in rows) == close(1.0)
    assert [row.contribution for row in rows] == sorted(e.per_class, reverse=True)
    directions = {row.label: row.direction for row in rows}
    assert directions["blue"] == "over-predicted"
    assert directions["green"] == "under-predicted"
    residual = (np.eye(4)[y] - q).mean(axis=0)
    assert e.mean_residual == close(residual)
    assert {row.label: row.mean_residual for row in rows} == close(
        dict(zip(names, residual, strict=True))
    )
    assert "green" in repr(rows)


def test_attribution_names_classes():
    y, q = sample(30, 3, seed=13)
    assert ckce.estimate(y, q).classes == (0, 1, 2)
    strings = np.array(["b", "a", "c"])[y]
    with pytest.warns(UserWarning, match="in sorted order, 'a', 'b', 'c'"):
        assert ckce.estimate(strings, q).classes == ("a", "b", "c")
    y, q = sample(30, 12, seed=13)
    assert "the other 2 classes" in repr(ckce.estimate(y, q).attribution())
