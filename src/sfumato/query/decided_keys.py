"""GROUP BY the key of a public table: its other columns are decided by the key, so they may be selected too."""

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.catalog.names import find_name
from sfumato.query.relation import FromItem, Scope


def add_decided_keys(tree: exp.Select, scope: Scope, dataset: Dataset) -> exp.Select:
    """GROUP BY s.site, with s.region selected -> GROUP BY s.site, s.region, if no two public rows have the same site.

    That a value occurs once is known of public tables alone, from the tables themselves. PostgreSQL reads it so too.
    """
    group = tree.args.get("group")
    if group is None or group.args.get("all") or group.args.get("rollup") or group.args.get("cube"):
        return tree
    grouped = [_resolve(key, scope) for key in group.expressions]
    decided = [item for item, name in filter(None, grouped) if item.public is not None and item.public.get(name) == 1]
    if not decided:
        return tree
    aliases = [node.alias for node in tree.expressions if node.alias]
    added: list[exp.Expr] = []
    parts = [*tree.expressions, *(tree.args.get(name) for name in ("having", "order"))]
    for column in (column for part in parts if part is not None for column in part.find_all(exp.Column)):
        above = column.find_ancestor(exp.AggFunc)
        if (above is not None and not isinstance(above, exp.AnyValue)) or (
            not column.table and find_name(column.name, aliases) is not None and not scope.has_column(column.name)
        ):
            continue
        found = _resolve(column, scope)
        if found is None or found in grouped or not any(found[0] is item for item in decided):
            continue
        if _may_be_null(*found, dataset):  # rows with a NULL key are in no group
            continue
        grouped.append(found)
        added.append(column.copy())
    if not added:
        return tree
    made = tree.copy()
    made.meta.update(tree.meta)
    made.args["group"].set("expressions", [*made.args["group"].expressions, *added])
    return made


def _may_be_null(item: FromItem, name: str, dataset: Dataset) -> bool:
    """May a column of a public table be NULL? Its rows are known."""
    table = dataset.tables.get(item.table)
    if table is None or table.public_rows is None:
        return item.columns[name].nullable
    place = list(table.columns).index(name)
    return any(row[place] is None for row in table.public_rows)


def _resolve(node: exp.Expr, scope: Scope) -> tuple[FromItem, str] | None:
    """The column that a name means. None: it is no name of one column."""
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        return None
    items = [
        (item, name)
        for item in scope.items
        if not item.hidden
        and (not node.table or find_name(node.table, (item.alias,)) is not None)
        and (name := find_name(node.name, item.columns)) is not None
        and (node.table or name not in item.merged)
    ]
    return items[0] if len(items) == 1 else None
