"""Measure everything and write RESULTS.md and plots/.

python benchmarks/run.py                      about 15 minutes, on an idle machine
python benchmarks/run.py --quick              a smoke test, written to a temporary folder
python benchmarks/run.py --data file.npz      the plot of errors on a real set (probs, labels)
python benchmarks/run.py --compare OLD        also an older installation (pip install --target OLD) against
                                              this one, at v4, v3 and v2; --only: nothing else
python benchmarks/run.py --install OLD        also the CPU time of pip install, OLD a checkout
"""

import argparse
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path

import bench_gradient
import install
import numpy as np
import plots
import workloads
from compare import compare
from level import Level
from machine import describe, import_milliseconds, levels, small_calls
from measure import Contender, interleave, memory
from report import Results, render
from simulate import simulate

HERE = Path(__file__).parent


def measure(results, key, quick):
    """Time and memory of one workload."""
    workload = workloads.WORKLOADS[key]
    print(f"{workload.title if not quick else key} ...", flush=True)
    contenders = workload.contenders(quick)
    lesser = Level("v3", key, workload.memory[0], quick) if "v3" in levels() else None
    if lesser:
        contenders.append(Contender(workloads.LESSER, lesser, rounds=2))
    timings = interleave(contenders, 2 if quick else 5, 0.02 if quick else 0.2)
    results.timings[key] = timings
    if lesser:
        lesser.close()
    for contender in contenders:
        if isinstance(contender.call, workloads.Counted):
            results.iterations[contender.name] = contender.call.iterations
    del contenders
    results.memory[key] = {
        name: found for name in workload.memory if (found := memory(key, name, quick)) is not None
    }
    for name, timing in timings.items():
        print(f"    {name:28s} {timing.best:10.4f} s", flush=True)


def measure_peaks(results, quick):
    """The best rank update seen so far; measured again between workloads."""
    for precision in ("float64", "float32"):
        peak = workloads.syrk_rate(precision, 1024 if quick else 8192)
        results.peaks[precision] = max(peak, results.peaks.get(precision, 0.0))


def load(path, quick):
    """(name, labels, probabilities) of the set for the plot of errors."""
    if path is not None:
        with np.load(path, allow_pickle=False) as file:
            return f"`{Path(path).stem}`", file["labels"], file["probs"]
    n = 2_500 if quick else 10_000
    return f"a simulated network, {n:,} x 10 (`simulate.py`)", *simulate(n, 10, margin=8.0)


def without_blas_options():
    """Start again without OPENBLAS_CORETYPE and its like, which may take NumPy's fast products away."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    if len(kept) < len(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], kept)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--data", metavar="FILE", help="npz file for the plot of errors")
    parser.add_argument("--compare", metavar="OLD", help="folder of an older installation")
    parser.add_argument(
        "--wide", action="store_true", help="also exact 50,000 x 1000 against OLD, ten minutes"
    )
    parser.add_argument("--install", metavar="OLD", help="folder of an older checkout")
    parser.add_argument("--output", metavar="DIR", type=Path, help="where to write")
    parser.add_argument(
        "--only", nargs="*", choices=list(workloads.WORKLOADS), help="some workloads, no plots"
    )
    arguments = parser.parse_args()
    without_blas_options()
    quick = arguments.quick
    partial = arguments.only is not None
    temporary = Path(tempfile.gettempdir()) / "ckce_benchmarks"
    output = arguments.output or (temporary if quick or partial else HERE)
    (output / "plots").mkdir(parents=True, exist_ok=True)

    start = time.perf_counter()
    results = Results(quick)
    results.machine = describe()
    name, y_true, y_prob = ("", None, None) if partial else load(arguments.data, quick)
    words = [Path(word).name if Path(word).exists() else word for word in sys.argv[1:]]
    command = shlex.join(["python", "benchmarks/run.py", *words])

    def write():
        elapsed = time.perf_counter() - start
        (output / "RESULTS.md").write_text(render(results, command, elapsed, name))

    with tempfile.TemporaryDirectory() as cache:
        os.environ["CKCE_BENCH_CACHE"] = cache
        workloads.warm_up()
        for key in arguments.only if partial else workloads.WORKLOADS:
            measure_peaks(results, quick)
            measure(results, key, quick)
            write()
    if arguments.compare:
        results.compared = compare(arguments.compare, 3 if quick else 7, arguments.wide)
        write()
    if arguments.install:
        print("installation ...", flush=True)
        results.installation = install.section(arguments.install)
        write()
    if not partial:
        print("small calls ...", flush=True)
        results.small = small_calls(3, 50) if quick else small_calls()
        results.imports = import_milliseconds(3 if quick else 9)
        print("gradients ...", flush=True)
        results.gradients = bench_gradient.section(quick)
        write()
        print("plots ...", flush=True)
        plots.error_time(output / "plots" / "error_time.png", y_true, y_prob, name, quick)
        plots.time_n(output / "plots" / "time_n.png", quick)
    write()
    print(f"{output / 'RESULTS.md'} in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
