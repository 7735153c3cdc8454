"""Signatures: everything that changes a number, in words."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

VERSION = "v0.1"  # of the definitions

# The order of the words; see docs/methods.md.
_ORDER = (
    "models",
    "statistic",
    "reduction",
    "method",
    "ground",
    "variant",
    "norm",
    "debias",
    "sampler",
    "frequencies",
    "landmarks",
    "k",
    "gamma",
    "D",
    "rank",
    "pivoting",
    "tol",
    "s",
    "lam",
    "block",
    "bins",
    "n",
    "m",
    "w",
    "groups",
    "by",
    "l",
    "in",
    "level",
    "test",
    "draws",
    "p",
)


@dataclass(frozen=True)
class Signature:
    """Ordered words; an empty value stands for a bare word."""

    metric: str
    words: Mapping[str, str]

    def but(self, metric: str, **words: str) -> "Signature":
        """The same with another metric and some other words."""
        return replace(self, metric=metric, words={**self.words, **words})

    def __str__(self) -> str:
        named = sorted(self.words.items(), key=lambda word: _ORDER.index(word[0]))
        words = [f"{name}:{value}" if value else name for name, value in named]
        return "|".join([self.metric, VERSION, *words])
