"""Results: one key for one thing, kept estimates, and nothing computed twice for one answer."""

import hashlib
import json

import numpy as np
import pytest
from shared import sample

import ckce
from ckce import _core
from ckce._metrics.score_table import SCORES

Y, Q = sample(150, 3)
MODELS = {"a": Q, "b": Q**2 / (Q**2).sum(axis=1, keepdims=True)}


def accumulator():
    acc = ckce.CKCEAccumulator(3, bandwidth=0.5)
    acc.update(Y, Q)
    return acc.evaluate()


# Everything that becomes a dict.
RESULTS = {
    "evaluate": lambda: ckce.evaluate(Y, Q, test=9).to_dict(),
    "stream": lambda: accumulator().to_dict(),
    "compare": lambda: ckce.compare(Y, MODELS, test=9).to_dict(),
    "sensitivity": lambda: ckce.compare(Y, MODELS).sensitivity().to_dict(),
    "shift_curve": lambda: ckce.shift_curve(Y, {"a": [Q, Q[::-1]]}).to_dict(),
    "calibration_test": lambda: ckce.calibration_test(Y, Q, n_resamples=9).to_dict(),
    "report, one model": lambda: ckce.report(Y, Q).data,
    "report": lambda: ckce.report(Y, MODELS, sensitivity=False).data,
}
FRAMES = {
    "evaluate": lambda: ckce.evaluate(Y, Q).to_frame(),
    "compare": lambda: ckce.compare(Y, MODELS).to_frame(),
    "shift_curve": lambda: ckce.shift_curve(Y, {"a": [Q, Q[::-1]]}).to_frame(),
}


def keys(data):
    """All keys of dicts within dicts and lists."""
    if isinstance(data, dict):
        yield from data
        data = list(data.values())
    if isinstance(data, (list, tuple)):
        for each in data:
            yield from keys(each)


@pytest.mark.parametrize("name", RESULTS)
def test_no_key_is_a_bare_ece(name):
    data = json.loads(json.dumps(RESULTS[name](), allow_nan=False))
    assert "ece" not in {str(key).lower() for key in keys(data)}


@pytest.mark.parametrize("name", FRAMES)
def test_no_column_is_a_bare_ece(name):
    frame = FRAMES[name]()
    assert "ece" not in {str(column).lower() for column in frame.columns}


def test_tables_say_which_ece():
    texts = [
        repr(ckce.evaluate(Y, Q)),
        repr(accumulator()),
        repr(ckce.compare(Y, MODELS)),
        repr(ckce.shift_curve(Y, {"a": [Q, Q[::-1]]})),
    ]
    for text in texts:
        assert text.count("ECE (") == text.count("ECE") > 0, text


def test_the_ece_of_all_is_one_number():
    value = ckce.ece(Y, Q)
    e = ckce.evaluate(Y, Q)
    assert e.ece_top_label.value == e.to_dict()["ece_top_label"] == value
    assert accumulator().ece_top_label.value == pytest.approx(value, rel=1e-12)
    model = next(m for m in ckce.compare(Y, MODELS).to_dict()["models"] if m["name"] == "a")
    point = ckce.shift_curve(Y, {"a": [Q]}).to_dict()["points"][0]
    assert model["ece_top_label"] == point["ece_top_label"] == value
    data = ckce.report(Y, Q).data
    assert data["models"][0]["ece_top_label"] == value
    assert e.brier_parts == ckce.brier_decomposition(Y, Q, debias=True)
    assert e.to_dict()["brier_calibration"] == e.brier_parts.calibration


def test_a_comparison_keeps_its_estimates():
    c = ckce.compare(Y, MODELS)
    assert list(c.estimates) == list(c.names)
    for model in c.models:
        e = c.estimates[model.name]
        assert isinstance(e, ckce.Estimate)
        alone = ckce.estimate(Y, MODELS[model.name], bandwidth=c.bandwidth)
        assert (e.value, e.debiased, e.se) == (alone.value, alone.debiased, alone.se)
        assert np.array_equal(e.influence, alone.influence)
        assert e.attribution() == alone.attribution()
        assert (model.ckce, model.ckce_floor, model.ckce_debiased) == (
            e.value,
            e.floor,
            e.debiased,
        )


class Spy:
    """Remembers the calls of the core that cost something, by the contents of their arguments."""

    WATCHED = ("ckce_", "jkce_", "median_distance", "resample_", "loo_", "_features", "ground_sums")
    #: Handles.
    CHEAP = ("fourier_features", "linear_features", "landmark_features", "power_features")

    def __init__(self, monkeypatch):
        self.calls = []
        self.made = {}  # what handles of the core were made of; they are kept, so that ids stay
        for name in dir(_core):
            if name == "Kernel" or any(word in name for word in self.WATCHED):
                monkeypatch.setattr(_core, name, self.wrapped(name, getattr(_core, name)))

    def wrapped(self, name, function):
        def spy(*arguments, **options):
            parts = [name, *(self.fingerprint(value) for value in arguments)]
            parts += [(k, self.fingerprint(v)) for k, v in options.items() if k != "progress"]
            key, result = str(parts), function(*arguments, **options)
            self.made[id(result)] = (key, result)
            if name != "Kernel" and name not in self.CHEAP:
                self.calls.append(key)
            return result

        return spy

    def fingerprint(self, value):
        if isinstance(value, np.ndarray):
            return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:12]
        if isinstance(value, (list, tuple)):
            return [self.fingerprint(each) for each in value]
        return self.made[id(value)][0] if id(value) in self.made else repr(value)

    def count(self, word):
        return sum(call.startswith(f"['{word}'") for call in self.calls)

    def repeated(self):
        return {call[:100] for call in self.calls if self.calls.count(call) > 1}


SERIES = {name: [q, q[::-1]] for name, q in MODELS.items()}
CALLS = {
    "estimate": lambda **o: ckce.estimate(Y, Q, **o),
    "evaluate": lambda **o: ckce.evaluate(Y, Q, test=9, **o),
    "compare": lambda **o: ckce.compare(Y, MODELS, test=9, **o),
    "shift_curve": lambda **o: ckce.shift_curve(Y, SERIES, **o),
    "report, one model": lambda **o: ckce.report(Y, Q, **o),
    "report": lambda **o: ckce.report(Y, MODELS, sensitivity=False, **o),
    "report with sensitivity": lambda **o: ckce.report(Y, MODELS, **o),
}


@pytest.mark.parametrize("method", ["exact", "fourier", "cholesky"])
@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_computed_twice(name, method, monkeypatch):
    spy = Spy(monkeypatch)
    CALLS[name](method=method)
    assert spy.calls
    assert spy.repeated() == set()


def test_a_report_computes_each_model_once(monkeypatch):
    spy = Spy(monkeypatch)
    ckce.report(Y, MODELS, method="exact", sensitivity=False)
    assert spy.count("ckce_exact") == len(MODELS)
    assert spy.count("jkce_exact") == len(MODELS)
    assert spy.count("median_distance") == 1 + len(MODELS)  # pooled, and each its own


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.key)
def test_a_score_is_in_every_table(score):
    comparison = ckce.compare(Y, MODELS, by=np.arange(len(Y)) % 2)
    segment = comparison.segments.rows[0]
    evaluation = ckce.evaluate(Y, Q)
    for record in (comparison.models[0], segment, evaluation, accumulator()):
        assert np.isfinite(getattr(record, score.key))
    for data in (RESULTS["evaluate"](), RESULTS["stream"](), comparison.to_dict()["models"][0]):
        assert np.isfinite(data[score.key])
    assert score.key in comparison.to_frame()
    assert score.key in comparison.segments.to_frame()
    page = ckce.report(Y, MODELS, sensitivity=False, test=False).html
    for text in (str(comparison).partition("segment ")[0], repr(comparison.segments), page):
        assert score.column.title in text
    for text in (repr(evaluation), repr(accumulator())):
        assert score.column.title in text
