"""The k largest entries of predictions, without the others."""

import pickle

import numpy as np
import pytest
from shared import sample

import ckce
from ckce import reference

Y, Q = sample(120, 30, seed=1, concentration=0.4)
ORDER = np.argsort(-Q, axis=1, kind="stable")
PROBS, IDS = np.take_along_axis(Q, ORDER, axis=1)[:, :8], ORDER[:, :8] + 1000
TOP = ckce.TopKPredictions(PROBS, IDS)
LABELS = Y + 1000
RANKS = reference.top_k(Y, Q, 8)[0]


def same(one, other):
    for name in ("value", "debiased", "floor", "se"):
        assert getattr(one, name) == getattr(other, name)


@pytest.mark.parametrize("j", [1, 3, 8])
def test_equal_to_full_predictions(j):
    options = {"reduction": ckce.TopK(j)}
    expected = ckce.estimate(Y, Q, **options)
    same(ckce.estimate(LABELS, TOP, **options), expected)
    same(ckce.estimate(RANKS, ckce.TopKPredictions(PROBS), **options), expected)
    logs = ckce.TopKPredictions(np.log(PROBS), IDS, input="log_probs")
    assert ckce.estimate(LABELS, logs, **options).value == pytest.approx(expected.value, rel=1e-12)
    assert ckce.jkce(LABELS, TOP, **options) == ckce.jkce(Y, Q, **options)
    top = ckce.estimate(LABELS, TOP, reduction="top_label")
    same(top, ckce.estimate(Y, Q, reduction="top_label"))


def test_the_literal_definition():
    ranks, q = reference.top_k(Y, Q, 5)
    value = ckce.ckce(LABELS, TOP, reduction=ckce.TopK(5), bandwidth=0.4, method="exact")
    assert value == pytest.approx(reference.ckce(ranks, q, bandwidth=0.4), rel=1e-9)


def test_float32_is_as_good():
    full = Q.astype(np.float32)
    order = np.argsort(-full, axis=1, kind="stable")[:, :8]
    top = ckce.TopKPredictions(np.take_along_axis(full, order, axis=1), order)
    assert ckce.ckce(Y, top, reduction=ckce.TopK(8)) == ckce.ckce(Y, full, reduction=ckce.TopK(8))


def test_rows_in_any_order():
    rng = np.random.default_rng(0)
    order = rng.permuted(np.tile(np.arange(8), (120, 1)), axis=1)
    mixed = ckce.TopKPredictions(
        np.take_along_axis(PROBS, order, axis=1), np.take_along_axis(IDS, order, axis=1)
    )
    same(
        ckce.estimate(LABELS, mixed, reduction=ckce.TopK(8)),
        ckce.estimate(LABELS, TOP, reduction=ckce.TopK(8)),
    )


def test_words_for_ids():
    words = np.char.add("token ", IDS.astype(str))
    top = ckce.TopKPredictions(PROBS, words.tolist())
    labels = np.char.add("token ", LABELS.astype(str))
    value = ckce.ckce(labels, top, reduction=ckce.TopK(8))
    assert value == ckce.ckce(LABELS, TOP, reduction=ckce.TopK(8))


def test_short_rows():
    """Absent entries: a shorter list, NaN, -inf, -9999.0 or 0 at the end."""
    rows = [[0.5, 0.3, 0.2], [1.0], [0.7, 0.3], [0.4, 0.4, 0.1]]
    ids = [[1, 2, 3], [4], [5, 6], [7, 8, 9]]
    y, two = [1, 4, 6, 0], {"reduction": ckce.TopK(3), "bandwidth": 0.5}
    full = np.zeros((4, 10))
    for row, at, q in zip(rows, ids, full, strict=True):
        q[at] = row
    full[3, 0] = 0.1
    expected = ckce.ckce([0, 0, 1, 3], ckce.TopKPredictions(rows), **two)
    assert ckce.ckce(y, ckce.TopKPredictions(rows, ids), **two) == expected
    assert ckce.ckce(y, full, **two) != expected  # 0 and 9 are equal there: 0 comes first
    padded = np.array([row + [np.nan] * (3 - len(row)) for row in rows])
    padded_ids = np.array([row + [-1] * (3 - len(row)) for row in ids])
    assert ckce.ckce(y, ckce.TopKPredictions(padded, padded_ids), **two) == expected
    for filler in (-np.inf, -9999.0, np.nan):
        with np.errstate(divide="ignore"):
            logs = np.where(np.isnan(padded), filler, np.log(padded))
        top = ckce.TopKPredictions(logs, padded_ids, input="log_probs")
        assert ckce.ckce(y, top, **two) == pytest.approx(expected, rel=1e-12)
    zeros = ckce.TopKPredictions(np.nan_to_num(padded), padded_ids)
    assert ckce.ckce(y, zeros, **two) == expected
    # A row that leaves something to others may be short only below what is asked for.
    short = ckce.TopKPredictions([[0.5, 0.3], [0.6]], ids=[[1, 2], [3]])
    assert ckce.ckce([1, 3], short, reduction=ckce.TopK(1)) >= 0.0
    with pytest.raises(ValueError, match=r"row 1 has: 1, and others have the rest; pass ckce.TopK"):
        ckce.ckce([1, 3], short, reduction=ckce.TopK(2))


def test_sums_above_one_by_rounding():
    rows = np.array([[0.7, 0.3 + 5e-6], [0.5, 0.5]])
    _, q = reference.top_k(np.array([0, 1]), rows, 1)
    top = ckce.TopKPredictions(rows)
    assert top.with_rest()[0].tolist() == [0.7, 0.3 + 5e-6, 0.0]
    assert q[0].tolist() == [0.7, pytest.approx(0.3)]
    half = ckce.TopKPredictions(np.array([[0.7, 0.301]], np.float16))
    assert half.with_rest()[0, 2] == 0.0


def test_every_function_takes_it():
    top, full = {"reduction": ckce.TopK(4)}, {"reduction": ckce.TopK(4)}
    e, expected = ckce.evaluate(LABELS, TOP, **top), ckce.evaluate(Y, Q, **full)
    assert (e.ckce.value, e.jkce.value) == (expected.ckce.value, expected.jkce.value)
    assert e.accuracy == expected.accuracy
    assert e.mean_confidence == pytest.approx(expected.mean_confidence, rel=1e-12)
    assert e.ece_top_label.value == pytest.approx(expected.ece_top_label.value, rel=1e-12)
    ranks, q = reference.top_k(Y, Q, 8)
    assert e.brier == pytest.approx(ckce.brier(ranks, q), rel=1e-12)
    test = ckce.calibration_test(LABELS, TOP, n_resamples=49, **top)
    assert test.p_value == ckce.calibration_test(Y, Q, n_resamples=49, **full).p_value
    flat = np.sqrt(PROBS) / np.sqrt(PROBS).sum(axis=1, keepdims=True) * PROBS.sum(axis=1)[:, None]
    two = {"top": TOP, "flat": ckce.TopKPredictions(flat, IDS)}
    c = ckce.compare(LABELS, two, test=19, **top)
    assert c.models[c.names.index("top")].accuracy == expected.accuracy
    assert len(c.sensitivity().pairs) == 1
    curve = ckce.shift_curve(LABELS, {"a": [TOP, two["flat"]]}, **top)
    assert curve.points[0].ece_top_label == e.ece_top_label.value
    diagram = ckce.reliability_diagram(LABELS, TOP, n_bins=5)
    other = ckce.reliability_diagram(Y, Q, n_bins=5)
    assert np.array_equal(diagram.curves[0].frequency, other.curves[0].frequency)
    page = ckce.report(LABELS, two, test=False, sensitivity=False, **top)
    assert "top_k(4)" in page.html
    assert ckce.common_ground(LABELS, TOP, two["flat"], **top).verdict
    weights = np.arange(120) % 3
    value = ckce.ckce(LABELS, TOP, sample_weight=weights, **top)
    assert value == ckce.ckce(Y, Q, sample_weight=weights, **full)
    groups = np.arange(120) // 4
    se = ckce.estimate(LABELS, TOP, groups=groups, **top).se
    assert se == ckce.estimate(Y, Q, groups=groups, **full).se
    assert "|in:top_k|" in c.signature


@pytest.mark.parametrize("reduction", ["top_label", ckce.TopK(8), ckce.TopK(3)])
def test_streams(reduction):
    """Batches of both kinds leave the same bits."""
    both = [ckce.CKCEAccumulator(30, reduction=reduction) for _ in range(2)]
    both[0].update(LABELS[:70], TOP[:70])
    both[0].update(LABELS[70:], TOP[70:])
    both[1].update(Y, Q)
    assert both[0].to_bytes() == both[1].to_bytes()
    acc = ckce.CKCEAccumulator.from_sample(LABELS, TOP, reduction=reduction)
    own = ckce.CKCEAccumulator.from_sample(Y, Q, reduction=reduction)
    assert acc.bandwidth == own.bandwidth


def test_the_object():
    assert repr(TOP) == "TopKPredictions(n_samples=120, k=8, ids=True)"
    twin = pickle.loads(pickle.dumps(TOP))
    assert np.array_equal(twin.probs, TOP.probs)
    some = TOP[np.array([3, 5])]
    assert (len(some), some.k) == (2, 8)
    assert np.array_equal(some.ids, IDS[[3, 5]])
    with pytest.raises(TypeError, match="rows must be a slice or an array"):
        TOP[3]
    before = PROBS.copy()
    ckce.ckce(LABELS, TOP, reduction=ckce.TopK(3))
    assert np.array_equal(before, PROBS)
