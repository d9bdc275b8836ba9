"""The Python frame builds the very same Query: same plan, same digest, same refusals."""

import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.errors import InvalidParameter, QueryError, UnknownName, UnsupportedSyntax
from sfumato.kernel.plan import digest
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.frame import Frame, count, mean, people, stddev, sum_, total, variance
from sfumato.query.parse import parse

COLUMNS = {
    "id": sf.Id(),
    "age": sf.Integer(0, 120),
    "pay": sf.Real(0, 9_000),
    "city": sf.Category(["Rome", "Oslo"]),
    "Größe": sf.Real(0, 3),
}
DATASET = Dataset(
    "d",
    [Table('the "people"', None, "id", COLUMNS), Table("rows", None, sf.ROW, {"age": sf.Integer(0, 9)})],
    sf.Budget(epsilon=9),
)
FRAME = Frame(DATASET, 'the "people"')
FROM = 'FROM "the ""people"""'
VERSIONS = dict.fromkeys(DATASET.tables, "1")


def digest_of(query):
    return digest(choose_plan(query, sf.PureDP(1), DATASET, VERSIONS).plan)


@pytest.mark.parametrize(
    ("frame", "sql"),
    [
        (FRAME.agg(n=count()), f"SELECT COUNT(*) AS n {FROM}"),
        (FRAME.where("age > 65").group_by("city").agg(n=count(), age=mean("age")),
         f"SELECT city, COUNT(*) AS n, AVG(age) AS age {FROM} WHERE age > 65 GROUP BY city"),
        (FRAME.where("age > 65 OR pay > 3").where("city = 'Rome'").agg(s=total("pay"), t=sum_("age")),
         f"SELECT SUM(pay) AS s, SUM(age) AS t {FROM} WHERE (age > 65 OR pay > 3) AND city = 'Rome'"),
        (FRAME.group_by("city", "age > 65 AS old").agg(v=variance("pay"), d=stddev("pay - age"), p=people()),
         f"SELECT city, age > 65 AS old, VARIANCE(pay) AS v, STDDEV(pay - age) AS d, COUNT(DISTINCT id) AS p {FROM} "
         "GROUP BY city, old"),
        (FRAME.group_by("city").group_by("FLOOR(age / 10) AS decade").agg(n=count("pay")),
         f"SELECT city, FLOOR(age / 10) AS decade, COUNT(pay) AS n {FROM} GROUP BY 1, 2"),
        (FRAME.where('"Größe" > 1.5').agg(**{'a "b" AS c --': mean('"größe"')}),
         f'SELECT AVG("Größe") AS "a ""b"" AS c --" {FROM} WHERE "Größe" > 1.5'),
        (FRAME.where("NOT city LIKE 'R%'").where("age IN (1, 2)").agg(n=count("CASE WHEN age > 3 THEN 1 END")),
         f"SELECT COUNT(CASE WHEN age > 3 THEN 1 END) AS n {FROM} WHERE city NOT LIKE 'R%' AND age IN (1, 2)"),
    ],
)  # fmt: skip
def test_it_is_the_same_query(frame, sql):
    query = bind(parse(sql), DATASET)
    assert frame.query() == query
    assert bind(parse(frame.sql()), DATASET) == query
    assert digest_of(frame.query()) == digest_of(query)


def test_sql_reads_well():
    frame = FRAME.where("age > 65").group_by("city").agg(n=count())
    assert frame.sql() == f'SELECT city, COUNT(*) AS "n" {FROM} WHERE (age > 65) GROUP BY (city)'


HOSTILE = [
    "1) FROM other --",
    "1 = 1) OR (1 = 1",
    "TRUE FROM people",
    "TRUE) --",
    "TRUE /*",
    "TRUE; DROP TABLE people",
    "TRUE GROUP BY city",
    "age IN (SELECT age FROM people)",
    "age > 3, city",
    "age > 3 AS x",
    "TRUE LIMIT 1",
    "TRUE ORDER BY age",
    "read_csv('x')",
    "age::TEXT = 'x'",
    "'",
    '"',
    "",
    "(" * 10_000,
    "x" * 100_000,
    "age > 3\0",
]


@pytest.mark.parametrize("fragment", HOSTILE)
def test_a_fragment_is_one_expression(fragment):
    with pytest.raises(QueryError):
        FRAME.where(fragment)
    with pytest.raises(QueryError):
        mean(fragment)
    if "AS x" not in fragment:
        with pytest.raises(QueryError):
            FRAME.group_by(fragment)


@pytest.mark.parametrize("fragment", [None, 3, b"age"])
def test_a_fragment_is_text(fragment):
    with pytest.raises(UnsupportedSyntax):
        FRAME.where(fragment)


def test_names_are_resolved_by_the_catalog():
    with pytest.raises(UnknownName, match="Did you mean age"):
        FRAME.agg(n=mean("agee")).query()
    with pytest.raises(UnknownName):
        Frame(DATASET, "other").agg(n=count()).query()
    with pytest.raises(UnsupportedSyntax, match="aggregate"):
        FRAME.where("COUNT(*) > 3").agg(n=count()).query()


def test_a_name_cannot_leave_its_quotes():
    frame = Frame(DATASET, 'rows" WHERE TRUE --')
    with pytest.raises(UnknownName):
        frame.agg(n=count()).query()
    with pytest.raises(UnsupportedSyntax):
        FRAME.agg(**{"a\0b": count()}).query()


def test_people_need_an_id():
    with pytest.raises(UnsupportedSyntax, match=r"Use count\(\)"):
        Frame(DATASET, "rows").agg(n=people()).sql()


def test_steps_leave_the_frame_as_it_was():
    FRAME.where("age > 3").group_by("city")
    assert FRAME.conditions == FRAME.keys == ()


def test_only_aggregates_aggregate():
    with pytest.raises(InvalidParameter):
        FRAME.agg(n="COUNT(*)")
    with pytest.raises(InvalidParameter, match="aggregates must be at least one"):
        FRAME.group_by("city").agg()


def test_grouping_by_nothing_is_refused():
    with pytest.raises(InvalidParameter, match="keys must be at least one"):
        FRAME.group_by()
