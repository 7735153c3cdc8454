"""JKCE, alone and with its standard error."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input.samples import check_choice, check_count, check_level
from ckce._metrics.ckce import (
    KernelLike,
    Problem,
    _callable_gram,
    _progress,
    _resolve,
    affordable_rank,
    check_memory_for,
    check_rank,
)


@dataclass(frozen=True)
class JkceEstimate:
    """A JKCE with everything needed to read and to repeat it; ``float(e)`` is the value.

    Attributes
    ----------
    value : float
        The unbiased estimate: 0 on average under calibration, may be negative, never clipped.
    se : float
        Standard error of `value`: of the U-statistic from its row means, of ``method="block"`` from
        the spread of the blocks. NaN where it cannot be told (one block, a weight of at most 2).
    biased : float or None
        The biased estimate, at least 0; ``method="block"`` has none.
    method : str
        ``exact``, ``fourier``, ``cholesky`` or ``block``.
    bandwidth, bandwidth_source : float, str
        Bandwidth and where it comes from.
    n_samples, n_classes : int
        Shape of the data (rows of weight zero are not counted).
    rank : int or None
        Rank of the factor (``cholesky``).
    n_blocks : int or None
        Number of blocks (``block``).
    signature : str
        Names everything that changes the number.
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

    def __float__(self) -> float:
        return self.value

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Normal confidence interval around `value`; conservative near calibration."""
        check_level(level)
        from statistics import NormalDist

        half = NormalDist().inv_cdf(0.5 + level / 2) * self.se
        return self.value - half, self.value + half

    def __repr__(self) -> str:
        low, high = self.interval()
        how = [self.method]
        if self.rank is not None:
            how.append(f"rank {self.rank}")
        if self.n_blocks is not None:
            how.append(f"{self.n_blocks} blocks")
        bandwidth = "" if self.bandwidth is None else f", bandwidth {self.bandwidth:.6g}"
        rows = [("JKCE", f"{self.value:.6g}", f"unbiased, 95 % interval {low:.6g} to {high:.6g}")]
        if self.biased is not None:
            rows.append(("biased", f"{self.biased:.6g}", "at least 0"))
        width = max(len(number) for _, number, _ in rows)
        lines = [f"{name:<10}{number:<{width}}  {text}" for name, number, text in rows]
        lines.append(f"{'data':<10}n = {self.n_samples}, m = {self.n_classes}{bandwidth}")
        lines.append(f"{'method':<10}{', '.join(how)}")
        lines.append(f"{'signature':<10}{self.signature}")
        return "\n".join(lines)


def _sums(problem: Problem, full: bool, progress: bool) -> _core.JkceSums:
    check_memory_for(problem, full)
    with _progress(progress, f"JKCE {problem.method}") as report:
        tail = (full, problem.n_threads, report)
        if callable(problem.kernel):
            return _core.jkce_gram(_callable_gram(problem), *problem.data, full)
        gamma = 1.0 if problem.bandwidth is None else problem.bandwidth
        if problem.method == "exact":
            return _core.jkce_exact(*problem.data, problem.kernel, gamma, *tail)
        if problem.method == "fourier":
            assert problem.frequencies is not None
            return _core.jkce_fourier(
                *problem.data, problem.frequencies, problem.linear_part, *tail
            )
        limit = affordable_rank(problem)
        sums = _core.jkce_cholesky(
            *problem.data,
            problem.kernel,
            gamma,
            limit,
            problem.tol,
            problem.pivoting == "random",
            problem.seed,
            *tail,
        )
        check_rank(problem, limit, sums.rank)
        return sums


def _block_values(problem: Problem, block_size: int, progress: bool) -> NDArray[np.float64]:
    """Unbiased JKCE of each block, the mean over the parts."""
    assert isinstance(problem.kernel, str)
    gamma = 1.0 if problem.bandwidth is None else problem.bandwidth
    total: NDArray[np.float64] = np.zeros(problem.samples.n // block_size)
    with _progress(progress, "JKCE block") as report:
        for part in problem.parts:
            total += _core.jkce_blocks(
                *part.data, problem.kernel, gamma, block_size, problem.n_threads, report
            )
    return total / problem.n_parts


def _check_block_size(value: Any, y_prob_rows: int) -> int:
    """None is the square root of n: O(n^1.5 m) time."""
    size = max(2, math.isqrt(y_prob_rows)) if value is None else check_count("block_size", value)
    if not 2 <= size <= y_prob_rows:
        raise ValueError(
            f"block_size must be from 2 to the number of samples ({y_prob_rows}), got {size}"
        )
    return size


def _check_unbiased(total: float, hint: str) -> None:
    if total <= 1.0 + 1e-6:  # what weights leave of N - 1 may be round-off
        raise ValueError(
            "estimator='unbiased' needs more than one sample, got a total weight of "
            f"{total:g}; {hint}"
        )


def jkce(
    y_true: Any,
    y_prob: Any,
    *,
    method: str = "exact",
    estimator: str = "unbiased",
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
    n_frequencies: int = 100,
    sampler: str = "gaussian",
    frequencies: Any = None,
    rank: int | None = None,
    tol: float | None = None,
    pivoting: str = "greedy",
    block_size: int | None = None,
    label_kernel: Any = None,
    reduction: str | None = None,
    sample_weight: Any = None,
    labels: Any = None,
    random_state: int = 0,
    normalize: bool = False,
    from_logits: bool = False,
    n_threads: int | None = None,
    progress: bool = False,
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
    method : {"exact", "fourier", "cholesky", "block", "auto"}
        The kernel itself, random Fourier features, an incomplete Cholesky factor, or the mean of
        the unbiased estimates of blocks of consecutive rows. ``auto`` chooses as in `ckce`.
    estimator : {"unbiased", "biased"}
        Which mean. ``block`` is always unbiased.
    rank, tol, pivoting
        ``cholesky`` only, as in `ckce`.
    block_size : int, optional
        ``block`` only: rows of a block, by default the square root of n, rounded down. Rows that
        do not fill a last block are left out, as in Widmann et al. (2019), whose linear estimator
        is ``block_size=2``. The value depends on the order of the rows.
    y_true, y_prob, kernel, bandwidth, n_frequencies, sampler, frequencies, label_kernel, reduction,
    sample_weight, labels, random_state, normalize, from_logits, n_threads, progress
        As in `ckce`. ``block`` takes no weights.

    Returns
    -------
    float
        JKCE.

    Notes
    -----
    Cost: ``exact`` O(n^2 m) time and O(n m) memory, ``fourier`` O(n (m + 2D)^2), ``cholesky``
    O(n rank (m + rank)), ``block`` O(n block_size m). Unlike CKCE it moves with the marginal
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
    problem, size = _resolve_jkce(
        y_true,
        y_prob,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        n_frequencies=n_frequencies,
        sampler=sampler,
        frequencies=frequencies,
        rank=rank,
        tol=tol,
        pivoting=pivoting,
        block_size=block_size,
        label_kernel=label_kernel,
        reduction=reduction,
        sample_weight=sample_weight,
        labels=labels,
        random_state=random_state,
        normalize=normalize,
        from_logits=from_logits,
        n_threads=n_threads,
    )
    total = problem.samples.weight
    if problem.method == "block":
        if estimator == "biased":
            raise ValueError("method='block' has no biased estimator, got estimator='biased'")
        return float(_block_values(problem, size, progress).mean())
    if estimator == "unbiased":
        _check_unbiased(total, "use estimator='biased'")
    off_diagonal = diagonal = 0.0
    for part in problem.parts:
        sums = _sums(part, False, progress)
        off_diagonal += sums.off_diagonal
        diagonal += sums.diagonal
    if estimator == "biased":
        return (off_diagonal + diagonal) / (total**2 * problem.n_parts)
    return off_diagonal / (total * (total - 1.0) * problem.n_parts)


def jkce_estimate(
    y_true: Any,
    y_prob: Any,
    *,
    method: str = "auto",
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
    n_frequencies: int = 100,
    sampler: str = "gaussian",
    frequencies: Any = None,
    rank: int | None = None,
    tol: float | None = None,
    pivoting: str = "greedy",
    block_size: int | None = None,
    label_kernel: Any = None,
    reduction: str | None = None,
    sample_weight: Any = None,
    labels: Any = None,
    random_state: int = 0,
    normalize: bool = False,
    from_logits: bool = False,
    n_threads: int | None = None,
    progress: bool = False,
) -> JkceEstimate:
    r"""JKCE, unbiased and biased, with the standard error of the unbiased estimate.

    The unbiased estimate is a U-statistic, and with its row means

    .. math::
        g_i = \frac{1}{n - 1} \sum_{j \ne i} h_{ij}, \qquad
        \mathrm{se}^2 = \frac{4}{n (n - 1)} \sum_i (g_i - \mathrm{JKCE}_u)^2 .

    Near calibration the U-statistic degenerates; `se` is then too large by about a factor of 1.4,
    never too small. For ``method="block"`` it is the standard deviation of the block values over
    the square root of their number.

    Parameters
    ----------
    method : {"auto", "exact", "fourier", "cholesky", "block"}
        As in `jkce`.
    y_true, y_prob, kernel, bandwidth, n_frequencies, sampler, frequencies, rank, tol, pivoting,
    block_size, label_kernel, reduction, sample_weight, labels, random_state, normalize,
    from_logits, n_threads, progress
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
    problem, size = _resolve_jkce(
        y_true,
        y_prob,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        n_frequencies=n_frequencies,
        sampler=sampler,
        frequencies=frequencies,
        rank=rank,
        tol=tol,
        pivoting=pivoting,
        block_size=block_size,
        label_kernel=label_kernel,
        reduction=reduction,
        sample_weight=sample_weight,
        labels=labels,
        random_state=random_state,
        normalize=normalize,
        from_logits=from_logits,
        n_threads=n_threads,
    )
    samples = problem.samples
    rank_used: int | None = None
    if problem.method == "block":
        blocks = _block_values(problem, size, progress)
        value, biased = float(blocks.mean()), None
        se = math.sqrt(blocks.var(ddof=1) / len(blocks)) if len(blocks) > 1 else math.nan
    else:
        total, parts = samples.weight, problem.n_parts
        _check_unbiased(total, "use ckce.jkce(..., estimator='biased')")
        off_diagonal = diagonal = 0.0
        rows: NDArray[np.float64] = np.zeros(samples.n)
        for part in problem.parts:
            sums = _sums(part, True, progress)
            off_diagonal += sums.off_diagonal / parts
            diagonal += sums.diagonal / parts
            rows += sums.rows / parts
            if problem.method == "cholesky":
                rank_used = max(sums.rank, rank_used or 0)
        value = off_diagonal / (total * (total - 1.0))
        biased = (off_diagonal + diagonal) / total**2
        squares = (rows / (total - 1.0) - value) ** 2
        if samples.weights is not None:
            squares = samples.weights * squares
        se = 2.0 * math.sqrt(squares.sum() / (total - 1.0) / total) if total > 2.0 else math.nan
    return JkceEstimate(
        value=value,
        se=se,
        biased=biased,
        method=problem.method,
        bandwidth=problem.bandwidth,
        bandwidth_source=problem.bandwidth_source,
        n_samples=samples.n,
        n_classes=problem.n_classes,
        rank=rank_used,
        n_blocks=len(blocks) if problem.method == "block" else None,
        signature=problem.signature,
    )


def _resolve_jkce(
    y_true: Any, y_prob: Any, *, method: str, block_size: Any, **options: Any
) -> tuple[Problem, int]:
    """The problem, and the size of its blocks (0 without blocks)."""
    if method == "block" and options["sample_weight"] is not None:
        raise ValueError("sample_weight must be None with method='block': blocks count rows")
    problem = _resolve(
        "jkce",
        y_true,
        y_prob,
        method=method,
        block_size=block_size,
        regularization=None,
        precision="float64",
        **options,
    )
    if problem.method != "block":
        return problem, 0
    size = _check_block_size(block_size, problem.samples.n)
    signature = problem.signature.replace("|block:None|", f"|block:{size}|")
    return dataclasses.replace(problem, signature=signature), size
