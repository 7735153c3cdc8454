"""CKCE and JKCE as a good NumPy/SciPy user writes them: the baseline of RESULTS.md.

The formulas of the paper with each product left to BLAS (all cores), rows in blocks, buffers reused
and a Cholesky factorisation in place of an inverse. None of this project's identities: those, and
Python threads for the elementwise parts, are in `numpy_fast.py`, the harder opponent.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve


def residuals(y_true, y_prob):
    """Rows e_y - q."""
    r = -y_prob
    r[np.arange(len(r)), y_true] += 1.0
    return r


def top_k(y_true, y_prob, k, block=8192):
    """The k largest entries of each row in order, and the rest; labels by rank."""
    n = len(y_prob)
    kept, ranks = np.empty((n, k + 1)), np.empty(n, np.int64)
    for start in range(0, n, block):
        q, y = y_prob[start : start + block], y_true[start : start + block, None]
        columns = np.argpartition(q, -k, axis=1)[:, -k:]
        entries = np.take_along_axis(q, columns, axis=1)
        order = np.argsort(-entries, axis=1)
        rows = kept[start : start + block]
        rows[:, :k] = np.take_along_axis(entries, order, axis=1)
        rows[:, k] = np.maximum(1.0 - rows[:, :k].sum(axis=1), 0.0)
        hits = np.take_along_axis(columns, order, axis=1) == y
        ranks[start : start + block] = np.where(hits.any(axis=1), hits.argmax(axis=1), k)
    return ranks, kept


def ckce_fourier(y_true, y_prob, frequencies, regularization=None, block=8192):
    """|(Phi'Phi + cI)^-1 Phi'R|_F^2, features [q | cos | sin]."""
    n, m = y_prob.shape
    n_waves = len(frequencies)
    d = m + 2 * n_waves
    ridge = (n**-0.25 if regularization is None else regularization) * n
    buffer = np.empty((min(n, block), d))
    gram = np.zeros((d, d))
    s = np.zeros((d, m))
    for start in range(0, n, block):
        q = y_prob[start : start + block]
        phi = buffer[: len(q)]
        angles = q @ frequencies.T
        phi[:, :m] = q
        np.cos(angles, out=phi[:, m : m + n_waves])
        np.sin(angles, out=phi[:, m + n_waves :])
        phi[:, m:] *= n_waves**-0.5
        gram += phi.T @ phi  # NumPy sees the symmetry: dsyrk, half the work
        s += phi.T @ residuals(y_true[start : start + block], q)
    gram[np.diag_indices(d)] += ridge
    x = cho_solve(cho_factor(gram, overwrite_a=True, check_finite=False), s, check_finite=False)
    return float(np.vdot(x, x))


def _kernel(p, p_squared, q, q_squared, bandwidth):
    """p'q + exp(-|p - q|^2 / (2 bandwidth^2)) from one product."""
    linear = p @ q.T
    gaussian = p_squared[:, None] + q_squared
    gaussian -= 2.0 * linear
    gaussian *= -0.5 / bandwidth**2
    np.exp(gaussian, out=gaussian)
    gaussian += linear
    return gaussian


def ckce_exact(y_true, y_prob, bandwidth, regularization=None):
    """Tr V'KV with (K + cI) V = R by one Cholesky factorisation."""
    n = len(y_prob)
    ridge = (n**-0.25 if regularization is None else regularization) * n
    squared = np.einsum("ij,ij->i", y_prob, y_prob)
    k = _kernel(y_prob, squared, y_prob, squared, bandwidth)
    ridged = k.copy()
    ridged[np.diag_indices(n)] += ridge
    # The transpose of a symmetric matrix is itself, in the order that LAPACK factors in place.
    factor = cho_factor(ridged.T, overwrite_a=True, check_finite=False)
    v = cho_solve(factor, residuals(y_true, y_prob), check_finite=False)
    return float(np.vdot(v, k @ v))


def jkce_exact(y_true, y_prob, bandwidth, block=1024):
    """Unbiased JKCE, the mean of k(q_i, q_j) r_i'r_j over i != j, one block of rows at a time."""
    n = len(y_prob)
    squared = np.einsum("ij,ij->i", y_prob, y_prob)
    r = residuals(y_true, y_prob)
    total = 0.0
    for start in range(0, n, block):
        rows = slice(start, start + block)
        k = _kernel(y_prob[rows], squared[rows], y_prob, squared, bandwidth)
        total += np.vdot(r[rows], k @ r)
    total -= np.vdot(squared + 1.0, np.einsum("ij,ij->i", r, r))
    return float(total / (n * (n - 1)))
