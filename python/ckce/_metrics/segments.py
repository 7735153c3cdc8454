"""CKCE of segments of the rows, such as regions or tasks, with intervals that hold for all at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ckce._input import (
    LEAST_GROUPS,
    InputError,
    Partition,
    Samples,
    check_kernel,
    digest,
    listed,
    warn,
)
from ckce._metrics.estimate import ckce_fields, estimate_of
from ckce._metrics.miscalibration import miscalibration_beside, miscalibration_fields
from ckce._metrics.score_table import Scores, score_columns, score_values
from ckce._metrics.scores import scores_of
from ckce._problem import Problem, median_of
from ckce._results import FEW_ROWS, Column, Table, finite, load_pandas, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 40  # rows of a printed table; frames and dicts have all
_NAMED = 8  # segments in a sentence
_CHANCE = 20  # rows below which a single label may be chance


@dataclass(frozen=True)
class _Place:
    """Which rows a segment has."""

    name: str
    attribute: str
    value: str
    model: str | None
    n_samples: int
    share: float


@dataclass(frozen=True)
class Segment(Scores, _Place):
    """One segment of the rows, and one model there.

    Attributes
    ----------
    name : str
        Its name in tables and pictures.
    attribute, value : str
        The attribute that divides the rows (empty for an array without a name), and its value here.
    model : str or None
        The model, where there are several.
    n_samples : int
        Its rows (rows of weight zero are not counted).
    share : float
        Its part of the total weight.
    accuracy, mean_confidence, log_loss, brier : float
        As in `evaluate`; a confidence above the accuracy is overconfidence.
    ckce, ckce_floor, ckce_debiased, ckce_se : float
        As in `compare`; the floor is None with groups.
    ckce_low, ckce_high : float
        Ends of an interval that is adjusted for the number of segments.
    miscalibration, miscalibration_low, miscalibration_high : float or None
        `ckce.miscalibration` of the segment, in units of the Brier score, and its interval, adjusted in
        the same way; None with ``reduction="class_wise"``.
    """

    ckce: float
    ckce_floor: float | None
    ckce_debiased: float
    ckce_se: float
    ckce_low: float
    ckce_high: float
    miscalibration: float | None
    miscalibration_low: float | None
    miscalibration_high: float | None

    @property
    def shown(self) -> bool:
        """Whether miscalibration is shown here: the interval lies above 0."""
        return self.ckce_low > 0.0


@dataclass(frozen=True)
class Segments:
    """Segments of the rows; what ``by=`` adds to `evaluate`, `compare` and `report`.

    Attributes
    ----------
    rows : tuple of Segment
        Those with enough rows, in order, one for each model.
    too_small : dict of str to int
        Segments with fewer than 50 rows (or 10 groups), which have no value: name and rows.
    level : float
        The level at which all intervals hold together.
    level_each : float
        That of a single one, ``level ** (1 / len(rows))`` (Sidak).
    bandwidth, regularization : float or None, float
        Those of all rows, the same for every segment.
    n_groups : int or None
        Number of groups of all rows, if there are any.
    signature : str
        Names everything that changes the numbers.
    """

    rows: tuple[Segment, ...]
    too_small: dict[str, int]
    level: float
    level_each: float
    bandwidth: float | None
    regularization: float
    n_groups: int | None
    signature: str

    @property
    def sentences(self) -> tuple[str, ...]:
        """The result in words, a sentence for each model."""
        models = dict.fromkeys(row.model for row in self.rows)
        return tuple(self._sentence(model) for model in models)

    def _sentence(self, model: str | None) -> str:
        rows = [row for row in self.rows if row.model == model]
        shown = sorted((r for r in rows if r.shown), key=lambda r: -r.ckce_debiased)
        of = f" of {model}" if model is not None else ""
        if not shown:
            return f"No miscalibration{of} is shown in any of {_count(len(rows))}."
        return (
            f"Miscalibration{of} is shown in {len(shown)} of {_count(len(rows))}: {_some(shown)}."
        )

    def table(self) -> Table:
        """The rows, with what is said of them."""
        lead = self.sentences
        notes = [
            f"The intervals of a column hold for all {len(self.rows)} lines at once with {percent(self.level)} "
            f"(Sidak: {100 * self.level_each:.4g} % each). CKCE has the bandwidth and lambda of all rows."
        ]
        if len(self.rows) > _SHOWN:
            notes.append(
                f"The {_SHOWN} largest of {len(self.rows)} lines are shown; to_frame() has all."
            )
        if self.too_small:
            groups = "" if self.n_groups is None else f" or {LEAST_GROUPS} groups"
            named = ", ".join(f"{name} ({count} rows)" for name, count in self.too_small.items())
            notes.append(f"Too small for a value, fewer than {FEW_ROWS} rows{groups}: {named}.")
        attributes = {row.attribute or "segment" for row in self.rows}
        columns = (
            Column(attributes.pop() if len(attributes) == 1 else "segment", ("name",)),
            Column("model", ("model",)),
            Column("rows", ("n_samples",), form="d"),
            Column("share", ("share",), form=".1%"),
            Column("debiased", ("ckce_debiased",), "ckce", strong=True),
            Column("interval", ("ckce_low", "ckce_high"), "ckce"),
            Column("miscalibration", ("miscalibration",), "theta"),
            Column("interval", ("miscalibration_low", "miscalibration_high"), "theta"),
            *score_columns(),
        )
        return Table(
            columns, tuple(map(vars, self._largest())), lead=lead[0], notes=(*lead[1:], *notes)
        )

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "segments": [finite(dataclasses.asdict(row)) for row in self.rows],
            "too_small": dict(self.too_small),
            "level": self.level,
            "level_each": self.level_each,
            "signature": self.signature,
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each segment and model; those too small have no values."""
        pandas = load_pandas()
        frame = pandas.DataFrame([dataclasses.asdict(row) for row in self.rows])
        small = pandas.DataFrame(
            [{"name": name, "n_samples": count} for name, count in self.too_small.items()]
        )
        whole = pandas.concat([frame, small], ignore_index=True) if len(small) else frame
        return whole.set_index("name")

    def plot(self, ax: Axes | None = None) -> Axes:
        """Forest plot: debiased CKCE of each segment with its interval, raw CKCE and floor."""
        from ckce._plots.forest import forest

        return forest(self.lines, self.level_each, ax)

    @property
    def lines(self) -> tuple[Segment, ...]:
        """The rows of pictures, by names that tell models apart, too."""
        return tuple(
            row if row.model is None else dataclasses.replace(row, name=f"{row.name}, {row.model}")
            for row in self._largest()
        )

    def _largest(self) -> tuple[Segment, ...]:
        """All rows, or those with the largest values if there are many."""
        if len(self.rows) <= _SHOWN:
            return self.rows
        return tuple(sorted(self.rows, key=lambda row: -row.ckce_debiased)[:_SHOWN])


def _some(rows: list[Segment]) -> str:
    """The first few names."""
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return ", ".join(row.name for row in rows[:_NAMED]) + more


def _name(partitions: tuple[Partition, ...], partition: Partition, code: int) -> str:
    """A segment in words; of several attributes it says which one."""
    value = partition.values[code]
    return value if len(partitions) == 1 else f"{partition.attribute}: {value}"


def _count(n: int) -> str:
    return "1 segment" if n == 1 else f"{n} segments"


def segments_of(
    models: Mapping[str, tuple[Samples, Problem]],
    partitions: tuple[Partition, ...],
    level: float,
) -> Segments | None:
    """The segments of every model: checked samples, and their problem with the settings of all rows.

    One model may be without a name.
    """
    if not partitions:
        return None
    first, problem = next(iter(models.values()))
    chosen, too_small = _choose(partitions, first)
    for partition in partitions:
        if any(_is_outcome(partition, samples) for samples, _ in models.values()):
            warn(
                f"by{f'[{partition.attribute!r}]' if partition.attribute else ''} seems to be the label, "
                "since each of its segments holds one label only: segments that are chosen by the "
                "outcome are miscalibrated by construction; pass what is known before the outcome"
            )
    each = level ** (1.0 / (len(chosen) * len(models)))
    rows = [
        _segment(
            _name(partitions, partition, code), partition, code, model or None, samples, whole, each
        )
        for partition, code in chosen
        for model, (samples, whole) in models.items()
    ]
    words = ",".join(
        f"{partition.attribute or 'array'}({digest(partition.codes)})" for partition in partitions
    )
    return Segments(
        rows=tuple(rows),
        too_small=too_small,
        level=level,
        level_each=each,
        bandwidth=problem.bandwidth.value,
        regularization=problem.regularization.value,
        n_groups=first.n_groups,
        signature=str(problem.signature.but("segments", by=words, level=repr(level))),
    )


def _is_outcome(partition: Partition, samples: Samples) -> bool:
    """Whether the segment tells the label."""
    found = set()
    for code in range(len(partition.values)):
        labels = samples.labels[partition.codes == code]
        if len(labels) < _CHANCE:
            continue
        if labels.min() < labels.max():
            return False
        found.add(int(labels[0]))
    return len(found) > 1


def _choose(
    partitions: tuple[Partition, ...], samples: Samples
) -> tuple[list[tuple[Partition, int]], dict[str, int]]:
    """Segments with enough rows, and the sizes of the others."""
    chosen, too_small = [], {}
    for partition in partitions:
        for code in range(len(partition.values)):
            rows = partition.codes == code
            count, enough = int(rows.sum()), True
            if samples.groups is not None:
                enough = len(np.unique(samples.groups[rows])) >= LEAST_GROUPS
            if count >= FEW_ROWS and enough:
                chosen.append((partition, code))
            else:
                too_small[_name(partitions, partition, code)] = count
    if not chosen:
        named = [f"{name} ({count} rows)" for name, count in too_small.items()]
        raise InputError(
            f"by must make at least one segment of {FEW_ROWS} rows"
            + ("" if samples.groups is None else f" in {LEAST_GROUPS} groups")
            + f", got {listed(named)}; join segments"
        )
    return chosen, too_small


def _segment(
    name: str,
    partition: Partition,
    code: int,
    model: str | None,
    samples: Samples,
    whole: Problem,
    level: float,
) -> Segment:
    rows = np.flatnonzero(partition.codes == code)
    own = samples.at(rows)
    part = whole.samples.at(rows)
    problem = dataclasses.replace(whole, samples=part, cache={}, smoothed={})
    e = estimate_of(problem, progress=False, level=level)
    median = median_of([part], check_kernel("linear_gaussian"), whole.seed, whole.n_threads)
    size = miscalibration_beside(problem, level, median)
    return Segment(
        name=name,
        attribute=partition.attribute,
        value=partition.values[code],
        model=model,
        n_samples=own.n,
        share=own.weight / samples.weight,
        **score_values(scores_of(own, whole.n_threads), own, whole.n_threads),
        **ckce_fields(e, level),
        **miscalibration_fields(size),
    )
