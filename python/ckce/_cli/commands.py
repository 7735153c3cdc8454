"""What the commands of the command line do, through the public functions only."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ckce
from ckce._cli.terminal import Style
from ckce._input import printable
from ckce._results import number, table

_LONG = 10_000  # rows from which a progress bar is worth its line
_IN_MEMORY = 2**25  # numbers; above, predictions stay on disk
STATE = ".ckce"


class Output(NamedTuple):
    """A result, as people, programs and shell scripts want it."""

    text: Callable[[Style], str]
    data: dict[str, Any]
    quiet: str


def _scan(args: argparse.Namespace, paths: Any) -> ckce.Scan:
    return ckce.scan(paths, probs=args.probs, labels=args.labels, classes=args.classes)


def _prepared(args: argparse.Namespace, probs: NDArray[Any]) -> NDArray[Any]:
    """Probabilities out of log-probabilities; the rest is left to the metrics."""
    if args.input != "logprobs":
        return probs
    if (probs > 1e-5).any():
        row = int(np.argwhere(probs > 1e-5)[0, 0])
        raise ValueError(
            f"row {row} holds {float(probs[row].max()):.6g}, but a log-probability is at most 0; "
            "pass --input logits if these are logits"
        )
    return np.asarray(np.exp(probs))


def _options(args: argparse.Namespace, n: int) -> dict[str, Any]:
    """Options that every metric takes."""
    return {
        "method": args.method,
        "kernel": args.kernel,
        "bandwidth": args.bandwidth,
        "regularization": args.regularization,
        "random_state": args.seed,
        "normalize": args.normalize,
        "from_logits": args.input == "logits",
        "n_threads": args.threads,
        "progress": n >= _LONG and _shows_progress(args),
    }


def _shows_progress(args: argparse.Namespace) -> bool:
    if args.quiet or not sys.stderr.isatty():
        return False
    from importlib.util import find_spec

    return find_spec("tqdm") is not None


def _painted(style: Style, lines: str) -> str:
    """An evaluation's table: numbers stand out, remarks recede."""
    heading, *rows = lines.split("\n")
    painted = [style("bold", heading)]
    for row in rows:
        name, rest = row[:11], row[11:]
        value, _, remark = rest.strip().partition("  ")
        if name.strip() == "signature":
            painted.append(name + style("dim", rest))
            continue
        strong = style("bold", value) if name.strip() in ("CKCE", "debiased") else value
        painted.append(name + rest.replace(value, strong, 1).replace(remark, style("dim", remark)))
    return "\n".join(painted)


def _read(args: argparse.Namespace, paths: Any, folder: str) -> tuple[Any, Any, ckce.Scan]:
    """Labels and predictions; many predictions stay on disk, mapped or spooled to `folder`."""
    scan = _scan(args, paths)
    small = scan.n_samples is not None and scan.n_samples * scan.n_classes <= _IN_MEMORY
    labels, probs = scan.read(spool=None if small else folder)
    return labels, _prepared(args, probs), scan


def score(args: argparse.Namespace) -> Output:
    """All metrics of one model."""
    if len(args.files) > 1 and not args.shards:
        raise argparse.ArgumentTypeError(
            f"score takes one data set, got {len(args.files)} files; pass --shards if they are parts "
            "of one, or use ckce compare for several models"
        )
    if any(Path(path).suffix == STATE for path in args.files):
        return _state_output(_merged(args.files), args.files)
    with _temporary() as folder:
        labels, probs, _ = _read(args, args.files, folder)
        evaluation = ckce.evaluate(labels, probs, n_bins=args.bins, **_options(args, len(labels)))
    return _evaluation_output(evaluation, evaluation.ckce.value, args.files)


def _temporary() -> Any:
    return tempfile.TemporaryDirectory(prefix="ckce-", ignore_cleanup_errors=True)


def _evaluation_output(evaluation: Any, value: float, files: list[str]) -> Output:
    names = ", ".join(map(printable, files))
    return Output(
        text=lambda style: f"{style('cyan', names)}\n{_painted(style, str(evaluation))}",
        data={"files": files, **evaluation.to_dict()},
        quiet=repr(value),
    )


def _state_output(accumulator: ckce.CKCEAccumulator, files: list[str]) -> Output:
    evaluation = accumulator.evaluate()
    return _evaluation_output(evaluation, evaluation.ckce, files)


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
    return total


def _add(total: ckce.CKCEAccumulator, path: str, first: str) -> None:
    try:
        total.merge(ckce.CKCEAccumulator.load(path))
    except ValueError as error:
        hints = {"bandwidth": "one --bandwidth", "landmarks": f"--landmarks {first}"}
        hint = hints.get(str(error).split()[0])
        hint = "" if hint is None else f"; make both with {hint}"
        raise ValueError(f"{path} cannot be merged with {first}: {error}{hint}") from None


def stream(args: argparse.Namespace) -> Output:
    """Turn files into a state."""
    _check_output(args.output, STATE)
    options = _options(args, 0)
    del options["method"], options["progress"]
    scan = ckce.scan(
        args.files,
        probs=args.probs,
        labels=args.labels,
        classes=args.classes,
        progress=_shows_progress(args),
    )
    if args.input == "logprobs":
        raise argparse.ArgumentTypeError("argument --input: stream takes probs or logits")
    options.update(_landmarks(args.landmarks, options["bandwidth"]))
    accumulator = scan.accumulate(
        n_frequencies=args.frequencies, n_bins=args.bins, shard_id=args.shard, **options
    )
    accumulator.save(args.output)
    return _state_output(accumulator, [args.output])


def _landmarks(source: int | str | None, bandwidth: Any) -> dict[str, Any]:
    """Options for features of landmarks: chosen, or those of a state."""
    if source is None or isinstance(source, int):
        return {"n_landmarks": source}
    state = ckce.CKCEAccumulator.load(source)
    if state.landmarks is None:
        raise ValueError(f"{source} must be a state of ckce stream --landmarks, got one without")
    if bandwidth not in ("median", state.bandwidth):
        raise argparse.ArgumentTypeError(
            f"argument --bandwidth: {source} has {state.bandwidth!r}, got {bandwidth!r}"
        )
    return {"landmarks": state.landmarks, "bandwidth": state.bandwidth}


def merge(args: argparse.Namespace) -> Output:
    """Add states."""
    if args.output is not None:
        _check_output(args.output, STATE)
    total = _merged(args.files)
    if args.output is not None:
        total.save(args.output)
    return _state_output(total, args.files if args.output is None else [args.output])


def _names(args: argparse.Namespace) -> list[str]:
    """Names of the models: the files', without folders and suffix where that tells them apart."""
    if args.names is not None:
        if len(args.names) != len(args.files) or len(set(args.names)) < len(args.names):
            raise argparse.ArgumentTypeError(
                f"argument --names: must give {len(args.files)} different names, got "
                f"{', '.join(args.names)}"
            )
        return list(args.names)
    stems = [Path(path).stem for path in args.files]
    names = stems if len(set(stems)) == len(stems) else args.files
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError("each file must be given once")
    return list(names)


def _models(args: argparse.Namespace, folder: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Labels, predictions by model, and options; labels by model where they differ."""
    truths, models, classes = {}, {}, None
    for name, path in zip(_names(args), args.files, strict=True):
        truths[name], models[name], scan = _read(args, path, folder)
        classes = scan.classes
    options = _options(args, min(map(len, models.values())))
    first, *others = truths.values()
    if all(np.array_equal(first, other) for other in others):
        return first, models, {**options, "classes": classes}
    if len(set(map(len, truths.values()))) == 1:
        warnings.warn(
            "the files hold different labels; rows are compared one by one, so row i must be the same "
            "case in every file",
            stacklevel=2,
        )
    return truths, models, {**options, "classes": classes}


_COLUMNS = {
    "accuracy": "accuracy",
    "log loss": "log_loss",
    "Brier": "brier",
    "ECE": "ece",
    "JKCE": "jkce",
    "CKCE": "ckce",
    "floor": "floor",
    "debiased": "debiased",
    "from": "low",
    "to": "high",
    "p-value": "p_value",
}


def _ranking(comparison: Any) -> list[str]:
    """The table of a comparison; in a narrow window the columns that matter least are left out."""
    columns = dict(_COLUMNS)
    if comparison.models[0].p_value is None:
        del columns["p-value"]
    width = shutil.get_terminal_size((120, 24)).columns
    for least in ("log loss", "Brier", "JKCE", "ECE", "accuracy", ""):
        rows = [
            [printable(model.name), *(number(getattr(model, key)) for key in columns.values())]
            for model in comparison.models
        ]
        lines = table(["model", *columns], rows)
        if max(map(len, lines)) <= width:
            break
        columns.pop(least, None)
    return lines


def _compared(comparison: Any, style: Style) -> str:
    header, *rows = _ranking(comparison)
    percent = f"{100 * comparison.level:g}"
    lines = [
        f"{len(comparison.names)} models, n = {comparison.n_samples}, m = {comparison.n_classes}, "
        f"{comparison.method}; best calibrated first, debiased CKCE with its {percent} % interval",
        style("bold", header),
        *rows,
        "",
        style("bold", printable(comparison.headline)),
    ]
    pairs = comparison.pairs
    if len(comparison.names) > 3:
        neighbours = zip(comparison.names, comparison.names[1:], strict=False)
        pairs = [comparison.pair(*names) for names in neighbours]
    lines += [printable(pair.sentence) for pair in pairs]
    lines += [
        f"{style('yellow', f'caution ({rail.name}):')} {printable(rail.message)}"
        for rail in comparison.warnings
    ]
    return "\n".join([*lines, style("dim", f"signature {comparison.signature}")])


def _comparison_output(comparison: Any, data: dict[str, Any]) -> Output:
    return Output(
        text=lambda style: _compared(comparison, style),
        data={**data, **comparison.to_dict()},
        quiet="\n".join(f"{m.name}\t{m.debiased!r}" for m in comparison.models),
    )


def compare(args: argparse.Namespace) -> Output:
    """Rank models."""
    if len(args.files) < 2:
        raise argparse.ArgumentTypeError(
            "compare takes at least 2 files, one for each model, got 1; use ckce score for one"
        )
    with _temporary() as folder:
        truths, models, options = _models(args, folder)
        del options["classes"]
        comparison = ckce.compare(truths, models, level=args.level, test=args.test, **options)
    return _comparison_output(comparison, {"files": args.files})


def report(args: argparse.Namespace) -> Output:
    """Write the page."""
    _check_output(args.output)
    with _temporary() as folder:
        truths, models, options = _models(args, folder)
        classes = options.pop("classes")
        if classes is not None and not isinstance(truths, dict) and truths.dtype.kind in "iu":
            truths, options["labels"] = np.array(classes)[truths], classes  # for the page's words
        page = ckce.report(
            truths,
            models,
            title=args.title,
            command=args.command,
            sensitivity=not args.no_sensitivity,
            level=args.level,
            **options,
        )
    return _saved(page, args.output)


def _check_output(path: str, suffix: str | None = None) -> None:
    """Fail before the work, not after it."""
    if suffix is not None and Path(path).suffix != suffix:
        raise argparse.ArgumentTypeError(
            f"argument -o/--output: must end in {suffix}, got {path!r}"
        )
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a directory; name a file in it with -o")
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"the folder {Path(path).parent} of {path} does not exist; make it")


def _saved(page: Any, path: str) -> Output:
    page.save(path)
    size = len(page.html.encode())

    def text(style: Style) -> str:
        wrote = f"wrote {printable(path)} ({size / 1000:.0f} kB)"
        return f"{style('bold', printable(page.headline))}\n{wrote}"

    return Output(text, {"report": path, "bytes": size, "headline": page.headline}, path)


def made_up_models() -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """Labels, and three models that rank the classes alike and differ in how sure they are."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(1000, 5))
    models = {}
    for name, sharpness in {"honest": 1.0, "boastful": 2.0, "timid": 0.6}.items():
        powers = np.exp(sharpness * logits)
        models[name] = powers / powers.sum(axis=1, keepdims=True)
    draws = rng.random((1000, 1)) > models["honest"].cumsum(axis=1)[:, :-1]
    return draws.sum(axis=1), models


def demo(args: argparse.Namespace) -> Output:
    """Compare made-up models, end to end."""
    y_true, models = made_up_models()
    if args.output is not None:
        _check_output(args.output)
        page = ckce.report(
            y_true,
            models,
            title="Three made-up models",
            command=args.command,
            n_threads=args.threads,
        )
        return _saved(page, args.output)
    output = _comparison_output(ckce.compare(y_true, models, n_threads=args.threads), {})
    story = (
        "Three made-up models of the same cases. Labels were drawn from the probabilities of honest;\n"
        "boastful and timid rank the classes alike, but are too sure and not sure enough.\n\n"
    )
    next_steps = (
        "\n\nnext: ckce score preds.npz, ckce compare a.npz b.npz, ckce demo -o report.html"
    )
    return output._replace(text=lambda style: story + output.text(style) + style("dim", next_steps))


class _Job(NamedTuple):
    """One line of the benchmark."""

    name: str
    n: int
    m: int
    run: Callable[..., Any]


def _jobs() -> list[_Job]:
    return [
        _Job("exact, factorised", 2_000, 10, lambda y, q, t: _ckce(y, q, t, "exact")),
        _Job("exact, iterated", 10_000, 10, lambda y, q, t: _ckce(y, q, t, "exact")),
        _Job("cholesky", 200_000, 2, lambda y, q, t: _ckce(y, q, t, "cholesky")),
        _Job("fourier", 100_000, 10, lambda y, q, t: _ckce(y, q, t, "fourier")),
        _Job("fourier", 5_000, 1_000, lambda y, q, t: _ckce(y, q, t, "fourier")),
        _Job(
            "JKCE, exact", 10_000, 10, lambda y, q, t: ckce.jkce(y, q, bandwidth=0.9, n_threads=t)
        ),
        _Job("ECE, top label", 500_000, 10, _top_label),
    ]


def _ckce(y: Any, q: Any, threads: int | None, method: str) -> float:
    return ckce.ckce(y, q, method=method, bandwidth=0.9, n_threads=threads)


def _top_label(y: Any, q: Any, threads: int | None) -> float:
    return ckce.ece(y, q, variant="top_label", n_threads=threads)


def _best(job: _Job, y: Any, q: Any, threads: int | None) -> float:
    """Seconds of the best of three runs, or of one that takes long."""
    times: list[float] = []
    while len(times) < 3 and sum(times) < 1.0:
        start = time.perf_counter()
        job.run(y, q, threads)
        times.append(time.perf_counter() - start)
    return min(times)


def _bench_rows(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(0)
    for job in _jobs():
        powers = rng.random((job.n, job.m), dtype=np.float32) ** 4
        q = powers / powers.sum(axis=1, keepdims=True)
        y = rng.integers(0, job.m, job.n)
        seconds = _best(job, y, q, args.threads)
        yield {
            "method": job.name,
            "n_samples": job.n,
            "n_classes": job.m,
            "seconds": seconds,
            "seconds_one_thread": _best(job, y, q, 1),
            "rows_per_second": job.n / seconds,
        }


def bench(args: argparse.Namespace) -> Output:
    """Time each method once, small."""
    rows = list(_bench_rows(args))
    cells = [
        [
            row["method"],
            f"{row['n_samples']:,}",
            f"{row['n_classes']:,}",
            f"{row['seconds']:.3f} s",
            f"{row['seconds_one_thread']:.3f} s",
            f"{row['rows_per_second']:,.0f}",
        ]
        for row in rows
    ]

    def text(style: Style) -> str:
        header = ["method", "rows", "classes", "time", "1 thread", "rows/s"]
        first, *lines = table(header, cells)
        return "\n".join([style("bold", first), *lines, style("dim", "best of up to three runs")])

    return Output(text, {"rows": rows}, "\n".join(repr(row["seconds"]) for row in rows))
