"""A clinic of five tables, in four states: hostile, calm, nearly empty, and crowded by one person."""

import math
from dataclasses import dataclass
from random import Random

import duckdb
import pandas as pd

import sfumato as sf
from sfumato.catalog.model import Dataset, Table, with_tables
from sfumato.curator import Curator
from sfumato.engines.duckdb_engine import DuckDBEngine
from sfumato.ledger.ledger import Ledger, Limit

STATES = ("hostile", "calm", "empty", "crowded")
HARD = (None, math.nan, math.inf, -math.inf, -0.0, 0.0, 1e300, -1e300, 5e-324, 0.1, 0.5, 2.5, -2.5, 3.0, 49.999999999)
WORDS = ("smith", "priest", "", None, "Smith", "ß:a", "a", "none", "s'i", "ﬁ", "x\ty", "%", "_", "a:b", "b")
DAYS = (None, "2024-01-01", "2024-02-29", "2024-06-30", "1970-01-01", "2024-12-30", "1899-12-31", "9999-12-31", "no day")
MOMENTS = (None, "2024-01-01 00:00:00", "2024-03-31 01:59:59.999999", "2024-06-30 23:59:59", "1969-12-31 23:59:59", "x")
SITES = pd.DataFrame({
    "site": [1, 1, 2, 3, None], "region": ["n", "s", "n", "n", "s"], "beds": [1.5, 2.0, 9.0, 0.0, 4.0],
    "opened": ["2001-01-01", "2010-12-31", None, "1999-02-28", "2005-05-05"],
})  # fmt: skip


def declared(*, most_rows: int, most_groups: int) -> list[Table]:
    """The tables; those of people let in so many rows, one more in each than in the one before."""
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


def frames(state: str) -> dict[str, pd.DataFrame]:
    """The rows of each table, from the state's name alone."""
    random = Random(state)
    calm = state == "calm"
    numbers = [each for each in HARD if each is None or abs(each) < 50] if calm else HARD
    words, days, moments = WORDS, DAYS[:4] if calm else DAYS, MOMENTS[:3] if calm else MOMENTS

    def number():
        return random.choice(numbers) if random.random() < 0.5 else random.uniform(0, 10 if calm else 60)

    people = {"hostile": 9, "calm": 9, "empty": 0, "crowded": 3}[state]
    patients, visits, tests = [], [], []
    for person in range(people):
        many = 30 if state == "crowded" and person == 0 else 3 if calm else 5
        pid = None if state == "hostile" and person == 8 else person  # whose rows are nobody's
        for _ in range(random.randrange(3 if calm else 5) if many < 30 else many):
            row = (pid, number(), number(), random.choice(words), random.choice(["Rome", "O'slo", "Bern", None]),
                   random.choice([True, False, None]), random.choice(days))  # fmt: skip
            patients += [row] * random.choice([1, 1, 2])
        for _ in range(random.randrange(many)):
            visit = f"v{len(visits)}"
            visits.append((str(pid) if pid is not None else None, visit, number(), random.choice([None, 1, 2, 3, 4, 9]),
                           random.choice(words), random.choice(days), random.choice([True, False, None]),
                           random.choice(moments)))  # fmt: skip
            for _ in range(random.choice([0, 1, 2])):
                tests.append((visit, number(), random.choice([1, 2, 5, 7, None]), random.choice(words)))
    tests += [("nobody's", 5.0, 1, "a"), (None, 5.0, 2, "b")]
    polls = [(random.choice([None, -3, 0, 3, 9]), random.choice([1, 2, 3]), random.choice(["yes", "no", "?", None]),
              number()) for _ in range(0 if state == "empty" else 25)]  # fmt: skip
    made = {
        "patients": pd.DataFrame(patients, columns=["pid", "age", "income", "job", "city", "smoker", "born"]),
        "visits": pd.DataFrame(
            visits, columns=["pid", "visit_id", "cost", "site", "kind", "day", "urgent", "seen"], dtype=object
        ),
        "tests": pd.DataFrame(tests, columns=["visit_id", "level", "grade", "note"], dtype=object),
        "polls": pd.DataFrame(polls, columns=["score", "site", "answer", "weight"]),
        "sites": SITES if state != "empty" else SITES[:0],
    }
    wide = {"patients": ["age", "income"], "visits": ["cost", "site"], "tests": ["level"], "polls": ["score", "weight"]}
    for name, columns in wide.items():
        made[name] = made[name].astype(dict.fromkeys(columns, float))
    return made


@dataclass(frozen=True)
class Clinic:
    """One state: a curator of it, and what its snapshot holds."""

    curator: Curator
    held: dict[str, list[dict[str, object]]]


def open_clinic(state: str) -> Clinic:
    """Pin the tables of one state."""
    tables = declared(most_rows=8 if state == "calm" else 2, most_groups=500 if state == "calm" else 2)
    rows = frames(state)
    engine = DuckDBEngine.of_tables({each.name: (each, rows[each.name]) for each in tables})
    dataset = Dataset("clinic", tables, sf.Budget(epsilon=9, delta="1e-6"))
    dataset = with_tables(dataset, engine.tables)
    ledger = Ledger.create(None, dataset.population, Limit(dataset.budget.loss), {})
    return Clinic(Curator(dataset, engine, ledger, engine.versions), {each.name: _held(engine, each.name) for each in tables})


def _held(engine: DuckDBEngine, name: str) -> list[dict[str, object]]:
    found: duckdb.DuckDBPyConnection = engine._connection.execute(f'SELECT * FROM "{name}"')
    names = [each[0] for each in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
