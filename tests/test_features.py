"""Feature maps at the border: one of each kind, with every metric that takes one."""

import numpy as np
import pytest
from shared import label_kernel, landmark_kernel, landmarks, sample

import ckce
from ckce import _core, reference

BANDWIDTH = 0.5
KINDS = ["linear", "fourier", "landmarks", "cholesky"]

RANDOM = {"tol": 0.0, "pivoting": _core.Pivoting.random, "seed": 0}


def core_kernel(name="linear_gaussian"):
    return _core.Kernel(name, BANDWIDTH)


def factorise(q, kernel="linear_gaussian", rank=20, tol=0.0):
    return _core.cholesky_features(
        q,
        kernel=core_kernel(kernel),
        rank=rank,
        tol=tol,
        pivoting=_core.Pivoting.greedy,
        seed=0,
        n_threads=2,
        progress=None,
    )


def place(points, kernel="linear_gaussian"):
    factor, repeated = _core.landmark_factor(points, kernel=core_kernel(kernel), n_threads=1)
    assert not repeated
    return _core.landmark_features(points, factor, kernel=core_kernel(kernel))


def make(kind, q):
    """The map, and a kernel of Python that is its Phi Phi' on the rows of q."""
    m = q.shape[1]
    if kind == "linear":
        return _core.linear_features(m), lambda p, r: p @ r.T
    if kind == "fourier":
        w = np.asfortranarray(ckce.fourier_frequencies(m, 12, bandwidth=BANDWIDTH))
        phi = lambda p: reference.fourier_features(p, w)  # noqa: E731
        return _core.fourier_features(w, linear_part=True), lambda p, r: phi(p) @ phi(r).T
    if kind == "landmarks":
        points = landmarks(m, "linear_gaussian", BANDWIDTH)
        return place(points), landmark_kernel(points, "linear_gaussian", BANDWIDTH)
    gram = reference.gram("linear_gaussian", q, q, BANDWIDTH)
    g, _ = reference.pivoted_cholesky(gram, 20, 0.0)
    return factorise(q), lambda p, r: g @ g.T


def solve(features, y, q, ridge, w=None, factor=None, full=True):
    return _core.ckce_features(
        q,
        y,
        w,
        factor,
        features=features,
        ridge=ridge,
        precision=_core.Precision.float64,
        full=full,
        n_threads=2,
        progress=None,
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize(("n", "m"), [(60, 2), (1100, 3), (1500, 5)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_map_serves_ckce_and_jkce(kind, n, m, general, weighted):
    y, q = sample(n, m)
    w = np.random.default_rng(1).uniform(0.5, 2.5, n) if weighted else None
    factor = np.asfortranarray(np.linalg.cholesky(label_kernel(m))) if general else None
    options = {"label_kernel": label_kernel(m) if general else None, "sample_weight": w}
    features, kernel = make(kind, q)
    expected = ckce.estimate(y, q, kernel=kernel, **options)
    ridge = (n if w is None else w.sum()) ** 0.75
    solution = solve(features, y, q, ridge, w, factor)
    scale = expected.value - expected.debiased
    assert solution.value == pytest.approx(expected.value, rel=1e-9, abs=1e-11 * scale)
    assert solution.value - solution.debias == pytest.approx(expected.debiased, abs=1e-9 * scale)
    assert solution.floor == pytest.approx(expected.floor, rel=1e-9)
    assert solution.influence == pytest.approx(expected.influence, rel=1e-6, abs=1e-9)
    assert solve(features, y, q, ridge, w, factor, full=False).value == solution.value
    joint = ckce.jkce_estimate(y, q, kernel=kernel, **options)
    total = n if w is None else w.sum()
    sums = _core.jkce_features(
        q, y, w, factor, features=features, full=True, n_threads=2, progress=None
    )
    assert sums.off_diagonal / (total * (total - 1)) == pytest.approx(
        joint.value, rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_map_serves_the_test_and_leave_one_out(kind):
    n, m = 60, 3
    y, q = sample(n, m)
    features, kernel = make(kind, q)
    drawn = _core.resample_features(
        q,
        y,
        features=features,
        ridge=n**0.75,
        n_resamples=3,
        seed=1,
        table=2**20,
        n_threads=2,
        progress=None,
    )
    expected = ckce.estimate(y, q, kernel=kernel)
    assert drawn.shape == (4, 3)
    assert drawn[0, :2] == pytest.approx([expected.value, expected.debiased], rel=1e-8)
    errors = _core.loo_features(
        q, y, None, None, features=features, ridges=[n**0.75, 0.1 * n], n_threads=2
    )
    assert errors[0] == pytest.approx(
        reference.loo_error(y, q, kernel=kernel, bandwidth=1.0), rel=1e-9
    )
    assert errors[1] == pytest.approx(
        reference.loo_error(y, q, kernel=kernel, bandwidth=1.0, regularization=0.1), rel=1e-9
    )


@pytest.mark.parametrize("kernel", ["linear_gaussian", "gaussian", "laplace"])
@pytest.mark.parametrize("count", [2, 40, 400])
@pytest.mark.parametrize("concentration", [0.02, 1.0])
def test_landmarks_certify_the_distance_to_the_kernel(kernel, count, concentration):
    for m, n in ((2, 300), (4, 300), (4, 30)):  # also fewer rows than landmarks
        y, q = sample(n, m, concentration=concentration)
        _, pool = sample(600, m, seed=5, concentration=concentration)
        chosen = _core.choose_landmarks(
            pool, kernel=core_kernel(kernel), count=count, n_threads=2, **RANDOM
        )
        points = np.asfortranarray(pool[chosen])
        while _core.landmark_factor(points, kernel=core_kernel(kernel), n_threads=1)[1]:
            _, repeated = _core.landmark_factor(points, kernel=core_kernel(kernel), n_threads=1)
            points = np.delete(points, repeated, axis=0)
        exact = ckce.estimate(y, q, method="exact", kernel=kernel, bandwidth=BANDWIDTH)
        solution = solve(place(np.asfortranarray(points), kernel), y, q, n**0.75)
        assert abs(solution.value - exact.value) <= solution.bound + exact.bound
        assert np.isfinite(solution.bound)


def test_landmarks_that_are_all_rows_are_certified_tightly():
    y, q = sample(200, 3)
    points = np.asfortranarray(
        q[_core.choose_landmarks(q, kernel=core_kernel(), count=200, n_threads=1, **RANDOM)]
    )
    solution = solve(place(points), y, q, 200**0.75)
    assert solution.bound <= 1e-4 * solution.value


@pytest.mark.parametrize("kind", ["linear", "fourier"])
def test_other_maps_bound_rounding_alone(kind):
    y, q = sample(800, 3)
    assert 0 < solve(make(kind, q)[0], y, q, 800**0.75).bound < 1e-10


def test_maps_are_refused_where_they_do_not_fit():
    y, q = sample(50, 3)
    with pytest.raises(TypeError, match="same classes and rows"):
        solve(_core.linear_features(4), y, q, 10.0)
    with pytest.raises(TypeError, match="same classes and rows"):
        solve(factorise(q), y[:40], q[:40], 10.0)
    with pytest.raises(TypeError):
        solve(None, y, q, 10.0)
    options = {
        "label_factor": None,
        "scattered": False,
        "debias": True,
        "n_bins": 10,
        "predicted": None,
    }
    with pytest.raises(ValueError, match="of any rows"):
        _core.Accumulator(factorise(q), n_classes=3, **options)
    with pytest.raises(TypeError, match="n_classes"):
        _core.Accumulator(_core.linear_features(4), n_classes=3, **options)
    with pytest.raises(TypeError):
        _core.Accumulator(None, n_classes=3, **options)
    with pytest.raises(TypeError):
        _core.landmark_features(q, np.eye(50, order="F"), kernel=None)
    accumulator = _core.Accumulator(_core.linear_features(4), n_classes=4, **options)
    with pytest.raises(TypeError, match="same classes"):
        accumulator.update(q, y, None, n_threads=1)


def test_a_factor_outlives_what_it_was_made_of():
    y, q = sample(300, 3)
    expected = solve(factorise(q), y, q, 300**0.75).value
    copy = q.copy()
    features = factorise(copy)
    copy[:] = 1 / 3
    del copy
    assert features.n_features == 20
    assert solve(features, y, q, 300**0.75).value == expected
