"""
Does the ranking survive a shift?
=================================

Two models are measured on images that become darker and brighter. A useful measure of calibration should not
reverse its verdict at every level.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

import ckce

X, y = load_digits(return_X_y=True)
X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
models = {
    "logistic": LogisticRegression(max_iter=5000).fit(X_fit, y_fit),
    "neighbours": KNeighborsClassifier(15).fit(X_fit, y_fit),
}

# %%
# Grey values run from 0 to 16. A shift multiplies them and clips the result.
shifts = [-40, -20, 0, 20, 40]
images = [np.clip(X_new * (1 + shift / 100), 0, 16) for shift in shifts]
predictions = {
    name: [model.predict_proba(image) for image in images] for name, model in models.items()
}
curve = ckce.shift_curve(y_new, predictions, shifts=shifts)
print(curve)

# %%
# Bands are 95 % intervals.
curve.plot()
plt.show()
