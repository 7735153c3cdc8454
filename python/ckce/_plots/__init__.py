"""The pictures; the only room that imports matplotlib. It is told numbers and computes none."""
