"""What long work will be, said before it begins."""

from __future__ import annotations

import argparse

from ckce._cli.terminal import complain
from ckce._input import check_named_kernel, check_threads
from ckce._methods import choose_method
from ckce._scan.scan import Scan, estimate_rows

_LONG = 5.0  # seconds that are worth a line
# Seconds of one core for a unit of work, measured to a factor of 2 or so.
_EXACT, _FEATURES, _FACTOR = 1.6e-9, 3e-10, 4e-10
_SENSITIVITY = 5.0  # reruns cost this many times the comparison


def announce(args: argparse.Namespace, scans: list[Scan]) -> None:
    """Say how many rows there are, what is done with them, and how long that may take."""
    rows = [estimate_rows(scan) for scan in scans]
    n, m = max(rows), scans[0].n_classes
    classes = m if args.reduction is None else 2
    if args.top_k is not None:
        classes = args.top_k + 1
    method = _method(args, n, classes)
    seconds = sum(_seconds(method, each, classes) for each in rows)
    if args.reduction == "class_wise":
        seconds *= m
    if args.run == "report" and len(scans) > 1 and not args.no_sensitivity:
        seconds *= _SENSITIVITY
    seconds /= check_threads(args.threads)
    if args.quiet or seconds < _LONG:
        return
    counted = all(scan.n_samples is not None for scan in scans)
    models = f"{len(scans)} models, " if len(scans) > 1 else ""
    complain(
        "note",
        f"{models}{'' if counted else 'about '}{n:,} rows, {m:,} classes, method {method}: this may "
        f"take {duration(seconds)}",
    )


def _method(args: argparse.Namespace, n: int, m: int) -> str:
    if args.method not in (None, "auto"):
        return str(args.method)
    return choose_method(n, m, check_named_kernel(args.kernel or "linear_gaussian")).word


def _seconds(method: str, n: int, m: int) -> float:
    """Of one core, for all metrics of a model."""
    if method == "exact":
        return _EXACT * n * n * (m + 16)
    if method == "cholesky":
        return _FACTOR * n * (500 if m > 2 else 20) * (m + 500)
    return _FEATURES * n * (m + 200) ** 2


def duration(seconds: float) -> str:
    """Seconds, minutes or hours in round words: it is a guess."""
    if seconds < 60:
        return f"about {10 * round(seconds / 10 + 0.5)} seconds"
    if seconds < 5400:
        return f"about {round(seconds / 60 + 0.5)} minutes"
    return f"about {round(seconds / 3600 + 0.5)} hours"
