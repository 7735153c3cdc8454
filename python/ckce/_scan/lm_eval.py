"""Logs of lm-evaluation-harness: ``samples_<task>_<time>.jsonl``, written with ``--log_samples``.

A line is a document and a filter. `target` is an index, a letter, the text of a choice or, where the
choices are contexts, none of these; nothing in the file says which. So each reading is tried on every
line: the right one is that under which the argmax of the log-likelihoods reproduces the line's `acc`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ckce._input import Choices, InputError, listed
from ckce._scan.formats import File
from ckce._scan.log import (
    OTHER_TASK,
    SENTINEL,
    LogOptions,
    Part,
    items,
    json_lines,
    log_number,
    member,
    shown,
)

#: Metrics that tell whether an argmax was right, and of which log-likelihood.
_CHECKS = {
    "acc": "raw",
    "acc_norm": "chars",
    "acc_bytes": "bytes",
    "acc_mutual_info": "mutual_info",
}
_METRIC_OF = {kind: metric for metric, kind in _CHECKS.items()}
_NAME = re.compile(r"samples_(.+?)_\d{4}-\d{2}-\d{2}T[\d:.-]+")
_TARGET = ("target", "name the right reading with target=")


def is_log(found: dict[str, Any]) -> bool:
    """Whether an object is a line of such a log."""
    return "filtered_resps" in found or {"doc_id", "resps"} <= found.keys()


def task_of(file: File) -> str:
    """The task that the name of a file tells."""
    stem = file.path.name.removesuffix(".gz").rpartition(".")[0] or file.path.name
    found = _NAME.fullmatch(stem)
    return found[1] if found else stem


@dataclass
class _Question:
    """A line."""

    where: str
    texts: list[str]  # what tells the choices from each other
    by_context: bool
    raw: list[float]
    unconditional: list[float] | None
    found: dict[str, Any]
    answers: dict[str, bool]  # by metric of _CHECKS: whether the argmax was right

    def scores(self, kind: str, spaces: int) -> list[float]:
        """Log-likelihoods of a kind; `spaces` in front of a text that count as characters."""
        if kind == "raw":
            return self.raw
        if kind == "mutual_info":
            if self.unconditional is None:
                raise InputError(
                    f"{self.where} has no unconditional log-likelihoods",
                    ("loglikelihood", "run the task with the metric acc_mutual_info"),
                )
            if not all(map(math.isfinite, self.unconditional)):
                raise InputError(f"{self.where} has an unconditional log-likelihood of -inf")
            return [a - b for a, b in zip(self.raw, self.unconditional, strict=True)]
        if self.by_context:
            raise InputError(
                f"{self.where} has choices that are contexts of one continuation, so "
                f"loglikelihood={kind!r} would divide by the lengths of contexts",
                ("loglikelihood", "pass loglikelihood='raw'"),
            )
        sizes = [len(text.encode() if kind == "bytes" else text) + spaces for text in self.texts]
        if 0 in sizes:
            raise InputError(f"{self.where} has an empty choice, which has no length to divide by")
        return [score / size for score, size in zip(self.raw, sizes, strict=True)]


def _as_index(value: Any, texts: list[str], first: int = 0) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,6}\s*", value):
        value = int(value)
    if not isinstance(value, int) or not first <= value < len(texts) + first:
        return None
    return value - first


def _as_number(value: Any, texts: list[str]) -> int | None:
    return _as_index(value, texts, 1)


def _as_letter(value: Any, texts: list[str]) -> int | None:
    letter = value.strip(" ().:").upper() if isinstance(value, str) else ""
    index = ord(letter) - ord("A") if len(letter) == 1 else -1
    return index if 0 <= index < len(texts) else None


def _as_text(value: Any, texts: list[str]) -> int | None:
    if not isinstance(value, str):
        return None
    if value in texts:
        return texts.index(value)
    bare = [text.strip() for text in texts]
    return bare.index(value.strip()) if value.strip() in bare else None


_WAYS: dict[str, Callable[[Any, list[str]], int | None]] = {
    "index": _as_index,
    "letter": _as_letter,
    "text": _as_text,
}
_DOC_WAYS = {**_WAYS, "number": _as_number}  # number: counted from 1


@dataclass
class _Reading:
    """A way to find the right choice, as long as no line speaks against it."""

    name: str
    way: Callable[[Any, list[str]], int | None]
    member: str | None = None  # of the doc; None is `target`
    labels: list[int] = field(default_factory=list)
    failed: tuple[int, str] | None = None  # lines before, and what the line says

    def follow(self, question: _Question) -> None:
        if self.failed is not None:
            return
        doc = question.found.get("doc")
        value = question.found.get("target") if self.member is None else None
        if self.member is not None and isinstance(doc, dict):
            value = doc.get(self.member)
        label = self.way(value, question.texts)
        why = None
        if label is None:
            why = f"{shown(value)} is none of {len(question.texts)} choices"
        for metric, right in question.answers.items():
            scores = question.scores(_CHECKS[metric], 0)
            best = int(np.argmax(scores))
            if label is not None and (best == label) != right:
                why = (
                    f"{shown(value)} is choice {label} and the argmax is choice {best}, but {metric} "
                    f"is {int(right)}"
                )
            break  # the first metric of the line
        if why is not None or label is None:
            self.failed = (len(self.labels), f"{question.where}: read as {self.name}, {why}")
        else:
            self.labels.append(label)


@dataclass
class _Rows:
    """Lines of one filter, as they come."""

    options: LogOptions
    kind: str
    readings: list[_Reading] = field(default_factory=list)
    scores: list[tuple[list[float], list[float]]] = field(default_factory=list)
    raw: list[list[float]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    answers: list[dict[str, bool]] = field(default_factory=list)
    seen: dict[Any, str] = field(default_factory=dict)  # where a document was

    def add(self, where: str, found: dict[str, Any]) -> None:
        question = _question(where, found)
        if not self.ids:
            self.readings = _readings(found, self.options.target, where)
        elif question.answers.keys() != self.answers[0].keys():
            raise InputError(
                f"{where} has {listed(question.answers)} as accuracy, but the first line has "
                f"{listed(self.answers[0])}"
            )
        key = found.get("doc_id", found.get("doc_hash", where))
        key = key if isinstance(key, (str, int)) else repr(key)
        if key in self.seen:
            raise InputError(
                f"{where} repeats the document {shown(key)} of {self.seen[key]} with the same filter; "
                "keep one run in a file"
            )
        self.seen[key] = where
        for reading in self.readings:
            reading.follow(question)
        spaced = question.scores(self.kind, 1) if self.kind in ("chars", "bytes") else []
        self.scores.append((question.scores(self.kind, 0), spaced))
        self.raw.append(question.raw)
        self.ids.append(_identity(found, key))
        self.answers.append(question.answers)


def read(file: File, options: LogOptions) -> Part:
    """Multiple-choice questions of a task."""
    options.only(
        file, "logs of lm-evaluation-harness", "loglikelihood", "target", "filter", "order"
    )
    rows = _Rows(options, "raw" if options.loglikelihood is None else options.loglikelihood)
    filters: dict[str, None] = {}
    kept = options.filter
    for where, found in json_lines(file):
        name = str(found.get("filter", "none"))
        filters[name] = None
        kept = name if kept is None else kept
        if name == kept:
            rows.add(where, found)
    if not filters:
        raise InputError(f"{file.name} is empty, expected a JSON object a line")
    if not rows.ids:
        raise InputError(f"{file.name} has no filter {kept!r}, it has {listed(filters)}")
    chosen = _choose(file, rows)
    labels = np.array(chosen.labels, np.int64)
    notes = [f"target is read as {chosen.name}"]
    if len(filters) > 1:
        notes.append(f"filter {kept!r} is kept of {listed(filters)}")
    metric = next(iter(rows.answers[0]), None)
    scores, spaces = _checked_scores(rows, chosen.labels)
    if rows.kind in ("chars", "bytes"):
        counted = "with" if spaces else "without"
        notes.append(f"the length of a choice counts {counted} the space in front")
    return Part(
        task_of(file),
        labels,
        Choices(scores, order=options.choice_order, word=rows.kind),
        rows.ids,
        np.array([row[label] for row, label in zip(rows.raw, chosen.labels, strict=True)]),
        None if metric is None else np.array([each[metric] for each in rows.answers]),
        notes=tuple(notes),
    )


def _identity(found: dict[str, Any], key: Any) -> str:
    """The same in the log of another model."""
    hashed = found.get("doc_hash")
    return hashed if isinstance(hashed, str) else f"doc {key}"


def _readings(found: dict[str, Any], target: str | None, where: str) -> list[_Reading]:
    """What `target` may mean, and then what members of the doc may mean."""
    readings = [_Reading(name, way) for name, way in _WAYS.items()]
    doc = found.get("doc")
    scalars = (
        {n: v for n, v in doc.items() if isinstance(v, (str, int))} if isinstance(doc, dict) else {}
    )
    for name in scalars:
        readings += [_Reading(f"doc:{name}:{how}", way, name) for how, way in _DOC_WAYS.items()]
    if target is None:
        if "target" not in found:
            raise InputError(f"{where} has no member 'target'", _TARGET)
        return readings
    asked = [r for r in readings if r.name == target or r.name.rpartition(":")[0] == target]
    if not asked:
        known = [*_WAYS, *(f"doc:{name}" for name in scalars)]
        raise InputError(f"target must be one of {listed(known, 20)}, got {target!r} ({where})")
    return asked


def _choose(file: File, rows: _Rows) -> _Reading:
    """The reading that no line speaks against."""
    asked = rows.options.target is not None
    verified = bool(rows.answers[0])
    if not verified and not asked:
        raise InputError(
            f"{file.name} has none of {', '.join(_CHECKS)}, which would tell how to read 'target'",
            _TARGET,
        )
    for readings in (
        [r for r in rows.readings if r.member is None],
        [r for r in rows.readings if r.member is not None],
    ):
        alive = [reading for reading in readings if reading.failed is None]
        if not alive:
            continue
        first, *others = alive
        for other in others:
            if other.labels != first.labels:
                row = next(
                    i
                    for i, (a, b) in enumerate(zip(first.labels, other.labels, strict=True))
                    if a != b
                )
                what = "agree with every accuracy" if verified else "are possible"
                raise InputError(
                    f"{file.name} can be read in two ways: {first.name} and {other.name} {what}, but "
                    f"{list(rows.seen.values())[row]} differs, choice {first.labels[row]} or "
                    f"{other.labels[row]}",
                    _TARGET,
                )
        return first
    plain = [r for r in rows.readings if r.member is None] or rows.readings
    best = max(plain, key=lambda reading: reading.failed or (0, ""))
    assert best.failed is not None
    raise InputError(f"{best.failed[1]}; no reading of the target fits every line", _TARGET)


def _checked_scores(rows: _Rows, labels: list[int]) -> tuple[list[list[float]], int]:
    """Scores whose argmax reproduces the metric of their kind, and the spaces that they count.

    A choice follows a space, which is the delimiter of nearly all tasks and does not count; in others
    it belongs to the choice.
    """
    metric = _METRIC_OF[rows.kind]
    first_wrong, metric_at = "", False
    for spaces in (0, 1) if rows.kind in ("chars", "bytes") else (0,):
        wrong = None
        for where, both, label, right in zip(
            rows.seen.values(), rows.scores, labels, rows.answers, strict=True
        ):
            if metric in right and (int(np.argmax(both[spaces])) == label) != right[metric]:
                wrong, metric_at = where, right[metric]
                break
        if wrong is None:
            return [both[spaces] for both in rows.scores], spaces
        first_wrong = first_wrong or wrong
    raise InputError(
        f"{first_wrong} has {metric} {int(metric_at)}, which the argmax of loglikelihood={rows.kind!r} "
        "does not reproduce: the lengths of the choices cannot be told",
        ("loglikelihood", "pass loglikelihood='raw'"),
    )


def _question(where: str, found: dict[str, Any]) -> _Question:
    """A line whose requests are choices."""
    responses = items(member(found, "filtered_resps", where), "responses", where)
    requests = _requests(where, member(found, "arguments", where))
    _refuse_other_tasks(where, found, responses, requests)
    if len(requests) != len(responses):
        raise InputError(
            f"{where} has {len(requests)} requests and {len(responses)} responses: it is damaged"
        )
    numbers = [_log_likelihood(response, where) for response in responses]
    contexts, continuations = [str(a) for a, _ in requests], [str(b) for _, b in requests]
    half, unconditional = len(numbers) // 2, None
    if (
        len(numbers) % 2 == 0
        and half > 1
        and not any(contexts[half:])
        and any(contexts[:half])
        and continuations[:half] == continuations[half:]
    ):
        unconditional = numbers[half:]
        numbers, contexts, continuations = numbers[:half], contexts[:half], continuations[:half]
    elif "acc_mutual_info" in found:
        raise InputError(
            f"{where} has acc_mutual_info, but no unconditional requests with an empty context"
        )
    if max(numbers) == -math.inf:
        raise InputError(f"{where} has log-likelihoods of -inf only, which is no prediction")
    by_context = len(set(continuations)) == 1 and len(set(contexts)) > 1
    texts = contexts if by_context else [text.removeprefix(" ") for text in continuations]
    answers = {name: _answer(found[name], name, where) for name in _CHECKS if name in found}
    return _Question(where, texts, by_context, numbers, unconditional, found, answers)


def _requests(where: str, arguments: Any) -> list[tuple[Any, Any]]:
    """Context and continuation of each request; recent versions have objects, older ones lists."""
    if isinstance(arguments, dict):
        named = [(key, arguments.get(f"gen_args_{i}")) for i, key in enumerate(arguments)]
        if any(not isinstance(request, dict) for _, request in named):
            raise InputError(f"{where} must have arguments gen_args_0, gen_args_1, ...")
        return [(r.get("arg_0"), r.get("arg_1")) for _, r in named if isinstance(r, dict)]
    pairs = [
        (each[0] if each else None, each[1] if len(each) > 1 else None)
        for each in items(arguments, "arguments", where)
        if isinstance(each, list)
    ]
    if len(pairs) != len(arguments):
        raise InputError(f"{where} must have pairs of context and continuation as arguments")
    return pairs


def _refuse_other_tasks(
    where: str, found: dict[str, Any], responses: list[Any], requests: list[tuple[Any, Any]]
) -> None:
    """Refuse by name what has no probabilities of several choices, or several right ones."""
    what = None
    if any(isinstance(continuation, dict) for _, continuation in requests):
        what = "text that was generated (generate_until), which has no probabilities of choices"
    elif requests and all(continuation is None for _, continuation in requests):
        what = "the likelihood of whole texts (loglikelihood_rolling), and no choices"
    elif len(requests) == 1 or len(responses) == 1:
        what = "one request for each document (loglikelihood), and no choices"
    else:
        target = found.get("target")
        if isinstance(target, str) and target.lstrip().startswith("["):
            try:
                target = json.loads(target.replace("'", '"'))
            except (ValueError, RecursionError):
                target = None
        if isinstance(target, list):
            what = f"several right answers, {shown(target)}"
    if what is not None:
        raise InputError(f"{where} has {what}", OTHER_TASK)


def _log_likelihood(response: Any, where: str) -> float:
    """The number of ``[log-likelihood, is_greedy]``."""
    if isinstance(response, list) and len(response) == 1 and isinstance(response[0], list):
        response = response[0]  # one repeat
    if not isinstance(response, list) or len(response) != 2:
        raise InputError(
            f"{where} has {shown(response)} as a response, expected [log-likelihood, is_greedy]"
        )
    number = log_number(response[0], where, "log-likelihood")
    if number == SENTINEL:
        raise InputError(
            f"{where} has the log-likelihood -9999.0, which some services return in place of a small "
            "one; score with a model that returns all of them"
        )
    return number


def _answer(value: Any, name: str, where: str) -> bool:
    if isinstance(value, str):
        value = {"0": 0, "0.0": 0, "1": 1, "1.0": 1, "False": 0, "True": 1}.get(value, value)
    if isinstance(value, float) and 0.0 < value < 1.0:
        raise InputError(
            f"{where} has {name} {shown(value)}, a share, as tasks with several right answers have",
            OTHER_TASK,
        )
    if isinstance(value, str) or not isinstance(value, (int, float)) or value not in (0, 1):
        raise InputError(f"{where} has {name} {shown(value)}, expected 0 or 1")
    return bool(value)
