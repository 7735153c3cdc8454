"""Several models: pairs at equal predictions, guard rails, sensitivity, shifted data sets.

Start with compare.py; common_ground.py has two models, ground.py the numbers, verdict.py the words.
May touch everything but the report, the files and the command line.
"""
