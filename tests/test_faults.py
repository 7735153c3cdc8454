"""What the world does to a call: no memory, Ctrl-C, forks, threads, arrays that change meanwhile."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
SANITIZED = "san.so" in os.environ.get("LD_PRELOAD", "")

# What every script starts with: data, and calls that go through all of the core.
PRELUDE = """
import json, os, signal, sys, threading, time, warnings
import numpy as np
import ckce

def sample(n, m, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, m, n), rng.dirichlet(np.ones(m), n)

y, q = sample(700, 4)
CALLS = {
    "exact": lambda **o: ckce.estimate(y[:300], q[:300], method="exact", bandwidth=0.5, **o).bound,
    "iteration": lambda **o: ckce.ckce(*LARGE, method="exact", kernel="laplace", **o),
    "fourier": lambda **o: ckce.estimate(y, q, method=ckce.Fourier(40), **o).se,
    "mixed": lambda **o: ckce.ckce(
        y, q, method=ckce.Fourier(40, precision="mixed", sampler="sobol"), **o
    ),
    "cholesky": lambda **o: ckce.estimate(y, q, method=ckce.Cholesky(90), **o).debiased,
    "random pivots": lambda **o: ckce.ckce(
        y, q, method=ckce.Cholesky(90, pivoting="random"), label_kernel=np.diag([1, 2, 3, 4]), **o
    ),
    "class-wise": lambda **o: ckce.ckce(y, q, reduction="class_wise", method="fourier", **o),
    "top 2": lambda **o: ckce.ckce(y, q, reduction=ckce.TopK(2), method="fourier", **o),
    "jkce": lambda **o: ckce.jkce_estimate(y, q, method="exact", **o).se,
    "jkce, blocks": lambda **o: ckce.jkce(y, q, method="blocks", **o),
    "simplex": lambda **o: ckce.ece(y, q, variant="simplex", **o),
    "top label": lambda **o: ckce.ece(y, q, variant="top_label", **o),
    "quantiles": lambda **o: ckce.ece(y, q, variant="class_wise", strategy="quantile", **o),
    "smooth": lambda **o: ckce.smooth_ece(y, q, **o),
    "landmarks": lambda **o: float(
        ckce.CKCEAccumulator.from_sample(y, q, method=ckce.Landmarks(90), **o).method.points.sum()
    ),
    "landmarks, batch": lambda **o: ckce.estimate(y, q, method=ckce.Landmarks(90), **o).se,
    "landmarks, jkce": lambda **o: ckce.jkce(y, q, method=ckce.Landmarks(90), **o),
    "brier": lambda **o: ckce.brier(y, q, **o),
    "weights": lambda **o: ckce.ckce(y, q, sample_weight=np.linspace(0.5, 2, len(y)), **o),
}
LARGE = sample(2200, 3)
"""


def run(script, *arguments, timeout=120, env=None):
    """Run a script in a process of its own; what it prints last is JSON."""
    process = subprocess.run(
        [sys.executable, "-c", PRELUDE + script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=10 * timeout if SANITIZED else timeout,
        env={**os.environ, **(env or {})},
    )
    assert process.returncode == 0, f"exit code {process.returncode}\n{process.stderr[-3000:]}"
    return json.loads(process.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def failing_malloc(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler and Linux")
    if SANITIZED:
        pytest.skip("the sanitizer has a malloc of its own")
    library = tmp_path_factory.mktemp("malloc") / "failing_malloc.so"
    source = HERE / "native" / "failing_malloc.c"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}


ALLOCATIONS = """
import ctypes
shim = ctypes.CDLL(None)
stay, n_threads = int(sys.argv[1]), int(sys.argv[2])
outcome = {}
for name, call in CALLS.items():
    expected, failures, n = call(n_threads=n_threads), 0, 0
    while True:
        n += 1 + n // 10  # every one of the first ten, then fewer and fewer
        shim.arm_malloc(n, stay)
        try:
            value = call(n_threads=n_threads)
        except MemoryError:
            fired = shim.disarm_malloc()
            assert fired, "a MemoryError out of nothing"
            failures += 1
            continue
        fired = shim.disarm_malloc()
        assert value == expected, (name, n, value, expected)  # a thread less, or no failure
        if not fired:
            break
    assert call(n_threads=n_threads) == expected, name
    outcome[name] = failures
print(json.dumps(outcome))
"""


STATE = """
import ctypes
shim = ctypes.CDLL(None)
y, q = sample(2500, 4)
options = {"method": ckce.Fourier(20)}
if sys.argv[2] == "landmarks":
    options = {"method": ckce.Landmarks(sample(150, 4, seed=1)[1]), "kernel": "laplace"}
acc = ckce.CKCEAccumulator(n_classes=4, bandwidth=0.5, n_threads=2, **options)
other = acc.copy()
acc.update(y[:1500], q[:1500])
other.update(y[1500:], q[1500:])
before, failures = acc.to_bytes(), 0
path = os.path.join(sys.argv[1], "state.ckce")
acc.save(path)
for use in (
    lambda: acc.update(y, q),
    lambda: acc.merge(other),
    lambda: acc.compute(),
    lambda: acc.evaluate(),
    lambda: acc.save(path),
    lambda: ckce.CKCEAccumulator.load(path),
):
    n = 0
    while True:
        n += 1 + n // 10
        shim.arm_malloc(n, n % 2)
        try:
            use()
        except MemoryError:
            assert shim.disarm_malloc(), "a MemoryError out of nothing"
            assert acc.to_bytes() == before == open(path, "rb").read()
            failures += 1
            continue
        fired = shim.disarm_malloc()
        if acc.to_bytes() != before:  # it did its work, with a thread less or without a failure
            acc = ckce.CKCEAccumulator.from_bytes(before)
        if not fired:
            break
    acc.save(path)
print(json.dumps(failures))
"""


@pytest.mark.parametrize("features", ["fourier", "landmarks"])
def test_an_allocation_that_fails_leaves_the_state_as_it_was(failing_malloc, tmp_path, features):
    assert run(STATE, tmp_path, features, env=failing_malloc) > 10


FULL = """
y, q = sample(3000, 30)
acc = ckce.CKCEAccumulator(n_classes=30, bandwidth=0.5)
path = os.path.join(sys.argv[1], "state.ckce")
small = ckce.CKCEAccumulator(n_classes=2, bandwidth=0.5, method=ckce.Fourier(5))
small.update(y % 2, q[:, 0])
small.save(path)
old = open(path, "rb").read()
acc.update(y, q)
before = acc.to_bytes()
try:
    acc.save(path)
    outcome = "saved"
except OSError as error:
    outcome = error.strerror
same = [acc.to_bytes() == before, open(path, "rb").read() == old, os.listdir(sys.argv[1])]
print(json.dumps([outcome, *same, len(before)]))
"""


@linux
def test_a_full_disk_keeps_the_old_state(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    mounted = subprocess.run(command, capture_output=True) if os.geteuid() == 0 else None
    if mounted is None or mounted.returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    try:
        outcome, intact, old, files, size = run(FULL, disk)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert size > 256 * 1024
    assert (outcome, intact, old) == ("No space left on device", True, True)
    assert files == ["state.ckce"]


@pytest.mark.parametrize(("stay", "n_threads"), [(0, 3), (1, 1)])
def test_an_allocation_that_fails_is_a_memory_error(failing_malloc, stay, n_threads):
    outcome = run(ALLOCATIONS, stay, n_threads, env=failing_malloc)
    assert min(outcome.values()) >= 3, outcome


LIMITED = """
import resource
data = sample(150_000, 40)
ckce.ckce(y, q, n_threads=2)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (int(sys.argv[1]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
messages = []
for options in (
    {"method": "exact"},
    {"method": ckce.Cholesky(rank=2000)},
    {"method": ckce.Fourier(20_000)},
):
    try:
        ckce.ckce(*data, bandwidth=0.5, **options)
        messages.append(None)
    except MemoryError as error:
        messages.append(str(error))
    expected = ckce.ckce(y, q, bandwidth=0.5)  # and the library still works
print(json.dumps([messages, expected]))
"""


@linux
@pytest.mark.skipif(SANITIZED, reason="the sanitizer needs the address space")
def test_little_memory_is_seen_beforehand():
    messages, value = run(LIMITED, 300)
    for message, advice in zip(messages, ("fourier", "rank", "n_frequencies"), strict=True):
        assert message is not None
        assert "GB of memory" in message
        assert advice in message
    assert value > 0


FEW_LONG_ROWS = """
import resource
data = sample(20, 8000)
ckce.ckce(y, q, n_threads=2)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (300 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
e = ckce.evaluate(*data, bandwidth=0.5, n_threads=1)
print(json.dumps([e.ckce.value, e.jkce.value, ckce.ckce(*data, bandwidth=0.5, method="cholesky")]))
"""


@linux
@pytest.mark.skipif(SANITIZED, reason="the sanitizer needs the address space")
def test_few_rows_of_many_classes_take_no_square_of_the_classes():
    """m^2 numbers are 512 MB here."""
    value, joint, by_factor = run(FEW_LONG_ROWS)
    assert by_factor == pytest.approx(value, rel=1e-9)
    assert joint == pytest.approx(0.0, abs=1e-2)


INTERRUPTED = """
y, q = sample(300_000, 10)
rng = np.random.default_rng(int(sys.argv[1]))
calls = [
    lambda: ckce.ckce(y[:30_000], q[:30_000], method="exact", bandwidth=0.3),
    lambda: ckce.estimate(y, q, method=ckce.Fourier(300)),
    lambda: ckce.ckce(y, q, method=ckce.Cholesky(rank=1000), bandwidth=0.3),
    lambda: ckce.jkce(y[:60_000], q[:60_000], bandwidth=0.3),
    lambda: [ckce.ece(y, q, variant="simplex") for _ in range(50)],
    lambda: [ckce.brier(y, q) for _ in range(500)],
    lambda: ckce.evaluate(y[:30_000], q[:30_000], bandwidth=0.3),
]
answers = []
for call in calls:
    for _ in range(2):
        pressed = []

        def press():
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(rng.uniform(0.0, 0.3), press)
        try:
            timer.start()
            call()
            answers.append("finished")
        except KeyboardInterrupt:
            answers.append(time.monotonic() - pressed[0])
        timer.join()
small = ckce.ckce(y[:50], q[:50])
print(json.dumps([answers, small]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.skipif(SANITIZED, reason="too slow for half a second")
def test_interrupts_at_random_moments():
    answers, small = run(INTERRUPTED, 0)
    assert answers.count("finished") == 0, answers
    assert max(answers) < 0.5
    assert small > 0


FORKED = """
import multiprocessing

def work(seed):
    return ckce.ckce(*sample(2500, 4, seed), method="exact", n_threads=3)

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # Python warns of forks beside threads: that is what is tested
    expected = [work(seed) for seed in range(3)]
    busy = threading.Thread(target=lambda: [work(9) for _ in range(5)])
    busy.start()  # the fork happens in the middle of a call of another thread
    with multiprocessing.get_context("fork").Pool(2) as pool:
        forked = pool.map_async(work, range(3)).get(timeout=60)
    busy.join()
    child = os.fork()
    if child == 0:
        os._exit(0 if work(0) == expected[0] else 1)
    _, status = os.waitpid(child, 0)
    print(json.dumps([forked == expected, status]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_after_threads():
    assert run(FORKED) == [True, 0]


HANDLED = """
acc = ckce.CKCEAccumulator(n_classes=10, bandwidth=0.5, method=ckce.Fourier(100))
y, q = sample(100_000, 10)
acc.update(y, q)
said = []

def handler(*_):
    for use in (acc.compute, acc.to_bytes, lambda: acc.update(y, q)):
        try:
            use()
        except RuntimeError as error:
            said.append(str(error))
    child = os.fork()
    if child == 0:
        os._exit(0)
    said.append(os.waitpid(child, 0)[1])

signal.signal(signal.SIGALRM, handler)
for use in (lambda: acc.update(y, q), acc.evaluate):
    said.clear()
    while not said:
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        use()
    assert said[-1] == 0 and all("is at work in this thread" in words for words in said[:-1]), said
    assert len(said) == 4 or use != acc.evaluate
acc.update(y, q)
print(json.dumps([acc.n_samples % 100_000, acc.compute() > 0]))
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_a_signal_handler_in_the_middle_of_a_call_is_refused():
    """It would wait for ever for the call that it interrupts; a fork in it does not."""
    assert run(HANDLED) == [0, True]


UPDATED = """
warnings.simplefilter("ignore")
y, q = sample(20_000, 10)
acc = ckce.CKCEAccumulator(n_classes=10, bandwidth=0.5, method=ckce.Fourier(100))
acc.update(y, q)
acc.evaluate()  # what it imports is imported
stop = False

def use():
    while not stop:
        acc.evaluate() if sys.argv[1] == "evaluate" else acc.update(y, q)

busy = threading.Thread(target=use)
busy.start()
statuses = []
for _ in range(6):
    time.sleep(0.03)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that waits for ever is killed by it
        acc.update(y[:10], q[:10])
        os._exit(0 if acc.compute() > 0 else 1)
    statuses.append(os.waitpid(child, 0)[1])
stop = True
busy.join()
print(json.dumps(statuses))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("use", ["update", "evaluate"])
def test_fork_while_another_thread_is_in_an_accumulator(use):
    """The child works on the accumulator as it was between two calls."""
    assert run(UPDATED, use) == [0] * 6


AT_THE_END = """
y, q = sample(int(sys.argv[1]), 3)
acc = ckce.CKCEAccumulator(n_classes=3, bandwidth=0.5, method=ckce.Fourier(20))

def work():
    while True:
        ckce.ckce(y, q, method="exact", bandwidth=0.3)
        acc.update(y, q)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
end = time.monotonic() + 0.3
while time.monotonic() < end:  # the threads often wait for the GIL when the interpreter ends
    sum(range(100))
print(json.dumps("end"), flush=True)
"""


@pytest.mark.parametrize("n", [60, 5000])
def test_the_interpreter_ends_while_daemon_threads_compute(n):
    for _ in range(5):
        assert run(AT_THE_END, n) == "end"


FIRST = """
def work():
    while True:  # its first call is the first of the process
        ckce.estimate(y[:60], q[:60])

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
print(json.dumps("end"), flush=True)
"""


SLOW_BAR = """
class Slow:
    def write(self, text):
        sum(range(300_000))  # the thread is often here when the interpreter ends
        return len(text)
    def flush(self):
        pass
    def isatty(self):
        return True

import tqdm
tqdm.tqdm.monitor_interval = 0
stderr, sys.stderr = sys.stderr, Slow()
y, q = sample(8000, 3)

def work():
    while True:
        ckce.ckce(y, q, method="exact", bandwidth=0.3, progress=True)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
end = time.monotonic() + 0.7
while time.monotonic() < end:
    sum(range(100))
sys.stderr = stderr
print(json.dumps("end"), flush=True)
"""


@pytest.mark.parametrize("script", [FIRST, SLOW_BAR], ids=["first call", "progress"])
def test_the_interpreter_ends_in_the_first_call_and_in_a_progress_bar(script):
    for _ in range(8):
        assert run(script) == "end"


SPAWNED = """
from concurrent.futures import ProcessPoolExecutor
from functools import partial
import multiprocessing

expected = ckce.ckce(y, q, method="exact", n_threads=3)
with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
    call = partial(ckce.ckce, y, q, method="exact", n_threads=3)
    values = [future.result(timeout=60) for future in [pool.submit(call) for _ in range(2)]]
print(json.dumps([values, expected]))
"""


def test_spawn_after_threads():
    values, expected = run(SPAWNED)
    assert values == [expected] * 2


CROWD = """
from concurrent.futures import ThreadPoolExecutor

small = {"y": y[:150], "q": q[:150]}
y, q = small["y"], small["q"]
del CALLS["iteration"]
names = list(CALLS)
expected = {name: CALLS[name]() for name in names}
barrier = threading.Barrier(64)

def work(i):
    barrier.wait()
    return [CALLS[names[(i + k) % len(names)]](n_threads=1 + i % 4) for k in range(3)]

with ThreadPoolExecutor(64) as pool:
    results = list(pool.map(work, range(64)))
wrong = [
    names[(i + k) % len(names)]
    for i, values in enumerate(results)
    for k, value in enumerate(values)
    if value != expected[names[(i + k) % len(names)]]
]
shared = ckce.CKCEAccumulator(n_classes=4, bandwidth=0.5, method=ckce.Fourier(5))
parts = [sample(1500 + i, 4, i) for i in range(64)]  # more than a block, so that they often meet

def share(part):
    barrier.wait()
    shared.update(*part)

with ThreadPoolExecutor(64) as pool:
    list(pool.map(share, parts))
alone = ckce.CKCEAccumulator(n_classes=4, bandwidth=0.5, method=ckce.Fourier(5))
for part in parts:
    alone.update(*part)
if shared.n_samples != alone.n_samples or abs(shared.compute() / alone.compute() - 1) > 1e-12:
    wrong.append("shared accumulator")
print(json.dumps(wrong))
"""


def test_64_threads_at_once():
    assert run(CROWD) == []


MUTATED = """
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
LARGE = y, q = sample(2200, 4)
weights = np.ones(len(y))
# A bounded kernel: with 1e18 in a linear part, the iteration would take all of its 1000 steps.
CALLS["weights"] = lambda **o: ckce.ckce(y, q, sample_weight=weights, kernel="gaussian", **o)
CALLS["weighted quantiles"] = lambda **o: ckce.ece(
    y, q, variant="top_label", strategy="quantile", sample_weight=weights, **o
)
expected = {name: call(n_threads=2) for name, call in CALLS.items()}
originals = [array.copy() for array in (y, q, weights)]
garbage = np.array([np.nan, np.inf, -np.inf, 1e300, -5.0, 1e18, 7.0])
stop = False

def mutate():
    while not stop:
        rows = rng.integers(0, len(y), 20)
        q[rows] = rng.choice(garbage, (20, 4))
        y[rows] = rng.choice([-1, 4, 10**9, -(2**62), 2**62], 20)
        weights[rows] = rng.choice(garbage, 20)
        time.sleep(1e-5)
        for array, original in zip((y, q, weights), originals):
            array[:] = original
        time.sleep(2e-4)

writer = threading.Thread(target=mutate)
writer.start()
outcome = {}
for name, call in CALLS.items():
    end = time.monotonic() + float(sys.argv[1])
    kinds = outcome.setdefault(name, {})
    while time.monotonic() < end:
        try:
            kind = type(call(n_threads=2)).__name__
        except (ValueError, MemoryError) as error:
            kind = type(error).__name__
        kinds[kind] = kinds.get(kind, 0) + 1
stop = True
writer.join()
for array, original in zip((y, q, weights), originals):
    array[:] = original
assert {name: call(n_threads=2) for name, call in CALLS.items()} == expected
print(json.dumps(outcome))
"""


def test_arrays_that_change_meanwhile():
    """A number or an error, never a crash: labels are copied, and no index hangs on a number."""
    outcome = run(MUTATED, 0.1)
    assert all(outcome.values())


RESIZED = """
arrays = list(sample(30_000, 10))  # no other name for either, so NumPy would resize them
started, outcome = threading.Event(), []
jkce = ckce.jkce  # imported now, not while the clock runs

def resize():
    for i in (0, 1):
        try:
            arrays[i].resize((10,))
            outcome.append("resized")
        except ValueError:
            outcome.append("refused")

def resize_meanwhile():
    started.wait()
    resize()

thread = threading.Thread(target=resize_meanwhile)
thread.start()
threading.Timer(0.05, started.set).start()
value = jkce(arrays[0], arrays[1], bandwidth=0.5)
thread.join()
again = jkce(arrays[0], arrays[1], bandwidth=0.5)
arrays = list(sample(30_000, 10))
resize()
print(json.dumps([value, again, outcome]))
"""


def test_arrays_cannot_be_resized_meanwhile():
    value, again, outcome = run(RESIZED)
    assert value == again
    assert outcome == ["refused", "refused", "resized", "resized"]
