"""A test that takes `case` runs over every metric, method and kernel of shared.CASES; one that takes
`metric` also over shared.SCORES, the metrics without a kernel."""

import signal

import hypothesis
import pytest
from shared import CASES, SCORES

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts jobs in the background like that; the tests of Ctrl-C need to be reached.
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile(
    "ckce", deadline=None, derandomize=True, max_examples=30, database=None
)
hypothesis.settings.load_profile("ckce")


def pytest_generate_tests(metafunc):
    marked = any("case" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "case" in metafunc.fixturenames and not marked:
        metafunc.parametrize("case", CASES, ids=str)
    if "metric" in metafunc.fixturenames:
        metafunc.parametrize("metric", [*CASES, *SCORES], ids=str)


@pytest.fixture(autouse=True)
def _own_threads(monkeypatch):
    """The environment of the machine must not choose what is tested."""
    monkeypatch.delenv("CKCE_NUM_THREADS", raising=False)
