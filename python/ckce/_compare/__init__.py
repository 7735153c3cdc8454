"""Several models: ranking, paired differences, guard rails, sensitivity, shifted data sets.

Start with compare.py. May touch everything but the report, the files and the command line.
"""
