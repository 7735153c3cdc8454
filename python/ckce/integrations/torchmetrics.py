"""CKCE as a torchmetrics ``Metric``.

Examples
--------
>>> import torch
>>> from ckce.integrations.torchmetrics import CKCE
>>> metric = CKCE(num_classes=2, output="ckce")
>>> preds = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
>>> metric.update(preds, torch.tensor([0, 1, 1]))
>>> print(f"{metric.compute().item():.6f}")
0.077414
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed
from torchmetrics import Metric
from torchmetrics.utilities.distributed import gather_all_tensors

from ckce import CKCEAccumulator, TopKPredictions
from ckce._input import InputError, InputTypeError, when_made

__all__ = ["CKCE"]

_OUTPUTS = (
    "ckce_debiased",
    "ckce",
    "ckce_floor",
    "jkce",
    "jkce_biased",
    "ece_top_label",
    "accuracy",
    "log_loss",
    "brier",
)
_NAMES = {"y_prob": "preds", "y_true": "target"}
_HINTS = {
    **when_made("metric"),
    "one_based": "target looks 1-based: pass target - 1",
    "order": "predictions come first: update(preds, target)",
    "predicted": "pass probabilities, or preds.double() if they are meant as such",
    "rounding": "pass preds.clamp(min=0) if that is rounding",
}


def _agreed(configs: torch.Tensor) -> torch.Tensor:
    """Reduction of the state that stands for the options: all must have the same."""
    if not bool((configs == configs[0]).all()):
        raise ValueError(
            "options must be the same in all metrics that are merged or synchronised, got different "
            "ones (bandwidth, method, random_state, ...)"
        )
    return configs[0]


def _home(device: torch.device) -> torch.device:
    """Where float64 exists: Apple's GPUs have none."""
    return torch.device("cpu") if device.type == "mps" else device


class CKCE(Metric):
    """Conditional kernel calibration error of a stream of batches, also over several processes.

    The state is one vector of float64 sums whatever the dtype of the model: ``.half()`` or
    ``.to(torch.bfloat16)`` of a parent module move it to a device but never round it. Processes are
    synchronised by one ``all_reduce`` of it. Metrics with different options are never merged.

    Parameters
    ----------
    num_classes : int
        m.
    bandwidth : float, "default" or "first_batch"
        The kernel's bandwidth. ``"default"`` needs no data, see `ckce.CKCEAccumulator`.
        ``"first_batch"`` takes the median of the first batch, in one process only.
    output : {"ckce_debiased", "ckce", "ckce_floor", "jkce", "jkce_biased", "ece_top_label", \
"accuracy", "log_loss", "brier"}
        What `compute` returns, as in `ckce.StreamEvaluation`. Metrics that differ only in this
        share one state in a ``MetricCollection``.
    input : {"probs", "logits", "log_probs"}
        What `preds` holds; never guessed.
    ignore_index : int, optional
        Targets that are left out.
    **kwargs
        Options of `ckce.CKCEAccumulator` (``reduction``, ``method``, ``kernel``, ``regularization``,
        ``random_state``, ``n_bins``, ...), and of ``torchmetrics.Metric``.

    Notes
    -----
    `update` takes predictions first, as torchmetrics has it: ``update(preds, target)`` with shapes
    (N, C) and (N,), or (N, C, d1, ...) and (N, d1, ...); for two classes also the probabilities of
    class 1 in the shape of the target. They are moved to the CPU. `compute` is NaN before the first
    row.

    Examples
    --------
    >>> import torch
    >>> from ckce.integrations.torchmetrics import CKCE
    >>> metric = CKCE(num_classes=3, input="logits")
    >>> logits = torch.linspace(-2, 2, 120, dtype=torch.float64).reshape(40, 3)
    >>> for rows in (slice(25), slice(25, 40)):
    ...     metric.update(logits[rows], (torch.arange(40) % 3)[rows])
    >>> print(f"{metric.compute().item():.6f}")
    -0.006880
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    sums: torch.Tensor
    config: torch.Tensor
    _forward_cache: Any

    _OF_CKCE = (
        "reduction",
        "method",
        "kernel",
        "label_kernel",
        "regularization",
        "random_state",
        "debias",
        "n_bins",
        "normalize",
        "n_threads",
    )

    def __init__(
        self,
        num_classes: int,
        bandwidth: float | str = "default",
        *,
        output: str = "ckce_debiased",
        input: str = "probs",
        ignore_index: int | None = None,
        **kwargs: Any,
    ) -> None:
        options = {name: kwargs.pop(name) for name in self._OF_CKCE if name in kwargs}
        super().__init__(**kwargs)
        if output not in _OUTPUTS:
            raise ValueError(f"output must be one of {list(_OUTPUTS)}, got {output!r}")
        if output in ("ckce_debiased", "ckce_floor") and not options.get("debias", True):
            raise ValueError(f"output={output!r} needs debias=True, got False")
        if isinstance(bandwidth, str) and bandwidth not in ("default", "first_batch"):
            raise ValueError(
                f"bandwidth must be a number, 'default' or 'first_batch', got {bandwidth!r}"
            )
        if options.get("kernel") == "linear":
            bandwidth = "default"
        self.output, self.ignore_index = output, ignore_index
        self._options = {**options, "input": input}
        self._waits = bandwidth == "first_batch"
        gamma: float | str = 1.0 if isinstance(bandwidth, str) and self._waits else bandwidth
        self._settle(CKCEAccumulator(num_classes, bandwidth=gamma, **self._options))
        # First, so that a merge is refused before a sum has changed.
        self.add_state("config", default=self._name, dist_reduce_fx=_agreed)
        sums = torch.from_numpy(self._template.sums())
        self.add_state("sums", default=sums, dist_reduce_fx="sum")

    def _settle(self, template: CKCEAccumulator) -> None:
        self._template = template
        words = json.dumps(template.config, sort_keys=True).encode()
        self._name = torch.tensor(int(hashlib.sha256(words).hexdigest()[:15], 16))

    def __repr__(self) -> str:
        config = self._template.config
        gamma = "first_batch" if self._waits else config["bandwidth"]
        return (
            f"CKCE(num_classes={config['n_classes']}, bandwidth={gamma!r}, output={self.output!r}, "
            f"method={self._template.method!r}, kernel={config['kernel']!r})"
        )

    def update(self, preds: "torch.Tensor | TopKPredictions", target: torch.Tensor) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : tensor of shape (N, C), (N, C, d1, ...), or that of the target for two classes
            Predictions, as `input` says; or `ckce.TopKPredictions` of N rows, with
            ``reduction=ckce.TopK(k)``.
        target : tensor of shape (N,) or (N, d1, ...)
            Labels; the ids of `ckce.TopKPredictions`.
        """
        rows: torch.Tensor | TopKPredictions
        if isinstance(preds, TopKPredictions):
            rows, labels = self._ranked(preds, target.detach().cpu())
        else:
            rows, labels = self._rows(preds.detach().cpu(), target.detach().cpu())
        try:
            if self._waits and len(labels):
                self._take_bandwidth(rows, labels)
            batch = self._template.fresh()
            batch.update(labels, rows)
        except (InputError, InputTypeError) as error:
            raise error.renamed(_NAMES, _HINTS) from None
        self.sums = self.sums + torch.from_numpy(batch.sums()).to(self.sums.device)

    def _ranked(
        self, preds: TopKPredictions, target: torch.Tensor
    ) -> tuple[TopKPredictions, torch.Tensor]:
        if self.ignore_index is not None:
            raise ValueError(
                f"ignore_index must be None with ckce.TopKPredictions, got {self.ignore_index}: leave "
                "these rows out of both"
            )
        return preds, target.reshape(-1)

    def _rows(self, preds: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Predictions and labels, row by row, without those that are ignored."""
        if target.is_floating_point() or target.is_complex():
            raise TypeError(
                f"target must hold integers, got {target.dtype}; use target.long(), and note that "
                "predictions come first: update(preds, target)"
            )
        classes = self._template.n_classes
        if preds.ndim == target.ndim + 1:
            if preds.shape[1] != classes or preds.shape[2:] != target.shape[1:]:
                raise ValueError(
                    f"preds must have shape (N, {classes}, ...) for a target of shape (N, ...), got "
                    f"{tuple(preds.shape)} and {tuple(target.shape)}"
                )
            rows = preds.movedim(1, -1).reshape(-1, classes)
        elif preds.shape == target.shape and classes == 2:
            rows = preds.reshape(-1)
        else:
            raise ValueError(
                f"preds and target must have shapes (N, {classes}, ...) and (N, ...), got "
                f"{tuple(preds.shape)} and {tuple(target.shape)}"
            )
        labels = target.reshape(-1)
        if self.ignore_index is not None:
            kept = labels != self.ignore_index
            rows, labels = rows[kept], labels[kept]
        return rows, labels

    def _take_bandwidth(self, rows: "torch.Tensor | TopKPredictions", labels: torch.Tensor) -> None:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            raise ValueError(
                "bandwidth='first_batch' is for one process, got several: each would take another; "
                "give a number, or 'default'"
            )
        self._settle(CKCEAccumulator.from_sample(labels, rows, **self._options))
        self._waits = False
        self.config = self._name.to(self.config.device)
        self._defaults["config"] = self._name.to(self._defaults["config"].device)

    def compute(self) -> torch.Tensor:
        """The value of all rows so far, float64."""
        if int(self.config) != int(self._defaults["config"]):
            raise ValueError("state must come from a metric with the same options, got another")
        acc = self._template.fresh()
        acc.add_sums(self.sums.cpu().numpy())
        value: Any = None
        if acc.n_samples > 0:
            value = acc.compute() if self.output == "ckce" else getattr(acc.evaluate(), self.output)
        number = float("nan") if value is None else float(value)
        return torch.tensor(number, dtype=torch.float64, device=self.sums.device)

    def merge_state(self, incoming_state: "dict[str, Any] | Metric") -> None:
        """Add the state of another metric with the same options."""
        super().merge_state(incoming_state)
        self._computed = None  # else compute would return what it returned before
        self._update_count += getattr(incoming_state, "_update_count", 1)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot one value, or a sequence of them; see ``torchmetrics.Metric.plot``."""
        return self._plot(val, ax)

    def set_dtype(self, dst_type: Any) -> "CKCE":
        """Nothing: the sums stay float64."""
        return self

    def _apply(self, fn: Callable[..., Any], exclude_state: Sequence[str] = "") -> Any:
        # 21 MB of sums over many rows have no meaning in 8 or 24 bits: only the device follows.
        results: Any = self._computed, self._forward_cache
        this = super()._apply(fn, exclude_state=tuple(self._defaults))
        device = _home(self._device)
        for key, default in self._defaults.items():
            self._defaults[key] = default.to(device)
            setattr(self, key, getattr(self, key).to(device))
        self._computed, self._forward_cache = (
            None if result is None else result.to(device) for result in results
        )
        self._dtype = torch.float64
        return this

    def _sync_dist(
        self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any = None
    ) -> None:
        if dist_sync_fn is not gather_all_tensors:
            super()._sync_dist(dist_sync_fn, process_group)
            return
        # all_gather would hold the states of all processes at a time.
        group = process_group or self.process_group
        names = torch.stack([self.config, -self.config])
        torch.distributed.all_reduce(names, torch.distributed.ReduceOp.MAX, group)
        _agreed(torch.stack([names[0], -names[1]]))
        total = self.sums.clone()
        torch.distributed.all_reduce(total, torch.distributed.ReduceOp.SUM, group)
        self.sums = total
