"""method="auto": a fixed rule of n, m and kernel, and a certificate that is worth its name."""

import inspect

import numpy as np
import pytest
from shared import sample

import ckce
from ckce._input.kernels import KERNELS
from ckce._methods.auto import AUTO_RANK, METHODS, choose_method

OWN_PART = ["linear_gaussian", "gaussian", "laplace"]

# (n, m, kernels, method): the rule of the docs on both sides of every limit.
RULE = [
    (1, 2, KERNELS, "exact"),
    (2000, 2, KERNELS, "exact"),
    (2000, 1000, KERNELS, "exact"),
    (2001, 3, OWN_PART, "exact"),
    (10**9, 2, KERNELS, "exact"),
    # n^2 (m + 16) <= 2e10
    (27_735, 10, OWN_PART, "exact"),
    (27_736, 10, OWN_PART, "cholesky"),
    (13_130, 100, OWN_PART, "exact"),
    (13_131, 100, OWN_PART, "cholesky"),
    (4_436, 1000, OWN_PART, "exact"),
    (4_437, 1000, OWN_PART, "fourier"),
    # m <= 100
    (20_000, 100, OWN_PART, "cholesky"),
    (20_000, 101, OWN_PART, "fourier"),
    # n <= 2^18
    (2**18, 10, OWN_PART, "cholesky"),
    (2**18 + 1, 10, OWN_PART, "fourier"),
    (10**9, 1000, OWN_PART, "fourier"),
    (10**9, 1000, ["linear"], "exact"),
    # n <= m, up to 8192 rows
    (4000, 4000, OWN_PART, "exact"),
    (8192, 30_000, OWN_PART, "exact"),
    (8193, 30_000, OWN_PART, "landmarks"),
    # m <= 4000
    (10**6, 4000, OWN_PART, "fourier"),
    (10**6, 4001, OWN_PART, "landmarks"),
]


@pytest.mark.parametrize(("n", "m", "kernels", "method"), RULE)
def test_rule(n, m, kernels, method):
    for kernel in kernels:
        chosen = choose_method(n, m, KERNELS[kernel])
        assert chosen.word == method
        if method == "cholesky":
            assert chosen == ckce.Cholesky(rank=AUTO_RANK, pivoting="random")
        elif method == "landmarks":
            assert chosen == ckce.Landmarks(AUTO_RANK)
        else:
            assert chosen == METHODS[method]()


def test_rule_has_no_other_arguments():
    assert list(inspect.signature(choose_method).parameters) == ["n", "m", "kernel"]


def test_rule_is_documented():
    text = " ".join(ckce.ckce.__doc__.split())
    for words in (
        "``exact`` for two classes, for n <= 2000",
        "n^2 (m + 16) <= 2e10",
        f"``cholesky`` of rank {AUTO_RANK} with random pivots for m <= 100 and n <= 2^18",
        "for n <= m up to n = 8192",
        f"else ``fourier``, or {AUTO_RANK} ``landmarks`` for m > 4000",
    ):
        assert words in text
    for method in set(METHODS) - {"blocks"}:
        assert f'"{method}"' in text


@pytest.mark.parametrize(
    ("n", "m", "kernel", "named"),
    [
        (300, 4, "linear_gaussian", ckce.Exact()),
        (2500, 3, "gaussian", ckce.Exact()),
        (2500, 2, "linear_gaussian", ckce.Exact()),
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


def test_auto_with_cholesky_names_its_rank(monkeypatch):
    monkeypatch.setattr("ckce._methods.auto.affords_exact", lambda n, m: False)
    e = ckce.estimate(*sample(2500, 3))
    assert f"|rank:{AUTO_RANK}|" in e.signature
    assert e.rank <= AUTO_RANK


def test_weights_do_not_choose_the_method():
    # Rows count, not copies: the cost is theirs.
    y, q = sample(300, 4)
    e = ckce.estimate(y, q, sample_weight=[9.0] * 300)
    assert e.method == "exact"
    assert e.iterations is None


# What "auto" returns is worth its certificate, or comes with a warning.


def skewed(n, seed=0):
    """Fraud, clicks, rare diseases, and a third class: predictions that span many bandwidths."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.05, 6.2, n)
    y = (rng.random(n) < p).astype(int)
    y[rng.random(n) < 0.1] = 2
    return y, np.column_stack([0.9 * (1 - p), 0.9 * p, np.full(n, 0.1)])


@pytest.fixture
def dear(monkeypatch):
    """The choice finds the exact kernel too dear."""
    monkeypatch.setattr("ckce._methods.auto.affords_exact", lambda n, m: False)


@pytest.mark.parametrize("function", [ckce.ckce, ckce.estimate])
def test_skewed_predictions_get_the_exact_kernel(function, dear):
    y, q = skewed(12_000)
    assert float(function(y, q)) == pytest.approx(ckce.ckce(y, q, method="exact"), rel=1e-9)


def test_all_models_of_a_comparison_get_one_method(dear):
    """The factor of one model is refused; that of the other one is good."""
    y, q = skewed(6_000)
    even = np.full((6_000, 3), [0.6, 0.3, 0.1])
    even[::2] = [0.5, 0.3, 0.2]
    models = {"even": even, "skewed": q}
    gamma = ckce.median_bandwidth(q)
    assert ckce.estimate(y, even, bandwidth=gamma).method == "cholesky"
    assert ckce.estimate(y, q, bandwidth=gamma).method == "exact"
    expected = ckce.compare(y, models, method="exact", bandwidth=gamma)
    for order in (("even", "skewed"), ("skewed", "even")):
        c = ckce.compare(y, {name: models[name] for name in order}, bandwidth=gamma)
        assert {e.method for e in c.estimates.values()} == {"exact"}
        assert c.method == "exact"
        assert c.signature == expected.signature
        assert c.models == expected.models


def test_the_signature_names_the_method_that_was_taken(dear):
    y, q = skewed(12_000)
    assert ckce.estimate(y, q).signature == ckce.estimate(y, q, method="exact").signature


def test_where_exact_is_too_dear_random_features_say_their_error(monkeypatch):
    y, q = skewed(12_000)
    exact = ckce.ckce(y, q)
    monkeypatch.setattr("ckce._methods.auto.EXACT_BUDGET", 1e6)
    factor = ckce.ckce(y, q, method=ckce.Cholesky(rank=AUTO_RANK, pivoting="random"))
    assert abs(factor - exact) > 0.1 * exact
    e = ckce.estimate(y, q)  # without a warning
    assert e.method == "fourier"
    assert abs(e.value - exact) < 2 * e.error < 0.2 * exact
    assert ckce.ckce(y, q) == e.value
    monkeypatch.setattr("ckce._metrics.ckce._LARGE_ERROR", 0.01)
    with pytest.warns(RuntimeWarning, match=r"took Fourier\(\), whose error is about"):
        ckce.ckce(y, q)


def test_a_good_factor_stays(dear):
    assert "|method:cholesky|" in ckce.estimate(*sample(3000, 3)).signature
