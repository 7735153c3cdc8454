"""Commands on logs of language models: by task, and all tasks together."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ckce
from ckce._cli.messages import UsageError, names_of
from ckce._cli.prices import announce
from ckce._cli.reading import Data, check_different, check_once, checked_names, find
from ckce._compare.comparison import table_of
from ckce._input import printable
from ckce._metrics.score_table import model_columns
from ckce._results import FEW_ROWS, Column, Table, percent
from ckce._scan.log import LogOptions
from ckce._scan.log_source import LogSource
from ckce._scan.read_log import find_logs, read_logs
from ckce._scan.scan import Scan

#: Options that name what a log has by itself.
_NOT_FOR_LOGS = {
    "probs": "--probs",
    "labels": "--labels",
    "weights": "--weights",
    "classes": "--classes",
    "input": "--input",
    "normalize": "--normalize",
    "models": "--models",
    "groups": "--groups",
    "by": "--by",
}
_FOR_LOGS = {
    "loglikelihood": "--loglikelihood",
    "log_target": "--target",
    "log_filter": "--filter",
    "order": "--order",
    "given_text": "--given-text",
}
_LEAST_ROWS = 10  # of a task with a line of its own
_SUFFIX = re.compile(r"\.(jsonl|ndjson|json|eval|npz)(\.gz)?$")


def open_logs(args: argparse.Namespace, folder: str) -> dict[str, ckce.Log] | None:
    """The log of each path, by model; None if the paths are no logs."""
    check_once(args)
    paths = [path if Path(path).is_dir() else find(path, folder) for path in args.files]
    said = [flag for name, flag in _NOT_FOR_LOGS.items() if getattr(args, name, None) is not None]
    wanted = [flag for name, flag in _FOR_LOGS.items() if getattr(args, name, None)]
    found = None if said and not wanted and not _all_folders(paths) else find_logs(paths)
    if found is None:
        if wanted:
            raise UsageError(f"argument {wanted[0]}: is for logs of language models")
        return None
    if said:
        raise UsageError(f"argument {said[0]}: a log of a language model needs none")
    if args.run == "stream":
        raise UsageError(
            "stream takes no logs of language models, which fit into memory: use score"
        )
    options = LogOptions(
        args.loglikelihood, args.log_target, args.log_filter, args.order, bool(args.given_text)
    )
    if args.run == "score":
        return {"model": read_logs(found, options)}
    logs = [read_logs(find_logs([path]) or [], options) for path in paths]
    return dict(zip(_names(args), logs, strict=True))


def _all_folders(paths: list[Any]) -> bool:
    return all(isinstance(path, str) for path in paths)


def _names(args: argparse.Namespace) -> list[str]:
    """Names of the models: the folders' or the files', as far as they differ."""
    if getattr(args, "names", None) is not None:
        return checked_names(args.names, len(args.files))
    check_different(args.files)
    paths = [Path(path).resolve() for path in args.files]
    names = [path.name if path.is_dir() else _SUFFIX.sub("", path.name) for path in paths]
    if len(set(names)) < len(names):  # a/samples_x.jsonl b/samples_x.jsonl
        names = [path.parent.name for path in paths]
    return names if len(set(names)) == len(names) else list(args.files)


def log_data(logs: Mapping[str, ckce.Log]) -> Data:
    """Rows of logs for pictures."""
    labels = {name: log.y_true for name, log in logs.items()}
    models: dict[str, Any] = {name: log.y_prob for name, log in logs.items()}
    return Data(labels, models, None, None, {}, 0)


def _announce(args: argparse.Namespace, logs: Mapping[str, ckce.Log]) -> dict[str, str]:
    """What messages call the numbers, after a word on the price."""
    sources = [LogSource(log) for log in logs.values()]
    announce(args, [Scan(("log",), [source], None, 8192, False) for source in sources])
    return dict(sources[0].places) if len(sources) == 1 else {}


def score_log(args: argparse.Namespace, log: ckce.Log, options: dict[str, Any]) -> Any:
    """All metrics, of all tasks and of each: text and data."""
    with names_of(_announce(args, {"model": log}), 0):
        pooled = ckce.evaluate(**{**log.arguments(), **options})
        parts, small = _large_enough(log.split())
        tasks = {
            task: ckce.evaluate(**{**part.arguments(), **options}) for task, part in parts.items()
        }
    data: dict[str, Any] = {"files": list(log.files), **pooled.to_dict()}
    data["notes"] = list(log.notes)
    data["tasks"] = {task: evaluation.to_dict() for task, evaluation in tasks.items()}
    return pooled, _task_table(tasks, pooled, log, small) if tasks else None, data


def _large_enough(parts: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Tasks with a line of their own, if there are several; and a note on the others."""
    if len(parts) < 2:
        return {}, ()
    small = {task: len(part) for task, part in parts.items() if len(part) < _LEAST_ROWS}
    told = ", ".join(f"{printable(task, '')} ({count})" for task, count in small.items())
    note = f"Too small for a line of their own, fewer than {_LEAST_ROWS} rows: {told}."
    return {t: p for t, p in parts.items() if t not in small}, (note,) if small else ()


def _line(task: str, evaluation: Any) -> dict[str, Any]:
    """Numbers of a task; few rows tell no interval."""
    found = {"task": task, **evaluation.to_dict()}
    if evaluation.n_samples < FEW_ROWS:
        found |= {"ckce_low": None, "ckce_high": None}
    return found


def _task_table(
    tasks: Mapping[str, Any], pooled: Any, log: ckce.Log, small: tuple[str, ...]
) -> Table:
    columns = (
        Column("task", ("task",)),
        Column("n", ("n_samples",), form="d"),
        *model_columns(pooled.level),
    )
    named = {**tasks, "all tasks": pooled}
    return Table(
        columns=columns,
        rows=tuple(_line(task, each) for task, each in named.items()),
        heading=f"{len(log.task_names)} tasks, {len(log)} rows",
        notes=(
            "Each task is measured as its file alone would be; intervals are for one line each, and "
            f"lines of fewer than {FEW_ROWS} rows have none.",
            *small,
            *told(log.notes),
        ),
        signature=pooled.ckce.signature,
    )


def by_task(log: ckce.Log) -> dict[str, Any]:
    """Tasks as segments of a page, if there are several and one of them is large enough."""
    sizes = [len(part) for part in log.split().values()]
    if len(sizes) < 2 or max(sizes) < FEW_ROWS or log.groups is not None:
        return {}
    return {"by": {"task": log.tasks}}


def told(notes: Sequence[str]) -> tuple[str, ...]:
    """Notes of tasks; equal ones are said once."""
    tasks: dict[str, list[str]] = {}
    for note in notes:
        task, _, words = note.partition(": ")
        tasks.setdefault(words, []).append(task)
    return tuple(f"{', '.join(named)}: {words}" for words, named in tasks.items())


def compare_logs(
    args: argparse.Namespace, logs: Mapping[str, ckce.Log], options: dict[str, Any]
) -> tuple[Any, Table, Table | None, dict[str, Any]]:
    """The comparison of all tasks, its table, that of the tasks, and data."""
    joined = ckce.join_logs(logs)
    _announce(args, joined.logs)
    pooled = ckce.compare(**{**joined.arguments(), **options})
    parts, small = _large_enough(joined.split())
    # all verdicts of tasks together hold at the level
    level = 1.0 - (1.0 - pooled.level) / max(1, len(parts))
    tasks = {
        task: ckce.compare(**{**part.arguments(), **options, "level": level})
        for task, part in parts.items()
    }
    data = {"files": args.files, "matched": len(joined), "rows": joined.n_rows, **pooled.to_dict()}
    data["tasks"] = {task: each.to_dict() for task, each in tasks.items()}
    notes = {name: list(log.notes) for name, log in logs.items()}
    table = _comparison_table(tasks, joined, level, small) if tasks else None
    return pooled, table_of(pooled), table, {**data, "notes": notes}


def _comparison_table(
    tasks: Mapping[str, Any], joined: ckce.JoinedLogs, level: float, small: tuple[str, ...]
) -> Table:
    """Debiased CKCE of each model by task, and the verdict."""
    names = list(joined.logs)
    rows = []
    for task, comparison in tasks.items():
        values = {model.name: model.ckce_debiased for model in comparison.models}
        values |= {f"accuracy {model.name}": model.accuracy for model in comparison.models}
        rows.append(
            {"task": task, "n": comparison.n_samples, "verdict": _verdict(comparison), **values}
        )
    columns = (
        Column("task", ("task",)),
        Column("n", ("n",), form="d"),
        *(Column(printable(name, ""), (name,), "ckce") for name in names),
        Column("better calibrated", ("verdict",)),
        *(
            Column(f"accuracy {printable(name, '')}", (f"accuracy {name}",), form=".4f")
            for name in names
        ),
    )
    note = f"By task: debiased CKCE, and verdicts at {percent(level)}, so that all of them hold together."
    return Table(columns=columns, rows=tuple(rows), notes=(note, *small))


def _verdict(comparison: Any) -> str:
    if len(comparison.pairs) == 1:
        pair = comparison.pairs[0]
        return str(pair.verdict if pair.better is None else pair.better)
    shown = [pair for pair in comparison.pairs if pair.better is not None]
    return ", ".join(f"{pair.better} than {pair.worse}" for pair in shown) or "not shown"
