"""The door: what is let in, and how; what is refused is in test_catalogue.py."""

import numpy as np
import pytest
from catalogue import Q, W, Y, changed, kernel, scaled
from shared import sample

import ckce
from ckce import _core
from ckce._input.words import InputError, InputTypeError, shown


def test_the_first_row_is_named_whatever_the_threads():
    y, q = sample(5000, 3)
    q[[4700, 3100, 2050]] *= 0.9
    for n_threads in (1, 2, 5):
        with pytest.raises(ValueError, match=r"row 2050 sums to 0\.9.* \(3 of 5000 rows do"):
            ckce.ckce(y, q, n_threads=n_threads)


def test_options_are_keywords():
    with pytest.raises(TypeError, match="positional"):
        ckce.ckce(Y, Q, "exact")
    with pytest.raises(TypeError, match="gamma"):
        ckce.ckce(Y, Q, gamma=0.5)
    for function in (ckce.ckce, ckce.ece, ckce.evaluate, ckce.median_bandwidth):
        with pytest.raises(TypeError, match="from_logits"):
            function(*((Q,) if function is ckce.median_bandwidth else (Y, Q)), from_logits=True)


def test_callable_kernels_have_a_limit():
    y, q = sample(20_001, 2)
    with pytest.raises(ValueError, match="n must be at most 20000, got 20001"):
        ckce.ckce(y, q, kernel=kernel)


def test_warnings():
    with pytest.warns(UserWarning, match=r"sample_weight has mean 0\.001"):
        ckce.ckce(Y, Q, sample_weight=W / 1000)
    with pytest.warns(UserWarning, match="sample_weight has mean 1e"):
        ckce.ckce(Y, Q, sample_weight=W * 1000)
    with pytest.warns(RuntimeWarning, match="regularization=1e-09 leaves a condition number"):
        ckce.ckce(Y, Q, regularization=1e-9)


@pytest.mark.parametrize("dtype", ["<f2", ">f2"])
def test_half_precision_rows_may_miss_one(dtype):
    half = Q.astype(dtype)
    assert np.abs(half.astype(np.float64).sum(axis=1) - 1).max() > 1e-5
    value = ckce.ckce(Y, half)
    assert value == pytest.approx(ckce.ckce(Y, Q), rel=1e-2)
    with pytest.raises(ValueError, match="expected 1"):
        ckce.ckce(Y, half.astype(np.float64))
    with pytest.raises(ValueError, match="expected 1"):
        ckce.ckce(Y, (Q * 0.99).astype(dtype))


def test_one_probability_above_one_by_rounding():
    """1 - p is -2e-16 then: no probability of the other class, but no mistake either."""
    p = np.append(Q[:, 1], 1 + 2.2e-16)
    y = np.append(Y % 2, 1)
    assert 1 - p[-1] < 0
    pairs = np.column_stack([np.maximum(1 - p, 0), p])
    for function in (ckce.ckce, ckce.jkce, ckce.ece, ckce.brier):
        assert function(y, p) == pytest.approx(function(y, pairs), rel=1e-12)
    with pytest.raises(ValueError, match="row 20"):
        ckce.ckce(y, np.append(Q[:, 1], 1 + 1e-4))


def test_rows_within_tolerance_are_used_as_they_are():
    off = Q * (1 + 9e-6)
    value = ckce.ckce(Y, off, bandwidth=0.5)
    assert value != ckce.ckce(Y, Q, bandwidth=0.5)
    assert value != ckce.ckce(Y, off, bandwidth=0.5, normalize=True)


def test_normalize_needs_something_to_rescale():
    with pytest.raises(ValueError, match="row 2 sums to 0 and cannot be normalized"):
        ckce.ckce(Y, scaled(2, factor=0), normalize=True)
    with pytest.raises(ValueError, match="negative"):
        ckce.ckce(Y, changed(4, 0, -0.1), normalize=True)
    with pytest.raises(ValueError, match="row 4 column 0 is nan"):
        ckce.ckce(Y, changed(4, 0, np.nan), normalize=True)


def test_logits():
    with pytest.raises(ValueError, match=r"y_prob \(logits\) row 4 holds NaN or inf"):
        ckce.ckce(Y, changed(4, 0, np.nan), input="logits")
    with pytest.raises(ValueError, match=r"y_prob \(logits\) row 4 holds NaN or inf"):
        ckce.ckce(Y, changed(4, 0, np.inf), input="logits")
    minus = Q.copy()
    minus[4] = -np.inf
    with pytest.raises(ValueError, match="row 4 is -inf in every class"):
        ckce.ckce(Y, minus, input="logits")
    sure = np.array([[0.0, -np.inf, -1e308], [1e308, 0.0, 0.0]])
    hard = np.eye(3)[[0, 0]]
    assert ckce.ckce([1, 1], sure, input="logits") == ckce.ckce([1, 1], hard)
    binary = np.array([0.3, -2.0, 5.0])
    expected = ckce.ckce([1, 0, 1], 1 / (1 + np.exp(-binary)))
    assert ckce.ckce([1, 0, 1], binary, input="logits") == pytest.approx(expected, rel=1e-13)


def test_log_probabilities():
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(Q.min() == Q, 0.0, Q))
    rows = np.exp(logs)
    logs -= np.log(rows.sum(axis=1, keepdims=True))
    assert np.isneginf(logs).any()
    assert ckce.ckce(Y, logs, input="log_probs") == ckce.ckce(Y, np.exp(logs))
    binary = np.log([0.3, 0.9, 0.5])
    expected = ckce.ckce([1, 0, 1], np.exp(binary))
    assert ckce.ckce([1, 0, 1], binary, input="log_probs") == expected
    single = np.log(Q).astype(np.float32)
    assert ckce.brier(Y, single, input="log_probs") == pytest.approx(ckce.brier(Y, Q), rel=1e-5)
    for call, words in [
        (lambda: ckce.ckce(Y, Q, input="log_probs"), "expected probabilities|sums to"),
        (lambda: ckce.ckce(Y, np.log(Q) - 0.1, input="log_probs"), "row 0 sums to 0.904"),
        (lambda: ckce.ckce(Y, np.log(Q)), "pass input='log"),
        (lambda: ckce.ckce(Y, np.log(Q) * np.nan, input="log_probs"), "row 0 column 0 is nan"),
        (lambda: ckce.ckce(Y, np.log(Q), input="logprobs"), "input must be one of"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()


def test_errors_keep_problem_and_hints():
    """The command line words its own hints."""
    with pytest.raises(InputError) as caught:
        ckce.ckce(Y, scaled(2))
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.problem == "y_prob row 2 sums to 0.930000, expected 1 (1 of 20 rows do not)"
    assert str(error).startswith(error.problem + "; ")
    assert "normalize" in error.hints
    with pytest.raises(InputTypeError) as caught:
        ckce.ckce(Y, None)
    assert isinstance(caught.value, TypeError)
    assert (caught.value.problem, caught.value.hints) == ("y_prob must be an array, got None", ())


class Tensor:
    """As much of a torch tensor as the door looks at."""

    class Device:
        def __init__(self, kind):
            self.type = kind

        def __str__(self):
            return self.type

    def __init__(self, values, device="cpu", dtype="torch.float64", attached=True):
        self.values, self.dtype, self.attached = values, dtype, attached
        self.device = self.Device(device)

    def detach(self):
        return Tensor(self.values, self.device.type, self.dtype, attached=False)

    def float(self):
        return Tensor(self.values.astype(np.float32), dtype="torch.float32", attached=False)

    def __array__(self, dtype=None, copy=None):
        if self.attached or self.dtype == "torch.bfloat16":
            raise RuntimeError("no numpy view of this tensor")
        return self.values


def test_tensors():
    assert ckce.ckce(Tensor(Y), Tensor(Q)) == ckce.ckce(Y, Q)
    rounded = Q.astype(np.float16).astype(np.float32)  # coarse, as bfloat16 is
    value = ckce.ckce(Y, Tensor(rounded, dtype="torch.bfloat16"))
    assert value == ckce.ckce(Y, rounded.astype(np.float16))
    with pytest.raises(TypeError, match=r"y_prob must be on the CPU, got a tensor on cuda.*\.cpu"):
        ckce.ckce(Y, Tensor(Q, device="cuda"))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_name_their_columns(library):
    frames = pytest.importorskip(library)
    names = np.array(["a", "b", "c"])

    def frame(columns):
        return frames.DataFrame({name: Q[:, k] for k, name in enumerate(columns)})

    words = frames.Series(names[Y])
    assert ckce.ckce(frames.Series(Y), frame("abc")) == ckce.ckce(Y, Q)
    assert ckce.ckce(words, frame("abc")) == ckce.ckce(Y, Q)  # without a warning: the columns tell
    with pytest.raises(ValueError, match="columns of y_prob must be in the order of the classes"):
        ckce.ckce(words, frame("cab"))
    turned = frames.Series(np.array(["c", "a", "b"])[Y])
    assert ckce.ckce(turned, frame("cab"), labels=["c", "a", "b"]) == ckce.ckce(Y, Q)


def test_long_values_are_cut_and_numpy_scalars_are_plain():
    assert shown(np.str_("1.0")) == "'1.0'"
    assert shown(np.int64(3)) == "3"
    assert shown(10**400) == "1" + 39 * "0" + "... (401 characters)"
    assert shown(10**5000) == "an integer of thousands of digits"
    with pytest.raises(ValueError, match=r"y_true row 0 is '1\.0', which is not in labels"):
        ckce.ckce(np.array(["1.0"] * len(Y)), Q, labels=["a", "b", "c"])
    for option in ("bandwidth", "regularization", "random_state", "n_threads"):
        with pytest.raises(ValueError, match=f"{option} must be .*, got an integer of thousands"):
            ckce.ckce(Y, Q, **{option: 10**5000})
    with pytest.raises(ValueError, match="n_frequencies must be below"):
        ckce.Fourier(10**400)
    with pytest.raises(ValueError, match=r"labels are 0, 1, an integer of thousands of digits$"):
        ckce.ckce(Y, Q, labels=[0, 1, 10**5000])
    names = [f"class {j}" for j in range(len(Q[0]))]
    with pytest.raises(ValueError, match=r"labels are 'class 0', 'class 1', 'class 2'$"):
        ckce.ckce(Y, Q, labels=names)


def test_bytes_are_text():
    names = np.array([b"cat", b"dog", "\u00e9el".encode()])
    with pytest.warns(UserWarning, match="sorted order, 'cat', 'dog', '\u00e9el'"):
        assert ckce.ckce(names[Y], Q) == ckce.ckce(Y, Q)
    assert ckce.ckce(names[Y], Q, labels=names) == ckce.ckce(Y, Q)


def test_a_list_of_strings_and_numbers_keeps_its_kinds():
    """NumPy writes NaN among strings as 'nan', and 1 as '1'."""
    y, q = sample(60, 3)
    ids = [str(i % 20) for i in range(60)]
    for i, wrong in ((3, float("nan")), (4, None)):
        with pytest.raises(ValueError, match=f"groups row {i} is missing"):
            ckce.estimate(y, q, groups=[*ids[:i], wrong, *ids[i + 1 :]])
    mixed = [i % 20 if i % 2 else f"{i % 20 + 1}" for i in range(60)]
    assert ckce.estimate(y, q, groups=mixed).n_groups == 20


def test_the_core_refuses_rows_without_columns():
    """A look at the first column would read past the end; the Python door never lets them in."""
    labels = np.zeros(3, np.int64)
    for call in (
        lambda q: _core.validate(q, labels, sum_tolerance=1e-6, n_threads=1),
        lambda q: _core.top_k(q, labels, k=1, sum_tolerance=1e-6, n_threads=1),
    ):
        with pytest.raises(TypeError, match="of at least one column"):
            call(np.empty((3, 0)))


def test_order_is_suspected_of_words_only():
    """Of predictions with holes, or of another kind, the order of the arguments is no cause."""
    names = np.array(["a", "b", "c"])[Y]
    with pytest.raises(
        TypeError, match=r"real numbers, got dtype <U1; labels come first: \(y_true"
    ):
        ckce.ckce(Y, names)
    for wrong in (Q.astype(object), Q.astype(str), [[{}, {}]] * 20):
        with pytest.raises(TypeError, match="y_prob must hold real numbers, got dtype") as caught:
            ckce.ckce(Y, wrong)
        assert "labels come first" not in str(caught.value)


def test_strings_and_one_column():
    """A column of probabilities is of the second of two strings, which is said."""
    p = np.full(40, 0.7)
    y = np.where(np.arange(40) % 3 == 0, "fraud", "ok")
    said = (
        "y_prob is taken as the probability of 'ok', the second in sorted order; pass "
        r"labels=\['fraud', 'ok'\] if it is, labels=\['ok', 'fraud'\] if not$"
    )
    with pytest.warns(UserWarning, match=said):
        value = ckce.log_loss(y, p)
    assert value == ckce.log_loss(y, p, labels=["fraud", "ok"])
    with pytest.raises(
        ValueError, match=r"two distinct strings if y_prob has one column, got 3; pass"
    ):
        ckce.log_loss(np.array(["a", "b", "c"]), p[:3])
