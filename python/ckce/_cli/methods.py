"""What --method and the flags of one method mean."""

from __future__ import annotations

import argparse
from typing import Any

import ckce
from ckce._cli.messages import UsageError

#: Flags of each method, and the fields of its class.
_FIELDS = {
    "exact": {"tol": "tol"},
    "fourier": {"frequencies": "n_frequencies", "sampler": "sampler"},
    "cholesky": {"rank": "rank", "tol": "tol", "pivoting": "pivoting"},
    "landmarks": {"landmarks": "points"},
}
_FLAGS = tuple(dict.fromkeys(flag for own in _FIELDS.values() for flag in own))


def method_options(args: argparse.Namespace) -> dict[str, Any]:
    """Options of the library: the method, and the bandwidth that comes with a state's landmarks."""
    words: dict[str, Any] = {flag: getattr(args, flag, None) for flag in _FLAGS}
    given = {flag: value for flag, value in words.items() if value is not None}
    word = _word(args.method, given)
    if word is None:
        return {}
    foreign = [flag for flag in given if flag not in _FIELDS.get(word, {})]
    if foreign:
        owners = _owners(foreign[0])
        raise UsageError(f"argument --{foreign[0]}: belongs to {owners}, got --method {word}")
    if not given:
        return {"method": word}
    if isinstance(given.get("landmarks"), str):
        return _of_state(given["landmarks"], args.bandwidth)
    fields = {_FIELDS[word][flag]: value for flag, value in given.items()}
    return {"method": getattr(ckce, word.capitalize())(**fields)}


def _owners(flag: str) -> str:
    return " or ".join(f"--method {method}" for method, own in _FIELDS.items() if flag in own)


def _word(method: str | None, given: dict[str, Any]) -> str | None:
    """The method named, or the only one that has all of the flags."""
    if method is not None or not given:
        return method
    fits = [word for word, own in _FIELDS.items() if given.keys() <= own.keys()]
    if len(fits) == 1:
        return fits[0]
    flag, *others = given
    if fits:
        raise UsageError(f"argument --{flag}: say whether it is for {_owners(flag)}")
    raise UsageError(f"argument --{flag}: belongs to {_owners(flag)}, got --{others[-1]} beside it")


def _of_state(path: str, bandwidth: Any) -> dict[str, Any]:
    """The landmarks of a state, with its bandwidth."""
    state = ckce.CKCEAccumulator.load(path)
    if not isinstance(state.method, ckce.Landmarks):
        raise ValueError(f"{path} must be a state of ckce stream --landmarks, got one without")
    if bandwidth not in (None, state.bandwidth):
        raise UsageError(f"argument --bandwidth: {path} has {state.bandwidth!r}, got {bandwidth!r}")
    return {"method": state.method, "bandwidth": state.bandwidth}
