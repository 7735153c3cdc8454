"""Files of the command line become labels and predictions."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import warnings
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckce._cli.messages import DataError, UsageError
from ckce._input import InputError, listed
from ckce._scan.formats import File, find_file, find_models_of
from ckce._scan.scan import Scan, places_of, scan_files

_IN_MEMORY = 2**25  # numbers; above, predictions stay on disk
_GZIP = b"\x1f\x8b"
# How a file of each kind begins.
_MAGIC = {b"\x93NUMPY": ".npy", b"PK": ".npz", b"PAR1": ".parquet", b"ARROW1": ".arrow"}
_ARROW_STREAM = b"\xff\xff\xff\xff"


class Data(NamedTuple):
    """What the files hold."""

    labels: Any  # of all models, or by model where they differ
    models: dict[str, NDArray[Any]]
    weights: NDArray[Any] | None
    classes: tuple[Any, ...] | None
    places: dict[str, str]  # what messages call labels, probs and weights
    n_classes: int
    groups: NDArray[Any] | None = None
    by: dict[str, NDArray[Any]] | None = None

    def options(self) -> dict[str, Any]:
        """Of the library, for these data."""
        found = {"sample_weight": self.weights, "groups": self.groups, "by": self.by}
        return {name: array for name, array in found.items() if array is not None}


def temporary_folder() -> Any:
    """For what does not fit into memory; gone afterwards."""
    return tempfile.TemporaryDirectory(prefix="ckce-", ignore_cleanup_errors=True)


def check_once(args: argparse.Namespace) -> None:
    """Refuse standard input that is read twice."""
    if args.files.count("-") > 1:
        raise UsageError("standard input can be read once, got - twice")


def find(path: str, folder: str) -> File:
    """A file; standard input and pipes are written to `folder` first, since files are read twice."""
    if path == "-":
        return _spooled(sys.stdin.buffer, "standard input", folder)
    try:
        is_pipe = stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        is_pipe = False
    if is_pipe:
        with open(path, "rb") as stream:
            return _spooled(stream, path, folder)
    return find_file(path)


def _spooled(stream: IO[bytes], name: str, folder: str) -> File:
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:16]
    path = Path(folder) / f"{digest}.input"
    if not path.exists():  # it can be read once
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file, 2**20)
    with path.open("rb") as spooled:
        head = spooled.read(2**16)
    if not head:
        raise DataError(f"{name} is empty, expected predictions")
    gzipped = head.startswith(_GZIP)
    if gzipped:
        import zlib

        try:
            head = zlib.decompressobj(31).decompress(head, 2**16)
        except zlib.error:
            raise DataError(f"{name} is not a whole gzip file") from None
    return File(path, name, _kind(head), gzipped)


def _kind(head: bytes) -> str:
    """Suffix of what begins like this."""
    for magic, suffix in _MAGIC.items():
        if head.startswith(magic):
            return suffix
    if head.startswith(_ARROW_STREAM):
        return ".arrow"
    line = head.lstrip(b"\xef\xbb\xbf \r\n\t").split(b"\n")[0]
    if line[:1] in (b"{", b"["):
        return ".jsonl"
    return ".tsv" if b"\t" in line and b"," not in line else ".csv"


def open_scan(args: argparse.Namespace, files: list[File], probs: Any = None) -> Scan:
    """The rows of files, as the options say."""
    return scan_files(
        files,
        probs=args.probs if probs is None else probs,
        labels=args.labels,
        weights=args.weights,
        classes=args.classes,
        progress=False if args.quiet else None,
        left_out=_left_out(args),
    )


def _left_out(args: argparse.Namespace) -> tuple[str, ...]:
    """Columns that hold no predictions, whatever a pattern says."""
    groups, by = getattr(args, "groups", None), getattr(args, "by", None)
    return (*(() if groups is None else (groups,)), *(by or ()))


def check_twice(args: argparse.Namespace) -> None:
    """Refuse groups and segments of what can be read once."""
    if not _left_out(args):
        return
    option = "--by" if args.groups is None else "--groups"
    for path in args.files:
        if path == "-" or (os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode)):
            raise UsageError(
                f"argument {option}: needs files that can be read twice, got {path!r}; save it to a "
                "file first"
            )


def with_groups(data: Data, args: argparse.Namespace) -> Data:
    """The same data with groups and segments of their rows, by another pass over the files."""
    places = dict(data.places)
    if args.groups is not None:
        places["groups"] = f"groups ({args.groups})"
        data = data._replace(groups=_column_of("groups", args.groups, args))
    if args.by is not None:
        data = data._replace(by={Path(name).stem: _column_of("by", name, args) for name in args.by})
    return data._replace(places=places)


def _column_of(what: str, name: str, args: argparse.Namespace) -> NDArray[Any]:
    """A column that all files share."""
    parts = [args.files] if getattr(args, "shards", False) else [[path] for path in args.files]
    first, *others = (_read_column(what, name, part, args) for part in parts)
    if not all(np.array_equal(first, other) for other in others):
        raise DataError(f"{what} must be the same in all files, since rows are compared one by one")
    return first


def _read_column(what: str, name: str, paths: list[str], args: argparse.Namespace) -> NDArray[Any]:
    """A column beside predictions, read as labels are."""
    files, probs = [find_file(path) for path in paths], args.probs
    models = getattr(args, "models", None)
    if models is None and probs is None and len(files) == 1:
        models = _models_of(files[0], args, several=False)
    if models is not None:
        probs = next(iter(models.values()))
    others = (args.labels, args.weights, "labels", "label", *_left_out(args))
    taken = tuple(other for other in others if other and other != name)
    try:
        scan = scan_files(files, probs, labels=name, progress=False, left_out=taken)
    except InputError as error:
        raise DataError(f"{error.problem}; name it with --{what}") from None
    scan.classes = None
    return np.concatenate([labels for labels, *_ in scan])


def _read(scan: Scan, folder: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """All rows; many predictions stay on disk, mapped or spooled to `folder`."""
    small = scan.n_samples is not None and scan.n_samples * scan.n_classes <= _IN_MEMORY
    labels, probs, *weights = scan.read(spool=None if small else folder)
    return labels, probs, weights[0] if weights else None


def _numbered(
    labels: NDArray[Any], scan: Scan, said: set[str]
) -> tuple[NDArray[Any], tuple[Any, ...] | None]:
    """Numbers of columns in place of names that no column has: in sorted order, with a warning."""
    if labels.dtype.kind != "U":
        return labels, scan.classes
    where = places_of(scan)["labels"]
    names, numbers = np.unique(labels, return_inverse=True)
    if len(names) != scan.n_classes:
        raise DataError(
            f"{where} holds {len(names)} names, {listed(names.tolist())}, but there are "
            f"{scan.n_classes} classes; name them with --classes, in the order of the columns"
        )
    shown = listed(names.tolist(), 20)
    if all(name.strip().lstrip("+-").isdecimal() for name in names):
        raise DataError(
            f"{where} holds numbers as text, {shown}; save integers, or name the columns with "
            "--classes"
        )
    if where not in said:
        said.add(where)
        warnings.warn(
            f"{where} holds names, and nothing tells which column each belongs to: the columns are "
            f"taken to be {shown}, in sorted order; name them with --classes if that is wrong",
            stacklevel=2,
        )
    return numbers.reshape(-1), tuple(names.tolist())


def check_numbered(scan: Scan) -> None:
    """Refuse names without an order in a stream, which does not know all of them beforehand."""
    if scan.classes is None and next(iter(scan))[0].dtype.kind == "U":
        raise DataError(
            f"{places_of(scan)['labels']} holds names, and nothing tells which column each belongs "
            "to; name the columns with --classes"
        )


def read_one(scan: Scan, folder: str) -> Data:
    """Labels and predictions of one model."""
    labels, probs, weights = _read(scan, folder)
    labels, classes = _numbered(labels, scan, set())
    return Data(labels, {"model": probs}, weights, classes, places_of(scan), scan.n_classes)


def open_models(args: argparse.Namespace, folder: str, *, several: bool) -> dict[str, Scan]:
    """Scans by model: one a file, or several of one file."""
    files = [find(path, folder) for path in args.files]
    models = args.models
    if models is None and len(files) == 1 and args.probs is None:
        models = _models_of(files[0], args, several=several)
    if models is None:
        names = _names(args)
        return {n: open_scan(args, [file]) for n, file in zip(names, files, strict=True)}
    if len(files) != 1:
        raise UsageError(f"argument --models: names models of one file, got {len(files)} files")
    if args.probs is not None:
        raise UsageError("argument --models: takes the place of --probs, got both")
    names = list(models) if args.names is None else checked_names(args.names, len(models))
    scans = (open_scan(args, files, probs) for probs in models.values())
    return dict(zip(names, scans, strict=True))


def _models_of(file: File, args: argparse.Namespace, *, several: bool) -> dict[str, str] | None:
    """The models of a file; None is one model, where it is not said that there are several."""
    try:
        models = find_models_of(file, args.labels, args.weights, *_left_out(args))
    except InputError:
        if several:
            raise
        return None
    return models if several or "probs" not in models else None


def read_models(scans: dict[str, Scan], folder: str) -> Data:
    """Labels, predictions by model, and weights; labels by model where they differ."""
    truths, models, weights, classes = {}, {}, {}, None
    said: set[str] = set()  # once for a file that holds several models
    for name, scan in scans.items():
        labels, models[name], weights[name] = _read(scan, folder)
        truths[name], classes = _numbered(labels, scan, said)
    first, *others = truths.values()
    same = all(np.array_equal(first, other) for other in others)
    if not same and len(set(map(len, truths.values()))) == 1:
        warnings.warn(
            "the files hold different labels; rows are compared one by one, so row i must be the same "
            "case in every file",
            stacklevel=2,
        )
    weight, *more = weights.values()
    if not all(_equal(weight, other) for other in more):
        raise DataError("weights must be the same in all files, since rows are compared one by one")
    n_classes = next(iter(scans.values())).n_classes
    shared = first if same else truths
    return Data(shared, models, weight, classes, _common_places(scans), n_classes)


def _equal(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


def _common_places(scans: dict[str, Scan]) -> dict[str, str]:
    """Places of all models: where they differ in more than the file, nothing is said."""
    if len(scans) == 1:
        return places_of(next(iter(scans.values())))
    places = [
        {what: place.removeprefix(f"{scan.paths[0]} ") for what, place in places_of(scan).items()}
        for scan in scans.values()
    ]
    return {
        what: place
        for what, place in places[0].items()
        if all(other.get(what) == place for other in places)
    }


def checked_names(names: list[str], count: int) -> list[str]:
    """Different names, as many as there are models."""
    if len(names) != count or len(set(names)) < len(names):
        raise UsageError(
            f"argument --names: must give {count} different names, got {', '.join(names)}"
        )
    return names


def _names(args: argparse.Namespace) -> list[str]:
    """Names of the models: the files', without folders and suffix where that tells them apart."""
    if args.names is not None:
        return checked_names(args.names, len(args.files))
    check_different(args.files)
    stems = [Path(path).name.removesuffix(".gz").rpartition(".")[0] or path for path in args.files]
    return stems if len(set(stems)) == len(stems) else list(args.files)


def check_different(paths: list[str]) -> None:
    """Refuse a file that is given twice: rows would count twice, or be compared with themselves."""
    files = [os.path.realpath(path) for path in paths if path != "-"]
    if len(set(files)) < len(files):
        raise UsageError("each file must be given once")
