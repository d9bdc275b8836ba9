"""Answers that were given before: what is kept of a certificate with its charge, and when it answers another."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from sfumato.errors import KernelFault
from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.expressions import Scalar
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.kernel.release import Released
from sfumato.ledger.charges import Taken, amounts_of
from sfumato.ledger.entries import Head, Row, altered_error, canonical, charged_loss, loss_text


@dataclass(frozen=True, slots=True)
class Stored:
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
    taken: Taken
    keys: tuple[tuple[Scalar, ...], ...] | None = None


def _kind(each: Certified) -> str:
    match each.noise:
        case LaplaceNoise():
            return "laplace"
        case GaussianNoise():
            return "gaussian"
        case _:
            return "choice"


VOID = canonical({"void": True})


def is_void(answer: Row | None) -> bool:
    """Is this the end of a charge whose answer could not be made?"""
    return answer is not None and bool(answer["payload"] == VOID)


def answer_text(released: Released, summary: Mapping[str, object] | None = None) -> str:
    """An answer as it is kept: its integers, the keys that the data named, and what an upgrade sums up with it."""
    keys = None if released.keys is None else [[_written(value) for value in key] for key in released.keys]
    whole = {"integers": released.integers, "keys": keys}
    return canonical(whole if summary is None else {**whole, "summary": dict(summary)})


def read_summary(answer: Row) -> dict[str, Any] | None:
    """What an upgrade summed up with this answer."""
    kept: dict[str, Any] | None = json.loads(answer["payload"]).get("summary")
    return kept


def _written(value: Scalar) -> list[str]:
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


def description(certificate: Certificate) -> str:
    """What was certified, as it is kept with the charge: enough to price it again and to judge its precision."""
    measurements = [
        {
            "name": each.name,
            "noise": _kind(each),
            "variance": str(each.variance),
            "exponent": each.exponent,
            "loss": loss_text(each.loss),
        }
        for each in certificate.measurements
    ]
    whole = {"cells": certificate.cells, "loss": loss_text(certificate.loss), "measurements": measurements}
    return canonical(whole)


def measures(charge: Row) -> tuple[tuple[str, Fraction, str], ...]:
    described = json.loads(charge["payload"])["measurements"]
    return tuple((each["name"], Fraction(each["variance"]), each["noise"]) for each in described)


def certified_loss(charge: Row) -> PrivacyLoss:
    """The loss that was certified, in its own kind: the column `loss` has what was charged for it."""
    return charged_loss(json.loads(charge["payload"])["loss"])


def answers(charge: Row, certificate: Certificate) -> bool:
    """Whether every measurement of a stored answer is at least as precise as the wanted one, at the same delta."""
    loss = certified_loss(charge)
    kept = {name: variance for name, variance, _ in measures(charge)}
    wanted = {each.name: each.variance for each in certificate.measurements}
    same_delta = amounts_of(loss)[1] == amounts_of(certificate.loss)[1]
    return same_delta and kept.keys() == wanted.keys() and all(kept[name] <= wanted[name] for name in wanted)


def shares_of(charge: Row) -> tuple[PrivacyLoss, ...]:
    """The losses of a charge's measurements, in order."""
    return tuple(charged_loss(each["loss"]) for each in json.loads(charge["payload"])["measurements"])


def stored_answer(charge: Row, answer: Row | None, head: Head, taken: Taken) -> Stored:
    """What a charge and its answer entry hold."""
    if answer is None:
        raise altered_error(charge["number"])
    integers, keys = read_answer(answer["payload"])
    number, loss, shares = charge["number"], certified_loss(charge), shares_of(charge)
    return Stored(number, measures(charge), integers, loss, head.hash, charge["analyst"], shares, taken, keys)
