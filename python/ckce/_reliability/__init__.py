"""The reliability diagram: its numbers (diagram.py), and a display like scikit-learn's (display.py).

The picture is in `_plots`. May touch `_metrics` and what is below it.
"""
