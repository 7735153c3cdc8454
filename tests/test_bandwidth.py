"""The median heuristic."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rng import SplitMix64
from shared import EDGES, calibration_sets, sample

import ckce
from ckce import reference
from ckce._input.kernels import KERNELS

close = {"rel": 1e-14, "abs": 0}


@pytest.mark.parametrize("kernel", KERNELS)
@given(data=calibration_sets(max_n=15))
def test_against_the_oracle(kernel, data):
    _, q = data
    expected = reference.median_bandwidth(q, kernel)
    assert ckce.median_bandwidth(q, kernel=kernel) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("edge", EDGES)
def test_edge_data(kernel, edge):
    _, q = EDGES[edge]
    expected = reference.median_bandwidth(q, kernel)
    assert ckce.median_bandwidth(q, kernel=kernel) == pytest.approx(expected, **close)


def test_by_hand():
    q = [[1.0, 0.0], [0.4, 0.6], [0.0, 1.0]]  # distances 0.6, 0.4 and 1 times sqrt(2)
    assert ckce.median_bandwidth(q) == pytest.approx(0.6 * math.sqrt(2), **close)
    assert ckce.median_bandwidth(q, kernel="laplace") == pytest.approx(1.2, **close)
    four = [0.0, 0.1, 0.3, 1.0]  # 0.1 0.3 1.0 0.2 0.9 0.7: the mean of 0.3 and 0.7
    assert ckce.median_bandwidth(four) == pytest.approx(0.5 * math.sqrt(2), **close)


@pytest.mark.parametrize("n", [127, 128, 129, 400])
def test_panels(n):
    _, q = sample(n, 5)
    for kernel in ("gaussian", "laplace"):
        expected = reference.median_bandwidth(q, kernel)
        assert ckce.median_bandwidth(q, kernel=kernel) == pytest.approx(expected, **close)


def test_zero_medians():
    assert ckce.median_bandwidth(np.full((5, 2), 0.5)) == 1.0
    assert ckce.median_bandwidth([[0.3, 0.7]]) == 1.0
    hard = np.eye(2)[[0, 0, 0, 0, 0, 0, 1]]
    assert ckce.median_bandwidth(hard) == pytest.approx(math.sqrt(2), **close)
    assert ckce.median_bandwidth(hard, kernel="laplace") == 2.0
    assert ckce.median_bandwidth([[1.0, 0.0], [0.0, 1.0]], sample_weight=[5, 1]) == math.sqrt(2)
    assert ckce.median_bandwidth([[0.3, 0.7]], sample_weight=[3]) == 1.0


def test_the_rule_is_named():
    y = np.zeros(7, int)
    hard = np.eye(2)[[0, 0, 0, 0, 0, 0, 1]]
    assert ckce.estimate(y, hard).bandwidth_source == "median>0"
    assert ckce.estimate(y, np.full((7, 2), 0.5)).bandwidth_source == "no distances"
    assert ckce.estimate(*sample(7, 2)).bandwidth_source == "median"
    assert ckce.estimate(*sample(7, 2), bandwidth=0.5).bandwidth_source == "given"


def test_predictions_that_differ_by_next_to_nothing():
    # Saturated softmax outputs: squared distances near 1e-320 are subnormal. In a process of its
    # own, because an index computed from them once left the array.
    code = """
import ckce
q = [[1.0, 0.0], [1.0, 1e-160], [1.0, 2e-160]]
assert 0 < ckce.median_bandwidth(q, kernel="laplace") <= 1
assert 0 < ckce.median_bandwidth(q) <= 1
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@given(weights=st.lists(st.integers(0, 5), min_size=9, max_size=9).filter(any))
def test_weights_count_copies(kernel, weights):
    _, q = sample(9, 3)
    repeated = np.repeat(q, weights, axis=0)
    with_weights = ckce.median_bandwidth(q, kernel=kernel, sample_weight=weights)
    assert with_weights == pytest.approx(reference.median_bandwidth(repeated, kernel), **close)
    assert with_weights == ckce.median_bandwidth(repeated, kernel=kernel)


def drawn_rows(count, seed):
    """2000 rows without replacement, by Floyd's algorithm."""
    random, rows = SplitMix64(seed), set()
    for k in range(count - 2000, count):
        row = random.below(k + 1)
        rows.add(k if row in rows else row)
    return sorted(rows)


def test_subsample():
    _, q = sample(2300, 2)
    for seed in (0, 7):
        rows = drawn_rows(2300, seed)
        assert len(rows) == 2000
        expected = reference.median_bandwidth(q[rows])
        value = ckce.median_bandwidth(q, random_state=seed)
        assert value == pytest.approx(expected, rel=1e-13, abs=0)
    everything = reference.median_bandwidth(q)
    assert value != everything
    assert value == pytest.approx(everything, rel=0.05)


def test_subsample_of_weighted_rows_is_that_of_the_copies():
    _, q = sample(900, 3)
    w = np.random.default_rng(1).integers(0, 6, 900)
    repeated = ckce.median_bandwidth(np.repeat(q, w, axis=0), random_state=4)
    assert w.sum() > 2000
    assert ckce.median_bandwidth(q, sample_weight=w, random_state=4) == repeated


def test_2000_rows_are_all_used():
    _, q = sample(2000, 2)
    values = {ckce.median_bandwidth(q, random_state=seed) for seed in (0, 1)}
    assert len(values) == 1
    assert ckce.median_bandwidth(sample(2001, 2)[1], random_state=0) != ckce.median_bandwidth(
        sample(2001, 2)[1], random_state=1
    )


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "linear"])
def test_the_default_that_needs_no_data(kernel):
    for m in (2, 5):
        y, q = sample(40, m)
        e = ckce.estimate(y, q, kernel=kernel, bandwidth="default")
        scale = math.sqrt(2) if kernel == "laplace" else 1.0
        assert e.bandwidth == pytest.approx(scale * (1 - 1.5 / m), **close)
        assert e.bandwidth_source == "default"
        assert e.bandwidth == ckce.CKCEAccumulator(m, kernel=kernel).bandwidth
        assert e.value == ckce.ckce(y, q, kernel=kernel, bandwidth=e.bandwidth)
    y, q = sample(40, 5)
    two = ckce.estimate(y, q, kernel=kernel, bandwidth="default", reduction="top_label")
    assert two.bandwidth == pytest.approx(scale * 0.25, **close)


def test_options():
    _, q = sample(30, 3)
    assert ckce.median_bandwidth(np.log(q), input="log_probs") == pytest.approx(
        ckce.median_bandwidth(q), rel=1e-13
    )
    assert ckce.median_bandwidth(np.log(q), input="logits") == pytest.approx(
        ckce.median_bandwidth(q), rel=1e-13
    )
    assert ckce.median_bandwidth(3 * q, normalize=True) == pytest.approx(
        ckce.median_bandwidth(q), rel=1e-13
    )


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("which", ["repeated", "sorted", "rounded", "corners", "near"])
def test_median_of_sets_whose_sample_misleads(kernel, which):
    """Some pairs are sampled to bracket the median; the value must not depend on them."""
    rng = np.random.default_rng(11)
    q = rng.dirichlet(np.full(4, 0.4), 900)
    if which == "repeated":  # rows that are sampled together are equal
        q = np.tile(q[:128], (7, 1))
    elif which == "sorted":
        q = q[np.lexsort(q.T)]
    elif which == "rounded":  # many equal distances
        q = np.round(q * 4) + (q == q.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    elif which == "corners":
        q = np.eye(4)[q.argmax(axis=1)]
    else:  # most rows are equal
        q[150:] = q[0]
    order = {"gaussian": 2, "laplace": 1}[kernel]
    i, j = np.triu_indices(len(q), 1)
    distances = np.linalg.norm(q[i] - q[j], ord=order, axis=1)
    expected = np.median(distances)
    if expected <= 1e-6 * distances.max():
        expected = np.median(distances[distances > 1e-6 * distances.max()])
    assert ckce.median_bandwidth(q, kernel=kernel) == pytest.approx(expected, **close)
