"""Exact CKCE at the size of the paper's ImageNet table, and how far the approximations are from it.

    python studies/kjv_exact.py here_kjv_add_trigram.npz      50,000 x 1000, six to ten minutes

The file holds `probs` (n, m) and `labels` (n,). One bandwidth, the median heuristic unless given,
and one lambda, n^-1/4, for all.
"""

import argparse
import time
from pathlib import Path
from unittest import mock

import numpy as np

import ckce
from ckce import _core


def exact(y_true, y_prob, **options):
    """CKCE, and how many products with K it took."""
    solve, counts = _core.ckce_exact, []

    def spy(*arguments, **settings):
        solution = solve(*arguments, **settings)
        counts.append(solution.iterations)
        return solution

    with mock.patch.object(_core, "ckce_exact", spy):
        return ckce.ckce(y_true, y_prob, method="exact", **options), counts[-1]


def timed(call):
    start = time.perf_counter()
    value = call()
    return value, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file")
    parser.add_argument("--rows", type=int, help="only the first rows")
    parser.add_argument("--bandwidth", type=float)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--n-frequencies", type=int, default=100)
    parser.add_argument("--rank", type=int, default=500)
    parser.add_argument("--no-progress", action="store_true")
    arguments = parser.parse_args()

    with np.load(arguments.file, allow_pickle=False) as file:
        y_true, y_prob = file["labels"][: arguments.rows], file["probs"][: arguments.rows]
    n, m = y_prob.shape
    gamma = arguments.bandwidth or ckce.median_bandwidth(y_prob)
    ckce.show_config()
    print(
        f"\n{Path(arguments.file).name}: {n:,} x {m}, {y_prob.dtype}, bandwidth {gamma!r}\n",
        flush=True,
    )

    options = {"bandwidth": gamma, "progress": not arguments.no_progress}
    (true, products), seconds = timed(lambda: exact(y_true, y_prob, **options))
    print(f"\n{'method':36s} {'CKCE':>16s} {'rel. difference':>16s} {'time':>11s}")

    def row(name, value, seconds):
        difference = "" if value == true else f"{value / true - 1.0:+.2e}"
        print(f"{name:36s} {value:16.10f} {difference:>16s} {seconds:9.2f} s", flush=True)

    row(f"exact ({products} products with K)", true, seconds)
    waves, options = arguments.n_frequencies, {"bandwidth": gamma}
    for sampler in ("gaussian", "orthogonal", "sobol"):
        values, method = [], ckce.Fourier(waves, sampler=sampler)
        for seed in range(arguments.seeds):
            value, seconds = timed(
                lambda seed=seed, method=method: ckce.ckce(
                    y_true, y_prob, method=method, random_state=seed, **options
                )
            )
            values.append(value)
            row(f"fourier {sampler} D={waves} seed {seed}", value, seconds)
        error = np.sqrt(np.mean((np.array(values) / true - 1.0) ** 2))
        print(f"{f'  RMS over {len(values)} seeds':36s} {'':16s} {error:16.2e}")
    others = {
        f"cholesky {pivoting} rank {arguments.rank}": ckce.Cholesky(
            arguments.rank, pivoting=pivoting
        )
        for pivoting in ("greedy", "random")
    }
    if y_prob.dtype == np.float32:
        others[f"fourier gaussian D={waves} mixed"] = ckce.Fourier(waves, precision="mixed")
    for name, method in others.items():
        row(name, *timed(lambda m=method: ckce.ckce(y_true, y_prob, method=m, **options)))


if __name__ == "__main__":
    main()
