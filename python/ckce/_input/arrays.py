"""Arrays of any library become NumPy arrays of probabilities, columns and weights."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input.words import InputError, InputTypeError, entries_are, listed, shown, warn

HALF_SUM_TOLERANCE = 5e-3
LEAST_WEIGHT = 1e-100  # its square is not 0
LARGEST_WEIGHT = 2.0**53  # weights count copies: beyond, a copy more is lost in rounding
_ORDER = ("order", "labels come first: (y_true, y_prob)")


def as_array(name: str, value: Any) -> NDArray[Any]:
    """Anything that holds numbers or words, as an array."""
    if type(value) is np.ndarray and value.dtype.kind in "fiub":
        return value
    if value is None:
        raise InputTypeError(f"{name} must be an array, got None")
    rows = value if isinstance(value, (list, tuple)) else (value,)
    if any(isinstance(row, np.ma.MaskedArray) for row in rows):
        raise InputTypeError(f"{name} must not be a masked array; fill or drop the masked entries")
    if hasattr(value, "tocsr") or hasattr(value, "to_scipy_sparse"):
        raise InputTypeError(
            f"{name} must be dense, got a sparse {type(value).__name__}; use .toarray()"
        )
    if hasattr(value, "detach"):  # a torch tensor, maybe one that requires grad
        if getattr(value.device, "type", "cpu") != "cpu":
            raise InputTypeError(
                f"{name} must be on the CPU, got a tensor on {value.device}; use .cpu()"
            )
        value = value.detach()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name} must be a rectangular array: {error}") from None
    except OverflowError:
        raise InputError(f"{name} must hold numbers within the range of a float") from None
    if array.ndim == 0 and array.dtype.kind == "O":
        hint = f"; pass list({name})" if hasattr(value, "__next__") else ""
        raise InputTypeError(f"{name} must be an array, got {type(value).__name__}{hint}")
    if array.dtype.kind == "S":
        array = _as_text(name, array)
    elif array.dtype.kind == "U" and isinstance(value, (list, tuple)) and not _all_text(value):
        array = np.array(value, dtype=object)  # NumPy would write NaN as 'nan', and 1 as '1'
    if array.dtype.kind == "V" and array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if array.dtype.kind == "T":  # strings of any length
        array = array.astype(object)
    return array


def _as_text(name: str, array: NDArray[np.bytes_]) -> NDArray[np.str_]:
    """Bytes as the text that they are."""
    try:
        return np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} must hold text in UTF-8, got {shown(bytes(error.object))}; decode it"
        ) from None


def _all_text(values: Sequence[Any]) -> bool:
    """Whether a list, or a list of lists, holds strings only."""
    return all(
        _all_text(value)
        if isinstance(value, (list, tuple))
        else isinstance(value, (str, np.ndarray))
        for value in values
    )


def is_half(original: Any, array: NDArray[Any]) -> bool:
    """Whether the numbers have half precision."""
    half = array.dtype.kind == "f" and array.dtype.itemsize == 2  # of either byte order
    if half or type(original) is np.ndarray:
        return half
    return "bfloat16" in str(getattr(original, "dtype", ""))


def check_swapped(truth: NDArray[Any], probs: NDArray[Any]) -> None:
    """Refuse predictions in the place of labels."""
    if truth.ndim == 2 and probs.ndim == 1 and truth.dtype.kind == "f" and probs.dtype.kind != "f":
        raise InputError(
            f"y_true and y_prob look swapped: got shapes {truth.shape} and {probs.shape}; labels "
            "come first, as in scikit-learn"
        )


def check_rows(arrays: Mapping[str, Any]) -> None:
    """Rows are paired by position: refuse tables (pandas) whose index pairs them otherwise."""
    indexed: list[tuple[str, Any]] = []
    for name, array in arrays.items():
        if array is None or type(array) is np.ndarray:
            continue
        index = getattr(array, "index", None)
        if hasattr(index, "isin"):
            indexed.append((name, index))
    for name, index in indexed[1:]:
        first, other = indexed[0]
        if index.equals(other) or len(index) != len(other) or index.nlevels != other.nlevels:
            continue
        if index.isin(other).all() and other.isin(index).all():
            raise InputError(
                f"{first} and {name} must have the same index, got the same rows in another order; "
                "align them with .loc, or pass .to_numpy() if the order is right"
            )


def as_float(array: NDArray[Any], *, logits: bool, stream: bool) -> NDArray[np.floating]:
    """Predictions of a shape and dtype that can be."""
    if array.dtype.kind not in "fiub":
        objects = array.dtype.kind == "O"
        missing = np.array([objects and is_missing(each) for each in array.flat], np.bool_)
        if missing.any():
            row = np.unravel_index(int(np.argmax(missing)), array.shape)[0]
            raise InputError(
                f"y_prob row {row} holds a missing value ({entries_are(int(missing.sum()))} missing); "
                "drop or fix these rows"
            )
        words = array.ndim == 1 and all(isinstance(each, str) for each in array)
        raise InputTypeError(
            f"y_prob must hold real numbers, got dtype {array.dtype}"
            + ("; use astype(float)" if objects else ""),
            *([_ORDER] if words else []),
        )
    if array.ndim == 1 and array.dtype.kind in "iub" and not logits and array.size:
        raise InputTypeError(
            f"y_prob must hold probabilities, got dtype {array.dtype}, as predicted labels have",
            (
                "predicted",
                "pass predict_proba(X), or astype(float) if they are meant as probabilities",
            ),
            _ORDER,
        )
    if array.ndim not in (1, 2):
        raise InputError(
            "y_prob must have shape (n_samples, n_classes), or (n_samples,) for the positive class, "
            f"got {array.shape}"
        )
    if array.shape[0] == 0 and not stream:
        raise InputError(f"y_prob must have at least one row, got shape {array.shape}")
    if array.ndim == 2 and array.shape[1] < 2:
        raise InputError(
            f"y_prob must have at least 2 columns, got shape {array.shape}; pass the 1-D "
            "probabilities of the positive class for a binary problem"
        )
    if array.dtype.char not in "efd" or not array.dtype.isnative:
        array = array.astype(np.float64 if array.dtype.itemsize > 4 else np.float32)
    return array


def both_classes(positive: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
    """[1 - p, p]; what rounding has pushed out of [0, 1] is taken in."""
    outside = ~((positive >= -tolerance) & (positive <= 1.0 + tolerance))
    if outside.any():
        row = int(np.argmax(outside))
        value, largest = positive[row], positive[np.isfinite(positive)].max(initial=0.0)
        hint = ("logits", "pass input='logits' if these are logits")
        if positive.min() >= 0.0 and 1.0 < largest <= 100.0:
            hint = ("percent", "divide by 100 if they are percentages")
        raise InputError(
            f"y_prob row {row} is {value:.6g}, expected the probability of the positive class "
            f"({int(outside.sum())} of {len(positive)} entries are outside of [0, 1])",
            hint,
        )
    both = np.empty((len(positive), 2))
    np.clip(positive, 0.0, 1.0, out=both[:, 1])
    np.subtract(1.0, both[:, 1], out=both[:, 0])
    return both


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of rows of logits, in their place; 1-D logits are of the positive class."""
    bad = ~(logits < math.inf)  # NaN or +inf; -inf is a probability of zero
    if logits.ndim == 1:
        logits = np.column_stack([np.zeros_like(logits), logits])
    elif _look_like_probs(logits):
        raise InputError(
            "y_prob must hold logits with input='logits', got rows without a negative entry that "
            "all sum to 1; leave input out if these are probabilities"
        )
    if bad.any():
        row = int(np.argwhere(bad)[0, 0])
        raise InputError(
            f"y_prob (logits) row {row} holds NaN or inf ({int(bad.sum())} entries in all do)"
        )
    top = logits.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        row = int(np.argmin(np.isfinite(top[:, 0])))
        raise InputError(f"y_prob (logits) row {row} is -inf in every class")
    logits -= top
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def _look_like_probs(logits: NDArray[np.float64]) -> bool:
    """All rows are on the simplex; of fewer than 8 that may be chance."""
    if len(logits) < 8 or not (logits >= 0.0).all():
        return False
    return bool((np.abs(logits.sum(axis=1) - 1.0) <= HALF_SUM_TOLERANCE).all())


def as_indices(
    truth: NDArray[Any], m: int, labels: Any, *, named: bool = False, one_column: bool = False
) -> NDArray[np.int64]:
    """Column of each label; `named`: the predictions themselves name their columns."""
    kind = truth.dtype.kind
    if labels is not None:
        return _look_up(truth, as_classes(labels, m))
    if kind in "iu":
        if kind == "u" and truth.size and int(truth.max()) > np.iinfo(np.int64).max:
            raise InputError(f"y_true must be in 0..{m - 1}, got {truth.max()}")
        return np.ascontiguousarray(truth, dtype=np.int64)
    if kind == "b":
        if m != 2:
            raise InputError(
                f"y_true is boolean, but y_prob has {m} columns; labels must be 0..{m - 1}"
            )
        return truth.astype(np.int64)
    if kind in "US" or (kind == "O" and all(isinstance(label, str) for label in truth)):
        return _sorted_indices(truth.astype(str), m, named, one_column)
    check_missing(truth)
    if kind == "f":
        raise InputTypeError(
            f"y_true must hold integers or strings, got dtype {truth.dtype}; use "
            "y_true.astype(int)",
            _ORDER,
        )
    raise InputTypeError(f"y_true must hold integers or strings, got dtype {truth.dtype}")


def check_missing(truth: NDArray[Any]) -> None:
    """Refuse labels that are not there: NaN, or None among strings."""
    missing = np.isnan(truth) if truth.dtype.kind == "f" else np.zeros(truth.shape, np.bool_)
    if truth.dtype.kind == "O":
        for row, label in enumerate(truth):
            if type(label).__hash__ is None:  # a list, an array, a dict
                raise InputTypeError(
                    f"y_true must hold integers or strings, got {type(label).__name__} in row {row}"
                )
        missing = np.array([is_missing(label) for label in truth], np.bool_)
    if missing.any():
        raise InputError(
            f"y_true row {int(np.argmax(missing))} is missing ({int(missing.sum())} of {len(truth)} "
            "labels are); drop these rows from y_true and y_prob"
        )


def is_missing(each: Any) -> bool:
    """Whether an object stands for a value that is not there."""
    if each is None or type(each).__name__ == "NAType":  # of pandas, equal to nothing
        return True
    try:
        return bool(each != each)
    except ValueError:  # an array
        return False


def _sorted_indices(
    truth: NDArray[np.str_], m: int, named: bool, one_column: bool
) -> NDArray[np.int64]:
    """Strings in sorted order, as scikit-learn has them, and a warning that says so."""
    classes = np.unique(truth)
    if len(classes) != m and one_column:
        raise InputError(
            f"y_true must hold two distinct strings if y_prob has one column, got {len(classes)}",
            ("labels", "pass labels=[negative, positive]"),
        )
    if len(classes) != m:
        raise InputError(
            f"y_true has {len(classes)} distinct strings, but y_prob has {m} columns",
            ("labels", "pass labels= with the class of each column"),
        )
    _check_order(classes)
    if one_column:
        negative, positive = classes.tolist()
        warn(
            "y_true holds strings, and labels= is missing: y_prob is taken as the probability of "
            f"{shown(positive)}, the second in sorted order; pass labels=[{shown(negative)}, "
            f"{shown(positive)}] if it is, labels=[{shown(positive)}, {shown(negative)}] if not"
        )
    elif not named:
        warn(
            f"y_true holds strings, and labels= is missing: the columns of y_prob are taken in "
            f"sorted order, {listed(classes.tolist())}; pass labels= with the class of each column"
        )
    return _look_up(truth, classes)


def _check_order(classes: NDArray[np.str_]) -> None:
    """Refuse strings of numbers that are in another order as text."""
    try:
        values = classes.astype(np.float64)
    except ValueError:
        return
    if not (np.diff(values) > 0.0).all():
        raise InputError(
            f"y_true holds numbers as strings, in the order of text {classes.tolist()}",
            ("labels", "pass labels= with the class of each column, or y_true.astype(int)"),
        )


def as_classes(labels: Any, m: int) -> NDArray[Any]:
    """The names of the columns."""
    classes = as_array("labels", labels)
    if classes.ndim != 1 or classes.shape[0] != m:
        raise InputError(
            f"labels must name the {m} columns of y_prob, got an array of shape {classes.shape}"
        )
    if len(set(classes.tolist())) != m:
        raise InputError(f"labels must be distinct, got {listed(classes.tolist())}")
    return classes


def class_names(truth: NDArray[Any], labels: Any, m: int) -> tuple[Any, ...]:
    """What the columns of checked samples are called."""
    if labels is not None:
        return tuple(as_classes(labels, m).tolist())
    if truth.dtype.kind in "USO" and truth.size:
        return tuple(np.unique(truth.astype(str)).tolist())
    return tuple(range(m))


def check_names(y_true: Any, columns: Any, labels: Any, classes: tuple[Any, ...]) -> None:
    """Refuse columns (pandas) that share a name, and other orders than that of the classes."""
    dtype = getattr(y_true, "dtype", None)
    categories = getattr(dtype, "categories", None) if hasattr(dtype, "ordered") else None
    if columns is None and categories is None:
        return
    expected = [str(name) for name in classes]
    if labels is not None or not isinstance(classes[0], str):
        categories = None  # it is not they that tell the columns
    for what, names in (("columns of y_prob", columns), ("categories of y_true", categories)):
        found = [] if names is None else [str(name) for name in names]
        if len(set(found)) < len(found):
            raise InputError(
                f"{what} must be distinct, got {listed(found)}; rename them, or pass .to_numpy() if "
                "their order is right"
            )
        if found != expected and sorted(found) == sorted(expected):
            raise InputError(
                f"{what} must be in the order of the classes, {expected}, got {found}",
                ("labels", "pass labels= with the class of each column"),
            )


def _look_up(truth: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    column_of = {label: column for column, label in enumerate(classes.tolist())}
    columns = [column_of.get(label, -1) for label in truth.tolist()]
    indices = np.array(columns, dtype=np.int64)
    unknown = indices < 0
    if unknown.any():
        row = int(np.argmax(unknown))
        raise InputError(
            f"y_true row {row} is {shown(truth[row])}, which is not in labels "
            f"({int(unknown.sum())} of {len(indices)} rows are not); labels are "
            f"{listed(classes.tolist())}"
        )
    return indices


def as_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """Frequency weights."""
    if sample_weight is None:
        return None
    array = as_array("sample_weight", sample_weight)
    if array.dtype.kind not in "fiub":
        raise InputTypeError(f"sample_weight must hold real numbers, got dtype {array.dtype}")
    if array.shape != (n,):
        raise InputError(f"sample_weight must have shape ({n},), got {array.shape}")
    weights = np.array(array, dtype=np.float64)  # a copy, which nobody changes after the check
    bad = ~(np.isfinite(weights) & (weights >= 0.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"sample_weight must be finite and not negative, row {row} is {weights[row]} "
            f"({int(bad.sum())} of {n} rows are not)"
        )
    tiny = (weights > 0.0) & (weights < LEAST_WEIGHT)
    if tiny.any():
        row = int(np.argmax(tiny))
        raise InputError(
            f"sample_weight must be 0 or at least {LEAST_WEIGHT:g}, row {row} is {weights[row]} "
            f"({int(tiny.sum())} of {n} rows are below): set them to 0 to leave the rows out"
        )
    if weights.max(initial=0.0) > LARGEST_WEIGHT or weights.sum() > LARGEST_WEIGHT:
        raise InputError(
            f"sample_weight must sum to at most 2**53, got {weights.astype(np.longdouble).sum():.3g}; "
            "rescale the weights, to mean 1 if they are importances"
        )
    return weights
