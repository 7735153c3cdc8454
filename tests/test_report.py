"""The page: complete, the same every time, harmless, and good in a browser."""

import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from shared import sample

import ckce
from ckce._report.svg import Axis, shortened

Y, Q = sample(300, 4)
SHARP = Q**2 / (Q**2).sum(axis=1, keepdims=True)
MODELS = {"honest": Q, "sharp": SHARP}
SECTIONS = [
    "comparison",
    "models",
    "ckce-with-intervals",
    "reliability",
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
    assert "script" not in page.tags
    assert page.tags.count("svg") == 1 + 2 + 2 + 1


def test_one_model():
    page = ckce.report(Y, Q)
    assert Reader(page.html).ids == [s for s in SECTIONS if s not in ("comparison", "sensitivity")]
    assert page.headline == "There is no evidence that model is miscalibrated"
    over = ckce.report(Y, {"sharp": SHARP}).headline
    assert re.fullmatch(r"sharp is miscalibrated, and overconfident by \d+\.\d points", over)


def test_numbers_are_those_of_the_library():
    data = json_of(ckce.report(Y, MODELS, level=0.9, kernel="gaussian", command="make it").html)
    comparison = ckce.compare(Y, MODELS, level=0.9, kernel="gaussian")
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
    assert model["debiased"] == expected["ckce_debiased"]
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


def test_names_are_escaped():
    classes = [EVIL, "b", "c", "d"]
    page = ckce.report(
        np.array(classes)[Y],
        {EVIL: Q, f"{EVIL}2": SHARP},
        labels=classes,
        title=EVIL,
        command=EVIL,
        sensitivity=False,
    )
    reader = Reader(page.html)
    assert reader.open == []
    assert "script" not in reader.tags
    assert not re.search(r"[\x00\x1b\u202e]", page.html)
    assert json_of(page.html)["models"][0]["name"] in (EVIL, f"{EVIL}2")


def test_a_label_of_probability_zero():
    q = Q.copy()
    q[0] = np.eye(4)[(Y[0] + 1) % 4]
    page = ckce.report(Y, {"a": q, "b": Q}, sensitivity=False)
    assert "∞" in page.html
    losses = {model["name"]: model["log_loss"] for model in json_of(page.html)["models"]}
    assert losses["a"] is None
    assert losses["b"] == ckce.log_loss(Y, Q)


def test_labels_may_differ_between_models():
    truths = {"a": Y, "b": Y[::-1]}
    page = ckce.report(truths, {"a": Q, "b": SHARP}, sensitivity=False)
    data = {model["name"]: model for model in json_of(page.html)["models"]}
    assert data["b"]["accuracy"] == ckce.accuracy(Y[::-1], SHARP)


def test_five_models_of_a_thousand_classes_fit_into_500_kB():
    q = np.random.default_rng(0).dirichlet(np.ones(1000), 60)
    y = np.arange(60) * 7
    models = {f"model {k}": q ** (1 + k / 9) for k in range(5)}
    models = {name: p / p.sum(axis=1, keepdims=True) for name, p in models.items()}
    names = [f"class {k}" for k in range(1000)]
    page = ckce.report(np.array(names)[y], models, labels=names)
    assert len(page.html.encode()) < 500_000
    assert "992 others" in page.html


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
    assert shortened("abcdefghij", 5) == "ab…ij"
    assert shortened("abc", 5) == "abc"


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
    for width in (1100, 400):  # nothing sticks out, on a phone neither
        tab.set_viewport_size({"width": width, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.emulate_media(media="print", color_scheme=theme)
    assert tab.evaluate(page_colour) == "rgb(255, 255, 255)"
    assert tab.screenshot(full_page=True).startswith(b"\x89PNG")
    context.close()
