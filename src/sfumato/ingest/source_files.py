"""Which files a source names: one file, several by a pattern, or a DuckDB file with the name of a table."""

import glob
import re
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from sfumato.ingest.source_refusals import KINDS, build_source_error

CSV, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
DATABASE = re.compile(r"(?P<path>.+?\.(?:duckdb|ddb|db))(?:::(?P<name>.+))?", re.IGNORECASE)
SERVER_TABLE = re.compile(r"(?:(?P<url>postgres(?:ql)?://\S*?)::|postgres:)(?P<name>[^:/].*)")
PATTERN = re.compile(r"[*?[]")


def is_postgres(source: object) -> bool:
    """Does a source name a table of a PostgreSQL database? postgres:schema.table, or postgresql://…::schema.table."""
    return isinstance(source, str) and SERVER_TABLE.fullmatch(source) is not None


def find_files(source: str, folder: Path | None = None) -> tuple[Path, ...]:
    """The files that a source names, in the folder or in the current one. Empty: there are none."""
    place = folder or Path()
    path = split_source(source)[0]
    if (place / path).is_file():
        return (place / path,)
    if not PATTERN.search(path):
        return ()
    found = sorted(place / name for name in glob.glob(path, root_dir=place, recursive=True))
    return tuple(file for file in found if file.is_file())


def split_source(source: str) -> tuple[str, str | None]:
    """The path of a source, and the table after :: if the source is a DuckDB file and names one."""
    found = DATABASE.fullmatch(source)
    return (found["path"], found["name"]) if found else (source, None)


def require_files(table: str, source: str, folder: Path) -> tuple[Path, ...]:
    """The files of a source. A source without files is refused, and so is one of an unknown kind."""
    database = DATABASE.fullmatch(source)
    ending = Path(source).suffix.lower()
    if not database and ending not in (*CSV, *PARQUET):
        raise build_source_error(table, "the kind of source is not known.", KINDS)
    files = find_files(source, folder)
    if not files and PATTERN.search(source):
        raise build_source_error(table, f"no file is named like {source}.", suggest_file(source, folder))
    if not files:
        missing = f"there is no source {database['path'] if database else source}."
        raise build_source_error(table, missing, suggest_file(source, folder))
    return files


def suggest_file(source: str, *folders: Path) -> str:
    """What to do about a source without files: the name that is most like its own, and where it was looked for."""
    path = Path(split_source(source)[0])
    if any((folder / path).is_dir() for folder in folders):
        return f"It is a folder: name its files, as {path}/*{path.suffix or '.csv'}."
    places = tuple(dict.fromkeys((folder / path).absolute().parent for folder in folders))
    names: dict[str, str] = {}
    for place in places:
        with suppress(OSError):  # a folder that is missing, or that this user may not list
            inside = Path() if path.is_absolute() else path.parent
            names |= {file.stem: str(inside / file.name) for file in place.iterdir() if file.is_file()}
    like = get_close_matches(path.stem, names, 1)  # the endings of two files are often the same
    return f"{f'Did you mean {names[like[0]]}? ' if like else ''}Look in {' and in '.join(map(str, places))}."
