"""The command line: what it prints, and what it says of wrong uses."""

import argparse
import contextlib
import gzip
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from shared import sample

import ckce
from ckce._cli.main import main
from ckce._cli.parser import make_parser
from ckce._cli.prices import announce

Y, Q = sample(150, 3)
SHARP = Q**3 / (Q**3).sum(axis=1, keepdims=True)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Runs a command in a folder of its own: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def call(line):
        try:
            code = main(line.split() if isinstance(line, str) else line)
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return call


def write_files():
    """The files of the tests, in the current folder."""
    np.savez("preds.npz", probs=Q, labels=Y)
    np.savez("sharp.npz", probs=SHARP, labels=Y)
    np.savez("logits.npz", probs=np.log(Q) + 3.0, labels=Y)
    np.savez("logprobs.npz", probs=np.log(Q), labels=Y)
    np.savez("one_based.npz", probs=Q, labels=Y + 1)
    np.savez("percent.npz", probs=100 * Q, labels=Y)
    np.savez("scaled.npz", probs=0.9 * Q, labels=Y)
    np.savez("unequal.npz", probs=Q, labels=Y[1:])
    np.savez("empty.npz", probs=Q[:0], labels=Y[:0])
    np.savez("nan.npz", probs=np.where(Q[7, 2] == Q, np.nan, Q), labels=Y)
    np.savez("real_labels.npz", probs=Q, labels=Y.astype(float))
    np.savez("one_hot.npz", probs=Q, labels=np.eye(3)[Y])
    np.savez("cube.npz", probs=Q[None], labels=Y)
    np.savez("names.npz", probs=Q, labels=np.array(["a", "b", "c"])[Y])
    np.savez("four.npz", probs=np.full((150, 4), 0.25), labels=Y)
    np.savez("objects.npz", probs=Q, labels=Y.astype(object))
    np.save("q.npy", Q)
    np.save("y.npy", Y)
    lines = [f"{y},{','.join(map(repr, q))}" for y, q in zip(Y, Q.tolist(), strict=True)]
    with open("preds.csv", "w") as file:
        file.write("\n".join(["label,p0,p1,p2", *lines]))
    with open("hole.csv", "w") as file:
        file.write("label,p0,p1,p2\n0,1,0,\n")
    with open("huge.npy", "wb") as file:
        file.write(b"\x93NUMPY\x02\x00\xff\xff\xff\xff")
    with open("notes.txt", "w") as file:
        file.write("0.5")
    with open("not.npz", "w") as file:
        file.write("0.5")
    os.mkdir("folder")


SAME = [
    "score preds.npz",
    "score q.npy --labels y.npy",
    "score preds.csv --probs p",
    "score preds.csv --probs p0,p1,p2",
    "score preds.csv --probs *",
    "score logprobs.npz --input log_probs",
    "score scaled.npz --normalize",
    "score one_based.npz --classes 1..3",
    "score names.npz --classes a,b,c",
    "score logits.npz --input logits",
]


@pytest.mark.parametrize("line", SAME)
def test_score_gives_the_number_of_the_library(run, line):
    write_files()
    code, out, err = run(line)
    assert (code, err) == (0, "")
    data = json.loads(out)
    expected = ckce.evaluate(Y, Q).to_dict()
    assert data["ckce"] == pytest.approx(expected["ckce"], rel=1e-12)
    assert {"files", *expected} == set(data)


def test_score_options_reach_the_metric(run):
    write_files()
    options = {"method": "fourier", "kernel": "gaussian", "bandwidth": 0.5, "regularization": 0.3}
    words = [f"--{name}={value}" for name, value in options.items()]
    data = json.loads(run(["score", "preds.npz", "--seed=3", "--bins=7", "--threads=1", *words])[1])
    expected = ckce.evaluate(Y, Q, random_state=3, n_bins=7, **options).to_dict()
    assert {name: data[name] for name in expected} == expected


def test_shards_are_one_data_set(run):
    write_files()
    np.savez("first.npz", probs=Q[:70], labels=Y[:70])
    np.savez("second.npz", probs=Q[70:], labels=Y[70:])
    code, out, _ = run("score first.npz second.npz --shards --quiet")
    assert code == 0
    assert float(out) == ckce.estimate(Y, Q).debiased


def test_tables_of_score(run):
    write_files()
    code, out, err = run("score preds.npz --text")
    assert (code, err) == (0, "")
    assert out == f"preds.npz\n{ckce.evaluate(Y, Q)}\n"
    painted = run("score preds.npz --text --color always")[1]
    assert painted != out
    assert re.sub(r"\x1b\[\d+m", "", painted) == out


def test_names_of_files_cannot_steer_the_terminal(run):
    np.savez("a\x1b[31mb.npz", probs=Q, labels=Y)
    assert "\x1b" not in run(["score", "a\x1b[31mb.npz", "--text"])[1]
    assert "\x1b" not in run(["score", "a\x1b[31mc.npz", "--text"])[2]


def test_compare_gives_the_numbers_of_the_library(run):
    write_files()
    code, out, err = run("compare sharp.npz preds.npz --level 0.9")
    assert (code, err) == (0, "")
    expected = ckce.compare(Y, {"sharp": SHARP, "preds": Q}, level=0.9)
    data = json.loads(out)
    assert data == {"files": ["sharp.npz", "preds.npz"], **expected.to_dict()}
    assert data["models"][0]["name"] == "preds"


def test_arrays_of_objects_beside_the_predictions_are_left_alone(run):
    write_files()
    np.savez("named.npz", probs=Q, labels=Y, image=np.array([f"{i}" for i in Y], object))
    code, out, err = run("report named.npz -o page.html")
    assert (code, err) == (0, "")
    code, out, err = run("compare named.npz sharp.npz")
    assert (code, err) == (0, "")
    assert json.loads(out)["n_samples"] == len(Y)


def test_compare_with_shared_labels_and_names(run):
    write_files()
    np.save("r.npy", SHARP)
    line = "compare q.npy r.npy --labels y.npy --names good,bad --kernel gaussian --test --quiet"
    code, out, err = run(line)
    assert (code, err) == (0, "")
    c = ckce.compare(Y, {"good": Q, "bad": SHARP}, kernel="gaussian")
    assert out == "".join(f"{e.name}\t{e.ckce_debiased!r}\n" for e in c.models)


def test_labels_may_differ_but_that_is_said(run):
    write_files()
    np.savez("other.npz", probs=SHARP, labels=Y[::-1])
    code, out, err = run("compare preds.npz other.npz")
    assert code == 0
    assert re.fullmatch(r"ckce: warning: the files hold different labels; rows are .*\n", err)
    assert json.loads(out)["models"][1]["accuracy"] == ckce.accuracy(Y[::-1], SHARP)


def test_table_of_compare(run, tmp_path):
    write_files()
    c = ckce.compare(Y, {"sharp": SHARP, "preds": Q})
    assert run("compare sharp.npz preds.npz --text")[1] == f"{c}\n"
    header = next(line for line in str(c).splitlines() if line.startswith("model"))
    shown = on_a_terminal(tmp_path, "compare sharp.npz preds.npz", COLUMNS="60", NO_COLOR="1")
    narrow = next(line for line in shown.splitlines() if line.startswith("model"))
    assert 30 < len(narrow) <= 60 < len(header)
    assert header.split()[: len(narrow.split())] == narrow.split()  # the first matter most


def test_models_of_the_same_name_keep_their_folders(run):
    write_files()
    np.savez("folder/preds.npz", probs=SHARP, labels=Y)
    out = run("compare preds.npz folder/preds.npz --quiet")[1]
    assert [line.split("\t")[0] for line in out.splitlines()] == ["preds.npz", "folder/preds.npz"]


def test_report(run):
    write_files()
    line = "report sharp.npz preds.npz -o page.html --no-sensitivity --title Two --subtitle Monday"
    code, out, err = run(line)
    assert (code, err) == (0, "")
    page = ckce.report(
        Y,
        {"sharp": SHARP, "preds": Q},
        title="Two\nMonday",
        sensitivity=False,
    ).made_by(f"ckce {line}")
    with open("page.html", encoding="utf-8") as file:
        assert file.read() == page.html
    size = os.path.getsize("page.html")
    assert json.loads(out) == {"report": "page.html", "bytes": size, "headline": page.headline}
    assert run("report preds.npz -o page.html --quiet")[1] == "page.html\n"
    alone = ckce.report(Y, {"preds": Q}).headline
    assert run("report preds.npz -o page.html --text")[1].startswith(f"{alone}\nwrote page.html (")


def test_report_names_the_classes(run):
    write_files()
    with open("named.csv", "w") as file:
        rows = (f"{'abc'[y]},{','.join(map(repr, q))}" for y, q in zip(Y, Q.tolist(), strict=True))
        file.write("\n".join(["label,p_a,p_b,p_c", *rows]))
    assert run("report named.csv --probs p_* -o page.html")[0] == 0
    with open("page.html", encoding="utf-8") as file:
        page = file.read()
    assert all(f"<td>{name}</td>" in page or f">{name}<" in page for name in "abc")


def test_states(run):
    write_files()
    np.savez("first.npz", probs=Q[:70], labels=Y[:70])
    np.savez_compressed("second.npz", probs=Q[70:], labels=Y[70:])
    options = "--bandwidth 0.6 --frequencies 40 --seed 2 --kernel gaussian"
    for name in ("first", "second"):
        code, out, err = run(f"stream {name}.npz -o {name}.ckce --shard {name} {options}")
        assert (code, err) == (0, "")
    assert json.loads(out)["n_samples"] == 80
    alone = ckce.CKCEAccumulator(
        3, bandwidth=0.6, random_state=2, kernel="gaussian", method=ckce.Fourier(40)
    )
    alone.update(Y, Q)
    expected = alone.evaluate().ckce_debiased
    for line in (
        "merge first.ckce second.ckce -o all.ckce",
        "score all.ckce",
        "merge all.ckce",
        "score first.ckce second.ckce --shards",
    ):
        code, out, err = run(f"{line} --quiet")
        assert (code, err) == (0, "")
        assert float(out) == pytest.approx(expected, rel=1e-10)
    assert "no interval: needs the rows" in run("score all.ckce --text")[1]
    assert run("merge first.ckce first.ckce")[2] == (
        "ckce: error: first.ckce cannot be merged with first.ckce: shard_id 'first' is in both "
        "states; merge it once\n"
    )
    run(
        "stream preds.npz -o other.ckce --bandwidth 0.7 --frequencies 40 --seed 2 --kernel gaussian"
    )
    assert re.search(
        "other.ckce cannot be merged with first.ckce: bandwidth must be the same to merge, got 0.6 "
        "and 0.7; make both with one --bandwidth\n",
        run("merge first.ckce other.ckce")[2],
    )
    run("stream preds.npz -o landmarks.ckce --landmarks 20")
    err = run("merge first.ckce landmarks.ckce")[2]
    assert err.endswith("got 'fourier' and 'landmarks'\n")
    with open("all.ckce", "r+b") as file:
        file.seek(1000)
        file.write(b"x")
    code, out, err = run("score all.ckce")
    assert (code, out) == (1, "")
    assert "all.ckce" in err


def test_a_state_counts_once(run):
    write_files()
    run("stream preds.npz -o a.ckce")
    assert run("merge a.ckce ./a.ckce") == (2, "", "ckce: error: each file must be given once\n")


def test_states_on_landmarks(run):
    write_files()
    np.savez("first.npz", probs=Q[:70], labels=Y[:70])
    np.savez("second.npz", probs=Q[70:], labels=Y[70:])
    assert run("stream first.npz -o first.ckce --landmarks 30")[0] == 0
    code, _, err = run("stream second.npz -o second.ckce --landmarks first.ckce")
    assert (code, err) == (0, "")
    alone = ckce.CKCEAccumulator.from_sample(Y[:70], Q[:70], method=ckce.Landmarks(30))
    alone.update(Y, Q)
    code, out, err = run("merge first.ckce second.ckce --json")
    assert (code, err) == (0, "")
    assert json.loads(out)["ckce"] == pytest.approx(alone.compute(), rel=1e-12)
    assert json.loads(out)["ckce_method"] == "landmarks"
    text = run("merge first.ckce second.ckce --text")[1]
    assert "landmarks features" in text
    assert "on the distance to exact CKCE" in text
    run(f"stream second.npz -o other.ckce --landmarks 20 --bandwidth {alone.bandwidth!r}")
    assert "; make both with --landmarks first.ckce\n" in run("merge first.ckce other.ckce")[2]
    run("stream second.npz -o fourier.ckce")
    for line, words in {
        "--landmarks fourier.ckce": "fourier.ckce must be a state of ckce stream --landmarks",
        "--landmarks first.ckce --bandwidth 0.1": "argument --bandwidth: first.ckce has",
        "--landmarks 0": "argument --landmarks: must be an integer from 1 to",
        "--landmarks missing.ckce": "missing.ckce",
        "--landmarks 20 --frequencies 7": "--frequencies: belongs to --method fourier, got --landm",
        "--method fourier --landmarks 20": "--landmarks: belongs to --method landmarks, got --met",
    }.items():
        code, out, err = run(f"stream second.npz -o refused.ckce {line}")
        assert code > 0
        assert words in err
        assert err.count("\n") == 1


def test_many_predictions_stay_on_disk(run, monkeypatch):
    write_files()
    np.savez_compressed("preds.npz", probs=Q, labels=Y)
    expected = run("score preds.npz")
    monkeypatch.setattr("ckce._cli.reading._IN_MEMORY", 100)
    seen = []
    evaluate = ckce.evaluate
    monkeypatch.setattr(
        ckce, "evaluate", lambda y, q, **o: (seen.append(q), evaluate(y, q, **o))[1]
    )
    assert run("score preds.npz") == expected
    assert isinstance(seen[0].base, np.memmap)


def test_quiet_is_the_debiased_value_everywhere(run):
    write_files()
    expected = ckce.estimate(Y, Q).debiased
    assert float(run("score preds.npz --quiet")[1]) == expected
    width = ckce.estimate(Y, Q).bandwidth
    out = run(f"compare preds.npz sharp.npz --bandwidth {width!r} --quiet")[1]
    assert float(out.splitlines()[0].split("\t")[1]) == pytest.approx(expected, rel=1e-12)
    run(f"stream preds.npz -o all.ckce --bandwidth {width!r}")
    state = ckce.CKCEAccumulator.load("all.ckce").evaluate()
    assert float(run("score all.ckce --quiet")[1]) == state.ckce_debiased


def test_names_without_an_order_are_sorted_and_said(run):
    write_files()
    names = np.array(["dog", "cat", "eel"])[Y]  # columns in another order than the alphabet
    np.savez("animals.npz", probs=Q, labels=names)
    code, out, err = run("score animals.npz --quiet")
    assert code == 0
    assert float(out) == ckce.estimate(np.array([1, 0, 2])[Y], Q).debiased
    assert err == (
        "ckce: warning: animals.npz array 'labels' holds names, and nothing tells which column each "
        "belongs to: the columns are taken to be 'cat', 'dog', 'eel', in sorted order; name them "
        "with --classes if that is wrong\n"
    )
    code, out, err = run("score animals.npz --quiet --classes dog,cat,eel")
    assert (code, err) == (0, "")
    assert float(out) == ckce.estimate(Y, Q).debiased
    with open("animals.csv", "w") as file:
        rows = (f"{y},{','.join(map(repr, q))}" for y, q in zip(names, Q.tolist(), strict=True))
        file.write("\n".join(["label,p_dog,p_cat,p_eel", *rows]))
    code, out, err = run("score animals.csv --probs p_* --quiet")
    assert (code, err) == (0, "")
    assert float(out) == ckce.estimate(Y, Q).debiased
    np.savez("two.npz", probs=Q, labels=np.where(Y == 0, "dog", "cat"))
    assert "holds 2 names, 'cat', 'dog', but there are 3 classes" in run("score two.npz")[2]
    np.savez("digits.npz", probs=Q, labels=Y.astype(str))
    assert "holds numbers as text, '0', '1', '2'; save integers" in run("score digits.npz")[2]


def test_messages_keep_the_names_of_the_file(run):
    columns = [f"{y},{','.join(map(repr, q))}" for y, q in zip(Y + 1, Q.tolist(), strict=True)]
    with open("own.csv", "w") as file:
        file.write("\n".join(["y_true,y_prob_0,y_prob_1,y_prob_2", *columns]))
    assert "it has 'y_true', 'y_prob_0', 'y_prob_1', 'y_prob_2'; name" in run("score own.csv")[2]
    err = run("score own.csv --labels y_true")[2]
    assert "no column 'probs', it has 'y_true'" in err
    err = run("score own.csv --labels y_true --probs y_prob")[2]
    assert re.search(
        r"own\.csv column 'y_true' row \d+ is 3, expected 0\.\.2 .*--classes 1\.\.3", err
    )
    err = run("score own.csv --labels y_true --probs y_prob --input log_probs --classes 1..3")[2]
    assert "own.csv columns 'y_prob_0' to 'y_prob_2' row" in err
    err = run("compare own.csv own.csv --names a,b --labels y_true --probs y_prob")[2]
    assert "model 'a': column 'y_true' row" in err


def test_long_work_is_announced(run, monkeypatch):
    write_files()
    monkeypatch.setattr("ckce._cli.prices._LONG", 0.0)
    line = r"ckce: note: 150 rows, 3 classes, method exact: this may take about 10 seconds\n"
    assert re.fullmatch(line, run("score preds.npz")[2])
    err = run("score preds.csv --probs p --method fourier --threads 1")[2]
    rows = int(re.match(r"ckce: note: about (\d+) rows, 3 classes, method fourier", err)[1])
    assert rows == pytest.approx(150, rel=0.2)
    assert run("score preds.npz --quiet")[2] == ""
    assert run("compare preds.npz sharp.npz")[2].startswith("ckce: note: 2 models, 150 rows")
    monkeypatch.undo()
    from ckce._cli.prices import duration

    assert [duration(s) for s in (7, 61, 8000)] == [
        "about 10 seconds",
        "about 2 minutes",
        "about 3 hours",
    ]


@pytest.mark.parametrize(
    ("n", "m", "options", "said"),
    [
        (20_000, 2, "", None),  # 0.01 seconds of one core
        (2_000_000, 2, "--method fourier", None),  # 0.6
        (20_000, 10, "", None),  # 1.5
        (50_000, 10, "", "method cholesky: this may take up to about 20 seconds"),  # 1.3 to 15
        (50_000, 10, "--method exact", "this may take about 20 seconds"),  # 15
        (20_000, 10, "--method cholesky", "how long this takes depends on the rank"),
        (20_000, 10, "--method cholesky --rank 500", None),  # 0.8
        (200_000, 10, "--kernel linear", None),  # 1.2
        (5_000, 1000, "--method exact", "this may take about 20 seconds"),  # 12
        (20_000, 1000, "", "method fourier: this may take about 10 seconds"),  # 6
    ],
)
def test_announced_times(n, m, options, said, capsys):
    """Within a factor of 3 of what was measured."""
    line = f"score preds.npz --threads 1 {options}".split()
    args = make_parser().parse_args(line)
    announce(args, [argparse.Namespace(n_samples=n, n_classes=m)])
    err = capsys.readouterr().err
    assert (err == "") if said is None else (said in err)


def test_several_models_in_one_file(run):
    write_files()
    np.savez("both.npz", labels=Y, good=Q, bad=SHARP, ids=np.arange(150.0))
    wide = np.column_stack([Y, Q, SHARP]).tolist()
    header = ["label", *(f"good_{j}" for j in range(3)), *(f"bad_{j}" for j in range(3))]
    lines = [",".join([str(int(y)), *map(repr, row)]) for y, *row in wide]
    with open("both.csv", "w") as file:
        file.write("\n".join([",".join(header), *lines]))
    with open("both.jsonl", "w") as file:
        for y, *row in wide:
            file.write(json.dumps({"label": int(y), "good": row[:3], "bad": row[3:]}) + "\n")
    expected = ckce.compare(Y, {"good": Q, "bad": SHARP}).to_dict()
    for line in (
        "both.npz",
        "both.npz --models good,bad",
        "both.csv",
        "both.csv --models good=good_*,bad=bad",
        "both.jsonl",
    ):
        code, out, err = run(f"compare {line}")
        assert (code, err) == (0, "")
        assert json.loads(out) == {"files": [line.split()[0]], **expected}
    named = run("compare both.npz --models good,bad --names x,y --quiet")[1]
    assert [line.split("\t")[0] for line in named.splitlines()] == ["x", "y"]
    code, out, _ = run("report both.csv --models a=good,b=bad --no-sensitivity")
    assert code == 0
    assert json.loads(out)["report"] == "ckce-report.html"
    assert os.path.getsize("ckce-report.html") == json.loads(out)["bytes"]
    for line, words in {
        "compare both.npz preds.npz --models good,bad": "names models of one file, got 2 files",
        "compare both.npz --models good,good": "must give different names",
        "compare both.csv --models good,badd": "no column 'badd', .*; did you mean 'bad_\\*'",
    }.items():
        code, _, err = run(line)
        assert code > 0
        assert re.search(words, err)


def test_weights_reach_the_metric(run):
    write_files()
    weights = 1.0 + np.arange(150) % 3
    np.savez("weighted.npz", probs=Q, labels=Y, w=weights)
    np.save("w.npy", weights)
    expected = ckce.estimate(Y, Q, sample_weight=weights).debiased
    for line in ("weighted.npz --weights w", "preds.npz --weights w.npy"):
        code, out, err = run(f"score {line} --quiet")
        assert (code, err) == (0, "")
        assert float(out) == expected
    out = run("compare preds.npz sharp.npz --weights w.npy")[1]
    both = ckce.compare(Y, {"preds": Q, "sharp": SHARP}, sample_weight=weights)
    assert json.loads(out)["signature"] == both.signature
    np.savez("other.npz", probs=SHARP, labels=Y, w=weights[::-1])
    assert (
        "weights must be the same in all files"
        in run("compare weighted.npz other.npz --weights w")[2]
    )
    run("stream weighted.npz -o w.ckce --weights w --bandwidth 0.5")
    assert json.loads(run("score w.ckce")[1])["weight"] == weights.sum()


def test_groups_reach_the_metric(run):
    write_files()
    groups = np.arange(150) % 25
    names = np.array([f"text {g}" for g in groups])
    np.savez("grouped.npz", probs=Q, labels=Y, text=names, w=np.ones(150))
    np.savez("sharp.npz", probs=SHARP, labels=Y, text=names)
    np.savez("both.npz", good=Q, bad=SHARP, labels=Y, text=groups)
    np.save("g.npy", groups)
    with open("grouped.csv", "w") as file:
        file.write("text,a,b,c,label\n")
        for g, row, y in zip(names, Q, Y, strict=True):
            file.write(",".join([g, *map(repr, row.tolist()), "abc"[y]]) + "\n")
    expected = ckce.evaluate(Y, Q, groups=groups)
    for line in (
        "grouped.npz --groups text",
        "preds.npz --groups g.npy",
        "grouped.csv --groups text --probs *",
        "grouped.csv --groups text --probs a,b,c --classes a,b,c",
    ):
        code, out, err = run(f"score {line}")
        assert (code, err) == (0, "")
        found = json.loads(out)
        assert found["n_groups"] == 25
        assert (found["ckce_debiased"], found["ckce_se"]) == (
            expected.ckce.debiased,
            expected.ckce.se,
        )
        assert found["ckce_floor"] is None
    models = {"good": Q, "bad": SHARP}
    compared = ckce.compare(Y, models, groups=groups)
    for line in (
        "both.npz",
        "both.npz --models good,bad",
        "grouped.npz sharp.npz --names good,bad",
    ):
        code, out, err = run(f"compare {line} --groups text")
        assert (code, err) == (0, "")
        assert json.loads(out)["pairs"] == compared.to_dict()["pairs"]
    code, out, err = run("report grouped.npz --groups text")
    assert (code, err) == (0, "")
    with open("ckce-report.html") as file:
        assert "by 25 groups" in file.read()


def test_segments_reach_the_result(run):
    write_files()
    half = np.array(["early", "late"])[np.arange(150) // 75]
    third = np.arange(150) % 3
    np.savez("parts.npz", probs=Q, labels=Y, half=half, third=third)
    np.savez("both.npz", good=Q, bad=SHARP, labels=Y, half=half)
    np.save("third.npy", third)
    expected = ckce.evaluate(Y, Q, by={"half": half}).segments
    code, out, err = run("score parts.npz --by half")
    assert (code, err) == (0, "")
    assert json.loads(out)["segments"] == expected.to_dict()
    code, out, err = run("score parts.npz --by half,third.npy --text")
    assert (code, err) == (0, "")
    assert "third: 2" in out
    assert "half: late" in out
    code, out, err = run("compare both.npz --by half")
    assert (code, err) == (0, "")
    compared = ckce.compare(Y, {"good": Q, "bad": SHARP}, by={"half": half})
    assert json.loads(out)["segments"] == compared.segments.to_dict()
    code, out, err = run("report both.npz --by half --no-sensitivity")
    assert (code, err) == (0, "")
    with open("ckce-report.html") as file:
        assert "By segment" in file.read()
    run("stream preds.npz -o s.ckce --bandwidth 0.5")
    for line, code, words in [
        ("score parts.npz --by hlf", 1, "no array 'hlf'.*did you mean 'half'"),
        ("score s.ckce --by half", 2, "a state does not keep its rows"),
        ("score - --by half", 2, "argument --by: needs files that can be read twice"),
    ]:
        found, _, err = run(line)
        assert found == code, (line, err)
        assert re.search(words, err), err


def test_where_the_model_is_off(run):
    write_files()
    expected = ckce.evaluate(Y, SHARP, where=True).where
    np.savez("sharp.npz", probs=SHARP, labels=Y)
    code, out, err = run("score sharp.npz --where")
    assert (code, err) == (0, "")
    assert json.loads(out)["where"] == json.loads(json.dumps(expected.to_dict()))
    code, out, err = run("score sharp.npz --where --text")
    assert (code, err) == (0, "")
    assert f"1. {expected.lines[0]}" in out
    run("stream preds.npz -o s.ckce --bandwidth 0.5")
    code, _, err = run("score s.ckce --where")
    assert code == 2
    assert "argument --where: a state does not keep its rows" in err


def test_groups_that_cannot_be(run):
    write_files()
    np.savez("grouped.npz", probs=Q, labels=Y, text=np.arange(150) % 25)
    np.savez("sharp.npz", probs=SHARP, labels=Y, text=np.arange(150) % 24)
    np.save("few.npy", np.arange(150) % 4)
    run("stream preds.npz -o s.ckce --bandwidth 0.5")
    for line, code, words in [
        ("score grouped.npz --groups txt", 1, "no array 'txt'.*did you mean 'text'"),
        ("score preds.npz --groups few.npy", 1, "at least 10 groups, got 4"),
        ("score grouped.npz --groups text --test", 1, "test must be False with groups"),
        ("compare grouped.npz sharp.npz --groups text", 1, "groups must be the same in all files"),
        ("score s.ckce --groups text", 2, "a state does not keep its rows"),
        ("score - --groups text", 2, "can be read twice"),
        ("stream grouped.npz -o t.ckce --groups text", 2, "unknown option '--groups'"),
    ]:
        found, _, err = run(line)
        assert found == code, (line, err)
        assert re.search(words, err), err


def piped(words, data, folder):
    return subprocess.run(
        [sys.executable, "-m", "ckce", *words], input=data, capture_output=True, cwd=folder
    )


@pytest.mark.parametrize("kind", ["npz", "csv", "csv.gz", "jsonl", "parquet", "tsv", "arrow"])
def test_standard_input(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files()
    if kind == "npz":
        data = (tmp_path / "preds.npz").read_bytes()
    elif kind == "jsonl":
        rows = zip(Y.tolist(), Q.tolist(), strict=True)
        data = "\n".join(
            json.dumps({"label": y, "p0": q[0], "p1": q[1], "p2": q[2]}) for y, q in rows
        )
        data = data.encode()
    elif kind in ("parquet", "arrow"):
        pa = pytest.importorskip("pyarrow")
        table = pa.table({"label": Y, **{f"p{j}": Q[:, j] for j in range(3)}})
        sink = pa.BufferOutputStream()
        if kind == "parquet":
            __import__("pyarrow.parquet").parquet.write_table(table, sink)
        else:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        data = sink.getvalue().to_pybytes()
    else:
        data = (tmp_path / "preds.csv").read_bytes()
        data = data.replace(b",", b"\t") if kind == "tsv" else data
        data = gzip.compress(data) if kind.endswith("gz") else data
    words = ["score", "-", "--quiet"] + ([] if kind == "npz" else ["--probs", "p"])
    done = piped(words, data, tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert float(done.stdout) == pytest.approx(ckce.estimate(Y, Q).debiased, rel=1e-12)


def test_standard_input_that_is_wrong(tmp_path):
    wrong = {
        b"": "standard input is empty, expected predictions",
        b"label,p0,p1\n0,1,zero\n": "standard input line 2 column 'p1' is 'zero', expected a number",
        b"\x1f\x8bnothing": "standard input is not a whole gzip file",
    }
    for data, words in wrong.items():
        done = piped(["score", "-", "--probs", "p"], data, tmp_path)
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.decode() == f"ckce: error: {words}\n"
    done = piped(["compare", "-", "-"], b"", tmp_path)
    assert (done.returncode, b"can be read once" in done.stderr) == (2, True)


def test_standard_output(tmp_path):
    np.savez(tmp_path / "p.npz", probs=Q, labels=Y)
    before = set(tmp_path.iterdir())
    done = piped(["report", "p.npz", "-o", "-"], b"", tmp_path)
    assert done.stdout.startswith(b"<!DOCTYPE html>")
    assert done.stdout.endswith(b"</html>\n")
    assert b"wrote - (" in done.stderr
    done = piped(["report", "p.npz", "-o", "/dev/stdout", "--quiet"], b"", tmp_path)
    assert (done.stdout.count(b"DOCTYPE"), done.stdout[-8:], done.stderr) == (1, b"</html>\n", b"")
    done = piped(["stream", "p.npz", "-o", "-", "--bandwidth", "1", "--quiet"], b"", tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert ckce.CKCEAccumulator.from_bytes(done.stdout).n_samples == 150
    assert set(tmp_path.iterdir()) == before


def test_plot(run, monkeypatch):
    pytest.importorskip("matplotlib")
    write_files()
    code, out, err = run("plot preds.npz sharp.npz")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["plot"] == "ckce-plot.png"
    with open("ckce-plot.png", "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    for line in ("preds.npz --class 1 --bins 5", "names.npz --classes a,b,c --class b"):
        assert run(f"plot {line} -o one.svg --quiet")[:2] == (0, "one.svg\n")
        with open("one.svg") as file:
            assert "<svg" in file.read()
    assert run("plot preds.npz -o nowhere/p.png")[2].endswith(
        "nowhere of nowhere/p.png does not exist; make it\n"
    )
    assert "7" in run("plot preds.npz --class 7")[2]


def test_options_are_those_of_the_library(run):
    """What was not given is not passed, so that defaults stand in one place."""
    write_files()
    lines = {
        "--method exact --tol 1e-6": {"method": ckce.Exact(tol=1e-6)},
        "--frequencies 20 --sampler sobol": {"method": ckce.Fourier(20, "sobol")},
        "--rank 30 --pivoting random": {"method": ckce.Cholesky(30, pivoting="random")},
        "--method cholesky --tol 1e-4": {"method": ckce.Cholesky(tol=1e-4)},
        "--landmarks 40": {"method": ckce.Landmarks(40)},
        "--method landmarks": {"method": "landmarks"},
        "--reduction top_label --level 0.8": {"reduction": "top_label", "level": 0.8},
        "--top-k 2": {"reduction": ckce.TopK(2)},
        "--kernel laplace --seed 3 --test": {"kernel": "laplace", "random_state": 3, "test": True},
    }
    both = {"preds": Q, "sharp": SHARP}
    for words, options in lines.items():
        if takes(ckce.evaluate, options):
            expected = {"files": ["preds.npz"], **ckce.evaluate(Y, Q, **options).to_dict()}
            check_json(run(f"score preds.npz {words}"), expected)
        files = ["preds.npz", "sharp.npz"]
        if options.get("reduction") != "class_wise" and options.get("kernel") != "laplace":
            expected = {"files": files, **ckce.compare(Y, both, **options).to_dict()}
            check_json(run(f"compare {' '.join(files)} {words}"), expected)
        if takes(ckce.report, options):
            assert run(f"report preds.npz {words} --no-sensitivity -o page.html")[::2] == (0, "")


def test_reduced_streams(run):
    write_files()
    for words, reduction in (("--top-k 2", ckce.TopK(2)), ("--reduction top_label", "top_label")):
        code, out, err = run(f"stream preds.npz {words} -o state.ckce")
        assert (code, err) == (0, "")
        acc = ckce.CKCEAccumulator(Q.shape[1], reduction=reduction)
        acc.update(Y, Q)
        assert json.loads(out)["ckce"] == acc.compute()
        assert run("merge state.ckce")[0] == 0
    assert run("stream preds.npz -o full.ckce")[0] == 0
    code, _, err = run("merge full.ckce state.ckce")
    assert code == 1
    assert "reduction must be the same to merge" in err
    code, _, err = run("score preds.npz --top-k 2 --reduction top_label")
    assert code == 2
    assert "argument --top-k: is a reduction, got --reduction top_label" in err
    assert "below the number of classes" in run("score preds.npz --top-k 99")[2]


def takes(function, options):
    return set(options) <= set(inspect.signature(function).parameters)


def check_json(ran, expected):
    code, out, err = ran
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads(json.dumps(expected))


COMPLETED = {
    ("sco",): ["score"],
    ("score", "--meth"): ["--method"],
    ("score", "--method", "ch"): ["cholesky"],
    ("stream", "--method", ""): ["fourier", "landmarks"],
    ("completion", "z"): ["zsh"],
    ("merge", "--out"): ["--output"],
}


def test_bash_completes_words(run, tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    code, script, err = run("completion bash")
    assert (code, err) == (0, "")
    for words, expected in COMPLETED.items():
        line = " ".join(["ckce", *(repr(word) for word in words)])
        ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _ckce; printf '%s\n' \"${{COMPREPLY[@]}}\""
        done = subprocess.run(
            [bash, "-c", f"{script}\n{ask}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stdout.split(), done.stderr) == (expected, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_know_every_word(run, shell):
    code, script, err = run(f"completion {shell}")
    assert (code, err) == (0, "")
    (commands,) = (a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        assert name in script
        for action in command._actions:
            for option in action.option_strings:
                assert (option if shell != "fish" else option.lstrip("-")) in script
            for choice in action.choices or ():
                assert choice in script
    path = shutil.which(shell)
    if path is not None:
        with open("script", "w") as file:
            file.write(script)
        subprocess.run([path, "-n", "script"], check=True)


def test_compare_names_score_for_other_kernels(run):
    np.savez("one.npz", probs=[[0.5, 0.5], [0.2, 0.8]] * 40, labels=[0, 1] * 40)
    np.savez("two.npz", probs=[[0.4, 0.6], [0.1, 0.9]] * 40, labels=[0, 1] * 40)
    code, out, err = run("compare one.npz two.npz --kernel laplace")
    assert (code, out) == (1, "")
    assert "kernel must have a Gaussian part" in err
    assert "use ckce score, with one --bandwidth for all, for the values of single models" in err


def test_demo(run):
    start = time.process_time()
    code, out, err = run("demo --text")
    assert time.process_time() - start < 10
    assert (code, err) == (0, "")
    assert "At equal predictions honest is better calibrated than the 2 others" in out
    assert "In short: honest is better calibrated than the others." in out
    assert json.loads(run("demo --json")[1])["models"][0]["name"] == "honest"
    assert run("demo -o page.html --quiet")[:2] == (0, "page.html\n")


# command line, exit code, what the one line on stderr says
WRONG = [
    ("score pred.npz", 1, r"pred\.npz does not exist; did you mean 'preds\.npz'\?"),
    ("score nowhere/preds.npz", 1, r"nowhere/preds\.npz does not exist"),
    ("score folder", 1, "folder is a directory"),
    ("score notes.txt", 1, r"notes\.txt must be a \.npy, \.npz, .* file, got '\.txt'"),
    ("score not.npz", 1, r"not\.npz is not an npz file"),
    ("score huge.npy --labels y.npy", 1, "has a header of 4294967295 bytes"),
    ("score objects.npz", 1, "holds Python objects, which are never unpickled"),
    ("score q.npy", 1, r"q\.npy holds one array; give the labels as another file, --labels "),
    ("score q.npy --labels yy.npy", 1, r"yy\.npy does not exist; did you mean 'y\.npy'"),
    ("score preds.npz --probs prob", 1, "no array 'prob', it holds .*; did you mean 'probs'"),
    ("score preds.npz --labels lables", 1, "no array 'lables', .*; did you mean 'labels'"),
    ("score preds.npz --labels xyz", 1, "no array 'xyz', .*; name it with --labels"),
    (
        "score preds.csv",
        1,
        "no column 'probs', it has 'label', 'p0', .* name the columns with --pr",
    ),
    ("score preds.csv --probs p0,p1,p3", 1, "no column 'p3', it has .* with --probs, '"),
    ("score hole.csv --probs p", 1, "line 2 column 'p2' is '', expected a number"),
    (
        "score one_based.npz",
        1,
        r"array 'labels' row \d+ is 3, expected 0\.\.2 .*pass --classes 1\.\.3",
    ),
    (
        "score logits.npz",
        1,
        r"array 'probs' row \d+ column \d+ is .*; pass --input logits if these are",
    ),
    (
        "score logits.npz --input log_probs",
        1,
        "row 0 column 0 is .* pass --input logits",
    ),
    ("score percent.npz", 1, "expected probabilities .* divide by 100 if they are percentages"),
    ("score scaled.npz", 1, r"row 0 sums to 0\.9.*pass --normalize to rescale"),
    ("score unequal.npz", 1, "has 149 rows, but .* has 150"),
    ("score empty.npz", 1, r"empty\.npz has no rows"),
    ("score nan.npz", 1, "row 7 column 2 is nan"),
    ("score real_labels.npz", 1, "array 'labels' must hold integers or strings, got dtype float64"),
    ("score one_hot.npz", 1, r"must have shape \(n_samples,\), got \(150, 3\)"),
    ("score cube.npz", 1, r"shape \(n_samples, n_classes\).*got \(1, 150, 3\)"),
    ("score names.npz --classes a,b,d", 1, r"row \d+ has the label 'c', but the classes are 'a'"),
    ("score preds.npz --classes a,b", 1, "classes must give 3 distinct names, got 'a', 'b'"),
    ("score preds.npz --classes 5..7", 1, r"has the label \d, but the classes are '5'"),
    ("score preds.npz --kernel linear --bandwidth 2", 1, "kernel='linear' takes no bandwidth"),
    (
        "score preds.npz --input logits --normalize",
        2,
        "--normalize: is for probabilities, got --inp",
    ),
    (
        "score y.npy --labels y.npy",
        1,
        r"y\.npy must hold probabilities, got dtype int64, as labels",
    ),
    (
        "score preds.npz --probs xyz",
        1,
        "no array 'xyz', it holds 'probs', 'labels'; name it with --p",
    ),
    ("score preds.npz preds.npz", 2, "score takes one data set, got 2 files; pass --shards"),
    ("compare preds.npz", 1, "of several models, got one, 'probs'; .* or use ckce score for one"),
    ("compare preds.npz --probs probs", 2, "at least 2 files, .* got 1 with --probs; use ckce sco"),
    ("compare preds.npz preds.npz", 2, "each file must be given once"),
    ("compare preds.npz folder/../preds.npz", 2, "each file must be given once"),
    ("compare preds.npz sharp.npz --names a", 2, "--names: must give 2 different names, got a"),
    ("compare preds.npz sharp.npz --level 2", 2, "--level: must be between 0 and 1, got '2'"),
    ("compare preds.npz four.npz", 1, "one shape, since rows are paired, got .*150, 3"),
    ("compare preds.npz logits.npz", 1, "model 'logits': array 'probs' row .* pass --input logits"),
    ("stream preds.npz", 2, "the following arguments are required: -o/--output"),
    ("stream preds.npz -o state.npz", 2, "--output: must end in .ckce, got 'state.npz'"),
    ("stream logits.npz -o a.ckce", 1, "pass --input logits if these are logits"),
    ("merge preds.npz", 1, "preds.npz must be a state file .* that ckce stream has written"),
    ("merge nothing.ckce", 1, "nothing.ckce"),
    ("score --shards preds.npz ./preds.npz", 2, "each file must be given once"),
    ("stream preds.npz preds.npz -o a.ckce", 2, "each file must be given once"),
    (
        "report preds.npz -o nowhere/page.html",
        1,
        "the folder .*nowhere of nowhere/page.html does not exist; make it",
    ),
    ("report preds.npz -o folder", 1, "folder is a directory; name a file in it"),
    ("report preds.npz -o page.pdf", 2, "must end in .html or .htm, got 'page.pdf'"),
    ("demo -o page.png", 2, "must end in .html or .htm, got 'page.png'"),
    ("report preds.npz -o new/", 1, "path must name a file, got 'new/'"),
    ("report preds.npz --output=", 1, "path must name a file, got ''"),
    ("report preds.npz -o gone/..", 1, "path must name a file, got 'gone/..'"),
    ("score", 2, "the following arguments are required: FILE"),
    ("score preds.npz --lables y.npy", 2, "unknown option '--lables'; did you mean '--labels'"),
    (
        "score preds.npz --bandwidth wide",
        2,
        "--bandwidth: must be 'median', 'default' or a positive",
    ),
    ("score preds.npz --bandwidth -1", 2, "--bandwidth"),
    (
        "score preds.npz --regularization 0",
        2,
        "--regularization: must be a positive number, got '0'",
    ),
    ("score preds.npz --regularization nan", 2, "must be a positive number, got 'nan'"),
    ("score preds.npz --seed 1.5", 2, r"--seed: must be an integer from 0 .*, got '1\.5'"),
    ("score preds.npz --bins 0", 2, "--bins: must be an integer from 1 to 1000, got '0'"),
    ("score preds.npz --threads 0", 2, "--threads: must be an integer from 1 to 1024"),
    ("score preds.npz --threads \u0663", 2, "--threads: must be an integer from 1 to 1024"),
    ("score preds.npz --level \u0660.5", 2, "--level: must be a positive number"),
    ("score preds.npz --classes \u0661..\u0663", 1, "classes must give 3 distinct names"),
    ("score preds.npz --method exakt", 2, "got 'exakt'; did you mean 'exact'"),
    ("score preds.npz --input logit", 2, "got 'logit'; did you mean 'logits'"),
    ("score preds.npz --classes 3..1", 2, r"must be a range such as 1\.\.10, got '3\.\.1'"),
    ("score preds.npz --json --quiet", 2, "not allowed with argument --json"),
    ("scroe preds.npz", 2, r"unknown command 'scroe'; did you mean 'score'\? \(see ckce --help\)"),
    ("bench", 2, "unknown command 'bench'"),
    ("completion tcsh", 2, "argument SHELL must be one of 'bash', 'zsh', 'fish', got 'tcsh'"),
    ("plot preds.npz -o plot.gif", 2, "must end in .png or .svg or .pdf, got 'plot.gif'"),
    ("demo now", 2, "unexpected argument 'now'"),
    ("compare a.ckce b.ckce", 2, "got the state a.ckce: rows are paired"),
    ("--vresion", 2, "unknown option '--vresion'; did you mean '--version'"),
]


@pytest.mark.parametrize(("line", "code", "message"), WRONG, ids=[line for line, _, _ in WRONG])
def test_wrong_uses(run, line, code, message):
    write_files()
    got, out, err = run(line)
    assert re.search(message, err), err
    assert (got, out) == (code, "")
    assert err.startswith("ckce: error: ")
    assert err.count("\n") == 1, "one line, no traceback"


def test_every_command_is_misused():
    (commands,) = (a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    assert set(commands.choices) <= {line.split()[0] for line, _, _ in WRONG if line}


def test_debug_shows_the_traceback(run):
    with pytest.raises(FileNotFoundError):
        run("score pred.npz --debug")


def test_warnings_are_one_line(run):
    write_files()
    code, _, err = run("score preds.npz --regularization 1e-9")
    assert code == 0
    assert re.fullmatch(r"ckce: warning: regularization.*\n", err)


def test_bugs_are_called_bugs(run, monkeypatch):
    write_files()
    monkeypatch.setattr(ckce, "evaluate", lambda *_, **__: 1 / 0)
    code, _, err = run("score preds.npz")
    assert code == 1
    assert err == (
        "ckce: error: ZeroDivisionError: division by zero; this is a bug in ckce, --debug shows "
        "where\n"
    )


def test_memory(run, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    write_files()
    monkeypatch.setattr(ckce, "evaluate", fail)
    assert run("score preds.npz")[2].startswith("ckce: error: not enough memory")


def test_help_and_version(run):
    code, out, _ = run("--version")
    assert (code, out) == (0, f"ckce {ckce.__version__}\n")
    code, out, _ = run([])
    assert code == 0
    assert "exit codes: 0 done; 1 the files" in out
    for command in re.findall(r"^    (\w+) ", out, re.MULTILINE):
        code, text, _ = run(f"{command} --help")
        assert code == 0
        assert "exit codes" in text


def test_without_a_command_the_module_demonstrates():
    words = [sys.executable, "-m", "ckce"]
    process = subprocess.run(words, capture_output=True, text=True, check=True)
    assert process.stderr == ""
    assert "At equal predictions honest is better calibrated than the 2 others" in process.stdout


def test_interrupt(run):
    rng = np.random.default_rng(0)
    np.savez("p.npz", probs=rng.dirichlet(np.ones(40), 40_000), labels=np.arange(40_000) % 40)
    # A shell that starts the tests in the background lets them ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        assert run("score p.npz --method exact --quiet") == (130, "", "ckce: error: interrupted\n")
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


def test_a_reader_that_leaves(tmp_path):
    np.savez(tmp_path / "p.npz", probs=Q, labels=Y)
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [sys.executable, "-m", "ckce", "score", "p.npz"],
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    assert (process.returncode, process.stderr) == (0, b"")


def closing(*descriptors):
    """For a process that the shell starts with >&- and its like."""
    return lambda: [os.close(each) for each in descriptors]


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices of POSIX")
def test_a_result_that_cannot_be_written(tmp_path):
    np.savez(tmp_path / "p.npz", probs=Q, labels=Y)
    os.mkfifo(tmp_path / "pipe")
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "ckce", "stream", "p.npz", "-o"]

    def error(name, **streams):
        done = subprocess.run([*words, name], cwd=tmp_path, stderr=subprocess.PIPE, **streams)
        assert done.returncode == 1
        return done.stderr.decode()

    assert error("-", stdout=writing) == "ckce: error: [Errno 32] Broken pipe: '-'\n"
    assert error(f"/dev/fd/{writing}", pass_fds=[writing]) == (
        f"ckce: error: [Errno 32] Broken pipe: '/dev/fd/{writing}'\n"
    )
    os.close(writing)
    reader = threading.Thread(target=lambda: (tmp_path / "pipe").open("rb").close())
    reader.start()
    assert error("pipe") == "ckce: error: [Errno 32] Broken pipe: 'pipe'\n"
    reader.join()
    if Path("/dev/full").exists():
        assert "No space left on device: '/dev/full'" in error("/dev/full")
        words = [sys.executable, "-m", "ckce"]
        with open("/dev/full", "wb") as full:
            for arguments in (["score", "p.npz"], ["--help"]):
                done = subprocess.run(
                    words + arguments, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE
                )
                assert done.returncode == 1
                assert done.stderr.endswith(b"No space left on device: 'standard output'\n")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files as Linux names them")
def test_output_into_open_files(tmp_path):
    np.savez(tmp_path / "p.npz", probs=Q, labels=Y)
    words = [sys.executable, "-m", "ckce", "stream", "p.npz", "--quiet", "-o"]
    (tmp_path / "link.ckce").symlink_to("/dev/stdout")
    for name in ("//dev/stdout", "link.ckce"):  # which need no suffix
        with (tmp_path / "log").open("wb", buffering=0) as log:
            log.write(b"before")
            subprocess.run([*words, name], cwd=tmp_path, stdout=log, check=True)
            log.write(b"after")
        log = (tmp_path / "log").read_bytes()
        assert (log[:6], log[-5:]) == (b"before", b"after")
        assert ckce.CKCEAccumulator.from_bytes(log[6:-5]).n_samples == 150
    with (tmp_path / "state").open("wb") as file:
        name = f"/dev/fd/{file.fileno()}"
        subprocess.run(
            [*words, name], cwd=tmp_path, check=True, capture_output=True, pass_fds=[file.fileno()]
        )
    assert ckce.CKCEAccumulator.load(tmp_path / "state").n_samples == 150
    done = piped(["stream", "p.npz", "-o", "/dev/fd/99"], b"", tmp_path)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"'/dev/fd/99'" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="streams are closed as on POSIX")
def test_closed_streams(tmp_path):
    np.savez(tmp_path / "p.npz", probs=Q, labels=Y)
    unwritten = "ckce: error: [Errno 9] Bad file descriptor: 'standard output'\n"
    for line, closed, expected in [
        ("score p.npz", (1,), unwritten),
        ("completion bash", (1,), unwritten),
        ("--version", (1,), unwritten),
        ("report p.npz -o page.html --no-test", (1,), unwritten),
        ("stream p.npz -o -", (1,), "ckce: error: [Errno 9] Bad file descriptor: '-'\n"),
        ("score -", (0,), "ckce: error: standard input is empty, expected predictions\n"),
        ("score missing.npz", (0, 1, 2), ""),
    ]:
        done = subprocess.run(
            [sys.executable, "-m", "ckce", *line.split()],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            preexec_fn=closing(*closed),
        )
        assert (done.returncode, done.stderr.decode()) == (1, expected), line
    assert (tmp_path / "page.html").read_bytes().endswith(b"</html>\n")


def test_a_wrong_level_is_one_line(tmp_path):
    np.savez(tmp_path / "p.npz", probs=Q, labels=Y)

    def with_level(level, *words):
        return subprocess.run(
            [sys.executable, "-m", "ckce", *words],
            cwd=tmp_path,
            env={**os.environ, "CKCE_LEVEL": level},
            capture_output=True,
            text=True,
        )

    for words in (["--help"], ["score", "p.npz"]):
        done = with_level("v99", *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(r"ckce: error: CKCE_LEVEL must be one of .* got 'v99'\n", done.stderr)
    assert "Traceback" in with_level("v99", "--help", "--debug").stderr
    done = with_level("", "--version")  # as if it were not set
    assert (done.returncode, done.stdout) == (0, f"ckce {ckce.__version__}\n")


def test_interrupt_while_the_command_loads(tmp_path):
    code = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "{}":
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
from ckce._cli.main import main
sys.exit(main(["--version"]))
"""
    for name in ("argparse", "numpy", "ckce._core", "ckce._cli.parser"):
        done = subprocess.run(
            [sys.executable, "-c", code.format(name)], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (130, ""), name
        assert done.stderr == "ckce: error: interrupted\n"


def test_names_that_cannot_be_printed(run, tmp_path):
    np.savez("b.npz", probs=SHARP, labels=Y)
    steering = "a\x1b[31m\n\tb"
    np.savez(f"{steering}.npz", probs=Q, labels=Y)
    for line in (
        ["score", f"{steering}.npz", "--text"],
        ["compare", f"{steering}.npz", "b.npz", "--quiet"],
    ):
        code, out, _ = run(line)
        assert code == 0
        assert r"a\x1b[31m\n\tb" in out
    np.savez("\u65e5.npz", probs=Q, labels=Y)
    for encoding in ("ascii", "latin-1"):
        done = subprocess.run(
            [sys.executable, "-m", "ckce", "compare", "\u65e5.npz", "b.npz", "--text"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert rb"\u65e5" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="names of files that are no text")
def test_names_that_are_no_text(run):
    pytest.importorskip("matplotlib")
    name = os.fsdecode(b"m\xff.npz")
    np.savez(name, probs=Q, labels=Y)
    assert run(["plot", name, "--quiet"]) == (0, "ckce-plot.png\n", "")
    assert r"m\udcff.npz does not exist" in run(["score", f"x{name}"])[2]
    assert (
        run(["report", name, "--no-test", "-o", name[:-3] + "html", "--quiet"])[1]
        == "m\\udcff.html\n"
    )


def on_a_terminal(folder, line, **environment):
    """What a terminal shows of a command."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    subprocess.run(
        [sys.executable, "-m", "ckce", *line.split()],
        cwd=folder,
        stdout=theirs,
        stderr=theirs,
        env=inherited | {"TERM": "xterm"} | environment,
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while more := os.read(ours, 10_000):
            shown += more
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def test_on_a_terminal_there_are_tables_and_colours(tmp_path):
    np.savez(tmp_path / "p.npz", probs=Q, labels=Y)
    shown = on_a_terminal(tmp_path, "score p.npz")
    assert "\x1b[1m" in shown
    assert "debiased" in shown


def test_lines_break_at_words(tmp_path):
    np.savez(tmp_path / "p.npz", probs=Q, labels=Y)
    np.savez(tmp_path / "sharp.npz", probs=SHARP, labels=Y)
    whole = str(ckce.evaluate(Y, Q)).split()
    for line in (
        "score p.npz",
        "score p.npz --where",
        "compare p.npz sharp.npz",
        "score p.npz --probs nothing",
        "demo",
    ):
        shown = on_a_terminal(tmp_path, line, COLUMNS="50", NO_COLOR="1")
        assert all(len(each) <= 50 for each in shown.splitlines() if "|" not in each), shown
        if line == "score p.npz":
            assert shown.split() == ["p.npz", *whole]


def test_help_fits_into_80_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for command in ("", "score", "compare", "report", "plot", "stream", "merge", "demo"):
        code, out, err = run(f"{command} --help")
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) <= 80


def test_a_file_of_several_models_is_that_for_every_command(run):
    np.savez("both.npz", good=Q, sharp=SHARP, labels=Y)
    code, out, err = run("report both.npz --json --no-sensitivity")
    assert (code, err) == (0, "")
    assert json.loads(out)["headline"] == ckce.compare(Y, {"good": Q, "sharp": SHARP}).headline
    code, out, err = run("plot both.npz --text")
    assert (code, err) == (0, "")
    # What is called probs is the model; the rest is something else.
    np.savez("one.npz", probs=SHARP, other=Q, labels=Y)
    headline = json.loads(run("report one.npz --json")[1])["headline"]
    assert headline == ckce.report(Y, {"one": SHARP}).headline


def test_names_are_said_once(run):
    np.savez("both.npz", good=Q, sharp=SHARP, labels=np.array(["a", "b", "c"])[Y])
    code, _, err = run("compare both.npz --quiet")
    assert code == 0
    assert err.count("warning") == 1


def test_a_report_without_a_test(run):
    np.savez("weighted.npz", probs=Q, labels=Y, w=np.full(150, 0.5))
    code, _, err = run("report weighted.npz --weights w")
    assert code == 1
    assert "whole numbers" in err
    assert run("report weighted.npz --weights w --no-test")[0] == 0
    assert "p_value&quot;: null" in Path("ckce-report.html").read_text()
    assert json.loads(run("score weighted.npz --weights w --no-test")[1])["p_value"] is None


def test_one_surface():
    """What belongs to all is called the same, and means the same if it is not given."""
    functions = (ckce.estimate, ckce.evaluate, ckce.compare, ckce.report, ckce.calibration_test)
    parameters = [inspect.signature(function).parameters for function in functions]
    shared = {"method": "auto", "bandwidth": "median", "regularization": None, "reduction": None}
    shared |= {"sample_weight": None, "labels": None, "input": "probs"}
    shared |= {"kernel": "linear_gaussian", "random_state": 0, "normalize": False}
    for name, default in shared.items():
        assert [found[name].default for found in parameters] == [default] * len(functions), name
    # The level of an estimate is that of its interval(level). It has no test, and a test is one.
    assert [found["level"].default for found in parameters[1:]] == [0.95] * 4
    assert ["test" in found for found in parameters] == [False, True, True, True, False]
    (commands,) = [action for action in make_parser()._actions if isinstance(action.choices, dict)]
    words = [
        "--top-k",
        "--level",
        "--test",
        "--no-test",
        "--reduction",
        "--weights",
        "--input",
        "--method",
    ]
    words += ["--kernel", "--bandwidth", "--regularization", "--seed", "--normalize"]
    words += ["--frequencies", "--sampler", "--landmarks", "--rank", "--pivoting", "--tol"]
    for name in ("score", "compare", "report"):
        known = {o for action in commands.choices[name]._actions for o in action.option_strings}
        assert set(words) <= known, name
