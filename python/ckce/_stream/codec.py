"""Between an accumulator and its file: what is written, and what a file may claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import LARGEST_WEIGHT, LEAST_WEIGHT, Samples, check_memory
from ckce._methods import Arrays
from ckce._problem import MEDIAN_ROWS
from ckce._stream import state_file
from ckce._stream.config import StreamConfig, read_config, read_method
from ckce._stream.features import Kept, read_kept

#: Arrays of a file that hold sums.
SUMS = ("sums", "cell_ids", "cell_points", "cell_numbers")


@dataclass(frozen=True)
class Contents:
    """All of an accumulator but its rows."""

    config: StreamConfig
    kept: Kept
    label_factor: NDArray[np.float64] | None
    shard_id: str | None
    shards: frozenset[str] = frozenset()  # parts of the data in the rows
    weighted: bool = False  # a weight other than 1 was seen; signatures say so

    def without_rows(self, shard_id: str | None) -> Contents:
        """The same for another part of the data."""
        shards = frozenset(() if shard_id is None else (shard_id,))
        return replace(self, shard_id=shard_id, shards=shards, weighted=False)


def encode(contents: Contents, sums: Arrays, rows: Samples | None) -> Iterator[bytes | memoryview]:
    """The bytes of a state, piece by piece; `sums` are its engine's."""
    from ckce import __version__

    config = contents.config
    arrays = contents.kept.arrays(config)
    if contents.label_factor is not None:
        arrays["label_factor"] = contents.label_factor
    arrays.update(sums)
    if rows is not None:
        arrays["tail_probs"] = rows.probs.astype(np.float64, copy=False)
        arrays["tail_labels"] = rows.labels
        arrays["tail_weights"] = np.ones(rows.n) if rows.weights is None else rows.weights
    words = config.to_dict()
    header = {
        "kind": "CKCEAccumulator",
        "ckce": __version__,
        "config": words,
        "shard_id": contents.shard_id,
        "shards": sorted(contents.shards),
        "weighted": contents.weighted,
    }
    return state_file.encode(header, arrays, _version(words))


def _version(words: dict[str, Any]) -> int:
    """The oldest version of files that can say this."""
    if "reduction" in words:
        return 4
    if "input" in words or words["method"] == "exact":
        return 3
    return 2 if "landmarks" in words else 1


def decode(header: dict[str, Any], arrays: Arrays) -> tuple[Contents, Samples | None, Arrays]:
    """Contents, rows that wait for their block, and sums; all checked, since files can be forged."""
    words = dict(header["config"])
    config = read_config(words, read_method(words, arrays))
    kept = read_kept(config, arrays)
    m = config.columns
    factor = arrays.get("label_factor")
    if (factor is not None) != (config.label_kernel is not None):
        raise ValueError(f"label_factor beside label_kernel {config.label_kernel!r}")
    if factor is not None and (
        factor.ndim != 2 or len(factor) != m or not 1 <= factor.shape[1] <= m
    ):
        raise ValueError(f"label_factor of shape {factor.shape} for {m} classes")
    what = f"a state of {m} classes and method {config.method!r}"
    check_memory(kept.price(config), what, "it may be damaged")
    sums = {name: arrays[name] for name in SUMS if name in arrays}
    if sums:
        expected = kept.n_sums(config)
        if sums["sums"].shape != (expected,):
            raise ValueError(f"sums of shape {sums['sums'].shape}, expected ({expected},)")
        check_sums(np.ascontiguousarray(sums["sums"]))
    contents = Contents(
        config,
        kept,
        None if factor is None else np.asfortranarray(factor),
        header["shard_id"],
        frozenset(header["shards"]),
        bool(header.get("weighted", False)),
    )
    return contents, _read_rows(arrays, m), sums


def _read_rows(arrays: Arrays, m: int) -> Samples | None:
    """Rows out of a file: checked, since a label indexes memory."""
    if "tail_probs" not in arrays:
        return None
    probs, labels = arrays["tail_probs"], arrays["tail_labels"].astype(np.int64)
    weights = arrays["tail_weights"].astype(np.float64)
    if probs.ndim != 2 or probs.shape[1] != m or len(probs) >= MEDIAN_ROWS:
        raise ValueError(f"rows of shape {probs.shape}")
    if labels.shape != (len(probs),) or weights.shape != (len(probs),):
        raise ValueError(f"{len(probs)} rows, labels and weights of other shapes")
    if not _possible_weights(weights).all():
        raise ValueError("weights must be positive")
    report = _core.validate(probs, labels, sum_tolerance=1.0, n_threads=1)
    if report.not_finite.count or report.negative.count or report.bad_label.count:
        raise ValueError("rows that are no predictions")
    return Samples(labels, probs, weights)


def check_sums(sums: NDArray[np.float64]) -> None:
    """Refuse what cannot be the sums of a state."""
    if sums.ndim != 1 or len(sums) < 2 or np.isnan(sums).any():
        raise ValueError(
            "sums must be a vector of numbers, rows and weight first, got other things"
        )
    rows, weight = (float(number) for number in sums[:2])
    if not (
        rows == 0.0 == weight or (rows >= 1.0 and _possible_weights(weight) and rows <= 2.0**53)
    ):
        raise ValueError(f"sums must be over rows and their weight, got {rows:g} and {weight:g}")


def _possible_weights(weights: Any) -> Any:
    """Weights that the door lets in."""
    return (weights >= LEAST_WEIGHT) & (weights <= LARGEST_WEIGHT)
