"""ECE against the oracle, netcal, torchmetrics and numbers computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ckce
from ckce import reference
from ckce._metrics.ece import NORMS, VARIANTS

SCALAR = [variant for variant in VARIANTS if variant != "simplex"]
BINNINGS = [("simplex", "uniform")] + [(v, s) for v in SCALAR for s in ("uniform", "quantile")]


def sample(n=60, m=3, seed=0, concentration=1.0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, m, n), rng.dirichlet(np.full(m, concentration), n)


def close(value, rel=1e-12, abs_=1e-15):
    return pytest.approx(value, rel=rel, abs=abs_)


@st.composite
def calibration_sets(draw):
    n, m = draw(st.integers(1, 14)), draw(st.integers(2, 5))
    # Multiples of 1/8 fall on edges and make ties.
    raw = draw(hnp.arrays(np.float64, (n, m), elements=st.integers(0, 8).map(float)))
    raw[raw.sum(axis=1) == 0] = 1.0
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, m - 1)))
    return y, raw / raw.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("variant", "strategy"), BINNINGS)
@settings(max_examples=30, deadline=None)
@given(data=calibration_sets(), n_bins=st.integers(1, 12), weighted=st.booleans())
def test_equals_the_oracle(variant, strategy, norm, data, n_bins, weighted):
    y, q = data
    weights = 1.0 + np.arange(len(y)) % 3 if weighted else None
    options = {"variant": variant, "strategy": strategy, "norm": norm, "n_bins": n_bins}
    expected = reference.ece(y, q, sample_weight=weights, **options)
    assert ckce.ece(y, q, sample_weight=weights, **options) == close(expected)


@pytest.mark.parametrize(("variant", "strategy"), BINNINGS)
@settings(max_examples=30, deadline=None)
@given(data=calibration_sets(), n_bins=st.integers(1, 6))
def test_debiased_equals_the_oracle(variant, strategy, data, n_bins):
    options = {"variant": variant, "strategy": strategy, "n_bins": n_bins}
    options |= {"norm": "l2_squared", "debias": True}
    assert ckce.ece(*data, **options) == close(reference.ece(*data, **options), abs_=1e-14)


@pytest.mark.parametrize("m", [2, 10, 40])
@pytest.mark.parametrize(("variant", "strategy"), BINNINGS)
def test_more_rows_than_a_block(variant, strategy, m):
    y, q = sample(2500, m, seed=1, concentration=0.3)
    options = {"variant": variant, "strategy": strategy, "n_bins": 7}
    expected = reference.ece(y, q, **options)
    values = {ckce.ece(y, q, n_threads=threads, **options) for threads in (1, 2, 5)}
    assert len(values) == 1
    assert values.pop() == close(expected)


@pytest.mark.parametrize(("variant", "strategy"), BINNINGS)
def test_layout_and_dtype_do_not_change_a_bit(variant, strategy):
    y, q = sample(1500, 4, seed=2)
    half = np.random.default_rng(2).multinomial(64, np.full(4, 0.25), 1500) / np.float16(64)
    for p in (half.astype(np.float16), q.astype(np.float32), q):
        value = ckce.ece(y, p.astype(np.float64), variant=variant, strategy=strategy)
        wide = np.zeros((1500, 8), p.dtype)
        wide[:, ::2] = p
        for layout in (p, np.asfortranarray(p), wide[:, ::2]):
            assert ckce.ece(y, layout, variant=variant, strategy=strategy) == value


@pytest.mark.parametrize(("variant", "strategy"), BINNINGS)
def test_weights_are_repetitions(variant, strategy):
    y, q = sample(50, 3, seed=3, concentration=0.5)
    weights = np.arange(50) % 4
    options = {"variant": variant, "strategy": strategy, "norm": "l2_squared", "debias": True}
    repeated = ckce.ece(np.repeat(y, weights), np.repeat(q, weights, axis=0), n_bins=4, **options)
    assert ckce.ece(y, q, sample_weight=weights, n_bins=4, **options) == close(repeated)


def test_by_hand():
    # Confidences 0.9, 0.6, 0.6 with hits 1, 0, 1: gaps 0.1 in one bin, 0.1 in the other.
    y = [0, 1, 1]
    q = [[0.9, 0.1], [0.6, 0.4], [0.4, 0.6]]
    assert ckce.ece(y, q) == close(0.1)
    assert ckce.ece(y, q, norm="max") == close(0.1)
    assert ckce.ece(y, q, norm="l2") == close(0.1)
    assert ckce.ece(y, q, norm="l2_squared") == close(0.01)
    # Simplex: three bins of one sample each, L1 gaps 0.2, 1.2, 0.8.
    simplex = {"variant": "simplex"}
    assert ckce.ece(y, q, **simplex) == close((0.2 + 1.2 + 0.8) / 3)
    assert ckce.ece(y, q, norm="tv", **simplex) == close((0.2 + 1.2 + 0.8) / 6)
    assert ckce.ece(y, q, norm="max", **simplex) == close(0.6)
    alone = ckce.ece(y, q, norm="l2_squared", debias=True, **simplex)
    assert alone == 0.0  # single samples tell nothing


def test_defaults_are_what_the_world_calls_ece():
    y, q = sample(500, 4)
    assert ckce.ece(y, q) == ckce.ece(y, q, variant="top_label", n_bins=15, norm="l1")
    for variant, bins in (("top_label", 15), ("class_wise", 15), ("simplex", 10)):
        e = ckce.ece_estimate(y, q, variant=variant)
        assert e.n_bins == bins
        assert e == ckce.ece_estimate(y, q, variant=variant, n_bins=bins)
    assert ckce.ece_estimate(y, q).variant == "top_label"


def test_two_classes_count_once():
    rng = np.random.default_rng(3)
    p = rng.random(400)
    y = (rng.random(400) < p**2).astype(int)
    q = np.column_stack([1 - p, p])
    gap = abs(np.mean(q.argmax(axis=1) == y) - np.mean(q.max(axis=1)))
    assert ckce.ece(y, p, n_bins=1) == close(gap)
    assert ckce.ece(y, p, n_bins=1, variant="simplex") == close(2 * abs(y.mean() - p.mean()))


def test_debiased_by_hand():
    # One bin: gap 0.6 - 0.5, variance 0.25 over 3.
    y, q = [0, 0, 1, 1], np.tile([0.6, 0.4], (4, 1))
    options = {"variant": "top_label", "norm": "l2_squared", "debias": True}
    assert ckce.ece(y, q, **options) == close(0.01 - 0.25 / 3)


@pytest.mark.parametrize("n_bins", [1, 2, 3, 7, 10, 15, 49, 100, 1000])
def test_edges_belong_to_the_upper_bin(n_bins):
    edges = np.arange(1, n_bins) / n_bins
    below, above = np.nextafter(edges, 0), np.nextafter(edges, 1)
    p = np.concatenate([[0.0, 1.0], edges, below, above])
    counts = ckce.ece_estimate(
        np.zeros(len(p), int), p, variant="class_wise", n_bins=n_bins
    ).counts[1]
    expected = np.bincount(reference.uniform_bins(p, n_bins), minlength=n_bins)
    assert counts.tolist() == expected.tolist()
    assert counts[0] == 1 + (n_bins == 1) + (n_bins > 1)  # 0.0 and the number below the first edge


@pytest.mark.parametrize("m", [15, 16, 17, 23, 24, 100])
def test_long_rows_are_read_as_short_ones(m):
    # Rows without gaps are compared along themselves, others across: ties go to the first class.
    rng = np.random.default_rng(m)
    y, q = rng.integers(0, 3, 300), np.zeros((300, m))
    for row in q:
        row[rng.choice(m, 4, replace=False)] = 0.25
    q[:m] = np.eye(m)[rng.permutation(m)]
    y[::2] = q.argmax(axis=1)[::2]
    scaled = np.where(q == 0.25, 0.25 + 1e-7 * rng.random(q.shape), q)
    scaled /= scaled.sum(axis=1, keepdims=True)
    for p in (q, scaled, q.astype(np.float32)):
        found = ckce.ece_estimate(y, p, variant="top_label", n_bins=10)
        across = ckce.ece_estimate(y, np.asfortranarray(p), variant="top_label", n_bins=10)
        gapped = ckce.ece_estimate(y, np.repeat(p, 2, axis=0)[::2], variant="top_label", n_bins=10)
        assert found.value == across.value == gapped.value
        assert found.value == close(reference.ece(y, p, variant="top_label", n_bins=10))
        assert np.nansum(found.counts * found.frequency) == close((p.argmax(axis=1) == y).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [10, 16, 21])
def test_every_entry_of_a_row_is_looked_at(m, dtype):
    y, q = sample(200, m)
    q = q.astype(dtype)
    for column in range(m):
        for wrong in (np.nan, np.inf, -0.25):
            bad = q.copy()
            bad[133, column] = wrong
            with pytest.raises(ValueError, match=f"row 133 column {column} is {wrong}"):
                ckce.ece(y, bad, variant="top_label")
        bad = q.copy()
        bad[133, column] += 0.5
        with pytest.raises(ValueError, match=r"row 133 (column \d+ is|sums to) 1\."):
            ckce.ece(y, bad, variant="top_label")


def test_mean_of_the_bin_and_not_its_middle():
    q = [[0.91, 0.09]] * 100
    assert ckce.ece([0] * 91 + [1] * 9, q, variant="top_label", n_bins=2) == close(0.0, abs_=1e-14)


def test_quantile_bins_agree_with_sklearn():
    calibration = pytest.importorskip("sklearn.calibration")
    rng = np.random.default_rng(4)
    p = rng.random(200)
    y = (rng.random(200) < p**2).astype(int)
    frequency, mean = calibration.calibration_curve(y, p, n_bins=10, strategy="quantile")
    e = ckce.ece_estimate(y, p, variant="class_wise", strategy="quantile", n_bins=10)
    assert e.counts[1].tolist() == [20] * 10
    assert e.confidence[1] == close(mean)
    assert e.frequency[1] == close(frequency)


def test_quantile_ties_stay_together():
    p = [0.2] * 7 + [0.9] * 3
    e = ckce.ece_estimate([0] * 10, p, variant="class_wise", strategy="quantile", n_bins=5)
    assert e.counts[1].tolist() == [7, 0, 0, 3, 0]
    assert np.isnan(e.confidence[1][[1, 2, 4]]).all()
    assert (np.diff(e.edges[1]) >= 0).all()
    assert e.edges[1][[0, -1]].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("n_bins", [10, 15])
def test_top_label_equals_netcal(n_bins):
    metrics = pytest.importorskip("netcal.metrics")
    y, q = sample(3000, 5, seed=5)
    expected = metrics.ECE(n_bins).measure(q, y)
    assert ckce.ece(y, q, variant="top_label", n_bins=n_bins) == close(expected)
    expected = metrics.MCE(n_bins).measure(q, y)
    assert ckce.ece(y, q, variant="top_label", n_bins=n_bins, norm="max") == close(expected)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("n_bins", [10, 15])
def test_top_label_equals_torchmetrics(n_bins, norm):
    torch = pytest.importorskip("torch")
    peers = pytest.importorskip("torchmetrics.functional.classification")
    y, q = sample(3000, 5, seed=6)
    expected = peers.multiclass_calibration_error(
        torch.from_numpy(q), torch.from_numpy(y), 5, n_bins=n_bins, norm=norm
    )
    value = ckce.ece(y, q, variant="top_label", n_bins=n_bins, norm=norm)
    assert value == close(float(expected), rel=1e-6)


def test_disagreement_at_edges():
    """On an edge netcal differs: its bins are closed above.

    Bins here, and those of torchmetrics, are [b/B, (b+1)/B): a confidence of 0.6 lies in the bin of
    0.65, for netcal in that of 0.55. Neither is wrong, and away from edges they agree.
    """
    y = np.array([0, 1, 0])
    q = np.array([[0.55, 0.45], [0.6, 0.4], [0.65, 0.35]])
    ours = ckce.ece(y, q, n_bins=10)
    assert ours == close((0.45 + abs(0.6 + 0.65 - 1)) / 3)
    metrics = pytest.importorskip("netcal.metrics")
    assert metrics.ECE(10).measure(q, y) == close((abs(0.55 + 0.6 - 1) + 0.35) / 3)
    torch = pytest.importorskip("torch")
    peers = pytest.importorskip("torchmetrics.functional.classification")
    theirs = peers.multiclass_calibration_error(
        torch.from_numpy(q), torch.from_numpy(y), 2, n_bins=10
    )
    assert ours == close(float(theirs), rel=1e-6)


def test_debiased_is_centred_under_calibration():
    rng = np.random.default_rng(7)
    p = rng.random(200)
    options = {"variant": "class_wise", "norm": "l2_squared", "n_bins": 10}
    plain, debiased = [], []
    for _ in range(300):
        y = (rng.random(200) < p).astype(int)
        plain.append(ckce.ece(y, p, **options))
        debiased.append(ckce.ece(y, p, debias=True, **options))
    se = np.std(debiased) / math.sqrt(300)
    assert abs(np.mean(debiased)) < 4 * se < np.mean(plain) / 4


@pytest.mark.parametrize("variant", VARIANTS)
def test_classes_may_be_permuted(variant):
    y, q = sample(80, 4, seed=8)
    order = np.array([2, 0, 3, 1])
    permuted = ckce.ece(np.argsort(order)[y], q[:, order], variant=variant)
    assert ckce.ece(y, q, variant=variant) == close(permuted)


def test_many_classes_stay_small():
    y, q = sample(2000, 1000, seed=9, concentration=0.01)
    e = ckce.ece_estimate(y, q, variant="simplex")
    assert e.value == close(reference.ece(y, q, variant="simplex", n_bins=10))
    assert e.counts.sum() == 2000
    assert e.mostly_noise
    assert "mostly noise" in repr(e)


def test_estimate_counts_what_it_holds():
    y, q = sample(500, 2, seed=10)
    e = ckce.ece_estimate(y, q, variant="simplex")
    assert float(e) == e.value == ckce.ece(y, q, variant="simplex")
    bins = {tuple(row) for row in reference.uniform_bins(q, 10).tolist()}
    assert e.n_occupied == len(e.counts) == len(bins)
    assert not e.mostly_noise
    assert "mostly noise" not in repr(e)
    three = [0, 1, 1], [[0.9, 0.1], [0.5, 0.5], [0.5, 0.5]]
    single = ckce.ece_estimate(*three, variant="simplex")
    assert (single.n_occupied, single.n_single, single.share_in_small_bins) == (2, 1, 1.0)


def test_class_wise_is_the_mean_of_one_vs_rest():
    y, q = sample(300, 4, seed=11)
    e = ckce.ece_estimate(y, q, variant="class_wise")
    # Two classes: both columns have the same gap, since bins mirror each other away from edges.
    each = [ckce.ece(*reference.one_vs_rest(y, q, j), variant="class_wise") for j in range(4)]
    assert e.per_class == close(np.array(each), rel=1e-10)
    assert e.value == close(e.per_class.mean())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"variant": "top"}, ValueError, "variant must be one of"),
        ({"strategy": "equal"}, ValueError, "strategy must be one of"),
        ({"norm": "l3"}, ValueError, "norm must be one of"),
        ({"norm": 2}, TypeError, "norm must be one of"),
        (
            {"strategy": "quantile", "variant": "simplex"},
            ValueError,
            "strategy='quantile' needs variant='top_label'",
        ),
        ({"debias": True}, ValueError, "debias=True needs norm='l2_squared'"),
        ({"debias": 1, "norm": "l2_squared"}, TypeError, "debias must be True or False"),
        ({"n_bins": 0}, ValueError, "n_bins must be at least 1"),
        ({"n_bins": 2.5}, TypeError, "n_bins must be an integer"),
        ({"n_bins": 10**6}, ValueError, "n_bins must be at most"),
        ({"n_threads": 0}, ValueError, "n_threads must be"),
    ],
)
def test_bad_options(options, error, words):
    with pytest.raises(error, match=words):
        ckce.ece(*sample(), **options)


@pytest.mark.parametrize(("variant", "strategy"), BINNINGS)
def test_bad_numbers_are_named(variant, strategy):
    """The pass that checks while it bins says the same as the door, for any number of threads."""
    y, q = sample(20_000, 3, seed=12)
    faults = {
        "row 9000 column 1 is nan": (9000, 1, np.nan),
        "row 17 column 0 is -0.5": (17, 0, -0.5),
        "row 19999 column 2 is 7": (19_999, 2, 7.0),
        "row 300 sums to": (300, 2, q[300, 2] / 2),
    }
    for words, (row, column, value) in faults.items():
        bad = q.copy()
        bad[row, column] = value
        for threads in (1, 3):
            with pytest.raises(ValueError, match=words):
                ckce.ece(y, bad, variant=variant, strategy=strategy, n_threads=threads)
    labels = y.copy()
    labels[11_000] = 3
    with pytest.raises(ValueError, match=r"y_true row 11000 is 3, expected 0\.\.2"):
        ckce.ece(labels, q, variant=variant, strategy=strategy)


@pytest.mark.parametrize("variant", VARIANTS)
def test_string_labels(variant):
    y, q = sample(40, 3, seed=13)
    names = np.array(["c", "a", "b"])
    value = ckce.ece(names[y], q, labels=names, variant=variant)
    assert value == ckce.ece(y, q, variant=variant)


def test_signature_names_what_changes_the_number():
    y, q = sample(50, 3, seed=14)
    calls = [
        {},
        {"variant": "simplex"},
        {"variant": "class_wise"},
        {"strategy": "quantile"},
        {"norm": "max"},
        {"norm": "l2_squared"},
        {"norm": "l2_squared", "debias": True},
        {"n_bins": 9},
        {"sample_weight": np.arange(50) % 3},
        {"sample_weight": (np.arange(50) + 1) % 3},
        {"normalize": True},
        {"input": "logits"},
    ]
    given = [np.log(q) if "input" in options else q for options in calls]
    signatures = {
        ckce.ece_estimate(y, p, **options).signature
        for p, options in zip(given, calls, strict=True)
    }
    signatures.add(ckce.ece_estimate(y, np.log(q), input="log_probs").signature)
    assert len(signatures) == len(calls) + 1


def test_a_confidence_of_one():
    """In the last bin, with those just below it; torchmetrics gives it a bin of its own."""
    y, q = np.array([1, 0]), np.array([[1.0, 0.0], [0.97, 0.03]])
    assert ckce.ece(y, q) == close(abs(0.5 - 0.985))
    torch = pytest.importorskip("torch")
    peers = pytest.importorskip("torchmetrics.functional.classification")
    theirs = peers.multiclass_calibration_error(torch.from_numpy(q), torch.from_numpy(y), 2)
    assert float(theirs) == close((1.0 + 0.03) / 2, rel=1e-6)


def test_noise_is_said_where_it_is():
    y, q = sample(2000, 12, seed=11)
    assert ckce.ece_estimate(y, q, variant="simplex").mostly_noise
    constant = np.tile(np.bincount(y, minlength=12) / len(y), (len(y), 1))
    assert not ckce.ece_estimate(y, constant, variant="simplex").mostly_noise  # one bin holds all


@pytest.mark.filterwarnings("ignore:sample_weight has mean")
@pytest.mark.parametrize("weight", [0.1, 1 / 3, 0.7, 1.1, 0.001])
def test_quantile_bins_of_equal_weights(weight):
    """B F / N misses whole numbers by rounding where the weights are no short binary fractions."""
    for seed in range(20):
        y, q = sample(30, 3, seed=seed)
        options = {"variant": "class_wise", "strategy": "quantile", "n_bins": 10}
        plain = ckce.ece(y, q, **options)
        weights = np.full(30, weight)
        assert ckce.ece(y, q, sample_weight=weights, **options) == pytest.approx(plain, rel=1e-12)
        bins = reference.quantile_bins(q[:, 0], 10, weights)
        assert np.array_equal(bins, reference.quantile_bins(q[:, 0], 10))
