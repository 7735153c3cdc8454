# The public names, for type checkers; `_ROOMS` in __init__.py loads them.
from ckce._compare.brier_split import BrierSplit as BrierSplit
from ckce._compare.common_ground import common_ground as common_ground
from ckce._compare.compare import (
    compare as compare,
)
from ckce._compare.comparison import (
    ComparedModel as ComparedModel,
)
from ckce._compare.comparison import (
    Comparison as Comparison,
)
from ckce._compare.comparison import (
    GuardRail as GuardRail,
)
from ckce._compare.curve import (
    ShiftCurve as ShiftCurve,
)
from ckce._compare.curve import (
    ShiftPoint as ShiftPoint,
)
from ckce._compare.ground_stream import GroundAccumulator as GroundAccumulator
from ckce._compare.sensitivity import (
    Sensitivity as Sensitivity,
)
from ckce._compare.shift import (
    shift_curve as shift_curve,
)
from ckce._compare.verdict import (
    CommonGround as CommonGround,
)
from ckce._config import (
    show_config as show_config,
)
from ckce._input.choices import (
    Choices as Choices,
)
from ckce._input.token_logits import (
    next_tokens as next_tokens,
)
from ckce._input.top_k_predictions import (
    TopKPredictions as TopKPredictions,
)
from ckce._methods.blocks import (
    Blocks as Blocks,
)
from ckce._methods.cholesky import (
    Cholesky as Cholesky,
)
from ckce._methods.exact import (
    Exact as Exact,
)
from ckce._methods.fourier import (
    Fourier as Fourier,
)
from ckce._methods.fourier import (
    fourier_frequencies as fourier_frequencies,
)
from ckce._methods.landmarks import (
    Landmarks as Landmarks,
)
from ckce._metrics.calibration_test import (
    CalibrationTest as CalibrationTest,
)
from ckce._metrics.calibration_test import (
    calibration_test as calibration_test,
)
from ckce._metrics.ckce import (
    ckce as ckce,
)
from ckce._metrics.ece import (
    EceEstimate as EceEstimate,
)
from ckce._metrics.ece import (
    ece as ece,
)
from ckce._metrics.ece import (
    ece_estimate as ece_estimate,
)
from ckce._metrics.estimate import (
    Estimate as Estimate,
)
from ckce._metrics.estimate import (
    estimate as estimate,
)
from ckce._metrics.evaluate import (
    Evaluation as Evaluation,
)
from ckce._metrics.evaluate import (
    evaluate as evaluate,
)
from ckce._metrics.gradient import (
    gradient as gradient,
)
from ckce._metrics.jkce import (
    JkceEstimate as JkceEstimate,
)
from ckce._metrics.jkce import (
    jkce as jkce,
)
from ckce._metrics.jkce import (
    jkce_estimate as jkce_estimate,
)
from ckce._metrics.miscalibration import (
    Miscalibration as Miscalibration,
)
from ckce._metrics.miscalibration import (
    miscalibration as miscalibration,
)
from ckce._metrics.regions import (
    Region as Region,
)
from ckce._metrics.scores import (
    BrierDecomposition as BrierDecomposition,
)
from ckce._metrics.scores import (
    accuracy as accuracy,
)
from ckce._metrics.scores import (
    brier as brier,
)
from ckce._metrics.scores import (
    brier_decomposition as brier_decomposition,
)
from ckce._metrics.scores import (
    log_loss as log_loss,
)
from ckce._metrics.segments import (
    Segment as Segment,
)
from ckce._metrics.segments import (
    Segments as Segments,
)
from ckce._metrics.smooth_ece import (
    smooth_ece as smooth_ece,
)
from ckce._metrics.views import (
    CorrectionArrows as CorrectionArrows,
)
from ckce._metrics.views import (
    CorrectionCurve as CorrectionCurve,
)
from ckce._metrics.views import (
    Where as Where,
)
from ckce._metrics.witness import (
    Correction as Correction,
)
from ckce._metrics.witness import (
    Witness as Witness,
)
from ckce._metrics.witness import (
    witness as witness,
)
from ckce._problem.bandwidth import (
    median_bandwidth as median_bandwidth,
)
from ckce._problem.reduction import (
    TopK as TopK,
)
from ckce._reliability.diagram import (
    ReliabilityCurve as ReliabilityCurve,
)
from ckce._reliability.diagram import (
    ReliabilityDiagram as ReliabilityDiagram,
)
from ckce._reliability.diagram import (
    reliability_diagram as reliability_diagram,
)
from ckce._reliability.display import (
    CalibrationDisplay as CalibrationDisplay,
)
from ckce._report.report import (
    Report as Report,
)
from ckce._report.report import (
    report as report,
)
from ckce._scan.join import (
    JoinedLogs as JoinedLogs,
)
from ckce._scan.join import (
    join_logs as join_logs,
)
from ckce._scan.log import (
    Log as Log,
)
from ckce._scan.read_log import (
    read_log as read_log,
)
from ckce._scan.scan import (
    Scan as Scan,
)
from ckce._scan.scan import (
    scan as scan,
)
from ckce._stream.accumulator import (
    CKCEAccumulator as CKCEAccumulator,
)
from ckce._stream.evaluation import (
    StreamEvaluation as StreamEvaluation,
)

__version__: str
__all__: list[str]
