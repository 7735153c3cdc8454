"""Two models in files, at equal predictions: sums in one pass, standard errors in another one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._compare.common_ground import check_names
from ckce._compare.ground import ground_error
from ckce._compare.ground_stream import GroundAccumulator, GroundPlan
from ckce._compare.verdict import CommonGround
from ckce._input import Samples, check_level, warn, within
from ckce._problem import MEDIAN_ROWS, check_regularization

_CHUNK_BYTES = 2**23  # of the predictions of one model that are looked at together
_BLOCK = 1024  # rows, of which a chunk has whole ones: its bits do not depend on the batches


class Spreads:
    """Standard errors of the differences of a pair, from the influence of rows that come in batches."""

    def __init__(self) -> None:
        self._weight = 0.0
        self._means: list[float] = []
        self._squares: list[float] = []  # sums of squared distances from the mean
        self._spreads: list[_core.GroundSpread] = []

    def add(self, spreads: list[_core.GroundSpread], weights: NDArray[np.float64] | None) -> None:
        """Rows of both models; two means are joined as Chan, Golub and LeVeque do."""
        influences = [spread.influence for spread in spreads]
        w = np.ones(len(influences[0])) if weights is None else weights
        new = float(w.sum())
        if not self._spreads:
            self._spreads = spreads
            self._means, self._squares = [0.0] * len(spreads), [0.0] * len(spreads)
        else:
            for total, spread in zip(self._spreads, spreads, strict=True):
                total.add(spread)
        if new == 0.0:
            return
        total_weight = self._weight + new
        for k, influence in enumerate(influences):
            mean = float(w @ influence) / new
            apart = mean - self._means[k]
            self._squares[k] += float(w @ (influence - mean) ** 2)
            self._squares[k] += apart**2 * self._weight * new / total_weight
            self._means[k] += apart * new / total_weight
        self._weight = total_weight

    def errors(self) -> list[float]:
        """In the order of the spreads."""
        n = self._weight
        return [
            ground_error(math.sqrt(square / (n - 1.0) / n) if n > 1.0 else math.nan, spread, n)
            for square, spread in zip(self._squares, self._spreads, strict=True)
        ]


class Rows(Protocol):
    """Files that can be read any number of times."""

    n_samples: int | None

    def __iter__(self) -> Iterator[tuple[NDArray[Any], ...]]: ...
    def sample(
        self, n_samples: int = ..., *, random_state: int = ...
    ) -> tuple[NDArray[Any], ...]: ...


def compare_scans(
    first: Rows,
    second: Rows,
    *,
    names: tuple[str, str],
    level: float,
    regularization: float | None,
    options: dict[str, Any],
) -> CommonGround:
    """The verdict on two models, by a sample of their rows and two passes over all of them."""
    names, level = check_names(names), check_level(level)
    check_regularization(regularization, loo=False)
    for name in ("sample_weight", "n_samples"):
        if name in options:
            raise TypeError(f"{name} comes from the files, got {name}={options[name]!r}")
    seed = options.get("random_state", 0)
    truths, models, weights = {}, {}, []
    for name, rows in zip(names, (first, second), strict=True):
        truths[name], models[name], *weighted = rows.sample(MEDIAN_ROWS, random_state=seed)
        weights.append(weighted[0] if weighted else None)
    if first.n_samples != second.n_samples:
        raise _not_paired(names, first.n_samples, second.n_samples)
    if not _equal(*weights):
        raise _other_weights()
    expected = first.n_samples
    if expected is not None and weights[0] is not None:
        expected = max(1, round(expected * float(weights[0].mean())))
    empty = GroundAccumulator.from_sample(
        truths, models, sample_weight=weights[0], n_samples=expected, **options
    )
    plan, a, b = empty._plan, empty.fresh(), empty.fresh()
    for rows_a, rows_b in _paired(plan, first, second, names):
        a._add(rows_a)
        b._add(rows_b)
    solved, spreads = a._solved(b, regularization), Spreads()
    for rows_a, rows_b in _paired(plan, first, second, names, again=True):
        found = solved.spreads(plan.map, rows_a, rows_b, plan.factor, plan.settings.n_threads)
        spreads.add(found, rows_a.weights)
    return a._judged(b, names, level, regularization, solved, spreads.errors())


def _not_paired(names: tuple[str, str], first: int | None, second: int | None) -> ValueError:
    return ValueError(
        f"{names[0]} and {names[1]} must have the same rows, since these are paired, got {first} and "
        f"{second}"
    )


def _other_weights() -> ValueError:
    return ValueError("weights must be the same for both models, since rows are paired")


def _paired(
    plan: GroundPlan,
    first: Rows,
    second: Rows,
    names: tuple[str, str],
    *,
    again: bool = False,
) -> Iterator[tuple[Samples, Samples]]:
    """Rows of both models, as many of each. Labels that differ are named, but not `again`."""
    size = _BLOCK * max(1, _CHUNK_BYTES // (8 * plan.problem.n_classes * _BLOCK))
    row, warned = 0, again
    for of_first, of_second in zip(_chunks(first, size), _chunks(second, size), strict=True):
        samples = []
        for name, (labels, probs, *weights) in zip(names, (of_first, of_second), strict=True):
            try:
                samples.append(plan.check(labels, probs, weights[0] if weights else None))
            except (TypeError, ValueError) as error:
                last = row + len(labels) - 1
                raise within(f"model {name!r}, rows {row} to {last}", error) from None
        a, b = samples
        if a.n != b.n:
            raise _not_paired(names, row + a.n, row + b.n)
        if not _equal(a.weights, b.weights):
            raise _other_weights()
        if not warned and not np.array_equal(of_first[0], of_second[0]):
            warned = True
            warn(
                "the files hold different labels; rows are compared one by one, so row i must be the "
                "same case in both"
            )
        row += a.n
        yield a, b


def _equal(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


def _chunks(batches: Rows, size: int) -> Iterator[tuple[NDArray[Any], ...]]:
    """The same rows, `size` at a time; the last time, what is left."""
    held: list[Any] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += len(batch[0])
        while rows >= size:
            whole = tuple(np.concatenate(arrays) for arrays in zip(*held, strict=True))
            yield tuple(array[:size] for array in whole)
            held, rows = [tuple(array[size:] for array in whole)], rows - size
    if rows:
        yield tuple(np.concatenate(arrays) for arrays in zip(*held, strict=True))
