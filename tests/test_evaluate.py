"""The table: its numbers are those of the functions, it renders, it goes to JSON and pandas."""

import json
import math

import numpy as np
import pytest

import ckce


def sample(n=300, m=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, m, n), rng.dirichlet(np.ones(m), n)


@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_are_those_of_the_functions(weighted):
    y, q = sample()
    weights = 1.0 + np.arange(len(y)) % 2 if weighted else None
    data = {"sample_weight": weights}
    e = ckce.evaluate(y, q, **data)
    assert e.accuracy == ckce.accuracy(y, q, **data)
    assert e.log_loss == ckce.log_loss(y, q, **data)
    assert e.brier == ckce.brier(y, q, **data)
    assert e.ckce == ckce.estimate(y, q, **data)
    assert e.jkce == ckce.jkce_estimate(y, q, **data)
    assert e.brier_parts == ckce.brier_decomposition(y, q, debias=True, **data)
    for variant in ("top_label", "class_wise", "simplex"):
        assert getattr(e, f"ece_{variant}") == ckce.ece_estimate(y, q, variant=variant, **data)
    assert e.ece_top_label == ckce.ece_estimate(y, q, **data)


def test_options_reach_the_functions():
    y, q = sample()
    options = {"kernel": "laplace", "bandwidth": 0.5, "method": "cholesky"}
    e = ckce.evaluate(y, q, regularization=0.1, n_bins=4, **options)
    assert e.ckce == ckce.estimate(y, q, regularization=0.1, **options)
    assert e.jkce == ckce.jkce_estimate(y, q, **options)
    for variant in ("top_label", "class_wise", "simplex"):
        value = getattr(e, f"ece_{variant}").value
        assert value == ckce.ece(y, q, n_bins=4, variant=variant)
    assert e.brier_parts == ckce.brier_decomposition(y, q, n_bins=4, debias=True)


def test_many_classes_and_tests_that_reject():
    """That nothing is seen says little of many classes, and nothing where the test rejects."""
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.full(150, 0.1), 400)
    y = (rng.random((400, 1)) > q.cumsum(axis=1)[:, :-1]).sum(axis=1)
    more = "among 150 classes; their 20 largest probabilities, TopK(20), would show more"
    for found in (ckce.evaluate(y, q), ckce.estimate(y, q)):
        assert " ".join(repr(found).split()).count(more) == 1
    assert more not in " ".join(repr(ckce.evaluate(y, q, reduction=ckce.TopK(20))).split())
    z = rng.normal(size=20_000) - 5.3
    p, shifted = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-(1.6 * z + 2)))
    e = ckce.evaluate((rng.random(20_000) < p).astype(int), shifted, test=True)
    assert (e.test.p_value < 0.05) <= ("no sign" not in repr(e))


def test_text_is_aligned():
    e = ckce.evaluate(*sample())
    lines = [line for line in repr(e).splitlines() if not line.startswith(" ")]
    assert lines[0].startswith("n = 300, m = 3, CKCE exact, JKCE exact, bandwidth ")
    names = [line[:18].strip() for line in lines[1:]]
    assert names == [
        *("accuracy", "log loss", "Brier", "miscalibration", "CKCE", "debiased", "JKCE"),
        *("ECE (top label)", "ECE (class-wise)", "ECE (simplex)", "ECE (smooth)", "signature"),
    ]
    points = {line.index(".") for line in lines[1:-1]}
    assert len(points) == 1, "decimal points stand under one another"
    small = ckce.evaluate([0, 1, 1], [[0.0, 1.0], [0.4, 0.6], [0.5, 0.5]], regularization=100.0)
    said = [line for line in repr(small).splitlines()[3:-1] if not line.startswith(" ")]
    assert len({line.index(".") for line in said}) == 1
    assert lines[-1].endswith(e.ckce.signature)


def test_brier_line():
    """The line below has the calibration part, debiased, as in `compare`."""
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.full(100, 0.05), 1000)
    y = (rng.random((1000, 1)) > q.cumsum(axis=1)[:, :-1]).sum(axis=1)
    e = ckce.evaluate(y, q)
    assert f"  miscalibration + refinement {e.brier - e.miscalibration.value:.4f}\n" in repr(e)
    assert abs(e.brier_parts.calibration) < 0.01 < ckce.brier_decomposition(y, q).calibration
    binary = ckce.evaluate(y == 0, q[:, 0])
    assert "both classes count: twice scikit-learn's; miscalibration + refinement" in repr(binary)


def test_columns_in_another_order_are_asked_about():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.full(4, 0.1), 500)
    y = (rng.random((500, 1)) > q.cumsum(axis=1)[:, :-1]).sum(axis=1)
    assert "do the columns of" not in repr(ckce.evaluate(y, q))
    assert "do the columns of y_prob fit the labels?" in " ".join(
        repr(ckce.evaluate((y + 1) % 4, q)).split()
    )


def test_html():
    html = ckce.evaluate(*sample())._repr_html_()
    assert html.count("<tr>") == html.count("</tr>") == 11
    assert "<script" not in html


def test_dict_is_flat_json():
    e = ckce.evaluate(*sample())
    numbers = e.to_dict()
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert numbers["ckce"] == e.ckce.value
    assert (numbers["ckce_low"], numbers["ckce_high"]) == e.ckce.interval()
    assert all(isinstance(value, (int, float, str, type(None))) for value in numbers.values())


def test_infinite_log_loss():
    e = ckce.evaluate([0, 1, 1], [[0.0, 1.0], [0.4, 0.6], [0.5, 0.5]])
    assert e.log_loss == math.inf
    assert e.to_dict()["log_loss"] is None
    assert "a label had probability 0" in repr(e)


def test_frame():
    pandas = pytest.importorskip("pandas")
    frames = [ckce.evaluate(*sample(seed=s)).to_frame(f"model {s}") for s in range(2)]
    table = pandas.concat(frames)
    assert table.index.tolist() == ["model 0", "model 1"]
    assert table["ckce"].dtype == float


def test_inputs():
    y, q = sample(m=3)
    names = np.array(["b", "c", "a"])
    named = ckce.evaluate(names[y], q, labels=names)
    assert named.ckce.classes == ("b", "c", "a")
    assert named.to_dict() == ckce.evaluate(y, q).to_dict()
    doubled = ckce.evaluate(y, 2 * q, normalize=True)
    assert doubled.ckce == ckce.estimate(y, 2 * q, normalize=True)
    binary = ckce.evaluate(y > 0, q[:, 0])
    assert binary.n_classes == 2
    for bad, words in [(q * 0.5, "sums to"), (q[:, :1], "at least 2 columns")]:
        with pytest.raises(ValueError, match=words):
            ckce.evaluate(y, bad)
    with pytest.raises(ValueError, match="n_bins must be at least 1"):
        ckce.evaluate(y, q, n_bins=0)


def test_half_precision_passes_the_door_once():
    y, q = sample()
    e = ckce.evaluate(y, q.astype(np.float16))
    assert e.brier == ckce.brier(y, q.astype(np.float16))


@pytest.mark.parametrize(
    ("y", "q"),
    [
        (np.arange(8) % 3, np.eye(3)[np.arange(8) % 3]),
        (np.arange(10) % 3, np.full((10, 3), 1 / 3)),
        (np.zeros(4, int), np.full((4, 2), 0.5)),
        (np.array([0, 1]), np.array([[0.5, 0.5], [0.25, 0.75]])),
    ],
)
def test_edges(y, q):
    assert isinstance(repr(ckce.evaluate(y, q)), str)


def test_one_row():
    y, q = sample(1, 3)
    for call in (
        lambda: ckce.evaluate(y, q),
        lambda: ckce.compare(y, {"a": q, "b": q}),
        lambda: ckce.report(y, q),
    ):
        with pytest.raises(ValueError, match=r"^y_prob must have at least 2 rows, got 1$"):
            call()
    with pytest.raises(ValueError, match=r"^sample_weight must sum to more than 1, got 1$"):
        ckce.evaluate(*sample(2, 3), sample_weight=[1, 0])


def test_the_gap_of_a_constant_model_is_no_rounding():
    y = np.repeat([0, 1, 2], [7, 3, 90])
    q = np.tile(np.bincount(y) / 100, (100, 1))
    accumulator = ckce.CKCEAccumulator(3, bandwidth=0.5)
    accumulator.update(y, q)
    for found in (ckce.evaluate(y, q), accumulator.evaluate()):
        assert "confidence is right on average" in repr(found)
