"""A desk for audits: made-up rows, and a ledger in memory that is dropped afterwards.

Recorded noise may be used here and nowhere else: every function that takes it checks that the ledger is in memory and
was made here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakSet

from sfumato.answering.desk import Desk
from sfumato.answers.disclosure import Signer
from sfumato.catalog.dataset import Dataset, Table, replace_tables
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.duckdb.empty_tables import EmptyTables
from sfumato.engines.engine import Engine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.errors import CatalogError, KernelFault
from sfumato.kernel.losses import ApproxDP, PrivacyLoss, PureDP
from sfumato.ledger.ledger import Ledger, Limit

Data = Mapping[str, tuple[Table, object]]  # tables with their declarations and rows

Found = TypeVar("Found")

LARGEST = 10**9  # epsilon or rho of a throwaway budget
Load = Callable[[Data], Engine]  # how another engine than DuckDB and the plain one gets its tables
Wrap = Callable[[Engine], Engine]  # what is put around an engine: a recorder, or a fault that an audit must find

_MADE_HERE: "WeakSet[Ledger]" = WeakSet()


def require_throwaway(ledger: Ledger) -> None:
    """Refuse every ledger but one that `open_throwaway` made: recorded noise must never reach a real one."""
    if ledger not in _MADE_HERE or ledger.public_key is not None:
        raise KernelFault("Recorded noise is for a throwaway ledger only.")


class PinnedRows:
    """Made-up datasets that are loaded once and asked several questions. A refused load is refused each time."""

    def __init__(self) -> None:
        self._loaded: dict[int, tuple[Data, DuckDBEngine | CatalogError]] = {}
        self._computed: dict[tuple[int, str], Any] = {}
        self._others: dict[int, Engine] = {}  # what another engine loaded of the same rows
        self._empty: dict[str, EmptyTables] = {}  # by the declarations that they are made from

    def __enter__(self) -> "PinnedRows":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load(self, data: Data) -> DuckDBEngine:
        """The engine over these rows. The same object is loaded once."""
        if id(data) not in self._loaded:
            try:
                found: DuckDBEngine | CatalogError = self._open(data)
            except CatalogError as refusal:
                found = refusal
            self._loaded[id(data)] = data, found  # holding the data keeps its id from being used again
        _, loaded = self._loaded[id(data)]
        if isinstance(loaded, CatalogError):
            raise loaded
        return loaded

    def _open(self, data: Data) -> DuckDBEngine:
        """Engines of the same declarations share their empty tables: to make these takes as long as a question."""
        engine = DuckDBEngine.of_tables(data)
        engine._empty = self._empty.setdefault(repr(engine.tables), engine._empty)
        return engine

    def load_with(self, load: Load, data: Data) -> Engine:
        """Another engine over these rows, loaded once. One set of rows has one other engine at most."""
        self.load(data)  # holds the data, and refuses what DuckDB refuses
        if id(data) not in self._others:
            self._others[id(data)] = load(data)
        return self._others[id(data)]

    def remember(self, data: Data, name: str, compute: Callable[[DuckDBEngine], Found]) -> Found:
        """What was computed of loaded rows, once for all questions."""
        loaded = self.load(data)
        if (id(data), name) not in self._computed:
            self._computed[id(data), name] = compute(loaded)
        found: Found = self._computed[id(data), name]
        return found

    def drop(self, kept: Iterable[Data] = ()) -> None:
        """Close the engines of all datasets but these."""
        keep = set(map(id, kept))
        for place in [place for place in self._loaded if place not in keep]:
            _, loaded = self._loaded.pop(place)
            if isinstance(loaded, DuckDBEngine):
                loaded.close()
            if place in self._others:
                self._others.pop(place).close()
        self._computed = {name: found for name, found in self._computed.items() if name[0] in keep}

    def close(self) -> None:
        """Close all engines."""
        self.drop()


@contextmanager
def open_throwaway(  # noqa: PLR0917 - its callers name what they pass
    dataset: Dataset,
    data: Data,
    engine: str = "duckdb",
    wrap: Wrap | None = None,
    pinned: PinnedRows | None = None,
    load: Load | None = None,
) -> Iterator[Desk]:
    """The desk of a dataset with these rows instead of its own, on an engine of this name, or one that `load` gives.

    Rows in `pinned` stay loaded for the next question. The ledger is new each time.
    """
    rows = PinnedRows() if pinned is None else pinned
    ledger = None
    try:
        loaded = rows.load(data)
        tables = {**dataset.tables, **loaded.tables}
        running: Engine = loaded if engine == "duckdb" else _make_reference(loaded)
        if load is not None:
            running = rows.load_with(load, data)
        declared = dataset.budget.loss
        limit = (ApproxDP if isinstance(declared, PureDP) else type(declared))(LARGEST, "0.9")
        ledger = make_throwaway_ledger(dataset.population, limit)
        versions = dict.fromkeys(tables, "made up")  # equal in both datasets of a pair, as the plans must be
        yield Desk(
            replace_tables(dataset, tables), running if wrap is None else wrap(running), ledger, versions, Signer()
        )
    finally:
        if ledger is not None:
            ledger.close()
        if pinned is None:
            rows.close()


def make_throwaway_ledger(
    population: str, limit: PrivacyLoss, sublimits: Mapping[str, PrivacyLoss] | None = None
) -> Ledger:
    """A ledger in memory that accepts recorded noise."""
    ledger = Ledger.create(None, population, Limit(limit), sublimits or {})
    _MADE_HERE.add(ledger)
    return ledger


def _make_reference(pinned: DuckDBEngine) -> ReferenceEngine:
    """The reference engine over the rows that DuckDB pinned."""
    held = {}
    for name in pinned.tables:
        quoted = name.replace('"', '""')
        found = pinned._connection.execute(f'SELECT * FROM "{quoted}"')
        columns = [column[0] for column in found.description]
        held[name] = [dict(zip(columns, row, strict=True)) for row in found.fetchall()]
    return ReferenceEngine(held)
