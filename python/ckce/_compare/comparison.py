"""What `ckce.compare` returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ckce._compare.brier_split import BrierSplit
from ckce._compare.sensitivity import Sensitivity, run_sensitivity
from ckce._compare.verdict import CommonGround
from ckce._metrics.estimate import Estimate
from ckce._metrics.score_table import Scores, model_columns
from ckce._metrics.segments import Segments
from ckce._problem import Problem
from ckce._results import FEW_ROWS, Column, Table, by_groups, finite, load_pandas

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class _Named:
    name: str


@dataclass(frozen=True)
class ComparedModel(Scores, _Named):
    """One model of a comparison.

    Attributes
    ----------
    name : str
        As given.
    accuracy, mean_confidence, log_loss, brier : float
        Accuracy and scoring rules, see the functions of these names; mean of the largest
        probability, which is above the accuracy of an overconfident model.
    ece_top_label : float
        ECE of the top label, L1, uniform bins.
    jkce, jkce_se : float
        Unbiased JKCE and its standard error.
    ckce, ckce_floor : float, float or None
        CKCE, and its mean if the model were calibrated; None with groups.
    ckce_debiased, ckce_se, ckce_low, ckce_high : float
        Debiased CKCE, its standard error and interval: what models are ranked by. The ends are as
        computed, also below 0; tables show the part above.
    sharpness : float
        Mean of ``|q|^2``: from 1/m for uniform to 1 for certain predictions; of [1 - c, c] with
        ``reduction="top_label"``.
    ckce_error : float or None
        Bound on what the method leaves out of `ckce` and `ckce_debiased`; None for ``fourier``.
    p_value : float or None
        The p-value of the exact test of calibration, if it was asked for.
    constant : bool
        Whether the model predicts the same for all rows.
    miscalibration, miscalibration_low, miscalibration_high : float or None
        What perfect recalibration would take off the Brier score, see `miscalibration`, and the ends
        of its interval.
    refinement : float or None
        The rest of the Brier score (with a reduction, of that of the reduced problem): what no
        recalibration changes.
    """

    ece_top_label: float
    jkce: float
    jkce_se: float
    ckce: float
    ckce_floor: float | None
    ckce_debiased: float
    ckce_se: float
    ckce_low: float
    ckce_high: float
    sharpness: float
    ckce_error: float | None
    p_value: float | None
    constant: bool = False
    miscalibration: float | None = None
    miscalibration_low: float | None = None
    miscalibration_high: float | None = None
    refinement: float | None = None


@dataclass(frozen=True)
class GuardRail:
    """A reason to be careful with a comparison; docs/comparing.md has a paragraph on each name.

    Attributes
    ----------
    name : str
        ``constant``, ``bandwidth``, ``rank_disagreement``, ``contrary``, ``below_floor``,
        ``approximation`` or ``few_rows``.
    value : float
        The number that crossed the line.
    limit : float
        The line.
    message : str
        Its meaning for these models.
    """

    name: str
    value: float
    limit: float
    message: str


@dataclass(frozen=True)
class Comparison:
    """Models by debiased CKCE, pairs of them at equal predictions, and guard rails.

    Prints as a table, shows as HTML in notebooks.

    Attributes
    ----------
    names : tuple of str
        The models, the smallest debiased CKCE first.
    models : tuple of ComparedModel
        In that order.
    pairs : tuple of CommonGround
        All pairs at equal predictions, in the order of `names`.
    warnings : tuple of GuardRail
        Reasons to be careful with the table; empty if there are none.
    level : float
        Level of all intervals.
    method : str
        ``exact``, ``fourier`` or ``cholesky``.
    bandwidth, bandwidth_source : float or None, str
        One for all models.
    ground_bandwidth : float
        That of the pairs: the same, unless frequencies were given or there are more than 20 classes.
    regularization : float
        lambda, one for all models.
    n_samples, n_classes : int
        Shape of the data.
    n_groups : int or None
        Number of groups, if there are any: all intervals and p-values are by group.
    signature : str
        Names everything that changes the numbers.
    brier_splits : tuple of BrierSplit
        For each pair, how much of the difference of their Brier scores is calibration, and how much
        refinement.
    estimates : dict of Estimate
        The CKCE of each model with all that belongs to it, such as ``attribution()``.
    segments : Segments or None
        Every model segment by segment, if ``by`` was given.
    """

    names: tuple[str, ...]
    models: tuple[ComparedModel, ...]
    pairs: tuple[CommonGround, ...]
    warnings: tuple[GuardRail, ...]
    level: float
    method: str
    bandwidth: float | None
    bandwidth_source: str
    ground_bandwidth: float
    regularization: float
    n_samples: int
    n_classes: int
    n_groups: int | None
    signature: str
    brier_splits: tuple[BrierSplit, ...]
    estimates: Mapping[str, Estimate] = field(repr=False, compare=False)
    # differences(pairs, bandwidth, regularizations) at equal predictions
    _rerun: Callable[..., list[list[float]]] = field(repr=False, compare=False)
    _problems: Mapping[str, Problem] = field(repr=False, compare=False)
    segments: Segments | None = None

    @property
    def best(self) -> tuple[str, ...]:
        """The models that no other is shown to be better calibrated than, in the order of `names`."""
        beaten = {pair.worse for pair in self.pairs}
        return tuple(name for name in self.names if name not in beaten)

    @property
    def headline(self) -> str:
        """The result in a sentence."""
        count, best = len(self.names), self.best
        verdicts = {pair.verdict for pair in self.pairs}
        if verdicts == {"too few rows"}:
            return f"Too few rows to tell which of {count} models is the best calibrated"
        if len(best) == 1 and all(self.pair(best[0], n).better for n in self.names if n != best[0]):
            others = [name for name in self.names if name != best[0]]
            than = others[0] if count == 2 else f"the {count - 1} others"
            return f"At equal predictions {best[0]} is better calibrated than {than}"
        if len(best) == count:
            if count == 2:
                return "Neither model is shown to be better calibrated than the other"
            return f"None of the {count} models is shown to be better calibrated than another one"
        if len(best) == 1:
            return f"No model of {count} is shown to be better calibrated than {best[0]}"
        names = f"{', '.join(best[:-1])} or {best[-1]}"
        return f"The best calibrated of {count} models may be {names}: the data do not show which"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Pairs in words: all of three models; of more, neighbours, and how many pairs differ."""
        if len(self.names) == 2:
            return (self.pairs[0].sentence,)
        if len(self.names) == 3:
            return tuple(map(_named, self.pairs))
        count = sum(pair.significant for pair in self.pairs)
        alpha = 100 * (1 - self.level)
        near = zip(self.names, self.names[1:], strict=False)
        return (
            *(_named(self.pair(a, b)) for a, b in near),
            f"{count} of {len(self.pairs)} pairs differ at equal predictions, at {alpha:.3g} % (Holm).",
        )

    def pair(self, a: str, b: str) -> CommonGround:
        """The pair of two models, in either order."""
        for pair in self.pairs:
            if {pair.first, pair.second} == {a, b}:
                return pair
        raise KeyError(f"no pair of {a!r} and {b!r}; the models are {list(self.names)}")

    def __str__(self) -> str:
        by = "" if self.segments is None else f"\n\n{self.segments!r}"
        return table_of(self).text() + by

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        by = "" if self.segments is None else self.segments._repr_html_()
        return table_of(self).html() + by

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; what is not finite becomes None."""
        return {
            "headline": self.headline,
            "best": list(self.best),
            "models": [finite(dataclasses.asdict(model)) for model in self.models],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "brier_splits": [finite(dataclasses.asdict(split)) for split in self.brier_splits],
            "warnings": [finite(dataclasses.asdict(rail)) for rail in self.warnings],
            "level": self.level,
            "method": self.method,
            "bandwidth": self.bandwidth,
            "bandwidth_source": self.bandwidth_source,
            "ground_bandwidth": self.ground_bandwidth,
            "regularization": self.regularization,
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "n_groups": self.n_groups,
            "signature": self.signature,
            "segments": None if self.segments is None else self.segments.to_dict(),
        }

    def to_frame(self, *, pairs: bool = False) -> Any:
        """A pandas DataFrame with a row for each model, or for each pair."""
        pandas = load_pandas()
        if pairs:
            return pandas.DataFrame(
                [dataclasses.asdict(pair) for pair in self.pairs],
                columns=[f.name for f in dataclasses.fields(CommonGround)],
            )
        return pandas.DataFrame([dataclasses.asdict(m) for m in self.models]).set_index("name")

    def plot(self, ax: Axes | None = None) -> Axes:
        """Forest plot: debiased CKCE with its interval, raw CKCE and floor of each model."""
        from ckce._plots.forest import forest

        return forest(self.models, self.level, ax)

    def plot_differences(self, ax: Axes | None = None) -> Axes:
        """Forest plot of the pairs: differences at equal predictions with their intervals."""
        from ckce._plots.differences import differences

        return differences(self.pairs, self.level, ax)

    def plot_pairs(self, ax: Axes | None = None) -> Axes:
        """Matrix of the differences at equal predictions; those that are shown have a colour."""
        from ckce._plots.pairs import matrix

        return matrix(self.names, self.pairs, ax)

    def sensitivity(
        self,
        *,
        bandwidths: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 4.0),
        regularizations: Sequence[float] = (0.1, 0.3, 1.0, 3.0),
        progress: bool | None = None,
    ) -> Sensitivity:
        """Whether the verdicts survive other bandwidths and lambdas.

        Parameters
        ----------
        bandwidths, regularizations : sequences of float
            Factors of the comparison's own; all combinations are run.
        progress : bool, optional
            Show a progress bar (needs tqdm).

        Returns
        -------
        Sensitivity
            With `sentence` and `plot`.

        Notes
        -----
        Costs a pass over every model for each of the bandwidths, five by default.
        """
        shown = [(p.better, p.worse) for p in self.pairs if p.better and p.worse]
        return run_sensitivity(
            self._rerun,
            pairs=shown
            or [
                (p.second, p.first) if p.difference > 0 else (p.first, p.second) for p in self.pairs
            ],
            shown=bool(shown),
            bandwidth=self.ground_bandwidth,
            regularization=self.regularization,
            factors=(bandwidths, regularizations),
            progress=progress,
        )


def _named(pair: CommonGround) -> str:
    """The sentence of one pair among several."""
    if pair.first in pair.sentence and pair.second in pair.sentence:
        return pair.sentence
    return f"{pair.first} and {pair.second}: {pair.sentence}"


def _splits(comparison: Comparison) -> tuple[str, ...]:
    """How Brier scores differ, while there are few pairs."""
    few = len(comparison.names) <= 3 and comparison.n_samples >= FEW_ROWS
    return tuple(split.sentence for split in comparison.brier_splits) if few else ()


def table_of(comparison: Comparison) -> Table:
    """The ranking, with what is said above and below it."""
    bandwidth = "" if comparison.bandwidth is None else f", bandwidth {comparison.bandwidth:.4g}"
    groups = "" if comparison.n_groups is None else f", {by_groups(comparison.n_groups)}"
    lead, *sentences = (
        comparison.sentences
        if len(comparison.names) == 2  # the headline would say the same
        else (comparison.headline, *comparison.sentences)
    )
    return Table(
        columns=(Column("model", ("name",)), *model_columns(comparison.level)),
        rows=tuple(map(vars, comparison.models)),
        heading=(
            f"{len(comparison.names)} models, n = {comparison.n_samples}, m = {comparison.n_classes}, "
            f"{comparison.method}{bandwidth}, lambda {comparison.regularization:.4g}{groups}"
        ),
        lead=lead,
        notes=(*sentences, *_splits(comparison)),
        cautions=tuple((rail.name, rail.message) for rail in comparison.warnings),
        signature=comparison.signature,
    )
