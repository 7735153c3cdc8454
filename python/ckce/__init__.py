"""Conditional kernel calibration error (CKCE): compare classifiers by calibration."""

import importlib as _importlib
import typing as _typing

from ckce._bandwidth import median_bandwidth
from ckce._config import show_config
from ckce._ece import EceEstimate, ece, ece_estimate
from ckce._estimate import Estimate
from ckce._frequencies import fourier_frequencies
from ckce._jkce import JkceEstimate, jkce, jkce_estimate
from ckce._metrics import ckce, estimate
from ckce._scores import BrierDecomposition, accuracy, brier, brier_decomposition, log_loss

if _typing.TYPE_CHECKING:
    from ckce._calibration_test import CalibrationTest, calibration_test
    from ckce._compare import compare
    from ckce._comparison import ComparedModel, ComparedPair, Comparison, GuardRail
    from ckce._evaluate import Evaluation, evaluate
    from ckce._reliability import (
        CalibrationDisplay,
        ReliabilityCurve,
        ReliabilityDiagram,
        reliability_diagram,
    )
    from ckce._report import Report, report
    from ckce._scan import Scan, scan
    from ckce._sensitivity import Sensitivity
    from ckce._shift import ShiftCurve, ShiftPoint, shift_curve
    from ckce._stream_evaluation import StreamEvaluation
    from ckce._streaming import CKCEAccumulator

__version__ = "0.1.0"

__all__ = [
    "BrierDecomposition",
    "CKCEAccumulator",
    "CalibrationDisplay",
    "CalibrationTest",
    "ComparedModel",
    "ComparedPair",
    "Comparison",
    "EceEstimate",
    "Estimate",
    "Evaluation",
    "GuardRail",
    "JkceEstimate",
    "ReliabilityCurve",
    "ReliabilityDiagram",
    "Report",
    "Scan",
    "Sensitivity",
    "ShiftCurve",
    "ShiftPoint",
    "StreamEvaluation",
    "accuracy",
    "brier",
    "brier_decomposition",
    "calibration_test",
    "ckce",
    "compare",
    "ece",
    "ece_estimate",
    "estimate",
    "evaluate",
    "fourier_frequencies",
    "jkce",
    "jkce_estimate",
    "log_loss",
    "median_bandwidth",
    "reliability_diagram",
    "report",
    "scan",
    "shift_curve",
    "show_config",
]

# Imported when they are asked for: importing ckce is to cost little more than importing NumPy.
_LATER = {
    "CKCEAccumulator": "_streaming",
    "CalibrationDisplay": "_reliability",
    "CalibrationTest": "_calibration_test",
    "ComparedModel": "_comparison",
    "ComparedPair": "_comparison",
    "Comparison": "_comparison",
    "Evaluation": "_evaluate",
    "GuardRail": "_comparison",
    "ReliabilityCurve": "_reliability",
    "ReliabilityDiagram": "_reliability",
    "Report": "_report",
    "Scan": "_scan",
    "Sensitivity": "_sensitivity",
    "ShiftCurve": "_shift",
    "ShiftPoint": "_shift",
    "StreamEvaluation": "_stream_evaluation",
    "calibration_test": "_calibration_test",
    "compare": "_compare",
    "evaluate": "_evaluate",
    "reliability_diagram": "_reliability",
    "report": "_report",
    "scan": "_scan",
    "shift_curve": "_shift",
}


def __getattr__(name: str) -> _typing.Any:
    if name not in _LATER:
        raise AttributeError(f"module 'ckce' has no attribute {name!r}")
    value = getattr(_importlib.import_module(f"ckce.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
