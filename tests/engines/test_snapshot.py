"""Pinned values are compared with exact fractions in Python: clamped, rounded to the grid."""

import math
from collections import Counter
from dataclasses import replace
from datetime import date
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.reference.reference_rows import _place
from sfumato.ingest import counting, declared_versions, pinned_rows, table_reading
from sfumato.ingest.declared_versions import read_versions
from sfumato.ingest.hidden_names import STEPS
from sfumato.ingest.pinned_rows import find_grids, list_columns
from sfumato.ingest.snapshot import pin

ODD = [None, math.nan, math.inf, -math.inf, -0.0, 0.5, -0.5, 1.5, 2.5, 0.49999999999999994, 1e300, 5e-324, 2.0**53]
numbers = st.one_of(st.sampled_from(ODD), st.floats(-300, 300), st.integers(-200, 200).map(lambda number: number / 2))
wholes = st.one_of(st.none(), st.integers(-300, 300), st.sampled_from([2**53, -(2**53), 2**63 - 1, -(2**63)]))
texts = st.sampled_from([None, "", "Rome", "Oslo", "O'slo", "rome", "17", "-3.5", "nan", "1e999", "2020-02-30"])
rows = st.lists(st.tuples(st.sampled_from([None, 1, 2, 3]), numbers, wholes, texts), max_size=30)
TYPES = {"who": pa.int32(), "x": pa.float64(), "i": pa.int64(), "t": pa.string()}


def columns(nullable):
    return {
        "who": sf.Id(),
        "x": sf.Real(-100, 250, nullable=nullable),
        "i": sf.Integer(-5, 120, nullable=nullable),
        "t": sf.Category(["Rome", "O'slo", ""], nullable=nullable),
    }


def held(number, declared, nullable):
    """A number within its bounds; a whole one where that is declared, halves upwards."""
    if number is None or math.isnan(number):
        if nullable:
            return None
        whole = isinstance(declared, sf.Integer)
        return (declared.lower + declared.upper) // 2 if whole else (declared.lower + declared.upper) / 2
    if math.isinf(number) or not declared.lower <= number <= declared.upper:
        return declared.lower if number < declared.lower else declared.upper
    return math.floor(Fraction(number) + Fraction(1, 2)) if isinstance(declared, sf.Integer) else number


def expected(data, declared, nullable, unit, most):
    table = Table("t", None, unit, declared, most)
    stored, counts = find_grids(table), Counter(row[0] for row in data)
    for who, *values in data:
        if unit is not sf.ROW and who is None:
            continue
        row = {"x": held(values[0], declared["x"], nullable), "i": held(values[1], declared["i"], nullable)}
        row["t"] = values[2] if values[2] in declared["t"].values else None if nullable else "Rome"
        for name, grid in stored.items():
            value = row[name]
            steps = (
                None if value is None else math.floor(Fraction(value) / Fraction(2) ** grid.exponent + Fraction(1, 2))
            )
            row[STEPS + name] = steps
            assert steps is None or grid.lower <= steps <= grid.upper
        if unit is sf.ROW:
            row["who"] = None if who is None else str(who)  # an id that is nobody's unit is kept, to be joined on
        else:
            row |= {"__sfumato_unit": who, "__sfumato_rows": counts[who] if counts[who] > most else 1}
        yield row


@pytest.mark.parametrize(("lower", "upper"), [(0, 1), (0, 250), (3, 7), (0, 1e12), (-1, 1), (-250, 0)])
@pytest.mark.parametrize("unit", [sf.ROW, "who"])
def test_steps_are_rounded_exactly(lower, upper, unit):
    """Also halves of a step, and the doubles next to them, on both sides of zero."""
    declared = {"who": sf.Id(), "x": sf.Real(lower, upper, nullable=False)}
    table = Table("t", None, unit, declared, 1)
    grid = find_grids(table)["x"]
    size = 2.0**grid.exponent
    ends = [grid.lower, grid.lower + 1, (grid.lower + grid.upper) // 2, grid.upper - 1, -3, 0, 7]
    halves = [(end + part) * size for end in ends for part in (0, 0.25, 0.5, 0.75)]
    near = [math.nextafter(value, to) for value in halves for to in (-math.inf, math.inf)]
    values = [*halves, *near, 0.49999999999999994 * size, 5e-324, -0.0, *(value for value in ODD if value is not None)]
    data = pa.table({"who": list(range(len(values))), "x": values})
    with duckdb.connect(":memory:") as connection:
        pin(connection, table, data)
        made = connection.execute(f'SELECT x, "{STEPS}x" FROM t').fetchall()
    assert len(made) == len(values)
    assert {steps for _, steps in made} > {grid.lower, grid.upper}
    for value, steps in made:
        assert steps == math.floor(Fraction(value) / Fraction(2) ** grid.exponent + Fraction(1, 2))


def met(made, most):
    """Of each person with more than 8 times the bound, so many rows are met: those of the least place."""
    for who in {row.get("__sfumato_unit") for row in made} - {None}:
        mine = sorted((row for row in made if row["__sfumato_unit"] == who), key=_place)
        for number, row in enumerate(mine):
            row["__sfumato_met"] = number < 8 * most
    return made


def pinned(table, data):
    with duckdb.connect(":memory:") as connection:
        pin(connection, table, data)
        names = [column[0] for column in connection.execute("DESCRIBE t").fetchall()]
        return [dict(zip(names, row, strict=True)) for row in connection.execute("SELECT * FROM t").fetchall()]


def comparable(held_rows):
    return sorted(sorted((name, repr(_one_zero(value))) for name, value in row.items()) for row in held_rows)


def _one_zero(value):
    return 0.0 if isinstance(value, float) and value == 0 else value


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(("unit", "most"), [(sf.ROW, 1), ("who", 1), ("who", 3), ("who", 2**40)])
@settings(max_examples=40, deadline=None)
@given(rows)
@example([])
@example([(1, math.nan, None, None)])
@example([(number % 2, number / 3, number, ("Rome", None, "Oslo")[number % 3]) for number in range(60)])
@example([(5, x, None, "") for x in (-0.0, 1e-300, -1e300, 0.1, math.inf, None)] * 5)
def test_a_snapshot_is_what_plain_python_makes(nullable, unit, most, data):
    declared = columns(nullable)
    arrow = pa.table({name: pa.array([row[at] for row in data], TYPES[name]) for at, name in enumerate(TYPES)})
    table = Table("t", None, unit, declared, most)
    assert comparable(pinned(table, arrow)) == comparable(
        met(list(expected(data, declared, nullable, unit, most)), most)
    )


def test_the_comparison_sees_a_wrong_rounding(monkeypatch):
    """Negative control: rounding down instead of to the nearest step."""
    data = [(1, tenths / 10, 1, "Rome") for tenths in range(1, 10)]
    arrow = pa.table({name: pa.array([row[at] for row in data], TYPES[name]) for at, name in enumerate(TYPES)})
    wanted = comparable(met(list(expected(data, columns(True), True, "who", 2)), 2))
    assert comparable(pinned(Table("t", None, "who", columns(True), 2), arrow)) == wanted
    monkeypatch.setattr(pinned_rows, "round_half_up", lambda value: f"FLOOR({value})")
    assert comparable(pinned(Table("t", None, "who", columns(True), 2), arrow)) != wanted


EVERYTHING = {
    "who": sf.Id(),
    "tiny": sf.Integer(-128, 127),
    "small": sf.Integer(-129, 127, nullable=False),
    "middling": sf.Integer(0, 2**31 - 1),
    "large": sf.Integer(-(2**53), 2**53, nullable=False),
    "real": sf.Real(-1, 1e-9),
    "wide": sf.Real(0, 2**53, nullable=False),
    "flag": sf.Boolean(nullable=False),
    "city": sf.Category(["Rome", "O'slo"], nullable=False),
    "code": sf.Category([1, 70_000], nullable=False),
    "sure": sf.Category([True]),
    "job": sf.Text(nullable=False),
    "born": sf.Date("1900-01-01", "2025-12-31", nullable=False),
}
ENDS = {
    "tiny": [-(10**6), 10**6], "small": [-(10**6), None], "middling": [-1, 2**62], "large": [-(2**62), 2**62],
    "real": [-9.0, 9.0], "wide": [-1.0, 1e300], "flag": [None, True], "city": ["x", "O'slo"], "code": [70_000, 2],
    "sure": [False, True], "job": [None, "a"], "born": [date(1, 1, 1), date(9999, 12, 31)],
}  # fmt: skip


@pytest.mark.parametrize("unit", [sf.ROW, "who"])
@pytest.mark.parametrize("as_texts", [False, True])
def test_the_columns_and_types_follow_from_the_declaration(unit, as_texts):
    data = pa.table({"who": [1, 2], **ENDS})
    if as_texts:
        data = pa.table({name: data[name].cast(pa.string()) for name in data.column_names})
    table = Table("t", None, unit, EVERYTHING, 1 if unit is sf.ROW else 5)
    with duckdb.connect(":memory:") as connection:
        pin(connection, table, data)
        described = ", ".join(f'"{name}" {kind}' for name, kind in list_columns(table).items())
        connection.execute(f"CREATE TABLE empty ({described})")
        made, declared = (
            {row[0]: row[1] for row in connection.execute(f"DESCRIBE {name}").fetchall()} for name in ("t", "empty")
        )
        ends = connection.execute("SELECT * EXCLUDE (born), born::VARCHAR FROM t ORDER BY tiny").fetchall()
        ends = [row[unit is sf.ROW :] for row in ends]
    assert list(made) == list(declared)
    made.pop("__sfumato_unit", None), declared.pop("__sfumato_unit", None)
    assert made == declared
    assert made["tiny"] == "TINYINT"
    assert ends[0][:4] == (-128, -129, 0, -(2**53))
    assert ends[1][:4] == (127, -1, 2**31 - 1, 2**53)
    assert (ends[0][-1], ends[1][-1]) == ("1900-01-01", "2025-12-31")


def test_rows_of_which_nothing_is_declared_can_be_counted():
    held_rows = pinned(Table("t", None, sf.ROW, {}), pa.table({"who": [1, 2, 3]}))
    assert [list(row) for row in held_rows] == [["__sfumato_rows"]] * 3


def test_a_version_is_new_each_time_and_bound_to_the_declaration():
    table, data = Table("t", None, sf.ROW, {"x": sf.Integer(0, 9)}), pa.table({"x": [1]})
    with duckdb.connect(":memory:") as connection:
        pin(connection, table, data)
        first = read_versions(connection, {"t": table})
        pin(connection, table, data)
        assert read_versions(connection, {"t": table}) != first
        for other in ({"x": sf.Integer(0, 8)}, {"x": sf.Integer(0, 9, nullable=False)}, {"x": sf.Real(0, 9)}):
            with pytest.raises(sf.errors.CatalogError, match="sfumato prepare"):
                read_versions(connection, {"t": Table("t", None, sf.ROW, other)})


def test_another_layout_of_columns_is_refused(monkeypatch):
    table, data = Table("t", None, sf.ROW, {"x": sf.Integer(0, 9)}), pa.table({"x": [1]})
    with duckdb.connect(":memory:") as connection:
        pin(connection, table, data)
        monkeypatch.setattr(declared_versions, "LAYOUT", declared_versions.LAYOUT + 1)
        with pytest.raises(sf.errors.CatalogError, match=r"another version of Sfumato.*sfumato prepare"):
            read_versions(connection, {"t": table})


@pytest.mark.parametrize(("most", "stored"), [(1, True), (2, True), (3, False)])
def test_weights_are_stored_only_where_somebody_exceeds_the_bound(most, stored):
    """Person 1 has three rows, of which joins meet all."""
    data = pa.table({"who": [1, 1, 1, 2, None], "x": [1, 2, 3, 4, 5]})
    table = Table("t", None, "who", {"who": sf.Id(), "x": sf.Integer(0, 9)}, most)
    with duckdb.connect(":memory:") as connection:
        pin(connection, table, data)
        ((made,),) = connection.execute("SELECT sql FROM duckdb_tables() WHERE table_name = 't'").fetchall()
        assert ("GENERATED" in made) is not stored
        held = connection.execute("SELECT x, __sfumato_rows, __sfumato_met FROM t ORDER BY x").fetchall()
    assert held == [(x, 3 if stored and x < 4 else 1, True) for x in (1, 2, 3, 4)]


@settings(max_examples=25, deadline=None)
@given(st.booleans(), rows)
@example(False, [(1, 1.0, 1, "Rome")])
@example(True, [(1, -100.0, -5, ""), (None, math.nan, 121, "x")])
def test_a_report_looks_only_at_columns_that_lose_a_value(nullable, data):
    """The same report as if what became of every value were noted."""
    declared = columns(nullable)
    arrow = pa.table({name: pa.array([row[at] for row in data], TYPES[name]) for at, name in enumerate(TYPES)})
    reports = []
    for later in (table_reading.is_counted_later, lambda table, source: False):
        with pytest.MonkeyPatch.context() as patched, duckdb.connect(":memory:") as connection:
            patched.setattr(table_reading, "is_counted_later", later)
            reports.append(pin(connection, Table("t", None, "who", declared, 2), arrow))
    assert reports[0] == reports[1]


EDGES = {  # of each type: the declaration, and values that are kept, lost, or look like what a lost one becomes
    "real": (sf.Real(0, 10), [0.0, 10.0, 5.0, 11.0, -1.0, math.nan, None, 3.0]),
    "whole": (sf.Integer(0, 9), [0, 9, 4, 12, -1, None, 3]),
    "rounded": (sf.Integer(0, 9), [0.0, 9.0, 4.0, 2.5, 12.0, -0.5, None, 3.0]),
    "day": (sf.Date("2020-01-01", "2020-12-31"), ["2020-01-01", "2020-12-31", "2020-07-01", "2019-01-01", "x", None]),
    "moment": (
        sf.DateTime("2020-01-01 00:00:00", "2020-01-03 00:00:00"),
        ["2020-01-01 00:00:00", "2020-01-02 00:00:00", "2020-01-03 00:00:01", "x", None],
    ),
    "truth": (sf.Boolean(), [True, False, None]),
    "spelled truth": (sf.Boolean(), ["yes", "no", "maybe", None]),
    "text": (sf.Text(), ["", "a", None]),
    "category": (sf.Category(["a", "b"]), ["a", "b", "c", None]),
    "number": (sf.Category([3, 1]), [3, 1, 2, None]),
    "id": (sf.Id(), ["a", None]),
}


@pytest.mark.parametrize("kind", EDGES)
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("spelled", [True, False])
def test_a_report_is_the_same_if_it_is_counted_later(kind, nullable, spelled):
    """Of each of these values and of all, also where ids are spelled in several ways and some rows are nobody's."""
    declared, values = EDGES[kind]
    declared = declared if nullable or isinstance(declared, sf.Id) else replace(declared, nullable=False)
    whos = ["1", "1.0", " 2", "NaN", None] if spelled else [1, 2, None]
    table = Table("t", None, "who", {"who": sf.Id(), "v": declared}, 2)
    with duckdb.connect(":memory:") as connection:
        for some in [(), *([value] for value in values), values]:
            column = pa.array(some, pa.array(values).type)
            ids = [whos[at % len(whos)] for at in range(len(some))]
            data = pa.table({"who": pa.array(ids, pa.string() if spelled else pa.int32()), "v": column})
            reports = []
            for later in (table_reading.is_counted_later, lambda table, source: False):
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr(table_reading, "is_counted_later", later)
                    reports.append(pin(connection, table, data))
            assert reports[0] == reports[1]


def test_the_comparison_of_reports_sees_a_missed_column(monkeypatch):
    """Negative control: a clamped value that is taken for one that is kept."""
    data = pa.table({"who": [1], "x": [500.0], "i": [1], "t": ["Rome"]})
    with duckdb.connect(":memory:") as connection:
        assert pin(connection, Table("t", None, "who", columns(True), 2), data).columns[1].clamped_above == 1
        monkeypatch.setattr(counting, "_hold_substitute", lambda *given: "false")
        assert pin(connection, Table("t", None, "who", columns(True), 2), data).columns[1].clamped_above == 0
