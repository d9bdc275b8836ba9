"""A survey as a person's device sees it: load it, check it, and report."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from sfumato.kernel.exact import plain
from sfumato.kernel.parameters import Number
from sfumato.local.survey.device import Device, Report
from sfumato.local.survey.domains import Domain, Table
from sfumato.local.survey.fetch import fetch
from sfumato.local.survey.manifest import MOST_BYTES, Manifest, read_manifest, refused, signature_fits
from sfumato.number_arguments import positive_decimal


@dataclass(frozen=True, slots=True)
class Survey:
    """A survey whose signature, table and epsilon were checked when it was loaded."""

    manifest: Manifest
    device: Path | str | None = None

    @classmethod
    def load(
        cls,
        source: Path | str,
        *,
        public_key: str | None = None,
        cap: Number | None = None,
        device: Path | str | None = None,
    ) -> "Survey":
        """Read a survey from a file or an https address, and refuse it if anything about it is not as it says.

        `public_key` is the key of whoever asks, from somewhere else than the survey; without it, the signature only
        shows that the survey is as somebody signed it. `cap` is the most epsilon that one answer may cost.
        `device` is the file of the person's own books.
        """
        survey = cls(read_manifest(_read(str(source), public_key is not None)), device)
        if public_key is not None and not survey.verify(public_key):
            raise refused("survey-key")
        if cap is not None and survey.manifest.price > positive_decimal(cap, "cap"):
            raise refused("survey-cap")
        return survey

    def verify(self, public_key: str) -> bool:
        """Was this survey signed by the holder of this key, and not changed since?"""
        known = isinstance(public_key, str) and public_key.strip().lower() == self.manifest.public_key
        return known and signature_fits(self.manifest.statement, self.manifest.public_key, self.manifest.signature)

    def report(self, value: object, *, at: datetime | None = None) -> Report:
        """A report on this answer, charged to the person's own books before it is returned.

        Asked again in the same period it is the same report, and free. `at` is the moment that counts; default: now.
        """
        answer = self.manifest.domain.read(value, self.manifest.permanent)
        return Device(self.device).report(self.manifest, answer, at or datetime.now(UTC))

    @property
    def id(self) -> str:
        return self.manifest.id

    @property
    def question(self) -> str:
        return self.manifest.question

    @property
    def domain(self) -> Domain:
        return self.manifest.domain

    @property
    def table(self) -> Table:
        """What one report is drawn from, and what the collector undoes."""
        return self.manifest.table

    @property
    def epsilon(self) -> Decimal:
        """The loss of one report by itself, derived from the table."""
        return self.manifest.table.epsilon

    @property
    def longitudinal_epsilon(self) -> Decimal:
        """The loss of all reports on one answer: where a permanent report is kept, of that; else of each report."""
        return self.manifest.price

    def __repr__(self) -> str:
        return f"<survey {self.id}, epsilon {plain(self.epsilon)} a report>"


def _read(source: str, key_is_known: bool) -> bytes:
    if source.lower().startswith(("http://", "https://")):
        return fetch(source, MOST_BYTES + 1, secure=not key_is_known)
    with Path(source).open("rb") as file:
        return file.read(MOST_BYTES + 1)
