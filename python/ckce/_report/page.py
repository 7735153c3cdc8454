"""The words, tables and frame of the report."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ckce._metrics.miscalibration import FINER, in_points
from ckce._metrics.score_table import model_columns
from ckce._plots import correction, reliability
from ckce._plots.style import in_digits
from ckce._report import pictures
from ckce._report.where import one_prediction, where_section
from ckce._results import (
    Column,
    Table,
    advice,
    breakable,
    by_groups,
    harmless,
    lean,
    number,
    percent,
    shortened,
)

if TYPE_CHECKING:
    from ckce._compare.comparison import ComparedModel
    from ckce._compare.sensitivity import Sensitivity
    from ckce._metrics.segments import Segments
    from ckce._metrics.views import Where
    from ckce._reliability.diagram import ReliabilityCurve
    from ckce._results.attribution import Attribution

# Nothing is fetched, and nothing runs but the script of this room.
_FIRST = 4  # models in sight where there are more
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'"


@dataclass(frozen=True)
class Story:
    """What a page tells; `data` is all of it as JSON."""

    data: dict[str, Any]
    models: tuple[ComparedModel, ...]
    curves: dict[str, ReliabilityCurve]
    blames: dict[str, Attribution]
    sentences: tuple[str, ...]
    survey: Sensitivity | None
    segments: Segments | None = None
    where: dict[str, Where] = field(default_factory=dict)

    @property
    def level(self) -> float:
        """Of the intervals."""
        return float(self.data["level"])

    @cached_property
    def names(self) -> dict[str, str]:
        """Short names of the models; the table has all of them."""
        return shortened(model.name for model in self.models)

    def named(self, name: str) -> str:
        """A name of a model as HTML."""
        return pictures.named(name, self.names[name])

    def briefly(self, words: str) -> str:
        """A sentence with short names, as HTML."""
        long = [re.escape(name) for name, brief in self.names.items() if brief != name]
        parts = re.split(f"({'|'.join(long)})", words) if long else [words]
        return "".join(self.named(p) if p in self.names else breakable(p) for p in parts)


def page(story: Story) -> str:
    """The whole document."""
    data = story.data
    kernel = "" if data["bandwidth"] is None else f", bandwidth {data['bandwidth']:.4g}"
    facts = (
        f"{data['n_samples']:,} samples, {data['n_classes']:,} classes, method {data['method']}"
        f"{kernel}, lambda {data['regularization']:.4g}"
    )
    subtitle = f"<p>{harmless(data['subtitle'])}</p>" if data["subtitle"] else ""
    style, script = (
        files("ckce._report").joinpath(name).read_text(encoding="utf-8")
        for name in ("style.css", "hover.js")
    )
    policy = _POLICY.format(b64encode(sha256(script.encode()).digest()).decode())
    leads = [_size(story, model) for model in story.models] if len(story.models) == 1 else []
    lead = "".join(f'<p class="lead">{harmless(words)}</p>' for words in leads if words)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{harmless(data['title'])}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<header><p>{harmless(data['title'])}</p>{subtitle}<h1>{story.briefly(data['headline'])}</h1>"
        f"{_unbroken(lead)}<p>{harmless(facts)}</p></header>\n"
        f"{_unbroken(''.join(_sections(story)))}{_section('Reproduce', _reproduce(data))}</main>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _unbroken(html: str) -> str:
    """No line ends between a number and its per cent sign."""
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", html)


def _section(title: str, *parts: str) -> str:
    name = title.lower().replace(" ", "-")
    return f'<section id="{name}"><h2>{title}</h2>{"".join(parts)}</section>\n'


def _folded(parts: Sequence[str], start: str, end: str) -> str:
    """The first of several parts, with the others behind a line that opens them."""
    shown = f"{start}{''.join(parts[:_FIRST])}{end}" if parts else ""
    if len(parts) <= _FIRST:
        return shown
    return (
        f'{shown}<details class="more"><summary>{len(parts) - _FIRST} more</summary>'
        f"{start}{''.join(parts[_FIRST:])}{end}</details>"
    )


def _sections(story: Story) -> Iterator[str]:
    several = len(story.models) > 1
    if several:
        yield _section("Comparison", _sentences(story), _warnings(story))
    yield _section("Models" if several else "Numbers", _table(story), _sizes(story))
    yield _section("What to do next", _advice(story))
    yield _forest(story)
    yield _reliability(story)
    if story.where:
        yield _where(story)
    if story.segments is not None:
        yield _segments(story.segments)
    if story.blames:
        yield _classes(story)
    if story.survey is not None:
        yield _sensitivity(story, story.survey)
    yield _section("How to read it", _guide(several, story.data["n_groups"]))


def _sensitivity(story: Story, survey: Sensitivity) -> str:
    sentence = story.briefly(survey.sentence[:1].upper() + survey.sentence[1:])
    note = (
        '<p class="note">Share of the differences shown above whose sign stays the same when '
        "bandwidth and lambda are multiplied by these factors.</p>"
    )
    shown = any(pair["better"] for pair in story.data["pairs"])
    table = f"{pictures.heat_map(survey)}{note}" if shown else ""
    return _section("Sensitivity", f"<p>{sentence}.</p>{table}")


def _forest(story: Story) -> str:
    ranked = ", the order of the table," if len(story.models) > 1 else ""
    n_groups = story.data["n_groups"]
    beside = (
        "Bar: its floor, the mean that a calibrated model with the same predictions would score. "
        if n_groups is None
        else f"Debiased by group, {by_groups(n_groups)}. "
    )
    return _section(
        "CKCE with intervals",
        f"<p>Filled: debiased CKCE{ranked} with its {percent(story.level)} interval. Hollow: CKCE "
        f"itself. {beside}Left is better.</p>",
        f"<figure>{pictures.forest(story.models, story.level)}</figure>",
    )


def _size(story: Story, model: ComparedModel) -> str:
    """Miscalibration in units of the Brier score, in words; nothing of too few rows."""
    where = story.where.get(model.name)
    if where is None:
        return ""
    found = where.miscalibration
    rejected = model.p_value is not None and model.p_value < 1.0 - story.level
    if found.shown:
        return f"{found.headline} {FINER[:1].upper()}{FINER[1:]}."
    if not rejected:
        return found.headline
    most = max(found.high, found.high - found.value)
    points = in_points(most)
    return (
        f"This sample cannot tell how large the miscalibration is: at most {number(most)} of the "
        f"Brier score{found.subject} ({points:.1f} points)."
    )


def _sizes(story: Story) -> str:
    """That of each model, where there are several."""
    if len(story.models) == 1:
        return ""
    sizes = [(model.name, _size(story, model)) for model in story.models]
    items = [
        f"<li><b>{story.named(name)}</b>: {harmless(size)}</li>" for name, size in sizes if size
    ]
    return _folded(items, "<ul>", "</ul>")


def _where(story: Story) -> str:
    parts = []
    every = [c for where in story.where.values() for c in (*where.curves, *where.classes)]
    ticks = correction.ticks_of(every) if every else []
    for k, model in enumerate(story.models):
        if model.name in story.where:
            name = f"<h3>{story.named(model.name)}</h3>" if len(story.models) > 1 else ""
            where = story.where[model.name]
            one = model.constant or (where.regions and where.regions[0].share == 1.0)
            colour = k % pictures.COLOURS
            shown = one_prediction(where) if one else where_section(where, colour, ticks)
            parts.append(name + shown)
    return _section(
        "Where it is off",
        "<p>The regions of predictions where most is to be corrected, the worst first, and the "
        "frequencies of the labels as smooth functions of the prediction, without bins. The bands are "
        "simultaneous, so they are wider than those of single points; they hold where a frequency "
        "changes smoothly. Grey: where the cases are.</p>",
        _folded(parts, "", ""),
    )


def _segments(segments: Segments) -> str:
    said = segments.table()
    sentences = "".join(f"<li>{harmless(words)}</li>" for words in (said.lead, *said.notes))
    lines = segments.lines
    models = list(dict.fromkeys(row.model for row in segments.rows))
    colours = [models.index(row.model) for row in lines]
    body = Table(said.columns, said.rows).html()
    return _section(
        "By segment",
        f"<ul>{sentences}</ul>",
        f"<figure>{pictures.forest(lines, segments.level_each, colours)}</figure>",
        f'<div class="scroll">{body}</div>',
    )


def _reliability(story: Story) -> str:
    n, ticks = story.data["n_samples"], reliability.ticks_of(story.curves.values())
    figures = [
        f"<figure><figcaption>{story.named(model.name)} <span>{lean(model, n)}</span></figcaption>"
        f"{pictures.reliability(story.curves[model.name], k, ticks)}</figure>"
        for k, model in enumerate(story.models)
    ]
    narrow = (
        ""
        if story.data["n_groups"] is None
        else " The bands assume independent rows, so they are too narrow if rows of a group depend on each other."
    )
    return _section(
        "Reliability",
        "<p>The curve shows how often the predicted class was right, against the confidence in it. Each "
        "bin holds the same number of samples and has a band. Below the diagonal a model is overconfident. "
        f"The histogram shows where the samples are.{narrow}{_axes(ticks)}</p>",
        _folded(figures, '<div class="grid">', "</div>"),
    )


def _axes(ticks: Sequence[float]) -> str:
    """That the axes are not those from 0 to 1."""
    words = in_digits(ticks)
    part = f" The axes go from {words[0]} to {words[-1]}, where the predictions are."
    return part if ticks[-1] - ticks[0] < 0.9 else ""


def _classes(story: Story) -> str:
    figures = [
        f"<figure><figcaption>{story.named(name)}</figcaption>{pictures.classes(name, blame)}</figure>"
        for name, blame in story.blames.items()
    ]
    return _section(
        "Classes",
        "<p>CKCE is a sum over the classes. The bars show what each class adds. "
        f"{_swatch('over', 'predicted too often')} {_swatch('under', 'predicted too seldom')} Mean "
        "y - q is the frequency of a class minus its mean prediction.</p>",
        _folded(figures, '<div class="grid">', "</div>"),
    )


def _swatch(colour: str, words: str) -> str:
    return f'<span class="nowrap"><i class="swatch {colour}"></i>{words}.</span>'


def _sentences(story: Story) -> str:
    sentences = story.sentences
    if len(sentences) > _FIRST:  # the last one is about all pairs
        sentences = (sentences[-1], *sentences[:-1])
    return _folded([f"<li>{story.briefly(words)}</li>" for words in sentences], "<ul>", "</ul>")


def _warnings(story: Story) -> str:
    return "".join(
        f'<div class="warning"><b>Caution, {harmless(rail["name"].replace("_", " "))}:</b> '
        f"{story.briefly(rail['message'])}</div>"
        for rail in story.data["warnings"]
    )


def _advice(story: Story) -> str:
    n = story.data["n_samples"]
    if len(story.models) == 1:
        words = advice(story.models[0], n, story.level)
        return f"<p>{harmless(words[:1].upper() + words[1:])}.</p>"
    items = [
        f"<li><b>{story.named(m.name)}</b>: {harmless(advice(m, n, story.level))}</li>"
        for m in story.models
    ]
    return _folded(items, "<ul>", "</ul>")


def _table(story: Story) -> str:
    columns = (Column("model", ("name",)), *model_columns(story.level))
    body = Table(columns, tuple(map(vars, story.models))).html()
    return f'<div class="scroll models">{body}</div>'


def _guide(several: bool, n_groups: int | None) -> str:
    ranked = " The table is in its order." if several else ""
    pairs = {
        "At equal predictions": "CKCE also depends on how often a model predicts what. So two models "
        "are compared where both predict, sample by sample: the same miscalibration then counts the "
        "same. A difference is called only where three runs of that comparison agree; the share says "
        "how much of the predictions' variety both have."
    }
    entries = {
        "CKCE": "The conditional kernel calibration error: the squared distance between the "
        "predictions and the distribution of the labels given the prediction, over all classes at "
        'once. A calibrated model that says "70&nbsp;%" is right in 70&nbsp;% of these cases.',
        "Floor": "The mean score of a perfectly calibrated model with the same predictions. CKCE is "
        "biased upwards, so compare it with its floor, not with 0.",
        "Debiased": "CKCE without its upward bias. About 0 for a calibrated model, and below 0 by "
        f"chance.{ranked}",
        "Interval": "The range of the value at this bandwidth and lambda, over new samples from the "
        "same source. The part above 0 is shown, because that value cannot be negative. The interval "
        "does not cover other data or retrained models, and it is too wide near calibration.",
        **(pairs if several else {}),
        "p-value": "The exact test of calibration draws labels from the predictions themselves. The "
        "p-value is the share of draws with a debiased CKCE as large. A small one speaks against "
        "calibration.",
        "JKCE, ECE": "Other calibration errors. JKCE also depends on how often each prediction is "
        "made; ECE (of the top label) looks at the confidence only.",
        "Accuracy, log loss, Brier": "A calibrated model need not be good: one that always predicts "
        "the class frequencies is calibrated. Look at both.",
    }
    if n_groups is not None:
        del entries["Floor"], entries["p-value"]  # both need independent rows
        entries["Groups"] = (
            f"Rows of one group may depend on each other; there are {n_groups} groups. Pairs within "
            "a group are left out of the debiased values, and standard errors come from sums over "
            "the groups."
        )
    return f"<dl>{''.join(f'<dt>{t}</dt><dd>{words}</dd>' for t, words in entries.items())}</dl>"


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
