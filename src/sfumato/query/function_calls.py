"""Syntax of a row-level function -> Typed. A function that several systems spell differently is one function here."""

from collections.abc import Callable, Mapping

from sqlglot import exp

from sfumato.kernel.expressions import Literal
from sfumato.query import casts, date_arithmetic, functions, number_functions, text_functions
from sfumato.query.constants import read_constant
from sfumato.query.date_functions import extract_part, read_beside
from sfumato.query.decided_comparisons import add_caution, check_divisor
from sfumato.query.parse import build_syntax_refusal, locate, locate_errors
from sfumato.query.query import Typed

Bind = Callable[[exp.Expr], Typed]
OF_ONE: Mapping[type[exp.Expr], Callable[[Typed], Typed]] = {
    exp.Sign: number_functions.find_sign,
    exp.Sqrt: number_functions.take_square_root,
    exp.Ln: number_functions.take_log,
    exp.Exp: number_functions.take_power_of_e,
    exp.Upper: lambda one: text_functions.change_text("upper", one),
    exp.Lower: lambda one: text_functions.change_text("lower", one),
    exp.Length: text_functions.measure_length,
    exp.LastDay: date_arithmetic.find_last_day,
    exp.Date: casts.cast_to_date,
    exp.DayOfMonth: lambda one: extract_part("day", one),
    exp.DayOfWeekIso: date_arithmetic.find_iso_day,
}
OF_TWO: Mapping[type[exp.Expr], Callable[[Typed, Typed], Typed]] = {
    exp.Pow: number_functions.raise_to_power,
    exp.IntDiv: number_functions.divide_whole,
    exp.Mod: number_functions.find_remainder,
}
PARTS: Mapping[type[exp.Expr], str] = {
    exp.StartsWith: "starts_with", exp.EndsWith: "ends_with", exp.Contains: "contains",
}  # fmt: skip
SIDES = {"LEADING": "leading", "TRAILING": "trailing", "BOTH": "both"}
NAMED_ARGUMENTS = {
    "DIV": 2, "PREFIX": 2, "SUFFIX": 2, "BTRIM": (1, 2), "HISTOGRAM": 2, "DATE_PART": 2, "DATEADD": 3,
    "DATE_SUB": (2, 3), "DATE_FORMAT": 2, "FORMAT_DATE": 2, "TO_DATE": 1, "SQUARE": 1, "IFF": 3, "AGE": 2,
    "INITCAP": 1,
}  # fmt: skip


def bind_function(node: exp.Expr, bind: Bind) -> Typed | None:  # noqa: PLR0911 - one return a form
    """Bind a function of numbers, texts or dates. None: the node is no such function."""
    kind = type(node)
    if kind in OF_ONE:
        one = bind(node.this)
        with locate_errors(node):
            return OF_ONE[kind](one)
    if kind in OF_TWO:
        one, two = bind(node.this), bind(node.expression)
        with locate_errors(node):
            made = OF_TWO[kind](one, two)
        if kind is not exp.Pow:
            check_divisor(node.expression, two)
        return made
    if kind in PARTS:
        one, part = bind(node.this), _read_text(node, node.expression)
        with locate_errors(node):
            return text_functions.check_part(PARTS[kind], one, part)
    match node:
        case exp.Least() | exp.Greatest():
            arguments = _read_alike(node, [bind(part) for part in (node.this, *node.expressions)])
            with locate_errors(node):
                return number_functions.choose_extreme("least" if kind is exp.Least else "greatest", arguments)
        case exp.Round() | exp.Trunc():
            given = node.args.get("decimals")
            digits = 0 if given is None else _read_whole(node, given, number_functions.MOST_DIGITS)
            one = bind(node.this)
            with locate_errors(node):
                return number_functions.round_number("round" if kind is exp.Round else "trunc", one, digits)
        case exp.Extract():
            return bind_age(node, bind)
        case exp.DateDiff():  # in seconds
            last, first = bind(node.this), bind(node.expression)
            first, last = read_beside(node, first, last), read_beside(node, last, first)
            return _call(node, date_arithmetic.count_seconds_between, first, last)
        case exp.Log():
            return _bind_log(node, bind)
        case exp.WidthBucket():
            low, high = (_read_number(node, node.args[name]) for name in ("min_value", "max_value"))
            buckets, one = _read_whole(node, node.args["num_buckets"], 10**6), bind(node.this)
            with locate_errors(node):
                return number_functions.find_bucket(one, low, high, buckets)
        case exp.Nullif():
            return _bind_nullif(node, bind)
        case exp.Cast():
            one = bind(node.this)
            with locate_errors(node):
                return casts.cast_value(one, node.to, node)
    return _bind_text_function(node, bind) or _bind_date_arithmetic(node, bind)


def _bind_text_function(node: exp.Expr, bind: Bind) -> Typed | None:  # noqa: PLR0911 - one return a form
    match node:
        case exp.Trim():
            letters = " " if node.expression is None else _read_text(node, node.expression)
            return _call(
                node, text_functions.trim_text, bind(node.this), SIDES[node.args.get("position") or "BOTH"], letters
            )
        case exp.Substring():
            counts = [_read_whole(node, given, 10**6) for name in ("start", "length") if (given := node.args.get(name))]
            return _call(node, text_functions.cut_text, "substr", bind(node.this), *counts)
        case exp.Left() | exp.Right():
            side = "left" if isinstance(node, exp.Left) else "right"
            count = _read_whole(node, node.expression, 10**6)
            return _call(node, text_functions.cut_text, side, bind(node.this), count)
        case exp.Concat():
            return _call(node, text_functions.join_texts, [bind(part) for part in node.expressions], keep_null=False)
        case exp.DPipe():
            return _call(node, text_functions.join_texts, [bind(part) for part in _list_joined(node)], keep_null=True)
        case exp.Replace():
            old, new = _read_text(node, node.expression), _read_text(node, node.args.get("replacement"))
            return _call(node, text_functions.replace_text, bind(node.this), old, new)
        case exp.Pad():
            side, length = "left" if node.args.get("is_left") else "right", _read_whole(node, node.expression, 10**6)
            given = node.args.get("fill_pattern")
            fill = " " if given is None else _read_text(node, given)
            return _call(node, text_functions.pad_text, side, bind(node.this), length, fill)
        case exp.SplitPart() | exp.SubstringIndex():
            return _bind_split(node, bind)
        case exp.StrPosition():
            return _call(node, text_functions.find_part, bind(node.this), _read_text(node, node.args.get("substr")))
        case exp.ILike():
            found = _call(node, text_functions.match_any_case, bind(node.this), bind(node.expression))
            return functions.combine_logic("not", [found]) if node.args.get("negate") else found
        case exp.Escape() if isinstance(node.this, exp.Like):
            one, two = bind(node.this.this), bind(node.this.expression)
            escape = _read_text(node, node.expression)
            found = _call(node, functions.match_pattern, one, two, escape)
            negated = node.this.args.get("negate") or node.args.get("negate")
            return functions.combine_logic("not", [found]) if negated else found
    return None


def _bind_split(node: exp.SplitPart | exp.SubstringIndex, bind: Bind) -> Typed:
    """SPLIT_PART(x, '@', 2), or MySQL's SUBSTRING_INDEX(x, '@', 1) and -1: its first and its last part."""
    mark = _read_text(node, node.args.get("delimiter"))
    split = isinstance(node, exp.SplitPart)
    place = _read_whole(node, node.args.get("part_index" if split else "count"), text_functions.MOST_CHARACTERS)
    if not split and abs(place) != 1:
        what = "SUBSTRING_INDEX of several parts is not supported"
        raise build_syntax_refusal(
            node, what, "SPLIT_PART(x, '@', 2) is the second part alone. That is another question."
        )
    return _call(node, text_functions.split_text, bind(node.this), mark, place)


def _bind_date_arithmetic(node: exp.Expr, bind: Bind) -> Typed | None:  # noqa: PLR0911 - one return a form
    match node:
        case exp.Add(expression=exp.Interval() as interval) | exp.Sub(expression=exp.Interval() as interval):
            sign = 1 if isinstance(node, exp.Add) else -1
            return _add_interval(node, bind(node.this), interval, sign)
        case exp.DateAdd(expression=exp.Interval() as interval):
            return _add_interval(node, bind(node.this), interval, 1)
        case exp.DateFromParts():
            parts = [bind(node.args[name]) for name in ("year", "month", "day")]
            return _call(node, date_arithmetic.make_date, *parts)
        case exp.TimeToStr():
            return _call(node, date_arithmetic.format_date, bind(node.this), _read_text(node, node.args.get("format")))
        case exp.ToChar():
            with locate_errors(node):
                form = date_arithmetic.convert_format(_read_text(node, node.args.get("format")))
            return _call(node, date_arithmetic.format_date, bind(node.this), form)
        case exp.Anonymous():
            return _bind_named(node, bind)
    return None


def _bind_named(node: exp.Anonymous, bind: Bind) -> Typed | None:  # noqa: PLR0911, PLR0912 - one return a form
    """Bind a function that the parser knows only by its name."""
    name, given = str(node.this).upper(), node.expressions
    count = NAMED_ARGUMENTS.get(name)
    if count is None:
        return None
    if len(given) not in (count if isinstance(count, tuple) else (count,)):
        raise build_syntax_refusal(
            node, f"{name} has the wrong number of values", "Give as many as its documentation says."
        )
    match name:
        case "DIV":
            one, two = bind(given[0]), bind(given[1])
            return _call(node, number_functions.divide_whole, one, two)
        case "PREFIX" | "SUFFIX":
            function = "starts_with" if name == "PREFIX" else "ends_with"
            return _call(node, text_functions.check_part, function, bind(given[0]), _read_text(node, given[1]))
        case "BTRIM":
            letters = _read_text(node, given[1]) if len(given) > 1 else " "
            return _call(node, text_functions.trim_text, bind(given[0]), "both", letters)
        case "HISTOGRAM":
            return _call(node, number_functions.find_bin, bind(given[0]), _read_whole(node, given[1], 10**6))
        case "SQUARE":
            return _call(node, number_functions.raise_to_power, bind(given[0]), functions.type_literal(2))
        case "INITCAP":
            return _call(node, text_functions.capitalise_words, bind(given[0]))
        case "IFF":
            return bind(exp.Case(ifs=[exp.If(this=given[0], true=given[1])], default=given[2]))
        case "TO_DATE":
            return _call(node, casts.cast_to_date, bind(given[0]))
        case "DATE_FORMAT" | "FORMAT_DATE":
            form, day = reversed(given) if name == "DATE_FORMAT" else given
            return _call(node, date_arithmetic.format_date, bind(day), _read_text(node, form))
        case "DATEADD":
            unit, number = _read_unit(node, given[0]), _read_whole(node, given[1], 10**9)
            return _call(node, date_arithmetic.add_interval, bind(given[2]), number, unit)
        case "DATE_SUB" if len(given) == 2 and isinstance(given[1], exp.Interval):
            return _add_interval(node, bind(given[0]), given[1], -1)
        case "DATE_PART":
            return bind(exp.Extract(this=exp.var(_read_part(node, given[0])), expression=given[1]))
    hint = "Write d - INTERVAL 3 DAY, or EXTRACT(year FROM AGE(last, first)) for complete years."
    raise build_syntax_refusal(node, f"{name} cannot be used like this", hint)


def bind_age(node: exp.Extract, bind: Bind) -> Typed | None:
    """Bind EXTRACT(year FROM AGE(last, first)), EXTRACT(epoch FROM last - first) and others that are computed."""
    if node.this.name.lower() == "isodow":
        return _call(node, date_arithmetic.find_iso_day, bind(node.expression))
    inner = node.expression.unnest()
    if node.this.name.lower() == "second":
        return _call(node, date_arithmetic.find_second, bind(inner))
    if node.this.name.lower() == "epoch":
        add_caution(f"EXTRACT(EPOCH ...){locate(node)} counts whole seconds here: fractions of a second are left out.")
        if isinstance(inner, exp.Sub) and not isinstance(inner.expression, exp.Interval):
            last, first = bind(inner.this), bind(inner.expression)
            return _call(node, date_arithmetic.count_seconds_between, first, last)
        return _call(node, date_arithmetic.count_seconds, bind(inner))
    if not isinstance(inner, exp.Anonymous) or str(inner.this).upper() != "AGE":
        return None
    if len(inner.expressions) != 2:
        what = "AGE needs two dates: an answer must not depend on the day on which it is asked"
        raise build_syntax_refusal(node, what, "Write EXTRACT(year FROM AGE(DATE '2026-01-31', born)).")
    if str(node.this.this).lower() != "year":
        raise build_syntax_refusal(
            node, "AGE can be counted only in years", "Write EXTRACT(year FROM AGE(last, first))."
        )
    last, first = (bind(part) for part in inner.expressions)
    first, last = read_beside(node, first, last), read_beside(node, last, first)
    return _call(node, date_arithmetic.count_years, last, first)


def _bind_log(node: exp.Log, bind: Bind) -> Typed:
    """LOG(x) is the logarithm to base 10, as in DuckDB and PostgreSQL; LOG(b, x) has the base first."""
    if node.expression is None:
        return _call(node, number_functions.take_log, bind(node.this), 10.0)
    base = _read_number(node, node.this)
    if base <= 0 or base == 1:
        raise build_syntax_refusal(node, "The base of a logarithm must be above 0, and not 1", "Write LOG(2, x).")
    return _call(node, number_functions.take_log, bind(node.expression), base)


def _bind_nullif(node: exp.Nullif, bind: Bind) -> Typed:
    one, two = bind(node.this), bind(node.expression)
    left, right = read_beside(node, one, two), read_beside(node, two, one)
    with locate_errors(node):
        same = functions.compare("=", left, right)
        return functions.choose([same], [functions.type_literal(None)], one)


def _add_interval(node: exp.Expr, one: Typed, interval: exp.Interval, sign: int) -> Typed:
    """A date plus INTERVAL 3 DAY, INTERVAL '3' DAY or INTERVAL '3 days'."""
    text = str(interval.this.this) if isinstance(interval.this, exp.Literal) else ""
    if not text:
        found = _read_whole(node, interval.this, 10**9) if interval.this is not None else 0
        text = str(found)
    words = text.split()
    given = interval.args.get("unit")
    unit = str(given.this) if given is not None else words[1] if len(words) == 2 else ""
    number = words[0] if words else ""
    plain = unit.lower().removesuffix("s")
    if plain not in date_arithmetic.STEPS or not number.lstrip("+-").isdigit() or len(number) > 9:
        hint = "Write INTERVAL 3 DAY, with a whole number and year, month, week, day, hour, minute or second."
        raise build_syntax_refusal(node, "This interval is not supported", hint)
    return _call(node, date_arithmetic.add_interval, one, sign * int(number), plain)


def _call(node: exp.Expr, function: Callable[..., Typed], *arguments: object, **named: object) -> Typed:
    with locate_errors(node):
        return function(*arguments, **named)


def _read_alike(node: exp.Expr, arguments: list[Typed]) -> list[Typed]:
    """Texts beside a date or datetime are read as such."""
    dated = next((argument for kind in ("datetime", "date") for argument in arguments if argument.type == kind), None)
    return arguments if dated is None else [read_beside(node, argument, dated) for argument in arguments]


def _list_joined(node: exp.Expr) -> list[exp.Expr]:
    found, waiting = [], [node]
    while waiting:
        part = waiting.pop().unnest()
        if isinstance(part, exp.DPipe):
            waiting += [part.expression, part.this]
        else:
            found.append(part)
    return found


def _read_text(node: exp.Expr, given: exp.Expr | None) -> str:
    value = None if given is None else read_constant(given)
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise build_syntax_refusal(node, "This function needs a text in quotes here", "Write the text itself.")
    return value.value


def _read_number(node: exp.Expr, given: exp.Expr | None) -> float:
    value = None if given is None else read_constant(given)
    if not isinstance(value, Literal) or isinstance(value.value, bool) or not isinstance(value.value, (int, float)):
        raise build_syntax_refusal(node, "This function needs a number here, not a column", "Write the number itself.")
    return float(value.value)


def _read_whole(node: exp.Expr, given: exp.Expr | None, most: int) -> int:
    number = _read_number(node, given)
    if not number.is_integer() or abs(number) > most:
        what = f"This function needs a whole number of at most {most:,} here"
        raise build_syntax_refusal(node, what, "Write the number itself.")
    return int(number)


def _read_unit(node: exp.Expr, given: exp.Expr) -> str:
    unit = _read_part(node, given).removesuffix("s")
    if unit not in date_arithmetic.STEPS:
        raise build_syntax_refusal(node, "This is not a unit of dates", "Write DATEADD(day, 3, d).")
    return unit


def _read_part(node: exp.Expr, given: exp.Expr) -> str:
    """The name of a unit: a word or a text."""
    found = str(given.this) if isinstance(given, (exp.Literal, exp.Var)) else given.name
    if not found.isalpha():
        raise build_syntax_refusal(node, "This is not a unit of dates", "Write 'year', 'month' or 'day'.")
    return found.lower()
