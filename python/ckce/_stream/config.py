"""The settings of a streaming state: what two states must share."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ckce._input import (
    INPUTS,
    Kernel,
    check_bandwidth,
    check_bool,
    check_choice,
    check_count,
    check_named_kernel,
    check_positive,
    check_seed,
)
from ckce._methods import METHODS, Arrays, Exact, Linear, Method, Space
from ckce._metrics.ece import check_bins
from ckce._problem import MEDIAN_ROWS, Bandwidth, Signature, Single, read_reduction

#: From so many classes on the state holds Phi'Y in place of Phi'R. Part of the file format.
_SCATTERED_CLASSES = 32


@dataclass(frozen=True)
class StreamConfig:
    """Everything that two states must share to be merged, but for the source of the bandwidth."""

    n_classes: int
    reduction: Single | None
    method: Method
    kernel: Kernel
    bandwidth: Bandwidth
    seed: int
    label_kernel: str | None  # digest
    regularization: float | None
    debias: bool
    n_bins: int
    labels: tuple[Any, ...] | None
    input: str
    normalize: bool

    @property
    def pending(self) -> bool:
        """The bandwidth is to come from the first rows."""
        return self.bandwidth.kind == "pending"

    @property
    def columns(self) -> int:
        """Classes of the problem that is solved."""
        return (
            self.n_classes if self.reduction is None else self.reduction.n_classes(self.n_classes)
        )

    @property
    def classes(self) -> tuple[Any, ...]:
        """What they are called."""
        if self.reduction is not None:
            return self.reduction.classes
        return tuple(range(self.n_classes)) if self.labels is None else self.labels

    @property
    def predicted(self) -> int | None:
        """Column of the predicted class, if it need not be the largest entry."""
        return None if self.reduction is None else self.reduction.predicted

    @property
    def scattered(self) -> bool:
        starts_with_q = self.kernel.linear_part and self.method.starts_with_q
        return starts_with_q and self.columns >= _SCATTERED_CLASSES

    @property
    def space(self) -> Space:
        """What its features are made for."""
        return Space(self.columns, self.kernel, self.bandwidth.value, self.seed, self.pending)

    @property
    def prepared(self) -> str | None:
        """What is done to the rows, in the word of a signature."""
        return "normalized" if self.normalize else None if self.input == "probs" else self.input

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain words, as state files have it."""
        words = {
            "n_classes": self.n_classes,
            "method": self.method.word,
            "kernel": self.kernel.name,
            "bandwidth": self.bandwidth.value,
            "bandwidth_source": self.bandwidth.source,
            "n_frequencies": None,
            "sampler": None,
            "random_state": None,
            "frequencies": None,
            "label_kernel": self.label_kernel,
            "regularization": self.regularization,
            "debias": self.debias,
            "n_bins": self.n_bins,
            "labels": self.labels,
            "normalize": self.normalize,
        }
        if self.input == "log_probs":  # from version 3 of files on
            words["input"] = self.input
        else:
            words["from_logits"] = self.input == "logits"
        words.update(self.method.state_words(self.seed))
        if self.reduction is not None:  # from version 4 on
            words["reduction"] = self.reduction.word
        return words

    def difference(self, other: StreamConfig) -> tuple[str, Any, Any] | None:
        """Name and values of the first setting that forbids a merge."""
        if self.input != other.input:
            return "input", self.input, other.input
        mine, theirs = self.to_dict(), other.to_dict()
        asked = mine.get("reduction"), theirs.get("reduction")
        if asked[0] != asked[1]:  # before the method that follows from it
            return "reduction", *asked
        for name in {**mine, **theirs}:
            a, b = mine.get(name), theirs.get(name)
            if name != "bandwidth_source" and a != b:
                return name, a, b
        return None

    def signature(self, n: int, weight: float | None) -> Signature:
        """Of n rows; `weight` is the sum of the weights if there are any."""
        lam = "n^-0.25" if self.regularization is None else repr(self.regularization)
        words = {
            "method": self.method.word,
            "p": "float64",
            **self.method.words("ckce", n, self.columns, self.seed),
            "k": self.kernel.name,
            **self.bandwidth.words(),
            "lam": lam,
            **self._data_words(n, weight),
        }
        if self.method.sets_bandwidth:
            words.pop("D")
        if self.label_kernel is not None:
            words["l"] = self.label_kernel
        if self.reduction is not None:
            words["reduction"] = self.reduction.word
        return Signature("ckce", words)

    def ece_signature(self, n: int, weight: float | None) -> Signature:
        """Of the top-label ECE of n rows."""
        words = {"variant": "top_label", "norm": "l1", "bins": f"{self.n_bins}(uniform)"}
        return Signature("ece", {**words, **self._data_words(n, weight)})

    def _data_words(self, n: int, weight: float | None) -> dict[str, str]:
        words = {"n": str(n), "m": str(self.n_classes)}
        if weight is not None:
            words["w"] = f"{weight!r}(streamed)"
        if self.prepared is not None:
            words["in"] = self.prepared
        return words


def read_config(header: Mapping[str, Any], method: Method) -> StreamConfig:
    """The configuration that a file claims, checked; `method` comes from its arrays."""
    words = dict(header)
    for name in ("debias", "normalize"):
        check_bool(name, words[name])
    if words.get("label_kernel") is not None and not isinstance(words["label_kernel"], str):
        raise TypeError(f"label_kernel {words['label_kernel']!r}")
    lam = words["regularization"]
    input = words.get("input")
    if input is None:
        input = "logits" if check_bool("from_logits", words["from_logits"]) else "probs"
    labels = words["labels"]
    m, reduction = check_count("n_classes", words["n_classes"]), None
    if "reduction" in words:
        reduction = read_reduction(words["reduction"])
    if reduction is not None:
        reduction.check(m)
        if words["label_kernel"] is not None:
            raise ValueError(f"label_kernel beside reduction {reduction.word}")
    config = StreamConfig(
        n_classes=m,
        reduction=reduction,
        method=method,
        kernel=check_named_kernel(words["kernel"]),
        bandwidth=_read_bandwidth(words),
        seed=0 if words["random_state"] is None else check_seed(words["random_state"]),
        label_kernel=words["label_kernel"],
        regularization=None if lam is None else check_positive("regularization", lam),
        debias=words["debias"],
        n_bins=check_bins(words["n_bins"]),
        labels=None if labels is None else tuple(labels),
        input=check_choice("input", input, INPUTS),
        normalize=words["normalize"],
    )
    claimed, settled = {**words, "labels": config.labels}, config.to_dict()
    for name in {**settled, **claimed}:
        if name not in claimed or name not in settled or claimed[name] != settled[name]:
            raise ValueError(f"{name} {claimed.get(name)!r}")
    return config


def read_method(words: Mapping[str, Any], arrays: Arrays) -> Method:
    """The method that a file claims."""
    methods: dict[str, type[Method]] = {Linear.word: Linear}
    if check_named_kernel(words["kernel"]).has_bandwidth:
        streams = (each for each in METHODS.values() if each.streams or each is Exact)
        methods = {each.word: each for each in streams}
    return methods[check_choice("method", words["method"], list(methods))].from_state(words, arrays)


def _read_bandwidth(words: Mapping[str, Any]) -> Bandwidth:
    """A bandwidth out of a file, where its source is written in words."""
    value, source = words["bandwidth"], words["bandwidth_source"]
    if not isinstance(source, str):
        raise TypeError(f"bandwidth_source {source!r}")
    if value is None:
        if source not in ("none", "frequencies", "median"):
            raise ValueError(f"bandwidth_source {source!r} without a bandwidth")
        return Bandwidth(None, "pending" if source == "median" else source)
    number = check_bandwidth(value)
    if source in ("given", "default"):
        return Bandwidth(number, source)
    kinds = "(median|median>0|no distances)"
    if found := re.fullmatch(rf"{kinds} of the first {MEDIAN_ROWS} rows", source):
        return Bandwidth(number, found[1], first_rows=True)
    if found := re.fullmatch(rf"{kinds} of a sample of (\d+)", source):
        return Bandwidth(number, found[1], sample=int(found[2]))
    raise ValueError(f"bandwidth_source {source!r}")


def without_bandwidth(config: StreamConfig) -> StreamConfig:
    """The same before its bandwidth was found in the first rows."""
    return dataclasses.replace(config, bandwidth=Bandwidth(None, "pending"))
