"""What `ckce.estimate` returns."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input.samples import check_level
from ckce._results.attribution import Attribution, attribute


@dataclass(frozen=True)
class Estimate:
    """A CKCE with everything needed to read and to repeat it; ``float(e)`` is the value.

    Attributes
    ----------
    value : float
        CKCE, the paper's estimator. Biased upwards: see `floor`.
    debiased : float
        CKCE without the diagonal of its trace formula. Centred at 0 under calibration, so it may be
        negative.
    floor : float
        Mean of `value` for a perfectly calibrated model with the same predictions.
    se : float
        Standard error of `debiased` (influence function; bandwidth, regularization and frequencies
        held fixed).
    bound : float or None
        Bound on \\|value - exact value\\|; None where there is none (``fourier``).
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
        Contributions of the classes, which add up to `value`; None with a label kernel.
    influence : ndarray of shape (n_samples,)
        Influence of each sample on the value.
    signature : str
        Names everything that changes the number.
    mean_residual : ndarray of shape (n_classes,) or None
        Mean of e_y - q: positive for classes that occur more often than predicted. None with
        ``reduction="top_label"``.
    classes : tuple
        The classes, in the order of the columns.
    """

    value: float
    debiased: float
    floor: float
    se: float
    bound: float | None
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

    def __float__(self) -> float:
        return self.value

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval around `debiased`.

        It covers the regularised population value: that at the same bandwidth, lambda and
        frequencies, not that at lambda = 0. Conservative near calibration.
        """
        check_level(level)
        from statistics import NormalDist  # 5 ms that importing ckce should not cost

        half = NormalDist().inv_cdf(0.5 + level / 2) * self.se
        return self.debiased - half, self.debiased + half

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

    def __repr__(self) -> str:
        low, high = self.interval()
        if self.bound is None:
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
        rows = [
            ("CKCE", f"{self.value:.6g}", accuracy),
            ("floor", f"{self.floor:.6g}", f"mean of a calibrated model{note}"),
            ("debiased", f"{self.debiased:.6g}", f"95 % interval {low:.6g} to {high:.6g}"),
        ]
        width = max(len(number) for _, number, _ in rows)
        lines = [f"{name:<10}{number:<{width}}  {text}" for name, number, text in rows]
        lines.append(
            f"{'data':<10}n = {self.n_samples}, m = {self.n_classes}, {bandwidth}"
            f"lambda {self.regularization:.6g}"
        )
        lines.append(f"{'method':<10}{', '.join(how)}")
        lines.append(f"{'signature':<10}{self.signature}")
        return "\n".join(lines)
