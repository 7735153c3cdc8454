"""Study: is the memory that a call is refused for the memory that it takes?

    python studies/prices.py            prints the table of docs/reliability.md, ten minutes
    python studies/prices.py --quick    the small half of the grid

Each cell is a process of its own: data, a warm-up, then the peak of its resident memory during the
call (Linux). The price is what is compared with the available memory before the call; calls below
256 MB are not compared. It is an upper limit where a rank is found on the way (`cholesky` without a
rank, the debias term of `estimate` by iteration).
"""

import argparse
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np

#: (function, method, n, m)
CELLS = [
    ("ckce", "exact", 10, 30_000),
    ("ckce", "exact", 2000, 10),
    ("ckce", "exact", 2000, 3000),
    ("estimate", "exact", 2000, 10),
    ("estimate", "exact", 4000, 5000),
    ("ckce", "exact", 20_000, 100),
    ("estimate", "exact", 20_000, 100),
    ("ckce", "exact", 50_000, 10),
    ("estimate", "exact", 50_000, 10),
    ("ckce", "exact", 8000, 1000),
    ("estimate", "exact", 8000, 1000),
    ("estimate", "exact", 1_000_000, 2),
    ("ckce", "cholesky", 50, 30_000),
    ("ckce", "cholesky of rank 500", 100_000, 10),
    ("estimate", "cholesky of rank 500", 100_000, 10),
    ("ckce", "fourier", 1_000_000, 10),
    ("estimate", "fourier", 10_000, 3000),
    ("ckce", "fourier", 2000, 10_000),
    ("estimate", "landmarks", 100_000, 100),
    ("jkce", "exact", 2, 10_000),
    ("jkce", "exact", 50, 20_000),
    ("jkce", "exact", 10_000, 1000),
    ("jkce", "fourier", 100_000, 1000),
    ("evaluate", "exact", 50, 20_000),
    ("evaluate", "auto", 20_000, 100),
    ("evaluate", "auto", 3000, 1000),
    ("compare", "auto", 20_000, 100),
    ("compare", "auto", 3000, 1000),
    ("calibration_test", "auto", 20_000, 100),
    ("calibration_test", "auto", 2000, 1000),
    ("calibration_test", "fourier", 20_000, 300),
    ("ckce", "auto", 5000, 32_000),
    ("jkce", "blocks", 1_000_000, 10),
    ("ckce", "auto", 20_000, 8000),
    ("median_bandwidth", "", 5000, 30_000),
    ("label_kernel", "exact", 50, 4000),
    ("F of witness", "exact, bandwidth 1e-4", 200_000, 2),
    ("own() of witness", "exact", 2000, 8000),
    ("own() of witness", "exact, bandwidth 1e-4", 200_000, 2),
    ("to_frame() of witness", "auto", 5000, 1000),
    ("worst_regions()", "auto", 5000, 1000),
    ("correction(q), k = 50", "auto", 50, 8000),
    ("update, compute", "fourier", 2500, 2000),
    ("normalize=True", "", 2000, 5000),
]

#: Calls that are no function of their own, of rows and options.
CALLS = {
    "median_bandwidth": lambda ckce, y, q, **_: ckce.median_bandwidth(q),
    "label_kernel": lambda ckce, y, q, **how: ckce.ckce(
        y, q, label_kernel=LABELS[q.shape[1]], **how
    ),
    "F of witness": lambda ckce, y, q, **how: ckce.witness(y, q, **how)(q),
    "own() of witness": lambda ckce, y, q, **how: ckce.witness(y, q, **how).own(),
    "to_frame() of witness": lambda ckce, y, q, **how: ckce.witness(y, q, **how).to_frame(),
    "worst_regions()": lambda ckce, y, q, **how: ckce.witness(y, q, **how).worst_regions(),
    "correction(q), k = 50": lambda ckce, y, q, **how: ckce.witness(y, q, **how).correction(q[:50]),
    "update, compute": lambda ckce, y, q, **how: updated(ckce, y, q, **how).compute(),
    "normalize=True": lambda ckce, y, q, **_: ckce.accuracy(y, q, normalize=True),
}


#: Label kernels, made before memory is measured.
LABELS = {3: np.eye(3) + 1.0}


def updated(ckce, y, q, **how):
    accumulator = ckce.CKCEAccumulator(q.shape[1], **how)
    accumulator.update(y, q)
    return accumulator


def memory(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise OSError(f"no {field}")


class Largest:
    """Memory that always suffices, and remembers the largest price."""

    price = 0.0

    def __lt__(self, price):
        self.price = max(self.price, price)
        return False


def measure(function, method, n, m):
    """Prints price and peak of a cell."""
    import ckce
    from ckce._input import memory as prices

    rng = np.random.default_rng(0)
    q = rng.random((n, m))
    q /= q.sum(axis=1, keepdims=True)
    y = rng.integers(0, m, n)
    asked = ckce.Cholesky(rank=500, pivoting="random") if "rank" in method else method
    data = {"a": q, "b": q[::-1].copy()} if function == "compare" else q
    few = np.full((10, min(m, 3)), 1 / min(m, 3))
    bandwidth = 0.5
    if "bandwidth" in method:
        asked, bandwidth = method.split(", bandwidth ")
    whole = partial(CALLS[function], ckce) if function in CALLS else getattr(ckce, function)
    call = partial(whole, method=asked, bandwidth=float(bandwidth))
    call(np.arange(10) % few.shape[1], {"a": few, "b": few} if function == "compare" else few)
    if function == "label_kernel":
        LABELS[m] = np.eye(m) + 1.0
    asked_for = Largest()
    prices.SMALL, prices.available_memory = 0.0, lambda: asked_for
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    call(y, data)
    print(asked_for.price, memory("VmHWM") - before)


def table(cells):
    print("| call | method | n | m | price | measured | price / measured |")
    print("|---|---|---|---|---|---|---|")
    for function, method, n, m in cells:
        command = [sys.executable, __file__, "--cell", function, method, str(n), str(m)]
        run = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
        if run.returncode:
            print(run.stderr.strip().splitlines()[-1], file=sys.stderr)
            continue
        price, peak = map(float, run.stdout.split())
        print(
            f"| `{function}` | {method} | {n:,} | {m:,} | {price / 1e6:,.0f} MB "
            f"| {peak / 1e6:,.0f} MB | {price / peak:.2f} |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cell", nargs=4)
    options = parser.parse_args()
    if options.cell:
        function, method, n, m = options.cell
        return measure(function, method, int(n), int(m))
    small = [cell for cell in CELLS if cell[2] * cell[3] <= 2_000_000]
    return table(small if options.quick else CELLS)


if __name__ == "__main__":
    main()
