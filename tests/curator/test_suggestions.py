"""A preview names the owner's declarations that make a margin smaller. With them, the stated margins hold."""

import pandas as pd
import pytest

import sfumato as sf

N = 1_000
DATA = pd.DataFrame({"income": [1_000.0 * (n % 90) for n in range(N)], "age": [n % 80 for n in range(N)]})
COLUMNS = {"income": sf.Real(0, 90_000), "age": sf.Integer(0, 120)}
MEAN = "SELECT AVG(income) AS mean FROM people"


def people(columns=COLUMNS, unit=sf.ROW, data=DATA, **options):
    given = {"neighbours": "replace-one", "budget": sf.Budget(epsilon=9), **options}
    return sf.protect(data, name="people", unit=unit, columns=columns, **given)


def not_null(*names):
    known = {"income": sf.Real(0, 90_000, nullable=False), "age": sf.Integer(0, 120, nullable=False)}
    return {**COLUMNS, **{name: known[name] for name in names}}


def margins(suggestion, name="mean"):
    return suggestion.gains[name].now, suggestion.gains[name].then


def test_a_column_that_is_nullable_by_default_is_named():
    with people(rows=N) as curator:
        preview = curator.preview(MEAN, epsilon=1, assume={"n": N})
        (found,) = preview.suggestions
        assert found.declaration == "people: income nullable = false"
        now, then = margins(found)
        assert now == preview.margins["mean"]
        assert 1.3 < now / then < 1.9  # as against b/(m epsilon); more where the mean is near a bound
        assert "NULL is then replaced with the public midpoint" in str(found)
        assert str(found) in preview.explain()
    with people(not_null("income"), rows=N) as curator:
        preview = curator.preview(MEAN, epsilon=1)
        assert preview.margins["mean"] == pytest.approx(then)
        assert preview.suggestions == ()


def test_a_missing_number_of_rows_is_named():
    with people(not_null("income")) as curator:
        preview = curator.preview(MEAN, epsilon=1, assume={"n": N})
        (found,) = preview.suggestions
        assert found.declaration == "people: rows = n"
        now, then = margins(found)
        assert 1.3 < now / then < 1.9
        assert "public" in found.meaning
    with people(not_null("income"), rows=N) as curator:
        assert curator.preview(MEAN, epsilon=1).margins["mean"] == pytest.approx(then)


def test_two_declarations_that_help_only_together():
    with people() as curator:
        (found,) = curator.preview(MEAN, epsilon=1, assume={"n": N}).suggestions
        assert found.declaration == "people: income nullable = false, rows = n"
        now, then = margins(found)
        assert now > 1.3 * then


def test_without_a_count_only_the_ratio_is_said():
    with people(not_null("income")) as curator:
        (found,) = curator.preview(MEAN, epsilon=1).suggestions
        assert margins(found) == (None, None)
        assert "1.4 times smaller" in str(found)
        assert "±" not in str(found)


def test_a_public_number_of_people_is_suggested_for_an_id():
    data = DATA.assign(person=range(N))
    columns = {"person": sf.Id(), **not_null("income")}
    with people(columns, "person", data) as curator:
        (found,) = curator.preview(MEAN, epsilon=1, assume={"n": N}).suggestions
        assert found.declaration == "people: people = n"
        _, then = margins(found)
    with people(columns, "person", data, people=N) as curator:
        assert curator.preview(MEAN, epsilon=1).margins["mean"] == pytest.approx(then)


def test_one_row_for_each_person():
    data = DATA.assign(person=[n // 2 for n in range(N)])
    sql = "SELECT AVG(total) AS mean FROM (SELECT person, SUM(income) AS total FROM people GROUP BY person)"
    with people({"person": sf.Id(), **COLUMNS}, "person", data, max_rows_per_unit=2) as curator:
        found = curator.preview(sql, epsilon=1, assume={"n": 500}).suggestions
        assert [suggestion.declaration for suggestion in found] == ["people: income nullable = false, people = n"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM people WHERE age > 3",
        "SELECT COUNT(age) AS n FROM people",  # would be another question
        "SELECT MEDIAN(age) AS m FROM people",
        "SELECT COUNT(*) AS n FROM people",
    ],
)
def test_nothing_is_suggested_where_nothing_helps(sql):
    with people() as curator:
        assert curator.preview(sql, epsilon=1).suggestions == ()


def test_what_is_not_the_owners_to_say_is_not_suggested():
    """add-remove is a promise to people: a public number would break it."""
    with people(neighbours="add-remove") as curator:
        assert curator.preview(MEAN, epsilon=1, assume={"n": N}).suggestions == ()
        both = "SELECT AVG(age) AS a, AVG(income) AS i, COUNT(*) AS n FROM people"
        found, _ = curator.preview(both, epsilon=1, assume={"n": N}).suggestions
        assert found.declaration == "people: income nullable = false, age nullable = false"


def test_a_shared_count_is_worth_a_declaration():
    sql = "SELECT age > 40 AS old, COUNT(*) AS n, AVG(income) AS mean FROM people GROUP BY old"
    with people(neighbours="add-remove") as curator:
        (found,) = curator.preview(sql, epsilon=1).suggestions
        now, then = margins(found, "n")
    with people(not_null("income"), neighbours="add-remove") as curator:
        assert curator.preview(sql, epsilon=1).margins["n"] == pytest.approx(then)
    assert now > 1.2 * then


def test_other_questions_are_suggested_for_too():
    with people(neighbours="replace-one") as curator:
        totals = curator.preview("SELECT SUM(age) AS s, VARIANCE(age) AS v FROM people", epsilon=1).suggestions
        assert totals
        assert all(suggestion.times >= 1.05 for suggestion in totals)
        joined = "SELECT AVG(a.income) AS m FROM (SELECT income FROM people WHERE age > 3) a"
        assert curator.preview(joined, epsilon=1).explain()


def test_a_preview_computes_them_only_when_they_are_read(monkeypatch):
    from sfumato.answering import preview as module

    calls = []
    monkeypatch.setattr(module, "suggest", lambda *given: calls.append(given) or ())
    with people() as curator:
        preview = curator.preview(MEAN, epsilon=1)
        assert calls == []
        assert preview.suggestions == preview.suggestions == ()
        assert len(calls) == 1


def test_nothing_is_read_or_spent():
    with people() as curator:

        def forbidden(*_):
            raise AssertionError("a suggestion read the data")

        curator.engine.aggregate = forbidden
        assert curator.preview(MEAN, epsilon=1, assume={"n": N}).suggestions
        assert curator.budget.spent.epsilon == 0
