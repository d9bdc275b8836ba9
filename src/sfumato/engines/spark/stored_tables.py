"""Where prepared tables are: in the memory of the cluster, or as Parquet files where the owner says.

Part of the trusted perimeter: claim K-35.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as quote_path

from sfumato.engines.spark.own_session import Session
from sfumato.engines.spark.rows_of_units import Frame
from sfumato.kernel.entropy import SYSTEM

GLOBAL = "spark.sql.globalTempDatabase"


def make_random_name(digits: int = 16) -> str:
    """A name that no other engine has."""
    return str(SYSTEM.take(digits // 2).tobytes().hex())


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A prepared table: a path of Parquet files, or a view that all sessions of the application see."""

    place: str
    is_path: bool

    def open(self, session: Session) -> Frame:
        """The table, in a session."""
        return session.read.parquet(self.place) if self.is_path else session.table(self.place)

    def drop(self, session: Session) -> None:
        """Free the memory. Files stay: later processes read them."""
        if not self.is_path:
            session.catalog.uncacheTable(self.place)
            session.catalog.dropGlobalTempView(self.place.split(".", 1)[1])


def store_table(own: Session, frame: Frame, table: str, path: str | None) -> StoredTable:
    """Write a frame as files below a path, in a folder of its own; or keep it in the cluster's memory and disks.

    A cached table is made again from its source where an executor is lost.
    """
    name = make_random_name()
    if path is not None:
        place = f"{path.rstrip('/')}/{quote_path(table, safe='')}-{name}"
        frame.write.parquet(place)
        return StoredTable(place, is_path=True)
    view = f"sfumato_{name}"
    frame.createGlobalTempView(view)
    stored = StoredTable(f"{own.conf.get(GLOBAL, 'global_temp')}.{view}", is_path=False)
    own.catalog.cacheTable(stored.place)
    return stored


def count_rows(frame: Frame, *conditions: str) -> list[int]:
    """The number of rows, and of those that meet each condition: one pass."""
    counts = [f"COUNT_IF({condition})" for condition in conditions]
    row: Any = frame.selectExpr("COUNT(*)", *counts).collect()[0]
    return [int(count) for count in row]


def number_columns(frame: Frame, places: Sequence[int]) -> Frame:
    """Columns of a frame by their places, as c0, c1, ...: names that differ in case only cannot be mixed up."""
    numbered = frame.toDF(*(f"s{place}" for place, _ in enumerate(frame.columns)))
    return numbered.selectExpr(*(f"s{source} AS c{place}" for place, source in enumerate(places)))
