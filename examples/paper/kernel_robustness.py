"""Figure "kernel robustness": CKCE over the covariate shift under three kernels, mean of 20 trials.

python examples/paper/kernel_robustness.py            a minute
python examples/paper/kernel_robustness.py --quick    seconds
"""

from _common import COLOURS, COLUMN, figure, save, write_csv
from synthetic import data_sets, kernel_options, mean_curve, options_of, summary

import ckce

KERNELS = {"linear_gaussian": "linear + Gaussian", "linear": "linear", "gaussian": "Gaussian"}


def measure(options):
    """One row for each trial and alpha."""
    rows = []
    for trial, alpha, y, q, gamma in data_sets(options, "kernel robustness"):
        values = {
            kernel: ckce.ckce(y, q, **kernel_options(kernel, gamma, options)) for kernel in KERNELS
        }
        rows.append({"trial": trial, "alpha": alpha, **values})
    return rows


def plot(rows, moves, folder):
    """The figure."""
    fig, ax = figure(COLUMN, 2.5)
    for (kernel, name), colour, dashes, move in zip(
        KERNELS.items(), COLOURS, ("-", "--", "-."), moves, strict=False
    ):
        label = f"{name} (±{100 * move['cv']:.0f} %)"
        ax.plot(*mean_curve(rows, kernel), color=colour, linestyle=dashes, label=label)
    ax.set(xlabel="Location of the inputs $\\alpha$", ylabel="CKCE", xlim=(-1, 1), ylim=(0, None))
    ax.set_xticks((-1, -0.5, 0, 0.5, 1))
    ax.legend(loc="lower left")
    save(fig, folder, "kernel_robustness")


def main(argv=None):
    """Write kernel_robustness.csv, its summary and the figure."""
    options = options_of(__doc__, argv)
    rows = measure(options)
    moves = summary(rows, list(KERNELS))
    write_csv(options.out / "kernel_robustness.csv", rows)
    write_csv(options.out / "kernel_robustness_summary.csv", moves)
    plot(rows, moves, options.out)


if __name__ == "__main__":
    main()
