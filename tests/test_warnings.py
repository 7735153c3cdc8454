"""Warnings name the caller's line, whatever function was called and however deep they arise."""

import inspect
import warnings

import numpy as np
import pytest
from catalogue import FUNCTIONS, Classifier
from shared import sample

import ckce
from ckce._input.words import warn

Y, Q = sample(200, 3)
NAMES = np.array(["cat", "dog", "owl"])
STRINGS = NAMES[Y]


def compare(y, q, **options):
    return ckce.compare(y, {"a": q, "b": q[::-1]}, **options)


def shift_curve(y, q, **options):
    return ckce.shift_curve(y, {"a": [q, q[::-1]]}, **options)


def common_ground(y, q, **options):
    return ckce.common_ground(y, q, q[::-1], **options)


# Every public function of labels and predictions; these stand between the line and ckce.
OWN = {"compare": compare, "shift_curve": shift_curve, "common_ground": common_ground}
TABLE = {**FUNCTIONS, **OWN}


def parameters(name):
    if name == "CKCEAccumulator.from_sample":
        names = set(inspect.signature(ckce.CKCEAccumulator).parameters) | {"sample_weight"}
        return names - {"n_classes"}
    function = TABLE[name] if name not in OWN else getattr(ckce, name)
    return set(inspect.signature(function).parameters)


WEIGHTED = [name for name in TABLE if "sample_weight" in parameters(name)]
NAMED = [name for name in TABLE if "labels" in parameters(name)]
REGULARISED = [name for name in TABLE if "regularization" in parameters(name)]


def lines(function):
    """The lines of a function of this file."""
    source, first = inspect.getsourcelines(function)
    return range(first, first + len(source))


def check(name, caught, line, words):
    assert any(words in str(each.message) for each in caught), [str(w.message) for w in caught]
    for each in caught:
        assert each.filename == __file__
        assert each.lineno in lines(OWN[name]) if name in OWN else each.lineno == line


def call(name, *arguments, **options):
    """Every warning of a call, and the line of the call."""
    function = TABLE[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        function(*arguments, **options)
    return caught, line


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_that_are_no_counts(name):
    caught, line = call(name, Y, Q, sample_weight=np.full(200, 100.0))
    check(name, caught, line, "sample_weight has mean 100;")


@pytest.mark.parametrize("name", NAMED)
def test_strings_without_labels(name):
    caught, line = call(name, STRINGS, Q)
    words = "the columns of y_prob are taken in sorted order, 'cat', 'dog', 'owl'; pass labels="
    check(name, caught, line, words)


@pytest.mark.parametrize("name", REGULARISED)
def test_a_tiny_lambda(name):
    caught, line = call(name, Y, Q, regularization=1e-9)
    check(name, caught, line, "regularization=1e-09 leaves a condition number")
    assert caught[0].category is RuntimeWarning


@pytest.mark.parametrize("name", ["ckce", "estimate", "evaluate", "compare", "report"])
def test_a_factor_that_its_certificate_disowns(name, monkeypatch):
    monkeypatch.setattr("ckce._methods.auto.EXACT_BUDGET", 1e6)
    monkeypatch.setattr("ckce._metrics.ckce._LARGE_ERROR", 0.01)
    rng = np.random.default_rng(0)
    p = rng.beta(0.05, 6.2, 12_000)
    y = (rng.random(12_000) < p).astype(int)
    y[rng.random(12_000) < 0.1] = 2
    q = np.column_stack([0.9 * (1 - p), 0.9 * p, np.full(12_000, 0.1)])
    options = {"sensitivity": False, "test": False} if name == "report" else {}
    caught, line = call(name, y, q, bandwidth=2e-4, **options)
    check(name, caught, line, "method='auto' took Fourier(), whose error is about")


def recorded(function, *arguments, **options):
    """As `call`, for what is no function of the table."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        function(*arguments, **options)
    return caught, line


def test_median_bandwidth():
    caught, line = recorded(ckce.median_bandwidth, Q, sample_weight=np.full(200, 100.0))
    check("", caught, line, "sample_weight has mean 100;")


def test_accumulators():
    caught, line = recorded(ckce.CKCEAccumulator, 3, regularization=1e-9)
    check("", caught, line, "regularization=1e-09")
    acc = ckce.CKCEAccumulator(3, bandwidth=0.5)
    acc.update(Y, Q, np.full(200, 100.0))
    caught, line = recorded(acc.evaluate)
    check("", caught, line, "sample_weight has mean 100;")
    y, q = sample(500, 30, concentration=0.1)
    few = ckce.CKCEAccumulator(30, bandwidth=0.1, method=ckce.Landmarks(q[:3]))
    few.update(y, q)
    for function in (few.compute, few.evaluate):
        caught, line = recorded(function)
        check("", caught, line, "landmarks leave out")


def test_results_and_displays():
    display = ckce.CalibrationDisplay
    pytest.importorskip("matplotlib").use("agg")
    caught, line = recorded(display.from_predictions, STRINGS, Q)
    check("", caught, line, "in sorted order")
    c = compare(Y, Q)
    caught, line = recorded(c.sensitivity, bandwidths=[1.0], regularizations=[1e-9])
    assert all((each.filename, each.lineno) == (__file__, line) for each in caught)


def test_through_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.model_selection import cross_validate

    from ckce.integrations.sklearn import make_scorer, neg_ckce

    weights = np.full(200, 100.0)
    caught, line = recorded(neg_ckce, Classifier(Q), np.zeros((200, 1)), Y, weights)
    check("", caught, line, "sample_weight has mean 100;")
    from sklearn.linear_model import LogisticRegression

    scoring = make_scorer("ckce", regularization=1e-9)
    caught, line = recorded(cross_validate, LogisticRegression(), Q, Y, cv=2, scoring=scoring)
    check("", caught, line, "regularization=1e-09")


def test_through_torchmetrics():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchmetrics")
    from ckce.integrations.torchmetrics import CKCE

    caught, line = recorded(CKCE, 3, regularization=1e-9)
    check("", caught, line, "regularization=1e-09")
    y, q = sample(500, 30, concentration=0.1)
    metric = CKCE(30, 0.1, method=ckce.Landmarks(q[:3]))
    metric.update(torch.from_numpy(q), torch.from_numpy(y))
    caught, line = recorded(metric.compute)
    check("", caught, line, "landmarks leave out")


def test_every_function_that_can_warn_is_here():
    for name in ckce.__all__:
        thing = getattr(ckce, name)
        if inspect.isfunction(thing):
            known = set(inspect.signature(thing).parameters)
            if known & {"sample_weight", "labels", "regularization"}:
                assert name in TABLE or name in ("median_bandwidth", "next_tokens", "scan")


def test_no_warning_without_a_reason():
    frame = pytest.importorskip("pandas").DataFrame(Q, columns=NAMES)
    for name in NAMED:
        for arguments, options in [((STRINGS, Q), {"labels": NAMES}), ((STRINGS, frame), {})]:
            if name == "report" or (name in OWN and options == {}):
                continue  # the wrappers turn the rows of a table
            caught, _ = call(name, *arguments, **options)
            assert [str(each.message) for each in caught] == []


def test_strings_in_another_order_change_the_number():
    """What the warning is about: columns that are not sorted score many times as much."""
    backwards, order = Q[:, ::-1], NAMES[::-1]
    with pytest.warns(UserWarning, match="in sorted order"):
        wrong = ckce.ckce(STRINGS, backwards)
    right = ckce.ckce(STRINGS, backwards, labels=order)
    assert right == pytest.approx(ckce.ckce(Y, Q), rel=1e-9)
    assert wrong > 2 * right
    with pytest.raises(ValueError, match="must hold integers in a stream, got strings"):
        ckce.CKCEAccumulator(3).update(STRINGS, Q)


def test_warn_itself():
    def outer():
        namespace = {"__name__": "ckce.somewhere", "warn": warn}
        exec("def inner():\n    warn('here', FutureWarning)", namespace)
        namespace["inner"]()

    with pytest.warns(FutureWarning, match="here") as caught:
        outer()
    assert caught[0].filename == __file__
    assert caught[0].lineno in lines(outer)
    namespace = {"__name__": "ckce_tools", "warn": warn}  # somebody else's
    exec(compile("def inner():\n    warn('there')", "theirs.py", "exec"), namespace)
    with pytest.warns(UserWarning, match="there") as caught:
        namespace["inner"]()
    assert caught[0].filename == "theirs.py"
