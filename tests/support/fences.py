"""Run the fenced blocks of Markdown pages, and write what they print.

``python tests/support/fences.py --write docs/quickstart.md`` replaces the text block that follows a Python
block by what the Python block prints.

A page runs from top to bottom in one namespace and in a folder of its own. It may take the names of
`prelude` for granted. ``<!-- setup: ... -->`` before a block runs first; nobody sees it on the page.
"""

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import logs
import numpy as np

FENCE = re.compile(
    r"(?:<!-- setup:(?P<setup>.*?)-->\n+)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
FOREIGN = {"dask", "pyarrow", "torch", "torchmetrics"}  # a test of its own for each
ENGINES = {"pyspark", "ray"}  # recipes of clusters that the tests do not have


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    setup: str
    line: int
    span: tuple[int, int]

    @property
    def needs(self) -> set[str]:
        """The libraries that a Python block needs."""
        found = {"pyarrow"} if ".parquet" in self.text else set()
        for node in ast.walk(ast.parse(f"{self.setup}\n{self.text}")):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                found |= set(node.module.split("."))
        return found


def blocks(text):
    """All fenced blocks of a page."""
    return [
        Block(
            found["language"],
            found["text"],
            (found["setup"] or "").strip(),
            text[: found.start("text")].count("\n"),
            found.span("text"),
        )
        for found in FENCE.finditer(text)
    ]


def make(n=400, m=3, seed=0):
    """Labels, and predictions that are a little too sure."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(m), size=n)
    labels = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, : m - 1]).sum(axis=1)
    return labels, truth**1.5 / (truth**1.5).sum(axis=1, keepdims=True)


def prelude():
    """The names that every page may use."""
    import ckce

    y, q = make()
    milder = q**0.8 / (q**0.8).sum(axis=1, keepdims=True)
    sharper = q**1.3 / (q**1.3).sum(axis=1, keepdims=True)
    names = {"ckce": ckce, "np": np, "make": make}
    names |= {"y": y, "q": q, "y_true": y, "y_prob": q, "q1": q, "q2": milder, "q3": sharper}
    names |= {"q_old": q, "q_new": milder, "q_dark": q, "q_bright": milder}
    names |= {"batches": [make(1000, 10, seed) for seed in range(3)]}
    names |= {"weeks": [make(seed=seed) for seed in range(3)], "y_first": y, "q_first": q}
    return names


def execute(block, names):
    """Run a Python block; what it printed."""
    import matplotlib as mpl

    mpl.use("Agg")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module="sklearn|matplotlib|dask|torch")
        exec(compile(block.setup, f"setup of line {block.line}", "exec"), names)
        exec(compile("\n" * block.line + block.text, "page", "exec"), names)
    return out.getvalue()


def command(block):
    """Run the lines of a shell block that call ckce on files that the page or the test made."""
    for line in block.text.splitlines():
        words = line.partition(" #")[0]
        if words.startswith("ckce ") and not re.search(r"[|$]|\.parquet|\.ckce", words):
            subprocess.run(
                words.replace("ckce", f'"{sys.executable}" -m ckce', 1),
                shell=True,
                check=True,
                capture_output=True,
            )


def foreign(text):
    """Python blocks that need one of the foreign libraries."""
    found = [block for block in blocks(text) if block.language == "python"]
    return [block for block in found if block.needs & FOREIGN and not block.needs & ENGINES]


def run(text):
    """Run a page in a folder of its own; pairs of a text block and what the block before it printed."""
    found = blocks(text)
    names = prelude()
    printed = []
    for position, block in enumerate(found):
        if block.language == "bash":
            command(block)
        if block.language != "python" or block.needs & (FOREIGN | ENGINES):
            continue
        output = execute(block, names)
        after = found[position + 1 : position + 2]
        if output and after and after[0].language == "text":
            printed.append((after[0], output))
    return printed


def write_csv(path, labels, columns):
    """A table with a column for each class of each model, or one column for two classes."""
    names = ["label"]
    for prefix, probs in columns.items():
        names += (
            [prefix] if probs.shape[1] == 1 else [f"{prefix}{j}" for j in range(probs.shape[1])]
        )
    rows = np.column_stack([labels, *columns.values()])
    lines = [",".join([str(int(row[0])), *map(repr, map(float, row[1:]))]) for row in rows]
    Path(path).write_text("\n".join([",".join(names), *lines]) + "\n")


def write_logs():
    """Logs of two language models, and tokens of prompts."""
    for model in ("model_a", "model_b"):
        Path("out", model).mkdir(parents=True)
        for task, seed in (("sums", 1), ("words", 2)):
            content = logs.as_lines(logs.lm_eval_lines(80, seed=seed))
            Path("out", model, f"samples_{task}_2026-01-01T00-00-00.jsonl").write_bytes(content)
    texts = zip(*logs.made_up_tokens(), strict=True)
    Path("prompts.jsonl").write_bytes(logs.as_lines([logs.vllm_line(a, b, 5) for a, b in texts]))


@contextlib.contextmanager
def folder():
    """A folder with the files that the pages name."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as made:
        os.chdir(made)
        try:
            labels, probs = make()
            for name in ("preds", "a"):
                np.savez(f"{name}.npz", labels=labels, probs=probs)
            np.savez("b.npz", labels=labels, probs=make(seed=1)[1])
            np.save("y.npy", labels)
            np.savez("answers.npz", labels=labels, probs=probs)
            np.save("text.npy", np.arange(len(labels)) // 10)
            write_logs()
            write_csv("both.csv", labels, {"p_resnet_": probs, "p_vgg_": probs})
            write_csv("binary.csv", labels % 2, {"score_a": probs[:, :1], "score_b": probs[:, 1:2]})
            yield
        finally:
            os.chdir(home)


def main(paths):
    """Write what the blocks print into the pages."""
    for path in map(Path, paths):
        text = path.read_text()
        path = path.resolve()
        with folder():
            printed = run(text)
        for block, output in reversed(printed):
            text = text[: block.span[0]] + output + text[block.span[1] :]
        path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[2:] if sys.argv[1:2] == ["--write"] else sys.exit(__doc__))
