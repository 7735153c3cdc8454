"""The command ``ckce``: scores, comparisons and reports of prediction files."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ckce._cli.messages import message_of
from ckce._cli.parser import make_parser
from ckce._cli.terminal import Style, complain, wants_colours
from ckce._input import is_standard_output


def _print(output: Any, args: argparse.Namespace) -> None:
    """The result as it was asked for; on stderr if what was written went to standard output."""
    if args.output is not None and is_standard_output(args.output):
        if not args.quiet:
            print(output.text(Style(wants_colours(sys.stderr, args.color))), file=sys.stderr)
        return
    if args.quiet:
        print(output.quiet)
    elif args.json or not (args.text or sys.stdout.isatty() or args.run == "completion"):
        print(json.dumps(output.data, indent=2, allow_nan=False))
    else:
        print(output.text(Style(wants_colours(sys.stdout, args.color))))
    sys.stdout.flush()


def _run(args: argparse.Namespace) -> int:
    from ckce._cli import commands

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        complain("warning", str(message))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.simplefilter("always", RuntimeWarning)
            warnings.showwarning = warn
            _print(getattr(commands, args.run)(args), args)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (Exception, KeyboardInterrupt) as error:
        if args.debug:
            raise
        if isinstance(error, KeyboardInterrupt):
            complain("error", "interrupted")
            return 130
        complain("error", message_of(error))
        return 2 if isinstance(error, argparse.ArgumentTypeError) else 1
    return 0


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
    parser = make_parser()
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        getattr(args, "parser", parser).refuse(unknown)
    if not hasattr(args, "run"):
        parser.print_help()
        return 0
    words = sys.argv[1:] if argv is None else argv
    args.command = shlex.join(["ckce", *words])
    return _run(args)
