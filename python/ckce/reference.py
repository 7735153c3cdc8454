"""The paper in plain NumPy, term by term: the oracle of tests and benchmarks.

Slow on purpose. Feature matrices are built, inverses are formed, the two conditional mean operators
are estimated apart and then subtracted; no identity that the compiled code relies on is used here.
Inputs are trusted: `y_true` (n,) holds labels 0..m-1, `y_prob` (n, m) is float64.

Weights are frequency weights: an integer weight is that many copies of the row. With N = sum w the
ridge is c = lambda N, and each row of a feature matrix is scaled by sqrt(w).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]
Labels = npt.NDArray[np.integer[Any]]
Kernel = str | Callable[[Array, Array], Array]


def _distances(p: Array, q: Array, order: int) -> Array:
    # Explicit differences: |p|^2 + |q|^2 - 2 p'q cancels for close rows.
    return np.array([np.linalg.norm(row - q, ord=order, axis=1) for row in p])


def linear(p: Array, q: Array, bandwidth: float) -> Array:
    """p'q; the bandwidth is ignored."""
    gram: Array = p @ q.T
    return gram


def gaussian(p: Array, q: Array, bandwidth: float) -> Array:
    """``exp(-|p - q|^2 / (2 bandwidth^2))``."""
    gram: Array = np.exp(-(_distances(p, q, 2) ** 2) / (2 * bandwidth**2))
    return gram


def linear_gaussian(p: Array, q: Array, bandwidth: float) -> Array:
    """``p'q + exp(-|p - q|^2 / (2 bandwidth^2))``, the kernel of the paper."""
    return linear(p, q, bandwidth) + gaussian(p, q, bandwidth)


def laplace(p: Array, q: Array, bandwidth: float) -> Array:
    """``exp(-|p - q|_1 / bandwidth)``."""
    gram: Array = np.exp(-_distances(p, q, 1) / bandwidth)
    return gram


KERNELS: dict[str, Callable[[Array, Array, float], Array]] = {
    "linear": linear,
    "gaussian": gaussian,
    "linear_gaussian": linear_gaussian,
    "laplace": laplace,
}


def gram(kernel: Kernel, p: Array, q: Array, bandwidth: float) -> Array:
    """Gram matrix [k(p_i, q_j)].

    Parameters
    ----------
    kernel : str or callable
        A name in `KERNELS`, or ``kernel(p, q)`` that returns the (n, n') matrix itself.
    p, q : ndarray of shape (n, m) and (n', m)
    bandwidth : float
        Ignored by ``"linear"`` and by a callable.

    Returns
    -------
    ndarray of shape (n, n')

    Examples
    --------
    >>> gram("linear_gaussian", np.eye(2), np.eye(2), bandwidth=1.0).round(3).tolist()
    [[2.0, 0.368], [0.368, 2.0]]
    """
    if callable(kernel):
        return kernel(p, q)
    return KERNELS[kernel](p, q, bandwidth)


def median_bandwidth(
    y_prob: Array, kernel: str = "linear_gaussian", sample_weight: npt.NDArray[Any] | None = None
) -> float:
    """Median of the distances ``|q_i - q_j|``, i < j (L1 for ``"laplace"``, else L2, unsquared).

    A zero median is replaced by the median of the positive distances, else by 1.

    Parameters
    ----------
    y_prob : ndarray of shape (n, m)
    kernel : str
    sample_weight : ndarray of shape (n,), optional
        Integers: the rows are copied.

    Returns
    -------
    float

    Examples
    --------
    >>> median_bandwidth(np.array([[1.0, 0.0], [0.0, 1.0]]), kernel="laplace")
    2.0
    >>> median_bandwidth(np.full((5, 2), 0.5))
    1.0
    """
    if sample_weight is not None:
        y_prob = np.repeat(y_prob, sample_weight.astype(np.int64), axis=0)
    distances = _distances(y_prob, y_prob, 1 if kernel == "laplace" else 2)
    pairs = distances[np.triu_indices(len(y_prob), k=1)]
    if pairs.size and np.median(pairs) > 0:
        return float(np.median(pairs))
    positive = pairs[pairs > 0]
    return float(np.median(positive)) if positive.size else 1.0


def _weights(sample_weight: npt.NDArray[Any] | None, n: int) -> Array:
    return np.ones(n) if sample_weight is None else sample_weight.astype(np.float64)


def _ridge(regularization: float | None, total: float) -> float:
    lam = total**-0.25 if regularization is None else regularization
    return float(lam * total)


def _label_gram(label_kernel: Array | None, m: int) -> Array:
    return np.eye(m) if label_kernel is None else label_kernel


def _dual(
    y_prob: Array,
    kernel: Kernel,
    bandwidth: float,
    regularization: float | None,
    w: Array,
) -> tuple[Array, Array, float]:
    """K = sqrt(w) K_QQ sqrt(w)', W = (K + cI)^-1 and c."""
    k = gram(kernel, y_prob, y_prob, bandwidth) * np.sqrt(np.outer(w, w))
    c = _ridge(regularization, w.sum())
    return k, np.linalg.inv(k + c * np.eye(len(k))), c


def ckce(
    y_true: Labels,
    y_prob: Array,
    *,
    kernel: Kernel = "linear_gaussian",
    bandwidth: float,
    regularization: float | None = None,
    label_kernel: Array | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
) -> float:
    """Empirical CKCE, Tr(W [M_Z* M_Z + L_YY - M_Z* Psi_Y - Psi_Y* M_Z] W K_QQ).

    W = (K_QQ + lambda n I)^-1. 0 when the two estimated operators agree; never negative.

    Parameters
    ----------
    y_true : ndarray of shape (n,)
    y_prob : ndarray of shape (n, m)
    kernel : str or callable
        See `gram`.
    bandwidth : float
    regularization : float, optional
        lambda; None is n^-1/4.
    label_kernel : ndarray of shape (m, m), optional
        [l(i, j)]; None is the Kronecker kernel.
    sample_weight : ndarray of shape (n,), optional

    Returns
    -------
    float

    Examples
    --------
    One sample: ``k |r|^2 / (k + 1)^2`` with k = 1.5, ``|r|^2 = 0.5``.

    >>> round(ckce(np.array([0]), np.array([[0.5, 0.5]]), bandwidth=1.0), 12)
    0.12
    """
    n, m = y_prob.shape
    w = _weights(sample_weight, n)
    k, inverse, _ = _dual(y_prob, kernel, bandwidth, regularization, w)
    ell = _label_gram(label_kernel, m)
    psi_y = np.eye(m)[y_true]
    m_z = y_prob
    l_yy = ell[np.ix_(y_true, y_true)]
    bracket = m_z @ ell @ m_z.T + l_yy - m_z @ ell @ psi_y.T - psi_y @ ell @ m_z.T
    bracket = bracket * np.sqrt(np.outer(w, w))
    return float(np.trace(inverse @ bracket @ inverse @ k))


def debias_term(
    y_true: Labels,
    y_prob: Array,
    *,
    kernel: Kernel = "linear_gaussian",
    bandwidth: float,
    regularization: float | None = None,
    label_kernel: Array | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
    groups: npt.NDArray[Any] | None = None,
) -> float:
    """Diagonal part of CKCE, sum_i A_ii r_i' L r_i with A = W K W and r_i = e_{y_i} - q_i.

    With `groups`, the part of all pairs i, j of the same group, sum A_ij r_i' L r_j. CKCE minus this
    term is the debiased value. Parameters as in `ckce`.

    Returns
    -------
    float
    """
    n, m = y_prob.shape
    w = _weights(sample_weight, n)
    k, inverse, _ = _dual(y_prob, kernel, bandwidth, regularization, w)
    a = inverse @ k @ inverse
    ell = _label_gram(label_kernel, m)
    r = np.eye(m)[y_true] - y_prob
    if groups is not None:
        # All copies of a row are in its group.
        scaled = np.sqrt(w)[:, None] * r
        same = groups[:, None] == groups[None, :]
        return float(np.sum(same * a * (scaled @ ell @ scaled.T)))
    # r is not scaled: A_ii already carries w_i, and the w_i copies of a row drop w_i diagonal
    # entries A_ii / w_i each.
    return float(sum(a[i, i] * r[i] @ ell @ r[i] for i in range(n)))


#: d k(p, q) / d p_j for one p, all rows q and all j: (n', m).
SLOPES: dict[str, Callable[[Array, Array, float], Array]] = {
    "linear": lambda p, q, bandwidth: q,
    "gaussian": lambda p, q, bandwidth: -(p - q) / bandwidth**2 * gaussian(p[None], q, bandwidth).T,
    "linear_gaussian": lambda p, q, bandwidth: (
        SLOPES["linear"](p, q, bandwidth) + SLOPES["gaussian"](p, q, bandwidth)
    ),
}


def gradient(
    y_true: Labels,
    y_prob: Array,
    *,
    kernel: str = "linear_gaussian",
    bandwidth: float,
    regularization: float | None = None,
    label_kernel: Array | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
    debias: bool = True,
    detach_kernel: bool = False,
) -> tuple[float, Array]:
    """CKCE or the debiased value, and its derivative with respect to each entry of `y_prob`.

    With `detach_kernel` K is held fixed. Parameters as in `ckce`.

    Returns
    -------
    value : float
    gradient : ndarray of shape (n, m)

    Examples
    --------
    One sample with a fixed kernel: ``k |r|^2 / (k + 1)^2`` has the derivative ``-2 k r / (k + 1)^2``.

    >>> q = np.array([[0.5, 0.5]])
    >>> settings = {"debias": False, "detach_kernel": True, "bandwidth": 1.0}
    >>> gradient(np.array([0]), q, **settings)[1].round(12).tolist()
    [[-0.24, 0.24]]
    """
    n, _ = y_prob.shape
    k = gram(kernel, y_prob, y_prob, bandwidth)

    def moved(i: int, j: int) -> Array:
        change = np.zeros((n, n))
        slope = SLOPES[kernel](y_prob[i], y_prob, bandwidth)[:, j]
        change[i] += slope
        change[:, i] += slope  # k(q_i, q_i) moves with both of its arguments
        return change

    return _gradient(
        y_true, y_prob, k, moved, regularization, label_kernel, sample_weight, debias, detach_kernel
    )


def gradient_features(
    y_true: Labels,
    y_prob: Array,
    *,
    phi: Array,
    slopes: Array,
    regularization: float | None = None,
    label_kernel: Array | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
    debias: bool = True,
    detach_kernel: bool = False,
) -> tuple[float, Array]:
    """The same with K = Phi Phi'.

    Parameters
    ----------
    phi : ndarray of shape (n, d)
    slopes : ndarray of shape (n, d, m)
        d phi_i / d q_i.
    others
        As in `gradient`.

    Returns
    -------
    value : float
    gradient : ndarray of shape (n, m)
    """

    def moved(i: int, j: int) -> Array:
        change = np.zeros_like(phi)
        change[i] = slopes[i, :, j]
        both: Array = change @ phi.T + phi @ change.T
        return both

    return _gradient(
        y_true,
        y_prob,
        phi @ phi.T,
        moved,
        regularization,
        label_kernel,
        sample_weight,
        debias,
        detach_kernel,
    )


def _gradient(
    y_true: Labels,
    y_prob: Array,
    k: Array,
    moved: Callable[[int, int], Array],
    regularization: float | None,
    label_kernel: Array | None,
    sample_weight: npt.NDArray[Any] | None,
    debias: bool,
    detach_kernel: bool,
) -> tuple[float, Array]:
    """Tr A B and its derivatives by the product rule; moved(i, j) is dK / dq_ij."""
    n, m = y_prob.shape
    w = _weights(sample_weight, n)
    root = np.sqrt(np.outer(w, w))
    inverse = np.linalg.inv(k * root + _ridge(regularization, w.sum()) * np.eye(n))
    a = inverse @ (k * root) @ inverse
    ell = _label_gram(label_kernel, m)
    r = np.eye(m)[y_true] - y_prob

    def bracket(left: Array, right: Array) -> Array:
        pairs = left @ ell @ right.T
        # The diagonal counts copies once, see `debias_term`.
        diagonal: Array = np.diag(np.diag(pairs))
        return pairs * root - (diagonal if debias else 0.0)

    b = bracket(r, r)
    slope = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            dr = np.zeros((n, m))
            dr[i, j] = -1.0
            db = bracket(dr, r) + bracket(r, dr)
            slope[i, j] = np.trace(a @ db)
            if not detach_kernel:
                dk = moved(i, j) * root
                dw = -inverse @ dk @ inverse
                da = dw @ (k * root) @ inverse + inverse @ dk @ inverse + inverse @ (k * root) @ dw
                slope[i, j] += np.trace(da @ b)
    return float(np.trace(a @ b)), slope


def floor(
    y_true: Labels,
    y_prob: Array,
    *,
    kernel: Kernel = "linear_gaussian",
    bandwidth: float,
    regularization: float | None = None,
    label_kernel: Array | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
) -> float:
    """Mean of CKCE over labels drawn from the predictions.

    sum_i A_ii (sum_j q_ij L_jj / sum_j q_ij - q_i' L q_i); the bracket is ``1 - |q_i|^2`` for the
    Kronecker kernel, also for rows whose sum is 1 up to rounding only.
    Parameters as in `ckce`; `y_true` is not used.

    Returns
    -------
    float
    """
    n, m = y_prob.shape
    k, inverse, _ = _dual(y_prob, kernel, bandwidth, regularization, _weights(sample_weight, n))
    a = inverse @ k @ inverse
    ell = _label_gram(label_kernel, m)
    return float(
        sum(a[i, i] * (q @ np.diag(ell) / q.sum() - q @ ell @ q) for i, q in enumerate(y_prob))
    )


def influence(
    y_true: Labels,
    y_prob: Array,
    *,
    kernel: Kernel = "linear_gaussian",
    bandwidth: float,
    regularization: float | None = None,
    label_kernel: Array | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
) -> Array:
    """Influence of one copy of each sample on CKCE, bandwidth and lambda fixed.

    V = W R, U = K W V, t_i = u_i' L v_i, psi_i = 2 n c (t_i - mean t); 0 for a sample of weight 0.
    Parameters as in `ckce`.

    Returns
    -------
    ndarray of shape (n,)
    """
    n, m = y_prob.shape
    w = _weights(sample_weight, n)
    k, inverse, c = _dual(y_prob, kernel, bandwidth, regularization, w)
    v = inverse @ (np.sqrt(w)[:, None] * (np.eye(m)[y_true] - y_prob))
    u = k @ inverse @ v
    # w_i copies of row i share t_i: each has t_i / w_i, a row of weight 0 has no copy.
    kept = w > 0
    t = np.sum(u @ _label_gram(label_kernel, m) * v, axis=1)[kept] / w[kept]
    total = w.sum()
    psi = np.zeros(n)
    psi[kept] = 2 * total * c * (t - w[kept] @ t / total)
    return psi


def standard_error(
    y_true: Labels,
    y_prob: Array,
    *,
    kernel: Kernel = "linear_gaussian",
    bandwidth: float,
    regularization: float | None = None,
    label_kernel: Array | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
    groups: npt.NDArray[Any] | None = None,
) -> float:
    """Standard error of the debiased CKCE from its influence function, sd(psi) / sqrt(n); n >= 2.

    With `groups` see `cluster_standard_error`. Parameters as in `ckce`.

    Returns
    -------
    float
    """
    w = _weights(sample_weight, len(y_prob))
    psi = influence(
        y_true,
        y_prob,
        kernel=kernel,
        bandwidth=bandwidth,
        regularization=regularization,
        label_kernel=label_kernel,
        sample_weight=sample_weight,
    )
    if groups is not None:
        return cluster_standard_error(psi, groups, sample_weight)
    total = w.sum()
    return float(np.sqrt(w @ psi**2 / (total - 1) / total))


def cluster_standard_error(
    psi: Array, groups: npt.NDArray[Any], sample_weight: npt.NDArray[Any] | None = None
) -> float:
    """Standard error from influences of rows that depend on each other within groups.

    se^2 = (G - 1) / G sum_g (sum_{i in g} w_i psi_i / (N - N_g))^2, N_g the weight of a group.

    Parameters
    ----------
    psi : ndarray of shape (n,)
        With weighted mean 0.
    groups : ndarray of shape (n,)
    sample_weight : ndarray of shape (n,), optional

    Returns
    -------
    float
    """
    w = _weights(sample_weight, len(psi))
    names = np.unique(groups[w > 0])
    means = [w[groups == g] @ psi[groups == g] / w[groups != g].sum() for g in names]
    return float(np.sqrt((len(names) - 1) / len(names) * np.sum(np.square(means))))


def norm_interval(value: float, raw: float, se: float, z: float) -> tuple[float, float]:
    """max(value, 0) - z se, and the larger of max(value, 0) + z se and (|F| + z se_F)^2 - b.

    raw = |F|^2 = value + b, with b the part that noise adds; se_F = se / (2 |F|) is the standard error
    of |F|.

    Parameters
    ----------
    value : float
        Debiased CKCE or unbiased JKCE.
    raw : float
        CKCE or biased JKCE.
    se : float
        Standard error of the value.
    z : float
        Quantile of the normal distribution.

    Returns
    -------
    tuple of float
    """
    v, norm, b = max(value, 0.0), np.sqrt(raw), raw - value
    upper = (norm + z * se / (2.0 * norm)) ** 2 - b
    return v - z * se, float(max(v + z * se, upper))


def cluster_interval(value: float, raw: float, se: float, t: float) -> tuple[float, float]:
    """All theta with (v - theta)^2 <= t^2 se^2 (theta + raw - v) / raw, v = max(value, 0).

    The interval of a squared norm whose standard error at the truth theta is se sqrt((theta + b) /
    raw), with raw = value + b > 0 and b the part that noise adds: the two roots of a parabola.

    Parameters
    ----------
    value : float
        Debiased CKCE or unbiased JKCE.
    raw : float
        CKCE or biased JKCE.
    se : float
        `cluster_standard_error`.
    t : float
        Quantile of Student's t.

    Returns
    -------
    tuple of float
    """
    v = max(value, 0.0)
    c = (t * se) ** 2 / raw
    low, high = np.sort(np.roots([1.0, -2.0 * v - c, v**2 - c * (raw - v)]).real)
    return float(low), float(high)


def loo_error(
    y_true: Labels,
    y_prob: Array,
    *,
    kernel: Kernel = "linear_gaussian",
    bandwidth: float,
    regularization: float | None = None,
    label_kernel: Array | None = None,
) -> float:
    """Leave-one-out error of the kernel ridge regression of r = e_y - q on q.

    The mean over i of ``|r_i - f_i(q_i)|^2`` (under L), where f_i is fitted without sample i and with
    the ridge c = lambda n of all samples. Parameters as in `ckce`.

    Returns
    -------
    float
    """
    n, m = y_prob.shape
    k = gram(kernel, y_prob, y_prob, bandwidth)
    c = _ridge(regularization, n)
    r = np.eye(m)[y_true] - y_prob
    ell = _label_gram(label_kernel, m)
    total = 0.0
    for i in range(n):
        others = np.arange(n) != i
        inverse = np.linalg.inv(k[np.ix_(others, others)] + c * np.eye(n - 1))
        error = r[i] - k[i, others] @ inverse @ r[others]
        total += float(error @ ell @ error)
    return float(total / n)


def fourier_features(y_prob: Array, frequencies: Array, linear_part: bool = True) -> Array:
    """Feature map ``[q | cos(w_j'q) / sqrt(D) | sin(w_j'q) / sqrt(D)]``.

    Parameters
    ----------
    y_prob : ndarray of shape (n, m)
    frequencies : ndarray of shape (D, m)
        Already divided by the bandwidth.
    linear_part : bool
        Whether q itself leads the features.

    Returns
    -------
    ndarray of shape (n, m + 2D), or (n, 2D) without the linear part

    Examples
    --------
    >>> fourier_features(np.array([[0.25, 0.75]]), np.zeros((1, 2))).tolist()
    [[0.25, 0.75, 1.0, 0.0]]
    """
    angles = y_prob @ frequencies.T
    scale = 1 / np.sqrt(len(frequencies))
    waves = np.hstack([scale * np.cos(angles), scale * np.sin(angles)])
    return np.hstack([y_prob, waves]) if linear_part else waves


def _primal(
    y_true: Labels,
    y_prob: Array,
    phi: Array,
    regularization: float | None,
    w: Array,
    label_kernel: Array | None,
) -> float:
    m, d = y_prob.shape[1], phi.shape[1]
    psi_y = np.eye(m)[y_true]
    m_z = y_prob
    weighted = w[:, None] * phi
    inverse = np.linalg.inv(phi.T @ weighted + _ridge(regularization, w.sum()) * np.eye(d))
    c_y = psi_y.T @ weighted @ inverse
    c_z = m_z.T @ weighted @ inverse
    difference = c_z - c_y
    return float(np.trace(difference.T @ _label_gram(label_kernel, m) @ difference))


def ckce_fourier(
    y_true: Labels,
    y_prob: Array,
    *,
    frequencies: Array,
    linear_part: bool = True,
    regularization: float | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
    label_kernel: Array | None = None,
) -> float:
    """CKCE with Fourier features, ``|C_{Z|Q} - C_{Y|Q}|_F^2``.

    ``C_{Y|Q} = Psi_Y Phi* (Phi Phi* + lambda n I)^-1`` and
    ``C_{Z|Q} = M_Z Phi* (Phi Phi* + lambda n I)^-1``.

    Parameters
    ----------
    y_true : ndarray of shape (n,)
    y_prob : ndarray of shape (n, m)
    frequencies : ndarray of shape (D, m)
        Already divided by the bandwidth.
    linear_part : bool
    regularization : float, optional
        lambda; None is n^-1/4.
    sample_weight : ndarray of shape (n,), optional
    label_kernel : ndarray of shape (m, m), optional

    Returns
    -------
    float
    """
    phi = fourier_features(y_prob, frequencies, linear_part)
    w = _weights(sample_weight, len(y_prob))
    return _primal(y_true, y_prob, phi, regularization, w, label_kernel)


def pivoted_cholesky(
    gram: Array, rank: int | None = None, tol: float = 1e-10
) -> tuple[Array, npt.NDArray[np.int64]]:
    """Greedy incomplete Cholesky factor, K ~ G G'.

    The next pivot is the first index with the largest diagonal of E = K - G G'. Stops at `rank`,
    when tr E <= tol tr K, or when that diagonal falls below 1e-12 of the largest of K.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
    rank : int, optional
    tol : float

    Returns
    -------
    factor : ndarray of shape (n, r)
    pivots : ndarray of shape (r,)

    Examples
    --------
    >>> factor, pivots = pivoted_cholesky(np.array([[1.0, 2.0], [2.0, 4.0]]))
    >>> factor.tolist(), pivots.tolist()
    ([[1.0], [2.0]], [1])
    """
    n = len(gram)
    residual = gram.copy()
    columns: list[Array] = []
    pivots: list[int] = []
    while len(pivots) < (n if rank is None else min(rank, n)):
        pivot = int(np.argmax(np.diag(residual)))
        largest = residual[pivot, pivot]
        if np.trace(residual) <= tol * np.trace(gram) or largest < 1e-12 * np.diag(gram).max():
            break
        column = residual[:, pivot] / np.sqrt(largest)
        residual -= np.outer(column, column)
        columns.append(column)
        pivots.append(pivot)
    factor = np.stack(columns, axis=1) if columns else np.empty((n, 0))
    return factor, np.array(pivots, dtype=np.int64)


def ckce_cholesky(
    y_true: Labels,
    y_prob: Array,
    *,
    kernel: Kernel = "linear_gaussian",
    bandwidth: float,
    rank: int | None = None,
    tol: float = 1e-10,
    regularization: float | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
    label_kernel: Array | None = None,
) -> float:
    """CKCE with the pivoted Cholesky factor of K_QQ as features, ``|C_{Z|Q} - C_{Y|Q}|_F^2``.

    Pivots are chosen on the unweighted Gram matrix of the rows of positive weight.

    Parameters
    ----------
    y_true : ndarray of shape (n,)
    y_prob : ndarray of shape (n, m)
    kernel : str or callable
        See `gram`.
    bandwidth : float
    rank, tol
        See `pivoted_cholesky`.
    regularization : float, optional
        lambda; None is n^-1/4.
    sample_weight : ndarray of shape (n,), optional
    label_kernel : ndarray of shape (m, m), optional

    Returns
    -------
    float
    """
    w = _weights(sample_weight, len(y_prob))
    kept = w > 0
    y_true, y_prob, w = y_true[kept], y_prob[kept], w[kept]
    factor, _ = pivoted_cholesky(gram(kernel, y_prob, y_prob, bandwidth), rank, tol)
    return _primal(y_true, y_prob, factor, regularization, w, label_kernel)


def landmark_features(
    y_prob: Array, landmarks: Array, kernel: Kernel = "linear_gaussian", bandwidth: float = 1.0
) -> Array:
    """Feature map K(Q, S) L^-T with L L' = K(S, S), so that Phi Phi' = K(Q, S) K(S, S)^-1 K(S, Q).

    Parameters
    ----------
    y_prob : ndarray of shape (n, m)
    landmarks : ndarray of shape (r, m)
        S; K(S, S) must not be singular.
    kernel : str or callable
        See `gram`.
    bandwidth : float

    Returns
    -------
    ndarray of shape (n, r)

    Examples
    --------
    >>> landmark_features(np.eye(2), np.array([[1.0, 0.0]]), "linear", 1.0).tolist()
    [[1.0], [0.0]]
    """
    lower = np.linalg.cholesky(gram(kernel, landmarks, landmarks, bandwidth))
    return np.asarray(np.linalg.solve(lower, gram(kernel, landmarks, y_prob, bandwidth)).T)


def ckce_landmarks(
    y_true: Labels,
    y_prob: Array,
    *,
    landmarks: Array,
    kernel: Kernel = "linear_gaussian",
    bandwidth: float,
    regularization: float | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
    label_kernel: Array | None = None,
) -> float:
    """CKCE with features of landmarks (Nystroem), ``|C_{Z|Q} - C_{Y|Q}|_F^2``.

    Parameters
    ----------
    y_true : ndarray of shape (n,)
    y_prob : ndarray of shape (n, m)
    landmarks, kernel, bandwidth
        See `landmark_features`.
    regularization : float, optional
        lambda; None is n^-1/4.
    sample_weight : ndarray of shape (n,), optional
    label_kernel : ndarray of shape (m, m), optional

    Returns
    -------
    float
    """
    phi = landmark_features(y_prob, landmarks, kernel, bandwidth)
    w = _weights(sample_weight, len(y_prob))
    return _primal(y_true, y_prob, phi, regularization, w, label_kernel)


def power_features(y_prob: Array) -> Array:
    """u(q_j), U = sum_j u(q_j) and q_j U for u(q) = q^1/2, q^3/2, q^2.

    Parameters
    ----------
    y_prob : ndarray of shape (n, m)

    Returns
    -------
    ndarray of shape (n, 6 m + 3)

    Examples
    --------
    >>> power_features(np.array([[0.25, 0.75]])).shape
    (1, 15)
    """
    columns = []
    for power in (0.5, 1.5, 2.0):
        u = y_prob**power
        total = u.sum(axis=1, keepdims=True)
        columns += [u, total, y_prob * total]
    return np.hstack(columns)


def common_ground(
    y_true: tuple[Labels, Labels],
    x: tuple[Array, Array],
    y_prob: tuple[Array, Array],
    *,
    norm: int,
    regularization: float,
    eps: float,
    sample_weight: npt.NDArray[Any] | None = None,
    label_kernel: Array | None = None,
    groups: Labels | None = None,
) -> dict[str, Any]:
    """CKCE of two models on their common ground, from the features of their predictions.

    With C_M = X'X/N + eps I, S_M = X'R/N, P = (C_A + C_B)^-1, L_A = 2 C_B P, L_B = 2 C_A P,
    O = L_A C_A - eps I and W_M = (O_dd + lambda I)^-1 L_M,d: |W_M S_M|^2 - sum_i |r_i|^2 |W_M x_i|^2/N^2.

    Parameters
    ----------
    y_true, x, y_prob : pairs of ndarrays of shape (n,), (n, d + b) and (n, m)
        Labels, features and predictions of the models A and B.
    norm : int
        d, the first columns of x, which carry the norm.
    regularization, eps : float
        lambda; and the ridge of the covariances.
    sample_weight : ndarray of shape (n,), optional
    label_kernel : ndarray of shape (m, m), optional
    groups : ndarray of shape (n,), optional
        Codes 0, 1, ... of rows that depend on each other: the pairs within a group are left out, and
        the standard error is that of `cluster_standard_error`.

    Returns
    -------
    dict
        For A and B: ``plain`` |W S|^2, ``values`` without their diagonals, ``influence`` (2, n); and
        ``se_influence`` of the difference, ``noise`` mu, ``se`` = sqrt(se_influence^2 + 4 mu^2), ``share``.
    """
    w = _weights(sample_weight, len(x[0]))
    total, (n, width) = w.sum(), x[0].shape
    label = _label_gram(label_kernel, y_prob[0].shape[1])
    r = [np.eye(q.shape[1])[y] - q for y, q in zip(y_true, y_prob, strict=True)]
    eye, unit = np.eye(width), np.eye(norm)
    c = [features.T @ np.diag(w) @ features / total + eps * eye for features in x]
    s = [features.T @ np.diag(w) @ rest / total for features, rest in zip(x, r, strict=True)]
    p = np.linalg.inv(c[0] + c[1])
    ell = [2 * c[1] @ p, 2 * c[0] @ p]
    o = (ell[0] @ c[0] - eps * eye)[:norm, :norm]
    inverse = np.linalg.inv((o + o.T) / 2 + regularization * unit)

    def directions(covariance: Array) -> float:
        mu = np.linalg.eigvalsh((covariance + covariance.T) / 2)
        return float(np.sum((mu / (mu + regularization)) ** 2))

    together = np.arange(n) if groups is None else groups
    plain, values, influence = np.empty(2), np.empty(2), np.empty((2, n))
    maps = [inverse @ each[:norm] for each in ell]
    covariance_of_f = np.zeros((norm, norm))
    for i, j in ((0, 1), (1, 0)):
        weights_of_x = maps[i]
        f = weights_of_x @ s[i]
        plain[i] = np.trace(f @ label @ f.T)
        values[i] = plain[i]
        for code in np.unique(together):
            mine = together == code
            inside = weights_of_x @ (x[i][mine].T @ np.diag(w[mine]) @ r[i][mine])
            if groups is None:  # a row of weight w is w independent copies
                inside = inside / np.sqrt(w[mine][0])
            products = inside @ label @ inside.T / total**2
            values[i] -= np.trace(products)
            covariance_of_f += products
        h, z = inverse @ f, p @ s[i]
        own = r[i] - x[i] @ (z + ell[i][:norm].T @ f / 2)
        other = x[j] @ (z - ell[j][:norm].T @ f / 2)
        t = np.sum((x[i] @ ell[i][:norm].T @ h @ label) * own, axis=1)
        t += np.sum((x[j] @ ell[j][:norm].T @ h @ label) * other, axis=1)
        influence[i] = 2 * (t - w @ t / total)
    difference = influence[0] - influence[1]
    variance = np.sum(w * difference**2) / (total - 1) / total
    if groups is not None:
        variance = cluster_standard_error(difference, groups, sample_weight) ** 2
    widest = max(directions((covariance - eps * eye)[:norm, :norm]) for covariance in c)

    # Second order: e'F_A and e'F_B vary by the sums of z / N around their means, where e is the
    # direction in which F is noisiest. Then |e'F_A|^2 - |e'F_B|^2 varies like sum_k mu_k chi_k^2.
    e = np.linalg.eigh(covariance_of_f)[1][:, -1]
    z = np.hstack([(f @ m.T @ e)[:, None] * rest for f, m, rest in zip(x, maps, r, strict=True)])
    z = np.sqrt(w)[:, None] * z
    if groups is not None:
        z = np.sqrt(w)[:, None] * z
        z = np.array([z[groups == g].sum(axis=0) for g in np.unique(groups)])
    sides = np.kron(np.diag([1.0, -1.0]), label)
    noise = float(np.abs(np.linalg.eigvals(z.T @ z / total**2 @ sides)).max())
    return {
        "plain": plain,
        "values": values,
        "influence": influence,
        "se_influence": float(np.sqrt(variance)),
        "noise": noise,
        "se": float(np.sqrt(variance + 4 * noise**2)),
        "share": directions(o) / widest,
    }


def jkce(
    y_true: Labels,
    y_prob: Array,
    *,
    kernel: Kernel = "linear_gaussian",
    bandwidth: float,
    estimator: str = "unbiased",
    label_kernel: Array | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
    groups: npt.NDArray[Any] | None = None,
) -> float:
    """JKCE, the squared MMD between (Y, Q) and (Z, Q).

    h_ij = k(q_i, q_j) [l(y_i, y_j) - E l(Z_i, y_j) - E l(y_i, Z_j) + E l(Z_i, Z_j)]; ``"biased"``
    is the mean over all i, j, ``"unbiased"`` the mean over i != j and may be negative.

    Parameters
    ----------
    y_true : ndarray of shape (n,)
    y_prob : ndarray of shape (n, m)
    kernel : str or callable
        See `gram`.
    bandwidth : float
    estimator : {"unbiased", "biased"}
    label_kernel : ndarray of shape (m, m), optional
    sample_weight : ndarray of shape (n,), optional
    groups : ndarray of shape (n,), optional
        ``"unbiased"`` is then the mean over pairs of different groups.

    Returns
    -------
    float

    Examples
    --------
    >>> q = np.full((2, 2), 0.5)
    >>> jkce(np.array([0, 1]), q, bandwidth=1.0)
    -0.75
    """
    n, m = y_prob.shape
    w = _weights(sample_weight, n)
    ell = _label_gram(label_kernel, m)
    l_yy = ell[np.ix_(y_true, y_true)]
    l_zy = (y_prob @ ell)[:, y_true]
    l_yz = (ell @ y_prob.T)[y_true]
    l_zz = y_prob @ ell @ y_prob.T
    h = gram(kernel, y_prob, y_prob, bandwidth) * (l_yy - l_zy - l_yz + l_zz)
    total = w.sum()
    everything = w @ h @ w
    if estimator == "biased":
        return float(everything / total**2)
    if groups is not None:
        apart = groups[:, None] != groups[None, :]
        return float(w @ (apart * h) @ w / (w @ apart @ w))
    # The w_i copies of a row pair with one another, but no copy with itself.
    return float((everything - w @ np.diag(h)) / (total * (total - 1)))


def jkce_standard_error(
    y_true: Labels,
    y_prob: Array,
    *,
    kernel: Kernel = "linear_gaussian",
    bandwidth: float,
    label_kernel: Array | None = None,
    sample_weight: npt.NDArray[Any] | None = None,
    groups: npt.NDArray[Any] | None = None,
) -> float:
    """Standard error of the unbiased JKCE, 2 sd(g) / sqrt(n) with g_i the mean of h_ij, j != i.

    With `groups` (and weights), that of the ratio S / D of S = sum w_i w_j h_ij and D = sum w_i w_j
    over pairs of different groups: psi_i = 2 N (sum_j w_j h_ij - S / D sum_j w_j) / D. Parameters as
    in `jkce`; n >= 3.

    Returns
    -------
    float
    """
    n, m = y_prob.shape
    r = np.eye(m)[y_true] - y_prob
    h = gram(kernel, y_prob, y_prob, bandwidth) * (r @ _label_gram(label_kernel, m) @ r.T)
    if groups is not None:
        w = _weights(sample_weight, n)
        apart = groups[:, None] != groups[None, :]
        s, d = w @ (apart * h) @ w, w @ apart @ w
        psi = 2 * w.sum() * ((apart * h) @ w - s / d * (apart @ w)) / d
        return cluster_standard_error(psi, groups, sample_weight)
    g = (h.sum(axis=1) - np.diag(h)) / (n - 1)
    return float(2 * np.std(g, ddof=1) / np.sqrt(n))


def jkce_block(
    y_true: Labels,
    y_prob: Array,
    *,
    block_size: int,
    kernel: Kernel = "linear_gaussian",
    bandwidth: float,
    label_kernel: Array | None = None,
) -> Array:
    """Unbiased JKCE of each block of consecutive rows; the block estimator is their mean.

    Parameters as in `jkce`. Rows that do not fill a block are left out.

    Returns
    -------
    ndarray of shape (n // block_size,)
    """
    blocks = [slice(at, at + block_size) for at in range(0, len(y_true), block_size)]
    return np.array(
        [
            jkce(
                y_true[b], y_prob[b], kernel=kernel, bandwidth=bandwidth, label_kernel=label_kernel
            )
            for b in blocks[: len(y_true) // block_size]
        ]
    )


def top_label(y_true: Labels, y_prob: Array) -> tuple[Labels, Array]:
    """The binary problem whether the predicted class, the first maximum, is right.

    Returns
    -------
    labels : ndarray of shape (n,)
        1 where it is.
    probs : ndarray of shape (n, 2)
        [1 - c, c] with the confidence c.

    Examples
    --------
    >>> y, q = top_label(np.array([1]), np.array([[0.25, 0.75]]))
    >>> y.tolist(), q.tolist()
    ([1], [[0.25, 0.75]])
    """
    confidence = y_prob.max(axis=1)
    right = y_true == np.argmax(y_prob, axis=1)
    return right.astype(np.int64), np.stack([1 - confidence, confidence], axis=1)


def top_k(y_true: Labels, y_prob: Array, k: int) -> tuple[Labels, Array]:
    """The k largest entries of each row in decreasing order, the rest as one class, labels by rank.

    Of equal entries the first column comes first. Rows sum to 1, unless those kept sum to more.

    Returns
    -------
    labels : ndarray of shape (n,)
        0..k, where k stands for all other classes.
    probs : ndarray of shape (n, k + 1)

    Examples
    --------
    >>> y, q = top_k(np.array([3]), np.array([[0.125, 0.25, 0.125, 0.5]]), 2)
    >>> y.tolist(), q.tolist()
    ([0], [[0.5, 0.25, 0.25]])
    """
    order = np.argsort(-y_prob, axis=1, kind="stable")
    ranks = np.argmax(order == y_true[:, None], axis=1)
    kept = np.take_along_axis(y_prob, order[:, :k], axis=1).astype(np.float64)
    rest = np.maximum(1.0 - kept.sum(axis=1, keepdims=True), 0.0)
    return np.minimum(ranks, k), np.hstack([kept, rest])


def sorted_choices(right: Labels, scores: list[list[float]]) -> tuple[Labels, Array]:
    """Multiple choice by rank: the softmax of each row in decreasing order, padded with zeros.

    Returns
    -------
    labels : ndarray of shape (n,)
        The rank of the right choice.
    probs : ndarray of shape (n, most choices)

    Examples
    --------
    >>> y, q = sorted_choices(np.array([1]), [[0.0, float(np.log(3.0))]])
    >>> y.tolist(), q.round(6).tolist()
    ([0], [[0.75, 0.25]])
    """
    labels, probs = [], np.zeros((len(scores), max(map(len, scores))))
    for i, row in enumerate(scores):
        e = np.exp(np.array(row) - max(row))
        order = sorted(range(len(row)), key=lambda j, row=row: -row[j])  # type: ignore[misc]
        probs[i, : len(row)] = (e / e.sum())[order]
        labels.append(order.index(int(right[i])))
    return np.array(labels), probs


def one_vs_rest(y_true: Labels, y_prob: Array, j: int) -> tuple[Labels, Array]:
    """The binary problem whether the class is j, with predictions [1 - q_j, q_j].

    Returns
    -------
    labels : ndarray of shape (n,)
    probs : ndarray of shape (n, 2)
    """
    p = y_prob[:, j]
    return (y_true == j).astype(np.int64), np.stack([1 - p, p], axis=1)


def uniform_bins(p: Array, n_bins: int) -> Labels:
    """Bin [b / B, (b + 1) / B) of each number; 1 is in the last.

    Examples
    --------
    >>> uniform_bins(np.array([0.0, 0.1, 0.99, 1.0]), 10).tolist()
    [0, 1, 9, 9]
    """
    edges = np.arange(n_bins) / n_bins
    bins: Labels = np.searchsorted(edges, p, side="right") - 1
    return bins


def quantile_bins(p: Array, n_bins: int, sample_weight: npt.NDArray[Any] | None = None) -> Labels:
    """Bin floor(B F / N) of each number, F the weight of the smaller ones: ties stay together.

    B F / N that misses a whole number by rounding counts as that number.

    Examples
    --------
    >>> quantile_bins(np.array([0.1, 0.7, 0.7, 0.9]), 2).tolist()
    [0, 0, 0, 1]
    """
    w = _weights(sample_weight, len(p))
    below = np.array([math.fsum(w[p < x]) for x in p])
    bins: Labels = np.floor(n_bins * below / math.fsum(w) * (1.0 + 2e-15)).astype(np.int64)
    return bins


def _binned_gaps(bins: list[Any], y: Array, q: Array, w: Array) -> list[tuple[float, float, Array]]:
    """Share, weight and mean of y - q for each bin that holds a sample."""
    gaps = []
    for b in sorted(set(bins)):
        kept = np.array([other == b for other in bins])
        weight = w[kept].sum()
        gap = (w[kept, None] * (y[kept] - q[kept])).sum(axis=0) / weight
        gaps.append((weight / w.sum(), weight, gap))
    return gaps


def _distance(gaps: list[tuple[float, float, Array]], norm: str) -> float:
    if norm == "l1":
        return float(sum(share * np.abs(gap).sum() for share, _, gap in gaps))
    if norm == "tv":
        return float(sum(share * np.abs(gap).sum() / 2 for share, _, gap in gaps))
    if norm == "max":
        return float(max(np.abs(gap).max() for _, _, gap in gaps))
    squared = sum(share * (gap**2).sum() for share, _, gap in gaps)
    return float(np.sqrt(squared) if norm == "l2" else squared)


def _problems(
    y_true: Labels,
    y_prob: Array,
    variant: str,
    n_bins: int,
    strategy: str,
    w: Array,
) -> list[tuple[list[Any], Array, Array]]:
    """Bins, outcomes (n, d) and predictions (n, d) of the problems that a variant consists of."""
    if variant == "simplex":
        bins = [tuple(row) for row in uniform_bins(y_prob, n_bins).tolist()]
        return [(bins, np.eye(y_prob.shape[1])[y_true], y_prob)]
    if variant == "top_label":
        binary = [top_label(y_true, y_prob)]
    else:
        binary = [one_vs_rest(y_true, y_prob, j) for j in range(y_prob.shape[1])]
    problems: list[tuple[list[Any], Array, Array]] = []
    for y, q in binary:
        p = q[:, 1]
        cut = uniform_bins(p, n_bins) if strategy == "uniform" else quantile_bins(p, n_bins, w)
        problems.append((cut.tolist(), y[:, None].astype(np.float64), p[:, None]))
    return problems


def ece(
    y_true: Labels,
    y_prob: Array,
    *,
    variant: str = "simplex",
    n_bins: int = 10,
    strategy: str = "uniform",
    norm: str = "l1",
    debias: bool = False,
    sample_weight: npt.NDArray[Any] | None = None,
) -> float:
    """Expected calibration error, the mean over bins of d(frequencies, mean prediction).

    The vectors compared have m entries for ``"simplex"`` and one, the probability itself, for
    ``"top_label"`` and ``"class_wise"`` (the mean over classes). `norm` is the L^p norm over bins,
    weighted by their shares, and entries.

    Parameters
    ----------
    y_true : ndarray of shape (n,)
    y_prob : ndarray of shape (n, m)
    variant : {"simplex", "top_label", "class_wise"}
    n_bins : int
    strategy : {"uniform", "quantile"}
    norm : {"l1", "tv", "l2", "l2_squared", "max"}
    debias : bool
        Subtract from the squared distance of a bin the variance of its outcomes over n_b - 1; drop
        bins with one sample.
    sample_weight : ndarray of shape (n,), optional

    Returns
    -------
    float

    Examples
    --------
    >>> ece(np.array([0, 0]), np.full((2, 2), 0.5))
    1.0
    >>> ece(np.array([0, 0]), np.full((2, 2), 0.5), variant="top_label")
    0.5
    """
    w = _weights(sample_weight, len(y_prob))
    values = []
    for bins, y, q in _problems(y_true, y_prob, variant, n_bins, strategy, w):
        value = _distance(_binned_gaps(bins, y, q, w), norm)
        if debias:
            rates = _binned_gaps(bins, y, np.zeros_like(q), w)
            singles = [(s, n_b, g) for s, n_b, g in _binned_gaps(bins, y, q, w) if n_b <= 1]
            value -= _distance(singles, norm)
            value -= sum(s * _variance(rate) / (n_b - 1) for s, n_b, rate in rates if n_b > 1)
        values.append(value)
    return float(np.mean(values))


def _variance(rate: Array) -> float:
    """Variance of an outcome: p (1 - p), or 1 - |p|^2 for a vector of class frequencies."""
    return float(rate[0] * (1 - rate[0]) if len(rate) == 1 else 1 - (rate**2).sum())


def smooth_ece(
    y_true: Labels, y_prob: Array, sample_weight: npt.NDArray[Any] | None = None
) -> float:
    """Smooth ECE (Blasiok and Nakkiran 2023), transcribed from relplot 1.0.3.

    Of the probability of the second of two classes, or of the confidence in the predicted class.

    Parameters
    ----------
    y_true : ndarray of shape (n,)
    y_prob : ndarray of shape (n, m)
    sample_weight : ndarray of shape (n,), optional

    Returns
    -------
    float

    Examples
    --------
    >>> round(smooth_ece(np.array([0, 0]), np.full((2, 2), 0.5)), 3)
    0.5
    """
    w = _weights(sample_weight, len(y_prob))
    hits, q = (y_true, y_prob) if y_prob.shape[1] == 2 else top_label(y_true, y_prob)
    p = q[:, 1]
    wide, narrow = 1.0, 0.0
    for _ in range(10):
        middle = (wide + narrow) / 2
        if middle < 0.001 or middle < _smooth_ece_at(middle, p, hits, w):
            narrow = middle
        else:
            wide = middle
    return _smooth_ece_at(wide, p, hits, w)


def _smooth_ece_at(sigma: float, p: Array, hits: Labels, w: Array) -> float:
    """Smooth ECE with a kernel of this width."""
    size = max(2000, round(20 / sigma)) // 2 + 1
    cell = np.clip((p * (size - 1)).astype(int), 0, size - 2)
    right = p * (size - 1) - cell
    kernel = np.exp(-((np.linspace(0, 1, size) - 0.5) ** 2) / (2 * sigma**2))
    kernel /= np.sqrt(2 * np.pi) * sigma
    points = np.linspace(0, 1, max(200, round(10 / sigma)))

    def smoothed(values: Array) -> Array:
        grid = np.zeros(size)
        np.add.at(grid, cell, (1 - right) * values)
        np.add.at(grid, cell + 1, right * values)
        reflected = np.concatenate([grid[:0:-1], grid, grid[-2::-1]])
        out = np.convolve(reflected, kernel, "valid")[size // 2 : size // 2 + size]
        return np.interp(points, np.linspace(0, 1, size), out)

    return float(np.abs(smoothed(w * (p - hits))).sum() / (smoothed(w) + 1e-4).sum())


def brier_decomposition(
    y_true: Labels,
    y_prob: Array,
    *,
    variant: str = "simplex",
    n_bins: int = 10,
    strategy: str = "uniform",
    sample_weight: npt.NDArray[Any] | None = None,
) -> dict[str, float]:
    """Parts of the Brier score by the bins of `ece`, added over the classes for ``"class_wise"``.

    Parameters as in `ece`.

    Returns
    -------
    dict
        brier, calibration, refinement and uncertainty.
    """
    w = _weights(sample_weight, len(y_prob))
    parts = dict.fromkeys(["brier", "calibration", "refinement", "uncertainty"], 0.0)
    for bins, y, q in _problems(y_true, y_prob, variant, n_bins, strategy, w):
        rates = _binned_gaps(bins, y, np.zeros_like(q), w)
        parts["brier"] += float(w @ ((y - q) ** 2).sum(axis=1) / w.sum())
        parts["calibration"] += _distance(_binned_gaps(bins, y, q, w), "l2_squared")
        parts["refinement"] += sum(share * _variance(rate) for share, _, rate in rates)
        parts["uncertainty"] += _variance(w @ y / w.sum())
    return parts


def brier(y_true: Labels, y_prob: Array, sample_weight: npt.NDArray[Any] | None = None) -> float:
    """Brier score, the mean of ``|e_y - q|^2`` over samples (all classes, not halved for two).

    Examples
    --------
    >>> brier(np.array([0]), np.array([[0.5, 0.5]]))
    0.5
    """
    w = _weights(sample_weight, len(y_prob))
    return float(w @ ((np.eye(y_prob.shape[1])[y_true] - y_prob) ** 2).sum(axis=1) / w.sum())


def log_loss(y_true: Labels, y_prob: Array, sample_weight: npt.NDArray[Any] | None = None) -> float:
    """Mean of -log q_y; infinite where a label had probability 0.

    Examples
    --------
    >>> log_loss(np.array([0]), np.array([[1.0, 0.0]]))
    0.0
    """
    w = _weights(sample_weight, len(y_prob))
    with np.errstate(divide="ignore"):
        losses = 0.0 - np.log(y_prob[np.arange(len(y_true)), y_true])
    return float(w @ losses / w.sum())


def accuracy(y_true: Labels, y_prob: Array, sample_weight: npt.NDArray[Any] | None = None) -> float:
    """Share of the samples whose label is the first of the largest probabilities.

    Examples
    --------
    >>> accuracy(np.array([0, 1]), np.full((2, 2), 0.5))
    0.5
    """
    w = _weights(sample_weight, len(y_prob))
    return float(w @ (np.argmax(y_prob, axis=1) == y_true) / w.sum())


def class_wise_bandwidth(y_prob: Array, kernel: str = "linear_gaussian") -> float:
    """Median of the pair distances of all one-vs-rest problems together.

    A zero median is replaced by the median of the positive distances, else by 1.

    Parameters
    ----------
    y_prob : ndarray of shape (n, m)
    kernel : str

    Returns
    -------
    float
    """
    order = 1 if kernel == "laplace" else 2
    upper = np.triu_indices(len(y_prob), k=1)
    columns = [np.stack([1 - p, p], axis=1) for p in y_prob.T]
    pairs = np.concatenate([_distances(q, q, order)[upper] for q in columns])
    if pairs.size and np.median(pairs) > 0:
        return float(np.median(pairs))
    positive = pairs[pairs > 0]
    return float(np.median(positive)) if positive.size else 1.0


def shapes(y_prob: Array) -> Array:
    """What flatter, sharper and uniform predictions would change: (3, n, m).

    Examples
    --------
    >>> shapes(np.array([[0.2, 0.8]])).round(4).tolist()
    [[[0.1333, -0.1333]], [[-0.1412, 0.1412]], [[0.3, -0.3]]]
    """
    powers = np.stack([np.sqrt(y_prob), y_prob**2, np.ones_like(y_prob)])
    result: Array = powers / powers.sum(axis=2, keepdims=True) - y_prob
    return result


def twiced_smoother(y_prob: Array, gram: Array, regularization: float) -> tuple[Array, Array]:
    """A1 = 2H - H^2 (n, n), H = K (K + lambda n I)^-1, and A (n m, n m), which fits `shapes` too.

    A = A1 x I + V (X'V)^+ V', V = (I - A1 x I) X; directions of X of which I - A1 leaves less than
    1e-4 are not fitted, nor shapes below 1e-6 in root mean square.
    """
    n, m = y_prob.shape
    h = gram @ np.linalg.inv(gram + regularization * n * np.eye(n))
    once = 2 * h - h @ h
    kernel_part = np.kron(once, np.eye(m))
    x = shapes(y_prob).reshape(3, n * m).T
    v = x - kernel_part @ x
    norms = np.linalg.norm(x, axis=0)
    scale = np.diag(np.divide(1.0, norms, out=np.zeros(3), where=norms > 1e-6 * np.sqrt(n)))
    values, vectors = np.linalg.eigh(scale @ (x.T @ v + v.T @ x) @ scale / 2)
    inverse = np.diag([1 / value if value > 1e-4 else 0.0 for value in values])
    return once, kernel_part + v @ scale @ vectors @ inverse @ vectors.T @ scale @ v.T


def smoother_regularization(y_prob: Array, gram: Array, n_groups: int | None = None) -> float:
    """The smallest lambda with df = Tr A1 <= n / 8 and a null deviation of at most 0.4 n^(-3/4).

    The deviation of a calibrated model's miscalibration is at most sqrt(2 / n^2 sum_i t_i (A1^2)_ii),
    t_i the square of the covariance matrix of the label. Labels are not looked at.
    """
    n = len(y_prob)
    covariances = [np.diag(q) - np.outer(q, q) for q in y_prob]
    t = np.array([(each**2).sum() for each in covariances])
    spectrum, vectors = np.linalg.eigh(gram)
    spectrum = np.maximum(spectrum, 0.0)

    def allowed(lam: float) -> bool:
        a = spectrum * (spectrum + 2 * lam * n) / (spectrum + lam * n) ** 2
        deviation = np.sqrt(2 / n**2 * (t @ (vectors**2 @ a**2)))
        units = n if n_groups is None else n_groups
        return bool(deviation <= 0.4 * n**-0.75 and a.sum() <= units / 8)

    low, high = (np.log(factor * spectrum.max() / n) for factor in (1e-8, 1e6))
    if allowed(np.exp(low)):
        return float(np.exp(low))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if allowed(np.exp(middle)) else (middle, high)
    return float(np.exp(high))


def miscalibration(
    y_true: Labels, y_prob: Array, gram: Array, groups: Labels | None = None
) -> dict[str, float]:
    """E|E[e_Y - q | q]|^2 by a smoother without its diagonal, literally: all (n m)^2 pairs.

    Parameters
    ----------
    y_true, y_prob : ndarrays of shape (n,) and (n, m)
    gram : ndarray of shape (n, n)
        K of the smoother.
    groups : ndarray of shape (n,), optional
        Pairs of one group are dropped, too.

    Returns
    -------
    dict
        value, regularization and df.
    """
    n, m = y_prob.shape
    units = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    lam = smoother_regularization(y_prob, gram, None if groups is None else int(units.max()) + 1)
    once, twiced = twiced_smoother(y_prob, gram, lam)
    r = (np.eye(m)[y_true] - y_prob).ravel()
    apart = units[:, None] != units[None, :]
    pairs = r[:, None] * twiced * r[None, :]
    df = float(once[~apart].sum())
    value = float(pairs[np.kron(apart, np.ones((m, m), bool))].sum()) / (n - df)
    return {"value": value, "regularization": lam, "df": df}
