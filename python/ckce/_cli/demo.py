"""Three made-up models, to show the whole job."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STORY = (
    "Three made-up models of the same cases. Labels were drawn from the probabilities of honest; "
    "boastful and timid rank the classes alike, but are too sure and not sure enough."
)
MORAL = (
    "In short: {best} is better calibrated than the others. Where it says 70 %, it is right in about "
    "70 % of the cases; boastful is right less often than it says, timid more often."
)
NEXT_STEPS = "next: ckce score preds.npz, ckce compare a.npz b.npz, ckce demo -o report.html"


def made_up_models() -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """Labels, and three models that rank the classes alike and differ in how sure they are."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(1000, 5))
    models = {}
    for name, sharpness in {"honest": 1.0, "boastful": 2.0, "timid": 0.6}.items():
        powers = np.exp(sharpness * logits)
        models[name] = powers / powers.sum(axis=1, keepdims=True)
    draws = rng.random((1000, 1)) > models["honest"].cumsum(axis=1)[:, :-1]
    return draws.sum(axis=1), models
