"""The value of an expression for one row, in plain Python. Every function is total."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from sfumato.catalog.names import is_like
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal, Scalar
from sfumato.row_meanings.calendar_meanings import add_to_date, format_date, make_date
from sfumato.row_meanings.date_meanings import DATE_FUNCTIONS, apply_to_dates, moment_text
from sfumato.row_meanings.number_meanings import (
    choose_extreme,
    convert_to_integer,
    divide,
    find_remainder,
    find_sign,
    round_half_away,
    take_exponential,
    take_logarithm,
    take_root,
    truncate_number,
)
from sfumato.row_meanings.text_meanings import (
    join_texts,
    lower_case,
    pad_text,
    raise_case,
    read_date_text,
    read_real_text,
    read_whole_text,
    replace_text,
    split_text,
    trim_text,
)

Row = Mapping[str, Scalar]
NUMERIC = (ColumnType.INTEGER, ColumnType.REAL)
PLAIN: dict[str, Callable[..., Any]] = {  # of values of which none is NULL
    "mod": find_remainder, "round": round_half_away, "trunc": truncate_number, "sign": find_sign, "sqrt": take_root,
    "ln": take_logarithm, "exp": take_exponential, "upper": raise_case, "lower": lower_case, "||": join_texts,
    "length": lambda text: float(len(text)), "replace": replace_text, "like": is_like,
    "substr": lambda text, start, most=math.inf: text[int(start) - 1 :][: None if most == math.inf else int(most)],
    "left": lambda text, most: text[: int(most)], "right": lambda text, most: text[max(len(text) - int(most), 0) :],
    "strpos": lambda text, part: float(text.find(part) + 1), "boolean_text": lambda truth: "true" if truth else "false",
    "integer_text": lambda number: None if (whole := convert_to_integer(number, "BIGINT")) is None else str(int(whole)),
    "split": split_text, "text_integer": read_whole_text, "text_real": read_real_text, "text_date": read_date_text,
    "date_text": date.isoformat, "datetime_text": moment_text, "datetime_date": datetime.date, "make_date": make_date,
}  # fmt: skip
WITH_UNIT: dict[str, Callable[..., Any]] = {  # the same, and the unit of the call comes first
    "to_integer": lambda unit, number: convert_to_integer(number, unit),
    "trim": lambda unit, text, letters: trim_text(text, unit, letters),
    "pad": lambda unit, text, length, fill: pad_text(text, unit, int(length), fill),
    "date_add": lambda unit, moment, number: add_to_date(moment, int(number), unit),
    "datetime_add": lambda unit, moment, number: add_to_date(moment, int(number), unit),
    "strftime": lambda unit, moment: format_date(moment, unit),
}  # fmt: skip


def evaluate(expression: Expression, row: Row) -> Scalar:  # noqa: PLR0911 - one return a form
    """The value of an expression for one row. Numbers are doubles; NULL is None; every function is total."""
    match expression:
        case Literal(value):
            return float(value) if type(value) is int else value
        case Column(name, kind):
            value = row[name]
            return float(value) if kind in NUMERIC and value is not None else value  # type: ignore[arg-type]
        case Call("and" | "or" as function, arguments):
            decisive = function == "or"
            outcomes = [evaluate(argument, row) for argument in arguments]
            return decisive if decisive in outcomes else None if None in outcomes else not decisive
        case Call("case", arguments):
            pairs = zip(arguments[:-1:2], arguments[1::2], strict=False)
            for condition, outcome in pairs:
                if evaluate(condition, row) is True:
                    return evaluate(outcome, row)
            return evaluate(arguments[-1], row)
        case Call("is null", (argument,)):
            return evaluate(argument, row) is None
        case Call("coalesce", arguments):
            return next((found for argument in arguments if (found := evaluate(argument, row)) is not None), None)
        case Call("least" | "greatest" as function, arguments):
            return choose_extreme(function, [evaluate(argument, row) for argument in arguments])  # type: ignore[return-value]
        case Call(function, arguments, unit):
            values = [evaluate(argument, row) for argument in arguments]
            if None in values:
                return None
            if function in DATE_FUNCTIONS:
                return apply_to_dates(function, unit or "", values)
            return _apply(function, values) if unit is None else WITH_UNIT[function](unit, *values)


def _apply(function: str, values: Sequence[Scalar]) -> Scalar:  # noqa: PLR0911 - one line a function
    one: object = values[0]
    two: object = values[1] if len(values) > 1 else None
    match function, one, two:
        case "not", bool(), _:
            return not one
        case "=", _, _:
            return one == two
        case "<>", _, _:
            return one != two
        case (("<" | "<=" | ">" | ">="), _, _):
            return _compare(function, one, two)
        case "neg", float(), _:
            return -one
        case "abs", float(), _:
            return abs(one)
        case "floor", float(), _:
            return float(math.floor(one)) if math.isfinite(one) else one
        case "ceil", float(), _:
            return float(math.ceil(one)) if math.isfinite(one) else one
        case "+", float(), float():
            return one + two
        case "-", float(), float():
            return one - two
        case "*", float(), float():
            return one * two
        case "/", float(), float():
            return None if two == 0 else divide(one, two)
    return PLAIN[function](*values)  # type: ignore[no-any-return]


def _compare(function: str, one: object, two: object) -> bool:
    if isinstance(one, str) and isinstance(two, str):
        one, two = one.encode(), two.encode()  # by bytes, as engines compare without a locale
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[function]
    return bool(compare(one, two))  # type: ignore[arg-type]
