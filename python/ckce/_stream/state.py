"""The state of a stream: settings, and rows as sums, or held back until the bandwidth is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import Samples, check_threads
from ckce._problem import MEDIAN_ROWS, Bandwidth, median_of
from ckce._stream import codec, state_file
from ckce._stream.config import StreamConfig, without_bandwidth
from ckce._stream.engine import Engine
from ckce._stream.forks import Lock


class State:
    """May be used from several threads; a call that raises leaves it as it was."""

    def __init__(self, contents: codec.Contents, n_threads: int) -> None:
        self.contents = contents  # replaced, never changed
        self.n_threads = n_threads
        self._lock = Lock()
        self._held: list[Samples] = []
        self._engine = None if self.config.pending else self._make_engine(self.config)

    @property
    def config(self) -> StreamConfig:
        return self.contents.config

    def change(self, **parts: Any) -> None:
        """Replace parts of the contents."""
        self.contents = dataclasses.replace(self.contents, **parts)

    def _make_engine(self, config: StreamConfig) -> Engine:
        return self.contents.kept.engine(config, self.contents.label_factor)

    def rows(self) -> int:
        """Rows of positive weight so far."""
        with self._lock.alone():
            held = sum(samples.n for samples in self._held)
            return held if self._engine is None else self._engine.rows()

    def add(self, samples: Samples) -> None:
        """Add rows that were checked and reduced."""
        weighted = samples.weights is not None and bool((samples.weights != 1.0).any())
        with self._lock.alone():
            if self._engine is None:
                self._hold(samples)
            else:
                _feed(self._engine, samples, self.n_threads)
            if weighted:
                self.change(weighted=True)

    def _hold(self, samples: Samples) -> None:
        """Wait for the rows that the bandwidth comes from."""
        wanted = MEDIAN_ROWS - sum(held.n for held in self._held)
        if samples.n < wanted:
            self._held.append(_copied(samples))
            return
        first = _joined([*self._held, _some_rows(samples, slice(0, wanted))])
        config = self._with_median(first, first_rows=True)
        engine = self._make_engine(config)
        _feed(engine, first, self.n_threads)
        _feed(engine, _some_rows(samples, slice(wanted, None)), self.n_threads)
        self._held, self._engine = [], engine
        self.change(config=config)

    def _with_median(self, samples: Samples, *, first_rows: bool) -> StreamConfig:
        config = self.config
        found = median_of([samples], config.kernel, config.seed, self.n_threads)
        bandwidth = Bandwidth(found.value, found.kind, first_rows=first_rows)
        return dataclasses.replace(config, bandwidth=bandwidth)

    @contextmanager
    def current(self) -> Iterator[tuple[Engine, StreamConfig]]:
        """The engine, or one for the rows held back; nobody changes it meanwhile."""
        with self._lock.alone():
            if self._engine is not None:
                yield self._engine, self.config
                return
            if not self._held:
                raise ValueError("the accumulator holds no rows yet; call update first")
            rows = _joined(self._held)
            config = self._with_median(rows, first_rows=False)
            engine = self._make_engine(config)
            _feed(engine, rows, self.n_threads)
            yield engine, config

    def known_engine(self, what: str) -> Engine:
        """The engine, for what needs one bandwidth for ever."""
        if self._engine is None:
            raise ValueError(
                f"bandwidth must be known before {what}, got bandwidth='median' with fewer than "
                f"{MEDIAN_ROWS} rows; give it, or use CKCEAccumulator.from_sample"
            )
        return self._engine

    def merge(self, other: State) -> None:
        """Add the rows of another state."""
        for state in (self, other):
            state.known_engine("merging")
        found = self.config.difference(other.config)
        if found is not None:
            raise ValueError("{} must be the same to merge, got {!r} and {!r}".format(*found))
        if not self.contents.kept.same(other.contents.kept, self.config):
            raise ValueError(
                "features must be the same to merge, got states written by versions of ckce that "
                "compute them differently"
            )
        with other._lock.alone():
            sums, theirs = other.known_engine("merging").state(), other.contents
        with self._lock.alone():
            mine = self.contents
            twice = sorted(mine.shards & theirs.shards)
            if twice:
                more = f" and {len(twice) - 1} more" if len(twice) > 1 else ""
                raise ValueError(f"shard_id {twice[0]!r}{more} is in both states; merge it once")
            self.known_engine("merging").merge(sums, n_threads=self.n_threads)
            self.change(
                shards=mine.shards | theirs.shards, weighted=mine.weighted or theirs.weighted
            )

    def reset(self) -> None:
        """Forget all rows, and a bandwidth that came from them."""
        with self._lock.alone():
            self.contents = self.contents.without_rows(self.contents.shard_id)
            if self.config.bandwidth.first_rows:
                self.change(config=without_bandwidth(self.config), kept=self.contents.kept.fresh())
            self._held = []
            self._engine = None if self.config.pending else self._make_engine(self.config)

    def fresh(self, shard_id: str | None) -> State:
        """The same settings without rows."""
        return State(self.contents.without_rows(shard_id), self.n_threads)

    def copy(self) -> State:
        """The same rows, independent of these."""
        with self._lock.alone():
            twin = State(self.contents, self.n_threads)
            twin._held = list(self._held)
            if self._engine is not None:
                assert twin._engine is not None
                twin._engine.merge(self._engine.state(), n_threads=self.n_threads)
        return twin

    def encode(self) -> Iterator[bytes | memoryview]:
        """The bytes of a file, piece by piece."""
        with self._lock.alone():
            contents, held, engine = self.contents, self._held, self._engine
            state = None if engine is None or engine.rows() == 0 else engine.state()
        rows, sums = _joined(held) if held else None, {}
        if engine is not None and state is not None:
            rows = Samples(state.tail_labels, state.tail_probs, state.tail_weights)
            sums = engine.arrays(state)
        return codec.encode(contents, sums, rows)

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview, name: str) -> State:
        """Out of a file, which may be damaged or forged."""
        header, arrays = state_file.decode(data, name)
        if header.get("kind") != "CKCEAccumulator":
            raise ValueError(f"{name} holds {header.get('kind')!r}, not a CKCEAccumulator")
        try:
            contents, rows, sums = codec.decode(header, arrays)
            state = cls(contents, check_threads(None))
            state._restore(rows, sums)
        except state_file.DAMAGE as error:
            raise ValueError(f"{name} is not a valid state file: {error}") from None
        return state

    def _restore(self, rows: Samples | None, sums: dict[str, NDArray[Any]]) -> None:
        if self._engine is None:
            self._held = [] if rows is None else [rows]
            return
        if rows is None and not sums:
            return
        if rows is None or not sums:
            raise ValueError("sums without rows, or rows without sums")
        self._engine.restore(sums, rows, self.n_threads)

    def sums(self) -> NDArray[np.float64]:
        """All rows as one vector."""
        with self._lock.alone():
            return self.known_engine("sums").sums()

    def add_sums(self, sums: Any) -> None:
        """Add the rows that a vector of sums stands for."""
        vector = np.ascontiguousarray(sums, dtype=np.float64)
        codec.check_sums(vector)
        with self._lock.alone():
            self.known_engine("add_sums").add_sums(vector, self.n_threads)


def _feed(engine: Engine, samples: Samples, n_threads: int) -> None:
    """Add rows to the sums."""
    if samples.n > 0:
        engine.update(samples.probs, samples.labels, samples.weights, n_threads=n_threads)


def _some_rows(samples: Samples, rows: slice) -> Samples:
    """Some of the rows; a view."""
    weights = None if samples.weights is None else samples.weights[rows]
    return dataclasses.replace(
        samples, labels=samples.labels[rows], probs=samples.probs[rows], weights=weights
    )


def _copied(samples: Samples) -> Samples:
    """Rows of our own: the caller may reuse its memory."""
    weights = None if samples.weights is None else samples.weights.copy()
    return Samples(samples.labels.copy(), samples.probs.copy(), weights)


def _joined(parts: list[Samples]) -> Samples:
    """All rows, one part after the other."""
    weighted = any(part.weights is not None for part in parts)
    weights = [np.ones(part.n) if part.weights is None else part.weights for part in parts]
    return Samples(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.probs for part in parts]),
        np.concatenate(weights) if weighted else None,
    )
