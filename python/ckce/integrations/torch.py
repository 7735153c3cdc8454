"""CKCE as a training loss: a term to add to cross entropy.

Examples
--------
>>> import torch
>>> from ckce.integrations.torch import CKCELoss
>>> logits = torch.linspace(-2, 2, 120, dtype=torch.float64).reshape(40, 3).requires_grad_()
>>> target = torch.arange(40) % 3
>>> calibration = CKCELoss(weight=1.0)
>>> loss = torch.nn.functional.cross_entropy(logits, target) + calibration(logits, target)
>>> loss.backward()
>>> tuple(logits.grad.shape)
(40, 3)
"""

import functools
import math
from collections.abc import Callable
from typing import Any, Optional

import numpy as np
import torch

from ckce import Exact, Fourier, TopK, fourier_frequencies, gradient, median_bandwidth
from ckce._input import InputError, InputTypeError, warn

__all__ = ["CKCELoss", "ckce_loss"]

#: Targets that do not count, as in torch.nn.functional.cross_entropy.
IGNORED = -100
#: Rows below which the value is 0: CKCE of fewer is noise.
FEW_ROWS = 32
#: Rows up to which one thread is faster than several.
_ONE_THREAD = 512
_MOMENTUM = 0.9
_NAMES = {"y_prob": "preds", "y_true": "target", "labels": "target"}


@functools.cache
def _warn_of_few_rows() -> None:
    warn(
        f"CKCELoss is 0 for batches of fewer than {FEW_ROWS} rows that count; pass queue= to keep "
        "rows of past batches (this is said once)",
        RuntimeWarning,
    )


def _in_numpy(tensor: torch.Tensor, kept: "torch.Tensor | None") -> Any:
    rows = tensor.detach() if kept is None else tensor.detach()[kept]
    return rows.numpy()


def _rows_that_count(target: torch.Tensor) -> "torch.Tensor | None":
    kept = target != IGNORED
    return None if bool(kept.all()) else kept


# The operators. Annotations are part of their schemas.


@torch.library.custom_op("ckce::as_probs", mutates_args=())
def _as_probs(logits: torch.Tensor) -> torch.Tensor:
    """softmax in float64; refuses rows that are probabilities already."""
    wide = logits.double()
    sums = wide.sum(dim=1)
    if len(wide) >= 8 and bool((wide >= 0).all() & ((sums - 1).abs() <= 5e-3).all()):
        raise ValueError("preds must hold logits, got rows of probabilities; pass input='probs'")
    return torch.softmax(wide, dim=1)


@_as_probs.register_fake
def _(logits: torch.Tensor) -> torch.Tensor:
    return torch.empty(logits.shape, dtype=torch.float64, device=logits.device)


def _keep_probs(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(output)
    ctx.dtype = inputs[0].dtype


def _through_softmax(ctx: Any, bar: torch.Tensor) -> torch.Tensor:
    (probs,) = ctx.saved_tensors
    return (probs * (bar - (bar * probs).sum(dim=1, keepdim=True))).to(ctx.dtype)


_as_probs.register_autograd(_through_softmax, setup_context=_keep_probs)


@torch.library.custom_op("ckce::median", mutates_args=(), device_types="cpu")
def _median(probs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The median distance of the rows that count; 1 for fewer than two."""
    rows = _in_numpy(probs, _rows_that_count(target))
    try:
        gamma = median_bandwidth(rows) if len(rows) > 1 else 1.0
    except InputError as error:
        raise error.renamed(_NAMES) from None
    return torch.tensor(gamma, dtype=torch.float64)


@_median.register_fake
def _(probs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.empty((), dtype=torch.float64, device=probs.device)


@torch.library.custom_op("ckce::gradient", mutates_args=(), device_types="cpu")
def _value_and_slopes(
    probs: torch.Tensor,
    target: torch.Tensor,
    bandwidth: torch.Tensor,
    frequencies: Optional[torch.Tensor],  # noqa: UP045 - the schema is read from it
    regularization: Optional[float],  # noqa: UP045
    debias: bool,
    detach_kernel: bool,
    warns: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The value and its gradient in `probs`, float64, from one call of the core."""
    kept = _rows_that_count(target)
    n = len(target) if kept is None else int(kept.sum())
    slopes = torch.zeros(probs.shape, dtype=torch.float64)
    if n < FEW_ROWS:
        if warns:
            _warn_of_few_rows()
        return torch.zeros((), dtype=torch.float64), slopes
    method: dict[str, Any] = {"method": Exact(), "bandwidth": float(bandwidth)}
    if frequencies is not None:
        method = {"method": Fourier(frequencies=frequencies.detach().numpy())}
    try:
        value, rows = gradient(
            _in_numpy(target, kept),
            _in_numpy(probs, kept),
            debias=debias,
            detach_kernel=detach_kernel,
            regularization=regularization,
            n_threads=1 if n <= _ONE_THREAD else torch.get_num_threads(),
            progress=False,
            **method,
        )
    except (InputError, InputTypeError) as error:
        raise error.renamed(_NAMES) from None
    if kept is None:
        slopes = torch.from_numpy(rows)
    else:
        slopes[kept] = torch.from_numpy(rows)
    return torch.tensor(value, dtype=torch.float64), slopes


@_value_and_slopes.register_fake
def _(
    probs: torch.Tensor,
    target: torch.Tensor,
    bandwidth: torch.Tensor,
    frequencies: Optional[torch.Tensor],  # noqa: UP045
    regularization: Optional[float],  # noqa: UP045
    debias: bool,
    detach_kernel: bool,
    warns: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty((), dtype=torch.float64), torch.empty(probs.shape, dtype=torch.float64)


def _keep_slopes(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    probs, target, bandwidth, frequencies = inputs[:4]
    ctx.settings = inputs[4:7]
    ctx.save_for_backward(probs, target, bandwidth, frequencies, output[1])


def _through_value(ctx: Any, bar: torch.Tensor, _: Any) -> tuple[Any, ...]:
    probs, target, bandwidth, frequencies, slopes = ctx.saved_tensors
    if torch.is_grad_enabled():  # somebody will differentiate this gradient
        value = _plain(probs, target, bandwidth, frequencies, *ctx.settings)
        if value.requires_grad:
            (slopes,) = torch.autograd.grad(value, probs, create_graph=True)
    return bar * slopes, None, None, None, None, None, None, None


_value_and_slopes.register_autograd(_through_value, setup_context=_keep_slopes)


# The same in torch alone: for other devices, and for gradients of gradients.


def _plain(
    probs: torch.Tensor,
    target: torch.Tensor,
    bandwidth: torch.Tensor,
    frequencies: "torch.Tensor | None",
    regularization: float | None,
    debias: bool,
    detach_kernel: bool,
) -> torch.Tensor:
    """The value from (n, n) or (d, d) matrices in torch."""
    kept = target != IGNORED
    q, y = probs[kept], target[kept]
    n = len(q)
    if n < FEW_ROWS:
        return q.sum() * 0.0
    points = q.detach() if detach_kernel else q
    ridge = (n**-0.25 if regularization is None else regularization) * n
    r = torch.nn.functional.one_hot(y, q.shape[1]).to(q.dtype) - q
    if frequencies is not None:
        angles = points @ frequencies.T
        waves = torch.cat([angles.cos(), angles.sin()], dim=1) / math.sqrt(len(frequencies))
        phi = torch.cat([points, waves], dim=1)
        eye = torch.eye(phi.shape[1], dtype=q.dtype, device=q.device)
        factor = torch.linalg.cholesky(phi.T @ phi + ridge * eye)
        value = torch.cholesky_solve(phi.T @ r, factor).square().sum()
        diagonal = torch.cholesky_solve(phi.T, factor).square().sum(dim=0) if debias else None
    else:
        squares = points.square().sum(dim=1)
        distances = (squares[:, None] + squares - 2 * points @ points.T).clamp(min=0.0)
        gram = points @ points.T + torch.exp(-distances / (2 * bandwidth**2))
        eye = torch.eye(n, dtype=q.dtype, device=q.device)
        factor = torch.linalg.cholesky(gram + ridge * eye)
        v = torch.cholesky_solve(r, factor)
        value = (v * (gram @ v)).sum()
        if debias:
            inverse = torch.cholesky_solve(eye, factor)
            diagonal = (inverse * (gram @ inverse)).sum(dim=0)
    if debias:
        value = value - diagonal @ r.square().sum(dim=1)
    return value


def _plain_median(probs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The median distance, of every few rows if there are more than 2000."""
    rows = probs[target != IGNORED]
    rows = rows[:: -(-len(rows) // 2000) or 1]
    distances = torch.pdist(rows)
    if len(distances) and float(distances.quantile(0.5)) > 0:
        return distances.quantile(0.5)
    positive = distances[distances > 0]
    return positive.quantile(0.5) if len(positive) else torch.ones_like(probs.sum())


# What both the module and the function do.


def _flat(preds: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of predictions and their labels."""
    if target.is_floating_point() or target.is_complex():
        raise TypeError(
            f"target must hold integers, got {target.dtype}; predictions come first: "
            "loss(preds, target)"
        )
    if preds.ndim != target.ndim + 1 or preds.shape[0:1] + preds.shape[2:] != target.shape:
        raise ValueError(
            "preds and target must have shapes (N, C, ...) and (N, ...), got "
            f"{tuple(preds.shape)} and {tuple(target.shape)}"
        )
    if preds.ndim > 2:
        preds = preds.movedim(1, -1).reshape(-1, preds.shape[1])
    return preds, target.reshape(-1).long()


def _reduce(
    probs: torch.Tensor, target: torch.Tensor, reduction: TopK | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest entries in order and the rest; labels become ranks."""
    if reduction is None:
        return probs, target
    k = reduction.k
    if k >= probs.shape[1]:
        raise ValueError(f"reduction=TopK({k}) needs more than {k} classes, got {probs.shape[1]}")
    order = torch.argsort(probs.detach(), dim=1, descending=True, stable=True)[:, :k]
    largest = probs.gather(1, order)
    hits = order == target[:, None]
    ranks = torch.where(hits.any(dim=1), hits.int().argmax(dim=1), k)
    ranks = torch.where(target == IGNORED, IGNORED, ranks)
    rest = (1.0 - largest.sum(dim=1, keepdim=True)).clamp(min=0.0)
    return torch.cat([largest, rest], dim=1), ranks


def _probs_of(preds: torch.Tensor, input: str) -> torch.Tensor:
    with torch.autocast(preds.device.type, enabled=False):
        if preds.device.type == "mps":  # Apple's GPUs have no float64
            preds = preds.cpu()
        return torch.ops.ckce.as_probs(preds) if input == "logits" else preds.double()


def _value(
    probs: torch.Tensor,
    target: torch.Tensor,
    bandwidth: torch.Tensor,
    frequencies: "torch.Tensor | None",
    regularization: float | None,
    debias: bool,
    detach_kernel: bool,
    warns: bool,
) -> torch.Tensor:
    settings = (bandwidth, frequencies, regularization, debias, detach_kernel)
    with torch.autocast(probs.device.type, enabled=False):
        if probs.device.type != "cpu":
            return _plain(probs, target, *settings)
        return torch.ops.ckce.gradient(probs, target, *settings, warns)[0]


def _median_of(probs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    find = torch.ops.ckce.median if probs.device.type == "cpu" else _plain_median
    gamma: torch.Tensor = find(probs, target)
    return gamma


def _check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not (math.isfinite(value) and (value > 0 or (zero and value == 0))):
        rule = "at least 0" if zero else "positive"
        raise ValueError(f"{name} must be {rule} and finite, got {value!r}")
    return float(value)


def _check_method(method: Any) -> Fourier | None:
    """None is the exact kernel."""
    if method == "exact" or method == Exact():
        return None
    chosen = Fourier() if method == "fourier" else method
    if not isinstance(chosen, Fourier):
        raise ValueError(f"method must be 'exact', 'fourier' or ckce.Fourier(...), got {method!r}")
    if chosen.frequencies is not None or chosen.precision != "float64":
        raise ValueError(
            f"method must draw its frequencies, in float64, got {method!r}: they follow the bandwidth"
        )
    return chosen


def _frequencies(
    method: Fourier | None, probs: torch.Tensor, bandwidth: torch.Tensor
) -> "torch.Tensor | None":
    if method is None:
        return None
    unit = fourier_frequencies(probs.shape[1], method.n_frequencies, sampler=method.sampler)
    return torch.as_tensor(unit, device=probs.device) / bandwidth


def ckce_loss(
    preds: torch.Tensor,
    target: torch.Tensor,
    *,
    debias: bool = True,
    detach_kernel: bool = True,
    bandwidth: float | str = "median",
    regularization: float | None = None,
    method: Any = "exact",
    input: str = "logits",
    reduction: TopK | None = None,
) -> torch.Tensor:
    """CKCE of a batch as a differentiable 0-d tensor; `CKCELoss` without weight and state.

    Parameters
    ----------
    preds : tensor of shape (N, C) or (N, C, d1, ...)
        Logits, or probabilities if `input` says so.
    target : tensor of shape (N,) or (N, d1, ...)
        Labels; -100 is ignored.
    bandwidth : float or "median"
        The kernel's bandwidth; the median of the batch by default, held fixed.
    debias, detach_kernel, regularization, method, input, reduction
        As in `CKCELoss`.

    Returns
    -------
    tensor of shape ()
        float64 for float64 predictions, else float32. 0 for fewer than 32 rows, with one warning.

    Examples
    --------
    >>> import torch
    >>> from ckce.integrations.torch import ckce_loss
    >>> logits = torch.linspace(-2, 2, 120, dtype=torch.float64).reshape(40, 3)
    >>> print(f"{ckce_loss(logits, torch.arange(40) % 3, bandwidth=0.5).item():.6f}")
    -0.006880
    """
    gamma = None if bandwidth == "median" else _check_positive("bandwidth", bandwidth)
    _check_input(input, reduction, debias, detach_kernel)
    rows, labels = _flat(preds, target)
    probs, labels = _reduce(_probs_of(rows, input), labels.to(_home(rows)), reduction)
    width = (
        _median_of(probs.detach(), labels)
        if gamma is None
        else torch.tensor(gamma, dtype=torch.float64, device=probs.device)
    )
    value = _value(
        probs,
        labels,
        width,
        _frequencies(_check_method(method), probs, width),
        None if regularization is None else _check_positive("regularization", regularization),
        debias,
        detach_kernel,
        True,
    )
    return value.to(preds.device, torch.promote_types(preds.dtype, torch.float32))


def _home(rows: torch.Tensor) -> torch.device:
    return torch.device("cpu") if rows.device.type == "mps" else rows.device


def _check_input(input: Any, reduction: Any, debias: Any, detach_kernel: Any) -> None:
    if input not in ("logits", "probs"):
        raise ValueError(f"input must be 'logits' or 'probs', got {input!r}")
    if reduction is not None and not isinstance(reduction, TopK):
        raise TypeError(f"reduction must be None or ckce.TopK(k), got {reduction!r}")
    for name, value in (("debias", debias), ("detach_kernel", detach_kernel)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False, got {value!r}")


class CKCELoss(torch.nn.Module):
    """A calibration term for training: ``cross_entropy(z, y) + CKCELoss(weight)(z, y)``.

    It is the debiased CKCE of the batch with the kernel detached, so its gradient in row i is
    -2 sum_{j != i} A_ij r_j: the residuals of other rows with like predictions. Why both are the
    default, and how it compares with early stopping and temperature, is measured in
    docs/training.md. A regulariser, not magic: early stopping with temperature is a strong rival.

    Parameters
    ----------
    weight : float
        Factor of the term, at least 0.
    debias : bool
        Take the debiased value. The raw one is mostly its floor in small batches.
    detach_kernel : bool
        Differentiate the residuals only. Through the kernel a network can lower CKCE by making all
        predictions alike, at the cost of its accuracy.
    bandwidth : float or "ema_median"
        ``"ema_median"`` keeps a moving average of the medians of training batches (momentum 0.9).
    regularization : float, optional
        lambda; by default n^(-1/4) for n rows.
    method : {"exact", "fourier"} or `ckce.Fourier`
        The exact kernel, or random Fourier features for large batches.
    input : {"logits", "probs"}
        What predictions hold. Probabilities in place of logits are refused.
    queue : int
        Detached rows of past training batches that join each batch, for batches that are too small
        for a kernel estimate.
    reduction : TopK, optional
        For many classes: `ckce.TopK` keeps the k largest entries.

    Notes
    -----
    On the CPU value and gradient come out of one call of the compiled core, without a copy, in
    float64 whatever autocast says; it works under ``torch.compile``. On other devices, and for
    gradients of gradients, the same formulas run in torch with (n, n) matrices. Bandwidth and lambda
    are never differentiated. Every process of a distributed training sees its own rows only. A batch
    of fewer than 32 rows that count, queue included, gives 0. Exact cost: O(n^3) up to n = 2000.
    """

    bandwidth_now: torch.Tensor
    queued_probs: "torch.Tensor | None"
    queued_target: "torch.Tensor | None"

    def __init__(
        self,
        weight: float = 1.0,
        *,
        debias: bool = True,
        detach_kernel: bool = True,
        bandwidth: float | str = "ema_median",
        regularization: float | None = None,
        method: Any = "exact",
        input: str = "logits",
        queue: int = 0,
        reduction: TopK | None = None,
    ) -> None:
        super().__init__()
        self.weight = _check_positive("weight", weight, zero=True)
        _check_input(input, reduction, debias, detach_kernel)
        self.debias, self.detach_kernel = debias, detach_kernel
        self.ema = bandwidth == "ema_median"
        if isinstance(bandwidth, str) and not self.ema:
            raise ValueError(f"bandwidth must be a number or 'ema_median', got {bandwidth!r}")
        gamma = math.nan if self.ema else _check_positive("bandwidth", bandwidth)
        self.regularization = (
            None if regularization is None else _check_positive("regularization", regularization)
        )
        self.method = _check_method(method)
        self.input, self.reduction = input, reduction
        if isinstance(queue, bool) or not isinstance(queue, int) or queue < 0:
            raise ValueError(f"queue must be a number of rows, at least 0, got {queue!r}")
        self.queue = queue
        self.register_buffer("bandwidth_now", torch.tensor(gamma, dtype=torch.float64))
        self.register_buffer("queued_probs", None, persistent=False)
        self.register_buffer("queued_target", None, persistent=False)

    def extra_repr(self) -> str:
        """The weight, the bandwidth, and what is not at its default."""
        gamma = "'ema_median'" if self.ema else float(self.bandwidth_now)
        parts = [f"weight={self.weight!r}", f"bandwidth={gamma}"]
        defaults = {"debias": True, "detach_kernel": True, "regularization": None}
        more = {**defaults, "method": None, "input": "logits", "queue": 0, "reduction": None}
        parts += [f"{k}={getattr(self, k)!r}" for k, v in more.items() if getattr(self, k) != v]
        return ", ".join(parts)

    def forward(self, preds: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """The weighted value of a batch.

        Parameters
        ----------
        preds : tensor of shape (N, C) or (N, C, d1, ...)
            Predictions, as `input` says.
        target : tensor of shape (N,) or (N, d1, ...)
            Labels; -100 is ignored.
        """
        rows, labels = _flat(preds, target)
        probs, labels = _reduce(_probs_of(rows, self.input), labels.to(_home(rows)), self.reduction)
        gamma = self._bandwidth_for(probs.detach(), labels)
        all_probs, all_labels = probs, labels
        if self.queue > 0:
            all_probs, all_labels = self._with_queue(probs, labels)
        value = _value(
            all_probs,
            all_labels,
            gamma,
            _frequencies(self.method, probs, gamma),
            self.regularization,
            self.debias,
            self.detach_kernel,
            self.queue == 0,
        )
        value = self.weight * value
        return value.to(preds.device, torch.promote_types(preds.dtype, torch.float32))

    def _bandwidth_for(self, probs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        now = self.bandwidth_now.to(probs.device)
        if not self.ema:
            return now
        median = _median_of(probs, labels)
        if self.training:
            moved = _MOMENTUM * now + (1.0 - _MOMENTUM) * median
            now = torch.where(torch.isnan(now), median, moved)
            self.bandwidth_now.copy_(now)
            return now
        return torch.where(torch.isnan(now), median, now)

    def _with_queue(
        self, probs: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The batch and the rows before it; empty places are rows that do not count."""
        if self.queued_probs is None or self.queued_probs.shape[1] != probs.shape[1]:
            m = probs.shape[1]
            self.queued_probs = torch.full((self.queue, m), 1.0 / m, dtype=torch.float64)
            self.queued_target = torch.full((self.queue,), IGNORED)
        assert self.queued_target is not None
        past = self.queued_probs.to(probs.device), self.queued_target.to(probs.device)
        all_probs, all_labels = torch.cat([probs, past[0]]), torch.cat([labels, past[1]])
        if self.training:
            self.queued_probs = all_probs.detach()[: self.queue].clone()
            self.queued_target = all_labels[: self.queue].clone()
        return all_probs, all_labels

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:
        # Rows of the queue would not sum to 1 in 8 or 11 bits: only the device follows.
        device = _home(fn(torch.zeros((), device=self.bandwidth_now.device)))
        for name, buffer in self._buffers.items():
            self._buffers[name] = None if buffer is None else buffer.to(device)
        return self
