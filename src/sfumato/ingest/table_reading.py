"""The order in which a source becomes a pinned table. Part of the trusted perimeter: claims K-35, K-50, K-52
and K-78.

What is read is checked first. What was pinned is counted afterwards. The declaration is kept with the rows.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.ingest.count_survey import expand_counts
from sfumato.ingest.counting import is_counted_later
from sfumato.ingest.declared_versions import keep_version
from sfumato.ingest.hidden_names import PEOPLE
from sfumato.ingest.load_report import CountsReport
from sfumato.ingest.multiplicities import keep_multiplicities
from sfumato.ingest.pinned_rows import check_public_counts, find_lost_rows, read_row_by_row, write_rows
from sfumato.ingest.public import describe_public, keep_facts
from sfumato.ingest.readers import check_readable, open_source
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.unique_rows import drop_repeats
from sfumato.ingest.unit_rows import join_owners

Report = TypeVar("Report")
ReportRows = Callable[[Table, SourceRelation, CountsReport | None], Report]


def read_table(  # noqa: PLR0917 - one caller
    connection: duckdb.DuckDBPyConnection,
    declared: Table,
    data: object,
    folder: Path | None,
    show_step: Callable[[str], None],
    report_rows: ReportRows[Report],
) -> Report:
    """Read a source into a table of the declared names and types, and report on its rows."""
    counts = None
    with open_source(connection, declared, data, folder) as found:
        check_readable(connection, declared, found)
        table = describe_public(connection, declared, found) if declared.public else declared
        source = found if table.unit_through is None else join_owners(connection, table, found)
        with read_row_by_row(connection):
            if table.count_column is not None:
                source, counts = expand_counts(connection, table, found)
            source = replace(source, doubtful=() if is_counted_later(table, found) else None)
            write_rows(connection, table, source, show_step)
            lost = find_lost_rows(connection, table, found if counts is None else source)
            drop_repeats(connection, table)
            report = report_rows(table, source, counts)
        connection.execute(f"DROP TABLE IF EXISTS {PEOPLE}")
    if lost is not None:  # raised here, so that a source that has changed is refused for that
        raise lost
    if table.public:
        keep_facts(connection, table)
        keep_multiplicities(connection, table)
    check_public_counts(connection, table)
    keep_version(connection, declared)
    return report
