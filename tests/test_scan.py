"""Files of predictions: every format gives the same rows, and nothing in a file is believed."""

import csv
import gzip
import io
import json
import os
import struct
import warnings
import zipfile

import numpy as np
import pytest
from shared import sample

import ckce

Y, Q = sample(103, 4)


def collect(scan):
    batches = list(scan)
    return np.concatenate([b[0] for b in batches]), np.concatenate([b[1] for b in batches])


def write_npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def write_deflated(path, **arrays):
    np.savez_compressed(path, **arrays)
    return path


def write_csv(path, header, rows, delimiter=","):
    path.write_text("\n".join([delimiter.join(header), *(delimiter.join(row) for row in rows)]))
    return path


def predictions_csv(path, names=("label", "p0", "p1", "p2", "p3"), labels=Y, probs=Q):
    rows = ([str(y), *map(repr, q)] for y, q in zip(labels, probs.tolist(), strict=True))
    return write_csv(path, names, rows)


def arrow_table(layout, dtype=np.float64):
    pa = pytest.importorskip("pyarrow")
    probs = Q.astype(dtype)
    if layout == "columns":
        columns = {f"p{j}": probs[:, j] for j in (3, 0, 2, 1)}
    elif layout == "list":
        columns = {"probs": pa.array(list(probs))}
    elif layout == "large list":
        columns = {"probs": pa.array(list(probs)).cast(pa.large_list(pa.from_numpy_dtype(dtype)))}
    else:
        columns = {"probs": pa.FixedSizeListArray.from_arrays(probs.ravel(), 4)}
    return pa.table({"label": Y, **columns})


def write_npy_pair(folder):
    np.save(folder / "q.npy", Q)
    np.save(folder / "y.npy", Y)
    return ckce.scan(folder / "q.npy", labels=folder / "y.npy", batch_size=10)


def write_parquet(folder, layout, **options):
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(arrow_table(layout), folder / "p.parquet", **options)
    return ckce.scan(folder / "p.parquet", probs="p" if layout == "columns" else None)


def write_arrow(folder, kind, layout="fixed"):
    pa = pytest.importorskip("pyarrow")
    table = arrow_table(layout)
    sink = pa.OSFile(str(folder / "p.arrow"), "wb")
    with sink, getattr(pa.ipc, f"new_{kind}")(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=40)
    return ckce.scan(folder / "p.arrow", batch_size=25)


def zipped(path):
    target = path.with_name(f"{path.name}.gz")
    target.write_bytes(gzip.compress(path.read_bytes()))
    return target


def write_jsonl(path, layout):
    rows = zip(Y.tolist(), Q.tolist(), strict=True)
    if layout == "list":
        lines = [{"label": y, "probs": q} for y, q in rows]
    else:
        lines = [{"label": y, **{f"p_{j}": q[j] for j in (3, 0, 2, 1)}} for y, q in rows]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


FORMATS = {
    "npy": write_npy_pair,
    "npz": lambda d: ckce.scan(write_npz(d / "p.npz", probs=Q, labels=Y), batch_size=10),
    "npz, Fortran order": lambda d: ckce.scan(
        write_npz(d / "p.npz", probs=np.asfortranarray(Q), labels=Y), batch_size=10
    ),
    "npz, compressed": lambda d: ckce.scan(
        write_deflated(d / "p.npz", probs=Q, labels=Y), batch_size=10
    ),
    "npz, compressed, Fortran order": lambda d: ckce.scan(
        write_deflated(d / "p.npz", probs=np.asfortranarray(Q), labels=Y), batch_size=10
    ),
    "npz, other names": lambda d: ckce.scan(
        write_npz(d / "p.npz", q=Q, y=Y), probs="q", labels="y"
    ),
    "csv": lambda d: ckce.scan(predictions_csv(d / "p.csv"), probs="p", batch_size=10),
    "csv.gz": lambda d: ckce.scan(zipped(predictions_csv(d / "p.csv")), probs="p", batch_size=10),
    "csv with semicolons": lambda d: ckce.scan(
        write_csv(
            d / "p.csv",
            ["label", *(f"p{j}" for j in range(4))],
            [[str(y), *map(repr, q)] for y, q in zip(Y, Q.tolist(), strict=True)],
            ";",
        ),
        probs="p",
    ),
    "jsonl": lambda d: ckce.scan(write_jsonl(d / "p.jsonl", "list"), batch_size=10),
    "jsonl, columns": lambda d: ckce.scan(write_jsonl(d / "p.jsonl", "columns"), probs="p"),
    "jsonl.gz": lambda d: ckce.scan(zipped(write_jsonl(d / "p.jsonl", "list")), batch_size=10),
    "parquet, columns": lambda d: write_parquet(d, "columns"),
    "parquet, lists": lambda d: write_parquet(d, "list", row_group_size=30),
    "parquet, large lists": lambda d: write_parquet(d, "large list"),
    "parquet, fixed lists": lambda d: write_parquet(d, "fixed", row_group_size=7),
    "arrow file": lambda d: write_arrow(d, "file"),
    "arrow stream": lambda d: write_arrow(d, "stream", "list"),
}


def labels_beside(folder, path, **options):
    np.save(folder / "y.npy", Y)
    return ckce.scan(path, labels=folder / "y.npy", batch_size=10, **options)


FORMATS["csv, labels in npy"] = lambda d: labels_beside(
    d,
    write_csv(d / "p.csv", [f"p{j}" for j in range(4)], [[*map(repr, q)] for q in Q.tolist()]),
    probs="p",
)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_rows(tmp_path, name):
    scan = FORMATS[name](tmp_path)
    assert scan.n_classes == 4
    for _ in range(2):  # a scan can be repeated
        labels, probs = collect(scan)
        np.testing.assert_array_equal(labels, Y)
        np.testing.assert_array_equal(probs, Q)
        assert scan.n_samples == 103
    labels, probs = scan.read()
    np.testing.assert_array_equal(labels, Y)
    np.testing.assert_array_equal(probs, Q)


def test_labels_beside_a_table_have_its_rows(tmp_path):
    rows = [[*map(repr, q)] for q in Q[:30].tolist()]
    path = write_csv(tmp_path / "p.csv", [f"p{j}" for j in range(4)], rows)
    with pytest.raises(ValueError, match=r"y\.npy has 103 rows, but .*p\.csv columns .* has 30;"):
        labels_beside(tmp_path, path, probs="p").read()
    np.save(tmp_path / "short.npy", Y[:25])
    with pytest.raises(ValueError, match=r"short\.npy has 25 rows, but .* has more; labels and"):
        ckce.scan(path, labels=tmp_path / "short.npy", probs="p", batch_size=10).read()
    np.save(tmp_path / "real.npy", Y[:30] / 2)
    with pytest.raises(ValueError, match=r"real\.npy must hold integers or strings, got dtype f"):
        ckce.scan(path, labels=tmp_path / "real.npy", probs="p")
    with pytest.raises(ValueError, match="cannot hold both labels and predictions"):
        ckce.scan(write_npz(tmp_path / "p.npz", probs=Q[:, 0]), labels="probs")


WEIGHTS = 1.0 + np.arange(103) % 3


@pytest.mark.parametrize("kind", ["npz", "npy beside", "csv", "jsonl", "parquet"])
def test_weights_come_third(tmp_path, kind):
    options = {"weights": "w"}
    if kind == "npz":
        path = write_deflated(tmp_path / "p.npz", probs=Q, labels=Y, w=WEIGHTS)
    elif kind == "npy beside":
        path = write_npz(tmp_path / "p.npz", probs=Q, labels=Y)
        np.save(tmp_path / "w.npy", WEIGHTS)
        options = {"weights": tmp_path / "w.npy"}
    elif kind == "csv":
        names = ["w", "label", "probs0", "probs1", "probs2", "probs3"]
        columns = np.column_stack([WEIGHTS, Y, Q]).tolist()
        rows = [[repr(w), str(int(y)), *map(repr, q)] for w, y, *q in columns]
        path = write_csv(tmp_path / "p.csv", names, rows)
    elif kind == "jsonl":
        lines = zip(WEIGHTS, Y.tolist(), Q.tolist(), strict=True)
        path = tmp_path / "p.jsonl"
        path.write_text(
            "\n".join(json.dumps({"label": y, "probs": q, "w": w}) for w, y, q in lines)
        )
    else:
        pq = pytest.importorskip("pyarrow.parquet")
        path = tmp_path / "p.parquet"
        pq.write_table(arrow_table("list").append_column("w", [WEIGHTS]), path)
    scan = ckce.scan(path, batch_size=10, **options)
    for labels, probs, weights in (
        scan.read(),
        tuple(map(np.concatenate, zip(*scan, strict=True))),
    ):
        np.testing.assert_array_equal(labels, Y)
        np.testing.assert_array_equal(probs, Q)
        np.testing.assert_array_equal(weights, WEIGHTS)
    assert len(scan.sample(20)) == 3
    state = scan.accumulate(bandwidth=0.7)
    assert state.evaluate().weight == WEIGHTS.sum()
    with pytest.raises(ValueError, match=r"no (array|column) 'v'.*; name (it|one) with weights="):
        ckce.scan(path, weights="v")


def test_batches_have_the_size_asked_for(tmp_path):
    scan = write_npy_pair(tmp_path)
    assert [len(labels) for labels, _ in scan] == [10] * 10 + [3]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ">f8", np.int32])
def test_dtypes_are_kept(tmp_path, dtype):
    for write in (write_npz, write_deflated):
        path = write(tmp_path / "p.npz", probs=(Q * 100).astype(dtype), labels=Y)
        assert next(iter(ckce.scan(path)))[1].dtype == np.dtype(dtype)


def test_uncompressed_arrays_are_not_copied(tmp_path):
    path = write_npz(tmp_path / "p.npz", probs=Q, labels=Y)
    base = ckce.scan(path).read()[1]
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_several_files_are_one_data_set(tmp_path):
    first = write_npz(tmp_path / "a.npz", probs=Q[:50], labels=Y[:50])
    second = predictions_csv(tmp_path / "b.csv", labels=Y[50:], probs=Q[50:])
    third = tmp_path / "c.npz"
    np.savez_compressed(third, probs=Q[50:], labels=Y[50:])
    scan = ckce.scan([first, third])
    assert scan.n_samples == 103
    np.testing.assert_array_equal(scan.read()[1], Q)
    np.testing.assert_array_equal(collect(scan)[0], Y)
    with pytest.raises(ValueError, match=r"a\.npz has no array 'p'"):
        ckce.scan([second, first], probs="p")


def test_positive_class(tmp_path):
    path = write_csv(tmp_path / "p.csv", ["label", "score"], [["1", "0.75"], ["0", "0.25"]])
    scan = ckce.scan(path, probs="score")
    labels, probs = scan.read()
    assert scan.n_classes == 2
    np.testing.assert_array_equal(probs, [0.75, 0.25])
    assert ckce.accuracy(labels, probs) == 1.0


NAMED = [["cat", "0.5", "0.25", "0.25"], ["dog", "0", "0", "1"], ["eel", "0", "1", "0"]]


@pytest.mark.parametrize(
    ("header", "probs"),
    [
        (["label", "cat", "eel", "dog"], "*"),
        (["label", "p_cat", "p_eel", "p_dog"], "p_*"),
        (["label", "cat", "eel", "dog"], ["cat", "eel", "dog"]),
    ],
)
def test_columns_name_classes(tmp_path, header, probs):
    scan = ckce.scan(write_csv(tmp_path / "p.csv", header, NAMED), probs=probs)
    labels, _ = scan.read()
    assert scan.classes == ("cat", "eel", "dog")
    np.testing.assert_array_equal(labels, [0, 2, 1])


def test_numbers_in_names_order_the_columns(tmp_path):
    names = ["label", *(f"p_{j}" for j in sorted(range(11), key=str))]
    probs = np.array([[int(name[2:]) for name in names[1:]]] * 2) / 100
    path = predictions_csv(tmp_path / "p.csv", names, labels=[3, 10], probs=probs)
    for pattern in ("p", "p_*"):
        scan = ckce.scan(path, probs=pattern)
        np.testing.assert_array_equal(scan.read()[1], [np.arange(11) / 100] * 2)
        assert scan.classes is None
    one_based = [name if name == "label" else f"p_{int(name[2:]) + 1}" for name in names]
    predictions_csv(path, one_based, labels=[3, 10], probs=probs)
    scan = ckce.scan(path, probs="p")
    labels, rows = scan.read()
    np.testing.assert_array_equal(labels, [2, 9])
    np.testing.assert_array_equal(rows[0], np.arange(11) / 100)


def test_classes_of_the_caller(tmp_path):
    names = np.array(["b", "a", "d", "c"])
    path = write_npz(tmp_path / "p.npz", probs=Q, labels=names[Y])
    scan = ckce.scan(path, classes=names.tolist(), batch_size=20)
    np.testing.assert_array_equal(collect(scan)[0], Y)
    np.testing.assert_array_equal(scan.read()[0], Y)
    np.savez(path, probs=Q, labels=Y + 1)
    np.testing.assert_array_equal(ckce.scan(path, classes=range(1, 5)).read()[0], Y)
    with pytest.raises(ValueError, match=r"row \d+ has the label 4, but the classes are '0', '1'"):
        ckce.scan(path, classes=range(4)).read()
    with pytest.raises(ValueError, match="classes must give 4 distinct names, got 'a', 'a'"):
        ckce.scan(path, classes=["a", "a", "b", "c"])


def test_csv_dialects(tmp_path):
    text = '\ufeff"id","label","p, 0","p1"\r\n1,"0",0.5,"0.5"\r\n\r\n2,1,1e-1,.9\r\n\r\n'
    (tmp_path / "p.csv").write_bytes(text.encode())
    labels, probs = ckce.scan(tmp_path / "p.csv", probs=["p, 0", "p1"]).read()
    np.testing.assert_array_equal(labels, [0, 1])
    np.testing.assert_array_equal(probs, [[0.5, 0.5], [0.1, 0.9]])
    path = write_csv(tmp_path / "p.tsv", ["label", "p0", "p1"], [["1", "0", "1"]], "\t")
    np.testing.assert_array_equal(ckce.scan(path, probs="p").read()[1], [[0.0, 1.0]])


def test_read_can_spool(tmp_path):
    path = write_deflated(tmp_path / "p.npz", probs=Q.astype(np.float32), labels=Y)
    (tmp_path / "spool").mkdir()
    labels, probs = ckce.scan(path, batch_size=20).read(spool=tmp_path / "spool")
    np.testing.assert_array_equal(labels, Y)
    np.testing.assert_array_equal(probs, Q.astype(np.float32))
    assert not probs.flags.writeable
    assert len(list((tmp_path / "spool").iterdir())) == 1


def test_sample_is_a_set_of_rows_whatever_the_batches(tmp_path):
    np.savez(tmp_path / "p.npz", probs=np.arange(206).reshape(103, 2), labels=np.arange(103))
    draws = {}
    for size in (1, 7, 50, 1000):
        labels, probs = ckce.scan(tmp_path / "p.npz", batch_size=size).sample(20, random_state=3)
        assert sorted(set(labels)) == labels.tolist()
        np.testing.assert_array_equal(probs[:, 0], 2 * labels)
        draws[size] = labels.tolist()
    assert len(set(map(tuple, draws.values()))) == 1
    assert len(draws[1]) == 20
    scan = ckce.scan(tmp_path / "p.npz")
    assert scan.sample(20, random_state=4)[0].tolist() != draws[1]
    np.testing.assert_array_equal(scan.sample(103)[0], np.arange(103))
    np.testing.assert_array_equal(scan.sample(500)[0], np.arange(103))


def test_sample_draws_all_rows_alike(tmp_path):
    np.savez(tmp_path / "p.npz", probs=np.zeros((40, 2)), labels=np.arange(40))
    scan = ckce.scan(tmp_path / "p.npz")
    drawn = np.concatenate([scan.sample(10, random_state=seed)[0] for seed in range(400)])
    # 100 expected for each row, standard deviation 8.7
    assert np.abs(np.bincount(drawn, minlength=40) - 100).max() < 40


@pytest.mark.parametrize("name", ["npz, compressed", "csv", "arrow file"])
def test_accumulate(tmp_path, name):
    scan = FORMATS[name](tmp_path)
    method = ckce.Fourier(50)
    state = scan.accumulate(bandwidth=0.7, method=method)
    expected = ckce.estimate(Y, Q, bandwidth=0.7, method=method)
    assert state.compute() == pytest.approx(expected.value, rel=1e-10)
    pooled = scan.accumulate(bandwidth="median")
    assert pooled.n_samples == 103
    assert pooled.bandwidth == pytest.approx(ckce.median_bandwidth(Q), rel=1e-12)
    assert scan.accumulate().bandwidth == ckce.CKCEAccumulator(4).bandwidth
    for words in (ckce.Landmarks(30), "landmarks"):
        placed = scan.accumulate(method=words)
        alone = ckce.CKCEAccumulator.from_sample(*scan.sample(), method=words)
        assert placed.method == alone.method
        assert placed.n_samples == 103
    given = scan.accumulate(method=placed.method, bandwidth=placed.bandwidth)
    assert given.compute() == placed.compute()
    assert scan.accumulate(kernel="linear").compute() == pytest.approx(
        ckce.ckce(Y, Q, kernel="linear"), rel=1e-10
    )


def test_progress(tmp_path, capsys):
    scan = write_npy_pair(tmp_path)
    ckce.scan(scan.paths[0], labels=tmp_path / "y.npy", progress=True).read()
    assert capsys.readouterr().err == ""  # nothing had to be read
    list(ckce.scan(scan.paths[0], labels=tmp_path / "y.npy", progress=True))
    assert "103/103" in capsys.readouterr().err


def npy_bytes(header, data=b"", version=1):
    text = header.encode() + b"\n"
    return (
        b"\x93NUMPY" + struct.pack("<BB" + "HI"[version - 1], version, 0, len(text)) + text + data
    )


HEADER = "{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}"
HUGE_HEADER = HEADER.format("<f8", (2, 4)) + " " * 2**20

# name: (bytes of an npy file, what the error says)
HOSTILE_ARRAYS = {
    "nothing": (b"", "is not a numpy array"),
    "text": (b"label,p0,p1\n0,1,0\n", "is not a numpy array"),
    "future": (b"\x93NUMPY\x09\x00" + b" " * 20, "npy version 9"),
    "huge header": (npy_bytes(HUGE_HEADER, version=2), "a header of 1048[0-9]* bytes"),
    "header beyond the file": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "header of 4294967295 bytes"),
    "header that is cut": (npy_bytes(HEADER.format("<f8", (2, 4)))[:40], "damaged npy header"),
    "header that is code": (npy_bytes("__import__('os').getcwd()"), "damaged npy header"),
    "nested header": (npy_bytes("(" * 5000), "damaged npy header"),
    "huge shape": (npy_bytes(HEADER.format("<f8", (10**12, 10**6))), "8000000000000000000 bytes"),
    "overflowing shape": (npy_bytes(HEADER.format("<f8", (2**62, 4))), "but holds 0"),
    "negative shape": (npy_bytes(HEADER.format("<f8", (-2, -4)), bytes(64)), "declares shape"),
    "empty items": (npy_bytes(HEADER.format("<U0", (10**15,))), "must hold numbers or strings"),
    "cut data": (npy_bytes(HEADER.format("<f8", (2, 4)), bytes(63)), "but holds 63: .* cut off"),
    "more data": (npy_bytes(HEADER.format("<f8", (2, 4)), bytes(65)), "but holds 65"),
    "objects": (npy_bytes(HEADER.format("|O", (2,)), bytes(16)), "never unpickled"),
    "records": (npy_bytes(HEADER.format("|V8", (2,)), bytes(16)), "must hold numbers or strings"),
    "complex": (npy_bytes(HEADER.format("<c16", (1, 2)), bytes(32)), "must hold numbers"),
    "rank 3": (npy_bytes(HEADER.format("<f8", (1, 2, 4)), bytes(64)), r"shape \(n_samples, n_cl"),
    "rank 0": (npy_bytes(HEADER.format("<f8", ()), bytes(8)), "declares shape|shape"),
    "no rows": (npy_bytes(HEADER.format("<f8", (0, 4))), "has 2 rows, but"),
    "no classes": (npy_bytes(HEADER.format("<f8", (2, 0))), "at least 2 classes, got 0"),
    "one class": (npy_bytes(HEADER.format("<f8", (2, 1)), bytes(16)), "at least 2 classes, got 1"),
}


@pytest.mark.parametrize("compress", [None, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("name", HOSTILE_ARRAYS)
def test_hostile_arrays_are_refused(tmp_path, name, compress):
    data, message = HOSTILE_ARRAYS[name]
    np.save(tmp_path / "y.npy", np.zeros(2, np.int64))
    path = tmp_path / ("p.npy" if compress is None else "p.npz")
    if compress is None:
        path.write_bytes(data)
    else:
        with zipfile.ZipFile(path, "w", compress) as archive:
            archive.writestr("probs.npy", data)
    with pytest.raises(ValueError, match=message):
        ckce.scan(path, labels=tmp_path / "y.npy")


def zip_bomb(columns, rows):
    """An archive whose array of zeros is a thousand times its size."""
    buffer = io.BytesIO()
    archive = zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED)
    with archive, archive.open("probs.npy", "w") as file:
        file.write(npy_bytes(HEADER.format("<f8", (rows, columns))))
        for _ in range(rows * columns // 2**17):
            file.write(bytes(2**20))
    return buffer.getvalue()


def test_a_bomb_costs_one_batch_of_memory(tmp_path):
    import tracemalloc

    (tmp_path / "p.npz").write_bytes(zip_bomb(2**10, 2**16))  # 512 MB from 0.5 MB
    np.save(tmp_path / "y.npy", np.zeros(2**16, np.int64))
    tracemalloc.start()
    scan = ckce.scan(tmp_path / "p.npz", labels=tmp_path / "y.npy")
    next(iter(scan))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 2**24
    (tmp_path / "p.npz").write_bytes(zip_bomb(2**24, 1))  # a row of 128 MB
    np.save(tmp_path / "y.npy", np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="rows of 134217728 bytes, expected at most 67108864"):
        ckce.scan(tmp_path / "p.npz", labels=tmp_path / "y.npy")


@pytest.mark.parametrize("write", [write_npz, write_deflated])
def test_altered_bytes_are_noticed(tmp_path, write):
    path = write(tmp_path / "p.npz", probs=Q, labels=Y)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("probs.npy")
    rng = np.random.default_rng(0)
    first = info.header_offset + 200  # behind the headers
    for position in rng.integers(first, info.header_offset + info.compress_size, 40):
        data[position] ^= 64
        path.write_bytes(data)
        with pytest.raises(ValueError, match="damaged"):
            collect(ckce.scan(path))
        data[position] ^= 64


def test_other_archives_are_refused(tmp_path):
    path = tmp_path / "p.npz"
    path.write_bytes(b"PK not a zip")
    with pytest.raises(ValueError, match="is not an npz file"):
        ckce.scan(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("probs.npy", npy_bytes(HEADER.format("<f8", (2, 4)), bytes(64)))
        archive.writestr("labels.npy", npy_bytes(HEADER.format("<i8", (2,)), bytes(16)))
    with pytest.raises(ValueError, match="is not compressed by numpy"):
        ckce.scan(path)


# csv text, options, message
BAD_TABLES = {
    "empty": ("", {}, "is empty"),
    "header only": ("label,p0,p1\n", {"probs": "p"}, "has no rows"),
    "typo": ("label,prob_0,prob_1\n0,1,0\n", {"probs": "porb_*"}, "'porb_\\*', it has 'label'"),
    "typo in a list": ("label,cat,dog\n0,1,0\n", {"probs": ["cat", "dgo"]}, "did you mean 'dog'"),
    "labels as predictions": (
        "label,p0,p1\n0,1,0\n",
        {"probs": "label"},
        "'label' holds the labels, so",
    ),
    "typo in labels": ("target,p0,p1\n0,1,0\n", {"labels": "traget"}, "did you mean 'target'"),
    "no labels": ("id,p0,p1\n0,1,0\n", {"probs": "p"}, "no column 'labels', .*; name it with"),
    "nothing guessed": ("label,cat,dog\n0,1,0\n", {}, "no column 'probs', .* '\\*' stands for"),
    "a gap": ("label,p0,p2\n0,1,0\n", {"probs": "p"}, "no column of 'p' for class 1"),
    "twice": ("label,p0,p0\n0,1,0\n", {"probs": "p"}, "'p0' twice"),
    "class twice": ("label,p0,p_0\n0,1,0\n", {"probs": "p"}, "each class once"),
    "short line": ("label,p0,p1\n0,1,0\n1,1\n", {"probs": "p"}, "line 3 has 2 fields, expected 3"),
    "long line": ('label,p0,p1\n0,1,0\n1,"0",1,7\n', {"probs": "p"}, "line 3 has 4 fields"),
    "word": ("label,p0,p1\n0,1,0\n1,oh,1\n", {"probs": "p"}, "line 3 column 'p0' is 'oh'"),
    "hole": ("label,p0,p1\n\n0,1,\n", {"probs": "p"}, "line 3 column 'p1' is ''"),
    "real labels": ("label,p0,p1\n0.0,1,0\n", {"probs": "p"}, "integers or names, .*'0.0'"),
    "no header": ("0,0.25,0.75\n1,0.5,0.5\n", {}, "line 1 holds numbers, so there is no header"),
    "no header, names": ("cat,.2,.8\n", {}, "there is no header line; put one above, such as 'lab"),
    "decimal commas": (
        "label;p0;p1\n0;0,25;0,75\n",
        {"probs": "p"},
        "line 2 column 'p0' is '0,25', expected a number with a decimal point, not a comma",
    ),
    "bare decimal commas": (
        "label,p0,p1\n0,0,25,0,75\n",
        {"probs": "p"},
        "line 2 has 5 fields, expected 3; write decimal points if its numbers have decimal commas",
    ),
    "prefix": ("label,probability_0,probability_1\n0,1,0\n", {}, "did you mean 'probability_\\*'"),
    "case": ("label,Prob_0,Prob_1\n0,1,0\n", {}, "did you mean 'Prob_\\*'"),
    "same name": ("labels,p0\n0,1\n", {"probs": "labels"}, "'labels' holds the labels, so it can"),
    "own names": ("y_true,p0,p1\n0,1,0\n", {"probs": "p"}, "it has 'y_true', 'p0', 'p1'; name it"),
    "real label": ("label,p0,p1\n1.0,1,0\n", {"probs": "p"}, "numbers like '1.0' in line 2"),
    "no label": ("label,p0,p1\n1,1,0\n,1,0\n", {"probs": "p"}, "has no label in line 3"),
    "huge label": (
        f"label,p0,p1\n0,1,0\n{10**30},1,0\n",
        {"probs": "p"},
        "got '1000000000000*' in line 3, which 64 bits cannot hold",
    ),
    "two labels": (
        "label,labels,p0,p1\n0,1,1,0\n",
        {"probs": "p"},
        "must hold one of the columns 'labels' and 'label', got both; name it with labels=",
    ),
    "underscore": ("label,p0,p1\n1,1_0,0\n", {"probs": "p"}, "line 2 column 'p0' is '1_0', expec"),
    "underscore label": (
        "label,p0,p1\n1,1,0\n1_0,1,0\n",
        {"probs": "p"},
        "got '1_0' in line 3; wr",
    ),
    "only underscores": (
        "label,p0,p1\n1_0,1,0\n",
        {"probs": "p*"},
        "got '1_0' in line 2; write pl",
    ),
    "digits of a label": ("label,p0,p1\n1,1,0\n\u0661,1,0\n", {"probs": "p"}, "in line 3; write"),
    "other digits": ("label,p0,p1\n1,\u0661,0\n", {"probs": "p"}, "line 2 column 'p0' is"),
    "UTF-16": ("label,p0,p1\n0,1,0\n".encode("utf-16"), {}, "is text in UTF-16; save it in UTF-8"),
    "UTF-16 without a mark": (
        "label,p0,p1\n0,1,0\n".encode("utf-16-le"),
        {"probs": "p"},
        "line 1 holds a NUL character: the file is damaged, or is text in UTF-16; save it in UTF-8",
    ),
    "UTF-32": ("label,p0,p1\n0,1,0\n".encode("utf-32"), {}, "is text in UTF-32; save it in UTF-8"),
    "NUL": ("label,p0,p1\n0,1,0\n0\0,1,0\n", {"probs": "p"}, "line 3 holds a NUL character"),
    "gzip": (gzip.compress(b"label,p0,p1\n"), {}, "is a gzip file; let its name end in .gz"),
    "zip": (b"PK\3\4....", {}, "is a zip archive, as .npz and .xlsx files are; name it .npz, or"),
    "unknown class": ("label,a,b\n\nc,1,0\n", {"probs": "*"}, "line 3 has the label 'c'"),
    "not text": (
        "label,p0,p1\n0,1,0\n\u00e9,1,0\n".encode("latin-1"),
        {"probs": "p"},
        "line 3 is not text in UTF-8, it holds the byte 0xe9; save the file in UTF-8",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_refused(tmp_path, name):
    text, options, message = BAD_TABLES[name]
    path = tmp_path / "p.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        ckce.scan(path, **options).read()


def test_labels_of_two_kinds_are_refused(tmp_path):
    rows = [["0", "1", "0"], ["1", "0", "1"], ["b", "0", "1"]]
    path = write_csv(tmp_path / "p.csv", ["label", "a", "b"], rows)
    with pytest.raises(ValueError, match="mixes numbers and names: line 4 has 'b', and earlier"):
        list(ckce.scan(path, probs="*", batch_size=2))
    rows = [["0", "1", "0"]] * 8 + [["1", "0", "1"], ["b", "0", "1"]]
    write_csv(path, ["label", "a", "b"], rows)
    with pytest.raises(ValueError, match="line 11 has 'b'"):  # not the first line of its batch
        list(ckce.scan(path, probs="*", batch_size=8))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, "cat"], "line 3 has 'cat', and earlier lines have integers"),
        (["cat", "dog", 2], "line 3 has 2, and earlier lines have names"),
    ],
)
@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_labels_of_two_kinds_in_jsonl_are_refused(tmp_path, labels, message, batch_size):
    lines = [json.dumps({"label": label, "probs": [0.5, 0.5]}) for label in labels]
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=f"mixes numbers and names: {message}"):
        list(ckce.scan(tmp_path / "p.jsonl", batch_size=batch_size))


def test_a_field_may_be_long(tmp_path):
    prompt = 50_000 * 'say ""hi"",\n'
    (tmp_path / "p.csv").write_text(f'label,note,p0,p1\n0,"{prompt}",1,0\n1,plain,0,1\n')
    limit = csv.field_size_limit()
    labels, probs = ckce.scan(tmp_path / "p.csv", probs="p").read()
    assert (labels.tolist(), probs.tolist()) == ([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    assert csv.field_size_limit() == limit
    (tmp_path / "p.csv").write_text(f'label,note,p0,p1\n0,"{prompt}",1,half\n')
    with pytest.raises(ValueError, match="line 2 column 'p1' is 'half', expected a number"):
        ckce.scan(tmp_path / "p.csv", probs="p").read()
    (tmp_path / "p.csv").write_text(f'label,note,p0,p1\n0,"{prompt}",1\n')
    with pytest.raises(ValueError, match="line 2 has 3 fields, expected 4"):
        ckce.scan(tmp_path / "p.csv", probs="p").read()


def test_an_underscore_makes_a_name(tmp_path):
    """Python reads 1_0 as 10; a table does not."""
    rows = [["1_0", "1", "0"], ["0", "0", "1"], ["0", "0", "1"]]
    path = write_csv(tmp_path / "p.csv", ["label", "1_0", "0"], rows)
    for size in (1, 3):
        scan = ckce.scan(path, probs=["1_0", "0"], batch_size=size)
        np.testing.assert_array_equal(collect(scan)[0], [0, 1, 1])


def test_fields_may_hold_lines(tmp_path):
    text = 'label,note,p0,p1\n0,"say ""hi""\nthere, you",1,0\n1,plain,0,1\nx,open,0,1\n'
    (tmp_path / "p.csv").write_text(text)
    scan = ckce.scan(tmp_path / "p.csv", probs="p", batch_size=1)
    labels, probs = next(iter(scan))
    assert (labels.tolist(), probs.tolist()) == ([0], [[1.0, 0.0]])
    with pytest.raises(ValueError, match="line 5 has 'x'"):  # a line of the file, not a row
        list(scan)


BAD_LINES = {
    "not JSON": ("label,p0", "line 2 is not JSON"),
    "nested": ("[" * 100_000, "line 2 is not JSON: it is nested too deeply"),
    "cut off": (
        '{"label": 0,',
        "line 2 is not JSON: it is cut off; an object must stand on one line",
    ),
    "two objects": ("{} {}", r"line 2 is not JSON at column 4 \(Extra data\)"),
    "digits": (
        f'{{"label": {"9" * 5000}, "probs": [1, 0]}}',
        "line 2 is not JSON: it holds an integer of thousands of digits",
    ),
    "list": ("[0, 1]", 'must be a JSON object such as {"label": 0, "probs": .*, got a list'),
    "no member": ('{"probs": [1, 0]}', "line 2 has no member 'label'"),
    "short": ('{"label": 0, "probs": [1]}', "line 2 has 1 probabilities, expected 2 as in the fir"),
    "no list": ('{"label": 0, "probs": null}', "line 2 has None, expected 2"),
    "word": ('{"label": 0, "probs": [1, "0"]}', "line 2 holds '0', expected a number"),
    "truth": ('{"label": 0, "probs": [1, true]}', "line 2 holds True, expected a number"),
    "large": (
        f'{{"label": 0, "probs": [{10**400}, 0]}}',
        "line 2 holds a number that is too large",
    ),
    "label": ('{"label": 0.5, "probs": [1, 0]}', "numbers like '0.5' in line 2"),
    "true label": ('{"label": true, "probs": [1, 0]}', "numbers like 'True' in line 2"),
    "null label": ('{"label": null, "probs": [1, 0]}', "has no label in line 2"),
    "large label": (f'{{"label": {10**30}, "probs": [1, 0]}}', "in line 2, which 64 bits cannot"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_bad_json_lines_are_refused(tmp_path, name):
    line, message = BAD_LINES[name]
    path = tmp_path / "p.jsonl"
    path.write_text(f'{{"label": 1, "probs": [0.5, 0.5]}}\n{line}\n')
    with pytest.raises(ValueError, match=message):
        ckce.scan(path).read()


def test_gzip_is_read_as_a_stream(tmp_path, monkeypatch):
    path = zipped(predictions_csv(tmp_path / "p.csv"))
    data = path.read_bytes()
    for damaged in (data[:-300], data[:100] + b"x" * 50 + data[150:], b"label,p0,p1\n0,1,0\n"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="is not a whole gzip file: it is cut off or damaged"):
            list(ckce.scan(path, probs="p"))
    monkeypatch.setattr("ckce._scan.text._LINE_LIMIT", 2**16)
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(b"label,p0,p1\n" + b"0" * 2**20))
    with pytest.raises(ValueError, match="line 2 is longer than"):
        list(ckce.scan(bomb, probs="p"))
    np.savez(tmp_path / "p.npz", probs=Q, labels=Y)
    with pytest.raises(ValueError, match=r"got '\.npz\.gz'"):
        ckce.scan(zipped(tmp_path / "p.npz"))


def test_labels_in_bytes(tmp_path):
    path = write_npz(
        tmp_path / "p.npz", probs=Q, labels=np.array([b"\xc3\xa4", b"b", b"c", b"d"])[Y]
    )
    labels, _ = ckce.scan(path, classes=["\xe4", "b", "c", "d"]).read()
    np.testing.assert_array_equal(labels, Y)
    write_npz(path, probs=Q, labels=np.array([b"\xff", b"b", b"c", b"d"])[Y])
    for classes in (None, ["a", "b", "c", "d"]):
        with pytest.raises(
            ValueError, match=r"array 'labels' must hold text in UTF-8, got b'\\xff'"
        ) as e:
            ckce.scan(path, classes=classes).read()
        assert not isinstance(e.value, UnicodeError)


def test_arrays_that_are_there_twice(tmp_path):
    path = tmp_path / "p.npz"
    for second in ("probs.npy", "probs"):
        np.savez(path, probs=Q, labels=Y)
        with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive.writestr(second, npy_bytes(HEADER.format("<f8", (103, 4)), bytes(103 * 32)))
        with pytest.raises(ValueError, match="must hold each array once, got 'probs' twice"):
            ckce.scan(path)


def bad_parquet(pa, what):
    probs = {
        "null": [[1.0, 0.0], None],
        "null first": [None, [1.0, 0.0]],
        "null inside": [[1.0, 0.0], [None, 1.0]],
        "ragged": [[1.0, 0.0], [0.5, 0.25, 0.25]],
        "words": [["a", "b"], ["a", "b"]],
        "no rows": [],
    }[what]
    kind = pa.list_(pa.string() if what == "words" else pa.float64())
    labels = pa.array(range(len(probs)), pa.int64())
    return pa.table({"label": labels, "probs": pa.array(probs, kind)})


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("null", "row 1 column 'probs' is null"),
        ("null first", "row 0 column 'probs' is null"),
        ("null inside", "row 1 holds a null"),
        ("ragged", "row 1 has 3 probabilities, expected 2"),
        ("words", "must hold numbers, got string"),
        ("no rows", "has no rows"),
    ],
)
def test_bad_parquet_is_refused(tmp_path, what, message):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(bad_parquet(pa, what), tmp_path / "p.parquet")
    with pytest.raises(ValueError, match=message):
        ckce.scan(tmp_path / "p.parquet").read()


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_files_that_are_not_arrow(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    path = tmp_path / f"p.{suffix}"
    for data in (b"", b"ARROW1 or not", b"PAR1" + bytes(100) + b"PAR1"):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=f"cannot be read as {suffix}"):
            ckce.scan(path)


def test_paths(tmp_path):
    path = write_npz(tmp_path / "preds.npz", probs=Q, labels=Y)
    assert ckce.scan(os.fsencode(path)).n_samples == len(Y)  # bytes are one path, not a sequence
    with pytest.raises(FileNotFoundError, match=r"pred\.npz does not exist; did you mean 'preds"):
        ckce.scan(tmp_path / "pred.npz")
    (tmp_path / "gone.npz").symlink_to("nowhere")
    with pytest.raises(
        FileNotFoundError, match=r"gone\.npz does not exist$"
    ):  # not "did you mean" it
        ckce.scan(tmp_path / "gone.npz")
    (tmp_path / "gone.npz").unlink()
    with pytest.raises(IsADirectoryError, match=r"is a directory; pass its files, such as 'preds"):
        ckce.scan(tmp_path)
    (tmp_path / "p.pkl").touch()
    with pytest.raises(ValueError, match=r"must be a \.npy, .* file, got '\.pkl'"):
        ckce.scan(tmp_path / "p.pkl")
    with pytest.raises(ValueError, match="at least one file"):
        ckce.scan([])
    with pytest.raises(ValueError, match="no array 'prob', it holds 'probs', 'labels'; did you m"):
        ckce.scan(path, probs="prob")
    with pytest.raises(ValueError, match="where several files are read"):
        ckce.scan([path, path], labels="y.npy")
    np.save(tmp_path / "q.npy", Q)
    with pytest.raises(ValueError, match=r"labels='y\.npy'"):
        ckce.scan(tmp_path / "q.npy")
    np.savez(path, probs=Q, labels=Y, label=Y)
    with pytest.raises(ValueError, match="one of the arrays 'labels' and 'label', got both; name"):
        ckce.scan(path)
    np.savez(path, probs=Q, labels=Y[1:])
    with pytest.raises(ValueError, match=r"'labels' has 102 rows, but .* has 103"):
        ckce.scan(path)
    np.savez(path, probs=Q, labels=np.eye(4)[Y])
    with pytest.raises(ValueError, match=r"must have shape \(n_samples,\), got \(103, 4\)"):
        ckce.scan(path)


def test_arguments():
    with pytest.raises(TypeError, match="batch_size must be an integer"):
        ckce.scan("p.npz", batch_size=2.5)
    with pytest.raises(TypeError, match="progress must be True or False"):
        ckce.scan("p.npz", progress=1)
