"""Two models at equal predictions: the core against the literal formulas, and what is said."""

import math

import numpy as np
import pytest
from support.two_models import draw, temper, two_models

import ckce
from ckce import reference
from ckce._compare.common_ground import ground_problems
from ckce._compare.ground import EPS, Grounds, PairGround
from ckce._compare.verdict import Pair, judge
from ckce._input import check_samples
from ckce._problem import check_settings
from ckce._results import standard_error


def settled(y, a, b, **options):
    """The core's common ground of two models, with what it was computed with."""
    weight, groups = options.pop("sample_weight", None), options.pop("groups", None)
    settings = check_settings("ckce", **options)
    models = {
        name: check_samples(
            y,
            q,
            labels=None,
            sample_weight=weight,
            groups=groups,
            input="probs",
            normalize=False,
            n_threads=1,
        )
        for name, q in (("A", a), ("B", b))
    }
    problems = ground_problems(models, settings)
    return Grounds(problems), problems["A"]


def literal(y, a, b, grounds, problem, run, **options):
    """The same by the formulas, with the same landmarks."""
    gamma, kernel = problem.bandwidth.value, problem.kernel.name
    norm, half, quarter = grounds.map.points

    def features(q):
        parts = [
            reference.landmark_features(q, norm, kernel, gamma),
            reference.landmark_features(q, half, "gaussian", gamma / 2),
            reference.power_features(q),
        ]
        if run == 1:
            parts.append(reference.landmark_features(q, quarter, "gaussian", gamma / 4))
        return np.hstack(parts)

    return reference.common_ground(
        (y, y),
        (features(a), features(b)),
        (a, b),
        norm=len(norm),
        regularization=problem.regularization.value,
        eps=(10 * EPS if run == 2 else EPS) / grounds.weight,
        **options,
    )


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_the_core_computes_the_formulas(first):
    """On 200 random problems: values, difference and standard error of all three runs."""
    for seed in range(first, first + 20):
        y, a, b = two_models(seed)
        grounds, problem = settled(y, a, b)
        found, _ = grounds.pair(("A", "B"))
        for run in range(3):
            expected = literal(y, a, b, grounds, problem, run)
            difference = expected["values"][0] - expected["values"][1]
            assert found.differences[run] == pytest.approx(difference, abs=1e-10)
            assert found.errors[run] == pytest.approx(expected["se"], abs=1e-10)
            noise = math.sqrt(found.errors[run] ** 2 - 4 * expected["noise"] ** 2)
            assert noise == pytest.approx(expected["se_influence"], abs=1e-10)
            if run == 0:
                assert found.values == pytest.approx(tuple(expected["values"]), abs=1e-10)
                assert found.share == pytest.approx(expected["share"], abs=1e-10)


def test_weights_label_kernels_and_the_gaussian_kernel():
    y, a, b = two_models(3, n=300, m=4)
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    label_kernel = root @ root.T
    weights = rng.integers(1, 4, 300).astype(float)
    for options in ({"sample_weight": weights}, {"label_kernel": label_kernel}):
        grounds, problem = settled(y, a, b, kernel="gaussian", **options)
        found, _ = grounds.pair(("A", "B"))
        expected = literal(y, a, b, grounds, problem, 0, **options)
        assert found.values == pytest.approx(tuple(expected["values"]), abs=1e-10)
        assert found.errors[0] == pytest.approx(expected["se"], abs=1e-10)


def test_groups_are_debiased_together():
    y, a, b = two_models(9, n=400, m=3)
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(40), 10))
    codes = np.unique(groups, return_inverse=True)[1]
    for options in ({}, {"sample_weight": rng.integers(1, 4, 400).astype(float)}):
        grounds, problem = settled(y, a, b, groups=groups, **options)
        found, _ = grounds.pair(("A", "B"))
        for run in range(3):
            expected = literal(y, a, b, grounds, problem, run, groups=codes, **options)
            difference = expected["values"][0] - expected["values"][1]
            assert found.differences[run] == pytest.approx(difference, abs=1e-10)
            assert found.errors[run] == pytest.approx(expected["se"], abs=1e-10)
    grouped, alone = ckce.common_ground(y, a, b, groups=groups), ckce.common_ground(y, a, b)
    assert "|groups:40(" in grouped.signature
    assert grouped.share == alone.share  # which needs no labels
    assert grouped.se != alone.se
    (pair,) = ckce.compare(y, {"A": a, "B": b}, groups=groups).pairs
    assert {pair.difference, -pair.difference} >= {grouped.difference}
    assert pair.se == grouped.se
    single = ckce.common_ground(y, a, b, groups=np.arange(400))
    assert single.difference == pytest.approx(alone.difference, abs=1e-12)
    assert single.se == pytest.approx(alone.se, rel=1e-9)
    assert single.p_value > alone.p_value  # Student's t


def test_influence_is_the_derivative_by_row_weights():
    y, a, b = two_models(5, n=200, m=3)
    grounds, problem = settled(y, a, b)
    influence = literal(y, a, b, grounds, problem, 0)["influence"]

    def plain(row, step):
        weights = np.full(200, 1.0 - step)
        weights[row] += 200 * step
        return literal(y, a, b, grounds, problem, 0, sample_weight=weights)["plain"]

    step = 1e-6
    for row in range(0, 200, 8):
        slope = (plain(row, step) - plain(row, -step)) / (2 * step)
        assert slope == pytest.approx(influence[:, row], abs=1e-5 * influence.std())


def test_equal_predictions_give_debiased_ckce_of_the_same_features():
    rng = np.random.default_rng(1)
    y, a, _ = two_models(7, n=600, m=3)
    other = draw(rng, a)  # the same predictions with other labels
    found = ckce.common_ground({"A": y, "B": other}, a, a)
    own = [
        ckce.estimate(
            labels, a, method=ckce.Landmarks(_norm_landmarks(y, a)), bandwidth="median"
        ).debiased
        for labels in (y, other)
    ]
    assert found.first_value == pytest.approx(own[0], abs=1e-9)
    assert found.second_value == pytest.approx(own[1], abs=1e-9)
    assert found.share == pytest.approx(1.0, abs=1e-9)
    assert found.own_difference == pytest.approx(own[0] - own[1], abs=1e-12)


def test_own_values_are_those_of_estimate():
    """They come from the sums of the comparison: debiased CKCE by the landmarks of the norm."""
    y, a, b = two_models(5, n=400, m=3)
    rng = np.random.default_rng(0)
    for options in (
        {},
        {"sample_weight": rng.integers(1, 4, 400).astype(float)},
        {"groups": rng.permutation(np.repeat(np.arange(40), 10))},
        {"label_kernel": np.eye(3) + 0.5},
    ):
        grounds, problem = settled(y, a, b, **options)
        method, gamma = ckce.Landmarks(grounds.map.points[0]), problem.bandwidth.value
        own = [ckce.estimate(y, q, method=method, bandwidth=gamma, **options) for q in (a, b)]
        found = ckce.common_ground(y, a, b, **options)
        assert found.own_difference == pytest.approx(own[0].debiased - own[1].debiased, abs=1e-14)
        se = standard_error(
            own[0].influence - own[1].influence, options.get("sample_weight"), grounds.first.groups
        )
        assert found.own_se == pytest.approx(se, rel=1e-9)


def _norm_landmarks(y, a):
    return settled(y, a, a)[0].map.points[0]


def test_exchanging_the_models_changes_only_the_sign():
    for n in (800, 5000):  # above 2000 rows landmarks and bandwidth come from a sample
        y, a, b = two_models(11, n=n, m=3)
        one = ckce.common_ground(y, a, b)
        two = ckce.common_ground(y, b, a, names=("B", "A"))
        assert two.difference == -one.difference
        assert (two.low, two.high, two.se) == (-one.high, -one.low, one.se)
        assert two.z == tuple(-z for z in one.z)
        assert (two.first_value, two.second_value) == (one.second_value, one.first_value)
        assert (two.share, two.resolution, two.p_value) == (one.share, one.resolution, one.p_value)
        assert (two.verdict, two.better) == (one.verdict, one.better)


def test_landmarks_depend_neither_on_the_order_of_rows_nor_on_that_of_models():
    y, a, b = two_models(13, n=6000, m=4)
    a[1000:2000] = a[0]  # repeated predictions count once
    order = np.random.default_rng(0).permutation(6000)
    grounds = [
        settled(y, a, b, bandwidth=0.5)[0],
        settled(y[order], a[order], b[order], bandwidth=0.5)[0],
        settled(y, b, a, bandwidth=0.5)[0],
    ]
    for other in grounds[1:]:
        for mine, theirs in zip(grounds[0].map.points, other.map.points, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_threads_and_layouts_do_not_change_bits():
    y, a, b = two_models(17, n=5000, m=3)
    one = ckce.common_ground(y, a, b, n_threads=1)
    for other in (
        ckce.common_ground(y, a, b, n_threads=3),
        ckce.common_ground(y, np.asfortranarray(a), b[:, ::-1].copy()[:, ::-1], n_threads=2),
    ):
        assert other == one


def test_a_weight_is_that_many_copies():
    y, a, b = two_models(19, n=500, m=2)
    weights = np.random.default_rng(0).integers(0, 4, 500)
    weighted = ckce.common_ground(y, a, b, sample_weight=weights, bandwidth=0.4)
    copied = ckce.common_ground(*(np.repeat(x, weights, axis=0) for x in (y, a, b)), bandwidth=0.4)
    assert weighted.z == pytest.approx(copied.z, rel=1e-9)
    assert weighted.difference == pytest.approx(copied.difference, rel=1e-9)
    assert weighted.share == pytest.approx(copied.share, rel=1e-9)


def test_the_same_miscalibration_under_two_marginals_is_no_difference():
    """Own CKCE is fooled by narrower predictions; at equal predictions nothing is left."""
    rng = np.random.default_rng(23)
    n = 4000
    wide, narrow = rng.beta(1, 1, n), rng.beta(12, 12, n)
    u = rng.random(n)

    def truth(q):
        return q**0.5 / (q**0.5 + (1 - q) ** 0.5)

    labels = {name: (u < truth(q)).astype(int) for name, q in (("wide", wide), ("narrow", narrow))}
    found = ckce.common_ground(labels, wide, narrow, names=("wide", "narrow"))
    assert found.own_p_value < 1e-3
    assert found.verdict == "not shown"
    assert found.sentence.startswith(
        "CKCE differs, but no difference is shown where both models predict."
    )


def test_a_difference_is_said_in_words():
    rng = np.random.default_rng(0)
    good = rng.dirichlet([1, 1, 1], 2000)
    y = draw(rng, good)
    found = ckce.common_ground(y, temper(good, 2.0), good, names=("sharp", "good"))
    assert (found.verdict, found.better, found.worse) == ("different", "good", "sharp")
    assert found.difference > 0
    assert found.sentence == (
        f"At equal predictions good is better calibrated than sharp (difference "
        f"{found.difference:.4f}, 95 % interval {found.low:.4f} to {found.high:.4f}; "
        f"{100 * found.share:.0f} % of the predictions' variety is shared)."
    )
    assert "good is better calibrated" in repr(found)
    assert "<table" in found._repr_html_()
    assert found.to_dict()["z"] == list(found.z)


def test_identical_predictions_show_nothing():
    y, a, _ = two_models(29, n=400, m=3)
    found = ckce.common_ground(y, a, a.copy())
    assert (found.verdict, found.better, found.difference, found.se) == ("not shown", None, 0, 0)
    assert (found.p_value, found.p_holm, found.z) == (1.0, 1.0, (0.0, 0.0, 0.0))


def test_a_constant_model_is_compared_at_its_prediction():
    rng = np.random.default_rng(31)
    good = rng.dirichlet([1, 1, 1], 3000)
    y = draw(rng, good)
    rates = np.tile(np.bincount(y) / 3000, (3000, 1))
    found = ckce.common_ground(y, temper(good, 2.0), rates, names=("sharp", "rates"))
    assert found.share < 0.10  # which a constant model is not asked for
    assert found.verdict == "not shown"
    assert found.sentence.endswith(
        "rates always predicts the same; the two are compared at that prediction only."
    )
    wrong = np.tile([0.8, 0.1, 0.1], (3000, 1))
    found = ckce.common_ground(y, good, wrong, names=("good", "wrong"))
    assert (found.verdict, found.better) == ("different", "good")
    apart = ckce.common_ground(y, rates, wrong)
    assert apart.verdict == "no common ground"


def test_the_standard_error_at_one_prediction_does_not_vanish_by_chance():
    """The influence is 0 where the mean residual is; what is left has the weights +-sqrt(s^2 - c^2)."""
    n, q = 2000, np.tile([0.4, 0.6], (2000, 1))
    y = (np.arange(n) % 10 >= 4).astype(int)  # 0.6 of the labels are 1: F = 0
    other = np.roll(y, 3)
    found = ckce.common_ground({"A": y, "B": other}, q, q)
    own = ckce.estimate(y, q)
    s = own.value - own.debiased  # variance of F
    c = s * np.mean((y - 0.6) * (other - 0.6)) / 0.24  # and its covariance between the models
    assert found.difference == pytest.approx(0, abs=1e-15)
    assert found.se == pytest.approx(2 * math.sqrt(s**2 - c**2), rel=1e-6)


def test_models_without_common_ground_are_not_compared():
    rng = np.random.default_rng(37)
    n = 1000
    low, high = rng.uniform(0.02, 0.1, n), rng.uniform(0.9, 0.98, n)
    y = rng.integers(0, 2, n)
    found = ckce.common_ground(y, low, high)
    assert found.verdict == "no common ground"
    assert (found.better, found.share < 0.10, np.isnan(found.p_holm)) == (None, True, True)
    assert found.sentence == (
        "The models predict in different regions; calibration cannot be compared at equal "
        "predictions."
    )


def test_few_rows_are_refused_in_words():
    y, a, b = two_models(41, n=100, m=3)
    found = ckce.common_ground(y, a, b)
    assert (found.verdict, found.better) == ("too few rows", None)
    assert np.isnan(found.difference)
    assert np.isnan(found.p_holm)
    assert found.to_dict()["difference"] is None
    assert found.sentence == (
        "Too few rows to compare at equal predictions: that takes 155 here, and there are 100."
    )


def test_coarse_balance_is_said():
    y, a, b = two_models(43, n=1500, m=10)
    found = ckce.common_ground(y, a, b, bandwidth=0.2)
    assert found.resolution < 0.9
    assert "Miscalibration finer than half the bandwidth is not balanced here." in found.sentence


@pytest.mark.parametrize(
    ("resolution", "second", "verdict"),
    [(0.6, 0.49, "depends on settings"), (0.95, 0.49, "different"), (0.6, 0.30, "different")],
)
def test_a_small_change_is_no_verdict_where_the_balance_is_coarse(resolution, second, verdict):
    ground = PairGround((0.5, second), (0.5 - second,) * 3, (0.001,) * 3, 0.5, resolution)
    pair = Pair(("A", "B"), ground, (0.0, 1.0), None, 1000.0, 100)
    (found,) = judge([pair], 0.95)
    assert (found.verdict, found.better) == (verdict, "B" if verdict == "different" else None)
    assert found.sentence.startswith("At equal predictions the values differ by 2 %") == (
        verdict != "different"
    )


def test_many_classes_are_read_by_rank():
    y, a, b = two_models(47, n=1000, m=30)
    found = ckce.common_ground(y, a, b)
    assert "reduction:top_k(5)" in found.signature
    assert "|m:30|" in found.signature
    with pytest.raises(ValueError, match="label_kernel must be None above 20 classes"):
        ckce.common_ground(y, a, b, label_kernel=np.eye(30))


def test_refusals():
    y, a, b = two_models(53, n=300, m=3)
    for kernel in ("linear", "laplace", lambda p, q: p @ q.T):
        with pytest.raises(ValueError, match="kernel must have a Gaussian part"):
            ckce.common_ground(y, a, b, kernel=kernel)
    for names in (("A", "A"), "AB", ("A",), ("A", 2)):
        with pytest.raises(ValueError, match="names must be two different strings"):
            ckce.common_ground(y, a, b, names=names)
    with pytest.raises(ValueError, match="model 'B': "):
        ckce.common_ground(y, a, -b)
    with pytest.raises(ValueError, match="all models must have predictions of one shape"):
        ckce.common_ground(y % 2, a, a[:, :2] / a[:, :2].sum(axis=1)[:, None])
    with pytest.raises(ValueError, match="reduction must be"):
        ckce.common_ground(y, a, b, reduction="class_wise")


def test_an_interval_without_0_and_no_difference_is_explained():
    """The interval is of the pair alone; Holm's adjustment over three pairs takes the difference."""
    rng = np.random.default_rng(19)
    q = rng.dirichlet([1, 1, 1], 600)
    y = draw(rng, q)
    models = {"a": q, "b": temper(q, 1.28), "c": temper(q, 0.97), "d": temper(q, 1.02)}
    (pair,) = (p for p in ckce.compare(y, models).pairs if {p.first, p.second} == {"a", "b"})
    assert pair.verdict == "not shown"
    assert pair.low * pair.high > 0
    assert f"p = {pair.p_holm:.2g} over three settings and all pairs" in pair.sentence
