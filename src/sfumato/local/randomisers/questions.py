"""Many yes-or-no questions of the same people: all of them with a share of the budget each, or one with all of it."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import plain
from sfumato.kernel.grid import plain_array
from sfumato.kernel.parameters import Number, kind_of, positive_decimal, probability_inside, whole_number
from sfumato.kernel.samplers import uniform_below
from sfumato.local.mechanisms.coin_tables import UNITS, flip_units, greatest_coin, loss_of_ratio
from sfumato.local.mechanisms.report_forms import CELLS_AT_ONCE, BitRows, Codes, Counts, Reports, well_formed
from sfumato.local.mechanisms.table_limits import coin
from sfumato.local.randomisers.share_estimates import FloatArray, normal_quantile, wilson
from sfumato.local.randomisers.tally import Tally

MOST_QUESTIONS = 1 << 12
METHODS = ("split", "sample")


@dataclass(frozen=True, slots=True, eq=False)
class QuestionEstimate:
    """For each question, the share of yes in the population: unbiased, with an interval."""

    share: FloatArray
    low: FloatArray
    high: FloatArray
    answered: Counts  # how many reports speak of each question
    people: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Questions:
    """Yes-or-no randomised response to `count` questions with one keep coin.

    "split": a report answers every question; its loss is that of all the coins together. "sample": each person draws
    one question evenly, and answers it with the whole budget; the report says which one it was, which tells nothing.
    """

    method: str
    count: int
    keep: int

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidParameter("method", f"must be one of {', '.join(METHODS)}", "another")
        if whole_number(self.count, "count", 1) > MOST_QUESTIONS:
            raise InvalidParameter("count", f"must be at most {MOST_QUESTIONS}", "more")
        if 2 * coin(self.keep, "keep") <= UNITS:
            raise InvalidParameter("keep", "must be above one half", "one half, or less")

    def __repr__(self) -> str:
        return f"<{self.count} questions, {self.method}, epsilon {plain(self.epsilon)}>"

    @property
    def epsilon(self) -> Decimal:
        """The loss of one report: a fact of the coin, rounded up at the thirtieth digit."""
        return loss_of_ratio(_ratio(self.method, self.count, self.keep))

    @property
    def truth(self) -> Fraction:
        return Fraction(self.keep, UNITS)

    @property
    def form(self) -> BitRows | Codes:
        """All answers in a row of bits, or twice the question plus the answer."""
        return BitRows(self.count) if self.method == "split" else Codes(2 * self.count)

    def describe(self) -> dict[str, object]:
        return {"mechanism": "questions", "method": self.method, "count": self.count, "coins": {"keep": self.keep}}

    def randomise(self, answers: object) -> int | Reports:
        """Reports on answers of shape (people, questions), or of one person's row of answers."""
        array = plain_array(answers, "answers")
        if array.dtype.kind in "iu" and bool(((array == 0) | (array == 1)).all()):
            array = array.astype(np.bool_)
        if array.dtype.kind != "b" or array.ndim not in (1, 2) or array.shape[-1] != self.count:
            rule = f"must be yes or no (True or False, 1 or 0), {self.count} for each person"
            raise InvalidParameter("answers", rule, kind_of(answers))
        reports = self.draw(array.reshape(-1, self.count), SYSTEM)
        return self.form.one(reports) if array.ndim == 1 else reports

    def draw(self, answers: Reports, entropy: Entropy) -> Reports:
        form, step = self.form, max(1, CELLS_AT_ONCE // self.count)
        people = len(answers)
        reports: Reports = np.empty((people, form.bytes) if isinstance(form, BitRows) else people, form.dtype)
        for start in range(0, people, step):
            part = answers[start : start + step]
            if isinstance(form, BitRows):
                kept = flip_units(self.keep, part.size, entropy).reshape(part.shape)
                reports[start : start + step] = np.packbits(part == kept, axis=1, bitorder="little")
            else:
                asked = uniform_below(self.count, len(part), entropy)
                kept = flip_units(self.keep, len(part), entropy)
                reports[start : start + step] = 2 * asked + (part[np.arange(len(part)), asked] == kept)
        return reports

    def tally(self, reports: object) -> Tally:
        """What a collector keeps: of "split", the reported yes to each question; of "sample", each kind of report."""
        kept, form = well_formed(self.form, reports), self.form
        counts = form.count_ones(kept) if isinstance(form, BitRows) else np.bincount(kept, minlength=2 * self.count)
        return Tally(len(kept), counts)

    def estimate(self, reports: object, confidence: Number = "0.95", *, simultaneous: bool = False) -> QuestionEstimate:
        """The share of yes to each question, from reports or from a tally of them."""
        tally = reports if isinstance(reports, Tally) else self.tally(reports)
        if tally.counts.size != (self.count if self.method == "split" else 2 * self.count):
            raise InvalidParameter("tally", "must come from these questions", "one of another length")
        if self.method == "split":
            yes, answered = tally.counts, np.full(self.count, tally.people)
        else:
            yes, answered = tally.counts[1::2], tally.counts[::2] + tally.counts[1::2]
        if not answered.size or not answered.min():
            raise InvalidParameter("reports", "must hold a report on every question", "none on some")
        level = probability_inside(confidence, "confidence")
        quantile = normal_quantile((1 - level) / (self.count if simultaneous else 1))
        observed = yes / answered
        low, high = wilson(observed, answered, quantile)
        slope, turned = float(2 * self.truth - 1), float(1 - self.truth)
        share, low, high = ((each - turned) / slope for each in (observed, low, high))
        return QuestionEstimate(share, low, high, answered, tally.people, float(level))

    def variance_asked(self, share: float) -> float:
        """n times the variance of an estimate about the people who were asked; a drawn question adds who was drawn.

        For "sample" this is n times the variance given that n / count people answer it, drawn without regard to answer.
        """
        coins = float(self.truth * (1 - self.truth) / (2 * self.truth - 1) ** 2)
        return coins if self.method == "split" else self.count * coins + (self.count - 1) * share * (1 - share)

    def variance_population(self, share: float) -> float:
        """n times the variance about the population from which the people were drawn."""
        supporting = float(1 - self.truth) + share * float(2 * self.truth - 1)
        spread = supporting * (1 - supporting) / float(2 * self.truth - 1) ** 2
        return spread if self.method == "split" else self.count * spread


def questions(count: int, epsilon: Number, method: str = "sample") -> Questions:
    """Randomised response to so many yes-or-no questions, with the most telling coin that epsilon pays for."""
    whole_number(count, "count", 1)
    exact = positive_decimal(epsilon, "epsilon")
    if method not in METHODS:
        raise InvalidParameter("method", f"must be one of {', '.join(METHODS)}", "another")
    return Questions(method, count, greatest_coin(lambda keep: _ratio(method, count, keep), exact))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both ways of asking the same questions, side by side."""

    split: Questions
    sample: Questions
    people: int

    @property
    def better(self) -> Questions:
        return min((self.split, self.sample), key=lambda each: each.variance_population(0.5))

    def __str__(self) -> str:
        quantile = normal_quantile(Fraction(1, 20))
        lines = [
            f"{self.split.count} yes-or-no questions, {self.people:,} people: {self.better.method}",
            f"  {'method':<8}{'truth per answer':>18}{'n x variance asked':>20}{'population':>12}{'margin':>9}",
        ]
        for each in (self.split, self.sample):
            wide = each.variance_population(0.5)
            lines.append(
                f"  {each.method:<8}{float(each.truth):>18.4f}{each.variance_asked(0.5):>20.4g}{wide:>12.4g}"
                f"{quantile * (wide / self.people) ** 0.5:>9.4f}"
            )
        lines.append("At a share of one half; margins are 95 %, for the population.")
        return "\n".join(lines)

    __repr__ = __str__


def compare_questions(count: int, epsilon: Number, *, people: int = 10_000) -> Comparison:
    """Split the budget over all questions, or draw one question for each person: what either costs in accuracy."""
    whole_number(people, "people", 1)
    return Comparison(questions(count, epsilon, "split"), questions(count, epsilon, "sample"), people)


def rebuild_questions(description: object) -> Questions:
    """The questions' randomiser of a published description; whatever is not exactly one is refused."""
    match description:
        case {
            "mechanism": "questions",
            "method": str(method),
            "count": count,
            "coins": {"keep": keep, **rest},
            **more,
        } if not rest and not more:
            return Questions(method, count, keep)
    raise InvalidParameter("description", "must be the published coin of some questions", "something else")


def _ratio(method: str, count: int, keep: int) -> Fraction:
    """All answers may differ at once: the coins of a split report multiply."""
    return Fraction(keep, UNITS - keep) ** (count if method == "split" else 1)
