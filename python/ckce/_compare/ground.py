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
from ckce._results import standard_error

POOL = 3000  # distinct predictions of all models together, among which landmarks are sought
LARGEST_RANK = 100
ROWS_PER_LANDMARK = 20
ROWS_PER_COLUMN = 5  # at least, of the columns that balance
EPS = 0.1  # eps = EPS / n
_BLOCK = 1024  # rows that are looked at together
_TRACE_LEFT = 1e-7  # of the kernel's trace, where landmarks stop


@dataclass(frozen=True)
class GroundMap:
    """Features that all models of a comparison share."""

    features: _core.Features
    norm: int  # columns of phi, which carry the norm
    half: int  # columns of landmarks at half the bandwidth, which follow
    columns: int  # all but the landmarks at a quarter of the bandwidth, which come last
    phi: _core.Features  # these columns alone
    points: tuple[NDArray[np.float64], ...]  # landmarks of the kernel, at half and at a quarter

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
    groups: Sequence[Samples], kernel: Kernel, bandwidth: float, n_threads: int
) -> GroundMap:
    """Landmarks out of the predictions of all models; neither their order nor that of rows matters."""
    pool = pool_of([samples.probs for samples in groups], POOL)
    weight, m = groups[0].weight, groups[0].m
    rank = min(LARGEST_RANK, max(10, int(weight) // ROWS_PER_LANDMARK), len(pool))

    greedy: dict[str, Any] = {"pivoting": _core.Pivoting.greedy, "seed": 0, "tol": _TRACE_LEFT}
    points, maps = [], []
    halves = [_core.Kernel("gaussian", bandwidth / part) for part in (2, 4)]
    for core in (kernel.core(bandwidth), *halves):
        points.append(choose_points(pool, core, count=rank, n_threads=n_threads, **greedy))
        factor = np.asfortranarray(Landmarks(points[-1]).factor(core, n_threads))
        maps.append(_core.landmark_features(points[-1], factor, kernel=core))
    phi, half, quarter = maps
    features = _core.joined_features([phi, half, _core.power_features(m), quarter])
    columns = features.n_features - quarter.n_features
    return GroundMap(features, phi.n_features, half.n_features, columns, phi, tuple(points))


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

    @property
    def has_rows(self) -> bool:
        """Whether there are enough rows to balance."""
        return ROWS_PER_COLUMN * self.map.balancing <= self.weight

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

    def own(self, name: str) -> _core.Solution:
        """CKCE of one model with the features that carry the norm."""
        samples = self.models[name]
        return _core.ckce_features(
            samples.probs,
            samples.labels,
            samples.weights,
            self._factor,
            groups=samples.groups,
            features=self.map.phi,
            ridge=self.regularization * samples.weight,
            precision=_core.Precision.float64,
            full=True,
            n_threads=self._threads,
            progress=None,
        )

    def pair(self, names: tuple[str, str]) -> PairGround:
        """The three runs of a pair. Exchanging the names changes signs, and no bit else."""
        a, b = self._ordered(names)
        sign = 1.0 if (a, b) == names else -1.0
        runs = self._solve(a, b, self.map.balances(self.regularization, self.weight))
        values = (runs[0].value_a, runs[0].value_b)
        captured = [self.map.captured(self.sums(name)) for name in (a, b)]
        return PairGround(
            values=values if (a, b) == names else values[::-1],
            differences=tuple(sign * (run.value_a - run.value_b) for run in runs),
            errors=tuple(self._error(spread) for spread in self._spreads(a, b, runs)),
            share=runs[0].share,
            resolution=sum(captured) / 2.0,
        )

    def difference(self, names: tuple[str, str], regularization: float) -> float:
        """Of the base run, at another lambda; without a second pass over the rows."""
        a, b = self._ordered(names)
        (run,) = self._solve(a, b, self.map.balances(regularization, self.weight)[:1])
        return (1.0 if (a, b) == names else -1.0) * (run.value_a - run.value_b)

    def _ordered(self, names: tuple[str, str]) -> tuple[str, str]:
        first, second = names
        in_order = _in_order(self.models[first], self.models[second])
        return names if in_order else (second, first)

    def _solve(self, a: str, b: str, balances: list[_core.Balance]) -> list[_core.Ground]:
        return _core.common_ground(
            sums_a=self.sums(a),
            sums_b=self.sums(b),
            balances=balances,
            n_threads=self._threads,
        )

    def _spreads(self, a: str, b: str, runs: list[_core.Ground]) -> list[_core.GroundSpread]:
        first, second = self.models[a], self.models[b]
        return _core.ground_spread(
            first.probs,
            first.labels,
            second.probs,
            second.labels,
            first.weights,
            self._factor,
            groups=first.groups,
            features=self.map.features,
            grounds=runs,
            n_threads=self._threads,
            progress=None,
        )

    def _error(self, spread: _core.GroundSpread) -> float:
        """Standard error of a difference: sqrt(se(psi)^2 + 4 mu^2).

        se(psi) takes F to be known. Where one direction carries all of the noise, as at a constant
        prediction, F may be near 0 by chance, and se(psi) with it. So F is taken to be one standard
        deviation off in its noisiest direction: 4 mu^2 is the variance that this adds.
        """
        weights, influence = self.first.weights, spread.influence
        mean = float(np.average(influence, weights=weights))
        se = standard_error(influence - mean, weights, self.first.groups)
        return math.hypot(se, 2.0 * spread.largest(self.weight))


def _in_order(a: Samples, b: Samples) -> bool:
    """An order of two models by what they predict, else by their labels."""
    for first, second in ((a.probs, b.probs), (a.labels, b.labels)):
        for start in range(0, len(first), _BLOCK):
            mine, theirs = first[start : start + _BLOCK], second[start : start + _BLOCK]
            differs = mine != theirs
            if differs.any():
                return bool(mine[differs][0] < theirs[differs][0])
    return True
