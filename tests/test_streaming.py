"""The accumulator: any split, any merge, any thread gives the value of the whole."""

import contextlib
import copy
import dataclasses
import itertools
import json
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared import (
    EDGES,
    agree,
    bandwidths,
    calibration_sets,
    cases,
    label_kernel,
    landmarks,
    sample,
)

import ckce
from ckce import CKCEAccumulator
from ckce._input import memory as _memory
from ckce._stream.state import State

pytestmark = pytest.mark.filterwarnings("ignore:landmarks leave out")
OPTIONS = {"bandwidth": 0.5, "method": ckce.Fourier(12)}
FEATURES = ["fourier", "landmarks", "cells"]
ACCUMULATORS = cases("accumulator")


def filled(y, q, w=None, features="fourier", **options):
    acc = CKCEAccumulator(q.shape[1], **{**of(features, q.shape[1]), **options})
    acc.update(y, q, w)
    return acc


def of(features, m):
    """Options that fix the features."""
    if features == "fourier":
        return OPTIONS
    if features == "cells":
        return {"bandwidth": 0.01}
    return {"bandwidth": 0.5, "method": ckce.Landmarks(landmarks(m, bandwidth=0.5))}


def split(n, cuts):
    """Slices of n rows at the given places."""
    places = [0, *sorted(min(cut, n) for cut in cuts), n]
    return [slice(a, b) for a, b in itertools.pairwise(places)]


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("case", ACCUMULATORS, ids=str)
def test_edge_data_against_the_oracle(case, edge):
    case.check(*EDGES[edge])


@pytest.mark.parametrize("case", ACCUMULATORS, ids=str)
@given(data=calibration_sets(), bandwidth=bandwidths)
def test_arbitrary_data_against_the_oracle(case, data, bandwidth):
    case.check(*data, bandwidth)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize(("n", "m"), [(1, 2), (900, 2), (1024, 3), (2500, 10), (1500, 40)])
def test_everything_that_the_batch_functions_say(n, m, general, weighted):
    y, q = sample(n, m)
    w = np.random.default_rng(1).uniform(0.5, 2.5, n) if weighted else None
    options = {**OPTIONS, "label_kernel": label_kernel(m) if general else None}
    e = filled(y, q, w, **options).evaluate()
    batch = ckce.estimate(y, q, sample_weight=w, **options)
    scale = batch.value - batch.debiased
    assert e.ckce == pytest.approx(batch.value, rel=1e-12)
    agree(e.ckce_debiased, batch.debiased, scale)
    agree(e.ckce_floor, batch.floor, scale)
    if not general:
        assert e.per_class == pytest.approx(batch.per_class, rel=1e-9, abs=1e-15)
        assert [row[0] for row in e.attribution()] == [row[0] for row in batch.attribution()]
    if not weighted:
        assert e.signature == batch.signature
    if n > 1:
        joint = ckce.jkce_estimate(y, q, sample_weight=w, **options)
        assert e.jkce == pytest.approx(joint.value, rel=1e-10)
        assert e.jkce_biased == pytest.approx(joint.biased, rel=1e-12)
    assert e.accuracy == pytest.approx(ckce.accuracy(y, q, sample_weight=w), rel=1e-13)
    assert e.brier == pytest.approx(ckce.brier(y, q, sample_weight=w), rel=1e-13)
    assert e.log_loss == pytest.approx(ckce.log_loss(y, q, sample_weight=w), rel=1e-13)
    top = ckce.ece_estimate(y, q, variant="top_label", sample_weight=w)
    assert e.ece_top_label.value == pytest.approx(top.value, rel=1e-12)
    assert np.array_equal(e.ece_top_label.counts, top.counts)
    assert np.array_equal(e.ece_top_label.edges, top.edges)
    assert e.n_samples == n
    assert e.regularization == batch.regularization


def test_sums_of_rows_that_exceed_one():
    # 1 - |q|^2 is negative for a hard row that sums to 1 + 5e-6.
    y, q = sample(300, 3)
    q[::2] = np.eye(3)[y[::2]] * (1 + 5e-6)
    batch = ckce.estimate(y, q, **OPTIONS)
    e = filled(y, q).evaluate()
    assert e.ckce_floor == pytest.approx(batch.floor, rel=1e-11)
    assert e.ckce_debiased == pytest.approx(batch.debiased, rel=1e-11)


@pytest.mark.parametrize("features", FEATURES)
@given(cuts=st.lists(st.integers(0, 3000), max_size=12), many=st.booleans())
def test_any_split_gives_the_same_bits(features, cuts, many):
    y, q = sample(3000, 2 if features == "cells" else 33 if many else 4)
    w = np.arange(3000) % 3
    whole, parts = filled(y, q, w, features), filled(y[:0], q[:0], features=features)
    for rows in split(3000, cuts):
        parts.update(y[rows], q[rows], w[rows])
    assert parts.to_bytes() == whole.to_bytes()
    assert parts.compute() == whole.compute()


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_threads_and_batches_do_not_change_a_bit(n_threads, features):
    y, q = sample(9000, 2 if features == "cells" else 5)
    m = q.shape[1]
    acc = CKCEAccumulator(m, n_threads=n_threads, **of(features, m))
    for rows in split(9000, [10, 1034, 1035, 7000]):
        acc.update(y[rows], q[rows])
    assert acc.to_bytes() == filled(y, q, n_threads=1, features=features).to_bytes()


def same_numbers(acc, other):
    expected = other.evaluate().to_dict()
    for name, value in acc.evaluate().to_dict().items():
        if isinstance(value, float):
            assert value == pytest.approx(expected[name], rel=1e-11), name
        else:
            assert value == expected[name]


def merged(states, choices):
    """All states merged, in the order of a random tree."""
    states = list(states)
    while len(states) > 1:
        left = states.pop(next(choices) % len(states))
        right = states.pop(next(choices) % len(states))
        states.append(left + right)
    return states[0]


@pytest.mark.parametrize("features", FEATURES)
@given(cuts=st.lists(st.integers(0, 4000), min_size=1, max_size=8), seed=st.integers(0, 10**6))
def test_any_merge_tree_equals_the_batch(features, cuts, seed):
    y, q = sample(4000, 2 if features == "cells" else 6)
    whole = filled(y, q, features=features)
    choices = iter(np.random.default_rng(seed).integers(0, 100, 100).tolist())
    parts = [filled(y[rows], q[rows], features=features) for rows in split(4000, cuts)]
    total = merged(parts, choices)
    assert total.n_samples == 4000
    same_numbers(total, whole)
    assert total.compute() == pytest.approx(whole.compute(), rel=1e-12)


def test_operators():
    y, q = sample(3000, 4)
    a, b, c = (filled(y[i::3], q[i::3]) for i in range(3))
    before = [acc.to_bytes() for acc in (a, b, c)]
    total = sum([a, b, c])
    assert [acc.to_bytes() for acc in (a, b, c)] == before
    assert total.n_samples == 3000
    assert (a + b + c).compute() == total.compute()
    twin = a
    a += b
    assert twin is a
    assert a.merge(c) is a
    assert a.to_bytes() == total.to_bytes()
    with pytest.raises(TypeError, match="unsupported operand"):
        a + 1
    with pytest.raises(TypeError, match="other must be a CKCEAccumulator, got int"):
        a.merge(1)


def test_merging_with_itself_doubles_it():
    y, q = sample(1500, 4)
    acc = filled(y, q)
    acc += acc
    double = ckce.ckce(np.tile(y, 2), np.tile(q, (2, 1)), **OPTIONS)
    assert acc.compute() == pytest.approx(double, rel=1e-12)


DIFFERENT = {
    "bandwidth": 0.6,
    "kernel": "gaussian",
    "n_frequencies": ckce.Fourier(13),
    "sampler": ckce.Fourier(12, sampler="sobol"),
    "method": ckce.Landmarks(landmarks(3)),
    "random_state": 1,
    "label_kernel": np.eye(3) + 1,
    "regularization": 0.1,
    "debias": False,
    "n_bins": 11,
    "labels": ["a", "b", "c"],
    "normalize": True,
    "input": "logits",
    "reduction": "top_label",
}
OF_METHODS = ("n_frequencies", "sampler")


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_configurations_are_not_merged(name):
    acc = CKCEAccumulator(3, **OPTIONS)
    option = "method" if name in OF_METHODS else name
    other = CKCEAccumulator(3, **{**OPTIONS, option: DIFFERENT[name]})
    with pytest.raises(ValueError, match=rf"^{name} must be the same to merge, got "):
        acc.merge(other)


def test_every_option_is_compared():
    parameters = set(CKCEAccumulator.__init__.__annotations__) - {"return"}
    assert parameters - set(DIFFERENT) == {"n_classes", "shard_id", "n_threads"}
    fields = {field.name for field in dataclasses.fields(ckce.Fourier)}
    assert fields - set(DIFFERENT) == {"frequencies", "precision"}  # below; refused for streams


@pytest.mark.parametrize(
    ("one", "two"), list(itertools.permutations(("probs", "logits", "log_probs"), 2))
)
def test_inputs_are_not_mixed(one, two):
    first, second = (CKCEAccumulator(3, input=input, **OPTIONS) for input in (one, two))
    with pytest.raises(ValueError, match=rf"^input must be the same to merge, got '{one}' and "):
        first.merge(second)


def test_frequencies_and_classes_are_compared():
    given = [ckce.Fourier(frequencies=np.full((2, 3), x)) for x in (1.0, 2.0)]
    one, two = (CKCEAccumulator(3, method=method) for method in given)
    with pytest.raises(ValueError, match="frequencies must be the same"):
        one.merge(two)
    placed = [ckce.Landmarks(landmarks(3, seed=seed)) for seed in (1, 2)]
    one, two = (CKCEAccumulator(3, bandwidth=0.5, method=method) for method in placed)
    with pytest.raises(ValueError, match=r"^landmarks must be the same to merge, got '\d\("):
        one.merge(two)
    with pytest.raises(ValueError, match="method must be the same to merge, got 'landmarks' and"):
        one.merge(CKCEAccumulator(3, **OPTIONS))
    with pytest.raises(ValueError, match="n_classes must be the same to merge, got 3 and 4"):
        CKCEAccumulator(3, **OPTIONS).merge(CKCEAccumulator(4, **OPTIONS))


def test_a_shard_counts_once():
    y, q = sample(50, 3)
    a, b = filled(y, q, shard_id="a"), filled(y, q, shard_id="b")
    total = a + b + filled(y, q)
    assert total.shards == {"a", "b"}
    for state in (total, pickle.loads(pickle.dumps(total)), total.copy()):
        before = state.to_bytes()
        with pytest.raises(ValueError, match="shard_id 'b' is in both states"):
            state.merge(b)
        with pytest.raises(ValueError, match="shard_id 'a' and 1 more is in both states"):
            state.merge(total)
        assert state.to_bytes() == before
    a.merge(b)
    a.reset()
    assert a.shards == {"a"}
    with pytest.raises(TypeError, match="shard_id must be a string, got 3"):
        CKCEAccumulator(3, shard_id=3)


def test_reset_and_copy():
    y, q = sample(1300, 3)
    acc = filled(y, q)
    for twin in (acc.copy(), copy.copy(acc), copy.deepcopy(acc)):
        twin.update(y, q)
        assert (twin.n_samples, acc.n_samples) == (2600, 1300)
    acc.reset()
    assert acc.n_samples == 0
    assert acc.to_bytes() == CKCEAccumulator(3, **OPTIONS).to_bytes()


@pytest.mark.parametrize("n", [1, 700, 1999, 2000, 2001, 5000])
def test_the_median_of_the_first_rows(n):
    y, q = sample(n, 3)
    acc = CKCEAccumulator(3, bandwidth="median")
    for rows in split(n, [3, 1500, 1998, 2003]):
        acc.update(y[rows], q[rows])
    expected = ckce.median_bandwidth(q[:2000])
    e = acc.evaluate()
    assert e.bandwidth == expected
    assert e.ckce == pytest.approx(ckce.ckce(y, q, method="fourier", bandwidth=expected), rel=1e-12)
    assert acc.bandwidth == (expected if n >= 2000 else None)
    words = "median of the first 2000 rows" if n >= 2000 else ""
    assert words in e.bandwidth_source
    assert acc.n_samples == n
    whole = CKCEAccumulator(3, bandwidth="median")
    whole.update(y, q)
    assert whole.to_bytes() == acc.to_bytes()
    assert CKCEAccumulator.from_bytes(acc.to_bytes()).compute() == acc.compute()
    acc.reset()
    assert acc.bandwidth is None
    assert "unknown yet" in repr(acc)


def test_the_median_of_weighted_and_constant_rows():
    y, q = sample(300, 3)
    w = np.arange(300) % 4
    acc = CKCEAccumulator(3, bandwidth="median")
    acc.update(y[:100], q[:100], w[:100])
    acc.update(y[100:], q[100:], w[100:])
    assert acc.evaluate().bandwidth == ckce.median_bandwidth(q, sample_weight=w)
    flat = CKCEAccumulator(3, bandwidth="median")
    flat.update(y, np.full((300, 3), 1 / 3))
    assert flat.evaluate().bandwidth_source == "no distances"
    hard = np.eye(3)[np.repeat([0, 1], [200, 100])]
    acc = CKCEAccumulator.from_sample(y, hard)
    assert acc.config["bandwidth_source"] == "median>0 of a sample of 300"


@pytest.mark.parametrize("kernel", ["linear_gaussian", "gaussian", "laplace"])
def test_the_default_bandwidth_needs_no_rows(kernel):
    for m in (2, 3, 100):
        acc = CKCEAccumulator(m, kernel=kernel)
        scale = np.sqrt(2) if kernel == "laplace" else 1.0  # of the L1 distance
        assert acc.bandwidth == pytest.approx(scale * (1 - 1.5 / m), rel=1e-15)
        assert acc.config["bandwidth_source"] == "default"
        assert CKCEAccumulator.from_bytes(acc.to_bytes()).config == acc.config
    y, q = sample(300, 3)
    parts = [CKCEAccumulator(3, kernel=kernel) for _ in range(2)]
    for part in parts:
        part.update(y, q)
    e = sum(parts).evaluate()
    assert e.bandwidth_source == "default"
    assert f"|gamma:{e.bandwidth!r}(default)|" in e.signature
    twice = np.tile(y, 2), np.tile(q, (2, 1))
    value = ckce.ckce(*twice, method="fourier", kernel=kernel, bandwidth=e.bandwidth)
    assert e.ckce == pytest.approx(value, rel=1e-12)


def test_an_unknown_bandwidth_is_not_merged():
    y, q = sample(100, 3)
    pending = {"bandwidth": "median"}
    for one, other in [(OPTIONS, pending), (pending, OPTIONS)]:
        with pytest.raises(ValueError, match="bandwidth must be known before merging"):
            CKCEAccumulator(3, **one).merge(CKCEAccumulator(3, **other))
    parts = [CKCEAccumulator.from_sample(y, q) for _ in range(2)]
    assert parts[0].n_samples == 0
    assert parts[0].bandwidth == ckce.median_bandwidth(q)
    for part in parts:
        part.update(y, q)
    assert "(median of a sample of 100)" in sum(parts).evaluate().signature


def test_from_sample_takes_names_of_labels():
    y, q = sample(100, 3)
    names = np.array(["cat", "dog", "owl"])
    with pytest.warns(UserWarning, match="in sorted order, 'cat', 'dog', 'owl'"):
        acc = CKCEAccumulator.from_sample(names[y], q, method=ckce.Fourier(12))
    acc.update(names[y[:1]], q[:1])
    acc.update(names[y[1:]], q[1:])
    assert acc.evaluate().classes == ("cat", "dog", "owl")
    assert acc.compute() == ckce.ckce(y, q, method=ckce.Fourier(12))
    named = CKCEAccumulator.from_sample(names[y], q, labels=names, method=ckce.Fourier(12))
    assert named.config == acc.config
    assert CKCEAccumulator.from_sample(y, q, bandwidth=1).bandwidth == 1.0
    with pytest.raises(TypeError, match="n_classes comes from the sample, got n_classes=3"):
        CKCEAccumulator.from_sample(y, q, n_classes=3)


def test_batches_without_rows():
    acc = CKCEAccumulator(3, **OPTIONS)
    acc.update([], np.zeros((0, 3)))
    acc.update(np.zeros(2, int), np.full((2, 3), 1 / 3), [0, 0])
    assert acc.n_samples == 0
    for call in (acc.compute, acc.evaluate, CKCEAccumulator(3).compute):
        with pytest.raises(ValueError, match="holds no rows yet; call update first"):
            call()


BAD_BATCHES = {
    "y_prob row 1 sums to": ([0, 1], [[0.5, 0.5, 0.0], [0.5, 0.4, 0.0]]),
    "y_true row 0 is 3": ([3, 1], [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]),
    "is nan": ([0, 1], [[0.5, 0.5, 0.0], [0.5, np.nan, 0.5]]),
    r"y_prob must have 3 columns \(n_classes\), got 2": ([0, 1], [[0.5, 0.5], [0.5, 0.5]]),
    "same number of rows": ([0], [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]),
    "must hold integers in a stream, got strings": (["a", "b"], [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]),
}


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("words", BAD_BATCHES)
def test_a_bad_batch_leaves_the_state_as_it_was(words, held):
    y, q = sample(1100, 3)
    acc = CKCEAccumulator(3, bandwidth="median") if held else filled(y, q)
    acc.update(y, q)
    before = acc.to_bytes()
    with pytest.raises(ValueError, match=words):
        acc.update(*BAD_BATCHES[words])
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative"):
        acc.update(y, q, -np.ones(1100))
    assert acc.to_bytes() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_classes": 1}, "n_classes must be at least 2, got 1"),
        ({"kernel": "poly"}, "kernel must be one of"),
        ({"bandwidth": -1.0}, "bandwidth must be positive"),
        ({"bandwidth": "mean"}, "bandwidth must be one of"),
        ({"kernel": "linear", "bandwidth": 1.0}, "kernel='linear' takes no bandwidth"),
        ({"kernel": "linear", "method": ckce.Fourier(7)}, "needs no features, got method=Fourier"),
        (
            {"method": ckce.Fourier(frequencies=np.ones((2, 4)))},
            r"frequencies must have shape \('any', 3\)",
        ),
        (
            {"method": ckce.Fourier(frequencies=np.ones((2, 3))), "bandwidth": 1.0},
            "bandwidth would be ignored",
        ),
        (
            {"kernel": "laplace", "method": ckce.Fourier(sampler="orthogonal")},
            "needs a Gaussian kernel",
        ),
        *(
            ({"method": method}, "method of a stream must be 'exact'")
            for method in ("cholesky", ckce.Cholesky(rank=5))
        ),
        ({"method": "exact"}, "method='exact' of a stream needs two classes and a Gaussian kernel"),
        ({"method": ckce.Exact()}, "of a stream needs two classes and a Gaussian kernel, got 3"),
        ({"method": "blocks"}, "method must be one of"),
        ({"method": "landmarks"}, "landmarks must be given, got 'landmarks': take them from a"),
        ({"method": ckce.Landmarks(50)}, r"landmarks must be given, got Landmarks\(points=50\)"),
        ({"regularization": 0.0}, "regularization must be positive"),
        ({"n_bins": 0}, "n_bins must be at least 1"),
        ({"normalize": True, "input": "logits"}, "normalize=True needs input='probs'"),
        ({"labels": ["a", "b"]}, "labels must name the 3 columns"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        CKCEAccumulator(**{"n_classes": 3, **options})


def test_weights_far_from_one_are_warned_about_once_for_all():
    y, q = sample(100, 3)
    acc = filled(y, q, np.full(100, 0.01))
    with pytest.warns(UserWarning, match="sample_weight has mean 0.01"):
        acc.evaluate()


def test_weights_are_signed_even_if_they_sum_to_the_number_of_rows():
    y, q = sample(100, 3)
    w = np.tile([0.5, 1.5], 50)
    acc = filled(y, q, w)
    for state in (acc, acc.copy(), filled(y, q) + acc, pickle.loads(pickle.dumps(acc))):
        assert "|w:" in state.evaluate().signature
    acc.reset()
    acc.update(y, q, np.ones(100))
    assert acc.evaluate().signature == filled(y, q).evaluate().signature


def test_a_label_of_probability_zero():
    acc = filled(np.array([0, 1]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    e = acc.evaluate()
    assert e.log_loss == np.inf
    assert "a label had probability 0" in repr(e)
    assert e.to_dict()["log_loss"] is None
    assert json.loads(json.dumps(e.to_dict(), allow_nan=False))["ckce"] == e.ckce
    assert CKCEAccumulator.from_bytes(acc.to_bytes()).evaluate().log_loss == np.inf


def test_without_debias():
    y, q = sample(1024, 4)
    light, full = (filled(y, q, debias=debias, method=ckce.Fourier(60)) for debias in (False, True))
    assert light.compute() == full.compute()
    e = light.evaluate()
    assert (e.ckce_floor, e.ckce_debiased) == (None, None)
    assert "debiased" not in repr(e)
    assert len(light.to_bytes()) < 0.6 * len(full.to_bytes())


def test_reliability_diagram_of_a_stream():
    y, q = sample(4000, 3)
    (curve,) = filled(y, q, n_bins=20).evaluate().reliability.curves
    (batch,) = ckce.reliability_diagram(y, q, n_bins=20, strategy="uniform").curves
    for name in ("edges", "counts", "confidence", "frequency", "low", "high", "histogram"):
        assert getattr(curve, name) == pytest.approx(getattr(batch, name), rel=1e-12), name


def test_one_accumulator_in_many_threads():
    y, q = sample(40_000, 4)
    acc = CKCEAccumulator(4, n_threads=1, **OPTIONS)
    seen = []

    def work(first):
        for rows in range(first, 40_000, 8 * 250):
            acc.update(y[rows : rows + 250], q[rows : rows + 250])
        seen.append(acc.compute())

    threads = [threading.Thread(target=work, args=(250 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    assert acc.n_samples == 40_000
    same_numbers(acc, filled(y, q))


def test_threads_that_wait_for_the_median():
    y, q = sample(6000, 3)
    acc = CKCEAccumulator(3, bandwidth="median")
    threads = [threading.Thread(target=acc.update, args=(y[i::12], q[i::12])) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = ckce.ckce(y, q, method="fourier", bandwidth=acc.bandwidth)
    assert acc.n_samples == 6000
    assert acc.compute() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("features", FEATURES)
def test_a_witness_is_of_one_moment(features, monkeypatch):
    """Another thread adds rows as soon as the lock is free: F and its lambda are of the same rows."""
    y, q = sample(300, 2 if features == "cells" else 3)
    acc = filled(y, q, features=features)
    expected = acc.witness()
    current = State.current

    @contextlib.contextmanager
    def meanwhile(state):
        with current(state) as found:
            yield found
        monkeypatch.undo()
        acc.update(y, q)

    monkeypatch.setattr(State, "current", meanwhile)
    found = acc.witness()
    assert acc.n_samples == 600
    assert (found.regularization, found.signature) == (expected.regularization, expected.signature)
    assert np.array_equal(found(q[:5]), expected(q[:5]))


def test_two_that_merge_into_each_other():
    y, q = sample(1500, 3)
    a, b = filled(y, q), filled(y, q)
    threads = [threading.Thread(target=x.merge, args=(z,)) for x, z in [(a, b), (b, a)] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert a.compute() > 0


INTERRUPTED = """
import json, os, signal, threading
import numpy as np
import ckce

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
rng = np.random.default_rng(0)
q = rng.dirichlet(np.ones(10), 300_000)
y = rng.integers(0, 10, 300_000)
acc = ckce.CKCEAccumulator(10, bandwidth=0.5, method=ckce.Fourier(400))
acc.update(y[:3000], q[:3000])
before = acc.to_bytes()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    acc.update(y, q)
    print(json.dumps("finished"))
except KeyboardInterrupt:
    print(json.dumps(acc.to_bytes() == before))
"""


def test_an_interrupted_update_leaves_the_state_as_it_was():
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) is True


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_rows_are_not_widened_as_a_whole(dtype):
    y, q = sample(200_000, 2)
    q = np.round(q * 512).astype(np.float64) / 512
    q[:, 1] = 1 - q[:, 0]
    acc = CKCEAccumulator(2, bandwidth=0.5, method=ckce.Fourier(2), n_threads=1)
    import tracemalloc

    narrow = q.astype(dtype)
    tracemalloc.start()
    acc.update(y, narrow)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000  # 1.6 MB of labels; float64 rows would be 3.2 MB more
    wide = CKCEAccumulator(2, bandwidth=0.5, method=ckce.Fourier(2))
    wide.update(y, q)
    assert acc.to_bytes() == wide.to_bytes()


def test_repr():
    acc = CKCEAccumulator(3, kernel="linear")
    assert repr(acc) == (
        "CKCEAccumulator(n_classes=3, method='linear', kernel='linear', bandwidth=None, "
        "n_samples=0)"
    )


class Subclass(CKCEAccumulator):
    pass


def test_a_subclass_stays_one():
    acc = Subclass(3, **OPTIONS)
    acc.update(*sample(50, 3))
    pickled = pickle.loads(pickle.dumps(acc))
    for twin in (pickled, acc.copy(), acc.fresh(), Subclass.from_bytes(acc.to_bytes()), acc + acc):
        assert type(twin) is Subclass
    assert pickled.to_bytes() == acc.to_bytes()


def test_the_method_is_what_others_need():
    y, q = sample(300, 3)
    for method in (ckce.Fourier(7), ckce.Fourier(frequencies=np.eye(3)), ckce.Landmarks(9)):
        acc = CKCEAccumulator.from_sample(y, q, method=method)
        bandwidth = "median" if acc.bandwidth is None else acc.bandwidth
        twin = CKCEAccumulator(3, method=acc.method, bandwidth=bandwidth)
        for state in (acc, twin):
            state.update(y, q)
        assert acc.merge(twin).n_samples == 600
    assert CKCEAccumulator(3).method == ckce.Fourier()


def test_log_probabilities():
    y, q = sample(300, 3)
    acc = CKCEAccumulator(3, input="log_probs", **OPTIONS)
    acc.update(y, np.log(q))
    assert acc.compute() == pytest.approx(filled(y, q).compute(), rel=1e-12)
    assert "|in:log_probs|" in acc.evaluate().signature


MANY_THREADS = """
import resource, sys
import numpy as np
import ckce
rng = np.random.default_rng(0)
q = rng.dirichlet(np.ones(3), 12 * 1024)
y = rng.integers(0, 3, len(q))
peaks = []
for n_threads in (1, 64):
    acc = ckce.CKCEAccumulator(3, method=ckce.Fourier(2000), bandwidth=0.5, n_threads=n_threads)
    acc.update(y[: 1024 if n_threads == 1 else None], q[: 1024 if n_threads == 1 else None])
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print((peaks[1] - peaks[0]) * (1 if sys.platform == "darwin" else 1024))
"""


def test_sums_that_do_not_fit_are_refused_beforehand(monkeypatch, tmp_path):
    """Every call works on a copy of them; the state stays."""
    y, q = sample(1500, 60)
    accumulators = [filled(y, q, features="fourier"), filled(*sample(1500, 2), features="cells")]
    for acc in accumulators:
        twin, before = acc.copy(), acc.to_bytes()
        calls = {
            "compute": acc.compute,
            "evaluate": acc.evaluate,
            "witness": acc.witness,
            "merge": lambda acc=acc, twin=twin: acc.merge(twin),
            "copy": acc.copy,
            "bytes": acc.to_bytes,
            "save": lambda acc=acc: acc.save(tmp_path / "state"),
        }
        with monkeypatch.context() as patched:
            patched.setattr(_memory, "SMALL", 0.0)
            patched.setattr(_memory, "available_memory", lambda: 1e3)
            for name, call in calls.items():
                with pytest.raises(MemoryError, match=r"of a state of .* needs about"):
                    pytest.fail(f"{name} gave {call()!r}")
            with pytest.raises(MemoryError, match=r"of a state of .* needs about|a state of up to"):
                acc.update(*sample(2000, acc.n_classes))
        assert acc.to_bytes() == before
        assert not (tmp_path / "state").exists()


def test_buffers_of_64_threads_are_capped():
    # Those of one thread take 166 MB here, those of the 12 that have work 2 GB.
    run = subprocess.run(
        [sys.executable, "-c", MANY_THREADS], capture_output=True, text=True, check=True
    )
    assert 0 < int(run.stdout) < 2**30


@pytest.mark.parametrize("options", [{}, {"reduction": ckce.TopK(1)}])
def test_hints_say_where_an_option_goes(options):
    """`update` takes none of them."""
    y, q = sample(200, 3)
    acc = CKCEAccumulator(3, bandwidth=0.5, **options)
    made = "make the accumulator with "
    for arguments, hint in (
        ((y + 1, q), rf"pass y_true - 1, or {made}labels=range\(1, 4\)$"),
        ((y, 0.9 * q), f"{made}normalize=True to rescale; {made}input='logits' if"),
        ((y.astype(str), q), f"{made}labels=, the class of each column$"),
    ):
        with pytest.raises(ValueError, match=hint):
            acc.update(*arguments)
