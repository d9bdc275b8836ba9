"""Open protected data: one table in Python (`protect`), or a folder with a catalog (`open_folder`)."""

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Literal

from sfumato.answering.current_data import CurrentData, read_stamp
from sfumato.answering.find_cap import CANDIDATES
from sfumato.answers.disclosure import Signer
from sfumato.arguments import check_path, check_text, check_truth
from sfumato.catalog.budget import Budget
from sfumato.catalog.catalog_file import load_catalog
from sfumato.catalog.columns import ColumnDeclaration
from sfumato.catalog.counts_unit import Counts, split_unit
from sfumato.catalog.dataset import Dataset, Table, change_dataset, replace_tables
from sfumato.catalog.text_format import TextFormat
from sfumato.catalog.unique_keys import list_keys
from sfumato.curator import Curator
from sfumato.engines.backend import Backend, choose_backend, choose_for_data, find_snapshot, is_spark_frame
from sfumato.errors import CatalogError, InvalidParameter, LoadWarning, describe_kind
from sfumato.folder_ledger import (
    LedgerPlace,
    create_ledger,
    find_address,
    find_place,
    list_sublimits,
    make_lock_file,
    open_ledger,
    open_ledger_at,
)
from sfumato.ingest.declared_versions import hash_declaration
from sfumato.ingest.frame_libraries import find_library
from sfumato.ingest.load_report import Loading, LoadReport
from sfumato.ingest.source_refusals import NOT_A_FRAME
from sfumato.kernel.neighbours import Row
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.ledger_address import resolve_address
from sfumato.number_arguments import Number
from sfumato.private_files import locked, make_private_folder, tighten
from sfumato.shared_ledgers import SECRET, open_shared_ledger

FIRST_VERSION = "1"
AUTOMATIC = "auto"
SINGLE_COLUMNS = ("Series", "Index", "Array", "ChunkedArray")
A_TABLE = "must be a frame (pandas, polars, Arrow) or the path of a file"


def protect(
    data: object,
    *,
    name: str,
    unit: str | Literal[Row.ROW] | Counts,
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
    quoted_newlines: bool | None = None,
    max_rows_per_unit: int | str = 1,
    max_groups_per_unit: int = 1,
    unique: str | Sequence[str | Sequence[str]] = (),
    population: str | None = None,
    version: str = FIRST_VERSION,
    ledger: str | Path | None = None,
    analysts: Mapping[str, Budget] | None = None,
    strict: bool = False,
    cap_epsilon: Number = "0.1",
    engine: Backend | None = None,
) -> Curator:
    """Protect one table: a frame (pandas, polars, Arrow, Spark) or the path of a CSV or Parquet file.

    `unit` is the column that identifies people, ROW (each row is one person), or COUNTS("n"): a record with n = 5
    stands for 5 people, and n needs no declaration.
    `rows` (unit ROW or COUNTS) and `people` (unit an id) make that number public. Both need neighbours="replace-one".
    `max_rows_per_unit="auto"` buys the bound: a private race over possible bounds, which costs `cap_epsilon` of the
    budget (see `find_cap`). The chosen number is public, and an entry of the ledger records it.
    `unique` lists columns (or lists of columns) whose values no two rows of one person share: a load drops repeats.
    `encoding`, `delimiter`, `decimal`, `date_format`, `on_error` and `quoted_newlines` say how texts are read
    (docs/how-to/load-data.md). A load that loses many values warns (errors.LoadWarning). With `strict` it is refused
    (errors.CatalogError).
    A stored answer is never used for other data, because the data version is a keyed digest of the content. A new
    `version` makes the same data a new data version.
    `ledger` is the path of a file, or the URL of a PostgreSQL server (postgresql://user@host/database?schema=clinic).
    Without `ledger`, all data with the same `population` shares one ledger in memory until the process ends.
    `engine` is where the data is pinned and asked: DuckDB in this process, or sf.engines.postgres(url),
    or sf.engines.spark(session); a DataFrame of Spark is asked where it is.
    """
    rows_of = _check_data(data)
    backend = _check_backend(engine) or choose_for_data(rows_of)
    check_text(version, "version")
    check_truth(strict, "strict")
    books_at = None if ledger is None else find_place(ledger)
    reading = TextFormat(encoding, delimiter, decimal, date_format, on_error, quoted_newlines)
    row_unit, count_column = split_unit(unit)
    automatic = isinstance(max_rows_per_unit, str) and str.__eq__(max_rows_per_unit, AUTOMATIC)
    if isinstance(max_rows_per_unit, str) and not automatic:
        raise InvalidParameter("max_rows_per_unit", f'must be a whole number or "{AUTOMATIC}"', "another text")
    most_rows = CANDIDATES[-1] if isinstance(max_rows_per_unit, str) else max_rows_per_unit
    table = Table(
        name, None, row_unit, columns, most_rows, max_groups_per_unit, rows, people=people, reading=reading,
        count_column=count_column, unique=list_keys(unique),
    )  # fmt: skip
    dataset = Dataset(name, [table], budget, population, neighbours, analysts=_check_limits(analysts))
    pinned = backend.of_tables({table.name: (table, rows_of)}, Loading(strict=strict and not automatic))
    signer = Signer() if books_at is None else Signer(books_at.key)
    versions = {table.name: f"{version}-{hash_declaration(table)[:16]}"}
    if books_at is not None or population is not None:  # others may ask about other data on this ledger
        key = SECRET if books_at is None else signer.secret(b"data version")
        versions[table.name] += f"-{pinned.content_digest(table.name, key)[:32]}"
    try:
        if not automatic:
            _warn(pinned.load_report)
    except LoadWarning:  # where warnings are errors
        pinned.close()
        raise
    shared = books_at is None and population is not None
    try:
        books = _open_shared(dataset) if shared else _open_books(books_at, dataset)
    except BaseException:
        pinned.close()
        raise
    report = None if automatic else pinned.load_report
    curator = Curator(dataset, pinned, books, versions, signer, load_report=report, shares_ledger=shared)
    return _choose_bound(curator, backend, rows_of, cap_epsilon, Loading(strict=strict)) if automatic else curator


def _choose_bound(curator: Curator, backend: Backend, data: object, epsilon: Number, loading: Loading) -> Curator:
    """Buy max_rows_per_unit, and pin the data with it."""
    try:
        (declared,) = curator.dataset.tables.values()
        found = curator.find_cap(declared.name, epsilon)
        table = replace(declared, max_rows_per_unit=found.max_rows_per_unit)
        engine = backend.of_tables({table.name: (table, data)}, loading)
        versions = {name: f"{version}-{table.max_rows_per_unit}" for name, version in curator.versions.items()}
        curator.read_from(replace_tables(curator.dataset, {table.name: table}), engine, versions)
        curator.keep_report(engine.load_report)
        _warn(engine.load_report)
    except BaseException:
        curator.close()
        raise
    return curator


def open_folder(
    folder: str | Path,
    *,
    engine: Backend | None = None,
    ledger: str | None = None,
    expected_head: str | tuple[int, str] | None = None,
    analysts: Mapping[str, Budget] | None = None,
) -> Curator:
    """Open a folder with catalog.toml. Its pinned data and its ledger are in it, unless the catalog names others.

    `engine` is where the data is pinned and asked, in place of the catalog's: for example sf.engines.postgres(url).
    `expected_head` is the hash of a ledger entry that a reader has kept (every answer's disclosure has one). A ledger
    that lacks this entry is refused. `analysts` are the analysts' own limits, in place of the catalog's.
    """
    place = check_path(folder, "folder")
    given = _check_backend(engine)
    if ledger is not None and not check_text(ledger, "ledger"):
        raise InvalidParameter("ledger", "must be a path or a URL", "an empty text", "Leave it out for the catalog's.")
    dataset = _load_declared(place, analysts)
    backend = given or choose_backend(dataset.engine)
    address = find_address(place, dataset) if ledger is None else resolve_address(Path(), ledger)
    if not dataset.tables:
        hint = "Add one: sfumato add patients patients.csv --unit patient_id --column age:integer:0:120."
        raise CatalogError("catalog", "There is no table in this catalog yet.", hint)
    pinned = find_snapshot(place, backend)
    make_private_folder(pinned.parent)
    first = dataset.ledger_id is None or not pinned.exists()
    report = None
    with locked(make_lock_file(place)) if first else nullcontext():
        if first:
            dataset = _load_declared(place, analysts)  # another process may have been first
        if not pinned.exists():
            report = backend.prepare(pinned, dataset.tables, place).report
        tighten(pinned)
        books = open_ledger(place, dataset, address, expected_head)
    try:
        _warn(report)
        opened = read_stamp(pinned)
        snapshot = backend.open(pinned, dataset.tables)
        signer = Signer(place / ".sfumato" / "signing.key")
    except BaseException:
        books.close()
        raise
    as_pinned = replace_tables(dataset, snapshot.tables)  # public tables as they were pinned
    curator = Curator(as_pinned, snapshot, books, snapshot.versions, signer, load_report=report)

    def reopen() -> None:
        newer = backend.open(pinned, dataset.tables)
        curator.read_from(replace_tables(dataset, newer.tables), newer, newer.versions)

    curator.follow(CurrentData(pinned, opened, reopen))
    return curator


def _check_backend(given: object) -> Backend | None:
    """The engine that was given, if one was."""
    if given is None:
        return None
    if not all(callable(getattr(given, name, None)) for name in ("of_tables", "prepare", "open")):
        hint = "For example engine=sf.engines.postgres('postgresql://ann@host/clinic')."
        raise InvalidParameter("engine", "must be one of sf.engines, called", describe_kind(given), hint)
    backend: Backend = given  # type: ignore[assignment]
    return backend


def _load_declared(place: Path, analysts: Mapping[str, Budget] | None) -> Dataset:
    dataset = load_catalog(place)
    return dataset if analysts is None else change_dataset(dataset, analysts=_check_limits(analysts))


def _warn(report: LoadReport | None) -> None:
    for problem in report.problems if report is not None else ():
        warnings.warn(LoadWarning(str(problem)), stacklevel=3)


def _open_shared(dataset: Dataset) -> Ledger:
    return open_shared_ledger(dataset.population, dataset.budget.loss, list_sublimits(dataset), dataset.neighbours)


def _open_books(place: LedgerPlace | None, dataset: Dataset) -> Ledger:
    """The ledger at a place, or a new one in memory."""
    if place is not None:
        return open_ledger_at(place, dataset)
    return create_ledger(None, dataset)


def _check_data(data: object) -> object:
    """A frame, or the path of a file; anything else is refused with a hint."""
    kind = type(data)
    if isinstance(data, str):
        check_path(data, "data")
        return data
    if isinstance(data, os.PathLike):
        return check_path(data, "data")
    if find_library(data) is not None or is_spark_frame(data):
        return data
    if kind.__name__ in SINGLE_COLUMNS:
        hint = "A frame has named columns: use .to_frame('name') of a series, or pandas.DataFrame({'name': data})."
    elif isinstance(data, (Mapping, list, tuple)) or kind.__name__ == "ndarray":
        hint = "Make a frame of it first: pandas.DataFrame(data)."
    elif hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__dataframe__"):
        hint = NOT_A_FRAME
    else:
        hint = "For example a pandas DataFrame, or 'visits.csv'."
    raise InvalidParameter("data", A_TABLE, describe_kind(data), hint)


def _check_limits(value: Mapping[str, Budget] | None) -> dict[str, Budget]:
    """A budget per analyst. The catalog checks the names and the budgets."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        hint = "For example analysts={'ann': sf.Budget(epsilon=1)}."
        raise InvalidParameter("analysts", "must map names to budgets", describe_kind(value), hint)
    return dict(value)
