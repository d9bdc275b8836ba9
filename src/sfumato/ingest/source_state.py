"""Has a source changed since it was pinned? The sizes and digests of its files, as the snapshot keeps them.

Only the owner's commands look at sources. An answer never does, so it cannot tell that one has changed.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from sfumato.ingest.source_files import DATABASE, find_files


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
        return cls(parts["source"], tuple(FileState(**each) for each in parts["files"]))


def state_of(source: str, folder: Path) -> SourceState:
    """The files of a source, as they are now."""
    return SourceState(source, tuple(_file_state(each, folder) for each in _files(source, folder)))


def unchanged_while_read(state: SourceState, folder: Path) -> bool:
    """Whether the files still have the sizes and times that they had when their digests were taken."""
    was = [(each.name, each.size, each.modified_ns) for each in state.files]
    found = [(_name(each, folder), each.stat()) for each in _files(state.source, folder)]
    return was == [(name, each.st_size, each.st_mtime_ns) for name, each in found]


def compared(before: SourceState, source: str, folder: Path) -> tuple[SourceStatus, tuple[str, ...]]:
    """Whether a source is as it was, and the files that are not. A file of the same size is compared by its digest."""
    if not find_files(source, folder):
        return SourceStatus.GONE, tuple(each.name for each in before.files)
    was = {each.name: each for each in before.files}
    now = {_name(each, folder): each for each in _files(source, folder)}
    differing = [
        name for name in sorted({*was, *now}) if name not in was or name not in now or not _same(was[name], now[name])
    ]
    if before.source != source and not differing:  # another table of the same file
        differing = sorted(now)
    return (SourceStatus.CHANGED if differing else SourceStatus.UNCHANGED), tuple(differing)


def _same(was: FileState, path: Path) -> bool:
    return path.stat().st_size == was.size and _digest(path) == was.digest


def _files(source: str, folder: Path) -> tuple[Path, ...]:
    """The files of a source; those of a DuckDB file include what it has not merged yet."""
    files = find_files(source, folder)
    if DATABASE.fullmatch(source):
        logs = [each.with_name(f"{each.name}.wal") for each in files]
        return (*files, *(each for each in logs if each.is_file()))
    return files


def _file_state(path: Path, folder: Path) -> FileState:
    found = path.stat()
    return FileState(_name(path, folder), found.st_size, found.st_mtime_ns, _digest(path))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _name(path: Path, folder: Path) -> str:
    return os.path.relpath(path.absolute(), folder.absolute())
