"""What the commands of the command line do, through the public functions only."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ckce
from ckce._cli.demo import MORAL, NEXT_STEPS, STORY, made_up_models
from ckce._cli.logs import by_task, compare_logs, log_data, open_logs, score_log, told
from ckce._cli.messages import UsageError, names_of
from ckce._cli.methods import method_options
from ckce._cli.parser import PICTURE, REPORT
from ckce._cli.prices import announce
from ckce._cli.reading import (
    Data,
    check_different,
    check_numbered,
    check_twice,
    find,
    open_models,
    open_scan,
    read_models,
    read_one,
    with_groups,
)
from ckce._cli.reading import temporary_folder as temporary
from ckce._cli.terminal import Style, width, wrap
from ckce._compare.comparison import table_of
from ckce._input import is_standard_output, printable, write_file
from ckce._input.files import is_regular
from ckce._plots.save import picture
from ckce._results.table import WIDTH, wrapped
from ckce._scan.scan import places_of

STATE = ".ckce"
PAGE = (".html", ".htm", "")


class Output(NamedTuple):
    """A result, as people, programs and shell scripts want it."""

    text: Callable[[Style], str]
    data: dict[str, Any]
    quiet: str


#: Options of the library, and where the command line keeps them.
_OPTIONS = {
    "input": "input",
    "normalize": "normalize",
    "kernel": "kernel",
    "bandwidth": "bandwidth",
    "regularization": "regularization",
    "reduction": "reduction",
    "random_state": "seed",
    "n_bins": "bins",
    "level": "level",
    "test": "test",
    "where": "where",
    "n_threads": "threads",
}


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """What was said; the library knows the rest."""
    check_twice(args)
    found = {name: getattr(args, word, None) for name, word in _OPTIONS.items()}
    options = {name: value for name, value in found.items() if value is not None}
    if "normalize" in options and options.get("input", "probs") != "probs":
        raise UsageError(f"argument --normalize: is for probabilities, got --input {args.input}")
    if getattr(args, "top_k", None) is not None:
        if "reduction" in options:
            raise UsageError(f"argument --top-k: is a reduction, got --reduction {args.reduction}")
        options["reduction"] = ckce.TopK(args.top_k)
    if hasattr(args, "method"):
        options.update(method_options(args))
        if args.quiet and args.run != "stream":
            options["progress"] = False
    return options


def _shown(files: list[str]) -> str:
    return ", ".join(printable(path, "") for path in files)


def score(args: argparse.Namespace) -> Output:
    """All metrics of one model."""
    if len(args.files) > 1 and not args.shards:
        raise UsageError(
            f"score takes one data set, got {len(args.files)} files; pass --shards if they are parts "
            "of one, or use ckce compare for several models"
        )
    check_different(args.files)
    if any(Path(path).suffix == STATE for path in args.files):
        for option in ("groups", "by", "where"):
            if getattr(args, option) is not None:
                raise UsageError(
                    f"argument --{option}: a state does not keep its rows; score the files of "
                    "predictions"
                )
        return _evaluation_output(_merged(args.files).evaluate(), args.files)
    options = _options(args)
    with temporary() as folder:
        logs = open_logs(args, folder)
        if logs is not None:
            return _log_output(args, logs["model"], options)
        scan = open_scan(args, [find(path, folder) for path in args.files])
        announce(args, [scan])
        data = with_groups(read_one(scan, folder), args)
        with names_of(data.places, data.n_classes):
            evaluation = ckce.evaluate(
                data.labels, data.models["model"], **data.options(), **options
            )
    return _evaluation_output(evaluation, args.files)


def _log_output(args: argparse.Namespace, log: ckce.Log, options: dict[str, Any]) -> Output:
    evaluation, table, data = score_log(args, log, options)
    output = _evaluation_output(evaluation, args.files)

    def text(style: Style) -> str:
        if table is not None:
            return f"{style('cyan', _shown(args.files))}\n{table.text(width(), style)}"
        return "\n".join([output.text(style), *(style("dim", note) for note in told(log.notes))])

    return output._replace(text=text, data=data)


def _evaluation_output(evaluation: Any, files: list[str]) -> Output:
    numbers = evaluation.to_dict()
    debiased = numbers["ckce_debiased"]
    segments, where = (getattr(evaluation, part, None) for part in ("segments", "where"))
    if segments is not None or where is not None:
        numbers["segments"] = None if segments is None else segments.to_dict()
        numbers["where"] = None if where is None else where.to_dict()
        evaluation = dataclasses.replace(evaluation, segments=None, where=None)

    def text(style: Style) -> str:
        facts = f"{style('cyan', _shown(files))}\n{style.facts(str(evaluation))}"
        lines = [] if where is None else ["", *repr(where).split("\n")]
        return "\n".join([facts + _by(segments, style), *(wrap(line, indent=3) for line in lines)])

    return Output(
        text=text,
        data={"files": files, **numbers},
        quiet="nan" if debiased is None else repr(debiased),
    )


def _merged(paths: list[str]) -> ckce.CKCEAccumulator:
    for path in paths:
        if Path(path).suffix != STATE:
            raise ValueError(
                f"{path} must be a state file ({STATE}) that ckce stream has written"
                + ("; score takes state files or predictions, not both" if len(paths) > 1 else "")
            )
    total = ckce.CKCEAccumulator.load(paths[0])
    for path in paths[1:]:
        _add(total, path, paths[0])
    check_different(paths)  # after the names of shards, which say more
    return total


def _add(total: ckce.CKCEAccumulator, path: str, first: str) -> None:
    other = ckce.CKCEAccumulator.load(path)
    try:
        total.merge(other)
    except ValueError as error:
        hint = ""
        if other.bandwidth != total.bandwidth and type(other.method) is type(total.method):
            hint = "; make both with one --bandwidth"
        elif other.method != total.method and isinstance(total.method, ckce.Landmarks):
            hint = f"; make both with --landmarks {first}"
        raise ValueError(f"{path} cannot be merged with {first}: {error}{hint}") from None


def stream(args: argparse.Namespace) -> Output:
    """Turn files into a state."""
    _check_output(args.output, STATE)
    check_different(args.files)
    options = _options(args)
    with temporary() as folder:
        open_logs(args, folder)
        scan = open_scan(args, [find(path, folder) for path in args.files])
        check_numbered(scan)
        with names_of(places_of(scan), scan.n_classes):
            accumulator = scan.accumulate(shard_id=args.shard, **options)
    write_file(args.output, [accumulator.to_bytes()])
    return _evaluation_output(accumulator.evaluate(), [args.output])


def merge(args: argparse.Namespace) -> Output:
    """Add states."""
    if args.output is not None:
        _check_output(args.output, STATE)
    total = _merged(args.files)
    if args.output is not None:
        write_file(args.output, [total.to_bytes()])
    return _evaluation_output(
        total.evaluate(), args.files if args.output is None else [args.output]
    )


def _by(segments: Any, style: Style) -> str:
    """The segments below a table, if there are any."""
    return "" if segments is None else f"\n\n{segments.table().text(width(), style)}"


def _comparison_output(comparison: Any, data: dict[str, Any]) -> Output:
    def text(style: Style) -> str:
        return table_of(comparison).text(width(), style) + _by(comparison.segments, style)

    return Output(
        text=text,
        data={**data, **comparison.to_dict()},
        quiet="\n".join(f"{printable(m.name, '')}\t{m.ckce_debiased!r}" for m in comparison.models),
    )


def compare(args: argparse.Namespace) -> Output:
    """Rank models."""
    states = [path for path in args.files if Path(path).suffix == STATE]
    if states:
        raise UsageError(
            f"compare takes files of predictions, got the state {states[0]}: rows are paired, and a "
            "state holds none; use ckce score for the values of a state"
        )
    if len(args.files) == 1 and args.probs is not None:
        raise UsageError(
            "compare takes at least 2 files, one for each model, got 1 with --probs; use ckce score "
            "for one model, or --models for several in one file"
        )
    options = _options(args)
    with temporary() as folder:
        logs = open_logs(args, folder)
        if logs is not None:
            return _compared_logs(args, logs, options)
        scans = open_models(args, folder, several=True)
        announce(args, list(scans.values()))
        data = with_groups(read_models(scans, folder), args)
        with names_of(data.places, data.n_classes):
            comparison = ckce.compare(data.labels, data.models, **data.options(), **options)
    return _comparison_output(comparison, {"files": args.files})


def _compared_logs(
    args: argparse.Namespace, logs: dict[str, ckce.Log], options: dict[str, Any]
) -> Output:
    if len(logs) < 2:
        raise UsageError(
            "compare takes the logs of at least 2 models, one folder or file each, got 1"
        )
    comparison, pooled, tasks, data = compare_logs(args, logs, options)
    output = _comparison_output(comparison, {})
    matched = ckce.join_logs(logs).sentence

    def text(style: Style) -> str:
        parts = [matched, pooled.text(width(), style)]
        if tasks is not None:
            parts += ["", tasks.text(width(), style)]
        return "\n".join(parts)

    return output._replace(text=text, data=data)


def report(args: argparse.Namespace) -> Output:
    """Write the page."""
    path = REPORT if args.output is None else args.output
    _check_output(path, *PAGE)
    options = _options(args)
    with temporary() as folder:
        logs = open_logs(args, folder)
        if logs is not None:
            return _log_report(args, logs, options, path)
        scans = open_models(args, folder, several=False)
        announce(args, list(scans.values()))
        data = _with_names(with_groups(read_models(scans, folder), args), options)
        with names_of(data.places, data.n_classes):
            page = ckce.report(
                data.labels,
                data.models,
                title=_title(args, args.subtitle),
                sensitivity=not args.no_sensitivity,
                **data.options(),
                **options,
            )
    return _saved(page.made_by(args.command), path)


def _title(args: argparse.Namespace, subtitle: str | None) -> str:
    return str(args.title) if subtitle is None else f"{args.title}\n{subtitle}"


def _log_report(
    args: argparse.Namespace, logs: dict[str, ckce.Log], options: dict[str, Any], path: str
) -> Output:
    """The page of all tasks together, with the tasks as segments."""
    name, log = next(iter(logs.items()))
    if len(logs) > 1:
        joined = ckce.join_logs(logs)
        log, rows, said = joined.first, joined.arguments(), joined.sentence
    else:
        rows, said = log.arguments(), f"{len(log)} rows of {', '.join(log.task_names)}"
        rows["y_prob"] = {name: rows["y_prob"]}
    page = ckce.report(
        **{**rows, **by_task(log), **options},
        title=_title(args, said if args.subtitle is None else args.subtitle),
        sensitivity=not args.no_sensitivity,
    )
    return _saved(page.made_by(args.command), path)


def _with_names(data: Data, options: dict[str, Any]) -> Data:
    """Labels by the names of their classes, for words on a page."""
    labels, classes = data.labels, data.classes
    if classes is None or isinstance(labels, dict) or labels.dtype.kind not in "iu":
        return data
    options["labels"] = classes
    return data._replace(labels=np.array(classes)[labels])


def _check_output(path: str, *suffixes: str) -> None:
    """Fail before the work, not after it."""
    if is_standard_output(path) and suffixes and sys.stdout.isatty():
        raise UsageError(f"argument -o/--output: {path} is a terminal; redirect it to a file")
    # a pipe, a device or an open file has no suffix
    if is_regular(path) and suffixes and Path(path).suffix.lower() not in suffixes:
        words = " or ".join(filter(None, suffixes))
        raise UsageError(f"argument -o/--output: must end in {words}, got {path!r}")


def _written(path: str, content: bytes, headline: str, kind: str) -> Output:
    write_file(path, [content])

    def text(style: Style) -> str:
        wrote = f"wrote {printable(path, '')} ({len(content) / 1000:.0f} kB)"
        return f"{style('bold', wrap(printable(headline, '')))}\n{wrote}"

    return Output(text, {kind: path, "bytes": len(content), "headline": headline}, path)


def _saved(page: Any, path: str) -> Output:
    return _written(path, page.html.encode(), page.headline, "report")


def plot(args: argparse.Namespace) -> Output:
    """Draw reliability diagrams."""
    path = PICTURE if args.output is None else args.output
    _check_output(path, ".png", ".svg", ".pdf")
    options = _options(args)
    if args.target is not None:
        options["target"] = args.target
    with temporary() as folder:
        logs = open_logs(args, folder)
        if logs is not None:
            data = log_data(logs)
        else:
            data = read_models(open_models(args, folder, several=False), folder)
        if data.classes is not None:
            options["labels"] = data.classes
        elif args.target is not None and args.target.isascii() and args.target.isdecimal():
            options["target"] = int(args.target)
        data = _with_names(data, options)
        with names_of(data.places, data.n_classes):
            diagrams = [
                ckce.reliability_diagram(
                    data.labels[name] if isinstance(data.labels, dict) else data.labels,
                    {printable(name, ""): probs},
                    **data.options(),
                    **options,
                )
                for name, probs in data.models.items()
            ]
    curves = tuple(curve for diagram in diagrams for curve in diagram.curves)
    diagram = dataclasses.replace(diagrams[0], curves=curves)
    headline = str(diagram).partition("\n")[0]
    kind = Path(path).suffix[1:].lower() or "png"
    return _written(path, picture(diagram.plot, kind), headline, "plot")


def demo(args: argparse.Namespace) -> Output:
    """Compare made-up models, end to end."""
    y_true, models = made_up_models()
    if args.output is not None:
        _check_output(args.output, *PAGE)
        title = "Three made-up models"
        page = ckce.report(y_true, models, title=title, n_threads=args.threads)
        return _saved(page.made_by(args.command), args.output)
    comparison = ckce.compare(y_true, models, n_threads=args.threads)
    output = _comparison_output(comparison, {})
    moral = MORAL.format(best=" and ".join(comparison.best))

    def text(style: Style) -> str:
        above, below = ("\n".join(wrapped(words, width() or WIDTH, 0)) for words in (STORY, moral))
        parts = [above, output.text(style), style("bold", below), style("dim", wrap(NEXT_STEPS))]
        return "\n\n".join(parts)

    return output._replace(text=text)


def completion(args: argparse.Namespace) -> Output:
    """Print a script for a shell."""
    from ckce._cli.completion import script
    from ckce._cli.parser import make_parser

    text = script(make_parser(), args.shell)
    return Output(lambda style: text, {"shell": args.shell, "script": text}, text)
