"""Progress bars (tqdm), where somebody may be waiting."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from ckce._input import check_bool

Progress = Callable[[float], None]
_PATIENCE = 2.0  # seconds before a bar shows that nobody asked for


#: Where there is nobody to tell.
_NOBODY = contextlib.nullcontext()


def progress_bar(
    wanted: bool | None, text: str
) -> contextlib.AbstractContextManager[Progress | None]:
    """A function of the fraction done; None where there is nobody to tell.

    `wanted`: True or False, or None for a bar on a terminal or in a notebook after two seconds.
    """
    if not (_watched() if wanted is None else check_bool("progress", wanted)):
        return _NOBODY
    return _shown(text, patience=_PATIENCE if wanted is None else 0.0)


@contextlib.contextmanager
def _shown(text: str, patience: float) -> Iterator[Progress]:
    bar = _Bar(text, patience)
    try:
        yield bar
        bar(1.0)
    finally:
        bar.close()


def part(progress: Progress | None, start: float, end: float) -> Progress | None:
    """The share of a bar from `start` to `end`."""
    if progress is None:
        return None
    return lambda fraction: progress(start + (end - start) * fraction)


def _watched() -> bool:
    """On a terminal or in a notebook, with tqdm at hand."""
    terminal = getattr(sys.stderr, "isatty", None)
    if "ipykernel" not in sys.modules and not (terminal is not None and terminal()):
        return False
    if "tqdm" in sys.modules:
        return True
    from importlib.util import find_spec

    return find_spec("tqdm") is not None


class _Bar:
    def __init__(self, text: str, patience: float) -> None:
        self._text, self._patience = text, patience
        self._start = time.monotonic()
        self._bar: Any = None
        if patience == 0.0:
            self._open()

    def _open(self) -> None:
        try:
            from tqdm import tqdm  # not tqdm.auto, which warns in notebooks without ipywidgets
        except ImportError:
            raise ImportError("progress=True needs tqdm: pip install tqdm") from None
        self._bar = tqdm(
            total=100,
            desc=self._text,
            unit="%",
            bar_format="{l_bar}{bar}| {elapsed}",
            leave=self._patience == 0.0,
        )

    def __call__(self, fraction: float) -> None:
        if self._bar is None:
            if time.monotonic() - self._start < self._patience or fraction >= 1.0:
                return
            self._open()
        self._bar.update(max(0.0, 100.0 * fraction - self._bar.n))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
