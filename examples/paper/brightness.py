"""Figure "brightness": CKCE and JKCE of models while the images get darker or brighter.

python examples/paper/brightness.py --data DIR        every <data set>_<model>_brightness.npz in DIR

Each file holds `probs` (levels, n, m), `labels` (n,), integers from 0, and `levels` (levels,), the
change of brightness in percent; imagenet.py writes such files.
"""

import numpy as np
from _common import (
    COLOURS,
    MARKERS,
    PAGE,
    column,
    data_parser,
    figure,
    load,
    parse,
    prediction_files,
    save,
    write_csv,
)

import ckce

PANELS = {"ckce": "CKCE", "ckce_debiased": "CKCE, debiased", "jkce": "JKCE"}


def measure(data, paths, options):
    """One row for each model and level."""
    files = {model: load(path) for model, path in paths.items()}
    first = next(iter(files.values()))
    for model, file in files.items():
        if any(not np.array_equal(file[key], first[key]) for key in ("labels", "levels")):
            raise ValueError(f"{paths[model]} must have the labels and levels of the other models")
    curve = ckce.shift_curve(
        first["labels"],
        {model: file["probs"] for model, file in files.items()},
        shifts=first["levels"].tolist(),
        method=options.method,
        bandwidth=options.bandwidth,
        progress=True,
    )
    return [
        {
            "data": data,
            "model": point.model,
            "level": int(point.shift),
            "accuracy": point.accuracy,
            "ckce": point.ckce,
            "ckce_floor": point.ckce_floor,
            "ckce_debiased": point.ckce_debiased,
            "ckce_debiased_se": point.ckce_se,
            "jkce": point.jkce,
            "jkce_se": point.jkce_se,
            "bandwidth": point.bandwidth,
        }
        for point in curve.points
    ]


def summary(rows):
    """How much each metric moves, and at how many levels it prefers the model it prefers at 0."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    found = []
    for key in PANELS:
        series = {m: column([r for r in rows if r["model"] == m], key) for m in models}
        order = np.argsort([series[m] for m in models], axis=0)
        levels = column([r for r in rows if r["model"] == models[0]], "level")
        kept = int((order == order[:, [np.abs(levels).argmin()]]).all(axis=0).sum())
        found += [
            {
                "data": rows[0]["data"],
                "metric": key,
                "model": m,
                "min": float(s.min()),
                "max": float(s.max()),
                "cv": float(s.std() / s.mean()),
                "levels_in_order": kept,
                "levels": len(levels),
            }
            for m, s in series.items()
        ]
    return found


def plot(rows, folder):
    """One panel for each metric, one line for each model, 95 % bands where there is an error."""
    data = rows[0]["data"]
    models = list(dict.fromkeys(row["model"] for row in rows))
    fig, axes = figure(PAGE, 2.3, 1, len(PANELS), sharex=True)
    for ax, (key, title) in zip(axes, PANELS.items(), strict=True):
        power = int(np.ceil(-np.log10(column(rows, key).max())))
        scale = 10.0**power
        for model, colour, marker in zip(models, COLOURS, MARKERS, strict=False):
            mine = [row for row in rows if row["model"] == model]
            levels, values = column(mine, "level"), scale * column(mine, key)
            if f"{key}_se" in mine[0]:
                half = 1.96 * scale * column(mine, f"{key}_se")
                ax.fill_between(
                    levels, values - half, values + half, color=colour, alpha=0.15, linewidth=0
                )
            ax.plot(levels, values, color=colour, marker=marker, label=model.replace("_", " "))
        ax.margins(y=0.12)
        ax.set(ylabel=f"{title} ($10^{{-{power}}}$)", ylim=(0, None), xticks=(-50, -25, 0, 25, 50))
    axes[1].set_xlabel("Change of image brightness (%)")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(models))
    save(fig, folder, f"brightness_{data}")


def main(argv=None):
    """Write brightness.csv, its summary and a figure for each data set."""
    made = data_parser(__doc__)
    made.add_argument("--method", default="auto", help="of CKCE and JKCE (auto: exact to n = 2000)")
    made.add_argument(
        "--bandwidth",
        default="own",
        help="own: the median heuristic for each model and level; pooled: one for all; or a number",
    )
    options = parse(made, argv)
    if options.bandwidth not in ("own", "pooled"):
        options.bandwidth = float(options.bandwidth)
    if options.data is None:
        made.error("--data is needed: a folder with files <data set>_<model>_brightness.npz")
    rows, moves = [], []
    for data, paths in prediction_files(options.data, options.sets, series=True).items():
        found = measure(data, paths, options)
        plot(found, options.out)
        rows += found
        moves += summary(found)
    if not rows:
        made.error(f"--data must hold files <data set>_<model>_brightness.npz, got {options.data}")
    write_csv(options.out / "brightness.csv", rows)
    write_csv(options.out / "brightness_summary.csv", moves)


if __name__ == "__main__":
    main()
