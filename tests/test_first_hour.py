"""The first hour of a newcomer, played by examples/first_hour.py: every line that it prints is true."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import ckce

pytest.importorskip("sklearn")

SCRIPT = Path(__file__).parent.parent / "examples" / "first_hour.py"
MODELS = ("logistic", "bayes", "forest", "neighbours", "baseline")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("first_hour")


@pytest.fixture(scope="module")
def parts(folder):
    """What is printed under each headline."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "MPLBACKEND": "agg"},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    found = re.split(r"^## (.*)\n", done.stdout, flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


@pytest.fixture(scope="module")
def data(parts, folder):
    """What the script wrote."""
    with np.load(folder / "digits.npz") as file:
        return file["labels"], {name: file[name] for name in MODELS}


def test_the_parts(parts):
    assert list(parts) == [
        "Which model is calibrated best?",
        "Would other settings say the same?",
        "One model: is the forest calibrated?",
        "The baseline alone",
        "Labels that are words",
        "The same from files",
        "A notebook",
    ]


def test_no_ece_without_its_name(parts):
    text = "".join(parts.values()).replace("ckce.ece", "")
    assert text.count("ECE (") == len(re.findall(r"\bECE\b", text)) > 0
    forest = parts["One model: is the forest calibrated?"]
    (printed,) = re.findall(r"as other libraries compute it: (\S+)", forest)
    assert f"ECE (top label)   {printed}" in forest


def test_the_bandwidth_is_that_of_the_models(parts, data):
    y_true, probs = data
    comparison = ckce.compare(y_true, probs)
    own = {name: ckce.median_bandwidth(probs[name]) for name in MODELS if name != "baseline"}
    assert all(1 / 5 < comparison.bandwidth / gamma < 5 for gamma in own.values())
    assert f"bandwidth {comparison.bandwidth:.4g}," in parts["Which model is calibrated best?"]
    without = ckce.compare(y_true, {name: probs[name] for name in own})
    # A model without distances adds none: nothing but its own row changes.
    assert comparison.bandwidth == without.bandwidth
    values = {m.name: m.ckce_debiased for m in comparison.models}
    assert {m.name: m.ckce_debiased for m in without.models}.items() <= values.items()


def test_the_ranking(parts, data):
    text = parts["Which model is calibrated best?"]
    comparison = ckce.compare(*data)
    assert comparison.headline in " ".join(text.split())
    assert {"baseline", "logistic"} <= set(comparison.best)
    assert "bayes" not in comparison.best
    assert "baseline" in comparison.names[:2]  # it is calibrated
    assert [rail.name for rail in comparison.warnings].count("constant") == 1
    assert re.search(r"caution \(constant\): baseline always predicts the same", text)
    assert "caution (bandwidth)" not in text
    assert "caution (approximation)" not in text
    assert " inf " in text  # a log loss; nothing else is
    assert "nan" not in text


def test_no_interval_claims_what_cannot_be(parts):
    table = parts["Which model is calibrated best?"].strip().split("\n\n")[0]
    rows = [line for line in table.splitlines() if line.split()[0] in MODELS]
    assert len(rows) == 5
    ends = [re.search(r"(-?\d\.\d+) to (-?\d\.\d+)", row) for row in rows]
    for row, found in zip(rows, ends, strict=True):
        assert "no sign" in row if found is None else 0.0 <= float(found[1]) <= float(found[2])
    baseline = parts["The baseline alone"]
    assert "no sign of miscalibration" in baseline
    assert "mostly noise" not in baseline  # all rows are in one bin
    for name in ("The baseline alone", "One model: is the forest calibrated?"):
        assert not re.search(r"interval -|to -", parts[name])
        # The interval and the test do not contradict each other.
        assert ("the model is miscalibrated" in parts[name]) != ("no sign" in parts[name])


def test_the_sensitivity_is_one_truth(parts):
    text = parts["Would other settings say the same?"]
    sentence = " ".join(text.strip().split("\n\n")[-1].split())
    shares = {int(share) for share in re.findall(r"(\d+)%", text)}
    survives = "the verdicts survive" in sentence or "the verdict survives" in sentence
    assert survives == (shares == {100})
    assert max(map(len, text.splitlines())) <= 100


def test_words_and_numbers_agree(parts):
    text = parts["Labels that are words"]
    assert "without labels=: 1 warning\n" in text
    assert "taken in sorted order, 'eight', 'five', 'four'" in text
    assert "with labels=model.classes_: 0 warnings" in text
    guessed, told = re.search(r"debiased CKCE: (\S+) and (\S+)", text).groups()
    assert guessed == told


def test_the_command_line_says_the_same(parts, data, folder):
    text = parts["The same from files"]
    y_true, probs = data
    comparison = ckce.compare(y_true, probs)
    forest = ckce.estimate(y_true, probs["forest"]).debiased
    score, numbers, words, report = text.strip().split("$ ckce ")[1:]
    assert float(score.splitlines()[1]) == forest
    with np.load(folder / "words.npz") as file:
        names = file["labels"]
        of_words = ckce.compare(
            names, {name: file[name] for name in MODELS}, labels=list(np.unique(names))
        )
    for printed, expected in ((numbers, comparison), (words, of_words)):
        lines = [line.split("\t") for line in printed.splitlines() if "\t" in line]
        assert [name for name, _ in lines] == list(expected.names)
        values = [float(value) for _, value in lines]
        assert values == pytest.approx([m.ckce_debiased for m in expected.models], rel=1e-12)
    # Words come in another order of classes; where iterations of a fit end may depend on it.
    same = [name for name in MODELS if name != "logistic"]
    by_name = [dict(zip(c.names, c.models, strict=True)) for c in (comparison, of_words)]
    assert [by_name[1][name].ckce_debiased for name in same] == pytest.approx(
        [by_name[0][name].ckce_debiased for name in same], rel=1e-2
    )
    assert "warning" not in numbers
    assert words.count("warning") == 1
    assert "wrote ckce-report.html" in report
    assert comparison.headline in " ".join(report.split())
    assert (folder / "ckce-report.html").exists()


def test_the_notebook_shows_all(parts):
    text = parts["A notebook"].strip()
    if all(find_spec(package) for package in ("nbclient", "nbformat", "ipykernel")):
        assert text == "3 pictures, 1 table, 0 complaints"
    else:
        assert text.startswith("not run: pip install")
        pytest.skip("could not import 'nbclient'")
