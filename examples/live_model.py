"""Calibration of a model of ``transformers`` on a text: ``python examples/live_model.py MODEL text.txt``.

The text must be one that the model has not written: tokens that a model draws from its own predictions are
calibrated, whatever it has learned. ``compute_metrics`` is what a Trainer takes.
"""

import sys

import numpy as np

import ckce

K = 20  # entries of each prediction that are kept


def compute_metrics(prediction):
    """Debiased CKCE of next tokens, for ``Trainer(compute_metrics=...)``.

    A Trainer keeps the logits of the whole evaluation set: texts x positions x tokens.
    """
    logits, labels = prediction
    y_true, y_prob, groups = ckce.next_tokens(logits, labels, k=K)  # leaves out labels of -100
    e = ckce.estimate(y_true, y_prob, reduction=ckce.TopK(K), groups=groups)
    low, high = e.interval()
    return {"ckce_debiased": e.debiased, "ckce_low": low, "ckce_high": high}


def main(name, path, length=256):
    """Score a text, window by window."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = (
        AutoTokenizer.from_pretrained(name),
        AutoModelForCausalLM.from_pretrained(name),
    )
    with open(path, encoding="utf-8") as file:
        ids = tokenizer(file.read(), return_tensors="pt").input_ids[0]
    windows = ids[: len(ids) // length * length].reshape(-1, length)
    parts = []
    with torch.no_grad():
        for window in windows:  # the k largest entries are kept, so memory is that of one window
            logits = model(window[None]).logits.float().numpy()
            parts.append(ckce.next_tokens(logits, window[None].numpy(), k=K))
    y_true = np.concatenate([part[0] for part in parts])
    groups = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    y_prob = ckce.TopKPredictions(
        np.concatenate([part[1].probs for part in parts]),
        np.concatenate([part[1].ids for part in parts]),
    )
    print(ckce.evaluate(y_true, y_prob, reduction=ckce.TopK(K), groups=groups))


if __name__ == "__main__":
    main(*sys.argv[1:])
