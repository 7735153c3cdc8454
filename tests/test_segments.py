"""by=: segments of the rows, one by one."""

import json

import numpy as np
import pandas as pd
import pytest
from shared import sample

import ckce
from ckce._input.segments import check_segments

N = 600
Y, Q = sample(N, 3)
REGION = np.array(["north", "south", "west"])[np.arange(N) % 3]
WEIGHTS = 0.5 + np.arange(N) % 4


def row_by_row(rows, **options):
    """What a segment must be: its rows, with bandwidth and lambda of all rows."""
    options = {**options, "bandwidth": 0.6, "regularization": 0.3}
    weights = options.pop("sample_weight", None)
    own = {} if weights is None else {"sample_weight": weights[rows]}
    groups = options.pop("groups", None)
    own |= {} if groups is None else {"groups": groups[rows]}
    return ckce.estimate(Y[rows], Q[rows], **own, **options)


@pytest.mark.parametrize("method", ["exact", "fourier", "cholesky"])
@pytest.mark.parametrize("extra", ["", "weights", "groups", "top_label"])
def test_a_segment_is_an_estimate_of_its_rows(method, extra):
    options = {
        "": {},
        "weights": {"sample_weight": WEIGHTS},
        "groups": {"groups": np.arange(N) // 5},
        "top_label": {"reduction": "top_label"},
    }[extra]
    fixed = {"bandwidth": 0.6, "regularization": 0.3}
    found = ckce.evaluate(Y, Q, by=REGION, method=method, **fixed, **options).segments
    assert [row.name for row in found.rows] == ["north", "south", "west"]
    assert found.level_each == 0.95 ** (1 / 3)
    for row in found.rows:
        rows = row.name == REGION
        e = row_by_row(rows, method=method, **options)
        assert (row.ckce, row.ckce_debiased, row.ckce_se) == (e.value, e.debiased, e.se)
        assert row.ckce_floor == e.floor
        assert (row.ckce_low, row.ckce_high) == e.interval(found.level_each)
        weights = options.get("sample_weight")
        weights = None if weights is None else weights[rows]
        assert row.accuracy == ckce.accuracy(Y[rows], Q[rows], sample_weight=weights)
        assert row.brier == ckce.brier(Y[rows], Q[rows], sample_weight=weights)
        assert row.n_samples == 200
        own = {} if weights is None else {"sample_weight": weights}
        own |= {"groups": options["groups"][rows]} if extra == "groups" else {}
        own |= {"reduction": "top_label"} if extra == "top_label" else {}
        size = ckce.miscalibration(Y[rows], Q[rows], bandwidth=0.6, level=found.level_each, **own)
        sizes = (row.miscalibration, row.miscalibration_low, row.miscalibration_high)
        assert sizes == pytest.approx((size.value, size.low, size.high), rel=1e-12)


def test_bandwidth_and_lambda_are_those_of_all_rows():
    e = ckce.evaluate(Y, Q, by=REGION)
    rows = REGION == "west"
    alone = ckce.estimate(
        Y[rows], Q[rows], bandwidth=e.ckce.bandwidth, regularization=e.ckce.regularization
    )
    assert e.segments.rows[2].ckce_debiased == alone.debiased
    size = ckce.miscalibration(Y[rows], Q[rows], level=e.segments.level_each)
    assert e.segments.rows[2].miscalibration == pytest.approx(size.value, rel=1e-12)
    assert e.segments.rows[2].miscalibration_high == pytest.approx(size.high, rel=1e-12)
    assert e.segments.bandwidth == e.ckce.bandwidth
    assert e.segments.regularization == e.ckce.regularization


def test_a_comparison_has_every_model_in_every_segment():
    sharp = Q**2 / (Q**2).sum(axis=1, keepdims=True)
    c = ckce.compare(Y, {"plain": Q, "sharp": sharp}, by={"region": REGION, "late": Y > 1})
    rows = c.segments.rows
    assert len(rows) == 10
    assert c.segments.level_each == 0.95 ** (1 / 10)
    assert {row.name for row in rows} >= {"region: north", "late: True"}
    west = REGION == "west"
    alone = ckce.estimate(
        Y[west], sharp[west], bandwidth=c.bandwidth, regularization=c.regularization
    )
    (row,) = (r for r in rows if r.name == "region: west" and r.model == "sharp")
    assert row.ckce_debiased == alone.debiased
    assert c.to_dict()["segments"]["segments"][0]["model"] in ("plain", "sharp")
    assert json.dumps(c.to_dict())
    assert "region: west" in str(c)
    assert "region: west" in c._repr_html_()


def test_small_segments_are_named_and_counted():
    by = np.where(np.arange(N) < 40, "tiny", REGION)
    segments = ckce.evaluate(Y, Q, by=by).segments
    assert segments.too_small == {"tiny": 40}
    assert "fewer than 50 rows: tiny (40 rows)" in repr(segments)
    frame = segments.to_frame()
    assert frame.loc["tiny", "n_samples"] == 40
    assert np.isnan(frame.loc["tiny", "ckce_debiased"])
    assert segments.to_dict()["too_small"] == {"tiny": 40}
    grouped = ckce.evaluate(Y, Q, by=REGION, groups=np.where(REGION == "west", 0, np.arange(N)))
    assert grouped.segments.too_small == {"west": 200}
    assert "50 rows or 10 groups: west" in repr(grouped.segments)


def test_values_of_any_kind():
    def names(by):
        return [row.name for row in ckce.evaluate(Y, Q, bandwidth=0.6, by=by).segments.rows]

    numbers = np.arange(N) % 12
    assert names(numbers) == [str(k) for k in range(12)]  # not 0, 1, 10, 11, 2
    assert names(numbers > 5) == ["False", "True"]
    assert names(numbers.astype(float)) == [f"{k}.0" for k in range(12)]
    assert names(REGION.astype(object)) == ["north", "south", "west"]
    assert names(np.array([1, "1"], object)[np.arange(N) % 2]) == ["1", "'1'"]
    ordered = pd.Categorical(REGION, categories=["west", "north", "south", "void"])
    assert names(ordered) == names(pd.Series(ordered)) == ["west", "north", "south"]
    empty = ckce.evaluate(Y, Q, bandwidth=0.6, by=ordered).segments
    assert empty.too_small == {"void": 0}
    table = pd.DataFrame({"region": REGION, "half": numbers % 2})
    assert len(names(table)) == 5
    series = pd.Series(REGION, name="region")
    assert repr(ckce.evaluate(Y, Q, by=series).segments).startswith("region")


def test_a_column_of_the_predictions():
    table = pd.DataFrame(Q, columns=["0", "1", "2"])
    expected = ckce.evaluate(Y, Q, by=REGION)
    found = ckce.evaluate(Y, table.assign(region=REGION), by="region")
    assert found.ckce == expected.ckce
    assert [r.ckce for r in found.segments.rows] == [r.ckce for r in expected.segments.rows]
    both = {"a": table.assign(region=REGION), "b": table**2 / (Q**2).sum(axis=1)[:, None]}
    assert len(ckce.compare(Y, both, by="region").segments.rows) == 6
    assert "By segment" in ckce.report(Y, both["a"], by="region", test=False).html
    with pytest.raises(ValueError, match="same for all models"):
        ckce.compare(Y, {"a": both["a"], "b": table.assign(region=REGION[::-1])}, by="region")


def test_rows_of_weight_zero_are_in_no_segment():
    weights = (np.arange(N) % 2).astype(float) * 2
    found = ckce.evaluate(Y, Q, by=REGION, sample_weight=weights).segments
    kept = weights > 0
    expected = ckce.evaluate(Y[kept], Q[kept], by=REGION[kept], sample_weight=weights[kept])
    assert found.rows == expected.segments.rows
    assert sum(row.n_samples for row in found.rows) == N // 2


def test_many_segments_are_cut_in_words_only():
    y, q = sample(5000, 3, 1)
    segments = ckce.evaluate(y, q, bandwidth=0.6, by=np.arange(5000) // 50).segments
    assert len(segments.rows) == 100
    words = " ".join(repr(segments).split())
    assert "The 40 largest of 100 lines are shown; to_frame() has all" in words
    assert len(segments.to_frame()) == len(segments.to_dict()["segments"]) == 100
    assert len(segments.lines) == 40


def test_sentences():
    truth = np.repeat([0, 1], 300)
    truth[0] = 1  # else the segments were the labels
    where = np.repeat(["bad", "good"], 300)
    q = np.where(where == "bad", 0.3, 1.0)  # 1 hardly happens at 0.3
    segments = ckce.evaluate(truth, q, bandwidth=0.5, by=where).segments
    assert segments.sentences == ("Miscalibration is shown in 1 of 2 segments: bad.",)
    calm = ckce.evaluate(truth, truth.astype(float), bandwidth=0.5, by=where).segments
    assert calm.sentences == ("No miscalibration is shown in any of 2 segments.",)


def test_the_signature_names_the_segments():
    first = ckce.evaluate(Y, Q, by=REGION).segments.signature
    assert first != ckce.evaluate(Y, Q, by=REGION[::-1]).segments.signature
    assert "|by:array(" in first


@pytest.mark.parametrize(
    ("by", "error", "words"),
    [
        (REGION[:-1], ValueError, r"by must have shape \(600,\)"),
        (REGION[:, None], ValueError, "dict of columns"),
        (np.linspace(0, 1, N), ValueError, "600 distinct numbers in 600 rows.*pandas.cut"),
        (np.where(REGION == "west", None, REGION), ValueError, "by row 2 is missing .200 of 600"),
        (np.where(np.arange(N) == 7, np.nan, 1.0), ValueError, "by row 7 is missing .1 of 600"),
        (pd.Series(REGION).astype("category").where(REGION != "west"), ValueError, "row 2 is miss"),
        (np.arange(N), ValueError, "at least one segment of 50 rows, got '0 .1 rows.'.*and 592"),
        ({}, ValueError, "empty dict"),
        ({"age": [1, 2]}, ValueError, r"by\['age'\] must have shape \(600,\)"),
        ("region", ValueError, "by must name a column of y_prob.*got 'region' and no table"),
        ([{}] * N, TypeError, "strings or integers, got dict"),
        (pd.Series(REGION, index=np.arange(N)[::-1]), ValueError, "same index"),
    ],
)
def test_refusals(by, error, words):
    truth = pd.Series(Y) if isinstance(by, pd.Series) else Y
    for call in (
        lambda: ckce.evaluate(truth, Q, by=by),
        lambda: ckce.compare(truth, {"a": Q, "b": Q}, by=by),
        lambda: ckce.report(truth, Q, by=by),
    ):
        with pytest.raises(error, match=words):
            call()


def test_a_misspelt_column():
    with pytest.raises(ValueError, match="did you mean 'region'"):
        ckce.evaluate(Y, pd.DataFrame(Q).assign(region=REGION), by="regoin")


def test_nothing_is_asked_of_the_values():
    assert check_segments(None, Y, None) == ()
    assert ckce.evaluate(Y, Q).segments is None
    assert ckce.compare(Y, {"a": Q, "b": Q}).to_dict()["segments"] is None


def test_plot():
    plt = pytest.importorskip("matplotlib.pyplot")
    segments = ckce.evaluate(Y, Q, by=REGION).segments
    ax = segments.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["north", "south", "west"]
    plt.close("all")


def test_the_report_has_a_section():
    page = ckce.report(Y, {"a": Q, "b": Q**2 / (Q**2).sum(axis=1, keepdims=True)}, by=REGION)
    assert '<section id="by-segment">' in page.html
    assert page.data["segments"]["segments"][0]["name"] == "north"
    assert '<section id="by-segment">' not in ckce.report(Y, Q, test=False).html


def test_segments_that_are_the_label():
    words = "by seems to be the label.*chosen by the outcome are miscalibrated by construction"
    with pytest.warns(UserWarning, match=words):
        ckce.evaluate(Y, Q, by=Y)
    with pytest.warns(UserWarning, match=words.replace("by", r"by\['outcome'\]", 1)):
        ckce.compare(
            Y, {"a": Q, "b": Q}, by={"region": REGION, "outcome": np.array(list("abc"))[Y]}
        )
    rare = np.arange(N) < 10  # in so few rows a single label may be chance
    with pytest.warns(UserWarning, match=words):
        ckce.evaluate(Y, Q, by=np.where(rare, 3, Y))
    ckce.evaluate(np.zeros(N, int), Q, by=REGION)  # warnings are errors here
    ckce.evaluate(Y, Q, by=Y == 0)
