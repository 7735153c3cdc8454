"""Two installations of ckce against each other, in turns, at every instruction set that both have.

python benchmarks/run.py --compare OLD        OLD is a folder: pip install --target OLD .

Each side is a process of its own that lives for the whole run. CPU seconds of one thread (of all
threads where a call takes minutes), the best of many: a busy machine disturbs them least. A side that
is slower by 5 % is named.
"""

import functools
import os
import subprocess
import sys
import time
from pathlib import Path

SLOWER = 1.05
LONG, LONG_ROUNDS = 2.0, 2  # calls of so many seconds take few rounds
ENDLESS = 60.0  # one round, and at the best level only
LEVELS = ("v4", "v3", "v2")
WIDE = "exact 50,000 x 1000"


@functools.cache
def wide_rows():
    from simulate import simulate

    return simulate(50_000, 1000)


def workloads():
    """Name -> call, by the public interface alone."""
    import numpy as np

    import ckce

    def drawn(n, m):
        rng = np.random.default_rng(n + m)
        q = rng.dirichlet(np.full(m, 0.5), n)
        return (q.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1), q

    one = {"n_threads": 1}
    small, short, middle, long = (
        drawn(100, 3),
        drawn(2_000, 10),
        drawn(5_000, 10),
        drawn(10_000, 10),
    )
    twice, wide, many = drawn(20_000, 10), drawn(2_500, 1000), drawn(5_000, 100)
    return {
        "exact 5,000 x 10": lambda: ckce.ckce(*middle, method="exact", **one),
        "exact 5,000 x 10, laplace": lambda: ckce.ckce(
            *middle, method="exact", kernel="laplace", **one
        ),
        "exact 5,000 x 100": lambda: ckce.ckce(*many, method="exact", **one),
        "exact 2,000 x 10": lambda: ckce.ckce(*short, method="exact", **one),
        "exact JKCE 20,000 x 10": lambda: ckce.jkce(*twice, method="exact", **one),
        "fourier 10,000 x 10": lambda: ckce.ckce(*long, method="fourier", **one),
        "fourier 10,000 x 10, bandwidth given": lambda: ckce.ckce(
            *long, method="fourier", bandwidth=0.5, **one
        ),
        "median bandwidth 10,000 x 10": lambda: ckce.median_bandwidth(long[1], **one),
        "median bandwidth 2,500 x 1000": lambda: ckce.median_bandwidth(wide[1], **one),
        "estimate 2,000 x 10, exact": lambda: ckce.estimate(*short, method="exact", **one).value,
        "estimate 5,000 x 10, exact": lambda: ckce.estimate(*middle, method="exact", **one).value,
        "estimate 5,000 x 100, exact": lambda: ckce.estimate(*many, method="exact", **one).value,
        "estimate 10,000 x 10, fourier": lambda: (
            ckce.estimate(*long, method="fourier", **one).value
        ),
        "ckce 100 x 3": lambda: ckce.ckce(*small, **one),
        WIDE: lambda: ckce.ckce(*wide_rows(), method="exact"),
    }


def serve():
    """Answer each name on the standard input with CPU seconds of a call, and its value."""
    import warnings

    import ckce

    warnings.simplefilter("ignore")
    calls = workloads()
    calls["ckce 100 x 3"]()  # loads the core, or fails: the level does not exist here
    print(Path(ckce.__file__).resolve().parents[1], *calls, sep="\t", flush=True)
    for line in sys.stdin:
        name, number = line.rstrip("\n"), 0
        if name == WIDE:
            wide_rows()  # before the clock starts
        start = time.process_time()
        while True:
            value = calls[name]()
            number += 1
            elapsed = time.process_time() - start
            if elapsed >= 0.05:
                break
        print(elapsed / number, float(value).hex(), flush=True)


class Side:
    """One installation at one level."""

    def __init__(self, folder, level):
        environment = {**os.environ, "PYTHONPATH": str(folder), "CKCE_LEVEL": level}
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        loaded, *self.names = self.process.stdout.readline().rstrip("\n").split("\t")
        if self.names and Path(loaded) != folder:
            sys.exit(f"{folder} was not loaded, but {loaded}: an editable installation comes first")

    def ask(self, name):
        print(name, file=self.process.stdin, flush=True)
        seconds, value = self.process.stdout.readline().split()
        return float(seconds), value

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(old, rounds=7, wide=False):
    """Rows (level, workload, seconds of the old one, of this one, the same bits)."""
    import ckce

    this = Path(ckce.__file__).resolve().parents[1]
    rows = []
    for level in LEVELS:
        sides = [Side(Path(old).resolve(), level), Side(this, level)]
        names = [name for name in sides[0].names if name in sides[1].names]
        for name in names:
            if name == WIDE and not (wide and level == LEVELS[0]):
                continue
            best, values = [float("inf")] * 2, ["", ""]
            for number in range(rounds):
                slowest = max(best)
                if number and (slowest > ENDLESS or (slowest > LONG and number >= LONG_ROUNDS)):
                    break
                for i, side in enumerate(sides):
                    seconds, values[i] = side.ask(name)
                    best[i] = min(best[i], seconds)
            rows.append((level, name, *best, values[0] == values[1]))
            print(f"    {level} {name:38s} {best[0]:10.5f} -> {best[1]:10.5f} s", flush=True)
        for side in sides:
            side.close()
    return rows


def verdict(old, new):
    if new > SLOWER * old:
        return "**slower**"
    return "faster" if old > SLOWER * new else "as fast"


if __name__ == "__main__":
    serve()
