"""Everything in the catalogue is refused, in words, and nothing is touched."""

import hashlib
import inspect

import numpy as np
import pandas as pd
import pytest
from catalogue import CATALOGUE

import ckce
from ckce._input.words import InputError, InputTypeError


def fingerprint(thing):
    """Digest of what a caller could find changed."""
    if isinstance(thing, np.ma.MaskedArray):
        return fingerprint((thing.data, thing.mask))
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        text = f"{thing.dtype}{thing.shape}{thing.strides}".encode() + thing.tobytes()
        return hashlib.sha256(text).hexdigest()
    if isinstance(thing, ckce.CKCEAccumulator):
        return hashlib.sha256(thing.to_bytes()).hexdigest()
    if isinstance(thing, pd.DataFrame):
        return fingerprint(thing.to_numpy())
    if isinstance(thing, (list, tuple)):
        return [fingerprint(item) for item in thing]
    return repr(thing)


@pytest.mark.parametrize("refusal", CATALOGUE, ids=str)
def test_refused(refusal):
    before = fingerprint(refusal.watched)
    with pytest.raises(refusal.error) as caught:
        refusal.call()
    for fragment in refusal.fragments:
        assert fragment in str(caught.value)
    kind = type(caught.value)  # not one that merely inherits from it
    assert {InputError: ValueError, InputTypeError: TypeError}.get(kind, kind) is refusal.error
    assert fingerprint(refusal.watched) == before


# Without an argument that could be bad, or handing its arguments to matplotlib or pandas.
HARMLESS = {
    "show_config",
    "copy",
    "reset",
    "to_bytes",
    "attribution",
    "to_dict",
    "to_frame",
    "split",
    "table",
    "arguments",
    "GroundAccumulator.fresh",
}


METHODS = {
    "Blocks",
    "Cholesky",
    "Choices",
    "Exact",
    "Fourier",
    "Landmarks",
    "TopK",
    "TopKPredictions",
}
MADE = {"CKCEAccumulator"} | METHODS  # classes that users make


def entry_points():
    """Public functions, classes that users make, and public methods of all classes."""
    for name in ckce.__all__:
        thing = getattr(ckce, name)
        if not inspect.isclass(thing):
            yield name
            continue
        if name in MADE:
            yield name
        if name in METHODS:
            continue  # their methods are the house's own
        for method, _ in inspect.getmembers(thing, callable):
            if not method.startswith(("_", "plot")) and method not in HARMLESS:
                yield f"{name}.{method}"


@pytest.mark.parametrize("name", sorted(set(entry_points()) - HARMLESS))
def test_every_entry_point_is_in_the_catalogue(name):
    assert name in {refusal.entry for refusal in CATALOGUE}


def test_the_catalogue_is_large():
    assert len(CATALOGUE) >= 100
    assert len({refusal.name for refusal in CATALOGUE}) >= 0.95 * len(CATALOGUE)
