"""Indexes of the entries, and queries that charging does not need: audits, lists, anchors, names of analysts."""

from collections.abc import Generator

import sqlalchemy as sa

from sfumato.ledger.entries import ANCHORS, Entry, Row, build_altered_error, sha256
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.ledger_tables import ANALYST, CHARGE_NUMBER, ENTRIES, GET_HEAD, PLAIN, is_kind, select_newest
from sfumato.ledger.prepared_statement import PreparedStatement


def add_index(name: str, kind: str, *columns: str, unique: bool = False) -> sa.Index:
    """Declare an index over the entries of one kind."""
    parts, where = [ENTRIES.c[column] for column in columns], is_kind(kind)
    return sa.Index(f"sfumato_{name}", *parts, unique=unique, sqlite_where=where, postgresql_where=where)


add_index("charges", "charge", "plan_digest", "analyst", "number")
add_index("one_answer", "answer", "about", unique=True)  # also the database refuses a second answer to a charge
add_index("seen_once", "seen", "about", "analyst", unique=True)
sa.Index("sfumato_analysts", ENTRIES.c.analyst, ENTRIES.c.number)

LAST = 2**31 - 1  # above every number of an entry, also on PostgreSQL
_NUMBER, _HASH = sa.bindparam("number", type_=sa.Integer), sa.bindparam("hash", type_=sa.Text)
_MOST = sa.bindparam("most", type_=sa.Integer)
_answer = ENTRIES.alias("answer")
_NO_ANALYST = ENTRIES.c.analyst == sa.literal_column("''")  # few entries, and the index finds them
_BY_ANALYST = ENTRIES.c.analyst == ANALYST
_IS_ANCHOR = sa.or_(*(is_kind(kind) for kind in ANCHORS))
_ANSWERED = sa.exists().where(_answer.c.kind == sa.literal_column("'answer'"), _answer.c.about == ENTRIES.c.number)
_KIND, _ABOUT = sa.bindparam("kind", type_=sa.Text), sa.bindparam("about", type_=sa.Integer)

GET_FIRST = PreparedStatement(sa.select(ENTRIES.c.payload, ENTRIES.c.payload_hash).where(ENTRIES.c.number == 1))
GET_NUMBER = PreparedStatement(sa.select(ENTRIES.c.number).where(ENTRIES.c.hash == _HASH))
GET_PLAIN = PreparedStatement(sa.select(*PLAIN).where(ENTRIES.c.number == _NUMBER))
GET_WHOLE = PreparedStatement(sa.select(ENTRIES).where(ENTRIES.c.number == _NUMBER))
GET_NEWEST_OF_ANALYST = PreparedStatement(sa.select(*PLAIN).where(ENTRIES.c.number == select_newest(_BY_ANALYST)))
GET_NEWEST_UNTIL = PreparedStatement(
    sa.select(*PLAIN).where(ENTRIES.c.number == select_newest(_BY_ANALYST, ENTRIES.c.number <= _NUMBER))
)
GET_SAME_UNTIL = PreparedStatement(
    sa.select(ENTRIES.c.number)
    .where(ENTRIES.c.kind == _KIND, ENTRIES.c.about.is_not_distinct_from(_ABOUT), _BY_ANALYST)
    .where(ENTRIES.c.number <= _NUMBER)
)
HAS_SEEN = PreparedStatement(sa.select(*PLAIN).where(is_kind("seen"), ENTRIES.c.about == CHARGE_NUMBER, _BY_ANALYST))
GET_NEWEST_ANCHOR = PreparedStatement(
    sa.select(ENTRIES.c.number).where(_NO_ANALYST, _IS_ANCHOR).order_by(ENTRIES.c.number.desc()).limit(1)
)
GET_ANCHORS = PreparedStatement(sa.select(*PLAIN).where(_NO_ANALYST, _IS_ANCHOR))
GET_NEIGHBOURS = PreparedStatement(
    sa.select(ENTRIES).where(_NO_ANALYST, is_kind("neighbours")).order_by(ENTRIES.c.number).limit(1)
)
GET_OPEN_CHARGES = PreparedStatement(sa.select(*PLAIN).where(is_kind("charge"), ~_ANSWERED))
GET_NEWEST = PreparedStatement(sa.select(*PLAIN).order_by(ENTRIES.c.number.desc()).limit(_MOST))
GET_ALL = PreparedStatement(sa.select(*PLAIN))
_PAGE = sa.select(*PLAIN).where(ENTRIES.c.number < _NUMBER).order_by(ENTRIES.c.number.desc()).limit(_MOST)
GET_PAGE, GET_PAGE_OF_ANALYST = PreparedStatement(_PAGE), PreparedStatement(_PAGE.where(_BY_ANALYST))
_NAMES = (
    sa.select(sa.func.min(ENTRIES.c.analyst).label("name")).where(ENTRIES.c.analyst > "").cte("names", recursive=True)
)
_NEXT = sa.select(sa.func.min(ENTRIES.c.analyst)).where(ENTRIES.c.analyst > _NAMES.c.name).scalar_subquery()
_ALL_NAMES = _NAMES.union_all(sa.select(_NEXT).where(_NAMES.c.name.is_not(None)))
GET_ANALYSTS = PreparedStatement(  # one step in the index per name, not one row per entry
    sa.select(_ALL_NAMES.c.name).where(_ALL_NAMES.c.name.is_not(None))
)


def read_first_payload(rows: LedgerRows) -> str | None:
    """The payload of the first entry, in tables of any version. Its chain hash is checked with the other entries."""
    row = rows.find_unchecked(GET_FIRST)
    if row is not None and sha256(row["payload"]) != row["payload_hash"]:
        raise build_altered_error(1)
    return None if row is None else str(row["payload"])


def read_claimed_number(rows: LedgerRows) -> int:
    """The number of entries according to the head row, for an audit."""
    row = rows.find_unchecked(GET_HEAD)
    return row["head_number"] if row else 0


def find_number(rows: LedgerRows, hash_: str) -> int | None:
    """The number of the entry with this hash."""
    row = rows.find_unchecked(GET_NUMBER, hash=hash_) if hash_.isascii() else None
    return None if row is None else int(row["number"])


def find_entry(rows: LedgerRows, number: int) -> Row | None:
    """An entry without its payload."""
    return rows.find_row(GET_PLAIN, number=number)


def find_whole_entry(rows: LedgerRows, number: int) -> Row | None:
    """An entry with its payload."""
    return rows.find_row(GET_WHOLE, number=number)


def find_newest_of(rows: LedgerRows, analyst: str) -> Row | None:
    """The analyst's last entry, which holds what the analyst has spent."""
    return rows.find_row(GET_NEWEST_OF_ANALYST, analyst=analyst)


def find_newest_until(rows: LedgerRows, analyst: str, number: int) -> Row | None:
    """The analyst's last entry up to this one."""
    return rows.find_row(GET_NEWEST_UNTIL, analyst=analyst, number=number)


def is_repeated(rows: LedgerRows, entry: Entry, until: int) -> bool:
    """Whether an entry up to this number has the same kind, charge and analyst."""
    same = {"kind": entry.kind, "about": entry.about, "analyst": entry.analyst}
    return rows.find_unchecked(GET_SAME_UNTIL, number=until, **same) is not None


def has_seen(rows: LedgerRows, charge: int, analyst: str) -> bool:
    """Whether the analyst's view of this charge's answer was counted."""
    return rows.find_row(HAS_SEEN, charge=charge, analyst=analyst) is not None


def list_analysts(rows: LedgerRows) -> list[str]:
    """Every analyst's name that was ever recorded."""
    return [row["name"] for row in GET_ANALYSTS.run(rows.connection)]


def walk_entries(rows: LedgerRows, after: int = 0) -> Generator[Row, None, None]:
    """Every entry after this number, unchecked and oldest first, a few at a time."""
    everything = sa.select(ENTRIES).where(ENTRIES.c.number > after).order_by(ENTRIES.c.number)
    if not after:
        everything = sa.select(ENTRIES).order_by(ENTRIES.c.number)  # also numbers that no ledger writes
    with rows.connection.execute(everything, execution_options={"yield_per": 100}) as found:
        for row in found:
            yield row._asdict()


def list_open_charges(rows: LedgerRows) -> list[Entry]:
    """The charges that have no answer, oldest first."""
    return [Entry.from_row(row) for row in rows.list_rows(GET_OPEN_CHARGES)]


def list_newest(rows: LedgerRows, most: int | None, analyst: str = "", before: int | None = None) -> list[Entry]:
    """The newest entries (None: all), oldest first; of one analyst, and before a number, if these are given.

    An index finds a page, so its time does not depend on how many entries there are.
    """
    if most is None and not analyst and before is None:
        return [Entry.from_row(row) for row in rows.list_rows(GET_ALL)]
    end, limit = LAST if before is None else before, LAST if most is None else most
    if analyst:
        found = rows.list_rows(GET_PAGE_OF_ANALYST, analyst=analyst, number=end, most=limit)
    elif before is None:
        found = rows.list_rows(GET_NEWEST, most=limit)
    else:
        found = rows.list_rows(GET_PAGE, number=end, most=limit)
    return [Entry.from_row(row) for row in found]


def find_newest_anchor(rows: LedgerRows) -> int | None:
    """The number of the newest entry that says where the ledger is and which key signs it."""
    row = rows.find_unchecked(GET_NEWEST_ANCHOR)
    return None if row is None else row["number"]


def list_anchors(rows: LedgerRows) -> list[Row]:
    """The entries that say where the ledger is and which key signs it, oldest first."""
    return rows.list_rows(GET_ANCHORS)


def find_neighbours_entry(rows: LedgerRows) -> Row | None:
    """The entry that records the neighbours, in a ledger whose first entry does not."""
    return rows.find_row(GET_NEIGHBOURS)
