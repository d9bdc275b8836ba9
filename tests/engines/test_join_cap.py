"""Which rows of a person a join reads depends only on that person's rows, not on the selected columns."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.kernel.row_sources import TIMES_MET

MOST = 2
NAMES = [
    "row", "rowid", "ROWID", "content", "place", "name", "unit", "met", "rows", "many", "marked", "placed", "anew",
]  # fmt: skip
KINDS = {"number": sf.Integer(0, 5_000), "text": sf.Text(), "real": sf.Real(-10, 10)}


def met(frame, declared):
    """The rows of each person that a join reads, sorted."""
    table = Table("t", None, "pid", {"pid": sf.Id(), **declared}, MOST)
    engine = DuckDBEngine.of_data(table, frame)
    try:
        columns = ", ".join(f'"{name}"' for name in declared)
        sql = f'SELECT __sfumato_unit, {columns} FROM t WHERE "__sfumato_met" ORDER BY ALL'
        kept = engine._connection.execute(sql).fetchall()
        whole = engine._connection.execute("SELECT COUNT(*) FROM t").fetchall()[0][0]
    finally:
        engine.close()
    assert whole == len(frame)
    people = {}
    for unit, *values in kept:
        people.setdefault(unit, []).append(tuple(values))
    return people


def values(kind, rng, size):
    made = {
        "number": rng.integers(0, 300, size),
        "text": rng.choice(["", ":", "1:", "a", "a:b", "ä", "0/1"], size),
        "real": rng.choice([0.0, 0.1, 0.1 + 2**-55, -3.5, 9.75, 1e-300], size),
    }[kind]
    return pd.Series(made)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_others_and_the_order_of_rows_change_nothing(name, kind):
    rng = np.random.default_rng(7)
    size = 120
    pid = np.repeat(["heavy", "heavier", *(f"p{index}" for index in range(10))], [40, 60, *[2] * 10])
    frame = pd.DataFrame({"pid": pid, name: values(kind, rng, size), "z": rng.integers(0, 9, size)})
    declared = {name: KINDS[kind], "z": sf.Integer(0, 9)}
    whole = met(frame, declared)
    assert {unit: len(rows) for unit, rows in whole.items()} == {
        unit: min(count, TIMES_MET * MOST) for unit, count in frame.pid.value_counts().items()
    }
    shuffled = frame.sample(frac=1, random_state=3).reset_index(drop=True)
    assert met(shuffled, declared) == whole
    without = frame[frame.pid != "heavy"].reset_index(drop=True)
    assert met(without, declared) == {unit: rows for unit, rows in whole.items() if unit != "heavy"}
