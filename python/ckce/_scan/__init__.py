"""Prediction files, in batches, at the memory of one batch; logs of language models, as arrays.

Start with scan.py. A format is a file: arrays.py, text.py, arrow.py; formats.py knows which suffix
is whose, and columns.py finds labels and predictions among the names of a table.

Logs start with read_log.py. A tool is a file: lm_eval.py, inspect_ai.py, completions.py, token_arrays.py;
log.py is what they give, and join.py matches the questions of several models.
"""
