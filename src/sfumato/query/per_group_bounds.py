"""contribution_bounds_per_group where a person has several rows: what they add to a group is added up first.

SELECT site, SUM(x, contribution_bounds_per_group => (0, 9)) FROM t GROUP BY site
-> SELECT k, SUM(CLAMPED_PER_ROW(a, 0, 9)) FROM (SELECT id, site AS k, SUM(x) AS a FROM t GROUP BY id, site) GROUP BY k
"""

from sqlglot import exp

from sfumato.catalog.names import find_name
from sfumato.errors import SfumatoError
from sfumato.kernel.row_sources import derive_extent
from sfumato.query.bounded_contributions import is_clamped, read_bounds
from sfumato.query.decided_comparisons import add_caution
from sfumato.query.named_arguments import PER_GROUP, PER_ROW
from sfumato.query.relation import Relation
from sfumato.query.row_expressions import RowBinder, has_aggregate, is_aggregate
from sfumato.query.sql_text import name_expression

PERSON, KEY, PART = "__sfumato_person", "__sfumato_key", "__sfumato_part"
OF_EACH_PERSON = (
    "contribution_bounds_per_group adds up the rows of each person in a group first, and clamps that. One person "
    "counts in at most max_groups_per_unit groups of the catalog."
)
ADDED = (exp.Sum, exp.Count, exp.Avg)


def add_up_people(tree: exp.Select, relation: Relation) -> exp.Select:
    """The SELECT over one row for each person and group, if its bounds per group need that; else the SELECT itself."""
    reach = derive_extent(relation.source).reach
    clamped = [node for node in tree.find_all(exp.Anonymous) if _is_per_group(node)]
    person = next(((item.alias, name) for item in relation.items for name in sorted(item.person)), None)
    if (
        not clamped
        or reach == 1
        or person is None
        or not any(_can_exceed(clamped_column, relation, reach) for clamped_column in clamped)
    ):
        return tree
    keys = _list_keys(tree, relation)
    inner: list[exp.Expr] = [exp.alias_(exp.column(person[1], person[0]), PERSON)]
    inner += [exp.alias_(key.copy(), f"{KEY}{place}") for place, key in enumerate(keys)]
    made = tree.copy()
    for node in list(made.expressions):
        if not node.alias:
            name = node.name if isinstance(node, exp.Column) else name_expression(node)
            node.replace(exp.Alias(this=node.copy(), alias=exp.Identifier(this=name, quoted=True)))
    parts: list[exp.Expr] = []
    for clause in [*made.expressions, made.args.get("having"), made.args.get("order")]:
        if clause is not None and not _replace_aggregates(clause, parts, person[1]):
            return tree
        if clause is not None:
            _replace_keys(clause, keys)
    inner += [exp.alias_(part, f"{PART}{place}") for place, part in enumerate(parts)]
    below = exp.Select(expressions=inner, from_=made.args["from_"], joins=made.args.get("joins") or [])
    below.set("where", made.args.get("where"))
    grouped = [exp.column(person[1], person[0]), *(key.copy() for key in keys)]
    below.set("group", exp.Group(expressions=grouped))
    alias = exp.TableAlias(this=exp.Identifier(this="people", quoted=True))
    made.set("from_", exp.From(this=exp.Subquery(this=below, alias=alias)))
    made.set("joins", None)
    made.set("where", None)
    if keys:
        made.set("group", exp.Group(expressions=[exp.column(f"{KEY}{place}") for place in range(len(keys))]))
    add_caution(OF_EACH_PERSON)
    return made


def _is_per_group(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and is_clamped(node) and str(node.this).upper() == PER_GROUP


def _can_exceed(node: exp.Anonymous, relation: Relation, reach: int) -> bool:
    """Can a person's rows in one group exceed the bounds? Where that is refused anyway, it does not matter."""
    value, low, high = read_bounds(node)
    if isinstance(node.parent, exp.Count):
        return low > 0 or high < reach
    try:
        typed = RowBinder(relation.scope).bind(value)
    except SfumatoError:
        return False
    if typed.lower is None or typed.upper is None:
        return False
    times = reach if isinstance(node.parent, exp.Sum) else 1
    return min(typed.lower, times * typed.lower) < low or max(typed.upper, times * typed.upper) > high


def _list_keys(tree: exp.Select, relation: Relation) -> list[exp.Expr]:
    """The keys of GROUP BY: a number or an alias means a selected column."""
    group, found = tree.args.get("group"), []
    if group is None:
        return []
    if group.args.get("all"):
        return [node.unalias() for node in tree.expressions if not has_aggregate(node)]
    for key in group.expressions:
        text = str(key.this) if isinstance(key, exp.Literal) and not key.is_string else ""
        node = tree.expressions[int(text) - 1] if text.isdigit() and 0 < int(text) <= len(tree.expressions) else key
        if isinstance(node, exp.Column) and not node.table and not relation.scope.has_column(node.name):
            node = next((selected for selected in tree.expressions if find_name(node.name, (selected.alias,))), node)
        found.append(node.unalias())
    return found


def _replace_aggregates(clause: exp.Expr, parts: list[exp.Expr], person: str) -> bool:
    """Put sums over people in the place of aggregates over rows. False: one of them cannot be added up."""
    for node in [node_below for node_below in clause.walk() if is_aggregate(node_below)]:
        inner = node.this
        if isinstance(node, exp.Count) and isinstance(inner, exp.Distinct):
            if len(inner.expressions) != 1 or inner.expressions[0].name.lower() != person.lower():
                return False
            node.replace(exp.Count(this=exp.Distinct(expressions=[exp.column(PERSON)]), big_int=True))
            continue
        bounded = isinstance(inner, exp.Anonymous) and is_clamped(inner)
        if not isinstance(node, ADDED) or (isinstance(node, exp.Avg) and not _is_per_group(inner)):
            return False
        if bounded and not _is_per_group(inner):
            return False
        of_person = node.copy()
        if bounded:
            of_person.set("this", inner.expressions[0].copy())
        if of_person not in parts:
            parts.append(of_person)
        value: exp.Expr = exp.column(f"{PART}{parts.index(of_person)}")
        if bounded:
            value = exp.Anonymous(this=PER_ROW, expressions=[value, *(end.copy() for end in inner.expressions[1:])])
        node.replace(exp.Avg(this=value) if isinstance(node, exp.Avg) else exp.Sum(this=value))
    return True


def _replace_keys(clause: exp.Expr, keys: list[exp.Expr]) -> None:
    for place, key in enumerate(keys):
        for node in [node_below for node_below in clause.walk() if node_below == key]:
            node.replace(exp.column(f"{KEY}{place}"))
