"""Simulation study of `ckce.miscalibration` and `ckce.witness`: bias, coverage, false alarms, cost.

    python studies/miscalibration.py values 2 500 200    a cell: classes, rows, repetitions
    python studies/miscalibration.py pairs | bands | regions | sorted | real [folder] | cost
    python studies/miscalibration.py write               writes studies/MISCALIBRATION.md

Each part adds lines to studies/miscalibration.jsonl, from which the last step writes the tables. Truths:
predictions q are drawn, the label's law is h(q), so that theta = E|h(q) - q|^2 is known. They were
written after the estimator was frozen, and nothing was tuned on them. "narrow" truths are not smooth, and
"single" ones belong to single classes out of a hundred: there the estimator is expected to read too low.
"""

import json
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np

import ckce
from ckce._metrics.views import curve_of
from ckce._results import standard_error

HERE = Path(__file__).parent
LINES = HERE / "miscalibration.jsonl"
OUT = HERE / "MISCALIBRATION.md"


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def log(q):
    return np.log(np.maximum(q, 1e-12))


def predictions(m, n, rng):
    """Predictions of a classifier with m classes."""
    if m == 2:
        unsure = rng.random(n) < 0.5
        p = np.where(unsure, rng.beta(2, 3, n), rng.beta(6, 1.5, n))
        return np.column_stack([1 - p, p])
    if m == 3:
        x = rng.normal(size=(n, 2))
        return softmax(x @ np.array([[1.8, -0.9, -0.9], [0.0, 1.5, -1.5]]) + [0.2, 0.0, -0.2])
    dimensions, scale = (6, 1.6) if m == 10 else (20, 3.0)
    prototypes = np.random.default_rng(m).normal(size=(m, dimensions)) / np.sqrt(dimensions)
    x = prototypes[rng.integers(m, size=n)] * 2.0 + rng.normal(size=(n, dimensions)) * 0.9
    return softmax(scale * x @ prototypes.T * np.sqrt(dimensions) / 1.5)


def binary(p):
    return np.column_stack([1 - p, p])


def prior(q, spread):
    """Other class frequencies than those that the model learnt."""
    ratio = np.exp(spread * np.random.default_rng(1).normal(size=q.shape[1]))
    return q * ratio / (q * ratio).sum(axis=1, keepdims=True)


def confuse(q, pairs, share):
    """A share of a class's probability belongs to its twin."""
    out = q.copy()
    for a, b in pairs:
        out[:, a] -= share * q[:, a]
        out[:, b] += share * q[:, a]
    return out


def entropic(q):
    """Overconfident where it is unsure: temperature 1 + entropy / 2, relative to its largest value."""
    entropy = -(q * log(q)).sum(axis=1, keepdims=True) / np.log(q.shape[1])
    return softmax(log(q) / (1 + entropy))


def spill(q, share, count):
    """A share of the largest probability belongs to the next `count` classes."""
    order, out = np.argsort(-q, axis=1), q.copy()
    rows = np.arange(len(q))
    moved = share * q[rows, order[:, 0]]
    out[rows, order[:, 0]] -= moved
    for rank in range(1, count + 1):
        out[rows, order[:, rank]] += moved / count
    return out


def bump(q):
    """A smooth local error around one point of the simplex."""
    near = np.exp(-((q - np.array([0.5, 0.3, 0.2])) ** 2).sum(axis=1) / (2 * 0.2**2))
    return q + 0.15 * near[:, None] * np.array([-1.0, 1.0, 0.0]) * np.minimum(1, q[:, :1] / 0.3)


def band(q, column, low, high, shift):
    """A narrow error: cases whose probability of one class lies in an interval."""
    inside = (q[:, column] > low) & (q[:, column] < high)
    out, other = q.copy(), (column + 1) % q.shape[1]
    out[inside, column] -= shift
    out[inside, other] += shift
    return out


def wave(q):
    p = q[:, 1]
    return binary(p + 0.1 * np.sin(2 * np.pi * p) * np.minimum(1, np.minimum(p, 1 - p) / 0.2))


# classes -> name -> (kind, law of the label given q)
TRUTHS = {
    2: {
        "calibrated": ("calibrated", lambda q: q),
        "logit + 0.4": ("smooth", lambda q: softmax(log(q) + np.array([0.0, 0.4]))),
        "beta calibration": ("smooth", lambda q: softmax(log(q) * [0.7, 1.4] + [0.0, 0.2])),
        "a wave": ("smooth", wave),
        "shrunk to 0.5": ("smooth", lambda q: 0.5 + 0.75 * (q - 0.5)),
        "off by 0.2 in 0.55-0.60": ("narrow", lambda q: band(q, 1, 0.55, 0.60, 0.2)),
    },
    3: {
        "calibrated": ("calibrated", lambda q: q),
        "confusions": (
            "smooth",
            lambda q: q @ np.array([[0.85, 0.1, 0.05], [0.05, 0.9, 0.05], [0.15, 0.05, 0.8]]),
        ),
        "Dirichlet calibration": (
            "smooth",
            lambda q: softmax(log(q) @ np.array([[0.8, 0, 0.1], [0, 1.1, 0], [0, 0.1, 0.7]])),
        ),
        "other priors": ("smooth", lambda q: prior(q, 0.5)),
        "a smooth bump": ("smooth", bump),
        "off by 0.2 in 0.4-0.48": ("narrow", lambda q: band(q, 0, 0.4, 0.48, 0.2)),
    },
    10: {
        "calibrated": ("calibrated", lambda q: q),
        "other priors": ("smooth", lambda q: prior(q, 0.5)),
        "twins": ("smooth", lambda q: confuse(q, [(0, 1), (4, 7)], 0.4)),
        "overconfident if unsure": ("smooth", entropic),
        "a class for all": (
            "smooth",
            lambda q: confuse(q, [(3, j) for j in range(10) if j != 3], 0.05),
        ),
        "off by 0.2 in 0.5-0.6": ("narrow", lambda q: band(q, 2, 0.5, 0.6, 0.2)),
    },
    100: {
        "calibrated": ("calibrated", lambda q: q),
        "underconfident": ("smooth", lambda q: softmax(1.4 * log(q))),
        "spills to the next 5": ("smooth", lambda q: spill(q, 0.15, 5)),
        "noise": ("smooth", lambda q: 0.9 * q + 0.1 / q.shape[1]),
        "other priors": ("single", lambda q: prior(q, 0.4)),
        "twins": ("single", lambda q: confuse(q, [(j, j + 1) for j in range(0, 100, 2)], 0.25)),
    },
}


def labels(law, rng):
    return (rng.random((len(law), 1)) > law.cumsum(axis=1)[:, :-1]).sum(axis=1)


def add(**line):
    with LINES.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


def values(m, n, repetitions):
    """Bias, coverage and the lower end, for each truth of m classes."""
    started, found = time.process_time(), {name: [] for name in TRUTHS[m]}
    for repetition in range(repetitions):
        rng = np.random.default_rng([23, m, n, repetition])
        q = predictions(m, n, rng)
        for name, (_, law) in TRUTHS[m].items():
            p = law(q)
            y = labels(p, rng)
            e = ckce.miscalibration(y, q, n_threads=1)
            found[name].append((e.value, e.se, e.low, e.high, ((p - q) ** 2).sum() / n))
    for name, rows in found.items():
        value, se, low, high, theta = np.array(rows).T
        truth = theta.mean()
        add(
            part="values",
            m=m,
            n=n,
            truth=name,
            kind=TRUTHS[m][name][0],
            repetitions=repetitions,
            theta=truth,
            mean=value.mean(),
            sd=value.std(ddof=1),
            se=se.mean(),
            covered=float(np.mean((low <= truth) & (truth <= high))),
            above=float(np.mean(value - 1.644854 * se > truth)),
            low_above=float(np.mean(low > truth)),
            shown=float(np.mean(low > 0)),
            seconds=(time.process_time() - started) / len(found),
        )


def temper(p, power):
    return softmax(power * log(p))


MODELS = {
    "T 1/1.5": lambda p: temper(p, 1.5),
    "T 1/1.3": lambda p: temper(p, 1.3),
    "T 1.25": lambda p: temper(p, 0.8),
    "shrunk": lambda p: 0.85 * p + 0.15 / p.shape[1],
    "true": lambda p: p,
}


def pairs(repetitions=100):
    """Two models of the same labels: how often a difference is shown, and of the wrong sign."""
    for m in (2, 3, 10):
        for n in (500, 2000):
            results, thetas = {}, {name: [] for name in MODELS}
            for repetition in range(repetitions):
                rng = np.random.default_rng([24, m, n, repetition])
                p = predictions(m, n, rng)
                y = labels(p, rng)
                found = {}
                for name, model in MODELS.items():
                    q = model(p)
                    found[name] = ckce.miscalibration(y, q, n_threads=1)
                    thetas[name].append(((p - q) ** 2).sum() / n)
                for a, b in combinations(MODELS, 2):
                    difference = found[a].value - found[b].value
                    se = standard_error(found[a].influence - found[b].influence, None)
                    results.setdefault((a, b), []).append((difference, se))
            for (a, b), rows in results.items():
                difference, se = np.array(rows).T
                truth = np.mean(thetas[a]) - np.mean(thetas[b])
                z = difference / se
                add(
                    part="pairs",
                    m=m,
                    n=n,
                    pair=f"{a} - {b}",
                    repetitions=repetitions,
                    truth=truth,
                    mean=difference.mean(),
                    sd=difference.std(ddof=1),
                    se=se.mean(),
                    covered=float(np.mean(np.abs(difference - truth) < 1.959964 * se)),
                    right=float(np.mean(z * np.sign(truth) > 1.959964)),
                    wrong=float(np.mean(z * np.sign(truth) < -1.959964)),
                )


def bands(repetitions=40, points=25):
    """How often bands cover E[e_Y - q | q] at predictions of another sample, and whole curves."""
    for n in (2000, 10_000):
        for m in (2, 3, 10):
            count = (repetitions if n == 2000 else repetitions // 4) // (4 if m == 10 else 1)
            for name, (kind, law) in TRUTHS[m].items():
                if kind not in ("smooth", "calibrated"):
                    continue
                inside, all_inside, curves, wider = [], [], [], []
                for repetition in range(count):
                    rng = np.random.default_rng([29, m, n, repetition])
                    q = predictions(m, n, rng)
                    y = labels(law(q), rng)
                    at = predictions(m, points, rng)
                    w = ckce.witness(y, q, method="fourier", n_threads=1)
                    c, truth = w.correction(at), law(at) - at
                    inside.append(np.mean((c.low <= truth) & (truth <= c.high)))
                    all_inside.append(bool(((c.band_low <= truth) & (truth <= c.band_high)).all()))
                    wider.append(np.mean(c.band_high - c.band_low) / np.mean(c.high - c.low))
                    if m == 2:
                        shown = curve_of(w)
                        p = law(binary(shown.probability))[:, 1]
                        curves.append(bool(((shown.low <= p) & (p <= shown.high)).all()))
                add(
                    part="bands",
                    m=m,
                    n=n,
                    truth=name,
                    repetitions=count,
                    pointwise=float(np.mean(inside)),
                    simultaneous=float(np.mean(all_inside)),
                    wider=float(np.mean(wider)),
                    curves=float(np.mean(curves)) if curves else None,
                )


def planted(m, shape, rng, n=5000, share=0.05, shift=0.2):
    """5 % of the cases are off by 0.2: a ball of predictions, or a band of one predicted class."""
    q = predictions(m, n, rng)
    count, top = int(share * n), q.max(axis=1)
    if shape == "ball":
        usable = np.flatnonzero((top > 0.4) & (top < 0.8))
        centre = q[rng.choice(usable)]
        rows = np.argsort(((q - centre) ** 2).sum(axis=1))[:count]
        first, second = np.argsort(-centre)[:2]
        first, second = np.full(count, first), np.full(count, second)
    else:
        column = rng.integers(m)
        mine = np.flatnonzero(q.argmax(axis=1) == column)
        order = np.argsort(np.abs(q[mine, column] - np.median(q[mine, column])))
        rows = mine[order][:count]
        first, second = np.argsort(-q[rows], axis=1)[:, :2].T
    law = q.copy()
    moved = np.minimum(shift, law[rows, first])
    law[rows, first] -= moved
    law[rows, second] += moved
    return q, law, rows


def regions(repetitions=100):
    """Overlap of the first row of worst_regions with planted cases."""
    for m, shape in ((2, "ball"), (2, "class"), (10, "ball"), (10, "class")):
        overlaps, sizes, shown = [], [], []
        for repetition in range(repetitions):
            rng = np.random.default_rng([26, m, repetition])
            q, law, rows = planted(m, shape, rng)
            y = labels(law, rng)
            found = ckce.witness(y, q, method="fourier", n_threads=1)
            worst = found.worst_regions(1)[0]
            both = len(np.intersect1d(rows, worst.rows))
            overlaps.append(both / (len(rows) + len(worst.rows) - both))
            sizes.append(worst.share)
            shown.append(np.abs(worst.correction).max())
        add(
            part="regions",
            m=m,
            shape=shape,
            repetitions=repetitions,
            half=int(np.sum(np.array(overlaps) >= 0.5)),
            median=float(np.median(overlaps)),
            share=float(np.median(sizes)),
            correction=float(np.median(shown)),
        )


REAL = (
    "fte_nba_games",
    "fte_mlb_games",
    "imdb_cleanlab",
    "here_digits_rf",
    "here_digits_logreg",
    "cifar10_netcal_wideresnet_16_4",
    "cifar10_netcal_lenet_5",
    "cifar10_cleanlab",
    "cifar100_netcal_densenet_bc_100",
    "cifar100_netcal_wideresnet_16_4",
    "fte_world_cup_matches",
)


def temperature_gain(y, q):
    """What temperature scaling takes off the Brier score, fitted on one half, seen on the other."""
    from scipy.optimize import minimize_scalar

    fold = np.random.default_rng(0).permutation(len(y)) % 2
    r, gain = np.eye(q.shape[1])[y], np.empty(len(y))
    before = ((r - q) ** 2).sum(axis=1)
    for half in (0, 1):
        fit, see = fold != half, fold == half

        def loss(u, fit=fit):
            return ((r[fit] - temper(q[fit], np.exp(u))) ** 2).sum()

        power = np.exp(minimize_scalar(loss, bounds=(-2, 1.5), method="bounded").x)
        gain[see] = (before - ((r - temper(q, power)) ** 2).sum(axis=1))[see]
    return gain


def real(folder):
    """Real sets beside the held-out gain of temperature scaling."""
    for name in REAL:
        data = np.load(Path(folder) / f"{name}.npz", allow_pickle=False)
        y, q = read(data)
        e = ckce.miscalibration(y, q)
        gain = temperature_gain(y, q)
        se = standard_error(e.influence - (gain - gain.mean()), None)
        add(
            part="real",
            name=name,
            n=len(y),
            m=q.shape[1],
            value=e.value,
            low=e.low,
            high=e.high,
            root=e.root,
            gain=float(gain.mean()),
            behind=float((gain.mean() - e.value) / se),
        )


def read(data):
    """Labels and predictions of a set of the project's data."""
    y = np.asarray(data["labels"], np.int64)
    q = np.asarray(data["probs"], np.float64)
    if q.ndim == 1:
        q = binary(q)
    return y, q / q.sum(axis=1, keepdims=True)


def sorted_reading(repetitions=50, m=100, n=2000, k=10):
    """The k largest entries in place of all classes: their theta, and how well it is read."""
    for name, (kind, law) in TRUTHS[m].items():
        found, thetas, whole = [], [], []
        for repetition in range(repetitions):
            rng = np.random.default_rng([27, m, n, repetition])
            q = predictions(m, n, rng)
            p = law(q)
            order = np.argsort(-q, axis=1, kind="stable")
            gap = np.take_along_axis(p - q, order, axis=1)
            rest = gap[:, k:].sum(axis=1)
            thetas.append(((gap[:, :k] ** 2).sum() + (rest**2).sum()) / n)
            whole.append(((p - q) ** 2).sum() / n)
            e = ckce.miscalibration(labels(p, rng), q, reduction=ckce.TopK(k), n_threads=1)
            found.append((e.value, e.low, e.high))
        value, low, high = np.array(found).T
        theta = np.mean(thetas)
        add(
            part="sorted",
            truth=name,
            repetitions=repetitions,
            kind=kind,
            whole=np.mean(whole),
            theta=theta,
            mean=value.mean(),
            covered=float(np.mean((low <= theta) & (theta <= high))),
        )


def cost(rounds=5):
    """CPU time beside `estimate` with Fourier features, the best of interleaved runs, one thread."""
    for m in (2, 10, 100):
        for n in (2000, 10_000, 50_000):
            rng = np.random.default_rng(0)
            q = predictions(m, n, rng)
            y = labels(q, rng)
            calls = {
                "miscalibration": lambda y=y, q=q: ckce.miscalibration(y, q, n_threads=1),
                "estimate": lambda y=y, q=q: ckce.estimate(y, q, method="fourier", n_threads=1),
            }
            best = dict.fromkeys(calls, np.inf)
            for _ in range(rounds if n < 50_000 else 3):
                for name, call in calls.items():
                    started = time.process_time()
                    call()
                    best[name] = min(best[name], time.process_time() - started)
            add(part="cost", m=m, n=n, **best, ratio=best["miscalibration"] / best["estimate"])


def table(head, rows):
    return [
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
        *(f"| {' | '.join(r)} |" for r in rows),
        "",
    ]


def percentage(part, whole):
    return f"{100 * part / whole:+.0f} %" if whole > 0 else "-"


def page():
    """The tables out of the lines."""
    lines = [json.loads(line) for line in LINES.read_text().splitlines()]
    by = {part: [x for x in lines if x["part"] == part] for part in {x["part"] for x in lines}}
    out = HEAD.splitlines()
    cells = sorted(by["values"], key=lambda x: (x["m"], x["n"]))
    out += ["", "## Value, interval and lower end", ""]
    out += pooled(cells)
    out += table(
        (
            "m",
            "n",
            "truth",
            "kind",
            "repetitions",
            "theta",
            "mean",
            "bias",
            "sd",
            "mean se",
            "95 % covers",
            "one-sided lower end above theta",
            "miscalibration shown",
        ),
        [
            (
                str(x["m"]),
                str(x["n"]),
                x["truth"],
                x["kind"],
                str(x["repetitions"]),
                f"{x['theta']:.4f}",
                f"{x['mean']:.4f}",
                percentage(x["mean"] - x["theta"], x["theta"]),
                f"{x['sd']:.4f}",
                f"{x['se']:.4f}",
                f"{100 * x['covered']:.0f} %",
                f"{100 * x['above']:.1f} %",
                f"{100 * x['shown']:.0f} %",
            )
            for x in cells
        ],
    )
    out += ["## Pairs of models on the same rows", "", *PAIRS.splitlines(), ""]
    out += table(
        (
            "m",
            "n",
            "repetitions",
            "pair",
            "true difference",
            "mean",
            "sd",
            "mean se",
            "covered",
            "shown, right sign",
            "shown, wrong sign",
        ),
        [
            (
                str(x["m"]),
                str(x["n"]),
                str(x["repetitions"]),
                x["pair"],
                f"{x['truth']:.4f}",
                f"{x['mean']:.4f}",
                f"{x['sd']:.4f}",
                f"{x['se']:.4f}",
                f"{100 * x['covered']:.0f} %",
                f"{100 * x['right']:.0f} %",
                f"{100 * x['wrong']:.0f} %",
            )
            for x in by.get("pairs", [])
        ],
    )
    out += ["## Bands of the correction", "", *BANDS.splitlines(), ""]
    out += table(
        (
            "m",
            "n",
            "truth",
            "repetitions",
            "pointwise covers",
            "simultaneous covers all",
            "times as wide",
            "curves covered",
        ),
        [
            (
                str(x["m"]),
                str(x["n"]),
                x["truth"],
                str(x["repetitions"]),
                f"{100 * x['pointwise']:.1f} %",
                f"{100 * x['simultaneous']:.0f} %",
                f"{x['wider']:.1f}",
                "-" if x["curves"] is None else f"{100 * x['curves']:.0f} %",
            )
            for x in by.get("bands", [])
        ],
    )
    out += ["## Worst regions", "", *REGIONS.splitlines(), ""]
    out += table(
        (
            "m",
            "planted",
            "draws",
            "Jaccard >= 0.5",
            "median Jaccard",
            "median share",
            "largest correction",
        ),
        [
            (
                str(x["m"]),
                x["shape"],
                str(x["repetitions"]),
                str(x["half"]),
                f"{x['median']:.2f}",
                f"{100 * x['share']:.1f} %",
                f"{x['correction']:.2f}",
            )
            for x in by.get("regions", [])
        ],
    )
    out += ["## A hundred classes by their ten largest entries", "", *SORTED.splitlines(), ""]
    out += table(
        (
            "truth",
            "repetitions",
            "theta of all classes",
            "theta of the reduction",
            "mean",
            "bias",
            "covered",
        ),
        [
            (
                x["truth"],
                str(x["repetitions"]),
                f"{x['whole']:.4f}",
                f"{x['theta']:.4f}",
                f"{x['mean']:.4f}",
                percentage(x["mean"] - x["theta"], x["theta"]),
                f"{100 * x['covered']:.0f} %",
            )
            if x["kind"] != "single"
            else (
                x["truth"],
                str(x["repetitions"]),
                f"{x['whole']:.4f}",
                "not known",
                f"{x['mean']:.4f}",
                "-",
                "-",
            )
            for x in by.get("sorted", [])
        ],
    )
    out += ["## Real sets", "", *REAL_WORDS.splitlines(), ""]
    out += table(
        (
            "set",
            "n",
            "m",
            "miscalibration",
            "95 % interval",
            "points",
            "gain of temperature",
            "behind it, in se",
        ),
        [
            (
                x["name"],
                str(x["n"]),
                str(x["m"]),
                f"{x['value']:.4f}",
                f"{x['low']:.4f} to {x['high']:.4f}",
                f"{x['root']:.1f}",
                f"{x['gain']:.4f}",
                f"{x['behind']:.1f}",
            )
            for x in by.get("real", [])
        ],
    )
    out += ["## Cost", "", *COST.splitlines(), ""]
    out += table(
        ("m", "n", "miscalibration, s", "estimate with Fourier features, s", "ratio"),
        [
            (
                str(x["m"]),
                str(x["n"]),
                f"{x['miscalibration']:.3f}",
                f"{x['estimate']:.3f}",
                f"{x['ratio']:.1f}",
            )
            for x in by.get("cost", [])
        ],
    )
    return "\n".join(out).rstrip() + "\n"


def pooled(cells):
    """Coverage and lower ends over all cells of a kind."""
    rows = []
    for kind in ("calibrated", "smooth", "narrow", "single"):
        for n in (500, 2000, 10_000):
            mine = [x for x in cells if x["kind"] == kind and x["n"] == n]
            if not mine:
                continue
            share = [(x["mean"] - x["theta"]) / x["theta"] for x in mine if x["theta"] > 0]
            spread = f"{100 * min(share):+.0f} to {100 * max(share):+.0f} %" if share else "-"
            rows.append(
                (
                    kind,
                    str(n),
                    str(len(mine)),
                    spread,
                    f"{100 * np.mean([x['covered'] for x in mine]):.1f} %",
                    f"{100 * np.mean([x['above'] for x in mine]):.1f} %",
                    f"{100 * np.mean([x['low_above'] for x in mine]):.1f} %",
                )
            )
    return table(
        (
            "kind",
            "n",
            "truths",
            "bias",
            "95 % covers",
            "one-sided lower end above theta",
            "low above theta",
        ),
        rows,
    )


HEAD = """# Miscalibration in natural units, and the witness

Written by `python studies/miscalibration.py`; what is simulated is described there. The estimator was frozen in the
commit that added `ckce.miscalibration`; the truths were written after it, and nothing was tuned on them. They come from
other predictions and other laws than those that the estimator was made with. Most cells of the values have 200
repetitions: a share of 5 % is known to about 1.5 %, the mean of a cell to sd / 14. With 10,000 rows, cells of 3 and
10 classes have 20 and those of 100 classes 12.

In short:

- Smooth truths at n = 2000: the bias is between -16 and +11 % of theta, within 15 % for 14 of 15. The one beyond,
  "spills to the next 5" of a hundred classes, jumps where ranks change, and keeps its bias at n = 10,000.
- The one-sided lower end of 95 % is above theta in 1.5 % of all draws of miscalibrated models. The two-sided interval covers
  in 94 % (smooth truths) and 91 % (all). A calibrated model is called miscalibrated in at most 1 % of the draws of a cell.
- A difference of the wrong sign is shown in 0.6 % of the pairs; the worst cell has 4 of 40, with a true difference of 0.0002.
- It reads too low in narrow regions (-8 to -75 %) and for errors of single classes out of a hundred (0 to -83 %), and its
  interval is too sure of itself there. At n = 500 little below 10 points is shown.
- Pointwise bands cover 94 to 98 % at n = 2000. The simultaneous ones cover all predictions in 93 to 100 % of the draws
  with two and three classes, whole curves of a picture in 95 to 97 %, and in 90 to 100 % (of ten draws) with ten classes.
- The first worst region overlaps planted balls by half or more in 97 and 91 of 100 draws (2 and 10 classes). It finds
  half of long thin sets with ten classes in 61.
"""
PAIRS = """True probabilities p are drawn, models are functions of p: sharper by a power ("T 1/1.5"), flatter ("T 1.25"), mixed
with uniform predictions ("shrunk"), or p itself. A difference is shown if it is 1.96 paired standard
errors from 0, without adjustment for the number of pairs. "Wrong" counts differences of the wrong sign that are shown."""
BANDS = """Bands of 95 % at 25 predictions of another sample, all classes; coverage of E[e_Y - q | q] itself, not of a
smoothed one. A first form of the bands, by residuals alone, covered 87 to 94 % with two and three classes and 84 to
91 % with ten, because residuals say nothing of a rare class that was not seen. So a standard error became at least
that of labels drawn from the predictions. Simultaneous bands of that form covered 70 to 92 % of whole curves: the bias
was a third of a standard error or less, but few rows speak at some predictions, and their standard error is uncertain.
So they became wider by Student's t and by the bias of smoothing. The table has that form, on draws of other seeds.
"Times as wide": simultaneous against pointwise. "Curves": those that `Witness.plot` draws with two classes."""
REGIONS = """5 % of 5000 cases are off by 0.2: those nearest to one prediction ("ball"), or those of one predicted class whose
confidence is nearest to its median ("class"), a long and thin set when there are ten classes. Overlap of the first row
of `worst_regions` with them. "Largest correction" is what the region says in place of 0.2: the smoother and a
region that is not quite the planted one flatten it."""
SORTED = """`reduction=ckce.TopK(10)` at n = 2000. It has next to no bias in its own theta. But that is another number: noise
counts twice, because the tail is pooled, and errors of single classes average away in sorted order ("other priors",
"twins"; their reduced theta is not known in closed form). So it is offered, and the default reads all classes, where
the three shapes do what the sorted reading would do. Without them, while the estimator was made, a temperature at
m = 100, n = 2000 was read 36 to 43 % too low."""
REAL_WORDS = """The gain of temperature scaling in Brier score is fitted on one half and seen on the other. theta is what *any*
recalibration gains, so the estimate should not be behind that gain by more than two standard errors of the difference."""
COST = """CPU seconds on one thread, the best of five interleaved runs (three at n = 50,000)."""


def main():
    part, *rest = sys.argv[1:]
    if part == "values":
        values(*map(int, rest))
    elif part == "write":
        OUT.write_text(page())
    else:
        parts = {"pairs": pairs, "bands": bands, "regions": regions, "real": real, "cost": cost}
        counts = rest if part == "real" else map(int, rest)
        {**parts, "sorted": sorted_reading}[part](*counts)


if __name__ == "__main__":
    main()
