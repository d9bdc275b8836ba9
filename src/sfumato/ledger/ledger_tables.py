"""The ledger's tables, and the statements that read and write the last entry.

Part of the trusted perimeter. `sfumato_entries` holds the chained entries and is only ever appended to. The one row of
`sfumato_head` repeats the totals of the last entry. Indexes and every other statement are in `entry_queries` and
`release_index`.
"""

import sqlalchemy as sa

from sfumato.ledger.prepared_statement import PreparedStatement

TABLES = sa.MetaData()
ENTRIES = sa.Table(
    "sfumato_entries",
    TABLES,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("analyst", sa.Text, nullable=False),
    sa.Column("plan_digest", sa.Text, nullable=False),
    sa.Column("answer_key", sa.Text, nullable=False),
    sa.Column("about", sa.Integer),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("loss", "budget", "spent", "analyst_spent")),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("payload_hash", "time", "previous", "hash")),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),  # of the schema when the entry was written
    sa.Column("question", sa.Text, nullable=False),  # of a charge: what was asked
    sa.Column("signature", sa.Text, nullable=False),
)
HEAD = sa.Table(
    "sfumato_head",
    TABLES,
    sa.Column("single", sa.Integer, sa.CheckConstraint("single = 1"), primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, nullable=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("hash", "budget", "spent")),
    sa.Column("anchor", sa.Integer, nullable=False),  # the newest entry that says where the ledger is, and its key
)
HEAD_COLUMNS = ("number", "hash", "budget", "spent", "anchor")  # what the head repeats of the last entry
COLUMNS = tuple(column.name for column in ENTRIES.c)
PLAIN = [column for column in ENTRIES.c if column.name != "payload"]  # a payload may be megabytes long


def is_kind(kind: str) -> sa.ColumnElement[bool]:
    """A condition with the kind written out: SQLite uses a partial index only if it can read the condition."""
    return ENTRIES.c.kind == sa.literal_column(f"'{kind}'")


def select_newest(*conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    """The number of the newest entry that meets the conditions."""
    return sa.select(sa.func.max(ENTRIES.c.number)).where(*conditions).scalar_subquery()


CHARGE_NUMBER = sa.bindparam("charge", type_=sa.Integer)
ANALYST, _PLAN = (sa.bindparam(name, type_=sa.Text) for name in ("analyst", "plan"))
_charge, _last = ENTRIES.alias("charge"), ENTRIES.alias("last")
_WITH_CERTIFICATE = [*PLAIN, sa.case((is_kind("charge"), ENTRIES.c.payload)).label("payload")]
_CHARGED_ANALYST = sa.select(_charge.c.analyst).where(_charge.c.number == CHARGE_NUMBER).scalar_subquery()
_NEWEST_OF_ANALYST = select_newest(ENTRIES.c.analyst == ANALYST)
_NEWEST_OF_CHARGED = select_newest(ENTRIES.c.analyst == _CHARGED_ANALYST)
_NEWEST_FOR_PLAN = select_newest(is_kind("charge"), ENTRIES.c.plan_digest == _PLAN, ENTRIES.c.analyst == ANALYST)
_ANSWER = (is_kind("answer"), ENTRIES.c.about == CHARGE_NUMBER)

LOCK_HEAD = PreparedStatement(sa.select(HEAD.c.single).with_for_update())
GET_HEAD = PreparedStatement(
    sa.select(*(column.label(f"head_{column.name}") for column in HEAD.c), *(_last.c[part.name] for part in PLAIN))
    .join_from(HEAD, _last, _last.c.number == select_newest(), isouter=True)
    .where(HEAD.c.single == 1)
)
MOVE_HEAD = PreparedStatement(
    sa.update(HEAD).where(HEAD.c.single == 1).values({name: sa.bindparam(f"new_{name}") for name in HEAD_COLUMNS})
)
ADD_ENTRY = PreparedStatement(sa.insert(ENTRIES).inline())
GET_CHARGE_OF_PLAN = PreparedStatement(
    sa.select(*_WITH_CERTIFICATE).where(ENTRIES.c.number.in_([_NEWEST_FOR_PLAN, _NEWEST_OF_ANALYST]))
)
GET_CHARGE = PreparedStatement(
    sa.select(*_WITH_CERTIFICATE).where(
        ENTRIES.c.number.in_([CHARGE_NUMBER, select_newest(*_ANSWER), _NEWEST_OF_CHARGED])
    )
)
GET_ANSWER = PreparedStatement(sa.select(ENTRIES).where(*_ANSWER))
