"""What PostgreSQL is given instead: total arithmetic with the same bits, texts by bytes, names that are not cut off."""

import math
import struct
from random import Random

import pytest
from engines_under_test import TYPES, offer_postgres
from sqlglot import exp
from test_row_functions import FUNCTIONS, ODD_NUMBERS, B, D, M, T, U, X, Y, row, same

from sfumato.engines.postgres.postgres_sessions import Sessions
from sfumato.engines.reference.reference_rows import key_text
from sfumato.engines.sql import postgres_dialect
from sfumato.engines.sql.postgres_dialect import make_dialect
from sfumato.engines.sql.postgres_functions import LAST_LETTER
from sfumato.engines.sql.scalars import lower_expression
from sfumato.kernel.expressions import KIND_OF_RESULT, Call, Literal
from sfumato.row_meanings.evaluate import evaluate
from sfumato.row_meanings.text_meanings import lower_case, raise_case

EXPONENTS = (-1074, -1070, -1022, -538, -537, -536, -100, 0, 100, 511, 512, 513, 1022, 1023, 1024)
NEGATED, POSITIVE = Call("neg", (X,)), Call("abs", (Y,))
FOUR = Call("*", (Call("*", (X, Y)), Call("*", (X, Y))))  # of 10**40, this and its square are 10**160 and 10**320
LEAVES = (1e39, -1e39, 1e-39, -1e-39, 1e40, 1e41, 1e-40, 1e-41, 0.0, -0.0, 3.5)  # around the sizes that are guarded
ARITHMETIC = [
    *(Call(sign, (X, Y)) for sign in "+-*/"),  # guarded
    *(Call(sign, (Call("-", (X, Literal(0))), POSITIVE)) for sign in "+-*/"),  # calls
    *(Call(sign, (NEGATED, Literal(number))) for sign in "+-*/" for number in (3, 0.001, 1e300, 1e-300)),
    *(Call(sign, (Call("*", (X, Y)), Call("+", (X, Literal(0.5))))) for sign in "+-*/"),  # trees with one guard
    Call("*", (Literal(3), Literal(0.25))),
    FOUR, Call("*", (FOUR, FOUR)), Call("*", (FOUR, Call("/", (X, Call("-", (Y, X)))))),
    Call("mod", (X, Y)), Call("mod", (X, Literal(0.1))), Call("round", (X,)), Call("exp", (X,)), Call("ln", (X,)),
]  # fmt: skip


@pytest.fixture(scope="module")
def under_test(request):
    with offer_postgres(request) as offered:
        yield offered


@pytest.fixture(scope="module")
def session(postgres_server):
    with Sessions(postgres_server.url, 60).open() as opened:
        yield opened


def draw_numbers(seed, count):
    """Doubles of every size, of random bits, and at the ends of what a double holds."""
    random = Random(seed)
    for _ in range(count):
        yield random.choice(
            (
                random.choice(ODD_NUMBERS),
                struct.unpack("d", random.randbytes(8))[0],
                math.ldexp(random.uniform(-1, 1), random.choice(EXPONENTS)),
                math.ldexp(random.choice((1.0, -1.0, 0.5, 1.5)), random.choice(EXPONENTS[:-1])),
            )
        )


def find_differences(under_test, rows, functions):
    return [
        (function, given, value, wanted)
        for given, values in zip(rows, under_test.evaluate(rows, functions), strict=True)
        for function, value in zip(functions, values, strict=True)
        if not same(value, wanted := evaluate(function, given))
    ]


def test_arithmetic_has_the_same_bits_and_never_fails(under_test):
    """Overflow, underflow, the smallest doubles, infinities and NaN: PostgreSQL alone would raise an error."""
    rows = [row(x=one, y=two) for one, two in zip(draw_numbers(1, 2_000), draw_numbers(2, 2_000), strict=True)]
    rows += [row(x=one, y=two) for one in LEAVES for two in LEAVES]
    assert find_differences(under_test, rows, ARITHMETIC) == []


@pytest.mark.slow
def test_arithmetic_has_the_same_bits_on_many_numbers(under_test):
    rows = [row(x=one, y=two) for one, two in zip(draw_numbers(3, 20_000), draw_numbers(4, 20_000), strict=True)]
    assert find_differences(under_test, rows, ARITHMETIC) == []


@pytest.mark.parametrize("ends", [{"MOST_EXPONENT": 400, "SPAN": 160}, {"MOST_EXPONENT": 400}, {"LITTLE": 1e301}])
def test_a_guard_that_is_too_wide_is_noticed(under_test, monkeypatch, ends):
    """Negative control: PostgreSQL raises its error."""
    for name, value in ends.items():
        monkeypatch.setattr(postgres_dialect, name, value)
    sizes = (1.7e308, -1.7e308, 1e199, 1e-199, 1e155, 1e-155, 1e39, 1e-39)
    rows = [row(x=one, y=two) for one in (*ODD_NUMBERS, *sizes) for two in sizes]
    with pytest.raises(Exception, match="out of range"):
        under_test.evaluate(rows, ARITHMETIC)


def test_doubles_have_the_text_that_keys_have(session):
    numbers = [*draw_numbers(5, 500), *ODD_NUMBERS, 1e15, 1e16, 123456789012345.5, 1e-4, 1e-5]
    for number in numbers:
        found = session.execute("SELECT pg_temp.sfumato_text(%s::double precision)", [number]).fetchone()[0]
        assert found == str(number), number
        assert number == 0 or key_text(number) == found


def test_letters_change_case_as_in_plain_python(session):
    letters = [chr(point) for point in range(1, LAST_LETTER) if not 0xD800 <= point < 0xE000]
    joined = "é".join(letters)  # one text that is not ASCII
    found = session.execute("SELECT pg_temp.sfumato_upper(%s), pg_temp.sfumato_lower(%s)", [joined, joined]).fetchone()
    assert found == (raise_case(joined), lower_case(joined))
    beyond = (chr(point) for point in range(LAST_LETTER, 0x11_0000))
    assert all(raise_case(letter) == letter == lower_case(letter) for letter in beyond)


def test_texts_are_compared_as_bytes(session):
    """Every text has the collation "C", whatever the database's is: of columns, literals and functions."""
    kinds = {"x": "float8", "y": "float8", "t": "text", "u": "text", "d": "date", "m": "timestamp", "b": "boolean"}
    texts = {column: ' COLLATE "C"' if kind == "text" else "" for column, kind in kinds.items()}
    assert set(kinds) == set(TYPES)
    session.execute(f"CREATE TEMP TABLE r ({', '.join(f'{name} {kinds[name]}{texts[name]}' for name in kinds)})")
    session.execute("INSERT INTO r (x) VALUES (1)")
    made = [
        Literal("a"), T, Call("case", (B, Literal("a"), Literal("B"))), Call("coalesce", (T, Literal("x"))),
        *(function for function in FUNCTIONS if KIND_OF_RESULT.get(function.function) == "text"),
    ]  # fmt: skip
    assert len(made) > 20
    dialect = make_dialect("pg_temp", {"r": "r"})
    for function in made:
        collation = exp.Anonymous(this="pg_collation_for", expressions=[lower_expression(function)])
        query = dialect.write(exp.select(collation).from_("r"))
        assert session.execute(query).fetchone()[0] == '"C"', function


GOLDEN = {
    Call("+", (X, Y)): "CASE WHEN ABS(\"x\") <= CAST('1e+40' AS DOUBLE PRECISION) AND ABS(\"y\") <= "
    "CAST('1e+40' AS DOUBLE PRECISION) THEN \"x\" + \"y\" ELSE PG_TEMP.SFUMATO_ADD(\"x\", \"y\") END",
    Call("+", (X, Literal(1))): "\"x\" + CAST('1.0' AS DOUBLE PRECISION)",
    Call("*", (X, Literal(2))): "CASE WHEN ABS(\"x\") <= CAST('1e+40' AS DOUBLE PRECISION) THEN \"x\" * "
    "CAST('2.0' AS DOUBLE PRECISION) ELSE PG_TEMP.SFUMATO_MULTIPLY(\"x\", CAST('2.0' AS DOUBLE PRECISION)) END",
    Call("=", (T, Literal("a"))): "(PG_TEMP.SFUMATO_TEXT(\"t\") COLLATE \"C\") = ('a' COLLATE \"C\")",
    Call("like", (T, Literal("a\\%"))):
    "(PG_TEMP.SFUMATO_TEXT(\"t\") COLLATE \"C\") LIKE ('a\\%' COLLATE \"C\") ESCAPE ''",
    Call("extract", (D,), "year"): "CAST(EXTRACT(year FROM CAST(\"d\" AS TIMESTAMP)) AS DOUBLE PRECISION)",
    Call("datetime_trunc", (M,), "week"): "CAST(DATE_TRUNC('week', CAST(\"m\" AS TIMESTAMP)) AS TIMESTAMP)",
    Call("||", (T, U)): None,
}  # fmt: skip


@pytest.mark.parametrize("function", [one for one in GOLDEN if GOLDEN[one]], ids=lambda one: one.function)
def test_the_written_sql(function):
    written = make_dialect("side", {}).write(exp.select(lower_expression(function)))
    assert written.removeprefix("SELECT ").removeprefix("(").removesuffix(")") in (
        GOLDEN[function], GOLDEN[function].removeprefix("(").removesuffix(")"),
    ), written  # fmt: skip


def test_a_table_is_named_with_its_schema():
    """Without it, PostgreSQL would look among temporary tables first."""
    tree = exp.select("*").from_(exp.to_table("visits", alias="v")).join("other", on="true")
    written = make_dialect("side", {"visits": "visits_1"}).write(tree)
    assert written == 'SELECT * FROM "side"."visits_1" AS v JOIN other ON TRUE'
