"""Joins on a unique key: one person moves no more than the other side's rows, whatever keys repeat (K-78)."""

from functools import cache

import pandas as pd
import pytest
from by_cell import list_by_cell
from examples import SLOW, count_examples
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.ingest import table_reading
from sfumato.kernel.certify import certify
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

ORDERS = Table(
    "orders", None, "cid",
    {"cid": sf.Id(), "oid": sf.Id(unique=True), "way": sf.Category(["web", "shop"]), "fee": sf.Real(0, 9)},
    max_rows_per_unit=4, max_groups_per_unit=2,
)  # fmt: skip
LINES = Table(
    "lines", None, "cid", {"cid": sf.Id(), "oid": sf.Id(), "item": sf.Integer(1, 4), "price": sf.Real(-5, 50)},
    max_rows_per_unit=3, max_groups_per_unit=2, unique=(("oid", "item"),),
)  # fmt: skip
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
BOTH = "ON o.cid = l.cid AND o.oid = l.oid"
QUESTIONS = {  # and the most rows of one person that count
    f"SELECT COUNT(*) AS n, SUM(l.price) AS s FROM orders o JOIN lines l {BOTH}": 3,
    f"SELECT o.way, COUNT(*) AS n FROM lines l JOIN orders o {BOTH} WHERE o.fee > 1 GROUP BY o.way": 3,
    f"SELECT o.way, COUNT(*) AS n, AVG(l.price) AS a FROM lines l LEFT JOIN orders o {BOTH} GROUP BY o.way": 3,
    f"SELECT SUM(o.fee) AS s FROM lines l LEFT JOIN orders o {BOTH} AND o.fee > 2": 3,
    "SELECT SUM(o.f) AS s FROM lines l JOIN (SELECT cid, oid AS k, fee AS f FROM orders WHERE fee < 8) o "
    "ON l.cid = o.cid AND l.oid = o.k": 3,
    f"SELECT COUNT(*) AS n FROM orders o LEFT JOIN lines l {BOTH}": 12,  # nothing unique is compared on the right
    "SELECT COUNT(*) AS n FROM orders o JOIN lines l ON o.cid = l.cid": 12,
    f"SELECT COUNT(*) AS n FROM orders o JOIN lines l {BOTH} JOIN lines m ON m.cid = l.cid AND m.oid = l.oid "
    "AND m.item = l.item": 3,
    f"SELECT MEDIAN(l.price) AS m FROM orders o JOIN lines l {BOTH}": 3,
    # one row for each person and order: an order meets one
    "SELECT COUNT(*) AS n FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.cid = o.cid AND l.oid = o.oid)": 4,
    "SELECT o.way, COUNT(*) AS n, SUM(o.fee) AS s FROM orders o WHERE NOT EXISTS (SELECT 1 FROM lines l "
    "WHERE l.cid = o.cid AND l.oid = o.oid AND l.price > 2) GROUP BY o.way": 4,
    "SELECT SUM(m.n) AS s FROM orders o JOIN (SELECT cid, oid, COUNT(*) AS n FROM lines GROUP BY cid, oid) m "
    "ON m.cid = o.cid AND m.oid = o.oid": 4,
    "SELECT COUNT(*) AS n FROM lines l WHERE (SELECT COUNT(*) FROM lines k WHERE k.cid = l.cid AND k.item = l.item) > 1"
    "": 3,
    "SELECT COUNT(*) AS n FROM lines l WHERE l.item NOT IN (SELECT k.item FROM lines k WHERE k.cid = l.cid "
    "AND k.price > 2)": 3,
    "SELECT way, COUNT(*) AS n FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.cid = o.cid GROUP BY l.oid "
    "HAVING COUNT(*) > 1) GROUP BY way": 4,
    "SELECT COUNT(*) AS n FROM lines l WHERE EXISTS (SELECT 1 FROM lines k WHERE k.cid = l.cid AND k.oid = l.oid "
    "AND k.item < l.item)": 3,
    # inner rows meet the person's different outer values, and a row meets its own
    "SELECT COUNT(*) AS n FROM lines l WHERE EXISTS (SELECT 1 FROM lines k WHERE k.cid = l.cid AND k.item < l.item "
    "AND k.item + 2 >= l.item)": 3,
    "SELECT SUM((SELECT COUNT(*) FROM lines k WHERE k.cid = l.cid AND k.item < l.item AND k.price > 2)) AS s "
    "FROM lines l": 3,
    # an id that an outer join left out meets nobody
    f"SELECT COUNT(*) AS n FROM lines l LEFT JOIN orders o {BOTH} AND o.fee > 2 WHERE EXISTS (SELECT 1 FROM lines k "
    "WHERE k.cid = o.cid)": 3,
    f"SELECT COUNT(*) AS n FROM lines l LEFT JOIN orders o {BOTH} AND o.fee > 2 JOIN orders p ON o.cid = p.cid": 12,
    # a computed value, and rows of several values
    "SELECT COUNT(*) AS n FROM lines l WHERE l.item IN (SELECT k.item + 1 FROM lines k WHERE k.cid = l.cid)": 3,
    "SELECT COUNT(*) AS n, SUM(l.price) AS s FROM lines l WHERE (l.cid, l.item) IN (SELECT cid, MAX(item) FROM lines "
    "GROUP BY cid)": 3,
    # reals as they are
    "SELECT COUNT(*) AS n FROM lines l WHERE l.price = (SELECT MAX(k.price) FROM lines k WHERE k.cid = l.cid)": 3,
    "SELECT SUM((SELECT AVG(k.price) FROM lines k WHERE k.cid = l.cid)) AS s FROM lines l": 3,
    "SELECT AVG(k) AS a, COUNT(*) AS n FROM (SELECT cid, COUNT(DISTINCT item) AS k FROM lines GROUP BY cid) AS t": 1,
    "SELECT SUM(k) AS s FROM (SELECT cid, oid, COUNT(DISTINCT item) AS k FROM lines GROUP BY cid, oid) AS t": 2,
}  # fmt: skip
NUMBERS = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 5.0, 50.0, -3.25, float("nan")]))
order = st.fixed_dictionaries(
    {"oid": st.sampled_from(["1", "2", "3", None, "01"]), "way": st.sampled_from(["web", "shop", None]), "fee": NUMBERS}
)
line = st.fixed_dictionaries(
    {"oid": st.sampled_from(["1", "2", "3", None]), "item": st.sampled_from([1.0, 2.0, None]), "price": NUMBERS}
)
person = st.tuples(st.lists(order, max_size=7), st.lists(line, max_size=7))
people = st.lists(person, max_size=3)


def frames(owners):
    first = [{"cid": f"p{name}", **row} for name, (rows, _) in owners for row in rows]
    second = [{"cid": f"p{name}", **row} for name, (_, rows) in owners for row in rows]
    kinds = {"oid": object, "way": object, "fee": float}, {"oid": object, "item": float, "price": float}
    return (
        pd.DataFrame(first, columns=list(ORDERS.columns)).astype(kinds[0]),
        pd.DataFrame(second, columns=list(LINES.columns)).astype(kinds[1]),
    )


def pinned(owners):
    one, two = frames(owners)
    return DuckDBEngine.of_tables({"orders": (ORDERS, one), "lines": (LINES, two)})


def list_rows(engine):
    held = {}
    for name in ("orders", "lines"):
        names = [row[0] for row in engine._connection.execute(f'DESCRIBE "{name}"').fetchall()]
        rows = engine._connection.execute(f'SELECT * FROM "{name}"').fetchall()
        held[name] = [dict(zip(names, row, strict=True)) for row in rows]
    return held


def measure_all(owners, plans):
    """The integers of each plan, by cell: those of DuckDB, which equal the reference engine's."""
    duck = pinned(owners)
    try:
        reference = ReferenceEngine(list_rows(duck))
        found = []
        for plan in plans:
            duck.check(plan)
            found.append(list_by_cell(duck.aggregate(plan), plan))
            assert found[-1] == list_by_cell(reference.aggregate(plan), plan), "engines differ"
    finally:
        duck.close()
    return found


@cache
def planned(question, neighbours):
    dataset = Dataset("shop", [ORDERS, LINES], sf.Budget(epsilon=9), neighbours=neighbours)
    return choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, dict.fromkeys(dataset.tables, "1")).plan


def check(plans, one, two):
    for plan, before, after in zip(plans, one, two, strict=True):
        for certified in certify(plan).measurements:
            cells = [where for where in before.keys() | after.keys() if where[0] == certified.name]
            moved = [abs(before.get(where, 0) - after.get(where, 0)) for where in cells]
            assert sum(moved) <= certified.sensitivity.l1, (plan, certified.name)


@pytest.mark.parametrize(("question", "rows"), QUESTIONS.items())
def test_a_join_on_a_unique_key_reaches_no_further_than_the_other_side(question, rows):
    assert planned(question, "add-remove").reach == rows


@settings(max_examples=count_examples(6), deadline=None, suppress_health_check=SLOW, phases=NO_SHRINKING)
@given(people, person, person)
def test_no_neighbour_moves_more(others, mine, yours):
    rest = list(enumerate(others))
    added, replaced = ([planned(question, kind) for question in QUESTIONS] for kind in ("add-remove", "replace-one"))
    with_me, with_you = (measure_all([*rest, (99, one)], added + replaced) for one in (mine, yours))
    check(added, with_me[: len(added)], measure_all(rest, added))
    check(replaced, with_me[len(added) :], with_you[len(added) :])


@settings(max_examples=count_examples(10), deadline=None, suppress_health_check=SLOW, phases=NO_SHRINKING)
@given(people, person)
def test_another_persons_keys_drop_none_of_mine(others, mine):
    """The rows of everybody else are the same with and without one person, who may have the same keys."""
    rest = list(enumerate(others))
    found = []
    for owners in ([*rest, (99, mine)], rest):
        engine = pinned(owners)
        rows = {
            name: [row for row in rows if row["__sfumato_unit"] != "p99"] for name, rows in list_rows(engine).items()
        }
        found.append({name: sorted(map(repr, held)) for name, held in rows.items()})
        engine.close()
    assert found[0] == found[1]


def test_without_dropping_repeats_one_person_would_move_more(monkeypatch):
    """Negative control: a person who repeats one order would be counted once for each of its copies."""
    question = next(iter(QUESTIONS))
    orders = [{"oid": "1", "way": "web", "fee": float(fee)} for fee in range(4)]
    lines = [{"oid": "1", "item": float(item), "price": 50.0} for item in (1, 2, 3)]
    plans = [planned(question, "add-remove")]
    check(plans, measure_all([(1, (orders, lines))], plans), measure_all([], plans))
    monkeypatch.setattr(table_reading, "drop_repeats", lambda *_: None)
    with pytest.raises(AssertionError, match="BoundedPlan"):
        check(plans, measure_all([(1, (orders, lines))], plans), measure_all([], plans))
