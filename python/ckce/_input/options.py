"""Options: each is checked once, where it belongs."""

import math
import numbers
import os
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input.arrays import as_array
from ckce._input.words import shown


def check_choice(name: str, value: object, choices: Collection[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {list(choices)}, got {shown(value)}")
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {shown(value)}")
    return value


def check_positive(
    name: str, value: object, low: float = 0.0, high: float = math.inf, why: str = ""
) -> float:
    """A finite number above zero, from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    number = _as_float(value)
    if not (math.isfinite(number) and number > 0.0):
        raise ValueError(f"{name} must be positive and finite, got {shown(value)}")
    if number < low:
        raise ValueError(f"{name} must be at least {low:g}, got {shown(value)}{why}")
    if number > high:
        raise ValueError(f"{name} must be at most {high:g}, got {shown(value)}{why}")
    return number


def _as_float(value: numbers.Real) -> float:
    """The number; integers beyond every float are infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_bandwidth(value: object) -> float:
    """A bandwidth; its square and the square's inverse are numbers, too."""
    return check_positive("bandwidth", value, 1e-100, 1e100)


def check_count(name: str, value: object) -> int:
    """An integer of at least one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {shown(value)}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {shown(value)}")
    if int(value) >= 2**63:  # no machine counts so far
        raise ValueError(f"{name} must be below 2**63, got {shown(value)}")
    return int(value)


def check_seed(value: object) -> int:
    """A seed of the project's own generator."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"random_state must be an integer, got {shown(value)}; the streams of numpy generators are "
            "not stable over versions, so they are not taken"
        )
    if not 0 <= int(value) < 2**64:
        raise ValueError(f"random_state must be in [0, 2**64), got {shown(value)}")
    return int(value)


def check_level(value: object) -> float:
    """Level of an interval."""
    number = _as_float(value) if isinstance(value, numbers.Real) else math.nan  # True is 1
    if not 0.0 < number < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {shown(value)}")
    return number


def check_bool(name: str, value: object) -> bool:
    """True or False, not something truthy."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def check_matrix(
    name: str, value: Any, shape: tuple[int | None, int | None]
) -> NDArray[np.float64]:
    """A finite float64 matrix of the given shape, Fortran-ordered for the core."""
    if hasattr(value, "columns"):
        raise TypeError(
            f"{name} must be an array, got a {type(value).__name__}; pass .to_numpy() once rows and "
            "columns are in the order of the classes"
        )
    array = as_array(name, value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    expected = tuple("any" if size is None else size for size in shape)
    if array.ndim != 2 or any(e not in (None, s) for e, s in zip(shape, array.shape, strict=True)):
        raise ValueError(f"{name} must have shape {expected}, got {array.shape}")
    if array.size == 0:
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


def digest(array: NDArray[Any]) -> str:
    """Name of an array in a signature."""
    import hashlib  # 4 ms that importing ckce should not cost

    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]


def check_threads(value: object) -> int:
    """`n_threads`, else CKCE_NUM_THREADS, else the CPUs this process may use."""
    name = "n_threads"
    if value is None:
        value, name = os.environ.get("CKCE_NUM_THREADS"), "CKCE_NUM_THREADS"
    if value is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if type(value) is int and 1 <= value <= 1024:
        return value
    text = value if isinstance(value, str) else shown(value)
    if isinstance(value, bool) or not text.isdigit() or not 1 <= int(text) <= 1024:
        raise ValueError(f"{name} must be an integer from 1 to 1024, got {shown(value)}")
    return int(text)
