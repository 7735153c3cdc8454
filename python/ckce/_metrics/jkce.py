"""JKCE: the squared MMD between two joint distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import InputError, KernelLike, Samples, check_choice
from ckce._methods import Blocks, Exact, Method
from ckce._problem import Problem, Progress, ReductionLike, part, progress_bar, settle
from ckce._results import (
    FEW_ROWS,
    Facts,
    by_groups,
    effective_groups,
    in_words,
    interval_above_0,
    standard_error,
)


def jkce(
    y_true: Any,
    y_prob: Any,
    *,
    method: str | Method = "exact",
    estimator: str = "unbiased",
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
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
) -> float:
    r"""Joint kernel calibration error (also: squared kernel calibration error, SKCE).

    .. math::
        \mathrm{JKCE} = \lVert \mu_{YQ} - \mu_{ZQ} \rVert^2, \qquad
        h_{ij} = k(q_i, q_j)\, r_i^\top L\, r_j

    ``biased`` is the mean of h over all pairs, at least 0; ``unbiased`` the mean over i != j, which
    is 0 on average under calibration and may be negative. It is never clipped. `jkce_estimate`
    gives the standard error too.

    Parameters
    ----------
    method : {"exact", "fourier", "cholesky", "landmarks", "blocks", "auto"}, or an object
        The kernel itself, a feature map, or the mean of the unbiased estimates of blocks of
        consecutive rows: `Exact`, `Fourier`, `Cholesky`, `Landmarks` or `Blocks`. ``auto`` chooses
        as in `ckce`.
    estimator : {"unbiased", "biased"}
        Which mean. ``blocks`` is always unbiased.
    groups : array of shape (n_samples,), optional
        Ids of rows that depend on each other, at least 10 groups: ``unbiased`` is then the mean over
        pairs of different groups, :math:`\sum_{g \ne g'} h_{ij} / (N^2 - \sum_g N_g^2)`. Not for
        ``biased``, which takes all pairs, nor for ``blocks``. See docs/dependent_rows.md.
    y_true, y_prob, kernel, bandwidth, reduction, label_kernel, sample_weight, labels, random_state,
    input, normalize, n_threads, progress
        As in `ckce`. ``blocks`` takes no weights.

    Returns
    -------
    float
        JKCE.

    Notes
    -----
    Cost: ``exact`` O(n) for two classes, else O(n^2 m) time and O(n m) memory, ``fourier`` O(n (m + 2D)^2), ``cholesky``
    O(n rank (m + rank)), ``blocks`` O(n size m). Unlike CKCE it moves with the marginal
    distribution of the predictions.

    The kernel exp(-TV / gamma) of the SKCE literature, with TV = \|p-q\|_1 / 2, is
    ``kernel="laplace", bandwidth=2 * gamma``. Where gamma is the median of TV over the full n x n
    matrix, its zero diagonal included, the bandwidth is the same median of the L1 distance; the
    last example computes it.

    Examples
    --------
    >>> import ckce
    >>> y_true = [0, 1, 1, 0]
    >>> y_prob = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]
    >>> round(ckce.jkce(y_true, y_prob), 6)
    -0.079385
    >>> import numpy as np
    >>> q = np.array(y_prob)
    >>> l1 = np.abs(q[:, None, :] - q[None, :, :]).sum(axis=-1)
    >>> round(ckce.jkce(y_true, y_prob, kernel="laplace", bandwidth=np.median(l1)), 6)
    -0.036786
    """
    check_choice("estimator", estimator, ("unbiased", "biased"))
    if estimator == "biased" and groups is not None:
        raise ValueError(
            "groups must be None with estimator='biased', which takes all pairs: its value does not "
            "change with groups"
        )
    problem = settle(
        "jkce",
        y_true,
        y_prob,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        reduction=reduction,
        label_kernel=label_kernel,
        sample_weight=sample_weight,
        groups=groups,
        labels=labels,
        random_state=random_state,
        input=input,
        normalize=normalize,
        n_threads=n_threads,
    )
    total = problem.samples.weight
    if isinstance(problem.method, Blocks):
        if estimator == "biased":
            raise ValueError("method='blocks' has no biased estimator, got estimator='biased'")
        return float(_block_values(problem, problem.method, progress).mean())
    if estimator == "unbiased":
        check_pairs(problem.samples, ("biased", "otherwise pass estimator='biased'"))
    off_diagonal = diagonal = 0.0
    for sums, _ in _sums(problem, False, progress):
        off_diagonal += sums.off_diagonal
        diagonal += sums.diagonal
    if estimator == "biased":
        return (off_diagonal + diagonal) / (total**2 * problem.n_parts)
    return off_diagonal / (_pairs(problem.samples) * problem.n_parts)


def jkce_estimate(
    y_true: Any,
    y_prob: Any,
    *,
    method: str | Method = "auto",
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
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
) -> JkceEstimate:
    r"""JKCE, unbiased and biased, with the standard error of the unbiased estimate.

    The unbiased estimate is a U-statistic, and with its row means

    .. math::
        g_i = \frac{1}{n - 1} \sum_{j \ne i} h_{ij}, \qquad
        \mathrm{se}^2 = \frac{4}{n (n - 1)} \sum_i (g_i - \mathrm{JKCE}_u)^2 .

    Near calibration the U-statistic degenerates; `se` is then too large by about a factor of 1.4,
    never too small. For ``method="blocks"`` it is the standard deviation of the block values over
    the square root of their number. With `groups` both are by group, with
    :math:`\psi_i = 2 N (\sum_{j \notin g(i)} w_j h_{ij} - (N - N_{g(i)}) \mathrm{JKCE}_u) /
    (N^2 - \sum_g N_g^2)` summed over each.

    Parameters
    ----------
    y_true, y_prob, method, kernel, bandwidth, reduction, label_kernel, sample_weight, groups, labels,
    random_state, input, normalize, n_threads, progress
        As in `jkce`.

    Returns
    -------
    JkceEstimate

    Notes
    -----
    Costs about 1.5 times `jkce`. `value` agrees with `jkce` to round-off, since the sums are taken
    in another order. Bandwidth and frequencies are held fixed.

    Examples
    --------
    >>> import ckce
    >>> e = ckce.jkce_estimate([0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    >>> print(f"{e.value:.4f} +- {e.se:.4f}, biased {e.biased:.4f}")
    -0.0794 +- 0.1051, biased 0.0373
    """
    problem = settle(
        "jkce",
        y_true,
        y_prob,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        reduction=reduction,
        label_kernel=label_kernel,
        sample_weight=sample_weight,
        groups=groups,
        labels=labels,
        random_state=random_state,
        input=input,
        normalize=normalize,
        n_threads=n_threads,
    )
    return jkce_estimate_of(problem, progress)


@dataclass(frozen=True)
class JkceEstimate:
    r"""A JKCE with everything needed to read and to repeat it; ``float(e)`` is the value.

    Attributes
    ----------
    value : float
        The unbiased estimate: 0 on average under calibration, may be negative, never clipped.
    se : float
        Standard error of `value`: of the U-statistic from its row means, of ``method="blocks"`` from
        the spread of the blocks. NaN if it cannot be computed (one block, a weight of at most 2).
    biased : float or None
        The biased estimate, at least 0; ``method="blocks"`` has none.
    method : str
        ``exact``, ``fourier``, ``cholesky`` or ``blocks``.
    bandwidth, bandwidth_source : float, str
        Bandwidth and where it comes from.
    n_samples, n_classes : int
        Shape of the data (rows of weight zero are not counted).
    rank : int or None
        Rank of the factor (``cholesky``).
    n_blocks : int or None
        Number of blocks (``blocks``).
    signature : str
        Names everything that changes the number.
    level : float
        Default level of `interval`; `evaluate` and `compare` pass theirs on.
    n_groups, effective_groups : int or None, float or None
        Number of groups, if there are any: `value` and `se` are by group. The effective number,
        :math:`N^2 / \sum_g N_g^2`, is smaller where sizes differ.
    """

    value: float
    se: float
    biased: float | None
    method: str
    bandwidth: float | None
    bandwidth_source: str
    n_samples: int
    n_classes: int
    rank: int | None
    n_blocks: int | None
    signature: str
    level: float = 0.95
    n_groups: int | None = None
    effective_groups: float | None = None

    def __float__(self) -> float:
        return self.value

    def interval(self, level: float | None = None) -> tuple[float, float]:
        """Confidence interval around `value`, or around 0 where that is negative.

        Conservative near calibration. It reaches further up than down, see docs/methods.md; with
        groups more so, see docs/dependent_rows.md.
        """
        level = self.level if level is None else level
        raw = 0.0 if self.biased is None else self.biased
        return interval_above_0(self.value, self.se, level, self.effective_groups, raw)

    def _facts(self) -> Facts:
        spread = in_words(*self.interval(), self.level)
        if self.n_samples < FEW_ROWS:
            spread = f"too few rows to tell: fewer than {FEW_ROWS}"
        how = [self.method]
        if self.rank is not None:
            how.append(f"rank {self.rank}")
        if self.n_blocks is not None:
            how.append(f"{self.n_blocks} blocks")
        bandwidth = "" if self.bandwidth is None else f", bandwidth {self.bandwidth:.6g}"
        rows = [("JKCE", f"{self.value:.6g}", f"unbiased; {spread}")]
        if self.biased is not None:
            rows.append(("biased", f"{self.biased:.6g}", "at least 0"))
        rows.append(("data", "", f"n = {self.n_samples}, m = {self.n_classes}{bandwidth}"))
        if self.n_groups is not None:
            rows.append(("groups", "", f"{by_groups(self.n_groups)}, unbiased by group"))
        rows.append(("method", "", ", ".join(how)))
        return Facts(tuple(rows), self.signature)

    def __repr__(self) -> str:
        return self._facts().text()

    def _repr_html_(self) -> str:
        return self._facts().html()


def jkce_estimate_of(
    problem: Problem, progress: bool | None = None, level: float = 0.95
) -> JkceEstimate:
    """The estimate of a settled problem."""
    samples = problem.samples
    biased = rank = n_blocks = None
    if isinstance(problem.method, Blocks):
        blocks = _block_values(problem, problem.method, progress)
        value, n_blocks = float(blocks.mean()), len(blocks)
        se = math.sqrt(blocks.var(ddof=1) / n_blocks) if n_blocks > 1 else math.nan
    else:
        total, parts = samples.weight, problem.n_parts
        check_pairs(samples, ("biased", "otherwise use ckce.jkce(..., estimator='biased')"))
        off_diagonal = diagonal = 0.0
        rows: NDArray[np.float64] = np.zeros(samples.n)
        for sums, n_features in _sums(problem, True, progress):
            off_diagonal += sums.off_diagonal / parts
            diagonal += sums.diagonal / parts
            rows += sums.rows / parts
            if n_features is not None and problem.method.word != "fourier":
                rank = max(n_features, rank or 0)
        pairs = _pairs(samples)
        value = off_diagonal / pairs
        biased = (off_diagonal + diagonal) / total**2
        influence = 2.0 * total * (rows - _others(samples) * value) / pairs
        se = math.nan
        if total > 2.0:
            se = standard_error(influence, samples.weights, samples.groups)
    return JkceEstimate(
        value=value,
        se=se,
        biased=biased,
        method=problem.method.word,
        bandwidth=problem.bandwidth.value,
        bandwidth_source=problem.bandwidth.source,
        n_samples=samples.n,
        n_classes=problem.n_classes,
        rank=rank,
        n_blocks=n_blocks,
        signature=str(problem.signature),
        level=level,
        n_groups=samples.n_groups,
        effective_groups=effective_groups(samples.groups, samples.weights),
    )


def _others(samples: Samples) -> Any:
    """The weight of all copies that a copy of each row is paired with."""
    if samples.groups is None:
        return samples.weight - 1.0
    return samples.weight - np.bincount(samples.groups, samples.weights)[samples.groups]


def _pairs(samples: Samples) -> float:
    """The number of pairs in the unbiased mean: N (N - 1), or N^2 - sum_g N_g^2."""
    total = samples.weight
    if samples.groups is None:
        return total * (total - 1.0)
    sizes = np.bincount(samples.groups, samples.weights)
    return float((sizes * (total - sizes)).sum())


def _sums(
    problem: Problem, full: bool, progress: bool | None
) -> list[tuple[_core.JkceSums, int | None]]:
    """The sums of each part of a problem, and the number of features behind them."""
    with progress_bar(progress, f"JKCE {problem.method.word}") as report:
        return [_part_sums(each, full, report) for each in problem.parts]


def _part_sums(
    problem: Problem, full: bool, progress: Progress | None
) -> tuple[_core.JkceSums, int | None]:
    problem.check_memory(full)
    threads, kernel, groups = problem.n_threads, problem.kernel, problem.samples.groups
    if kernel.gram is not None:
        gram = kernel.gram_of(problem.samples.probs)
        return _core.jkce_gram(*problem.data, groups=groups, gram=gram, full=full), None
    if isinstance(problem.method, Exact):
        core = kernel.core(problem.bandwidth.value)
        exact = _core.jkce_two_classes if problem.rows.on_a_line else _core.jkce_exact
        return exact(
            *problem.data,
            groups=groups,
            kernel=core,
            full=full,
            n_threads=threads,
            progress=progress,
        ), None
    features = problem.features(problem.method, part(progress, 0.0, 0.5))
    sums = _core.jkce_features(
        *problem.data,
        groups=groups,
        features=features,
        full=full,
        n_threads=threads,
        progress=part(progress, 0.5, 1.0),
    )
    return sums, features.n_features


def _block_values(problem: Problem, method: Blocks, progress: bool | None) -> NDArray[np.float64]:
    """Unbiased JKCE of each block, the mean over the parts."""
    if problem.samples.weights is not None:
        raise ValueError("sample_weight must be None with method='blocks': blocks count rows")
    if problem.samples.groups is not None:
        raise ValueError(
            "groups must be None with method='blocks', which cuts rows where they stand; use "
            "method='exact' or 'fourier'"
        )
    size = method.rows(problem.samples.n)
    total: NDArray[np.float64] = np.zeros(problem.samples.n // size)
    with progress_bar(progress, "JKCE blocks") as report:
        for each in problem.parts:
            total += _core.jkce_blocks(
                *each.data,
                kernel=problem.kernel.core(problem.bandwidth.value),
                block_size=size,
                n_threads=problem.n_threads,
                progress=report,
            )
    return total / problem.n_parts


def check_pairs(samples: Samples, *hint: tuple[str, str]) -> None:
    """Refuse a single row, which has no pair for the unbiased mean."""
    total = samples.weight
    if total > 1.0 + 1e-6:  # what weights leave of N - 1 may be round-off
        return
    if samples.weights is None:
        raise InputError("y_prob must have at least 2 rows, got 1", *hint)
    raise InputError(f"sample_weight must sum to more than 1, got {total:g}", *hint)
