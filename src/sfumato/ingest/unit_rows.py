"""The people of a table that is being pinned: their ids, and how many rows each of them has.

Part of the trusted perimeter: claims K-35 (counts) and K-51 (ids).
"""

from dataclasses import replace

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.catalog.names import find_name
from sfumato.ingest.canonical import WHOLE, spell_column
from sfumato.ingest.hidden_names import OWNER, PEOPLE, PINNED, ROWS_OF_UNIT, UNIT
from sfumato.ingest.ids import is_canonical_id, merge_spellings, write_id
from sfumato.ingest.source_refusals import build_source_error
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote


def count_rows_of_people(connection: duckdb.DuckDBPyConnection, table: Table, source: SourceRelation) -> str:
    """Write the table PEOPLE: each unit and its number of rows. Returns the unit of a row of the source, as SQL.

    Most ids are canonical as they are spelled. Then the rules of ids are applied to each spelling once, to find that
    out, and not to each row.

    Claim: K-51. Rows with one canonical id belong to one person, however the id is spelled.
    Requires: the source is open, and its column of ids has a type that is read.
    Relies on: K-50 (canonical texts).
    Checked by: tests/ingest/test_ids.py::test_ids_are_what_plain_python_makes_of_them
    """
    unit, rows, spelling = quote(UNIT), quote(ROWS_OF_UNIT), spell_owner(table, source)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {PEOPLE} AS {count_spellings(table, source)}")
    if table.unit is None or is_canonical_id(source.columns[find_owner_column(table)]):
        return spelling  # people whom another table names have their canonical ids already
    merged = merge_spellings(unit)
    respelled = f"SELECT COUNT(*) FROM {PEOPLE} WHERE {unit} IS DISTINCT FROM {merged}"
    if not connection.execute(respelled).fetchall()[0][0]:
        return spelling
    people = f"SELECT {merged} AS {unit}, CAST(SUM({rows}) AS INTEGER) AS {rows} FROM {PEOPLE} GROUP BY ALL"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {PEOPLE} AS {people}")
    return merge_spellings(spelling)


def count_spellings(table: Table, source: SourceRelation) -> str:
    """The query of the ids as they are spelled, with their rows; NULL is the id of rows without one."""
    named = f"SELECT {spell_owner(table, source)} AS {quote(UNIT)} FROM {source.relation}"
    return f"SELECT {quote(UNIT)}, CAST(COUNT(*) AS INTEGER) AS {quote(ROWS_OF_UNIT)} FROM ({named}) GROUP BY ALL"


def spell_owner(table: Table, source: SourceRelation) -> str:
    """The id of a row as its source spells it: a whole number, or a canonical text."""
    column, kind = quote(find_owner_column(table)), source.columns[find_owner_column(table)]
    return column if kind in WHOLE or table.unit is None else spell_column(column, kind)


def find_owner_column(table: Table) -> str:
    """The source's column of ids."""
    return OWNER if table.unit is None else str(table.unit)


def join_owners(connection: duckdb.DuckDBPyConnection, table: Table, source: SourceRelation) -> SourceRelation:
    """The source with the unit of each row, which another pinned table names. Rows that find no unit get NULL.

    Table and column names match in any case, as in the catalog. Only declared columns of the source are taken.

    Claim: K-51. A row belongs to the one unit that has its link in the other table, or to nobody.
    Requires: the other table is pinned (checked here).
    Relies on: K-50 (canonical texts).
    Checked by: tests/engines/test_unit_through.py::test_a_link_is_the_same_name_in_any_case
    """
    column, named_table = table.unit_through or ("", "")
    through = find_name(named_table, [row[0] for row in connection.execute(f"SELECT name FROM {PINNED}").fetchall()])
    if through is None:
        raise build_source_error(table.name, "the table that names its people is not pinned.", "Run `sfumato prepare`.")
    unit, other = quote(UNIT), quote(through)
    types = {str(row[0]): str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {other}").fetchall()}
    link = quote(find_name(column, types) or UNIT)  # the other table's own id column is kept as UNIT
    linked = f"FROM {other} WHERE {link} IS NOT NULL GROUP BY {link}"
    people = f"SELECT {link} AS link, MIN({unit}) AS owner, MAX({unit}) AS also {linked}"
    if connection.execute(f"SELECT COUNT(*) FROM ({people}) WHERE owner <> also").fetchall()[0][0]:
        hint = f"In {through}, {column} must name rows of one person only."
        raise build_source_error(table.name, "some of its rows would belong to two people.", hint)
    same = f"{write_id('rows.' + quote(column), source.columns[column])} = CAST(people.link AS VARCHAR)"
    taken = ", ".join([*(f"rows.{quote(name)}" for name in table.columns), f"people.owner AS {quote(OWNER)}"])
    relation = f"(SELECT {taken} FROM {source.relation} rows LEFT JOIN ({people}) people ON {same})"
    columns = {name: source.columns[name] for name in table.columns}
    return replace(source, relation=relation, columns={**columns, OWNER: types[UNIT]})
