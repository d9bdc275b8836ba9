"""An index of the stored answers by question and precision.

To find the answer to a question, the ledger reads one release, however many there are of the same question. The index
is a table of its own: one row for each answer, and one for each first view of an answer by another analyst. It holds
nothing that the entries do not say, and it is not hashed: `build_index` makes it anew. What it points to are entries,
and their hashes and signatures are checked when they are read. So are the question, and that the analyst paid for the
answer or was counted as seeing it. So a damaged index shows no answer to another question, and no answer that the
analyst does not have. It can hide an answer, which is then charged anew, or make the ledger refuse. It cannot hide the
answer to a certificate that the analyst has already (`find_same`). `Ledger.verify` compares it with the entries.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import sqlalchemy as sa

from sfumato.errors import LedgerError
from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.entries import Row
from sfumato.ledger.entry_queries import add_index, has_seen
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.ledger_tables import ANALYST, ENTRIES, GET_ANSWER, TABLES, is_kind
from sfumato.ledger.loss_sums import split_loss
from sfumato.ledger.prepared_statement import PreparedStatement
from sfumato.ledger.stored_answers import VOID_HASH, bound_variance, describe_certificate, is_void

RELEASES = sa.Table(
    "sfumato_releases",
    TABLES,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),  # the answer, or the first view of it
    sa.Column("charge", sa.Integer, nullable=False),
    sa.Column("answer", sa.Integer, nullable=False),
    sa.Column("answer_key", sa.Text, nullable=False),
    sa.Column("delta", sa.Text, nullable=False),
    sa.Column("analyst", sa.Text, nullable=False),  # who paid for it, or saw it
    sa.Column("variance", sa.Float, nullable=False),  # of the first measurement by name, rounded
)
_IS_ANSWER = RELEASES.c.number == RELEASES.c.answer
sa.Index(
    "sfumato_by_precision",
    *(RELEASES.c[name] for name in ("answer_key", "delta", "variance", "number")),
    sqlite_where=_IS_ANSWER,
    postgresql_where=_IS_ANSWER,
)
sa.Index(
    "sfumato_by_analyst",
    *(RELEASES.c[name] for name in ("answer_key", "analyst", "delta", "variance", "number")),
)
OWN_ANSWERS = add_index("own_answers", "answer", "answer_key", "analyst", "number")
MOST_CANDIDATES = 32
LARGEST = 1e300  # variances beyond it are equal in the index

_KEY, _DELTA, _VOID, _PLAN = (sa.bindparam(name, type_=sa.Text) for name in ("key", "delta", "void", "plan"))
_VARIANCE = sa.bindparam("variance", type_=sa.Float)
_SKIP, _NUMBER = (sa.bindparam(name, type_=sa.Integer) for name in ("skip", "number"))
_seen = ENTRIES.alias("seen")


class Order(Enum):
    """In which order the releases of a question are tried."""

    BEST = "the most precise first"
    OWN_BEST = "of those that the analyst has, the most precise first"
    NEAREST = "the least precise first"  # usually the cheapest first


def _select_candidate(order: Order, *, whole: bool) -> PreparedStatement:
    """The entries of one release that is precise enough: its charge, its answer if `whole`, and the analyst's view."""
    conditions = [RELEASES.c.answer_key == _KEY, RELEASES.c.delta == _DELTA, RELEASES.c.variance <= _VARIANCE]
    conditions.append(RELEASES.c.analyst == ANALYST if order is Order.OWN_BEST else _IS_ANSWER)
    variance = RELEASES.c.variance.desc() if order is Order.NEAREST else RELEASES.c.variance
    seen = sa.select(_seen.c.number).where(
        _seen.c.kind == sa.literal_column("'seen'"), _seen.c.about == RELEASES.c.charge, _seen.c.analyst == ANALYST
    )
    chosen = (
        sa.select(RELEASES.c.charge, RELEASES.c.answer, seen.scalar_subquery().label("seen"))
        .where(*conditions)
        .order_by(variance, RELEASES.c.number)
        .limit(1)
        .offset(_SKIP)
        .cte("chosen")
    )
    numbers = [chosen.c.charge, chosen.c.seen, *([chosen.c.answer] if whole else [])]
    return PreparedStatement(sa.select(ENTRIES).join_from(chosen, ENTRIES, ENTRIES.c.number.in_(numbers)))


_CANDIDATES = {(order, whole): _select_candidate(order, whole=whole) for order in Order for whole in (True, False)}
_SEEN_BY_ANALYST = sa.exists().where(
    _seen.c.kind == sa.literal_column("'seen'"), _seen.c.about == ENTRIES.c.number, _seen.c.analyst == ANALYST
)
GET_SAME_PLAN = PreparedStatement(
    sa.select(ENTRIES)
    .where(is_kind("charge"), ENTRIES.c.plan_digest == _PLAN)
    .where(sa.or_(ENTRIES.c.analyst == ANALYST, _SEEN_BY_ANALYST))
)
_IS_SAME = ENTRIES.select().where(is_kind("charge"), ENTRIES.c.plan_digest == _PLAN).exists()
_IS_RELEASED = RELEASES.select().where(RELEASES.c.answer_key == _KEY, _IS_ANSWER).exists()
IS_KNOWN = PreparedStatement(sa.select(sa.or_(_IS_RELEASED, _IS_SAME).label("known")))
GET_OWN_ANSWER = PreparedStatement(
    sa.select(ENTRIES)
    .where(is_kind("answer"), ENTRIES.c.answer_key == _KEY, ENTRIES.c.analyst == ANALYST)
    .where(ENTRIES.c.payload_hash != _VOID, ENTRIES.c.number < _NUMBER)
    .order_by(ENTRIES.c.number.desc())
    .limit(1)
)
_OBTAINED = (RELEASES.c.answer_key == _KEY, RELEASES.c.analyst == ANALYST, RELEASES.c.number > _NUMBER)
GET_OBTAINED = PreparedStatement(
    sa.select(ENTRIES).where(
        ENTRIES.c.number.in_(
            sa.union_all(*(sa.select(RELEASES.c[name]).where(*_OBTAINED) for name in ("charge", "answer", "number")))
        )
    )
)


@dataclass(frozen=True, slots=True)
class Release:
    """A stored release. `has` says whether the analyst has it: paid for it, or was counted as having seen it."""

    charge: Row
    answer: Row | None  # None: not read
    has: bool


def may_be_stored(rows: LedgerRows, certificate: Certificate) -> bool:
    """Whether the ledger has any release of this question, or a charge of this plan. One statement, nothing checked."""
    known = rows.find_unchecked(IS_KNOWN, key=certificate.answer_key, plan=certificate.plan_digest)
    return known is not None and bool(known["known"])


def find_releases(
    rows: LedgerRows, certificate: Certificate, analyst: str, order: Order, *, whole: bool
) -> Iterator[Release]:
    """The releases of a question whose first measurement is precise enough, at the same delta; at most MOST_CANDIDATES.

    The answer itself is read if `whole`.
    """
    key, delta = certificate.answer_key, write_delta(certificate.loss)
    variance = round_variance({part.name: bound_variance(part) for part in certificate.measurements})
    wanted = {"key": key, "delta": delta, "variance": variance, "analyst": analyst}
    for skip in range(MOST_CANDIDATES):
        found = rows.list_rows(_CANDIDATES[order, whole], skip=skip, **wanted)
        if not found:
            return
        charge, later = found[0], found[1:]
        if charge["kind"] != "charge" or charge["answer_key"] != key:
            raise build_index_error(charge["number"])
        answers = [row for row in later if row["kind"] == "answer" and row["about"] == charge["number"]]
        seen = any(row["kind"] == "seen" and row["about"] == charge["number"] for row in later)
        yield Release(charge, answers[0] if answers else None, seen or charge["analyst"] == analyst)


def find_same(rows: LedgerRows, certificate: Certificate, analyst: str) -> Release | None:
    """The release of this very certificate, if the analyst has it. The index is not used."""
    for charge in rows.list_rows(GET_SAME_PLAN, plan=certificate.plan_digest, analyst=analyst):
        if charge["payload"] != describe_certificate(certificate):
            continue
        answer = rows.find_row(GET_ANSWER, charge=charge["number"])
        has = charge["analyst"] == analyst or has_seen(rows, charge["number"], analyst)
        if has and answer is not None and not is_void(answer):
            return Release(charge, answer, True)
    return None


def find_own_answer(rows: LedgerRows, answer_key: str, analyst: str, before: int) -> Row | None:
    """The newest answer to this question that the analyst paid for, before an entry."""
    return rows.find_row(GET_OWN_ANSWER, key=answer_key, analyst=analyst, void=VOID_HASH, number=before)


def list_obtained(rows: LedgerRows, answer_key: str, analyst: str, after: int) -> list[tuple[Row, Row]]:
    """The charges and answers of this question that the analyst obtained after an entry, by paying or by viewing.

    The index names them. Whether it is right is read from the entries themselves.
    """
    found = rows.list_rows(GET_OBTAINED, key=answer_key, analyst=analyst, number=after)
    answers = {row["about"]: row for row in found if row["kind"] == "answer" and not is_void(row)}
    views = {row["about"]: row for row in found if row["kind"] == "seen" and row["analyst"] == analyst}
    charges = [row for row in found if row["kind"] == "charge"]
    for charge in charges:
        number = charge["number"]
        obtained = answers.get(number) if charge["analyst"] == analyst else views.get(number)
        if charge["answer_key"] != answer_key or number not in answers or not obtained or obtained["number"] <= after:
            raise build_index_error(number)
    return [(charge, answers[charge["number"]]) for charge in charges]


def build_index_error(number: int) -> LedgerError:
    """The refusal to use an index that does not say what the entries say."""
    message = f"The index of releases says something about entry {number} of the ledger that the entry does not say."
    hint = "Run `sfumato ledger verify --full`. If only the index is wrong, `sfumato ledger adopt` builds it again."
    return LedgerError("ledger-altered", message, hint)


def write_delta(loss: PrivacyLoss) -> str:
    """The delta of a loss, as the index holds it."""
    return str(split_loss(loss)[1])


def round_variance(variances: dict[str, Fraction]) -> float:
    """The variance of the first measurement by name. Rounding never reverses the order of two variances."""
    variance = variances[min(variances)] if variances else Fraction(0)
    return float(min(variance, Fraction(LARGEST)))
