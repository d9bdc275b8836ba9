"""Syntax tree + catalog -> Query: the clauses of one SELECT, in the order in which they are resolved."""

from dataclasses import replace
from math import prod

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.catalog.names import find_name
from sfumato.errors import MissingBounds
from sfumato.kernel.plan import MOST_CELLS, Key
from sfumato.kernel.row_sources import extent
from sfumato.query.decided_comparisons import collected
from sfumato.query.dp_options import DpOptions
from sfumato.query.from_clause import FromBinder
from sfumato.query.functions import MOST_KEYS
from sfumato.query.output_columns import Output, OutputBinder
from sfumato.query.parse import DP_OPTIONS, locate, syntax_refusal
from sfumato.query.query import AggregateRef, KeyRef, Ordering, Query, Typed
from sfumato.query.relation import Relation, Scope
from sfumato.query.row_expressions import RowBinder
from sfumato.query.size_limits import refuse_large_query

MOST_COLUMNS = 200
MOST_GROUPINGS = 16
DISCOVERED = ("text", "date", "datetime")  # keys of these types may be named by the data


def bind(tree: exp.Select, dataset: Dataset) -> Query:
    """Resolve every name and type; the query says of which comparisons its asker should know."""
    with collected() as cautions:
        query = _bind_select(tree, dataset)
    return replace(query, cautions=tuple(cautions))


def _bind_select(tree: exp.Select, dataset: Dataset) -> Query:
    selected = tree.expressions
    relation = FromBinder(dataset).bind_rows(tree, {})
    if not extent(relation.source).private:
        private = [each.name for each in dataset.tables.values() if not each.public]
        name = relation.items[0].table
        raise syntax_refusal(
            tree.args["from_"], f"{name} is public, and needs no noise", f"Private: {', '.join(private)}."
        )
    rows = RowBinder(Scope(relation.items, [each.alias for each in selected if each.alias]))
    if len(selected) > MOST_COLUMNS:
        raise syntax_refusal(tree, f"There are over {MOST_COLUMNS} columns", "Ask several questions.")
    names = _name_columns(tree)
    group, having, order = (tree.args.get(name) for name in ("group", "having", "order"))
    keys = _bind_keys(rows, group, selected) if group is not None else []
    outputs = OutputBinder(rows, keys)
    bound = [outputs.bind(each.unalias()) for each in selected]
    for node, each in zip(selected, bound, strict=True):
        if each.type in DISCOVERED and not isinstance(each.post, (KeyRef, AggregateRef)):
            raise syntax_refusal(node, "A plain text is not a result", "Select keys and aggregates.")
    outputs.aliases = {each.alias: found for each, found in zip(selected, bound, strict=True) if each.alias}
    kept = outputs.bind(having.this) if having else None
    if having is not None and kept is not None and kept.type != "boolean":
        raise syntax_refusal(having, "HAVING takes a condition", "Compare with something, such as COUNT(*) > 10.")
    ordered = tuple(_bind_ordering(outputs, each, bound) for each in order.expressions) if order else ()
    if not outputs.aggregates:
        raise syntax_refusal(tree, "A question asks for at least one aggregate", "Select COUNT(*), SUM(x) or AVG(x).")
    if any(key.values is None for _, key in keys) and not relation.has_person_id and extent(relation.source).reach > 1:
        hint = "Group by declared values, or join on a column that is unique in the public table."
        raise syntax_refusal(tree.args["group"], "A row that meets several public rows could name several keys", hint)
    query = Query(
        relation.source,
        relation.filters,
        tuple(key for _, key in keys),
        tuple(outputs.aggregates),
        tuple((name, each.post) for name, each in zip(names, bound, strict=True)),
        None if kept is None else kept.post,
        ordered,
        _read_limit(tree.args.get("limit")),
        _check_dp_options(tree, relation),
    )
    refuse_large_query(tree, query)
    return query


def _name_columns(tree: exp.Select) -> list[str]:
    names: list[str] = []
    for each in tree.expressions:
        if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
            raise syntax_refusal(
                each, "SELECT * shows rows, and rows never leave", "Select COUNT(*) or another aggregate."
            )
        name = each.alias or (each.name if isinstance(each, exp.Column) else each.sql(dialect="duckdb").lower())
        if find_name(name, names) is not None:
            raise syntax_refusal(each, f"Two columns are named {name[:100]}", "Name them apart with AS.")
        names.append(name)
    return names


def _bind_keys(rows: RowBinder, group: exp.Group, selected: list[exp.Expr]) -> list[tuple[Typed, Key]]:
    """GROUP BY: columns of the table come before aliases."""
    found: list[tuple[Typed, Key]] = []
    for each in group.expressions:
        number = _read_ordinal(each, len(selected))
        node = each if number is None else selected[number].unalias()
        if isinstance(each, exp.Column) and not each.table and not rows.scope.has_column(each.name):
            node = next((one.unalias() for one in selected if find_name(each.name, (one.alias,))), each)
        typed = rows.bind(node)
        values = typed.values if typed.values and len(typed.values) <= MOST_KEYS else None
        if values is None and not (typed.type in DISCOVERED or typed.whole):
            raise MissingBounds(
                "keys",
                f"The values of this key are not declared{locate(each)}.",
                "Group by a category, a text, a date, whole numbers, FLOOR(x / 10), or a CASE of such.",
            )
        if all(typed.expression != key.expression for _, key in found):
            found.append((typed, Key(typed.expression, values)))
    declared = [len(key.values) for _, key in found if key.values is not None]
    if len(found) > MOST_GROUPINGS or prod(declared) > MOST_CELLS:
        most = f"There are over {MOST_GROUPINGS} keys, or over {MOST_CELLS:,} groups"
        raise syntax_refusal(group, most, "Group by fewer keys, or by coarser ones.")
    return found


def _read_ordinal(node: exp.Expr, columns: int) -> int | None:
    """GROUP BY 1, ORDER BY 2: the place among the selected columns, from 0; None where the node is no number."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    text = str(node.this)
    number = int(text) if text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= columns:
        raise syntax_refusal(node, "There is no column of that number", f"Count from 1 to {columns}.")
    return number - 1


def _bind_ordering(outputs: OutputBinder, term: exp.Ordered, bound: list[Output]) -> Ordering:
    """ORDER BY: a name alone is first of all an alias."""
    node, number = term.this, _read_ordinal(term.this, len(bound))
    alias = find_name(node.name, outputs.aliases) if isinstance(node, exp.Column) and not node.table else None
    if number is not None:
        found = bound[number]
    elif alias is not None:
        found = outputs.aliases[alias]
    else:
        found = outputs.bind(node)
    return Ordering(found.post, bool(term.args.get("desc")), bool(term.args.get("nulls_first")))


def _check_dp_options(tree: exp.Select, relation: Relation) -> DpOptions | None:
    """The question's own options; the person that they name must be the declared one."""
    options = tree.meta.get(DP_OPTIONS)
    if not isinstance(options, DpOptions):
        return None
    if options.privacy_unit_column is not None:
        column = exp.column(*reversed(options.privacy_unit_column.split(".")))
        if not relation.scope.is_person(column):
            person = next((name for part in relation.items for name in sorted(part.person)), None)
            hint = f"Write privacy_unit_column={person}." if person else "Leave it out: each row is one person."
            raise syntax_refusal(tree, "privacy_unit_column is not the person whom the catalog declares", hint)
    if options.max_groups_contributed is not None and not relation.has_person_id:
        raise syntax_refusal(tree, "Each row is one person, in one group", "Leave max_groups_contributed out.")
    return options


def _read_limit(node: exp.Expr | None) -> int | None:
    if node is None:
        return None
    text = str(node.expression.this) if isinstance(node.expression, exp.Literal) else ""
    if not text.isdigit() or node.expression.is_string or len(text) > 9:
        raise syntax_refusal(node, "LIMIT takes a whole number", "Write LIMIT 10.")
    return int(text)
