"""What all methods share."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import Kernel

Progress = Callable[[float], None] | None
Arrays = dict[str, NDArray[Any]]
_FEW_ROWS = 160
#: The Gram matrix rounds exponents by eps / bandwidth, which its bound does not count.
_GRAM_BANDWIDTH = 1e-3


@dataclasses.dataclass(frozen=True)
class Rows:
    """What a feature map is made for: rows of the simplex, the kernel, and how to draw and run."""

    probs: NDArray[np.floating]
    kernel: Kernel
    bandwidth: float | None
    seed: int
    n_threads: int

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.probs.shape
        return n, m

    @property
    def core_kernel(self) -> _core.Kernel:
        return self.kernel.core(self.bandwidth)

    @property
    def could_be_a_line(self) -> bool:
        """Two classes, of which every kernel but the linear one is computed exactly in one pass."""
        if self.probs.shape[1] != 2 or self.bandwidth is None or not self.kernel.line:
            return False
        return self.bandwidth >= _core.LEAST_BANDWIDTH

    @property
    def on_a_line(self) -> bool:
        """Whether that is done: a few rows take the Gram matrix, as fast, off the simplex too."""
        if not self.could_be_a_line:
            return False
        return len(self.probs) > _FEW_ROWS or (self.bandwidth or 0.0) < _GRAM_BANDWIDTH


@dataclasses.dataclass(frozen=True)
class Space:
    """What features are made for: a kernel on the predictions of m classes, and how to draw."""

    m: int
    kernel: Kernel
    bandwidth: float | None
    seed: int
    pending: bool = False  # the bandwidth is to come from the first rows

    @property
    def core_kernel(self) -> _core.Kernel:
        return self.kernel.core(self.bandwidth)


class FeatureMap:
    """What a state keeps of its features; a method that streams has one.

    Sums of other features cannot be added to a state, so whatever could differ in its last digits
    between machines (a factor of landmarks, a Chebyshev expansion) is stored beside the sums.
    """

    def n_features(self, space: Space) -> int:
        """Columns of Phi."""
        raise NotImplementedError

    def core(self, space: Space) -> _core.Features:
        """The map itself."""
        raise NotImplementedError

    def arrays(self, space: Space) -> Arrays:
        """What a file keeps."""
        return {}

    def same(self, other: Any, space: Space) -> bool:
        """Whether sums of both can be added; their methods are the same."""
        return True

    def fresh(self) -> FeatureMap:
        """The same for another bandwidth."""
        return self


class Method:
    """How CKCE and JKCE are computed: options, what they cost, their words, what the core needs.

    Methods compare by content, arrays among their options included.
    """

    word: ClassVar[str]
    #: Whether its features are fixed before the first row, so that a stream can use them.
    streams: ClassVar[bool] = False
    #: Whether phi(q) begins with q where the kernel has a linear part: Phi'Q is then in Phi'Phi.
    starts_with_q: ClassVar[bool] = False
    #: Whether a bound on the distance to the exact kernel comes with its features.
    certified: ClassVar[bool] = False
    #: What to do where its memory does not suffice.
    advice: ClassVar[str] = "use method='fourier', whose memory is flat in n"

    def check(self, metric: str, kernel: Kernel, m: int) -> None:
        """Refuse what the method cannot do."""
        if kernel.gram is not None:
            raise ValueError(f"a callable kernel needs method='exact', got method={self.word!r}")

    def of_jkce(self) -> Method:
        """The same for JKCE, without options that only CKCE has."""
        return self

    def price(self, rows: Rows, full: bool, metric: str = "ckce") -> float:
        """Doubles that a call needs beyond its input, at most."""
        raise NotImplementedError

    def smaller(self) -> Iterator[Method]:
        """The same with fewer features, for those whose memory does not suffice."""
        return iter(())

    def n_features(self, rows: Rows) -> float:
        """Features that it has for these rows, at most."""
        return float(rows.shape[1])

    def kept(self, rows: Rows) -> float:
        """Doubles of its features, which a problem keeps for the next call."""
        return 0.0

    def words(self, metric: str, n: int, m: int, seed: int) -> dict[str, str]:
        """Its part of a signature."""
        raise NotImplementedError

    def features(self, rows: Rows, progress: Progress = None) -> _core.Features | None:
        """The feature map for these rows; None: the kernel itself."""
        return None

    @property
    def sets_bandwidth(self) -> bool:
        """Whether its options leave no bandwidth to choose."""
        return False

    def check_stream(self, asked: Any) -> None:
        """Refuse options that a stream cannot take; `asked` is what the caller wrote."""

    def state_words(self, seed: int) -> dict[str, Any]:
        """Its part of the words in a state file."""
        return {}

    @classmethod
    def from_state(cls, words: Mapping[str, Any], arrays: Arrays) -> Method:
        """The method that a state file claims."""
        return cls()

    def fix(self, space: Space, n_threads: int) -> FeatureMap:
        """The features of a new stream."""
        raise NotImplementedError

    def read_map(self, space: Space, arrays: Arrays) -> FeatureMap:
        """The features that a state file holds, checked."""
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        """Options that are not at their defaults."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = {field.name: getattr(self, field.name) for field in fields}
        defaults = {field.name: field.default for field in fields}
        return {k: v for k, v in values.items() if not _same(v, defaults[k])}

    def __repr__(self) -> str:
        with np.printoptions(threshold=2**62, floatmode="unique"):
            options = [f"{name}={value!r}" for name, value in self._options().items()]
        return f"{type(self).__name__}({', '.join(options)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Method)
        mine, theirs = self._options(), other._options()
        return mine.keys() == theirs.keys() and all(_same(v, theirs[k]) for k, v in mine.items())

    def __hash__(self) -> int:
        values = self._options().items()
        return hash((type(self), *((k, _frozen(v)) for k, v in values)))


def working(n_threads: int, doubles: float) -> float:
    """Threads that work at once where the buffers of each take so many doubles."""
    return min(n_threads, max(1.0, _core.THREAD_DOUBLES // doubles))


def price_of_gram(n: int, n_threads: int, full: bool) -> float:
    """K, its factor, and the columns that the threads solve for."""
    threads = working(n_threads, 9 * 64 * n)
    return 2.0 * n**2 + threads * 64.0 * n * (9 if full else 4)


def price_of_features(rows: Rows, d: float, full: bool) -> float:
    """Sums over the rows and a block of features, in each thread; certified features, or n >= d."""
    n, m = rows.shape
    threads = min(rows.n_threads, math.ceil(n / 1024))
    block, sums = 1160.0 * (d + m), d * (d + m)
    first = sums + d * m + working(threads, block + sums) * (block + sums)
    if not full:
        return first
    second = working(threads, 3 * block) * (block + 1024 * (d + 4 * m))
    # Phi'R, X and H beside the root of a square, then beside what a block takes.
    return max(first, d * (4 * d + 3 * m), d * (2 * d + 3 * m) + second)


def halves(count: int, least: int) -> Iterator[int]:
    """Smaller counts, down to one that is still of use."""
    while count >= 2 * least:
        count //= 2
        yield count


def in_panels(n: int) -> float:
    """Rows that panels take."""
    return 128.0 * math.ceil(n / 128)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b) if a is not None and b is not None else a is b
    return bool(a == b)


def _frozen(value: Any) -> Any:
    return value.tobytes() if isinstance(value, np.ndarray) else value
