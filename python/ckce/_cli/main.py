"""The command ``ckce``: scores, comparisons and reports of prediction files."""

import os
import signal
import sys
from collections.abc import Callable, Sequence


def _replace_closed_streams() -> None:
    """Standard streams that the caller closed: no file that is opened may take their place.

    Standard input is then empty, standard output refuses what is written, standard error is silent.
    """
    for name, mode, flags in (
        ("stdin", "r", os.O_RDONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode))  # noqa: SIM115


def _load() -> Callable[[list[str]], int]:
    """The rest; Ctrl-C waits until it is loaded, since compiled modules make other errors of it."""
    posix = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if posix else set()
    try:
        from ckce._cli.run import run
    finally:
        if posix:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return run


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The words behind ``ckce``; those of this process by default.

    Returns
    -------
    int
        0 done, 1 wrong files or numbers, 2 wrong command line, 130 interrupted.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        _replace_closed_streams()
        return _load()(words)
    except (ImportError, KeyboardInterrupt) as error:  # before there are words for errors
        if "--debug" in words:
            raise
        interrupted = isinstance(error, KeyboardInterrupt)
        said = "interrupted" if interrupted else " ".join(str(error).split())
        print(f"ckce: error: {said}", file=sys.stderr)
        return 130 if interrupted else 1
