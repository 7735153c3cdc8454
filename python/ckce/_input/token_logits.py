"""Logits of a language model and the tokens that followed, as arrays of the largest entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckce._input import arrays
from ckce._input.options import check_bool, check_choice, check_count
from ckce._input.top_k_predictions import TopKPredictions, join_top_k
from ckce._input.words import InputError, InputTypeError


def next_tokens(
    logits: Any,
    labels: Any,
    *,
    k: int = 20,
    shift: bool = True,
    ignore_index: int = -100,
    input: str = "logits",
) -> tuple[NDArray[np.int64], TopKPredictions, NDArray[np.int64]]:
    r"""Predictions of next tokens out of logits and labels, as a Trainer hands them to its metrics.

    Of each position the k largest probabilities are kept, with their ids:

    .. math::
        q_t = \operatorname{softmax}(z_t), \qquad y_t = \text{labels}_{t+1}

    Parameters
    ----------
    logits : array of shape (n_texts, n_positions, n_tokens)
        Logits of a causal language model: NumPy, torch (half precision, too), or a list of arrays.
    labels : array of shape (n_texts, n_positions)
        Ids of the tokens; `ignore_index` where none is asked for (padding, the prompt).
    k : int
        Entries to keep, fewer than there are tokens.
    shift : bool
        Whether position t predicts the label of t + 1, as in causal models of ``transformers``. False if
        logits and labels are aligned already.
    ignore_index : int
        The label of positions to leave out.
    input : {"logits", "log_probs"}
        What `logits` holds.

    Returns
    -------
    y_true : array of shape (n_tokens,)
        Ids of the tokens.
    y_prob : TopKPredictions
        The largest entries of their predictions, for ``reduction=ckce.TopK(j)``, j <= k.
    groups : array of shape (n_tokens,)
        The text of each token.

    Notes
    -----
    O(n_positions n_tokens) memory beyond the input: texts are taken one by one. The entries are those
    of the full predictions, so nothing is truncated. Labels must be the tokens of a text that the model
    did not write itself.

    Examples
    --------
    >>> import ckce
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(12, 9, 50))
    >>> labels = rng.integers(50, size=(12, 9))
    >>> labels[:, :4] = -100  # the prompt
    >>> y_true, y_prob, groups = ckce.next_tokens(logits, labels, k=5)
    >>> y_prob
    TopKPredictions(n_samples=60, k=5, ids=True)
    >>> e = ckce.estimate(y_true, y_prob, reduction=ckce.TopK(5), groups=groups)
    >>> e.n_groups
    12
    """
    check_choice("input", input, ("logits", "log_probs"))
    check_bool("shift", shift)
    k = check_count("k", k)
    truth = arrays.as_array("labels", labels)
    if truth.ndim != 2 or truth.dtype.kind not in "iu":
        raise InputTypeError(
            f"labels must hold integers of shape (n_texts, n_positions), got {truth.shape} of "
            f"{truth.dtype}"
        )
    if len(logits) != len(truth):
        raise InputError(
            f"logits and labels must have the same number of texts, got {len(logits)} and {len(truth)}"
        )
    tops, tokens, groups = [], [], []
    for text, (scores, own) in enumerate(zip(logits, truth, strict=True)):
        top, kept = _text(text, scores, own, k, shift, ignore_index, input)
        if len(kept):
            tops.append(top)
            tokens.append(kept)
            groups.append(np.full(len(kept), text))
    if not tops:
        raise InputError(f"labels must hold tokens, got {ignore_index} (ignore_index) everywhere")
    return np.concatenate(tokens), join_top_k(tops), np.concatenate(groups)


def _text(
    text: int, scores: Any, own: NDArray[Any], k: int, shift: bool, ignore_index: int, input: str
) -> tuple[Any, NDArray[np.int64]]:
    """The largest entries of a text, and its tokens."""
    z = arrays.as_array("logits", scores)
    if z.ndim != 2 or len(z) != len(own) or z.dtype.kind != "f":
        raise InputError(
            f"logits of text {text} must be floats of shape ({len(own)}, n_tokens), got {z.shape} of "
            f"{z.dtype}"
        )
    if k >= z.shape[1]:
        raise InputError(f"k must be below the number of tokens, got {k} and {z.shape[1]}")
    z, own = (z[:-1], own[1:]) if shift else (z, own)
    kept = own != ignore_index
    z, own = z[kept].astype(np.float64), own[kept].astype(np.int64)
    if not len(own):
        return None, own
    outside = (own < 0) | (own >= z.shape[1])
    if outside.any():
        raise InputError(
            f"labels of text {text} hold {own[np.argmax(outside)]}, expected 0..{z.shape[1] - 1} or "
            f"{ignore_index} ({int(outside.sum())} of {len(own)} are outside)"
        )
    if np.isnan(z).any() or (z == np.inf).any():
        raise InputError(f"logits of text {text} hold NaN or inf")
    if input == "logits":
        z -= z.max(axis=1, keepdims=True)
        z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
    # the k largest, of equal ones the first
    ids = np.argsort(-z, axis=1, kind="stable")[:, :k]
    return TopKPredictions(np.take_along_axis(z, ids, axis=1), ids, input="log_probs"), own
