"""Whether verdicts survive other choices of bandwidth and lambda."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import check_positive
from ckce._problem import progress_bar
from ckce._results import Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Setting:
    """One rerun."""

    bandwidth: float
    regularization: float


@dataclass(frozen=True)
class Sensitivity:
    """Differences of the models of a comparison at equal predictions, under other settings.

    Attributes
    ----------
    pairs : tuple of pairs of str
        The pairs (better, worse) that the comparison shows to be different; all pairs, by the signs
        of their differences, if there are none.
    settings : tuple of Setting
        The settings that were run.
    differences : ndarray of shape (n_settings, n_pairs)
        Worse minus better at equal predictions, in each setting: below 0 if the order turns.
    agreement : ndarray of shape (n_settings,)
        Share of the pairs whose order is the same in the setting.
    survives : bool
        Whether all pairs keep their order, in all settings.
    sentence : str
        The same in words.
    factors : tuple of tuples
        Factors of the bandwidth and of lambda, whose grid is `settings`.
    """

    pairs: tuple[tuple[str, str], ...]
    settings: tuple[Setting, ...]
    differences: NDArray[np.float64] = field(repr=False, compare=False)
    agreement: NDArray[np.float64] = field(repr=False, compare=False)
    survives: bool
    sentence: str
    factors: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def grid(self) -> NDArray[np.float64]:
        """`agreement` by factor of the bandwidth (down) and of lambda (to the right)."""
        rows, columns = map(len, self.factors)
        return self.agreement.reshape(rows, columns)

    def _table(self) -> Table:
        of_bandwidth, of_lambda = self.factors
        rows = zip(of_bandwidth, self.grid.tolist(), strict=True)
        return Table(
            columns=(
                Column("bandwidth", ("bandwidth",)),
                *(Column(f"lambda x {f:g}", (f"{f!r}",), form=".0%") for f in of_lambda),
            ),
            rows=tuple(
                {
                    "bandwidth": f"x {factor:g}",
                    **dict(zip(map(repr, of_lambda), shares, strict=True)),
                }
                for factor, shares in rows
            ),
            heading="pairs that keep their order when bandwidth and lambda change",
            lead=self.sentence,
        )

    def __str__(self) -> str:
        return self._table().text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self._table().html()

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        rows = zip(self.settings, self.differences.tolist(), self.agreement.tolist(), strict=True)
        return {
            "pairs": [list(pair) for pair in self.pairs],
            "survives": self.survives,
            "sentence": self.sentence,
            "settings": [
                {**vars(setting), "differences": values, "agreement": share}
                for setting, values, share in rows
            ],
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Heat map over bandwidth and lambda: the share of verdicts that keep their order."""
        from ckce._plots.heat_map import heat_map

        return heat_map(self.grid, self.factors, ax)


def run_sensitivity(
    rerun: Callable[..., list[list[float]]],
    *,
    pairs: Sequence[tuple[str, str]],
    shown: bool,
    bandwidth: float,
    regularization: float,
    factors: tuple[Sequence[float], Sequence[float]],
    progress: bool | None,
) -> Sensitivity:
    """Run all settings; `pairs` are (better, worse), which the comparison has `shown` or not."""
    of_bandwidth = _checked("bandwidths", factors[0], check_positive)
    of_lambda = _checked("regularizations", factors[1], check_positive)
    lambdas = [factor * regularization for factor in of_lambda]
    settings, rows = [], []
    turned = [(worse, better) for better, worse in pairs]
    with progress_bar(progress, "sensitivity") as report:
        for done, factor in enumerate(of_bandwidth, 1):
            rows += rerun(turned, factor * bandwidth, lambdas)
            settings += [Setting(factor * bandwidth, lam) for lam in lambdas]
            if report is not None:
                report(done / len(of_bandwidth))
    differences = np.array(rows)
    kept = differences >= 0.0
    return Sensitivity(
        pairs=tuple(pairs),
        settings=tuple(settings),
        differences=differences,
        agreement=kept.mean(axis=1),
        survives=bool(kept.all()),
        sentence=_sentence(kept, pairs, shown),
        factors=(of_bandwidth, of_lambda),
    )


def _checked(name: str, values: Any, check: Callable[[str, Any], Any]) -> tuple[Any, ...]:
    numbers = tuple(check(f"{name}[{k}]", value) for k, value in enumerate(values))
    if not numbers:
        raise ValueError(f"{name} must not be empty, got {values!r}")
    return numbers


def _sentence(kept: NDArray[np.bool_], pairs: Sequence[tuple[str, str]], shown: bool) -> str:
    total = len(kept)
    if not shown:
        changed = total - int(kept.all(axis=1).sum())
        return (
            "there is no verdict to survive, since no difference is shown: the order of the models at "
            f"equal predictions changes in {changed} of {total} settings"
        )
    count = f"{len(pairs)} difference{'' if len(pairs) == 1 else 's'}"
    if kept.all():
        keep = "keeps its" if len(pairs) == 1 else "keep their"
        verb = "verdict survives" if len(pairs) == 1 else "verdicts survive"
        return f"the {verb}: {count} at equal predictions {keep} sign in all {total} settings"
    turned = np.flatnonzero(~kept.all(axis=0))
    worst = int(min(turned, key=lambda pair: int(kept[:, pair].sum())))
    a, b = pairs[worst]
    times = total - int(kept[:, worst].sum())
    change = "changes its" if len(turned) == 1 else "change their"
    return (
        f"the verdicts do not all survive: {len(turned)} of {count} at equal predictions {change} sign "
        f"in some of the {total} settings, most often that of {a} and {b} (in {times})"
    )
