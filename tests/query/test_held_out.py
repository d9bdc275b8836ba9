"""Questions in the style of other systems' tutorials, with catalogs that fit them: plain DuckDB gives the same answers.

held_out/ has the questions, the catalogs and the tables. They were written and scored before anything was changed for
them; CHANGELOG.md has the score. Those of BLIND_WORLDS are by somebody who did not know the code, and those of
COLLECTED_WORLDS are from tests and pages of other systems, some of them adapted (collected_tables.py). Those of
LITERAL_WORLDS are copied from there letter by letter (literal_tables.py). Groups that nobody is in are listed with
zeros, as docs/sql.md says. `ties` compares rows in any order. `refused CODE, missing: ...` is a question that a sound
system could answer; without `missing`, none could. `nobody` is answered, with a warning that plain SQL has fewer
groups.
"""

import sys
from collections import Counter
from functools import cache
from pathlib import Path

import duckdb
import pytest
from test_corpus import is_ordered, make_comparable, read_corpus, without_noise  # noqa: F401 - a fixture

import sfumato as sf
from sfumato.errors import SfumatoError

FOLDER = Path(__file__).parent / "held_out"
sys.path.insert(0, str(FOLDER))
from blind_tables import BLIND_WORLDS  # noqa: E402
from collected_tables import COLLECTED_WORLDS  # noqa: E402
from literal_tables import LITERAL_WORLDS  # noqa: E402
from tables import WORLDS, Maker  # noqa: E402

ALL_WORLDS = WORLDS | BLIND_WORLDS | COLLECTED_WORLDS | LITERAL_WORLDS
QUESTIONS = [(world, *one[1:]) for world in ALL_WORLDS for one in read_corpus(FOLDER / f"{world}.sql")]
ANSWERED = [one for one in QUESTIONS if not one[1].startswith("refused")]
REFUSED = [one for one in QUESTIONS if one[1].startswith("refused")]


@pytest.fixture(scope="module")
def open_world(tmp_path_factory):
    """Makes a catalog's tables when the first question needs them: a dataset, and the same tables in plain DuckDB."""

    @cache
    def open_one(name):
        folder, plain = tmp_path_factory.mktemp(name), duckdb.connect()
        for schema in ("PUMS", "mydataset"):
            plain.execute(f"CREATE SCHEMA {schema}")
        for table, rows in ALL_WORLDS[name](Maker()).items():
            path = folder / f"{table}.parquet"
            rows.to_parquet(path)
            plain.execute(f"CREATE TABLE \"{table}\" AS SELECT * FROM '{path}'")
            for schema in ("PUMS", "mydataset"):
                plain.execute(f'CREATE VIEW {schema}."{table}" AS SELECT * FROM main."{table}"')
        (folder / "catalog.toml").write_text((FOLDER / f"{name}.toml").read_text())
        return sf.open(str(folder)), plain

    return open_one


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
def test_it_is_answered_as_plain_sql_answers_it(world, expected, sql, written, open_world, without_noise):  # noqa: F811
    data, plain = open_world(world)
    given = {} if "epsilon" in sql.lower() else {"epsilon": 1000, "delta": 1e-3 if "delta" in expected else None}
    answer = data.ask(sql, **given)
    got = [make_comparable(tuple(row.values())) for row in answer.rows]
    wanted = [make_comparable(row) for row in plain.execute(written or sql).fetchall()]
    about = "about" in expected
    assert wanted
    if "nobody" in expected:
        assert any("groups that nobody is in" in warning for warning in answer.warnings)
    if len(got) > len(wanted):  # groups of nobody
        got = [row for row in got if any(is_same(row, one, about=about) for one in wanted)]
    if not is_ordered(sql) or "ties" in expected:
        got, wanted = sorted(got, key=repr), sorted(wanted, key=repr)
    assert len(got) == len(wanted)
    assert all(is_same(*pair, about=about) for pair in zip(got, wanted, strict=True)), (got, wanted)


@pytest.mark.parametrize(
    ("world", "expected", "sql", "written"), REFUSED, ids=[f"{one[0]}-{n}" for n, one in enumerate(REFUSED)]
)
def test_it_is_refused_with_a_hint(world, expected, sql, written, open_world):
    with pytest.raises(SfumatoError) as refused:
        open_world(world)[0].ask(sql, epsilon=1)
    assert refused.value.code == expected.removeprefix("refused ").partition(",")[0]
    assert refused.value.hint


def test_the_questions_are_many_and_most_are_answered():
    counted = Counter(one[0] for one in QUESTIONS)
    assert len(QUESTIONS) >= 800
    assert min(counted.values()) >= 9
    assert sum(counted[world] for world in BLIND_WORLDS) == 120
    # of all questions, and of the blind ones: the share of those that a sound system could answer
    wanted = ((ALL_WORLDS, 0.95), (BLIND_WORLDS, 0.96), (COLLECTED_WORLDS, 0.92), (LITERAL_WORLDS, 0.94))
    for worlds, least in wanted:
        right = sum(one[0] in worlds and "missing: " not in one[1] for one in ANSWERED)
        missing = sum(one[0] in worlds and "missing: " in one[1] for one in QUESTIONS)
        assert right >= least * (right + missing)
