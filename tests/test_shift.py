"""Curves over shifted data sets."""

import dataclasses
import json

import matplotlib as mpl
import numpy as np
import pytest
from shared import sample

import ckce

mpl.use("agg")


def sharpened(q, power):
    p = q**power
    return p / p.sum(axis=1, keepdims=True)


Y, Q = sample(200, 3)
SERIES = {
    "sure": [sharpened(Q, power) for power in (2.0, 2.2, 2.4)],
    "mild": [sharpened(Q, power) for power in (1.0, 1.1, 1.2)],
}


@pytest.mark.parametrize(
    "options", [{}, {"method": "fourier", "random_state": 2}, {"regularization": 0.3}]
)
def test_points_are_the_estimates(options):
    curve = ckce.shift_curve(Y, SERIES, shifts=[-1, 0, 1], **options)
    assert [(p.model, p.shift) for p in curve.points] == [
        (name, shift) for name in SERIES for shift in (-1, 0, 1)
    ]
    for point in curve.points:
        q = SERIES[point.model][int(point.shift) + 1]
        e = ckce.estimate(Y, q, **options)
        assert (point.ckce, point.ckce_debiased, point.ckce_floor, point.ckce_se) == (
            e.value,
            e.debiased,
            e.floor,
            e.se,
        )
        assert (point.ckce_low, point.ckce_high) == e.interval()
        assert (point.bandwidth, point.signature) == (e.bandwidth, e.signature)
        j = ckce.jkce_estimate(
            Y, q, **{key: v for key, v in options.items() if key != "regularization"}
        )
        assert (point.jkce, point.jkce_se) == (j.value, j.se)
        assert (point.jkce_low, point.jkce_high) == j.interval()
        assert point.ece_top_label == ckce.ece(Y, q, variant="top_label")
        assert point.accuracy == ckce.accuracy(Y, q)


def test_bandwidth_rules():
    own = ckce.shift_curve(Y, SERIES)
    assert [p.bandwidth for p in own.points] == [
        ckce.median_bandwidth(q) for sets in SERIES.values() for q in sets
    ]
    pooled = ckce.shift_curve(Y, SERIES, bandwidth="pooled")
    (gamma,) = {p.bandwidth for p in pooled.points}
    pairs = np.concatenate(
        [
            np.linalg.norm(q[:, None] - q[None], axis=2)[np.triu_indices(200, k=1)]
            for sets in SERIES.values()
            for q in sets
        ]
    )
    assert gamma == pytest.approx(np.median(pairs), rel=1e-12)
    given = ckce.shift_curve(Y, SERIES, bandwidth=0.4)
    assert {p.bandwidth for p in given.points} == {0.4}
    assert [c.bandwidth_rule for c in (own, pooled, given)] == ["own", "pooled", "given"]
    linear = ckce.shift_curve(Y, SERIES, kernel="linear", bandwidth="pooled")
    assert {p.bandwidth for p in linear.points} == {None}


def test_forms_of_the_input():
    curve = ckce.shift_curve(Y, SERIES)
    assert curve.shifts == (0, 1, 2)
    stacked = {name: np.stack(sets) for name, sets in SERIES.items()}
    assert ckce.shift_curve(Y, stacked) == curve
    assert ckce.shift_curve([Y, Y, Y], stacked) == curve
    assert ckce.shift_curve(np.stack([Y, Y, Y]), stacked) == curve
    assert ckce.shift_curve(Y.tolist(), stacked) == curve
    rows = [Y[:100], Y[:150], Y]
    sets = {"a": [SERIES["sure"][0][:100], SERIES["sure"][1][:150], SERIES["sure"][2]]}
    assert [p.n_samples for p in ckce.shift_curve(rows, sets).points] == [100, 150, 200]


def test_order():
    curve = ckce.shift_curve(Y, SERIES)
    ece = curve.values("ece_top_label")
    assert ece["sure"] == [p.ece_top_label for p in curve.points if p.model == "sure"]
    assert curve.kept("ckce") == 3
    assert curve.sentence("ckce").startswith("CKCE has the models in one order at all 3 shifts;")
    crossing = {"a": SERIES["sure"], "b": [SERIES["mild"][0], SERIES["mild"][1], sharpened(Q, 6.0)]}
    crossed = ckce.shift_curve(Y, crossing)
    assert crossed.kept("ckce") == 2
    assert "one order at 2 of 3 shifts" in crossed.sentence("ckce")
    with pytest.raises(ValueError, match="metric must be one of"):
        curve.values("brier")


def test_text_dict_and_frame():
    curve = ckce.shift_curve(Y, SERIES, shifts=["dark", "as is", "bright"], level=0.9)
    text = str(curve)
    assert "90 % interval" in text
    assert sum("bright" in line for line in text.splitlines()) == 2
    assert repr(curve) == text
    d = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert d["points"][0]["ckce_debiased"] == curve.points[0].ckce_debiased
    assert set(d["sentences"]) == {"ckce", "ckce_debiased", "jkce", "ece_top_label"}
    frame = curve.to_frame()
    assert list(frame["ckce"]) == [p.ckce for p in curve.points]
    with pytest.raises(dataclasses.FrozenInstanceError):
        curve.level = 0.5


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((Y, Q), {}, TypeError, "y_prob must be a dict of predictions by model, got ndarray"),
        ((Y, {}), {}, ValueError, "y_prob must hold at least one model, got none"),
        (
            (Y, {"a": [Q], "b": [Q, Q]}),
            {},
            ValueError,
            r"predictions on the same shifts, got \{'a': 1, 'b': 2\}",
        ),
        ((Y, {1: [Q]}), {}, TypeError, "y_prob must have strings as keys, got 1"),
        (([Y], SERIES), {}, ValueError, "y_true must hold the labels of 3 shifts, .* got 1 arrays"),
        ((Y, {"a": [Q, Q[1:]]}), {}, ValueError, "model 'a', shift 1: y_true and y_prob must have"),
        ((Y, SERIES), {"shifts": [1, 2]}, ValueError, "shifts must name the 3 data sets"),
        ((Y, SERIES), {"shifts": [1, 1, 2]}, ValueError, "shifts must name the 3 data sets"),
        ((Y, SERIES), {"shifts": [None, 1, 2]}, TypeError, "shifts must be numbers or strings"),
        ((Y, SERIES), {"level": 2}, ValueError, "level must be between 0 and 1, got 2"),
        ((Y, SERIES), {"bandwidth": "median"}, ValueError, r"one of \['own', 'pooled'\]"),
        ((Y, SERIES), {"kernel": "cosine"}, ValueError, "kernel must be one of"),
        (
            (np.zeros(200, int), {"a": [Q], "b": [Q[:, :2] + Q[:, 2:] / 2]}),
            {},
            ValueError,
            r"must have the same classes, got \[2, 3\] of them",
        ),
    ],
)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        ckce.shift_curve(*arguments, **options)


def test_plot():
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams)
    curve = ckce.shift_curve(Y, SERIES, shifts=[-5, 0, 5])
    axes = curve.plot(xlabel="Brightness")
    assert [ax.get_xlabel() for ax in axes] == ["Brightness"] * 3
    lines = {line.get_label(): line for line in axes[1].lines}
    assert list(lines["mild"].get_ydata()) == curve.values("jkce")["mild"]
    assert list(lines["mild"].get_xdata()) == [-5, 0, 5]
    _, given = plt.subplots(1, 3)
    assert curve.plot(given)[0] is given[0]
    named = ckce.shift_curve(Y, SERIES, shifts=["a", "b", "c"]).plot()
    assert [label.get_text() for label in named[0].get_xticklabels()] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="axes must be three axes, got 2"):
        curve.plot(given[:2])
    assert dict(mpl.rcParams) == before
    plt.close("all")


def test_progress_bar(capsys):
    ckce.shift_curve(Y, SERIES, progress=True)
    assert "2 models, 3 shifts" in capsys.readouterr().err


def test_sets_of_different_size_share_the_lambda_of_the_smallest():
    rows = [Y[:100], Y[:150], Y]
    sets = {"a": [Q[:100], Q[:150], Q]}
    curve = ckce.shift_curve(rows, sets)
    assert (curve.smallest, curve.regularization) == (100, 100**-0.25)
    for point, y, q in zip(curve.points, rows, sets["a"], strict=True):
        assert point.ckce == ckce.ckce(y, q, regularization=100**-0.25)
    said = "the sets have 100 to 200 rows: all are measured with the lambda of the smallest, 0.3162"
    assert said in " ".join(str(curve).split())
    assert curve.to_dict()["notes"][0].startswith(said)
    assert curve.to_dict()["regularization"] == curve.regularization
    # Nothing is said where nothing was chosen.
    for other in (
        ckce.shift_curve(Y, SERIES),
        ckce.shift_curve(rows, sets, regularization=0.2),
    ):
        assert other.smallest is None
        assert "smallest" not in str(other)
        assert set(other.to_dict()["notes"]) == set(other.to_dict()["sentences"].values())
    assert ckce.shift_curve(Y, SERIES).regularization == 200**-0.25


def test_a_fixed_lambda_makes_sizes_comparable():
    def of(n, seed, **fixed):
        y, q = sample(n, 3, seed=seed)
        return ckce.estimate(y, sharpened(q, 3.0), **fixed).debiased

    fixed = {"bandwidth": 0.6, "regularization": 0.2}
    few, many = range(16), range(3)
    ratios = [
        np.mean([of(4000, s, **options) for s in many])
        / np.mean([of(250, s, **options) for s in few])
        for options in ({}, fixed)
    ]
    assert ratios[0] > 1.3  # the default lambda falls with n
    assert ratios[1] == pytest.approx(1.0, abs=0.12)
