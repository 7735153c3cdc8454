"""method="exact": the factorisation, the iteration and what they promise."""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from bounded import iterate as solve_both
from bounded import problem
from shared import EDGES, agree, label_kernel, sample

import ckce
from ckce import _core, reference
from ckce._input.kernels import KERNELS
from ckce._results import standard_error

OWN_PART = [name for name in KERNELS if name != "linear"]  # linear is neither: it has features


def solve(y, q, *, iterate, kernel="linear_gaussian", bandwidth=0.7, tol=1e-10, full=False, **more):
    weights, factor, n_threads = (more.get(name) for name in ("weights", "factor", "n_threads"))
    total = len(y) if weights is None else weights.sum()
    ridge = more.get("lam", total**-0.25) * total
    y = y.astype(np.int64)
    return _core.ckce_exact(
        *(q, y, weights, factor),
        kernel=_core.Kernel(kernel, bandwidth),
        ridge=ridge,
        tol=tol,
        solver=more.get("solver", _core.Solver.iterate if iterate else _core.Solver.factorise),
        full=full,
        n_threads=n_threads or 2,
        progress=None,
    )


@pytest.mark.parametrize("m", [2, 10, 100])
def test_iteration_equals_factorisation(m):
    y, q = sample(3000, m, concentration=1 / m)
    bandwidth = ckce.median_bandwidth(q)
    direct, solved = (solve(y, q, iterate=i, bandwidth=bandwidth) for i in (False, True))
    assert solved.iterations > 0
    assert direct.iterations == 0
    assert solved.value == pytest.approx(direct.value, rel=1e-9, abs=0)
    assert abs(solved.value - direct.value) <= solved.bound + 1e-13 * direct.value
    assert solved.bound <= 1e-10 * solved.value
    assert solved.per_class == pytest.approx(direct.per_class, rel=1e-7)


@pytest.mark.parametrize("m", [2, 10, 100])
def test_debias_and_floor_of_the_iteration(m):
    # They come from a factor of low rank; what that may miss is reported.
    y, q = sample(1000, m, concentration=1 / m)
    more = {"bandwidth": ckce.median_bandwidth(q), "full": True}
    direct, solved = (solve(y, q, iterate=i, **more) for i in (False, True))
    for name in ("debias", "floor"):
        right, found = getattr(direct, name), getattr(solved, name)
        assert found == pytest.approx(right, rel=1e-3, abs=0)
        assert abs(found - right) <= solved.debias_error + 1e-9 * right
    assert solved.debias_error <= 1e-3 * direct.debias
    assert 0 < solved.debias_rank <= 1000
    deviation = np.abs(solved.influence - direct.influence).max()
    assert deviation <= 1e-5 * np.abs(direct.influence).max()


def test_debias_of_a_few_rows_by_iteration():
    y, q = sample(5, 3)
    direct, solved = (solve(y, q, iterate=iterate, full=True) for iterate in (False, True))
    assert solved.debias == pytest.approx(direct.debias, rel=1e-9, abs=0)
    assert solved.floor == pytest.approx(direct.floor, rel=1e-9, abs=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lam", [1e-6, 1.0, 1e3, 1e8])
def test_debias_and_floor_of_the_factorisation(lam, weighted):
    # By a difference, or where that would cancel by products.
    y, q = sample(300, 4, concentration=0.3)
    w = np.random.default_rng(1).uniform(0.1, 3, 300) if weighted else None
    solved = solve(y, q, iterate=False, lam=lam, weights=w, full=True)
    options = {"bandwidth": 0.7, "regularization": lam, "sample_weight": w}
    assert solved.debias == pytest.approx(reference.debias_term(y, q, **options), rel=1e-9, abs=0)
    assert solved.floor == pytest.approx(reference.floor(y, q, **options), rel=1e-9, abs=0)


def test_the_factorisation_takes_over_where_the_iteration_is_long():
    y, q = sample(600, 10)
    lam = {"lam": 1e-7, "full": True}
    direct, solved = (solve(y, q, iterate=iterate, **lam) for iterate in (False, True))
    assert solved.iterations == 0
    assert solved.value == direct.value
    assert solved.debias == direct.debias


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("kernel", OWN_PART)
def test_iteration_with_weights_and_label_kernels(kernel, general, weighted):
    y, q = sample(700, 5, concentration=0.3)
    more = {"kernel": kernel, "full": True}
    if general:
        more["factor"] = np.asfortranarray(np.linalg.cholesky(label_kernel(5)))
    if weighted:
        more["weights"] = np.random.default_rng(1).uniform(0.1, 3, 700)
    direct, solved = (solve(y, q, iterate=iterate, **more) for iterate in (False, True))
    assert solved.value == pytest.approx(direct.value, rel=1e-9, abs=0)
    assert abs(solved.value - direct.value) <= solved.bound
    assert solved.debias == pytest.approx(direct.debias, rel=1e-3, abs=0)
    assert solved.floor == pytest.approx(direct.floor, rel=1e-3, abs=0)
    deviation = np.abs(solved.influence - direct.influence).max()
    assert deviation <= 1e-5 * np.abs(direct.influence).max()


@pytest.mark.parametrize("weighted", [False, True])
def test_random_probes_find_what_a_factor_of_512_columns_misses(weighted):
    # The spectrum of this kernel decays slowly: without probes the error is 4e-2 of the term.
    y, q = sample(2500, 3)
    more = {"kernel": "laplace", "bandwidth": 0.7, "full": True}
    if weighted:
        more["weights"] = np.random.default_rng(1).uniform(0.5, 2, 2500)
    direct, solved = (solve(y, q, iterate=iterate, **more) for iterate in (False, True))
    assert 0 < solved.debias_rank <= 512
    assert 0 < solved.debias_error <= 1e-3 * direct.debias
    for name in ("debias", "floor"):
        assert abs(getattr(solved, name) - getattr(direct, name)) <= solved.debias_error
        assert getattr(solved, name) == pytest.approx(getattr(direct, name), rel=1e-3, abs=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", OWN_PART)
def test_blocks_with_weights_and_label_kernels(kernel, weighted):
    y, q = sample(700, 5, concentration=0.3)
    more = {"kernel": kernel, "full": True, "solver": _core.Solver.blocks}
    more["factor"] = np.asfortranarray(np.linalg.cholesky(label_kernel(5)))
    if weighted:
        more["weights"] = np.random.default_rng(1).uniform(0.1, 3, 700)
    solved = solve(y, q, iterate=True, **more)
    direct = solve(y, q, iterate=False, **{**more, "solver": _core.Solver.factorise})
    assert solved.value == pytest.approx(direct.value, rel=1e-9, abs=0)
    assert abs(solved.value - direct.value) <= solved.bound
    assert solved.per_class == pytest.approx(direct.per_class, rel=1e-7)
    assert solved.debias == pytest.approx(direct.debias, rel=1e-3, abs=0)
    deviation = np.abs(solved.influence - direct.influence).max()
    assert deviation <= 1e-5 * np.abs(direct.influence).max()


def test_many_rows_of_many_classes_go_by_blocks():
    y, q = sample(1600, 256, concentration=1 / 256)
    bandwidth = ckce.median_bandwidth(q)
    by = {"bandwidth": bandwidth, "n_threads": 1}
    direct = solve(y, q, iterate=False, **by)
    solved = solve(y, q, iterate=True, **by)
    assert 2 <= solved.iterations <= 4
    assert abs(solved.value - direct.value) <= solved.bound + 1e-13 * direct.value
    assert solved.bound <= 1e-10 * solved.value
    assert solved.value == solve(y, q, iterate=True, solver=_core.Solver.blocks, **by).value
    assert solved.value == solve(y, q, iterate=True, full=True, **by).value
    for threads in (2, 3):
        assert solved.value == solve(y, q, iterate=True, **{**by, "n_threads": threads}).value


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("kernel", OWN_PART)
def test_iteration_on_edge_data(kernel, edge):
    y, q = EDGES[edge]
    options = {"kernel": kernel, "bandwidth": 0.7}
    value = solve(y, q, iterate=True, **options).value
    scale = reference.debias_term(y, q, **options)
    agree(value, reference.ckce(y, q, **options), scale)


@pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("tol", [1e-4, 1e-7, 1e-10])
def test_iteration_keeps_its_tolerance_and_its_bound(tol, lam):
    y, q = sample(600, 10, concentration=0.1)
    direct = solve(y, q, iterate=False, lam=lam).value
    for full in (False, True):
        solved = solve(y, q, iterate=True, lam=lam, tol=tol, full=full)
        assert abs(solved.value - direct) <= 1.01 * tol * direct
        assert abs(solved.value - direct) <= solved.bound + 1e-13 * direct


@pytest.mark.parametrize("kernel", OWN_PART)
def test_threads_do_not_change_a_bit_of_the_iteration(kernel):
    y, q = sample(700, 5)
    one, *others = (
        solve(y, q, iterate=True, kernel=kernel, full=True, n_threads=t) for t in (1, 2, 3, 5)
    )
    for other in others:
        for name in ("value", "bound", "debias", "floor", "iterations", "debias_rank"):
            assert getattr(one, name) == getattr(other, name)
        assert np.array_equal(one.influence, other.influence)


def test_a_loose_tolerance_leaves_the_standard_error():
    rng = np.random.default_rng(22)
    for _ in range(1000):
        y, q, options = problem(rng, default=False)
        if options["regularization"] < 1e-4 or options["bandwidth"] < 1e-6:
            continue  # rounding alone costs more digits
        w = options["sample_weight"]
        direct, solved = (
            solve_both(y, q, **options, tol=1e-2, solver=solver)
            for solver in (_core.Solver.factorise, _core.Solver.iterate)
        )
        wanted, se = (standard_error(s.influence, w) for s in (direct, solved))
        assert se == pytest.approx(wanted, rel=1e-5, abs=1e-9 * direct.value, nan_ok=True)


def test_looser_tolerance_takes_fewer_products():
    y, q = sample(600, 10, concentration=0.1)
    counts = [solve(y, q, iterate=True, lam=1e-4, tol=tol).iterations for tol in (1e-3, 1e-10)]
    assert counts[0] < counts[1]


@pytest.mark.parametrize(("m", "limit"), [(3, 270), (46, 1990), (60, 2000)])
def test_the_limit_between_factorisation_and_iteration(m, limit):
    # min(40 m + 150, 2000), as documented
    y, q = sample(limit + 1, m)
    below = ckce.estimate(y[:-1], q[:-1], method="exact", bandwidth=0.7)
    above = ckce.estimate(y, q, method="exact", bandwidth=0.7)
    assert below.iterations is None
    assert below.debias_rank is None
    assert above.iterations > 0
    direct = solve(y, q, iterate=False, full=True)
    assert above.value == solve(y, q, iterate=True).value
    assert above.value == pytest.approx(direct.value, rel=1e-9, abs=0)
    slack = (above.debias_error or 0.0) + 1e-10 * direct.debias
    assert slack <= (1.1e-5 if limit < 2000 else 1e-3) * direct.debias
    assert abs(above.value - above.debiased - direct.debias) <= slack
    assert abs(above.floor - direct.floor) <= slack


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", ["linear_gaussian", "gaussian"])
@pytest.mark.parametrize(
    ("concentration", "lam", "rank"), [(0.02, None, 375), (1.0, None, 450), (1.0, 1e-3, None)]
)
def test_the_debias_term_below_2000_rows(concentration, lam, rank, kernel, weighted):
    # From a factor of few columns and probes, to 1e-5 of it at most, or by factorisation.
    y, q = sample(1500, 10, concentration=concentration)
    w = np.random.default_rng(1).uniform(0.5, 2, 1500) if weighted else None
    options = {"kernel": kernel, "bandwidth": ckce.median_bandwidth(q)}
    more = {"method": "exact", "regularization": lam, "sample_weight": w, **options}
    e = ckce.estimate(y, q, **more)
    direct = solve(y, q, iterate=False, lam=e.regularization, weights=w, full=True, **options)
    assert e.value == ckce.ckce(y, q, **more)
    if rank is None:
        assert e.debias_rank is None
        assert e.debias_error is None
    else:
        assert 0 < e.debias_rank <= rank
        assert 0 < e.debias_error <= 1e-5 * direct.debias
    slack = (e.debias_error or 0.0) + 1e-10 * direct.debias
    assert abs(e.value - e.debiased - direct.debias) <= slack
    assert abs(e.floor - direct.floor) <= slack


def test_the_debias_term_where_rows_nearly_repeat():
    # A cluster that differs by 1e-12 bandwidths, and rows far apart, some of which no column covers:
    # every probe was off alike by half of what these change to second order.
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.full(20, 0.5), 1700)
    q[:1280] = q[0] + 1e-16 * rng.integers(0, 9, (1280, 20))
    y = rng.integers(0, 20, 1700)
    options = {"kernel": "laplace", "bandwidth": 3e-4}
    e = ckce.estimate(y, q, method="exact", regularization=4.0, **options)
    direct = solve(y, q, iterate=False, lam=4.0, full=True, **options)
    assert e.debias_rank is not None
    assert abs(e.value - e.debiased - direct.debias) <= e.debias_error <= 1e-5 * direct.debias
    assert abs(e.floor - direct.floor) <= e.debias_error


@pytest.mark.parametrize("n", [2100, 4200])
def test_the_debias_term_where_a_third_of_the_columns_is_too_few(n):
    # To 1e-3, up to 4096 rows by factorisation; above, the error says how far it is off.
    y, q = sample(n, 10)
    options = {"kernel": "laplace", "bandwidth": 0.7}
    e = ckce.estimate(y, q, method="exact", regularization=1e-3, **options)
    direct = solve(y, q, iterate=False, lam=1e-3, full=True, **options)
    assert e.debias_rank == (None if n <= 4096 else n // 3)
    off = (e.debias_error or 0.0) + 1e-10 * direct.debias
    assert off <= 0.1 * direct.debias
    assert abs(e.value - e.debiased - direct.debias) <= off
    assert abs(e.floor - direct.floor) <= off


def test_the_factorisation_in_several_tiles():
    y, q = sample(900, 4)  # more than 3 tiles of 256 rows
    assert solve(y, q, iterate=False).value == pytest.approx(
        reference.ckce(y, q, bandwidth=0.7), rel=1e-11, abs=0
    )


def test_linear_kernel_by_its_features():
    for n, m in ((500, 3), (50, 60)):  # primal and dual
        y, q = sample(n, m)
        value = ckce.ckce(y, q, method="exact", kernel="linear")
        assert value == pytest.approx(
            reference.ckce(y, q, kernel="linear", bandwidth=1.0), rel=1e-11, abs=0
        )


def test_many_classes_by_products():
    # Above 24 classes distances come from products, unless the bandwidth is small.
    for bandwidth in (1.0, 0.3, 0.02):
        for concentration in (1e-2, 1.0, 1e4):
            y, q = sample(140, 30, concentration=concentration)
            for kernel in ("gaussian", "linear_gaussian"):
                options = {"kernel": kernel, "bandwidth": bandwidth}
                value = ckce.ckce(y, q, method="exact", **options)
                scale = reference.debias_term(y, q, **options)
                agree(value, reference.ckce(y, q, **options), scale)


@pytest.mark.parametrize("iterate", [False, True])
@pytest.mark.parametrize("m", [3, 30])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_extreme_bandwidths(kernel, m, iterate):
    y, q = sample(200, m)
    r, c = np.eye(m)[y] - q, 200**0.75
    total = r.sum(axis=0)
    for bandwidth in (1e-8, 1e-200, 1e-308):  # K = I
        value = solve(y, q, iterate=iterate, kernel=kernel, bandwidth=bandwidth).value
        assert value == pytest.approx(np.sum(r**2) / (1 + c) ** 2, rel=1e-9, abs=0)
    for bandwidth in (1e20, 1e300):  # K = 1 1'
        value = solve(y, q, iterate=iterate, kernel=kernel, bandwidth=bandwidth).value
        assert value == pytest.approx(total @ total / (200 + c) ** 2, rel=1e-9, abs=0)


@pytest.mark.parametrize("n_classes", [2, 7])
def test_half_precision_is_widened_by_the_core(n_classes):
    y, q = sample(150, n_classes)
    for dtype in (np.float16, np.float32):
        narrow = q.astype(dtype)
        for iterate in (False, True):
            value = solve(y, narrow, iterate=iterate, full=True)
            wide = solve(y, narrow.astype(np.float64), iterate=iterate, full=True)
            assert (value.value, value.floor) == (wide.value, wide.floor)


def test_callable_kernel():
    y, q = sample(60, 3)

    def kernel(p, q):
        return reference.laplace(p, q, 0.7)

    named = ckce.estimate(y, q, method="exact", kernel="laplace", bandwidth=0.7)
    called = ckce.estimate(y, q, kernel=kernel)
    assert called.method == "exact"
    assert called.bandwidth is None
    for name in ("value", "debiased", "floor", "se"):
        assert getattr(called, name) == pytest.approx(getattr(named, name), rel=1e-12, abs=0)
    w = np.arange(60) % 3
    assert ckce.ckce(y, q, kernel=kernel, sample_weight=w) == pytest.approx(
        ckce.ckce(y, q, kernel="laplace", bandwidth=0.7, sample_weight=w), rel=1e-12, abs=0
    )


MEMORY = """
import json, resource, sys
import numpy as np
import ckce
rng = np.random.default_rng(0)
q = rng.dirichlet(np.ones(10), 20000)
y = rng.integers(0, 10, 20000)
ckce.ckce(y[:2500], q[:2500], method="exact", bandwidth=0.5)  # threads and code are loaded
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
value = ckce.ckce(y, q, method="exact", bandwidth=0.5)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps({"value": value, "megabytes": (after - before) * unit / 1e6}))
"""


def test_memory_is_linear_in_the_rows():
    # K would take 3.2 GB, and its lower triangle 1.6.
    run = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, timeout=120
    )
    report = json.loads(run.stdout)
    assert report["value"] > 0
    assert report["megabytes"] < 100


FAULTS = """
import resource
import numpy as np
import ckce
rng = np.random.default_rng(0)
q = rng.dirichlet(np.ones(10), 2000)
y = rng.integers(0, 10, 2000)
faults = []
for _ in range(4):
    ckce.ckce(y, q, method="exact", n_threads=1)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(faults[3] - faults[2])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator decides")
def test_repeated_calls_take_no_page_faults():
    # Memory that is given back after each call costs 2000 of them, and 10 % of the time.
    # Dask, imported by other tests, asks the allocator of all children to give it back.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    run = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, env=env
    )
    assert int(run.stdout) < 100
