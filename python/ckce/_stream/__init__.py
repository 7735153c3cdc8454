"""Data that comes in batches: a state of sums that can be merged and saved.

Start with accumulator.py.
"""
