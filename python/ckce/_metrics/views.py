"""The numbers of the pictures of a witness: smooth reliability curves, and arrows on the simplex."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import Samples
from ckce._metrics.miscalibration import Miscalibration, worded
from ckce._metrics.regions import Region
from ckce._metrics.witness import Witness, of_corrections
from ckce._problem import NONE, Bandwidth, ClassWise, Problem, TopK, one_vs_rest, reduce_samples
from ckce._results import FEW_ROWS, harmless

Values = NDArray[np.float64]
_BANDWIDTH = 2.0  # of pictures: at the median distance curves are rough
_POINTS = 20  # of a curve by equal steps, and as many by equal shares of the rows
_ENDS = 0.01  # share of the rows beyond each end of a curve
_COLUMNS = 25  # of a histogram
_CELLS = 9  # along an edge of the simplex
_CELL_ROWS, _CELL_SHARE = 15, 0.002  # of a cell that has an arrow, at least
_LOOKED_AT = 2000  # rows by which classes are chosen
_MANY_CLASSES, _TOP = 100, 10  # above, the largest probabilities alone


@dataclass(frozen=True)
class CorrectionCurve:
    """How often something happens, against its predicted probability, without bins.

    Attributes
    ----------
    name : str
        The class or rank.
    probability : ndarray of shape (k,)
        Predicted probabilities, from the 1 % to the 99 % quantile of the sample.
    frequency : ndarray of shape (k,)
        Probability plus correction: an estimate of the frequency at this prediction.
    low, high : ndarray of shape (k,)
        Simultaneous band of the frequencies at these points, where they change smoothly. In
        simulations with 2000 rows the 95 % band covered 95 to 97 % of the curves from end to end.
    histogram : ndarray of shape (25,)
        Share of the cases by predicted probability, from 0 to 1.
    n_samples : int
        Rows.
    level : float
        Level of the band.
    """

    name: str
    probability: Values = field(repr=False)
    frequency: Values = field(repr=False)
    low: Values = field(repr=False)
    high: Values = field(repr=False)
    histogram: Values = field(repr=False)
    n_samples: int
    level: float

    def to_dict(self) -> dict[str, Any]:
        """All numbers, to four decimals and ready for JSON."""
        arrays = ("probability", "frequency", "low", "high", "histogram")
        rounded = {name: np.round(getattr(self, name), 4).tolist() for name in arrays}
        return {"name": self.name, **rounded, "level": self.level}


@dataclass(frozen=True)
class CorrectionArrows:
    """Three classes: where predictions are, and where the labels ask them to be.

    Attributes
    ----------
    labels : tuple
        The classes.
    start, end : ndarray of shape (k, 3)
        Mean prediction of each cell of the simplex that holds enough rows, and the same with its
        correction.
    shown : ndarray of shape (k,) of bool
        Whether the simultaneous band of the correction leaves out 0 in a class.
    share : ndarray of shape (k,)
        Share of the cases in each cell.
    n_samples : int
        Rows.
    level : float
        Level of the band.
    """

    labels: tuple[Any, ...]
    start: Values = field(repr=False)
    end: Values = field(repr=False)
    shown: NDArray[np.bool_] = field(repr=False)
    share: Values = field(repr=False)
    n_samples: int
    level: float

    def to_dict(self) -> dict[str, Any]:
        """All numbers, to four decimals and ready for JSON."""
        arrays = ("start", "end", "share")
        rounded = {name: np.round(getattr(self, name), 4).tolist() for name in arrays}
        return {**rounded, "shown": self.shown.tolist(), "level": self.level}


def curve_of(witness: Witness, name: str = "", level: float = 0.95) -> CorrectionCurve:
    """Two classes: the frequency of the second one."""
    return _drawn(_smooth(witness), name or str(witness.labels[1]), level)


def _drawn(witness: Witness, name: str, level: float) -> CorrectionCurve:
    samples = witness._rows("a curve").samples
    p = samples.probs[:, 1].astype(np.float64)
    weights = np.ones(samples.n) if samples.weights is None else samples.weights
    grid = _grid(p, weights)
    found = witness.correction(grid, level=level)
    counts, _ = np.histogram(p, _COLUMNS, (0.0, 1.0), weights=weights)
    return CorrectionCurve(
        name=name,
        probability=grid,
        frequency=grid + found.value[:, 1],
        low=grid + found.band_low[:, 1],
        high=grid + found.band_high[:, 1],
        histogram=counts / weights.sum(),
        n_samples=samples.n,
        level=level,
    )


def _grid(p: Values, weights: Values) -> Values:
    """Points where the rows are, and points between."""
    order = np.argsort(p, kind="stable")
    below = np.cumsum(weights[order]) / weights.sum()
    shares = np.linspace(_ENDS, 1.0 - _ENDS, _POINTS)
    by_share = p[order][np.minimum(np.searchsorted(below, shares), len(p) - 1)]
    by_step = np.linspace(by_share[0], by_share[-1], _POINTS)
    return np.unique(np.clip(np.concatenate([by_share, by_step]), 0.0, 1.0))


_PLACES = ("predicted class", "second most probable class", "third most probable class")


def rank_curves(witness: Witness, level: float = 0.95) -> list[CorrectionCurve]:
    """How often the label is the most probable class, the second one, ..., against its probability."""
    problem = witness._rows("curves of ranks")
    samples = problem.samples
    places = _PLACES[: samples.m - 1]
    if not isinstance(problem.reduction, TopK):
        samples = reduce_samples(samples, TopK(len(places)), problem.n_threads)
    return [
        _drawn(_smooth(witness, one_vs_rest(samples, rank)), place, level)
        for rank, place in enumerate(places)
    ]


def class_curves(witness: Witness, count: int = 3, level: float = 0.95) -> list[CorrectionCurve]:
    """The classes with the largest corrections, each against the rest."""
    samples = witness._rows("curves of classes").samples
    rows = np.unique(np.linspace(0, samples.n - 1, _LOOKED_AT).astype(int))
    off = np.abs(witness._corrected(samples.probs[rows])).mean(axis=0)
    chosen = np.argsort(-off, kind="stable")[:count]
    return [
        _drawn(_smooth(witness, one_vs_rest(samples, j)), str(witness.labels[j]), level)
        for j in chosen.tolist()
    ]


def _smooth(witness: Witness, samples: Samples | None = None) -> Witness:
    """The witness of a picture: of the same problem, or of one of two classes.

    A bandwidth that was given stays; a median distance does not, since most probabilities of a class
    are near 0, and so would be their distances.
    """
    problem = witness._rows("a picture")
    if problem.bandwidth.kind != "given":
        problem = replace(problem, bandwidth=Bandwidth(_BANDWIDTH, "given"), cache={})
    if samples is None:
        return replace(witness, _problem=problem)
    problem = replace(problem, samples=samples, reduction=None, cache={})
    return replace(witness, n_classes=2, labels=("no", "yes"), _problem=problem)


def arrows_of(witness: Witness, level: float = 0.95) -> CorrectionArrows:
    """Three classes: the correction in the cells of the simplex that hold enough rows."""
    samples = witness._rows("arrows").samples
    q = samples.probs.astype(np.float64)
    weights = np.ones(samples.n) if samples.weights is None else samples.weights
    cells = list(_cells(q, weights))
    start = np.array([center for center, _ in cells]).reshape(-1, 3)
    if not cells:
        none = np.zeros(0)
        return CorrectionArrows(
            witness.labels, start, start, none.astype(bool), none, samples.n, level
        )
    found = _smooth(witness).correction(start, level=level)
    return CorrectionArrows(
        labels=witness.labels,
        start=start,
        end=start + found.value,
        shown=np.any((found.band_low > 0.0) | (found.band_high < 0.0), axis=1),
        share=np.array([share for _, share in cells]),
        n_samples=samples.n,
        level=level,
    )


def _cells(q: Values, weights: Values) -> Iterator[tuple[Values, float]]:
    """Mean prediction and share of each cell with enough rows."""
    corner = np.rint(q[:, :2] * _CELLS).astype(np.int64)
    codes, inverse = np.unique(corner @ [_CELLS + 1, 1], return_inverse=True)
    least = max(_CELL_ROWS, _CELL_SHARE * len(q))
    for code in range(len(codes)):
        rows = inverse == code
        if rows.sum() >= least:
            mass = weights[rows].sum()
            center = weights[rows] @ q[rows] / mass
            yield center / center.sum(), float(mass / weights.sum())


@dataclass(frozen=True)
class Where:
    """Where a model is off, in words and pictures; what ``where=True`` adds to `evaluate`.

    Attributes
    ----------
    regions : tuple of Region
        The places where most is to be corrected, the worst first.
    curves : tuple of CorrectionCurve
        Two classes: the frequency of the second one against its probability. More than three: of the
        predicted class, the second and the third most probable one.
    classes : tuple of CorrectionCurve
        More than two classes: the three with the largest corrections, each against the rest.
    arrows : CorrectionArrows or None
        Three classes: corrections on the simplex.
    miscalibration : Miscalibration
        How large the corrections are, by the same smoother.
    """

    regions: tuple[Region, ...]
    curves: tuple[CorrectionCurve, ...]
    classes: tuple[CorrectionCurve, ...]
    arrows: CorrectionArrows | None
    miscalibration: Miscalibration

    @property
    def two_classes(self) -> bool:
        """Whether `curves` is about a class, not about ranks."""
        return len(self.curves) == 1 and self.curves[0].name not in _PLACES

    @property
    def lines(self) -> tuple[str, ...]:
        """The regions in words."""
        return tuple(f"{region.words[:1].upper()}{region.words[1:]}." for region in self.regions)

    @property
    def caution(self) -> str:
        """What to keep in mind about them."""
        if not self.regions:
            return "There are too few rows to look for regions."
        if not any(region.shown for region in self.regions):
            return "The regions were sought, and each may be chance."
        return "The regions were sought: a new sample would show smaller corrections there."

    def __repr__(self) -> str:
        lines = (f"{k}. {line}" for k, line in enumerate(self.lines, 1))
        return "\n".join(["Where most is to be corrected:", *lines, self.caution])

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{harmless(line)}</li>" for line in self.lines)
        return f"<ol>{lines}</ol><p>{harmless(self.caution)}</p>"

    def to_dict(self) -> dict[str, Any]:
        """All numbers, ready for JSON."""
        return {
            "worst_regions": [
                {
                    "words": each.words,
                    "says": np.round(each.center, 4).tolist(),
                    "is": np.round(each.observed, 4).tolist(),
                    "low": np.round(each.low, 4).tolist(),
                    "high": np.round(each.high, 4).tolist(),
                    "shown": each.shown,
                    "share": round(each.share, 6),
                }
                for each in self.regions
            ],
            "curves": [each.to_dict() for each in self.curves],
            "classes": [each.to_dict() for each in self.classes],
            "arrows": None if self.arrows is None else self.arrows.to_dict(),
        }


def where_of(problem: Problem, level: float) -> Where | None:
    """Where the model of a settled problem is off; None for too few rows.

    Above 100 classes by the ten largest probabilities.
    """
    if problem.samples.n < FEW_ROWS or problem.samples.weight <= FEW_ROWS:
        return None
    bandwidth = problem.bandwidth if problem.bandwidth.kind == "given" else NONE
    if isinstance(problem.reduction, ClassWise):
        problem = replace(problem, reduction=None, bandwidth=bandwidth, cache={})
    if problem.samples.m > _MANY_CLASSES:
        top = TopK(_TOP)
        samples = reduce_samples(problem.samples, top, problem.n_threads)
        problem = replace(problem, samples=samples, reduction=top, bandwidth=bandwidth, cache={})
    witness, m = of_corrections(problem), problem.samples.m
    ranked = isinstance(problem.reduction, TopK)
    return Where(
        regions=tuple(witness.worst_regions()),
        curves=() if m == 3 and not ranked else tuple(_first_curves(witness, level)),
        classes=() if m == 2 or ranked else tuple(class_curves(witness, level=level)),
        arrows=arrows_of(witness, level) if m == 3 and not ranked else None,
        miscalibration=worded(witness._smoothing, witness._smoother[1], level),
    )


def _first_curves(witness: Witness, level: float) -> list[CorrectionCurve]:
    if witness.n_classes == 2 and not isinstance(witness._rows("curves").reduction, TopK):
        return [curve_of(witness, level=level)]
    return rank_curves(witness, level=level)
