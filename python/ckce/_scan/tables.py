"""Tables of predictions, in batches of rows: csv, parquet and arrow files."""

import csv
import importlib
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckce._input import listed, nearest

_LINE_LIMIT = 2**26  # characters
_DECODED = 2**20  # bytes of parquet or arrow that are decoded at once

Batch = tuple[NDArray[Any], NDArray[Any]]


class _Table:
    """A file that has to be read to be had."""

    def whole(self) -> None:
        return None


class Columns(NamedTuple):
    """Where a table keeps labels and predictions."""

    label: str
    probs: tuple[str, ...]
    classes: tuple[Any, ...] | None  # what the columns call the classes


def find_columns(
    path: Path, names: Sequence[str], probs: str | Sequence[str] | None, labels: tuple[str, ...]
) -> Columns:
    """Settle the columns from their names alone; what is not there is an error."""
    label = next((name for name in labels if name in names), None)
    if label is None:
        raise _unknown(path, labels[0], names, "labels")
    others = [name for name in names if name != label]
    if probs is None:
        probs = "probs"
    if not isinstance(probs, str):
        for name in probs:
            if name not in names:
                raise _unknown(path, name, names, "probs")
        return _checked(path, Columns(label, tuple(probs), tuple(probs)), names)
    if probs in others:
        return _checked(path, Columns(label, (probs,), None), names)
    star = ".*" if "*" in probs else r"[_.]?\d+"
    before, _, after = probs.partition("*")
    pattern = re.compile(f"{re.escape(before)}({star}){re.escape(after)}")
    found = [(name, match[1]) for name in others if (match := pattern.fullmatch(name))]
    if not found:
        raise _unknown(path, probs, names, "probs")
    parts = [part.lstrip("_.") if "*" not in probs else part for _, part in found]
    if not all(part.isdecimal() for part in parts):
        return _checked(path, Columns(label, tuple(n for n, _ in found), tuple(parts)), names)
    # Numbers name the classes: p_10 stands before p_2 in many files.
    order = sorted(range(len(parts)), key=lambda i: int(parts[i]))
    numbers = [int(parts[i]) for i in order]
    gap = next((k for k in range(numbers[0], numbers[-1] + 1) if k not in numbers), None)
    if "*" not in probs and gap is not None:
        raise ValueError(f"{path} has no column of {probs!r} for class {gap}, but later ones")
    classes = None if numbers == list(range(len(numbers))) else tuple(numbers)
    return _checked(path, Columns(label, tuple(found[i][0] for i in order), classes), names)


def _unknown(path: Path, name: str, names: Sequence[str], argument: str) -> ValueError:
    hint = nearest(name, names) or (
        f"; name it with {argument}="
        if argument == "labels"
        else "; name the columns with probs=, '*' stands for any"
    )
    return ValueError(f"{path} has no column {name!r}, it has {listed(names)}{hint}")


def _checked(path: Path, columns: Columns, names: Sequence[str]) -> Columns:
    used = [columns.label, *columns.probs]
    twice = [name for name in used if used.count(name) + list(names).count(name) > 2]
    if twice:
        raise ValueError(f"{path} must have each column once, got {twice[0]!r} twice")
    classes = columns.classes
    if classes is not None and len(set(classes)) < len(classes):
        raise ValueError(f"{path} must have each class once, got {listed(map(str, classes))}")
    return columns


class CsvTable(_Table):
    """A csv file with a header line, or a tsv file."""

    n_samples: int | None = None

    def __init__(
        self, path: Path, probs: str | Sequence[str] | None, labels: tuple[str, ...]
    ) -> None:
        self.path = path
        self.delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        header = next(self._lines(), None)
        if header is None:
            raise ValueError(f"{path} is empty, expected a header line and rows")
        self.names = self._split(*header)
        self.columns = find_columns(path, self.names, probs, labels)
        self.classes = self.columns.classes
        self.n_classes = max(2, len(self.columns.probs))
        self.row_bytes = 8 * self.n_classes

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Lines that are not blank, with their numbers."""
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            for number in itertools.count(1):
                try:
                    line = file.readline(_LINE_LIMIT)
                except UnicodeDecodeError:
                    raise ValueError(f"{self.path} is not text in UTF-8") from None
                if len(line) == _LINE_LIMIT:
                    raise ValueError(f"{self.path} line {number} is longer than {_LINE_LIMIT}")
                if not line:
                    return
                if line.strip():
                    yield number, line

    def _split(self, number: int, line: str) -> list[str]:
        try:
            return next(csv.reader([line], delimiter=self.delimiter))
        except csv.Error as error:
            raise ValueError(f"{self.path} line {number} cannot be read: {error}") from None

    def batches(self, rows: int) -> Iterator[Batch]:
        lines = self._lines()
        next(lines)
        text: bool | None = None
        while block := list(itertools.islice(lines, rows)):
            for number, line in block:
                fields = line.count(self.delimiter) + 1 if '"' not in line else None
                if fields is None:
                    fields = len(self._split(number, line))
                if fields != len(self.names):
                    raise ValueError(
                        f"{self.path} line {number} has {fields} fields, expected {len(self.names)}"
                    )
            labels, now_text = self._labels(block)
            if text is not None and now_text != text:
                raise ValueError(
                    f"{self.path} column {self.columns.label!r} mixes numbers and names near line "
                    f"{block[0][0]}; make all labels of one kind"
                )
            text = now_text
            yield labels, self._numbers(block)

    def _parse(self, block: list[tuple[int, str]], names: Sequence[str], kind: Any) -> NDArray[Any]:
        return np.loadtxt(
            [line for _, line in block],
            dtype=kind,
            comments=None,
            delimiter=self.delimiter,
            quotechar='"',
            usecols=[self.names.index(name) for name in names],
            ndmin=2,
        )

    def _numbers(self, block: list[tuple[int, str]]) -> NDArray[np.float64]:
        names = self.columns.probs
        try:
            numbers = self._parse(block, names, np.float64)
        except ValueError:
            raise self._not_a_number(block) from None
        return numbers if len(names) > 1 else numbers[:, 0]

    def _not_a_number(self, block: list[tuple[int, str]]) -> ValueError:
        for number, line in block:
            cells = dict(zip(self.names, self._split(number, line), strict=True))
            for name in self.columns.probs:
                if not _is_number(cells[name]):
                    return ValueError(
                        f"{self.path} line {number} column {name!r} is {cells[name]!r}, expected a "
                        "number"
                    )
        return ValueError(f"{self.path} near line {block[0][0]} holds what is not a number")

    def _labels(self, block: list[tuple[int, str]]) -> tuple[NDArray[Any], bool]:
        """The labels, and whether they are names."""
        cells = self._parse(block, [self.columns.label], str)[:, 0]
        try:
            return cells.astype(np.int64), False
        except (ValueError, OverflowError):
            pass
        try:
            cells.astype(np.float64)
        except ValueError:
            return cells, True
        wrong = [cell for cell in cells if not cell.lstrip("-").isdecimal()]
        raise ValueError(
            f"{self.path} column {self.columns.label!r} must hold integers or names, got numbers "
            f"like {wrong[0] if wrong else max(cells, key=len)!r}"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _pyarrow(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(
            "parquet and arrow files need pyarrow: pip install 'ckce[arrow]'"
        ) from None


class ArrowTable(_Table):
    """A parquet or arrow file: a column of lists, or one column for each class."""

    def __init__(
        self, path: Path, probs: str | Sequence[str] | None, labels: tuple[str, ...]
    ) -> None:
        self.path = path
        self.parquet = path.suffix.lower() in (".parquet", ".pq")
        self._pa = _pyarrow("pyarrow")
        self.n_samples: int | None = None
        with self._errors():
            file = self._open()
            schema = file.schema_arrow if self.parquet else file.schema
            if self.parquet:
                self.n_samples = int(file.metadata.num_rows)
            self.columns = find_columns(path, schema.names, probs, labels)
            self.classes = self.columns.classes
            kind = schema.field(self.columns.probs[0]).type
            self._listed = self._is_list(kind)
            self.n_classes = self._count_classes(kind)
            number = kind.value_type if self._listed else kind
        floats = self._pa.types.is_floating(number)
        self.row_bytes = self.n_classes * (number.bit_width // 8 if floats else 8)

    def _errors(self) -> Any:
        from contextlib import contextmanager

        @contextmanager
        def errors() -> Iterator[None]:
            try:
                yield
            except (self._pa.ArrowException, OSError) as error:
                kind = "parquet" if self.parquet else "arrow"
                text = str(error).strip().split("\n")[0]
                raise ValueError(f"{self.path} cannot be read as {kind}: {text}") from None

        return errors()

    def _is_list(self, kind: Any) -> bool:
        types = self._pa.types
        return bool(
            types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        )

    def _count_classes(self, kind: Any) -> int:
        if not self._listed:
            return max(2, len(self.columns.probs))
        if len(self.columns.probs) > 1:
            raise ValueError(f"{self.path} must have one column of lists, or one for each class")
        if self._pa.types.is_fixed_size_list(kind):
            return int(kind.list_size)
        first = next((batch for batch in self._record_batches(1) if batch.num_rows), None)
        if first is None:
            raise ValueError(f"{self.path} has no rows")
        lists = first.column(self.columns.probs[0])
        return 0 if lists.null_count else len(lists[0])

    def _open(self) -> Any:
        if self.parquet:
            # Buffered column readers: otherwise a row group's compressed bytes are read at once.
            return _pyarrow("pyarrow.parquet").ParquetFile(
                self.path, buffer_size=2**14, pre_buffer=False
            )
        ipc = _pyarrow("pyarrow.ipc")
        with self.path.open("rb") as file:
            is_file = file.read(6) == b"ARROW1"
        source = self._pa.memory_map(str(self.path))
        return ipc.open_file(source) if is_file else ipc.open_stream(source)

    def _record_batches(self, rows: int) -> Iterator[Any]:
        names = [self.columns.label, *self.columns.probs]
        file = self._open()
        if self.parquet:
            with file:
                for batch in file.iter_batches(batch_size=rows, columns=names, use_threads=False):
                    batch.validate(full=True)
                    yield batch
            return
        with file:
            whole = (
                (file.get_batch(i) for i in range(file.num_record_batches))
                if hasattr(file, "num_record_batches")
                else iter(file)
            )
            for batch in whole:
                batch.validate()  # of a negative length, say: slicing that ends the process
                for start in range(0, batch.num_rows, rows):
                    part = batch.select(names).slice(start, rows)
                    part.validate(full=True)  # offsets of a hostile file could point anywhere
                    yield part

    def batches(self, rows: int) -> Iterator[Batch]:
        # Decoding takes several times the memory of its result, so it goes in small steps.
        step = max(1, min(rows, _DECODED // self.row_bytes))
        labels: list[NDArray[Any]] = []
        probs: NDArray[Any] | None = None
        filled = 0
        for some_labels, some_probs in self._steps(step):
            if probs is None:
                probs = np.empty((rows // step * step, *some_probs.shape[1:]), some_probs.dtype)
            if filled + len(some_probs) > len(probs):
                yield np.concatenate(labels), probs[:filled]
                labels, filled, probs = [], 0, np.empty_like(probs)
            labels.append(some_labels)
            probs[filled : filled + len(some_probs)] = some_probs
            filled += len(some_probs)
        if probs is not None:
            yield np.concatenate(labels), probs[:filled]

    def _steps(self, rows: int) -> Iterator[Batch]:
        first_row = 0
        with self._errors():
            for batch in self._record_batches(rows):
                if not batch.num_rows:
                    continue
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    if column.null_count:
                        row = first_row + column.is_null().to_pylist().index(True)
                        raise ValueError(f"{self.path} row {row} column {name!r} is null")
                yield self._labels(batch), self._probs(batch, first_row)
                first_row += batch.num_rows
                self._pa.default_memory_pool().release_unused()

    def _labels(self, batch: Any) -> NDArray[Any]:
        column = batch.column(self.columns.label)
        if self._pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        labels: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return labels.astype(str) if labels.dtype.kind == "O" else labels

    def _probs(self, batch: Any, first_row: int) -> NDArray[Any]:
        if not self._listed:
            columns = [self._numbers(batch.column(name)) for name in self.columns.probs]
            return np.column_stack(columns) if len(columns) > 1 else columns[0]
        lists = batch.column(self.columns.probs[0])
        if not self._pa.types.is_fixed_size_list(lists.type):
            lengths = np.diff(lists.offsets.to_numpy())
            if (lengths != self.n_classes).any():
                row = int(np.argmax(lengths != self.n_classes))
                raise ValueError(
                    f"{self.path} row {first_row + row} has {lengths[row]} probabilities, expected "
                    f"{self.n_classes} as in the first row"
                )
        values = lists.flatten()
        if values.null_count:
            row = values.is_null().to_pylist().index(True) // self.n_classes
            raise ValueError(f"{self.path} row {first_row + row} holds a null probability")
        return self._numbers(values).reshape(batch.num_rows, self.n_classes)

    def _numbers(self, values: Any) -> NDArray[Any]:
        types = self._pa.types
        if not (types.is_floating(values.type) or types.is_integer(values.type)):
            raise ValueError(
                f"{self.path} column {self.columns.probs[0]!r} must hold numbers, got {values.type}"
            )
        numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return numbers
