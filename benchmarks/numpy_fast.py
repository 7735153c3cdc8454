"""CKCE as a skilled NumPy/SciPy user would write it: the baseline to beat.

Both cores work throughout, in BLAS for the products and in two threads for the elementwise parts.
Chosen among variants (one piece or blocks of 4096 to 16384 rows, `dsyrk` or `phi.T @ phi`, R as a
product or as a scatter) for m = 10, 100 and 1000: no other was more than 17 % faster at any m.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist

BLOCK = 8192
THREADS = os.cpu_count() or 1
POOL = ThreadPoolExecutor(THREADS)


def _in_threads(f, n):
    """Call f on one slice of 0..n per thread; ufuncs release the GIL."""
    edges = np.linspace(0, n, THREADS + 1).astype(int)
    list(POOL.map(f, [slice(a, b) for a, b in pairwise(edges)]))


def _residuals(y_true, y_prob):
    r = -y_prob
    r[np.arange(len(r)), y_true] += 1
    return r


def _waves(angles, out):
    """[cos | sin] / sqrt(D) from one tan of the half angle: np.tan is vectorised, sin/cos less."""
    d = angles.shape[1]
    scale = d**-0.5

    def rows(s):
        t = angles[s]
        t *= 0.5
        np.tan(t, out=t)
        u = t * t
        u += 1
        np.divide(2 * scale, u, out=u)
        np.subtract(u, scale, out=out[s, :d])
        np.multiply(t, u, out=out[s, d:])

    _in_threads(rows, len(angles))


def ckce_fourier(y_true, y_prob, frequencies, regularization=None):
    """|(Phi'Phi + cI)^-1 Phi'R|_F^2, features [q | cos | sin]."""
    n, m = y_prob.shape
    d = m + 2 * len(frequencies)
    c = (n**-0.25 if regularization is None else regularization) * n
    w = np.ascontiguousarray(frequencies.T)
    buffer = np.empty((min(n, BLOCK), d))
    gram = np.zeros((d, d))
    by_label = np.zeros((m, d))
    for start in range(0, n, BLOCK):
        q = y_prob[start : start + BLOCK]
        rows = len(q)
        phi = buffer[:rows]
        phi[:, :m] = q
        _waves(q @ w, phi[:, m:])
        gram += phi.T @ phi
        one_hot = (np.ones(rows), y_true[start : start + BLOCK], np.arange(rows + 1))
        by_label += csr_array(one_hot, shape=(rows, m)).T @ phi
    # Phi'Q is a block of Phi'Phi: 0.6 s; with a product with R, 0.96 s (n = 20000, m = 1000).
    s = by_label.T - gram[:, :m]
    gram[np.diag_indices(d)] += c
    # gram.T is in Fortran order: LAPACK then factors in place.
    factor = cho_factor(gram.T, lower=True, overwrite_a=True, check_finite=False)
    x = cho_solve(factor, s, check_finite=False)
    return float(np.vdot(x, x))


def _add_gaussian(gram, half_p, half_q, bandwidth):
    """Turn p'q into p'q + exp((p'q - |p|^2/2 - |q|^2/2) / bandwidth^2) in place."""

    def rows(s):
        # Small pieces, so that the temporary stays in cache.
        for a in range(s.start, s.stop, 16):
            k = gram[a : min(a + 16, s.stop)]
            e = k - half_q
            e -= half_p[a : min(a + 16, s.stop), None]
            e /= bandwidth**2
            np.exp(e, out=e)
            k += e

    _in_threads(rows, len(gram))


def ckce_exact(y_true, y_prob, bandwidth):
    """<R, V> - c|V|^2 with V = (K + cI)^-1 R by one Cholesky factorisation."""
    n = len(y_prob)
    c = n**0.75
    half = np.einsum("ij,ij->i", y_prob, y_prob) / 2
    gram = y_prob @ y_prob.T
    _add_gaussian(gram, half, half, bandwidth)
    gram[np.diag_indices(n)] += c
    r = _residuals(y_true, y_prob)
    v = cho_solve(cho_factor(gram.T, overwrite_a=True, check_finite=False), r, check_finite=False)
    return float(np.vdot(r, v) - c * np.vdot(v, v))


def jkce_exact(y_true, y_prob, bandwidth, block=1024):
    """Unbiased JKCE, the mean of k(q_i, q_j) r_i'r_j over i != j; half of the tiles of K."""
    n = len(y_prob)
    half = np.einsum("ij,ij->i", y_prob, y_prob) / 2
    r = _residuals(y_true, y_prob)
    total = 0.0
    for start in range(0, n, block):
        mine = slice(start, min(start + block, n))
        k = y_prob[mine] @ y_prob[start:].T
        _add_gaussian(k, half[mine], half[start:], bandwidth)
        rows = len(k)
        total += np.vdot(r[mine], k[:, :rows] @ r[mine])
        total += 2 * np.vdot(r[mine], k[:, rows:] @ r[mine.stop :])
    total -= np.vdot(2 * half + 1, np.einsum("ij,ij->i", r, r))
    return float(total / (n * (n - 1)))


def median_bandwidth(y_prob, seed=0):
    """Median pair distance, of 2000 rows at most."""
    if len(y_prob) > 2000:
        y_prob = y_prob[np.random.default_rng(seed).choice(len(y_prob), 2000, replace=False)]
    return float(np.median(pdist(y_prob)))
