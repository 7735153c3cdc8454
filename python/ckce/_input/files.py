"""How files are written: whole or not at all."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterable
from typing import Any

_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def is_standard_output(path: Any) -> bool:
    """Whether it is ``-``, or one of the names that the system has for it."""
    return os.fsdecode(path) in _STDOUT


def write_file(path: Any, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file so that at any moment either the old one or the new one is there, whole.

    A link is written through, and a file keeps its mode. Devices and pipes are written to as they
    are, and ``-`` is standard output.
    """
    name = os.fsdecode(path)
    if is_standard_output(name):
        sys.stdout.flush()
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    try:
        mode = os.stat(name).st_mode  # not of the real path: /dev/fd/3 has none if it is a pipe
    except FileNotFoundError:
        mode = None
    if mode is None or stat.S_ISREG(mode):
        _replace(os.path.realpath(name), pieces, mode)
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{name} is a directory; name a file in it")
    with open(name, "wb", buffering=0) as file:
        for piece in pieces:
            _write_all(file, memoryview(piece))


def _write_all(file: Any, piece: memoryview) -> None:
    """A pipe takes what it has room for."""
    left = piece.cast("B")
    while left:
        left = left[file.write(left) :]


def _replace(target: str, pieces: Iterable[bytes | memoryview], mode: int | None) -> None:
    folder, base = os.path.split(target)
    temporary = os.path.join(folder, f".{base[:50]}.{os.urandom(8).hex()}.tmp")
    private = 0o666 if mode is None else 0o600  # until it has the mode of the old one

    def create(path: str, flags: int) -> int:
        return os.open(path, flags, private)

    try:
        with open(temporary, "xb", opener=create) as file:  # x: what is there is not ours
            for piece in pieces:
                file.write(piece)
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except FileExistsError:
        raise
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if os.name == "posix":  # the new name must reach the disk, too
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
