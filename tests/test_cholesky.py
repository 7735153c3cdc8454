"""method="cholesky": the incomplete factor, its stopping rules and its certificate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared import EDGES, agree, bandwidths, calibration_sets, label_kernel, sample

import ckce
from ckce import reference
from ckce._input.kernels import KERNELS


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rank", [1, 2, 5, 17, 40])
def test_same_rank_as_the_oracle(kernel, rank):
    y, q = sample(140, 5)
    options = {} if kernel == "linear" else {"bandwidth": 0.3}
    estimate = ckce.estimate(y, q, method=ckce.Cholesky(rank), kernel=kernel, **options)
    options["bandwidth"] = 0.3
    _, pivots = reference.pivoted_cholesky(reference.gram(kernel, q, q, 0.3), rank)
    assert estimate.rank == len(pivots)
    expected = reference.ckce_cholesky(y, q, kernel=kernel, rank=rank, **options)
    agree(estimate.value, expected, reference.debias_term(y, q, kernel=kernel, **options))


def test_debias_floor_and_error_of_the_factor():
    y, q = sample(140, 5)
    factor, _ = reference.pivoted_cholesky(reference.gram("linear_gaussian", q, q, 0.3), 9)
    options = {"kernel": lambda p, q: factor @ factor.T, "bandwidth": 1.0}
    for more in (
        {},
        {"label_kernel": label_kernel(5)},
        {"sample_weight": np.random.default_rng(1).uniform(0.3, 3, 140)},
    ):
        e = ckce.estimate(y, q, method=ckce.Cholesky(rank=9), bandwidth=0.3, **more)
        scale = reference.debias_term(y, q, **options, **more)
        agree(e.value - e.debiased, scale, scale)
        agree(e.floor, reference.floor(y, q, **options, **more), scale)
        assert e.se == pytest.approx(reference.standard_error(y, q, **options, **more), rel=1e-8)


@pytest.mark.parametrize("kernel", ["gaussian", "linear_gaussian", "laplace"])
@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4])
def test_tolerance_stops_where_the_oracle_stops(kernel, tol):
    y, q = sample(140, 4)
    e = ckce.estimate(y, q, method=ckce.Cholesky(tol=tol), kernel=kernel, bandwidth=0.5)
    _, pivots = reference.pivoted_cholesky(reference.gram(kernel, q, q, 0.5), tol=tol)
    assert e.rank == len(pivots)
    expected = reference.ckce_cholesky(y, q, kernel=kernel, tol=tol, bandwidth=0.5)
    agree(e.value, expected, reference.debias_term(y, q, kernel=kernel, bandwidth=0.5))


def test_rank_and_tolerance_together():
    y, q = sample(140, 4)

    def estimate(rank=None):
        return ckce.estimate(y, q, method=ckce.Cholesky(rank, tol=1e-2), bandwidth=0.5)

    by_tol = estimate()
    assert estimate(by_tol.rank + 5).value == by_tol.value
    by_rank = estimate(by_tol.rank - 1)
    assert by_rank.rank == by_tol.rank - 1


@pytest.mark.parametrize("pivoting", ["greedy", "random"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_default_is_accurate(kernel, pivoting):
    y, q = sample(300, 4)
    options = {"kernel": kernel, "random_state": 5}
    exact = ckce.ckce(y, q, method="exact", **options)
    e = ckce.estimate(y, q, method=ckce.Cholesky(pivoting=pivoting), **options)
    assert e.value == pytest.approx(exact, rel=1e-8, abs=0)
    if kernel == "linear":
        assert e.rank == 4


def test_two_classes_need_little():
    y, q = sample(1500, 2)
    e = ckce.estimate(y, q, method="cholesky")
    assert e.rank <= 20
    assert e.value == pytest.approx(ckce.ckce(y, q, method="exact"), rel=1e-9, abs=0)


@pytest.mark.parametrize("pivoting", ["greedy", "random"])
@pytest.mark.parametrize("kernel", KERNELS)
@given(
    data=calibration_sets(),
    bandwidth=bandwidths,
    rank=st.integers(1, 12),
    lam=st.sampled_from([None, 1e-3, 1.0]),
)
def test_certificate(kernel, pivoting, data, bandwidth, rank, lam):
    options = {"kernel": kernel, "regularization": lam}
    if kernel != "linear":
        options["bandwidth"] = bandwidth
    exact = ckce.estimate(*data, method="exact", **options)
    e = ckce.estimate(*data, method=ckce.Cholesky(rank, pivoting=pivoting), **options)
    assert e.rank <= rank
    assert abs(e.value - exact.value) <= e.bound + exact.bound


def test_certificate_of_rows_that_nearly_repeat():
    """A row that pivots explain to 4e-13 is no candidate, but it is not explained."""
    q = np.full((8, 2), 0.5)
    q[0], q[7] = [1.0, 0.0], [1.0, 1e-12]
    y = np.array([1, 0, 0, 0, 0, 0, 0, 0])
    options = {"kernel": "laplace", "bandwidth": 5.0}
    exact = ckce.estimate(y, q, method="exact", **options)
    for seed in range(20):
        method = ckce.Cholesky(rank=3, pivoting="random")
        e = ckce.estimate(y, q, method=method, random_state=seed, **options)
        assert abs(e.value - exact.value) <= e.bound + exact.bound


@pytest.mark.parametrize("m", [3, 50])
def test_certificate_at_larger_n(m):
    y, q = sample(1000, m, concentration=0.2)
    weights = np.random.default_rng(1).uniform(0.1, 4, 1000)
    for options in ({}, {"sample_weight": weights}, {"label_kernel": label_kernel(m)}):
        exact = ckce.ckce(y, q, method="exact", **options)
        for pivoting in ("greedy", "random"):
            for rank in (2, 20, 100):
                method = ckce.Cholesky(rank, pivoting=pivoting)
                e = ckce.estimate(y, q, method=method, **options)
                assert abs(e.value - exact) <= e.bound


def test_certificate_shrinks_with_the_rank():
    y, q = sample(500, 4)
    bounds = [ckce.estimate(y, q, method=ckce.Cholesky(rank)).bound for rank in (5, 20, 80)]
    assert bounds[0] > 10 * bounds[1] > 100 * bounds[2]


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("pivoting", ["greedy", "random"])
def test_edge_data_at_full_rank(edge, pivoting):
    y, q = EDGES[edge]
    method = ckce.Cholesky(tol=1e-15, pivoting=pivoting)
    value = ckce.ckce(y, q, method=method, bandwidth=0.7)
    scale = reference.debias_term(y, q, bandwidth=0.7)
    assert abs(value - reference.ckce(y, q, bandwidth=0.7)) <= 1e-9 * scale


def test_random_pivots_follow_the_seed():
    y, q = sample(500, 6)
    drawn = {"method": ckce.Cholesky(rank=8, pivoting="random"), "bandwidth": 0.5}
    assert len({ckce.ckce(y, q, random_state=s, **drawn) for s in (0, 0, 1, 2, 3)}) == 4
    searched = {"method": ckce.Cholesky(rank=8), "bandwidth": 0.5}
    greedy = {ckce.ckce(y, q, random_state=seed, **searched) for seed in (0, 1)}
    assert len(greedy) == 1


def test_duplicates_are_never_pivots_twice():
    y, q = EDGES["hard"]
    for pivoting in ("greedy", "random"):
        method = ckce.Cholesky(tol=1e-15, pivoting=pivoting)
        e = ckce.estimate(y, q, method=method, bandwidth=0.7)
        assert e.rank == 4  # as many as there are distinct rows


@pytest.mark.parametrize("seed", range(6))
def test_random_pivots_down_to_round_off(seed):
    # Confident predictions: K falls off fast, and a block of pivots is nearly dependent.
    rng = np.random.default_rng(0)
    logits = 4 * rng.normal(size=(1500, 4))
    q = np.exp(logits - logits.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    y = rng.integers(0, 4, 1500)
    exact = ckce.ckce(y, q, method="exact", bandwidth=1.0)
    for tol in (1e-10, 1e-15):
        method = ckce.Cholesky(rank=800, tol=tol, pivoting="random")
        e = ckce.estimate(y, q, method=method, bandwidth=1.0, random_state=seed)
        assert e.value == pytest.approx(exact, rel=1e-8, abs=0)
        assert abs(e.value - exact) <= e.bound + 1e-12 * exact


@pytest.mark.parametrize("m", [2, 5])
def test_many_rows_look_for_pivots_in_a_sample_first(m):
    # The last rows lie where no row of the sample does: greedy pivots among all rows find them.
    y, q = sample(17_000, m, concentration=5.0)
    q[-3:] = np.eye(m)[[0, 1, 0]]
    options = {"bandwidth": 0.3}
    exact = ckce.ckce(y, q, method="exact", **options)
    e = ckce.estimate(y, q, method=ckce.Cholesky(tol=1e-10 if m == 2 else 1e-6), **options)
    assert abs(e.value - exact) <= e.bound
    assert e.value == pytest.approx(exact, rel=1e-9 if m == 2 else 1e-5, abs=0)
    for rank in (1, 7, 150):
        low = ckce.estimate(y, q, method=ckce.Cholesky(rank), **options)
        assert low.rank <= rank
        assert abs(low.value - exact) <= low.bound
