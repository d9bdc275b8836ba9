"""A declared column -> SQL, in two steps: read as its type, then held to what is declared.

Each step is a SELECT of its own, so that no value is computed twice. Part of the trusted perimeter.
"""

from datetime import date, datetime

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Id, Integer, Real, Text
from sfumato.ingest.sql_text import quoted, text

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")  # BIGINT holds them all
WHOLE = (*INTEGERS, "UBIGINT")
FLOATS = ("FLOAT", "DOUBLE")
ZONED = "TIMESTAMP WITH TIME ZONE"
WITH_ZONE = ":[0-9.]+ *[-+A-Za-z]"  # of a text: something follows the time


def sql_type(declared: ColumnDeclaration) -> str:  # noqa: PLR0911 - one return a type
    """What the snapshot stores a column as; small integers are read and added up faster."""
    match declared:
        case Integer(lower=lower, upper=upper):
            return _least_whole(lower, upper)
        case Real():
            return "DOUBLE"
        case Boolean():
            return "BOOLEAN"
        case Category(values=values):
            if isinstance(values[0], bool):
                return "BOOLEAN"
            if isinstance(values[0], int):
                return _least_whole(int(min(values)), int(max(values)))
            # as an enumeration, grouping is by small numbers: three times as fast as by text
            return f"ENUM({', '.join(text(str(value)) for value in values)})"
        case Date():
            return "DATE"
        case DateTime():
            return "TIMESTAMP"
        case Text() | Id():
            return "VARCHAR"


def read(name: str, declared: ColumnDeclaration, kind: str) -> str:  # noqa: PLR0911 - one return a type
    """A source's column as a double, a whole number, a truth value, a day, a moment or a text; NULL if it is none."""
    column = quoted(name)
    match declared:
        case Integer() if kind in INTEGERS:
            return f"CAST({column} AS BIGINT)"
        case Integer():
            return rounded(f"TRY_CAST({column} AS DOUBLE)")
        case Real():
            return f"TRY_CAST({column} AS DOUBLE)"
        case Boolean():
            return f"TRY_CAST({column} AS BOOLEAN)"
        case Category(values=values) if isinstance(values[0], bool):
            return f"TRY_CAST({column} AS BOOLEAN)"
        case Category(values=values) if isinstance(values[0], int):
            return f"TRY_CAST({column} AS BIGINT)"
        case Date():
            return f"TRY_CAST({_in_utc(column) if kind == ZONED else column} AS DATE)"
        case DateTime() if kind == ZONED:
            return _in_utc(column)
        case DateTime() if kind == "VARCHAR":
            # TRY_CAST alone drops the zone that a text names
            zoned = f"WHEN regexp_matches({column}, {text(WITH_ZONE)}) THEN {_in_utc(f'TRY_CAST({column} AS {ZONED})')}"
            return f"CASE {zoned} ELSE TRY_CAST({column} AS TIMESTAMP) END"
        case DateTime():
            return f"TRY_CAST({column} AS TIMESTAMP)"
        case Category() | Text() | Id():
            return as_text(column, kind)


def held(name: str, declared: ColumnDeclaration, kind: str) -> str:  # noqa: PLR0911 - one return a type
    """What was read, within what is declared; NaN and what is undeclared is NULL, or public where NULL may not be."""
    column, form = quoted(name), sql_type(declared)
    match declared:
        case Integer(lower=lower, upper=upper, nullable=nullable):
            ends = (f"{lower}::BIGINT", f"{upper}::BIGINT") if kind in INTEGERS else (double(lower), double(upper))
            public = "" if nullable else f" ELSE {(lower + upper) // 2}"
            return f"CAST({_between(column, *ends, public, real=kind not in INTEGERS)} AS {form})"
        case Real(lower=lower, upper=upper, nullable=nullable):
            public = "" if nullable else f" ELSE {double((lower + upper) / 2)}"
            return _between(column, double(lower), double(upper), public, real=True)
        case Boolean(nullable=nullable):
            return column if nullable else f"COALESCE({column}, false)"
        case Category(values=values, nullable=nullable):
            listed = ", ".join(map(_constant, values))
            known = f"TRY_CAST({column} AS {form})"
            if not isinstance(values[0], str):
                known = f"CASE WHEN {column} IN ({listed}) THEN {known} END"
            return known if nullable else f"COALESCE({known}, CAST({_constant(values[0])} AS {form}))"
        case Text(nullable=nullable):
            return column if nullable else f"COALESCE({column}, '')"
        case Date(lower=lower, upper=upper, nullable=nullable):
            middle = date.fromordinal((lower.toordinal() + upper.toordinal()) // 2)
            public = "" if nullable else f" ELSE {_constant(middle)}"
            return _between(column, _constant(lower), _constant(upper), public, real=False)
        case DateTime(lower=begin, upper=end, nullable=nullable):
            public = "" if nullable else f" ELSE {_constant(begin + (end - begin) // 2)}"
            return _between(column, _constant(begin), _constant(end), public, real=False)
        case Id():
            return column  # never read by a plan


def rounded(value: str) -> str:
    """⌊x + ½⌋ without the sum, which rounds in doubles. Infinities stay, and NaN."""
    return f"(FLOOR({value}) + CAST({value} - FLOOR({value}) >= 0.5::DOUBLE AS INTEGER))"


def as_text(column: str, kind: str) -> str:
    """Text that depends on the row's own value only: a gap elsewhere may have turned whole numbers into floats."""
    if kind not in FLOATS:
        return f"CAST({column} AS VARCHAR)"
    whole = f"CAST(CAST({column} AS BIGINT) AS VARCHAR)"
    exact = f"{column} = FLOOR({column}) AND ABS({column}) <= 9007199254740992"
    other = f"CAST({column} AS VARCHAR)"
    return f"CASE WHEN {column} IS NULL OR isnan({column}) THEN NULL WHEN {exact} THEN {whole} ELSE {other} END"


def _in_utc(moment: str) -> str:
    """A moment with a zone as it is in UTC: a cast would tell it in the zone of whoever reads the source."""
    return f"make_timestamp(epoch_us({moment}))"


def _between(column: str, low: str, high: str, public: str, *, real: bool) -> str:
    """The column, held to its bounds. Most rows are settled by the first test; NaN, to DuckDB, is above infinity."""
    above = f"{column} <= 'inf'::DOUBLE" if real else f"{column} > {high}"
    within = f"WHEN {column} BETWEEN {low} AND {high} THEN {column}"
    return f"CASE {within} WHEN {column} < {low} THEN {low} WHEN {above} THEN {high}{public} END"


def _least_whole(lower: int, upper: int) -> str:
    for bits, name in ((7, "TINYINT"), (15, "SMALLINT"), (31, "INTEGER")):
        if -(1 << bits) <= lower and upper < 1 << bits:
            return name
    return "BIGINT"


def double(value: float) -> str:
    return f"{float(value)!r}::DOUBLE"


def _constant(value: str | int | date) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"TIMESTAMP {text(value.isoformat(' '))}"
    if isinstance(value, date):
        return f"DATE {text(value.isoformat())}"
    return str(value) if isinstance(value, int) else text(value)
