"""The result of an attack: success rates against the naive and the protected release, the limit, and a figure."""

import textwrap
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any

from sfumato.drawing.figure import Figure
from sfumato.drawing.pages import add_style, make_page, make_table
from sfumato.kernel.exact import write_plain
from sfumato.lab.success_rate import SuccessRate, show_share

FALSE_ALARM = 1e-6  # the probability that a correct release is reported to exceed its limit
COLUMNS = 80
BAR = 26
UNSEEDED = "A seed fixes the data and the naive noise. Sfumato's noise is never seeded, so its figures differ slightly."


@dataclass(frozen=True, slots=True)
class Story:
    """An attack in three sentences or so."""

    knows: str  # what the attacker has before the release
    does: str
    learns: str


@dataclass(frozen=True, slots=True)
class AttackResult:
    """One attack, run against a naive release and against the same release by Sfumato."""

    name: str  # as the command line takes it
    title: str
    story: Story
    success: str  # what counts as a success
    naive: SuccessRate
    protected: SuccessRate
    limit: float  # no attacker on an epsilon-DP release succeeds more often
    formula: str  # of the limit
    epsilon: Decimal
    seed: int | None
    figure: Figure
    notes: tuple[str, ...] = ()

    @property
    def exceeds_limit(self) -> bool:
        """Did the attack succeed more often than the limit allows, beyond sampling error (probability 1e-6)?"""
        return self.protected.lower_bound(FALSE_ALARM) > self.limit

    @property
    def verdict(self) -> str:
        """A sentence about the protected release."""
        if self.exceeds_limit:
            return "The protected release EXCEEDS its limit: the claimed epsilon is wrong."
        return "The protected release is within its limit, allowing for sampling error."

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `sfumato lab NAME --json`."""
        return {
            "attack": self.name,
            "title": self.title,
            "epsilon": write_plain(self.epsilon),
            "seed": self.seed,
            "success": self.success,
            "naive": _rate_dict(self.naive),
            "protected": _rate_dict(self.protected),
            "limit": self.limit,
            "formula": self.formula,
            "exceeds_limit": self.exceeds_limit,
            "story": {"knows": self.story.knows, "does": self.story.does, "learns": self.story.learns},
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        """The result for a terminal of 80 columns."""
        return self.write_text()

    def write_text(self, columns: int = COLUMNS) -> str:
        """The result for a terminal. One that is narrower than 80 columns shows no bars."""
        lines = [*textwrap.wrap(f"{self.title} (ε = {write_plain(self.epsilon)})", columns), ""]
        for heading, words in self._sentences():
            lines += textwrap.wrap(f"{heading}: {words}", columns, subsequent_indent="  ")
        lines.append("")
        limit = f"{show_share(self.limit)} = {self.formula}"
        for who, share, words in (
            ("naive release", self.naive.share, str(self.naive)),
            ("Sfumato", self.protected.share, str(self.protected)),
            ("limit", self.limit, limit),
        ):
            bar = f"{who:<14}{_bar(share)}  {words}"
            lines += [bar] if columns >= COLUMNS else textwrap.wrap(f"{who}: {words}", columns, subsequent_indent="  ")
        lines.append("")
        for note in (self.verdict, *self.notes, UNSEEDED):
            lines += textwrap.wrap(note, columns)
        return "\n".join(lines)

    __repr__ = __str__

    def html(self) -> str:
        """The result as a piece of HTML."""
        story = "".join(
            f"<p><strong>{escape(heading)}.</strong> {escape(words)}</p>" for heading, words in self._sentences()
        )
        rows = [
            ["naive release", show_share(self.naive.share), _show_interval(self.naive)],
            ["Sfumato", show_share(self.protected.share), _show_interval(self.protected)],
            ["limit", show_share(self.limit), self.formula],
        ]
        table = make_table(["", "success", "95 % confidence interval, or formula"], rows, numbers=(1,))
        notes = "".join(f'<p class="sf-note">{escape(note)}</p>' for note in (*self.notes, UNSEEDED))
        return (
            f"<h1>{escape(self.title)}</h1><p>ε = {write_plain(self.epsilon)}</p>{story}{self.figure.html()}{table}"
            f"<p>{escape(self.verdict)}</p>{notes}"
        )

    def save(self, path: str | Path) -> None:
        """Write a self-contained HTML page."""
        Path(path).write_text(make_page(self.title, self.html()), encoding="utf-8")

    def _repr_html_(self) -> str:
        return add_style(self.html())

    def _sentences(self) -> tuple[tuple[str, str], ...]:
        return (
            ("What the attacker knows", self.story.knows),
            ("What the attacker does", self.story.does),
            ("What the attacker learns", self.story.learns),
            ("A success", self.success),
        )


def _rate_dict(rate: SuccessRate) -> dict[str, Any]:
    low, high = rate.interval()
    return {"share": rate.share, "successes": rate.successes, "trials": rate.trials, "interval": [low, high]}


def _show_interval(rate: SuccessRate) -> str:
    low, high = rate.interval()
    return f"{show_share(low)} to {show_share(high)}, from {rate.trials:,} trials"


def _bar(share: float) -> str:
    filled = round(BAR * share)
    return "█" * filled + "·" * (BAR - filled)
