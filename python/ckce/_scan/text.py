"""Tables of text, in batches of rows: csv, tsv and jsonl files, gzipped or not."""

import csv
import gzip
import itertools
import json
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import InputError, shown
from ckce._scan.columns import Wanted, find_columns, find_models
from ckce._scan.formats import File, Rows

_LINE_LIMIT = 2**26  # characters
_GZIP_RATIO = 2  # of digits
#: How files that are no text in UTF-8 begin.
_OTHER_KINDS = {
    b"\xff\xfe\0\0": "text in UTF-32; save it in UTF-8",
    b"\0\0\xfe\xff": "text in UTF-32; save it in UTF-8",
    b"\xff\xfe": "text in UTF-16; save it in UTF-8",
    b"\xfe\xff": "text in UTF-16; save it in UTF-8",
    b"\x1f\x8b": "a gzip file; let its name end in .gz",
    b"PK\3\4": "a zip archive, as .npz and .xlsx files are; name it .npz, or save the sheet as .csv",
    b"\x93NUMPY": "a numpy array; let its name end in .npy",
    b"PAR1": "a parquet file; let its name end in .parquet",
}
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*")
_FRACTION = re.compile(r"\s*[+-]?[0-9]*[.,][0-9]+([eE][+-]?[0-9]+)?\s*")

Block = list[tuple[int, str]]  # lines that are not blank, with their numbers


def read_lines(file: File, *, quotes: bool) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers; one that a quote leaves open goes on."""
    opener: Any = gzip.open if file.gzipped else open
    try:
        with opener(file.path, "rb") as stream:
            head = stream.read(8)
        for start, kind in _OTHER_KINDS.items():
            if head.startswith(start):
                raise ValueError(f"{file.name} is {kind}")
        text = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
        with opener(file.path, "rt", **text) as stream:
            number = 1
            while line := stream.readline(_LINE_LIMIT):
                first = number
                while quotes and line.count('"') % 2 and len(line) < _LINE_LIMIT:
                    more = stream.readline(_LINE_LIMIT - len(line))
                    if not more:
                        break
                    line, number = line + more, number + 1
                if len(line) >= _LINE_LIMIT:
                    raise ValueError(f"{file.name} line {first} is longer than {_LINE_LIMIT}")
                if line.strip():
                    _check_characters(file, first, line)
                    yield first, line
                number += 1
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError(
            f"{file.name} is not a whole gzip file: it is cut off or damaged"
        ) from None


def _check_characters(file: File, number: int, line: str) -> None:
    """Refuse what no table in UTF-8 holds."""
    if "\0" in line:
        raise ValueError(
            f"{file.name} line {number} holds a NUL character: the file is damaged, or is text in "
            "UTF-16; save it in UTF-8"
        )
    try:
        if not line.isascii():
            line.encode()
    except UnicodeEncodeError as error:  # on a byte that was not decoded
        raise ValueError(
            f"{file.name} line {number} is not text in UTF-8, it holds the byte "
            f"0x{ord(line[error.start]) - 0xDC00:02x}; save the file in UTF-8"
        ) from None


class _TextSource(ABC):
    """A table that is read line by line."""

    n_samples: int | None = None
    quotes = False

    def __init__(self, file: File, wanted: Wanted) -> None:
        self.file, self.name = file, file.name
        self._text: bool | None = None  # whether labels were names so far
        first = next(self._lines(), None)
        if first is None:
            raise ValueError(f"{file.name} is empty, expected {self.expected}")
        self.names = self.read_names(*first)
        self.columns = find_columns(file.name, self.names, wanted)
        self.classes, self.places = self.columns.classes, self.columns.places(file.name)
        self.n_classes = self.count_classes(*first)
        self.row_bytes = 8 * self.n_classes

    expected: str

    @abstractmethod
    def read_names(self, number: int, line: str) -> list[str]:
        """Columns, out of the first line."""

    @abstractmethod
    def read_block(self, block: Block) -> Rows:
        """Rows out of lines."""

    def count_classes(self, number: int, line: str) -> int:
        return max(2, len(self.columns.probs))

    def _lines(self) -> Iterator[tuple[int, str]]:
        return read_lines(self.file, quotes=self.quotes)

    def body(self) -> Iterator[tuple[int, str]]:
        """Lines that hold rows."""
        return self._lines()

    def batches(self, rows: int) -> Iterator[Rows]:
        lines = self.body()
        self._text = None
        while block := list(itertools.islice(lines, rows)):
            yield self.read_block(block)._replace(lines=[number for number, _ in block])

    def guess_rows(self) -> int:
        """From the size, and the first lines."""
        first = [len(line) for _, line in itertools.islice(self.body(), 20)]
        size = self.file.path.stat().st_size * (_GZIP_RATIO if self.file.gzipped else 1)
        return int(size * len(first) // max(1, sum(first)))

    def whole(self) -> None:
        """It has to be parsed."""
        return

    def as_labels(self, block: Block, cells: list[Any]) -> NDArray[Any]:
        """Integers or names, of one kind in the whole file."""
        where = self.places["labels"]
        if not self._text and (integers := _plain_integers(cells)) is not None:
            self._text = False
            return integers
        whole = [_is_integer(cell) for cell in cells]
        odd = next((i for i, yes in enumerate(whole) if not yes), None)
        if odd is None and not self._text:
            self._text = False
            return self._as_integers(block, cells)
        for (number, _), cell in zip(block, cells, strict=True):
            if cell == "" or cell is None:
                raise ValueError(f"{where} has no label in line {number}")
        if self.classes is None:  # no column has a name that it could be
            self._refuse_other_digits(block, cells)
        no_name = next((i for i, cell in enumerate(cells) if not isinstance(cell, str)), None)
        fractions = odd is not None and all(map(_is_number, cells))
        if fractions or no_name is not None:
            neither = (i for i, c in enumerate(cells) if not (_is_integer(c) or _is_name(c)))
            if (first := next(neither, None)) is not None:
                raise InputError(
                    f"{where} must hold integers or names, got numbers like "
                    f"{str(cells[first])[:30]!r} in line {block[first][0]}",
                    ("integer_labels", "write them without a fraction"),
                )
        if self._text is False or no_name is not None:
            named = odd == 0 if self._text is None else self._text
            other = no_name if named else odd
            assert other is not None
            raise ValueError(
                f"{where} mixes numbers and names: line {block[other][0]} has {shown(cells[other])}, "
                f"and earlier lines have {'names' if named else 'integers'}"
            )
        self._text = True
        return np.array(cells, dtype=str)

    def _refuse_other_digits(self, block: Block, cells: list[Any]) -> None:
        """Refuse 1_0 and digits of other scripts, which int() takes and a table does not."""
        for (number, _), cell in zip(block, cells, strict=True):
            if isinstance(cell, str) and not _is_integer(cell) and _is_integer_of_python(cell):
                raise ValueError(
                    f"{self.places['labels']} must hold integers or names, got {cell[:30]!r} in line "
                    f"{number}; write plain digits, or list the columns by the names of the classes"
                )

    def _as_integers(self, block: Block, cells: list[Any]) -> NDArray[np.int64]:
        numbers = np.empty(len(cells), np.int64)
        for i, ((number, _), cell) in enumerate(zip(block, cells, strict=True)):
            try:
                numbers[i] = int(cell)
            except (OverflowError, ValueError):
                raise ValueError(
                    f"{self.places['labels']} must hold integers or names, got {str(cell)[:30]!r} in "
                    f"line {number}, which 64 bits cannot hold"
                ) from None
        return numbers


def _plain_integers(cells: list[Any]) -> NDArray[np.int64] | None:
    """Integers as nearly all files have them, fast; None if something else is among them."""
    try:
        text = "".join(cells)
        if not text.isascii() or "_" in text:  # int() would take them
            return None
        return np.array(list(map(int, cells)), np.int64)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_integer(cell: Any) -> bool:
    if isinstance(cell, str):
        return _INTEGER.fullmatch(cell) is not None
    return isinstance(cell, int) and not isinstance(cell, bool)


def _is_integer_of_python(cell: str) -> bool:
    try:
        int(cell)
    except ValueError:
        return False
    return True


def _is_number(cell: Any) -> bool:
    if not isinstance(cell, str):
        return isinstance(cell, (int, float))
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell


def _is_name(cell: Any) -> bool:
    return isinstance(cell, str) and not _is_number(cell)


def _load(lines: list[str], kind: Any, delimiter: str, **columns: Any) -> NDArray[Any]:
    return np.loadtxt(
        lines, dtype=kind, comments=None, delimiter=delimiter, quotechar='"', ndmin=2, **columns
    )


def _csv_fields(file: File, number: int, line: str, delimiter: str) -> list[str]:
    try:
        if (
            len(line) > csv.field_size_limit()
        ):  # of the whole process; NumPy is slower, and has none
            fields: list[str] = _load([line], object, delimiter)[0].tolist()
            return fields
        return next(csv.reader([line], delimiter=delimiter))
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{file.name} line {number} cannot be read: {error}") from None


def _csv_header(file: File, number: int, line: str) -> tuple[str, list[str]]:
    """What separates the columns, and their names."""
    bare = re.sub(r'"[^"]*"', "", line)
    delimiter = "\t" if file.suffix == ".tsv" else ","
    if delimiter not in bare:
        delimiter = next((other for other in ";\t" if other in bare), delimiter)
    names = _csv_fields(file, number, line, delimiter)
    if any(_FRACTION.fullmatch(name) for name in names):
        example = delimiter.join(["label", "p0", "p1", "..."])
        raise ValueError(
            f"{file.name} line {number} holds numbers, so there is no header line; put one above, "
            f"such as {example!r}"
        )
    return delimiter, names


class CsvSource(_TextSource):
    """A csv file with a header line, or a tsv file."""

    expected = "a header line and rows"
    quotes = True

    def read_names(self, number: int, line: str) -> list[str]:
        self.delimiter, names = _csv_header(self.file, number, line)
        return names

    @staticmethod
    def models(file: File, taken: set[str]) -> dict[str, str]:
        """Columns with numbers behind a name."""
        first = next(read_lines(file, quotes=True), (1, ""))
        return find_models(name for name in _csv_header(file, *first)[1] if name not in taken)

    def _split(self, number: int, line: str) -> list[str]:
        return _csv_fields(self.file, number, line, self.delimiter)

    def body(self) -> Iterator[tuple[int, str]]:
        return itertools.islice(self._lines(), 1, None)

    def read_block(self, block: Block) -> Rows:
        for number, line in block:
            fields = line.count(self.delimiter) + 1 if '"' not in line else None
            if fields is None:
                fields = len(self._split(number, line))
            if fields != len(self.names):
                raise self._unequal(number, fields)
        columns, labels, weights = self.columns, None, None
        if columns.label is not None:
            cells = self._parse(block, [columns.label], object)[:, 0].tolist()
            labels = self.as_labels(block, cells)
        if columns.weight is not None:
            weights = self._numbers(block, [columns.weight])[:, 0]
        probs = self._numbers(block, columns.probs)
        return Rows(labels, probs if len(columns.probs) > 1 else probs[:, 0], weights)

    def _unequal(self, number: int, fields: int) -> ValueError:
        commas = self.delimiter == "," and fields == len(self.names) + len(self.columns.probs)
        hint = "; write decimal points if its numbers have decimal commas" if commas else ""
        return ValueError(
            f"{self.name} line {number} has {fields} fields, expected {len(self.names)}{hint}"
        )

    def _parse(self, block: Block, names: Sequence[str], kind: Any) -> NDArray[Any]:
        columns = [self.names.index(name) for name in names]
        return _load([line for _, line in block], kind, self.delimiter, usecols=columns)

    def _numbers(self, block: Block, names: Sequence[str]) -> NDArray[np.float64]:
        try:
            return self._parse(block, names, np.float64)
        except ValueError:
            raise self._not_a_number(block, names) from None

    def _not_a_number(self, block: Block, names: Sequence[str]) -> ValueError:
        for number, line in block:
            cells = dict(zip(self.names, self._split(number, line), strict=True))
            for name in names:
                if not _is_number(cells[name]):
                    comma = _DECIMAL_COMMA.fullmatch(cells[name])
                    rule = "a number with a decimal point, not a comma" if comma else "a number"
                    return ValueError(
                        f"{self.name} line {number} column {name!r} is {cells[name]!r}, expected "
                        f"{rule}"
                    )
        for number, line in block:
            with suppress(ValueError):
                self._parse([(number, line)], names, np.float64)
                continue
            break
        return ValueError(f"{self.name} line {number} holds what is not a number")


def _json_object(file: File, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        cause = ": it is nested too deeply"
        if isinstance(error, json.JSONDecodeError):
            cause = f" at column {error.colno} ({error.msg})"
            if error.pos >= len(line.rstrip()):
                cause = ": it is cut off; an object must stand on one line"
        elif isinstance(error, ValueError):
            cause = ": it holds an integer of thousands of digits"
        raise ValueError(f"{file.name} line {number} is not JSON{cause}") from None
    if not isinstance(found, dict):
        raise ValueError(
            f"{file.name} line {number} must be a JSON object such as "
            '{"label": 0, "probs": [0.9, 0.1]}, got a ' + type(found).__name__
        )
    return found


class JsonSource(_TextSource):
    """A JSON object a line: a list of probabilities, or one member for each class."""

    expected = "a JSON object a line"

    def read_names(self, number: int, line: str) -> list[str]:
        return list(_json_object(self.file, number, line))

    @staticmethod
    def models(file: File, taken: set[str]) -> dict[str, str]:
        """Members that are lists, or have numbers behind a name."""
        first = next(read_lines(file, quotes=False), (1, "{}"))
        members = _json_object(file, *first)
        names = [name for name in members if name not in taken]
        return find_models(names, [name for name in names if isinstance(members[name], list)])

    def count_classes(self, number: int, line: str) -> int:
        values = _json_object(self.file, number, line)[self.columns.probs[0]]
        self._listed = isinstance(values, list)
        return len(values) if self._listed else super().count_classes(number, line)

    def read_block(self, block: Block) -> Rows:
        objects = [_json_object(self.file, *line) for line in block]
        for (number, _), found in zip(block, objects, strict=True):
            for name in self.columns.used:
                if name not in found:
                    raise ValueError(f"{self.name} line {number} has no member {name!r}")
        columns, labels, weights = self.columns, None, None
        if columns.label is not None:
            labels = self.as_labels(block, [found[columns.label] for found in objects])
        if columns.weight is not None:
            weights = self._matrix(block, [[found[columns.weight]] for found in objects], 1)[:, 0]
        if self._listed:
            lists = [found[columns.probs[0]] for found in objects]
            return Rows(labels, self._matrix(block, lists, self.n_classes), weights)
        width = len(columns.probs)
        cells = [[found[name] for name in columns.probs] for found in objects]
        probs = self._matrix(block, cells, width)
        return Rows(labels, probs if width > 1 else probs[:, 0], weights)

    def _matrix(self, block: Block, rows: list[Any], width: int) -> NDArray[np.float64]:
        for (number, _), row in zip(block, rows, strict=True):
            if not isinstance(row, list) or len(row) != width:
                got = f"{len(row)} probabilities" if isinstance(row, list) else repr(row)[:30]
                raise ValueError(
                    f"{self.name} line {number} has {got}, expected {width} as in the first line"
                )
            for value in row:
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    raise ValueError(
                        f"{self.name} line {number} holds {value!r:.30}, expected a number"
                    )
                if isinstance(value, int) and abs(value) > 2**1000:
                    raise ValueError(f"{self.name} line {number} holds a number that is too large")
        return np.array(rows, np.float64)
