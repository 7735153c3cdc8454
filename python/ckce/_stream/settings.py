"""The options of a stream, checked before its first row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import (
    Kernel,
    as_classes,
    check_bool,
    check_count,
    check_input,
    check_named_kernel,
    check_samples,
    check_seed,
    check_threads,
)
from ckce._methods import Exact, Fourier, Landmarks, Linear, Method, Rows, check_method
from ckce._metrics.ece import check_bins
from ckce._problem import (
    NONE,
    Bandwidth,
    Single,
    check_bandwidth_option,
    check_label_kernel,
    check_regularization,
    check_single,
    default_bandwidth,
    median_of,
    reduce_samples,
)
from ckce._stream.config import StreamConfig


def make_config(
    n_classes: Any,
    *,
    reduction: Any,
    method: Any,
    bandwidth: Any,
    kernel: Any,
    label_kernel: Any,
    regularization: Any,
    random_state: Any,
    debias: Any,
    n_bins: Any,
    labels: Any,
    input: Any,
    normalize: Any,
) -> tuple[StreamConfig, NDArray[np.float64] | None]:
    """The settings of a stream, and the factor of its label kernel."""
    m = check_count("n_classes", n_classes)
    if m < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes}")
    reduced = _check_reduction(reduction, label_kernel, m)
    columns = m if reduced is None else reduced.n_classes(m)
    named = check_named_kernel(kernel)
    if isinstance(regularization, str):
        raise TypeError(
            f"regularization must be a number, got {regularization!r}: to choose it needs all rows"
        )
    lam = check_regularization(regularization, loo=False)
    assert not isinstance(lam, str)
    check_input(input, normalize)
    factor = check_label_kernel(label_kernel, m)
    asked = _check_method(method, named, columns)
    asked.check("ckce", named, columns)
    config = StreamConfig(
        n_classes=m,
        reduction=reduced,
        method=asked,
        kernel=named,
        bandwidth=_check_bandwidth(bandwidth, asked, named, columns),
        seed=check_seed(random_state),
        label_kernel=None if factor is None else factor.name,
        regularization=lam,
        debias=check_bool("debias", debias),
        n_bins=check_bins(n_bins),
        labels=None if labels is None else _check_labels(labels, m),
        input=input,
        normalize=normalize,
    )
    return config, None if factor is None else factor.factor


def settle_on_sample(
    y_true: Any, y_prob: Any, options: dict[str, Any]
) -> tuple[int, dict[str, Any], Bandwidth | None]:
    """The number of classes, options, and the bandwidth with its source, out of a sample."""
    if "n_classes" in options:
        given = options["n_classes"]
        raise TypeError(f"n_classes comes from the sample, got n_classes={given!r}")
    options = dict(options)
    threads = check_threads(options.get("n_threads"))
    samples = check_samples(
        y_true,
        y_prob,
        labels=options.pop("labels", None),
        sample_weight=options.pop("sample_weight", None),
        input=options.get("input", "probs"),
        normalize=options.get("normalize", False),
        n_threads=threads,
        ranked=True,
    )
    n_classes, numbered = samples.m, tuple(range(samples.m))
    if samples.classes != numbered and samples.ranked is None:
        options["labels"] = samples.classes
    reduction = check_single(options.get("reduction"))
    samples = reduce_samples(samples, reduction, threads)
    m = samples.m
    kernel = check_named_kernel(options.get("kernel", "linear_gaussian"))
    seed = check_seed(options.get("random_state", 0))
    method = _choose(check_method(options.get("method", "auto"), "ckce"), kernel, m)
    asked = options.pop("bandwidth", "median")
    bandwidth = _check_bandwidth(asked, method, kernel, m, chosen=True)
    if bandwidth.kind == "pending":
        found = median_of([samples], kernel, seed, threads)
        bandwidth = Bandwidth(found.value, found.kind, sample=samples.n)
    if isinstance(method, Landmarks) and not method.given:
        method.check("ckce", kernel, m)
        method = method.choose(Rows(samples.probs, kernel, bandwidth.value, seed, threads))
    options["method"] = method
    if bandwidth.value is None:
        return n_classes, options, None
    return n_classes, {**options, "bandwidth": bandwidth.value}, bandwidth


def _check_reduction(value: Any, label_kernel: Any, m: int) -> Single | None:
    reduced = check_single(value)
    if reduced is not None and label_kernel is not None:
        raise ValueError(
            f"label_kernel must be None with reduction={value!r}: the labels become "
            f"{reduced.labels_become}"
        )
    if reduced is not None:
        reduced.check(m)
    return reduced


def _choose(method: Method | None, kernel: Kernel, m: int) -> Method:
    """The method, or what "auto" is: exact where a state of fixed size can be."""
    if method is not None:
        return method
    return Exact() if kernel.has_cells(m) else Fourier()


def _check_method(value: Any, kernel: Kernel, m: int) -> Method:
    """A method whose features are fixed before the first row."""
    if not kernel.has_bandwidth:
        if value not in ("auto", "fourier", Fourier()):
            raise ValueError(f"{kernel} needs no features, got method={value!r}")
        return Linear()
    method = _choose(check_method(value, "ckce"), kernel, m)
    if isinstance(method, Exact) and not kernel.has_cells(m):
        raise ValueError(
            "method='exact' of a stream needs two classes and a Gaussian kernel, got "
            f"{m} classes and {kernel}; use ckce.Fourier(...) or ckce.Landmarks(points)"
        )
    if not method.streams and not isinstance(method, Exact):
        raise ValueError(
            "method of a stream must be 'exact' (two classes), 'fourier', ckce.Fourier(...) or "
            f"ckce.Landmarks(points), got {value!r}: others need all rows at once"
        )
    method.check_stream(value)
    return method


def _check_bandwidth(
    value: Any, method: Method, kernel: Kernel, m: int, *, chosen: bool = False
) -> Bandwidth:
    """`chosen`: landmarks may still be chosen, in a sample that has a median."""
    asked = check_bandwidth_option(value, ("default", "median"))
    if not kernel.has_bandwidth:
        if not isinstance(asked, str):
            raise ValueError(f"kernel='linear' takes no bandwidth, got bandwidth={value!r}")
        return NONE
    if method.sets_bandwidth:
        if not isinstance(asked, str):
            raise ValueError(
                f"frequencies are used as given, so bandwidth would be ignored, got bandwidth={value!r}"
            )
        return Bandwidth(None, "frequencies")
    if asked == "default":
        return default_bandwidth(m, kernel)
    if isinstance(asked, str):
        if isinstance(method, Landmarks) and not chosen:
            raise ValueError(
                f"bandwidth must be given beside landmarks, got {value!r}; or take both from a "
                "sample: CKCEAccumulator.from_sample(y, q, method=ckce.Landmarks(200))"
            )
        return Bandwidth(None, "pending")
    return Bandwidth(asked, "given")


def check_shard(shard_id: object) -> str | None:
    """Name of a part of the data."""
    if shard_id is not None and not isinstance(shard_id, str):
        raise TypeError(f"shard_id must be a string, got {shard_id!r}")
    return shard_id


def _check_labels(labels: Any, m: int) -> tuple[Any, ...]:
    names = tuple(as_classes(labels, m).tolist())
    for name in names:
        if not isinstance(name, (str, int, float, bool)):
            raise TypeError(f"labels must be strings or numbers, got {name!r}")
        if isinstance(name, float) and not math.isfinite(name):
            raise ValueError(f"labels must be finite, got {name!r}")
    return names
