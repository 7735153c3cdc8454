"""Groups of rows that depend on each other: any ids become codes 0, 1, 2, ..."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input.arrays import as_array, is_missing
from ckce._input.words import InputError, InputTypeError

#: With fewer groups, more than a tenth of all pairs lie within a group. Debiased values leave them
#: out, and with them that share of a miscalibration (studies/GROUPS.md).
LEAST_GROUPS = 10


def as_groups(groups: Any, n: int) -> NDArray[np.int64] | None:
    """The code of each row's group, in the order of their first rows."""
    if groups is None:
        return None
    ids = as_array("groups", groups)
    if ids.ndim != 1:
        hint = "; join several columns into one id" if ids.ndim == 2 else ""
        raise InputError(
            f"groups must have shape ({n},), one id for each row, got {ids.shape}{hint}"
        )
    if len(ids) != n:
        raise InputError(f"groups must have shape ({n},), one id for each row, got {ids.shape}")
    check_missing("groups", ids, "give such a row an id of its own, or drop it")
    return _codes(ids)


def recoded(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The codes of the rows that are left; too few groups are refused."""
    codes = _codes(codes)
    count = int(codes.max()) + 1
    if count < LEAST_GROUPS:
        raise InputError(
            f"groups must name at least {LEAST_GROUPS} groups, got {count}: pairs within a group are "
            "left out, and of so few groups they are more than a tenth of all; leave groups out only "
            "if the rows are independent"
        )
    return codes


def check_missing(name: str, ids: NDArray[Any], advice: str) -> None:
    """Refuse ids that are missing, and say how many there are."""
    if ids.dtype.kind in "fc":
        missing = np.isnan(ids)
    elif ids.dtype.kind in "mM":
        missing = np.isnat(ids)
    elif ids.dtype.kind == "O":
        missing = np.array([is_missing(each) for each in ids], np.bool_)
    else:
        return
    if missing.any():
        raise InputError(
            f"{name} row {int(np.argmax(missing))} is missing ({int(missing.sum())} of {len(ids)} "
            f"are); {advice}"
        )


def _codes(ids: NDArray[Any]) -> NDArray[np.int64]:
    if ids.dtype.kind == "O":
        seen: dict[Any, int] = {}
        try:
            return np.array([seen.setdefault(each, len(seen)) for each in ids], np.int64)
        except TypeError:
            kind = next(type(each).__name__ for each in ids if type(each).__hash__ is None)
            raise InputTypeError(
                f"groups must hold ids such as integers or strings, got {kind}"
            ) from None
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse.reshape(-1)]
