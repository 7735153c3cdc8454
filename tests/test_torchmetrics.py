"""torchmetrics: sums that stay whole through the base class and through several processes."""

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shared import sample

import ckce

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")

from ckce.integrations.torchmetrics import _OUTPUTS, CKCE, _home  # noqa: E402

Y, Q = sample(3000, 4)
OPTIONS = {"method": ckce.Fourier(20)}
TARGET, PREDS = torch.from_numpy(Y), torch.from_numpy(Q)


def metric(bandwidth=0.5, **options):
    return CKCE(4, bandwidth, **{"output": "ckce", **OPTIONS, **options})


def expected(rows=slice(None), **options):
    return ckce.ckce(Y[rows], Q[rows], bandwidth=0.5, **OPTIONS, **options)


def filled(rows=slice(None), **options):
    made = metric(**options)
    made.update(PREDS[rows], TARGET[rows])
    return made


def test_batches():
    m = metric()
    for i in range(0, 3000, 700):
        m.update(PREDS[i : i + 700], TARGET[i : i + 700])
    value = m.compute()
    assert value.dtype == torch.float64
    assert value.item() == pytest.approx(expected(), rel=1e-12)
    m.reset()
    m.update(PREDS[:9], TARGET[:9])
    assert m.compute().item() == pytest.approx(expected(slice(9)), rel=1e-12)


def test_forward_returns_the_value_of_the_batch():
    m = metric()
    assert m(PREDS[:1000], TARGET[:1000]).item() == pytest.approx(expected(slice(1000)), rel=1e-12)
    part = m(PREDS[1000:], TARGET[1000:])
    assert part.item() == pytest.approx(expected(slice(1000, None)), rel=1e-12)
    assert m.compute().item() == pytest.approx(expected(), rel=1e-12)


@pytest.mark.parametrize("output", _OUTPUTS)
def test_outputs(output):
    acc = ckce.CKCEAccumulator(4, bandwidth=0.5, **OPTIONS)
    acc.update(Y, Q)
    value = float(getattr(acc.evaluate(), output))
    if output == "ckce_debiased":
        assert CKCE(4).output == output
    assert filled(output=output).compute().item() == pytest.approx(value, rel=1e-12)


def test_landmarks():
    options = {"method": ckce.Landmarks(40), "bandwidth": 0.5}
    acc = ckce.CKCEAccumulator.from_sample(Y[:500], Q[:500], **options)
    parts = [metric(method=acc.method) for _ in range(2)]
    for part, rows in zip(parts, (slice(1000), slice(1000, None)), strict=True):
        part.update(PREDS[rows], TARGET[rows])
    parts[0].merge_state(pickle.loads(pickle.dumps(parts[1])))
    acc.update(Y, Q)
    assert parts[0].compute().item() == pytest.approx(acc.compute(), rel=1e-12)
    with pytest.raises(ValueError, match="options must be the same"):
        parts[0].merge_state(metric(method=ckce.Landmarks(acc.method.points[:-1])))
    with pytest.raises(ValueError, match="landmarks must be given, got 'landmarks'"):
        CKCE(4, method="landmarks")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_predictions_of_any_dtype(dtype):
    preds = (torch.round(PREDS * 64) / 64).to(dtype)
    preds[:, 0] += 1 - preds.sum(dim=1)
    keep = (preds >= 0).all(dim=1)
    m = metric()
    m.update(preds[keep].requires_grad_(), TARGET[keep])
    wide = preds[keep].detach().double().numpy()
    value = ckce.ckce(Y[keep.numpy()], wide, bandwidth=0.5, **OPTIONS)
    assert m.compute().item() == pytest.approx(value, rel=1e-12)


def test_logits():
    m = metric(input="logits")
    m.update(torch.log(PREDS), TARGET)
    assert m.compute().item() == pytest.approx(expected(), rel=1e-9)
    m = metric(input="log_probs")
    m.update(torch.log(PREDS), TARGET)
    assert m.compute().item() == pytest.approx(expected(), rel=1e-9)


def test_bandwidth_without_data():
    assert f"bandwidth={1 - 1.5 / 4!r}" in repr(CKCE(4))
    m = metric("first_batch")
    assert "bandwidth='first_batch'" in repr(m)
    m.update(PREDS[:500], TARGET[:500])
    m.update(PREDS[500:], TARGET[500:])
    gamma = ckce.median_bandwidth(Q[:500])
    value = ckce.ckce(Y, Q, bandwidth=gamma, **OPTIONS)
    assert m.compute().item() == pytest.approx(value, rel=1e-12)


def test_repr_tells_the_settings():
    text = repr(metric(kernel="laplace"))
    for words in ("num_classes=4", "bandwidth=0.5", "output='ckce'", "Fourier(n_frequencies=20)"):
        assert words in text
    assert "kernel='laplace'" in text


def test_rows_that_are_ignored():
    target = TARGET.clone()
    target[::3] = -100
    m = metric(ignore_index=-100)
    m.update(PREDS, target)
    kept = np.arange(3000) % 3 != 0
    assert m.compute().item() == pytest.approx(expected(kept), rel=1e-12)


def test_images():
    preds = PREDS.reshape(30, 10, 10, 4).movedim(-1, 1)
    m = metric()
    m.update(preds, TARGET.reshape(30, 10, 10))
    assert m.compute().item() == pytest.approx(expected(), rel=1e-12)
    for wrong in (preds[:, :3], preds[:, :, :5], preds.reshape(3000, 4)):
        with pytest.raises(ValueError, match=r"got \(30|got \(3000"):
            m.update(wrong, TARGET.reshape(30, 10, 10))


def test_two_classes_in_the_shape_of_the_target():
    y, q = sample(300, 2)
    m = CKCE(2, 0.5, output="ckce", **OPTIONS)
    m.update(torch.from_numpy(q[:, 1]).reshape(30, 10), torch.from_numpy(y).reshape(30, 10))
    value = ckce.ckce(y, q[:, 1], bandwidth=0.5, **OPTIONS)
    assert m.compute().item() == pytest.approx(value, rel=1e-12)


CASTS = {
    "half": lambda module: module.half(),
    "bfloat16": lambda module: module.bfloat16(),
    "float": lambda module: module.float(),
    "to float32": lambda module: module.to(torch.float32),
    "to bfloat16": lambda module: module.to(torch.bfloat16),
    "to cpu and half": lambda module: module.to("cpu", torch.float16),
    "type": lambda module: module.type(torch.float16),
}


@pytest.mark.parametrize("name", CASTS)
def test_casts_of_a_parent_do_not_touch_the_sums(name):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)
            self.metric = metric()

    model = Model()
    model.metric.update(PREDS[:1000], TARGET[:1000])
    model.metric.compute()  # cached, which a cast must not round either
    CASTS[name](model)
    assert model.layer.weight.dtype != torch.float64
    assert model.metric.sums.dtype == torch.float64
    assert model.metric.compute().item() == pytest.approx(expected(slice(1000)), rel=1e-12)
    model.metric.update(PREDS[1000:], TARGET[1000:])
    assert model.metric.compute().item() == pytest.approx(expected(), rel=1e-12)
    model.metric.reset()
    assert model.metric.sums.dtype == torch.float64
    assert CASTS[name](metric()).set_dtype(torch.float16).sums.dtype == torch.float64


def test_devices():
    assert _home(torch.device("mps")) == torch.device("cpu")
    assert _home(torch.device("cuda", 1)) == torch.device("cuda", 1)
    meta = filled().to("meta")
    assert meta.sums.device.type == "meta"
    assert meta.sums.dtype == torch.float64


def test_clone_pickle_and_state_dict():
    m = filled()
    for twin in (m.clone(), copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert twin.compute().item() == m.compute().item()
        twin.update(PREDS, TARGET)
        assert twin.compute().item() != m.compute().item()
    m.persistent(True)
    fresh = metric()
    fresh.load_state_dict(m.state_dict())
    fresh.update(PREDS[:0], TARGET[:0])
    assert fresh.compute().item() == pytest.approx(expected(), rel=1e-12)
    other = metric(random_state=1)
    other.load_state_dict(m.state_dict())
    other.update(PREDS[:0], TARGET[:0])
    with pytest.raises(ValueError, match="state must come from a metric with the same options"):
        other.compute()


def test_merge_state_is_not_stale():
    a, b = filled(slice(1000)), filled(slice(1000, None))
    assert a.compute().item() == pytest.approx(expected(slice(1000)), rel=1e-12)
    a.merge_state(b)
    assert a.compute().item() == pytest.approx(expected(), rel=1e-12)
    empty = metric()
    empty.merge_state(a)  # and compute does not warn of a missing update
    assert empty.compute().item() == pytest.approx(expected(), rel=1e-12)
    again = metric()
    again.merge_state(a.metric_state)
    assert again.compute().item() == pytest.approx(expected(), rel=1e-12)


@pytest.mark.parametrize("other", [{"random_state": 1}, {"bandwidth": 0.6}, {"normalize": True}])
def test_different_options_are_not_merged(other):
    a, b = filled(slice(1000)), filled(slice(1000, None), **other)
    before = a.sums.clone()
    with pytest.raises(ValueError, match="options must be the same"):
        a.merge_state(b)
    assert torch.equal(a.sums, before)
    assert a.compute().item() == pytest.approx(expected(slice(1000)), rel=1e-12)


def test_collection_shares_one_state():
    collection = torchmetrics.MetricCollection(
        {"ckce": metric(), "floor": metric(output="ckce_floor"), "other": metric(random_state=1)}
    )
    for i in range(0, 3000, 1000):
        collection.update(PREDS[i : i + 1000], TARGET[i : i + 1000])
    groups = sorted(sorted(group) for group in collection.compute_groups.values())
    assert groups == [["ckce", "floor"], ["other"]]
    values = collection.compute()
    assert values["ckce"].item() == pytest.approx(expected(), rel=1e-12)
    assert values["other"].item() == pytest.approx(expected(random_state=1), rel=1e-12)
    floor = ckce.estimate(Y, Q, bandwidth=0.5, **OPTIONS).floor
    assert values["floor"].item() == pytest.approx(floor, rel=1e-10)


def test_plot():
    pytest.importorskip("matplotlib").use("Agg")
    m = filled()
    figure, axes = m.plot()
    assert axes.get_ylim()[0] <= m.compute().item() <= axes.get_ylim()[1]
    figure.clear()
    metric().plot([torch.tensor(0.1), torch.tensor(0.2)])[0].clear()


def test_no_rows():
    m = metric()
    m.update(PREDS[:0], TARGET[:0])
    assert np.isnan(m.compute().item())


def test_bad_arguments():
    with pytest.raises(ValueError, match="bandwidth must be a number, 'default' or 'first_batch'"):
        CKCE(4, "median")
    assert CKCE(4, kernel="linear").sums.dtype == torch.float64
    with pytest.raises(ValueError, match="output must be one of"):
        metric(output="ece")
    with pytest.raises(ValueError, match="needs debias=True"):
        metric(output="ckce_floor", debias=False)
    with pytest.raises(ValueError, match="shard_id"):
        metric(shard_id="a")
    for gone in ("from_logits", "n_frequencies", "options"):
        with pytest.raises(ValueError, match=gone):
            metric(**{gone: True})
    m = metric()
    before = m.sums.clone()
    for preds, target, error, words in [
        (PREDS[:2], torch.tensor([4, 0]), ValueError, "target row 0 is 4"),
        (2 * PREDS[:2], TARGET[:2], ValueError, "preds row "),
        (PREDS[:2], PREDS[:2, 0], TypeError, r"target must hold integers, got torch.float64"),
    ]:
        with pytest.raises(error, match=words) as caught:
            m.update(preds, target)
        assert "y_true" not in str(caught.value)
        assert "y_prob" not in str(caught.value)
    assert torch.equal(m.sums, before)


RANK = """
import json, sys
sys.path.insert(0, "support")
import torch
import torch.distributed as dist
from torchmetrics.utilities.distributed import gather_all_tensors
import test_torchmetrics as t

rank, path = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
answers = {}
calls = []
gather = dist.all_gather
dist.all_gather = lambda *a, **k: calls.append("all_gather") or gather(*a, **k)


def value(rows, **options):
    m = t.metric(**options)
    if len(rows):
        m.update(t.PREDS[rows], t.TARGET[rows])
    first = m.compute().item()
    assert m.sums[0] == len(rows)  # its own rows again, after the synchronisation
    return first


everything = torch.arange(3000)
answers["uneven"] = value(everything[:100] if rank == 0 else everything[100:])
answers["empty"] = value(everything if rank == 0 else everything[:0])
answers["gathers"] = len(calls)
answers["custom"] = value(everything[rank::2], dist_sync_fn=lambda x, group: gather_all_tensors(x, group))
try:
    value(everything[rank::2], random_state=rank)
except ValueError as error:
    answers["refused"] = str(error)
answers["after"] = value(everything[rank::2])
dist.destroy_process_group()
print(json.dumps(answers))
"""


def test_two_processes(tmp_path):
    if not torch.distributed.is_available():
        pytest.skip("torch without distributed")
    command = [sys.executable, "-W", "ignore", "-c", RANK]
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "meeting")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent,
        )
        for rank in range(2)
    ]
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        answers = json.loads(out.splitlines()[-1])
        for name in ("uneven", "empty", "custom", "after"):
            assert answers[name] == pytest.approx(expected(), rel=1e-12), name
        assert answers["gathers"] == 0
        assert "options must be the same" in answers["refused"]


@pytest.mark.parametrize("reduction", ["top_label", ckce.TopK(2)])
def test_reductions(reduction):
    y, q = sample(300, 6)
    metric = CKCE(num_classes=6, reduction=reduction, output="ckce")
    for rows in (slice(0, 100), slice(100, 300)):
        metric.update(torch.from_numpy(q[rows]), torch.from_numpy(y[rows]))
    acc = ckce.CKCEAccumulator(6, reduction=reduction)
    acc.update(y, q)
    assert float(metric.compute()) == pytest.approx(acc.compute(), rel=1e-12)
    other = CKCE(num_classes=6, output="ckce")
    with pytest.raises(ValueError, match="options must be the same"):
        metric.merge_state(other)


def test_top_k_predictions():
    y, q = sample(90, 12)
    ids = np.argsort(-q, axis=1, kind="stable")[:, :6]
    top = np.take_along_axis(q, ids, axis=1)
    options = {"reduction": ckce.TopK(4), "bandwidth": 0.3}
    full, ranked = CKCE(12, **options), CKCE(12, **options)
    for rows in (slice(0, 50), slice(50, 90)):
        full.update(torch.from_numpy(q[rows]), torch.from_numpy(y[rows]))
        ranked.update(ckce.TopKPredictions(top[rows], ids[rows]), torch.from_numpy(y[rows]))
    assert float(ranked.compute()) == float(full.compute())
    with pytest.raises(ValueError, match="ignore_index must be None with"):
        CKCE(12, ignore_index=-1, **options).update(
            ckce.TopKPredictions(top, ids), torch.from_numpy(y)
        )
    with pytest.raises(ValueError, match=r"reduction must be ckce\.TopK"):
        CKCE(12, bandwidth=0.3).update(ckce.TopKPredictions(top, ids), torch.from_numpy(y))


def test_messages_name_what_the_caller_can_pass():
    for preds, target, words in (
        (PREDS, TARGET + 1, r"target row \d+ is 4, .*\); target looks 1-based: pass target - 1$"),
        (PREDS * 0.9, TARGET, "preds row 0 sums to .*; make the metric with normalize=True"),
        (PREDS * 9 - 5, TARGET, "make the metric with input='logits' if these are logits$"),
    ):
        with pytest.raises(ValueError, match=words):
            CKCE(4).update(preds, target)
    swapped = r"preds must hold probabilities.*as predicted labels have; .*preds\.double\(\).*; "
    with pytest.raises(
        TypeError, match=swapped + r"predictions come first: update\(preds, target\)"
    ):
        CKCE(2).update(TARGET % 2, TARGET % 2)
