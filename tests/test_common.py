"""Laws that every metric, method and kernel obeys."""

import numpy as np
import pandas as pd
import pytest
from shared import agree, label_kernel, reordered, sample

import ckce


def test_row_order(metric):
    y, q = sample(150, 4)
    rows = np.random.default_rng(1).permutation(len(y))
    if metric.method == "cholesky":
        # Where k(q, q) is the same for all rows, the first row is the first pivot.
        rows = np.append(0, rows[rows > 0])
    agree(metric(y[rows], q[rows]), metric(y, q), metric.scale(y, q))


def test_class_order(metric):
    y, q = sample(150, 4)
    classes = np.array([2, 0, 3, 1])
    options = metric.options(4)
    if "method" in options:  # frequencies and landmarks belong to columns
        options["method"] = reordered(options["method"], classes)
    value = metric.public(np.argsort(classes)[y], q[:, classes], **options)
    agree(value, metric(y, q), metric.scale(y, q))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ">f2", ">f4", ">f8", np.longdouble])
def test_dtype_equals_its_float64_copy_bit_for_bit(metric, dtype):
    y, q = sample(150, 4)
    q = np.round(q * 512) / 512  # exact in float16
    q[np.arange(150), q.argmax(axis=1)] += 1 - q.sum(axis=1)
    narrow = q.astype(dtype)
    assert metric(y, narrow) == metric(y, narrow.astype(np.float64))
    rounded = sample(150, 4)[1].astype(np.float32)
    assert metric(y, rounded) == metric(y, rounded.astype(np.float64))


def test_integer_predictions_equal_their_float64_copy(metric):
    y = np.arange(50) % 3
    for dtype in (bool, np.int8, np.int64, np.uint16):
        hard = np.eye(4, dtype=dtype)[np.arange(50) % 4]
        assert metric(y, hard) == metric(y, hard.astype(np.float64))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, ">i4"])
def test_label_dtype(metric, dtype):
    y, q = sample(60, 4)
    assert metric(y.astype(dtype), q) == metric(y, q)


def _layouts(y, q, path):
    n, m = q.shape
    wide = np.zeros((2 * n, 3 * m))
    wide[::2, ::3] = q
    unaligned = np.zeros(n * m * 8 + 1, np.uint8)[1:].view(np.float64).reshape(n, m)
    unaligned[:] = q
    y_unaligned = np.zeros(n * 8 + 1, np.uint8)[1:].view(np.int64)
    y_unaligned[:] = y
    frozen = q.copy()
    frozen.flags.writeable = False
    mapped = np.memmap(path, np.float64, "w+", shape=(n, m))
    mapped[:] = q
    mapped.flush()
    y_wide = np.repeat(y, 3)
    y_frozen = y.copy()
    y_frozen.flags.writeable = False
    return {
        "fortran": (y, np.asfortranarray(q)),
        "strided": (y_wide[::3], wide[::2, ::3]),
        "reversed": (y[::-1].copy()[::-1], q[::-1, ::-1].copy()[::-1, ::-1]),
        "unaligned": (y_unaligned, unaligned),
        "big-endian": (y.astype(">i8"), q.astype(">f8")),
        "read-only": (y_frozen, frozen),
        "memory-mapped": (y, np.memmap(path, np.float64, "r", shape=(n, m))),
        "lists": (y.tolist(), q.tolist()),
        "tuples": (tuple(y.tolist()), tuple(map(tuple, q.tolist()))),
        "pandas": (pd.Series(y, index=y[::-1] + 5), pd.DataFrame(q, columns=list("abcd"))),
        "subclass": (y, q.view(np.matrix)),
    }


def test_layout_does_not_change_a_bit(metric, tmp_path):
    y, q = sample(150, 4)
    value = metric(y, q)
    before = y.copy(), q.copy()
    for name, (labels, probs) in _layouts(y, q, tmp_path / "q.bin").items():
        assert metric(labels, probs) == value, name
    assert np.array_equal(y, before[0])
    assert np.array_equal(q, before[1])


def test_broadcast_predictions(metric):
    y = np.arange(30) % 3
    row = np.array([0.5, 0.25, 0.25])
    assert metric(y, np.broadcast_to(row, (30, 3))) == metric(y, np.tile(row, (30, 1)))


def test_weights_of_one_are_none_bit_for_bit(metric):
    y, q = sample(150, 4)
    assert metric(y, q, sample_weight=np.ones(150)) == metric(y, q)
    assert metric(y, q, sample_weight=[1] * 150) == metric(y, q)


def test_integer_weights_are_repetitions(metric):
    y, q = sample(60, 4)
    w = np.random.default_rng(2).integers(0, 4, 60)
    repeated = np.repeat(y, w), np.repeat(q, w, axis=0)
    agree(metric(y, q, sample_weight=w), metric(*repeated), metric.scale(*repeated))


def test_integer_weights_are_repetitions_under_a_label_kernel(case):
    y, q = sample(60, 4)
    w = np.random.default_rng(2).integers(0, 4, 60)
    options = {"label_kernel": label_kernel(4)}
    repeated = np.repeat(y, w), np.repeat(q, w, axis=0)
    value = case(*repeated, **options)
    agree(case(y, q, sample_weight=w, **options), value, case.scale(*repeated, **options))


def test_weight_zero_drops_the_row_bit_for_bit(metric):
    y, q = sample(150, 4)
    w = np.random.default_rng(3).uniform(0.5, 2, 150)
    w[[0, 7, 8, 149]] = 0
    kept = w > 0
    assert metric(y, q, sample_weight=w) == metric(y[kept], q[kept], sample_weight=w[kept])


def test_fractional_weights(metric):
    y, q = sample(60, 4)
    metric.check(y, q, sample_weight=np.random.default_rng(4).uniform(0.2, 3, 60))


def test_weights_in_the_default_bandwidth():
    y, q = sample(60, 4)
    w = np.random.default_rng(5).integers(0, 4, 60)
    value = ckce.ckce(np.repeat(y, w), np.repeat(q, w, axis=0))
    agree(ckce.ckce(y, q, sample_weight=w), value, value)


@pytest.mark.parametrize("n", [700, 2500])
def test_threads_do_not_change_a_bit(metric, n):
    y, q = sample(n, 5)
    value = metric(y, q, n_threads=1)
    for n_threads in (2, 3, 5, 8):
        assert metric(y, q, n_threads=n_threads) == value


def test_threads_do_not_change_a_bit_of_the_median():
    _, q = sample(2500, 5)
    values = {ckce.median_bandwidth(q, n_threads=t) for t in (1, 2, 3, 5, 8)}
    assert len(values) == 1


def test_threads_from_the_environment(metric, monkeypatch):
    y, q = sample(300, 4)
    value = metric(y, q)
    monkeypatch.setenv("CKCE_NUM_THREADS", "3")
    assert metric(y, q) == value
    monkeypatch.setenv("CKCE_NUM_THREADS", "many")
    with pytest.raises(ValueError, match=r"CKCE_NUM_THREADS must be .* got 'many'"):
        metric(y, q)
    assert metric(y, q, n_threads=2) == value


def test_label_kernel_identity_is_none(case):
    y, q = sample(60, 4)
    agree(case(y, q, label_kernel=np.eye(4)), case(y, q), case.scale(y, q))


def test_linear_in_the_label_kernel(case):
    y, q = sample(60, 4)
    first, second = label_kernel(4, seed=1), label_kernel(4, seed=2, rank=2)
    both = 2 * first + 3 * second
    expected = 2 * case(y, q, label_kernel=first) + 3 * case(y, q, label_kernel=second)
    agree(case(y, q, label_kernel=both), expected, case.scale(y, q, label_kernel=both))


def test_constant_label_kernel_sees_nothing(case):
    y, q = sample(60, 4)  # r sums to 0
    agree(case(y, q, label_kernel=np.ones((4, 4))), 0.0, 4 * case.scale(y, q))


def test_value_is_a_python_float(metric):
    assert type(metric(*sample(20, 3))) is float


def test_two_classes_as_one_column(metric):
    y, q = sample(40, 2)
    positive = q[:, 1].copy()
    two_columns = np.column_stack([1 - positive, positive])
    value = metric(y, two_columns)
    options = metric.options(2)
    assert metric.public(y, positive, **options) == value
    assert metric.public(y.astype(bool), positive.tolist(), **options) == value
    single = positive.astype(np.float32)
    widened = single.astype(np.float64)
    expected = metric(y, np.column_stack([1 - widened, widened]))
    assert metric.public(y, single, **options) == expected


def test_names_of_labels(metric):
    y, q = sample(40, 3)
    names = np.array(["cat", "dog", "owl"])
    value = metric(y, q)
    named = pd.DataFrame(q, columns=names)
    for labels in (names[y], names[y].astype(object), names[y].tolist(), pd.Series(names[y])):
        assert metric(labels, q, labels=names) == value
        assert metric(labels, named) == value
        with pytest.warns(UserWarning, match="in sorted order, 'cat', 'dog', 'owl'; pass labels="):
            assert metric(labels, q) == value
    with pytest.warns(UserWarning, match="in sorted order"):
        assert metric(pd.Categorical(names[y]), q) == value
    assert metric(np.array(["b", "a", "c"])[y], q, labels=["b", "a", "c"]) == value
    assert metric(y + 1, q, labels=range(1, 4)) == value
    assert metric(y * 0.5, q, labels=[0.0, 0.5, 1.0]) == value


def test_logits(metric):
    y, q = sample(40, 3)
    logits = np.log(q) + np.arange(40)[:, None]
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    softmax = powers / powers.sum(axis=1, keepdims=True)
    assert metric(y, logits, input="logits") == metric(y, softmax)


def test_log_probabilities(metric):
    y, q = sample(40, 3)
    q[3] = [0.0, 0.5, 0.5]
    with np.errstate(divide="ignore"):
        logs = np.log(q)
    assert metric(y, logs, input="log_probs") == metric(y, np.exp(logs))


def test_normalize(metric):
    y, q = sample(40, 3)
    scaled = q * np.linspace(0.5, 40, 40)[:, None]
    assert metric(y, scaled, normalize=True) == metric(
        y, scaled / scaled.sum(axis=1, keepdims=True)
    )
