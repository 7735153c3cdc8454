"""The settings of a streaming state: what two states must share, and what a file may claim."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input.samples import (
    LARGEST_WEIGHT,
    LEAST_WEIGHT,
    check_bandwidth,
    check_bool,
    check_choice,
    check_count,
    check_positive,
    check_seed,
)
from ckce._methods.fourier import SAMPLERS
from ckce._methods.landmarks import Landmarks
from ckce._metrics.ece import check_bins, preparation
from ckce._problem.kernels import KERNELS
from ckce._problem.memory import check_memory

#: From so many classes on the state holds Phi'Y in place of Phi'R. Part of the file format.
_SCATTERED_CLASSES = 32


@dataclass(frozen=True)
class StreamConfig:
    """Everything that two states must share to be merged, but for the source of the bandwidth."""

    n_classes: int
    method: str
    kernel: str
    bandwidth: float | None
    bandwidth_source: str
    n_frequencies: int | None
    sampler: str | None
    random_state: int | None
    frequencies: str | None  # digest, if given
    label_kernel: str | None  # digest
    regularization: float | None
    debias: bool
    n_bins: int
    labels: tuple[Any, ...] | None
    normalize: bool
    from_logits: bool
    landmarks: str | None = None  # their number and digest

    def to_dict(self) -> dict[str, Any]:
        """All fields; those of landmarks only where there are any, as version 1 of files had it."""
        fields = dataclasses.asdict(self)
        return {name: x for name, x in fields.items() if name != "landmarks" or x is not None}

    @property
    def pending(self) -> bool:
        """The bandwidth is to come from the first rows."""
        return self.bandwidth is None and self.bandwidth_source == "median"

    @property
    def linear_part(self) -> bool:
        return KERNELS[self.kernel].linear_part

    @property
    def scattered(self) -> bool:
        starts_with_q = self.linear_part and self.method in ("fourier", "linear")
        return starts_with_q and self.n_classes >= _SCATTERED_CLASSES

    def difference(self, other: StreamConfig) -> tuple[str, Any, Any] | None:
        """Name and values of the first field that forbids a merge."""
        for field in dataclasses.fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if field.name != "bandwidth_source" and mine != theirs:
                return field.name, mine, theirs
        return None

    def signature(self, n: int, weight: float | None) -> str:
        """Of n rows; `weight` is the sum of the weights if there are any."""
        words = ["ckce", "v0.1", f"method:{self.method}"]
        if self.frequencies is not None:
            words.append(f"frequencies:{self.frequencies}")
        elif self.sampler is not None:
            words.append(f"sampler:{self.sampler}")
        elif self.landmarks is not None:
            words.append(f"landmarks:{self.landmarks}")
        words.append(f"k:{self.kernel}")
        if self.bandwidth is not None:
            source = "" if self.bandwidth_source == "given" else f"({self.bandwidth_source})"
            words.append(f"gamma:{self.bandwidth!r}{source}")
        if self.n_frequencies is not None:
            words.append(f"D:{self.n_frequencies}")
        if self.random_state is not None:
            words.append(f"s:{self.random_state}")
        lam = "n^-0.25" if self.regularization is None else repr(self.regularization)
        words += [f"lam:{lam}", f"n:{n}", f"m:{self.n_classes}"]
        if weight is not None:
            words.append(f"w:{weight!r}(streamed)")
        if self.label_kernel is not None:
            words.append(f"l:{self.label_kernel}")
        prepared = preparation(self.normalize, self.from_logits)
        if prepared is not None:
            words.append(f"in:{prepared}")
        words.append("p:float64")
        return "|".join(words)


def check_shapes(
    config: StreamConfig, arrays: dict[str, NDArray[Any]], landmarks: Landmarks | None
) -> None:
    """Refuse a configuration that its arrays do not fit, before memory is taken for it."""
    m = d = check_count("n_classes", config.n_classes)
    check_bins(config.n_bins)
    for name in ("debias", "normalize", "from_logits"):
        check_bool(name, getattr(config, name))
    if not isinstance(config.bandwidth_source, str):
        raise TypeError(f"bandwidth_source {config.bandwidth_source!r}")
    check_choice("kernel", config.kernel, list(KERNELS))
    methods = ["linear"] if config.kernel == "linear" else ["fourier", "landmarks"]
    check_choice("method", config.method, methods)
    if config.regularization is not None:
        check_positive("regularization", config.regularization)
    if config.bandwidth is not None:
        check_bandwidth(config.bandwidth)
    factor = arrays.get("label_factor", np.zeros((m, 1)))
    if factor.ndim != 2 or len(factor) != m or not 1 <= factor.shape[1] <= m:
        raise ValueError(f"label_factor of shape {factor.shape} for {m} classes")
    if ("label_factor" in arrays) != (config.label_kernel is not None):
        raise ValueError(f"label_factor beside label_kernel {config.label_kernel!r}")
    if config.method == "fourier":
        frequencies = arrays["frequencies"]
        if frequencies.ndim != 2 or frequencies.shape[1] != m or len(frequencies) < 1:
            raise ValueError(f"frequencies of shape {frequencies.shape} for {m} classes")
        if config.frequencies is None:  # they were drawn
            check_seed(config.random_state)
            check_choice("sampler", config.sampler, SAMPLERS)
            if config.n_frequencies != len(frequencies):
                raise ValueError(f"{len(frequencies)} frequencies of {config.n_frequencies!r}")
        chebyshev = arrays.get("chebyshev", np.zeros((0, 0)))
        if not all((np.abs(array) <= 1e100).all() for array in (frequencies, chebyshev)):
            raise ValueError("frequencies that cannot have been drawn")
        if chebyshev.ndim != 2 or chebyshev.shape[0] != chebyshev.shape[1]:
            raise ValueError(f"chebyshev of shape {chebyshev.shape}")
        if len(chebyshev) and m != 2:
            raise ValueError(f"chebyshev for {m} classes")
        d = (len(chebyshev) or 2 * len(frequencies)) + (m if config.linear_part else 0)
    if config.landmarks != (None if landmarks is None else landmarks.name):
        raise ValueError(f"landmarks that are not {config.landmarks}")
    if landmarks is not None:
        check_bandwidth(config.bandwidth)
        d = len(landmarks.points)
    needed = 8.0 * d * (m + (6 if config.debias else 2) * d)
    check_memory(needed, f"a state of {m} classes and {d} features", "it may be damaged")
    triangles = d * (d + 1) // 2 * (3 if config.debias else 1)
    expected = 8 + 2 * m + 4 * config.n_bins + m * d + triangles
    if "sums" in arrays and arrays["sums"].shape != (expected,):
        raise ValueError(f"sums of shape {arrays['sums'].shape}, expected ({expected},)")


def check_sums(sums: NDArray[np.float64]) -> None:
    if sums.ndim != 1 or len(sums) < 2 or np.isnan(sums).any():
        raise ValueError(
            "sums must be a vector of numbers, rows and weight first, got other things"
        )
    rows, weight = (float(number) for number in sums[:2])
    if not (
        rows == 0.0 == weight or (rows >= 1.0 and possible_weights(weight) and rows <= 2.0**53)
    ):
        raise ValueError(f"sums must be over rows and their weight, got {rows:g} and {weight:g}")


def possible_weights(weights: Any) -> Any:
    """Weights that the door lets in."""
    return (weights >= LEAST_WEIGHT) & (weights <= LARGEST_WEIGHT)
