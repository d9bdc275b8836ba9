"""Read a made-up source value by value, in plain Python. What the ingestion pins must be the same.

This is a second implementation of the rules of reading, for the values that audits make up. It shares no code with
`ingest/`. A source that it cannot read with certainty (malformed lines, a declared text format) is left out.
"""

import csv
import math
import unicodedata
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Id, Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.catalog.text_format import PLAIN_TEXT
from sfumato.ingest.hidden_names import MET, ROWS_OF_UNIT, UNIT
from sfumato.kernel.expressions import Scalar
from sfumato.kernel.neighbours import ROW
from sfumato.kernel.row_sources import TIMES_MET
from sfumato.lab.auditing.plain_unique_keys import Row, drop_repeated_keys

PinnedTables = Mapping[str, list[Row]]

_EXACT = 2**53
_TRUTHS = {**dict.fromkeys(("true", "t", "yes", "y"), True), **dict.fromkeys(("false", "f", "no", "n"), False)}
_SPACES = "\t\n\v\f\r \x85\xa0\ufeff"


def read_plainly(data: Mapping[str, tuple[Table, object]]) -> PinnedTables | None:
    """The rows that pinning these private tables must give; None where a source is not read here.

    MET is left out: which rows a join reads is compared by what the engine measures.
    """
    made: dict[str, list[Row]] = {}
    tables = {name: pair for name, pair in data.items() if not pair[0].public}
    for name in sorted(tables, key=lambda name: _count_links(tables[name][0], tables)):
        table, source = tables[name]
        records = list_records(table, source)
        if records is None:
            return None
        made[name] = drop_repeated_keys(table, _read_table(table, records, made))
    return made


def list_records(table: Table, source: Any) -> list[dict[str, object]] | None:  # noqa: ANN401 - a frame or a path
    """The records of a frame or a file as Python values; None where a text format is declared."""
    if table.reading != PLAIN_TEXT:
        return None
    if isinstance(source, str | Path):
        return _list_file(Path(source))
    for method in ("to_pylist", "to_dicts"):  # Arrow, polars
        if hasattr(source, method):
            found: list[dict[str, object]] = getattr(source, method)()
            return found
    names = [str(name) for name in source.columns]
    return [dict(zip(names, row, strict=True)) for row in source.itertuples(index=False, name=None)]


def _list_file(path: Path) -> list[dict[str, object]] | None:
    match path.suffix:
        case ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                return [{name: value or None for name, value in row.items()} for row in csv.DictReader(file)]
        case ".parquet":
            import pyarrow.parquet  # noqa: PLC0415 - only for files

            found: list[dict[str, object]] = pyarrow.parquet.read_table(path).to_pylist()
            return found
        case _:
            return None


def _count_links(table: Table, tables: Mapping[str, tuple[Table, object]]) -> int:
    return 0 if table.unit_through is None else 1 + _count_links(tables[table.unit_through[1]][0], tables)


def _read_table(table: Table, records: Sequence[Mapping[str, object]], made: Mapping[str, list[Row]]) -> list[Row]:
    kept = {name: declared for name, declared in table.columns.items() if name != table.unit}
    if table.count_column is not None:
        records = [
            {**counted, table.count_column: 1} for counted in records for _ in range(_count_people(table, counted))
        ]
    rows = [{name: read_value(record[name], declared) for name, declared in kept.items()} for record in records]
    if table.unit is ROW:
        return rows
    if table.unit_through is None:
        owners = [read_id(record[str(table.unit)]) for record in records]
    else:
        column, parent = table.unit_through
        links = {row[column if column in row else UNIT]: row[UNIT] for row in made[parent]}
        found = [links.get(read_id(record[column])) for record in records]
        owners = [None if owner is None else str(owner) for owner in found]
    held = {owner: count if count > table.max_rows_per_unit else 1 for owner, count in Counter(owners).items()}
    owned = [(row, owner) for row, owner in zip(rows, owners, strict=True) if owner is not None]
    return [{**row, UNIT: str(owner), ROWS_OF_UNIT: held[owner]} for row, owner in owned]


def _count_people(table: Table, record: Mapping[str, object]) -> int:
    count = _read_number(record[str(table.count_column)])
    if count is None or isinstance(count, float) or count.denominator != 1 or count < 1:
        return 0
    return min(int(count), table.most_count or int(count))


def read_value(value: object, declared: ColumnDeclaration) -> Scalar:  # noqa: PLR0911 - one return per type
    """A value as its declared type, clamped; NULL becomes the public default where a column is not nullable."""
    nullable = isinstance(declared, Id) or declared.nullable
    match declared:
        case Integer(lower=low, upper=high):
            number = _read_number(value)
            if number is None:
                return None if nullable else (low + high) // 2
            return low if number < low else high if number > high else math.floor(number + Fraction(1, 2))
        case Real(lower=low, upper=high):
            number = _read_number(value)
            if number is None:
                return None if nullable else (low + high) / 2
            return float(min(max(number, low), high)) + 0.0
        case Date(lower=first, upper=last):
            moment = _read_moment(value)
            if moment is None:
                return None if nullable else first + (last - first) // 2
            return min(max(moment.date(), first), last)
        case DateTime(lower=begin, upper=end):
            moment = _read_moment(value)
            if moment is None:
                return None if nullable else begin + (end - begin) // 2
            return min(max(moment, begin), end)
        case Boolean():
            truth = _read_truth(value)
            return truth if truth is not None or nullable else False
        case Category(values=values):
            chosen = next((found_value for found_value in values if _is_same(value, found_value)), None)
            return chosen if chosen is not None or nullable else values[0]
        case Id():
            return read_id(value)
        case _:
            text = write_plainly(value)
            return text if text is not None or nullable else ""


def write_plainly(value: object) -> str | None:
    """The one text of a value."""
    if _is_missing(value):
        return None
    match value:
        case bool():
            return str(value).lower()
        case float() if value.is_integer() and abs(value) <= _EXACT:
            return str(int(value))
        case datetime():
            return value.isoformat(" ")
        case _:
            return str(value)


def read_id(value: object) -> str | None:  # noqa: PLR0911 - one return a kind of id
    """The canonical text of an id: one for all its spellings."""
    text = write_plainly(value)
    if text is None:
        return None
    text = unicodedata.normalize("NFC", text.replace("\x00", "")).strip(_SPACES)
    if not text:
        return None
    bare = text.strip("{}")
    bare = bare[9:] if bare.lower().startswith("urn:uuid:") else bare
    if len(bare.replace("-", "")) == 32:
        try:
            return str(uuid.UUID(bare))
        except ValueError:
            pass
    if text.lower() in ("true", "false"):
        return text.lower()
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    if not number.is_finite():
        return text
    return str(int(number)) if number == number.to_integral_value() else repr(float(number))


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value  # noqa: PLR0124 - NaN


def _read_number(value: object) -> Fraction | float | None:
    """An exact number, or an infinity."""
    if _is_missing(value):
        return None
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("true", "false"):
            return Fraction(text == "true")
        try:
            value = float(text)
        except ValueError:
            return None
    if not isinstance(value, bool | int | float | Decimal) and not hasattr(value, "__index__"):
        return None
    number = value if isinstance(value, float | Decimal) else int(value)
    if not math.isfinite(number):
        return None if math.isnan(number) else float(number)
    return Fraction(number) if not isinstance(number, Decimal) else Fraction(float(number))


def _read_moment(value: object) -> datetime | None:
    """A day or a moment, in UTC where it has a zone, to the microsecond below."""
    if _is_missing(value):
        return None
    if isinstance(value, datetime):
        moment = datetime.combine(value.date(), value.timetz())
    elif isinstance(value, date):
        return datetime.combine(value, datetime.min.time())
    else:
        try:
            moment = datetime.fromisoformat(str(value).strip())
        except ValueError:
            return None
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment


def _read_truth(value: object) -> bool | None:
    if _is_missing(value):
        return None
    word = _TRUTHS.get(str(value).strip().lower())
    number = _read_number(value)
    return word if word is not None else number == 1 if number in (0, 1) else None


def _is_same(value: object, declared: str | int | bool) -> bool:
    if isinstance(declared, bool):
        return _read_truth(value) is declared
    if isinstance(declared, int):
        return _read_number(value) == declared
    text = write_plainly(value)
    return text is not None and (text == declared or (_is_number(declared) and read_id(text) == read_id(declared)))


def _is_number(text: str) -> bool:
    return _read_number(text) is not None


def count_met(table: Table, rows: Sequence[Mapping[str, Scalar]]) -> bool:
    """Do the marks of a pinned table let in as many rows of each unit as joins read?"""
    if table.unit is ROW:
        return True
    held, met = Counter(str(row[UNIT]) for row in rows), Counter(str(row[UNIT]) for row in rows if row[MET])
    most = TIMES_MET * table.max_rows_per_unit
    return all(met[unit] == min(count, most) for unit, count in held.items())
