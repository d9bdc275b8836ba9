"""Row-level functions -> SQL. Part of the trusted perimeter, with scalars.py: no function fails on any value.

The operations that compute bits are + - * / and SQRT, which every engine rounds correctly, and 2 to a whole power,
which is exact. An engine's own LN and EXP are not used, because their last bit differs between engines.
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from sfumato.errors import KernelFault
from sfumato.kernel.expressions import MOST_MADE, Call, Expression, Literal, count_read

Lower = Callable[[Expression], exp.Expression]
DOUBLE, TEXT, BIGINT = exp.DataType.Type.DOUBLE, exp.DataType.Type.TEXT, exp.DataType.Type.BIGINT
DATE, MOMENT = exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMPNTZ
INTEGERS = {"TINYINT", "SMALLINT", "INT", "BIGINT"}
ROOTS = 14
LN_ABOVE = (25.0, 260.0, 630.0, 420.0)
LN_BELOW = (6.0, 120.0, 540.0, 840.0, 420.0)
EXP_ABOVE = (1.0, 30.0, 420.0, 3_360.0, 15_120.0, 30_240.0)
EXP_BELOW = (-1.0, 30.0, -420.0, 3_360.0, -15_120.0, 30_240.0)
LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
PLAIN: dict[str, type[exp.Upper | exp.Lower | exp.Round | exp.Trunc]] = {
    "upper": exp.Upper, "lower": exp.Lower, "round": exp.Round, "trunc": exp.Trunc,
}  # fmt: skip
NUMERIC_RESULT: dict[str, type[exp.Sign | exp.Length]] = {"sign": exp.Sign, "length": exp.Length}
AS_TEXT = ("boolean_text", "date_text", "datetime_text")
FROM_TEXT = {  # a text is read only if it has this form: engines differ in what else they read
    "text_integer": (r"^[+-]?[0-9]{1,15}\z", BIGINT),
    "text_real": (r"^[+-]?[0-9]{1,15}(\.[0-9]{1,15})?\z", DOUBLE),
    "text_date": (r"^([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}\z", DATE),
}
STEPS = {"date_add": (DATE, ("month", "day")), "datetime_add": (MOMENT, ("month", "day", "second"))}
FIELDS = frozenset("YmdHMS")


def lower_function(call: Call, lower: Lower) -> exp.Expression:  # noqa: PLR0911, PLR0912 - one return a form
    """The SQL of a function. `lower` writes its arguments.

    Claim: K-62. It has a value or NULL for every row, and the same bits as row_meanings/ computes.
    Checked by: tests/engines/test_row_functions.py::test_every_function_has_the_same_bits_on_both
    """
    match call:
        case Call("least" | "greatest" as function, arguments, None) if arguments:
            first, *others = map(lower, arguments)
            extreme = exp.Least if function == "least" else exp.Greatest
            return extreme(this=first, expressions=others, ignore_nulls=True)
        case Call(function, (one,), None) if function in PLAIN:
            return PLAIN[function](this=lower(one))
        case Call(function, (one,), None) if function in NUMERIC_RESULT:
            return exp.cast(NUMERIC_RESULT[function](this=lower(one)), DOUBLE, copy=False)
        case Call("mod", (one, two), None):
            divisor = exp.Nullif(this=lower(two), expression=lower_double(0.0))
            return exp.Paren(this=exp.Mod(this=exp.Paren(this=lower(one)), expression=divisor))
        case Call("sqrt", (one,), None):
            return exp.Sqrt(this=_keep_if(exp.GTE, one, lower))
        case Call("ln", (one,), None):
            return _lower_logarithm(_keep_if(exp.GT, one, lower))
        case Call("exp", (one,), None):
            return _lower_exponential(lower(one))
        case Call("to_integer", (one,), str(size)) if size in INTEGERS:
            whole = exp.TryCast(this=lower(one), to=exp.DataType.build(size))
            return exp.cast(whole, DOUBLE, copy=False)
        case Call("integer_text", (one,), None):
            return exp.cast(_write_whole(lower(one)), TEXT, copy=False)
        case Call(function, (one,), None) if function in AS_TEXT:
            return exp.cast(lower(one), TEXT, copy=False)
        case Call(function, (one,), None) if function in FROM_TEXT:
            pattern, target = FROM_TEXT[function]
            formed = exp.RegexpLike(this=lower(one), expression=exp.Literal.string(pattern))
            read = exp.TryCast(this=lower(one), to=exp.DataType.build(target))
            found = exp.Case(ifs=[exp.If(this=formed, true=read)])
            return found if function == "text_date" else exp.cast(found, DOUBLE, copy=False)
        case Call("datetime_date", (one,), None):
            return exp.cast(lower(one), DATE, copy=False)
        case Call("make_date", (year, month, day), None):
            parts = [_pad(_write_whole(lower(part)), width) for part, width in ((year, 4), (month, 2), (day, 2))]
            dashed = [parts[0], exp.Literal.string("-"), parts[1], exp.Literal.string("-"), parts[2]]
            made = exp.TryCast(this=_join(dashed), to=exp.DataType.build(DATE))
            ends = [(year, 1, 9_999), (month, 1, 12), (day, 1, 31)]
            above = [exp.GTE(this=lower(part), expression=lower_double(float(low))) for part, low, _ in ends]
            below = [exp.LTE(this=lower(part), expression=lower_double(float(high))) for part, _, high in ends]
            return exp.Case(ifs=[exp.If(this=exp.and_(*above, *below), true=made)])
        case Call(function, (one, Literal(int(number))), str(unit)) if function in STEPS and unit in STEPS[function][1]:
            step = exp.Interval(this=exp.Literal.string(str(number)), unit=exp.var(unit))
            moved = exp.Paren(this=exp.Add(this=lower(one), expression=step))
            return exp.cast(moved, STEPS[function][0], copy=False)
        case Call("strftime", (one,), str(form)) if FIELDS.issuperset(part[:1] for part in form.split("%")[1:]):
            return exp.TimeToStr(this=lower(one), format=exp.Literal.string(form))
        case _:
            return _lower_text_function(call, lower)


def _lower_text_function(call: Call, lower: Lower) -> exp.Expression:  # noqa: PLR0911 - one return a form
    match call:
        case Call("||", (one, two), None):
            return _join([_cut(lower(part), MOST_MADE // 2) for part in (one, two)])
        case Call("replace", (one, Literal(str(old)), Literal(str(new))), None) if old:
            texts = exp.Literal.string(old), exp.Literal.string(new)
            return exp.Replace(this=_cut(lower(one), count_read(old, new)), expression=texts[0], replacement=texts[1])
        case Call("substr", (one, Literal(int(start)), *rest), None) if start > 0:
            most = [_write_count(part) for part in rest]
            return exp.Substring(this=lower(one), start=exp.Literal.number(start), length=most[0] if most else None)
        case Call("left" | "right" as side, (one, count), None):
            return (exp.Left if side == "left" else exp.Right)(this=lower(one), expression=_write_count(count))
        case Call("strpos", (one, Literal(str(part))), None) if part:
            found = exp.StrPosition(this=lower(one), substr=exp.Literal.string(part))
            return exp.cast(found, DOUBLE, copy=False)
        case Call("split", (one, Literal(str(mark)), Literal(int(place))), None) if mark and place:
            number = exp.Literal.number(place)
            return exp.SplitPart(this=lower(one), delimiter=exp.Literal.string(mark), part_index=number)
        case Call("trim", (one, Literal(str(letters))), str(side)):
            position = {"leading": "LEADING", "trailing": "TRAILING"}.get(side)
            return exp.Trim(this=lower(one), expression=exp.Literal.string(letters), position=position)
        case Call("pad", (one, Literal(int(count)), Literal(str(fill))), str(side)) if fill and 0 < count <= MOST_MADE:
            return _pad(lower(one), count, fill, left=side == "left")
    raise KernelFault("A plan holds a function that has no lowering.")


def _keep_if(sign: type[exp.Binary], one: Expression, lower: Lower) -> exp.Expression:
    """A number that is above 0, or not below 0; else NULL. Only then is a function of it computed."""
    there = sign(this=lower(one), expression=lower_double(0.0))
    return exp.Case(ifs=[exp.If(this=there, true=lower(one))])


def _lower_logarithm(value: exp.Expression) -> exp.Expression:
    """Roots bring the value near 1, where one polynomial over another is the logarithm (docs/claims/K-62.md)."""
    for _ in range(ROOTS):
        value = exp.Sqrt(this=value)
    away = exp.Paren(this=exp.Sub(this=value, expression=lower_double(1.0)))
    above = exp.Mul(this=away, expression=_write_polynomial(LN_ABOVE, away))
    ratio = _divide(above, _write_polynomial(LN_BELOW, away))
    return exp.Paren(this=exp.Mul(this=ratio, expression=lower_double(float(1 << ROOTS))))


def _lower_exponential(value: exp.Expression) -> exp.Expression:
    """2 to a whole power, times one polynomial over another of what is left (docs/claims/K-62.md)."""
    scaled = exp.Add(this=exp.Mul(this=value, expression=lower_double(LOG2_E)), expression=lower_double(0.5))
    whole = exp.Floor(this=scaled)
    parts = [exp.Mul(this=whole.copy(), expression=lower_double(part)) for part in (LN2_HIGH, LN2_LOW)]
    rest = exp.Paren(this=exp.Sub(this=exp.Sub(this=value.copy(), expression=parts[0]), expression=parts[1]))
    ratio = _divide(_write_polynomial(EXP_ABOVE, rest), _write_polynomial(EXP_BELOW, rest))
    return exp.Paren(this=exp.Mul(this=ratio, expression=exp.Pow(this=lower_double(2.0), expression=whole)))


def _write_polynomial(coefficients: Sequence[float], at: exp.Expression) -> exp.Expression:
    value: exp.Expression = lower_double(coefficients[0])
    for coefficient in coefficients[1:]:
        value = exp.Paren(
            this=exp.Add(this=exp.Mul(this=value, expression=at.copy()), expression=lower_double(coefficient))
        )
    return value


def _divide(one: exp.Expression, two: exp.Expression) -> exp.Expression:
    safe = exp.Nullif(this=two, expression=lower_double(0.0))
    return exp.Paren(this=exp.Div(this=one, expression=safe, typed=False, safe=False))


def lower_double(value: float) -> exp.Expression:
    """The SQL of a double.

    Claim: K-62. It has all digits, so every engine reads the same bits.
    Checked by: tests/engines/test_row_functions.py::test_every_function_has_the_same_bits_on_both
    """
    return exp.cast(exp.Literal.string(repr(value)), DOUBLE, copy=False)


def _write_whole(value: exp.Expression) -> exp.Expression:
    return exp.TryCast(this=value, to=exp.DataType.build(BIGINT))


def _write_count(count: Expression) -> exp.Expression:
    """A number of characters."""
    if not isinstance(count, Literal) or type(count.value) is not int or count.value < 0:
        raise KernelFault("A number of characters is a whole number.")
    return exp.Literal.number(count.value)


def _cut(text: exp.Expression, most: int | None) -> exp.Expression:
    """The first characters of a text: what is made of them fits the memory, however long one person's text is."""
    return text if most is None else exp.Left(this=text, expression=exp.Literal.number(most))


def _pad(text: exp.Expression, count: int, fill: str = "0", *, left: bool = True) -> exp.Expression:
    text = exp.cast(text, TEXT, copy=False)
    return exp.Pad(this=text, expression=exp.Literal.number(count), fill_pattern=exp.Literal.string(fill), is_left=left)


def _join(parts: Sequence[exp.Expression]) -> exp.Expression:
    joined = parts[0]
    for part in parts[1:]:
        joined = exp.DPipe(this=joined, expression=part, safe=False)
    return exp.Paren(this=joined)
