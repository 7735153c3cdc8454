"""Two classes: exact in one pass, in batches and in streams, against long double."""

import dataclasses

import numpy as np
import pytest
from line import KERNELS, LONG, cells, problem, skewed, truth
from shared import sample

import ckce
from ckce import CKCEAccumulator, _core, reference

pytestmark = [
    pytest.mark.filterwarnings("ignore:sample_weight"),
    pytest.mark.skipif(
        np.finfo(LONG).eps > 1e-18, reason="long double has no more digits than double here"
    ),
]
GAUSSIANS = KERNELS[:2]
TINY = np.finfo(float).tiny  # a truth below it is 0 in float64


@pytest.fixture(autouse=True)
def no_problem_is_too_small(monkeypatch):
    """A few rows take the Gram matrix; here all take the one pass."""
    monkeypatch.setattr("ckce._methods.method._FEW_ROWS", 0)


def stream(y, q, w=None, **options):
    acc = CKCEAccumulator(2, **options)
    acc.update(y, q, w)
    return acc


def literal(y, q, kernel="linear_gaussian", bandwidth=0.5, **options):
    """The kernel by conjugate gradients, which knows nothing of cells."""
    return _core.ckce_exact(
        *(q, y, None, None),
        kernel=_core.Kernel(kernel, bandwidth),
        ridge=len(y) ** 0.75,
        tol=1e-13,
        solver=_core.Solver.iterate,
        full=False,
        n_threads=2,
        progress=None,
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_error_is_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        y, q, options = problem(rng)
        exact = truth(y, q, **options, full=False)["value"]
        for e in (ckce.estimate(y, q, method="exact", **options), cells(y, q, **options)):
            assert abs(e.value - exact) <= e.bound + TINY


@pytest.mark.parametrize("seed", range(12))
def test_the_error_is_below_the_bound_in_dense_cells(seed):
    y, q, options = problem(np.random.default_rng(1000 + seed), n_most=300)
    exact = truth(y, q, **options, full=False)["value"]
    for e in (ckce.estimate(y, q, method="exact", **options), cells(y, q, **options)):
        assert abs(e.value - exact) <= e.bound + TINY


@pytest.mark.parametrize("seed", range(20))
def test_everything_at_default_settings(seed):
    y, q, options = problem(np.random.default_rng(2000 + seed), default=True)
    e = ckce.estimate(y, q, **options)
    want = truth(y, q, **{**options, "bandwidth": e.bandwidth})
    scale = float(want["value"] + want["debias"])
    assert e.method == "exact"
    assert abs(e.value - want["value"]) <= e.bound
    if e.bandwidth > 1e-5:  # below, 1 - p itself is rounded by more than 1e-11 of a bandwidth
        assert e.bound <= 1e-9 * scale
    psi = want["influence"].astype(float)
    assert e.value - e.debiased == pytest.approx(float(want["debias"]), rel=1e-9, abs=1e-12 * scale)
    assert e.floor == pytest.approx(float(want["floor"]), rel=1e-9, abs=1e-12 * scale)
    assert e.influence == pytest.approx(psi, abs=1e-8 * abs(psi).max())
    assert e.se == pytest.approx(float(want["se"]), rel=1e-8, abs=1e-12 * scale)
    joint = ckce.jkce_estimate(
        y, q, method="exact", bandwidth=e.bandwidth, kernel=options["kernel"]
    )
    n, diagonal = len(y), float(want["diagonal"])
    off = float(want["off_diagonal"])
    assert joint.value == pytest.approx(off / (n * (n - 1)), rel=1e-9, abs=1e-11 * diagonal / n**2)
    assert joint.biased == pytest.approx((off + diagonal) / n**2, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", [1e-3, 0.02, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("rare", [False, True])
def test_weights_and_a_label_kernel(kernel, bandwidth, rare):
    rng = np.random.default_rng(7)
    n = 250
    p = rng.beta(0.05, 6.2, n) if rare else rng.random(n)
    y, q = (rng.random(n) < p**1.2).astype(np.int64), np.stack([1 - p, p], 1)
    w = rng.integers(1, 4, n).astype(float)
    options = {
        "kernel": kernel,
        "bandwidth": bandwidth,
        "label_kernel": [[1.04, 0.26], [0.26, 0.65]],
    }
    e = ckce.estimate(y, q, method="exact", sample_weight=w, **options)
    want = truth(y, q, sample_weight=w, **options)
    scale = float(want["value"] + want["debias"])
    assert e.bound <= 1e-9 * scale
    assert abs(e.value - want["value"]) <= 1e-12 * scale
    assert e.value - e.debiased == pytest.approx(float(want["debias"]), rel=1e-10)
    assert e.floor == pytest.approx(float(want["floor"]), rel=1e-10)
    psi, rows = (want[name].astype(float) for name in ("influence", "rows"))
    assert e.influence == pytest.approx(psi, abs=1e-9 * abs(psi).max())
    assert e.se == pytest.approx(float(want["se"]), rel=1e-10)
    joint = ckce.jkce_estimate(y, q, method="exact", sample_weight=w, **options)
    total, off, diagonal = w.sum(), float(want["off_diagonal"]), float(want["diagonal"])
    value = off / (total * (total - 1))
    assert joint.value == pytest.approx(value, rel=1e-10, abs=1e-11 * diagonal / total**2)
    se = 2 * np.sqrt(w @ (rows / (total - 1) - value) ** 2 / (total - 1) / total)
    assert joint.se == pytest.approx(se, rel=1e-9)
    if kernel == "laplace":
        return
    streamed = stream(y, q, w, **options).evaluate()
    assert streamed.ckce == pytest.approx(e.value, rel=1e-12)
    assert streamed.ckce_debiased == pytest.approx(e.debiased, rel=1e-11, abs=1e-12 * scale)
    assert streamed.ckce_floor == pytest.approx(e.floor, rel=1e-12)
    assert streamed.ckce_se == pytest.approx(e.se, rel=1e-9)
    assert streamed.jkce == pytest.approx(joint.value, rel=1e-11, abs=1e-12 * diagonal / total**2)
    assert streamed.jkce_biased == pytest.approx(joint.biased, rel=1e-12)
    assert streamed.jkce_se == pytest.approx(joint.se, rel=1e-9)
    assert streamed.ckce_bound <= 1e-9 * scale


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_oracle_in_long_double_is_the_reference(kernel):
    y, q = sample(40, 2)
    options = {"kernel": kernel, "bandwidth": 0.3}
    want = truth(y, q, **options)
    assert reference.ckce(y, q, **options) == pytest.approx(float(want["value"]), rel=1e-9)
    assert reference.debias_term(y, q, **options) == pytest.approx(float(want["debias"]), rel=1e-9)


def test_the_bound_holds_against_fifty_digits():
    mp = pytest.importorskip("mpmath").mp
    with mp.workdps(50):
        for seed in range(8):
            y, q, options = problem(np.random.default_rng(seed), 9, kernel=GAUSSIANS[seed % 2])
            options = {**options, "sample_weight": None, "label_kernel": None}
            n, gamma = len(y), mp.mpf(options["bandwidth"])
            lam = options["regularization"]
            ridge = mp.mpf(n**-0.25 if lam is None else lam) * n
            rows = [[mp.mpf(x) for x in row] for row in q.tolist()]
            k = mp.matrix(n, n)
            for i in range(n):
                for j in range(n):
                    apart = sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True))
                    k[i, j] = mp.exp(-apart / (2 * gamma**2))
                    if options["kernel"] == "linear_gaussian":
                        k[i, j] += sum(a * b for a, b in zip(rows[i], rows[j], strict=True))
            value = 0
            for c in range(2):
                r = mp.matrix([int(y[i] == c) - rows[i][c] for i in range(n)])
                v = mp.lu_solve(k + ridge * mp.eye(n), r)
                value += (v.T * k * v)[0]
            e = ckce.estimate(y, q, method="exact", **options)
            assert abs(mp.mpf(e.value) - value) <= mp.mpf(e.bound)


def long_band(kind, rng, n=500):
    """P(class 1) and a bandwidth that sees a small part of the rows."""
    return {
        "even": lambda: (rng.random(n), 0.01),
        "dense cells": lambda: (rng.random(n), 0.03),
        "skewed": lambda: (rng.beta(0.3, 3.0, n), 0.003),
        "a gap in the middle": lambda: (rng.random(n) * 0.2 + rng.choice([0.0, 0.8], n), 0.005),
        "one cell has nearly all": lambda: (
            np.where(rng.random(n) < 0.9, 0.3, rng.random(n)),
            0.01,
        ),
    }[kind]()


@pytest.mark.parametrize("kernel", GAUSSIANS)
@pytest.mark.parametrize("regularization", [None, 1e-5])
@pytest.mark.parametrize(
    "kind", ["even", "dense cells", "skewed", "a gap in the middle", "one cell has nearly all"]
)
def test_a_long_band_is_eliminated_from_both_ends(kind, regularization, kernel):
    rng = np.random.default_rng(3)
    p, bandwidth = long_band(kind, rng)
    y, q = (rng.random(len(p)) < p**1.2).astype(np.int64), np.stack([1 - p, p], 1)
    w = rng.integers(1, 4, len(p)).astype(float)
    options = {"kernel": kernel, "bandwidth": bandwidth, "regularization": regularization}
    e = ckce.estimate(y, q, method="exact", sample_weight=w, n_threads=1, **options)
    want = truth(y, q, sample_weight=w, **options)
    assert abs(e.value - want["value"]) <= e.bound
    assert e.value == pytest.approx(float(want["value"]), rel=1e-10)
    assert e.value - e.debiased == pytest.approx(float(want["debias"]), rel=1e-9)
    assert e.floor == pytest.approx(float(want["floor"]), rel=1e-9)
    psi = want["influence"].astype(float)
    assert e.influence == pytest.approx(psi, abs=1e-8 * abs(psi).max())
    for threads in (2, 5):
        again = ckce.estimate(y, q, method="exact", sample_weight=w, n_threads=threads, **options)
        assert (again.value, again.debiased, again.floor) == (e.value, e.debiased, e.floor)
        assert again.influence.tobytes() == e.influence.tobytes()


@pytest.mark.parametrize("regularization", [None, 1e-6])
def test_threads_do_not_change_a_bit_of_a_long_band(regularization):
    y, q = skewed(40_000)  # long enough that threads share every solve
    once, *others = [
        ckce.estimate(y, q, regularization=regularization, n_threads=threads)
        for threads in (1, 2, 5)
    ]
    for again in others:
        assert (again.value, again.bound, again.debiased) == (once.value, once.bound, once.debiased)
        assert again.influence.tobytes() == once.influence.tobytes()


def test_skewed_predictions():
    # A Cholesky factor of rank 500 gives 6.278e-05 here, a third too little.
    y, q = skewed(20_000)
    e = ckce.estimate(y, q)
    assert e.method == "exact"
    assert e.value == pytest.approx(9.3286e-05, rel=1e-4)
    assert e.bound <= 1e-9 * e.value
    assert ckce.ckce(y, q) == pytest.approx(e.value, rel=1e-12)
    exact = literal(y, q, bandwidth=e.bandwidth)
    assert abs(e.value - exact.value) <= e.bound + exact.bound
    assert e.value == pytest.approx(exact.value, rel=1e-10)
    small = y[:300], q[:300]
    assert ckce.ckce(*small, bandwidth=e.bandwidth) == pytest.approx(
        float(truth(*small, bandwidth=e.bandwidth)["value"]), rel=1e-12
    )


def test_reductions():
    y, q = sample(400, 4, concentration=0.5)
    options = {"bandwidth": 0.1}
    top, right = q.max(axis=1), (q.argmax(axis=1) == y).astype(np.int64)
    want = truth(right, np.stack([1 - top, top], 1), **options)["value"]
    assert ckce.ckce(y, q, reduction="top_label", **options) == pytest.approx(
        float(want), rel=1e-12
    )
    parts = [
        truth((y == j).astype(np.int64), np.stack([1 - q[:, j], q[:, j]], 1), **options)["value"]
        for j in range(4)
    ]
    value = ckce.ckce(y, q, reduction="class_wise", **options)
    assert value == pytest.approx(float(np.mean(parts)), rel=1e-12)


def test_a_stream_of_top_labels():
    y, q = sample(3000, 10, concentration=0.3)
    acc = CKCEAccumulator(2, bandwidth=0.05)
    for part in np.array_split(np.arange(3000), 7):
        top = q[part].max(axis=1)
        acc.update((q[part].argmax(axis=1) == y[part]).astype(int), top)
    e = ckce.estimate(y, q, reduction="top_label", bandwidth=0.05)
    assert acc.compute() == pytest.approx(e.value, rel=1e-12)
    assert acc.evaluate().ckce_se == pytest.approx(e.se, rel=1e-9)


@pytest.mark.parametrize("kernel", GAUSSIANS)
@pytest.mark.parametrize("rare", [False, True])
def test_the_test_draws_the_same_labels_as_with_features(kernel, rare):
    y, q = skewed(300) if rare else sample(300, 2)
    options = {"kernel": kernel, "bandwidth": 0.05, "n_resamples": 50}
    cells = ckce.calibration_test(y, q, method="exact", **options)
    factor = ckce.calibration_test(y, q, method=ckce.Cholesky(rank=300, tol=1e-15), **options)
    scale = np.abs(factor.null).max(axis=0)
    assert np.abs(cells.null - factor.null).max(axis=0) / scale == pytest.approx(0.0, abs=1e-9)
    for name in ("ckce", "debiased", "jkce"):
        largest = scale.max()
        assert getattr(cells, name) == pytest.approx(getattr(factor, name), abs=1e-9 * largest)
    assert cells.p_value == factor.p_value
    assert ckce.calibration_test(y, q, **options).method == "exact"


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("kernel", KERNELS)
def test_narrow_rows(dtype, kernel):
    y, wide = sample(200, 2)
    q = wide.astype(dtype)
    options = {"kernel": kernel, "bandwidth": 0.2}
    e = ckce.estimate(y, q, **options)
    want = truth(y, q.astype(float), **options)
    assert abs(e.value - want["value"]) <= e.bound
    off = np.abs(q.astype(float).sum(axis=1) - 1).max()
    assert e.value == pytest.approx(float(want["value"]), rel=10 * off + 1e-12)
    if kernel != "laplace":
        assert stream(y, q, **options).compute() == pytest.approx(e.value, rel=1e-12)


@pytest.mark.parametrize("off", [1e-12, 1e-8, 4e-6])
@pytest.mark.parametrize("seed", range(8))
def test_the_bound_counts_rows_off_the_simplex(off, seed):
    rng = np.random.default_rng(seed)
    y, q, options = problem(rng)
    q = np.clip(q + rng.uniform(-off, off, q.shape), 0, None)
    exact = truth(y, q, **options, full=False)["value"]
    for e in (ckce.estimate(y, q, method="exact", **options), cells(y, q, **options)):
        assert abs(e.value - exact) <= e.bound + TINY


def test_the_smallest_bandwidths_keep_the_gram_matrix():
    y, q = sample(60, 2)
    q[:30] = q[30:] = np.round(q[:30], 3)
    q[:, 0] = 1 - q[:, 1]
    for bandwidth in (1e-11, 1e-13, 1e-100):  # cells end at 2^-40, about 9.1e-13
        e = ckce.estimate(y, q, bandwidth=bandwidth)
        want = float(truth(y, q, bandwidth=bandwidth)["value"])
        assert e.value == pytest.approx(want, rel=1e-9)
        assert ckce.jkce(y, q, bandwidth=bandwidth) == pytest.approx(
            reference.jkce(y, q, bandwidth=bandwidth), rel=1e-9
        )
    test = ckce.calibration_test(y, q, bandwidth=1e-13, n_resamples=9)
    assert 0 < test.p_value <= 1
    with pytest.raises(
        ValueError, match=r"bandwidth must be at least 9\.1e-13 for the exact stream"
    ):
        CKCEAccumulator(2, bandwidth=1e-13)
    assert stream(y, q, bandwidth=1e-13, method="fourier").compute() > 0


def test_one_column():
    y, q = sample(500, 2)
    q[:, 0] = 1 - q[:, 1]
    for function in (ckce.estimate, ckce.jkce_estimate, ckce.evaluate):
        one, two = function(y, q[:, 1]), function(y, q)
        assert repr(one) == repr(two)
    assert stream(y, q[:, 1]).to_bytes() == stream(y, q).to_bytes()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", [0.5, 1e-2, 1.4e-4])
def test_threads_do_not_change_a_bit(kernel, bandwidth):
    y, q = skewed(12_000)
    w = np.arange(len(y)) % 3 + 0.5
    options = {"kernel": kernel, "bandwidth": bandwidth, "sample_weight": w}
    once = ckce.estimate(y, q, n_threads=1, **options)
    joint = ckce.jkce_estimate(y, q, method="exact", n_threads=1, **options)
    for threads in (2, 3, 5, 8):
        again = ckce.estimate(y, q, n_threads=threads, **options)
        assert again == once
        assert np.array_equal(again.influence, once.influence)
        assert ckce.jkce_estimate(y, q, method="exact", n_threads=threads, **options) == joint


@pytest.mark.parametrize("bandwidth", [0.5, 1e-2, 1.4e-4])
def test_a_stream_is_the_exact_batch(bandwidth):
    y, q = skewed(12_000)
    e = ckce.estimate(y, q, bandwidth=bandwidth)
    joint = ckce.jkce_estimate(y, q, method="exact", bandwidth=bandwidth)
    whole = stream(y, q, bandwidth=bandwidth, n_threads=1)
    got = whole.evaluate()
    assert got.ckce == whole.compute() == pytest.approx(e.value, rel=1e-12)
    scale = 1e-12 * e.value
    assert got.ckce_debiased == pytest.approx(e.debiased, rel=1e-12, abs=scale)
    assert got.ckce_floor == pytest.approx(e.floor, rel=1e-12)
    assert got.ckce_se == pytest.approx(e.se, rel=1e-10)
    assert (got.ckce_low, got.ckce_high) == pytest.approx(e.interval(), rel=1e-9, abs=scale)
    assert got.jkce == pytest.approx(joint.value, rel=1e-11)
    assert got.jkce_se == pytest.approx(joint.se, rel=1e-10)
    rng = np.random.default_rng(0)
    for threads in (2, 3, 8):
        parts = CKCEAccumulator(2, bandwidth=bandwidth, n_threads=threads)
        for rows in np.split(np.arange(len(y)), np.sort(rng.integers(0, len(y), 9))):
            parts.update(y[rows], q[rows])
        assert parts.to_bytes() == whole.to_bytes()
        assert parts.evaluate() == got
    merged = sum(
        stream(y[rows], q[rows], bandwidth=bandwidth)
        for rows in np.split(np.arange(len(y)), [500, 4000, 4100])
    )
    for a, b in ((merged.evaluate(), got), (added(merged, whole), got)):
        for name in ("ckce", "ckce_debiased", "ckce_floor", "ckce_se", "jkce", "jkce_se"):
            assert getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-11, abs=scale)


def added(one, like):
    """The same rows through the vector of sums."""
    fresh = like.fresh()
    fresh.add_sums(one.sums())
    return fresh.evaluate()


def test_integer_weights_are_copies():
    y, q = skewed(2_000)
    w = np.random.default_rng(1).integers(0, 3, 2_000)
    copies = np.repeat(y, w), np.repeat(q, w, axis=0)
    for bandwidth in (0.5, 1e-3):
        a = ckce.estimate(y, q, sample_weight=w, bandwidth=bandwidth)
        b = ckce.estimate(*copies, bandwidth=bandwidth)
        s = stream(y, q, w, bandwidth=bandwidth).evaluate()
        for name in ("value", "debiased", "floor", "se"):
            assert getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-10)
        assert s.ckce == pytest.approx(b.value, rel=1e-12)
        assert s.ckce_se == pytest.approx(b.se, rel=1e-9)


def test_laplace_has_no_exact_stream():
    with pytest.raises(ValueError, match="method='exact' of a stream needs two classes and a Gau"):
        CKCEAccumulator(2, method="exact", kernel="laplace", bandwidth=0.5)
    assert CKCEAccumulator(2, kernel="laplace", bandwidth=0.5).method == ckce.Fourier()


def test_a_stream_in_which_every_answer_is_wrong():
    y, q = np.ones(2000, int), np.full(2000, 0.1)
    acc = stream(y, q, bandwidth=0.5)
    twin = CKCEAccumulator.from_bytes(acc.to_bytes())
    assert twin.evaluate() == acc.evaluate()
    assert twin.evaluate().accuracy == 0.0


def test_prices_are_checked(monkeypatch):
    # At bandwidth 1e-6 there can be a million cells: a gigabyte to hold, ten to solve.
    from ckce._input import memory

    y, p = np.arange(20_000) % 2, np.random.default_rng(0).random(20_000)
    acc = stream(y, p, bandwidth=1e-6)
    monkeypatch.setattr(memory, "SMALL", 1e5)
    monkeypatch.setattr(memory, "available_memory", lambda: 1e6)
    with pytest.raises(MemoryError, match=r"cells needs about .* pass a larger bandwidth"):
        acc.compute()
    with pytest.raises(MemoryError, match=r"a state of up to 1e\+06 cells needs about"):
        acc.update(y, p)
    with pytest.raises(MemoryError, match="method='exact'"):
        ckce.ckce(y, p, bandwidth=1e-6)
    assert acc.n_samples == 20_000


def test_sums_of_a_fixed_size_need_few_cells():
    y, q = sample(50, 2)
    with pytest.raises(ValueError, match="bandwidth must leave at most 16384 cells"):
        stream(y, q, bandwidth=1e-6).sums()
    for bandwidth in (0.5, 0.01, 5.0):
        acc = stream(y, q, bandwidth=bandwidth)
        empty = acc.fresh()
        size = len(empty.sums())
        assert len(acc.sums()) == size
        empty.add_sums(acc.sums() + acc.sums())
        assert empty.compute() == pytest.approx((acc + acc).compute(), rel=1e-12)
        with pytest.raises(ValueError, match=f"sums must have {size} entries, got {size - 1}"):
            empty.add_sums(acc.sums()[1:])
        bad = acc.sums()
        bad[-len(bad) // 2 :] = 1e9
        with pytest.raises(ValueError, match="cells that cannot be"):
            empty.add_sums(bad)


def test_the_words_of_a_stream():
    y, q = sample(3000, 2)
    e = stream(y, q).evaluate()
    assert e.method == "exact"
    assert "95 % interval" in repr(e)
    assert "no interval" not in repr(e)
    numbers = e.to_dict()
    assert numbers["ckce_low"] < numbers["ckce_debiased"] < numbers["ckce_high"]
    batch = ckce.estimate(y, q, bandwidth=e.bandwidth)
    assert e.signature.replace("(default)", "") == batch.signature
    assert dataclasses.replace(e) == e
