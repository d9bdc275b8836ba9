# ruff: noqa: PLC0415 - plots are imported when they are wanted
"""What a tally says: unbiased and consistent estimates, their intervals, what fakes could do, and what was promised."""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.kernel.exact import plain
from sfumato.kernel.parameters import Number
from sfumato.local.collect.shuffle import Shuffled, shuffled
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.questions import QuestionEstimate, Questions
from sfumato.local.randomisers.share_estimates import FloatArray
from sfumato.local.randomisers.tally import Tally
from sfumato.local.survey.domains import Categories, YesNo
from sfumato.local.survey.manifest import Manifest
from sfumato.number_arguments import probability_inside

if TYPE_CHECKING:
    import altair

ONE_PERIOD = "what is protected is one period's report; over several periods the longitudinal epsilon stands."


@dataclass(frozen=True, slots=True)
class Line:
    """One share, or the mean. `moved`: how far the fakes could have moved the unbiased estimate."""

    label: str
    unbiased: float
    low: float
    high: float
    consistent: float
    moved: float


@dataclass(frozen=True, slots=True)
class Results:
    """The result of one period. Intervals are for the population, around the unbiased estimates."""

    question: str
    kind: str  # "share" or "mean"
    period: int
    people: int
    lines: tuple[Line, ...]
    confidence: float
    simultaneous: bool
    fakes: Fraction
    local_epsilon: Decimal
    longitudinal_epsilon: Decimal
    shuffled: Shuffled
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """What `survey results --json` prints."""
        return {
            "question": self.question,
            "period": self.period,
            "people": self.people,
            "epsilon": plain(self.local_epsilon),
            "longitudinal_epsilon": plain(self.longitudinal_epsilon),
            "confidence": self.confidence,
            "simultaneous": self.simultaneous,
            "fakes": float(self.fakes),
            "estimates": [
                {
                    "label": each.label,
                    "unbiased": each.unbiased,
                    "low": each.low,
                    "high": each.high,
                    "consistent": each.consistent,
                    "moved_by_fakes": each.moved,
                }
                for each in self.lines
            ],
            "shuffled": {
                "epsilon": plain(self.shuffled.epsilon),
                "delta": plain(self.shuffled.delta),
                "specific": self.shuffled.specific,
                "assumptions": list(self.assumptions),
            },
        }

    def plot(self) -> "altair.LayerChart | altair.FacetChart":
        """Bars of the unbiased shares (a tick for a mean) with their intervals; a dot where the consistent one lies."""
        import altair

        values = [
            {"label": each.label, "unbiased": each.unbiased, "low": each.low, "high": each.high, "dot": each.consistent}
            for each in self.lines
        ]
        base = altair.Chart(altair.InlineData(values=values))
        down = altair.Y("label:N", sort=None, title=None, axis=altair.Axis(labelLimit=320))
        scale = altair.Scale(zero=self.kind == "share", nice=True)
        shape = base.mark_bar(color="#8aa0b8") if self.kind == "share" else base.mark_tick(color="#8aa0b8", thickness=3)
        middles = shape.encode(y=down, x=altair.X("unbiased:Q", title=self.kind, scale=scale))
        rules = base.mark_rule(color="#22303c", strokeWidth=2).encode(
            y=down, x=altair.X("low:Q", title=self.kind, scale=scale), x2="high:Q"
        )
        dots = base.mark_point(color="#b5533c", filled=True, size=40, opacity=1).encode(
            y=down, x=altair.X("dot:Q", title=self.kind, scale=scale)
        )
        together = ", all together" if self.simultaneous else ""
        caption = [
            f"{self.people:,} reports of local ε = {shown_epsilon(self.local_epsilon)}",
            f"{'bars' if self.kind == 'share' else 'tick'}: unbiased, with {100 * self.confidence:g} % intervals "
            f"for the population{together}; dots: consistent",
        ]
        title = altair.Title(self.question, subtitle=caption, anchor="start")
        return altair.layer(middles, rules, dots).properties(width=480, height=max(60, 26 * len(values)), title=title)


def results_of(
    manifest: Manifest,
    period: int,
    tally: Tally,
    *,
    confidence: Number = "0.95",
    simultaneous: bool = False,
    fakes: Number = "0.01",
    delta: Number = "1e-6",
) -> Results:
    """Everything that is shown of a period; nothing here is private, and nothing is spent."""
    share = probability_inside(fakes, "fakes")
    bound = shuffled(manifest.table, tally.people, delta)
    return Results(
        question=manifest.question,
        kind="mean" if isinstance(manifest.table, MeanRandomiser) else "share",
        period=period,
        people=tally.people,
        lines=_lines(manifest, tally, confidence, simultaneous, share),
        confidence=float(probability_inside(confidence, "confidence")),
        simultaneous=simultaneous,
        fakes=share,
        local_epsilon=manifest.table.epsilon,
        longitudinal_epsilon=manifest.price,
        shuffled=bound,
        assumptions=bound.assumptions if not manifest.period_days else (*bound.assumptions, ONE_PERIOD),
    )


def _lines(
    manifest: Manifest, tally: Tally, confidence: Number, simultaneous: bool, fakes: Fraction
) -> tuple[Line, ...]:
    match manifest.table:
        case MeanRandomiser() as table:
            found = table.estimate(tally, confidence)
            moved = found.moved_by(fakes) if tally.people > 1 else math.inf
            return (Line("mean", found.mean, found.low, found.high, found.consistent, moved),)
        case Questions() as table:
            answers = table.estimate(tally, confidence, simultaneous=simultaneous)
            columns = (answers.share, answers.low, answers.high, np.clip(answers.share, 0, 1))
            return _labelled(manifest, *columns, _moved(table, answers, fakes))
        case table:
            shares = table.estimate(tally, confidence, simultaneous=simultaneous)
            worst = shares.moved_by(fakes) if tally.people > 1 else np.full(table.k, math.inf)
            return _labelled(manifest, shares.frequency, shares.low, shares.high, shares.consistent, worst)


def _labelled(manifest: Manifest, *columns: FloatArray) -> tuple[Line, ...]:
    labels = manifest.domain.labels if isinstance(manifest.domain, Categories | YesNo) else ()
    return tuple(Line(label, *(float(each) for each in row)) for label, *row in zip(labels, *columns, strict=True))


def _moved(table: Questions, found: QuestionEstimate, share: Fraction) -> FloatArray:
    """The fakes may all speak of one question; where they could be all who do, they could move it anywhere."""
    slope, turned = float(2 * table.truth - 1), float(1 - table.truth)
    yes = np.rint((found.share * slope + turned) * found.answered)
    fakes = math.ceil(share * found.people)
    honest = np.maximum(found.answered - fakes, 1)
    low, high = ((each / honest - turned) / slope for each in (np.maximum(yes - fakes, 0), np.minimum(yes, honest)))
    moved = np.maximum(found.share - low, high - found.share)
    return np.where(found.answered > fakes, moved, math.inf)


def shown_epsilon(epsilon: Decimal) -> str:
    """Six digits, rounded up: what is shown is never less than what is true."""
    return plain(Context(prec=6, rounding=ROUND_CEILING).plus(epsilon).normalize())
