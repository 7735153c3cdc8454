"""Gradients: against the oracle, finite differences, and what estimates say."""

import itertools
import sys
from functools import partial

import numpy as np
import pytest
from shared import label_kernel, sample

import ckce
import ckce._metrics.gradient
from ckce import _core, reference
from ckce._input.kernels import KERNELS
from ckce._methods.auto import METHODS

module = sys.modules["ckce._metrics.gradient"]
SIDES = [(debias, detach) for debias in (False, True) for detach in (False, True)]


def differ(a, b):
    """The largest difference as a share of the largest entry."""
    return np.abs(a - b).max() / np.abs(b).max()


def frequencies(m, d, seed=0):
    return ckce.fourier_frequencies(m, d, bandwidth=0.5, random_state=seed)


def problem(seed):
    """Random data and settings: two classes, more classes than rows, weights, label kernels."""
    rng = np.random.default_rng(seed)
    m = int(rng.choice([2, 3, 5, 9]))
    n = int(rng.integers(2, 7 if m == 9 else 12))
    q = rng.dirichlet(np.full(m, rng.choice([0.5, 1.0, 5.0])), n)
    settings = {
        "debias": bool(rng.integers(2)),
        "detach_kernel": False,
        "regularization": rng.choice([None, 0.03, 0.5]),
        "sample_weight": rng.integers(1, 4, n) * 0.7 if seed % 3 == 0 else None,
        "label_kernel": label_kernel(m, seed) if seed % 4 == 1 else None,
    }
    method = ["exact", "exact", ckce.Fourier(frequencies=frequencies(m, 7, seed)), None][seed % 4]
    if method is None:
        method = ckce.Landmarks(rng.dirichlet(np.ones(m), 3))
    if method == "exact" or isinstance(method, ckce.Landmarks):
        settings["kernel"] = str(rng.choice(["gaussian", "linear_gaussian", "linear"]))
        if isinstance(method, ckce.Landmarks) and settings["kernel"] == "linear":
            settings["kernel"] = "gaussian"
        if settings["kernel"] != "linear":
            settings["bandwidth"] = float(rng.uniform(0.3, 1.2))
    return rng.integers(0, m, n), q, {**settings, "method": method}


def richardson(f, q, direction):
    """f'(0) along a direction, by central differences with steps 1, 1/2, ..., to order h^10."""
    h = 1.0

    def central(step):
        return (f(q + step * direction) - f(q - step * direction)) / (2 * step)

    levels = [central(h / 2**k) for k in range(5)]
    for order in (4, 16, 64, 256):
        levels = [(order * b - a) / (order - 1) for a, b in itertools.pairwise(levels)]
    return levels[0]


@pytest.mark.parametrize("block", range(8))
def test_against_finite_differences(block):
    """200 random problems; differences along a direction within the simplex, so values exist."""
    for seed in range(25 * block, 25 * block + 25):
        y, q, settings = problem(seed)
        q = 0.8 * q + 0.2 / q.shape[1]  # room for steps
        _, gradient = ckce.gradient(y, q, **settings)
        rng = np.random.default_rng(seed)
        direction = rng.normal(size=q.shape)
        direction -= direction.mean(axis=1, keepdims=True)
        direction *= min(0.5 * q.min(), 0.02) / np.abs(direction).max()
        slope = richardson(partial(value_of, y, settings), q, direction)
        scale = np.abs(gradient).max() * np.abs(direction).max()
        assert abs(np.sum(gradient * direction) - slope) <= 1e-9 * scale, (seed, settings)


def value_of(y, settings, q):
    options = {k: v for k, v in settings.items() if k not in ("debias", "detach_kernel")}
    estimate = ckce.estimate(y, q, **options)
    return estimate.debiased if settings["debias"] else estimate.value


@pytest.mark.parametrize(("debias", "detach"), SIDES)
@pytest.mark.parametrize("kernel", sorted(reference.SLOPES))
@pytest.mark.parametrize("shape", [(17, 2), (14, 4), (5, 11), (130, 3)])
def test_exact_against_the_oracle(kernel, shape, debias, detach):
    y, q = sample(*shape)
    weights = np.random.default_rng(2).uniform(0.2, 3, len(y))
    for label in (None, label_kernel(shape[1], rank=2)):
        settings = {"debias": debias, "detach_kernel": detach, "label_kernel": label}
        bandwidth = {} if kernel == "linear" else {"bandwidth": 0.6}
        value, gradient = ckce.gradient(
            y, q, kernel=kernel, sample_weight=weights, **bandwidth, **settings
        )
        if len(y) > 100:  # the oracle takes n^4 m: one panel of rows and two more
            estimate = ckce.estimate(
                y, q, kernel=kernel, sample_weight=weights, label_kernel=label, **bandwidth
            )
            expected = estimate.debiased if debias else estimate.value
            assert value == pytest.approx(expected, rel=1e-11)
            continue
        expected, slopes = reference.gradient(
            y, q, kernel=kernel, bandwidth=0.6, sample_weight=weights, **settings
        )
        assert value == pytest.approx(expected, rel=1e-11)
        assert differ(gradient, slopes) <= 1e-11


@pytest.mark.parametrize("detach", [False, True])
def test_a_huge_ridge_does_not_cancel(detach):
    """W - W diag(ridge) W would have no digit left of A."""
    y, q = sample(12, 3)
    settings = {"bandwidth": 0.6, "regularization": 1e12, "detach_kernel": detach}
    value, gradient = ckce.gradient(y, q, **settings)
    expected, slopes = reference.gradient(y, q, **settings)
    assert value == pytest.approx(expected, rel=1e-10)
    assert differ(gradient, slopes) <= 1e-10


@pytest.mark.parametrize(("debias", "detach"), SIDES)
@pytest.mark.parametrize(("n", "m", "d"), [(30, 3, 6), (9, 4, 6), (40, 2, 60), (30, 2, 3)])
def test_fourier_against_the_oracle(n, m, d, debias, detach):
    y, q = sample(n, m)
    w = frequencies(m, d)
    angles = q @ w.T
    slopes = np.concatenate(
        [-np.sin(angles)[:, :, None] * w, np.cos(angles)[:, :, None] * w], axis=1
    ) / np.sqrt(d)
    for kernel, linear in (("gaussian", False), ("linear_gaussian", True)):
        phi = reference.fourier_features(q, w, linear)
        of_q = np.broadcast_to(np.eye(m), (n, m, m))
        all_slopes = np.concatenate([of_q, slopes], axis=1) if linear else slopes
        settings = {
            "debias": debias,
            "detach_kernel": detach,
            "sample_weight": np.random.default_rng(2).uniform(0.2, 3, n),
            "label_kernel": label_kernel(m),
        }
        value, gradient = ckce.gradient(
            y, q, method=ckce.Fourier(frequencies=w), kernel=kernel, **settings
        )
        expected, rows = reference.gradient_features(y, q, phi=phi, slopes=all_slopes, **settings)
        assert value == pytest.approx(expected, rel=1e-10)
        assert differ(gradient, rows) <= 1e-11


@pytest.mark.parametrize(("debias", "detach"), SIDES)
@pytest.mark.parametrize("kernel", ["gaussian", "linear_gaussian"])
def test_landmarks_against_the_oracle(kernel, debias, detach):
    y, q = sample(30, 4)
    points = sample(3, 4, seed=5)[1]
    inverse = np.linalg.inv(np.linalg.cholesky(reference.gram(kernel, points, points, 0.6)))
    phi = reference.gram(kernel, q, points, 0.6) @ inverse.T
    slopes = np.array([inverse @ reference.SLOPES[kernel](row, points, 0.6) for row in q])
    settings = {"debias": debias, "detach_kernel": detach, "label_kernel": label_kernel(4)}
    value, gradient = ckce.gradient(
        y, q, method=ckce.Landmarks(points), kernel=kernel, bandwidth=0.6, **settings
    )
    expected, rows = reference.gradient_features(y, q, phi=phi, slopes=slopes, **settings)
    assert value == pytest.approx(expected, rel=1e-11)
    assert differ(gradient, rows) <= 1e-11


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [3, 20])
def test_iteration_equals_factorisation(m, weighted):
    y, q = sample(700, m, concentration=0.3)
    w = np.random.default_rng(0).uniform(0.2, 3, len(y)) if weighted else None
    for kernel in ("gaussian", "linear_gaussian"):
        for label in (None, label_kernel(m)):
            settled = module.settle(
                "gradient",
                y,
                q,
                kernel=kernel,
                sample_weight=w,
                label_kernel=label,
                labels=None,
                input="probs",
                normalize=False,
            )
            for debias, through in ((False, True), (False, False), (True, False)):
                (value, slopes), (expected, rows) = (
                    _core.gradient_exact(
                        *settled.data,
                        kernel=settled.rows.core_kernel,
                        ridge=settled.ridge,
                        tol=1e-10,
                        solver=solver,
                        debias=debias,
                        through_kernel=through,
                        n_threads=2,
                        progress=None,
                    )
                    for solver in (_core.Solver.iterate, _core.Solver.factorise)
                )
                # The debias term comes from a factor that leaves a first-order correction.
                assert value == pytest.approx(expected, rel=1e-3 if debias else 1e-10)
                assert differ(slopes, rows) <= (1e-4 if debias else 1e-9)


@pytest.mark.parametrize(("lam", "same"), [(None, False), (1e-7, True)])
def test_the_raw_gradient_iterates_as_the_value_does(lam, same, monkeypatch):
    # Where the iteration is long, the factorisation takes over.
    y, q = sample(600, 10)
    raw = partial(ckce.gradient, y, q, method="exact", debias=False, regularization=lam)
    value, slopes = raw()
    monkeypatch.setattr(module, "iterates", lambda n, m: False)
    expected, rows = raw()
    assert value == pytest.approx(expected, rel=1e-9)
    assert differ(slopes, rows) <= 1e-8
    assert (slopes == rows).all() == same


def test_diagonal_where_the_spectrum_decays_slowly():
    """Many classes: the first-order correction by a product with K, not a factor of full rank."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(2001, 60))
    y = rng.integers(0, 60, 2001)
    value, slopes = ckce.gradient(y, logits, input="logits", detach_kernel=True, bandwidth=0.4)
    raw = ckce.ckce(y, logits, input="logits", bandwidth=0.4)
    q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    k = reference.gram("linear_gaussian", q, q, 0.4)
    inverse = np.linalg.inv(k + 2001**0.75 * np.eye(2001))
    a = inverse @ k @ inverse
    r = np.eye(60)[y] - q
    term = np.diag(a) @ np.sum(r**2, axis=1)
    assert abs(raw - value - term) <= 1e-3 * term
    np.fill_diagonal(a, 0.0)
    bar = -2 * a @ r
    expected = q * (bar - np.sum(bar * q, axis=1, keepdims=True))
    assert np.linalg.norm(slopes - expected) <= 1e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize("n_rows", [300, 2300])
def test_values_are_those_of_estimate(n_rows):
    y, q = sample(n_rows, 4)
    for method in ("exact", "fourier", ckce.Landmarks(40)):
        estimate = ckce.estimate(y, q, method=method)
        raw, _ = ckce.gradient(y, q, method=method, debias=False)
        assert raw == pytest.approx(estimate.value, rel=1e-9)
        debiased, _ = ckce.gradient(y, q, method=method, detach_kernel=True)
        # By iteration both debias terms are approximate, that of the gradient to 1e-3 at most.
        slack = (estimate.debias_error or 0.0) + (1e-8 if n_rows > 2000 else 1e-10) * estimate.value
        assert abs(debiased - estimate.debiased) <= slack


def test_what_was_passed_is_differentiated():
    """Logits, log-probabilities, rows to be normalised and the positive class: the chain rule."""
    y, q = sample(40, 3)
    logits = np.random.default_rng(0).normal(size=(40, 3))
    cases = [
        (y, logits, {"input": "logits"}),
        (y, np.log(q), {"input": "log_probs"}),
        (y, 3 * q, {"normalize": True}),
        (y % 2, q[:, 0], {}),
        (y % 2, logits[:, 0], {"input": "logits"}),
        (y % 2, np.log(q[:, 0]), {"input": "log_probs"}),
    ]
    weights = np.r_[0.0, np.ones(38), 0.0]
    for labels, given, options in cases:
        options = {**options, "bandwidth": 0.5, "sample_weight": weights}
        _, gradient = ckce.gradient(labels, given, **options)
        assert gradient.shape == given.shape
        assert not gradient[[0, -1]].any()
        flat = given.reshape(-1)
        for entry in (given.size // 2, given.size // 2 + 1):
            step = 1e-4 * min(1.0, abs(flat[entry]))
            at = []
            for change in (step, -step):
                moved = flat.copy()
                moved[entry] += change
                if options.get("input") == "log_probs" and given.ndim == 2:
                    # A row of probabilities must sum to 1: move along the tangent.
                    row, column = divmod(entry, 3)
                    moved = given.copy()
                    moved[row] = np.log(tangent(np.exp(given[row]), column, change))
                at.append(ckce.estimate(labels, moved.reshape(given.shape), **options).debiased)
            slope = (at[0] - at[1]) / (2 * step)
            expected = gradient.reshape(-1)[entry]
            if options.get("input") == "log_probs" and given.ndim == 2:
                row, column = divmod(entry, 3)
                ahead = tangent(np.exp(given[row]), column, 1e-6)
                back = tangent(np.exp(given[row]), column, -1e-6)
                expected = gradient[row] @ (np.log(ahead) - np.log(back)) / 2e-6
            assert slope == pytest.approx(expected, rel=1e-5, abs=1e-7 * np.abs(gradient).max())


def tangent(row, column, change):
    """A row of the simplex with one entry moved, and the next one by as much in return."""
    moved = row.copy()
    moved[column] += change
    moved[(column + 1) % len(row)] -= change
    return moved


def test_auto_is_a_fixed_rule():
    kernel, linear = KERNELS["gaussian"], KERNELS["linear"]
    choose = module._choose
    assert choose(2000, 5000, kernel, True) == ckce.Exact()
    assert choose(2001, 10, kernel, True) == ckce.Fourier()
    assert choose(2001, 10, kernel, False) == ckce.Exact()
    assert choose(10**6, 10, linear, True) == ckce.Exact()
    assert choose(10**5, 10, kernel, False) == ckce.Fourier()
    assert choose(10**5, 5000, kernel, False) == ckce.Landmarks(500)


def test_refusals():
    y, q = sample(2100, 3)
    with pytest.raises(
        ValueError, match=r"method='exact' needs n <= 2000 .* got n = 2100: it takes"
    ):
        ckce.gradient(y, q, method="exact")
    for options in ({"detach_kernel": True}, {"debias": False}, {"method": "fourier"}):
        ckce.gradient(y, q, **{"method": "exact", **options})
    few = {"y_true": y[:50], "y_prob": q[:50]}
    for options, words in [
        ({"kernel": "laplace"}, "kernel='laplace' has no gradient where two predictions share"),
        ({"kernel": lambda p, q: p @ q.T}, "a callable kernel has no gradient"),
        ({"method": "cholesky"}, "method='cholesky' has no gradient"),
        ({"method": ckce.Fourier(precision="mixed")}, "precision='mixed' is for ckce"),
    ]:
        with pytest.raises(ValueError, match=words):
            ckce.gradient(**few, **options)
    for name in ("debias", "detach_kernel"):
        with pytest.raises(TypeError, match=f"{name} must be True or False"):
            ckce.gradient(**few, **{name: 1})
    assert set(METHODS) == {"exact", "fourier", "cholesky", "landmarks", "blocks"}


def test_memory_is_asked_for_first(monkeypatch):
    y, q = sample(1500, 3)
    monkeypatch.setattr("ckce._input.memory.available_memory", lambda: 1e6)
    monkeypatch.setattr("ckce._input.memory.SMALL", 1e6)
    with pytest.raises(MemoryError, match="a gradient by method='exact' with n = 1500, m = 3"):
        ckce.gradient(y, q)
