"""Steps 2 and 3 of reading: a canonical text -> a value of the declared type -> a value within the declaration.

For each declared type there is one function of the canonical text; its value is NULL where the text is not readable.
It is the same for every source. A column whose source has numbers or moments is not written as text first: a shorter
way gives the same value, as tests show. Each step is a SELECT of its own, so that no value is computed twice and a load
report can count what each step changes. Part of the trusted perimeter: claim K-50.
"""

from datetime import date, datetime
from typing import assert_never

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Id, Integer, Real, Text
from sfumato.catalog.text_format import PLAIN_TEXT, TextFormat
from sfumato.ingest.canonical import (
    FLOATS,
    INTEGERS,
    WHOLE,
    WIDE,
    is_decimal,
    is_moment,
    is_text,
    spell_column,
    write_moment,
)
from sfumato.ingest.ids import normalise_number, write_id, write_number
from sfumato.ingest.moments import parse_moment
from sfumato.ingest.sql_quoting import prefer, quote, quote_text

YES, NO = ("true", "t", "yes", "y"), ("false", "f", "no", "n")  # beside 1 and 0
NUMBERS = (*WHOLE, *WIDE, *FLOATS)


def choose_sql_type(declared: ColumnDeclaration) -> str:  # noqa: PLR0911 - one return a type
    """What the snapshot stores a column as; small integers are read and added up faster."""
    match declared:
        case Boolean() | Category(values=(bool(), *_)):
            return "BOOLEAN"
        case Integer(lower=lower, upper=upper):
            return _choose_integer(lower, upper)
        case Category(values=(int(), *_) as values):
            return _choose_integer(int(min(values)), int(max(values)))
        case Category(values=values):
            # as an enumeration, grouping is by small numbers: three times as fast as by text
            return f"ENUM({', '.join(quote_text(str(value)) for value in values)})"
        case Real():
            return "DOUBLE"
        case Date():
            return "DATE"
        case DateTime():
            return "TIMESTAMP"
        case Text() | Id():
            return "VARCHAR"


def parse_column(name: str, declared: ColumnDeclaration, kind: str, reading: TextFormat = PLAIN_TEXT) -> str:  # noqa: PLR0911
    """A source's column as its declared type; NULL where it is not readable as that.

    Numbers are doubles (whole ones where the source has whole numbers), days are DATE, moments TIMESTAMP, the others
    texts and truth values.

    Claim: K-50. For each declared type a function of the canonical text alone, the same for every source.
    Requires: a type that is read (checked when a source is opened).
    Relies on: K-51 (ids).
    Checked by: tests/ingest/test_parsing.py::test_every_type_is_read_as_its_text_is
    """
    column = quote(name)
    match declared:
        case Boolean() | Category(values=(bool(), *_)):
            return column if kind == "BOOLEAN" else _parse_truth(spell_column(column, kind))
        case Integer() | Category(values=(int(), *_)):
            return f"CAST({column} AS BIGINT)" if kind in INTEGERS else _parse_number(column, kind, reading)
        case Real():
            return _parse_number(column, kind, reading)
        case Date():
            return column if kind == "DATE" else f"CAST({_parse_moment(column, kind, reading)} AS DATE)"
        case DateTime():
            return _parse_moment(column, kind, reading)
        case Id():
            return write_id(column, kind)
        case Category() | Text():
            return spell_column(column, kind)
        case _:
            assert_never(declared)


def clamp_column(name: str, declared: ColumnDeclaration, kind: str) -> str:  # noqa: PLR0911 - one return a type
    """What was read, within what is declared: clamped, rounded where whole numbers are declared, or undeclared (NULL).

    In a column that is declared not nullable, NULL becomes the public middle of the bounds, the first value, false or
    the empty text.

    Claim: K-50. Within the declaration, and a function of what was read alone.
    Requires: the column is what `parse_column` made.
    Relies on: K-51 (numbers spelled in other ways).
    Checked by: tests/engines/test_snapshot.py::test_a_snapshot_is_what_plain_python_makes
    """
    column, stored = quote(name), choose_sql_type(declared)
    match declared:
        case Integer(lower=lower, upper=upper, nullable=nullable):
            middle = None if nullable else str((lower + upper) // 2)
            if kind in INTEGERS:
                return f"CAST({_clamp(column, f'{lower}::BIGINT', f'{upper}::BIGINT', middle)} AS {stored})"
            held = _clamp(column, write_double(lower), write_double(upper), middle, round_half_up(column))
            return f"CAST({held} AS {stored})"
        case Real(lower=lower, upper=upper, nullable=nullable):
            one_zero = f"({column} + 0.0::DOUBLE)"  # -0.0 and 0.0 are one number, and one text
            middle = None if nullable else write_double((lower + upper) / 2)
            return _clamp(column, write_double(lower), write_double(upper), middle, one_zero)
        case Date(lower=lower, upper=upper, nullable=nullable) | DateTime(lower=lower, upper=upper, nullable=nullable):
            middle = None if nullable else _write_constant(lower + (upper - lower) // 2)
            return _clamp(column, _write_constant(lower), _write_constant(upper), middle)
        case Boolean(nullable=nullable):
            return column if nullable else f"COALESCE({column}, false)"
        case Text(nullable=nullable):
            return column if nullable else f"COALESCE({column}, '')"
        case Category(values=values, nullable=nullable):
            known = match_category(column, declared)
            return known if nullable else f"COALESCE({known}, CAST({_write_constant(values[0])} AS {stored}))"
        case Id():
            return column  # never read by a plan


def is_read_as_text(declared: ColumnDeclaration) -> bool:
    """Is a column read as text? Then numbers that a float does not tell apart are refused, not merged.

    Claim: K-50. Of the declaration alone.
    Relies on: K-50.
    Checked by: tests/ingest/test_ids.py::test_floats_that_do_not_tell_people_apart_are_refused
    """
    return isinstance(declared, (Text, Id)) or (isinstance(declared, Category) and isinstance(declared.values[0], str))


def _parse_number(column: str, kind: str, reading: TextFormat) -> str:
    """The nearest double; 1 and 0 of truth values."""
    if kind in NUMBERS:
        return f"CAST({column} AS DOUBLE)"
    if is_decimal(kind):
        return f"TRY_CAST(CAST({column} AS VARCHAR) AS DOUBLE)"  # a plain cast does not give the nearest double
    found = spell_column(column, kind)
    number = f"TRY_CAST({found} AS DOUBLE)"
    if reading.decimal == "," and is_text(kind):
        swapped = f"TRY_CAST(replace({found}, ',', '.') AS DOUBLE)"
        number = f"CASE WHEN contains({found}, '.') THEN NULL ELSE {swapped} END"
    truth = f"CASE lower(trim({found})) WHEN 'true' THEN 1.0::DOUBLE WHEN 'false' THEN 0.0::DOUBLE END"
    return prefer(number, truth)


def _parse_truth(found: str) -> str:
    word, number = f"lower(trim({found}))", f"TRY_CAST({found} AS DOUBLE)"
    yes, no = (", ".join(map(quote_text, words)) for words in (YES, NO))
    return (
        f"CASE WHEN {word} IN ({yes}) THEN true WHEN {word} IN ({no}) THEN false "
        f"WHEN {number} = 1.0::DOUBLE THEN true WHEN {number} = 0.0::DOUBLE THEN false END"
    )


def _parse_moment(column: str, kind: str, reading: TextFormat) -> str:
    if is_moment(kind):
        return write_moment(column, kind)
    return parse_moment(spell_column(column, kind), reading.date_format)


def match_category(column: str, declared: Category) -> str:
    """The declared value that was read, or NULL. Numbers and truth values match in any spelling, texts in their own.

    Claim: K-50. A function of what was read alone.
    Requires: the column is what `parse_column` made.
    Relies on: K-51.
    Checked by: tests/ingest/test_parsing.py::test_one_is_one_in_every_spelling
    """
    stored = choose_sql_type(declared)
    if not is_read_as_text(declared):
        listed = ", ".join(map(_write_constant, declared.values))
        return f"CASE WHEN {column} IN ({listed}) THEN CAST({column} AS {stored}) END"
    exact, groups = f"TRY_CAST({column} AS {stored})", group_by_number(declared)
    if not groups:
        return exact
    number = write_number(f"trim({column})")
    cases = "".join(
        f" WHEN {quote_text(found)} THEN {quote_text(values[0]) if len(values) == 1 else 'NULL'}"
        for found, values in groups.items()
        if values != [found]
    )
    matched = f"CASE {number}{cases} ELSE {number} END" if cases else number
    return prefer(exact, f"TRY_CAST({matched} AS {stored})")


def group_by_number(declared: Category) -> dict[str, list[str]]:
    """The declared texts that are numbers or truth values, by their one canonical text.

    Claim: K-50. Of the declaration alone.
    Relies on: K-51.
    Checked by: tests/ingest/test_parsing.py::test_values_that_are_one_number_are_told_apart_in_texts_only
    """
    groups: dict[str, list[str]] = {}
    for value in map(str, declared.values):
        number = normalise_number(value)
        if number is not None:
            groups.setdefault(number, []).append(value)
    return groups


def round_half_up(value: str) -> str:
    """⌊x + ½⌋ without the sum, which rounds in doubles. Infinities stay, and NaN.

    Claim: K-50. Exact for every double.
    Requires: a column of doubles.
    Relies on: K-13.
    Checked by: tests/engines/test_snapshot.py::test_a_snapshot_is_what_plain_python_makes
    """
    return f"(FLOOR({value}) + CAST({value} - FLOOR({value}) >= 0.5::DOUBLE AS INTEGER))"


def _clamp(column: str, low: str, high: str, middle: str | None, inside: str | None = None) -> str:
    """The column within its bounds, NULL as `middle`. `inside`: what is kept of a double that is within them.

    Most rows are settled by the first test. To DuckDB, NaN is above infinity; it becomes NULL.
    """
    above = f"{column} > {high}" if inside is None else f"{column} <= 'inf'::DOUBLE"
    cases = f"WHEN {column} BETWEEN {low} AND {high} THEN {inside or column} WHEN {column} < {low} THEN {low}"
    return f"CASE {cases} WHEN {above} THEN {high} ELSE {middle or 'NULL'} END"


def _choose_integer(lower: int, upper: int) -> str:
    for bits, name in ((7, "TINYINT"), (15, "SMALLINT"), (31, "INTEGER")):
        if -(1 << bits) <= lower and upper < 1 << bits:
            return name
    return "BIGINT"


def write_double(value: float) -> str:
    return f"{float(value)!r}::DOUBLE"


def _write_constant(value: str | int | date) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"TIMESTAMP {quote_text(value.isoformat(' '))}"
    if isinstance(value, date):
        return f"DATE {quote_text(value.isoformat())}"
    return str(value) if isinstance(value, int) else quote_text(value)
