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


def __getattr__(name: str) -> _typing.Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'ckce' has no attribute {name!r}")
    value = getattr(_importlib.import_module(f"ckce.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
