"""A fork waits until nobody is inside an accumulator: the child would wait for ever for its lock."""

from __future__ import annotations

import os
import threading
import weakref

_LOCKS: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_TAKEN: list[threading.Lock] = []


def make_lock() -> threading.Lock:
    """A lock that no fork finds taken."""
    lock = threading.Lock()
    _LOCKS.add(lock)
    return lock


def _before() -> None:
    for lock in list(_LOCKS):
        lock.acquire()
        _TAKEN.append(lock)


def _after() -> None:
    while _TAKEN:
        _TAKEN.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
