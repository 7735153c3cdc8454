"""How CKCE changes with every prediction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import Choices, Kernel, KernelLike, TopKPredictions, check_bool, check_memory
from ckce._input.arrays import as_array
from ckce._methods import Exact, Fourier, Landmarks, Method, iterates
from ckce._methods.auto import AUTO_RANK, FOURIER_CLASSES, affords_exact
from ckce._methods.method import in_panels, price_of_features, working
from ckce._problem import Problem, Progress, part, progress_bar, settle

#: Rows up to which the debiased value of the exact kernel has a gradient through the kernel.
WHOLE_LIMIT = _core.FACTORISATION_LIMIT


def gradient(
    y_true: Any,
    y_prob: Any,
    *,
    debias: bool = True,
    detach_kernel: bool = False,
    method: str | Method = "auto",
    kernel: KernelLike = "linear_gaussian",
    bandwidth: float | str = "median",
    regularization: float | str | None = None,
    label_kernel: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> tuple[float, NDArray[np.float64]]:
    r"""CKCE and its gradient with respect to the predictions.

    CKCE depends on the predictions through the residuals :math:`r_i = e_{y_i} - q_i` and through the
    kernel matrix. With :math:`W = (K + \lambda n I)^{-1}`, :math:`A = W K W`, :math:`V = W R` and
    :math:`U = W K V`,

    .. math::
        \frac{\partial\, \mathrm{CKCE}}{\partial R} = 2 U, \qquad
        \frac{\partial\, \mathrm{CKCE}}{\partial K} = V V^\top - U V^\top - V U^\top .

    The debiased value is without :math:`\sum_i A_{ii} \lVert r_i \rVert^2`. If the kernel is
    detached, its gradient is :math:`-2 \sum_{j \ne i} A_{ij} r_j` in row i. Bandwidth, lambda,
    weights, frequencies and landmarks are held fixed, also those that the data chose.

    Parameters
    ----------
    debias : bool
        Take the debiased value, whose mean is 0 under calibration; without, CKCE itself.
    detach_kernel : bool
        Hold the kernel matrix fixed and differentiate the residuals only. A training loss needs
        this: see docs/training.md.
    method : {"auto", "exact", "fourier", "landmarks"}, or an object with options
        ``auto`` takes ``exact`` for ``kernel="linear"``, for n <= 2000 and while
        n^2 (m + 16) <= 2e10, but not above n = 2000 if the gradient of a debiased value goes through
        the kernel; else ``fourier``, or 500 ``landmarks`` for m > 4000. ``cholesky`` has no gradient:
        its pivots are rows of the data. The tolerance of `Exact` is that of the equations which the
        iteration solves, as a share of their right-hand sides.
    kernel : {"linear_gaussian", "gaussian", "linear"}
        ``laplace`` has no gradient where two predictions share a coordinate, nor has a callable.
    y_true, y_prob, bandwidth, regularization, label_kernel, sample_weight, labels, random_state,
    input, normalize, n_threads, progress
        As in `ckce`.

    Returns
    -------
    value : float
        The debiased value of `estimate`, or the value of `ckce`.
    gradient : ndarray
        d value / d y_prob, in the shape of `y_prob` and with respect to the numbers that were passed:
        logits have the gradient in the logits. All entries of a row of probabilities vary on their
        own, as if they need not sum to 1; for the positive class alone it is the difference of both
        columns. Rows of weight 0 have the gradient 0.

    Notes
    -----
    Cost: ``exact`` up to n = 2000 (raw: 40 m + 150), or for n <= m: O(n^3) and memory of up to 7 n^2
    numbers. Above: conjugate gradients and one more pass over K, about 2 calls of `ckce` in O(n m)
    memory; the debias term then comes from a factor of K of low rank, to about 1e-4 of it, or 1e-3
    where the spectrum of K decays slowly, as with many classes.
    ``fourier`` and ``landmarks``: a second pass over the rows, O(n d^2) for d features.

    Examples
    --------
    >>> import ckce
    >>> y_true = [0, 1, 1, 0]
    >>> y_prob = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]
    >>> value, gradient = ckce.gradient(y_true, y_prob, detach_kernel=True)
    >>> round(value, 6)
    -0.012378
    >>> gradient.round(4)
    array([[-0.0059,  0.0059],
           [ 0.0183, -0.0183],
           [-0.013 ,  0.013 ],
           [ 0.0295, -0.0295]])
    """
    if isinstance(y_prob, (TopKPredictions, Choices)):
        raise TypeError(f"y_prob must hold all classes here, got ckce.{type(y_prob).__name__}")
    check_bool("debias", debias)
    check_bool("detach_kernel", detach_kernel)
    problem = settle(
        "gradient",
        y_true,
        y_prob,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
        label_kernel=label_kernel,
        sample_weight=sample_weight,
        labels=labels,
        random_state=random_state,
        input=input,
        normalize=normalize,
        n_threads=n_threads,
    )
    whole = debias and not detach_kernel
    if problem.auto:
        n, m = problem.samples.n, problem.samples.m
        problem = replace(problem, method=_choose(n, m, problem.kernel, whole))
    _check(problem, whole)
    value, in_probs = _solve(problem, debias, not detach_kernel, progress)
    return value, _in_terms_of(y_prob, in_probs, problem, sample_weight, input, normalize)


def _choose(n: int, m: int, kernel: Kernel, whole: bool) -> Method:
    """What "auto" takes: a function of n, m, kernel and the value that is asked for."""
    if not kernel.has_bandwidth or n <= WHOLE_LIMIT or (affords_exact(n, m) and not whole):
        return Exact()
    return Fourier() if m <= FOURIER_CLASSES else Landmarks(AUTO_RANK)


def _check(problem: Problem, whole: bool) -> None:
    """Refuse what has no gradient."""
    kernel, method, samples = problem.kernel, problem.method, problem.samples
    if kernel.gram is not None:
        raise ValueError("a callable kernel has no gradient that ckce knows; use a named kernel")
    if not kernel.smooth:
        raise ValueError(
            f"{kernel} has no gradient where two predictions share a coordinate; use "
            "kernel='gaussian' or kernel='linear_gaussian'"
        )
    if not method.streams and not isinstance(method, Exact):
        raise ValueError(
            f"method={method.word!r} has no gradient, because its pivots are rows of the data; use "
            "method='exact', 'fourier' or 'landmarks'"
        )
    if whole and isinstance(method, Exact) and kernel.has_bandwidth and samples.n > WHOLE_LIMIT:
        raise ValueError(
            f"method='exact' needs n <= {WHOLE_LIMIT} for the gradient of a debiased value through "
            f"the kernel, got n = {samples.n}: it takes the inverse of K + lambda n I as a matrix; "
            "pass detach_kernel=True, debias=False or method='fourier'"
        )


def _iterates(problem: Problem, debias: bool) -> bool:
    """As `ckce` does; the gradient of the debias term takes W as a matrix where rows are few."""
    n, m = problem.samples.n, problem.samples.m
    return n > max(m, WHOLE_LIMIT) or (not debias and iterates(n, m))


def _price(problem: Problem, debias: bool, through_kernel: bool) -> float:
    """Doubles that a call needs beyond its input, at most."""
    samples, method, rows = problem.samples, problem.method, problem.rows
    n, m = samples.n, samples.m
    panels = in_panels(n) * m
    if isinstance(method, Exact) and problem.kernel.has_bandwidth:
        whole = (7.0 if debias else 3.0) * n**2 + 6 * panels
        if not _iterates(problem, debias):
            return whole
        iteration = method.price(rows, debias) + (7 if through_kernel else 2) * panels
        return max(iteration, whole) if n <= WHOLE_LIMIT else iteration
    d = method.n_features(rows)
    if n < d:
        features = 0.0 if isinstance(method, Exact) else 3.0 * n * d
        return (7.0 if debias else 3.0) * n**2 + 6 * panels + features
    slopes = working(rows.n_threads, 4 * 1160 * (d + m)) * 3072 * d
    return price_of_features(rows, d, full=True) + 3 * d * d + slopes + panels


def _solve(
    problem: Problem, debias: bool, through_kernel: bool, show: bool | None
) -> tuple[float, NDArray[np.float64]]:
    method, samples = problem.method, problem.samples
    check_memory(
        8.0 * _price(problem, debias, through_kernel),
        f"a gradient by method={method.word!r} with n = {samples.n}, m = {samples.m}",
        method.advice,
    )
    settings: dict[str, Any] = {
        "ridge": problem.ridge,
        "debias": debias,
        "through_kernel": through_kernel,
        "n_threads": problem.n_threads,
    }
    with progress_bar(show, f"gradient {method.word}") as report:
        return _run(problem, settings, report)


def _run(
    problem: Problem, settings: dict[str, Any], progress: Progress | None
) -> tuple[float, NDArray[np.float64]]:
    method = problem.method
    if isinstance(method, Exact):
        iterate = _iterates(problem, settings["debias"])
        return _core.gradient_exact(
            *problem.data,
            kernel=problem.rows.core_kernel,
            tol=method.tol,
            solver=_core.Solver.iterate if iterate else _core.Solver.factorise,
            progress=progress,
            **settings,
        )
    features = problem.features(method, part(progress, 0.0, 0.2))
    return _core.gradient_features(
        *problem.data, features=features, progress=part(progress, 0.2, 1.0), **settings
    )


def _in_terms_of(
    y_prob: Any,
    bar: NDArray[np.float64],
    problem: Problem,
    sample_weight: Any,
    input: str,
    normalize: bool,
) -> NDArray[np.float64]:
    """The gradient in what was passed, from that in the probabilities of the rows that count."""
    given = as_array("y_prob", y_prob)
    probs = problem.samples.probs
    weights = None if sample_weight is None else as_array("sample_weight", sample_weight)
    if given.ndim == 1:
        bar = bar[:, 1] - bar[:, 0]
        if input != "probs":
            bar = bar * probs[:, 1]
        if input == "logits":
            bar = bar * probs[:, 0]
    elif input == "log_probs":
        bar = bar * probs
    elif input == "logits":
        bar = (bar - np.sum(bar * probs, axis=1, keepdims=True)) * probs
    elif normalize:
        rows = given if weights is None else given[weights > 0.0]
        sums = rows.sum(axis=1, keepdims=True, dtype=np.float64)
        bar = (bar - np.sum(bar * probs, axis=1, keepdims=True)) / sums
    if weights is None or len(bar) == len(given):
        return bar
    whole = np.zeros(given.shape)
    whole[weights > 0.0] = bar
    return whole
