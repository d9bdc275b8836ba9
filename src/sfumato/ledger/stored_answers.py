"""Stored answers: the texts of a certificate and of an answer, and whether an answer is precise enough."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sfumato.canonical_text import write_canonical
from sfumato.errors import KernelFault
from sfumato.kernel.certify import BinChoice, Certificate, Certified
from sfumato.kernel.expressions import Scalar
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise, Noise
from sfumato.kernel.release import Released
from sfumato.ledger.entries import Head, Row, build_altered_error, sha256
from sfumato.ledger.loss_sums import split_loss, write_loss
from sfumato.ledger.spending import Spending, read_charge

ROUNDING = Fraction(1, 12)  # the most that rounding to whole steps adds to the variance of a Gaussian


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer that was given before.

    `certificate_measure` holds a name, a variance and the kind of noise for each measurement. `shares` are their
    losses, in order. `taken` is what seeing the answer takes. `plan_digest` is the one of its charge.
    """

    entry_number: int
    plan_digest: str
    certificate_measure: tuple[tuple[str, Fraction, str], ...]
    integers: dict[str, tuple[int, ...]]
    loss: PrivacyLoss
    head: str
    analyst: str
    shares: tuple[PrivacyLoss, ...]
    taken: Spending
    keys: tuple[tuple[Scalar, ...], ...] | None = None


def _name_noise(measurement: Certified) -> str:
    match measurement.noise:
        case LaplaceNoise():
            return "laplace"
        case GaussianNoise(rounded=rounded):
            return "rounded gaussian" if rounded else "gaussian"
        case BoxNoise():
            return "box"
        case _:
            return "choice"


def bound_variance(certified: Certified) -> Fraction:
    """An upper bound of the noise's variance, in squared steps: it compares answers to the same question."""
    return _bound_noise(certified.noise)


@lru_cache(maxsize=1024)
def _bound_noise(noise: Noise | BoxNoise | BinChoice) -> Fraction:
    match noise:
        case LaplaceNoise(scale):
            return 2 * scale**2
        case GaussianNoise(variance, rounded):
            return variance + ROUNDING if rounded else variance
        case BoxNoise(units, scale):
            return (max(units) * (len(units) + 2) * (scale + 1)) ** 2
        case choice:
            return choice.spread**2


VOID = write_canonical({"void": True})
VOID_HASH = sha256(VOID)


def is_void(answer: Row | None) -> bool:
    """Whether this entry closes a charge whose answer could not be made."""
    return answer is not None and bool(answer["payload_hash"] == VOID_HASH)


def write_answer(released: Released, summary: Mapping[str, object] | None = None) -> str:
    """The text of an answer: its integers, its undeclared keys, and the summary of an upgrade."""
    keys = None if released.keys is None else [[_write_key(value) for value in key] for key in released.keys]
    whole = {"integers": released.integers, "keys": keys}
    return write_canonical(whole if summary is None else {**whole, "summary": dict(summary)})


def find_shape(released: Released) -> dict[str, int]:
    """How many integers each measurement of an answer has, by its certificate and its undeclared keys."""
    certificate, keys = released.certificate, released.keys
    if len(certificate.plans) <= 1 or keys is None:
        cells = certificate.cells if keys is None else len(keys)
        return {part.name: (cells or 0) * part.width for part in certificate.measurements}
    shape = {}
    for part in certificate.measurements:  # of a bundle: the width of a declared part counts its cells
        number = int(part.name.partition(".")[0])
        declared = certificate.plans[number].cells is not None
        shape[part.name] = (1 if declared else sum(key[0] == number for key in keys)) * part.width
    return shape


def read_summary(answer: Row) -> dict[str, Any] | None:
    """The summary that an upgrade stored with this answer.

    A summary of an earlier build, which does not list its entries, is not used: its releases are read one by one.
    """
    summary: dict[str, Any] | None = json.loads(answer["payload"]).get("summary")
    return summary if summary and "entries" in summary else None


def _write_key(value: Scalar) -> list[str]:
    kind = type(value)
    if kind not in READERS:
        raise KernelFault("A key holds a value that cannot be stored.")
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
    """The text of a certificate in its charge: enough to compute its price again and to compare its precision."""
    measurements = [
        {
            "name": part.name,
            "noise": _name_noise(part),
            "variance": str(bound_variance(part)),
            "exponent": part.exponent,
            "loss": write_loss(part.loss),
        }
        for part in certificate.measurements
    ]
    whole = {"cells": certificate.cells, "loss": write_loss(certificate.loss), "measurements": measurements}
    return write_canonical(whole)


@dataclass(frozen=True, slots=True)
class CertifiedTerms:
    """What `describe_certificate` wrote: the certified loss, in its own kind, and what was measured, in order."""

    loss: PrivacyLoss
    measurements: tuple[tuple[str, Fraction, str], ...]  # name, variance, kind of noise
    shares: tuple[PrivacyLoss, ...]

    @property
    def variances(self) -> dict[str, Fraction]:
        """The variance of each measurement, by name."""
        return {name: variance for name, variance, _ in self.measurements}


@lru_cache(maxsize=1024)
def read_certified(payload: str) -> CertifiedTerms:
    """What `describe_certificate` wrote."""
    described = json.loads(payload)
    parts = described["measurements"]
    return CertifiedTerms(
        read_charge(described["loss"]),
        tuple((part["name"], Fraction(part["variance"]), part["noise"]) for part in parts),
        tuple(read_charge(part["loss"]) for part in parts),
    )


def is_precise_enough(charge: Row, certificate: Certificate) -> bool:
    """Whether every measurement of a stored answer is at least as precise as the requested one, at the same delta."""
    certified = read_certified(charge["payload"])
    stored = certified.variances
    wanted = {part.name: bound_variance(part) for part in certificate.measurements}
    same_delta = split_loss(certified.loss)[1] == split_loss(certificate.loss)[1]
    return same_delta and stored.keys() == wanted.keys() and all(stored[name] <= wanted[name] for name in wanted)


def read_stored(charge: Row, answer: Row | None, head: Head, taken: Spending) -> StoredAnswer:
    """The stored answer that a charge and its answer entry hold."""
    if answer is None:
        raise build_altered_error(charge["number"])
    integers, keys = read_answer(answer["payload"])
    number, certified = charge["number"], read_certified(charge["payload"])
    return StoredAnswer(
        number,
        charge["plan_digest"],
        certified.measurements,
        integers,
        certified.loss,
        head.hash,
        charge["analyst"],
        certified.shares,
        taken,
        keys,
    )
