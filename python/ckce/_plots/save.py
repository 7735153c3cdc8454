"""Pictures as bytes of a file."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any

# Without the time of the day: the same picture gives the same bytes.
_DATES: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def picture(draw: Callable[[], Any], kind: str) -> bytes:
    """What `draw` draws, as a png, svg or pdf file; nothing is shown."""
    os.environ.setdefault("MPLBACKEND", "agg")
    axes = draw()
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    axes.figure.savefig(buffer, format=kind, dpi=200, metadata=_DATES.get(kind))
    plt.close(axes.figure)
    return buffer.getvalue()
