"""The common ground of models: shared features, sums of each model, and what a pair gives.

Formulas: cpp/core/metrics/common_ground.hpp. The features are [phi | b]: phi are landmarks of the
kernel and carry the norm; b only balances: landmarks of Gaussian kernels at half (and, to see whether
it matters, a quarter of) the bandwidth, and powers of the probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import Kernel, Samples
from ckce._methods import Landmarks, choose_points, pool_of
from ckce._problem import Bandwidth, Problem
from ckce._results import apart, standard_error

POOL = 3000  # distinct predictions of all models together, among which landmarks are sought
LARGEST_RANK = 100
ROWS_PER_LANDMARK = 20
ROWS_PER_COLUMN = 5  # at least, of the columns that balance
EPS = 0.1  # eps = EPS / n
_TRACE_LEFT = 1e-7  # of the kernel's trace, where landmarks stop


@dataclass(frozen=True)
class GroundMap:
    """Features that all models of a comparison share."""

    features: _core.Features
    norm: int  # columns of phi, which carry the norm
    half: int  # columns of landmarks at half the bandwidth, which follow
    columns: int  # all but the landmarks at a quarter of the bandwidth, which come last
    points: tuple[NDArray[np.float64], ...]  # landmarks of the kernel, at half and at a quarter

    def balanced_by(self, weight: float) -> bool:
        """Whether so many rows are enough to balance all functions."""
        return weight >= ROWS_PER_COLUMN * self.balancing

    @property
    def balancing(self) -> int:
        """Columns that only balance."""
        return self.columns - self.norm

    def balances(self, regularization: float, weight: float) -> list[_core.Balance]:
        """The three runs."""
        every = self.features.n_features
        return [
            _core.Balance(
                columns=columns, norm=self.norm, regularization=regularization, eps=eps / weight
            )
            for columns, eps in ((self.columns, EPS), (every, EPS), (self.columns, 10 * EPS))
        ]

    def captured(self, sums: _core.GroundSums) -> float:
        """Share of the trace of the half-bandwidth kernel, which is 1 for every row."""
        diagonal = np.diag(sums.xx)[self.norm : self.norm + self.half]
        return float(diagonal.sum()) / sums.weight

    @property
    def word(self) -> str:
        """Its part of a signature."""
        quarter = self.features.n_features - self.columns
        return f"landmarks({self.norm}+{self.half}+{quarter}),eps:{EPS}/n"


@dataclass(frozen=True)
class PairGround:
    """What the three runs give: base, landmarks at a quarter of the bandwidth added, 10 eps."""

    values: tuple[float, float]  # of the base run
    differences: tuple[float, ...]
    errors: tuple[float, ...]  # standard errors of the differences
    share: float
    resolution: float

    @property
    def z(self) -> tuple[float, ...]:
        if math.isnan(self.share):
            return (math.nan,) * len(self.differences)
        return tuple(
            0.0 if d == 0.0 else d / se if se != 0.0 else math.copysign(math.inf, d)
            for d, se in zip(self.differences, self.errors, strict=True)
        )


def ground_map(
    groups: Sequence[Samples],
    kernel: Kernel,
    bandwidth: float,
    n_threads: int,
    weight: float | None = None,
) -> GroundMap:
    """Landmarks out of the predictions of all models; neither their order nor that of rows matters.

    Their number is that for a `weight` of rows; by default, of the rows that are given.
    """
    pool = pool_of([samples.probs for samples in groups], POOL)
    weight = groups[0].weight if weight is None else weight
    rank = min(LARGEST_RANK, max(10, int(weight) // ROWS_PER_LANDMARK), len(pool))
    greedy: dict[str, Any] = {"pivoting": _core.Pivoting.greedy, "seed": 0, "tol": _TRACE_LEFT}
    points = tuple(
        choose_points(pool, core, count=rank, n_threads=n_threads, **greedy)
        for core in _kernels(kernel, bandwidth)
    )
    return map_of(points, kernel, bandwidth, n_threads)


def map_of(
    points: tuple[NDArray[np.float64], ...], kernel: Kernel, bandwidth: float, n_threads: int
) -> GroundMap:
    """The features of given landmarks."""
    maps = []
    for mine, core in zip(points, _kernels(kernel, bandwidth), strict=True):
        factor = np.asfortranarray(Landmarks(mine).factor(core, n_threads))
        maps.append(_core.landmark_features(mine, factor, kernel=core))
    phi, half, quarter = maps
    powers = _core.power_features(points[0].shape[1])
    features = _core.joined_features([phi, half, powers, quarter])
    columns = features.n_features - quarter.n_features
    return GroundMap(features, phi.n_features, half.n_features, columns, points)


def _kernels(kernel: Kernel, bandwidth: float) -> tuple[_core.Kernel, ...]:
    """That of the norm, and those that balance: at half and at a quarter of the bandwidth."""
    halves = (_core.Kernel("gaussian", bandwidth / part) for part in (2, 4))
    return kernel.core(bandwidth), *halves


@dataclass(frozen=True)
class SolvedPair:
    """Two models by their sums, before their rows are looked at again."""

    grounds: list[_core.Ground]  # own CKCE, then the three runs
    sign: float  # -1 if the models were exchanged, so that their order never changes a bit
    resolution: float

    @property
    def differences(self) -> tuple[float, ...]:
        """First minus second, of own CKCE and of the runs."""
        return tuple(self.sign * apart(each.value_a, each.value_b) for each in self.grounds)

    def own(self, errors: Sequence[float]) -> tuple[float, float]:
        """Difference of own CKCE, and its standard error."""
        return self.differences[0], errors[0]

    def ground(self, errors: Sequence[float]) -> PairGround:
        """The three runs with their standard errors."""
        base = self.grounds[1]
        values = (base.value_a, base.value_b)
        return PairGround(
            values=values if self.sign > 0.0 else values[::-1],
            differences=self.differences[1:],
            errors=tuple(errors[1:]),
            share=base.share,
            resolution=self.resolution,
        )

    def spreads(
        self,
        ground_map: GroundMap,
        first: Samples,
        second: Samples,
        factor: NDArray[np.float64] | None,
        n_threads: int,
    ) -> list[_core.GroundSpread]:
        """What rows of both models tell."""
        a, b = (first, second) if self.sign > 0.0 else (second, first)
        return _core.ground_spread(
            a.probs,
            a.labels,
            b.probs,
            b.labels,
            a.weights,
            factor,
            groups=a.groups,
            features=ground_map.features,
            grounds=self.grounds,
            n_threads=n_threads,
            progress=None,
        )


def solve_pair(
    ground_map: GroundMap,
    sums: tuple[_core.GroundSums, _core.GroundSums],
    regularization: float,
    n_threads: int,
) -> SolvedPair:
    """Two models by their sums. Exchanging them changes signs, and no bit else."""
    in_order = _in_order(*sums)
    a, b = sums if in_order else sums[::-1]
    both: dict[str, Any] = {"sums_a": a, "sums_b": b, "n_threads": n_threads}
    own = _core.own_ground(**both, norm=ground_map.norm, regularization=regularization)
    balances = ground_map.balances(regularization, a.weight)
    grounds = [own, *_core.common_ground(**both, balances=balances)]
    resolution = (ground_map.captured(a) + ground_map.captured(b)) / 2.0
    return SolvedPair(grounds, 1.0 if in_order else -1.0, resolution)


def ground_error(se: float, spread: _core.GroundSpread, weight: float) -> float:
    """Standard error of a difference: sqrt(se^2 + 4 mu^2), se that by influence.

    se takes F to be known. Where one direction carries all of the noise, as at a constant
    prediction, F may be near 0 by chance, and se with it. So F is taken to be one standard
    deviation off in its noisiest direction: 4 mu^2 is the variance that this adds.
    """
    return math.hypot(se, 2.0 * spread.largest(weight))


class Grounds:
    """The common ground of several models, whose problems share their settings."""

    def __init__(self, problems: Mapping[str, Problem]) -> None:
        self._problems = problems
        self.models = {name: problem.samples for name, problem in problems.items()}
        first = next(iter(problems.values()))
        self.first = first.samples
        self.weight, self.regularization = first.samples.weight, first.regularization.value
        self._factor = None if first.label_kernel is None else first.label_kernel.factor
        self._threads = first.n_threads
        assert first.bandwidth.value is not None
        self.bandwidth = first.bandwidth.value
        self._sums: dict[str, _core.GroundSums] = {}

    def __reduce__(self) -> Any:
        return Grounds, (self._problems,)  # what is computed is no part of a pickle

    def at(self, bandwidth: float) -> Grounds:
        """The same models with another bandwidth."""
        if bandwidth == self.bandwidth:
            return self
        gamma = Bandwidth(bandwidth, "given")
        problems = self._problems.items()
        return Grounds({name: replace(each, bandwidth=gamma) for name, each in problems})

    @cached_property
    def map(self) -> GroundMap:
        """The features; made once."""
        models, kernel = list(self.models.values()), next(iter(self._problems.values())).kernel
        return ground_map(models, kernel, self.bandwidth, self._threads)

    def sums(self, name: str) -> _core.GroundSums:
        """C, S and the debias matrix of one model, before they are divided by n; made once."""
        if name not in self._sums:
            samples = self.models[name]
            self._sums[name] = _core.ground_sums(
                samples.probs,
                samples.labels,
                samples.weights,
                self._factor,
                groups=samples.groups,
                features=self.map.features,
                n_threads=self._threads,
                progress=None,
            )
        return self._sums[name]

    def pair(self, names: tuple[str, str]) -> tuple[PairGround, tuple[float, float]]:
        """The three runs of a pair, and difference and error of own CKCE."""
        first, second = (self.models[name] for name in names)
        sums = self.sums(names[0]), self.sums(names[1])
        solved = solve_pair(self.map, sums, self.regularization, self._threads)
        spreads = solved.spreads(self.map, first, second, self._factor, self._threads)
        errors = [self._error(spread) for spread in spreads]
        return solved.ground(errors), solved.own(errors)

    def difference(self, names: tuple[str, str], regularization: float) -> float:
        """Of the base run, at another lambda; without a second pass over the rows."""
        sums = self.sums(names[0]), self.sums(names[1])
        in_order = _in_order(*sums)
        a, b = sums if in_order else sums[::-1]
        base = self.map.balances(regularization, self.weight)[:1]
        (run,) = _core.common_ground(sums_a=a, sums_b=b, balances=base, n_threads=self._threads)
        return (1.0 if in_order else -1.0) * (run.value_a - run.value_b)

    def _error(self, spread: _core.GroundSpread) -> float:
        weights, influence = self.first.weights, spread.influence
        mean = float(np.average(influence, weights=weights))
        se = standard_error(influence - mean, weights, self.first.groups)
        return ground_error(se, spread, self.weight)


def _in_order(a: _core.GroundSums, b: _core.GroundSums) -> bool:
    """An order of two models by what they predict, else by their residuals."""
    for first, second in ((a.xx, b.xx), (a.xr, b.xr)):
        differs = first != second
        if differs.any():
            return bool(first[differs][0] < second[differs][0])
    return True
