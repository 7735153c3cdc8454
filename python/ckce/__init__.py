"""Conditional kernel calibration error (CKCE): compare classifiers by calibration."""

from ckce._bandwidth import median_bandwidth
from ckce._config import show_config
from ckce._estimate import Estimate
from ckce._frequencies import fourier_frequencies
from ckce._metrics import ckce, estimate, jkce

__version__ = "0.1.0"

__all__ = [
    "Estimate",
    "ckce",
    "estimate",
    "fourier_frequencies",
    "jkce",
    "median_bandwidth",
    "show_config",
]
