"""Responses of completion services, one a line: vLLM's `prompt_logprobs`, OpenAI's `top_logprobs`.

The label of a position is the token that stands there. In a prompt it was given; in a completion the
model has drawn it from its own prediction, so that it is calibrated by construction: such tokens are
refused unless the caller says that the text was given. Tokens are matched by id or by bytes, never
by text: parts of one character are all shown as U+FFFD.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ckce._input import InputError, TopKPredictions, join_top_k, within
from ckce._scan.formats import File
from ckce._scan.lm_eval import task_of
from ckce._scan.log import LogOptions, Part, items, json_lines, log_number, member, object_of, shown

_SLACK = 1e-4  # of log-probabilities that are written with few digits


class Position(NamedTuple):
    """A token and the largest entries of its prediction."""

    token: int
    log_likelihood: float
    ids: list[int]
    logs: list[float]


def is_log(found: dict[str, Any]) -> bool:
    """Whether an object is a response."""
    body = _body(found)
    return "prompt_logprobs" in body or (
        isinstance(body.get("choices"), list) and ("object" in body or "model" in body)
    )


def _body(found: dict[str, Any]) -> dict[str, Any]:
    """The response itself; batch files of OpenAI wrap it."""
    response = found.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    return body if isinstance(body, dict) else found


def read(file: File, options: LogOptions) -> Part:
    """Tokens of all responses; each response is a document."""
    options.only(file, "responses of completion services", "given_text")
    tops: list[TopKPredictions] = []
    tokens, numbers, groups = [], [], []
    ids: list[str] = []
    for where, found in json_lines(file):
        positions = list(_positions(where, _body(found), options.given_text))
        if not positions:
            continue
        own = [position.token for position in positions]
        groups.append(np.full(len(own), len(tops)))
        tops.append(_top_of(where, positions))
        tokens.append(np.array(own, np.int64))
        numbers.append(np.array([position.log_likelihood for position in positions]))
        text = hashlib.blake2b(repr(own).encode(), digest_size=16).hexdigest()
        ids += [f"{text}:{position}" for position in range(len(own))]
    if not tops:
        raise InputError(f"{file.name} has no position with log-probabilities")
    top = join_top_k(tops)
    known, row = top.ranked().known, top.ranked().row
    notes = []
    if known < top.k - 1:
        group = int(np.concatenate(groups)[row])
        notes.append(f"k is {known}, because a position of response {group} has no more entries")
    return Part(
        task_of(file),
        np.concatenate(tokens),
        # a token of rank k + 1 makes one more entry known in its own row
        top.first(known) if known == top.k - 1 else top,
        ids,
        np.concatenate(numbers),
        groups=np.concatenate(groups),
        notes=tuple(notes),
    )


def _top_of(where: str, positions: list[Position]) -> TopKPredictions:
    """The largest entries of a document."""
    try:
        return TopKPredictions(
            [position.logs for position in positions],
            [position.ids for position in positions],
            input="log_probs",
        )
    except InputError as error:
        raise within(where, error) from None


def _positions(where: str, body: dict[str, Any], given_text: bool) -> Iterator[Position]:
    choices = items(member(body, "choices", where), "choices", where)
    if len(choices) != 1:
        raise InputError(f"{where} has {len(choices)} choices, expected 1; ask for n=1")
    choice = object_of(choices[0], where)
    prompt = choice.get("prompt_logprobs", body.get("prompt_logprobs"))
    if prompt is not None:
        yield from _prompt(where, choice, body, items(prompt, "prompt_logprobs", where))
        return
    logprobs = choice.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if content is None:
        legacy = isinstance(logprobs, dict) and "token_logprobs" in logprobs
        raise InputError(
            f"{where} names tokens by their text only, which is not unique; ask for chat completions or "
            "prompt_logprobs"
            if legacy
            else f"{where} has no log-probabilities; ask for prompt_logprobs=20 (vLLM), or for "
            "logprobs=True and top_logprobs=20"
        )
    if not given_text:
        raise InputError(
            f"{where} has tokens that the model generated: drawn from its own predictions, they are "
            "calibrated by construction and tell nothing",
            (
                "given_text",
                "pass given_text=True if this text was given to the model, not generated by it",
            ),
        )
    for t, entry in enumerate(items(content, "tokens", where)):
        yield _generated(f"{where} token {t}", object_of(entry, where))


def _prompt(
    where: str, choice: dict[str, Any], body: dict[str, Any], entries: list[Any]
) -> Iterator[Position]:
    """vLLM: null, then k entries by id, or k + 1 if the token is not among the first k."""
    actual = choice.get("prompt_token_ids", body.get("prompt_token_ids"))
    if actual is not None and len(items(actual, "prompt_token_ids", where)) != len(entries):
        raise InputError(
            f"{where} has {len(actual)} prompt_token_ids and {len(entries)} prompt_logprobs"
        )
    for t, entry in enumerate(entries):
        if entry is None and t == 0:
            continue
        here = f"{where} token {t}"
        found = object_of(entry, here)
        if not found:
            raise InputError(f"{here} has no log-probabilities")
        token = next(iter(found)) if actual is None else str(actual[t])
        if token not in found:
            raise InputError(f"{here} is the token {token}, which has no entry in prompt_logprobs")
        yield _ranked(here, token, found)


def _ranked(where: str, token: str, found: dict[str, Any]) -> Position:
    """The entries that are the largest: all, or all but the token itself."""
    entries: list[tuple[int, float, int]] = []
    for key, value in found.items():
        if not key.isdecimal() or len(key) > 18:
            raise InputError(f"{where} has {shown(key)} as a token id, expected an integer")
        number = log_number(member(value, "logprob", where), where, "log-probability")
        rank = value.get("rank")
        if not isinstance(rank, int) or isinstance(rank, bool) or rank < 1:
            raise InputError(
                f"{where} has the rank {shown(rank)}: without ranks nobody can tell k entries from "
                "the k + 1 that a rare token has"
            )
        entries.append((rank, number, int(key)))
    entries.sort()
    own = next(entry for entry in entries if entry[2] == int(token))
    top = entries if own[0] <= len(entries) else [e for e in entries if e is not own]
    _check_order(where, own[1], own in top, [number for _, number, _ in top])
    ranks = [rank for rank, _, _ in top]
    if ranks and ranks[-1] > len(ranks):
        raise InputError(f"{where} has the ranks {shown(ranks)}, expected 1 to {len(ranks)}")
    if not top:
        raise InputError(f"{where} has the token itself only; ask for prompt_logprobs=20")
    return Position(own[2], own[1], [i for _, _, i in top], [n for _, n, _ in top])


def _generated(where: str, entry: dict[str, Any]) -> Position:
    """OpenAI: the token, and k entries that need not hold it."""
    number = log_number(member(entry, "logprob", where), where, "log-probability")
    token = _id_of(entry, where)
    top = [
        (_id_of(each, where), log_number(member(each, "logprob", where), where, "log-probability"))
        for each in items(entry.get("top_logprobs"), "top_logprobs", where)
    ]
    if not top:
        raise InputError(f"{where} has no top_logprobs; ask for top_logprobs=20")
    held = dict(top)
    if len(held) < len(top):
        raise InputError(f"{where} has two top_logprobs with the same bytes")
    if token in held and abs(held[token] - number) > _SLACK:
        raise InputError(
            f"{where} has the log-probability {number:g}, but {held[token]:g} among top_logprobs"
        )
    _check_order(where, number, token in held, sorted(held.values(), reverse=True))
    return Position(token, number, list(held), list(held.values()))


def _check_order(where: str, number: float, listed: bool, top: list[float]) -> None:
    """Refuse entries out of order, and a token outside the largest that is larger than one."""
    if any(a < b - _SLACK for a, b in pairwise(top)):
        raise InputError(f"{where} has ranks that do not follow its log-probabilities")
    if not listed and top and number > top[-1] + _SLACK:
        raise InputError(
            f"{where} has the log-probability {number:g} and is not among the largest, whose smallest is "
            f"{top[-1]:g}: tokens do not match"
        )


def _id_of(entry: Any, where: str) -> int:
    """A number for the bytes of a token, the same in every file."""
    found = member(entry, "bytes", where)
    if not isinstance(found, list) or not found:
        raise InputError(
            f"{where} has the token {shown(entry.get('token'))} without bytes; texts of tokens are not "
            "unique"
        )
    try:
        content = bytes(found)
    except (TypeError, ValueError):
        raise InputError(f"{where} has {shown(found)} as bytes, expected 0 to 255") from None
    digest = hashlib.blake2b(content, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
