"""The pictures of docs/comparing.md.

python studies/common_ground_pictures.py                 one curve under two distributions of predictions
python studies/common_ground_pictures.py --data FOLDER   and two networks on CIFAR-10, from FOLDER
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np

import ckce

mpl.use("agg")

import matplotlib.pyplot as plt

OUT = Path(__file__).parent / "plots"
BLUE, ORANGE = "#2b6cb0", "#c05621"
CIFAR = {
    "LeNet": "cifar10_netcal_lenet_5.npz",
    "Wide ResNet": "cifar10_netcal_wideresnet_16_4.npz",
}


def marginals():
    """Two models whose labels follow one curve, one of them with narrow predictions."""
    rng = np.random.default_rng(23)
    n = 4000
    models = {"wide": rng.beta(1, 1, n), "narrow": rng.beta(12, 12, n)}
    u = rng.random(n)
    labels = {
        name: (u < q**0.5 / (q**0.5 + (1 - q) ** 0.5)).astype(int) for name, q in models.items()
    }
    return labels, models


def draw(labels, models, path, target):
    """Reliability curves and histograms of two models, and the two answers."""
    names = tuple(models)
    found = ckce.common_ground(labels, *models.values(), names=names)
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(5.2, 5.4), height_ratios=(3, 1), sharex=True, constrained_layout=True
    )
    top.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
    for name, colour in zip(names, (BLUE, ORANGE), strict=True):
        y = labels[name] if isinstance(labels, dict) else labels
        diagram = ckce.reliability_diagram(y, {name: models[name]}, target=target)
        curve = diagram.curves[0]
        top.fill_between(curve.confidence, curve.low, curve.high, color=colour, alpha=0.18, lw=0)
        top.plot(curve.confidence, curve.frequency, "o-", color=colour, markersize=3, label=name)
        q = np.asarray(models[name])
        shown = q if q.ndim == 1 else q.max(axis=1)
        bottom.hist(shown, bins=50, range=(0, 1), color=colour, alpha=0.5)
    own = found.own_difference / found.own_se
    words = "worse" if found.own_difference > 0 else "better"
    top.set_title(
        f"own CKCE: {names[0]} is {words} (z = {own:+.1f})\n"
        f"at equal predictions: {found.better or 'neither'} is better (z = {found.z[0]:+.1f})",
        fontsize=9,
        loc="left",
    )
    top.set_ylabel("frequency")
    bottom.set_ylabel("cases")
    bottom.set_xlabel("confidence" if target == "top_label" else "prediction")
    top.legend(frameon=False, fontsize=9)
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with the predictions on CIFAR-10")
    args = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    draw(*marginals(), OUT / "common_ground_marginals.png", target=1)
    if args.data is not None:
        files = {name: np.load(args.data / file) for name, file in CIFAR.items()}
        models = {name: file["probs"] for name, file in files.items()}
        labels = files["LeNet"]["labels"]
        draw(labels, models, OUT / "common_ground_cifar10.png", target="top_label")


if __name__ == "__main__":
    main()
