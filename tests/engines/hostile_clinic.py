"""A clinic of five tables in three states: hostile, empty of people, and calm."""

import math
from dataclasses import dataclass
from random import Random

import pandas as pd

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table, replace_tables
from sfumato.curator import Curator
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.kernel.expressions import Scalar
from sfumato.ledger.ledger import Ledger, Limit

HARD = (None, math.nan, math.inf, -math.inf, -0.0, 0.0, 1e300, -1e300, 5e-324, 0.1, 0.5, 2.5, -2.5, 3.0, 49.999999999)
CALM = (None, 0.0, -0.5, 0.25, 0.5, 1.0, 2.5, 3.0, 4.75, 8.0)  # on every grid: plain SQL adds up the same
WORDS = ("smith", "priest", "", None, "Smith", "ß:a", "a", "none", "s'i", "ﬁ", "x\ty", "%", "_", "a:b", "b")
DAYS = (
    None,
    "2024-01-01",
    "2024-02-29",
    "2024-06-30",
    "1970-01-01",
    "2024-12-30",
    "1899-12-31",
    "9999-12-31",
    "no day",
)
MOMENTS = (None, "2024-01-01 00:00:00", "2024-03-31 01:58:59.999999", "2024-06-30 23:59:59", "1969-12-31 23:59:59", "x")
SITES = pd.DataFrame({
    "site": [1, 1, 2, 3, None], "region": ["n", "s", "n", "n", "s"], "beds": [1.5, 2.0, 9.0, 0.0, 4.0],
    "opened": ["2001-01-01", "2010-12-31", None, "1999-02-28", "2005-05-05"],
})  # fmt: skip
COLUMNS = {
    "patients": ("pid", "age", "income", "job", "city", "smoker", "born"),
    "visits": ("pid", "visit_id", "cost", "site", "kind", "day", "urgent", "seen"),
    "tests": ("visit_id", "level", "grade", "note"),
    "polls": ("score", "site", "answer", "weight"),
}
FLOATS = ("age", "income", "cost", "site", "level", "score", "weight")


def declare_tables(*, most_rows: int, most_groups: int) -> list[Table]:
    """The tables. Each table of people has a different contribution bound."""
    return [
        Table("patients", None, "pid", {
            "pid": sf.Id(), "age": sf.Integer(0, 100), "income": sf.Real(-10, 1e4), "job": sf.Text(),
            "city": sf.Category(["Rome", "Oslo", "O'slo"]), "smoker": sf.Boolean(),
            "born": sf.Date("1900-01-01", "2010-12-31"),
        }, most_rows, most_groups),
        Table("visits", None, "pid", {
            "pid": sf.Id(), "visit_id": sf.Id(), "cost": sf.Real(-5, 50), "site": sf.Integer(1, 4), "kind": sf.Text(),
            "day": sf.Date("2024-01-01", "2024-06-30"), "urgent": sf.Boolean(nullable=False),
            "seen": sf.DateTime("2024-01-01 00:00:00", "2024-06-30 12:00:00"),
        }, most_rows + 1, most_groups + 1),
        Table("tests", None, None, {
            "visit_id": sf.Id(), "level": sf.Real(0, 10, nullable=False), "grade": sf.Category([1, 2, 5]),
            "note": sf.Text(nullable=False),
        }, most_rows + 3, most_groups, unit_through=("visit_id", "visits")),
        Table("polls", None, sf.ROW, {
            "score": sf.Integer(-3, 3), "site": sf.Integer(1, 4, nullable=False), "answer": sf.Category(["yes", "no"]),
            "weight": sf.Real(-1, 1),
        }),
        Table("sites", None, None, {
            "site": sf.Integer(1, 4), "region": sf.Category(["n", "s"]), "beds": sf.Real(0, 9),
            "opened": sf.Date("1990-01-01", "2020-12-31"),
        }, public=True),
    ]  # fmt: skip


def make_frames(*, people: int, crowd: int, calm: bool) -> dict[str, pd.DataFrame]:
    """Rows of each table, from a fixed seed: the first person has `crowd` of them, the others a few or none.

    Ids are numbers in one table and texts in the other; the last of the hostile people has no id.
    """
    random = Random(7)
    days, moments = (DAYS[:4], MOMENTS[:3]) if calm else (DAYS, MOMENTS)

    def number() -> float | None:
        return random.choice(CALM) if calm else random.choice((*HARD, *(random.uniform(-20, 70) for _ in HARD)))

    def truth() -> bool | None:
        return random.choice((True, False, None))

    made: dict[str, list[tuple[Scalar, ...]]] = {name: [] for name in COLUMNS}
    for person in range(people):
        pid = None if not calm and person == people - 1 else person
        city = random.choice(("Rome", "O'slo", "Bern", None))
        for _ in range(random.randrange(4) if person else crowd):
            row = pid, number(), number(), random.choice(WORDS), city, truth(), random.choice(days)
            made["patients"] += [row] * random.choice((1, 1, 2))
        for _ in range(random.randrange(4) if person else crowd):
            visit, whose = f"v{len(made['visits'])}", None if pid is None else str(pid)
            site, day, moment = random.choice((None, 1, 2, 3, 4, 9)), random.choice(days), random.choice(moments)
            made["visits"].append((whose, visit, number(), site, random.choice(WORDS), day, truth(), moment))
            for _ in range(random.choice((0, 1, 2))):
                made["tests"].append((visit, number(), random.choice((1, 2, 5, 7, None)), random.choice(WORDS)))
    made["tests"] += [("nobody's", 5.0, 1, "a"), (None, 5.0, 2, "b")]
    for _ in range(3 * people):
        score, site = random.choice((None, -3, 0, 3, 9)), random.choice((1, 2, 3))
        made["polls"].append((score, site, random.choice(("yes", "no", "?", None)), number()))
    frames = {name: pd.DataFrame(rows, columns=COLUMNS[name], dtype=object) for name, rows in made.items()}
    for frame in frames.values():
        for name in set(frame.columns) & {*FLOATS}:
            frame[name] = frame[name].astype(float)
    frames["patients"]["pid"] = frames["patients"]["pid"].astype("Int64")
    return frames | {"sites": SITES}


@dataclass(frozen=True, eq=False)
class Clinic:
    """One state of the clinic: a curator, and the rows of the snapshot."""

    curator: Curator
    held: dict[str, list[dict[str, Scalar]]]


def list_tables(
    *, people: int = 9, crowd: int = 18, calm: bool = False, sites: bool = True
) -> dict[str, tuple[Table, pd.DataFrame]]:
    """The tables of a state and their rows, for an engine to load."""
    tables = declare_tables(most_rows=9 if calm else 1, most_groups=500 if calm else 2)
    rows = make_frames(people=people, crowd=crowd, calm=calm)
    rows["sites"] = SITES if sites else SITES[:0]
    return {table.name: (table, rows[table.name]) for table in tables}


def open_clinic(*, people: int = 9, crowd: int = 18, calm: bool = False, sites: bool = True) -> Clinic:
    """Pin the tables. In the calm state nobody has more rows, or is in more groups, than is let in.

    In the hostile one a join does not even meet all rows of the first person.
    """
    given = list_tables(people=people, crowd=crowd, calm=calm, sites=sites)
    tables = [table for table, _ in given.values()]
    engine = DuckDBEngine.of_tables(given)
    dataset = replace_tables(Dataset("clinic", tables, sf.Budget(epsilon=9, delta="1e-6")), engine.tables)
    ledger = Ledger.create(None, dataset.population, Limit(dataset.budget.loss), {})
    curator = Curator(dataset, engine, ledger, dict.fromkeys(engine.tables, "1"))  # so that states share their plans
    return Clinic(curator, {table.name: _held(engine, table.name) for table in tables})


def _held(engine: DuckDBEngine, name: str) -> list[dict[str, Scalar]]:
    found = engine._connection.execute(f'SELECT * FROM "{name}"')
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
