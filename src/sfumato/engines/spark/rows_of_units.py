"""The rows of each unit of a table that is being prepared: their number, which repeat a key, and which joins meet.

Spark brings the rows of one unit together, and everything is computed from them, in an order of their contents. So a
shuffle, a lost executor or a repeated task changes nothing. Part of the trusted perimeter: claims K-35 and K-78.
"""

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from sfumato.catalog.columns import ColumnDeclaration, Real
from sfumato.catalog.dataset import Table
from sfumato.engines.spark.spark_columns import quote_name
from sfumato.engines.sql.function_sql import TEXT
from sfumato.engines.sql.scalars import read_column, write_real
from sfumato.engines.sql.spark_dialect import SPARK
from sfumato.ingest.hidden_names import CONTENT, MET, PLACE, ROWS_OF_UNIT, UNIT
from sfumato.ingest.pinned_rows import list_kept
from sfumato.kernel.row_sources import TIMES_MET

Frame = Any  # a DataFrame of Spark, classic or Connect: their classes have no common base in every version


def bound_units(parsed: Frame, table: Table) -> Frame:
    """The rows that belong to a unit, without repeated keys, each with ROWS_OF_UNIT and MET.

    Claim: K-35. Each row has its unit's number of rows; MET marks at most TIMES_MET * max_rows_per_unit rows of a unit,
        the same ones as `join_cap.mark_met`.
    Requires: rows as `batch_parsing.py` makes them, with UNIT.
    Relies on: K-50 (values), K-51 (ids), K-78 (repeats).
    Checked by: tests/engines/test_spark_sources.py::test_a_prepared_table_holds_what_a_snapshot_holds
    """
    unit, rows = quote_name(UNIT), quote_name(ROWS_OF_UNIT)
    owned = drop_repeats(parsed.where(f"{unit} IS NOT NULL"), table)
    counted = owned.selectExpr("*", f"CAST(COUNT(*) OVER (PARTITION BY {unit}) AS INT) AS {rows}")
    most = TIMES_MET * table.max_rows_per_unit
    placed = _number_rows(counted, table, [UNIT], f"{rows} > {most}")  # units with few rows are not put in order
    met = f"({rows} <= {most} OR {quote_name(PLACE)} <= {most}) AS {quote_name(MET)}"
    return placed.selectExpr("*", met).drop(PLACE)


def drop_repeats(owned: Frame, table: Table) -> Frame:
    """The rows without those that repeat a unique key of their unit.

    Claim: K-78. No two rows of one unit share a unique key without NULLs. What stays of a unit depends on it alone.
    Requires: rows with UNIT.
    Relies on: K-35 (the order of a unit's rows).
    Checked by: tests/engines/test_spark_sources.py::test_a_prepared_table_holds_what_a_snapshot_holds
    """
    for key in table.unique:
        present = " AND ".join(f"{quote_name(column)} IS NOT NULL" for column in key)
        placed = _number_rows(owned, table, [UNIT, *key], present)
        owned = placed.where(f"{quote_name(PLACE)} = 1 OR NOT ({present})").drop(PLACE)
    return owned


def _number_rows(frame: Frame, table: Table, within: Sequence[str], only: str) -> Frame:
    """The rows with PLACE: 1, 2, ... by the hash of their content, by the content, and by what is left of reals.

    Where `only` does not hold, the numbers mean nothing, and nothing is hashed.
    """
    kept = dict(sorted(list_kept(table).items()))
    pieces = [_write_content(name, declared) for name, declared in kept.items()]
    content = SPARK.write(exp.Concat(expressions=[exp.Literal.string(""), *pieces]))
    reals = [f"CASE WHEN {only} THEN {quote_name(name)} END" for name, one in kept.items() if isinstance(one, Real)]
    order = ", ".join([f"MD5({quote_name(CONTENT)})", quote_name(CONTENT), *reals])
    place = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(map(quote_name, within))} ORDER BY {order})"
    written = frame.selectExpr("*", f"CASE WHEN {only} THEN {content} END AS {quote_name(CONTENT)}")
    return written.selectExpr("*", f"{place} AS {quote_name(PLACE)}").drop(CONTENT)


def _write_content(name: str, declared: ColumnDeclaration) -> exp.Expression:
    """A value as text, with its length in bytes: as `join_cap.py` writes it."""
    column = read_column(name)
    value = write_real(column) if isinstance(declared, Real) else exp.cast(column, TEXT)
    length = exp.cast(exp.Anonymous(this="OCTET_LENGTH", expressions=[value]), TEXT)
    written = exp.Concat(expressions=[length, exp.Literal.string(":"), value.copy()])
    null = exp.Is(this=column.copy(), expression=exp.Null())
    return exp.Case(ifs=[exp.If(this=null, true=exp.Literal.string("-"))], default=written)
