"""The document of a survey: question, table and privacy loss, in canonical JSON, signed with Ed25519.

The epsilon in the document is not trusted: every reader computes it from the table's integers.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import TypeVar

from sfumato.errors import InvalidParameter
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.table_limits import PUBLISHED_DECIMAL
from sfumato.local.mechanisms.two_stage import TwoStage
from sfumato.local.mechanisms.unary import Unary
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.heavy_hitters import HeavyHitters
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.published import rebuild
from sfumato.local.randomisers.questions import Questions
from sfumato.local.randomisers.report_forms import BitRows
from sfumato.local.randomisers.two_stage_randomisers import STAGED
from sfumato.local.randomisers.word_bits import MOST_BITS, Words
from sfumato.local.survey.canonical_json import NotCanonical, parse_canonical, write_canonical
from sfumato.local.survey.domains import AnyWord, Categories, Domain, Numbers, Table, YesNo
from sfumato.local.survey.survey_refusals import build_refusal
from sfumato.signing import verify_signature

FORMAT, VERSIONS = "sfumato-survey", (1, 2, 3)
MOST_BYTES = 1 << 22
MOST_ROWS = 33  # of a table in full: the numbers of its reports are solved exactly, which takes time
MOST_PERIODS = 100_000
MOST_LABELS = 100_000  # a device checks and answers a survey within a second
MOST_ALPHABET = 1 << 12
MOST_ROW_BITS = 1 << 14  # of a report with one bit for each label
SECONDS_A_DAY = 86_400
FIELDS = frozenset(
    (
        "created", "domain", "endpoint", "epsilon", "expires", "format", "id", "lifetime_epsilon", "mechanism",
        "memoise", "minimum_batch", "period_days", "question", "version",
    )
)  # fmt: skip
DELTA_FIELDS = frozenset(("delta", "lifetime_delta"))  # of version 3
TIME = re.compile(r"2[01][0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
# https, or http to this machine itself, for trials
ENDPOINT = re.compile(
    r"(https://[!-~]{1,2000}|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?(/[!-~]{0,1900})?)?"
)
HEX = re.compile(r"[0-9a-f]*")
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Memo:
    """Devices keep a permanent report for some periods. Reports are drawn from it by a second table, or repeat it."""

    periods: int
    epsilon: Decimal  # as stated, of all reports on one permanent report
    instantaneous: Kary | Unary | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The checked content of a signed document."""

    statement: Mapping[str, object]
    public_key: str
    signature: str
    question: str
    domain: Domain
    permanent: Table  # applied to the answer; the only table if no report is kept
    table: Table  # of a single report: the collector estimates with it
    memo: Memo | None
    epsilon: Decimal  # as stated, of one report
    lifetime_epsilon: Decimal
    lifetime_delta: Decimal  # 0 if the survey states none
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
        """The privacy loss of a new answer, computed from the table; never the stated one."""
        return self.permanent.epsilon

    @property
    def price_delta(self) -> Decimal:
        """The delta of a new answer, computed from the table; 0 for pure tables."""
        return self.permanent.delta if isinstance(self.permanent, MeanRandomiser) else Decimal(0)

    @property
    def periods(self) -> int:
        """The number of periods until the survey ends."""
        if not self.period_days:
            return 1
        seconds = int((self.expires - self.created).total_seconds())
        return -(-seconds // (self.period_days * SECONDS_A_DAY))

    @property
    def affordable_periods(self) -> int:
        """The number of periods in which a device can report before the survey's lifetime epsilon is spent."""
        answers = int(Fraction(self.lifetime_epsilon) / Fraction(self.price))
        if self.price_delta:
            answers = min(answers, int(Fraction(self.lifetime_delta) / Fraction(self.price_delta)))
        return min(self.periods, answers * (self.memo.periods if self.memo else 1))

    def period_at(self, moment: datetime) -> int:
        """The number of the period at a time, from 0. Raises an error before the survey begins and after its end."""
        if moment < self.created:
            raise build_refusal("survey-early")
        if moment >= self.expires:
            raise build_refusal("survey-over")
        if not self.period_days:
            return 0
        return int((moment - self.created).total_seconds()) // (self.period_days * SECONDS_A_DAY)

    def to_bytes(self) -> bytes:
        """The document, as it was read or signed."""
        return write_document(self.statement, self.public_key, self.signature)


def read_manifest(data: bytes) -> Manifest:
    """Check a document of unknown origin, in this order: size, form, version, signature, fields, table, epsilon."""
    if len(data) > MOST_BYTES:
        raise build_refusal("survey-size")
    try:
        document = parse_canonical(data.removesuffix(b"\n"))
    except NotCanonical:
        raise build_refusal("survey-form") from None
    match document:
        case {"survey": dict(statement), "public_key": str(key), "signature": str(signature), **rest} if not rest:
            if statement.get("format") != FORMAT:
                raise build_refusal("survey-form")
        case _:
            raise build_refusal("survey-form")
    if type(statement.get("version")) is not int or statement["version"] not in VERSIONS:
        raise build_refusal("survey-version")
    text = write_canonical(statement)  # once: it may have 100,000 labels
    if not verify_signature(text, signature, key):
        raise build_refusal("survey-signature")
    return _read_statement(statement, key, signature, sha256(text).hexdigest())


def write_document(statement: Mapping[str, object], public_key: str, signature: str) -> bytes:
    return write_canonical({"survey": statement, "public_key": public_key, "signature": signature}) + b"\n"


def signature_fits(statement: Mapping[str, object], public_key: str, signature: str) -> bool:
    return verify_signature(write_canonical(statement), signature, public_key)


def identify(statement: Mapping[str, object]) -> str:
    """The id that a statement must have: a hash of all its other fields."""
    rest = {name: value for name, value in statement.items() if name != "id"}
    return sha256(write_canonical(rest)).hexdigest()[:32]


def _read_statement(statement: Mapping[str, object], public_key: str, signature: str, digest: str) -> Manifest:
    version = statement["version"] if isinstance(statement["version"], int) else 0
    if statement.keys() != (FIELDS | DELTA_FIELDS if version >= 3 else FIELDS):
        raise build_refusal("survey-field")
    if statement["id"] != identify(statement):
        raise build_refusal("survey-id")
    question = _read_text(statement["question"], 4000)
    epsilon, lifetime = _read_epsilon(statement["epsilon"]), _read_epsilon(statement["lifetime_epsilon"])
    period_days, batch = (
        _read_whole(statement["period_days"], 0, 3660),
        _read_whole(statement["minimum_batch"], 1, 10**9),
    )
    created, expires = read_time(statement["created"]), read_time(statement["expires"])
    endpoint = statement["endpoint"]
    if type(endpoint) is not str or not ENDPOINT.fullmatch(endpoint) or created >= expires:
        raise build_refusal("survey-field")
    delta, lifetime_delta = (
        (_read_delta(statement["delta"]), _read_delta(statement["lifetime_delta"]))
        if version >= 3
        else (Decimal(0), Decimal(0))
    )
    domain = _read_domain(statement["domain"], version)
    permanent = _read_table(statement["mechanism"], domain)
    memo = _read_memo(statement["memoise"], period_days)
    found = Manifest(
        statement=statement,
        public_key=public_key,
        signature=signature,
        question=question,
        domain=domain,
        permanent=permanent,
        table=_combine_stages(permanent, memo),
        memo=memo,
        epsilon=epsilon,
        lifetime_epsilon=lifetime,
        lifetime_delta=lifetime_delta,
        period_days=period_days,
        minimum_batch=batch,
        endpoint=endpoint,
        created=created,
        expires=expires,
        digest=digest,
    )
    if found.periods > MOST_PERIODS:
        raise build_refusal("survey-field")
    stated = epsilon if memo is None else memo.epsilon
    if found.table.epsilon > epsilon or found.price > stated or found.price > lifetime:
        raise build_refusal("survey-epsilon")
    if found.price_delta > delta or found.price_delta > lifetime_delta:  # in versions 1 and 2, both are 0
        raise build_refusal("survey-delta" if version >= 3 else "survey-table")
    return found


def _read_domain(value: object, version: int) -> Domain:
    match value:
        case {"kind": "categories" | "questions" as kind, "labels": list(labels), **rest} if not rest:
            if len(labels) > MOST_LABELS:
                raise build_refusal("survey-limits")
            if not all(type(label) is str and 1 <= len(label.encode()) <= 400 for label in labels):
                raise build_refusal("survey-field")
            read = tuple(labels)
            if len(set(read)) != len(read):
                raise build_refusal("survey-field")
            return Categories(read) if kind == "categories" else YesNo(read)
        case {"kind": "numbers", "lower": lower, "upper": upper, **rest} if not rest:
            return Numbers(_read_decimal(lower), _read_decimal(upper))
        case {"kind": "words", "length": length, "alphabet": str(alphabet), **rest} if not rest and version >= 2:
            if len(alphabet) > MOST_ALPHABET:
                raise build_refusal("survey-limits")
            read_length = _read_whole(length, 1, MOST_BITS)
            return AnyWord(_rebuild(lambda: Words(read_length, alphabet)))
    raise build_refusal("survey-field")


def _read_table(value: object, domain: Domain) -> Table:
    """Read a table, and check that it fits the domain."""
    if isinstance(value, dict):
        for name in ("lower", "upper"):
            if name in value:
                _read_decimal(value[name])
        rows = value.get("table")
        if isinstance(rows, list) and len(rows) > MOST_ROWS:
            raise build_refusal("survey-table")
    table = _rebuild(lambda: rebuild(value))
    if isinstance(table, Randomiser) and isinstance(table.form, BitRows) and table.form.width > MOST_ROW_BITS:
        raise build_refusal("survey-limits")
    match table, domain:
        case Randomiser(), Categories(labels) if table.k == len(labels):
            return table
        case MeanRandomiser(lower=lower, upper=upper), Numbers() if (lower, upper) == (domain.lower, domain.upper):
            return table
        case Questions(count=count), YesNo(labels) if count == len(labels):
            return table
        case HeavyHitters(words=words), AnyWord() if words == domain.words:
            return table
    raise build_refusal("survey-table")


def _read_memo(value: object, period_days: int) -> Memo | None:
    match value:
        case None:
            return None
        case {"periods": periods, "epsilon": epsilon, "instantaneous": None, **rest} if not rest and period_days:
            return Memo(_read_whole(periods, 1, MOST_PERIODS), _read_epsilon(epsilon), None)
        case {"periods": periods, "epsilon": epsilon, "instantaneous": dict(second), **rest} if (
            not rest and period_days
        ):
            fresh = _rebuild(lambda: rebuild(second)) if second.get("mechanism") in STAGED else None
            if not isinstance(fresh, Randomiser) or not isinstance(fresh.mechanism, Kary | Unary):
                raise build_refusal("survey-table")
            return Memo(_read_whole(periods, 1, MOST_PERIODS), _read_epsilon(epsilon), fresh.mechanism)
    raise build_refusal("survey-field")


def _combine_stages(permanent: Table, memo: Memo | None) -> Table:
    if memo is None or memo.instantaneous is None:
        return permanent
    first, second = permanent.mechanism if isinstance(permanent, Randomiser) else None, memo.instantaneous
    if not isinstance(first, Kary | Unary):
        raise build_refusal("survey-table")
    return _rebuild(lambda: Randomiser(TwoStage(first, second)))


def _rebuild(make: Callable[[], _Made]) -> _Made:
    try:
        return make()
    except InvalidParameter:
        raise build_refusal("survey-table") from None


def _read_text(value: object, most_bytes: int) -> str:
    if type(value) is not str or not 1 <= len(value.encode()) <= most_bytes:
        raise build_refusal("survey-field")
    return value


def _read_whole(value: object, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise build_refusal("survey-field")
    return value


def _read_decimal(value: object) -> Decimal:
    if type(value) is not str or not PUBLISHED_DECIMAL.fullmatch(value):
        raise build_refusal("survey-field")
    return Decimal(value)


def _read_epsilon(value: object) -> Decimal:
    epsilon = _read_decimal(value)
    if epsilon <= 0:
        raise build_refusal("survey-field")
    return epsilon


def _read_delta(value: object) -> Decimal:
    delta = _read_epsilon(value)
    if delta >= 1:
        raise build_refusal("survey-field")
    return delta


def read_time(value: object) -> datetime:
    if type(value) is not str or not TIME.fullmatch(value):
        raise build_refusal("survey-field")
    try:
        return datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise build_refusal("survey-field") from None
