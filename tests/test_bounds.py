"""Every printed bound holds: against the literal formula in long double (studies/bounds.py runs more)."""

import numpy as np
import pytest
from bounded import iterate, predictions, primal_truth, problem, solutions
from line import truth

import ckce

TINY = np.finfo(float).tiny
pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="long double has no more digits than double here"
)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(4))
def test_random_problems(seed):
    rng = np.random.default_rng([seed, 22])
    for _ in range(60):
        y, q, options = problem(rng, default=False)
        exact = truth(y, q, **options, full=False)["value"]
        linear = {k: v for k, v in options.items() if k not in ("kernel", "bandwidth")}
        exact_linear = primal_truth(y, q, **linear)
        for name, value, bound in solutions(y, q, options):
            assert value is not None, name
            error = abs(value - (exact_linear if name == "linear kernel" else exact))
            assert error <= bound + TINY, (name, options)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("lam", [1e-5, 1e-6, 1e-7])
def test_iteration_over_two_clusters(lam):
    """K is nearly singular, V nearly R / ridge: the round-off is eps / lambda^2."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        p = np.where(rng.random(100) < 0.5, 0.2, 0.7) + 1e-7 * rng.normal(size=100)
        q = np.stack([p, 0.9 - p, np.full(100, 0.1)], axis=1)
        q /= q.sum(axis=1, keepdims=True)
        y = np.array([rng.choice(3, p=row) for row in q])
        options = {"kernel": "gaussian", "bandwidth": 0.1, "regularization": lam}
        exact = truth(y, q, **options, full=False)["value"]
        solution = iterate(y, q, **options)
        assert abs(solution.value - exact) <= solution.bound


@pytest.mark.parametrize("kernel", ["gaussian", "linear_gaussian"])
def test_bandwidth_near_the_rounding_of_the_predictions(kernel):
    """Differences of predictions are taken before they are scaled: x = (q - mean) / bandwidth rounds
    at eps |q - mean| / bandwidth, which would be of order one here."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        q = predictions(rng, 60, 4, "tiny distances")
        y = rng.integers(0, 4, 60)
        options = {"kernel": kernel, "bandwidth": 2e-16}
        want = truth(y, q, **options)
        # A factor's certificate counts square roots of what rounding leaves: 2e-9 with 60 columns.
        for method, share in (("exact", 1e-11), ("cholesky", 1e-8)):
            e = ckce.estimate(y, q, method=method, **options)
            assert abs(e.value - want["value"]) <= e.bound
            assert e.bound <= share * (e.value + want["debias"])
        j = ckce.jkce(y, q, method="exact", **options)
        scale = want["off_diagonal"] + want["diagonal"]
        assert abs(j - want["off_diagonal"] / (60 * 59)) <= 1e-13 * scale / (60 * 59)


def test_default_settings():
    """The bound is of use: it is at most 1e-9 of the value and the debias term."""
    rng = np.random.default_rng(5)
    shares = []
    for _ in range(100):
        y, q, options = problem(rng, default=True)
        e = ckce.estimate(y, q)
        exact = truth(y, q, **{**options, "bandwidth": e.bandwidth}, full=False)["value"]
        assert abs(e.value - exact) <= e.bound + TINY
        if e.value > TINY:
            shares.append(e.bound / (2 * e.value - e.debiased))
    assert np.quantile(shares, 0.95) <= 1e-10
