"""
Predictions on a Dask cluster
=============================

Each partition becomes a small state on its worker. The states are merged in a tree, and one state comes back.
This script needs ``dask`` and stops with a message if it is missing.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

READY = find_spec("dask") is not None
if not READY:
    print('not run: pip install "ckce[dask]"')

# %%
# Arrays in chunks of rows. On a cluster they would come from files.
if READY:
    import dask.array as da

    from ckce.integrations.dask import accumulate

    rng = np.random.default_rng(0)
    truth = rng.dirichlet([1, 1, 1], size=200_000)
    labels = (rng.random((200_000, 1)) > truth.cumsum(axis=1)[:, :2]).sum(axis=1)
    probs = truth**1.4 / (truth**1.4).sum(axis=1, keepdims=True)
    y_true = da.from_array(labels, chunks=25_000)
    y_prob = da.from_array(probs, chunks=(25_000, 3))

# %%
# ``accumulate`` uses the scheduler that is active: threads here, or the cluster of a
# ``dask.distributed.Client``.
if READY:
    acc = accumulate(y_true, y_prob)
    print(acc.evaluate())

# %%
# The state has everything for a reliability diagram.
if READY:
    acc.evaluate().reliability.plot()
    plt.show()
