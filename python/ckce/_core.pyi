from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Probs = NDArray[np.floating]
Labels = NDArray[np.int64]
Progress = Callable[[float], None] | None

LEVEL: str
FACTORISATION_LIMIT: int

class Offence:
    count: int
    row: int
    column: int
    value: float

class Report:
    not_finite: Offence
    negative: Offence
    above_one: Offence
    bad_sum: Offence
    bad_label: Offence
    smallest_label: int
    largest_label: int

class Solution:
    value: float
    bound: float
    debias: float
    floor: float
    influence: Doubles
    per_class: Doubles
    iterations: int
    rank: int
    debias_rank: int
    debias_error: float

def validate(probs: Probs, labels: Labels, sum_tolerance: float, n_threads: int, /) -> Report: ...
def median_distance(
    probs: Sequence[Probs],
    weights: Sequence[Doubles | None],
    l1: bool,
    seed: int,
    n_threads: int,
    /,
) -> tuple[float, float]: ...
def class_wise_median_distance(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    l1: bool,
    seed: int,
    n_threads: int,
    /,
) -> tuple[float, float]: ...
def draw_frequencies(
    sampler: str, cauchy: bool, n_frequencies: int, m: int, seed: int, /
) -> Doubles: ...
def ckce_exact(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    kernel: str,
    bandwidth: float,
    ridge: float,
    tol: float,
    full: bool,
    iterate: bool,
    n_threads: int,
    progress: Progress,
    /,
) -> Solution: ...
def ckce_gram(
    gram: Doubles,
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    ridge: float,
    full: bool,
    n_threads: int,
    progress: Progress,
    /,
) -> Solution: ...
def ckce_fourier(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    frequencies: Doubles,
    linear_part: bool,
    mixed: bool,
    ridge: float,
    full: bool,
    n_threads: int,
    progress: Progress,
    /,
) -> Solution: ...
def ckce_cholesky(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    kernel: str,
    bandwidth: float,
    rank: int,
    tol: float,
    random_pivots: bool,
    seed: int,
    ridge: float,
    full: bool,
    n_threads: int,
    progress: Progress,
    /,
) -> Solution: ...

class JkceSums:
    off_diagonal: float
    diagonal: float
    rank: int
    rows: Doubles

def jkce_exact(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    kernel: str,
    bandwidth: float,
    full: bool,
    n_threads: int,
    progress: Progress,
    /,
) -> JkceSums: ...
def jkce_gram(
    gram: Doubles,
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    full: bool,
    /,
) -> JkceSums: ...
def jkce_fourier(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    frequencies: Doubles,
    linear_part: bool,
    full: bool,
    n_threads: int,
    progress: Progress,
    /,
) -> JkceSums: ...
def jkce_cholesky(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    kernel: str,
    bandwidth: float,
    rank: int,
    tol: float,
    random_pivots: bool,
    seed: int,
    full: bool,
    n_threads: int,
    progress: Progress,
    /,
) -> JkceSums: ...
def jkce_blocks(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    kernel: str,
    bandwidth: float,
    block_size: int,
    n_threads: int,
    progress: Progress,
    /,
) -> Doubles: ...

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
    class_wise: bool,
    quantile: bool,
    n_bins: int,
    sum_tolerance: float,
    n_threads: int,
    /,
) -> ScalarBins: ...
def ece_simplex(
    probs: Probs, labels: Labels, weights: Doubles | None, n_bins: int, n_threads: int, /
) -> SimplexBins: ...
def scores(probs: Probs, labels: Labels, weights: Doubles | None, n_threads: int, /) -> Scores: ...
def resample_fourier(
    probs: Probs,
    labels: Labels,
    frequencies: Doubles,
    linear_part: bool,
    ridge: float,
    n_resamples: int,
    seed: int,
    table: int,
    n_threads: int,
    progress: Progress,
    /,
) -> Doubles: ...
def resample_cholesky(
    probs: Probs,
    labels: Labels,
    kernel: str,
    bandwidth: float,
    rank: int,
    tol: float,
    random_pivots: bool,
    pivot_seed: int,
    ridge: float,
    n_resamples: int,
    seed: int,
    table: int,
    n_threads: int,
    progress: Progress,
    /,
) -> tuple[Doubles, int]: ...
def loo_fourier(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    frequencies: Doubles,
    linear_part: bool,
    ridges: list[float],
    n_threads: int,
    /,
) -> Doubles: ...
def loo_cholesky(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    kernel: str,
    bandwidth: float,
    rank: int,
    tol: float,
    seed: int,
    ridges: list[float],
    n_threads: int,
    /,
) -> Doubles: ...

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

class Accumulator:
    def update(
        self, probs: Probs, labels: Labels, weights: Doubles | None, n_threads: int, /
    ) -> None: ...
    def merge(self, other: AccumulatorState, n_threads: int, /) -> None: ...
    def merge_arrays(
        self,
        sums: Doubles,
        tail_probs: Doubles,
        tail_labels: Labels,
        tail_weights: Doubles | None,
        n_threads: int,
        /,
    ) -> None: ...
    def state(self) -> AccumulatorState: ...
    def settled(self) -> Doubles: ...
    def rows(self) -> int: ...
    def solve(
        self, regularization: float | None, full: bool, n_threads: int, /
    ) -> AccumulatorResult: ...

def chebyshev_factor(frequencies: Doubles, /) -> Doubles: ...
def fourier_accumulator(
    frequencies: Doubles,
    chebyshev: Doubles,
    linear_part: bool,
    label_factor: Doubles | None,
    scattered: bool,
    debias: bool,
    n_bins: int,
    /,
) -> Accumulator: ...
def choose_landmarks(
    sample: Probs, kernel: str, bandwidth: float, count: int, seed: int, n_threads: int, /
) -> list[int]: ...
def landmark_factor(
    landmarks: Doubles, kernel: str, bandwidth: float, n_threads: int, /
) -> tuple[Doubles, list[int]]: ...
def landmark_accumulator(
    landmarks: Doubles,
    factor: Doubles,
    kernel: str,
    bandwidth: float,
    label_factor: Doubles | None,
    scattered: bool,
    debias: bool,
    n_bins: int,
    /,
) -> Accumulator: ...
def linear_accumulator(
    n_classes: int,
    label_factor: Doubles | None,
    scattered: bool,
    debias: bool,
    n_bins: int,
    /,
) -> Accumulator: ...
