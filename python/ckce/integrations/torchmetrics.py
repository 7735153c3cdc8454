"""CKCE as a torchmetrics ``Metric``.

Examples
--------
>>> import torch
>>> from ckce.integrations.torchmetrics import CKCE
>>> metric = CKCE(num_classes=2, bandwidth=0.4)
>>> preds = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
>>> metric.update(preds, torch.tensor([0, 1, 1]))
>>> print(f"{metric.compute().item():.6f}")
0.066771
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed
from torchmetrics import Metric
from torchmetrics.utilities.distributed import gather_all_tensors

from ckce import CKCEAccumulator

__all__ = ["CKCE"]

_OUTPUTS = (
    "ckce",
    "ckce_debiased",
    "ckce_floor",
    "jkce",
    "jkce_biased",
    "accuracy",
    "log_loss",
    "brier",
)


def _agreed(configs: torch.Tensor) -> torch.Tensor:
    """Reduction of the state that stands for the options: all must have the same."""
    if not bool((configs == configs[0]).all()):
        raise ValueError(
            "options must be the same in all metrics that are merged or synchronised, got different "
            "ones (bandwidth, random_state, n_frequencies, ...)"
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
    bandwidth : float, optional
        The kernel's bandwidth. It must be known beforehand, since every process must use the same:
        `ckce.median_bandwidth` of some predictions. Only ``kernel="linear"`` has none.
    output : {"ckce", "ckce_debiased", "ckce_floor", "jkce", "jkce_biased", "accuracy", \
"log_loss", "brier"}
        What `compute` returns, as in `ckce.StreamEvaluation`. Metrics that differ only in this
        share one state in a ``MetricCollection``.
    options : dict, optional
        Options of `ckce.CKCEAccumulator`: ``kernel``, ``n_frequencies``, ``random_state``,
        ``regularization``, ``debias``, ``from_logits``, ...
    **kwargs
        Of ``torchmetrics.Metric``.

    Notes
    -----
    `update` takes predictions first, as torchmetrics has it: ``update(preds, target)`` with shapes
    (N, C) and (N,). They are moved to the CPU. `compute` is NaN before the first row.
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0

    sums: torch.Tensor
    config: torch.Tensor
    _forward_cache: Any

    def __init__(
        self,
        num_classes: int,
        bandwidth: float | None = None,
        *,
        output: str = "ckce",
        options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if output not in _OUTPUTS:
            raise ValueError(f"output must be one of {list(_OUTPUTS)}, got {output!r}")
        options = dict(options or {})
        if "shard_id" in options:
            raise ValueError("options must not hold shard_id, got one for all processes")
        if bandwidth is not None:
            options["bandwidth"] = bandwidth
        self.output = output
        self._template = CKCEAccumulator(num_classes, **options)
        if self._template.config["bandwidth_source"] == "median":
            raise ValueError(
                "bandwidth must be given, got None: all processes need the same; take "
                "ckce.median_bandwidth(y_prob) of some predictions"
            )
        if output in ("ckce_debiased", "ckce_floor") and not options.get("debias", True):
            raise ValueError(f"output={output!r} needs debias=True, got False")
        words = json.dumps(self._template.config, sort_keys=True).encode()
        name = int(hashlib.sha256(words).hexdigest()[:15], 16)
        # First, so that a merge is refused before a sum has changed.
        self.add_state("config", default=torch.tensor(name), dist_reduce_fx=_agreed)
        sums = torch.from_numpy(self._template.sums())
        self.add_state("sums", default=sums, dist_reduce_fx="sum")

    def update(self, preds: torch.Tensor, target: torch.Tensor) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : tensor of shape (N, C)
            Predicted probabilities (logits with ``options={"from_logits": True}``).
        target : tensor of shape (N,)
            Labels.
        """
        batch = self._template.fresh()
        batch.update(target.detach().cpu(), preds.detach().cpu())
        self.sums = self.sums + torch.from_numpy(batch.sums()).to(self.sums.device)

    def compute(self) -> torch.Tensor:
        """The value of all rows so far, float64."""
        if int(self.config) != int(self._defaults["config"]):
            raise ValueError("state must come from a metric with the same options, got another")
        acc = self._template.fresh()
        acc.add_sums(self.sums.cpu().numpy())
        value: float | None = float("nan")
        if acc.n_samples > 0:
            value = acc.compute() if self.output == "ckce" else getattr(acc.evaluate(), self.output)
        number = float("nan") if value is None else value
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
