"""Errors in words of the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ckce._input import InputError, InputTypeError

#: What helps, by the kind of a hint that an error carries.
HINTS = {
    "logits": "pass --input logits if these are logits",
    "log_probs": "pass --input log_probs if these are log-probabilities",
    "probs": "leave --input out if these are probabilities",
    "normalize": "pass --normalize to rescale",
    "percent": "divide by 100 if they are percentages",
    "one_based": "labels look 1-based: pass --classes 1..{m}",
    "labels": "name the columns with --classes",
    "integer_labels": "write them as integers",
    "name_labels": "name it with --labels",
    "name_weights": "name it with --weights",
    "name_probs": "name the columns with --probs, '*' stands for any",
    "name_array": "name it with --probs",
    "name_models": "name them with --models a=...,b=..., or use ckce score for one",
    "labels_file": "give the labels as another file, --labels y.npy",
    "weights_file": "give the weights as another file, --weights w.npy",
}
#: What the library calls its arguments, and the command line's name for each.
_ARGUMENTS = {
    "y_true": "labels",
    "y_prob": "probs",
    "sample_weight": "weights",
    "groups": "groups",
    "by": "by",
}


class UsageError(argparse.ArgumentTypeError):
    """The command line is wrong."""


class DataError(ValueError):
    """The files are wrong."""


def _with_own_hints(error: Exception, n_classes: int | None) -> str:
    """An error with hints that can be typed, if all of them have words here."""
    hints = getattr(error, "hints", ())
    if not set(hints) <= HINTS.keys():
        return str(error)
    words = [HINTS[kind].format(m=n_classes or "m") for kind in hints]
    return "; ".join([getattr(error, "problem", str(error)), *words])


def _with_own_names(text: str, places: Mapping[str, str]) -> str:
    """What files call it in place of an argument of the library, where the sentence names it."""
    for argument, what in _ARGUMENTS.items():
        found = re.search(
            rf"(?<!['\w]){argument}(?!['\w])", text
        )  # in quotes it is the file's word
        if found:
            text = text[: found.start()] + places.get(what, what) + text[found.end() :]
    return text


@contextmanager
def names_of(places: Mapping[str, str], n_classes: int) -> Iterator[None]:
    """Errors in here are about these places."""
    try:
        yield
    except (InputError, InputTypeError) as error:
        text = _with_own_hints(error, n_classes)
        raise DataError(_with_own_names(text, places)) from error


def message_of(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, MemoryError):
        return str(error) or "not enough memory; try --method fourier, or fewer rows"
    if isinstance(error, (InputError, InputTypeError)):
        return _with_own_hints(error, None)
    if isinstance(error, (ValueError, TypeError, OSError, ImportError, argparse.ArgumentTypeError)):
        return str(error) or type(error).__name__
    return f"{type(error).__name__}: {error}; this is a bug in ckce, --debug shows where"
