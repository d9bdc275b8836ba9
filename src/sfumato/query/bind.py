"""Syntax tree + catalog -> Query: the clauses of one SELECT, in the order in which they are resolved."""

from dataclasses import replace
from math import prod

from sqlglot import exp

from sfumato.catalog.model import Dataset
from sfumato.catalog.names import find
from sfumato.errors import MissingBounds
from sfumato.kernel.plan import MOST_CELLS, Key
from sfumato.kernel.row_sources import is_private, reach
from sfumato.query.decided_comparisons import collected
from sfumato.query.dp_options import Terms
from sfumato.query.from_clause import RelationBinder
from sfumato.query.functions import MOST_KEYS
from sfumato.query.join import Relation
from sfumato.query.output_columns import Output, OutputBinder
from sfumato.query.parse import TERMS, place_of, unsupported
from sfumato.query.query import AggregateRef, KeyRef, Ordering, Query, Typed
from sfumato.query.row_expressions import RowBinder
from sfumato.query.scope import Scope
from sfumato.query.size_limits import small_enough_in_all

MOST_COLUMNS = 200
MOST_GROUPINGS = 16
DISCOVERED = ("text", "date", "datetime")  # keys of these types may be named by the data


def bind(tree: exp.Select, dataset: Dataset) -> Query:
    """Resolve every name and type; the query says of which comparisons its asker should know."""
    with collected() as cautions:
        query = _bound(tree, dataset)
    return replace(query, cautions=tuple(cautions))


def _bound(tree: exp.Select, dataset: Dataset) -> Query:
    selected = tree.expressions
    relation = RelationBinder(dataset).rows_of(tree, {})
    if not is_private(relation.source):
        private = [each.name for each in dataset.tables.values() if not each.public]
        name = relation.parts[0].table
        raise unsupported(
            tree.args["from_"], f"{name} is public, and needs no noise", f"Private: {', '.join(private)}."
        )
    rows = RowBinder(Scope(relation.parts, [each.alias for each in selected if each.alias]))
    if len(selected) > MOST_COLUMNS:
        raise unsupported(tree, f"There are over {MOST_COLUMNS} columns", "Ask several questions.")
    names = _names(tree)
    group, having, order = (tree.args.get(name) for name in ("group", "having", "order"))
    keys = _keys(rows, group, selected) if group is not None else []
    outputs = OutputBinder(rows, keys)
    bound = [outputs.output(each.unalias()) for each in selected]
    for node, each in zip(selected, bound, strict=True):
        if each.type in DISCOVERED and not isinstance(each.post, (KeyRef, AggregateRef)):
            raise unsupported(node, "A plain text is not a result", "Select keys and aggregates.")
    outputs.aliases = {each.alias: found for each, found in zip(selected, bound, strict=True) if each.alias}
    kept = outputs.output(having.this) if having else None
    if having is not None and kept is not None and kept.type != "boolean":
        raise unsupported(having, "HAVING takes a condition", "Compare with something, such as COUNT(*) > 10.")
    ordered = tuple(_ordering(outputs, each, bound) for each in order.expressions) if order else ()
    if not outputs.aggregates:
        raise unsupported(tree, "A question asks for at least one aggregate", "Select COUNT(*), SUM(x) or AVG(x).")
    if any(key.values is None for _, key in keys) and not relation.of_people and reach(relation.source) > 1:
        hint = "Group by declared values, or join on a column that is unique in the public table."
        raise unsupported(tree.args["group"], "A row that meets several public rows could name several keys", hint)
    query = Query(
        relation.source,
        relation.filters,
        tuple(key for _, key in keys),
        tuple(outputs.aggregates),
        tuple((name, each.post) for name, each in zip(names, bound, strict=True)),
        None if kept is None else kept.post,
        ordered,
        _limit(tree.args.get("limit")),
        _terms(tree, relation),
    )
    small_enough_in_all(tree, query)
    return query


def _names(tree: exp.Select) -> list[str]:
    names: list[str] = []
    for each in tree.expressions:
        if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
            raise unsupported(
                each, "SELECT * shows rows, and rows never leave", "Select COUNT(*) or another aggregate."
            )
        name = each.alias or (each.name if isinstance(each, exp.Column) else each.sql(dialect="duckdb").lower())
        if find(name, names) is not None:
            raise unsupported(each, f"Two columns are named {name[:100]}", "Name them apart with AS.")
        names.append(name)
    return names


def _keys(rows: RowBinder, group: exp.Group, selected: list[exp.Expr]) -> list[tuple[Typed, Key]]:
    """GROUP BY: columns of the table come before aliases."""
    found: list[tuple[Typed, Key]] = []
    for each in group.expressions:
        number = _ordinal(each, len(selected))
        node = each if number is None else selected[number].unalias()
        if isinstance(each, exp.Column) and not each.table and not rows.scope.has(each.name):
            node = next((one.unalias() for one in selected if find(each.name, (one.alias,))), each)
        typed = rows.row(node)
        values = typed.values if typed.values and len(typed.values) <= MOST_KEYS else None
        if values is None and not (typed.type in DISCOVERED or typed.whole):
            raise MissingBounds(
                "keys",
                f"The values of this key are not declared{place_of(each)}.",
                "Group by a category, a text, a date, whole numbers, FLOOR(x / 10), or a CASE of such.",
            )
        if all(typed.expression != key.expression for _, key in found):
            found.append((typed, Key(typed.expression, values)))
    declared = [len(key.values) for _, key in found if key.values is not None]
    if len(found) > MOST_GROUPINGS or prod(declared) > MOST_CELLS:
        most = f"There are over {MOST_GROUPINGS} keys, or over {MOST_CELLS:,} groups"
        raise unsupported(group, most, "Group by fewer keys, or by coarser ones.")
    return found


def _ordinal(node: exp.Expr, columns: int) -> int | None:
    """GROUP BY 1, ORDER BY 2: the place among the selected columns, from 0; None where the node is no number."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    text = str(node.this)
    number = int(text) if text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= columns:
        raise unsupported(node, "There is no column of that number", f"Count from 1 to {columns}.")
    return number - 1


def _ordering(outputs: OutputBinder, term: exp.Ordered, bound: list[Output]) -> Ordering:
    """ORDER BY: a name alone is first of all an alias."""
    node, number = term.this, _ordinal(term.this, len(bound))
    alias = find(node.name, outputs.aliases) if isinstance(node, exp.Column) and not node.table else None
    if number is not None:
        found = bound[number]
    else:
        found = outputs.aliases[alias] if alias is not None else outputs.output(node)
    return Ordering(found.post, bool(term.args.get("desc")), bool(term.args.get("nulls_first")))


def _terms(tree: exp.Select, relation: Relation) -> Terms | None:
    """The question's own terms; the person that they name must be the declared one."""
    terms = tree.meta.get(TERMS)
    if not isinstance(terms, Terms):
        return None
    if terms.privacy_unit_column is not None:
        column = exp.column(*reversed(terms.privacy_unit_column.split(".")))
        if not relation.scope.is_person(column):
            person = next((name for part in relation.parts for name in sorted(part.person)), None)
            hint = f"Write privacy_unit_column={person}." if person else "Leave it out: each row is one person."
            raise unsupported(tree, "privacy_unit_column is not the person whom the catalog declares", hint)
    if terms.max_groups_contributed is not None and not relation.of_people:
        raise unsupported(tree, "Each row is one person, in one group", "Leave max_groups_contributed out.")
    return terms


def _limit(node: exp.Expr | None) -> int | None:
    if node is None:
        return None
    text = str(node.expression.this) if isinstance(node.expression, exp.Literal) else ""
    if not text.isdigit() or node.expression.is_string or len(text) > 9:
        raise unsupported(node, "LIMIT takes a whole number", "Write LIMIT 10.")
    return int(text)
