"""Multiple-choice predictions: one row per question, and as many entries as it has choices."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import arrays
from ckce._input.options import check_choice
from ckce._input.top_k_predictions import as_rectangle, refuse_rows, widened
from ckce._input.words import InputError, InputTypeError

ORDERS = ("sorted", "position")
_TOLERANCE = 1e-5  # of sums


class Choices:
    """Predictions of multiple-choice questions, whose number of choices may vary.

    The position of a choice is no class: "the third choice" means another thing in every question.
    So the choices of each question are sorted by their probability, and the label becomes the rank of
    the right one. A row with fewer choices than others has probability 0 at the ranks that it lacks.
    Given the prediction the rank has exactly the sorted law, so a calibrated model is calibrated
    by rank, and every metric applies. `ckce.TopK` keeps the first ranks only.

    It is taken wherever `y_prob` is; `y_true` then holds the position of the right choice, from 0.

    Parameters
    ----------
    scores : list of rows, or array of shape (n_samples, n_choices)
        One number for each choice. Rows may have different lengths; rows of an array end in NaN where
        there is no choice. Every row has at least 2 choices.
    input : {"logits", "log_probs", "probs"}
        What `scores` holds. Log-likelihoods of the choices are logits: their softmax over the choices
        is the prediction. Probabilities must sum to 1 in each row.
    order : {"sorted", "position"}
        ``"position"`` keeps the choices where they stand. That is right if a position is a class, such
        as "yes" and "no" in every question, or to see whether a model prefers the first choice.
    word : str, optional
        A word for the signature, such as the kind of log-likelihood.

    Notes
    -----
    Equal scores are ranked by position, so rank 1 is the first maximum.

    Examples
    --------
    >>> import ckce
    >>> choices = ckce.Choices([[-1.0, -2.5, -4.0], [-3.0, -0.5], [-2.0, -2.5, -1.0]])
    >>> choices
    Choices(n_samples=3, n_choices=2 to 3, order='sorted')
    >>> ckce.accuracy([0, 0, 2], choices)
    0.6666666666666666
    >>> e = ckce.estimate([0, 0, 2], choices)
    >>> e.classes
    ('rank 1', 'rank 2', 'rank 3')
    """

    def __init__(
        self,
        scores: Any,
        *,
        input: str = "logits",
        order: str = "sorted",
        word: str | None = None,
    ) -> None:
        check_choice("input", input, ("logits", "log_probs", "probs"))
        check_choice("order", order, ORDERS)
        if word is not None and not (isinstance(word, str) and re.fullmatch(r"[\w.-]+", word)):
            raise ValueError(f"word must be letters, digits, '_', '.' or '-', got {word!r}")
        entries, half = as_rectangle("scores", scores, np.nan)
        if entries.dtype.kind not in "fiub":
            raise InputTypeError(f"scores must hold real numbers, got dtype {entries.dtype}")
        values = entries.astype(np.float64)
        absent = np.isnan(values)
        late = (absent[:, :-1] & ~absent[:, 1:]).any(axis=1)
        refuse_rows(late, "has NaN before other entries; only its end may be NaN", name="scores")
        self.lengths = (~absent).sum(axis=1)
        few = self.lengths < 2
        refuse_rows(few, "has {} choices, expected at least 2", self.lengths, name="scores")
        tolerance = arrays.HALF_SUM_TOLERANCE if half else _TOLERANCE
        self.probs = _probs_of(values, absent, input, tolerance)
        self._scores = np.where(absent, -np.inf, values)
        self.input, self.order, self.word = input, order, word

    @property
    def n_choices(self) -> int:
        """Choices of a row, at most."""
        return int(self.probs.shape[1])

    def __len__(self) -> int:
        return len(self.probs)

    def __getitem__(self, rows: Any) -> Choices:
        """Some of the rows; there are as many columns."""
        some = object.__new__(type(self))
        some.probs, some._scores = self.probs[rows], self._scores[rows]
        if some.probs.ndim != 2:
            raise TypeError(f"rows must be a slice or an array, got {rows!r}")
        some.lengths = self.lengths[rows]
        some.input, some.order, some.word = self.input, self.order, self.word
        return some

    def narrowed(self) -> Choices:
        """Without columns that no row has."""
        some, width = self[:], max(2, int(self.lengths.max(initial=2)))
        some.probs, some._scores = self.probs[:, :width], self._scores[:, :width]
        return some

    def __repr__(self) -> str:
        low, high = int(self.lengths.min(initial=self.n_choices)), self.n_choices
        span = str(high) if low == high else f"{low} to {high}"
        return f"Choices(n_samples={len(self)}, n_choices={span}, order={self.order!r})"

    def prepared(self) -> str:
        """In the word of a signature."""
        words = [self.order, *([] if self.word is None else [self.word])]
        return f"choices({','.join(words)})"

    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        what = "rank" if self.order == "sorted" else "choice"
        return tuple(f"{what} {j + 1}" for j in range(self.n_choices))

    def arranged(self, truth: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The column of each label, and the predictions in the order of the columns."""
        if truth.dtype.kind not in "iu":
            raise InputTypeError(
                f"y_true must hold positions of the right choices, got dtype {truth.dtype}"
            )
        outside = (truth < 0) | (truth >= self.lengths)
        refuse_rows(
            outside,
            "is {}, but its row has not so many choices, counted from 0",
            truth,
            name="y_true",
        )
        labels = truth.astype(np.int64)
        if self.order == "position":
            return labels, self.probs
        # by scores: different ones may have equal probabilities after rounding
        order = np.argsort(-self._scores, axis=1, kind="stable")
        ranks = np.argmax(order == labels[:, None], axis=1)
        return ranks.astype(np.int64), np.take_along_axis(self.probs, order, axis=1)


def _probs_of(
    values: NDArray[np.float64], absent: NDArray[np.bool_], input: str, tolerance: float
) -> NDArray[np.float64]:
    """Probabilities, 0 where there is no choice."""
    if input == "probs":
        bad = (~absent & ~((values >= 0.0) & (values <= 1.0 + tolerance))).any(axis=1)
        refuse_rows(bad, "holds what is no probability; pass input='logits'?", name="scores")
        probs = np.where(absent, 0.0, values)
    else:
        high = (values == np.inf).any(axis=1)
        refuse_rows(high, "holds inf", name="scores")
        finite = np.where(absent, -np.inf, values)
        peak = finite.max(axis=1, keepdims=True)
        refuse_rows(peak[:, 0] == -np.inf, "holds -inf only, which is no prediction", name="scores")
        probs = np.exp(finite - (peak if input == "logits" else 0.0))
    sums = probs.sum(axis=1)
    if input == "logits":
        return np.asarray(probs / sums[:, None])
    off = ~(np.abs(sums - 1.0) <= tolerance)
    refuse_rows(
        off, "sums to {:.6g}, expected 1; pass input='logits' to rescale?", sums, name="scores"
    )
    return probs


def join_choices(parts: list[Choices]) -> Choices:
    """All rows of several, as wide as the widest."""
    first = parts[0]
    width = max(part.n_choices for part in parts)
    if len({(part.input, part.order, part.word) for part in parts}) > 1:
        raise InputError("choices must be read alike to be joined")
    whole = object.__new__(Choices)
    whole.probs = np.concatenate([widened(part.probs, width, 0.0) for part in parts])
    whole._scores = np.concatenate([widened(part._scores, width, -np.inf) for part in parts])
    whole.lengths = np.concatenate([part.lengths for part in parts])
    whole.input, whole.order, whole.word = first.input, first.order, first.word
    return whole
