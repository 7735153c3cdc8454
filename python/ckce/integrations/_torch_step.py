"""One step of the training loss: from predictions to value, slopes and bandwidth.

On the CPU the core gives value and slopes in one call; elsewhere, and for double backward, the same
in plain torch.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, Optional

import torch

from ckce import Exact, Fourier, fourier_frequencies, gradient, median_bandwidth
from ckce._input import InputError, InputTypeError, check_samples, entries_are, warn

#: Targets that do not count, as in torch.nn.functional.cross_entropy.
IGNORED = -100
#: Rows below which the value is 0: CKCE of fewer is noise.
FEW_ROWS = 32
#: Rows up to which one thread is faster than several.
_ONE_THREAD = 512
_NAMES = {"y_prob": "preds", "y_true": "target"}


@functools.cache
def _warn_of_few_rows() -> None:
    warn(
        f"CKCELoss is 0 for batches of fewer than {FEW_ROWS} rows that count; pass queue= to keep "
        "rows of past batches (this is said once)",
        RuntimeWarning,
    )


# What the rows become: probabilities in float64, or the k largest of them in order and the rest.


def probs_of(preds: torch.Tensor, logits: bool) -> torch.Tensor:
    """(n, m) in float64."""
    return torch.softmax(preds, dim=1, dtype=torch.float64) if logits else preds.double()


def _largest(probs: torch.Tensor, k: int) -> torch.Tensor:
    return torch.argsort(probs.detach(), dim=1, descending=True, stable=True)[:, :k]


def reduce_rows(
    probs: torch.Tensor, target: torch.Tensor, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
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
            f"preds row {row} column {column} is {preds[row, column].item()} "
            f"({entries_are(int(bad.sum()))} NaN or inf); if the network diverges, lower the learning rate"
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
    whole = probs_of(preds, logits)
    probs, labels = reduce_rows(whole, target, k)
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
        truth = (labels if all_count else labels[kept]).numpy()
        if 0 < n < FEW_ROWS:
            check_samples(truth, rows)
        if n >= FEW_ROWS:
            value, found = gradient(
                truth,
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
    probs, labels = reduce_rows(probs_of(preds, logits), target, k)
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


def flatten(preds: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
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


def value_of(
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
        _check_rows(preds.detach(), target, logits)
        own = reduce_rows(probs_of(preds.detach(), logits), target, k)
        gamma = _next_bandwidth(bandwidth, momentum, lambda: _plain_median(*own))
        return _plain(preds, target, past[0], past[1], gamma, logits, k, *settings), gamma
