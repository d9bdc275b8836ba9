"""Forms of BigQuery, Snowflake, MySQL and the TPC benchmarks -> those that `bind` knows. The meaning is the same."""

from collections.abc import Callable
from math import pi

from sqlglot import exp

from sfumato.errors import UnsupportedSyntax
from sfumato.query.periods import UNITS

SECONDS_OF = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}


def take_place(node: exp.Expr) -> exp.Expr | None:
    """APPROX_QUANTILES(x, 4)[OFFSET(2)] -> the median: one element of a list that is written out."""
    place = node.expressions[0] if len(node.expressions) == 1 else None
    if not isinstance(node.this, exp.Array) or not isinstance(place, exp.Literal) or not str(place.this).isdigit():
        return None
    listed = node.this.expressions
    if not all(isinstance(listed_value, exp.AggFunc) for listed_value in listed):
        return None
    return listed[int(str(place.this))].copy() if int(str(place.this)) < len(listed) else None


def name_columns(node: exp.Expr) -> exp.Expr | None:
    """(SELECT a, b FROM t) AS u (c, d) -> (SELECT a AS c, b AS d FROM t) AS u; the same in WITH."""
    alias = node.args.get("alias")
    names = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    select = node.this
    while isinstance(select, exp.SetOperation | exp.Subquery | exp.Paren):
        select = select.this
    if alias is None or not isinstance(select, exp.Select) or not names or len(select.expressions) != len(names):
        return None
    if any(selected.find(exp.Star) is not None and not selected.find(exp.AggFunc) for selected in select.expressions):
        return None
    renamed = [
        exp.Alias(this=one.unalias().copy(), alias=name.copy())
        for one, name in zip(select.expressions, names, strict=True)
    ]
    select.set("expressions", renamed)
    alias.set("columns", None)
    return None


def order_date_diff(node: exp.Expr) -> exp.Expr | None:
    """DATE_DIFF(last, first, MONTH), as in BigQuery -> DATE_DIFF('month', first, last)."""
    unit, last = node.this, node.args.get("unit")
    named = isinstance(unit, exp.Column) and not unit.table and unit.name.lower() in UNITS
    if not named or last is None or last.name.lower() in UNITS:
        return None
    last = exp.column(last.name) if isinstance(last, exp.Var) else last
    return exp.DateDiff(this=last, expression=node.expression, unit=exp.var(unit.name))


def count_complete_units(unit: exp.Expr, first: exp.Expr, last: exp.Expr) -> exp.Expr:
    """MySQL's TIMESTAMPDIFF(MINUTE, first, last) -> TRUNC(DATE_DIFF('second', first, last) / 60): complete minutes."""
    named = unit.name.lower()
    if named == "year":
        age = exp.Anonymous(this="AGE", expressions=[last, first])
        return exp.Extract(this=exp.var("year"), expression=age)
    if named not in SECONDS_OF:
        what = f"TIMESTAMPDIFF counts complete units: {', '.join(SECONDS_OF)} or year."
        hint = (
            "DATE_DIFF('month', first, last) counts how often a month begins: the same number if both are first days "
            "of months, as those of DATE_TRUNC('month', day) are, and else another number."
        )
        raise UnsupportedSyntax("syntax", what, hint)
    seconds = exp.DateDiff(this=last, expression=first, unit=exp.var("second"))
    parts = exp.Div(this=seconds, expression=exp.Literal.number(SECONDS_OF[named]), typed=False, safe=False)
    return seconds if named == "second" else exp.Trunc(this=parts)


def choose_by_null(node: exp.Expr) -> exp.Expr:
    """NVL2(x, a, b) -> CASE WHEN x IS NOT NULL THEN a ELSE b END."""
    there = exp.Not(this=exp.Is(this=node.this, expression=exp.Null()))
    return exp.Case(ifs=[exp.If(this=there, true=node.args["true"])], default=node.args.get("false"))


def write_pi(node: exp.Expr) -> exp.Expr:
    """PI() -> 3.141592653589793."""
    return exp.Literal.number(repr(pi))


def use_sign(node: exp.Expr) -> exp.Expr:
    """SAFE_MULTIPLY(x, y), as in BigQuery -> x * y: arithmetic has no errors here."""
    if isinstance(node, exp.SafeNegate):
        return exp.Paren(this=exp.Neg(this=exp.Paren(this=node.this.copy())))
    sign = SAFE_SIGNS[type(node)]
    one, two = exp.Paren(this=node.this.copy()), exp.Paren(this=node.expression.copy())
    return exp.Paren(this=sign(this=one, expression=two))


def choose_by_place(given: list[exp.Expr]) -> exp.Expr | None:
    """CHOOSE(n, 'a', 'b'), as in SQL Server -> CASE WHEN TRUNC(n) = 1 THEN 'a' WHEN TRUNC(n) = 2 THEN 'b' END."""
    if len(given) < 2:
        return None
    ifs = [
        exp.If(
            this=exp.EQ(this=exp.Trunc(this=given[0].copy()), expression=exp.Literal.number(place)), true=value.copy()
        )
        for place, value in enumerate(given[1:], 1)
    ]
    return exp.Case(ifs=ifs)


def divide_by_total(node: exp.Expr) -> exp.Expr | None:
    """RATIO_TO_REPORT(x) OVER (...) -> x / SUM(x) OVER (...)."""
    share = node.this
    if not isinstance(share, exp.Anonymous) or str(share.this).upper() != "RATIO_TO_REPORT":
        return None
    (value,) = share.expressions if len(share.expressions) == 1 else (None,)
    if value is None:
        return None
    total = node.copy()
    total.set("this", exp.Sum(this=value.copy()))
    return exp.Div(this=exp.Paren(this=value.copy()), expression=total)


def refuse_percent_signs(node: exp.Expr) -> None:
    """FORMAT('%d', x), as in BigQuery: it would write %d, and no value."""
    form = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    if node.expressions and "%" in form and "{" not in form:
        what = "FORMAT writes values in the place of {}, as in DuckDB, and this text has no {}."
        raise UnsupportedSyntax("syntax", what, "Write '{}' instead of '%d', and '{:.2f}' instead of '%.2f'.")


def extract_seconds(node: exp.Expr) -> exp.Expr:
    """SECOND(x) -> EXTRACT(second FROM x); EPOCH(x) and UNIX_SECONDS(x) -> EXTRACT(epoch FROM x)."""
    return exp.Extract(this=exp.var("second" if isinstance(node, exp.Second) else "epoch"), expression=node.this)


def cast_to_moment(node: exp.Expr) -> exp.Expr | None:
    """TIMESTAMP(x) and DATETIME(x), as in BigQuery -> CAST(x AS TIMESTAMP)."""
    given = [value for name, value in node.args.items() if name != "this" and value]
    return None if given else exp.Cast(this=node.this.copy(), to=exp.DataType.build("timestamp"))


def order_format(node: exp.Expr) -> exp.Expr | None:
    """STRFTIME('%H', x), as in SQLite -> STRFTIME(x, '%H')."""
    form, value = node.this, node.args.get("format")
    if not (isinstance(form, exp.Literal) and form.is_string) or value is None or isinstance(value, exp.Literal):
        return None
    return exp.TimeToStr(this=value.copy(), format=form.copy())


def compare_rows(node: exp.Expr) -> exp.Expr | None:
    """(a, b) IN ((1, 2), (3, 4)) in WHERE -> (a = 1 AND b = 2) OR (a = 3 AND b = 4).

    Systems differ in what a comparison of rows is where a value is NULL: unknown or false. WHERE drops both.
    """
    listed, values = node.expressions, node.this.expressions
    if not isinstance(node.this, exp.Tuple) or not listed or not _drops_unknown(node):
        return None
    if any(not isinstance(row, exp.Tuple) or len(row.expressions) != len(values) for row in listed):
        return None
    if not all(isinstance(inner, exp.Literal) for row in listed for inner in row.expressions):
        return None
    rows = [
        exp.and_(*(exp.EQ(this=one.copy(), expression=two) for one, two in zip(values, row.expressions, strict=True)))
        for row in listed
    ]
    return exp.Paren(this=exp.or_(*rows))


def _drops_unknown(node: exp.Expr) -> bool:
    """Is it a condition of WHERE or WHEN, or a part of one by AND and OR? Unknown and false are the same there."""
    while isinstance(node.parent, exp.And | exp.Or | exp.Paren):
        node = node.parent
    return isinstance(node.parent, exp.Where) or (isinstance(node.parent, exp.If) and node.arg_key == "this")


def compare_with_each(node: exp.Expr) -> exp.Expr | None:
    """x LIKE ANY ('a%', 'b%') -> x LIKE 'a%' OR x LIKE 'b%'; LIKE ALL with AND; the same with NOT and ILIKE."""
    listed = node.expression
    if not isinstance(listed, exp.Any | exp.All) or not isinstance(listed.this.unnest(), exp.Tuple | exp.Literal):
        return None
    inner = listed.this.unnest()
    patterns = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
    negate = bool(node.args.get("negate"))
    compared = [type(node)(this=node.this.copy(), expression=pattern.copy()) for pattern in patterns]
    parts: list[exp.Expr] = [exp.Not(this=column) if negate else column for column in compared]
    joined = exp.or_(*parts) if isinstance(listed, exp.Any) else exp.and_(*parts)
    return exp.Paren(this=joined)


def take_common_conditions(node: exp.Expr) -> exp.Expr | None:
    """WHERE (a = b AND x) OR (a = b AND y) -> WHERE a = b AND (x OR y): an equality of two columns can then join."""
    branches = _split(node.this, exp.Or)
    if len(branches) < 2:
        return None
    parts = [_split(branch, exp.And) for branch in branches]
    common = [
        condition
        for condition in parts[0]
        if _is_equality(condition) and all(condition in others for others in parts[1:])
    ]
    if not common:
        return None
    rest = [[other for other in others if other not in common] for others in parts]
    kept = [shared.copy() for shared in common]
    if all(rest):
        kept.append(exp.Paren(this=exp.or_(*(exp.and_(*(other.copy() for other in others)) for others in rest))))
    return exp.Where(this=exp.and_(*kept))


def _split(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    bare = node.unnest() if isinstance(node, exp.Paren) else node
    if isinstance(bare, kind):
        return [*_split(bare.this, kind), *_split(bare.expression, kind)]
    return [bare]


def _is_equality(node: exp.Expr) -> bool:
    return isinstance(node, exp.EQ) and isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column)


SAFE_SIGNS: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.SafeAdd: exp.Add, exp.SafeSubtract: exp.Sub, exp.SafeMultiply: exp.Mul,
}  # fmt: skip
OTHER_SPELLINGS: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]] = {
    exp.Bracket: take_place, exp.Subquery: name_columns, exp.CTE: name_columns, exp.DateDiff: order_date_diff,
    exp.Nvl2: choose_by_null, exp.Window: divide_by_total, exp.Like: compare_with_each, exp.ILike: compare_with_each,
    exp.Where: take_common_conditions, exp.In: compare_rows, exp.Second: extract_seconds,
    exp.TimeToUnix: extract_seconds, exp.UnixSeconds: extract_seconds, exp.Format: refuse_percent_signs,
    exp.TimeToStr: order_format, exp.Timestamp: cast_to_moment,
    exp.Pi: write_pi, exp.SafeNegate: use_sign, **dict.fromkeys(SAFE_SIGNS, use_sign),
}  # fmt: skip
