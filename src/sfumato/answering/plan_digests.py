"""Names of plans in the ledger: the digest of a plan, and the key under which its answers are stored.

No privacy proof depends on this file. If two plans had one digest, one of them would get the stored answer of the
other, or be released on a charge of the same loss that has no answer: nothing would be released that was not charged.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction

from sfumato.canonical_text import write_canonical
from sfumato.errors import KernelFault
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.bundle import bundle, certify_sequence
from sfumato.kernel.certify import Certificate, certify
from sfumato.kernel.expressions import Call
from sfumato.kernel.plan import (
    LOWERING_VERSION,
    BoundedPlan,
    Choice,
    Different,
    Grid,
    Measurement,
    Pivot,
    Products,
    Strategy,
    WeightedKeys,
)
from sfumato.kernel.released_steps import find_exponent
from sfumato.planning.quantity_chooser import name_kind

_ATOMS = (type(None), bool, int, float, str, date, datetime, Decimal, Fraction)
# left out where they say nothing: older ledgers have none
_LATER = {"Scan": ("unique",), "Join": ("meets_one",), "Quantiles": ("miss",)}
_LOSS = 6  # the place of the loss in a record


def certify_and_name(plan: BoundedPlan) -> Certificate:
    """The kernel's certificate of a plan, with the names under which the ledger finds its charge and its answer."""
    digest, key = name_plan(plan)
    return replace(certify(plan), plan_digest=digest, answer_key=key)


def bundle_and_name(certificates: Sequence[Certificate]) -> Certificate:
    """The kernel's certificate of a bundle, named by its parts."""
    digests = "\n".join(certificate.plan_digest for certificate in certificates)
    keys = "\n".join(certificate.answer_key for certificate in certificates)
    whole = bundle(certificates)
    return replace(whole, plan_digest=_hash(f"bundle\n{digests}"), answer_key=_hash(f"bundle\n{keys}"))


def certify_and_name_sequence(watch: AboveThreshold, plan: BoundedPlan) -> Certificate:
    """The kernel's certificate of a sequence against one threshold. No stored answer has its name."""
    certificate = certify_sequence(watch, plan)
    name = _hash(f"sequence\n{certificate.sequence}")
    return replace(certificate, plan_digest=name, answer_key=name)


def name_plan(plan: BoundedPlan) -> tuple[str, str]:
    """The plan's digest, and the key of its answers: the SHA-256 of texts of its fields with their types.

    Different plans have different digests. The key leaves out what is spent: plans with one key measure the same
    integers on the same data.
    """
    parts = (plan.population, plan.source, plan.unit, plan.max_groups_per_unit, plan.filters, plan.keys)
    rows = [_encode(part) for part in parts]
    records = [_encode_measurement(measurement, plan) for measurement in plan.measurements]
    measured = ["tuple", *(["Measurement", *record] for record in records)]
    unpaid = ["tuple", *(["tuple", *record[:_LOSS], *record[_LOSS + 1 :]] for record in records)]
    digest = _hash(write_canonical(["BoundedPlan", *rows, measured, _encode(plan.repeat)]))
    return digest, _hash(write_canonical(["tuple", _encode(LOWERING_VERSION), *rows, unpaid]))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _encode_measurement(measurement: Measurement, plan: BoundedPlan) -> list[object]:
    """One layout for all classes, with 0 or None for what a class does not have: existing ledgers hold its hash."""
    quantity = measurement.quantity
    grid = getattr(quantity, "grid", Grid(0, 0, find_exponent(quantity, per_row=plan.unit.per_row)))
    value, offset = getattr(quantity, "value", None), getattr(quantity, "offset", 0)
    numbers = map(_encode, (grid.lower, grid.upper, grid.exponent, measurement.loss, offset))
    whole = isinstance(quantity, Choice | Different | Pivot | Products | Strategy) or quantity == WeightedKeys(
        2
    )  # one round came first
    others = _encode(quantity, ("value", "grid")) if whole else _encode(None)
    return [_encode(measurement.name), ["Kind", name_kind(quantity).upper()], _encode(value), *numbers, others]


def _encode(thing: object, without: tuple[str, ...] = ()) -> list[object]:
    """Nested lists of type names and texts: 1, 1.0, True and '1' all differ."""
    kind = type(thing)
    if kind in _ATOMS:
        return [kind.__name__, thing.hex() if isinstance(thing, float) else str(thing)]
    if isinstance(thing, tuple):
        return ["tuple", *map(_encode, thing)]
    if isinstance(thing, Enum):
        return [kind.__name__, thing.name]
    if isinstance(thing, Call):  # function and unit in one text, as existing ledgers have it
        name = thing.function if thing.unit is None else f"{thing.function} {thing.unit}"
        return ["Call", _encode(name), _encode(thing.arguments)]
    names: tuple[str, ...] | None = getattr(kind, "__match_args__", None)  # all fields of a dataclass, in order
    if names is None:
        raise KernelFault("A plan holds something that has no canonical text.")
    without += tuple(name for name in _LATER.get(kind.__name__, ()) if not getattr(thing, name))
    return [kind.__name__, *(_encode(getattr(thing, name)) for name in names if name not in without)]
