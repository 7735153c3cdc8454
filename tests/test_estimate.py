"""ckce.estimate: the value with all that belongs to it."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from shared import EDGES, agree, bandwidths, calibration_sets, cases, label_kernel, sample

import ckce
from ckce import reference

EXACT = cases("ckce", "exact")
# Features of which the oracle knows the kernel.
KNOWN = [case for case in cases("ckce") if case.method != "cholesky"]


def scalar_kernel(name, p, q, bandwidth=0.7):
    inner = mpmath.fdot(p, q)
    apart = [a - b for a, b in zip(p, q, strict=True)]
    gaussian = mpmath.exp(-mpmath.fdot(apart, apart) / (2 * mpmath.mpf(bandwidth) ** 2))
    return {
        "linear": inner,
        "gaussian": gaussian,
        "linear_gaussian": inner + gaussian,
        "laplace": mpmath.exp(-mpmath.fsum(apart, absolute=True) / mpmath.mpf(bandwidth)),
    }[name]


def estimate(case, y, q, bandwidth=0.7, **options):
    return ckce.estimate(y, q, **case.options(q.shape[1], bandwidth), **options)


def check(case, y, q, bandwidth=0.7, **options):
    e = estimate(case, y, q, bandwidth, **options)
    kernel = case.oracle_kernel(q, bandwidth)
    options = {"kernel": kernel, "bandwidth": bandwidth, **options}
    term = reference.debias_term(y, q, **options)
    agree(e.value - e.debiased, term, term + e.value)
    agree(e.floor, reference.floor(y, q, **options), term)
    agree(e.value, reference.ckce(y, q, **options), term)
    if len(y) > 1:
        se = reference.standard_error(y, q, **options)
        assert e.se == pytest.approx(se, rel=1e-7, abs=1e-12 * term)


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("case", KNOWN, ids=str)
def test_edge_data_against_the_oracle(case, edge):
    y, q = EDGES[edge]
    check(case, y, q)
    check(case, y, q, label_kernel=label_kernel(q.shape[1]))


@pytest.mark.parametrize("case", KNOWN, ids=str)
@given(data=calibration_sets(), bandwidth=bandwidths)
def test_arbitrary_data_against_the_oracle(case, data, bandwidth):
    check(case, *data, bandwidth)


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("case", KNOWN, ids=str)
def test_weights_against_the_oracle(case, general):
    y, q = sample(60, 4)
    options = {"label_kernel": label_kernel(4)} if general else {}
    check(case, y, q, sample_weight=np.random.default_rng(1).uniform(0.2, 3, 60), **options)


@pytest.mark.parametrize("case", cases("ckce"), ids=str)
def test_integer_weights_are_repetitions(case):
    y, q = sample(60, 4)
    w = np.random.default_rng(2).integers(0, 4, 60)
    weighted = estimate(case, y, q, sample_weight=w)
    repeated = estimate(case, np.repeat(y, w), np.repeat(q, w, axis=0))
    for name in ("value", "floor", "debiased"):
        agree(getattr(weighted, name), getattr(repeated, name), repeated.value)
    assert weighted.se == pytest.approx(repeated.se, rel=1e-9)
    assert weighted.n_samples == np.count_nonzero(w)
    copies = np.repeat(weighted.influence, w[w > 0])
    assert copies == pytest.approx(repeated.influence, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("case", cases("ckce"), ids=str)
@pytest.mark.parametrize("n", [40, 400])
def test_value_is_that_of_ckce_bit_for_bit(case, n):
    y, q = sample(n, 4)
    assert estimate(case, y, q).value == case(y, q)


def test_value_of_the_iteration_is_that_of_ckce_bit_for_bit():
    y, q = sample(2200, 4)
    for tol in (1e-3, 1e-10):
        options = {"method": ckce.Exact(tol=tol)}
        assert ckce.estimate(y, q, **options).value == ckce.ckce(y, q, **options)


@pytest.mark.parametrize("case", cases("ckce"), ids=str)
def test_threads_do_not_change_a_bit(case):
    y, q = sample(1300, 4)
    one, two, five = (estimate(case, y, q, n_threads=t) for t in (1, 2, 5))
    assert one == two == five  # all fields but the arrays
    for other in (two, five):
        assert np.array_equal(one.influence, other.influence)
        assert np.array_equal(one.per_class, other.per_class)


@pytest.mark.parametrize("case", cases("ckce"), ids=str)
def test_parts_add_up(case):
    y, q = sample(80, 4)
    e = estimate(case, y, q)
    assert float(e) == e.value
    assert e.per_class.shape == (4,)
    assert np.all(e.per_class >= 0)
    assert e.per_class.sum() == pytest.approx(e.value, rel=1e-14)
    assert e.influence.shape == (80,)
    assert abs(e.influence.sum()) < 1e-12 * np.abs(e.influence).sum()
    assert e.se == pytest.approx(np.std(e.influence, ddof=1) / math.sqrt(80), rel=1e-12)
    assert (e.n_samples, e.n_classes) == (80, 4)
    assert e.regularization == 80**-0.25
    assert estimate(case, y, q, label_kernel=label_kernel(4)).per_class is None


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_per_class_is_the_value_of_a_label_kernel(case):
    y, q = sample(80, 4)
    for j, part in enumerate(estimate(case, y, q).per_class):
        only = np.zeros((4, 4))
        only[j, j] = 1
        agree(part, case(y, q, label_kernel=only), case.scale(y, q))


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_influence_is_the_derivative_under_a_point_mass(case):
    y, q = sample(25, 3)
    e = estimate(case, y, q)

    def mixture(i, step):
        w = np.full(25, 1 - step)
        w[i] += 25 * step
        return case(y, q, sample_weight=w, regularization=e.regularization)

    step = 1e-5
    slopes = [(mixture(i, step) - mixture(i, -step)) / (2 * step) for i in range(25)]
    assert e.influence == pytest.approx(np.array(slopes), rel=1e-5, abs=1e-8)


def test_floor_is_the_mean_over_labels_drawn_from_the_predictions():
    _, q = sample(4, 3)
    mean = debiased = 0.0
    for flat in range(3**4):
        y = np.array([flat // 3**i % 3 for i in range(4)])
        e = ckce.estimate(y, q)
        probability = np.prod(q[np.arange(4), y])
        mean += probability * e.value
        debiased += probability * e.debiased
    assert e.floor == pytest.approx(mean, rel=1e-12)
    assert debiased == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("case", EXACT, ids=str)
@pytest.mark.parametrize("lam", [1e-6, 1e-3, 12**-0.25])
def test_bound_of_the_factorisation(case, lam):
    y, q = sample(12, 3)
    rows = [[mpmath.mpf(x) for x in row] for row in q.tolist()]
    e = estimate(case, y, q, regularization=lam)
    with mpmath.workdps(40):  # Tr V'KV, V = (K + cI)^-1 R
        gram = mpmath.matrix([[scalar_kernel(case.kernel, p, q) for q in rows] for p in rows])
        v = (gram + 12 * mpmath.mpf(lam) * mpmath.eye(12)) ** -1
        v = v * (mpmath.matrix(np.eye(3)[y].tolist()) - mpmath.matrix(rows))
        exact = float(sum((v.T * gram * v)[j, j] for j in range(3)))
    assert abs(e.value - exact) <= e.bound
    if lam > 0.1:
        assert e.bound < 1e-12 * e.value


def test_interval():
    e = ckce.estimate(*sample(80, 4))
    for level, z in ((None, 1.959963984540054), (0.5, 0.6744897501960817)):
        low, high = e.interval(level)
        wanted = reference.norm_interval(e.debiased, e.value, e.se, z)
        assert (low, high) == pytest.approx(wanted, rel=1e-12)
        assert low == pytest.approx(e.debiased - z * e.se, rel=1e-12)
        assert high == pytest.approx(
            e.debiased + z * e.se + (z * e.se) ** 2 / (4 * e.value), rel=1e-12
        )
    for level in (0.0, 1.0, -1, 95, math.nan):
        with pytest.raises(ValueError, match="level must be between 0 and 1, got"):
            e.interval(level)


def test_interval_covers_the_population_value():
    # q takes three values; labels follow p. The population value is that of the true weights.
    rng = np.random.default_rng(0)
    points = np.array([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]])
    truth = np.array([0.6, 0.5, 0.25])  # P(y = 0 | q)
    options = {"bandwidth": 0.5, "regularization": 0.3}
    gram = reference.gram("linear_gaussian", points, points, 0.5) / 3
    residual = np.column_stack([truth, 1 - truth]) - points
    v = np.linalg.solve(gram + 0.3 * np.eye(3), residual / math.sqrt(3))
    population = np.sum(v * (gram @ v))
    covered = 0
    for _ in range(200):
        which = rng.integers(0, 3, 200)
        y = (rng.random(200) > truth[which]).astype(int)
        low, high = ckce.estimate(y, points[which], **options).interval(0.9)
        covered += low <= population <= high
    assert 0.85 <= covered / 200 <= 0.96


@pytest.mark.parametrize("off", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("function", [ckce.estimate, ckce.jkce_estimate])
def test_interval_of_a_constant_model(function, off):
    """One direction carries all of the noise: |F| is normal, its square is not."""
    rng = np.random.default_rng(1)
    share = 0.4 + off * math.sqrt(0.24 / 300)  # of class 1, predicted as 0.4
    q = np.full(300, 0.4)
    options = {"bandwidth": 0.5}
    k = reference.gram("linear_gaussian", np.array([[0.6, 0.4]]), np.array([[0.6, 0.4]]), 0.5)[0, 0]
    lam = 300**-0.25
    scale = k / (k + lam) ** 2 if function is ckce.estimate else k
    population = scale * 2 * (share - 0.4) ** 2
    covered = 0
    for _ in range(300):
        y = (rng.random(300) < share).astype(int)
        low, high = function(y, q, **options).interval()
        covered += low <= population <= high
    assert covered / 300 >= 0.93


def test_one_row_has_no_standard_error():
    e = ckce.estimate(*EDGES["one row"])
    assert math.isnan(e.se)
    assert e.debiased == pytest.approx(0.0, abs=1e-16)
    assert "too few rows to tell" in repr(e)
    assert "nan" not in repr(e)


def test_what_is_reported_for_each_method():
    y, q = sample(2100, 3)
    exact = ckce.estimate(y, q, method="exact")
    fourier = ckce.estimate(y, q, method="fourier")
    cholesky = ckce.estimate(y, q, method=ckce.Cholesky(rank=7))
    small = ckce.estimate(y[:50], q[:50], method="exact")
    assert exact.iterations > 0
    assert exact.rank is None
    assert exact.debias_rank > 0
    assert small.iterations is None
    assert small.rank is None
    assert small.debias_rank is None
    assert fourier.bound is None
    assert fourier.rank is None
    assert fourier.iterations is None
    assert cholesky.rank == 7
    assert cholesky.bound > 0
    assert [e.method for e in (exact, fourier, cholesky)] == ["exact", "fourier", "cholesky"]
    assert exact.bound <= 1e-9 * exact.value
    linear = ckce.estimate(y, q, kernel="linear")
    assert linear.bandwidth is None
    assert linear.bandwidth_source == "none"
    given_frequencies = ckce.estimate(y, q, method=ckce.Fourier(frequencies=np.ones((2, 3))))
    assert given_frequencies.bandwidth is None
    assert given_frequencies.bandwidth_source == "frequencies"
    assert fourier.bandwidth == ckce.median_bandwidth(q)


def test_repr_is_a_readable_block():
    y, q = sample(2100, 3)
    for options in ({"method": "exact"}, {"method": "fourier"}, {"method": "cholesky"}):
        e = ckce.estimate(y, q, **options)
        lines = repr(e).splitlines()
        names = ["CKCE", "floor", "debiased", "data", "method", "signature"]
        assert [line.split()[0] for line in lines] == names
        assert f"{e.value:.6g}" in lines[0]
        assert f"{e.floor:.6g}" in lines[1]
        assert f"{e.debiased:.6g}" in lines[2]
        assert "n = 2100, m = 3" in lines[3]
        assert f"{e.bandwidth:.6g}" in lines[3]
        assert e.method in lines[4]
        assert lines[5].endswith(e.signature)
    assert "bandwidth" not in repr(ckce.estimate(y, q, kernel="linear"))


def test_an_estimate_does_not_change():
    e = ckce.estimate(*sample(20, 3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        e.value = 0.0


@pytest.mark.parametrize("method", ["exact", "fourier"])
def test_the_floor_of_rows_in_half_precision_with_the_label_kernel_of_no_label_kernel(method):
    y, q = sample(200, 5)
    q = q.astype(np.float16)  # rows miss the sum of 1 by up to 1e-3
    none, eye = (ckce.estimate(y, q, method=method, label_kernel=ell) for ell in (None, np.eye(5)))
    assert eye.floor == pytest.approx(none.floor, rel=1e-13)
    assert eye.value == pytest.approx(none.value, rel=1e-13)
