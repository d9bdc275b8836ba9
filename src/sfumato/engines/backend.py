"""Where a dataset's tables are pinned, and which engine reads them there. The catalog names it: engine = "postgres"."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Protocol

from sfumato.catalog.catalog_errors import build_catalog_error
from sfumato.catalog.dataset import Table
from sfumato.engines.engine import Engine
from sfumato.ingest.load_report import AS_USUAL, Loading, LoadReport
from sfumato.ingest.postgres_server import use_server
from sfumato.ingest.snapshot_file import Prepared

DUCKDB = "duckdb"
FOLDER = ".sfumato"
# the package of each engine; its function read_declared makes a Backend of what the catalog says
PACKAGES = {"duckdb": DUCKDB, "postgres": "postgres", "postgresql": "postgres", "spark": "spark", "sc": "spark"}


class PinnedEngine(Engine, Protocol):
    """An engine over pinned tables. `tables`: public ones have what was read from them."""

    tables: dict[str, Table]
    versions: dict[str, str]
    load_report: LoadReport | None  # only where this process read the sources

    def content_digest(self, table: str, key: bytes) -> str:
        """A keyed digest of a pinned table: the version of data that has no other."""
        ...


class Backend(Protocol):
    """Pins tables, and opens pinned tables. `prepare`, `add` and `open` are about a dataset with a folder."""

    @property
    def snapshot_name(self) -> str:
        """The file, in the folder's FOLDER, that holds the pinned tables or says where they are."""
        ...

    def of_tables(self, tables: Mapping[str, tuple[Table, object]], loading: Loading = AS_USUAL) -> PinnedEngine:
        """Pin tables without a folder; `load_report` says what that did to their values."""
        ...

    def prepare(
        self,
        path: Path,
        tables: Mapping[str, Table],
        folder: Path,
        *,
        only: str | None = None,
        everything: bool = False,
        loading: Loading = AS_USUAL,
    ) -> Prepared:
        """Pin the tables of a catalog that have changed, or one, or all: the owner's step. Each is a new version."""
        ...

    def add(
        self, path: Path, tables: Mapping[str, Table], newest: str, folder: Path, loading: Loading = AS_USUAL
    ) -> LoadReport:
        """Pin a table that the catalog is about to hold; the others keep their versions."""
        ...

    def open(self, path: Path, tables: Mapping[str, Table]) -> PinnedEngine:
        """Open pinned tables, to be read only."""
        ...


def choose_backend(declared: str | None) -> Backend:
    """The backend that a catalog declares: a name, or the URL of a server. Without one: DuckDB."""
    name = re.split(r"://|[?]", declared or DUCKDB)[0]
    if name not in PACKAGES:
        names = ", ".join(sorted({*PACKAGES.values()}))
        hint = f"Write one of: {names}; or postgresql://user@host/database, spark://host:7077 or sc://host:15002."
        raise build_catalog_error("dataset: there is no such engine.", hint)
    backend: Backend = import_module(f"sfumato.engines.{PACKAGES[name]}").read_declared(declared or DUCKDB)
    return backend


def choose_for_data(data: object) -> Backend:
    """The backend of a frame or file without a folder: a DataFrame of Spark is asked where it is, others in DuckDB."""
    if not is_spark_frame(data):
        return choose_backend(None)
    backend: Backend = import_module("sfumato.engines.spark").choose(data.sparkSession)  # type: ignore[attr-defined]
    return backend


def is_spark_frame(data: object) -> bool:
    """Is it a DataFrame of Spark, classic or Connect?"""
    names = [(base.__module__.startswith("pyspark.sql"), base.__name__) for base in type(data).__mro__]
    return (True, "DataFrame") in names


@contextmanager
def use_sources_of(backend: Backend) -> Iterator[None]:
    """Read sources that name no server (postgres:schema.table) from the backend's, if it is one."""
    address = getattr(backend, "address", None)
    with use_server(address) if isinstance(address, str) else nullcontext():
        yield


def find_snapshot(folder: Path, backend: Backend) -> Path:
    """The file of a dataset's pinned tables."""
    return folder / FOLDER / backend.snapshot_name
