"""Miscalibration in units of the Brier score: the core against the literal formulas, and the words."""

import itertools
import json

import numpy as np
import pytest
from shared import EDGES, sample

import ckce
from ckce import _core, reference
from ckce._input import memory
from ckce._metrics.miscalibration import FINE, LANDMARKS


def landmarks(q, gamma, counts=LANDMARKS):
    """The feature map of some landmarks, and K of the same by the formulas."""
    pool, maps, grams = np.unique(q, axis=0), [], 0.0
    for (name, width), count in zip(
        (("linear_gaussian", gamma), ("gaussian", gamma / FINE)), counts, strict=True
    ):
        kernel = _core.Kernel(name, width)
        chosen = _core.choose_landmarks(
            pool,
            kernel=kernel,
            count=min(count, len(pool)),
            tol=1e-7,
            pivoting=_core.Pivoting.random,
            seed=0,
            n_threads=1,
        )
        points = pool[chosen]
        factor, repeated = _core.landmark_factor(points, kernel=kernel, n_threads=1)
        assert not repeated
        maps.append(_core.landmark_features(points, np.asfortranarray(factor), kernel=kernel))
        phi = reference.landmark_features(q, points, name, width)
        grams = grams + phi @ phi.T
    return _core.joined_features(maps), grams


def core(y, q, features, weights=None, groups=None, n_threads=1):
    return _core.miscalibration(
        np.asarray(q, np.float64),
        np.asarray(y, np.int64),
        weights,
        groups=groups,
        features=features,
        n_threads=n_threads,
        progress=None,
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("grouped", [False, True])
def test_core_is_the_formula(seed, grouped):
    rng = np.random.default_rng(seed)
    n, m = 40, (2, 3, 5)[seed % 3]
    y, q = sample(n, m, seed)
    weights = rng.integers(1, 4, n).astype(float) if seed >= 3 else None
    groups = np.append(np.arange(12), rng.integers(0, 12, n - 12)) if grouped else None
    features, _ = landmarks(q, 0.5, (15, 20))
    copies = np.repeat(np.arange(n), 1 if weights is None else weights.astype(int))
    _, gram = landmarks(q, 0.5, (15, 20))
    literal = reference.miscalibration(
        y[copies],
        q[copies],
        gram[np.ix_(copies, copies)],
        None if groups is None else groups[copies],
    )
    found = core(y, q, features, weights, groups)
    assert found.value == pytest.approx(literal["value"], rel=1e-8, abs=1e-13)
    assert found.df == pytest.approx(literal["df"], rel=1e-8)
    assert found.regularization == pytest.approx(literal["regularization"], rel=1e-8)


@pytest.mark.parametrize("name", [name for name in EDGES if name != "one row"])
def test_edges_are_the_formula(name):
    y, q = EDGES[name]
    features, gram = landmarks(q, 0.5, (10, 10))
    literal = reference.miscalibration(y, q, gram)
    assert core(y, q, features).value == pytest.approx(literal["value"], rel=1e-7, abs=1e-12)
    public = ckce.miscalibration(y, q)
    assert np.isfinite([public.value, public.se, public.low, public.high]).all()


@pytest.mark.parametrize("m", [2, 3])
def test_the_mean_is_0_under_calibration(m):
    """All label sets of a few rows, by their probabilities: no approximation is left."""
    q = np.random.default_rng(m).dirichlet(np.ones(m), 5)
    features, _ = landmarks(q, 0.5)
    mean = size = 0.0
    for y in itertools.product(range(m), repeat=5):
        chance = np.prod(q[np.arange(5), list(y)])
        value = core(y, q, features).value
        mean, size = mean + chance * value, size + chance * abs(value)
    assert abs(mean) < 1e-13 < size


def test_influence_is_the_derivative():
    """Of the value without its diagonal, when a row's weight grows; lambda is held fixed."""
    n, m = 30, 3
    y, q = sample(n, m, seed=4)
    features, gram = landmarks(q, 0.5, (12, 12))
    found = core(y, q, features)
    lam, r = found.regularization, np.eye(m)[y] - q
    x = reference.shapes(q)

    def explained(w):
        """(|R|^2 - min_c |(I - H)(R - Xc)|^2) / N with weights."""
        total = w.sum()
        h = gram @ np.diag(w) @ np.linalg.inv(gram @ np.diag(w) + lam * total * np.eye(n))
        root = np.sqrt(w)[:, None]
        left = [(root * (a - h @ a)).ravel() for a in (r, *x)]
        c = np.linalg.lstsq(np.stack(left[1:], 1), left[0], rcond=None)[0]
        rest = left[0] - np.stack(left[1:], 1) @ c
        return (np.sum((root * r) ** 2) - rest @ rest) / total

    step, psi = 1e-5, np.empty(n)
    for i in range(n):
        up, down = np.ones(n), np.ones(n)
        up[i] += step
        down[i] -= step
        psi[i] = n * (explained(up) - explained(down)) / (2 * step)
    _, a = reference.twiced_smoother(q, gram, lam)
    own = [r[i] @ a[i * m : (i + 1) * m, i * m : (i + 1) * m] @ r[i] for i in range(n)]
    literal = (psi - 2 * np.array(own)) / (1 - found.df / n)
    assert found.influence == pytest.approx(literal - literal.mean(), rel=1e-6, abs=1e-7)


def test_weights_are_copies_and_order_does_not_matter():
    y, q = sample(300, 3, seed=1)
    w = np.random.default_rng(0).integers(1, 4, 300)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(300), w))
    weighted = ckce.miscalibration(y, q, sample_weight=w, bandwidth=0.5)
    copied = ckce.miscalibration(y[rows], q[rows], bandwidth=0.5)
    assert weighted.value == pytest.approx(copied.value, rel=1e-8)
    assert weighted.se == pytest.approx(copied.se, rel=1e-8)
    assert weighted.influence[rows] == pytest.approx(copied.influence, rel=1e-6, abs=1e-9)


def test_groups_of_one_row_are_rows():
    y, q = sample(200, 3, seed=2)
    alone = ckce.miscalibration(y, q)
    grouped = ckce.miscalibration(y, q, groups=np.arange(200))
    assert grouped.value == pytest.approx(alone.value, rel=1e-10)
    assert grouped.influence == pytest.approx(alone.influence, rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("grouped", [False, True])
def test_threads_do_not_change_a_bit(grouped):
    y, q = sample(5000, 4, seed=3)
    groups = np.arange(5000) // 7 if grouped else None
    one, three = (ckce.miscalibration(y, q, groups=groups, n_threads=threads) for threads in (1, 3))
    assert (one.value, one.se, one.df) == (three.value, three.se, three.df)
    assert np.array_equal(one.influence, three.influence)


def test_reductions_are_the_reduced_problem():
    y, q = sample(400, 6, seed=5)
    top = ckce.miscalibration(y, q, reduction="top_label")
    right, confidence = reference.top_label(y, q)
    assert top.value == pytest.approx(ckce.miscalibration(right, confidence).value, rel=1e-9)
    assert "Brier score of the confidence" in repr(top)
    ranked, sorted_q = reference.top_k(y, q, 2)
    three = ckce.miscalibration(y, q, reduction=ckce.TopK(2))
    assert three.value == pytest.approx(ckce.miscalibration(ranked, sorted_q).value, rel=1e-9)
    assert three.n_classes == 6
    with pytest.raises(ValueError, match="reduction must be one of"):
        ckce.miscalibration(y, q, reduction="class_wise")


def test_smooth_truth_is_found():
    rng = np.random.default_rng(7)
    q = rng.dirichlet([1, 1, 1], 6000)
    p = 0.7 * q + 0.3 * q[:, [1, 2, 0]]
    y = (rng.random((6000, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    theta = ((p - q) ** 2).sum(axis=1).mean()
    found = ckce.miscalibration(y, q)
    assert abs(found.value - theta) < 2 * found.se < 0.2 * theta


def test_words():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 4000)
    y = (rng.random(4000) < p).astype(int)
    off = ckce.miscalibration(y, 0.5 + 1.5 * (p - 0.5))
    assert off.shown
    assert off.low > 0.0
    assert off.root == pytest.approx(100 * np.sqrt(off.value / 2))
    assert off.headline.startswith(
        f"Perfect recalibration would lower the Brier score by about {off.value:.4f} (95 %: "
    )
    assert f"off by about {off.root:.1f} points in root mean square" in off.headline
    assert "finer than this sample resolves" in repr(off)
    right = ckce.miscalibration(y, p)
    assert not right.shown
    most = max(right.high, 1.959964 * right.se)
    assert right.headline == (
        "No miscalibration is shown. If there is any that this sample can resolve, it is at most "
        f"{most:.5f} of the Brier score ({100 * np.sqrt(most / 2):.1f} points)."
    )
    few = ckce.miscalibration(y[:20], p[:20])
    assert not few.shown
    assert few.headline.startswith("Too few rows to tell")
    assert json.loads(json.dumps(off.to_dict()))["root_high"] == off.root_high
    assert float(off) == off.value


def test_a_class_that_never_occurs_changes_no_points():
    """Points are hundredths of the largest distance of two predictions, for any number of classes."""
    y, models = two_models()
    q = models["sharp"]
    off = ckce.miscalibration(y, q)
    wider = ckce.miscalibration(y, np.c_[q, np.zeros((len(q), 2))])
    assert wider.root == pytest.approx(off.root, rel=1e-3)
    assert off.root == pytest.approx(100 * np.sqrt(off.value / 2))
    certainly_wrong = ckce.miscalibration(np.arange(300) % 3, np.eye(3)[np.arange(1, 301) % 3])
    assert 99.0 < certainly_wrong.root <= 101.0


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="at least 2 rows for miscalibration, got 1"):
        ckce.miscalibration([0], [[0.5, 0.5]])


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1e6)
    monkeypatch.setattr(memory, "SMALL", 0.0)
    with pytest.raises(MemoryError, match="the smoother with n = 50, m = 3 needs about"):
        ckce.miscalibration(*sample(50, 3))


def two_models(seed=0):
    rng = np.random.default_rng(seed)
    good = rng.dirichlet([1, 1, 1], 800)
    y = (rng.random((800, 1)) > good.cumsum(axis=1)[:, :2]).sum(axis=1)
    sharp = good**2 / (good**2).sum(axis=1, keepdims=True)
    return y, {"good": good, "sharp": sharp}


@pytest.mark.parametrize(
    "options",
    [{}, {"bandwidth": 0.3}, {"reduction": "top_label"}, {"groups": np.arange(800) // 5}],
)
def test_evaluate_and_compare_have_the_same_number(options):
    y, models = two_models()
    alone = {name: ckce.miscalibration(y, q, **options) for name, q in models.items()}
    for name, q in models.items():
        found = ckce.evaluate(y, q, method="fourier", **options)
        assert found.miscalibration.value == alone[name].value
        assert found.to_dict()["miscalibration_points_low"] == alone[name].root_low
        assert f"miscalibration  {' ' * (alone[name].value > 0)}" in repr(found)
    comparison = ckce.compare(y, models, method="fourier", **options)
    for model in comparison.models:
        assert model.miscalibration == alone[model.name].value
        assert model.miscalibration_low == alone[model.name].low
    (split,) = comparison.brier_splits
    a, b = alone[split.first], alone[split.second]
    assert split.calibration == a.value - b.value
    assert split.brier == pytest.approx(split.calibration + split.refinement)
    if "reduction" not in options:
        scores = {name: ckce.brier(y, q) for name, q in models.items()}
        assert split.brier == pytest.approx(scores[split.first] - scores[split.second])
    psi = a.influence - b.influence
    if "groups" in options:
        sums = np.bincount(options["groups"], psi)
        assert split.calibration_se == pytest.approx(np.sqrt((sums**2).sum() * 160 / 159) / 800)
    else:
        assert split.calibration_se == pytest.approx(psi.std(ddof=1) / np.sqrt(800))
    assert split.sentence in str(comparison).replace("\n  ", " ")
    assert json.loads(json.dumps(comparison.to_dict()))["brier_splits"][0]["first"] == split.first


def test_class_wise_has_no_one_miscalibration():
    y, models = two_models()
    found = ckce.evaluate(y, models["sharp"], reduction="class_wise", method="fourier")
    assert found.miscalibration is None
    assert found.to_dict()["miscalibration"] is None
