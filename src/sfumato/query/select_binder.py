"""One SELECT over rows of private tables -> Query. The clauses are resolved in the order of this file."""

from collections.abc import Sequence
from math import prod

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.catalog.names import find_name
from sfumato.errors import MissingBounds
from sfumato.kernel.expressions import Scalar
from sfumato.kernel.plan import Key
from sfumato.kernel.row_sources import derive_extent
from sfumato.query.decided_comparisons import warn_of_undeclared
from sfumato.query.decided_keys import add_decided_keys
from sfumato.query.dp_options import DpOptions
from sfumato.query.from_clause import FromBinder
from sfumato.query.functions import MOST_KEYS
from sfumato.query.key_values import list_key_values
from sfumato.query.null_keys import has_null_key
from sfumato.query.output_columns import Output, OutputBinder
from sfumato.query.parse import build_syntax_refusal, locate
from sfumato.query.per_group_bounds import add_up_people
from sfumato.query.possible_keys import find_possible_keys
from sfumato.query.public_keys import list_public_keys
from sfumato.query.query import Aggregate, AggregateRef, KeyRef, Ordering, Post, Query, Typed
from sfumato.query.relation import FromItem, Relation, Scope, refuse_second
from sfumato.query.released_tables import find_sql_types
from sfumato.query.row_expressions import RowBinder, has_aggregate
from sfumato.query.row_subqueries import join_subqueries
from sfumato.query.size_limits import MOST_CELLS, refuse_large_query
from sfumato.query.sql_text import name_expression
from sfumato.query.tokens import shorten
from sfumato.query.with_clause import CTEs

SqlTypes = tuple[tuple[str, str], ...]
MOST_COLUMNS = 200
MOST_GROUPINGS = 16
UNDECLARED_KEY_TYPES = ("text", "date", "datetime")  # keys of these types may be undeclared


class SelectBinder:
    """Binds one SELECT: FROM, WHERE and GROUP BY at once, and the other clauses when they are asked for."""

    def __init__(self, tree: exp.Select, dataset: Dataset, ctes: CTEs, options: DpOptions | None) -> None:
        tree = _group_distinct_rows(join_subqueries(tree, FromBinder(dataset).bind_rows, ctes))
        self.relation = FromBinder(dataset).bind_rows(tree, ctes)
        self._dataset = dataset
        self._options = _check_dp_options(tree, options, self.relation)
        people = add_up_people(tree, self.relation)
        if people is not tree:
            tree, self.relation = people, FromBinder(dataset).bind_rows(people, ctes)
        _refuse_public(tree, self.relation, dataset)
        self.tree = tree = add_decided_keys(tree, self.relation.scope, dataset)
        self.selected: list[exp.Expr] = tree.expressions
        if len(self.selected) > MOST_COLUMNS:
            what = f"The question has more than {MOST_COLUMNS} columns"
            raise build_syntax_refusal(tree, what, "Ask several questions.")
        self.names = name_columns(tree)
        aliases = [node.alias for node in self.selected if node.alias]
        self.rows = RowBinder(Scope(self.relation.items, aliases, self.relation.narrowed))
        group = tree.args.get("group")
        self.keys = _bind_keys(self.rows, group, self.selected, self.relation, dataset) if group is not None else []

    def bind_plain(self) -> tuple[Query, SqlTypes]:
        """Bind a SELECT whose columns are keys, aggregates and arithmetic over them; and the types of its columns."""
        having, order = (self.tree.args.get(name) for name in ("having", "order"))
        for clause in ("qualify", "windows", "distinct"):
            if self.tree.args.get(clause):
                raise build_syntax_refusal(self.tree, f"{clause.upper()} is not supported here", "Leave it out.")
        outputs = self.make_outputs()
        columns = [_bind_column(outputs, node) for node in self.selected]
        outputs.aliases = {
            node.alias: output for node, output in zip(self.selected, columns, strict=True) if node.alias
        }
        condition = self.bind_having(outputs, having) if having is not None else None
        ordering = tuple(bind_ordering(outputs, term, columns) for term in order.expressions) if order else ()
        named = list(zip(self.names, columns, strict=True))
        limit, offset = (read_limit(self.tree.args.get(clause)) for clause in ("limit", "offset"))
        query = self.make_query(outputs, named, having=condition, order=ordering, limit=limit, offset=offset or 0)
        return query, self.find_types(outputs, named)

    def find_types(self, outputs: OutputBinder, columns: list[tuple[str, Output]]) -> SqlTypes:
        """The types of released columns in SQL over results."""
        return find_sql_types((name, output.type, outputs.is_whole(output.post)) for name, output in columns)

    def make_outputs(self) -> OutputBinder:
        """A binder of output columns, without any yet."""
        return OutputBinder(self.rows, self.keys, derive_extent(self.relation.source).reach)

    def bind_having(self, outputs: OutputBinder, having: exp.Having) -> Post:
        output = outputs.bind(having.this)
        if output.type != "boolean":
            raise build_syntax_refusal(having, "HAVING needs a condition", "Write a comparison, such as COUNT(*) > 10.")
        return output.post

    def make_query(
        self,
        outputs: OutputBinder,
        columns: list[tuple[str, Output]],
        *,
        having: Post | None = None,
        order: tuple[Ordering, ...] = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> Query:
        """The query that measures the aggregates of `outputs` and shows these columns."""
        keys_alone = not outputs.aggregates and bool(self.keys)
        if keys_alone:
            outputs.aggregates.append(Aggregate("PEOPLE" if self.relation.has_person_id else "COUNT", None))
        if not outputs.aggregates:
            raise build_syntax_refusal(self.tree, "The question has no aggregate", "Select COUNT(*), SUM(x) or AVG(x).")
        undeclared = any(key.values is None for _, key in self.keys)
        if undeclared and not self.relation.has_person_id and derive_extent(self.relation.source).reach > 1:
            what = "With undeclared keys[at], each row may be joined with one public row only"
            hint = "Group by declared values, or join on a column that is unique in the public table."
            raise build_syntax_refusal(self.tree.args.get("group") or self.tree, what, hint)
        query = Query(
            self.relation.source,
            (*self.relation.filters, *outputs.filters),
            tuple(key for _, key in self.keys),
            tuple(outputs.aggregates),
            tuple((name, output.post) for name, output in columns),
            having,
            order,
            limit,
            self._options,
            offset,
            keys_alone=keys_alone,
            null_keys=has_null_key((typed for typed, _ in self.keys), self.relation.filters),
            possible_keys=find_possible_keys([key for _, key in self.keys], self.relation, self._dataset),
        )
        refuse_large_query(self.tree, query)
        return query


def _group_distinct_rows(tree: exp.Select) -> exp.Select:
    """SELECT DISTINCT a, b is SELECT a, b GROUP BY a, b, where nothing is grouped or aggregated."""
    whole = tree.args.get("distinct") is None or tree.args.get("group") is not None or tree.args.get("having")
    if whole or any(has_aggregate(node) for node in tree.expressions):
        return tree
    made = tree.copy()
    made.set("distinct", None)
    # in brackets, 1 is a constant and not "column 1"
    made.set("group", exp.Group(expressions=[exp.Paren(this=node.unalias().copy()) for node in tree.expressions]))
    return made


def _refuse_public(tree: exp.Select, relation: Relation, dataset: Dataset) -> None:
    if derive_extent(relation.source).private:
        return
    private = ", ".join(table.name for table in dataset.tables.values() if not table.public)
    what = f"{relation.items[0].table} is a public table[at]: read it without Sfumato"
    raise build_syntax_refusal(tree.args["from_"], what, f"Ask about a private table: {private}.")


def name_columns(tree: exp.Select) -> list[str]:
    names: list[str] = []
    for node in tree.expressions:
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            hint = "Select COUNT(*) or another aggregate."
            raise build_syntax_refusal(
                node, "SELECT *[at] would show rows of private data, which is never possible", hint
            )
        given = node.alias or (node.name if isinstance(node, exp.Column) else "")
        name = given or _number_name(name_expression(node), names)
        refuse_second(node, name, names)
        names.append(name)
    return names


def _number_name(name: str, names: list[str]) -> str:
    """A name that nobody gave, with a number if it is taken: VARIANCE(x) and VAR_SAMP(x) are spelled alike."""
    taken, number = name, 1
    while find_name(taken, names) is not None:
        number += 1
        taken = f"{name}_{number}"
    return taken


def _bind_keys(
    rows: RowBinder, group: exp.Group, selected: list[exp.Expr], relation: Relation, dataset: Dataset
) -> list[tuple[Typed, Key]]:
    """Bind GROUP BY. A name refers to a column of the table first, and to an alias second."""
    found: list[tuple[Typed, Key]] = []
    nodes = group.expressions
    if group.args.get("all"):  # every selected column without an aggregate
        nodes = [node.unalias() for node in selected if not has_aggregate(node) and node.find(exp.Column)]
    meant = [_find_meaning(key_node, selected, rows.scope) for key_node in nodes]
    bound = [rows.bind(node) for node in meant]
    listed = _list_values(bound, list_public_keys(meant, rows.scope, dataset), relation)
    if _count_groups(listed) > MOST_CELLS:  # without the values of public rows, these keys may be undeclared
        listed = _list_values(bound, relation.items, relation)
    for key_node, typed, values in zip(nodes, bound, listed, strict=True):
        if values is None and not (typed.type in UNDECLARED_KEY_TYPES or typed.whole):
            hint = (
                "A real number has too many values to be keys. Its bins are another question, which can be answered: "
                "HISTOGRAM(x, 20), FLOOR(x / 10) * 10, or CASE WHEN x < 10 THEN ..."
            )
            raise MissingBounds("keys", f"This key has no declared values{locate(key_node)}.", hint)
        if values is None and typed.bounded:
            warn_of_undeclared(key_node)
        if all(typed.expression != key.expression for _, key in found):
            found.append((typed, Key(typed.expression, values)))
    if len(found) > MOST_GROUPINGS:
        raise build_syntax_refusal(group, f"GROUP BY has more than {MOST_GROUPINGS} keys", "Group by fewer keys.")
    if _count_groups([key.values for _, key in found]) > MOST_CELLS:
        hint = "Group by fewer keys, or by coarser ones."
        raise build_syntax_refusal(group, f"GROUP BY has more than {MOST_CELLS:,} possible groups", hint)
    return found


def _list_values(keys: list[Typed], items: Sequence[FromItem], relation: Relation) -> list[tuple[Scalar, ...] | None]:
    """The values of each key; None where they are unknown or too many."""
    found = [list_key_values(typed, items, relation.filters) for typed in keys]
    return [values if values and len(values) <= MOST_KEYS else None for values in found]


def _count_groups(listed: Sequence[tuple[Scalar, ...] | None]) -> int:
    return prod(len(values) for values in listed if values is not None)


def _find_meaning(key: exp.Expr, selected: list[exp.Expr], scope: Scope) -> exp.Expr:
    """GROUP BY 1 means the first selected column. A name means a column of a table first, and an alias second."""
    number = read_ordinal(key, len(selected))
    if number is not None:
        return selected[number].unalias()
    if isinstance(key, exp.Column) and not key.table and not scope.has_column(key.name):
        aliased = (column.unalias() for column in selected if find_name(key.name, (column.alias,)))
        return next(aliased, key)
    return key


def read_ordinal(node: exp.Expr, columns: int) -> int | None:
    """GROUP BY 1, ORDER BY 2: the index of the selected column, from 0. None if the node is not a number."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    text = str(node.this)
    number = int(text) if text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= columns:
        hint = f"Write a number from 1 to {columns}." if columns > 1 else "Write 1, or name the column."
        raise build_syntax_refusal(node, f"There is no column {shorten(text)}", hint)
    return number - 1


def _bind_column(outputs: OutputBinder, node: exp.Expr) -> Output:
    output = outputs.bind(node.unalias())
    if output.type in UNDECLARED_KEY_TYPES and not isinstance(output.post, (KeyRef, AggregateRef)):
        raise build_syntax_refusal(
            node, "A constant text or date cannot be selected", "Select group keys and aggregates."
        )
    return output


def bind_ordering(outputs: OutputBinder, term: exp.Ordered, columns: list[Output]) -> Ordering:
    """Bind one term of ORDER BY. A name refers to an alias first, and to a key second."""
    node, number = term.this, read_ordinal(term.this, len(columns))
    alias = find_name(node.name, outputs.aliases) if isinstance(node, exp.Column) and not node.table else None
    if number is not None:
        output = columns[number]
    elif alias is not None:
        output = outputs.aliases[alias]
    else:
        output = outputs.bind(node)
    return Ordering(output.post, bool(term.args.get("desc")), bool(term.args.get("nulls_first")))


def _check_dp_options(tree: exp.Select, options: DpOptions | None, relation: Relation) -> DpOptions | None:
    """The OPTIONS of the question. The person that they name must be the one that the catalog declares."""
    if options is None:
        return None
    if options.privacy_unit_column is not None:
        column = exp.column(*reversed(options.privacy_unit_column.split(".")))
        if not relation.scope.is_person(column):
            person = next((name for item in relation.items for name in sorted(item.person)), None)
            hint = f"Write privacy_unit_column={person}." if person else "Leave it out: each row is one person."
            raise build_syntax_refusal(
                tree, "privacy_unit_column is not the person's id that the catalog declares", hint
            )
    if options.max_groups_contributed not in (None, 1) and not relation.has_person_id:
        what = "max_groups_contributed is not possible[at], because each row is one person and is in one group"
        raise build_syntax_refusal(tree, what, "Leave it out.")
    return options


def read_limit(node: exp.Expr | None) -> int | None:
    if node is None:
        return None
    text = str(node.expression.this) if isinstance(node.expression, exp.Literal) else ""
    if not text.isdigit() or node.expression.is_string or len(text) > 9:
        raise build_syntax_refusal(node, "LIMIT needs a whole number", "Write LIMIT 10.")
    return int(text)
