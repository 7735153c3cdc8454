"""The laws of the house: who may touch whom, and what every public name carries."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ckce
from ckce import _core, reference
from ckce._input.kernels import KERNELS
from ckce._methods.auto import METHODS
from ckce._methods.fourier import SAMPLERS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "ckce"
CORE = ROOT / "cpp" / "core"
CORE_FILES = sorted(path for path in CORE.rglob("*") if path.suffix in (".hpp", ".cpp"))
PUBLIC = [getattr(ckce, name) for name in ckce.__all__]
FUNCTIONS = [thing for thing in PUBLIC if inspect.isfunction(thing)]

MODULES = sorted(PACKAGE.rglob("*.py"))

# The floor plan from the bottom up. A module may import its own room, lower ones, and siblings of its
# floor as long as nobody imports back. Kernels and memory live in _input, because methods need them.
FLOORS = [
    {"_cpu"},
    {"_core"},
    {"_input"},
    {"_methods", "_config"},
    {"_problem", "_results"},
    {"_metrics", "_plots"},  # results of _metrics draw themselves; _plots knows numbers only
    {"_compare", "_reliability", "_stream", "_scan"},
    {"_report"},
    {"_cli", "integrations"},
    {"__main__"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
ALONE = {"__init__", "reference"}  # a table of names; the oracle
LOWEST = {"_cpu", "_core", "_input"}


def room(path):
    """The sub-package that a file belongs to, or its own name."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def statements(path, lazy):
    """Imports of a file when it is imported, or (lazy) also those inside functions."""
    waiting = list(ast.parse(path.read_text()).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif not is_for_type_checkers(node) and (lazy or not isinstance(node, ast.FunctionDef)):
            waiting += ast.iter_child_nodes(node)


def imports(path, lazy=True):
    """(packages of others, {(room of ckce, name)}); the room of ``import ckce`` is "ckce"."""
    foreign, own = set(), set()
    for node in statements(path, lazy):
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
            foreign |= {name.split(".")[0] for name in names} - {"ckce"}
            own |= {(name, "") for name in names if name.split(".")[0] == "ckce"}
        elif node.module == "ckce":
            for alias in node.names:
                known = alias.name in FLOOR or alias.name == "reference"
                own.add((alias.name, "") if known else ("ckce", alias.name))
        elif node.module.startswith("ckce."):
            own |= {(node.module.split(".")[1], alias.name) for alias in node.names}
        else:
            foreign.add(node.module.split(".")[0])
    return foreign, own


def includes(path):
    return re.findall(r'#include\s*[<"]([^>"]+)[>"]', path.read_text())


def named(path):
    return str(path.relative_to(PACKAGE))


def test_every_room_has_its_floor():
    assert {room(path) for path in MODULES} <= set(FLOOR) | ALONE


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_dependencies_point_one_way(path):
    if room(path) in ALONE:
        return
    _, own = imports(path)
    for other, name in own:
        if other == room(path) or (other == "ckce" and name == "__version__"):
            continue
        if room(path) in ("_cli", "integrations", "__main__") and other == "ckce":
            continue  # the public API
        assert other != "ckce", "rooms do not call their own front door"
        assert FLOOR[other] <= FLOOR[room(path)], f"{room(path)} must not import {other}"


def test_siblings_do_not_import_each_other():
    seen = {(room(path), other) for path in MODULES for other, _ in imports(path)[1]}
    assert not [(a, b) for a, b in seen if a < b and (b, a) in seen]


def test_plots_are_told_numbers():
    for path in MODULES:
        foreign, own = imports(path)
        if room(path) == "_plots":
            assert {other for other, _ in own} <= {"_plots", "_results"}
            assert "matplotlib" not in imports(path, lazy=False)[0]
        elif room(path) != "integrations":
            assert "matplotlib" not in foreign, named(path)


def test_integrations_use_the_public_api_and_the_input_room():
    for path in MODULES:
        if room(path) == "integrations":
            assert {other for other, _ in imports(path)[1]} <= {"ckce", "_input", "integrations"}


def test_foreign_libraries_are_imported_where_they_are_needed():
    for path in MODULES:
        if room(path) != "integrations":
            foreign, _ = imports(path, lazy=False)
            assert foreign <= {"numpy"} | sys.stdlib_module_names, named(path)


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_no_underscore_name_crosses_rooms(path):
    for other, name in imports(path)[1]:
        if other not in (room(path), "ckce"):
            assert not name.startswith("_"), f"{name} is the own affair of {other}"


def test_rooms_say_what_they_are():
    for path in PACKAGE.glob("*/__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text()))
        assert text, named(path)
        assert text.splitlines()[0].endswith((".", ",", ":")), named(path)


def test_public_names_and_their_rooms():
    source = ast.parse((PACKAGE / "__init__.py").read_text())
    typed = {
        (node.module.removeprefix("ckce."), alias.name)
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("ckce.")
        for alias in node.names
        if alias.asname == alias.name
    }
    loaded = {(where, name) for where, names in ckce._ROOMS.items() for name in names}
    assert typed == loaded
    for where, name in loaded:
        assert getattr(ckce, name).__module__ == f"ckce.{where}", name
    assert set(ckce.__all__) <= set(dir(ckce))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        ckce.nothing  # noqa: B018


def test_the_oracle_knows_nothing_of_the_package():
    foreign, own = imports(PACKAGE / "reference.py")
    assert own == set()
    assert foreign - {"numpy"} <= sys.stdlib_module_names
    for path in MODULES:
        assert "reference" not in {other for other, _ in imports(path)[1]}


def body(function):
    """Lines of a function without signature and docstring."""
    inside = function.body[1:] if ast.get_docstring(function) else function.body
    return function.end_lineno - inside[0].lineno + 1 if inside else 0


def test_figures():
    """Sizes to look at; what is asserted is loose on purpose."""
    lines = {named(path): len(path.read_text().splitlines()) for path in MODULES}
    del lines["reference.py"]
    bodies = {
        f"{named(path)}:{node.name}": body(node)
        for path in MODULES
        if path.name != "reference.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    counts = {
        function.__name__: len(inspect.signature(function).parameters) for function in FUNCTIONS
    }
    modules = [path for path in MODULES if path.name not in ("__init__.py", "reference.py")]
    own = [len({(o, n) for o, n in imports(path)[1] if o != "_core"}) for path in modules]
    flat = [path.stem for path in PACKAGE.glob("*.py")]
    figures = {
        "files above 450 lines": {name: n for name, n in lines.items() if n > 450},
        "bodies above 60 lines": {name: n for name, n in bodies.items() if n > 60},
        "functions above 15 parameters": {name: n for name, n in counts.items() if n > 15},
        "names imported per module": round(sum(own) / len(own), 2),
        "lines without the oracle": sum(lines.values()),
        "modules at the top": flat,
    }
    for name, figure in figures.items():
        print(f"{name}: {figure}")
    assert max(lines.values()) <= 600
    assert max(bodies.values()) <= 80
    assert {name: n for name, n in counts.items() if n > 20} == {}
    assert counts["ckce"] == 15
    assert all(counts[name] == 16 for name in ("estimate", "jkce"))  # groups
    assert len(flat) <= 8


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


# Rooms of the core from the bottom up; validate and bandwidth stand beside the kernels.
CORE_FLOORS = [
    {"base"},
    {"linalg"},
    {"kernels", "samplers", ""},
    {"features"},
    {"metrics", "stream", "binary"},
]
CORE_FLOOR = {name: floor for floor, names in enumerate(CORE_FLOORS) for name in names}


@pytest.mark.parametrize("path", CORE_FILES, ids=lambda path: str(path.relative_to(CORE)))
def test_rooms_of_the_core(path):
    own = str(path.relative_to(CORE).parent).replace(".", "")
    for name in includes(path):
        if name.startswith("core/"):
            other = str(Path(name).relative_to("core").parent).replace(".", "")
            assert CORE_FLOOR[other] <= CORE_FLOOR[own], f"{own} must not include {name}"
        else:
            assert "/" not in name or name.startswith(("Eigen/", "sys/")), name


def test_kernels_and_samplers_are_leaves():
    for room in ("kernels", "samplers"):
        for path in (CORE / room).iterdir():
            up = {name.split("/")[1] for name in includes(path) if name.startswith("core/")}
            assert up <= {"base", "linalg", room}, path.name


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
    in_core = {path.stem for path in CORE_FILES}
    for word, method in METHODS.items():
        assert (PACKAGE / "_methods" / f"{word}.py").exists()
        assert method.__module__ == f"ckce._methods.{word}"
        assert method.__name__ == word.capitalize()
        assert word in in_core or word in ("exact", "blocks")  # metrics: ckce_exact, jkce
    for word in set(METHODS) - {"blocks"}:  # with the reductions of JKCE
        assert (ROOT / "tests" / f"test_{word}.py").exists()
    for name in (
        "ckce",
        "jkce",
        "estimate",
        "gradient",
        "ece",
        "evaluate",
        "calibration_test",
        "scores",
    ):
        assert (PACKAGE / "_metrics" / f"{name}.py").exists()
        assert (ROOT / "tests" / f"test_{name}.py").exists()
    for name in ("ckce", "jkce", "gradient", "ece", "calibration_test", "scores"):
        assert (CORE / "metrics" / f"{name}.hpp").exists()


def stub_members(node):
    """Fields, methods and members of an enumeration."""
    names = set()
    for member in node.body:
        if isinstance(member, ast.AnnAssign):
            names.add(member.target.id)
        elif isinstance(member, ast.Assign):
            names |= {target.id for target in member.targets}
        elif isinstance(member, ast.FunctionDef):
            names.add(member.name)
    return {name for name in names if name[0] != "_"}


def test_the_stub_names_what_the_core_has():
    stub = ast.parse((PACKAGE / "_core.pyi").read_text())
    kinds = (ast.FunctionDef, ast.ClassDef)
    functions = {node.name for node in stub.body if isinstance(node, kinds)}
    constants = {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    compiled = {name for name in dir(_core._module) if not name.startswith("_")}
    assert functions | constants == compiled | {"BUILT", "LEVEL"}
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            members = {name for name in dir(getattr(_core, node.name)) if name[0] != "_"}
            written = stub_members(node)
            assert written == members - ({"name", "value"} - written), node.name  # of Enum


def test_no_arithmetic_shortcuts_in_the_build():
    build = (ROOT / "CMakeLists.txt").read_text() + (ROOT / "pyproject.toml").read_text()
    for flag in ("fast-math", "-Ofast", "unsafe-math", "finite-math", "march=native", "openmp"):
        assert flag.lower() not in build.lower()


def test_runtime_dependency_is_numpy():
    project = (ROOT / "pyproject.toml").read_text()
    found = re.search(r"^dependencies = \[(.*?)\]", project, re.MULTILINE | re.DOTALL)
    assert re.findall(r'"([\w-]+)', found[1]) == ["numpy"]


def test_the_version_stands_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert (
        project["tool"]["scikit-build"]["metadata"]["version"]["input"] == "python/ckce/__init__.py"
    )
    assert re.fullmatch(r"\d+\.\d+\.\d+", ckce.__version__)
    assert f"version: {ckce.__version__}\n" in (ROOT / "CITATION.cff").read_text()


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
    parameters = dict(inspect.signature(ckce.estimate).parameters)
    assert parameters.pop("groups").default is None  # they do not change the value of ckce
    assert inspect.signature(ckce.ckce).parameters == parameters


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
    for room in ("python", "cpp", "tests", "benchmarks", "studies", "examples"):
        files += [
            p for p in (ROOT / room).rglob("*") if p.suffix in (".py", ".pyi", ".hpp", ".cpp")
        ]
    for path in files:
        assert not pattern.search(path.read_text()), path


def test_show_config(capsys):
    ckce.show_config()
    shown = capsys.readouterr().out
    assert shown.startswith(f"ckce     {ckce.__version__}\n")
    assert f"core     {_core.LEVEL} of {', '.join(_core.BUILT)} (" in shown
    assert _core.LEVEL in _core.BUILT


def test_a_build_that_moves_to_a_lesser_cpu_still_imports():
    code = "from ckce import _cpu; _cpu.level = lambda: {!r}; from ckce import _core; print(_core.LEVEL)"
    env = {name: value for name, value in os.environ.items() if name != "CKCE_LEVEL"}

    def run(level):
        return subprocess.run(
            [sys.executable, "-c", code.format(level)], capture_output=True, text=True, env=env
        )

    for level in _core.BUILT:
        assert run(level).stdout.strip() == level
    refused = run("none")
    assert refused.returncode != 0
    assert f"ckce was built for {_core.BUILT}, this CPU has level 'none'" in refused.stderr


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
