"""The order in which a source becomes a prepared table on Spark. It is the owner's step: it reads the data.

Part of the trusted perimeter: claims K-35, K-50 and K-53. `ingest/table_reading.py` is the same for files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sfumato.catalog.dataset import Table
from sfumato.catalog.names import find_name
from sfumato.engines.spark.batch_parsing import Batches, ParsedRows, run_on_batches
from sfumato.engines.spark.own_session import Session
from sfumato.engines.spark.public_tables import prepare_public
from sfumato.engines.spark.rows_of_units import Frame, bound_units
from sfumato.engines.spark.spark_columns import (
    choose_unit_kind,
    list_parsed,
    quote_name,
    write_arrow_schema,
    write_spark_schema,
)
from sfumato.engines.spark.spark_report import count_people, report_table, survey_counts
from sfumato.engines.spark.spark_sources import open_frame, take_declared
from sfumato.engines.spark.stored_tables import StoredTable, count_rows, store_table
from sfumato.ingest.canonical import is_moment, spell_column
from sfumato.ingest.hidden_names import OWNER, UNIT
from sfumato.ingest.load_report import TableReport
from sfumato.ingest.source_refusals import build_public_count_error, build_rows_error, build_source_error, hide_errors
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote
from sfumato.kernel.neighbours import ROW

LINK = "link"


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """A table that is prepared: as it was declared (public ones with what was read), where it is, and its ids' type."""

    table: Table
    stored: StoredTable
    unit_kind: str


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where tables are prepared: the owner's session, our own, and a path or None."""

    session: Session
    own: Session
    path: str | None
    folder: Path | None = None


def prepare_table(
    place: Workplace, table: Table, data: object, others: Mapping[str, PreparedTable]
) -> tuple[PreparedTable, TableReport]:
    """Read a source into a table of the declared names and types, as `ingest.snapshot.pin` does for files.

    Claim: K-35. The rows and values are those that `pin` gives for the same records in a file.
    Requires: a source whose rows do not change while it is read.
    Relies on: K-50 (values), K-51 (ids), K-53 (counts), K-78 (repeats).
    Checked by: tests/engines/test_spark_sources.py::test_a_prepared_table_holds_what_a_snapshot_holds
    """

    def read() -> tuple[PreparedTable, TableReport]:
        frame = open_frame(place.session, table.name, data, place.folder)
        return _prepare_public(place, table, frame) if table.public else _prepare(place, table, frame, others)

    return hide_errors(table.name, read)


def _prepare_public(place: Workplace, table: Table, frame: Frame) -> tuple[PreparedTable, TableReport]:
    described, rows, report = prepare_public(place.session, table, frame)
    return PreparedTable(described, store_table(place.own, rows, table.name, place.path), "VARCHAR"), report


def _prepare(
    place: Workplace, table: Table, frame: Frame, others: Mapping[str, PreparedTable]
) -> tuple[PreparedTable, TableReport]:
    taken, types = take_declared(place.session, table, frame)
    (records,) = count_rows(taken)
    counts = None if table.count_column is None else survey_counts(taken, table, list(types))
    unit_kind = choose_unit_kind(table, types)
    columns = list_parsed(table, unit_kind)
    parsed = taken.mapInArrow(ParsedRows(table, list(types), write_arrow_schema(columns)), write_spark_schema(columns))
    if table.unit_through is not None:
        parsed, unit_kind = _join_owners(place.session, table, parsed, others)
    prepared = parsed if table.unit is ROW else bound_units(parsed, table)
    stored = store_table(place.own, prepared, table.name, place.path)
    try:
        rows = stored.open(place.own)
        (pinned,) = count_rows(rows)
        owned = pinned
        if table.unique:
            owned, without = count_rows(parsed, f"{quote_name(UNIT)} IS NULL")
            owned -= without
        expected = records if counts is None else counts.people
        if pinned > expected or owned < pinned or (table.unit is ROW and pinned != expected):
            raise build_rows_error(table.name)
        _check_public_counts(rows, table, pinned)
        people = count_people(rows, table, pinned)
        report = report_table(rows, table, people, counts, records=records, owned=owned, pinned=pinned)
    except BaseException:
        stored.drop(place.own)
        raise
    return PreparedTable(table, stored, unit_kind), report


def _check_public_counts(rows: Frame, table: Table, pinned: int) -> None:
    if table.rows is not None and pinned != table.rows:
        raise build_public_count_error(table.name, "rows")
    if table.people is not None and rows.select(UNIT).distinct().count() != table.people:
        raise build_public_count_error(table.name, "people")


@dataclass(frozen=True, slots=True)
class TextsOfLinks:
    """The function that writes links as the texts that ids have, on the executors: links of the other table, units."""

    table: Table
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        return run_on_batches(self.table, (LINK, UNIT), batches, self.write_query, self.schema)

    def write_query(self, source: SourceRelation) -> str:
        kind = source.columns[LINK]
        link = spell_column(quote(LINK), kind) if is_moment(kind) else f"CAST({quote(LINK)} AS VARCHAR)"
        return f"SELECT {link} AS {quote(OWNER)}, {quote(UNIT)} FROM {source.relation}"


def _join_owners(
    session: Session, table: Table, parsed: Frame, others: Mapping[str, PreparedTable]
) -> tuple[Frame, str]:
    """The rows with the unit that another prepared table names; NULL where there is none. And the type of the ids."""
    column, named = table.unit_through or ("", "")
    through = find_name(named, others)
    if through is None:
        raise build_source_error(table.name, "the table that names its people is not prepared.", "Prepare it first.")
    other = others[through]
    link = find_name(column, [name for name in other.table.columns if name != other.table.unit]) or UNIT
    unit = quote_name(UNIT)
    rows = other.stored.open(session).selectExpr(f"{quote_name(link)} AS {LINK}", unit).where(f"{LINK} IS NOT NULL")
    people = rows.selectExpr(LINK, unit).groupBy(LINK).agg({UNIT: "min"}).toDF(LINK, UNIT)
    if link != UNIT:
        pairs = rows.distinct()
        if pairs.groupBy(LINK).count().where("`count` > 1").limit(1).count():
            hint = f"In {through}, {column} must name rows of one person only."
            raise build_source_error(table.name, "some of its rows would belong to two people.", hint)
    schema = {OWNER: "VARCHAR", UNIT: other.unit_kind}
    anything = Table(other.table.name, None, None, {}, public=True)  # all columns are passed on
    texts = people.mapInArrow(TextsOfLinks(anything, write_arrow_schema(schema)), write_spark_schema(schema))
    return parsed.join(texts, [OWNER], "left").drop(OWNER), other.unit_kind
