"""Bytes that nobody should write: targets for the state parser and the file readers.

    python tests/support/fuzz.py state --seconds 600
    python tests/support/fuzz.py scan --seconds 600
    python tests/support/fuzz.py logs --seconds 600
    python tests/support/fuzz.py state --atheris -max_total_time=600     (coverage-guided; pip install atheris)

What is not refused with a ValueError is a finding: it is kept in tests/crashes, and test_fuzz.py
tries it again for ever. A mutated state gets its lengths and its checksum right again, and a mutated
array is zipped anew, so that what lies behind the first check is reached, too.
"""

import argparse
import contextlib
import gzip
import hashlib
import io
import json
import os
import random
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
from logs import as_eval, as_lines, inspect_log, lm_eval_lines, made_up_tokens, vllm_line

import ckce
from ckce._stream import state_file as _state

CRASHES = Path(__file__).parents[1] / "crashes"
SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".arrow", ".jsonl", ".csv.gz")
NUMBERS = [
    0,
    1,
    2,
    7,
    63,
    127,
    255,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**32,
    2**62,
    2**63 - 1,
    2**64 - 1,
]
WORDS = [
    b"-1",
    b"nan",
    b"1e999",
    b"null",
    b"[]",
    b"{}",
    b'""',
    b"true",
    b"9" * 30,
    b",",
    b"\n",
    b"(",
]


def sample(n=6, m=3):
    rng = np.random.default_rng(n)
    return rng.integers(0, m, n), rng.dirichlet(np.ones(m), n)


def repaired(data):
    """A state whose lengths and checksum fit, whatever it says."""
    body = bytearray(data[:-32].ljust(32, b"\0"))
    version = min(max(int.from_bytes(body[8:16], "little"), 1), _state.VERSION)
    body[:16] = _state.MAGIC + version.to_bytes(8, "little")
    header = int.from_bytes(body[16:24], "little") % (len(body) - 31)
    body[16:24] = header.to_bytes(8, "little")
    body[24:32] = (len(body) + 32).to_bytes(8, "little")
    return bytes(body) + hashlib.sha256(body).digest()


def state(data):
    """Bytes are refused, or make an accumulator that works."""
    for candidate in (data, repaired(data)):
        try:
            acc = ckce.CKCEAccumulator.from_bytes(candidate)
        except ValueError:
            continue
        except MemoryError as error:
            if "needs about" in str(error):  # refused before it was tried
                continue
            raise
        again = ckce.CKCEAccumulator.from_bytes(acc.to_bytes())
        assert again.to_bytes() == acc.to_bytes()
        for use in (
            acc.compute,
            acc.evaluate,
            lambda acc=acc: acc.update(*sample(5, acc.n_classes)),
            lambda acc=acc, again=again: acc.merge(again),
            acc.compute,
        ):
            # Sums of nothing that exists have no solution, or an infinite one.
            with contextlib.suppress(ValueError), np.errstate(all="ignore"):
                use()


def scan(data):
    """A file is refused, or read; its first byte says what kind it pretends to be."""
    suffix = SUFFIXES[data[0] % len(SUFFIXES)] if data else ".npy"
    with tempfile.TemporaryDirectory() as folder:
        path, labels = Path(folder) / f"q{suffix}", Path(folder) / "y.npy"
        path.write_bytes(data[1:])
        np.save(labels, sample()[0])
        rows = 0
        with contextlib.suppress(ValueError, ImportError):  # ImportError: no pyarrow
            batches = ckce.scan(path, labels=labels if suffix == ".npy" else None, batch_size=4)
            for y, q in batches:
                assert len(y) == len(q)
                rows += len(y)
            assert rows == batches.n_samples or batches.n_samples is None
        return rows


LOGS = ("samples_sums_2026-01-01T00-00-00.jsonl", "log.eval", "log.json", "texts.jsonl")


def logs(data):
    """A log of a language model is refused, or read; its first byte says which tool's it pretends to be."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / LOGS[data[0] % len(LOGS) if data else 0]
        path.write_bytes(data[1:])
        with contextlib.suppress(ValueError, ImportError), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of letters that are missing
            log = ckce.read_log(path)
            assert len(log.y_true) == len(log.y_prob)
            return len(log.y_true)
    return 0


TARGETS = {"state": state, "scan": scan, "logs": logs}


def _npz(arrays, **options):
    buffer = io.BytesIO()
    save = np.savez_compressed if options else np.savez
    save(buffer, **arrays)
    return buffer.getvalue()


def _npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def seeds(target):
    """Valid inputs."""
    y, q = sample()
    if target == "state":
        found = []
        for options in (
            {"n_classes": 3, "bandwidth": 0.5, "method": ckce.Fourier(2)},
            {
                "n_classes": 3,
                "bandwidth": "median",
                "method": ckce.Fourier(2),
                "labels": ["a", "b", "c"],
                "shard_id": "s",
            },
            {"n_classes": 3, "kernel": "linear", "debias": False, "label_kernel": np.eye(3)},
            {"n_classes": 2, "bandwidth": 0.5, "method": ckce.Fourier(3), "n_bins": 2},
            {"n_classes": 3, "bandwidth": 0.5, "method": ckce.Landmarks(np.eye(3)), "n_bins": 2},
            {"n_classes": 3, "method": ckce.Fourier(2), "n_bins": 2, "input": "log_probs"},
            {"n_classes": 2, "bandwidth": 0.3, "n_bins": 2},
            {"n_classes": 2, "bandwidth": 1e-4, "kernel": "gaussian", "n_bins": 2},
        ):
            acc = ckce.CKCEAccumulator(**options)
            found.append(acc.to_bytes())
            cells = acc.method.word == "exact"  # rows that fill a block leave the tail
            rows, probs = sample(1030 if cells else 6, options["n_classes"])
            names = np.array(options.get("labels", range(3)))
            acc.update(names[rows], np.log(probs) if "input" in options else probs)
            found.append(acc.to_bytes())
        return found
    if target == "logs":
        log = inspect_log(6)
        texts = [vllm_line(a, b, 5) for a, b in zip(*made_up_tokens(2), strict=True)]
        written = (
            as_lines(lm_eval_lines(6)),
            as_eval(log),
            json.dumps(log).encode(),
            as_lines(texts),
        )
        return [bytes([kind]) + content for kind, content in enumerate(written)]
    table = ["labels,probs0,probs1,probs2"]
    table += [",".join(map(str, [label, *row])) for label, row in zip(y, q.tolist(), strict=True)]
    text = "\n".join(table).encode()
    files = {
        0: _npy(q),
        1: _npz({"labels": y, "probs": q}),
        2: text,
        3: text.replace(b",", b"\t"),
    }
    objects = [{"labels": int(a), "probs": b} for a, b in zip(y, q.tolist(), strict=True)]
    files[6] = "\n".join(map(json.dumps, objects)).encode()
    files[7] = gzip.compress(text, mtime=0)
    found = [bytes([kind]) + content for kind, content in files.items()]
    found.append(b"\1" + _npz({"labels": y, "probs": q}, compressed=True))
    try:
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        return found
    columns = pyarrow.table({"labels": y, "probs": q.tolist()})
    for kind, write in ((4, pyarrow.parquet.write_table), (5, pyarrow.feather.write_feather)):
        buffer = io.BytesIO()
        write(columns, buffer)
        found.append(bytes([kind]) + buffer.getvalue())
    return found


def _rezipped(data, rng):
    """Mutate a member of an npz file, or what is gzipped, with a checksum that fits."""
    if data[:1] == b"\7":
        return data[:1] + gzip.compress(_mutated(gzip.decompress(data[1:]), rng), mtime=0)
    try:
        with zipfile.ZipFile(io.BytesIO(data[1:])) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError):
        return data
    except Exception:  # zipfile and zlib raise what they like
        return data
    buffer = io.BytesIO()
    kind = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, _mutated(content, rng))
    return data[:1] + buffer.getvalue()


def _mutated(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        at = rng.randrange(len(data) + 1)
        size = rng.choice([1, 1, 2, 4, 8, 64])
        kind = rng.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + size] = rng.randbytes(size)
        elif kind == 2:
            del data[at : at + size]
        elif kind == 3:
            data[at:at] = data[at : at + size] * rng.choice([1, 2, 100])
        elif kind == 4:
            number = rng.choice(NUMBERS) % 256**8
            data[at : at + 8] = number.to_bytes(8, "little")
        elif kind == 5:
            word = rng.choice(WORDS)
            data[at : at + rng.choice([0, len(word)])] = word
        else:  # a digit of a number in a header, or in a table
            digits = [i for i, byte in enumerate(data[:2000]) if 48 <= byte < 58]
            if digits:
                i = rng.choice(digits)
                data[i : i + 1] = rng.choice([b"0", b"9", b"-", b"77", b"1e9", b"."])
    return bytes(data)


def mutated(target, data, rng):
    if target != "state" and data[:1] in (b"\1", b"\7") and rng.random() < 0.7:
        with contextlib.suppress(OSError, EOFError, zlib.error):  # it was mutated before
            return _rezipped(data, rng)
    return _mutated(data, rng)


def fuzz(target, seconds, seed=0, most=None):
    """Try mutated inputs for a while; returns their number. A finding is kept, and raised."""
    rng = random.Random(seed)
    corpus = seeds(target)
    CRASHES.mkdir(exist_ok=True)
    current = (
        CRASHES / f"{target}-current-{os.getpid()}.bin"
    )  # left behind by what ends the process
    end, tries = time.monotonic() + seconds, 0
    while time.monotonic() < end and (most is None or tries < most):
        data = mutated(target, rng.choice(corpus), rng)
        if rng.random() < 0.3:
            data = mutated(target, data, rng)
        current.write_bytes(data)
        try:
            TARGETS[target](data)
        except BaseException:
            name = f"{target}-{hashlib.sha256(data).hexdigest()[:12]}.bin"
            print(f"kept as {current.rename(CRASHES / name)}", file=sys.stderr)
            raise
        tries += 1
    current.unlink(missing_ok=True)
    return tries


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--atheris", action="store_true")
    options, rest = parser.parse_known_args()
    if options.atheris:
        import atheris

        with tempfile.TemporaryDirectory() as folder:
            for i, content in enumerate(seeds(options.target)):
                (Path(folder) / str(i)).write_bytes(content)
            atheris.instrument_all()
            target = TARGETS[options.target]
            atheris.Setup(
                [sys.argv[0], folder, f"-artifact_prefix={CRASHES}/{options.target}-", *rest],
                target,
            )
            atheris.Fuzz()
        return
    seed = random.randrange(2**32) if options.seed is None else options.seed
    start = time.monotonic()
    tries = fuzz(options.target, options.seconds, seed)
    print(f"{tries} inputs in {time.monotonic() - start:.0f} s (seed {seed}): no finding")


if __name__ == "__main__":
    main()
