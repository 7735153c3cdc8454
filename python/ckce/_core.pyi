"""The compiled border: data come first, by position; everything else by name."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Probs = NDArray[np.floating]
Labels = NDArray[np.int64]
Progress = Callable[[float], None] | None

LEVEL: str
BUILT: list[str]
FACTORISATION_LIMIT: int
THREAD_DOUBLES: int
LEAST_BANDWIDTH: float

# Words of the border.

class Norm:
    l1: ClassVar[Norm]
    l2: ClassVar[Norm]

class Counted:
    all: ClassVar[Counted]
    apart: ClassVar[Counted]

class Spectrum:
    gaussian: ClassVar[Spectrum]
    cauchy: ClassVar[Spectrum]

class Pivoting:
    greedy: ClassVar[Pivoting]
    random: ClassVar[Pivoting]

class Precision:
    float64: ClassVar[Precision]
    mixed: ClassVar[Precision]

class Solver:
    factorise: ClassVar[Solver]
    iterate: ClassVar[Solver]
    blocks: ClassVar[Solver]

class Variant:
    top_label: ClassVar[Variant]
    class_wise: ClassVar[Variant]

class Strategy:
    uniform: ClassVar[Strategy]
    quantile: ClassVar[Strategy]

# Before an estimate: the check of the numbers, the median distance, the frequencies.

class Offence:
    count: int
    row: int
    column: int
    value: float

class Report:
    clean: bool
    not_finite: Offence
    negative: Offence
    above_one: Offence
    bad_sum: Offence
    bad_label: Offence
    smallest_label: int
    largest_label: int

def validate(probs: Probs, labels: Labels, *, sum_tolerance: float, n_threads: int) -> Report: ...
def top_k(
    probs: Probs, labels: Labels, *, k: int, sum_tolerance: float, n_threads: int
) -> tuple[Doubles, Labels, Report]: ...
def median_distance(
    probs: Sequence[Probs],
    weights: Sequence[Doubles | None],
    *,
    norm: Norm,
    counted: Counted,
    seed: int,
    n_threads: int,
) -> tuple[float, float]: ...
def class_wise_median_distance(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    *,
    norm: Norm,
    counted: Counted,
    seed: int,
    n_threads: int,
) -> tuple[float, float]: ...
def draw_frequencies(
    *, sampler: str, spectrum: Spectrum, n_frequencies: int, n_classes: int, seed: int
) -> Doubles: ...

# What the metrics are computed with.

class Kernel:
    def __init__(self, name: str, bandwidth: float) -> None: ...

class Features:
    """A feature map of one of the four kinds below; every metric takes one."""

    @property
    def n_features(self) -> int: ...

def linear_features(n_classes: int) -> Features: ...
def fourier_features(
    frequencies: Doubles, *, linear_part: bool, chebyshev: Doubles | None = None
) -> Features: ...
def landmark_features(points: Doubles, factor: Doubles, *, kernel: Kernel) -> Features: ...
def cholesky_features(
    probs: Probs,
    *,
    kernel: Kernel,
    rank: int,
    tol: float,
    pivoting: Pivoting,
    seed: int,
    n_threads: int,
    progress: Progress,
) -> Features:
    """Features of these rows only."""

def chebyshev_factor(frequencies: Doubles) -> Doubles: ...
def choose_landmarks(
    sample: Probs,
    *,
    kernel: Kernel,
    count: int,
    tol: float,
    pivoting: Pivoting,
    seed: int,
    n_threads: int,
) -> list[int]: ...
def landmark_factor(
    points: Doubles, *, kernel: Kernel, n_threads: int
) -> tuple[Doubles, list[int]]: ...

# Two models at equal predictions.

def power_features(n_classes: int) -> Features: ...
def joined_features(parts: Sequence[Features]) -> Features: ...

class GroundSums:
    weight: float
    xx: Doubles
    xr: Doubles
    diagonal: Doubles

    def __init__(self, *, weight: float, xx: Doubles, xr: Doubles, diagonal: Doubles) -> None: ...
    def add(self, other: GroundSums) -> None: ...

class Balance:
    def __init__(self, *, columns: int, norm: int, regularization: float, eps: float) -> None: ...

class Ground:
    value_a: float
    value_b: float
    share: float

class GroundSpread:
    influence: Doubles

    def add(self, other: GroundSpread) -> None: ...
    def largest(self, weight: float) -> float: ...

def ground_sums(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    groups: Labels | None = None,
    features: Features,
    n_threads: int,
    progress: Progress,
) -> GroundSums: ...
def common_ground(
    *, sums_a: GroundSums, sums_b: GroundSums, balances: Sequence[Balance], n_threads: int
) -> list[Ground]: ...
def own_ground(
    *,
    sums_a: GroundSums,
    sums_b: GroundSums,
    norm: int,
    regularization: float,
    n_threads: int,
) -> Ground: ...
def ground_spread(
    probs_a: Probs,
    labels_a: Labels,
    probs_b: Probs,
    labels_b: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    groups: Labels | None = None,
    features: Features,
    grounds: Sequence[Ground],
    n_threads: int,
    progress: Progress,
) -> list[GroundSpread]: ...

# CKCE.

class Solution:
    value: float
    bound: float
    debias: float
    floor: float
    influence: Doubles
    per_class: Doubles
    replicates: Doubles
    iterations: int
    debias_rank: int
    debias_error: float

def ckce_exact(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    groups: Labels | None = None,
    kernel: Kernel,
    ridge: float,
    tol: float,
    solver: Solver,
    full: bool,
    n_threads: int,
    progress: Progress,
) -> Solution: ...
def gradient_exact(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    kernel: Kernel,
    ridge: float,
    tol: float,
    solver: Solver,
    debias: bool,
    through_kernel: bool,
    n_threads: int,
    progress: Progress,
) -> tuple[float, Doubles]: ...
def gradient_features(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    features: Features,
    ridge: float,
    debias: bool,
    through_kernel: bool,
    n_threads: int,
    progress: Progress,
) -> tuple[float, Doubles]: ...
def ckce_gram(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    groups: Labels | None = None,
    gram: Doubles,
    ridge: float,
    full: bool,
    n_threads: int,
    progress: Progress,
) -> Solution: ...
def ckce_features(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    groups: Labels | None = None,
    features: Features,
    ridge: float,
    precision: Precision,
    full: bool,
    n_threads: int,
    progress: Progress,
) -> Solution: ...

# JKCE.

class JkceSums:
    off_diagonal: float
    diagonal: float
    rows: Doubles

def jkce_exact(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    groups: Labels | None = None,
    kernel: Kernel,
    full: bool,
    n_threads: int,
    progress: Progress,
) -> JkceSums: ...
def jkce_gram(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    groups: Labels | None = None,
    gram: Doubles,
    full: bool,
) -> JkceSums: ...
def jkce_features(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    groups: Labels | None = None,
    features: Features,
    full: bool,
    n_threads: int,
    progress: Progress,
) -> JkceSums: ...
def jkce_blocks(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    kernel: Kernel,
    block_size: int,
    n_threads: int,
    progress: Progress,
) -> Doubles: ...

# The calibration test and leave-one-out.

def resample_features(
    probs: Probs,
    labels: Labels,
    *,
    features: Features,
    ridge: float,
    n_resamples: int,
    seed: int,
    table: int,
    n_threads: int,
    progress: Progress,
) -> Doubles: ...
def ckce_two_classes(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    groups: Labels | None = None,
    kernel: Kernel,
    ridge: float,
    full: bool,
    n_threads: int,
    progress: Progress,
) -> Solution: ...
def jkce_two_classes(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    groups: Labels | None = None,
    kernel: Kernel,
    full: bool,
    n_threads: int,
    progress: Progress,
) -> JkceSums: ...
def resample_two_classes(
    probs: Probs,
    labels: Labels,
    *,
    kernel: Kernel,
    ridge: float,
    n_resamples: int,
    seed: int,
    table: int,
    n_threads: int,
    progress: Progress,
) -> Doubles: ...
def own_witness_two_classes(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    *,
    kernel: Kernel,
    ridge: float,
    n_threads: int,
    progress: Progress,
) -> Doubles: ...
def price_two_classes(*, kernel: Kernel, n: float, full: bool) -> float: ...
def price_resamples(*, kernel: Kernel, n: float, n_resamples: float, table: float) -> float: ...
def loo_features(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    *,
    features: Features,
    ridges: list[float],
    n_threads: int,
) -> Doubles: ...

# Where a model is off, and by how much.

class Miscalibration:
    value: float
    influence: Doubles
    regularization: float
    df: float
    null_sd: float
    coefficients: Doubles
    fit: Doubles

def miscalibration(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    *,
    groups: Labels | None = None,
    features: Features,
    n_threads: int,
    progress: Progress,
) -> Miscalibration: ...
def correction(
    probs: Probs, *, features: Features, coefficients: Doubles, fit: Doubles, n_threads: int
) -> Doubles: ...
def own_correction(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    *,
    features: Features,
    found: Miscalibration,
    n_threads: int,
) -> Doubles: ...
def correction_errors(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    *,
    groups: Labels | None = None,
    features: Features,
    found: Miscalibration,
    at: Probs,
    first: int,
    classes: int,
    draws: int,
    seed: int,
    n_threads: int,
    progress: Progress,
) -> tuple[Doubles, Doubles, Doubles, Doubles]: ...
def witness_features(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    *,
    features: Features,
    ridge: float,
    own: bool,
    n_threads: int,
    progress: Progress,
) -> Doubles: ...
def witness_exact(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    *,
    kernel: Kernel,
    ridge: float,
    solver: Solver,
    n_threads: int,
    progress: Progress,
) -> Doubles: ...
def own_witness_exact(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    *,
    kernel: Kernel,
    ridge: float,
    n_threads: int,
    progress: Progress,
) -> Doubles: ...
def kernel_sums(
    at: Probs, points: Probs, v: Doubles, *, kernel: Kernel, n_threads: int
) -> Doubles: ...

# ECE and scores.

class Gaps:
    l1: float
    l2_squared: float
    max: float
    refinement: float
    debias: float

class ScalarBins:
    gaps: list[Gaps]
    report: Report
    edges: Doubles
    weight: Doubles
    prob: Doubles
    hits: Doubles
    count: Doubles

class SimplexBins:
    gaps: Gaps
    counts: NDArray[np.int64]

class SmoothEce:
    value: float
    bandwidth: float
    at_ends: float

class Scores:
    weight: float
    hits: float
    confidence: float
    brier: float
    log_loss: float
    sharpness: float
    residual: Doubles
    labels: Doubles

def ece_scalar(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    *,
    variant: Variant,
    strategy: Strategy,
    n_bins: int,
    sum_tolerance: float,
    n_threads: int,
) -> ScalarBins: ...
def ece_simplex(
    probs: Probs, labels: Labels, weights: Doubles | None, *, n_bins: int, n_threads: int
) -> SimplexBins: ...
def smooth_ece(
    probs: Probs, labels: Labels, weights: Doubles | None, *, n_threads: int
) -> SmoothEce: ...
def scores(probs: Probs, labels: Labels, weights: Doubles | None, *, n_threads: int) -> Scores: ...

# Data that come in batches.

class AccumulatorState:
    sums: Doubles
    tail_probs: Doubles
    tail_labels: Labels
    tail_weights: Doubles

class AccumulatorResult:
    rows: int
    scores: Scores
    bins: Doubles
    regularization: float
    solution: Solution
    missing: float
    off_diagonal: float
    diagonal: float
    influence_square: float
    rows_square: float

class Accumulator:
    def __init__(
        self,
        features: Features,
        *,
        n_classes: int,
        label_factor: Doubles | None,
        scattered: bool,
        debias: bool,
        n_bins: int,
        predicted: int | None,
    ) -> None: ...
    def update(
        self, probs: Probs, labels: Labels, weights: Doubles | None, *, n_threads: int
    ) -> None: ...
    def merge(self, other: AccumulatorState, *, n_threads: int) -> None: ...
    def merge_arrays(
        self,
        sums: Doubles,
        tail_probs: Doubles,
        tail_labels: Labels,
        tail_weights: Doubles | None,
        *,
        n_threads: int,
    ) -> None: ...
    def state(self) -> AccumulatorState: ...
    def settled(self) -> Doubles: ...
    def rows(self) -> int: ...
    def witness(self, *, regularization: float | None, n_threads: int) -> Doubles: ...
    def solve(
        self, *, regularization: float | None, full: bool, n_threads: int
    ) -> AccumulatorResult: ...

class CellState:
    sums: Doubles
    cells: tuple[Labels, Labels, Doubles]
    tail_probs: Doubles
    tail_labels: Labels
    tail_weights: Doubles

class CellAccumulator:
    n_cells: float
    nodes: int
    def __init__(
        self,
        *,
        bandwidth: float,
        linear_part: bool,
        label_factor: Doubles | None,
        n_bins: int,
        predicted: int | None,
    ) -> None: ...
    def update(
        self, probs: Probs, labels: Labels, weights: Doubles | None, *, n_threads: int
    ) -> None: ...
    def merge(self, other: CellState, *, n_threads: int) -> None: ...
    def merge_arrays(
        self,
        sums: Doubles,
        ids: Labels,
        points: Labels,
        numbers: Doubles,
        tail_probs: Doubles,
        tail_labels: Labels,
        tail_weights: Doubles | None,
        *,
        n_threads: int,
    ) -> None: ...
    def merge_dense(self, sums: Doubles, *, n_threads: int) -> None: ...
    def state(self) -> CellState: ...
    def settled(self) -> Doubles: ...
    def state_price(self) -> float: ...
    def solve_price(self) -> float: ...
    def rows(self) -> int: ...
    def witness(self, *, regularization: float | None, n_threads: int) -> Doubles: ...
    def solve(self, *, regularization: float | None, n_threads: int) -> AccumulatorResult: ...
