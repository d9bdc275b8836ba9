"""How PostgreSQL writes the trees of lowering. Part of the trusted perimeter: claim K-26.

PostgreSQL raises an error where a double overflows or underflows, and where a cast does not fit. A value of one person
must not make a query fail, so such operations are written with a guard, or as a call of a total function
(`postgres_functions.py`). A guard tests the columns that an expression is computed from.

    node                        PostgreSQL alone                        written here
    CAST AS INT128              unknown                                 NUMERIC, which is exact
    IntDiv                      unknown                                 / of BIGINT, DIV of NUMERIC: both toward zero
    + - * / of doubles          error for overflow and underflow        guarded, or a total function
    TRY_CAST                    unknown                                 a total function; CAST where it cannot fail
    Round                       halves to the even number               halves away from zero
    Mod, 2 to a power           unknown, or an error                    total functions
    CAST AS TEXT                doubles without .0, any collation       a function for each type, COLLATE "C"
    literals of text            the database's collation                COLLATE "C": texts are compared as bytes
    Upper, Lower                by locale                               by Unicode's simple mapping, letter by letter
    LIKE                        backslash escapes                       no escape, unless the question gives one
    Extract, TimestampTrunc     refuse days, or read a time zone        of timestamps without a zone
    names beyond 63 bytes       cut off without a word                  cut off with a digest
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite, log10
from types import MappingProxyType

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from sfumato.engines.sql.dialect import Dialect, Replace
from sfumato.engines.sql.function_sql import lower_double
from sfumato.errors import KernelFault
from sfumato.ingest.hidden_names import HIDDEN, ROUNDED, SCALED

Types = exp.DataType.Type
PREFIX = "pg_temp.sfumato_"
MOST_BYTES, DIGITS = 63, 24  # of a name, and of the digest that ends a longer one
SPAN = 40  # the sizes of leaves that are computed with directly: 10**-SPAN to 10**SPAN
MOST_EXPONENT = 300  # 10**300 and 10**-300 are doubles with all digits
DIGITS_OF_DOUBLE = 17
LITTLE = 9e291  # less than half a step of the largest double: to add it never overflows
INTEGER_BITS = {Types.TINYINT: 8, Types.SMALLINT: 16, Types.INT: 32, Types.BIGINT: 64}
RETURNS_DOUBLE = (exp.Floor, exp.Ceil, exp.Sqrt, exp.Pow, exp.Round, exp.Trunc, exp.Mod)
FUNCTIONS = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Div: "divide"}
FIELDS = {"Y": "YYYY", "m": "MM", "d": "DD", "H": "HH24", "M": "MI", "S": "SS"}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 7 * 86_400}


def shorten_name(name: str) -> str:
    """A name that PostgreSQL does not cut off: one beyond 63 bytes ends in a digest of all of it."""
    if len(name.encode()) <= MOST_BYTES:
        return name
    kept = name.encode()[: MOST_BYTES - DIGITS - 1].decode(errors="ignore")
    return f"{kept}_{hashlib.sha256(name.encode()).hexdigest()[:DIGITS]}"


def make_dialect(schema: str, names: Mapping[str, str]) -> Dialect:
    """PostgreSQL's dialect. `names`: how the tables of the catalog are named in the schema.

    A name without a schema would also be looked for among temporary tables.
    """
    known = {shorten_name(name): stored for name, stored in names.items()}

    def rename(table: exp.Expression) -> exp.Expression:
        if table.name not in known:
            return table
        return exp.table_(known[table.name], schema, quoted=True, alias=table.args.get("alias"))

    return Dialect(Postgres(), MappingProxyType(REPLACEMENTS | {exp.Table: rename}))


def _call(function: str, *arguments: exp.Expression, double: bool = False) -> exp.Expression:
    called = exp.Anonymous(this=PREFIX + function, expressions=[argument.copy() for argument in arguments])
    called.meta["double"] = double
    return called


def _is_double(node: exp.Expression | None) -> bool:  # noqa: PLR0911 - one return a form
    """Is it a double? Lowering never mixes doubles with whole numbers: one operand tells."""
    match node:
        case None | exp.Null() | exp.Literal():
            return False
        case _ if "double" in node.meta:
            return bool(node.meta["double"])
        case exp.Cast():
            return bool(node.to.is_type(Types.DOUBLE))
        case exp.Column():
            return node.name.startswith((SCALED, ROUNDED)) or not node.name.startswith(HIDDEN)
        case exp.Case():
            branches = [branch.args["true"] for branch in node.args["ifs"]]
            return any(map(_is_double, (*branches, node.args.get("default"))))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _is_double(node.this) or _is_double(node.expression)
        case exp.Paren() | exp.Neg() | exp.Abs() | exp.Nullif() | exp.Coalesce() | exp.Min() | exp.Max():
            return _is_double(node.this)
        case exp.Greatest() | exp.Least():
            return _is_double(node.this)
        case _:
            return isinstance(node, RETURNS_DOUBLE)


@dataclass(frozen=True, slots=True)
class Plain:
    """An expression with PostgreSQL's own operators, and where they cannot fail.

    If every leaf is 0, or its size is between 10**-SPAN and 10**SPAN, then every result that is not 0 has a size
    between 10**low and 10**high. `shrinks`: some operation could give 0 for numbers that are not 0.
    """

    written: exp.Expression
    leaves: tuple[exp.Expression, ...]
    low: float
    high: float
    shrinks: bool = False


def _read_plain(node: exp.Expression) -> Plain | None:  # noqa: PLR0911 - one return a form
    """The plain form of an operand: a column, a constant, or what is computed from these."""
    match node:
        case _ if "plain" in node.meta:
            found: Plain = node.meta["plain"]
            return found
        case exp.Paren() | exp.Neg() | exp.Abs() | exp.Nullif():
            inner = _read_plain(node.this)
            if inner is None:
                return None
            written = node.copy()
            written.set("this", inner.written.copy())
            return replace(inner, written=written)
        case exp.Cast(this=exp.Literal()) if node.to.is_type(Types.DOUBLE):
            size = abs(float(node.this.name))
            if not isfinite(size):
                return None
            exponent = log10(size) if size else 0.0
            return Plain(node, (), exponent, exponent)
        case exp.Column() | exp.Cast(this=exp.Column()) if _is_double(node):
            return Plain(node, (node,), -SPAN, SPAN)
    return None


def _combine(node: exp.Add | exp.Sub | exp.Mul | exp.Div, one: Plain, two: Plain) -> Plain | None:
    """The plain form of an operation; None where a result could overflow or underflow all the same."""
    leaves = one.leaves + tuple(leaf for leaf in two.leaves if leaf not in one.leaves)
    shrinks = one.shrinks or two.shrinks
    written = type(node)(this=one.written.copy(), expression=two.written.copy(), typed=False, safe=False)
    match node:
        case exp.Mul():
            low, high = one.low + two.low, one.high + two.high
            grows = any(not side.leaves and side.low >= 0 for side in (one, two))  # by a constant of at least 1
            shrinks = shrinks or not grows
        case exp.Div():
            low, high, shrinks = one.low - two.high, one.high - two.low, True
        case _:  # where digits cancel out, the last one is left
            low, high = min(one.low, two.low) - DIGITS_OF_DOUBLE, max(one.high, two.high) + 1
    return Plain(written, leaves, low, high, shrinks) if low >= -MOST_EXPONENT and high <= MOST_EXPONENT else None


def _lies_between(node: exp.Expression, low: float, high: float) -> exp.Expression:
    """Is its size 0, or between these?"""
    size = exp.Abs(this=node.copy())
    within = exp.LTE(this=size, expression=lower_double(high))
    if low == 0:
        return within
    there = exp.GTE(this=size.copy(), expression=lower_double(low))
    zero = exp.EQ(this=node.copy(), expression=lower_double(0.0))
    return exp.Paren(this=exp.Or(this=exp.and_(there, within), expression=zero))


def _write_arithmetic(node: exp.Expression) -> exp.Expression:
    """The plain operation where no leaf is too large or too small for it, and else a call of a total function."""
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div) or isinstance(node.expression, exp.Interval):
        return node
    one, two = node.this, node.expression
    if not (_is_double(one) or _is_double(two)):
        return node
    sides = [_read_plain(side) for side in (one, two)]
    plain = _combine(node, sides[0], sides[1]) if sides[0] is not None and sides[1] is not None else None
    made: exp.Expression
    if _cannot_fail(node):
        made = type(node)(this=one.copy(), expression=two.copy())
    elif plain is None:
        return _call(FUNCTIONS[type(node)], one, two, double=True)
    elif plain.leaves:
        tests = [_lies_between(leaf, 10.0**-SPAN if plain.shrinks else 0, 10.0**SPAN) for leaf in plain.leaves]
        call = _call(FUNCTIONS[type(node)], one, two, double=True)
        call.meta["rare"] = True
        made = exp.Case(ifs=[exp.If(this=exp.and_(*tests), true=plain.written.copy())], default=call)
    else:
        made = plain.written.copy()
    made.meta["double"] = True
    if plain is not None:
        made.meta["plain"] = plain
    return made


def _cannot_fail(node: exp.Expression) -> bool:
    """Is it x minus its floor, or a sum with a constant that is less than half a step of the largest double?"""
    one, two = node.this, node.expression
    if isinstance(node, exp.Sub) and isinstance(two, exp.Floor) and two.this == one:
        return True  # 0 to 1, or NaN
    return isinstance(node, exp.Add | exp.Sub) and any(
        constants is not None and all(abs(value) < LITTLE for value in constants)
        for constants in map(_find_constants, (one, two))
    )


def _find_constants(node: exp.Expression) -> list[float] | None:
    """The values that a constant, or a choice between constants, can have; None for anything else."""
    match node:
        case exp.Paren():
            return _find_constants(node.this)
        case exp.Cast(this=exp.Literal() as literal) if literal.is_string and node.to.is_type(Types.DOUBLE):
            return [float(literal.this)]
        case exp.Case():
            branches = [branch.args["true"] for branch in node.args["ifs"]]
            found = [_find_constants(branch) for branch in (*branches, node.args.get("default") or exp.Null())]
            return None if None in found else [value for values in found for value in values or ()]
    return None


def _write_whole_quotient(node: exp.Expression) -> exp.Expression:
    """Toward zero. Lowering casts the dividend to BIGINT where that is wide enough."""
    wide = node.this.unnest().this
    if isinstance(wide, exp.Cast) and wide.to.is_type(Types.BIGINT):
        return _divide_whole(node.this, node.expression)
    both = [exp.cast(side, Types.DECIMAL) for side in (node.this, node.expression)]
    return exp.Anonymous(this="DIV", expressions=both)


def _divide_whole(one: exp.Expression, two: exp.Expression) -> exp.Expression:
    return exp.Paren(this=exp.Div(this=one, expression=two, typed=True, safe=False))


def _write_cast(node: exp.Expression) -> exp.Expression:
    if not isinstance(node, exp.Cast):
        return node
    if isinstance(node, exp.TryCast):
        return _try_cast(node)
    if node.to.is_type(Types.INT128):
        return exp.cast(node.this, Types.DECIMAL)
    return _collate(_call("text", node.this)) if node.to.is_type(Types.TEXT) else node


def _try_cast(node: exp.TryCast) -> exp.Expression:
    kind = node.to.this
    if kind in INTEGER_BITS:
        if kind == Types.BIGINT and _is_clamped(node.this):
            return exp.cast(node.this, kind)
        if not _is_double(node.this):  # of a text with at most 15 digits
            return exp.cast(node.this, kind)
        return _call("whole", node.this, exp.Literal.number(INTEGER_BITS[kind]))
    if kind == Types.DATE:
        return _call("day", node.this)
    if kind == Types.DOUBLE:  # of a text with digits, a sign and a point
        return exp.cast(node.this, kind)
    raise KernelFault("A plan holds a cast that PostgreSQL has no total form of.")


def _is_clamped(node: exp.Expression) -> bool:
    """Is it clamped to constants that a BIGINT holds? NaN is above them, so it is clamped too."""
    if not isinstance(node, exp.Case) or len(node.args["ifs"]) != 2:
        return False
    below, above = (branch.this for branch in node.args["ifs"])
    ends = [_find_constants(branch.args["true"]) for branch in node.args["ifs"]]
    same = isinstance(below, exp.LT) and isinstance(above, exp.GT) and below.this == above.this == node.args["default"]
    return same and all(end is not None and len(end) == 1 and abs(end[0]) <= 2.0**62 for end in ends)


def _collate(text: exp.Expression) -> exp.Expression:
    return exp.Paren(this=exp.Collate(this=text, expression=exp.to_identifier("C", quoted=True)))


def _write_literal(node: exp.Expression) -> exp.Expression:
    plain = (
        exp.Cast,
        exp.Interval,
        exp.RegexpLike,
        exp.TimeToStr,
        exp.Trim,
        exp.Pad,
        exp.Escape,
        exp.Collate,
        exp.Replace,
    )
    if not isinstance(node, exp.Literal) or not node.is_string or isinstance(node.parent, plain):
        return node
    return _collate(node.copy())


def _write_round(node: exp.Expression) -> exp.Expression:
    return _call("round", node.this, double=True)


def _write_truncated(node: exp.Expression) -> exp.Expression:
    unit = exp.Literal.string(node.args["unit"].name.lower())
    return exp.Anonymous(this="DATE_TRUNC", expressions=[unit, exp.cast(node.this, Types.TIMESTAMP)])


def _write_part(node: exp.Expression) -> exp.Expression:
    return exp.Extract(this=node.this, expression=exp.cast(node.expression, Types.TIMESTAMP))


def _write_difference(node: exp.Expression) -> exp.Expression:
    """The number of units between two beginnings of units."""
    unit, ends, begins = node.args["unit"].name.lower(), node.this, node.expression
    if unit in MONTHS:
        return _divide_whole(_call("months", ends, begins), exp.Literal.number(MONTHS[unit]))
    return _divide_whole(_call("seconds", ends, begins), exp.Literal.number(SECONDS[unit]))


def _write_formatted(node: exp.Expression) -> exp.Expression:
    """Field by field: between them, PostgreSQL would read letters as further fields."""
    first, *parts = node.args["format"].name.split("%")
    made: list[exp.Expression] = [_collate(exp.Literal.string(first))] if first else []
    for part in parts:
        field = exp.Literal.string(FIELDS[part[0]])
        moment = exp.cast(node.this.copy(), Types.TIMESTAMP)
        made.append(_collate(exp.Anonymous(this="TO_CHAR", expressions=[moment, field])))
        if part[1:]:
            made.append(_collate(exp.Literal.string(part[1:])))
    joined = made[0]
    for further in made[1:]:
        joined = exp.DPipe(this=joined, expression=further, safe=False)
    return exp.Paren(this=joined)


def _write_pattern(node: exp.Expression) -> exp.Expression:
    pattern = re.sub(r"\\z$", "$", node.expression.name)  # without the flag n, $ is the end of the text
    return exp.Paren(this=exp.RegexpLike(this=node.this, expression=exp.Literal.string(pattern)))


def _write_like(node: exp.Expression) -> exp.Expression:
    if isinstance(node.parent, exp.Escape):
        return node
    like = exp.Like(this=node.this.copy(), expression=node.expression.copy())
    return exp.Escape(this=like, expression=exp.Literal.string(""))


def _compute_once(node: exp.Expression) -> exp.Expression:
    """A subquery whose values are computed by calls: OFFSET 0 keeps PostgreSQL from repeating them at every use."""
    if isinstance(node.this, exp.Select) and any(
        called.name.startswith(PREFIX + name) and "rare" not in called.meta
        for column in node.this.expressions
        for called in column.find_all(exp.Anonymous)
        for name in ("add", "subtract", "multiply", "divide", "remainder", "two_to", "round")
    ):
        node.this.set("offset", exp.Offset(expression=exp.Literal.number(0)))
    return node


def _write_name(node: exp.Expression) -> exp.Expression:
    short = shorten_name(node.name)
    return node if short == node.name else exp.to_identifier(short, quoted=True)


REPLACEMENTS: dict[type[exp.Expression], Replace] = {
    exp.Add: _write_arithmetic, exp.Sub: _write_arithmetic, exp.Mul: _write_arithmetic, exp.Div: _write_arithmetic,
    exp.IntDiv: _write_whole_quotient, exp.Cast: _write_cast, exp.TryCast: _write_cast, exp.Literal: _write_literal,
    exp.Round: _write_round, exp.TimestampTrunc: _write_truncated, exp.Extract: _write_part,
    exp.DateDiff: _write_difference, exp.TimeToStr: _write_formatted, exp.RegexpLike: _write_pattern,
    exp.Like: _write_like, exp.Identifier: _write_name, exp.Subquery: _compute_once,
    exp.Mod: lambda node: _call("remainder", node.this, node.expression, double=True),
    exp.Pow: lambda node: _call("two_to", node.expression, double=True),
    exp.Upper: lambda node: _call("upper", node.this), exp.Lower: lambda node: _call("lower", node.this),
}  # fmt: skip
