"""A frame builds the same Query as its SQL: same plan, same digest, same refusals."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.answering.plan_digests import name_plan
from sfumato.catalog.dataset import Dataset, Table
from sfumato.errors import InvalidParameter, QueryError, UnknownName, UnsupportedSyntax
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.frame import Frame, count, mean, people, stddev, total, variance
from sfumato.query.parse import parse

COLUMNS = {
    "id": sf.Id(),
    "age": sf.Integer(0, 120),
    "pay": sf.Real(0, 9_000),
    "city": sf.Category(["Rome", "Oslo"]),
    "Größe": sf.Real(0, 3),
    "smoker": sf.Boolean(),
    "note": sf.Text(),
    "born": sf.Date("1900-01-01", "2025-12-31"),
    "seen": sf.DateTime("2020-01-01T00:00:00", "2025-12-31T23:59:59"),
    "group": sf.Integer(0, 3),
}
DATASET = Dataset(
    "d",
    [Table('the "people"', None, "id", COLUMNS), Table("rows", None, sf.ROW, {"age": sf.Integer(0, 9)})],
    sf.Budget(epsilon=9),
)
FRAME = Frame(DATASET, 'the "people"')
FROM = 'FROM "the ""people"""'
VERSIONS = dict.fromkeys(DATASET.tables, "1")


def query_of(frame):
    return bind(frame.build_tree(), DATASET)


def digest_of(query):
    return name_plan(choose_plan(query, sf.PureDP(1), DATASET, VERSIONS).plan)[0]


@pytest.mark.parametrize(
    ("frame", "sql"),
    [
        (FRAME.agg(n=count()), f"SELECT COUNT(*) AS n {FROM}"),
        (FRAME.where("age > 65").group_by("city").agg(n=count(), age=mean("age")),
         f"SELECT city, COUNT(*) AS n, AVG(age) AS age {FROM} WHERE age > 65 GROUP BY city"),
        (FRAME.where("age > 65 OR pay > 3").where("city = 'Rome'").agg(s=total("pay"), t=total("age")),
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
    assert query_of(frame) == query
    assert bind(parse(frame.sql()), DATASET) == query
    assert digest_of(query_of(frame)) == digest_of(query)


NUMBERS = st.recursive(
    st.sampled_from([
        "age", "pay", '"Größe"', '"group"', "AGE", "1", "2.50", "1e3", "-3", "(0.1 + 0.2)", "YEAR(born)", "HOUR(seen)",
        "EXTRACT(month FROM seen)", "EXTRACT(dow FROM born)", "DATE_DIFF('day', born, '2025-01-01')",
        "DATE_DIFF('month', DATE '1999-12-31', born)", "DATE_DIFF('hour', seen, TIMESTAMP '2025-01-01 10:00:00')",
    ]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map("{0[0]} {0[1]} {0[2]}".format),
        st.tuples(st.sampled_from(["ABS", "FLOOR", "CEIL", "-", ""]), inner).map("{0[0]}({0[1]})".format),
        st.tuples(inner, inner).map("COALESCE({0[0]}, {0[1]})".format),
        st.tuples(inner, inner, inner).map("CASE WHEN {0[0]} > {0[1]} THEN {0[2]} END".format),
    ),
    max_leaves=4,
)  # fmt: skip
TRUTHS = st.recursive(
    st.one_of(
        st.tuples(NUMBERS, st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]), NUMBERS).map(" ".join),
        st.tuples(NUMBERS, NUMBERS, NUMBERS).map("{0[0]} BETWEEN {0[1]} AND {0[2]}".format),
        st.sampled_from([
            "smoker", "TRUE", "city = 'Rome'", "city IN ('Rome', 'O''Hara')", "note LIKE 'a%'", "note NOT LIKE '_%'",
            "note IS NULL", "age IS NOT NULL", "born > DATE '2000-01-01'", "seen <= TIMESTAMP '2024-02-29 12:30:00.5'",
            "born < '2001-02-03'", "DATE_TRUNC('month', seen) = '2024-01-01'", "note = 'a \"b\" -- c /* d'",
        ]),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(" ".join), inner.map("NOT ({})".format),
        inner.map("({})".format),
    ),
    max_leaves=4,
)  # fmt: skip
KEYS = st.one_of(
    st.sampled_from(["city", "note", '"group"', "born", "DATE_TRUNC('month', seen) AS month", "1", "3 AS three"]),
    st.tuples(TRUTHS, st.sampled_from(["", " AS city", ' AS "a b"', " AS n"])).map("".join),
    NUMBERS.map("FLOOR({}) AS floor".format),
)
NAMES = st.sampled_from(["n", "m", "city", 'a "b"', "select", "é"])
AGGREGATES = st.one_of(
    st.just(count()), st.just(people()), st.one_of(NUMBERS, TRUTHS).map(count),
    st.tuples(st.sampled_from([mean, total, variance, stddev]), st.one_of(NUMBERS, TRUTHS)).map(
        lambda pair: pair[0](pair[1])
    ),
)  # fmt: skip


def outcome(build):
    """The bound query, or the class and the hint of the refusal. A fragment counts positions from its own start."""
    try:
        return bind(build(), DATASET)
    except QueryError as refused:
        return type(refused), refused.hint


def test_the_printed_sql_is_the_same_query():
    bound = []

    @settings(max_examples=200, deadline=None)
    @given(
        st.lists(TRUTHS, max_size=2), st.lists(KEYS, max_size=2),
        st.dictionaries(NAMES, AGGREGATES, min_size=1, max_size=3),
    )  # fmt: skip
    def check(conditions, keys, aggregates):
        frame = FRAME
        for condition in conditions:
            frame = frame.where(condition)
        asked = (frame.group_by(*keys) if keys else frame).agg(**aggregates)
        built = outcome(asked.build_tree)
        assert outcome(lambda: parse(asked.sql())) == built
        assert outcome(asked.build_tree) == built, "a frame can be asked twice"
        bound.append(not isinstance(built, tuple))

    check()
    assert sum(bound) > 40, "too few of the generated questions are accepted"


def test_printed_sql_that_means_something_else_would_be_found():
    """Negative control: conditions joined without brackets are another question."""
    asked = FRAME.where("age > 65 OR pay > 3").where("smoker").agg(n=count())
    wrong = parse(asked.sql().replace("(", "").replace(")", "").replace("COUNT*", "COUNT(*)"))
    assert bind(wrong, DATASET) != query_of(asked)


def test_a_refusal_says_where_in_which_fragment():
    with pytest.raises(UnknownName, match=r"There is no column 'agee' .* at 1:9 of 'pay \+ \( agee \)'"):
        query_of(FRAME.where("age > 3").agg(n=mean("pay + ( agee )")))


def test_a_frame_with_a_day_can_be_asked():
    asked = FRAME.where("born > DATE '2000-01-01'").agg(n=count())
    assert query_of(asked) == bind(parse(f"SELECT COUNT(*) AS n {FROM} WHERE born > DATE '2000-01-01'"), DATASET)
    assert "DATE '2000-01-01'" in asked.sql()


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
        query_of(FRAME.agg(n=mean("agee")))
    with pytest.raises(UnknownName):
        query_of(Frame(DATASET, "other").agg(n=count()))
    with pytest.raises(UnsupportedSyntax, match="aggregate"):
        query_of(FRAME.where("COUNT(*) > 3").agg(n=count()))


def test_a_name_cannot_leave_its_quotes():
    frame = Frame(DATASET, 'rows" WHERE TRUE --')
    with pytest.raises(UnknownName):
        query_of(frame.agg(n=count()))
    with pytest.raises(UnsupportedSyntax):
        FRAME.agg(**{"a\0b": count()})


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


@pytest.mark.parametrize("name", ["", " ", "__sfumato_unit", "__SFUMATO", "a\u200bb", "x" * 30_000])
def test_an_output_name_is_one_that_sql_could_give(name):
    with pytest.raises(UnsupportedSyntax):
        FRAME.agg(**{name: count()})


def test_many_fragments_are_not_a_longer_question_than_sql_allows():
    frame = FRAME
    for index in range(4):
        frame = frame.where(f"note <> '{'x' * 6_000}{index}'")
    with pytest.raises(UnsupportedSyntax, match="20,000"):
        frame.agg(n=count()).build_tree()
