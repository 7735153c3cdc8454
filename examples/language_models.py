"""The tables of docs/language_models.md: from logs of a language model to an answer.

python examples/language_models.py --lm-eval out/model --tokens tokens_top20.npz --words words.npz

Each option is one part: a folder of samples_*.jsonl of lm-evaluation-harness; an npz file with top_logprobs, top_ids,
target_id and doc_id; an npz file with the labels and probabilities of next words.
"""

import argparse

import ckce


def table(header, rows):
    """A table of Markdown."""
    print("|", " | ".join(header), "|")
    print("|---" + "|--:" * (len(header) - 1) + "|")
    for row in rows:
        print("|", " | ".join(map(str, row)), "|")
    print()


def interval(estimate):
    """The interval of a debiased value."""
    low, high = estimate.interval()
    return f"{max(low, 0.0):.4f} to {max(high, 0.0):.4f}"


def is_it_calibrated(log):
    """Every task, and all together."""
    rows = []
    for task, part in [*log.split().items(), ("all tasks", log)]:
        e = ckce.evaluate(**part.arguments(), test=True)
        off = ckce.miscalibration(**part.arguments())
        points = (
            f"{off.root:.0f} ({off.root_low:.0f} to {off.root_high:.0f})" if off.low > 0 else ""
        )
        figures = (e.accuracy, e.mean_confidence, e.ece_top_label.value, e.ckce.debiased)
        said = [f"{figure:.4f}" for figure in figures]
        rows.append([task, len(part), *said, interval(e.ckce), f"{e.test.p_value:.3f}", points])
    header = ["task", "n", "accuracy", "confidence", "ECE", "debiased", "95 % interval", "p-value"]
    table([*header, "off by, in points"], rows)


def by_rank(title, estimate):
    """The ranks that are to blame."""
    rows = [(b.label, f"{b.share:.0%}", f"{b.mean_residual:+.4f}") for b in estimate.attribution()]
    table([title, "share of CKCE", "how often it was right, minus its probability"], rows)


def has_lengths(file):
    """Whether the choices of a log are continuations, which have lengths to divide by."""
    try:
        ckce.read_log(file, loglikelihood="chars")
    except ValueError:
        return False
    return True


def which_is_better(log):
    """Two readings of the log-likelihoods, compared as two models are."""
    files = [file for file in log.files if has_lengths(file)]
    logs = {kind: ckce.read_log(files, loglikelihood=kind) for kind in ("raw", "chars")}
    joined = ckce.join_logs(logs)
    print(joined.sentence)
    print(ckce.compare(**joined.arguments()))
    print()


def tokens(path):
    """Top-k arrays of next tokens, by document and as if tokens were independent."""
    log = ckce.read_log(path)
    rows = []
    for k in (1, 5, 20):
        options = {"y_true": log.y_true, "y_prob": log.y_prob, "reduction": ckce.TopK(k)}
        for groups in (None, log.groups):
            e = ckce.estimate(**options, groups=groups)
            by = "tokens" if groups is None else f"{e.n_groups} documents"
            rows.append([f"TopK({k})", by, f"{e.debiased:.4f}", f"{e.se:.4f}", interval(e)])
    table(["reduction", "intervals by", "debiased", "standard error", "95 % interval"], rows)
    by_rank("`TopK(5)`", ckce.estimate(**log.arguments() | {"reduction": ckce.TopK(5)}))
    print(ckce.evaluate(**log.arguments()))
    print()


def words(path):
    """Full predictions of next words, all classes and the largest."""
    y, q = ckce.scan(path).read()
    rows = []
    for reduction in (None, ckce.TopK(20), ckce.TopK(5), "top_label"):
        e = ckce.estimate(y, q, reduction=reduction)
        name = "all words" if reduction is None else f"`{reduction}`"
        ratio = f"{e.debiased / e.floor:.2f}"
        rows.append([name, e.method, f"{e.debiased:.5f}", f"{e.floor:.5f}", ratio, interval(e)])
    header = ["reading", "method", "debiased", "floor", "debiased / floor", "95 % interval"]
    table(header, rows)


def main():
    """Print the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lm-eval", metavar="FOLDER")
    parser.add_argument("--tokens", metavar="NPZ")
    parser.add_argument("--words", metavar="NPZ")
    args = parser.parse_args()
    if args.lm_eval is not None:
        log = ckce.read_log(args.lm_eval)
        is_it_calibrated(log)
        parts = {task: ckce.estimate(**part.arguments()) for task, part in log.split().items()}
        task = max(parts, key=lambda task: parts[task].debiased)
        by_rank(f"`{task}`", parts[task])
        which_is_better(log)
    if args.tokens is not None:
        tokens(args.tokens)
    if args.words is not None:
        words(args.words)


if __name__ == "__main__":
    main()
