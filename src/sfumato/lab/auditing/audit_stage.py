"""What an audit of a question needs: the declared tables, made-up public rows, a price, an engine, and hard pairs."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import pyarrow

from sfumato.answering.ask import ask
from sfumato.answering.certified_plans import CertifiedPlans, certify_plan
from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.answering.made_up_rows import find_needed_tables, make_rows
from sfumato.answering.prices import choose_delta, choose_loss
from sfumato.answers.answer import Answer
from sfumato.catalog.dataset import Dataset, Table, replace_tables
from sfumato.curator import Curator
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import InvalidParameter, SfumatoError, describe_kind
from sfumato.ingest.source_files import is_postgres
from sfumato.kernel.losses import ZCDP, ApproxDP
from sfumato.kernel.mechanisms import Noise
from sfumato.kernel.neighbours import PrivacyUnit
from sfumato.lab.auditing.pair_maker import PUBLIC_NULLS, PUBLIC_ROWS
from sfumato.lab.auditing.throwaway_desk import Data, Load, PinnedRows, Wrap, open_throwaway
from sfumato.number_arguments import Number
from sfumato.planning.shares import split_delta, split_evenly
from sfumato.query.bind import bind
from sfumato.query.contribution_limits import limit_contributions
from sfumato.query.interval_share import add_quantile_intervals
from sfumato.query.parse import parse
from sfumato.query.query import Query
from sfumato.query.source_outline import outline_source

ENGINES = ("duckdb", "reference")
CONFIDENCE = Fraction(95, 100)  # of the intervals of an answer, if nobody asks for another one

DatasetMaker = Dataset | Curator | Callable[[], Dataset | Curator]


@dataclass(frozen=True, slots=True)
class Stage:
    """A question on a schema whose public tables are made up, and what its pairs need."""

    dataset: Dataset
    tables: tuple[Table, ...]
    public: "dict[str, pyarrow.Table]"
    unit: PrivacyUnit
    query: Query
    sql: str


@dataclass(frozen=True, slots=True)
class Setting:
    """What a question may spend, and the engine that runs it, perhaps with something put around it.

    Without epsilon and rho, epsilon is 1 unless the question states its own.
    """

    epsilon: Number | None = None
    rho: Number | None = None
    delta: Number | None = None
    engine: str = "duckdb"
    wrap: Wrap | None = None
    pinned: PinnedRows | None = None  # where loaded rows are kept for the next question
    max_rows: int | None = None  # limits of the question, as `ask` takes them
    max_groups: int | None = None
    interval_share: Number | None = None
    part: int | None = None  # of a question of several releases: the one that is audited, at its own price
    load: Load | None = None  # how an engine of another name loads the tables
    tested: set[Noise] | None = None  # noise that another question of the same audit has drawn and compared
    with_others: bool = True  # also check the watches, oracles, joint sums and purchases of the same table

    def __post_init__(self) -> None:
        if self.engine not in ENGINES and self.load is None:
            raise InvalidParameter("engine", f"must be one of {', '.join(ENGINES)}", "another name")
        if self.delta is not None:
            ApproxDP(0, self.delta)  # checks delta, also for a question that does not use it
        if self.wrap is not None and not callable(self.wrap):
            raise InvalidParameter(
                "wrap", "must be callable", describe_kind(self.wrap), "For example lambda engine: engine."
            )

    def open(self, dataset: Dataset, data: Data, wrap: Wrap | None = None) -> AbstractContextManager[Desk]:
        """A throwaway desk with these rows; `wrap` instead of the setting's own."""
        return open_throwaway(dataset, data, self.engine, wrap or self.wrap, self.pinned, self.load)

    def bind(self, sql: str, dataset: Dataset) -> Query:
        """The question with its limits; or one of its releases by itself."""
        query = limit_contributions(bind(parse(sql), dataset), self.max_rows, self.max_groups, dataset)
        query = add_quantile_intervals(query, self.interval_share, CONFIDENCE)
        if self.part is None:
            return query
        return replace((query, *query.beside)[self.part], beside=(), finish=None, dp_options=None)

    def ask(self, desk: Desk, sql: str, analyst: str = DEFAULT_ANALYST) -> Answer:
        """Ask as a user does. The price is that of a complete setting."""
        return ask(
            desk, sql, self.epsilon, rho=self.rho, delta=self.delta, analyst=analyst,
            max_rows=self.max_rows, max_groups=self.max_groups, interval_share=self.interval_share,
        )  # fmt: skip

    def complete(self, query: Query) -> "Setting":
        """The setting with its default price."""
        own = query.dp_options.epsilon if query.dp_options is not None else None
        return replace(self, epsilon=1) if self.epsilon is None and self.rho is None and own is None else self

    def split(self, stage: Stage) -> "list[Setting]":
        """One setting for each release of the question, with its own price: together, that of the question."""
        try:
            query = self.bind(stage.sql, stage.dataset)
        except SfumatoError:  # the pairs show the same refusal
            return [self]
        if not query.beside:
            return [self]
        asked = self.complete(query)
        queries = (query, *query.beside)
        losses = split_evenly(choose_loss(query, asked.epsilon, asked.rho), len(queries))
        undeclared = [any(key.values is None for key in asked_query.keys) for asked_query in queries]
        deltas = split_delta(choose_delta(query, asked.delta), undeclared, stage.dataset)
        prices = [
            {"rho": loss.rho, "epsilon": None} if isinstance(loss, ZCDP) else {"epsilon": loss.epsilon, "rho": None}
            for loss in losses
        ]
        return [
            replace(self, part=part, delta=delta, **price)  # type: ignore[arg-type]
            for part, (price, delta) in enumerate(zip(prices, deltas, strict=True))
        ]


def read_dataset(maker: DatasetMaker) -> Dataset:
    """The declarations of a dataset: given, of a curator, or made by a callable. Its rows are never read."""
    made = maker if isinstance(maker, Dataset | Curator) else _call_maker(maker) if callable(maker) else None
    if isinstance(made, Curator):
        return made.dataset
    if isinstance(made, Dataset):
        return made
    hint = "For example sf.open('clinic'), or lambda: sf.protect(frame, …)."
    raise InvalidParameter("dataset_maker", "must be a curator, or make one", describe_kind(maker), hint)


def _call_maker(maker: Callable[[], object]) -> object:
    try:
        return maker()
    except SfumatoError:
        raise
    except Exception as error:
        hint = "Call it on its own to see the error."
        raise InvalidParameter("dataset_maker", "must make a curator", type(error).__name__, hint) from error


def set_stage(dataset: Dataset, sql: str) -> Stage:
    """Make up the public tables, bind the question, and find the tables and the unit that it is about.

    A public table without columns is left out: `describe_public` adds the columns where a question needs them.
    """
    public = {
        table.name: _make_public_rows(table) for table in dataset.tables.values() if table.public and table.columns
    }
    if public:
        engine = DuckDBEngine.of_tables({name: (dataset.tables[name], rows) for name, rows in public.items()})
        try:
            dataset = replace_tables(dataset, {**dataset.tables, **engine.tables})
        finally:
            engine.close()
    query = bind(parse(sql), dataset)
    named = dict.fromkeys(
        name for asked_query in (query, *query.beside) for name in outline_source(asked_query.source).tables
    )
    tables = tuple(find_needed_tables(tuple(named), dataset))
    private = next(table for table in tables if not table.public)
    return Stage(dataset, tables, {table.name: public[table.name] for table in tables if table.public},
        dataset.unit(private.name), query, sql)  # fmt: skip


def _make_public_rows(table: Table) -> "pyarrow.Table":
    """Made-up rows, some of them several times: a join makes several rows of one private row.

    More rows than share any value have NULLs: no private row meets them.
    """
    rows = make_rows(table, PUBLIC_ROWS)
    rows = pyarrow.concat_tables([rows, *(rows.slice(place, 1) for place in (0, 0, 1))])
    empty = pyarrow.table({
        name: pyarrow.nulls(PUBLIC_NULLS, column.type)
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    })  # fmt: skip
    return pyarrow.concat_tables([rows, empty])


def describe_public(dataset: Dataset, sql: str, folder: Path) -> Dataset:
    """The dataset with the columns of the public tables that a question names, read from their sources in `folder`.

    Public tables need no declared columns. Their names, types and values are public; the audit makes up the rows.
    """
    texts = " ".join((sql, *dataset.views.values()))
    described = {}
    for table in dataset.tables.values():
        named = re.search(rf"\b{re.escape(table.name)}\b", texts, re.IGNORECASE) is not None
        if table.public and not table.columns and table.source is not None and named:
            source = table.source if is_postgres(table.source) else str(folder / table.source)
            engine = DuckDBEngine.of_data(table, source)
            described[table.name] = engine.tables[table.name]
            engine.close()
    return replace_tables(dataset, {**dataset.tables, **described}) if described else dataset


def plan_question(desk: Desk, sql: str, setting: Setting) -> CertifiedPlans:
    """The certified plan of a question at the price of a setting."""
    query = setting.bind(sql, desk.dataset)
    asked = setting.complete(query)
    loss = choose_loss(query, asked.epsilon, asked.rho)
    return certify_plan(desk.plan(query, loss, choose_delta(query, asked.delta)).plan)
