"""One machine and many rows: answers from a snapshot, pinning, its memory and its size. Run by `make bench`.

Run `python bench/scale.py [PART ...]`; the parts are in `PARTS`. Ratios are of one run, to plain DuckDB on the same
rows. The parts of `GROWTH` have no limits: docs/scale.md shows their figures, and they run only if they are named
(`growth` names all of them).
"""

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import duckdb
from ask import (
    ASKING,
    CATALOG,
    KEYS,
    PERSON_UNIT,
    PLAIN,
    ROW_UNIT,
    ROWS_OF_PEOPLE,
    SAME,
    Report,
    certify_count,
    filled,
    fresh,
    in_turns,
    mebibytes,
    ms,
    seconds,
)
from rich.console import Console

import sfumato as sf
from sfumato.ledger.entries import sha256

TEN, FIFTY, HUNDRED = 10_000_000, 50_000_000, 100_000_000
MEDIAN = "SELECT MEDIAN(x) AS m FROM t"
PLAIN_MEDIAN = "SELECT MEDIAN(x) FROM '{path}'"
SORTING = "CREATE TABLE t AS SELECT k, x, p FROM '{path}' ORDER BY p"
PINNING = "import sys, sfumato; sfumato.open(sys.argv[1]).close()"
PEOPLE_BY_KEY = "SELECT k, COUNT(DISTINCT p) AS n FROM t GROUP BY k"
MOST_MEMORY = 2048  # MiB
WIDE_CATALOG = """
[dataset]
name = "t"
[budget]
epsilon = "1000"
[tables.t]
source = "{path}"
unit_column = "p"
max_rows_per_unit = 20
columns.p = {{ type = "id" }}
columns.k = {{ type = "category", values = {keys} }}
columns.x = {{ type = "real", lower = 0, upper = 1 }}
columns.age = {{ type = "integer", lower = 0, upper = 120 }}
columns.day = {{ type = "date", lower = 2020-01-01, upper = 2025-12-31 }}
columns.note = {{ type = "text" }}
columns.smokes = {{ type = "boolean" }}
columns.price = {{ type = "real", lower = 0, upper = 10000 }}
"""
GROUPED_CATALOG = """
[dataset]
name = "t"
[budget]
epsilon = "1000"
delta = "0.01"
[tables.t]
source = "{path}"
unit_column = "p"
max_rows_per_unit = 10
max_groups_per_unit = 10
columns.p = {{ type = "id" }}
columns.g = {unit}
"""
BY_GROUP = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
ANALYSTS_CATALOG = """
[dataset]
name = "t"
[budget]
epsilon = "1000"
[tables.t]
source = "rows.csv"
unit = "row"
columns.age = { type = "integer", lower = 0, upper = 120 }
"""
WIDE_ROWS = (
    "COPY (SELECT (hash(range) % 1000000)::INT AS p, 'k' || lpad((hash(range + 1) % 100)::VARCHAR, 2, '0') AS k, "
    "random() AS x, (hash(range + 2) % 90)::INT AS age, DATE '2020-01-01' + (hash(range + 3) % 2000)::INT AS day, "
    "'note ' || hash(range + 4) % 5000 AS note, hash(range + 5) % 3 = 0 AS smokes, "
    "round(10000 * random(), 2) AS price FROM range({rows})) TO '{path}'"
)


def make_rows(folder: Path, rows: int, made: str = ROWS_OF_PEOPLE) -> Path:
    """A Parquet file with ten rows for each person."""
    path = folder / f"rows-{rows}-{made is ROWS_OF_PEOPLE}.parquet"
    if not path.exists():
        duckdb.connect().execute(made.format(path=path, people=rows // 10, rows=rows))
    return path


def make_catalog(folder: Path, path: Path, unit: str, catalog: str = CATALOG) -> Path:
    """A folder with a catalog of these rows, where nothing is pinned yet."""
    place = Path(tempfile.mkdtemp(dir=folder, prefix="catalog-"))
    (place / "catalog.toml").write_text(catalog.format(path=path, unit=unit, keys=KEYS))
    return place


def answers(report: Report, folder: Path) -> None:
    """10 M rows from a snapshot file, beside plain DuckDB on the Parquet file that was pinned."""
    path, source = make_rows(folder, TEN), duckdb.connect()
    epsilon = iter(range(1, 1_000))
    for who, unit, limits in (("row unit", ROW_UNIT, (0.52, 1.02)), ("person unit", PERSON_UNIT, (0.65, 1.02))):
        with sf.open(make_catalog(folder, path, unit)) as curator:
            for what, limit, question, plainly in (
                ("COUNT, SUM, AVG by 100 keys", limits[0], SAME, PLAIN),
                ("MEDIAN", limits[1], MEDIAN, PLAIN_MEDIAN),
            ):
                ours, plain = in_turns(
                    lambda question=question: curator.ask(question, epsilon=next(epsilon)),
                    lambda plainly=plainly: source.execute(plainly.format(path=path)).fetchall(),
                )
                report.line(f"{what} of 10 M rows, {who}", (ms(ours), ms(plain)), ours / plain, limit)


def size(report: Report, folder: Path) -> None:
    """The file of a snapshot, beside its columns in a Parquet file as DuckDB writes one."""
    for what, made, catalog in (("three columns", ROWS_OF_PEOPLE, CATALOG), ("eight columns", WIDE_ROWS, WIDE_CATALOG)):
        path = make_rows(folder, TEN, made)
        place = make_catalog(folder, path, PERSON_UNIT, catalog)
        sf.open(place).close()
        ours, plain = ((place / ".sfumato" / "snapshot.duckdb").stat().st_size, path.stat().st_size)
        shown = (f"{ours / 2**20:,.0f} MiB", f"{plain / 2**20:,.0f} MiB")
        report.line(f"Snapshot of 10 M rows, {what}, beside Parquet", shown, ours / plain, 2)


def fifty(report: Report, folder: Path) -> None:
    """Pinning 50 M rows to a file, beside DuckDB's own table sorted by person."""
    path = make_rows(folder, FIFTY)
    duckdb.connect().execute(PLAIN.format(path=path)).fetchall()  # the file is in memory for both
    sorting = f"import duckdb; duckdb.connect({str(folder / 'sorted.duckdb')!r}).execute({SORTING.format(path=path)!r})"
    plain = seconds(lambda: fresh("-c", sorting), 1)
    (folder / "sorted.duckdb").unlink()
    place = make_catalog(folder, path, PERSON_UNIT)
    ours = seconds(lambda: fresh("-c", PINNING, str(place)), 1)
    shown = (f"{ours:,.1f} s", f"{plain:,.1f} s")
    report.line("Pinning 50 M rows, beside CREATE TABLE ... ORDER BY person", shown, ours / plain, 2)


def hundred(report: Report, folder: Path) -> None:
    """Peak memory of pinning 100 M rows of 10 M people, and of asking, in processes of their own."""
    path = make_rows(folder, HUNDRED)
    place = make_catalog(folder, path, PERSON_UNIT)
    for what, ours in (
        ("pinning", mebibytes(PINNING, str(place))),
        ("COUNT, SUM, AVG by 100 keys", mebibytes(ASKING, str(place), SAME, "1")),
        ("MEDIAN", mebibytes(ASKING, str(place), MEDIAN, "1")),
        ("people by key", mebibytes(ASKING, str(place), PEOPLE_BY_KEY, "1")),
    ):
        report.line(f"100 M rows of 10 M people, {what}: memory, MiB", (f"{ours:,.0f} MiB", ""), ours, MOST_MEMORY)


def grow_rows(report: Report, folder: Path) -> None:
    """How cost grows with rows, at ten rows for each person."""
    for rows in (1_000_000, TEN):
        time_person_unit(report, folder, f"{rows:,} rows", rows, rows // 10)


def grow_people(report: Report, folder: Path) -> None:
    """How cost grows with people, at one number of rows."""
    for people in (1_000, 100_000, TEN):
        time_person_unit(report, folder, f"10 M rows of {people:,} people", TEN, people)


def grow_groups(report: Report, folder: Path) -> None:
    """How cost grows with declared keys."""
    for groups in (10, 1_000, 10_000):
        time_groups(report, folder, groups, "integer")


def grow_keys(report: Report, folder: Path) -> None:
    """How cost grows with undeclared keys."""
    for groups in (1_000, 100_000, 1_000_000):
        time_groups(report, folder, groups, "text")


def grow_entries(report: Report, folder: Path) -> None:
    """How the time of a charge grows with the ledger's entries."""
    asked = certify_count()
    for entries in (10, 10_000, 100_000):
        questions = iter([replace(asked, plan_digest=sha256(f"new {index}")) for index in range(200)])
        with filled(folder / f"entries-{entries}.db", asked, entries) as ledger:
            charged = seconds(lambda ledger=ledger, questions=questions: ledger.reserve("a", next(questions)), 101)
        show(report, f"charge in a ledger of {entries:,} entries", ms(charged))


def grow_analysts(report: Report, folder: Path) -> None:
    """How the time of an answer grows with the analysts who have asked before."""
    for analysts in (1, 1_000):
        time_analysts(report, folder, analysts)


def show(report: Report, what: str, figure: str) -> None:
    """A line without a limit, also printed at once: the whole part takes minutes."""
    print(f"{what}: {figure}", flush=True)
    report.table.add_row(what, figure, "", "", "", "")


def time_person_unit(report: Report, folder: Path, what: str, rows: int, people: int) -> None:
    path = folder / f"growth-{rows}-{people}.parquet"
    duckdb.connect().execute(ROWS_OF_PEOPLE.format(path=path, people=people, rows=rows))
    place, epsilon = make_catalog(folder, path, PERSON_UNIT), iter(range(1, 100))
    pinned = seconds(lambda: sf.open(place).close(), 1)
    with sf.open(place) as curator:
        asked = seconds(lambda: curator.ask(SAME, epsilon=next(epsilon)), 5)
    show(report, f"{what}: pinning", f"{pinned:.2f} s")
    show(report, f"{what}: COUNT, SUM, AVG by 100 keys", ms(asked))
    path.unlink()


def time_groups(report: Report, folder: Path, groups: int, kind: str) -> None:
    """10 M rows of 1 M people. Integers are declared keys, texts undeclared ones."""
    path = folder / f"groups-{groups}-{kind}.parquet"
    value = "g" if kind == "integer" else "'key ' || g"
    duckdb.connect().execute(
        f"COPY (SELECT (range % 1000000)::INT AS p, {value} AS g FROM "  # noqa: S608 - numbers
        f"(SELECT range, (hash(range) % {groups})::INT AS g FROM range({TEN}))) TO '{path}'"
    )
    columns = f'{{ type = "integer", lower = 0, upper = {groups - 1} }}' if kind == "integer" else '{ type = "text" }'
    place = make_catalog(folder, path, columns, GROUPED_CATALOG)
    epsilon, delta = iter(range(1, 100)), {} if kind == "integer" else {"delta": "1e-6"}
    with sf.open(place) as curator:
        asked = seconds(lambda: curator.ask(BY_GROUP, epsilon=next(epsilon), **delta), 3)
    keys = "declared" if kind == "integer" else "undeclared"
    show(report, f"10 M rows, {groups:,} {keys} keys: COUNT", ms(asked))
    path.unlink()


def time_analysts(report: Report, folder: Path, analysts: int) -> None:
    """Questions of one person after another, each with a total of its own in the ledger."""
    place = Path(tempfile.mkdtemp(dir=folder, prefix="analysts-"))
    (place / "rows.csv").write_text("age\n" + "\n".join(str(20 + number % 60) for number in range(1_000)) + "\n")
    (place / "catalog.toml").write_text(ANALYSTS_CATALOG)
    numbers = iter(range(10**6))
    with sf.open(place) as curator:

        def ask() -> object:
            number = next(numbers)
            sql = f"SELECT COUNT(*) AS n FROM t WHERE age > {number / 1000}"  # noqa: S608 - a number
            return curator.ask(sql, epsilon="0.01", analyst=f"analyst-{number % analysts}")

        for _ in range(analysts):
            ask()
        asked = seconds(ask, 101)
    show(report, f"ask, {analysts:,} analysts in the ledger", ms(asked))


GROWTH = {
    "grow_rows": grow_rows,
    "grow_people": grow_people,
    "grow_groups": grow_groups,
    "grow_keys": grow_keys,
    "grow_entries": grow_entries,
    "grow_analysts": grow_analysts,
}
PARTS = {"answers": answers, "size": size, "fifty": fifty, "hundred": hundred}


def main() -> None:
    chosen = sys.argv[1:] or list(PARTS)
    parts = PARTS | GROWTH
    report = Report("One machine, many rows")
    with tempfile.TemporaryDirectory(dir=os.environ.get("SFUMATO_BENCH_FOLDER")) as name:
        os.environ["SFUMATO_HOME"] = str(Path(name) / "home")
        for part in (part for named in chosen for part in (GROWTH if named == "growth" else [named])):
            parts[part](report, Path(name))
    Console(width=150).print(report.table)
    sys.exit(f"{report.missed} limits missed" if report.missed else 0)


if __name__ == "__main__":
    main()
