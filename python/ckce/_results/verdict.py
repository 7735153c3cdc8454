"""What a model's numbers mean, and what to do next."""

from typing import Protocol

from ckce._results.interval import FEW_ROWS

#: A difference of confidence and accuracy that is worth a word.
GAP = 0.01


class Model(Protocol):
    """What a verdict needs to know of a model."""

    @property
    def name(self) -> str: ...
    @property
    def accuracy(self) -> float: ...
    @property
    def mean_confidence(self) -> float: ...
    @property
    def ckce_low(self) -> float: ...
    @property
    def p_value(self) -> float | None: ...
    @property
    def constant(self) -> bool: ...


def lean(model: Model) -> str:
    """``overconfident by 15.6 points``; nothing to speak of is right on average."""
    gap = model.mean_confidence - model.accuracy
    if abs(gap) < GAP:
        return "confidence is right on average"
    return f"{'over' if gap > 0 else 'under'}confident by {100 * abs(gap):.1f} points"


def verdict(model: Model, n_samples: int, level: float) -> str:
    """Whether a model is calibrated, in a sentence."""
    if n_samples < FEW_ROWS:
        return f"Too few rows to tell whether {model.name} is calibrated"
    if model.ckce_low > 0.0:
        gap = abs(model.mean_confidence - model.accuracy)
        return f"{model.name} is miscalibrated" + (f", and {lean(model)}" if gap >= GAP else "")
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
    if abs(model.mean_confidence - model.accuracy) >= GAP:
        return f"{lean(model)}: try temperature scaling, fitted on data kept apart"
    return (
        f"{lean(model)}, yet it is miscalibrated: look where, by class and by confidence; one "
        "temperature will not mend it, isotonic regression for each class may"
    )
