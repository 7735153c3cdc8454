"""CKCE of dask arrays and of directories of files, on a cluster.

Every partition becomes one state, and states are merged in a tree on the workers, so that only one
comes back. A partition that dask computes again, because a worker was lost, replaces its first
result; the same one twice in a sum would be refused by its `shard_id`.

Examples
--------
>>> import dask.array as da
>>> from ckce.integrations.dask import accumulate
>>> y_true = da.from_array([0, 1, 1, 0, 1, 0], chunks=2)
>>> y_prob = da.from_array([0.1, 0.8, 0.4, 0.3, 0.9, 0.6], chunks=2)
>>> acc = accumulate(y_true, y_prob, bandwidth=0.4)
>>> acc.n_samples, round(acc.compute(), 6)
(6, 0.004593)
"""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dask
import numpy as np

import ckce
from ckce import CKCEAccumulator
from ckce._input import InputError, InputTypeError

__all__ = ["accumulate", "accumulate_files"]

_SAMPLE_ROWS = 2000
_FAN_IN = 8  # states that one task merges
#: What files call labels and predictions.
_NAMES = {"y_true": "labels", "y_prob": "probs"}
_SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".npz", ".csv")

Batches = Iterable[tuple[Any, ...]]


def accumulate(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    **options: Any,
) -> CKCEAccumulator:
    """The state of all rows of dask arrays.

    Parameters
    ----------
    y_true : dask array of shape (n_samples,)
        Labels, as in `ckce.ckce`.
    y_prob : dask array of shape (n_samples, n_classes), or (n_samples,) for the positive class
        Predicted probabilities, in the same chunks of rows.
    sample_weight : dask array of shape (n_samples,), optional
        Frequency weights.
    **options
        Of `CKCEAccumulator`. ``bandwidth="median"`` is the median of about 2000 rows, evenly out of
        all partitions, which takes a first pass over them; so does ``method=ckce.Landmarks(200)``.

    Returns
    -------
    CKCEAccumulator
        With all rows; merged states agree with one pass over them to 1e-12.
    """
    if isinstance(y_prob, ckce.TopKPredictions):
        raise TypeError(
            "y_prob must be a dask array, got ckce.TopKPredictions, which is in memory: pass its "
            "chunks to CKCEAccumulator.update, and merge"
        )
    columns = y_prob.shape[1] if y_prob.ndim == 2 else 2
    if math.isnan(columns):
        raise ValueError("y_prob must have a known number of columns, got nan")
    if y_prob.ndim == 2 and y_prob.numblocks[1] != 1:
        y_prob = y_prob.rechunk({1: -1})
    arrays = [_aligned("y_true", y_true, y_prob)]
    if sample_weight is not None:
        arrays.append(_aligned("sample_weight", sample_weight, y_prob))
    probs = y_prob.to_delayed().ravel()
    others = [array.to_delayed().ravel() for array in arrays]
    parts = [
        dask.delayed(_one_batch)(truth, prob, *weight)
        for truth, prob, *weight in zip(others[0], probs, *others[1:], strict=True)
    ]
    names = [f"partition {number}" for number in range(len(parts))]
    return _accumulate(int(columns), parts, names, options)


def _aligned(name: str, array: Any, y_prob: Any) -> Any:
    """The array in the row chunks of `y_prob`."""
    rows, wanted = array.chunks[0], y_prob.chunks[0]
    unknown = any(math.isnan(size) for size in (*rows, *wanted))
    if unknown and len(rows) != len(wanted):
        raise ValueError(
            f"{name} and y_prob must have the same partitions, got {len(rows)} and {len(wanted)} of "
            "unknown length; call compute_chunk_sizes() first"
        )
    if not unknown and sum(rows) != sum(wanted):
        raise ValueError(
            f"{name} and y_prob must have the same number of rows, got {sum(rows)} and {sum(wanted)}"
        )
    return array if unknown or rows == wanted else array.rechunk((wanted,))


def accumulate_files(
    path: Any,
    *,
    probs: Any = None,
    labels: Any = None,
    classes: Sequence[Any] | None = None,
    **options: Any,
) -> CKCEAccumulator:
    """The state of all rows of many files, one partition for each.

    Parameters
    ----------
    path : directory, path, or sequence of paths
        Files that `ckce.scan` reads and that all workers can reach; of a directory all that are
        parquet, arrow, npz or csv, in the order of their names.
    probs, labels, classes
        As in `ckce.scan`.
    **options
        As in `accumulate`, but `labels`, which scanning settles.

    Returns
    -------
    CKCEAccumulator
        Its `shards` are the names of the files.
    """
    files = _files(path)
    wanted = {"probs": probs, "labels": labels, "classes": classes}
    first = ckce.scan(files[0], **wanted)
    parts = [dask.delayed(_File)(name, wanted, first.n_classes, first.classes) for name in files]
    try:
        return _accumulate(first.n_classes, parts, files, options)
    except (InputError, InputTypeError) as error:
        hints = {
            "one_based": f"labels look 1-based: pass classes=range(1, {first.n_classes + 1})",
            "labels": "pass classes= with the class of each column",
        }
        raise error.renamed(_NAMES, hints) from error


def _files(path: Any) -> list[str]:
    if not isinstance(path, (str, os.PathLike)):
        files = [os.fspath(each) for each in path]
    elif Path(path).is_dir():
        files = [str(each) for each in sorted(Path(path).iterdir()) if each.suffix in _SUFFIXES]
    else:
        files = [os.fspath(path)]
    if not files:
        raise ValueError(f"{path} must hold {', '.join(_SUFFIXES)} files, got none")
    return files


class _File:
    """Batches of a file, read where they are wanted."""

    def __init__(
        self, name: str, wanted: dict[str, Any], n_classes: int, classes: tuple[Any, ...] | None
    ) -> None:
        self.name, self.wanted = name, wanted
        self.n_classes, self.classes = n_classes, classes

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        found = ckce.scan(self.name, **self.wanted)
        if (found.n_classes, found.classes) != (self.n_classes, self.classes):
            raise ValueError(f"{self.name} has classes that differ from those of the first file")
        return iter(found)


def _one_batch(*batch: Any) -> list[tuple[Any, ...]]:
    return [batch]


def _accumulate(
    n_classes: int,
    parts: list[Any],
    names: list[str],
    options: dict[str, Any],
) -> CKCEAccumulator:
    options = {"n_threads": 1, **options}  # a worker has its threads for tasks
    if "shard_id" in options:
        raise TypeError("shard_id is given to each partition, got one for all")
    template = dask.delayed(_template(n_classes, parts, options))
    states = [
        dask.delayed(_state)(template, name, part) for name, part in zip(names, parts, strict=True)
    ]
    while len(states) > 1:
        groups = [states[i : i + _FAN_IN] for i in range(0, len(states), _FAN_IN)]
        states = [dask.delayed(_merged)(group) for group in groups]
    acc: CKCEAccumulator = dask.compute(states[0])[0]
    return acc


def _template(n_classes: int, parts: list[Any], options: dict[str, Any]) -> CKCEAccumulator:
    """What every partition starts from; takes what it must from a sample."""
    if options.get("method") == "landmarks":
        options = {**options, "method": ckce.Landmarks()}
    method, wanted = options.get("method"), _SAMPLE_ROWS
    if isinstance(method, ckce.Landmarks) and not method.given:
        m = _columns(n_classes, options.get("reduction"))
        middle = ckce.Landmarks(np.full((1, m), 1.0 / m))
        CKCEAccumulator(
            n_classes, **{**options, "method": middle, "bandwidth": 1.0}
        )  # refuses the bad
        wanted = max(wanted, 4 * method.count)
    else:
        template = CKCEAccumulator(n_classes, **options)
        if template.config["bandwidth_source"] != "median":
            return template
    chosen = np.unique(np.linspace(0, len(parts) - 1, min(len(parts), wanted)).astype(int))
    count = math.ceil(wanted / len(chosen))
    pieces = dask.compute(*(dask.delayed(_sample)(parts[i], count) for i in chosen))
    pieces = [piece for piece in pieces if len(piece[0]) > 0]
    if not pieces:
        raise ValueError("y_prob must have at least one row, got none in the sample")
    columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
    if len(columns) == 3:
        options = {**options, "sample_weight": columns[2]}
    return CKCEAccumulator.from_sample(columns[0], columns[1], **options)


def _columns(n_classes: int, reduction: Any) -> int:
    """Classes of the reduced problem, whose rows landmarks are."""
    if isinstance(reduction, ckce.TopK):
        return reduction.k + 1
    return n_classes if reduction is None else 2


def _sample(batches: Batches, count: int) -> tuple[Any, ...]:
    """At most `count` rows, evenly out of the first batch."""
    batch = tuple(np.asarray(array) for array in next(iter(batches)))
    n = len(batch[0])
    rows = np.unique(np.linspace(0, n - 1, min(n, count)).astype(int))
    return tuple(array[rows] for array in batch)


def _state(template: CKCEAccumulator, name: str, batches: Batches) -> CKCEAccumulator:
    acc = template.fresh(shard_id=name)
    for batch in batches:
        acc.update(*batch)
    return acc


def _merged(states: list[CKCEAccumulator]) -> CKCEAccumulator:
    total = states[0].copy()  # what dask holds must not change
    for state in states[1:]:
        total += state
    return total
