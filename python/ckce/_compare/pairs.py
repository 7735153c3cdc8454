"""Paired differences of debiased CKCE."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ckce._compare.comparison import ComparedPair
from ckce._results import form_of, interval, number, p_value, percent, standard_error

if TYPE_CHECKING:
    from ckce._compare.compare import Evaluated


def compare_pairs(ranked: Sequence[Evaluated], level: float) -> tuple[ComparedPair, ...]:
    """All pairs, in the order of the ranking."""
    pairs = []
    for position, a in enumerate(ranked):
        for b in ranked[position + 1 :]:
            difference = b.estimate.debiased - a.estimate.debiased
            influence = b.estimate.influence - a.estimate.influence
            samples = a.problem.samples
            se = standard_error(influence, samples.weights, samples.groups)
            low, high = interval(difference, se, level, samples.n_groups)
            pairs.append(
                ComparedPair(
                    better=a.record.name,
                    worse=b.record.name,
                    difference=difference,
                    se=se,
                    low=low,
                    high=high,
                    p_value=p_value(difference, se, samples.n_groups),
                    p_holm=math.nan,
                    error=_pair_error(a, b),
                    significant=False,
                    sentence="",
                )
            )
    finished = []
    for pair, p_holm in zip(pairs, holm([pair.p_value for pair in pairs]), strict=True):
        pair = replace(pair, p_holm=p_holm, significant=p_holm < 1 - level)
        finished.append(replace(pair, sentence=_sentence(pair, level, len(pairs))))
    return tuple(finished)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment; the order is kept."""
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    order = sorted(range(len(p_values)), key=lambda k: p_values[k])
    for rank, k in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[k]))
        adjusted[k] = largest
    return adjusted


def _pair_error(a: Evaluated, b: Evaluated) -> float:
    if a.halves is not None and b.halves is not None:
        first, second = (y - x for x, y in zip(a.halves, b.halves, strict=True))
        return abs(first - second) / 2.0
    if a.record.ckce_error is None or b.record.ckce_error is None:
        return math.nan
    return a.record.ckce_error + b.record.ckce_error


def _sentence(pair: ComparedPair, level: float, n_pairs: int) -> str:
    form = form_of([pair.difference])
    numbers = (
        f"difference {number(pair.difference, form)}, {percent(level)} interval "
        f"{number(pair.low, form)} to {number(pair.high, form)}"
    )
    if pair.significant:
        return f"{pair.better} is better calibrated than {pair.worse} ({numbers})"
    # One interval may exclude 0 where the adjustment for all pairs does not let it count.
    alone = pair.p_value < 1 - level
    holm_note = f"; p {pair.p_holm:.2g} after adjustment for {n_pairs} pairs" if alone else ""
    return (
        f"no significant difference between {pair.better} and {pair.worse} ({numbers}{holm_note})"
    )
