"""Values that are linear in one another are measured once; what is computed from them is what was asked."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.plan import Halves, Sum, Thirds
from sfumato.planning.linear_repeats import fold_repeats, list_measured
from sfumato.query.query import Aggregate, Typed

ROWS = 4_000
COLUMNS = {"id": sf.Id(), "x": sf.Integer(0, 100), "y": sf.Real(-3, 5, nullable=False), "d": sf.Category(["a", "b"])}


def frame():
    draw = np.random.default_rng(3)
    x = draw.integers(0, 101, ROWS).astype(float)
    x[::7] = np.nan
    people = [f"p{row // 2}" for row in range(ROWS)]
    return pd.DataFrame({"id": people, "x": x, "y": draw.uniform(-3, 5, ROWS), "d": draw.choice(["a", "b"], ROWS)})


def protect(unit, **options):
    columns = COLUMNS if unit == "id" else {name: column for name, column in COLUMNS.items() if name != "id"}
    bounds = {"max_rows_per_unit": 2} if unit == "id" else {}
    return sf.protect(
        frame(), name="t", unit=unit, columns=columns, budget=sf.Budget(epsilon=10**9), **bounds, **options
    )


@pytest.mark.parametrize("unit", ["id", sf.ROW])
@pytest.mark.parametrize("column", ["x", "y"])
@pytest.mark.parametrize("keys", ["", "d, "])
def test_every_line_is_what_was_asked(unit, column, keys):
    """At a very large epsilon, the answer is that of pandas: NULLs, signs, shifts and groups included."""
    lines = {
        "x": lambda v: v, "x + 1": lambda v: v + 1, "2 * x": lambda v: 2 * v, "3 - x": lambda v: 3 - v,
        "-x / 4 - 0.5": lambda v: -v / 4 - 0.5, "(x + 1) * 2 - 7": lambda v: (v + 1) * 2 - 7,
        "1 + 0.1 * x": lambda v: 1 + 0.1 * v,
    }  # fmt: skip
    functions = {"SUM": "sum", "AVG": "mean", "VARIANCE": "var", "STDDEV": "std", "COUNT": "count"}
    asked = {f"{name}_{place}": (name, line) for place, line in enumerate(lines) for name in functions}
    columns = ", ".join(f"{name}({line.replace('x', column)}) AS {alias}" for alias, (name, line) in asked.items())
    group = f" GROUP BY {keys.strip(', ')}" if keys else ""
    answer = protect(unit).ask(f"SELECT {keys}{columns} FROM t{group}", epsilon=10**7)
    data = frame()
    for row in answer.rows:
        mine = data[data.d == row["d"]] if keys else data
        for alias, (name, line) in asked.items():
            wanted = getattr(lines[line](mine[column]), functions[name])()
            assert row[alias] == pytest.approx(wanted, rel=2e-4, abs=1e-2), (alias, line)


@pytest.mark.parametrize("times", [2, 90])
def test_ninety_sums_cost_what_one_costs(times):
    """ClickBench asks for 90 sums of x + k. The margin of the first is that of a single sum."""
    people = protect(sf.ROW)
    one = people.preview("SELECT SUM(x) AS s0 FROM t", epsilon=1).margins["s0"]
    columns = ", ".join(f"SUM(x + {shift}) AS s{shift}" for shift in range(times))
    several = people.preview(f"SELECT {columns} FROM t", epsilon=1).margins
    assert several["s0"] == one
    assert several["s1"] <= 1.02 * one


def test_multiples_need_no_count():
    """Without a shift, the sum alone is measured."""
    people = protect(sf.ROW)
    one = people.preview("SELECT SUM(y) AS s FROM t", epsilon=1).margins["s"]
    both = people.preview("SELECT SUM(y) AS s, SUM(-2 * y) AS m FROM t", epsilon=1).margins
    assert both == {"s": one, "m": 2 * one}


def test_what_repeats_is_said():
    text = protect(sf.ROW).preview("SELECT SUM(x) AS s, SUM(x + 1) AS m FROM t", epsilon=1).explain()
    assert "multiple of another value plus a constant" in text


def typed(lower, upper, expression=None, *, nullable=True):
    return Typed(expression or Column("x", ColumnType.REAL), "number", nullable, lower, upper)


def test_a_value_with_other_bounds_is_measured_itself():
    """Negative control: the same column, clamped elsewhere, is not the same value."""
    narrow, wide = Aggregate("SUM", typed(0, 10)), Aggregate("SUM", typed(0, 100))
    assert list_measured(fold_repeats([narrow, wide])) == [narrow, wide]
    never = Aggregate("SUM", typed(0, 10, nullable=False))
    assert list_measured(fold_repeats([narrow, never])) == [narrow, never]
    people = Aggregate("PEOPLE", None)
    assert list_measured(fold_repeats([narrow, narrow, people])) == [narrow, people]


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("SELECT SUM(x + 1) AS s FROM t", [Sum]),
        ("SELECT SUM(x + 1) AS s, SUM(2 * x + 2) AS m FROM t", [Sum]),
        ("SELECT SUM(x) AS s, SUM(x + 1) AS m, SUM(x) / COUNT(x) AS q, AVG(x) AS a FROM t", [Halves]),
        ("SELECT SUM(x) AS s, VARIANCE(5 - x) AS m FROM t", [Thirds]),
        ("SELECT SUM(x * x) AS s, SUM(x) AS m FROM t", [Sum, Sum]),
    ],
)
def test_what_is_measured(sql, kinds):
    text = protect(sf.ROW).preview(sql, epsilon=1).explain()
    names = {Sum: "(sum)", Halves: "(count and sum together)", Thirds: "(count, sum and squares together)"}
    lines = [line for line in text.splitlines() if "mechanism, scale" in line]
    assert len(lines) == len(kinds)
    assert all(names[kind] in line for kind, line in zip(kinds, lines, strict=True))
