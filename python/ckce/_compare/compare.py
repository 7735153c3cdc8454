"""Which of several models is better calibrated, and how sure that is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._compare.comparison import ComparedModel, ComparedPair, Comparison
from ckce._compare.guard_rails import guard_rails
from ckce._compare.sensitivity import Setting
from ckce._config import resolve_threads
from ckce._input.samples import (
    Samples,
    check_bool,
    check_choice,
    check_level,
    check_rows,
    check_samples,
    check_seed,
)
from ckce._methods.fourier import fourier_frequencies
from ckce._metrics.calibration_test import calibration_test, check_test
from ckce._metrics.ckce import KernelLike, _progress, ckce, estimate, shared_lambda
from ckce._metrics.estimate import Estimate
from ckce._metrics.evaluate import top_label_ece
from ckce._metrics.jkce import JkceEstimate, jkce_estimate
from ckce._metrics.scores import scores_of
from ckce._problem.bandwidth import pooled_median
from ckce._problem.kernels import KERNELS
from ckce._problem.reduction import top_label


@dataclass(frozen=True)
class _Evaluated:
    """All that is computed of one model."""

    name: str
    estimate: Estimate
    jkce: JkceEstimate
    record: ComparedModel
    halves: tuple[float, float] | None  # CKCE by each half of the frequencies


def compare(
    y_true: Any,
    y_prob: Mapping[str, Any],
    *,
    level: float = 0.95,
    test: bool | int = False,
    method: str = "auto",
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | str | None = None,
    n_frequencies: int = 100,
    sampler: str = "gaussian",
    frequencies: Any = None,
    rank: int | None = None,
    tol: float | None = None,
    pivoting: str = "greedy",
    reduction: str | None = None,
    sample_weight: Any = None,
    labels: Any = None,
    random_state: int = 0,
    precision: str = "float64",
    normalize: bool = False,
    from_logits: bool = False,
    n_threads: int | None = None,
    progress: bool = False,
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
        Of all intervals; a pair is significant if its adjusted p-value is below 1 - level.
    test : bool or int
        Whether to add each model's p-value of `calibration_test`, by 999 resamples or as many as
        given.
    bandwidth : float or "median"
        One number for all models, or the pooled median.
    regularization : float or "loo", optional
        One lambda for all models: n^(-1/4), a number, or the one with the smallest sum over the
        models of the leave-one-out errors. The last ranked models worse more often than better.
        Intervals hold it fixed, and `test` is refused beside it, since it looks at the labels.
    reduction : {"top_label"}, optional
        Compare confidence calibration only.
    sample_weight : array of shape (n_samples,), optional
        Frequency weights, the same for all models.
    method, kernel, n_frequencies, sampler, frequencies, rank, tol, pivoting,
    labels, random_state, precision, normalize, from_logits, n_threads, progress
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
    good is better calibrated than sharp (difference 0.0475, 95 % interval 0.0359 to 0.059)
    """
    level = check_level(level)
    if reduction is not None:
        check_choice("reduction", reduction, ("top_label",))
    resamples = check_test(test, regularization)
    seed = check_seed(random_state)
    threads = resolve_threads(n_threads)
    models = _check_models(
        y_true,
        y_prob,
        labels=labels,
        sample_weight=sample_weight,
        normalize=check_bool("normalize", normalize),
        from_logits=check_bool("from_logits", from_logits),
        n_threads=threads,
    )
    gamma, source = _pooled(list(models.values()), kernel, bandwidth, reduction, seed, threads)
    if frequencies is not None:
        gamma, source = bandwidth, "frequencies"  # `estimate` refuses a bandwidth beside them
    shared: dict[str, Any] = {
        "method": method,
        "kernel": kernel,
        "n_frequencies": n_frequencies,
        "sampler": sampler,
        "frequencies": frequencies,
        "rank": rank,
        "tol": tol,
        "pivoting": pivoting,
        "reduction": reduction,
        "random_state": seed,
        "normalize": normalize,  # done already; for the signature
        "from_logits": from_logits,
        "n_threads": threads,
        "bandwidth": gamma,
    }
    of_ckce = {**shared, "regularization": regularization, "precision": precision}
    loo = isinstance(regularization, str) and regularization == "loo"
    if loo:
        of_ckce["regularization"] = shared_lambda(list(models.values()), of_ckce)
    evaluated = []
    with _progress(progress, f"compare {len(models)} models") as report:
        for name, samples in models.items():
            evaluated.append(_evaluate(name, samples, shared, of_ckce, level, resamples))
            if report is not None:
                report(len(evaluated) / len(models))
    evaluated.sort(key=lambda model: (model.estimate.debiased, model.name))
    names = tuple(model.name for model in evaluated)
    weights = next(iter(models.values())).weights
    pairs = _pairs(evaluated, weights, level)
    first = evaluated[0].estimate
    return Comparison(
        names=names,
        models=tuple(model.record for model in evaluated),
        pairs=pairs,
        warnings=guard_rails([model.record for model in evaluated], pairs, first.n_samples),
        level=level,
        method=first.method,
        bandwidth=first.bandwidth,
        bandwidth_source=source,
        regularization=first.regularization,
        n_samples=first.n_samples,
        n_classes=first.n_classes,
        signature=_signature(first, source, loo, len(names), level, resamples),
        _rerun=partial(_debiased_at, tuple(models[name] for name in names), of_ckce),
    )


def _check_models(y_true: Any, y_prob: Any, **options: Any) -> dict[str, Samples]:
    """Checked samples of every model, all of one shape."""
    if not isinstance(y_prob, Mapping):
        raise TypeError(
            f"y_prob must be a dict of predictions by model, got {type(y_prob).__name__}; use "
            "ckce.evaluate for one model"
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
            models[name] = check_samples(truth, probs, **options)
        except (TypeError, ValueError) as error:
            raise type(error)(f"model {name!r}: {error}") from None
        found = models[name].probs.shape
        if shape is None:
            shape = found
        if found != shape:
            raise ValueError(
                f"all models must have predictions of one shape, since rows are paired, got {shape} "
                f"and {found} for model {name!r}"
            )
    return models


def _pooled(
    models: Sequence[Samples],
    kernel: KernelLike,
    bandwidth: float | str,
    reduction: str | None,
    seed: int,
    n_threads: int,
) -> tuple[float | str, str]:
    """The bandwidth for all models, and where it comes from."""
    if not isinstance(bandwidth, str):
        return bandwidth, "given"
    check_choice("bandwidth", bandwidth, ["median"])
    if callable(kernel) or kernel == "linear":
        return bandwidth, "none"
    check_choice("kernel", kernel, list(KERNELS))
    if reduction == "top_label":
        models = [top_label(samples) for samples in models]
    gamma, source = pooled_median(models, kernel, seed, n_threads)
    return gamma, f"pooled {source}"


def _evaluate(
    name: str,
    samples: Samples,
    shared: dict[str, Any],
    of_ckce: dict[str, Any],
    level: float,
    resamples: int,
) -> _Evaluated:
    threads = shared["n_threads"]
    e = estimate(samples, None, **of_ckce)
    j = jkce_estimate(samples, None, **shared)
    scores = scores_of(samples, threads)
    sharpness = scores.sharpness
    if shared["reduction"] == "top_label":
        sharpness = scores_of(top_label(samples), threads).sharpness
    p_value = None
    if resamples:
        p_value = _p_value(samples, of_ckce, e, resamples)
    low, high = e.interval(level)
    record = ComparedModel(
        name=name,
        accuracy=scores.hits / scores.weight,
        log_loss=scores.log_loss / scores.weight,
        brier=scores.brier / scores.weight,
        ece=top_label_ece(samples, threads),
        jkce=j.value,
        jkce_se=j.se,
        ckce=e.value,
        floor=e.floor,
        debiased=e.debiased,
        se=e.se,
        low=low,
        high=high,
        sharpness=sharpness / scores.weight,
        error=None if e.bound is None else e.bound + (e.debias_error or 0.0),
        p_value=p_value,
    )
    halves = _halves(samples, of_ckce, e) if e.method == "fourier" else None
    return _Evaluated(name, e, j, record, halves)


def _p_value(samples: Samples, of_ckce: dict[str, Any], e: Estimate, resamples: int) -> float:
    options = {name: value for name, value in of_ckce.items() if name != "precision"}
    if e.method == "exact" or of_ckce["method"] == "auto":  # the test chooses its own features
        options.update(method="auto", rank=None, tol=None, pivoting="greedy")
    return calibration_test(samples, None, n_resamples=resamples, **options).p_value


def _halves(samples: Samples, of_ckce: dict[str, Any], e: Estimate) -> tuple[float, float] | None:
    """CKCE by the first and by the second half of the frequencies.

    Each has twice the variance of the value by all of them, so half of the difference of the two
    estimates the error that the draw of the frequencies makes. A quarter of an evaluation each.
    """
    frequencies = of_ckce["frequencies"]
    if frequencies is None:
        frequencies = fourier_frequencies(
            2 if of_ckce["reduction"] else samples.m,
            of_ckce["n_frequencies"],
            bandwidth=1.0 if e.bandwidth is None else e.bandwidth,
            kernel=of_ckce["kernel"],
            sampler=of_ckce["sampler"],
            random_state=of_ckce["random_state"],
        )
    frequencies = np.asarray(frequencies)
    middle = len(frequencies) // 2
    if middle == 0:
        return None
    options = {
        **of_ckce,
        "method": "fourier",
        "bandwidth": "median",
        "n_frequencies": 100,
        "sampler": "gaussian",
    }
    first, second = (
        ckce(samples, None, **{**options, "frequencies": half})
        for half in (frequencies[:middle], frequencies[middle:])
    )
    return first, second


def _debiased_at(
    models: Sequence[Samples], of_ckce: dict[str, Any], setting: Setting
) -> list[float]:
    """Debiased CKCE of the models under another setting."""
    options = dict(of_ckce)
    options.update({name: value for name, value in vars(setting).items() if value is not None})
    return [estimate(samples, None, **options).debiased for samples in models]


def _pairs(
    evaluated: Sequence[_Evaluated], weights: NDArray[np.float64] | None, level: float
) -> tuple[ComparedPair, ...]:
    """All pairs, in the order of the ranking."""
    from statistics import NormalDist  # 5 ms that importing ckce should not cost

    quantile = NormalDist().inv_cdf(0.5 + level / 2)
    pairs = []
    for position, a in enumerate(evaluated):
        for b in evaluated[position + 1 :]:
            difference = b.estimate.debiased - a.estimate.debiased
            se = _paired_se(b.estimate.influence - a.estimate.influence, weights)
            pairs.append(
                ComparedPair(
                    better=a.name,
                    worse=b.name,
                    difference=difference,
                    se=se,
                    low=difference - quantile * se,
                    high=difference + quantile * se,
                    p_value=_two_sided(difference, se),
                    p_holm=math.nan,
                    error=_pair_error(a, b),
                    significant=False,
                    sentence="",
                )
            )
    adjusted = holm([pair.p_value for pair in pairs])
    finished = []
    for pair, p_holm in zip(pairs, adjusted, strict=True):
        pair = replace(pair, p_holm=p_holm, significant=p_holm < 1 - level)
        finished.append(replace(pair, sentence=_sentence(pair, level, len(pairs))))
    return tuple(finished)


def _paired_se(influence: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    total = float(len(influence)) if weights is None else float(weights.sum())
    if total <= 1.0:
        return math.nan
    squares = influence**2 if weights is None else weights * influence**2
    return math.sqrt(squares.sum() / (total - 1.0) / total)


def _two_sided(difference: float, se: float) -> float:
    if difference == 0.0:
        return 1.0
    if math.isnan(se):
        return math.nan
    return math.erfc(abs(difference) / se / math.sqrt(2.0)) if se > 0.0 else 0.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment; the order is kept."""
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    order = sorted(range(len(p_values)), key=lambda k: p_values[k])
    for rank, k in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[k]))
        adjusted[k] = largest
    return adjusted


def _pair_error(a: _Evaluated, b: _Evaluated) -> float:
    if a.halves is not None and b.halves is not None:
        first, second = (y - x for x, y in zip(a.halves, b.halves, strict=True))
        return abs(first - second) / 2.0
    if a.record.error is None or b.record.error is None:
        return math.nan
    return a.record.error + b.record.error


def _sentence(pair: ComparedPair, level: float, n_pairs: int) -> str:
    numbers = (
        f"difference {pair.difference:.3g}, {100 * level:g} % interval {pair.low:.3g} to "
        f"{pair.high:.3g}"
    )
    if pair.significant:
        return f"{pair.better} is better calibrated than {pair.worse} ({numbers})"
    # One interval may exclude 0 where the adjustment for all pairs does not let it count.
    alone = pair.p_value < 1 - level
    holm_note = f"; p {pair.p_holm:.2g} after adjustment for {n_pairs} pairs" if alone else ""
    return (
        f"no significant difference between {pair.better} and {pair.worse} ({numbers}{holm_note})"
    )


def _signature(
    e: Estimate, source: str, loo: bool, n_models: int, level: float, resamples: int
) -> str:
    words = e.signature.split("|")
    words[0] = "compare"
    words.insert(2, f"models:{n_models}")
    if source.startswith("pooled"):
        words = [f"{word}({source})" if word.startswith("gamma:") else word for word in words]
    if loo:
        words = [f"lam:loo({word[4:]})" if word.startswith("lam:") else word for word in words]
    words.insert(-1, f"level:{level!r}")
    if resamples:
        words.insert(-1, f"test:{resamples}")
    return "|".join(words)
