"""The ledger's rows inside one transaction: a table of chained entries, and one row that names the last of them."""

from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from sfumato.errors import LedgerError
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.entries import (
    ANCHORS,
    Entry,
    Head,
    Row,
    altered_error,
    chain_hash,
    is_altered,
    read_loss,
    sha256,
    write_loss,
)
from sfumato.ledger.ledger_tables import (
    ADD_ENTRY,
    COLUMNS,
    ENTRIES,
    GET_ANALYSTS,
    GET_ANCHOR,
    GET_ANSWER,
    GET_ANSWERED,
    GET_BEFORE,
    GET_CHARGED,
    GET_FIRST,
    GET_HEAD,
    GET_NEIGHBOURS,
    GET_NUMBER,
    GET_OBTAINED,
    GET_OWN_ANSWER,
    GET_PLAIN,
    GET_SPENT,
    GET_WHOLE,
    HAS_SEEN,
    HEAD,
    LOCK_HEAD,
    MOVE_HEAD,
    MOVED,
    PLAIN,
    TABLES,
)
from sfumato.ledger.prepared_statement import PreparedStatement
from sfumato.ledger.schema import VERSION, alter_tables, read_version, refuse_newer, write_version
from sfumato.ledger.signatures import Signatures
from sfumato.ledger.stored_answers import VOID

_VOID_HASH = sha256(VOID)

_answer = ENTRIES.alias("answer")


class LedgerRows:
    """The ledger's rows inside one transaction."""

    def __init__(self, connection: sa.Connection, seal: Signatures | None = None) -> None:
        self._connection = connection
        self.seal = seal  # None: of a ledger in memory, which is not signed

    def has_tables(self) -> bool:
        """Whether a ledger was ever made here."""
        return sa.inspect(self._connection).has_table(HEAD.name)

    def make_tables(self) -> None:
        """Make the tables, and the head row of a ledger without entries; the caller appends the first."""
        TABLES.create_all(self._connection, checkfirst=False)
        write_version(self._connection)
        self._connection.execute(HEAD.insert().values(single=1, number=0, hash="", budget="", spent="", anchor=0))

    def version(self) -> int:
        """The version of the tables; a newer one than this program knows is refused."""
        version = read_version(self._connection)
        refuse_newer(version)
        return version

    def first_payload(self) -> str | None:
        """What the first entry says, in tables of any version; its hash is checked with the others."""
        row = self._one(GET_FIRST)
        if row is not None and sha256(row["payload"]) != row["payload_hash"]:
            raise altered_error(1)
        return None if row is None else str(row["payload"])

    def number_of(self, hash_: str) -> int | None:
        """The number of the entry with this hash."""
        row = self._one(GET_NUMBER, hash=hash_) if hash_.isascii() else None
        return None if row is None else int(row["number"])

    def alter_tables(self, version: int) -> None:
        """Bring the tables up to the newest version; the caller says so in an entry."""
        alter_tables(self._connection, version)

    def head(self, *, lock: bool) -> Head:
        """The last entry, checked against its own hash and against the row of totals; `lock` holds others off."""
        if lock and self._connection.dialect.name != "sqlite":  # there, the transaction began with the lock
            LOCK_HEAD.rows(self._connection)  # by itself: what is read after the wait must be the newest
        row = self._one(GET_HEAD)
        if row is None:
            raise LedgerError("ledger-altered", "The ledger has lost its totals.", "Restore it from its latest backup.")
        number, claimed = row["number"] or 0, row["head_number"]
        if number:
            self._refuse_altered(row)
        if number != claimed:
            what = "is missing" if number < claimed else "was never added by the ledger"
            raise altered_error(min(number, claimed) + 1, what)
        if not number or any(row[name] != row[f"head_{name}"] for name in ("hash", "budget", "spent")):
            raise altered_error(number, "does not agree with the totals")
        budget, spent = read_loss(row["budget"]), read_loss(row["spent"])
        if budget is None or spent is None:
            raise altered_error(number)
        return Head(number, row["hash"], budget, spent, row["head_anchor"])

    def claimed_number(self) -> int:
        """The number of entries that the row of totals speaks of, for an audit."""
        row = self._one(GET_HEAD)
        return row["head_number"] if row else 0

    def append(self, before: Head | None, kind: str, budget: PrivacyLoss, spent: PrivacyLoss, **parts: Any) -> Head:  # noqa: ANN401
        """Chain one more entry to the head, and move the head. The transaction makes both happen, or neither."""
        payload = parts.pop("payload", "")
        row = {
            "number": before.number + 1 if before else 1,
            "kind": kind,
            "analyst": "",
            "plan_digest": "",
            "answer_key": "",
            "about": None,
            "time": datetime.now(UTC).isoformat(timespec="microseconds"),
            "payload_hash": sha256(payload),
            "budget": write_loss(budget),
            "spent": write_loss(spent),
            "version": VERSION,
            "question": "",
            **parts,
            "loss": write_loss(parts.get("loss")),
            "analyst_spent": write_loss(parts.get("analyst_spent")),
        }
        previous = before.hash if before else ""
        anchor = row["number"] if kind in ANCHORS or before is None else before.anchor
        head = Head(row["number"], chain_hash(previous, row), budget, spent, anchor)
        signature = self.seal.sign(head.hash) if self.seal else ""
        whole = {**row, "previous": previous, "hash": head.hash, "payload": payload, "anchor": anchor}
        whole["signature"] = signature
        ADD_ENTRY.rows(self._connection, **{name: whole[name] for name in COLUMNS})
        MOVE_HEAD.rows(self._connection, **{f"new_{name}": whole[name] for name in MOVED})
        return head

    def become(self, other: "LedgerRows") -> None:
        """Take the place of everything in this SQLite file by the entries of another ledger."""
        objects = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
        found = [tuple(each) for each in self._connection.exec_driver_sql(objects)]
        for kind in ("trigger", "view", "table"):  # also those that the ledger never made; an index goes with its table
            for name in (name.replace('"', '""') for type_, name in found if type_ == kind):
                self._connection.exec_driver_sql(f'DROP {kind} "{name}"')
        self.make_tables()
        head = other.head(lock=False)
        for row in other.walk():
            ADD_ENTRY.rows(self._connection, **row)
        texts = {"hash": head.hash, "budget": write_loss(head.budget), "spent": write_loss(head.spent)}
        moved = {"number": head.number, "anchor": head.anchor, **texts}
        MOVE_HEAD.rows(self._connection, **{f"new_{name}": value for name, value in moved.items()})

    def row(self, number: int) -> Row | None:
        """An entry without its payload; an altered one is refused."""
        return self._sound(GET_PLAIN, number=number)

    def whole_row(self, number: int) -> Row | None:
        """An entry with its payload; an altered one is refused."""
        return self._sound(GET_WHOLE, number=number)

    def before(self, plan_digest: str, analyst: str) -> tuple[Row | None, Row | None]:
        """The analyst's last charge for this very plan, and their last entry, which carries what they have spent."""
        rows = self._sound_rows(GET_BEFORE, plan=plan_digest, analyst=analyst)
        same = [row for row in rows if row["kind"] == "charge" and row["plan_digest"] == plan_digest]
        return same[-1] if same else None, rows[-1] if rows else None

    def charged(self, charge: int) -> tuple[Row | None, bool, Row | None]:
        """A charge, whether it has its answer, and the last entry of the analyst who was charged."""
        rows = self._sound_rows(GET_CHARGED, charge=charge)
        found = [row for row in rows if row["number"] == charge]
        answered = any(row["kind"] == "answer" and row["about"] == charge for row in rows)
        return found[0] if found else None, answered, rows[-1] if rows else None

    def newest_of(self, analyst: str) -> Row | None:
        """The analyst's last entry, which carries what the analyst has spent."""
        return self._sound(GET_SPENT, analyst=analyst)

    def answer_to(self, charge: int) -> Row | None:
        """The answer entry of a charge, with its integers."""
        return self._sound(GET_ANSWER, charge=charge)

    def has_seen(self, charge: int, analyst: str) -> bool:
        """Whether the analyst's view of this charge's answer was counted."""
        return self._one(HAS_SEEN, charge=charge, analyst=analyst) is not None

    def answered(self, answer_key: str, analyst: str) -> list[Row]:
        """The charges under this key whose answers were given, oldest first; not those that were closed without one.

        `seen` is true where the analyst's view was counted.
        """
        return self._sound_rows(GET_ANSWERED, key=answer_key, analyst=analyst, void=_VOID_HASH)

    def own_answer(self, answer_key: str, analyst: str, before: int) -> Row | None:
        """The newest answer under this key that the analyst paid for, before an entry."""
        return self._sound(GET_OWN_ANSWER, key=answer_key, analyst=analyst, void=_VOID_HASH, number=before)

    def obtained(self, answer_key: str, analyst: str, after: int) -> list[Row]:
        """The entries after this one by which the analyst got an answer under this key: answers, and views."""
        return self._sound_rows(GET_OBTAINED, key=answer_key, analyst=analyst, void=_VOID_HASH, number=after)

    def analysts(self) -> list[str]:
        """Every name that was ever recorded."""
        return [row["name"] for row in GET_ANALYSTS.rows(self._connection)]

    def walk(self, after: int = 0) -> Generator[Row, None, None]:
        """Every entry after this one as it stands, first to last, a few at a time."""
        everything = sa.select(ENTRIES).order_by(ENTRIES.c.number)
        if after:
            everything = everything.where(ENTRIES.c.number > after)
        with self._connection.execute(everything, execution_options={"yield_per": 100}) as rows:
            for row in rows:
                yield row._asdict()

    def newest_until(self, analyst: str, number: int) -> Row | None:
        """The analyst's last entry up to this one."""
        chosen = sa.select(*PLAIN).where(ENTRIES.c.analyst == analyst, ENTRIES.c.number <= number)
        row = self._connection.execute(chosen.order_by(ENTRIES.c.number.desc()).limit(1)).first()
        return None if row is None else self._refuse_altered(row._asdict())

    def follows(self, entry: Entry, until: int) -> bool:
        """Whether an entry up to this one says the same of the same charge as the given one does."""
        same = (ENTRIES.c.kind == entry.kind, ENTRIES.c.about == entry.about, ENTRIES.c.analyst == entry.analyst)
        return (
            self._connection.execute(sa.select(ENTRIES.c.number).where(*same, ENTRIES.c.number <= until)).first()
            is not None
        )

    def open_charges(self) -> list[Entry]:
        """The charges that have no answer, oldest first."""
        answered = sa.exists().where(_answer.c.kind == "answer", _answer.c.about == ENTRIES.c.number)
        chosen = sa.select(*PLAIN).where(ENTRIES.c.kind == "charge", ~answered).order_by(ENTRIES.c.number)
        rows = self._connection.execute(chosen).all()
        return [Entry.of(self._refuse_altered(row._asdict())) for row in rows]

    def newest_anchor(self) -> int | None:
        """The number of the newest entry that says where the ledger is and whose key signs it."""
        row = self._one(GET_ANCHOR)
        return None if row is None else row["number"]

    def neighbours_entry(self) -> Row | None:
        """The entry that records the neighbours, in a ledger whose first entry does not."""
        return self._sound(GET_NEIGHBOURS)

    def anchors(self) -> list[Row]:
        """The entries that say where the ledger is and whose key signs it, oldest first."""
        chosen = sa.select(*PLAIN).where(ENTRIES.c.kind.in_(ANCHORS)).order_by(ENTRIES.c.number)
        return [self._refuse_altered(row._asdict()) for row in self._connection.execute(chosen).all()]

    def newest(self, most: int | None) -> list[Entry]:
        """The newest entries, oldest of them first."""
        newest_first = sa.select(*PLAIN).order_by(ENTRIES.c.number.desc()).limit(most)
        rows = self._connection.execute(newest_first).all()
        return [Entry.of(self._refuse_altered(row._asdict())) for row in reversed(rows)]

    def _one(self, statement: PreparedStatement, **values: object) -> Row | None:
        rows = statement.rows(self._connection, **values)
        return rows[0] if rows else None

    def _sound(self, statement: PreparedStatement, **values: object) -> Row | None:
        row = self._one(statement, **values)
        return None if row is None else self._refuse_altered(row)

    def _sound_rows(self, statement: PreparedStatement, **values: object) -> list[Row]:
        found = [self._refuse_altered(row) for row in statement.rows(self._connection, **values)]
        return sorted(found, key=lambda row: int(row["number"]))

    def _refuse_altered(self, row: Row) -> Row:
        if is_altered(row):
            raise altered_error(row["number"])
        if self.seal and not self.seal.holds(row):
            raise altered_error(row["number"], "is not signed with the ledger's key")
        return row
