"""The catalogue of bad input: what every entry point must refuse, and in which words."""

import inspect
import io
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import logs
import numpy as np
import pandas as pd
import scipy.sparse
from shared import sample

import ckce
from ckce.integrations import sklearn as scorers

Y, Q = sample(20, 3)


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
UNHASHABLE = np.array([{} for _ in range(20)])
LISTS = np.array([[0]] * 20 + [None], dtype=object)[:20]
MASKED = np.ma.masked_array(Q, mask=Q > 0.9)
NAMES = np.array(["cat", "dog", "eel"])
BACKWARDS = pd.DataFrame(Q, columns=NAMES[::-1])
SHUFFLED = pd.Series(Y, index=np.random.default_rng(0).permutation(20))

# name: (y_true, y_prob), exception, fragments of the message
BAD_DATA = {
    "NaN": (
        (Y, changed(17, 1, np.nan)),
        ValueError,
        ["y_prob row 17 column 1 is nan", "1 entry is"],
    ),
    "inf": ((Y, changed(3, 2, np.inf)), ValueError, ["y_prob row 3 column 2 is inf"]),
    "-inf": ((Y, changed(3, 2, -np.inf)), ValueError, ["y_prob row 3 column 2 is -inf"]),
    "negative": (
        (Y, changed(4, 0, -0.01)),
        ValueError,
        ["row 4 column 0 is -0.01", "input='logits'"],
    ),
    "negative by rounding": (
        (Y, changed(4, slice(None), [-1e-9, 0.5, 0.5])),
        ValueError,
        ["row 4 column 0 is -1e-09", "1 entry is negative", "numpy.clip"],
    ),
    "above one": ((Y, changed(4, 0, 1.5)), ValueError, ["row 4 column 0 is 1.5", "above 1"]),
    "percentages": ((Y, 100 * Q), ValueError, ["expected probabilities", "divide by 100"]),
    "row sum": (
        (Y, scaled(17, 18, 19)),
        ValueError,
        ["y_prob row 17 sums to 0.930000, expected 1 (3 of 20 rows do", "normalize=True"],
    ),
    "row sum, float32": ((Y, scaled(2).astype(np.float32)), ValueError, ["row 2 sums to 0.93"]),
    "row sum off by 2e-5": ((Y, scaled(5, factor=1 + 2e-5)), ValueError, ["row 5 sums to 1.00002"]),
    "logits": ((Y, LOGITS), ValueError, ["input='logits'"]),
    "label too large": ((relabelled(6, 7), Q), ValueError, ["y_true row 6 is 7, expected 0..2"]),
    "label negative": ((relabelled(6, -1), Q), ValueError, ["y_true row 6 is -1", "1 of 20 rows"]),
    "labels 1-based": ((Y + 1, Q), ValueError, ["1-based", "labels=range(1, 4)"]),
    "label huge": ((Y.astype(np.uint64) + 2**63, Q), ValueError, ["y_true must be in 0..2"]),
    "labels float": ((Y.astype(float), Q), TypeError, ["y_true must hold integers", "astype(int)"]),
    "labels complex": ((Y.astype(complex), Q), TypeError, ["y_true must hold integers"]),
    "labels boolean": ((Y > 0, Q), ValueError, ["y_true is boolean, but y_prob has 3 columns"]),
    "labels None": ((None, Q), TypeError, ["y_true must be an array, got None"]),
    "labels objects": ((np.array([{}] * 20), Q), TypeError, ["y_true must hold integers"]),
    "labels missing": (
        (np.array([0, 1, None, 2] * 5), Q),
        ValueError,
        ["y_true row 2 is missing (5 of 20 labels are); drop these rows"],
    ),
    "labels NaN": (
        (np.array([0, 1, np.nan, 2] * 5), Q),
        ValueError,
        ["y_true row 2 is missing (5 of 20 labels are); drop these rows"],
    ),
    "row of zeros": ((Y, scaled(3, factor=0.0)), ValueError, ["row 3 holds zeros only", "drop"]),
    "log-probabilities": ((Y, np.log(Q)), ValueError, ["expected prob", "input='log_probs'"]),
    "labels dates": ((np.zeros(20, "M8[s]"), Q), TypeError, ["y_true must hold integers"]),
    "labels masked": ((np.ma.masked_array(Y, Y > 1), Q), TypeError, ["y_true", "masked"]),
    "labels one-hot": ((np.eye(3, dtype=int)[Y], Q), ValueError, ["y_true.argmax(axis=1)"]),
    "labels one column": ((Y[:, None], Q), ValueError, ["got (20, 1); pass np.ravel(y_true)"]),
    "labels structured": ((np.rec.fromarrays([Y]), Q), TypeError, ["y_true must hold integers"]),
    "labels missing among strings": (
        (pd.Series(NAMES[Y], dtype="string").where(np.arange(20) != 4), Q),
        ValueError,
        ["y_true row 4 is missing (1 of 20 labels are); drop these rows"],
    ),
    "labels lists": (
        (LISTS, Q),
        TypeError,
        ["y_true must hold integers or strings, got list in row 0"],
    ),
    "labels generated": (
        (iter(Y), Q),
        TypeError,
        ["y_true must be an array, got iterator; pass list(y_true)"],
    ),
    "labels a set": (({0, 1, 2}, Q), TypeError, ["y_true must be an array, got set"]),
    "labels 0-d": ((np.int64(1), Q), ValueError, ["y_true must have shape (n_samples,), got ()"]),
    "labels 3-d": ((np.zeros((20, 1, 1), int), Q), ValueError, ["y_true must have shape"]),
    "too few strings": ((["a", "b"] * 10, Q), ValueError, ["2 distinct strings", "labels="]),
    "numbers as strings": (
        ([str(i % 11) for i in range(22)], np.full((22, 11), 1 / 11)),
        ValueError,
        ["numbers as strings", "'1', '10', '2'", "labels="],
    ),
    "categories in another order": (
        (pd.Categorical(NAMES[Y], categories=NAMES[::-1]), Q),
        ValueError,
        ["categories of y_true must be in the order of the classes", "labels="],
    ),
    "columns in another order": (
        (NAMES[Y], BACKWARDS),
        ValueError,
        ["columns of y_prob must be in the order of the classes", "labels="],
    ),
    "columns that share a name": (
        (Y, pd.DataFrame(Q, columns=["a", "b", "b"])),
        ValueError,
        ["columns of y_prob must be distinct, got 'a', 'b', 'b'; rename them"],
    ),
    "numbered columns in another order": (
        (Y, pd.DataFrame(Q)[[1, 0, 2]]),
        ValueError,
        ["columns of y_prob must be in the order of the classes", "['1', '0', '2']"],
    ),
    "rows in another order": (
        (SHUFFLED, pd.DataFrame(Q)),
        ValueError,
        ["y_true and y_prob must have the same index", ".loc"],
    ),
    "predicted labels": (
        (Y % 2, Y % 2),
        TypeError,
        ["y_prob must hold probabilities", "predict_p"],
    ),
    "predicted booleans": ((Y % 2, Y > 1), TypeError, ["y_prob must hold probabilities"]),
    "swapped": ((Q, Y), ValueError, ["look swapped", "labels come first"]),
    "swapped, binary": ((Q[:, 1], Y % 2), TypeError, ["labels come first"]),
    "swapped, strings": ((Q, np.array(["a"] * 20)), ValueError, ["look swapped"]),
    "lengths": ((Y[:-1], Q), ValueError, ["same number of rows, got 19 and 20"]),
    "y_prob 3-d": ((Y, Q[None]), ValueError, ["y_prob must have shape", "(1, 20, 3)"]),
    "y_prob 0-d": ((Y, 0.5), ValueError, ["y_prob must have shape"]),
    "y_prob one column": ((Y, Q[:, :1]), ValueError, ["at least 2 columns", "1-D"]),
    "y_prob masked": ((Y, MASKED), TypeError, ["y_prob must not be a masked array"]),
    "y_prob masked rows": ((Y, list(MASKED)), TypeError, ["y_prob must not be a masked array"]),
    "y_prob generated": ((Y, iter(Q)), TypeError, ["y_prob must be an array, got iterator"]),
    "y_prob missing": (
        (Y, pd.DataFrame(Q).astype("Float64").mask(np.arange(60).reshape(20, 3) == 7)),
        ValueError,
        ["y_prob row 2 holds a missing value (1 entry is missing); drop or fix"],
    ),
    "y_prob structured": ((Y, Q.view([("", float)] * 3)), TypeError, ["y_prob must hold real"]),
    "y_prob times": ((Y, Q.astype("m8[s]")), TypeError, ["y_prob must hold real numbers"]),
    "y_prob nullable": ((Y, pd.DataFrame(Q).astype("Float64")), TypeError, ["astype(float)"]),
    "y_prob object": ((Y, Q.astype(object)), TypeError, ["y_prob", "dtype object"]),
    "y_prob complex": ((Y, Q.astype(complex)), TypeError, ["y_prob", "dtype complex128"]),
    "y_prob strings": ((Y, Q.astype(str)), TypeError, ["y_prob must hold real numbers"]),
    "y_prob None": ((Y, None), TypeError, ["y_prob must be an array, got None"]),
    "y_prob sparse": ((Y, scipy.sparse.csr_matrix(Q)), TypeError, ["y_prob must be dense"]),
    "y_prob sparse array": ((Y, scipy.sparse.coo_array(Q)), TypeError, [".toarray()"]),
    "y_true NaN among strings": (
        (["cat", np.nan, "dog", "eel"] * 5, Q),
        ValueError,
        ["y_true row 1 is missing (5 of 20"],
    ),
    "y_true numbers among strings": (
        (["cat", 1, "dog", "eel"] * 5, Q),
        TypeError,
        ["y_true must hold integers or strings, got dtype object"],
    ),
    "y_true bytes": (
        ([b"cat", b"\xff"] * 10, Q),
        ValueError,
        ["y_true must hold text in UTF-8, got b'\\xff'"],
    ),
    "y_prob ragged": (([0, 1], [[0.5, 0.5], [1.0]]), ValueError, ["y_prob must be a rectangular"]),
    "y_true ragged": (([[0], [1, 2]], Q[:2]), ValueError, ["y_true must be a rectangular"]),
    "empty": ((Y[:0], Q[:0]), ValueError, ["y_prob must have at least one row, got shape (0, 3)"]),
    "empty lists": (([], []), ValueError, ["y_prob must have at least one row"]),
    "no columns": ((Y, Q[:, :0]), ValueError, ["at least 2 columns"]),
    "1-D above one": ((Y % 2, np.append(Q[:-1, 0], 1.5)), ValueError, ["row 19"]),
    "1-D NaN": ((Y % 2, np.append(Q[:-1, 0], np.nan)), ValueError, ["row 19", "nan"]),
    "pandas NaN": ((Y, pd.DataFrame(changed(2, 2, np.nan))), ValueError, ["row 2 column 2 is nan"]),
}


def kernel(p, q):
    return np.exp(-np.abs(p[:, None] - q[None]).sum(axis=2))


W = np.ones(20)
FOURIER, CHOLESKY, EXACT = ({"method": method} for method in ("fourier", "cholesky", "exact"))
FREQUENCIES = np.ones((4, 3))
GIVEN = {"method": ckce.Fourier(frequencies=FREQUENCIES)}
NOT_PSD = np.diag([1.0, 1.0, -1.0])

# Options, exception, fragment of the message; for every function that has these parameters.
BAD_OPTIONS = [
    ({"method": "rff"}, ValueError, "method must be one of"),
    ({"method": None}, TypeError, "method must be one of"),
    ({"by": np.arange(19)}, ValueError, "by must have shape (20,), one value for each row"),
    ({"by": np.arange(20)}, ValueError, "by must make at least one segment of 50 rows"),
    ({"by": "region"}, ValueError, "by must name a column of y_prob"),
    ({"by": [None] * 20}, ValueError, "by row 0 is missing (20 of 20 are)"),
    ({"where": 1}, TypeError, "where must be True or False"),
    ({"kernel": "rbf"}, ValueError, "kernel must be one of"),
    ({"kernel": 3}, TypeError, "kernel must be one of"),
    ({"method": 3}, TypeError, "or ckce."),
    ({"method": ckce.Fourier}, TypeError, "method must be one of"),
    ({"method": "block"}, ValueError, "method must be one of"),
    # bandwidth, regularization
    ({"bandwidth": 0}, ValueError, "bandwidth must be positive and finite, got 0"),
    ({"bandwidth": -1.0}, ValueError, "bandwidth must be positive and finite, got -1.0"),
    ({"bandwidth": np.nan}, ValueError, "bandwidth must be positive and finite, got nan"),
    ({"bandwidth": np.inf}, ValueError, "bandwidth must be positive and finite"),
    ({"bandwidth": "mean"}, ValueError, "bandwidth must be one of ["),
    ({"bandwidth": "0.5"}, TypeError, "bandwidth must be a number, got the string '0.5'"),
    ({"bandwidth": None}, TypeError, "bandwidth must be a number, got None"),
    ({"bandwidth": True}, TypeError, "bandwidth must be a number, got True"),
    ({"bandwidth": 1j}, TypeError, "bandwidth must be a number, got 1j"),
    ({"bandwidth": np.complex128(1)}, TypeError, "bandwidth must be a number"),
    ({"bandwidth": [0.5]}, TypeError, "bandwidth must be a number"),
    ({"regularization": 0.0}, ValueError, "regularization must be positive and finite, got 0.0"),
    ({"regularization": -1}, ValueError, "regularization must be positive and finite, got -1"),
    ({"regularization": np.nan}, ValueError, "regularization must be positive and finite"),
    ({"regularization": 1e-13}, ValueError, "regularization must be at least 1e-12, got 1e-13"),
    ({"regularization": True}, TypeError, "regularization must be a number, got True"),
    # what the method cannot do
    ({**FOURIER, "kernel": "linear"}, ValueError, "kernel='linear' has no Fourier features"),
    ({"kernel": "linear", "bandwidth": 0.5}, ValueError, "kernel='linear' takes no bandwidth"),
    ({"kernel": kernel, "bandwidth": 0.5}, ValueError, "a callable kernel takes no bandwidth"),
    ({"kernel": kernel, **FOURIER}, ValueError, "a callable kernel needs method='exact'"),
    ({"kernel": kernel, **CHOLESKY}, ValueError, "a callable kernel needs method='exact'"),
    ({"kernel": kernel, "method": ckce.Landmarks(5)}, ValueError, "needs method='exact'"),
    ({"kernel": "linear", "method": ckce.Landmarks(5)}, ValueError, "needs no features, got land"),
    (
        {"kernel": "laplace", "method": ckce.Fourier(sampler="orthogonal")},
        ValueError,
        "sampler='orthogonal' needs a Gaussian kernel",
    ),
    (
        {**GIVEN, "bandwidth": 0.5},
        ValueError,
        "frequencies are used as given, so bandwidth would be ignored, got bandwidth=0.5",
    ),
    (
        {"method": ckce.Fourier(frequencies=np.ones((4, 2)))},
        ValueError,
        "frequencies must have shape ('any', 3), got (4, 2)",
    ),
    (
        {"method": ckce.Landmarks([[0.5, 0.5]]), "bandwidth": 0.5},
        ValueError,
        "landmarks must have shape ('any', 3), got (1, 2)",
    ),
    (
        {"method": ckce.Landmarks(np.repeat(Q[:5], 2, axis=0)), "bandwidth": 0.5},
        ValueError,
        "landmarks must differ, got row 1, which the rows before it explain to 12 digits of "
        "k(q, q) (5 of 10 rows are such); leave them out",
    ),
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
    (
        {"label_kernel": pd.DataFrame(np.eye(3))},
        TypeError,
        "label_kernel must be an array, got a Dat",
    ),
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
    ({"labels": ["0", "1", "2"]}, ValueError, "which is not in labels"),
    ({"labels": {0, 1, 2}}, TypeError, "labels must be an array, got set"),
    ({"labels": [0, 1, np.nan]}, ValueError, "which is not in labels"),
    ({"labels": [0, 1, 1]}, ValueError, "labels must be distinct, got 0, 1, 1"),
    ({"labels": [1, 2, 3]}, ValueError, "which is not in labels"),
    ({"labels": [b"a", b"b", b"\xff"]}, ValueError, "labels must hold text in UTF-8, got b'\\xff'"),
    ({"labels": "abc"}, ValueError, "labels must name the 3 columns"),
    # numbers that leave no digits
    ({"bandwidth": 1e-200}, ValueError, "bandwidth must be at least 1e-100, got 1e-200"),
    ({"bandwidth": 1e200}, ValueError, "bandwidth must be at most 1e+100, got 1e+200"),
    ({"regularization": 1e200}, ValueError, "regularization must be at most 1e+12, got 1e+200"),
    ({"method": ckce.Fourier(10**15)}, MemoryError, "pass a smaller n_frequencies"),
    ({"bandwidth": 10**400}, ValueError, "bandwidth must be positive and finite, got 1000"),
    ({"regularization": 10**400}, ValueError, "regularization must be positive and finite"),
    ({"random_state": 10**400}, ValueError, "000... (401 characters)"),
    ({"label_kernel": 1e308 * np.eye(3)}, ValueError, "largest entry from 1e-100 to 1e100"),
    ({"label_kernel": 1e-320 * np.eye(3)}, ValueError, "largest entry from 1e-100 to 1e100"),
    ({"sample_weight": 1e-200 * W}, ValueError, "must be 0 or at least 1e-100, row 0 is 1e-200"),
    ({"sample_weight": 1e300 * W}, ValueError, "sample_weight must sum to at most 2**53"),
    ({"sample_weight": 1e308 * W}, ValueError, "sample_weight must sum to at most 2**53"),
    # kernels that are none
    ({"kernel": lambda p, q: -(p @ q.T)}, ValueError, "must be positive semi-definite"),
    (
        {"kernel": lambda p, q: p @ q.T - 0.3 * (p[:, :1] == q[:, 0])},
        ValueError,
        "a negative eigenv",
    ),
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
    ({"input": True}, TypeError, "input must be one of ['probs', 'logits', 'log_probs'], got True"),
    ({"input": "scores"}, ValueError, "input must be one of ['probs', 'logits', 'log_probs']"),
    ({"input": "logits"}, ValueError, "y_prob must hold logits with input='logits'"),
    ({"input": "log_probs"}, ValueError, "y_prob row 0 column 0 is 1."),
    ({"normalize": True, "input": "logits"}, ValueError, "normalize=True needs input='probs'"),
    ({"normalize": True, "input": "log_probs"}, ValueError, "normalize=True needs input='probs'"),
    ({"progress": 1}, TypeError, "progress must be True or False, got 1"),
]
# Of functions that take groups.
GROUPS = [
    ({"groups": np.arange(19)}, ValueError, "groups must have shape (20,), one id for each row"),
    ({"groups": np.zeros((20, 2))}, ValueError, "join several columns into one id"),
    ({"groups": [*range(19), None]}, ValueError, "groups row 19 is missing (1 of 20 are)"),
    ({"groups": [np.nan, *range(19)]}, ValueError, "groups row 0 is missing (1 of 20 are)"),
    ({"groups": [np.nan, *map(str, range(19))]}, ValueError, "groups row 0 is missing (1 of 20"),
    ({"groups": [pd.NA, pd.NA, *range(18)]}, ValueError, "groups row 0 is missing (2 of 20 are)"),
    ({"groups": np.array(["NaT"] * 20, "M8[D]")}, ValueError, "(20 of 20 are)"),
    (
        {"groups": UNHASHABLE},
        TypeError,
        "groups must hold ids such as integers or strings, got dict",
    ),
    ({"groups": np.arange(20) // 3}, ValueError, "at least 10 groups, got 7"),
    (
        {"groups": np.arange(20), "sample_weight": np.arange(20) > 10},
        ValueError,
        "at least 10 groups, got 9",
    ),
    (
        {"groups": pd.Series(range(20))[::-1], "sample_weight": pd.Series(W)},
        ValueError,
        "same index",
    ),
]
# Of functions that could use independent rows.
DEPENDENT = [
    ({"groups": np.arange(20), "regularization": "loo"}, ValueError, "needs independent rows"),
    ({"groups": np.arange(20), "test": True}, ValueError, "test must be False with groups"),
    (
        {"groups": np.arange(20), "test": 99},
        ValueError,
        "draws the label of each row independently",
    ),
]
JKCE_OPTIONS = [
    *GROUPS,
    ({"method": "blocks", "groups": np.arange(20)}, ValueError, "groups must be None with method="),
    ({"method": "nystroem"}, ValueError, "method must be one of ['auto', 'exact', 'fourier'"),
    ({"method": ckce.Blocks(1)}, ValueError, "size of ckce.Blocks must be from 2 to"),
    ({"method": ckce.Blocks(21)}, ValueError, "size of ckce.Blocks must be from 2 to the number"),
    ({"method": "blocks", "sample_weight": W}, ValueError, "sample_weight must be None"),
    ({"method": "blocks", "estimator": "biased"}, ValueError, "has no biased estimator"),
    ({"method": ckce.Exact(tol=1e-3)}, ValueError, "got Exact(tol=0.001): exact JKCE is a sum"),
    ({"method": ckce.Fourier(precision="mixed")}, ValueError, "precision='mixed' is for ckce"),
    ({"estimator": "v"}, ValueError, "estimator must be one of ['unbiased', 'biased'], got 'v'"),
]
BINS = [
    ({"n_bins": 0}, ValueError, "n_bins must be at least 1, got 0"),
    ({"n_bins": 10.0}, TypeError, "n_bins must be an integer, got 10.0"),
    ({"n_bins": 10**6}, ValueError, "n_bins must be at most 100000"),
    ({"variant": "l1"}, ValueError, "variant must be one of"),
    ({"strategy": "equal"}, ValueError, "strategy must be one of"),
    (
        {"strategy": "quantile", "variant": "simplex"},
        ValueError,
        "points of the simplex have no order",
    ),
    ({"debias": 1}, TypeError, "debias must be True or False, got 1"),
]
NORMS = [
    ({"norm": "l3"}, ValueError, "norm must be one of"),
    ({"debias": True}, ValueError, "debias=True needs norm='l2_squared', got norm='l1'"),
]
LEVEL = [
    ({"level": 95}, ValueError, "level must be between 0 and 1, got 95"),
    ({"level": 10**400}, ValueError, "level must be between 0 and 1, got 1000"),
]
# Of functions that can choose lambda, and of those that cannot.
LOO = [({"regularization": "0.1"}, ValueError, "must be a number or 'loo', got the string '0.1'")]
NO_LOO = [({"regularization": "0.1"}, TypeError, "regularization must be a number, got '0.1'")]
# Of one function, besides.
OWN_OPTIONS = {
    "ckce": LOO,
    "estimate": [*LOO, *GROUPS, DEPENDENT[0]],
    "CKCEAccumulator.from_sample": NO_LOO,
    "jkce": [
        *JKCE_OPTIONS,
        ({"estimator": "biased", "groups": W}, ValueError, "groups must be None with estimator="),
    ],
    "jkce_estimate": JKCE_OPTIONS,
    "ece": BINS + NORMS,
    "ece_estimate": BINS + NORMS,
    "brier_decomposition": BINS,
    "evaluate": [
        *LOO,
        *GROUPS,
        *DEPENDENT,
        *BINS[:3],
        ({"test": 0}, ValueError, "test must be at least 1, got 0"),
        ({"test": 10**10}, ValueError, "test must be at most 1000000, got 10000000000"),
    ],
    "calibration_test": [
        *NO_LOO,
        *LEVEL,
        ({"n_resamples": 0}, ValueError, "n_resamples must be at least 1, got 0"),
        (
            {"n_resamples": 10**6 + 1},
            ValueError,
            "n_resamples must be at most 1000000, got 1000001",
        ),
        (
            {"n_resamples": 10**10},
            ValueError,
            "n_resamples must be at most 1000000, got 1000000000",
        ),
        ({"n_resamples": 10**400}, ValueError, "n_resamples must be "),
        ({"statistic": "ece"}, ValueError, "statistic must be one of"),
        ({"method": "exact"}, ValueError, "method='exact' of the test needs two classes"),
        ({"method": ckce.Exact()}, ValueError, "needs two classes and a Gaussian kernel, got 3"),
        ({"method": ckce.Fourier(precision="mixed")}, ValueError, "precision='mixed' is for ckce"),
        ({"kernel": kernel}, ValueError, "kernel must be one of the named kernels"),
        ({"regularization": "loo"}, TypeError, "regularization must be a number"),
        ({"sample_weight": W / 2}, ValueError, "sample_weight must hold whole numbers"),
    ],
    "miscalibration": [
        *GROUPS,
        *LEVEL,
        ({"reduction": "class_wise"}, ValueError, "reduction must be one of ['top_label']"),
    ],
    "witness": [
        *NO_LOO,
        *GROUPS,
        ({"regularization": "loo"}, TypeError, "regularization must be a number, got 'loo'"),
        ({"kernel": kernel}, ValueError, "kernel must be one of the named kernels for a witness"),
        ({"reduction": "class_wise"}, ValueError, "reduction must be one of ['top_label']"),
    ],
    "compare": [
        *LOO,
        *GROUPS,
        *DEPENDENT,
        ({"level": 95}, ValueError, "level must be between 0 and 1, got 95"),
        ({"level": "0.95"}, ValueError, "level must be between 0 and 1, got '0.95'"),
        ({"test": -1}, ValueError, "test must be at least 1, got -1"),
        ({"test": True, "regularization": "loo"}, ValueError, "test must be False"),
        ({"reduction": "class_wise"}, ValueError, "reduction must be one of ['top_label']"),
        ({"kernel": "laplace"}, ValueError, "kernel must have a Gaussian part"),
    ],
    "common_ground": [
        *NO_LOO,
        *LEVEL,
        ({"names": ("a", "a")}, ValueError, "names must be two different strings"),
        ({"kernel": "laplace"}, ValueError, "kernel must have a Gaussian part"),
        ({"reduction": "class_wise"}, ValueError, "reduction must be one of ['top_label']"),
    ],
    "shift_curve": [
        *NO_LOO,
        *(option for option in GROUPS[2:] if "sample_weight" not in option[0]),
        ({"groups": [np.arange(20)] * 2}, ValueError, "groups must hold the groups of 1 shifts"),
        ({"level": True}, ValueError, "level must be between 0 and 1, got True"),
        ({"bandwidth": "median"}, ValueError, "bandwidth must be one of ["),
        ({"regularization": "loo"}, TypeError, "regularization must be a number"),
        ({"shifts": [1, 2]}, ValueError, "shifts must name the 1 data sets"),
        ({"shifts": [None]}, TypeError, "shifts must be numbers or strings"),
    ],
    "report": [
        *GROUPS,
        DEPENDENT[2],
        ({"sensitivity": 1}, TypeError, "sensitivity must be True or False, got 1"),
        ({"level": 0}, ValueError, "level must be between 0 and 1, got 0"),
    ],
    "gradient": [
        ({"debias": 1}, TypeError, "debias must be True or False, got 1"),
        ({"detach_kernel": None}, TypeError, "detach_kernel must be True or False, got None"),
        (
            {"kernel": "laplace"},
            ValueError,
            "kernel='laplace' has no gradient where two predictions",
        ),
        ({"kernel": kernel, "debias": True}, ValueError, "a callable kernel has no gradient"),
        (
            {**CHOLESKY, "debias": True},
            ValueError,
            "method='cholesky' has no gradient, because its",
        ),
        (
            {"method": ckce.Fourier(precision="mixed")},
            ValueError,
            "precision='mixed' is for ckce, got it for gradient",
        ),
    ],
    "reliability_diagram": [
        *BINS[:3],
        ({"strategy": "equal"}, ValueError, "strategy must be one of"),
        ({"level": 1.0}, ValueError, "level must be between 0 and 1, got 1.0"),
        ({"level": 95}, ValueError, "level must be between 0 and 1, got 95"),
        ({"target": 7}, ValueError, "target must be 'top_label', 'class_wise' or one of"),
        ({"target": "top"}, ValueError, "target must be 'top_label', 'class_wise' or one of"),
    ],
}


def compare(y, q, **options):
    return ckce.compare(y, {"one": q, "two": q}, **options)


def common_ground(y, q, **options):
    return ckce.common_ground(y, q, q, **options)


def shift_curve(y, q, **options):
    return ckce.shift_curve(y, {"one": [q]}, **options)


compare.__signature__ = inspect.signature(ckce.compare)
common_ground.__signature__ = inspect.signature(ckce.common_ground)
shift_curve.__signature__ = inspect.signature(ckce.shift_curve)

# Entry points that take labels and probabilities.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ckce": ckce.ckce,
    "estimate": ckce.estimate,
    "gradient": ckce.gradient,
    "jkce": ckce.jkce,
    "jkce_estimate": ckce.jkce_estimate,
    "ece": ckce.ece,
    "ece, top label": partial(ckce.ece, variant="top_label"),
    "ece, class-wise": partial(ckce.ece, variant="class_wise", strategy="quantile"),
    "ece_estimate": ckce.ece_estimate,
    "smooth_ece": ckce.smooth_ece,
    "brier": ckce.brier,
    "brier_decomposition": ckce.brier_decomposition,
    "log_loss": ckce.log_loss,
    "accuracy": ckce.accuracy,
    "evaluate": ckce.evaluate,
    "reliability_diagram": ckce.reliability_diagram,
    "compare": compare,
    "common_ground": common_ground,
    "calibration_test": ckce.calibration_test,
    "miscalibration": ckce.miscalibration,
    "witness": ckce.witness,
    "shift_curve": shift_curve,
    "report": ckce.report,
    "CalibrationDisplay.from_predictions": ckce.CalibrationDisplay.from_predictions,
    "CKCEAccumulator.from_sample": ckce.CKCEAccumulator.from_sample,
}


@dataclass(frozen=True)
class Refusal:
    """A call that must fail, with which exception, which words; what it must leave alone."""

    name: str
    call: Callable[[], Any]
    error: type[Exception]
    fragments: tuple[str, ...]
    watched: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def entry(self) -> str:
        """What is called."""
        return re.split(r"[:(]", self.name)[0]


# Sequences of arrays, which are the labels of several shifts.
OF_SHIFTS = ("labels one-hot", "labels one column", "swapped", "swapped, strings", "y_true ragged")


def _takes(function, options):
    inner = function.func if isinstance(function, partial) else function
    if inner is ckce.witness and callable(options.get("kernel")) and len(options) == 1:
        return options["kernel"] is kernel  # words of its own
    if inner is ckce.calibration_test and (
        options.get("method") == "exact" or callable(options.get("kernel"))
    ):
        return False  # it has words of its own
    if inner is ckce.gradient and (
        options.get("method") == "cholesky" or callable(options.get("kernel"))
    ):
        return "debias" in options  # it has words of its own
    if inner is shift_curve and ("bandwidth" in options or callable(options.get("kernel"))):
        return False
    if "jkce" in inner.__name__ and (options.get("method") == "cholesky" or "tol" in options):
        return False
    given = function.keywords if isinstance(function, partial) else {}
    return set(options) <= set(inspect.signature(inner).parameters) - set(given)


def _naming(options):
    address = re.compile(" at 0x[0-9A-Fa-f]+")  # another one in every process
    return ", ".join(f"{k}={address.sub('', repr(value)):.30}" for k, value in options.items())


def _bad_data():
    for entry, function in FUNCTIONS.items():
        for name, ((y, q), error, fragments) in BAD_DATA.items():
            if function is shift_curve and name in OF_SHIFTS:
                continue
            yield Refusal(
                f"{entry}: {name}", partial(function, y, q), error, tuple(fragments), (y, q)
            )


def _not_gaussian(options):
    """A kernel that is refused before anything else is seen to be wrong with it."""
    named = options.get("kernel")
    return "bandwidth" not in options and (callable(named) or named in ("linear", "laplace"))


def _bad_options():
    for entry, function in FUNCTIONS.items():
        for options, error, fragment in [*BAD_OPTIONS, *OWN_OPTIONS.get(entry, [])]:
            if entry in ("compare", "common_ground") and _not_gaussian(options):
                error, fragment = ValueError, "kernel must have a Gaussian part"
            if _takes(function, options):
                yield Refusal(
                    f"{entry}({_naming(options)})",
                    partial(function, Y, Q, **options),
                    error,
                    (fragment,),
                    (Y, Q, *options.values()),
                )


# What is a field of a method now, or has another name: a keyword that nobody knows.
GONE = {
    "n_frequencies": 100,
    "sampler": "gaussian",
    "frequencies": FREQUENCIES,
    "precision": "float64",
    "rank": 5,
    "tol": 1e-10,
    "pivoting": "greedy",
    "block_size": 2,
    "landmarks": Q,
    "n_landmarks": 5,
    "from_logits": True,
}


def _gone():
    """Options of before: no function takes and ignores one."""
    for entry, function in [*FUNCTIONS.items(), ("CKCEAccumulator", None)]:
        for name, value in GONE.items():
            call = partial(function, Y, Q, **{name: value}) if function else None
            if entry == "CKCEAccumulator":
                call = partial(ckce.CKCEAccumulator, 3, **{name: value})
            yield Refusal(f"{entry}({name}=)", call, TypeError, (name,), (Y, Q))


TOP = np.array([[0.6, 0.3], [0.5, 0.2], [0.9, 0.1]])
IDS = np.array([[7, 4], [4, 9], [7, 1]])
SHORT = ckce.TopKPredictions([[0.6, 0.3], [0.5], [0.9, 0.1]], ids=[[7, 4], [4], [7, 1]])


def _top_k():
    """The k largest entries of predictions."""
    for k, error, fragment in [
        (0, ValueError, "k must be at least 1, got 0"),
        (2.0, TypeError, "k must be an integer, got 2.0"),
        (True, TypeError, "k must be an integer, got True"),
        ("20", TypeError, "k must be an integer, got '20'"),
    ]:
        yield Refusal(f"TopK({k!r})", partial(ckce.TopK, k), error, (fragment,))
    sentinel, nan, late = TOP.copy(), TOP.copy(), TOP.copy()
    sentinel[1, 1], nan[1], late[1, 0] = -9999.0, np.nan, np.nan
    logs = np.log(TOP)
    for name, probs, options, error, fragment in [
        ("sentinel", sentinel, {}, ValueError, "probs row 1 holds -9999.0, OpenAI's"),
        ("negative", -TOP, {}, ValueError, "probs row 0 has a negative entry"),
        ("log-probabilities", logs, {}, ValueError, "pass input='log_probs' if they are"),
        ("no entry", nan, {}, ValueError, "probs row 1 has no entry, which is no prediction"),
        ("NaN first", late, {}, ValueError, "probs row 1 has NaN before other entries"),
        ("sums", 1.1 * TOP, {}, ValueError, "probs row 2 sums to 1.1, expected at most 1 (1 of 3"),
        ("above 1", 3 * TOP, {}, ValueError, "row 0 has a larger entry, expected probabilities"),
        (
            "above 0",
            -logs,
            {"input": "log_probs"},
            ValueError,
            "expected log-probabilities, at mos",
        ),
        (
            "unsorted",
            TOP[:, ::-1],
            {},
            ValueError,
            "row 0 is not in decreasing order, so that ranks",
        ),
        ("logits", TOP, {"input": "logits"}, ValueError, "input must be one of ['probs', 'log_pr"),
        ("one row", TOP[0], {}, ValueError, "probs must have shape (n_samples, k), got (2,)"),
        (
            "no columns",
            TOP[:, :0],
            {},
            ValueError,
            "probs must have shape (n_samples, k), got (3, 0",
        ),
        ("words", TOP.astype(str), {}, TypeError, "probs must hold real numbers"),
        ("twice", TOP, {"ids": 0 * IDS}, ValueError, "ids row 0 has the same id twice; add their"),
        ("fewer ids", TOP, {"ids": IDS[:, :1]}, ValueError, "ids must have the shape of probs"),
        ("ids", TOP, {"ids": IDS + 0.5}, TypeError, "ids must hold integers or strings"),
    ]:
        call = partial(ckce.TopKPredictions, probs, **options)
        yield Refusal(f"TopKPredictions: {name}", call, error, (fragment,), (probs,))
    top, ranks = ckce.TopKPredictions(TOP, IDS), ckce.TopKPredictions(TOP)
    ids, two = [7, 4, 1], {"reduction": ckce.TopK(2)}
    for name, y, q, options, error, fragment in [
        (
            "no reduction",
            ids,
            top,
            {},
            ValueError,
            "reduction must be ckce.TopK(k), k <= 2, or 'to",
        ),
        (
            "by class",
            ids,
            top,
            {"reduction": "class_wise"},
            ValueError,
            "got 'class_wise': the othe",
        ),
        ("more", ids, top, {"reduction": ckce.TopK(3)}, ValueError, "asks for more than the 2 ent"),
        (
            "short",
            ids,
            SHORT,
            two,
            ValueError,
            "asks for more entries than row 1 has: 1, and others",
        ),
        (
            "ranks",
            [0, 3, 1],
            ranks,
            two,
            ValueError,
            "y_true row 1 is 3, expected a rank from 0 to 2",
        ),
        ("negative rank", [0, -1, 1], ranks, two, ValueError, "row 1 is -1, expected a rank"),
        ("ranks as floats", [0.0, 1.0, 1.0], ranks, two, TypeError, "y_true must hold ranks, got"),
        (
            "ids as words",
            ["a", "b", "c"],
            top,
            two,
            TypeError,
            "y_true must hold ids of the kind of",
        ),
        ("fewer labels", [7, 4], top, two, ValueError, "must have the same number of rows"),
        (
            "labels",
            ids,
            top,
            {**two, "labels": [7, 4]},
            ValueError,
            "labels must be None with ckce.T",
        ),
        (
            "input",
            ids,
            top,
            {**two, "input": "logits"},
            ValueError,
            "input belongs to ckce.TopKPred",
        ),
        (
            "normalize",
            ids,
            top,
            {**two, "normalize": True},
            ValueError,
            "normalize=True needs all cl",
        ),
    ]:
        call = partial(ckce.ckce, y, q, **options)
        yield Refusal(f"ckce: top k, {name}", call, error, (fragment,))
    lacks = ckce.TopKPredictions([[0.5, 0.5], [1.0, 0.0]])
    call = partial(ckce.ckce, [0, 1], lacks, **two)
    words = ("y_true row 1 is 1, the rank of an entry that its row lacks",)
    yield Refusal("ckce: top k, absent", call, ValueError, words)
    for entry in ("ece", "smooth_ece", "brier", "log_loss", "accuracy", "brier_decomposition"):
        call = partial(getattr(ckce, entry), ids, top)
        words = ("y_prob must hold all classes here, got ckce.TopKPredictions",)
        yield Refusal(f"{entry}: top k", call, TypeError, words)
    both = {"a": top, "b": np.full((3, 10), 0.1)}
    call = partial(ckce.compare, ids, both, **two)
    yield Refusal("compare: top k", call, ValueError, ("one shape",))
    both = {"a": top, "b": np.full((3, 3), 1 / 3)}
    call = partial(ckce.compare, {"a": ids, "b": [0, 1, 2]}, both, **two)
    yield Refusal("compare: top k and all", call, ValueError, ("got some of both",))
    for entry in ("evaluate", "estimate", "jkce", "calibration_test", "report"):
        call = partial(getattr(ckce, entry), ids, top)
        yield Refusal(f"{entry}: top k", call, ValueError, ("reduction must be ckce.TopK(k)",))
    acc = ckce.CKCEAccumulator(50)
    call = partial(acc.update, ids, top)
    yield Refusal("update: top k", call, ValueError, ("reduction must be ckce.TopK(k)",), (acc,))


def _bad_methods():
    """Options of methods are checked where they are given."""
    for method, options, error, fragment in [
        ("Exact", {"tol": 0.0}, ValueError, "tol must be positive and finite, got 0.0"),
        ("Exact", {"tol": 1.0}, ValueError, "tol must be at most 0.5, got 1.0"),
        ("Exact", {"tol": "1"}, TypeError, "tol must be a number, got '1'"),
        ("Exact", {"tol": True}, TypeError, "tol must be a number, got True"),
        ("Exact", {"rank": 5}, TypeError, "rank"),
        ("Exact", {"n_frequencies": 100}, TypeError, "n_frequencies"),
        ("Cholesky", {"tol": -1.0}, ValueError, "tol must be positive and finite, got -1.0"),
        ("Cholesky", {"tol": 1.0}, ValueError, "tol must be at most 0.5, got 1.0"),
        ("Cholesky", {"tol": np.nan}, ValueError, "tol must be positive and finite, got nan"),
        ("Cholesky", {"rank": 0}, ValueError, "rank must be at least 1, got 0"),
        ("Cholesky", {"rank": 2.0}, TypeError, "rank must be an integer, got 2.0"),
        ("Cholesky", {"pivoting": "best"}, ValueError, "pivoting must be one of ['greedy', 'rand"),
        ("Cholesky", {"pivoting": None}, TypeError, "pivoting must be one of"),
        ("Cholesky", {"sampler": "sobol"}, TypeError, "sampler"),
        ("Fourier", {"n_frequencies": 0}, ValueError, "n_frequencies must be at least 1, got 0"),
        ("Fourier", {"n_frequencies": 10.0}, TypeError, "n_frequencies must be an integer"),
        ("Fourier", {"n_frequencies": True}, TypeError, "n_frequencies must be an integer"),
        ("Fourier", {"sampler": "halton"}, ValueError, "sampler must be one of ['gaussian', "),
        ("Fourier", {"precision": "float32"}, ValueError, "precision must be one of ['float64', "),
        ("Fourier", {"rank": 5}, TypeError, "rank"),
        ("Fourier", {"tol": 1e-3}, TypeError, "tol"),
        ("Fourier", {"frequencies": np.ones(3)}, ValueError, "frequencies must have shape"),
        ("Fourier", {"frequencies": np.ones((0, 3))}, ValueError, "frequencies must not be empty"),
        ("Fourier", {"frequencies": FREQUENCIES * np.nan}, ValueError, "must be finite, got 12"),
        ("Fourier", {"frequencies": FREQUENCIES * 1j}, TypeError, "must hold real numbers"),
        ("Fourier", {"frequencies": FREQUENCIES.astype(str)}, TypeError, "must hold real numbers"),
        ("Fourier", {"frequencies": pd.DataFrame(FREQUENCIES)}, TypeError, "pass .to_numpy()"),
        (
            "Fourier",
            {"frequencies": FREQUENCIES, "n_frequencies": 7},
            ValueError,
            "frequencies are used as given, so n_frequencies would be ignored, got n_frequencies=7",
        ),
        (
            "Fourier",
            {"frequencies": FREQUENCIES, "sampler": "sobol"},
            ValueError,
            "frequencies are used as given, so sampler would be ignored, got sampler='sobol'",
        ),
        ("Landmarks", {"points": 0}, ValueError, "points must be at least 1, got 0"),
        ("Landmarks", {"points": 5.0}, TypeError, "points must be an integer, got 5.0"),
        ("Landmarks", {"points": None}, TypeError, "points must be an integer, got None"),
        ("Landmarks", {"points": "200"}, TypeError, "points must be an integer, got '200'"),
        ("Landmarks", {"points": True}, TypeError, "points must be an integer, got True"),
        ("Landmarks", {"points": Q[0]}, ValueError, "landmarks must have shape"),
        ("Landmarks", {"points": Q[:, :0]}, ValueError, "not be empty, got shape (20, 0)"),
        ("Landmarks", {"points": Q[:0]}, ValueError, "landmarks must not be empty"),
        ("Landmarks", {"points": Q.astype(str)}, TypeError, "landmarks must hold real numbers"),
        ("Landmarks", {"points": pd.DataFrame(Q)}, TypeError, "pass .to_numpy()"),
        ("Landmarks", {"points": MASKED}, TypeError, "landmarks must not be a masked"),
        ("Landmarks", {"points": changed(2, 1, np.nan)}, ValueError, "must be finite"),
        ("Landmarks", {"points": changed(2, 1, -0.5)}, ValueError, "got -0.5 in row 2 column 1"),
        ("Landmarks", {"points": LOGITS}, ValueError, "landmarks must hold probabi"),
        (
            "Landmarks",
            {"points": scaled(17, 18)},
            ValueError,
            "rows sum to 1, got row 17 with the sum 0.930000 (2 of 20 rows are such)",
        ),
        ("Landmarks", {"rank": 5}, TypeError, "rank"),
        ("Blocks", {"size": 0}, ValueError, "size must be at least 1, got 0"),
        ("Blocks", {"size": 2.0}, TypeError, "size must be an integer, got 2.0"),
        ("Blocks", {"block_size": 2}, TypeError, "block_size"),
    ]:
        call = partial(getattr(ckce, method), **options)
        values = tuple(options.values())
        yield Refusal(f"{method}({_naming(options)})", call, error, (fragment,), values)


class Classifier:
    """As much of a fitted classifier as a scorer looks at."""

    classes_ = np.arange(3)

    def __init__(self, probs=Q):
        self.predict_proba = lambda X: probs


def _bad_scores():
    x = np.zeros((20, 1))
    score = scorers.neg_ckce
    for name, call, error, fragment in [
        ("no probabilities", partial(score, object(), x, Y), TypeError, "must have predict_proba"),
        ("label", partial(score, Classifier(), x, Y + 1), ValueError, "is not in labels"),
        ("NaN", partial(score, Classifier(Q * np.nan), x, Y), ValueError, "row 0 column 0 is nan"),
        ("lengths", partial(score, Classifier(), x, Y[1:]), ValueError, "same number of rows"),
        ("metric", partial(scorers.make_scorer, "auc"), ValueError, "metric must be one of"),
        (
            "gone",
            partial(scorers.make_scorer("ckce", n_frequencies=5), Classifier(), x, Y),
            TypeError,
            "n_frequencies",
        ),
        (
            "option",
            partial(scorers.make_scorer("ckce", bandwidth=-1.0), Classifier(), x, Y),
            ValueError,
            "bandwidth must be positive",
        ),
    ]:
        yield Refusal(f"scorer: {name}", call, error, (fragment,), (x, Y))
    call = partial(ckce.CalibrationDisplay.from_estimator, object(), x, Y)
    words = ("must have predict_proba",)
    yield Refusal("CalibrationDisplay.from_estimator: none", call, TypeError, words, (x, Y))


def _bad_choices():
    """Entry points that take no labels."""
    median, frequencies = ckce.median_bandwidth, ckce.fourier_frequencies
    for name, call, error, fragment in [
        (
            "median_bandwidth: NaN",
            partial(median, changed(17, 1, np.nan)),
            ValueError,
            "row 17 column 1",
        ),
        (
            "median_bandwidth: None",
            partial(median, None),
            TypeError,
            "y_prob must be an array, got None",
        ),
        ("median_bandwidth: empty", partial(median, Q[:0]), ValueError, "at least one row"),
        ("median_bandwidth: 0-d", partial(median, 0.5), ValueError, "y_prob must have shape"),
        (
            "median_bandwidth: kernel",
            partial(median, Q, kernel="rbf"),
            ValueError,
            "kernel must be one of",
        ),
        (
            "median_bandwidth: seed",
            partial(median, Q, random_state=0.5),
            TypeError,
            "random_state must be",
        ),
        (
            "median_bandwidth: weight",
            partial(median, Q, sample_weight=-W),
            ValueError,
            "row 0 is -1.0",
        ),
        (
            "median_bandwidth: bool",
            partial(median, Q, normalize=1),
            TypeError,
            "normalize must be True",
        ),
        (
            "fourier_frequencies: m",
            partial(frequencies, 1),
            ValueError,
            "n_classes must be at least 2",
        ),
        (
            "fourier_frequencies: m float",
            partial(frequencies, 3.0),
            TypeError,
            "n_classes must be an int",
        ),
        (
            "fourier_frequencies: D",
            partial(frequencies, 3, 0),
            ValueError,
            "n_frequencies must be at least",
        ),
        (
            "fourier_frequencies: many",
            partial(frequencies, 3, 10**15),
            MemoryError,
            "smaller n_frequencies",
        ),
        (
            "fourier_frequencies: bandwidth",
            partial(frequencies, 3, bandwidth=0.0),
            ValueError,
            "bandwidth must be positive and finite, got 0.0",
        ),
        (
            "fourier_frequencies: kernel",
            partial(frequencies, 3, kernel="linear"),
            ValueError,
            "kernel='linear' has no Fourier features",
        ),
        (
            "fourier_frequencies: sampler",
            partial(frequencies, 3, sampler="halton"),
            ValueError,
            "sampler must be one of",
        ),
    ]:
        yield Refusal(name, call, error, (fragment,), (Q,))


def _bad_landmarks():
    make, choose = ckce.CKCEAccumulator, ckce.CKCEAccumulator.from_sample
    points = ckce.Landmarks(Q[:5])
    chosen = partial(choose, Y, Q, method=ckce.Landmarks(5))
    for name, call, error, fragment in [
        (
            "shape",
            partial(make, 3, method=ckce.Landmarks([[0.5, 0.5]])),
            ValueError,
            "landmarks must have shape ('any', 3), got (1, 2)",
        ),
        (
            "bandwidth",
            partial(make, 3, method=points, bandwidth="median"),
            ValueError,
            "bandwidth must be given beside landmarks, got 'median'",
        ),
        ("no bandwidth", partial(make, 3, method=points, bandwidth=0), ValueError, "positive"),
        (
            "linear",
            partial(make, 3, method=points, kernel="linear"),
            ValueError,
            "kernel='linear' needs no features, got method=Landmarks(",
        ),
        ("number", partial(make, 3, method="landmarks"), ValueError, "take them from a sample"),
        ("chosen linear", partial(chosen, kernel="linear"), ValueError, "needs no features"),
        ("chosen kernel", partial(chosen, kernel="rbf"), ValueError, "kernel must be one of"),
        (
            "chosen bandwidth",
            partial(chosen, bandwidth="mean"),
            ValueError,
            "bandwidth must be one",
        ),
        ("chosen width", partial(chosen, bandwidth=-1.0), ValueError, "bandwidth must be positive"),
        ("chosen seed", partial(chosen, random_state=-1), ValueError, "random_state must be in"),
        (
            "chosen NaN",
            partial(choose, Y, Q * np.nan, method="landmarks"),
            ValueError,
            "row 0 column 0",
        ),
        ("chosen unknown", partial(chosen, colour=1), TypeError, "colour"),
        ("classes", partial(chosen, n_classes=3), TypeError, "n_classes comes from the sample"),
    ]:
        yield Refusal(f"landmarks: {name}", call, error, (fragment,), (Q, points.points))


def _scanned(suffix, content, use=list, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"predictions{suffix}"
        path.write_bytes(content)
        try:
            return use(ckce.scan(path, **options))
        finally:
            assert path.read_bytes() == content
            assert [each.name for each in Path(folder).iterdir()] == [path.name]


def _saved(save=np.savez, **arrays):
    buffer = io.BytesIO()
    save(buffer, **arrays)
    return buffer.getvalue()


def _bad_files():
    whole = _saved(labels=Y, probs=Q)
    flipped = whole.replace(Q.tobytes(), Q[::-1].tobytes())
    objects = _saved(labels=Y, probs=np.array([{}, []], dtype=object))
    table = b"labels,probs0,probs1\n0,0.5,0.5\n"
    for name, suffix, content, fragment in [
        ("empty", ".npz", b"", "is not an npz file"),
        ("cut off", ".npz", whole[:-300], "is not an npz file"),
        ("other bytes", ".npz", flipped, "is damaged"),
        ("pickled objects", ".npz", objects, "never unpickled"),
        ("no labels", ".npz", _saved(probs=Q), "has no array 'labels'"),
        ("unequal rows", ".npz", _saved(labels=Y[1:], probs=Q), "has 19 rows"),
        ("one column", ".npz", _saved(labels=Y, probs=Q[:, :1]), "at least 2 classes"),
        ("text in place of an array", ".npz", b"labels,probs", "is not an npz file"),
        ("another kind", ".txt", b"", "predictions.txt"),
        ("empty table", ".csv", b"", "is empty"),
        ("not a number", ".csv", table + b"0,half,0.5\n", "half"),
        ("short line", ".csv", table + b"0,0.5\n", "line 3"),
        ("not text", ".csv", b"\xff\xfe" + table, "UTF-8"),
        ("header only", ".csv", b"labels,probs0,probs1\n", "no rows"),
    ]:
        yield Refusal(f"scan: {name}", partial(_scanned, suffix, content), ValueError, (fragment,))
    for options, error, fragment in [
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1, got 0"),
        ({"batch_size": 2.0}, TypeError, "batch_size must be an integer, got 2.0"),
        ({"progress": 1}, TypeError, "progress must be True or False, got 1"),
        ({"classes": ["a", "b"]}, ValueError, "classes must give 3 distinct names"),
        ({"classes": ["a", "b", "b"]}, ValueError, "classes must give 3 distinct names"),
        ({"classes": ["1", "2", "3"]}, ValueError, "classes must be integers where the labels"),
        ({"classes": [1, 2, 3]}, ValueError, "has the label 0, but the classes are '1', '2', '3'"),
        ({"probs": "q"}, ValueError, "no array 'q'"),
        ({"probs": ["probs", "labels"]}, ValueError, "probs must name one"),
        ({"labels": "y"}, ValueError, "no array 'y'"),
    ]:
        call = partial(_scanned, ".npz", whole, **options)
        yield Refusal(f"scan({_naming(options)})", call, error, (fragment,))
    for method, options, error, fragment in [
        ("sample", {"n_samples": 0}, ValueError, "n_samples must be at least 1, got 0"),
        ("sample", {"random_state": None}, TypeError, "random_state must be an integer"),
        ("accumulate", {"bandwidth": -1.0}, ValueError, "bandwidth must be positive"),
        ("accumulate", {"n_classes": 3}, TypeError, "n_classes"),
        ("read", {"spool": "/nowhere"}, FileNotFoundError, "/nowhere"),
        ("compare", {"other": 3}, TypeError, "other must be a Scan, got int"),
    ]:
        packed = _saved(np.savez_compressed, labels=Y, probs=Q)
        call = partial(
            _scanned, ".npz", packed, lambda scan, m=method, o=options: getattr(scan, m)(**o)
        )
        yield Refusal(f"Scan.{method}({_naming(options)})", call, error, (fragment,))
    for path, error, fragment in [
        ([], ValueError, "path must name at least one file"),
        ("no such file.npz", FileNotFoundError, "does not exist"),
        (Path(__file__).parent, IsADirectoryError, "is a directory"),
        (7, TypeError, "path must be a path, or a sequence of paths, got int"),
        (None, TypeError, "path must be a path, or a sequence of paths, got NoneType"),
        ([7], TypeError, "path must be a path, or a sequence of paths, got int"),
        (io.BytesIO(whole), TypeError, "got BytesIO; write it to a file"),
    ]:
        yield Refusal(f"scan: {path!r:.20}", partial(ckce.scan, path), error, (fragment,))
    words = ("path must be a path, or a sequence of paths, got int",)
    yield Refusal("read_log: 7", partial(ckce.read_log, 7), TypeError, words)
    page = ckce.report(Y, Q, sensitivity=False)
    where = Path(__file__).parents[1]
    yield Refusal("Report.save: folder", partial(page.save, where), IsADirectoryError, ("tests",))


def _accumulator(**options):
    own = {"n_classes": 3, "bandwidth": 0.5, "method": ckce.Fourier(3)}
    acc = ckce.CKCEAccumulator(**{**own, **options})
    acc.update(Y, Q)
    return acc


def _bad_batches():
    for name, ((y, q), error, fragments) in BAD_DATA.items():
        # A batch may be empty; a stream has other words for strings, and for 2 columns in place of 3.
        if name in (
            "labels objects",
            "labels lists",
            "labels missing",
            "swapped, binary",
            "y_prob ragged",
            "empty",
            "empty lists",
        ):
            continue
        if "strings" in name or name in ("categories in another order", "columns in another order"):
            continue
        acc = _accumulator()
        if np.ndim(q) == 1 or np.shape(q)[-1:] in (
            (0,),
            (1,),
        ):  # not 3 columns, which is said first
            fragments = []
        watched = (acc, y, q)
        yield Refusal(
            f"CKCEAccumulator.update: {name}",
            partial(acc.update, y, q),
            error,
            tuple(fragments),
            watched,
        )
    for weight, fragment in [(-W, "row 0 is -1.0"), (W[1:], "shape (20,)"), (W * np.nan, "nan")]:
        acc = _accumulator()
        call = partial(acc.update, Y, Q, sample_weight=weight)
        yield Refusal(
            f"CKCEAccumulator.update: {fragment}", call, ValueError, (fragment,), (acc, weight)
        )


def _bad_accumulators():
    known = set(inspect.signature(ckce.CKCEAccumulator).parameters)
    for options, error, fragment in [
        *BAD_OPTIONS,
        ({"n_classes": 1}, ValueError, "n_classes must be at least 2, got 1"),
        ({"n_classes": 3.0}, TypeError, "n_classes must be an integer, got 3.0"),
        ({"n_classes": 10**15}, MemoryError, "smaller"),
        ({"debias": 1}, TypeError, "debias must be True or False, got 1"),
        ({"n_bins": 0}, ValueError, "n_bins must be at least 1, got 0"),
        ({"labels": [0, 1]}, ValueError, "labels must name the 3 columns"),
        ({"labels": [0, 1, 1]}, ValueError, "labels must be distinct"),
        ({"labels": [0.0, 1.0, np.nan]}, ValueError, "labels must be finite, got nan"),
        ({"labels": np.array([0, 1, np.inf])}, ValueError, "labels must be finite, got inf"),
        ({"shard_id": 7}, TypeError, "shard_id must be a string, got 7"),
        ({"regularization": "loo"}, TypeError, "regularization must be a number"),
    ]:
        if options.get("method") in ("cholesky", "exact") or options.get("kernel") == "linear":
            continue  # it has words of its own; test_streaming
        if not set(options) <= known or callable(options.get("kernel")):
            continue
        if fragment == "which is not in labels" or options.get("input") in ("logits", "log_probs"):
            continue  # that is seen when there are rows
        call = partial(ckce.CKCEAccumulator, **{"n_classes": 3, **options})
        yield Refusal(f"CKCEAccumulator({_naming(options)})", call, error, (fragment,))


def _bad_uses():
    """Methods of results and accumulators."""
    one, two = ckce.estimate(Y, Q), ckce.jkce_estimate(Y, Q)
    for level in (95, 0.0, "0.95", True):
        for entry, call in (("Estimate", one.interval), ("JkceEstimate", two.interval)):
            words = (f"level must be between 0 and 1, got {level!r}",)
            yield Refusal(f"{entry}.interval({level!r})", partial(call, level), ValueError, words)
    acc, empty, pending = _accumulator(), _accumulator().fresh(), _accumulator(bandwidth="median")
    comparison = compare(Y, Q, method="fourier")
    curve, page = shift_curve(Y, Q), ckce.report(Y, Q)
    found, grouped = ckce.witness(Y, Q), ckce.witness(Y, Q, groups=np.arange(20) // 2)
    folder = Path(__file__).parents[1]
    for name, call, error, fragment in [
        ("CKCEAccumulator.compute: no rows", empty.compute, ValueError, "holds no rows yet"),
        ("CKCEAccumulator.evaluate: no rows", empty.evaluate, ValueError, "holds no rows yet"),
        ("CKCEAccumulator.witness: no rows", empty.witness, ValueError, "holds no rows yet"),
        ("Witness.own: groups", grouped.own, ValueError, "needs independent rows, got groups"),
        ("Witness.own: a state", acc.witness().own, ValueError, "does not keep"),
        ("Witness.correction: columns", partial(found.correction, [0.5]), ValueError, "3 columns"),
        ("Witness.correction: sums", partial(found.correction, Q + 1), ValueError, "y_prob"),
        ("Witness.worst_regions: 0", partial(found.worst_regions, 0), ValueError, "n must be at"),
        ("CKCEAccumulator.sums: no bandwidth", pending.sums, ValueError, "bandwidth must be known"),
        ("CKCEAccumulator.add_sums: NaN", partial(acc.add_sums, [np.nan]), ValueError, "a vector"),
        ("CKCEAccumulator.add_sums: short", partial(acc.add_sums, [1, 1]), ValueError, "sums"),
        ("CKCEAccumulator.add_sums: rows", partial(acc.add_sums, -acc.sums()), ValueError, "rows"),
        ("CKCEAccumulator.fresh: shard", partial(acc.fresh, 7), TypeError, "must be a string"),
        ("CKCEAccumulator.load: folder", partial(acc.load, folder), IsADirectoryError, "tests"),
        ("CKCEAccumulator.load: none", partial(acc.load, folder / "no"), FileNotFoundError, "no"),
        (
            "CKCEAccumulator.load: None",
            partial(acc.load, None),
            TypeError,
            "path must be a path, got N",
        ),
        ("CKCEAccumulator.load: 3", partial(acc.load, 3), TypeError, "path must be a path, got 3"),
        (
            "CKCEAccumulator.from_bytes: text",
            partial(acc.from_bytes, "abc"),
            TypeError,
            "data must be bytes, got str",
        ),
        ("CKCEAccumulator.save: folder", partial(acc.save, folder), IsADirectoryError, "tests"),
        ("Report.made_by: a number", partial(page.made_by, 7), TypeError, "command must be a str"),
        ("Comparison.pair: unknown", partial(comparison.pair, "one", "1"), KeyError, "no pair of"),
        ("ShiftCurve.values: metric", partial(curve.values, "auc"), ValueError, "metric must be"),
        ("ShiftCurve.kept: metric", partial(curve.kept, "auc"), ValueError, "metric must be"),
        ("ShiftCurve.sentence: metric", partial(curve.sentence, None), TypeError, "metric must be"),
    ]:
        yield Refusal(name, call, error, (fragment,), (acc,))
    for options, error, fragment in [
        ({"bandwidths": []}, ValueError, "bandwidths must not be empty"),
        ({"bandwidths": [0.0]}, ValueError, "bandwidths[0] must be positive and finite, got 0.0"),
        ({"bandwidths": "12"}, TypeError, "bandwidths[0] must be a number, got '1'"),
        ({"regularizations": [1, np.nan]}, ValueError, "regularizations[1] must be positive"),
        ({"progress": 1}, TypeError, "progress must be True or False"),
    ]:
        call = partial(comparison.sensitivity, **options)
        yield Refusal(f"Comparison.sensitivity({_naming(options)})", call, error, (fragment,))


def _bad_models():
    """Models, or shifts, that do not fit together."""
    short, wide = Q[1:], np.column_stack([Q, 0 * W])
    frames = {"a": pd.DataFrame(Q), "b": pd.DataFrame(Q[::-1], index=range(19, -1, -1))}
    for name, arguments, error, fragment in [
        ("compare: an array", (Y, Q), TypeError, "y_prob must be a dict of predictions by model"),
        ("compare: one model", (Y, {"a": Q}), ValueError, "at least 2 models, got 1"),
        ("compare: keys", (Y, {1: Q, 2: Q}), TypeError, "y_prob must have strings as keys, got 1"),
        ("compare: keys of labels", ({"a": Y}, frames), ValueError, "must have the keys of y_prob"),
        ("compare: rows", (Y, {"a": Q, "b": short}), ValueError, "model 'b': y_true and y_prob"),
        ("compare: classes", (Y, {"a": Q, "b": wide}), ValueError, "of one shape, since rows are"),
        (
            "compare: order",
            (Y, frames),
            ValueError,
            "model 'a' and model 'b' must have the same in",
        ),
        ("shift_curve: an array", (Y, Q), TypeError, "y_prob must be a dict of predictions"),
        ("shift_curve: no model", (Y, {}), ValueError, "at least one model, got none"),
        ("shift_curve: keys", (Y, {1: [Q]}), TypeError, "must have strings as keys, got 1"),
        ("shift_curve: shifts", (Y, {"a": [Q], "b": [Q, Q]}), ValueError, "on the same shifts"),
        ("shift_curve: labels", ([Y], {"a": [Q, Q]}), ValueError, "the labels of 2 shifts"),
        ("shift_curve: rows", (Y, {"a": [Q, short]}), ValueError, "model 'a', shift 1: y_true"),
        ("shift_curve: classes", (Y, {"a": [Q, wide]}), ValueError, "the same classes, got [3, 4]"),
        ("report: no model", (Y, {}), ValueError, "at least"),
        ("report: keys of labels", ({"a": Y}, Q), ValueError, "must have the keys of y_prob"),
    ]:
        call = partial(getattr(ckce, name.split(":")[0]), *arguments)
        yield Refusal(name, call, error, (fragment,), arguments)


def _bad_merges():
    for options, fragment in [
        ({"bandwidth": 0.6}, "bandwidth must be the same to merge, got 0.5 and 0.6"),
        ({"method": ckce.Fourier(4)}, "n_frequencies must be the same to merge, got 3 and 4"),
        ({"random_state": 1}, "random_state must be the same to merge"),
        ({"debias": False}, "debias must be the same to merge"),
        ({"kernel": "gaussian"}, "kernel must be the same to merge"),
    ]:
        acc, other = _accumulator(), _accumulator(**options)
        call = partial(acc.merge, other)
        yield Refusal(
            f"CKCEAccumulator.merge({_naming(options)})",
            call,
            ValueError,
            (fragment,),
            (acc, other),
        )
    acc = _accumulator()
    yield Refusal(
        "CKCEAccumulator.merge: None",
        partial(acc.merge, None),
        TypeError,
        ("CKCEAccumulator",),
        (acc,),
    )
    acc, other = _accumulator(shard_id="a"), _accumulator(shard_id="a")
    call = partial(acc.merge, other)
    yield Refusal(
        "CKCEAccumulator.merge: one shard twice", call, ValueError, ("'a'",), (acc, other)
    )
    pending = _accumulator(bandwidth="median")
    call = partial(pending.merge, pending)
    words = ("bandwidth must be known before merging",)
    yield Refusal("CKCEAccumulator.merge: unknown bandwidth", call, ValueError, words, (pending,))


def _bad_grounds():
    """States of a comparison at equal predictions."""
    make, models = ckce.GroundAccumulator.from_sample, {"a": Q, "b": Q[::-1]}
    empty = make(Y, models)
    full = empty.fresh()
    full.update(Y, Q)
    half = empty.fresh()
    half.update(Y[:-1], Q[:-1])
    other = make(Y, models, bandwidth=0.3)
    for name, call, error, fragment in [
        ("from_sample: an array", partial(make, Y, Q), TypeError, "y_prob must be a dict"),
        (
            "from_sample(kernel='laplace')",
            partial(make, Y, models, kernel="laplace"),
            ValueError,
            "kernel must have a Gaussian part",
        ),
        ("update: labels", partial(full.update, Y + 9, Q), ValueError, "y_true"),
        ("merge: None", partial(full.merge, None), TypeError, "GroundAccumulator, got NoneType"),
        ("merge: bandwidth", partial(full.merge, other), ValueError, "must be the same to merge"),
        (
            "compare: None",
            partial(full.compare, None),
            TypeError,
            "GroundAccumulator, got NoneType",
        ),
        ("compare: empty", partial(full.compare, empty), ValueError, "holds no rows yet"),
        ("compare: rows", partial(full.compare, half), ValueError, "must have the same rows"),
        (
            "compare(regularization='loo')",
            partial(full.compare, full, regularization="loo"),
            TypeError,
            "regularization",
        ),
    ]:
        yield Refusal(f"GroundAccumulator.{name}", call, error, (fragment,))


def _bad_states():
    data = _accumulator().to_bytes()
    for name, state, fragment in [
        ("empty", b"", "is empty"),
        ("cut off", data[:-1], "is truncated"),
        ("longer", data + b"\0", "is damaged"),
        ("a bit flipped", data[:700] + bytes([data[700] ^ 1]) + data[701:], "checksum"),
        ("foreign", b"PK\3\4" + data[4:], "is not a ckce state"),
        ("future", data[:8] + b"\x63" + data[9:], "format version 99"),
    ]:
        call = partial(ckce.CKCEAccumulator.from_bytes, state)
        yield Refusal(f"CKCEAccumulator.from_bytes: {name}", call, ValueError, (fragment,))


def _read_log(file, content, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        path.write_bytes(content)
        return ckce.read_log(path, **options)


def _bad_logs():
    """Logs of language models."""
    for name, file, content, options, fragments in logs.broken():
        call = partial(_read_log, file, content, **options)
        yield Refusal(f"read_log: {name}", call, ValueError, fragments)
    text = logs.as_lines(logs.lm_eval_lines(3))
    for options, error, fragment in [
        ({"loglikelihood": "words"}, ValueError, "loglikelihood must be one of ['raw'"),
        ({"order": "random"}, ValueError, "order must be one of ['sorted'"),
        ({"target": 1}, TypeError, "target must be a string, got 1"),
        ({"given_text": "yes"}, TypeError, "given_text must be True or False"),
    ]:
        call = partial(_read_log, "samples.jsonl", text, **options)
        yield Refusal(f"read_log({_naming(options)})", call, error, (fragment,))
    log = _read_log("samples.jsonl", text)
    other = _read_log("samples.jsonl", text.replace(b"hash", b"other"))
    tokens = _read_log("t.jsonl", logs.as_lines([logs.vllm_line(*_one_text(), 5)]))
    for name, found, error, fragment in [
        ("one log", {"a": log}, TypeError, "at least two logs"),
        ("no log", {"a": log, "b": Q}, TypeError, "must hold ckce.Log, got ndarray for 'b'"),
        ("other questions", {"a": log, "b": other}, ValueError, "no question is in all logs"),
        ("tokens and questions", {"a": log, "b": tokens}, ValueError, "got some of both"),
    ]:
        yield Refusal(f"join_logs: {name}", partial(ckce.join_logs, found), error, (fragment,))


def _one_text():
    predictions, tokens = logs.made_up_tokens(1)
    return predictions[0], tokens[0]


def _bad_multiple_choice():
    """Choices, and logits of tokens."""
    inf, nan = np.inf, np.nan
    for name, scores, options, error, fragment in [
        ("strings", [["a", "b"]], {}, TypeError, "scores must hold real numbers"),
        ("1-d", [1.0, 2.0], {}, ValueError, "scores must have shape"),
        (
            "one choice",
            [[1.0, 2.0], [1.0]],
            {},
            ValueError,
            "row 1 has 1 choices, expected at least 2",
        ),
        ("NaN", [[nan, 2.0, 1.0]], {}, ValueError, "scores row 0 has NaN before other entries"),
        ("inf", [[inf, 2.0]], {}, ValueError, "scores row 0 holds inf"),
        ("-inf", [[-inf, -inf]], {}, ValueError, "scores row 0 holds -inf only"),
        ("sums", [[0.5, 0.4]], {"input": "probs"}, ValueError, "scores row 0 sums to 0.9"),
        ("negative", [[-0.5, 1.5]], {"input": "probs"}, ValueError, "holds what is no probability"),
        ("input", [[0.5, 0.5]], {"input": "percent"}, ValueError, "input must be one of"),
        ("order", [[0.5, 0.5]], {"order": "random"}, ValueError, "order must be one of ['sorted'"),
        ("word", [[0.5, 0.5]], {"word": "a|b"}, ValueError, "word must be letters"),
    ]:
        call = partial(ckce.Choices, scores, **options)
        yield Refusal(f"Choices: {name}", call, error, (fragment,))
    choices = ckce.Choices([[1.0, 2.0], [1.0, 0.0, 2.0]])
    for name, y, options, error, fragment in [
        (
            "labels",
            [0, 3],
            {},
            ValueError,
            "y_true row 1 is 3, but its row has not so many choices",
        ),
        ("the third of two", [2, 2], {}, ValueError, "y_true row 0 is 2"),
        ("words", ["a", "b"], {}, TypeError, "y_true must hold positions"),
        ("rows", [0], {}, ValueError, "same number of rows, got 1 and 2"),
        (
            "named",
            [0, 1],
            {"labels": [0, 1, 2]},
            ValueError,
            "labels must be None with ckce.Choices",
        ),
        (
            "logits",
            [0, 1],
            {"input": "logits"},
            ValueError,
            "ckce.Choices, which takes input= itself",
        ),
    ]:
        call = partial(ckce.ckce, y, choices, **options)
        yield Refusal(f"ckce: choices, {name}", call, error, (fragment,))
    call = partial(ckce.CKCEAccumulator(3).update, [0, 1], choices)
    words = ("an array in a stream", "ckce.Choices")
    yield Refusal("CKCEAccumulator.update: choices", call, TypeError, words)
    z, y = np.zeros((2, 4, 6)), np.zeros((2, 4), int)
    for name, arguments, options, error, fragment in [
        ("labels", (z, y[0]), {}, TypeError, "labels must hold integers of shape (n_texts, n_pos"),
        ("real labels", (z, y + 0.5), {}, TypeError, "labels must hold integers"),
        ("texts", (z[:1], y), {}, ValueError, "the same number of texts, got 1 and 2"),
        (
            "positions",
            (z[:, 1:], y),
            {},
            ValueError,
            "logits of text 0 must be floats of shape (4,",
        ),
        ("k", (z, y), {"k": 6}, ValueError, "k must be below the number of tokens, got 6 and 6"),
        ("k of 0", (z, y), {"k": 0}, ValueError, "k must be at least 1"),
        (
            "a large label",
            (z, y + 6),
            {"k": 2},
            ValueError,
            "labels of text 0 hold 6, expected 0..5",
        ),
        ("nothing asked", (z, y - 100), {"k": 2}, ValueError, "labels must hold tokens, got -100"),
        ("NaN", (z + nan, y), {"k": 2}, ValueError, "logits of text 0 hold NaN or inf"),
        ("input", (z, y), {"input": "probs"}, ValueError, "input must be one of ['logits'"),
    ]:
        call = partial(ckce.next_tokens, *arguments, **options)
        yield Refusal(f"next_tokens: {name}", call, error, (fragment,), arguments)


CATALOGUE = [
    *_bad_data(),
    *_bad_batches(),
    *_bad_accumulators(),
    *_bad_merges(),
    *_bad_grounds(),
    *_bad_uses(),
    *_bad_models(),
    *_bad_states(),
    *_bad_options(),
    *_gone(),
    *_bad_methods(),
    *_top_k(),
    *_bad_scores(),
    *_bad_choices(),
    *_bad_landmarks(),
    *_bad_files(),
    *_bad_logs(),
    *_bad_multiple_choice(),
]
