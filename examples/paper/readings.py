"""The choices that the text leaves open: how much each metric moves over alpha under other readings.

Five trials, where covariate_shift.py has twenty.

python examples/paper/readings.py                     a minute
python examples/paper/readings.py --quick             seconds
"""

import covariate_shift
from _common import parse, parser, progress, write_csv
from synthetic import options_of, summary

READINGS = {
    "as the text": [],
    "one bandwidth for all alphas": ["--bandwidth", "pooled"],
    "median of squared distances": ["--distance", "squared"],
    "kernel on q alone": ["--prediction", "scalar", "--method", "exact"],
    "random Fourier features, D = 100": ["--method", "fourier"],
    "ECE with 15 bins": ["--bins", "15"],
    "ECE by total variation": ["--ece-norm", "tv"],
}


def main(argv=None):
    """Write readings.csv."""
    options = parse(parser(__doc__), argv)
    size = (
        ["--quick", "--trials", "1"] if options.quick else ["--method", "cholesky", "--trials", "5"]
    )
    rows = []
    for name, choice in progress(READINGS.items(), "readings"):
        arguments = [*size, "--seed", str(options.seed), "--out", str(options.out), *choice]
        found = covariate_shift.measure(options_of(__doc__, arguments))
        moves = {row["metric"]: row for row in summary(found, covariate_shift.METRICS)}
        rows.append(
            {"reading": name, "options": " ".join(choice)}
            | {f"{metric}_mean": row["mean"] for metric, row in moves.items()}
            | {f"{metric}_cv": row["cv"] for metric, row in moves.items()}
        )
    write_csv(options.out / "readings.csv", rows)


if __name__ == "__main__":
    main()
