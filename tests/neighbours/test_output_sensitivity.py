"""The change by one person that explain() states is the largest between any two neighbours, by enumeration."""

import itertools
import statistics

import pytest

import sfumato as sf
from sfumato.answers.output_sensitivity import find_sensitivities
from sfumato.catalog.dataset import Dataset, Table
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

LOW, HIGH = 1, 4
N = 3  # rows of the larger of two neighbours
CITIES = ("Rome", "Oslo")


def stated(sql, neighbours, *, nullable=False, unit=sf.ROW, count=N, **declared):
    columns = {"x": sf.Integer(LOW, HIGH, nullable=nullable), "city": sf.Category(CITIES, nullable=False)}
    columns |= {} if unit is sf.ROW else {unit: sf.Id()}
    table = Table("t", None, unit, columns, **declared)
    dataset = Dataset("t", [table], sf.Budget(epsilon=9), neighbours=neighbours)
    query = bind(parse(sql), dataset)
    planned = choose_plan(query, sf.PureDP(1), dataset, {"t": "1"})
    return find_sensitivities(query, planned, dict.fromkeys(range(len(query.aggregates)), count))


def change(sql, neighbours, **given):
    (found,) = stated(sql, neighbours, **given)
    return found.one_person_changes


def pairs(neighbours, values, rows=N):
    """All datasets of this size, each with all neighbours that are not larger."""
    for data in itertools.product(values, repeat=rows):
        if neighbours == "add-remove":
            yield data, data[:-1]
        else:
            for other in values:
                yield data, (*data[:-1], other)


def largest(neighbours, values, compute, rows=N):
    """The largest L1 distance between two outputs. None: the output has no value for some dataset."""
    found = [(compute(one), compute(two)) for one, two in pairs(neighbours, values, rows)]
    return max(sum(abs(a - b) for a, b in zip(one, two, strict=True)) for one, two in found if None not in one + two)


def numbers(data):
    return [value for value in data if value is not None]


def some(function, least=1):
    """An aggregate of the values that are there, as a vector of one."""
    return lambda data: (function(numbers(data)) if len(numbers(data)) >= least else None,)


QUESTIONS = {
    "SELECT COUNT(*) AS y FROM t": lambda data: (len(data),),
    "SELECT COUNT(x) AS y FROM t": some(len, 0),
    "SELECT SUM(x) AS y FROM t": some(sum, 0),
    "SELECT AVG(x) AS y FROM t": some(statistics.fmean),
    "SELECT VARIANCE(x) AS y FROM t": some(statistics.variance, 2),
    "SELECT STDDEV(x) AS y FROM t": some(statistics.stdev, 2),
    "SELECT MEDIAN(x) AS y FROM t": some(statistics.median),
    "SELECT MAX(x) AS y FROM t": some(max),
    "SELECT MIN(x) AS y FROM t": some(min),
}
TIGHT = ("COUNT", "SUM", "AVG", "MAX", "MIN")


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_no_row_changes_more_than_is_stated_and_some_row_does_as_much(sql, nullable, neighbours):
    values = [*range(LOW, HIGH + 1), *([None] if nullable else [])]
    most, real = change(sql, neighbours, nullable=nullable), largest(neighbours, values, QUESTIONS[sql])
    if nullable and any(function in sql for function in ("AVG", "VARIANCE", "STDDEV")):
        real = largest(neighbours, [value for value in values if value is not None], QUESTIONS[sql])  # n = N values
    assert real <= most + 1e-12
    if any(function in sql for function in TIGHT):
        assert real == pytest.approx(most), "stated larger than it is"


@pytest.mark.parametrize(("neighbours", "most"), [("add-remove", 1), ("replace-one", 2)])
def test_a_histogram(neighbours, most):
    sql = "SELECT city, COUNT(*) AS y FROM t GROUP BY city"
    real = largest(neighbours, CITIES, lambda data: tuple(data.count(city) for city in CITIES))
    assert change(sql, neighbours) == real == most


def test_the_numbers_of_the_lectures():
    """Integers from 1 to 10: the sum moves by 10 or 9, the maximum by 9; a mean of m values in [0, b] by b/m."""

    def of(sql, neighbours, **given):
        column = sf.Real(0, 10, nullable=False) if "AVG" in sql else sf.Integer(1, 10, nullable=False)
        dataset = Dataset("t", [Table("t", None, sf.ROW, {"x": column}, **given)], sf.Budget(1), neighbours=neighbours)
        query = bind(parse(sql), dataset)
        (found,) = find_sensitivities(query, choose_plan(query, sf.PureDP(1), dataset, {"t": "1"}), {})
        return found

    assert of("SELECT SUM(x) FROM t", "add-remove").one_person_changes == 10
    assert of("SELECT SUM(x) FROM t", "replace-one").one_person_changes == 9
    assert of("SELECT MAX(x) FROM t", "replace-one").one_person_changes == 9
    assert "private choice" in of("SELECT MAX(x) FROM t", "add-remove").text
    assert of("SELECT AVG(x) FROM t", "replace-one", rows=500).one_person_changes == 10 / 500
    private = of("SELECT AVG(x) FROM t", "replace-one")
    assert private.one_person_changes is None
    assert private.formula == "10/n"
    assert "10/n" in private.text


def weighed(people, r):
    """(x, weight) of all rows: a person's rows weigh min(1, r/k) each."""
    return [(x, min(1, r / len(mine))) for mine in people for x in mine]


def of_weights(rows):
    count, total = sum(w for _, w in rows), sum(x * w for x, w in rows)
    pairs_of = itertools.combinations(rows, 2)
    spread = sum(v * w * (x - y) ** 2 for (x, v), (y, w) in pairs_of) / (count * (count - 1)) if count > 1 else 0
    return {"COUNT(*)": count, "SUM(x)": total, "AVG(x)": total / count, "VARIANCE(x)": spread}


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(x)", "AVG(x)", "VARIANCE(x)", "COUNT(DISTINCT id)"])
def test_no_person_changes_more_than_is_stated(aggregate, r, neighbours):
    values = (LOW, HIGH)
    owned = [mine for k in (1, 2, 3) for mine in itertools.product(values, repeat=k)]
    stated_for, seen = {}, 0.0
    for others in itertools.product(owned, repeat=2):
        for mine in owned:
            with_me = [*others, mine]
            other_people = (
                [()] if neighbours == "add-remove" else [(), *owned]
            )  # a replaced person may have no row here
            for yours in other_people:
                changed = [*others, yours] if yours else list(others)
                one, two = (of_weights(weighed(data, r)) for data in (with_me, changed))
                count = max(one["COUNT(*)"], two["COUNT(*)"])
                before, after = one.get(aggregate, len(with_me)), two.get(aggregate, len(changed))
                if count not in stated_for:
                    given = {"unit": "id", "max_rows_per_unit": r, "count": count}
                    stated_for[count] = change(f"SELECT {aggregate} AS y FROM t", neighbours, **given)
                most = stated_for[count]
                assert abs(before - after) <= most + 1e-9, (with_me, changed)
                seen = max(seen, abs(before - after) / most)
    assert seen > 0.3, "stated far larger than it is"


def test_a_public_number_of_people_is_changed_by_nobody():
    given = {"unit": "id", "people": 5}
    number, total = stated("SELECT COUNT(DISTINCT id) AS p, SUM(x) AS s FROM t", "replace-one", **given)
    assert number.one_person_changes == 0
    assert total.one_person_changes == HIGH - LOW
    (filtered,) = stated("SELECT SUM(x) AS s FROM t WHERE city = 'Rome'", "replace-one", **given)
    assert filtered.one_person_changes == HIGH


def test_computed_columns_name_what_they_are_computed_from():
    sql = "SELECT city, SUM(x) / COUNT(*) AS y, ROUND(AVG(x), 1) AS z, COUNT(*) AS n FROM t GROUP BY city"
    ratio, rounded, count = stated(sql, "add-remove")
    assert "sum, values from 1 to 4: one person can change it by at most 4" in str(ratio)
    assert "average" in str(rounded)
    assert count.text.endswith("at most 1, summed over all groups")


@pytest.mark.parametrize("function", ["MODE(city)", "TOP_K(city, 2)"])
def test_a_list_has_no_number(function):
    (found,) = stated(f"SELECT {function} AS y FROM t", "add-remove")
    assert found.one_person_changes is None
    assert "chosen from the declared ones" in found.text
