"""Prediction files, in batches, at the memory of one batch.

Start with scan.py. A format is a file: arrays.py, text.py, arrow.py; formats.py knows which suffix
is whose, and columns.py finds labels and predictions among the names of a table.
"""
