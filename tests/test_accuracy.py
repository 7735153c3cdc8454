"""Rounding errors: random problems against 64-bit significands, those against 50 digits."""

import mpmath
import numpy as np
import pytest
from shared import label_kernel, sample

import ckce
from ckce import _core
from ckce._input.kernels import KERNELS

LONG = np.longdouble
EPS = np.finfo(np.float64).eps
needs_long_double = pytest.mark.skipif(
    np.finfo(LONG).eps > 1e-18, reason="long double has no more digits than double here"
)
N_PROBLEMS = 60  # of each kernel, or kind of features: 360 in all


class Truth:
    """CKCE and its debias term in extended precision.

    From the Gram matrix, or from features where they are few: in the dual, equal rows leave a
    singular K, on which even extended precision loses 1 / lambda^2.
    """

    def __init__(self, y, q, lam, *, gram=None, phi=None, weights=None, ell=None):
        n, m = q.shape
        w = np.ones(n, LONG) if weights is None else weights.astype(LONG)
        ridge = LONG(lam) * w.sum()
        r = np.eye(m, dtype=LONG)[y] - q.astype(LONG)
        general = np.eye(m, dtype=LONG) if ell is None else ell.astype(LONG)
        norms = np.sum((r @ general) * r, axis=1)
        if phi is not None:
            inverse = invert(phi.T @ (w[:, None] * phi) + ridge * np.eye(phi.shape[1], dtype=LONG))
            x = inverse @ (phi.T @ (w[:, None] * r))
            self.value = np.sum((x @ general) * x)
            self.debias = (w * norms) @ np.sum((phi @ inverse) ** 2, axis=1)
        else:
            inverse = invert(gram + ridge * np.diag(1 / w))
            v = inverse @ r
            self.value = np.sum((v @ general) * (gram @ v))
            self.debias = np.diag(inverse @ gram @ inverse) / w @ norms

    def check(self, value, lam):
        error = abs(LONG(value) - self.value)
        bound = 32 * EPS * (1 + 2 / lam) * (abs(self.value) + self.debias)
        assert error <= bound, f"{value!r} is {float(error / bound):.3g} bounds off"


def cholesky(a):
    a = a.copy()
    for j in range(len(a)):
        a[j:, j] -= a[j:, :j] @ a[j, :j]
        a[j:, j] /= np.sqrt(a[j, j])
    return np.tril(a)


def substitute(lower, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return x


def invert(a):
    root = substitute(cholesky(a), np.eye(len(a), dtype=LONG))
    return root.T @ root


def long_gram(kernel, q, bandwidth):
    q = q.astype(LONG)
    distances = np.abs(q[:, None] - q[None])
    gamma = LONG(bandwidth)
    linear = q @ q.T
    if kernel == "laplace":
        return np.exp(-distances.sum(axis=2) / gamma)
    gaussian = np.exp(-(distances**2).sum(axis=2) / (2 * gamma**2))
    return gaussian + linear if kernel == "linear_gaussian" else gaussian


def long_features(kernel, q, frequencies):
    q, frequencies = q.astype(LONG), frequencies.astype(LONG)
    angles = q @ frequencies.T
    waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    waves /= np.sqrt(LONG(len(frequencies)))
    return np.concatenate([q, waves], axis=1) if KERNELS[kernel].linear_part else waves


def problem(seed, repeat=False):
    """A random problem: sizes, sharpness, bandwidth, lambda, weights, label kernel."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 60)), int(rng.integers(2, 9))
    y, q = sample(n, m, seed=seed, concentration=10 ** rng.uniform(-1.5, 2))
    if repeat:
        q = q[rng.integers(0, rng.integers(1, 6), n) % n]
    if repeat and seed % 2:
        q = np.eye(m)[q.argmax(axis=1)]
    bandwidth, lam = float(10 ** rng.uniform(-1.3, 0.7)), float(10 ** rng.uniform(-7.9, 1))
    weights = rng.uniform(0.2, 3, n) if seed % 3 == 0 else None
    ell = label_kernel(m, seed) if seed % 5 == 0 else None
    options = {"regularization": lam, "sample_weight": weights, "label_kernel": ell}
    return y, q, bandwidth, options


def truth_of(y, q, options, **matrix):
    weights, ell = options["sample_weight"], options["label_kernel"]
    return Truth(y, q, options["regularization"], weights=weights, ell=ell, **matrix)


@needs_long_double
@pytest.mark.parametrize("kernel", KERNELS)
def test_exact(kernel):
    for seed in range(N_PROBLEMS):
        y, q, bandwidth, options = problem(1000 * list(KERNELS).index(kernel) + seed)
        if kernel == "linear":
            truth = truth_of(y, q, options, phi=q.astype(LONG))
        else:
            truth = truth_of(y, q, options, gram=long_gram(kernel, q, bandwidth))
            options["bandwidth"] = bandwidth
        value = ckce.ckce(y, q, method="exact", kernel=kernel, **options)
        truth.check(value, options["regularization"])


@needs_long_double
@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - {"linear"}))
def test_repeated_rows(kernel):
    """K is singular, so V is of order 1 / lambda and the value is not: only `bound` knows."""
    for seed in range(N_PROBLEMS):
        y, q, bandwidth, options = problem(1000 * list(KERNELS).index(kernel) + seed, repeat=True)
        truth = truth_of(y, q, options, gram=long_gram(kernel, q, bandwidth))
        e = ckce.estimate(y, q, method="exact", kernel=kernel, bandwidth=bandwidth, **options)
        assert abs(LONG(e.value) - truth.value) <= e.bound
        if options["regularization"] > 1e-3:
            truth.check(e.value, options["regularization"])


@needs_long_double
@pytest.mark.parametrize("n_frequencies", [3, 100])  # fewer features than rows, and more
def test_primal(n_frequencies):
    kernels = [name for name, kernel in KERNELS.items() if kernel.spectrum is not None]
    for seed in range(N_PROBLEMS):
        kernel = kernels[seed % len(kernels)]
        y, q, bandwidth, options = problem(seed + 7 * n_frequencies)
        frequencies = ckce.fourier_frequencies(
            q.shape[1], n_frequencies, bandwidth=bandwidth, kernel=kernel
        )
        truth = truth_of(y, q, options, phi=long_features(kernel, q, frequencies))
        method = ckce.Fourier(frequencies=frequencies)
        value = ckce.ckce(y, q, method=method, kernel=kernel, **options)
        truth.check(value, options["regularization"])


@needs_long_double
def test_the_iteration_keeps_its_bound():
    for seed in range(28):
        n, m, tol = 150, 2 + seed % 5, 10.0 ** -(4 + seed % 7)
        y, q = sample(n, m, seed=seed, concentration=10.0 ** (seed % 4 - 2))
        lam = 10.0 ** (-3 + seed % 4)
        truth = Truth(y, q, lam, gram=long_gram("linear_gaussian", q, 0.4))
        solution = _core.ckce_exact(
            *(q, y, None, None),
            kernel=_core.Kernel("linear_gaussian", 0.4),
            ridge=lam * n,
            tol=tol,
            solver=_core.Solver.iterate,
            full=True,
            n_threads=1,
            progress=None,
        )
        assert abs(LONG(solution.value) - truth.value) <= solution.bound
        # |V|, which K V rounds with, may be as large as |R| / ridge: 1 / lambda^2.
        round_off = 64 * EPS * ((1 + 2 / lam) * truth.debias + 1 / lam**2)
        assert solution.bound <= tol * solution.value + round_off


@needs_long_double
def test_the_truth_is_true():
    """Extended precision against 50 digits, on problems of every condition."""
    mp = mpmath.mp.clone()
    mp.dps = 50
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, m, lam = 6, 3, float(10 ** rng.uniform(-7.9, 1))
        y, q = sample(n, m, seed=seed)
        k = mp.matrix(n, n)
        for i in range(n):
            for j in range(n):
                squares = [(mp.mpf(a) - mp.mpf(b)) ** 2 for a, b in zip(q[i], q[j], strict=True)]
                dots = [mp.mpf(a) * mp.mpf(b) for a, b in zip(q[i], q[j], strict=True)]
                k[i, j] = mp.exp(-mp.fsum(squares) / (2 * mp.mpf(0.5) ** 2)) + mp.fsum(dots)
        r = mp.matrix([[(c == y[i]) - mp.mpf(q[i, c]) for c in range(m)] for i in range(n)])
        v = mp.inverse(k + mp.mpf(lam) * n * mp.eye(n)) * r
        product = v.T * k * v
        value = mp.fsum(product[c, c] for c in range(m))
        truth = Truth(y, q, lam, gram=long_gram("linear_gaussian", q, 0.5))
        error = abs(mp.mpf(str(truth.value)) - value)
        assert error <= 1e-3 * 32 * EPS * (1 + 2 / lam) * float(truth.value + truth.debias)


@pytest.mark.parametrize("method", ["exact", "fourier", "cholesky"])
def test_nothing_is_added_to_the_diagonal(method):
    """At a tiny lambda a jitter of 1e-10 would show in the third digit."""
    y, q = sample(24, 3, seed=3)  # a smooth kernel: some eigenvalues of K are near lambda n
    options = {"method": method, "bandwidth": 0.5}
    matrix = {"gram": long_gram("linear_gaussian", q, 0.5)}
    if method == "fourier":
        frequencies = ckce.fourier_frequencies(3, 40, bandwidth=0.5)
        options = {"method": ckce.Fourier(frequencies=frequencies)}
        matrix = {"phi": long_features("linear_gaussian", q, frequencies)}
    lam = 1.0001e-8
    truth = Truth(y, q, lam, **matrix)
    value = ckce.ckce(y, q, regularization=lam, **options)
    assert value == pytest.approx(float(truth.value), rel=1e-5)
