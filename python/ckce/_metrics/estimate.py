"""CKCE with everything needed to read and to repeat it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import KernelLike
from ckce._methods import Method
from ckce._metrics.ckce import feature_error, solve
from ckce._problem import ClassWise, Problem, ReductionLike, TopLabel, settle
from ckce._results import (
    FEW_ROWS,
    Attribution,
    Facts,
    Said,
    attribute,
    by_groups,
    effective_groups,
    in_words,
    interval_above_0,
    standard_error,
)


def estimate(
    y_true: Any,
    y_prob: Any,
    *,
    method: str | Method = "auto",
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | str | None = None,
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
) -> Estimate:
    r"""CKCE with its floor, debiased value, standard error, error bound and signature.

    With :math:`W = (K + \lambda n I)^{-1}` and :math:`A = W K W`,

    .. math::
        \text{floor} = \sum_i A_{ii} (1 - \lVert q_i \rVert^2), \qquad
        \text{debiased} = \mathrm{CKCE} - \sum_i A_{ii} \lVert r_i \rVert^2 .

    Given the predictions, the floor is the mean of CKCE for a perfectly calibrated model, and the
    debiased value has mean 0 then; it may be negative and is never clipped. `value` is bit for bit
    that of `ckce`.

    Parameters
    ----------
    groups : array of shape (n_samples,), optional
        Ids of rows that depend on each other, such as the texts of tokens: at least 10 groups. Then
        the debias term is :math:`\sum_g \operatorname{Tr} R_g^\top A_{gg} R_g`, all pairs within a
        group; the standard error comes from the sums of the influence over the groups, intervals
        from Student's t; and there is no floor, which assumes
        independent rows. See docs/dependent_rows.md.
    y_true, y_prob, method, kernel, bandwidth, regularization, reduction, label_kernel,
    sample_weight, labels, random_state, input, normalize, n_threads, progress
        As in `ckce`.

    Returns
    -------
    Estimate
        With ``reduction="class_wise"`` all its numbers are means over the classes, and `per_class`
        holds what each adds to the mean.

    Notes
    -----
    Costs a second pass over the rows (``fourier``, ``cholesky``), O(n^3) (``exact`` by
    factorisation), or about as much again as the value (``exact`` by iteration, whose debias term and
    floor have an error of at most 1e-5 up to 2000 rows, about 1e-3 above, see `Estimate.debias_error`).

    Examples
    --------
    >>> import ckce
    >>> e = ckce.estimate([0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    >>> print(f"{e.value:.4f} with floor {e.floor:.4f}, debiased {e.debiased:.4f}")
    0.0234 with floor 0.0607, debiased -0.0124
    >>> e.signature
    'ckce|v0.1|method:exact|k:linear_gaussian|gamma:0.4949747468305833(median)|lam:n^-0.25|n:4|m:2|p:float64'
    """
    problem = settle(
        "ckce",
        y_true,
        y_prob,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
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
    return estimate_of(problem, progress)


@dataclass(frozen=True, repr=False)
class Estimate(Said):
    """A CKCE with everything needed to read and to repeat it; ``float(e)`` is the value.

    Attributes
    ----------
    value : float
        CKCE, the paper's estimator. Biased upwards: see `floor`.
    debiased : float
        CKCE without the diagonal of its trace formula. Centred at 0 under calibration, so it may be
        negative.
    floor : float or None
        Mean of `value` for a perfectly calibrated model with the same predictions; None with groups,
        because it assumes independent rows.
    se : float
        Standard error of `debiased` (influence function; bandwidth, regularization and frequencies
        held fixed).
    bound : float or None
        Bound on \\|value - exact value\\|; None where there is none (``fourier``).
    error : float or None
        Estimate of that distance (``fourier``, more than two classes): bias and standard deviation
        over the draw of the frequencies, by a jackknife over eight groups of them.
    method : str
        ``exact``, ``fourier`` or ``cholesky``, also if ``auto`` was asked for.
    bandwidth, bandwidth_source : float, str
        Bandwidth and where it comes from.
    regularization : float
        lambda.
    n_samples, n_classes : int
        Shape of the data (rows of weight zero are not counted).
    iterations : int or None
        Products with K (``exact`` by iteration).
    rank : int or None
        Rank of the factor (``cholesky``).
    debias_rank, debias_error : int or None, float or None
        Rank of the factor from which `debiased` and `floor` come when the exact diagonal would need
        n solves (``exact`` by iteration), and about the most that they can be off.
    per_class : ndarray of shape (n_classes,) or None
        Contributions of the classes, which add up to `value`; None with a label kernel. With
        ``reduction=ckce.TopK(k)`` contributions of the k + 1 ranks.
    influence : ndarray of shape (n_samples,)
        Influence of each sample on the value.
    signature : str
        Names everything that changes the number.
    mean_residual : ndarray of shape (n_classes,) or None
        Mean of e_y - q: positive for classes that occur more often than predicted. None with
        ``reduction="top_label"``.
    classes : tuple
        The classes, in the order of the columns; or the ranks of `TopK`.
    level : float
        Default level of `interval`; `evaluate` and `compare` pass theirs on.
    n_groups, effective_groups : int or None, float or None
        Number of groups, if there are any: `debiased` and `se` are by group. The effective number,
        :math:`N^2 / \\sum_g N_g^2`, is smaller where sizes differ; `interval` takes Student's t with one
        degree of freedom less.
    """

    value: float
    debiased: float
    floor: float | None
    se: float
    bound: float | None
    error: float | None
    method: str
    bandwidth: float | None
    bandwidth_source: str
    regularization: float
    n_samples: int
    n_classes: int
    iterations: int | None
    rank: int | None
    debias_rank: int | None
    debias_error: float | None
    per_class: NDArray[np.float64] | None = field(repr=False, compare=False)
    influence: NDArray[np.float64] = field(repr=False, compare=False)
    signature: str
    mean_residual: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    classes: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    level: float = 0.95
    n_groups: int | None = None
    effective_groups: float | None = None

    def __float__(self) -> float:
        return self.value

    def interval(self, level: float | None = None) -> tuple[float, float]:
        """Confidence interval around `debiased`, or around 0 where that is negative.

        Its level is that of the estimate, or another. It covers the regularised population value:
        that at the same bandwidth, lambda and frequencies, not that at lambda = 0. Conservative near
        calibration. It reaches further up than down, see docs/methods.md; with groups more so, see
        docs/dependent_rows.md.
        """
        level = self.level if level is None else level
        return interval_above_0(self.debiased, self.se, level, self.effective_groups, self.value)

    def attribution(self) -> Attribution:
        """Which classes are to blame, the largest contribution first.

        CKCE is a sum over classes. A class is "under-predicted" if it occurs more often than the
        mean prediction says, "over-predicted" if less often.
        """
        if self.per_class is None or self.mean_residual is None:
            raise ValueError(
                "attribution needs contributions of single classes, which a label kernel or "
                "reduction='top_label' does not leave"
            )
        return attribute(self.classes, self.per_class, self.mean_residual, self.value)

    def _said(self) -> Facts:
        spread = in_words(*self.interval(), self.level, n_classes=len(self.classes))
        if self.n_samples < FEW_ROWS:
            spread = f"too few rows to tell: fewer than {FEW_ROWS}"
        if self.error is not None:
            accuracy = f"random features, off by about {self.error:.1e}"
        elif self.bound is None:
            accuracy = "no error bound: random features"
        else:
            accuracy = f"exact kernel to within {self.bound:.1e}"
        how = [self.method]
        if self.iterations:
            how.append(f"{self.iterations} products with K")
        if self.rank:
            how.append(f"rank {self.rank}")
        note = f", to {self.debias_error:.1e}" if self.debias_error else ""
        bandwidth = "" if self.bandwidth is None else f"bandwidth {self.bandwidth:.6g}, "
        shape = f"n = {self.n_samples}, m = {self.n_classes}"
        rows = [
            ("CKCE", f"{self.value:.6g}", accuracy),
            ("debiased", f"{self.debiased:.6g}", spread),
            ("data", "", f"{shape}, {bandwidth}lambda {self.regularization:.6g}"),
            ("method", "", ", ".join(how)),
        ]
        if self.floor is not None:
            rows.insert(1, ("floor", f"{self.floor:.6g}", f"mean of a calibrated model{note}"))
        if self.n_groups is not None:
            rows.insert(3, ("groups", "", f"{by_groups(self.n_groups)}, debiased by group"))
        return Facts(tuple(rows), self.signature)


def estimate_of(problem: Problem, progress: bool | None = None, level: float = 0.95) -> Estimate:
    """The estimate of a settled problem."""
    return estimate_and_solution(problem, progress, level)[0]


def ckce_fields(e: Estimate, level: float) -> dict[str, Any]:
    """The fields that every record of a model has of its CKCE."""
    low, high = e.interval(level)
    return {
        "ckce": e.value,
        "ckce_floor": e.floor,
        "ckce_debiased": e.debiased,
        "ckce_se": e.se,
        "ckce_low": low,
        "ckce_high": high,
    }


def estimate_and_solution(
    problem: Problem, progress: bool | None = None, level: float = 0.95
) -> tuple[Estimate, Problem, list[_core.Solution]]:
    """The estimate, the problem that was solved ("auto" may have changed its method), its solutions."""
    problem, solved = solve(problem, full=True, progress=progress)
    samples, solutions = problem.samples, [each.solution for each in solved]
    parts = problem.n_parts
    value = sum(each.value for each in solutions) / parts
    sums = np.zeros(4)
    influence = solutions[0].influence
    for each in solutions:
        sums += (each.debias, each.floor, each.bound, each.debias_error)
    if parts > 1:
        influence = np.sum([each.influence / parts for each in solutions], axis=0)
    debias, floor, bound, debias_error = (float(number) for number in sums / parts)
    if debias_error:  # of a factor and probes, whose sums round to up to 2e-10 of the term
        debias_error += 1e-9 * debias
    iterations = max(each.iterations for each in solutions)
    debias_rank = max(each.debias_rank for each in solutions)
    certified = problem.method.certified
    ranks = [each.n_features for each in solved if each.n_features is not None]
    estimate = Estimate(
        value=value,
        debiased=value - debias,
        floor=None if samples.groups is not None else floor,
        se=standard_error(influence, samples.weights, samples.groups),
        bound=bound if certified else None,
        error=None if parts > 1 else feature_error(solutions[0]),
        method=problem.method.word,
        bandwidth=problem.bandwidth.value,
        bandwidth_source=problem.bandwidth.source,
        regularization=problem.regularization.value,
        n_samples=samples.n,
        n_classes=problem.n_classes,
        iterations=iterations or None,
        rank=max(ranks) if ranks and certified else None,
        debias_rank=debias_rank if debias_error else None,
        debias_error=debias_error or None,
        per_class=_per_class(problem, solutions),
        influence=influence,
        signature=str(problem.signature),
        mean_residual=_mean_residual(problem),
        classes=problem.classes,
        level=level,
        n_groups=samples.n_groups,
        effective_groups=effective_groups(samples.groups, samples.weights),
    )
    return estimate, problem, solutions


def _per_class(problem: Problem, solutions: list[_core.Solution]) -> NDArray[np.float64] | None:
    """What each class adds to the value."""
    if isinstance(problem.reduction, ClassWise):
        return np.array([each.value for each in solutions]) / problem.n_parts
    if isinstance(problem.reduction, TopLabel) or problem.label_kernel is not None:
        return None
    return solutions[0].per_class


def _mean_residual(problem: Problem) -> NDArray[np.float64] | None:
    if isinstance(problem.reduction, TopLabel):
        return None
    samples = problem.samples
    scores = _core.scores(
        samples.probs, samples.labels, samples.weights, n_threads=problem.n_threads
    )
    return scores.residual / samples.weight
