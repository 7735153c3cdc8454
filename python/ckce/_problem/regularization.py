"""lambda: n^(-1/4), given, or by leave-one-out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import check_positive, warn
from ckce._methods import stand_in

if TYPE_CHECKING:
    from ckce._problem.problem import Problem

#: The values among which leave-one-out chooses.
LAMBDAS = tuple(10.0 ** (k / 2) for k in range(-8, 1))


@dataclass(frozen=True)
class Regularization:
    """lambda, and how it was chosen: "default", "given" or "loo"."""

    value: float
    rule: str

    @property
    def word(self) -> str:
        if self.rule == "default":
            return "n^-0.25"
        return f"loo({self.value!r})" if self.rule == "loo" else repr(self.value)


def check_regularization(value: Any, *, loo: bool = True) -> float | str | None:
    """None, a number, or "loo"."""
    if value is None:
        return None
    if isinstance(value, str) and loo and value != "loo":
        raise ValueError(f"regularization must be a number or 'loo', got the string {value!r}")
    if isinstance(value, str) and loo:
        return value
    singular = ": K + lambda n I would be singular in float64"
    lam = check_positive("regularization", value, 1e-12, why=singular)
    check_positive("regularization", value, high=1e12)  # the value is of order lambda^-2
    if lam < 1e-8:
        warn(
            f"regularization={lam!r} leaves a condition number of up to {2 / lam:.1e}; digits are "
            "lost, see the bound of ckce.estimate",
            RuntimeWarning,
        )
    return lam


def default_regularization(weight: float) -> Regularization:
    """n^(-1/4), the paper's."""
    return Regularization(weight**-0.25, "default")


def choose_by_loo(problems: Sequence[Problem]) -> Regularization:
    """The lambda with the smallest sum of leave-one-out errors; of equal ones the largest."""
    if any(problem.samples.groups is not None for problem in problems):
        raise ValueError(
            "regularization='loo' needs independent rows, got groups: a row that is left out would be "
            "predicted by others of its group; pass a number, or leave regularization out"
        )
    total = np.sum([loo_errors(part) for problem in problems for part in problem.parts], axis=0)
    last = len(total) - 1 - int(np.argmin(total[::-1]))
    return Regularization(float(LAMBDAS[last]), "loo")


def loo_errors(problem: Problem) -> NDArray[np.float64]:
    """Error at each of `LAMBDAS`, by the problem's own features or a factor that stands for K."""
    if problem.kernel.gram is not None:
        raise ValueError("regularization='loo' needs one of the named kernels, got a callable")
    method = problem.method if problem.method.streams else stand_in(problem.samples.n)
    features = problem.features(method)
    ridges = [lam * problem.samples.weight for lam in LAMBDAS]
    return _core.loo_features(
        *problem.data, features=features, ridges=ridges, n_threads=problem.n_threads
    )
