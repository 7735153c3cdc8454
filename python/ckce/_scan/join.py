"""Logs of several models, joined question by question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import Choices, InputError, listed
from ckce._problem import TopK
from ckce._scan.log import Log, narrowed, shared_arguments


@dataclass(frozen=True, eq=False)
class JoinedLogs:
    """The questions that all logs have; what `join_logs` returns.

    ``ckce.compare(**joined.arguments())`` compares the models.

    Attributes
    ----------
    logs : dict of Log
        By model; row i is the same question in each.
    n_rows : dict of int
        By model: how many rows its own log has.
    sentence : str
        How many matched.
    """

    logs: dict[str, Log]
    n_rows: dict[str, int]

    def __len__(self) -> int:
        return len(next(iter(self.logs.values())))

    def __repr__(self) -> str:
        return f"JoinedLogs({list(self.logs)}, {self.sentence})"

    @property
    def sentence(self) -> str:
        """How many matched."""
        of = ", ".join(f"{count} of {name}" for name, count in self.n_rows.items())
        tasks = len(self.first.task_names)
        return f"{len(self)} rows of {tasks} task{'s' * (tasks > 1)} matched ({of})"

    @property
    def first(self) -> Log:
        """That of the first model."""
        return next(iter(self.logs.values()))

    def split(self) -> dict[str, JoinedLogs]:
        """The rows of each task.

        Returns
        -------
        dict of JoinedLogs
            By task, in the order of the files of the first model.
        """
        found = {}
        for task in self.first.task_names:
            rows = np.flatnonzero(self.first.tasks == task)
            logs = {name: narrowed(log[rows]) for name, log in self.logs.items()}
            found[task] = replace(self, logs=logs, n_rows=dict.fromkeys(logs, len(rows)))
        return found

    def arguments(self) -> dict[str, Any]:
        """What `compare` and `report` take.

        Returns
        -------
        dict
            `y_true` and `y_prob`; for tokens also `reduction` and `groups`.
        """
        reductions = [log.reduction for log in self.logs.values()]
        ks = [reduction.k for reduction in reductions if reduction is not None]
        found = {
            "y_true": self.first.y_true,
            "y_prob": {name: log.y_prob for name, log in self.logs.items()},
        }
        return found | shared_arguments(TopK(min(ks)) if ks else None, self.first.groups)


def join_logs(logs: Mapping[str, Log]) -> JoinedLogs:
    """Join the logs of several models: the rows of the same question, by task and id.

    Rows are matched by task and by the id of the question (`doc_hash` in lm-evaluation-harness, id and
    input in inspect_ai, text and position of tokens), never by their place in the file. Logs of one
    task each are matched whatever the task is called.

    Parameters
    ----------
    logs : dict of Log
        By model, at least two.

    Returns
    -------
    JoinedLogs
        With ``arguments()`` for `compare`, ``split()`` by task, and the `sentence` that says how many
        rows matched.

    Notes
    -----
    Equal questions of a task are matched in their order. A question whose right answer or number of
    choices differs between the logs is refused. O(rows) time and memory.

    Examples
    --------
    >>> import ckce
    >>> a = ckce.read_log("a/")  # doctest: +SKIP
    >>> b = ckce.read_log("b/")  # doctest: +SKIP
    >>> joined = ckce.join_logs({"a": a, "b": b})  # doctest: +SKIP
    >>> ckce.compare(**joined.arguments())  # doctest: +SKIP
    """
    if not isinstance(logs, Mapping) or len(logs) < 2:
        raise TypeError("logs must be a dict of at least two logs, by model")
    for name, log in logs.items():
        if not isinstance(log, Log):
            raise TypeError(f"logs must hold ckce.Log, got {type(log).__name__} for {name!r}")
    kinds = {type(log.y_prob) for log in logs.values()}
    if len(kinds) > 1:
        raise InputError("all logs must hold questions, or all tokens, got some of both")
    single = all(len(log.task_names) == 1 for log in logs.values())
    rows = {name: _keys(log, with_task=not single) for name, log in logs.items()}
    first_name, *other_names = logs
    shared = [key for key in rows[first_name] if all(key in rows[name] for name in other_names)]
    if not shared:
        raise InputError(
            f"no question is in all logs of {listed(logs)}: they must be of the same tasks, with the "
            "same documents (doc_hash) or, for tokens, the same vocabulary"
        )
    joined = {
        name: log[np.array([rows[name][key] for key in shared])] for name, log in logs.items()
    }
    _check_same(joined)
    return JoinedLogs(joined, {name: len(log) for name, log in logs.items()})


def _keys(log: Log, *, with_task: bool) -> dict[tuple[str, str, int], int]:
    """The row of each question; equal ones are counted."""
    found: dict[tuple[str, str, int], int] = {}
    count: dict[tuple[str, str], int] = {}
    for row, (task, each) in enumerate(zip(log.tasks.tolist(), log.ids.tolist(), strict=True)):
        key = (task if with_task else "", each)
        count[key] = count.get(key, 0) + 1
        found[(*key, count[key])] = row
    return found


def _check_same(logs: Mapping[str, Log]) -> None:
    """Refuse questions that differ."""
    first_name, first = next(iter(logs.items()))
    for name, log in logs.items():
        bad = log.y_true != first.y_true
        what = "right answer"
        if isinstance(log.y_prob, Choices) and isinstance(first.y_prob, Choices):
            lengths: NDArray[np.bool_] = log.y_prob.lengths != first.y_prob.lengths
            if lengths.any() and not bad.any():
                bad, what = lengths, "number of choices"
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{name} and {first_name} have the same question of task {log.tasks[row]!r}, "
                f"{log.ids[row][:60]!r}, with another {what} ({int(bad.sum())} of {len(bad)} rows); the "
                "tasks are not the same"
            )
