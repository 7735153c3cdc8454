"""Error against time, and time against n."""

import time

import matplotlib as mpl
import numpy as np
import numpy_fast
import numpy_plain
from simulate import median_distance, simulate

import ckce

mpl.use("Agg")
import matplotlib.pyplot as plt

# Okabe and Ito's colours, told apart by all readers.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
)
GREY = "#666666"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
}


def _time(call, repeats=3, enough=0.15):
    """(best seconds, value) of `repeats` calls or more, until `enough` seconds; one if it is slow."""
    best, value, spent, calls = np.inf, np.nan, 0.0, 0
    time.sleep(0.05)  # for the BLAS threads of the call before to stop spinning
    while ((calls < repeats or spent < enough) and best < 1.0) or not calls:
        start = time.perf_counter()
        value = call()
        seconds = time.perf_counter() - start
        best, spent, calls = min(best, seconds), spent + seconds, calls + 1
    return best, value


def _curve(true, settings, make, seeds):
    """Rows (setting, seconds, RMS relative error) of make(setting, seed)."""
    rows = []
    for setting in settings:
        runs = [
            _time(make(setting, seed), *((3,) if seed == 0 else (1, 0.0)))
            for seed in range(min(seeds, 3) if setting >= 800 else seeds)
        ]
        error = np.sqrt(np.mean([(value / true - 1.0) ** 2 for _, value in runs]))
        rows.append((setting, min(seconds for seconds, _ in runs), max(error, 1e-15)))
    return np.array(rows)


def error_time(path, y_true, y_prob, name, quick):
    """Relative error to exact against time: fourier by sampler, cholesky by pivoting."""
    y_prob = np.ascontiguousarray(y_prob, dtype=np.float64)
    gamma = median_distance(y_prob)
    exact, true = _time(
        lambda: ckce.ckce(y_true, y_prob, method=ckce.Exact(tol=1e-12), bandwidth=gamma)
    )
    waves = [25, 50, 100] if quick else [25, 50, 100, 200, 400, 800, 1600]
    ranks = [25, 50, 100] if quick else [25, 50, 100, 200, 400, 800]
    seeds = 2 if quick else 5

    def fourier(sampler):
        return lambda count, seed: (
            lambda: ckce.ckce(
                y_true,
                y_prob,
                method=ckce.Fourier(int(count), sampler=sampler),
                bandwidth=gamma,
                random_state=seed,
            )
        )

    def cholesky(pivoting):
        return lambda rank, seed: (
            lambda: ckce.ckce(
                y_true,
                y_prob,
                method=ckce.Cholesky(int(rank), tol=1e-15, pivoting=pivoting),
                bandwidth=gamma,
                random_state=seed,
            )
        )

    def numpy_fourier(count, seed):
        w = ckce.fourier_frequencies(
            y_prob.shape[1], int(count), bandwidth=gamma, random_state=seed
        )
        return lambda: numpy_plain.ckce_fourier(y_true, y_prob, w)

    curves = [
        ("fourier, gaussian", BLUE, "o", "-", _curve(true, waves, fourier("gaussian"), seeds)),
        ("fourier, orthogonal", SKY, "s", "-", _curve(true, waves, fourier("orthogonal"), seeds)),
        ("fourier, sobol", GREEN, "^", "-", _curve(true, waves, fourier("sobol"), seeds)),
        ("cholesky, greedy", RED, "D", "-", _curve(true, ranks, cholesky("greedy"), 1)),
        ("cholesky, random", ORANGE, "v", "-", _curve(true, ranks, cholesky("random"), seeds)),
        ("NumPy fourier, gaussian", GREY, "o", ":", _curve(true, waves[:5], numpy_fourier, seeds)),
    ]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 4.2))
        for label, colour, marker, line, rows in curves:
            face = "white" if line == ":" else colour
            axes.plot(
                rows[:, 1], rows[:, 2], line, color=colour, marker=marker, mfc=face, label=label
            )
            if label in ("fourier, gaussian", "cholesky, greedy"):
                letter = "r" if label.startswith("cholesky") else "D"
                for number, (setting, seconds, error) in enumerate(rows):
                    axes.annotate(
                        f"{setting:.0f}" if number else f"{letter} = {setting:.0f}",
                        (seconds, error),
                        xytext=(0, 6),
                        textcoords="offset points",
                        ha="center",
                        fontsize=6.5,
                        color=colour,
                    )
        axes.axvline(exact, color="black", lw=1.2, ls="--", label=f"exact: {exact:.2g} s")
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="time in seconds, all threads",
            ylabel="relative error to exact CKCE (RMS over seeds)",
        )
        axes.set_ylim(top=3 * max(rows[:, 2].max() for *_, rows in curves))
        axes.set_title(name.replace("`", ""), fontsize=9, loc="left")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        figure.savefig(path)
        plt.close(figure)


def time_n(path, quick, m=10, limit=12.0):
    """Seconds against n, each method up to the n whose time or memory is out of reach."""
    sizes = [1000, 2000, 4000] if quick else [1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]
    y_true, y32 = simulate(max(sizes), m)
    y64 = y32.astype(np.float64)
    gamma = median_distance(y64)
    w = ckce.fourier_frequencies(m, 100, bandwidth=gamma)

    def ours(metric, data=y64, **options):
        return lambda n: metric(y_true[:n], data[:n], **options)

    def numpy(function, extra):
        return lambda n: function(y_true[:n], y64[:n], extra)

    # label, call, colour, marker, line, power of n, largest n that fits
    curves = [
        ("exact", ours(ckce.ckce, method="exact", bandwidth=gamma), RED, "D", "-", 2, 10**9),
        (
            "cholesky, rank 200",
            ours(ckce.ckce, method=ckce.Cholesky(200), bandwidth=gamma),
            ORANGE,
            "v",
            "-",
            1,
            10**9,
        ),
        ("exact JKCE", ours(ckce.jkce, bandwidth=gamma), PURPLE, "s", "-", 2, 10**9),
        (
            "fourier, D=100",
            ours(ckce.ckce, method=ckce.Fourier(frequencies=w)),
            BLUE,
            "o",
            "-",
            1,
            10**9,
        ),
        (
            "fourier, D=100, mixed",
            ours(ckce.ckce, y32, method=ckce.Fourier(frequencies=w, precision="mixed")),
            SKY,
            "^",
            "-",
            1,
            10**9,
        ),
        ("NumPy exact", numpy(numpy_plain.ckce_exact, gamma), RED, "D", ":", 3, 10_000),
        ("NumPy exact JKCE", numpy(numpy_plain.jkce_exact, gamma), PURPLE, "s", ":", 2, 10**9),
        ("NumPy fourier", numpy(numpy_plain.ckce_fourier, w), BLUE, "o", ":", 1, 10**9),
        (
            "NumPy fourier, our identities",
            numpy(numpy_fast.ckce_fourier, w),
            GREEN,
            "o",
            ":",
            1,
            10**9,
        ),
    ]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 4.2))
        for label, call, colour, marker, line, power, most in curves:
            points = []
            for n in sizes:
                expected = points[-1][1] * (n / points[-1][0]) ** power if points else 0.0
                if n > most or expected > limit:
                    break
                points.append((n, _time(lambda call=call, n=n: call(n))[0]))
            face = "white" if line == ":" else colour
            axes.plot(*np.array(points).T, line, color=colour, marker=marker, mfc=face, label=label)
        axes.set(xscale="log", yscale="log", xlabel="n, rows", ylabel="time in seconds")
        axes.set_title(f"m = {m}; filled: ckce, hollow: NumPy", fontsize=9, loc="left")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        figure.savefig(path)
        plt.close(figure)
