"""Units are counted in keys of one text in two ways: by one query, and key by key in the order of each unit."""

from dataclasses import replace
from random import Random

import numpy as np
import pandas as pd
import pytest
from by_cell import list_by_cell

import sfumato as sf
from sfumato.catalog.dataset import MOST_ROWS, Dataset, Table
from sfumato.engines.duckdb import text_counts
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference import reference_distinct
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.engines.sql import selection_order
from sfumato.kernel.plan import Keys, WeightedKeys
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

WORDS = ("a", "b", "A", "", "a:", ":", "ß", "ﬁ", "x\ty", "%", "'", '"', "\U0001f600", "a\x00b", "none", "10", None)
IDS = {
    "small numbers": lambda number: number,
    "negative numbers": lambda number: number - 4,
    "large numbers": lambda number: 10**15 - 3 + number,  # on both sides of the longest that count as they are
    "texts": lambda number: f"p{number}:",
    "texts of digits": lambda number: str(10**15 - 3 + number),
    "both": lambda number: str(number) if number % 2 else f"-{number}",
}
QUESTIONS = {
    Keys: "SELECT word, COUNT(DISTINCT id) AS n FROM t WHERE age > 1 GROUP BY word",
    WeightedKeys: "SELECT DISTINCT word FROM t",
    "union": (
        "WITH u AS (SELECT id, word FROM t UNION ALL SELECT id, word FROM t WHERE age > 2) "
        "SELECT word, COUNT(DISTINCT id) AS n FROM u GROUP BY word"
    ),
}


def measure(make_id, question, groups, seed, *, small):
    """The cells of a question, from DuckDB and from the reference engine."""
    random = Random(seed)
    columns = {"id": sf.Id(), "word": sf.Text(), "age": sf.Integer(0, 9)}
    table = Table("t", None, "id", columns, max_rows_per_unit=12, max_groups_per_unit=groups)
    rows = [
        (make_id(random.randrange(9)), random.choice(WORDS), random.randrange(4)) for _ in range(random.randrange(90))
    ]
    rows += [(make_id(9), f"word {place}", 3) for place in range(40)]  # one with many
    dataset = Dataset("t", [table], sf.Budget(epsilon=100, delta="1e-3"))
    engine = DuckDBEngine.of_data(table, pd.DataFrame(rows, columns=list(columns)))
    try:
        plan = choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, engine.versions).plan
        if question == QUESTIONS[WeightedKeys]:  # in one round: two rounds need to know who holds a key
            weighed = replace(plan.measurements[0], quantity=WeightedKeys(1))
            plan = replace(plan, measurements=(weighed,))
        engine._small = small
        names = [row[0] for row in engine._connection.execute('DESCRIBE "t"').fetchall()]
        held = engine._connection.execute('SELECT * FROM "t"').fetchall()
        by_hand = ReferenceEngine({"t": [dict(zip(names, row, strict=True)) for row in held]})
        found = engine.aggregate(plan)
        assert all(found._integers[plan.measurements[0].name])  # `list_by_cell` leaves out keys that nobody has
        return list_by_cell(found, plan), list_by_cell(by_hand.aggregate(plan), plan)
    finally:
        engine.close()


@pytest.mark.parametrize("rows_at_once", [2, 1 << 19])
@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_counts_are_those_of_one_query(question, kind, rows_at_once, monkeypatch):
    """And those of the reference engine, bit for bit. Pieces end within a unit, and hold several units or none."""
    monkeypatch.setattr(text_counts, "ROWS_AT_ONCE", rows_at_once)
    counted = []
    monkeypatch.setattr(
        "sfumato.engines.duckdb.duckdb_engine.count_texts",
        lambda *arguments: counted.append(1) or text_counts.count_texts(*arguments),
    )
    for seed in range(3):
        groups = 1 + seed
        found, wanted = measure(IDS[kind], QUESTIONS[question], groups, seed, small=False)
        assert found == wanted
        assert found == measure(IDS[kind], QUESTIONS[question], groups, seed, small=True)[0]
    assert len(counted) == 3


def test_a_key_that_nobody_is_counted_in_does_not_leave_the_engine():
    """Everybody who holds a rare key holds others that come first. The key must not be a candidate."""
    found, wanted = measure(IDS["texts"], QUESTIONS[Keys], 1, 1, small=False)
    assert found == wanted
    assert len(found) < len(set(WORDS)) + 40


def test_keys_at_one_place_are_in_the_order_of_their_texts(monkeypatch):
    for module in (selection_order, reference_distinct):
        monkeypatch.setattr(module, "PRIME", 3)
    for seed in range(3):
        found, wanted = measure(IDS["texts"], QUESTIONS[Keys], 3, seed, small=False)
        assert found == wanted
        assert found == measure(IDS["texts"], QUESTIONS[Keys], 3, seed, small=True)[0]


def test_a_bound_that_nobody_reaches_takes_no_memory():
    """A table may declare the largest bound there is. One weight for each number of keys would take terabytes."""
    found, wanted = measure(IDS["texts"], QUESTIONS[Keys], MOST_ROWS, 1, small=False)
    assert found == wanted


@pytest.mark.parametrize("seed", range(20))
def test_pieces_and_repeats_do_not_matter(seed):
    """Rows of one unit come together. How they are cut into pieces, and how often a row occurs, changes nothing."""
    random = np.random.default_rng(seed)
    most = int(random.integers(1, 5))
    weights = np.sort(random.integers(1, 1 << 16, most))[::-1].tolist()
    weigh = None if seed % 2 else lambda held: weights[held - 1]
    units = np.repeat(np.arange(30), random.integers(1, 9, 30))
    keys = np.concatenate([random.permutation(12)[:size] for size in np.bincount(units)])
    wanted = np.zeros(12, np.int64)
    for unit in range(30):
        kept = keys[units == unit][:most]
        wanted[kept] += 1 if weigh is None else weigh(len(kept))
    times = random.integers(1, 4, len(units))
    cuts = np.sort(random.integers(0, times.sum(), random.integers(0, 20)))
    pieces = zip(np.split(np.repeat(units, times), cuts), np.split(np.repeat(keys, times), cuts), strict=True)
    whole = text_counts._end_at_units(pieces)
    assert sum(text_counts._count_piece(*piece, 12, most, weigh) for piece in whole).tolist() == wanted.tolist()
