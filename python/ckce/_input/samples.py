"""The door: whatever a user passes becomes checked arrays here, or an error that says what to do.

Python checks what shape and dtype tell; one C++ pass over the numbers checks the rest. Nothing
behind the door checks again.
"""

import math
import numbers
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core

_SUM_TOLERANCE = 1e-5
_HALF_SUM_TOLERANCE = 5e-3
LEAST_WEIGHT = 1e-100  # its square is not 0
LARGEST_WEIGHT = 2.0**53  # weights count copies: beyond, a copy more is lost in rounding


@dataclass(frozen=True)
class Samples:
    """A checked calibration set: 0-based labels and rows of the simplex."""

    labels: NDArray[np.int64]
    probs: NDArray[np.floating]
    weights: NDArray[np.float64] | None
    #: Tolerance of the row sums if the numbers are still to be checked, by the pass that uses them.
    unchecked: float | None = None

    @property
    def n(self) -> int:
        return int(self.probs.shape[0])

    @property
    def m(self) -> int:
        return int(self.probs.shape[1])

    @property
    def weight(self) -> float:
        """N, the sum of the weights."""
        return float(self.n) if self.weights is None else float(self.weights.sum())


def check_samples(
    y_true: Any,
    y_prob: Any,
    *,
    labels: Any,
    sample_weight: Any,
    normalize: bool,
    from_logits: bool,
    n_threads: int,
    scan: bool = True,
    n_classes: int | None = None,
) -> Samples:
    """Check a calibration set; rows of weight zero are dropped.

    Without `scan` the numbers may be left `unchecked`, for a pass that checks and computes. With
    `n_classes` it is a batch of a stream with so many classes, and no row may be left of it.
    """
    if isinstance(y_true, Samples):  # it came through this door before
        return y_true
    truth = _as_array("y_true", y_true)
    probs = _as_array("y_prob", y_prob)
    _check_swapped(truth, probs)
    check_rows({"y_true": y_true, "y_prob": y_prob, "sample_weight": sample_weight})
    tolerance = _HALF_SUM_TOLERANCE if _is_half(y_prob, probs) else _SUM_TOLERANCE
    stream = n_classes is not None
    probs = _as_probs(probs, from_logits=from_logits, normalize=normalize, stream=stream)
    n, m = probs.shape
    if stream and m != n_classes:
        raise ValueError(f"y_prob must have {n_classes} columns (n_classes), got {m}")
    if truth.ndim != 1:
        hint = "; pass y_true.argmax(axis=1) if it is one-hot" if truth.ndim == 2 else ""
        if 1 in truth.shape:
            hint = "; pass np.ravel(y_true)"
        raise ValueError(f"y_true must have shape (n_samples,), got {truth.shape}{hint}")
    if truth.shape[0] != n:
        raise ValueError(
            f"y_true and y_prob must have the same number of rows, got {truth.shape[0]} and {n}"
        )
    if stream and labels is None and truth.dtype.kind in "USO" and n > 0:
        raise ValueError(
            "labels must be given for a stream of string labels, got None: a batch alone does not "
            "tell which column each belongs to"
        )
    indices = np.zeros(0, np.int64)
    if n > 0:
        indices = _as_indices(truth, m, labels)
        _check_names(y_true, y_prob, labels, m)
    if not scan and sample_weight is None:
        return Samples(indices, probs, None, unchecked=tolerance)
    if np.may_share_memory(indices, truth):
        # The core takes labels for indices: nobody may change them once they are checked.
        indices = indices.copy()
    report = _core.validate(probs, indices, tolerance, n_threads)
    raise_for(report, n, m, check_sums=True)
    weights = _as_weights(sample_weight, n)
    if weights is not None and not stream:
        if not weights.any():
            raise ValueError("sample_weight must not be zero everywhere")
        warn_of_scale(float(weights.mean()), stacklevel=5)
    if weights is not None and not weights.all():
        kept = weights > 0.0
        probs, indices, weights = probs[kept], indices[kept], weights[kept]
    return Samples(indices, probs, weights)


def check_probs(
    y_prob: Any, *, sample_weight: Any, normalize: bool, from_logits: bool, n_threads: int
) -> Samples:
    """Check predictions that come without labels."""
    array = _as_array("y_prob", y_prob)
    if hasattr(y_prob, "columns"):  # their order does not matter here
        y_prob = array
    return check_samples(
        np.zeros(array.shape[:1], np.int64),
        y_prob,
        labels=None,
        sample_weight=sample_weight,
        normalize=normalize,
        from_logits=from_logits,
        n_threads=n_threads,
    )


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {list(choices)}, got {value!r}")
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}")
    return value


def check_positive(
    name: str, value: object, low: float = 0.0, high: float = math.inf, why: str = ""
) -> float:
    """A finite number above zero, from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not (math.isfinite(number) and number > 0.0):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    if number < low:
        raise ValueError(f"{name} must be at least {low:g}, got {value!r}{why}")
    if number > high:
        raise ValueError(f"{name} must be at most {high:g}, got {value!r}{why}")
    return number


def check_bandwidth(value: object) -> float:
    """A bandwidth; its square and the square's inverse are numbers, too."""
    return check_positive("bandwidth", value, 1e-100, 1e100)


def check_count(name: str, value: object) -> int:
    """An integer of at least one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}")
    return int(value)


def check_seed(value: object) -> int:
    """A seed of the project's own generator."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"random_state must be an integer, got {value!r}; the streams of numpy generators are "
            "not stable over versions, so they are not taken"
        )
    if not 0 <= int(value) < 2**64:
        raise ValueError(f"random_state must be in [0, 2**64), got {value!r}")
    return int(value)


def check_level(value: object) -> float:
    """Level of an interval."""
    number = float(value) if isinstance(value, numbers.Real) else math.nan  # True is 1
    if not 0.0 < number < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {value!r}")
    return number


def check_bool(name: str, value: object) -> bool:
    """True or False, not something truthy."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_matrix(name: str, value: Any, shape: tuple[int | None, int]) -> NDArray[np.float64]:
    """A finite float64 matrix of the given shape, Fortran-ordered for the core."""
    if hasattr(value, "columns"):
        raise TypeError(
            f"{name} must be an array, got a {type(value).__name__}; pass .to_numpy() once rows and "
            "columns are in the order of the classes"
        )
    array = _as_array(name, value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    expected = tuple("any" if size is None else size for size in shape)
    if array.ndim != 2 or any(e not in (None, s) for e, s in zip(shape, array.shape, strict=True)):
        raise ValueError(f"{name} must have shape {expected}, got {array.shape}")
    if array.shape[0] == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    matrix = np.asfortranarray(array, dtype=np.float64)
    if not np.isfinite(matrix).all():
        raise ValueError(
            f"{name} must be finite, got {int((~np.isfinite(matrix)).sum())} NaN or inf"
        )
    return matrix


def check_classifier(estimator: Any) -> None:
    """A fitted classifier of scikit-learn's kind."""
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"estimator must have predict_proba, got {type(estimator).__name__}; wrap it in "
            "sklearn.calibration.CalibratedClassifierCV"
        )


def digest(array: NDArray[np.float64]) -> str:
    """Name of an array in a signature."""
    import hashlib  # 4 ms that importing ckce should not cost

    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]


def _as_array(name: str, value: Any) -> NDArray[Any]:
    if value is None:
        raise TypeError(f"{name} must be an array, got None")
    rows = value if isinstance(value, (list, tuple)) else (value,)
    if any(isinstance(row, np.ma.MaskedArray) for row in rows):
        raise TypeError(f"{name} must not be a masked array; fill or drop the masked entries")
    if hasattr(value, "tocsr") or hasattr(value, "to_scipy_sparse"):
        raise TypeError(
            f"{name} must be dense, got a sparse {type(value).__name__}; use .toarray()"
        )
    if hasattr(value, "detach"):  # a torch tensor, maybe one that requires grad
        if getattr(value.device, "type", "cpu") != "cpu":
            raise TypeError(
                f"{name} must be on the CPU, got a tensor on {value.device}; use .cpu()"
            )
        value = value.detach()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array: {error}") from None
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if array.dtype.kind == "T":  # strings of any length
        array = array.astype(object)
    return array


def _is_half(original: Any, array: NDArray[Any]) -> bool:
    half = array.dtype.kind == "f" and array.dtype.itemsize == 2  # of either byte order
    return half or "bfloat16" in str(getattr(original, "dtype", ""))


def _check_swapped(truth: NDArray[Any], probs: NDArray[Any]) -> None:
    if truth.ndim == 2 and probs.ndim == 1 and truth.dtype.kind == "f" and probs.dtype.kind != "f":
        raise ValueError(
            f"y_true and y_prob look swapped: got shapes {truth.shape} and {probs.shape}; labels "
            "come first, as in scikit-learn"
        )


def check_rows(arrays: Mapping[str, Any]) -> None:
    """Rows are paired by position: refuse tables (pandas) whose index pairs them otherwise."""
    indices: dict[str, Any] = {name: getattr(a, "index", None) for name, a in arrays.items()}
    indexed = [(name, index) for name, index in indices.items() if hasattr(index, "isin")]
    for name, index in indexed[1:]:
        first, other = indexed[0]
        if index.equals(other) or len(index) != len(other) or index.nlevels != other.nlevels:
            continue
        if index.isin(other).all() and other.isin(index).all():
            raise ValueError(
                f"{first} and {name} must have the same index, got the same rows in another order; "
                "align them with .loc, or pass .to_numpy() if the order is right"
            )


def _check_names(y_true: Any, y_prob: Any, labels: Any, m: int) -> None:
    """Refuse columns or categories (pandas) that are in another order than the classes."""
    columns = getattr(y_prob, "columns", None)
    dtype = getattr(y_true, "dtype", None)
    categories = getattr(dtype, "categories", None) if hasattr(dtype, "ordered") else None
    if columns is None and categories is None:
        return
    classes = class_names(y_true, labels, m)
    expected = [str(name) for name in classes]
    if labels is not None or not isinstance(classes[0], str):
        categories = None  # it is not they that tell the columns
    for what, names in (("columns of y_prob", columns), ("categories of y_true", categories)):
        found = [] if names is None else [str(name) for name in names]
        if found != expected and sorted(found) == sorted(expected):
            raise ValueError(
                f"{what} must be in the order of the classes, {expected}, got {found}; pass labels= "
                "with the class of each column"
            )


def _as_probs(
    array: NDArray[Any], *, from_logits: bool, normalize: bool, stream: bool = False
) -> NDArray[np.floating]:
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"y_prob must hold real numbers, got dtype {array.dtype}"
            + ("; use astype(float)" if array.dtype.kind == "O" else "")
            + ("; labels come first: (y_true, y_prob)" if array.dtype.kind in "USO" else "")
        )
    if array.ndim == 1 and array.dtype.kind in "iub" and not from_logits and array.size:
        raise TypeError(
            f"y_prob must hold probabilities, got dtype {array.dtype}, as predicted labels have; pass "
            "predict_proba(X), or astype(float) if they are meant as probabilities, and note that "
            "labels come first: (y_true, y_prob)"
        )
    if array.ndim not in (1, 2):
        raise ValueError(
            "y_prob must have shape (n_samples, n_classes), or (n_samples,) for the positive class, "
            f"got {array.shape}"
        )
    if array.shape[0] == 0 and not stream:
        raise ValueError(f"y_prob must have at least one row, got shape {array.shape}")
    if array.ndim == 2 and array.shape[1] < 2:
        raise ValueError(
            f"y_prob must have at least 2 columns, got shape {array.shape}; pass the 1-D "
            "probabilities of the positive class for a binary problem"
        )
    if from_logits and normalize:
        raise ValueError("normalize and from_logits exclude each other, got True for both")
    if array.dtype not in (np.float16, np.float32, np.float64) or not array.dtype.isnative:
        array = array.astype(np.float64 if array.dtype.itemsize > 4 else np.float32)
    if from_logits:
        return _softmax(array.astype(np.float64))
    if array.ndim == 1:
        positive = array.astype(np.float64)
        array = np.column_stack([1.0 - positive, positive])
    return _normalized(array) if normalize else array


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    bad = ~(logits < math.inf)  # NaN or +inf; -inf is a probability of zero
    if logits.ndim == 1:
        logits = np.column_stack([np.zeros_like(logits), logits])
    elif _look_like_probs(logits):
        raise ValueError(
            "y_prob must hold logits with from_logits=True, got rows without a negative entry that "
            "all sum to 1; leave from_logits out if these are probabilities"
        )
    if bad.any():
        row = int(np.argwhere(bad)[0, 0])
        raise ValueError(
            f"y_prob (logits) row {row} holds NaN or inf ({int(bad.sum())} entries in all do)"
        )
    top = logits.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        row = int(np.argmin(np.isfinite(top[:, 0])))
        raise ValueError(f"y_prob (logits) row {row} is -inf in every class")
    powers = np.exp(logits - top)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _look_like_probs(logits: NDArray[np.float64]) -> bool:
    """All rows are on the simplex; of fewer than 8 that may be chance."""
    if len(logits) < 8 or not (logits >= 0.0).all():
        return False
    return bool((np.abs(logits.sum(axis=1) - 1.0) <= _HALF_SUM_TOLERANCE).all())


def _normalized(array: NDArray[np.floating]) -> NDArray[np.float64]:
    n, m = array.shape
    report = _core.validate(array, np.zeros(n, np.int64), math.inf, 1)
    raise_for(report, n, m, check_sums=False)
    widened = array.astype(np.float64)
    sums = widened.sum(axis=1)
    if not sums.all():
        raise ValueError(
            f"y_prob row {int(np.argmin(sums))} sums to 0 and cannot be normalized "
            f"({int((sums == 0).sum())} of {n} rows do)"
        )
    return np.asarray(widened / sums[:, None])


def _as_indices(truth: NDArray[Any], m: int, labels: Any) -> NDArray[np.int64]:
    """Column of each label."""
    kind = truth.dtype.kind
    if labels is not None:
        return _look_up(truth, _as_classes(labels, m))
    if kind in "iu":
        if kind == "u" and truth.size and int(truth.max()) > np.iinfo(np.int64).max:
            raise ValueError(f"y_true must be in 0..{m - 1}, got {truth.max()}")
        return np.ascontiguousarray(truth, dtype=np.int64)
    if kind == "b":
        if m != 2:
            raise ValueError(
                f"y_true is boolean, but y_prob has {m} columns; labels must be 0..{m - 1}"
            )
        return truth.astype(np.int64)
    if kind in "US" or (kind == "O" and all(isinstance(label, str) for label in truth)):
        classes = np.unique(truth.astype(str))
        if len(classes) != m:
            raise ValueError(
                f"y_true has {len(classes)} distinct strings, but y_prob has {m} columns; pass "
                "labels= with the class of each column"
            )
        _check_order(classes)
        return _look_up(truth.astype(str), classes)
    if kind == "f":
        raise TypeError(
            f"y_true must hold integers or strings, got dtype {truth.dtype}; use "
            "y_true.astype(int), and note that labels come first: (y_true, y_prob)"
        )
    raise TypeError(f"y_true must hold integers or strings, got dtype {truth.dtype}")


def _check_order(classes: NDArray[np.str_]) -> None:
    """Refuse strings of numbers that are in another order as text."""
    try:
        values = classes.astype(np.float64)
    except ValueError:
        return
    if not (np.diff(values) > 0.0).all():
        raise ValueError(
            f"y_true holds numbers as strings, in the order of text {classes.tolist()}; pass labels= "
            "with the class of each column, or y_true.astype(int)"
        )


def _as_classes(labels: Any, m: int) -> NDArray[Any]:
    classes = _as_array("labels", labels)
    if classes.ndim != 1 or classes.shape[0] != m:
        raise ValueError(
            f"labels must name the {m} columns of y_prob, got an array of shape {classes.shape}"
        )
    if len(set(classes.tolist())) != m:
        raise ValueError(f"labels must be distinct, got {classes.tolist()}")
    return classes


def class_names(y_true: Any, labels: Any, m: int) -> tuple[Any, ...]:
    """What the columns of checked samples are called."""
    if labels is not None:
        return tuple(_as_classes(labels, m).tolist())
    if not isinstance(y_true, Samples):
        truth = _as_array("y_true", y_true)
        if truth.dtype.kind in "USO":
            return tuple(np.unique(truth.astype(str)).tolist())
    return tuple(range(m))


def _look_up(truth: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    column_of = {label: column for column, label in enumerate(classes.tolist())}
    columns = [column_of.get(label, -1) for label in truth.tolist()]
    indices = np.array(columns, dtype=np.int64)
    unknown = indices < 0
    if unknown.any():
        row = int(np.argmax(unknown))
        raise ValueError(
            f"y_true row {row} is {truth[row]!r}, which is not in labels "
            f"({int(unknown.sum())} of {len(indices)} rows are not); labels are {classes.tolist()}"
        )
    return indices


def _as_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    array = _as_array("sample_weight", sample_weight)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"sample_weight must hold real numbers, got dtype {array.dtype}")
    if array.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {array.shape}")
    weights = np.array(array, dtype=np.float64)  # a copy, which nobody changes after the check
    bad = ~(np.isfinite(weights) & (weights >= 0.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight must be finite and not negative, row {row} is {weights[row]} "
            f"({int(bad.sum())} of {n} rows are not)"
        )
    tiny = (weights > 0.0) & (weights < LEAST_WEIGHT)
    if tiny.any():
        row = int(np.argmax(tiny))
        raise ValueError(
            f"sample_weight must be 0 or at least {LEAST_WEIGHT:g}, row {row} is {weights[row]} "
            f"({int(tiny.sum())} of {n} rows are below): set them to 0 to leave the rows out"
        )
    if weights.max(initial=0.0) > LARGEST_WEIGHT or weights.sum() > LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight must sum to at most 2**53, got {weights.astype(np.longdouble).sum():.3g}; "
            "rescale the weights, to mean 1 if they are importances"
        )
    return weights


def warn_of_scale(mean: float, stacklevel: int) -> None:
    """Warn of weights that look like importances; `mean` is their mean."""
    if not 0.1 <= mean <= 10.0:
        warnings.warn(
            f"sample_weight has mean {mean:.3g}; weights count copies of a row, and CKCE depends on "
            "their sum through lambda = N^(-1/4): rescale them to mean 1 if they are importances",
            UserWarning,
            stacklevel=stacklevel,
        )


def raise_for(report: _core.Report, n: int, m: int, *, check_sums: bool) -> None:
    """Say what is wrong with the numbers, if anything is."""
    logits_hint = "pass from_logits=True if these are logits"
    found = report.not_finite
    if found.count:
        raise ValueError(
            f"y_prob row {found.row} column {found.column} is {found.value} "
            f"({found.count} entries are NaN or inf); drop or fix these rows"
        )
    found = report.negative
    if found.count:
        raise ValueError(
            f"y_prob row {found.row} column {found.column} is {found.value:.6g}, expected "
            f"probabilities ({found.count} entries are negative); {logits_hint}"
        )
    found = report.above_one
    if found.count and check_sums:
        raise ValueError(
            f"y_prob row {found.row} column {found.column} is {found.value:.6g}, expected "
            f"probabilities ({found.count} entries are above 1); {logits_hint}, divide by 100 if "
            "they are percentages"
        )
    found = report.bad_sum
    if found.count and check_sums:
        raise ValueError(
            f"y_prob row {found.row} sums to {found.value:.6f}, expected 1 ({found.count} of {n} "
            f"rows do not); pass normalize=True to rescale, from_logits=True if these are logits"
        )
    found = report.bad_label
    if found.count:
        one_based = report.smallest_label >= 1 and report.largest_label == m
        hint = f"; labels look 1-based: pass y_true - 1, or labels=range(1, {m + 1})"
        raise ValueError(
            f"y_true row {found.row} is {int(found.value)}, expected 0..{m - 1} ({found.count} of "
            f"{n} rows are outside){hint if one_based else '; pass labels= to name the columns'}"
        )
