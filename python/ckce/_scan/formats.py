"""Which file is read by whom: a format is a line of FORMATS, and a class that is a Source."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike, fsdecode
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from ckce._input import InputError
from ckce._scan.columns import Wanted, suggest

#: Suffix -> module and class. zipfile, csv, json and pyarrow take 10 ms and more that importing
#: ckce should not cost.
FORMATS = {
    ".npy": ("arrays", "NpySource"),
    ".npz": ("arrays", "NpzSource"),
    ".csv": ("text", "CsvSource"),
    ".tsv": ("text", "CsvSource"),
    ".jsonl": ("text", "JsonSource"),
    ".ndjson": ("text", "JsonSource"),
    ".parquet": ("arrow", "ArrowSource"),
    ".pq": ("arrow", "ArrowSource"),
    ".arrow": ("arrow", "ArrowSource"),
    ".feather": ("arrow", "ArrowSource"),
    ".ipc": ("arrow", "ArrowSource"),
    ".eval": ("log_source", "NoTable"),
    ".json": ("log_source", "NoTable"),
}
_TEXT = tuple(suffix for suffix, (module, _) in FORMATS.items() if module == "text")
_ARRAYS = (".npy", ".npz")
_LABELS = ("labels", "label")


class File(NamedTuple):
    """A file that is there."""

    path: Path
    name: str  # what messages call it
    suffix: str  # of its format
    gzipped: bool = False


class Rows(NamedTuple):
    """Consecutive rows of a file; labels or weights may be in another one."""

    labels: NDArray[Any] | None
    probs: Any  # an array; of logs, Choices or TopKPredictions
    weights: NDArray[Any] | None = None
    lines: Sequence[int] | None = None  # of a text file, for messages


class Source(Protocol):
    """The rows of one file."""

    @property
    def n_samples(self) -> int | None: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def classes(self) -> tuple[Any, ...] | None: ...
    @property
    def row_bytes(self) -> int: ...
    @property
    def places(self) -> Mapping[str, str]: ...  # "labels", "probs", "weights", for messages
    def batches(self, rows: int) -> Iterator[Rows]: ...
    def whole(self) -> Rows | None: ...  # all of it if that costs no memory
    def guess_rows(self) -> int: ...  # from sizes, where n_samples is None


def is_array_file(name: Any) -> bool:
    """Whether labels or weights are given as a file of their own."""
    return isinstance(name, PathLike) or (isinstance(name, str) and name.lower().endswith(_ARRAYS))


def check_paths(path: Any) -> list[str]:
    """A path, or several."""
    several = isinstance(path, Iterable) and not isinstance(path, (str, bytes, PathLike))
    paths = list(path) if several and not hasattr(path, "read") else [path]
    for each in paths:
        if not isinstance(each, (str, bytes, PathLike)):
            hint = "; write it to a file, which is read more than once"
            raise TypeError(
                f"path must be a path, or a sequence of paths, got {type(each).__name__}"
                + (hint if hasattr(each, "read") else "")
            )
    return [fsdecode(each) for each in paths]


def find_file(path: Any) -> File:
    """The file of a path, by its suffix."""
    path = Path(fsdecode(path))
    if path.is_dir():
        files = sorted(p.name for p in path.iterdir() if suffix_of(p)[0] in FORMATS)
        hint = f"; pass its files, such as {files[0]!r}" if files else ""
        raise IsADirectoryError(f"{path} is a directory{hint}")
    if not path.exists():
        there = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise FileNotFoundError(f"{path} does not exist{suggest(path.name, there)}")
    if not path.is_file():
        raise ValueError(f"{path} must be a regular file: it is read more than once")
    suffix, gzipped = suffix_of(path)
    if suffix not in FORMATS or (gzipped and suffix not in _TEXT):
        known = ", ".join((*FORMATS, *(f"{text}.gz" for text in _TEXT)))
        got = "".join(path.suffixes[-2:] if gzipped else path.suffixes[-1:]) or "no suffix"
        raise ValueError(f"{path} must be a {known} file, got {got!r}")
    return File(path, str(path), suffix, gzipped)


def suffix_of(path: Path) -> tuple[str, bool]:
    """Of its format, and whether it is gzipped."""
    suffix = path.suffix.lower()
    return (path.with_suffix("").suffix.lower(), True) if suffix == ".gz" else (suffix, False)


def _reader(file: File) -> Any:
    module, name = FORMATS[file.suffix]
    return getattr(importlib.import_module(f"ckce._scan.{module}"), name)


def open_source(
    file: File,
    probs: str | Sequence[str] | None,
    labels: Any,
    weights: Any,
    left_out: tuple[str, ...] = (),
) -> Source:
    """The rows of a file, with labels and weights of other files beside them."""
    from ckce._scan.arrays import open_beside

    beside = {
        what: open_beside(find_file(name), what)
        for what, name in (("labels", labels), ("weights", weights))
        if is_array_file(name)
    }
    names = _LABELS if labels is None else (labels,)
    wanted = Wanted(
        probs,
        () if "labels" in beside else names,
        None if "weights" in beside else weights,
        left_out,
    )
    source: Source = _reader(file)(file, wanted)
    return Beside(source, beside) if beside else source


def find_models_of(file: File, *others: Any) -> dict[str, str]:
    """Models in one file: what to pass as `probs`, by name; `others` name labels and the like."""
    taken = [name for name in others if isinstance(name, str)]
    found: dict[str, str] = _reader(file).models(file, {*_LABELS, *taken})
    if len(found) < 2:
        raise InputError(
            f"{file.name} must hold the predictions of several models, got "
            + (f"one, {next(iter(found))!r}" if found else "none that their names tell"),
            ("name_models", "scan them one by one with probs="),
        )
    return found


class Beside:
    """A file whose labels or weights are in others."""

    def __init__(self, source: Source, beside: Mapping[str, Any]) -> None:
        self._source, self._beside = source, beside
        self.n_samples, self.n_classes = source.n_samples, source.n_classes
        self.classes, self.row_bytes = source.classes, source.row_bytes
        self.places = {**source.places, **{what: a.where for what, a in beside.items()}}
        if self.n_samples is not None:
            self._check(self.n_samples)

    def _check(self, rows: int, *, more: bool = False) -> None:
        """Refuse other numbers of rows; with `more`, there may be more than `rows`."""
        for what, array in self._beside.items():
            held = array.shape[0]
            if held < rows or (held > rows and not more):
                raise ValueError(
                    f"{array.where} has {held} rows, but {self.places['probs']} has "
                    f"{'more' if more else rows}; {what} and predictions must be of the same samples"
                )

    def batches(self, rows: int) -> Iterator[Rows]:
        arrays = {what: array.all() for what, array in self._beside.items()}
        start = 0
        for part in self._source.batches(rows):
            stop = start + len(part.probs)
            self._check(stop, more=True)
            yield part._replace(**{what: array[start:stop] for what, array in arrays.items()})
            start = stop
        self._check(start)

    def guess_rows(self) -> int:
        """Rows of the labels."""
        return min(int(array.shape[0]) for array in self._beside.values())

    def whole(self) -> Rows | None:
        """All of it if that costs no memory."""
        rows = self._source.whole()
        if rows is None:
            return None
        return rows._replace(**{what: array.all() for what, array in self._beside.items()})
