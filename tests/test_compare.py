"""Comparisons: values of the models, verdicts on pairs, guard rails, sensitivity."""

import dataclasses
import json
import pickle
import re

import matplotlib as mpl
import matplotlib.pyplot
import numpy as np
import pytest
from shared import sample

import ckce
from ckce._compare.sensitivity import run_sensitivity
from ckce._compare.verdict import LEAST_SHARE, holm

mpl.use("agg")


def sharpened(q, power):
    p = q**power
    return p / p.sum(axis=1, keepdims=True)


def draw(q, rng):
    return np.minimum((q.cumsum(axis=1) < rng.random((len(q), 1))).sum(axis=1), q.shape[1] - 1)


def models(n=600, m=3, seed=0):
    """Labels drawn from the first model; the others are ever more sure of themselves."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(m), n)
    return draw(q, rng), {"good": q, "sharp": sharpened(q, 1.5), "worse": sharpened(q, 3)}


Y, Q = models()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "fourier", "random_state": 3},
        {"method": ckce.Fourier(30, sampler="orthogonal")},
        {"method": ckce.Cholesky(rank=20)},
        {"kernel": "gaussian", "regularization": 0.3},
        {"reduction": "top_label"},
        {"reduction": ckce.TopK(2)},
        {"sample_weight": np.arange(600) % 3},
    ],
)
def test_each_model_is_its_estimate_at_the_common_bandwidth(options):
    c = ckce.compare(Y, Q, **options)
    common = {} if c.bandwidth is None else {"bandwidth": c.bandwidth}
    for model in c.models:
        e = ckce.estimate(Y, Q[model.name], **options, **common)
        low, high = e.interval()
        assert (model.ckce, model.ckce_floor, model.ckce_debiased) == (e.value, e.floor, e.debiased)
        assert (model.ckce_se, model.ckce_low, model.ckce_high) == (e.se, low, high)
        assert (c.method, c.regularization) == (e.method, e.regularization)
        w = {"sample_weight": options["sample_weight"]} if "sample_weight" in options else {}
        assert model.accuracy == ckce.accuracy(Y, Q[model.name], **w)
        assert model.log_loss == ckce.log_loss(Y, Q[model.name], **w)
        assert model.brier == ckce.brier(Y, Q[model.name], **w)
        assert model.ece_top_label == ckce.ece(Y, Q[model.name], variant="top_label", **w)
        shared = {k: v for k, v in options.items() if k != "regularization"}
        j = ckce.jkce_estimate(Y, Q[model.name], **shared, **common)
        assert (model.jkce, model.jkce_se) == (j.value, j.se)
    assert c.names == tuple(model.name for model in c.models)
    assert [m.ckce_debiased for m in c.models] == sorted(m.ckce_debiased for m in c.models)


def test_bandwidth_is_the_median_over_all_within_model_pairs():
    y, q = models(60)
    pairs = np.concatenate(
        [np.linalg.norm(p[:, None] - p[None], axis=2)[np.triu_indices(60, k=1)] for p in q.values()]
    )
    c = ckce.compare(y, q)
    assert c.bandwidth == pytest.approx(np.median(pairs), rel=1e-12)
    assert c.bandwidth_source == "pooled median"
    assert f"gamma:{c.bandwidth!r}(pooled median)" in c.signature
    assert ckce.compare(y, q, bandwidth=0.5).bandwidth == 0.5
    top = {name: np.column_stack([1 - p.max(axis=1), p.max(axis=1)]) for name, p in q.items()}
    pooled = ckce.compare(y, q, reduction="top_label").bandwidth
    assert pooled == pytest.approx(ckce.compare(np.zeros(60, int), top).bandwidth, rel=1e-12)


@pytest.mark.parametrize("method", ["exact", "fourier", ckce.Cholesky(rank=20)])
def test_the_verdict_is_that_of_common_ground(method):
    """Whatever the method of the values in the table; which stand beside it."""
    two = {name: Q[name] for name in ("good", "sharp")}
    c = ckce.compare(Y, two, method=method, level=0.9)
    (pair,) = c.pairs
    alone = ckce.common_ground(
        Y, Q["good"], Q["sharp"], names=("good", "sharp"), level=0.9, bandwidth=c.bandwidth
    )
    skip = {"own_difference", "own_se", "own_p_value", "own_error", "signature"}
    for field in dataclasses.fields(pair):
        if field.name not in skip:
            assert getattr(pair, field.name) == getattr(alone, field.name), field.name
    estimates = [ckce.estimate(Y, q, method=method, bandwidth=c.bandwidth) for q in two.values()]
    assert pair.own_difference == estimates[0].debiased - estimates[1].debiased
    influence = estimates[0].influence - estimates[1].influence
    assert pair.own_se == pytest.approx(np.sqrt((influence**2).sum() / 599 / 600), rel=1e-12)


def test_own_ckce_may_order_them_the_other_way():
    """A narrow model that is farther off wherever both predict has the smaller CKCE."""
    rng = np.random.default_rng(3)
    n = 6000
    wide, narrow = rng.uniform(0.02, 0.98, n), rng.normal(0.5, 0.05, n)
    u = rng.random(n)
    flat = wide**0.4 / (wide**0.4 + (1 - wide) ** 0.4)  # far off at the ends, right in the middle
    labels = {"wide": (u < flat).astype(int), "narrow": (u < narrow + 0.08).astype(int)}
    c = ckce.compare(labels, {"wide": wide, "narrow": narrow})
    assert c.names == ("narrow", "wide")
    (pair,) = c.pairs
    assert (pair.verdict, pair.better, c.best) == ("different", "wide", ("wide",))
    assert c.headline == "At equal predictions wide is better calibrated than narrow"
    assert pair.sentence.endswith(
        "CKCE itself orders them the other way: its value also reflects how the predictions are "
        "spread."
    )


def test_integer_weights_are_repetitions():
    y, q = models(300)
    w = np.arange(300) % 4
    a = ckce.compare(y, q, sample_weight=w)
    b = ckce.compare(np.repeat(y, w), {k: np.repeat(p, w, axis=0) for k, p in q.items()})
    for x, z in zip(a.pairs, b.pairs, strict=True):
        assert (x.first, x.second, x.verdict) == (z.first, z.second, z.verdict)
        assert x.difference == pytest.approx(z.difference, rel=1e-9)
        assert x.se == pytest.approx(z.se, rel=1e-9)
        assert x.own_se == pytest.approx(z.own_se, rel=1e-9)


@pytest.mark.parametrize("method", ["exact", "fourier", "cholesky"])
def test_a_model_against_itself(method):
    c = ckce.compare(Y, {"b": Q["sharp"], "a": Q["sharp"].copy()}, method=method)
    (pair,) = c.pairs
    assert (pair.difference, pair.se, pair.low, pair.high) == (0.0, 0.0, 0.0, 0.0)
    assert (pair.p_value, pair.p_holm, pair.verdict) == (1.0, 1.0, "not shown")
    assert c.names == c.best == ("a", "b")
    assert pair.sentence.startswith(
        "At equal predictions no difference between a and b is shown (a minus b 0.0000,"
    )
    assert c.headline == "Neither model is shown to be better calibrated than the other"
    assert [rail.name for rail in c.warnings] == []


def test_order_of_the_models_does_not_matter():
    c = ckce.compare(Y, Q)
    assert ckce.compare(Y, dict(reversed(Q.items()))) == c
    assert ckce.compare(dict.fromkeys(Q, Y), Q) == c


def test_labels_of_their_own():
    hits = {name: (q.argmax(axis=1) == Y).astype(int) for name, q in Q.items()}
    confidence = {name: q.max(axis=1) for name, q in Q.items()}
    c = ckce.compare(hits, confidence)
    reduced = ckce.compare(Y, Q, reduction="top_label")
    assert [m.ckce_debiased for m in c.models] == [m.ckce_debiased for m in reduced.models]
    assert [p.se for p in c.pairs] == [p.se for p in reduced.pairs]
    assert "|reduction:top_label|" in reduced.signature


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]


def test_holm_is_applied_within_each_run():
    from ckce._results import p_value

    c = ckce.compare(Y, Q)
    compared = [p for p in c.pairs if p.share >= LEAST_SHARE]
    runs = [holm([p_value(p.z[run], 1.0) for p in compared]) for run in range(3)]
    for k, pair in enumerate(compared):
        assert pair.p_holm == pytest.approx(max(run[k] for run in runs), rel=1e-9)
        assert pair.significant == (pair.p_holm < 1 - c.level)


def test_sentences():
    c = ckce.compare(Y, Q)
    assert c.names == ("good", "sharp", "worse")
    assert c.headline == "At equal predictions good is better calibrated than the 2 others"
    assert c.best == ("good",)
    pair = c.pair("worse", "good")
    assert pair.sentence == (
        f"At equal predictions good is better calibrated than worse (difference "
        f"{-pair.difference:.4f}, 95 % interval {-pair.high:.4f} to {-pair.low:.4f}; "
        f"{100 * pair.share:.0f} % of the predictions' variety is shared)."
    )
    with pytest.raises(KeyError, match="no pair of 'good' and 'best'"):
        c.pair("good", "best")
    few = ckce.compare(Y[:100], {k: q[:100] for k, q in Q.items()})
    assert {pair.verdict for pair in few.pairs} == {"too few rows"}
    assert few.best == few.names
    assert few.headline == "Too few rows to tell which of 3 models is the best calibrated"
    strict = ckce.compare(Y, Q, level=1 - 1e-12)
    assert {pair.verdict for pair in strict.pairs} <= {"not shown", "no common ground"}
    assert "None of the 3 models is shown to be better calibrated than another one" in str(strict)
    four = ckce.compare(Y, {**Q, "again": Q["good"]})
    assert four.best == ("again", "good")
    assert four.headline == (
        "The best calibrated of 4 models may be again or good: the data do not show which"
    )
    count = sum(pair.significant for pair in four.pairs)
    assert four.sentences[-1] == f"{count} of 6 pairs differ at equal predictions, at 5 % (Holm)."


def rail_names(c):
    return [rail.name for rail in c.warnings]


def test_sharpness_is_that_of_the_reduced_predictions():
    c = ckce.compare(Y, Q, reduction="top_label")
    for model in c.models:
        confidence = Q[model.name].max(axis=1)
        expected = np.mean(confidence**2 + (1 - confidence) ** 2)
        assert model.sharpness == pytest.approx(expected, rel=1e-12)


def test_guard_rail_of_few_rows():
    few = ckce.compare(Y[:60], {k: q[:60] for k, q in Q.items()})
    (rail,) = (rail for rail in few.warnings if rail.name == "few_rows")
    assert rail.value == 60
    assert "few_rows" not in rail_names(ckce.compare(Y, Q))


def test_guard_rail_of_the_floor():
    y, q = models(seed=2)  # by chance the calibrated model is below its floor
    c = ckce.compare(y, q)
    (rail,) = (rail for rail in c.warnings if rail.name == "below_floor")
    below = [m for m in c.models if m.ckce < m.ckce_floor]
    assert [m.name for m in below] == ["good"]
    assert rail.value == below[0].ckce / below[0].ckce_floor < 1
    assert "for good (as low as" in rail.message


def test_guard_rail_of_ranks():
    y, q = sample(600, 4)
    c = ckce.compare(
        y, {"a": q, "b": sharpened(q, 0.5), "c": sharpened(q, 1.1), "d": sharpened(q, 0.55)}
    )
    turned = 0
    by_name = {m.name: m for m in c.models}
    for pair in c.pairs:
        better, worse = by_name[pair.first], by_name[pair.second]
        turned += (better.ckce > worse.ckce) + (better.jkce > worse.jkce)
    found = [rail.value for rail in c.warnings if rail.name == "rank_disagreement"]
    assert found == ([turned] if turned else [])


def test_guard_rail_of_the_approximation():
    options = {"bandwidth": 0.2}
    rough = ckce.compare(Y, Q, method=ckce.Cholesky(rank=3), **options)
    assert "approximation" in rail_names(rough)
    fine = ckce.compare(Y, Q, method="exact", **options)
    assert "approximation" not in rail_names(fine)
    for pair in rough.pairs:
        bounds = [m.ckce_error for m in rough.models if m.name in (pair.first, pair.second)]
        assert pair.own_error == sum(bounds)
        truth = fine.pair(pair.first, pair.second)
        by_name = {m.name: m.ckce for m in fine.models}
        raw = {m.name: m.ckce for m in rough.models}
        gap = (raw[pair.second] - raw[pair.first]) - (by_name[pair.second] - by_name[pair.first])
        assert abs(gap) <= pair.own_error
        assert truth.own_error < 1e-10
    few, many = (ckce.compare(Y, Q, method=ckce.Fourier(d), **options) for d in (16, 256))
    assert "approximation" in rail_names(few)
    assert max(p.own_error for p in many.pairs) < 0.3 * max(p.own_error for p in few.pairs)
    unknown = ckce.compare(Y, Q, method=ckce.Fourier(800), **options)  # more features than rows
    assert np.isnan([p.own_error for p in unknown.pairs]).all()


def test_error_of_fourier_is_told_by_a_jackknife_of_the_differences():
    """Over eight groups of frequencies, which all models share, without a pass of its own."""
    frequencies = ckce.fourier_frequencies(3, 24, bandwidth=0.5)
    c = ckce.compare(Y, Q, method=ckce.Fourier(frequencies=frequencies))
    assert c.bandwidth is None
    assert c.ground_bandwidth == ckce.compare(Y, Q).bandwidth  # pairs take the pooled median
    without = [
        {name: ckce.ckce(Y, q, method=ckce.Fourier(frequencies=rest)) for name, q in Q.items()}
        for rest in (np.delete(frequencies, np.s_[k::8], axis=0) for k in range(8))
    ]
    value = {model.name: model.ckce for model in c.models}
    for pair in c.pairs:
        gap = value[pair.first] - value[pair.second]
        gaps = np.array([each[pair.first] - each[pair.second] for each in without])
        error = np.sqrt((7 * (gaps.mean() - gap)) ** 2 + 7 * gaps.var())
        assert pair.own_error == pytest.approx(error, rel=1e-6)
    drawn = ckce.compare(Y, Q, method=ckce.Fourier(24), bandwidth=0.5)
    assert [p.own_error for p in drawn.pairs] == [p.own_error for p in c.pairs]


def test_p_values_of_the_models():
    assert all(m.p_value is None for m in ckce.compare(Y, Q).models)
    c = ckce.compare(Y, Q, test=49)
    for m in c.models:
        t = ckce.calibration_test(Y, Q[m.name], bandwidth=c.bandwidth, n_resamples=49)
        assert m.p_value == t.p_value
    assert "|test:49|" in c.signature
    assert "p-value" in str(c)
    f = ckce.compare(Y, Q, test=19, method="fourier")
    t = ckce.calibration_test(Y, Q["good"], bandwidth=f.bandwidth, n_resamples=19, method="fourier")
    assert next(m for m in f.models if m.name == "good").p_value == t.p_value


def test_threads_do_not_change_a_bit():
    for options in ({}, {"method": "fourier"}, {"method": "cholesky"}):
        assert ckce.compare(Y, Q, n_threads=1, **options) == ckce.compare(
            Y, Q, n_threads=3, **options
        )


def test_signature_names_what_changes_the_numbers():
    base = ckce.compare(Y, Q)
    others = [
        {"level": 0.9},
        {"bandwidth": 0.5},
        {"regularization": 0.4},
        {"method": "fourier"},
        {"kernel": "gaussian"},
        {"test": 9},
        {"reduction": "top_label"},
        {"reduction": ckce.TopK(2)},
        {"sample_weight": np.arange(600) % 2 + 0.5},
    ]
    signatures = {base.signature, *(ckce.compare(Y, Q, **o).signature for o in others)}
    assert len(signatures) == 1 + len(others)
    two = {name: Q[name] for name in ("good", "sharp")}
    assert ckce.compare(Y, two, bandwidth=base.bandwidth).signature not in signatures


def test_text_html_dict_and_frame():
    c = ckce.compare(Y, {**Q, "<b>": Q["sharp"]})
    lines = str(c).splitlines()
    assert lines[0].startswith("4 models, n = 600, m = 3, exact, bandwidth")
    assert [line.split()[0] for line in lines[2:6]] == list(c.names)
    assert len({len(line) for line in lines[1:6]}) == 1  # aligned
    assert repr(c) == str(c)
    assert lines[-1] == f"signature {c.signature}"
    html = c._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in re.sub("<b>(below_floor|rank_disagreement)", "", html)
    d = json.loads(json.dumps(c.to_dict(), allow_nan=False))
    assert [m["name"] for m in d["models"]] == list(c.names)
    assert len(d["pairs"]) == 6
    few = ckce.compare(Y[:60], {name: q[:60] for name, q in Q.items()})
    assert few.to_dict()["warnings"][-1]["name"] == few.warnings[-1].name == "few_rows"
    frame = c.to_frame()
    assert list(frame.index) == list(c.names)
    assert frame.loc["good", "ckce_debiased"] == d["models"][0]["ckce_debiased"]
    pairs = c.to_frame(pairs=True)
    assert list(pairs["first"]) == [p.first for p in c.pairs]
    assert list(pairs["verdict"]) == [p["verdict"] for p in d["pairs"]]
    assert d["best"] == list(c.best)
    with pytest.raises(dataclasses.FrozenInstanceError):
        c.level = 0.5


def test_infinite_log_loss_is_none_in_json():
    q = Q["good"].copy()
    row = np.flatnonzero(Y == 0)[0]
    q[row] = [0.0, 0.5, 0.5]
    c = ckce.compare(Y, {"zero": q, "sharp": Q["sharp"]})
    numbers = {m["name"]: m["log_loss"] for m in c.to_dict()["models"]}
    assert numbers["zero"] is None
    json.dumps(c.to_dict(), allow_nan=False)


def test_a_comparison_can_be_pickled():
    c = ckce.compare(Y, Q)
    again = pickle.loads(pickle.dumps(c))
    assert again == c
    assert again.sensitivity(bandwidths=[1], regularizations=[1]).survives


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Y, Q["good"]), TypeError, "y_prob must be a dict of predictions by model, got ndarray"),
        ((Y, {"a": Q["good"]}), ValueError, "y_prob must hold at least 2 models, got 1"),
        ((Y, {}), ValueError, "y_prob must hold at least 2 models, got 0"),
        ((Y, {"a": Q["good"], 2: Q["good"]}), TypeError, "y_prob must have strings as keys, got 2"),
        (
            ({"good": Y}, Q),
            ValueError,
            r"y_true must have the keys of y_prob, got \['good'\] and \['good', 'sharp', 'worse'\]",
        ),
        (
            (Y, {"a": Q["good"], "b": Q["good"][:, :2] / Q["good"][:, :2].sum(1, keepdims=True)}),
            ValueError,
            r"model 'b': y_true row \d+ is 2, expected 0..1",
        ),
        (
            (Y, {"a": Q["good"], "b": Q["good"][:-1]}),
            ValueError,
            "model 'b': y_true and y_prob must have the same number of rows, got 600 and 599",
        ),
        (
            ({"a": Y, "b": Y[1:]}, {"a": Q["good"], "b": Q["good"][1:]}),
            ValueError,
            r"of one shape, since rows are paired, got \(600, 3\) and \(599, 3\) for model 'b'",
        ),
        (
            (Y, {"a": Q["good"], "b": Q["good"] * 2}),
            ValueError,
            r"model 'b': y_prob row \d+ column",
        ),
        (
            (np.zeros(600, int), {"a": Q["good"], "b": np.c_[Q["good"], np.zeros(600)]}),
            ValueError,
            r"of one shape, since rows are paired, got \(600, 3\) and \(600, 4\) for model 'b'",
        ),
    ],
)
def test_bad_data(arguments, error, message):
    with pytest.raises(error, match=message):
        ckce.compare(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 0.0}, "level must be between 0 and 1, got 0.0"),
        ({"level": 95}, "level must be between 0 and 1, got 95"),
        ({"bandwidth": "mean"}, r"bandwidth must be one of \['median', 'default'\], got 'mean'"),
        ({"bandwidth": -1.0}, "bandwidth must be positive"),
        ({"reduction": "class_wise"}, r"reduction must be one of \['top_label'\]"),
        ({"kernel": "cosine"}, "kernel must be one of"),
        ({"kernel": "laplace"}, "kernel must have a Gaussian part .* got kernel='laplace'"),
        ({"kernel": "linear"}, "kernel must have a Gaussian part .* got kernel='linear'"),
        ({"kernel": np.matmul}, "kernel must have a Gaussian part .* got a callable kernel"),
        ({"test": 0}, "test must be at least 1, got 0"),
        ({"method": ckce.Blocks(5)}, r"method must be one of .*, got 'blocks'"),
        ({"method": ckce.Fourier(frequencies=np.ones((3, 3))), "bandwidth": 0.5}, "as given"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        ckce.compare(Y, Q, **options)


def test_sensitivity():
    c = ckce.compare(Y, Q)
    s = c.sensitivity(bandwidths=[0.5, 1.0], regularizations=[1.0, 2.0, 3.0])
    assert len(s.settings) == 6
    assert s.pairs == tuple((p.better, p.worse) for p in c.pairs if p.significant)
    assert s.differences.shape == (6, len(s.pairs))
    own = s.differences[3]
    assert own.tolist() == [abs(p.difference) for p in c.pairs if p.significant]
    better, worse = s.pairs[0]
    alone = ckce.common_ground(
        Y,
        Q[worse],
        Q[better],
        bandwidth=0.5 * c.bandwidth,
        regularization=3 * c.regularization,
    )
    # Landmarks are those of all models there, and of these two here.
    assert s.differences[2, 0] == pytest.approx(alone.difference, rel=0.05)
    assert s.survives
    assert s.agreement.tolist() == [1.0] * 6
    assert s.sentence == (
        f"the verdicts survive: {len(s.pairs)} differences at equal predictions keep their sign in "
        "all 6 settings"
    )
    assert s.sentence in str(s).replace("\n  ", " ")
    assert max(map(len, str(c.sensitivity()).splitlines())) <= 100
    stored = json.loads(json.dumps(s.to_dict()))
    assert stored["settings"][2]["differences"] == s.differences[2].tolist()
    assert stored["pairs"][0] == [better, worse]


def test_sensitivity_without_a_verdict():
    y, q = models(500, seed=2)
    c = ckce.compare(y, {"one": sharpened(q["good"], 0.97), "two": sharpened(q["good"], 1.03)})
    assert c.pairs[0].verdict == "not shown"
    s = c.sensitivity(bandwidths=[1.0], regularizations=[0.1, 1.0, 10.0])
    first, second = c.names
    assert s.pairs == ((second, first) if c.pairs[0].difference > 0 else (first, second),)
    assert s.differences[1, 0] == abs(c.pairs[0].difference)
    changed = int((s.differences < 0).sum())
    assert s.sentence == (
        "there is no verdict to survive, since no difference is shown: the order of the models at "
        f"equal predictions changes in {changed} of 3 settings"
    )


def survey(rows, pairs):
    """The sensitivity of verdicts with these differences, setting by setting."""
    return run_sensitivity(
        lambda pairs, bandwidth, lambdas: rows,
        pairs=pairs,
        shown=True,
        bandwidth=1.0,
        regularization=1.0,
        factors=([1.0], [1.0, 2.0, 3.0]),
        progress=False,
    )


def test_sentence_and_picture_of_the_sensitivity_tell_one_truth():
    pairs = [("a", "c"), ("b", "c")]
    s = survey([[4.0, 3.0], [3.0, 4.0], [3.0, 4.0]], pairs)
    assert s.survives
    assert s.sentence == (
        "the verdicts survive: 2 differences at equal predictions keep their sign in all 3 settings"
    )
    shown = s.plot()
    words = [text.get_text() for text in shown.texts] + [shown.get_title(loc="left")]
    assert words[:3] == ["100%"] * 3
    lost = survey([[4.0, 3.0], [-4.0, 4.0], [3.0, 4.0]], pairs)
    assert not lost.survives
    assert lost.sentence == (
        "the verdicts do not all survive: 1 of 2 differences at equal predictions changes its sign "
        "in some of the 3 settings, most often that of a and c (in 1)"
    )
    assert [text.get_text() for text in lost.plot().texts] == ["100%", "50%", "100%"]
    assert lost.sentence in repr(lost).replace("\n  ", " ")
    mpl.pyplot.close("all")


def test_colours_of_the_pairs_do_not_saturate():
    q = np.random.default_rng(1).dirichlet(np.ones(3), 4000)
    y = draw(q, np.random.default_rng(2))
    c = ckce.compare(y, {"a": q, "b": sharpened(q, 1.5), "c": sharpened(q, 2.5)})
    z = [abs(pair.z[0]) for pair in c.pairs]
    assert max(z) > 1.3 * min(z) > 4
    image = c.plot_pairs().images[0]
    colours = {tuple(image.cmap(image.norm(value))) for value in z}
    assert len(colours) == 3
    assert image.norm.vmax >= max(z)
    mpl.pyplot.close("all")


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"bandwidths": []}, r"bandwidths must not be empty, got \[\]"),
        ({"bandwidths": [0.0]}, r"bandwidths\[0\] must be positive and finite, got 0.0"),
        ({"regularizations": [1.0, -1]}, r"regularizations\[1\] must be positive"),
    ],
)
def test_bad_grids(grid, message):
    with pytest.raises(ValueError, match=message):
        ckce.compare(Y, Q).sensitivity(**grid)


def test_progress_bar(capsys):
    c = ckce.compare(Y, Q, progress=True)
    assert "compare 3 models" in capsys.readouterr().err
    c.sensitivity(bandwidths=[1.0], regularizations=[1.0], progress=True)
    assert "sensitivity" in capsys.readouterr().err


def test_plots():
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams)
    c = ckce.compare(Y, Q)
    ax = c.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == list(c.names)
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the best is on top
    points = ax.containers[0].lines[0].get_xdata()
    assert list(points) == [m.ckce_debiased for m in c.models]
    ax = c.plot_pairs()
    assert len(ax.texts) == 6
    ax = c.plot_differences()
    words = [label.get_text() for label in ax.get_yticklabels()]
    assert words[0] == "sharp is worse than good"
    assert ax.containers[0].lines[0].get_xdata()[0] == abs(c.pairs[0].difference)
    near = 0.1 * Q["good"]
    apart = ckce.compare(Y, {name: near + 0.9 * np.eye(3)[k] for k, name in enumerate("ab")})
    assert apart.pairs[0].verdict == "no common ground"
    assert [text.get_text() for text in apart.plot_differences().texts] == [" no common ground"]
    assert not apart.plot_pairs().texts
    s = c.sensitivity(bandwidths=[0.5, 1.0], regularizations=[1.0, 2.0, 3.0])
    assert [text.get_text() for text in s.plot().texts] == ["100%"] * 6
    _, given = plt.subplots()
    assert c.plot(given) is given
    assert dict(mpl.rcParams) == before
    plt.close("all")


def test_guard_rail_of_constant_models():
    frequencies = np.bincount(Y, minlength=Q["good"].shape[1]) / len(Y)
    baseline = np.tile(frequencies, (len(Y), 1))
    with_it = ckce.compare(Y, {**Q, "baseline": baseline})
    without = ckce.compare(Y, Q)
    (rail,) = [rail for rail in with_it.warnings if rail.name == "constant"]
    assert (rail.value, rail.limit) == (1.0, 0.0)
    assert rail.message.startswith("baseline always predicts the same: ")
    assert "says nothing about single cases" in rail.message
    assert "caution (constant): baseline" in str(with_it)
    assert "constant" not in {rail.name for rail in without.warnings}
    # It has no distances, so nobody else's number changes, and no bandwidth is out of place.
    assert with_it.bandwidth == without.bandwidth
    assert "bandwidth" not in {rail.name for rail in with_it.warnings}
    both = ckce.compare(Y, {**Q, "baseline": baseline, "uniform": np.full_like(baseline, 1 / 3)})
    (rail,) = [rail for rail in both.warnings if rail.name == "constant"]
    assert rail.value == 2.0
    assert " always predict the same: " in rail.message
    # Equal confidences are not equal predictions.
    shifted = np.array([np.roll([0.6, 0.3, 0.1], k) for k in np.arange(len(Y)) % 3])
    turning = ckce.compare(Y, {"good": Q["good"], "turning": shifted}, reduction="top_label")
    assert "constant" not in {rail.name for rail in turning.warnings}


def test_guard_rail_of_the_bandwidth():
    narrow = 1 / 3 + (Q["good"] - 1 / 3) / 50
    names = {rail.name for rail in ckce.compare(Y, {"good": Q["good"], "narrow": narrow}).warnings}
    assert "bandwidth" in names
    assert "bandwidth" not in {rail.name for rail in ckce.compare(Y, Q).warnings}


@pytest.mark.parametrize("kind", ["mirror", "last digit"])
def test_rounding_is_no_difference(kind):
    """Its standard error is rounding, too, so a p-value would be anything."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        a = rng.dirichlet(np.ones(5), 600)
        y, b = rng.integers(0, 5, 600), a * (1 + 2.2e-16 * rng.integers(-1, 2, a.shape))
        if kind == "mirror":
            y, b = np.full(600, 2), a[:, ::-1].copy()
        (pair,) = ckce.compare(y, {"a": a, "b": b}, bandwidth=0.4).pairs
        assert (pair.own_difference, pair.own_p_value, pair.verdict) == (0.0, 1.0, "not shown")
        assert pair.p_value > 0.5


def test_guard_rail_of_verdicts_that_the_own_miscalibration_contradicts():
    """The better one where both predict is the worse one where only it predicts."""
    rng = np.random.default_rng(0)
    n = 4000
    shared = rng.random(n) < 0.5
    q = np.where(shared, rng.uniform(0.1, 0.3, n), rng.uniform(0.6, 0.9, n))
    truth = np.where(shared, q, q - 0.45)  # a is right on the shared half only
    a, b = q, np.where(shared, np.clip(q + 0.12, 0.0, 1.0), truth)
    y = (rng.random(n) < truth).astype(int)
    c = ckce.compare(y, {"a": a, "b": b})
    assert c.pairs[0].better == "a"
    (rail,) = (rail for rail in c.warnings if rail.name == "contrary")
    off = {model.name: model.miscalibration for model in c.models}
    assert f"miscalibration {off['a']:.4f} against {off['b']:.5f}" in rail.message
    assert "contrary" not in rail_names(ckce.compare(Y, Q))


def test_a_table_of_models_is_not_a_dict():
    pandas = pytest.importorskip("pandas")
    y = np.arange(60) % 2
    table = pandas.DataFrame({"good": 0.1 + 0.8 * y, "over": np.linspace(0.1, 0.9, 60)})
    with pytest.raises(
        TypeError, match=r"got DataFrame; pass (\{name: .*\.columns\}) if each"
    ) as caught:
        ckce.compare(y, table)
    advice = re.search(r"\{.*\}", str(caught.value))[0]
    found = ckce.compare(y, eval(advice, {"y_prob": table}))  # the advice can be followed
    assert set(found.names) == {"good", "over"}
