"""The signature names everything that changes the number."""

import inspect

import numpy as np
import pytest
from shared import label_kernel, sample

import ckce

Y, Q = sample(200, 4)
LARGE_Y, LARGE_Q = sample(2300, 3)
NEARLY = Q * (1 + 5e-6)


def by_difference(p, q):
    return np.exp(-np.abs(p[:, None] - q[None]).sum(axis=2))


def by_product(p, q):
    return p @ q.T + 1


FOURIER, CHOLESKY = {"method": "fourier"}, {"method": "cholesky", "rank": 5}
LARGE = {"method": "exact"}

# parameter: (base options, the parameter's other values); every one moves the number.
PERTURBED = {
    "method": ({}, ["fourier", "cholesky"]),
    "kernel": ({}, ["gaussian", "linear", "laplace", by_difference, by_product]),
    "bandwidth": ({}, [0.5, np.float64(0.25), 2]),
    "regularization": ({}, [0.5, 0.25, np.float32(0.3), "loo"]),
    "n_frequencies": (FOURIER, [50, 99]),
    "sampler": (FOURIER, ["orthogonal", "sobol"]),
    "frequencies": (FOURIER, [np.eye(4), 2 * np.eye(4), np.eye(4)[:3]]),
    "random_state": (FOURIER, [1, 2**63]),
    "rank": (CHOLESKY, [1, 6]),
    "tol": ({"method": "cholesky", "tol": 1e-2}, [1e-1, 1e-3]),
    "pivoting": (CHOLESKY, ["random"]),
    "label_kernel": ({}, [label_kernel(4), label_kernel(4, seed=2), 2 * np.eye(4)]),
    "sample_weight": ({}, [np.arange(200) % 3, np.arange(200) % 2, np.full(200, 2)]),
    "reduction": ({"bandwidth": 0.5}, ["top_label", "class_wise"]),
    "precision": ({**FOURIER, "n_frequencies": 20}, ["mixed"]),
    "normalize": ({"bandwidth": 0.5}, [True]),
    "from_logits": ({"bandwidth": 0.5}, [True]),
}
# What moves the number only through the data, or not at all.
SILENT = {"labels", "n_threads", "progress"}


def test_every_parameter_is_here():
    parameters = set(inspect.signature(ckce.estimate).parameters) - {"y_true", "y_prob"}
    assert parameters == set(PERTURBED) | SILENT


@pytest.mark.parametrize("name", PERTURBED)
def test_each_parameter_changes_the_signature(name):
    base, others = PERTURBED[name]
    calls = [base, *({**base, name: value} for value in others)]
    n = (
        7 if name == "from_logits" else len(Y)
    )  # more rows of probabilities are not taken for logits
    estimates = [ckce.estimate(Y[:n], NEARLY[:n], **options) for options in calls]
    numbers = {e.value for e in estimates}
    assert len(numbers) == len(estimates), "the perturbation must change the number to count"
    assert len({e.signature for e in estimates}) == len(estimates)


def test_random_state_of_random_pivots():
    options = {**CHOLESKY, "pivoting": "random"}
    first, second = (ckce.estimate(Y, Q, random_state=seed, **options) for seed in (0, 1))
    assert first.value != second.value
    assert first.signature != second.signature


def test_random_state_of_the_median():
    first, second = (ckce.estimate(LARGE_Y, LARGE_Q, random_state=seed, **LARGE) for seed in (0, 1))
    assert first.value != second.value
    assert first.signature != second.signature
    assert "(median,2000,s0)" in first.signature


def test_tolerance_of_the_iteration():
    signatures = {
        ckce.estimate(LARGE_Y, LARGE_Q, tol=tol, **LARGE).signature for tol in (1e-3, 1e-6)
    }
    assert len(signatures) == 2


def test_the_data_size_is_named():
    assert "|n:200|m:4|" in ckce.estimate(Y, Q).signature
    assert "|n:199|m:4|" in ckce.estimate(Y[1:], Q[1:]).signature


@pytest.mark.parametrize(
    "options",
    [
        {},
        FOURIER,
        CHOLESKY,
        {"sample_weight": np.arange(200) % 3},
        {"label_kernel": label_kernel(4)},
    ],
)
def test_same_call_same_signature(options):
    signatures = {
        ckce.estimate(Y, Q, **options).signature,
        ckce.estimate(Y.copy(), np.asfortranarray(Q), n_threads=2, **options).signature,
        ckce.estimate((Y + 1).tolist(), Q.tolist(), labels=[1, 2, 3, 4], **options).signature,
    }
    assert len(signatures) == 1


def test_layout_of_arrays_is_not_signed():
    frequencies, ell = np.random.default_rng(0).normal(size=(5, 4)), label_kernel(4)
    signatures = {
        ckce.estimate(Y, Q, method="fourier", frequencies=f, label_kernel=e).signature
        for f, e in [
            (frequencies, ell),
            (np.asfortranarray(frequencies), np.asfortranarray(ell)),
            (frequencies.tolist(), ell.tolist()),
        ]
    }
    assert len(signatures) == 1


def test_irrelevant_seed_is_not_signed():
    signatures = {ckce.estimate(Y, Q, random_state=seed).signature for seed in (0, 1)}
    assert len(signatures) == 1


def test_written_out():
    e = ckce.estimate(Y, Q, bandwidth=0.9)
    assert e.signature == (
        "ckce|v0.1|method:exact|k:linear_gaussian|gamma:0.9|lam:n^-0.25|n:200|m:4|p:float64"
    )
    e = ckce.estimate(Y, Q, method="fourier", bandwidth=0.9, random_state=3, sampler="sobol")
    assert e.signature == (
        "ckce|v0.1|method:fourier|sampler:sobol|k:linear_gaussian|gamma:0.9|D:100|s:3|"
        "lam:n^-0.25|n:200|m:4|p:float64"
    )
    e = ckce.estimate(Y, Q, method="cholesky", rank=9, bandwidth=0.9, regularization=0.5)
    assert e.signature == (
        "ckce|v0.1|method:cholesky|k:linear_gaussian|gamma:0.9|rank:9|pivoting:greedy|tol:1e-10|"
        "lam:0.5|n:200|m:4|p:float64"
    )


def test_signature_repeats_the_number():
    e = ckce.estimate(Y, Q)
    words = dict(word.split(":", 1) for word in e.signature.split("|")[2:])
    gamma = float(words["gamma"].removesuffix("(median)"))
    assert ckce.ckce(Y, Q, method=words["method"], kernel=words["k"], bandwidth=gamma) == e.value
