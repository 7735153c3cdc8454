"""The median heuristic."""

from collections.abc import Sequence
from typing import Any

from ckce import _core
from ckce._config import resolve_threads
from ckce._input.samples import Samples, check_bool, check_choice, check_probs, check_seed
from ckce._problem.kernels import KERNELS

MEDIAN_ROWS = 2000


def pooled_median(
    groups: Sequence[Samples], kernel: str, seed: int, n_threads: int
) -> tuple[float, str]:
    """Median of the within-group distances of all groups together, and how it was found."""
    median, positive = _core.median_distance(
        [group.probs for group in groups],
        [group.weights for group in groups],
        KERNELS[kernel].distance == "l1",
        seed,
        n_threads,
    )
    sampled = any(max(group.n, group.weight) > MEDIAN_ROWS for group in groups)
    return _choose(median, positive, sampled, seed)


def class_wise_median(
    samples: Samples, kernel: str, seed: int, n_threads: int
) -> tuple[float, str]:
    """Median of the distances in all one-vs-rest problems together, and how it was found."""
    median, positive = _core.class_wise_median_distance(
        samples.probs,
        samples.labels,
        samples.weights,
        KERNELS[kernel].distance == "l1",
        seed,
        n_threads,
    )
    return _choose(median, positive, max(samples.n, samples.weight) > MEDIAN_ROWS, seed)


def _choose(median: float, positive: float, sampled: bool, seed: int) -> tuple[float, str]:
    source = f",{MEDIAN_ROWS},s{seed}" if sampled else ""
    if median > 0.0:
        return median, f"median{source}"
    if positive > 0.0:
        return positive, f"median>0{source}"
    return 1.0, f"no distances{source}"


def median_bandwidth(
    y_prob: Any,
    *,
    kernel: str = "linear_gaussian",
    sample_weight: Any = None,
    random_state: int = 0,
    normalize: bool = False,
    from_logits: bool = False,
    n_threads: int | None = None,
) -> float:
    r"""Bandwidth by the median heuristic.

    .. math:: \gamma = \operatorname{median}_{i<j} \lVert q_i - q_j \rVert

    The distance is the kernel's own: Euclidean (not squared), L1 for ``laplace``. If the median is
    0, as for hard or constant predictions, the median of the positive distances is taken, and 1.0
    if there is none.

    Parameters
    ----------
    y_prob : array of shape (n_samples, n_classes), or (n_samples,) for the positive class
        Predicted probabilities.
    kernel : {"linear_gaussian", "gaussian", "laplace", "linear"}
        Kernel whose distance is used.
    sample_weight : array of shape (n_samples,), optional
        Frequency weights: a row of weight 2 counts as two rows.
    random_state : int
        Seed of the subsample.
    normalize, from_logits : bool
        Rescale the rows, or apply a softmax, first.
    n_threads : int, optional
        Threads; the result does not depend on them.

    Returns
    -------
    float
        The bandwidth, above 0.

    Notes
    -----
    All pairs count up to 2000 rows. Above, the pairs of 2000 rows drawn without replacement count;
    the cost is then O(2000^2 m), whatever n is.

    Examples
    --------
    >>> import ckce
    >>> ckce.median_bandwidth([[1.0, 0.0], [0.4, 0.6], [0.0, 1.0]])
    0.848528137423857
    """
    check_choice("kernel", kernel, list(KERNELS))
    threads = resolve_threads(n_threads)
    samples = check_probs(
        y_prob,
        sample_weight=sample_weight,
        normalize=check_bool("normalize", normalize),
        from_logits=check_bool("from_logits", from_logits),
        n_threads=threads,
    )
    return pooled_median([samples], kernel, check_seed(random_state), threads)[0]
