"""Landmarks: the features of a stream that a sample fixes, and how far they are from the kernel."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared import (
    EDGES,
    agree,
    bandwidths,
    calibration_sets,
    label_kernel,
    landmark_kernel,
    landmarks,
    sample,
)

import ckce
from ckce import CKCEAccumulator, reference

KERNELS = ["linear_gaussian", "gaussian", "laplace"]
pytestmark = pytest.mark.filterwarnings("ignore:landmarks leave out")


def placed(y, q, n_landmarks, w=None, **options):
    """All rows, with landmarks chosen among them."""
    acc = CKCEAccumulator.from_sample(y, q, n_landmarks=n_landmarks, sample_weight=w, **options)
    acc.update(y, q, w)
    return acc


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("n", "m"), [(1, 2), (900, 2), (1024, 3), (1500, 40)])
def test_everything_that_the_batch_functions_say(n, m, kernel, general, weighted):
    y, q = sample(n, m)
    w = np.random.default_rng(1).uniform(0.5, 2.5, n) if weighted else None
    points = landmarks(m, kernel, 0.5)
    options = {"label_kernel": label_kernel(m) if general else None, "sample_weight": w}
    acc = CKCEAccumulator(
        m, kernel=kernel, bandwidth=0.5, landmarks=points, label_kernel=options["label_kernel"]
    )
    acc.update(y, q, w)
    e = acc.evaluate()
    nystroem = landmark_kernel(points, kernel, 0.5)
    batch = ckce.estimate(y, q, kernel=nystroem, **options)
    scale = batch.value - batch.debiased
    agree(e.ckce, batch.value, scale)
    agree(e.ckce_debiased, batch.debiased, scale)
    agree(e.ckce_floor, batch.floor, scale)
    if not general:
        assert e.per_class == pytest.approx(batch.per_class, rel=1e-8, abs=1e-12 * scale)
    if n > 1:
        joint = ckce.jkce_estimate(y, q, kernel=nystroem, **options)
        assert e.jkce == pytest.approx(joint.value, rel=1e-9, abs=1e-12)
        assert e.jkce_biased == pytest.approx(joint.biased, rel=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("edge", EDGES)
def test_all_rows_as_landmarks_are_the_exact_kernel(edge, kernel):
    y, q = EDGES[edge]
    options = {"kernel": kernel, "bandwidth": 0.7}
    acc = placed(y, q, len(y), **options)
    exact = ckce.estimate(y, q, method="exact", **options)
    assert abs(acc.compute() - exact.value) <= 1e-9 * (exact.value - exact.debiased)
    assert len(acc.landmarks) <= len(np.unique(q, axis=0))


def test_a_thousand_classes():
    y, q = sample(300, 1000, concentration=0.01)
    acc = placed(y, q, 10_000)
    exact = ckce.estimate(y, q, method="exact")
    assert acc.landmarks.shape == (300, 1000)
    assert acc.bandwidth == exact.bandwidth
    assert acc.compute() == pytest.approx(exact.value, rel=1e-10)
    few = placed(y, q, 150).evaluate()
    assert abs(few.ckce - exact.value) <= few.ckce_bound
    points = np.eye(1000)[:200]
    acc = CKCEAccumulator(1000, bandwidth=0.8, landmarks=points)
    acc.update(y, q)
    expected = reference.ckce_landmarks(y, q, landmarks=points, bandwidth=0.8)
    assert acc.compute() == pytest.approx(expected, rel=1e-10)


def test_two_classes_need_few():
    y, q = sample(5000, 2)
    acc = CKCEAccumulator.from_sample(y[:1000], q[:1000], n_landmarks=100)
    assert len(acc.landmarks) < 25  # the others are explained to 12 digits
    acc.update(y, q)
    exact = ckce.ckce(y, q, method="exact", bandwidth=acc.bandwidth)
    e = acc.evaluate()
    assert e.ckce == pytest.approx(exact, rel=1e-9)
    assert abs(e.ckce - exact) <= e.ckce_bound < 1e-4 * exact


def test_closer_than_fourier_features_with_fewer_columns():
    y, q = sample(4000, 5)
    acc = CKCEAccumulator.from_sample(y[:1000], q[:1000], n_landmarks=100)
    acc.update(y, q)
    exact = ckce.ckce(y, q, method="exact", bandwidth=acc.bandwidth)
    fourier = ckce.ckce(y, q, method="fourier", bandwidth=acc.bandwidth)  # 205 columns
    assert abs(acc.compute() - exact) < 1e-4 * exact
    assert abs(acc.compute() - exact) < 0.1 * abs(fourier - exact)


@pytest.mark.parametrize("kernel", KERNELS)
@given(
    data=calibration_sets(),
    bandwidth=bandwidths,
    count=st.integers(1, 12),
    lam=st.sampled_from([None, 1e-3, 1.0]),
    debias=st.booleans(),
)
def test_certificate(kernel, data, bandwidth, count, lam, debias):
    options = {"kernel": kernel, "regularization": lam, "bandwidth": bandwidth}
    exact = ckce.estimate(*data, method="exact", **options)
    e = placed(*data, count, debias=debias, **options).evaluate()
    assert abs(e.ckce - exact.value) <= e.ckce_bound + exact.bound
    away = CKCEAccumulator(
        data[1].shape[1], landmarks=landmarks(data[1].shape[1], kernel, bandwidth), **options
    )
    away.update(*data)
    e = away.evaluate()
    assert abs(e.ckce - exact.value) <= e.ckce_bound + exact.bound


@pytest.mark.parametrize("m", [2, 3, 5, 50])
def test_certificate_where_the_stream_is_not_like_the_sample(m):
    # Narrow landmarks, down to round-off; the rows lie around them, and features extrapolate.
    narrow = sample(800, m, concentration=50.0)
    y, q = sample(1500, m, concentration=0.5)
    w = np.random.default_rng(1).uniform(0.1, 4, 1500)
    for options in ({}, {"sample_weight": w}, {"label_kernel": label_kernel(m)}):
        for kernel in KERNELS:
            own = {"kernel": kernel, "bandwidth": 0.5}
            exact = ckce.ckce(y, q, method="exact", **own, **options)
            own["label_kernel"] = options.get("label_kernel")
            for count in (3, 50, 500):
                acc = CKCEAccumulator.from_sample(*narrow, n_landmarks=count, **own)
                acc.update(y, q, options.get("sample_weight"))
                e = acc.evaluate()
                assert abs(e.ckce - exact) <= e.ckce_bound


@pytest.mark.parametrize("kernel", KERNELS)
def test_missing_trace(kernel):
    y, q = sample(1500, 6)
    w = np.random.default_rng(1).uniform(0.1, 4, 1500)
    points = landmarks(6, kernel, 0.5)
    acc = CKCEAccumulator(6, kernel=kernel, bandwidth=0.5, landmarks=points)
    acc.update(y, q, w)
    phi = reference.landmark_features(q, points, kernel, 0.5)
    diagonal = 1.0 + (q**2).sum(axis=1) * (kernel == "linear_gaussian")
    share = w @ (diagonal - (phi**2).sum(axis=1)) / (w @ diagonal)
    assert acc.evaluate().missing_trace == pytest.approx(share, rel=1e-9)


@pytest.mark.filterwarnings("default")
def test_too_few_landmarks_are_warned_about():
    y, q = sample(1500, 30, concentration=0.1)
    few, many = placed(y, q, 10), placed(y, q, 200)
    for call in (few.compute, few.evaluate):
        with pytest.warns(UserWarning, match=r"landmarks leave out \d\d % of the kernel's trace"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert many.evaluate().missing_trace < 0.05
        many.compute()


def test_certificate_shrinks_with_landmarks():
    y, q = sample(1500, 4)
    bounds = [placed(y, q, count).evaluate().ckce_bound for count in (10, 40, 160)]
    assert bounds[0] > 10 * bounds[1] > 100 * bounds[2]
    e = placed(y, q, 40).evaluate()
    assert "bound" in repr(e)
    assert e.to_dict()["ckce_bound"] == e.ckce_bound
    fourier = CKCEAccumulator(4, bandwidth=0.5)
    fourier.update(y, q)
    assert fourier.evaluate().ckce_bound is None
    assert "bound" not in repr(fourier.evaluate())


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_landmarks_can_be_given_to_others(kernel, dtype):
    y, q = sample(700, 6)
    q = q.astype(dtype)
    acc = CKCEAccumulator.from_sample(y, q, n_landmarks=150, kernel=kernel, random_state=3)
    rows = {row.tobytes() for row in q.astype(np.float64)}
    assert all(row.tobytes() in rows for row in acc.landmarks)
    twin = CKCEAccumulator(6, kernel=kernel, bandwidth=acc.bandwidth, landmarks=acc.landmarks)
    for state in (acc, twin):
        state.update(y, q)
    assert np.array_equal(acc.sums(), twin.sums())
    assert acc.merge(twin).n_samples == 1400


def test_the_seed_chooses():
    y, q = sample(700, 6)
    first, again, other = (
        CKCEAccumulator.from_sample(y, q, n_landmarks=20, random_state=seed) for seed in (0, 0, 1)
    )
    assert np.array_equal(first.landmarks, again.landmarks)
    assert not np.array_equal(first.landmarks, other.landmarks)
    threads = CKCEAccumulator.from_sample(y, q, n_landmarks=20, n_threads=3)
    assert np.array_equal(first.landmarks, threads.landmarks)


def test_repeated_rows_of_a_sample_are_one_landmark():
    y, q = EDGES["hard"]
    assert len(CKCEAccumulator.from_sample(y, q, n_landmarks=20).landmarks) == 4
    y, q = sample(50, 3)
    near = np.concatenate([q, q + 1e-9 * np.array([1.0, -1.0, 0.0])])
    acc = CKCEAccumulator.from_sample(np.tile(y, 2), near, n_landmarks=100)
    assert len(acc.landmarks) <= 50
    weights = np.arange(50) % 2
    acc = CKCEAccumulator.from_sample(y, q, n_landmarks=50, sample_weight=weights, kernel="laplace")
    assert len(acc.landmarks) == 25  # rows of weight 0 are none


def test_where_the_bandwidth_comes_from():
    y, q = sample(300, 3)
    acc = CKCEAccumulator.from_sample(y, q, n_landmarks=5)
    assert acc.bandwidth == ckce.median_bandwidth(q)
    acc.update(y, q)
    assert "(median of a sample of 300)" in acc.evaluate().signature
    acc.reset()
    assert acc.bandwidth == ckce.median_bandwidth(q)
    assert acc.n_samples == 0
    fixed = CKCEAccumulator.from_sample(y, q, n_landmarks=5, bandwidth=0.25)
    assert fixed.bandwidth == 0.25
    assert fixed.config["bandwidth_source"] == "given"


def test_names_and_logits_of_a_sample():
    y, q = sample(300, 3)
    names = np.array(["cat", "dog", "owl"])
    acc = CKCEAccumulator.from_sample(names[y], np.log(q), n_landmarks=9, from_logits=True)
    acc.update(names[y], np.log(q))
    assert acc.landmarks.sum(axis=1) == pytest.approx(1.0)
    plain = placed(y, q, 9)
    assert acc.evaluate().classes == ("cat", "dog", "owl")
    assert acc.compute() == pytest.approx(plain.compute(), rel=1e-9)


def test_landmarks_are_named():
    y, q = sample(300, 3)
    signatures, configs = set(), set()
    for points in (landmarks(3, seed=1), landmarks(3, seed=2), landmarks(3, seed=2)[:3]):
        acc = CKCEAccumulator(3, bandwidth=0.5, landmarks=points)
        acc.update(y, q)
        signatures.add(acc.evaluate().signature)
        configs.add(acc.config["landmarks"])
    assert len(signatures) == len(configs) == 3
    assert "|method:landmarks|landmarks:3(" in acc.evaluate().signature
    assert repr(acc).startswith(
        "CKCEAccumulator(n_classes=3, method='landmarks', n_landmarks=3, kernel='linear_gaussian'"
    )


@pytest.mark.parametrize("count", [1, 8])
def test_nobody_can_change_them(count):
    points = landmarks(3, bandwidth=0.5)[:count]
    kept = points.copy()
    acc = CKCEAccumulator(3, bandwidth=0.5, landmarks=points)
    points[:] = 0.0
    acc.landmarks[:] = 0.0
    assert np.array_equal(acc.landmarks, kept)
    assert np.array_equal(CKCEAccumulator.from_bytes(acc.to_bytes()).landmarks, kept)


def test_factors_of_other_machines():
    """The last digits of L may differ between instruction sets; another matrix is another map."""
    y, q = sample(200, 3)
    acc = placed(y, q, 12)
    header, arrays = ckce._state.decode(acc.to_bytes(), "data")
    for change, merges in ((1e-15, True), (1e-3, False)):
        factor = arrays["landmark_factor"] * (1.0 + change)
        data = b"".join(ckce._state.encode(header, {**arrays, "landmark_factor": factor}, 2))
        other = CKCEAccumulator.from_bytes(data)
        if merges:
            assert acc.copy().merge(other).n_samples == 400
            continue
        with pytest.raises(ValueError, match="features must be the same to merge"):
            acc.merge(other)
