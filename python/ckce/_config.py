"""Threads, and what was chosen for this machine."""

import os
import platform
import sys

import numpy as np

from ckce import _core


def resolve_threads(n_threads: int | None) -> int:
    """`n_threads`, else CKCE_NUM_THREADS, else the CPUs this process may use."""
    if n_threads is not None:
        return _positive_int("n_threads", n_threads)
    from_environment = os.environ.get("CKCE_NUM_THREADS")
    if from_environment is not None:
        return _positive_int("CKCE_NUM_THREADS", from_environment)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _positive_int(name: str, value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isdigit() or not 1 <= int(text) <= 1024:
        raise ValueError(f"{name} must be an integer from 1 to 1024, got {value!r}")
    return int(text)


def show_config() -> None:
    """Print what ckce runs on: compiled core, threads, versions.

    Examples
    --------
    >>> import ckce
    >>> ckce.show_config()  # doctest: +ELLIPSIS
    ckce     0.1.0
    core     ...
    threads  ...
    numpy    ...
    python   ...
    """
    from ckce import __version__

    print(f"ckce     {__version__}")
    print(f"core     {_core.LEVEL} (CKCE_LEVEL forces one)")
    print(f"threads  {resolve_threads(None)} (CKCE_NUM_THREADS or n_threads= sets them)")
    print(f"numpy    {np.__version__}")
    print(f"python   {sys.version.split()[0]} on {platform.system()} {platform.machine()}")
