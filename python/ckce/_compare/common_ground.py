"""Which of two models is better calibrated at equal predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ckce._compare.ground import GroundMap, Grounds
from ckce._compare.guard_rails import is_constant
from ckce._compare.models import check_models, shared_problems
from ckce._compare.verdict import CommonGround, Pair, judge
from ckce._input import InputError, KernelLike, Samples, check_level
from ckce._problem import (
    Problem,
    ReductionLike,
    Settings,
    Signature,
    TopK,
    check_reduction,
    check_regularization,
    check_settings,
    progress_bar,
)
from ckce._results import effective_groups

#: Classes above which the sorted top 5 are compared.
MANY_CLASSES = 20
TOP = 5


def common_ground(
    y_true: Any,
    y_prob_a: Any,
    y_prob_b: Any,
    *,
    names: tuple[str, str] = ("A", "B"),
    level: float = 0.95,
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | None = None,
    reduction: ReductionLike = None,
    label_kernel: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> CommonGround:
    r"""Compare the calibration of two models at equal predictions.

    CKCE also depends on how often a model predicts what: the same miscalibration seen through
    narrower predictions gives a smaller value. Here both residual functions pass through one linear
    operator. Over features x = [phi, balancing functions] with covariances C and P = (C_A + C_B)^-1,

    .. math::
        L_A = 2 C_B P, \quad L_B = 2 C_A P, \quad O = L_A C_A - \epsilon I, \qquad
        \text{value}_M = \lVert (O + \lambda I)^{-1} L_M S_M \rVert^2 - \text{debias}_M ,

    restricted to phi on the left. As :math:`L_A C_A = L_B C_B`, two models with the same residual
    function have the same value, whatever they predict how often. Equal predictions give debiased
    CKCE itself. Given the predictions, the value of a calibrated model has mean 0.

    The comparison is made three times: as it is, with landmarks at a quarter of the bandwidth added
    to the balancing functions, and with 10 eps. A difference is shown only where all three agree.

    Parameters
    ----------
    y_true : array of shape (n_samples,), or dict of two such arrays
        Labels; a dict by name where they differ between the models.
    y_prob_a, y_prob_b : arrays of shape (n_samples, n_classes) or (n_samples,)
        Predictions of the two models. Rows are paired: row i is the same case for both.
    names : tuple of two str
        Names of the models.
    level : float
        Level of the interval; a difference is shown if all three p-values are below 1 - level.
    kernel : {"linear_gaussian", "gaussian"}
        A kernel with a Gaussian part.
    bandwidth : float or "median"
        The pooled median of both models by default.
    regularization : float, optional
        lambda; by default n^(-1/4).
    reduction : "top_label" or `TopK`, optional
        Compare confidence calibration only, or that of the k largest entries. Above 20 classes the
        five largest probabilities, in order, and the rest are compared by default.
    groups : array of shape (n_samples,), optional
        Ids of rows that depend on each other, as in `estimate`: the debias term, intervals and
        p-values are then by group.
    label_kernel, sample_weight, labels, random_state, input, normalize, n_threads, progress
        As in `ckce`.

    Returns
    -------
    CommonGround
        Its `sentence` is the answer, and `verdict` and `better` are for programs.

    Notes
    -----
    It compares the models only where both predict: `share` says how much that is. Miscalibration
    finer than half the bandwidth is not balanced with many classes. See docs/comparing.md.

    Cost: O(n r^2) for r features, about 250 with 10 classes; memory independent of n. From 4096 rows of
    two classes on: O(n), with numbers for at most n / 4 or 65,536 predictions in memory.

    Examples
    --------
    >>> import ckce
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> good = rng.dirichlet([1, 1, 1], size=2000)
    >>> y_true = (rng.random((2000, 1)) > good.cumsum(axis=1)[:, :2]).sum(axis=1)
    >>> sharp = good**2 / (good**2).sum(axis=1, keepdims=True)
    >>> c = ckce.common_ground(y_true, sharp, good, names=("sharp", "good"))
    >>> c.verdict, c.better
    ('different', 'good')
    >>> print(c.sentence[:60])
    At equal predictions good is better calibrated than sharp (d
    """
    level = check_level(level)
    check_reduction(reduction, ("top_label",))
    check_regularization(regularization, loo=False)
    settings = check_settings(
        "ckce",
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
        reduction=reduction,
        label_kernel=label_kernel,
        random_state=random_state,
        n_threads=n_threads,
    )
    check_ground(settings)
    models = check_models(
        y_true,
        dict(zip(check_names(names), (y_prob_a, y_prob_b), strict=True)),
        labels=labels,
        sample_weight=sample_weight,
        input=input,
        normalize=normalize,
        n_threads=settings.n_threads,
        groups=groups,
    )
    with progress_bar(progress, f"common ground of {names[0]} and {names[1]}"):
        problems = ground_problems(models, settings)
        grounds = Grounds(problems)
        pair = pair_of(grounds, names)
    words = ground_words(problems[names[0]], grounds.map, level)
    return judge([pair], level, str(Signature("common_ground", words)))[0]


def check_ground(settings: Settings) -> None:
    """Refuse a kernel that has no Gaussian part to balance."""
    kernel = settings.kernel
    if kernel.spectrum != "gaussian":
        raise InputError(
            "kernel must have a Gaussian part where models are compared at equal predictions "
            f"('linear_gaussian' or 'gaussian'), got {kernel}",
            (
                "single_models",
                "use ckce.estimate, with one bandwidth for all, for the values of single models",
            ),
        )


def ground_problems(
    models: Mapping[str, Samples],
    settings: Settings,
    own: Mapping[str, Problem] | None = None,
) -> Mapping[str, Problem]:
    """Problems of checked models as the verdict reads them; `own` are those of their CKCE."""
    many = settings.reduction is None and next(iter(models.values())).m > MANY_CLASSES
    if many and settings.label_kernel is not None:
        raise ValueError(
            f"label_kernel must be None above {MANY_CLASSES} classes, where the {TOP} largest "
            "probabilities are compared: labels become ranks"
        )
    if own is not None:
        first = next(iter(own.values()))
        if not many and first.bandwidth.value is not None:
            return own
        settings = replace(settings, regularization=first.regularization.value)
    reduction = TopK(TOP) if many else settings.reduction
    return shared_problems(models, replace(settings, method=None, reduction=reduction))


def pair_of(
    grounds: Grounds,
    names: tuple[str, str],
    own: tuple[float, float] | None = None,
    own_error: float = math.nan,
) -> Pair:
    """A pair before it is judged; `own` is another difference of debiased CKCE and its error."""
    constant = [name for name in names if is_constant(grounds.models[name].probs)]
    ground, of_norm = grounds.pair(names)
    return Pair(
        names=names,
        ground=ground if grounds.map.balanced_by(grounds.weight) else None,
        own=of_norm if own is None else own,
        constant=constant[0] if len(constant) == 1 else None,
        n_samples=grounds.weight,
        groups=effective_groups(grounds.first.groups, grounds.first.weights),
        balancing=grounds.map.balancing,
        own_error=own_error,
    )


def ground_words(problem: Problem, ground_map: GroundMap, level: float) -> dict[str, str]:
    """Everything that changes the numbers of a pair."""
    shared = ("k", "gamma", "lam", "reduction", "n", "m", "w", "groups", "l", "in", "p")
    words = {key: word for key, word in problem.signature.words.items() if key in shared}
    return {**words, "ground": ground_map.word, "level": repr(level)}


def check_names(names: Any) -> tuple[str, str]:
    """Two different names."""
    pair = tuple(names) if isinstance(names, (tuple, list)) else names
    good = isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(n, str) for n in pair)
    if not good or pair[0] == pair[1]:
        raise ValueError(f"names must be two different strings, got {names!r}")
    return pair
