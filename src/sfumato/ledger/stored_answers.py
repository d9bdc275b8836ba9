"""Answers that were given before: what is kept of a certificate with its charge, and when it answers another."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from sfumato.errors import KernelFault
from sfumato.kernel.canonical_text import canonical_text
from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.expressions import Scalar
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.kernel.release import Released
from sfumato.ledger.entries import Head, Row, altered_error, read_charge, write_loss
from sfumato.ledger.loss_sums import Spending, amounts_of


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer that was given before.

    Each of `certificate_measure` is a name, a variance and the noise's kind; `shares` are their losses, in order;
    `taken` is what it takes to see it.
    """

    entry_number: int
    certificate_measure: tuple[tuple[str, Fraction, str], ...]
    integers: dict[str, tuple[int, ...]]
    loss: PrivacyLoss
    head: str
    analyst: str
    shares: tuple[PrivacyLoss, ...]
    taken: Spending
    keys: tuple[tuple[Scalar, ...], ...] | None = None


def _name_noise(each: Certified) -> str:
    match each.noise:
        case LaplaceNoise():
            return "laplace"
        case GaussianNoise():
            return "gaussian"
        case _:
            return "choice"


def bound_variance(certified: Certified) -> Fraction:
    """An upper bound of the noise's variance, in squared steps: it compares answers to the same question."""
    match certified.noise:
        case LaplaceNoise(scale):
            return 2 * scale**2
        case GaussianNoise(variance):
            return variance
        case choice:
            return choice.spread**2


VOID = canonical_text({"void": True})


def is_void(answer: Row | None) -> bool:
    """Is this the end of a charge whose answer could not be made?"""
    return answer is not None and bool(answer["payload"] == VOID)


def write_answer(released: Released, summary: Mapping[str, object] | None = None) -> str:
    """An answer as it is kept: its integers, the keys that the data named, and what an upgrade sums up with it."""
    keys = None if released.keys is None else [[_write_key(value) for value in key] for key in released.keys]
    whole = {"integers": released.integers, "keys": keys}
    return canonical_text(whole if summary is None else {**whole, "summary": dict(summary)})


def read_summary(answer: Row) -> dict[str, Any] | None:
    """What an upgrade summed up with this answer."""
    kept: dict[str, Any] | None = json.loads(answer["payload"]).get("summary")
    return kept


def _write_key(value: Scalar) -> list[str]:
    kind = type(value)
    if kind not in READERS:
        raise KernelFault("A key holds something that cannot be kept.")
    return [kind.__name__, value.isoformat() if isinstance(value, date) else str(value)]


READERS: dict[type, Callable[[str], Scalar]] = {
    bool: lambda text: text == "True", int: int, float: float, str: str,
    date: date.fromisoformat, datetime: datetime.fromisoformat,
}  # fmt: skip
BY_NAME = {kind.__name__: reader for kind, reader in READERS.items()}


def read_answer(text: str) -> tuple[dict[str, tuple[int, ...]], tuple[tuple[Scalar, ...], ...] | None]:
    """What `answer_text` wrote: integers and keys."""
    kept = json.loads(text)
    named = kept["keys"]
    keys = None if named is None else tuple(tuple(BY_NAME[kind](value) for kind, value in key) for key in named)
    return {name: tuple(cells) for name, cells in kept["integers"].items()}, keys


def describe_certificate(certificate: Certificate) -> str:
    """What was certified, as it is kept with the charge: enough to price it again and to judge its precision."""
    measurements = [
        {
            "name": each.name,
            "noise": _name_noise(each),
            "variance": str(bound_variance(each)),
            "exponent": each.exponent,
            "loss": write_loss(each.loss),
        }
        for each in certificate.measurements
    ]
    whole = {"cells": certificate.cells, "loss": write_loss(certificate.loss), "measurements": measurements}
    return canonical_text(whole)


def read_measurements(charge: Row) -> tuple[tuple[str, Fraction, str], ...]:
    described = json.loads(charge["payload"])["measurements"]
    return tuple((each["name"], Fraction(each["variance"]), each["noise"]) for each in described)


def read_certified_loss(charge: Row) -> PrivacyLoss:
    """The loss that was certified, in its own kind: the column `loss` has what was charged for it."""
    return read_charge(json.loads(charge["payload"])["loss"])


def is_precise_enough(charge: Row, certificate: Certificate) -> bool:
    """Whether every measurement of a stored answer is at least as precise as the wanted one, at the same delta."""
    loss = read_certified_loss(charge)
    kept = {name: variance for name, variance, _ in read_measurements(charge)}
    wanted = {each.name: bound_variance(each) for each in certificate.measurements}
    same_delta = amounts_of(loss)[1] == amounts_of(certificate.loss)[1]
    return same_delta and kept.keys() == wanted.keys() and all(kept[name] <= wanted[name] for name in wanted)


def read_shares(charge: Row) -> tuple[PrivacyLoss, ...]:
    """The losses of a charge's measurements, in order."""
    return tuple(read_charge(each["loss"]) for each in json.loads(charge["payload"])["measurements"])


def read_stored(charge: Row, answer: Row | None, head: Head, taken: Spending) -> StoredAnswer:
    """What a charge and its answer entry hold."""
    if answer is None:
        raise altered_error(charge["number"])
    integers, keys = read_answer(answer["payload"])
    number, loss, shares = charge["number"], read_certified_loss(charge), read_shares(charge)
    return StoredAnswer(
        number, read_measurements(charge), integers, loss, head.hash, charge["analyst"], shares, taken, keys
    )
