"""The exact test of calibration."""

import dataclasses
import json

import numpy as np
import pytest
from shared import agree, feature_kernel, sample

import ckce
from ckce import reference
from ckce._input import memory as _memory
from ckce._methods import cholesky as _cholesky
from ckce._metrics import calibration_test as _calibration_test


def calibrated(n, m, seed):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(m), n)
    return np.minimum((q.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), m - 1), q


@pytest.mark.parametrize(("n", "m"), [(40, 3), (600, 2), (130, 30), (1100, 5), (1100, 200)])
def test_observed_statistics_are_those_of_the_features(n, m):
    y, q = sample(n, m)
    frequencies = ckce.fourier_frequencies(m, 8, bandwidth=0.7)
    t = ckce.calibration_test(y, q, n_resamples=3, method=ckce.Fourier(frequencies=frequencies))
    oracle = {"kernel": feature_kernel(frequencies, True), "bandwidth": 0.7}
    value = reference.ckce_fourier(y, q, frequencies=frequencies)
    debias = reference.debias_term(y, q, **oracle)
    agree(t.ckce, value, debias)
    agree(t.debiased, value - debias, debias)
    agree(t.jkce, reference.jkce(y, q, **oracle), 2 / n)


@pytest.mark.parametrize("method", ["fourier", "cholesky"])
@pytest.mark.parametrize(("n", "m"), [(1100, 3), (1100, 200)])
def test_features_larger_than_their_memory(monkeypatch, method, n, m):
    # Blocks of rows and several rounds of resamples, in place of all of them at once.
    y, q = sample(n, m)
    options = {"method": method, "bandwidth": 0.7, "n_resamples": 30}
    at_once = ckce.calibration_test(y, q, **options)
    monkeypatch.setattr(_calibration_test, "_TABLE", 10 * m * 300)
    in_blocks = ckce.calibration_test(y, q, **options)
    assert in_blocks.ckce == pytest.approx(at_once.ckce, rel=1e-9)
    assert in_blocks.null == pytest.approx(at_once.null, rel=1e-9, abs=1e-12)
    assert in_blocks.p_value == at_once.p_value


@pytest.mark.parametrize("kernel", ["linear_gaussian", "gaussian", "laplace", "linear"])
def test_observed_statistics_are_those_of_the_kernel(kernel):
    y, q = sample(150, 4)
    method = ckce.Cholesky(tol=1e-14)
    t = ckce.calibration_test(y, q, n_resamples=1, method=method, kernel=kernel)
    e = ckce.estimate(y, q, kernel=kernel, method="exact")
    assert t.ckce == pytest.approx(e.value, rel=1e-8)
    assert t.debiased == pytest.approx(e.debiased, rel=1e-7)
    assert t.jkce == pytest.approx(ckce.jkce(y, q, kernel=kernel), rel=1e-8)


def test_draws_have_the_null_moments():
    _, q = sample(300, 4)
    y, _ = calibrated(300, 4, 1)
    t = ckce.calibration_test(y, q, n_resamples=4000, method=ckce.Cholesky(tol=1e-12))
    floor = ckce.estimate(y, q).floor
    mean, sd = t.null.mean(axis=0), t.null.std(axis=0) / np.sqrt(4000)
    assert abs(mean[0] - floor) < 4 * sd[0]
    assert abs(mean[1]) < 4 * sd[1]
    assert abs(mean[2]) < 4 * sd[2]


def test_draws_are_the_statistics_of_label_sets():
    # Two rows and two classes have four label sets; each draw is one of them, with its probability.
    q = np.array([[0.3, 0.7], [0.6, 0.4]])
    frequencies = ckce.fourier_frequencies(2, 4)
    method = ckce.Fourier(frequencies=frequencies)
    t = ckce.calibration_test([0, 0], q, n_resamples=8000, method=method)
    expected = {}
    for y in ([0, 0], [0, 1], [1, 0], [1, 1]):
        value = reference.ckce_fourier(np.array(y), q, frequencies=frequencies)
        expected[round(value, 10)] = q[0, y[0]] * q[1, y[1]]
    values, counts = np.unique(t.null[:, 0].round(10), return_counts=True)
    assert values.tolist() == pytest.approx(sorted(expected), rel=1e-6)
    shares = np.array([expected[value] for value in sorted(expected)])
    assert np.abs(counts / 8000 - shares).max() < 4 * np.sqrt(0.25 / 8000)


@pytest.mark.parametrize("m", [3, 40])
def test_a_class_of_probability_zero_is_never_drawn(m):
    q = np.zeros((60, m))
    q[:, m // 2] = 1.0
    t = ckce.calibration_test(np.full(60, m // 2), q, n_resamples=50)
    assert t.ckce == 0.0
    assert np.all(t.null[:, 0] == 0.0)
    assert t.p_value == t.p_ckce == t.p_jkce == 1.0
    wrong = ckce.calibration_test(np.append(np.full(59, m // 2), 0), q, n_resamples=50)
    assert wrong.p_ckce == 1 / 51


def test_p_values_count_ties():
    y, q = sample(200, 3)
    t = ckce.calibration_test(y, q, n_resamples=99)
    for name, column in (("ckce", 0), ("debiased", 1), ("jkce", 2)):
        count = (t.null[:, column] >= getattr(t, name)).sum()
        assert getattr(t, f"p_{name}") == (1 + count) / 100
    assert float(t) == t.p_value == t.p_debiased
    for name in ("ckce", "jkce"):
        other = ckce.calibration_test(y, q, n_resamples=99, statistic=name)
        assert other.p_value == getattr(t, f"p_{name}")
        assert other.signature != t.signature


def test_type_one_error_and_power():
    # 300 repetitions: 5 % +- 1.3 %; studies/coverage.py does 3000.
    p_values = [
        ckce.calibration_test(*calibrated(100, 3, seed), n_resamples=99, bandwidth=0.5).p_value
        for seed in range(300)
    ]
    assert 0.015 <= np.mean(np.array(p_values) <= 0.05) <= 0.09
    assert 0.42 < np.mean(p_values) < 0.58
    y, q = calibrated(1000, 3, 0)
    sharp = q**3 / (q**3).sum(axis=1, keepdims=True)
    t = ckce.calibration_test(y, sharp)
    assert t.p_debiased == t.p_ckce == t.p_jkce == 0.001


@pytest.mark.parametrize("options", [{}, {"method": "fourier"}, {"reduction": "top_label"}])
def test_threads_do_not_change_a_bit(options):
    y, q = sample(1300, 30)
    one, two, five = (
        ckce.calibration_test(y, q, n_resamples=70, n_threads=t, **options) for t in (1, 2, 5)
    )
    assert one == two == five
    assert np.array_equal(one.null, two.null)
    assert np.array_equal(one.null, five.null)


def test_more_resamples_keep_the_first():
    y, q = sample(300, 3)
    few, many = (ckce.calibration_test(y, q, n_resamples=b) for b in (10, 100))
    assert np.array_equal(few.null, many.null[:10])


def test_seed():
    y, q = sample(300, 3)
    options = {"method": "cholesky", "n_resamples": 20}  # greedy pivots: only the draws are random
    first, second = (ckce.calibration_test(y, q, random_state=s, **options) for s in (0, 1))
    assert first.ckce == second.ckce
    assert not np.array_equal(first.null, second.null)
    assert first.signature != second.signature


def test_top_label_is_the_binary_problem():
    y, q = sample(200, 4)
    hit = (q.argmax(axis=1) == y).astype(int)
    t = ckce.calibration_test(y, q, reduction="top_label", n_resamples=50)
    binary = ckce.calibration_test(hit, q.max(axis=1), n_resamples=50)
    assert t.p_value == binary.p_value
    assert np.array_equal(t.null, binary.null)


def test_whole_weights_are_repetitions():
    y, q = sample(100, 3)
    w = np.arange(100) % 3
    weighted = ckce.calibration_test(y, q, sample_weight=w, n_resamples=30)
    repeated = ckce.calibration_test(np.repeat(y, w), np.repeat(q, w, axis=0), n_resamples=30)
    assert weighted == repeated
    assert np.array_equal(weighted.null, repeated.null)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_resamples": 0}, "n_resamples must be at least 1, got 0"),
        (
            {"statistic": "ece"},
            r"statistic must be one of \['debiased', 'ckce', 'jkce'\], got 'ece'",
        ),
        ({"method": "exact"}, "method='exact' of the test needs two classes"),
        (
            {"method": "blocks"},
            r"method must be one of \['auto', 'exact', 'fourier', 'cholesky', 'landmarks'\]",
        ),
        ({"method": ckce.Exact()}, "method='exact' of the test needs two classes"),
        ({"method": ckce.Blocks(2)}, r"method must be one of \['auto', .*got 'blocks'"),
        ({"method": ckce.Fourier(precision="mixed")}, "precision='mixed' is for ckce, got it for"),
        ({"kernel": lambda p, q: p @ q.T}, "kernel must be one of the named kernels"),
        ({"kernel": "cosine"}, "kernel must be one of"),
        ({"reduction": "class_wise"}, r"reduction must be one of \['top_label'\]"),
        ({"sample_weight": [0.5, 1, 1]}, r"must hold whole numbers for a test, got 0.5 \(1 of 3"),
    ],
)
def test_bad_arguments(options, message):
    y, q = sample(3, 3)
    with pytest.raises(ValueError, match=message):
        ckce.calibration_test(y, q, **options)


def test_what_does_not_fit_is_refused(monkeypatch):
    y, q = sample(20_000, 3)
    copies = np.full(20_000, 2.0**38)
    with pytest.warns(UserWarning, match="mean"), pytest.raises(MemoryError, match="smaller weigh"):
        ckce.calibration_test(y, q, sample_weight=copies)
    monkeypatch.setattr(_memory, "available_memory", lambda: 1e6)
    with pytest.raises(MemoryError, match="pass a smaller rank"):
        ckce.calibration_test(y, q, method=ckce.Cholesky(rank=3000))


def test_a_factor_stops_where_memory_does(monkeypatch):
    monkeypatch.setattr(_cholesky, "available_memory", lambda: 1e7)
    with pytest.raises(MemoryError, match=r"did not reach tol=1e-10 with the \d+ columns"):
        ckce.calibration_test(*sample(6000, 6), method="cholesky", bandwidth=0.05)


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="y_prob must have at least 2 rows for a test, got 1"):
        ckce.calibration_test([0], [[0.5, 0.5]])


def test_wrong_kinds():
    y, q = sample(5, 3)
    with pytest.raises(TypeError, match=r"n_resamples must be an integer, got 9\.5"):
        ckce.calibration_test(y, q, n_resamples=9.5)
    with pytest.raises(TypeError, match="test must be an integer, got 'yes'"):
        ckce.evaluate(y, q, test="yes")


def test_text_and_dict():
    y, q = sample(200, 3)
    t = ckce.calibration_test(y, q, n_resamples=99)
    lines = str(t).splitlines()
    assert "99 resamples" in lines[0]
    assert [line.split()[0] for line in lines[2:5]] == ["debiased", "CKCE", "JKCE"]
    assert lines[-2] == f"the model is miscalibrated: p = {t.p_value:.2g} by debiased CKCE"
    assert lines[-1] == f"signature {t.signature}"
    assert repr(t) == str(t)
    assert "<table" in t._repr_html_()
    numbers = json.loads(json.dumps(t.to_dict()))
    assert numbers["p_value"] == t.p_value
    assert numbers["null_mean_jkce"] == pytest.approx(t.null[:, 2].mean(), rel=1e-9)
    keys = {"debiased": "ckce_debiased", "p_debiased": "p_ckce_debiased"}  # one key for one thing
    fields = {keys.get(f.name, f.name) for f in dataclasses.fields(t)} - {"null"}
    assert fields <= set(numbers)
    with pytest.raises(dataclasses.FrozenInstanceError):
        t.p_value = 0.0


@pytest.mark.parametrize("options", [{}, {"method": "fourier"}])
def test_evaluate_carries_the_test(options):
    y, q = sample(150, 3)
    assert ckce.evaluate(y, q, **options).test is None
    e = ckce.evaluate(y, q, test=49, **options)
    expected = ckce.calibration_test(y, q, n_resamples=49, **options)
    assert e.test == expected
    assert e.to_dict()["p_value"] == expected.p_value
    assert "test of calibration; 49 resamples" in repr(e)
    assert ckce.evaluate(y, q, test=True).test.n_resamples == 999


@pytest.mark.parametrize("n", [2, 6, 160, 161])
def test_few_rows_of_two_classes(n):
    # Below some 160 rows an estimate takes the Gram matrix; the test is that of the features anyway.
    y, q = sample(n, 2, seed=n)
    ours = ckce.calibration_test(y, q, n_resamples=99)
    theirs = ckce.calibration_test(y, q, n_resamples=99, method="cholesky")
    assert (ours.p_value, ours.p_jkce) == (theirs.p_value, theirs.p_jkce)
    assert ours.debiased == pytest.approx(theirs.debiased, rel=1e-8)
