"""The laws of the house: who may touch whom, and what every public name carries."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ckce
from ckce import _core, reference
from ckce._methods.auto import METHODS
from ckce._methods.fourier import SAMPLERS
from ckce._problem.kernels import KERNELS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "ckce"
CORE = ROOT / "cpp" / "core"
CORE_FILES = sorted(path for path in CORE.rglob("*") if path.suffix in (".hpp", ".cpp"))
PUBLIC = [getattr(ckce, name) for name in ckce.__all__]
FUNCTIONS = [thing for thing in PUBLIC if inspect.isfunction(thing)]

# Rooms of the package from the bottom up: a module may import from its own room and from lower ones.
ROOMS = [
    {"_cpu"},
    {"_core", "reference"},
    {"_input"},
    {"_config", "_methods", "_problem", "_results"},
    {"_metrics"},
    {"_compare", "_plots", "_reliability", "_scan", "_stream"},
    {"_report"},
    {"__init__"},
    {"_cli", "integrations"},
    {"__main__"},
]
FLOOR = {name: floor for floor, names in enumerate(ROOMS) for name in names}


def room(path):
    """The sub-package that a file belongs to, or its own name."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def imports(path):
    """Modules that a file imports when it is imported: (package, modules of ckce)."""
    foreign, own = set(), set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            foreign |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "ckce":
            own |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("ckce."):
            own.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom):
            foreign.add(node.module.split(".")[0])
    return foreign, own


def includes(path):
    return re.findall(r'#include\s*[<"]([^>"]+)[>"]', path.read_text())


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_dependencies_point_one_way(path):
    assert room(path) in FLOOR, "give the new room a floor in ROOMS"
    foreign, own = imports(path)
    if room(path) != "integrations":
        assert foreign - {"ckce"} <= {"numpy"} | sys.stdlib_module_names
    for name in own - {room(path)}:
        allowed = FLOOR.get(name, FLOOR["__init__"]) <= FLOOR[room(path)]
        assert allowed, f"{room(path)} must not import {name}"


def test_the_oracle_knows_nothing_of_the_package():
    foreign, own = imports(PACKAGE / "reference.py")
    assert own == set()
    assert foreign - {"numpy"} <= sys.stdlib_module_names
    for path in PACKAGE.rglob("*.py"):
        assert "reference" not in imports(path)[1]


def test_import_loads_numpy_and_the_standard_library_only():
    code = """
import json, sys
import numpy
before = set(sys.modules)
import ckce
names = {name.split(".")[0] for name in set(sys.modules) - before}
print(json.dumps(sorted(names - {"numpy"} - sys.stdlib_module_names)))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == ["ckce"]


@pytest.mark.parametrize("path", CORE_FILES, ids=lambda path: str(path.relative_to(CORE)))
def test_the_core_knows_no_python_and_no_files(path):
    for name in includes(path):
        assert not re.search(r"Python|pybind|numpy|bindings", name)
        assert name not in {"iostream", "fstream", "cstdio", "stdio.h", "filesystem", "omp.h"}
    text = path.read_text()
    assert not re.search(r"\bPy[A-Z_]\w+\(|\bpy::|\bstd::(cout|cerr)|\bgetenv\b|#pragma omp", text)


@pytest.mark.parametrize(
    "path", [p for p in CORE_FILES if p.suffix == ".hpp"], ids=lambda path: path.name
)
def test_a_header_opens_with_what_it_is(path):
    lines = path.read_text().splitlines()
    assert lines[0].startswith("// ")
    assert "#pragma once" in lines


def test_rooms_of_the_core():
    # Kernels and samplers are leaves: they see types, threads, products and random numbers only.
    allowed = {"types", "parallel", "products", "random", "elementary", "tile_products"}
    for room in ("kernels", "samplers"):
        for path in (CORE / room).iterdir():
            up = {Path(name).stem for name in includes(path) if name.startswith("../")}
            assert up <= allowed, path.name
            assert not any(
                name.startswith("../") and name.count("/") > 1 for name in includes(path)
            )


def test_kernels_are_the_same_everywhere():
    registry = (CORE / "kernels" / "registry.cpp").read_text()
    classes = set(re.findall(r"name == (\w+)::name", registry))
    names = {}
    for path in (CORE / "kernels").glob("*.hpp"):
        found = re.search(r'class (\w+) .*?char\* name = "(\w+)"', path.read_text(), re.DOTALL)
        if found:
            names[found[1]] = found[2]
            assert path.stem == found[2]  # the word is the file
    assert set(names) == classes
    assert set(names.values()) == set(KERNELS) == set(reference.KERNELS)


def test_samplers_are_the_same_everywhere():
    registry = (CORE / "samplers" / "registry.cpp").read_text()
    assert set(re.findall(r'sampler == "(\w+)"', registry)) == set(SAMPLERS)
    for name in SAMPLERS:
        assert (CORE / "samplers" / f"{name}.hpp").exists()


def test_the_word_is_the_file():
    for method in set(METHODS) - {"auto"}:
        places = [CORE / f"{method}.hpp", CORE / "features" / f"{method}.hpp"]
        assert any(place.exists() for place in places)
        assert (ROOT / "tests" / f"test_{method}.py").exists()
    for name in ("ckce", "jkce", "estimate"):
        assert (ROOT / "tests" / f"test_{name}.py").exists()


def test_the_stub_names_what_the_core_has():
    stub = ast.parse((PACKAGE / "_core.pyi").read_text())
    kinds = (ast.FunctionDef, ast.ClassDef)
    functions = {node.name for node in stub.body if isinstance(node, kinds)}
    constants = {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    compiled = {name for name in dir(_core._module) if not name.startswith("_")}
    assert functions | constants == compiled | {"LEVEL"}
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            fields = {
                member.target.id if isinstance(member, ast.AnnAssign) else member.name
                for member in node.body
            }
            members = dir(getattr(_core, node.name))
            assert fields == {name for name in members if not name.startswith("_")}


def test_no_arithmetic_shortcuts_in_the_build():
    build = (ROOT / "CMakeLists.txt").read_text() + (ROOT / "pyproject.toml").read_text()
    for flag in ("fast-math", "-Ofast", "unsafe-math", "finite-math", "march=native", "openmp"):
        assert flag.lower() not in build.lower()


def test_runtime_dependency_is_numpy():
    project = (ROOT / "pyproject.toml").read_text()
    found = re.search(r"^dependencies = \[(.*?)\]", project, re.MULTILINE | re.DOTALL)
    assert re.findall(r'"([\w-]+)', found[1]) == ["numpy"]


def test_versions_agree():
    project = (ROOT / "pyproject.toml").read_text()
    version = re.search(r'^version = "(.+)"', project, re.MULTILINE)[1]
    assert version == ckce.__version__


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_public_functions_are_documented(function):
    text = inspect.cleandoc(function.__doc__)
    sections = re.findall(r"^([A-Z]\w+)\n-{3,}$", text, re.MULTILINE)
    assert ">>> import ckce" in text
    assert "Examples" in sections
    parameters = inspect.signature(function).parameters
    if parameters:
        assert sections[:2] == ["Parameters", "Returns"]
        documented = text.split("Parameters\n")[1].split("Returns\n")[0]
        for name in parameters:
            assert re.search(rf"^[\w, ]*\b{name}\b", documented, re.MULTILINE), name


def test_public_classes_document_their_attributes():
    text = inspect.cleandoc(ckce.Estimate.__doc__)
    for name in ckce.Estimate.__dataclass_fields__:
        assert re.search(rf"^[\w, ]*\b{name}\b.* : ", text, re.MULTILINE), name


def test_metrics_take_labels_first_and_options_by_name():
    for function in (ckce.ckce, ckce.estimate, ckce.jkce):
        parameters = list(inspect.signature(function).parameters.values())
        assert [p.name for p in parameters[:2]] == ["y_true", "y_prob"]
        assert all(p.kind is p.KEYWORD_ONLY for p in parameters[2:])
    assert inspect.signature(ckce.ckce).parameters == inspect.signature(ckce.estimate).parameters


def test_all_is_what_is_public():
    assert sorted(ckce.__all__) == ckce.__all__
    names = {name for name, value in vars(ckce).items() if name[0] != "_"}
    modules = {name for name in names if inspect.ismodule(getattr(ckce, name))}
    assert names - modules == set(ckce.__all__)
    assert modules <= {"reference", "integrations"}


def test_no_paths_of_a_machine():
    pattern = re.compile(
        "/(" + "|".join(["ho" + "me", "wo" + "rk", "tm" + "p", "Use" + "rs"]) + ")/"
    )
    files = [p for p in ROOT.iterdir() if p.suffix in (".toml", ".txt", ".md", ".yaml")]
    for room in ("python", "cpp", "tests", "benchmarks", "examples"):
        files += [
            p for p in (ROOT / room).rglob("*") if p.suffix in (".py", ".pyi", ".hpp", ".cpp")
        ]
    for path in files:
        assert not pattern.search(path.read_text()), path


def test_show_config(capsys):
    ckce.show_config()
    shown = capsys.readouterr().out
    assert shown.startswith(f"ckce     {ckce.__version__}\n")
    assert f"core     {_core.LEVEL} " in shown


def test_the_level_can_be_forced():
    code = "import ckce; from ckce import _core; print(_core.LEVEL)"

    def run(level):
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "CKCE_LEVEL": level},
        )

    assert run(_core.LEVEL).stdout.strip() == _core.LEVEL
    wrong = run("v9")
    assert wrong.returncode != 0
    assert "CKCE_LEVEL must be one of" in wrong.stderr
