"""The command ``ckce``: scores, comparisons and reports of prediction files."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ckce._cli.terminal import Style, complain, wants_colours
from ckce._input import nearest

_EPILOG = """\
exit codes: 0 done; 1 the files or their numbers are wrong; 2 the command line is wrong;
130 interrupted. On a terminal tables are printed, in a pipe JSON; --json and --text choose.
"""

# What the library calls its arguments, and what the command line does.
_WORDS = {
    r"from_logits=True": "--input logits",
    r"normalize=True": "--normalize",
    r"; labels look 1-based: pass .*$": "; labels look 1-based: pass --classes 1..{m}",
    r"pass labels= (to name|with) the (class of each )?columns?": "name the columns with --classes",
    r"\by_prob\b": "probs",
    r"\by_true\b": "labels",
    r"\b(probs|labels)=(?=[,;]|$)": r"--\1",
    r"\b(probs|labels)=": r"--\1 ",
}


class _Parser(argparse.ArgumentParser):
    """argparse with errors of one line that suggest the nearest word."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)

    def error(self, message: str) -> NoReturn:
        found = re.match(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if found:
            name, word, choices = found.groups()
            known = [choice.strip("' ") for choice in choices.split(",")]
            command = name == "COMMAND"
            what = (
                "unknown command" if command else f"argument {name} must be one of {choices}, got"
            )
            message = f"{what} {word!r}{nearest(word, known)}"
        complain("error", f"{message} (see {self.prog} --help)")
        sys.exit(2)

    def refuse(self, words: list[str]) -> NoReturn:
        """Say what was not understood."""
        word = next((word for word in words if word.startswith("-")), words[0])
        known = [option for action in self._actions for option in action.option_strings]
        if word.startswith("-"):
            self.error(f"unknown option {word!r}{nearest(word.split('=')[0], known)}")
        self.error(f"unexpected argument {word!r}")


def _classes(text: str) -> list[Any]:
    """``cat,dog`` or ``1..10``."""
    if found := re.fullmatch(r"(-?\d+)\.\.(-?\d+)", text):
        first, last = int(found[1]), int(found[2])
        if not 0 < last - first < 10**6:
            raise argparse.ArgumentTypeError(f"must be a range such as 1..10, got {text!r}")
        return list(range(first, last + 1))
    names = _names(text)
    integers = all(re.fullmatch(r"-?\d+", name) for name in names)
    return [int(name) for name in names] if integers else names


def _probs(text: str) -> str | list[str]:
    return text.split(",") if "," in text else text


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _level(text: str) -> float:
    value = _positive(text)
    if value >= 1.0:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, got {text!r}")
    return value


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return value


def _bandwidth(text: str) -> float | str:
    if text == "median":
        return text
    try:
        return _positive(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"must be 'median' or a positive number, got {text!r}"
        ) from None


def _integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                f"must be an integer from {low} to {high}, got {text!r}"
            )
        return int(text)

    return parse


def _landmarks(text: str) -> int | str:
    """How many, or the state that has them."""
    return _integer(1, 10**6)(text) if text.isdecimal() else text


def _add_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where the numbers are")
    group.add_argument(
        "--probs",
        type=_probs,
        metavar="NAME",
        help="array of an npz file, or columns of a table: a list column, a prefix (p finds p0, "
        "p1, ...), a pattern ('prob_*'), or a,b,c; default: probs",
    )
    group.add_argument(
        "--labels",
        metavar="NAME|FILE",
        help="array or column of the labels, or an .npy file; default: labels, or label",
    )
    group.add_argument(
        "--classes",
        type=_classes,
        metavar="LIST",
        help="what the labels call the columns: cat,dog,eel or 1..10; default: 0, 1, 2, ...",
    )
    group.add_argument(
        "--input",
        choices=["probs", "logits", "logprobs"],
        default="probs",
        help="what the predictions are; never guessed; default: probs",
    )
    group.add_argument(
        "--normalize", action="store_true", help="rescale rows of probabilities to sum to 1"
    )


def _add_metric(parser: argparse.ArgumentParser, *, methods: bool) -> None:
    group = parser.add_argument_group("what is computed")
    parser.set_defaults(method="fourier")
    if methods:
        group.add_argument(
            "--method",
            choices=["auto", "exact", "fourier", "cholesky"],
            default="auto",
            help="default: auto, a fixed rule of rows, classes and kernel",
        )
    group.add_argument(
        "--kernel",
        choices=["linear_gaussian", "gaussian", "laplace", "linear"],
        default="linear_gaussian",
        help="default: linear_gaussian, the paper's",
    )
    group.add_argument(
        "--bandwidth",
        type=_bandwidth,
        default="median",
        metavar="X",
        help="a number, or median (default)",
    )
    group.add_argument(
        "--regularization", type=_positive, metavar="X", help="lambda; default: n^(-1/4)"
    )
    group.add_argument(
        "--seed", type=_integer(0, 2**64 - 1), default=0, metavar="N", help="default: 0"
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    form = group.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="JSON, as in a pipe")
    form.add_argument("--text", action="store_true", help="tables, as on a terminal")
    form.add_argument("--quiet", action="store_true", help="the number only")
    group.add_argument(
        "--color", choices=["auto", "always", "never"], default="auto", help="default: auto"
    )
    group.add_argument(
        "--threads", type=_integer(1, 1024), metavar="N", help="default: all CPUs; same result"
    )
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")


def _add_bins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bins",
        type=_integer(1, 1000),
        default=10,
        metavar="N",
        help="bins of the ECE; default: 10",
    )


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--names", type=_names, metavar="A,B,...", help="names of the models; default: of the files"
    )
    parser.add_argument(
        "--level", type=_level, default=0.95, metavar="X", help="of the intervals; default: 0.95"
    )


def _add_command(
    commands: Any,
    name: str,
    text: str,
    *,
    files: str | None = None,
    metric: bool = True,
    methods: bool = True,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text}.", epilog=_EPILOG, formatter_class=_HELP
    )
    parser.set_defaults(run=name, parser=parser)
    if files is not None:
        parser.add_argument("files", nargs="+", metavar="FILE", help=files)
        _add_data(parser)
    if metric:
        _add_metric(parser, methods=methods)
    _add_output(parser)
    return parser


_HELP = argparse.RawDescriptionHelpFormatter
_FORMATS = "npz, npy, csv, tsv, parquet or arrow"


def _parser() -> argparse.ArgumentParser:
    from ckce import __version__

    parser = _Parser(
        prog="ckce",
        description="How well calibrated are a classifier's probabilities, and which model's more?",
        epilog=f"first steps: ckce demo; ckce score preds.npz\n\n{_EPILOG}",
        formatter_class=_HELP,
    )
    parser.add_argument("--version", action="version", version=f"ckce {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=_Parser)
    scored = _add_command(
        commands, "score", "All metrics of one model", files=f"predictions: {_FORMATS}"
    )
    scored.add_argument("--shards", action="store_true", help="the files are parts of one data set")
    _add_bins(scored)
    compared = _add_command(
        commands,
        "compare",
        "Rank models by calibration, with paired intervals",
        files=f"predictions of one model each, of the same cases: {_FORMATS}",
    )
    _add_models(compared)
    compared.add_argument(
        "--test", action="store_true", help="add the p-value of the exact test of calibration"
    )
    reported = _add_command(
        commands,
        "report",
        "Write a page about one model, or a comparison of several",
        files=f"predictions of one model each: {_FORMATS}",
    )
    _add_models(reported)
    reported.add_argument("-o", "--output", required=True, metavar="HTML", help="file to write")
    reported.add_argument("--title", default="Calibration report", help="title of the page")
    reported.add_argument(
        "--no-sensitivity", action="store_true", help="leave out the reruns under other settings"
    )
    streamed = _add_command(
        commands,
        "stream",
        "Turn files larger than memory into a small state that can be merged",
        files=f"predictions, parts of one data set: {_FORMATS}",
        methods=False,
    )
    streamed.add_argument(
        "-o", "--output", required=True, metavar="STATE", help="file to write, *.ckce"
    )
    streamed.add_argument(
        "--frequencies",
        type=_integer(1, 10**6),
        default=100,
        metavar="N",
        help="random features have 2 N of them; default: 100",
    )
    streamed.add_argument(
        "--landmarks",
        type=_landmarks,
        metavar="N|STATE",
        help="features of N rows out of the files instead, or of those in another state, with its "
        "bandwidth",
    )
    streamed.add_argument(
        "--shard", metavar="NAME", help="name of this part: states that share one are not merged"
    )
    _add_bins(streamed)
    merged = _add_command(
        commands, "merge", "Add states, and evaluate all of their rows", metric=False
    )
    merged.add_argument("files", nargs="+", metavar="STATE", help="files of ckce stream")
    merged.add_argument("-o", "--output", metavar="STATE", help="file to write, *.ckce")
    shown = _add_command(commands, "demo", "Compare three made-up models", metric=False)
    shown.add_argument("-o", "--output", metavar="HTML", help="write a report of them instead")
    _add_command(commands, "bench", "Time the methods on this machine, in seconds", metric=False)
    return parser


def _in_words_of_the_command_line(message: str) -> str:
    classes = re.search(r"expected 0\.\.(\d+)", message)
    for pattern, words in _WORDS.items():
        if "{m}" in words:
            words = words.replace("{m}", str(int(classes[1]) + 1) if classes else "m")
        message = re.sub(pattern, words, message)
    return message


def _print(output: Any, args: argparse.Namespace) -> None:
    if args.quiet:
        print(output.quiet)
    elif args.json or not (args.text or sys.stdout.isatty()):
        print(json.dumps(output.data, indent=2, allow_nan=False))
    else:
        print(output.text(Style(wants_colours(sys.stdout, args.color))))
    sys.stdout.flush()


def _run(args: argparse.Namespace) -> int:
    from ckce._cli import commands as _commands

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        complain("warning", _in_words_of_the_command_line(str(message)))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.simplefilter("always", RuntimeWarning)
            warnings.showwarning = warn
            _print(getattr(_commands, args.run)(args), args)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (Exception, KeyboardInterrupt) as error:
        if args.debug:
            raise
        if isinstance(error, KeyboardInterrupt):
            complain("error", "interrupted")
            return 130
        complain("error", _in_words_of_the_command_line(_message(error)))
        return 2 if isinstance(error, argparse.ArgumentTypeError) else 1
    return 0


def _message(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "not enough memory; try --method fourier, or fewer rows"
    if isinstance(error, (ValueError, TypeError, OSError, ImportError, argparse.ArgumentTypeError)):
        return str(error) or type(error).__name__
    return f"{type(error).__name__}: {error}; this is a bug in ckce, --debug shows where"


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
    parser: Any = _parser()
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        getattr(args, "parser", parser).refuse(unknown)
    if not hasattr(args, "run"):
        parser.print_help()
        return 0
    words = sys.argv[1:] if argv is None else argv
    args.command = shlex.join(["ckce", *words])
    return _run(args)
