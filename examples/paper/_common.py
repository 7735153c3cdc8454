"""What the scripts share: command line, prediction files, tables as CSV, figures as PNG and SVG."""

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE / "results"

# Okabe and Ito's colours, told apart by colour-blind readers too.
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, BLACK = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
COLOURS = (BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "0.45"
COLUMN, PAGE = 3.4, 7.0  # inches
STYLE = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "savefig.dpi": 200,
}


def parser(description):
    """Options that every script has."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--quick", action="store_true", help="small sizes, in seconds: a smoke test")
    made.add_argument("--seed", type=int, default=0, help="seed of everything random (0)")
    made.add_argument(
        "--out",
        type=Path,
        help="folder of the results (results/ beside the scripts; with --quick a temporary one)",
    )
    return made


def data_parser(description):
    """Options of the scripts that read predictions."""
    made = parser(description)
    made.add_argument(
        "--data", type=Path, help="folder with the files <data set>_<model>.npz of predictions"
    )
    made.add_argument("--sets", nargs="+", help="names of the data sets (all in the folder)")
    return made


def parse(made, argv=None):
    """The arguments, with the folder of the results made."""
    options = made.parse_args(argv)
    if options.out is None:
        options.out = Path(tempfile.gettempdir()) / "ckce_paper" if options.quick else RESULTS
    options.out.mkdir(parents=True, exist_ok=True)
    if getattr(options, "data", None) is not None and not options.data.is_dir():
        made.error(f"--data must be a folder, got {options.data}")
    return options


def progress(items, text, total=None):
    """The items, under a progress bar if tqdm is there."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return items
    return tqdm(items, desc=text, total=total)


def write_csv(path, rows):
    """Rows (dicts with the same keys) as a table; ten digits."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {
                    key: f"{value:.10g}" if isinstance(value, float) else value
                    for key, value in row.items()
                }
            )


def read_csv(path):
    """Rows of a table, numbers as float."""

    def number(text):
        try:
            return float(text)
        except ValueError:
            return text

    with open(path, newline="") as file:
        return [{key: number(text) for key, text in row.items()} for row in csv.DictReader(file)]


def column(rows, key):
    """One column as an array."""
    return np.array([row[key] for row in rows])


def save(figure, folder, name):
    """The figure as PNG, the same bytes for the same numbers."""
    import matplotlib.pyplot as plt

    figure.draw_without_rendering()
    figure.savefig(folder / f"{name}.png", metadata={"Software": None})
    plt.close(figure)


def figure(width, height, *shape, **options):
    """A figure in the common style: (figure, axes)."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    mpl.rcParams.update(STYLE)
    options.setdefault("layout", "constrained")
    return plt.subplots(*shape, figsize=(width, height), **options)


def prediction_files(folder, sets=None, *, series=False):
    """{data set: {model: path}} of the files <data set>_<model>[_brightness].npz in a folder.

    A file holds `probs` (n, m), whose rows sum to 1, and `labels` (n,), integers from 0. A file of
    a series (`_brightness`) holds `probs` (levels, n, m) and `levels`, the change in percent.
    """
    found = {}
    for path in sorted(folder.glob("*_*.npz")):
        name = path.stem
        if name.endswith("_brightness") != series:
            continue
        data, _, model = name.removesuffix("_brightness").partition("_")
        found.setdefault(data, {})[model] = path
    missing = [] if series or sets is None else [name for name in sets if name not in found]
    if missing or not (found or series):
        raise FileNotFoundError(
            f"{folder} must hold files <data set>_<model>.npz"
            + (f" of {missing[0]}" if missing else "")
            + f", got the data sets {sorted(found)}"
        )
    return {data: models for data, models in found.items() if sets is None or data in sets}


def load(path):
    """Arrays of a prediction file, by name."""
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in ("probs", "labels", "levels") if key in file.files}
