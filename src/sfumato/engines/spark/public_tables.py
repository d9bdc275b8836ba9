"""Public tables on Spark: read through this process, by the code that reads frames. Their rows belong to nobody."""

from sfumato.catalog.dataset import Table
from sfumato.engines.spark.own_session import Session
from sfumato.engines.spark.rows_of_units import Frame
from sfumato.engines.spark.spark_columns import list_pinned, write_arrow_schema, write_spark_schema
from sfumato.ingest.connections import connect_to_pin
from sfumato.ingest.load_report import Loading, TableReport
from sfumato.ingest.public import add_facts
from sfumato.ingest.snapshot import pin
from sfumato.ingest.sql_quoting import quote

QUIET = Loading(quiet=True)


def prepare_public(session: Session, table: Table, frame: Frame) -> tuple[Table, Frame, TableReport]:
    """The table with what was read from it, its rows in the owner's session, and the load report."""
    with connect_to_pin() as connection:
        report = pin(connection, table, frame.toArrow(), None, QUIET)
        described = add_facts(connection, {table.name: table})[table.name]
        columns = list_pinned(described)
        names = ", ".join(map(quote, columns))
        rows = connection.sql(f"SELECT {names} FROM {quote(table.name)}").to_arrow_table()
    made = session.createDataFrame(rows.cast(write_arrow_schema(columns)), write_spark_schema(columns))
    return described, made, report
