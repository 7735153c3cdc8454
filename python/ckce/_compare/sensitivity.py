"""Whether a ranking survives other choices of bandwidth, lambda, frequencies and seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import check_count, check_positive, check_seed
from ckce._problem import progress_bar
from ckce._results import Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Setting:
    """One rerun; None is the comparison's own."""

    bandwidth: float | None
    regularization: float | None
    n_frequencies: int | None = None
    random_state: int | None = None


@dataclass(frozen=True)
class Sensitivity:
    """Debiased CKCE of the models of a comparison under other settings.

    Attributes
    ----------
    names : tuple of str
        The models, in the order of the comparison.
    settings : tuple of Setting
        The settings that were run.
    debiased : ndarray of shape (n_settings, n_models)
        Debiased CKCE of each model in each setting.
    agreement : ndarray of shape (n_settings,)
        Share of the pairs that differ significantly in the comparison whose order is the same in
        the setting; of all pairs if none does.
    survives : bool
        Whether all of these pairs keep their order, in all settings. Models that cannot be
        distinguished may change places.
    sentence : str
        The same in words.
    factors : tuple of tuples
        Factors of the bandwidth and of lambda whose grid comes first in `settings`.
    """

    names: tuple[str, ...]
    settings: tuple[Setting, ...]
    debiased: NDArray[np.float64] = field(repr=False, compare=False)
    agreement: NDArray[np.float64] = field(repr=False, compare=False)
    survives: bool
    sentence: str
    factors: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def grid(self) -> NDArray[np.float64]:
        """`agreement` by factor of the bandwidth (down) and of lambda (to the right)."""
        rows, columns = map(len, self.factors)
        return self.agreement[: rows * columns].reshape(rows, columns)

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
        rows = zip(self.settings, self.debiased.tolist(), self.agreement.tolist(), strict=True)
        return {
            "names": list(self.names),
            "survives": self.survives,
            "sentence": self.sentence,
            "settings": [
                {**vars(setting), "ckce_debiased": values, "agreement": share}
                for setting, values, share in rows
            ],
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Heat map over bandwidth and lambda: the share of significant pairs that keep their order."""
        from ckce._plots.heat_map import heat_map

        return heat_map(self.grid, self.factors, ax)


def run_sensitivity(
    rerun: Callable[[Setting], list[float]],
    *,
    names: tuple[str, ...],
    significant: Sequence[tuple[str, str]],
    bandwidth: float | None,
    regularization: float,
    fourier: bool,
    factors: tuple[Sequence[float], Sequence[float]],
    draws: tuple[Sequence[int], Sequence[int]],
    progress: bool | None,
) -> Sensitivity:
    """Run all settings; `significant` holds the pairs (better, worse) whose order matters."""
    of_bandwidth = _checked("bandwidths", factors[0], check_positive)
    of_lambda = _checked("regularizations", factors[1], check_positive)
    if bandwidth is None:  # the kernel has none, or the frequencies were given
        of_bandwidth = (1.0,)
    settings = [
        Setting(None if bandwidth is None else g * bandwidth, r * regularization)
        for g in of_bandwidth
        for r in of_lambda
    ]
    if fourier and bandwidth is not None:
        settings += [
            Setting(None, None, count, seed)
            for count in _checked("n_frequencies", draws[0], check_count)
            for seed in _checked("seeds", draws[1], lambda _, value: check_seed(value))
        ]
    rows = []
    with progress_bar(progress, "sensitivity") as report:
        for done, setting in enumerate(settings, 1):
            rows.append(rerun(setting))
            if report is not None:
                report(done / len(settings))
    debiased = np.array(rows)
    position = {name: column for column, name in enumerate(names)}
    pairs = [(position[a], position[b]) for a, b in significant]
    if not pairs:
        pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
    better, worse = (np.array(side) for side in zip(*pairs, strict=True))
    kept = debiased[:, better] <= debiased[:, worse]
    agreement = kept.mean(axis=1)
    first = int((debiased.argmin(axis=1) == 0).sum())
    return Sensitivity(
        names=names,
        settings=tuple(settings),
        debiased=debiased,
        agreement=agreement,
        survives=bool(kept.all()),
        sentence=_sentence(names, settings, kept, pairs, first, bool(significant)),
        factors=(of_bandwidth, of_lambda),
    )


def _checked(name: str, values: Any, check: Callable[[str, Any], Any]) -> tuple[Any, ...]:
    numbers = tuple(check(f"{name}[{k}]", value) for k, value in enumerate(values))
    if not numbers:
        raise ValueError(f"{name} must not be empty, got {values!r}")
    return numbers


def _sentence(
    names: tuple[str, ...],
    settings: Sequence[Setting],
    kept: NDArray[np.bool_],
    pairs: Sequence[tuple[int, int]],
    first: int,
    significant: bool,
) -> str:
    total = len(settings)
    others = total - first  # settings in which another model comes first
    if not significant:
        changed = total - int(kept.all(axis=1).sum())
        return (
            "there is no ranking to survive, since no pair differs significantly: the order of the "
            f"models changes in {changed} of {total} settings"
        )
    count = f"{len(pairs)} significant pair{'' if len(pairs) == 1 else 's'}"
    if kept.all():
        keep = "keeps its" if len(pairs) == 1 else "keep their"
        tie = (
            f"; another model comes first in {others} of them, one that cannot be distinguished from "
            f"{names[0]}"
            if others
            else ""
        )
        return f"the ranking survives: {count} of models {keep} order in all {total} settings{tie}"
    turned = np.flatnonzero(~kept.all(axis=0))
    worst = int(min(turned, key=lambda pair: int(kept[:, pair].sum())))
    a, b = (names[side] for side in pairs[worst])
    times = total - int(kept[:, worst].sum())
    change = "changes" if len(turned) == 1 else "change"
    return (
        f"the ranking does not survive: {len(turned)} of {count} {change} order in some of the "
        f"{total} settings, most often {a} and {b} (in {times}); {names[0]} is the best in "
        f"{first} of them"
    )
