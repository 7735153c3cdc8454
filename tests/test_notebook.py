"""Notebooks: every figure is shown, ours and the user's, and nothing is printed in red."""

import re

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

START = """\
import ckce
import numpy as np
rng = np.random.default_rng(0)
q = rng.dirichlet(np.ones(3), 300)
y = (rng.random((300, 1)) > q.cumsum(axis=1)[:, :2]).sum(axis=1)
sharp = q**2 / (q**2).sum(axis=1, keepdims=True)
"""
CELLS = [
    START,
    "comparison = ckce.compare(y, {'a': q, 'b': sharp}, progress=True)",
    "ckce.reliability_diagram(y, q).plot();",
    "comparison.plot();",
    "comparison.plot_pairs();",
    "import matplotlib.pyplot as plt\nplt.plot([1, 2])",
    "comparison",
    "ckce.report(y, q)",
]


@pytest.fixture(scope="module")
def outputs():
    """What each cell shows."""
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("MPLBACKEND", raising=False)  # as in a notebook, where nobody sets it
            client.execute()
    except nbclient.exceptions.CellExecutionError:
        raise
    except Exception as error:  # no kernel is registered, or none can start here
        pytest.skip(f"no kernel: {error}")
    return [cell.outputs for cell in notebook.cells]


def kinds(output):
    return [kind for item in output for kind in item.get("data", {})]


def test_every_figure_is_shown(outputs):
    assert [kinds(output).count("image/png") for output in outputs] == [0, 0, 1, 1, 1, 1, 0, 0]


def test_results_are_shown_as_html(outputs):
    assert [kinds(output).count("text/html") for output in outputs[6:]] == [1, 1]
    page = next(item["data"]["text/html"] for item in outputs[7] if "data" in item)
    assert page.startswith("<iframe srcdoc=")


def test_a_progress_bar_comes_without_a_warning(outputs):
    said = "".join(item.get("text", "") for item in outputs[1])
    assert "compare 2 models" in said
    assert not re.search(r"[Ww]arning|IProgress", said)
