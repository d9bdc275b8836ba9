"""The version of the ledger's tables, and the steps that bring an older ledger up to it.

To change the tables: change `ledger_tables.py`, raise VERSION, and add a step that alters the tables of the last one.
What is hashed of an entry depends on the version that it was written in (`entries.CHAINED`), so that the hashes of
older entries still hold. Migrating is itself an entry (`migrate`).
"""

from collections.abc import Callable, Mapping

import sqlalchemy as sa

from sfumato.errors import LedgerError
from sfumato.ledger.ledger_tables import SCHEMA

VERSION = 2


def read_version(connection: sa.Connection) -> int:
    """The version that the tables have; the first one did not write it down."""
    if not sa.inspect(connection).has_table(SCHEMA.name):
        return 1
    return int(connection.execute(sa.select(SCHEMA.c.version)).scalar_one())


def refuse_newer(version: int) -> None:
    """Refuse tables that this program does not know."""
    if version > VERSION:
        hint = "Install the newer version of sfumato here too."
        raise LedgerError("ledger-newer", "This ledger was written by a newer version of sfumato.", hint)


def write_version(connection: sa.Connection) -> None:
    """Say that the tables are of the newest version."""
    connection.execute(SCHEMA.delete())
    connection.execute(SCHEMA.insert().values(single=1, version=VERSION))


def alter_tables(connection: sa.Connection, version: int) -> None:
    """Alter tables of this version, step by step, to the newest. The caller's transaction does all of it or nothing."""
    for each in range(version, VERSION):
        STEPS[each](connection)
    write_version(connection)


def _from_1(connection: sa.Connection) -> None:
    """Entries get their version, the question that was asked and a signature; the head names its anchor."""
    for alteration in (
        "ALTER TABLE sfumato_entries ADD COLUMN version INTEGER NOT NULL DEFAULT 1",
        "ALTER TABLE sfumato_entries ADD COLUMN question TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE sfumato_entries ADD COLUMN signature TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE sfumato_head ADD COLUMN anchor INTEGER NOT NULL DEFAULT 1",
    ):
        connection.exec_driver_sql(alteration)
    SCHEMA.create(connection)


STEPS: Mapping[int, Callable[[sa.Connection], None]] = {1: _from_1}
