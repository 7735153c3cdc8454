"""What the comparison at equal predictions says about the paper's claims.

python examples/paper/common_ground.py                the synthetic model under pairs of marginals
python examples/paper/common_ground.py --data DIR     and every <data set>_<model>_brightness.npz in DIR

The synthetic model has one P(Y | Q) throughout, so every difference between two marginals is false.
Of the networks, pairs are compared at each level of brightness, and each network with itself at the
level 0: the images, and so the rows, are the same.
"""

from itertools import combinations

import numpy as np
from _common import data_parser, load, parse, prediction_files, progress, write_csv
from synthetic import draw

import ckce

# (alpha, sigma) of two models
MARGINALS = [
    ((0.0, 0.25), (0.25, 0.25)),
    ((0.0, 0.25), (0.5, 0.25)),
    ((-0.5, 0.25), (0.5, 0.25)),
    ((0.0, 0.1), (0.0, 0.25)),
    ((0.0, 0.25), (0.0, 1.0)),
]


def synthetic(options):
    """How often a difference is called, for each pair of marginals."""
    n, trials = (300, 3) if options.quick else (1000, 100)
    rows = []
    for a, b in progress(MARGINALS, "marginals"):
        found = []
        for trial in range(trials):
            rng = np.random.default_rng([options.seed, trial])
            (y_a, q_a), (y_b, q_b) = (draw(rng, alpha, n, sigma) for alpha, sigma in (a, b))
            found.append(ckce.common_ground({"A": y_a, "B": y_b}, q_a, q_b))
        own = np.array([each.own_p_value < 0.05 for each in found])
        rows.append(
            {
                "alpha_a": a[0],
                "sigma_a": a[1],
                "alpha_b": b[0],
                "sigma_b": b[1],
                "trials": trials,
                "own_difference": float(np.mean([each.own_difference for each in found])),
                "own_significant": float(own.mean()),
                "difference": float(np.mean([each.difference for each in found])),
                "called": float(np.mean([each.verdict == "different" for each in found])),
                "no_common_ground": float(
                    np.mean([each.verdict == "no common ground" for each in found])
                ),
                "share": float(np.mean([each.share for each in found])),
            }
        )
    return rows


def brightness(data, paths):
    """Pairs of networks at each level, and each network against itself at the level 0."""
    files = {model: load(path) for model, path in paths.items()}
    rows = []
    for k, level in enumerate(next(iter(files.values()))["levels"].tolist()):
        pairs = [
            (a, b, files[a]["probs"][k], files[b]["probs"][k]) for a, b in combinations(files, 2)
        ]
        for model, file in files.items():
            if level != 0:
                start = int(np.flatnonzero(file["levels"] == 0)[0])
                pairs.append((model, f"{model} at 0", file["probs"][k], file["probs"][start]))
        for a, b, q_a, q_b in pairs:
            found = ckce.common_ground(next(iter(files.values()))["labels"], q_a, q_b, names=(a, b))
            rows.append(
                {
                    "data": data,
                    "level": int(level),
                    "first": a,
                    "second": b,
                    "verdict": found.verdict,
                    "better": found.better or "",
                    "difference": found.difference,
                    "se": found.se,
                    "z": " ".join(f"{z:.2f}" for z in found.z),
                    "share": found.share,
                    "own_difference": found.own_difference,
                    "own_p_value": found.own_p_value,
                }
            )
    return rows


def main(argv=None):
    """Both, as tables."""
    options = parse(data_parser(__doc__), argv)
    rows = synthetic(options)
    write_csv(options.out / "common_ground.csv", rows)
    if options.data is not None:
        series = []
        for data, paths in prediction_files(options.data, options.sets, series=True).items():
            series += brightness(data, paths)
        if series:
            write_csv(options.out / "common_ground_brightness.csv", series)
    return rows


if __name__ == "__main__":
    main()
