"""Writes golden states of this version beside those of older ones, which are never rewritten."""

import json
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "support"))

from shared import label_kernel, landmarks, sample  # noqa: E402

from ckce import CKCEAccumulator, Fourier, Landmarks, TopK  # noqa: E402


def states():
    small = {"method": Fourier(5), "n_bins": 5}
    y, q = sample(1300, 3)
    yield "v1_fourier.ckce", CKCEAccumulator(3, bandwidth=0.5, **small), (y, q, None)
    yield "v1_held_back.ckce", CKCEAccumulator(3, **small), (y[:50], q[:50], None)
    acc = CKCEAccumulator(3, bandwidth=0.5, label_kernel=label_kernel(3), shard_id="a", **small)
    yield "v1_label_kernel.ckce", acc, (y[:1100], q[:1100], np.arange(1100) % 3)
    acc = CKCEAccumulator(3, kernel="linear", labels=["a", "b", "c"], debias=False, n_bins=5)
    yield "v1_linear.ckce", acc, (np.array(["a", "b", "c"])[y], q, None)
    y, q = sample(1030, 2)
    acc = CKCEAccumulator(2, bandwidth=0.5, method=Fourier(20), n_bins=5)
    yield "v1_two_classes.ckce", acc, (y, q, None)
    y, q = sample(1030, 33)
    acc = CKCEAccumulator(
        33, bandwidth=0.7, method=Fourier(5, sampler="sobol"), regularization=0.1, n_bins=5
    )
    yield "v1_many_classes.ckce", acc, (y, q, None)
    y, q = sample(1030, 4)
    acc = CKCEAccumulator(4, bandwidth=0.7, method=Landmarks(landmarks(4)), n_bins=5)
    yield "v2_landmarks.ckce", acc, (y, q, np.arange(1030) % 3)
    y, q = sample(1030, 3)
    acc = CKCEAccumulator(3, bandwidth=0.5, input="log_probs", **small)
    yield "v3_log_probs.ckce", acc, (y, np.log(q), None)
    y, q = sample(1560, 2)
    w = np.arange(1560) % 3  # 1040 rows count: a block, and a few that wait
    yield "v3_moments.ckce", CKCEAccumulator(2, bandwidth=0.5, n_bins=5), (y, q, w)
    acc = CKCEAccumulator(2, bandwidth=0.001, kernel="gaussian", n_bins=5, regularization=0.1)
    yield "v3_points.ckce", acc, (y, q, w)
    y, q = sample(1030, 7)
    acc = CKCEAccumulator(7, reduction=TopK(2), bandwidth=0.5, **small)
    yield "v4_top_k.ckce", acc, (y, q, None)
    acc = CKCEAccumulator(7, reduction="top_label", bandwidth=0.2, n_bins=5)
    yield "v4_top_label.ckce", acc, (y, q, None)


if __name__ == "__main__":
    table = FOLDER / "states.json"
    expected = json.loads(table.read_text()) if table.exists() else {}
    for name, acc, (y, q, w) in states():
        if (FOLDER / name).exists():
            continue
        acc.update(y, q, w)
        acc.save(FOLDER / name)
        expected[name] = acc.evaluate().to_dict()
    table.write_text(json.dumps(expected, indent=1) + "\n")
