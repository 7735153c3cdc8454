"""
A language model answers multiple-choice questions
==================================================

A language model gives a log-probability to each answer A, B, C and D. Can you trust its confidence, and does a
temperature help? The script makes the log-probabilities of 2,000 questions: the model knows the topic, but its
logits are too large by a factor of 1.8. Replace ``logits`` and ``answer`` with your own.
"""

import matplotlib.pyplot as plt
import numpy as np

import ckce

rng = np.random.default_rng(0)
honest = rng.normal(size=(2000, 4)) * rng.choice([0.5, 1.5, 3.0], size=(2000, 1))
truth = np.exp(honest) / np.exp(honest).sum(axis=1, keepdims=True)
answer = (rng.random((2000, 1)) > truth.cumsum(axis=1)[:, :3]).sum(axis=1)
logits = 1.8 * honest

# %%
# ``Choices`` applies a softmax to the numbers of each question, and sorts them: "B" means another thing in every
# question, so the rank of the right answer is the label. Questions may have different numbers of choices.
print(ckce.evaluate(answer, ckce.Choices(logits), test=True))

# %%
# Temperature scaling divides the logits by one number. It is chosen on one half of the questions by log loss,
# and measured on the other half.
fit, new = slice(0, 1000), slice(1000, 2000)
temperatures = np.linspace(0.5, 4, 36)
losses = [ckce.log_loss(answer[fit], logits[fit] / t, input="logits") for t in temperatures]
best = temperatures[np.argmin(losses)]
print(f"temperature {best:.1f}")

# %%
# A comparison on the other half says whether the improvement is real.
models = {
    "as it is": ckce.Choices(logits[new]),
    f"temperature {best:.1f}": ckce.Choices(logits[new] / best),
}
comparison = ckce.compare(answer[new], models)
print(comparison)

# %%
ckce.reliability_diagram(answer[new], models).plot()
plt.show()
