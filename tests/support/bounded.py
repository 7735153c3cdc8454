"""Random problems of more than two classes, and every bound that is printed for them."""

import numpy as np
from line import KERNELS, LONG, cholesky, solve

import ckce
from ckce import _core
from ckce._problem.label_kernel import check_label_kernel

BLOCKS = "exact, by blocks"  # float32 beside float64
KINDS = ("spread", "skewed", "clustered", "duplicated", "one-hot", "constant", "tiny distances")


def predictions(rng, n, m, kind):
    """Rows of the simplex."""
    spread = rng.dirichlet(np.full(m, 10.0 ** rng.uniform(-1.5, 2)), n)
    centres = rng.dirichlet(np.ones(m), 3)[rng.integers(0, 3, n)]
    jitter = 10.0 ** rng.uniform(-16, -2) * rng.normal(size=(n, m))
    away = rng.random((n, 1)) < 0.25
    q = {
        "spread": lambda: spread,
        "skewed": lambda: rng.dirichlet(10.0 ** rng.uniform(-3, 1, m), n),
        "clustered": lambda: centres + jitter,
        "duplicated": lambda: spread[rng.integers(0, rng.integers(1, 6), n) % n],
        "one-hot": lambda: np.eye(m)[rng.integers(0, m, n)],
        "constant": lambda: np.tile(spread[:1], (n, 1)),
        "tiny distances": lambda: np.where(
            away, spread, centres[:1] + 1e-16 * rng.integers(-2, 3, (n, m))
        ),
    }[kind]()
    q = np.abs(q) + 0.0
    return q / q.sum(axis=1, keepdims=True)


def problem(rng, default, shape=None):
    """Labels, rows, and options of `ckce.estimate`; `default`: those that it would take itself."""
    few = int(np.exp(rng.uniform(np.log(2), np.log(111)))), int(rng.integers(3, 9))
    n, m = few if shape is None else shape
    q = predictions(rng, n, m, KINDS[rng.integers(len(KINDS))])
    odd = rng.choice([0.0, 0.3])
    y = np.array([rng.choice(m, p=(1 - odd) * p + odd * np.roll(p, 1)) for p in q])
    options = {"kernel": "linear_gaussian", "bandwidth": "median"}
    if default:
        return y, q, options
    factor = rng.normal(size=(m, rng.integers(1, m + 2)))
    options = {
        "kernel": KERNELS[rng.integers(3)],
        "bandwidth": 10.0 ** rng.uniform(-9, 3),
        "regularization": 10.0 ** rng.uniform(-8, 1),
        "sample_weight": 10.0 ** rng.uniform(-2, 3, n) if rng.random() < 0.25 else None,
        "label_kernel": factor @ factor.T if rng.random() < 0.2 else None,
    }
    return y, q, options


def iterate(
    y,
    q,
    kernel,
    bandwidth,
    regularization=None,
    sample_weight=None,
    label_kernel=None,
    *,
    tol=1e-10,
    solver=_core.Solver.iterate,
):
    """`method="exact"` by iteration, however few rows there are."""
    weight = float(len(y)) if sample_weight is None else sample_weight.sum()
    ell = check_label_kernel(label_kernel, q.shape[1])
    return _core.ckce_exact(
        *(q, y, sample_weight, None if ell is None else ell.factor),
        kernel=_core.Kernel(kernel, bandwidth),
        ridge=(weight**-0.25 if regularization is None else regularization) * weight,
        tol=tol,
        solver=solver,
        full=True,
        n_threads=1,
        progress=None,
    )


def stream(y, q, sample_weight=None, **options):
    """Landmarks that are placed first, and rows that come after."""
    few = slice(0, max(2, len(y) // 2))
    acc = ckce.CKCEAccumulator.from_sample(
        y[few], q[few], method=ckce.Landmarks(20), n_threads=1, **options
    )
    acc.update(y, q, sample_weight)
    e = acc.evaluate()
    return e.ckce, e.ckce_bound


def primal_truth(y, q, regularization=None, sample_weight=None, label_kernel=None):
    """CKCE of the linear kernel, in m unknowns."""
    m = q.shape[1]
    w = LONG(np.ones(len(y)) if sample_weight is None else sample_weight)
    ell = np.eye(m, dtype=LONG) if label_kernel is None else LONG(label_kernel)
    c = LONG(w.sum() ** -0.25 if regularization is None else regularization) * w.sum()
    q = LONG(q)
    r = np.eye(m, dtype=LONG)[y] - q
    x = solve(cholesky(q.T @ (w[:, None] * q) + c * np.eye(m, dtype=LONG)), q.T @ (w[:, None] * r))
    return np.sum((x.T @ x) * ell)


def solutions(y, q, options, only=None):
    """(method, value, bound) of every method, or of one; the value is None where it was refused."""
    linear = {k: v for k, v in options.items() if k not in ("kernel", "bandwidth")}

    def estimate(**changes):
        e = ckce.estimate(y, q, n_threads=1, **{**options, **changes})
        return e.value, e.bound

    def iterated(blocks):
        solution = iterate(
            y, q, **options, solver=_core.Solver.blocks if blocks else _core.Solver.iterate
        )
        return solution.value, solution.bound

    rank = max(1, len(y) // 3)
    ways = {
        "exact, factorised": lambda: estimate(method="exact"),
        "exact, iterated": lambda: iterated(blocks=False),
        BLOCKS: lambda: iterated(blocks=True),
        "cholesky": lambda: estimate(method="cholesky"),
        "cholesky, of low rank": lambda: estimate(
            method=ckce.Cholesky(rank=rank, pivoting="random")
        ),
        "landmarks": lambda: estimate(method=ckce.Landmarks(rank)),
        "landmarks, in a stream": lambda: stream(y, q, **options),
        "linear kernel": lambda: estimate(kernel="linear", bandwidth="median", **linear),
    }
    for name, way in ways.items():
        if only not in (None, name):
            continue
        try:
            yield name, *way()
        except (ValueError, MemoryError, RuntimeError):
            yield name, None, None
