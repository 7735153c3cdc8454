"""CKCE by every method: numbers worked out by hand, closed forms, edge data, arbitrary data."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from shared import (
    EDGES,
    agree,
    bandwidths,
    calibration_sets,
    cases,
    label_kernel,
    oracle_can_see,
    sample,
)

import ckce

# Exact, or exact at any rank: whatever the method calls it, these must be the kernel's own number.
EXACT = [case for case in cases("ckce") if case.method in ("exact", "cholesky")]


def close(value):
    return pytest.approx(value, rel=1e-13, abs=0)


# Two points, q = (3/4, 1/4) and (1/4, 3/4), both labels 0: the columns of R are (1/4, 3/4) and its
# negative. K = [[a, b], [b, a]] has eigenvalues a + b on (1, 1) and a - b on (1, -1), so CKCE is
# 2 [(a + b) (1/2) / (a + b + c)^2 + (a - b) (1/8) / (a - b + c)^2].
TWO_POINTS = np.array([0, 0]), np.array([[0.75, 0.25], [0.25, 0.75]])
GRAM = {  # (a, b) at bandwidth 0.5: |p - q|^2 = 1/2, |p - q|_1 = 1
    "linear": (0.625, 0.375),
    "gaussian": (1.0, np.exp(-1)),
    "linear_gaussian": (1.625, 0.375 + np.exp(-1)),
    "laplace": (1.0, np.exp(-2)),
}


def two_point_value(a, b, c):
    return (a + b) / (a + b + c) ** 2 + (a - b) / 4 / (a - b + c) ** 2


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_two_points_by_hand(case):
    a, b = GRAM[case.kernel]
    assert case(*TWO_POINTS, bandwidth=0.5) == close(two_point_value(a, b, 2**0.75))
    expected = two_point_value(a, b, 2 * 0.05)
    assert case(*TWO_POINTS, bandwidth=0.5, regularization=0.05) == close(expected)


def test_two_points_by_hand_with_one_frequency():
    # w = (2, 0): k = cos(2 (3/4 - 1/4)) = cos 1 between the points, with <p, q> added.
    method = ckce.Fourier(frequencies=[[2.0, 0.0]])
    value = ckce.ckce(*TWO_POINTS, method=method)
    assert value == close(two_point_value(1.625, 0.375 + np.cos(1.0), 2**0.75))
    value = ckce.ckce(*TWO_POINTS, method=method, kernel="gaussian")
    assert value == close(two_point_value(1.0, np.cos(1.0), 2**0.75))


def test_two_points_by_hand_with_the_median():
    # The only distance is the median: exp(-1/2), and exp(-1) for laplace.
    a, b = 1.625, 0.375 + np.exp(-0.5)
    assert ckce.ckce(*TWO_POINTS) == close(two_point_value(a, b, 2**0.75))
    expected = two_point_value(1.0, np.exp(-1), 2**0.75)
    assert ckce.ckce(*TWO_POINTS, kernel="laplace") == close(expected)


def own_kernel(case, q):
    """k(q, q) of one row: 1 of the radial part, |q|^2 of the linear one; landmarks leave some out."""
    if case.method == "landmarks":
        return float(case.oracle_kernel(q, 0.7)(q[:1], q[:1])[0, 0])
    norm = q[0] @ q[0]
    return {"linear": norm, "linear_gaussian": 1 + norm}.get(case.kernel, 1.0)


def closed_form(case, value, abs=0):
    """The oracle's own features of landmarks have fewer digits."""
    return pytest.approx(value, rel=1e-9 if case.method == "landmarks" else 1e-12, abs=abs)


@pytest.mark.parametrize("m", [2, 3, 10, 100])
@pytest.mark.parametrize("case", cases("ckce"), ids=str)
def test_marginal_model(case, m):
    # k |sum r|^2 / (n k + c)^2 for equal rows
    n = 50
    y, q = np.arange(n) % (m - 1), np.full((n, m), 1 / m)
    k = own_kernel(case, q)
    total = np.bincount(y, minlength=m) - n / m
    expected = k * (total @ total) / (n * k + n**0.75) ** 2
    assert case(y, q) == closed_form(case, expected)


@pytest.mark.parametrize("m", [2, 3, 10, 100])
@pytest.mark.parametrize("case", cases("ckce"), ids=str)
def test_one_sample(case, m):
    q = sample(1, m, seed=m)[1]
    k = own_kernel(case, q)
    r = np.eye(m)[1] - q[0]
    assert case(np.array([1]), q) == closed_form(case, k * (r @ r) / (k + 1) ** 2)


@pytest.mark.parametrize("case", cases("ckce"), ids=str)
@given(miss=st.just(0.0) | st.floats(1e-150, 1e-2))  # its square is a normal number
def test_one_sample_almost_right(case, miss):
    # Smaller than what the oracle's subtraction of operators resolves.
    q = np.array([[miss, 1 - miss]])
    k = own_kernel(case, q)
    r = np.array([-q[0, 0], 1 - q[0, 1]])
    # Two classes are one number on a line, which is 1 - miss rounded.
    rounded = 1e-15 * (miss + 1e-16) if case.method == "exact" and case.kernel != "linear" else 0
    expected = k * (r @ r) / (k + 1) ** 2
    assert case(np.array([1]), q) == closed_form(case, expected, abs=rounded)


@pytest.mark.parametrize("case", cases("ckce"), ids=str)
def test_hard_and_right_predictions_score_zero(case):
    y, q = EDGES["hard and right"]
    assert case(y, q) == 0.0


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("case", cases("ckce"), ids=str)
def test_edge_data_against_the_oracle(case, edge):
    y, q = EDGES[edge]
    case.check(y, q)
    case.check(y, q, label_kernel=label_kernel(q.shape[1]))
    case.check(y, q, regularization=0.01)


@pytest.mark.parametrize("case", [c for c in cases("ckce") if c.method != "cholesky"], ids=str)
@given(data=calibration_sets(), bandwidth=bandwidths, lam=st.floats(1e-3, 10))
def test_arbitrary_data_against_the_oracle(case, data, bandwidth, lam):
    case.check(*data, bandwidth=bandwidth, regularization=lam)


@pytest.mark.parametrize("case", cases("ckce"), ids=str)
@given(
    n=st.integers(1, 60),
    m=st.integers(2, 40),
    seed=st.integers(0, 10**6),
    concentration=st.sampled_from([0.1, 1.0, 10.0]),
    bandwidth=bandwidths,
)
def test_random_data_against_the_oracle(case, n, m, seed, concentration, bandwidth):
    y, q = sample(n, m, seed, concentration)
    assume(oracle_can_see(y, q))
    case.check(y, q, bandwidth)


@pytest.mark.parametrize("case", cases("ckce"), ids=str)
def test_more_than_one_block_of_rows(case):
    # 1024 rows are a block, 128 a panel; the last of each is not full.
    y, q = sample(1050, 3)
    for options in ({}, {"sample_weight": np.random.default_rng(0).uniform(0.5, 2, 1050)}):
        agree(case(y, q, **options), case.oracle(y, q, **options), 0.0)


@pytest.mark.parametrize("case", cases("ckce"), ids=str)
@given(data=calibration_sets())
def test_never_negative(case, data):
    assert case(*data) >= 0.0


def test_absent_classes_count():
    y, q = EDGES["a class is absent"]
    expected = ckce.ckce(y, q[:, [1, 2, 0]], labels=[1, 2, 0])
    agree(ckce.ckce(y, q), expected, expected)


def test_regularization_default():
    y, q = sample(81, 3)
    assert ckce.ckce(y, q) == ckce.ckce(y, q, regularization=81**-0.25)
    w = np.full(81, 2.0)
    assert ckce.ckce(y, q, sample_weight=w) == ckce.ckce(
        y, q, sample_weight=w, regularization=162**-0.25
    )


def test_large_regularization_is_a_rescaled_jkce():
    y, q = sample(100, 3)
    lam = 1e6
    value = ckce.ckce(y, q, regularization=lam) * lam**2
    assert value == pytest.approx(ckce.jkce(y, q, estimator="biased"), rel=1e-5)
