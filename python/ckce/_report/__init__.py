"""The page about one model or several, in one file that needs nothing else.

Start with report.py. It is told numbers and computes none.
"""
