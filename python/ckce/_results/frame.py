"""Results for pandas."""

import importlib
from typing import Any


def load_pandas() -> Any:
    """The module pandas, for `to_frame`."""
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None
