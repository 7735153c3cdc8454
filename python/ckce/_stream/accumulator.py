"""CKCE of data that does not fit into memory, or onto one machine."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce import _core
from ckce._input import (
    InputError,
    InputTypeError,
    check_memory,
    check_samples,
    check_threads,
    warn_of_scale,
    when_made,
    write_file,
)
from ckce._methods import Landmarks, Method, warn_of_missing
from ckce._metrics.witness import Witness
from ckce._problem import ReductionLike, TopK, reduce_samples
from ckce._stream import state_file
from ckce._stream.codec import Contents
from ckce._stream.config import StreamConfig
from ckce._stream.evaluation import StreamEvaluation, evaluation_of
from ckce._stream.features import make_kept
from ckce._stream.settings import check_shard, make_config, settle_on_sample
from ckce._stream.state import State

_ADVICE = "pass reduction=ckce.TopK(20) or 'top_label', whose state does not grow with the classes"


def _hints(n_classes: int) -> dict[str, str]:
    """Hints of `update`, which takes no options."""
    one_based = (
        "labels look 1-based: pass y_true - 1, or make the accumulator with "
        f"labels=range(1, {n_classes + 1})"
    )
    return {**when_made("accumulator"), "one_based": one_based}


class CKCEAccumulator:
    r"""CKCE and its companions of a stream of batches, in memory that does not grow with the rows.

    Two classes are exact: the state is Chebyshev moments of the predictions, and it holds the
    interval, too. For more classes the state holds sums over rows such as
    :math:`\Phi^\top \Phi` and :math:`\Phi^\top R`, with random Fourier features or landmark features
    :math:`\Phi`. States of parts of the data can be merged by addition:

    .. math:: \mathrm{CKCE} = \lVert (\Phi^\top\Phi + \lambda n I)^{-1} \Phi^\top R \rVert_F^2

    0 is strong calibration; the value is biased upwards, see `evaluate` for floor and debiased
    value. `compute` equals `ckce.ckce` by the same method on all rows to 1e-12. Any split of the
    rows into batches gives the same bits; merged states agree to 1e-12. One accumulator may be used
    from several threads, and a call that raises leaves it as it was.

    Parameters
    ----------
    n_classes : int
        Number of classes m.
    reduction : "top_label" or `TopK`, optional
        As in `ckce`; every batch is reduced as it comes, and the state is that of the reduced
        problem. ``top_label`` is exact for any number of classes.
    method : {"auto", "exact", "fourier", "landmarks"}, or an object with options
        ``auto``: ``exact`` for two classes and a kernel with a Gaussian part, else ``fourier``.
        `Landmarks` need their points, beside which the bandwidth must be given; their number alone
        is for `from_sample`. ``kernel="linear"`` is its own feature map.
    bandwidth : float, "default" or "median"
        ``"default"`` needs no data, 1 - 3 / (2 m), so states of any data can be merged. With
        ``"median"`` it is the median of the first 2000 rows (of all rows while there are fewer),
        which are held back until then; `from_sample` takes the median of a sample.
    kernel : {"linear_gaussian", "gaussian", "laplace", "linear"}
        Kernel on the simplex.
    label_kernel, regularization, random_state
        As in `ckce`.
    debias : bool
        Also keep the sums for the debiased value and the floor; about three times the work.
    n_bins : int
        Uniform bins of the confidence, for the top-label ECE and the reliability diagram.
    labels : sequence, optional
        The label of each column, as in `ckce`; needed for string labels.
    input, normalize
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
    O(d^3). The state has about d (d / 2 + m) numbers, d^2 more with `debias`; docs/streaming.md has
    its sizes. Up to 1023 rows wait in it until a block is full; a saved state contains them. Two classes: an update
    costs O(n), and the state has at most 191 / bandwidth numbers (1.5 kB a cell).

    Examples
    --------
    >>> import ckce
    >>> acc = ckce.CKCEAccumulator(n_classes=2, bandwidth=0.5)
    >>> acc.update([0, 1], [[0.9, 0.1], [0.2, 0.8]])
    >>> acc.update([1, 0], [[0.6, 0.4], [0.7, 0.3]])
    >>> round(acc.compute(), 6)
    0.023304
    >>> acc
    CKCEAccumulator(n_classes=2, method='exact', kernel='linear_gaussian', bandwidth=0.5, n_samples=4)
    """

    def __init__(
        self,
        n_classes: int,
        *,
        reduction: ReductionLike = None,
        method: str | Method = "auto",
        bandwidth: float | str = "default",
        kernel: str = "linear_gaussian",
        label_kernel: Any = None,
        regularization: float | None = None,
        random_state: int = 0,
        debias: bool = True,
        n_bins: int = 15,
        labels: Any = None,
        input: str = "probs",
        normalize: bool = False,
        shard_id: str | None = None,
        n_threads: int | None = None,
    ) -> None:
        threads = check_threads(n_threads)
        config, factor = make_config(
            n_classes,
            reduction=reduction,
            method=method,
            bandwidth=bandwidth,
            kernel=kernel,
            label_kernel=label_kernel,
            regularization=regularization,
            random_state=random_state,
            debias=debias,
            n_bins=n_bins,
            labels=labels,
            input=input,
            normalize=normalize,
        )
        kept = make_kept(config, threads)
        check_memory(kept.price(config, threads), f"a state of {config.columns} classes", _ADVICE)
        contents = Contents(config, kept, factor, None).without_rows(check_shard(shard_id))
        self._state = State(contents, threads)

    @classmethod
    def _of(cls, state: State) -> CKCEAccumulator:
        accumulator = object.__new__(cls)
        accumulator._state = state
        return accumulator

    @classmethod
    def from_sample(cls, y_true: Any, y_prob: Any, **options: Any) -> CKCEAccumulator:
        """An empty accumulator whose bandwidth is the median of a sample, maybe with landmarks of it.

        The rows of the sample are *not* counted; pass them to `update` as well if they are part of
        the data. Make all accumulators that are to be merged out of one: by `fresh`, or by its
        bytes, or give its ``bandwidth`` and ``method`` to the others.

        Parameters
        ----------
        y_true, y_prob
            The sample, as in `ckce`; a few thousand rows suffice.
        **options
            Options of the class except `n_classes`. With ``method=ckce.Landmarks(200)`` the
            landmarks are rows of the sample, drawn as the random pivots of a Cholesky factorisation
            (``random_state`` is its seed), and fewer where the rest of the sample adds nothing. A
            given ``bandwidth`` is kept.

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
        n_classes, options, bandwidth = settle_on_sample(y_true, y_prob, options)
        acc = cls(n_classes, **options)
        if bandwidth is not None:
            acc._state.change(config=dataclasses.replace(acc._state.config, bandwidth=bandwidth))
        return acc

    @property
    def n_classes(self) -> int:
        """m."""
        return self._state.config.n_classes

    @property
    def n_samples(self) -> int:
        """Rows of positive weight so far."""
        return self._state.rows()

    @property
    def bandwidth(self) -> float | None:
        """The bandwidth; None for the linear kernel, given frequencies, or until it is known."""
        return self._state.config.bandwidth.value

    @property
    def method(self) -> Method:
        """The features, to be given to others: ``Landmarks`` with their points."""
        return self._state.config.method

    @property
    def config(self) -> dict[str, Any]:
        """The options that merged states must share, and the source of the bandwidth."""
        return self._state.config.to_dict()

    @property
    def shards(self) -> frozenset[str]:
        """Names of the parts of the data in this state."""
        return self._state.contents.shards

    def update(self, y_true: Any, y_prob: Any, sample_weight: Any = None) -> None:
        """Add a batch of rows; a batch without rows changes nothing.

        Parameters
        ----------
        y_true, y_prob, sample_weight
            As in `ckce`. Weights count copies of a row.
        """
        config = self._state.config
        try:
            samples = check_samples(
                y_true,
                y_prob,
                labels=config.labels,
                sample_weight=sample_weight,
                input=config.input,
                normalize=config.normalize,
                n_threads=self._state.n_threads,
                n_classes=config.n_classes,
                scan=not isinstance(config.reduction, TopK),  # which checks what it reads
                ranked=True,
            )
            if samples.n == 0:
                return
            samples = reduce_samples(samples, config.reduction, self._state.n_threads)
        except (InputError, InputTypeError) as error:
            raise error.renamed({}, _hints(config.n_classes)) from None
        self._state.add(samples)

    def _solve(self, *, full: bool) -> tuple[_core.AccumulatorResult, StreamConfig]:
        with self._state.current() as (engine, config):
            result = engine.solve(
                regularization=config.regularization, full=full, n_threads=self._state.n_threads
            )
        self._warn(result, config)
        return result, config

    def _warn(self, result: _core.AccumulatorResult, config: StreamConfig) -> None:
        if isinstance(config.method, Landmarks):
            warn_of_missing(result.missing)

    def _weight(self, result: _core.AccumulatorResult) -> float | None:
        """That of all rows, where it is not their number."""
        weight = result.scores.weight
        return weight if self._state.contents.weighted or weight != result.rows else None

    def compute(self) -> float:
        """CKCE of all rows so far, at least 0."""
        return self._solve(full=False)[0].solution.value

    def evaluate(self) -> StreamEvaluation:
        """Everything the state can tell, in one table; intervals for two classes.

        Returns
        -------
        StreamEvaluation

        Examples
        --------
        >>> import ckce
        >>> acc = ckce.CKCEAccumulator(n_classes=2, bandwidth=0.4)
        >>> acc.update([0, 1, 1, 0, 1, 0], [0.1, 0.8, 0.4, 0.3, 0.9, 0.6])
        >>> round(acc.evaluate().ckce_debiased, 4)
        -0.0353
        """
        result, config = self._solve(full=True)
        weight = self._weight(result)
        if weight is not None:
            warn_of_scale(weight / result.rows)
        return evaluation_of(config, result, weight is not None)

    def witness(self) -> Witness:
        """CKCE's witness F of all rows so far, see `ckce.witness`.

        The state has no rows: ``w(q)`` works at any predictions (of the reduced problem, if there is
        a reduction), and what needs the rows is refused.

        Returns
        -------
        Witness

        Examples
        --------
        >>> import ckce
        >>> acc = ckce.CKCEAccumulator(n_classes=2, bandwidth=0.4)
        >>> acc.update([0, 1, 1, 0, 1, 0], [0.1, 0.8, 0.4, 0.3, 0.9, 0.6])
        >>> acc.witness()([0.2, 0.5]).round(4).tolist()
        [[0.0228, -0.0228], [0.0211, -0.0211]]
        """
        threads = self._state.n_threads
        with self._state.current() as (engine, config):
            how: dict[str, Any] = {"regularization": config.regularization, "n_threads": threads}
            function = engine.witness(**how)
            result = engine.solve(full=False, **how)  # of the same rows
        self._warn(result, config)
        signature = config.signature(result.rows, self._weight(result))
        return Witness(
            n_classes=config.columns,
            labels=config.classes,
            regularization=result.regularization,
            signature=str(signature.but("witness")),
            _function=function,
            _problem=None,
            _n_threads=threads,
        )

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
        self._state.merge(other._state)
        return self

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
        self._state.reset()

    def fresh(self, shard_id: str | None = None) -> CKCEAccumulator:
        """An empty accumulator with the same options and bandwidth, for another part of the data."""
        return self._of(self._state.fresh(check_shard(shard_id)))

    def copy(self) -> CKCEAccumulator:
        """An accumulator with the same state, independent of this one."""
        return self._of(self._state.copy())

    def sums(self) -> NDArray[np.float64]:
        """All rows as one vector of sums; adding two such vectors merges their rows.

        For engines that can reduce arrays by addition. Its layout is in docs/state_files.md; rows
        that wait for their block are summed up here, so bits depend on where the stream was cut.
        """
        return self._state.sums()

    def add_sums(self, sums: Any) -> None:
        """Add the rows that `sums` of an accumulator with the same options stands for.

        Nothing in the vector tells its options: comparing `config` is up to the caller.
        """
        self._state.add_sums(sums)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> CKCEAccumulator:
        return self.copy()

    def __repr__(self) -> str:
        config = self._state.config
        bandwidth = "unknown yet" if config.pending else repr(config.bandwidth.value)
        reduction = "" if config.reduction is None else f"reduction={config.reduction.word}, "
        return (
            f"CKCEAccumulator(n_classes={config.n_classes}, {reduction}method={config.method.word!r}, "
            f"kernel={config.kernel.name!r}, bandwidth={bandwidth}, n_samples={self.n_samples})"
        )

    def to_bytes(self) -> bytes:
        """The state as bytes, for `from_bytes`; pickle uses them, too."""
        return b"".join(self._state.encode())

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> CKCEAccumulator:
        """The accumulator that `to_bytes` wrote.

        Anything that is not such a state, whole and unchanged, is refused with a ValueError.
        """
        return cls._of(State.decode(data, "data"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, which is replaced at once: a crash leaves the old or the new."""
        write_file(path, self._state.encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CKCEAccumulator:
        """The accumulator that `save` wrote."""
        return cls._of(State.decode(state_file.read(path), os.fsdecode(path)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)
