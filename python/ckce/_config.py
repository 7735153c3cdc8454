"""What was chosen for this machine."""

import platform
import sys

import numpy as np

from ckce import _core
from ckce._input import check_threads


def show_config() -> None:
    """Print what ckce runs on: compiled core and the levels that were built, threads, versions.

    Examples
    --------
    >>> import ckce
    >>> ckce.show_config()  # doctest: +ELLIPSIS
    ckce     0.1.0
    core     ...
    threads  ...
    numpy    ...
    python   ...
    """
    from ckce import __version__

    print(f"ckce     {__version__}")
    print(f"core     {_core.LEVEL} of {', '.join(_core.BUILT)} (CKCE_LEVEL forces one)")
    print(f"threads  {check_threads(None)} (CKCE_NUM_THREADS or n_threads= sets them)")
    print(f"numpy    {np.__version__}")
    print(f"python   {sys.version.split()[0]} on {platform.system()} {platform.machine()}")
