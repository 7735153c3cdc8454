"""Study: CKCE as a term of the training loss, beside what everybody does.

    python studies/training.py --tables FOLDER   runs what is missing, appends to training.jsonl
    python studies/training.py --write           writes TRAINING.md, the tables of docs/training.md, the plots

A network of two hidden layers of 128 units learns by Adam (learning rate 0.003, batches of 128, 400 steps), 10
seeds, each with its own split into training, validation and test rows. Cross entropy is trained once; the best of
its epochs (early stopping) and the temperature are chosen by the NLL of the validation rows. The weight of a
calibration term is one of 0.01, 0.1, 1, 10, 100, 1000 for all of them: that with the smallest mean validation NLL at
the last epoch of the first two seeds. MMCE and ECE-KDE are our own short versions; docs/training.md says what they were
checked against.

FOLDER holds the tables adult, dry_bean, online_shoppers_intention, heart_disease_uci and wdbc, see the names in
`TABLES`; digits comes with scikit-learn. Needs pandas, scikit-learn, torch, matplotlib.
"""

import argparse
import json
import math
import time
from functools import partial
from pathlib import Path

import numpy as np

import ckce

HERE = Path(__file__).parent
RESULTS = HERE / "training.jsonl"
OUT = HERE / "TRAINING.md"
DOCS = HERE.parent / "docs" / "training.md"
PLOTS = HERE / "plots"
SEEDS, TUNED = 10, 2  # all, and those that the weight is chosen with
WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
STEPS, BATCH, WIDTH, RATE = 400, 128, 128, 0.003
MOST = {"train": 4000, "valid": 1500, "test": 4000}
TERMS = ("MMCE", "MMCE_w", "ECE-KDE", "ECE-KDE_b", "CKCE")
VARIANTS = {
    "CKCE": (True, True),  # the default
    "debiased, whole gradient": (True, False),
    "raw, detached": (False, True),
    "raw, whole gradient": (False, False),
}


# Data.


def _csv(folder, name, **options):
    import pandas as pd

    return pd.read_csv(folder / name, skipinitialspace=True, **options)


def adult(folder):
    import pandas as pd

    parts = [
        _csv(folder, "adult.data.gz", header=None),
        _csv(folder, "adult.test.gz", header=None, skiprows=1),
    ]
    frame = pd.concat(parts, ignore_index=True)
    return frame.iloc[:, :-1], frame.iloc[:, -1].str.startswith(">50K").astype(int)


def dry_bean(folder):
    frame = _csv(folder, "dry_bean_dataset.csv.gz")
    return frame.drop(columns="Class"), frame["Class"]


def shoppers(folder):
    frame = _csv(folder, "online_shoppers_intention.csv.gz")
    return frame.drop(columns="Revenue"), frame["Revenue"].astype(int)


def heart(folder):
    frame = _csv(folder, "heart_disease_uci.csv.gz")
    return frame.drop(columns=[c for c in ("num", "id", "dataset") if c in frame]), frame["num"]


def wdbc(folder):
    frame = _csv(folder, "wdbc.data.gz", header=None)
    return frame.iloc[:, 2:], frame.iloc[:, 1]


def digits(folder):
    import pandas as pd
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return pd.DataFrame(x), pd.Series(y)


TABLES = {
    "Adult": adult,
    "Dry Bean": dry_bean,
    "Online Shoppers": shoppers,
    "Heart Disease": heart,
    "WDBC": wdbc,
    "Digits": digits,
}


def load(name, folder):
    """Numbers (missing ones as their mean, categories as indicators) and labels 0..m-1."""
    import pandas as pd

    frame, target = TABLES[name](folder)
    frame = frame.copy()
    frame.columns = [str(c) for c in frame.columns]
    numeric = frame.select_dtypes("number")
    x = [numeric.fillna(numeric.mean()).to_numpy(float)]
    rest = frame.drop(columns=numeric.columns)
    if rest.shape[1]:
        x.append(pd.get_dummies(rest.astype(str)).to_numpy(float))
    return np.hstack(x), pd.factorize(target, sort=True)[0]


def split(x, y, seed):
    """Training, validation and test rows, standardised by the training rows."""
    order = np.random.default_rng(seed).permutation(len(y))
    n = len(y)
    ends = [int(0.6 * n), int(0.8 * n)]
    rows = dict(zip(MOST, np.split(order, ends), strict=True))
    rows = {part: rows[part][: MOST[part]] for part in rows}
    mean = x[rows["train"]].mean(axis=0)
    scale = x[rows["train"]].std(axis=0) + 1e-6
    return {
        part: (np.clip((x[i] - mean) / scale, -10, 10).astype(np.float32), y[i])
        for part, i in rows.items()
    }


# The terms of others.


def mmce(logits, target, weighted=False):
    """Kumar, Sarawagi and Jain (2018): the root of the kernel mean of (correct - confidence).

    Weighted, right and wrong rows have a mean each; 0 if there are none of one kind.
    """
    import torch

    confidence, predicted = torch.softmax(logits, dim=1).max(dim=1)
    right = predicted == target
    gap = (right.to(confidence.dtype) - confidence) / len(right)
    if weighted:
        many = right.sum()
        gap = gap * len(right) / torch.where(right, many, len(right) - many)
        gap = gap * ((many > 0) & (many < len(right)))
    kernel = torch.exp(-(confidence[:, None] - confidence[None, :]).abs() / 0.4)
    return (gap @ kernel @ gap).clamp(min=1e-12).sqrt()


def _log_dirichlet(probs, bandwidth):
    """log k(q_j; q_i), Dirichlet(q_i / h + 1) at q_j, without own pairs: (j, i)."""
    import torch

    concentration = probs / bandwidth + 1.0
    norm = torch.lgamma(concentration.sum(dim=1)) - torch.lgamma(concentration).sum(dim=1)
    pairs = torch.log(probs.clamp(min=1e-12)) @ (concentration - 1.0).T + norm
    return pairs.masked_fill(torch.eye(len(probs), dtype=torch.bool), -math.inf)


class KernelDensity:
    """Popordanoska, Sayer and Blaschko (2022): mean |E[y | q] - q|_1 with Dirichlet kernels.

    The bandwidth is the one of 20 with the largest leave-one-out likelihood of the batch, every 50 steps. With
    `narrow` the logarithm of the bandwidth is taken off that, as the code of the authors does.
    """

    def __init__(self, narrow=False):
        self.steps, self.bandwidth, self.narrow = 0, 0.1, narrow

    def __call__(self, logits, target):
        import torch

        probs = torch.softmax(logits.double(), dim=1)
        if self.steps % 50 == 0:
            with torch.no_grad():
                fits = {
                    h: torch.logsumexp(_log_dirichlet(probs, h), dim=1).mean().item()
                    - self.narrow * math.log(h)
                    for h in (*np.logspace(-5, -1, 15), *np.linspace(0.2, 1.0, 5))
                }
            self.bandwidth = max(fits, key=fits.get)
        self.steps += 1
        shares = torch.softmax(_log_dirichlet(probs, self.bandwidth), dim=1)
        truth = torch.nn.functional.one_hot(target, probs.shape[1]).to(probs.dtype)
        return (shares @ truth - probs).abs().sum(dim=1).mean()


def term_of(name):
    from ckce.integrations.torch import CKCELoss

    if name in ("MMCE", "MMCE_w"):
        return partial(mmce, weighted=name == "MMCE_w")
    if name in ("ECE-KDE", "ECE-KDE_b"):
        return KernelDensity(narrow=name == "ECE-KDE_b")
    debias, detach = VARIANTS[name]
    return CKCELoss(debias=debias, detach_kernel=detach)


# Training.


def nll(logits, y):
    top = logits.max(axis=1, keepdims=True)
    log_probs = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    return float(-log_probs[np.arange(len(y)), y].mean())


def temperature(logits, y):
    """1 / T with the smallest NLL, by golden section over log T."""
    low, high, share = -3.0, 3.0, (math.sqrt(5) - 1) / 2
    for _ in range(40):
        a, b = high - share * (high - low), low + share * (high - low)
        if nll(logits * math.exp(-a), y) < nll(logits * math.exp(-b), y):
            high = b
        else:
            low = a
    return math.exp(-(low + high) / 2)


def train(parts, m, seed, term=None, weight=0.0):
    """Logits of validation and test rows at the last epoch and at the best one."""
    import torch

    torch.manual_seed(seed)
    x, y = (torch.from_numpy(a) for a in parts["train"])
    model = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], WIDTH),
        torch.nn.ReLU(),
        torch.nn.Linear(WIDTH, WIDTH),
        torch.nn.ReLU(),
        torch.nn.Linear(WIDTH, m),
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    loss_of = None if term is None else term_of(term)

    def predict():
        with torch.no_grad():
            return {
                part: model(torch.from_numpy(parts[part][0])).double().numpy()
                for part in ("valid", "test")
            }

    best, best_nll, step = None, math.inf, 0
    while step < STEPS:
        for rows in torch.randperm(len(x)).split(BATCH):
            logits = model(x[rows])
            loss = torch.nn.functional.cross_entropy(logits, y[rows])
            if loss_of is not None:
                loss = loss + weight * loss_of(logits, y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            step += 1
        now = predict()
        if nll(now["valid"], parts["valid"][1]) < best_nll:
            best, best_nll = now, nll(now["valid"], parts["valid"][1])
    return now, best


def scores(logits, y):
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    q = shifted / shifted.sum(axis=1, keepdims=True)
    return {
        "accuracy": ckce.accuracy(y, q),
        "nll": nll(logits, y),
        "ece": ckce.ece(y, q),
        "ckce": ckce.estimate(y, q, bandwidth="default").debiased,
        "spread": float(np.linalg.norm(q.std(axis=0))),
    }


def record(name, parts, seed, term, weight):
    m = int(max(part[1].max() for part in parts.values())) + 1
    started = time.process_time()
    last, best = train(parts, m, seed, term, weight)
    valid, test = parts["valid"][1], parts["test"][1]
    found = {
        "data": name,
        "seed": seed,
        "term": term,
        "weight": weight,
        "valid_nll": nll(last["valid"], valid),
        "seconds": round(time.process_time() - started, 2),
    }
    for word, logits in (("last", last), ("stopped", best)):
        scale = temperature(logits["valid"], valid)
        found[word] = scores(logits["test"], test)
        found[f"{word}, scaled"] = scores(scale * logits["test"], test)
    return found


def rounded(value):
    """Six digits of every number."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    return float(f"{value:.6g}") if isinstance(value, float) else value


def plan(known, names):
    """(data, seed, term, weight) in the order in which they are run; weights once they are tuned."""
    for name in names:
        for seed in range(SEEDS):
            yield name, seed, None, 0.0
        for term in TERMS:
            for seed in range(TUNED):
                for weight in WEIGHTS:
                    yield name, seed, term, weight
            for seed in range(TUNED, SEEDS):
                yield name, seed, term, chosen(known, name, term)
        if name == "Dry Bean":
            for variant in VARIANTS:
                for seed in range(TUNED):
                    for weight in WEIGHTS:
                        yield name, seed, variant, weight


def chosen(known, name, term):
    """The weight with the smallest validation NLL at the last epoch, over the first seeds."""
    means = {
        weight: np.mean([known[(name, seed, term, weight)]["valid_nll"] for seed in range(TUNED)])
        for weight in WEIGHTS
    }
    return min(means, key=means.get)


def read():
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    records = [json.loads(line) for line in lines]
    return {(r["data"], r["seed"], r["term"], r["weight"]): r for r in records}


def run(folder, names):
    import torch

    torch.set_num_threads(1)
    known = read()
    loaded = {}
    for key in plan(known, names):
        if key in known:
            continue
        name, seed, term, weight = key
        if name not in loaded:
            loaded = {name: load(name, folder)}
        known[key] = record(name, split(*loaded[name], seed), seed, term, weight)
        with RESULTS.open("a") as file:
            file.write(json.dumps(rounded(known[key])) + "\n")
        print(*key, f"{known[key]['seconds']:.1f} s", flush=True)


# What is written.

ROWS = {
    "cross entropy": (None, "last"),
    "+ early stopping": (None, "stopped"),
    "+ temperature": (None, "last, scaled"),
    "+ both": (None, "stopped, scaled"),
    **{term: (term, "last") for term in TERMS},
    **{f"{term} + both": (term, "stopped, scaled") for term in TERMS},
}
BASE = "+ both"


def of_seeds(known, name, row, score):
    term, when = ROWS[row]
    weight = 0.0 if term is None else chosen(known, name, term)
    return np.array([known[(name, seed, term, weight)][when][score] for seed in range(SEEDS)])


def interval(differences):
    """Mean and half of its 95 % interval by Student's t with 9 degrees of freedom."""
    half = 2.262 * differences.std(ddof=1) / math.sqrt(len(differences))
    return f"{differences.mean():+.4f} ± {half:.4f}"


def tables(known):
    lines = []
    for name in TABLES:
        weights = ", ".join(f"{term} {chosen(known, name, term):g}" for term in TERMS)
        lines += [
            f"### {name}",
            "",
            f"Weights: {weights}.",
            "",
            "| | accuracy | NLL | ECE | debiased CKCE | NLL minus that of early stopping and temperature |"
            " debiased CKCE minus that |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in ROWS:
            values = {s: of_seeds(known, name, row, s) for s in ("accuracy", "nll", "ece", "ckce")}
            base = {s: of_seeds(known, name, BASE, s) for s in ("nll", "ckce")}
            means = [f"{values['accuracy'].mean():.3f}", f"{values['nll'].mean():.3f}"]
            means += [f"{values['ece'].mean():.3f}", f"{values['ckce'].mean():.5f}"]
            paired = ["-", "-"]
            if row != BASE:
                paired = [interval(values[s] - base[s]) for s in ("nll", "ckce")]
            lines.append(f"| {row} | {' | '.join(means + paired)} |")
        lines.append("")
    return "\n".join(lines)


def variant_table(known):
    lines = [
        "| weight | debiased, detached | " + " | ".join(list(VARIANTS)[1:]) + " |",
        "|---|" + "---|" * len(VARIANTS),
    ]
    for weight in WEIGHTS:
        cells = []
        for variant in VARIANTS:
            runs = [known[("Dry Bean", s, variant, weight)]["last"] for s in range(TUNED)]
            accuracy, spread = (np.mean([r[k] for r in runs]) for k in ("accuracy", "spread"))
            cells.append(f"{accuracy:.3f} ({spread:.2f})")
        lines.append(f"| {weight:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def picture(known):
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    colours = dict(zip(TERMS, ("#009e73", "#56b4e9", "#d55e00", "#e69f00", "#0072b2"), strict=True))
    figure, axes = plt.subplots(2, len(TABLES), figsize=(13, 4.6), layout="constrained")
    for column, name in enumerate(TABLES):
        for row, (score, label) in enumerate((("accuracy", "test accuracy"), ("nll", "test NLL"))):
            ax = axes[row, column]
            for when, style, words in (
                ("last", "--", "cross entropy"),
                ("stopped", ":", "early stopping"),
            ):
                level = np.mean([known[(name, s, None, 0.0)][when][score] for s in range(TUNED)])
                ax.axhline(level, color="0.45", ls=style, lw=1, label=words)
            for term in TERMS:
                curve = [
                    np.mean([known[(name, s, term, w)]["last"][score] for s in range(TUNED)])
                    for w in WEIGHTS
                ]
                ax.plot(WEIGHTS, curve, "o-", color=colours[term], ms=3.5, lw=1.3, label=term)
            ax.set_xscale("log")
            ax.spines[["top", "right"]].set_visible(False)
            ax.tick_params(labelsize=7)
            if row == 0:
                ax.set_title(name, fontsize=9)
            else:
                ax.set_xlabel("weight", fontsize=8)
            if column == 0:
                ax.set_ylabel(label, fontsize=8)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, fontsize=8, frameon=False)
    PLOTS.mkdir(exist_ok=True)
    figure.savefig(PLOTS / "training_weights.png", dpi=150)


def replace_between(text, word, new):
    start, end = f"<!-- {word} -->", f"<!-- end of {word} -->"
    before, rest = text.split(start)
    return f"{before}{start}\n{new}\n{end}{rest.split(end)[1]}"


def write():
    known = read()
    picture(known)
    minutes = sum(r["seconds"] for r in known.values()) / 60
    text = (
        "# Training with a calibration term\n\n"
        "Written by `python studies/training.py --write`; the set-up is the docstring of that file. Means over "
        f"{SEEDS} seeds of the test rows; {len(known)} networks, {minutes:.0f} minutes of CPU. Differences are paired by "
        "seed, with 95 % intervals of Student's t.\n\n"
        f"{tables(known).replace('### ', '## ')}\n"
        "## Why debiased and detached\n\nTest accuracy on Dry Bean, in brackets the spread of the predictions, "
        f"means over {TUNED} seeds.\n\n{variant_table(known)}\n"
    )
    OUT.write_text(text)
    docs = DOCS.read_text()
    docs = replace_between(docs, "tables", tables(known))
    docs = replace_between(docs, "variants", variant_table(known))
    DOCS.write_text(docs)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tables", type=Path, help="folder of the tables")
    parser.add_argument("--data", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.tables is not None:
        run(arguments.tables, arguments.data)
    if arguments.write:
        write()


if __name__ == "__main__":
    main()
