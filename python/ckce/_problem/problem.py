"""A problem: data, method, kernel, bandwidth and lambda, all settled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ckce import _core
from ckce._input import (
    Kernel,
    Samples,
    check_kernel,
    check_memory,
    check_samples,
    check_seed,
    check_threads,
    digest,
)
from ckce._methods import (
    Cholesky,
    Fourier,
    Method,
    Rows,
    better_method,
    check_method,
    choose_method,
)
from ckce._problem import bandwidth as bandwidths
from ckce._problem.bandwidth import FEW_CLASSES, Bandwidth, check_bandwidth_option
from ckce._problem.label_kernel import LabelKernel, check_label_kernel
from ckce._problem.progress import Progress
from ckce._problem.reduction import (
    ClassWise,
    Reduction,
    TopK,
    all_one_vs_rest,
    check_reduction,
    reduce_samples,
)
from ckce._problem.regularization import (
    Regularization,
    check_regularization,
    choose_by_loo,
    default_regularization,
)
from ckce._problem.signature import Signature

_CALLABLE_LIMIT = 20_000


@dataclass(frozen=True)
class Problem:
    """A fully settled estimation problem; its signature names everything that changes the number.

    With ``reduction="class_wise"`` it stands for the m one-vs-rest problems in `parts`.
    """

    metric: str
    samples: Samples  # of the reduced problem, but for "class_wise"
    n_classes: int  # before the reduction
    classes: tuple[Any, ...]  # that the value is a sum over
    reduction: Reduction | None
    method: Method
    auto: bool  # "auto" chose the method
    kernel: Kernel
    bandwidth: Bandwidth
    regularization: Regularization
    label_kernel: LabelKernel | None
    seed: int
    n_threads: int
    #: The first and the last feature map, which CKCE, JKCE and the test of one problem share; each
    #: with the rows that it was made for, or other rows might get their `id`.
    cache: dict[Any, tuple[Any, _core.Features]] = field(
        default_factory=dict, compare=False, repr=False
    )
    #: The smoother of `miscalibration`, which a witness of the same rows shares.
    smoothed: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "cache": {},
            "smoothed": {},
        }  # what is computed is no part of a pickle

    @property
    def parts(self) -> Iterator[Problem]:
        """The problems over whose values the mean is taken."""
        if not isinstance(self.reduction, ClassWise):
            yield self
            return
        for samples in all_one_vs_rest(self.samples):
            yield replace(self, samples=samples, reduction=None)

    @property
    def _columns(self) -> int:
        """Columns of the problems that are solved."""
        return 2 if isinstance(self.reduction, ClassWise) else self.samples.m

    @property
    def n_parts(self) -> int:
        return self.n_classes if isinstance(self.reduction, ClassWise) else 1

    @property
    def ridge(self) -> float:
        """c = lambda N."""
        return self.regularization.value * self.samples.weight

    @property
    def data(self) -> tuple[Any, Any, Any, Any]:
        """Leading arguments of most functions of the core."""
        samples = self.samples
        factor = None if self.label_kernel is None else self.label_kernel.factor
        return samples.probs, samples.labels, samples.weights, factor

    @property
    def rows(self) -> Rows:
        """What feature maps are made for."""
        gamma, probs = self.bandwidth.value, self.samples.probs
        return Rows(probs, self.kernel, gamma, self.seed, self.n_threads)

    def features(self, method: Method, progress: Progress | None = None) -> _core.Features:
        """The feature map of a method that has one, for the rows of this problem; made once."""
        rows = self.rows
        key = (method, rows.kernel.name, rows.bandwidth, rows.seed, id(rows.probs))
        if key not in self.cache:
            made = method.features(rows, progress)
            assert made is not None
            for other in list(self.cache)[1:]:  # the first is the problem's own
                del self.cache[other]
            self.cache[key] = rows.probs, made
        return self.cache[key][1]

    def of_jkce(self) -> Problem:
        """JKCE of the same data, by the same method, kernel and bandwidth."""
        return replace(self, metric="jkce", method=self.method.of_jkce())

    def price(self, full: bool) -> float:
        """Bytes that a call needs beyond its input, at most."""
        rows = self.rows
        n, m = rows.shape
        if self.kernel.gram is not None:
            return 8.0 * 4.0 * n**2
        if not (self.auto and isinstance(self.method, Cholesky)) or self.metric == "jkce":
            return 8.0 * self.method.price(rows, full, self.metric)
        # A factor that misses too much gives way to another method, and is kept.
        way = self.method.kept(rows) + better_method(n, m).price(rows, True)
        return 8.0 * max(self.method.price(rows, True), way)

    def check_memory(self, full: bool, beside: float = 0.0) -> None:
        """Refuse a problem whose matrices do not fit into memory, `beside` other bytes."""

        def advice(available: float) -> str:
            return self._what_fits(available - beside, full)

        check_memory(self.price(full) + beside, self._in_short, advice)

    def _what_fits(self, available: float, full: bool) -> str:
        """The smallest change that fits into memory, in words."""
        if self.kernel.gram is not None:
            return "use a named kernel, which needs no Gram matrix"

        def fits(**changes: Any) -> bool:
            return replace(self, auto=False, **changes).price(full) <= available

        for method in self.method.smaller():
            if fits(method=method):
                return f"{self.method.advice}: method=ckce.{method!r}"
        if self.kernel.spectrum is not None and fits(method=Fourier()):
            return "use method='fourier', whose memory is flat in n"
        if fits(n_threads=1):
            return "pass n_threads=1"
        n, m = self.rows.shape
        if m > 2 * FEW_CLASSES and self.reduction is None and self.label_kernel is None:
            ranks = replace(self.samples, probs=np.broadcast_to(0.0, (n, FEW_CLASSES + 1)))
            method = choose_method(n, FEW_CLASSES + 1, self.kernel)
            if fits(samples=ranks, method=method):
                return f"pass reduction=ckce.TopK({FEW_CLASSES})"
        return "pass fewer rows"

    def _in_short(self) -> str:
        return f"method={self.method.word!r} with n = {self.samples.n}, m = {self.samples.m}"

    @property
    def signature(self) -> Signature:
        """Everything that changes the number, in words."""
        samples = self.samples
        words = {
            "method": self.method.word,
            "p": "float64",
            **self.method.words(self.metric, samples.n, self._columns, self.seed),
            "k": self.kernel.word,
            **self.bandwidth.words(),
            "n": str(samples.n),
            "m": str(self.n_classes),
        }
        if self.metric != "jkce":
            words["lam"] = self.regularization.word
        if self.reduction is not None:
            words["reduction"] = self.reduction.word
        if samples.weights is not None:
            words["w"] = f"{samples.weight!r}({digest(samples.weights)})"
        if samples.groups is not None:
            words["groups"] = f"{samples.n_groups}({digest(samples.groups)})"
        if self.label_kernel is not None:
            words["l"] = self.label_kernel.name
        if samples.prepared is not None:
            words["in"] = samples.prepared
        return Signature(self.metric, words)


@dataclass(frozen=True)
class Settings:
    """What was asked for, checked before anybody looks at the data."""

    method: Method | None  # None is "auto"
    kernel: Kernel
    bandwidth: float | str
    regularization: float | str | None
    reduction: Reduction | None
    label_kernel: Any
    seed: int
    n_threads: int

    def columns(self, m: int) -> int:
        """Columns of the problems that m classes are reduced to."""
        return m if self.reduction is None else self.reduction.n_classes(m)

    def reduce(self, samples: Samples) -> Samples:
        """The samples of the reduced problem, but for "class_wise"."""
        return reduce_samples(samples, self.reduction, self.n_threads)


def check_settings(
    metric: str,
    *,
    method: Any = "auto",
    kernel: Any = "linear_gaussian",
    bandwidth: Any = "median",
    regularization: Any = None,
    reduction: Any = None,
    label_kernel: Any = None,
    random_state: Any = 0,
    n_threads: Any = None,
) -> Settings:
    """Check every option that does not need the data."""
    asked, named = check_method(method, metric), check_kernel(kernel)
    reduced = check_reduction(reduction)
    if reduced is not None and label_kernel is not None:
        raise ValueError(
            f"label_kernel must be None with reduction={reduction!r}: the labels become "
            f"{reduced.labels_become}"
        )
    gamma = check_bandwidth_option(bandwidth)
    if not isinstance(gamma, str):
        if not named.has_bandwidth:
            raise ValueError(f"{named} takes no bandwidth, got bandwidth={bandwidth!r}")
        if asked is not None and asked.sets_bandwidth:
            raise ValueError(
                "frequencies are used as given, so bandwidth would be ignored, got "
                f"bandwidth={bandwidth!r}"
            )
    # For the test, leave-one-out would look at the labels, and each draw would need its own lambda.
    lam = check_regularization(regularization, loo=metric != "calibration_test")
    return Settings(
        asked,
        named,
        gamma,
        lam,
        reduced,
        label_kernel,
        check_seed(random_state),
        check_threads(n_threads),
    )


def settle(
    metric: str,
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any,
    labels: Any,
    input: str,
    normalize: bool,
    groups: Any = None,
    **options: Any,
) -> Problem:
    """Check every argument once, and settle what will be computed."""
    settings = check_settings(metric, **options)
    samples = check_samples(
        y_true,
        y_prob,
        labels=labels,
        sample_weight=sample_weight,
        input=input,
        normalize=normalize,
        n_threads=settings.n_threads,
        groups=groups,
        scan=not isinstance(settings.reduction, TopK),  # which checks what it reads
        ranked=True,
    )
    return problem_of(metric, samples, settings)


def problem_of(
    metric: str,
    samples: Samples,
    settings: Settings,
    *,
    bandwidth: Bandwidth | None = None,
    regularization: Regularization | None = None,
    reduced: Samples | None = None,
) -> Problem:
    """The problem of checked samples.

    A bandwidth or lambda of several models may be given, and samples that are `reduced` already.
    """
    n_classes, classes = samples.m, samples.classes
    samples = settings.reduce(samples) if reduced is None else reduced
    if isinstance(settings.reduction, TopK):
        classes = samples.classes
    m = settings.columns(samples.m)
    kernel, method = settings.kernel, settings.method
    if kernel.gram is not None and samples.n > _CALLABLE_LIMIT:
        raise ValueError(
            f"a callable kernel needs the whole Gram matrix, and n must be at most "
            f"{_CALLABLE_LIMIT}, got {samples.n}; use a named kernel"
        )
    auto = method is None
    if method is None:
        method = choose_method(samples.n, m, kernel)
    method.check(metric, kernel, m)
    problem = Problem(
        metric=metric,
        samples=samples,
        n_classes=n_classes,
        classes=classes,
        reduction=settings.reduction,
        method=method,
        auto=auto,
        kernel=kernel,
        bandwidth=_bandwidth(samples, method, settings) if bandwidth is None else bandwidth,
        regularization=default_regularization(samples.weight),
        label_kernel=check_label_kernel(settings.label_kernel, m),
        seed=settings.seed,
        n_threads=settings.n_threads,
    )
    asked = settings.regularization
    if regularization is None and isinstance(asked, float):
        regularization = Regularization(asked, "given")
    if regularization is None and asked == "loo":
        regularization = choose_by_loo([problem])
    if regularization is None:
        return problem
    return replace(problem, regularization=regularization)


def _bandwidth(samples: Samples, method: Method, settings: Settings) -> Bandwidth:
    kernel, asked = settings.kernel, settings.bandwidth
    if method.sets_bandwidth:
        return Bandwidth(None, "frequencies")
    if not kernel.has_bandwidth:
        return bandwidths.NONE
    if isinstance(asked, float):
        return Bandwidth(asked, "given")
    if asked == "default":
        return bandwidths.default_bandwidth(settings.columns(samples.m), kernel)
    return bandwidths.median_of(
        [samples],
        kernel,
        settings.seed,
        settings.n_threads,
        class_wise=isinstance(settings.reduction, ClassWise),
    )
