"""A page about one model or several, in one file that needs nothing else."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ckce._compare.compare import compare
from ckce._compare.comparison import ComparedModel
from ckce._input import check_bool, check_positive, take_column, write_file
from ckce._methods import Method
from ckce._metrics.estimate import Estimate, ckce_fields
from ckce._metrics.evaluate import Evaluation, evaluate
from ckce._metrics.miscalibration import miscalibration_fields
from ckce._metrics.score_table import told_scores
from ckce._metrics.views import Where, where_of
from ckce._problem import ReductionLike
from ckce._reliability.diagram import ReliabilityCurve, reliability_diagram
from ckce._results import Attribution, finite, harmless, verdict

if TYPE_CHECKING:
    from ckce._report.page import Story

_GRID: Any = {"bandwidths": (0.5, 1.0, 2.0), "regularizations": (0.3, 1.0, 3.0)}
_CLASSES = 20  # of a model in the JSON block


@dataclass(frozen=True)
class Report:
    """An HTML page, ready to be saved; what `report` returns. Notebooks show it.

    Attributes
    ----------
    headline : str
        The result in a sentence.
    data : dict
        All numbers of the page, ready for JSON.
    html : str
        The page.
    """

    headline: str
    data: dict[str, Any] = field(repr=False)
    html: str = field(repr=False)
    _story: Story = field(repr=False, compare=False)

    def __repr__(self) -> str:
        size = len(self.html.encode()) / 1000
        return f"{self.headline}\na page of {size:.0f} kB; save(path) writes it"

    def _repr_html_(self) -> str:
        # In a frame of its own, so that its style and the notebook's stay apart.
        return (
            f'<iframe srcdoc="{harmless(self.html)}" title="{harmless(self.headline)}" sandbox '
            'style="width:100%;height:640px;border:1px solid #8884"></iframe>'
        )

    def made_by(self, command: str) -> Report:
        """The same page with the command that made it, so that others can repeat it."""
        from ckce._report.page import page

        if not isinstance(command, str):
            raise TypeError(f"command must be a string, got {command!r}")
        story = replace(self._story, data={**self._story.data, "command": command})
        return Report(self.headline, story.data, page(story), story)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        write_file(path, [self.html.encode()])


def report(
    y_true: Any,
    y_prob: Any,
    *,
    title: str = "Calibration report",
    sensitivity: bool = True,
    level: float = 0.95,
    test: bool | int = True,
    method: str | Method = "auto",
    kernel: str = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | None = None,
    reduction: ReductionLike = None,
    sample_weight: Any = None,
    groups: Any = None,
    by: Any = None,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> Report:
    """A self-contained HTML page on the calibration of one model, or a comparison of several.

    Headline with the size of the miscalibration in units of the Brier score, table, what to do next,
    forest plot with floors, reliability diagrams with counts, where the model is off, contributions
    of the classes, sensitivity, how to read it, signature, and all numbers as JSON. The page needs
    no network and no other file, is complete without its one small script (which shows values under
    the pointer), follows the reader's light or dark
    theme, fits a phone, and prints.

    Parameters
    ----------
    y_true : array of shape (n_samples,), or dict of such arrays
        Labels, as in `compare`.
    y_prob : array of shape (n_samples, n_classes) or (n_samples,), or dict of such arrays
        Predictions of one model, or of several by name; rows are paired.
    title : str
        Title of the page. A second line stands below it, such as the data set and the date.
    sensitivity : bool
        Whether to rerun a comparison under nine pairs of bandwidth and lambda.
    level : float
        Level of the intervals.
    test : bool or int
        Whether to add the p-value of `calibration_test`, by 999 resamples or as many as given; by
        default without groups only, because the test needs independent labels.
    sample_weight : array of shape (n_samples,), optional
        Frequency weights; with ``test`` whole numbers.
    groups : array of shape (n_samples,), optional
        Ids of rows that depend on each other, as in `estimate`.
    by : array of shape (n_samples,), dict of such arrays, or str, optional
        Segments of the rows, as in `evaluate`: the page then has a section about them.
    method, kernel, bandwidth, regularization, reduction, labels, random_state, input, normalize,
    n_threads, progress
        As in `ckce`; the median bandwidth of several models is pooled, as in `compare`.

    Returns
    -------
    Report
        With ``save(path)``; the same input gives the same bytes.

    Notes
    -----
    Several models cost `compare`, and nine times `estimate` for the sensitivity; one model costs
    `evaluate`. Below 50 rows the headline is that there are too few to tell.

    Examples
    --------
    >>> import ckce
    >>> page = ckce.report([0, 1, 1, 0, 1, 0], [0.1, 0.8, 0.4, 0.3, 0.9, 0.6])
    >>> page.headline
    'Too few rows to tell whether model is calibrated'
    >>> page.html[:15]
    '<!DOCTYPE html>'
    """
    from ckce._report.page import page  # 5 ms that importing ckce should not cost

    check_bool("sensitivity", sensitivity)
    by, y_prob = take_column(by, y_prob)
    if regularization is not None:
        check_positive("regularization", regularization)
    if not isinstance(y_prob, Mapping):
        y_prob = {"model": y_prob}
    if isinstance(y_true, Mapping) and set(y_true) != set(y_prob):
        raise ValueError(
            f"y_true must have the keys of y_prob, got {sorted(y_true)} and {sorted(y_prob)}"
        )
    of_data: dict[str, Any] = {
        "sample_weight": sample_weight,
        "labels": labels,
        "input": input,
        "normalize": normalize,
        "n_threads": n_threads,
    }
    of_metric: dict[str, Any] = {
        **of_data,
        "groups": groups,
        "by": by,
        "test": test,
        "method": method,
        "kernel": kernel,
        "bandwidth": bandwidth,
        "regularization": regularization,
        "reduction": reduction,
        "random_state": random_state,
        "progress": progress,
    }
    if test is True and (callable(kernel) or groups is not None):
        # It draws in features, which a callable does not have, and independent labels.
        of_metric["test"] = False
    curves = _curves(y_true, y_prob, level, of_data)
    if len(y_prob) == 1:
        story = _of_one(y_true, y_prob, curves, level, of_metric)
    else:
        story = _of_several(y_true, y_prob, curves, level, of_metric, sensitivity)
    title, _, subtitle = title.partition("\n")
    story.data.update(title=title, subtitle=subtitle or None, command=None)
    return Report(story.data["headline"], story.data, page(story), story)


def _curves(
    y_true: Any, y_prob: Mapping[str, Any], level: float, of_data: dict[str, Any]
) -> dict[str, ReliabilityCurve]:
    """The reliability curve of each model."""
    truths = y_true if isinstance(y_true, Mapping) else dict.fromkeys(y_prob, y_true)
    return {
        name: reliability_diagram(truths[name], {name: probs}, level=level, **of_data).curves[0]
        for name, probs in y_prob.items()
    }


def _of_several(
    y_true: Any,
    y_prob: Mapping[str, Any],
    curves: dict[str, ReliabilityCurve],
    level: float,
    of_metric: dict[str, Any],
    sensitivity: bool,
) -> Story:
    from ckce._report.page import Story

    comparison = compare(y_true, y_prob, level=level, **of_metric)
    data = comparison.to_dict()
    survey = None
    if sensitivity:
        survey = comparison.sensitivity(**_GRID, progress=of_metric["progress"])
        data["sensitivity"] = survey.to_dict()
    blames = _blames(comparison.estimates)
    data["models"] = [_model_data(m, curves[m.name], blames.get(m.name)) for m in comparison.models]
    found = {name: where_of(problem, level) for name, problem in comparison._problems.items()}
    where = {name: each for name, each in found.items() if each is not None}
    _add_where(data, where)
    return Story(
        data,
        comparison.models,
        curves,
        blames,
        comparison.sentences,
        survey,
        comparison.segments,
        where,
    )


def _add_where(data: dict[str, Any], where: Mapping[str, Where]) -> None:
    """What the pictures show, with the size of it, beside the other numbers of each model."""
    for model in data["models"]:
        if model["name"] in where:
            found = where[model["name"]]
            model["where"] = {"miscalibration": found.miscalibration.to_dict(), **found.to_dict()}


def _of_one(
    y_true: Any,
    y_prob: Mapping[str, Any],
    curves: dict[str, ReliabilityCurve],
    level: float,
    of_metric: dict[str, Any],
) -> Story:
    from ckce._report.page import Story

    ((name, probs),) = y_prob.items()
    truth = y_true[name] if isinstance(y_true, Mapping) else y_true
    evaluation = evaluate(truth, probs, level=level, where=True, **of_metric)
    e, model = evaluation.ckce, _as_compared(name, evaluation, level)
    blames = _blames({name: e})
    data = {
        "headline": verdict(model, e.n_samples, level),
        "models": [_model_data(model, curves[name], blames.get(name))],
        "pairs": [],
        "warnings": [],
        "level": level,
        "method": e.method,
        "bandwidth": e.bandwidth,
        "bandwidth_source": e.bandwidth_source,
        "regularization": e.regularization,
        "n_samples": e.n_samples,
        "n_classes": e.n_classes,
        "n_groups": e.n_groups,
        "signature": e.signature,
        "segments": None if evaluation.segments is None else evaluation.segments.to_dict(),
    }
    where = {} if evaluation.where is None else {name: evaluation.where}
    _add_where(data, where)
    return Story(data, (model,), curves, blames, (), None, evaluation.segments, where)


def _blames(estimates: Mapping[str, Estimate]) -> dict[str, Attribution]:
    """Which classes each CKCE comes from; a top label has none."""
    known = {name: e for name, e in estimates.items() if e.per_class is not None}
    return {name: e.attribution() for name, e in known.items() if e.mean_residual is not None}


def _as_compared(name: str, evaluation: Evaluation, level: float) -> ComparedModel:
    """The record that a comparison has of a model, of one that is by itself."""
    e = evaluation.ckce
    return ComparedModel(
        name=name,
        **told_scores(evaluation),
        ece_top_label=evaluation.ece_top_label.value,
        jkce=evaluation.jkce.value,
        jkce_se=evaluation.jkce.se,
        **ckce_fields(e, level),
        sharpness=math.nan,
        ckce_error=None if e.bound is None else e.bound + (e.debias_error or 0.0),
        p_value=None if evaluation.test is None else evaluation.test.p_value,
        **miscalibration_fields(evaluation.miscalibration),
    )


def _model_data(
    model: ComparedModel, curve: ReliabilityCurve, blame: Attribution | None
) -> dict[str, Any]:
    """Everything about a model, ready for JSON."""
    return {
        **finite(asdict(model)),
        "reliability": {
            "counts": curve.counts.tolist(),
            "confidence": curve.confidence.tolist(),
            "accuracy": curve.frequency.tolist(),
            "low": curve.low.tolist(),
            "high": curve.high.tolist(),
        },
        "classes": [_plain(row._asdict()) for row in blame.rows[:_CLASSES]] if blame else [],
    }


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    return {key: v.item() if isinstance(v, np.generic) else v for key, v in record.items()}
