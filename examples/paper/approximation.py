"""Approximations of CKCE against the exact value: error and time for D, sampler, rank and sampled Z.

python examples/paper/approximation.py                synthetic data
python examples/paper/approximation.py --data DIR     and a model of each data set in DIR
python examples/paper/approximation.py --quick        seconds

Files as in table1.py. Of each data set with more than two classes the first model and its first 2500 rows
(--rows) are used, since the sampled-Z estimator needs the whole Gram matrix. All estimators of a set share one bandwidth, the median, and run on one thread.

The sampled-Z estimator draws a label z_i from each prediction q_i and compares the operators of y and z.
The paper replaces z_i by its mean and so avoids its variance, and a bias, too: given the predictions, the
mean of the sampled-Z estimator is CKCE + floor.
"""

import time

import numpy as np
from _common import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PAGE,
    SKY,
    YELLOW,
    column,
    data_parser,
    figure,
    load,
    parse,
    prediction_files,
    progress,
    save,
    write_csv,
)
from synthetic import draw, draw_labels

import ckce
from ckce import reference

LINES = {
    ("fourier", "gaussian"): ("Fourier, Gaussian", BLUE, "o"),
    ("fourier", "orthogonal"): ("Fourier, orthogonal", SKY, "s"),
    ("fourier", "sobol"): ("Fourier, Sobol", GREEN, "^"),
    ("cholesky", "greedy"): ("Cholesky, greedy", ORANGE, "D"),
    ("cholesky", "random"): ("Cholesky, random", YELLOW, "v"),
    ("sampled Z", ""): ("sampled $Z$", GREY, ""),
}
SMALLEST = 1e-14  # relative errors below are round-off


def synthetic_sets(options):
    """{name: (labels, predictions)}: the paper's two classes, and an overconfident model of ten."""
    n = 200 if options.quick else 2000
    rng = np.random.default_rng(options.seed)
    q = rng.dirichlet(np.full(10, 0.3), n)
    y = draw_labels(rng, q)
    sharp = q**2 / (q**2).sum(axis=1, keepdims=True)
    return {"synthetic m=2": draw(rng, 0.0, n, 0.25), "synthetic m=10": (y, sharp)}


def sampled_z(y, q, gram, seed):
    """CKCE with labels z drawn from q in place of their mean: K of q, residuals e_y - e_z."""
    one_hot = np.eye(q.shape[1])[draw_labels(np.random.default_rng(seed), q)]
    # A kernel may be any function, also one that knows the predictions that are no longer passed.
    return ckce.ckce(y, one_hot, method="exact", kernel=lambda a, b: gram, n_threads=1)


def approximate(y, q, gamma, gram, method, variant, size, seed):
    """One estimate."""
    if method == "sampled Z":
        return sampled_z(y, q, gram, seed)
    if method == "fourier":
        features = ckce.Fourier(size, sampler=variant)
    else:
        features = ckce.Cholesky(size, tol=1e-15, pivoting=variant)
    return ckce.ckce(y, q, method=features, bandwidth=gamma, random_state=seed, n_threads=1)


def timed(call, *arguments, **options):
    """(value, seconds of the processor); all run on one thread, so a busy machine does not matter."""
    start = time.process_time()
    value = call(*arguments, **options)
    return value, time.process_time() - start


def cases(quick):
    """(method, variant, size, number of seeds) of everything that is measured."""
    sizes = (10, 50) if quick else (10, 20, 50, 100, 200, 500, 1000)
    seeds = 2 if quick else 10
    for sampler in ("gaussian", "orthogonal", "sobol"):
        for size in sizes:
            yield "fourier", sampler, size, seeds if size < 500 else 5
    for size in sizes:
        yield "cholesky", "greedy", size, 1
    for size in sizes:
        yield "cholesky", "random", size, seeds if size < 500 else 5
    yield "sampled Z", "", 1, 5 if quick else 20


def measure(name, y, q, options):
    """One row for each case: relative error to exact over the seeds, and the median time."""
    q = np.ascontiguousarray(q, dtype=np.float64)
    gamma = ckce.median_bandwidth(q)
    exact = {"bandwidth": gamma, "n_threads": 1}
    accurate = ckce.Exact(tol=1e-13)
    found, seconds = min(timed(ckce.ckce, y, q, method=accurate, **exact) for _ in range(3))
    base = {
        "data": name,
        "n": len(q),
        "m": q.shape[1],
        "exact": found,
        "floor": ckce.estimate(y, q, method="exact", **exact).floor,
    }
    rows = [
        base
        | {"method": "exact", "variant": "", "size": len(q), "seeds": 1}
        | {"bias": 0.0, "rmse": 0.0, "seconds": seconds}
    ]
    gram = reference.gram("linear_gaussian", q, q, gamma)
    for method, variant, size, seeds in progress(list(cases(options.quick)), name):
        runs = [
            timed(approximate, y, q, gamma, gram, method, variant, size, options.seed + seed)
            for seed in range(seeds)
        ]
        error = np.array([value for value, _ in runs]) / found - 1
        rows.append(
            base
            | {
                "method": method,
                "variant": variant,
                "size": size,
                "seeds": seeds,
                "bias": float(error.mean()),
                "rmse": float(np.sqrt((error**2).mean())),
                "seconds": float(np.median([seconds for _, seconds in runs])),
            }
        )
    return rows


def plot(rows, folder):
    """Error against size above, against time below; one column for each set."""
    sets = list(dict.fromkeys(row["data"] for row in rows))
    fig, axes = figure(PAGE, 4.2, 2, len(sets), sharey=True, squeeze=False)
    for name, (above, below) in zip(sets, axes.T, strict=True):
        mine = [row for row in rows if row["data"] == name]
        for (method, variant), (label, colour, marker) in LINES.items():
            line = [r for r in mine if (r["method"], r["variant"]) == (method, variant)]
            error = np.maximum(column(line, "rmse"), SMALLEST)
            for ax, key in ((above, "size"), (below, "seconds")):
                if method == "sampled Z":  # one solve, whatever its size
                    ax.axhline(error[0], color=colour, linestyle="--", linewidth=1.0, label=label)
                else:
                    ax.plot(column(line, key), error, color=colour, marker=marker, label=label)
        exact = next(row for row in mine if row["method"] == "exact")
        below.axvline(exact["seconds"], color=BLACK, linewidth=0.8, linestyle=":", label="exact")
        above.set(
            xscale="log", yscale="log", title=f"{name}\n$n = {exact['n']}$, $m = {exact['m']}$"
        )
        below.set(xscale="log", yscale="log")
        for ax in (above, below):
            ax.grid(color="0.93", linewidth=0.6)
            ax.set_axisbelow(True)
    axes[0, 0].set_ylabel("Relative error (RMS)")
    axes[1, 0].set_ylabel("Relative error (RMS)")
    fig.supxlabel("Processor time (s), one thread", fontsize=8)
    for ax in axes[0]:
        ax.set_xlabel("$D$ or rank")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", ncols=4)
    save(fig, folder, "approximation")


def main(argv=None):
    """Write approximation.csv and the figure."""
    made = data_parser(__doc__)
    made.add_argument("--rows", type=int, default=2500, help="rows of each set (2500)")
    options = parse(made, argv)
    sets = synthetic_sets(options)
    if options.data is not None:
        for data, paths in prediction_files(options.data, options.sets).items():
            file = load(next(iter(paths.values())))
            rows = slice(300 if options.quick else options.rows)
            if file["probs"].shape[1] > 2:
                sets[data] = (file["labels"][rows], file["probs"][rows])
    rows = [row for name, (y, q) in sets.items() for row in measure(name, y, q, options)]
    write_csv(options.out / "approximation.csv", rows)
    plot(rows, options.out)


if __name__ == "__main__":
    main()
