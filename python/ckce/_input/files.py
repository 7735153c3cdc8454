"""How files are written: whole or not at all."""

import contextlib
import os
import re
import stat
import sys
from collections.abc import Iterable
from typing import Any

#: Names that the system has for files that are open, once their folder is a real path.
_OPEN_FILE = re.compile(r"(?:/dev|/proc/(\d+)(?:/task/\d+)?)/fd/(\d+)")
_MOST_LINKS = 40  # the limit of Linux


def is_standard_output(path: Any) -> bool:
    """Whether it is ``-``, or a name that the system has for it."""
    name = os.fsdecode(path)
    return name == "-" or _open_file(name) == 1


def is_regular(path: Any) -> bool:
    """Whether it is a file or will be one: no pipe, device or open file. Refuses what cannot be written."""
    name = os.fsdecode(path)
    if name == "-":
        return False
    if _open_file(name) is not None:
        os.stat(name)  # raises if it is closed
        return False
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{name} is a directory; name a file in it")
    if not stat.S_ISREG(mode):
        return False
    if os.path.basename(name) in ("", ".", ".."):
        raise ValueError(f"path must name a file, got {name!r}")
    folder = os.path.dirname(os.path.realpath(name))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"the folder {folder} of {name} does not exist; make it")
    return True


def write_file(path: Any, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file so that at any moment either the old one or the new one is there, whole.

    A link is written through, and a file keeps its mode, owner and group. Devices and pipes are
    written to as they are, open files (``/dev/fd/3``) where they stand, and ``-`` is standard output.
    """
    name = os.fsdecode(path)
    try:
        if is_regular(name):
            _replace(name, pieces)
        else:
            _write_through(name, pieces)
    except OSError as error:
        if error.errno is None:  # ours, with its own words
            raise
        raise OSError(error.errno, error.strerror, name) from None


def _open_file(name: str) -> int | str | None:
    """The open file that a path, or a link on its way, stands for: a number, or the path of a process."""
    for _ in range(_MOST_LINKS):
        folder, base = os.path.split(name)
        name = os.path.join(os.path.realpath(folder), base)
        if found := _OPEN_FILE.fullmatch(name):
            return int(found[2]) if found[1] in (None, str(os.getpid())) else name
        if not os.path.islink(name):
            break
        name = os.path.join(os.path.dirname(name), os.readlink(name))
    return None


def _write_through(name: str, pieces: Iterable[bytes | memoryview]) -> None:
    """What others wrote stays, and what they write next comes behind."""
    if name == "-" and not hasattr(sys.stdout, "buffer"):
        raise ValueError(f"path must name a file where sys.stdout takes no bytes, got {name!r}")
    if is_standard_output(name) and sys.stdout is not None:
        sys.stdout.flush()  # what was printed before stands before
    if name == "-":
        buffer = sys.stdout.buffer  # nothing may wait in it: what fails must fail here
        _write_all(getattr(buffer, "raw", buffer), pieces)
        return
    target = _open_file(name)
    if isinstance(target, int):
        descriptor = os.dup(target)  # with the position of the others
    else:
        descriptor = os.open(name, os.O_WRONLY | os.O_APPEND)
    with open(descriptor, "wb", buffering=0) as file:
        _write_all(file, pieces)


def _write_all(file: Any, pieces: Iterable[bytes | memoryview]) -> None:
    """A pipe takes what it has room for."""
    for piece in pieces:
        left = memoryview(piece).cast("B")
        while left:
            left = left[file.write(left) :]


def _replace(name: str, pieces: Iterable[bytes | memoryview]) -> None:
    target = os.path.realpath(name)
    folder, base = os.path.split(target)
    temporary = os.path.join(folder, f".{base[:50]}.{os.urandom(8).hex()}.tmp")
    old = os.stat(target) if os.path.exists(target) else None
    private = 0o666 if old is None else 0o600  # until it has the mode of the old one

    def create(path: str, flags: int) -> int:
        try:
            return os.open(path, flags, private)
        except PermissionError as error:
            raise PermissionError(
                f"the folder {folder} of {name} must be writable: {error.strerror}"
            ) from None

    try:
        with open(temporary, "xb", opener=create) as file:  # x: what is there is not ours
            for piece in pieces:
                file.write(piece)
            if old is not None:
                _resemble(file.fileno(), old)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except FileExistsError:
        raise
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):  # a folder that cannot be opened was still written to
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)  # the new name must reach the disk, too
        finally:
            os.close(directory)


def _resemble(descriptor: int, old: os.stat_result) -> None:
    """The owner and the group, where we may give them, and the mode."""
    new = os.stat(descriptor)
    for owner in {(-1, old.st_gid), (old.st_uid, -1)} - {(-1, new.st_gid), (new.st_uid, -1)}:
        with contextlib.suppress(OSError):
            os.chown(descriptor, *owner)
    os.chmod(descriptor, stat.S_IMODE(old.st_mode))
