"""What is said of two models at equal predictions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ckce._compare.ground import ROWS_PER_COLUMN, PairGround
from ckce._results import Facts, finite, form_of, interval, number, p_value, percent

#: Share of common ground below which two models are not compared.
LEAST_SHARE = 0.10
#: Resolution below which the balance is said to be coarse.
LEAST_RESOLUTION = 0.9
#: Share of the larger value that a difference must have where the balance is coarse: what is not
#: balanced made differences of up to a quarter between models with the same residual function.
LEAST_CHANGE = 0.25


@dataclass(frozen=True)
class CommonGround:
    """Two models compared where both predict; prints as a few lines.

    Attributes
    ----------
    first, second : str
        The models.
    verdict : str
        ``"different"``, ``"not shown"``, ``"depends on settings"``, ``"no common ground"``,
        ``"too few rows"``; or ``"needs the rows"``, from states that hold none.
    better : str or None
        The better calibrated model, if they are different.
    sentence : str
        The verdict in words.
    first_value, second_value : float
        Debiased CKCE of each on the common ground; comparable within this pair only.
    difference, se, low, high : float
        `first_value` - `second_value`, which is above 0 if the first is worse; its paired standard
        error and interval.
    p_value, p_holm : float
        Two-sided, the largest of the three runs; adjusted for all pairs of a comparison by Holm's
        method within each run, NaN for pairs that are not compared.
    share : float
        Share of the predictions' variety that both models have, from 0 to 1.
    resolution : float
        Share of the kernel at half the bandwidth that its landmarks capture: where it is below 0.9,
        fine miscalibration is not balanced, and a difference below a quarter of the larger value
        is no verdict.
    z : tuple of float
        difference / se of the three runs: base, with landmarks at a quarter of the bandwidth, with
        10 eps.
    own_difference, own_se, own_p_value : float
        The same for debiased CKCE itself, which also depends on the spread of the predictions.
    own_error : float
        Error of the method in `own_difference`: a bound for ``exact`` and ``cholesky``, an
        estimate by a jackknife over groups of frequencies for ``fourier``, NaN if it is not known.
    level : float
        Level of the intervals; a difference is shown if `p_holm` is below 1 - level.
    """

    first: str
    second: str
    verdict: str
    better: str | None
    sentence: str
    first_value: float
    second_value: float
    difference: float
    se: float
    low: float
    high: float
    p_value: float
    p_holm: float
    share: float
    resolution: float
    z: tuple[float, ...]
    own_difference: float
    own_se: float
    own_p_value: float
    own_error: float
    level: float
    signature: str = ""

    @property
    def significant(self) -> bool:
        """Whether a difference is shown."""
        return self.better is not None

    def __post_init__(self) -> None:
        # One NaN for all, so that equal results are equal.
        for name, value in vars(self).items():
            if isinstance(value, float) and math.isnan(value):
                object.__setattr__(self, name, math.nan)

    @property
    def worse(self) -> str | None:
        """The other one, if one is better."""
        if self.better is None:
            return None
        return self.second if self.better == self.first else self.first

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; what is not finite becomes None."""
        return finite({**dataclasses.asdict(self), "z": [_plain(z) for z in self.z]})

    def _facts(self) -> Facts:
        form = form_of([self.first_value, self.second_value, self.difference])
        values = f"{number(self.first_value, form)} / {number(self.second_value, form)}"
        spread = f"{percent(self.level)} interval {_ends(self.low, self.high, form)}"
        own_form = form_of([self.own_difference])
        rows = (
            (self.verdict, "", self.sentence),
            ("values", values, f"{self.first} / {self.second}, at equal predictions"),
            ("difference", number(self.difference, form), f"{spread}, z {_three(self.z)}"),
            ("share", f"{self.share:.2f}", f"common ground; resolution {self.resolution:.2f}"),
            ("own CKCE", number(self.own_difference, own_form), f"p = {self.own_p_value:.2g}"),
        )
        return Facts(rows, self.signature)

    def __repr__(self) -> str:
        return self._facts().text()

    def _repr_html_(self) -> str:
        return self._facts().html()


@dataclass(frozen=True)
class Pair:
    """The numbers of a pair, before it is judged."""

    names: tuple[str, str]
    ground: PairGround | None  # None: there are too few rows
    own: tuple[float, float]  # difference and standard error of debiased CKCE
    constant: str | None  # the model that always predicts the same, if only one does
    n_samples: float
    balancing: int
    groups: float | None = None  # their effective number
    own_error: float = math.nan

    @property
    def own_p_value(self) -> float:
        return p_value(*self.own, self.groups)

    @property
    def refusal(self) -> str | None:
        if self.ground is None:
            return "too few rows"
        if self.constant is None and self.ground.share < LEAST_SHARE:
            return "no common ground"
        if all(map(math.isnan, self.ground.errors)):
            return "needs the rows"
        return None

    @property
    def p_values(self) -> tuple[float, ...]:
        if self.ground is None:
            return (math.nan,) * 3
        both = zip(self.ground.differences, self.ground.errors, strict=True)
        return tuple(p_value(difference, se, self.groups) for difference, se in both)


def judge(pairs: Sequence[Pair], level: float, signature: str = "") -> tuple[CommonGround, ...]:
    """Verdicts: a difference only where all three runs show it, with one sign."""
    alpha = 1 - level
    judged = [k for k, pair in enumerate(pairs) if pair.refusal is None]
    adjusted: dict[int, list[float]] = {k: [] for k in judged}
    for run in range(3):
        of_run = holm([pairs[k].p_values[run] for k in judged])
        for k, p in zip(judged, of_run, strict=True):
            adjusted[k].append(p)
    own = holm([pair.own_p_value for pair in pairs])
    return tuple(
        _judge_one(pair, adjusted.get(k), own[k] < alpha, level, signature)
        for k, pair in enumerate(pairs)
    )


def _judge_one(
    pair: Pair, adjusted: list[float] | None, own: bool, level: float, signature: str
) -> CommonGround:
    nan = math.nan
    ground = pair.ground
    if ground is None:
        ground = PairGround((nan, nan), (nan,) * 3, (nan,) * 3, nan, nan)
    difference, se = ground.differences[0], ground.errors[0]
    verdict, better = pair.refusal, None
    if verdict is None and adjusted is not None:
        shown = [p < 1 - level for p in adjusted]
        signs = {d > 0.0 for d in ground.differences}
        verdict = "depends on settings" if any(shown) else "not shown"
        if all(shown) and len(signs) == 1 and not _may_be_fine(ground):
            verdict, better = "different", pair.names[1] if difference > 0.0 else pair.names[0]
    assert verdict is not None
    low, high = interval(difference, se, level, pair.groups)
    found = CommonGround(
        first=pair.names[0],
        second=pair.names[1],
        verdict=verdict,
        better=better,
        sentence="",
        first_value=ground.values[0],
        second_value=ground.values[1],
        difference=difference,
        se=se,
        low=low,
        high=high,
        p_value=max(pair.p_values),
        p_holm=nan if adjusted is None else max(adjusted),
        share=ground.share,
        resolution=ground.resolution,
        z=ground.z,
        own_difference=pair.own[0],
        own_se=pair.own[1],
        own_p_value=pair.own_p_value,
        own_error=pair.own_error,
        level=level,
        signature=signature,
    )
    return dataclasses.replace(found, sentence=_sentence(found, pair, own))


def _may_be_fine(ground: PairGround) -> bool:
    """Whether miscalibration that is not balanced could make the whole difference."""
    least = LEAST_CHANGE * max(ground.values)
    return ground.resolution < LEAST_RESOLUTION and abs(ground.differences[0]) < least


def _sentence(found: CommonGround, pair: Pair, own: bool) -> str:
    """The verdict in words; `own`: debiased CKCE differs significantly."""
    sentences = [_SENTENCES[found.verdict](found, pair, own)]
    if pair.ground is not None and found.verdict != "no common ground":
        if pair.constant is not None:
            sentences.append(
                f"{pair.constant} always predicts the same; the two are compared at that prediction "
                "only."
            )
        if found.resolution < LEAST_RESOLUTION:
            sentences.append("Miscalibration finer than half the bandwidth is not balanced here.")
    return " ".join(sentences)


def _different(found: CommonGround, pair: Pair, own: bool) -> str:
    form = form_of([found.difference])
    low, high = sorted((abs(found.low), abs(found.high)))
    numbers = f"difference {number(abs(found.difference), form)}, {percent(found.level)} interval"
    shared = f"; {100 * found.share:.0f} % of the predictions' variety is shared"
    words = (
        f"At equal predictions {found.better} is better calibrated than {found.worse} ({numbers} "
        f"{_ends(low, high, form)}{'' if pair.constant else shared})."
    )
    if own and (found.own_difference > 0.0) != (found.difference > 0.0):
        words += (
            " CKCE itself orders them the other way: its value also reflects how the predictions "
            "are spread."
        )
    return words


def _not_shown(found: CommonGround, pair: Pair, own: bool) -> str:
    if own:
        return "CKCE differs, but no difference is shown where both models predict."
    form = form_of([found.difference])
    ends = _ends(found.low, found.high, form)
    # The interval is of this pair alone and may leave 0 out; the verdict is about all pairs.
    adjusted = (
        f"; p = {found.p_holm:.2g} over three settings and all pairs"
        if found.low * found.high > 0
        else ""
    )
    return (
        f"At equal predictions no difference between {found.first} and {found.second} is shown "
        f"({found.first} minus {found.second} {number(found.difference, form)}, "
        f"{percent(found.level)} interval {ends}{adjusted})."
    )


def _depends(found: CommonGround, pair: Pair, own: bool) -> str:
    if found.p_holm < 1 - found.level and len({z > 0.0 for z in found.z}) == 1:
        part = found.difference / max(found.first_value, found.second_value)
        return (
            f"At equal predictions the values differ by {100 * abs(part):.0f} %, and below "
            f"{100 * LEAST_CHANGE:.0f} % fine miscalibration may be the reason: no verdict."
        )
    return (
        f"The comparison at equal predictions depends on its settings (z = {_three(found.z)}): no "
        "verdict."
    )


def _no_ground(found: CommonGround, pair: Pair, own: bool) -> str:
    return (
        "The models predict in different regions; calibration cannot be compared at equal "
        "predictions."
    )


def _too_few(found: CommonGround, pair: Pair, own: bool) -> str:
    return (
        f"Too few rows to compare at equal predictions: that takes {ROWS_PER_COLUMN * pair.balancing} "
        f"here, and there are {pair.n_samples:g}."
    )


def _needs_rows(found: CommonGround, pair: Pair, own: bool) -> str:
    form = form_of([found.first_value, found.second_value, found.difference])
    first, second, both = (
        number(value, form) for value in (found.first_value, found.second_value, found.difference)
    )
    return (
        f"At equal predictions the value of {found.first} is {first}, that of {found.second} "
        f"{second} (difference {both}). A verdict needs another pass over the rows, which ckce.scan "
        "makes: these are sums."
    )


_SENTENCES = {
    "different": _different,
    "not shown": _not_shown,
    "depends on settings": _depends,
    "no common ground": _no_ground,
    "too few rows": _too_few,
    "needs the rows": _needs_rows,
}


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment; the order is kept."""
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    order = sorted(range(len(p_values)), key=lambda k: p_values[k])
    for rank, k in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[k]))
        adjusted[k] = largest
    return adjusted


def _ends(low: float, high: float, form: str) -> str:
    return f"{number(low, form)} to {number(high, form)}"


def _three(z: tuple[float, ...]) -> str:
    return ", ".join(f"{each:.1f}" for each in z)


def _plain(z: float) -> float | None:
    return z if math.isfinite(z) else None
