"""Simulation study: rows that depend on each other within groups.

    python studies/groups.py            writes studies/GROUPS.md, a quarter of an hour on one core
    python studies/groups.py --quick    a tenth of the repetitions, printed only

Cases have true class probabilities pi, uniform on the simplex of three classes, and models as in
coverage.py. Labels of a group of 20 rows share a latent: y is the quantile of pi at u = Phi(z), where
the z of a group are normal with correlation 0.5. Each label alone has the law pi, so a model that
predicts pi is calibrated, but given the predictions the labels of a group depend on each other. In the
design "alike" the predictions of a group depend on each other, too: pi comes from exponentials with such
latents. In the design "unequal" groups have lognormal sizes, from 1 to 127 rows with 50 groups.
The truth is that of coverage.py: it does not depend on groups.
"""

import argparse
import time
from pathlib import Path
from statistics import NormalDist

import numpy as np
from coverage import BANDWIDTH, FREQUENCIES, MODELS
from scipy.special import ndtr

import ckce
import ckce._input.groups
from ckce import reference
from ckce._results import effective_groups, standard_error
from ckce._results import interval as interval_around

OUT = Path(__file__).parent / "GROUPS.md"
POPULATION, BATCHES = 400_000, 20
CLASSES, SIZE, CORRELATION = 3, 20, 0.5
COUNTS = (5, 10, 20, 50, 100)
DESIGNS = [("labels", count) for count in COUNTS]
DESIGNS += [("alike", 10), ("alike", 50), *(("unequal", count) for count in (5, 10, 20, 50))]
NAMES = ("calibrated", "slightly sharp", "sharp")
BINS = 15


def groups_of(design, count):
    """The group of each row."""
    sizes = np.full(count, SIZE)
    if design == "unequal":
        places = (np.arange(count) + 0.5) / count
        sizes = np.exp([NormalDist().inv_cdf(place) for place in places])
        sizes = np.maximum(1, np.round(sizes / sizes.mean() * SIZE)).astype(int)
    return np.repeat(np.arange(count), sizes)


def latent(groups, rng, shape=()):
    """Uniform numbers of the rows, correlated within each group."""
    shared = rng.normal(size=(groups.max() + 1, *shape))[groups]
    own = rng.normal(size=(len(groups), *shape))
    return ndtr(np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own)


def draw(design, groups, rng):
    """pi and labels of the rows."""
    shape = (CLASSES,)
    u = latent(groups, rng, shape) if design == "alike" else rng.random((len(groups), CLASSES))
    pi = -np.log(u)
    pi /= pi.sum(axis=1, keepdims=True)
    y = (latent(groups, rng)[:, None] > pi.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return pi, y


def draw_in_turn(groups, rng):
    """Rows of a group one after the other: a prediction leans to the label before, y is drawn from it."""
    pi = rng.exponential(size=(len(groups), CLASSES))
    y = np.zeros(len(groups), int)
    for i in range(SIZE):  # the i-th row of all groups
        rows = np.arange(i, len(groups), SIZE)
        if i > 0:
            pi[rows, y[rows - 1]] *= np.e
        pi[rows] /= pi[rows].sum(axis=1, keepdims=True)
        u = rng.random((len(rows), 1))
        y[rows] = (u > pi[rows].cumsum(axis=1)[:, :-1]).sum(axis=1)
    return pi, y


def bins_of(q):
    return np.minimum((q.max(axis=1) * BINS).astype(int), BINS - 1)


def truths(frequencies, lams, rng):
    """By model: CKCE at each lambda, JKCE, Brier score and top-label ECE of the population."""
    found = {}
    for name in NAMES:
        c, s, brier, gaps = 0.0, 0.0, 0.0, np.zeros(BINS)
        for _ in range(BATCHES):
            pi = rng.dirichlet(np.ones(CLASSES), POPULATION // BATCHES)
            q = MODELS[name](pi)
            phi = reference.fourier_features(q, frequencies)
            c, s = c + phi.T @ phi / POPULATION, s + phi.T @ (pi - q) / POPULATION
            brier += np.sum(1 - 2 * (pi * q).sum(axis=1) + (q**2).sum(axis=1)) / POPULATION
            top = q.argmax(axis=1)[:, None]
            gap = np.take_along_axis(pi - q, top, axis=1)[:, 0]
            gaps += np.bincount(bins_of(q), gap, BINS) / POPULATION
        for lam in lams:
            found["CKCE", name, lam] = np.sum(np.linalg.solve(c + lam * np.eye(len(c)), s) ** 2)
        found["JKCE", name] = np.sum(s**2)
        found["Brier", name] = brier
        found["ECE", name] = np.abs(gaps).sum()
    return found


def brier_rows(y, q):
    """The score, and the influence of each row."""
    losses = ((np.eye(CLASSES)[y] - q) ** 2).sum(axis=1)
    return losses.mean(), losses - losses.mean()


def ece_rows(y, q):
    """Top-label ECE, and the influence of each row where no gap changes its sign."""
    bins, gap = bins_of(q), (q.argmax(axis=1) == y) - q.max(axis=1)
    sign = np.sign(np.bincount(bins, gap, BINS))[bins]
    value = float(np.mean(sign * gap))
    assert abs(value - ckce.ece(y, q, n_bins=BINS, n_threads=1)) < 1e-9
    return value, sign * gap - value


def repetition(design, count, method, truth, rng):
    """(what, truth, estimate and se by rows, covered, the same by groups) of one data set."""
    g = groups_of(design, count)
    pi, y = draw(design, g, rng)
    lam = (count * SIZE) ** -0.25
    options = {"method": method, "n_threads": 1}
    by_rows, by_group = {}, {}

    def both(what, expected, values, influence):
        out = [expected]
        for value, groups in zip(values, (None, g), strict=True):
            se = standard_error(influence, None, groups)
            low, high = interval_around(value, se, 0.95, effective_groups(groups, None))
            out += [value, se, low <= expected <= high]
        return what, out

    def printed(what, expected, estimates, word):
        out = [expected]
        for each in estimates:
            low, high = each.interval()
            out += [getattr(each, word), each.se, low <= expected <= high]
        return what, out

    for name in NAMES:
        q = MODELS[name](pi)
        by_rows[name], by_group[name] = pair = [
            ckce.estimate(y, q, groups=each, regularization=lam, **options) for each in (None, g)
        ]
        yield printed(f"CKCE, {name}", truth["CKCE", name, lam], pair, "debiased")
        pair = [ckce.jkce_estimate(y, q, groups=each, **options) for each in (None, g)]
        yield printed(f"JKCE, {name}", truth["JKCE", name], pair, "value")
        for metric, of_rows in (("Brier", brier_rows), ("ECE", ece_rows)):
            value, influence = of_rows(y, q)
            yield both(f"{metric}, {name}", truth[metric, name], (value, value), influence)
    for name in NAMES[1:]:
        expected = truth["CKCE", name, lam] - truth["CKCE", "calibrated", lam]
        values = [each[name].debiased - each["calibrated"].debiased for each in (by_rows, by_group)]
        influence = by_rows[name].influence - by_rows["calibrated"].influence
        yield both(f"CKCE, {name} - calibrated", expected, values, influence)


def summary(design, count, repetitions, method, truth, rng):
    """The rows of the table of one design."""
    found = {}
    for _ in range(repetitions):
        for what, numbers in repetition(design, count, method, truth, rng):
            found.setdefault(what, []).append(numbers)
    for what, rows in found.items():
        a = np.array(rows, float)
        mean, sd = a.mean(axis=0), a[:, 4].std(ddof=1)
        error = sd / np.sqrt(repetitions)
        yield (
            f"| {count} | {design} | {what} | {mean[0]:.5f} | "
            f"{mean[1]:.5f} | {mean[4]:.5f} | {error:.5f} | {sd:.5f} | {mean[2]:.5f} | "
            f"{mean[5]:.5f} | {mean[3]:.1%} | {mean[6]:.1%} |"
        )


def test_level(design, count, repetitions, method, rng):
    """How often the exact test rejects a calibrated model at 5 %, and its debiased CKCE by rows."""
    groups, rejected, debiased = groups_of(design, count), 0, []
    for _ in range(repetitions):
        turn = design == "in turn"
        pi, y = draw_in_turn(groups, rng) if turn else draw(design, groups, rng)
        options = {"method": method, "n_threads": 1}
        rejected += ckce.calibration_test(y, pi, n_resamples=199, **options).p_value <= 0.05
        debiased.append(ckce.estimate(y, pi, **options).debiased)
    error = np.std(debiased, ddof=1) / np.sqrt(repetitions)
    return f"| {count} | {design} | {rejected / repetitions:.1%} | {np.mean(debiased):.5f} | {error:.5f} |"


LEVELS = [
    "",
    "## The exact test of calibrated models",
    "",
    "How often `calibration_test` (199 resamples) rejects at 5 %, and the mean of the debiased CKCE by rows with "
    "its error.",
    'In the design "in turn" rows of a group come one after the other, as tokens of a text do: each prediction '
    "leans to the",
    "label before (its odds are e times larger), and the label is drawn from the prediction.",
    "",
    "| groups | design | rejected | mean by rows | error |",
    "|---|---|---|---|---|",
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--designs", help="some of them, printed only: alike:50,unequal:10")
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    repetitions = 40 if args.quick else args.repetitions
    chosen = DESIGNS
    if args.designs is not None:
        pairs = (word.split(":") for word in args.designs.split(","))
        chosen = [(design, int(count)) for design, count in pairs]
    rng = np.random.default_rng(args.seed)
    ckce._input.groups.LEAST_GROUPS = 2  # to see why there is a limit
    frequencies = ckce.fourier_frequencies(CLASSES, FREQUENCIES, bandwidth=BANDWIDTH)
    method = ckce.Fourier(frequencies=frequencies)
    truth = truths(frequencies, [(count * SIZE) ** -0.25 for _, count in chosen], rng)
    started = time.perf_counter()
    lines = [
        "# Rows that depend on each other within groups",
        "",
        "Written by `python studies/groups.py` (seed 0); what is simulated is described there. Groups of "
        f"{SIZE} rows,",
        f"correlation {CORRELATION} of the latents of labels, {CLASSES} classes, {FREQUENCIES} frequencies, "
        f"bandwidth {BANDWIDTH}, lambda n^(-1/4), {repetitions} repetitions",
        "(a coverage of 95 % is known to about 1 %). By rows: as if rows were independent. By groups: "
        "`groups=`, debiased",
        "without pairs of one group, jackknifed sums of the influence, Student's t with N^2 / sum N_g^2 - 1 "
        "degrees of freedom,",
        "CKCE and JKCE with a standard error that grows with the truth. The error is",
        "that of the mean by groups. Brier score and ECE have the same value either way.",
        "",
        "| groups | design | what | truth | mean by rows | mean by groups | error | sd | mean se by "
        "rows | mean se by groups | covered by rows | covered by groups |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for design, count in chosen:
        for line in summary(design, count, repetitions, method, truth, rng):
            lines.append(line)
            print(line, flush=True)
    lines += LEVELS
    for design in ("labels", "alike", "in turn"):
        lines.append(test_level(design, 50, repetitions, method, rng))
        print(lines[-1], flush=True)
    print(f"{time.perf_counter() - started:.0f} s")
    if not args.quick and args.designs is None:
        OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
