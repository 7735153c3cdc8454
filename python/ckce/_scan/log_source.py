"""A log of a language model as a source of rows."""

from __future__ import annotations

from collections.abc import Iterator

from ckce._input import Choices, InputError
from ckce._scan.columns import Wanted
from ckce._scan.formats import File, Rows
from ckce._scan.log import Log


class LogSource:
    """The rows of logs, which were read as a whole."""

    classes = None

    def __init__(self, log: Log) -> None:
        self.log = log
        self.n_samples = len(log)
        probs = log.y_prob
        self.n_classes = probs.n_choices if isinstance(probs, Choices) else probs.k + 1
        self.row_bytes = 8 * self.n_classes
        where = log.files[0] if len(log.files) == 1 else f"{len(log.files)} log files"
        self.places = {"labels": f"{where}: targets", "probs": f"{where}: predictions"}

    def batches(self, rows: int) -> Iterator[Rows]:
        for start in range(0, self.n_samples, rows):
            part = slice(start, start + rows)
            yield Rows(self.log.y_true[part], self.log.y_prob[part])

    def whole(self) -> Rows:
        """All of it."""
        return Rows(self.log.y_true, self.log.y_prob)

    def guess_rows(self) -> int:
        """All are known."""
        return self.n_samples


class NoTable:
    """A file that would be a log, and is none."""

    def __init__(self, file: File, wanted: Wanted) -> None:
        raise InputError(
            f"{file.name} is no log of inspect_ai, the only {file.suffix} files that are read; results of "
            "lm-evaluation-harness hold no predictions, its samples_*.jsonl do"
        )

    @staticmethod
    def models(file: File, taken: set[str]) -> dict[str, str]:
        """None by name."""
        return {}
