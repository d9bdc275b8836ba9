"""A statement of the team that asks, signed with the survey's key: this period has begun, and this is the time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sfumato.errors import CatalogError
from sfumato.local.survey.canonical_json import NotCanonical, parse_canonical, write_canonical
from sfumato.local.survey.manifest import Manifest, read_time, signature_fits
from sfumato.local.survey.survey_refusals import build_refusal

FORMAT, VERSION = "sfumato-period", 1
FIELDS = frozenset(("at", "format", "period", "survey", "version"))


@dataclass(frozen=True, slots=True)
class Announcement:
    """The period that the team announced, and its time."""

    period: int
    at: datetime


def announce_period(manifest: Manifest, sign: Callable[[Mapping[str, object]], tuple[str, str]], at: datetime) -> bytes:
    """Write the announcement of the period at this time. `sign` returns the public key and the signature."""
    moment = at.astimezone(UTC).replace(microsecond=0)
    statement: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "survey": manifest.id,
        "period": manifest.period_at(moment),
        "at": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    key, signature = sign(statement)
    if key != manifest.public_key:
        raise build_refusal("survey-key")
    return write_canonical({"announcement": statement, "public_key": key, "signature": signature}) + b"\n"


def read_announcement(data: bytes, manifest: Manifest) -> Announcement:
    """Check an announcement of unknown origin for this survey."""
    try:
        document = parse_canonical(data.removesuffix(b"\n"))
    except NotCanonical:
        raise build_refusal("survey-announcement") from None
    match document:
        case {"announcement": dict(statement), "public_key": str(key), "signature": str(signature), **rest} if (
            not rest and statement.keys() == FIELDS
        ):
            pass
        case _:
            raise build_refusal("survey-announcement")
    said = (statement["format"], statement["version"], statement["survey"], key)
    if said != (FORMAT, VERSION, manifest.id, manifest.public_key) or type(statement["version"]) is not int:
        raise build_refusal("survey-announcement")
    if not signature_fits(statement, key, signature):
        raise build_refusal("survey-announcement")
    try:
        at = read_time(statement["at"])
        period = manifest.period_at(at)
    except CatalogError:
        raise build_refusal("survey-announcement") from None
    if type(statement["period"]) is not int or statement["period"] != period:
        raise build_refusal("survey-announcement")
    return Announcement(period, at)
