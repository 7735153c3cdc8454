"""What will be computed: data, method, kernel, bandwidth and lambda, settled and named.

May touch the methods and the input room.
"""

from ckce._problem.bandwidth import (
    FEW_CLASSES,
    MEDIAN_ROWS,
    NONE,
    Bandwidth,
    check_bandwidth_option,
    default_bandwidth,
    median_of,
)
from ckce._problem.label_kernel import check_label_kernel
from ckce._problem.problem import (
    Problem,
    Settings,
    check_settings,
    problem_of,
    settle,
)
from ckce._problem.progress import Progress, part, progress_bar
from ckce._problem.reduction import (
    ClassWise,
    Reduction,
    ReductionLike,
    Single,
    TopK,
    TopLabel,
    check_reduction,
    check_single,
    one_vs_rest,
    read_reduction,
    reduce_samples,
    top_label,
)
from ckce._problem.regularization import (
    Regularization,
    check_regularization,
    choose_by_loo,
    default_regularization,
)
from ckce._problem.signature import Signature
