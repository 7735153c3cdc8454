"""What the paper's figures do not show: narrower and wider marginals, and the floor of CKCE.

python examples/paper/limits.py                       a minute
python examples/paper/limits.py --quick               seconds

Left: CKCE over the location of the inputs as in covariate_shift.py, for several scales sigma; P(Y | Q)
is the same throughout, so a measure that is free of the marginal would be one horizontal line. Right:
the CKCE of a perfectly calibrated model against n, and its floor.
"""

import numpy as np
from _common import (
    BLUE,
    COLOURS,
    ORANGE,
    PAGE,
    column,
    figure,
    parse,
    parser,
    progress,
    save,
    write_csv,
)
from synthetic import draw, draw_labels

import ckce

SIGMAS = (0.05, 0.1, 0.25, 0.5, 1.0)


def marginals(options):
    """Means over trials of CKCE and JKCE for each scale and location of the inputs."""
    n, trials, alphas = (200, 2, 5) if options.quick else (1000, 20, 25)
    rows = []
    for sigma in progress(SIGMAS, "marginals"):
        for i, alpha in enumerate(np.linspace(-1, 1, alphas)):
            values = []
            for trial in range(trials):
                y, q = draw(np.random.default_rng([options.seed, trial, i]), alpha, n, sigma)
                # Two classes: a Cholesky factor is exact to 1e-10.
                values.append([f(y, q, method="cholesky") for f in (ckce.ckce, ckce.jkce)])
            mean = np.mean(values, axis=0)
            rows.append(
                {
                    "sigma": sigma,
                    "alpha": float(alpha),
                    "ckce": float(mean[0]),
                    "jkce": float(mean[1]),
                }
            )
    return rows


def floors(options):
    """CKCE of a calibrated model, whose labels are drawn from its predictions, against n."""
    rows = []
    for m in (2, 10):
        for n in progress(
            (50, 200) if options.quick else (100, 300, 1000, 3000, 10_000), f"floor, m = {m}"
        ):
            for trial in range(2 if options.quick else 20):
                rng = np.random.default_rng([options.seed, trial, m, n])
                q = rng.dirichlet(np.ones(m), n)
                e = ckce.estimate(draw_labels(rng, q), q, method=ckce.Cholesky(rank=200))
                rows.append(
                    {
                        "m": m,
                        "n": n,
                        "trial": trial,
                        "ckce": e.value,
                        "ckce_floor": e.floor,
                        "ckce_debiased": e.debiased,
                    }
                )
    return rows


def draw_floors(ax, rows):
    """Trials as points, the mean of the floor as a line."""
    for m, colour, marker in ((2, BLUE, "o"), (10, ORANGE, "s")):
        mine = [row for row in rows if row["m"] == m]
        ax.scatter(
            column(mine, "n"),
            column(mine, "ckce"),
            s=8,
            color=colour,
            marker=marker,
            alpha=0.4,
            linewidths=0,
        )
        sizes = sorted({row["n"] for row in mine})
        means = [np.mean([r["ckce_floor"] for r in mine if r["n"] == n]) for n in sizes]
        ax.plot(sizes, means, color=colour, marker=marker, markersize=0, label=f"$m = {m}$")
    ax.set(xscale="log", yscale="log", xlabel="Samples $n$", ylabel="CKCE of a calibrated model")
    ax.set_ylim(bottom=8e-6)
    ax.legend(title="points: trials, lines: floor", loc="lower left")


def plot(moved, floor, folder):
    """The figure."""
    fig, (left, right) = figure(PAGE, 2.5, 1, 2, width_ratios=(1.15, 1))
    for sigma, colour in zip(SIGMAS, COLOURS, strict=False):
        mine = [row for row in moved if row["sigma"] == sigma]
        alphas, values = column(mine, "alpha"), column(mine, "ckce")
        width = 2.0 if sigma == 0.25 else 1.0
        ratio = values.max() / values.min()
        left.plot(alphas, values, color=colour, linewidth=width, label=f"{sigma:g} ({ratio:.1f})")
    left.set(
        xlabel="Location of the inputs $\\alpha$",
        ylabel="CKCE",
        xlim=(-1, 1),
        ylim=(0, None),
        xticks=(-1, -0.5, 0, 0.5, 1),
    )
    left.legend(title="scale $\\sigma$ (max/min)", loc="lower left", bbox_to_anchor=(1.0, 0.2))
    draw_floors(right, floor)
    save(fig, folder, "limits")


def main(argv=None):
    """Write limits_marginal.csv, limits_floor.csv and the figure."""
    options = parse(parser(__doc__), argv)
    moved, floor = marginals(options), floors(options)
    write_csv(options.out / "limits_marginal.csv", moved)
    write_csv(options.out / "limits_floor.csv", floor)
    plot(moved, floor, options.out)


if __name__ == "__main__":
    main()
