"""Steps 2 and 3 of reading: a canonical text -> a value of the declared type -> a value within the declaration.

There is one function of the canonical text for each declared type (NULL: unreadable), whatever the source; columns of
a source that has types go a shorter way to the same value, as tests show. Each step is a SELECT of its own, so that no
value is computed twice and a load report can count what each step changes. Part of the trusted perimeter: claim K-50.
"""

from datetime import date, datetime
from typing import assert_never

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Id, Integer, Real, Text
from sfumato.catalog.text_format import PLAIN_TEXT, TextFormat
from sfumato.ingest.canonical import (
    FLOATS,
    INTEGERS,
    MOMENTS,
    NANOSECONDS,
    TYPED,
    WHOLE,
    WIDE,
    ZONED,
    canonical,
    is_decimal,
    moment,
)
from sfumato.ingest.ids import form, write_id, write_number
from sfumato.ingest.moments import moment_of_text
from sfumato.ingest.sql_quoting import prefer, quote, text

YES, NO = ("true", "t", "yes", "y"), ("false", "f", "no", "n")  # beside 1 and 0
NUMBERS = (*WHOLE, *WIDE, *FLOATS)


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


def parse_column(name: str, declared: ColumnDeclaration, kind: str, reading: TextFormat = PLAIN_TEXT) -> str:  # noqa: PLR0911
    """A source's column as its declared type; NULL if it is not readable as that.

    Numbers are doubles (whole ones where the source has whole numbers), days are DATE, moments TIMESTAMP, the others
    texts and truth values.

    Claim: K-50. For each declared type a function of the canonical text alone, the same for every source.
    Requires: a type that is read (checked when a source is opened).
    Relies on: K-51 (ids).
    Checked by: tests/ingest/test_parsing.py::test_every_type_is_read_as_its_text_is
    """
    column = quote(name)
    match declared:
        case Integer() | Real():
            return _number(column, kind, reading, whole=isinstance(declared, Integer))
        case Boolean():
            return _truth(column, kind)
        case Category(values=values) if isinstance(values[0], bool):
            return _truth(column, kind)
        case Category(values=values) if isinstance(values[0], int):
            return _number(column, kind, reading, whole=True)
        case Date():
            if kind == "DATE":
                return column
            return f"CAST({_moment(column, kind, reading)} AS DATE)"
        case DateTime():
            return _moment(column, kind, reading)
        case Id():
            return write_id(column, kind)
        case Category() | Text():
            return canonical(column, kind)
        case _:
            assert_never(declared)


def clamp_column(name: str, declared: ColumnDeclaration, kind: str) -> str:  # noqa: PLR0911 - one return a type
    """What was read, within what is declared: clamped, rounded where whole numbers are declared, or undeclared (NULL).

    NULL is the public middle of the bounds, the first value, false or '' where NULL is declared away.

    Claim: K-50. Within the declaration, and a function of what was read alone.
    Requires: the column is what `read` made.
    Relies on: K-51 (numbers spelled in other ways).
    Checked by: tests/engines/test_snapshot.py::test_a_snapshot_is_what_plain_python_makes
    """
    column, form_name = quote(name), sql_type(declared)
    match declared:
        case Integer(lower=lower, upper=upper, nullable=nullable):
            public = "" if nullable else f" ELSE {(lower + upper) // 2}"
            if kind in INTEGERS:
                ends = f"{lower}::BIGINT", f"{upper}::BIGINT"
                return f"CAST({_between(column, *ends, public, real=False)} AS {form_name})"
            ends = double(lower), double(upper)
            return f"CAST({_between(column, *ends, public, real=True, kept=round_half_up(column))} AS {form_name})"
        case Real(lower=lower, upper=upper, nullable=nullable):
            public = "" if nullable else f" ELSE {double((lower + upper) / 2)}"
            one_zero = f"({column} + 0.0::DOUBLE)"  # -0.0 and 0.0 are one number, and one text
            return _between(column, double(lower), double(upper), public, real=True, kept=one_zero)
        case Boolean(nullable=nullable):
            return column if nullable else f"COALESCE({column}, false)"
        case Category(values=values, nullable=nullable):
            known = declared_value(column, declared)
            return known if nullable else f"COALESCE({known}, CAST({_constant(values[0])} AS {form_name}))"
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


def find_ambiguous_values(declared: ColumnDeclaration) -> tuple[str, str] | None:
    """Two values of a category that are the same number or truth value, spelled differently.

    Claim: K-50. Of the declaration alone; None: numbers of a source match at most one value.
    Relies on: K-51.
    Checked by: tests/ingest/test_parsing.py::test_values_that_are_one_number_are_told_apart_in_texts_only
    """
    if not isinstance(declared, Category) or not isinstance(declared.values[0], str):
        return None
    return next(((values[0], values[1]) for values in _group_by_number(declared).values() if len(values) > 1), None)


def is_read_as_text(declared: ColumnDeclaration) -> bool:
    """Is a column read as text? Then numbers that a float does not tell apart are refused, not merged.

    Claim: K-50. Of the declaration alone.
    Relies on: K-50.
    Checked by: tests/ingest/test_ids.py::test_floats_that_do_not_tell_people_apart_are_refused
    """
    return isinstance(declared, (Text, Id)) or (isinstance(declared, Category) and isinstance(declared.values[0], str))


def _number(column: str, kind: str, reading: TextFormat, *, whole: bool) -> str:
    """A double; or BIGINT, where whole numbers are wanted and the source has them."""
    if kind in INTEGERS and whole:
        return f"CAST({column} AS BIGINT)"
    if kind in NUMBERS:
        return f"CAST({column} AS DOUBLE)"
    if kind == "BOOLEAN":
        return f"CAST(CAST({column} AS TINYINT) AS DOUBLE)"
    found = canonical(column, kind)
    if is_decimal(kind):
        return f"TRY_CAST({found} AS DOUBLE)"
    truth = f"CASE lower(trim({found})) WHEN 'true' THEN 1.0::DOUBLE WHEN 'false' THEN 0.0::DOUBLE END"
    plainly = f"TRY_CAST({found} AS DOUBLE)"
    if reading.decimal == ",":
        typed = f"WHEN starts_with({found}, {text(TYPED)}) THEN TRY_CAST({found}[2:] AS DOUBLE)"
        swapped = f"TRY_CAST(replace({found}, ',', '.') AS DOUBLE)"
        plainly = f"CASE {typed} WHEN contains({found}, '.') THEN NULL ELSE {swapped} END"
        truth = truth.replace(f"trim({found})", f"trim({found}, {text(' ' + TYPED)})")
    return prefer(plainly, truth)


def _truth(column: str, kind: str) -> str:
    if kind == "BOOLEAN":
        return column
    if kind in NUMBERS:
        return f"CASE CAST({column} AS DOUBLE) WHEN 1.0::DOUBLE THEN true WHEN 0.0::DOUBLE THEN false END"
    found = canonical(column, kind)
    word, number = f"lower(trim({found}))", f"TRY_CAST({found} AS DOUBLE)"
    yes, no = (", ".join(map(text, words)) for words in (YES, NO))
    return (
        f"CASE WHEN {word} IN ({yes}) THEN true WHEN {word} IN ({no}) THEN false "
        f"WHEN {number} = 1.0::DOUBLE THEN true WHEN {number} = 0.0::DOUBLE THEN false END"
    )


def _moment(column: str, kind: str, reading: TextFormat) -> str:
    if kind in ("DATE", *MOMENTS, *NANOSECONDS, *ZONED):
        return moment(column, kind)
    return moment_of_text(canonical(column, kind), reading.date_format)


def declared_value(column: str, declared: Category) -> str:
    """The declared value that was read, or NULL. Numbers and truth values match in any spelling, texts in their own.

    Claim: K-50. A function of what was read alone.
    Requires: the column is what `read` made.
    Relies on: K-51.
    Checked by: tests/ingest/test_parsing.py::test_one_is_one_in_every_spelling
    """
    form_name = sql_type(declared)
    if not isinstance(declared.values[0], str):
        listed = ", ".join(map(_constant, declared.values))
        return f"CASE WHEN {column} IN ({listed}) THEN CAST({column} AS {form_name}) END"
    exact = f"TRY_CAST({column} AS {form_name})"
    forms = _group_by_number(declared)
    if not forms:
        return exact
    alone = {found: values[0] for found, values in forms.items() if len(values) == 1}
    other = " ".join(f"WHEN {text(found)} THEN {text(value)}" for found, value in alone.items() if found != value)
    many = [text(found) for found in forms if found not in alone]
    spelled = write_number(f"trim({column})")
    matched = f"CASE {spelled} {other} ELSE {spelled} END" if other else spelled
    if many:
        matched = f"CASE WHEN {spelled} NOT IN ({', '.join(many)}) THEN {matched} END"
    return prefer(exact, f"TRY_CAST({matched} AS {form_name})")


def _group_by_number(declared: Category) -> dict[str, list[str]]:
    """The declared texts that are numbers or truth values, by their one canonical text."""
    groups: dict[str, list[str]] = {}
    for value in map(str, declared.values):
        number = form(value)
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


def _between(column: str, low: str, high: str, public: str, *, real: bool, kept: str | None = None) -> str:
    """The column, held to its bounds. Most rows are settled by the first test; NaN, to DuckDB, is above infinity."""
    above = f"{column} <= 'inf'::DOUBLE" if real else f"{column} > {high}"
    within = f"WHEN {column} BETWEEN {low} AND {high} THEN {kept or column}"
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
