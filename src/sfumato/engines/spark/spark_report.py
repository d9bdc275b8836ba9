"""The load report of a table that Spark prepares, from counts over all rows. No value of a row is fetched."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import pyarrow as pa

from sfumato.catalog.columns import Boolean, Category
from sfumato.catalog.dataset import Table
from sfumato.engines.spark.batch_parsing import Batches, run_on_batches
from sfumato.engines.spark.rows_of_units import Frame
from sfumato.engines.spark.spark_columns import quote_name
from sfumato.ingest.count_survey import refuse_too_many, report_counts, select_outcomes
from sfumato.ingest.counting import pack_outcomes, report_columns
from sfumato.ingest.hidden_names import ROWS_OF_UNIT, TIMES, UNIT
from sfumato.ingest.load_report import ColumnReport, CountedLater, CountsReport, PeopleReport, TableReport
from sfumato.ingest.pinned_rows import list_kept
from sfumato.ingest.problems import add_problems
from sfumato.ingest.source_relation import SourceRelation
from sfumato.kernel.neighbours import ROW


@dataclass(frozen=True, slots=True)
class OutcomesOfCounts:
    """The function that says what became of each record's count, on the executors."""

    table: Table
    names: Sequence[str]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        return run_on_batches(self.table, self.names, batches, self.write_query, self.schema)

    def write_query(self, source: SourceRelation) -> str:
        return select_outcomes(self.table, source)


def survey_counts(taken: Frame, table: Table, names: Sequence[str]) -> CountsReport:
    """What the counts of a counts table are. Too many people are refused."""
    schema = pa.schema([("outcome", pa.string()), (TIMES, pa.int64())])
    outcomes = taken.mapInArrow(OutcomesOfCounts(table, names, schema), f"outcome STRING, {TIMES} BIGINT")
    found = outcomes.groupBy("outcome").agg({"*": "count", TIMES: "sum"}).toDF("outcome", "records", "people")
    counts = {row["outcome"]: (int(row["records"]), int(row["people"])) for row in found.collect()}
    report = report_counts(table, counts)
    refuse_too_many(table, report)
    return report


def count_people(rows: Frame, table: Table, pinned: int) -> PeopleReport:
    """How the rows are spread over people."""
    most, groups = table.max_rows_per_unit, table.max_groups_per_unit
    if table.unit is ROW:
        return PeopleReport(pinned, 1, 1, 1, 1, 1, 0)
    count = quote_name(ROWS_OF_UNIT)
    spread = rows.groupBy(ROWS_OF_UNIT).count().selectExpr(count, f"`count` DIV {count} AS people").collect()
    sizes = sorted((int(row[0]), int(row[1])) for row in spread)
    people = sum(number for _, number in sizes)
    largest = sizes[-1][0] if sizes else 0
    over = sum(number for size, number in sizes if size > most)
    names = [name for name, declared in table.columns.items() if isinstance(declared, (Category, Boolean))]
    counted = _count_over_groups(rows, names, groups) if largest > groups and names else [0] * len(names)
    middle, most_have = (_find_quantile(sizes, people, share) for share in (0.5, 0.95))
    in_groups = CountedLater.of(zip(names, counted, strict=True))
    return PeopleReport(people, middle, most_have, largest, most, groups, over, in_groups)


def _find_quantile(sizes: Sequence[tuple[int, int]], people: int, share: float) -> int:
    """The least number of rows that so large a share of the people does not exceed."""
    wanted, reached = max(1, ceil(share * people)), 0
    for size, number in sizes:
        reached += number
        if reached >= wanted:
            return size
    return 0


def _count_over_groups(rows: Frame, names: Sequence[str], groups: int) -> list[int]:
    """For each column of known values, the people with more of them than groups; NULL is a value too."""
    held = [
        f"SIZE(COLLECT_SET({quote_name(name)})) + MAX(CAST({quote_name(name)} IS NULL AS INT)) AS g{place}"
        for place, name in enumerate(names)
    ]
    several = rows.where(f"{quote_name(ROWS_OF_UNIT)} > {groups}")
    of_units = several.selectExpr(quote_name(UNIT), *map(quote_name, names)).groupBy(UNIT)
    expressions = [_parse(rows, text) for text in held]
    over = [f"COUNT_IF(g{place} > {groups})" for place, _ in enumerate(names)]
    return [int(count) for count in of_units.agg(*expressions).selectExpr(*over).collect()[0]]


def _parse(rows: Frame, text: str) -> object:
    """An expression as a column: Connect's if the frame is one of Connect's."""
    if type(rows).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect.functions import expr  # noqa: PLC0415 - an optional package
    else:
        from pyspark.sql.functions import expr  # noqa: PLC0415
    return expr(text)


def report_table(
    rows: Frame,
    table: Table,
    people: PeopleReport,
    counts: CountsReport | None,
    *,
    records: int,
    owned: int,
    pinned: int,
) -> TableReport:
    """The report, with its warnings; examples of lost values are not fetched.

    `records` are those of the source, `owned` the rows of units, and `pinned` those that stay.
    """
    columns = {name: report for name, report in _count_outcomes(rows, table, pinned).items() if name != table.unit}
    if table.unit is ROW:
        reported = tuple(column for name, column in columns.items() if name != table.count_column)
        report = TableReport(table.name, records, 0, 0, pinned, reported, people, counts=counts)
    else:
        if isinstance(table.unit, str):
            columns = {table.unit: ColumnReport(table.unit, "id", pinned), **columns}
        reported = tuple(columns[name] for name in table.columns)
        without, repeated = records - owned, owned - pinned
        report = TableReport(table.name, records, 0, without, pinned, reported, people, repeated=repeated)
    return add_problems(report, table, lambda *_, **__: [])


def _count_outcomes(rows: Frame, table: Table, pinned: int) -> dict[str, ColumnReport]:
    kept = list_kept(table)
    counted = [
        (number, int(digits), int(count))
        for number, column in enumerate(pack_outcomes(kept))
        for digits, count in rows.groupBy(column).count().collect()
    ]
    return report_columns(kept, pinned, counted)
