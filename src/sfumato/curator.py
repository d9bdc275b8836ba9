"""The calls of one answer, one under another; preview() stops early."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial, wraps
from typing import Concatenate, ParamSpec, TypeVar

from sfumato.answering.current_data import CurrentData
from sfumato.answering.diagnose import Bounds, Diagnosis, diagnose, find_bounds
from sfumato.answering.prices import assumed_rows, delta_of, margins_alone, price
from sfumato.answering.receipt import Given, as_stored, cost_of, population_cost, with_shares
from sfumato.answering.recorded_question import asked, question
from sfumato.answering.rehearse import as_rehearsed, made_up_rows, needed_by
from sfumato.answering.selection import Question, Selection
from sfumato.answering.suggestions import Asked, Suggestion, suggest
from sfumato.answering.upgrade import upgrade
from sfumato.answering.watch import Watch, begin_watch
from sfumato.answering.workload import Wanted, Workload, ask_workload, drawn_once, plan_workload
from sfumato.answers.answer import Answer, Cost, Explained, explain, with_warnings
from sfumato.answers.disclosure import Signer, statement
from sfumato.answers.group_loss import in_words
from sfumato.answers.output_sensitivity import AsAsked, as_asked
from sfumato.answers.present import EVENLY, Paid, asked_of, explained, margins_of, present, sentences
from sfumato.answers.released_values import Reading, three_digits_up
from sfumato.catalog.analysts import admitted
from sfumato.catalog.model import Dataset, with_tables
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.engine import Engine
from sfumato.errors import InvalidParameter, MissingBounds
from sfumato.ingest.load_report import LoadReport
from sfumato.kernel.certify import Certificate, certify
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.parameters import Number, privacy_amount, probability_inside
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import Released, release
from sfumato.kernel.row_sources import tables_of
from sfumato.ledger.ledger import AlreadyAnswered, Ledger, Limit
from sfumato.planning.planner import Planned, choose_plan
from sfumato.query.bind import bind
from sfumato.query.frame import Aggregation, Frame
from sfumato.query.parse import parse
from sfumato.query.query import Query

MARGIN_HINT = "Ask for a margin of COUNT or SUM, or find an epsilon with preview(..., assume={'n': ...})."
ANALYST = "analyst"
Given_to_it = ParamSpec("Given_to_it")
Told = TypeVar("Told")


def on_current_data(
    method: Callable[Concatenate["Curator", Given_to_it], Told],
) -> Callable[Concatenate["Curator", Given_to_it], Told]:
    """A method that reads the data as it is prepared when it is called."""

    @wraps(method)
    def asked(self: "Curator", /, *args: Given_to_it.args, **kwargs: Given_to_it.kwargs) -> Told:
        with self.asking():
            return method(self, *args, **kwargs)

    return asked


@dataclass(frozen=True)
class Preview:
    """What a question would cost and how wide its answer would be. It reads no row and costs nothing.

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
    warnings: tuple[str, ...] = ()  # of comparisons that the declarations decide

    @cached_property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Declarations of the owner's that would make a margin smaller. Each is planned, so only when they are read."""
        return self._suggest()

    def explain(self, people: int = 1) -> str:
        """The same words as the answer's; and which declaration would make a margin smaller."""
        said = (*self.sentences, *map(str, self.suggestions))
        loss = in_words(self.loss, self.neighbours, people)
        return with_warnings(self.warnings, explain(self.asked, self.explained, said, self.confidence, loss))


@dataclass(frozen=True)
class Spending:
    """A budget: what it is, what is spent, what is left."""

    limit: Cost
    spent: Cost
    remaining: Cost


class Curator:
    """Holds the data and answers questions about it. Only noisy answers leave, each after its charge is committed."""

    def __init__(
        self,
        dataset: Dataset,
        engine: Engine,
        ledger: Ledger,
        versions: Mapping[str, str],
        signer: Signer | None = None,
        *,
        load_report: LoadReport | None = None,
        shares_ledger: bool = False,
    ) -> None:
        self.dataset = dataset
        self.versions = versions
        self.engine = engine
        self._shares_ledger = shares_ledger
        self._closed = False
        self._current: CurrentData | None = None
        self._ledger = ledger
        self._signer = signer or Signer()
        self._load_report = load_report

    def notice(self, current: CurrentData) -> None:
        """From now on, answer each question on the data as it is prepared then."""
        self._current = current

    def read_from(self, dataset: Dataset, engine: Engine, versions: Mapping[str, str]) -> None:
        """Take newly prepared data in place of the old; no question is being answered."""
        old = self.engine
        self.dataset, self.engine, self.versions = dataset, engine, versions
        if isinstance(old, DuckDBEngine):
            old.close()

    def asking(self) -> AbstractContextManager[None]:
        """A question that is answered: meanwhile the data stays the same."""
        if self._closed:  # before anything is charged
            raise InvalidParameter("curator", "must be open", "one that was closed", "Open or protect the data again.")
        return nullcontext() if self._current is None else self._current.asking()

    @on_current_data
    def ask(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        delta: Number | None = None,
        margin: Mapping[str, float] | None = None,
        confidence: Number = "0.95",
        analyst: str = ANALYST,
    ) -> Answer:
        """Answer a question for its price; a question that was answered before, as well or better, is free."""
        tree = parse(sql)
        query = bind(tree, self.dataset)
        level = probability_inside(confidence, "confidence")
        wanted = margins_alone(query, margin, epsilon, rho)
        loss = price(query, epsilon, rho) if wanted is None else self.least(query, wanted, level)
        share = delta_of(query, delta)

        def said() -> str:
            return question("ask", asked(tree, query, wanted), confidence=level)

        return self._answer(query, loss, level, self.analyst(analyst), share, said)

    def _answer(  # noqa: PLR0917
        self,
        query: Query,
        loss: PureDP | ZCDP,
        confidence: Fraction,
        analyst: str,
        delta: Number | None,
        said: Callable[[], str],
    ) -> Answer:
        """`said` writes the question down for the ledger: only for a charge, since printing SQL takes time."""
        planned = self.planned(query, loss, delta)
        certificate = certify(planned.plan)
        stored = self._ledger.stored(certificate, analyst)
        if stored is None:
            try:
                released, given = self.charged(planned.plan, certificate, analyst, said())
                return self.presented(query, planned, released, confidence, given)
            except AlreadyAnswered:  # by another process of the same analyst, meanwhile: theirs is the answer
                stored = self._ledger.stored(certificate, analyst)
                if stored is None:
                    raise
        released = as_stored(planned.plan, stored)
        given = Given(analyst, stored.head, stored.taken, cached=True)
        return self.presented(query, planned, released, confidence, given)

    def charged(
        self,
        plan: BoundedPlan,
        certificate: Certificate,
        analyst: str,
        said: str,
        summary: Callable[[Released], Mapping[str, object]] | None = None,
    ) -> tuple[Released, Given]:
        """Check, charge, measure, add noise, store: in this order. The answer, and what the ledger says of it."""
        self.engine.check(plan)
        reservation, taken = self._ledger.charge(analyst, certificate, said)
        exact = self.engine.aggregate(plan)
        released = drawn_once(self._ledger, reservation, lambda: release(exact, reservation))
        summed_up = None if summary is None else summary(released)
        return released, Given(analyst, self._ledger.store(reservation, released, summed_up), taken, cached=False)

    def planned(self, query: Query, loss: PureDP | ZCDP, delta: Number | None = None) -> Planned:
        share = None if delta is None else privacy_amount(delta, "delta")
        return choose_plan(query, loss, self.dataset, self.versions, delta=share)

    def analyst(self, name: object) -> str:
        """The name that is charged; refused where the catalog lists analysts, and not this one."""
        return admitted(name, self.dataset.analysts)

    def presented(  # noqa: PLR0917
        self,
        query: Query,
        planned: Planned,
        released: Released,
        confidence: Fraction,
        given: Given,
        reading: Reading | None = None,
        loss: PrivacyLoss | None = None,
    ) -> Answer:
        """The answer to a question; `reading` and `loss` are those of all releases that are combined in it."""
        certificate = released.certificate
        reading, loss = reading or Reading.of(released), loss or certificate.loss
        asked = asked_of(query, planned, reading)
        said = statement(planned.plan, certificate, asked, released.entry_number, given.head)
        own = self._ledger.own_remaining(given.analyst)
        paid = Paid(
            confidence, released.entry_number, cost_of(given.taken), given.cached, given.head,
            Cost.of(self._ledger.remaining()), population_cost(given.taken), None if own is None else Cost.of(own),
            loss, asked, self._signer.sign(said),
        )  # fmt: skip
        return present(query, planned, certificate, reading, paid)

    @on_current_data
    def upgrade(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        confidence: Number = "0.95",
        analyst: str = ANALYST,
    ) -> Answer:
        """Improve what was answered before by paying only the difference to this epsilon (or rho) in all.

        All releases of this very question that the analyst has are combined, each weighed by the inverse of its
        variance.
        """
        tree = parse(sql)
        query = bind(tree, self.dataset)
        level, wanted = probability_inside(confidence, "confidence"), price(query, epsilon, rho)
        said = question("upgrade", asked(tree, query), confidence=level)
        return upgrade(self, query, wanted, level, self.analyst(analyst), said)

    @on_current_data
    def preview(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        delta: Number | None = None,
        assume: Mapping[str, float] | None = None,
        confidence: Number = "0.95",
        analyst: str = ANALYST,
    ) -> Preview:
        """Cost and margins, before spending."""
        query = bind(parse(sql), self.dataset)
        level = probability_inside(confidence, "confidence")
        loss, share = price(query, epsilon, rho), delta_of(query, delta)
        planned = self.planned(query, loss, share)
        certificate = certify(planned.plan)
        count = assumed_rows(assume)
        quote = self._ledger.quote(self.analyst(analyst), certificate)
        if quote.shares is not None:  # a stored answer would be given: its noise is known
            certificate = certify(with_shares(planned.plan, quote.shares))
        margins, reasons = margins_of(query, planned, certificate, level, count)
        return Preview(
            cost_of(quote.taken), margins, reasons, quote.fits, explained(planned, certificate, level), float(level),
            (*sentences(query, planned, certificate, level), *((EVENLY,) if count is not None else ())),
            as_asked(query, planned, {} if count is None else dict.fromkeys(range(len(query.aggregates)), count)),
            planned.plan.unit.neighbours, certificate.loss, population_cost(quote.taken), quote.shares is not None,
            partial(suggest, Asked(sql, loss, share, level, count), self.dataset, self.versions), query.cautions,
        )  # fmt: skip

    @on_current_data
    def select(self, table: str | None = None) -> Selection:
        """A table to ask about in Python; the only one, if none is named."""
        if table is None and len(self.dataset.tables) != 1:
            raise InvalidParameter("table", f"must be one of {', '.join(self.dataset.tables)}", "nothing")
        name = self.dataset.table(next(iter(self.dataset.tables)) if table is None else table).name
        return Selection(self, Frame(self.dataset, name))

    def where(self, condition: str) -> Selection:
        """Rows of the only table for which this condition, in SQL, is true."""
        return self.select().where(condition)

    def group_by(self, *keys: str) -> Selection:
        """The only table, in groups."""
        return self.select().group_by(*keys)

    def agg(self, **aggregates: Aggregation) -> Question:
        """Aggregates of the only table."""
        return self.select().agg(**aggregates)

    @on_current_data
    def rehearse(
        self, sql: str, epsilon: Number | None = None, *, rho: Number | None = None, confidence: Number = "0.95"
    ) -> Answer:
        """Try a question out on made-up rows: the shape of the answer, and its noise, for free. It reads no data."""
        query = bind(parse(sql), self.dataset)
        own = query.dp_options.epsilon if query.dp_options is not None else None
        given = any(each is not None for each in (epsilon, rho, own))
        loss = price(query, epsilon, rho) if given else PureDP(1)
        spendable = loss if isinstance(loss, ZCDP) else ApproxDP(loss.epsilon, self.dataset.budget.delta)
        books = Ledger.create(None, self.dataset.population, Limit(spendable))
        tables = {each.name: as_rehearsed(each) for each in needed_by(tables_of(query.source), self.dataset)}
        engine = DuckDBEngine.of_tables({name: (each, made_up_rows(each)) for name, each in tables.items()})
        stage = Curator(with_tables(self.dataset, {**self.dataset.tables, **tables}), engine, books, self.versions)
        with stage:
            level, delta = probability_inside(confidence, "confidence"), delta_of(query, None)
            return stage._answer(query, loss, level, ANALYST, delta, str)

    @on_current_data
    def plan(self, questions: Wanted, confidence: Number = "0.95") -> Workload:
        """The least total epsilon that gives every question its margin, and how it is split. It costs nothing."""
        return plan_workload(self, questions, confidence)

    @on_current_data
    def ask_all(
        self, questions: Workload | Wanted, confidence: Number = "0.95", *, analyst: str = ANALYST
    ) -> list[Answer]:
        """Ask all questions of a workload on one reservation: all are paid, or none."""
        workload = questions if isinstance(questions, Workload) else self.plan(questions, confidence)
        return ask_workload(self, workload, analyst)

    @on_current_data
    def watch(self, sql: str, *, above: int, epsilon: Number, questions: int = 100, analyst: str = ANALYST) -> Watch:
        """Watch for a count like this one to reach a threshold, over about so many questions, at the price of one."""
        return begin_watch(self, sql, above, epsilon, questions, analyst)

    @on_current_data
    def diagnose(self, sql: str, epsilon: Number = "0.01", *, analyst: str = ANALYST) -> Diagnosis:
        """The noisy share of rows that a question's filter drops, that stand at bounds, and of people bounded."""
        return diagnose(self, sql, epsilon, analyst)

    @on_current_data
    def find_bounds(
        self, column: str, epsilon: Number = "0.1", *, table: str | None = None, analyst: str = ANALYST
    ) -> Bounds:
        """Buy bounds for a column that was declared wide. Nothing is declared by it: that is the owner's step."""
        return find_bounds(self, column, epsilon, table, analyst)

    @property
    def budget(self) -> Spending:
        """The population's budget."""
        totals = self._ledger.totals()
        return Spending(Cost.of(totals.limit), Cost.of(totals.spent), Cost.of(totals.remaining))

    @property
    def load_report(self) -> LoadReport | None:
        """What loading did to the values: exact, for the owner only. None where this process read no source.

        It is not stored. Whoever holds this object is in the owner's process, which holds the data too; do not pass
        it on. `sfumato prepare --all` reads the sources of a folder again and shows it.
        """
        return self._load_report

    def ledger(self) -> Ledger:
        """The ledger, to list and to verify."""
        return self._ledger

    def close(self) -> None:
        """Let go of the ledger and the snapshot. A ledger that others share stays."""
        self._closed = True
        if not self._shares_ledger:
            self._ledger.close()
        if isinstance(self.engine, DuckDBEngine):
            self.engine.close()

    def __enter__(self) -> "Curator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def least(self, query: Query, wanted: Mapping[str, float], confidence: Fraction) -> PureDP:
        """The least epsilon, to three digits, at which every named column has the wanted margin in each cell."""

        def enough(epsilon: str) -> bool:
            planned = self.planned(query, PureDP(epsilon))
            try:
                certificate = certify(planned.plan)
            except InvalidParameter:
                return False
            margins, reasons = margins_of(query, planned, certificate, confidence, None)
            for name, most in wanted.items():
                if name not in margins:
                    raise InvalidParameter("margin", f"must name a column of {', '.join(margins)}", "another name")
                found = margins[name]
                if found is None:
                    raise MissingBounds("margin", f"{name}: {reasons[name]}", MARGIN_HINT)
                if not most > 0 or found > most:
                    return False
            return True

        low, high = 1e-9, 500.0
        if not enough(three_digits_up(high)):
            kind = "one that no epsilon up to 500 gives"
            raise InvalidParameter("margin", "must be reachable", kind, "Ask for a wider one.")
        for _ in range(60):
            middle = (low * high) ** 0.5
            low, high = (low, middle) if enough(three_digits_up(middle)) else (middle, high)
        return PureDP(three_digits_up(high))
