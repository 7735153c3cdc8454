"""Calibration questions with two answers, out of one with m classes."""

import numpy as np

from ckce._input.samples import Samples


def top_label(samples: Samples) -> Samples:
    """Was the predicted class (the first maximum) right? Predictions [1 - c, c]."""
    predicted = samples.probs.argmax(axis=1)
    confidence = np.take_along_axis(samples.probs, predicted[:, None], axis=1)[:, 0]
    return _binary(predicted == samples.labels, confidence, samples)


def one_vs_rest(samples: Samples, column: int) -> Samples:
    """Is it class `column`? Predictions [1 - q_j, q_j]."""
    return _binary(samples.labels == column, samples.probs[:, column], samples)


def _binary(
    truth: np.ndarray[tuple[int], np.dtype[np.bool_]], probability: np.ndarray, samples: Samples
) -> Samples:
    positive = probability.astype(np.float64)
    return Samples(
        truth.astype(np.int64), np.column_stack([1.0 - positive, positive]), samples.weights
    )
