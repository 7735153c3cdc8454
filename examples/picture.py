"""The picture of the README and of the home page: ``python examples/picture.py [file.png]``."""

import sys

import matplotlib.pyplot as plt
import numpy as np

import ckce

rng = np.random.default_rng(1)
honest = rng.dirichlet([0.8, 0.8, 0.8], size=4000)
labels = (rng.random((4000, 1)) > honest.cumsum(axis=1)[:, :2]).sum(axis=1)


def sharpened(power):
    """The same decisions with other confidence."""
    return honest**power / (honest**power).sum(axis=1, keepdims=True)


models = {"underconfident": sharpened(0.6), "calibrated": honest, "overconfident": sharpened(1.6)}
plt.rcParams["font.size"] = 9
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
ckce.reliability_diagram(labels, models, n_bins=10).plot(ax=left)
ckce.compare(labels, models).plot(ax=right)
right.set(xlabel="CKCE (better to the left)", xticks=[0, 0.01, 0.02, 0.03])
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "home.png", dpi=150)
