"""A page about one model or several, in one file that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ckce._compare.compare import compare
from ckce._input import check_bool
from ckce._metrics.evaluate import evaluate
from ckce._reliability.diagram import ReliabilityCurve, reliability_diagram

_GRID: Any = {"bandwidths": (0.5, 1.0, 2.0), "regularizations": (0.3, 1.0, 3.0)}


@dataclass(frozen=True)
class Report:
    """An HTML page, ready to be saved; what `report` returns.

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        target = os.fspath(path)
        temporary = f"{target}.part"
        try:
            with open(temporary, "w", encoding="utf-8", newline="\n") as file:
                file.write(self.html)
            os.replace(temporary, target)
        except BaseException:
            if os.path.exists(temporary):
                os.remove(temporary)
            raise


def report(
    y_true: Any,
    y_prob: Any,
    *,
    title: str = "Calibration report",
    command: str | None = None,
    sensitivity: bool = True,
    level: float = 0.95,
    method: str = "auto",
    kernel: str = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | None = None,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> Report:
    """A self-contained HTML page on the calibration of one model, or a comparison of several.

    Headline, table, forest plot with floors, reliability diagrams with counts, contributions of the
    classes, sensitivity, how to read it, signature, and all numbers as JSON. The page needs no
    network, no scripts and no other file, follows the reader's light or dark theme, and prints.

    Parameters
    ----------
    y_true : array of shape (n_samples,), or dict of such arrays
        Labels, as in `compare`.
    y_prob : array of shape (n_samples, n_classes) or (n_samples,), or dict of such arrays
        Predictions of one model, or of several by name; rows are paired.
    title : str
        Title of the page.
    command : str, optional
        How the page was made, shown for those who want to repeat it.
    sensitivity : bool
        Whether to rerun a comparison under nine pairs of bandwidth and lambda.
    level : float
        Of the intervals.
    method, kernel, bandwidth, regularization, labels, random_state, input, normalize,
    n_threads, progress
        As in `ckce`; the median bandwidth of several models is pooled, as in `compare`.

    Returns
    -------
    Report
        With ``save(path)``; the same input gives the same bytes.

    Notes
    -----
    Several models cost `compare` and `estimate`, and nine times `estimate` for the sensitivity; one
    model costs `evaluate`.

    Examples
    --------
    >>> import ckce
    >>> page = ckce.report([0, 1, 1, 0, 1, 0], [0.1, 0.8, 0.4, 0.3, 0.9, 0.6])
    >>> page.headline
    'There is no evidence that model is miscalibrated'
    >>> page.html[:15]
    '<!DOCTYPE html>'
    """
    from ckce._report.page import (
        page,  # html and json take 5 ms that importing ckce should not cost
    )

    check_bool("sensitivity", sensitivity)
    if not isinstance(y_prob, Mapping):
        y_prob = {"model": y_prob}
    if isinstance(y_true, Mapping) and set(y_true) != set(y_prob):
        raise ValueError(
            f"y_true must have the keys of y_prob, got {sorted(y_true)} and {sorted(y_prob)}"
        )
    truths = y_true if isinstance(y_true, Mapping) else dict.fromkeys(y_prob, y_true)
    of_data: dict[str, Any] = {
        "labels": labels,
        "normalize": normalize,
        "input": input,
        "n_threads": n_threads,
    }
    of_metric: dict[str, Any] = {
        **of_data,
        "method": method,
        "kernel": kernel,
        "regularization": regularization,
        "random_state": random_state,
        "progress": progress,
    }
    survey = None
    if len(y_prob) == 1:
        (name, probs), *_ = y_prob.items()
        evaluation = evaluate(truths[name], probs, bandwidth=bandwidth, **of_metric)
        result = _single(name, evaluation, level)
        names, estimates = [name], {name: evaluation.ckce}
    else:
        comparison = compare(y_true, y_prob, level=level, bandwidth=bandwidth, **of_metric)
        result = comparison.to_dict()
        names = list(comparison.names)
        estimates = dict(comparison.estimates)
        if sensitivity:
            survey = comparison.sensitivity(**_GRID, progress=progress)
            result["sensitivity"] = survey.to_dict()
    curves = {
        name: reliability_diagram(truths[name], y_prob[name], level=level, **of_data).curves[0]
        for name in names
    }
    blames = {name: estimates[name].attribution() for name in names}
    for model in result["models"]:
        curve = curves[model["name"]]
        model["mean_confidence"] = float(np.average(curve.confidence, weights=curve.counts))
        model["reliability"] = _curve_data(curve)
        model["classes"] = [_plain(blame._asdict()) for blame in blames[model["name"]]][:_CLASSES]
    data = {"title": title, "command": command, **result}
    return Report(data["headline"], data, page(data, curves, blames, survey))


_CLASSES = 20  # of a model in the JSON block


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    return {key: v.item() if isinstance(v, np.generic) else v for key, v in record.items()}


def _single(name: str, evaluation: Any, level: float) -> dict[str, Any]:
    """What `Comparison.to_dict` says, of one model."""
    e, flat = evaluation.ckce, evaluation.to_dict()
    low, high = e.interval(level)
    lean = "over" if evaluation.mean_confidence > evaluation.accuracy else "under"
    gap = abs(evaluation.mean_confidence - evaluation.accuracy)
    if low > 0.0:
        headline = f"{name} is miscalibrated, and {lean}confident by {100 * gap:.1f} points"
    else:
        headline = f"There is no evidence that {name} is miscalibrated"
    model = {
        "name": name,
        "accuracy": flat["accuracy"],
        "log_loss": flat["log_loss"],
        "brier": flat["brier"],
        "ece": flat["ece_top_label"],
        "jkce": flat["jkce"],
        "ckce": flat["ckce"],
        "floor": flat["ckce_floor"],
        "debiased": flat["ckce_debiased"],
        "se": flat["ckce_se"],
        "low": low,
        "high": high,
        "p_value": None,
    }
    kept = ("bandwidth", "regularization", "n_samples", "n_classes")
    return {
        "headline": headline,
        "models": [model],
        "pairs": [],
        "warnings": [],
        "level": level,
        "method": e.method,
        **{key: flat[key] for key in kept},
        "signature": e.signature,
    }


def _curve_data(curve: ReliabilityCurve) -> dict[str, Any]:
    return {
        "counts": curve.counts.tolist(),
        "confidence": curve.confidence.tolist(),
        "accuracy": curve.frequency.tolist(),
        "low": curve.low.tolist(),
        "high": curve.high.tolist(),
    }
