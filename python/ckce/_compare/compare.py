"""Which of several models is better calibrated, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._compare.brier_split import split_brier
from ckce._compare.common_ground import check_ground, ground_problems, pair_of
from ckce._compare.comparison import ComparedModel, Comparison
from ckce._compare.ground import Grounds
from ckce._compare.guard_rails import guard_rails, is_constant
from ckce._compare.models import check_models, shared_problems
from ckce._compare.verdict import CommonGround, judge
from ckce._input import KernelLike, Samples, check_level, check_segments, take_column
from ckce._methods import Method
from ckce._metrics.calibration_test import check_test, of_test, run_test
from ckce._metrics.ckce import jackknife
from ckce._metrics.ece import ece_estimate_of
from ckce._metrics.estimate import Estimate, ckce_fields, estimate_and_solution
from ckce._metrics.jkce import check_pairs, jkce_estimate_of
from ckce._metrics.miscalibration import (
    Miscalibration,
    miscalibration_beside,
    miscalibration_fields,
    refuse_without_memory,
)
from ckce._metrics.score_table import score_values
from ckce._metrics.scores import scores_of
from ckce._metrics.segments import segments_of
from ckce._problem import (
    Bandwidth,
    Problem,
    Progress,
    ReductionLike,
    Settings,
    check_reduction,
    check_settings,
    median_of,
    part,
    progress_bar,
)
from ckce._results import apart, standard_error


@dataclass(frozen=True)
class Evaluated:
    """All that is computed of one model."""

    problem: Problem
    estimate: Estimate
    record: ComparedModel
    replicates: NDArray[np.float64]  # CKCE without each group of the frequencies; empty if unknown
    off: Miscalibration | None
    brier: float  # of the reduced problem
    own_median: Bandwidth | None  # where a pooled one was taken


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
    by: Any = None,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    r"""Which model is better calibrated, at equal predictions, with paired confidence intervals.

    All models are measured alike: one bandwidth (the median over the within-model distances of all
    models together), one lambda, the same frequencies or one tolerance. The table lists them by
    debiased CKCE with its interval. That value also depends on how often a model predicts what, so
    each pair is compared at equal predictions, see `common_ground`: "is better calibrated than" is
    said only where three runs of that comparison agree. With the influences :math:`\psi_i` of the
    samples on the two values there,

    .. math::
        \mathrm{se}^2 = \frac{1}{n (n-1)} \sum_i (\psi^A_i - \psi^B_i)^2

    gives an interval and a two-sided p-value for the difference; p-values are adjusted for the
    number of pairs by Holm's method, within each run. Guard rails say what else to look at.

    Parameters
    ----------
    y_true : array of shape (n_samples,), or dict of such arrays
        Labels; a dict with the keys of `y_prob` where they differ between models, as for "was the
        prediction right".
    y_prob : dict of arrays of shape (n_samples, n_classes) or (n_samples,)
        Predictions of each model. Rows are paired: row i is the same case for all models.
    level : float
        Level of all intervals; a difference is shown if its adjusted p-values are below 1 - level.
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
    by : array of shape (n_samples,), dict of such arrays, or str, optional
        Segments of the rows, as in `evaluate`: `segments` then has the CKCE of every model in every
        segment, with intervals that hold for all of them at once (Sidak).
    kernel : {"linear_gaussian", "gaussian"}
        A kernel with a Gaussian part, which the comparison at equal predictions needs.
    method, labels, random_state, input, normalize, n_threads, progress
        As in `ckce`; the method is that of the values in the table. Pairs are always compared by
        landmarks, and above 20 classes by the five largest probabilities and the rest.

    Returns
    -------
    Comparison
        `models`, `pairs`, `best` and `warnings`; with ``to_dict()``, ``to_frame()``, ``plot()``,
        ``plot_differences()``, ``plot_pairs()`` and ``sensitivity()``.

    Notes
    -----
    An interval covers the difference of the *regularised* population values: at this bandwidth,
    lambda and these frequencies, for a new sample of this size from the same source. It says nothing
    of lambda = 0, of other data, or of retrained models. See docs/comparing.md.

    Cost: that of `estimate`, `jkce_estimate` and O(n r^2) for each model, r about 250 with 10
    classes; that of `miscalibration`; O(n r m) for each pair. Many rows of two classes: O(n) for all.

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
    At equal predictions good is better calibrated than sharp (difference 0.0474, 95 % interval 0.0341 to 0.0607; 76 % of the predictions' variety is shared).
    >>> c.best
    ('good',)
    """
    by, y_prob = take_column(by, y_prob)
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
    check_ground(settings)
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
    check_pairs(next(iter(models.values())))
    partitions = check_segments(by, y_true, sample_weight)
    problems = shared_problems(models, settings)
    refuse_without_memory(problems.values())
    evaluated: dict[str, Evaluated] = {}
    with progress_bar(progress, f"compare {len(models)} models") as report:
        for name, problem in problems.items():
            evaluated[name] = _evaluate(name, models[name], problem, settings, level, resamples)
            if report is not None:
                report(0.5 * len(evaluated) / len(models))
        for name, problem in _by_one_method(evaluated, problems).items():
            evaluated[name] = _evaluate(name, models[name], problem, settings, level, resamples)
        readings = ground_problems(models, settings, problems)
        found = _comparison(evaluated, readings, level, resamples, part(report, 0.5, 1.0))
    parts = {name: (models[name], problems[name]) for name in found.names}
    return replace(found, segments=segments_of(parts, partitions, level))


def _by_one_method(
    evaluated: Mapping[str, Evaluated], problems: Mapping[str, Problem]
) -> dict[str, Problem]:
    """Models that are to be evaluated again, because "auto" had to leave its method for another one.

    Values of two methods do not stand in one table.
    """
    left = {name: model.problem.method for name, model in evaluated.items()}
    better = [method for name, method in left.items() if method != problems[name].method]
    if not better:
        return {}
    return {
        name: replace(problems[name], method=better[0])
        for name, method in left.items()
        if method != better[0]
    }


def _comparison(
    evaluated: Mapping[str, Evaluated],
    readings: Mapping[str, Problem],
    level: float,
    resamples: int,
    report: Progress | None,
) -> Comparison:
    """Rank the models, judge the pairs, and say what speaks against it."""
    names = tuple(sorted(evaluated, key=lambda name: (evaluated[name].estimate.debiased, name)))
    ranked = [evaluated[name] for name in names]
    records = tuple(model.record for model in ranked)
    grounds = Grounds(readings)
    pairs = _pairs(ranked, grounds, level, report)
    first, best = ranked[0].problem, ranked[0].estimate
    read = readings[names[0]].reduction
    ground = grounds.map.word
    if read is not None and first.reduction is None:
        ground += f",{read.word}"
    words = {"models": str(len(names)), "level": repr(level), "ground": ground}
    if resamples:
        words["test"] = str(resamples)
    inputs = {str(model.problem.samples.prepared) for model in ranked}
    if len(inputs) > 1:  # readings of one log, for example
        words["in"] = "+".join(sorted(inputs))
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
        brier_splits=tuple(
            split_brier(
                {name: evaluated[name].brier for name in names},
                {name: evaluated[name].off for name in names},
                first.samples,
                level,
            )
        ),
        level=level,
        method=best.method,
        bandwidth=best.bandwidth,
        bandwidth_source=first.bandwidth.source,
        ground_bandwidth=grounds.bandwidth,
        regularization=best.regularization,
        n_samples=best.n_samples,
        n_classes=best.n_classes,
        n_groups=best.n_groups,
        signature=str(first.signature.but("compare", **words)),
        _rerun=partial(_differences_at, grounds),
        _problems={name: evaluated[name].problem for name in names},
    )


def _pairs(
    ranked: Sequence[Evaluated], grounds: Grounds, level: float, report: Progress | None
) -> tuple[CommonGround, ...]:
    """All pairs, in the order of the ranking."""
    both = list(combinations(ranked, 2))
    pairs = []
    for done, (a, b) in enumerate(both, 1):
        difference = apart(a.estimate.debiased, b.estimate.debiased)
        influence = a.estimate.influence - b.estimate.influence
        samples = a.problem.samples
        se = standard_error(influence, samples.weights, samples.groups)
        names = (a.record.name, b.record.name)
        pairs.append(pair_of(grounds, names, (difference, se), _pair_error(a, b)))
        if report is not None:
            report(done / len(both))
    return judge(pairs, level)


def _pair_error(a: Evaluated, b: Evaluated) -> float:
    """What the method adds to the difference: by a jackknife of random features, else by bounds."""
    if len(a.replicates) and len(b.replicates):
        error = jackknife(a.record.ckce - b.record.ckce, a.replicates - b.replicates)
        return math.nan if error is None else error
    if a.record.ckce_error is None or b.record.ckce_error is None:
        return math.nan
    return a.record.ckce_error + b.record.ckce_error


def _own_median(problem: Problem) -> Bandwidth | None:
    """The median distance of one model, where a pooled one was taken."""
    if not problem.bandwidth.pooled:
        return None
    return median_of([problem.samples], problem.kernel, problem.seed, problem.n_threads)


def _own_medians(evaluated: Mapping[str, Evaluated]) -> dict[str, float]:
    """The median distance of each model that has one, where a pooled one was taken."""
    medians = {}
    for name, model in evaluated.items():
        found = model.own_median
        if found is None:
            return {}
        if found.value is not None and found.kind != "no distances":
            medians[name] = found.value
    return medians


def _evaluate(
    name: str, samples: Samples, problem: Problem, settings: Settings, level: float, resamples: int
) -> Evaluated:
    threads = settings.n_threads
    e, solved, solutions = estimate_and_solution(problem, progress=False, level=level)
    j = jkce_estimate_of(solved.of_jkce(), progress=False)
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
    own = _own_median(problem)
    off, brier = miscalibration_beside(problem, level, own), reduced.brier / reduced.weight
    record = ComparedModel(
        name=name,
        **score_values(scores, samples, threads),
        ece_top_label=ece_estimate_of(samples, threads).value,
        jkce=j.value,
        jkce_se=j.se,
        **ckce_fields(e, level),
        sharpness=reduced.sharpness / reduced.weight,
        ckce_error=None if e.bound is None else e.bound + (e.debias_error or 0.0),
        p_value=p_value,
        constant=is_constant(samples.probs),
        **miscalibration_fields(off),
        refinement=None if off is None else brier - off.value,
    )
    return Evaluated(solved, e, record, solutions[0].replicates, off, brier, own)


def _differences_at(
    grounds: Grounds,
    pairs: Sequence[tuple[str, str]],
    bandwidth: float,
    regularizations: Sequence[float],
) -> list[list[float]]:
    """Differences at equal predictions, first minus second, with one bandwidth for each lambda."""
    grounds = grounds.at(bandwidth)
    return [[grounds.difference(pair, lam) for pair in pairs] for lam in regularizations]
