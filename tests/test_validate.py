"""The door: what is refused, with which words; what is let in."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from shared import sample

import ckce

Y, Q = sample(20, 3)
METRICS = [ckce.ckce, ckce.estimate, ckce.jkce]


def changed(row, column, value):
    q = Q.copy()
    q[row, column] = value
    return q


def scaled(*rows, factor=0.93):
    q = Q.copy()
    q[list(rows)] *= factor
    return q


def relabelled(row, value):
    y = Y.copy()
    y[row] = value
    return y


LOGITS = np.random.default_rng(0).normal(size=(20, 3)) * 3
MASKED = np.ma.masked_array(Q, mask=Q > 0.9)

# name: (y_true, y_prob), exception, fragments of the message
BAD_DATA = {
    "NaN": (
        (Y, changed(17, 1, np.nan)),
        ValueError,
        ["y_prob row 17 column 1 is nan", "1 entries"],
    ),
    "inf": ((Y, changed(3, 2, np.inf)), ValueError, ["y_prob row 3 column 2 is inf"]),
    "-inf": ((Y, changed(3, 2, -np.inf)), ValueError, ["y_prob row 3 column 2 is -inf"]),
    "negative": ((Y, changed(4, 0, -0.01)), ValueError, ["row 4 column 0 is -0.01", "from_logits"]),
    "above one": ((Y, changed(4, 0, 1.5)), ValueError, ["row 4 column 0 is 1.5", "above 1"]),
    "percentages": ((Y, 100 * Q), ValueError, ["expected probabilities", "divide by 100"]),
    "row sum": (
        (Y, scaled(17, 18, 19)),
        ValueError,
        ["y_prob row 17 sums to 0.930000, expected 1 (3 of 20 rows do", "normalize=True"],
    ),
    "row sum, float32": ((Y, scaled(2).astype(np.float32)), ValueError, ["row 2 sums to 0.93"]),
    "row sum off by 2e-5": ((Y, scaled(5, factor=1 + 2e-5)), ValueError, ["row 5 sums to 1.00002"]),
    "logits": ((Y, LOGITS), ValueError, ["from_logits=True"]),
    "label too large": ((relabelled(6, 7), Q), ValueError, ["y_true row 6 is 7, expected 0..2"]),
    "label negative": ((relabelled(6, -1), Q), ValueError, ["y_true row 6 is -1", "1 of 20 rows"]),
    "labels 1-based": ((Y + 1, Q), ValueError, ["1-based", "labels=range(1, 4)"]),
    "label huge": ((Y.astype(np.uint64) + 2**63, Q), ValueError, ["y_true must be in 0..2"]),
    "labels float": ((Y.astype(float), Q), TypeError, ["y_true must hold integers", "astype(int)"]),
    "labels complex": ((Y.astype(complex), Q), TypeError, ["y_true must hold integers"]),
    "labels boolean": ((Y > 0, Q), ValueError, ["y_true is boolean, but y_prob has 3 columns"]),
    "labels None": ((None, Q), TypeError, ["y_true must be an array, got None"]),
    "labels objects": ((np.array([None] * 20), Q), TypeError, ["y_true must hold integers"]),
    "labels dates": ((np.zeros(20, "M8[s]"), Q), TypeError, ["y_true must hold integers"]),
    "labels masked": ((np.ma.masked_array(Y, Y > 1), Q), TypeError, ["y_true", "masked"]),
    "labels one-hot": ((np.eye(3, dtype=int)[Y], Q), ValueError, ["y_true.argmax(axis=1)"]),
    "labels 0-d": ((np.int64(1), Q), ValueError, ["y_true must have shape (n_samples,), got ()"]),
    "labels 3-d": ((np.zeros((20, 1, 1), int), Q), ValueError, ["y_true must have shape"]),
    "too few strings": ((["a", "b"] * 10, Q), ValueError, ["2 distinct strings", "labels="]),
    "swapped": ((Q, Y), ValueError, ["look swapped", "labels come first"]),
    "swapped, binary": ((Q[:, 1], Y % 2), TypeError, ["labels come first"]),
    "swapped, strings": ((Q, np.array(["a"] * 20)), ValueError, ["look swapped"]),
    "lengths": ((Y[:-1], Q), ValueError, ["same number of rows, got 19 and 20"]),
    "y_prob 3-d": ((Y, Q[None]), ValueError, ["y_prob must have shape", "(1, 20, 3)"]),
    "y_prob 0-d": ((Y, 0.5), ValueError, ["y_prob must have shape"]),
    "y_prob one column": ((Y, Q[:, :1]), ValueError, ["at least 2 columns", "1-D"]),
    "y_prob masked": ((Y, MASKED), TypeError, ["y_prob must not be a masked array"]),
    "y_prob object": ((Y, Q.astype(object)), TypeError, ["y_prob", "dtype object"]),
    "y_prob complex": ((Y, Q.astype(complex)), TypeError, ["y_prob", "dtype complex128"]),
    "y_prob strings": ((Y, Q.astype(str)), TypeError, ["y_prob must hold real numbers"]),
    "y_prob None": ((Y, None), TypeError, ["y_prob must be an array, got None"]),
    "y_prob sparse": ((Y, scipy.sparse.csr_matrix(Q)), TypeError, ["y_prob must be dense"]),
    "y_prob sparse array": ((Y, scipy.sparse.coo_array(Q)), TypeError, [".toarray()"]),
    "y_prob ragged": (([0, 1], [[0.5, 0.5], [1.0]]), ValueError, ["y_prob must be a rectangular"]),
    "y_true ragged": (([[0], [1, 2]], Q[:2]), ValueError, ["y_true must be a rectangular"]),
    "empty": ((Y[:0], Q[:0]), ValueError, ["y_prob must have at least one row, got shape (0, 3)"]),
    "empty lists": (([], []), ValueError, ["y_prob must have at least one row"]),
    "no columns": ((Y, Q[:, :0]), ValueError, ["at least 2 columns"]),
    "1-D above one": ((Y % 2, np.append(Q[:-1, 0], 1.5)), ValueError, ["row 19"]),
    "1-D NaN": ((Y % 2, np.append(Q[:-1, 0], np.nan)), ValueError, ["row 19", "nan"]),
    "pandas NaN": ((Y, pd.DataFrame(changed(2, 2, np.nan))), ValueError, ["row 2 column 2 is nan"]),
}


@pytest.mark.parametrize("function", METRICS)
@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data(function, name):
    (y, q), error, fragments = BAD_DATA[name]
    with pytest.raises(error) as caught:
        function(y, q)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_the_first_row_is_named_whatever_the_threads():
    y, q = sample(5000, 3)
    q[[4700, 3100, 2050]] *= 0.9
    for n_threads in (1, 2, 5):
        with pytest.raises(ValueError, match=r"row 2050 sums to 0\.9.* \(3 of 5000 rows do"):
            ckce.ckce(y, q, n_threads=n_threads)


def kernel(p, q):
    return np.exp(-np.abs(p[:, None] - q[None]).sum(axis=2))


W = np.ones(20)
FOURIER, CHOLESKY, EXACT = ({"method": method} for method in ("fourier", "cholesky", "exact"))
FREQUENCIES = np.ones((4, 3))
NOT_PSD = np.diag([1.0, 1.0, -1.0])

# options of ckce.ckce and ckce.estimate, exception, fragment
BAD_OPTIONS = [
    ({"method": "rff"}, ValueError, "method must be one of"),
    ({"method": None}, TypeError, "method must be one of"),
    ({"kernel": "rbf"}, ValueError, "kernel must be one of"),
    ({"kernel": 3}, TypeError, "kernel must be one of"),
    ({"pivoting": "best"}, ValueError, "pivoting must be one of"),
    ({"sampler": "halton"}, ValueError, "sampler must be one of"),
    # bandwidth, regularization, tol
    ({"bandwidth": 0}, ValueError, "bandwidth must be positive and finite, got 0"),
    ({"bandwidth": -1.0}, ValueError, "bandwidth must be positive and finite, got -1.0"),
    ({"bandwidth": np.nan}, ValueError, "bandwidth must be positive and finite, got nan"),
    ({"bandwidth": np.inf}, ValueError, "bandwidth must be positive and finite"),
    ({"bandwidth": "mean"}, ValueError, "bandwidth must be one of ['median'], got 'mean'"),
    ({"bandwidth": None}, TypeError, "bandwidth must be a number, got None"),
    ({"bandwidth": True}, TypeError, "bandwidth must be a number, got True"),
    ({"bandwidth": 1j}, TypeError, "bandwidth must be a number, got 1j"),
    ({"bandwidth": np.complex128(1)}, TypeError, "bandwidth must be a number"),
    ({"bandwidth": [0.5]}, TypeError, "bandwidth must be a number"),
    ({"regularization": 0.0}, ValueError, "regularization must be positive and finite, got 0.0"),
    ({"regularization": -1}, ValueError, "regularization must be positive and finite, got -1"),
    ({"regularization": np.nan}, ValueError, "regularization must be positive and finite"),
    ({"regularization": 1e-13}, ValueError, "regularization must be at least 1e-12, got 1e-13"),
    ({"regularization": "0.1"}, TypeError, "regularization must be a number"),
    ({**EXACT, "tol": 0.0}, ValueError, "tol must be positive and finite, got 0.0"),
    ({**CHOLESKY, "tol": -1.0}, ValueError, "tol must be positive and finite"),
    ({**CHOLESKY, "rank": 0}, ValueError, "rank must be at least 1, got 0"),
    ({**CHOLESKY, "rank": 2.0}, TypeError, "rank must be an integer"),
    ({**FOURIER, "n_frequencies": 0}, ValueError, "n_frequencies must be at least 1"),
    ({**FOURIER, "n_frequencies": 10.0}, TypeError, "n_frequencies must be an integer"),
    # options that the method would have to ignore
    ({**FOURIER, "kernel": "linear"}, ValueError, "kernel='linear' has no Fourier features"),
    ({**FOURIER, "rank": 5}, ValueError, "rank belongs to method='cholesky'"),
    ({**FOURIER, "tol": 1e-3}, ValueError, "tol belongs to method='exact' or 'cholesky'"),
    ({**FOURIER, "pivoting": "random"}, ValueError, "pivoting belongs to method='cholesky'"),
    ({**EXACT, "rank": 5}, ValueError, "rank belongs to method='cholesky', got method='exact'"),
    ({**EXACT, "n_frequencies": 50}, ValueError, "n_frequencies belongs to method='fourier'"),
    ({**EXACT, "sampler": "sobol"}, ValueError, "sampler belongs to method='fourier'"),
    ({**EXACT, "frequencies": FREQUENCIES}, ValueError, "frequencies belongs to method='fourier'"),
    ({**CHOLESKY, "n_frequencies": 50}, ValueError, "n_frequencies belongs to method='fourier'"),
    ({"rank": 5}, ValueError, "name the method to set it"),
    ({"tol": 1e-3}, ValueError, "name the method to set it"),
    ({"kernel": "linear", "bandwidth": 0.5}, ValueError, "kernel='linear' takes no bandwidth"),
    ({"kernel": kernel, "bandwidth": 0.5}, ValueError, "a callable kernel takes no bandwidth"),
    ({"kernel": kernel, **FOURIER}, ValueError, "a callable kernel needs method='exact'"),
    ({"kernel": kernel, **CHOLESKY}, ValueError, "a callable kernel needs method='exact'"),
    (
        {**FOURIER, "kernel": "laplace", "sampler": "orthogonal"},
        ValueError,
        "sampler='orthogonal' needs a Gaussian kernel",
    ),
    (
        {**FOURIER, "frequencies": FREQUENCIES, "bandwidth": 0.5},
        ValueError,
        "frequencies are used as given, so bandwidth would be ignored, got bandwidth=0.5",
    ),
    (
        {**FOURIER, "frequencies": FREQUENCIES, "n_frequencies": 7},
        ValueError,
        "n_frequencies",
    ),
    ({**FOURIER, "frequencies": FREQUENCIES, "sampler": "sobol"}, ValueError, "sampler"),
    # frequencies
    ({**FOURIER, "frequencies": np.ones((4, 2))}, ValueError, "frequencies must have shape"),
    ({**FOURIER, "frequencies": np.ones(3)}, ValueError, "frequencies must have shape"),
    ({**FOURIER, "frequencies": np.ones((0, 3))}, ValueError, "frequencies must not be empty"),
    ({**FOURIER, "frequencies": FREQUENCIES * np.nan}, ValueError, "frequencies must be finite"),
    ({**FOURIER, "frequencies": FREQUENCIES * 1j}, TypeError, "frequencies must hold real numbers"),
    # callables
    ({"kernel": lambda p, q: np.ones(3)}, ValueError, "kernel(P, P) must have shape (20, 20)"),
    ({"kernel": lambda p, q: p @ q.T * np.nan}, ValueError, "kernel(P, P) must be finite"),
    (
        {"kernel": lambda p, q: p @ np.triu(np.ones((3, 3))) @ q.T},
        ValueError,
        "kernel(P, P) must be symmetric",
    ),
    # label kernel
    ({"label_kernel": np.eye(4)}, ValueError, "label_kernel must have shape (3, 3), got (4, 4)"),
    ({"label_kernel": np.triu(np.ones((3, 3)))}, ValueError, "label_kernel must be symmetric"),
    ({"label_kernel": NOT_PSD}, ValueError, "label_kernel must be positive semi-definite"),
    ({"label_kernel": np.zeros((3, 3))}, ValueError, "label_kernel must be positive"),
    ({"label_kernel": "identity"}, TypeError, "label_kernel must hold real numbers"),
    # weights
    ({"sample_weight": W[:-1]}, ValueError, "sample_weight must have shape (20,), got (19,)"),
    ({"sample_weight": W[:, None]}, ValueError, "sample_weight must have shape (20,)"),
    ({"sample_weight": 1.0}, ValueError, "sample_weight must have shape (20,), got ()"),
    ({"sample_weight": np.append(W[1:], -1)}, ValueError, "row 19 is -1.0"),
    ({"sample_weight": np.append(W[1:], np.nan)}, ValueError, "row 19 is nan"),
    ({"sample_weight": np.append(W[1:], np.inf)}, ValueError, "row 19 is inf"),
    ({"sample_weight": 0 * W}, ValueError, "sample_weight must not be zero everywhere"),
    ({"sample_weight": W.astype(str)}, TypeError, "sample_weight must hold real numbers"),
    ({"sample_weight": W * 1j}, TypeError, "sample_weight must hold real numbers"),
    (
        {"sample_weight": np.ma.masked_array(W, W > 0)},
        TypeError,
        "sample_weight must not be a mask",
    ),
    # labels
    ({"labels": [0, 1]}, ValueError, "labels must name the 3 columns of y_prob"),
    ({"labels": [0, 1, 1]}, ValueError, "labels must be distinct, got [0, 1, 1]"),
    ({"labels": [1, 2, 3]}, ValueError, "which is not in labels"),
    ({"labels": "abc"}, ValueError, "labels must name the 3 columns"),
    # the rest
    ({"random_state": None}, TypeError, "random_state must be an integer, got None"),
    ({"random_state": 1.0}, TypeError, "random_state must be an integer, got 1.0"),
    ({"random_state": np.random.default_rng(0)}, TypeError, "numpy generators are not stable"),
    ({"random_state": -1}, ValueError, "random_state must be in [0, 2**64), got -1"),
    ({"random_state": 2**64}, ValueError, "random_state must be in [0, 2**64)"),
    ({"n_threads": 0}, ValueError, "n_threads must be an integer from 1 to 1024, got 0"),
    ({"n_threads": -1}, ValueError, "n_threads must be an integer from 1 to 1024, got -1"),
    ({"n_threads": 2.0}, ValueError, "n_threads must be an integer from 1 to 1024, got 2.0"),
    ({"n_threads": True}, ValueError, "n_threads must be an integer from 1 to 1024, got True"),
    ({"n_threads": 10**6}, ValueError, "n_threads must be an integer from 1 to 1024"),
    ({"normalize": 1}, TypeError, "normalize must be True or False, got 1"),
    ({"from_logits": "no"}, TypeError, "from_logits must be True or False, got 'no'"),
    ({"normalize": True, "from_logits": True}, ValueError, "exclude each other"),
    ({"progress": 1}, TypeError, "progress must be True or False, got 1"),
]
JKCE_OPTIONS = [
    ({"method": "nystroem"}, ValueError, "method must be one of ['auto', 'exact', 'fourier'"),
    ({"method": "block", "block_size": 1}, ValueError, "block_size must be"),
    ({"block_size": 5}, ValueError, "block_size belongs to method='block', got method='exact'"),
    ({"estimator": "v"}, ValueError, "estimator must be one of ['unbiased', 'biased'], got 'v'"),
]
NOT_IN_JKCE = {"regularization", "rank", "tol", "pivoting"}


def naming(options):
    return ", ".join(f"{name}={value!r:.30}" for name, value in options.items())


def in_jkce(options):
    return not NOT_IN_JKCE & set(options) and options.get("method") not in ("cholesky", "rff", None)


BAD_CALLS = [
    *((function, *row) for row in BAD_OPTIONS for function in (ckce.ckce, ckce.estimate)),
    *((ckce.jkce, *row) for row in BAD_OPTIONS if in_jkce({"method": "exact", **row[0]})),
    *((ckce.jkce, *row) for row in JKCE_OPTIONS),
]


@pytest.mark.parametrize(
    ("function", "options", "error", "fragment"),
    BAD_CALLS,
    ids=[f"{call[0].__name__}({naming(call[1])})" for call in BAD_CALLS],
)
def test_bad_options(function, options, error, fragment):
    with pytest.raises(error) as caught:
        function(Y, Q, **options)
    assert fragment in str(caught.value)


def test_options_are_keywords():
    with pytest.raises(TypeError, match="positional"):
        ckce.ckce(Y, Q, "exact")
    with pytest.raises(TypeError, match="gamma"):
        ckce.ckce(Y, Q, gamma=0.5)


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


def test_warnings_point_at_the_caller():
    with pytest.warns(UserWarning, match="sample_weight") as caught:
        ckce.ckce(Y, Q, sample_weight=W / 1000)
    assert caught[0].filename == __file__
    with pytest.warns(RuntimeWarning, match="regularization") as caught:
        ckce.ckce(Y, Q, regularization=1e-9)
    assert caught[0].filename == __file__


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
        ckce.ckce(Y, changed(4, 0, np.nan), from_logits=True)
    with pytest.raises(ValueError, match=r"y_prob \(logits\) row 4 holds NaN or inf"):
        ckce.ckce(Y, changed(4, 0, np.inf), from_logits=True)
    minus = Q.copy()
    minus[4] = -np.inf
    with pytest.raises(ValueError, match="row 4 is -inf in every class"):
        ckce.ckce(Y, minus, from_logits=True)
    sure = np.array([[0.0, -np.inf, -1e308], [1e308, 0.0, 0.0]])
    hard = np.eye(3)[[0, 0]]
    assert ckce.ckce([1, 1], sure, from_logits=True) == ckce.ckce([1, 1], hard)
    binary = np.array([0.3, -2.0, 5.0])
    expected = ckce.ckce([1, 0, 1], 1 / (1 + np.exp(-binary)))
    assert ckce.ckce([1, 0, 1], binary, from_logits=True) == pytest.approx(expected, rel=1e-13)


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


def test_median_bandwidth_checks_too():
    with pytest.raises(ValueError, match="row 17 column 1 is nan"):
        ckce.median_bandwidth(changed(17, 1, np.nan))
    with pytest.raises(TypeError, match="y_prob must be an array, got None"):
        ckce.median_bandwidth(None)
    with pytest.raises(ValueError, match="at least one row"):
        ckce.median_bandwidth(Q[:0])
    with pytest.raises(ValueError, match="y_prob must have shape"):
        ckce.median_bandwidth(0.5)
    with pytest.raises(TypeError, match="random_state must be an integer"):
        ckce.median_bandwidth(Q, random_state=0.5)
    with pytest.raises(ValueError, match="kernel must be one of"):
        ckce.median_bandwidth(Q, kernel="rbf")


def test_median_bandwidth_checks_booleans():
    with pytest.raises(TypeError, match="normalize must be True or False"):
        ckce.median_bandwidth(Q, normalize=1)
