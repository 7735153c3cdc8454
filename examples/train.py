"""Train a digit classifier with CKCE as a term of the loss, and measure it on held-out rows."""

import torch
from sklearn.datasets import load_digits

import ckce
from ckce.integrations.torch import CKCELoss

torch.set_num_threads(1)  # faster for small matrices
torch.manual_seed(0)
x, y = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
x = x.float() / 16
order = torch.randperm(len(y))
train, test = order[:1200], order[1200:]


def fit(weight):
    """Probabilities of the test rows after 15 epochs."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    calibration = CKCELoss(weight)
    for _ in range(15):
        for rows in train[torch.randperm(len(train))].split(128):
            logits = model(x[rows])
            loss = torch.nn.functional.cross_entropy(logits, y[rows]) + calibration(logits, y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return torch.softmax(model(x[test]), dim=1).detach().numpy()


for name, weight in (("cross entropy", 0.0), ("with CKCE", 1.0)):
    probs = fit(weight)
    print(
        f"{name:13}  accuracy {ckce.accuracy(y[test], probs):.3f}  NLL {ckce.log_loss(y[test], probs):.4f}"
    )
    print(f"{'':13}  debiased CKCE {ckce.estimate(y[test], probs).debiased:.2e}")
