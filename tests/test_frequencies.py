"""Frequencies: the stream is specified, and the law is the kernel's."""

import math

import numpy as np
import pytest
from rng import SplitMix64, normal_quantile
from scipy import stats

import ckce
from ckce import reference


def helmert(m):
    """Rows: an orthonormal basis of the plane orthogonal to (1, ..., 1)."""
    rows = [
        np.concatenate([np.ones(k), [-k], np.zeros(m - 1 - k)]) / math.sqrt(k * (k + 1))
        for k in range(1, m)
    ]
    return np.array(rows)


def coordinates(frequencies):
    """Coordinates in Helmert's basis: independent standard normals."""
    return frequencies @ helmert(frequencies.shape[1]).T


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 12345, 2**64 - 1])
@pytest.mark.parametrize("m", [2, 3, 10])
def test_gaussian_stream(m, seed):
    random = SplitMix64(seed)
    z = np.array([[normal_quantile(random.uniform()) for _ in range(m - 1)] for _ in range(40)])
    expected = z @ helmert(m) / 0.7
    drawn = ckce.fourier_frequencies(m, 40, bandwidth=0.7, sampler="gaussian", random_state=seed)
    assert np.abs(drawn - expected).max() < 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize("m", [2, 5])
def test_cauchy_stream(m):
    random = SplitMix64(3)
    expected = [[math.tan(math.pi * (random.uniform() - 0.5)) for _ in range(m)] for _ in range(40)]
    drawn = ckce.fourier_frequencies(m, 40, kernel="laplace", random_state=3, bandwidth=2.0)
    assert 2.0 * drawn == pytest.approx(np.array(expected), rel=1e-12)


def test_first_numbers_of_the_stream():
    # Published test vector of SplitMix64 with seed 1234567.
    random = SplitMix64(1234567)
    assert [random.bits() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_normal_quantiles_against_scipy():
    for u in (0.5, 0.1, 0.9, 0.075, 1e-3, 1e-8, 1e-12, 1 - 1e-9, 2.0**-54):
        assert normal_quantile(u) == pytest.approx(stats.norm.ppf(u), rel=1e-14, abs=1e-16)


def test_more_frequencies_continue_the_stream():
    for sampler in ("gaussian", "sobol"):
        few = ckce.fourier_frequencies(4, 5, sampler=sampler)
        assert np.array_equal(ckce.fourier_frequencies(4, 50, sampler=sampler)[:5], few)


@pytest.mark.parametrize("sampler", ["gaussian", "orthogonal", "sobol"])
@pytest.mark.parametrize("m", [2, 3, 7])
def test_gaussian_frequencies_are_centred(sampler, m):
    drawn = ckce.fourier_frequencies(m, 50, sampler=sampler, bandwidth=0.1)
    assert drawn.shape == (50, m)
    assert drawn.dtype == np.float64
    assert np.abs(drawn.sum(axis=1)).max() < 1e-13 * np.abs(drawn).max()


@pytest.mark.parametrize("sampler", ["gaussian", "orthogonal", "sobol"])
def test_seed_and_bandwidth(sampler):
    first, again, other = (
        ckce.fourier_frequencies(4, 20, sampler=sampler, random_state=seed) for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert np.abs(first - other).max() > 0.1
    scaled = ckce.fourier_frequencies(4, 20, sampler=sampler, bandwidth=0.25)
    assert np.array_equal(scaled, first / 0.25)
    gaussian = ckce.fourier_frequencies(4, 20, sampler=sampler, kernel="gaussian")
    assert np.array_equal(gaussian, first)


@pytest.mark.parametrize("m", [2, 3, 20, 60])
def test_sobol_points_are_stratified_in_each_dimension(m):
    for power in (3, 6, 9):
        count = 2**power
        u = stats.norm.cdf(coordinates(ckce.fourier_frequencies(m, count, sampler="sobol")))
        cells = np.sort(np.floor(u * count), axis=0)
        assert np.array_equal(cells, np.tile(np.arange(count)[:, None], m - 1))


def test_sobol_points_fill_the_first_square():
    # The first two dimensions are a (0, 2)-sequence: one point in every elementary rectangle.
    u = stats.norm.cdf(coordinates(ckce.fourier_frequencies(3, 64, sampler="sobol")))
    for rows in (0, 1, 2, 3, 4, 5, 6):
        cells = np.floor(u * [2**rows, 2 ** (6 - rows)])
        assert len(np.unique(cells, axis=0)) == 64


def test_sobol_dimensions_differ():
    u = coordinates(ckce.fourier_frequencies(101, 256, sampler="sobol"))
    correlation = np.corrcoef(u.T) - np.eye(100)
    assert np.abs(correlation).max() < 0.9


def test_sobol_for_laplace_is_stratified():
    w = ckce.fourier_frequencies(4, 64, sampler="sobol", kernel="laplace")
    cells = np.sort(np.floor(stats.cauchy.cdf(w) * 64), axis=0)
    assert np.array_equal(cells, np.tile(np.arange(64)[:, None], 4))


@pytest.mark.parametrize(("m", "count"), [(2, 5), (5, 4), (5, 11), (30, 29), (30, 10)])
def test_orthogonal_frequencies_are_orthogonal_in_groups(m, count):
    drawn = ckce.fourier_frequencies(m, count, sampler="orthogonal")
    for begin in range(0, count, m - 1):
        group = drawn[begin : begin + m - 1]
        gram = group @ group.T
        assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-13 * gram.max()


@pytest.mark.parametrize("sampler", ["gaussian", "orthogonal", "sobol"])
def test_marginal_law_is_normal(sampler):
    z = coordinates(ckce.fourier_frequencies(4, 20_001, sampler=sampler, random_state=2))
    for column in z.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
    lengths = np.sum(z**2, axis=1)
    assert stats.kstest(lengths, stats.chi2(3).cdf).pvalue > 1e-3


def test_marginal_law_is_cauchy():
    w = ckce.fourier_frequencies(3, 20_000, kernel="laplace", bandwidth=0.5)
    for column in w.T:
        assert stats.kstest(0.5 * column, "cauchy").pvalue > 1e-3


@pytest.mark.parametrize(
    ("kernel", "sampler"),
    [
        *(("gaussian", sampler) for sampler in ("gaussian", "orthogonal", "sobol")),
        ("laplace", "gaussian"),
        ("laplace", "sobol"),
    ],
)
def test_mean_cosine_is_the_kernel(kernel, sampler):
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), (2, 6))
    count = 100_000
    options = {"kernel": kernel, "sampler": sampler, "bandwidth": 0.6, "random_state": 1}
    w = ckce.fourier_frequencies(4, count, **options)
    cosines = np.cos((p - q) @ w.T)
    expected = np.diag(reference.KERNELS[kernel](p, q, 0.6))
    error = np.abs(cosines.mean(axis=1) - expected)
    assert np.all(error < 4.5 * cosines.std(axis=1) / math.sqrt(count))


@pytest.mark.parametrize(
    ("options", "error", "fragment"),
    [
        ({"n_classes": 1}, ValueError, "n_classes must be at least 2, got 1"),
        ({"n_classes": 2.0}, TypeError, "n_classes must be an integer"),
        ({"n_frequencies": 0}, ValueError, "n_frequencies must be at least 1, got 0"),
        ({"n_frequencies": True}, TypeError, "n_frequencies must be an integer"),
        ({"bandwidth": 0.0}, ValueError, "bandwidth must be positive and finite, got 0.0"),
        ({"kernel": "linear"}, ValueError, "kernel='linear' has no Fourier features"),
        ({"kernel": "rbf"}, ValueError, "kernel must be one of"),
        ({"sampler": "halton"}, ValueError, "sampler must be one of"),
        ({"kernel": "laplace", "sampler": "orthogonal"}, ValueError, "needs a Gaussian kernel"),
        ({"random_state": -1}, ValueError, "random_state must be in"),
        ({"random_state": None}, TypeError, "random_state must be an integer"),
    ],
)
def test_bad_input(options, error, fragment):
    with pytest.raises(error) as caught:
        ckce.fourier_frequencies(**{"n_classes": 3, **options})
    assert fragment in str(caught.value)
