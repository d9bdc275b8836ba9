"""The small print of an answer, signed: who is protected, at what loss, within which bounds, by which ledger."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from sfumato.answers.output_sensitivity import AsAsked
from sfumato.errors import InvalidParameter
from sfumato.kernel.certify import BinChoice, Certificate, Certified
from sfumato.kernel.exact import plain
from sfumato.kernel.losses import ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.plan import BoundedPlan
from sfumato.private_files import tighten, written_once

FAMILY = 4


class Signer:
    """Signs disclosures with an Ed25519 key: kept in a file that only the owner reads, or for this process only."""

    def __init__(self, path: Path | None = None) -> None:
        fresh = Ed25519PrivateKey.generate()
        if path is None:
            self._key = fresh
        else:  # the one that is kept; this one, if it is the first
            secret = fresh.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()).hex()
            kept = written_once(path, secret.encode())
            tighten(path)
            self._key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(kept.decode().strip()))
        self.public_key = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()

    def secret(self, purpose: bytes) -> bytes:
        """A secret of this key's holder for one purpose, which says nothing of the key or of another secret."""
        kept = self._key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        return hmac.new(kept, purpose, hashlib.sha256).digest()

    def sign(self, statement: dict[str, Any]) -> dict[str, Any]:
        """The statement, its signature, and the key that made it."""
        signature = self._key.sign(_bytes(statement)).hex()
        return {"statement": statement, "public_key": self.public_key, "signature": signature}


def verify(disclosure: dict[str, Any], public_key: str) -> bool:
    """Was this disclosure signed by the holder of this key, and not changed since?"""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(disclosure["signature"]), _bytes(disclosure["statement"]))
    except (InvalidSignature, ValueError, KeyError, TypeError):
        return False
    return True


def statement(
    plan: BoundedPlan, certificate: Certificate, asked: Sequence[AsAsked], entry: int, head: str
) -> dict[str, Any]:
    """What an answer promises, in plain words and exact numbers."""
    return {
        "unit": str(plan.unit),
        "neighbours": plan.unit.neighbours.value,
        "population": plan.population,
        "loss": _text(certificate.loss),
        "family_of_four": _for_a_family(certificate.loss),
        "max_rows_per_unit": plan.reach,
        "max_groups_per_unit": plan.max_groups_per_unit,
        "asked": [{"column": each.column, "one_person_changes": each.one_person_changes} for each in asked],
        "measurements": [
            {
                "kind": measurement.kind.value,
                "lower": measurement.lower * 2.0**measurement.exponent,
                "upper": measurement.upper * 2.0**measurement.exponent,
                "one_person_changes": float(each.sensitivity.l1) * 2.0 ** _grid(each),
                "loss": _text(each.loss),
            }
            for measurement, each in zip(plan.measurements, certificate.measurements, strict=True)
        ],
        "plan": certificate.plan_digest,
        "entry": entry,
        "ledger_head": head,
    }


def _grid(each: Certified) -> int:
    """The grid of what one person changes: of a choice it is the weights in its bins, not its values."""
    return each.weight_exponent if isinstance(each.noise, BinChoice) else each.exponent


def _for_a_family(loss: PrivacyLoss) -> dict[str, str] | str:
    try:
        return _text(loss.group(FAMILY))
    except InvalidParameter:
        return "no guarantee"


def _text(loss: PrivacyLoss) -> dict[str, str]:
    match loss:
        case PureDP(epsilon):
            return {"epsilon": plain(epsilon)}
        case ApproxDP(epsilon, delta):
            return {"epsilon": plain(epsilon), "delta": plain(delta)}
        case _:
            return {"rho": plain(loss.rho), "delta": plain(loss.delta)}


def _bytes(thing: dict[str, Any]) -> bytes:
    return json.dumps(thing, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
