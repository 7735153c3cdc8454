"""Parquet and arrow files, in batches of rows."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._scan.columns import Wanted, find_columns, find_models
from ckce._scan.formats import File, Rows

_DECODED = 2**20  # bytes that are decoded at once


def _pyarrow(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(
            "parquet and arrow files need pyarrow: pip install 'ckce[arrow]'"
        ) from None


def _is_list(kind: Any) -> bool:
    types = _pyarrow("pyarrow").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


class _ArrowFile:
    """A parquet or arrow file."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.parquet = file.suffix in (".parquet", ".pq")
        self.pa = _pyarrow("pyarrow")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Errors of pyarrow in words of ours."""
        try:
            yield
        except (self.pa.ArrowException, OSError) as error:
            kind = "parquet" if self.parquet else "arrow"
            text = str(error).strip().split("\n")[0]
            raise ValueError(f"{self.file.name} cannot be read as {kind}: {text}") from None

    def open(self) -> Any:
        """A reader of pyarrow."""
        if self.parquet:
            # Buffered column readers: otherwise a row group's compressed bytes are read at once.
            return _pyarrow("pyarrow.parquet").ParquetFile(
                self.file.path, buffer_size=2**14, pre_buffer=False
            )
        ipc = _pyarrow("pyarrow.ipc")
        with self.file.path.open("rb") as stream:
            is_file = stream.read(6) == b"ARROW1"
        source = self.pa.memory_map(str(self.file.path))
        return ipc.open_file(source) if is_file else ipc.open_stream(source)

    def schema(self, reader: Any) -> Any:
        """Names and types."""
        return reader.schema_arrow if self.parquet else reader.schema

    def record_batches(self, names: list[str], rows: int) -> Iterator[Any]:
        """Batches of at most `rows`, checked."""
        reader = self.open()
        if self.parquet:
            with reader:
                for batch in reader.iter_batches(rows, columns=names, use_threads=False):
                    batch.validate(full=True)
                    yield batch
            return
        with reader:
            whole = (
                (reader.get_batch(i) for i in range(reader.num_record_batches))
                if hasattr(reader, "num_record_batches")
                else iter(reader)
            )
            for batch in whole:
                batch.validate()  # of a negative length, say: slicing that ends the process
                for start in range(0, batch.num_rows, rows):
                    part = batch.select(names).slice(start, rows)
                    part.validate(full=True)  # offsets of a hostile file could point anywhere
                    yield part


class ArrowSource:
    """A column of lists, or one column for each class."""

    def __init__(self, file: File, wanted: Wanted) -> None:
        self._file = _ArrowFile(file)
        self.name = file.name
        self._pa = self._file.pa
        self.n_samples: int | None = None
        with self._file.errors():
            reader = self._file.open()
            schema = self._file.schema(reader)
            if self._file.parquet:
                self.n_samples = int(reader.metadata.num_rows)
            self.columns = find_columns(file.name, schema.names, wanted)
            self.classes, self.places = self.columns.classes, self.columns.places(file.name)
            kind = schema.field(self.columns.probs[0]).type
            self._listed = _is_list(kind)
            self.n_classes = self._count_classes(kind)
            number = kind.value_type if self._listed else kind
        floats = self._pa.types.is_floating(number)
        self.row_bytes = self.n_classes * (number.bit_width // 8 if floats else 8)

    @staticmethod
    def models(file: File, taken: set[str]) -> dict[str, str]:
        """Columns of lists, or columns with numbers behind a name."""
        found = _ArrowFile(file)
        with found.errors():
            schema = found.schema(found.open())
        names = [name for name in schema.names if name not in taken]
        return find_models(names, [n for n in names if _is_list(schema.field(n).type)])

    def guess_rows(self) -> int:
        """From the size, without compression."""
        return self._file.file.path.stat().st_size // max(1, self.row_bytes + 8)

    def whole(self) -> None:
        """It has to be decoded."""
        return

    def _count_classes(self, kind: Any) -> int:
        if not self._listed:
            return max(2, len(self.columns.probs))
        if len(self.columns.probs) > 1:
            raise ValueError(f"{self.name} must have one column of lists, or one for each class")
        if self._pa.types.is_fixed_size_list(kind):
            return int(kind.list_size)
        batches = self._file.record_batches(self.columns.used, 1)
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            raise ValueError(f"{self.name} has no rows")
        lists = first.column(self.columns.probs[0])
        if lists.null_count:
            raise ValueError(f"{self.name} row 0 column {self.columns.probs[0]!r} is null")
        return len(lists[0])

    def batches(self, rows: int) -> Iterator[Rows]:
        # Decoding takes several times the memory of its result, so it goes in small steps.
        step = max(1, min(rows, _DECODED // self.row_bytes))
        held: list[Rows] = []
        probs: NDArray[Any] | None = None
        filled = 0
        for some in self._steps(step):
            if probs is None:
                probs = np.empty((rows // step * step, *some.probs.shape[1:]), some.probs.dtype)
            if filled + len(some.probs) > len(probs):
                yield _joined(held, probs[:filled])
                held, filled, probs = [], 0, np.empty_like(probs)
            probs[filled : filled + len(some.probs)] = some.probs
            filled += len(some.probs)
            held.append(some._replace(probs=probs[:0]))
        if probs is not None:
            yield _joined(held, probs[:filled])

    def _steps(self, rows: int) -> Iterator[Rows]:
        first_row = 0
        weight = self.columns.weight
        with self._file.errors():
            for batch in self._file.record_batches(self.columns.used, rows):
                if not batch.num_rows:
                    continue
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    if column.null_count:
                        row = first_row + column.is_null().to_pylist().index(True)
                        raise ValueError(f"{self.name} row {row} column {name!r} is null")
                yield Rows(
                    self._labels(batch),
                    self._probs(batch, first_row),
                    None if weight is None else self._numbers(batch.column(weight), weight),
                )
                first_row += batch.num_rows
                self._pa.default_memory_pool().release_unused()

    def _labels(self, batch: Any) -> NDArray[Any] | None:
        name = self.columns.label
        if name is None:
            return None
        column = batch.column(name)
        if self._pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        labels: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if labels.dtype.kind == "f":
            raise ValueError(
                f"{self.places['labels']} must hold integers or strings, got {column.type}"
            )
        return labels.astype(str) if labels.dtype.kind == "O" else labels

    def _probs(self, batch: Any, first_row: int) -> NDArray[Any]:
        if not self._listed:
            columns = [self._numbers(batch.column(name), name) for name in self.columns.probs]
            return np.column_stack(columns) if len(columns) > 1 else columns[0]
        lists = batch.column(self.columns.probs[0])
        if not self._pa.types.is_fixed_size_list(lists.type):
            lengths = np.diff(lists.offsets.to_numpy())
            if (lengths != self.n_classes).any():
                row = int(np.argmax(lengths != self.n_classes))
                raise ValueError(
                    f"{self.name} row {first_row + row} has {lengths[row]} probabilities, expected "
                    f"{self.n_classes} as in the first row"
                )
        values = lists.flatten()
        if values.null_count:
            row = values.is_null().to_pylist().index(True) // self.n_classes
            raise ValueError(f"{self.name} row {first_row + row} holds a null probability")
        return self._numbers(values, self.columns.probs[0]).reshape(batch.num_rows, self.n_classes)

    def _numbers(self, values: Any, name: str) -> NDArray[Any]:
        types = self._pa.types
        if not (types.is_floating(values.type) or types.is_integer(values.type)):
            raise ValueError(f"{self.name} column {name!r} must hold numbers, got {values.type}")
        numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return numbers


def _joined(parts: list[Rows], probs: NDArray[Any]) -> Rows:
    """Labels and weights of small steps, put together."""
    labels = [part.labels for part in parts if part.labels is not None]
    weights = [part.weights for part in parts if part.weights is not None]
    return Rows(
        np.concatenate(labels) if labels else None,
        probs,
        np.concatenate(weights) if weights else None,
    )
