"""How results are said: tables, intervals, contributions of classes."""

from ckce._results.attribution import Attribution, attribute
from ckce._results.frame import finite, load_pandas
from ckce._results.interval import interval, p_value, percent
from ckce._results.table import Facts, aligned, number, table
