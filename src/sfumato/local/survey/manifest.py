"""A survey as a document: what is asked, with which table, at what loss; in canonical JSON, signed with Ed25519.

Who holds the document believes nothing that it says about epsilon: it is worked out again from the table's integers.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import TypeVar

from sfumato.errors import CatalogError, InvalidParameter
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.two_stage import TwoStage
from sfumato.local.mechanisms.unary import Unary
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.published import rebuild
from sfumato.local.randomisers.questions import Questions
from sfumato.local.randomisers.two_stage_randomisers import STAGED
from sfumato.local.survey.canonical_json import NotCanonical, canonical, parse_canonical
from sfumato.local.survey.domains import Categories, Domain, Numbers, Table, YesNo
from sfumato.signing import verify_signature

FORMAT, VERSION = "sfumato-survey", 1
MOST_BYTES = 1 << 22
MOST_ROWS = 33  # of a table in full: what its reports stand for is solved exactly, which takes time
MOST_PERIODS = 100_000
SECONDS_A_DAY = 86_400
FIELDS = frozenset(
    (
        "created", "domain", "endpoint", "epsilon", "expires", "format", "id", "lifetime_epsilon", "mechanism",
        "memoise", "minimum_batch", "period_days", "question", "version",
    )
)  # fmt: skip
DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,60})?(e[+-]?[0-9]{1,3})?")
TIME = re.compile(r"2[01][0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
ENDPOINT = re.compile(r"(https://[!-~]{1,2000})?")
HEX = re.compile(r"[0-9a-f]*")
_Made = TypeVar("_Made")

# constant texts: a document that is refused is not quoted
REFUSALS = {
    "survey-size": ("The survey is larger than 4 MiB.", "No survey needs that; ask for a shorter one."),
    "survey-form": (
        "This is not a signed survey in canonical JSON (RFC 8785).",
        "Load the file exactly as it was published; reformatting it breaks it.",
    ),
    "survey-version": ("This survey is of another version.", "This program knows version 1."),
    "survey-signature": (
        "The signature does not fit the survey.",
        "It was changed after it was signed. Do not answer it; fetch it again from whoever asks.",
    ),
    "survey-key": (
        "The survey is signed with another key than the one you trust.",
        "Do not answer it, or check the key with whoever asks.",
    ),
    "survey-id": ("The survey's id is not that of its content.", "It was put together wrongly. Do not answer it."),
    "survey-field": (
        "A field of the survey is missing, unknown, or breaks its rule.",
        "docs/local.md says what a survey holds.",
    ),
    "survey-table": (
        "The survey's table is not one that keeps a secret and tells something.",
        "Every entry is above zero, the truth is likelier than the rest, and the table fits the answers.",
    ),
    "survey-epsilon": (
        "The survey's table costs more epsilon than the survey states.",
        "Its own integers say so. Do not answer it.",
    ),
    "survey-cap": ("One answer to this survey costs more epsilon than your own cap.", "Nothing was sent or spent."),
    "survey-early": ("The survey has not begun.", "Nothing was sent or spent."),
    "survey-over": ("The survey is over.", "Nothing was sent or spent."),
}


def refused(code: str) -> CatalogError:
    return CatalogError(code, *REFUSALS[code])


@dataclass(frozen=True, slots=True)
class Memo:
    """A permanent report is kept for so many periods; reports are made of it, by a second table or as it is."""

    periods: int
    epsilon: Decimal  # stated, for all reports from one permanent report
    instantaneous: Kary | Unary | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a signed document says, checked."""

    statement: Mapping[str, object]
    public_key: str
    signature: str
    question: str
    domain: Domain
    permanent: Table  # from the answer; the only table, where nothing is memoised
    table: Table  # of one report by itself: what the collector undoes
    memo: Memo | None
    epsilon: Decimal  # stated, of one report
    lifetime_epsilon: Decimal
    period_days: int
    minimum_batch: int
    endpoint: str
    created: datetime
    expires: datetime
    digest: str  # of the whole statement

    @property
    def id(self) -> str:
        return str(self.statement["id"])

    @property
    def price(self) -> Decimal:
        """What a new answer costs: derived from the table, never what the document states."""
        return self.permanent.epsilon

    @property
    def periods(self) -> int:
        """How many periods there are until the survey is over."""
        if not self.period_days:
            return 1
        seconds = int((self.expires - self.created).total_seconds())
        return -(-seconds // (self.period_days * SECONDS_A_DAY))

    @property
    def affordable_periods(self) -> int:
        """In how many of the periods one device can report before it has given all that the survey may ever have."""
        answers = int(Fraction(self.lifetime_epsilon) / Fraction(self.price))
        return min(self.periods, answers * (self.memo.periods if self.memo else 1))

    def period_at(self, moment: datetime) -> int:
        """The number of the period, from 0; refused before the survey begins and after its end."""
        if moment < self.created:
            raise refused("survey-early")
        if moment >= self.expires:
            raise refused("survey-over")
        if not self.period_days:
            return 0
        return int((moment - self.created).total_seconds()) // (self.period_days * SECONDS_A_DAY)

    def to_bytes(self) -> bytes:
        """The document, as it was read or signed."""
        return envelope(self.statement, self.public_key, self.signature)


def read_manifest(data: bytes) -> Manifest:
    """Check a document from anyone, in this order: size, form, version, signature, fields, table, epsilon."""
    if len(data) > MOST_BYTES:
        raise refused("survey-size")
    try:
        document = parse_canonical(data.removesuffix(b"\n"))
    except NotCanonical:
        raise refused("survey-form") from None
    match document:
        case {"survey": dict(statement), "public_key": str(key), "signature": str(signature), **rest} if not rest:
            if statement.get("format") != FORMAT:
                raise refused("survey-form")
        case _:
            raise refused("survey-form")
    if type(statement.get("version")) is not int or statement["version"] != VERSION:
        raise refused("survey-version")
    if not signature_fits(statement, key, signature):
        raise refused("survey-signature")
    return _checked(statement, key, signature)


def envelope(statement: Mapping[str, object], public_key: str, signature: str) -> bytes:
    return canonical({"survey": statement, "public_key": public_key, "signature": signature}) + b"\n"


def signature_fits(statement: Mapping[str, object], public_key: str, signature: str) -> bool:
    return verify_signature(canonical(statement), signature, public_key)


def identify(statement: Mapping[str, object]) -> str:
    """The id that a statement must have: of all else that it says, so that another survey has another id."""
    rest = {name: value for name, value in statement.items() if name != "id"}
    return sha256(canonical(rest)).hexdigest()[:32]


def _checked(statement: Mapping[str, object], public_key: str, signature: str) -> Manifest:
    if statement.keys() != FIELDS:
        raise refused("survey-field")
    if statement["id"] != identify(statement):
        raise refused("survey-id")
    question = _text(statement["question"], 4000)
    epsilon, lifetime = _epsilon(statement["epsilon"]), _epsilon(statement["lifetime_epsilon"])
    period_days, batch = _whole(statement["period_days"], 0, 3660), _whole(statement["minimum_batch"], 1, 10**9)
    created, expires = _time(statement["created"]), _time(statement["expires"])
    endpoint = statement["endpoint"]
    if type(endpoint) is not str or not ENDPOINT.fullmatch(endpoint) or created >= expires:
        raise refused("survey-field")
    domain = _domain(statement["domain"])
    permanent = _table(statement["mechanism"], domain)
    memo = _memo(statement["memoise"], period_days)
    found = Manifest(
        statement=statement,
        public_key=public_key,
        signature=signature,
        question=question,
        domain=domain,
        permanent=permanent,
        table=_staged(permanent, memo),
        memo=memo,
        epsilon=epsilon,
        lifetime_epsilon=lifetime,
        period_days=period_days,
        minimum_batch=batch,
        endpoint=endpoint,
        created=created,
        expires=expires,
        digest=sha256(canonical(statement)).hexdigest(),
    )
    if found.periods > MOST_PERIODS:
        raise refused("survey-field")
    stated = epsilon if memo is None else memo.epsilon
    if found.table.epsilon > epsilon or found.price > stated or found.price > lifetime:
        raise refused("survey-epsilon")
    return found


def _domain(value: object) -> Domain:
    match value:
        case {"kind": "categories" | "questions" as kind, "labels": list(labels), **rest} if not rest:
            read = tuple(_text(each, 400) for each in labels)
            if len(set(read)) != len(read):
                raise refused("survey-field")
            return Categories(read) if kind == "categories" else YesNo(read)
        case {"kind": "numbers", "lower": lower, "upper": upper, **rest} if not rest:
            return Numbers(_decimal(lower), _decimal(upper))
    raise refused("survey-field")


def _table(value: object, domain: Domain) -> Table:
    """The table of a description, if it is one for this domain."""
    if isinstance(value, dict):
        for name in ("lower", "upper"):
            if name in value:
                _decimal(value[name])
        rows = value.get("table")
        if isinstance(rows, list) and len(rows) > MOST_ROWS:
            raise refused("survey-table")
    table = _rebuilt(lambda: rebuild(value))
    match table, domain:
        case Randomiser(), Categories(labels) if table.k == len(labels):
            return table
        case MeanRandomiser(lower=lower, upper=upper), Numbers() if (lower, upper) == (domain.lower, domain.upper):
            return table
        case Questions(count=count), YesNo(labels) if count == len(labels):
            return table
    raise refused("survey-table")


def _memo(value: object, period_days: int) -> Memo | None:
    match value:
        case None:
            return None
        case {"periods": periods, "epsilon": epsilon, "instantaneous": None, **rest} if not rest and period_days:
            return Memo(_whole(periods, 1, MOST_PERIODS), _epsilon(epsilon), None)
        case {"periods": periods, "epsilon": epsilon, "instantaneous": dict(second), **rest} if (
            not rest and period_days
        ):
            fresh = _rebuilt(lambda: rebuild(second)) if second.get("mechanism") in STAGED else None
            if not isinstance(fresh, Randomiser) or not isinstance(fresh.mechanism, Kary | Unary):
                raise refused("survey-table")
            return Memo(_whole(periods, 1, MOST_PERIODS), _epsilon(epsilon), fresh.mechanism)
    raise refused("survey-field")


def _staged(permanent: Table, memo: Memo | None) -> Table:
    if memo is None or memo.instantaneous is None:
        return permanent
    first, second = permanent.mechanism if isinstance(permanent, Randomiser) else None, memo.instantaneous
    if not isinstance(first, Kary | Unary):
        raise refused("survey-table")
    return _rebuilt(lambda: Randomiser(TwoStage(first, second)))


def _rebuilt(make: Callable[[], _Made]) -> _Made:
    try:
        return make()
    except InvalidParameter:
        raise refused("survey-table") from None


def _text(value: object, most_bytes: int) -> str:
    if type(value) is not str or not 1 <= len(value.encode()) <= most_bytes:
        raise refused("survey-field")
    return value


def _whole(value: object, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise refused("survey-field")
    return value


def _decimal(value: object) -> Decimal:
    if type(value) is not str or not DECIMAL.fullmatch(value):
        raise refused("survey-field")
    return Decimal(value)


def _epsilon(value: object) -> Decimal:
    epsilon = _decimal(value)
    if epsilon <= 0:
        raise refused("survey-field")
    return epsilon


def _time(value: object) -> datetime:
    if type(value) is not str or not TIME.fullmatch(value):
        raise refused("survey-field")
    try:
        return datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise refused("survey-field") from None
