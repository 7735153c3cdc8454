"""Top-label ECE of 1e6 rows against torchmetrics and netcal, in one run.

Run it alone on the machine: python benchmarks/bench_ece.py [rows]
"""

import sys
import time
import warnings

import numpy as np

import ckce


def best(function, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        value = function()
        times.append(time.perf_counter() - start)
    return min(times), float(value)


def compare(y, p):
    import torch
    from netcal.metrics import ECE
    from torchmetrics.functional.classification import multiclass_calibration_error

    m = p.shape[1]
    tensors = torch.from_numpy(p), torch.from_numpy(y)
    runs = {
        "ckce": best(lambda: ckce.ece(y, p), 9),
        "torchmetrics": best(lambda: multiclass_calibration_error(*tensors, m, n_bins=15), 5),
    }
    if m > 2:  # of two classes netcal takes the second, not the larger
        runs["netcal"] = best(lambda: ECE(15).measure(p, y), 3)
    ours, value = runs.pop("ckce")
    # torchmetrics adds up in float32: 1e6 ones and more leave it few digits.
    assert abs(value - runs["torchmetrics"][1]) < 1e-2 * value
    assert m == 2 or abs(value - runs["netcal"][1]) < 1e-9
    fastest = min(seconds for seconds, _ in runs.values())
    peers = ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, (seconds, _) in runs.items())
    print(
        f"{len(p):>8} x {m:<3} {p.dtype}: ckce {1e3 * ours:.1f} ms, {peers}; "
        f"{fastest / ours:.1f} times as fast"
    )


def main():
    warnings.simplefilter("ignore")
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rng = np.random.default_rng(0)
    for m in (2, 10, 100):
        q = rng.random((rows if m < 100 else rows // 10, m)) ** 4
        q /= q.sum(axis=1, keepdims=True)
        y = rng.integers(0, m, len(q))
        for dtype in (np.float64, np.float32):
            compare(y, q.astype(dtype))


if __name__ == "__main__":
    main()
