"""Models that are compared: their predictions, checked, and the settings that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ckce._input import Samples, check_rows, check_samples, within
from ckce._problem import Problem, Settings, choose_by_loo, median_of, problem_of


def check_models(y_true: Any, y_prob: Any, **options: Any) -> dict[str, Samples]:
    """Checked samples of every model, all of one shape."""
    if not isinstance(y_prob, Mapping):
        hint = "use ckce.evaluate for one model"
        if hasattr(y_prob, "columns"):
            hint = (
                "pass {name: y_prob[name] for name in y_prob.columns} if each column is a model's "
                f"probability of the second class, or {hint}"
            )
        raise TypeError(
            f"y_prob must be a dict of predictions by model, got {type(y_prob).__name__}; {hint}"
        )
    if len(y_prob) < 2:
        raise ValueError(
            f"y_prob must hold at least 2 models, got {len(y_prob)}; use ckce.evaluate for one"
        )
    for name in y_prob:
        if not isinstance(name, str):
            raise TypeError(f"y_prob must have strings as keys, got {name!r}")
    if isinstance(y_true, Mapping) and set(y_true) != set(y_prob):
        raise ValueError(
            f"y_true must have the keys of y_prob, got {sorted(y_true)} and {sorted(y_prob)}"
        )
    check_rows({f"model {name!r}": probs for name, probs in y_prob.items()})
    models: dict[str, Samples] = {}
    shape = None
    for name, probs in y_prob.items():
        truth = y_true[name] if isinstance(y_true, Mapping) else y_true
        try:
            models[name] = check_samples(truth, probs, ranked=True, **options)
        except (TypeError, ValueError) as error:
            raise within(f"model {name!r}", error) from None
        found = models[name].probs.shape
        if shape is None:
            shape = found
        if found != shape:
            raise ValueError(
                f"all models must have predictions of one shape, since rows are paired, got {shape} "
                f"and {found} for model {name!r}"
            )
    if len({samples.ranked is None for samples in models.values()}) > 1:
        raise ValueError(
            "all models must have all classes, or all ckce.TopKPredictions, got some of both; pass "
            "the k largest entries of each"
        )
    return models


def shared_problems(models: Mapping[str, Samples], settings: Settings) -> dict[str, Problem]:
    """Problems with one bandwidth and one lambda."""
    reduced = {name: settings.reduce(samples) for name, samples in models.items()}
    pooled = None
    if settings.bandwidth == "median" and _needs_bandwidth(settings):
        seed, threads = settings.seed, settings.n_threads
        pooled = median_of(list(reduced.values()), settings.kernel, seed, threads, pooled=True)
    by_loo = settings.regularization == "loo"
    own = replace(settings, regularization=None) if by_loo else settings
    problems = {
        name: problem_of("ckce", samples, own, bandwidth=pooled, reduced=reduced[name])
        for name, samples in models.items()
    }
    if not by_loo:
        return problems
    chosen = choose_by_loo(list(problems.values()))
    return {name: replace(each, regularization=chosen) for name, each in problems.items()}


def _needs_bandwidth(settings: Settings) -> bool:
    method = settings.method
    given = method is not None and method.sets_bandwidth
    return settings.kernel.has_bandwidth and not given
