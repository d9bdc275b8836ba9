"""The object that users work with. Every method passes its question to a function in answering/."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from sfumato.answering.ask import ask
from sfumato.answering.budget_view import Spending
from sfumato.answering.current_data import CurrentData
from sfumato.answering.declared_view import DeclaredColumns, DeclaredTables
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.diagnose import Diagnosis, diagnose
from sfumato.answering.find_bounds import Bounds, find_bounds
from sfumato.answering.find_cap import Cap, CapPreview, find_cap, preview_cap
from sfumato.answering.preview import Preview, preview
from sfumato.answering.rehearse import rehearse
from sfumato.answering.selection import DeskAsker, Question, Selection, begin_selection
from sfumato.answering.statistical_oracle import StatisticalOracle, begin_oracle
from sfumato.answering.upgrade import upgrade
from sfumato.answering.watch import Watch, begin_watch
from sfumato.answering.workload import Wanted, Workload, ask_workload, plan_workload
from sfumato.answers.answer import Answer, Cost
from sfumato.answers.disclosure import Signer
from sfumato.catalog.dataset import Dataset
from sfumato.drawing.cards import make_card, make_note
from sfumato.engines.engine import Engine
from sfumato.errors import InvalidParameter
from sfumato.ingest.load_report import LoadReport
from sfumato.ledger.ledger import Ledger
from sfumato.number_arguments import Number
from sfumato.query.frame import Aggregation

CLOSED = ("must be open", "one that was closed", "Open or protect the data again.")


class Curator:
    """Holds the data and answers questions about it. Only noisy answers leave, after their charge is committed."""

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
        self.desk = Desk(dataset, engine, ledger, versions, signer or Signer())
        self._shares_ledger = shares_ledger
        self._closed = False
        self._current: CurrentData | None = None
        self._load_report = load_report

    def follow(self, current: CurrentData) -> None:
        """From now on, answer every question on the data as it is prepared when the question is asked."""
        self._current = current

    def read_from(self, dataset: Dataset, engine: Engine, versions: Mapping[str, str]) -> None:
        """Replace the data by newly prepared data. The caller makes sure that no question is being answered."""
        old = self.desk.engine
        self.desk = replace(self.desk, dataset=dataset, engine=engine, versions=versions)
        old.close()

    def keep_report(self, report: LoadReport | None) -> None:
        """Keep the owner's report of the data that is answered from now on."""
        self._load_report = report

    @contextmanager
    def at_desk(self) -> Iterator[Desk]:
        """The desk of one question. The data stays the same until the question is answered."""
        if self._closed:  # before anything is charged
            raise InvalidParameter("curator", *CLOSED)
        with nullcontext() if self._current is None else self._current.asking():
            yield self.desk

    @property
    def dataset(self) -> Dataset:
        """What the owner declared."""
        return self.desk.dataset

    @property
    def tables(self) -> DeclaredTables:
        """The tables that questions can name, with their privacy units."""
        return DeclaredTables(self.dataset)

    @property
    def columns(self) -> DeclaredColumns:
        """The columns that questions can name, with their types and bounds."""
        return self.tables.columns

    def __repr__(self) -> str:
        left = "closed" if self._closed else f"{self.budget.remaining.describe_left()} left of {self.budget.limit}"
        return f"<Curator of {self.dataset.name}: {', '.join(self.tables)}; {left}>"

    def _repr_html_(self) -> str:
        budget = make_note("It is closed.") if self._closed else self.budget.make_html()
        named, people = self.dataset.name, self.dataset.population
        title = named if people == named else f"{named}, about the population {people}"
        return make_card(title, budget, self.tables.make_html())

    @property
    def versions(self) -> Mapping[str, str]:
        """The version of the data of each table."""
        return self.desk.versions

    @property
    def engine(self) -> Engine:
        """The engine that holds the data. It is in the owner's process only; do not pass it on."""
        return self.desk.engine

    def ask(
        self,
        sql: str,
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
    ) -> Answer:
        """Answer a question for its price. If it was answered before, as precisely or better, it is free.

        `margin` takes the smallest epsilon that gives it. A margin of AVG depends on the number of rows in a group:
        `assume={"n": 500}` says how many you expect. The answer's interval is computed from the released count.
        `max_rows` bounds the rows of one person once more: after the joins of the question, and before its WHERE.
        `max_groups` bounds the groups in which one person counts. Both only lower the catalog's bounds.
        `interval_share` is the part of a quantile's cost that pays for an interval in value, for example 0.5. Without
        it a quantile is more precise, and its margin is a number of rows only.
        """
        with self.at_desk() as desk:
            return ask(
                desk, sql, epsilon, rho=rho, delta=delta, margin=margin, assume=assume, confidence=confidence,
                analyst=analyst, max_rows=max_rows, max_groups=max_groups, interval_share=interval_share,
            )  # fmt: skip

    def preview(
        self,
        sql: str,
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
        """Cost and margins, before spending. It reads no data and costs nothing.

        With `margin`, it shows the smallest epsilon that gives this margin, which is what `ask(margin=...)` takes.
        """
        with self.at_desk() as desk:
            return preview(
                desk, sql, epsilon, rho=rho, delta=delta, margin=margin, assume=assume, confidence=confidence,
                analyst=analyst, max_rows=max_rows, max_groups=max_groups, interval_share=interval_share,
            )  # fmt: skip

    def upgrade(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        confidence: Number = "0.95",
        analyst: str = DEFAULT_ANALYST,
    ) -> Answer:
        """Improve an earlier answer by paying only the difference to this epsilon (or rho) in all.

        All releases of this question that the analyst has are combined, each weighted by the inverse of its variance.
        """
        with self.at_desk() as desk:
            return upgrade(desk, sql, epsilon, rho=rho, confidence=confidence, analyst=analyst)

    def rehearse(
        self, sql: str, epsilon: Number | None = None, *, rho: Number | None = None, confidence: Number = "0.95"
    ) -> Answer:
        """Try a question on made-up rows: it shows the form of the answer and its noise. It reads no data, for free."""
        with self.at_desk() as desk:
            return rehearse(desk, sql, epsilon, rho=rho, confidence=confidence)

    def plan(
        self,
        questions: Wanted,
        confidence: Number = "0.95",
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
    ) -> Workload:
        """The smallest total loss that gives every question its margin, and how it is split. It costs nothing.

        With epsilon or rho, the questions are SQL texts without margins, and share this loss. Marginals (counts or sums
        of the same rows by different keys) are planned together, where that is better.
        """
        with self.at_desk() as desk:
            return plan_workload(desk, questions, confidence, epsilon, rho)

    def ask_all(
        self,
        questions: Workload | Wanted,
        confidence: Number = "0.95",
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        analyst: str = DEFAULT_ANALYST,
    ) -> list[Answer]:
        """Ask all questions of a workload on one charge: all are paid, or none. See `plan`."""
        with self.at_desk() as desk:
            if not isinstance(questions, Workload):
                questions = plan_workload(desk, questions, confidence, epsilon, rho)
            elif epsilon is not None or rho is not None:
                raise InvalidParameter("epsilon", "must not be given for a planned workload", "both", "Plan it again.")
            return ask_workload(desk, questions, analyst)

    def watch(
        self, sql: str, *, above: int, epsilon: Number, questions: int = 100, analyst: str = DEFAULT_ANALYST
    ) -> Watch:
        """Watch whether a count like this one reaches a threshold, over about so many questions, for one price."""
        return begin_watch(self.at_desk, sql, above, epsilon, questions, analyst)

    def statistical_queries(
        self,
        k: int,
        epsilon: Number,
        beta: Number = "0.05",
        *,
        table: str | None = None,
        psi_class: Sequence[str] | None = None,
        class_size: int | None = None,
        analyst: str = DEFAULT_ANALYST,
    ) -> StatisticalOracle:
        """An oracle for K averages of functions of a row, for one epsilon in all. The first query charges it.

        `psi_class` lists the functions that may be asked; `class_size` is the size of a class that you declare
        without listing it. See `StatisticalOracle.tolerance`.
        """
        return begin_oracle(self.at_desk, k, epsilon, beta, table, psi_class, class_size, analyst)

    def diagnose(self, sql: str, epsilon: Number = "0.01", *, analyst: str = DEFAULT_ANALYST) -> Diagnosis:
        """Noisy shares: rows that the filter drops, rows at a bound, and people with more rows than their bound."""
        with self.at_desk() as desk:
            return diagnose(desk, sql, epsilon, analyst)

    def find_bounds(
        self, column: str, epsilon: Number = "0.1", *, table: str | None = None, analyst: str = DEFAULT_ANALYST
    ) -> Bounds:
        """Buy bounds for a column whose declared bounds are wide. The owner still has to declare them."""
        with self.at_desk() as desk:
            return find_bounds(desk, column, epsilon, table, analyst)

    def find_cap(self, table: str | None = None, epsilon: Number = "0.1", *, analyst: str = DEFAULT_ANALYST) -> Cap:
        """Buy a contribution bound (max_rows_per_unit) for a table. The owner still has to declare it."""
        with self.at_desk() as desk:
            return find_cap(desk, table, epsilon, analyst)

    def preview_cap(self, table: str | None = None, epsilon: Number = "0.1") -> CapPreview:
        """What `find_cap` would cost, and how many people may be above the bound that it finds. Nothing is spent."""
        return preview_cap(self.dataset, table, epsilon)

    def select(self, table: str | None = None) -> Selection[Preview]:
        """A table to ask about in Python. Without a name: the only table."""
        with self.at_desk() as desk:
            return begin_selection(DeskAsker(self.at_desk), desk.dataset, table)

    def where(self, condition: str) -> Selection[Preview]:
        """The rows of the only table for which this SQL condition is true."""
        return self.select().where(condition)

    def group_by(self, *keys: str) -> Selection[Preview]:
        """The only table, in groups."""
        return self.select().group_by(*keys)

    def agg(self, **aggregates: Aggregation) -> Question[Preview]:
        """Aggregates of the only table."""
        return self.select().agg(**aggregates)

    @property
    def budget(self) -> Spending:
        """The population's budget."""
        if self._closed and not self._shares_ledger:
            raise InvalidParameter("curator", *CLOSED)
        totals = self.desk.ledger.totals()
        return Spending(Cost.from_loss(totals.limit), Cost.from_loss(totals.spent), Cost.from_loss(totals.remaining))

    @property
    def load_report(self) -> LoadReport | None:
        """What loading did to the values: exact, for the owner only. None if this process read no source.

        It is not stored. Whoever holds this object is in the owner's process, which holds the data too; do not pass
        it on. `sfumato prepare --all` reads the sources of a folder again and shows it.
        """
        return self._load_report

    def ledger(self) -> Ledger:
        """The ledger, to list and to verify."""
        return self.desk.ledger

    def close(self) -> None:
        """Close the ledger and the snapshot. A ledger that other curators share stays open."""
        self._closed = True
        if not self._shares_ledger:
            self.desk.ledger.close()
        self.desk.engine.close()

    def __enter__(self) -> "Curator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
