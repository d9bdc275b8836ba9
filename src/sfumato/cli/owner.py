# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""The owner's commands that declare: init, add."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.answering.table_words import describe_unit, write_dataset_json, write_table_json
from sfumato.cli.declare import SKIP, parse_column, prompt_columns
from sfumato.cli.load import (
    DateFormat,
    Decimal,
    Delimiter,
    Encoding,
    OnError,
    QuotedNewlines,
    Strict,
    drop_missing,
    show_report,
)
from sfumato.cli.pinning import find_snapshot_path, write_reload_command
from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.show import AsJson, is_interactive, print_json, say
from sfumato.shown_amounts import describe_weakness

if TYPE_CHECKING:
    from sfumato.catalog.columns import ColumnDeclaration
    from sfumato.catalog.dataset import Dataset
    from sfumato.ingest.load_report import Loading, LoadReport

CATALOG = "catalog.toml"
ABOUT = """\
# What the owner declares about the data. Nothing here is derived from the data. `sfumato check` validates it.
# Names, bounds, values and limits here are public.

"""
EXAMPLE = """
# A table, as `sfumato add` writes it:
#
# [tables.visits]
# source = "visits.csv"               # relative to this file; or "visits/*.parquet", "clinic.duckdb::visits",
#                                     # or "postgres:public.visits"
# unit_column = "patient_id"          # privacy unit: all rows of one patient; or: unit = "row"; or: unit = "counts"
#                                     # and count_column = "n": each unit of n is one person
# max_rows_per_unit = 10              # contribution bound: 10 rows of one patient count in full
# columns.age = { type = "integer", lower = 0, upper = 120 }
# columns.cost = { type = "real", lower = 0, upper = 500 }
# columns.site = { type = "category", values = ["north", "south"] }
# columns.day = { type = "date", lower = "2020-01-01", upper = "2029-12-31" }
# columns.seen = { type = "datetime", lower = "2020-01-01T00:00:00", upper = "2029-12-31T23:59:59" }
# columns.smoker = { type = "boolean", nullable = false }
#
# Many questions on one budget: accounting = "gdp" (or "zcdp") beside epsilon and delta under [budget].
# A public number of people, under neighbours = "replace-one": people = 400 (unit = "row": rows = 400) in a table.
# An analyst's own limit: [analysts.ann] with epsilon = "1". Names that are not listed are then refused,
# or have the limit of [analysts.default].
"""


def init(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The dataset's folder. It is created if it does not exist.")
    ],
    *,
    name: Annotated[str | None, typer.Option(help="The dataset's name; the folder's by default.")] = None,
    epsilon: Annotated[str, typer.Option(help="The budget.", metavar="E")] = "3",
    delta: Annotated[str, typer.Option(help="Its delta.", metavar="D")] = "1e-6",
    population: Annotated[
        str | None, typer.Option(help="The people whom the budget covers. Datasets about the same people share one.")
    ] = None,
    neighbours: Annotated[str, typer.Option(help="add-remove or replace-one.")] = "add-remove",
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Where the ledger is: a path seen from DIR, or a URL. Datasets about the same people share one.",
            metavar="PATH|URL",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Where data is pinned and asked: duckdb, postgres, or the URL of a PostgreSQL database.",
            metavar="NAME|URL",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Begin a dataset: a folder with a catalog.toml."""
    with refusals(as_json):
        from sfumato.catalog.budget import Budget
        from sfumato.catalog.catalog_errors import build_catalog_error
        from sfumato.catalog.dataset import Dataset
        from sfumato.engines.backend import choose_backend

        place = Path(context.obj) / folder
        budget = Budget(epsilon, delta)
        dataset = Dataset(
            name or place.resolve().name, [], budget, population, neighbours, ledger=ledger, engine=engine
        )
        choose_backend(engine)  # one that does not exist, or lacks its extra, is refused now
        path = place / CATALOG
        if path.exists():
            raise build_catalog_error(
                f"There is a {CATALOG} in {place} already.", "Choose another folder, or edit that file."
            )
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)  # the ledger and the data will be in it
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(ABOUT + _write_text(dataset) + EXAMPLE)
        if as_json:
            print_json({"catalog": str(path), **write_dataset_json(dataset)})
            return
        say(f"Made {path}, with a budget of ε = {epsilon}.")
        if weak := describe_weakness(budget.epsilon):
            say(f"Warning: {weak}", "yellow")
        say(f"Next: sfumato -C {shlex.quote(str(place))} add NAME SOURCE --unit COLUMN", "dim")


def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The table's name in questions.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A .csv or .parquet file, many of one kind (visits/*.parquet), or a table of a DuckDB file "
            "(clinic.duckdb::visits) or of a PostgreSQL database (postgres:public.visits).",
        ),
    ],
    *,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Privacy unit: the column that identifies a person, ROW (each row is one person), or COUNTS(COL) "
            "(each unit of COL is one person).",
            metavar="COL|ROW|COUNTS(COL)",
        ),
    ] = None,
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            help="The table is about nobody: its rows may be shown as they are. Its columns are read from the file.",
        ),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Declare a table of this name anew, and load it. What was spent on it stays spent.",
        ),
    ] = False,
    column: Annotated[
        list[str] | None,
        typer.Option(help="A declared column: age:integer:0:120, city:category:Rome,Oslo.", metavar="NAME:TYPE[:...]"),
    ] = None,
    max_rows: Annotated[
        int, typer.Option(help="Contribution bound: how many rows of one person count in full.", min=1)
    ] = 1,
    max_groups: Annotated[
        int, typer.Option(help="Contribution bound: in how many groups one person counts.", min=1)
    ] = 1,
    unique: Annotated[
        list[str] | None,
        typer.Option(
            help="A key that no two rows of one person share (COL, or COL+COL): joins on it cost less. A load drops "
            "repeats.",
            metavar="COL[+COL]",
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            help="Declare a public number of rows (unit ROW or COUNTS, replace-one): means get smaller margins.", min=1
        ),
    ] = None,
    people: Annotated[
        int | None,
        typer.Option(
            help="Declare a public number of people (unit COL, replace-one): means get smaller margins.", min=1
        ),
    ] = None,
    not_null: Annotated[
        list[str] | None,
        typer.Option(help="Declare a column not nullable: its public midpoint replaces NULL.", metavar="COL"),
    ] = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    date_format: DateFormat = None,
    on_error: OnError = None,
    quoted_newlines: QuotedNewlines = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Declare a table and pin its data. Columns that are not given are asked for, at a terminal."""
    with refusals(as_json):
        from sfumato.catalog.catalog_errors import build_catalog_error
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.catalog.columns import Id
        from sfumato.catalog.counts_unit import read_unit, split_unit
        from sfumato.catalog.dataset import Dataset, Table
        from sfumato.catalog.names import build_unknown_name, find_name
        from sfumato.catalog.text_format import TextFormat
        from sfumato.engines.backend import choose_backend, use_sources_of
        from sfumato.ingest.load_report import Loading, write_count
        from sfumato.ingest.source_columns import list_source_columns
        from sfumato.kernel.neighbours import ROW

        folder = Path(context.obj)
        _check_unit(unit, public, column or [])
        row_unit, count_column = (ROW, None) if unit is None else split_unit(read_unit(unit))
        before = load_catalog(folder)
        old = find_name(name, before.tables)
        if old is not None and not replace:
            hint = "Choose another name; or declare it anew with --replace."
            raise build_catalog_error(f"There is a table {old} already.", hint)
        if old is None and replace:
            raise build_unknown_name("table", name, before.tables, f" in {CATALOG}")
        if old is not None and public and not before.tables[old].public:
            hint = f"If it is about nobody, remove it from {CATALOG} first."
            raise build_catalog_error(f"{old} is private, and --replace does not make it public.", hint)
        reading = TextFormat(
            **drop_missing(
                encoding=encoding,
                delimiter=delimiter,
                decimal=decimal,
                date_format=date_format,
                on_error=on_error,
                quoted_newlines=quoted_newlines,
            )
        )
        written = _write_relative(folder, source)
        columns: dict[str, ColumnDeclaration] = {}
        if unit is not None:
            with use_sources_of(choose_backend(before.engine)):
                columns = _gather_columns(
                    partial(list_source_columns, name, written, folder, reading), count_column or unit, column or [],
                    not_null or [],
                )  # fmt: skip
        if isinstance(row_unit, str) and find_name(row_unit, columns) is None:
            columns = {row_unit: Id(), **columns}
        table = Table(
            old or name, written, row_unit, columns, max_rows, max_groups, rows, people=people, reading=reading,
            count_column=count_column, unique=tuple(tuple(key.split("+")) for key in unique or ()), public=public,
        )  # fmt: skip
        parts = {part.name: getattr(before, part.name) for part in fields(Dataset)}
        after = Dataset(**parts | {"tables": list({**before.tables, table.name: table}.values())})
        alone = _write_text(Dataset(**parts | {"tables": [table], "analysts": {}, "views": {}}))
        lines = alone[alone.index("\n[tables.") :]
        report = _declare(folder, lines, after, table.name, Loading(strict, quiet=as_json), replace)
        if as_json:
            print_json({**write_table_json(table), "load_report": report.as_json()})
            return
        counted = "" if public else f"{write_count(len(columns), 'column')}. "
        done = "Replaced" if replace else "Added"
        say(f"{done} {table.name}: {counted}{describe_unit(table)} The data is pinned as it is now.")
        if replace:
            say("Stored answers about it are no longer reused; the budget that was spent stays spent.", "dim")
        show_report(report, {loaded.table: write_reload_command(folder, loaded.table) for loaded in report})


def _suggest_type(kind: str) -> str:
    if kind.endswith(("INT", "INTEGER")):
        return "integer"
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return "real"
    if kind.startswith(("TIMESTAMP", "MOMENT")):
        return "datetime"
    return {"BOOLEAN": "boolean", "DATE": "date", "DAY(day)": "date"}.get(kind, SKIP)


def _gather_columns(
    there: Callable[[], dict[str, str]], unit: str, given: Sequence[str], not_null: Sequence[str]
) -> "dict[str, ColumnDeclaration]":
    if given:
        found = [parse_column(text, not_null) for text in given]
        columns = dict(found)
        if len(columns) < len(found):
            raise Usage("A column is declared twice.", "Give one --column for each column.")
    else:
        names = {name: _suggest_type(kind) for name, kind in there().items() if name.casefold() != unit.casefold()}
        if not is_interactive():
            options = " ".join(f"--column {name}:..." for name in names)
            raise Usage(
                f"These columns need a declaration: {', '.join(names)}.",
                f"Add {options}; columns that you leave out cannot be asked about.",
            )
        columns = prompt_columns(names, not_null)
    strange = [name for name in not_null if name not in columns]
    if strange:
        raise Usage(f"--not-null {strange[0]}: there is no such column.", f"Declared: {', '.join(columns)}.")
    return columns


def _write_relative(folder: Path, source: str) -> str:
    """The source as a path relative to the dataset's folder; it may be given relative to either folder."""
    from sfumato.ingest.source_files import find_files, is_postgres, split_source, suggest_file

    if is_postgres(source) or find_files(source, folder):
        return source
    if not find_files(source):
        raise Usage(f"There is no file {source}.", suggest_file(source, folder, Path()))
    path, table = split_source(source)
    seen = os.path.relpath(Path(path).resolve(), folder.resolve())
    return seen if table is None else f"{seen}::{table}"


def _check_unit(unit: str | None, public: bool, columns: Sequence[str]) -> None:
    """Refuse a table that says nothing, or two things, about whose rows it holds."""
    if unit is None and not public:
        hint = "Give --unit COL (the id of a person), --unit ROW (each row is one person), or --public (about nobody)."
        raise Usage("Whose rows are these?", hint)
    if unit is not None and public:
        raise Usage("--unit and --public exclude each other.", "A public table is about nobody. Leave one of them out.")
    if public and columns:
        raise Usage("--public reads its columns from the file.", "Leave --column out.")


def _declare(  # noqa: PLR0917 - one caller
    folder: Path, lines: str, wanted: "Dataset", name: str, loading: "Loading", again: bool
) -> "LoadReport":
    """Pin a table, then declare it: at the end, or in its place. The rest of catalog.toml is unchanged.

    A crash leaves both or neither of a new table.
    """
    from sfumato.catalog.catalog_errors import build_catalog_error
    from sfumato.catalog.catalog_file import load_catalog
    from sfumato.catalog.table_edit import replace_section
    from sfumato.engines.backend import choose_backend
    from sfumato.private_files import make_private_folder

    path = folder / CATALOG
    pinned = find_snapshot_path(folder, wanted)
    make_private_folder(pinned.parent)
    before = path.read_bytes()
    text = replace_section(before, name, lines) if again else before.rstrip(b"\r\n") + f"\n{lines}".encode()
    with tempfile.TemporaryDirectory(dir=pinned.parent, prefix="new-") as scratch:
        with (Path(scratch) / CATALOG).open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if load_catalog(Path(scratch)) != wanted:
            place = f"the place of tables.{name} was not found" if again else "the table does not fit at the end"
            raise build_catalog_error(f"{CATALOG}: {place}.", f"Write it there yourself:\n{lines}")
        backend = choose_backend(wanted.engine)
        if again:
            report = backend.prepare(pinned, wanted.tables, folder, only=name, loading=loading).report
        else:
            report = backend.add(pinned, wanted.tables, name, folder, loading)
        shutil.copymode(path, Path(scratch) / CATALOG)
        os.replace(Path(scratch) / CATALOG, path)
        return report


def _write_text(dataset: "Dataset") -> str:
    """The text of a catalog."""
    from sfumato.catalog.catalog_file import write_catalog

    with tempfile.TemporaryDirectory() as scratch:
        write_catalog(dataset, Path(scratch))
        return (Path(scratch) / CATALOG).read_text(encoding="utf-8")
