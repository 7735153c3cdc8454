"""method="fourier": random Fourier features."""

import dataclasses

import numpy as np
import pytest
from shared import FOURIER_KERNELS, agree, feature_kernel, label_kernel, sample

import ckce
from ckce import reference
from ckce._input.kernels import KERNELS


@pytest.mark.parametrize("kernel", FOURIER_KERNELS)
@pytest.mark.parametrize(
    ("n", "m", "count"), [(200, 3, 9), (20, 3, 30), (150, 40, 7), (64, 40, 50)]
)
def test_primal_dual_and_scattered_labels(kernel, n, m, count):
    # n < d takes the dual; from 32 classes on Phi'Q is a sub-block of Phi'Phi.
    y, q = sample(n, m)
    linear_part = KERNELS[kernel].linear_part
    frequencies = np.random.default_rng(1).normal(size=(count, m)) * 2
    stands_for = feature_kernel(frequencies, linear_part)
    weights = np.random.default_rng(2).uniform(0.3, 3, n)
    for options in (
        {},
        {"sample_weight": weights},
        {"label_kernel": label_kernel(m)},
        {"sample_weight": weights, "label_kernel": label_kernel(m, rank=2)},
    ):
        method = ckce.Fourier(frequencies=frequencies)
        e = ckce.estimate(y, q, method=method, kernel=kernel, **options)
        expected = reference.ckce_fourier(
            y, q, frequencies=frequencies, linear_part=linear_part, **options
        )
        options = {**options, "kernel": stands_for, "bandwidth": 1.0}
        scale = reference.debias_term(y, q, **options)
        agree(e.value, expected, scale)
        agree(e.debiased, expected - scale, scale)
        agree(e.floor, reference.floor(y, q, **options), scale)
        assert e.se == pytest.approx(reference.standard_error(y, q, **options), rel=1e-8)
        assert e.bound is None


@pytest.mark.parametrize("bandwidth", [3.0, 0.3, 0.05])
@pytest.mark.parametrize("count", [3, 40, 100])
@pytest.mark.parametrize("linear_part", [True, False])
def test_two_classes_in_chebyshev_polynomials(bandwidth, count, linear_part):
    # Rows that miss the simplex still see only q_2 - q_1, for the frequencies are centred.
    y, q = sample(400, 2)
    q = q * (1 + 9e-6 * np.cos(np.arange(400)))[:, None]
    kernel = "linear_gaussian" if linear_part else "gaussian"
    frequencies = ckce.fourier_frequencies(2, count, bandwidth=bandwidth)
    options = {"sample_weight": np.random.default_rng(2).uniform(0.3, 3, 400)}
    method = ckce.Fourier(frequencies=frequencies)
    e = ckce.estimate(y, q, method=method, kernel=kernel, **options)
    expected = reference.ckce_fourier(
        y, q, frequencies=frequencies, linear_part=linear_part, **options
    )
    options |= {"kernel": feature_kernel(frequencies, linear_part), "bandwidth": 1.0}
    scale = reference.debias_term(y, q, **options)
    assert e.value == pytest.approx(expected, rel=1e-13, abs=1e-14 * scale)
    assert e.debiased == pytest.approx(expected - scale, rel=1e-12, abs=1e-13 * scale)
    assert e.se == pytest.approx(reference.standard_error(y, q, **options), rel=1e-10)


def test_two_classes_with_and_without_chebyshev_polynomials():
    # A frequency that is not centred, by its last bit, takes the way of all other m.
    y, q = sample(3000, 2)
    frequencies = ckce.fourier_frequencies(2, 100, bandwidth=0.2)
    nearly = frequencies.copy()
    nearly[0, 0] = np.nextafter(nearly[0, 0], np.inf)
    values = [ckce.ckce(y, q, method=ckce.Fourier(frequencies=f)) for f in (frequencies, nearly)]
    assert values[0] == pytest.approx(values[1], rel=1e-13, abs=0)


@pytest.mark.parametrize("kernel", FOURIER_KERNELS)
@pytest.mark.parametrize("sampler", ["gaussian", "orthogonal", "sobol"])
def test_drawn_frequencies_equal_given_ones(kernel, sampler):
    if kernel == "laplace" and sampler == "orthogonal":
        return  # refused: test_validate
    y, q = sample(80, 4)
    options = {"kernel": kernel, "random_state": 3, "bandwidth": 0.6}
    drawn = ckce.ckce(y, q, method=ckce.Fourier(11, sampler=sampler), **options)
    frequencies = ckce.fourier_frequencies(4, 11, sampler=sampler, **options)
    given = ckce.ckce(y, q, method=ckce.Fourier(frequencies=frequencies), kernel=kernel)
    assert drawn == given


def test_default_bandwidth_is_the_median():
    y, q = sample(80, 4)
    for kernel in FOURIER_KERNELS:
        bandwidth = ckce.median_bandwidth(q, kernel=kernel)
        value = ckce.ckce(y, q, method="fourier", kernel=kernel)
        assert value == ckce.ckce(y, q, method="fourier", kernel=kernel, bandwidth=bandwidth)


def test_frequencies_are_used_as_given():
    # Not centred: rows that miss the simplex see the part of w along (1, ..., 1).
    y, q = sample(80, 4)
    off = q * (1 + 9e-6 * np.cos(np.arange(80)))[:, None]
    frequencies = 50 + np.random.default_rng(1).normal(size=(5, 4))
    value = ckce.ckce(y, off, method=ckce.Fourier(frequencies=frequencies))
    centred = frequencies - frequencies.mean(axis=1, keepdims=True)
    expected = reference.ckce_fourier(y, off, frequencies=frequencies)
    assert value == pytest.approx(expected, rel=1e-10, abs=0)
    other = ckce.ckce(y, off, method=ckce.Fourier(frequencies=centred))
    assert abs(value - other) > 1e-9 * value


@pytest.mark.parametrize("labels", [None, np.diag([1.0, 2.0, 0.5])])
@pytest.mark.parametrize("count", [8, 27])
def test_the_error_is_a_jackknife_over_frequencies(count, labels):
    y, q = sample(400, 3)
    frequencies = ckce.fourier_frequencies(3, count, bandwidth=0.5)

    def value(chosen):
        method = ckce.Fourier(frequencies=chosen)
        return ckce.estimate(y, q, method=method, label_kernel=labels)

    groups = [np.arange(group, count, 8) for group in range(8)]
    values = np.array([value(np.delete(frequencies, group, axis=0)).value for group in groups])
    e = value(frequencies)
    bias = 7 * (values.mean() - e.value)
    expected = np.sqrt(bias**2 + 7 / 8 * ((values - values.mean()) ** 2).sum())
    assert e.error == pytest.approx(expected, rel=1e-6)
    assert f"off by about {e.error:.1e}" in repr(e)


def test_the_error_is_of_the_right_size():
    ratios = []
    for seed in range(24):
        y, q = sample(300, 4, seed=seed)
        e = ckce.estimate(y, q, method=ckce.Fourier(40), bandwidth=0.3, random_state=seed)
        exact = ckce.ckce(y, q, method="exact", bandwidth=0.3)
        ratios.append((e.value - exact) / e.error)
    assert 0.5 < np.sqrt(np.mean(np.square(ratios))) < 2.0
    assert np.max(np.abs(ratios)) < 5.0


def test_no_error_where_none_is_known():
    assert ckce.estimate(*sample(400, 3), method=ckce.Fourier(7)).error is None  # too few groups
    assert ckce.estimate(*sample(400, 2), method="fourier").error is None  # they are mixed
    assert ckce.estimate(*sample(400, 3), method="exact").error is None


@pytest.mark.parametrize("kernel", FOURIER_KERNELS)
def test_many_frequencies_approach_the_exact_kernel(kernel):
    y, q = sample(150, 4)
    exact = ckce.ckce(y, q, method="exact", kernel=kernel, bandwidth=0.6)
    options = {"method": ckce.Fourier(1000), "kernel": kernel, "bandwidth": 0.6}
    draws = [ckce.ckce(y, q, random_state=seed, **options) for seed in range(12)]
    spread = np.std(draws, ddof=1)
    assert spread < 0.05 * exact
    assert abs(np.mean(draws) - exact) < 4 * spread / np.sqrt(12) + 5e-3 * exact


def test_sobol_beats_independent_draws_for_two_classes():
    y, q = sample(300, 2)
    exact = ckce.ckce(y, q, method="exact", bandwidth=0.3)

    def error(sampler):
        options = {"method": ckce.Fourier(sampler=sampler), "bandwidth": 0.3}
        values = [ckce.ckce(y, q, random_state=seed, **options) for seed in range(10)]
        return np.sqrt(np.mean((np.array(values) - exact) ** 2))

    assert error("sobol") < 0.5 * error("gaussian")


@pytest.mark.parametrize("size", [1e2, 1e5, 1e8, 1e12, 1e16, 1e300])
def test_large_frequencies(size):
    # Cauchy draws over a small bandwidth are large: sine and cosine must still be reduced exactly.
    # Powers of two and rows of 1/4, so that w'q is the same number however it is summed.
    rng = np.random.default_rng(0)
    q = rng.permuted(np.tile([0.5, 0.25, 0.25, 0.0], (40, 1)), axis=1)
    y = rng.integers(0, 4, 40)
    frequencies = 2.0 ** np.floor(np.log2(size)) * rng.integers(-4, 5, (4, 4))
    value = ckce.ckce(y, q, method=ckce.Fourier(frequencies=frequencies))
    expected = reference.ckce_fourier(y, q, frequencies=frequencies)
    assert value == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("kernel", FOURIER_KERNELS)
@pytest.mark.parametrize("m", [2, 10, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_mixed_precision_is_close_and_not_the_same(kernel, m, weighted):
    y, q = sample(3000, m, seed=m)
    weights = np.random.default_rng(0).integers(1, 4, 3000) if weighted else None
    options = {"kernel": kernel, "sample_weight": weights, "bandwidth": 0.5}
    method = ckce.Fourier(30)
    if kernel == "laplace":
        drawn = ckce.fourier_frequencies(m, 30, bandwidth=2.0, kernel="laplace")
        method = ckce.Fourier(frequencies=np.clip(drawn, -20, 20))
        del options["bandwidth"]
    value = ckce.ckce(y, q, method=method, **options)
    options["method"] = dataclasses.replace(method, precision="mixed")
    mixed = {ckce.ckce(y, q, n_threads=n, **options) for n in (1, 2, 3, 8)}
    assert len(mixed) == 1
    (close,) = mixed
    assert close != value
    assert close == pytest.approx(value, rel=1e-5, abs=0)
    single = ckce.ckce(y, q.astype(np.float32), **options)
    assert single == pytest.approx(value, rel=1e-5, abs=0)


def test_mixed_precision_refuses_what_float32_cannot_hold():
    y, q = sample(50, 3)
    large = ckce.Fourier(frequencies=np.full((2, 3), 2e3), precision="mixed")
    with pytest.raises(ValueError, match="needs frequencies of at most 1000, got 2e\\+03"):
        ckce.ckce(y, q, method=large)
    for function in (ckce.jkce, ckce.jkce_estimate, ckce.calibration_test):
        with pytest.raises(ValueError, match="precision='mixed' is for ckce, got it for"):
            function(y, q, method=ckce.Fourier(precision="mixed"))
    with pytest.raises(ValueError, match="precision='mixed' is for ckce, got it for a stream"):
        ckce.CKCEAccumulator(3, method=ckce.Fourier(precision="mixed"), bandwidth=0.5)
