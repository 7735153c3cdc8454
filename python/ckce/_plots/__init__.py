"""The pictures, one file each; the only room that imports matplotlib.

It is told numbers and computes none. Start with style.py: the colours, and the canvas of every
picture.
"""
