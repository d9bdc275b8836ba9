"""A survey on a person's device: load it, check it, and report."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from sfumato.drawing.cards import make_card, make_note
from sfumato.drawing.pages import make_table
from sfumato.local.survey.announcement import read_announcement
from sfumato.local.survey.device import Device, Report
from sfumato.local.survey.domains import Domain, Table
from sfumato.local.survey.fetch import fetch
from sfumato.local.survey.key_ring import KeyRing
from sfumato.local.survey.manifest import MOST_BYTES, Manifest, read_manifest, signature_fits
from sfumato.local.survey.survey_refusals import build_refusal
from sfumato.local.survey.survey_words import list_survey_facts
from sfumato.number_arguments import Number, read_positive_decimal


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
        trusted: KeyRing | None = None,
        cap: Number | None = None,
        device: Path | str | None = None,
    ) -> "Survey":
        """Read a survey from a file or an https address. Refuse it if its signature, table or epsilon is wrong.

        `public_key` is the key of the team that asks; get it from another source than the survey. `trusted` are the
        keys of a team that has several. Without either, the signature only shows that the survey was not changed since
        somebody signed it. `cap` is the most epsilon that one answer may cost. `device` is the file of the person's
        own ledger.
        """
        survey = cls(read_manifest(_read(str(source), public_key is not None or trusted is not None)), device)
        if public_key is not None and not survey.verify(public_key):
            raise build_refusal("survey-key")
        if trusted is not None:
            trusted.check(survey.manifest)
        if cap is not None and survey.manifest.price > read_positive_decimal(cap, "cap"):
            raise build_refusal("survey-cap")
        return survey

    def verify(self, public_key: str) -> bool:
        """Whether the holder of this key signed this survey, and it was not changed since."""
        known = isinstance(public_key, str) and public_key.strip().lower() == self.manifest.public_key
        return known and signature_fits(self.manifest.statement, self.manifest.public_key, self.manifest.signature)

    def report(self, value: object, *, at: datetime | None = None, announcement: bytes | None = None) -> Report:
        """Randomise an answer. The loss is charged to the person's own ledger before the report is returned.

        A second call in the same period returns the same report and costs nothing. `at` is the time that chooses the
        period (default: now). With the team's announcement of a period, that period is used, whatever the clock says.
        """
        answer = self.manifest.domain.read(value, self.manifest.permanent)
        announced = None if announcement is None else read_announcement(announcement, self.manifest)
        return Device(self.device).report(self.manifest, answer, at or datetime.now(UTC), announced)

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
        """The table of one report: the device draws from it, and the collector estimates with it."""
        return self.manifest.table

    @property
    def epsilon(self) -> Decimal:
        """The privacy loss of a single report, computed from the table."""
        return self.manifest.table.epsilon

    @property
    def delta(self) -> Decimal:
        """The delta of a new answer, computed from the table: 0, unless the mechanism has one."""
        return self.manifest.price_delta

    @property
    def longitudinal_epsilon(self) -> Decimal:
        """The privacy loss of all reports on one answer: that of the permanent report, if one is kept."""
        return self.manifest.price

    def __repr__(self) -> str:
        facts = [f"{name}: {text}" for name, text in list_survey_facts(self.manifest)]
        return "\n".join([self.question, *facts, f"survey {self.id}"])

    def _repr_html_(self) -> str:
        facts = make_table(("survey", ""), list_survey_facts(self.manifest))
        return make_card(self.question, facts, make_note(f"Survey {self.id}. Its signature and its table are checked."))


def _read(source: str, key_is_known: bool) -> bytes:
    if source.lower().startswith(("http://", "https://")):
        return fetch(source, MOST_BYTES + 1, secure=not key_is_known)
    with Path(source).open("rb") as file:
        return file.read(MOST_BYTES + 1)
