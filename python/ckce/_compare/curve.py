"""What `ckce.shift_curve` returns."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ckce._input import check_choice
from ckce._metrics.score_table import model_columns
from ckce._results import Column, Said, Table, load_pandas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS = {
    "ckce": "CKCE",
    "ckce_debiased": "debiased CKCE",
    "jkce": "JKCE",
    "ece_top_label": "ECE (top label)",
}


@dataclass(frozen=True)
class ShiftPoint:
    """One model on one of the shifted data sets.

    Attributes
    ----------
    model : str
        Name of the model.
    shift : float or str
        Which data set, one of `ShiftCurve.shifts`.
    n_samples : int
        Rows of it.
    accuracy, ece_top_label : float
        Accuracy, and ECE of the top label (L1, uniform bins), which has no interval.
    jkce, jkce_se, jkce_low, jkce_high : float
        Unbiased JKCE, its standard error and interval.
    ckce, ckce_floor : float, float or None
        CKCE, and its mean if the model were calibrated; None with groups.
    ckce_debiased, ckce_se, ckce_low, ckce_high : float
        Debiased CKCE, its standard error and interval.
    bandwidth : float or None
        Bandwidth of the kernel at this shift.
    signature : str
        Names everything that changes the CKCE.
    n_groups : int or None
        Groups of the rows, if there are any: intervals are by group.
    """

    model: str
    shift: float | str
    n_samples: int
    accuracy: float
    ece_top_label: float
    jkce: float
    jkce_se: float
    jkce_low: float
    jkce_high: float
    ckce: float
    ckce_floor: float | None
    ckce_debiased: float
    ckce_se: float
    ckce_low: float
    ckce_high: float
    bandwidth: float | None
    signature: str
    n_groups: int | None = None


@dataclass(frozen=True, repr=False)
class ShiftCurve(Said):
    """CKCE, JKCE and ECE of models over shifted data sets.

    Attributes
    ----------
    names : tuple of str
        The models, as given.
    shifts : tuple
        The data sets, as given.
    points : tuple of ShiftPoint
        Model by model, shift by shift.
    level : float
        Level of all intervals.
    n_classes : int
        Number of classes.
    method, bandwidth_rule : str
        How CKCE and JKCE were computed: ``own``, ``pooled`` or ``given`` bandwidths.
    regularization : float
        lambda, one for all sets.
    smallest : int or None
        Rows of the smallest set, whose n^(-1/4) is the lambda of all; None where the sets have one
        size, or lambda was given.
    """

    names: tuple[str, ...]
    shifts: tuple[float | str, ...]
    points: tuple[ShiftPoint, ...]
    level: float
    n_classes: int
    method: str
    bandwidth_rule: str
    regularization: float
    smallest: int | None

    def values(self, metric: str) -> dict[str, list[float]]:
        """A metric of each model over the shifts.

        One of "ckce", "ckce_debiased", "jkce", "ece_top_label" and "accuracy".
        """
        check_choice("metric", metric, [*METRICS, "accuracy"])
        columns: dict[str, list[float]] = {name: [] for name in self.names}
        for point in self.points:
            columns[point.model].append(getattr(point, metric))
        return columns

    def kept(self, metric: str) -> int:
        """At how many shifts the models are in the order that is most frequent by this metric."""
        columns = self.values(metric)
        orders = [
            tuple(sorted(self.names, key=lambda name: columns[name][k]))
            for k in range(len(self.shifts))
        ]
        return max(orders.count(order) for order in orders)

    def sentence(self, metric: str) -> str:
        """How often a metric keeps the order of the models."""
        columns, count = self.values(metric), self.kept(metric)
        moved = max(
            (max(v) - min(v)) / abs(math.fsum(v) / len(v)) if any(v) else 0.0
            for v in columns.values()
        )
        where = f"all {count}" if count == len(self.shifts) else f"{count} of {len(self.shifts)}"
        return (
            f"{METRICS[metric]} has the models in one order at {where} shifts; the range of a model "
            f"is at most {moved:.0%} of its mean"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Which lambda was taken where sets differ in size, and how each metric orders the models."""
        sentences = tuple(map(self.sentence, METRICS))
        if self.smallest is None:
            return sentences
        sizes = [point.n_samples for point in self.points]
        shared = (
            f"the sets have {min(sizes)} to {max(sizes)} rows: all are measured with the lambda of the "
            f"smallest, {self.regularization:.4g}, because values at different lambdas cannot be compared"
        )
        return (shared, *sentences)

    def _groups(self) -> str:
        counts = sorted({point.n_groups for point in self.points if point.n_groups is not None})
        if not counts:
            return ""
        most = "" if len(counts) == 1 else f" to {counts[-1]}"
        return f", standard errors by {counts[0]}{most} groups"

    def _said(self) -> Table:
        columns = [c for c in model_columns(self.level) if c.keys[0] in ShiftPoint.__annotations__]
        return Table(
            (Column("model", ("model",)), Column("shift", ("shift",)), *columns),
            tuple(map(vars, self.points)),
            heading=(
                f"{len(self.names)} models, {len(self.shifts)} shifts, m = {self.n_classes}, "
                f"{self.method}, {self.bandwidth_rule} bandwidth, lambda {self.regularization:.4g}"
                f"{self._groups()}"
            ),
            notes=self.notes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "names": list(self.names),
            "shifts": list(self.shifts),
            "level": self.level,
            "n_classes": self.n_classes,
            "method": self.method,
            "bandwidth_rule": self.bandwidth_rule,
            "regularization": self.regularization,
            "notes": list(self.notes),
            "points": [dataclasses.asdict(point) for point in self.points],
            "sentences": {metric: self.sentence(metric) for metric in METRICS},
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each model and shift."""
        pandas = load_pandas()
        return pandas.DataFrame([dataclasses.asdict(point) for point in self.points])

    def plot(self, axes: Sequence[Axes] | None = None, *, xlabel: str = "Shift") -> Any:
        """CKCE, JKCE and ECE over the shifts, in three axes; bands are intervals."""
        from ckce._plots.shift import panels

        points = {name: [p for p in self.points if p.model == name] for name in self.names}
        return panels(points, self.shifts, axes, xlabel)
