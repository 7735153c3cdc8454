"""Memory and time of a stream from a memory-mapped file, which must not depend on its length.

python benchmarks/streaming_memory.py              10^6 and 10^7 rows of 10 classes (400 MB on disk)
python benchmarks/streaming_memory.py 100000 200000 --classes 3
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import PeakMemory

import ckce


def write(folder, n, m):
    """Predictions and labels in two npy files, written in pieces."""
    rng = np.random.default_rng(0)
    probs = np.lib.format.open_memmap(folder / f"q{n}.npy", "w+", np.float32, (n, m))
    labels = np.lib.format.open_memmap(folder / f"y{n}.npy", "w+", np.int64, (n,))
    for begin in range(0, n, 100_000):
        rows = slice(begin, min(begin + 100_000, n))
        q = rng.standard_gamma(0.5, (rows.stop - begin, m)) + 1e-6
        probs[rows] = q / q.sum(axis=1, keepdims=True)
        labels[rows] = rng.integers(0, m, rows.stop - begin)
    probs.flush()
    labels.flush()


def stream(folder, n, batch):
    """Runs in a process of its own: prints peak RssAnon, seconds and the value."""
    probs = np.load(folder / f"q{n}.npy", mmap_mode="r")
    labels = np.load(folder / f"y{n}.npy", mmap_mode="r")
    acc = ckce.CKCEAccumulator(probs.shape[1], bandwidth=0.5, debias=True)
    with PeakMemory() as memory:
        start, cpu = time.perf_counter(), time.process_time()
        for begin in range(0, n, batch):
            acc.update(labels[begin : begin + batch], probs[begin : begin + batch])
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(json.dumps({"anonymous": memory.anonymous, "seconds": seconds, "cpu": cpu}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", type=int, default=[10**6, 10**7])
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch", type=int, default=2**16)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.folder is not None:
        stream(arguments.folder, arguments.rows[0], arguments.batch)
        return
    print("| rows | peak RssAnon above the start (MB) | seconds | CPU microseconds per row |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for n in arguments.rows:
            write(Path(name), n, arguments.classes)
            command = [sys.executable, __file__, str(n), "--batch", str(arguments.batch)]
            run = subprocess.run([*command, "--folder", name], capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(run.stderr)
            answer = json.loads(run.stdout)
            print(
                f"| {n} | {answer['anonymous'] / 1e6:.1f} | {answer['seconds']:.1f} "
                f"| {1e6 * answer['cpu'] / n:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
