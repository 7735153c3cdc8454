"""The bandwidth: given, or by the median heuristic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ckce import _core
from ckce._input import (
    Kernel,
    Samples,
    check_bandwidth,
    check_choice,
    check_memory,
    check_named_kernel,
    check_probs,
    check_seed,
    check_threads,
)
from ckce._methods.method import in_panels

MEDIAN_ROWS = 2000
FEW_CLASSES = 20  # that advice reduces many to
_FEWER = f"pass reduction=ckce.TopK({FEW_CLASSES}), or a bandwidth"
_APART = 1e-6  # of the largest distance: a median below it is of equal predictions


@dataclass(frozen=True)
class Bandwidth:
    """A bandwidth and where it comes from."""

    value: float | None
    #: "given"; "default" (of a stream); "none" (the kernel has none); "frequencies" (they contain
    #: it); "pending" (it is to come from the first rows of a stream); or "median", "median>0" (the
    #: median was 0), "no distances".
    kind: str
    #: Seed of the subsample, if only some rows were measured.
    seed: int | None = None
    #: Of several models together.
    pooled: bool = False
    #: Of the first rows of a stream.
    first_rows: bool = False
    #: Of a sample of so many rows of a stream.
    sample: int | None = None

    @property
    def source(self) -> str:
        """Where it comes from, in words."""
        if self.kind == "pending":
            return "median"
        if self.first_rows:
            return f"{self.kind} of the first {MEDIAN_ROWS} rows"
        if self.sample is not None:
            return f"{self.kind} of a sample of {self.sample}"
        drawn = "" if self.seed is None else f",{MEDIAN_ROWS},s{self.seed}"
        return f"{'pooled ' if self.pooled else ''}{self.kind}{drawn}"

    @property
    def of_all_rows(self) -> bool:
        """Given, or the median distance of the rows of one problem."""
        if self.kind == "given":
            return True
        medians = ("median", "median>0", "no distances")
        elsewhere = self.pooled or self.first_rows or self.sample is not None
        return self.kind in medians and not elsewhere

    def words(self) -> dict[str, str]:
        """Its part of a signature."""
        if self.value is None:
            return {}
        return {"gamma": repr(self.value) + ("" if self.kind == "given" else f"({self.source})")}


NONE = Bandwidth(None, "none")


def default_bandwidth(m: int, kernel: Kernel) -> Bandwidth:
    """1 - 3 / (2 m), times sqrt(2) for an L1 distance: for streams, which cannot look at their rows.

    On 31 real sets CKCE differed from that at the median bandwidth by a factor of 1.26 on average
    (3.1 at most); a constant bandwidth of 0.5 gives 1.43, of 1.0 1.49.
    """
    scale = math.sqrt(2.0) if kernel.distance == "l1" else 1.0
    return Bandwidth(scale * (1.0 - 1.5 / m), "default")


def check_bandwidth_option(value: Any, words: Sequence[str] = ("median", "default")) -> float | str:
    """A number, or one of a few words."""
    if isinstance(value, str):
        if value.replace(".", "", 1).isdecimal():
            raise TypeError(f"bandwidth must be a number, got the string {value!r}; pass {value}")
        return check_choice("bandwidth", value, words)
    return check_bandwidth(value)


def median_of(
    groups: Sequence[Samples],
    kernel: Kernel,
    seed: int,
    n_threads: int,
    *,
    class_wise: bool = False,
    pooled: bool = False,
) -> Bandwidth:
    """Median of the within-group distances of all groups together.

    Pairs of equal predictions count, as in the paper, unless they leave nothing else: then, and in a
    pooled median (where a constant model has nothing to say), only pairs that are apart do.
    """
    many = groups[0].m > 2 * FEW_CLASSES
    _check_median(groups, class_wise, _FEWER if many else "pass a bandwidth")

    def median(counted: _core.Counted) -> tuple[float, float]:
        norm = getattr(_core.Norm, kernel.distance)
        how: dict[str, Any] = {"norm": norm, "counted": counted}
        how.update(seed=seed, n_threads=n_threads)
        if class_wise:
            (one,) = groups
            return _core.class_wise_median_distance(one.probs, one.labels, one.weights, **how)
        probs = [group.probs for group in groups]
        return _core.median_distance(probs, [group.weights for group in groups], **how)

    sampled = any(max(group.n, group.weight) > MEDIAN_ROWS for group in groups)
    kind = "median"
    if not pooled:
        value, largest = median(_core.Counted.all)
        if value > _APART * largest:
            return Bandwidth(value, kind, seed if sampled else None)
        kind = "median>0"
    value, largest = median(_core.Counted.apart)
    if value <= 0.0:
        value, kind = 1.0, "no distances"
    return Bandwidth(value, kind, seed if sampled else None, pooled)


def _check_median(groups: Sequence[Samples], class_wise: bool, advice: str) -> None:
    """Refuse rows in float64, and sorted columns or the distances of copies, that do not fit."""
    m = groups[0].m
    if m <= 1000 and len(groups) == 1:  # at most 112 MB; small calls have no time for sums
        return
    doubles = 0.0
    for group in groups:
        rows = group.n if max(group.n, group.weight) <= MEDIAN_ROWS else MEDIAN_ROWS
        doubles += in_panels(rows) * m + (4.0 * rows * m if class_wise else 0.0)
        if group.weights is not None and not class_wise:
            doubles += rows * (rows + 1.0)
    check_memory(
        8.0 * doubles, lambda: f"the median distance of predictions of {m} classes", advice
    )


def median_bandwidth(
    y_prob: Any,
    *,
    kernel: str = "linear_gaussian",
    sample_weight: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
) -> float:
    r"""Bandwidth by the median heuristic.

    .. math:: \gamma = \operatorname{median}_{i<j} \lVert q_i - q_j \rVert

    The distance is the kernel's own: Euclidean (not squared), L1 for ``laplace``. If the median is
    below 1e-6 of the largest distance, as for hard predictions, the median of the distances above
    that is taken, and 1.0 if all predictions are equal.

    Parameters
    ----------
    y_prob : array of shape (n_samples, n_classes), or (n_samples,) for the positive class
        Predicted probabilities.
    kernel : {"linear_gaussian", "gaussian", "laplace", "linear"}
        Kernel whose distance is used.
    sample_weight : array of shape (n_samples,), optional
        Frequency weights: a row of weight 2 counts as two rows.
    random_state : int
        Seed of the subsample.
    input : {"probs", "logits", "log_probs"}
        What `y_prob` holds, as in `ckce`.
    normalize : bool
        Rescale the rows first.
    n_threads : int, optional
        Threads; the result does not depend on them.

    Returns
    -------
    float
        The bandwidth, above 0.

    Notes
    -----
    All pairs count up to 2000 rows. Above, the pairs of 2000 rows drawn without replacement count;
    the cost is then O(2000^2 m), whatever n is.

    Examples
    --------
    >>> import ckce
    >>> ckce.median_bandwidth([[1.0, 0.0], [0.4, 0.6], [0.0, 1.0]])
    0.848528137423857
    """
    named = check_named_kernel(kernel)
    seed, threads = check_seed(random_state), check_threads(n_threads)
    samples = check_probs(
        y_prob, sample_weight=sample_weight, input=input, normalize=normalize, n_threads=threads
    )
    _check_median([samples], False, "pass fewer rows")
    found = median_of([samples], named, seed, threads).value
    assert found is not None
    return found
