"""Smooth ECE against the oracle, relplot and numbers computed by hand."""

import numpy as np
import pytest

import ckce
from ckce import reference


def draw(n, m=2, temperature=1.0, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, m)) * 1.5
    q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    truth = np.exp(temperature * z)
    truth /= truth.sum(axis=1, keepdims=True)
    return (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1), q


HARD = np.eye(2)[np.arange(40) % 2]
ODD = {
    "one row": (np.array([1]), np.array([[0.3, 0.7]])),
    "a constant": (np.arange(30) // 9 % 2, np.tile([0.6, 0.4], (30, 1))),
    "ties": (draw(500)[0], draw(500)[1].round(1)),
    "certain and right": (np.arange(40) % 2, HARD),
    "certain and wrong": (1 - np.arange(40) % 2, HARD),
    "some certain": (draw(60)[0], np.concatenate([HARD, draw(20)[1]])),
}


@pytest.mark.parametrize("m", [2, 3, 20])
@pytest.mark.parametrize("n", [1, 7, 129, 20_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_oracle(n, m, weighted):
    y, q = draw(n, m, 0.7, seed=n)
    weights = 0.5 + np.arange(n) % 3 if weighted else None
    values = {ckce.smooth_ece(y, q, sample_weight=weights, n_threads=t) for t in (1, 2, 5)}
    assert len(values) == 1
    expected = reference.smooth_ece(y, q, weights)
    assert values.pop() == pytest.approx(expected, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("name", ODD)
def test_odd_predictions_equal_the_oracle(name):
    y, q = ODD[name]
    assert ckce.smooth_ece(y, q) == pytest.approx(reference.smooth_ece(y, q), rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("temperature", [0.7, 1.0, 2.0])
@pytest.mark.parametrize("n", [1, 2, 50, 3000, 300_000])
def test_equals_relplot(n, temperature):
    relplot = pytest.importorskip("relplot", exc_type=ImportError)
    y, q = draw(n, 2, temperature, seed=n)
    assert abs(ckce.smooth_ece(y, q) - relplot.smECE(q[:, 1], y.astype(float))) < 1e-12
    y, q = draw(n, 4, temperature, seed=n)
    confidence, hit = relplot.metrics.multiclass_logits_to_confidences(q, y, probs=True)
    assert abs(ckce.smooth_ece(y, q) - relplot.smECE(confidence, hit)) < 1e-12


@pytest.mark.parametrize("name", ODD)
def test_odd_predictions_equal_relplot(name):
    relplot = pytest.importorskip("relplot", exc_type=ImportError)
    y, q = ODD[name]
    assert abs(ckce.smooth_ece(y, q) - relplot.smECE(q[:, 1], y.astype(float))) < 1e-12


def test_by_hand():
    # One prediction, 9 of 30 hits: the error is |0.4 - 0.3| whatever the kernel, but for the
    # constant 1e-4 in the density of 30 rows.
    y = np.repeat([1, 0], [9, 21])
    assert ckce.smooth_ece(y, np.full(30, 0.4)) == pytest.approx(0.1, rel=1e-5)
    assert ckce.smooth_ece(1 - y, np.full(30, 0.6)) == pytest.approx(0.1, rel=1e-5)
    assert ckce.smooth_ece(np.ones(30, int), np.ones(30)) == 0.0


def test_weights_are_repetitions():
    y, q = draw(50, 3)
    weights = np.arange(50) % 4
    repeated = ckce.smooth_ece(np.repeat(y, weights), np.repeat(q, weights, axis=0))
    assert ckce.smooth_ece(y, q, sample_weight=weights) == pytest.approx(repeated, rel=1e-12)


def test_evaluate_has_it():
    y, q = draw(300, 3, 2.0)
    e = ckce.evaluate(y, q, bandwidth=0.5)
    assert e.smooth_ece == e.to_dict()["smooth_ece"] == ckce.smooth_ece(y, q)
    assert "of the top label, kernel width" in repr(e)
    assert "relplot" not in repr(e)
    y, q = ODD["some certain"]
    words = " ".join(repr(ckce.evaluate(y, q)).split())
    assert "66.7 % of the predictions are 0 or 1 and count half" in words


def test_ranks_count_the_first_as_predicted():
    # The rest is larger than the first, and no prediction.
    top = ckce.TopKPredictions([[0.4, 0.1], [0.3, 0.2]] * 30)
    e = ckce.evaluate([0, 1] * 30, top, reduction=ckce.TopK(2), bandwidth=0.5)
    expected = reference.smooth_ece(np.array([1, 0] * 30), np.array([[0.6, 0.4], [0.7, 0.3]] * 30))
    assert e.smooth_ece == pytest.approx(expected, rel=1e-11)
