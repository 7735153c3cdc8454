"""The pages: their code runs, their links lead somewhere, their English is plain."""

import argparse
import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import fences
import pytest

import ckce
from ckce._cli.parser import make_parser

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
GUIDE = sorted((ROOT / "docs").glob("*.md"))
PAGES = [README, *GUIDE]
OTHERS = sorted(
    path for folder in (".", "studies", "benchmarks") for path in (ROOT / folder).glob("*.md")
)
MARKDOWN = sorted({*PAGES, *OTHERS})
GALLERY = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))


def named(path):
    return str(path.relative_to(ROOT))


def without_numbers(text):
    return re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?|\binf\b|-{2,}", "#", " ".join(text.split()))


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(path):
    with fences.folder():
        printed = fences.run(path.read_text())
    for block, output in printed:
        assert without_numbers(block.text) == without_numbers(output), f"line {block.line}"


FOREIGN = [
    pytest.param(block, id=f"{named(path)}:{block.line}")
    for path in PAGES
    for block in fences.foreign(path.read_text())
]


@pytest.mark.parametrize("block", FOREIGN)
def test_code_for_foreign_libraries_runs(block):
    for library in sorted(block.needs & fences.FOREIGN):
        pytest.importorskip(library)
    with fences.folder():
        fences.execute(block, fences.prelude())


def test_a_block_that_fails_is_seen():
    with fences.folder(), pytest.raises(NameError):
        fences.run("```python\nnothing\n```\n")
    with fences.folder():
        [(block, output)] = fences.run("```python\nprint('one 1')\n```\n\n```text\ntwo 2\n```\n")
    assert without_numbers(block.text) != without_numbers(output)


# Links.

LINK = re.compile(r"\]\((?!\w+:)([^)\s]*)\)")


def anchors(path):
    """The anchors of the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        yield plain.strip().replace(" ", "-")


def broken(path, link):
    """Why a link leads nowhere, or None."""
    target, _, anchor = link.partition("#")
    page = path if not target else (path.parent / target)
    if target.startswith(("gallery/", "docs/gallery/")):
        page = ROOT / "examples" / "gallery" / Path(target).name.replace("index", "README.rst")
        page = page if page.suffix else page.with_suffix(".py")
    if not page.exists():
        return f"{link}: no such file"
    if anchor and anchor not in anchors(page):
        return f"{link}: no such heading"
    return None


@pytest.mark.parametrize("path", MARKDOWN, ids=named)
def test_links_lead_somewhere(path):
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert [why for link in LINK.findall(text) if (why := broken(path, link))] == []


def test_a_broken_link_is_seen():
    assert broken(README, "docs/nothing.md")
    assert broken(README, "docs/comparing.md#nothing")
    assert broken(ROOT / "docs" / "index.md", "gallery/plot_99_nothing")
    assert broken(ROOT / "docs" / "index.md", "gallery/index") is None


# English: patterns that were taken out of the pages and must not come back.

PATTERNS = {
    "a genitive without its noun, or in front": r"(?<=[.:;] )Of [a-z][^.]*\.|^Of [a-z][^.]*\.",
    '"what" as a subject': r"(?:^|(?<=[.;] ))What [^.?!|]*\b(?:is|are|has|does|cannot|stays|goes|comes)\b[^?|]*?\.",
    '"for" as a conjunction': r", for (?:it|they|there|this|these|those|that|its|we|you|nothing|addition)\b",
    "archaic order": r"\b(?:told apart|are not told|thereof|whereof|be it|of which those|nor does)\b",
    "a private dialect": r"\bholds a state that cannot be\b|\b[Bb]andwidths of their own cost\b",
}


def prose(path):
    """The sentences of a page, paragraph by paragraph: no code, tables, formulas or headings."""
    text = path.read_text()
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*] |\d+\. )", text):
        if not paragraph.startswith(("    ", "|", "#")):
            yield " ".join(paragraph.replace("**", "").strip(" -*\n").split())


def paragraphs(text):
    """The paragraphs and entries of a docstring, without examples."""
    text = inspect.cleandoc(text or "").partition("Examples\n---")[0]
    joined: list[str] = []
    depth = None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip()) if line.strip() else None
        if indent is not None and indent == depth:
            joined[-1] += " " + line.strip()
        elif indent is not None:
            joined.append(line.strip())
        depth = indent
    return joined


def public_docstrings():
    """Public names and their methods, with the paragraphs of their docstrings."""
    for name in ckce.__all__:
        thing = getattr(ckce, name)
        yield name, paragraphs(thing.__doc__)
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and getattr(value, "__doc__", None):
                    yield f"{name}.{member}", paragraphs(value.__doc__)


def offences(paragraphs):
    return [
        (rule, found[0])
        for text in paragraphs
        for rule, pattern in PATTERNS.items()
        for found in re.finditer(pattern, text)
    ]


@pytest.mark.parametrize("path", MARKDOWN, ids=named)
def test_pages_are_in_plain_english(path):
    assert offences(prose(path)) == []


@pytest.mark.parametrize("path", GALLERY, ids=named)
def test_examples_are_in_plain_english(path):
    comments = " ".join(re.findall(r"^# (?!%%)(.*)$", path.read_text(), re.MULTILINE))
    title = ast.get_docstring(ast.parse(path.read_text()))
    assert offences([comments, *paragraphs(title)]) == []


def test_docstrings_are_in_plain_english():
    found = {name: offences(text) for name, text in public_docstrings()}
    assert len(found) > len(ckce.__all__)
    assert {name: hits for name, hits in found.items() if hits} == {}


@pytest.mark.parametrize(
    "sentence",
    [
        "Of all intervals.",
        "It was measured. Of equal maxima the first is taken.",
        "What does not fit is refused.",
        "They agree to 1e-12, for addition in another order rounds differently.",
        "Models are not told apart.",
    ],
)
def test_the_style_check_finds(sentence):
    assert offences([sentence])


def test_the_help_of_the_command_line_is_in_plain_english():
    parsers = [make_parser()]
    helps = []
    while parsers:
        for action in parsers.pop()._actions:
            helps.append(action.help or "")
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
    assert len(helps) > 100
    assert [text for text in helps if re.match("(?:of|what) ", text)] == []


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 150


# The site.


def test_the_gallery_has_a_title_and_a_picture_each():
    assert len(GALLERY) >= 10
    for path in GALLERY:
        title, line = ast.get_docstring(ast.parse(path.read_text())).splitlines()[:2]
        assert set(line) == {"="}, path.name
        assert len(line) >= len(title), path.name
        assert "plt.show()" in path.read_text(), path.name


def test_the_requirements_of_the_site_are_an_extra():
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    conf = (ROOT / "docs" / "conf.py").read_text()
    for package in ("furo", "myst-parser", "numpydoc", "sphinx-copybutton", "sphinx-gallery"):
        assert any(requirement.startswith(package) for requirement in extras["docs"])
        assert package.replace("-", "_") in conf


@pytest.mark.skipif(importlib.util.find_spec("codespell_lib") is None, reason="needs codespell")
def test_spelling():
    files = [*map(str, MARKDOWN), str(ROOT / "python"), str(ROOT / "examples")]
    run = subprocess.run(
        [sys.executable, "-m", "codespell_lib", *files], capture_output=True, text=True
    )
    assert run.stdout == ""
