"""What long work will be, said before it begins."""

from __future__ import annotations

import argparse

from ckce._cli.methods import method_options
from ckce._cli.terminal import complain
from ckce._input import Kernel, check_named_kernel, check_threads
from ckce._methods import METHODS, Cholesky, Exact, Method, better_method, choose_method
from ckce._scan.scan import Scan, estimate_rows

_LONG = 5.0  # seconds that are worth a line
# Seconds of one core for a unit of work, measured to a factor of 2 or so.
_LINE, _EXACT, _FEATURES, _FACTOR = 3e-7, 4e-10, 3e-10, 2e-10
_SENSITIVITY = 5.0  # reruns cost this many times the comparison


def announce(args: argparse.Namespace, scans: list[Scan]) -> None:
    """Say how many rows there are, what is done with them, and how long that may take."""
    rows = [estimate_rows(scan) for scan in scans]
    n, m = max(rows), scans[0].n_classes
    classes = m if args.reduction is None else 2
    if args.top_k is not None:
        classes = args.top_k + 1
    method, seconds, words = _price(args, n, classes)
    seconds *= sum(rows) / max(n, 1)
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
        f"{models}{'' if counted else 'about '}{n:,} rows, {m:,} classes, method {method}: "
        f"{words.format(duration(seconds))}",
    )


def _price(args: argparse.Namespace, n: int, m: int) -> tuple[str, float, str]:
    """The method, its seconds of one core for all metrics of a model, and what is said of them."""
    kernel = check_named_kernel(args.kernel or "linear_gaussian")
    asked = method_options(args).get("method", "auto")
    if asked == "auto":
        method = choose_method(n, m, kernel)
        seconds = _seconds(method, kernel, n, m)
        if isinstance(method, Cholesky):  # a factor that misses too much gives way
            other = better_method(n, m)
            seconds = max(seconds, _seconds(other, kernel, n, m))
            if isinstance(other, Exact):
                return method.word, seconds, "this may take up to {}"
        return method.word, seconds, "this may take {}"
    method = METHODS[asked]() if isinstance(asked, str) else asked
    words = "this may take {}"
    if isinstance(method, Cholesky) and method.rank is None and m > 2:
        words = "how long this takes depends on the rank; --rank limits it"
    return method.word, _seconds(method, kernel, n, m), words


def _seconds(method: Method, kernel: Kernel, n: int, m: int) -> float:
    if m == 2:
        return _LINE * n
    if isinstance(method, Cholesky):
        rank = n if method.rank is None else min(method.rank, n)
        return _FACTOR * n * rank * (m + rank)
    if isinstance(method, Exact) and kernel.has_bandwidth:
        return _EXACT * n * n * (m + 4)
    return _FEATURES * n * (m + 200) ** 2


def duration(seconds: float) -> str:
    """Seconds, minutes or hours in round words: it is a guess."""
    if seconds < 60:
        return f"about {10 * round(seconds / 10 + 0.5)} seconds"
    if seconds < 5400:
        return f"about {round(seconds / 60 + 0.5)} minutes"
    return f"about {round(seconds / 3600 + 0.5)} hours"
