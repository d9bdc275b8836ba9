"""Has a source changed since it was pinned? The sizes and digests of its files, as the snapshot keeps them.

Only the owner's commands look at sources. An answer never does, so it cannot tell that one has changed.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from sfumato.errors import CatalogError
from sfumato.ingest.server_sources import digest_server_table
from sfumato.ingest.source_files import DATABASE, find_files, is_postgres


class SourceStatus(Enum):
    """A table's source, beside what was pinned."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    GONE = "gone"  # its files are not there, so nothing can be compared


@dataclass(frozen=True, slots=True)
class FileState:
    """One file of a source. `name` is its path as seen from the dataset's folder."""

    name: str
    size: int
    modified_ns: int
    digest: str


@dataclass(frozen=True, slots=True)
class SourceState:
    """What the catalog named as the source, and its files."""

    source: str
    files: tuple[FileState, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "SourceState":
        parts = json.loads(text)
        return cls(parts["source"], tuple(FileState(**entry) for entry in parts["files"]))


def read_state(source: str, folder: Path) -> SourceState:
    """The files of a source, as they are now."""
    if is_postgres(source):
        name, rows, digest = digest_server_table(source)
        return SourceState(source, (FileState(name, rows, 0, digest),))
    return SourceState(source, tuple(_read_file_state(file, folder) for file in _list_files(source, folder)))


def is_unchanged(state: SourceState, folder: Path) -> bool:
    """Whether the files still have the sizes and times that they had when their digests were taken."""
    if is_postgres(state.source):
        return True  # its rows were read in one transaction
    was = [(file.name, file.size, file.modified_ns) for file in state.files]
    found = [(_name_file(file, folder), file.stat()) for file in _list_files(state.source, folder)]
    return was == [(name, state.st_size, state.st_mtime_ns) for name, state in found]


def compare_state(before: SourceState, source: str, folder: Path) -> tuple[SourceStatus, tuple[str, ...]]:
    """Whether a source is as it was, and the files that are not. A file of the same size is compared by its digest."""
    if is_postgres(source):
        return _compare_table(before, source)
    if not find_files(source, folder):
        return SourceStatus.GONE, tuple(file.name for file in before.files)
    was = {file.name: file for file in before.files}
    now = {_name_file(file, folder): file for file in _list_files(source, folder)}
    differing = [
        name
        for name in sorted({*was, *now})
        if name not in was or name not in now or not _is_same(was[name], now[name])
    ]
    if before.source != source and not differing:  # another table of the same file
        differing = sorted(now)
    return (SourceStatus.CHANGED if differing else SourceStatus.UNCHANGED), tuple(differing)


def _compare_table(before: SourceState, source: str) -> tuple[SourceStatus, tuple[str, ...]]:
    """The same for a table of a database. One that cannot be read now is gone: its pinned data stays."""
    try:
        now = read_state(source, Path())
    except CatalogError:
        return SourceStatus.GONE, tuple(file.name for file in before.files)
    same = now.files == before.files
    return (SourceStatus.UNCHANGED if same else SourceStatus.CHANGED), () if same else (now.files[0].name,)


def _is_same(was: FileState, path: Path) -> bool:
    return path.stat().st_size == was.size and _hash_file(path) == was.digest


def _list_files(source: str, folder: Path) -> tuple[Path, ...]:
    """The files of a source; those of a DuckDB file include what it has not merged yet."""
    files = find_files(source, folder)
    if DATABASE.fullmatch(source):
        logs = [file.with_name(f"{file.name}.wal") for file in files]
        return (*files, *(file for file in logs if file.is_file()))
    return files


def _read_file_state(path: Path, folder: Path) -> FileState:
    found = path.stat()
    return FileState(_name_file(path, folder), found.st_size, found.st_mtime_ns, _hash_file(path))


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _name_file(path: Path, folder: Path) -> str:
    return os.path.relpath(path.absolute(), folder.absolute())
