"""From the words of the command line to what is printed, and the exit code."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shlex
import sys
import warnings
from typing import Any

from ckce._cli import commands
from ckce._cli.messages import message_of
from ckce._cli.parser import make_parser, say
from ckce._cli.terminal import Style, complain, wants_colours
from ckce._input import is_standard_output


def run(words: list[str]) -> int:
    """Do what the words say; returns the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error is
    try:
        args = _parsed(words)
        if hasattr(args, "run"):
            _print(_result(args), args)
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in words:
            raise
        if isinstance(error, KeyboardInterrupt):
            complain("error", "interrupted")
            return 130
        complain("error", message_of(error))
        return 2 if isinstance(error, argparse.ArgumentTypeError) else 1
    return 0


def _parsed(words: list[str]) -> argparse.Namespace:
    parser = make_parser()
    args, unknown = parser.parse_known_args(words)
    if unknown:
        getattr(args, "parser", parser).refuse(unknown)
    if not hasattr(args, "run"):
        parser.print_help()
    args.command = shlex.join(["ckce", *words])
    return args


def _result(args: argparse.Namespace) -> Any:
    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        with contextlib.suppress(OSError):  # nobody reads it
            complain("warning", str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = warn
        return getattr(commands, args.run)(args)


def _print(output: Any, args: argparse.Namespace) -> None:
    """The result as it was asked for; on stderr if what was written went to standard output."""
    if args.output is not None and is_standard_output(args.output):
        if not args.quiet:
            say(output.text(Style(wants_colours(sys.stderr, args.color))), sys.stderr)
    elif args.quiet:
        say(output.quiet, sys.stdout)
    elif args.json or not (args.text or sys.stdout.isatty() or args.run == "completion"):
        say(json.dumps(output.data, indent=2, allow_nan=False), sys.stdout)
    else:
        say(output.text(Style(wants_colours(sys.stdout, args.color))), sys.stdout)
