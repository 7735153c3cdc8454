"""Logs of language-model tools, by file or folder, as arrays."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from os import fspath
from pathlib import Path
from typing import Any

import numpy as np

from ckce._input import Choices, InputError, join_choices, join_top_k, listed, warn
from ckce._scan.formats import File, check_paths, find_file, suffix_of
from ckce._scan.lm_eval import task_of
from ckce._scan.log import Log, LogOptions, Part

_LINES = (".jsonl", ".ndjson")


def log_reader(file: File) -> Any:
    """The module that reads a file as a log, or None."""
    if file.suffix in (".eval", ".json"):
        reader = importlib.import_module("ckce._scan.inspect_ai")
        return reader if reader.is_log(file) else None
    if file.suffix == ".npz":
        reader = importlib.import_module("ckce._scan.token_arrays")
        return reader if reader.is_log(file) else None
    if file.suffix not in _LINES:
        return None
    from ckce._scan.log import json_lines

    try:
        _, first = next(json_lines(file), ("", {}))
    except InputError:
        return None
    for name in ("lm_eval", "completions"):
        reader = importlib.import_module(f"ckce._scan.{name}")
        if reader.is_log(first):
            return reader
    return None


def logs_of(folder: Path) -> list[File]:
    """Log files of a folder, or of its only folder that has some."""
    found = _logs_in(folder)
    if found:
        return found
    inner = {child.name: logs for child in sorted(folder.iterdir()) if (logs := _below(child))}
    if len(inner) > 1:
        raise InputError(
            f"{folder} has logs in several folders, {listed(inner)}; name one, or compare them as models"
        )
    return next(iter(inner.values()), [])


def _below(child: Path) -> list[File]:
    return _logs_in(child) if child.is_dir() else []


def _logs_in(folder: Path) -> list[File]:
    files = []
    for path in sorted(folder.iterdir()):
        suffix, gzipped = suffix_of(path)
        if path.is_file() and (suffix in _LINES or (suffix in (".eval", ".json") and not gzipped)):
            file = File(path, str(path), suffix, gzipped)
            if log_reader(file) is not None:
                files.append(file)
    return _without_twins(files)


def _without_twins(files: list[File]) -> list[File]:
    """Of a log as .eval and as .json, the one that can be read here."""
    from ckce._scan.inspect_ai import has_zstandard

    stems: dict[Path, list[File]] = {}
    for file in files:
        twice = file.suffix in (".eval", ".json")
        stems.setdefault(file.path.with_suffix("") if twice else file.path, []).append(file)
    wanted = ".eval" if has_zstandard() else ".json"
    return [next((f for f in twins if f.suffix == wanted), twins[0]) for twins in stems.values()]


def find_logs(paths: Iterable[Any]) -> list[File] | None:
    """The log files among paths of files and folders; None if they are no logs."""
    found: list[File] = []
    others = []
    for path in paths:
        if isinstance(path, File):
            files = [path] if log_reader(path) is not None else []
        elif Path(fspath(path)).is_dir():
            files = logs_of(Path(fspath(path)))
        else:
            file = find_file(path)
            files = [file] if log_reader(file) is not None else []
        found += files
        others += [] if files else [path]
    if found and others:
        raise InputError(f"{others[0]} is no log of a language model, but {found[0].name} is")
    return found or None


def read_log(
    path: Any,
    *,
    loglikelihood: str | None = None,
    target: str | None = None,
    filter: str | None = None,
    order: str | None = None,
    given_text: bool = False,
) -> Log:
    r"""Read predictions and labels out of logs of language models.

    The tool is found by the content:

    - lm-evaluation-harness, ``samples_<task>_<time>.jsonl`` (``--log_samples``), multiple choice. With
      log-likelihoods :math:`\ell_j` of the choices the prediction is their softmax,
      :math:`q_j \propto \exp \ell_j`.
    - inspect_ai, ``.eval`` or ``.json``, multiple choice with `top_logprobs`: the probabilities of the
      letters where the answer begins, renormalised.
    - Responses of completion services, one a line: `prompt_logprobs` of vLLM, or chat completions with
      `top_logprobs`. Each token is a row, each response a group.
    - ``.npz`` with `top_logprobs`, `top_ids`, `target_id`, and perhaps `doc_id` and `target_logprob`.

    Parameters
    ----------
    path : path, or sequence of paths
        A file, or a folder of them. Files of a folder that hold other tasks (generation, perplexity,
        several right answers) are left out with a warning; alone they are refused.
    loglikelihood : {"raw", "chars", "bytes", "mutual_info"}, optional
        lm-evaluation-harness: the log-likelihood of a choice as it is (the default), divided by its
        characters or bytes as in `acc_norm` and `acc_bytes`, or minus that without a context.
    target : str, optional
        lm-evaluation-harness: how to read `target`: ``"index"``, ``"letter"`` or ``"text"``, or a member
        of the doc, ``"doc:label"``. By default the one reading under which the argmax reproduces
        the accuracy on every line; if there is none, or if two differ, the file is refused.
    filter : str, optional
        lm-evaluation-harness: the filter to keep; the first by default.
    order : {"sorted", "position"}, optional
        Order of the choices, see `Choices`; sorted by default.
    given_text : bool
        Completion services: the tokens were given to the model, and it did not generate them.
        Generated tokens are refused otherwise, because a model is calibrated for tokens that it draws
        from its own predictions, whatever it has learned.

    Returns
    -------
    Log
        `y_true`, `y_prob`, `tasks`, `ids`, `groups`; ``arguments()`` for `evaluate`.

    Notes
    -----
    Text is read line by line, and an ``.eval`` archive sample by sample; a ``.json`` log of inspect_ai
    is loaded whole. The result needs O(rows times choices) memory. Predictions are exact: nothing is
    estimated, so there is no bias.

    Examples
    --------
    >>> import ckce, json, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "samples_sums_2026-01-01T00-00-00.jsonl")
    >>> def line(i, logs, right):
    ...     requests = {f"gen_args_{j}": {"arg_0": "2 + 2 =", "arg_1": f" {j}"} for j in range(3)}
    ...     acc = float(max(range(3), key=logs.__getitem__) == right)
    ...     responses = [[str(x), "False"] for x in logs]
    ...     return {"doc_id": i, "target": str(right), "arguments": requests,
    ...             "filtered_resps": responses, "acc": acc}
    >>> rows = [line(0, [-1.0, -2.5, -3.0], 0), line(1, [-2.0, -1.5, -4.0], 0)]
    >>> with open(path, "w") as file:
    ...     print(*map(json.dumps, rows), sep="\n", file=file)
    >>> log = ckce.read_log(path)
    >>> log
    Log(Choices(n_samples=2, n_choices=3, order='sorted'), tasks=1, files=1)
    >>> log.notes
    ('sums: target is read as index',)
    >>> ckce.accuracy(log.y_true, log.y_prob)
    0.5
    """
    options = LogOptions(loglikelihood, target, filter, order, given_text)
    paths = check_paths(path)
    files = find_logs(paths)
    if files is None:
        raise InputError(
            f"{listed(paths, 3)} holds no log of lm-evaluation-harness, inspect_ai "
            "or a completion service",
            ("use_scan", "read predictions and labels with ckce.scan"),
        )
    return read_logs(files, options)


def read_logs(files: list[File], options: LogOptions) -> Log:
    """All rows of log files; with several of them, those of other tasks are left out."""
    parts: dict[str, tuple[File, Part]] = {}
    others: dict[str, str] = {}
    for file in files:
        try:
            part = log_reader(file).read(file, options)
        except InputError as error:
            if len(files) == 1 or "other_task" not in error.hints:
                raise
            others[task_of(file)] = error.problem.removeprefix(file.name).lstrip(" :")
            continue
        if part.task in parts:
            raise InputError(
                f"{file.name} and {parts[part.task][0].name} are two runs of the task {part.task!r}; keep "
                "one of them in the folder"
            )
        parts[part.task] = (file, part)
    if others:
        told = "; ".join(f"{name} ({why})" for name, why in list(others.items())[:8])
        folder = files[0].path.parent
        warn(f"{folder}: {len(others)} of {len(files)} files are left out: {told}")
    if not parts:
        raise InputError(f"none of {len(files)} files holds multiple-choice predictions")
    return _joined(list(parts.values()))


def _joined(found: list[tuple[File, Part]]) -> Log:
    parts = [part for _, part in found]
    choices = [part.y_prob for part in parts if isinstance(part.y_prob, Choices)]
    tokens = [part.y_prob for part in parts if not isinstance(part.y_prob, Choices)]
    if choices and tokens:
        raise InputError(
            "all files must hold questions, or all tokens, got "
            f"{len(choices)} of questions and {len(tokens)} of tokens; read them apart"
        )
    if len({choice.word for choice in choices}) > 1:
        raise InputError("all files must be logs of one tool, got logs of two; read them apart")
    correct = [part.correct for part in parts if part.correct is not None]
    confidence = [part.confidence for part in parts if part.confidence is not None]
    return Log(
        y_true=np.concatenate([part.y_true for part in parts]),
        y_prob=join_choices(choices) if choices else join_top_k(tokens),
        tasks=np.concatenate([np.full(len(part.y_true), part.task) for part in parts]),
        ids=np.array([each for part in parts for each in part.ids]),
        groups=_groups(parts),
        log_likelihood=np.concatenate([part.log_likelihood for part in parts]),
        correct=np.concatenate(correct) if len(correct) == len(parts) else None,
        confidence=np.concatenate(confidence) if len(confidence) == len(parts) else None,
        notes=tuple(f"{part.task}: {note}" for part in parts for note in part.notes),
        files=tuple(file.name for file, _ in found),
    )


def _groups(parts: list[Part]) -> Any:
    """Documents of all files; those of different files differ."""
    groups = [part.groups for part in parts if part.groups is not None]
    if len(groups) < len(parts):
        return None
    codes, first = [], 0
    for each in groups:
        _, inverse = np.unique(each, return_inverse=True)
        codes.append(inverse.reshape(-1) + first)
        first += int(inverse.max()) + 1
    return np.concatenate(codes)
