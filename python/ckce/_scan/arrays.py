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

from ckce._input import InputError, listed
from ckce._scan.columns import NAME_IT, Wanted, suggest
from ckce._scan.formats import File, Rows

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
    if dtype.hasobject:  # only unpickling could read it
        return _Header(shape, dtype, fortran, prefix + length)
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

    def all(self) -> NDArray[Any]:
        """All of it, for labels and weights."""
        mapped = self.whole()
        if mapped is not None:
            return as_text(mapped, self.where)
        if self._header.data_bytes > _WHOLE_LIMIT:
            raise ValueError(
                f"{self.where} holds {self._header.data_bytes} bytes, compressed; save it with np.save"
            )
        return as_text(np.concatenate(list(self.blocks(max(1, self.shape[0])))), self.where)


def as_text(array: NDArray[Any], where: str) -> NDArray[Any]:
    """Bytes as the text that they are."""
    if array.dtype.kind != "S":
        return array
    try:
        return np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} must hold text in UTF-8, got {bytes(error.object)!r}") from None


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


def open_array(file: File) -> ArrayFile:
    """The array of an npy file."""
    with file.path.open("rb") as stream:
        header = _read_header(stream, file.name, os.fstat(stream.fileno()).st_size)
        _refuse_objects(header, file.name)
    return _Mapped(file.name, header, file.path, header.size)


def _members(archive: zipfile.ZipFile, name: str) -> dict[str, str]:
    """Members of an npz file by the names of their arrays."""
    members: dict[str, str] = {}
    for member in archive.namelist():
        key = member.removesuffix(".npy")
        if key in members:
            raise ValueError(f"{name} must hold each array once, got {key!r} twice")
        members[key] = member
    return members


def _open_archive(stream: IO[bytes], name: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stream)
    except Exception:  # zipfile raises many kinds for a damaged directory
        raise ValueError(f"{name} is not an npz file; write it with np.savez") from None


def open_member(file: File, keys: tuple[str, ...], argument: str) -> ArrayFile:
    """The first array of an npz file that has one of the names."""
    with file.path.open("rb") as stream:
        archive = _open_archive(stream, file.name)
        members = _members(archive, file.name)
        found = [key for key in keys if key in members]
        if len(found) > 1:
            raise InputError(
                f"{file.name} must hold one of the arrays {found[0]!r} and {found[1]!r}, got both",
                (NAME_IT[argument][0], f"name one with {argument}="),
            )
        if not found:
            near = suggest(keys[0], members)
            kind = "name_array" if argument == "probs" else NAME_IT[argument][0]
            raise InputError(
                f"{file.name} has no array {keys[0]!r}, it holds {listed(members)}{near}",
                *([] if near else [(kind, f"name one with {argument}=")]),
            )
        info, where = archive.getinfo(members[found[0]]), f"{file.name} array {found[0]!r}"
        header = _member_header(archive, info, where)
        _refuse_objects(header, where)
    if info.compress_type == zipfile.ZIP_DEFLATED:
        return _Deflated(where, header, file.path, info.filename)
    start = _data_offset(file.path, info, where)
    return _Mapped(where, header, file.path, start + header.size)


def _refuse_objects(header: _Header, where: str) -> None:
    if header.dtype.hasobject:
        raise ValueError(
            f"{where} holds Python objects, which are never unpickled; save numbers or fixed strings"
        )


def _member_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> _Header:
    if info.flag_bits & 1:
        raise ValueError(f"{where} is encrypted; save it again without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{where} is not compressed by numpy; write it with np.savez")
    try:
        with archive.open(info) as member:
            return _read_header(member, where, info.file_size)
    except ValueError:
        raise
    except Exception:  # for a damaged member, too
        raise ValueError(f"{where} is damaged; save it again") from None


def open_beside(file: File, what: str) -> ArrayFile:
    """Labels or weights in a file of their own."""
    if file.suffix not in (".npy", ".npz"):
        raise ValueError(f"{what} must be in an .npy or .npz file, got {file.name!r}")
    keys = ("labels", "label") if what == "labels" else ("weights", "sample_weight")
    array = open_array(file) if file.suffix == ".npy" else open_member(file, keys, what)
    _check_column(array, what)
    return array


def _check_column(array: ArrayFile, what: str) -> None:
    if len(array.shape) != 1:
        raise ValueError(f"{array.where} must have shape (n_samples,), got {array.shape}")
    kinds, words = ("biuUS", "integers or strings") if what == "labels" else ("biuf", "numbers")
    if array.dtype.kind not in kinds:
        raise InputError(
            f"{array.where} must hold {words}, got dtype {array.dtype}",
            ("integer_labels", "save them with .astype(int)"),
        )


class _ArraySource:
    """Predictions in an array, and labels and weights in others of the same file."""

    classes = None

    def __init__(self, file: File, arrays: dict[str, ArrayFile]) -> None:
        self._arrays = arrays
        probs = arrays["probs"]
        if len(probs.shape) not in (1, 2) or probs.dtype.kind not in "biuf":
            raise ValueError(
                f"{probs.where} must hold probabilities of shape (n_samples, n_classes), or "
                f"(n_samples,) for the positive class, got {probs.shape} of {probs.dtype}"
            )
        if len(probs.shape) == 1 and probs.dtype.kind != "f":
            raise ValueError(
                f"{probs.where} must hold probabilities, got dtype {probs.dtype}, as labels have"
            )
        for what, array in arrays.items():
            if what == "probs":
                continue
            if array.where == probs.where:
                raise ValueError(f"{array.where} cannot hold both {what} and predictions")
            _check_column(array, what)
            if array.shape[0] != probs.shape[0]:
                raise ValueError(
                    f"{array.where} has {array.shape[0]} rows, but {probs.where} has "
                    f"{probs.shape[0]}; they must be of the same samples"
                )
        self.places = {what: array.where for what, array in arrays.items()}
        self.n_samples = probs.shape[0]
        self.n_classes = probs.shape[1] if len(probs.shape) == 2 else 2
        self.row_bytes = max(array.row_bytes for array in arrays.values())

    def _rows(self, parts: dict[str, NDArray[Any]]) -> Rows:
        labels = parts.get("labels")
        if labels is not None:
            labels = as_text(labels, self.places["labels"])
        return Rows(labels, parts["probs"], parts.get("weights"))

    def batches(self, rows: int) -> Iterator[Rows]:
        blocks = [array.blocks(rows) for array in self._arrays.values()]
        for parts in zip(*blocks, strict=True):
            yield self._rows(dict(zip(self._arrays, parts, strict=True)))

    def guess_rows(self) -> int:
        """All are known."""
        return self.n_samples

    def whole(self) -> Rows | None:
        """All arrays if that costs no memory."""
        parts = {what: array.whole() for what, array in self._arrays.items()}
        found = {what: part for what, part in parts.items() if part is not None}
        return self._rows(found) if len(found) == len(parts) else None


class NpySource(_ArraySource):
    """The predictions alone."""

    def __init__(self, file: File, wanted: Wanted) -> None:
        if not isinstance(wanted.probs, str | None):
            raise ValueError(f"{file.name} holds one array, got probs={list(wanted.probs)}")
        if wanted.labels:
            raise InputError(
                f"{file.name} holds one array", ("labels_file", "give the labels, labels='y.npy'")
            )
        if wanted.weights is not None:
            raise InputError(
                f"{file.name} holds one array, got weights={wanted.weights!r}",
                ("weights_file", "give the weights, weights='w.npy'"),
            )
        super().__init__(file, {"probs": open_array(file)})

    @staticmethod
    def models(file: File, taken: set[str]) -> dict[str, str]:
        """None by name."""
        return {}


class NpzSource(_ArraySource):
    """Arrays by name."""

    def __init__(self, file: File, wanted: Wanted) -> None:
        if not isinstance(wanted.probs, str | None):
            raise ValueError(
                f"{file.name} holds arrays: probs must name one, got {list(wanted.probs)}"
            )
        arrays = {}
        if wanted.labels:
            arrays["labels"] = open_member(file, wanted.labels, "labels")
        if wanted.weights is not None:
            arrays["weights"] = open_member(file, (wanted.weights,), "weights")
        key = "probs" if wanted.probs is None else wanted.probs
        arrays["probs"] = open_member(file, (key,), "probs")
        super().__init__(file, arrays)

    @staticmethod
    def models(file: File, taken: set[str]) -> dict[str, str]:
        """Arrays of predictions: real numbers, all of one shape."""
        shapes: dict[str, tuple[int, ...]] = {}
        with file.path.open("rb") as stream:
            archive = _open_archive(stream, file.name)
            for key, member in _members(archive, file.name).items():
                if key in taken:
                    continue
                where = f"{file.name} array {key!r}"
                header = _member_header(archive, archive.getinfo(member), where)
                if header.dtype.kind == "f" and len(header.shape) in (1, 2):
                    shapes[key] = header.shape
        widest = max(shapes.values(), key=len, default=())
        return {key: key for key, shape in shapes.items() if len(shape) == len(widest)}


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
