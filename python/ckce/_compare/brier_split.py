"""The difference of two Brier scores: how much of it is calibration, how much is refinement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from ckce._input import Samples
from ckce._metrics.miscalibration import Miscalibration
from ckce._results import form_of, interval, number, percent, standard_error


@dataclass(frozen=True)
class BrierSplit:
    """Brier score of one model minus that of another, in two parts.

    Attributes
    ----------
    first, second : str
        The models.
    brier : float
        Difference of the Brier scores (with a reduction, of the reduced problem), above 0 if the
        first is worse.
    calibration : float
        Difference of `miscalibration`: the part that recalibration of both would take away.
    calibration_se, calibration_low, calibration_high : float
        Its paired standard error and interval.
    refinement : float
        The rest: what the predictions of one model separate better.
    level : float
        Level of the interval.
    sentence : str
        The split in words.
    """

    first: str
    second: str
    brier: float
    calibration: float
    calibration_se: float
    calibration_low: float
    calibration_high: float
    refinement: float
    level: float
    sentence: str


def split_brier(
    briers: Mapping[str, float],
    found: Mapping[str, Miscalibration | None],
    samples: Samples,
    level: float,
) -> Iterator[BrierSplit]:
    """All pairs, in the order of the names; rows are paired."""
    for a, b in combinations(briers, 2):
        first, second = found[a], found[b]
        if first is None or second is None:
            continue
        brier, calibration = briers[a] - briers[b], first.value - second.value
        influence = first.influence - second.influence
        se = standard_error(influence, samples.weights, samples.groups)
        low, high = interval(calibration, se, level, samples.n_groups)
        form = form_of([brier, calibration, low, high])
        said = [number(each, form) for each in (brier, calibration, low, high, brier - calibration)]
        yield BrierSplit(
            first=a,
            second=b,
            brier=brier,
            calibration=calibration,
            calibration_se=se,
            calibration_low=low,
            calibration_high=high,
            refinement=brier - calibration,
            level=level,
            sentence=f"Brier score of {a} minus that of {b}: {said[0]} = calibration {said[1]} "
            f"({percent(level)}: {said[2]} to {said[3]}) + refinement {said[4]}.",
        )
