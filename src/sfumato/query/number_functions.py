"""Functions of numbers: their types, their bounds by interval arithmetic, and their possible values.

ROUND(x, 2), POWER, LOG10, WIDTH_BUCKET and HISTOGRAM are composed of the kernel's functions, so an engine needs
nothing new for them.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from sfumato.errors import MissingBounds, UnsupportedSyntax
from sfumato.kernel.expressions import Call, Literal, Scalar
from sfumato.query.functions import (
    MOST_WHOLE,
    choose,
    compare,
    compute,
    contains_division,
    contains_zero,
    list_whole_values,
    require_same_type,
    require_type,
    type_literal,
)
from sfumato.query.mapped_values import map_values
from sfumato.query.query import Typed
from sfumato.row_meanings.number_meanings import (
    round_half_away,
    take_exponential,
    take_logarithm,
    take_root,
    truncate_number,
)

MOST_DIGITS = 10  # of ROUND
MOST_FACTORS = 8  # of POWER with a whole exponent
MOST_BUCKETS = 10_000
LEAST_EXPONENT, MOST_EXPONENT = -700.0, 230.0  # of EXP: e**230 is below MOST_REACH
LOG_STEP = 2.0**-34  # logarithms are rounded to it, so that LOG10(1000) is 3
SLACK = 2.0**-33  # of the bounds of a logarithm
SPREAD = 1e-9  # of the bounds of EXP and POWER, relative


def choose_extreme(function: str, arguments: Sequence[Typed]) -> Typed:
    """LEAST or GREATEST. NULL is ignored, as in DuckDB and PostgreSQL."""
    if len(arguments) < 2:
        raise UnsupportedSyntax("syntax", f"{function.upper()} needs two values.", "Write LEAST(x, 100).")
    for argument in arguments[1:]:
        require_same_type(function.upper(), arguments[0], argument)
    if arguments[0].type not in ("number", "date", "datetime"):
        hint = "Compare texts and truth values with CASE."
        raise UnsupportedSyntax("syntax", f"{function.upper()} of a {arguments[0].type} is not supported.", hint)
    lowers, uppers = [argument.lower for argument in arguments], [argument.upper for argument in arguments]
    sure = [argument for argument in arguments if not argument.nullable]  # one of these is always there
    if function == "least":
        lower = None if None in lowers else min(end for end in lowers if end is not None)
        known = [argument.upper for argument in sure if argument.upper is not None]
        upper = min(known) if known else None if None in uppers else max(end for end in uppers if end is not None)
    else:
        upper = None if None in uppers else max(end for end in uppers if end is not None)
        known = [argument.lower for argument in sure if argument.lower is not None]
        lower = max(known) if known else None if None in lowers else min(end for end in lowers if end is not None)
    call = Call(function, tuple(argument.expression for argument in arguments))
    whole = all(argument.whole for argument in arguments)
    made = Typed(call, arguments[0].type, not sure, lower, upper, whole)
    if any(argument.nullable for argument in arguments):  # NULL leaves more values than the function of those listed
        return _list_between(made)
    return map_values(_list_between(made), arguments)


def _list_between(made: Typed) -> Typed:
    if made.lower is None or made.upper is None or not made.whole:
        return made
    return replace(made, values=list_whole_values(int(made.lower), int(made.upper)))


def find_remainder(one: Typed, two: Typed) -> Typed:
    """x % y: it has the sign of x. NULL if y is 0."""
    for operand in (one, two):
        require_type("%", operand, "number")
    if contains_division(two.expression):
        raise UnsupportedSyntax("syntax", "A divisor contains another division.", "Multiply both sides instead.")
    _refuse_zero(two)
    whole = one.whole and two.whole
    sizes = [_measure(operand) for operand in (one, two)]
    sizes[1] = None if sizes[1] is None else sizes[1] - 1 if whole else sizes[1]
    known = [size for size in sizes if size is not None]
    most = min(known, default=None)
    lower = 0.0 if one.lower is not None and one.lower >= 0 else None if most is None else -most
    upper = 0.0 if one.upper is not None and one.upper <= 0 else most
    nullable = one.nullable or two.nullable or contains_zero(two)
    made = Typed(Call("mod", (one.expression, two.expression)), "number", nullable, lower, upper, whole)
    return map_values(_list_between(made), (one, two))


def _measure(one: Typed) -> float | None:
    return None if one.lower is None or one.upper is None else max(abs(one.lower), abs(one.upper))


def divide_whole(one: Typed, two: Typed) -> Typed:
    """x // y of whole numbers, rounded toward zero. NULL if y is 0."""
    if not (one.whole and two.whole):
        hint = "Write FLOOR(a / b), or TRUNC(a / b)."
        raise UnsupportedSyntax("syntax", "'//' needs whole numbers.", hint)
    _refuse_zero(two)
    return round_number("trunc", compute("/", one, two))


def _refuse_zero(two: Typed) -> None:
    if two.lower == two.upper == 0:
        raise UnsupportedSyntax("syntax", "This divides by 0.", "Divide by another number.")


def round_number(function: str, one: Typed, digits: int = 0) -> Typed:
    """ROUND (halves away from zero) or TRUNC, to a number of digits after the point."""
    require_type(function.upper(), one, "number")
    if one.whole and digits >= 0:
        return one
    if digits:
        power = type_literal(10 ** abs(digits))
        scaled = compute("*" if digits > 0 else "/", one, power)
        made = compute("/" if digits > 0 else "*", round_number(function, scaled), power)
        return replace(made, nullable=one.nullable)
    rounded = round_half_away if function == "round" else truncate_number
    lower = None if one.lower is None else rounded(one.lower) + 0.0
    upper = None if one.upper is None else rounded(one.upper) + 0.0
    whole = lower is not None and upper is not None and max(abs(lower), abs(upper)) <= MOST_WHOLE
    made = Typed(Call(function, (one.expression,)), "number", one.nullable, lower, upper, whole)
    return map_values(_list_between(made), (one,))


def find_sign(one: Typed) -> Typed:
    """-1, 0 or 1."""
    require_type("SIGN", one, "number")
    lower = -1.0 if one.lower is None or one.lower < 0 else 1.0 if one.lower > 0 else 0.0
    upper = 1.0 if one.upper is None or one.upper > 0 else -1.0 if one.upper < 0 else 0.0
    return _list_between(Typed(Call("sign", (one.expression,)), "number", one.nullable, lower, upper, True))


def take_square_root(one: Typed) -> Typed:
    """SQRT; NULL of a negative number."""
    require_type("SQRT", one, "number")
    if one.upper is not None and one.upper < 0:
        raise UnsupportedSyntax("syntax", "SQRT of negative numbers is NULL for every row.", "Use SQRT(ABS(x)).")
    upper = None if one.upper is None else take_root(one.upper)
    lower = 0.0 if one.lower is None or one.lower < 0 else take_root(one.lower)
    nullable = one.nullable or one.lower is None or one.lower < 0
    return map_values(Typed(Call("sqrt", (one.expression,)), "number", nullable, lower, upper), (one,))


def take_log(one: Typed, base: float | None = None) -> Typed:
    """The logarithm of a number, rounded to 2**-34; NULL of 0 and of negative numbers. Without a base it is natural."""
    require_type("LN", one, "number")
    if one.upper is not None and one.upper <= 0:
        raise UnsupportedSyntax("syntax", "The logarithm is NULL for every row.", "Use numbers above 0.")
    unit = 1.0 if base is None else math.log(base)
    scale = 1.0 / (unit * LOG_STEP)
    raw = Call("ln", (one.expression,))
    scaled = Call("+", (Call("*", (raw, Literal(scale))), Literal(0.5)))
    call = Call("*", (Call("floor", (scaled,)), Literal(LOG_STEP)))
    ends = [None if end is None or end <= 0 else (take_logarithm(end) or 0.0) / unit for end in (one.lower, one.upper)]
    lower, upper = ends if unit > 0 else reversed(ends)
    lower = None if lower is None else lower - SLACK
    upper = None if upper is None else upper + SLACK
    nullable = one.nullable or one.lower is None or one.lower <= 0
    return Typed(call, "number", nullable, lower, upper)


def take_power_of_e(one: Typed) -> Typed:
    """EXP of a number whose bounds are neither too small nor too large."""
    require_type("EXP", one, "number")
    for end, name, limit, hint in (
        (one.lower, "lower", LEAST_EXPONENT, "Write EXP(GREATEST(x, -700))."),
        (one.upper, "upper", MOST_EXPONENT, "Write EXP(LEAST(x, 230))."),
    ):
        if end is None or (end < limit if name == "lower" else end > limit):
            what = f"EXP needs a number with {'a' if name == 'lower' else 'an'} {name} bound of {limit:g}"
            raise MissingBounds("bounds", f"{what}, and this has {'none' if end is None else format(end, 'g')}.", hint)
    lower, upper = (take_exponential(end) or 0.0 for end in (one.lower or 0.0, one.upper or 0.0))
    call = Call("exp", (one.expression,))
    return Typed(call, "number", one.nullable, lower * (1 - SPREAD), upper * (1 + SPREAD))


def raise_to_power(one: Typed, two: Typed) -> Typed:
    """POWER: repeated multiplication for small whole exponents, and e**(y * ln(x)) for others."""
    for operand in (one, two):
        require_type("POWER", operand, "number")
    written = two.expression.value if isinstance(two.expression, Literal) else None
    exponent = float(written) if isinstance(written, (int, float)) else None
    if exponent is not None and exponent.is_integer() and 0 < abs(exponent) <= MOST_FACTORS:
        return _multiply(one, int(exponent))
    if exponent == 0.5:
        return take_square_root(one)
    if exponent == 0:
        return type_literal(1)
    if one.lower is None or one.lower < 0 or (one.lower == 0 and not (exponent is not None and exponent > 0)):
        hint = "Ask about the rows with x >= 1 (WHERE), or use a whole exponent of at most 8."
        raise MissingBounds("bounds", "POWER needs a base with a lower bound above 0.", hint)
    positive = replace(one, lower=max(one.lower, 5e-324))
    product_of = compute("*", two, take_log(positive)) if one.lower > 0 else None
    if product_of is not None:
        return take_power_of_e(product_of)
    if one.upper is None or exponent is None:
        raise MissingBounds("bounds", "POWER needs a base with an upper bound.", "Write POWER(LEAST(x, 1000), y).")
    logarithm = replace(take_log(positive), lower=-600.0 / exponent, nullable=one.nullable)
    raised = replace(take_power_of_e(compute("*", two, logarithm)), lower=0.0)
    zero = compare("=", one, type_literal(0))
    return choose([zero], [type_literal(0)], raised)


def _multiply(one: Typed, exponent: int) -> Typed:
    made = one
    for _ in range(abs(exponent) - 1):
        made = compute("*", made, one)
    if exponent % 2 == 0 and one.lower is not None and one.upper is not None and made.upper is not None:
        sizes = sorted((abs(one.lower), abs(one.upper)))
        least = 0.0 if one.lower <= 0 <= one.upper else math.prod([sizes[0]] * abs(exponent)) * (1 - SPREAD)
        made = replace(made, lower=max(least, 0.0))
    return compute("/", type_literal(1), made) if exponent < 0 else made


def find_bucket(one: Typed, low: float, high: float, buckets: int) -> Typed:
    """WIDTH_BUCKET: 1 to n for equal parts of [low, high), 0 below them, and n + 1 from `high` on."""
    require_type("WIDTH_BUCKET", one, "number")
    if not low < high or not 1 <= buckets <= MOST_BUCKETS:
        what = f"WIDTH_BUCKET needs a lower end below the upper end, and 1 to {MOST_BUCKETS:,} buckets."
        raise UnsupportedSyntax("syntax", what, "Write WIDTH_BUCKET(x, 0, 100, 20).")
    inside = _place(replace(one, lower=low, upper=high), low, (high - low) / buckets, buckets)
    number = compute("+", inside, type_literal(1))
    below, above = compare("<", one, type_literal(low)), compare(">=", one, type_literal(high))
    conditions, outcomes = [below, above], [type_literal(0), type_literal(buckets + 1)]
    if one.lower is not None and one.lower >= low:
        conditions, outcomes = conditions[1:], outcomes[1:]
    if one.upper is not None and one.upper < high:
        conditions, outcomes = conditions[:-1], outcomes[:-1]
    made = choose(conditions, outcomes, number) if conditions else number  # of NULL no comparison is true
    return _sort_values(made)


def find_bin(one: Typed, bins: int) -> Typed:
    """HISTOGRAM(x, n): the lower end of the bin that has x, of n equal bins between the bounds of x."""
    require_type("HISTOGRAM", one, "number")
    if one.lower is None or one.upper is None or one.lower == one.upper:
        hint = "Declare bounds, or give them in WHERE: x BETWEEN 0 AND 100."
        raise MissingBounds("bounds", "HISTOGRAM needs a number with bounds.", hint)
    if not 1 <= bins <= MOST_BUCKETS:
        raise UnsupportedSyntax("syntax", f"HISTOGRAM needs 1 to {MOST_BUCKETS:,} bins.", "Write HISTOGRAM(x, 20).")
    width = (one.upper - one.lower) / bins
    place = _place(one, one.lower, width, bins)
    return compute("+", compute("*", place, type_literal(width)), type_literal(one.lower))


def _place(one: Typed, low: float, width: float, places: int) -> Typed:
    """The number of the part of a range that has x, from 0. The end of the range belongs to the last part."""
    away = compute("/", compute("-", one, type_literal(low)), type_literal(width))
    floor = Typed(Call("floor", (away.expression,)), "number", one.nullable, 0.0, float(places), True)
    last = type_literal(places - 1)
    made = choose([compare(">", floor, last)], [last], floor)  # NULL is not above it
    values: tuple[Scalar, ...] = tuple(range(places))
    return replace(made, lower=0.0, upper=float(places - 1), whole=True, values=values)


def _sort_values(made: Typed) -> Typed:
    numbers = sorted(value for value in made.values or () if isinstance(value, (int, float)))
    return replace(made, values=tuple(numbers)) if numbers else made
