"""State files: a configuration and arrays, with a checksum; no pickle inside.

The format is written down in docs/state_files.md. Readers check the length and the checksum of the
whole before they look at what it says, so a damaged file is refused, never misread.
"""

import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\x89CKCE\r\n\x1a"  # not ASCII, and broken by a transfer that changes line ends
VERSION = 4  # the newest; 2 has landmarks, 3 log-probabilities and cells, 4 reductions
_PREFIX = 32  # magic, version, header's length, total length
_DIGEST = 32
_ALIGN = 64
_DTYPES = ("<f8", "<i8")
# What a forged header makes Python raise.
DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)

Arrays = Mapping[str, NDArray[Any]]


def encode(header: Mapping[str, Any], arrays: Arrays, version: int) -> Iterator[bytes | memoryview]:
    """The bytes of a state, piece by piece; `version` is the oldest that can say this."""
    import hashlib  # 4 ms that importing ckce should not cost

    table: list[dict[str, Any]] = []
    pieces: list[memoryview] = []
    offset = 0
    for name, array in arrays.items():
        dtype = "<f8" if array.dtype.kind == "f" else "<i8"
        data = np.ascontiguousarray(array, dtype=dtype)
        table.append({"name": name, "dtype": dtype, "shape": array.shape, "offset": offset})
        padding = bytes(-data.nbytes % _ALIGN)
        pieces += [data.reshape(-1).view(np.uint8).data, memoryview(padding)]
        offset += data.nbytes + len(padding)
    text = json.dumps({**header, "arrays": table}, allow_nan=False).encode()
    text += b" " * (-(_PREFIX + len(text)) % _ALIGN)
    total = _PREFIX + len(text) + offset + _DIGEST
    prefix = b"".join(
        [
            MAGIC,
            version.to_bytes(8, "little"),
            len(text).to_bytes(8, "little"),
            total.to_bytes(8, "little"),
        ]
    )
    checksum = hashlib.sha256()
    whole: list[bytes | memoryview] = [prefix, text, *pieces]
    for piece in whole:
        checksum.update(piece)
        yield piece
    yield checksum.digest()


def _check_prefix(prefix: bytes, length: int, name: str) -> None:
    """Refuse what cannot be a whole state of a known version."""
    if not prefix.startswith(MAGIC[: len(prefix)]) or not prefix:
        what = f"starts with {prefix[: len(MAGIC)]!r}" if prefix else "is empty"
        raise ValueError(f"{name} is not a ckce state: it {what}")
    if len(prefix) < _PREFIX:
        raise ValueError(f"{name} is truncated: {length} bytes are not even a header")
    version = int.from_bytes(prefix[8:16], "little")
    if version > VERSION or version < 1:
        raise ValueError(
            f"{name} has format version {version}, this ckce reads versions up to {VERSION}: it "
            "was written by a newer ckce, or is damaged"
        )
    total = int.from_bytes(prefix[24:32], "little")
    if total != length:
        kind = "truncated" if length < total else "damaged"
        raise ValueError(f"{name} is {kind}: it has {length} bytes and should have {total}")


def _finite(text: str) -> float:
    """A number of a header, which holds no NaN and no infinity."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text}")
    return number


def decode(
    data: bytes | bytearray | memoryview, name: str
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a state; `name` is what errors call it."""
    import hashlib

    try:
        view = memoryview(data).cast("B")
    except TypeError:
        raise TypeError(f"{name} must be bytes, got {type(data).__name__}") from None
    _check_prefix(bytes(view[:_PREFIX]), len(view), name)
    if hashlib.sha256(view[:-_DIGEST]).digest() != view[-_DIGEST:]:
        raise ValueError(f"{name} is damaged: its SHA-256 checksum does not match its contents")
    start = _PREFIX + int.from_bytes(view[16:24], "little")
    try:
        text = bytes(view[_PREFIX:start])
        header = json.loads(text, parse_float=_finite, parse_constant=_finite)
        arrays = {}
        for entry in header.pop("arrays"):
            if entry["dtype"] not in _DTYPES:
                raise ValueError(f"dtype {entry['dtype']!r}")
            shape = tuple(int(size) for size in entry["shape"])
            offset, count = int(entry["offset"]), math.prod(shape)
            if min((offset, *shape)) < 0:
                raise ValueError(f"array {entry['name']!r} at {offset} of shape {shape}")
            body = view[start + offset : min(start + offset + 8 * count, len(view) - _DIGEST)]
            array = np.frombuffer(body, entry["dtype"]).reshape(shape)
            arrays[str(entry["name"])] = array.astype(array.dtype.newbyteorder("="), copy=False)
    except DAMAGE as error:
        raise ValueError(f"{name} is not a ckce state that can be read: {error}") from None
    return header, arrays


def read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a state file; a file that is none is refused before it is read whole."""
    if not isinstance(path, (str, bytes, os.PathLike)):  # an integer would be an open file
        raise TypeError(f"path must be a path, got {path!r}")
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a folder is refused by its own name
        raise ValueError(f"{os.fsdecode(path)} must be a regular file: its length is checked first")
    with open(path, "rb") as file:
        _check_prefix(file.read(_PREFIX), os.fstat(file.fileno()).st_size, os.fsdecode(path))
        file.seek(0)
        return file.read()
