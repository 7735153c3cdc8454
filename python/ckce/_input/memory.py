"""Before a call that needs much memory: is there enough? Better an error now than a machine that swaps."""

import contextlib
import os
from collections.abc import Callable

SMALL = 256 << 20  # what is below is tried without asking
KEPT_FREE = 64 << 20  # what the allocator may keep of what a call has freed, see base/memory.hpp


def check_memory(
    needed: float, what: str | Callable[[], str], advice: str | Callable[[float], str]
) -> None:
    """Refuse what does not fit: `needed` bytes for `what`; advice may depend on what is available."""
    if needed < SMALL:
        return
    available = available_memory()
    if needed > available:
        what = what if isinstance(what, str) else what()
        advice = advice if isinstance(advice, str) else advice(available)
        raise MemoryError(
            f"{what} needs about {needed / 1e9:.3g} GB of memory, {available / 1e9:.3g} GB are "
            f"available; {advice}"
        )


def available_memory() -> float:
    """Bytes that this process can still take without swapping; inf where nobody knows."""
    return max(0.0, min(_of_the_machine(), _of_the_container(), _of_the_process()))


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def _of_the_machine() -> float:
    with contextlib.suppress(OSError):
        for line in _text("/proc/meminfo").splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024.0
    with contextlib.suppress(AttributeError, OSError, ValueError):  # not on Windows
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    return float("inf")


def _of_the_container(root: str = "/") -> float:
    """The least of what the groups of this process leave, for containers and the jobs of clusters."""
    left = float("inf")
    with contextlib.suppress(OSError):
        for line in _text(f"{root}proc/self/cgroup").splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers == "":
                base, limit, taken = "sys/fs/cgroup", "memory.max", "anon"
            elif "memory" in controllers.split(","):
                base, limit, taken = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "total_rss"
            else:
                continue
            parts = [part for part in group.split("/") if part]
            # Inside of a container `group` may be a path of the host: then only "" is there.
            for depth in range(len(parts) + 1):
                folder = "/".join([f"{root}{base}", *parts[:depth]])
                left = min(left, _of_the_group(f"{folder}/{limit}", f"{folder}/memory.stat", taken))
    return left


def _of_the_group(limit: str, statistics: str, taken: str) -> float:
    with contextlib.suppress(OSError, ValueError):
        bytes_ = float(_text(limit))  # "max" where there is none
        for line in _text(statistics).splitlines():
            word, _, number = line.partition(" ")
            if word == taken:
                return bytes_ - float(number)
    return float("inf")


def _of_the_process() -> float:
    with contextlib.suppress(ImportError, OSError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            pages = int(_text("/proc/self/statm").split()[0])
            return float(limit) - pages * resource.getpagesize()
    return float("inf")
