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


# What the rows become: probabilities in float64, or the k largest of them in order and the rest.


def _probs(preds: torch.Tensor, logits: bool) -> torch.Tensor:
    return torch.softmax(preds, dim=1, dtype=torch.float64) if logits else preds.double()


def _largest(probs: torch.Tensor, k: int) -> torch.Tensor:
    return torch.argsort(probs.detach(), dim=1, descending=True, stable=True)[:, :k]


def _reduce(probs: torch.Tensor, target: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest entries and the rest, of which there are k + 1; labels become ranks."""
    if k == 0:
        return probs, target
    order = _largest(probs, k)
    largest = probs.gather(1, order)
    hits = order == target[:, None]
    ranks = torch.where(hits.any(dim=1), hits.int().argmax(dim=1), k)
    ranks = torch.where(target == IGNORED, IGNORED, ranks)
    rest = (1.0 - largest.sum(dim=1, keepdim=True)).clamp(min=0.0)
    return torch.cat([largest, rest], dim=1), ranks


def _pull_back(slopes: torch.Tensor, probs: torch.Tensor, logits: bool, k: int) -> torch.Tensor:
    """The gradient in predictions from that in what they became."""
    if k > 0:
        order = _largest(probs, k)
        rest = slopes[:, k:] * (probs.gather(1, order).sum(dim=1, keepdim=True) <= 1.0)
        slopes = torch.zeros_like(probs).scatter_(1, order, slopes[:, :k] - rest)
    if logits:
        slopes = torch.ops.aten._softmax_backward_data(slopes, probs, 1, torch.float64)
    return slopes


def _check_logits(preds: torch.Tensor) -> None:
    """Refuse rows that are probabilities already."""
    first = float(preds[0].sum(dtype=torch.float64)) if len(preds) >= 8 else 0.0
    if abs(first - 1.0) > 5e-3:  # most often
        return
    sums = preds.sum(dim=1, dtype=torch.float64)
    if bool(((sums - 1.0).abs() <= 5e-3).all() & (preds >= 0).all()):
        raise ValueError("preds must hold logits, got rows of probabilities; pass input='probs'")


def _check_rows(preds: torch.Tensor, target: torch.Tensor, logits: bool) -> None:
    """Refuse labels without a column, and numbers that are none, by the rows that were passed."""
    n, m = preds.shape
    counts = target != IGNORED
    outside = counts & ((target < 0) | (target >= m))
    if bool(outside.any()):
        row = int(outside.nonzero()[0])
        raise ValueError(
            f"target row {row} is {int(target[row])}, expected 0..{m - 1}, or {IGNORED} for a row "
            f"that does not count ({int(outside.sum())} of {n} rows are outside)"
        )
    bad = counts[:, None] & (preds.isnan() | (preds == math.inf) | (preds.isinf() & (not logits)))
    if bool(bad.any()):
        row, column = bad.nonzero()[0].tolist()
        raise ValueError(
            f"preds row {row} column {column} is {preds[row, column].item()} ({int(bad.sum())} "
            "entries are NaN or inf); if the network diverges, lower the learning rate"
        )


def _next_bandwidth(now: Any, momentum: float, median: Callable[[], Any]) -> Any:
    """`now` if it is known and does not move; the median where it is not known."""
    if momentum == 1.0 and now == now:
        return now
    found = median()
    return momentum * now + (1.0 - momentum) * found if now == now else found


# The core. Annotations are part of the schema of its operator.


def _value_and_slopes(
    preds: torch.Tensor,
    target: torch.Tensor,
    past_probs: Optional[torch.Tensor],  # noqa: UP045 - the schema is read from it
    past_target: Optional[torch.Tensor],  # noqa: UP045
    bandwidth: torch.Tensor,
    momentum: float,
    logits: bool,
    k: int,
    n_frequencies: int,
    sampler: str,
    regularization: Optional[float],  # noqa: UP045
    debias: bool,
    detach_kernel: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The value, its gradient in `preds`, and the bandwidth, in float64 from one call of the core."""
    preds = preds.detach()
    if logits:
        _check_logits(preds)
    if k > 0:  # a rank hides what its label was
        _check_rows(preds, target, logits)
    whole = _probs(preds, logits)
    probs, labels = _reduce(whole, target, k)
    own = kept = labels != IGNORED
    if past_probs is not None and past_target is not None:
        probs, labels = torch.cat([probs, past_probs]), torch.cat([labels, past_target])
        kept = labels != IGNORED
    all_count = bool(kept.all())
    rows = (probs if all_count else probs[kept]).numpy()
    n = len(rows)
    n_own = n if kept is own else int(own.sum())
    n_threads = 1 if n <= _ONE_THREAD else torch.get_num_threads()
    value, slopes = 0.0, torch.zeros_like(probs)
    try:
        gamma = _next_bandwidth(
            float(bandwidth),
            momentum,
            lambda: median_bandwidth(rows[:n_own], n_threads=n_threads) if n_own > 1 else 1.0,
        )
        if n >= FEW_ROWS:
            value, found = gradient(
                (labels if all_count else labels[kept]).numpy(),
                rows,
                debias=debias,
                detach_kernel=detach_kernel,
                method=Fourier(n_frequencies, sampler=sampler) if n_frequencies else Exact(),
                bandwidth=gamma,
                regularization=regularization,
                n_threads=n_threads,
                progress=False,
            )
            if all_count:
                slopes = torch.from_numpy(found)
            else:
                slopes[kept] = torch.from_numpy(found)
    except (InputError, InputTypeError) as error:
        _check_rows(preds, target, logits)
        words = error.renamed(_NAMES).problem
        raise ValueError(f"{words}; pass probabilities in float32 or float64, or logits") from None
    if n < FEW_ROWS and past_probs is None:
        _warn_of_few_rows()
    wide = {"dtype": torch.float64}
    slopes = _pull_back(slopes[: len(preds)], whole, logits, k)
    return torch.tensor(value, **wide), slopes, torch.tensor(gamma, **wide)


def _shapes(preds: torch.Tensor, *_: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    wide = {"dtype": torch.float64}
    return torch.empty((), **wide), torch.empty(preds.shape, **wide), torch.empty((), **wide)


def _keep_slopes(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    ctx.settings = inputs[6:]
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*inputs[:4], *output[1:])


def _through_value(ctx: Any, bar: torch.Tensor, *_: Any) -> tuple[Any, ...]:
    preds, target, past_probs, past_target, slopes, gamma = ctx.saved_tensors
    if torch.is_grad_enabled():  # somebody will differentiate this gradient
        value = _plain(preds, target, past_probs, past_target, gamma, *ctx.settings)
        if value.requires_grad:
            (slopes,) = torch.autograd.grad(value, preds, create_graph=True)
    return (bar * slopes).to(preds.dtype), *[None] * 12


_operator = torch.library.custom_op("ckce::gradient", mutates_args=(), device_types="cpu")(
    _value_and_slopes
)
_operator.register_fake(_shapes)
_operator.register_autograd(_through_value, setup_context=_keep_slopes)


class _Step(torch.autograd.Function):
    """The same without the dispatch of operators, which takes half as long as the core itself."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        output = _value_and_slopes(*inputs)
        _keep_slopes(ctx, inputs, output)
        return output

    backward = staticmethod(_through_value)


# The same in torch alone: for other devices, and for gradients of gradients.


def _plain(
    preds: torch.Tensor,
    target: torch.Tensor,
    past_probs: "torch.Tensor | None",
    past_target: "torch.Tensor | None",
    bandwidth: torch.Tensor,
    logits: bool,
    k: int,
    n_frequencies: int,
    sampler: str,
    regularization: float | None,
    debias: bool,
    detach_kernel: bool,
) -> torch.Tensor:
    """The value from (n, n) or (d, d) matrices in torch."""
    probs, labels = _reduce(_probs(preds, logits), target, k)
    if past_probs is not None and past_target is not None:
        probs, labels = torch.cat([probs, past_probs]), torch.cat([labels, past_target])
    kept = labels != IGNORED
    q, y = probs[kept], labels[kept]
    n = len(q)
    if n < FEW_ROWS:
        return q.sum() * 0.0
    points = q.detach() if detach_kernel else q
    ridge = (n**-0.25 if regularization is None else regularization) * n
    r = torch.nn.functional.one_hot(y, q.shape[1]).to(q.dtype) - q
    if n_frequencies:
        unit = fourier_frequencies(q.shape[1], n_frequencies, sampler=sampler)
        angles = points @ (torch.as_tensor(unit, device=q.device) / bandwidth).T
        waves = torch.cat([angles.cos(), angles.sin()], dim=1) / math.sqrt(n_frequencies)
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
    if preds.shape[1] < 2:
        raise ValueError(
            f"preds must have a column for every class, got shape {tuple(preds.shape)}; of a single "
            "logit z make two, torch.cat([torch.zeros_like(z), z], dim=1)"
        )
    if preds.ndim > 2:
        preds = preds.movedim(1, -1).reshape(-1, preds.shape[1])
    if preds.device.type == "mps":  # Apple's GPUs have no float64
        preds = preds.cpu()
    return preds, target.reshape(-1).to(preds.device, torch.int64)


def _value(
    preds: torch.Tensor,
    target: torch.Tensor,
    past: "tuple[torch.Tensor, torch.Tensor] | tuple[None, None]",
    bandwidth: torch.Tensor,
    momentum: float,
    logits: bool,
    k: int,
    settings: tuple[Any, ...],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Value and bandwidth, wherever the predictions are."""
    if k >= preds.shape[1]:
        raise ValueError(f"reduction=TopK({k}) needs more than {k} classes, got {preds.shape[1]}")
    with torch.autocast(preds.device.type, enabled=False):
        if preds.device.type == "cpu":
            traced = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
            run = torch.ops.ckce.gradient if traced else _Step.apply
            value, _, gamma = run(preds, target, *past, bandwidth, momentum, logits, k, *settings)
            return value, gamma.detach()
        if logits:
            _check_logits(preds.detach())
        own = _reduce(_probs(preds.detach(), logits), target, k)
        gamma = _next_bandwidth(bandwidth, momentum, lambda: _plain_median(*own))
        return _plain(preds, target, past[0], past[1], gamma, logits, k, *settings), gamma


def _check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not (math.isfinite(value) and (value > 0 or (zero and value == 0))):
        rule = "at least 0" if zero else "positive"
        raise ValueError(f"{name} must be {rule} and finite, got {value!r}")
    return float(value)


def _check_method(method: Any) -> tuple[int, str]:
    """The number of frequencies, 0 for the exact kernel, and their sampler."""
    if method == "exact" or method == Exact():
        return 0, "gaussian"
    chosen = Fourier() if method == "fourier" else method
    if not isinstance(chosen, Fourier):
        raise ValueError(f"method must be 'exact', 'fourier' or ckce.Fourier(...), got {method!r}")
    if chosen.frequencies is not None or chosen.precision != "float64":
        raise ValueError(
            f"method must draw its frequencies, in float64, got {method!r}: they follow the bandwidth"
        )
    return chosen.n_frequencies, chosen.sampler


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
    gamma = math.nan if bandwidth == "median" else _check_positive("bandwidth", bandwidth)
    _check_input(input, reduction, debias, detach_kernel)
    lam = None if regularization is None else _check_positive("regularization", regularization)
    rows, labels = _flat(preds, target)
    value, _ = _value(
        rows,
        labels,
        (None, None),
        torch.tensor(gamma, dtype=torch.float64, device=rows.device),
        1.0,
        input == "logits",
        0 if reduction is None else reduction.k,
        (*_check_method(method), lam, debias, detach_kernel),
    )
    return value.to(preds.device, torch.promote_types(preds.dtype, torch.float32))


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
        more = {
            **defaults,
            "method": (0, "gaussian"),
            "input": "logits",
            "queue": 0,
            "reduction": None,
        }
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
        logits = self.input == "logits"
        k = 0 if self.reduction is None else self.reduction.k
        past = self._past(k + 1 if k else rows.shape[1], rows.device)
        settings = (*self.method, self.regularization, self.debias, self.detach_kernel)
        now = self.bandwidth_now.to(rows.device)
        momentum = _MOMENTUM if self.ema and self.training else 1.0
        value, gamma = _value(rows, labels, past, now, momentum, logits, k, settings)
        if self.training and self.ema:
            self.bandwidth_now.copy_(gamma)
        if self.training and past[0] is not None and past[1] is not None:
            probs, labels = _reduce(_probs(rows.detach(), logits), labels, k)
            self.queued_probs = torch.cat([probs, past[0]])[: self.queue]
            self.queued_target = torch.cat([labels, past[1]])[: self.queue]
        value = self.weight * value
        return value.to(preds.device, torch.promote_types(preds.dtype, torch.float32))

    def _past(
        self, width: int, device: torch.device
    ) -> "tuple[torch.Tensor, torch.Tensor] | tuple[None, None]":
        """The queue; its empty places are rows that do not count."""
        if self.queue == 0:
            return None, None
        if self.queued_probs is None or self.queued_probs.shape[1] != width:
            self.queued_probs = torch.full((self.queue, width), 1.0 / width, dtype=torch.float64)
            self.queued_target = torch.full((self.queue,), IGNORED)
        assert self.queued_target is not None
        return self.queued_probs.to(device), self.queued_target.to(device)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:
        # Rows of the queue would not sum to 1 in 8 or 11 bits: only the device follows.
        device = fn(torch.zeros((), device=self.bandwidth_now.device)).device
        device = torch.device("cpu") if device.type == "mps" else device
        for name, buffer in self._buffers.items():
            self._buffers[name] = None if buffer is None else buffer.to(device)
        return self
