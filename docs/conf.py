"""The site: ``python -m sphinx -W --keep-going -n docs site``, offline, warnings are errors.

Three kinds of pages are made while it is built, and none of them is kept under version control:
``api/`` from the public names of the package, ``gallery/`` by running ``examples/gallery``, and
``project/`` out of the Markdown files elsewhere in the repository.
"""

import inspect
import os
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import roles
from docutils.utils.math import MathError, latex2mathml
from sphinx.roles import XRefRole
from sphinx.util import logging

import ckce

DOCS = Path(__file__).parent
ROOT = DOCS.parent
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

project = "ckce"
author = METADATA["authors"][0]["name"]
project_copyright = author
version = release = ckce.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["gallery/README.rst", "sg_execution_times.rst", "**/sg_execution_times.rst"]
default_role = "name"
highlight_language = "text"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]

# --- looks
html_theme = "furo"
html_title = f"ckce {release}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f6fa8"},
    "dark_css_variables": {"color-brand-primary": "#7fb8de", "color-brand-content": "#8cc4ea"},
}
pygments_style = "tango"
pygments_dark_style = "monokai"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# --- the reference
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have the types
autodoc_member_order = "bysource"
autodoc_mock_imports = [name for name in ("dask", "torch", "torchmetrics") if not find_spec(name)]
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
# Names of other libraries: nothing is downloaded to look them up.
nitpick_ignore_regex = [
    ("py:.*", r"(numpy|np|pandas|matplotlib|sklearn|torch|torchmetrics|dask)(\..*)?"),
    ("py:.*", r"(collections|typing)(\..*)?"),
]

# --- the gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "min_reported_time": 3600,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": False,
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib",),
    "plot_gallery": True,
    "capture_repr": (),
    "default_thumb_file": str(DOCS / "_static" / "home.png"),
    "write_computation_times": False,
}

# --- pages out of files elsewhere in the repository
PAGES = {path.name: f"project/{path.stem.lower()}" for path in ROOT.glob("*.md")}
PAGES |= {
    f"studies/{path.name}": f"project/{path.stem.lower()}" for path in ROOT.glob("studies/*.md")
}
PAGES |= {"benchmarks/RESULTS.md": "project/benchmarks", "tests/BROKEN.md": "project/broken"}
PAGES |= {"README.md": "index"}
SOURCES = {page: source for source, page in PAGES.items() if page != "index"}
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)((?:#[^)\s]*)?\))")

# The groups of the reference: rooms of the package and their headings. Others come last.
HEADINGS = {
    "_metrics": "Metrics of one model",
    "_compare": "Several models",
    "_reliability": "Reliability diagrams",
    "_report": "Reports",
    "_stream": "Data in batches",
    "_scan": "Files",
    "_methods": "Methods",
    "_problem": "Settings",
}


def write(path: Path, text: str) -> None:
    """Write a file if that changes it, so that a second build does nothing."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def reference_index() -> str:
    """The list of all public names in their groups, each with a page of its own."""
    groups: dict[str, list[str]] = {heading: [] for heading in [*HEADINGS.values(), "Other"]}
    for room, names in ckce._ROOMS.items():
        groups[HEADINGS.get(room.split(".")[0], "Other")] += names
    lines = ["API reference", "=============", "", ".. currentmodule:: ckce", ""]
    lines += ["Labels come first, as in scikit-learn. Options are passed by name.", ""]
    for heading, names in groups.items():
        if not names:
            continue
        kinds = {True: [], False: []}
        for name in names:
            kinds[inspect.isclass(getattr(ckce, name))].append(name)
        lines += [heading, "-" * len(heading), "", ".. autosummary::", "   :toctree: .", ""]
        lines += [f"   {name}" for name in sorted(kinds[False]) + sorted(kinds[True])] + [""]
    lines += ["Other libraries", "---------------", "", ".. toctree::", "   :maxdepth: 1", ""]
    lines += [f"   {module}" for module in MODULES]
    return "\n".join(lines) + "\n"


MODULES = {
    "integrations.sklearn": "scikit-learn: scorers",
    "integrations.torch": "torch: a training loss",
    "integrations.torchmetrics": "torchmetrics: a metric",
    "integrations.dask": "Dask: arrays and directories of files",
    "reference": "The paper in plain NumPy",
}
# Names that differ in case only need different files where the file system does not tell them apart.
autosummary_filename_map = {
    f"ckce.{name}": f"ckce.{name}-class"
    for name in ckce.__all__
    if inspect.isclass(getattr(ckce, name))
}


def prune(folder: str, names: set[str]) -> None:
    """Remove what an older build has left: pages of names and files that are no more."""
    for path in (DOCS / folder).glob("*.*"):
        if path.stem not in names:
            path.unlink()


PUBLIC = {autosummary_filename_map.get(f"ckce.{name}", f"ckce.{name}") for name in ckce.__all__}
prune("api", PUBLIC | set(MODULES) | {"index"})
prune("project", {Path(page).name for page in SOURCES})
write(DOCS / "api" / "index.rst", reference_index())
for module, heading in MODULES.items():
    text = f"{heading}\n{'=' * len(heading)}\n\n.. automodule:: ckce.{module}\n   :members:\n"
    write(DOCS / "api" / f"{module}.rst", text)
for page, source in SOURCES.items():
    write(DOCS / f"{page}.md", (ROOT / source).read_text())


def resolve_links(app, docname, content):
    """Point links between files of the repository to their pages."""
    here = Path(SOURCES.get(docname, f"docs/{docname}.md"))
    if not (ROOT / here).exists() or not (DOCS / f"{docname}.md").exists():
        return

    def page(link):
        target = os.path.normpath(here.parent / link[2])
        found = DOCS / f"{PAGES[target]}.md" if target in PAGES else ROOT / target
        return link[1] + os.path.relpath(found, (DOCS / docname).parent) + link[3]

    content[0] = LINK.sub(page, content[0])
    if (
        docname == "index"
    ):  # pages that no list names come at the end of the guide or the background
        known = set(re.findall(r"^[\w/]+$", content[0], re.MULTILINE)) | {"index"}
        guide = sorted(path.stem for path in DOCS.glob("*.md") if path.stem not in known)
        background = sorted(page for page in SOURCES if page not in known)
        content[0] = content[0].replace("% other pages of the guide", "\n".join(guide))
        content[0] = content[0].replace("% other studies", "\n".join(background))


def escape_norms(app, what, name, obj, options, lines):
    """Let docstrings say |q|^2: a bar is no substitution, except in code and formulas."""
    inside = None  # the indentation of the directive that we are in
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if inside is not None and line.strip() and indent <= inside:
            inside = None
        if inside is None and re.match(r"\s*\.\. \w+::|.*::$", line):
            inside = indent
        elif inside is None and not re.match(r"\s*(>>>|\.\.\.) ", line):
            parts = re.split(r"(``.*?``|`.*?`)", line)
            parts[::2] = [re.sub(r"(?<!\\)\|", r"\\|", part) for part in parts[::2]]
            lines[number] = "".join(parts)


def name_role(role, rawtext, text, lineno, inliner, options=None, content=None):
    """`estimate` in a docstring: a link if that is a public name, else code."""
    name = text.removeprefix("ckce.")
    here = inliner.document.settings.env.ref_context.get("py:class")
    if hasattr(getattr(ckce, here or "", None), name):
        name = f"{here}.{name}"
    first, _, member = name.partition(".")
    thing = getattr(ckce, first) if first in ckce.__all__ else None
    if not callable(getattr(thing, member, None) if member else thing):
        return [nodes.literal(rawtext, text)], []
    return XRefRole(warn_dangling=False)(
        "py:obj", rawtext, f"{text} <ckce.{name}>", lineno, inliner
    )


def mathml(translator, node: nodes.Element) -> None:
    """Formulas as MathML, which browsers draw without a script."""
    block = isinstance(node, nodes.math_block)
    source = node.astext()
    if block and r"\\" in source:
        source = r"\begin{align*}" + source + r"\end{align*}"
    try:
        tree = latex2mathml.tex2mathml(source.replace(r"\dots", r"\ldots"), as_block=block)
    except MathError as error:
        logging.getLogger(__name__).warning("%s in %s", error, source, location=node)
        tree = translator.encode(source)
    translator.body.append(f'<div class="math">{tree}</div>' if block else tree)
    raise nodes.SkipNode


def setup(app):
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
    roles.register_local_role("name", name_role)
    app.connect("autodoc-process-docstring", escape_norms, priority=100)
    app.connect("source-read", resolve_links)
    app.connect("env-get-outdated", lambda *_: ["index"])  # its lists grow with the pages


html_math_renderer = "mathml"
