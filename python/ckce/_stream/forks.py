"""A fork waits until nobody is inside an accumulator: the child would wait for ever for its lock."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator

_LOCKS: weakref.WeakSet[threading.RLock] = weakref.WeakSet()
_TAKEN: list[threading.RLock] = []


class Lock:
    """A lock that no fork finds taken, and that its own thread is refused.

    A signal handler runs in the middle of a call: it would wait for ever for the call to end.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a handler may fork
        _LOCKS.add(self._lock)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else is inside."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            raise RuntimeError(
                "the accumulator is at work in this thread: a signal handler cannot use it; let the "
                "handler set a flag, and use the accumulator after the call"
            )
        with self._lock:
            yield


def _before() -> None:
    for lock in list(_LOCKS):
        lock.acquire()
        _TAKEN.append(lock)


def _after() -> None:
    while _TAKEN:
        _TAKEN.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
