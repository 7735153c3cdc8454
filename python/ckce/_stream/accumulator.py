"""CKCE of data that does not fit into memory, or onto one machine."""

from __future__ import annotations

import dataclasses
import os
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._config import resolve_threads
from ckce._input.samples import (
    Samples,
    _as_classes,
    check_bandwidth,
    check_bool,
    check_choice,
    check_count,
    check_matrix,
    check_samples,
    check_seed,
    class_names,
    digest,
    warn_of_scale,
)
from ckce._methods.fourier import SAMPLERS, fourier_frequencies
from ckce._methods.landmarks import (
    Landmarks,
    chosen_landmarks,
    given_landmarks,
    stored_landmarks,
    warn_of_missing,
)
from ckce._metrics.ckce import _check_regularization, _label_factor, _refuse_beside_frequencies
from ckce._metrics.ece import check_bins
from ckce._problem.bandwidth import MEDIAN_ROWS, pooled_median
from ckce._problem.kernels import KERNELS
from ckce._stream import state_file as _state
from ckce._stream.config import StreamConfig, check_shapes, check_sums, possible_weights
from ckce._stream.evaluation import StreamEvaluation, evaluation_of


class CKCEAccumulator:
    r"""CKCE and its companions of a stream of batches, in memory that does not grow with the rows.

    The state is sums over rows, :math:`\Phi^\top \Phi`, :math:`\Phi^\top R` and their like for
    random Fourier features :math:`\Phi`, or features of landmarks, so states of parts of the data
    can be merged by addition:

    .. math:: \mathrm{CKCE} = \lVert (\Phi^\top\Phi + \lambda n I)^{-1} \Phi^\top R \rVert_F^2

    0 is strong calibration; the value is biased upwards, see `evaluate` for floor and debiased
    value. `compute` equals ``ckce.ckce(method="fourier")`` on all rows to 1e-12. Any split of the
    rows into batches gives the same bits; merged states agree to 1e-12. One accumulator may be used
    from several threads, and a call that raises leaves it as it was.

    Parameters
    ----------
    n_classes : int
        m.
    bandwidth : float or "median"
        Give it, or use `from_sample`, if states are to be merged. With ``"median"`` it is the
        median of the first 2000 rows (of all rows while there are fewer), which are held back until
        then.
    kernel : {"linear_gaussian", "gaussian", "laplace", "linear"}
        Kernel on the simplex.
    n_frequencies, sampler, random_state, frequencies
        As in `ckce`.
    landmarks : array of shape (r, n_classes), optional
        Predictions S that span the features, :math:`\Phi = K_{QS} L^{-\top}` with
        :math:`L L^\top = K_{SS}` (Nystroem): closer to the exact kernel than Fourier features
        where S resembles the data, see docs/streaming.md. The bandwidth must be given beside them.
        `from_sample` chooses them with ``n_landmarks``.
    label_kernel, regularization
        As in `ckce`.
    debias : bool
        Also keep the sums for the debiased value and the floor; about three times the work.
    n_bins : int
        Uniform bins of the confidence, for the top-label ECE and the reliability diagram.
    labels : sequence, optional
        The label of each column, as in `ckce`; needed for string labels.
    normalize, from_logits : bool
        As in `ckce`, for every batch.
    shard_id : str, optional
        Name of the part of the data that this accumulator will see. States that share one are not
        merged, so that no part counts twice.
    n_threads : int, optional
        Threads; never changes a bit of the result. A batch needs several thousand rows to occupy
        them.

    Notes
    -----
    An update costs O(n d^2), d = m + 2 D features, or O(n d (d + m)) with d = r landmarks; `compute`
    O(d^3). The state has about d (d + m)
    numbers, 2 d^2 more with `debias`: 1.2 MB for m = 10, 52 MB for m = 1000 (D = 100). Up to
    1023 rows wait in it until a block is full; a saved state contains them.

    Examples
    --------
    >>> import ckce
    >>> acc = ckce.CKCEAccumulator(n_classes=2, bandwidth=0.5)
    >>> acc.update([0, 1], [[0.9, 0.1], [0.2, 0.8]])
    >>> acc.update([1, 0], [[0.6, 0.4], [0.7, 0.3]])
    >>> round(acc.compute(), 6)
    0.023584
    >>> acc
    CKCEAccumulator(n_classes=2, method='fourier', kernel='linear_gaussian', bandwidth=0.5, n_samples=4)
    """

    def __init__(
        self,
        n_classes: int,
        *,
        bandwidth: float | str = "median",
        kernel: str = "linear_gaussian",
        n_frequencies: int = 100,
        sampler: str = "gaussian",
        frequencies: Any = None,
        landmarks: Any = None,
        label_kernel: Any = None,
        regularization: float | None = None,
        random_state: int = 0,
        debias: bool = True,
        n_bins: int = 10,
        labels: Any = None,
        normalize: bool = False,
        from_logits: bool = False,
        shard_id: str | None = None,
        n_threads: int | None = None,
    ) -> None:
        m = check_count("n_classes", n_classes)
        if m < 2:
            raise ValueError(f"n_classes must be at least 2, got {n_classes}")
        check_choice("kernel", kernel, list(KERNELS))
        check_choice("sampler", sampler, SAMPLERS)
        seed = check_seed(random_state)
        if isinstance(regularization, str):
            raise TypeError(
                f"regularization must be a number, got {regularization!r}: to choose it needs all rows"
            )
        if regularization is not None:
            regularization, _ = _check_regularization(regularization, 1.0)
        threads = resolve_threads(n_threads)
        given, placed = None, None
        if landmarks is not None:
            _refuse_fourier("landmarks are the features", n_frequencies, sampler, frequencies)
            placed = given_landmarks(landmarks, m, kernel, bandwidth, threads)
        if frequencies is not None:
            _refuse_beside_frequencies(bandwidth, n_frequencies, sampler)
            given = check_matrix("frequencies", frequencies, (None, m))
        if kernel == "linear":
            _refuse_for_linear(bandwidth, n_frequencies, sampler, frequencies)
            gamma, source = None, "none"
        elif given is not None:
            gamma, source = None, "frequencies"
        elif isinstance(bandwidth, str):
            gamma, source = None, check_choice("bandwidth", bandwidth, ["median"])
        else:
            gamma, source = check_bandwidth(bandwidth), "given"
        drawn = kernel != "linear" and given is None and placed is None
        method = "linear" if kernel == "linear" else "fourier"
        self._config = StreamConfig(
            n_classes=m,
            method=method if placed is None else "landmarks",
            kernel=kernel,
            bandwidth=gamma,
            bandwidth_source=source,
            n_frequencies=check_count("n_frequencies", n_frequencies) if drawn else None,
            sampler=sampler if drawn else None,
            random_state=seed if drawn else None,
            frequencies=None if given is None else digest(given),
            label_kernel=None,
            regularization=regularization,
            debias=check_bool("debias", debias),
            n_bins=check_bins(n_bins),
            labels=None if labels is None else _check_labels(labels, m),
            normalize=check_bool("normalize", normalize),
            from_logits=check_bool("from_logits", from_logits),
            landmarks=None if placed is None else placed.name,
        )
        if normalize and from_logits:
            raise ValueError("normalize and from_logits exclude each other, got True for both")
        factor = _label_factor(label_kernel, m)
        if factor is not None:
            matrix = check_matrix("label_kernel", label_kernel, (m, m))
            self._config = dataclasses.replace(self._config, label_kernel=digest(matrix))
        if drawn:  # refuses what has no frequencies
            given = self._draw(1.0)
        self._set_up(self._config, given, factor, _check_shard(shard_id), threads, None, placed)

    def _set_up(
        self,
        config: StreamConfig,
        frequencies: NDArray[np.float64] | None,
        factor: NDArray[np.float64] | None,
        shard_id: str | None,
        n_threads: int,
        chebyshev: NDArray[np.float64] | None = None,
        landmarks: Landmarks | None = None,
    ) -> None:
        """Everything but the arguments' checks; `frequencies` are those at bandwidth 1 if drawn."""
        self._config = config
        self._stored_chebyshev = chebyshev
        self._frequencies = frequencies
        self._landmarks = landmarks
        self._factor = factor
        self._shard_id = shard_id
        self._n_threads = n_threads
        self._lock = threading.Lock()  # of what follows, but not of what the engine does
        self._shards = frozenset(() if shard_id is None else (shard_id,))
        self._weighted = False  # a weight other than 1 was seen; signatures say so
        self._held: list[Samples] = []
        self._engine = None if config.pending else self._make_engine(config)

    def _draw(self, bandwidth: float) -> NDArray[np.float64]:
        config = self._config
        assert config.n_frequencies is not None
        assert config.sampler is not None
        assert config.random_state is not None
        return fourier_frequencies(
            config.n_classes,
            config.n_frequencies,
            bandwidth=bandwidth,
            kernel=config.kernel,
            sampler=config.sampler,
            random_state=config.random_state,
        )

    def _make_engine(self, config: StreamConfig) -> _core.Accumulator:
        tail = (self._factor, config.scattered, config.debias, config.n_bins)
        if config.method == "linear":
            return _core.linear_accumulator(config.n_classes, *tail)
        if self._landmarks is not None:
            assert config.bandwidth is not None
            points, factor = self._landmarks.points, np.asfortranarray(self._landmarks.factor)
            return _core.landmark_accumulator(
                points, factor, config.kernel, config.bandwidth, *tail
            )
        assert self._frequencies is not None
        scale = 1.0 if config.bandwidth is None else config.bandwidth
        frequencies = np.asfortranarray(self._frequencies / scale)
        chebyshev = np.asfortranarray(self._chebyshev(config))
        return _core.fourier_accumulator(frequencies, chebyshev, config.linear_part, *tail)

    def _chebyshev(self, config: StreamConfig) -> NDArray[np.float64]:
        """What stands for the trigonometric features of two classes; empty if nothing does.

        A state that was loaded keeps its own: sums of other features cannot be added to it.
        """
        if self._stored_chebyshev is not None:
            return self._stored_chebyshev
        assert self._frequencies is not None
        scale = 1.0 if config.bandwidth is None else config.bandwidth
        return _core.chebyshev_factor(np.asfortranarray(self._frequencies / scale))

    @classmethod
    def from_sample(
        cls, y_true: Any, y_prob: Any, *, n_landmarks: int | None = None, **options: Any
    ) -> CKCEAccumulator:
        """An empty accumulator whose bandwidth is the median of a sample, maybe with landmarks of it.

        The rows of the sample are *not* counted; pass them to `update` as well if they are part of
        the data. Make all accumulators that are to be merged out of one: by `fresh`, or by its
        bytes, or give its ``bandwidth`` and ``landmarks`` to the others.

        Parameters
        ----------
        y_true, y_prob
            The sample, as in `ckce`; a few thousand rows suffice.
        n_landmarks : int, optional
            Features of so many landmarks, in place of Fourier features: rows of the sample, drawn as
            the random pivots of a Cholesky factorisation (``random_state`` is its seed). Fewer
            where the rest of the sample adds nothing, see `landmarks`.
        **options
            Of the class, but for `n_classes`, `landmarks` and, without `n_landmarks`, `bandwidth`.

        Returns
        -------
        CKCEAccumulator

        Examples
        --------
        >>> import ckce
        >>> y, q = [0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
        >>> acc = ckce.CKCEAccumulator.from_sample(y, q)
        >>> acc.n_samples, round(acc.bandwidth, 6)
        (0, 0.565685)
        """
        sampled = ("n_classes", "bandwidth") if n_landmarks is None else ("n_classes",)
        for name in (*sampled, "landmarks"):
            if name in options:
                raise TypeError(f"{name} comes from the sample, got {name}={options[name]!r}")
        labels = options.pop("labels", None)
        samples = check_samples(
            y_true,
            y_prob,
            labels=labels,
            sample_weight=options.pop("sample_weight", None),
            normalize=check_bool("normalize", options.get("normalize", False)),
            from_logits=check_bool("from_logits", options.get("from_logits", False)),
            n_threads=resolve_threads(options.get("n_threads")),
        )
        names = class_names(y_true, labels, samples.m)
        if labels is not None or isinstance(names[0], str):
            options["labels"] = names
        source = f"median of a sample of {samples.n}"
        if n_landmarks is not None:
            return cls._with_landmarks(
                samples, check_count("n_landmarks", n_landmarks), source, **options
            )
        acc = cls(samples.m, **options)
        if acc._config.pending:
            acc._config = acc._with_median(samples, source)
            acc._engine = acc._make_engine(acc._config)
        return acc

    @classmethod
    def _with_landmarks(
        cls,
        samples: Samples,
        count: int,
        source: str,
        *,
        bandwidth: float | str = "median",
        kernel: str = "linear_gaussian",
        random_state: int = 0,
        n_threads: int | None = None,
        **options: Any,
    ) -> CKCEAccumulator:
        """Landmarks out of a sample, and the bandwidth too if it is not given."""
        seed, threads = check_seed(random_state), resolve_threads(n_threads)
        check_choice("kernel", kernel, list(KERNELS))
        if isinstance(bandwidth, str):
            check_choice("bandwidth", bandwidth, ["median"])
            gamma, source = _median(samples, kernel, seed, source)
        else:
            gamma, source = check_bandwidth(bandwidth), "given"
        points = chosen_landmarks(samples, count, kernel, gamma, seed, threads)
        options.update(kernel=kernel, random_state=seed, n_threads=n_threads)
        acc = cls(samples.m, bandwidth=gamma, landmarks=points, **options)
        acc._config = dataclasses.replace(acc._config, bandwidth_source=source)
        return acc

    def _with_median(self, samples: Samples, source: str) -> StreamConfig:
        config = self._config
        assert config.random_state is not None
        gamma, words = _median(samples, config.kernel, config.random_state, source)
        return dataclasses.replace(config, bandwidth=gamma, bandwidth_source=words)

    @property
    def n_classes(self) -> int:
        """m."""
        return self._config.n_classes

    @property
    def n_samples(self) -> int:
        """Rows of positive weight so far."""
        with self._lock:
            held = sum(samples.n for samples in self._held)
            return held if self._engine is None else self._engine.rows()

    @property
    def bandwidth(self) -> float | None:
        """The bandwidth; None for the linear kernel, given frequencies, or until it is known."""
        return self._config.bandwidth

    @property
    def landmarks(self) -> NDArray[np.float64] | None:
        """The landmarks (r, n_classes), to be given to others; None for other features."""
        return None if self._landmarks is None else self._landmarks.points.copy()

    @property
    def config(self) -> dict[str, Any]:
        """What must be the same in states that are merged, and where the bandwidth comes from."""
        return self._config.to_dict()

    @property
    def shards(self) -> frozenset[str]:
        """Names of the parts of the data in this state."""
        return self._shards

    def update(self, y_true: Any, y_prob: Any, sample_weight: Any = None) -> None:
        """Add a batch of rows; a batch without rows changes nothing.

        Parameters
        ----------
        y_true, y_prob, sample_weight
            As in `ckce`. Weights count copies of a row.
        """
        config = self._config
        samples = check_samples(
            y_true,
            y_prob,
            labels=config.labels,
            sample_weight=sample_weight,
            normalize=config.normalize,
            from_logits=config.from_logits,
            n_threads=self._n_threads,
            n_classes=config.n_classes,
        )
        if samples.n == 0:
            return
        held = False
        if self._engine is None:
            with self._lock:
                if self._engine is None:
                    self._hold(samples)
                    held = True
        if not held:
            assert self._engine is not None
            _feed(self._engine, samples, self._n_threads)
        if samples.weights is not None and (samples.weights != 1.0).any():
            self._weighted = True

    def _hold(self, samples: Samples) -> None:
        """Wait for the rows that the bandwidth comes from. Under the lock."""
        wanted = MEDIAN_ROWS - sum(held.n for held in self._held)
        if samples.n < wanted:
            self._held.append(_copied(samples))
            return
        first = _joined([*self._held, _rows(samples, slice(0, wanted))])
        config = self._with_median(first, f"median of the first {MEDIAN_ROWS} rows")
        engine = self._make_engine(config)
        _feed(engine, first, self._n_threads)
        _feed(engine, _rows(samples, slice(wanted, None)), self._n_threads)
        self._held, self._config, self._engine = [], config, engine

    def _current(self) -> tuple[_core.Accumulator, StreamConfig]:
        """The engine, or one for the rows held back."""
        with self._lock:
            if self._engine is not None:
                return self._engine, self._config
            if not self._held:
                raise ValueError("the accumulator holds no rows yet; call update first")
            rows = _joined(self._held)
            config = self._with_median(rows, "median")
        engine = self._make_engine(config)
        _feed(engine, rows, self._n_threads)
        return engine, config

    def compute(self) -> float:
        """CKCE of all rows so far, at least 0."""
        engine, config = self._current()
        result = engine.solve(config.regularization, False, self._n_threads)
        if config.method == "landmarks":
            warn_of_missing(result.missing, stacklevel=3)
        return result.solution.value

    def evaluate(self) -> StreamEvaluation:
        """Everything the state can tell, in one table; no interval, which needs the rows.

        Returns
        -------
        StreamEvaluation

        Examples
        --------
        >>> import ckce
        >>> acc = ckce.CKCEAccumulator(n_classes=2, bandwidth=0.4)
        >>> acc.update([0, 1, 1, 0, 1, 0], [0.1, 0.8, 0.4, 0.3, 0.9, 0.6])
        >>> acc.evaluate()
        n = 6, m = 2, fourier features, bandwidth 0.4
        accuracy    0.6667  mean confidence 0.7500
        log loss    0.4372
        Brier       0.2900
        CKCE        0.0031  floor 0.0522: the mean of a calibrated model
        debiased   -0.0367  no interval: needs the rows
        JKCE       -0.0861  unbiased; biased 0.0027
        top label   0.3167  ECE; overconfident by 0.0833
        signature  ckce|v0.1|method:fourier|sampler:gaussian|k:linear_gaussian|gamma:0.4|D:100|s:0|lam:n^-0.25|n:6|m:2|p:float64
        """
        engine, config = self._current()
        result = engine.solve(config.regularization, True, self._n_threads)
        n, weight = result.rows, result.scores.weight
        weighted = self._weighted or weight != n
        if weighted:
            warn_of_scale(weight / n, stacklevel=3)
        if config.method == "landmarks":
            warn_of_missing(result.missing, stacklevel=3)
        return evaluation_of(config, result, weighted)

    def merge(self, other: CKCEAccumulator) -> CKCEAccumulator:
        """Add the rows of another accumulator; returns this one.

        Both must have been made with the same options, and the bandwidth must be known. Parts with
        the same `shard_id` are refused.

        Parameters
        ----------
        other : CKCEAccumulator
            Stays as it is.

        Returns
        -------
        CKCEAccumulator
            This accumulator.
        """
        if not isinstance(other, CKCEAccumulator):
            raise TypeError(f"other must be a CKCEAccumulator, got {type(other).__name__}")
        for acc in (self, other):
            acc._known_engine("merging")
        found = self._config.difference(other._config)
        if found is not None:
            raise ValueError("{} must be the same to merge, got {!r} and {!r}".format(*found))
        if not self._same_features(other):
            raise ValueError(
                "features must be the same to merge, got states written by versions of ckce that "
                "compute them differently"
            )
        with other._lock:
            state, shards = other._known_engine("merging").state(), other._shards
            weighted = other._weighted
        with self._lock:
            twice = sorted(self._shards & shards)
            if twice:
                more = f" and {len(twice) - 1} more" if len(twice) > 1 else ""
                raise ValueError(f"shard_id {twice[0]!r}{more} is in both states; merge it once")
            self._known_engine("merging").merge(state, self._n_threads)
            self._shards |= shards
            self._weighted |= weighted
        return self

    def _same_features(self, other: CKCEAccumulator) -> bool:
        """Of states with the same configuration."""
        if self._landmarks is not None:
            assert other._landmarks is not None
            return self._landmarks.same_features(other._landmarks)
        if self._config.method != "fourier":
            return True
        a, b = (acc._chebyshev(acc._config) for acc in (self, other))
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=0.0, atol=1e-12))

    def __iadd__(self, other: CKCEAccumulator) -> CKCEAccumulator:
        if not isinstance(other, CKCEAccumulator):
            return NotImplemented
        return self.merge(other)

    def __add__(self, other: CKCEAccumulator) -> CKCEAccumulator:
        if not isinstance(other, CKCEAccumulator):
            return NotImplemented
        return self.copy().merge(other)

    def __radd__(self, other: Any) -> CKCEAccumulator:
        return self.copy() if other == 0 else NotImplemented  # for sum()

    def reset(self) -> None:
        """Forget all rows. A bandwidth that came from the first rows is forgotten, too."""
        with self._lock:
            if "of the first" in self._config.bandwidth_source:
                self._config = dataclasses.replace(
                    self._config, bandwidth=None, bandwidth_source="median"
                )
                self._stored_chebyshev = None
            self._shards = frozenset(() if self._shard_id is None else (self._shard_id,))
            self._weighted = False
            self._held = []
            self._engine = None if self._config.pending else self._make_engine(self._config)

    def fresh(self, shard_id: str | None = None) -> CKCEAccumulator:
        """An empty accumulator with the same options and bandwidth, for another part of the data."""
        twin = object.__new__(type(self))
        twin._set_up(
            self._config,
            self._frequencies,
            self._factor,
            _check_shard(shard_id),
            self._n_threads,
            self._stored_chebyshev,
            self._landmarks,
        )
        return twin

    def copy(self) -> CKCEAccumulator:
        """An accumulator with the same state, independent of this one."""
        with self._lock:
            twin = self.fresh(self._shard_id)
            twin._shards, twin._held = self._shards, list(self._held)
            twin._weighted = self._weighted
            if self._engine is not None:
                assert twin._engine is not None
                twin._engine.merge(self._engine.state(), self._n_threads)
        return twin

    def sums(self) -> NDArray[np.float64]:
        """All rows as one vector of sums; adding two such vectors merges their rows.

        For engines that can reduce arrays by addition. Its layout is in docs/streaming.md; rows
        that wait for their block are summed up here, so bits depend on where the stream was cut.
        """
        return self._known_engine("sums").settled()

    def add_sums(self, sums: Any) -> None:
        """Add the rows that `sums` of an accumulator with the same options stands for.

        Nothing in the vector tells its options: comparing `config` is up to the caller.
        """
        engine = self._known_engine("add_sums")
        vector = np.ascontiguousarray(sums, dtype=np.float64)
        check_sums(vector)
        none = np.zeros((0, self.n_classes), order="F"), np.zeros(0, np.int64), np.zeros(0)
        engine.merge_arrays(vector, *none, self._n_threads)

    def _known_engine(self, what: str) -> _core.Accumulator:
        if self._engine is None:
            raise ValueError(
                f"bandwidth must be known before {what}, got bandwidth='median' with fewer than "
                f"{MEDIAN_ROWS} rows; give it, or use CKCEAccumulator.from_sample"
            )
        return self._engine

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> CKCEAccumulator:
        return self.copy()

    def __repr__(self) -> str:
        config = self._config
        bandwidth = "unknown yet" if config.pending else repr(config.bandwidth)
        placed = self._landmarks
        count = "" if placed is None else f"n_landmarks={len(placed.points)}, "
        return (
            f"CKCEAccumulator(n_classes={config.n_classes}, method={config.method!r}, {count}"
            f"kernel={config.kernel!r}, bandwidth={bandwidth}, n_samples={self.n_samples})"
        )

    def _encoded(self) -> Any:
        with self._lock:
            config, shards, held, engine = self._config, self._shards, self._held, self._engine
            state = None if engine is None or engine.rows() == 0 else engine.state()
        arrays: dict[str, NDArray[Any]] = {}
        if self._frequencies is not None:
            arrays["frequencies"] = self._frequencies
        if self._landmarks is not None:
            arrays["landmarks"] = self._landmarks.points
            arrays["landmark_factor"] = self._landmarks.factor
        if self._factor is not None:
            arrays["label_factor"] = self._factor
        rows: Samples | None
        if engine is not None and config.method == "fourier":
            arrays["chebyshev"] = self._chebyshev(config)
        if state is not None:
            arrays["sums"] = state.sums
            rows = Samples(state.tail_labels, state.tail_probs, state.tail_weights)
        else:
            rows = _joined(held) if held else None
        if rows is not None:
            arrays["tail_probs"] = rows.probs.astype(np.float64, copy=False)
            arrays["tail_labels"] = rows.labels
            arrays["tail_weights"] = np.ones(rows.n) if rows.weights is None else rows.weights
        from ckce import __version__

        header = {
            "kind": "CKCEAccumulator",
            "ckce": __version__,
            "config": config.to_dict(),
            "shard_id": self._shard_id,
            "shards": sorted(shards),
            "weighted": self._weighted,
        }
        return _state.encode(header, arrays, 1 if self._landmarks is None else 2)

    def to_bytes(self) -> bytes:
        """The state as bytes, for `from_bytes`; pickle uses them, too."""
        return b"".join(self._encoded())

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> CKCEAccumulator:
        """The accumulator that `to_bytes` wrote.

        Anything that is not such a state, whole and unchanged, is refused with a ValueError.
        """
        return cls._decoded(data, "data")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, which is replaced at once: a crash leaves the old or the new."""
        _state.write(path, self._encoded())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CKCEAccumulator:
        """The accumulator that `save` wrote."""
        return cls._decoded(_state.read(path), str(path))

    @classmethod
    def _decoded(cls, data: bytes | bytearray | memoryview, name: str) -> CKCEAccumulator:
        header, arrays = _state.decode(data, name)
        if header.get("kind") != "CKCEAccumulator":
            raise ValueError(f"{name} holds {header.get('kind')!r}, not a CKCEAccumulator")
        try:
            config = dict(header["config"])
            config["labels"] = None if config["labels"] is None else tuple(config["labels"])
            placed = None
            if config["method"] == "landmarks":
                found = arrays["landmarks"], arrays["landmark_factor"]
                placed = stored_landmarks(*found, check_count("n_classes", config["n_classes"]))
            check_shapes(StreamConfig(**config), arrays, placed)
            acc = object.__new__(cls)
            acc._set_up(
                StreamConfig(**config),
                arrays.get("frequencies"),
                None if "label_factor" not in arrays else np.asfortranarray(arrays["label_factor"]),
                header["shard_id"],
                resolve_threads(None),
                arrays.get("chebyshev"),
                placed,
            )
            acc._shards = frozenset(header["shards"])
            acc._weighted = bool(header.get("weighted", False))
            acc._restore(arrays)
        except _state.DAMAGE as error:
            raise ValueError(f"{name} holds a state that cannot be: {error}") from None
        return acc

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take sums and rows out of a file: checked, since a label indexes memory."""
        m = self.n_classes
        rows = None
        if "tail_probs" in arrays:
            probs, labels = arrays["tail_probs"], arrays["tail_labels"].astype(np.int64)
            weights = arrays["tail_weights"].astype(np.float64)
            if probs.ndim != 2 or probs.shape[1] != m or len(probs) >= MEDIAN_ROWS:
                raise ValueError(f"rows of shape {probs.shape}")
            if labels.shape != (len(probs),) or weights.shape != (len(probs),):
                raise ValueError(f"{len(probs)} rows, labels and weights of other shapes")
            if not possible_weights(weights).all():
                raise ValueError("weights must be positive")
            report = _core.validate(probs, labels, 1.0, 1)
            if report.not_finite.count or report.negative.count or report.bad_label.count:
                raise ValueError("rows that are no predictions")
            rows = Samples(labels, probs, weights)
        if self._engine is None:
            self._held = [rows] if rows is not None else []
            return
        if rows is None and "sums" not in arrays:
            return
        if rows is None:
            raise ValueError("sums without rows")
        sums = np.ascontiguousarray(arrays["sums"])
        check_sums(sums)
        self._engine.merge_arrays(
            sums, np.asfortranarray(rows.probs), rows.labels, rows.weights, self._n_threads
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return CKCEAccumulator.from_bytes, (self.to_bytes(),)


def _refuse_for_linear(bandwidth: Any, n_frequencies: int, sampler: str, frequencies: Any) -> None:
    if not (isinstance(bandwidth, str) and bandwidth == "median"):
        raise ValueError(f"kernel='linear' takes no bandwidth, got bandwidth={bandwidth!r}")
    _refuse_fourier("kernel='linear' needs no features", n_frequencies, sampler, frequencies)


def _refuse_fourier(why: str, n_frequencies: Any, sampler: str, frequencies: Any) -> None:
    """Refuse options of Fourier features where these are not used."""
    given = {"n_frequencies": (n_frequencies, 100), "sampler": (sampler, "gaussian")}
    for name, (value, default) in given.items():
        if value != default:
            raise ValueError(f"{why}, got {name}={value!r}")
    if frequencies is not None:
        raise ValueError(f"{why}, got frequencies")


def _median(samples: Samples, kernel: str, seed: int, source: str) -> tuple[float, str]:
    """The bandwidth, and `source` in the words of what was found."""
    gamma, how = pooled_median([samples], kernel, seed, resolve_threads(None))
    kind = how.split(",")[0]  # "median", "median>0" or "no distances"
    return gamma, source.replace("median", kind, 1)


def _check_shard(shard_id: object) -> str | None:
    if shard_id is not None and not isinstance(shard_id, str):
        raise TypeError(f"shard_id must be a string, got {shard_id!r}")
    return shard_id


def _check_labels(labels: Any, m: int) -> tuple[Any, ...]:
    names = tuple(_as_classes(labels, m).tolist())
    for name in names:
        if not isinstance(name, (str, int, float, bool)):
            raise TypeError(f"labels must be strings or numbers, got {name!r}")
    return names


def _feed(engine: _core.Accumulator, samples: Samples, n_threads: int) -> None:
    if samples.n > 0:
        engine.update(samples.probs, samples.labels, samples.weights, n_threads)


def _rows(samples: Samples, rows: slice) -> Samples:
    weights = None if samples.weights is None else samples.weights[rows]
    return Samples(samples.labels[rows], samples.probs[rows], weights)


def _copied(samples: Samples) -> Samples:
    """The caller may reuse its memory."""
    weights = None if samples.weights is None else samples.weights.copy()
    return Samples(samples.labels.copy(), samples.probs.copy(), weights)


def _joined(parts: list[Samples]) -> Samples:
    weighted = any(part.weights is not None for part in parts)
    weights = [np.ones(part.n) if part.weights is None else part.weights for part in parts]
    return Samples(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.probs for part in parts]),
        np.concatenate(weights) if weighted else None,
    )
