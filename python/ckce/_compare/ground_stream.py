"""Two models at equal predictions, where the rows come in batches.

The sums of each model add up over batches, so a first pass gives values and the difference. The paired
standard error, and so the verdict, needs a second pass over the rows of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._compare.common_ground import check_ground, check_names, ground_problems, ground_words
from ckce._compare.ground import (
    LARGEST_RANK,
    ROWS_PER_LANDMARK,
    GroundMap,
    SolvedPair,
    ground_map,
    map_of,
    solve_pair,
)
from ckce._compare.guard_rails import is_constant
from ckce._compare.models import check_models
from ckce._compare.verdict import CommonGround, Pair, judge
from ckce._input import (
    KernelLike,
    Samples,
    check_count,
    check_level,
    check_samples,
)
from ckce._problem import (
    Problem,
    ReductionLike,
    Regularization,
    Settings,
    Signature,
    check_reduction,
    check_regularization,
    check_settings,
    default_regularization,
)

MANY = LARGEST_RANK * ROWS_PER_LANDMARK  # rows that all landmarks are worth


@dataclass(frozen=True)
class GroundPlan:
    """What the states of compared models share: the features, and how rows become samples."""

    map: GroundMap
    settings: Settings  # the reduction is that of the verdict
    problem: Problem  # of the sample, without its rows: what a signature names
    labels: tuple[Any, ...]
    input: str
    normalize: bool

    @property
    def factor(self) -> NDArray[np.float64] | None:
        label = self.problem.label_kernel
        return None if label is None else label.factor

    def check(self, labels: Any, probs: Any, weights: Any) -> Samples:
        """Rows of one model, reduced."""
        numbered = tuple(range(self.problem.n_classes))
        samples = check_samples(
            labels,
            probs,
            labels=None if self.labels == numbered else self.labels,
            sample_weight=weights,
            input=self.input,
            normalize=self.normalize,
            n_threads=self.settings.n_threads,
            n_classes=self.problem.n_classes,
        )
        return self.settings.reduce(samples)

    def difference(self, other: GroundPlan) -> str | None:
        """What forbids a comparison."""
        if not all(map(np.array_equal, self.map.points, other.map.points)):
            return "landmarks"
        mine, theirs = self.problem, other.problem
        for what, a, b in (
            ("kernel", mine.kernel.word, theirs.kernel.word),
            ("bandwidth", mine.bandwidth.value, theirs.bandwidth.value),
            ("reduction", mine.reduction, theirs.reduction),
            (
                "label_kernel",
                mine.label_kernel and mine.label_kernel.name,
                theirs.label_kernel and theirs.label_kernel.name,
            ),
        ):
            if a != b:
                return what
        return None

    def __reduce__(self) -> Any:
        parts = self.settings, self.problem, self.labels, self.input, self.normalize
        return _plan, (self.map.points, *parts)


def _plan(
    points: tuple[NDArray[np.float64], ...], settings: Settings, problem: Problem, *rest: Any
) -> GroundPlan:
    """A plan out of a pickle."""
    assert problem.bandwidth.value is not None
    features = map_of(points, problem.kernel, problem.bandwidth.value, settings.n_threads)
    return GroundPlan(features, settings, problem, *rest)


class GroundAccumulator:
    r"""Sums of one model for a comparison at equal predictions, in memory that does not grow with rows.

    Over the shared features x of `common_ground`, the state holds :math:`\sum_i x_i x_i^\top`,
    :math:`\sum_i x_i r_i^\top` and :math:`\sum_i \lVert r_i \rVert^2 x_i x_i^\top`. States of parts of
    the data are merged by addition. Two models whose states have the same landmarks can be compared:
    `compare` gives the value of each and the difference. **The verdict needs the rows**, because the
    rows of both models are paired: `Scan.compare` makes that second pass over files, and
    `common_ground` over arrays.

    Make one by `from_sample`, and one for each model and part of the data by `fresh`.

    Notes
    -----
    An update costs O(n d^2) with d features, about 250 with 10 classes; the state has about d^2 + d m
    numbers. Values agree with those of `common_ground` with the same landmarks to 1e-10. States can be
    pickled.

    Examples
    --------
    >>> import ckce
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> good = rng.dirichlet([1, 1, 1], size=2000)
    >>> y_true = (rng.random((2000, 1)) > good.cumsum(axis=1)[:, :2]).sum(axis=1)
    >>> sharp = good**2 / (good**2).sum(axis=1, keepdims=True)
    >>> empty = ckce.GroundAccumulator.from_sample(y_true, {"sharp": sharp, "good": good})
    >>> a, b = empty.fresh(), empty.fresh()
    >>> for rows in (slice(0, 1200), slice(1200, 2000)):
    ...     a.update(y_true[rows], sharp[rows])
    ...     b.update(y_true[rows], good[rows])
    >>> c = a.compare(b, names=("sharp", "good"))
    >>> c.verdict, round(c.difference, 4)
    ('needs the rows', 0.0474)
    """

    def __init__(self, plan: GroundPlan) -> None:
        if not isinstance(plan, GroundPlan):
            raise TypeError(
                "a GroundAccumulator is made by from_sample, or by fresh of another one"
            )
        self._plan = plan
        self._sums: _core.GroundSums | None = None
        self._rows = 0
        self._weighted = False
        self._first: NDArray[np.float64] | None = None  # the prediction of the first row
        self._constant = True  # all rows so far have that one

    @classmethod
    def from_sample(
        cls,
        y_true: Any,
        y_prob: Mapping[str, Any],
        *,
        n_samples: int | None = None,
        kernel: KernelLike = "linear_gaussian",
        bandwidth: float | str = "median",
        reduction: ReductionLike = None,
        label_kernel: Any = None,
        sample_weight: Any = None,
        labels: Any = None,
        random_state: int = 0,
        input: str = "probs",
        normalize: bool = False,
        n_threads: int | None = None,
    ) -> GroundAccumulator:
        """An empty state whose landmarks and bandwidth come from a sample of all models.

        The rows of the sample are *not* counted.

        Parameters
        ----------
        y_true, y_prob
            The sample, as in `compare`: a dict of predictions by model. 2000 rows suffice.
        n_samples : int, optional
            Rows that will come; below 2000 there are fewer landmarks. By default many are expected.
        kernel, bandwidth, reduction, label_kernel, sample_weight, labels, random_state, input, \
normalize, n_threads
            As in `common_ground`.

        Returns
        -------
        GroundAccumulator
        """
        check_reduction(reduction, ("top_label",))
        settings = check_settings(
            "ckce",
            kernel=kernel,
            bandwidth=bandwidth,
            reduction=reduction,
            label_kernel=label_kernel,
            random_state=random_state,
            n_threads=n_threads,
        )
        check_ground(settings)
        if n_samples is not None:
            check_count("n_samples", n_samples)
        models = check_models(
            y_true,
            y_prob,
            labels=labels,
            sample_weight=sample_weight,
            input=input,
            normalize=normalize,
            n_threads=settings.n_threads,
        )
        problems = ground_problems(models, settings)
        first = next(iter(problems.values()))
        gamma, value = first.bandwidth, first.bandwidth.value
        assert value is not None
        if gamma.kind != "given":
            gamma = replace(gamma, seed=None, pooled=False, sample=first.samples.n)
        samples = [problem.samples for problem in problems.values()]
        features = ground_map(samples, first.kernel, value, settings.n_threads, n_samples or MANY)
        rows = replace(
            first.samples, labels=first.samples.labels[:0], probs=first.samples.probs[:0]
        )
        problem = replace(first, samples=replace(rows, weights=None), bandwidth=gamma, cache={})
        settings = replace(settings, reduction=first.reduction)
        names = next(iter(models.values())).classes
        return cls(GroundPlan(features, settings, problem, names, input, normalize))

    @property
    def n_samples(self) -> int:
        """Rows so far."""
        return self._rows

    @property
    def bandwidth(self) -> float:
        """That of the kernel; half and a quarter of it balance."""
        assert self._plan.problem.bandwidth.value is not None
        return self._plan.problem.bandwidth.value

    def fresh(self) -> GroundAccumulator:
        """An empty state with the same landmarks, for another model or another part of the data."""
        return GroundAccumulator(self._plan)

    def update(self, y_true: Any, y_prob: Any, sample_weight: Any = None) -> None:
        """Add a batch of rows; a batch without rows changes nothing.

        Parameters
        ----------
        y_true, y_prob, sample_weight
            As in `ckce`. Weights count copies of a row.
        """
        samples = self._plan.check(y_true, y_prob, sample_weight)
        if samples.n:
            self._add(samples)

    def _add(self, samples: Samples) -> None:
        sums = _core.ground_sums(
            samples.probs,
            samples.labels,
            samples.weights,
            self._plan.factor,
            features=self._plan.map.features,
            n_threads=self._plan.settings.n_threads,
            progress=None,
        )
        first = samples.probs[0].astype(np.float64)
        if self._first is None:
            self._first = first
        together = np.stack([self._first, first])
        constant = samples.n == 1 or is_constant(samples.probs)
        self._constant &= constant and is_constant(together)
        self._weighted |= samples.weights is not None
        self._rows += samples.n
        if self._sums is None:
            self._sums = sums
        else:
            self._sums.add(sums)

    def merge(self, other: GroundAccumulator) -> GroundAccumulator:
        """Add the rows of another state of the same model; returns this one.

        Parameters
        ----------
        other : GroundAccumulator
            With the same landmarks; stays as it is.

        Returns
        -------
        GroundAccumulator
            This state.
        """
        self._check_same(other, "merge")
        if other._sums is None or other._first is None:
            return self
        if self._sums is None:
            self._sums, self._first = _copied(other._sums), other._first
        else:
            self._sums.add(other._sums)
        assert self._first is not None
        same = is_constant(np.stack([self._first, other._first]))
        self._constant = self._constant and other._constant and same
        self._rows += other._rows
        self._weighted |= other._weighted
        return self

    def compare(
        self,
        other: GroundAccumulator,
        *,
        names: tuple[str, str] = ("A", "B"),
        level: float = 0.95,
        regularization: float | None = None,
    ) -> CommonGround:
        """Values of two models at equal predictions, and their difference.

        Parameters
        ----------
        other : GroundAccumulator
            The other model, on the same rows and with the same landmarks.
        names : tuple of two str
            Names of the models.
        level : float
            Level that a verdict would have.
        regularization : float, optional
            lambda; by default n^(-1/4).

        Returns
        -------
        CommonGround
            Its verdict is ``"needs the rows"``, unless the values alone say that the models cannot be
            compared; standard errors and p-values are NaN.
        """
        lam = check_regularization(regularization, loo=False)
        solved = self._solved(other, lam)
        nothing = [math.nan] * len(solved.grounds)
        return self._judged(other, check_names(names), check_level(level), lam, solved, nothing)

    def _lambda(self, asked: Any) -> Regularization:
        assert self._sums is not None
        if asked is None:
            return default_regularization(self._sums.weight)
        return Regularization(asked, "given")

    def _solved(self, other: GroundAccumulator, regularization: Any) -> SolvedPair:
        self._check_same(other, "compare")
        for state in (self, other):
            if state._sums is None:
                raise ValueError("a state holds no rows yet; call update first")
        assert self._sums is not None
        assert other._sums is not None
        mine, theirs = (state._rows for state in (self, other))
        if (mine, self._sums.weight) != (theirs, other._sums.weight):
            raise ValueError(
                "states must have the same rows to compare, since these are paired, got "
                f"{mine} rows (weight {self._sums.weight:g}) and {theirs} (weight "
                f"{other._sums.weight:g})"
            )
        plan, lam = self._plan, self._lambda(regularization).value
        return solve_pair(plan.map, (self._sums, other._sums), lam, plan.settings.n_threads)

    def _judged(
        self,
        other: GroundAccumulator,
        names: tuple[str, str],
        level: float,
        regularization: Any,
        solved: SolvedPair,
        errors: list[float],
    ) -> CommonGround:
        assert self._sums is not None
        constant = [
            name
            for name, each in zip(names, (self, other), strict=True)
            if each._constant and each._rows > 1
        ]
        enough = self._plan.map.balanced_by(self._sums.weight)
        pair = Pair(
            names=names,
            ground=solved.ground(errors) if enough else None,
            own=solved.own(errors),
            constant=constant[0] if len(constant) == 1 else None,
            n_samples=self._sums.weight,
            balancing=self._plan.map.balancing,
        )
        lam = self._lambda(regularization)
        words = ground_words(replace(self._plan.problem, regularization=lam), self._plan.map, level)
        words["n"] = str(self._rows)
        if self._weighted:
            words["w"] = f"{self._sums.weight!r}(streamed)"
        return judge([pair], level, str(Signature("common_ground", words)))[0]

    def _check_same(self, other: Any, what: str) -> None:
        if not isinstance(other, GroundAccumulator):
            raise TypeError(f"other must be a GroundAccumulator, got {type(other).__name__}")
        found = self._plan.difference(other._plan)
        if found is not None:
            raise ValueError(
                f"{found} must be the same to {what}; make all states by fresh() of one that "
                "from_sample made"
            )

    def __repr__(self) -> str:
        plan = self._plan
        return (
            f"GroundAccumulator(n_classes={plan.problem.n_classes}, bandwidth={self.bandwidth!r}, "
            f"n_features={plan.map.features.n_features}, n_samples={self._rows})"
        )

    def __getstate__(self) -> dict[str, Any]:
        state, sums = dict(vars(self)), self._sums
        if sums is not None:
            state["_sums"] = (sums.weight, sums.xx, sums.xr, sums.diagonal)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if state["_sums"] is not None:
            weight, xx, xr, diagonal = state["_sums"]
            self._sums = _core.GroundSums(weight=weight, xx=xx, xr=xr, diagonal=diagonal)


def _copied(sums: _core.GroundSums) -> _core.GroundSums:
    return _core.GroundSums(weight=sums.weight, xx=sums.xx, xr=sums.xr, diagonal=sums.diagonal)
