"""What a model's numbers mean, and what to do next."""

import math
from typing import Protocol

from ckce._results.interval import FEW_ROWS
from ckce._results.table import number


class Gap(Protocol):
    """A model whose confidence is compared with its accuracy."""

    @property
    def accuracy(self) -> float: ...
    @property
    def mean_confidence(self) -> float: ...


class Model(Gap, Protocol):
    """What a verdict needs to know of a model."""

    @property
    def name(self) -> str: ...
    @property
    def ckce_low(self) -> float: ...
    @property
    def p_value(self) -> float | None: ...
    @property
    def constant(self) -> bool: ...


def _leans(model: Model, n_samples: float) -> bool:
    """Whether confidence minus accuracy is above two standard errors, those of the accuracy."""
    chance = 2.0 * math.sqrt(model.accuracy * (1.0 - model.accuracy) / n_samples)
    return abs(model.mean_confidence - model.accuracy) > max(chance, 5e-4)


def gap_of(model: Gap) -> str:
    """``overconfident by 0.1560``; a difference that is rounding is right on average."""
    gap = model.mean_confidence - model.accuracy
    if abs(gap) <= 1e-12:
        return "confidence is right on average"
    return f"{'over' if gap > 0 else 'under'}confident by {number(abs(gap))}"


def lean(model: Model, n_samples: float) -> str:
    """``overconfident by 15.6 points``; what may be chance is right on average."""
    gap = model.mean_confidence - model.accuracy
    if not _leans(model, n_samples):
        return "confidence is right on average"
    return f"{'over' if gap > 0 else 'under'}confident by {100 * abs(gap):.1f} points"


def verdict(model: Model, n_samples: int, level: float) -> str:
    """Whether a model is calibrated, in a sentence."""
    if n_samples < FEW_ROWS:
        return f"Too few rows to tell whether {model.name} is calibrated"
    if model.ckce_low > 0.0:
        how = f", and {lean(model, n_samples)}" if _leans(model, n_samples) else ""
        return f"{model.name} is miscalibrated{how}"
    if _rejected(model, level):
        # The test is exact, and the interval is cautious near calibration.
        return (
            f"The test finds {model.name} miscalibrated (p = {model.p_value:.2g}), though its "
            "interval reaches 0"
        )
    return f"There is no sign that {model.name} is miscalibrated"


def _rejected(model: Model, level: float) -> bool:
    return model.p_value is not None and model.p_value < 1 - level


def advice(model: Model, n_samples: int, level: float) -> str:
    """What to do next."""
    if n_samples < FEW_ROWS:
        return f"too few rows to tell: collect at least {FEW_ROWS}, better 1000"
    if model.constant:
        return "always predicts the same: a baseline to beat, whatever its calibration"
    if not model.ckce_low > 0.0 and not _rejected(model, level):
        return "no sign of miscalibration: nothing to do; more rows would tell more"
    how = lean(model, n_samples)
    if _leans(model, n_samples):
        return (
            f"{how}: try temperature scaling, or Platt scaling for two classes, fitted on data kept "
            "apart"
        )
    return (
        f"{how}, yet it is miscalibrated: look where, by class and by confidence; one "
        "temperature will not mend it, isotonic regression for each class may"
    )
