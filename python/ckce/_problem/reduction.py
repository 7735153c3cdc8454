"""Calibration questions with fewer answers, out of one with m classes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import Samples, check_choice, check_count, raise_for, rank_names, rest_of
from ckce._input.top_k_predictions import Ranked


@dataclass(frozen=True)
class TopLabel:
    """Was the predicted class (the first maximum) right? Predictions [1 - c, c]."""

    word: ClassVar[str] = "top_label"
    labels_become: ClassVar[str] = "binary"
    classes: ClassVar[tuple[str, ...]] = ("wrong", "right")
    predicted: ClassVar[int] = 1  # the column of the predicted class

    def check(self, m: int) -> None:
        pass

    def n_classes(self, m: int) -> int:
        return 2

    def apply(self, samples: Samples, n_threads: int) -> Samples:
        return top_label(samples)


@dataclass(frozen=True)
class ClassWise:
    """Is it class j? For each j; the samples stay, and `all_one_vs_rest` takes them apart."""

    word: ClassVar[str] = "class_wise"
    labels_become: ClassVar[str] = "binary"

    def n_classes(self, m: int) -> int:
        return 2

    def apply(self, samples: Samples, n_threads: int) -> Samples:
        return samples


@dataclass(frozen=True)
class TopK:
    r"""Reduction to the k largest entries of each prediction, in order, and one class for the rest.

    .. math::
        q \mapsto \Bigl(q_{(1)}, \dots, q_{(k)}, 1 - \sum_{j \le k} q_{(j)}\Bigr), \qquad
        y \mapsto \min(\operatorname{rank}_q(y), k)

    with :math:`q_{(1)} \ge q_{(2)} \ge \dots`, of equal entries the first column first. A strongly
    calibrated model is calibrated in this problem of k + 1 classes, and given the prediction the
    reduced label has exactly the reduced law: every estimator, floor, interval and test applies
    with m = k + 1. Reduced and full values are different functionals and must not be compared.

    Pass it as ``reduction=``. With hundreds of classes the CKCE of all of them is mostly floor; that
    of the top 20 is not, see docs/many_classes.md. ``TopK(1)`` asks the question of ``"top_label"``.

    Parameters
    ----------
    k : int
        Entries to keep; fewer than there are classes.

    Notes
    -----
    O(n m): one pass finds the k entries of a row, and no (n, m) array is copied. Other entries are
    not sorted. The last entry is 1 minus those kept, so it needs no sum over the rest.

    Examples
    --------
    >>> import ckce
    >>> y_prob = [[0.1, 0.2, 0.4, 0.3], [0.7, 0.1, 0.1, 0.1], [0.2, 0.3, 0.25, 0.25]]
    >>> e = ckce.estimate([2, 0, 3], y_prob, reduction=ckce.TopK(2))
    >>> e.classes
    ('rank 1', 'rank 2', 'other')
    """

    k: int

    labels_become: ClassVar[str] = "ranks"
    predicted: ClassVar[int] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_count("k", self.k))

    @property
    def word(self) -> str:
        """In signatures and state files."""
        return f"top_k({self.k})"

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the reduced classes."""
        return rank_names(self.k)

    def n_classes(self, m: int) -> int:
        return self.k + 1

    def check(self, m: int) -> None:
        """Refuse what would be no reduction."""
        if self.k >= m:
            raise ValueError(
                f"k of ckce.TopK must be below the number of classes, got {self!r} and {m} classes; "
                "pass a smaller k, or no reduction"
            )

    def apply(self, samples: Samples, n_threads: int) -> Samples:
        """The samples by rank; numbers that are still to be checked are checked here."""
        if samples.ranked is not None:
            return self._of_ranks(samples, samples.ranked)
        self.check(samples.m)
        tolerance = samples.unchecked
        probs, ranks, report = _core.top_k(
            samples.probs,
            samples.labels,
            k=self.k,
            sum_tolerance=math.inf if tolerance is None else tolerance,
            n_threads=n_threads,
        )
        if tolerance is not None:
            raise_for(report, samples.n, samples.m, check_sums=True, probs=samples.probs)
        return replace(samples, labels=ranks, probs=probs, names=self.classes, unchecked=None)

    def _of_ranks(self, samples: Samples, ranked: Ranked) -> Samples:
        """Fewer of the ranks that are known."""
        if self.k >= samples.m:
            raise ValueError(
                f"reduction={self!r} asks for more than the {samples.m - 1} entries of "
                f"ckce.TopKPredictions; pass ckce.TopK({samples.m - 1})"
            )
        if self.k > ranked.known:
            raise ValueError(
                f"reduction={self!r} asks for more entries than row {ranked.row} has: "
                f"{ranked.known}, and others have the rest; pass ckce.TopK({ranked.known})"
            )
        probs, labels = samples.probs, samples.labels
        if self.k < samples.m - 1:
            kept = samples.probs[:, : self.k]
            probs, labels = np.column_stack([kept, rest_of(kept)]), np.minimum(labels, self.k)
        return replace(samples, labels=labels, probs=probs, names=self.classes, ranked=None)


Reduction: TypeAlias = TopLabel | ClassWise | TopK
#: Those to one problem.
Single: TypeAlias = TopLabel | TopK
#: What callers pass.
ReductionLike: TypeAlias = str | TopK | None

_WORDS: dict[str, Reduction] = {each.word: each for each in (TopLabel(), ClassWise())}
REDUCTIONS = tuple(_WORDS)


def check_reduction(value: object, known: tuple[str, ...] = REDUCTIONS) -> Reduction | None:
    """One of the reductions, or None."""
    if value is None or isinstance(value, TopK):
        return value
    try:
        return _WORDS[check_choice("reduction", value, known)]
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}; or pass ckce.TopK(k)") from None


def reduce_samples(samples: Samples, reduction: Reduction | None, n_threads: int) -> Samples:
    """The samples of the reduced problem; those that need a reduction must have one."""
    if samples.ranked is not None and not isinstance(reduction, (TopLabel, TopK)):
        raise ValueError(
            f"reduction must be ckce.TopK(k), k <= {samples.m - 1}, or 'top_label' with "
            f"ckce.TopKPredictions, got {None if reduction is None else reduction.word!r}: the other "
            "entries are unknown"
        )
    return samples if reduction is None else reduction.apply(samples, n_threads)


def check_single(value: object) -> Single | None:
    """One of the reductions to one problem, or None."""
    found = check_reduction(value, (TopLabel.word,))
    assert not isinstance(found, ClassWise)
    return found


def read_reduction(word: object) -> Single | None:
    """The reduction that a state file names."""
    found = re.fullmatch(r"top_k\(([1-9]\d*)\)", word) if isinstance(word, str) else None
    return check_single(word) if found is None else TopK(int(found[1]))


def top_label(samples: Samples) -> Samples:
    """Was the predicted class (the first maximum) right? Predictions [1 - c, c]."""
    if samples.ranked is not None:
        return replace(_binary(samples.labels == 0, samples.probs[:, 0], samples), ranked=None)
    predicted = samples.probs.argmax(axis=1)
    confidence = np.take_along_axis(samples.probs, predicted[:, None], axis=1)[:, 0]
    return _binary(predicted == samples.labels, confidence, samples)


def one_vs_rest(samples: Samples, column: int) -> Samples:
    """Is it class `column`? Predictions [1 - q_j, q_j]."""
    return _binary(samples.labels == column, samples.probs[:, column], samples)


def all_one_vs_rest(samples: Samples) -> Iterator[Samples]:
    """The m one-vs-rest problems."""
    for column in range(samples.m):
        yield one_vs_rest(samples, column)


def _binary(
    truth: NDArray[np.bool_], probability: NDArray[np.floating], samples: Samples
) -> Samples:
    positive = probability.astype(np.float64)
    columns = np.column_stack([1.0 - positive, positive])
    return replace(samples, labels=truth.astype(np.int64), probs=columns, names=None)
