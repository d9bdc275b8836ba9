"""The calls of one answer, one under another; preview() stops early."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Literal

from sfumato.answers import Answer, Cost, Explained, explain
from sfumato.catalog.files import load, set_ledger_id
from sfumato.catalog.model import Budget, ColumnDeclaration, Dataset, Table, find
from sfumato.disclosure import Signer, statement
from sfumato.engines.duckdb_engine import DuckDBEngine
from sfumato.engines.engine import Engine
from sfumato.engines.snapshot import declared_digest
from sfumato.errors import InvalidParameter, LedgerError, MissingBounds
from sfumato.kernel.certify import Certificate, certify
from sfumato.kernel.losses import ZCDP, PrivacyLoss, PureDP
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise, Noise
from sfumato.kernel.neighbours import Row
from sfumato.kernel.parameters import Number, positive_decimal, probability_inside
from sfumato.kernel.release import Released, release
from sfumato.ledger.ledger import AlreadyAnswered, Ledger, Limit, Stored, Totals
from sfumato.planning.accuracy import three_digits_up
from sfumato.planning.planner import Planned, choose_plan
from sfumato.present import SENTENCES, Paid, explained, margins_of, present
from sfumato.query.bind import bind
from sfumato.query.frame import Aggregation, Frame
from sfumato.query.parse import parse
from sfumato.query.query import Query
from sfumato.rehearsal import made_up_rows
from sfumato.selection import Question, Selection

ANALYST = "analyst"
FIRST_VERSION = "1"


@dataclass(frozen=True)
class Preview:
    """What a question would cost and how wide its answer would be. It reads no row and costs nothing."""

    cost: Cost
    margins: dict[str, float | None]
    reasons: dict[str, str]
    fits: bool
    explained: tuple[Explained, ...]
    confidence: float

    def explain(self) -> str:
        """The same words as the answer's."""
        return explain(self.explained, SENTENCES, self.confidence)


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
    ) -> None:
        self.dataset = dataset
        self._versions = versions
        self._engine = engine
        self._ledger = ledger
        self._signer = signer or Signer()

    def ask(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        margin: Mapping[str, float] | None = None,
        confidence: Number = "0.95",
        analyst: str = ANALYST,
    ) -> Answer:
        """Answer a question for its price; a question that was answered before, as well or better, is free."""
        query = bind(parse(sql), self.dataset)
        level = probability_inside(confidence, "confidence")
        loss = self._goal(query, margin, level) if margin else _loss(epsilon, rho)
        return self._answer(query, loss, level, analyst)

    def _answer(self, query: Query, loss: PureDP | ZCDP, confidence: Fraction, name: str) -> Answer:
        analyst = find(name.strip(), self.dataset.analysts) or name.strip()  # a sub-limit is not escaped by spelling
        planned = choose_plan(query, loss, self.dataset, self._versions[query.table])
        certificate = certify(planned.plan)
        stored = self._ledger.stored(certificate, analyst)
        if stored is not None:
            return self._again(query, planned, certificate, stored, confidence)
        try:
            reservation = self._ledger.reserve(analyst, certificate)
            exact = self._engine.aggregate(planned.plan)
            released = release(exact, reservation)
            head = self._ledger.store(reservation, released)
        except AlreadyAnswered:  # by another process of the same analyst, meanwhile: theirs is the answer
            stored = self._ledger.stored(certificate, analyst)
            if stored is None:
                raise
            return self._again(query, planned, certificate, stored, confidence)
        return self._presented(query, planned, released, confidence, head, cached=False)

    def _again(
        self, query: Query, planned: Planned, certificate: Certificate, stored: Stored, confidence: Fraction
    ) -> Answer:
        """A stored answer, free: its noise is at most what this certificate's would be."""
        noise = {name: _noise_of(variance, kind) for name, variance, kind in stored.certificate_measure}
        drawn = tuple(replace(each, noise=noise[each.name]) for each in certificate.measurements)
        as_stored = replace(certificate, measurements=drawn, loss=stored.loss)
        released = Released(stored.entry_number, as_stored, stored.integers)
        return self._presented(query, planned, released, confidence, stored.head, cached=True)

    def _presented(
        self, query: Query, planned: Planned, released: Released, confidence: Fraction, head: str, *, cached: bool
    ) -> Answer:
        said = statement(planned.plan, released.certificate, released.entry_number, head)
        paid = Paid(cached, head, self._ledger.totals().remaining, self._signer.sign(said))
        return present(query, planned, released, confidence, paid)

    def preview(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        assume: Mapping[str, float] | None = None,
        confidence: Number = "0.95",
        analyst: str = ANALYST,
    ) -> Preview:
        """Cost and margins, before spending."""
        query = bind(parse(sql), self.dataset)
        level = probability_inside(confidence, "confidence")
        planned = choose_plan(query, _loss(epsilon, rho), self.dataset, self._versions[query.table])
        certificate = certify(planned.plan)
        margins, reasons = margins_of(query, planned, certificate, level, (assume or {}).get("n"))
        return Preview(
            Cost.of(certificate.loss), margins, reasons, self._fits(certificate, analyst),
            explained(planned, certificate, level), float(level),
        )  # fmt: skip

    def select(self, table: str | None = None) -> Selection:
        """A table to ask about in Python; the only one, if none is named."""
        if table is None and len(self.dataset.tables) != 1:
            raise InvalidParameter("table", f"must be one of {', '.join(self.dataset.tables)}", "nothing")
        name = self.dataset.table(table or next(iter(self.dataset.tables))).name
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

    def rehearse(
        self, sql: str, epsilon: Number | None = None, *, rho: Number | None = None, confidence: Number = "0.95"
    ) -> Answer:
        """Try a question out on made-up rows: the shape of the answer, and its noise, for free. It reads no data."""
        query = bind(parse(sql), self.dataset)
        table = self.dataset.table(query.table)
        loss = _loss(epsilon, rho) if epsilon is not None or rho is not None else PureDP(1)
        books = Ledger.create(None, self.dataset.population, Limit(loss))
        stage = Curator(self.dataset, DuckDBEngine.of_data(table, made_up_rows(table)), books, self._versions)
        with stage:
            return stage._answer(query, loss, probability_inside(confidence, "confidence"), ANALYST)

    @property
    def budget(self) -> Spending:
        """The population's budget."""
        totals = self._ledger.totals()
        return Spending(Cost.of(totals.limit), Cost.of(totals.spent), Cost.of(totals.remaining))

    def ledger(self) -> Ledger:
        """The ledger, to list and to verify."""
        return self._ledger

    def close(self) -> None:
        """Let go of the ledger and the snapshot."""
        self._ledger.close()
        if isinstance(self._engine, DuckDBEngine):
            self._engine.close()

    def __enter__(self) -> "Curator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fits(self, certificate: Certificate, analyst: str) -> bool:
        """Would the charge fit what is left, of the population's budget and of the analyst's own?"""
        return all(
            _within(totals, certificate.loss) for totals in (self._ledger.totals(), self._ledger.totals(analyst))
        )

    def _goal(self, query: Query, wanted: Mapping[str, float], confidence: Fraction) -> PureDP:
        """The least epsilon, to three digits, at which every named column has the wanted margin in each cell."""

        def enough(epsilon: str) -> bool:
            planned = choose_plan(query, PureDP(epsilon), self.dataset, self._versions[query.table])
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
                    raise MissingBounds("margin", f"{name}: {reasons[name]}", "Ask for a margin of COUNT or SUM.")
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


def protect(
    data: object,
    *,
    name: str,
    unit: str | Literal[Row.ROW],
    columns: Mapping[str, ColumnDeclaration],
    budget: Budget,
    neighbours: str = "add-remove",
    rows: int | None = None,
    max_rows_per_unit: int = 1,
    max_groups_per_unit: int = 1,
    population: str | None = None,
    version: str = FIRST_VERSION,
    ledger: str | Path | None = None,
    analysts: Mapping[str, Budget] | None = None,
) -> Curator:
    """Protect one table: a frame (pandas, polars, Arrow) or the path of a CSV or Parquet file.

    `version` names the data: change it when the data changes, so that answers in a durable ledger are not reused.
    """
    table = Table(name, None, unit, columns, max_rows_per_unit, max_groups_per_unit, rows)
    dataset = Dataset(name, [table], budget, population, neighbours, analysts=dict(analysts or {}))
    engine = DuckDBEngine.of_data(table, data)
    signer = Signer(Path(f"{ledger}.key")) if ledger is not None else Signer()
    versions = {table.name: f"{version}-{declared_digest(table)[:16]}"}
    return Curator(dataset, engine, _ledger_at(ledger, dataset), versions, signer)


def open_folder(folder: str | Path, *, ledger: str | None = None) -> Curator:
    """Open a folder with catalog.toml; its ledger and its pinned data are beside it."""
    place = Path(folder)
    dataset = load(place)
    pinned = place / ".sfumato" / "snapshot.duckdb"
    pinned.parent.mkdir(exist_ok=True)
    if not pinned.exists():
        DuckDBEngine.prepare(pinned, dataset.tables, place)
    snapshot = DuckDBEngine.open(pinned, dataset.tables)
    address = ledger or str(place / "ledger.db")
    limit, sublimits = Limit(dataset.budget.loss), {who: each.loss for who, each in dataset.analysts.items()}
    if dataset.ledger_id is None:
        books = Ledger.create(address, dataset.population, limit, sublimits)
        set_ledger_id(place, books.ledger_id)
    else:
        books = Ledger.open(address, dataset.ledger_id, dataset.population, limit, sublimits)
    return Curator(dataset, snapshot, books, snapshot.versions, Signer(place / ".sfumato" / "signing.key"))


def _ledger_at(place: str | Path | None, dataset: Dataset) -> Ledger:
    """In memory; or at a path, with its id in a file beside it: a ledger that is gone is never begun anew."""
    limit, sublimits = Limit(dataset.budget.loss), {who: each.loss for who, each in dataset.analysts.items()}
    if place is None:
        return Ledger.create(None, dataset.population, limit, sublimits)
    known = Path(f"{place}.id")
    if known.exists():
        return Ledger.open(str(place), known.read_text().strip(), dataset.population, limit, sublimits)
    if Path(place).exists():
        raise LedgerError(
            "ledger-foreign", "There is a ledger here, but not its id.", f"Restore the file {known.name}."
        )
    made = Ledger.create(str(place), dataset.population, limit, sublimits)
    known.write_text(made.ledger_id)
    return made


def _noise_of(variance: Fraction, kind: str) -> Noise:
    """The noise that a stored answer has, from what the ledger keeps of it."""
    if kind == "gaussian":
        return GaussianNoise(variance)
    half = variance / 2  # the square of a rational scale
    return LaplaceNoise(Fraction(isqrt(half.numerator), isqrt(half.denominator)))


def _within(totals: Totals, loss: PrivacyLoss) -> bool:
    limit = Cost.of(totals.limit)
    try:
        spent = Cost.of(totals.spent.compose(loss))
    except InvalidParameter:
        return False
    pairs = [(spent.epsilon, limit.epsilon), (spent.rho, limit.rho), (spent.delta, limit.delta)]
    return all(most is None or (amount is not None and amount <= most) for amount, most in pairs)


def _loss(epsilon: Number | None, rho: Number | None) -> PureDP | ZCDP:
    if (epsilon is None) == (rho is None):
        raise InvalidParameter(
            "epsilon", "must be given, or rho, or margin", "both or neither", "For example epsilon=0.5."
        )
    if rho is not None:
        return ZCDP(positive_decimal(rho, "rho"))
    return PureDP(positive_decimal(epsilon, "epsilon"))
