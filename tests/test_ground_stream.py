"""Two models at equal predictions, where the rows come in batches: states, and files of any size."""

import pickle

import numpy as np
import pytest
from support.two_models import draw, temper, two_models

import ckce

NAMES = ("sharp", "good")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """1024 rows at a time, so that all files have several."""
    monkeypatch.setattr("ckce._compare.ground_scan._CHUNK_BYTES", 1)


def story(n, m=3, seed=0):
    """Labels, a sharp and a good model."""
    rng = np.random.default_rng(seed)
    good = rng.dirichlet(np.ones(m), n)
    return draw(rng, good), temper(good, 2.0), good


def scans(folder, y, a, b, batch_size=8192, weights=None):
    """Files of two models, read in batches."""
    more = {} if weights is None else {"w": weights}
    named = {} if weights is None else {"weights": "w"}
    found = []
    for name, probs in (("a", a), ("b", b)):
        np.savez(folder / f"{name}.npz", probs=probs, labels=y, **more)
        found.append(ckce.scan(folder / f"{name}.npz", batch_size=batch_size, **named))
    return found


def same(one, other, rel=1e-9):
    """Whether two comparisons have the same numbers to rounding."""
    assert (one.verdict, one.better, one.sentence) == (other.verdict, other.better, other.sentence)
    for name in ("difference", "se", "share", "resolution", "own_difference", "own_se"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=rel, abs=1e-13), name
    assert one.z == pytest.approx(other.z, rel=rel, abs=1e-9)


@pytest.mark.parametrize("m", [2, 4])
def test_files_give_what_arrays_give(tmp_path, m):
    y, a, b = story(1800, m)
    for options in ({}, {"regularization": 0.3, "kernel": "gaussian"}, {"reduction": "top_label"}):
        found = scans(tmp_path, y, a, b, batch_size=500)
        by_files = found[0].compare(found[1], names=NAMES, **options)
        same(by_files, ckce.common_ground(y, a, b, names=NAMES, **options))
    assert by_files.verdict == "different"
    assert "(median of a sample of 1800)" in by_files.signature


def test_weights_label_kernels_and_many_classes_in_files(tmp_path):
    y, a, b = story(1500)
    weights = np.random.default_rng(0).integers(0, 3, 1500).astype(float)
    options = {"bandwidth": 0.4, "label_kernel": np.eye(3) + 0.5}
    found = scans(tmp_path, y, a, b, weights=weights)
    by_files = found[0].compare(found[1], **options)
    by_arrays = ckce.common_ground(y, a, b, sample_weight=weights, **options)
    same(by_files, by_arrays)
    assert "|w:" in by_files.signature
    y, a, b = two_models(3, n=1500, m=30)
    found = scans(tmp_path, y, a, b)
    by_files = found[0].compare(found[1])
    same(by_files, ckce.common_ground(y, a, b))
    assert "|reduction:top_k(5)|" in by_files.signature


def test_batches_and_the_order_of_the_models_do_not_change_a_bit(tmp_path):
    y, a, b = story(5000)
    found = [scans(tmp_path, y, a, b, batch_size=size) for size in (8192, 700, 1024)]
    one, *others = [first.compare(second, names=NAMES) for first, second in found]
    assert one.verdict == "different"
    assert all(other == one for other in others)
    back = found[0][1].compare(found[0][0], names=NAMES[::-1])
    assert (back.difference, back.se) == (-one.difference, one.se)
    assert back.better == one.better
    by_arrays = ckce.common_ground(y, a, b, names=NAMES)  # other landmarks, another bandwidth
    assert one.difference == pytest.approx(by_arrays.difference, rel=0.05)


def test_states_give_the_difference_and_say_what_is_missing():
    y, a, b = story(3000)
    empty = ckce.GroundAccumulator.from_sample(
        y[:2000], {"sharp": a[:2000], "good": b[:2000]}, n_samples=3000
    )
    parts = []
    for probs in (a, b):
        whole, rest = empty.fresh(), empty.fresh()
        for rows in (slice(0, 1), slice(1, 1500)):
            whole.update(y[rows], probs[rows])
        rest.update(y[1500:], probs[1500:])
        rest = pickle.loads(pickle.dumps(rest))
        parts.append(whole.merge(rest))
        assert whole.n_samples == 3000
    found = parts[0].compare(parts[1], names=NAMES)
    assert (found.verdict, found.better) == ("needs the rows", None)
    assert np.isnan([found.se, found.low, found.p_value, found.p_holm, found.own_se]).all()
    assert found.sentence == (
        f"At equal predictions the value of sharp is {found.first_value:.4f}, that of good "
        f"{found.second_value:.4f} (difference {found.difference:.4f}). A verdict needs another pass "
        "over the rows, which ckce.scan makes: these are sums."
    )
    direct = empty.fresh(), empty.fresh()
    for state, probs in zip(direct, (a, b), strict=True):
        state.update(y, probs)
    whole = direct[0].compare(direct[1], names=NAMES)
    assert found.difference == pytest.approx(whole.difference, rel=1e-10)
    assert found.first_value - found.second_value == pytest.approx(found.difference, rel=1e-12)
    back = parts[1].compare(parts[0])
    assert (back.difference, back.own_difference) == (-found.difference, -found.own_difference)
    assert "n_samples=3000" in repr(parts[0])


def test_states_know_constant_models_and_missing_ground():
    rng = np.random.default_rng(1)
    good = rng.dirichlet([1, 1, 1], 2000)
    y = draw(rng, good)
    flat = np.tile([0.8, 0.1, 0.1], (2000, 1))
    empty = ckce.GroundAccumulator.from_sample(y, {"good": good, "flat": flat})
    states = {}
    for name, probs in (("good", good), ("flat", flat)):
        states[name] = empty.fresh()
        for rows in (slice(0, 1000), slice(1000, 2000)):
            part = empty.fresh()
            part.update(y[rows], probs[rows])
            states[name].merge(part)
    found = states["good"].compare(states["flat"], names=("good", "flat"))
    assert "flat always predicts the same" in found.sentence
    low, high = rng.uniform(0.02, 0.1, 2000), rng.uniform(0.9, 0.98, 2000)
    y = rng.integers(0, 2, 2000)
    empty = ckce.GroundAccumulator.from_sample(y, {"low": low, "high": high})
    states = [empty.fresh(), empty.fresh()]
    for state, probs in zip(states, (low, high), strict=True):
        state.update(y, probs)
    assert states[0].compare(states[1]).verdict == "no common ground"


def test_refusals(tmp_path):
    y, a, b = story(600)
    empty = ckce.GroundAccumulator.from_sample(y, {"a": a, "b": b})
    other = ckce.GroundAccumulator.from_sample(y[:300], {"a": a[:300], "b": b[:300]})
    with pytest.raises(ValueError, match="landmarks must be the same to compare"):
        empty.compare(other)
    with pytest.raises(ValueError, match="landmarks must be the same to merge"):
        empty.merge(other)
    with pytest.raises(ValueError, match="a state holds no rows yet"):
        empty.compare(empty.fresh())
    with pytest.raises(TypeError, match="other must be a GroundAccumulator, got int"):
        empty.merge(3)
    with pytest.raises(TypeError, match="made by from_sample"):
        ckce.GroundAccumulator(3)
    first, second = empty.fresh(), empty.fresh()
    first.update(y, a)
    second.update(y[:500], b[:500])
    with pytest.raises(ValueError, match=r"got 600 rows \(weight 600\) and 500 \(weight 500\)"):
        first.compare(second)
    with pytest.raises(ValueError, match="kernel must have a Gaussian part"):
        ckce.GroundAccumulator.from_sample(y, {"a": a, "b": b}, kernel="laplace")
    one, two = scans(tmp_path, y, a, b)
    with pytest.raises(TypeError, match="other must be a Scan, got ndarray"):
        one.compare(b)
    with pytest.raises(TypeError, match="sample_weight comes from the files"):
        one.compare(two, sample_weight=np.ones(600))
    np.savez(tmp_path / "short.npz", probs=b[:-1], labels=y[:-1])
    with pytest.raises(ValueError, match="same rows, since these are paired, got 600 and 599"):
        one.compare(ckce.scan(tmp_path / "short.npz"))
    np.savez(tmp_path / "other.npz", probs=b, labels=(y + 1) % 3)
    with pytest.warns(UserWarning, match="the files hold different labels"):
        one.compare(ckce.scan(tmp_path / "other.npz"))
    np.savez(tmp_path / "weighted.npz", probs=b, labels=y, w=np.full(600, 2.0))
    with pytest.raises(ValueError, match="weights must be the same for both models"):
        one.compare(ckce.scan(tmp_path / "weighted.npz", weights="w"))
