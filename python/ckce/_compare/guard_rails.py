"""Reasons to be careful with a comparison; docs/comparing.md has a paragraph on each."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ckce._compare.comparison import ComparedModel, GuardRail
from ckce._compare.verdict import CommonGround
from ckce._results import number

#: Largest share of a difference (or of its standard error) that the method may have added.
ERROR_LIMIT = 0.1
#: Rows below which debiased values were found to be too small by a tenth and more.
ROWS_LIMIT = 100
#: Largest ratio of the shared bandwidth to a model's own median distance, or the other way round.
BANDWIDTH_LIMIT = 5.0
#: Largest difference of predictions that count as equal.
_EQUAL = 1e-6
_BLOCK = 1024  # rows that are looked at together


def guard_rails(
    models: Sequence[ComparedModel],
    pairs: Sequence[CommonGround],
    n_samples: int,
    bandwidth: float | None,
    own: Mapping[str, float],
) -> tuple[GuardRail, ...]:
    """What speaks against reading too much into a comparison; `own` are the models' medians."""
    rails = [
        *_constant([model.name for model in models if model.constant]),
        *_bandwidths(bandwidth, own),
        *_rank_disagreement(models, pairs),
        *_contrary(models, pairs),
        *_below_floor(models),
        *_approximation(pairs),
    ]
    if n_samples < ROWS_LIMIT:
        rails.append(
            GuardRail(
                "few_rows",
                float(n_samples),
                float(ROWS_LIMIT),
                f"n = {n_samples} is below {ROWS_LIMIT}: debiased values of so few rows are too "
                "small, and intervals were not studied below 50",
            )
        )
    return tuple(rails)


def is_constant(probs: NDArray[np.floating]) -> bool:
    """Whether a model predicts the same for every row; most are found out by the first rows."""
    return len(probs) > 1 and all(
        np.abs(probs[start : start + _BLOCK] - probs[0]).max() <= _EQUAL
        for start in range(0, len(probs), _BLOCK)
    )


def _constant(names: Sequence[str]) -> list[GuardRail]:
    """Models that predict the same for every case."""
    if not names:
        return []
    verb = "predicts" if len(names) == 1 else "predict"
    text = (
        f"{', '.join(names)} always {verb} the same: such a model is calibrated if it predicts the "
        "class frequencies, but says nothing about single cases; read accuracy and log loss beside "
        "its rank"
    )
    return [GuardRail("constant", float(len(names)), 0.0, text)]


def _bandwidths(bandwidth: float | None, own: Mapping[str, float]) -> list[GuardRail]:
    """Models whose predictions live on another scale than the pooled bandwidth."""
    if bandwidth is None or not own:
        return []
    ratios = {name: bandwidth / gamma for name, gamma in own.items()}
    name, ratio = max(ratios.items(), key=lambda item: abs(math.log(item[1])))
    if 1.0 / BANDWIDTH_LIMIT <= ratio <= BANDWIDTH_LIMIT:
        return []
    size = f"{ratio:.3g} times" if ratio > 1 else f"1/{1 / ratio:.3g} of"
    text = (
        f"the bandwidth that all models share, {bandwidth:.3g}, is {size} the median distance of "
        f"{name}, {own[name]:.3g}: its miscalibration is seen at a scale that does not fit; compare "
        "models whose predictions are spread alike, or give the bandwidth"
    )
    return [GuardRail("bandwidth", ratio, BANDWIDTH_LIMIT, text)]


def _rank_disagreement(
    models: Sequence[ComparedModel], pairs: Sequence[CommonGround]
) -> list[GuardRail]:
    """Pairs that raw CKCE or JKCE would rank the other way round."""
    by_name = {model.name: model for model in models}
    turned = {"raw CKCE": 0, "JKCE": 0}
    examples: list[str] = []
    for pair in pairs:
        a, b = by_name[pair.first], by_name[pair.second]
        others = [("raw CKCE", a.ckce, b.ckce), ("JKCE", a.jkce, b.jkce)]
        for measure, of_better, of_worse in others:
            if of_better > of_worse:
                turned[measure] += 1
                if len(examples) < 3:
                    examples.append(f"{measure} puts {b.name} before {a.name}")
    count = sum(turned.values())
    if not count:
        return []
    parts = [
        f"{measure} orders {n} of {len(pairs)} pairs otherwise"
        for measure, n in turned.items()
        if n
    ]
    text = " and ".join(parts) + f" than debiased CKCE: {'; '.join(examples)}"
    return [
        GuardRail("rank_disagreement", float(count), 0.0, text + (", ..." if count > 3 else ""))
    ]


def _contrary(models: Sequence[ComparedModel], pairs: Sequence[CommonGround]) -> list[GuardRail]:
    """Verdicts at equal predictions whose better model is more off where it predicts by itself."""
    by_name = {model.name: model for model in models}
    found = []
    for pair in pairs:
        if pair.better is None or pair.worse is None:
            continue
        better, worse = by_name[pair.better], by_name[pair.worse]
        if better.miscalibration is None or worse.miscalibration is None:
            continue
        if better.miscalibration > worse.miscalibration:
            found.append((better, worse, pair.share))
    if not found:
        return []
    better, worse, share = min(found, key=lambda each: each[2])
    more = f" (and {len(found) - 1} other pairs)" if len(found) > 1 else ""
    text = (
        f"{better.name} is better calibrated than {worse.name} at equal predictions, which are "
        f"{100 * share:.0f} % of their variety, but over all of its own predictions it is off by more: "
        f"miscalibration {number(better.miscalibration)} against {number(worse.miscalibration)}{more}"
    )
    return [GuardRail("contrary", float(len(found)), 0.0, text)]


def _below_floor(models: Sequence[ComparedModel]) -> list[GuardRail]:
    below = {
        model.name: model.ckce / model.ckce_floor
        for model in models
        if model.ckce_floor is not None and model.ckce < model.ckce_floor and not model.constant
    }
    if not below:
        return []
    lowest = min(below.values())
    text = (
        f"raw CKCE is below the floor of a calibrated model for {', '.join(below)} (as low as "
        f"{lowest:.2f} of it): read the debiased values there"
    )
    return [GuardRail("below_floor", lowest, 1.0, text)]


def _approximation(pairs: Sequence[CommonGround]) -> list[GuardRail]:
    def share(pair: CommonGround) -> float:
        scale = max(abs(pair.own_difference), pair.own_se)
        return pair.own_error / scale if scale > 0.0 else 0.0

    finite = [pair for pair in pairs if not math.isnan(share(pair))]
    worst = max(finite, key=share, default=None)
    if worst is None or share(worst) <= ERROR_LIMIT:
        return []
    count = sum(share(pair) > ERROR_LIMIT for pair in finite)
    text = (
        f"the error of the method may reach {worst.own_error:.2g} for {worst.first} and "
        f"{worst.second}, whose values of debiased CKCE differ by {abs(worst.own_difference):.2g} "
        f"({count} of {len(pairs)} pairs have more than "
        f"{ERROR_LIMIT:.0%} of theirs); use more frequencies, a higher rank or method='exact'"
    )
    return [GuardRail("approximation", share(worst), ERROR_LIMIT, text)]
