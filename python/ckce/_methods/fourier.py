"""Random Fourier features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import (
    Kernel,
    check_bandwidth,
    check_choice,
    check_count,
    check_matrix,
    check_memory,
    check_named_kernel,
    check_seed,
    digest,
)
from ckce._methods.method import (
    Arrays,
    FeatureMap,
    Method,
    Progress,
    Rows,
    Space,
    halves,
    price_of_features,
    price_of_gram,
)

SAMPLERS = ("gaussian", "orthogonal", "sobol")
_LARGEST = 1e100  # of a frequency that can have been drawn
_LARGEST_FLOAT32 = 1000.0  # products of larger frequencies have too few digits in float32


@dataclass(frozen=True, repr=False, eq=False)
class Fourier(Method):
    r"""Random Fourier features: :math:`k(p, q) \approx \phi(p)^\top \phi(q)` (the paper's section 3.3).

    .. math:: \phi(q) = [q, \cos(w_1^\top q), \sin(w_1^\top q), \dots] \text{ with the
        trigonometric part over } \sqrt D

    The error falls like D^(-1/2). O(n (m + 2D)^2) time, memory independent of n; streams and merges.

    Parameters
    ----------
    n_frequencies : int
        D.
    sampler : {"gaussian", "orthogonal", "sobol"}
        How frequencies are drawn, see `fourier_frequencies`.
    frequencies : array of shape (D, n_classes), optional
        Frequencies that are used as given, already divided by the bandwidth.
    precision : {"float64", "mixed"}
        ``mixed`` multiplies blocks of rows in float32 and adds them up in float64; the relative
        error was below 1e-5 wherever it was measured.

    Examples
    --------
    >>> import ckce
    >>> ckce.Fourier(n_frequencies=400, sampler="sobol")
    Fourier(n_frequencies=400, sampler='sobol')
    """

    word: ClassVar[str] = "fourier"
    streams: ClassVar[bool] = True
    starts_with_q: ClassVar[bool] = True
    advice: ClassVar[str] = "pass a smaller n_frequencies"

    n_frequencies: int = 100
    sampler: str = "gaussian"
    frequencies: Any = None
    precision: str = "float64"

    def __post_init__(self) -> None:
        count = check_count("n_frequencies", self.n_frequencies)
        check_choice("sampler", self.sampler, SAMPLERS)
        check_choice("precision", self.precision, ("float64", "mixed"))
        object.__setattr__(self, "n_frequencies", count)
        if self.frequencies is None:
            return
        for name, default in (("n_frequencies", 100), ("sampler", "gaussian")):
            if getattr(self, name) != default:
                raise ValueError(
                    f"frequencies are used as given, so {name} would be ignored, got "
                    f"{name}={getattr(self, name)!r}"
                )
        given = check_matrix("frequencies", self.frequencies, (None, None)).copy(order="F")
        given.setflags(write=False)
        object.__setattr__(self, "frequencies", given)

    @property
    def count(self) -> int:
        """D, of drawn and of given frequencies."""
        return self.n_frequencies if self.frequencies is None else len(self.frequencies)

    @property
    def sets_bandwidth(self) -> bool:
        return self.frequencies is not None

    def check(self, metric: str, kernel: Kernel, m: int) -> None:
        super().check(metric, kernel, m)
        if kernel.spectrum is None:
            raise ValueError(
                f"{kernel} has no Fourier features; use method='exact', which costs O(n m^2) here"
            )
        if self.frequencies is not None:
            check_matrix("frequencies", self.frequencies, (None, m))
        elif kernel.spectrum == "cauchy" and self.sampler == "orthogonal":
            raise ValueError("sampler='orthogonal' needs a Gaussian kernel, got kernel='laplace'")
        if metric != "ckce" and self.precision != "float64":
            raise ValueError(f"precision='mixed' is for ckce, got it for {metric}")

    def of_jkce(self) -> Fourier:
        return replace(self, precision="float64")

    def price(self, rows: Rows, full: bool, metric: str = "ckce") -> float:
        """The sums over the rows; K of fewer rows than features, made of all of them at once."""
        n, m = rows.shape
        d = self.n_features(rows)
        if n >= d or metric == "jkce":
            return price_of_features(rows, d, full)
        return max(n * (m + d) + n**2, price_of_gram(n, rows.n_threads, full))

    def smaller(self) -> Iterator[Fourier]:
        if self.frequencies is None:
            yield from (replace(self, n_frequencies=count) for count in halves(self.count, 25))

    def n_features(self, rows: Rows) -> float:
        return rows.shape[1] + 2.0 * self.count

    def words(self, metric: str, n: int, m: int, seed: int) -> dict[str, str]:
        words = {"D": str(self.count), "p": self.precision}
        if self.frequencies is not None:
            return {**words, "frequencies": digest(self.frequencies)}
        return {**words, "sampler": self.sampler, "s": str(seed)}

    def draw(self, m: int, kernel: Kernel, bandwidth: float, seed: int) -> NDArray[np.float64]:
        """The frequencies (D, m)."""
        if self.frequencies is not None:
            return np.asarray(self.frequencies)
        drawn = fourier_frequencies(
            m,
            self.n_frequencies,
            bandwidth=bandwidth,
            kernel=kernel.name,
            sampler=self.sampler,
            random_state=seed,
        )
        return np.asfortranarray(drawn)

    def features(self, rows: Rows, progress: Progress = None) -> _core.Features:
        frequencies = self._draw_for(rows)
        largest = float(np.abs(frequencies).max())
        if self.precision == "mixed" and largest > _LARGEST_FLOAT32:
            raise ValueError(
                f"precision='mixed' needs frequencies of at most 1000, got {largest:.3g}: their "
                "products with y_prob have too few digits in float32; use precision='float64' or a "
                "larger bandwidth"
            )
        return _core.fourier_features(frequencies, linear_part=rows.kernel.linear_part)

    def check_stream(self, asked: Any) -> None:
        if self.precision != "float64":
            raise ValueError("precision='mixed' is for ckce, got it for a stream")

    def state_words(self, seed: int) -> dict[str, Any]:
        if self.frequencies is not None:
            return {"frequencies": digest(self.frequencies)}
        drawn = {"n_frequencies": self.n_frequencies, "sampler": self.sampler}
        return {**drawn, "random_state": seed}

    @classmethod
    def from_state(cls, words: Mapping[str, Any], arrays: Arrays) -> Fourier:
        if words["frequencies"] is None:
            return cls(words["n_frequencies"], words["sampler"])
        return cls(frequencies=arrays["frequencies"])

    def fix(self, space: Space, n_threads: int) -> FeatureMap:
        return FourierMap(self.draw(space.m, space.kernel, 1.0, space.seed))

    def read_map(self, space: Space, arrays: Arrays) -> FeatureMap:
        frequencies, chebyshev = arrays["frequencies"], arrays.get("chebyshev", np.zeros((0, 0)))
        if frequencies.ndim != 2 or frequencies.shape[1] != space.m or len(frequencies) < 1:
            raise ValueError(f"frequencies of shape {frequencies.shape} for {space.m} classes")
        if self.count != len(frequencies):
            raise ValueError(f"{len(frequencies)} frequencies of {self.count!r}")
        if not all((np.abs(array) <= _LARGEST).all() for array in (frequencies, chebyshev)):
            raise ValueError("frequencies that cannot have been drawn")
        if chebyshev.ndim != 2 or chebyshev.shape[0] != chebyshev.shape[1]:
            raise ValueError(f"chebyshev of shape {chebyshev.shape}")
        if len(chebyshev) and space.m != 2:
            raise ValueError(f"chebyshev for {space.m} classes")
        return FourierMap(frequencies, arrays.get("chebyshev"))

    def _draw_for(self, rows: Rows) -> NDArray[np.float64]:
        gamma = 1.0 if rows.bandwidth is None else rows.bandwidth
        return self.draw(rows.shape[1], rows.kernel, gamma, rows.seed)


@dataclass(frozen=True)
class FourierMap(FeatureMap):
    """Frequencies at bandwidth 1, or as given; a state that was loaded brings its expansion."""

    unit: NDArray[np.float64]
    stored: NDArray[np.float64] | None = None

    def n_features(self, space: Space) -> int:
        linear = space.m if space.kernel.linear_part else 0
        return (len(self._chebyshev(space)) or 2 * len(self.unit)) + linear

    def _frequencies(self, space: Space) -> NDArray[np.float64]:
        return np.asfortranarray(self.unit / (1.0 if space.bandwidth is None else space.bandwidth))

    def _chebyshev(self, space: Space) -> NDArray[np.float64]:
        """What stands for the trigonometric features of two classes; empty if nothing does."""
        if self.stored is not None:
            return np.asfortranarray(self.stored)
        return np.asfortranarray(_core.chebyshev_factor(self._frequencies(space)))

    def core(self, space: Space) -> _core.Features:
        return _core.fourier_features(
            self._frequencies(space),
            linear_part=space.kernel.linear_part,
            chebyshev=self._chebyshev(space),
        )

    def arrays(self, space: Space) -> Arrays:
        if space.pending:
            return {"frequencies": self.unit}
        return {"frequencies": self.unit, "chebyshev": self._chebyshev(space)}

    def same(self, other: FourierMap, space: Space) -> bool:
        a, b = self._chebyshev(space), other._chebyshev(space)
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=0.0, atol=1e-12))

    def fresh(self) -> FourierMap:
        return FourierMap(self.unit)


def fourier_frequencies(
    n_classes: int,
    n_frequencies: int = 100,
    *,
    bandwidth: float = 1.0,
    kernel: str = "linear_gaussian",
    sampler: str = "gaussian",
    random_state: int = 0,
) -> NDArray[np.float64]:
    r"""Draw the frequencies :math:`w_1, \dots, w_D` that ``method="fourier"`` uses.

    They satisfy :math:`E \cos(w^\top (p - q)) = k(p, q)` for p, q in the simplex and the
    shift-invariant part of the kernel: normal with variance :math:`\gamma^{-2}` for the Gaussian
    kernels, Cauchy with scale :math:`\gamma^{-1}` for ``laplace``.

    Parameters
    ----------
    n_classes : int
        m, the number of classes, at least 2.
    n_frequencies : int
        D; the feature map has 2 D trigonometric features.
    bandwidth : float
        The kernel's bandwidth; the frequencies are divided by it.
    kernel : {"linear_gaussian", "gaussian", "laplace"}
        The kernel.
    sampler : {"gaussian", "orthogonal", "sobol"}
        Independent draws; orthogonal in groups of m - 1; or quasi-random. ``laplace`` has no
        orthogonal sampler.
    random_state : int
        Seed.

    Returns
    -------
    ndarray of shape (n_frequencies, n_classes)

    Notes
    -----
    Random numbers are the project's own, so a seed means the same for ever: SplitMix64 started at
    the seed, uniforms (top 53 bits + 1/2) / 2^53, quantiles by AS 241. Gaussian frequencies are
    drawn in the m - 1 coordinates of Helmert's basis of the plane orthogonal to (1, ..., 1), since
    the rest of a frequency does not act on the simplex. The error of the kernel is unbiased, of
    order D^(-1/2) for independent draws. Cost O(D m), orthogonal O(D m min(D, m)).

    Examples
    --------
    >>> import ckce
    >>> ckce.fourier_frequencies(3, 2, bandwidth=0.5).round(4)
    array([[ 1.5445, -1.8262,  0.2817],
           [-1.1915,  4.2843, -3.0928]])
    """
    m = check_count("n_classes", n_classes)
    if m < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes}")
    named = check_named_kernel(kernel)
    check_choice("sampler", sampler, SAMPLERS)
    if named.spectrum is None:
        raise ValueError(f"kernel={kernel!r} has no Fourier features, it needs none")
    if named.spectrum == "cauchy" and sampler == "orthogonal":
        raise ValueError("sampler='orthogonal' needs a Gaussian kernel, got kernel='laplace'")
    count = check_count("n_frequencies", n_frequencies)
    seed = check_seed(random_state)
    gamma = check_bandwidth(bandwidth)
    needed = 16.0 * count * m  # the draws, and what is returned
    check_memory(needed, f"{count} frequencies of {m} classes", "pass a smaller n_frequencies")
    unit = _core.draw_frequencies(
        sampler=sampler,
        spectrum=getattr(_core.Spectrum, named.spectrum),
        n_frequencies=count,
        n_classes=m,
        seed=seed,
    )
    return np.asarray(unit / gamma)
