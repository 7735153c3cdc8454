"""Results as plain numbers: for JSON and for pandas."""

import importlib
import math
from collections.abc import Mapping
from typing import Any


def finite(record: Mapping[str, Any]) -> dict[str, Any]:
    """The same with None in place of what is not finite, which JSON has no word for."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in record.items()
    }


def load_pandas() -> Any:
    """The module pandas, for `to_frame`."""
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None
