"""What the tests share: data, the one list of estimators, the tolerance."""

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ckce
from ckce import _core, reference
from ckce._input.kernels import KERNELS

RANK = 6

# Landmarks as a method of ckce, jkce and calibration_test need the rebuilt core.
NEW_CORE = hasattr(_core._module, "Features")
needs_new_core = pytest.mark.skipif(not NEW_CORE, reason="the old core has no Features")


def sample(n=40, m=3, seed=0, concentration=1.0):
    """Rows of the simplex, and labels drawn from their square roots: not calibrated."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(m, concentration), n)
    odds = np.sqrt(q) + 1e-3
    odds /= odds.sum(axis=1, keepdims=True)
    y = np.minimum((odds.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), m - 1)
    return y, q


def label_kernel(m, seed=1, rank=None):
    root = np.random.default_rng(seed).normal(size=(m, m if rank is None else rank))
    return root @ root.T


def _duplicates():
    y, q = sample(9, 3, seed=3)
    return np.concatenate([y, y[::-1]]), np.concatenate([q, q])


# Edge data of every estimator: name -> (y, q).
EDGES = {
    "more classes than rows": sample(5, 12, seed=1),
    "many classes": sample(30, 40, seed=2),
    "one row": sample(1, 3, seed=3),
    "two rows": sample(2, 2, seed=4),
    "duplicates": _duplicates(),
    "hard": (np.arange(20) % 3, np.eye(4)[np.arange(20) % 4]),
    "hard and right": (np.arange(8) % 3, np.eye(3)[np.arange(8) % 3]),
    "constant": (np.arange(10) % 3, np.full((10, 3), [0.5, 0.25, 0.25])),
    "two classes": sample(30, 2, seed=5),
    "nearly hard": sample(25, 5, seed=6, concentration=0.02),
    "nearly constant": sample(25, 5, seed=7, concentration=1e6),
    "a panel and one row": sample(129, 3, seed=8),
    "a class is absent": (np.zeros(12, int), sample(12, 3, seed=9)[1]),
}


@st.composite
def calibration_sets(draw, max_n=12, max_m=6):
    """Labels and rows built from arbitrary floats, zeros and repetitions among them."""
    n, m = draw(st.integers(1, max_n)), draw(st.integers(2, max_m))
    raw = draw(hnp.arrays(np.float64, (n, m), elements=st.floats(0, 1)))
    raw[raw.sum(axis=1) == 0] = 1.0
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, m - 1)))
    q = raw / raw.sum(axis=1, keepdims=True)
    assume(oracle_can_see(y, q))
    return y, q


def oracle_can_see(y, q):
    """False where residuals are so small that the oracle, which subtracts operators, loses them."""
    return np.abs(np.eye(q.shape[1])[y] - q).max() > 1e-2


bandwidths = st.floats(0.05, 5.0)


def agree(value, expected, scale):
    """The tolerance of every comparison with the oracle; `scale` because the truth can be 0."""
    bound = 1e-9 * abs(expected) + 1e-13 * scale
    assert abs(value - expected) <= bound, f"{value!r} is not {expected!r} to within {bound:.1e}"


def feature_kernel(frequencies, linear_part):
    """The kernel that Fourier features stand for."""

    def kernel(p, q):
        a, b = (reference.fourier_features(x, frequencies, linear_part) for x in (p, q))
        return a @ b.T

    return kernel


def landmarks(m, kernel="linear_gaussian", bandwidth=0.7, seed=11):
    """At most eight landmarks of which none is nearly explained by the others."""
    _, points = sample(8, m, seed)
    gram = reference.gram(kernel, points, points, bandwidth)
    return points[reference.pivoted_cholesky(gram, tol=1e-5)[1]]


def landmark_kernel(points, kernel, bandwidth):
    """The kernel that landmarks stand for."""

    def nystroem(p, q):
        a, b = (reference.landmark_features(x, points, kernel, bandwidth) for x in (p, q))
        return a @ b.T

    return nystroem


def streamed(y, q, *, sample_weight=None, **options):
    """CKCE by an accumulator that takes all rows as one batch."""
    acc = ckce.CKCEAccumulator.from_sample(y, q, **options)
    acc.update(y, q, sample_weight)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "landmarks leave out")
        return acc.compute()


@dataclass(frozen=True)
class Case:
    """An estimator with its oracle; calling it calls the public function."""

    metric: str
    method: str
    kernel: str
    extra: dict[str, Any] = field(default_factory=dict)

    def __str__(self):
        return "-".join([self.metric, *self.extra.values(), self.method, self.kernel])

    @property
    def public(self):
        return streamed if self.metric == "accumulator" else getattr(ckce, self.metric)

    def options(self, m, bandwidth=0.7):
        """Everything that fixes the number but the data."""
        options = {"method": self.object(m, bandwidth), "kernel": self.kernel, **self.extra}
        if self.kernel != "linear" and self.method != "fourier":
            options["bandwidth"] = bandwidth
        return options

    def object(self, m, bandwidth=0.7):
        """The method as a caller passes it."""
        if self.method == "cholesky":
            return ckce.Cholesky(rank=RANK)
        if self.method == "landmarks":
            return ckce.Landmarks(landmarks(m, self.kernel, bandwidth))
        if self.method == "fourier":
            return ckce.Fourier(frequencies=self.frequencies(m, bandwidth))
        return "fourier" if self.method == "linear" else self.method

    def frequencies(self, m, bandwidth):
        return ckce.fourier_frequencies(m, 8, bandwidth=bandwidth, kernel=self.kernel)

    def __call__(self, y, q, bandwidth=0.7, **options):
        return self.public(y, q, **self.options(np.shape(q)[1], bandwidth), **options)

    def oracle_kernel(self, q, bandwidth):
        """The kernel that the method stands for on these rows."""
        m = q.shape[1]
        if self.method == "landmarks":
            points = landmarks(m, self.kernel, bandwidth)
            return landmark_kernel(points, self.kernel, bandwidth)
        if self.method == "fourier":
            linear_part = KERNELS[self.kernel].linear_part
            return feature_kernel(self.frequencies(m, bandwidth), linear_part)
        if self.method == "cholesky" and self.metric == "jkce":
            gram = reference.gram(self.kernel, q, q, bandwidth)
            factor, _ = reference.pivoted_cholesky(gram, RANK)
            return lambda p, q: factor @ factor.T
        return self.kernel

    def oracle(self, y, q, bandwidth=0.7, **options):
        m = q.shape[1]
        kernel = self.oracle_kernel(q, bandwidth)
        if self.metric == "jkce":
            return reference.jkce(y, q, kernel=kernel, bandwidth=bandwidth, **self.extra, **options)
        if self.method == "fourier":
            options["frequencies"] = self.frequencies(m, bandwidth)
            options["linear_part"] = KERNELS[self.kernel].linear_part
            return reference.ckce_fourier(y, q, **options)
        if self.method == "landmarks":
            points = landmarks(m, self.kernel, bandwidth)
            return reference.ckce_landmarks(
                y, q, landmarks=points, kernel=self.kernel, bandwidth=bandwidth, **options
            )
        if self.method == "cholesky":
            options["rank"] = RANK
            return reference.ckce_cholesky(y, q, kernel=kernel, bandwidth=bandwidth, **options)
        return reference.ckce(y, q, kernel=kernel, bandwidth=bandwidth, **options)

    def scale(self, y, q, bandwidth=0.7, **options):
        """The debias term, or sum k_ii |r_i|^2 / n^2 for JKCE."""
        kernel = self.oracle_kernel(q, bandwidth)
        if self.metric != "jkce":
            return reference.debias_term(y, q, kernel=kernel, bandwidth=bandwidth, **options)
        k = np.diag(reference.gram(kernel, q, q, bandwidth))
        r = np.eye(q.shape[1])[y] - q
        ell = options.get("label_kernel")
        norms = np.sum(r * (r if ell is None else r @ ell), axis=1)
        return float(k @ norms) / len(y) ** 2

    def check(self, y, q, bandwidth=0.7, **options):
        value = self(y, q, bandwidth, **options)
        expected = self.oracle(y, q, bandwidth, **options)
        agree(value, expected, self.scale(y, q, bandwidth, **options))


def reordered(method, classes):
    """A method whose arrays belong to columns in this order."""
    if isinstance(method, ckce.Fourier) and method.frequencies is not None:
        return dataclasses.replace(method, frequencies=method.frequencies[:, classes])
    if isinstance(method, ckce.Landmarks):
        return ckce.Landmarks(method.points[:, classes])
    return method


FOURIER_KERNELS = [name for name, kernel in KERNELS.items() if kernel.spectrum is not None]
WIDE_KERNELS = [name for name, kernel in KERNELS.items() if kernel.has_bandwidth]

# The kernels of each method; a new kernel joins by its entry in KERNELS, a new method by a line
# here, which it takes to every metric. A metric without a kernel and bandwidth joins in SCORES.
METHODS = {
    "exact": list(KERNELS),
    "fourier": FOURIER_KERNELS,
    "cholesky": list(KERNELS),
    "landmarks": WIDE_KERNELS,
}
STREAMS = {"fourier": FOURIER_KERNELS, "linear": ["linear"], "landmarks": WIDE_KERNELS}
JKCE = [{"estimator": "unbiased"}, {"estimator": "biased"}]
BATCH = {word: of for word, of in METHODS.items() if NEW_CORE or word != "landmarks"}

CASES = [
    *(Case("ckce", word, kernel) for word in BATCH for kernel in BATCH[word]),
    *(Case("jkce", word, kernel, e) for word in BATCH for kernel in BATCH[word] for e in JKCE),
    *(Case("accumulator", word, kernel) for word in STREAMS for kernel in STREAMS[word]),
]


@dataclass(frozen=True)
class Score:
    """A metric without a kernel, or one number out of a result, as a `Case`."""

    metric: str
    extra: dict[str, Any] = field(default_factory=dict)
    read: Callable[[Any], float] = float
    method = kernel = None

    def __str__(self):
        return "-".join([self.metric, *map(str, self.extra.values())])

    def public(self, y, q, **options):
        return self.read(getattr(ckce, self.metric.split(".")[0])(y, q, **options))

    def options(self, m, bandwidth=0.7):
        return dict(self.extra)

    def __call__(self, y, q, **options):
        return self.public(y, q, **self.extra, **options)

    def scale(self, y, q):
        return 1.0

    def check(self, y, q, **options):
        if self.read is float:  # else it is one of several numbers, and tested with them
            oracle = getattr(reference, self.metric)
            agree(self(y, q, **options), oracle(y, q, **self.extra, **options), self.scale(y, q))


def _deviation(diagram):
    (curve,) = diagram.curves
    return float(np.abs(curve.frequency - curve.confidence).sum())


SCORES = [
    *(
        Score("ece", {"variant": variant, "n_bins": bins, **more})
        for variant, bins, more in [
            ("top_label", 15, {}),
            ("class_wise", 15, {}),
            ("simplex", 10, {}),
            ("top_label", 10, {"strategy": "quantile", "norm": "l2"}),
            ("class_wise", 10, {"strategy": "quantile", "norm": "max"}),
            ("simplex", 10, {"norm": "l2_squared", "debias": True}),
        ]
    ),
    *(Score(name) for name in ("brier", "log_loss", "accuracy", "smooth_ece")),
    Score("brier_decomposition", read=lambda parts: parts.calibration),
    Score("jkce_estimate", {"bandwidth": 0.7}, read=lambda estimate: estimate.se),
    Score("estimate", {"bandwidth": 0.7}, read=lambda estimate: estimate.se),
    Score("evaluate.ckce", {"bandwidth": 0.7}, read=lambda e: e.ckce.debiased),
    Score("evaluate.brier", {"bandwidth": 0.7}, read=lambda e: e.brier_parts.refinement),
    Score("reliability_diagram", read=_deviation),
    Score("reliability_diagram", {"strategy": "uniform", "n_bins": 7}, read=_deviation),
]


def cases(metric=None, method=None):
    return [
        case for case in CASES if metric in (None, case.metric) and method in (None, case.method)
    ]
