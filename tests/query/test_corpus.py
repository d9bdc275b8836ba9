"""Questions as people write them, in the styles of other systems: each is answered as plain DuckDB answers it.

corpus.sql has the questions. Without noise, an answer must equal the plain result; a question that no sound system
could answer is refused with the code that the corpus names.
"""

import re
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise

CORPUS = Path(__file__).parent / "corpus.sql"
PEOPLE = 300
CATALOG = """
[dataset]
name = "clinic"
schemas = ["PUMS", "my_project"]
[budget]
epsilon = "1000000000"
delta = "0.5"
[tables.patients]
source = "patients.csv"
unit_column = "patient_id"
columns.patient_id = { type = "id" }
columns.age = { type = "integer", lower = 0, upper = 120 }
columns.sex = { type = "category", values = ["F", "M"] }
columns.city = { type = "category", values = ["Rome", "Oslo", "Lima"] }
columns.smoker = { type = "boolean" }
columns.income = { type = "integer", lower = 0, upper = 1000 }
columns.weight = { type = "integer", lower = 0, upper = 200 }
columns.born = { type = "date", lower = "1950-01-01", upper = "1951-12-31" }
columns.job = { type = "text" }
[tables.visits]
source = "visits.csv"
unit_column = "patient_id"
max_rows_per_unit = 3
max_groups_per_unit = 3
columns.visit_id = { type = "id" }
columns.patient_id = { type = "id" }
columns.site = { type = "category", values = ["north", "south", "east"] }
columns.cost = { type = "integer", lower = 0, upper = 500 }
columns.minutes = { type = "integer", lower = 0, upper = 120 }
columns.seen = { type = "date", lower = "2024-01-01", upper = "2024-12-31" }
[tables.sites]
source = "sites.csv"
public = true
columns.site = { type = "category", values = ["north", "south", "east"] }
columns.region = { type = "category", values = ["inner", "outer"] }
columns.beds = { type = "integer", lower = 0, upper = 1000 }
"""


def make_tables():
    """Whole numbers, no NULL, every group present: plain results and noiseless answers are then the same."""
    rng = np.random.default_rng(7)
    index = np.arange(PEOPLE)
    patients = pd.DataFrame(
        {
            "patient_id": [f"p{number}" for number in index],
            "age": rng.integers(0, 100, PEOPLE),
            "sex": np.array(["F", "M"])[index % 2],
            "city": rng.choice(["Rome", "Oslo", "Lima"], PEOPLE, p=[0.5, 0.3, 0.2]),
            "smoker": rng.random(PEOPLE) < 0.3,
            "income": rng.integers(0, 1000, PEOPLE),
            "weight": rng.integers(40, 120, PEOPLE),
            "born": [date(1950, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 700, PEOPLE)],
            "job": rng.choice(["nurse", "clerk"], PEOPLE),
        }
    )
    who = np.concatenate([np.repeat(f"p{number}", 1 + number % 3) for number in range(PEOPLE) if number % 4])
    rows = len(who)
    visits = pd.DataFrame(
        {
            "visit_id": [f"v{number}" for number in range(rows)],
            "patient_id": who,
            "site": rng.choice(["north", "south", "east"], rows, p=[0.6, 0.3, 0.1]),
            "cost": rng.integers(1, 500, rows),
            "minutes": rng.integers(1, 120, rows),
            "seen": [date(2024, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 366, rows)],
        }
    )
    sites = pd.DataFrame(
        {"site": ["north", "south", "east"], "region": ["inner", "outer", "outer"], "beds": [100, 50, 20]}
    )
    return {"patients": patients, "visits": visits, "sites": sites}


def read_corpus(path=CORPUS):
    """(section, expected, question, plain): `plain` is the SQL for DuckDB, if it is written differently.

    A blank line ends a question. `--= ` begins a section, `--: ` says what is expected, `--~ ` is the plain SQL.
    """
    found, section = [], ""
    for block in path.read_text().split("\n\n"):
        marked = {"--= ": [], "--: ": [], "--~ ": [], "": []}
        for line in block.strip("\n").splitlines():
            mark = next((mark for mark in marked if mark and line.startswith(mark)), "")
            marked[mark].append(line.removeprefix(mark))
        section = marked["--= "][0] if marked["--= "] else section
        if marked[""]:
            expected = marked["--: "][0] if marked["--: "] else ""
            found.append((section, expected, "\n".join(marked[""]), "\n".join(marked["--~ "])))
    return found


QUESTIONS = read_corpus()
ANSWERED = [one for one in QUESTIONS if not one[1].startswith("refused")]
REFUSED = [one for one in QUESTIONS if one[1].startswith("refused")]


@pytest.fixture(scope="module")
def tables():
    return make_tables()


@pytest.fixture(scope="module")
def clinic(tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clinic")
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    (folder / "catalog.toml").write_text(CATALOG)
    return sf.open(str(folder))


@pytest.fixture(scope="module")
def plain(tables):
    made = duckdb.connect()
    for schema in ("clinic", "PUMS", "my_project"):
        made.execute(f"CREATE SCHEMA {schema}")
    for name, table in tables.items():
        made.register("given", table)
        made.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        for schema in ("clinic", "PUMS"):
            made.execute(f"CREATE VIEW {schema}.{name} AS SELECT * FROM main.{name}")
        made.unregister("given")
    return made


@pytest.fixture
def without_noise(monkeypatch):
    """Laplace and Gaussian noise of zero: the corpus tests what questions mean, and no distribution."""
    for noise in (LaplaceNoise, GaussianNoise):
        monkeypatch.setattr(noise, "draw", lambda _self, size, _entropy: np.zeros(size, np.int64))


def make_comparable(value):
    if isinstance(value, (list, tuple)):
        return tuple(make_comparable(one) for one in value)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat()[:10]
    return round(float(value), 3)


def rows_of(rows):
    return [tuple(make_comparable(value) for value in row) for row in rows]


def is_about(one, two):
    """A quantile is chosen among public bins: it is near the plain one."""
    if isinstance(two, tuple):
        return all(map(is_about, one, two))
    return one == two if isinstance(two, str) else one == pytest.approx(two, rel=0.05, abs=3)


def is_ordered(sql):
    return re.search(r"order\s+by(?!.*\))", sql, re.IGNORECASE | re.DOTALL) is not None


@pytest.mark.parametrize(
    ("section", "expected", "sql", "written"),
    ANSWERED,
    ids=[f"{one[0]}-{number}" for number, one in enumerate(ANSWERED)],
)
def test_it_is_answered_as_plain_sql_answers_it(section, expected, sql, written, clinic, plain, without_noise):
    if expected.startswith("later"):
        pytest.xfail(expected)
    answer = (
        clinic.ask(sql)
        if "epsilon" in sql.lower()
        else clinic.ask(sql, epsilon=1000, delta=1e-3 if "delta" in expected else None)
    )
    got = rows_of([tuple(row.values()) for row in answer.rows])
    wanted = rows_of(plain.execute(written or sql).fetchall())
    approximate = "about" in expected
    if not is_ordered(sql):
        got, wanted = sorted(got, key=repr), sorted(wanted, key=repr)
    assert len(got) == len(wanted), (got, wanted)
    for mine, theirs in zip(got, wanted, strict=True):
        if approximate:
            assert all(is_about(one, two) for one, two in zip(mine, theirs, strict=True)), (mine, theirs)
        else:
            assert mine == theirs


@pytest.mark.parametrize(
    ("section", "expected", "sql", "written"), REFUSED, ids=[f"{one[0]}-{number}" for number, one in enumerate(REFUSED)]
)
def test_it_is_refused_with_its_code(section, expected, sql, written, clinic):
    before = clinic.budget.spent
    with pytest.raises(SfumatoError) as refused:
        clinic.ask(sql) if "epsilon" in sql.lower() else clinic.ask(sql, epsilon=1)
    assert refused.value.code == expected.removeprefix("refused ").split()[0]
    assert refused.value.hint
    assert clinic.budget.spent == before


def test_the_corpus_is_large_and_varied():
    counted = Counter(one[0] for one in QUESTIONS)
    assert len(QUESTIONS) >= 250
    assert len(counted) >= 15
    assert len({one[2] for one in QUESTIONS}) == len(QUESTIONS)
