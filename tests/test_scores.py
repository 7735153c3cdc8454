"""Scoring rules against the oracle and scikit-learn; the decomposition adds up."""

import math

import numpy as np
import pytest

import ckce
from ckce import reference

SCORES = ["accuracy", "brier", "log_loss"]


def sample(n=60, m=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, m, n), rng.dirichlet(np.ones(m), n)


def close(value, rel=1e-12):
    return pytest.approx(value, rel=rel, abs=1e-15)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize(("n", "m"), [(1, 2), (60, 3), (129, 12), (5000, 4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_oracle(name, n, m, weighted):
    y, q = sample(n, m)
    weights = 0.5 + np.arange(n) % 3 if weighted else None
    expected = getattr(reference, name)(y, q, weights)
    values = {getattr(ckce, name)(y, q, sample_weight=weights, n_threads=t) for t in (1, 2, 5)}
    assert len(values) == 1
    assert values.pop() == close(expected)


@pytest.mark.parametrize("m", [2, 5])
def test_equals_sklearn(m):
    metrics = pytest.importorskip("sklearn.metrics")
    y, q = sample(2000, m, seed=1)
    weights = np.random.default_rng(2).random(2000) + 0.5
    for w in (None, weights):
        assert ckce.log_loss(y, q, sample_weight=w) == close(
            metrics.log_loss(y, q, sample_weight=w, labels=range(m))
        )
        hits = metrics.accuracy_score(y, q.argmax(axis=1), sample_weight=w)
        assert ckce.accuracy(y, q, sample_weight=w) == close(hits)
    if m == 2:  # scikit-learn halves the binary score
        assert ckce.brier(y, q) == close(2 * metrics.brier_score_loss(y, q[:, 1]))
        assert ckce.brier(y, q[:, 1]) == close(2 * metrics.brier_score_loss(y, q[:, 1]))
    else:
        one_hot = np.eye(m)[y]
        assert ckce.brier(y, q) == close(m * metrics.mean_squared_error(one_hot, q))


def test_probability_zero_is_infinite():
    assert ckce.log_loss([0, 1], [[0.0, 1.0], [0.0, 1.0]]) == math.inf
    assert ckce.log_loss([1, 1], [[0.0, 1.0], [0.0, 1.0]]) == 0.0


def test_ties_go_to_the_first_maximum():
    q = [[0.4, 0.4, 0.2], [0.2, 0.4, 0.4]]
    assert ckce.accuracy([0, 1], q) == 1.0
    assert ckce.accuracy([1, 2], q) == 0.0


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("variant", ["simplex", "top_label", "class_wise"])
@pytest.mark.parametrize("weighted", [False, True])
def test_decomposition(variant, strategy, weighted):
    if (variant, strategy) == ("simplex", "quantile"):
        pytest.skip("no such bins")
    y, q = sample(400, 3, seed=3)
    weights = 1.0 + np.arange(400) % 2 if weighted else None
    options = {"variant": variant, "strategy": strategy, "n_bins": 4, "sample_weight": weights}
    parts = ckce.brier_decomposition(y, q, **options)
    for name, value in reference.brier_decomposition(y, q, **options).items():
        assert getattr(parts, name) == close(value)
    assert parts.brier == close(parts.calibration + parts.refinement + parts.within_bins)
    assert parts.refinement == close(parts.uncertainty - parts.resolution)
    options |= {"norm": "l2_squared"}
    classes = 3 if variant == "class_wise" else 1
    assert parts.calibration == close(classes * ckce.ece(y, q, **options))
    if variant != "top_label":
        assert parts.brier == close(ckce.brier(y, q, sample_weight=weights))


def test_decomposition_is_exact_for_constant_bins():
    rng = np.random.default_rng(4)
    p = rng.choice([0.05, 0.35, 0.95], 300)
    parts = ckce.brier_decomposition((rng.random(300) < p).astype(int), p)
    assert abs(parts.within_bins) < 1e-14
    debiased = ckce.brier_decomposition((rng.random(300) < p).astype(int), p, debias=True)
    assert abs(debiased.within_bins) < 1e-14


@pytest.mark.parametrize("name", [*SCORES, "brier_decomposition"])
def test_bad_input(name):
    function = getattr(ckce, name)
    y, q = sample(20, 3)
    bad = q.copy()
    bad[7, 1] = np.nan
    with pytest.raises(ValueError, match="y_prob row 7 column 1 is nan"):
        function(y, bad)
    with pytest.raises(ValueError, match=r"y_true row 0 is 3, expected 0\.\.2"):
        function(np.full(20, 3), q)
    with pytest.raises(ValueError, match="row 0 sums to"):
        function(y, q * 0.9)
    with pytest.raises(TypeError, match="normalize must be True or False"):
        function(y, q, normalize=1)


@pytest.mark.parametrize("name", SCORES)
def test_inputs(name):
    function = getattr(ckce, name)
    y, q = sample(200, 3, seed=5)
    names = np.array(["b", "c", "a"])
    assert function(names[y], q, labels=names) == function(y, q)
    logits = np.log(q)
    assert function(y, logits, input="logits") == close(function(y, q), rel=1e-10)
    assert function(y, 3 * q, normalize=True) == close(function(y, q), rel=1e-10)
    for dtype in (np.float32, np.float16):
        p = q.astype(dtype)
        assert function(y, p) == function(y, np.asfortranarray(p))
