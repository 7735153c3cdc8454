"""JKCE, biased and unbiased, by the kernel itself and by features."""

import numpy as np
import pytest
from hypothesis import given
from shared import EDGES, agree, bandwidths, calibration_sets, cases, label_kernel, sample

import ckce
from ckce import reference
from ckce._input.kernels import KERNELS


def exponential(p, q):
    return np.exp(-np.linalg.norm(p[:, None] - q[None], axis=2))


def test_published_number():
    # README of pycalibration: SKCE with the kernel exp(-|p - q|_2).
    rng = np.random.default_rng(1234)
    q = rng.dirichlet((3, 2, 5), 100)
    y = rng.integers(1, 4, 100) - 1
    value = ckce.jkce(y, q, kernel=exponential, estimator="unbiased")
    assert value == pytest.approx(0.02015240706950358, rel=1e-13, abs=0)


# As in test_ckce: q = (3/4, 1/4) and (1/4, 3/4), both labels 0, r = (1/4, -1/4) and (3/4, -3/4).
GRAM = {  # k(q, q) and k(p, q) at bandwidth 0.5
    "linear": (0.625, 0.375),
    "gaussian": (1.0, np.exp(-1)),
    "linear_gaussian": (1.625, 0.375 + np.exp(-1)),
    "laplace": (1.0, np.exp(-2)),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_two_points_by_hand(kernel):
    y, q = np.array([0, 0]), np.array([[0.75, 0.25], [0.25, 0.75]])
    a, b = GRAM[kernel]
    options = {"kernel": kernel} if kernel == "linear" else {"kernel": kernel, "bandwidth": 0.5}
    unbiased = ckce.jkce(y, q, estimator="unbiased", **options)
    assert unbiased == pytest.approx(b * 3 / 8, rel=1e-14, abs=0)
    biased = ckce.jkce(y, q, estimator="biased", **options)
    expected = (a / 8 + a * 9 / 8 + 2 * b * 3 / 8) / 4
    assert biased == pytest.approx(expected, rel=1e-14, abs=0)


@pytest.mark.parametrize("m", [2, 3, 10])
def test_marginal_model_with_balanced_labels(m):
    # sum r = 0, so the unbiased value is -k |r|^2 / (n - 1): never clipped.
    n = 30 * m
    y, q = np.arange(n) % m, np.full((n, m), 1 / m)
    expected = -(1 + 1 / m) * (1 - 1 / m) / (n - 1)
    assert ckce.jkce(y, q) == pytest.approx(expected, rel=1e-11, abs=0)
    assert ckce.jkce(y, q, estimator="biased") == pytest.approx(0.0, abs=1e-16)


@pytest.mark.parametrize("edge", [name for name in EDGES if name != "one row"])
@pytest.mark.parametrize("case", cases("jkce"), ids=str)
def test_edge_data_against_the_oracle(case, edge):
    y, q = EDGES[edge]
    case.check(y, q)
    case.check(y, q, label_kernel=label_kernel(q.shape[1], rank=2))


@pytest.mark.parametrize("case", cases("jkce"), ids=str)
@given(data=calibration_sets(), bandwidth=bandwidths)
def test_arbitrary_data_against_the_oracle(case, data, bandwidth):
    if len(data[0]) > 1 or case.extra["estimator"] == "biased":
        case.check(*data, bandwidth=bandwidth)


@pytest.mark.parametrize("case", cases("jkce"), ids=str)
def test_more_than_one_block_of_rows(case):
    y, q = sample(1050, 40)
    case.check(y, q)


@pytest.mark.parametrize("method", ["exact", "fourier"])
def test_one_row(method):
    y, q = EDGES["one row"]
    options = {"method": method}
    with pytest.raises(ValueError, match="must have at least 2 rows, got 1; otherwise pass est"):
        ckce.jkce(y, q, **options)
    with pytest.raises(ValueError, match=r"must sum to more than 1, got 0\.8"):
        ckce.jkce(*sample(2, 3), sample_weight=[0.4, 0.4], **options)
    with (
        pytest.warns(UserWarning, match="sample_weight has mean 0.05"),
        pytest.raises(ValueError, match="must sum to more than 1, got 1;"),
    ):
        ckce.jkce(*sample(20, 3), sample_weight=[0.05] * 20, **options)  # 1 + 2e-16
    r = np.eye(3)[y[0]] - q[0]
    expected = (1 + q[0] @ q[0]) * (r @ r)
    assert ckce.jkce(y, q, estimator="biased", **options) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_callable_kernel(estimator):
    y, q = sample(60, 3)

    def kernel(p, q):
        return reference.linear_gaussian(p, q, 0.7)

    for options in (
        {},
        {"sample_weight": np.arange(60) % 4},
        {"label_kernel": label_kernel(3)},
    ):
        called = ckce.jkce(y, q, kernel=kernel, estimator=estimator, **options)
        named = ckce.jkce(y, q, bandwidth=0.7, estimator=estimator, **options)
        agree(called, named, abs(named))


def test_unbiased_is_zero_on_average_under_calibration():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 40)
    values = []
    for _ in range(400):
        y = (q.cumsum(axis=1) < rng.random((40, 1))).sum(axis=1)
        values.append(ckce.jkce(y, q, bandwidth=0.7))
    assert abs(np.mean(values)) < 3.5 * np.std(values) / np.sqrt(400)
    assert min(values) < 0 < max(values)


def test_total_variation_kernel_is_laplace_at_twice_the_bandwidth():
    y, q = sample(50, 4)

    def total_variation(p, q):
        return np.exp(-np.abs(p[:, None] - q[None]).sum(axis=2) / 2 / 0.3)

    value = ckce.jkce(y, q, kernel="laplace", bandwidth=0.6)
    agree(ckce.jkce(y, q, kernel=total_variation), value, abs(value))
