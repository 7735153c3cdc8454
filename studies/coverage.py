"""Simulation study: do intervals cover, does the test keep its level, and where does CKCE go wrong?

    python studies/coverage.py            writes studies/COVERAGE.md, 10 minutes on one core
    python studies/coverage.py --quick    a tenth of the repetitions, printed only

A case has true class probabilities pi; its label is drawn from them, and a model predicts a known
function of pi that can be inverted, so the conditional law of the label given the prediction is pi.
The truth that an interval must cover is the population value at the same bandwidth, lambda and
frequencies: |(C + lambda)^-1 S|^2 with C = E[phi phi'] and S = E[phi (pi - q)'], from a sample of a
million cases of its own, in which pi takes the place of the label.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np

import ckce
from ckce import reference

OUT = Path(__file__).parent / "COVERAGE.md"
BANDWIDTH = 0.5
FREQUENCIES = 50
POPULATION = 1_000_000
BATCHES = 20


def power(pi, t):
    """Predictions that are too sure for t > 1, too cautious for t < 1, calibrated for t = 1."""
    q = pi**t
    return q / q.sum(axis=1, keepdims=True)


MODELS = {
    "calibrated": lambda pi: pi,
    "slightly sharp": lambda pi: power(pi, 1.2),
    "sharp": lambda pi: power(pi, 2.0),
    "flat": lambda pi: power(pi, 0.6),
}


def draw_labels(pi, rng):
    sums = pi.cumsum(axis=1)[:, :-1]
    return (rng.random((len(pi), 1)) > sums).sum(axis=1)


def population(model, m, frequencies, lams, rng):
    """Value at each lambda, and the standard error of its estimate, from batches."""
    sums = []
    for _ in range(BATCHES):
        pi = rng.dirichlet(np.ones(m), POPULATION // BATCHES)
        q = model(pi)
        phi = reference.fourier_features(q, frequencies)
        sums.append((phi.T @ phi / len(pi), phi.T @ (pi - q) / len(pi)))

    def value(parts, lam):
        c = sum(part[0] for part in parts) / len(parts)
        s = sum(part[1] for part in parts) / len(parts)
        return np.sum(np.linalg.solve(c + lam * np.eye(len(c)), s) ** 2)

    values = {}
    for lam in lams:
        # Jackknife over the batches.
        left_out = [value(sums[:k] + sums[k + 1 :], lam) for k in range(BATCHES)]
        se = np.sqrt((BATCHES - 1) / BATCHES * np.sum((left_out - np.mean(left_out)) ** 2))
        values[lam] = (value(sums, lam), se)
    return values


def coverage(sizes, classes, repetitions, rng):
    """Rows (m, n, what, truth, its error, mean estimate, mean se, sd, coverage)."""
    for m in classes:
        frequencies = ckce.fourier_frequencies(m, FREQUENCIES, bandwidth=BANDWIDTH)
        lams = [n**-0.25 for n in sizes]
        truths = {
            name: population(model, m, frequencies, lams, rng) for name, model in MODELS.items()
        }
        for n, lam in zip(sizes, lams, strict=True):
            method = ckce.Fourier(frequencies=frequencies)
            options = {"method": method, "regularization": lam, "progress": False}
            found = {what: [] for what in [*MODELS, *itertools.combinations(MODELS, 2)]}
            for _ in range(repetitions):
                pi = rng.dirichlet(np.ones(m), n)
                y = draw_labels(pi, rng)
                estimates = {
                    name: ckce.estimate(y, model(pi), n_threads=1, **options)
                    for name, model in MODELS.items()
                }
                for name, e in estimates.items():
                    found[name].append((e.debiased, e.se))
                for a, b in itertools.combinations(MODELS, 2):
                    difference = estimates[b].debiased - estimates[a].debiased
                    psi = estimates[b].influence - estimates[a].influence
                    found[a, b].append((difference, np.std(psi, ddof=1) / np.sqrt(n)))
            for what, pairs in found.items():
                if isinstance(what, tuple):
                    (first, e1), (second, e2) = (truths[name][lam] for name in what)
                    truth, error = second - first, np.hypot(e1, e2)
                else:
                    truth, error = truths[what][lam]
                values, ses = np.array(pairs).T
                covered = np.mean(np.abs(values - truth) <= 1.959963984540054 * ses)
                yield (m, n, what, truth, error, values.mean(), ses.mean(), values.std(), covered)


def type_one_error(configurations, repetitions, rng):
    """Rows (n, m, share of p <= 0.05 for each statistic)."""
    for n, m in configurations:
        p_values = []
        for _ in range(repetitions):
            q = rng.dirichlet(np.ones(m), n)
            t = ckce.calibration_test(
                draw_labels(q, rng),
                q,
                n_resamples=199,
                method=ckce.Fourier(FREQUENCIES),
                bandwidth=BANDWIDTH,
                random_state=int(rng.integers(2**63)),
                n_threads=1,
            )
            p_values.append((t.p_debiased, t.p_ckce, t.p_jkce))
        yield n, m, (np.array(p_values) <= 0.05).mean(axis=0)


def two_classes(low, high, slope, n, rng):
    """Predictions uniform in [low, high]; P(y = 1 | p) = p - slope (p - 1/2)."""
    p = rng.uniform(low, high, n)
    y = (rng.random(n) < p - slope * (p - 0.5)).astype(int)
    return y, np.column_stack([1 - p, p])


# (predictions of A from, to, slope of A), and the same of B: A has the larger conditional error.
PAIRS = [
    ((0.4, 0.6, 0.6), (0.0, 1.0, 0.3)),
    ((0.3, 0.7, 0.5), (0.0, 1.0, 0.3)),
    ((0.2, 0.8, 0.4), (0.0, 1.0, 0.3)),
    ((0.1, 0.9, 0.35), (0.0, 1.0, 0.3)),
    ((0.05, 0.95, 0.32), (0.0, 1.0, 0.3)),
    ((0.0, 1.0, 0.4), (0.0, 1.0, 0.3)),
]


def wrong_pairs(n, repetitions, rng):
    """Rows (A, B, difference of mean |q|^2, ratio of CKCE, the same at equal slopes, shares).

    CKCE is quadratic in the slope. Shares: ranked wrongly, significantly wrongly, guard rail fired.
    """
    for a, b in PAIRS:
        wrong = significant = rail = 0
        ratios = []
        for _ in range(repetitions):
            (y_a, q_a), (y_b, q_b) = two_classes(*a, n, rng), two_classes(*b, n, rng)
            c = ckce.compare({"A": y_a, "B": y_b}, {"A": q_a, "B": q_b}, n_threads=1)
            (pair,) = c.pairs
            wrong += pair.better == "A"
            significant += pair.better == "A" and pair.significant
            rail += any(warning.name == "marginals" for warning in c.warnings)
            values = {model.name: model.ckce_debiased for model in c.models}
            ratios.append((values["A"], values["B"]))
        mean_a, mean_b = np.mean(ratios, axis=0)
        ratio = mean_a / mean_b
        shares = [count / repetitions for count in (wrong, significant, rail)]
        yield a, b, spread(a, b), ratio, ratio * (b[2] / a[2]) ** 2, shares


def spread(a, b):
    """Difference of the mean |q|^2, which is 1/2 + 2 (variance of p + (mean p - 1/2)^2)."""
    of_a, of_b = (0.5 + (high - low) ** 2 / 6 for low, high, _ in (a, b))
    return of_b - of_a


def percent(share):
    return f"{100 * share:.1f} %"


def span(shares):
    return f"{percent(min(shares))} to {percent(max(shares))}"


def name_of(what):
    return what if isinstance(what, str) else f"{what[1]} - {what[0]}"


def report(scale, seed):
    rngs = [np.random.default_rng([seed, section]) for section in range(4)]
    start = time.perf_counter()
    repetitions = int(1000 * scale)
    rows = list(coverage([200, 500, 1000, 5000], [3, 10], repetitions, rngs[0]))
    rows += coverage([50, 100], [3, 10], repetitions, rngs[3])
    lines = [
        "# Coverage of the intervals, level of the test, and pairs that CKCE ranks wrongly",
        "",
        f"Written by `python studies/coverage.py` (seed {seed}); what is simulated is described "
        "there.",
        "",
        "## Coverage of 95 % intervals",
        "",
        f"{repetitions} repetitions for each row, {FREQUENCIES} frequencies, bandwidth {BANDWIDTH}, "
        "lambda n^(-1/4).",
        "The truth is the population value at the same bandwidth, lambda and frequencies, from "
        f"{POPULATION:,} cases;",
        "its own standard error is beside it. The mean standard error would equal the standard "
        "deviation of the",
        "estimates if it were exact; near calibration it is larger, and intervals cover more than "
        "they promise.",
        "",
        "| m | n | debiased CKCE of | truth | error of it | mean estimate | mean se | sd | covered |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {m} | {n} | {name_of(what)} | {truth:.5f} | {error:.0e} | {mean:.5f} | {se:.5f} | "
        f"{sd:.5f} | {percent(covered)} |"
        for m, n, what, truth, error, mean, se, sd, covered in rows
    ]
    singles = [row[-1] for row in rows if row[1] >= 1000 and isinstance(row[2], str)]
    pairs = [row[-1] for row in rows if row[1] >= 1000 and not isinstance(row[2], str)]
    medium = [row[-1] for row in rows if row[1] in (200, 500)]
    small = [row[-1] for row in rows if row[1] < 200]
    lines += [
        "",
        f"At n = 1000 and 5000, single values are covered {span(singles)} of the time, paired "
        f"differences {span(pairs)};",
        f"at n = 200 and 500, {span(medium)}; at n = 50 and 100, {span(small)}.",
        "",
        "## Level of the test",
        "",
        f"Share of p <= 0.05 for calibrated models, {int(3000 * scale)} repetitions, 199 resamples.",
        "",
        "| n | m | debiased CKCE | CKCE | JKCE |",
        "|---|---|---|---|---|",
    ]
    configurations = [(100, 3), (500, 10)]
    for n, m, shares in type_one_error(configurations, int(3000 * scale), rngs[1]):
        lines.append(f"| {n} | {m} | " + " | ".join(percent(share) for share in shares) + " |")
    n, repetitions = 10_000, int(200 * scale)
    lines += [
        "",
        "## Pairs that CKCE ranks wrongly",
        "",
        "Two classes; predictions p uniform in an interval; P(y = 1 | p) = p - slope (p - 1/2). The "
        "larger slope is the larger",
        "miscalibration *given the prediction*, whatever the predictions are: A is the worse model "
        "in every row. Where A predicts",
        "in a narrower range, the regularised CKCE sees less of it. "
        f"{repetitions} repetitions, n = {n}, the two samples independent.",
        "",
        "| A: range, slope | B: range, slope | difference of mean \\|q\\|^2 | CKCE of A / of B | "
        "at equal slopes | ranked wrongly | significantly so | `marginals` fired |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for a, b, difference, ratio, equal, shares in wrong_pairs(n, repetitions, rngs[2]):
        lines.append(
            f"| {a[0]} to {a[1]}, {a[2]} | {b[0]} to {b[1]}, {b[2]} | {difference:.3f} | "
            f"{ratio:.2f} | {equal:.2f} | " + " | ".join(map(percent, shares)) + " |"
        )
    print(f"{time.perf_counter() - start:.0f} s")
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    text = report(0.1 if options.quick else 1.0, options.seed)
    if options.quick:
        print(text)
    else:
        OUT.write_text(text)


if __name__ == "__main__":
    main()
