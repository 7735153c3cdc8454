"""Arrays in npy and npz files, in blocks of rows.

A file is a claim: the header's length, the shape and the sizes in a zip directory are compared with
what the file can hold before anything is allocated. Pickles are never read.
"""

import io
import math
import os
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckce._input import listed, nearest

_HEADER_LIMIT = 10_000  # bytes; numpy's own limit
_WHOLE_LIMIT = 2**30  # bytes of a compressed array in Fortran order, which cannot come in rows
_CHUNK = 2**24


class _Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    size: int  # bytes before the data

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def data_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _read_header(file: IO[bytes], where: str, total: int) -> _Header:
    """Header of an array of `total` bytes, whose data fill exactly the rest."""
    start = file.read(12)
    if len(start) < 12 or start[:6] != b"\x93NUMPY":
        raise ValueError(f"{where} is not a numpy array; write it with np.save or np.savez")
    version = start[6]
    if version not in (1, 2):
        raise ValueError(f"{where} has npy version {version}, expected 1 or 2; save it again")
    prefix, code = (10, "<H") if version == 1 else (12, "<I")
    length = int(struct.unpack_from(code, start, 8)[0])
    if length > _HEADER_LIMIT:
        raise ValueError(
            f"{where} has a header of {length} bytes, expected at most {_HEADER_LIMIT}: the file is "
            "damaged or hostile"
        )
    raw = io.BytesIO(start + file.read(max(0, prefix + length - 12)))
    try:
        np.lib.format.read_magic(raw)
        read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
        shape, fortran, dtype = read[version](raw)
    except Exception:  # numpy lets errors of the parser and the tokenizer through
        raise ValueError(f"{where} has a damaged npy header; save it again") from None
    if dtype.hasobject:
        raise ValueError(
            f"{where} holds Python objects, which are never unpickled; save numbers or fixed strings"
        )
    if dtype.kind not in "biufUS" or dtype.itemsize == 0:
        raise ValueError(f"{where} must hold numbers or strings, got dtype {dtype}")
    header = _Header(tuple(int(size) for size in shape), dtype, fortran, prefix + length)
    held = total - header.size
    if min(header.shape, default=0) < 0 or header.data_bytes != held:
        raise ValueError(
            f"{where} declares shape {header.shape} of {dtype}, which is {header.data_bytes} bytes, "
            f"but holds {held}: the file is cut off or damaged"
        )
    return header


class ArrayFile(ABC):
    """An array of a file: its shape and dtype, and its rows in blocks."""

    def __init__(self, where: str, header: _Header) -> None:
        self.where = where
        self.shape, self.dtype = header.shape, header.dtype
        self.row_bytes = header.row_bytes
        self._header = header

    @abstractmethod
    def blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        """Consecutive blocks of at most `rows` rows."""

    def whole(self) -> NDArray[Any] | None:
        """All of it if that costs no memory, else None."""
        return None


class _Mapped(ArrayFile):
    """Uncompressed data, mapped into memory."""

    def __init__(self, where: str, header: _Header, path: Path, offset: int) -> None:
        super().__init__(where, header)
        self._path, self._offset = path, offset

    def whole(self) -> NDArray[Any]:
        order: Any = "F" if self._header.fortran else "C"
        mapped = np.memmap(self._path, self.dtype, "r", self._offset, self.shape, order)
        return mapped.view(np.ndarray)

    def blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        array = self.whole()
        for start in range(0, self.shape[0], rows):
            yield array[start : start + rows]


class _Deflated(ArrayFile):
    """A compressed member of a zip archive."""

    def __init__(self, where: str, header: _Header, path: Path, member: str) -> None:
        super().__init__(where, header)
        self._path, self._member = path, member
        if header.fortran and len(header.shape) > 1 and header.data_bytes > _WHOLE_LIMIT:
            raise ValueError(
                f"{where} is compressed in Fortran order, so its {header.data_bytes} bytes cannot be "
                "read in rows; save np.ascontiguousarray of it, or use np.savez"
            )

    def blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        with zipfile.ZipFile(self._path) as archive, archive.open(self._member) as file:
            self._read(file, self._header.size)
            if self._header.fortran and len(self.shape) > 1:
                data = self._read(file, self._header.data_bytes)
                array = np.frombuffer(data, self.dtype).reshape(self.shape, order="F")
                for start in range(0, self.shape[0], rows):
                    yield array[start : start + rows]
                return
            for start in range(0, self.shape[0], rows):
                count = min(rows, self.shape[0] - start)
                data = self._read(file, count * self.row_bytes)
                yield np.frombuffer(data, self.dtype).reshape(count, *self.shape[1:])

    def _read(self, file: IO[bytes], size: int) -> bytes:
        try:
            data = file.read(size)  # the last byte makes zipfile compare the checksum
        except (zlib.error, zipfile.BadZipFile, EOFError, OSError):
            data = b""
        if len(data) != size:
            raise ValueError(f"{self.where} is damaged: its bytes do not match their checksum")
        return data


def open_array(path: Path) -> ArrayFile:
    """The array of an npy file."""
    with path.open("rb") as file:
        header = _read_header(file, str(path), os.fstat(file.fileno()).st_size)
    return _Mapped(str(path), header, path, header.size)


def open_member(path: Path, keys: tuple[str, ...], argument: str) -> ArrayFile:
    """The first array of an npz file that has one of the names."""
    with path.open("rb") as stream:
        try:
            archive = zipfile.ZipFile(stream)
        except Exception:  # zipfile raises many kinds for a damaged directory
            raise ValueError(f"{path} is not an npz file; write it with np.savez") from None
        known = [name.removesuffix(".npy") for name in archive.namelist()]
        key = next((key for key in keys if key in known), None)
        if key is None:
            raise ValueError(
                f"{path} has no array {keys[0]!r}, it holds {listed(known)}"
                + (nearest(keys[0], known) or f"; name one with {argument}=")
            )
        member = key if key in archive.namelist() else f"{key}.npy"
        info, where = archive.getinfo(member), f"{path} array {key!r}"
        if info.flag_bits & 1:
            raise ValueError(f"{where} is encrypted; save it again without a password")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{where} is not compressed by numpy; write it with np.savez")
        try:
            with archive.open(member) as file:
                header = _read_header(file, where, info.file_size)
        except ValueError:
            raise
        except Exception:  # for a damaged member, too
            raise ValueError(f"{where} is damaged; save it again") from None
    if info.compress_type == zipfile.ZIP_DEFLATED:
        return _Deflated(where, header, path, member)
    start = _data_offset(path, info, where)
    return _Mapped(where, header, path, start + header.size)


def _data_offset(path: Path, info: zipfile.ZipInfo, where: str) -> int:
    """Where a stored member begins, after comparing its checksum, which a mapping would not do."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        local = file.read(30)
        name_length, extra_length = struct.unpack_from("<HH", local, 26)
        start = info.header_offset + 30 + int(name_length) + int(extra_length)
        file.seek(start)
        checksum, left = 0, info.file_size
        while left and (chunk := file.read(min(_CHUNK, left))):
            checksum, left = zlib.crc32(chunk, checksum), left - len(chunk)
    if left or checksum != info.CRC:
        raise ValueError(f"{where} is damaged: its bytes do not match their checksum")
    return start
