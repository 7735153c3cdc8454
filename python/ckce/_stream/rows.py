"""Batches of rows, before the core has them."""

from dataclasses import replace

import numpy as np

from ckce._input import Samples
from ckce._stream.engine import Engine


def feed(engine: Engine, samples: Samples, n_threads: int) -> None:
    """Add rows to the sums."""
    if samples.n > 0:
        engine.update(samples.probs, samples.labels, samples.weights, n_threads=n_threads)


def some_rows(samples: Samples, rows: slice) -> Samples:
    """Some of the rows; a view."""
    weights = None if samples.weights is None else samples.weights[rows]
    return replace(samples, labels=samples.labels[rows], probs=samples.probs[rows], weights=weights)


def copied(samples: Samples) -> Samples:
    """Rows of our own: the caller may reuse its memory."""
    weights = None if samples.weights is None else samples.weights.copy()
    return Samples(samples.labels.copy(), samples.probs.copy(), weights)


def joined(parts: list[Samples]) -> Samples:
    """All rows, one part after the other."""
    weighted = any(part.weights is not None for part in parts)
    weights = [np.ones(part.n) if part.weights is None else part.weights for part in parts]
    return Samples(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.probs for part in parts]),
        np.concatenate(weights) if weighted else None,
    )
