"""The contents of the index of releases: what the entries say, in the index's columns."""

from collections.abc import Iterator

import sqlalchemy as sa

from sfumato.ledger.audit import Verification
from sfumato.ledger.entries import Row
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.ledger_tables import ENTRIES, is_kind
from sfumato.ledger.prepared_statement import PreparedStatement
from sfumato.ledger.release_index import RELEASES, round_variance, write_delta
from sfumato.ledger.stored_answers import VOID_HASH, read_certified

CUT = "No entry has this number: the index was altered, or the newest entries were removed."
LEAST = -(2**31)  # no number in the index is below it, also in PostgreSQL
_FIRST, _VOID = sa.bindparam("first", type_=sa.Integer), sa.bindparam("void", type_=sa.Text)
_charge, _answer = ENTRIES.alias("charge"), ENTRIES.alias("answer")
_ANSWERS_IT = sa.and_(_answer.c.kind == sa.literal_column("'answer'"), _answer.c.about == ENTRIES.c.about)

ADD_RELEASE = PreparedStatement(sa.insert(RELEASES).inline())
GET_INDEX = PreparedStatement(sa.select(RELEASES).where(RELEASES.c.number >= _FIRST))
GET_RELEASED = PreparedStatement(  # the answers and first views since an entry, with the charge and answer of each
    sa.select(
        ENTRIES.c.number,
        ENTRIES.c.analyst,
        _charge.c.number.label("charge"),
        _charge.c.answer_key,
        _charge.c.payload,
        _answer.c.number.label("answer"),
    )
    .join_from(ENTRIES, _charge, _charge.c.number == ENTRIES.c.about)
    .join(_answer, _ANSWERS_IT)
    .where(sa.or_(is_kind("answer"), is_kind("seen")), _answer.c.payload_hash != _VOID, ENTRIES.c.number >= _FIRST)
    .order_by(ENTRIES.c.number)
)


def index_release(rows: LedgerRows, number: int, charge: Row, answer: int, analyst: str) -> None:
    """Add an answer, or the first view of one by an analyst: the entry `number`."""
    pointed = {"number": number, "charge": charge["number"], "answer": answer, "analyst": analyst}
    ADD_RELEASE.run(rows.connection, **pointed, **_describe_charge(charge))


def build_index(rows: LedgerRows) -> None:
    """Fill the index from the entries. What was in it is removed."""
    rows.connection.execute(RELEASES.delete())
    for expected in _list_expected(rows, LEAST):
        ADD_RELEASE.run(rows.connection, **expected)


def compare_index(rows: LedgerRows, audited: Verification) -> Verification:
    """The result of an audit, unless the index differs from the entries that it checked."""
    first = audited.verified_before + 1 if audited.verified_before else LEAST
    expected = {row["number"]: row for row in _list_expected(rows, first)}
    found = {row["number"]: row for row in GET_INDEX.run(rows.connection, first=first)}
    wrong = [number for number in expected.keys() | found.keys() if expected.get(number) != found.get(number)]
    if not wrong:
        return audited
    fix = "`sfumato ledger adopt` builds the index again." if min(wrong) <= audited.entries else CUT
    reason = f"The index of releases differs from the entries at this number. {fix}"
    return Verification(False, audited.entries, min(wrong), reason, audited.verified_before)


def _list_expected(rows: LedgerRows, first: int) -> Iterator[Row]:
    """The rows that the index should hold from this number on."""
    for row in GET_RELEASED.run(rows.connection, first=first, void=VOID_HASH):
        pointed = {name: row[name] for name in ("number", "charge", "answer", "analyst")}
        yield {**pointed, **_describe_charge(row)}


def _describe_charge(charge: Row) -> Row:
    """What the index says about a charge."""
    certified = read_certified(charge["payload"])
    measured = {"delta": write_delta(certified.loss), "variance": round_variance(certified.variances)}
    return {"answer_key": charge["answer_key"], **measured}
