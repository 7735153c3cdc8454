"""method="auto": a fixed rule of n, m and kernel, and a certificate that is worth its name."""

import inspect

import numpy as np
import pytest
from shared import sample

import ckce
from ckce._input.kernels import KERNELS
from ckce._methods.auto import AUTO_RANK, METHODS, choose_method

SMOOTH = ["linear_gaussian", "gaussian"]
OWN_PART = [*SMOOTH, "laplace"]

# (n, m, kernels, method): the rule of the docs on both sides of every limit.
RULE = [
    (1, 2, KERNELS, "exact"),
    (2000, 2, KERNELS, "exact"),
    (2000, 1000, KERNELS, "exact"),
    (2001, 2, SMOOTH, "cholesky"),
    (2001, 2, ["laplace"], "exact"),
    (2001, 3, OWN_PART, "exact"),
    (10**7, 2, SMOOTH, "cholesky"),
    (10**7, 2, ["laplace"], "fourier"),
    # n^2 (m + 16) <= 2e10
    (27_735, 10, OWN_PART, "exact"),
    (27_736, 10, OWN_PART, "cholesky"),
    (13_130, 100, OWN_PART, "exact"),
    (13_131, 100, OWN_PART, "cholesky"),
    (4_436, 1000, OWN_PART, "exact"),
    (4_437, 1000, OWN_PART, "fourier"),
    (33_333, 2, ["laplace"], "exact"),
    (33_334, 2, ["laplace"], "cholesky"),
    # m <= 100
    (20_000, 100, OWN_PART, "cholesky"),
    (20_000, 101, OWN_PART, "fourier"),
    # n <= 2^18
    (2**18, 10, OWN_PART, "cholesky"),
    (2**18 + 1, 10, OWN_PART, "fourier"),
    (10**9, 1000, OWN_PART, "fourier"),
    (10**9, 1000, ["linear"], "exact"),
]


@pytest.mark.parametrize(("n", "m", "kernels", "method"), RULE)
def test_rule(n, m, kernels, method):
    for kernel in kernels:
        chosen = choose_method(n, m, KERNELS[kernel])
        assert chosen.word == method
        if method == "cholesky":
            pivoting = "greedy" if m == 2 and kernel in SMOOTH else "random"
            assert chosen == ckce.Cholesky(rank=AUTO_RANK, pivoting=pivoting)
        else:
            assert chosen == METHODS[method]()


def test_rule_has_no_other_arguments():
    assert list(inspect.signature(choose_method).parameters) == ["n", "m", "kernel"]


def test_rule_is_documented():
    text = " ".join(ckce.ckce.__doc__.split())
    for words in (
        "``exact`` for n <= 2000",
        "``cholesky`` for two classes and a Gaussian kernel",
        "n^2 (m + 16) <= 2e10",
        f"``cholesky`` of rank {AUTO_RANK} with random pivots for m <= 100 and n <= 2^18",
        "else ``fourier``",
    ):
        assert words in text
    for method in set(METHODS) - {"blocks"}:
        assert f'"{method}"' in text


@pytest.mark.parametrize(
    ("n", "m", "kernel", "named"),
    [
        (300, 4, "linear_gaussian", ckce.Exact()),
        (2500, 3, "gaussian", ckce.Exact()),
        (2500, 2, "linear_gaussian", ckce.Cholesky(rank=AUTO_RANK)),
        (2500, 4, "linear", ckce.Exact()),
    ],
)
def test_auto_is_the_named_method_bit_for_bit(n, m, kernel, named):
    y, q = sample(n, m)
    auto = ckce.estimate(y, q, kernel=kernel)
    chosen = ckce.estimate(y, q, kernel=kernel, method=named)
    assert auto == chosen  # the signature among the fields
    assert auto.method == named.word
    assert f"|method:{named.word}|" in auto.signature
    assert ckce.ckce(y, q, kernel=kernel) == chosen.value


def test_auto_with_cholesky_names_its_rank():
    e = ckce.estimate(*sample(2500, 2))
    assert f"|rank:{AUTO_RANK}|" in e.signature
    assert e.rank < 30


def test_weights_do_not_choose_the_method():
    # Rows count, not copies: the cost is theirs.
    y, q = sample(300, 4)
    e = ckce.estimate(y, q, sample_weight=[9.0] * 300)
    assert e.method == "exact"
    assert e.iterations is None


# What "auto" returns is worth its certificate, or comes with a warning.


def skewed(n, seed=0):
    """Fraud, clicks, rare diseases: predictions that span thousands of bandwidths."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.05, 6.2, n)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("function", [ckce.ckce, ckce.estimate])
def test_skewed_predictions_get_the_exact_kernel(function):
    y, p = skewed(12_000)
    assert float(function(y, p)) == pytest.approx(ckce.ckce(y, p, method="exact"), rel=1e-9)


def test_the_signature_names_the_method_that_was_taken():
    y, p = skewed(12_000)
    assert ckce.estimate(y, p).signature == ckce.estimate(y, p, method="exact").signature


def test_where_exact_is_too_dear_a_warning_says_so(monkeypatch):
    monkeypatch.setattr("ckce._metrics.ckce.affords_exact", lambda n, m: False)
    with pytest.warns(RuntimeWarning, match="span many bandwidths"):
        ckce.ckce(*skewed(12_000))


def test_a_good_factor_stays():
    rng = np.random.default_rng(1)
    p = rng.random(5000)
    y = (rng.random(5000) < p).astype(int)
    assert "|method:cholesky|" in ckce.estimate(y, p).signature
