"""Scorers in scikit-learn's own tools."""

import math
import pickle

import numpy as np
import pytest

import ckce

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from ckce.integrations.sklearn import SCORERS, make_scorer, neg_ckce, neg_ece_top_label

NAMES = np.array(["ham", "eggs", "spam", "tea"])


def data(n=240, m=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    scores = x @ rng.normal(size=(4, m)) + rng.gumbel(size=(n, m))
    return x, scores.argmax(axis=1)


@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("m", [2, 4])
def test_all_in_cross_validate(m, strings):
    x, y = data(m=m)
    y = NAMES[y] if strings else y
    result = cross_validate(LogisticRegression(), x, y, scoring=SCORERS, cv=3, error_score="raise")
    for name in SCORERS:
        values = result[f"test_{name}"]
        assert np.isfinite(values).all()
        if name not in ("accuracy", "neg_jkce", "neg_ckce"):
            assert (values <= 0).all()


def test_strings_and_numbers_agree():
    x, y = data()
    order = np.argsort(NAMES[:3])
    number, text = LogisticRegression().fit(x, y), LogisticRegression().fit(x, NAMES[y])
    assert [NAMES[j] for j in order] == text.classes_.tolist()
    for name in ("neg_ckce", "neg_ece_top_label", "neg_brier", "neg_log_loss", "accuracy"):
        scorer = SCORERS[name]
        assert scorer(text, x, NAMES[y]) == pytest.approx(scorer(number, x, y), rel=1e-6)


def test_value_and_sign():
    x, y = data()
    model = LogisticRegression().fit(x, y)
    q = model.predict_proba(x)
    default = {"bandwidth": "default"}  # the same for every candidate
    assert neg_ckce(model, x, y) == -ckce.estimate(y, q, **default).debiased
    assert SCORERS["neg_jkce"](model, x, y) == -ckce.jkce(y, q, **default)
    groups = np.arange(len(y)) // 6
    grouped = {"groups": groups, **default}
    assert neg_ckce(model, x, y, groups=groups) == -ckce.estimate(y, q, **grouped).debiased
    assert SCORERS["neg_jkce"](model, x, y, groups=groups) == -ckce.jkce(y, q, **grouped)
    for name in ("brier", "smooth_ece"):
        with pytest.raises(ValueError, match=f"groups must be None for a scorer of {name}"):
            SCORERS[f"neg_{name}"](model, x, y, groups=groups)
    assert neg_ece_top_label(model, x, y) == -ckce.ece(y, q)
    for variant in ("top_label", "class_wise", "simplex"):
        assert SCORERS[f"neg_ece_{variant}"](model, x, y) == -ckce.ece(y, q, variant=variant)
    assert SCORERS["accuracy"](model, x, y) == ckce.accuracy(y, q) == model.score(x, y)
    weights = 1.0 + np.arange(len(y)) % 2
    weighted = neg_ckce(model, x, y, sample_weight=weights)
    assert weighted == -ckce.estimate(y, q, sample_weight=weights, **default).debiased
    own = make_scorer("ckce", bandwidth=0.3, method=ckce.Fourier(20))
    value = ckce.estimate(y, q, bandwidth=0.3, method=ckce.Fourier(20)).debiased
    assert own(model, x, y) == -value
    linear = make_scorer("ckce", kernel="linear")
    assert linear(model, x, y) == -ckce.estimate(y, q, kernel="linear").debiased


def test_no_scorer_is_called_ece():
    assert not {"ece", "neg_ece"} & set(SCORERS)
    assert {"neg_ece_top_label", "neg_ece_class_wise", "neg_ece_simplex"} <= set(SCORERS)


def test_grid_search():
    x, y = data(m=2)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    scorer = make_scorer("ckce", bandwidth=0.3)
    search = GridSearchCV(pipeline, {"logisticregression__C": [1e-3, 1.0]}, scoring=scorer, cv=3)
    search.fit(x, NAMES[y])
    assert math.isfinite(search.best_score_)
    clone(search)


def test_a_fold_may_miss_a_class():
    x, y = data()
    model = LogisticRegression().fit(x, y)
    kept = y != 1
    q = model.predict_proba(x[kept])
    value = ckce.estimate(y[kept], q, bandwidth="default").debiased
    assert neg_ckce(model, x[kept], y[kept]) == -value


def test_scorers_travel():
    for name, scorer in SCORERS.items():
        copy = pickle.loads(pickle.dumps(scorer))
        assert repr(copy) == repr(scorer), name


def test_refuses():
    x, y = data()
    with pytest.raises(TypeError, match="estimator must have predict_proba, got LinearSVC"):
        neg_ckce(LinearSVC().fit(x, y), x, y)
    with pytest.raises(ValueError, match="metric must be one of"):
        make_scorer("mce")


def test_errors_name_what_a_scorer_is_told():
    x, y = data()
    model = LogisticRegression().fit(x, y)
    probs = model.predict_proba(x)
    model.predict_proba = lambda _: 0.9 * probs
    words = r"^predict_proba\(X\) row 0 sums to 0\.9.*; make the scorer with normalize=True"
    with pytest.raises(ValueError, match=words):
        neg_ckce(model, x, y)
    assert np.isfinite(make_scorer("ckce", normalize=True)(model, x, y))
    with pytest.raises(ValueError, match=r"^y_true and predict_proba\(X\) must have the same"):
        neg_ckce(model, x, y[1:])
