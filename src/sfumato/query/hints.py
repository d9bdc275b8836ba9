"""Hints for words and functions of other systems: what means the same here, or that nothing does.

A hint suggests only what means the same. Where there is only something similar, it says that it is another question.
"""

IN_PYTHON = "Compute it from the answer's rows in Python: that is free."
ONE_VALUE = "It would show the value of one person. MODE(x) and MEDIAN(x) are other questions that can be answered."
MANY_VALUES = (
    "It would show the values of people. SELECT x, COUNT(*) ... GROUP BY x counts each value. That is another "
    "question, and it can be answered."
)
THIRD_MOMENT = "Ask for COUNT(*), SUM(x), SUM(x * x) and SUM(x * x * x)."
FOURTH_MOMENT = "Ask for COUNT(*), SUM(x), SUM(x * x), SUM(x * x * x) and SUM(x * x * x * x)."
A_DAY = "A question means the same whenever it is asked: write the day itself, as DATE '2026-01-31'."
FORMAT_KEYS = (
    "Group by DATE_TRUNC('month', day), and write STRFTIME(DATE_TRUNC('month', day), '%Y-%m') after SELECT: it is free."
)
NO_REGULAR_EXPRESSIONS = (
    "Only patterns of finitely many texts are read, such as '^A[12]$' or 'cat|dog': engines differ in other regular "
    "expressions and in the time that they take. LIKE, ILIKE, STARTS_WITH, ENDS_WITH and CONTAINS can express many."
)
REGULAR_EXPRESSIONS = (
    "REGEXP_REPLACE", "REGEXP_EXTRACT",
)  # fmt: skip
LIKE_PATTERNS = "Write LIKE, ILIKE, STARTS_WITH, ENDS_WITH or CONTAINS, if one of them means the same."
SPECIAL_FUNCTIONS = ("COT", "ATAN2", "GAMMA", "ERF", "FACTORIAL")
LAST_DIGIT = (
    "Engines differ in its last digit, so it is not computed for each row. Store it as a column of the table, or ask "
    "by bins of x, and compute it from these in Python."
)
TEXT_CHANGES = ("REVERSE", "SOUNDEX", "LEVENSHTEIN", "TRANSLATE", "UNACCENT", "ASCII", "CHR", "REPEAT")
CHANGE_KEYS = f"Group by the text itself. {IN_PYTHON}"
HASHES = ("MD5", "SHA1", "SHA2", "SHA256", "SHA512", "HASH", "FARM_FINGERPRINT")
FILE_READERS = ("READ_CSV", "READ_CSV_AUTO", "READ_PARQUET", "READ_JSON", "READ_TEXT", "GLOB", "EXTERNAL_QUERY")
PARTS_OF_TEXT = (
    "SPLIT_PART(x, '@', 2) is the text between the first two @. SUBSTR(x, 1, 3) takes letters by their place."
)
ALL_PEOPLE = "One row could change it altogether. COUNT_IF(MOD(x, 2) = 1) counts the rows whose lowest bit is set."
BITS = "MOD(x, 2) is the lowest bit of a whole number. Other bits: MOD(FLOOR(x / 2), 2), and so on."
NOT_A_NUMBER = "NaN is read as NULL: write x IS NULL."
BINS = "HISTOGRAM(x, 20) counts the rows in 20 bins of equal width."
NO_CHANGES = "Questions only read: nobody can change the data through Sfumato. Begin with SELECT COUNT(*) FROM a table."
CHANGES = ("DELETE", "UPDATE", "INSERT", "CREATE", "DROP", "ALTER", "TRUNCATE", "MERGE", "COPY", "REPLACE")
DESCRIBING = ("DESCRIBE", "SHOW", "PRAGMA", "SUMMARIZE")
TABLES = "`sfumato check` lists the tables and their columns. Begin with SELECT COUNT(*) FROM a table."
EXPLAINED = "preview(sql) shows the margins and the cost, and preview(sql).explain() the measurements. Both are free."
FIRST_WORD_HINTS = {"EXPLAIN": EXPLAINED, **dict.fromkeys(CHANGES, NO_CHANGES), **dict.fromkeys(DESCRIBING, TABLES)}
ONLY_PUBLIC = (
    "Public tables are not protected: compute what is only about them from their files, with any tool. That is free."
)
PRIVATE_FIRST = "Where a private table is joined too, write FROM the private table first."
COUNT_INSTEAD = (
    "COUNT(*) with WHERE counts the rows that have a value. That is another question, and it can be answered."
)
NOT_DATA = "Questions cannot use random numbers."
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
    "SIMILAR TO": LIKE_PATTERNS,
    **dict.fromkeys(("~", "RLIKE", "REGEXP"), f"Write REGEXP_MATCHES(x, 'pattern'). {NO_REGULAR_EXPRESSIONS}"),
    **dict.fromkeys(("&", "|", "^", "<<", ">>"), BITS),
    "ALL": "x > ALL (SELECT y ...) is x > (SELECT MAX(y) ...), except where there is no y or one of them is NULL. The "
    "subquery is about the same person or a public table. x <> ALL (...) is NOT IN.",
    "ANY": "x > ANY (SELECT y ...) is x > (SELECT MIN(y) ...), except where no y is known and NULL matters. The "
    "subquery is about the same person or a public table. x = ANY (...) is IN.",
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
    "SKEWNESS": f"{THIRD_MOMENT} {IN_PYTHON}", "KURTOSIS": f"{FOURTH_MOMENT} {IN_PYTHON}",
    **dict.fromkeys(SPECIAL_FUNCTIONS, LAST_DIGIT), **dict.fromkeys(TEXT_CHANGES, CHANGE_KEYS),
    **dict.fromkeys(HASHES, "A hash of a text is as private as the text: group by the text itself."),
    **dict.fromkeys(FILE_READERS, "A question reads the tables of the dataset. `sfumato add` declares another one."),
    "STRING_SPLIT": PARTS_OF_TEXT, "STR_SPLIT": PARTS_OF_TEXT, "SPLIT": PARTS_OF_TEXT,
    "STRING_TO_ARRAY": PARTS_OF_TEXT,
    "BIT_AND": ALL_PEOPLE, "BIT_OR": ALL_PEOPLE, "BIT_XOR": ALL_PEOPLE, "BITOR": BITS, "BITXOR": BITS, "BITAND": BITS,
    "ISNAN": NOT_A_NUMBER, "IS_NAN": NOT_A_NUMBER,
    "WEEKDAY": "Write DAYOFWEEK(day), where Sunday is 0, or ISODOW(day), where Monday is 1. MySQL's WEEKDAY counts "
    "from Monday = 0: ISODOW(day) - 1.",
    "SOME": "Write ANY. x = ANY (SELECT y ...) is x IN (SELECT y ...), over rows of the same person or a public table.",
    "RANGE_BUCKET": "Write CASE WHEN x < 0 THEN 0 WHEN x < 50 THEN 1 WHEN x < 80 THEN 2 ELSE 3 END for the array "
    "[0, 50, 80]. For bins of equal width: WIDTH_BUCKET(x, 0, 100, 20).",
    "MAD": "MEDIAN(ABS(x - 40)) is the deviation from a median of 40 that was released before.",
    "HISTOGRAM_BIN": BINS, "NUMERIC_HISTOGRAM": BINS,
    "ENTROPY": f"Ask SELECT x, COUNT(*) ... GROUP BY x. {IN_PYTHON}",
    "BOOL_AND": "COUNT_IF(NOT c) is 0 if every row meets c. It is noisy, so one row does not show.",
    "BOOL_OR": "COUNT_IF(c) is above 0 if some row meets c. It is noisy, so one row does not show.",
    "EVERY": "COUNT_IF(NOT c) is 0 if every row meets c. It is noisy, so one row does not show.",
    "LOGICAL_OR": "COUNT_IF(c) is above 0 if some row meets c. It is noisy, so one row does not show.",
    "LOGICAL_AND": "COUNT_IF(NOT c) is 0 if every row meets c. It is noisy, so one row does not show.",
    "EXCLUDE": "Rows of private data are never shown. Select COUNT(*) or another aggregate instead.",
    "DATENAME": "Write MONTHNAME(day), DAYNAME(day), or EXTRACT(month FROM day).",
    "STRLEN": "It counts bytes. LENGTH(x) counts letters: the same number if all of them are ASCII.",
    "PRINTF": "Write FORMAT('{:.2f}', x) for printf('%.2f', x).",
    "NOW": A_DAY, "GETDATE": A_DAY, "TODAY": A_DAY,
    "TIME_BUCKET": "Group by DATE_TRUNC('week', day) or FLOOR((day - DATE '2026-01-01') / 7).",
    "ANY_VALUE": ONE_VALUE,
    "GEOMETRIC_MEAN": "Write EXP(AVG(LN(x))), with a lower bound of x above 0.",
    "GEOMEAN": "Write EXP(AVG(LN(x))), with a lower bound of x above 0.",
    "PRODUCT": "Write EXP(SUM(LN(x))), with a lower bound of x above 0.",
    "RAND": NOT_DATA, "RANDOM": NOT_DATA,
    "PIVOT": f"Group by the column instead. {IN_PYTHON}",
    "UNPIVOT": f"Ask for the columns. {IN_PYTHON}",
}  # fmt: skip
