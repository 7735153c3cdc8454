"""
Calibration in a torch validation loop
======================================

A torchmetrics metric collects one state over all batches, so the predictions are never stored. Processes of a
distributed run add their states. This script needs ``torch`` and ``torchmetrics`` and stops with a message if
they are missing.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

READY = find_spec("torch") is not None and find_spec("torchmetrics") is not None
if not READY:
    print('not run: pip install "ckce[torchmetrics]"')

# %%
# A small network for handwritten digits.
if READY:
    import torch
    from torch.nn.functional import cross_entropy

    from ckce.integrations.torchmetrics import CKCE

    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    X_fit, X_new, y_fit, y_new = train_test_split(
        torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y), test_size=0.5, random_state=0
    )
    network = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)

# %%
# After each epoch the validation loop updates the metric batch by batch. ``input="logits"`` takes what the
# network returns. Two metrics with different outputs share one state in a collection.
if READY:
    from torchmetrics import MetricCollection

    validation = MetricCollection(
        {
            "CKCE": CKCE(num_classes=10, input="logits"),
            "ECE": CKCE(num_classes=10, input="logits", output="ece_top_label"),
            "log loss": CKCE(num_classes=10, input="logits", output="log_loss"),
        }
    )
    history = []
    for _ in range(10):
        for rows in torch.randperm(len(X_fit)).split(32):
            optimizer.zero_grad()
            cross_entropy(network(X_fit[rows]), y_fit[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            for rows in torch.arange(len(X_new)).split(128):
                validation.update(network(X_new[rows]), y_new[rows])
        history.append({name: float(value) for name, value in validation.compute().items()})
        validation.reset()
    print({name: round(value, 5) for name, value in history[-1].items()})

# %%
# The metric returns the debiased value, so it may be slightly negative for a calibrated network.
if READY:
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained")
    for ax, name in zip(axes, history[0], strict=True):
        ax.plot(range(1, len(history) + 1), [epoch[name] for epoch in history], marker="o")
        ax.set(title=name, xlabel="epoch")
    plt.show()
