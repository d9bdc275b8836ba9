"""The signed disclosure of an answer: the privacy unit, the loss, the bounds, and the ledger entry."""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

from sfumato.answers.output_sensitivity import ColumnSensitivity
from sfumato.canonical_text import write_canonical
from sfumato.errors import InvalidParameter
from sfumato.kernel.certify import BinChoice, Certificate, Certified
from sfumato.kernel.exact import write_plain
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.neighbours import Neighbours, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Grid, Quantity, take_part
from sfumato.kernel.release import Released
from sfumato.planning.quantity_chooser import name_kind
from sfumato.private_files import tighten, write_once
from sfumato.signing import make_secret, public_key_of, read_key, sign, verify_signature

FAMILY = 4


class Signer:
    """Signs disclosures with an Ed25519 key, from a file that only the owner can read or for this process only."""

    def __init__(self, path: Path | None = None) -> None:
        self._secret = make_secret()
        if path is not None:  # use the key in the file; if there is none, write this one
            self._secret = write_once(path, self._secret.encode()).decode().strip()
            tighten(path)
        self._key = read_key(self._secret)
        self.public_key = public_key_of(self._key)

    def secret(self, purpose: bytes) -> bytes:
        """Derive a secret for one purpose. It reveals neither the key nor the secret of another purpose."""
        return hmac.new(bytes.fromhex(self._secret), purpose, hashlib.sha256).digest()

    def sign(self, statement: dict[str, Any]) -> dict[str, Any]:
        """The statement, its signature, and the public key."""
        signature = sign(self._key, write_canonical(statement).encode())
        return {"statement": statement, "public_key": self.public_key, "signature": signature}


def verify(disclosure: dict[str, Any], public_key: str) -> bool:
    """Was this disclosure signed with this key, and not changed since?"""
    try:
        return verify_signature(write_canonical(disclosure["statement"]).encode(), disclosure["signature"], public_key)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


@dataclass(frozen=True, slots=True)
class ReleasedLoss:
    """The loss of all releases that an answer shows, as a whole and of each measurement, and their ledger entries."""

    whole: PrivacyLoss
    shares: tuple[PrivacyLoss, ...]
    entries: tuple[int, ...]

    @classmethod
    def from_release(cls, released: Released) -> "ReleasedLoss":
        """The loss of one release."""
        certificate = released.certificate
        shares = tuple(certified.loss for certified in certificate.measurements)
        return cls(certificate.loss, shares, (released.entry_number,))


def write_statement(  # noqa: PLR0917 - its caller names what it passes
    plan: BoundedPlan,
    certificate: Certificate,
    loss: ReleasedLoss,
    asked: Sequence[ColumnSensitivity],
    entry: int,
    head: str,
) -> dict[str, Any]:
    """Write the statement of an answer, with exact numbers.

    `entries` are the charges of all releases that the answer combines, and the losses are those of all of them. `entry`
    and `plan` come from the newest one.
    """
    return {
        "unit": describe_unit(plan.unit),
        "neighbours": plan.unit.neighbours.value,
        "population": plan.population,
        "loss": _write_loss(loss.whole),
        "family_of_four": _write_family_loss(loss.whole),
        "max_rows_per_unit": plan.reach,
        "max_groups_per_unit": plan.max_groups_per_unit,
        "asked": [{"column": output.column, "one_person_changes": output.one_person_changes} for output in asked],
        "measurements": [
            {
                "kind": name_kind(measurement.quantity),
                **_read_bounds(measurement.quantity),
                "one_person_changes": float(certified.sensitivity.l1) * 2.0 ** _choose_exponent(certified),
                "loss": _write_loss(share),
            }
            for measurement, certified, share in zip(
                plan.measurements, certificate.measurements, loss.shares, strict=True
            )
        ],
        "plan": certificate.plan_digest,
        "entry": entry,
        "entries": list(loss.entries),
        "ledger_head": head,
    }


def _read_bounds(quantity: Quantity) -> dict[str, float]:
    """The bounds that a value is clamped to; zeros for a quantity without bounds."""
    grid: Grid = getattr(take_part(quantity), "grid", Grid(0, 0, 0))
    return {"lower": grid.lower * 2.0**grid.exponent, "upper": grid.upper * 2.0**grid.exponent}


def describe_unit(unit: PrivacyUnit) -> str:
    """Describe the privacy unit and its neighbouring relation."""
    who = f"one row of {unit.table}" if unit.per_row else f"all rows of one {unit.id_column} in {unit.table}"
    how = "added or removed" if unit.neighbours is Neighbours.ADD_REMOVE else "replaced by another's"
    return f"{who}, {how}"


def _choose_exponent(certified: Certified) -> int:
    """The grid exponent of the sensitivity. For a choice it is that of the weights in bins, not of the values."""
    return certified.weight_exponent if isinstance(certified.noise, BinChoice) else certified.exponent


def _write_family_loss(loss: PrivacyLoss) -> dict[str, str] | str:
    try:
        return _write_loss(loss.group(FAMILY))
    except InvalidParameter:
        return "no guarantee"


def _write_loss(loss: PrivacyLoss) -> dict[str, str]:
    match loss:
        case PureDP(epsilon):
            return {"epsilon": write_plain(epsilon)}
        case ApproxDP(epsilon, delta):
            return {"epsilon": write_plain(epsilon), "delta": write_plain(delta)}
        case ZCDP(rho, delta):
            return {"rho": write_plain(rho), "delta": write_plain(delta)}
        case GDP(mu_squared, delta):
            return {"mu_squared": write_plain(mu_squared), "delta": write_plain(delta)}
        case _:
            assert_never(loss)
