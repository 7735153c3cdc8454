"""Predictions to measure on: seeded, shaped like a network's, the same in every process."""

import os
from functools import cached_property
from pathlib import Path

import numpy as np


def simulate(n, m, seed=0, margin=3.0):
    """Labels (n,) and float32 probabilities (n, m) of an over-confident network.

    One class leads the others by a log-odds margin ~ N(`margin`, 4); labels follow the predictions
    cooled by 1.25. With margin 8 and m = 10 the confidences are those of a good CIFAR-10 network
    (median 0.9997, tenth percentile 0.95).
    """
    rng = np.random.default_rng(seed)
    y_prob = np.empty((n, m), dtype=np.float32)
    y_true = np.empty(n, dtype=np.int64)
    for start in range(0, n, 8192):
        rows = slice(start, min(start + 8192, n))
        count = rows.stop - start
        logits = rng.standard_normal((count, m))
        lead = rng.integers(m, size=count)
        logits[np.arange(count), lead] += rng.normal(margin + 0.5 + np.log(m - 1.0), 4.0, count)
        y_true[rows] = np.argmax(logits / 1.25 + rng.gumbel(size=(count, m)), axis=1)
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        y_prob[rows] = logits / logits.sum(axis=1, keepdims=True)
    return y_true, y_prob


def median_distance(y_prob, rows=1000):
    """Median pair distance of the first rows: a bandwidth that every contender is given."""
    q = y_prob[:rows].astype(np.float64)
    squared = np.einsum("ij,ij->i", q, q)
    distances = np.maximum(squared[:, None] + squared - 2.0 * (q @ q.T), 0.0)
    return float(np.sqrt(np.median(distances[np.triu_indices(len(q), k=1)])))


class Inputs:
    """One data set in both precisions: `y64` holds exactly the numbers of `y32`."""

    def __init__(self, n, m):
        """Load from the folder CKCE_BENCH_CACHE if that is set, so that processes can share."""
        self.n, self.m = n, m
        folder = os.environ.get("CKCE_BENCH_CACHE")
        if folder is None:
            self.y_true, self.y32 = simulate(n, m)
        else:
            labels, probs = (Path(folder) / f"{name}_{n}_{m}.npy" for name in ("labels", "probs"))
            if not probs.exists():
                y_true, y_prob = simulate(n, m)
                np.save(labels, y_true)
                np.save(probs, y_prob)
            self.y_true, self.y32 = np.load(labels), np.load(probs)
        self.bandwidth = median_distance(self.y32)

    @cached_property
    def y64(self):
        return self.y32.astype(np.float64)

    @cached_property
    def frequencies(self):
        """(100, m), ordered and scaled as `ckce.fourier_frequencies` gives them."""
        import ckce

        return ckce.fourier_frequencies(self.m, 100, bandwidth=self.bandwidth)
