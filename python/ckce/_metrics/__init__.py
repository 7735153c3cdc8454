"""The metrics: each function together with what it returns.

Start with ckce.py. May touch problems, methods, results and the input room.
"""
