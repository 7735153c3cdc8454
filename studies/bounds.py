"""Study: does every printed bound hold, of more than two classes?

    python studies/bounds.py            writes studies/BOUNDS.md, about two hours of CPU time
    python studies/bounds.py --quick    a fiftieth of the problems, printed only
    python studies/bounds.py --limit 2000 400   the last table only, printed only
    python studies/bounds.py --blocks   2000 problems, the steps with float32 tiles only, printed only

Random problems against the literal formula in long double, whose own error is about 1/2000 of what
the bounds count. Each problem is solved by every method that prints a bound: by factorisation, by
iteration (which `method="exact"` takes for many rows; here for few), by blocks (for many rows and
classes; here for few), by Cholesky factors of two
kinds, by landmarks at once and in a stream, and with the linear kernel. A few problems of 2001 rows
are iterated as a user's would be. `two_classes.py` looks at two classes.
"""

import argparse
import sys
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from bounded import BLOCKS, primal_truth, problem, solutions
from line import LONG, gram, truth

import ckce

OUT = Path(__file__).parent / "BOUNDS.md"
SEED = 2026
WORKERS = 4
TINY = np.finfo(float).tiny


def run(count, seed, only=None):
    """Rows (error, bound, value, bandwidth, lambda) of each method, and refusals."""
    warnings.simplefilter("ignore")
    rows, refused = defaultdict(list), defaultdict(list)
    rng = np.random.default_rng(seed)
    for _ in range(count):
        y, q, options = problem(rng, default=False)
        exact = truth(y, q, **options, full=False)["value"]
        linear = {k: v for k, v in options.items() if k not in ("kernel", "bandwidth")}
        exact_linear = primal_truth(y, q, **linear)
        where = options["bandwidth"], options["regularization"]
        for name, value, bound in solutions(y, q, options, only):
            if value is None:
                refused[name].append(where)
                continue
            error = abs(value - (exact_linear if name == "linear kernel" else exact))
            rows[name].append((float(error), bound, value, *where))
    return rows, refused


def table(count, seed, only=None):
    lines = [
        "| method | problems | error > bound | largest error / bound | median bound / value "
        "| bound < value: all | lambda > 1e-4 | refused | at bandwidth and lambda >= 1e-6 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    found, refused = defaultdict(list), defaultdict(list)
    chunk = min(count, 500)
    with ProcessPoolExecutor(WORKERS) as pool:
        seeds = [[seed, k] for k in range(count // chunk)]
        for rows, some in pool.map(run, [chunk] * len(seeds), seeds, [only] * len(seeds)):
            for name in rows:
                found[name] += rows[name]
                refused[name] += some[name]
    for name, rows in found.items():
        error, bound, value, _, lam = np.array(rows).T
        ratio = error / np.maximum(bound, TINY)
        some = value > TINY
        relative = bound[some] / value[some]
        inner = sum(gamma >= 1e-6 and lam >= 1e-6 for gamma, lam in refused[name])
        lines.append(
            f"| {name} | {len(rows):,} | {(error > bound + TINY).sum()} | {ratio.max():.2f} "
            f"| {np.median(relative):.1e} | {(relative < 1).mean():.1%} "
            f"| {(relative < 1)[lam[some] > 1e-4].mean():.1%} | {len(refused[name])} | {inner} |"
        )
        print(lines[-1], flush=True)
    return lines


def default_table(count, seed):
    lines = [
        "| problems | error > bound | largest error / bound | median bound | bound <= 1e-9 |",
        "|---|---|---|---|---|",
    ]
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        y, q, options = problem(rng, default=True)
        e = ckce.estimate(y, q, n_threads=1)
        exact = truth(y, q, **{**options, "bandwidth": e.bandwidth}, full=False)["value"]
        rows.append((float(abs(e.value - exact)), e.bound, 2 * e.value - e.debiased))
    error, bound, scale = np.array(rows).T
    some = scale > TINY
    relative = bound[some] / scale[some]
    lines.append(
        f"| {count:,} | {(error > bound + TINY).sum()} "
        f"| {(error / np.maximum(bound, TINY)).max():.2f} | {np.median(relative):.1e} "
        f"| {(relative <= 1e-9).mean():.1%} |"
    )
    print(lines[-1], flush=True)
    return lines


def large_table(count):
    """Two clusters of 2001 rows and spread rows, as `method="exact"` iterates them."""
    lines = [
        "| rows | bandwidth | lambda | error / bound | bound / (value + debias term) |",
        "|---|---|---|---|---|",
    ]
    rng = np.random.default_rng(SEED)
    cases = [(kind, lam) for lam in (None, 1e-5, 1e-6, 1e-7) for kind in ("two clusters", "spread")]
    for kind, lam in cases[:count]:
        n = 2001
        p = np.where(rng.random(n) < 0.5, 0.2, 0.7) + 1e-7 * rng.normal(size=n)
        q = np.stack([p, 0.9 - p, np.full(n, 0.1)], axis=1)
        if kind == "spread":
            q = rng.dirichlet([1.0, 2.0, 3.0], n)
        y = np.array([rng.choice(3, p=row / row.sum()) for row in q])
        options = {"kernel": "gaussian", "bandwidth": 0.1, "regularization": lam}
        e = ckce.estimate(y, q, method="exact", n_threads=1, **options)
        error = abs(e.value - truth(y, q, **options, full=False)["value"])
        lines.append(
            f"| {kind} | 0.1 | {'n^-1/4' if lam is None else f'{lam:.0e}'} "
            f"| {float(error / e.bound):.1e} | {e.bound / (2 * e.value - e.debiased):.1e} |"
        )
        print(lines[-1], flush=True)
    return lines


def refined_truth(
    y,
    q,
    *,
    kernel,
    bandwidth,
    regularization=None,
    label_kernel=None,
    sample_weight=None,
):
    """CKCE of many rows in long double: the inverse in float64, residuals in long double.

    Debias term and floor in float64, from W and K W: no difference, as the factorisation has.
    """
    n, m = q.shape
    w = LONG(np.ones(n) if sample_weight is None else sample_weight)
    ell = np.eye(m, dtype=LONG) if label_kernel is None else LONG(label_kernel)
    c = LONG(w.sum() ** -0.25 if regularization is None else regularization) * w.sum()
    root = np.sqrt(w)
    k = gram(kernel, LONG(q), bandwidth) * np.outer(root, root)
    r = root[:, None] * (np.eye(m, dtype=LONG)[y] - LONG(q))
    inverse = np.linalg.inv((k + c * np.eye(n, dtype=LONG)).astype(float))
    v, kv, left = np.zeros_like(r), np.zeros_like(r), LONG(np.inf)
    while True:
        rest = r - kv - c * v
        now = np.linalg.norm(rest)
        if not now < 0.1 * left or now == 0:  # nothing is gained any more
            break
        left, v = now, v + now * LONG(inverse @ (rest / now).astype(float))
        kv = k @ v
    a = np.sum(inverse * (k.astype(float) @ inverse), axis=0)
    of_rows = LONG(np.eye(m)[y]) - q
    norms = np.einsum("ij,jk,ik->i", of_rows, ell, of_rows)
    spreads = q @ np.diag(ell) - np.einsum("ij,jk,ik->i", q, ell, q)
    return np.sum((v.T @ kv) * ell), float(a @ norms), float(a @ spreads)


def run_above_limit(count, seed, rows_from, rows_to, most_classes):
    """Rows (n, error, bound, value + debias, error of the debias term, its bound, rank)."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        m = int(rng.integers(3, most_classes + 1))
        n = int(np.exp(rng.uniform(np.log(max(rows_from, 40 * m + 151)), np.log(rows_to + 1))))
        y, q, options = problem(rng, k % 2 == 0, (n, m))
        e = ckce.estimate(y, q, method="exact", n_threads=1, **options)
        options["bandwidth"] = e.bandwidth
        value, right, floor = refined_truth(y, q, **options)
        error = abs(e.value - value)
        debias = e.value - e.debiased
        terms = max(right, floor, TINY)
        off = max(abs(debias - right), abs(e.floor - floor)) / terms
        room = (e.debias_error or 0.0) / terms
        rows.append((n, float(error), e.bound, e.value + debias, off, room, e.debias_rank or 0))
    return rows


def limit_table(counts, seed):
    """Few rows, where the value iterates; more, where a factor may serve debias term and floor."""
    lines = [
        "| rows | options | problems | error > bound | largest error / bound | median bound / (value + "
        "debias term) | terms by a factor | farther off than they say, + 1e-10 | all terms: most |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for count, (rows_from, rows_to), most_classes in zip(
        counts, ((271, 800), (801, 2000)), (8, 20), strict=True
    ):
        rows = []
        with ProcessPoolExecutor(WORKERS) as pool:
            chunk = 10
            seeds = [[seed, rows_from, k] for k in range(max(1, count // chunk))]
            size = len(seeds)
            for some in pool.map(
                run_above_limit,
                [chunk] * size,
                seeds,
                [rows_from] * size,
                [rows_to] * size,
                [most_classes] * size,
            ):
                rows += some
        for first, name in enumerate(("default", "random")):
            n, error, bound, scale, off, room, rank = np.array(rows[first::2]).T
            few = bound <= 1e-6 * scale  # elsewhere the terms round, too
            beyond = few & (rank > 0) & (off > room + 1e-10)
            lines.append(
                f"| {n.min():.0f}-{n.max():.0f} | {name} | {len(n):,} "
                f"| {(error > bound + TINY).sum()} "
                f"| {(error / np.maximum(bound, TINY)).max():.2f} "
                f"| {np.median(bound / np.maximum(scale, TINY)):.1e} | {(rank > 0).sum()} "
                f"| {beyond.sum()} | {off[few].max():.1e} |"
            )
            print(lines[-1], flush=True)
    return lines


def page(parts, count, minutes):
    """All of BOUNDS.md."""
    random, default, large, limit = parts
    text = [
        "# The printed bounds hold",
        "",
        f"Written by `python studies/bounds.py` in {minutes:.0f} minutes on two cores beside other "
        f"work, ckce {ckce.__version__}.",
        "",
        "Errors against the literal formula in long double.",
        "",
        "## Random problems",
        "",
        f"{count:,} problems: 2 to 110 rows, 3 to 8 classes; predictions spread, skewed, clustered",
        "(within 1e-16 to 1e-2), duplicated, one-hot, constant, and three quarters of them equal to",
        "1e-16; weights, label kernels; bandwidth 1e-9 to 1e3, lambda 1e-8 to 10; the kernels",
        "linear_gaussian, gaussian and laplace.",
        "",
        *random,
        "",
        "## Default settings",
        "",
        "The same predictions, the median bandwidth, lambda = n^-1/4; bounds relative to value + debias",
        "term.",
        "",
        *default,
        "",
        "## 2001 rows, by iteration",
        "",
        *large,
        "",
        "## From 40 m + 150 to 2000 rows, by iteration",
        "",
        "3 to 8 classes up to 800 rows and 3 to 20 above, half of the problems with default options,",
        "half with those of the first table. The truth is solved in float64 and refined by residuals in",
        "long double. Debias terms and floors are compared with those of W and K W in float64.",
        "",
        *limit,
        "",
    ]
    return "\n".join(text)


def main():
    global WORKERS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--blocks", action="store_true")
    parser.add_argument(
        "--limit",
        type=int,
        nargs=2,
        metavar="N",
        help="the last table only: N problems up to 800 rows, N above",
    )
    parser.add_argument("--workers", type=int, default=WORKERS)
    arguments = parser.parse_args()
    WORKERS = arguments.workers
    quick = arguments.quick
    warnings.simplefilter("ignore")
    if arguments.blocks:
        table(2000, SEED + 2, BLOCKS)
        return
    if arguments.limit:
        limit_table(arguments.limit, SEED + 3)
        return
    start = time.monotonic()
    count, defaults, large, limit = (
        (400, 100, 0, (40, 10)) if quick else (20_000, 3000, 8, (2000, 400))
    )
    parts = (
        table(count, SEED),
        default_table(defaults, SEED + 1),
        large_table(large),
        limit_table(limit, SEED + 3),
    )
    if not quick:
        OUT.write_text(page(parts, count, (time.monotonic() - start) / 60))


if __name__ == "__main__":
    main()
