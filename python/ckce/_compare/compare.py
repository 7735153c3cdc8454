"""Which of several models is better calibrated, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ckce._compare.comparison import ComparedModel, Comparison
from ckce._compare.guard_rails import guard_rails, is_constant
from ckce._compare.models import check_models, shared_problems
from ckce._compare.pairs import compare_pairs
from ckce._compare.sensitivity import Setting
from ckce._input import KernelLike, Samples, check_level
from ckce._methods import Fourier, Method
from ckce._metrics.calibration_test import check_test, of_test, run_test
from ckce._metrics.ckce import solve
from ckce._metrics.ece import ece_estimate_of
from ckce._metrics.estimate import Estimate, estimate_and_problem, estimate_of
from ckce._metrics.jkce import jkce_estimate_of
from ckce._metrics.scores import scores_of
from ckce._problem import (
    Bandwidth,
    Problem,
    ReductionLike,
    Regularization,
    Settings,
    check_reduction,
    check_settings,
    median_of,
    progress_bar,
)


@dataclass(frozen=True)
class Evaluated:
    """All that is computed of one model."""

    problem: Problem
    estimate: Estimate
    record: ComparedModel
    halves: tuple[float, float] | None  # CKCE by each half of the frequencies


def compare(
    y_true: Any,
    y_prob: Mapping[str, Any],
    *,
    level: float = 0.95,
    test: bool | int = False,
    method: str | Method = "auto",
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | str | None = None,
    reduction: ReductionLike = None,
    sample_weight: Any = None,
    groups: Any = None,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    r"""Rank models by calibration, with paired confidence intervals.

    All models are measured alike: one bandwidth (the median over the within-model distances of all
    models together), one lambda, the same frequencies or one tolerance. They are ranked by debiased
    CKCE. For each pair, with the influences :math:`\psi_i` of the samples on the two values,

    .. math::
        \mathrm{se}^2 = \frac{1}{n (n-1)} \sum_i (\psi^A_i - \psi^B_i)^2

    gives an interval and a two-sided p-value for the difference; p-values are adjusted for the
    number of pairs by Holm's method. Guard rails say what speaks against the ranking.

    Parameters
    ----------
    y_true : array of shape (n_samples,), or dict of such arrays
        Labels; a dict with the keys of `y_prob` where they differ between models, as for "was the
        prediction right".
    y_prob : dict of arrays of shape (n_samples, n_classes) or (n_samples,)
        Predictions of each model. Rows are paired: row i is the same case for all models.
    level : float
        Level of all intervals; a pair is significant if its adjusted p-value is below 1 - level.
    test : bool or int
        Whether to add each model's p-value of `calibration_test`, by 999 resamples or as many as
        given. Not with groups, because the test needs independent labels.
    bandwidth : float or "median"
        One number for all models, or the pooled median.
    regularization : float or "loo", optional
        One lambda for all models: n^(-1/4), a number, or the one with the smallest sum over the
        models of the leave-one-out errors. The last ranked models worse more often than better.
        Intervals hold it fixed, and `test` is refused beside it, since it looks at the labels.
    reduction : "top_label" or `TopK`, optional
        Compare confidence calibration only, or the calibration of the k largest entries.
    sample_weight : array of shape (n_samples,), optional
        Frequency weights, the same for all models.
    groups : array of shape (n_samples,), optional
        Ids of rows that depend on each other, as in `estimate`, the same for all models. Intervals and
        p-values then come from the sums of :math:`\psi^A_i - \psi^B_i` over the groups and from
        Student's t.
    method, kernel, labels, random_state, input, normalize, n_threads, progress
        As in `ckce`.

    Returns
    -------
    Comparison
        `models`, `pairs` and `warnings`; with ``to_dict()``, ``to_frame()``, ``plot()``,
        ``plot_pairs()`` and ``sensitivity()``.

    Notes
    -----
    An interval covers the difference of the *regularised* population values: at this bandwidth,
    lambda and these frequencies, for a new sample of this size from the same source. It says nothing
    of lambda = 0, of other data, or of retrained models. See docs/comparing.md.

    Cost: that of `estimate` and `jkce_estimate` for each model; all pairs together O(k^2 n).

    Examples
    --------
    >>> import ckce
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> good = rng.dirichlet([1, 1, 1], size=2000)
    >>> y_true = (rng.random((2000, 1)) > good.cumsum(axis=1)[:, :2]).sum(axis=1)
    >>> sharp = good**2 / (good**2).sum(axis=1, keepdims=True)
    >>> c = ckce.compare(y_true, {"sharp": sharp, "good": good})
    >>> c.names
    ('good', 'sharp')
    >>> print(c.pairs[0].sentence)
    good is better calibrated than sharp (difference 0.0475, 95 % interval 0.0359 to 0.0590)
    """
    level = check_level(level)
    check_reduction(reduction, ("top_label",))
    resamples = check_test(test, regularization, groups)
    settings = check_settings(
        "ckce",
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
        reduction=reduction,
        random_state=random_state,
        n_threads=n_threads,
    )
    models = check_models(
        y_true,
        y_prob,
        labels=labels,
        sample_weight=sample_weight,
        input=input,
        normalize=normalize,
        n_threads=settings.n_threads,
        groups=groups,
    )
    problems = shared_problems(models, settings)
    evaluated: dict[str, Evaluated] = {}
    with progress_bar(progress, f"compare {len(models)} models") as report:
        for name, problem in problems.items():
            evaluated[name] = _evaluate(name, models[name], problem, settings, level, resamples)
            if report is not None:
                report(len(evaluated) / len(models))
    return _comparison(evaluated, level, resamples)


def _comparison(evaluated: Mapping[str, Evaluated], level: float, resamples: int) -> Comparison:
    """Rank the models, and say what speaks for and against the ranking."""
    names = tuple(sorted(evaluated, key=lambda name: (evaluated[name].estimate.debiased, name)))
    ranked = [evaluated[name] for name in names]
    records = tuple(model.record for model in ranked)
    pairs = compare_pairs(ranked, level)
    first, best = ranked[0].problem, ranked[0].estimate
    words = {"models": str(len(names)), "level": repr(level)}
    if resamples:
        words["test"] = str(resamples)
    return Comparison(
        names=names,
        models=records,
        pairs=pairs,
        warnings=guard_rails(
            records,
            pairs,
            best.n_samples,
            best.bandwidth,
            _own_medians(evaluated),
        ),
        estimates={name: evaluated[name].estimate for name in names},
        level=level,
        method=best.method,
        bandwidth=best.bandwidth,
        bandwidth_source=first.bandwidth.source,
        regularization=best.regularization,
        n_samples=best.n_samples,
        n_classes=best.n_classes,
        n_groups=best.n_groups,
        signature=str(first.signature.but("compare", **words)),
        _rerun=partial(_debiased_at, ranked),
    )


def _own_medians(evaluated: Mapping[str, Evaluated]) -> dict[str, float]:
    """The median distance of each model, where a pooled one was taken."""
    medians = {}
    for name, model in evaluated.items():
        problem = model.problem
        if not problem.bandwidth.pooled:
            return {}
        found = median_of([problem.samples], problem.kernel, problem.seed, problem.n_threads)
        if found.value is not None and found.kind != "no distances":
            medians[name] = found.value
    return medians


def _evaluate(
    name: str, samples: Samples, problem: Problem, settings: Settings, level: float, resamples: int
) -> Evaluated:
    threads = settings.n_threads
    e, solved = estimate_and_problem(problem, progress=False, level=level)
    j = jkce_estimate_of(problem.of_jkce(), progress=False)
    scores = scores_of(samples, threads)
    reduced = scores if settings.reduction is None else scores_of(problem.samples, threads)
    p_value = None
    if resamples:
        p_value = run_test(
            samples,
            of_test(settings),
            resamples,
            progress=False,
            beside=problem,
        ).p_value
    low, high = e.interval()
    record = ComparedModel(
        name=name,
        accuracy=scores.hits / scores.weight,
        mean_confidence=scores.confidence / scores.weight,
        log_loss=scores.log_loss / scores.weight,
        brier=scores.brier / scores.weight,
        ece_top_label=ece_estimate_of(samples, threads).value,
        jkce=j.value,
        jkce_se=j.se,
        ckce=e.value,
        ckce_floor=e.floor,
        ckce_debiased=e.debiased,
        ckce_se=e.se,
        ckce_low=low,
        ckce_high=high,
        sharpness=reduced.sharpness / reduced.weight,
        ckce_error=None if e.bound is None else e.bound + (e.debias_error or 0.0),
        p_value=p_value,
        constant=is_constant(samples.probs),
    )
    return Evaluated(solved, e, record, _halves(solved))


def _halves(problem: Problem) -> tuple[float, float] | None:
    """CKCE by the first and by the second half of the frequencies; a quarter of the work each."""
    if not isinstance(problem.method, Fourier):
        return None
    halves = problem.method.halves(problem.rows)
    if halves is None:
        return None
    first, second = (
        solve(replace(problem, method=half), full=False, progress=False)[1][0].solution.value
        for half in halves
    )
    return first, second


def _debiased_at(models: Sequence[Evaluated], setting: Setting) -> list[float]:
    """Debiased CKCE of the models under another setting."""
    changes: dict[str, Any] = {}
    if setting.bandwidth is not None:
        changes["bandwidth"] = Bandwidth(setting.bandwidth, "given")
    if setting.regularization is not None:
        changes["regularization"] = Regularization(setting.regularization, "given")
    if setting.random_state is not None:
        changes["seed"] = setting.random_state
    return [_debiased_of(model, changes, setting.n_frequencies) for model in models]


def _debiased_of(model: Evaluated, changes: dict[str, Any], n_frequencies: int | None) -> float:
    problem = model.problem
    other = replace(problem, **changes)
    if n_frequencies is not None and isinstance(problem.method, Fourier):
        other = replace(other, method=replace(problem.method, n_frequencies=n_frequencies))
    same = (
        other.bandwidth.value == problem.bandwidth.value
        and other.regularization.value == problem.regularization.value
        and (other.method, other.seed) == (problem.method, problem.seed)
    )
    return model.estimate.debiased if same else estimate_of(other, progress=False).debiased
