"""
Is the model calibrated in every group?
=======================================

A model can be calibrated on average and wrong in every group. ``by=`` measures each group on its own, with the same
bandwidth and the same lambda for all, because the defaults depend on the data and on the number of rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import ckce

# %%
# The model does not know the group. Events are more frequent than it says in the north, and less frequent in the
# south, by the same amount on the scale of log odds.
rng = np.random.default_rng(0)
group = rng.choice(["north", "south", "west"], size=6000, p=[0.3, 0.3, 0.4])
risk = rng.beta(2, 3, size=6000)
offset = np.select([group == "north", group == "south"], [0.6, -0.6], 0.0)
odds = np.log(risk / (1 - risk)) + offset
event = (rng.random(6000) < 1 / (1 + np.exp(-odds))).astype(int)

# %%
# The whole looks good, and two of the regions do not. All of them are measured with the bandwidth and the lambda of
# all rows, and their intervals hold for all regions at once.
evaluation = ckce.evaluate(event, risk, by={"region": group})
print(evaluation)

# %%
# The same as a picture.
evaluation.segments.plot()
plt.show()

# %%
# The diagram shows the direction: events are more frequent than predicted in the north, and less in the south.
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for ax, segment in zip(axes, evaluation.segments.rows, strict=True):
    rows = group == segment.value
    ckce.reliability_diagram(event[rows], risk[rows], target=1).plot(ax=ax)
    ax.set_title(segment.value)
plt.show()
