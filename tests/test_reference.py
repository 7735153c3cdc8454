"""The oracle itself, against double loops, high precision, closed forms and invariances."""

import math

import mpmath
import numpy as np
import pytest

from ckce import reference

BANDWIDTH = 0.7
KERNEL_NAMES = sorted(reference.KERNELS)
DUAL = [reference.ckce, reference.debias_term, reference.floor, reference.standard_error]


def sample(n=12, m=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, m, n), rng.dirichlet(np.ones(m), n)


def label_kernel(m=3, seed=1):
    root = np.random.default_rng(seed).normal(size=(m, m))
    return root @ root.T


def close(value, rel=1e-12):
    return pytest.approx(value, rel=rel, abs=0)


def scalar_kernel(name, p, q):
    squared = mpmath.fsum((a - b) ** 2 for a, b in zip(p, q, strict=True))
    inner = mpmath.fsum(a * b for a, b in zip(p, q, strict=True))
    absolute = mpmath.fsum(abs(a - b) for a, b in zip(p, q, strict=True))
    bandwidth = mpmath.mpf(BANDWIDTH)
    return {
        "linear": inner,
        "gaussian": mpmath.exp(-squared / (2 * bandwidth**2)),
        "linear_gaussian": inner + mpmath.exp(-squared / (2 * bandwidth**2)),
        "laplace": mpmath.exp(-absolute / bandwidth),
    }[name]


def by_definition(y, q, name, ell):
    """Every number from scalar sums at 40 digits: h[i][j] = (r_i' L r_j) and A = W K W."""
    n, m = q.shape
    q = [[mpmath.mpf(float(x)) for x in row] for row in q]
    r = [[(1 if j == y[i] else 0) - q[i][j] for j in range(m)] for i in range(n)]
    k = mpmath.matrix(n, n)
    h = mpmath.matrix(n, n)
    for i in range(n):
        for j in range(n):
            k[i, j] = scalar_kernel(name, q[i], q[j])
            for a in range(m):
                for b in range(m):
                    h[i, j] += r[i][a] * mpmath.mpf(float(ell[a, b])) * r[j][b]
    c = mpmath.mpf(n) ** mpmath.mpf("0.75")
    w = (k + c * mpmath.eye(n)) ** -1
    a = w * k * w
    variance = [
        mpmath.fsum(q[i][j] * mpmath.mpf(float(ell[j, j])) for j in range(m))
        - mpmath.fsum(
            q[i][a] * mpmath.mpf(float(ell[a, b])) * q[i][b] for a in range(m) for b in range(m)
        )
        for i in range(n)
    ]
    pairs = [(i, j) for i in range(n) for j in range(n)]
    return {
        "ckce": mpmath.fsum(a[i, j] * h[i, j] for i, j in pairs),
        "debias_term": mpmath.fsum(a[i, i] * h[i, i] for i in range(n)),
        "floor": mpmath.fsum(a[i, i] * variance[i] for i in range(n)),
        "biased": mpmath.fsum(k[i, j] * h[i, j] for i, j in pairs) / n**2,
        "unbiased": mpmath.fsum(k[i, j] * h[i, j] for i, j in pairs if i != j) / (n * (n - 1)),
    }


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_definition_in_high_precision(name, general):
    y, q = sample(n=9)
    ell = label_kernel() if general else np.eye(3)
    with mpmath.workdps(40):
        expected = {key: float(x) for key, x in by_definition(y, q, name, ell).items()}
    options = {"kernel": name, "bandwidth": BANDWIDTH, "label_kernel": ell if general else None}
    assert reference.ckce(y, q, **options) == close(expected["ckce"])
    assert reference.debias_term(y, q, **options) == close(expected["debias_term"])
    assert reference.floor(y, q, **options) == close(expected["floor"])
    for estimator in ("biased", "unbiased"):
        value = reference.jkce(y, q, estimator=estimator, **options)
        assert value == close(expected[estimator])


@pytest.mark.parametrize("m", [2, 3, 10])
def test_constant_predictor(m):
    n = 8
    y = np.arange(n) % (m - 1)
    k, c = 1 + 1 / m, n**0.75
    total = np.bincount(y, minlength=m) - n / m
    expected = k * total @ total / (n * k + c) ** 2
    value = reference.ckce(y, np.full((n, m), 1 / m), bandwidth=BANDWIDTH)
    assert value == close(expected)


@pytest.mark.parametrize("m", [2, 3, 10])
def test_one_sample(m):
    k, norm = 1 + 1 / m, 1 - 1 / m
    y, q = np.array([1]), np.full((1, m), 1 / m)
    expected = k * norm / (k + 1) ** 2
    for function in (reference.ckce, reference.debias_term, reference.floor):
        assert function(y, q, bandwidth=BANDWIDTH) == close(expected)


def test_two_samples_by_hand():
    # q = e_0, e_1, both labels 0: R = [[0, 0], [1, -1]], K = I for the linear kernel.
    y, q = np.array([0, 0]), np.eye(2)
    options = {"kernel": "linear", "bandwidth": 1.0}
    assert reference.ckce(y, q, **options) == close(2 / (1 + 2**0.75) ** 2)
    assert reference.ckce(y, q, regularization=0.5, **options) == close(0.5)
    assert reference.jkce(y, q, estimator="biased", **options) == close(0.5)
    assert reference.jkce(y, q, estimator="unbiased", **options) == 0.0


def test_floor_is_the_mean_over_labels_drawn_from_the_predictions():
    _, q = sample(n=4)
    mean = 0.0
    for flat in range(3**4):
        y = np.array([flat // 3**i % 3 for i in range(4)])
        mean += np.prod(q[np.arange(4), y]) * reference.ckce(y, q, bandwidth=BANDWIDTH)
    assert reference.floor(np.zeros(4, int), q, bandwidth=BANDWIDTH) == close(mean)


def test_standard_error_equals_its_primal_form():
    y, q = sample(n=40)
    n, lam = len(y), len(y) ** -0.25
    phi, r = q, np.eye(3)[y] - q
    inverse = np.linalg.inv(phi.T @ phi / n + lam * np.eye(3))
    f = inverse @ (phi.T @ r / n)
    h = inverse @ f
    psi = 2 * (np.sum((phi @ h) * (r - phi @ f), axis=1) - lam * np.sum(h * f))
    expected = np.std(psi, ddof=1) / math.sqrt(n)
    assert reference.standard_error(y, q, kernel="linear", bandwidth=1.0) == close(expected)


@pytest.mark.parametrize("ell", [None, label_kernel()])
def test_standard_error_is_the_derivative_under_a_point_mass(ell):
    # psi_i = d/de of the population value at (1 - e) P_n + e delta_i; weights express both.
    y, q = sample(n=30)
    n, lam, e = len(y), len(y) ** -0.25, 1e-5
    options = {"bandwidth": BANDWIDTH, "regularization": lam, "label_kernel": ell}

    def mixture(i, e):
        w = np.full(n, 1 - e)
        w[i] += n * e
        return reference.ckce(y, q, sample_weight=w, **options)

    psi = np.array([(mixture(i, e) - mixture(i, -e)) / (2 * e) for i in range(n)])
    expected = np.std(psi, ddof=1) / math.sqrt(n)
    assert reference.standard_error(y, q, **options) == close(expected, rel=1e-6)


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@pytest.mark.parametrize("function", [*DUAL, reference.ckce_cholesky])
def test_integer_weights_are_repetitions(function, kernel, general):
    y, q = sample()
    w = np.array([1, 3, 0, 2, 1, 1, 5, 0, 2, 1, 4, 1])
    options = {"kernel": kernel, "bandwidth": BANDWIDTH}
    options["label_kernel"] = label_kernel() if general else None
    weighted = function(y, q, sample_weight=w, **options)
    assert weighted == close(function(np.repeat(y, w), np.repeat(q, w, axis=0), **options), 1e-11)
    ones = np.ones(len(y))
    assert function(y, q, sample_weight=ones, **options) == close(function(y, q, **options))


def test_weights_do_not_move_the_pivots():
    y, q = sample()
    q[2] = [1, 0, 0]  # the first pivot, were its weight not 0
    w = np.array([1, 3, 0, 2, 1, 1, 50, 0, 2, 1, 4, 1])
    options = {"bandwidth": BANDWIDTH, "rank": 3}
    weighted = reference.ckce_cholesky(y, q, sample_weight=w, **options)
    repeated = reference.ckce_cholesky(np.repeat(y, w), np.repeat(q, w, axis=0), **options)
    assert weighted == close(repeated, 1e-11)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_integer_weights_are_repetitions_jkce(estimator):
    y, q = sample()
    w = np.array([1, 3, 0, 2, 1, 1, 5, 0, 2, 1, 4, 1])
    options = {"bandwidth": BANDWIDTH, "estimator": estimator}
    weighted = reference.jkce(y, q, sample_weight=w, **options)
    repeated = reference.jkce(np.repeat(y, w), np.repeat(q, w, axis=0), **options)
    assert weighted == close(repeated)


def test_integer_weights_are_repetitions_fourier():
    y, q = sample()
    w = np.array([1, 3, 0, 2, 1, 1, 5, 0, 2, 1, 4, 1])
    frequencies = np.random.default_rng(3).normal(size=(6, 3)) / BANDWIDTH
    weighted = reference.ckce_fourier(y, q, frequencies=frequencies, sample_weight=w)
    repeated = reference.ckce_fourier(
        np.repeat(y, w), np.repeat(q, w, axis=0), frequencies=frequencies
    )
    assert weighted == close(repeated)


@pytest.mark.parametrize("linear_part", [True, False])
@pytest.mark.parametrize("general", [False, True])
def test_primal_equals_dual(linear_part, general):
    y, q = sample(n=20)
    frequencies = np.random.default_rng(3).normal(size=(4, 3)) / BANDWIDTH

    def kernel(p, q):
        features = [reference.fourier_features(x, frequencies, linear_part) for x in (p, q)]
        return features[0] @ features[1].T

    ell = label_kernel() if general else None
    w = np.random.default_rng(5).uniform(0.5, 2, 20)
    for weight in (None, w):
        primal = reference.ckce_fourier(
            y,
            q,
            frequencies=frequencies,
            linear_part=linear_part,
            label_kernel=ell,
            sample_weight=weight,
        )
        dual = reference.ckce(
            y, q, kernel=kernel, bandwidth=1.0, label_kernel=ell, sample_weight=weight
        )
        assert primal == close(dual)


def test_primal_of_the_linear_kernel():
    y, q = sample(n=20)
    # Frequencies 0 leave only the constant 1 beside q, which the callable adds.
    primal = reference.ckce_fourier(y, q, frequencies=np.zeros((1, 3)))
    dual = reference.ckce(y, q, kernel=lambda p, q: p @ q.T + 1, bandwidth=1.0)
    assert primal == close(dual)


def test_fourier_features_approach_the_kernel():
    _, q = sample(n=6)
    frequencies = np.random.default_rng(3).normal(size=(200_000, 3)) / BANDWIDTH
    phi = reference.fourier_features(q, frequencies)
    exact = reference.gram("linear_gaussian", q, q, BANDWIDTH)
    assert np.max(np.abs(phi @ phi.T - exact)) < 5 / math.sqrt(200_000)
    assert np.diag(phi @ phi.T) == pytest.approx(np.diag(exact), rel=1e-12)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_pivoted_cholesky_reproduces_the_gram_matrix(kernel):
    _, q = sample(n=15)
    gram = reference.gram(kernel, q, q, BANDWIDTH)
    factor, pivots = reference.pivoted_cholesky(gram, tol=0.0)
    assert len(set(pivots.tolist())) == len(pivots) == factor.shape[1]
    assert np.max(np.abs(factor @ factor.T - gram)) < 1e-11
    if kernel == "linear":
        assert len(pivots) == 3


def test_pivoted_cholesky_is_greedy_and_stops():
    _, q = sample(n=30)
    gram = reference.gram("linear_gaussian", q, q, BANDWIDTH)
    factor, pivots = reference.pivoted_cholesky(gram, rank=4)
    for step, pivot in enumerate(pivots):
        residual = np.diag(gram - factor[:, :step] @ factor[:, :step].T)
        assert residual[pivot] == close(residual.max(), 1e-10)
    loose, _ = reference.pivoted_cholesky(gram, tol=1e-3)
    rank = loose.shape[1]
    assert np.trace(gram - loose @ loose.T) <= 1e-3 * np.trace(gram)
    assert np.trace(gram - loose[:, :-1] @ loose[:, :-1].T) > 1e-3 * np.trace(gram)
    assert reference.pivoted_cholesky(gram, rank=rank)[0] == pytest.approx(loose)
    _, tied = reference.pivoted_cholesky(np.eye(5))
    assert tied.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_cholesky_at_full_rank_is_exact(kernel):
    y, q = sample(n=20)
    exact = reference.ckce(y, q, kernel=kernel, bandwidth=BANDWIDTH)
    factored = reference.ckce_cholesky(y, q, kernel=kernel, bandwidth=BANDWIDTH, tol=0.0)
    assert factored == close(exact, 1e-10)


def test_jkce_against_pycalibration():
    # Data and value of the README of pycalibration: SKCE, exponential x white kernel.
    rng = np.random.default_rng(1234)
    q = rng.dirichlet((3, 2, 5), 100)
    y = rng.integers(1, 4, 100) - 1

    def exponential(p, q):
        return np.exp(-np.linalg.norm(p[:, None] - q[None], axis=2))

    value = reference.jkce(y, q, kernel=exponential, bandwidth=1.0, estimator="unbiased")
    assert value == close(0.02015240706950358)


def test_values_are_linear_in_the_label_kernel():
    y, q = sample(n=20)
    first, second = label_kernel(seed=1), label_kernel(seed=2)
    functions = [reference.ckce, reference.debias_term, reference.floor, reference.ckce_cholesky]
    for function in [*functions, reference.jkce]:

        def at(ell, function=function):
            return function(y, q, bandwidth=BANDWIDTH, label_kernel=ell)

        assert at(2 * first + 3 * second) == close(2 * at(first) + 3 * at(second), 1e-11)
        assert at(np.eye(3)) == close(function(y, q, bandwidth=BANDWIDTH), 1e-14)
        # r sums to 0, so a constant label kernel sees nothing.
        assert at(np.ones((3, 3))) == pytest.approx(0.0, abs=1e-15)


def test_values_do_not_depend_on_the_order_of_rows_or_classes():
    y, q = sample(n=20)
    rng = np.random.default_rng(7)
    rows, classes = rng.permutation(20), rng.permutation(3)
    for function in [*DUAL, reference.jkce]:
        value = function(y, q, bandwidth=BANDWIDTH)
        assert function(y[rows], q[rows], bandwidth=BANDWIDTH) == close(value)
        relabelled = np.argsort(classes)[y]
        assert function(relabelled, q[:, classes], bandwidth=BANDWIDTH) == close(value)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_median_bandwidth(kernel):
    _, q = sample(n=11)
    order = 1 if kernel == "laplace" else 2
    pairs = [
        float(np.sum(np.abs(q[i] - q[j]) ** order) ** (1 / order))
        for i in range(11)
        for j in range(i + 1, 11)
    ]
    assert reference.median_bandwidth(q, kernel) == close(np.median(pairs), 1e-14)


def test_median_bandwidth_of_zero_distances():
    constant = np.full((5, 2), 0.5)
    assert reference.median_bandwidth(constant) == 1.0
    assert reference.median_bandwidth(constant[:1]) == 1.0
    hard = np.eye(2)[[0, 0, 0, 0, 0, 0, 1]]
    assert reference.median_bandwidth(hard) == close(math.sqrt(2), 1e-15)
    assert reference.median_bandwidth(hard, "laplace") == 2.0


def test_median_bandwidth_counts_copies():
    _, q = sample(n=6)
    w = np.array([1, 0, 4, 2, 1, 3])
    repeated = reference.median_bandwidth(np.repeat(q, w, axis=0))
    assert reference.median_bandwidth(q, sample_weight=w) == repeated
