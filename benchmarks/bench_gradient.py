"""Gradients beside a literal implementation in torch, and beside a forward call.

    python benchmarks/bench_gradient.py           prints the tables
    python benchmarks/bench_gradient.py --write   and puts them into RESULTS.md

One thread each; contenders take turns; CPU time of the process, the best of the rounds. A busy machine makes all
of them slower, and the ratios hardly.
"""

import argparse
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import ckce

RESULTS = Path(__file__).parent / "RESULTS.md"
START, END = "<!-- gradients -->", "<!-- end of gradients -->"
GAMMA = 0.7


def data(n, m):
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(n, m))
    probs = np.exp(logits)
    probs /= probs.sum(axis=1, keepdims=True)
    y = np.minimum((probs.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), m - 1)
    return logits, probs, y


def best(contenders, rounds):
    """Milliseconds of CPU time of each, the best of the rounds."""
    found = dict.fromkeys(contenders, np.inf)
    for _ in range(rounds):
        for name, call in contenders.items():
            started = time.process_time()
            call()
            found[name] = min(found[name], 1000 * (time.process_time() - started))
    return found


def literal(logits, y, debias, detach):
    """Tr(W B W K) as it stands in the paper; autograd does the rest."""
    import torch

    q = torch.softmax(logits, dim=1)
    n, m = q.shape
    points = q.detach() if detach else q
    k = points @ points.T + torch.exp(-(torch.cdist(points, points) ** 2) / (2 * GAMMA**2))
    w = torch.linalg.inv(k + n**0.75 * torch.eye(n, dtype=q.dtype))
    psi = torch.eye(m, dtype=q.dtype)[y]
    b = q @ q.T + psi @ psi.T - q @ psi.T - psi @ q.T
    if debias:
        b = b - torch.diag(torch.diag(b))
    return torch.trace(w @ b @ w @ k)


def step(loss, logits, y):
    logits.grad = None
    loss(logits, y).backward()


def steps(quick=False):
    import torch

    from ckce.integrations.torch import ckce_loss

    torch.set_num_threads(1)
    for n, m, rounds in ((256, 10, 3),) if quick else ((256, 10, 40), (4096, 100, 1)):
        numbers, _, y = data(n, m)
        logits, target = torch.from_numpy(numbers).requires_grad_(), torch.from_numpy(y)
        for words, debias, detach in (
            ("debiased, detached (the default)", True, True),
            ("debiased, whole", True, False),
            ("raw, whole", False, False),
        ):
            if n > 2000 and debias and not detach:
                continue  # refused
            settings = {"debias": debias, "detach_kernel": detach, "bandwidth": GAMMA}
            found = best(
                {
                    "ckce": lambda s=settings, z=logits, t=target: step(
                        lambda a, b: ckce_loss(a, b, **s), z, t
                    ),
                    "literal": lambda d=debias, e=detach, z=logits, t=target: step(
                        lambda a, b: literal(a, b, d, e), z, t
                    ),
                },
                rounds,
            )
            ratio = found["literal"] / found["ckce"]
            target_ratio = 5 if n == 256 else 10
            yield (
                f"n = {n}, m = {m}, {words}",
                f"{found['ckce']:.2f} ms",
                f"{found['literal']:.1f} ms",
                f"{ratio:.1f}x",
                f">= {target_ratio}x",
                "met" if ratio >= target_ratio else "**missed**",
            )


def forwards(quick=False):
    """Gradients beside the forward call that gives the same value."""
    cases = [
        ("exact", 256, 10, 30, 2.5),
        ("exact", 2000, 10, 3, 2.5),
        ("exact", 4096, 100, 2, 2.5),
        ("exact", 20_000, 10, 1, 2.5),
        ("fourier", 20_000, 10, 5, 3.0),
        ("fourier", 20_000, 100, 3, 3.0),
        (ckce.Landmarks(200), 20_000, 10, 3, 3.0),
    ]
    for method, n, m, rounds, most in cases[:1] if quick else cases:
        _, q, y = data(n, m)
        settings = {"method": method, "bandwidth": GAMMA, "n_threads": 1}
        calls = {
            "ckce": lambda s=settings, a=y, b=q: ckce.ckce(a, b, **s),
            "raw": lambda s=settings, a=y, b=q: ckce.gradient(a, b, debias=False, **s),
        }
        if method != "exact":
            calls["estimate"] = lambda s=settings, a=y, b=q: ckce.estimate(a, b, **s)
            calls["debiased"] = lambda s=settings, a=y, b=q: ckce.gradient(a, b, **s)
        found = best(calls, rounds)
        word = method if isinstance(method, str) else "landmarks (200)"
        pairs = [("raw", "ckce")] + ([("debiased", "estimate")] if method != "exact" else [])
        for gradient, forward in pairs:
            ratio = found[gradient] / found[forward]
            yield (
                f"{word} n = {n}, m = {m}, {gradient}",
                f"{found[gradient]:.1f} ms",
                f"{found[forward]:.1f} ms (`{forward}`)",
                f"{ratio:.2f}x",
                f"<= {most:g}x",
                "met" if ratio <= most else "**missed**",
            )


def table(header, rows):
    lines = [" | ".join(header), " | ".join("---" for _ in header), *map(" | ".join, rows)]
    return "\n".join(f"| {line} |" for line in lines)


def section(quick=False):
    """The part of RESULTS.md; without torch the steps are left out."""
    text = (
        "## Gradients\n\nOne thread each, CPU time, the best of interleaved rounds (`python "
        "benchmarks/bench_gradient.py --write` writes this section alone). A step is forward and backward from "
        "logits. The literal implementation holds (n, n) matrices; the core does not above n = 2000.\n\n"
    )
    if find_spec("torch"):
        head = ("step", "ckce", "literal torch", "ratio", "target", "")
        text += table(head, steps(quick)) + "\n\n"
    text += table(("gradient", "time", "forward", "ratio", "target", ""), forwards(quick))
    return f"{START}\n{text}\n{END}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    text = section()
    print(text)
    if arguments.write:
        whole = RESULTS.read_text()
        before = whole.split(START)[0].rstrip()
        after = whole.split(END)[1].lstrip() if END in whole else ""
        RESULTS.write_text(f"{before}\n\n{text}{after}")


if __name__ == "__main__":
    main()
