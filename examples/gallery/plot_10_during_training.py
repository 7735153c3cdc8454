"""
Calibration during training
===========================

A network goes on learning after its probabilities have become too sure. Accuracy does not show that. CKCE does,
with an interval that says whether the change is real.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import ckce

X, y = make_classification(
    2000, n_features=20, n_informative=8, n_classes=3, flip_y=0.15, random_state=1
)
X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.5, random_state=0)

# %%
# ``warm_start`` continues the training from epoch to epoch. The bandwidth is fixed, so that the epochs can be
# compared; the number of rows and with it lambda are the same anyway.
network = MLPClassifier((64,), learning_rate_init=5e-3, max_iter=2, warm_start=True, random_state=0)
epochs, predictions = [], []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for step in range(1, 16):
        network.fit(X_fit, y_fit)
        epochs.append(2 * step)
        predictions.append(network.predict_proba(X_new))
estimates = [ckce.estimate(y_new, probs, bandwidth=0.7) for probs in predictions]

# %%
# Accuracy stays where it is while the probabilities go wrong.
low, high = np.transpose([estimate.interval() for estimate in estimates])
figure, (above, below) = plt.subplots(2, 1, figsize=(6, 4.4), sharex=True, layout="constrained")
above.plot(epochs, [ckce.accuracy(y_new, probs) for probs in predictions], marker=".")
above.set(ylabel="accuracy", ylim=(0.5, 1))
below.fill_between(epochs, low, high, alpha=0.3)
below.plot(epochs, [estimate.debiased for estimate in estimates], marker=".")
below.set(xlabel="epoch", ylabel="debiased CKCE")
plt.show()

# %%
# Is the last epoch worse than the best one? The paired comparison answers. The best epoch was chosen on the same
# rows, so its own value is a little too good; for a final figure use rows that took no part in the choice.
best = int(np.argmin([estimate.debiased for estimate in estimates]))
models = {f"epoch {epochs[best]}": predictions[best], f"epoch {epochs[-1]}": predictions[-1]}
print(ckce.compare(y_new, models))
