"""Typical mistakes of a first hour. Each message says what is wrong and what to do, and names no value of the data.

The grade in each case is ours, as a reader of the message: A says what to write instead; B says what to change.
"""

import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import LoadWarning, SfumatoError

SECRET = "Xanthippe"  # in the data only
FRAME = pd.DataFrame(
    {
        "id": [f"p{number}" for number in range(100)],
        "age": [20 + number % 60 for number in range(100)],
        "city": ["Rome", "Oslo"] * 50,
        "name": [SECRET] * 100,
    }
)
COLUMNS = {"id": sf.Id(), "age": sf.Integer(0, 120), "city": sf.Category(["Rome", "Oslo"]), "name": sf.Text()}
ID = {"id": sf.Id()}
COUNT = "SELECT COUNT(*) AS n FROM people"


def protect(data=FRAME, **options):
    given = {"name": "people", "unit": "id", "columns": COLUMNS, "budget": sf.Budget(epsilon=3), **options}
    return sf.protect(data, **given)


def ask(sql=COUNT, *given, **options):
    with protect() as people:
        return people.ask(sql, *given, **options)


def write(folder, name, content):
    (folder / name).write_bytes(content.encode("latin-1"))
    return folder / name


def reuse_ledger(folder, **other):
    protect(ledger=folder / "ledger.db").close()
    protect(ledger=folder / "ledger.db", **other)


def ask_closed(_):
    people = protect()
    people.close()
    people.ask(COUNT, 1)


def read_closed_budget(_):
    people = protect()
    people.close()
    return people.budget


def open_two(folder):
    (folder / "a.csv").write_text("id,x\np1,1\n")
    (folder / "b.csv").write_text("visit,person,y\nv1,p1,1\n")
    (folder / "catalog.toml").write_text(
        '[dataset]\nname = "two"\n[budget]\nepsilon = "3"\ndelta = "0"\n'
        '[tables.a]\nsource = "a.csv"\nunit_column = "id"\ncolumns.x = { type = "integer", lower = 0, upper = 9 }\n'
        '[tables.b]\nsource = "b.csv"\nunit_column = "person"\ncolumns.visit = { type = "id" }\n'
    )
    return sf.open(folder)


MISTAKES = {  # name: what is done, what the message has, what the hint has, our grade
    "typo in a column": (
        lambda _: ask("SELECT AVG(agee) FROM people", 1), "no column 'agee'", "Did you mean age?", "A",
    ),
    "typo in SELECT": (lambda _: ask("SELEC COUNT(*) FROM people", 1), "begins with 'SELEC'", "mean SELECT?", "A"),
    "missing bounds": (
        lambda _: ask("SELECT AVG(LENGTH(name)) FROM people", 1), "has no upper bound", "LEAST(x, 100)", "A",
    ),
    **{
        f"{make.__name__} without bounds": (
            lambda _, make=make, given=given: make(*given), "needs a lower and an upper bound",
            f"sf.{make.__name__}(", "A",
        )
        for make, given in ((sf.Integer, ()), (sf.Real, (0,)), (sf.Date, ()), (sf.DateTime, ()))
    },
    "Category without values": (lambda _: sf.Category(), "must be a list", "For example", "A"),
    "wrong file": (
        lambda folder: protect(write(folder, "people.csv", "id\n").with_name("poeple.csv")), "there is no source",
        "Did you mean people.csv? Look in", "A",
    ),
    "kind of file": (lambda _: protect("people.xlsx"), "kind of source is not known", ".csv or .parquet", "A"),
    "Latin-1": (
        lambda folder: protect(write(folder, "l.csv", "id,city\np1,Malmö\n"), columns=ID | {"city": sf.Text()}),
        "line 2: it is not UTF-8", 'encoding = "latin-1"', "A",
    ),
    "date bounds": (lambda _: sf.Date("31/01/1900", "2020-12-31"), "must be a date", "year-month-day", "A"),
    "too little budget": (lambda _: ask(COUNT, 5), "epsilon = 3 is left", "at most epsilon = 3 still fits", "A"),
    "wrong table": (lambda _: ask("SELECT COUNT(*) FROM persons", 1), "no table 'persons'", "Declared: people.", "A"),
    "0.1 + 0.2": (lambda _: ask(COUNT, 0.1 + 0.2), "beside 0.3", "Pass 0.3, or '0.3'", "A"),
    "reused ledger": (
        lambda folder: reuse_ledger(folder, budget=sf.Budget(epsilon=9)), "epsilon = 9 is declared here",
        "sfumato budget set", "A",
    ),
    "ledger of others": (
        lambda folder: reuse_ledger(folder, population="others"), "another dataset", "population", "B",
    ),
    "forgotten GROUP BY": (
        lambda _: ask("SELECT city, COUNT(*) FROM people", 1), "city at 1:8 is neither in GROUP BY",
        "Add it to GROUP BY", "A",
    ),
    "Series": (lambda _: protect(FRAME["age"]), "got a Series", ".to_frame('name')", "A"),
    "dict": (lambda _: protect({"age": [1]}), "got a dict", "pandas.DataFrame(data)", "A"),
    "list of columns": (lambda _: protect(columns=["id"]), "must map names to types", 'columns={"age"', "A"),
    "no epsilon": (lambda _: ask(COUNT), "epsilon must be given", "For example epsilon=0.5", "A"),
    "epsilon and margin": (
        lambda _: ask(COUNT, 1, margin={"n": 3}), "must be given alone", "For example epsilon=0.5; or margin", "A",
    ),
    "join of unrelated ids": (
        lambda folder: open_two(folder).ask("SELECT COUNT(*) FROM a JOIN b ON a.id = b.visit", 1),
        "only with a person's id", "Join on the person's id in both tables", "B",
    ),
    "which table": (lambda folder: open_two(folder).where("x > 1"), "must be one of a, b", "select('a')", "A"),
    "huge epsilon": (
        lambda _: protect(budget=sf.Budget(epsilon=10**9)).ask(COUNT, 10**8), "must leave noise",
        "protects nobody; lower it", "A",
    ),
    "budget of a closed one": (read_closed_budget, "must be open", "Open or protect the data again.", "A"),
    "closed": (ask_closed, "must be open", "Open or protect the data again.", "A"),
    "no header": (
        lambda folder: protect(write(folder, "e.csv", "")), "must name the columns", "Give it a header line", "A",
    ),
    "rows": (lambda _: ask("SELECT * FROM people", 1), "would show rows", "COUNT(*)", "A"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name, tmp_path):
    make, message, hint, grade = MISTAKES[name]
    with pytest.raises(SfumatoError) as caught:
        make(tmp_path)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert SECRET not in str(caught.value)
    assert grade in ("A", "B")


def test_there_are_twenty_and_more():
    assert len(MISTAKES) >= 20


def test_semicolons_are_read_as_they_are(tmp_path):
    with protect(write(tmp_path, "s.csv", "id;age\np1;30\n"), columns=ID | {"age": sf.Integer(0, 120)}) as people:
        assert people.load_report.problems == ()


@pytest.mark.parametrize(
    ("content", "columns", "part"),
    [
        (
            "id,born\n" + "p1,31/01/1990\n" * 60, ID | {"born": sf.Date("1900-01-01", "2020-12-31")},
            'They are days written as day/month/year, not as the load reads days. Read it with date_format="%d/%m/%Y"',
        ),
        ("id,city\n" + "p1,Lima\n" * 60, ID | {"city": sf.Category(["Rome"])}, "Add them to the column's values"),
    ],
    ids=["dates", "undeclared values"],
)  # fmt: skip
def test_a_load_that_loses_values_says_why(tmp_path, content, columns, part):
    with pytest.warns(LoadWarning) as caught:
        protect(write(tmp_path, "d.csv", content), columns=columns).close()
    text = str(caught[0].message)
    assert part in text
    assert text.count("declared values") <= 1
    assert "Lima" not in text


def test_an_undeclared_value_in_a_question_is_a_warning():
    answer = ask(f"{COUNT} WHERE city = 'Paris'", 1)
    assert any("'Paris' at 1:40 is not among the declared values" in warning for warning in answer.warnings)


def test_zero_rows_are_answered_with_a_warning():
    with pytest.warns(LoadWarning, match="people: the table is empty"):
        people = protect(FRAME[:0])
    answer = people.ask("SELECT COUNT(*) AS n, AVG(age) AS age FROM people", 1)
    assert any("There may be no rows at all" in warning for warning in answer.warnings)


def test_one_row_is_not_called_empty():
    with protect(FRAME[:1]) as people:
        assert people.load_report.problems == ()


def test_an_epsilon_that_protects_hardly_anybody_says_so():
    with protect(budget=sf.Budget(epsilon=1_000)) as people:
        assert "protects hardly anybody" in repr(people.preview(COUNT, 20))
        assert "protects hardly anybody" in repr(people.ask(COUNT, 500))
        assert "hardly" not in repr(people.preview(f"{COUNT} WHERE age > 30", 19))
        assert "hardly" not in repr(people.ask(f"{COUNT} WHERE age > 30", 1))
