"""Random problems of two classes, and the literal formulas of any number in long double."""

import numpy as np

from ckce import _core

LONG = np.longdouble
KERNELS = ("linear_gaussian", "gaussian", "laplace")


def skewed(n, seed=0):
    """Rare positives: predictions that span thousands of median distances."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.05, 6.2, n)
    return (rng.random(n) < p).astype(np.int64), np.stack([1 - p, p], 1)


def cholesky(a):
    a = a.copy()
    for j in range(len(a)):
        a[j:, j] -= a[j:, :j] @ a[j, :j]
        a[j:, j] /= np.sqrt(a[j, j])
    return np.tril(a)


def solve(lower, b):
    x = b.copy()
    for i in range(len(x)):
        x[i] = (x[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    for i in range(len(x) - 1, -1, -1):
        x[i] = (x[i] - lower[i + 1 :, i] @ x[i + 1 :]) / lower[i, i]
    return x


def gram(kernel, q, bandwidth):
    gamma, d = LONG(bandwidth), q[:, None, :] - q[None, :, :]
    if kernel == "laplace":
        return np.exp(-np.abs(d).sum(-1) / gamma)
    k = np.exp(-(d**2).sum(-1) / (2 * gamma**2))
    return k + q @ q.T if kernel == "linear_gaussian" else k


def truth(
    y,
    q,
    *,
    kernel="linear_gaussian",
    bandwidth,
    regularization=None,
    label_kernel=None,
    sample_weight=None,
    full=True,
):
    """Value, debias term, floor, influence and the sums of JKCE, of rows as they are given."""
    w = LONG(np.ones(len(y)) if sample_weight is None else sample_weight)
    m = q.shape[1]
    ell = np.eye(m, dtype=LONG) if label_kernel is None else LONG(label_kernel)
    total = w.sum()
    c = LONG(total**-0.25 if regularization is None else regularization) * total
    q, y, w = LONG(q)[w > 0], y[w > 0], w[w > 0]
    r, root = np.eye(m, dtype=LONG)[y] - q, np.sqrt(w)
    plain = gram(kernel, q, bandwidth)
    k = plain * np.outer(root, root)
    lower = cholesky(k + c * np.eye(len(k), dtype=LONG))
    v = solve(lower, root[:, None] * r)
    out = {"value": np.sum((v.T @ k @ v) * ell)}
    if not full:
        return out
    h = plain * (r @ ell @ r.T)
    out["rows"] = h @ w - np.diag(h)
    out["diagonal"], out["off_diagonal"] = w @ np.diag(h), w @ out["rows"]
    inverse = solve(lower, np.eye(len(k), dtype=LONG))
    a = np.diag(inverse @ k @ inverse)
    out["debias"] = a @ np.einsum("ij,jk,ik->i", r, ell, r)
    out["floor"] = a @ (q @ np.diag(ell) - np.einsum("ij,jk,ik->i", q, ell, q))
    t = np.sum((k @ (inverse @ v) @ ell) * v, axis=1) / w
    out["influence"] = 2 * total * c * (t - w @ t / total)
    out["se"] = (
        np.sqrt(w @ out["influence"] ** 2 / (total - 1) / total) if total > 1 else LONG("nan")
    )
    return out


def cells(y, q, *, kernel, bandwidth, regularization, label_kernel=None, sample_weight=None):
    """The solution in one pass, also of few rows, for which `ckce` takes the Gram matrix."""
    w = np.ones(len(y)) if sample_weight is None else sample_weight
    kept, total, factor = w > 0, w.sum(), None
    if label_kernel is not None:
        values, vectors = np.linalg.eigh(label_kernel)
        factor = np.asfortranarray(vectors * np.sqrt(values.clip(0)))
    return _core.ckce_two_classes(
        *(q[kept], y[kept], w[kept], factor),
        kernel=_core.Kernel(kernel, bandwidth),
        ridge=(total**-0.25 if regularization is None else regularization) * total,
        full=True,
        n_threads=1,
        progress=None,
    )


def predictions(rng, n):
    """Of all kinds: spread, skewed, clustered, few, at both ends, rounded."""
    spread = 10.0 ** rng.uniform(-8, -1)
    kinds = [
        lambda: rng.random(n),
        lambda: rng.beta(0.05, 6.2, n),
        lambda: np.clip(rng.choice(rng.random(4), n) + rng.normal(0, spread, n), 0, 1),
        lambda: rng.choice(rng.random(3), n),
        lambda: rng.choice([0.0, 1.0, 0.5, 1e-300, 1 - 2**-53, 0.25], n),
        lambda: rng.beta(0.3, 0.3, n),
        lambda: np.round(rng.random(n), 2),
    ]
    return kinds[rng.integers(len(kinds))]()


def problem(rng, n_most=60, *, default=False, kernel=None):
    """Labels, rows and options of `ckce.estimate`; `default`: those that it would take itself."""
    n = int(rng.integers(2, n_most + 1))
    p = predictions(rng, n)
    y = (rng.random(n) < np.clip(p + rng.choice([0, 0.1, -0.2, 0.4]), 0, 1)).astype(np.int64)
    options = {"kernel": kernel or KERNELS[rng.integers(3)]}
    weights = [
        None,
        10.0 ** rng.uniform(-3, 6, n),
        rng.integers(0, 4, n).astype(float),
        np.where(rng.random(n) < 0.3, 0.0, rng.random(n) * 1e6),
    ][0 if default else rng.integers(4)]
    if weights is not None and weights.sum() <= 0:
        weights[0] = 1.0
    factor = rng.normal(size=(2, rng.integers(1, 4)))
    options["sample_weight"] = weights
    options["label_kernel"] = factor @ factor.T if rng.random() < 0.3 and not default else None
    lam, bandwidth = 10.0 ** rng.uniform(-8, 1), 10.0 ** rng.uniform(-6, 3)
    options["regularization"] = None if default or rng.random() < 0.3 else lam
    options["bandwidth"] = "median" if default else bandwidth
    return y, np.stack([1 - p, p], 1), options
