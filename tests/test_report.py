"""The page: complete, the same every time, harmless, and good in a browser."""

import base64
import hashlib
import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from shared import sample

import ckce
from ckce._plots.style import COLOURS, MARKERS
from ckce._report import pictures
from ckce._report.svg import Axis

Y, Q = sample(300, 4)
SHARP = Q**2 / (Q**2).sum(axis=1, keepdims=True)
MODELS = {"honest": Q, "sharp": SHARP}
SECTIONS = [
    "comparison",
    "models",
    "what-to-do-next",
    "ckce-with-intervals",
    "reliability",
    "where-it-is-off",
    "classes",
    "sensitivity",
    "how-to-read-it",
    "reproduce",
]
EVIL = "</pre><script>alert(1)</script>\"'&\x00\x1b[31m\u202e"


class Reader(HTMLParser):
    """Elements that are open, closed and nested as they should be."""

    void = ("meta", "line", "rect", "circle", "path")

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.tags, self.links = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        if tag not in self.void or (tag != "meta" and not self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def json_of(page):
    return json.loads(unescape(re.search(r"as JSON</summary><pre>(.*?)</pre>", page, re.S)[1]))


def test_all_sections_are_there_and_nothing_is_fetched():
    page = Reader(ckce.report(Y, MODELS).html)
    assert page.ids == SECTIONS
    assert page.open == []
    assert page.links == []
    assert page.tags.count("script") == 1
    # Two strips and their scale, two reliability diagrams, six curves of each model.
    assert page.tags.count("svg") == 3 + 2 + 12
    assert page.tags.count("table") == 1 + 2 + 1  # models, classes of each, sensitivity


def test_one_model():
    page = ckce.report(Y, Q)
    expected = [s for s in SECTIONS if s not in ("comparison", "sensitivity")]
    assert Reader(page.html).ids == ["numbers" if s == "models" else s for s in expected]
    assert page.headline == (
        "The test finds model miscalibrated (p = 0.001), though its interval reaches 0"
    )
    untested = ckce.report(Y, Q, test=False).headline
    assert untested == "There is no sign that model is miscalibrated"
    over = ckce.report(Y, {"sharp": SHARP}).headline
    assert re.fullmatch(r"sharp is miscalibrated, and overconfident by \d+\.\d points", over)


def test_numbers_are_those_of_the_library():
    page = ckce.report(Y, MODELS, level=0.9, kernel="gaussian").made_by("make it")
    data = json_of(page.html)
    comparison = ckce.compare(Y, MODELS, level=0.9, kernel="gaussian", test=True)
    expected = comparison.to_dict()
    assert data["command"] == "make it"
    assert data["signature"] == comparison.signature
    assert [{k: m[k] for k in expected["models"][0]} for m in data["models"]] == expected["models"]
    assert data["pairs"] == expected["pairs"]
    assert len(data["sensitivity"]["settings"]) == 9
    curve = ckce.reliability_diagram(Y, Q, level=0.9).curves[0]
    assert data["models"][0]["reliability"]["counts"] == curve.counts.tolist()
    e = ckce.estimate(Y, Q, kernel="gaussian", bandwidth=comparison.bandwidth)
    assert data["models"][0]["classes"][0]["share"] == e.attribution()[0].share


def test_one_model_has_the_numbers_of_evaluate():
    data = json_of(ckce.report(Y, {"q": Q}, bandwidth=0.7).html)
    expected = ckce.evaluate(Y, Q, bandwidth=0.7).to_dict()
    (model,) = data["models"]
    assert model["ckce_debiased"] == expected["ckce_debiased"]
    assert model["mean_confidence"] == pytest.approx(expected["mean_confidence"], rel=1e-12)
    assert data["signature"] == expected["ckce_signature"]


def test_the_same_bytes_every_time(tmp_path):
    first = ckce.report(Y, MODELS, n_threads=1)
    second = ckce.report(Y, MODELS, n_threads=2)
    assert first.html == second.html
    first.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == second.html.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "page.html").mkdir()
    with pytest.raises(OSError, match=r"page\.html"):
        ckce.report(Y, Q).save(tmp_path / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_one_model_is_not_ranked():
    text = re.sub(r"<details>.*", "", ckce.report(Y, Q).html.split("</style>")[1], flags=re.S)
    assert not re.search(r"\brank|\bpairs\b", text)
    assert "the order of the table" in ckce.report(Y, MODELS).html


def test_title_subtitle_p_value_and_what_to_do_next():
    page = ckce.report(Y, {"sharp": SHARP}, title="Nets\ndigits, 3 May 2026", test=99)
    assert "<p>Nets</p><p>digits, 3 May 2026</p><h1>" in page.html
    assert json_of(page.html)["subtitle"] == "digits, 3 May 2026"
    t = ckce.calibration_test(Y, SHARP, n_resamples=99)
    assert json_of(page.html)["models"][0]["p_value"] == t.p_value
    assert f"{t.p_value:.4f}</td>" in page.html
    assert re.search(r"Overconfident by \d+\.\d points: try temperature scaling", page.html)
    assert "p-value</th>" not in ckce.report(Y, SHARP, test=False).html


def test_few_rows_have_no_verdict():
    page = ckce.report(Y[:49], Q[:49])
    assert page.headline == "Too few rows to tell whether model is calibrated"
    assert "Too few rows to tell: collect at least 50" in page.html
    assert (
        "too few rows to tell" in ckce.report(Y[:49], {k: q[:49] for k, q in MODELS.items()}).html
    )
    assert "oo few rows" not in ckce.report(Y[:50], Q[:50]).html


def test_labels_of_pictures_name_the_model():
    labels = re.findall('aria-label="(.*?)"', ckce.report(Y, MODELS, sensitivity=False).html)
    for name in MODELS:
        assert f"reliability diagram of {name}" in labels
        assert any(label.startswith(f"debiased CKCE of {name}: ") for label in labels)


def test_colours_are_those_of_the_plots_and_do_not_repeat():
    style = files("ckce._report").joinpath("style.css").read_text()
    for part in (style.split("@media")[0], style.split("@media")[1]):  # light, dark
        found = dict(re.findall(r"--c(\d+): (#\w+)", part))
        assert len(set(found.values())) == len(found) == pictures.COLOURS == 14
    light = dict(re.findall(r"--c(\d+): (#\w+)", style.split("@media")[0]))
    assert tuple(light.values()) == COLOURS
    assert len(set(zip(COLOURS, MARKERS, strict=True))) == 14


@pytest.mark.parametrize("seed", [0, 1])
def test_intervals_are_cut_at_0_and_kept_in_the_json(seed):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(3), 400)
    y = (rng.random((400, 1)) > q.cumsum(axis=1)[:, :2]).sum(axis=1)
    page = ckce.report(y, q)
    (model,) = json_of(page.html)["models"]
    assert model["ckce_low"] < 0 < model["ckce_high"]
    assert (model["ckce_debiased"] + 1.96 * model["ckce_se"] < 0) == (seed == 1)  # around 0 then
    shown = re.search(r"<td[^>]*>(\S+) to (\S+)</td>", page.html)
    assert float(shown[1]) == 0.0
    assert float(shown[2]) == pytest.approx(model["ckce_high"], abs=1e-4)


def test_weights():
    weights = np.arange(300) % 3
    data = json_of(ckce.report(Y, MODELS, sample_weight=weights, sensitivity=False).html)
    c = ckce.compare(Y, MODELS, sample_weight=weights)
    assert data["models"][0]["ckce_debiased"] == c.models[0].ckce_debiased


def test_names_are_escaped():
    classes = [EVIL, "b", "c", "d"]
    page = ckce.report(
        np.array(classes)[Y],
        {EVIL: Q, f"{EVIL}2": SHARP},
        labels=classes,
        title=EVIL,
        sensitivity=False,
    ).made_by(EVIL)
    reader = Reader(page.html)
    assert reader.open == []
    assert reader.tags.count("script") == 1
    assert not re.search(r"[\x00\x1b\u202e]", page.html)
    assert json_of(page.html)["models"][0]["name"] in (EVIL, f"{EVIL}2")


def test_a_label_of_probability_zero():
    q = Q.copy()
    q[0] = np.eye(4)[(Y[0] + 1) % 4]
    page = ckce.report(Y, {"a": q, "b": Q}, sensitivity=False)
    assert "inf</td>" in page.html
    losses = {model["name"]: model["log_loss"] for model in json_of(page.html)["models"]}
    assert losses["a"] is None
    assert losses["b"] == ckce.log_loss(Y, Q)


def test_labels_may_differ_between_models():
    truths = {"a": Y, "b": Y[::-1]}
    page = ckce.report(truths, {"a": Q, "b": SHARP}, sensitivity=False)
    data = {model["name"]: model for model in json_of(page.html)["models"]}
    assert data["b"]["accuracy"] == ckce.accuracy(Y[::-1], SHARP)


def test_nothing_runs_but_the_script_of_the_page():
    html = ckce.report(Y, Q, test=False).html
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.S)
    assert script == files("ckce._report").joinpath("hover.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in html


@pytest.mark.parametrize("m", [2, 3, 10])
def test_three_models_fit_into_400_kB(m):
    y, q = sample(700, m, 1)
    models = {f"model {k}": q**k / (q**k).sum(axis=1, keepdims=True) for k in (1, 2, 3)}
    page = ckce.report(y, models, test=False)
    assert len(page.html.encode()) < 400_000
    pictures = {2: 1, 3: 4, 10: 6}[m]  # a curve; arrows and three classes; three ranks and classes
    assert Reader(page.html).tags.count("svg") == 4 + 3 + 3 * pictures
    for model in page.data["models"]:
        where = model["where"]
        drawn = len(where["curves"]) + len(where["classes"]) + (where["arrows"] is not None)
        assert drawn == pictures
        assert all(region["words"][1:] in page.html for region in where["worst_regions"])


def test_the_headline_is_in_units_of_the_brier_score():
    y, q = sample(1500, 2, 1)
    off = np.clip(q**3 / (q**3).sum(axis=1, keepdims=True), 0, 1)
    found = ckce.miscalibration(y, off)
    assert found.shown
    page = ckce.report(y, off, test=False)
    html = page.html.replace("\N{NO-BREAK SPACE}", " ")
    assert f'<p class="lead">{found.headline} Errors finer' in html
    both = ckce.report(y, {"off": off, "q": q}, sensitivity=False)
    assert "<li><b>off</b>: Perfect recalibration would lower the Brier score by" in both.html
    few = ckce.report(y[:40], q[:40], test=False)
    assert "lead" not in few.html.split("</style>")[1]
    assert "Where it is off" not in few.html


def test_a_test_that_rejects_is_not_contradicted():
    # The test finds it, the interval of the size does not.
    page = ckce.report(Y, Q)
    assert page.data["models"][0]["p_value"] < 0.05
    assert page.data["models"][0]["where"]["miscalibration"]["low"] < 0
    seen = page.html.partition("<details>")[0]
    assert "This sample cannot tell how large the miscalibration is: at most" in seen
    assert "No miscalibration is shown" not in seen


def test_five_models_of_a_thousand_classes_fit_into_500_kB():
    q = np.random.default_rng(0).dirichlet(np.ones(1000), 60)
    y = np.arange(60) * 7
    models = {f"model {k}": q ** (1 + k / 9) for k in range(5)}
    models = {name: p / p.sum(axis=1, keepdims=True) for name, p in models.items()}
    names = [f"class {k}" for k in range(1000)]
    page = ckce.report(np.array(names)[y], models, labels=names)
    assert len(page.html.encode()) < 500_000
    assert "992 others" in page.html


LONG = {
    f"resnet50-imagenet21k-finetuned-cifar100-lr0.00{k:02d}-wd5e-4-seed{k:04d}-epoch200": 1 + k / 9
    for k in range(9)
}


def test_many_models_with_long_names_fold():
    models = {name: Q**k / (Q**k).sum(axis=1, keepdims=True) for name, k in LONG.items()}
    found = ckce.report(Y, models, test=False, sensitivity=False)
    html = found.html.split("</style>")[1].split("<details><summary>All numbers")[0]
    assert Reader(found.html).open == []
    titles = re.findall(r'<abbr title="(.*?)">(.*?)</abbr>', html)
    assert dict(titles).keys() <= LONG.keys()
    assert all(len(words) <= 32 for _, words in titles)
    # Full names are in the table and in what is said to who points at them.
    seen = re.sub(r'(title|aria-label)="[^"]*"|<title>.*?</title>|<table.*?</table>', "", html)
    assert not any(name in seen for name in LONG)
    assert all(f">{name}</th>" in html for name in LONG)
    for section in ("comparison", "what-to-do-next", "reliability", "where-it-is-off", "classes"):
        part = re.search(f'<section id="{section}">.*?</section>', html, re.S)[0]
        assert part.count('<details class="more"><summary>5 more</summary>') == 1
    assert "pairs differ at equal predictions" in html.split("<li>")[1]
    assert 'class="more"' not in ckce.report(Y, MODELS, sensitivity=False).html


def test_sensitivity_has_no_table_where_there_is_no_verdict():
    close = {"a": Q, "b": Q**1.001 / (Q**1.001).sum(axis=1, keepdims=True)}
    part = ckce.report(Y, close, test=False).html.partition('<section id="sensitivity">')[2]
    assert "<table" not in part.partition("</section>")[0]
    part = ckce.report(Y, MODELS, test=False).html.partition('<section id="sensitivity">')[2]
    assert part.startswith("<h2>Sensitivity</h2><p>The verdict")
    assert "<table" in part.partition("</section>")[0]


def test_a_constant_model_is_nowhere_off():
    constant = np.tile(np.bincount(Y) / len(Y), (len(Y), 1))
    html = ckce.report(Y, {"q": Q, "constant": constant}, test=False, sensitivity=False).html
    part = html.partition("<h3>constant</h3>")[2]
    assert part.startswith("<p>The model makes one prediction, whatever the case.</p>")
    assert html.count("The model makes one prediction") == 1
    aside = np.tile([0.7, 0.1, 0.1, 0.1], (len(Y), 1))
    part = ckce.report(Y, aside, test=False).html.partition('<section id="where-it-is-off">')[2]
    assert "whatever the case. When it says" in part


def test_ranks_are_drawn_once():
    order = np.argsort(-Q, axis=1)
    y = np.argmax(order == Y[:, None], axis=1)
    ranks = [f"rank {k}" for k in range(1, 5)]
    ranked = np.take_along_axis(Q, order, axis=1)
    page = ckce.report(np.array(ranks)[y], ranked, labels=ranks, test=False)
    titles = re.findall("<figcaption>(.*?) <", page.html.partition('id="where-it-is-off"')[2])
    most = ("predicted", "second most probable", "third most probable")
    assert titles[:4] == [*(f"the {words} class" for words in most), "rank 4"]
    assert "class rank" not in page.html


def test_a_number_keeps_its_unit():
    page = ckce.report(Y, MODELS, sensitivity=False, title="a 5 % test")
    seen, _, reproduce = page.html.partition('<section id="reproduce">')
    assert "95\N{NO-BREAK SPACE}% interval" in seen
    assert re.findall(r"\d %", seen.partition("<h1>")[2]) == []
    assert "\N{NO-BREAK SPACE}" not in reproduce
    assert json_of(page.html) == page.data


def test_names_break_behind_underscores():
    models = {"model_of_honest_people": Q, "model_of_sharp_people": SHARP}
    html = ckce.report(Y, models, test=False, sensitivity=False).html
    for start in ("<h1>", "<tbody>", '<div class="row">', "<figcaption>"):
        assert "model_<wbr>of_<wbr>" in html.partition(start)[2][:300]
    # Nothing but text has them.
    assert not re.search(r"<[^<>]*<wbr", html)


def test_a_scale_has_more_than_one_number():
    ends = {"ckce_low": -0.0004, "ckce_high": 0.0004, "ckce": 0.0, "ckce_floor": 0.0003}
    model = SimpleNamespace(name="m", ckce_debiased=-0.0003, **ends)
    scale = pictures.forest([model], 0.95).rpartition("<svg")[2]
    assert scale.count("<text") >= 2
    nothing = SimpleNamespace(**{**vars(model), "ckce_low": -7e-17, "ckce_high": 7e-17})
    assert "(no sign)" in pictures.forest([nothing], 0.95)


def test_numbers_of_small_bins_do_not_overlap():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 279)
    svg = str(drawn(rng.integers(0, 3, 279), q))
    boxes = [
        (float(x) - (28 if anchor == "end" else 0), float(y))
        for x, y, anchor in re.findall(
            r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)" class="tiny', svg
        )
    ]
    assert len(boxes) >= 3
    for (a, b), (c, d) in combinations(boxes, 2):
        assert abs(a - c) >= 28 or abs(b - d) >= 12


def test_the_band_of_one_bin_is_a_line():
    svg = str(drawn(Y, np.tile(np.bincount(Y) / len(Y), (len(Y), 1))))
    assert svg.count("whisker") == 1
    assert 'class="band' not in svg
    assert 'class="band' in str(drawn(Y, Q))


def drawn(y, q):
    curve = ckce.reliability_diagram(y, q, strategy="quantile").curves[0]
    return pictures.reliability(curve, 0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


def test_a_rare_class_is_not_in_a_corner():
    rng = np.random.default_rng(0)
    truth = rng.beta(1, 80, 3000)
    html = ckce.report((rng.random(3000) < truth).astype(int), truth, test=False).html
    assert re.search(r"The axes go from 0\.9\d? to 1\.00?, where the predictions are", html)
    assert "The axes go" not in ckce.report(Y, Q, test=False).html
    diagrams = re.findall(r'<svg viewBox="0 0 312 .*?</svg>', html, re.S)
    assert len(diagrams) == 2
    for svg in diagrams:
        curve = re.search(r'd="(M[^"]*)" class="curve', svg)[1]
        across = [float(x) for x in re.findall(r"[ML]([\d.]+) ", curve)]
        assert max(across) - min(across) > 100
        assert all(46 <= x <= 296 for x in across)
        for left, width in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', svg):
            assert float(left) >= 46
            assert float(left) + float(width) <= 296.2
        words = re.findall(r'text-anchor="middle">([\d.]+)<', svg)
        assert len(words) == len(set(words)) >= 3


def test_small_ticks_differ():
    words = re.findall(r'middle">([-\d.]+)<', str(pictures._scale(Axis(-3e-6, 1.1e-4, 4, 96))))
    assert words == ["0.00000", "0.00005", "0.00010"]


def test_arguments():
    with pytest.raises(TypeError, match="sensitivity must be True or False"):
        ckce.report(Y, Q, sensitivity=1)
    with pytest.raises(ValueError, match="at least"):
        ckce.report(Y, {})


def test_axis():
    axis = Axis(-0.011, 0.083, 0, 100)
    assert axis.ticks() == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.08], abs=1e-15)
    assert axis(-0.011) == 0
    assert axis(0.083) == 100
    assert Axis(0.0, 0.0, 0, 1).ticks()  # nothing to show is no error


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


# Sizes of the text of all pictures as they are drawn; words that leave their picture.
_TEXT_SIZES = """[...document.querySelectorAll('svg text')].map(
  t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"""
_CLIPPED = """[...document.querySelectorAll('svg text')].filter(t => {
  const a = t.getBoundingClientRect(), b = t.closest('svg').getBoundingClientRect();
  return a.left < b.left - 1 || a.right > b.right + 1;
}).map(t => t.textContent)"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_in_a_browser(browser, tmp_path, theme):
    path = tmp_path / "page.html"
    ckce.report(Y, {**MODELS, "a name that is so long that it has to be broken": SHARP}).save(path)
    context = browser.new_context(color_scheme=theme, viewport={"width": 1100, "height": 800})
    tab = context.new_page()
    said, requested = [], []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: requested.append(request.url))
    tab.goto(path.as_uri())
    assert said == []
    assert requested == [path.as_uri()]
    for name in SECTIONS:
        assert tab.locator(f"section#{name} h2").is_visible()
    dark = "rgb(15, 19, 24)"
    page_colour = "getComputedStyle(document.body).backgroundColor"
    assert tab.evaluate(page_colour) == (dark if theme == "dark" else "rgb(255, 255, 255)")
    for width in (1100, 390):  # nothing sticks out, on a phone neither
        tab.set_viewport_size({"width": width, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        # The value that ranks the models is in sight, and all text of pictures can be read.
        cells = tab.locator("#models td:nth-child(2), #models td:nth-child(3)").all()
        assert len(cells) == 6
        assert all(
            cell.bounding_box()["x"] + cell.bounding_box()["width"] <= width for cell in cells
        )
        sizes = tab.evaluate(_TEXT_SIZES)
        assert min(sizes) >= 9
        assert tab.evaluate(_CLIPPED) == []
    # The table of models fits a laptop; elsewhere a shadow says that there is more.
    for width, fits in ((1280, True), (800, False), (390, False)):
        tab.set_viewport_size({"width": width, "height": 800})
        table = tab.locator("#models .scroll")
        assert table.evaluate("t => t.scrollWidth <= t.clientWidth") == fits
        assert "gradient" in table.evaluate("t => getComputedStyle(t).backgroundImage")
    tab.emulate_media(media="print", color_scheme=theme)
    assert tab.evaluate(page_colour) == "rgb(255, 255, 255)"
    tab.emulate_media(media="screen", color_scheme=theme)
    strip = tab.locator("#where-it-is-off .hit").nth(12)
    strip.scroll_into_view_if_needed()
    strip.hover()
    assert re.fullmatch(r"says 0\.\d+, is .* to .*", tab.locator("#say").inner_text())
    assert strip.locator(".dot").evaluate("d => getComputedStyle(d).visibility") == "visible"
    assert tab.screenshot(full_page=True).startswith(b"\x89PNG")
    context.close()


def test_without_script_everything_is_there(browser, tmp_path):
    path = tmp_path / "page.html"
    ckce.report(Y, Q, test=False).save(path)
    context = browser.new_context(java_script_enabled=False, offline=True)
    tab = context.new_page()
    tab.goto(path.as_uri())
    for name in ("reliability", "where-it-is-off", "classes", "reproduce"):
        assert tab.locator(f"section#{name} h2").is_visible()
    assert tab.locator("#where-it-is-off svg").count() == 6
    assert "says 0." in tab.locator("#where-it-is-off .hit title").first.text_content()
    context.close()
