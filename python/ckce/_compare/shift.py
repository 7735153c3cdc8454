"""Calibration errors over a series of shifted data sets: the paper's brightness figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ckce._compare.curve import ShiftCurve, ShiftPoint
from ckce._input import Samples, check_level, check_samples
from ckce._methods import Method
from ckce._metrics.ece import ece_estimate_of
from ckce._metrics.estimate import ckce_fields, estimate_of
from ckce._metrics.jkce import jkce_estimate_of
from ckce._metrics.scores import scores_of
from ckce._problem import (
    Bandwidth,
    Problem,
    ReductionLike,
    Regularization,
    Settings,
    check_bandwidth_option,
    check_reduction,
    check_regularization,
    check_settings,
    median_of,
    problem_of,
    progress_bar,
)


def shift_curve(
    y_true: Any,
    y_prob: Mapping[str, Any],
    *,
    shifts: Sequence[float | str] | None = None,
    level: float = 0.95,
    bandwidth: float | str = "own",
    method: str | Method = "auto",
    kernel: str = "linear_gaussian",
    regularization: float | None = None,
    reduction: ReductionLike = None,
    groups: Any = None,
    labels: Any = None,
    random_state: int = 0,
    input: str = "probs",
    normalize: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> ShiftCurve:
    """CKCE, JKCE and ECE of models over a series of shifted data sets, with intervals.

    The paper's brightness figure: a measure of calibration that ranks models should rank them alike
    on every shift, and move little where only the distribution of the predictions moves.

    Parameters
    ----------
    y_true : array of shape (n_samples,), or a sequence of such arrays
        Labels, the same for all shifts, or those of each.
    y_prob : dict of sequences of arrays of shape (n_samples, n_classes)
        For each model its predictions on each of the shifted sets, in one order; a 3-D array will do.
    shifts : sequence of numbers or str, optional
        Names of the data sets; by default 0, 1, 2, ...
    level : float
        Level of the intervals of debiased CKCE and JKCE.
    bandwidth : "own", "pooled" or float
        The median of each model on each set, as in the paper; one median over all of them; or a
        number.
    method : {"auto", "exact", "fourier", "cholesky", "landmarks"}, or an object with options
        Of CKCE and JKCE alike; see `ckce`.
    regularization : float, optional
        One lambda for all sets; by default n^(-1/4) for the n of the smallest, because values at
        different lambdas are not comparable.
    reduction : "top_label" or `TopK`, optional
        Of CKCE and JKCE, as in `compare`.
    groups : array of shape (n_samples,), or a sequence of such arrays, optional
        Ids of rows that depend on each other, as in `estimate`: the same for all shifts, or those of
        each.
    kernel, labels, random_state, input, normalize, n_threads, progress
        As in `ckce`.

    Returns
    -------
    ShiftCurve
        With ``plot()``, ``to_dict()`` and ``to_frame()``.

    Notes
    -----
    CKCE has a floor and depends on n through lambda: compare sets of one size, or debiased values.
    Costs an `estimate` and a `jkce_estimate` for each model and shift.

    Examples
    --------
    >>> import ckce
    >>> y_true = [0, 1, 1, 0, 1, 0]
    >>> sure = [[0.1, 0.8, 0.6, 0.2, 0.9, 0.3], [0.2, 0.8, 0.6, 0.3, 0.9, 0.4]]
    >>> unsure = [[0.4, 0.6, 0.3, 0.6, 0.5, 0.5], [0.5, 0.6, 0.3, 0.7, 0.4, 0.5]]
    >>> curve = ckce.shift_curve(y_true, {"a": sure, "b": unsure}, shifts=[-10, 10])
    >>> print(curve.sentence("ckce"))
    CKCE has the models in one order at all 2 shifts; the range of a model is at most 92% of its mean
    """
    level = check_level(level)
    rule = check_bandwidth_option(bandwidth, ("own", "pooled"))
    check_reduction(reduction, ("top_label",))
    check_regularization(regularization, loo=False)  # one lambda for all, never chosen apart
    settings = check_settings(
        "ckce",
        method=method,
        kernel=kernel,
        bandwidth="median" if isinstance(rule, str) else rule,
        regularization=regularization,
        reduction=reduction,
        random_state=random_state,
        n_threads=n_threads,
    )
    cells = _check_cells(
        y_true,
        y_prob,
        groups,
        labels=labels,
        input=input,
        normalize=normalize,
        n_threads=settings.n_threads,
    )
    names, count = tuple(cells), len(next(iter(cells.values())))
    marks = tuple(range(count)) if shifts is None else tuple(_plain(shift) for shift in shifts)
    if len(marks) != count or len(set(marks)) != count:
        raise ValueError(f"shifts must name the {count} data sets of each model, got {shifts!r}")
    problems = _problems(cells, settings, pooled=rule == "pooled")
    sizes = {samples.n for _, samples, _ in problems}
    points: list[ShiftPoint] = []
    with progress_bar(progress, f"{len(names)} models, {count} shifts") as report:
        for name, samples, problem in problems:
            points.append(_point(name, marks[len(points) % count], samples, problem, level))
            if report is not None:
                report(len(points) / len(problems))
    return ShiftCurve(
        names=names,
        shifts=marks,
        points=tuple(points),
        level=level,
        n_classes=cells[names[0]][0].m,
        method=problems[0][2].method.word,
        bandwidth_rule=rule if isinstance(rule, str) else "given",
        regularization=problems[0][2].regularization.value,
        smallest=min(sizes) if regularization is None and len(sizes) > 1 else None,
    )


def _problems(
    cells: Mapping[str, list[Samples]], settings: Settings, *, pooled: bool
) -> list[tuple[str, Samples, Problem]]:
    """The samples and problems of all models on all sets, with one lambda."""
    reduced = {name: [settings.reduce(each) for each in sets] for name, sets in cells.items()}
    groups = [samples for sets in reduced.values() for samples in sets]
    gamma: Bandwidth | None = None
    if pooled and settings.kernel.has_bandwidth:
        seed, threads = settings.seed, settings.n_threads
        gamma = median_of(groups, settings.kernel, seed, threads, pooled=True)
    lam = None
    if settings.regularization is None and len({samples.n for samples in groups}) > 1:
        lam = Regularization(min(samples.n for samples in groups) ** -0.25, "given")
    given: dict[str, Any] = {"bandwidth": gamma, "regularization": lam}
    return [
        (name, samples, problem_of("ckce", samples, settings, **given, reduced=rows))
        for name, sets in cells.items()
        for samples, rows in zip(sets, reduced[name], strict=True)
    ]


def _plain(shift: Any) -> float | str:
    if isinstance(shift, str):
        return shift
    number = shift.item() if isinstance(shift, np.generic) else shift
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(f"shifts must be numbers or strings, got {shift!r}")
    return number


def _check_cells(y_true: Any, y_prob: Any, groups: Any, **options: Any) -> dict[str, list[Samples]]:
    """Checked samples of every model on every shift."""
    if not isinstance(y_prob, Mapping):
        raise TypeError(
            f"y_prob must be a dict of predictions by model, got {type(y_prob).__name__}"
        )
    if not y_prob:
        raise ValueError("y_prob must hold at least one model, got none")
    counts = {name: len(sets) for name, sets in y_prob.items()}
    count = next(iter(counts.values()))
    if count == 0 or set(counts.values()) != {count}:
        raise ValueError(f"all models must have predictions on the same shifts, got {counts}")
    truths, grouped = _of_shifts("y_true", y_true, count), _of_shifts("groups", groups, count)
    cells: dict[str, list[Samples]] = {}
    n_classes = set()
    for name, sets in y_prob.items():
        if not isinstance(name, str):
            raise TypeError(f"y_prob must have strings as keys, got {name!r}")
        cells[name] = []
        for k in range(count):
            try:
                samples = check_samples(
                    truths[k], sets[k], groups=grouped[k], ranked=True, **options
                )
                cells[name].append(samples)
            except (TypeError, ValueError) as error:
                raise type(error)(f"model {name!r}, shift {k}: {error}") from None
            n_classes.add(cells[name][-1].m)
    if len(n_classes) > 1:
        raise ValueError(
            f"all predictions must have the same classes, got {sorted(n_classes)} of them"
        )
    return cells


def _of_shifts(name: str, given: Any, count: int) -> Sequence[Any]:
    """Labels or groups of each shift."""
    several = getattr(given, "ndim", 1) == 2 or (
        isinstance(given, (list, tuple)) and len(given) > 0 and np.ndim(given[0]) == 1
    )
    if not several:
        return [given] * count
    if len(given) != count:
        what = "labels" if name == "y_true" else "groups"
        raise ValueError(
            f"{name} must hold the {what} of {count} shifts, or one array for all, got "
            f"{len(given)} arrays"
        )
    return list(given)


def _point(
    name: str, shift: float | str, samples: Samples, problem: Problem, level: float
) -> ShiftPoint:
    threads = problem.n_threads
    e = estimate_of(problem, progress=False)
    j = jkce_estimate_of(problem.of_jkce(), progress=False)
    scores = scores_of(samples, threads)
    jkce_low, jkce_high = j.interval(level)
    return ShiftPoint(
        model=name,
        shift=shift,
        n_samples=samples.n,
        accuracy=scores.hits / scores.weight,
        ece_top_label=ece_estimate_of(samples, threads).value,
        jkce=j.value,
        jkce_se=j.se,
        jkce_low=jkce_low,
        jkce_high=jkce_high,
        **ckce_fields(e, level),
        bandwidth=e.bandwidth,
        signature=e.signature,
        n_groups=e.n_groups,
    )
