"""What a question would cost and how precise its answer would be. It reads no row and costs nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from sfumato.answering.ask_together import plan_together
from sfumato.answering.certified_plans import replace_shares
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.least_epsilon import find_least_epsilon
from sfumato.answering.plan_digests import certify_and_name
from sfumato.answering.preview_view import write_preview, write_preview_html
from sfumato.answering.prices import choose_delta, choose_loss, read_assumed_rows, read_margins
from sfumato.answering.receipt import compute_cost, compute_population_cost
from sfumato.answering.shown_margins import find_shown_margins
from sfumato.answering.suggestions import Asked, Suggestion, suggest
from sfumato.answers.answer import Cost
from sfumato.answers.column_margins import EVENLY
from sfumato.answers.explanation import join_explanation, prepend_warnings, write_sentences
from sfumato.answers.finished_answer import describe_finish
from sfumato.answers.group_loss import describe_loss
from sfumato.answers.measurement_summary import MeasurementSummary, summarise_measurements
from sfumato.answers.output_sensitivity import ColumnSensitivity, find_sensitivities
from sfumato.answers.proofs import PROOFS, link_proofs
from sfumato.catalog.dataset import Dataset
from sfumato.kernel.certify import Certificate
from sfumato.kernel.exact import write_plain
from sfumato.kernel.losses import ZCDP, PrivacyLoss, PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.loss_sums import split_loss
from sfumato.ledger.spending import Spending
from sfumato.number_arguments import Number, read_probability
from sfumato.planning.planner import Planned
from sfumato.query.bound_question import bind_question
from sfumato.query.contribution_limits import limit_contributions
from sfumato.query.frame import FrameQuery
from sfumato.query.interval_share import add_quantile_intervals
from sfumato.query.query import Query


@dataclass(frozen=True, slots=True, eq=False)
class PreviewDetails:
    """What a preview computes its words from, when they are read. It refers to declarations and plans, not to data."""

    question: str | FrameQuery
    query: Query
    planned: Planned
    certificate: Certificate
    loss: PureDP | ZCDP
    delta: Number | None
    confidence: Fraction
    count: float | None  # of rows, as assumed
    dataset: Dataset
    versions: Mapping[str, str]
    limits: tuple[int | None, int | None] = (None, None)  # max_rows and max_groups, as they were given
    beside: tuple[tuple[Query, Planned, Certificate], ...] = ()  # the other queries of a question of several


@dataclass(frozen=True)
class Preview:
    """What a question would cost and how wide its answer's intervals would be.

    `cost`, `population_cost` and `cached` are those that the answer would have if it were asked now.
    """

    cost: Cost
    margins: dict[str, float | None]
    reasons: dict[str, str]
    fits: bool
    confidence: float
    neighbours: Neighbours
    loss: PrivacyLoss
    population_cost: Cost
    cached: bool
    warnings: tuple[str, ...]  # about comparisons whose result follows from the declarations alone
    questions_left_by_delta: int | None  # such questions that the remaining delta pays for; None: they take no delta
    _details: PreviewDetails = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return write_preview(self)

    def _repr_html_(self) -> str:
        return write_preview_html(self)

    @cached_property
    def measurements(self) -> tuple[MeasurementSummary, ...]:
        """What would be measured, for explain()."""
        details = self._details
        planned = [(details.planned, details.certificate), *((plan, made) for _, plan, made in details.beside)]
        return tuple(
            summary for plan, made in planned for summary in summarise_measurements(plan, made, details.confidence)
        )

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What would hold for the whole answer, for explain()."""
        details = self._details
        asked = [(details.query, details.planned, details.certificate), *details.beside]
        said = tuple(
            dict.fromkeys(sentence for part in asked for sentence in write_sentences(*part, details.confidence))
        )
        if details.query.finish is not None:
            said = (describe_finish(len(asked)), *said)
        if self.delta_note:
            said = (*said, self.delta_note)
        return said if details.count is None else (*said, EVENLY)

    @property
    def delta_note(self) -> str:
        """What the question takes of the remaining delta, in words; nothing if it takes none."""
        if self.questions_left_by_delta is None:
            return ""
        one = self.questions_left_by_delta == 1
        such = "1 such question" if one else f"{self.questions_left_by_delta:,} such questions"
        return f"Undeclared keys take δ = {write_plain(self.cost.delta)}: the remaining δ is enough for {such}."

    @cached_property
    def sensitivities(self) -> tuple[ColumnSensitivity, ...]:
        """What one person can change in each column."""
        query, count = self._details.query, self._details.count
        counts = {} if count is None else dict.fromkeys(range(len(query.aggregates)), count)
        return find_sensitivities(query, self._details.planned, counts)

    @cached_property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Declarations by the owner that would make a margin smaller. The question is planned under each of them."""
        details = self._details
        if details.beside:
            return ()
        terms = (details.question, details.loss, details.delta, details.confidence, details.count)
        asked = Asked(*terms, *details.limits)
        return suggest(asked, details.dataset, details.versions)

    def explain(self, people: int = 1) -> str:
        """The text of the answer's explain(), and the declarations that would make a margin smaller."""
        said = (*self.sentences, *map(str, self.suggestions))
        loss = describe_loss(self.loss, self.neighbours, people)
        return prepend_warnings(
            self.warnings, join_explanation(self.sensitivities, self.measurements, said, self.confidence, loss)
        )

    def explain_html(self, people: int = 1, proofs: str = PROOFS) -> str:
        """The text of explain() as a piece of HTML, with a link to each proof in the folder or address `proofs`."""
        return link_proofs(self.explain(people), proofs)


def preview(
    desk: Desk,
    question: str | FrameQuery,
    epsilon: Number | None = None,
    *,
    rho: Number | None = None,
    delta: Number | None = None,
    margin: Mapping[str, float] | None = None,
    assume: Mapping[str, float] | None = None,
    confidence: Number = "0.95",
    analyst: str = DEFAULT_ANALYST,
    max_rows: int | None = None,
    max_groups: int | None = None,
    interval_share: Number | None = None,
) -> Preview:
    """Cost and margins, before spending. With `margin`, of the smallest epsilon that gives it, as `ask` takes it."""
    bound = bind_question(question, desk.dataset).query
    query = limit_contributions(bound, max_rows, max_groups, desk.dataset)
    level = read_probability(confidence, "confidence")
    query = add_quantile_intervals(query, interval_share, level)
    count, wanted = read_assumed_rows(assume), read_margins(query, margin, epsilon, rho)
    loss: PureDP | ZCDP = (
        choose_loss(query, epsilon, rho) if wanted is None else find_least_epsilon(desk, query, wanted, level, count)
    )
    share = choose_delta(query, delta)
    admitted = desk.admit(analyst)
    if query.beside:
        asked, together = plan_together(desk, query, loss, level, share)
        quote, whole = desk.ledger.quote(admitted, together.certificate), together.certificate.loss
        parts = [(one.query, one.planned, made) for one, made in zip(asked, together.certificates, strict=True)]
    else:
        planned = desk.plan(query, loss, share)
        certificate = certify_and_name(planned.plan)
        quote = desk.ledger.quote(admitted, certificate)
        if quote.shares is not None:  # asking would return a stored answer, whose noise is known
            certificate = certify_and_name(replace_shares(planned.plan, quote.shares))
        parts, whole = [(query, planned, certificate)], certificate.loss
    _, planned, certificate = parts[0]
    margins, reasons = find_shown_margins(query, parts, level, count)
    details = PreviewDetails(
        question, query, planned, certificate, loss, share, level, count, desk.dataset, desk.versions,
        (max_rows, max_groups), tuple(parts[1:]),
    )  # fmt: skip
    return Preview(
        compute_cost(quote.taken), margins, reasons, quote.fits, float(level), planned.plan.unit.neighbours,
        whole, compute_population_cost(quote.taken), quote.shares is not None, query.cautions,
        _count_questions_left(desk.ledger, admitted, quote.taken), details,
    )  # fmt: skip


def _count_questions_left(ledger: Ledger, analyst: str, taken: Spending) -> int | None:
    """How many questions of this delta still fit, under the budget and the analyst's own limit."""
    counted = []
    for loss, name in ((taken.population, None), (taken.own, analyst)):
        delta = Fraction(0) if loss is None else split_loss(loss)[1]
        if delta:
            counted.append(int(split_loss(ledger.totals(name).remaining)[1] // delta))
    return min(counted, default=None)
