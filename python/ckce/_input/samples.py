"""The door: whatever a user passes becomes checked samples here, or an error that says what to do.

Python checks what shape and dtype tell; one C++ pass over the numbers checks the rest. Nothing
behind the door checks again.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import arrays
from ckce._input.choices import Choices
from ckce._input.groups import as_groups, recoded
from ckce._input.memory import check_memory
from ckce._input.options import check_bool, check_choice
from ckce._input.top_k_predictions import Ranked, TopKPredictions, rank_names
from ckce._input.words import InputError, InputTypeError, entries_are, warn

INPUTS = ("probs", "logits", "log_probs")
_SUM_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Samples:
    """A checked calibration set: 0-based labels and rows of the simplex."""

    labels: NDArray[np.int64]
    probs: NDArray[np.floating]
    weights: NDArray[np.float64] | None = None
    #: What the columns are called; none: 0, 1, 2, ...
    names: tuple[Any, ...] | None = None
    #: What was done to the input, in the word of a signature.
    prepared: str | None = None
    #: Tolerance of the row sums if the numbers are still to be checked, by the pass that uses them.
    unchecked: float | None = None
    #: The group of each row, 0, 1, 2, ... in the order of first rows; none: independent rows.
    groups: NDArray[np.int64] | None = None
    #: Set if the columns are ranks, the last one "other", until a reduction has cut them.
    ranked: Ranked | None = None

    @property
    def n(self) -> int:
        return len(self.probs)

    @property
    def m(self) -> int:
        return int(self.probs.shape[1])

    @property
    def weight(self) -> float:
        """N, the sum of the weights."""
        return float(self.n) if self.weights is None else float(self.weights.sum())

    def at(self, rows: NDArray[np.intp]) -> "Samples":
        """Some of the rows."""
        weights, groups = self.weights, self.groups
        return replace(
            self,
            labels=self.labels[rows],
            probs=self.probs[rows],
            weights=None if weights is None else weights[rows],
            groups=None if groups is None else recoded(groups[rows]),
        )

    @property
    def n_groups(self) -> int | None:
        return None if self.groups is None else int(self.groups.max()) + 1

    @property
    def classes(self) -> tuple[Any, ...]:
        return tuple(range(self.m)) if self.names is None else self.names


def check_samples(
    y_true: Any,
    y_prob: Any,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int = 1,
    scan: bool = True,
    n_classes: int | None = None,
    groups: Any = None,
    ranked: bool = False,
) -> Samples:
    """Check a calibration set; rows of weight zero are dropped.

    Without `scan` the numbers may be left `unchecked`, for a pass that checks and computes. With
    `n_classes` it is a batch of a stream with so many classes, and no row may be left of it. With
    `ranked` the largest entries alone will do.
    """
    check_input(input, normalize)
    truth = arrays.as_array("y_true", y_true)
    if isinstance(y_prob, TopKPredictions):
        samples = _of_ranks(truth, y_prob, labels, input, normalize, ranked)
        return _counted(samples, sample_weight, groups, n_classes is not None)
    if isinstance(y_prob, Choices):
        samples = _of_choices(truth, y_prob, labels, input, normalize, n_classes is not None)
        return _counted(samples, sample_weight, groups, n_classes is not None)
    probs = arrays.as_array("y_prob", y_prob)
    arrays.check_swapped(truth, probs)
    arrays.check_rows(
        {"y_true": y_true, "y_prob": y_prob, "sample_weight": sample_weight, "groups": groups}
    )
    tolerance = arrays.HALF_SUM_TOLERANCE if arrays.is_half(y_prob, probs) else _SUM_TOLERANCE
    stream = n_classes is not None
    one_column = probs.ndim == 1
    probs = _as_probs(probs, input, normalize, stream)
    n, m = probs.shape
    if stream and m != n_classes:
        raise InputError(f"y_prob must have {n_classes} columns (n_classes), got {m}")
    _check_truth(truth, n)
    if stream and labels is None and truth.dtype.kind in "USO" and n > 0:
        raise InputError(
            "y_true must hold integers in a stream, got strings: a batch alone does not tell which "
            "column each belongs to",
            ("labels", "pass labels= with the class of each column"),
        )
    indices, names = np.zeros(0, np.int64), None
    if n > 0:
        indices, names = _columns_of(y_true, truth, y_prob, labels, m, one_column)
    prepared = "normalized" if normalize else None if input == "probs" else input
    if not scan and sample_weight is None and groups is None:
        return Samples(indices, probs, None, names, prepared, unchecked=tolerance)
    if indices is truth or indices.base is not None:
        # The core takes labels for indices: nobody may change them once they are checked.
        indices = indices.copy()
    report = _core.validate(probs, indices, sum_tolerance=tolerance, n_threads=n_threads)
    raise_for(report, n, m, check_sums=True, probs=probs)
    return _counted(Samples(indices, probs, None, names, prepared), sample_weight, groups, stream)


def _counted(samples: Samples, sample_weight: Any, groups: Any, stream: bool) -> Samples:
    """The samples with weights and groups; rows of weight zero are dropped."""
    if sample_weight is None and groups is None:
        return samples
    weights, codes = arrays.as_weights(sample_weight, samples.n), as_groups(groups, samples.n)
    probs, indices = samples.probs, samples.labels
    if weights is not None and not stream:
        if not weights.any():
            raise InputError("sample_weight must not be zero everywhere")
        warn_of_scale(float(weights.mean()))
    if weights is not None and not weights.all():
        kept = weights > 0.0
        probs, indices, weights = probs[kept], indices[kept], weights[kept]
        codes = None if codes is None else codes[kept]
    if codes is not None:
        codes = recoded(codes)
    return replace(samples, labels=indices, probs=probs, weights=weights, groups=codes)


def _of_ranks(
    truth: NDArray[Any],
    top: TopKPredictions,
    labels: Any,
    input: str,
    normalize: bool,
    wanted: bool,
) -> Samples:
    """Samples whose columns are ranks."""
    if not wanted:
        raise InputTypeError(
            "y_prob must hold all classes here, got ckce.TopKPredictions; it is for functions with "
            "reduction=ckce.TopK(k)"
        )
    if input != "probs":
        raise ValueError(
            f"input belongs to ckce.TopKPredictions(probs, input={input!r}), got it beside one"
        )
    if normalize:
        raise ValueError("normalize=True needs all classes, got ckce.TopKPredictions")
    if labels is not None:
        raise ValueError(
            "labels must be None with ckce.TopKPredictions, whose ids name the classes"
        )
    _check_truth(truth, len(top))
    prepared = "top_k" if top.input == "probs" else f"top_k,{top.input}"
    names = rank_names(top.k)
    return Samples(top.ranks(truth), top.with_rest(), None, names, prepared, ranked=top.ranked())


def _of_choices(
    truth: NDArray[Any],
    choices: Choices,
    labels: Any,
    input: str,
    normalize: bool,
    stream: bool,
) -> Samples:
    """Samples whose columns are ranks or positions of choices."""
    if input != "probs" or normalize:
        raise ValueError(
            "input and normalize must be left out with ckce.Choices, which takes input= itself"
        )
    if labels is not None:
        raise ValueError("labels must be None with ckce.Choices: y_true holds positions")
    if stream:
        raise InputTypeError(
            "y_prob must be an array in a stream, whose state does not keep how choices were read, got "
            "ckce.Choices; pass all of them to ckce.evaluate"
        )
    _check_truth(truth, len(choices))
    indices, probs = choices.arranged(truth)
    return Samples(indices, probs, None, choices.names(), choices.prepared())


def check_input(input: object, normalize: object) -> None:
    """What the predictions are, and whether their rows are rescaled."""
    check_choice("input", input, INPUTS)
    if check_bool("normalize", normalize) and input != "probs":
        raise ValueError(f"normalize=True needs input='probs', got input={input!r}")


def check_probs(
    y_prob: Any, *, sample_weight: Any, input: str, normalize: bool, n_threads: int
) -> Samples:
    """Check predictions that come without labels."""
    array = arrays.as_array("y_prob", y_prob)
    if hasattr(y_prob, "columns"):  # their order does not matter here
        y_prob = array
    return check_samples(
        np.zeros(array.shape[:1], np.int64),
        y_prob,
        sample_weight=sample_weight,
        input=input,
        normalize=normalize,
        n_threads=n_threads,
    )


def _check_truth(truth: NDArray[Any], n: int) -> None:
    if truth.ndim != 1:
        hint = ""
        if truth.ndim == 2 and truth.dtype.kind in "iufb" and (truth.sum(axis=1) == 1).all():
            hint = "; pass y_true.argmax(axis=1) if it is one-hot"
        elif truth.ndim == 2:
            hint = (
                "; if a row can have several labels, measure one column at a time: "
                "ckce.ckce(y_true[:, j], y_prob[:, j])"
            )
        if 1 in truth.shape:
            hint = "; pass np.ravel(y_true)"
        raise InputError(f"y_true must have shape (n_samples,), got {truth.shape}{hint}")
    if truth.shape[0] != n:
        raise InputError(
            f"y_true and y_prob must have the same number of rows, got {truth.shape[0]} and {n}"
        )


def _columns_of(
    y_true: Any, truth: NDArray[Any], y_prob: Any, labels: Any, m: int, one_column: bool
) -> tuple[NDArray[np.int64], tuple[Any, ...] | None]:
    """The column of each label, and what the columns are called."""
    columns = getattr(y_prob, "columns", None)
    if labels is None and columns is None and truth.dtype.kind not in "USO":
        return arrays.as_indices(truth, m, labels), None
    arrays.check_missing(truth)
    classes = arrays.class_names(truth, labels, m)
    arrays.check_names(y_true, columns, labels, classes)
    named = columns is not None
    return arrays.as_indices(truth, m, labels, named=named, one_column=one_column), classes


def _as_probs(
    array: NDArray[Any], input: str, normalize: bool, stream: bool
) -> NDArray[np.floating]:
    array = arrays.as_float(array, logits=input != "probs", stream=stream)
    if input != "probs" or normalize:
        what = f"a copy of y_prob of shape {array.shape}"
        advice = (
            "pass probabilities, which are not copied, or ckce.CKCEAccumulator some rows at a time"
        )
        check_memory(10.0 * array.size, what, advice)
    if input == "logits":
        return arrays.softmax(array.astype(np.float64))  # a copy, which becomes the probabilities
    if input == "log_probs":
        array = array.astype(np.float64)
        np.exp(array, out=array)
    if array.ndim == 1:
        return arrays.both_classes(array.astype(np.float64), _SUM_TOLERANCE)
    return _normalized(array) if normalize else array


def _normalized(array: NDArray[np.floating]) -> NDArray[np.float64]:
    n, m = array.shape
    report = _core.validate(array, np.zeros(n, np.int64), sum_tolerance=math.inf, n_threads=1)
    raise_for(report, n, m, check_sums=False)
    widened = array.astype(np.float64)
    sums = widened.sum(axis=1)
    if not sums.all():
        raise InputError(
            f"y_prob row {int(np.argmin(sums))} sums to 0 and cannot be normalized "
            f"({int((sums == 0).sum())} of {n} rows do)"
        )
    widened /= sums[:, None]
    return widened


def warn_of_scale(mean: float) -> None:
    """Warn of weights that look like importances; `mean` is their mean."""
    if not 0.1 <= mean <= 10.0:
        warn(
            f"sample_weight has mean {mean:.3g}; weights count copies of a row, and CKCE depends on "
            "their sum through lambda = N^(-1/4): rescale them to mean 1 if they are importances"
        )


_LOGITS = ("logits", "pass input='logits' if these are logits")
_LOG_PROBS = ("log_probs", "pass input='log_probs' if these are log-probabilities")
_NORMALIZE = ("normalize", "pass normalize=True to rescale")
_PERCENT = ("percent", "divide by 100 if they are percentages")
_ROUNDING = ("rounding", "pass numpy.clip(y_prob, 0.0, None) if that is rounding")


def _hint_for_negative(row: NDArray[np.floating]) -> tuple[str, str]:
    """Log-probabilities sum to 1 once they are exponentiated; logits do not."""
    values = row.astype(np.float64)
    if values.min() >= -_SUM_TOLERANCE and abs(values.sum() - 1.0) <= _SUM_TOLERANCE:
        return _ROUNDING
    if (values <= 0.0).all() and abs(np.exp(values).sum() - 1.0) < arrays.HALF_SUM_TOLERANCE:
        return _LOG_PROBS
    return _LOGITS


def raise_for(
    report: _core.Report,
    n: int,
    m: int,
    *,
    check_sums: bool,
    probs: NDArray[np.floating] | None = None,
) -> None:
    """Say what is wrong with the numbers, if anything is."""
    if report.clean:
        return
    found = report.not_finite
    if found.count:
        raise InputError(
            f"y_prob row {found.row} column {found.column} is {found.value} "
            f"({entries_are(found.count)} NaN or inf); drop or fix these rows"
        )
    found = report.negative
    if found.count:
        raise InputError(
            f"y_prob row {found.row} column {found.column} is {found.value:.6g}, expected "
            f"probabilities ({entries_are(found.count)} negative)",
            _LOGITS if probs is None else _hint_for_negative(probs[found.row]),
        )
    found = report.above_one
    if found.count and check_sums:
        raise InputError(
            f"y_prob row {found.row} column {found.column} is {found.value:.6g}, expected "
            f"probabilities ({entries_are(found.count)} above 1)",
            _LOGITS,
            _PERCENT,
        )
    found = report.bad_sum
    if found.count and check_sums and found.value == 0.0:
        raise InputError(
            f"y_prob row {found.row} holds zeros only, which is no prediction ({found.count} of {n} "
            "rows do not sum to 1); drop such rows"
        )
    if found.count and check_sums:
        raise InputError(
            f"y_prob row {found.row} sums to {found.value:.6f}, expected 1 ({found.count} of {n} "
            "rows do not)",
            _NORMALIZE,
            _LOGITS,
        )
    found = report.bad_label
    if found.count:
        one_based = report.smallest_label >= 1 and report.largest_label == m
        hint = ("labels", "pass labels= to name the columns")
        if one_based:
            hint = (
                "one_based",
                f"labels look 1-based: pass y_true - 1, or labels=range(1, {m + 1})",
            )
        raise InputError(
            f"y_true row {found.row} is {int(found.value)}, expected 0..{m - 1} ({found.count} of "
            f"{n} rows are outside)",
            hint,
        )
