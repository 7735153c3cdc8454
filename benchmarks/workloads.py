"""What is measured: the workloads of the table of targets, and who computes each of them.

Bandwidth and frequencies are given to every contender, so all of them do the same work on the same
numbers (float32 values; `mixed` takes them as float32, everybody else as float64).
"""

import argparse
import contextlib
import importlib.util
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import numpy_fast
import numpy_plain
import torch_fast
from measure import Contender
from simulate import Inputs

import ckce
from ckce import _core, reference

OURS, ONE, MIXED, MIXED_ONE = "ckce", "ckce, 1 thread", "ckce mixed", "ckce mixed, 1 thread"
PLAIN, FAST, LITERAL = "NumPy", "NumPy, our identities", "literal formula"
TORCH, LESSER = "PyTorch", "ckce, v3"
CHOLESKY, CHOLESKY_ONE = "ckce cholesky", "ckce cholesky, 1 thread"
CHOLESKY_40, FIRST_CHOLESKY, FIRST_EXACT = "cholesky, rank 40", "cholesky, part", "exact, part"
ESTIMATE, PART, PLAIN_PART = "ckce.estimate", "ckce, part", "NumPy exact, part"
SMALLER, PRODUCT, PRODUCT_SMALLER = "ckce, n / 5", "one product", "one product, n / 5"

HAS_TORCH = importlib.util.find_spec("torch") is not None


@dataclass(frozen=True)
class Workload:
    """`build(inputs, only)` lists the contenders; `only` spares what the others would need."""

    title: str
    n: int
    quick_n: int
    m: int
    build: Callable[[Inputs, str | None], list[Contender]]
    #: Whose extra memory is measured.
    memory: tuple[str, ...]
    quick_m: int | None = None

    def size(self, quick):
        return (self.quick_n, self.quick_m or self.m) if quick else (self.n, self.m)

    def contenders(self, quick, only=None):
        return self.build(Inputs(*self.size(quick)), only)


def need_memory(needed):
    """Refuse what would not fit, before the system ends the process."""
    with contextlib.suppress(OSError):
        found = re.search(r"MemAvailable:\s*(\d+)", Path("/proc/meminfo").read_text())
        if found and 1024.0 * int(found[1]) < needed:
            raise MemoryError(f"needs about {needed / 1e9:.0f} GB")


def warm_up(torch=True):
    """Load every library and start every pool before something is measured."""
    inputs = Inputs(64, 3)
    for contender in fourier(inputs) + exact(inputs) + jkce(inputs):
        if contender.name == TORCH and not torch:
            continue
        with contextlib.suppress(Exception):  # told when it is measured
            contender.call()


def pytorch(call, **options):
    """The contender, where PyTorch is installed."""
    return [Contender(TORCH, call, **options)] if HAS_TORCH else []


def fourier(inputs, only=None):
    y, w = inputs.y_true, inputs.frequencies
    contenders = []
    if only in (None, MIXED, MIXED_ONE):
        single = inputs.y32
        options = {"method": ckce.Fourier(frequencies=w, precision="mixed")}
        contenders += [
            Contender(MIXED, lambda: ckce.ckce(y, single, **options)),
            Contender(MIXED_ONE, lambda: ckce.ckce(y, single, n_threads=1, **options), rounds=3),
        ]
    if only in (MIXED, MIXED_ONE):
        return contenders
    q = inputs.y64
    options64 = {"method": ckce.Fourier(frequencies=w)}

    def literal():
        need_memory(6 * 8.0 * inputs.n * (inputs.m + 2 * len(w)))
        return reference.ckce_fourier(y, q, frequencies=w)

    contenders += [
        Contender(OURS, lambda: ckce.ckce(y, q, **options64)),
        Contender(PLAIN, lambda: numpy_plain.ckce_fourier(y, q, w)),
        Contender(FAST, lambda: numpy_fast.ckce_fourier(y, q, w)),
        Contender(ONE, lambda: ckce.ckce(y, q, n_threads=1, **options64), rounds=3),
        Contender(LITERAL, literal, rounds=1),
    ]
    return contenders + pytorch(lambda: torch_fast.ckce_fourier(y, q, w))


def cholesky(inputs, only=None):
    """Beside the call that counts: rank 40, and exact on the first rows, for its error."""
    y, q, gamma = inputs.y_true, inputs.y64, inputs.bandwidth
    part = min(20_000, inputs.n)
    options = {"bandwidth": gamma}

    def ours(method="cholesky", **more):
        return ckce.ckce(y, q, method=method, **options, **more)

    contenders = [
        Contender(CHOLESKY, ours),
        Contender(CHOLESKY_ONE, lambda: ours(n_threads=1), rounds=3),
    ]
    if only is None:
        w = inputs.frequencies
        first, first_y = q[:part], y[:part]
        contenders += [
            Contender(PLAIN, lambda: numpy_plain.ckce_fourier(y, q, w)),
            *pytorch(lambda: torch_fast.ckce_fourier(y, q, w)),
            # Down to round-off: the default tolerance would stop earlier.
            Contender(CHOLESKY_40, lambda: ours(ckce.Cholesky(40, tol=1e-15)), rounds=1),
            Contender(
                FIRST_CHOLESKY,
                lambda: ckce.ckce(first_y, first, method="cholesky", **options),
                rounds=1,
            ),
            Contender(
                FIRST_EXACT,
                lambda: ckce.ckce(first_y, first, method="exact", **options),
                rounds=1,
            ),
        ]
    return contenders


def exact(inputs, only=None):
    y, q, gamma = inputs.y_true, inputs.y64, inputs.bandwidth
    return [
        Contender(OURS, lambda: ckce.ckce(y, q, method="exact", bandwidth=gamma)),
        Contender(PLAIN, lambda: numpy_plain.ckce_exact(y, q, gamma)),
        Contender(FAST, lambda: numpy_fast.ckce_exact(y, q, gamma)),
        Contender(ONE, lambda: ckce.ckce(y, q, method="exact", bandwidth=gamma, n_threads=1)),
        Contender(LITERAL, lambda: reference.ckce(y, q, bandwidth=gamma), rounds=1),
        *pytorch(lambda: torch_fast.ckce_exact(y, q, gamma)),
    ]


def jkce(inputs, only=None):
    y, q, gamma = inputs.y_true, inputs.y64, inputs.bandwidth
    return [
        Contender(OURS, lambda: ckce.jkce(y, q, bandwidth=gamma)),
        Contender(PLAIN, lambda: numpy_plain.jkce_exact(y, q, gamma)),
        Contender(FAST, lambda: numpy_fast.jkce_exact(y, q, gamma)),
        Contender(ONE, lambda: ckce.jkce(y, q, bandwidth=gamma, n_threads=1), rounds=3),
        *pytorch(lambda: torch_fast.jkce_exact(y, q, gamma)),
    ]


class Counted:
    """An exact CKCE that remembers how many products with K it took."""

    def __init__(self, y_true, y_prob, **options):
        self.arguments, self.options, self.iterations = (y_true, y_prob), options, 0

    def __call__(self):
        solve = _core.ckce_exact

        def spy(*arguments, **options):
            solution = solve(*arguments, **options)
            self.iterations = solution.iterations
            return solution

        with mock.patch.object(_core, "ckce_exact", spy):
            return ckce.ckce(*self.arguments, method="exact", **self.options)


def large(inputs, only=None):
    """Exact CKCE at n and at n / 5, and one product with K (that is what exact JKCE is) at both."""
    y, q, few = inputs.y_true, inputs.y64, inputs.n // 5
    options = {"bandwidth": inputs.bandwidth}
    return [
        Contender(SMALLER, Counted(y[:few], q[:few], **options), rounds=3),
        Contender(OURS, Counted(y, q, **options), rounds=2),
        Contender(ONE, Counted(y, q, n_threads=1, **options), rounds=1),
        Contender(PRODUCT_SMALLER, lambda: ckce.jkce(y[:few], q[:few], **options), rounds=3),
        Contender(PRODUCT, lambda: ckce.jkce(y, q, **options), rounds=3),
    ]


def two_classes(inputs, y, q, gamma, only):
    """Beside value and estimate: the factor that auto took before, and NumPy on the first rows."""
    part = min(5_000, len(y))
    options = {"bandwidth": gamma}
    contenders = [
        Contender(OURS, lambda: ckce.ckce(y, q, **options)),
        Contender(ONE, lambda: ckce.ckce(y, q, n_threads=1, **options), rounds=3),
        Contender(ESTIMATE, lambda: ckce.estimate(y, q, **options).value),
        Contender(
            CHOLESKY, lambda: ckce.ckce(y, q, method=ckce.Cholesky(500), **options), rounds=2
        ),
    ]
    if only is None:
        contenders += [
            Contender(PART, lambda: ckce.ckce(y[:part], q[:part], **options)),
            Contender(
                PLAIN_PART, lambda: numpy_plain.ckce_exact(y[:part], q[:part], gamma), rounds=1
            ),
            *pytorch(lambda: torch_fast.ckce_fourier(y, q, inputs.frequencies), rounds=2),
        ]
    return contenders


def line(inputs, only=None):
    p = inputs.y32[:, 1].astype(np.float64)  # rows of float32 miss the simplex
    return two_classes(inputs, inputs.y_true, np.stack([1 - p, p], 1), 0.5, only)


def skewed(inputs, only=None):
    """Rare positives, whose predictions span thousands of median distances."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.05, 6.2, inputs.n)
    y, q = (rng.random(inputs.n) < p).astype(np.int64), np.stack([1 - p, p], 1)
    return two_classes(inputs, y, q, ckce.median_bandwidth(q), only)


TOP = 20


def top_k(inputs, only=None):
    """From float32 arrays; NumPy selects by argpartition, sorts what is left, and goes on as ever."""
    y, q = inputs.y_true, inputs.y32
    w = ckce.fourier_frequencies(TOP + 1, 100, bandwidth=0.5)
    options = {"reduction": ckce.TopK(TOP)}
    double, mixed = (
        ckce.Fourier(frequencies=w, precision=precision) for precision in ("float64", "mixed")
    )
    return [
        Contender(OURS, lambda: ckce.ckce(y, q, method=double, **options)),
        Contender(MIXED, lambda: ckce.ckce(y, q, method=mixed, **options)),
        Contender(
            PLAIN, lambda: numpy_plain.ckce_fourier(*numpy_plain.top_k(y, q, TOP), w), rounds=2
        ),
        Contender(
            FAST, lambda: numpy_fast.ckce_fourier(*numpy_plain.top_k(y, q, TOP), w), rounds=2
        ),
        Contender(ONE, lambda: ckce.ckce(y, q, method=double, n_threads=1, **options), rounds=2),
        *pytorch(lambda: torch_fast.ckce_fourier(*torch_fast.top_k(y, q, TOP), w), rounds=2),
    ]


_FOURIER_MEMORY = (OURS, MIXED, PLAIN)

WORKLOADS = {
    "fourier_wide": Workload(
        "fourier n=50,000 m=1000 D=100", 50_000, 2_000, 1000, fourier, _FOURIER_MEMORY, 200
    ),
    "fourier_small": Workload(
        "fourier n=10,000 m=10 D=100", 10_000, 2_000, 10, fourier, _FOURIER_MEMORY
    ),
    "fourier_long": Workload(
        "fourier n=1,000,000 m=2 D=100", 1_000_000, 20_000, 2, fourier, _FOURIER_MEMORY
    ),
    "cholesky": Workload("cholesky n=1,000,000 m=2", 1_000_000, 20_000, 2, cholesky, (CHOLESKY,)),
    "line": Workload("two classes n=1,000,000 m=2", 1_000_000, 20_000, 2, line, (OURS, ESTIMATE)),
    "skewed": Workload(
        "two classes, skewed n=100,000 m=2", 100_000, 5_000, 2, skewed, (OURS, ESTIMATE)
    ),
    "top_k": Workload(
        "top 20 n=1,000,000 m=1000",
        1_000_000,
        5_000,
        1000,
        top_k,
        (OURS, MIXED),
        200,
    ),
    "exact": Workload("exact n=5,000 m=10", 5_000, 2_500, 10, exact, (OURS, PLAIN)),
    "jkce": Workload("exact JKCE n=20,000 m=10", 20_000, 2_500, 10, jkce, (OURS, PLAIN)),
    "large": Workload("exact n=50,000 m=10", 50_000, 12_500, 10, large, (OURS,)),
}


def named_contender(description):
    """The contender that the command line names: workload, contender, --quick."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("workload", choices=list(WORKLOADS))
    parser.add_argument("contender")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    contenders = WORKLOADS[arguments.workload].contenders(arguments.quick, arguments.contender)
    (contender,) = [each for each in contenders if each.name == arguments.contender]
    return contender


def fourier_flops(n, m, n_waves=100):
    """Products that no version can avoid: half of Phi'Phi, and the projections."""
    d = m + 2 * n_waves
    return n * d * (d + 1.0) + 2.0 * n * m * n_waves


def syrk_rate(dtype, rows=8192, d=1200, repeats=5):
    """GFLOP/s of the symmetric rank update of SciPy's BLAS, best of several: the roof of the run."""
    from scipy.linalg import blas

    update = blas.dsyrk if dtype == "float64" else blas.ssyrk
    phi = np.random.default_rng(0).standard_normal((rows, d)).astype(dtype)
    gram = np.zeros((d, d), dtype, order="F")
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        update(1.0, phi.T, beta=1.0, c=gram, overwrite_c=True)
        best = min(best, time.perf_counter() - start)
    return rows * d * (d + 1.0) / best / 1e9
