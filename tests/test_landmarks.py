"""method="landmarks": features that a sample fixes, and how far they are from the kernel."""

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
    needs_new_core,
    sample,
)

import ckce
from ckce import CKCEAccumulator, Landmarks, reference
from ckce._stream import state_file

KERNELS = ["linear_gaussian", "gaussian", "laplace"]
pytestmark = pytest.mark.filterwarnings("ignore:landmarks leave out")


def placed(y, q, count, w=None, **options):
    """All rows, with landmarks chosen among them."""
    options |= {"method": Landmarks(count), "sample_weight": w}
    acc = CKCEAccumulator.from_sample(y, q, **options)
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
        m,
        kernel=kernel,
        bandwidth=0.5,
        method=Landmarks(points),
        label_kernel=options["label_kernel"],
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
    assert len(acc.method.points) <= len(np.unique(q, axis=0))


def test_a_thousand_classes():
    y, q = sample(300, 1000, concentration=0.01)
    acc = placed(y, q, 10_000)
    exact = ckce.estimate(y, q, method="exact")
    assert acc.method.points.shape == (300, 1000)
    assert acc.bandwidth == exact.bandwidth
    assert acc.compute() == pytest.approx(exact.value, rel=1e-10)
    few = placed(y, q, 150).evaluate()
    assert abs(few.ckce - exact.value) <= few.ckce_bound
    points = np.eye(1000)[:200]
    acc = CKCEAccumulator(1000, bandwidth=0.8, method=Landmarks(points))
    acc.update(y, q)
    expected = reference.ckce_landmarks(y, q, landmarks=points, bandwidth=0.8)
    assert acc.compute() == pytest.approx(expected, rel=1e-10)


def test_two_classes_need_few():
    y, q = sample(5000, 2)
    acc = CKCEAccumulator.from_sample(y[:1000], q[:1000], method=Landmarks(100))
    assert len(acc.method.points) < 25  # the others are explained to 12 digits
    acc.update(y, q)
    exact = ckce.ckce(y, q, method="exact", bandwidth=acc.bandwidth)
    e = acc.evaluate()
    assert e.ckce == pytest.approx(exact, rel=1e-9)
    assert abs(e.ckce - exact) <= e.ckce_bound < 1e-4 * exact


def test_closer_than_fourier_features_with_fewer_columns():
    y, q = sample(4000, 5)
    acc = CKCEAccumulator.from_sample(y[:1000], q[:1000], method=Landmarks(100))
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
        data[1].shape[1],
        method=Landmarks(landmarks(data[1].shape[1], kernel, bandwidth)),
        **options,
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
                acc = CKCEAccumulator.from_sample(*narrow, method=Landmarks(count), **own)
                acc.update(y, q, options.get("sample_weight"))
                e = acc.evaluate()
                assert abs(e.ckce - exact) <= e.ckce_bound


@pytest.mark.parametrize("kernel", KERNELS)
def test_missing_trace(kernel):
    y, q = sample(1500, 6)
    w = np.random.default_rng(1).uniform(0.1, 4, 1500)
    points = landmarks(6, kernel, 0.5)
    acc = CKCEAccumulator(6, kernel=kernel, bandwidth=0.5, method=Landmarks(points))
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
    acc = CKCEAccumulator.from_sample(y, q, method=Landmarks(150), kernel=kernel, random_state=3)
    rows = {row.tobytes() for row in q.astype(np.float64)}
    assert all(row.tobytes() in rows for row in acc.method.points)
    twin = CKCEAccumulator(6, kernel=kernel, bandwidth=acc.bandwidth, method=acc.method)
    for state in (acc, twin):
        state.update(y, q)
    assert np.array_equal(acc.sums(), twin.sums())
    assert acc.merge(twin).n_samples == 1400


def test_the_seed_chooses():
    y, q = sample(700, 6)
    first, again, other = (
        CKCEAccumulator.from_sample(y, q, method=Landmarks(20), random_state=seed)
        for seed in (0, 0, 1)
    )
    assert first.method == again.method
    assert first.method != other.method
    threads = CKCEAccumulator.from_sample(y, q, method=Landmarks(20), n_threads=3)
    assert first.method == threads.method


def test_repeated_rows_of_a_sample_are_one_landmark():
    y, q = EDGES["hard"]
    assert len(CKCEAccumulator.from_sample(y, q, method=Landmarks(20)).method.points) == 4
    y, q = sample(50, 3)
    near = np.concatenate([q, q + 1e-9 * np.array([1.0, -1.0, 0.0])])
    acc = CKCEAccumulator.from_sample(np.tile(y, 2), near, method=Landmarks(100))
    assert len(acc.method.points) <= 50
    weights = np.arange(50) % 2
    acc = CKCEAccumulator.from_sample(
        y, q, method=Landmarks(50), sample_weight=weights, kernel="laplace"
    )
    assert len(acc.method.points) == 25  # rows of weight 0 are none


def test_where_the_bandwidth_comes_from():
    y, q = sample(300, 3)
    acc = CKCEAccumulator.from_sample(y, q, method=Landmarks(5))
    assert acc.bandwidth == ckce.median_bandwidth(q)
    acc.update(y, q)
    assert "(median of a sample of 300)" in acc.evaluate().signature
    acc.reset()
    assert acc.bandwidth == ckce.median_bandwidth(q)
    assert acc.n_samples == 0
    fixed = CKCEAccumulator.from_sample(y, q, method=Landmarks(5), bandwidth=0.25)
    assert fixed.bandwidth == 0.25
    assert fixed.config["bandwidth_source"] == "given"


def test_names_and_logits_of_a_sample():
    y, q = sample(300, 3)
    names = np.array(["cat", "dog", "owl"])
    acc = CKCEAccumulator.from_sample(
        names[y], np.log(q), method=Landmarks(9), input="logits", labels=names
    )
    acc.update(names[y], np.log(q))
    assert acc.method.points.sum(axis=1) == pytest.approx(1.0)
    plain = placed(y, q, 9)
    assert acc.evaluate().classes == ("cat", "dog", "owl")
    assert acc.compute() == pytest.approx(plain.compute(), rel=1e-9)


def test_landmarks_are_named():
    y, q = sample(300, 3)
    signatures, configs = set(), set()
    for points in (landmarks(3, seed=1), landmarks(3, seed=2), landmarks(3, seed=2)[:3]):
        acc = CKCEAccumulator(3, bandwidth=0.5, method=Landmarks(points))
        acc.update(y, q)
        signatures.add(acc.evaluate().signature)
        configs.add(acc.config["landmarks"])
    assert len(signatures) == len(configs) == 3
    assert "|method:landmarks|landmarks:3(" in acc.evaluate().signature
    assert repr(acc).startswith(
        "CKCEAccumulator(n_classes=3, method='landmarks', kernel='linear_gaussian'"
    )


@pytest.mark.parametrize("count", [1, 8])
def test_nobody_can_change_them(count):
    points = landmarks(3, bandwidth=0.5)[:count]
    kept = points.copy()
    acc = CKCEAccumulator(3, bandwidth=0.5, method=Landmarks(points))
    points[:] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        acc.method.points[:] = 0.0
    for state in (acc, CKCEAccumulator.from_bytes(acc.to_bytes())):
        assert state.method == Landmarks(kept)


def test_factors_of_other_machines():
    """The last digits of L may differ between instruction sets; another matrix is another map."""
    y, q = sample(200, 3)
    acc = placed(y, q, 12)
    header, arrays = state_file.decode(acc.to_bytes(), "data")
    for change, merges in ((1e-15, True), (1e-3, False)):
        factor = arrays["landmark_factor"] * (1.0 + change)
        data = b"".join(state_file.encode(header, {**arrays, "landmark_factor": factor}, 2))
        other = CKCEAccumulator.from_bytes(data)
        if merges:
            assert acc.copy().merge(other).n_samples == 400
            continue
        with pytest.raises(ValueError, match="features must be the same to merge"):
            acc.merge(other)


# As a method of batches.


@needs_new_core
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("n", "m"), [(40, 3), (1100, 2), (1500, 40)])
def test_the_batch_is_the_kernel_of_the_landmarks(n, m, kernel, weighted):
    y, q = sample(n, m)
    options = {"sample_weight": np.arange(n) % 3 + 0.5 if weighted else None, "bandwidth": 0.5}
    points = landmarks(m, kernel, 0.5)
    method = Landmarks(points)
    e = ckce.estimate(y, q, method=method, kernel=kernel, **options)
    j = ckce.jkce_estimate(y, q, method=method, kernel=kernel, **options)
    del options["bandwidth"]
    nystroem = landmark_kernel(points, kernel, 0.5)
    called, joint = (
        f(y, q, kernel=nystroem, **options) for f in (ckce.estimate, ckce.jkce_estimate)
    )
    scale = called.value - called.debiased
    for name in ("value", "debiased", "floor"):
        agree(getattr(e, name), getattr(called, name), scale)
    assert e.se == pytest.approx(called.se, rel=1e-8)
    assert (j.value, j.biased, j.se) == pytest.approx(
        (joint.value, joint.biased, joint.se), rel=1e-8
    )
    assert e.rank == j.rank == len(points)
    exact = ckce.ckce(y, q, method="exact", kernel=kernel, bandwidth=0.5, **options)
    assert abs(e.value - exact) <= e.bound


@needs_new_core
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_number_of_landmarks_takes_rows(kernel):
    y, q = sample(600, 4)
    options = {"kernel": kernel, "bandwidth": 0.5, "random_state": 3}
    acc = CKCEAccumulator.from_sample(y, q, method=Landmarks(50), **options)
    acc.update(y, q)
    drawn = ckce.estimate(y, q, method=Landmarks(50), **options)
    assert drawn.value == ckce.ckce(y, q, method=acc.method, kernel=kernel, bandwidth=0.5)
    assert drawn.value == pytest.approx(acc.compute(), rel=1e-12)
    assert drawn.rank == len(acc.method.points)
    other = ckce.estimate(y, q, method=Landmarks(50), **{**options, "random_state": 4})
    assert other.value != drawn.value
    assert "|landmarks:50|" in drawn.signature
    assert "|s:3|" in drawn.signature
    word = ckce.estimate(y, q, method="landmarks", **options)
    assert word == ckce.estimate(y, q, method=Landmarks(200), **options)
    exact = ckce.ckce(y, q, method="exact", **options)
    assert abs(word.value - exact) <= word.bound
    assert word.value == pytest.approx(exact, rel=0.2 if kernel == "laplace" else 1e-3)


@needs_new_core
def test_every_metric_takes_landmarks():
    y, q = sample(300, 3)
    method = Landmarks(landmarks(3))
    options = {"method": method, "bandwidth": 0.7}
    e = ckce.evaluate(y, q, test=19, **options)
    assert e.ckce == ckce.estimate(y, q, **options)
    assert e.jkce == ckce.jkce_estimate(y, q, **options)
    assert e.test == ckce.calibration_test(y, q, n_resamples=19, **options)
    assert e.test.ckce == pytest.approx(e.ckce.value, rel=1e-9)
    assert e.test.jkce == pytest.approx(e.jkce.value, rel=1e-9)
    c = ckce.compare(y, {"a": q, "b": q**2 / (q**2).sum(axis=1, keepdims=True)}, **options)
    assert c.estimates["a"] == e.ckce
    assert c.method == e.test.method == "landmarks"
    assert e.test.rank == len(method.points)
    for reduction in ("top_label", "class_wise"):
        reduced = {"reduction": reduction, "bandwidth": 0.7}
        value = ckce.ckce(y, q, method=Landmarks(300), **reduced)
        assert value == pytest.approx(ckce.ckce(y, q, method="exact", **reduced), rel=1e-8)


@needs_new_core
@pytest.mark.parametrize("kernel", KERNELS)
@given(data=calibration_sets(), bandwidth=bandwidths, count=st.integers(1, 12))
def test_certificate_of_a_batch(kernel, data, bandwidth, count):
    options = {"kernel": kernel, "bandwidth": bandwidth}
    exact = ckce.estimate(*data, method="exact", **options)
    e = ckce.estimate(*data, method=Landmarks(count), **options)
    assert abs(e.value - exact.value) <= e.bound + exact.bound
