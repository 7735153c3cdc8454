"""The command line: what it prints, and what it says of wrong uses."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from shared import sample

import ckce
from ckce._cli import main as cli
from ckce._cli.main import main

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
    "score logprobs.npz --input logprobs",
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
    assert float(out) == ckce.ckce(Y, Q)


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


def test_compare_with_shared_labels_and_names(run):
    write_files()
    np.save("r.npy", SHARP)
    line = "compare q.npy r.npy --labels y.npy --names good,bad --kernel gaussian --test --quiet"
    code, out, err = run(line)
    assert (code, err) == (0, "")
    c = ckce.compare(Y, {"good": Q, "bad": SHARP}, kernel="gaussian")
    assert out == "".join(f"{model.name}\t{model.debiased!r}\n" for model in c.models)


def test_labels_may_differ_but_that_is_said(run):
    write_files()
    np.savez("other.npz", probs=SHARP, labels=Y[::-1])
    code, out, err = run("compare preds.npz other.npz")
    assert code == 0
    assert re.fullmatch(r"ckce: warning: the files hold different labels; rows are .*\n", err)
    assert json.loads(out)["models"][1]["accuracy"] == ckce.accuracy(Y[::-1], SHARP)


def test_table_of_compare(run, monkeypatch):
    write_files()
    monkeypatch.setenv("COLUMNS", "120")
    out = run("compare sharp.npz preds.npz --text")[1]
    c = ckce.compare(Y, {"sharp": SHARP, "preds": Q})
    header = "model accuracy log loss Brier ECE JKCE CKCE floor debiased from to"
    assert out.splitlines()[1].split() == header.split()
    for line in (c.headline, c.pairs[0].sentence, *(rail.message for rail in c.warnings)):
        assert line in out
    monkeypatch.setenv("COLUMNS", "72")
    narrow = run("compare sharp.npz preds.npz --text")[1].splitlines()[1:4]
    assert max(map(len, narrow)) <= 72
    assert narrow[0].split()[-5:] == ["CKCE", "floor", "debiased", "from", "to"]


def test_models_of_the_same_name_keep_their_folders(run):
    write_files()
    np.savez("folder/preds.npz", probs=SHARP, labels=Y)
    out = run("compare preds.npz folder/preds.npz --quiet")[1]
    assert [line.split("\t")[0] for line in out.splitlines()] == ["preds.npz", "folder/preds.npz"]


def test_report(run):
    write_files()
    code, out, err = run("report sharp.npz preds.npz -o page.html --no-sensitivity --title Two")
    assert (code, err) == (0, "")
    page = ckce.report(
        Y,
        {"sharp": SHARP, "preds": Q},
        title="Two",
        sensitivity=False,
        command="ckce report sharp.npz preds.npz -o page.html --no-sensitivity --title Two",
    )
    with open("page.html", encoding="utf-8") as file:
        assert file.read() == page.html
    size = os.path.getsize("page.html")
    assert json.loads(out) == {"report": "page.html", "bytes": size, "headline": page.headline}
    assert run("report preds.npz -o page.html --quiet")[1] == "page.html\n"
    assert run("report preds.npz -o page.html --text")[1].startswith("There is no evidence that pr")


def test_report_names_the_classes(run):
    write_files()
    with open("named.csv", "w") as file:
        rows = (f"{'abc'[y]},{','.join(map(repr, q))}" for y, q in zip(Y, Q.tolist(), strict=True))
        file.write("\n".join(["label,p_a,p_b,p_c", *rows]))
    assert run("report named.csv --probs p_* -o page.html")[0] == 0
    with open("page.html", encoding="utf-8") as file:
        assert re.search(r"<title>[abc]: \d+\.\d% of CKCE", file.read())


def test_states(run):
    write_files()
    np.savez("first.npz", probs=Q[:70], labels=Y[:70])
    np.savez_compressed("second.npz", probs=Q[70:], labels=Y[70:])
    options = "--bandwidth 0.6 --frequencies 40 --seed 2 --kernel gaussian"
    for name in ("first", "second"):
        code, out, err = run(f"stream {name}.npz -o {name}.ckce --shard {name} {options}")
        assert (code, err) == (0, "")
    assert json.loads(out)["n_samples"] == 80
    expected = ckce.ckce(
        Y, Q, method="fourier", bandwidth=0.6, n_frequencies=40, random_state=2, kernel="gaussian"
    )
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
    with open("all.ckce", "r+b") as file:
        file.seek(1000)
        file.write(b"x")
    code, out, err = run("score all.ckce")
    assert (code, out) == (1, "")
    assert "all.ckce" in err


def test_states_on_landmarks(run):
    write_files()
    np.savez("first.npz", probs=Q[:70], labels=Y[:70])
    np.savez("second.npz", probs=Q[70:], labels=Y[70:])
    assert run("stream first.npz -o first.ckce --landmarks 30")[0] == 0
    code, _, err = run("stream second.npz -o second.ckce --landmarks first.ckce")
    assert (code, err) == (0, "")
    alone = ckce.CKCEAccumulator.from_sample(Y[:70], Q[:70], n_landmarks=30)
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
        "--landmarks 20 --frequencies 7": "landmarks are the features, got n_frequencies=7",
    }.items():
        code, out, err = run(f"stream second.npz -o refused.ckce {line}")
        assert code > 0
        assert words in err
        assert err.count("\n") == 1


def test_many_predictions_stay_on_disk(run, monkeypatch):
    write_files()
    np.savez_compressed("preds.npz", probs=Q, labels=Y)
    expected = run("score preds.npz")
    monkeypatch.setattr("ckce._cli.commands._IN_MEMORY", 100)
    seen = []
    evaluate = ckce.evaluate
    monkeypatch.setattr(
        ckce, "evaluate", lambda y, q, **o: (seen.append(q), evaluate(y, q, **o))[1]
    )
    assert run("score preds.npz") == expected
    assert isinstance(seen[0].base, np.memmap)


def test_demo(run):
    start = time.process_time()
    code, out, err = run("demo --text")
    assert time.process_time() - start < 10
    assert (code, err) == (0, "")
    assert "honest is the best calibrated of 3 models" in out
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
    ("score q.npy", 1, r"q\.npy holds one array: give the labels as another file, --labels "),
    ("score q.npy --labels yy.npy", 1, r"yy\.npy does not exist; did you mean 'y\.npy'"),
    ("score preds.npz --probs prob", 1, "no array 'prob', it holds .*; did you mean 'probs'"),
    ("score preds.npz --labels lables", 1, "no array 'lables', .*; did you mean 'labels'"),
    ("score preds.npz --labels xyz", 1, "no array 'xyz', .*; name one with --labels"),
    (
        "score preds.csv",
        1,
        "no column 'probs', it has 'label', 'p0', .* name the columns with --pr",
    ),
    ("score preds.csv --probs p0,p1,p3", 1, "no column 'p3', it has .* with --probs, '"),
    ("score hole.csv --probs p", 1, "line 2 column 'p2' is '', expected a number"),
    ("score one_based.npz", 1, r"labels row \d+ is 3, expected 0\.\.2 .*pass --classes 1\.\.3"),
    ("score logits.npz", 1, r"probs row \d+ column \d+ is .*; pass --input logits if these are"),
    ("score logits.npz --input logprobs", 1, "a log-probability is at most 0; pass --input logits"),
    ("score percent.npz", 1, "expected probabilities .* divide by 100 if they are percentages"),
    ("score scaled.npz", 1, r"row 0 sums to 0\.9.*pass --normalize to rescale"),
    ("score unequal.npz", 1, "has 149 rows, but .* has 150"),
    ("score empty.npz", 1, r"empty\.npz has no rows"),
    ("score nan.npz", 1, "row 7 column 2 is nan"),
    ("score real_labels.npz", 1, "labels must hold integers or strings, got dtype float64"),
    ("score one_hot.npz", 1, r"must have shape \(n_samples,\), got \(150, 3\)"),
    ("score cube.npz", 1, r"shape \(n_samples, n_classes\).*got \(1, 150, 3\)"),
    ("score names.npz --classes a,b,d", 1, r"row \d+ has the label 'c', but the classes are 'a'"),
    ("score preds.npz --classes a,b", 1, "classes must give 3 distinct names, got 'a', 'b'"),
    ("score preds.npz --classes 5..7", 1, r"has the label \d, but the classes are '5'"),
    ("score preds.npz --kernel linear --bandwidth 2", 1, "kernel='linear' takes no bandwidth"),
    ("score preds.npz --input logits --normalize", 1, "normalize and from_logits exclude"),
    ("score preds.npz preds.npz", 2, "score takes one data set, got 2 files; pass --shards"),
    ("compare preds.npz", 2, "compare takes at least 2 files, .* got 1; use ckce score for one"),
    ("compare preds.npz preds.npz", 2, "each file must be given once"),
    ("compare preds.npz sharp.npz --names a", 2, "--names: must give 2 different names, got a"),
    ("compare preds.npz sharp.npz --level 2", 2, "--level: must be between 0 and 1, got '2'"),
    ("compare preds.npz four.npz", 1, "one shape, since rows are paired, got .*150, 3"),
    ("compare preds.npz logits.npz", 1, "model 'logits': probs row .* pass --input logits"),
    ("stream preds.npz", 2, "the following arguments are required: -o/--output"),
    ("stream preds.npz -o state.npz", 2, "--output: must end in .ckce, got 'state.npz'"),
    ("stream logprobs.npz -o a.ckce --input logprobs", 2, "--input: stream takes probs or logits"),
    ("stream logits.npz -o a.ckce", 1, "pass --input logits if these are logits"),
    ("merge preds.npz", 1, "preds.npz must be a state file .* that ckce stream has written"),
    ("merge nothing.ckce", 1, "nothing.ckce"),
    ("report preds.npz", 2, "the following arguments are required: -o/--output"),
    (
        "report preds.npz -o nowhere/page.html",
        1,
        "the folder nowhere of nowhere/page.html does not",
    ),
    ("report preds.npz -o folder", 1, "folder is a directory; name a file in it with -o"),
    ("score", 2, "the following arguments are required: FILE"),
    ("score preds.npz --lables y.npy", 2, "unknown option '--lables'; did you mean '--labels'"),
    ("score preds.npz --bandwidth wide", 2, "--bandwidth: must be 'median' or a positive number"),
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
    ("score preds.npz --method exakt", 2, "got 'exakt'; did you mean 'exact'"),
    ("score preds.npz --input logit", 2, "got 'logit'; did you mean 'logits'"),
    ("score preds.npz --classes 3..1", 2, r"must be a range such as 1\.\.10, got '3\.\.1'"),
    ("score preds.npz --json --quiet", 2, "not allowed with argument --json"),
    ("scroe preds.npz", 2, r"unknown command 'scroe'; did you mean 'score'\? \(see ckce --help\)"),
    ("bench now", 2, "unexpected argument 'now'"),
    ("demo now", 2, "unexpected argument 'now'"),
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
    (commands,) = (a for a in cli._parser()._actions if isinstance(a, argparse._SubParsersAction))
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
    assert "honest is the best calibrated" in process.stdout


def test_interrupt(run):
    rng = np.random.default_rng(0)
    np.savez("p.npz", probs=rng.dirichlet(np.ones(40), 40_000), labels=np.arange(40_000) % 40)
    # A shell that starts the tests in the background lets them ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        assert run("score p.npz --method exact") == (130, "", "ckce: error: interrupted\n")
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


def test_on_a_terminal_there_are_tables_and_colours(tmp_path):
    pty = pytest.importorskip("pty")
    np.savez(tmp_path / "p.npz", probs=Q, labels=Y)
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
    words = [sys.executable, "-m", "ckce", "score", "p.npz"]
    subprocess.run(words, cwd=tmp_path, stdout=theirs, env=environment, check=True)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "\x1b[1m" in shown
    assert "debiased" in shown
