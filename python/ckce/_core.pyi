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
def jkce_exact(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    kernel: str,
    bandwidth: float,
    n_threads: int,
    progress: Progress,
    /,
) -> tuple[float, float]: ...
def jkce_gram(
    gram: Doubles,
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    /,
) -> tuple[float, float]: ...
def jkce_fourier(
    probs: Probs,
    labels: Labels,
    weights: Doubles | None,
    label_factor: Doubles | None,
    frequencies: Doubles,
    linear_part: bool,
    n_threads: int,
    progress: Progress,
    /,
) -> tuple[float, float]: ...
