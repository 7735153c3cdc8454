"""The words of the command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import IO, Any, NoReturn

from ckce._cli import values
from ckce._cli.terminal import complain
from ckce._input.kernels import KERNELS
from ckce._methods import METHODS
from ckce._scan.columns import suggest

_EPILOG = """\
exit codes: 0 done; 1 the files or their numbers are wrong; 2 the command line
is wrong; 130 interrupted. On a terminal tables are printed, in a pipe JSON;
--json and --text choose.
"""
_HELP = argparse.RawDescriptionHelpFormatter
_FORMATS = (
    "npz, npy, csv, tsv, jsonl, parquet or arrow, - for standard input, or a log of a language model: "
    "a file, or a folder of them"
)
LIKELIHOODS = ["raw", "chars", "bytes", "mutual_info"]
REPORT = "ckce-report.html"
PICTURE = "ckce-plot.png"


def say(text: str, stream: IO[str]) -> None:
    """Print a line; a reader may leave before its end, but what cannot be written at all is an error."""
    try:
        print(text, file=stream, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # Python would try once more
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "standard output") from None


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line that suggest the nearest word."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)

    def error(self, message: str) -> NoReturn:
        complain("error", f"{message} (see {self.prog} --help)")
        sys.exit(2)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Help, or the version."""
        say(message.removesuffix("\n"), sys.stdout if file is None else file)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Say what may be chosen, and what was nearly."""
        known = [] if action.choices is None else [str(choice) for choice in action.choices]
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"unknown command {value!r}{suggest(value, known)}")
        name = "/".join(action.option_strings) or action.metavar
        choices = ", ".join(map(repr, known))
        self.error(
            f"argument {name} must be one of {choices}, got {value!r}{suggest(value, known)}"
        )

    def refuse(self, words: list[str]) -> NoReturn:
        """Say what was not understood."""
        word = next((word for word in words if word.startswith("-")), words[0])
        known = [option for action in self._actions for option in action.option_strings]
        if word.startswith("-"):
            self.error(f"unknown option {word!r}{suggest(word.split('=')[0], known)}")
        self.error(f"unexpected argument {word!r}")


def _add_data(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("where the numbers are").add_argument
    add(
        "--probs",
        type=values.probs,
        metavar="NAME",
        help="array of an npz file, or columns of a table: a list column, a prefix (p finds p0, "
        "p1, ...), a pattern ('prob_*'), or a,b,c; default: probs",
    )
    add(
        "--labels",
        metavar="NAME|FILE",
        help="array or column of the labels, or an .npy file; default: labels, or label",
    )
    add(
        "--weights",
        metavar="NAME|FILE",
        help="array or column of frequency weights, or an .npy file; default: none",
    )
    add(
        "--classes",
        type=values.classes,
        metavar="LIST",
        help="names of the columns in the labels: cat,dog,eel or 1..10; default: 0, 1, 2, ...",
    )
    add(
        "--input",
        choices=["probs", "logits", "log_probs"],
        help="kind of predictions, never guessed; default: probs",
    )
    add(
        "--normalize",
        action="store_const",
        const=True,
        help="rescale rows of probabilities to sum to 1",
    )


def _add_logs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("logs of language models").add_argument
    add(
        "--loglikelihood",
        choices=LIKELIHOODS,
        help="for lm-evaluation-harness: log-likelihood of a choice as it is, divided by its characters "
        "or bytes, or minus that without a context; default: raw",
    )
    add(
        "--target",
        dest="log_target",
        metavar="HOW",
        help="for lm-evaluation-harness: how to read the target: index, letter, text, or doc:NAME; "
        "default: the reading that reproduces the accuracy of every line",
    )
    add(
        "--filter",
        dest="log_filter",
        metavar="NAME",
        help="for lm-evaluation-harness: the filter to keep; default: the first",
    )
    add(
        "--order",
        choices=["sorted", "position"],
        help="order of the choices of a question: by probability, or as they stand; default: sorted",
    )
    add(
        "--given-text",
        action="store_true",
        help="for completion services: the tokens were given to the model, not generated by it",
    )


def _add_features(add: Callable[..., Any]) -> None:
    """Flags of methods that streams have, too."""
    add(
        "--frequencies",
        type=values.integer(1, 10**6),
        metavar="N",
        help="for fourier: number of frequencies, two features each; default: 100",
    )
    add(
        "--sampler",
        choices=["gaussian", "orthogonal", "sobol"],
        help="for fourier: how frequencies are drawn; default: gaussian",
    )
    add(
        "--landmarks",
        type=values.landmarks,
        metavar="N|STATE",
        help="for landmarks: N rows of the files (default: 200), or the landmarks of a state, with "
        "its bandwidth",
    )


def _add_reduction(add: Callable[..., Any], *, alone: bool) -> None:
    """Models are compared by all classes, or by their predictions; one alone has more."""
    rest = ", or to one against the rest" if alone else ""
    choices = ["top_label", "class_wise"] if alone else ["top_label"]
    add("--reduction", choices=choices, help=f"reduce the classes to the predicted one{rest}")
    add(
        "--top-k",
        type=values.integer(1, 10**6),
        metavar="K",
        help="reduce each prediction to its K largest entries, in order, and one for the rest",
    )


def _add_metric(parser: argparse.ArgumentParser, methods: tuple[str, ...]) -> None:
    add = parser.add_argument_group("what is computed").add_argument
    default = "auto, a fixed rule of rows, classes and kernel" if "auto" in methods else methods[0]
    add("--method", choices=methods, help=f"how the kernel is computed; default: {default}")
    _add_features(add)
    if "cholesky" in methods:
        add("--rank", type=values.integer(1, 10**6), metavar="N", help="for cholesky: largest rank")
        add(
            "--pivoting",
            choices=["greedy", "random"],
            help="for cholesky: order of the pivots; default: greedy",
        )
        add(
            "--tol",
            type=values.positive,
            metavar="X",
            help="for exact and cholesky: tolerance; default: 1e-10",
        )
    _add_reduction(add, alone=parser.get_default("run") not in ("compare", "stream"))
    add(
        "--kernel",
        choices=list(KERNELS),
        help="kernel on the predictions; default: linear_gaussian, the kernel of the paper",
    )
    add(
        "--bandwidth",
        type=values.bandwidth,
        metavar="X",
        help="a number, median, or default, which needs no data; default: "
        + ("median" if "auto" in methods else "default"),
    )
    add("--regularization", type=values.positive, metavar="X", help="lambda; default: n^(-1/4)")
    add(
        "--seed",
        type=values.integer(0, 2**64 - 1),
        metavar="N",
        help="seed of the random numbers; default: 0",
    )


def _add_answers(parser: argparse.ArgumentParser) -> None:
    """How sure the numbers are."""
    parser.add_argument(
        "--level", type=values.level, metavar="X", help="level of the intervals; default: 0.95"
    )
    parser.add_argument(
        "--groups",
        metavar="NAME|FILE",
        help="array or column of groups whose rows depend on each other, or an .npy file: intervals "
        "are then by group; default: rows are independent",
    )
    parser.add_argument(
        "--by",
        type=values.words,
        metavar="NAME|FILE,...",
        help="arrays or columns of segments, or .npy files: the values of each segment are printed, "
        "too; default: none",
    )
    parser.add_argument(
        "--test",
        action=argparse.BooleanOptionalAction,
        help="add the p-value of the exact test of calibration; default: "
        + ("yes, except with --groups" if parser.get_default("run") == "report" else "no"),
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    form = group.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="JSON, as in a pipe")
    form.add_argument("--text", action="store_true", help="tables, as on a terminal")
    form.add_argument("--quiet", action="store_true", help="the number only")
    group.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="colours; default: auto",
    )
    group.add_argument(
        "--threads",
        type=values.integer(1, 1024),
        metavar="N",
        help="threads, the same result with any number; default: all CPUs",
    )
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")


def _add_bins(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--bins", type=values.integer(1, 1000), metavar="N", help=help)


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--names",
        type=values.words,
        metavar="A,B,...",
        help="names of the models; default: the file names",
    )
    parser.add_argument(
        "--models",
        type=values.models,
        metavar="A=...,B=...",
        help="models of one file, each as --probs would name it: a='prob_a_*',b='prob_b_*'",
    )


_ALL = ("auto", *(word for word in METHODS if word != "blocks"))  # which is for JKCE


def _add_command(
    commands: Any, name: str, text: str, *, files: str | None = None, methods: tuple[str, ...] = ()
) -> Parser:
    parser: Parser = commands.add_parser(
        name, help=text, description=f"{text}.", epilog=_EPILOG, formatter_class=_HELP
    )
    parser.set_defaults(run=name, parser=parser, output=None)
    if files is not None:
        parser.add_argument("files", nargs="+", metavar="FILE", help=files)
        _add_data(parser)
        _add_logs(parser)
    if methods:
        _add_metric(parser, methods)
    _add_output(parser)
    return parser


def _add_scores(commands: Any) -> None:
    score = _add_command(
        commands,
        "score",
        "All metrics of one model",
        files=f"predictions: {_FORMATS}",
        methods=_ALL,
    )
    score.add_argument("--shards", action="store_true", help="the files are parts of one data set")
    _add_bins(score, "bins of the ECE; default: 15, and 10 for each class on the simplex")
    _add_answers(score)
    score.add_argument(
        "--where",
        action="store_const",
        const=True,
        help="say where the model is off: the regions of predictions with the largest corrections",
    )
    compare = _add_command(
        commands,
        "compare",
        "Rank models by calibration, with paired intervals",
        files=f"predictions of one model each, of the same cases, or of all in one file: {_FORMATS}",
        methods=_ALL,
    )
    _add_models(compare)
    _add_answers(compare)
    report = _add_command(
        commands,
        "report",
        "Write a page about one model, or a comparison of several",
        files=f"predictions of one model each: {_FORMATS}",
        methods=_ALL,
    )
    _add_models(report)
    _add_answers(report)
    report.add_argument("-o", "--output", metavar="HTML", help=f"file to write; default: {REPORT}")
    report.add_argument("--title", default="Calibration report", help="title of the page")
    report.add_argument("--subtitle", metavar="TEXT", help="below it: the data set, the date")
    report.add_argument(
        "--no-sensitivity", action="store_true", help="leave out the reruns under other settings"
    )
    plot = _add_command(
        commands,
        "plot",
        "Draw the reliability diagram of one model or several",
        files=f"predictions of one model each: {_FORMATS}",
    )
    _add_models(plot)
    plot.add_argument(
        "--class", dest="target", metavar="NAME", help="class to draw; default: the top label"
    )
    _add_bins(plot, "bins; default: 15")
    plot.add_argument(
        "--level", type=values.level, metavar="X", help="level of the bands; default: 0.95"
    )
    plot.add_argument(
        "-o", "--output", metavar="PNG|SVG|PDF", help=f"file to write; default: {PICTURE}"
    )


def _add_states(commands: Any) -> None:
    stream = _add_command(
        commands,
        "stream",
        "Turn files larger than memory into a small state that can be merged",
        files=f"predictions, parts of one data set: {_FORMATS}",
        methods=("fourier", "landmarks"),
    )
    stream.add_argument(
        "-o", "--output", required=True, metavar="STATE", help="file to write, *.ckce"
    )
    stream.add_argument(
        "--shard", metavar="NAME", help="name of this part: states that share one are not merged"
    )
    _add_bins(stream, "bins of the ECE; default: 15")
    merge = _add_command(commands, "merge", "Add states, and evaluate all of their rows")
    merge.add_argument("files", nargs="+", metavar="STATE", help="files of ckce stream")
    merge.add_argument("-o", "--output", metavar="STATE", help="file to write, *.ckce")


def make_parser() -> Parser:
    """The parser of all commands."""
    from ckce import __version__

    parser = Parser(
        prog="ckce",
        description="How well calibrated are the probabilities of a classifier,\n"
        "and which model is better?",
        epilog=f"first steps: ckce demo; ckce score preds.npz\n\n{_EPILOG}",
        formatter_class=_HELP,
    )
    parser.add_argument("--version", action="version", version=f"ckce {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    _add_scores(commands)
    _add_states(commands)
    demo = _add_command(commands, "demo", "Compare three made-up models")
    demo.add_argument("-o", "--output", metavar="HTML", help="write a report about them instead")
    completion = _add_command(commands, "completion", "Print a script that completes words")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"], metavar="SHELL")
    return parser
