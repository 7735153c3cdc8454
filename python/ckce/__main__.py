"""``python -m ckce``: two models of known calibration on made-up data."""

import numpy as np

import ckce


def main() -> None:
    """Print the CKCE of a calibrated and of an overconfident model."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(1000, 5))
    models = {
        "calibrated": np.exp(logits),
        "overconfident": np.exp(2.0 * logits),  # the same ranking of classes, too sure of it
    }
    for name, powers in models.items():
        models[name] = powers / powers.sum(axis=1, keepdims=True)
    cumulative = models["calibrated"].cumsum(axis=1)
    y_true = (rng.random((1000, 1)) > cumulative[:, :-1]).sum(axis=1)

    # One bandwidth for both, or the numbers could not be compared.
    bandwidth = float(np.mean([ckce.median_bandwidth(y_prob) for y_prob in models.values()]))
    for name, y_prob in models.items():
        print(f"{name} model\n{ckce.estimate(y_true, y_prob, bandwidth=bandwidth)}\n")
    print("A calibrated model scores about its floor, so its debiased value is near 0.")


if __name__ == "__main__":
    main()
