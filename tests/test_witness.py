"""Where a model is off: F and the correction against the literal formulas, bands, regions."""

import math

import numpy as np
import pytest
from shared import sample
from test_miscalibration import landmarks

import ckce
from ckce import _core, reference
from ckce._metrics.regions import find_regions
from ckce._results.student import student_factor, student_quantile

METHODS = ("exact", "fourier", "cholesky", "landmarks")


def literal(y, q, gram_rows, gram, weights):
    """F by the formula: K(at, Q) (K + c diag(w)^-1)^-1 R."""
    w = np.ones(len(y)) if weights is None else weights
    r = np.eye(q.shape[1])[y] - q
    return gram_rows @ np.linalg.solve(gram + np.diag(w.sum() ** 0.75 / w), r)


@pytest.mark.parametrize("kernel", ["linear_gaussian", "gaussian", "laplace"])
@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_exact_witness_is_the_formula(kernel, m, weighted):
    y, q = sample(150, m, seed=1)
    w = np.random.default_rng(0).integers(1, 4, 150).astype(float) if weighted else None
    at = sample(9, m, seed=2)[1]
    found = ckce.witness(y, q, kernel=kernel, bandwidth=0.6, sample_weight=w, method="exact")
    gram = reference.gram(kernel, q, q, 0.6)
    expected = literal(y, q, reference.gram(kernel, at, q, 0.6), gram, w)
    assert found(at) == pytest.approx(expected, rel=1e-9, abs=1e-13)
    # A row by all others, its other copies included; the ridge is that of all rows.
    own, r = found.own(), np.eye(m)[y] - q
    counts = np.ones(150) if w is None else w
    for i in (0, 77):
        left = counts - (np.arange(150) == i)
        kept = left > 0
        ridge = np.diag(counts.sum() ** 0.75 / left[kept])
        v = np.linalg.solve(gram[np.ix_(kept, kept)] + ridge, r[kept])
        assert own[i] == pytest.approx(gram[i, kept] @ v, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(2100, 3), (2100, 2)])
def test_many_rows_are_the_formula(n, m):
    """Conjugate gradients, and landmarks of the line."""
    y, q = sample(n, m, seed=3)
    at = q[:5]
    found = ckce.witness(y, q, bandwidth=0.5, method="exact")
    r = np.eye(m)[y] - q
    f = found(q)
    # (K + cI) V = R and F = KV: CKCE = Tr V'KV, V = (R - F) / c.
    value = np.sum((r - f) * f) / n**0.75
    assert value == pytest.approx(ckce.ckce(y, q, bandwidth=0.5, method="exact"), rel=1e-8)
    assert found(at) == pytest.approx(f[:5], rel=1e-9, abs=1e-12)
    if m == 3:
        with pytest.raises(ValueError, match=r"own\(\) of method='exact' needs n <= 2000"):
            found.own()
    else:
        assert found.own().shape == (n, m)


@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("m", [2, 4])
def test_witness_of_features(method, m):
    """|X|^2 is CKCE, and F = phi X: so F has the CKCE of its own method."""
    y, q = sample(400, m, seed=4)
    found = ckce.witness(y, q, method=method, bandwidth=0.5)
    f, r = found(q), np.eye(m)[y] - q
    value = np.sum((r - f) * f) / 400**0.75
    expected = ckce.ckce(y, q, method=method, bandwidth=0.5)
    assert value == pytest.approx(expected, rel=1e-7)
    if method == "fourier":
        frequencies = ckce.fourier_frequencies(m, 100, bandwidth=0.5)
        phi = reference.fourier_features(q, frequencies)
        gram = phi @ phi.T
        kept = np.arange(400) != 7
        v = np.linalg.solve(gram[np.ix_(kept, kept)] + 400**0.75 * np.eye(399), r[kept])
        assert found.own()[7] == pytest.approx(gram[7, kept] @ v, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(
    ("m", "options"),
    [
        (2, {}),
        (3, {}),
        (3, {"method": "landmarks"}),
        (5, {"reduction": ckce.TopK(2)}),
        (3, {"kernel": "linear"}),
    ],
)
def test_witness_of_a_stream(m, options):
    y, q = sample(500, m, seed=5)
    gamma = {} if "kernel" in options else {"bandwidth": 0.4}
    method = options.pop("method", None)
    if method == "landmarks":
        options["method"] = ckce.Landmarks(q[:40])
    acc = ckce.CKCEAccumulator(n_classes=m, **gamma, **options)
    for start in range(0, 500, 150):
        acc.update(y[start : start + 150], q[start : start + 150])
    found = acc.witness()
    options.setdefault("method", "fourier" if m > 2 and "kernel" not in options else "exact")
    whole = ckce.witness(y, q, **gamma, **options)
    at = sample(7, found.n_classes, seed=6)[1]
    assert found(at) == pytest.approx(whole(at), rel=1e-9, abs=1e-12)
    assert found.labels == whole.labels
    assert found.regularization == whole.regularization
    for what in (found.own, found.worst_regions, lambda: found.correction(at), found.to_frame):
        with pytest.raises(ValueError, match="needs the rows, which the state of a stream"):
            what()
    with pytest.raises(ValueError, match="needs the rows"):
        _ = found.y_prob


def test_an_empty_stream_has_no_witness():
    with pytest.raises(ValueError, match="holds no rows yet"):
        ckce.CKCEAccumulator(n_classes=3, bandwidth=0.5).witness()


@pytest.mark.parametrize("m", [2, 3])
def test_correction_is_the_twiced_smoother(m):
    n = 60
    y, q = sample(n, m, seed=7)
    features, gram = landmarks(q, 0.5, (15, 20))
    found = _core.miscalibration(q, y, None, features=features, n_threads=1, progress=None)
    once, a = reference.twiced_smoother(q, gram, found.regularization)
    r = np.eye(m)[y] - q
    fit = (a @ r.ravel()).reshape(n, m)
    fitted = _core.correction(
        q, features=features, coefficients=found.coefficients, fit=found.fit, n_threads=1
    )
    assert fitted == pytest.approx(fit, rel=1e-7, abs=1e-10)
    blocks = np.stack([a[i * m : (i + 1) * m, i * m : (i + 1) * m] for i in range(n)])
    leverage = np.diag(once)[:, None]
    own = (fit - np.einsum("iab,ib->ia", blocks, r)) / (1 - leverage)
    got = _core.own_correction(q, y, features=features, found=found, n_threads=1)
    assert got == pytest.approx(own, rel=1e-7, abs=1e-10)

    # The spread of the draws is that of sum_j +-1 A_ij e_j, e without a row's own label.
    e = (r - fit) / (1 - leverage)
    for groups in (None, np.arange(n) // 4):
        units = np.arange(n) if groups is None else groups
        errors, variance, again, freedom = _core.correction_errors(
            q,
            y,
            None,
            groups=groups,
            features=features,
            found=found,
            at=q[:3],
            draws=20_000,
            seed=1,
            n_threads=2,
            progress=None,
        )
        terms = a[: 3 * m].reshape(3 * m, n, m)
        parts = np.einsum("kja,ja->kj", terms, e)
        sums = np.stack([parts[:, units == u].sum(axis=1) for u in np.unique(units)])
        spread = np.sqrt((sums**2).sum(axis=0)).reshape(3, m)
        assert pytest.approx(spread, rel=0.03) == errors.std(axis=1).reshape(m, 3).T
        assert variance == pytest.approx(once[:3] ** 2 @ (q * (1 - q)), rel=1e-7)
        assert again == pytest.approx((a @ fit.ravel()).reshape(n, m)[:3], rel=1e-7, abs=1e-10)
        if groups is None:
            squares, fourths = once[:3] ** 2 @ e**2, once[:3] ** 4 @ e**4
            assert freedom == pytest.approx(2 * squares**2 / fourths, rel=1e-7)


def test_bands_by_few_rows_are_wider_by_students_t():
    factors = student_factor(3.0, np.array([2.0, 5.0, 50.0, 1e9]))
    exact = [student_quantile(math.erf(3 / math.sqrt(2)), df) for df in (2.0, 5.0, 50.0)]
    assert (factors[:3] >= np.array(exact) - 1e-9).all()
    assert factors[:3] == pytest.approx(exact, rel=0.02)
    assert factors[3] == pytest.approx(3.0, rel=1e-6)


def planted(seed, n=4000):
    """Two classes; 8 % of the cases are off by 0.25."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    inside = np.abs(p - 0.6) < 0.04
    y = (rng.random(n) < p - 0.25 * inside).astype(int)
    return y, p, inside


def test_worst_region_is_the_planted_one():
    y, p, inside = planted(0)
    found = ckce.witness(y, p, labels=[0, 1])
    regions = found.worst_regions(3)
    worst = regions[0]
    rows = np.zeros(len(p), bool)
    rows[worst.rows] = True
    assert (rows & inside).sum() / (rows | inside).sum() > 0.5
    assert worst.correction[1] == pytest.approx(-0.25, abs=0.1)
    assert worst.observed == pytest.approx(worst.center + worst.correction)
    assert worst.share == pytest.approx(rows.mean())
    said, is_ = f"class 1 {worst.center[1]:.2f}", f"class 1 {worst.observed[1]:.2f}"
    assert worst.words == f"when it says {said} it is {is_}; {100 * worst.share:.1f} % of cases"
    together = np.concatenate([region.rows for region in regions])
    assert len(np.unique(together)) == len(together)


def test_balls_of_one_score_are_one_region():
    # Balls around many centres hold the same rows: centre and radius are of one of them.
    p = np.linspace(0, 1, 401)
    q = np.stack([1 - p, p], axis=1)
    off = np.where(p > 0.75, 0.125, 0.0)
    (region,) = find_regions(q, np.stack([off, -off], axis=1), None, (0, 1), 1, seed=0)
    assert region.rows.tolist() == np.flatnonzero(off).tolist()
    assert region.words == "when it says class 1 0.88 it is class 1 0.75; 24.9 % of cases"


def test_a_constant_prediction_is_a_region():
    y = np.arange(400) % 4 == 0
    (region,) = ckce.witness(y, np.full(400, 0.5)).worst_regions()
    assert region.share == 1.0
    assert region.words == "when it says class 1 0.50 it is class 1 0.25; 100.0 % of cases"


def test_words_name_classes():
    rng = np.random.default_rng(1)
    q = rng.dirichlet([3, 2, 1], 1500)
    drawn = (rng.random((1500, 1)) > q[:, [1, 0, 2]].cumsum(axis=1)[:, :2]).sum(axis=1)
    names = np.array(["cat", "dog", "eel"])
    worst = ckce.witness(names[drawn], q, labels=names).worst_regions(1)[0]
    assert all(part in worst.words for part in ("cat 0.", "dog 0.", "% of cases"))


def test_equal_predictions_stay_together():
    q = np.repeat([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]], 100, axis=0)
    y = np.tile([0, 1], 150)
    for region in ckce.witness(y, q).worst_regions(2):
        counts = np.bincount(region.rows // 100, minlength=3)
        assert set(counts) <= {0, 100}


def test_bands_and_frames():
    y, p, _ = planted(2, 1500)
    found = ckce.witness(y, p)
    at = np.linspace(0.1, 0.9, 9)
    c = found.correction(at, n_draws=199)
    assert c.value == pytest.approx(-c.value[:, ::-1], abs=1e-9)
    assert (c.band_low <= c.low).all()
    assert (c.low < c.value).all()
    assert (c.high < c.band_high).all()
    assert c.high - c.value == pytest.approx(1.959964 * c.se, rel=1e-6)
    rare = ckce.witness(np.zeros(1500, int), np.full(1500, 0.01) + 1e-3 * p).correction([0.01])
    assert rare.se[0, 1] > 1e-3  # no case of class 1 was seen, and the band knows
    again = ckce.witness(y, p, n_threads=3).correction(at, n_draws=199)
    assert np.array_equal(c.se, again.se)
    assert np.array_equal(c.value, again.value)
    frame = found.to_frame(at)
    assert list(frame["class"][:2]) == [0, 1]
    assert len(frame) == 18
    assert frame["witness"].to_numpy() == pytest.approx(found(at).ravel())
    assert frame["correction"].to_numpy() == pytest.approx(c.value.ravel())
    own = found.to_frame()
    assert len(own) == 3000
    assert own["witness"].to_numpy() == pytest.approx(found.own().ravel())
    assert found.miscalibration.value == ckce.miscalibration(y, p).value


def test_laplace_has_the_correction_of_any_kernel():
    y, q = sample(300, 3, seed=8)
    at = q[:4]
    plain = ckce.witness(y, q).correction(at, n_draws=20)
    other = ckce.witness(y, q, kernel="laplace", bandwidth=0.1).correction(at, n_draws=20)
    assert np.array_equal(plain.value, other.value)
    given = ckce.witness(y, q, bandwidth=0.1)
    assert given.miscalibration.value == ckce.miscalibration(y, q, bandwidth=0.1).value


def test_refusals():
    y, q = sample(60, 3)
    found = ckce.witness(y, q)
    with pytest.raises(ValueError, match="q must have 3 columns, got 2"):
        found([[0.5, 0.5]])
    with pytest.raises(ValueError, match="row 0"):
        found([[0.5, 0.5, 0.5]])
    with pytest.raises(ValueError, match="n must be at least 1"):
        found.worst_regions(0)
    with pytest.raises(ValueError, match="n_draws must be at least 1"):
        found.correction(q[:2], n_draws=0)
    with pytest.raises(ValueError, match="named kernels for a witness"):
        ckce.witness(y, q, kernel=lambda a, b: a @ b.T)
    with pytest.raises(TypeError, match="regularization must be a number, got 'loo'"):
        ckce.witness(y, q, regularization="loo")
    with pytest.raises(ValueError, match="reduction must be one of"):
        ckce.witness(y, q, reduction="class_wise")
    with pytest.raises(ValueError, match="needs independent rows, got groups"):
        ckce.witness(y, q, groups=np.arange(60) // 3).own()
