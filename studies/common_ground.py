"""Study: ties and known orders of two models whose predictions are distributed differently.

    python studies/common_ground.py --minutes 20   runs the next cells of the plan, appends to the results
    python studies/common_ground.py --write        writes COMMON_GROUND.md and the table of docs/comparing.md

A family is a map T of the simplex and two distributions of predictions. A model that predicts q has
labels drawn from (1 - c) q + c T(q): its residual function is c (T(q) - q), whatever it predicts how
often. In a tie both models have the same c: every difference that is called is false. In an order one
has 0.6 c, once the first and once the second. Predictions of the two are independent, labels of a row
share one uniform number. Coverage is of the mean difference over the repetitions.

The procedure was frozen three times. The first 23 families were written after the first time. They showed that
intervals of constant models covered too little, and the standard error was changed. Six families, most of them
with constant models, were written after that change, and all cells were run anew. These showed that a huge
miscalibration of 20 classes is called different where values differ by 2 %. So a small difference became no
verdict where the balance is coarse. The last six families, for ten classes and more, were written after that;
cells with a resolution below 0.9 were judged anew, and no setting was changed afterwards.
"""

import argparse
import dataclasses
import json
import time
import zlib
from pathlib import Path

import numpy as np

import ckce
from ckce._compare.common_ground import ground_problems, pair_of
from ckce._compare.ground import Grounds
from ckce._compare.models import check_models
from ckce._compare.verdict import judge
from ckce._problem import check_settings

HERE = Path(__file__).parent
RESULTS = HERE / "common_ground.jsonl"
OUT = HERE / "COMMON_GROUND.md"
DOCS = HERE.parent / "docs" / "comparing.md"
LESS = 0.6
CASES = ("tie", "first is worse", "second is worse")
# Classes, rows and repetitions, in the order in which they are run.
PLAN = (
    (2, 1000, 300),
    (3, 1000, 300),
    (10, 1000, 20),
    (20, 1000, 20),
    (3, 5000, 20),
    (2, 5000, 100),
    (10, 5000, 8),
    (20, 5000, 6),
    (2, 5000, 300),
    (3, 5000, 100),
    (10, 1000, 60),
    (20, 1000, 60),
    (3, 5000, 300),
    (10, 5000, 30),
    (20, 5000, 30),
)


def normal(p):
    return p / p.sum(axis=1, keepdims=True)


def sharp(power):
    return lambda q, rng: normal(np.maximum(q, 1e-12) ** power)


def tilt(scale, height):
    """q_j exp(g_j(q)) with Gaussian processes g_j of a length scale."""

    def make(q, rng):
        m = q.shape[1]
        w = rng.normal(size=(60, m)) / scale
        phase = rng.uniform(0, 2 * np.pi, 60)
        g = np.cos(q @ w.T + phase) @ rng.normal(size=(60, m)) * np.sqrt(2 / 60)
        return normal(q * np.exp(height * g))

    return make


def bump(width):
    """Towards one class, near one point."""

    def make(q, rng):
        m = q.shape[1]
        centre = rng.dirichlet(np.full(m, 4.0))
        weight = np.exp(-((q - centre) ** 2).sum(axis=1, keepdims=True) / (2 * width**2))
        return (1 - weight) * q + weight * np.eye(m)[int(rng.integers(m))]

    return make


def mixed(weight, target):
    """A mixture with a target, by a weight that depends on the prediction."""

    def make(q, rng):
        w = weight(q)[:, None]
        return (1 - w) * q + w * target(q, rng)

    return make


def uniform(q, rng):
    return np.full_like(q, 1 / q.shape[1])


def second(q, rng):
    """The two largest entries change places."""
    order = np.argsort(-q, axis=1)
    out = q.copy()
    rows = np.arange(len(q))
    out[rows, order[:, 0]], out[rows, order[:, 1]] = q[rows, order[:, 1]], q[rows, order[:, 0]]
    return out


def certain(q, rng):
    return np.eye(q.shape[1])[q.argmax(axis=1)]


def transition(q, rng):
    return q @ rng.dirichlet(np.ones(q.shape[1]), q.shape[1])


def prior(q, rng):
    return normal(q * np.exp(rng.normal(size=q.shape[1])))


def linear_logits(q, rng):
    """Dirichlet calibration with a random matrix."""
    logits = np.log(np.maximum(q, 1e-6))
    w = np.eye(q.shape[1]) + 0.3 * rng.normal(size=(q.shape[1],) * 2)
    logits = logits @ w.T
    return normal(np.exp(logits - logits.max(axis=1, keepdims=True)))


def wave(q, rng):
    return normal(q * np.exp(0.8 * np.sin(7 * q + rng.uniform(0, 6, q.shape[1]))))


def vector_scaling(q, rng):
    m = q.shape[1]
    return normal(np.maximum(q, 1e-9) ** rng.uniform(0.5, 1.8, m) * np.exp(rng.normal(size=m)))


def next_class(q, rng):
    return np.roll(q, 1, axis=1)


def stairs(q, rng):
    return normal(np.floor(8 * q) + 0.2)


def entropy(q):
    return -(q * np.log(np.maximum(q, 1e-12))).sum(axis=1) / np.log(q.shape[1])


# Name: (map, c, kind of the two distributions of predictions)
FAMILIES = {
    "too sure": (sharp(0.6), 1.0, "spread"),
    "not sure enough": (sharp(1.7), 1.0, "nets"),
    "label noise": (uniform, 0.25, "spread"),
    "label noise, nets": (uniform, 0.25, "nets"),
    "prior shift": (prior, 1.0, "skewed"),
    "transition matrix": (transition, 0.3, "overlap"),
    "Dirichlet calibration": (linear_logits, 1.0, "nets"),
    "first and second exchanged": (second, 0.2, "spread"),
    "sure is right": (certain, 0.25, "skewed"),
    "tilt 0.6": (tilt(0.6, 0.8), 1.0, "spread"),
    "tilt 0.3": (tilt(0.3, 0.7), 1.0, "overlap"),
    "tilt 0.15": (tilt(0.15, 0.6), 1.0, "nets"),
    "wave": (wave, 1.0, "overlap"),
    "bump 0.3": (bump(0.3), 0.4, "skewed"),
    "bump 0.15": (bump(0.15), 0.5, "spread"),
    "noise if unsure": (mixed(entropy, uniform), 0.5, "nets"),
    "noise if sure": (mixed(lambda q: 1 - entropy(q), uniform), 0.5, "overlap"),
    "step at 0.7": (mixed(lambda q: (q.max(axis=1) > 0.7) * 1.0, uniform), 0.25, "spread"),
    "ramp above 0.5": (mixed(lambda q: np.maximum(q.max(1) - 0.5, 0), second), 1.0, "nets"),
    "first class early": (mixed(lambda q: q[:, 0], prior), 1.0, "skewed"),
    "constant, noise": (uniform, 0.4, "constant"),
    "constant, prior shift": (prior, 0.7, "constant"),
    "constant, tilt 0.3": (tilt(0.3, 0.8), 1.0, "constant"),
    # Written after the second freeze:
    "constant, too sure": (sharp(0.6), 1.0, "constant"),
    "constant and sure, bump 0.3": (bump(0.3), 0.5, "sure"),
    "constant and sure, transitions": (transition, 0.3, "sure"),
    "nearly constant, noise": (uniform, 0.4, "nearly"),
    "nearly constant, tilt 0.6": (tilt(0.6, 0.8), 1.0, "nearly"),
    "two narrow models, prior shift": (prior, 0.7, "narrow"),
}
# Written after the third freeze, for m >= 10:
LATE = {
    "Dirichlet calibration, overlap": (linear_logits, 1.0, "overlap"),
    "vector scaling": (vector_scaling, 1.0, "nets"),
    "next class": (next_class, 0.4, "nets"),
    "strong tilt 0.1": (tilt(0.1, 1.5), 1.0, "nets"),
    "strong tilt 0.3": (tilt(0.3, 2.0), 1.0, "skewed"),
    "stairs": (stairs, 1.0, "spread"),
}


def families(m):
    return FAMILIES if m < 10 else FAMILIES | LATE


def predictions(kind, n, m, rng):
    """Predictions of the first and of the second model."""
    if kind == "spread":
        return rng.dirichlet(np.ones(m), n), rng.dirichlet(np.full(m, 3.0), n)
    if kind == "skewed":
        wide = rng.dirichlet(np.ones(m), n)
        return wide, rng.dirichlet(np.linspace(0.7, 2.5, m), n)
    if kind == "nets":
        return tuple(
            normal(np.exp(s * rng.normal(size=(n, m)) + np.log(m) * hot(rng, n, m)))
            for s in (0.8, 1.5)
        )
    if kind == "overlap":
        mixture = rng.random((n, 1)) < 0.5
        shared = [rng.dirichlet(np.ones(m), n) for _ in range(2)]
        own = rng.dirichlet(np.full(m, 8.0), n), rng.dirichlet(np.full(m, 0.4), n)
        return tuple(np.where(mixture, a, b) for a, b in zip(shared, own, strict=True))
    centre = np.linspace(1.0, 2.0, m)
    rates = centre / centre.sum()
    if kind == "constant":
        return np.tile(rates, (n, 1)), rng.dirichlet(2 * centre, n)
    if kind == "sure":
        rates = np.r_[0.7, np.full(m - 1, 0.3 / (m - 1))]
        return np.tile(rates, (n, 1)), rng.dirichlet(3 * m * rates, n)
    if kind == "nearly":
        return rng.dirichlet(100 * m * rates, n), rng.dirichlet(2 * centre, n)
    assert kind == "narrow"
    return rng.dirichlet(20 * m * rates, n), rng.dirichlet(6 * m * rates, n)


def hot(rng, n, m):
    return np.eye(m)[rng.integers(m, size=n)]


def labels(q, target, c, u):
    law = (1 - c) * q + c * target
    return np.minimum((u[:, None] > law.cumsum(axis=1)).sum(axis=1), q.shape[1] - 1)


def compare_all(probs, truths):
    """`ckce.common_ground` of the same predictions with several labels; sums are made once for each."""
    settings, shared, sums, found = check_settings("ckce", n_threads=1), None, {}, []
    for of_a, of_b in truths:
        y = {"A": of_a, "B": of_b}
        options = {"labels": None, "sample_weight": None, "groups": None, "input": "probs"}
        models = check_models(y, probs, **options, normalize=False, n_threads=1)
        if shared is None:
            shared = Grounds(ground_problems(models, settings))
        problems = {
            name: dataclasses.replace(each, samples=models[name])
            for name, each in shared._problems.items()
        }
        grounds = Grounds(problems)
        grounds.__dict__["map"] = shared.map
        for name, truth in y.items():
            key = name, id(truth)
            if key not in sums:
                sums[key] = grounds.sums(name)
            grounds._sums[name] = sums[key]
        found += judge([pair_of(grounds, ("A", "B"))], 0.95)
    return found


def run(name, m, n, repetitions):
    """Rows of (case, z of the three runs, difference, se, own difference, own se, verdict)."""
    make, c, kind = families(m)[name]
    seed = zlib.crc32(f"{name}/{m}".encode())
    rows = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([seed, n, repetition])
        a, b = predictions(kind, n, m, rng)
        u = rng.random(n)
        # One T for all repetitions and both models.
        target_a, target_b = (make(q, np.random.default_rng(seed)) for q in (a, b))
        worse_a, better_a = (labels(a, target_a, k * c, u) for k in (1, LESS))
        worse_b, better_b = (labels(b, target_b, k * c, u) for k in (1, LESS))
        probs = {"A": a, "B": b}
        truths = [(worse_a, worse_b), (worse_a, better_b), (better_a, worse_b)]
        found = compare_all(probs, truths)
        if repetition == 0:  # the same numbers as the public function's
            public = ckce.common_ground({"A": truths[2][0], "B": truths[2][1]}, a, b, n_threads=1)
            assert dataclasses.replace(public, signature="") == found[2]
        for case, pair in zip(CASES, found, strict=True):
            rows.append(
                (
                    case,
                    pair.verdict,
                    pair.better,
                    pair.difference,
                    pair.se,
                    pair.own_difference,
                    pair.own_p_value,
                    pair.share,
                    pair.resolution,
                )
            )
    return rows


def summary(name, m, n, rows):
    """One line of the results."""
    line = {"freeze": 3, "family": name, "m": m, "n": n, "repetitions": len(rows) // 3}
    for case in CASES:
        mine = [row for row in rows if row[0] == case]
        difference, se, own, own_p = (np.array([row[k] for row in mine]) for k in (3, 4, 5, 6))
        called = np.array([row[1] == "different" for row in mine])
        right = {"tie": None, "first is worse": "B", "second is worse": "A"}[case]
        correct = np.array([row[2] == right for row in mine])
        sign = {"tie": 0, "first is worse": 1, "second is worse": -1}[case]
        own_called = own_p < 0.05
        covered = np.abs(difference - difference.mean()) <= 1.959964 * se
        line[case] = {
            "called": float(called.mean()),
            "right": float((called & correct).mean()),
            "wrong": float((called & ~correct).mean()),
            "own called": float(own_called.mean()),
            "own right": float((own_called & (np.sign(own) == sign)).mean()),
            "own wrong": float((own_called & (np.sign(own) != sign)).mean()),
            "covered": float(covered.mean()),
            "se / sd": float(se.mean() / difference.std()),
            "no verdict": float(np.mean([row[1] == "depends on settings" for row in mine])),
            "no ground": float(np.mean([row[1] == "no common ground" for row in mine])),
        }
    line["share"] = float(np.mean([row[7] for row in rows]))
    line["resolution"] = float(np.mean([row[8] for row in rows]))
    return line


def results():
    """The lines of all cells; of several of one cell, the last."""
    if not RESULTS.exists():
        return []
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return list({(line["family"], line["m"], line["n"]): line for line in lines}.values())


def table(lines):
    """A row for each size, over its families."""
    out = [
        "| m | n | families | repetitions | false ties | worst family | own CKCE | right | own CKCE "
        "| wrong | worst cell | own CKCE | covered | least |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for m, n in sorted({(line["m"], line["n"]) for line in lines}):
        mine = [line for line in lines if (line["m"], line["n"]) == (m, n)]
        ties = [line["tie"] for line in mine]
        orders = [line[c] for line in mine for c in ("first is worse", "second is worse")]
        repetitions = sorted({line["repetitions"] for line in mine})
        span = (
            f"{repetitions[0]}" if len(repetitions) == 1 else f"{repetitions[0]}-{repetitions[-1]}"
        )
        covered = [cell["covered"] for cell in ties + orders]

        def mean(cells, key):
            return f"{100 * np.mean([cell[key] for cell in cells]):.1f} %"

        def largest(cells, key):
            return f"{100 * max(cell[key] for cell in cells):.1f} %"

        cells = [
            mean(ties, "called"),
            largest(ties, "called"),
            f"{mean(ties, 'own called')}, {largest(ties, 'own called')}",
            mean(orders, "right"),
            mean(orders, "own right"),
            mean(orders, "wrong"),
            largest(orders, "wrong"),
            f"{mean(orders, 'own wrong')}, {largest(orders, 'own wrong')}",
            f"{100 * np.mean(covered):.1f} %",
            f"{100 * min(covered):.1f} %",
        ]
        out.append(f"| {m} | {n} | {len(mine)} | {span} | {' | '.join(cells)} |")
    return out


def families_table(lines):
    out = [
        "| family | m | n | share | resolution | false ties | own CKCE | right | wrong | no verdict "
        "| covered (tie, orders) | se / sd |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for line in sorted(lines, key=lambda each: (each["m"], each["n"])):
        tie, orders = line["tie"], [line[c] for c in ("first is worse", "second is worse")]
        right, wrong, covered = (
            100 * np.mean([cell[key] for cell in orders]) for key in ("right", "wrong", "covered")
        )
        stop = np.mean([cell["no verdict"] for cell in (tie, *orders)])
        out.append(
            f"| {line['family']} | {line['m']} | {line['n']} | {line['share']:.2f} | "
            f"{line['resolution']:.2f} | {100 * tie['called']:.1f} % | "
            f"{100 * tie['own called']:.1f} % | {right:.1f} % | {wrong:.1f} % | {100 * stop:.1f} % | "
            f"{100 * tie['covered']:.1f}, {covered:.1f} % | {tie['se / sd']:.2f} |"
        )
    return out


def missing(lines):
    """What the study still lacks, in words."""
    done = {(line["family"], line["m"], line["n"]): line["repetitions"] for line in lines}
    wanted = {(m, n): repetitions for m, n, repetitions in PLAN}  # the last entry of a size counts
    words = []
    for (m, n), repetitions in sorted(wanted.items()):
        short = [name for name in families(m) if done.get((name, m, n), 0) < repetitions]
        if short:
            words.append(
                f"m = {m}, n = {n}: {len(short)} of {len(families(m))} families have fewer than "
                f"{repetitions} repetitions"
            )
    if not words:
        return []
    return ["The run is not complete. " + "; ".join(words) + "."]


def findings():
    """The tables and what they lack."""
    lines = results()
    return [*table(lines), "", *missing(lines)]


def write():
    lines = results()
    text = [
        "# Common ground: false differences, power and coverage",
        "",
        "Written by `python studies/common_ground.py --write` from `common_ground.jsonl`; the module's",
        "first lines say how models are made. A cell is a family, m and n. False ties: a difference is",
        "called where both models have the same residual function. Right and wrong: a difference is",
        "called, one model has 0.6 of the other's miscalibration. Own CKCE: the same by a paired test of",
        "debiased CKCE (mean, worst cell). Covered: 95 % intervals that hold the mean difference.",
        "",
        *findings(),
        "",
        "## Families",
        "",
        *families_table(lines),
        "",
    ]
    OUT.write_text("\n".join(text))
    page = DOCS.read_text()
    start, end = (page.index(f"<!-- {mark} -->") for mark in ("study", "/study"))
    DOCS.write_text(page[:start] + "\n".join(["<!-- study -->", *findings(), ""]) + page[end:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15, help="CPU time after which to stop")
    parser.add_argument("--write", action="store_true", help="write the page from the results")
    args = parser.parse_args()
    if args.write:
        write()
        return
    done = {(line["family"], line["m"], line["n"]): line["repetitions"] for line in results()}
    for m, n, repetitions in PLAN:
        for name in families(m):
            if done.get((name, m, n), 0) >= repetitions:
                continue
            start = time.process_time()
            if start > 60 * args.minutes:
                return
            line = summary(name, m, n, run(name, m, n, repetitions))
            line["seconds"] = time.process_time() - start
            with RESULTS.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(f"m {m}, n {n}, {name}: {line['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
