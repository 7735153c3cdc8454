"""The words, tables and frame of the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from ckce._report import pictures as plots
from ckce._report.style import STYLE
from ckce._report.svg import harmless
from ckce._results import number

if TYPE_CHECKING:
    from ckce._compare.sensitivity import Sensitivity
    from ckce._reliability.diagram import ReliabilityCurve
    from ckce._results import Attribution

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # nothing is fetched, nothing runs


def _section(title: str, *parts: str) -> str:
    name = title.lower().replace(" ", "-")
    return f'<section id="{name}"><h2>{title}</h2>{"".join(parts)}</section>\n'


def page(
    data: dict[str, Any],
    curves: dict[str, ReliabilityCurve],
    blames: dict[str, Attribution],
    survey: Sensitivity | None,
) -> str:
    """The whole document."""
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
        key = f'<i class="key c{k % plots.COLOURS}"></i>'
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
