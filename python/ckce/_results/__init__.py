"""How results are said: tables, intervals, contributions of classes."""
