"""Opening what an owner protects: one table in Python, or a folder with a catalog."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from sfumato.catalog.budget import Budget
from sfumato.catalog.columns import ColumnDeclaration
from sfumato.catalog.files import load, set_ledger_id
from sfumato.catalog.model import Dataset, Table, with_tables
from sfumato.catalog.reading import Reading
from sfumato.curator import Curator
from sfumato.disclosure import Signer
from sfumato.engines.duckdb_engine import DuckDBEngine
from sfumato.engines.snapshot import declared_digest
from sfumato.errors import InvalidParameter, LedgerError, LoadWarning
from sfumato.ingest.load_report import Loading, LoadReport
from sfumato.kernel.neighbours import Row
from sfumato.ledger.ledger import Ledger, Limit

FIRST_VERSION = "1"


def protect(
    data: object,
    *,
    name: str,
    unit: str | Literal[Row.ROW],
    columns: Mapping[str, ColumnDeclaration],
    budget: Budget,
    neighbours: str = "add-remove",
    rows: int | None = None,
    people: int | None = None,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    decimal: str = ".",
    date_format: str | None = None,
    on_error: str = "refuse",
    quoted_newlines: bool = True,
    max_rows_per_unit: int = 1,
    max_groups_per_unit: int = 1,
    population: str | None = None,
    version: str = FIRST_VERSION,
    ledger: str | Path | None = None,
    analysts: Mapping[str, Budget] | None = None,
    strict: bool = False,
) -> Curator:
    """Protect one table: a frame (pandas, polars, Arrow) or the path of a CSV or Parquet file.

    `version` names the data: change it when the data changes, so that answers in a durable ledger are not reused.
    `rows` (unit ROW) and `people` (unit an id) make that number public; both need neighbours="replace-one".
    `encoding`, `delimiter`, `decimal`, `date_format`, `on_error` and `quoted_newlines` say how texts are read: see
    the guide. A load that loses many values warns (errors.LoadWarning); `strict` refuses it (errors.CatalogError).
    `version` names the data: change it when the data changes, so that answers in a durable ledger are not
    reused.
    """
    if ledger is not None and "://" in str(ledger):
        hint = "For a ledger on a server, make a folder with a catalog: sf.open(folder, ledger=URL)."
        raise InvalidParameter("ledger", "must be the path of a file here", "a URL", hint)
    reading = Reading(encoding, delimiter, decimal, date_format, on_error, quoted_newlines)
    table = Table(
        name, None, unit, columns, max_rows_per_unit, max_groups_per_unit, rows, people=people, reading=reading
    )
    dataset = Dataset(name, [table], budget, population, neighbours, analysts=dict(analysts or {}))
    engine = DuckDBEngine.of_data(table, data, Loading(strict=strict))
    signer = Signer(Path(f"{ledger}.key")) if ledger is not None else Signer()
    versions = {table.name: f"{version}-{declared_digest(table)[:16]}"}
    try:
        _warn(engine.load_report)
    except LoadWarning:  # where warnings are errors
        engine.close()
        raise
    return Curator(dataset, engine, _ledger_at(ledger, dataset), versions, signer, load_report=engine.load_report)


def open_folder(folder: str | Path, *, ledger: str | None = None) -> Curator:
    """Open a folder with catalog.toml; its ledger and its pinned data are beside it."""
    place = Path(folder)
    dataset = load(place)
    pinned = place / ".sfumato" / "snapshot.duckdb"
    pinned.parent.mkdir(exist_ok=True)
    report = None
    if not pinned.exists():
        report = DuckDBEngine.prepare(pinned, dataset.tables, place).report
        _warn(report)
    snapshot = DuckDBEngine.open(pinned, dataset.tables)
    address = ledger or str(place / "ledger.db")
    limit, sublimits = Limit(dataset.budget.loss), {who: each.loss for who, each in dataset.analysts.items()}
    if dataset.ledger_id is None:
        books = Ledger.create(address, dataset.population, limit, sublimits)
        set_ledger_id(place, books.ledger_id)
    else:
        books = Ledger.open(address, dataset.ledger_id, dataset.population, limit, sublimits)
    dataset = with_tables(dataset, snapshot.tables)  # public tables as they were pinned
    return Curator(
        dataset, snapshot, books, snapshot.versions, Signer(place / ".sfumato" / "signing.key"), load_report=report
    )


def _warn(report: LoadReport | None) -> None:
    for problem in report.problems if report is not None else ():
        warnings.warn(LoadWarning(str(problem)), stacklevel=3)


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
