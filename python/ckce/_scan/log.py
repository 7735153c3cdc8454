"""Logs of language-model tools: what a file of one holds, and all rows together."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckce._input import (
    LEAST_GROUPS,
    ORDERS,
    Choices,
    InputError,
    TopKPredictions,
    check_bool,
    check_choice,
    warn,
)
from ckce._problem import TopK
from ckce._scan.formats import File
from ckce._scan.text import read_lines

LIKELIHOODS = ("raw", "chars", "bytes", "mutual_info")
SENTINEL = -9999.0  # of OpenAI and vLLM: too unlikely to say
MOST_RANKS = 20  # of tokens that are read by default
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|-inf(inity)?", re.IGNORECASE)
#: What helps where a task holds no predictions of one answer among several.
OTHER_TASK = ("other_task", "take a multiple-choice task with one right answer")


@dataclass(frozen=True)
class LogOptions:
    """How a log is read; None is the default of its format."""

    loglikelihood: str | None = None
    target: str | None = None
    filter: str | None = None
    order: str | None = None
    given_text: bool = False

    def __post_init__(self) -> None:
        if self.loglikelihood is not None:
            check_choice("loglikelihood", self.loglikelihood, LIKELIHOODS)
        if self.order is not None:
            check_choice("order", self.order, ORDERS)
        for name in ("target", "filter"):
            value = getattr(self, name)
            if not isinstance(value, str | None):
                raise TypeError(f"{name} must be a string, got {value!r}")
        check_bool("given_text", self.given_text)

    @property
    def choice_order(self) -> str:
        """That of choices."""
        return "sorted" if self.order is None else self.order

    def only(self, file: File, kind: str, *taken: str) -> None:
        """Refuse options that logs of this kind do not have."""
        for option in fields(self):
            if getattr(self, option.name) != option.default and option.name not in taken:
                raise ValueError(f"{option.name} is not for {kind}, which {file.name} holds")


class Part(NamedTuple):
    """What one file holds."""

    task: str
    y_true: NDArray[Any]
    y_prob: Choices | TopKPredictions
    ids: list[str]
    log_likelihood: NDArray[np.float64]
    correct: NDArray[np.bool_] | None = None
    groups: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    confidence: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Log:
    """Predictions and labels out of logs of a language model; what `read_log` returns.

    ``ckce.evaluate(**log.arguments())`` evaluates all rows, and ``log.split()`` has those of each task.

    Attributes
    ----------
    y_true : array of shape (n_samples,)
        The position of the right choice, or the token.
    y_prob : Choices or TopKPredictions
        The predictions: of the choices, or the largest entries over all tokens.
    tasks, ids : arrays of str
        Task and question of each row; a question has the same id in the log of another model.
    groups : array or None
        The document of each token; None for questions, which are independent.
    log_likelihood : array of float
        What the log says of the right choice or of the token: a natural logarithm.
    correct : array of bool, or None
        Whether the log counts the answer as right.
    confidence : array of float, or None
        inspect_ai: the probability of the logged token of the answer, among all tokens. Compare it with
        `correct` only if no note says that answers were sampled.
    notes : tuple of str
        How the files were read.
    files : tuple of str
        Their names.
    """

    y_true: NDArray[Any]
    y_prob: Choices | TopKPredictions
    tasks: NDArray[np.str_]
    ids: NDArray[np.str_]
    groups: NDArray[Any] | None
    log_likelihood: NDArray[np.float64]
    correct: NDArray[np.bool_] | None
    confidence: NDArray[np.float64] | None
    notes: tuple[str, ...]
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.y_true)

    def __repr__(self) -> str:
        return f"Log({self.y_prob!r}, tasks={len(self.task_names)}, files={len(self.files)})"

    def __getitem__(self, rows: Any) -> Log:
        """Some of the rows."""
        others = ("groups", "log_likelihood", "correct", "confidence")
        arrays = ("y_true", "y_prob", "tasks", "ids", *others)
        held = {name: getattr(self, name) for name in arrays}
        some: dict[str, Any] = {
            name: None if array is None else array[rows] for name, array in held.items()
        }
        return replace(self, **some)

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks, in the order of the files."""
        return tuple(dict.fromkeys(self.tasks.tolist()))

    @property
    def reduction(self) -> TopK | None:
        """None for choices, all of which are known; for tokens the largest k up to 20 that is."""
        if isinstance(self.y_prob, Choices):
            return None
        return TopK(min(MOST_RANKS, self.y_prob.ranked().known))

    def split(self) -> dict[str, Log]:
        """The rows of each task.

        Returns
        -------
        dict of Log
            By task, in the order of the files.
        """
        found = {task: self[np.flatnonzero(self.tasks == task)] for task in self.task_names}
        return {task: narrowed(log) for task, log in found.items()}

    def arguments(self) -> dict[str, Any]:
        """What `evaluate`, `estimate` and others take.

        Returns
        -------
        dict
            `y_true` and `y_prob`; for tokens also `reduction` and `groups`. Fewer than 10 documents
            are no groups: a warning says so.
        """
        found: dict[str, Any] = {"y_true": self.y_true, "y_prob": self.y_prob}
        return found | shared_arguments(self.reduction, self.groups)


def narrowed(log: Log) -> Log:
    """The same without columns that no row has."""
    if isinstance(log.y_prob, Choices):
        return replace(log, y_prob=log.y_prob.narrowed())
    return log


def shared_arguments(reduction: TopK | None, groups: NDArray[Any] | None) -> dict[str, Any]:
    """Options that come with rows."""
    found: dict[str, Any] = {} if reduction is None else {"reduction": reduction}
    if groups is not None:
        count = len(np.unique(groups))
        if count >= LEAST_GROUPS:
            return found | {"groups": groups}
        warn(
            f"{count} documents are too few for intervals by document ({LEAST_GROUPS}): tokens count "
            "as independent, so intervals are too narrow"
        )
    return found


def json_lines(file: File) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects of a file with one on each line, and where they are."""
    for number, line in read_lines(file, quotes=False):
        yield f"{file.name} line {number}", parse(line, f"{file.name} line {number}")


def parse(text: str | bytes, where: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(
            f"{where} is not JSON: it is cut off or damaged; write the log again"
        ) from None
    return object_of(found, where)


def object_of(found: Any, where: str) -> dict[str, Any]:
    """What must be a JSON object."""
    if not isinstance(found, dict):
        raise InputError(f"{where} must be a JSON object, got {shown(found)}")
    return found


def member(found: Any, name: str, where: str) -> Any:
    """What an object must have."""
    if not isinstance(found, dict) or name not in found:
        raise InputError(f"{where} has no member {name!r}")
    return found[name]


def items(found: Any, what: str, where: str) -> list[Any]:
    """What must be a list."""
    if not isinstance(found, list):
        raise InputError(f"{where} must have a list of {what}, got {shown(found)}")
    return found


def shown(value: Any) -> str:
    """A value that need not be short."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:40]}..."


def log_number(value: Any, where: str, what: str) -> float:
    """A natural logarithm of a probability: a number, or a string that is one."""
    number = math.nan
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        number = float(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.nan
    if math.isnan(number):
        raise InputError(f"{where} has {shown(value)} as a {what}, expected a number")
    if number > 1e-3:  # rounding of float32
        raise InputError(
            f"{where} has the {what} {number:g}, expected the logarithm of a probability, at most 0"
        )
    return min(number, 0.0)
