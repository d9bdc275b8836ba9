"""Several yes-or-no questions for the same people: split the budget over all of them, or spend it on one at random."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.exact import write_plain
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss
from sfumato.local.mechanisms.question_coins import answer_all, answer_one, compute_questions_ratio
from sfumato.local.mechanisms.table_limits import check_coin
from sfumato.local.randomisers.coin_search import find_greatest_coin
from sfumato.local.randomisers.report_forms import BitRows, Codes, Counts, Reports, check_reports, draw_in_blocks
from sfumato.local.randomisers.share_estimates import FloatArray, compute_normal_quantile, compute_wilson_interval
from sfumato.local.randomisers.tally import Tally
from sfumato.number_arguments import Number, read_positive_decimal, read_probability, read_whole_number
from sfumato.number_arrays import plain_array

MOST_QUESTIONS = 1 << 12
METHODS = ("split", "sample")


@dataclass(frozen=True, slots=True, eq=False)
class QuestionEstimate:
    """For each question, an unbiased estimate of the share of yes in the population, with a confidence interval.

    The intervals cover the randomisation and the sampling of the people, not people who do not answer or fake reports.
    """

    share: FloatArray
    low: FloatArray
    high: FloatArray
    answered: Counts  # the number of reports on each question
    people: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Questions:
    """Yes-or-no randomised response to `count` questions with one keep coin.

    "split": a report answers every question, and the losses add up. "sample": each person draws one question uniformly
    and spends the whole budget on it; the report names the question, which does not depend on any answer.
    """

    method: str
    count: int
    keep: int

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidParameter("method", f"must be one of {', '.join(METHODS)}", "another")
        if read_whole_number(self.count, "count", 1) > MOST_QUESTIONS:
            raise InvalidParameter("count", f"must be at most {MOST_QUESTIONS}", "more")
        if 2 * check_coin(self.keep, "keep") <= UNITS:
            raise InvalidParameter("keep", "must be above one half", "one half, or less")

    def __repr__(self) -> str:
        return f"<{self.count} questions, {self.method}, epsilon {write_plain(self.epsilon)}>"

    @property
    def epsilon(self) -> Decimal:
        """The privacy loss of one report, computed from the coin and rounded up at the thirtieth digit."""
        return bound_ratio_loss(compute_questions_ratio(_count_answered(self.method, self.count), self.keep))

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
        """Randomise answers of shape (people, questions), or one person's row of answers."""
        array = plain_array(answers, "answers")
        if array.dtype.kind in "iu" and bool(((array == 0) | (array == 1)).all()):
            array = array.astype(np.bool_)
        if array.dtype.kind != "b" or array.ndim not in (1, 2) or array.shape[-1] != self.count:
            rule = f"must be yes or no (True or False, 1 or 0), {self.count} for each person"
            raise InvalidParameter("answers", rule, describe_kind(answers))
        reports = self.draw(array.reshape(-1, self.count), SYSTEM)
        return self.form.take_single(reports) if array.ndim == 1 else reports

    def draw(self, answers: Reports, entropy: Entropy) -> Reports:
        """Draw the reports of people, one row of answers each."""
        draw = answer_all if self.method == "split" else answer_one
        return draw_in_blocks(lambda part, source: draw(part, self.keep, source), answers, self.form, entropy)

    def tally(self, reports: object) -> Tally:
        """Count well-formed reports: the yes to each question ("split"), or each value of a report ("sample")."""
        checked, form = check_reports(self.form, reports), self.form
        counts = form.count_ones(checked) if isinstance(form, BitRows) else np.bincount(checked, minlength=form.count)
        return Tally(len(checked), counts)

    def estimate(self, reports: object, confidence: Number = "0.95", *, simultaneous: bool = False) -> QuestionEstimate:
        """Estimate the share of yes to each question, from reports or from a tally of them."""
        tally = reports if isinstance(reports, Tally) else self.tally(reports)
        if tally.counts.size != (self.count if self.method == "split" else 2 * self.count):
            raise InvalidParameter("tally", "must come from these questions", "one of another length")
        if self.method == "split":
            yes, answered = tally.counts, np.full(self.count, tally.people)
        else:
            yes, answered = tally.counts[1::2], tally.counts[::2] + tally.counts[1::2]
        if not answered.size or not answered.min():
            raise InvalidParameter("reports", "must hold a report on every question", "none on some")
        level = read_probability(confidence, "confidence")
        quantile = compute_normal_quantile((1 - level) / (self.count if simultaneous else 1))
        observed = yes / answered
        low, high = compute_wilson_interval(observed, answered, quantile)
        slope, turned = float(2 * self.truth - 1), float(1 - self.truth)
        share, low, high = ((rate - turned) / slope for rate in (observed, low, high))
        return QuestionEstimate(share, low, high, answered, tally.people, float(level))

    def variance_asked(self, share: float) -> float:
        """n times the variance of an estimate for the people who were asked.

        For "sample", n / count randomly drawn people answer the question, and that draw adds to the variance.
        """
        coins = float(self.truth * (1 - self.truth) / (2 * self.truth - 1) ** 2)
        return coins if self.method == "split" else self.count * coins + (self.count - 1) * share * (1 - share)

    def variance_population(self, share: float) -> float:
        """n times the variance of an estimate for the population from which the people were drawn."""
        supporting = float(1 - self.truth) + share * float(2 * self.truth - 1)
        spread = supporting * (1 - supporting) / float(2 * self.truth - 1) ** 2
        return spread if self.method == "split" else self.count * spread


def questions(count: int, epsilon: Number, method: str = "sample") -> Questions:
    """Randomised response to so many yes-or-no questions, with the most informative coin that costs at most epsilon."""
    read_whole_number(count, "count", 1)
    exact = read_positive_decimal(epsilon, "epsilon")
    if method not in METHODS:
        raise InvalidParameter("method", f"must be one of {', '.join(METHODS)}", "another")
    answered = _count_answered(method, count)
    return Questions(method, count, find_greatest_coin(lambda keep: compute_questions_ratio(answered, keep), exact))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both methods for the same questions, side by side."""

    split: Questions
    sample: Questions
    people: int

    @property
    def better(self) -> Questions:
        return min((self.split, self.sample), key=lambda way: way.variance_population(0.5))

    def __str__(self) -> str:
        quantile = compute_normal_quantile(Fraction(1, 20))
        lines = [
            f"{self.split.count} yes-or-no questions, {self.people:,} people. Better method: {self.better.method}",
            f"  {'method':<8}{'P(truth)':>18}{'n x variance, asked':>20}{'population':>12}{'margin':>9}",
        ]
        for way in (self.split, self.sample):
            wide = way.variance_population(0.5)
            lines.append(
                f"  {way.method:<8}{float(way.truth):>18.4f}{way.variance_asked(0.5):>20.4g}{wide:>12.4g}"
                f"{quantile * (wide / self.people) ** 0.5:>9.4f}"
            )
        lines.append("For a true share of 50 %. Margin: half-width of the 95 % confidence interval for the population.")
        lines.append("It covers the randomisation and the sampling of the people.")
        return "\n".join(lines)

    __repr__ = __str__


def compare_questions(count: int, epsilon: Number, *, people: int = 10_000) -> Comparison:
    """Compare the accuracy of splitting the budget over all questions, and of one random question for each person."""
    read_whole_number(people, "people", 1)
    return Comparison(questions(count, epsilon, "split"), questions(count, epsilon, "sample"), people)


def rebuild_questions(description: object) -> Questions:
    """The randomiser of a published description. A document that is not exactly such a description is refused."""
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


def _count_answered(method: str, count: int) -> int:
    """The number of questions that one report answers."""
    return count if method == "split" else 1
