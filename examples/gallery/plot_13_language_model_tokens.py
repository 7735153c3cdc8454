"""
Tokens of a language model
==========================

An API returns the largest log-probabilities of each token, not all 50,000. Tokens of one document depend on each
other. ``TopKPredictions`` takes the log-probabilities as they come, and ``groups`` names the documents. The script
makes 3,000 tokens of 60 documents; the model is too sure of itself.
"""

import matplotlib.pyplot as plt
import numpy as np

import ckce

rng = np.random.default_rng(0)
n, vocabulary, k = 3000, 500, 20
document = np.repeat(np.arange(60), 50)
logits = rng.normal(size=(n, vocabulary)) * rng.choice([1.5, 2.5, 4.0], size=(n, 1))
truth = np.exp(logits - logits.max(axis=1, keepdims=True))
truth /= truth.sum(axis=1, keepdims=True)
token = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
said = truth**1.3 / (truth**1.3).sum(axis=1, keepdims=True)

top_ids = np.argsort(-said, axis=1)[:, :k]
top_logprobs = np.log(np.take_along_axis(said, top_ids, axis=1))

# %%
# Each prediction is reduced to its five largest entries and "other". The question is then: how often does the
# first choice occur, how often the second, and so on?
predictions = ckce.TopKPredictions(top_logprobs, top_ids, input="log_probs")
estimate = ckce.estimate(token, predictions, reduction=ckce.TopK(5), groups=document)
print(estimate)

# %%
# The contributions of the ranks. The first choice is predicted too often.
print(estimate.attribution())

# %%
# The first choice alone has a reliability diagram: how often it was right, against its probability.
first_is_right = (top_ids[:, 0] == token).astype(int)
ckce.reliability_diagram(first_is_right, np.exp(top_logprobs[:, 0]), target=1).plot()
plt.show()
