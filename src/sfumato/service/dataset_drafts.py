"""Datasets that an owner is registering: what is declared so far, in a folder that only the service reads.

A draft's folder has a random name and becomes the dataset's folder, so that no name that somebody typed is ever part
of a path. Bounds and values come from the owner, never from the data. Only names of columns are read from the file.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO

from sfumato.answering.desk import Desk
from sfumato.answering.preview import Preview, preview
from sfumato.answers.disclosure import Signer
from sfumato.catalog.budget import Budget
from sfumato.catalog.catalog_file import write_catalog
from sfumato.catalog.columns import ColumnDeclaration, Id
from sfumato.catalog.counts_unit import read_unit, split_unit
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import CatalogError, InvalidParameter, PermissionDenied
from sfumato.ingest.load_report import Loading
from sfumato.ingest.source_columns import list_source_columns
from sfumato.kernel.entropy import SYSTEM
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.number_arguments import read_whole_number
from sfumato.private_files import make_private_folder
from sfumato.service.column_forms import read_column
from sfumato.service.upload_limits import refuse_growing_parquet

STATE, ENDINGS = "draft.json", (".csv", ".parquet")
MOST_FILES = 500
STEPS = ("source", "people", "columns", "budget", "review")
UNKNOWN = PermissionDenied("no-draft", "There is no such dataset being registered.", "Begin again at Register.")
ROW = "ROW"


@dataclass(frozen=True, slots=True)
class Draft:
    """What an owner has declared so far."""

    id: str
    dataset: str
    table: str
    source: str = ""
    found: dict[str, str] = field(default_factory=dict)  # the columns of the file, and their types in it
    unit: str = ""
    neighbours: str = "add-remove"
    max_rows: str = "1"
    max_groups: str = "1"
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    report: str = ""  # of the load: exact, for the owner only
    epsilon: str = "3"
    delta: str = "1e-6"
    accounting: str = "basic"

    def count_steps(self) -> int:
        """How many steps are done."""
        done = (self.source, self.unit, self.report, self.report)
        return next((place for place, answer in enumerate(done) if not answer), len(done))

    def make_table(self) -> Table:
        """The table as it is declared so far."""
        unit, count_column = split_unit(read_unit(self.unit or ROW))
        columns: dict[str, ColumnDeclaration] = {
            name: read_column(name, given) for name, given in self.columns.items() if given.get("kind")
        }
        if isinstance(unit, str) and unit not in columns:
            columns = {unit: Id(), **columns}
        rows, groups = (read_whole_number(_to_int(text, name), name, 1)
                        for name, text in (("max_rows", self.max_rows), ("max_groups", self.max_groups)))  # fmt: skip
        return Table(self.table, self.source, unit, columns, rows, groups, count_column=count_column)

    def make_dataset(self) -> Dataset:
        """The dataset as it is declared so far."""
        budget = Budget(self.epsilon, self.delta or 0, self.accounting)
        return Dataset(self.dataset, [self.make_table()], budget, None, self.neighbours)

    def write_toml(self) -> str:
        """The catalog that will be written."""
        with tempfile.TemporaryDirectory() as scratch:
            write_catalog(self.make_dataset(), Path(scratch))
            return (Path(scratch) / "catalog.toml").read_text(encoding="utf-8")

    def preview(self, sql: str, epsilon: str, assume: Mapping[str, float] | None = None) -> Preview:
        """What a question would cost under these declarations. It reads no data: the ledger is in memory."""
        dataset = self.make_dataset()
        ledger = Ledger.create(None, dataset.population, Limit(dataset.budget.loss))
        desk = Desk(dataset, _NO_ENGINE, ledger, {self.table: "1"}, Signer())  # type: ignore[arg-type]  # unused
        try:
            return preview(desk, sql, epsilon, assume=assume)
        finally:
            ledger.close()


_NO_ENGINE = object()


class Drafts:
    """The drafts and the registered datasets of a service, each in its own folder."""

    def __init__(self, folder: Path, sources: str, most_upload_bytes: int) -> None:
        self.folder = folder
        self._most_upload_bytes = most_upload_bytes
        self._sources = Path(sources).resolve() if sources else None

    def begin(self, dataset: str, table: str) -> Draft:
        """Begin a dataset. Names that a catalog cannot hold are refused now."""
        made = Draft(SYSTEM.take(12).tobytes().hex(), dataset.strip(), table.strip())
        Dataset(made.dataset, [Table(made.table, "data.csv", split_unit(read_unit(ROW))[0], {})], Budget(1))
        make_private_folder(self.folder)
        make_private_folder(self.folder / made.id)
        return self.save(made)

    def find(self, name: str) -> Draft:
        """A draft by its id."""
        if not (name.isascii() and name.isalnum() and (self.folder / name / STATE).is_file()):
            raise UNKNOWN
        return Draft(**json.loads((self.folder / name / STATE).read_text(encoding="utf-8")))

    def list_drafts(self) -> list[Draft]:
        """All drafts."""
        found = sorted(self.folder.glob(f"*/{STATE}")) if self.folder.is_dir() else []
        return [self.find(path.parent.name) for path in found]

    def save(self, draft: Draft) -> Draft:
        """Keep a draft."""
        place = self.folder / draft.id / STATE
        place.with_suffix(".new").write_text(json.dumps(asdict(draft)), encoding="utf-8")
        place.with_suffix(".new").replace(place)
        return draft

    def discard(self, draft: Draft) -> None:
        """Delete a draft, and the file that was uploaded for it."""
        shutil.rmtree(self.folder / draft.id)

    def list_sources(self) -> list[str]:
        """The files that may be registered by their path."""
        if self._sources is None:
            return []
        found = (path for path in sorted(self._sources.rglob("*")) if path.suffix.lower() in ENDINGS and path.is_file())
        return [str(path.relative_to(self._sources)) for path, _ in zip(found, range(MOST_FILES), strict=False)]

    def use_path(self, draft: Draft, name: str) -> Draft:
        """Take the data from a file of the folder of sources. A path that leads out of it is refused."""
        place = None if self._sources is None or "\0" in name else (self._sources / name).resolve()
        inside = place is not None and self._sources is not None and place.is_relative_to(self._sources)
        if place is None or not inside or not place.is_file() or place.suffix.lower() not in ENDINGS:
            hint = "Choose one of the listed files, or upload one. The operator names the folder with --sources."
            raise InvalidParameter("path", "must be a CSV or Parquet file in the folder of sources", "another", hint)
        return self._keep_source(draft, str(place), self._list_names(draft, str(place)))

    def use_upload(self, draft: Draft, file_name: str, content: IO[bytes]) -> Draft:
        """Take the data from an uploaded file. Only the ending of its name is used."""
        ending = Path(file_name).suffix.lower()
        if ending not in ENDINGS:
            raise InvalidParameter(
                "file", "must be a CSV or Parquet file", "another", "Its name ends in .csv or .parquet."
            )
        folder = self.folder / draft.id
        new = folder / f"upload{ending}"  # an earlier upload stays until this one is read
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                shutil.copyfileobj(content, file)
            if ending == ".parquet":
                refuse_growing_parquet(new, self._most_upload_bytes)
            found = self._list_names(draft, new.name)
            for earlier in folder.glob("source.*"):
                earlier.unlink()
            new.replace(folder / f"source{ending}")
        finally:
            new.unlink(missing_ok=True)
        return self._keep_source(draft, f"source{ending}", found)

    def _list_names(self, draft: Draft, source: str) -> dict[str, str]:
        found = list_source_columns(draft.table, source, self.folder / draft.id)
        if not found:
            raise CatalogError("catalog", "The file has no columns.", "A CSV file has a header line.")
        return found

    def _keep_source(self, draft: Draft, source: str, found: dict[str, str]) -> Draft:
        return self.save(replace(draft, source=source, found=found, unit="", columns={}, report=""))

    def check_load(self, draft: Draft) -> Draft:
        """Load the data with the declarations, and keep the report: exact, for the owner only."""
        folder = self.folder / draft.id
        dataset = draft.make_dataset()
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            done = DuckDBEngine.prepare(
                Path(scratch) / "snapshot.duckdb", dataset.tables, folder, everything=True, loading=Loading(quiet=True)
            )
        return self.save(replace(draft, report=str(done.report)))

    def finish(self, draft: Draft) -> Path:
        """Write the catalog. The folder is a dataset from now on."""
        folder = self.folder / draft.id
        write_catalog(draft.make_dataset(), folder)
        return folder

    def forget(self, draft: Draft) -> None:
        """Remove what was only needed to register."""
        (self.folder / draft.id / STATE).unlink(missing_ok=True)


def _to_int(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(name, "must be a whole number", "something else") from None
