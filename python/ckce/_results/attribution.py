"""Which classes a CKCE comes from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckce._results.table import Column, Said, Table


class Blame(NamedTuple):
    """One class's part in a CKCE."""

    label: Any
    contribution: float  # to the value
    share: float  # of the value
    mean_residual: float  # frequency of the class minus its mean prediction
    direction: str  # "under-predicted" or "over-predicted"; "balanced" for a residual of 0


@dataclass(frozen=True, repr=False)
class Attribution(Said):
    """Contributions of the classes to a CKCE, the largest first; iterates over `Blame` rows.

    Contributions add up to the value. They are never negative and say nothing of the direction;
    the sign of the mean residual does. A class may be right on average (a residual near 0) and
    still be miscalibrated.
    """

    rows: tuple[Blame, ...]

    def __iter__(self) -> Iterator[Blame]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Blame:
        return self.rows[index]

    def _said(self) -> Table:
        rest = self.rows[_SHOWN:]
        share = sum(row.share for row in rest)
        return Table(
            _COLUMNS,
            tuple(row._asdict() for row in self.rows[:_SHOWN]),
            notes=(f"the other {len(rest)} classes: {share:.1%}",) if rest else (),
        )


_SHOWN = 10
_COLUMNS = (
    Column("class", ("label",)),
    Column("contribution", ("contribution",), "ckce"),
    Column("share", ("share",), form=".1%", strong=True),
    Column("mean y - q", ("mean_residual",), form="+.4f"),
    Column("direction", ("direction",)),
)


def attribute(
    classes: Sequence[Any],
    per_class: NDArray[np.float64],
    mean_residual: NDArray[np.float64],
    value: float,
) -> Attribution:
    """Rows for all classes, sorted by contribution; equal ones stay in column order."""
    directions = {1.0: "under-predicted", -1.0: "over-predicted", 0.0: "balanced"}
    return Attribution(
        tuple(
            Blame(
                classes[j],
                float(per_class[j]),
                float(per_class[j]) / value if value > 0.0 else 0.0,
                float(mean_residual[j]),
                directions[float(np.sign(mean_residual[j]))],
            )
            for j in np.argsort(-per_class, kind="stable")
        )
    )
