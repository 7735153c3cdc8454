"""
Where is the model off?
=======================

CKCE is a sum over classes, and every row has an influence on it. The witness says at which predictions the model is
off, and in which direction. All of them tell you where to look first.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import ckce

data = load_digits()
X_fit, X_new, y_fit, y_new = train_test_split(
    data.data, data.target, test_size=0.5, random_state=0, stratify=data.target
)
probs = GaussianNB().fit(X_fit, y_fit).predict_proba(X_new)

# %%
# The classes that contribute most. An over-predicted class occurs less often than the model says.
estimate = ckce.estimate(y_new, probs)
print(estimate.attribution())

# %%
# The contributions add up to the value.
figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
ax.bar(range(10), estimate.per_class)
ax.set(xlabel="digit", ylabel="contribution to CKCE", xticks=range(10))
plt.show()

# %%
# The places where most is to be corrected, in words.
witness = ckce.witness(y_new, probs)
for region in witness.worst_regions():
    print(region.words)

# %%
# The same without words: how often the predicted digit is right, and the second and third most probable one, against
# the probability of each, with a simultaneous band.
witness.plot()
plt.show()

# %%
# The digits with the largest corrections, each against the rest.
witness.plot("classes")
plt.show()

# %%
# How large all of this is, in units of the Brier score.
print(witness.miscalibration)

# %%
# The rows with the largest influence: the model is sure, and wrong.
figure, axes = plt.subplots(1, 6, figsize=(8, 1.9), layout="constrained")
for ax, row in zip(axes, estimate.influence.argsort()[::-1], strict=False):
    ax.imshow(X_new[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(
        f"is {y_new[row]}, says {probs[row].argmax()}\nat {probs[row].max():.0%}", fontsize=8
    )
    ax.axis("off")
plt.show()
