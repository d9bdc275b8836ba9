# ruff: noqa: PLC0415 - a chart is imported when it is drawn
"""The results of a survey: estimates with confidence intervals, the effect of fake reports, and the privacy loss."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.drawing.cards import make_card, make_note
from sfumato.drawing.pages import make_table
from sfumato.drawing.plot import Plot
from sfumato.drawing.text_tables import write_text_table
from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import write_plain
from sfumato.local.collect.shuffle import ShuffleBound, bound_shuffling
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.heavy_hitters import HeavyHitters
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.questions import QuestionEstimate, Questions
from sfumato.local.randomisers.share_estimates import FloatArray
from sfumato.local.randomisers.tally import Tally
from sfumato.local.survey.domains import Categories, Table, YesNo
from sfumato.local.survey.manifest import Manifest
from sfumato.local.survey.survey_words import format_epsilon
from sfumato.number_arguments import Number, read_probability

ONE_PERIOD = "This bound protects the report of one period. Over several periods, the longitudinal epsilon applies."


@dataclass(frozen=True, slots=True)
class Line:
    """One share, or the mean. `moved`: by how much fake reports can have moved the unbiased estimate."""

    label: str
    unbiased: float
    low: float
    high: float
    consistent: float
    moved: float


@dataclass(frozen=True, slots=True)
class Results:
    """The result of one period.

    The confidence intervals are for the population. They cover the randomisation and the sampling of the people;
    they do not cover people who do not answer, or fake reports.
    """

    question: str
    kind: str  # "share", "mean" or "word": the share of a word that was found
    period: int
    people: int
    lines: tuple[Line, ...]
    confidence: float
    simultaneous: bool
    fakes: Fraction
    local_epsilon: Decimal
    longitudinal_epsilon: Decimal
    local_delta: Decimal  # 0 for pure tables
    shuffle_bound: ShuffleBound
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The output of `survey results --json`."""
        return {
            "question": self.question,
            "period": self.period,
            "people": self.people,
            "epsilon": write_plain(self.local_epsilon),
            "longitudinal_epsilon": write_plain(self.longitudinal_epsilon),
            "delta": write_plain(self.local_delta),
            "confidence": self.confidence,
            "simultaneous": self.simultaneous,
            "fakes": float(self.fakes),
            "estimates": [
                {
                    "label": line.label,
                    "unbiased": line.unbiased,
                    "low": line.low,
                    "high": line.high,
                    "consistent": line.consistent,
                    "moved_by_fakes": line.moved,
                }
                for line in self.lines
            ],
            "shuffled": {
                "epsilon": write_plain(self.shuffle_bound.epsilon),
                "delta": write_plain(self.shuffle_bound.delta),
                "specific": self.shuffle_bound.specific,
                "assumptions": list(self.assumptions),
            },
        }

    def __repr__(self) -> str:
        table = write_text_table(self._list_headings(), self._list_rows(), right=[1, 2])
        return f"{self.question}\n{table}\n{self._describe()}"

    def _repr_html_(self) -> str:
        table = make_table(self._list_headings(), self._list_rows(), [1, 2])
        return make_card(self.question, table, make_note(self._describe()))

    def _list_headings(self) -> tuple[str, ...]:
        together = ", all together" if self.simultaneous else ""
        return "answer", "estimate", f"interval ({100 * self.confidence:.4g} %{together})"

    def _list_rows(self) -> list[list[str]]:
        def write(value: float) -> str:
            return f"{value:,.4g}" if self.kind == "mean" else f"{100 * value:.1f} %"

        return [[line.label, write(line.consistent), f"[{write(line.low)}, {write(line.high)}]"] for line in self.lines]

    def _describe(self) -> str:
        loss = f"ε = {format_epsilon(self.local_epsilon)} per report"
        return (
            f"{self.people:,} people in period {self.period}; {loss}. Intervals do not cover people who did not answer."
        )

    def plot(self) -> Plot:
        """Draw the unbiased estimates with their intervals, and dots for the consistent estimates."""
        from sfumato.local.collect.estimate_chart import Estimate, draw_estimates

        together = ", simultaneous" if self.simultaneous else ""
        caption = (
            f"{self.people:,} reports of local ε = {format_epsilon(self.local_epsilon)}\n"
            f"{'Tick' if self.kind == 'mean' else 'Bars'}: unbiased, with {100 * self.confidence:g} % confidence "
            f"intervals for the population{together}. Dots: consistent."
        )
        estimates = [Estimate(line.label, line.unbiased, line.low, line.high, line.consistent) for line in self.lines]
        return draw_estimates(estimates, self.question, caption, mean=self.kind == "mean")


def make_results(
    manifest: Manifest,
    period: int,
    tally: Tally,
    *,
    confidence: Number = "0.95",
    simultaneous: bool = False,
    fakes: Number = "0.01",
    delta: Number = "1e-6",
) -> Results:
    """Estimate the results of a period. This is post-processing of randomised reports: it costs no budget."""
    if isinstance(manifest.table, HeavyHitters):
        raise InvalidParameter(
            "manifest",
            "must be of a survey whose tally has the answers",
            "one of words",
            "Words are found in the reports: publish_results of sfumato.local.collect.published_results.",
        )
    share = read_probability(fakes, "fakes")
    lines = _list_estimates(
        manifest, manifest.table, tally, confidence=confidence, simultaneous=simultaneous, fakes=share
    )
    return combine_results(
        manifest,
        period,
        tally.people,
        lines,
        confidence=confidence,
        simultaneous=simultaneous,
        fakes=share,
        delta=delta,
    )


def combine_results(
    manifest: Manifest,
    period: int,
    people: int,
    lines: tuple[Line, ...],
    *,
    confidence: Number,
    simultaneous: bool,
    fakes: Fraction,
    delta: Number,
) -> Results:
    """Add the losses to the estimates."""
    bound = bound_shuffling(manifest.table, people, delta)
    return Results(
        question=manifest.question,
        kind=_name_kind(manifest.table),
        period=period,
        people=people,
        lines=lines,
        confidence=float(read_probability(confidence, "confidence")),
        simultaneous=simultaneous,
        fakes=fakes,
        local_epsilon=manifest.table.epsilon,
        longitudinal_epsilon=manifest.price,
        local_delta=manifest.price_delta,
        shuffle_bound=bound,
        assumptions=bound.assumptions if not manifest.period_days else (*bound.assumptions, ONE_PERIOD),
    )


def _list_estimates(
    manifest: Manifest,
    table: Randomiser | MeanRandomiser | Questions,
    tally: Tally,
    *,
    confidence: Number,
    simultaneous: bool,
    fakes: Fraction,
) -> tuple[Line, ...]:
    match table:
        case MeanRandomiser():
            found = table.estimate(tally, confidence)
            moved = found.worst_shift(fakes) if tally.people > 1 else math.inf
            return (Line("mean", found.mean, found.low, found.high, found.consistent, moved),)
        case Questions():
            answers = table.estimate(tally, confidence, simultaneous=simultaneous)
            columns = (answers.share, answers.low, answers.high, np.clip(answers.share, 0, 1))
            return _list_labels(manifest, *columns, _bound_fakes(table, answers, fakes))
        case Randomiser():
            shares = table.estimate(tally, confidence, simultaneous=simultaneous)
            worst = shares.worst_shift(fakes) if tally.people > 1 else np.full(table.k, math.inf)
            return _list_labels(manifest, shares.frequency, shares.low, shares.high, shares.consistent, worst)


def _name_kind(table: Table) -> str:
    match table:
        case MeanRandomiser():
            return "mean"
        case HeavyHitters():
            return "word"
        case _:
            return "share"


def _list_labels(manifest: Manifest, *columns: FloatArray) -> tuple[Line, ...]:
    labels = manifest.domain.labels if isinstance(manifest.domain, Categories | YesNo) else ()
    return tuple(Line(label, *(float(number) for number in row)) for label, *row in zip(labels, *columns, strict=True))


def _bound_fakes(table: Questions, found: QuestionEstimate, share: Fraction) -> FloatArray:
    """The worst effect of fake reports: all of them can be about one question. If no report is honest: unbounded."""
    slope, turned = float(2 * table.truth - 1), float(1 - table.truth)
    yes = np.rint((found.share * slope + turned) * found.answered)
    fakes = math.ceil(share * found.people)
    honest = np.maximum(found.answered - fakes, 1)
    extremes = (np.maximum(yes - fakes, 0), np.minimum(yes, honest))
    low, high = ((count / honest - turned) / slope for count in extremes)
    moved = np.maximum(found.share - low, high - found.share)
    return np.where(found.answered > fakes, moved, math.inf)
