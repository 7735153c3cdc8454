"""Two models of one sample, for tests that compare them."""

import numpy as np


def draw(rng, q):
    """Labels out of the predictions q."""
    return (rng.random((len(q), 1)) > q.cumsum(axis=1)[:, :-1]).sum(axis=1)


def temper(q, power):
    """Predictions made sharper (power above 1) or flatter."""
    sharp = q**power
    return sharp / sharp.sum(axis=1, keepdims=True)


def two_models(seed, n=None, m=None):
    """Labels and two predictions that are miscalibrated in different ways."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(150, 300)) if n is None else n
    m = int(rng.integers(2, 6)) if m is None else m
    truth = rng.dirichlet(rng.uniform(0.3, 2.0, m), n)
    y = draw(rng, truth)
    noisy = temper(truth * rng.uniform(0.6, 1.4, (n, m)), 1.0)
    return y, temper(truth, rng.uniform(0.5, 2.0)), noisy
