"""Long calls: Ctrl-C, progress, and errors out of the middle of them."""

import io
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
from shared import needs_new_core, sample

import ckce
from ckce import _core
from ckce._problem import progress as _progress
from ckce._problem.progress import progress_bar

# A thread of the process itself presses Ctrl-C, which also shows that the GIL is released.
INTERRUPTED = """
import json, os, signal, sys, threading, time
import numpy as np
import ckce

rng = np.random.default_rng(0)
n, options = {n}, dict({options})
q = rng.dirichlet(np.ones(10), n)
y = rng.integers(0, 10, n)
pressed = []

def press():
    pressed.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

timer = threading.Timer(0.8, press)
timer.start()
try:
    ckce.{function}(y, q, bandwidth=0.3, **options)
    print(json.dumps("finished"))
except KeyboardInterrupt:
    seconds = time.monotonic() - pressed[0]
    small = ckce.ckce(y[:50], q[:50])  # and the library still works
    print(json.dumps([seconds, small]))
"""


@pytest.mark.parametrize(
    ("function", "n", "options"),
    [
        ("ckce", 60_000, "method='exact'"),
        ("ckce", 60_000, "method='exact', n_threads=1"),
        ("estimate", 40_000, "method='exact', kernel='laplace'"),
        ("gradient", 60_000, "method='exact', debias=False"),
        ("jkce", 120_000, "method='exact'"),
        ("ckce", 50_000, "method=ckce.Cholesky(rank=3000)"),
        ("ckce", 300_000, "method=ckce.Fourier(600)"),
        pytest.param("ckce", 100_000, "method=ckce.Landmarks(1500)", marks=needs_new_core),
        ("calibration_test", 50_000, "method='fourier', n_resamples=9999"),
    ],
)
def test_interrupt_is_answered_within_half_a_second(function, n, options):
    code = INTERRUPTED.format(function=function, n=n, options=options)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    assert answer != "finished", "the call was too short to be interrupted"
    seconds, small = answer
    assert seconds < 0.5
    assert small > 0


# Most resamples there may be, and medians of weighted rows: how long Ctrl-C takes, early and later, and
# how many megabytes more than 4100 resamples the call has taken by then.
MANY = """
import json, os, signal, sys, threading, time
import numpy as np
import ckce

n, m, delay = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
rng = np.random.default_rng(0)
q = rng.dirichlet(np.ones(m), n)
y, w = rng.integers(0, m, n), rng.random(n)

def megabytes(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))

def resample(count=10**6):
    ckce.calibration_test(y, q, n_resamples=count, bandwidth=0.3)

def median():
    while True:
        ckce.median_bandwidth(q, sample_weight=w)

call = {"resample": resample, "median": median}[sys.argv[1]]
resample(4100)
before = megabytes("VmHWM")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
pressed = []

def press():
    pressed.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(delay, press).start()
try:
    call()
    print(json.dumps("finished"))
except KeyboardInterrupt:
    print(json.dumps([time.monotonic() - pressed[0], megabytes("VmHWM") - before]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("delay", [0.1, 0.6])
@pytest.mark.parametrize(
    ("call", "n", "m"),
    [("resample", 300, 2), ("resample", 300, 3), ("resample", 2000, 10), ("median", 5000, 10)],
)
def test_a_million_resamples_take_little_memory_and_listen(call, n, m, delay):
    command = [sys.executable, "-c", MANY, call, str(n), str(m), str(delay)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    assert answer != "finished", "the call was too short to be interrupted"
    seconds, megabytes = answer
    assert seconds < 0.5
    assert megabytes < 100


def exact(progress, n=6000, n_threads=2):
    y, q = sample(n, 5)
    return _core.ckce_exact(
        *(q, y, None, None),
        kernel=_core.Kernel("laplace", 0.5),
        ridge=n**0.75,
        tol=1e-10,
        solver=_core.Solver.iterate,
        full=False,
        n_threads=n_threads,
        progress=progress,
    )


class Refused(Exception):
    pass


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_an_error_in_the_progress_report_comes_through(n_threads):
    def progress(fraction):
        raise Refused(fraction)

    with pytest.raises(Refused):
        exact(progress, n_threads=n_threads)
    assert exact(None, n_threads=n_threads).value > 0


def test_progress_is_reported_from_the_calling_thread():
    reports = []

    def progress(fraction):
        reports.append((fraction, threading.current_thread()))

    silent, reported = exact(None), exact(progress)
    assert reported.value == silent.value
    assert reports
    assert all(0.0 <= fraction <= 1.0 for fraction, _ in reports)
    assert {thread for _, thread in reports} == {threading.current_thread()}


@pytest.mark.parametrize("function", [ckce.ckce, ckce.estimate, ckce.jkce])
def test_progress_bar(function, capsys):
    y, q = sample(2500, 3)
    options = {"method": "exact"}
    assert function(y, q, progress=True, **options) == function(y, q, **options)
    shown = capsys.readouterr().err
    assert "exact" in shown
    assert "100%" in shown


@pytest.mark.parametrize("method", ["fourier", "cholesky"])
def test_progress_bar_of_other_methods(method, capsys):
    y, q = sample(300, 3)
    assert ckce.ckce(y, q, method=method, progress=True) == ckce.ckce(y, q, method=method)
    assert f"CKCE {method}" in capsys.readouterr().err


def test_no_progress_bar_unless_wanted(capsys):
    ckce.ckce(*sample(300, 3))
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_shows_on_a_terminal_after_a_while(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar(None, "soon over") as report:
        report(0.5)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(_progress, "_PATIENCE", 1e-9)
    with progress_bar(None, "a long call") as report:
        report(0.5)
    assert "a long call" in terminal.getvalue()
    with progress_bar(False, "") as report:
        assert report is None
    with pytest.raises(TypeError, match="progress must be True or False, got 1"):
        ckce.ckce(*sample(30, 3), progress=1)


def test_nobody_asked_for_a_bar(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # of another test
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.delitem(sys.modules, "tqdm", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with progress_bar(None, "") as report:
        assert report is None
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # a file
    with progress_bar(None, "") as report:
        assert report is None


def test_progress_without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    y, q = sample(30, 3)
    with pytest.raises(ImportError, match="progress=True needs tqdm: pip install tqdm"):
        ckce.ckce(y, q, progress=True)
    assert ckce.ckce(y, q, progress=False) > 0


def test_an_error_in_a_callable_kernel_comes_through():
    def kernel(p, q):
        raise Refused

    with pytest.raises(Refused):
        ckce.ckce(*sample(30, 3), kernel=kernel)


def test_concurrent_calls():
    y, q = sample(2500, 4)
    expected = ckce.ckce(y, q, method="exact")
    values = []
    threads = [
        threading.Thread(target=lambda: values.append(ckce.ckce(y, q, method="exact")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [expected] * 4


def test_no_memory_is_a_memory_error():
    # 8 PB of frequencies cannot be had; the process must survive.
    with pytest.raises(MemoryError):
        _core.draw_frequencies(
            sampler="gaussian",
            spectrum=_core.Spectrum.gaussian,
            n_frequencies=10**10,
            n_classes=10**5,
            seed=0,
        )
    assert np.isfinite(ckce.ckce(*sample(30, 3)))
