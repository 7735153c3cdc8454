"""
A file larger than memory
=========================

``ckce.scan`` reads a file in batches, and an accumulator keeps sums. The memory does not grow with the rows. The
file of this example is small, so that the page is built quickly; the code is the same for a billion rows.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ckce

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())


def predictions(n):
    """Labels and predictions of an overconfident model with three classes."""
    truth = rng.dirichlet([1, 1, 1], size=n)
    labels = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :2]).sum(axis=1)
    return labels, truth**1.5 / (truth**1.5).sum(axis=1, keepdims=True)


for day in ("monday", "tuesday"):
    labels, probs = predictions(100_000)
    np.savez(folder / f"{day}.npz", labels=labels, probs=probs)

# %%
# One file, one line. The result has no interval, because more than two classes stream by features.
monday = ckce.scan(folder / "monday.npz").accumulate()
print(monday.evaluate())

# %%
# States of several files add up. A state can be saved, sent to another machine and loaded again.
tuesday = ckce.scan(folder / "tuesday.npz").accumulate()
tuesday.save(folder / "tuesday.ckce")
both = monday + ckce.CKCEAccumulator.load(folder / "tuesday.ckce")
print(f"{both.n_samples:,} rows in a state of {len(both.to_bytes()) / 1e6:.2f} MB")

# %%
# The value settles as the rows come in. An accumulator can be read at any time.
acc, seen, values = monday.fresh(), [], []
for y_true, y_prob in ckce.scan(folder / "monday.npz", batch_size=5_000):
    acc.update(y_true, y_prob)
    seen.append(acc.n_samples)
    values.append(acc.evaluate().ckce_debiased)

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(seen, values, marker=".")
ax.set(xlabel="rows", ylabel="debiased CKCE", ylim=(0, None))
plt.show()

# %%
# The value grows slowly with the rows, because the default lambda falls as n grows. To compare states of
# different sizes, fix ``regularization=``.
