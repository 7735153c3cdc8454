"""
Reliability diagrams of several models
======================================

A reliability diagram plots accuracy against confidence. Bins hold equal numbers of rows, so no point stands on a
few rows, and the bands are Wilson intervals.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import ckce

X, y = make_classification(
    4000, n_features=12, n_informative=6, n_classes=3, flip_y=0.1, random_state=0
)
X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.5, random_state=0)
models = {
    "logistic": LogisticRegression(),
    "forest": RandomForestClassifier(100, min_samples_leaf=5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=40, random_state=0),
}
probs = {name: model.fit(X_fit, y_fit).predict_proba(X_new) for name, model in models.items()}

# %%
# A dict of predictions draws all models into one picture. The histogram below shows how often each confidence
# occurs.
ckce.reliability_diagram(y_new, probs).plot()
plt.show()

# %%
# The top label is only one of the classes. ``target="class_wise"`` draws a panel for each class.
ckce.reliability_diagram(y_new, probs["forest"], target="class_wise").plot()
plt.show()

# %%
# A picture does not rank models. The comparison does.
print(ckce.compare(y_new, probs))
