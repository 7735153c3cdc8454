"""Time in turns, memory in a process of its own."""

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent


@dataclass
class Contender:
    """Something that computes the value; `rounds` limits how often a slow one runs."""

    name: str
    call: Callable[[], float]
    rounds: int = 5


@dataclass
class Timing:
    """Seconds per call in each round, the value, or why there is none."""

    seconds: list[float] = field(default_factory=list)
    value: float = float("nan")
    error: str = ""

    @property
    def best(self):
        return min(self.seconds, default=float("nan"))

    @property
    def median(self):
        return median(self.seconds) if self.seconds else float("nan")


def interleave(contenders, rounds=5, least=0.2, rest=0.1):
    """Time contenders in turns, so that a slow moment of the machine hits all of them alike.

    A round calls each one until `least` seconds have passed (timeit's way: short calls are averaged)
    after a pause that lets the BLAS threads of the one before stop spinning. Calls shorter than that
    get three times the rounds: a moment of others' work spoils all of a round for them.
    """
    timings = {contender.name: Timing() for contender in contenders}
    for number in range(3 * rounds):
        for contender in contenders:
            timing = timings[contender.name]
            times = 3 if timing.best < least else 1
            if timing.error or number >= times * min(rounds, contender.rounds):
                continue
            time.sleep(rest)
            try:
                if number == 0 and contender.rounds > 1:
                    contender.call()
                    time.sleep(rest)
                calls = 0
                start = time.perf_counter()
                while True:
                    timing.value = contender.call()
                    calls += 1
                    elapsed = time.perf_counter() - start
                    if elapsed >= least:
                        break
                timing.seconds.append(elapsed / calls)
            except Exception as error:  # one contender must not end the run of all
                timing.error = f"{type(error).__name__}: {error}".splitlines()[0][:120]
                print(f"    {contender.name}: {timing.error}", file=sys.stderr)
    return timings


def _status(name):
    """A line of /proc/self/status, bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


class PeakMemory:
    """Growth of the resident memory inside a with block: its peak, and the anonymous part."""

    def __enter__(self):
        # Freed memory that the allocator keeps would hide growth, and so would a peak of the past.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._before, self._anonymous = _status("VmRSS"), _status("RssAnon")
        self._peak_anonymous = self._anonymous
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def _sample(self):
        while not self._stop.wait(0.002):
            self._peak_anonymous = max(self._peak_anonymous, _status("RssAnon"))

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self.rss = _status("VmHWM") - self._before
        self.anonymous = self._peak_anonymous - self._anonymous


def memory(workload, contender, quick):
    """Extra memory of one call in a fresh process, {"rss": bytes, "anonymous": bytes} or None."""
    if not Path("/proc/self/status").exists():
        return None
    command = [sys.executable, str(HERE / "memory.py"), workload, contender]
    done = subprocess.run(
        command + ["--quick"] * quick, capture_output=True, text=True, env=os.environ, check=False
    )
    if done.returncode != 0:
        print(f"    memory of {contender}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])
