"""Random sources of joins, groups and unions: whatever the kernel accepts reaches no further than it says (K-35, K-78).

No planner takes part: sources are built at random, also such that nobody would plan. Many are refused. Of the others,
the weights of one person are added up by an engine, with and without that person, and as another person.
"""

import random
import sys
from dataclasses import replace
from functools import cache

import pandas as pd
import pytest
from by_cell import list_by_cell
from examples import count_examples

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.errors import KernelFault
from sfumato.ingest import table_reading
from sfumato.kernel import row_sources
from sfumato.kernel.certify import certify
from sfumato.kernel.expressions import Call, Column, ColumnType
from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Count, Grid, Key, Measurement, Sum
from sfumato.kernel.row_sources import (
    TIMES_MET,
    Capped,
    Derived,
    Join,
    PerKey,
    PerUnit,
    PublicScan,
    Scan,
    Union,
    UnitColumn,
    derive_extent,
    list_unique,
)  # fmt: skip
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

TABLES = {
    "orders": Table(
        "orders", None, "pid",
        {"pid": sf.Id(), "oid": sf.Id(unique=True), "way": sf.Category(["web", "shop"]), "day": sf.Integer(1, 3),
         "fee": sf.Real(-3, 9)},
        max_rows_per_unit=3, unique=(("day", "way"),),
    ),
    "lines": Table(
        "lines", None, None, {"oid": sf.Id(), "item": sf.Integer(1, 3), "price": sf.Real(-5, 5)},
        max_rows_per_unit=2, unique=(("oid", "item"),), unit_through=("oid", "orders"),
    ),
    "notes": Table(
        "notes", None, "pid", {"pid": sf.Id(), "oid": sf.Id(), "item": sf.Integer(1, 3), "tag": sf.Text()},
        max_rows_per_unit=1,
    ),
    "shops": Table("shops", None, None, {"way": sf.Category(["web", "shop"]), "day": sf.Integer(1, 3)}, public=True),
}  # fmt: skip
SHOPS = pd.DataFrame({"way": ["web", "shop", None], "day": [1, 1, 2]})
TYPES = {"oid": ColumnType.ID, "way": ColumnType.TEXT, "day": ColumnType.INTEGER, "fee": ColumnType.REAL,
         "item": ColumnType.INTEGER, "price": ColumnType.REAL, "tag": ColumnType.TEXT}  # fmt: skip
MOST_DEPTH = 3
ALLOWED = 1  # times the certified sensitivity


class SourceMaker:
    """Builds random sources. `columns` of a source are the names and types that it passes on."""

    def __init__(self, seed):
        self.random, self.names = random.Random(seed), 0

    def name(self, letter):
        self.names += 1
        return f"{letter}{self.names}."

    def make(self, depth=0):
        """A private source and its columns."""
        kinds = ["scan"] if depth == MOST_DEPTH else ["scan", "join", "join", "join", "derived", "key", "unit", "cap",
                                                      "union", "public"]  # fmt: skip
        return getattr(self, f"make_{self.random.choice(kinds)}")(depth)

    def make_scan(self, _depth):
        table = TABLES[self.random.choice(["orders", "lines", "notes"])]
        prefix, met = self.name("t"), self.random.choice([None, TIMES_MET * table.max_rows_per_unit])
        unique = tuple(key for key in table.unique if self.random.random() < 0.9)
        columns = [Column(prefix + name, TYPES[name]) for name in table.columns if name != table.unit]
        return Scan(table.name, "1", table.max_rows_per_unit, prefix, met, unique), columns

    def pick(self, columns, most=3):
        return self.random.sample(columns, min(len(columns), self.random.randint(1, most))) if columns else []

    def make_filters(self, columns):
        column = self.random.choice(columns) if columns and self.random.random() < 0.3 else None
        return () if column is None else (Call("not", (Call("is null", (column,)),)),)

    def make_derived(self, depth):
        inner, columns = self.make(depth + 1)
        prefix = self.name("d")
        made = [(f"{prefix}c{place}", column) for place, column in enumerate(self.pick(columns, 6))]
        if columns and self.random.random() < 0.3:  # a computed column: it is no key
            column = self.random.choice(columns)
            made.append((f"{prefix}computed", Call("coalesce", (column, column))))
        shown = [Column(name, value.type) for name, value in made if isinstance(value, Column)]
        return Derived(inner, self.make_filters(columns), tuple(made)), shown

    def make_key(self, depth):
        inner, columns = self.make(depth + 1)
        prefix, keys = self.name("k"), []
        for place, column in enumerate(self.pick(columns)):
            value = Call("coalesce", (column, column)) if self.random.random() < 0.1 else column
            keys.append((f"{prefix}{place}", value, column.type))
        counted = UnitColumn(f"{prefix}n", "count", None, 0, 9, 0)
        named = tuple((name, value) for name, value, _ in keys)
        source = PerKey(inner, self.make_filters(columns), (counted,), named, self.random.choice([1, 2, 5]))
        return source, [*(Column(name, kind) for name, _, kind in keys), Column(f"{prefix}n", ColumnType.REAL)]

    def make_unit(self, depth):
        inner, columns = self.make(depth + 1)
        name = self.name("u") + "n"
        return PerUnit(inner, self.make_filters(columns), (UnitColumn(name, "count", None, 0, 9, 0),)), [
            Column(name, ColumnType.REAL)
        ]

    def make_cap(self, depth):
        inner, columns = self.make(depth + 1)
        return Capped(inner, self.random.choice([1, 2, 4])), columns

    def make_union(self, depth):
        (one, mine), (two, yours) = self.make(depth + 1), self.make(depth + 1)
        prefix = self.name("v")
        pairs = [(a, b) for a in mine for b in yours if a.type is b.type][:2]
        parts = [Derived(side, (), tuple((f"{prefix}{place}", pair[number]) for place, pair in enumerate(pairs)))
                 for number, side in enumerate((one, two))]  # fmt: skip
        return Union(tuple(parts)), [Column(f"{prefix}{place}", a.type) for place, (a, _) in enumerate(pairs)]

    def make_public(self, depth):
        inner, columns = self.make(depth + 1)
        prefix = self.name("s")
        pairs = [(column, Column(prefix + name, kind))
                 for column in columns
                 for name, kind in (("way", ColumnType.TEXT), ("day", ColumnType.INTEGER))
                 if column.type is kind]  # fmt: skip
        if not pairs:
            return inner, columns
        source = Join(inner, PublicScan("shops", "1", prefix), self.random.random() < 0.5, tuple(self.pick(pairs, 2)),
                      self.random.choice([1, 2]))  # fmt: skip
        return source, columns

    def make_join(self, depth):
        left, mine = self.make(depth + 1)
        grouped = depth < MOST_DEPTH - 1 and self.random.random() < 0.4
        right, theirs = self.make_key(depth + 1) if grouped else self.make(depth + 1)
        wanted = set()
        keys = list_unique(right)
        if keys and self.random.random() < 0.8:  # compare all columns of a unique key, or nearly all
            wanted = set(self.random.choice(keys))
        pairs = []
        for two in theirs:
            alike = [one for one in mine if one.type is two.type]
            if alike and (two.name in wanted or self.random.random() < 0.2):
                one = self.random.choice(alike)
                pairs.append((Call("coalesce", (one, one)) if self.random.random() < 0.1 else one, two))
        source = Join(left, right, self.random.random() < 0.4, tuple(pairs), None, self.random.random() < 0.8)
        return source, [*mine, *theirs]


def make_plan(seed, neighbours):
    """A plan over a random source, or None if the kernel refuses it."""
    maker = SourceMaker(seed)
    source, columns = maker.make_join(0) if maker.random.random() < 0.6 else maker.make(0)
    numbers = [column for column in columns if column.type in (ColumnType.REAL, ColumnType.INTEGER)]
    loss = PureDP(1)
    measured = [Measurement("rows", Count(None), loss)]
    if numbers:
        measured.append(Measurement("sum", Sum(maker.random.choice(numbers), Grid(-5 << 4, 9 << 4, -4)), loss))
    ways = [column for column in columns if column.type is ColumnType.TEXT]
    keys = (Key(ways[0], ("web", "shop")),) if ways and maker.random.random() < 0.3 else ()
    try:
        unit = PrivacyUnit("orders", "pid", neighbours)
        return BoundedPlan("shop", source, unit, 2, (), keys, tuple(measured))
    except KernelFault:
        return None


def make_person(rng, name):
    """The records of one person: few different keys, often repeated, some of them NULL."""
    owned = [f"{name}{number}" for number in (1, 2)]
    repeat = rng.choice([1, 1, 4, 12])
    orders = [{"pid": name, "oid": rng.choice([*owned, None]), "way": rng.choice(["web", "shop", None, "web"]),
               "day": rng.choice([1.0, 2.0, None]), "fee": rng.choice([9.0, -3.0, None])}
              for _ in range(rng.randint(0, 2 * repeat))]  # fmt: skip
    lines = [{"oid": rng.choice([*owned, None, "nobody"]), "item": rng.choice([1.0, 2.0, 3.0, None]),
              "price": rng.choice([5.0, -5.0, None])} for _ in range(rng.randint(0, 2 * repeat))]  # fmt: skip
    notes = [{"pid": name, "oid": rng.choice([*owned, "7", None]), "item": rng.choice([1.0, 2.0, None]),
              "tag": rng.choice(["web", "x", None])} for _ in range(rng.randint(0, 2 * repeat))]  # fmt: skip
    return {"orders": orders, "lines": lines, "notes": notes}


def pin(people):
    data = {"shops": SHOPS}
    for name in ("orders", "lines", "notes"):
        kinds = {column: float if TYPES.get(column) in (ColumnType.REAL, ColumnType.INTEGER) else object
                 for column in TABLES[name].columns}  # fmt: skip
        rows = [row for person in people for row in person[name]]
        data[name] = pd.DataFrame(rows, columns=list(kinds)).astype(kinds)
    return DuckDBEngine.of_tables({name: (table, data[name]) for name, table in TABLES.items()})


def list_rows(engine):
    held = {}
    for name in TABLES:
        cursor = engine._connection.execute(f'SELECT * FROM "{name}"')
        names = [column[0] for column in cursor.description]
        held[name] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return held


def measure(people, plans):
    engine = pin(people)
    try:
        reference, found = ReferenceEngine(list_rows(engine)), []
        for plan in plans:
            engine.check(plan)
            found.append(list_by_cell(engine.aggregate(plan), plan))
            assert found[-1] == list_by_cell(reference.aggregate(plan), plan), "engines differ"
    finally:
        engine.close()
    return found


def find_excess(plan, before, after):
    """The measurements that move by more than the kernel says (times ALLOWED, for controls)."""
    found = []
    for certified in certify(plan).measurements:
        cells = [where for where in before.keys() | after.keys() if where[0] == certified.name]
        moved = [abs(before.get(where, 0) - after.get(where, 0)) for where in cells]
        l1, l2_squared = ALLOWED * certified.sensitivity.l1, ALLOWED**2 * certified.sensitivity.l2_squared
        if sum(moved) > l1 or sum(one**2 for one in moved) > l2_squared:
            found.append(certified.name)
    return found


@cache
def list_plans(neighbours, many):
    """Random plans that the kernel accepts and whose public multiplicities are those of the pinned table."""
    engine, found, seed = pin([]), [], 0
    try:
        while len(found) < many:
            seed += 1
            plan = make_plan(seed, neighbours)
            if plan is not None:
                try:
                    engine.check(plan)
                except KernelFault:  # a public table repeats a row more often than the plan says
                    continue
                found.append(plan)
    finally:
        engine.close()
    return tuple(found)


def search(seed, plans):
    """Measure all plans on one random pair of neighbours; return the plans that move too far."""
    rng = random.Random(seed)
    others = [make_person(rng, f"p{number}") for number in range(rng.randint(0, 2))]
    mine, yours = make_person(rng, "me"), make_person(rng, "you")
    with_me = measure([*others, mine], plans)
    without = measure(others, plans)
    with_you = measure([*others, yours], plans)
    found = []
    for plan, one, none, two in zip(plans, with_me, without, with_you, strict=True):
        other = none if plan.unit.neighbours is Neighbours.ADD_REMOVE else two
        found += [(plan, name) for name in find_excess(plan, one, other)]
    return found


def list_parts(source):
    """A source and all sources below it."""
    inner = [getattr(source, name, None) for name in ("left", "right", "source")]
    parts = [part for part in (*inner, *getattr(source, "parts", ())) if part is not None]
    return [source, *(below for part in parts for below in list_parts(part))]


PLANS = 44


def list_both():
    half = PLANS // 2
    return (*list_plans(Neighbours.ADD_REMOVE, half), *list_plans(Neighbours.REPLACE_ONE, half))


@pytest.mark.parametrize("seed", range(count_examples(3)))
def test_no_neighbour_moves_a_random_source_further(seed):
    assert search(seed, list_both()) == []


UPWARD = (  # a subquery about the row that a link leads to
    "SELECT COUNT(*) AS n, SUM(price) AS s FROM lines WHERE oid IN (SELECT oid FROM orders WHERE fee > 1)",
    "SELECT COUNT(*) AS n FROM lines l WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.oid = l.oid "
    "AND o.day > l.item)",
    "SELECT SUM(price) AS s FROM lines l WHERE EXISTS (SELECT 1 FROM orders o WHERE o.oid = l.oid AND o.day = l.item)",
    "SELECT SUM((SELECT MAX(day) FROM orders o WHERE o.oid = l.oid)) AS s FROM lines l",
)


@cache
def list_upward():
    plans = []
    for neighbours in Neighbours:
        dataset = Dataset("shop", list(TABLES.values()), sf.Budget(epsilon=9), neighbours=neighbours.value)
        versions = dict.fromkeys(dataset.tables, "1")
        plans += [choose_plan(bind(parse(sql), dataset), sf.PureDP(1), dataset, versions).plan for sql in UPWARD]
    return tuple(plans)


@pytest.mark.parametrize("seed", range(count_examples(5)))
def test_no_neighbour_moves_the_row_of_a_link_further(seed):
    assert search(seed, list_upward()) == []


def test_negative_control_a_smaller_sensitivity_of_the_row_of_a_link(monkeypatch):
    """Some neighbours move a question by more than nine tenths of what the kernel says."""
    monkeypatch.setattr(sys.modules[__name__], "ALLOWED", 0.9)
    found = {plan for seed in range(10) for plan, _ in search(seed, list_upward())}
    assert len(found) >= 2


def test_the_random_sources_are_of_all_kinds():
    """They meet one row often, at every depth, and reach less than the product of their sides."""
    parts = [part for plan in list_both() for part in list_parts(plan.source)]
    kinds, joins = {type(part) for part in parts}, [part for part in parts if isinstance(part, Join)]
    meeting = [join for join in joins if join.meets_one]
    assert kinds == {Scan, PublicScan, Derived, Join, Union, PerUnit, PerKey, Capped}
    assert sum(join.outer for join in meeting) > 3
    assert sum(isinstance(join.right, PerKey) for join in meeting) > 2
    assert sum(isinstance(join.right, Scan) for join in meeting) > 6
    assert sum(not isinstance(join.right, Scan | PerKey) for join in meeting) > 1
    assert sum(derive_extent(join).reach < derive_extent(replace(join, meets_one=False)).reach for join in meeting) > 10


def test_rows_that_are_units_never_meet_whatever_is_unique():
    """A row unit: no accepted source lets a row depend on two rows of private tables, or count several as one."""
    accepted, count = 0, (Measurement("rows", Count(None), PureDP(1)),)
    for seed in range(1500):
        maker = SourceMaker(seed)
        source, _ = maker.make(0)
        try:
            BoundedPlan("shop", source, PrivacyUnit("orders", ROW, Neighbours.ADD_REMOVE), 1, (), (), count)
        except KernelFault:
            continue
        accepted += 1
        parts = list_parts(source)
        assert not any(isinstance(part, PerUnit | PerKey | Capped) for part in parts)
        assert not any(isinstance(part, Join) and part.multiplicity is None for part in parts)
        assert all(part.max_rows == 1 for part in parts if isinstance(part, Scan))
    assert accepted > 30


def test_negative_control_rows_that_repeat_a_key(monkeypatch):
    monkeypatch.setattr(table_reading, "drop_repeats", lambda *_: None)
    assert any(search(seed, list_both()) for seed in range(12))


def test_negative_control_a_key_that_is_compared_in_part(monkeypatch):
    """A source that compares one of the two columns of a key would be accepted, and reach further."""
    lines = Scan("lines", "1", 2, "l.", unique=(("oid", "item"),))
    orders = Scan("orders", "1", 3, "o.")
    on = ((Column("o.oid", ColumnType.ID), Column("l.oid", ColumnType.ID)),)
    with pytest.raises(KernelFault, match="unique key"):
        derive_extent(Join(orders, lines, False, on, meets_one=True))
    monkeypatch.setattr(row_sources, "list_unique", lambda _source: (frozenset(["l.oid"]),))
    unit = PrivacyUnit("orders", "pid", Neighbours.ADD_REMOVE)
    count = (Measurement("rows", Count(None), PureDP(1)),)
    plan = BoundedPlan("shop", Join(orders, lines, False, on, meets_one=True), unit, 1, (), (), count)
    assert any(search(seed, (plan,)) for seed in range(40))


def test_negative_control_a_union_is_no_key(monkeypatch):
    """If the parts of a union kept their keys, a row could meet one row of each part."""
    part = Derived(Scan("lines", "1", 2, "l.", unique=(("oid", "item"),)), (), (
        ("u.oid", Column("l.oid", ColumnType.ID)), ("u.item", Column("l.item", ColumnType.INTEGER)),
    ))  # fmt: skip
    mine = Scan("lines", "1", 2, "m.")
    on = ((Column("m.oid", ColumnType.ID), Column("u.oid", ColumnType.ID)),
          (Column("m.item", ColumnType.INTEGER), Column("u.item", ColumnType.INTEGER)))  # fmt: skip
    join = Join(mine, Union((part, part)), False, on, meets_one=True)
    with pytest.raises(KernelFault, match="unique key"):
        derive_extent(join)
    monkeypatch.setattr(row_sources, "list_unique", lambda _source: (frozenset(["u.oid", "u.item"]),))
    unit = PrivacyUnit("orders", "pid", Neighbours.ADD_REMOVE)
    plan = BoundedPlan("shop", join, unit, 1, (), (), (Measurement("rows", Count(None), PureDP(1)),))
    assert any(search(seed, (plan,)) for seed in range(40))
