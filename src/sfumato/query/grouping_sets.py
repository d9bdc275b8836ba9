"""GROUP BY ROLLUP, CUBE and GROUPING SETS -> UNION ALL of one SELECT for each set of keys."""

from itertools import combinations, product

from sqlglot import exp

from sfumato.query.parse import build_syntax_refusal
from sfumato.query.row_expressions import is_aggregate

MOST_SETS = 16
FORMS = (exp.Rollup, exp.Cube, exp.GroupingSets)
Keys = tuple[exp.Expr, ...]


def expand_grouping_sets(tree: exp.Select) -> exp.Query | None:
    """The same question as a UNION ALL. None: GROUP BY has a plain list of keys."""
    group = tree.args.get("group")
    if group is None or not (group.find(*FORMS) or group.args.get("rollup") or group.args.get("cube")):
        return None
    if tree.find(exp.Window):
        hint = "Ask for one set of keys at a time, or compute the windows in Python."
        raise build_syntax_refusal(group, "Windows over several sets of keys[at] are not supported", hint)
    sets = _list_sets(tree, group)
    if len(sets) > MOST_SETS:
        raise build_syntax_refusal(
            group, f"GROUP BY has more than {MOST_SETS} sets of keys", "Ask for fewer sets, or in several questions."
        )
    every = tuple({_text(key): key for keys in sets for key in keys}.values())
    selects = [_select_one(tree, keys, every) for keys in sets]
    made: exp.Query = selects[0]
    for select in selects[1:]:
        made = exp.Union(this=made, expression=select, distinct=False)
    if len(selects) == 1:
        made = exp.Union(this=made, expression=selects[0].copy(), distinct=True)
    for clause in ("limit", "offset"):
        if tree.args.get(clause) is not None:
            made.set(clause, tree.args[clause].copy())
    order = tree.args.get("order")
    if order is not None:
        made.set("order", exp.Order(expressions=[_place_term(term, tree) for term in order.expressions]))
    return made


def _text(node: exp.Expr) -> str:
    return node.unnest().sql(dialect="duckdb").lower()


def _list_sets(tree: exp.Select, group: exp.Group) -> list[Keys]:
    """The sets of keys: those of each form, combined with those of the others."""
    parts: list[list[Keys]] = []
    if group.args.get("rollup") or group.args.get("cube"):  # GROUP BY a, b WITH ROLLUP
        keys = [(_mean(key, tree),) for key in group.expressions]
        parts.append(_roll_up(list(keys)) if group.args.get("rollup") else _cube(list(keys)))
    else:
        parts += [_expand(node, tree) for node in group.expressions]
    return [tuple({_text(key): key for keys in chosen for key in keys}.values()) for chosen in product(*parts)]


def _expand(node: exp.Expr, tree: exp.Select) -> list[Keys]:
    match node:
        case exp.Rollup():
            return _roll_up([_read_set(part, tree) for part in node.expressions])
        case exp.Cube():
            return _cube([_read_set(part, tree) for part in node.expressions])
        case exp.GroupingSets():
            return [keys for part in node.expressions for keys in _expand(part, tree)]
    return [_read_set(node, tree)]


def _read_set(node: exp.Expr, tree: exp.Select) -> Keys:
    if isinstance(node, exp.Tuple):
        return tuple(_mean(part, tree) for part in node.expressions)
    return (_mean(node.unnest(), tree),)


def _mean(key: exp.Expr, tree: exp.Select) -> exp.Expr:
    """The selected column that a number or an alias means."""
    text = str(key.this) if isinstance(key, exp.Literal) else ""
    if text.isdigit() and 1 <= int(text) <= len(tree.expressions):
        found: exp.Expr = tree.expressions[int(text) - 1].unalias()
        return found
    if isinstance(key, exp.Column) and not key.table:
        selected = [node.unalias() for node in tree.expressions]
        where = tree.args.get("where")
        inside = [column.name.lower() for node in (*selected, where) if node for column in node.find_all(exp.Column)]
        if key.name.lower() not in inside:  # no column of the rows has this name, as far as the question says
            named = (node.unalias() for node in tree.expressions if node.alias.lower() == key.name.lower())
            return next(named, key)
    return key


def _roll_up(parts: list[Keys]) -> list[Keys]:
    return [tuple(key for keys in parts[:end] for key in keys) for end in range(len(parts), -1, -1)]


def _cube(parts: list[Keys]) -> list[Keys]:
    sizes = range(len(parts), -1, -1)
    return [tuple(key for keys in chosen for key in keys) for size in sizes for chosen in combinations(parts, size)]


def _select_one(tree: exp.Select, keys: Keys, every: Keys) -> exp.Select:
    """The SELECT of one set: keys that are not in it are NULL, and GROUPING is a constant."""
    made = tree.copy()
    for clause in ("order", "limit", "offset", "with_"):
        made.set(clause, None)
    made.set("group", exp.Group(expressions=[key.copy() for key in keys]) if keys else None)
    own, all_keys = {_text(key) for key in keys}, {_text(key) for key in every}
    aliases = {node.alias.lower(): _text(node.unalias()) for node in made.expressions if node.alias}
    names = [node.alias or (node.name if isinstance(node, exp.Column) else _text(node)) for node in made.expressions]
    kept = [_drop(node, own, all_keys, aliases) for node in made.expressions]
    made.set("expressions", [_name(node, name) for node, name in zip(kept, names, strict=True)])
    if made.args.get("having") is not None:
        made.args["having"].set("this", _drop(made.args["having"].this, own, all_keys, aliases))
    return made


def _name(node: exp.Expr, name: str) -> exp.Expr:
    if isinstance(node, exp.Alias):
        return node
    return exp.Alias(this=node, alias=exp.Identifier(this=name, quoted=True))


def _drop(node: exp.Expr, own: set[str], every: set[str], aliases: dict[str, str]) -> exp.Expr:
    """Replace the keys that a set does not have, outside aggregates."""
    if is_aggregate(node):
        return node
    if isinstance(node, (exp.Grouping, exp.GroupingId)):
        bits = "".join("0" if _text(key) in own else "1" for key in node.expressions)
        return exp.Literal.number(int(bits or "0", 2))
    text = _text(node)
    if isinstance(node, exp.Column) and text not in every:  # a name is a column first, and an alias second
        text = aliases.get(text, text)
    if text in every and not isinstance(node, exp.Alias):
        return node if text in own else exp.Null()
    for key, value in list(node.args.items()):
        if isinstance(value, list):
            node.set(key, [_drop(part, own, every, aliases) if isinstance(part, exp.Expr) else part for part in value])
        elif isinstance(value, exp.Expr) and not isinstance(value, exp.Identifier):
            node.set(key, _drop(value, own, every, aliases))
    return node


def _place_term(term: exp.Ordered, tree: exp.Select) -> exp.Ordered:
    """A term of ORDER BY as the number of a selected column."""
    made = term.copy()
    wanted = _text(term.this)
    for place, node in enumerate(tree.expressions, start=1):
        if wanted in (node.alias.lower(), _text(node.unalias()), str(place)):
            made.set("this", exp.Literal.number(place))
            return made
    hint = "Select it too, and sort by its name."
    raise build_syntax_refusal(term, "ORDER BY over several sets of keys[at] needs a selected column", hint)
