"""A subquery that compares rows of one person other than by '=' -> the same subquery, joined with the outer values.

EXISTS (SELECT 1 FROM visits w WHERE w.id = v.id AND w.day < v.day AND w.day >= v.day - 30) becomes
EXISTS (SELECT 1 FROM visits w JOIN (SELECT id, day FROM visits v GROUP BY id, day) o ON w.id = o.id
        WHERE w.day < o.day AND w.day >= o.day - 30 AND o.id = v.id AND o.day = v.day)

Whether a condition holds depends only on the person, the inner row and the outer columns that it names. Each person and
combination of these columns is there once, so no inner row is counted twice. A NULL of the outer row meets no row then.
In plain SQL the same follows if the condition is never true of a NULL; others are refused, unless no value is NULL.
"""

from dataclasses import replace

from sqlglot import exp

from sfumato.catalog.names import fold
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.query import Typed
from sfumato.query.relation import Relation, is_hidden
from sfumato.query.row_expressions import has_aggregate
from sfumato.query.subquery_links import COMPARED, EQUALITY, Links, SubqueryRows, filters_rows

WHOLE = (
    "Compare with whole numbers, texts or dates of the outer row. For other numbers, compare with (SELECT MIN(x) ...) "
    "or MAX(x)."
)
NEVER_TRUE_OF_NULL: tuple[type[exp.Expr], ...] = (
    exp.EQ, exp.Between, *COMPARED, exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Add, exp.Sub, exp.Mul,
    exp.Neg, exp.Abs, exp.Interval, exp.Var, exp.Cast, exp.DataType, exp.Upper, exp.Lower, exp.DateDiff,
    exp.Extract, exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.DayOfWeek, exp.DayOfMonth, exp.DayOfWeekIso,
    exp.TimestampTrunc, exp.DateTrunc, exp.LastDay, exp.Floor, exp.Ceil, exp.Substring, exp.Left, exp.Right,
)  # fmt: skip


def meet_outer_rows(
    node: exp.Expr, select: exp.Select, alias: str, rows: SubqueryRows, links: Links
) -> tuple[exp.Select, Links]:
    """The subquery with the outer values joined, and its links: equalities alone."""
    conditions = [*(comparison.node for comparison in links.comparisons), *links.mixed]
    item = _find_item(node, conditions, rows)
    person = next(((one, two) for one, two in links.pairs if rows.relation.scope.is_person(one)), None)
    if item is None or person is None or not _is_of(person[1], item):
        what = "This condition[at] links a subquery to the outer row other than by '='"
        raise build_syntax_refusal(conditions[0], what, EQUALITY)
    named = f"{alias}_rows"
    outer: dict[str, exp.Column] = {}
    inside: list[exp.Expr] = []
    for condition in conditions:
        made = exp.Paren(this=condition.copy())
        for column in rows.list_free(made):
            if not rows.is_inner(column):
                name = fold(column.name)
                outer.setdefault(name, column.copy())
                column.replace(exp.column(f"value{list(outer).index(name)}", named))
        inside.append(made)
    types = [_find_type(column, rows.bind_item(item)) for column in outer.values()]
    _check(conditions, types)
    keys = [person[1], *outer.values()]
    names = ["person", *(f"value{place}" for place in range(len(outer)))]
    values = exp.Select(
        expressions=[exp.alias_(key.copy(), name) for key, name in zip(keys, names, strict=True)],
        from_=exp.From(this=item.copy()),
        group=exp.Group(expressions=[key.copy() for key in keys]),
    )
    found = select.copy()
    met = exp.Subquery(this=values, alias=exp.TableAlias(this=exp.Identifier(this=named, quoted=True)))
    same = exp.EQ(this=person[0].copy(), expression=exp.column("person", named))
    found.append("joins", exp.Join(this=met, on=same))
    pairs = [(exp.column(name, named), column) for name, column in zip(names[1:], outer.values(), strict=True)]
    return found, replace(
        links, pairs=[*links.pairs, *pairs], comparisons=[], mixed=[], inside=[*links.inside, *inside]
    )


def compare_computed(node: exp.In, select: exp.Select, rows: SubqueryRows) -> exp.Exists | None:
    """x IN (SELECT y + 1 FROM t ...) in WHERE -> EXISTS (SELECT 1 FROM t ... AND y + 1 = x). None: y is a column."""
    listed = select.expressions[0].unalias() if len(select.expressions) == 1 else exp.Star()
    clauses = ("group", "having", "limit", "offset", "qualify")
    if isinstance(listed, exp.Star | exp.Tuple) or rows.is_plain(listed) or has_aggregate(listed):
        return None
    if not rows.private or not filters_rows(node) or any(map(select.args.get, clauses)):
        return None
    value = _name_outer(node, rows)
    if value is None:
        return None
    made = select.copy()
    made.set("expressions", [exp.Literal.number(1)])
    made.set("distinct", None)
    made.where(exp.EQ(this=exp.Paren(this=listed.copy()), expression=exp.Paren(this=value)), copy=False)
    return exp.Exists(this=made)


def _name_outer(node: exp.In, rows: SubqueryRows) -> exp.Expr | None:
    """What IN compares, with the table's name before each column. None: the name would mean another table inside."""
    items = _list_items(node)
    value: exp.Expr = node.this.copy()
    for column in value.find_all(exp.Column):
        if not column.table and len(items) == 1:
            column.set("table", exp.to_identifier(items[0].alias_or_name, quoted=True))
        if not column.table or rows.is_inner(column):
            return None
    return value


def _list_items(node: exp.Expr) -> list[exp.Expr]:
    """The tables of the outer FROM, without the joins that replace subqueries."""
    around = node.find_ancestor(exp.Select)
    source = None if around is None else around.args.get("from_")
    if around is None or source is None:
        return []
    items = [source.this, *(join.this for join in around.args.get("joins") or [])]
    return [item for item in items if not is_hidden(item.alias_or_name)]


def _find_item(node: exp.Expr, conditions: list[exp.Expr], rows: SubqueryRows) -> exp.Expr | None:
    """The one table of the outer FROM that the conditions name. None: they name several."""
    items = _list_items(node)
    columns = [column for condition in conditions for column in rows.list_free(condition) if not rows.is_inner(column)]
    if len(items) > 1 and not all(column.table for column in columns):
        return None
    found = [item for item in items if any(_is_of(column, item) for column in columns)]
    return found[0] if len(found) == 1 and all(_is_of(column, found[0]) for column in columns) else None


def _is_of(node: exp.Expr, item: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and (not node.table or fold(node.table) == fold(item.alias_or_name))


def _find_type(column: exp.Column, relation: Relation) -> Typed:
    found, name = relation.scope.resolve(column)
    return found.columns[name]


def _check(conditions: list[exp.Expr], types: list[Typed]) -> None:
    """Refuse real numbers, which are not compared by '=', and conditions that may be true of a NULL."""
    if any(typed.type == "number" and not typed.whole for typed in types):
        raise build_syntax_refusal(conditions[0], "A subquery compares with a real number of the outer row[at]", WHOLE)
    nullable = any(typed.nullable for typed in types)
    for condition in conditions:
        strict = all(isinstance(part, NEVER_TRUE_OF_NULL) for part in condition.walk())
        if condition.find(exp.Query) is not None or (nullable and not strict):
            what = "This condition[at] links a subquery to the outer row other than by one comparison"
            raise build_syntax_refusal(condition, what, EQUALITY)
