"""The reduction to the k largest entries."""

import math
import pickle

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.shared import sample

import ckce
from ckce import _core, reference

KERNELS = ["linear_gaussian", "gaussian", "laplace", "linear"]
Y, Q = sample(80, 9, seed=1)


def close(value, rel=1e-9):
    return pytest.approx(value, rel=rel, abs=1e-15)


def reduced(y, q, k, n_threads=1):
    probs, ranks, report = _core.top_k(q, y, k=k, sum_tolerance=math.inf, n_threads=n_threads)
    assert report.not_finite.count == report.bad_label.count == 0
    return ranks, probs


def check(y, q, k):
    ranks, probs = reduced(y, q, k)
    expected_ranks, expected = reference.top_k(y, q, k)
    assert np.array_equal(ranks, expected_ranks)
    assert np.array_equal(probs[:, :k], expected[:, :k])
    assert np.abs(probs - expected).max() <= 1e-15 * (k + 1)


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(2, 150)),
        elements=st.sampled_from([0.0, 0.125, 0.25, 0.5, 1.0, 1e-300]),
    ),
    st.data(),
)
@settings(max_examples=150, deadline=None)
def test_any_rows_with_ties(q, data):
    n, m = q.shape
    y = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, m - 1)))
    check(y, q, data.draw(st.integers(1, m - 1)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "m", "k"),
    [
        (3, 2, 1),
        (50, 64, 20),
        (50, 65, 20),
        (20, 1000, 20),
        (5, 1000, 64),
        (5, 1000, 65),
        (4, 1000, 999),
        (3, 3000, 300),
        (1100, 31, 30),
        (2, 40_000, 5),
    ],
)
def test_selects_what_a_full_sort_does(n, m, k, dtype):
    rng = np.random.default_rng(m + k)
    q = rng.dirichlet(np.full(m, 0.3), n).astype(dtype)
    y = rng.integers(0, m, n)
    for order in (np.arange(m), np.argsort(q[0]), np.argsort(-q[0])):
        check(y, q[:, order], k)
    check(y, np.asfortranarray(q), k)
    check(y, np.repeat(q, 2, axis=1)[:, ::2], k)
    check(y, np.full_like(q, 1 / m), k)
    hard = np.zeros_like(q)
    hard[np.arange(n), y] = 1
    check(y, hard, k)
    check(y[::-1].copy(), hard, k)


def test_rows_off_their_borders():
    raw = np.zeros((6, 21), np.uint8)
    records = np.ndarray((6, 5), np.float32, raw.data, 1, (21, 4))
    records[:] = sample(6, 5)[1]
    check(np.arange(6) % 5, records, 2)


def test_threads_change_no_bit():
    y, q = sample(3000, 120, seed=2)
    one = reduced(y, q, 20)
    for threads in (2, 5):
        assert all(map(np.array_equal, one, reduced(y, q, 20, threads)))
    values = {ckce.ckce(y, q, reduction=ckce.TopK(20), n_threads=t) for t in (1, 3)}
    assert len(values) == 1


@pytest.mark.parametrize("method", ["exact", "cholesky", "fourier"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [1, 3, 8])
def test_every_number_is_that_of_the_reduced_problem(k, kernel, method):
    if (method, kernel) == ("fourier", "linear"):
        pytest.skip("no features")
    y, q = reference.top_k(Y, Q, k)
    options = {"kernel": kernel, "method": method}
    if kernel != "linear":
        options["bandwidth"] = 0.4
    e = ckce.estimate(Y, Q, reduction=ckce.TopK(k), **options)
    full = ckce.estimate(y, q, **options)
    for name in ("value", "debiased", "floor", "se"):
        assert getattr(e, name) == close(getattr(full, name))
    assert e.per_class == close(full.per_class)
    assert e.mean_residual == close(full.mean_residual)
    assert e.influence == close(full.influence)
    assert e.n_classes == 9
    assert e.classes == (*(f"rank {j + 1}" for j in range(k)), "other")
    assert f"|reduction:top_k({k})|" in e.signature
    assert {row.label for row in e.attribution()} == set(e.classes)
    for estimator in ("unbiased", "biased"):
        value = ckce.jkce(Y, Q, reduction=ckce.TopK(k), estimator=estimator, **options)
        assert value == close(ckce.jkce(y, q, estimator=estimator, **options))


@pytest.mark.parametrize("kernel", KERNELS)
def test_against_the_oracle(kernel):
    y, q = reference.top_k(Y, Q, 4)
    options = {} if kernel == "linear" else {"bandwidth": 0.4}
    value = ckce.ckce(Y, Q, reduction=ckce.TopK(4), kernel=kernel, method="exact", **options)
    assert value == close(reference.ckce(y, q, kernel=kernel, bandwidth=0.4))
    e = ckce.estimate(Y, Q, reduction=ckce.TopK(4), kernel=kernel, method="exact", **options)
    assert e.floor == close(reference.floor(y, q, kernel=kernel, bandwidth=0.4))
    assert e.se == close(reference.standard_error(y, q, kernel=kernel, bandwidth=0.4))


def test_against_many_digits():
    """The definition in 50 digits: sort, add the rest, regress, take the trace."""
    with mpmath.workdps(50):
        n, m, k, gamma = 12, 6, 2, mpmath.mpf("0.5")
        y, q = sample(n, m, seed=5)
        rows, ranks = [], []
        for label, row in zip(y, q, strict=True):
            entries = sorted(range(m), key=lambda j: (-row[j], j))
            kept = [mpmath.mpf(float(row[j])) for j in entries[:k]]
            rows.append([*kept, 1 - mpmath.fsum(kept)])
            ranks.append(min(entries.index(label), k))
        lam = mpmath.mpf(n) ** mpmath.mpf("-0.25")
        gram = mpmath.matrix(n, n)
        for a in range(n):
            for b in range(n):
                dot = mpmath.fdot(rows[a], rows[b])
                square = mpmath.fsum((u - v) ** 2 for u, v in zip(rows[a], rows[b], strict=True))
                gram[a, b] = dot + mpmath.exp(-square / (2 * gamma**2))
        r = mpmath.matrix(n, k + 1)
        for i in range(n):
            for j in range(k + 1):
                r[i, j] = (ranks[i] == j) - rows[i][j]
        v = mpmath.inverse(gram + lam * n * mpmath.eye(n)) * r
        expected = float(sum((v.T * gram * v)[j, j] for j in range(k + 1)))
    value = ckce.ckce(y, q, reduction=ckce.TopK(k), bandwidth=0.5, method="exact")
    assert value == close(expected, rel=1e-12)


@pytest.mark.parametrize("kernel", ["linear_gaussian", "gaussian", "laplace"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_alone_is_the_top_label(kernel, dtype):
    q = Q.astype(dtype)
    options = {"kernel": kernel, "bandwidth": 0.3, "method": "exact"}
    one = ckce.estimate(Y, q, reduction=ckce.TopK(1), **options)
    top = ckce.estimate(Y, q, reduction="top_label", **options)
    for name in ("value", "debiased", "floor", "se"):
        assert getattr(one, name) == close(getattr(top, name), rel=1e-12)
    medians = [
        ckce.estimate(Y, q, reduction=reduction).bandwidth
        for reduction in (ckce.TopK(1), "top_label")
    ]
    assert medians[0] == close(medians[1], rel=1e-12)


def test_the_order_of_columns_does_not_matter():
    order = np.random.default_rng(0).permutation(9)
    value = ckce.ckce(Y, Q, reduction=ckce.TopK(3))
    assert ckce.ckce(np.argsort(order)[Y], Q[:, order], reduction=ckce.TopK(3)) == value


def test_every_function_takes_it():
    top = ckce.TopK(3)
    y, q = reference.top_k(Y, Q, 3)
    sharp = Q**2 / (Q**2).sum(axis=1, keepdims=True)
    y2, q2 = reference.top_k(Y, sharp, 3)
    e = ckce.evaluate(Y, Q, reduction=top, test=19)
    expected = ckce.evaluate(y, q, test=19)
    assert e.ckce.value == close(expected.ckce.value)
    assert e.jkce.value == close(expected.jkce.value)
    assert e.test.p_value == expected.test.p_value
    assert e.accuracy == ckce.accuracy(Y, Q)  # of all classes
    c = ckce.compare(Y, {"a": Q, "b": sharp}, reduction=top, test=19)
    expected = ckce.compare({"a": y, "b": y2}, {"a": q, "b": q2}, test=19)
    assert c.names == expected.names
    assert c.bandwidth == close(expected.bandwidth)
    pair, expected_pair = c.pairs[0], expected.pairs[0]
    assert (pair.verdict, pair.sentence) == (expected_pair.verdict, expected_pair.sentence)
    assert pair.own_p_value == close(expected_pair.own_p_value, rel=1e-6)
    assert [m.p_value for m in c.models] == [m.p_value for m in expected.models]
    assert "|reduction:top_k(3)|" in c.signature
    assert "top_k(3)" in c.estimates["a"].signature
    assert len(c.sensitivity().pairs) == 1
    t = ckce.calibration_test(Y, Q, reduction=top, n_resamples=99)
    assert t.p_value == ckce.calibration_test(y, q, n_resamples=99).p_value
    curve = ckce.shift_curve(Y, {"a": [Q, sharp]}, reduction=top, bandwidth="pooled")
    assert curve.points[0].accuracy == ckce.accuracy(Y, Q)
    expected = ckce.shift_curve([y, y2], {"a": [q, q2]}, bandwidth="pooled")
    assert curve.values("ckce")["a"] == close(expected.values("ckce")["a"])
    page = ckce.report(Y, {"a": Q, "b": sharp}, reduction=top, test=False)
    assert "top_k(3)" in page.html
    assert ckce.jkce_estimate(Y, Q, reduction=top).se == close(ckce.jkce_estimate(y, q).se)


def test_weights_are_copies():
    weights = np.arange(80) % 3
    value = ckce.ckce(Y, Q, reduction=ckce.TopK(3), sample_weight=weights)
    copies = ckce.ckce(np.repeat(Y, weights), np.repeat(Q, weights, axis=0), reduction=ckce.TopK(3))
    assert value == close(copies)


def test_logits_and_names():
    logits = np.log(Q) + 3.0
    value = ckce.ckce(Y, Q, reduction=ckce.TopK(3))
    assert ckce.ckce(Y, logits, input="logits", reduction=ckce.TopK(3)) == close(value)
    names = [f"class {j}" for j in range(9)]
    named = ckce.ckce(np.array(names)[Y], Q, labels=names, reduction=ckce.TopK(3))
    assert named == value


def test_a_memory_mapped_file(tmp_path):
    np.save(tmp_path / "q.npy", Q.astype(np.float32))
    mapped = np.load(tmp_path / "q.npy", mmap_mode="r")
    value = ckce.ckce(Y, mapped, reduction=ckce.TopK(3))
    assert value == ckce.ckce(Y, np.array(mapped), reduction=ckce.TopK(3))


def test_the_object():
    top = ckce.TopK(np.int64(20))
    assert repr(top) == "TopK(k=20)"
    assert eval(repr(top), {"TopK": ckce.TopK}) == top
    assert pickle.loads(pickle.dumps(top)) == top
    assert len({top, ckce.TopK(20), ckce.TopK(21)}) == 2
    with pytest.raises(AttributeError):
        top.k = 3


def streamed(y, q, batch=None, **options):
    acc = ckce.CKCEAccumulator(q.shape[1], **options)
    for begin in range(0, len(y), batch or len(y)):
        rows = slice(begin, begin + (batch or len(y)))
        acc.update(y[rows], q[rows])
    return acc


@pytest.mark.parametrize("kernel", ["linear_gaussian", "gaussian"])
def test_a_stream_of_top_labels_is_exact(kernel):
    y, q = sample(3000, 12, seed=3)
    options = {"kernel": kernel, "bandwidth": 0.1, "reduction": "top_label"}
    acc = streamed(y, q, **options)
    e = acc.evaluate()
    expected = ckce.estimate(y, q, method="exact", **options)
    assert e.method == "exact"
    assert acc.compute() == close(expected.value, rel=1e-12)
    assert e.ckce_debiased == close(expected.debiased, rel=1e-11)
    assert e.ckce_se == close(expected.se, rel=1e-9)
    assert e.per_class is None
    assert e.classes == ("wrong", "right")
    halves = streamed(y[:1000], q[:1000], **options) + streamed(y[1000:], q[1000:], **options)
    assert halves.compute() == close(expected.value, rel=1e-12)


@pytest.mark.parametrize("reduction", ["top_label", ckce.TopK(3)])
def test_any_split_of_a_stream_gives_the_same_bits(reduction):
    y, q = sample(2500, 12, seed=4)
    states = {
        streamed(y, q, batch, reduction=reduction, n_threads=threads).to_bytes()
        for batch, threads in ((2500, 1), (700, 2), (1, 1), (1024, 3))
    }
    assert len(states) == 1
    (state,) = states
    twin = ckce.CKCEAccumulator.from_bytes(state)
    assert twin.to_bytes() == state
    assert repr(reduction).split("=")[-1].strip(")'") in str(twin.config["reduction"])


def test_a_stream_of_ranks():
    y, q = sample(2500, 12, seed=5)
    options = {"reduction": ckce.TopK(3), "bandwidth": 0.4, "method": "fourier"}
    e = streamed(y, q, 400, **options).evaluate()
    expected = ckce.estimate(y, q, **options)
    assert e.ckce == close(expected.value, rel=1e-12)
    assert e.ckce_floor == close(expected.floor, rel=1e-11)
    assert e.per_class == close(expected.per_class, rel=1e-10)
    assert e.mean_residual == close(expected.mean_residual, rel=1e-10)
    assert e.classes == ("rank 1", "rank 2", "rank 3", "other")
    assert (e.n_classes, len(e.per_class)) == (12, 4)
    assert "|reduction:top_k(3)|" in e.signature
    default = streamed(y, q, reduction=ckce.TopK(3)).bandwidth
    assert default == 1 - 1.5 / 4
    acc = ckce.CKCEAccumulator.from_sample(
        y, q, reduction=ckce.TopK(3), method=ckce.Landmarks(20), random_state=1
    )
    assert acc.method.points.shape[1] == 4
    acc.update(y, q)
    assert acc.n_classes == 12


@pytest.mark.parametrize("reduction", ["top_label", ckce.TopK(1), ckce.TopK(4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_a_reduced_stream(reduction, weighted):
    """Accuracy, confidence and ECE of the predicted class, although "other" may be larger."""
    y, q = sample(1500, 12, seed=6)
    weights = np.arange(1500) % 3 if weighted else None
    acc = ckce.CKCEAccumulator(12, reduction=reduction, n_bins=15)
    acc.update(y, q, weights)
    e = acc.evaluate()
    options = {"sample_weight": weights}
    assert e.accuracy == close(ckce.accuracy(y, q, **options), rel=1e-12)
    expected = ckce.ece_estimate(y, q, **options)
    assert e.ece_top_label.value == close(expected.value, rel=1e-12)
    assert np.array_equal(e.ece_top_label.counts, expected.counts)
    kept = q.max(axis=1) if weights is None else np.repeat(q.max(axis=1), weights)
    assert e.mean_confidence == close(kept.mean(), rel=1e-12)
    pair = reference.top_label(y, q) if reduction == "top_label" else None
    ranks, probs = pair or reference.top_k(y, q, reduction.k)
    assert e.brier == close(ckce.brier(ranks, probs, **options), rel=1e-12)
    assert e.log_loss == close(ckce.log_loss(ranks, probs, **options), rel=1e-12)


def test_states_of_other_questions_are_not_merged():
    asked = [None, "top_label", ckce.TopK(1), ckce.TopK(2)]
    states = [
        ckce.CKCEAccumulator(5, reduction=each, bandwidth=0.5, method="fourier") for each in asked
    ]
    for i, one in enumerate(states):
        for j, other in enumerate(states):
            if i != j:
                with pytest.raises(ValueError, match="reduction must be the same to merge"):
                    one.merge(other)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reduction": ckce.TopK(5)}, "below the number of classes"),
        ({"reduction": "class_wise"}, r"reduction must be one of \['top_label'\]"),
        ({"reduction": "top_label", "label_kernel": np.eye(5)}, "label_kernel must be None"),
        ({"reduction": ckce.TopK(2), "method": "exact"}, "needs two classes and a Gaussian kernel"),
    ],
)
def test_streams_refuse(options, words):
    with pytest.raises(ValueError, match=words):
        ckce.CKCEAccumulator(5, **options)


def test_a_stream_of_very_many_classes_names_the_reduction():
    with pytest.raises(MemoryError, match=r"pass reduction=ckce.TopK\(20\) or 'top_label'"):
        ckce.CKCEAccumulator(500_000)
    acc = ckce.CKCEAccumulator(500_000, reduction=ckce.TopK(20))
    assert acc.config["n_classes"] == 500_000


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ckce.TopK(0), ValueError, "k must be at least 1, got 0"),
        (lambda: ckce.TopK(2.0), TypeError, "k must be an integer, got 2.0"),
        (
            lambda: ckce.ckce(Y, Q, reduction=ckce.TopK(9)),
            ValueError,
            "below the number of classes",
        ),
        (lambda: ckce.ckce(Y, Q, reduction=20), TypeError, r"or pass ckce.TopK\(k\)"),
        (lambda: ckce.ckce(Y, Q, reduction="top_k"), ValueError, r"or pass ckce.TopK\(k\)"),
        (
            lambda: ckce.ckce(Y, Q, reduction=ckce.TopK(2), label_kernel=np.eye(3)),
            ValueError,
            r"label_kernel must be None with reduction=TopK\(k=2\): the labels become ranks",
        ),
        (
            lambda: ckce.ckce(Y, 0.5 * Q, reduction=ckce.TopK(2)),
            ValueError,
            "y_prob row 0 sums to 0.5",
        ),
        (lambda: ckce.ckce(Y + 5, Q, reduction=ckce.TopK(2)), ValueError, "expected 0..8"),
        (lambda: ckce.ckce(Y, -Q, reduction=ckce.TopK(2)), ValueError, "entries are negative"),
        (lambda: ckce.ckce(Y, Q * np.nan, reduction=ckce.TopK(2)), ValueError, "NaN or inf"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_calibrated_models_keep_their_level():
    """Labels drawn from the predictions: p-values of the reduced problem are uniform."""
    rng = np.random.default_rng(0)
    low = 0
    for _ in range(100):
        q = rng.dirichlet(np.full(50, 0.2), 150)
        y = (q.cumsum(axis=1) < rng.random((150, 1))).sum(axis=1).clip(max=49)
        test = ckce.calibration_test(y, q, reduction=ckce.TopK(5), n_resamples=39)
        low += test.p_value <= 0.1
    assert 2 <= low <= 21  # 0.1 of 100, but for one draw in a thousand
