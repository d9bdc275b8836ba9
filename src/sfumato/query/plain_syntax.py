"""Other ways to write the same question -> the forms that `bind` knows. Syntax only: no name is resolved here.

One function for each node, in `REWRITTEN`. A rewriting means the same for every value, NULL too.
"""

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from sfumato.query.finite_patterns import compare_with_texts
from sfumato.query.other_spellings import OTHER_SPELLINGS, choose_by_place, count_complete_units

ZERO = ("0", "0.0", "0.")
SAMPLE = {"VAR": exp.Variance, "STD": exp.Stddev, "STDEV": exp.Stddev, "MEAN": exp.Avg}
POPULATION = {"VARP": exp.VariancePop, "STDEVP": exp.StddevPop, "STDDEVP": exp.StddevPop}
SAME_NAME = {"IFNULL": "COALESCE", "NVL": "COALESCE", "ISNULL": "COALESCE"}
OF_A_SAMPLE = "STD(x) is read as STDDEV(x), of a sample. In MySQL it is of the whole population: STDDEV_POP(x)."
MOST_QUANTILES = 100
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
NAMED = (exp.Alias, exp.Column, exp.Star, exp.Literal)


def rewrite_syntax(tree: exp.Expr) -> exp.Expr:
    """Rewrite a tree, from its leaves to its root. An unnamed column is still called what the analyst wrote."""
    nodes = list(tree.walk(bfs=False))
    if not any(type(node) in REWRITTEN and not isinstance(node, exp.Select) for node in nodes):
        for node in reversed(nodes):
            if isinstance(node, exp.Select):
                _rewrite_select(node)
        return tree
    written = {id(node): _write_columns(node) for node in tree.find_all(exp.Select)}
    for node in reversed(nodes):
        rewrite = REWRITTEN.get(type(node))
        made = rewrite(node) if rewrite is not None else None
        if made is None or made is node:
            continue
        if node is tree:
            tree = made
        else:
            node.replace(made)
    for select in tree.find_all(exp.Select):
        for node, text in zip(list(select.expressions), written.get(id(select), ()), strict=False):
            if text is not None and text != _write(node):
                node.replace(exp.Alias(this=node.copy(), alias=exp.Identifier(this=text, quoted=True)))
    return tree


def _write_columns(select: exp.Select) -> list[str | None]:
    """The text of each selected column that has no name and may be rewritten."""
    return [
        _write(node) if not isinstance(node, NAMED) and node.find(*REWRITTEN) is not None else None
        for node in select.expressions
    ]


def _write(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb", comments=False).lower()


def _when(condition: exp.Expr, value: exp.Expr, default: exp.Expr | None = None) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition, true=value)], default=default)


def _one() -> exp.Expr:
    return exp.Literal.number(1)


def _rewrite_filter(node: exp.Expr) -> exp.Expr | None:  # noqa: PLR0911 - one return an aggregate
    """SUM(x) FILTER (WHERE c) -> SUM(CASE WHEN c THEN x END); the same for every aggregate."""
    aggregate, where = node.this, node.expression
    condition = where.this
    match aggregate:
        case exp.Count(this=exp.Distinct() as distinct):
            counted = [_when(condition.copy(), value.copy()) for value in distinct.expressions]
            return exp.Count(this=exp.Distinct(expressions=counted), big_int=True)
        case exp.Count(this=exp.Star() | exp.Literal()):
            return exp.Count(this=_when(condition, _one()), big_int=True)
        case exp.CountIf():
            return exp.CountIf(this=exp.And(this=exp.Paren(this=condition), expression=exp.Paren(this=aggregate.this)))
        case exp.WithinGroup(expression=exp.Order(expressions=[exp.Ordered() as term])):
            term.set("this", _when(condition, term.this.copy()))
            return aggregate
        case exp.Anonymous() if aggregate.expressions:
            aggregate.expressions[0].replace(_when(condition, aggregate.expressions[0].copy()))
            return aggregate
        case exp.AggFunc() if isinstance(aggregate.this, exp.Expr):
            inner = aggregate.this
            if isinstance(inner, exp.Distinct):
                inner.set("expressions", [_when(condition.copy(), value.copy()) for value in inner.expressions])
            else:
                aggregate.set("this", _when(condition, inner.copy()))
            return aggregate
    return None


def _rewrite_count_if(node: exp.Expr) -> exp.Expr:
    return exp.Count(this=_when(node.this, _one()), big_int=True)


def _rewrite_quantile(node: exp.Expr) -> exp.Expr | None:
    """QUANTILE(x, 0.9), APPROX_QUANTILE(x, 0.9) and PERCENTILE_DISC are the same private choice as QUANTILE_CONT."""
    fraction = node.args.get("quantile") or node.args.get("expression")
    if isinstance(node, exp.PercentileDisc) and fraction is None:
        return exp.PercentileCont(this=node.this)
    made = exp.PercentileCont(this=node.this, expression=fraction)
    return _rewrite_percentile(made) or made


def _rewrite_percentile(node: exp.Expr) -> exp.Expr | None:
    """QUANTILE_CONT(x, [0.25, 0.5]) -> a list of quantiles."""
    given = node.args.get("expression")
    if isinstance(given, exp.Array):
        return exp.Array(expressions=[_quantile(node.this, fraction) for fraction in given.expressions])
    return None


def _rewrite_within_group(node: exp.Expr) -> exp.Expr | None:
    """PERCENTILE_CONT([0.25, 0.5]) WITHIN GROUP (ORDER BY x) -> a list of quantiles."""
    inner = node.this
    if isinstance(inner, exp.Mode) and inner.args.get("this") is None:
        terms = node.expression.expressions
        return exp.Mode(this=terms[0].this) if len(terms) == 1 else None
    if isinstance(inner, exp.PercentileCont) and isinstance(inner.this, exp.Array):
        return exp.Array(
            expressions=[
                exp.WithinGroup(this=exp.PercentileCont(this=fraction.copy()), expression=node.expression.copy())
                for fraction in inner.this.expressions
            ]
        )
    return None


def _quantile(value: exp.Expr, fraction: exp.Expr) -> exp.Expr:
    return exp.PercentileCont(this=value.copy(), expression=fraction.copy())


def _rewrite_approx_quantiles(node: exp.Expr) -> exp.Expr | None:
    """APPROX_QUANTILES(x, 4) -> [MIN(x), the quartiles, MAX(x)]."""
    number = node.expression
    text = str(number.this) if isinstance(number, exp.Literal) and not number.is_string else ""
    if not text.isdigit() or not 1 <= int(text) <= MOST_QUANTILES:
        return None
    parts = int(text)
    between = [_quantile(node.this, _fraction(Fraction(place, parts))) for place in range(1, parts)]
    return exp.Array(expressions=[exp.Min(this=node.this.copy()), *between, exp.Max(this=node.this.copy())])


def _fraction(value: Fraction) -> exp.Expr:
    top, bottom = exp.Literal.number(value.numerator), exp.Literal.number(value.denominator)
    return exp.Div(this=top, expression=bottom)


def _rewrite_case(node: exp.Expr) -> exp.Expr | None:
    """CASE x WHEN 1 THEN ... -> CASE WHEN x = 1 THEN ..."""
    value = node.args.get("this")
    if value is None:
        return None
    ifs = [
        exp.If(this=exp.EQ(this=value.copy(), expression=branch.this.copy()), true=branch.args["true"].copy())
        for branch in node.args["ifs"]
    ]
    default = node.args.get("default")
    return exp.Case(ifs=ifs, default=None if default is None else default.copy())


def _rewrite_if(node: exp.Expr) -> exp.Expr | None:
    """IF(c, a, b) -> CASE WHEN c THEN a ELSE b END."""
    if isinstance(node.parent, exp.Case):
        return None
    return _when(node.this, node.args["true"], node.args.get("false"))


def _rewrite_is(node: exp.Expr) -> exp.Expr | None:
    """x IS TRUE -> COALESCE(x, FALSE); x IS FALSE -> COALESCE(NOT x, FALSE)."""
    if not isinstance(node.expression, exp.Boolean):
        return None
    value = node.this if node.expression.this else exp.Not(this=exp.Paren(this=node.this))
    return exp.Coalesce(this=value, expressions=[exp.Boolean(this=False)])


def _rewrite_same(node: exp.Expr) -> exp.Expr:
    """a IS NOT DISTINCT FROM b -> COALESCE(a = b, a IS NULL AND b IS NULL); IS DISTINCT FROM is its negation."""
    one, two = node.this, node.expression
    for value, other in ((one, two), (two, one)):
        if isinstance(value, exp.Null):
            same: exp.Expr = exp.Is(this=other, expression=exp.Null())
            return exp.Not(this=same) if isinstance(node, exp.NullSafeNEQ) else same
    if isinstance(one, exp.Literal) or isinstance(two, exp.Literal):
        both: exp.Expr = exp.Boolean(this=False)
    else:
        nulls = [exp.Is(this=value.copy(), expression=exp.Null()) for value in (one, two)]
        both = exp.And(this=nulls[0], expression=nulls[1])
    same = exp.Coalesce(this=exp.EQ(this=one, expression=two), expressions=[both])
    return exp.Not(this=same) if isinstance(node, exp.NullSafeNEQ) else same


def _rewrite_division(node: exp.Expr) -> exp.Expr | None:
    """a / NULLIF(b, 0) and SAFE_DIVIDE(a, b) -> a / b, because a division by 0 gives NULL."""
    divisor = node.expression.unnest() if node.expression is not None else None
    if isinstance(divisor, exp.Nullif) and _is_zero(divisor.expression):
        return exp.Div(this=node.this, expression=exp.Paren(this=divisor.this))
    if isinstance(node, exp.SafeDivide):
        return exp.Div(this=exp.Paren(this=node.this), expression=exp.Paren(this=node.expression))
    return None


def _is_zero(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and str(node.this) in ZERO


def _rewrite_anonymous(node: exp.Expr) -> exp.Expr | None:  # noqa: PLR0911 - one return a name
    name, given = str(node.this).upper(), node.expressions
    made = (SAMPLE | POPULATION).get(name)
    if made is not None and len(given) == 1:
        named = made(this=given[0])
        if name == "STD":
            named.meta["caution"] = OF_A_SAMPLE
        return named
    if name in SAME_NAME and len(given) > 1:
        return exp.Coalesce(this=given[0], expressions=list(given[1:]))
    if name == "DATEDIFF_DAYS" and len(given) == 2:
        return exp.DateDiff(this=given[0], expression=given[1], unit=exp.var("day"))
    if name == "COMPLETE_UNITS" and len(given) == 3:
        return count_complete_units(*given)
    if name == "CHOOSE":
        return choose_by_place(given)
    if name == "DECODE_CASES":
        return _rewrite_decode(given)
    if name == "REGEXP_CONTAINS" and len(given) == 2:
        made_of = exp.RegexpLike(this=given[0], expression=given[1])
        return _rewrite_pattern(made_of) or made_of
    if name == "ZEROIFNULL" and len(given) == 1:
        return exp.Coalesce(this=given[0], expressions=[exp.Literal.number(0)])
    if name in ("DIV0", "DIVIDE_SAFE") and len(given) == 2:
        zero = exp.EQ(this=given[1].copy(), expression=exp.Literal.number(0))
        return _when(zero, exp.Literal.number(0), exp.Div(this=exp.Paren(this=given[0]), expression=given[1]))
    return None


def _rewrite_day_name(node: exp.Expr) -> exp.Expr:
    """DAYNAME(d) -> CASE WHEN EXTRACT(dow FROM d) = 0 THEN 'Sunday' ... END; MONTHNAME(d) likewise."""
    month = isinstance(node, exp.Monthname)
    part, names, first = ("month", MONTHS, 1) if month else ("dow", DAYS, 0)
    ifs = [
        exp.If(
            this=exp.EQ(
                this=exp.Extract(this=exp.var(part), expression=node.this.copy()),
                expression=exp.Literal.number(first + place),
            ),
            true=exp.Literal.string(name),
        )
        for place, name in enumerate(names)
    ]
    return exp.Case(ifs=ifs)


def _rewrite_decode(given: list[exp.Expr]) -> exp.Expr | None:
    """DECODE(x, 'a', 1, 'b', 2, 0) -> CASE WHEN x = 'a' THEN 1 WHEN x = 'b' THEN 2 ELSE 0 END; NULL meets NULL."""
    value, *rest = given
    if len(rest) < 2:
        return None
    ifs = []
    for wanted, result in zip(rest[::2], rest[1::2], strict=False):
        same: exp.Expr = exp.EQ(this=value.copy(), expression=wanted.copy())
        if isinstance(wanted, exp.Null):
            same = exp.Is(this=value.copy(), expression=exp.Null())
        elif not isinstance(wanted, exp.Literal):
            return None
        ifs.append(exp.If(this=same, true=result.copy()))
    return exp.Case(ifs=ifs, default=rest[-1].copy() if len(rest) % 2 else None)


def _rewrite_pattern(node: exp.Expr) -> exp.Expr | None:
    """REGEXP_MATCHES(x, '^A[12]$') -> x IN ('A1', 'A2'), and so on: finite_patterns.py."""
    if node.args.get("flag") is not None or node.args.get("options") is not None:
        return None
    return compare_with_texts(node.this, node.expression, whole=isinstance(node, exp.RegexpFullMatch))


def _rewrite_any_value(node: exp.Expr) -> exp.Expr | None:
    """ANY_VALUE(x), which the parser reads as ANY_VALUE(x) IGNORE NULLS."""
    return node.this if isinstance(node.this, exp.AnyValue) else None


def _rewrite_fetch(node: exp.Expr) -> exp.Expr | None:
    """FETCH FIRST 5 ROWS ONLY -> LIMIT 5."""
    options = node.args.get("limit_options")
    if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
        return None
    return exp.Limit(expression=node.args.get("count") or _one())


def _rewrite_select(node: exp.Expr) -> exp.Expr | None:
    """FROM (a JOIN b ON ...) JOIN c -> FROM a JOIN b ON ... JOIN c. HISTOGRAM alone counts the rows of each bin."""
    _group_histogram(node)
    _move_semi_joins(node)
    source = node.args.get("from_")
    if source is None:
        return None
    joins = list(node.args.get("joins") or [])
    first, changed = source.this, False
    while isinstance(first, exp.Subquery) and not first.alias and isinstance(first.this, (exp.Table, exp.Subquery)):
        inner = first.this
        joins = [*(inner.args.get("joins") or []), *(first.args.get("joins") or []), *joins]
        inner.set("joins", None)
        first, changed = inner, True
    own = first.args.get("joins") if isinstance(first, (exp.Table, exp.Subquery)) else None
    if own:
        first.set("joins", None)
        joins, changed = [*own, *joins], True
    if changed:
        source.set("this", first)
    flat = [part for join in joins for part in _open_brackets(join)]
    if changed or len(flat) > len(joins):
        node.set("joins", flat)
    for item in (source, *flat):
        _select_from_brackets(item)
    return None


def _open_brackets(join: exp.Join) -> list[exp.Join]:
    """JOIN (b JOIN c ON ...) ON ... -> JOIN b ON ... JOIN c ON ...: inner joins are the same in any order."""
    inner = join.this
    if not isinstance(inner, exp.Subquery) or inner.alias or not isinstance(inner.this, exp.Table | exp.Subquery):
        return [join]
    first, own = inner.this, inner.this.args.get("joins") or []
    if any(one.side or one.args.get("method") for one in (join, *own)):
        return [join]
    first.set("joins", None)
    on = join.args.get("on")
    tables = set() if on is None else {column.table.lower() for column in on.find_all(exp.Column)}
    join.set("this", first)
    if len(own) == 1 and own[0].this.alias_or_name.lower() in tables and first.alias_or_name.lower() not in tables:
        moved = own[0].this  # the condition is about the second table: it is joined first
        own[0].set("this", first)
        join.set("this", moved)
    return [join, *own]


def _select_from_brackets(item: exp.Expr) -> None:
    """(a JOIN b USING (k)) AS q -> (SELECT * FROM a JOIN b USING (k)) AS q."""
    inner = item.this
    if not isinstance(inner, exp.Subquery) or not inner.alias or not isinstance(inner.this, exp.Table):
        return
    table = inner.this
    joins = table.args.get("joins") or []
    table.set("joins", None)
    inner.set("this", exp.Select(expressions=[exp.Star()], from_=exp.From(this=table), joins=joins))


def _rewrite_any(node: exp.Expr) -> exp.Expr | None:
    """x = ANY (SELECT ...) -> x IN (SELECT ...); x <> ALL (SELECT ...) -> NOT x IN (SELECT ...)."""
    wanted = exp.Any if isinstance(node, exp.EQ) else exp.All
    listed = node.expression
    if not isinstance(listed, wanted) or not isinstance(listed.this, (exp.Select, exp.Subquery)):
        return None
    inner = listed.this if isinstance(listed.this, exp.Subquery) else exp.Subquery(this=listed.this)
    found: exp.Expr = exp.In(this=node.this, query=inner)
    return found if isinstance(node, exp.EQ) else exp.Not(this=found)


def _move_semi_joins(node: exp.Expr) -> None:
    """a SEMI JOIN b ON c -> a WHERE EXISTS (SELECT 1 FROM b WHERE c); ANTI JOIN is NOT EXISTS."""
    joins = node.args.get("joins") or []
    for join in joins:
        on = join.args.get("on")
        if join.kind in ("SEMI", "ANTI") and join.side in ("", "LEFT") and on is not None:
            inner = exp.Select(
                expressions=[_one()], from_=exp.From(this=join.this.copy()), where=exp.Where(this=on.copy())
            )
            found: exp.Expr = exp.Exists(this=inner)
            where = node.args.get("where")
            met = found if join.kind == "SEMI" else exp.Not(this=found)
            node.set("where", exp.Where(this=met if where is None else exp.and_(where.this, met)))
    kept = [join for join in joins if join.kind not in ("SEMI", "ANTI") or join.args.get("on") is None]
    if len(kept) < len(joins):
        node.set("joins", kept)


def _group_histogram(node: exp.Expr) -> None:
    """SELECT HISTOGRAM(x, 9) FROM t -> SELECT HISTOGRAM(x, 9), COUNT(*) AS n FROM t GROUP BY HISTOGRAM(x, 9)."""
    bins = [inner for inner in node.expressions if _is_histogram(inner.unalias())]
    if len(bins) != 1 or node.args.get("group") is not None:
        return
    if len(node.expressions) == 1:
        node.append("expressions", exp.alias_(exp.Count(this=exp.Star(), big_int=True), "n"))
    node.set("group", exp.Group(expressions=[bins[0].unalias().copy()]))


def _is_histogram(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() == "HISTOGRAM" and len(node.expressions) == 2


def _rewrite_group(node: exp.Expr) -> exp.Expr | None:
    """GROUP BY (a, b) -> GROUP BY a, b."""
    flat = [part for key in node.expressions for part in (key.expressions if isinstance(key, exp.Tuple) else [key])]
    if len(flat) != len(node.expressions):
        node.set("expressions", flat)
    return None


REWRITTEN: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]] = {
    exp.Filter: _rewrite_filter, exp.CountIf: _rewrite_count_if, exp.Quantile: _rewrite_quantile,
    exp.ApproxQuantile: _rewrite_quantile, exp.PercentileDisc: _rewrite_quantile,
    exp.PercentileCont: _rewrite_percentile, exp.WithinGroup: _rewrite_within_group,
    exp.ApproxQuantiles: _rewrite_approx_quantiles, exp.Case: _rewrite_case, exp.If: _rewrite_if,
    exp.Is: _rewrite_is, exp.NullSafeEQ: _rewrite_same, exp.NullSafeNEQ: _rewrite_same, exp.Div: _rewrite_division,
    exp.SafeDivide: _rewrite_division, exp.Anonymous: _rewrite_anonymous, exp.Fetch: _rewrite_fetch,
    exp.Select: _rewrite_select, exp.Group: _rewrite_group, exp.Dayname: _rewrite_day_name,
    exp.Monthname: _rewrite_day_name, exp.IgnoreNulls: _rewrite_any_value,
    **OTHER_SPELLINGS,
    exp.Initcap: lambda node: exp.Anonymous(this="INITCAP", expressions=[node.this]),
    exp.EQ: _rewrite_any, exp.NEQ: _rewrite_any,
    exp.RegexpLike: _rewrite_pattern, exp.RegexpFullMatch: _rewrite_pattern,
}  # fmt: skip
