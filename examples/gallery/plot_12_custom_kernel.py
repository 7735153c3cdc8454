"""
A kernel of your own
====================

The kernel says which predictions are similar. Four kernels have names; a function of two arrays of predictions
is a kernel, too. Here a kernel for ordered classes compares cumulative probabilities, so that predictions which
move probability to a neighbouring grade are more similar than predictions which move it far away.
"""

import matplotlib.pyplot as plt
import numpy as np

import ckce

rng = np.random.default_rng(0)
truth = rng.dirichlet(np.full(5, 0.8), size=800)
grade = (rng.random((800, 1)) > truth.cumsum(axis=1)[:, :4]).sum(axis=1)
probs = truth**1.6 / (truth**1.6).sum(axis=1, keepdims=True)

# %%
# The function returns the kernel matrix of the rows of P against the rows of Q. It must be positive
# semi-definite; this one is a Gaussian of the distance between cumulative probabilities.


def ordered(P, Q, scale=0.5):
    """exp(-|F_p - F_q|^2 / (2 scale^2)) of the cumulative probabilities."""
    distance = ((P.cumsum(axis=1)[:, None] - Q.cumsum(axis=1)[None]) ** 2).sum(axis=-1)
    return np.exp(-distance / (2 * scale**2))


print(ckce.estimate(grade, probs, kernel=ordered))

# %%
# Does the verdict depend on the kernel? Values of different kernels have different scales, so they are divided
# by their floors.
kernels = ["linear_gaussian", "gaussian", "laplace", "linear", ordered]
estimates = [ckce.estimate(grade, probs, kernel=kernel) for kernel in kernels]
names = [kernel if isinstance(kernel, str) else "ordered (ours)" for kernel in kernels]
figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.barh(names, [estimate.value / estimate.floor for estimate in estimates])
ax.axvline(1, color="black", linewidth=0.8)
ax.set(xlabel="CKCE / floor (1: a calibrated model)")
ax.invert_yaxis()
plt.show()
