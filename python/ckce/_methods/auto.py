"""Words become methods; "auto" takes the most accurate that is affordable, by a fixed rule."""

from __future__ import annotations

from typing import Any

from ckce._input import Kernel, check_choice
from ckce._methods.blocks import Blocks
from ckce._methods.cholesky import Cholesky
from ckce._methods.exact import Exact
from ckce._methods.fourier import Fourier
from ckce._methods.landmarks import Landmarks
from ckce._methods.method import Method

#: Every method by its word.
METHODS: dict[str, type[Method]] = {
    method.word: method for method in (Exact, Fourier, Cholesky, Landmarks, Blocks)
}
#: Those of each metric.
_OF_JKCE = ("auto", *METHODS)
_OF_CKCE = tuple(word for word in _OF_JKCE if word != "blocks")

EXACT = Exact()

#: n^2 (m + 16) up to which "auto" affords the exact kernel (about a second on two cores).
EXACT_BUDGET = 2e10
#: Rows up to which "auto" affords a Cholesky factor of AUTO_RANK columns (1 GB).
CHOLESKY_ROWS = 2**18
AUTO_RANK = 500
#: Classes above which the linear part alone takes most of that rank, and "fourier" is closer.
CHOLESKY_CLASSES = 100
#: Rows up to which "auto" factorises K where rows have more classes (1.5 GB).
WIDE_ROWS = 8192
#: Classes up to which it affords the sums of "fourier", (m + 200)^2 of them (0.5 GB).
FOURIER_CLASSES = 4000
#: Share of the trace of K that a Cholesky factor may miss where any features will do.
FEATURE_TOL = 1e-8


def check_method(value: Any, metric: str) -> Method | None:
    """The method asked for; None is "auto"."""
    words = _OF_JKCE if metric == "jkce" else _OF_CKCE
    if isinstance(value, Method):
        if value.word not in words:
            check_choice("method", value.word, words)
        return value
    if not isinstance(value, str):
        objects = ", ".join(f"ckce.{METHODS[word].__name__}(...)" for word in words[1:])
        raise TypeError(f"method must be one of {list(words)} or {objects}, got {value!r}")
    word = check_choice("method", value, words)
    return None if word == "auto" else METHODS[word]()


def affords_exact(n: int, m: int) -> bool:
    """Whether the exact kernel is within the budget of "auto"."""
    return n * n * (m + 16) <= EXACT_BUDGET


def better_method(n: int, m: int) -> Method:
    """What "auto" takes in place of a Cholesky factor that misses too much of the kernel.

    The exact kernel if it costs ten budgets at most, else random features, whose error is estimated.
    """
    return Exact() if n * n * (m + 16) <= 10 * EXACT_BUDGET else Fourier()


def choose_method(n: int, m: int, kernel: Kernel) -> Method:
    """The most accurate method that is affordable; a function of n, m and kernel only."""
    if not kernel.has_bandwidth:
        return EXACT
    if n <= min(m, WIDE_ROWS):
        return EXACT  # by factorisation, for which other methods are no cheaper
    if m == 2 and kernel.line:
        return EXACT  # in one pass
    if affords_exact(n, m):
        return EXACT
    if m <= CHOLESKY_CLASSES and n <= CHOLESKY_ROWS:
        # Random pivots come in blocks, which is 6 times faster.
        return Cholesky(rank=AUTO_RANK, pivoting="random")
    return Fourier() if m <= FOURIER_CLASSES else Landmarks(AUTO_RANK)


def choose_features(n: int, m: int, kernel: Kernel) -> Method:
    """Features where any will do, as for draws of labels; of two classes the kernel itself."""
    if kernel.has_cells(m):
        return Exact()
    affordable = n <= CHOLESKY_ROWS and (m <= CHOLESKY_CLASSES or n <= 4096)
    if affordable or kernel.spectrum is None:
        return stand_in(n)
    return Fourier()


def stand_in(n: int) -> Cholesky:
    """Features that stand for the kernel itself."""
    rank = max(64, min(512, 2**26 // n))
    return Cholesky(rank=rank, tol=FEATURE_TOL, pivoting="random")
