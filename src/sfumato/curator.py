"""The calls of one answer, one under another; preview() stops early."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np

from sfumato.answers import Answer, Cost, Explained, explain
from sfumato.catalog.files import load, set_ledger_id
from sfumato.catalog.model import Budget, ColumnDeclaration, Dataset, Table
from sfumato.engines.duckdb_engine import DuckDBEngine
from sfumato.engines.engine import Engine
from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerError, MissingBounds
from sfumato.kernel.certify import Certificate, Certified, Reservation, certify
from sfumato.kernel.exact import plain
from sfumato.kernel.losses import ZCDP, PrivacyLoss, PureDP
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.neighbours import ROW, Row
from sfumato.kernel.parameters import Number, positive_decimal, probability_inside
from sfumato.kernel.plan import Kind
from sfumato.kernel.release import Released, release
from sfumato.ledger.ledger import Ledger, Limit, Totals
from sfumato.planning.accuracy import (
    aggregate_values,
    evaluate,
    in_units,
    margin_of,
    plain_measurement,
    simulated,
    three_digits_up,
)
from sfumato.planning.planner import Formula, Planned, choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse
from sfumato.query.query import AggregateRef, KeyRef, Query

ANALYST = "analyst"
PRIVATE_COUNT = "its margin depends on a private count; pass assume={'n': ...} to see it for a count you expect"
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
        return explain(self.explained, _sentences(), self.confidence)


@dataclass(frozen=True)
class Spending:
    """A budget: what it is, what is spent, what is left."""

    limit: Cost
    spent: Cost
    remaining: Cost


class Curator:
    """Holds the data and answers questions about it. Only noisy answers leave, each after its charge is committed."""

    def __init__(self, dataset: Dataset, engine: Engine, ledger: Ledger) -> None:
        self.dataset = dataset
        self._engine = engine
        self._ledger = ledger

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

    def _answer(self, query: Query, loss: PureDP | ZCDP, confidence: Fraction, analyst: str) -> Answer:
        planned = choose_plan(query, loss, self.dataset, FIRST_VERSION)
        certificate = certify(planned.plan)
        stored = self._ledger.stored(certificate, analyst)
        if stored is not None:
            released = Released(stored.entry_number, certificate, stored.integers)
            return self._present(query, planned, released, confidence, stored.head, cached=True)
        reservation = self._ledger.reserve(analyst, certificate)
        exact = self._engine.aggregate(planned.plan)
        released = release(exact, reservation)
        head = self._ledger.store(reservation, released)
        return self._present(query, planned, released, confidence, head, cached=False)

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
        planned = choose_plan(query, _loss(epsilon, rho), self.dataset, FIRST_VERSION)
        certificate = certify(planned.plan)
        margins, reasons = _margins(query, planned, certificate, level, (assume or {}).get("n"))
        return Preview(
            Cost.of(certificate.loss), margins, reasons, self._fits(certificate, analyst),
            _explained(planned, certificate, level), float(level),
        )  # fmt: skip

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
        totals: Totals = self._ledger.totals(analyst)
        try:
            _ = totals.spent.compose(certificate.loss)
        except InvalidParameter:
            return False
        spent, limit = Cost.of(totals.spent.compose(certificate.loss)), Cost.of(totals.limit)
        if limit.rho is not None:
            return spent.rho is not None and spent.rho <= limit.rho
        return spent.epsilon is not None and limit.epsilon is not None and spent.epsilon <= limit.epsilon

    def _goal(self, query: Query, wanted: Mapping[str, float], confidence: Fraction) -> PureDP:
        """The least epsilon, to three digits, at which every named column has the wanted margin in each cell."""

        def enough(epsilon: str) -> bool:
            planned = choose_plan(query, PureDP(epsilon), self.dataset, FIRST_VERSION)
            try:
                certificate = certify(planned.plan)
            except InvalidParameter:
                return False
            margins, reasons = _margins(query, planned, certificate, confidence, None)
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

    def _present(
        self, query: Query, planned: Planned, released: Released, confidence: Fraction, head: str, *, cached: bool
    ) -> Answer:
        certificate = released.certificate
        measured = in_units(certificate, released.integers)
        aggregates = [aggregate_values(formula, measured) for formula in planned.formulas]
        cells = list(product(*(key.values for key in query.keys)))
        keys = [np.array([cell[index] for cell in cells] + [None], object)[:-1] for index in range(len(query.keys))]
        columns = {name: evaluate(post, aggregates, keys) for name, post in query.columns}
        ends = self._ends(query, planned, released, confidence, keys)
        kept = _order_of(query, aggregates, keys, len(cells))
        whole = {name for name, post in query.columns if _is_whole(post, planned)}
        rows = [
            {name: _plain(np.broadcast_to(values, len(cells))[cell], name in whole) for name, values in columns.items()}
            for cell in kept
        ]
        intervals = [
            {name: (float(low[cell]), float(high[cell])) for name, (low, high) in ends.items()} for cell in kept
        ]
        remaining = self._ledger.totals().remaining
        paid = Cost.of(certificate.loss) if not cached else Cost.of(_nothing(certificate.loss))
        return Answer(
            tuple(columns), rows, intervals, float(confidence), paid,
            Cost.of(remaining), released.entry_number, cached, head, _explained(planned, certificate, confidence),
            tuple(name for name, post in query.columns if isinstance(post, KeyRef)), _sentences(),
        )  # fmt: skip

    def _ends(
        self, query: Query, planned: Planned, released: Released, confidence: Fraction, keys: list[np.ndarray]
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """An interval for each number: exact for counts and sums, by simulation for what is computed from several."""
        certificate = released.certificate
        measured = in_units(certificate, released.integers)
        by_name = {each.name: each for each in certificate.measurements}
        ends: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        derived = []
        for name, post in query.columns:
            measurement = plain_measurement(post, planned.formulas)
            if measurement is not None:
                margin = margin_of(by_name[measurement], confidence)
                ends[name] = (measured[measurement] - margin, measured[measurement] + margin)
            elif not isinstance(post, KeyRef):
                derived.append((name, post))
        if derived:
            found = simulated(certificate, measured, planned.formulas, [post for _, post in derived], keys, confidence)
            ends |= dict(zip((name for name, _ in derived), found, strict=True))
        return {name: ends[name] for name, _ in query.columns if name in ends}


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
    ledger: str | Path | None = None,
    analysts: Mapping[str, Budget] | None = None,
) -> Curator:
    """Protect one table: a frame (pandas, polars, Arrow) or the path of a CSV or Parquet file."""
    table = Table(name, None, unit, columns, max_rows_per_unit, max_groups_per_unit, rows)
    dataset = Dataset(name, [table], budget, population, neighbours, analysts=dict(analysts or {}))
    engine = DuckDBEngine.of_data(table, data)
    return Curator(dataset, engine, _ledger_at(ledger, dataset))


def open_folder(folder: str | Path, *, engine: Engine | None = None, ledger: str | None = None) -> Curator:
    """Open a folder with catalog.toml; its ledger and its pinned data are beside it."""
    place = Path(folder)
    dataset = load(place)
    pinned = place / ".sfumato" / "snapshot.duckdb"
    if engine is None:
        if not pinned.exists():
            pinned.parent.mkdir(exist_ok=True)
            DuckDBEngine.prepare(pinned, dataset.tables, place)
        engine = DuckDBEngine.open(pinned, dataset.tables)
    address = ledger or str(place / "ledger.db")
    limit, sublimits = Limit(dataset.budget.loss), {who: each.loss for who, each in dataset.analysts.items()}
    if dataset.ledger_id is None:
        books = Ledger.create(address, dataset.population, limit, sublimits)
        set_ledger_id(place, books.ledger_id)
    else:
        books = Ledger.open(address, dataset.ledger_id, dataset.population, limit, sublimits)
    return Curator(dataset, engine, books)


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


def _nothing(loss: PrivacyLoss) -> PrivacyLoss:
    return ZCDP(0) if isinstance(loss, ZCDP) else PureDP(0)


def _loss(epsilon: Number | None, rho: Number | None) -> PureDP | ZCDP:
    if (epsilon is None) == (rho is None):
        raise InvalidParameter(
            "epsilon", "must be given, or rho, or margin", "both or neither", "For example epsilon=0.5."
        )
    if rho is not None:
        return ZCDP(positive_decimal(rho, "rho"))
    return PureDP(positive_decimal(epsilon, "epsilon"))


def _margins(
    query: Query, planned: Planned, certificate: Certificate, confidence: Fraction, people: float | None
) -> tuple[dict[str, float | None], dict[str, str]]:
    by_name = {each.name: each for each in certificate.measurements}
    margins: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for name, post in query.columns:
        if isinstance(post, KeyRef):
            continue
        measurement = plain_measurement(post, planned.formulas)
        if measurement is not None:
            margins[name] = margin_of(by_name[measurement], confidence)
        elif people is not None and isinstance(post, AggregateRef):
            margins[name] = _assumed(planned.formulas[post.index], certificate, planned, post, confidence, people)
        else:
            margins[name] = None
            reasons[name] = PRIVATE_COUNT
    return margins, reasons


def _assumed(  # noqa: PLR0917
    formula: Formula,
    certificate: Certificate,
    planned: Planned,
    post: AggregateRef,
    confidence: Fraction,
    people: float,
) -> float:
    """Half the interval that an answer would have if each cell had so many people, spread evenly."""
    middle = {each.name: np.zeros(certificate.cells) for each in certificate.measurements}
    if formula.count:
        middle[formula.count] += people
    if formula.squares:
        middle[formula.squares] += people * (formula.upper or 0) / 3
    keys = [np.array([None] * certificate.cells, object)] * len(planned.plan.keys)
    ((low, high),) = simulated(certificate, middle, planned.formulas, [post], keys, confidence)
    return float(np.max(high - low) / 2)


def _order_of(query: Query, aggregates: list[np.ndarray], keys: list[np.ndarray], cells: int) -> list[int]:
    """HAVING, ORDER BY and LIMIT, over released values."""
    kept = list(range(cells))
    if query.having is not None:
        passed = np.broadcast_to(evaluate(query.having, aggregates, keys), cells)
        kept = [cell for cell in kept if bool(passed[cell])]
    for term in reversed(query.order):
        by = np.broadcast_to(evaluate(term.by, aggregates, keys), cells)
        kept.sort(key=lambda cell, by=by: by[cell], reverse=term.descending)  # type: ignore[misc]
    return kept if query.limit is None else kept[: query.limit]


def _is_whole(post: object, planned: Planned) -> bool:
    if not isinstance(post, AggregateRef):
        return False
    formula = planned.formulas[post.index]
    measurement = plain_measurement(post, planned.formulas)
    if formula.function == "COUNT":
        return True
    return any(each.name == measurement and each.exponent == 0 for each in planned.plan.measurements)


def _plain(value: object, whole: bool) -> object:
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return None
        return round(float(value)) if whole else float(value)
    return value.item() if isinstance(value, np.generic) else value


def _explained(planned: Planned, certificate: Certificate, confidence: Fraction) -> tuple[Explained, ...]:
    return tuple(
        _in_words(measurement.kind, each, confidence)
        for measurement, each in zip(planned.plan.measurements, certificate.measurements, strict=True)
    )


def _in_words(kind: Kind, each: Certified, confidence: Fraction) -> Explained:
    step = Fraction(2) ** each.exponent
    laplace = isinstance(each.noise, LaplaceNoise)
    size = each.noise.scale * step if isinstance(each.noise, LaplaceNoise) else each.noise.variance * step**2
    share = f"ε = {plain(each.loss.epsilon)}" if isinstance(each.loss, PureDP) else f"rho = {plain(each.loss.rho)}"
    words = {Kind.COUNT: "count of rows", Kind.SUM: "sum", Kind.PEOPLE: "count of people"}
    return Explained(
        f"{each.name} ({words[kind]})",
        f"{float(each.sensitivity.l1 * step):g}",
        "discrete Laplace" if laplace else "discrete Gaussian",
        f"{float(size) if laplace else float(size) ** 0.5:g}",
        share,
        margin_of(each, confidence),
    )


def _sentences() -> tuple[str, ...]:
    return (
        "Each measurement has an equal share of the cost; one release covers all groups.",
        "Bounding each person's rows comes before WHERE.",
    )


__all__ = ["ROW", "BudgetExceeded", "Curator", "Preview", "Reservation", "Spending", "open_folder", "protect"]
