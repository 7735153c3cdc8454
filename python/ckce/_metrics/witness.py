"""Where a model is off: CKCE's own witness, the correction that labels ask for, and worst regions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import check_choice, check_count, check_level, check_memory, check_probs
from ckce._methods import Method
from ckce._metrics.miscalibration import (
    Miscalibration,
    beside,
    smooth,
    worded,
)
from ckce._metrics.regions import CANDIDATES, MOST_ROWS, Region, find_regions
from ckce._metrics.witness_function import OfProblem, Values, check_function, own_values
from ckce._problem import (
    FEW_CLASSES,
    Problem,
    ReductionLike,
    check_reduction,
    check_regularization,
    settle,
)
from ckce._results import Column, Facts, Said, Table, load_pandas, quantile, student_factor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_DRAWS = 499
_MOST_ERRORS = 2.0**27  # bytes of errors in memory
_MOST_AT_ONCE = 4096  # predictions whose errors are there
_NO_ERROR = 1e-12  # standard errors below are roundings, whose ratios say nothing
_NEEDS_ROWS = (
    "{} needs the rows, which the state of a stream does not keep; call ckce.witness on them"
)


def witness(
    y_true: Any,
    y_prob: Any,
    *,
    method: str | Method = "auto",
    kernel: str = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | None = None,
    reduction: ReductionLike = None,
    sample_weight: Any = None,
    groups: Any = None,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> Witness:
    r"""Where a model is off, and in which direction.

    CKCE is the squared norm of a function, its witness

    .. math:: F(q) = \sum_i v_i\, k(q_i, q), \qquad V = (K + \lambda n I)^{-1} R ,

    an estimate of :math:`\mathbb{E}[e_Y - q \mid q]`: what the labels ask to add to the prediction
    q. F explains the value of CKCE, but lambda shrinks it: in a narrow region it shows a tenth of
    the gap. ``w.correction(q)`` estimates the same function by the smoother of `miscalibration`,
    which shrinks much less, with confidence bands; ``w.worst_regions()`` lists the places where
    most is to be corrected.

    Parameters
    ----------
    method, kernel, bandwidth, regularization, reduction
        As in `ckce`, whose witness it is; no callable kernels, no ``"class_wise"``, no ``"loo"``. The correction
        takes a bandwidth that is given, if the kernel is not ``laplace``; nothing else.
    groups : array of shape (n_samples,), optional
        Ids of rows that depend on each other: they change the bands of the correction.
    y_true, y_prob, sample_weight, labels, random_state, input, normalize, n_threads, progress
        As in `ckce`.

    Returns
    -------
    Witness
        ``w(q)`` is F at the predictions q.

    Notes
    -----
    Cost: that of `ckce` for F; that of `miscalibration` for the correction. Both are made when they
    are first asked for, so the arrays must not change before. It is no recalibrator: see docs/where_is_it_off.md.

    Examples
    --------
    >>> import ckce
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.uniform(0.2, 0.8, 4000)
    >>> y_true = (rng.random(4000) < truth).astype(int)
    >>> overconfident = 0.5 + 1.5 * (truth - 0.5)
    >>> w = ckce.witness(y_true, overconfident)
    >>> c = w.correction([0.2, 0.5, 0.8])
    >>> np.round(c.value[:, 1], 2)
    array([ 0.09,  0.03, -0.12])
    """
    check_reduction(reduction, ("top_label",))
    check_regularization(regularization, loo=False)
    problem = settle(
        "ckce",
        y_true,
        y_prob,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
        reduction=reduction,
        sample_weight=sample_weight,
        groups=groups,
        labels=labels,
        random_state=random_state,
        input=input,
        normalize=normalize,
        n_threads=n_threads,
    )
    if problem.kernel.gram is not None:
        raise ValueError("kernel must be one of the named kernels for a witness, got a callable")
    check_function(problem, progress)
    return _witness(problem, OfProblem(problem, progress))


@dataclass(frozen=True)
class Correction:
    """What the labels ask to add to some predictions, with bands.

    Attributes
    ----------
    q : ndarray of shape (k, n_classes)
        The predictions.
    value : ndarray of shape (k, n_classes)
        Estimate of E[e_Y - q | q]; rows sum to 0.
    se : ndarray of shape (k, n_classes)
        Standard errors.
    low, high : ndarray of shape (k, n_classes)
        Pointwise bands: each covers with probability `level`.
    band_low, band_high : ndarray of shape (k, n_classes)
        Simultaneous bands for all of these k predictions and classes: wider by a multiplier bootstrap,
        by Student's t where few rows speak, and by the bias that smoothing has if the correction is
        the truth.
    level : float
        Level of the bands.
    labels : tuple
        The classes, in the order of the columns.
    """

    q: Values
    value: Values
    se: Values
    low: Values
    high: Values
    band_low: Values
    band_high: Values
    level: float
    labels: tuple[Any, ...]

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each prediction and class."""
        return _frame(
            self.labels,
            probability=self.q,
            correction=self.value,
            se=self.se,
            low=self.low,
            high=self.high,
            band_low=self.band_low,
            band_high=self.band_high,
        )


class Regions(Said, list[Region]):
    """Regions, the worst first; a list that shows as a table."""

    def _said(self) -> Table:
        return Table(
            columns=(Column("", ("rank",)), Column("where most is to be corrected", ("words",))),
            rows=tuple({"rank": k, "words": each.words} for k, each in enumerate(self, 1)),
            heading="" if self else "too few rows to look for regions",
        )


@dataclass(frozen=True, repr=False)
class Witness(Said):
    """The witness of CKCE; ``w(q)`` is F at the predictions q.

    Attributes
    ----------
    n_classes : int
        Columns of the predictions, after a reduction.
    labels : tuple
        The classes, in the order of the columns.
    regularization : float
        lambda of F.
    signature : str
        Names everything that changes F.
    """

    n_classes: int
    labels: tuple[Any, ...]
    regularization: float
    signature: str
    _function: Callable[[NDArray[np.floating]], Values] = field(repr=False, compare=False)
    _problem: Problem | None = field(repr=False, compare=False)
    _n_threads: int = field(repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        # What is computed later is no part of a pickle.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def _said(self) -> Facts:
        n = "" if self._problem is None else f"n = {self._problem.samples.n}, "
        rows = (
            ("w(q)", "", "F at predictions q: what the labels ask to add, shrunk by lambda"),
            ("w.correction(q)", "", "the same by a smoother that shrinks less, with bands"),
            ("w.worst_regions()", "", "the places where most is to be corrected"),
            ("w.plot()", "", "frequencies of the labels against predictions"),
        )
        return Facts(
            rows[:1] if self._problem is None else rows,
            self.signature,
            f"witness of CKCE, {n}m = {self.n_classes}, lambda {self.regularization:.4g}",
        )

    def __call__(self, q: Any) -> Values:
        """F at the predictions q: array of shape (k, n_classes), or (k,) for the positive class."""
        return self._function(self._checked(q))

    @property
    def y_prob(self) -> NDArray[np.floating]:
        """The predictions of the sample, after a reduction."""
        return self._rows("y_prob").samples.probs

    def own(self) -> Values:
        """F at the sample's own rows, each by all others: a row's label does not speak for itself.

        (F_i - h_i r_i) / (1 - h_i), h_i the weight that F gives to the row, or to a copy of it, at its
        own prediction.
        """
        return own_values(self._rows("own()"))

    def correction(self, q: Any, *, level: float = 0.95, n_draws: int = N_DRAWS) -> Correction:
        """The correction E[e_Y - q | q] at the predictions q, with bands.

        Parameters
        ----------
        q : array of shape (k, n_classes), or (k,) for the positive class
            Predictions.
        level : float
            Level of the bands.
        n_draws : int
            Draws of a multiplier bootstrap: each changes the signs of the rows' residuals (of groups,
            together) at random. A standard error is at least the one that labels drawn from the
            predictions would have, because residuals say little of classes that are rare.

        Returns
        -------
        Correction
            Bands cover E[e_Y - q | q] where that is smooth; errors finer than the sample resolves
            are averaged away.
        """
        problem = self._rows("correction(q)")
        level, draws, asked = check_level(level), check_count("n_draws", n_draws), self._checked(q)
        samples = problem.samples
        value = self._corrected(asked)
        se, again, freedom, largest = self._errors(asked, draws)
        factor = float(np.quantile(largest, level))
        half = quantile(level, samples.n_groups) * se
        if samples.n_groups is not None:
            freedom = np.full_like(freedom, samples.n_groups - 1.0)
        band = student_factor(factor, freedom) * se + np.abs(value - again)
        return Correction(
            q=np.asarray(asked, np.float64),
            value=value,
            se=se,
            low=value - half,
            high=value + half,
            band_low=value - band,
            band_high=value + band,
            level=level,
            labels=self.labels,
        )

    def worst_regions(self, n: int = 5) -> list[Region]:
        r"""The places where most is to be corrected, the worst first.

        A region is a ball of predictions, S. The first one has the largest
        :math:`N_S \langle \bar f_S, \bar r_S \rangle`, the number of the cases in it times the product of
        their mean correction and of their mean residual; the next ones are sought among the other
        rows. f are corrections at the sample's rows, each without its own label, and
        r = e_y - q. 200 centres are tried; of more than 100 classes, the 20 of them that look best in
        the directions in which corrections differ most.

        Parameters
        ----------
        n : int
            How many, at most.

        Returns
        -------
        list of Region
            They were sought: a new sample would show smaller corrections there. A region that may be
            chance says so.
        """
        problem = self._rows("worst_regions()")
        samples, count = problem.samples, check_count("n", n)
        sought = min(samples.n, MOST_ROWS) * (5.0 * samples.m + CANDIDATES)
        own = self._own_correction("worst_regions()", sought)
        return Regions(find_regions(samples, own, self.labels, count, problem.seed))

    @cached_property
    def miscalibration(self) -> Miscalibration:
        """`ckce.miscalibration` of the same rows, by the same smoother."""
        self._rows("miscalibration")
        return worded(self._smoothing, self._smoother[1], 0.95)

    def plot(self, kind: str | None = None, ax: Axes | None = None) -> Any:
        """Draw where the model is off, by the correction and its simultaneous band.

        Parameters
        ----------
        kind : {"curve", "simplex", "ranks", "classes"}, optional
            ``curve``: two classes, the frequency of the second one against its probability.
            ``simplex``: three classes, arrows from predictions to what the labels ask for.
            ``ranks``: the curves of the predicted class, the second and the third most probable one.
            ``classes``: the curves of the six classes with the largest corrections, each against the
            rest. By default the first of ``curve``, ``simplex`` and ``ranks`` that fits.
        ax : matplotlib axes, optional
            Where to draw a ``curve`` or a ``simplex``.

        Returns
        -------
        Axes, or array of Axes

        Notes
        -----
        Unless a bandwidth was given, pictures take 2.0, which was chosen by eye, in place of the
        median distance, at which curves are rough. ``correction(q)`` keeps the median.
        """
        from ckce._metrics.views import arrows_of, class_curves, curve_of, rank_curves
        from ckce._plots import correction as pictures

        fits = {2: "curve", 3: "simplex"}.get(self.n_classes)
        known = ("ranks", "classes") if fits is None else (fits, "ranks", "classes")
        kind = known[0] if kind is None else check_choice("kind", kind, known)
        if ax is not None and kind in ("ranks", "classes"):
            raise ValueError(
                f"ax must be None with kind={kind!r}, which has a panel for each curve"
            )
        if kind == "curve":
            return pictures.curve(curve_of(self), str(self.labels[1]), ax)
        if kind == "simplex":
            return pictures.arrows(arrows_of(self), ax)
        if kind == "ranks":
            return pictures.curves(rank_curves(self), "")
        return pictures.curves(class_curves(self, 6), "class")

    def to_frame(self, q: Any = None) -> Any:
        """F and correction as a pandas DataFrame with a row for each prediction and class.

        At the predictions q, with bands; without q at the sample's own rows, each without its own
        label and without bands.
        """
        if q is not None:
            asked = self._checked(q)
            _check_frame(24.0 * asked.size)
            if self._problem is None:
                return _frame(self.labels, probability=asked, witness=self._function(asked))
            frame = self.correction(asked).to_frame()
            frame.insert(3, "witness", self._function(asked).ravel())
            return frame
        probs = self._rows("to_frame()").samples.probs
        _check_frame(13.0 * probs.size)
        own = self._own_correction("to_frame()", 0.0)
        return _frame(self.labels, probability=probs, witness=self.own(), correction=own)

    def _own_correction(self, what: str, more: float) -> Values:
        """The correction at the sample's own rows, for what takes so many doubles more beside it."""
        samples = self._smoothing.samples
        n, m = samples.n, samples.m
        block = min(self._n_threads, n / 1024 + 1) * min(n, 1024) * (8.0 * m + 900.0)
        price = 8.0 * max(2.0 * n * m + block, n * m + more)
        advice = f"make the witness with reduction=ckce.TopK({FEW_CLASSES}), or of fewer rows"
        check_memory(price, f"{what} of {n} rows and {m} classes", advice)
        features, found = self._smoother
        return _core.own_correction(
            samples.probs,
            samples.labels,
            samples.weights,
            features=features,
            found=found,
            n_threads=self._n_threads,
        )

    @cached_property
    def _smoothing(self) -> Problem:
        return beside(self._rows("correction(q)"))

    @cached_property
    def _smoother(self) -> tuple[_core.Features, _core.Miscalibration]:
        return smooth(self._smoothing, False)

    def _corrected(self, q: NDArray[np.floating]) -> Values:
        features, found = self._smoother
        return _core.correction(
            q,
            features=features,
            coefficients=found.coefficients,
            fit=found.fit,
            n_threads=self._n_threads,
        )

    def _errors(self, asked: NDArray[np.floating], draws: int) -> tuple[Values, ...]:
        """Standard errors, the correction of the correction, degrees of freedom, and largest errors.

        The last are those of each draw, over their standard errors. Some predictions and classes at a time: the errors of all draws may not fit into memory.
        """
        samples, (features, found) = self._smoothing.samples, self._smoother
        (k, m), threads = asked.shape, min(self._n_threads, math.ceil(samples.n / 1024))
        each = 8.0 * draws * (2 + threads)  # of a prediction and a class
        rows = max(1, min(k, _MOST_AT_ONCE, int(_MOST_ERRORS / each)))
        classes = max(1, min(m, int(_MOST_ERRORS / (each * rows))))
        block = threads * min(samples.n, 1024)  # rows, and their weights in the predictions
        price = 8.0 * m * (9.0 * k + 13.0 * rows + 10.0 * block + 5.0 * features.n_features)
        price += 24.0 * block * rows
        price += each * (rows * classes + 2048)
        what = f"bands of {k} predictions, {m} classes and {draws} draws"
        check_memory(price, what, "pass fewer predictions at a time, or a smaller n_draws")
        se, again, freedom = np.empty((k, m)), np.empty((k, m)), np.empty((k, m))
        largest = np.zeros(draws)
        for top in range(0, k, rows):
            at = asked[top : top + rows]
            for first in range(0, m, classes):
                some = slice(first, min(first + classes, m))
                errors, variance, again[top : top + rows], freedom[top : top + rows] = (
                    _core.correction_errors(
                        samples.probs,
                        samples.labels,
                        samples.weights,
                        groups=samples.groups,
                        features=features,
                        found=found,
                        at=at,
                        first=first,
                        classes=some.stop - first,
                        draws=draws,
                        seed=self._smoothing.seed,
                        n_threads=self._n_threads,
                        progress=None,
                    )
                )
                drawn = np.einsum("ij,ij->i", errors, errors) / draws
                spread = np.sqrt(np.maximum(drawn, variance[:, some].T.ravel()))
                errors /= np.where(spread > _NO_ERROR, spread, np.inf)[:, None]
                np.abs(errors, out=errors)
                np.maximum(largest, errors.max(axis=0), out=largest)
                se[top : top + rows, some] = spread.reshape(-1, len(at)).T
        return se, again, freedom, largest

    def _rows(self, what: str) -> Problem:
        if self._problem is None:
            raise ValueError(_NEEDS_ROWS.format(what))
        return self._problem

    def _checked(self, q: Any) -> NDArray[np.floating]:
        samples = check_probs(
            q, sample_weight=None, input="probs", normalize=False, n_threads=self._n_threads
        )
        if samples.m != self.n_classes:
            raise ValueError(f"q must have {self.n_classes} columns, got {samples.m}")
        return samples.probs


def of_corrections(problem: Problem) -> Witness:
    """Without a bar: pictures ask for the correction, which needs no F."""
    return _witness(problem, OfProblem(problem, None))


def _witness(problem: Problem, function: Callable[[NDArray[np.floating]], Values]) -> Witness:
    return Witness(
        n_classes=problem.samples.m,
        labels=_names(problem),
        regularization=problem.regularization.value,
        signature=str(problem.signature.but("witness")),
        _function=function,
        _problem=problem,
        _n_threads=problem.n_threads,
    )


def _names(problem: Problem) -> tuple[Any, ...]:
    if problem.reduction is not None:
        return tuple(problem.reduction.classes)  # type: ignore[union-attr]
    return problem.samples.classes


def _check_frame(doubles: float) -> None:
    check_memory(
        8.0 * doubles, "a frame of all predictions and classes", "pass some rows at a time"
    )


def _frame(labels: Sequence[Any], **columns: NDArray[np.floating]) -> Any:
    """Long: a row for each prediction and class."""
    k, m = next(iter(columns.values())).shape
    data: dict[str, Any] = {"row": np.repeat(np.arange(k), m), "class": list(labels) * k}
    data.update({name: np.asarray(values, np.float64).ravel() for name, values in columns.items()})
    return load_pandas().DataFrame(data)
