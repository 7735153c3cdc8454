"""Logs of language-model tools: every format gives the numbers that were written into it."""

import gzip
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import logs
import numpy as np
import pytest

import ckce
from ckce import reference
from ckce._cli.main import main

SCORES, RIGHT = logs.made_up()
NAME = "samples_sums_2026-01-01T00-00-00.123.jsonl"
RANKS, SORTED = reference.sorted_choices(RIGHT, SCORES)
HITS = np.array([np.argmax(row) == y for row, y in zip(SCORES, RIGHT, strict=True)])
REAL = os.environ.get("CKCE_LOGS")  # a folder of real logs with their expected.json


def write(folder, content, name=NAME):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else logs.as_lines(content))
    return path


def same_questions(log):
    np.testing.assert_array_equal(log.y_true, RIGHT)
    assert ckce.accuracy(log.y_true, log.y_prob) == HITS.mean()
    np.testing.assert_array_equal(log.correct, HITS)
    raw = [row[y] for row, y in zip(SCORES, RIGHT, strict=True)]
    np.testing.assert_allclose(log.log_likelihood, raw, rtol=1e-15)
    expected = -np.log(SORTED[np.arange(len(RANKS)), RANKS]).mean()
    assert ckce.log_loss(log.y_true, log.y_prob) == pytest.approx(expected, rel=1e-12)


# Choices.


def test_choices_by_rank_are_the_literal_definition():
    choices = ckce.Choices(SCORES)
    labels, probs = choices.arranged(RIGHT)
    np.testing.assert_array_equal(labels, RANKS)
    np.testing.assert_allclose(probs, SORTED, rtol=1e-14)
    e = ckce.estimate(RIGHT, choices, bandwidth=0.4, method="exact")
    assert e.value == pytest.approx(reference.ckce(RANKS, SORTED, bandwidth=0.4), rel=1e-9)
    assert e.classes == ("rank 1", "rank 2", "rank 3", "rank 4", "rank 5")
    assert "in:choices(sorted)" in e.signature


def test_all_ranks_are_one_more_than_top_k():
    """TopK(k) of as many classes as there are choices: the last is what the others leave."""
    padded = np.zeros((len(SCORES), 5))
    for q, row in zip(padded, SCORES, strict=True):
        q[: len(row)] = np.exp(row) / np.exp(row).sum()
    top = ckce.ckce(RIGHT, padded, reduction=ckce.TopK(4), bandwidth=0.5)
    assert ckce.ckce(RIGHT, ckce.Choices(SCORES), bandwidth=0.5) == pytest.approx(top, rel=1e-9)
    two = ckce.ckce(RIGHT, padded, reduction=ckce.TopK(2), bandwidth=0.5)
    reduced = ckce.ckce(RIGHT, ckce.Choices(SCORES), reduction=ckce.TopK(2), bandwidth=0.5)
    assert reduced == pytest.approx(two, rel=1e-9)


def test_the_order_of_choices_does_not_matter_by_rank():
    rng = np.random.default_rng(1)
    orders = [rng.permutation(len(row)) for row in SCORES]
    shuffled = [np.array(row)[order].tolist() for row, order in zip(SCORES, orders, strict=True)]
    right = [int(np.argmax(order == y)) for order, y in zip(orders, RIGHT, strict=True)]
    value = ckce.ckce(RIGHT, ckce.Choices(SCORES))
    assert ckce.ckce(right, ckce.Choices(shuffled)) == pytest.approx(value, rel=1e-12)
    by_position = ckce.ckce(RIGHT, ckce.Choices(SCORES, order="position"))
    assert by_position != pytest.approx(value, rel=1e-3)


def test_choices_by_position():
    e = ckce.estimate(RIGHT, ckce.Choices(SCORES, order="position", word="raw"))
    assert e.classes[0] == "choice 1"
    assert "in:choices(position,raw)" in e.signature


def test_choices_of_probabilities_and_padded_arrays():
    rows = [[0.5, 0.25, 0.25], [0.75, 0.25]]
    padded = np.array([[0.5, 0.25, 0.25], [0.75, 0.25, np.nan]])
    y = [2, 1]
    value = ckce.brier(y, ckce.Choices(rows, input="probs"))
    assert value == (0.25 + 0.0625 + 0.5625 + 0.5625 + 0.5625) / 2
    assert ckce.brier(y, ckce.Choices(np.log(padded), input="log_probs")) == pytest.approx(value)
    assert ckce.brier(y, ckce.Choices(np.log(padded) + 7.0)) == pytest.approx(value)


def test_ties_go_to_the_first_choice():
    assert ckce.accuracy([1, 0], ckce.Choices([[0.0, 0.0], [0.0, 0.0, -1.0]])) == 0.5
    # so near that the probabilities are equal: scores decide
    assert ckce.accuracy([1], ckce.Choices([[-1e-17, 0.0]])) == 1.0


# lm-evaluation-harness.


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    ("target", "note"),
    [
        ("index", "index"),
        ("letter", "letter"),
        ("text", "text"),
        ("contexts", "doc:gold:index"),
    ],
)
def test_every_kind_of_target_is_read(tmp_path, target, note, old):
    log = ckce.read_log(write(tmp_path, logs.lm_eval_lines(target=target, old=old)))
    same_questions(log)
    assert log.notes == (f"sums: target is read as {note}",)
    assert log.task_names == ("sums",)
    assert log.ids[7] == "hash 7"


@pytest.mark.parametrize("dress", ["gzip", "bom", "crlf", "blank lines"])
def test_text_in_other_dresses(tmp_path, dress):
    text = logs.as_lines(logs.lm_eval_lines())
    if dress == "gzip":
        path = write(tmp_path, gzip.compress(text), f"{NAME}.gz")
    else:
        dressed = {
            "bom": b"\xef\xbb\xbf" + text,
            "crlf": text.replace(b"\n", b"\r\n"),
            "blank lines": text.replace(b"\n", b"\n\n"),
        }[dress]
        path = write(tmp_path, dressed)
    same_questions(ckce.read_log(path))


def test_an_index_that_is_also_the_text_of_a_choice(tmp_path):
    """A reader that looks for the text first would take another choice."""
    rng = np.random.default_rng(0)
    lines = logs.lm_eval_lines()
    for line in lines:
        order = rng.permutation(len(line["filtered_resps"]))
        line["doc"] = {}
        line["arguments"] = {
            f"gen_args_{j}": {"arg_0": "?", "arg_1": f" {t}"} for j, t in enumerate(order)
        }
    log = ckce.read_log(write(tmp_path, lines))
    same_questions(log)
    assert log.notes == ("sums: target is read as index",)
    with pytest.raises(ValueError, match="read as text"):
        ckce.read_log(write(tmp_path, lines), target="text")


def test_a_log_without_accuracy_needs_the_target(tmp_path):
    lines = [{k: v for k, v in line.items() if k != "acc"} for line in logs.lm_eval_lines()]
    path = write(tmp_path, lines)
    with pytest.raises(ValueError, match="target="):
        ckce.read_log(path)
    for target in ("index", "doc:gold:index"):
        log = ckce.read_log(path, target=target)
        np.testing.assert_array_equal(log.y_true, RIGHT)
        assert log.correct is None
    with pytest.raises(ValueError, match="doc:gold:number"):  # some rows have the choice 0
        ckce.read_log(path, target="doc:gold:number")


def test_lengths_and_mutual_information(tmp_path):
    rng = np.random.default_rng(2)
    lines, lengths, unconditional = logs.lm_eval_lines(), [], []
    for line, row in zip(lines, SCORES, strict=True):
        texts = ["\u00e9" * int(rng.integers(1, 6)) + str(j) for j in range(len(row))]
        lengths.append([len(text) for text in texts])
        unconditional.append(rng.normal(-9.0, 2.0, len(row)).tolist())
        line["arguments"] = {
            f"gen_args_{j}": {"arg_0": "Q:" if j < len(row) else "", "arg_1": f" {text}"}
            for j, text in enumerate([*texts, *texts])
        }
        line["filtered_resps"] = [[repr(x), "False"] for x in [*row, *unconditional[-1]]]
        line["acc_mutual_info"] = 0.0  # set below
    readings = {
        "raw": SCORES,
        "chars": [(np.array(r) / n).tolist() for r, n in zip(SCORES, lengths, strict=True)],
        "bytes": [
            (np.array(r) / (2 * np.array(n) - 1)).tolist()
            for r, n in zip(SCORES, lengths, strict=True)
        ],
        "mutual_info": [
            (np.array(r) - u).tolist() for r, u in zip(SCORES, unconditional, strict=True)
        ],
    }
    names = {"chars": "acc_norm", "bytes": "acc_bytes", "mutual_info": "acc_mutual_info"}
    for kind, name in names.items():
        for line, row, y in zip(lines, readings[kind], RIGHT, strict=True):
            line[name] = float(np.argmax(row) == y)
    path = write(tmp_path, lines)
    signatures = set()
    for kind, scores in readings.items():
        log = ckce.read_log(path, loglikelihood=kind)
        ranks, probs = reference.sorted_choices(RIGHT, scores)
        e = ckce.estimate(**log.arguments(), bandwidth=0.4, method="exact")
        assert e.value == pytest.approx(reference.ckce(ranks, probs, bandwidth=0.4), rel=1e-9)
        assert f"in:choices(sorted,{kind})" in e.signature
        signatures.add(e.signature)
    assert len(signatures) == 4


@pytest.mark.parametrize("spaces", [0, 1])
def test_whether_the_space_in_front_counts_is_told_by_acc_norm(tmp_path, spaces):
    rng = np.random.default_rng(3)
    lines, scores = [], []
    for i, y in enumerate(RIGHT):
        row = rng.uniform(-20.0, -2.0, len(SCORES[i])).tolist()
        line = logs.lm_eval_line(i, row, int(y))
        lengths = 1 + np.arange(len(row))
        for j, size in enumerate(lengths):
            line["arguments"][f"gen_args_{j}"]["arg_1"] = " " + "x" * size
        scores.append((np.array(row) / (lengths + spaces)).tolist())
        lines.append(line | {"acc_norm": float(np.argmax(scores[-1]) == y)})
    log = ckce.read_log(write(tmp_path, lines), loglikelihood="chars")
    assert log.notes[1].endswith(
        "with the space in front" if spaces else "without the space in front"
    )
    expected = reference.sorted_choices(RIGHT, scores)[1]
    np.testing.assert_allclose(log.y_prob.arranged(RIGHT)[1], expected, rtol=1e-13)


def test_an_impossible_choice_has_probability_zero(tmp_path):
    lines = logs.lm_eval_lines()
    worst = int(np.argmin(SCORES[0]))
    lines[0]["filtered_resps"][worst][0] = "-inf"
    log = ckce.read_log(write(tmp_path, lines))
    assert log.y_prob.probs[0, worst] == 0.0


def test_one_filter_is_kept_and_named(tmp_path):
    lines = logs.lm_eval_lines()
    both = [line | {"filter": name} for line in lines for name in ("strict", "loose")]
    log = ckce.read_log(write(tmp_path, both))
    same_questions(log)
    assert log.notes[1] == "sums: filter 'strict' is kept of 'strict', 'loose'"
    assert "'loose' is kept" in ckce.read_log(write(tmp_path, both), filter="loose").notes[1]


# Folders.


def a_folder(path, seed=0):
    write(path, logs.lm_eval_lines(seed=seed))
    write(path, logs.lm_eval_lines(40, seed=5), "samples_other_2026-01-01T00-00-00.jsonl")
    return path


def test_a_folder_is_all_of_its_tasks(tmp_path):
    (tmp_path / "out").mkdir()
    folder = a_folder(tmp_path / "out" / "model")
    write(folder, b'{"results": {}}', "results_2026-01-01T00-00-00.json")
    for path in (folder, tmp_path / "out"):
        log = ckce.read_log(path)
        assert (len(log), log.task_names) == (100, ("other", "sums"))
    same_questions(log.split()["sums"])
    labels, choices = ckce.scan(folder).read()
    np.testing.assert_array_equal(labels, log.y_true)
    assert ckce.ckce(labels, choices) == ckce.ckce(log.y_true, log.y_prob)
    sizes = [len(labels) for labels, _ in ckce.scan(folder, batch_size=30)]
    assert sizes == [30, 30, 30, 10]


def test_a_sample_of_a_log(tmp_path):
    folder = a_folder(tmp_path / "model")
    scan = ckce.scan(folder, batch_size=30)
    labels, choices = scan.sample(40)
    rows = [(row, y) for row, y in zip(choices.probs.tolist(), labels.tolist(), strict=True)]
    whole, all_choices = scan.read()
    assert len(rows) == 40
    assert all(row in zip(all_choices.probs.tolist(), whole.tolist(), strict=True) for row in rows)
    with pytest.raises(TypeError, match="an array in a stream"):
        scan.accumulate()


def test_other_tasks_of_a_folder_are_left_out_by_name(tmp_path):
    folder = a_folder(tmp_path / "model")
    line = logs.lm_eval_lines(1)[0]
    write(folder, [line | {"target": "[0, 1]"}], "samples_two_2026-01-01T00-00-00.jsonl")
    with pytest.warns(UserWarning, match=r"1 of 3 files.*two \(line 1 has several right answers"):
        assert len(ckce.read_log(folder)) == 100


def test_broken_files_of_a_folder_are_refused(tmp_path):
    folder = a_folder(tmp_path / "model")
    write(folder, logs.as_lines(logs.lm_eval_lines())[:-9], "samples_cut_2026-01-01T00-00-00.jsonl")
    with pytest.raises(ValueError, match=r"samples_cut.* line 60 is not JSON"):
        ckce.read_log(folder)


def test_two_runs_of_a_task_are_refused(tmp_path):
    folder = a_folder(tmp_path / "model")
    write(folder, logs.lm_eval_lines(), NAME.replace("00-00.123", "00-01"))
    with pytest.raises(ValueError, match="two runs of the task 'sums'; keep one"):
        ckce.read_log(folder)


def test_folders_of_several_models_are_refused(tmp_path):
    for name in ("a", "b"):
        a_folder(tmp_path / name)
    with pytest.raises(ValueError, match="logs in several folders, 'a', 'b'"):
        ckce.read_log(tmp_path)


def test_a_folder_without_logs_is_still_a_directory(tmp_path):
    with pytest.raises(IsADirectoryError):
        ckce.scan(tmp_path)


# Tokens.

LOGS, TOKENS = logs.made_up_tokens()
FLAT, GROUPS = LOGS.reshape(-1, 40), np.repeat(np.arange(12), 9)


def token_files(folder, k):
    lines = list(zip(LOGS, TOKENS, strict=True))
    write(folder, [logs.vllm_line(a, b, k) for a, b in lines], "vllm.jsonl")
    chat = [logs.openai_line(a, b, k) for a, b in lines]
    write(folder, chat, "openai.jsonl")
    batch = [{"custom_id": str(i), "response": {"body": each}} for i, each in enumerate(chat)]
    write(folder, batch, "batch.jsonl")
    order = np.argsort(-FLAT, axis=1)[:, :k]
    np.savez(
        folder / "arrays.npz",
        top_ids=order,
        top_logprobs=np.take_along_axis(FLAT, order, axis=1),
        target_id=TOKENS.ravel(),
        target_logprob=np.take_along_axis(FLAT, TOKENS.reshape(-1, 1), axis=1)[:, 0],
        doc_id=GROUPS,
    )


@pytest.mark.parametrize("k", [3, 7])
@pytest.mark.parametrize("file", ["vllm.jsonl", "openai.jsonl", "batch.jsonl", "arrays.npz"])
def test_tokens_have_the_values_of_the_full_predictions(tmp_path, file, k):
    token_files(tmp_path, k)
    labels, top = ckce.scan(tmp_path / "vllm.jsonl", batch_size=50).sample(60)
    assert (len(labels), top.k) == (60, k)
    given = {"given_text": True} if file in ("openai.jsonl", "batch.jsonl") else {}
    log = ckce.read_log(tmp_path / file, **given)
    assert (len(log), log.y_prob.k, log.reduction) == (108, k, ckce.TopK(k))
    found = ckce.estimate(**log.arguments())
    full = {"reduction": ckce.TopK(k), "groups": GROUPS, "input": "log_probs"}
    expected = ckce.estimate(TOKENS.ravel(), FLAT, **full)
    for name in ("value", "debiased", "se"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12)
    own = np.take_along_axis(FLAT, TOKENS.reshape(-1, 1), axis=1)[:, 0]
    np.testing.assert_allclose(log.log_likelihood, own, rtol=1e-15)


def test_every_token_outside_the_largest(tmp_path):
    """All positions have k + 1 entries: their number alone would not tell k."""
    rarest = LOGS.argmin(axis=2)
    lines = [logs.vllm_line(a, b, 4) for a, b in zip(LOGS, rarest, strict=True)]
    log = ckce.read_log(write(tmp_path, lines, "vllm.jsonl"))
    assert log.y_prob.k == 4
    assert (log.y_prob.ranks(log.y_true) == 4).all()


def test_documents_of_two_files_differ(tmp_path):
    token_files(tmp_path, 5)
    log = ckce.read_log([tmp_path / "vllm.jsonl", tmp_path / "arrays.npz"])
    assert (log.task_names, len(set(log.groups))) == (("vllm", "arrays"), 24)


def test_few_documents_are_no_groups(tmp_path):
    lines = [logs.vllm_line(a, b, 4) for a, b in zip(LOGS[:8], TOKENS[:8], strict=True)]
    log = ckce.read_log(write(tmp_path, lines, "vllm.jsonl"))
    with pytest.warns(UserWarning, match="8 documents are too few"):
        assert "groups" not in log.arguments()


def test_arrays_that_do_not_fit_are_refused(tmp_path):
    token_files(tmp_path, 5)
    arrays = dict(np.load(tmp_path / "arrays.npz"))
    for name, value, words in [
        ("target_logprob", arrays["target_logprob"][::-1], "row 0 does not fit its top_logprobs"),
        ("target_id", arrays["target_id"][:-1], "107 rows and floats|107 rows and integers"),
        ("doc_id", arrays["doc_id"][:-1], "'doc_id' must have shape"),
        ("top_ids", arrays["top_ids"] + 0.5, "integers, got"),
    ]:
        np.savez(tmp_path / "bad.npz", **(arrays | {name: value}))
        with pytest.raises(ValueError, match=words):
            ckce.read_log(tmp_path / "bad.npz")


def test_next_tokens_have_the_values_of_the_full_predictions():
    labels = TOKENS.copy()
    labels[3, 2:5] = -100
    labels[5] = -100
    kept = labels[:, 1:] != -100
    y, top, groups = ckce.next_tokens(LOGS + 3.0, labels, k=6)
    options = {"reduction": ckce.TopK(6), "input": "log_probs"}
    expected = ckce.ckce(TOKENS[:, 1:][kept], LOGS[:, :-1][kept], **options)
    assert ckce.ckce(y, top, reduction=ckce.TopK(6)) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(groups, np.repeat(np.arange(12), 8).reshape(12, 8)[kept])
    aligned = ckce.next_tokens(LOGS, TOKENS, k=6, shift=False, input="log_probs")
    assert len(aligned[0]) == TOKENS.size


# inspect_ai.


@pytest.mark.parametrize("prefix", [(), ("ANSWER", ":")])
@pytest.mark.parametrize("space", [" ", "\u0120", "\u2581"])
@pytest.mark.parametrize("kind", ["json", "eval", "zstandard"])
def test_letters_of_inspect_ai(tmp_path, kind, space, prefix):
    if kind == "zstandard":
        pytest.importorskip("zstandard")
    log = logs.inspect_log(prefix=prefix, space=space)
    content = json.dumps(log).encode() if kind == "json" else logs.as_eval(log, kind != "eval")
    read = ckce.read_log(write(tmp_path, content, "run.json" if kind == "json" else "run.eval"))
    scores, right = logs.made_up(n_choices=(4,))
    np.testing.assert_array_equal(read.y_true, right)
    expected = reference.sorted_choices(right, scores)[1]
    np.testing.assert_allclose(read.y_prob.arranged(right)[1], expected, rtol=1e-12)
    assert ckce.accuracy(read.y_true, read.y_prob) == read.correct.mean()
    np.testing.assert_allclose(read.confidence, expected[:, 0] * np.exp(-0.01), rtol=1e-12)
    assert read.task_names == ("letters",)


def test_zstandard_is_named_where_it_is_missing(tmp_path, monkeypatch):
    pytest.importorskip("zstandard")
    path = write(tmp_path, logs.as_eval(logs.inspect_log(2), True), "run.eval")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    with pytest.raises(ImportError, match=r"pip install \"ckce\[logs\]\""):
        ckce.read_log(path)
    write(tmp_path, json.dumps(logs.inspect_log(2)).encode(), "run.json")
    assert ckce.read_log(tmp_path).files == (str(tmp_path / "run.json"),)


def test_a_member_that_grows_is_not_unpacked():
    """A few bytes of Zstandard can be gigabytes; no more comes out than the archive declares."""
    pytest.importorskip("zstandard")
    import zstandard

    large = zstandard.ZstdCompressor().compress(bytes(2**26))
    from ckce._scan.inspect_ai import _decompressor

    assert len(_decompressor()(large, 100)) == 100


def test_of_twins_one_is_read(tmp_path):
    log = logs.inspect_log(5)
    write(tmp_path, logs.as_eval(log), "run.eval")
    write(tmp_path, json.dumps(log).encode(), "run.json")
    assert len(ckce.read_log(tmp_path)) == 5


def test_epochs_failures_and_sampled_answers(tmp_path):
    log = logs.inspect_log(12)
    first = ckce.read_log(write(tmp_path, json.dumps(log).encode(), "first.json"))
    outputs = [sample["output"] for sample in log["samples"]]
    again = [
        sample | {"epoch": 2, "output": other, "scores": {}}
        for sample, other in zip(log["samples"], outputs[1:] + outputs[:1], strict=True)
    ]
    log["samples"][3]["error"] = {"message": "timeout"}
    again[3]["error"] = {"message": "timeout"}
    sampled = log["samples"][5]
    letter = next(t for t in "ABCD" if t not in sampled["output"]["completion"])
    sampled["output"]["completion"] = f" {letter}"
    sampled["scores"]["match"] = {"value": "C" if letter == sampled["target"] else "I"}
    log["samples"] += again
    path = write(tmp_path, json.dumps(log).encode(), "run.json")
    with pytest.warns(UserWarning, match="2 samples that failed.*although its status is success"):
        read = ckce.read_log(path)
    expected = np.delete(first.y_prob.probs, 3, axis=0)
    np.testing.assert_array_equal(read.y_prob.probs, expected)
    assert read.notes[1:] == (
        "letters: the first epoch of each sample is kept, 11 repetitions are left out",
        "letters: 1 of 11 logged tokens are not those of the completion, which was sampled",
    )


def test_letters_written_in_another_way_are_other_tokens(tmp_path):
    log = logs.inspect_log(12)
    expected = ckce.read_log(write(tmp_path, json.dumps(log).encode(), "run.json")).y_prob.probs
    for sample in log["samples"]:
        entry = sample["output"]["choices"][0]["logprobs"]["content"][0]
        entry["top_logprobs"].insert(1, {"token": "B", "logprob": -2.0})
    read = ckce.read_log(write(tmp_path, json.dumps(log).encode(), "run.json"))
    np.testing.assert_array_equal(read.y_prob.probs, expected)


def test_letters_outside_the_largest_that_hardly_matter(tmp_path):
    log = logs.inspect_log(12)
    entry = log["samples"][2]["output"]["choices"][0]["logprobs"]["content"][0]
    entry["top_logprobs"] = [
        {"token": entry["token"], "logprob": -0.001},
        {"token": "x", "logprob": -9.0},
    ]
    path = write(tmp_path, json.dumps(log).encode(), "run.json")
    with pytest.warns(UserWarning, match="3 letters that are not among top_logprobs"):
        read = ckce.read_log(path)
    assert read.y_prob.probs[2].max() == 1.0


# Several models.


def perturbed(lines, temperature, kept=slice(None)):
    """Another model on the same questions."""
    found = []
    for line in lines[kept]:
        row = [float(x) / temperature for x, _ in line["filtered_resps"]]
        found.append(line | {"filtered_resps": [[repr(x), "False"] for x in row]})
    return found


def two_models(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        for task, seed in (("sums", 0), ("words", 1)):
            lines = logs.lm_eval_lines(80, seed=seed)
            if name == "b":  # fewer lines, in another order
                lines = perturbed(lines, 3.0, slice(None, 29 if task == "sums" else 9, -1))
            write(folder / name, lines, f"samples_{task}_2026-01-01T00-00-00.jsonl")
    return folder / "a", folder / "b"


def test_logs_are_joined_by_task_and_document(tmp_path):
    a, b = (ckce.read_log(path) for path in two_models(tmp_path))
    joined = ckce.join_logs({"a": a, "b": b})
    assert joined.sentence == "120 rows of 2 tasks matched (160 of a, 120 of b)"
    np.testing.assert_array_equal(joined.logs["a"].ids, joined.logs["b"].ids)
    np.testing.assert_array_equal(joined.logs["a"].tasks, joined.logs["b"].tasks)
    np.testing.assert_allclose(
        joined.logs["a"].log_likelihood, 3.0 * joined.logs["b"].log_likelihood
    )
    comparison = ckce.compare(**joined.arguments())
    assert comparison.n_samples == 120
    by_task = joined.split()
    assert [len(part) for part in by_task.values()] == [50, 70]
    own = ckce.estimate(**by_task["sums"].logs["b"].arguments())
    assert own.n_samples == 50


def test_two_readings_are_both_in_the_signature():
    choices = {word: ckce.Choices(SCORES, word=word) for word in ("raw", "chars")}
    signature = ckce.compare(RIGHT, choices).signature
    assert "in:choices(sorted,chars)+choices(sorted,raw)" in signature


def test_equal_documents_are_matched_in_their_order(tmp_path):
    lines = [line | {"doc_hash": "one"} for line in logs.lm_eval_lines(6)]
    a = ckce.read_log(write(tmp_path / "a", lines))
    joined = ckce.join_logs({"a": a, "b": a})
    assert len(joined) == 6


def test_another_right_answer_is_refused(tmp_path):
    a, b = (ckce.read_log(path) for path in two_models(tmp_path))
    other = ckce.read_log(tmp_path / "a")
    other.y_true[20] = (other.y_true[20] + 1) % 3
    assert len(b) == 120
    with pytest.raises(ValueError, match=r"with another right answer \(1 of 160 rows"):
        ckce.join_logs({"a": a, "other": other})


# The command line.


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def call(line):
        try:
            code = main(line.split())
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return call


def test_score_of_a_folder(run, tmp_path):
    two_models(tmp_path)
    code, out, _ = run("score a")
    data = json.loads(out)
    log = ckce.read_log("a")
    assert code == 0
    assert list(data["tasks"]) == ["sums", "words"]
    assert data["ckce_debiased"] == ckce.estimate(**log.arguments()).debiased
    part = log.split()["words"]
    assert data["tasks"]["words"]["accuracy"] == ckce.accuracy(part.y_true, part.y_prob)
    code, out, _ = run("score a --text")
    assert "all tasks" in out
    assert "sums, words: target is read as index" in out
    code, out, _ = run("score a --top-k 2 --loglikelihood chars --json")
    assert "reduction:top_k(2)" in json.loads(out)["ckce_signature"]
    assert "choices(sorted,chars)" in json.loads(out)["ckce_signature"]


def test_score_of_tokens(run, tmp_path):
    token_files(tmp_path, 5)
    code, out, _ = run("score vllm.jsonl")
    assert (code, json.loads(out)["n_groups"]) == (0, 12)
    code, out, err = run("score openai.jsonl")
    assert code == 1
    assert "pass --given-text if this text was given to the model" in err
    given = json.loads(run("score openai.jsonl --given-text")[1])
    assert given["ckce"] == pytest.approx(json.loads(out or run("score vllm.jsonl")[1])["ckce"])
    arrays = json.loads(run("score arrays.npz")[1])
    assert arrays["ckce"] == pytest.approx(given["ckce"], rel=1e-12)


def test_compare_of_two_folders(run, tmp_path):
    two_models(tmp_path)
    code, out, _ = run("compare a b")
    data = json.loads(out)
    assert (code, data["matched"], data["rows"]) == (0, 120, {"a": 160, "b": 120})
    assert {model["name"] for model in data["models"]} == {"a", "b"}
    assert list(data["tasks"]) == ["sums", "words"]
    assert data["tasks"]["sums"]["level"] == 0.975
    _, out, _ = run("compare a b --text --names old,new")
    assert out.startswith("120 rows of 2 tasks matched (160 of old, 120 of new)")
    assert "verdicts at 97.5 %" in out


def test_small_tasks_have_no_line(run, tmp_path):
    for path in two_models(tmp_path):
        lines = logs.lm_eval_lines(20, seed=3)
        write(path, lines[:3], "samples_tiny_2026-01-01T00-00-00.jsonl")
        write(path, lines, "samples_small_2026-01-01T00-00-00.jsonl")
    _, out, _ = run("score a --text")
    assert "4 tasks, 183 rows" in out
    assert "Too small for a line of their own, fewer than 10 rows: tiny (3)." in out
    assert [line.split()[3] for line in out.splitlines() if line.startswith("small ")] == ["-"]
    _, out, _ = run("compare a b --text")
    assert "tiny (3)" in out
    assert list(json.loads(run("compare a b")[1])["tasks"]) == ["small", "sums", "words"]


def test_report_and_plot_of_logs(run, tmp_path):
    two_models(tmp_path)
    code, _, err = run("report a b -o page.html --no-sensitivity")
    assert (code, err) == (0, "")
    assert "120 rows of 2 tasks matched" in Path("page.html").read_text()
    assert run("report a -o one.html --no-test")[0] == 0
    assert run("plot a b -o plot.png")[0] == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("score a --labels y.npy", "argument --labels: a log of a language model needs none"),
        ("score a --groups doc", "argument --groups: a log of a language model needs none"),
        ("score preds.npz --target text", "argument --target: is for logs of language models"),
        ("score preds.npz --given-text", "argument --given-text: is for logs"),
        ("stream a -o a.ckce", "stream takes no logs of language models"),
        ("compare a", "compare takes the logs of at least 2 models"),
        ("compare a preds.npz", "is no log of a language model, but"),
        ("compare a a", "each file must be given once"),
        ("score a --loglikelihood words", "argument --loglikelihood must be one of 'raw'"),
        ("score .", "has logs in several folders"),
    ],
)
def test_wrong_uses(run, tmp_path, line, words):
    two_models(tmp_path)
    np.savez("preds.npz", probs=np.full((20, 2), 0.5), labels=np.arange(20) % 2)
    code, _, err = run(line)
    assert code in (1, 2)
    assert words in err


def test_a_log_from_a_pipe(run, tmp_path, monkeypatch):
    class Pipe:
        buffer = None

    path = write(tmp_path, logs.lm_eval_lines())
    with path.open("rb") as stream:
        Pipe.buffer = stream
        monkeypatch.setattr("sys.stdin", Pipe)
        code, out, _ = run("score -")
    assert (code, json.loads(out)["accuracy"]) == (0, HITS.mean())


# Examples.


def test_the_script_of_the_page(tmp_path):
    token_files(tmp_path, 25)
    folder = a_folder(tmp_path / "model")
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "words.npz", probs=rng.dirichlet(np.ones(30), 200), labels=np.arange(200) % 30
    )
    script = Path(__file__).parents[1] / "examples" / "language_models.py"
    options = [
        "--lm-eval",
        folder,
        "--tokens",
        tmp_path / "arrays.npz",
        "--words",
        tmp_path / "words.npz",
    ]
    done = subprocess.run([sys.executable, script, *options], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "| all tasks | 100 |",
        "100 rows of 2 tasks matched",
        "12 documents",
        "| all words |",
    ):
        assert words in done.stdout


def test_the_metrics_of_a_trainer():
    path = Path(__file__).parents[1] / "examples" / "live_model.py"
    spec = importlib.util.spec_from_file_location("live_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    logits = LOGS.astype(np.float32)
    found = module.compute_metrics((logits, TOKENS))
    y, top, groups = ckce.next_tokens(logits, TOKENS, k=module.K)
    expected = ckce.estimate(y, top, reduction=ckce.TopK(module.K), groups=groups)
    assert found["ckce_debiased"] == expected.debiased


# Hostile files.


def _hostile(value, rng):
    """The same JSON with one value of another kind."""
    odd = [None, True, -1, 10**300, 1e308, "", "nan", [], {}, [[]], "\ud800", -9999.0, float("nan")]
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = list(value)[rng.integers(len(value))]
        return {**value, key: _hostile(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = int(rng.integers(len(value)))
        return [*value[:at], _hostile(value[at], rng), *value[at + 1 :]]
    return odd[rng.integers(len(odd))]


def _message(path, options):
    """What a reader says of a file; other errors are not caught."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ckce.read_log(path, **options)
        except ValueError as error:
            return str(error)
    return None


FILES = {
    NAME: logs.lm_eval_lines(4),
    "vllm.jsonl": [logs.vllm_line(a, b, 4) for a, b in zip(LOGS[:2], TOKENS[:2], strict=True)],
    "chat.jsonl": [logs.openai_line(a, b, 4) for a, b in zip(LOGS[:2], TOKENS[:2], strict=True)],
    "run.json": [logs.inspect_log(4)],
}


@pytest.mark.parametrize("name", FILES)
def test_hostile_files_are_read_or_refused_in_words(tmp_path, name):
    rng = np.random.default_rng(7)
    options = {"given_text": True} if name == "chat.jsonl" else {}
    refused = 0
    for _ in range(150):
        lines = [_hostile(line, rng) if rng.random() < 0.5 else line for line in FILES[name]]
        text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        if rng.random() < 0.2:
            text = text[: rng.integers(len(text))]
        path = write(tmp_path, text, name)
        message = _message(path, options)
        refused += message is not None
        if message is not None:
            assert name in message
            assert len(message) < 600
    assert refused > 30


# Real logs, where they are.


@pytest.mark.skipif(REAL is None, reason="needs CKCE_LOGS, a folder of real logs")
def test_real_logs():
    root = Path(REAL)
    expected = json.loads((root / "expected.json").read_text())
    for task in expected["lm_eval"]:
        path = root / "lm_eval" / expected["model"] / task["file"]
        if not task["readable"]:
            with pytest.raises(ValueError, match="take a multiple-choice task"):
                ckce.read_log(path)
            continue
        log = ckce.read_log(path)
        rows = (log.y_true, log.y_prob)
        assert ckce.accuracy(*rows) == log.correct.mean() == task["acc"]
        assert ckce.ece(*rows) == pytest.approx(task["ece15_top_label"], abs=1e-9)
        assert -ckce.log_loss(*rows) == pytest.approx(task["mean_ll_over_choices"], abs=1e-9)
        assert ckce.brier(*rows) == pytest.approx(task["brier_sum"], abs=1e-9)
        assert log.log_likelihood.mean() == pytest.approx(task["mean_ll_raw"], abs=1e-9)
        for kind, name in (("chars", "acc_norm"), ("mutual_info", "acc_mutual_info")):
            if name in task:
                other = ckce.read_log(path, loglikelihood=kind)
                assert ckce.accuracy(other.y_true, other.y_prob) == task[name]
    for task in expected["inspect"]:
        for suffix in (".json", ".eval"):
            log = ckce.read_log((root / "inspect" / task["file"]).with_suffix(suffix))
            rows = (log.y_true, log.y_prob)
            assert log.correct.mean() == task["accuracy_logged"]
            assert ckce.accuracy(*rows) == task["accuracy_argmax_letter"]
            assert ckce.ece(*rows) == pytest.approx(task["ece15_letters_renormalised"], abs=1e-9)
            assert log.confidence.mean() == pytest.approx(task["mean_top_token_prob"], abs=1e-9)
            answer = (log.correct.astype(int), log.confidence)
            error = task["ece15_top_token_prob_vs_logged_score"]
            assert ckce.ece(*answer, variant="class_wise") == pytest.approx(error, abs=1e-9)
            likelihood = task["mean_ll_letters_renormalised"]
            assert -ckce.log_loss(*rows) == pytest.approx(likelihood, abs=1e-9)
    for file, part, k in (
        ("tokens_top20.npz", "all", 20),
        ("vllm_prompt_logprobs5.jsonl", "first_50_docs", 5),
        ("openai_chat_logprobs5.jsonl", "first_50_docs", 5),
        ("vllm_prompt_logprobs20.jsonl", "first_8_docs", 20),
        ("openai_chat_logprobs20.jsonl", "first_8_docs", 20),
    ):
        log = ckce.read_log(root / "tokens" / file, given_text="openai" in file)
        figures = expected["tokens"][part]
        assert (len(log), len(set(log.groups))) == (figures["tokens"], figures["documents"])
        found = ckce.evaluate(log.y_true, log.y_prob, reduction=log.reduction)
        assert log.reduction == ckce.TopK(k)
        assert found.accuracy == figures["acc"]
        assert found.mean_confidence == pytest.approx(figures["mean_confidence"], abs=1e-9)
        assert found.ece_top_label.value == pytest.approx(figures["ece15_top_label"], abs=1e-9)
        assert log.log_likelihood.mean() == pytest.approx(figures["mean_ll"], abs=1e-9)
        inside = (log.y_prob.ranks(log.y_true) < k).mean()
        assert inside == pytest.approx(figures[f"target_in_top{k}"])
