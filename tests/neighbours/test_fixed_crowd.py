"""One crowd that has everything: many rows, halves of grid steps, NULL, NaN, infinities, people in one table only.

Quick enough to be run on broken code (`make mutants`): the engines agree, and nobody moves more than is certified.
"""

from dataclasses import replace

import pytest
import test_joins
import test_sensitivity

import sfumato as sf
from sfumato.kernel.certify import certify

HALF = 3 * 2.0**-20  # of a grid step, and one
NAN, INF = float("nan"), float("inf")


def visits(*costs, sites=(1.0, 2.0, 3.0, 9.0, None), kinds=("a", "smith", "", None)):
    rows = enumerate(costs)
    return [{"cost": cost, "site": sites[n % len(sites)], "kind": kinds[n % len(kinds)]} for n, cost in rows]


def patients(*ages, cities=("Rome", "Oslo", "Bern", None), jobs=("smith", "priest", None)):
    rows = enumerate(ages)
    return [{"age": age, "city": cities[n % len(cities)], "job": jobs[n % len(jobs)]} for n, age in rows]


OTHERS = [
    (0, (patients(40), visits(10.0, HALF, -HALF))),
    (1, (patients(20, 30), visits(50.0, -5.0, 7.25, 60.0, -60.0))),
    (2, (patients(None, NAN), visits(None, NAN, INF, -INF, 0.0, -0.0))),
    (3, (patients(99.5), [])),
    (4, ([], visits(*[visit / 7 for visit in range(30)]))),
    (5, (patients(50, 60), visits(20.0))),  # over the bound of one table, below that of the other
]
ME = (patients(*range(100, 88, -1)), visits(*[50.0 - visit / 3 for visit in range(27)]))
YOU = (patients(0, 1, cities=("Oslo",)), visits(-5.0, -4.0, -3.0, -2.0, sites=(4.0,), kinds=("b",)))
SOMEBODY = (patients(77, cities=("Rome",)), visits(49.0, 49.0, sites=(2.0,), kinds=("smith",)))


def moved(before, after):
    """By measurement: the change of every cell, part and bin. For keys of one person only, the change of people."""
    lonely = {where[1] for where in before.keys() ^ after.keys() if where[0].startswith("keys")}
    found = {}
    for where in before.keys() | after.keys():
        if where[1] not in lonely or where[0].startswith("keys"):
            found.setdefault(where[0], []).append(abs(before.get(where, 0) - after.get(where, 0)))
    return found


@pytest.mark.parametrize("question", test_joins.QUESTIONS)
def test_a_fixed_crowd_moves_as_certified(question):
    """Through joins, unions, rows per person and choices, on both engines alike."""
    plans = {neighbours: test_joins.planned(question, neighbours) for neighbours in ("add-remove", "replace-one")}
    found = [test_joins.measured([*OTHERS, (9, person)], plans["add-remove"]) for person in (ME, YOU, SOMEBODY)]
    found.append(test_joins.measured(OTHERS, plans["add-remove"]))
    for neighbours, plan in plans.items():
        pairs = [(0, 3), (1, 3), (2, 3)] if neighbours == "add-remove" else [(0, 1), (0, 2)]
        for measurement in certify(plan).measurements:
            for one, two in pairs:
                steps = moved(found[one], found[two]).get(measurement.name, [])
                assert sum(steps) <= measurement.sensitivity.l1, (question, measurement.name)
                assert sum(step**2 for step in steps) <= measurement.sensitivity.l2_squared, (
                    question,
                    measurement.name,
                )


def rows(*pays, ages=(1.0, 41.0, None, NAN, 200.0, 3.0), bases=(10.0, None, 25.0, 15.5)):
    cities, smokers = ("Rome", "Oslo", "Tromsø", "Atlantis", None), (True, False, None)
    return [
        {
            "age": ages[n % len(ages)], "pay": pay, "base": bases[n % len(bases)], "city": cities[n % len(cities)],
            "smoker": smokers[n % len(smokers)],
        }
        for n, pay in enumerate(pays)
    ]  # fmt: skip


CROWD = [
    (0, rows(1.0, 2.0**-11 * 3, -(2.0**-11) * 3, None)),
    (1, rows(9000.0, -100.0, INF, NAN, -INF, 1e300, -0.0)),
    (2, rows(5.5)),
]
MINE, YOURS = rows(*[8999.5] * 9), rows(-100.0, -99.0, -98.0, -97.0)


@pytest.mark.parametrize("question", test_sensitivity.QUESTIONS)
def test_a_fixed_crowd_of_one_table_moves_as_certified(question):
    for neighbours, without in (("add-remove", CROWD), ("replace-one", [*CROWD, (9, YOURS)])):
        test_sensitivity.check(question, "id", neighbours, [*CROWD, (9, MINE)], without)
        if "DISTINCT" not in question:
            single = [(0, [row for _, mine in CROWD for row in mine])]
            changed = single if neighbours == "add-remove" else [*single, (1, YOURS[:1])]
            test_sensitivity.check(question, sf.ROW, neighbours, [*single, (1, MINE[:1])], changed)


@pytest.mark.parametrize("ends", [(-10, 10), (-10, None), (None, 10), (-(2**24), 2**24), (-10, 2**24)], ids=str)
@pytest.mark.parametrize("computed", [True, False])
def test_values_are_held_to_the_bounds_of_the_plan(computed, ends):
    """The planner is not trusted: whatever bounds a plan declares, its measurements stay within them.

    The snapshot holds the steps of a plain column, which are within its declared bounds.
    """
    question = f"SELECT SUM({'pay + 1' if computed else 'pay'}) AS s FROM t"
    plan, table = test_sensitivity.planned(question, "id", "add-remove")
    (measurement,) = plan.measurements
    grid = measurement.quantity.grid
    lower, upper = (
        declared if end is None else end for end, declared in zip(ends, (grid.lower, grid.upper), strict=True)
    )
    grid = replace(grid, lower=lower, upper=upper)
    narrow = replace(
        plan, measurements=(replace(measurement, quantity=replace(measurement.quantity, grid=grid, offset=0)),)
    )
    (certified,) = certify(narrow).measurements
    for mine in (MINE, YOURS):
        with_me, without = (
            test_sensitivity.measured(people, narrow, table)[certified.name] for people in ([*CROWD, (9, mine)], CROWD)
        )
        moved = abs(int(with_me[0]) - int(without[0]))
        assert 0 < moved <= certified.sensitivity.l1 == 3 * max(abs(lower), abs(upper))


def test_steps_of_another_size_are_computed():
    """A plan with coarser steps than the snapshot's: the engines agree, and the sum is within the coarser bounds."""
    plan, table = test_sensitivity.planned("SELECT SUM(pay) AS s FROM t", "id", "add-remove")
    (measurement,) = plan.measurements
    grid = measurement.quantity.grid
    coarse = replace(grid, exponent=grid.exponent + 3, lower=grid.lower // 8 + 1, upper=grid.upper // 8)
    other = replace(
        plan, measurements=(replace(measurement, quantity=replace(measurement.quantity, grid=coarse, offset=0)),)
    )
    with_me, without = (
        test_sensitivity.measured(people, other, table)[measurement.name] for people in ([*CROWD, (9, MINE)], CROWD)
    )
    assert 0 < abs(int(with_me[0]) - int(without[0])) <= certify(other).measurements[0].sensitivity.l1
