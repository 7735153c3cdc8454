"""The compiled core for this CPU.

One source is compiled for several x86-64 levels; the best that exists and that the CPU has is loaded
here. The environment variable CKCE_LEVEL (v2, v3, v4) forces one.
"""

import importlib
import importlib.util
import os

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


LEVEL = _choose_level()
_module = importlib.import_module(f"ckce._core_{LEVEL}")
globals().update({name: getattr(_module, name) for name in dir(_module) if name[0] != "_"})
