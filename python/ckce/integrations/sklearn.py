"""Scorers for scikit-learn: ``cross_validate``, ``GridSearchCV`` and the like.

A scorer is called with a fitted classifier, the data and its labels. It passes the classifier's
``classes_`` on, so labels of any kind work, also where a fold misses a class. Greater is better
for scikit-learn, so errors come with the opposite sign.

CKCE is debiased, and its bandwidth is the default that does not depend on the predictions: every
candidate is measured alike. Calibration alone is no criterion for a search, because a constant
predictor is calibrated: look at it beside a proper score, and choose by that score
(``refit="neg_log_loss"``).

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from sklearn.linear_model import LogisticRegression
>>> from sklearn.model_selection import GridSearchCV
>>> from ckce.integrations.sklearn import neg_ckce, neg_log_loss
>>> X, y = load_iris(return_X_y=True)
>>> scoring = {"neg_ckce": neg_ckce, "neg_log_loss": neg_log_loss}
>>> model = LogisticRegression(max_iter=1000)
>>> search = GridSearchCV(model, {"C": [0.1, 1.0]}, scoring=scoring, refit="neg_log_loss").fit(X, y)
>>> len(search.cv_results_["mean_test_neg_ckce"])
2
"""

from collections.abc import Callable
from typing import Any

import ckce
from ckce._input import InputError, InputTypeError, check_classifier, when_made

__all__ = [
    "SCORERS",
    "CalibrationScorer",
    "accuracy",
    "make_scorer",
    "neg_brier",
    "neg_ckce",
    "neg_ece_class_wise",
    "neg_ece_simplex",
    "neg_ece_top_label",
    "neg_jkce",
    "neg_log_loss",
    "neg_smooth_ece",
]


def _debiased_ckce(y_true: Any, y_prob: Any, **options: Any) -> float:
    if options.get("kernel") != "linear":
        options.setdefault("bandwidth", "default")
    return ckce.estimate(y_true, y_prob, **options).debiased


def _unbiased_jkce(y_true: Any, y_prob: Any, **options: Any) -> float:
    if options.get("kernel") != "linear":
        options.setdefault("bandwidth", "default")
    return ckce.jkce(y_true, y_prob, **options)


_WITHOUT_GROUPS: dict[str, Callable[..., float]] = {
    "ece": ckce.ece,
    "smooth_ece": ckce.smooth_ece,
    "brier": ckce.brier,
    "log_loss": ckce.log_loss,
    "accuracy": ckce.accuracy,
}
#: A scorer is told no predictions, and its options when it is made.
_NAMES = {"y_prob": "predict_proba(X)"}
_HINTS = when_made("scorer")
_METRICS = {"ckce": _debiased_ckce, "jkce": _unbiased_jkce, **_WITHOUT_GROUPS}


class CalibrationScorer:
    """A metric of labels and probabilities as a scikit-learn scorer.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_prob, labels=..., sample_weight=..., **options) -> float``.
    sign : int
        -1 for errors, 1 for what should be large.
    **options
        Passed to the metric.
    """

    def __init__(self, metric: Callable[..., float], sign: int = -1, **options: Any) -> None:
        self.metric = metric
        self.sign = sign
        self.options = options

    def __call__(
        self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None, groups: Any = None
    ) -> float:
        """Score a fitted classifier; greater is better. CKCE and JKCE take groups of rows."""
        check_classifier(estimator)
        dependent = {} if groups is None else {"groups": groups}
        if dependent and self.metric in _WITHOUT_GROUPS.values():
            raise ValueError(
                f"groups must be None for a scorer of {self.metric.__name__}, whose value does not "
                "change with groups"
            )
        try:
            value = self.metric(
                y_true,
                estimator.predict_proba(X),
                labels=estimator.classes_,
                sample_weight=sample_weight,
                **dependent,
                **self.options,
            )
        except (InputError, InputTypeError) as error:
            raise error.renamed(_NAMES, _HINTS) from None
        return self.sign * value

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"CalibrationScorer({self.metric.__name__}, sign={self.sign}{options})"


def make_scorer(metric: str, **options: Any) -> CalibrationScorer:
    """Scorer of a metric with options of your own.

    Parameters
    ----------
    metric : {"ckce", "jkce", "ece", "smooth_ece", "brier", "log_loss", "accuracy"}
        What to compute; ``ckce`` is the debiased value. All but ``accuracy`` come with the opposite
        sign.
    **options
        Options of the function of this name (of `ckce.estimate` for ``ckce``).

    Returns
    -------
    CalibrationScorer

    Examples
    --------
    >>> make_scorer("ece", variant="class_wise", n_bins=20)
    CalibrationScorer(ece, sign=-1, variant='class_wise', n_bins=20)
    """
    if metric not in _METRICS:
        raise ValueError(f"metric must be one of {list(_METRICS)}, got {metric!r}")
    return CalibrationScorer(_METRICS[metric], 1 if metric == "accuracy" else -1, **options)


neg_ckce = make_scorer("ckce")
neg_jkce = make_scorer("jkce")
neg_ece_top_label = make_scorer("ece", variant="top_label")
neg_ece_class_wise = make_scorer("ece", variant="class_wise")
neg_ece_simplex = make_scorer("ece", variant="simplex")
neg_smooth_ece = make_scorer("smooth_ece")
neg_brier = make_scorer("brier")
neg_log_loss = make_scorer("log_loss")
accuracy = make_scorer("accuracy")

#: All of them by name, for ``cross_validate(..., scoring=SCORERS)``.
SCORERS = {
    name: scorer for name, scorer in globals().items() if isinstance(scorer, CalibrationScorer)
}
