"""Questions in the style of other systems' tutorials, with catalogs that fit them: plain DuckDB gives the same answers.

held_out/ has the questions, the catalogs and the tables. They were written and scored before anything was changed for
them; CHANGELOG.md has the score. Groups that nobody is in are listed with zeros, as docs/sql.md says.
"""

import sys
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from test_corpus import is_ordered, make_comparable, read_corpus, without_noise  # noqa: F401 - a fixture

import sfumato as sf
from sfumato.errors import SfumatoError

FOLDER = Path(__file__).parent / "held_out"
sys.path.insert(0, str(FOLDER))
from tables import WORLDS, make_world  # noqa: E402

QUESTIONS = [(world, *one[1:]) for world in WORLDS for one in read_corpus(FOLDER / f"{world}.sql")]
ANSWERED = [one for one in QUESTIONS if not one[1].startswith("refused")]
REFUSED = [one for one in QUESTIONS if one[1].startswith("refused")]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """Each catalog as a dataset, and as tables of plain DuckDB."""
    made = {}
    for name in WORLDS:
        folder, plain = tmp_path_factory.mktemp(name), duckdb.connect()
        for schema in ("PUMS", "mydataset"):
            plain.execute(f"CREATE SCHEMA {schema}")
        for table, rows in make_world(name).items():
            rows.to_parquet(folder / f"{table}.parquet")
            plain.register("given", rows)
            plain.execute(f'CREATE TABLE "{table}" AS SELECT * FROM given')
            plain.unregister("given")
            for schema in ("PUMS", "mydataset"):
                plain.execute(f'CREATE VIEW {schema}."{table}" AS SELECT * FROM main."{table}"')
        (folder / "catalog.toml").write_text((FOLDER / f"{name}.toml").read_text())
        made[name] = (sf.open(str(folder)), plain)
    return made


def is_same(one, two, *, about):
    if isinstance(two, tuple):
        return len(one) == len(two) and all(is_same(*pair, about=about) for pair in zip(one, two, strict=True))
    if isinstance(one, str | bool | None) or isinstance(two, str | bool | None):
        return one == two or (about and str(one)[:10] == str(two)[:10])
    # real columns are added up on a grid of their bounds
    return one == pytest.approx(two, rel=0.05 if about else 2e-4, abs=3 if about else 2e-3)


@pytest.mark.parametrize(
    ("world", "expected", "sql", "written"), ANSWERED, ids=[f"{one[0]}-{n}" for n, one in enumerate(ANSWERED)]
)
def test_it_is_answered_as_plain_sql_answers_it(world, expected, sql, written, worlds, without_noise):  # noqa: F811
    data, plain = worlds[world]
    given = {} if "epsilon" in sql.lower() else {"epsilon": 1000, "delta": 1e-3 if "delta" in expected else None}
    got = [make_comparable(tuple(row.values())) for row in data.ask(sql, **given).rows]
    wanted = [make_comparable(row) for row in plain.execute(written or sql).fetchall()]
    about = "about" in expected
    if len(got) > len(wanted):  # groups of nobody
        got = [row for row in got if any(is_same(row, one, about=about) for one in wanted)]
    if not is_ordered(sql):
        got, wanted = sorted(got, key=repr), sorted(wanted, key=repr)
    assert len(got) == len(wanted)
    assert all(is_same(*pair, about=about) for pair in zip(got, wanted, strict=True)), (got, wanted)


@pytest.mark.parametrize(
    ("world", "expected", "sql", "written"), REFUSED, ids=[f"{one[0]}-{n}" for n, one in enumerate(REFUSED)]
)
def test_it_is_refused_with_a_hint(world, expected, sql, written, worlds):
    with pytest.raises(SfumatoError) as refused:
        worlds[world][0].ask(sql, epsilon=1)
    assert refused.value.code == expected.removeprefix("refused ")
    assert refused.value.hint


def test_the_questions_are_many_and_most_are_answered():
    assert len(QUESTIONS) >= 295
    assert min(Counter(one[0] for one in QUESTIONS).values()) >= 15
    assert len(ANSWERED) >= 0.95 * len(QUESTIONS)
