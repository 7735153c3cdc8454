"""Segments of the rows, such as regions or tasks, whose values are reported one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input.arrays import as_array, check_rows
from ckce._input.groups import check_missing
from ckce._input.words import InputError, InputTypeError, listed, nearest

_MANY_NUMBERS = 50  # distinct ones that are not whole: a measurement, no segments


@dataclass(frozen=True)
class Partition:
    """The rows by one attribute."""

    attribute: str  # empty: an array without a name
    codes: NDArray[np.int64]  # (n_samples,)
    values: tuple[str, ...]  # what the codes stand for, in order

    def of(self, kept: NDArray[np.bool_]) -> Partition:
        """Of the rows that are kept."""
        return replace(self, codes=self.codes[kept])


def take_column(by: Any, y_prob: Any) -> tuple[Any, Any]:
    """The segments and the predictions, where `by` names a column of a table of predictions."""
    if not isinstance(by, str):
        return by, y_prob
    models = y_prob if isinstance(y_prob, Mapping) else {"": y_prob}
    tables = {name: each for name, each in models.items() if by in _columns_of(each)}
    if not tables:
        known = {str(name) for each in models.values() for name in _columns_of(each)}
        hint = nearest(by, known)
        raise InputError(
            f"by must name a column of y_prob, or be an array or a dict of arrays, got {by!r} and "
            + (f"the columns {listed(sorted(known))}{hint}" if known else "no table")
        )
    first, *others = (np.asarray(each[by]) for each in tables.values())
    if not all(np.array_equal(first, other) for other in others):
        raise InputError(f"column {by!r} must be the same for all models, since rows are paired")
    column = next(iter(tables.values()))[by]
    left = {name: _without(each, by) if name in tables else each for name, each in models.items()}
    return {by: column}, left if isinstance(y_prob, Mapping) else left[""]


def _columns_of(table: Any) -> list[Any]:
    columns = getattr(table, "columns", None)
    return [] if columns is None else list(columns)


def _without(table: Any, column: str) -> Any:
    return table[[name for name in table.columns if name != column]]


def check_segments(by: Any, y_true: Any, sample_weight: Any) -> tuple[Partition, ...]:
    """The partitions that `by` stands for; rows of weight zero are dropped, as of samples."""
    if by is None:
        return ()
    n = len(next(iter(y_true.values())) if isinstance(y_true, Mapping) else y_true)
    if isinstance(by, Mapping):
        named = dict(by)
    elif _columns_of(by):
        named = {name: by[name] for name in by.columns}
    else:
        name = getattr(by, "name", None)
        named = {name if isinstance(name, str) else "": by}
    if not named:
        raise InputError("by must hold at least one attribute, got an empty dict")
    partitions = []
    for name, values in named.items():
        where = f"by[{name!r}]" if isinstance(by, Mapping) or _columns_of(by) else "by"
        check_rows({"y_true": y_true, where: values})
        partitions.append(_partition(where, str(name), values, n))
    if sample_weight is not None:
        kept = as_array("sample_weight", sample_weight) > 0.0
        partitions = [each.of(kept) for each in partitions]
    return tuple(partitions)


def _partition(where: str, attribute: str, values: Any, n: int) -> Partition:
    array = as_array(where, values)
    if array.shape != (n,):
        hint = "; pass a dict of columns for several attributes" if array.ndim == 2 else ""
        raise InputError(
            f"{where} must have shape ({n},), one value for each row, got {array.shape}{hint}"
        )
    check_missing(where, array, "give such rows a value of their own, or drop them")
    distinct = _distinct(where, array)
    if array.dtype.kind == "f" and len(distinct) > _MANY_NUMBERS and (array % 1.0 != 0.0).any():
        raise InputError(
            f"{where} holds {len(distinct)} distinct numbers in {n} rows, which are no segments; cut "
            "them into ranges first, for example with pandas.cut"
        )
    order = _order(values, distinct)
    codes = {value: code for code, value in enumerate(order)}
    words = [str(value) for value in order]
    if len(set(words)) < len(words):  # 1 and "1"
        words = [repr(value) for value in order]
    looked_up = np.fromiter((codes[value] for value in array.tolist()), np.int64, n)
    return Partition(attribute, looked_up, tuple(words))


def _distinct(where: str, array: NDArray[Any]) -> list[Any]:
    """In order where there is one, else as they come."""
    try:
        found = list(dict.fromkeys(array.tolist()))
    except TypeError:
        kind = next(type(each).__name__ for each in array if type(each).__hash__ is None)
        raise InputTypeError(
            f"{where} must hold values such as strings or integers, got {kind}"
        ) from None
    try:
        return sorted(found)
    except TypeError:
        return found


def _order(values: Any, distinct: list[Any]) -> list[Any]:
    """Categories of pandas have an order of their own, and some may have no rows."""
    categorical = getattr(values, "cat", values)
    categories = getattr(categorical, "categories", None)
    if categories is None:
        return distinct
    order: list[Any] = list(categories.tolist())
    return order if set(distinct) <= set(order) else distinct
