"""Sizes beyond 2^31: elements of an array that is not there, pairs of rows, and memory."""

import re

import numpy as np
import pytest
from shared import sample

import ckce
from ckce._input import memory as _memory
from ckce._input.kernels import check_kernel
from ckce._methods import Rows
from ckce._methods import cholesky as _cholesky
from ckce._methods import landmarks as _landmarks
from ckce._methods.pool import some_rows
from ckce._problem import settle
from ckce._problem.label_kernel import check_label_kernel

LARGE = 2**31


def constant_rows(n, m):
    """One prediction for all rows, by a stride of zero: n m elements in the memory of m."""
    row = np.arange(1.0, m + 1)
    row /= row.sum()
    y = np.zeros(n, np.int32)
    y[: n // 3] = m - 1
    return y, np.broadcast_to(row, (n, m)), row


def test_more_elements_than_an_int32_counts():
    n, m = 2**21 + 77, 1025
    y, q, row = constant_rows(n, m)
    assert q.size > LARGE
    hits = (n // 3) / n
    value = ckce.ece(y, q, variant="top_label")
    assert value == pytest.approx(abs(hits - row[-1]), rel=1e-9)


def test_offsets_beyond_an_int32(tmp_path):
    """Rows 16 MB apart in a file of 35 GB that exists only where something was written."""
    y, q = sample(2100, 4)
    try:
        far = np.memmap(tmp_path / "q.bin", np.float64, "w+", shape=(2100, 2**21))[:, :4]
    except OSError as error:
        pytest.skip(f"no sparse file of this size here: {error}")
    far[:] = q
    assert far.strides[0] // far.itemsize * (len(far) - 1) > LARGE
    for function, options in [
        (ckce.ckce, {"method": "exact"}),
        (ckce.ckce, {"method": "fourier"}),
        (ckce.ece, {"variant": "class_wise", "strategy": "quantile"}),
    ]:
        assert function(y, far, **options) == function(y, q, **options)
    far[-1, -1] = np.nan
    with pytest.raises(ValueError, match="y_prob row 2099 column 3 is nan"):
        ckce.accuracy(y, far)


@pytest.mark.parametrize("function", ["ckce", "jkce"])
def test_more_pairs_than_an_int32_counts(function):
    """n = 50,000 rows of few kinds are as many weighted rows: 2.5e9 entries of K."""
    rng = np.random.default_rng(0)
    kinds_y, kinds_q = np.arange(6) % 2, np.repeat([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]], 2, axis=0)
    counts = rng.multinomial(50_000, np.ones(6) / 6)
    y, q = np.repeat(kinds_y, counts), np.repeat(kinds_q, counts, axis=0)
    order = rng.permutation(len(y))
    value = getattr(ckce, function)(y[order], q[order], method="exact", bandwidth=0.4)
    literal = getattr(ckce.reference, function)
    expected = literal(kinds_y, kinds_q, bandwidth=0.4, sample_weight=counts)
    assert value == pytest.approx(expected, rel=1e-9)


REFUSED = [
    ({"method": "exact"}, "use method='fourier'"),
    ({"method": ckce.Cholesky(rank=3000)}, "use method='fourier'"),
    ({"method": ckce.Fourier(5000)}, "pass a smaller n_frequencies: method=ckce.Fourier("),
    ({"method": ckce.Landmarks(5000)}, "pass fewer landmarks: method=ckce.Landmarks("),
]


@pytest.mark.parametrize(("options", "advice"), REFUSED)
@pytest.mark.parametrize("function", [ckce.ckce, ckce.estimate, ckce.jkce])
def test_what_does_not_fit_is_refused_beforehand(monkeypatch, function, options, advice):
    monkeypatch.setattr(_memory, "available_memory", lambda: 3e8)
    y, q, _ = constant_rows(250_000, 60)
    with pytest.raises(MemoryError, match=r"needs about [\d.]+ GB of memory, 0.3 GB are") as caught:
        function(y, q, bandwidth=0.5, **options)
    assert advice in str(caught.value)


ADVICE = [
    # method, n, m, bytes that are available, advice
    ("exact", 1000, 30_000, 4e8, "pass reduction=ckce.TopK(20)"),
    ("fourier", 3000, 30_000, 3e8, "pass reduction=ckce.TopK(20)"),
    ("auto", 9000, 8000, 5e8, "pass reduction=ckce.TopK(20)"),
    (
        "auto",
        50_000,
        3,
        3e8,
        "pass a smaller rank: method=ckce.Cholesky(rank=250, pivoting='random')",
    ),
    ("exact", 200_000, 60, 1e9, "use method='fourier', whose memory is flat in n"),
    (ckce.Fourier(4000), 20_000, 10, 1e9, "pass a smaller n_frequencies: method=ckce.Fourier("),
    (ckce.Landmarks(8000), 10**6, 10, 1e9, "pass fewer landmarks: method=ckce.Landmarks(points="),
    (ckce.Exact(), 1000, 3, 5e5, "pass fewer rows"),
]


@pytest.mark.parametrize(("method", "n", "m", "available", "expected"), ADVICE)
def test_advice_works_when_it_is_followed(monkeypatch, method, n, m, available, expected):
    monkeypatch.setattr(_memory, "SMALL", 0.0)
    monkeypatch.setattr(_memory, "available_memory", lambda: available)
    y, q, _ = constant_rows(n, m)

    def check(**options):
        how = {"sample_weight": None, "labels": None, "input": "probs", "normalize": False}
        options = {"method": method, "bandwidth": 0.5, **options}
        if "reduction" in options:  # of which "auto" chooses anew
            options["method"] = "auto"
        settle("ckce", y, q, **how, **options).check_memory(full=False)

    with pytest.raises(MemoryError) as caught:
        check()
    advice = str(caught.value).split("; ")[-1]
    assert advice.startswith(expected)
    found = re.search(r"(method|reduction)=(ckce\.\w+\(.*\)|'\w+')", advice)
    if found:
        check(**{found[1]: eval(found[2])})


def test_the_median_is_refused_beforehand(monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: 3e8)
    y, q, _ = constant_rows(3000, 30_000)
    for words, call in {
        r"pass reduction=ckce.TopK\(20\), or a bandwidth": lambda: ckce.ckce(y, q),
        "pass fewer rows": lambda: ckce.median_bandwidth(q),
    }.items():
        with pytest.raises(MemoryError, match=r"the median distance .* 30000 classes.* " + words):
            call()


def test_a_label_kernel_is_refused_beforehand(monkeypatch):
    """It takes O(m^3), however few rows there are."""
    y, q, _ = constant_rows(20, 4000)
    kernel = np.broadcast_to(1.0, (4000, 4000))
    monkeypatch.setattr(_memory, "available_memory", lambda: 3e8)
    with pytest.raises(MemoryError, match=r"label_kernel of 4000 classes needs about 0\.512 GB"):
        ckce.ckce(y, q, label_kernel=kernel, bandwidth=0.5)
    monkeypatch.setattr(_memory, "available_memory", lambda: 1e10)
    monkeypatch.setattr(np.linalg, "eigh", lambda *_: pytest.fail("eigenvalues of a definite one"))
    assert check_label_kernel(np.eye(50) + 1.0, 50).factor.shape == (50, 50)


@pytest.mark.parametrize("options", [{"normalize": True}, {"input": "logits"}])
def test_copies_of_predictions_are_refused_beforehand(monkeypatch, options):
    monkeypatch.setattr(_memory, "available_memory", lambda: 3e8)
    y, q, _ = constant_rows(2**15, 1025)
    with pytest.raises(MemoryError, match=r"a copy of y_prob of shape \(32768, 1025\)"):
        ckce.accuracy(y, q, **options)


def test_landmarks_are_sought_among_rows_drawn_by_the_seed(monkeypatch):
    """So memory does not grow with n."""
    kernel = check_kernel("linear_gaussian")
    _, q, _ = constant_rows(10**6, 200)
    some, all_ = (Rows(q[:n], kernel, 0.5, 0, 1) for n in (10_000, 10**6))
    method = ckce.Landmarks(500)
    assert method.price(some, False) == pytest.approx(method.price(all_, False), rel=1e-6)
    seen = []

    def choose(rows, *_, **__):
        seen.append(len(rows))
        return rows[:1]

    monkeypatch.setattr(_landmarks, "choose_points", choose)
    for count, n in [(500, 10**6), (500, 2999), (2000, 10**6)]:
        ckce.Landmarks(count).choose(Rows(q[:n], kernel, 0.5, 0, 1))
    assert seen == [3000, 2999, 12_000]
    drawn = [some_rows(10_000, 3000, seed) for seed in (0, 0, 1)]
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] != drawn[2]).any()
    assert (np.diff(drawn[0]) > 0).all()
    assert 0 <= drawn[0][0] < 20
    assert 9980 < drawn[0][-1] < 10_000


def test_a_callable_kernel_needs_the_whole_gram_matrix(monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: 3e8)
    y, q, _ = constant_rows(5000, 3)
    with pytest.raises(MemoryError, match="use a named kernel"):
        ckce.ckce(y, q, kernel=lambda p, q: p @ q.T)


@pytest.mark.parametrize("function", [ckce.ckce, ckce.jkce])
def test_a_factor_stops_where_memory_does(monkeypatch, function):
    """Without a rank nobody knows beforehand how many columns a tolerance takes."""
    monkeypatch.setattr(_cholesky, "available_memory", lambda: 1e7)
    y, q = sample(6000, 6)
    with pytest.raises(MemoryError, match=r"did not reach tol=1e-10 with the \d+ columns"):
        function(y, q, method="cholesky", bandwidth=0.05)
    assert function(y, q, method=ckce.Cholesky(rank=64), bandwidth=0.05) != 0.0
    assert function(y, q, method=ckce.Cholesky(tol=0.49), bandwidth=5.0) != 0.0


def test_available_memory():
    available = _memory.available_memory()
    assert 1e6 < available < 1e16
    _memory.check_memory(1e5, "little", "")
    with pytest.raises(MemoryError, match="much needs about 1e\\+11 GB"):
        _memory.check_memory(1e20, "much", "")


GROUPS = {
    # /proc/self/cgroup, files below /sys/fs/cgroup, what is left
    "none": ("0::/\n", {}, float("inf")),
    "no limit": ("0::/\n", {"memory.max": "max\n", "memory.stat": "anon 5\n"}, float("inf")),
    "container": ("0::/\n", {"memory.max": "900\n", "memory.stat": "anon 200\nfile 7\n"}, 700.0),
    "job of a cluster": (
        "0::/slurm/job_1/step_0\n",
        {
            "slurm/job_1/memory.max": "900\n",
            "slurm/job_1/memory.stat": "file 9\nanon 400\n",
            "slurm/job_1/step_0/memory.max": "max\n",
            "slurm/job_1/step_0/memory.stat": "anon 300\n",
        },
        500.0,
    ),
    "version 1": (
        "9:cpu:/a\n4:memory,hugetlb:/slurm/job_1\n0::/\n",
        {
            "memory/memory.limit_in_bytes": "9223372036854771712\n",
            "memory/memory.stat": "rss 1\ntotal_rss 600\n",
            "memory/slurm/job_1/memory.limit_in_bytes": "900\n",
            "memory/slurm/job_1/memory.stat": "cache 3\nrss 1\ntotal_rss 300\n",
        },
        600.0,
    ),
    "path of the host": (
        "4:memory:/docker/0123\n",
        {
            "memory/memory.limit_in_bytes": "900\n",
            "memory/memory.stat": "total_rss 100\n",
        },
        800.0,
    ),
}


@pytest.mark.parametrize("case", GROUPS)
def test_memory_of_containers_and_jobs(tmp_path, case):
    of_the_process, files, left = GROUPS[case]
    files = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in {"proc/self/cgroup": of_the_process, **files}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert _memory._of_the_container(f"{tmp_path}/") == left


def fail_at_work(monkeypatch):
    """Whoever starts to evaluate a model fails."""
    for first in (
        "ckce._metrics.evaluate.scores_of",
        "ckce._compare.compare.estimate_and_solution",
    ):
        monkeypatch.setattr(first, lambda *_, **__: pytest.fail("computed before it was refused"))


@pytest.mark.parametrize("name", ["evaluate", "compare"])
def test_refused_before_anything_is_computed(monkeypatch, name):
    y, q = sample(300, 3)
    monkeypatch.setattr(_memory, "available_memory", lambda: 1e5)
    monkeypatch.setattr(_memory, "SMALL", 0.0)
    fail_at_work(monkeypatch)
    data = {"evaluate": q, "compare": {"a": q, "b": q[::-1]}}[name]
    with pytest.raises(MemoryError, match=r"method='exact' with n = 300, m = 3 needs about .* GB"):
        getattr(ckce, name)(y, data)


#: Megabytes measured by studies/prices.py, of calls whose smaller parts alone would fit.
MEASURED = {
    "a factor that gives way to the kernel itself": (ckce.evaluate, (20_000, 100), 347, "cholesky"),
    "the factors of two models": (ckce.compare, (20_000, 100), 435, "cholesky"),
    "the smoother of few rows": (ckce.evaluate, (50, 20_000), 453, "the smoother"),
    "the sums of label sets": (
        ckce.calibration_test,
        (20_000, 100),
        517,
        "a test by method='chole",
    ),
}


@pytest.mark.parametrize("name", MEASURED)
def test_the_price_of_a_whole_call(monkeypatch, name):
    function, (n, m), megabytes, word = MEASURED[name]
    y, q, _ = constant_rows(n, m)
    data = {"a": q, "b": q} if function is ckce.compare else q
    monkeypatch.setattr(_memory, "available_memory", lambda: 0.8e6 * megabytes)
    monkeypatch.setattr(_memory, "SMALL", 0.7e6 * megabytes)  # what is below is tried
    fail_at_work(monkeypatch)
    with pytest.raises(MemoryError, match=word):
        function(y, data, bandwidth=0.5, n_threads=2)
