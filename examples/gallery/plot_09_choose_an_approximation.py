"""
Choosing an approximation
=========================

How far is each method from the exact value, and what does it cost? The default, ``method="auto"``, chooses for
you. This script shows the choice behind it.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import ckce

rng = np.random.default_rng(0)
truth = rng.dirichlet(np.full(10, 0.3), size=5000)
labels = (rng.random((5000, 1)) > truth.cumsum(axis=1)[:, :9]).sum(axis=1)
probs = truth**1.5 / (truth**1.5).sum(axis=1, keepdims=True)

# %%
# All methods get the same bandwidth.
bandwidth = ckce.median_bandwidth(probs)
exact = ckce.estimate(labels, probs, method="exact", bandwidth=bandwidth)
print(exact)

# %%
# The error of the features falls as their number grows. Random Fourier features know nothing of the data; a
# Cholesky factor is built from them.
families = {
    "fourier": [ckce.Fourier(n) for n in (25, 50, 100, 200, 400)],
    "fourier, orthogonal": [ckce.Fourier(n, sampler="orthogonal") for n in (25, 50, 100, 200, 400)],
    "cholesky": [ckce.Cholesky(rank=n, pivoting="random") for n in (25, 50, 100, 200, 400)],
}
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, methods in families.items():
    errors, seconds = [], []
    for method in methods:
        started = time.perf_counter()
        value = ckce.ckce(labels, probs, method=method, bandwidth=bandwidth)
        seconds.append(time.perf_counter() - started)
        errors.append(abs(value / exact.value - 1))
    ax.loglog(seconds, errors, marker="o", label=name)
ax.set(xlabel="seconds", ylabel="relative error")
ax.legend(frameon=False)
plt.show()

# %%
# ``cholesky`` certifies its distance to the exact value. The bound is usually far larger than the error.
factor = ckce.estimate(labels, probs, method=ckce.Cholesky(rank=400), bandwidth=bandwidth)
print(f"error {abs(factor.value - exact.value):.1e}, bound {factor.bound:.1e}")
