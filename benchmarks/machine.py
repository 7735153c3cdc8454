"""The machine and the versions, and what a small call and the import cost."""

import contextlib
import importlib.metadata
import io
import os
import platform
import re
import subprocess
import sys
import timeit
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

import ckce


def _cpu():
    with contextlib.suppress(OSError):
        info = Path("/proc/cpuinfo").read_text()
        name = re.search(r"model name\s*:\s*(.+)", info)
        family = re.search(r"cpu family\s*:\s*(.+)", info)  # virtual machines hide the model
        flags = re.search(r"flags\s*:\s*(.+)", info)
        widest = next(
            (w for w in ("avx512f", "avx2", "sse4_2") if flags and w in flags[1].split()), "?"
        )
        if name:
            return f"{name[1]}, family {family[1] if family else '?'} ({widest})"
    return platform.processor() or platform.machine()


def _config():
    with contextlib.redirect_stdout(io.StringIO()) as text:
        ckce.show_config()
    return dict(line.split(maxsplit=1) for line in text.getvalue().splitlines() if line.strip())


def _version(package):
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None


def levels():
    """Instruction sets that are built here."""
    return re.findall(r"v\d", _config().get("core", "").partition(" of ")[2])


def describe():
    """Rows (what, value) of the table of the machine."""
    config = _config()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    blas = sorted(
        {
            f"{pool['internal_api']} {pool['version']} ({pool.get('architecture')}, "
            f"{pool['num_threads']} threads)"
            for pool in threadpool_info()
            if pool["user_api"] == "blas"
        }
    )
    versions = {name: _version(name) for name in ("numpy", "scipy", "scikit-learn", "torch")}
    load = f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "?"
    return [
        ("CPU", _cpu()),
        ("cores", str(cores)),
        ("load average before the run", f"{load} (BLAS suffers most from a busy machine)"),
        ("ckce", f"{config.get('ckce')}, core {config.get('core', '?').split()[0]}"),
        ("ckce threads", config.get("threads", "?").split()[0]),
        ("BLAS of NumPy and SciPy", "; ".join(blas)),
        ("versions", ", ".join(f"{k} {v or 'not installed'}" for k, v in versions.items())),
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.release()}"),
    ]


def small_calls(repeats=15, number=200):
    """Seconds of one call with n = 100, m = 3, interleaved, best: {name: seconds}."""
    from simulate import simulate
    from sklearn.metrics import log_loss

    y_true, y_prob = simulate(100, 3)
    y_prob = y_prob.astype(np.float64)
    y_prob /= y_prob.sum(axis=1, keepdims=True)
    calls = {
        "ckce.ckce(y, q)": lambda: ckce.ckce(y_true, y_prob),
        "ckce.ckce(y, q), 1 thread": lambda: ckce.ckce(y_true, y_prob, n_threads=1),
        "ckce.jkce(y, q)": lambda: ckce.jkce(y_true, y_prob),
        "sklearn.metrics.log_loss(y, q)": lambda: log_loss(y_true, y_prob),
    }
    best = dict.fromkeys(calls, np.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            best[name] = min(best[name], timeit.timeit(call, number=number) / number)
    return best


def import_milliseconds(repeats=9):
    """(import numpy, ckce.ckce after it), the best of fresh processes, from compiled files."""
    code = (
        "from time import perf_counter as now; a = now(); import numpy; b = now(); import ckce; "
        "ckce.ckce; print(1e3 * (b - a), 1e3 * (now() - b))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    runs = [
        [
            float(word)
            for word in subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                check=True,
                env=environment,
            ).stdout.split()
        ]
        for _ in range(repeats)
    ]
    return min(run[0] for run in runs), min(run[1] for run in runs)
