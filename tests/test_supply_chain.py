"""What the package may do at run time, and what its archives contain."""

import ast
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "ckce"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# Modules that talk to the network, start processes, or turn bytes into code.
FORBIDDEN_MODULES = re.compile(
    "asyncio|cffi|code|codeop|ctypes|dbm|dill|ftplib|http|httpx|imaplib|joblib|marshal|"
    "multiprocessing|pickle|poplib|pty|requests|runpy|select|shelve|smtplib|socket|socketserver|"
    "ssl|subprocess|telnetlib|urllib|urllib3|webbrowser|xmlrpc|_socket|_posixsubprocess"
)
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "breakpoint", "input"}
FORBIDDEN_OS = re.compile(r"system|popen|fork\w*|exec\w+|spawn\w+|posix_spawn\w*|kill\w*|startfile")


def _offence(node):
    """What a node does that it must not, or None."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    elif isinstance(node, ast.Attribute):
        names = [ast.unparse(node)]
    else:
        names = []
    for name in names:
        first, _, rest = name.partition(".")
        if not isinstance(node, ast.Attribute) and FORBIDDEN_MODULES.fullmatch(first):
            return name
        if first == "os" and FORBIDDEN_OS.fullmatch(rest):
            return name
    if isinstance(node, ast.Call) and ast.unparse(node.func) in FORBIDDEN_CALLS:
        return ast.unparse(node.func)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.load", "numpy.load"):
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        return None if keywords.get("allow_pickle") == "False" else "np.load"
    return None


def offences(tree):
    return [found for node in ast.walk(tree) if (found := _offence(node)) is not None]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_network_no_pickle_no_eval_no_processes(path):
    assert offences(ast.parse(path.read_text())) == []


@pytest.mark.parametrize(
    "code",
    [
        "import socket",
        "import urllib.request",
        "from subprocess import run",
        "import pickle as p",
        "def f():\n    import http.client",
        "eval('1')",
        "import os\nos.system('true')",
        "from os import popen",
        "np.load(f, allow_pickle=True)",
        "np.load(f, allow_pickle=flag)",
    ],
)
def test_the_search_finds(code):
    assert offences(ast.parse(code))


def test_the_core_opens_nothing():
    words = r"\b(socket|connect|popen|system|execve?|dlopen|fopen|ifstream|ofstream|getenv)\s*\("
    for path in (ROOT / "cpp").rglob("*.[ch]pp"):
        assert not re.search(words, path.read_text()), path


def archive(variable):
    """An archive that .ci/archives built, by the environment variable that names it."""
    if variable not in os.environ:
        pytest.skip(f"{variable} names no archive; .ci/archives builds them")
    return Path(os.environ[variable])


def test_the_sdist_holds_what_builds_and_tests_it():
    path = archive("CKCE_TEST_SDIST")
    with tarfile.open(path) as tar:
        names = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    for room in ("python", "cpp", "tests"):
        for source in (ROOT / room).rglob("*.[chp]*"):
            if source.suffix in (".c", ".hpp", ".cpp", ".css", ".py", ".pyi"):
                assert source.relative_to(ROOT).as_posix() in names
    for name in ("CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md", "PKG-INFO"):
        assert name in names
    assert not [
        name for name in names if re.search(r"\.so$|\.o$|__pycache__|^build/|^\.git/", name)
    ]
    assert path.stat().st_size < 3_000_000


def test_the_wheel_holds_what_runs():
    path = archive("CKCE_TEST_WHEEL")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        assert wheel.testzip() is None
    package = {name for name in names if name.startswith("ckce/")}
    info = {name for name in names if ".dist-info/" in name}
    assert package | info == set(names), "nothing beside the package"
    others = ("_core.pyi", "_cpu.pyi", "py.typed", "_report/style.css")
    for source in [*SOURCES, *(PACKAGE / name for name in others)]:
        assert f"ckce/{source.relative_to(PACKAGE).as_posix()}" in package
    compiled = {name.split(".")[0] for name in package if name.endswith((".so", ".pyd"))}
    assert "ckce/_cpu" in compiled
    assert any(name.startswith("ckce/_core_") for name in compiled)
    assert not [name for name in package if re.search(r"\.([ch]pp|[ao]|dll)$|__pycache__", name)]
    assert [name for name in info if name.endswith("LICENSE")]


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_the_compiled_modules_need_only_the_system():
    import ckce

    for module in Path(ckce._core._module.__file__).parent.glob("*.so"):
        dynamic = subprocess.run(
            ["readelf", "-d", module], capture_output=True, text=True, check=True
        ).stdout
        needed = set(re.findall(r"\(NEEDED\).*\[(.+?)\]", dynamic))
        allowed = (
            r"(libstdc\+\+|libm|libgcc_s|libc|libpthread|ld-linux.*)\.so.*|lib[atu]+[bs]*san.*"
        )
        assert all(re.fullmatch(allowed, name) for name in needed), needed
        assert "RPATH" not in dynamic
        assert "RUNPATH" not in dynamic
