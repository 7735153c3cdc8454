"""How results are said: tables, intervals, verdicts, contributions of classes.

Start with table.py: one list of columns becomes text, the lines of a terminal and HTML. May touch
`_input` only; computes nothing.
"""

from ckce._results.attribution import Attribution, attribute
from ckce._results.interval import (
    FEW_ROWS,
    NO_SIGN,
    apart,
    by_groups,
    effective_groups,
    in_words,
    interval,
    interval_above_0,
    p_value,
    percent,
    quantile,
    standard_error,
    wilson,
)
from ckce._results.names import LETTERS, short, shortened
from ckce._results.student import student_factor
from ckce._results.table import (
    Column,
    Facts,
    Said,
    Table,
    aligned,
    breakable,
    cut,
    finite,
    form_of,
    harmless,
    load_pandas,
    number,
    table,
)
from ckce._results.verdict import advice, gap_of, lean, verdict
