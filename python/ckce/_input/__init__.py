"""What a user passes becomes checked data, once: nothing behind this room checks again.

Start with samples.py. May touch the compiled core only.
"""
