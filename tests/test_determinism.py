"""The same bits for any number of threads, any layout, and from run to run."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shared import NEW_CORE, label_kernel, sample

import ckce
from ckce import _core

N, M = 2300, 5
Y, Q = sample(N, M)
Q = Q.astype(np.float32).astype(np.float64)  # so that a float32 copy holds the same numbers
WEIGHTS = np.random.default_rng(1).uniform(0.2, 3, N)

POINTS = ckce.Landmarks(Q[:40])
LANDMARKS = {
    "landmarks": (ckce.estimate, {"method": POINTS, "bandwidth": 0.4}),
    "landmarks, chosen": (ckce.estimate, {"method": ckce.Landmarks(40)}),
    "jkce, landmarks": (ckce.jkce_estimate, {"method": POINTS, "kernel": "laplace"}),
    "test, landmarks": (ckce.calibration_test, {"method": POINTS, "n_resamples": 20}),
}
# name: (function, options); every threaded path of the core is in one of them.
ESTIMATORS = {
    "exact, factorisation": (ckce.estimate, {}),
    "exact, iteration": (ckce.estimate, {"method": "exact", "bandwidth": 0.4}),
    "exact, laplace": (ckce.ckce, {"method": "exact", "kernel": "laplace"}),
    "exact, linear": (ckce.estimate, {"method": "exact", "kernel": "linear"}),
    "exact, weights": (ckce.ckce, {"method": "exact", "sample_weight": WEIGHTS, "bandwidth": 1}),
    "fourier": (ckce.estimate, {"method": "fourier"}),
    "fourier, mixed": (ckce.ckce, {"method": ckce.Fourier(precision="mixed")}),
    "fourier, classes": (ckce.ckce, {"method": "fourier", "reduction": "class_wise"}),
    "fourier, top 2": (ckce.estimate, {"method": "fourier", "reduction": ckce.TopK(2)}),
    "cholesky, greedy": (ckce.estimate, {"method": ckce.Cholesky(rank=60)}),
    "cholesky, random": (
        ckce.estimate,
        {"method": ckce.Cholesky(200, pivoting="random"), "label_kernel": label_kernel(M)},
    ),
    "gradient, exact": (ckce.gradient, {"method": "exact", "debias": False, "bandwidth": 0.4}),
    "gradient, detached": (ckce.gradient, {"detach_kernel": True, "sample_weight": WEIGHTS}),
    "gradient, fourier": (ckce.gradient, {"method": "fourier", "label_kernel": label_kernel(M)}),
    "jkce, exact": (ckce.jkce_estimate, {"method": "exact"}),
    "jkce, fourier": (ckce.jkce_estimate, {"method": "fourier"}),
    "jkce, cholesky": (ckce.jkce_estimate, {"method": ckce.Cholesky(rank=60)}),
    **(LANDMARKS if NEW_CORE else {}),
    "jkce, blocks": (ckce.jkce_estimate, {"method": "blocks"}),
    "ece, simplex": (ckce.ece_estimate, {"variant": "simplex"}),
    "ece, top label": (ckce.ece_estimate, {"variant": "top_label"}),
    "ece, quantiles": (ckce.ece_estimate, {"variant": "class_wise", "strategy": "quantile"}),
    "smooth ece": (ckce.smooth_ece, {}),
    "brier": (ckce.brier_decomposition, {"sample_weight": WEIGHTS}),
    "log loss": (ckce.log_loss, {}),
}


def digest(result):
    """Hash of every number of a result."""
    sha = hashlib.sha256()
    numbers = vars(result) if hasattr(result, "__dict__") else {"value": result}
    if isinstance(result, tuple):  # a value and its gradient
        numbers = dict(zip("ab", result, strict=True))
    for name, value in sorted(numbers.items()):
        if isinstance(value, (float, int, np.ndarray)):
            sha.update(name.encode() + np.asarray(value).tobytes())
    return sha.hexdigest()


def evaluate(name, y=Y, q=Q, **options):
    if name == "exact, factorisation":  # which is for few rows
        return ckce.estimate(y[:700], q[:700], method="exact", **options)
    function, own = ESTIMATORS[name]
    return function(y, q, **own, **options)


def run(name, y=Y, q=Q, **options):
    return digest(evaluate(name, y, q, **options))


def layouts():
    wide = np.zeros((2 * N, 3 * M))
    wide[::2, ::3] = Q
    return {
        "fortran": (Y, np.asfortranarray(Q)),
        "strided": (np.repeat(Y, 3)[::3], wide[::2, ::3]),
        "reversed": (Y[::-1].copy()[::-1], Q[::-1, ::-1].copy()[::-1, ::-1]),
        "float32": (Y.astype(np.int32), Q.astype(np.float32)),
    }


LAYOUTS = layouts()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_threads_and_layouts(name):
    expected = run(name, n_threads=1)
    for n_threads in range(2, 9):
        assert run(name, n_threads=n_threads) == expected, n_threads
    for layout, data in LAYOUTS.items():
        assert run(name, *data, n_threads=2) == expected, layout


def test_the_matrix_is_large():
    assert len(ESTIMATORS) * (8 + len(LAYOUTS)) >= 60


TESTS = Path(__file__).parent
SCRIPT = """
import json, sys
sys.path[:0] = sys.argv[1:]
import test_determinism as t
results = {name: t.evaluate(name) for name in t.ESTIMATORS}
digests = {name: t.digest(result) for name, result in results.items()}
first = {name: result[0] if isinstance(result, tuple) else result for name, result in results.items()}
values = {name: float(result) for name, result in first.items() if name != "brier"}
print(json.dumps([digests, values]))
"""


def in_a_new_process(**environment):
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, (TESTS, TESTS / "support"))],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return json.loads(process.stdout)


def built_levels():
    names = [
        path.name.split(".")[0] for path in Path(_core._module.__file__).parent.glob("_core_*")
    ]
    levels = sorted(name.removeprefix("_core_") for name in names if "_core_v" in name)
    return [level for level in levels if level <= _core.LEVEL]


def test_run_to_run():
    digests, _ = in_a_new_process(PYTHONHASHSEED="1")
    assert digests == {name: run(name) for name in ESTIMATORS}


@pytest.mark.skipif(len(built_levels()) < 2, reason="built for one instruction set")
def test_instruction_sets_agree_to_rounding():
    """Not to the bit: sums are as wide as the registers, and v3 and v4 fuse multiply and add."""
    _, best = in_a_new_process()
    for level in built_levels()[:-1]:
        _, values = in_a_new_process(CKCE_LEVEL=level)
        for name, value in values.items():
            rel = 1e-5 if "mixed" in name else 1e-11
            assert value == pytest.approx(best[name], rel=rel, abs=1e-15), (level, name)
