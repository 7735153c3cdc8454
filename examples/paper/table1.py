"""Table 1: accuracy, cross entropy, CKCE, JKCE and ECE of models, and of the marginal model.

python examples/paper/table1.py --data DIR            every <data set>_<model>.npz in DIR
python examples/paper/table1.py                       the marginal model of ImageNet, which needs no data

Each file holds `probs` (n, m), whose rows sum to 1, and `labels` (n,), integers from 0. The marginal
model is added to each data set: equal probabilities, as in the paper, and the frequencies of the
classes where they are not equal.
"""

import numpy as np
from _common import data_parser, load, parse, prediction_files, progress, write_csv

import ckce

IMAGENET = (50_000, 1000)


def row(data, model, y, q, options, method):
    """One line of the table, with what the paper does not print: floor and debiased value."""
    e = ckce.evaluate(y, q, method=method, n_bins=options.bins, random_state=options.seed)
    low, high = e.ckce.interval()
    return {
        "data": data,
        "model": model,
        "n": e.n_samples,
        "m": e.n_classes,
        "accuracy": e.accuracy,
        "cross_entropy": e.log_loss,
        "ckce": e.ckce.value,
        "ckce_floor": e.ckce.floor,
        "ckce_debiased": e.ckce.debiased,
        "ckce_low": low,
        "ckce_high": high,
        "jkce": e.jkce.value,
        "ece": e.ece_simplex.value,
        "ece_top_label": e.ece_top_label.value,
        "occupied_bins": e.ece_simplex.n_occupied,
        "mean_confidence": e.mean_confidence,
        "method": e.ckce.method,
    }


def marginal_rows(data, y, m, options):
    """The marginal model: equal probabilities and, where they differ, the class frequencies."""
    frequencies = np.bincount(y, minlength=m) / len(y)
    models = {"marginal (uniform)": np.full(m, 1 / m)}
    if np.ptp(frequencies) > 0:
        models["marginal (frequencies)"] = frequencies
    # Constant predictions have a Gram matrix of rank 1, so a Cholesky factor is exact.
    return [
        row(data, name, y, np.broadcast_to(q, (len(y), m)), options, "cholesky")
        for name, q in models.items()
    ]


def imagenet_marginal(options):
    """The paper's third row: 50 images of each of 1000 classes, and no model."""
    n, m = (2000, 100) if options.quick else IMAGENET
    return marginal_rows("balanced", np.arange(n) % m, m, options)


def markdown(rows):
    """The table in the paper's layout, and what should stand beside it."""
    lines = [
        "| Data | Model | n | m | Accuracy | Cross entropy | CKCE | JKCE | ECE | floor | debiased CKCE |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    previous = None
    for r in rows:
        data, previous = ("" if r["data"] == previous else r["data"]), r["data"]
        lines.append(
            f"| {data} | {r['model']} | {r['n']:.0f} | {r['m']:.0f} | {r['accuracy']:.3f} "
            f"| {r['cross_entropy']:.3f} | {digits(r['ckce'])} | {digits(r['jkce'])} "
            f"| {r['ece']:.3f} | {digits(r['ckce_floor'])} | {digits(r['ckce_debiased'])} |"
        )
    return "\n".join(lines) + "\n"


def digits(value):
    """Four decimals, or two digits where these show nothing."""
    return f"{value:.4f}" if abs(value) >= 0.001 or abs(value) < 1e-12 else f"{value:.1e}"


def main(argv=None):
    """Write table1.csv and table1.md."""
    made = data_parser(__doc__)
    made.add_argument(
        "--method", default="auto", help="of CKCE and JKCE: auto, exact, cholesky, fourier (auto)"
    )
    made.add_argument("--bins", type=int, default=10, help="bins of ECE per class (10)")
    options = parse(made, argv)
    rows = imagenet_marginal(options)
    sets = {} if options.data is None else prediction_files(options.data, options.sets)
    for data, models in sets.items():
        labels = []
        for model, path in progress(models.items(), data):
            file = load(path)
            labels.append(file["labels"])
            rows.append(row(data, model, file["labels"], file["probs"], options, options.method))
        if all(np.array_equal(labels[0], other) for other in labels):
            rows += marginal_rows(data, labels[0], file["probs"].shape[1], options)
    write_csv(options.out / "table1.csv", rows)
    (options.out / "table1.md").write_text(markdown(rows))


if __name__ == "__main__":
    main()
