"""Scorers for scikit-learn: ``cross_validate``, ``GridSearchCV`` and the like.

A scorer is called with a fitted classifier, the data and its labels. It passes the classifier's
``classes_`` on, so labels of any kind work, also where a fold misses a class. Greater is better
for scikit-learn, so errors come with the opposite sign.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from sklearn.linear_model import LogisticRegression
>>> from sklearn.model_selection import cross_validate
>>> from ckce.integrations.sklearn import neg_ckce, neg_ece
>>> X, y = load_iris(return_X_y=True)
>>> scoring = {"ckce": neg_ckce, "ece": neg_ece}
>>> result = cross_validate(LogisticRegression(max_iter=1000), X, y, scoring=scoring)
>>> bool((result["test_ckce"] <= 0).all())
True
"""

from collections.abc import Callable
from typing import Any

import ckce
from ckce._input.samples import check_classifier

__all__ = [
    "SCORERS",
    "CalibrationScorer",
    "accuracy",
    "make_scorer",
    "neg_brier",
    "neg_ckce",
    "neg_ckce_debiased",
    "neg_ece",
    "neg_ece_class_wise",
    "neg_ece_top_label",
    "neg_jkce",
    "neg_log_loss",
]


def _debiased(y_true: Any, y_prob: Any, **options: Any) -> float:
    return ckce.estimate(y_true, y_prob, **options).debiased


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

    def __call__(self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None) -> float:
        """Score a fitted classifier; greater is better."""
        check_classifier(estimator)
        value = self.metric(
            y_true,
            estimator.predict_proba(X),
            labels=estimator.classes_,
            sample_weight=sample_weight,
            **self.options,
        )
        return self.sign * value

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"CalibrationScorer({self.metric.__name__}, sign={self.sign}{options})"


def make_scorer(metric: str, **options: Any) -> CalibrationScorer:
    """Scorer of a metric with options of your own.

    Parameters
    ----------
    metric : {"ckce", "ckce_debiased", "jkce", "ece", "brier", "log_loss", "accuracy"}
        What to compute. All but ``accuracy`` come with the opposite sign.
    **options
        Of the function of this name (of `ckce.estimate` for ``ckce_debiased``). For a search over
        models fix ``bandwidth``: else each candidate is measured with its own.

    Returns
    -------
    CalibrationScorer

    Examples
    --------
    >>> make_scorer("ece", variant="top_label", n_bins=15)
    CalibrationScorer(ece, sign=-1, variant='top_label', n_bins=15)
    """
    metrics: dict[str, Callable[..., float]] = {
        "ckce": ckce.ckce,
        "ckce_debiased": _debiased,
        "jkce": ckce.jkce,
        "ece": ckce.ece,
        "brier": ckce.brier,
        "log_loss": ckce.log_loss,
        "accuracy": ckce.accuracy,
    }
    if metric not in metrics:
        raise ValueError(f"metric must be one of {list(metrics)}, got {metric!r}")
    return CalibrationScorer(metrics[metric], 1 if metric == "accuracy" else -1, **options)


neg_ckce = make_scorer("ckce")
neg_ckce_debiased = make_scorer("ckce_debiased")
neg_jkce = make_scorer("jkce")
neg_ece = make_scorer("ece")
neg_ece_top_label = make_scorer("ece", variant="top_label")
neg_ece_class_wise = make_scorer("ece", variant="class_wise")
neg_brier = make_scorer("brier")
neg_log_loss = make_scorer("log_loss")
accuracy = make_scorer("accuracy")

#: All of them by name, for ``cross_validate(..., scoring=SCORERS)``.
SCORERS = {
    "neg_ckce": neg_ckce,
    "neg_ckce_debiased": neg_ckce_debiased,
    "neg_jkce": neg_jkce,
    "neg_ece": neg_ece,
    "neg_ece_top_label": neg_ece_top_label,
    "neg_ece_class_wise": neg_ece_class_wise,
    "neg_brier": neg_brier,
    "neg_log_loss": neg_log_loss,
    "accuracy": accuracy,
}
