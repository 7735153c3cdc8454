"""Where a model is off: CKCE's own witness, the correction that labels ask for, and worst regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
from ckce._metrics.regions import Region, find_regions
from ckce._metrics.witness_function import Values, function_of, own_values
from ckce._problem import (
    Problem,
    ReductionLike,
    check_reduction,
    check_regularization,
    progress_bar,
    settle,
)
from ckce._results import load_pandas, quantile, student_factor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_DRAWS = 499
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
    Cost: that of `ckce` for F; that of `miscalibration` for the correction, made when it is first
    asked for. It is no recalibrator: see docs/where_is_it_off.md.

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
    problem.check_memory(full=False)
    with progress_bar(progress, f"witness {problem.method.word}") as report:
        function = function_of(problem, report)
    return _witness(problem, function)


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


@dataclass(frozen=True)
class Witness:
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

    def __call__(self, q: Any) -> Values:
        """F at the predictions q: array of shape (k, n_classes), or (k,) for the positive class."""
        return self._function(self._checked(q))

    @property
    def y_prob(self) -> NDArray[np.floating]:
        """The predictions of the sample, after a reduction."""
        return self._rows("y_prob").samples.probs

    def own(self) -> Values:
        """F at the sample's own rows, each by all others: a row's label does not speak for itself.

        (F_i - h_i r_i) / (1 - h_i), h_i the weight that F gives to the row at its own prediction.
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
        features, found = self._smoother
        samples = problem.samples
        k, m = asked.shape
        check_memory(
            8.0 * k * m * draws * (2.0 + self._n_threads),
            f"bands of {k} predictions, {m} classes and {draws} draws",
            "pass fewer predictions at a time",
        )
        value = self._corrected(asked)
        errors, variance, again, freedom = _core.correction_errors(
            samples.probs,
            samples.labels,
            samples.weights,
            groups=samples.groups,
            features=features,
            found=found,
            at=asked,
            draws=draws,
            seed=problem.seed,
            n_threads=self._n_threads,
            progress=None,
        )
        drawn = (errors**2).mean(axis=1)
        spread = np.sqrt(np.maximum(drawn, variance.T.ravel()))
        scaled = np.abs(errors) / np.where(spread > 0.0, spread, np.inf)[:, None]
        factor = float(np.quantile(scaled.max(axis=0), level))
        se = spread.reshape(m, k).T
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
        :math:`N_S \lVert \bar f_S \rVert^2`, the share of the cases in it times the square of their
        mean correction; the next ones are sought among the other rows. f are corrections at the
        sample's rows, each without its own label.

        Parameters
        ----------
        n : int
            How many, at most.

        Returns
        -------
        list of Region
            They were sought: their corrections are larger than those of a new sample would be. They are
            noise if the model is calibrated; see `miscalibration`.
        """
        problem = self._rows("worst_regions()")
        features, found = self._smoother
        samples = problem.samples
        own = _core.own_correction(
            samples.probs, samples.labels, features=features, found=found, n_threads=self._n_threads
        )
        return find_regions(
            samples.probs, own, samples.weights, self.labels, check_count("n", n), problem.seed
        )

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
            if self._problem is None:
                return _frame(self.labels, probability=asked, witness=self._function(asked))
            frame = self.correction(asked).to_frame()
            frame.insert(3, "witness", self._function(asked).ravel())
            return frame
        features, found = self._smoother
        samples = self._rows("to_frame()").samples
        own = _core.own_correction(
            samples.probs, samples.labels, features=features, found=found, n_threads=self._n_threads
        )
        return _frame(self.labels, probability=samples.probs, witness=self.own(), correction=own)

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
    """Without F, which the correction does not need."""
    return _witness(problem, lambda q: function_of(problem, None)(q))


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


def _frame(labels: Sequence[Any], **columns: NDArray[np.floating]) -> Any:
    """Long: a row for each prediction and class."""
    k, m = next(iter(columns.values())).shape
    data: dict[str, Any] = {"row": np.repeat(np.arange(k), m), "class": list(labels) * k}
    data.update({name: np.asarray(values, np.float64).ravel() for name, values in columns.items()})
    return load_pandas().DataFrame(data)
