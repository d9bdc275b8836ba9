# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""The owner's commands about pinned data: check, prepare."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.answering.table_words import describe_bounds, describe_unit, write_dataset_json, write_table_json
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
from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.show import AsJson, print_json, print_table, say, working

if TYPE_CHECKING:
    from sfumato.catalog.dataset import Dataset
    from sfumato.ingest.snapshot_file import Pinning, Prepared


def check(context: typer.Context, as_json: AsJson = False) -> None:
    """Is the catalog valid, and is the pinned data up to date? Shows tables, units, bounds and changed sources."""
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.engines.backend import choose_backend, use_sources_of
        from sfumato.ingest.snapshot_file import compare_pinned

        folder = Path(context.obj)
        dataset = load_catalog(folder)
        states: dict[str, Pinning] = {}
        pinned = find_snapshot_path(folder, dataset)
        with use_sources_of(choose_backend(dataset.engine)):
            if pinned.exists():
                with working("Comparing the sources with the pinned data"):
                    states = compare_pinned(pinned, dataset.tables, folder)
            _check_sources(folder, dataset, states)
        if as_json:
            shown = write_dataset_json(dataset)
            for table in shown["tables"]:
                table["pinned"] = _write_state_json(states.get(table["name"]))
            print_json(shown)
            return
        budget = ", ".join(f"{name} = {text}" for name, text in write_dataset_json(dataset)["budget"].items())
        say(f"{dataset.name}: {budget}, for {dataset.population}; neighbours: {dataset.neighbours.value}.", "bold")
        if not dataset.tables:
            say("No tables yet: sfumato add NAME SOURCE --unit COLUMN")
        for table in dataset.tables.values():
            say(f"\n{table.name} ({table.source}). {describe_unit(table)}")
            described = write_table_json(table)["columns"]
            rows = [
                [column["name"], column["type"], describe_bounds(column), "yes" if column["nullable"] else "no"]
                for column in described
            ]
            if rows:
                print_table(["column", "type", "bounds or values", "nullable"], rows)
            else:
                say("Its columns are read from its source.")
            state = states.get(table.name)
            text, style = _state(state)
            say(text, style)
        if any(state.stale for state in states.values()):
            say("\nAnswers are about the pinned data. To load what has changed: sfumato prepare", "yellow")


def prepare(
    context: typer.Context,
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="Load this table again, whether it has changed or not.")
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Load every table again.")] = False,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    date_format: DateFormat = None,
    on_error: OnError = None,
    quoted_newlines: QuotedNewlines = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Load the tables whose source or declaration has changed, each as a new version of the data.

    Options of reading change the catalog, and need a TABLE.
    """
    with refusals(as_json):
        from sfumato.catalog.catalog_errors import build_catalog_error
        from sfumato.catalog.catalog_file import load_catalog, replace_file
        from sfumato.catalog.catalog_keys import FILE
        from sfumato.catalog.names import build_unknown_name, find_name
        from sfumato.catalog.table_edit import edit_reading
        from sfumato.engines.backend import choose_backend
        from sfumato.ingest.load_report import Loading

        folder = Path(context.obj)
        dataset = load_catalog(folder)
        if not dataset.tables:
            raise build_catalog_error("There is no table to pin.", "Add one: sfumato add NAME SOURCE --unit COLUMN")
        options = drop_missing(
            encoding=encoding,
            delimiter=delimiter,
            decimal=decimal,
            date_format=date_format,
            on_error=on_error,
            quoted_newlines=quoted_newlines,
        )
        if table is not None and everything:
            raise Usage("A table and --all exclude each other.", "Give one of the two.")
        if options and table is None:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in options)
            raise Usage(f"{flags}: for which table?", "Name it: sfumato prepare TABLE ...")
        only = None
        if table is not None:
            only = find_name(table, dataset.tables)
            if only is None:
                raise build_unknown_name("table", table, dataset.tables, f" in {FILE}")
        text = None
        if only is not None and options:
            text, dataset = edit_reading(folder, only, options)
        done = choose_backend(dataset.engine).prepare(
            find_snapshot_path(folder, dataset), dataset.tables, folder, only=only, everything=everything,
            loading=Loading(strict, quiet=as_json),
        )  # fmt: skip
        if text is not None:
            replace_file(folder / FILE, text)
        if as_json:
            print_json(_write_prepared_json(dataset, done))
            return
        _show_prepared(folder, dataset, done)


def _show_prepared(folder: Path, dataset: "Dataset", done: "Prepared") -> None:
    rows = []
    for table in dataset.tables.values():
        kept = "unchanged" if table.name not in done.gone else "its source is missing: the pinned data stays"
        rows.append(
            [table.name, str(table.source), f"loaded: {done.read[table.name]}" if table.name in done.read else kept]
        )
    print_table(["table", "source", "pinned data"], rows)
    for name in done.removed:
        say(f"Removed the pinned data of {name}, which the catalog no longer declares.")
    if not done.read:
        say("No source and no declaration has changed. To load a table anyway: sfumato prepare TABLE")
        return
    show_report(done.report, {name: write_reload_command(folder, name) for name in done.read})
    many = len(done.read) > 1
    say(f"\n{'The loaded tables are' if many else 'The loaded table is'} a new version of the data.")
    say("Stored answers about it are no longer reused; the budget that was spent stays spent.", "dim")


def write_reload_command(folder: Path, table: str) -> str:
    """The command line that loads a table again."""
    place = "" if folder == Path() else f"-C {shlex.quote(str(folder))} "
    return f"sfumato {place}prepare {shlex.quote(table)}"


def find_snapshot_path(folder: Path, dataset: "Dataset") -> Path:
    """The file of a dataset's pinned data."""
    from sfumato.engines.backend import choose_backend, find_snapshot

    return find_snapshot(folder, choose_backend(dataset.engine))


def _write_prepared_json(dataset: "Dataset", done: "Prepared") -> dict[str, Any]:
    shown = ("name", "source", "public", "unit", "max_rows_per_unit", "max_groups_per_unit")
    tables = [
        {
            **{key: value for key, value in write_table_json(table).items() if key in shown},
            "loaded": table.name in done.read,
            "why": done.read.get(table.name),
            "source_gone": table.name in done.gone,
        }
        for table in dataset.tables.values()
    ]
    return {"tables": tables, "removed": list(done.removed), "load_report": done.report.as_json()}


def _state(state: "Pinning | None") -> tuple[str, str]:
    """Whether the source changed since it was pinned: a sentence and its style."""
    from sfumato.ingest.source_state import SourceStatus

    if state is None or not state.pinned:
        return "Its data is not pinned yet. To load it: sfumato prepare", "yellow"
    if state.stale:
        return f"Since it was pinned, {state.why}.", "yellow"
    if state.source is SourceStatus.GONE:
        return "Its source is missing. The pinned data is complete without it.", "yellow"
    return "The source has not changed since it was pinned.", "dim"


def _write_state_json(state: "Pinning | None") -> dict[str, Any]:
    if state is None or not state.pinned:
        return {"pinned": False, "declaration_changed": None, "source": None, "changed_files": []}
    from sfumato.ingest.source_state import SourceStatus

    changed = list(state.files) if state.source is SourceStatus.CHANGED else []
    return {
        "pinned": True,
        "declaration_changed": not state.same_declaration,
        "source": state.source.value,
        "changed_files": changed,
    }


def _check_sources(folder: Path, dataset: "Dataset", states: "dict[str, Pinning]") -> None:
    """Refuse a table that is not pinned if its source is missing or lacks a declared column. Only names are read."""
    from sfumato.ingest.source_columns import list_source_columns
    from sfumato.ingest.source_refusals import build_source_error, refuse_missing_columns

    for table in dataset.tables.values():
        if table.name in states and states[table.name].pinned:
            continue
        if table.source is None:
            raise build_source_error(table.name, "there is no source.", 'For example: source = "visits.csv".')
        refuse_missing_columns(
            table.name, list(table.columns), list_source_columns(table.name, table.source, folder, table.reading)
        )
