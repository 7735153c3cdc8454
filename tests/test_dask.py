"""Dask: one state per partition, whatever happens to the workers."""

import os

import numpy as np
import pytest
from shared import sample

import ckce

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from ckce.integrations.dask import accumulate, accumulate_files  # noqa: E402

Y, Q = sample(6000, 4)
W = np.arange(6000) % 3
OPTIONS = {"bandwidth": 0.5, "method": ckce.Fourier(20)}
MEDIAN = {**OPTIONS, "bandwidth": "median"}
CHUNKS = (1000, 10, 3000, 1990)


def arrays(*others, chunks=CHUNKS):
    return [da.from_array(array, chunks=(chunks, *array.shape[1:])) for array in (Y, Q, *others)]


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def cluster():
    # Port 0 and no dashboard: nothing of the machine is taken.
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def expected(**options):
    return ckce.ckce(Y, Q, **{**OPTIONS, **options})


def test_arrays():
    acc = accumulate(*arrays(), **OPTIONS)
    assert acc.n_samples == 6000
    assert acc.compute() == pytest.approx(expected(), rel=1e-12)
    assert acc.shards == {f"partition {i}" for i in range(4)}
    y, q, w = arrays(W)
    acc = accumulate(y, q, sample_weight=w, **OPTIONS)
    assert acc.compute() == pytest.approx(expected(sample_weight=W), rel=1e-12)


def test_many_partitions_are_merged_in_a_tree():
    acc = accumulate(*arrays(chunks=(75,) * 80), **OPTIONS)
    assert acc.compute() == pytest.approx(expected(), rel=1e-12)
    assert len(acc.shards) == 80


def test_chunks_that_do_not_match():
    y, q = da.from_array(Y, chunks=1234), da.from_array(Q, chunks=(2000, 2))
    assert accumulate(y, q, **OPTIONS).compute() == pytest.approx(expected(), rel=1e-12)
    with pytest.raises(ValueError, match="same number of rows, got 5999 and 6000"):
        accumulate(y[1:], q, **OPTIONS)
    unknown = q[da.from_array(Q[:, 0] > 0.5, chunks=2000)]
    truth = y.rechunk(2000)[da.from_array(Q[:, 0] > 0.5, chunks=2000)]
    kept = Q[:, 0] > 0.5
    value = ckce.ckce(Y[kept], Q[kept], **OPTIONS)
    assert accumulate(truth, unknown, **OPTIONS).compute() == pytest.approx(value, rel=1e-12)
    with pytest.raises(ValueError, match="y_true and y_prob must have the same partitions"):
        accumulate(y, unknown, **OPTIONS)


def test_empty_partitions_and_one_column():
    y, q = arrays(chunks=(0, 3000, 0, 3000))
    assert accumulate(y, q, **OPTIONS).compute() == pytest.approx(expected(), rel=1e-12)
    y2, q2 = sample(500, 2)
    acc = accumulate(da.from_array(y2), da.from_array(q2[:, 1]), **OPTIONS)
    value = ckce.ckce(y2, q2[:, 1], **OPTIONS)
    assert acc.compute() == pytest.approx(value, rel=1e-12)


def test_the_bandwidth_of_a_sample():
    acc = accumulate(*arrays(chunks=(1500,) * 4), **MEDIAN)
    rows = np.concatenate([i * 1500 + np.linspace(0, 1499, 500).astype(int) for i in range(4)])
    assert acc.bandwidth == ckce.median_bandwidth(Q[rows])
    assert "median of a sample of 2000" in acc.evaluate().signature
    default = accumulate(*arrays(), method=ckce.Fourier(20))
    assert default.bandwidth == ckce.CKCEAccumulator(4).bandwidth
    linear = accumulate(*arrays(), kernel="linear")
    assert linear.compute() == pytest.approx(
        ckce.ckce(Y, Q, method="exact", kernel="linear"), rel=1e-12
    )
    with pytest.raises(ValueError, match="kernel must be one of"):
        accumulate(*arrays(), kernel="poly")
    with pytest.raises(TypeError, match="shard_id is given to each partition"):
        accumulate(*arrays(), shard_id="a")


def test_landmarks_of_a_sample():
    acc = accumulate(*arrays(chunks=(1500,) * 4), method=ckce.Landmarks(60))
    rows = np.concatenate([i * 1500 + np.linspace(0, 1499, 500).astype(int) for i in range(4)])
    alone = ckce.CKCEAccumulator.from_sample(Y[rows], Q[rows], method=ckce.Landmarks(60))
    alone.update(Y, Q)
    assert acc.method == alone.method
    assert acc.compute() == pytest.approx(alone.compute(), rel=1e-12)
    fixed = accumulate(*arrays(), method=ckce.Landmarks(60), bandwidth=0.5)
    assert fixed.bandwidth == 0.5
    given = accumulate(*arrays(), method=fixed.method, bandwidth=0.5)
    assert given.compute() == pytest.approx(fixed.compute(), rel=1e-12)
    default = accumulate(*arrays(), method=fixed.method)
    assert default.config["bandwidth_source"] == "default"
    with pytest.raises(ValueError, match=r"of a stream (must be|needs two classes)"):
        accumulate(*arrays(), method="exact")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path_factory.mktemp("predictions")
    for i, rows in enumerate(np.split(np.arange(6000), [500, 4000])):
        columns = {f"p{j}": Q[rows, j] for j in range(4)}
        parquet.write_table(pa.table({"label": Y[rows], **columns}), path / f"part-{i}.parquet")
    (path / "_SUCCESS").touch()
    return path


def test_a_directory_of_parquet_files(folder):
    acc = accumulate_files(folder, probs="p", **OPTIONS)
    assert acc.compute() == pytest.approx(expected(), rel=1e-12)
    assert acc.shards == {str(folder / f"part-{i}.parquet") for i in range(3)}
    again = accumulate_files([folder / "part-1.parquet"], probs="p", **OPTIONS)
    with pytest.raises(ValueError, match=r"shard_id '.*part-1.parquet' is in both states"):
        acc.merge(again)
    sampled = accumulate_files(str(folder), probs="p", **MEDIAN)
    assert sampled.bandwidth == pytest.approx(ckce.median_bandwidth(Q), rel=0.05)
    with pytest.raises(ValueError, match=r"must hold .* files, got none"):
        accumulate_files(folder.parent / "predictions0" / "..", probs="p")


def test_a_cluster_equals_one_process(cluster, folder):
    with dask.config.set(scheduler=cluster):
        acc = accumulate(*arrays(), **OPTIONS)
        assert acc.compute() == pytest.approx(expected(), rel=1e-12)
        files = accumulate_files(folder, probs="p", **OPTIONS)
        assert files.compute() == pytest.approx(expected(), rel=1e-12)


def die_once(labels, marker, block_info=None):
    """The labels of a block; the worker that comes to the eighth one first is gone."""
    if block_info and block_info[0]["chunk-location"] == (7,):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return labels
        os._exit(1)
    return labels


@pytest.mark.filterwarnings("ignore")  # dask tells of the worker that it lost
def test_a_worker_killed_in_the_middle(cluster, tmp_path):
    marker = tmp_path / "died"

    y, q = arrays(chunks=(500,) * 12)
    y = y.map_blocks(die_once, str(marker), dtype=y.dtype)
    with dask.config.set(scheduler=cluster):
        acc = accumulate(y, q, **OPTIONS)
    assert marker.exists()
    assert acc.n_samples == 6000
    assert acc.compute() == pytest.approx(expected(), rel=1e-12)


@pytest.mark.parametrize("method", ["auto", ckce.Landmarks(20)])
@pytest.mark.parametrize("reduction", ["top_label", ckce.TopK(2)])
def test_reductions(reduction, method):
    y, q = sample(500, 6)
    arrays = da.from_array(y, chunks=100), da.from_array(q, chunks=(100, 6))
    acc = accumulate(*arrays, reduction=reduction, method=method, bandwidth=0.5)
    own = ckce.CKCEAccumulator(6, reduction=reduction, method=acc.method, bandwidth=0.5)
    own.update(y, q)
    assert acc.compute() == pytest.approx(own.compute(), rel=1e-12)


def test_top_k_predictions_are_refused():
    top = ckce.TopKPredictions([[0.6, 0.3], [0.5, 0.4]])
    with pytest.raises(TypeError, match=r"dask array, got ckce\.TopKPredictions.*and merge"):
        accumulate(da.from_array([0, 1], chunks=1), top, reduction=ckce.TopK(1))


def test_errors_name_what_the_caller_can_pass(tmp_path):
    y, q = arrays()
    with pytest.raises(ValueError, match=r"y_true row .*accumulator with labels=range\(1, 5\)$"):
        accumulate(y + 1, q, **OPTIONS)
    np.savez(tmp_path / "one_based.npz", probs=Q, labels=Y + 1)
    for options in (OPTIONS, MEDIAN):
        with pytest.raises(ValueError, match=r"^labels row .*: pass classes=range\(1, 5\)$"):
            accumulate_files(tmp_path, **options)
    acc = accumulate_files(tmp_path, classes=range(1, 5), **OPTIONS)
    assert acc.compute() == pytest.approx(expected(), rel=1e-12)
