"""Every row-level function has the same bits in DuckDB and in plain Python, on hostile values, and never fails."""

import math
import struct
from datetime import date, datetime
from fractions import Fraction
from functools import cache

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines.sql import function_sql
from sfumato.engines.sql.dialect import DUCKDB
from sfumato.engines.sql.scalars import lower_expression
from sfumato.errors import KernelFault
from sfumato.kernel.expressions import KIND_OF_RESULT, Call, Column, ColumnType, Literal
from sfumato.row_meanings import evaluate as meanings
from sfumato.row_meanings import number_meanings
from sfumato.row_meanings.evaluate import evaluate
from sfumato.row_meanings.text_meanings import lower_case, raise_case

X, Y = Column("x", ColumnType.REAL), Column("y", ColumnType.REAL)
T, U = Column("t", ColumnType.TEXT), Column("u", ColumnType.TEXT)
D, M = Column("d", ColumnType.DATE), Column("m", ColumnType.DATETIME)
B = Column("b", ColumnType.BOOLEAN)
FUNCTIONS = [
    *(Call(name, (X, Y)) for name in ("least", "greatest", "mod")), Call("least", (X, Y, Literal(3))),
    Call("greatest", (D, Literal(date(2000, 2, 29)))), Call("least", (M, Literal(datetime(2020, 1, 1)))),
    *(Call(name, (X,)) for name in ("round", "trunc", "sign", "sqrt", "ln", "exp", "integer_text")),
    *(Call("to_integer", (X,), kind) for kind in ("TINYINT", "SMALLINT", "INT", "BIGINT")),
    *(Call(name, (T,)) for name in ("upper", "lower", "length", "text_integer", "text_real", "text_date")),
    Call("||", (T, U)), Call("replace", (T, Literal("a"), Literal(""))),
    Call("replace", (T, Literal("ab"), Literal("ß'"))), Call("substr", (T, Literal(1), Literal(1))),
    Call("substr", (T, Literal(2))), Call("substr", (T, Literal(9), Literal(0))),
    *(Call(name, (T, Literal(count))) for name in ("left", "right") for count in (0, 1, 3, 100)),
    Call("strpos", (T, Literal("a"))), Call("strpos", (T, Literal("é"))),
    *(Call("split", (T, Literal(mark), Literal(n))) for mark in ("a", "aa", " ", "é", "'") for n in (1, 2, -1, -3)),
    *(Call("trim", (T, Literal(" ")), side) for side in ("both", "leading", "trailing")),
    Call("trim", (T, Literal("a'é")), "both"),
    *(Call("pad", (T, Literal(5), Literal("é*")), side) for side in ("left", "right")),
    Call("like", (T, Literal("%a!%_%"), Literal("!"))), Call("like", (T, Literal("a%"))),
    Call("boolean_text", (B,)), Call("date_text", (D,)), Call("datetime_text", (M,)), Call("datetime_date", (M,)),
    *(Call("date_add", (D, Literal(number)), unit) for unit in ("month", "day") for number in (-25, -1, 0, 1, 13)),
    *(Call("datetime_add", (M, Literal(by)), unit) for unit in ("month", "day", "second") for by in (-25, 1, 13)),
    Call("make_date", (Call("round", (X,)), Call("round", (Y,)), Literal(29))),
    Call("strftime", (D,), "%Y-%m"), Call("strftime", (M,), "%d.%m.%Y %H:%M:%S!"),
]  # fmt: skip
ODD_NUMBERS = [
    0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 1.0, -1.0, 2.0**52, 2.0**52 + 1,
    -(2.0**53), 2.0**63, -(2.0**63), 127.5, 128.0, -128.5, 32767.5, 2147483647.5, 1e100, -1e100, 5e-324,
    -5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan, 1e15, 0.1, 3.0, 7.0, 10.0, 100.0, 1000.0, math.e,
    700.0, -700.0,
    709.0, -745.0, 12.0, 2.0, 2020.0, 9999.0,
]  # fmt: skip
ODD_TEXTS = [
    "", " ", "  a ", "a", "ab", "abab", "aaaaaaaaaa", "é", "e\u0301", "ßa", "İi", "ŉ", "ǆ", "ᾀ", "Σς", "\u00a0a\u00a0",
    "a\nb", "a%b", "a_b", "12", "+7", "-0", " 12", "12 ", "1e3", "1.5", "-1.25", ".5", "1.", "0x1f", "1_000", "٣",
    "123456789012345", "1234567890123456",
    "2020-02-29", "2021-02-29", "0001-01-01", "0000-01-01", "2020-2-9", "2020-02-29\n", "infinity", "nan", "😀b",
    "a'b", 'q"', "\\",
]  # fmt: skip
numbers = st.none() | st.sampled_from(ODD_NUMBERS) | st.floats() | st.integers(-30, 30).map(float)
texts = (
    st.none()
    | st.sampled_from(ODD_TEXTS)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
)
days = (
    st.none()
    | st.sampled_from([date(2020, 2, 29), date(2021, 1, 31), date(4, 2, 29)])
    | st.dates(date(4, 1, 1), date(9990, 1, 1))
)
moments = st.none() | st.datetimes(datetime(4, 1, 1), datetime(9990, 1, 1))
rows = st.fixed_dictionaries(
    {"x": numbers, "y": numbers, "t": texts, "u": texts, "d": days, "m": moments, "b": st.none() | st.booleans()}
)
TYPES = [
    ("x", pa.float64()), ("y", pa.float64()), ("t", pa.string()), ("u", pa.string()), ("d", pa.date32()),
    ("m", pa.timestamp("us")), ("b", pa.bool_()),
]  # fmt: skip


@cache
def lowered(function):
    return DUCKDB.write(lower_expression(function))


def by_duckdb(found, functions=FUNCTIONS):
    data = pa.table({name: pa.array([row[name] for row in found], kind) for name, kind in TYPES})
    with duckdb.connect() as connection:
        connection.register("data", data)
        return connection.execute(f"SELECT {', '.join(map(lowered, functions))} FROM data").fetchall()


def same(one, two):
    """The same type and the same bits; every NaN is the same."""
    if isinstance(one, float) and isinstance(two, float):
        return (math.isnan(one) and math.isnan(two)) or struct.pack("d", one) == struct.pack("d", two)
    return type(one) is type(two) and one == two


def differences(found, functions=FUNCTIONS):
    return [
        (function, row, value, wanted)
        for row, values in zip(found, by_duckdb(found, functions), strict=True)
        for function, value in zip(functions, values, strict=True)
        if not same(value, wanted := evaluate(function, row))
    ]


def row(**values):
    return {"x": None, "y": None, "t": None, "u": None, "d": None, "m": None, "b": None, **values}


@settings(max_examples=25, deadline=None)
@given(found=st.lists(rows, min_size=1, max_size=20))
def test_every_function_has_the_same_bits_on_both(found):
    assert differences(found) == []


def test_every_function_has_the_same_bits_on_odd_values():
    pairs = [row(x=one, y=two) for one in ODD_NUMBERS for two in ODD_NUMBERS]
    assert differences(pairs + [row(t=one, u=two) for one in ODD_TEXTS for two in ODD_TEXTS[:5]]) == []


def test_every_function_of_the_kernel_is_compared():
    elsewhere = {"extract", "date_diff", "date_trunc", "datetime_trunc", "midnight", "and", "or", "not", "is null"}
    generated = {
        "+",
        "-",
        "*",
        "/",
        "neg",
        "abs",
        "floor",
        "ceil",
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
    }  # test_differential.py
    assert {function.function for function in FUNCTIONS} | elsewhere | generated >= set(KIND_OF_RESULT)
    assert set(meanings.PLAIN) | set(meanings.WITH_UNIT) <= {function.function for function in FUNCTIONS}


def test_letters_change_case_one_by_one():
    letters = [chr(point) for point in range(1, 0x2_0000) if not 0xD800 <= point < 0xE000]
    found = by_duckdb([row(t=letter) for letter in letters], [Call("upper", (T,)), Call("lower", (T,))])
    assert found == [(raise_case(letter), lower_case(letter)) for letter in letters]


LOGARITHMS = [5e-324, 1e-300, 1e-9, 0.5, 0.999999999, 1.0, 1.000000001, 2.0, math.e, 10.0, 1000.0, 1e9, 1e100, 1.7e308]


def test_logarithms_and_exponentials_are_accurate():
    """Within 2**-37, and within a few units of the last place: the claim K-62."""
    for number in (*LOGARITHMS, *(1.1**power for power in range(-7_000, 7_000, 13))):
        assert abs(number_meanings.take_logarithm(number) - math.log(number)) < 2.0**-37
    for number in (power / 7 for power in range(-4_900, 4_900)):
        assert number_meanings.take_exponential(number) == pytest.approx(math.exp(number), rel=2e-15)
    assert number_meanings.take_logarithm(1.0) == 0.0
    assert number_meanings.take_exponential(0.0) == 1.0


def test_the_constants_are_the_same_in_both():
    for name in ("ROOTS", "LN_ABOVE", "LN_BELOW", "EXP_ABOVE", "EXP_BELOW", "LOG2_E", "LN2_HIGH", "LN2_LOW"):
        assert getattr(function_sql, name) == getattr(number_meanings, name)
    assert Fraction(number_meanings.LN2_HIGH).denominator < 2**43  # a whole number of up to 2**10 times it is exact


@pytest.mark.parametrize(
    ("wrong", "function"),
    [
        (lambda one: float(round(one)) if math.isfinite(one) else one, "round"),
        (lambda one: None if one <= 0 else math.log(one), "ln"),
        (str.upper, "upper"),
        (str.casefold, "lower"),
        (lambda text: float(len(text.encode())), "length"),
        (lambda text: float(text) if text.strip().isdigit() else None, "text_integer"),
        (lambda text, mark, place: [*text.split(mark), "", "", "", ""][int(place) - 1], "split"),
    ],
)
def test_another_meaning_is_noticed(wrong, function, monkeypatch):
    """Negative controls: banker's rounding, the library's logarithm, full case mappings, bytes, laxer texts."""
    monkeypatch.setitem(meanings.PLAIN, function, wrong)
    found = [row(x=one, y=1.0) for one in ODD_NUMBERS] + [row(t=one, u="") for one in ODD_TEXTS]
    assert differences(found, [call for call in FUNCTIONS if call.function == function])


@pytest.mark.parametrize(
    "call",
    [
        Call("substr", (T, X)), Call("substr", (T, Literal(0))), Call("left", (T, X)), Call("left", (T, Literal(-1))),
        Call("left", (T, Literal(True))), Call("replace", (T, Literal(""), Literal("a"))), Call("replace", (T, U, U)),
        Call("strpos", (T, U)), Call("split", (T, U, Literal(1))), Call("split", (T, Literal(""), Literal(1))),
        Call("split", (T, Literal("a"), Literal(0))), Call("pad", (T, Literal(5), Literal("")), "left"),
        Call("pad", (T, Literal(5), Literal("a"))),
        Call("to_integer", (X,)), Call("to_integer", (X,), "HUGEINT); --"), Call("date_add", (D, X), "day"),
        Call("date_add", (D, Literal(1)), "second"), Call("strftime", (D,), "%B"), Call("like", (T, U, Literal("ab"))),
        Call("sqrt", (X, Y)), Call("pi", ()), Call("least", ()), Call("least", (X, T)),
    ],
)  # fmt: skip
def test_what_could_fail_on_a_row_is_not_lowered(call):
    with pytest.raises(KernelFault):
        lower_expression(call)
