"""A SELECT with windows, CASE, texts or dates over aggregates -> a query of the aggregates, and SQL over its rows."""

from collections.abc import Callable

from sqlglot import exp

from sfumato.errors import QueryError
from sfumato.kernel.expressions import Expression
from sfumato.query.finish import quote, select_released
from sfumato.query.output_columns import Output
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.query import Aggregate, AggregateRef, KeyRef, Ordering, Post, Query
from sfumato.query.result_functions import RESULT_SHAPES
from sfumato.query.row_expressions import is_aggregate
from sfumato.query.select_binder import SelectBinder, SqlTypes, read_ordinal
from sfumato.query.size_limits import MOST_PARTS
from sfumato.query.tokens import SHORTEN

PART = "__sfumato_part"
AddQuery = Callable[[Query, SqlTypes, exp.Expr], int]
RESULT_FORMS = (
    *RESULT_SHAPES, exp.Case, exp.Coalesce, exp.Subquery, exp.Like, exp.Cast, exp.TimestampTrunc, exp.DateTrunc,
    exp.Extract, exp.DateDiff, exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.DayOfWeek, exp.Is,
)  # fmt: skip
SYNTAX = (exp.Identifier, exp.DataType, exp.Var, exp.WindowSpec, exp.DataTypeParam)
CONSTANTS = (exp.Literal, exp.Null, exp.Boolean)


def is_result_form(node: exp.Expr) -> bool:
    """Does it contain a form that is computed from released values?"""
    return node.find(*RESULT_FORMS) is not None


def needs_lifting(tree: exp.Select) -> bool:
    """Does a SELECT have a clause or a column that only DuckDB computes, from released rows?"""
    if any(tree.args.get(clause) for clause in ("qualify", "windows", "distinct")):
        return True
    clauses = [tree.args[clause] for clause in ("having", "order") if tree.args.get(clause) is not None]
    constants = (exp.Literal, exp.Null, exp.Cast)
    columns = [node.unalias() for node in tree.expressions]
    several = len([node for node in columns if not isinstance(node, exp.Column)]) > 1
    people = [node for column in columns for node in column.find_all(exp.Count) if isinstance(node.this, exp.Distinct)]
    apart = bool(people) and (several or _counts_some_people(columns, people))
    found = any(is_result_form(node) or isinstance(node.unalias(), constants) for node in (*columns, *clauses))
    return found or apart or _uses_own_alias(tree)


def _counts_some_people(columns: list[exp.Expr], people: list[exp.Count]) -> bool:
    """Does COUNT(DISTINCT CASE WHEN c THEN id END) stand beside another aggregate in one column?"""
    some = any(node.find(exp.Case) is not None for node in people)
    return some and sum(is_aggregate(node) for column in columns for node in column.walk(prune=is_aggregate)) > 1


def _uses_own_alias(tree: exp.Select) -> bool:
    """Does a selected column name the alias of another: SELECT COUNT(*) AS n, n / 2 AS half?"""
    aliases = {node.alias.lower() for node in tree.expressions if node.alias}
    columns = (column for node in tree.expressions for column in node.find_all(exp.Column))
    return any(not column.table and column.name.lower() in aliases for column in columns)


class LiftedSelect:
    """Splits one SELECT: the largest parts that a query can release become its columns, DuckDB computes the rest."""

    def __init__(self, binder: SelectBinder, transform: Callable[[exp.Expr], exp.Query], add_query: AddQuery) -> None:
        self.binder, self._transform, self._add_query = binder, transform, add_query
        self.outputs = binder.make_outputs()
        self.columns: list[tuple[str, Output]] = []
        self._aliased: dict[str, exp.Expr] = {}
        self._parts = 0
        self._apart: dict[int, exp.Expr] = {}
        clauses = [binder.tree.args.get(name) for name in ("having", "order", "qualify")]
        parts = [*(node.unalias() for node in binder.selected), *(part for part in clauses if part is not None)]
        found = [node for part in parts for node in part.walk(prune=is_aggregate) if is_aggregate(node)]
        self._several = len(found) > 1
        self._only_parts = all(isinstance(node, exp.Count) and bool(self._find_part(node)) for node in found)

    def build(self) -> exp.Query:
        """The SQL over released rows."""
        tree = self.binder.tree
        made = exp.Select()
        shown: list[exp.Expr] = []
        for name, node in zip(self.binder.names, self.binder.selected, strict=True):
            lifted = self._lift(node.unalias(), name)
            shown.append(exp.Alias(this=lifted, alias=quote(name)))
            if node.alias:
                self._aliased[node.alias.lower()] = lifted
        made.set("expressions", shown)
        having, order = tree.args.get("having"), tree.args.get("order")
        condition = self._try_having(having)
        if having is not None and condition is None:
            made.set("where", exp.Where(this=self._lift(having.this)))
        if tree.args.get("qualify") is not None:
            made.set("qualify", exp.Qualify(this=self._lift(tree.args["qualify"].this)))
        if tree.args.get("windows"):
            made.set("windows", [self._lift_window(window) for window in tree.args["windows"]])
        if tree.args.get("distinct") is not None and not self._shows_all_keys():
            made.set("distinct", exp.Distinct())
        for clause in ("limit", "offset"):
            if tree.args.get(clause) is not None:
                made.set(clause, tree.args[clause].copy())
        if order is not None:
            made.set("order", exp.Order(expressions=[self._lift_term(term) for term in order.expressions]))
        sorts = self._bind_order(order)
        number = self._release(condition, sorts)
        made.set("from_", exp.From(this=exp.Table(this=quote(f"released{number}"))))
        return made

    def _release(self, condition: Post | None, order: tuple[Ordering, ...]) -> int:
        if not self.outputs.aggregates and self._apart:
            raise build_syntax_refusal(
                self.binder.tree, "COUNT(DISTINCT id) of some people stands alone with other forms", "Ask for it alone."
            )
        query = self.binder.make_query(self.outputs, self.columns, having=condition, order=order)
        return self._add_query(query, self.binder.find_types(self.outputs, self.columns), self.binder.tree)

    def _try_having(self, having: exp.Having | None) -> Post | None:
        if having is None or having.find(exp.Window):
            return None
        found = self._try(having.this)
        if found is not None and found.type != "boolean":
            self.binder.bind_having(self.outputs, having)  # raises
        return None if found is None else found.post

    def _bind_order(self, order: exp.Order | None) -> tuple[Ordering, ...]:
        """The terms of ORDER BY that a query can sort by: intervals then hold for all rows together."""
        found = []
        for term in order.expressions if order is not None else []:
            if read_ordinal(term.this, len(self.binder.selected)) is None:
                output = self._try(term.this)
                if output is not None:
                    found.append(Ordering(output.post, bool(term.args.get("desc")), bool(term.args.get("nulls_first"))))
        return tuple(found)

    def _shows_all_keys(self) -> bool:
        shown = {output.post.index for _, output in self.columns if isinstance(output.post, KeyRef)}
        return shown == set(range(len(self.binder.keys)))

    def _lift(self, node: exp.Expr, name: str | None = None) -> exp.Expr:  # noqa: PLR0911 - one return a form
        """The node, with everything that the query releases replaced by a released column."""
        if isinstance(node, CONSTANTS):
            return node.copy()
        if isinstance(node, exp.Window):
            return self._lift_window(node)
        if isinstance(node, exp.Subquery):
            return exp.Subquery(this=self._transform(node.this))
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in self._aliased:
            found = self._try(node)
            return self._use_alias(node) if found is None else self._show(found, name)
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            apart = self._lift_people(node)
            if apart is not None:
                return apart
        elif not is_aggregate(node) and self._several and any(map(self._find_part, node.find_all(exp.Count))):
            return self._copy_with(node)
        found = self._try(node)
        if found is not None:
            return self._show(found, name)
        parts = [child for child in node.iter_expressions() if not isinstance(child, SYNTAX)]
        if not parts or is_aggregate(node) or isinstance(node, exp.Query) or not self._may_split(node):
            self.outputs.bind(node)  # raises
        return self._copy_with(node)

    def _may_split(self, node: exp.Expr) -> bool:
        """Does it contain a form that is computed from released values, or the alias of another column?"""
        names = (column.name.lower() for column in node.find_all(exp.Column) if not column.table)
        return is_result_form(node) or any(name in self._aliased for name in names)

    def _use_alias(self, node: exp.Column) -> exp.Expr:
        """The expression of an alias. Aliases of aliases could double it many times, so its size is limited."""
        made = self._aliased[node.name.lower()].copy()
        self._parts += sum(1 for _ in made.walk())
        if self._parts > MOST_PARTS:
            raise build_syntax_refusal(node, "The question has too many parts", SHORTEN)
        return made

    def _copy_with(self, node: exp.Expr) -> exp.Expr:
        args: dict[str, object] = {}
        for key, value in node.args.items():
            if isinstance(value, list):
                args[key] = [self._lift_part(part) for part in value]
            else:
                args[key] = self._lift_part(value)
        return type(node)(**args)

    def _lift_part(self, part: object) -> object:
        if not isinstance(part, exp.Expr):
            return part
        if isinstance(part, SYNTAX):
            return part.copy()
        if isinstance(part, (exp.If, exp.Ordered, exp.Order, exp.Tuple)):
            return self._copy_with(part)
        return self._lift(part)

    def _lift_window(self, node: exp.Expr) -> exp.Expr:
        """A window: its function is computed from released values, so only the arguments are released."""
        args: dict[str, object] = {}
        for key, value in node.args.items():
            if key == "this" and isinstance(value, exp.Expr) and not isinstance(value, SYNTAX):
                args[key] = self._copy_with(value)
            elif isinstance(value, list):
                args[key] = [self._lift_part(part) for part in value]
            else:
                args[key] = self._lift_part(value)
        return type(node)(**args)

    def _lift_term(self, term: exp.Ordered) -> exp.Ordered:
        number = read_ordinal(term.this, len(self.binder.selected))
        made = term.copy()
        made.set("this", exp.Literal.number(number + 1) if number is not None else self._lift(term.this))
        return made

    def _try(self, node: exp.Expr) -> Output | None:
        """Bind a node as a released column; None if a query cannot release it."""
        before, filters = len(self.outputs.aggregates), list(self.outputs.filters)
        try:
            found = self.outputs.bind(node)
        except QueryError:
            del self.outputs.aggregates[before:]
            self.outputs.filters = filters
            return None
        return found

    def _show(self, output: Output, name: str | None) -> exp.Expr:
        """The released column of an output. A whole column of the answer keeps its name."""
        for known, other in self.columns:
            if other.post == output.post:
                return exp.Column(this=quote(known))
        made = name if name is not None else f"{PART}{len(self.columns)}"
        self.columns.append((made, output))
        return exp.Column(this=quote(made))

    def _find_part(self, node: exp.Count) -> list[Expression] | None:
        """The condition under which COUNT(DISTINCT CASE WHEN c THEN id END) counts a person; None: another count."""
        listed = node.this.expressions if isinstance(node.this, exp.Distinct) else []
        return self.outputs.find_people(listed[0].unnest()) if len(listed) == 1 else None

    def _lift_people(self, node: exp.Count) -> exp.Expr | None:
        """COUNT(DISTINCT CASE WHEN c THEN id END) beside other aggregates: a query of its own, with c in WHERE."""
        conditions = self._find_part(node)
        if not conditions:
            return None
        if self._only_parts and (not self.outputs.aggregates or self.outputs.filters == conditions):
            return None  # where there are only such counts, the first is the query's own
        own = self.binder.make_outputs()
        own.filters, own.aggregates = conditions, [Aggregate("PEOPLE", None)]
        keys: list[tuple[str, Output]] = [
            (f"{PART}key{place}", Output(KeyRef(place), typed.type))
            for place, (typed, _) in enumerate(self.binder.keys)
        ]
        columns = [*keys, (f"{PART}people", Output(AggregateRef(0), "number"))]
        query = self.binder.make_query(own, columns)
        number = self._add_query(query, self.binder.find_types(own, columns), node)
        released = select_released(number, [f"{PART}people"])
        released.meta.clear()
        if keys:
            mine = [self._show(output, None) for _, output in keys]
            released.set(
                "where",
                exp.Where(
                    this=exp.and_(
                        *(
                            exp.NullSafeEQ(
                                this=exp.Column(this=quote(name), table=quote(f"released{number}")), expression=row
                            )
                            for (name, _), row in zip(keys, mine, strict=True)
                        )
                    )
                ),
            )
        self._apart[number] = released
        return exp.Subquery(this=released)
