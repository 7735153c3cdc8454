"""Conditional kernel calibration error (CKCE): compare classifiers by calibration."""

import importlib as _importlib
import typing as _typing

__version__ = "0.1.0"

# Every public name and its room, which is imported when the name is first asked for.
_ROOMS = {
    "_compare.brier_split": ("BrierSplit",),
    "_compare.common_ground": ("common_ground",),
    "_compare.compare": ("compare",),
    "_compare.comparison": ("ComparedModel", "Comparison", "GuardRail"),
    "_compare.curve": ("ShiftCurve", "ShiftPoint"),
    "_compare.ground_stream": ("GroundAccumulator",),
    "_compare.sensitivity": ("Sensitivity",),
    "_compare.shift": ("shift_curve",),
    "_compare.verdict": ("CommonGround",),
    "_config": ("show_config",),
    "_input.choices": ("Choices",),
    "_input.token_logits": ("next_tokens",),
    "_input.top_k_predictions": ("TopKPredictions",),
    "_methods.blocks": ("Blocks",),
    "_methods.cholesky": ("Cholesky",),
    "_methods.exact": ("Exact",),
    "_methods.fourier": ("Fourier", "fourier_frequencies"),
    "_methods.landmarks": ("Landmarks",),
    "_metrics.calibration_test": ("CalibrationTest", "calibration_test"),
    "_metrics.ckce": ("ckce",),
    "_metrics.ece": ("EceEstimate", "ece", "ece_estimate"),
    "_metrics.estimate": ("Estimate", "estimate"),
    "_metrics.evaluate": ("Evaluation", "evaluate"),
    "_metrics.gradient": ("gradient",),
    "_metrics.jkce": ("JkceEstimate", "jkce", "jkce_estimate"),
    "_metrics.miscalibration": ("Miscalibration", "miscalibration"),
    "_metrics.regions": ("Region",),
    "_metrics.scores": (
        "BrierDecomposition",
        "accuracy",
        "brier",
        "brier_decomposition",
        "log_loss",
    ),
    "_metrics.segments": ("Segment", "Segments"),
    "_metrics.views": ("CorrectionArrows", "CorrectionCurve", "Where"),
    "_metrics.smooth_ece": ("smooth_ece",),
    "_metrics.witness": ("Correction", "Witness", "witness"),
    "_problem.bandwidth": ("median_bandwidth",),
    "_problem.reduction": ("TopK",),
    "_reliability.diagram": ("ReliabilityCurve", "ReliabilityDiagram", "reliability_diagram"),
    "_reliability.display": ("CalibrationDisplay",),
    "_report.report": ("Report", "report"),
    "_scan.join": ("JoinedLogs", "join_logs"),
    "_scan.log": ("Log",),
    "_scan.read_log": ("read_log",),
    "_scan.scan": ("Scan", "scan"),
    "_stream.accumulator": ("CKCEAccumulator",),
    "_stream.evaluation": ("StreamEvaluation",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = sorted(_ROOM_OF)

if _typing.TYPE_CHECKING:
    # isort: off
    from ckce._compare.brier_split import BrierSplit as BrierSplit
    from ckce._compare.common_ground import common_ground as common_ground
    from ckce._compare.compare import compare as compare
    from ckce._compare.comparison import (
        ComparedModel as ComparedModel,
        Comparison as Comparison,
        GuardRail as GuardRail,
    )
    from ckce._compare.curve import ShiftCurve as ShiftCurve, ShiftPoint as ShiftPoint
    from ckce._compare.ground_stream import GroundAccumulator as GroundAccumulator
    from ckce._compare.sensitivity import Sensitivity as Sensitivity
    from ckce._compare.shift import shift_curve as shift_curve
    from ckce._compare.verdict import CommonGround as CommonGround
    from ckce._config import show_config as show_config
    from ckce._input.choices import Choices as Choices
    from ckce._input.token_logits import next_tokens as next_tokens
    from ckce._input.top_k_predictions import TopKPredictions as TopKPredictions
    from ckce._methods.blocks import Blocks as Blocks
    from ckce._methods.cholesky import Cholesky as Cholesky
    from ckce._methods.exact import Exact as Exact
    from ckce._methods.fourier import Fourier as Fourier, fourier_frequencies as fourier_frequencies
    from ckce._methods.landmarks import Landmarks as Landmarks
    from ckce._metrics.calibration_test import (
        CalibrationTest as CalibrationTest,
        calibration_test as calibration_test,
    )
    from ckce._metrics.ckce import ckce as ckce
    from ckce._metrics.ece import (
        EceEstimate as EceEstimate,
        ece as ece,
        ece_estimate as ece_estimate,
    )
    from ckce._metrics.estimate import Estimate as Estimate, estimate as estimate
    from ckce._metrics.evaluate import Evaluation as Evaluation, evaluate as evaluate
    from ckce._metrics.gradient import gradient as gradient
    from ckce._metrics.jkce import (
        JkceEstimate as JkceEstimate,
        jkce as jkce,
        jkce_estimate as jkce_estimate,
    )
    from ckce._metrics.miscalibration import (
        Miscalibration as Miscalibration,
        miscalibration as miscalibration,
    )
    from ckce._metrics.regions import Region as Region
    from ckce._metrics.scores import (
        BrierDecomposition as BrierDecomposition,
        accuracy as accuracy,
        brier as brier,
        brier_decomposition as brier_decomposition,
        log_loss as log_loss,
    )
    from ckce._metrics.segments import Segment as Segment, Segments as Segments
    from ckce._metrics.smooth_ece import smooth_ece as smooth_ece
    from ckce._metrics.views import (
        CorrectionArrows as CorrectionArrows,
        CorrectionCurve as CorrectionCurve,
        Where as Where,
    )
    from ckce._metrics.witness import (
        Correction as Correction,
        Witness as Witness,
        witness as witness,
    )
    from ckce._problem.bandwidth import median_bandwidth as median_bandwidth
    from ckce._problem.reduction import TopK as TopK
    from ckce._reliability.diagram import (
        ReliabilityCurve as ReliabilityCurve,
        ReliabilityDiagram as ReliabilityDiagram,
        reliability_diagram as reliability_diagram,
    )
    from ckce._reliability.display import CalibrationDisplay as CalibrationDisplay
    from ckce._report.report import Report as Report, report as report
    from ckce._scan.join import JoinedLogs as JoinedLogs, join_logs as join_logs
    from ckce._scan.log import Log as Log
    from ckce._scan.read_log import read_log as read_log
    from ckce._scan.scan import Scan as Scan, scan as scan
    from ckce._stream.accumulator import CKCEAccumulator as CKCEAccumulator
    from ckce._stream.evaluation import StreamEvaluation as StreamEvaluation
    # isort: on
else:

    def __getattr__(name: str) -> _typing.Any:
        if name not in _ROOM_OF:
            raise AttributeError(f"module 'ckce' has no attribute {name!r}")
        value = getattr(_importlib.import_module(f"ckce.{_ROOM_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
