"""How errors and warnings are said."""

import re
import sys
import warnings
from collections.abc import Iterable, Mapping


class _Hinted(Exception):
    """What is wrong, and what may help.

    Each hint is its kind, for callers that word it their own way (the command line), and its words.
    """

    def __init__(self, problem: str, *hints: tuple[str, str]) -> None:
        super().__init__("; ".join([problem, *(words for _, words in hints)]))
        self.problem = problem
        self.advice = hints

    @property
    def hints(self) -> tuple[str, ...]:
        """The kinds of the hints."""
        return tuple(kind for kind, _ in self.advice)

    def renamed(
        self, names: Mapping[str, str], hints: Mapping[str, str] | None = None
    ) -> "_Hinted":
        """The same for a caller whose arguments have other names, and whose hints have other words."""

        def own(text: str) -> str:
            return re.sub(r"\w+", lambda found: names.get(found[0], found[0]), text)

        words = hints or {}
        return type(self)(
            own(self.problem), *((kind, words.get(kind, own(text))) for kind, text in self.advice)
        )


class InputError(_Hinted, ValueError):
    """Data that cannot be."""


class InputTypeError(_Hinted, TypeError):
    """Data of a kind that cannot be."""


def within(where: str, error: Exception) -> Exception:
    """The same error with the place where it occurred; its hints stay."""
    if isinstance(error, _Hinted):
        return type(error)(f"{where}: {error.problem}", *error.advice)
    return type(error)(f"{where}: {error}")


def when_made(what: str) -> dict[str, str]:
    """Hints for callers whose options are given once, when a thing is made, not with the data."""
    return {
        "logits": f"make the {what} with input='logits' if these are logits",
        "log_probs": f"make the {what} with input='log_probs' if these are log-probabilities",
        "normalize": f"make the {what} with normalize=True to rescale",
        "labels": f"make the {what} with labels=, the class of each column",
    }


#: Callers that stand between a user's line and ckce.
_BETWEEN = ("ckce", "torchmetrics", "torch", "sklearn", "joblib", "contextlib", "functools")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and name the first line outside the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'probs'?`` if a known name is close, else nothing."""
    from difflib import get_close_matches  # 3 ms that importing ckce should not cost

    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def listed(names: Iterable[str], limit: int = 8) -> str:
    """The first few names, and how many more there are."""
    everything = list(names)
    first = ", ".join(shown(name, 300) for name in everything[:limit])  # paths stay whole
    more = len(everything) - limit
    return f"{first} and {more} more" if more > 0 else first or "nothing"


def shown(value: object, limit: int = 60) -> str:
    """A value in a message: as Python writes it, NumPy's scalars as plain ones, cut where it is long."""
    item = getattr(value, "item", None)
    if getattr(value, "shape", None) == () and callable(item):
        value = item()
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        return "an integer of thousands of digits"
    return text if len(text) <= limit else f"{text[: limit - 20]}... ({len(text)} characters)"


def entries_are(count: int) -> str:
    """How many entries "are" something."""
    return "1 entry is" if count == 1 else f"{count} entries are"


def printable(text: str, kept: str = "\n\t") -> str:
    """Without what could steer a terminal: names of files and classes are not ours."""
    return "".join(
        c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text
    )
