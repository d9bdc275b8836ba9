"""The version of the ledger's tables, and the steps that bring an older ledger up to date.

To change the tables: change `ledger_tables` or `release_index`, raise `entries.SCHEMA_VERSION`, and add the step that
alters the tables of the version before. Which columns of an entry are hashed depends on the version that it was written
in (`entries.CHAINED`), so that the hashes of older entries still hold. Migrating is itself an entry (`migrate`).
"""

from collections.abc import Callable, Mapping

import sqlalchemy as sa

from sfumato.errors import LedgerError
from sfumato.ledger.entries import SCHEMA_VERSION
from sfumato.ledger.entry_queries import walk_entries
from sfumato.ledger.index_contents import build_index
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.ledger_tables import ADD_ENTRY, HEAD, MOVE_HEAD, TABLES
from sfumato.ledger.loss_sums import write_loss
from sfumato.ledger.release_index import OWN_ANSWERS, RELEASES

SCHEMA = sa.Table(
    "sfumato_schema",
    TABLES,
    sa.Column("single", sa.Integer, sa.CheckConstraint("single = 1"), primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, nullable=False),
)

_DEFINITIONS: dict[tuple[str, str], tuple[str, ...]] = {}


def has_tables(rows: LedgerRows) -> bool:
    """Whether a ledger was ever made in this database."""
    return sa.inspect(rows.connection).has_table(HEAD.name)


def make_tables(rows: LedgerRows) -> None:
    """Make the tables, and the head row of a ledger without entries. The caller appends the first entry."""
    for definition in _list_definitions(rows.connection.dialect):
        rows.connection.exec_driver_sql(definition)
    _write_version(rows.connection)
    rows.connection.execute(HEAD.insert().values(single=1, number=0, hash="", budget="", spent="", anchor=0))


def _list_definitions(dialect: sa.Dialect) -> tuple[str, ...]:
    """The statements that make the tables and their indexes. They are compiled once for each kind of database."""
    kind = (dialect.name, dialect.driver)
    if kind not in _DEFINITIONS:
        tables = TABLES.sorted_tables
        indexes = [index for table in tables for index in sorted(table.indexes, key=lambda one: str(one.name))]
        made: list[sa.schema.ExecutableDDLElement] = [sa.schema.CreateTable(table) for table in tables]
        made += [sa.schema.CreateIndex(index) for index in indexes]
        _DEFINITIONS[kind] = tuple(str(definition.compile(dialect=dialect)) for definition in made)
    return _DEFINITIONS[kind]


def read_version(rows: LedgerRows) -> int:
    """The version of the tables. A version that this program does not know is refused."""
    if not sa.inspect(rows.connection).has_table(SCHEMA.name):
        return 1  # the first version did not record it
    version = int(rows.connection.execute(sa.select(SCHEMA.c.version)).scalar_one())
    if version > SCHEMA_VERSION:
        hint = "Install the newer version of sfumato here too."
        raise LedgerError("ledger-newer", "This ledger was written by a newer version of sfumato.", hint)
    return version


def alter_tables(rows: LedgerRows, version: int) -> None:
    """Alter tables of this version to the newest, step by step. The caller's transaction does all of it or nothing."""
    for step in range(version, SCHEMA_VERSION):
        STEPS[step](rows)
    if version < SCHEMA_VERSION:
        _write_version(rows.connection)


def replace_rows(rows: LedgerRows, other: LedgerRows) -> None:
    """Replace everything in this SQLite file with the entries of another ledger."""
    objects = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    found = [tuple(row) for row in rows.connection.exec_driver_sql(objects)]
    for kind in ("trigger", "view", "table"):  # also those that the ledger never made; an index goes with its table
        for name in (name.replace('"', '""') for type_, name in found if type_ == kind):
            rows.connection.exec_driver_sql(f'DROP {kind} "{name}"')
    make_tables(rows)
    head = other.read_head(lock=False)
    for row in walk_entries(other):
        ADD_ENTRY.run(rows.connection, **row)
    texts = {"hash": head.hash, "budget": write_loss(head.budget), "spent": write_loss(head.spent)}
    moved = {"number": head.number, "anchor": head.anchor, **texts}
    MOVE_HEAD.run(rows.connection, **{f"new_{name}": value for name, value in moved.items()})
    build_index(rows)


def _write_version(connection: sa.Connection) -> None:
    connection.execute(SCHEMA.delete())
    connection.execute(SCHEMA.insert().values(single=1, version=SCHEMA_VERSION))


def _alter_version_1(rows: LedgerRows) -> None:
    """Entries get their version, the question that was asked and a signature; the head gets its anchor's number."""
    for alteration in (
        "ALTER TABLE sfumato_entries ADD COLUMN version INTEGER NOT NULL DEFAULT 1",
        "ALTER TABLE sfumato_entries ADD COLUMN question TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE sfumato_entries ADD COLUMN signature TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE sfumato_head ADD COLUMN anchor INTEGER NOT NULL DEFAULT 1",
    ):
        rows.connection.exec_driver_sql(alteration)
    SCHEMA.create(rows.connection)


def _alter_version_2(rows: LedgerRows) -> None:
    """The releases get their index. Its rows come from the entries."""
    rows.connection.exec_driver_sql("DROP INDEX IF EXISTS sfumato_answers")
    RELEASES.create(rows.connection)  # with its own indexes
    OWN_ANSWERS.create(rows.connection)
    build_index(rows)


STEPS: Mapping[int, Callable[[LedgerRows], None]] = {1: _alter_version_1, 2: _alter_version_2}
