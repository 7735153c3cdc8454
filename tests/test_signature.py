"""The signature names everything that changes the number."""

import dataclasses
import inspect

import numpy as np
import pytest
from shared import NEW_CORE, label_kernel, needs_new_core, sample

import ckce
from ckce._methods.auto import METHODS

Y, Q = sample(200, 4)
LARGE_Y, LARGE_Q = sample(2300, 3)
NEARLY = Q * (1 + 5e-6)


def by_difference(p, q):
    return np.exp(-np.abs(p[:, None] - q[None]).sum(axis=2))


def by_product(p, q):
    return p @ q.T + 1


FOURIER, CHOLESKY = {"method": "fourier"}, {"method": ckce.Cholesky(rank=5)}
LARGE = {"method": "exact"}
POINTS = sample(8, 4, seed=1)[1]

OF_NEW_CORE = [ckce.Landmarks(5)] if NEW_CORE else []
# parameter: (base options, the parameter's other values); every one moves the number.
PERTURBED = {
    "method": ({}, ["fourier", ckce.Cholesky(rank=5), *OF_NEW_CORE]),
    "kernel": ({}, ["gaussian", "linear", "laplace", by_difference, by_product]),
    "bandwidth": ({}, [0.5, np.float64(0.25), 2, "default"]),
    "regularization": ({}, [0.5, 0.25, np.float32(0.3), "loo"]),
    "random_state": (FOURIER, [1, 2**63]),
    "label_kernel": ({}, [label_kernel(4), label_kernel(4, seed=2), 2 * np.eye(4)]),
    "sample_weight": ({}, [np.arange(200) % 3, np.arange(200) % 2, np.full(200, 2)]),
    "groups": ({}, [np.arange(200) // 4, np.arange(200) % 50, np.arange(200)[::-1] // 10]),
    "reduction": ({"bandwidth": 0.5}, ["top_label", "class_wise", ckce.TopK(2), ckce.TopK(3)]),
    "normalize": ({"bandwidth": 0.5}, [True]),
    "input": ({"bandwidth": 0.5}, ["logits"]),
}
# Fields of the methods: (an object, the field's other values).
FIELDS = {
    ("fourier", "n_frequencies"): (ckce.Fourier(), [50, 99]),
    ("fourier", "sampler"): (ckce.Fourier(), ["orthogonal", "sobol"]),
    ("fourier", "frequencies"): (ckce.Fourier(), [np.eye(4), 2 * np.eye(4), np.eye(4)[:3]]),
    ("fourier", "precision"): (ckce.Fourier(20), ["mixed"]),
    ("cholesky", "rank"): (ckce.Cholesky(rank=5), [1, 6]),
    ("cholesky", "tol"): (ckce.Cholesky(tol=1e-2), [1e-1, 1e-3]),
    ("cholesky", "pivoting"): (ckce.Cholesky(rank=5), ["random"]),
    ("landmarks", "points"): (ckce.Landmarks(5), [3, POINTS, POINTS[:5], POINTS[3:]]),
    ("exact", "tol"): (ckce.Exact(), [1e-2]),  # of the iteration
    ("blocks", "size"): (ckce.Blocks(), [2, 7]),  # of JKCE
}
# What moves the number only through the data, or not at all.
SILENT = {"labels", "n_threads", "progress"}


def test_every_parameter_is_here():
    parameters = set(inspect.signature(ckce.estimate).parameters) - {"y_true", "y_prob"}
    assert parameters == set(PERTURBED) | SILENT
    fields = {(m.word, f.name) for m in METHODS.values() for f in dataclasses.fields(m)}
    assert fields == set(FIELDS)


@pytest.mark.parametrize("name", PERTURBED)
def test_each_parameter_changes_the_signature(name):
    base, others = PERTURBED[name]
    calls = [base, *({**base, name: value} for value in others)]
    n = 7 if name == "input" else len(Y)  # more rows of probabilities are not taken for logits
    estimates = [ckce.estimate(Y[:n], NEARLY[:n], **options) for options in calls]
    numbers = {e.debiased if name == "groups" else e.value for e in estimates}
    assert len(numbers) == len(estimates), "the perturbation must change the number to count"
    assert len({e.signature for e in estimates}) == len(estimates)


@pytest.mark.parametrize("field", FIELDS, ids="-".join)
def test_each_field_of_a_method_changes_the_signature(field):
    word, name = field
    if word == "landmarks" and not NEW_CORE:
        pytest.skip("the old core has no Features")
    base, others = FIELDS[field]
    y, q = (LARGE_Y, LARGE_Q) if word == "exact" else (Y, NEARLY)
    estimate = ckce.jkce_estimate if word == "blocks" else ckce.estimate
    methods = [base, *(dataclasses.replace(base, **{name: value}) for value in others)]
    estimates = [estimate(y, q, method=method) for method in methods]
    numbers = {e.value for e in estimates}
    assert len(numbers) == len(estimates), "the perturbation must change the number to count"
    assert len({e.signature for e in estimates}) == len(estimates)


def test_log_probabilities_are_signed():
    signatures = {
        ckce.estimate(Y[:7], np.log(Q[:7]), input=input, bandwidth=0.5).signature
        for input in ("logits", "log_probs")
    }
    assert {s.split("|in:")[1].split("|")[0] for s in signatures} == {"logits", "log_probs"}


@pytest.mark.parametrize(
    "method",
    [
        ckce.Cholesky(5, pivoting="random"),
        pytest.param(ckce.Landmarks(5), marks=needs_new_core),
    ],
    ids=str,
)
def test_random_state_of_random_pivots(method):
    first, second = (ckce.estimate(Y, Q, random_state=seed, method=method) for seed in (0, 1))
    assert first.value != second.value
    assert first.signature != second.signature


def test_random_state_of_the_median():
    first, second = (ckce.estimate(LARGE_Y, LARGE_Q, random_state=seed, **LARGE) for seed in (0, 1))
    assert first.value != second.value
    assert first.signature != second.signature
    assert "(median,2000,s0)" in first.signature


def test_tolerance_of_the_iteration():
    one, two = (ckce.estimate(LARGE_Y, LARGE_Q, method=ckce.Exact(tol)) for tol in (1e-3, 1e-6))
    assert one.signature != two.signature
    one, two = (ckce.estimate(Y, Q, method=ckce.Exact(tol)) for tol in (1e-3, 1e-6))
    assert one.signature == two.signature  # a factorisation tolerates nothing


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
        ckce.estimate(Y, Q, method=ckce.Fourier(frequencies=f), label_kernel=e).signature
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
    e = ckce.estimate(Y, Q, method=ckce.Fourier(sampler="sobol"), bandwidth=0.9, random_state=3)
    assert e.signature == (
        "ckce|v0.1|method:fourier|sampler:sobol|k:linear_gaussian|gamma:0.9|D:100|s:3|"
        "lam:n^-0.25|n:200|m:4|p:float64"
    )
    e = ckce.estimate(Y, Q, method=ckce.Cholesky(rank=9), bandwidth=0.9, regularization=0.5)
    assert e.signature == (
        "ckce|v0.1|method:cholesky|k:linear_gaussian|gamma:0.9|rank:9|pivoting:greedy|tol:1e-10|"
        "lam:0.5|n:200|m:4|p:float64"
    )


def test_signature_repeats_the_number():
    e = ckce.estimate(Y, Q)
    words = dict(word.split(":", 1) for word in e.signature.split("|")[2:])
    gamma = float(words["gamma"].removesuffix("(median)"))
    assert ckce.ckce(Y, Q, method=words["method"], kernel=words["k"], bandwidth=gamma) == e.value
