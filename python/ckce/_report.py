"""A page about one model or several, in one file that needs nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ckce._compare import compare
from ckce._evaluate import evaluate
from ckce._metrics import estimate
from ckce._reliability import ReliabilityCurve, reliability_diagram
from ckce._svg import harmless
from ckce._terminal import number
from ckce._validate import check_bool

if TYPE_CHECKING:
    from ckce._attribution import Attribution
    from ckce._sensitivity import Sensitivity

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # nothing is fetched, nothing runs
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
    normalize: bool = False,
    from_logits: bool = False,
    n_threads: int | None = None,
    progress: bool = False,
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
    method, kernel, bandwidth, regularization, labels, random_state, normalize, from_logits,
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
    check_bool("sensitivity", sensitivity)
    if not isinstance(y_prob, Mapping):
        y_prob = {"model": y_prob}
    truths = y_true if isinstance(y_true, Mapping) else dict.fromkeys(y_prob, y_true)
    of_data: dict[str, Any] = {
        "labels": labels,
        "normalize": normalize,
        "from_logits": from_logits,
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
        gamma = "median" if comparison.bandwidth is None else comparison.bandwidth
        estimates = {
            name: estimate(truths[name], y_prob[name], bandwidth=gamma, **of_metric)
            for name in names
        }
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
    return Report(data["headline"], data, _page(data, curves, blames, survey))


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


def _section(title: str, *parts: str) -> str:
    name = title.lower().replace(" ", "-")
    return f'<section id="{name}"><h2>{title}</h2>{"".join(parts)}</section>\n'


def _page(
    data: dict[str, Any],
    curves: dict[str, ReliabilityCurve],
    blames: dict[str, Attribution],
    survey: Sensitivity | None,
) -> str:
    from ckce._report_style import STYLE

    kernel = "" if data["bandwidth"] is None else f", bandwidth {data['bandwidth']:.4g}"
    facts = (
        f"{data['n_samples']:,} samples, {data['n_classes']:,} classes, method {data['method']}"
        f"{kernel}, lambda {data['regularization']:.4g}"
    )
    sections = "".join(_sections(data, curves, blames, survey))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{harmless(data['title'])}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header><p>{harmless(data['title'])}</p><h1>{harmless(data['headline'])}</h1>"
        f"<p>{harmless(facts)}</p></header>\n{sections}</main>\n</body>\n</html>\n"
    )


def _sections(
    data: dict[str, Any],
    curves: dict[str, ReliabilityCurve],
    blames: dict[str, Attribution],
    survey: Sensitivity | None,
) -> Iterator[str]:
    from ckce import _report_plots as plots

    models = data["models"]
    if data["pairs"] or data["warnings"]:
        yield _section("Comparison", _sentences(data), _warnings(data))
    yield _section("Models", _table(models, data["level"]))
    yield _section(
        "CKCE with intervals",
        "<p>Filled: debiased CKCE, by which models are ranked, with its "
        f"{100 * data['level']:g} % interval. Hollow: CKCE itself. Bar: its floor, the mean that a "
        "calibrated model with the same predictions would score. Left is better.</p>",
        f'<div class="scroll"><figure>{plots.forest(models, data["level"])}</figure></div>',
    )
    figures = (
        f"<figure><figcaption>{harmless(name)} <span>{_lean(model)}</span></figcaption>"
        f"{plots.reliability(curves[name], k)}</figure>"
        for k, (name, model) in enumerate((m["name"], m) for m in models)
    )
    yield _section(
        "Reliability",
        "<p>How often the predicted class was right, against the confidence in it, in bins of equal "
        "numbers of samples, with a band for each bin. Below the diagonal a model is overconfident. "
        "The histogram shows where the samples are.</p>",
        f'<div class="grid">{"".join(figures)}</div>',
    )
    figures = (
        f"<figure><figcaption>{harmless(name)}</figcaption>{plots.classes(name, tuple(blame))}</figure>"
        for name, blame in blames.items()
    )
    yield _section(
        "Classes",
        "<p>CKCE is a sum over the classes: which ones it comes from. "
        f"{_swatch('over', 'predicted too often')} {_swatch('under', 'predicted too seldom')} Mean "
        "y - q is the frequency of a class minus its mean prediction.</p>",
        f'<div class="grid">{"".join(figures)}</div>',
    )
    if survey is not None:
        yield _section(
            "Sensitivity",
            f"<p>{harmless(survey.sentence[:1].upper() + survey.sentence[1:])}.</p>",
            f'<figure class="heat">{plots.heat_map(survey)}</figure>'
            '<p class="note">Share of the pairs that differ significantly above whose order stays the '
            "same when bandwidth and lambda are multiplied by these factors.</p>",
        )
    yield _section("How to read it", _GUIDE)
    yield _section("Reproduce", _reproduce(data))


def _swatch(colour: str, words: str) -> str:
    return f'<span class="nowrap"><i class="swatch" style="background:var(--{colour})"></i>{words}.</span>'


def _sentences(data: dict[str, Any]) -> str:
    """Neighbours in the ranking; of three models or fewer, all pairs."""
    names = [model["name"] for model in data["models"]]
    pairs = data["pairs"]
    if len(names) > 3:
        order = {name: k for k, name in enumerate(names)}
        pairs = [p for p in pairs if abs(order[p["better"]] - order[p["worse"]]) == 1]
    items = "".join(f"<li>{harmless(pair['sentence'])}</li>" for pair in pairs)
    count = sum(pair["significant"] for pair in data["pairs"])
    summary = f"{count} of {len(data['pairs'])} pairs differ significantly (Holm-adjusted)."
    return f"<p>{summary}</p><ul>{items}</ul>"


def _warnings(data: dict[str, Any]) -> str:
    return "".join(
        f'<div class="warning"><b>Caution, {harmless(rail["name"].replace("_", " "))}:</b> '
        f"{harmless(rail['message'])}</div>"
        for rail in data["warnings"]
    )


def _lean(model: dict[str, Any]) -> str:
    gap = model["mean_confidence"] - model["accuracy"]
    return f"{'over' if gap > 0 else 'under'}confident by {100 * abs(gap):.1f} points"


def _table(models: list[dict[str, Any]], level: float) -> str:
    from ckce._report_plots import COLOURS

    columns = {
        "Accuracy": "accuracy",
        "Confidence": "mean_confidence",
        "Log loss": "log_loss",
        "Brier": "brier",
        "ECE": "ece",
        "JKCE": "jkce",
        "CKCE": "ckce",
        "Floor": "floor",
        "Debiased": "debiased",
    }
    tested = any(model["p_value"] is not None for model in models)
    head = [*columns, f"{100 * level:g} % interval", *(["p-value"] if tested else [])]
    rows = []
    for k, model in enumerate(models):
        cells = "".join(
            f"<td{' class=strong' if key == 'debiased' else ''}>"
            f"{'∞' if key == 'log_loss' and model[key] is None else number(model[key])}</td>"
            for key in columns.values()
        )
        cells += f"<td>{number(model['low'])} to {number(model['high'])}</td>"
        cells += f"<td>{number(model['p_value'])}</td>" if tested else ""
        key = f'<i class="key c{k % COLOURS}"></i>'
        rows.append(f"<tr><th>{key}{harmless(model['name'])}</th>{cells}</tr>")
    titles = "".join(f"<th>{title}</th>" for title in head)
    return (
        f'<div class="scroll"><table><thead><tr><th>Model</th>{titles}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


_GUIDE = """\
<dl>
<dt>CKCE</dt><dd>The conditional kernel calibration error: a squared distance between what the model
predicts and how the labels are distributed given its prediction, over all classes at once. 0 is
calibration: of the cases with "70&nbsp;%", 70&nbsp;% come true.</dd>
<dt>Floor</dt><dd>What a perfectly calibrated model with the same predictions scores on average: CKCE
is biased upwards, so compare it with its floor, not with 0.</dd>
<dt>Debiased</dt><dd>CKCE without that bias. About 0 for a calibrated model, and below 0 by chance;
it is never clipped. Models are ranked by it.</dd>
<dt>Interval</dt><dd>For the value at this bandwidth and lambda, over new samples from the same source.
It says nothing of other data or of retrained models, and is cautious near calibration. The pairs are
compared sample by sample, which tells more than whether two intervals overlap.</dd>
<dt>JKCE, ECE</dt><dd>Other calibration errors. JKCE also depends on how often each prediction is
made; ECE (of the top label, ten bins) looks at the confidence only.</dd>
<dt>Accuracy, log loss, Brier</dt><dd>A calibrated model need not be good: one that always predicts the
class frequencies is calibrated. Look at both.</dd>
</dl>"""


def _reproduce(data: dict[str, Any]) -> str:
    from ckce import __version__

    command = data["command"]
    how = f"<p>Command</p><pre>{harmless(command)}</pre>" if command else ""
    block = json.dumps(data, indent=1, allow_nan=False)
    return (
        f"{how}<p>Signature, which names everything that changes the numbers</p>"
        f"<pre>{harmless(data['signature'])}</pre><p>Made with ckce {__version__}.</p>"
        f"<details><summary>All numbers as JSON</summary><pre>{escape(block)}</pre></details>"
    )
