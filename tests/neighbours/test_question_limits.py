"""max_rows and max_groups of a question: bounds after a join, and counts that fewer groups make cheaper (K-79)."""

import pandas as pd
import pytest
from examples import SLOW, count_examples
from hypothesis import given, settings
from test_unique_keys import BOTH, NO_SHRINKING, ORDERS, check, measure_all, people, person

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.sql.dialect import DUCKDB
from sfumato.engines.sql.lowering import lower
from sfumato.errors import KernelFault
from sfumato.kernel.neighbours import ROW, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Count, Measurement, People
from sfumato.kernel.row_sources import Capped, PublicScan, Scan, derive_extent
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.contribution_limits import limit_contributions
from sfumato.query.parse import parse

LINES = Table(
    "lines", None, "cid", {"cid": sf.Id(), "oid": sf.Id(), "item": sf.Integer(1, 4), "price": sf.Real(-5, 50)},
    max_rows_per_unit=3, max_groups_per_unit=2, unique=(("oid", "item"),),
)  # fmt: skip
QUESTIONS = [
    ("SELECT COUNT(*) AS n, SUM(l.price) AS s FROM orders o JOIN lines l ON o.cid = l.cid", {"max_rows": 2}),
    ("SELECT o.way, COUNT(*) AS n FROM orders o JOIN lines l ON o.cid = l.cid WHERE l.price > 1 GROUP BY o.way",
     {"max_rows": 5}),
    (f"SELECT COUNT(*) AS n FROM orders o LEFT JOIN lines l {BOTH}", {"max_rows": 4}),
    ("SELECT SUM(price) AS s FROM lines", {"max_rows": 1}),
    ("SELECT item, COUNT(*) AS n FROM lines WHERE oid IS NOT NULL GROUP BY item", {"max_rows": 2, "max_groups": 1}),
    ("SELECT way, COUNT(DISTINCT cid) AS n FROM orders GROUP BY way", {"max_groups": 1}),
    ("SELECT MEDIAN(l.price) AS m FROM orders o JOIN lines l ON o.cid = l.cid", {"max_rows": 3}),
]  # fmt: skip


def planned(question, limits, neighbours="add-remove", tables=(ORDERS, LINES)):
    dataset = Dataset("shop", tables, sf.Budget(epsilon=9), neighbours=neighbours)
    given_limits = {"max_rows": None, "max_groups": None} | limits
    query = limit_contributions(bind(parse(question), dataset), *given_limits.values(), dataset)
    return choose_plan(query, sf.PureDP(1), dataset, dict.fromkeys(dataset.tables, "1")).plan


@pytest.mark.parametrize(("question", "limits"), QUESTIONS)
def test_the_limit_is_the_reach(question, limits):
    plan = planned(question, limits)
    if "max_rows" in limits:
        assert plan.reach == limits["max_rows"]
    assert plan.max_groups_per_unit <= limits.get("max_groups", 2)


def test_a_limit_holds_no_rows_of_a_join_in_memory():
    """Counting by a window holds every pair of rows: one person's rows could then make the engine fail."""
    plan = planned(*QUESTIONS[0])
    sql = DUCKDB.write(lower(plan, {}))
    assert isinstance(plan.source, Capped)
    assert " OVER " not in sql
    assert sql.count(" JOIN ") == 3  # the rows, the same rows counted, and both on the unit


@settings(max_examples=count_examples(6), deadline=None, suppress_health_check=SLOW, phases=NO_SHRINKING)
@given(people, person, person)
def test_no_neighbour_moves_more(others, mine, yours):
    rest = list(enumerate(others))
    added, replaced = ([planned(*asked, kind) for asked in QUESTIONS] for kind in ("add-remove", "replace-one"))
    with_me, with_you = (measure_all([*rest, (99, one)], added + replaced) for one in (mine, yours))
    check(added, with_me[: len(added)], measure_all(rest, added))
    check(replaced, with_me[len(added) :], with_you[len(added) :])


def test_a_bound_that_is_too_small_is_seen():
    """Negative control: a person with many pairs comes near to the bound, and would pass half of it."""
    plans = [planned(*QUESTIONS[0])]
    orders = [{"oid": str(oid), "way": "web", "fee": 1.0} for oid in range(4)]
    lines = [{"oid": "1", "item": float(item), "price": 50.0} for item in (1, 2, 3)]
    (found,) = measure_all([(1, (orders, lines))], plans)
    assert 0.99 * (2 << 16) < found["count1", 0, 0] <= 2 << 16


def test_a_limit_only_lowers():
    question = "SELECT COUNT(*) AS n FROM lines"
    assert planned(question, {"max_rows": 3}) == planned(question, {"max_rows": 99}) == planned(question, {})
    by_way = "SELECT way, COUNT(DISTINCT cid) AS n FROM orders GROUP BY way"
    assert planned(by_way, {"max_groups": 9}).max_groups_per_unit == 2


def test_fewer_groups_make_counts_of_unique_rows_cheaper():
    """A person has one row a day. In two days at most, they move a count by 2, not by 9."""
    days = Table(
        "days", None, "cid", {"cid": sf.Id(), "day": sf.Integer(1, 9), "x": sf.Integer(0, 9)},
        max_rows_per_unit=9, max_groups_per_unit=9, unique=(("day",),),
    )  # fmt: skip
    question = "SELECT day, COUNT(*) AS n FROM days GROUP BY day"
    (cheap,) = planned(question, {"max_groups": 2}, tables=[days]).measurements
    assert cheap.quantity == People()
    (plain,) = planned(question, {}, tables=[days]).measurements
    assert plain.quantity == Count(None), "a bound of the catalog drops nobody's rows by itself"
    for other in ("SELECT x, COUNT(*) AS n FROM days GROUP BY x", "SELECT COUNT(*) AS n FROM days"):
        (kept,) = planned(other, {"max_groups": 2}, tables=[days]).measurements
        assert kept.quantity == Count(None), "a person may have several rows in a group"


def test_sources_that_cannot_be_capped():
    for source, most in ((Scan("t", "1", 3), 0), (PublicScan("s", "1", ""), 2)):
        with pytest.raises(KernelFault, match="bound"):
            derive_extent(Capped(source, most))
    counted = (Measurement("n", Count(None), sf.PureDP(1)),)
    unit = PrivacyUnit("t", ROW, sf.kernel.neighbours.Neighbours.ADD_REMOVE)
    with pytest.raises(KernelFault, match="row unit"):
        BoundedPlan("t", Capped(Scan("t", "1", 1), 1), unit, 1, (), (), counted)


def test_what_is_refused_and_recorded():
    data = pd.DataFrame({"x": [1, 2]})
    rows = sf.protect(data, name="t", unit=sf.ROW, columns={"x": sf.Integer(0, 9)}, budget=sf.Budget(1))
    for limits in ({"max_rows": 2}, {"max_groups": 2}):
        with pytest.raises(sf.errors.InvalidParameter, match="each row is one person"):
            rows.ask("SELECT COUNT(*) AS n FROM t", epsilon="0.1", **limits)
    data = pd.DataFrame({"id": ["a", "a", "b"], "x": [1, 2, 3]})
    columns = {"id": sf.Id(), "x": sf.Integer(0, 9)}
    owned = sf.protect(data, name="t", unit="id", columns=columns, budget=sf.Budget(9), max_rows_per_unit=2)
    sql = "SELECT COUNT(*) AS n FROM t"
    for wrong in (0, -1, "many", 1.5):
        with pytest.raises(sf.errors.InvalidParameter):
            owned.ask(sql, epsilon=1, max_rows=wrong)
    assert owned.preview(sql, epsilon=1, max_rows=1).margins["n"] < owned.preview(sql, epsilon=1).margins["n"]
    assert owned.ask(sql, epsilon=1, max_rows=1).cost.epsilon == 1
    frame = owned.select("t").agg(n=sf.count())
    assert frame.preview(epsilon=1, max_rows=1).cached
    assert '"max_rows":1' in [entry.question for entry in owned.ledger().entries() if entry.question][-1].replace(
        " ", ""
    )


def test_a_preview_suggests_a_unique_key(tmp_path):
    """The join of orders with lines, which a link connects, would cost what the lines cost."""
    (tmp_path / "orders.csv").write_text("cid,oid\na,1\n")
    (tmp_path / "lines.csv").write_text("oid,price\n1,3\n")
    (tmp_path / "catalog.toml").write_text(
        '[dataset]\nname = "shop"\n[budget]\nepsilon = "9"\n'
        '[tables.orders]\nsource = "orders.csv"\nunit_column = "cid"\nmax_rows_per_unit = 40\n'
        'columns.oid = { type = "id" }\n'
        '[tables.lines]\nsource = "lines.csv"\nunit_through = { column = "oid", table = "orders" }\n'
        "max_rows_per_unit = 160\ncolumns.price = { type = 'real', lower = 0, upper = 9 }\n"
    )
    sql = "SELECT COUNT(*) AS n FROM orders o JOIN lines l ON o.oid = l.oid"
    with sf.open(tmp_path) as shop:
        first = shop.preview(sql, epsilon=1).suggestions[0]
        limited = shop.preview(sql, epsilon=1, max_rows=160)
    assert first.declaration == 'orders: unique = ["oid"]'
    assert (first.gains["n"].now, first.gains["n"].then) == (
        pytest.approx(19_173, rel=1e-3),
        pytest.approx(479, rel=1e-2),
    )
    assert limited.margins["n"] == pytest.approx(479, rel=1e-2)
    assert not limited.suggestions, "with the limit, a key would not make it cheaper"
