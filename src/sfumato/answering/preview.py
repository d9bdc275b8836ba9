"""What a question would cost and how precise its answer would be. It reads no row and costs nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

from sfumato.answering.certified_plans import with_shares
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.prices import assumed_rows, delta_of, price
from sfumato.answering.receipt import cost_of, population_cost
from sfumato.answering.suggestions import Asked, Suggestion, suggest
from sfumato.answers.answer import Cost, Explained, explain, with_warnings
from sfumato.answers.group_loss import in_words
from sfumato.answers.output_sensitivity import AsAsked, as_asked
from sfumato.answers.present import EVENLY, explained, margins_of, sentences
from sfumato.kernel.certify import certify
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.parameters import Number, probability_inside
from sfumato.query.bind import bind
from sfumato.query.frame import FrameQuery, read_question


@dataclass(frozen=True)
class Preview:
    """What a question would cost and how wide its answer's intervals would be.

    `cost`, `population_cost` and `cached` are those that the answer would have if it were asked now.
    """

    cost: Cost
    margins: dict[str, float | None]
    reasons: dict[str, str]
    fits: bool
    explained: tuple[Explained, ...]
    confidence: float
    sentences: tuple[str, ...]
    asked: tuple[AsAsked, ...]
    neighbours: Neighbours
    loss: PrivacyLoss
    population_cost: Cost
    cached: bool
    _suggest: Callable[[], tuple[Suggestion, ...]] = field(repr=False, compare=False)
    warnings: tuple[str, ...] = ()  # about comparisons whose result follows from the declarations alone

    @cached_property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Declarations by the owner that would make a margin smaller. Each is planned, so only when this is read."""
        return self._suggest()

    def explain(self, people: int = 1) -> str:
        """The text of the answer's explain(), and the declarations that would make a margin smaller."""
        said = (*self.sentences, *map(str, self.suggestions))
        loss = in_words(self.loss, self.neighbours, people)
        return with_warnings(self.warnings, explain(self.asked, self.explained, said, self.confidence, loss))


def preview(
    desk: Desk,
    question: str | FrameQuery,
    epsilon: Number | None = None,
    *,
    rho: Number | None = None,
    delta: Number | None = None,
    assume: Mapping[str, float] | None = None,
    confidence: Number = "0.95",
    analyst: str = DEFAULT_ANALYST,
) -> Preview:
    """Cost and margins, before spending."""
    query = bind(read_question(question), desk.dataset)
    level = probability_inside(confidence, "confidence")
    loss, share = price(query, epsilon, rho), delta_of(query, delta)
    planned = desk.plan(query, loss, share)
    certificate = certify(planned.plan)
    count = assumed_rows(assume)
    quote = desk.ledger.quote(desk.admit(analyst), certificate)
    if quote.shares is not None:  # asking would return a stored answer, whose noise is known
        certificate = certify(with_shares(planned.plan, quote.shares))
    margins, reasons = margins_of(query, planned, certificate, level, count)
    return Preview(
        cost_of(quote.taken), margins, reasons, quote.fits, explained(planned, certificate, level), float(level),
        (*sentences(query, planned, certificate, level), *((EVENLY,) if count is not None else ())),
        as_asked(query, planned, {} if count is None else dict.fromkeys(range(len(query.aggregates)), count)),
        planned.plan.unit.neighbours, certificate.loss, population_cost(quote.taken), quote.shares is not None,
        partial(suggest, Asked(question, loss, share, level, count), desk.dataset, desk.versions), query.cautions,
    )  # fmt: skip
