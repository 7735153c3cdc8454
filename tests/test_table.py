"""How results are said: columns that line up, intervals, verdicts, and what every result shows."""

import dataclasses
import io
import json
import math
import re
import sys
from itertools import pairwise
from types import SimpleNamespace
from unicodedata import east_asian_width

import numpy as np
import pytest
from shared import sample

import ckce
from ckce._cli.terminal import Style
from ckce._results.interval import FEW_ROWS, in_words
from ckce._results.table import Column, Facts, Table, aligned, number, span, wrapped
from ckce._results.verdict import advice, verdict

Y, Q = sample(300, 3)
SHARP = Q**2 / (Q**2).sum(axis=1, keepdims=True)
COLUMNS = (
    Column("model", ("name",)),
    Column("value", ("value",), "unit", strong=True),
    Column("interval", ("low", "high"), "unit"),
    Column("loss", ("loss",), "loss"),
    Column("share", ("share",), form=".1%"),
)


def row(name, value, low, high, loss=0.5, share=0.25):
    return {"name": name, "value": value, "low": low, "high": high, "loss": loss, "share": share}


def cells_wide(line):
    """Columns of a terminal, by a count of our own."""
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in line)


def test_numbers_of_a_unit_share_their_decimals_and_line_up():
    rows = (
        row("好模型", 0.0472, 0.0359, 0.059),
        row("b", 0.00004, -0.001, 0.0012, math.inf),
        row("baseline", -0.0021, -0.003, -0.001),
    )
    lines = Table(COLUMNS, rows).text().splitlines()
    assert lines[1:] == [
        "好模型     0.0472  0.0359 to 0.0590  0.5000  25.0%",
        "b          0.0000  0.0000 to 0.0012     inf  25.0%",
        "baseline  -0.0021           no sign  0.5000  25.0%",
    ]
    assert len({cells_wide(line) for line in lines}) == 1


def test_small_numbers_keep_three_digits():
    rows = (row("a", 0.0051, 0.004, 0.006), row("b", 0.000082, 0.00001, 0.0001))
    lines = Table(COLUMNS, rows).text().splitlines()
    assert lines[1].split()[1:5] == ["0.00510", "0.00400", "to", "0.00600"]
    assert lines[2].split()[1] == "0.00008"
    assert (number(3.21e-5), number(0.9), number(2e-9)) == ("0.0000321", "0.9000", "2.00e-09")
    assert (number(-1e-12, ".4f"), number(None), number(math.inf)) == ("0.0000", "-", "inf")


def test_a_narrow_window_shows_the_first_columns():
    table = Table(COLUMNS, (row("a", 0.1, 0.05, 0.2),), lead="a " * 40, notes=("b " * 40,))
    for width in (80, 40, 30):
        lines = table.text(width).splitlines()
        assert max(map(len, lines)) <= width
        assert lines[0].split()[:2] == ["model", "value"]
    assert "share" not in table.text(40).splitlines()[0]
    words = " ".join(line.strip() for line in table.text(40).splitlines())
    assert "not shown here: share; a wider window or --json shows them" in words
    assert "not shown here" not in table.text(80)
    assert "not shown here" not in table.text()


def test_long_names_leave_room_for_numbers():
    long = [f"organisation/model-of-70B-parameters-quantised-to-{k}-bits-instruct" for k in (4, 8)]
    table = Table(COLUMNS, tuple(row(name, 0.1, 0.05, 0.2) for name in long))
    for width in (80, 50):
        header, *lines = table.lines(width)[:3]
        assert "interval" in header
        assert max(map(len, (header, *lines))) <= width
        assert len({line.split()[0] for line in lines}) == 2
        assert all("0.0500 to 0.2000" in line for line in lines)
    for whole in (table.text(), table.text(200), table.html()):
        assert all(name in whole for name in long)


def test_an_interval_of_rounding_is_none():
    # Of a model that always predicts the class frequencies.
    lines = Table(COLUMNS, (row("a", -0.0004, -7e-17, 7e-17),)).lines()
    assert "no sign" in lines[1]


def test_names_in_html_may_be_broken():
    html = Table(COLUMNS, (row("a_<b>", 0.1, 0.05, 0.2),)).html()
    assert ">a_<wbr>&lt;b&gt;</th>" in html


def test_columns_without_a_value_are_left_out():
    assert "share" not in Table(COLUMNS, (row("a", 0.1, 0.0, 0.2, share=None),)).text()


def test_sentences_are_broken_at_words():
    words = "the ranking survives " * 12
    lines = wrapped(words.strip(), 50)
    assert " ".join(line.strip() for line in lines) == words.strip()
    assert all(len(line) <= 50 for line in lines)
    assert all(line.startswith("  ") for line in lines[1:])
    assert span("好a") == 3


def test_a_number_keeps_its_unit():
    for width in range(20, 60):
        for line in wrapped("calibration -0.1 (95 %: -0.3 to 0.2), off by about 2.5 points", width):
            assert not line.strip().startswith(("%", "points"))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_lines_are_not_broken_twice(monkeypatch):
    remark = (
        "of the second class, kernel width 0.0117; 16.8 % of the predictions are 0 or 1 and count"
    )
    facts = Facts(
        (("ECE (smooth)", "0.0111", f"{remark} half, as in relplot"),), heading="h"
    ).text()
    assert len(facts.splitlines()) == 3
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    lines = Style(colours=False).facts(facts).splitlines()[1:]
    for line, following in pairwise(lines):  # the next word would not have fitted
        assert len(line) <= 80 < len(line) + 1 + len(following.split()[0])


def test_paint_and_html():
    table = Table(
        COLUMNS, (row("<b>\x1b", 0.1, 0, 0.2),), "h", "l", ("n",), (("rail", "m"),), signature="s"
    )
    painted = table.text(paint=lambda style, words: f"<{style}>{words}</>")
    assert "<yellow>caution (rail):</> m" in painted
    assert "<dim>signature s</>" in painted
    html = table.html()
    assert "&lt;b&gt;" in html
    assert "\x1b" not in html + table.text()


def test_facts():
    facts = Facts((("a", "0.5", "word " * 30), ("b", "inf", ""), ("c", "", "text")), "sig", "head")
    lines = facts.text().splitlines()
    assert lines[0] == "head"
    assert max(map(len, lines)) <= 100
    assert lines[-1].split() == ["signature", "sig"]
    assert aligned(["0.5", "12.25", "inf", "3"]) == [" 0.5 ", "12.25", "  inf", " 3   "]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.0359, 0.059, "95 % interval 0.0359 to 0.0590"),
        (-0.01, 0.012, "95 % interval 0 to 0.0120: no sign of miscalibration"),
        (-0.05, -0.01, "no sign of miscalibration: the 95 % interval lies below 0"),
        (-7e-17, 7e-17, "no sign of miscalibration: the 95 % interval lies below 0"),
        (math.nan, math.nan, "no interval"),
    ],
)
def test_intervals_in_words(low, high, words):
    assert in_words(low, high, 0.95) == words


def model(low=0.01, p=None, confidence=0.9, accuracy=0.74, constant=False):
    numbers = {"ckce_low": low, "mean_confidence": confidence, "accuracy": accuracy}
    return SimpleNamespace(name="m", p_value=p, constant=constant, **numbers)


def test_verdict_and_advice():
    over = model()
    assert verdict(over, 1000, 0.95) == "m is miscalibrated, and overconfident by 16.0 points"
    assert advice(over, 1000, 0.95).startswith("overconfident by 16.0 points: try temperature sc")
    under = advice(model(confidence=0.6), 1000, 0.95)
    assert under.startswith("underconfident by 14.0 points")
    even = model(confidence=0.741)
    assert verdict(even, 1000, 0.95) == "m is miscalibrated"
    assert "one temperature will not mend it" in advice(even, 1000, 0.95)
    assert advice(model(constant=True), 1000, 0.95).startswith("always predicts the same")
    fine = model(low=-0.01, p=0.3)
    assert verdict(fine, 1000, 0.95) == "There is no sign that m is miscalibrated"
    assert advice(fine, 1000, 0.95).startswith("no sign of miscalibration")
    assert "p = 0.001" in verdict(model(low=-0.01, p=0.001), 1000, 0.95)
    assert "temperature" in advice(model(low=-0.01, p=0.001), 1000, 0.95)
    assert verdict(over, FEW_ROWS - 1, 0.95).startswith("Too few rows to tell")
    assert advice(over, FEW_ROWS - 1, 0.95).startswith("too few rows to tell")


def test_few_rows_have_no_best():
    few = ckce.compare(Y[:40], {"a": Q[:40], "b": SHARP[:40]})
    assert few.headline == "Too few rows to tell which of 2 models is the best calibrated"


RESULTS = {
    "compare": lambda: ckce.compare(Y, {"a": Q, "b": SHARP}),
    "sensitivity": lambda: ckce.compare(Y, {"a": Q, "b": SHARP}).sensitivity(
        bandwidths=[1.0], regularizations=[1.0]
    ),
    "shift_curve": lambda: ckce.shift_curve(Y, {"a": [Q, SHARP]}),
    "calibration_test": lambda: ckce.calibration_test(Y, Q, n_resamples=19),
    "attribution": lambda: ckce.estimate(Y, Q).attribution(),
    "reliability_diagram": lambda: ckce.reliability_diagram(Y, Q),
    "report": lambda: ckce.report(Y, Q),
    "brier_decomposition": lambda: ckce.brier_decomposition(Y, Q),
    "ece_estimate": lambda: ckce.ece_estimate(Y, Q),
    "evaluate": lambda: ckce.evaluate(Y, Q),
    "miscalibration": lambda: ckce.miscalibration(Y, Q),
    "witness": lambda: ckce.witness(Y, Q),
    "worst_regions": lambda: ckce.witness(Y, Q).worst_regions(2),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_shows_itself(name):
    result = RESULTS[name]()
    html = result._repr_html_()
    assert re.search(r"<table|<iframe", html)
    text = repr(result)
    assert "array(" not in text
    assert "object at 0x" not in text
    for line in text.splitlines():
        assert len(line) <= 130 or "|" in line  # a signature is one word
    assert type(result).__name__ not in text  # no fields in brackets


def test_a_witness_says_how_to_go_on():
    found = ckce.witness(Y, Q)
    assert str(found).startswith("witness of CKCE, n = 300, m = 3, lambda 0.24")
    assert all(
        step in repr(found) for step in ("w(q)", "correction(q)", "worst_regions()", "plot()")
    )
    regions = found.worst_regions(2)
    assert isinstance(regions, list)
    for line, region in zip(str(regions).splitlines()[1:], regions, strict=True):
        assert line.endswith(region.words)
    assert repr(type(regions)()) == "too few rows to look for regions"


def keys(record):
    """Names of the numbers in a dict, at any depth."""
    if isinstance(record, dict):
        return {*record, *(name for value in record.values() for name in keys(value))}
    return {name for item in record for name in keys(item)} if isinstance(record, list) else set()


def test_one_key_for_one_thing():
    comparison = ckce.compare(Y, {"a": Q, "b": SHARP})
    expected = {f"ckce{end}" for end in ("", "_floor", "_debiased", "_se", "_low", "_high")}
    expected |= {"jkce", "jkce_se", "ece_top_label", "brier", "log_loss", "accuracy"}
    point = ckce.shift_curve(Y, {"a": [Q]}).to_dict()["points"][0]
    page = ckce.report(Y, Q).data["models"][0]
    for record in (comparison.to_dict()["models"][0], point, page):
        assert expected - set(record) <= {"brier", "log_loss"}
        assert not {"floor", "debiased", "ece", "ece_top"} & keys(record)
    assert expected <= set(comparison.to_frame().columns)
    json.dumps(comparison.to_dict(), allow_nan=False)
    assert "ECE (top label)" in repr(comparison)
    assert comparison.estimates["b"].debiased == comparison.models[1].ckce_debiased


def test_estimates_of_a_comparison_know_the_names_of_the_classes():
    names = np.array(["x", "y", "z"])
    comparison = ckce.compare(names[Y], {"a": Q, "b": SHARP}, labels=names)
    assert comparison.estimates["a"].classes == ("x", "y", "z")
    assert dataclasses.is_dataclass(comparison.estimates["a"])


def test_one_level_for_all():
    options = {"level": 0.8}
    evaluation = ckce.evaluate(Y, SHARP, **options)
    e, j = evaluation.ckce, evaluation.jkce
    assert "80 % interval" in repr(e)
    assert "80 % interval" in repr(j)
    assert e.interval() == e.interval(0.8) == ckce.estimate(Y, SHARP).interval(0.8)
    assert j.interval() == ckce.jkce_estimate(Y, SHARP).interval(0.8)
    low, high = evaluation.to_dict()["ckce_low"], evaluation.to_dict()["ckce_high"]
    assert (low, high) == e.interval()
    comparison = ckce.compare(Y, {"a": Q, "b": SHARP}, **options)
    assert comparison.estimates["b"].level == 0.8
    test = ckce.calibration_test(Y, SHARP, level=0.9, n_resamples=19)
    assert test.to_dict()["level"] == 0.9
    for strict, words in (
        (0.5, "the model is miscalibrated"),
        (0.999, "no sign of miscalibration"),
    ):
        assert words in repr(ckce.calibration_test(Y, SHARP, level=strict, n_resamples=19))


def test_words_follow_the_test():
    # An interval that reaches 0 beside a test that rejects: no word of "no sign".
    assert in_words(-0.1, 0.2, 0.95, rejected=True) == "95 % interval 0 to 0.2000"
    assert in_words(-0.1, 0.2, 0.95) == "95 % interval 0 to 0.2000: no sign of miscalibration"
    assert "no sign" not in in_words(-0.2, -0.1, 0.95, rejected=True)
    rejected = ckce.evaluate(Y, SHARP, test=99)
    assert rejected.test.p_value < 0.05
    assert "99 resamples: the model is miscalibrated" in repr(rejected)
    assert "no sign" not in repr(rejected)
