"""The keys that a team signs with: several at a time, each with a time of validity, and revoked ones.

A ring is a signed document. An application ships one and can take a newer one that a key of the old ring signed. So
keys can be changed without a new version of the application.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sfumato.errors import CatalogError, InvalidParameter
from sfumato.local.survey.canonical_json import NotCanonical, parse_canonical, write_canonical
from sfumato.local.survey.manifest import Manifest, read_time, signature_fits
from sfumato.local.survey.survey_refusals import build_refusal

FORMAT, VERSION = "sfumato-keys", 1
MOST_KEYS = 64
MOST_BYTES = 1 << 16
_FIELDS = frozenset(("format", "keys", "serial", "version"))
_KEY_FIELDS = frozenset(("from", "public_key", "revoked", "until"))


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key, and which surveys it may have signed: those that were made from `begins` until before `ends`.

    A revoked key signs nothing: whoever stole it could also write an earlier date.
    """

    public_key: str
    begins: datetime
    ends: datetime
    revoked: bool = False

    def __post_init__(self) -> None:
        if self.begins.tzinfo is None or self.ends.tzinfo is None or self.begins >= self.ends:
            raise InvalidParameter("ends", "must be after begins, both with a time zone", "something else")

    def may_have_signed(self, manifest: Manifest) -> bool:
        known = self.public_key == manifest.public_key and not self.revoked
        return known and self.begins <= manifest.created < self.ends


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The trusted keys of a team. A ring with a greater serial number replaces this one."""

    serial: int
    keys: tuple[TrustedKey, ...]

    def check(self, manifest: Manifest) -> None:
        """Refuse a survey that none of these keys may have signed."""
        if not any(key.may_have_signed(manifest) for key in self.keys):
            raise build_refusal("survey-key")

    def update(self, data: bytes) -> "KeyRing":
        """The newer ring of this document. It must be signed with a key of this ring that is not revoked in either."""
        ring, signer = _read_ring(data)
        trusted = {key.public_key for key in self.keys if not key.revoked}
        withdrawn = {key.public_key for key in (*self.keys, *ring.keys) if key.revoked}
        if signer not in trusted - withdrawn or ring.serial <= self.serial:
            raise build_refusal("survey-ring")
        return ring


def read_ring(data: bytes) -> KeyRing:
    """Read a ring that comes with the application: its signature shows that it was not changed, not by whom it is."""
    return _read_ring(data)[0]


def write_ring(
    serial: int, keys: Sequence[TrustedKey], sign: Callable[[Mapping[str, object]], tuple[str, str]]
) -> bytes:
    """Write and sign a ring. `sign` returns the public key and the signature."""
    statement: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "serial": serial,
        "keys": [
            {
                "public_key": key.public_key,
                "from": f"{key.begins:%Y-%m-%dT%H:%M:%SZ}",
                "until": f"{key.ends:%Y-%m-%dT%H:%M:%SZ}",
                "revoked": key.revoked,
            }
            for key in keys
        ],
    }
    signer, signature = sign(statement)
    data = write_canonical({"ring": statement, "public_key": signer, "signature": signature}) + b"\n"
    read_ring(data)  # refuse here what devices would refuse
    return data


def _read_ring(data: bytes) -> tuple[KeyRing, str]:
    try:
        document = parse_canonical(data.removesuffix(b"\n")) if len(data) <= MOST_BYTES else None
    except NotCanonical:
        document = None
    match document:
        case {"ring": dict(statement), "public_key": str(signer), "signature": str(signature), **rest} if not rest:
            pass
        case _:
            raise build_refusal("survey-ring")
    match statement:
        case {"format": "sfumato-keys", "version": int(version), "serial": int(serial), "keys": list(keys)} if (
            statement.keys() == _FIELDS
            and type(version) is int
            and version == VERSION
            and type(serial) is int
            and serial >= 0
            and 1 <= len(keys) <= MOST_KEYS
        ):
            read = tuple(_read_key(key) for key in keys)
        case _:
            raise build_refusal("survey-ring")
    if len({key.public_key for key in read}) != len(read) or not signature_fits(statement, signer, signature):
        raise build_refusal("survey-ring")
    return KeyRing(serial, read), signer


def _read_key(value: object) -> TrustedKey:
    match value:
        case {"public_key": str(key), "from": begins, "until": ends, "revoked": bool(revoked)} if (
            isinstance(value, dict)
            and value.keys() == _KEY_FIELDS
            and len(key) == 64
            and set(key) <= set("0123456789abcdef")
        ):
            try:
                return TrustedKey(key, read_time(begins), read_time(ends), revoked)
            except (CatalogError, InvalidParameter):
                pass
    raise build_refusal("survey-ring")
