"""The largest entries of predictions whose other entries nobody knows: what language models return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import arrays
from ckce._input.options import check_choice
from ckce._input.words import InputError, InputTypeError

_SENTINEL = -9999.0  # of OpenAI: the log-probability of a token outside the largest
_TOLERANCE = 1e-5  # of sums


@dataclass(frozen=True)
class Ranked:
    """How many entries of every row are known, and the row that has no more."""

    known: int
    row: int


class TopKPredictions:
    """The k largest probabilities of each prediction; those of all other classes stay unknown.

    It is taken wherever `y_prob` is beside ``reduction=ckce.TopK(j)``, j <= k, or ``"top_label"``.
    Full predictions give the same values: nothing else about them is needed, so nothing is
    truncated. The probability of all other classes is what is left to 1.

    Parameters
    ----------
    probs : array of shape (n_samples, k), or list of rows
        The largest probabilities of each row. Rows may be shorter, or end in NaN; entries of
        probability 0 (log-probabilities of -inf and OpenAI's -9999.0 among them) count as absent.
        A row may lack entries only if it leaves nothing to other classes, or if fewer are asked for.
    ids : array of shape (n_samples, k), or list of rows, optional
        The classes (token ids, or strings) of these entries. Labels are then ids, too, and one that
        is not in its row is "other"; rows need not be in order. Without ids, rows must be in
        decreasing order, and labels are ranks: 0 for the largest, k for "other".
    input : {"probs", "log_probs"}
        What `probs` holds. Never guessed. Logits do not tell what is left to other classes.

    Notes
    -----
    Sums above 1 by rounding (1e-5, or 5e-3 in half precision) leave 0 to other classes. Larger ones,
    an id twice in a row, and rows out of order without ids are refused.

    Scores of such predictions (accuracy, log loss, Brier) are those of the reduced problem.

    Examples
    --------
    >>> import ckce
    >>> top = ckce.TopKPredictions([[0.6, 0.3], [0.5, 0.2], [0.9, 0.1]], ids=[[7, 4], [4, 9], [7, 1]])
    >>> top
    TopKPredictions(n_samples=3, k=2, ids=True)
    >>> round(ckce.ckce([7, 1, 7], top, reduction=ckce.TopK(2)), 6)
    0.060465
    """

    def __init__(self, probs: Any, ids: Any = None, *, input: str = "probs") -> None:
        check_choice("input", input, ("probs", "log_probs"))
        entries, half = as_rectangle("probs", probs, np.nan)
        if entries.dtype.kind not in "fiub":
            raise InputTypeError(f"probs must hold real numbers, got dtype {entries.dtype}")
        names = None if ids is None else as_rectangle("ids", ids, None)[0]
        if names is not None and names.shape != entries.shape:
            raise InputError(
                f"ids must have the shape of probs, got {names.shape} and {entries.shape}"
            )
        found = _as_probs(entries.astype(np.float64), input)
        found, names = _in_order(found, names)
        if names is not None:
            _check_twice(found, names)
        sums = found.sum(axis=1)
        tolerance = arrays.HALF_SUM_TOLERANCE if half else _TOLERANCE
        refuse_rows(sums > 1.0 + tolerance, "sums to {:.6g}, expected at most 1", sums)
        self.probs, self.ids, self.input = found, names, input
        self._tolerance = tolerance

    @property
    def k(self) -> int:
        """Entries of a row, at most."""
        return int(self.probs.shape[1])

    def __len__(self) -> int:
        return len(self.probs)

    def __getitem__(self, rows: Any) -> TopKPredictions:
        """Some of the rows."""
        some = object.__new__(type(self))
        some.probs, some.input, some._tolerance = self.probs[rows], self.input, self._tolerance
        if some.probs.ndim != 2:
            raise TypeError(f"rows must be a slice or an array, got {rows!r}")
        some.ids = None if self.ids is None else self.ids[rows]
        return some

    def first(self, k: int) -> TopKPredictions:
        """Fewer entries of each row."""
        some = self[:]
        some.probs = self.probs[:, :k]
        some.ids = None if self.ids is None else self.ids[:, :k]
        return some

    def __repr__(self) -> str:
        return f"TopKPredictions(n_samples={len(self)}, k={self.k}, ids={self.ids is not None})"

    def with_rest(self) -> NDArray[np.float64]:
        """The entries, and what they leave to all other classes."""
        return np.column_stack([self.probs, rest_of(self.probs)])

    def ranked(self) -> Ranked:
        """How many entries are known of every row, but those that leave nothing."""
        lengths = (self.probs > 0.0).sum(axis=1)
        lengths[rest_of(self.probs) <= self._tolerance] = self.k
        row = int(np.argmin(lengths)) if len(lengths) else 0
        return Ranked(int(lengths[row]) if len(lengths) else self.k, row)

    def ranks(self, truth: NDArray[Any]) -> NDArray[np.int64]:
        """The rank of each label, k if it is another."""
        if self.ids is None:
            return self._checked_ranks(truth)
        numbers = truth.dtype.kind in "iu"
        if numbers != (self.ids.dtype.kind in "iu"):
            raise InputTypeError(
                f"y_true must hold ids of the kind of ids, got dtype {truth.dtype} and "
                f"{self.ids.dtype}"
            )
        found = (self.ids == truth[:, None]) & (self.probs > 0.0)
        return np.where(found.any(axis=1), found.argmax(axis=1), self.k).astype(np.int64)

    def _checked_ranks(self, truth: NDArray[Any]) -> NDArray[np.int64]:
        if truth.dtype.kind not in "iu":
            raise InputTypeError(
                f"y_true must hold ranks, got dtype {truth.dtype}; ranks are integers, or pass ids= "
                "to ckce.TopKPredictions"
            )
        outside = (truth < 0) | (truth > self.k)
        refuse_rows(
            outside, f"is {{}}, expected a rank from 0 to {self.k} (other)", truth, name="y_true"
        )
        lengths = (self.probs > 0.0).sum(axis=1)
        absent = (truth < self.k) & (truth >= lengths)
        refuse_rows(absent, "is {}, the rank of an entry that its row lacks", truth, name="y_true")
        return truth.astype(np.int64)


def join_top_k(parts: list[TopKPredictions]) -> TopKPredictions:
    """All rows of several whose ids are of one kind, as wide as the widest."""
    width = max(part.k for part in parts)
    whole = object.__new__(TopKPredictions)
    whole.probs = np.concatenate([widened(part.probs, width, 0.0) for part in parts])
    ids = [part.ids for part in parts if part.ids is not None]
    whole.ids = np.concatenate([widened(each, width, -1) for each in ids]) if ids else None
    whole.input, whole._tolerance = parts[0].input, max(part._tolerance for part in parts)
    return whole


def widened(matrix: NDArray[Any], width: int, filler: float) -> NDArray[Any]:
    """A matrix with more columns."""
    extra = np.full((len(matrix), width - matrix.shape[1]), filler, matrix.dtype)
    return np.hstack([matrix, extra])


def rank_names(k: int) -> tuple[str, ...]:
    """What k ranks and the rest are called."""
    return (*(f"rank {j + 1}" for j in range(k)), "other")


def rest_of(kept: NDArray[np.floating]) -> NDArray[np.float64]:
    """1 minus the entries, in their order as the core subtracts them; at least 0."""
    rest = np.ones(len(kept))
    for column in kept.T:
        rest -= column
    return np.maximum(rest, 0.0)


def as_rectangle(name: str, rows: Any, filler: Any) -> tuple[NDArray[Any], bool]:
    """A matrix; short rows of a list are filled up. And whether it has half precision."""
    if isinstance(rows, (list, tuple)) and len({np.size(row) for row in rows}) > 1:
        width = max(len(row) for row in rows)
        text = filler is None and any(isinstance(each, str) for row in rows for each in row)
        blank = filler if filler is not None else "" if text else -1
        rows = [[*row, *[blank] * (width - len(row))] for row in rows]
    array = arrays.as_array(name, rows)
    if array.dtype.kind == "O" and name == "ids":
        array = array.astype(str)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"{name} must have shape (n_samples, k), got {array.shape}")
    if name == "ids" and array.dtype.kind not in "iuU":
        raise InputTypeError(f"ids must hold integers or strings, got dtype {array.dtype}")
    return array, arrays.is_half(rows, array)


def _as_probs(entries: NDArray[np.float64], input: str) -> NDArray[np.float64]:
    """Probabilities, 0 where there is no entry."""
    absent = np.isnan(entries)
    late = absent[:, :-1] & ~absent[:, 1:]
    refuse_rows(late.any(axis=1), "has NaN before other entries; only its end may be NaN")
    if input == "log_probs":
        absent |= entries <= _SENTINEL
        entries = np.exp(np.where(absent, -np.inf, entries))
    else:
        marked = entries == _SENTINEL
        refuse_rows(
            marked.any(axis=1),
            "holds -9999.0, OpenAI's log-probability of a token outside the largest; pass "
            "input='log_probs'",
        )
        negative = entries < 0.0
        refuse_rows(
            negative.any(axis=1), "has a negative entry; pass input='log_probs' if they are"
        )
        entries = np.where(absent, 0.0, entries)
    large = ~(entries <= 1.0 + arrays.HALF_SUM_TOLERANCE)
    words = "log-probabilities, at most 0" if input == "log_probs" else "probabilities, at most 1"
    refuse_rows(large.any(axis=1), f"has a larger entry, expected {words}")
    empty = ~(entries > 0.0).any(axis=1)
    refuse_rows(empty, "has no entry, which is no prediction; drop such rows")
    return entries


def _in_order(
    probs: NDArray[np.float64], ids: NDArray[Any] | None
) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    """Rows in decreasing order."""
    unsorted = (probs[:, :-1] < probs[:, 1:]).any(axis=1)
    if ids is None:
        refuse_rows(
            unsorted,
            "is not in decreasing order, so that ranks mean nothing; sort it, or pass ids",
        )
        return probs, None
    if unsorted.any():
        rows = np.flatnonzero(unsorted)
        order = np.argsort(-probs[rows], axis=1, kind="stable")
        probs, ids = probs.copy(), ids.copy()
        probs[rows] = np.take_along_axis(probs[rows], order, axis=1)
        ids[rows] = np.take_along_axis(ids[rows], order, axis=1)
    return probs, ids


def _check_twice(probs: NDArray[np.float64], ids: NDArray[Any]) -> None:
    """Refuse an id that a row has twice."""
    order = np.argsort(ids, axis=1, kind="stable")
    sorted_ids = np.take_along_axis(ids, order, axis=1)
    there = np.take_along_axis(probs, order, axis=1) > 0.0
    # the order is stable, and entries that are there come first: none hides between two
    same = (sorted_ids[:, :-1] == sorted_ids[:, 1:]) & there[:, :-1] & there[:, 1:]
    refuse_rows(
        same.any(axis=1),
        "has the same id twice; add their probabilities, or drop one",
        name="ids",
    )


def refuse_rows(
    bad: Any, words: str, values: NDArray[Any] | None = None, *, name: str = "probs"
) -> None:
    """Name the first row that is wrong, and how many are."""
    if not bad.any():
        return
    row = int(np.argmax(bad))
    what = words if values is None else words.format(values[row])
    raise InputError(f"{name} row {row} {what} ({int(bad.sum())} of {len(bad)} rows)")
