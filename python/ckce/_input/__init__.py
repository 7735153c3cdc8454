"""What a user passes becomes checked data, once: nothing behind this room checks again.

Start with samples.py. May touch the compiled core only.
"""

from ckce._input.arrays import LARGEST_WEIGHT, LEAST_WEIGHT, as_classes, check_rows
from ckce._input.choices import ORDERS, Choices, join_choices
from ckce._input.files import is_standard_output, write_file
from ckce._input.groups import LEAST_GROUPS
from ckce._input.kernels import Kernel, KernelLike, check_kernel, check_named_kernel
from ckce._input.memory import KEPT_FREE, SMALL, available_memory, check_memory
from ckce._input.options import (
    check_bandwidth,
    check_bool,
    check_choice,
    check_classifier,
    check_count,
    check_level,
    check_matrix,
    check_positive,
    check_seed,
    check_threads,
    digest,
)
from ckce._input.samples import (
    INPUTS,
    Samples,
    check_input,
    check_probs,
    check_samples,
    raise_for,
    warn_of_scale,
)
from ckce._input.segments import Partition, check_segments, take_column
from ckce._input.top_k_predictions import TopKPredictions, join_top_k, rank_names, rest_of
from ckce._input.words import (
    InputError,
    InputTypeError,
    entries_are,
    listed,
    nearest,
    printable,
    shown,
    warn,
    when_made,
    within,
)
