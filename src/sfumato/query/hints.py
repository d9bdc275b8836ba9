"""Hints for words and functions of other systems: what means the same here, or that nothing does.

A hint suggests only what means the same. Where there is only something similar, it says that it is another question.
"""

IN_PYTHON = "Compute it from the answer's rows in Python: that is free."
ONE_VALUE = "It would show the value of one person. MODE(x) and MEDIAN(x) are other questions that can be answered."
MANY_VALUES = (
    "It would show the values of people. SELECT x, COUNT(*) ... GROUP BY x counts each value: another question, which "
    "can be answered."
)
MOMENTS = "Ask for COUNT(*), SUM(x), SUM(x * x) and SUM(x * x * x), and compute it from them in Python: that is free."
A_DAY = "A question means the same whenever it is asked: write the day itself, as DATE '2026-01-31'."
FORMAT_KEYS = (
    "Group by DATE_TRUNC('month', day), and write STRFTIME(DATE_TRUNC('month', day), '%Y-%m') after SELECT: it is free."
)
INTERVALS = "The answer has the interval of every number: answer.intervals, to_pandas(intervals=True). It is free."
NO_REGULAR_EXPRESSIONS = (
    "Only patterns of finitely many texts are read, such as '^A[12]$' or 'cat|dog': engines differ in other regular "
    "expressions and in the time that they take. LIKE, ILIKE, STARTS_WITH, ENDS_WITH and CONTAINS can express many."
)
REGULAR_EXPRESSIONS = (
    "REGEXP_REPLACE", "REGEXP_EXTRACT",
)  # fmt: skip
NOT_DATA = "A random number is no question about the data."
A_PARAMETER = "Write the value itself."
WORD_HINTS = {
    "SELECT": "Write a subquery in brackets.",
    "RECURSIVE": "A recursive question has no bound on its cost. Write WITH alone, if no part refers to itself.",
    "CURRENT_DATE": A_DAY,
    "CURRENT_TIMESTAMP": A_DAY,
    "TABLESAMPLE": "Ask about the whole table: that is more accurate. A sample has other numbers.",
    "PIVOT": f"Group by the column instead. {IN_PYTHON}",
    "UNPIVOT": f"Ask for the columns. {IN_PYTHON}",
    "LATERAL": "Write a join on the person's id.",
    "UNNEST": "Columns have no lists.",
    "REGEXP_LIKE": NO_REGULAR_EXPRESSIONS,
    "REGEXP_FULL_MATCH": NO_REGULAR_EXPRESSIONS,
    ";": "Ask one question at a time.",
    "?": A_PARAMETER,
    "$": A_PARAMETER,
    ":": A_PARAMETER,
    "@": A_PARAMETER,
}
FUNCTION_HINTS = {
    **dict.fromkeys(REGULAR_EXPRESSIONS, NO_REGULAR_EXPRESSIONS),
    "APPROX_TOP_K": "Write TOP_K(x, 3).",
    "APPROX_TOP_COUNT": "Write TOP_K(x, 3), and ask for the counts of these values.",
    "STRING_AGG": MANY_VALUES, "LISTAGG": MANY_VALUES, "GROUP_CONCAT": MANY_VALUES, "ARRAY_AGG": MANY_VALUES,
    "LIST": MANY_VALUES, "FIRST": ONE_VALUE, "LAST": ONE_VALUE, "ARG_MAX": ONE_VALUE, "ARG_MIN": ONE_VALUE,
    "MAX_BY": ONE_VALUE, "MIN_BY": ONE_VALUE,
    "KURTOSIS": MOMENTS, "SKEWNESS": MOMENTS,
    "ENTROPY": f"Ask SELECT x, COUNT(*) ... GROUP BY x. {IN_PYTHON}",
    "BOOL_AND": "COUNT_IF(NOT c) is 0 if every row meets c. It is noisy, so one row does not show.",
    "BOOL_OR": "COUNT_IF(c) is above 0 if some row meets c. It is noisy, so one row does not show.",
    "EVERY": "COUNT_IF(NOT c) is 0 if every row meets c. It is noisy, so one row does not show.",
    "LOGICAL_OR": "COUNT_IF(c) is above 0 if some row meets c. It is noisy, so one row does not show.",
    "LOGICAL_AND": "COUNT_IF(NOT c) is 0 if every row meets c. It is noisy, so one row does not show.",
    "INITCAP": f"Group by the text itself. {IN_PYTHON}",
    "BITAND": "MOD(x, 2) is the lowest bit of a whole number. Other bits: MOD(FLOOR(x / 2), 2), and so on.",
    "EXCLUDE": "Rows of private data are never shown. Select COUNT(*) or another aggregate: another question.",
    "NOW": A_DAY, "GETDATE": A_DAY, "TODAY": A_DAY,
    "TIME_BUCKET": "Group by DATE_TRUNC('week', day) or FLOOR((day - DATE '2026-01-01') / 7).",
    "ANY_VALUE": ONE_VALUE, "DP_INTERVAL_LOW": INTERVALS, "DP_INTERVAL_HIGH": INTERVALS,
    "GEOMETRIC_MEAN": "Write EXP(AVG(LN(x))), with a lower bound of x above 0.",
    "GEOMEAN": "Write EXP(AVG(LN(x))), with a lower bound of x above 0.",
    "PRODUCT": "Write EXP(SUM(LN(x))), with a lower bound of x above 0.",
    "RAND": NOT_DATA, "RANDOM": NOT_DATA,
    "PIVOT": f"Group by the column instead. {IN_PYTHON}",
    "UNPIVOT": f"Ask for the columns. {IN_PYTHON}",
}  # fmt: skip
