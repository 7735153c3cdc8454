"""Prediction files, in batches, at the memory of one batch."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import (
    check_bool,
    check_count,
    check_seed,
    listed,
)
from ckce._methods import Landmarks
from ckce._scan.batches import Batch, draw, find_classes, joined
from ckce._scan.formats import (
    File,
    Rows,
    Source,
    check_paths,
    find_file,
    is_array_file,
    open_source,
    suffix_of,
)

if TYPE_CHECKING:
    from ckce._compare.verdict import CommonGround
    from ckce._stream.accumulator import CKCEAccumulator

_ROW_BYTES = 2**26  # most of a row
_BATCH_BYTES = 2**23  # a batch is cut where it would be larger, but keeps a row
_LOGS = (".jsonl", ".ndjson", ".json", ".eval", ".npz")  # suffixes of logs


class Scan:
    """Batches of ``(labels, probs)`` from files; what `scan` returns.

    It can be iterated over any number of times, and holds one batch at a time. With weights, a
    batch is ``(labels, probs, weights)``, in the order that `CKCEAccumulator.update` takes.

    Attributes
    ----------
    paths : tuple of str
        The files, in the order of their rows.
    n_classes : int
        Number of classes.
    n_samples : int or None
        Rows of all files; None until a pass has counted them (text, arrow).
    classes : tuple or None
        Names of the classes, if the columns or the caller name them. Labels are then
        0-based numbers of columns.
    batch_size : int
        Most rows of a batch.
    """

    def __init__(
        self,
        paths: tuple[str, ...],
        sources: list[Source],
        classes: tuple[Any, ...] | None,
        batch_size: int,
        progress: bool | None,
    ) -> None:
        self.paths = paths
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
                for part in source.batches(rows):
                    yield self._batch(part, path, row)
                    row += len(part.probs)
                    if bar is not None:
                        bar.update(len(part.probs))
                if row == 0:
                    raise ValueError(f"{path} has no rows")
                total += row
        finally:
            if bar is not None:
                bar.close()
        self.n_samples = total

    def _bar(self) -> Any:
        wanted = self._progress
        if wanted is False or (wanted is None and not sys.stderr.isatty()):
            return None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            if wanted is None:
                return None
            raise ImportError("progress=True needs tqdm: pip install tqdm") from None
        unasked = {"delay": 2.0, "leave": False} if wanted is None else {}
        return tqdm(total=self.n_samples, desc="reading", unit=" rows", unit_scale=True, **unasked)

    def _batch(self, part: Rows, path: str, first_row: int) -> Batch:
        labels, probs, weights, lines = part
        if labels is None:
            raise ValueError(f"{path} has no labels")
        if self.classes is not None:
            labels = find_classes(labels, self.classes, path, first_row, lines)
        return (labels, probs) if weights is None else (labels, probs, weights)

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
            Arrays of uncompressed files are mapped, not copied. With weights, these come third.
        """
        if len(self._sources) == 1:
            whole = self._sources[0].whole()
            if whole is not None:
                return self._batch(whole, self.paths[0], 0)
        if spool is not None:
            return self._spooled(Path(spool))
        if self.n_samples is None:
            return joined(list(self))
        # Not by concatenation: it would need the memory twice.
        n, row = self.n_samples, 0
        others: list[Batch] = []
        probs: NDArray[Any] | None = None
        for labels, block, *weights in self:
            if probs is None:
                probs = np.empty((n, *block.shape[1:]), block.dtype)
            others.append((labels, *weights))
            probs[row : row + len(block)] = block
            row += len(block)
        if probs is None or row != n:
            raise ValueError(
                f"{listed(self.paths, 3)} had {row} rows, expected {n}: it was changed"
            )
        labels, *weights = joined(others)
        return labels, probs, *weights

    def _spooled(self, folder: Path) -> Batch:
        import tempfile

        others, first = [], None
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".probs", delete=False) as file:
            for labels, block, *weights in self:
                first = block[:0] if first is None else first
                others.append((labels, *weights))
                file.write(np.ascontiguousarray(block, first.dtype).data)
        if first is None:
            raise ValueError(f"{listed(self.paths, 3)} has no rows")
        labels, *weights = joined(others)
        mapped = np.memmap(file.name, first.dtype, "r", 0, (len(labels), *first.shape[1:]))
        return labels, mapped.view(np.ndarray), *weights

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
            In the order of the files. Costs one pass. With weights, these come third.
        """
        count, seed = check_count("n_samples", n_samples), check_seed(random_state)
        return draw(self, count, seed)

    def accumulate(self, **options: Any) -> CKCEAccumulator:
        """All rows in an accumulator, at the memory of one batch and the state.

        Parameters
        ----------
        **options
            Of `CKCEAccumulator`. ``bandwidth="median"`` is the median of `sample`, which costs a
            pass of its own; so does ``method=ckce.Landmarks(200)``, which takes them out of it.

        Returns
        -------
        CKCEAccumulator
            Its ``evaluate()`` gives all metrics.
        """
        from ckce._stream.accumulator import CKCEAccumulator

        method = options.get("method")
        method = Landmarks() if method == "landmarks" else method
        count = 4 * method.count if isinstance(method, Landmarks) and not method.given else 0
        if count or options.get("bandwidth") == "median":
            seed = options.get("random_state", 0)
            labels, probs, *weights = self.sample(max(2000, count), random_state=seed)
            weighted = {"sample_weight": weights[0]} if weights else {}
            accumulator = CKCEAccumulator.from_sample(labels, probs, **weighted, **options)
        else:
            accumulator = CKCEAccumulator(self.n_classes, **options)
        for batch in self:
            accumulator.update(*batch)
        return accumulator

    def compare(
        self,
        other: Scan,
        *,
        names: tuple[str, str] = ("A", "B"),
        level: float = 0.95,
        regularization: float | None = None,
        **options: Any,
    ) -> CommonGround:
        """Two models at equal predictions, at the memory of a batch of each.

        Parameters
        ----------
        other : Scan
            The files of the other model. Rows are paired: row i is the same case in both.
        names : tuple of two str
            Names of the models.
        level : float
            Level of the interval.
        regularization : float, optional
            lambda; by default n^(-1/4).
        **options
            Of `GroundAccumulator.from_sample`: ``bandwidth``, ``reduction``, ``kernel``, ...

        Returns
        -------
        CommonGround
            As `common_ground` gives it. Up to 2000 rows it is the same to rounding; above, landmarks
            and the median bandwidth come from `sample`, which costs a pass. The sums take one pass
            more, the standard errors another one.

        Examples
        --------
        >>> import ckce
        >>> import numpy as np, os, tempfile
        >>> rng = np.random.default_rng(0)
        >>> good = rng.dirichlet([1, 1, 1], size=2000)
        >>> y_true = (rng.random((2000, 1)) > good.cumsum(axis=1)[:, :2]).sum(axis=1)
        >>> sharp = good**2 / (good**2).sum(axis=1, keepdims=True)
        >>> path = os.path.join(tempfile.mkdtemp(), "both.npz")
        >>> np.savez(path, good=good, sharp=sharp, labels=y_true)
        >>> a, b = (ckce.scan(path, probs=name) for name in ("sharp", "good"))
        >>> a.compare(b, names=("sharp", "good")).better
        'good'
        """
        from ckce._compare.ground_scan import compare_scans

        if not isinstance(other, Scan):
            raise TypeError(f"other must be a Scan, got {type(other).__name__}")
        return compare_scans(
            self, other, names=names, level=level, regularization=regularization, options=options
        )


def places_of(scan: Scan) -> dict[str, str]:
    """What messages call labels, probs and weights."""
    return dict(scan._sources[0].places)


def estimate_rows(scan: Scan) -> int:
    """Rows of a scan; where they are not counted yet, from the sizes of its files."""
    if scan.n_samples is not None:
        return scan.n_samples
    return sum(
        source.n_samples if source.n_samples is not None else source.guess_rows()
        for source in scan._sources
    )


def scan(
    path: Any,
    *,
    probs: str | Sequence[str] | None = None,
    labels: Any = None,
    weights: Any = None,
    classes: Sequence[Any] | None = None,
    batch_size: int = 8192,
    progress: bool | None = None,
) -> Scan:
    """Read predictions from files, batch by batch.

    Parameters
    ----------
    path : path, or sequence of paths
        ``.npy``, ``.npz``, ``.csv``, ``.tsv``, ``.jsonl``, ``.parquet`` or ``.arrow`` files (the
        last two need pyarrow); text may be gzipped (``.csv.gz``). Several files are read one after
        the other, as one data set. Logs of language models, a file or a folder of them, are read as
        `read_log` does; their predictions come as `Choices` or `TopKPredictions`.
    probs : str or sequence of str, optional
        Where the predictions are, "probs" by default. In an npz file: the name of the array. In a
        table: a column of lists, or of the probability of the positive class; a name with numbers
        behind it (``"p"`` finds p0, p1, ... or p_0, p_1, ...); a pattern (``"prob_*"``, ``"*"``
        for all columns but the labels'); or a list of columns.
    labels : str or path, optional
        Where the labels are: the name of an array or a column ("labels" or "label" by default), or
        an ``.npy`` file (or an ``.npz`` file that holds "labels").
    weights : str or path, optional
        Where the frequency weights of the rows are, as for `labels`; by default there are none.
    classes : sequence, optional
        Names of the classes in the labels, in the order of the columns. By default integer labels
        number the columns from 0, and names are those of the columns of a table.
    batch_size : int
        Most rows in a batch; a batch is cut at 8 MB.
    progress : bool, optional
        Show a progress bar (needs tqdm); by default on a terminal, after two seconds.

    Returns
    -------
    Scan
        Iterates over ``(labels, probs)`` with the memory of one batch; has ``n_classes``,
        ``n_samples``, ``classes``, ``read()``, ``sample()``, ``compare()`` and ``accumulate()``, so that
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
    if progress is not None:
        check_bool("progress", progress)
    paths = check_paths(path)
    if probs is None and labels is None and weights is None and classes is None:
        found = scan_logs(paths, batch_size, progress)
        if found is not None:
            return found
    files = [find_file(each) for each in paths]
    return scan_files(files, probs, labels, weights, classes, batch_size, progress)


def scan_logs(paths: Sequence[Any], batch_size: int, progress: bool | None) -> Scan | None:
    """The rows of logs of language models, read as `read_log` does; None if they are none."""
    if not any(Path(each).is_dir() or suffix_of(Path(each))[0] in _LOGS for each in paths):
        return None
    from ckce._scan.log import LogOptions
    from ckce._scan.log_source import LogSource
    from ckce._scan.read_log import find_logs, read_logs

    files = find_logs(paths)
    if files is None:
        return None
    log = read_logs(files, LogOptions())
    name = log.files[0] if len(log.files) == 1 else f"{len(log.files)} log files"
    return Scan((name,), [LogSource(log)], None, batch_size, progress)


def scan_files(
    files: Sequence[File],
    probs: str | Sequence[str] | None = None,
    labels: Any = None,
    weights: Any = None,
    classes: Sequence[Any] | None = None,
    batch_size: int = 8192,
    progress: bool | None = None,
    left_out: tuple[str, ...] = (),
) -> Scan:
    """`scan` of files that were found; no pattern takes the columns that are `left_out`."""
    if not files:
        raise ValueError("path must name at least one file, got an empty sequence")
    for what, name in (("labels", labels), ("weights", weights)):
        if is_array_file(name) and len(files) > 1:
            raise ValueError(
                f"{what} must name an array or a column where several files are read, got {name!r}"
            )
    sources = [open_source(file, probs, labels, weights, left_out) for file in files]
    for file, source in zip(files, sources, strict=True):
        _check_source(file.name, source, files[0].name, sources[0])
    names = sources[0].classes if classes is None else tuple(classes)
    m = sources[0].n_classes
    if names is not None and (len(names), len(set(names))) != (m, m):
        if classes is None and m == 2:  # one column, of the positive class
            names = None
        else:
            raise ValueError(f"classes must give {m} distinct names, got {listed(map(str, names))}")
    paths = tuple(file.name for file in files)
    return Scan(paths, sources, names, batch_size, progress)


def _check_source(name: str, source: Source, first_name: str, first: Source) -> None:
    if (source.n_classes, source.classes) != (first.n_classes, first.classes):
        raise ValueError(
            f"{name} has {source.n_classes} classes that differ from the {first.n_classes} of "
            f"{first_name}"
        )
    if source.n_classes < 2:
        raise ValueError(
            f"{name} must have probabilities of at least 2 classes, got {source.n_classes}; give a "
            "1-D array for the positive class"
        )
    if source.row_bytes > _ROW_BYTES:
        raise ValueError(
            f"{name} has rows of {source.row_bytes} bytes, expected at most {_ROW_BYTES}"
        )
    if source.n_samples == 0:
        raise ValueError(f"{name} has no rows")
