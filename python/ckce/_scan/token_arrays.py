"""Tokens in an npz file: `top_logprobs` and `top_ids` (n, k), `target_id` (n,), perhaps `doc_id`."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import InputError, TopKPredictions
from ckce._scan.arrays import open_member
from ckce._scan.formats import File
from ckce._scan.lm_eval import task_of
from ckce._scan.log import LogOptions, Part

_NEEDED = {"top_logprobs", "top_ids", "target_id"}
_SLACK = 1e-4


def is_log(file: File) -> bool:
    """Whether an npz file holds such arrays."""
    return _names(file) >= _NEEDED


def _names(file: File) -> set[str]:
    try:
        with zipfile.ZipFile(file.path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except Exception:  # zipfile raises many kinds; the reader of arrays says what is wrong
        return set()


def read(file: File, options: LogOptions) -> Part:
    """All tokens of the file."""
    options.only(file, "arrays of tokens")
    names = _names(file)
    arrays = {name: _array(file, name) for name in sorted(_NEEDED)}
    tokens, n = arrays["target_id"], len(arrays["target_id"])
    for name, array in arrays.items():
        expected = 1 if name == "target_id" else 2
        kinds = "f" if name == "top_logprobs" else "iu"
        if array.ndim != expected or len(array) != n or array.dtype.kind not in kinds:
            raise InputError(
                f"{file.name} array {name!r} must have {expected} dimensions, {n} rows and "
                f"{'floats' if kinds == 'f' else 'integers'}, got {array.shape} of {array.dtype}"
            )
    top = TopKPredictions(arrays["top_logprobs"], arrays["top_ids"], input="log_probs")
    likelihood = _likelihood(file, names, arrays, top)
    groups = _array(file, "doc_id") if "doc_id" in names else None
    if groups is not None and groups.shape != (n,):
        raise InputError(f"{file.name} array 'doc_id' must have shape ({n},), got {groups.shape}")
    return Part(
        task_of(file), tokens, top, [str(row) for row in range(n)], likelihood, groups=groups
    )


def _array(file: File, name: str) -> NDArray[Any]:
    found = open_member(file, (name,), name)
    rows = int(found.shape[0]) if found.shape else 0
    if rows == 0:
        raise InputError(f"{file.name} array {name!r} has no rows")
    return np.concatenate(list(found.blocks(rows)))


def _likelihood(
    file: File, names: set[str], arrays: dict[str, NDArray[Any]], top: TopKPredictions
) -> NDArray[np.float64]:
    """The log-probability of each token, NaN if nobody knows it; compared with the largest entries."""
    ranks = top.ranks(arrays["target_id"])
    padded = np.column_stack([top.probs, np.zeros(len(ranks))])
    with np.errstate(divide="ignore"):
        known = np.log(padded[np.arange(len(ranks)), ranks])
    if "target_logprob" not in names:
        return np.where(ranks < top.k, known, np.nan)
    own = _array(file, "target_logprob").astype(np.float64)
    if own.shape != ranks.shape:
        raise InputError(
            f"{file.name} array 'target_logprob' must have shape {ranks.shape}, got {own.shape}"
        )
    bad = (ranks < top.k) & ~(np.abs(own - known) <= _SLACK)
    with np.errstate(divide="ignore"):
        bad |= (ranks == top.k) & ~(own <= np.log(top.probs[:, -1]) + _SLACK)
    if bad.any():
        raise InputError(
            f"{file.name} array 'target_logprob' row {int(np.argmax(bad))} does not fit its "
            f"top_logprobs ({int(bad.sum())} of {len(bad)} rows)"
        )
    return own
