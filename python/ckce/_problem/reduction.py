"""Calibration questions with two answers, out of one with m classes."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ckce._input import Samples, check_choice

REDUCTIONS = ("top_label", "class_wise")


def check_reduction(value: object, known: tuple[str, ...] = REDUCTIONS) -> str | None:
    """One of the reductions, or None."""
    return None if value is None else check_choice("reduction", value, known)


def top_label(samples: Samples) -> Samples:
    """Was the predicted class (the first maximum) right? Predictions [1 - c, c]."""
    predicted = samples.probs.argmax(axis=1)
    confidence = np.take_along_axis(samples.probs, predicted[:, None], axis=1)[:, 0]
    return _binary(predicted == samples.labels, confidence, samples)


def one_vs_rest(samples: Samples, column: int) -> Samples:
    """Is it class `column`? Predictions [1 - q_j, q_j]."""
    return _binary(samples.labels == column, samples.probs[:, column], samples)


def all_one_vs_rest(samples: Samples) -> Iterator[Samples]:
    """The m one-vs-rest problems."""
    for column in range(samples.m):
        yield one_vs_rest(samples, column)


def _binary(
    truth: NDArray[np.bool_], probability: NDArray[np.floating], samples: Samples
) -> Samples:
    positive = probability.astype(np.float64)
    columns = np.column_stack([1.0 - positive, positive])
    return replace(samples, labels=truth.astype(np.int64), probs=columns, names=None)
