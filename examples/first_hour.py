"""The first hour with ckce: four models of scikit-learn, a baseline, names of classes, files, a notebook.

Run ``python examples/first_hour.py [folder]``. It needs scikit-learn, and nbclient and ipykernel for the
notebook; files are written to the folder, or to a temporary one.
"""

import subprocess
import sys
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import ckce

MODELS = {
    "logistic": LogisticRegression(max_iter=5000),
    "bayes": GaussianNB(),
    "forest": RandomForestClassifier(100, random_state=0),
    "neighbours": KNeighborsClassifier(15),
    "baseline": DummyClassifier(strategy="prior"),  # always the frequencies of the classes
}
DIGITS = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
CELLS = [
    "%matplotlib inline\nimport ckce\nimport numpy as np\nfile = np.load('digits.npz')",
    "models = {name: file[name] for name in file.files if name != 'labels'}\n"
    "comparison = ckce.compare(file['labels'], models)\ncomparison",
    "comparison.plot();",
    "ckce.reliability_diagram(file['labels'], models).plot();",
    "import matplotlib.pyplot as plt\nplt.plot([1, 2]);",
]


def headline(words: str) -> None:
    """Start a part."""
    print(f"\n## {words}\n", flush=True)


def predictions(labels: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Labels and predictions of rows that the models have not seen, and the names of the columns."""
    pictures, digits = load_digits(return_X_y=True)
    seen, unseen, of_seen, of_unseen = train_test_split(
        pictures, labels, test_size=0.5, random_state=0, stratify=digits
    )
    fitted = {name: model.fit(seen, of_seen) for name, model in MODELS.items()}
    probs = {name: model.predict_proba(unseen) for name, model in fitted.items()}
    return of_unseen, probs, fitted["logistic"].classes_


def command(folder: Path, *words: str) -> None:
    """Run a command of the command line, and show what it prints."""
    print(f"$ ckce {' '.join(words)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "ckce", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    print(done.stdout + done.stderr, flush=True)


def notebook(folder: Path) -> None:
    """Execute the cells, and count the pictures."""
    import nbclient
    import nbformat

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(book, timeout=300, resources=resources).execute()
    shown = [output for cell in book.cells for output in cell.outputs]
    pictures = sum("image/png" in output.get("data", {}) for output in shown)
    tables = sum("text/html" in output.get("data", {}) for output in shown)
    complaints = sum(output.get("name") == "stderr" for output in shown)
    print(f"{pictures} pictures, {tables} table, {complaints} complaints")


def main(folder: Path) -> None:
    """All of it."""
    _, numbers = load_digits(return_X_y=True)
    y_true, probs, _ = predictions(numbers)

    headline("Which model is calibrated best?")
    comparison = ckce.compare(y_true, probs, test=True)
    print(comparison)

    headline("Would other settings say the same?")
    print(comparison.sensitivity(bandwidths=[0.5, 1.0, 2.0], regularizations=[0.3, 1.0, 3.0]))

    headline("One model: is the forest calibrated?")
    print(ckce.evaluate(y_true, probs["forest"], test=True))
    print(f"\nckce.ece, as other libraries compute it: {ckce.ece(y_true, probs['forest']):.4f}")

    headline("The baseline alone")
    print(ckce.evaluate(y_true, probs["baseline"], test=True))

    headline("Labels that are words")
    names, of_words, columns = predictions(DIGITS[numbers])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        guessed = ckce.estimate(names, of_words["forest"])
        print(f"without labels=: {len(caught)} warning\n  {caught[0].message}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told = ckce.estimate(names, of_words["forest"], labels=columns)
        print(f"with labels=model.classes_: {len(caught)} warnings")
    print(f"debiased CKCE: {guessed.debiased:.6f} and {told.debiased:.6f}")

    headline("The same from files")
    np.savez(folder / "digits.npz", labels=y_true, **probs)
    np.savez(folder / "words.npz", labels=names, **of_words)
    command(folder, "score", "digits.npz", "--probs", "forest", "--quiet")
    command(folder, "compare", "digits.npz", "--quiet")
    command(folder, "compare", "words.npz", "--quiet")
    command(folder, "report", "digits.npz", "--text", "--no-sensitivity")

    headline("A notebook")
    if all(find_spec(package) for package in ("nbclient", "nbformat", "ipykernel")):
        notebook(folder)
    else:
        print("not run: pip install nbclient ipykernel")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
