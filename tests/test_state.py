"""State files: for ever readable, never misread, never half written."""

import json
import os
import pickle
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from shared import label_kernel, landmarks, sample

import ckce
from ckce import CKCEAccumulator
from ckce._stream import state_file as _state

pytestmark = pytest.mark.filterwarnings("ignore:landmarks leave out")
GOLDEN = Path(__file__).parent / "golden"
EXPECTED = json.loads((GOLDEN / "states.json").read_text())


def small(n=30, **options):
    own = {"bandwidth": 0.5, "method": ckce.Fourier(3), "n_bins": 4}
    acc = CKCEAccumulator(3, **{**own, **options})
    acc.update(*sample(n, 3))
    return acc


def on_landmarks(n=30, **options):
    acc = CKCEAccumulator(
        3, bandwidth=0.5, method=ckce.Landmarks(landmarks(3)), n_bins=4, **options
    )
    acc.update(*sample(n, 3))
    return acc


def on_cells(n=30, **options):
    acc = CKCEAccumulator(2, **{"bandwidth": 0.01, "n_bins": 4, **options})
    acc.update(*sample(n, 2))
    return acc


def of_top_label(n=30, **options):
    acc = CKCEAccumulator(5, reduction="top_label", **{"bandwidth": 0.01, "n_bins": 4, **options})
    acc.update(*sample(n, 5))
    return acc


def of_top_two(n=30, **options):
    own = {"bandwidth": 0.5, "method": ckce.Fourier(3), "n_bins": 4}
    acc = CKCEAccumulator(5, reduction=ckce.TopK(2), **{**own, **options})
    acc.update(*sample(n, 5))
    return acc


STATES = {
    "few rows": small,
    "rows held back": lambda: small(bandwidth="median"),
    "empty": lambda: CKCEAccumulator(3, bandwidth="median"),
    "default bandwidth": lambda: small(bandwidth="default"),
    "whole blocks": lambda: small(1024),
    "names and shards": lambda: small(labels=range(3), shard_id="part 1"),
    "label kernel": lambda: small(label_kernel=label_kernel(3)),
    "linear": lambda: small(kernel="linear", bandwidth="median", method="fourier"),
    "given frequencies": lambda: small(
        bandwidth="median", method=ckce.Fourier(frequencies=np.ones((2, 3)))
    ),
    "logits": lambda: small(0, input="logits"),
    "log-probabilities": lambda: small(0, input="log_probs"),
    "landmarks": on_landmarks,
    "landmarks, no rows": lambda: on_landmarks(0, kernel="laplace"),
    "cells": on_cells,
    "cells, no rows": lambda: on_cells(0),
    "cells, whole blocks": lambda: on_cells(2048),
    "cells of moments": lambda: on_cells(5000, bandwidth=0.5, kernel="gaussian"),
    "cells, rows held back": lambda: on_cells(bandwidth="median"),
    "cells, label kernel": lambda: on_cells(1500, label_kernel=label_kernel(2), shard_id="a"),
    "top label": lambda: of_top_label(1500),
    "top label, rows held back": lambda: of_top_label(bandwidth="median"),
    "top 2": lambda: of_top_two(1500, shard_id="a"),
    "top 2, rows held back": lambda: of_top_two(bandwidth="median"),
}


@pytest.mark.parametrize("name", STATES)
def test_round_trip(name, tmp_path):
    acc = STATES[name]()
    data = acc.to_bytes()
    acc.save(tmp_path / "state.ckce")
    assert (tmp_path / "state.ckce").read_bytes() == data
    twins = [
        CKCEAccumulator.from_bytes(data),
        CKCEAccumulator.from_bytes(bytearray(data)),
        CKCEAccumulator.load(tmp_path / "state.ckce"),
        CKCEAccumulator.load(str(tmp_path / "state.ckce")),
        pickle.loads(pickle.dumps(acc)),
    ]
    y, q = sample(1500, acc.n_classes, seed=1)
    if name in ("logits", "log-probabilities"):
        q = np.log(q)
    acc.update(y, q)
    for twin in twins:
        assert twin.to_bytes() == data
        twin.update(y, q)
        assert twin.to_bytes() == acc.to_bytes()
        assert twin.evaluate() == acc.evaluate()


@pytest.mark.parametrize("name", EXPECTED)
def test_golden_files_load_for_ever(name):
    acc = CKCEAccumulator.load(GOLDEN / name)
    e = acc.evaluate()
    numbers = e.to_dict()
    for written, value in EXPECTED[name].items():
        key = {"ece_signature": "ece_top_label_signature"}.get(written, written)
        if isinstance(value, float):
            assert numbers[key] == pytest.approx(value, rel=1e-12), key
        else:
            assert numbers[key] == value, key
    before = acc.n_samples
    y, q = sample(2000, acc.n_classes)
    names = np.array(acc.config["labels"] or range(acc.n_classes))
    acc.update(names[y], np.log(q) if "log_probs" in name else q)
    assert acc.n_samples == before + 2000
    assert acc.compute() > 0


def test_all_golden_files_are_tested():
    assert {path.name for path in GOLDEN.glob("*.ckce")} == set(EXPECTED)


def test_the_format_is_as_documented():
    # Read with nothing but the words of docs/state_files.md.
    import hashlib

    acc = small(1030)
    data = acc.to_bytes()
    assert data[:8] == bytes([0x89, 0x43, 0x4B, 0x43, 0x45, 0x0D, 0x0A, 0x1A])
    version, header_bytes, total = (int.from_bytes(data[i : i + 8], "little") for i in (8, 16, 24))
    assert (version, total) == (1, len(data))
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    start = 32 + header_bytes
    assert start % 64 == 0
    header = json.loads(data[32:start])
    arrays = {}
    for entry in header["arrays"]:
        assert entry["offset"] % 64 == 0
        count = int(np.prod(entry["shape"]))
        arrays[entry["name"]] = np.frombuffer(
            data, entry["dtype"], count, start + entry["offset"]
        ).reshape(entry["shape"])
    m, d, bins = 3, 9, 4
    sums = arrays["sums"]
    y, q = sample(1030, 3)
    y, q, tail = y[:1024], q[:1024], q[1024:]
    r = np.eye(3)[y] - q
    angles = q @ arrays["frequencies"].T / header["config"]["bandwidth"]
    phi = np.hstack([q, np.cos(angles) / np.sqrt(3), np.sin(angles) / np.sqrt(3)])
    norms, spreads = (r**2).sum(axis=1), 1 - (q**2).sum(axis=1)
    top = q.max(axis=1)
    right = (q.argmax(axis=1) == y).astype(float)
    bin_of = np.minimum((top * bins).astype(int), bins - 1)
    table = [np.bincount(bin_of, w, bins) for w in (np.ones(1024), top, right, np.ones(1024))]
    lower = [(j + i, j) for j in range(d) for i in range(d - j)]
    expected = np.concatenate(
        [
            [1024, 1024, (phi**2).sum(axis=1) @ norms, right.sum(), top.sum(), norms.sum()],
            [-np.log(q[np.arange(1024), y]).sum(), (q**2).sum()],
            r.sum(axis=0),
            np.bincount(y, minlength=m),
            *table,
            (r.T @ phi).T.ravel(),
            *(
                [matrix[at] for at in lower]
                for matrix in (phi.T @ phi, (phi.T * norms) @ phi, (phi.T * spreads) @ phi)
            ),
        ]
    )
    assert sums == pytest.approx(expected, rel=1e-11, abs=1e-12)
    assert np.array_equal(arrays["tail_probs"], tail)


def test_what_is_new_needs_a_newer_version():
    # What older readers cannot understand they refuse; everything else stays readable for them.
    versions = {"landmarks": 2, "landmarks, no rows": 2, "log-probabilities": 3}
    versions |= {name: 3 for name in STATES if "cells" in name}
    versions |= {name: 4 for name in STATES if "top" in name}
    for name, make in STATES.items():
        data = make().to_bytes()
        assert data[8] == versions.get(name, 1)
        assert (b"landmark" in data) == ("landmarks" in name)
        assert (b'"input"' in data) == (name == "log-probabilities")


def test_features_of_landmarks_are_as_documented():
    _, arrays = _state.decode(on_landmarks(1024).to_bytes(), "data")
    points, lower = arrays["landmarks"], arrays["landmark_factor"]
    _, q = sample(1024, 3)
    gram, columns = (ckce.reference.linear_gaussian(p, points, 0.5) for p in (points, q))
    assert lower @ lower.T == pytest.approx(gram, rel=1e-13)
    phi = np.linalg.solve(lower, columns.T).T
    r = len(points)
    triangle = np.concatenate([(phi.T @ phi)[j:, j] for j in range(r)])
    first = 8 + 2 * 3 + 4 * 4 + 3 * r
    assert arrays["sums"][first : first + len(triangle)] == pytest.approx(triangle, rel=1e-10)


def test_cells_are_as_documented():
    # Read with nothing but the words of docs/state_files.md.
    header, arrays = _state.decode(on_cells(2048, bandwidth=0.3).to_bytes(), "data")
    assert header["config"]["method"] == "exact"
    y, q = sample(2048, 2)
    p, r, norms = q[:, 1], y - q[:, 1], (y - q[:, 1]) ** 2
    sums, ids, points = (arrays[name] for name in ("sums", "cell_ids", "cell_points"))
    assert sums[:2].tolist() == [2048, 2048]
    linear = norms @ (p**2 + (1 - p) ** 2)
    assert sums[2:4] == pytest.approx([norms.sum(), linear], rel=1e-12)
    assert sums[4] == np.abs(q.sum(axis=1) - 1).max()
    width = float(np.floor(0.3 * 2.0**21) / 2.0**21)  # 20 significant bits of the bandwidth
    assert ids.tolist() == [0, 1, 2, 3]
    assert points.tolist() == [-1] * 4
    k = 18
    cells = arrays["cell_numbers"].reshape(4, 11 * k - 7)
    for cell, numbers in zip(ids, cells, strict=True):
        rows = np.floor(p / width) == cell
        t = 2 * (p[rows] / width - cell) - 1
        angles = np.outer(np.arange(4 * k - 3), np.arccos(np.clip(t, -1, 1)))
        chebyshev = np.cos(angles)
        spread = p * (1 - p)
        lengths = [
            (np.ones(2048), 4 * k - 3),
            (r, 3 * k - 2),
            (norms, 2 * k - 1),
            (spread, 2 * k - 1),
        ]
        expected = np.concatenate([chebyshev[:count] @ x[rows] for x, count in lengths])
        assert numbers == pytest.approx(expected, rel=1e-10, abs=1e-10 * rows.sum())
    header, arrays = _state.decode(on_cells(1024, bandwidth=1e-4).to_bytes(), "data")
    few = arrays["cell_points"] > 0
    assert few.any()
    points = arrays["cell_numbers"].reshape(-1, 3) if few.all() else None
    if points is not None:
        y, q = y[:1024], sample(1024, 2)[1]
        assert np.array_equal(np.sort(points[:, 0]), np.sort(np.unique(q[:, 1])))
        assert points[:, 1:].sum(axis=0).tolist() == np.bincount(sample(1024, 2)[0]).tolist()


@pytest.mark.parametrize("make", [small, on_landmarks, on_cells])
def test_every_truncation_is_refused(make):
    data = make(5).to_bytes()
    for length in range(len(data)):
        with pytest.raises(ValueError, match=r"^data is (truncated|not a ckce state: it is empty)"):
            CKCEAccumulator.from_bytes(data[:length])
    with pytest.raises(ValueError, match="data is damaged: it has"):
        CKCEAccumulator.from_bytes(data + b"\0")


@pytest.mark.parametrize("make", [small, on_landmarks, on_cells])
def test_a_thousand_flipped_bits_are_refused(make):
    data = make(5).to_bytes()
    rng = np.random.default_rng(0)
    prefix = range(8 * 32)
    anywhere = rng.choice(8 * len(data), 1000, replace=False)
    for bit in {*prefix, *anywhere.tolist()}:
        altered = bytearray(data)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(
            ValueError, match=r"^data (is damaged|is truncated|is not a ckce state|has format)"
        ):
            CKCEAccumulator.from_bytes(altered)


def test_foreign_and_future_files(tmp_path):
    path = tmp_path / "state"
    contents = {
        b"": "is not a ckce state: it is empty",
        b"PK\x03\x04" + bytes(100): "is not a ckce state: it starts with b'PK",
        pickle.dumps({"a": 1}): "is not a ckce state: it starts with",
        small().to_bytes().replace(b"\r\n", b"\n", 1): "is not a ckce state",
        b"\x89CK": "is truncated: 3 bytes are not even a header",
    }
    for data, words in contents.items():
        path.write_bytes(data)
        with pytest.raises(ValueError, match=f"^{path} {words}"):
            CKCEAccumulator.load(path)
    future = bytearray(small().to_bytes())
    future[8] = 5
    with pytest.raises(ValueError, match="has format version 5, this ckce reads versions up to 4"):
        CKCEAccumulator.from_bytes(future)
    with pytest.raises(FileNotFoundError):
        CKCEAccumulator.load(tmp_path / "missing")


def forged(change, make=small):
    """A state with a valid checksum that says something else."""
    data = make().to_bytes()
    header, arrays = _state.decode(data, "data")
    change(header, arrays)
    return b"".join(_state.encode(header, arrays, data[8]))


def set_array(name, change):
    def apply(header, arrays):
        array = arrays[name].copy()
        arrays[name] = change(array)

    return apply


def with_value(index, value):
    def change(array):
        array[index] = value
        return array

    return change


FORGERIES = {
    "kind": lambda header, arrays: header.update(kind="Other"),
    "no config": lambda header, arrays: header.pop("config"),
    "unknown field": lambda header, arrays: header["config"].update(extra=1),
    "classes": lambda header, arrays: header["config"].update(n_classes=10**9),
    "kernel": lambda header, arrays: header["config"].update(kernel="poly"),
    "input": lambda header, arrays: header["config"].update(input="scores"),
    "no input": lambda header, arrays: header["config"].pop("from_logits"),
    "inputs": lambda header, arrays: header["config"].update(input="probs"),
    "method": lambda header, arrays: header["config"].update(method="cholesky"),
    "bandwidth": lambda header, arrays: header["config"].update(bandwidth=-1.0),
    "source": lambda header, arrays: header["config"].update(bandwidth_source="guessed"),
    "bins": lambda header, arrays: header["config"].update(n_bins=10**12),
    "label": set_array("tail_labels", with_value(0, 3)),
    "negative label": set_array("tail_labels", with_value(0, -1)),
    "probability": set_array("tail_probs", with_value((0, 0), np.nan)),
    "weight": set_array("tail_weights", with_value(0, -1.0)),
    "rows": set_array("tail_labels", lambda array: array[1:]),
    "columns": set_array("tail_probs", lambda array: array[:, 1:]),
    "sums": set_array("sums", lambda array: array[1:]),
    "NaN": set_array("sums", with_value(5, np.nan)),
    "no frequencies": lambda header, arrays: arrays.pop("frequencies"),
    "frequencies": set_array("frequencies", lambda array: array[:, 1:]),
    "no sums": lambda header, arrays: arrays.pop("sums"),
    "no rows": lambda header, arrays: arrays.pop("tail_probs"),
    "label kernel": lambda header, arrays: header["config"].update(label_kernel="0123456789ab"),
    "label factor": lambda header, arrays: arrays.update(label_factor=np.eye(3)),
}


OF_LANDMARKS = {
    "no landmarks": lambda header, arrays: arrays.pop("landmarks"),
    "no factor": lambda header, arrays: arrays.pop("landmark_factor"),
    "none named": lambda header, arrays: header["config"].pop("landmarks"),
    "others named": lambda header, arrays: header["config"].update(landmarks="6(0123456789ab)"),
    "Fourier": lambda header, arrays: header["config"].update(method="fourier"),
    "linear": lambda header, arrays: header["config"].update(kernel="linear"),
    "linear both": lambda header, arrays: header["config"].update(kernel="linear", method="linear"),
    "no bandwidth": lambda header, arrays: header["config"].update(bandwidth=None),
    "another landmark": set_array("landmarks", lambda array: np.roll(array, 1, axis=0)),
    "fewer landmarks": set_array("landmarks", lambda array: array[1:]),
    "fewer classes": set_array("landmarks", lambda array: array[:, 1:]),
    "no number": set_array("landmarks", with_value((0, 0), np.nan)),
    "no prediction": set_array("landmarks", with_value((0, 0), 2.0)),
    "one dimension": set_array("landmarks", lambda array: array[0]),
    "smaller factor": set_array("landmark_factor", lambda array: array[1:, 1:]),
    "full factor": set_array("landmark_factor", with_value((0, 1), 0.1)),
    "negative factor": set_array("landmark_factor", with_value((1, 1), -0.1)),
    "zero factor": set_array("landmark_factor", lambda array: 0.0 * array),
    "singular factor": set_array("landmark_factor", with_value((1, 1), 0.0)),
    "nearly singular factor": set_array("landmark_factor", with_value((1, 1), 1e-9)),
    "NaN in the factor": set_array("landmark_factor", with_value((1, 0), np.nan)),
    "large factor": set_array("landmark_factor", with_value((1, 0), 1e9)),
}


def of_points():
    """Cells of one or two rows each, and rows that wait."""
    return on_cells(1030, bandwidth=1e-4)


def of_moments():
    return on_cells(2050, bandwidth=0.3)


CUT = set_array("cell_numbers", lambda array: array[:-1])
OF_CELLS = {
    "no cells": lambda header, arrays: arrays.pop("cell_ids"),
    "no points": lambda header, arrays: arrays.pop("cell_points"),
    "no numbers": lambda header, arrays: arrays.pop("cell_numbers"),
    "cells, no sums": lambda header, arrays: arrays.pop("sums"),
    "another order": set_array("cell_ids", lambda array: array[::-1]),
    "a cell twice": set_array("cell_ids", with_value(1, 0)),
    "negative cell": set_array("cell_ids", with_value(0, -1)),
    "cell outside": set_array("cell_ids", with_value(-1, 2**62)),
    "cells that are no integers": set_array("cell_ids", lambda array: array.astype(float)),
    "cells of two dimensions": set_array("cell_ids", lambda array: array[:, None]),
    "fewer points than cells": set_array("cell_points", lambda array: array[:1]),
    "fewer cells than points": set_array("cell_ids", lambda array: array[:-1]),
    "no point": set_array("cell_points", with_value(0, 0)),
    "minus two points": set_array("cell_points", with_value(0, -2)),
    "too many points": set_array("cell_points", with_value(0, 19)),
    "far too many points": set_array("cell_points", with_value(0, 2**62)),
    "cut": CUT,
    "too long": set_array("cell_numbers", lambda array: np.append(array, 0.0)),
    "NaN in a cell": set_array("cell_numbers", with_value(1, np.nan)),
    "infinite weight": set_array("cell_numbers", with_value(1, np.inf)),
    "negative weight": set_array("cell_numbers", with_value(1, -1.0)),
    "no weight": set_array("cell_numbers", with_value(slice(1, 3), 0.0)),
    "other weight": set_array("cell_numbers", with_value(1, 7.0)),
    "above 1": set_array("cell_numbers", with_value(0, 1.5)),
    "in another cell": set_array("cell_numbers", with_value(0, 0.9)),
    "other norms": set_array("sums", with_value(2, 3.0)),
    "off the simplex": set_array("sums", with_value(4, np.inf)),
    "three classes": lambda header, arrays: header["config"].update(n_classes=3),
    "cells of laplace": lambda header, arrays: header["config"].update(kernel="laplace"),
    "cells of another bandwidth": lambda header, arrays: header["config"].update(bandwidth=0.5),
    "bandwidth too small": lambda header, arrays: header["config"].update(bandwidth=1e-13),
    "no bandwidth of cells": lambda header, arrays: header["config"].update(bandwidth=None),
    "cells of Fourier": lambda header, arrays: header["config"].update(method="fourier"),
}
OF_MOMENTS = {
    "moments cut": CUT,
    "moments as points": set_array("cell_points", with_value(0, 1)),
    "no weight in a cell": set_array("cell_numbers", with_value(0, 0.0)),
    "negative weight of a cell": set_array("cell_numbers", with_value(0, -5.0)),
    "a moment above the weight": set_array("cell_numbers", with_value(3, 1e6)),
    "a moment of residuals above the weight": set_array("cell_numbers", with_value(80, -1e6)),
    "negative norms": set_array("cell_numbers", with_value(69 + 52, -1.0)),
    "no moment": set_array("cell_numbers", with_value(3, np.nan)),
    "infinite moment": set_array("cell_numbers", with_value(-1, np.inf)),
}
OF_REDUCTIONS = {
    "reduction": lambda header, arrays: header["config"].update(reduction="top_k(3)"),
    "reduction to nothing": lambda header, arrays: header["config"].update(reduction="top_k(0)"),
    "reduction to all": lambda header, arrays: header["config"].update(reduction="top_k(5)"),
    "reduction of zeros": lambda header, arrays: header["config"].update(reduction="top_k(02)"),
    "no reduction": lambda header, arrays: header["config"].pop("reduction"),
    "None as reduction": lambda header, arrays: header["config"].update(reduction=None),
    "a number as reduction": lambda header, arrays: header["config"].update(reduction=2),
    "class-wise": lambda header, arrays: header["config"].update(reduction="class_wise"),
    "top label": lambda header, arrays: header["config"].update(reduction="top_label"),
    "rank": set_array("tail_labels", with_value(0, 3)),
    "classes of a reduction": lambda header, arrays: header["config"].update(n_classes=2),
}
ALL_FORGERIES = [
    (of_top_two, OF_REDUCTIONS),
    (small, FORGERIES),
    (on_landmarks, OF_LANDMARKS),
    (of_points, OF_CELLS),
    (of_moments, OF_MOMENTS),
]


@pytest.mark.parametrize(
    ("make", "change"),
    [(make, change) for make, changes in ALL_FORGERIES for change in changes.values()],
    ids=[name for _, changes in ALL_FORGERIES for name in changes],
)
def test_forged_states_are_refused(make, change):
    with pytest.raises((ValueError, TypeError), match=r"^data (holds|is not a valid state file: )"):
        CKCEAccumulator.from_bytes(forged(change, make))
    assert forged(lambda header, arrays: None, make) == make().to_bytes()


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state.ckce"
    acc = small()
    acc.save(path)
    before = path.read_bytes()
    acc.update(*sample(40, 3))
    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, lambda *_: (_ for _ in ()).throw(OSError("disk full")))
            with pytest.raises(OSError, match="disk full"):
                acc.save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        acc.save(tmp_path / "missing" / "state.ckce")


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_and_links_are_kept(tmp_path):
    path, link = tmp_path / "state.ckce", tmp_path / "link"
    small().save(path)
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    path.chmod(0o640)
    link.symlink_to(path)
    small(40).save(link)
    assert link.is_symlink()
    assert CKCEAccumulator.load(path).n_samples == 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="pipes and links of POSIX")
def test_pipes_and_loops(tmp_path):
    acc, pipe = small(), tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match=r"pipe must be a regular file"):  # else it waits
        CKCEAccumulator.load(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    acc.save(pipe)
    reader.join()
    assert read == [acc.to_bytes()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for use in (acc.save, CKCEAccumulator.load):
        with pytest.raises(OSError, match=r"/a\b"):
            use(tmp_path / "a")
    acc.save(os.fsencode(tmp_path / "bytes"))
    assert CKCEAccumulator.load(os.fsencode(tmp_path / "bytes")).n_samples == acc.n_samples
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "b", "bytes", "pipe"]


KILLED = """
import json, os, random, signal, sys, time
import numpy as np
from ckce import CKCEAccumulator, Fourier

path, m = sys.argv[1], int(sys.argv[2])
folder = os.path.dirname(path)
method = {2: "exact", 3: Fourier(100)}[m]
acc = CKCEAccumulator(m, bandwidth=0.5, method=method, n_threads=1)
y, q = np.arange(500) % m, np.random.default_rng(0).dirichlet(np.ones(m), 500)
acc.update(y, q)
acc.save(path)
random.seed(0)
sync = os.fsync


def slow_sync(file):  # as on a slow disk: kills fall into saves, however slow the rest is
    sync(file)
    time.sleep(0.01)


os.fsync = slow_sync
seen, halves = [], 0
saved, save = os.pipe()
for kill in range(60):
    child = os.fork()
    if child == 0:
        while True:
            acc.update(y, q)
            acc.save(path)
            os.write(save, b"!")
    if kill % 2:
        os.read(saved, 1)  # whatever the load of the machine, half of them get as far as that
    time.sleep(random.uniform(0.002, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    acc = CKCEAccumulator.load(path)
    assert acc.compute() > 0
    seen.append(acc.n_samples)
    for name in os.listdir(folder):
        if name != os.path.basename(path):
            halves += 1
            os.unlink(os.path.join(folder, name))
print(json.dumps([seen, halves]))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")
@pytest.mark.parametrize("m", [2, 3])
def test_killed_while_saving(tmp_path, m):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "state.ckce"), str(m)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    seen, halves = json.loads(run.stdout)
    assert len(seen) == 60
    assert seen == sorted(seen)
    assert all(n % 500 == 0 for n in seen)
    assert len(set(seen)) > 1, "no save was finished before a kill"
    assert halves > 0, "no kill came in the middle of a save"


def test_a_state_of_another_version_of_ckce_says_so():
    header, _ = _state.decode(small().to_bytes(), "data")
    assert header["ckce"] == ckce.__version__
