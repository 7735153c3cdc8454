"""Logs of inspect_ai: ``.eval`` (a zip archive, often with Zstandard members) and ``.json``.

A sample is a question with choices. The prediction is read where the answer begins: the probabilities
of the letters among `top_logprobs`, renormalised. The label is the target of the sample, never the
answer that the model drew.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ckce._input import Choices, InputError, listed, warn
from ckce._scan.formats import File
from ckce._scan.log import (
    OTHER_TASK,
    LogOptions,
    Part,
    items,
    log_number,
    member,
    object_of,
    parse,
    shown,
)

_ZSTANDARD = 93  # in a zip archive
_MEMBER_LIMIT = 2**28  # bytes of a sample
_MARKS = str.maketrans({"\u0120": " ", "\u2581": " ", "\u010a": "\n"})  # spaces of vocabularies
_MISSING = 1e-3  # of the letters' mass, that letters outside the largest may have at most
_LOGPROBS = "run the task with logprobs=True and top_logprobs=20"


class _Answer(NamedTuple):
    """A question that was read."""

    identity: str
    scores: list[float]
    label: int
    correct: bool | None
    confidence: float  # of the logged token
    sampled: bool  # the logged token is not that of the completion
    missing: int


def is_log(file: File) -> bool:
    """Whether a file is such a log, by its first bytes."""
    with file.path.open("rb") as stream:
        head = stream.read(2**14)
    if file.suffix == ".eval":
        return True
    return b'"eval"' in head and b'"status"' in head and b'"version"' in head


def read(file: File, options: LogOptions) -> Part:
    """Multiple-choice samples of a task."""
    options.only(file, "logs of inspect_ai", "order")
    samples = _samples(file)
    header = next(samples)[1]
    status = header.get("status")
    if status != "success":
        raise InputError(
            f"{file.name} has the status {shown(status)}; the run did not end: repeat it"
        )
    _check_plan(file, header.get("plan"))
    task = member(object_of(member(header, "eval", file.name), file.name), "task", file.name)
    answers: dict[str, _Answer] = {}
    epochs: dict[str, Any] = {}
    failed, repeated = [], 0
    for where, sample in samples:
        key = shown(member(sample, "id", where))
        if sample.get("error") is not None:
            failed.append(key)
            continue
        epoch = sample.get("epoch", 1)
        if key in epochs:
            if epochs[key] == epoch:
                raise InputError(f"{where} is there twice in epoch {shown(epoch)}")
            repeated += 1
            continue
        epochs[key] = epoch
        answers[key] = _answer(where, sample)
    if not answers:
        raise InputError(f"{file.name} has no sample that was finished")
    return _part(file, str(task), list(answers.values()), failed, repeated, options)


def _check_plan(file: File, plan: Any) -> None:
    """Refuse shuffled choices: answer and target are logged in the old order, letters in the new."""
    steps = plan.get("steps") if isinstance(plan, dict) else None
    for step in steps if isinstance(steps, list) else []:
        params = step.get("params") if isinstance(step, dict) else None
        if isinstance(params, dict) and params.get("shuffle") not in (None, False):
            raise InputError(
                f"{file.name} has choices that the solver shuffled, so letters of tokens and targets differ; "
                "shuffle the dataset instead (shuffle_choices)"
            )
        if isinstance(params, dict) and params.get("multiple_correct") is True:
            raise InputError(f"{file.name} has questions with several right answers", OTHER_TASK)


def _part(
    file: File,
    task: str,
    answers: list[_Answer],
    failed: list[str],
    repeated: int,
    options: LogOptions,
) -> Part:
    n = len(answers)
    if failed:
        warn(
            f"{file.name} has {len(failed)} samples that failed, {listed(failed, 3)}, although its status "
            "is success; they are left out"
        )
    notes = ["letters are read out of top_logprobs and renormalised"]
    if repeated:
        notes.append(f"the first epoch of each sample is kept, {repeated} repetitions are left out")
    sampled = sum(answer.sampled for answer in answers)
    if sampled:
        notes.append(
            f"{sampled} of {n} logged tokens are not those of the completion, which was sampled"
        )
    missing = sum(answer.missing for answer in answers)
    if missing:
        warn(
            f"{file.name} has {missing} letters that are not among top_logprobs; they count as 0, which is "
            f"wrong by at most {_MISSING:g} of the probability of all letters"
        )
    judged = [answer.correct for answer in answers]
    return Part(
        task,
        np.array([answer.label for answer in answers], np.int64),
        Choices([a.scores for a in answers], order=options.choice_order, word="letters"),
        [answer.identity for answer in answers],
        np.array([answer.scores[answer.label] for answer in answers]),
        None if None in judged else np.array(judged, np.bool_),
        notes=tuple(notes),
        confidence=np.array([answer.confidence for answer in answers]),
    )


def _answer(where: str, sample: dict[str, Any]) -> _Answer:
    """The prediction at the letter of a sample."""
    choices = sample.get("choices")
    if not isinstance(choices, list) or len(choices) < 2:
        raise InputError(f"{where} has no choices", OTHER_TASK)
    label = _target(where, sample.get("target"), choices)
    output = object_of(member(sample, "output", where), where)
    completion = output.get("completion")
    outputs = items(output.get("choices"), "choices in its output", where)
    logprobs = outputs[0].get("logprobs") if outputs and isinstance(outputs[0], dict) else None
    if not isinstance(logprobs, dict) or not logprobs.get("content"):
        raise InputError(f"{where} has no logprobs; {_LOGPROBS}")
    content = [object_of(e, where) for e in items(logprobs["content"], "tokens", where)]
    texts = [_text(entry, where) for entry in content]
    at = _position(where, texts, len(choices))
    sampled = not _matches(where, texts, at, completion)
    scores, missing = _letters(where, content[at], len(choices))
    correct = _correct(where, sample, label, None if sampled else _letter(texts[at], len(choices)))
    asked = json.dumps([sample.get("id"), sample.get("input")], sort_keys=True)
    own = log_number(member(content[at], "logprob", where), where, "log-probability")
    return _Answer(asked, scores, label, correct, math.exp(own), sampled, missing)


def _target(where: str, target: Any, choices: list[Any]) -> int:
    if isinstance(target, list) and len(target) == 1:
        target = target[0]
    if isinstance(target, list):
        raise InputError(f"{where} has several right answers, {shown(target)}", OTHER_TASK)
    letter = _letter(target, len(choices)) if isinstance(target, str) else None
    if letter is None:
        raise InputError(
            f"{where} has the target {shown(target)}, expected a letter of its {len(choices)} choices"
        )
    return letter


def _letter(text: str, count: int) -> int | None:
    """Which choice a token names."""
    bare = text.translate(_MARKS).strip()
    index = ord(bare) - ord("A") if len(bare) == 1 else -1
    return index if 0 <= index < count else None


def _text(entry: dict[str, Any], where: str) -> str:
    token = member(entry, "token", where)
    if not isinstance(token, str):
        raise InputError(f"{where} has the token {shown(token)}, expected a string")
    return token


def _position(where: str, texts: list[str], count: int) -> int:
    """Where the letter of the answer is: the only one, or the one behind "ANSWER:"."""
    found = [t for t, text in enumerate(texts) if _letter(text, count) is not None]
    if len(found) > 1:
        before = ["".join(texts[:t]).translate(_MARKS).strip().lower() for t in found]
        marked = [t for t, b in zip(found, before, strict=True) if b.endswith("answer:")]
        found = marked if len(marked) == 1 else found
    if len(found) != 1:
        what = "no token that is a letter" if not found else f"{len(found)} tokens that are letters"
        raise InputError(
            f"{where} has {what} of its choices, so nobody can tell where the answer begins; ask for the "
            'letter alone, or for "ANSWER: B"'
        )
    return found[0]


def _matches(where: str, texts: list[str], at: int, completion: Any) -> bool:
    """Whether the logged token is that of the completion; what stands before it must be."""
    if not isinstance(completion, str):
        return True
    said = "".join(completion.split())
    before = "".join("".join(texts[:at]).translate(_MARKS).split())
    if not said.startswith(before):
        raise InputError(
            f"{where} has logged tokens that are not those of the completion {shown(completion)}, so its "
            "predictions are of another text"
        )
    return said[len(before) :].startswith(texts[at].translate(_MARKS).strip())


def _letters(where: str, entry: dict[str, Any], count: int) -> tuple[list[float], int]:
    """Log-probabilities of the letters, and how many are not among the largest."""
    top = items(entry.get("top_logprobs"), "top_logprobs", where)
    form = _text(entry, where).translate(_MARKS)  # " B" and "B" are different tokens
    spaces = len(form) - len(form.lstrip())
    mass = [0.0] * count
    smallest = 0.0
    for each in top:
        number = log_number(member(each, "logprob", where), where, "log-probability")
        smallest = min(smallest, number)
        text = _text(each, where).translate(_MARKS)
        letter = _letter(text, count)
        if letter is not None and len(text) == len(form) and text[:spaces] == form[:spaces]:
            mass[letter] += math.exp(number)
    missing = mass.count(0.0)
    if missing == count or missing * math.exp(smallest) > _MISSING * sum(mass):
        raise InputError(
            f"{where} has {missing} of {count} letters outside its {len(top)} top_logprobs, and they may "
            f"have more than {_MISSING:g} of the probability of all; {_LOGPROBS}"
        )
    return [math.log(each) if each else -math.inf for each in mass], missing


def _correct(where: str, sample: dict[str, Any], label: int, letter: int | None) -> bool | None:
    """What the scorer said: "C" is correct, "I" incorrect; both are no letters."""
    scores = sample.get("scores")
    if not isinstance(scores, dict):
        return None
    known = {"C": True, "I": False, 1: True, 0: False}
    values = [s.get("value") for s in scores.values() if isinstance(s, dict)]
    judged = [known[v] for v in values if isinstance(v, (str, int, float)) and v in known]
    if not judged:
        return None
    if letter is not None and judged[0] != (letter == label):
        raise InputError(
            f"{where} answers {chr(ord('A') + letter)}, the target is {chr(ord('A') + label)}, but its "
            f"score is {shown(values[0])}"
        )
    return judged[0]


def _samples(file: File) -> Iterator[tuple[str, dict[str, Any]]]:
    """The header, then the samples, and where they are."""
    if file.suffix == ".eval":
        yield from _archived(file)
        return
    found = parse(file.path.read_bytes(), file.name)
    yield file.name, found
    samples = found.get("samples")
    if not isinstance(samples, list):
        raise InputError(f"{file.name} has no samples; run the task with log_samples")
    for number, sample in enumerate(samples):
        sample = object_of(sample, f"{file.name} sample {number}")
        yield f"{file.name} sample {shown(sample.get('id'))}", sample


def _archived(file: File) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        archive = zipfile.ZipFile(file.path)
    except Exception:  # zipfile raises many kinds for a damaged directory
        raise InputError(f"{file.name} is not a zip archive: it is cut off or damaged") from None
    with archive:
        members = archive.infolist()
        header = next((info for info in members if info.filename == "header.json"), None)
        if header is None:
            raise InputError(f"{file.name} has no header.json: the run did not end; repeat it")
        yield file.name, parse(_content(file, archive, header), f"{file.name} header.json")
        samples = [info for info in members if info.filename.startswith("samples/")]
        if not samples:
            raise InputError(f"{file.name} has no samples; run the task with log_samples")
        for info in samples:
            where = f"{file.name} {info.filename}"
            yield where, parse(_content(file, archive, info), where)


def _content(file: File, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of a member; Python reads Zstandard from 3.14 on."""
    where = f"{file.name} {info.filename}"
    if info.file_size > _MEMBER_LIMIT:
        raise InputError(
            f"{where} declares {info.file_size} bytes, expected at most {_MEMBER_LIMIT}"
        )
    try:
        if info.compress_type == _ZSTANDARD:
            data = bytes(_decompressor()(_raw(file.path, info), info.file_size + 1))
        else:
            data = archive.read(info)
    except (ImportError, MemoryError):
        raise
    except Exception:  # each library has its own errors for damage
        data = b""
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise InputError(f"{where} is damaged: its bytes do not match their checksum")
    return data


def _raw(path: Path, info: zipfile.ZipInfo) -> bytes:
    with path.open("rb") as stream:
        stream.seek(info.header_offset)
        local = stream.read(30)
        stream.seek(
            int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little"), 1
        )
        return stream.read(info.compress_size)


def has_zstandard() -> bool:
    """Whether Zstandard can be read here."""
    try:
        _decompressor()
    except ImportError:
        return False
    return True


def _decompressor() -> Any:
    """A function of bytes and the most bytes that come out of them."""
    try:
        from compression import zstd  # of Python 3.14

        return zstd.ZstdDecompressor().decompress
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError:
        raise ImportError(
            "this .eval log is compressed with Zstandard, which needs Python 3.14 or: pip install "
            '"ckce[logs]"; or convert the log to .json with inspect log convert'
        ) from None
    return lambda data, most: zstandard.ZstdDecompressor().stream_reader(data).read(most)
