"""Prediction files, in batches, at the memory of one batch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ckce._input import check_bool, check_count, check_seed, listed, nearest

if TYPE_CHECKING:
    from ckce._scan.arrays import ArrayFile
    from ckce._scan.tables import Batch
    from ckce._stream.accumulator import CKCEAccumulator

_ROW_BYTES = 2**26  # most of a row
_BATCH_BYTES = 2**23  # a batch is cut where it would be larger, but keeps a row
_TEXT = (".csv", ".tsv")
_ARROW = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_ARRAYS = (".npy", ".npz")
_LABELS = ("labels", "label")


class _Source(Protocol):
    """One file."""

    @property
    def n_samples(self) -> int | None: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def classes(self) -> tuple[Any, ...] | None: ...
    @property
    def row_bytes(self) -> int: ...
    def batches(self, rows: int) -> Iterator[Batch]: ...
    def whole(self) -> Batch | None: ...


class _ArrayPair:
    """Labels and predictions in two arrays."""

    classes = None

    def __init__(self, labels: ArrayFile, probs: ArrayFile) -> None:
        if len(probs.shape) not in (1, 2) or probs.dtype.kind not in "biuf":
            raise ValueError(
                f"{probs.where} must hold probabilities of shape (n_samples, n_classes), or "
                f"(n_samples,) for the positive class, got {probs.shape} of {probs.dtype}"
            )
        if len(labels.shape) != 1:
            raise ValueError(f"{labels.where} must have shape (n_samples,), got {labels.shape}")
        if labels.shape[0] != probs.shape[0]:
            raise ValueError(
                f"{labels.where} has {labels.shape[0]} rows, but {probs.where} has "
                f"{probs.shape[0]}; they must be of the same samples"
            )
        self._labels, self._probs = labels, probs
        self.n_samples = probs.shape[0]
        self.n_classes = probs.shape[1] if len(probs.shape) == 2 else 2
        self.row_bytes = max(probs.row_bytes, labels.row_bytes)

    def batches(self, rows: int) -> Iterator[Batch]:
        yield from zip(self._labels.blocks(rows), self._probs.blocks(rows), strict=True)

    def whole(self) -> Batch | None:
        """Both arrays if that costs no memory."""
        labels, probs = self._labels.whole(), self._probs.whole()
        return None if labels is None or probs is None else (labels, probs)


def _exists(path: Path) -> Path:
    if path.is_dir():
        files = sorted(
            p.name for p in path.iterdir() if p.suffix.lower() in (*_ARRAYS, *_TEXT, *_ARROW)
        )
        hint = f"; pass its files, such as {files[0]!r}" if files else ""
        raise IsADirectoryError(f"{path} is a directory{hint}")
    if not path.exists():
        there = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise FileNotFoundError(f"{path} does not exist{nearest(path.name, there)}")
    if not path.is_file():
        raise ValueError(f"{path} must be a regular file: it is read more than once")
    return path


def _is_file_name(labels: Any) -> bool:
    return isinstance(labels, PathLike) or (
        isinstance(labels, str) and labels.lower().endswith(_ARRAYS)
    )


def _open(path: Path, probs: str | Sequence[str] | None, labels: Any) -> _Source:
    # zipfile, csv and pyarrow take 10 ms and more that importing ckce should not cost.
    suffix = _exists(path).suffix.lower()
    if suffix in (*_TEXT, *_ARROW):
        from ckce._scan.tables import ArrowTable, CsvTable

        if _is_file_name(labels):
            raise ValueError(f"{path} is a table: labels must name one of its columns")
        names = _LABELS if labels is None else (labels,)
        if suffix in _TEXT:
            return CsvTable(path, probs, names)
        return ArrowTable(path, probs, names)
    if suffix not in _ARRAYS:
        raise ValueError(
            f"{path} must be a {', '.join((*_ARRAYS, *_TEXT, *_ARROW))} file, got "
            f"{suffix or 'no suffix'!r}"
        )
    return _open_arrays(path, probs, labels)


def _open_arrays(path: Path, probs: str | Sequence[str] | None, labels: Any) -> _Source:
    from ckce._scan.arrays import open_array, open_member

    suffix = path.suffix.lower()
    if probs is not None and not isinstance(probs, str):
        raise ValueError(f"{path} holds arrays: probs must name one, got {list(probs)}")
    if _is_file_name(labels):
        other = _exists(Path(labels))
        npz = other.suffix.lower() == ".npz"
        truth = open_member(other, _LABELS, "labels") if npz else open_array(other)
    elif suffix == ".npz":
        truth = open_member(path, _LABELS if labels is None else (labels,), "labels")
    else:
        raise ValueError(f"{path} holds one array: give the labels as another file, labels='y.npy'")
    if suffix == ".npz":
        return _ArrayPair(truth, open_member(path, ("probs" if probs is None else probs,), "probs"))
    return _ArrayPair(truth, open_array(path))


class Scan:
    """Batches of ``(labels, probs)`` from files; what `scan` returns.

    It can be iterated over any number of times, and holds one batch at a time.

    Attributes
    ----------
    paths : tuple of str
        The files, in the order of their rows.
    n_classes : int
        Number of classes.
    n_samples : int or None
        Rows of all files; None until a pass has counted them (csv, arrow).
    classes : tuple or None
        What the classes are called, if the columns or the caller name them. Labels are then
        0-based numbers of columns.
    batch_size : int
        Most rows of a batch.
    """

    def __init__(
        self,
        paths: tuple[Path, ...],
        sources: list[_Source],
        classes: tuple[Any, ...] | None,
        batch_size: int,
        progress: bool,
    ) -> None:
        self.paths = tuple(map(str, paths))
        self.n_classes = sources[0].n_classes
        counts = [source.n_samples for source in sources]
        known = [count for count in counts if count is not None]
        self.n_samples = sum(known) if len(known) == len(counts) else None
        self.classes = classes
        self.batch_size = batch_size
        self._sources, self._progress = sources, progress

    def __repr__(self) -> str:
        rows = "unknown" if self.n_samples is None else self.n_samples
        return f"Scan({listed(self.paths, 3)}, n_samples={rows}, n_classes={self.n_classes})"

    def __iter__(self) -> Iterator[Batch]:
        bar = self._bar()
        total = 0
        try:
            for path, source in zip(self.paths, self._sources, strict=True):
                row = 0
                rows = min(self.batch_size, max(1, _BATCH_BYTES // max(1, source.row_bytes)))
                for labels, probs in source.batches(rows):
                    yield self._columns(labels, path, row), probs
                    row += len(labels)
                    if bar is not None:
                        bar.update(len(labels))
                if row == 0:
                    raise ValueError(f"{path} has no rows")
                total += row
        finally:
            if bar is not None:
                bar.close()
        self.n_samples = total

    def _bar(self) -> Any:
        if not self._progress:
            return None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise ImportError("progress=True needs tqdm: pip install tqdm") from None
        return tqdm(total=self.n_samples, desc="reading", unit=" rows", unit_scale=True)

    def _columns(self, labels: NDArray[Any], path: str, first_row: int) -> NDArray[Any]:
        """Numbers of the columns that the labels name."""
        if self.classes is None:
            return labels
        names: Sequence[Any] = self.classes
        if labels.dtype.kind in "US":
            labels = labels.astype(str)
            names = [str(name) for name in names]
        elif all(isinstance(name, str) for name in names):
            numbers = [int(name) for name in names if re.fullmatch(r"-?\d+", name)]
            if len(numbers) == len(names) and numbers != list(range(len(names))):
                raise ValueError(
                    f"classes must be integers where the labels of {path} are, got the strings "
                    f"{listed(names)}"
                )
            return labels  # integers number the columns, whatever these are called
        values, inverse = np.unique(labels, return_inverse=True)
        column_of = {name: column for column, name in enumerate(names)}
        columns = np.array([column_of.get(value, -1) for value in values.tolist()], np.int64)
        indices = columns[inverse.reshape(-1)]
        if (indices < 0).any():
            row = int(np.argmax(indices < 0))
            label = labels[row].item()
            hint = nearest(label, names) if isinstance(label, str) else ""
            raise ValueError(
                f"{path} row {first_row + row} has the label {label!r}, but the classes are "
                f"{listed(map(str, names))}{hint}"
            )
        return indices

    def read(self, *, spool: str | PathLike[str] | None = None) -> Batch:
        """All rows at once.

        Parameters
        ----------
        spool : path, optional
            A folder: predictions that cannot be mapped as they are get written there, uncompressed,
            and mapped. The file must stay as long as they are used.

        Returns
        -------
        labels, probs : ndarray
            Arrays of uncompressed files are mapped, not copied.
        """
        if len(self._sources) == 1:
            whole = self._sources[0].whole()
            if whole is not None:
                return self._columns(whole[0], self.paths[0], 0), whole[1]
        if spool is not None:
            return self._spooled(Path(spool))
        if self.n_samples is None:
            batches = list(self)
            labels = np.concatenate([batch[0] for batch in batches])
            return labels, np.concatenate([batch[1] for batch in batches])
        # Not by concatenation: it would need the memory twice.
        n, row, parts = self.n_samples, 0, []
        probs: NDArray[Any] | None = None
        for labels, block in self:
            if probs is None:
                probs = np.empty((n, *block.shape[1:]), block.dtype)
            parts.append(labels)
            probs[row : row + len(block)] = block
            row += len(block)
        if probs is None or row != n:
            raise ValueError(
                f"{listed(self.paths, 3)} had {row} rows, expected {n}: it was changed"
            )
        return np.concatenate(parts), probs

    def _spooled(self, folder: Path) -> Batch:
        import tempfile

        parts, first = [], None
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".probs", delete=False) as file:
            for labels, block in self:
                first = block[:0] if first is None else first
                parts.append(labels)
                file.write(np.ascontiguousarray(block, first.dtype).data)
        assert first is not None  # a scan of no rows has raised
        labels = np.concatenate(parts)
        mapped = np.memmap(file.name, first.dtype, "r", 0, (len(labels), *first.shape[1:]))
        return labels, mapped.view(np.ndarray)

    def sample(self, n_samples: int = 2000, *, random_state: int = 0) -> Batch:
        """Rows drawn from all of the files, with every set of rows equally likely.

        Parameters
        ----------
        n_samples : int
            How many; all rows if there are fewer.
        random_state : int
            Seed. The rows do not depend on `batch_size`.

        Returns
        -------
        labels, probs : ndarray
            In the order of the files. Costs one pass.
        """
        count, seed = check_count("n_samples", n_samples), check_seed(random_state)
        first = 0
        # The rows with the smallest hashes: drawn in one pass, whatever their number.
        hashes: NDArray[np.uint64] = np.empty(0, np.uint64)
        kept: list[Batch] = []
        rows: NDArray[np.int64] = np.empty(0, np.int64)
        for labels, probs in self:
            numbers = np.arange(first, first + len(labels))
            drawn = _hash(numbers, seed)
            if len(hashes) == count:
                numbers, drawn = (a[drawn < hashes.max()] for a in (numbers, drawn))
            here = numbers - first
            first += len(labels)
            if not len(here):
                continue
            kept.append((labels[here], np.asarray(probs[here])))
            hashes, rows = np.concatenate([hashes, drawn]), np.concatenate([rows, numbers])
            if len(hashes) > count:
                best = np.sort(np.argpartition(hashes, count - 1)[:count])
                joined = (np.concatenate([batch[part] for batch in kept]) for part in (0, 1))
                chosen_labels, chosen_probs = (array[best] for array in joined)
                hashes, rows, kept = hashes[best], rows[best], [(chosen_labels, chosen_probs)]
        labels, probs = (np.concatenate([batch[part] for batch in kept]) for part in (0, 1))
        return labels, probs

    def accumulate(self, **options: Any) -> CKCEAccumulator:
        """All rows in an accumulator, at the memory of one batch and the state.

        Parameters
        ----------
        **options
            Of `CKCEAccumulator`. Without a bandwidth, it is the median of `sample`, which costs a
            pass of its own; so do landmarks, if ``n_landmarks`` asks for them.

        Returns
        -------
        CKCEAccumulator
            Its ``evaluate()`` gives all metrics.
        """
        from ckce._stream.accumulator import CKCEAccumulator

        seed, count = options.get("random_state", 0), options.pop("n_landmarks", None)
        known = options.get("kernel") == "linear" or options.get("landmarks") is not None
        if count is not None:
            rows = max(2000, 4 * check_count("n_landmarks", count))
            accumulator = CKCEAccumulator.from_sample(
                *self.sample(rows, random_state=seed), n_landmarks=count, **options
            )
        elif options.get("bandwidth", "median") == "median" and not known:
            options.pop("bandwidth", None)
            accumulator = CKCEAccumulator.from_sample(*self.sample(random_state=seed), **options)
        else:
            accumulator = CKCEAccumulator(self.n_classes, **options)
        for labels, probs in self:
            accumulator.update(labels, probs)
        return accumulator


def _hash(numbers: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """SplitMix64 of row numbers, the project's generator counted instead of iterated."""
    state = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state += np.uint64(seed)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(state ^ (state >> np.uint64(31)))


def scan(
    path: Any,
    *,
    probs: str | Sequence[str] | None = None,
    labels: Any = None,
    classes: Sequence[Any] | None = None,
    batch_size: int = 8192,
    progress: bool = False,
) -> Scan:
    """Read predictions from files, batch by batch.

    Parameters
    ----------
    path : path, or sequence of paths
        ``.npy``, ``.npz``, ``.csv``, ``.tsv``, ``.parquet`` or ``.arrow`` files (the last two need
        pyarrow). Several files are read one after the other, as one data set.
    probs : str or sequence of str, optional
        Where the predictions are, "probs" by default. In an npz file: the name of the array. In a
        table: a column of lists, or of the probability of the positive class; a name with numbers
        behind it (``"p"`` finds p0, p1, ... or p_0, p_1, ...); a pattern (``"prob_*"``, ``"*"``
        for all columns but the labels'); or a list of columns.
    labels : str or path, optional
        Where the labels are: the name of an array or a column ("labels" or "label" by default), or
        an ``.npy`` file (or an ``.npz`` file that holds "labels").
    classes : sequence, optional
        What the labels call the classes, in the order of the columns. By default integer labels
        number the columns from 0, and names are those of the columns of a table.
    batch_size : int
        Most rows in a batch; a batch is cut at 8 MB.
    progress : bool
        Show a progress bar (needs tqdm).

    Returns
    -------
    Scan
        Iterates over ``(labels, probs)`` with the memory of one batch; has ``n_classes``,
        ``n_samples``, ``classes``, ``read()``, ``sample()`` and ``accumulate()``, so that
        ``ckce.scan(path).accumulate().evaluate()`` evaluates files larger than memory.

    Notes
    -----
    Uncompressed arrays are mapped into memory, compressed ones and tables are read as a stream, and
    each pass opens the files again. A file is not trusted: sizes that it declares are compared with
    what it holds, checksums are compared, objects are not unpickled. The values are not judged
    here; the metrics do that.

    Examples
    --------
    >>> import ckce
    >>> import numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "preds.npz")
    >>> np.savez(path, probs=[[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], labels=[0, 1, 1])
    >>> [len(labels) for labels, probs in ckce.scan(path, batch_size=2)]
    [2, 1]
    >>> print(f"{ckce.ckce(*ckce.scan(path).read()):.6f}")
    0.053708
    """
    check_count("batch_size", batch_size)
    check_bool("progress", progress)
    single = isinstance(path, (str, PathLike))
    paths = tuple(Path(fspath(each)) for each in ([path] if single else path))
    if not paths:
        raise ValueError("path must name at least one file, got an empty sequence")
    if _is_file_name(labels) and len(paths) > 1:
        raise ValueError(
            f"labels must name an array or a column where several files are read, got {labels!r}"
        )
    sources = [_open(each, probs, labels) for each in paths]
    for each, source in zip(paths, sources, strict=True):
        if source.n_classes != sources[0].n_classes or source.classes != sources[0].classes:
            raise ValueError(
                f"{each} has {source.n_classes} classes that differ from the "
                f"{sources[0].n_classes} of {paths[0]}"
            )
        if source.n_classes < 2:
            raise ValueError(
                f"{each} must have probabilities of at least 2 classes, got {source.n_classes}; give "
                "a 1-D array for the positive class"
            )
        if source.row_bytes > _ROW_BYTES:
            raise ValueError(
                f"{each} has rows of {source.row_bytes} bytes, expected at most {_ROW_BYTES}"
            )
        if source.n_samples == 0:
            raise ValueError(f"{each} has no rows")
    names = sources[0].classes if classes is None else tuple(classes)
    if names is not None and (len(names), len(set(names))) != (sources[0].n_classes,) * 2:
        raise ValueError(
            f"classes must give {sources[0].n_classes} distinct names, got {listed(map(str, names))}"
        )
    return Scan(paths, sources, names, batch_size, progress)
