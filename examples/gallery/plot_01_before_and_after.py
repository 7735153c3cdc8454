"""
Two classifiers, before and after calibration
=============================================

Does recalibration help, and is the improvement more than chance? A naive Bayes classifier and a random forest
are fitted to handwritten digits. Each is then calibrated with scikit-learn's ``CalibratedClassifierCV``.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import ckce

X, y = load_digits(return_X_y=True)
X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

models = {}
for name, model in {
    "bayes": GaussianNB(),
    "forest": RandomForestClassifier(100, random_state=0),
}.items():
    models[name] = model.fit(X_fit, y_fit).predict_proba(X_new)
    calibrated = CalibratedClassifierCV(model, method="isotonic", cv=5)
    models[f"{name}, calibrated"] = calibrated.fit(X_fit, y_fit).predict_proba(X_new)

# %%
# All four models are compared on the same rows, with one bandwidth and one lambda.
comparison = ckce.compare(y_new, models)
print(comparison)

# %%
# The dots are debiased values with 95 % intervals. The grey marks are floors: the mean of a calibrated model.
comparison.plot()
plt.show()

# %%
# The reliability diagram shows the direction of the error. The naive Bayes classifier is overconfident, and the
# forest is underconfident.
ckce.reliability_diagram(y_new, models).plot()
plt.show()
