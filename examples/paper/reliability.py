"""Figure "reliability diagram": accuracy against confidence, its histogram, ECE and CKCE beside it.

python examples/paper/reliability.py                  the synthetic model under three marginals
python examples/paper/reliability.py --data DIR       and the models of each data set in DIR

Files as in table1.py.
"""

import numpy as np
from _common import (
    PAGE,
    data_parser,
    figure,
    load,
    parse,
    prediction_files,
    progress,
    save,
    write_csv,
)
from synthetic import draw

import ckce

KEYS = ("confidence", "frequency", "low", "high")


def synthetic_models(quick, seed):
    """{name: (labels, predictions)}: one P(Y | Q) under three marginals."""
    n = 400 if quick else 50_000
    rng = np.random.default_rng(seed)
    return {f"$\\alpha = {alpha:g}$": draw(rng, alpha, n, 0.25) for alpha in (-0.5, 0.0, 0.5)}


def curve(name, y, q, options):
    """Of the confidence; of class 1 where there are two classes."""
    found = ckce.reliability_diagram(
        y,
        {name.replace("_", " "): q},
        target=1 if q.shape[1] == 2 else "top_label",
        n_bins=options.bins,
        strategy=options.strategy,
    )
    return found.curves[0], found.target


def draw_table(ax, rows):
    """A small table in the manner of the paper's Figure 1."""
    ax.axis("off")
    places = (0.0, 0.7, 0.85, 1.0)
    lines = [("", "ECE", "CKCE", "floor")] + [
        (r["model"].replace("_", " "), *(f"{r[key]:.4f}" for key in ("ece", "ckce", "ckce_floor")))
        for r in rows
    ]
    step = 0.09
    heights = [0.65 - step * number for number in range(len(lines))]
    for height, line in zip(heights, lines, strict=True):
        for place, text in zip(places, line, strict=True):
            side = "left" if place == 0 else "right"
            ax.text(place, height, text, ha=side, va="center", fontsize=7)
    for rule in (heights[0] + step / 2, heights[0] - step / 2, heights[-1] - step / 2):
        ax.plot([0, 1], [rule, rule], color="black", linewidth=0.7)
    ax.set(xlim=(0, 1), ylim=(0, 1))


def diagram(data, models, options):
    """Draw one data set; rows (bins, table) for the CSVs."""
    bins, rows, curves = [], [], []
    for name, (y, q) in progress(models.items(), f"reliability {data}"):
        found, target = curve(name, y, q, options)
        curves.append(found)
        estimate = ckce.estimate(y, q, random_state=options.seed)
        rows.append(
            {
                "data": data,
                "model": name,
                "ece": ckce.ece(y, q, variant="simplex", n_bins=options.ece_bins),
                "ckce": estimate.value,
                "ckce_floor": estimate.floor,
            }
        )
        bins += [
            {"data": data, "model": name, "count": int(c), **dict(zip(KEYS, numbers, strict=True))}
            for c, *numbers in zip(
                found.counts,
                *(getattr(found, key).tolist() for key in KEYS),
                strict=True,
            )
        ]
    fig, (left, right) = figure(PAGE, 4.3, 1, 2)
    ckce.ReliabilityDiagram(tuple(curves), target, options.strategy, 0.95).plot(left)
    draw_table(right, rows)
    save(fig, options.out, f"reliability_{data}")
    return bins, rows


def main(argv=None):
    """Write reliability_<data set> figures, reliability.csv and reliability_table.csv."""
    made = data_parser(__doc__)
    made.add_argument("--bins", type=int, default=10, help="bins of the diagram (10)")
    made.add_argument("--strategy", choices=["uniform", "quantile"], default="uniform")
    made.add_argument("--ece-bins", type=int, default=10, help="bins of ECE per class (10)")
    made.add_argument("--models", nargs="+", help="which models (the first three of a data set)")
    options = parse(made, argv)
    sets = {"synthetic": synthetic_models(options.quick, options.seed)}
    if options.data is not None:
        for data, paths in prediction_files(options.data, options.sets).items():
            names = [name for name in paths if options.models is None or name in options.models]
            files = {name: load(paths[name]) for name in names[:3]}
            sets[data] = {name: (file["labels"], file["probs"]) for name, file in files.items()}
    bins, rows = [], []
    for data, models in sets.items():
        found = diagram(data, models, options)
        bins += found[0]
        rows += found[1]
    write_csv(options.out / "reliability.csv", bins)
    write_csv(options.out / "reliability_table.csv", rows)


if __name__ == "__main__":
    main()
