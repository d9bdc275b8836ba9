"""Make and sign a survey: choose the table for the epsilon, and fill in the other fields."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from sfumato.errors import CatalogError, InvalidParameter
from sfumato.kernel.exact import round_up, write_plain
from sfumato.local.mechanisms.two_stage import TwoStage
from sfumato.local.randomisers.category_choice import choose
from sfumato.local.randomisers.category_randomisers import Randomiser, randomiser
from sfumato.local.randomisers.category_tables import describe_category_table
from sfumato.local.randomisers.heavy_hitters import heavy_hitters
from sfumato.local.randomisers.mean_choice import choose_mean
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser, mean_randomiser
from sfumato.local.randomisers.questions import compare_questions, questions
from sfumato.local.randomisers.two_stage_randomisers import memoise
from sfumato.local.survey.announcement import announce_period
from sfumato.local.survey.canonical_json import write_canonical
from sfumato.local.survey.domains import Table
from sfumato.local.survey.key_ring import TrustedKey, write_ring
from sfumato.local.survey.manifest import (
    ENDPOINT,
    FORMAT,
    MOST_ROW_BITS,
    Manifest,
    identify,
    read_manifest,
    write_document,
)
from sfumato.local.survey.signed_survey import Survey
from sfumato.number_arguments import Number, read_positive_decimal, read_probability, read_whole_number
from sfumato.signing import make_secret, public_key_of, read_key, sign

DAYS, MOST_DAYS = 365, 3650
MINIMUM_BATCH = 1000


class SurveyKey:
    """The Ed25519 key that signs surveys: in a file that only its owner can read, or for this process only."""

    def __init__(self, path: Path | str | None = None) -> None:
        place = None if path is None else Path(path)
        secret = place.read_text().strip() if place is not None and place.exists() else None
        if secret is None:
            secret = make_secret()
            if place is not None:
                with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(f"{secret}\n")
        try:
            self._key = read_key(secret)
        except ValueError:
            raise CatalogError(
                "survey-key-file", "The key file does not hold a key.", "It holds 64 hexadecimal digits."
            ) from None
        self.public_key = public_key_of(self._key)

    def sign(self, statement: Mapping[str, object]) -> bytes:
        """Sign a statement; return the document that is published."""
        return write_document(statement, self.public_key, sign(self._key, write_canonical(statement)))

    def announce(self, manifest: Manifest, at: datetime | None = None) -> bytes:
        """Sign the announcement that a period of this survey has begun (default: the period of this moment)."""
        return announce_period(manifest, self._sign_statement, at or datetime.now(UTC))

    def sign_ring(self, serial: int, keys: Sequence[TrustedKey]) -> bytes:
        """Sign a list of the team's trusted keys, for devices that trust this key."""
        return write_ring(serial, keys, self._sign_statement)

    def _sign_statement(self, statement: Mapping[str, object]) -> tuple[str, str]:
        return self.public_key, sign(self._key, write_canonical(statement))


@dataclass(frozen=True, slots=True)
class Renewal:
    """Devices keep a permanent report, of at most this epsilon, for this number of periods."""

    epsilon: Number
    periods: int


def new_survey(
    question: str,
    *,
    epsilon: Number,
    key: SurveyKey,
    labels: Sequence[str] | None = None,
    bounds: tuple[Number, Number] | None = None,
    questions: Sequence[str] | None = None,
    words: int | None = None,
    alphabet: str = "",
    mechanism: str | None = None,
    most_bits: int | None = None,
    delta: Number | None = None,
    period_days: int = 0,
    renewal: Renewal | None = None,
    lifetime_epsilon: Number | None = None,
    lifetime_delta: Number | None = None,
    minimum_batch: int = MINIMUM_BATCH,
    endpoint: str = "",
    begins: datetime | None = None,
    days: int = DAYS,
) -> Survey:
    """Make a signed survey: one of several labels, a number between bounds, yes or no to questions, or any word.

    Without a name, the mechanism of least variance is used. `period_days=0` asks each person once; otherwise once per
    period. With a renewal, a device keeps its permanent report for some periods and draws its reports from that.
    `delta` is for `mechanism="gaussian"`: devices refuse it unless the person's caps allow a delta.
    `words` asks for any text: its first so many characters of the alphabet, or bytes of UTF-8 without one.
    """
    if sum(given is not None for given in (labels, bounds, questions, words)) != 1:
        raise InvalidParameter(
            "labels", "or bounds, questions or words must be given, exactly one of the four", "none, or several"
        )
    if delta is not None and (bounds is None or mechanism != "gaussian"):
        raise InvalidParameter("delta", "is for a number with mechanism='gaussian'", "another survey")
    if lifetime_delta is not None and delta is None:
        raise InvalidParameter("lifetime_delta", "needs a delta", "none")
    if alphabet and words is None:
        raise InvalidParameter("alphabet", "is for words", "a survey of something else")
    if not isinstance(endpoint, str) or not ENDPOINT.fullmatch(endpoint):
        raise InvalidParameter(
            "endpoint", "must be an https address, an http address of this machine, or empty", "something else"
        )
    asked = read_positive_decimal(epsilon, "epsilon")
    kept = None if renewal is None else read_positive_decimal(renewal.epsilon, "renewal")
    if labels is not None:
        domain: dict[str, object] = {"kind": "categories", "labels": _check_labels(labels, "labels", 2)}
        if len(labels) > MOST_ROW_BITS and most_bits is None:
            most_bits = MOST_ROW_BITS  # devices refuse longer rows of bits
        table = _make_for_labels(len(labels), asked, kept, mechanism, most_bits)
    elif bounds is not None:
        made = _make_for_bounds(bounds, _take_single_epsilon(asked, kept), mechanism, most_bits, delta)
        domain = {"kind": "numbers", "lower": write_plain(made.lower), "upper": write_plain(made.upper)}
        table = made
    elif words is not None:
        domain = {"kind": "words", "length": words, "alphabet": alphabet}
        table = _make_for_words(words, alphabet, _take_single_epsilon(asked, kept), mechanism, most_bits)
    else:
        domain = {"kind": "questions", "labels": _check_labels(questions or (), "questions", 1)}
        table = _make_for_questions(len(questions or ()), _take_single_epsilon(asked, kept), mechanism)
    staged = table.mechanism if isinstance(table, Randomiser) and isinstance(table.mechanism, TwoStage) else None
    start = (begins or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0)
    statement: dict[str, object] = {
        "format": FORMAT,
        "version": 3
        if delta is not None
        else 2
        if words is not None
        else 1,  # the oldest version that has all of it: more devices can read it
        "question": question,
        "domain": domain,
        "mechanism": describe_category_table(staged.permanent) if staged else table.describe(),
        "memoise": None
        if kept is None or renewal is None
        else {
            "periods": renewal.periods,
            "epsilon": write_plain(kept),
            "instantaneous": describe_category_table(staged.instantaneous) if staged else None,
        },
        "epsilon": write_plain(asked),
        "lifetime_epsilon": write_plain(
            read_positive_decimal(lifetime_epsilon, "lifetime_epsilon")
            if lifetime_epsilon is not None
            else kept or asked
        ),
        "period_days": read_whole_number(period_days, "period_days", 0),
        "minimum_batch": read_whole_number(minimum_batch, "minimum_batch", 1),
        "endpoint": endpoint,
        "created": _format_time(start),
        "expires": _format_time(start + timedelta(days=min(read_whole_number(days, "days", 1), MOST_DAYS))),
    }
    if delta is not None:
        one = round_up(read_probability(delta, "delta"))
        total = one if lifetime_delta is None else round_up(read_probability(lifetime_delta, "lifetime_delta"))
        statement |= {"delta": write_plain(one), "lifetime_delta": write_plain(total)}
    statement["id"] = identify(statement)
    return Survey(read_manifest(key.sign(statement)))  # the same checks as for any reader


def _make_for_labels(k: int, epsilon: Decimal, kept: Decimal | None, name: str | None, most_bits: int | None) -> Table:
    if kept is not None and epsilon < kept:
        names = (name,) if name else ("rr",) if k == 2 else ("krr", "oue", "sue")
        staged = [memoise(candidate, k=k, longitudinal_epsilon=kept, epsilon=epsilon) for candidate in names]
        fits = [table for table in staged if most_bits is None or table.form.bits <= most_bits] or staged
        return min(fits, key=lambda table: table.variance_asked(1 / k))
    one = _take_single_epsilon(epsilon, kept)
    if name is None:
        return choose(k, one, most_bits=most_bits).randomiser
    return randomiser(name, k=k, epsilon=one)


def _make_for_bounds(
    bounds: tuple[Number, Number], epsilon: Decimal, name: str | None, most_bits: int | None, delta: Number | None
) -> MeanRandomiser:
    lower, upper = bounds
    if name is None:
        return choose_mean(lower, upper, epsilon, most_bits=most_bits).randomiser
    return mean_randomiser(name, lower=lower, upper=upper, epsilon=epsilon, delta=delta)


def _make_for_questions(count: int, epsilon: Decimal, method: str | None) -> Table:
    return compare_questions(count, epsilon).better if method is None else questions(count, epsilon, method)


def _make_for_words(length: int, alphabet: str, epsilon: Decimal, name: str | None, most_bits: int | None) -> Table:
    if name not in (None, "pem"):
        raise InvalidParameter("mechanism", "must be pem for words", "another name")
    made = heavy_hitters(length, epsilon, alphabet=alphabet)
    if most_bits is not None and made.form.bits > read_whole_number(most_bits, "most_bits", 1):
        raise InvalidParameter("most_bits", f"must be at least {made.form.bits} here", "less", "Ask for shorter words.")
    return made


def _take_single_epsilon(epsilon: Decimal, kept: Decimal | None) -> Decimal:
    """The epsilon of a table that makes both the permanent report and the report that is sent."""
    return epsilon if kept is None else min(epsilon, kept)


def _check_labels(texts: Sequence[str], name: str, least: int) -> list[str]:
    given = list(texts)
    if len(given) < least:
        raise InvalidParameter(name, f"must be {least} or more", "fewer")
    if not all(isinstance(text, str) and text for text in given) or len(set(given)) != len(given):
        raise InvalidParameter(name, "must be different texts, none of them empty", "others")
    return given


def _format_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
