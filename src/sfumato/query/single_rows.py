"""A subquery SELECT key, ANY_VALUE(x) ... GROUP BY key, where a person, or a key of a public table, has one row."""

from sqlglot import exp

from sfumato.kernel.row_sources import derive_extent
from sfumato.query.per_unit import refuse_missing_id, resolve_key
from sfumato.query.relation import Relation, Scope
from sfumato.query.row_expressions import has_aggregate
from sfumato.query.sql_text import name_expression


def take_single_values(node: exp.Select, inner: Relation) -> exp.Select:
    """ANY_VALUE(x) of one row is x: SELECT id, ANY_VALUE(x) ... GROUP BY id -> SELECT id, x.

    With other aggregates, x is one more key, and makes no more groups.
    """
    group, scope = node.args.get("group"), inner.scope
    wanted = [one for one in node.expressions if isinstance(one.unalias(), exp.AnyValue)]
    if not wanted or group is None:
        return node
    keys = [resolve_key(key, node, scope) for key in group.expressions]
    extent = derive_extent(inner.source)
    single = extent.reach == 1 and all(map(scope.is_person, keys)) if extent.private else _are_unique(keys, scope)
    if not keys or not single:
        return node
    for key in keys:
        refuse_missing_id(key, scope)
    made = node.copy()
    for one in made.expressions:
        if isinstance(one.unalias(), exp.AnyValue):
            value = one.unalias().this
            name = one.alias or name_expression(one)
            one.replace(exp.Alias(this=value.copy(), alias=exp.Identifier(this=name, quoted=True)))
    plain = not any(has_aggregate(one) for one in made.expressions) and node.args.get("having") is None
    if plain:
        made.set("group", None)
    else:
        values = [one.unalias().this.copy() for one in wanted]
        made.set("group", exp.Group(expressions=[*(key.copy() for key in keys), *values]))
    return made


def _are_unique(keys: list[exp.Expr], scope: Scope) -> bool:
    """Is there a key whose values occur once in a public table? NULL may occur more often, and joins with nothing."""
    for key in keys:
        if isinstance(key, exp.Column):
            item, name = scope.resolve(key)
            if len(scope.items) == 1 and item.public is not None and item.public.get(name) == 1:
                return True
    return False
