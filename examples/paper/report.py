"""The tables of docs/paper.md, written from the results.

python examples/paper/report.py                       rewrites docs/paper.md between its markers
"""

import re
from pathlib import Path

import table1
from _common import HERE, RESULTS, column, read_csv

PAGE = HERE.parents[1] / "docs" / "paper.md"
DATA = {"balanced": "ImageNet's labels", "top1": "ImageNet, top label"}


def percent(share, digits=1):
    """0.0934 as 9.3 %."""
    return f"{100 * share:.{digits}f} %"


def by(rows, *keys):
    """Rows by the values of some columns."""
    return {tuple(row[key] for key in keys): row for row in rows}


class Numbers:
    """The results, read once."""

    def __init__(self, folder):
        self.shift = by(read_csv(folder / "covariate_shift_summary.csv"), "metric")
        self.kernels = by(read_csv(folder / "kernel_robustness_summary.csv"), "metric")
        self.curves = read_csv(folder / "kernel_robustness.csv")
        self.marginal = read_csv(folder / "limits_marginal.csv")
        self.floor = read_csv(folder / "limits_floor.csv")
        self.readings = read_csv(folder / "readings.csv")
        self.table = read_csv(folder / "table1.csv")
        self.models = by(self.table, "data", "model")
        self.brightness = by(read_csv(folder / "brightness_summary.csv"), "metric", "model")
        self.levels = read_csv(folder / "brightness.csv")
        self.approximation = read_csv(folder / "approximation.csv")

    def moves(self, metric):
        """How much a metric moves over alpha."""
        row = self.shift[(metric,)]
        return f"{percent(row['cv'])}, max/min {row['max_over_min']:.2f}"

    def drop(self, kernel):
        """CKCE at alpha = 0 as a share of its mean at alpha = -1 and 1."""
        at = {a: [r[kernel] for r in self.curves if r["alpha"] == a] for a in (-1.0, 0.0, 1.0)}
        ends = (sum(at[-1.0]) + sum(at[1.0])) / (len(at[-1.0]) + len(at[1.0]))
        return sum(at[0.0]) / len(at[0.0]) / ends

    def ratio(self, sigma):
        """Largest over smallest CKCE over alpha at a scale of the inputs."""
        values = column([r for r in self.marginal if r["sigma"] == sigma], "ckce")
        return values.max() / values.min()

    def calibrated(self, m, n, key):
        """Mean over the trials of a calibrated model."""
        return column([r for r in self.floor if (r["m"], r["n"]) == (m, n)], key).mean()

    def between(self, key, model, digits=4):
        """Range of a metric over the levels of brightness."""
        row = self.brightness[(key, model)]
        return f"{row['min']:.{digits}f} to {row['max']:.{digits}f}"

    def error(self, data, method, variant, size):
        """Relative error of an approximation."""
        rows = by(self.approximation, "data", "method", "variant", "size")
        return rows[(data, method, variant, size)]["rmse"]

    def disagreements(self, data, other):
        """(pairs of models that CKCE and another metric order differently, pairs)."""
        models = [r for r in self.table if r["data"] == data and "marginal" not in r["model"]]
        pairs = [(a, b) for i, a in enumerate(models) for b in models[:i]]
        differ = [(a["ckce"] - b["ckce"]) * (a[other] - b[other]) < 0 for a, b in pairs]
        return sum(differ), len(pairs)


def claims(x):
    """(the paper, figure, what the rerun gives, verdict)."""
    lite = [m for k, m in x.brightness if k == "ckce"]
    order = x.brightness[("ckce", lite[0])]
    uniform = x.models[("balanced", "marginal (uniform)")]
    dense, wide = (
        x.models[("cifar100", f"netcal_{n}")] for n in ("densenet_bc_100", "wideresnet_16_4")
    )
    photos = x.models[("imagenet", lite[0])]
    z = next(r for r in x.approximation if r["method"] == "sampled Z" and r["data"] == "cifar10")
    d100 = [
        x.error(data, "fourier", "gaussian", 100)
        for data in dict.fromkeys(column(x.approximation, "data").tolist())
    ]
    ece_pairs, all_pairs = x.disagreements("top1", "ece")
    jkce_pairs, _ = x.disagreements("top1", "jkce")
    return [
        (
            'Under covariate shift CKCE "indeed stays constant" (5.2)',
            "covariate_shift",
            f"CKCE moves by {x.moves('ckce')}; in a single trial by "
            f"{percent(x.shift[('ckce',)]['cv_one_trial'])}",
            "**flatter, not constant**",
        ),
        (
            '"JKCE and ECE are highly sensitive" (5.2)',
            "covariate_shift",
            f"JKCE {x.moves('jkce')}; ECE {x.moves('ece')}",
            "agrees; ECE moves twice as much as CKCE, JKCE five times",
        ),
        (
            'With a linear or a Gaussian kernel alone CKCE is not consistent, "with a noticeable drop '
            'near alpha = 0" (5.3)',
            "kernel_robustness",
            f"both {percent(x.kernels[('linear_gaussian',)]['cv'])}, linear "
            f"{percent(x.kernels[('linear',)]['cv'])}, Gaussian {percent(x.kernels[('gaussian',)]['cv'])}; "
            f"at alpha = 0 {percent(x.drop('linear_gaussian'), 0)}, {percent(x.drop('linear'), 0)} and "
            f"{percent(x.drop('gaussian'), 0)} of the value at the ends",
            "agrees; the combined kernel drops too, less",
        ),
        (
            'CKCE "is not impacted by the marginal distribution" (3)',
            "limits",
            f"the same P(Y given Q), inputs of scale 0.1 in place of 0.25: CKCE changes "
            f"{x.ratio(0.1):.1f} times over alpha ({x.ratio(0.25):.1f} at 0.25, {x.ratio(0.05):.0f} "
            "at 0.05)",
            "**does not hold** at lambda = n^(-1/4)",
        ),
        (
            '"A CKCE of 0 implies ... strong calibration" (3)',
            "limits",
            f"a calibrated model of 10 classes and n = 1000 scores {x.calibrated(10, 1000, 'ckce'):.4f}, "
            f"its floor is {x.calibrated(10, 1000, 'ckce_floor'):.4f}, its debiased value "
            f"{x.calibrated(10, 1000, 'ckce_debiased'):.4f}",
            "holds in the population; estimates have a **floor**",
        ),
        (
            'Changing brightness, CKCE "consistently" prefers one model and is "largely unaffected" '
            "(5.2)",
            "brightness_imagenet",
            f"{lite[0]} {x.between('ckce', lite[0])}, {lite[1]} {x.between('ckce', lite[1])}; the order "
            f"is the same at {order['levels_in_order']:.0f} of {order['levels']:.0f} levels "
            f"(debiased {x.between('ckce_debiased', lite[0])}, {x.between('ckce_debiased', lite[1])})",
            "agrees, on two other networks",
        ),
        (
            'JKCE prefers "different models for different brightness levels" (5.2)',
            "brightness_imagenet",
            f"JKCE keeps the order at {x.brightness[('jkce', lite[0])]['levels_in_order']:.0f} of "
            f"{order['levels']:.0f} levels and moves by {percent(x.brightness[('jkce', lite[0])]['cv'])} "
            f"and {percent(x.brightness[('jkce', lite[1])]['cv'])} (CKCE: {percent(order['cv'])} and "
            f"{percent(x.brightness[('ckce', lite[1])]['cv'])})",
            "moves more, but **no change of order** here",
        ),
        (
            "CKCE and ECE disagree on which network is better calibrated; ECE rewards overconfidence (5.1)",
            "reliability_cifar100",
            f"CIFAR-100: ECE {dense['ece']:.3f} for the DenseNet, {wide['ece']:.3f} for the Wide ResNet; "
            f"CKCE {dense['ckce']:.4f} and {wide['ckce']:.4f}, with which the diagram agrees. Of the "
            f"{all_pairs} pairs of 14 ImageNet networks (top label), CKCE orders {ece_pairs} other than "
            f"ECE and {jkce_pairs} other than JKCE",
            "agrees; the usual top-label ECE sides with CKCE here "
            f"({dense['ece_top_label']:.3f} and {wide['ece_top_label']:.3f})",
        ),
        (
            'With 1000 classes ECE "cannot be accurately estimated" (5.2)',
            "",
            f"1000 photos fall into {photos['occupied_bins']:.0f} bins",
            "agrees",
        ),
        (
            "Table 1, marginal model: accuracy 0.001, cross entropy 6.908, CKCE 0.000",
            "",
            f"{uniform['accuracy']:.3f}, {uniform['cross_entropy']:.3f}, {uniform['ckce']:.3f} at "
            "n = 50,000, m = 1000",
            "agrees",
        ),
        (
            "Table 1, marginal model: JKCE -0.002",
            "",
            f"{uniform['jkce']:.1e}: with balanced labels it is -(1 - 1/m²)/(n - 1), whatever the kernel's "
            "bandwidth; -0.002 is the value at n = 500",
            "**cannot be** at n = 50,000",
        ),
        (
            "Table 1, marginal model: ECE 0.003",
            "",
            f"{uniform['ece']:.3f}: one bin, in which the frequencies equal the prediction",
            "**cannot be** with balanced labels",
        ),
        (
            "Table 1 and Figure 1, ResNet and ViT on ImageNet",
            "",
            "not rerun: needs the images and the weights; `imagenet.py` computes the predictions",
            "open",
        ),
        (
            "Random Fourier features do not sacrifice accuracy; D = 100 (3.3)",
            "approximation",
            f"relative error of D = 100: {min(d100):.1e} to {max(d100):.1e} on five sets",
            "agrees for a value; exact is affordable, and a difference of models may need it",
        ),
        (
            "Means in place of sampled labels Z reduce the variance (3.1)",
            "approximation",
            f"CIFAR-10: sampled labels add {percent(z['bias'])} of bias (floor/CKCE is "
            f"{percent(z['floor'] / z['exact'])}) and their relative RMS error is {percent(z['rmse'])}",
            "agrees; they remove a bias, too",
        ),
    ]


def claims_table(x):
    """The claims as a table."""
    lines = ["| the paper says | figure | the rerun gives | verdict |", "|---|---|---|---|"]
    root = "../examples/paper/results"
    lines += [
        f"| {said} | {f'[figure]({root}/{name}.png)' if name else ''} | {number} | {verdict} |"
        for said, name, number, verdict in claims(x)
    ]
    return "\n".join(lines)


def readings_table(x):
    """How much each metric moves under other readings of the text."""
    lines = ["| reading | options | CKCE | JKCE | ECE |", "|---|---|--:|--:|--:|"]
    lines += [
        f"| {r['reading']} | {'`' + r['options'] + '`' if r['options'] else 'the default'} | "
        + " | ".join(percent(r[f"{metric}_cv"]) for metric in ("ckce", "jkce", "ece"))
        + " |"
        for r in x.readings
    ]
    return "\n".join(lines)


def models_table(x):
    """Table 1 with the names of the data sets."""
    return table1.markdown([row | {"data": DATA.get(row["data"], row["data"])} for row in x.table])


def approximation_table(x):
    """Relative error, and time as a multiple of the exact value's, of some sizes."""
    sets = list(dict.fromkeys(row["data"] for row in x.approximation))
    found = by(x.approximation, "data", "method", "variant", "size")
    lines = ["| estimator | " + " | ".join(sets) + " |", "|---|" + "--:|" * len(sets)]
    exact = {data: next(r for r in x.approximation if r["data"] == data) for data in sets}
    lines.append(
        "| n, m | " + " | ".join(f"{exact[s]['n']:.0f}, {exact[s]['m']:.0f}" for s in sets) + " |"
    )
    lines.append(
        "| exact, seconds | " + " | ".join(f"{exact[s]['seconds']:.2f}" for s in sets) + " |"
    )
    shown = [("fourier", v, d) for v in ("gaussian", "orthogonal", "sobol") for d in (100, 1000)]
    shown += [("cholesky", v, rank) for v in ("greedy", "random") for rank in (50, 200, 1000)]
    shown += [("sampled Z", "", 1)]
    for method, variant, size in shown:
        rows = [found[(data, method, variant, size)] for data in sets]
        name = f"{method}, {variant}, {'D' if method == 'fourier' else 'rank'} = {size}"
        cells = [
            f"{max(r['rmse'], 1e-14):.0e}"
            + ("" if method == "sampled Z" else f" ({r['seconds'] / r_exact['seconds']:.2g})")
            for r, r_exact in zip(rows, exact.values(), strict=True)
        ]
        lines.append(f"| {method if method == 'sampled Z' else name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


BLOCKS = {
    "claims": claims_table,
    "readings": readings_table,
    "table 1": models_table,
    "approximation": approximation_table,
}


def render(text, folder):
    """The page with the tables between its markers written anew."""
    x = Numbers(Path(folder))
    for name, table in BLOCKS.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"the page must hold the markers {start.strip()} and {end}")
        block = start + table(x).rstrip("\n") + "\n" + end
        text = pattern.sub(lambda _, block=block: block, text)
    return text


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(), RESULTS))
