"""Many rows of two classes: sums over nodes are sums over rows, and functions of p are known at rows."""

import numpy as np
import pytest

import ckce
from ckce import _core
from ckce._compare.common_ground import ground_problems
from ckce._compare.ground import Grounds, solve_pair
from ckce._input import check_samples
from ckce._problem import check_settings

N = 12_000
ROWS = 4000  # so few are summed one by one


def predictions(kind, rng):
    """P(class 1): "skewed" and "near 1" have bandwidths of 1e-4, where landmarks see few rows."""
    p = {
        "even": lambda: rng.uniform(0, 1, N),
        "narrow": lambda: rng.beta(40, 60, N),
        "skewed": lambda: rng.beta(0.05, 6.2, N),
        "near 1": lambda: 1.0 - rng.beta(0.08, 6.2, N),
        "few": lambda: rng.choice([0.0, 0.1, 0.25, 0.5, 1.0], N),
        "edges": lambda: np.clip(rng.uniform(-0.1, 1.1, N), 0.0, 1.0),
    }[kind]()
    return p, (rng.random(N) < p).astype(int)


KINDS = ("even", "narrow", "skewed", "near 1", "few", "edges")


def two_models(kind, seed=0):
    rng = np.random.default_rng(seed)
    p, y = predictions(kind, rng)
    return y, p, np.clip(p * 1.2 / (p * 1.2 + 1.0 - p), 0.0, 1.0)


def samples_of(y, p, **options):
    options = {"labels": None, "sample_weight": None, "groups": None, **options}
    return check_samples(y, p, input="probs", normalize=False, n_threads=1, **options)


def both_ways(compute, samples):
    """Of all rows at once, and of parts that are too short for nodes."""
    weights = samples.weights
    parts = [slice(at, at + ROWS) for at in range(0, N, ROWS)]
    cut = [
        (samples.probs[rows], samples.labels[rows], None if weights is None else weights[rows])
        for rows in parts
    ]
    return compute(samples.probs, samples.labels, weights), [compute(*part) for part in cut]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"weights": True}, {"label_kernel": True}])
def test_sums_and_influence_of_common_ground(kind, options):
    y, a, b = two_models(kind)
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 4, N).astype(float) if "weights" in options else None
    factor = np.array([[1.0, 0.5, 0.2], [0.0, 0.3, 0.7]]) if "label_kernel" in options else None
    models = {
        "A": samples_of(y, a, sample_weight=weights),
        "B": samples_of(y, b, sample_weight=weights),
    }
    grounds = Grounds(ground_problems(models, check_settings("ckce")))
    how = {"features": grounds.map.features, "n_threads": 1, "progress": None}
    found = []
    for samples in models.values():
        whole, (first, *others) = both_ways(
            lambda q, y, w: _core.ground_sums(q, y, w, factor, **how), samples
        )
        for other in others:
            first.add(other)
        assert whole.weight == first.weight
        size = 1e-12 * whole.weight  # features themselves are right to 1e-13
        np.testing.assert_allclose(np.tril(whole.xx), np.tril(first.xx), rtol=0, atol=size)
        np.testing.assert_allclose(whole.xr, first.xr, rtol=0, atol=size)
        np.testing.assert_allclose(
            np.tril(whole.diagonal), np.tril(first.diagonal), rtol=0, atol=size
        )
        found.append(first)
    solved = solve_pair(grounds.map, tuple(found), grounds.regularization, 1)
    first, second = models.values()
    whole = solved.spreads(grounds.map, first, second, factor, 1)
    if solved.sign < 0.0:
        first, second = second, first
    cut = [
        _core.ground_spread(
            first.probs[rows],
            first.labels[rows],
            second.probs[rows],
            second.labels[rows],
            None if weights is None else weights[rows],
            factor,
            grounds=solved.grounds,
            **how,
        )
        for rows in (slice(at, at + ROWS) for at in range(0, N, ROWS))
    ]
    for run, spread in enumerate(whole):
        literal = np.concatenate([part[run].influence for part in cut])
        assert spread.influence == pytest.approx(literal, rel=0, abs=1e-10 * np.abs(literal).max())
        noise = cut[0][run]
        for part in cut[1:]:
            noise.add(part[run])
        assert spread.largest(grounds.weight) == pytest.approx(
            noise.largest(grounds.weight), rel=1e-9
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_miscalibration(kind, weighted):
    """Groups of one row are rows, and are summed one by one."""
    y, p, _ = two_models(kind)
    weights = np.random.default_rng(1).integers(1, 4, N).astype(float) if weighted else None
    found = ckce.miscalibration(y, p, sample_weight=weights)
    groups = np.arange(N)
    literal = ckce.miscalibration(y, p, sample_weight=weights, groups=groups, bandwidth="median")
    assert found.regularization == pytest.approx(literal.regularization, rel=1e-7)
    if not weighted:  # copies of a row would be one group
        assert found.value == pytest.approx(literal.value, rel=1e-8, abs=1e-8 * literal.se)
        assert found.df == pytest.approx(literal.df, rel=1e-6)  # lambda may be 1e-8
        size = np.abs(literal.influence).max()
        assert found.influence == pytest.approx(literal.influence, rel=0, abs=1e-7 * size)


@pytest.mark.parametrize("kind", ["even", "skewed"])
def test_threads_layouts_and_the_order_of_models_do_not_change_a_bit(kind):
    y, a, b = two_models(kind)
    one = ckce.common_ground(y, a, b, n_threads=1)
    wide = np.column_stack([1.0 - a, a])
    for other in (
        ckce.common_ground(y, a, b, n_threads=3),
        ckce.common_ground(y, wide[:, ::-1].copy()[:, ::-1], b, n_threads=2),
    ):
        assert other == one
    back = ckce.common_ground(y, b, a, names=("B", "A"))
    assert (back.difference, back.se, back.share) == (-one.difference, one.se, one.share)
    assert back.z == tuple(-z for z in one.z)
    alone, four = (ckce.miscalibration(y, a, n_threads=threads) for threads in (1, 4))
    assert (alone.value, alone.se, alone.df) == (four.value, four.se, four.df)
    assert np.array_equal(alone.influence, four.influence)


@pytest.mark.parametrize("kind", ["even", "skewed"])
def test_float32_and_rows_off_the_simplex(kind):
    """Single precision is near; rows that miss the simplex by more are summed one by one."""
    y, p, _ = two_models(kind)
    rows = np.column_stack([1.0 - p, p])
    off = rows * (1.0 + 5e-6 * np.random.default_rng(2).uniform(-1.0, 1.0, (N, 1)))
    for q, rel in ((rows.astype(np.float32), 1e-5), (off, 1e-9)):
        literal = ckce.miscalibration(y, q, bandwidth=0.1, groups=np.arange(N))
        found = ckce.miscalibration(y, q, bandwidth=0.1)
        assert found.value == pytest.approx(literal.value, rel=rel, abs=rel * literal.se)
        assert found.se == pytest.approx(literal.se, rel=1e-3)  # groups correct by n / (n - 1)


def test_identical_models_show_nothing():
    y, p, _ = two_models("even")
    found = ckce.common_ground(y, p, p.copy())
    assert (found.difference, found.se, found.p_value) == (0.0, 0.0, 1.0)
