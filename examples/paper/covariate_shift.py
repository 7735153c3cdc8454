"""Figure "covariate shift": CKCE, JKCE and ECE while P(X) moves and P(Y | X) stays.

python examples/paper/covariate_shift.py              two minutes
python examples/paper/covariate_shift.py --quick      seconds
"""

import numpy as np
from _common import (
    BLUE,
    COLOURS,
    MARKERS,
    ORANGE,
    PAGE,
    figure,
    save,
    write_csv,
)
from scipy.special import expit
from scipy.stats import truncnorm
from synthetic import (
    MODEL_SLOPE,
    TRUTH_SLOPE,
    data_sets,
    kernel_options,
    mean_curve,
    options_of,
    summary,
)

import ckce

TICKS = (-1, -0.5, 0, 0.5, 1)
METRICS = {"ckce": "CKCE", "jkce": "JKCE", "ece": "ECE"}


def measure(options):
    """One row for each trial and alpha."""
    rows = []
    for trial, alpha, y, q, gamma in data_sets(options, "covariate shift"):
        kernel = kernel_options("linear_gaussian", gamma, options)
        estimate = ckce.estimate(y, q, **kernel)
        rows.append(
            {
                "trial": trial,
                "alpha": alpha,
                "ckce": estimate.value,
                "ckce_floor": estimate.floor,
                "ckce_debiased": estimate.debiased,
                "jkce": ckce.jkce(y, q, **kernel),
                "ece": ckce.ece(
                    y, q, variant="simplex", n_bins=options.bins, norm=options.ece_norm
                ),
                "bandwidth": gamma,
            }
        )
    return rows


def draw_setting(ax, sigma):
    """The left panel: the truth, the model, and where the inputs lie."""
    x = np.linspace(-1, 1, 201)
    for alpha in (-0.5, 0.0, 0.5):
        density = truncnorm.pdf(
            x, (-1 - alpha) / sigma, (1 - alpha) / sigma, loc=alpha, scale=sigma
        )
        ax.fill_between(x, 0.1 * density, color="0.5", alpha=0.25, linewidth=0)
        ax.text(alpha, 0.175, f"$\\alpha = {alpha:g}$", ha="center", fontsize=6.5, color="0.25")
    ax.plot(x, expit(TRUTH_SLOPE * x), color=BLUE)
    ax.plot(x, expit(MODEL_SLOPE * x), color=ORANGE, linestyle="--")
    ax.text(-0.95, 0.41, "$P(Y = 1 \\mid x)$", color=BLUE)
    ax.text(0.25, 0.88, "$f(x)$", color=ORANGE, ha="right")
    ax.set(xlim=(-1, 1), ylim=(0, 1), xlabel="Input $x$", ylabel="Probability", xticks=TICKS)


def draw_curves(ax, rows, moves):
    """The right panel: trials as points, their means as lines, how much each moves."""
    for (key, name), colour, marker in zip(METRICS.items(), COLOURS, MARKERS, strict=False):
        alphas, means = mean_curve(rows, key)
        first = [row for row in rows if row["trial"] == 0]
        ax.scatter(
            [row["alpha"] for row in first],
            [row[key] for row in first],
            s=9,
            marker=marker,
            color=colour,
            alpha=0.45,
            linewidths=0,
        )
        ax.plot(alphas, means, color=colour)
        ax.annotate(
            f"{name}\n±{moves[key]:.0%}".replace("%", " %"),
            (1.0, means[-1]),
            xytext=(7, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            annotation_clip=False,
        )
    ax.set(
        xlim=(-1.03, 1.03),
        xticks=TICKS,
        yscale="log",
        ylim=(0.015, 1),
        xlabel="Location of the inputs $\\alpha$",
        ylabel="Calibration error",
    )
    ax.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0.02", "0.05", "0.1", "0.2", "0.5", "1"])
    ax.minorticks_off()
    ax.grid(axis="y", color="0.92", linewidth=0.6)
    ax.set_axisbelow(True)


def plot(rows, moves, sigma, folder):
    """The figure."""
    fig, (left, right) = figure(PAGE, 2.5, 1, 2, width_ratios=(1, 1.25))
    draw_setting(left, sigma)
    draw_curves(right, rows, {row["metric"]: row["cv"] for row in moves})
    save(fig, folder, "covariate_shift")


def main(argv=None):
    """Write covariate_shift.csv, its summary and the figure."""
    options = options_of(__doc__, argv)
    rows = measure(options)
    moves = summary(rows, [*METRICS, "ckce_debiased"])
    write_csv(options.out / "covariate_shift.csv", rows)
    write_csv(options.out / "covariate_shift_summary.csv", moves)
    plot(rows, moves, options.sigma, options.out)


if __name__ == "__main__":
    main()
