"""The ledger's rows inside one transaction: the last entry is read, and the next one is appended.

Part of the trusted perimeter. The statement about the ledger: *the sum of all charges never exceeds the limit that was
in force at each charge, and a charge is on the disk before `Ledger.charge` returns*. It follows from this file:

- `run_transaction(write=True)` excludes other writers, and commits durably when it is left without an error.
- `read_head` returns the totals of the last entry, and refuses a ledger whose head row disagrees with it.
- `append` refuses a charge that does not fit, a sum that is not the sum of the charges, and any other entry that would
  lower what is spent. Only an entry of kind `limit` changes the budget, which is the owner's decision.

Hashes, signatures and high-water marks are checked on top of this. They can only refuse.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from sfumato.errors import KernelFault
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.entries import (
    ANCHORS,
    SCHEMA_VERSION,
    Head,
    Row,
    build_altered_error,
    hash_entry,
    sha256,
)
from sfumato.ledger.ledger_tables import (
    ADD_ENTRY,
    COLUMNS,
    GET_CHARGE,
    GET_CHARGE_OF_PLAN,
    GET_HEAD,
    HEAD_COLUMNS,
    LOCK_HEAD,
    MOVE_HEAD,
)
from sfumato.ledger.loss_sums import add_losses, convert_loss, fits, read_loss, split_loss, write_loss
from sfumato.ledger.prepared_statement import PreparedStatement
from sfumato.ledger.signatures import Signatures, check_entry, check_head

DURABLE = ("journal_mode = WAL", "synchronous = FULL")  # SQLite: a commit returns when the entry is on the disk


@contextmanager
def run_transaction(connection: sa.Connection, *, write: bool) -> Iterator[None]:
    """One transaction. One that writes excludes other writers from its first statement on.

    SQLite takes the write lock before anything is read. On PostgreSQL, `read_head(lock=True)` takes it.
    """
    if connection.dialect.name != "sqlite":
        connection.execution_options(isolation_level="READ COMMITTED" if write else "REPEATABLE READ")
        with connection.begin():
            yield
        return
    driver: Any = connection.connection.dbapi_connection  # it leaves transactions to us
    driver.execute("BEGIN IMMEDIATE" if write else "BEGIN").close()
    try:
        yield
        driver.commit()
    except BaseException:
        driver.rollback()
        raise


class LedgerRows:
    """The ledger's rows inside one transaction. Every row that it returns was checked against its hash and key."""

    def __init__(self, connection: sa.Connection, signatures: Signatures | None = None) -> None:
        self.connection = connection
        self.signatures = signatures  # None: a ledger in memory, which is not signed

    def read_head(self, *, lock: bool) -> Head:
        """The last entry, checked against its own hash and against the head row; `lock` excludes other writers."""
        if lock and self.connection.dialect.name != "sqlite":
            LOCK_HEAD.run(self.connection)  # a statement by itself: the next one sees what others wrote meanwhile
        row = check_head(self.find_unchecked(GET_HEAD), self.signatures)
        budget, spent = read_loss(row["budget"]), read_loss(row["spent"])
        if budget is None or spent is None:
            raise build_altered_error(row["number"])
        return Head(row["number"], row["hash"], budget, spent, row["head_anchor"])

    def append(self, before: Head | None, kind: str, budget: PrivacyLoss, spent: PrivacyLoss, **parts: Any) -> Head:  # noqa: ANN401 - columns
        """Chain one more entry to the head, and move the head. The transaction writes both, or neither."""
        if before is not None:
            _check_sum(before, kind, budget, spent, parts.get("loss"))
        payload = parts.pop("payload", "")
        row = {
            "number": before.number + 1 if before else 1,
            "kind": kind,
            **dict.fromkeys(("analyst", "plan_digest", "answer_key", "question"), ""),
            "about": None,
            "time": datetime.now(UTC).isoformat(timespec="microseconds"),
            "payload_hash": sha256(payload),
            "budget": write_loss(budget),
            "spent": write_loss(spent),
            "version": SCHEMA_VERSION,
            **parts,
            "loss": write_loss(parts.get("loss")),
            "analyst_spent": write_loss(parts.get("analyst_spent")),
        }
        previous = before.hash if before else ""
        anchor = row["number"] if kind in ANCHORS or before is None else before.anchor
        head = Head(row["number"], hash_entry(previous, row), budget, spent, anchor)
        whole = {**row, "previous": previous, "hash": head.hash, "payload": payload, "anchor": anchor}
        whole["signature"] = self.signatures.sign(whole) if self.signatures else ""
        ADD_ENTRY.run(self.connection, **{name: whole[name] for name in COLUMNS})
        MOVE_HEAD.run(self.connection, **{f"new_{name}": whole[name] for name in HEAD_COLUMNS})
        return head

    def find_charge_of_plan(self, plan_digest: str, analyst: str) -> tuple[Row | None, Row | None]:
        """The analyst's last charge for this plan, and their last entry, which holds what they have spent."""
        rows = self.list_rows(GET_CHARGE_OF_PLAN, plan=plan_digest, analyst=analyst)
        same = [row for row in rows if row["kind"] == "charge" and row["plan_digest"] == plan_digest]
        return same[-1] if same else None, rows[-1] if rows else None

    def find_charge(self, number: int) -> tuple[Row | None, Row | None, Row | None]:
        """A charge, its answer without the payload, and the last entry of the analyst who was charged."""
        rows = self.list_rows(GET_CHARGE, charge=number)
        found = [row for row in rows if row["number"] == number and row["kind"] == "charge"]
        answers = [row for row in rows if row["kind"] == "answer" and row["about"] == number]
        return found[0] if found else None, answers[0] if answers else None, rows[-1] if rows else None

    def find_unchecked(self, statement: PreparedStatement, **values: object) -> Row | None:
        """The first row that a statement finds, as it is; the caller checks it or trusts nothing in it."""
        rows = statement.run(self.connection, **values)
        return rows[0] if rows else None

    def find_row(self, statement: PreparedStatement, **values: object) -> Row | None:
        """The first entry that a statement finds."""
        row = self.find_unchecked(statement, **values)
        return None if row is None else check_entry(row, self.signatures)

    def list_rows(self, statement: PreparedStatement, **values: object) -> list[Row]:
        """The entries that a statement finds, oldest first."""
        found = [check_entry(row, self.signatures) for row in statement.run(self.connection, **values)]
        return sorted(found, key=lambda row: int(row["number"]))


def _check_sum(before: Head, kind: str, budget: PrivacyLoss, spent: PrivacyLoss, loss: PrivacyLoss | None) -> None:
    """Refuse an entry that would break the statement about the ledger."""
    carried = convert_loss(before.spent, budget)
    if budget != before.budget and kind != "limit":
        raise KernelFault("Only the owner changes a budget.")
    if kind == "charge":
        if loss is None or not fits(loss, carried, budget) or spent != add_losses(carried, loss):
            raise KernelFault("A charge must fit, and what is spent must be the sum of the charges.")
    elif any(now < then for now, then in zip(split_loss(spent), split_loss(carried), strict=True)):
        raise KernelFault("What is spent never falls.")
