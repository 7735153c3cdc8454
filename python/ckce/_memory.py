"""Before a call that needs much memory: is there enough? Better an error now than a machine that swaps."""

import contextlib
import os
from pathlib import Path

SMALL = 256 << 20  # what is below is tried without asking


def check_memory(needed: float, what: str, advice: str) -> None:
    """Refuse what does not fit: `needed` bytes for `what`."""
    if needed < SMALL:
        return
    available = available_memory()
    if needed > available:
        raise MemoryError(
            f"{what} needs about {needed / 1e9:.3g} GB of memory, {available / 1e9:.3g} GB are "
            f"available; {advice}"
        )


def available_memory() -> float:
    """Bytes that this process can still take without swapping; inf where nobody knows."""
    return max(0.0, min(_of_the_machine(), _of_the_container(), _of_the_process()))


def _of_the_machine() -> float:
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024.0
    with contextlib.suppress(AttributeError, OSError, ValueError):  # not on Windows
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    return float("inf")


def _of_the_container() -> float:
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):
        limit = float((group / "memory.max").read_text())  # "max" where there is none
        for line in (group / "memory.stat").read_text().splitlines():
            if line.startswith("anon "):
                return limit - float(line.split()[1])
    return float("inf")


def _of_the_process() -> float:
    with contextlib.suppress(ImportError, OSError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return float(limit) - pages * resource.getpagesize()
    return float("inf")
