"""RESULTS.md: from measurements to tables."""

import math
from dataclasses import dataclass

import workloads as w
from compare import WIDE, verdict


@dataclass(frozen=True)
class Target:
    """One promise of the table of targets and what became of it."""

    workload: str
    what: str
    promised: str
    measured: str
    met: bool | None  # None: not measured

    @property
    def verdict(self):
        return {True: "met", False: "**missed**", None: "not measured"}[self.met]


def table(head, rows, align=None):
    """A Markdown table; `align` has one of l, r per column."""
    marks = {"l": ":--", "r": "--:"}
    align = align or "l" + "r" * (len(head) - 1)
    lines = [head, [marks[a] for a in align], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def seconds(value):
    if value != value:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def _bytes(value):
    return "-" if value is None else f"{value / 1e6:.1f} MB"


def _relative(a, b):
    return abs(a - b) / abs(b) if b else abs(a - b)


def _number(value, form):
    return form.format(value) if value == value else "-"


class Results:
    """Timings {contender: Timing} and memory {contender: dict} of each workload that was run."""

    def __init__(self, quick):
        self.quick = quick
        self.timings, self.memory, self.iterations = {}, {}, {}
        self.peaks = {}  # {"float64": GFLOP/s, "float32": ...}
        self.small, self.imports, self.machine = {}, None, []
        self.compared = []  # rows of compare.compare
        self.gradients = ""  # the section that bench_gradient writes
        self.installation = ""  # and that of install

    def best(self, workload, contender):
        timing = self.timings.get(workload, {}).get(contender)
        return timing.best if timing else float("nan")

    def value(self, workload, contender):
        timing = self.timings.get(workload, {}).get(contender)
        return timing.value if timing else float("nan")

    def ratio(self, workload, slow, fast):
        return self.best(workload, slow) / self.best(workload, fast)

    def megabytes(self, workload, contender):
        found = self.memory.get(workload, {}).get(contender)
        return found["rss"] / 1e6 if found else float("nan")

    def per_iteration(self, contender):
        count = self.iterations.get(contender, 0)
        return self.best("large", contender) / count if count else float("nan")


def _title(key, quick):
    """The workload's name with the size that was run."""
    n, m = w.WORKLOADS[key].size(quick)
    kind = w.WORKLOADS[key].title.split(" n=")[0]
    return f"{kind} n={n:,} m={m}" + (" D=100" if kind == "fourier" else "")


def targets(r):
    """Every row of the table of targets."""
    found = []

    def at_least(key, what, measured, bound, unit="x", form="{:.2f}"):
        known = measured == measured
        found.append(
            Target(
                _title(key, r.quick),
                what,
                f">= {bound:g}{unit}",
                _number(measured, form + unit),
                measured >= bound if known else None,
            )
        )

    def at_most(key, what, measured, bound, unit, form="{:.1f}"):
        known = measured == measured
        found.append(
            Target(
                _title(key, r.quick),
                what,
                f"<= {bound:g}{unit}",
                _number(measured, form + unit),
                measured <= bound if known else None,
            )
        )

    for key, double, mixed, memory in (
        ("fourier_wide", 2.2, 4.0, 150),
        ("fourier_small", 5.0, 9.0, 30),
        ("fourier_long", 6.0, 10.0, 30),
    ):
        at_least(key, "float64 against NumPy", r.ratio(key, w.PLAIN, w.OURS), double)
        at_least(key, "mixed against NumPy float64", r.ratio(key, w.PLAIN, w.MIXED), mixed)
        at_most(key, "extra memory, float64", r.megabytes(key, w.OURS), memory, " MB")
        at_most(key, "extra memory, mixed", r.megabytes(key, w.MIXED), memory, " MB")
        error = _relative(r.value(key, w.MIXED), r.value(key, w.PLAIN))
        at_most(key, "relative error, mixed", error, 1e-5, "", "{:.1e}")

    key = "cholesky"
    at_least(key, "against NumPy fourier", r.ratio(key, w.PLAIN, w.CHOLESKY), 30)
    at_most(key, "extra memory", r.megabytes(key, w.CHOLESKY), 400, " MB")
    first = _relative(r.value(key, w.FIRST_CHOLESKY), r.value(key, w.FIRST_EXACT))
    at_most(key, "relative error to exact, first 20,000 rows", first, 1e-8, "", "{:.1e}")
    full = _relative(r.value(key, w.CHOLESKY), r.value(key, w.CHOLESKY_40))
    at_most(key, "relative error to rank 40, all rows", full, 1e-8, "", "{:.1e}")

    # NumPy expands squared distances, and 1e-16 is not small beside a bandwidth squared of 1e-8.
    for key, faster, more, error in (("line", 1.0, 2.5, 1e-10), ("skewed", 5.0, 8.0, 1e-7)):
        at_least(key, "against cholesky", r.ratio(key, w.CHOLESKY, w.OURS), faster)
        at_most(key, "estimate against ckce", r.ratio(key, w.ESTIMATE, w.OURS), more, "x")
        part = _relative(r.value(key, w.PART), r.value(key, w.PLAIN_PART))
        at_most(key, "relative error to NumPy exact, part", part, error, "", "{:.1e}")

    at_least("top_k", "float64 against NumPy", r.ratio("top_k", w.FAST, w.OURS), 10)
    at_most("top_k", "extra memory, float64", r.megabytes("top_k", w.OURS), 200, " MB")

    at_least("exact", "against the literal formula", r.ratio("exact", w.LITERAL, w.OURS), 80)
    at_least("exact", "against NumPy + SciPy cho_factor", r.ratio("exact", w.PLAIN, w.OURS), 12)
    at_most("exact", "extra memory", r.megabytes("exact", w.OURS), 50, " MB")
    at_least("jkce", "against blocked NumPy", r.ratio("jkce", w.PLAIN, w.OURS), 20)
    at_most("jkce", "extra memory", r.megabytes("jkce", w.OURS), 50, " MB")
    growth = r.per_iteration(w.OURS) / r.per_iteration(w.SMALLER)
    at_most("large", "time per iteration against that at n / 5", growth, 27, "x")
    at_most("large", "extra memory", r.megabytes("large", w.OURS), 100, " MB")

    for key, ours in OURS.items():
        one = w.CHOLESKY_ONE if key == "cholesky" else w.ONE
        at_least(key, "two threads against one", r.ratio(key, one, ours), 1.75)
    at_least("fourier_wide", "against PyTorch", r.ratio("fourier_wide", w.TORCH, w.OURS), 1.6)
    at_least("fourier_small", "against PyTorch", r.ratio("fourier_small", w.TORCH, w.OURS), 2)
    n, m = w.WORKLOADS["fourier_wide"].size(r.quick)
    rate = w.fourier_flops(n, m) / 1e9 / r.best("fourier_wide", w.OURS)
    share = 100.0 * rate / r.peaks.get("float64", math.nan)
    at_least("fourier_wide", "share of the SYRK rate", share, 75, " %", "{:.0f}")
    return found


# Which contender of a workload is ours.
OURS = {key: w.CHOLESKY if key == "cholesky" else w.OURS for key in w.WORKLOADS}


# Why a target was missed where it was, by the start of its row.
WHY = {
    "two classes n=1,000,000 m=2, estimate": "2.4 in the run before, on another EPYC; best rounds vary",
    "top 20 n=1,000,000 m=1000, float64": "NumPy is 2.8 times as fast here as in the run before, on another EPYC, and our call twice; 10.8 there",
    "exact JKCE n=20,000 m=10, against blocked NumPy": "the best and the median round of NumPy differ "
    "by a third; exp and the tile products are all that is left of our call",
    "fourier n=10,000 m=10 D=100, two threads": "a call of 6 ms, of which checks and the solve are serial",
    "cholesky n=1,000,000 m=2, two threads": "page faults of the factor (185 MB)",
    "two classes n=1,000,000 m=2, two threads": "best rounds vary: 1.89 outside of this process",
    "two classes, skewed n=100,000 m=2, two threads": "checks, sorting and the certificate are serial, 1 ms "
    "of 8; 1.67 outside of this process",
    "exact n=5,000 m=10, two threads": "no single part of the profile is serial; 1.83 outside of this "
    "process, which also holds the threads of NumPy and PyTorch",
    "exact 5,000 x 10: v3 / v4": "units of 512 bits: AVX-512 does twice the work of AVX2 in a cycle; 1.11 in the run before, on another EPYC",
    "exact JKCE 20,000 x 10: v3 / v4": "units of 512 bits; 1.05 in the run before",
    "median / call": "the rest of the call gains more from this CPU than the median; 0.19 and 0.21 in the runs before",
    "estimate / ckce, exact 2,000 x 10": "debias term and floor take a factor of up to 3 n / 10 columns "
    "and two more products with K; the value takes two products in all",
    "exact 5,000 x 10, v2": "SSE has no fused multiply-add and two numbers in a register; 0.45 in the run before",
    "exact JKCE 20,000 x 10, v2": "SSE has no fused multiply-add and two numbers in a register",
    "ckce 100 x 3, v3": "the core takes a third of the call; checks in Python and the median the rest",
    "exact 50,000 x 1000": "two products with K and a factor of 2000 columns are left: half of the five "
    "products of before",
}


def _reasons(missed):
    """One line for each row that was missed and whose reason is known."""
    lines = [
        f"- {row}: {reason}."
        for row in missed
        for start, reason in WHY.items()
        if row.startswith(start)
    ]
    return "\n".join(["Why targets were missed:", "", *lines, ""]) if lines else ""


def _targets(r):
    found = targets(r)
    rows = [(t.workload, t.what, t.promised, t.measured, t.verdict) for t in found]
    if r.small:
        ours, theirs = r.small["ckce.ckce(y, q)"], r.small["sklearn.metrics.log_loss(y, q)"]
        verdict = "met" if ours <= theirs else "**missed**"
        promised = f"<= {seconds(theirs)} (log_loss)"
        rows.append(("ckce.ckce n=100 m=3", "time of a call", promised, seconds(ours), verdict))
    if r.imports:
        verdict = "met" if r.imports[1] < 30 else "**missed**"
        measured = f"{r.imports[1]:.1f} ms"
        rows.append(("import ckce", "beyond import numpy", "< 30 ms", measured, verdict))
    missed = [f"{t.workload}, {t.what}" for t in found if t.met is False]
    told = table(("workload", "what", "target", "measured", ""), rows, "llrrl")
    return "\n".join([told, _reasons(missed)])


def _workload(r, key):
    timings = r.timings[key]
    baseline = w.PLAIN if w.PLAIN in timings else w.OURS
    head = ["", "best", "median", "rounds"]
    if baseline == w.PLAIN:
        head.append("NumPy / this")
    if key != "large":
        head.append("relative difference")
    head.append("extra memory (anonymous)")
    true = r.value(key, w.PLAIN)
    if key == "cholesky":
        true = r.value(key, w.CHOLESKY_40)
    if key in ("line", "skewed"):
        true = r.value(key, w.OURS)
    rows = []
    for name, timing in timings.items():
        if timing.error:
            rows.append([name, timing.error] + [""] * (len(head) - 2))
            continue
        row = [name, seconds(timing.best), seconds(timing.median), len(timing.seconds)]
        if baseline == w.PLAIN:
            row.append(f"{timings[w.PLAIN].best / timing.best:.2f}x")
        if key != "large":
            others = (w.FIRST_CHOLESKY, w.FIRST_EXACT, w.PART, w.PLAIN_PART)
            same = name not in others and not (key == "cholesky" and name == w.PLAIN)
            row.append(f"{_relative(timing.value, true):.1e}" if same else "")
        memory = r.memory.get(key, {}).get(name)
        row.append(f"{_bytes(memory['rss'])} ({_bytes(memory['anonymous'])})" if memory else "")
        rows.append(row)
    return f"### {_title(key, r.quick)}\n\n" + table(head, rows)


def _roofline(r):
    rows = []
    for key in ("fourier_wide", "fourier_small"):  # two classes do without most of the operations
        if key not in r.timings:
            continue
        n, m = w.WORKLOADS[key].size(r.quick)
        flops = w.fourier_flops(n, m) / 1e9
        for name, precision in ((w.OURS, "float64"), (w.MIXED, "float32")):
            time = r.best(key, name)
            if time != time:
                continue
            rows.append(
                (
                    f"{_title(key, r.quick)}, {name}",
                    f"{flops:.1f}",
                    f"{flops / time:.0f}",
                    f"{100 * flops / time / r.peaks[precision]:.0f} %",
                )
            )
    head = ("", "GFLOP", "GFLOP/s", "share of the SYRK rate")
    return table(head, rows)


def _large(r):
    n, few = w.WORKLOADS["large"].size(r.quick)[0], w.WORKLOADS["large"].size(r.quick)[0] // 5
    rows = []
    for size, call, product in ((few, w.SMALLER, w.PRODUCT_SMALLER), (n, w.OURS, w.PRODUCT)):
        pairs = size * (size + 1) / 2
        each, one = r.per_iteration(call), r.best("large", product)
        rows.append(
            (
                f"n={size:,}",
                seconds(r.best("large", call)),
                r.iterations.get(call, "-"),
                f"{seconds(each)} ({1e9 * each / pairs:.2f} ns per pair)",
                f"{seconds(one)} ({1e9 * one / pairs:.2f} ns per pair)",
            )
        )
    head = ("", "CKCE", "iterations", "time per iteration", "one product with K (exact JKCE)")
    return table(head, rows)


def render(r, command, elapsed, data_name):
    """The whole of RESULTS.md; without plots if `data_name` is empty."""
    parts = ["# Benchmark results\n"]
    if r.quick:
        parts.append(
            "**`--quick`: small sizes, a smoke test. The targets are for the full sizes.**\n"
        )
    parts.append(
        f"Written by `{command}` in {elapsed:.0f} s. Contenders of a workload take turns; *best* is "
        "what the ratios use. `NumPy` is `numpy_plain.py`, all cores; `NumPy, our identities` is "
        "`numpy_fast.py`, which also uses this project's identities and Python threads; `literal "
        "formula` is `ckce.reference`. All get the same bandwidth and frequencies. The relative "
        "difference is to the value of `NumPy` (float64, the same input). Extra memory is the growth "
        "of the peak resident set in a process of its own.\n"
    )
    parts.append(table(("machine", ""), r.machine, "ll"))
    parts.append("## Targets\n")
    parts.append(_targets(r))
    parts.append("## Workloads\n")
    for key in r.timings:
        parts.append(_workload(r, key))
        if key == "cholesky":
            parts.append(
                "`NumPy` is its Fourier estimate with D = 100. The relative difference is to rank "
                "40; *part* is the first 20,000 rows.\n"
            )
        if key in ("line", "skewed"):
            parts.append(
                "The exact kernel, bandwidth 0.5, or the median of skewed predictions, Beta(0.05, "
                "6.2). *part* is the first 5,000 rows; the relative difference is to `ckce`.\n"
            )
        if key == "large":
            parts.append(_large(r))
            parts.append(
                "The literal formula would need 60 GB at n = 50,000, the Gram matrix alone 20 GB. "
                "Time per iteration is the whole call, preconditioner included, over its "
                "iterations. A pair is one of the n (n + 1) / 2 entries of K.\n"
            )
    if any(key.startswith("fourier") for key in r.timings):
        parts.append("## Roofline\n")
        parts.append(
            "Rate of the symmetric rank update of SciPy's BLAS (8192 x 1200) in the same run, all cores: "
            f"{r.peaks['float64']:.0f} GFLOP/s in float64, {r.peaks['float32']:.0f} GFLOP/s in "
            "float32. Counted are the operations that no version avoids, n d (d + 1) + 2 n m D with "
            "d = m + 2 D; sines, cosines, the labels, checks and the solve take time besides. A share "
            "above 100 % says that SciPy's BLAS is slow on this CPU.\n"
        )
        parts.append(_roofline(r))
    if r.small:
        parts.append("## Small calls (n = 100, m = 3) and import\n")
        rows = [(f"`{name}`", seconds(value)) for name, value in r.small.items()]
        if r.imports:
            rows.append(("`import numpy`", f"{r.imports[0]:.1f} ms"))
            rows.append(("`import ckce` and its first function after it", f"{r.imports[1]:.1f} ms"))
        parts.append(table(("", "best"), rows))
    if r.compared:
        parts += _compared(r.compared)
    if r.installation:
        parts.append(r.installation)
    if r.gradients:
        parts.append(r.gradients)
    if data_name:
        parts.append("## Plots\n")
        parts.append(
            f"Error against time for every approximation, on {data_name}; root mean square over seeds, "
            "all threads:\n\n![error against time](plots/error_time.png)\n"
        )
        parts.append(
            "Time against n, m = 10, all threads:\n\n![time against n](plots/time_n.png)\n"
        )
    return "\n".join(parts)


def _reaches(rows):
    """What the lesser instruction sets, the median, estimates and small calls should cost."""
    old = {(level, name): before for level, name, before, _, _ in rows}
    new = {(level, name): after for level, name, _, after, _ in rows}
    exact, jkce, fourier = "exact 5,000 x 10", "exact JKCE 20,000 x 10", "fourier 10,000 x 10"
    short, many, small = "exact 2,000 x 10", "exact 5,000 x 100", "ckce 100 x 3"
    wanted = [
        (f"{exact}: v3 / v4", ("v3", exact), ("v4", exact), 1.2),
        (f"{jkce}: v3 / v4", ("v3", jkce), ("v4", jkce), 1.3),
        ("median / call, fourier 10,000 x 10", ("v4", "median bandwidth 10,000 x 10"), None, 0.2),
        (f"{short} / {exact}", ("v4", short), ("v4", exact), 0.4),
        (f"estimate / ckce, {short}", ("v4", "estimate 2,000 x 10, exact"), ("v4", short), 3.0),
        (f"estimate / ckce, {exact}", ("v4", "estimate 5,000 x 10, exact"), ("v4", exact), 3.0),
        (f"estimate / ckce, {many}", ("v4", "estimate 5,000 x 100, exact"), ("v4", many), 3.0),
        (f"estimate / ckce, {fourier}", ("v4", f"estimate {fourier[8:]}, fourier"), None, 2.2),
    ]
    lines = []
    for what, above, below, bound in wanted:
        below = below or ("v4", fourier)
        if above in new and below in new:
            lines.append((what, bound, new[above] / new[below]))
    for what, key, bound in (
        (f"{exact}, v2: this / old", ("v2", exact), 0.5),
        (f"{jkce}, v2: this / old", ("v2", jkce), 0.5),
        (f"{small}, v3: this / old", ("v3", small), 0.5),
        (f"{WIDE}: this / old", ("v4", WIDE), 0.45),
    ):
        if key in new:
            lines.append((what, bound, new[key] / old[key]))
    rows = [
        (what, f"<= {bound:g}", f"{found:.2f}", "met" if found <= bound else "**missed**")
        for what, bound, found in lines
    ]
    missed = [what for what, bound, found in lines if found > bound]
    told = table(("what", "target", "measured", ""), rows, "lrrl")
    return "\n".join([told, _reasons(missed)])


def _compared(rows):
    """An older installation and this one."""
    parts = ["## This version against an older one\n"]
    parts.append(
        "Both take turns. CPU time of one thread, the best of several rounds; of all threads, in one "
        f"round, for `{WIDE}`. *v3* and *v2* are forced instruction sets on the same CPU.\n"
    )
    parts.append(_reaches(rows))
    lines = [
        (
            name,
            level,
            seconds(old),
            seconds(new),
            f"{old / new:.2f}x",
            verdict(old, new),
            "same" if same else "other",
        )
        for level, name, old, new, same in rows
    ]
    head = ("workload", "level", "old", "this", "old / this", "", "bits")
    parts.append(table(head, lines, "llrrrll"))
    best = {(level, name): new for level, name, _, new, _ in rows}
    lines = [
        (name, *(f"{best[level, name] / best['v4', name]:.2f}x" for level in ("v3", "v2")))
        for level, name, *_ in rows
        if level == "v4" and all((other, name) in best for other in ("v3", "v2"))
    ]
    if lines:
        parts.append("Time at lesser instruction sets over that at v4, this version:\n")
        parts.append(table(("workload", "v3 / v4", "v2 / v4"), lines))
    return parts
