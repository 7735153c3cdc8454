"""method="auto": a fixed rule of n, m and kernel, and nothing else."""

import inspect

import pytest
from shared import sample

import ckce
from ckce._methods.auto import AUTO_RANK, METHODS, choose_method
from ckce._problem.kernels import KERNELS

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
        assert choose_method(n, m, kernel) == method


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
    for method in METHODS:
        assert f'"{method}"' in text


@pytest.mark.parametrize(
    ("n", "m", "kernel", "named"),
    [
        (300, 4, "linear_gaussian", {"method": "exact"}),
        (2500, 3, "gaussian", {"method": "exact"}),
        (2500, 2, "linear_gaussian", {"method": "cholesky", "rank": AUTO_RANK}),
        (2500, 4, "linear", {"method": "exact"}),
    ],
)
def test_auto_is_the_named_method_bit_for_bit(n, m, kernel, named):
    y, q = sample(n, m)
    auto = ckce.estimate(y, q, kernel=kernel)
    chosen = ckce.estimate(y, q, kernel=kernel, **named)
    assert auto == chosen  # the signature among the fields
    assert auto.method == named["method"]
    assert f"|method:{named['method']}|" in auto.signature
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
