"""Regularisation by leave-one-out."""

import numpy as np
import pytest
from shared import (
    feature_kernel,
    label_kernel,
    landmark_kernel,
    landmarks,
    needs_new_core,
    sample,
)

import ckce
from ckce import reference
from ckce._problem import regularization as _regularization
from ckce._problem.problem import settle
from ckce._problem.regularization import LAMBDAS, choose_by_loo, loo_errors

Y, Q = sample(50, 4)
FREQUENCIES = ckce.fourier_frequencies(4, 6, bandwidth=0.7)
FOURIER = ckce.Fourier(frequencies=FREQUENCIES)


def problem(y, q, **options):
    data = {"sample_weight": None, "labels": None, "input": "probs", "normalize": False}
    return settle("ckce", y, q, **{**data, **options})


def errors(y, q, kernel="linear_gaussian", **options):
    if kernel != "linear" and options.get("method") != FOURIER:
        options.setdefault("bandwidth", 0.7)
    return loo_errors(problem(y, q, kernel=kernel, **options))


@pytest.mark.parametrize("kernel", ["linear_gaussian", "gaussian", "laplace", "linear"])
def test_closed_form_is_leaving_one_out(kernel):
    for lam, error in zip(LAMBDAS, errors(Y, Q, kernel), strict=True):
        expected = reference.loo_error(Y, Q, kernel=kernel, bandwidth=0.7, regularization=lam)
        assert error == pytest.approx(expected, rel=1e-4)  # the factor misses 1e-8 of K


@pytest.mark.parametrize("general", [False, True])
def test_closed_form_by_frequencies(general):
    ell = label_kernel(4) if general else None
    found = errors(Y, Q, method=FOURIER, label_kernel=ell)
    kernel = feature_kernel(FREQUENCIES, True)
    for lam, error in zip(LAMBDAS, found, strict=True):
        options = {"kernel": kernel, "bandwidth": 0.7, "regularization": lam, "label_kernel": ell}
        assert error == pytest.approx(reference.loo_error(Y, Q, **options), rel=1e-9)


@needs_new_core
@pytest.mark.parametrize("general", [False, True])
def test_closed_form_by_landmarks(general):
    ell = label_kernel(4) if general else None
    points = landmarks(4)
    found = errors(Y, Q, method=ckce.Landmarks(points), label_kernel=ell)
    kernel = landmark_kernel(points, "linear_gaussian", 0.7)
    for lam, error in zip(LAMBDAS, found, strict=True):
        options = {"kernel": kernel, "bandwidth": 0.7, "regularization": lam, "label_kernel": ell}
        assert error == pytest.approx(reference.loo_error(Y, Q, **options), rel=1e-9)


def test_integer_weights_are_repetitions():
    w = np.arange(50) % 3
    weighted = errors(Y, Q, method=FOURIER, sample_weight=w)
    repeated = errors(np.repeat(Y, w), np.repeat(Q, w, axis=0), method=FOURIER)
    assert weighted == pytest.approx(repeated, rel=1e-10)


def test_the_smallest_error_is_chosen(monkeypatch):
    by_hand = np.array([3.0, 1.0, 2.0, 1.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    rising = 10.0 * np.arange(9.0)
    one, two = problem(Y, Q), problem(Y, Q, bandwidth=0.1)
    known = {id(one): by_hand, id(two): rising}
    monkeypatch.setattr(_regularization, "loo_errors", lambda part: known[id(part)])
    assert choose_by_loo([one]).value == LAMBDAS[3]  # the larger lambda of two equals
    assert choose_by_loo([one, two]).value == LAMBDAS[0]
    assert choose_by_loo([one]).rule == "loo"
    assert LAMBDAS[0] == 1e-4
    assert LAMBDAS[-1] == 1.0


def smallest(total):
    return LAMBDAS[len(total) - 1 - int(np.argmin(total[::-1]))]


@pytest.mark.parametrize("method", ["exact", "fourier", "cholesky"])
def test_estimate_takes_the_chosen_lambda(method):
    y, q = sample(300, 3)
    options = {"method": method, "bandwidth": 0.7}
    e = ckce.estimate(y, q, regularization="loo", **options)
    assert e.regularization in LAMBDAS
    assert e.value == ckce.ckce(y, q, regularization=e.regularization, **options)
    assert e.value == ckce.ckce(y, q, regularization="loo", **options)
    assert f"|lam:loo({e.regularization!r})|" in e.signature


def test_a_strong_signal_wants_less_regularisation():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 2000)
    calibrated = (rng.random((2000, 1)) > q.cumsum(axis=1)[:, :2]).sum(axis=1)
    wrong = (rng.random((2000, 1)) > q[:, ::-1].cumsum(axis=1)[:, :2]).sum(axis=1)
    chosen = [
        ckce.estimate(y, q, regularization="loo", method="fourier").regularization
        for y in (calibrated, wrong)
    ]
    assert chosen[0] == 1.0
    assert chosen[1] < 0.05


def test_reductions_share_one_lambda():
    y, q = sample(300, 3)
    e = ckce.estimate(y, q, regularization="loo", reduction="class_wise", bandwidth=0.5)
    columns = [np.column_stack([1 - q[:, j], q[:, j]]) for j in range(3)]
    total = sum(errors((y == j).astype(int), columns[j], bandwidth=0.5) for j in range(3))
    assert e.regularization == smallest(total)


def test_models_share_one_lambda():
    y, q = sample(300, 3)
    models = {"a": q, "b": q**2 / (q**2).sum(axis=1, keepdims=True)}
    c = ckce.compare(y, models, regularization="loo")
    total = sum(errors(y, probs, bandwidth=c.bandwidth) for probs in models.values())
    assert c.regularization == smallest(total)
    assert f"|lam:loo({c.regularization!r})|" in c.signature
    for model in c.models:
        e = ckce.estimate(
            y, models[model.name], bandwidth=c.bandwidth, regularization=c.regularization
        )
        assert model.ckce_debiased == e.debiased


def test_threads_do_not_change_a_bit():
    y, q = sample(2500, 5)
    one, three = (errors(y, q, bandwidth=0.5, n_threads=t) for t in (1, 3))
    assert np.array_equal(one, three)


def test_refusals():
    for function, models in ((ckce.ckce, Q), (ckce.compare, {"a": Q, "b": Q})):
        with pytest.raises(ValueError, match=r"regularization must be .*'loo'.*, got .*'gcv'"):
            function(Y, models, regularization="gcv")
    with pytest.raises(ValueError, match="regularization='loo' needs one of the named kernels"):
        ckce.ckce(Y, Q, regularization="loo", kernel=lambda p, q: p @ q.T)
    with pytest.raises(TypeError, match="regularization must be a number, got 'loo'"):
        ckce.calibration_test(Y, Q, regularization="loo")
    with pytest.raises(TypeError, match="regularization must be a number, got 'loo'"):
        ckce.shift_curve(Y, {"a": [Q]}, regularization="loo")
    with pytest.raises(ValueError, match="test must be False with regularization='loo'"):
        ckce.compare(Y, {"a": Q, "b": Q}, regularization="loo", test=True)
