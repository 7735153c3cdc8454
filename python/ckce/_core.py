"""The compiled core for this CPU.

One source is compiled for several x86-64 levels; the best that exists and that the CPU has is loaded
here. The environment variable CKCE_LEVEL (v2, v3, v4) forces one.
"""

import atexit
import importlib
import importlib.util
import os
import threading
from types import ModuleType

from ckce import _cpu

_LEVELS = ("baseline", "v2", "v3", "v4")
BUILT = [name for name in _LEVELS if importlib.util.find_spec(f"ckce._core_{name}")]


def _choose_level() -> str:
    best = _cpu.level()
    usable = [name for name in BUILT if best in _LEVELS[_LEVELS.index(name) :]]
    forced = os.environ.get("CKCE_LEVEL")
    if forced:
        if forced not in usable:
            raise ImportError(
                f"CKCE_LEVEL must be one of {usable} (built, and within this CPU's level "
                f"{best!r}), got {forced!r}"
            )
        return forced
    if not usable:
        raise ImportError(f"ckce was built for {BUILT}, this CPU has level {best!r}")
    return usable[-1]


def _load(level: str) -> ModuleType:
    """The module; the interpreter waits for it at its end.

    A daemon thread may load it, and waits for the GIL meanwhile. Python (up to 3.13) would end the thread
    there, in a place of pybind11 that cannot be left: the process would abort.
    """
    loaded = threading.Event()
    atexit.register(loaded.wait)
    try:
        return importlib.import_module(f"ckce._core_{level}")
    finally:
        loaded.set()
        atexit.unregister(loaded.wait)


LEVEL = _choose_level()
_module = _load(LEVEL)
globals().update({name: getattr(_module, name) for name in dir(_module) if name[0] != "_"})
