"""Prediction files, in batches, at the memory of one batch.

Start with scan.py; a format is a file.
"""
