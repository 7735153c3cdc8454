"""What the commands of the command line do, through the public functions only."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ckce
from ckce._terminal import Style, number, printable, table

_LONG = 10_000  # rows from which a progress bar is worth its line


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


def score(args: argparse.Namespace) -> Output:
    """All metrics of one model."""
    if len(args.files) > 1 and not args.shards:
        raise argparse.ArgumentTypeError(
            f"score takes one data set, got {len(args.files)} files; pass --shards if they are parts "
            "of one, or use ckce compare for several models"
        )
    labels, probs = _scan(args, args.files).read()
    probs = _prepared(args, probs)
    evaluation = ckce.evaluate(labels, probs, n_bins=args.bins, **_options(args, len(labels)))
    names = ", ".join(map(printable, args.files))
    return Output(
        text=lambda style: f"{style('cyan', names)}\n{_painted(style, str(evaluation))}",
        data={"files": args.files, **evaluation.to_dict()},
        quiet=repr(evaluation.ckce.value),
    )


def made_up_models() -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """Labels, and three models that rank the classes alike and differ in how sure they are."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(1000, 5))
    models = {}
    for name, sharpness in {"calibrated": 1.0, "overconfident": 2.0, "underconfident": 0.6}.items():
        powers = np.exp(sharpness * logits)
        models[name] = powers / powers.sum(axis=1, keepdims=True)
    draws = rng.random((1000, 1)) > models["calibrated"].cumsum(axis=1)[:, :-1]
    return draws.sum(axis=1), models


def demo(args: argparse.Namespace) -> Output:
    """Compare made-up models, end to end."""
    y_true, models = made_up_models()
    medians = [ckce.median_bandwidth(y_prob) for y_prob in models.values()]
    # One bandwidth for all, or the numbers could not be compared.
    bandwidth = float(np.mean(medians))
    estimates = {
        name: ckce.estimate(y_true, y_prob, bandwidth=bandwidth) for name, y_prob in models.items()
    }
    rows = []
    for name, e in estimates.items():
        low, high = e.interval()
        cells = (e.value, e.floor, e.debiased, low, high)
        rows.append([name, *map(number, cells)])

    def text(style: Style) -> str:
        header = ["model", "CKCE", "floor", "debiased", "from", "to"]
        first, *lines = table(header, rows)
        return "\n".join(
            [
                "Three made-up models of the same 1000 samples and 5 classes",
                style("bold", first),
                *lines,
                "A calibrated model scores about its floor, so its debiased value is near 0.",
            ]
        )

    data = {name: {"ckce": e.value, "debiased": e.debiased} for name, e in estimates.items()}
    return Output(text, {"models": data}, repr(estimates["calibrated"].value))


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
