"""The synthetic data of Section 5.2, and the choices that the paper's text leaves open.

    X ~ normal(alpha, sigma) truncated to [-1, 1],  P(Y = 1 | x) = 1 / (1 + exp(-x)),
    f(x) = 1 / (1 + exp(-5 x))

The defaults of the options are the reading that reproduces the text.
"""

import numpy as np
from _common import parse, parser, progress
from scipy.spatial.distance import pdist
from scipy.special import expit
from scipy.stats import truncnorm

import ckce

TRUTH_SLOPE, MODEL_SLOPE = 1.0, 5.0


def options_of(description, argv):
    """The command line of an experiment over alpha."""
    made = parser(description)
    made.add_argument("--n", type=int, help="samples per data set (1000)")
    made.add_argument("--trials", type=int, help="repetitions (20)")
    made.add_argument("--alphas", type=int, help="values of alpha from -1 to 1 (25)")
    made.add_argument("--sigma", type=float, default=0.25, help="scale of the inputs (0.25)")
    made.add_argument(
        "--prediction",
        choices=["vector", "scalar"],
        default="vector",
        help="what the kernel sees: (1 - q, q), or q alone",
    )
    made.add_argument(
        "--bandwidth",
        default="own",
        help="own: the median heuristic for each data set; pooled: one bandwidth for all alphas of a "
        "trial, the median over the pairs within data sets; or a number",
    )
    made.add_argument(
        "--distance",
        choices=["plain", "squared"],
        default="plain",
        help="the median of which distances is the bandwidth",
    )
    made.add_argument("--method", choices=["exact", "cholesky", "fourier"], help="of CKCE and JKCE")
    made.add_argument("--n-frequencies", type=int, default=100, help="D of fourier (100)")
    made.add_argument("--bins", type=int, default=10, help="bins of ECE per class (10)")
    made.add_argument(
        "--ece-norm", choices=["l1", "tv"], default="l1", help="tv counts two classes once"
    )
    options = parse(made, argv)
    small = {"n": 400, "trials": 3, "alphas": 9, "method": "cholesky"}
    full = {"n": 1000, "trials": 20, "alphas": 25, "method": "exact"}
    for name, value in (small if options.quick else full).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.prediction == "scalar" and options.method != "exact":
        made.error("--prediction scalar needs --method exact")
    return options


def draw(rng, alpha, n, sigma):
    """Labels (n,) and predictions (n, 2) of the miscalibrated model."""
    x = truncnorm.rvs(
        (-1 - alpha) / sigma, (1 - alpha) / sigma, loc=alpha, scale=sigma, size=n, random_state=rng
    )
    y = (rng.random(n) < expit(TRUTH_SLOPE * x)).astype(int)
    p = expit(MODEL_SLOPE * x)
    return y, np.stack([1 - p, p], axis=1)


def draw_labels(rng, q):
    """One label from each row of q."""
    return (q.cumsum(axis=1)[:, :-1] < rng.random((len(q), 1))).sum(axis=1)


def bandwidths(choice, probs):
    """The bandwidth of each array of predictions: its own median, one pooled median, or a number."""
    if choice == "own":
        return [ckce.median_bandwidth(q) for q in probs]
    if choice == "pooled":  # over the pairs within arrays, not across
        return [float(np.median(np.concatenate([pdist(q) for q in probs])))] * len(probs)
    return [float(choice)] * len(probs)


def data_sets(options, text):
    """(trial, alpha, labels, predictions, bandwidth) of every data set, under a progress bar."""
    alphas = np.linspace(-1, 1, options.alphas)
    for trial in progress(range(options.trials), text):
        sets = [
            draw(np.random.default_rng([options.seed, trial, i]), alpha, options.n, options.sigma)
            for i, alpha in enumerate(alphas)
        ]
        gammas = bandwidths(options.bandwidth, [q for _, q in sets])
        if options.distance == "squared":
            gammas = [gamma**2 for gamma in gammas]  # the square keeps the order
        for alpha, (y, q), gamma in zip(alphas, sets, gammas, strict=True):
            yield trial, float(alpha), y, q, gamma


def kernel_options(kernel, gamma, options):
    """Arguments of `ckce.ckce` and `ckce.jkce` for a kernel under the choices made."""
    if options.prediction == "scalar":
        return {"method": "exact", "kernel": scalar_kernel(kernel, gamma)}
    if kernel == "linear":
        return {"method": "exact", "kernel": kernel}
    made = {"method": options.method, "kernel": kernel, "bandwidth": gamma}
    if options.method == "fourier":
        made |= {"method": ckce.Fourier(options.n_frequencies), "random_state": options.seed}
    return made


def scalar_kernel(name, gamma):
    """The kernel on q alone, which is half a squared distance of (1 - q, q) in the Gaussian part."""
    gamma = gamma / np.sqrt(2)

    def kernel(a, b):
        p, q = a[:, 1:], b[:, 1:]
        gram = np.zeros((len(p), len(q)))
        if "linear" in name:
            gram += p @ q.T
        if "gaussian" in name:
            gram += np.exp(-((p - q.T) ** 2) / (2 * gamma**2))
        return gram

    return kernel


def mean_curve(rows, key):
    """(alphas, mean over the trials at each)."""
    alphas = sorted({row["alpha"] for row in rows})
    return alphas, [np.mean([row[key] for row in rows if row["alpha"] == a]) for a in alphas]


def summary(rows, keys):
    """How much each column moves over alpha.

    `cv` is the standard deviation over alpha of the mean curve divided by its mean, `cv_one_trial`
    the mean of the same of single trials, which the sampling noise adds to.
    """
    found = []
    for key in keys:
        curve = np.array(mean_curve(rows, key)[1])
        trials = sorted({row["trial"] for row in rows})
        single = np.array([[row[key] for row in rows if row["trial"] == t] for t in trials])
        found.append(
            {
                "metric": key,
                "mean": float(curve.mean()),
                "cv": float(curve.std() / curve.mean()),
                "max_over_min": float(curve.max() / curve.min()),
                "cv_one_trial": float((single.std(axis=1) / single.mean(axis=1)).mean()),
            }
        )
    return found
