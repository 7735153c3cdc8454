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

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ckce import Exact, Fourier, TopK
from ckce.integrations._torch_step import IGNORED, flatten, probs_of, reduce_rows, value_of

__all__ = ["CKCELoss", "ckce_loss"]

_MOMENTUM = 0.9


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
    rows, labels = flatten(preds, target)
    value, _ = value_of(
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

    Examples
    --------
    >>> import torch
    >>> from ckce.integrations.torch import CKCELoss
    >>> logits = torch.linspace(-2, 2, 120, dtype=torch.float64).reshape(40, 3).requires_grad_()
    >>> target = torch.arange(40) % 3
    >>> calibration = CKCELoss(weight=2.0, bandwidth=0.5)
    >>> calibration
    CKCELoss(weight=2.0, bandwidth=0.5)
    >>> loss = torch.nn.functional.cross_entropy(logits, target) + calibration(logits, target)
    >>> loss.backward()
    >>> print(f"{calibration(logits, target).item():.6f}")
    -0.013760
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
        rows, labels = flatten(preds, target)
        logits = self.input == "logits"
        k = 0 if self.reduction is None else self.reduction.k
        past = self._past(k + 1 if k else rows.shape[1], rows.device)
        settings = (*self.method, self.regularization, self.debias, self.detach_kernel)
        now = self.bandwidth_now.to(rows.device)
        momentum = _MOMENTUM if self.ema and self.training else 1.0
        value, gamma = value_of(rows, labels, past, now, momentum, logits, k, settings)
        if self.training and self.ema:
            self.bandwidth_now.copy_(gamma)
        if self.training and past[0] is not None and past[1] is not None:
            probs, labels = reduce_rows(probs_of(rows.detach(), logits), labels, k)
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
