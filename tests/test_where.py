"""The numbers and the pictures of where a model is off."""

import dataclasses
import json

import numpy as np
import pytest
from shared import sample

import ckce
from ckce._metrics.views import arrows_of, class_curves, curve_of, rank_curves


def two(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, n)
    return (rng.random(n) < p**1.5).astype(int), p


def soft(z):
    q = np.exp(z)
    return q / q.sum(axis=1, keepdims=True)


def many(n, m, factor=0.6, seed=0):
    rng = np.random.default_rng(seed)
    z = 1.6 * rng.normal(size=(n, m))
    truth = soft(factor * z)
    return (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1), soft(z)


def test_a_curve_is_the_correction():
    y, p = two()
    curve = curve_of(ckce.witness(y, p))
    expected = ckce.witness(y, p, bandwidth=2.0).correction(curve.probability)
    assert np.array_equal(curve.frequency, curve.probability + expected.value[:, 1])
    assert np.array_equal(curve.low, curve.probability + expected.band_low[:, 1])
    assert np.array_equal(curve.high, curve.probability + expected.band_high[:, 1])
    assert curve.histogram.sum() == pytest.approx(1.0, rel=1e-12)
    given = curve_of(ckce.witness(y, p, bandwidth=0.5))
    own = ckce.witness(y, p, bandwidth=0.5).correction(given.probability)
    assert np.array_equal(given.frequency, given.probability + own.value[:, 1])


def test_the_band_covers_a_smooth_truth():
    curve = curve_of(ckce.witness(*two(4000)))
    truth = curve.probability**1.5
    assert ((curve.low <= truth) & (truth <= curve.high)).mean() > 0.9
    assert not ((curve.low <= curve.probability) & (curve.probability <= curve.high)).all()


def test_points_lie_where_the_rows_are():
    y, p = two()
    grid = curve_of(ckce.witness(y, p)).probability
    assert (np.diff(grid) > 0).all()
    assert np.quantile(p, 0.009) <= grid[0] <= np.quantile(p, 0.011)
    assert np.quantile(p, 0.989) <= grid[-1] <= np.quantile(p, 0.991)
    # A row of weight 3 is three rows.
    weights = 1.0 + 2.0 * (np.arange(len(y)) % 2)
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    weighted = curve_of(ckce.witness(y, p, sample_weight=weights))
    expected = curve_of(ckce.witness(y[repeated], p[repeated]))
    assert weighted.probability == pytest.approx(expected.probability, rel=1e-12)
    assert weighted.histogram == pytest.approx(expected.histogram, rel=1e-12)


def test_a_constant_model_has_one_point():
    y = np.arange(200) % 4 == 0
    curve = curve_of(ckce.witness(y.astype(int), np.full(200, 0.6)))
    assert curve.probability.tolist() == [0.6]
    assert curve.frequency[0] == pytest.approx(0.25, abs=0.03)


def test_ranks_and_classes_are_problems_of_two_classes():
    y, q = many(1500, 5)
    w = ckce.witness(y, q, method="fourier")
    first = rank_curves(w)[0]
    confidence, hit = q.max(axis=1), (q.argmax(axis=1) == y).astype(int)
    expected = curve_of(ckce.witness(hit, confidence))
    assert first.name == "predicted class"
    assert first.frequency == pytest.approx(expected.frequency, rel=1e-9)
    (worst,) = class_curves(w, 1)
    j = int(worst.name)
    expected = curve_of(ckce.witness((y == j).astype(int), q[:, j]))
    assert worst.frequency == pytest.approx(expected.frequency, rel=1e-9)
    assert len(class_curves(w, 9)) == 5


def test_arrows_start_at_the_mean_of_a_cell():
    y, q = many(3000, 3)
    w = ckce.witness(y, q, method="fourier")
    arrows = arrows_of(w)
    own = ckce.witness(y, q, method="fourier", bandwidth=2.0).correction(arrows.start)
    assert np.array_equal(arrows.end, arrows.start + own.value)
    cells = np.rint(9 * q[:, :2])
    for start, share in zip(arrows.start, arrows.share, strict=True):
        distance = np.abs(q - start).sum(axis=1)
        inside = (cells == cells[distance.argmin()]).all(axis=1)
        if inside.mean() == pytest.approx(share, rel=1e-9):
            assert start == pytest.approx(q[inside].mean(axis=0), rel=1e-9)
    assert arrows.shown.any()
    assert 0.5 < arrows.share.sum() <= 1.0 + 1e-12
    few = arrows_of(ckce.witness(y[:20], q[:20]))
    assert len(few.start) == len(few.shown) == 0


@pytest.mark.parametrize("m", [2, 3, 6, 150])
def test_evaluate_says_where(m):
    y, q = many(500, m)
    e = ckce.evaluate(y, q, where=True, method="fourier")
    where = e.where
    counts = (len(where.curves), len(where.classes), where.arrows is not None)
    assert counts == {2: (1, 0, False), 3: (0, 3, True), 6: (3, 3, False), 150: (3, 0, False)}[m]
    assert where.two_classes == (m == 2)
    assert repr(where) in repr(e)
    assert where._repr_html_() in e._repr_html_()
    assert json.dumps(where.to_dict())
    if m < 100:
        own = ckce.witness(y, q, method="fourier")
        assert where.lines[0][1:-1] == own.worst_regions()[0].words[1:]
        assert where.miscalibration.value == own.miscalibration.value
    else:
        assert "rank 1" in where.lines[0]
        top = ckce.miscalibration(y, q, reduction=ckce.TopK(10))
        assert where.miscalibration.value == pytest.approx(top.value, rel=1e-9)
    assert ckce.evaluate(y, q, method="fourier").where is None


def test_level_reductions_groups_and_few_rows():
    y, q = many(400, 4)
    options = {"method": "fourier", "where": True}
    e = ckce.evaluate(y, q, level=0.8, **options)
    assert e.where.curves[0].level == e.where.miscalibration.level == 0.8
    top = ckce.evaluate(y, q, reduction="top_label", **options).where
    assert top.two_classes
    assert top.curves[0].name == "right"
    ranked = ckce.evaluate(y, q, reduction=ckce.TopK(2), **options).where
    assert [c.name for c in ranked.curves] == ["predicted class", "second most probable class"]
    alone = ckce.evaluate(y, q, reduction=ckce.TopK(1), **options).where
    assert [c.name for c in alone.curves] == ["predicted class"]
    assert not alone.two_classes
    assert alone.curves[0].frequency == pytest.approx(top.curves[0].frequency, rel=1e-9)
    wise = ckce.evaluate(y, q, reduction="class_wise", **options).where
    assert wise.regions[0].words == e.where.regions[0].words
    grouped = ckce.evaluate(y, q, groups=np.arange(400) // 4, **options).where
    assert grouped.miscalibration.n_groups == 100
    assert ckce.evaluate(y[:49], q[:49], where=True).where is None


def test_cautions():
    y, q = many(800, 3, factor=1.0)
    calm = ckce.evaluate(y, q, where=True).where
    assert not any(region.shown for region in calm.regions)
    assert "may be chance" in calm.caution
    y, q = many(800, 3, factor=0.3)
    assert "a new sample would show smaller" in ckce.evaluate(y, q, where=True).where.caution
    none = dataclasses.replace(calm, regions=())
    assert repr(none).endswith("There are too few rows to look for regions.")


def test_plots():
    plt = pytest.importorskip("matplotlib.pyplot")
    w = ckce.witness(*two(600))
    ax = w.plot()
    assert ax.get_xlabel() == "Predicted probability of class 1"
    line = next(each for each in ax.lines if len(each.get_xdata()) > 2)
    assert np.array_equal(line.get_ydata(), curve_of(w).frequency)
    w = ckce.witness(*many(600, 3))
    axes = w.plot(ax=plt.figure().add_subplot())
    assert {"0", "1", "2"} <= {text.get_text() for text in axes.texts}
    assert len(w.plot("ranks")) == 2
    w = ckce.witness(*many(400, 7), method="fourier")
    assert next(ax.get_title() for ax in w.plot()) == "predicted class"
    assert len(w.plot("classes")) == 6
    with pytest.raises(ValueError, match=r"kind must be one of .*'ranks', 'classes'"):
        w.plot("simplex")
    with pytest.raises(ValueError, match="ax must be None with kind='ranks'"):
        w.plot("ranks", ax=plt.figure().add_subplot())
    plt.close("all")


def test_a_state_has_no_pictures():
    y, q = sample(300, 3)
    acc = ckce.CKCEAccumulator(3)
    acc.update(y, q)
    with pytest.raises(ValueError, match="needs the rows"):
        acc.witness().plot()
    with pytest.raises(TypeError, match="where must be True or False"):
        ckce.evaluate(y, q, where=1)
