"""The ledger's tables, of chained entries and of the one row that names the last; and what is said to them."""

import sqlalchemy as sa

from sfumato.ledger.entries import ANCHORS
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
    sa.Column("version", sa.Integer, nullable=False),  # of the schema that the entry was written in
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
SCHEMA = sa.Table(
    "sfumato_schema",
    TABLES,
    sa.Column("single", sa.Integer, sa.CheckConstraint("single = 1"), primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, nullable=False),
)
MOVED = ("number", "hash", "budget", "spent", "anchor")  # what the head repeats of the last entry


def _is(kind: str) -> sa.ColumnElement[bool]:
    """A condition with the kind written out: SQLite uses a partial index only if it can read the condition."""
    return ENTRIES.c.kind == sa.literal_column(f"'{kind}'")


def _index(name: str, kind: str, *columns: str, unique: bool = False) -> None:
    where = _is(kind)
    parts = [ENTRIES.c[column] for column in columns]
    sa.Index(f"sfumato_{name}", *parts, unique=unique, sqlite_where=where, postgresql_where=where)


_index("charges", "charge", "plan_digest", "analyst", "number")
_index("answers", "answer", "answer_key")
_index("one_answer", "answer", "about", unique=True)
_index("seen_once", "seen", "about", "analyst", unique=True)
sa.Index("sfumato_analysts", ENTRIES.c.analyst, ENTRIES.c.number)

COLUMNS = tuple(column.name for column in ENTRIES.c)
PLAIN = [column for column in ENTRIES.c if column.name != "payload"]  # a payload may be megabytes long
_TERMS = sa.case((_is("charge"), ENTRIES.c.payload)).label("payload")  # a charge's own is short
_NUMBER, _CHARGE = (sa.bindparam(name, type_=sa.Integer) for name in ("number", "charge"))
_PLAN, _ANALYST, _KEY, _VOID = (sa.bindparam(name, type_=sa.Text) for name in ("plan", "analyst", "key", "void"))
_HASH = sa.bindparam("hash", type_=sa.Text)
_charge, _answer, _last = ENTRIES.alias("charge"), ENTRIES.alias("answer"), ENTRIES.alias("last")


def _newest(*conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    """The number of the newest entry of which all this is true."""
    return sa.select(sa.func.max(ENTRIES.c.number)).where(*conditions).scalar_subquery()


_WHOSE = sa.select(_charge.c.analyst).where(_charge.c.number == _CHARGE).scalar_subquery()
_THEIRS = ENTRIES.c.analyst == _ANALYST
_ANSWER_TO_IT = (_is("answer"), ENTRIES.c.about == _CHARGE)
_SAME_PLAN = (_is("charge"), ENTRIES.c.plan_digest == _PLAN, _THEIRS)

LOCK_HEAD = PreparedStatement(sa.select(HEAD.c.single).with_for_update())
GET_HEAD = PreparedStatement(
    sa.select(*(column.label(f"head_{column.name}") for column in HEAD.c), *(_last.c[each.name] for each in PLAIN))
    .join_from(HEAD, _last, _last.c.number == _newest(), isouter=True)
    .where(HEAD.c.single == 1)
)
MOVE_HEAD = PreparedStatement(
    sa.update(HEAD).where(HEAD.c.single == 1).values({name: sa.bindparam(f"new_{name}") for name in MOVED})
)
ADD_ENTRY = PreparedStatement(sa.insert(ENTRIES).inline())
GET_FIRST = PreparedStatement(sa.select(ENTRIES.c.payload, ENTRIES.c.payload_hash).where(ENTRIES.c.number == 1))
_OF_NO_ANALYST = ENTRIES.c.analyst == sa.literal_column("''")  # few entries, which an index finds
GET_ANCHOR = PreparedStatement(
    sa.select(ENTRIES.c.number)
    .where(_OF_NO_ANALYST, sa.or_(*(_is(kind) for kind in ANCHORS)))
    .order_by(ENTRIES.c.number.desc())
    .limit(1)
)
GET_NEIGHBOURS = PreparedStatement(
    sa.select(ENTRIES).where(_OF_NO_ANALYST, _is("neighbours")).order_by(ENTRIES.c.number).limit(1)
)
GET_NUMBER = PreparedStatement(sa.select(ENTRIES.c.number).where(ENTRIES.c.hash == _HASH))
GET_PLAIN = PreparedStatement(sa.select(*PLAIN).where(ENTRIES.c.number == _NUMBER))
GET_WHOLE = PreparedStatement(sa.select(ENTRIES).where(ENTRIES.c.number == _NUMBER))
GET_SPENT = PreparedStatement(sa.select(*PLAIN).where(ENTRIES.c.number == _newest(_THEIRS)))
GET_BEFORE = PreparedStatement(
    sa.select(*PLAIN, _TERMS).where(ENTRIES.c.number.in_([_newest(*_SAME_PLAN), _newest(_THEIRS)]))
)
GET_CHARGED = PreparedStatement(
    sa.select(*PLAIN, _TERMS).where(
        ENTRIES.c.number.in_([_CHARGE, _newest(*_ANSWER_TO_IT), _newest(ENTRIES.c.analyst == _WHOSE)])
    )
)
GET_ANSWER = PreparedStatement(sa.select(ENTRIES).where(*_ANSWER_TO_IT))
GET_ANSWERED = PreparedStatement(
    sa.select(_charge, sa.exists().where(_is("seen"), ENTRIES.c.about == _charge.c.number, _THEIRS).label("seen"))
    .join(_answer, _charge.c.number == _answer.c.about)
    .where(_answer.c.kind == sa.literal_column("'answer'"), _answer.c.answer_key == _KEY)
    .where(_answer.c.payload_hash != _VOID)
)
_OWN_ANSWER = (_is("answer"), ENTRIES.c.answer_key == _KEY, _THEIRS, ENTRIES.c.payload_hash != _VOID)
GET_OWN_ANSWER = PreparedStatement(
    sa.select(ENTRIES).where(ENTRIES.c.number == _newest(*_OWN_ANSWER, ENTRIES.c.number < _NUMBER))
)
GET_OBTAINED = PreparedStatement(
    sa.select(*PLAIN).where(
        _THEIRS,
        ENTRIES.c.number > _NUMBER,
        ENTRIES.c.answer_key == _KEY,
        ENTRIES.c.payload_hash != _VOID,
        sa.or_(_is("answer"), _is("seen")),
    )
)
HAS_SEEN = PreparedStatement(sa.select(ENTRIES.c.number).where(_is("seen"), ENTRIES.c.about == _CHARGE, _THEIRS))
_NAMES = (
    sa.select(sa.func.min(ENTRIES.c.analyst).label("name")).where(ENTRIES.c.analyst > "").cte("names", recursive=True)
)
_NEXT = sa.select(sa.func.min(ENTRIES.c.analyst)).where(ENTRIES.c.analyst > _NAMES.c.name).scalar_subquery()
_ALL_NAMES = _NAMES.union_all(sa.select(_NEXT).where(_NAMES.c.name.is_not(None)))
GET_ANALYSTS = PreparedStatement(
    sa.select(_ALL_NAMES.c.name).where(_ALL_NAMES.c.name.is_not(None))
)  # a step in the index each
