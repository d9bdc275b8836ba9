"""A question over released results -> the queries that are released, and the SQL that makes the answer from them.

A SELECT over rows of private tables with aggregates is a query: it is measured, and its rows are released. Whatever
stands above it (windows, outer SELECTs, joins of results, UNION ALL) is post-processing of released rows. Rows of a
public table belong to nobody, so they may stand beside results: they are written into that SQL.
"""

from dataclasses import replace

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.catalog.names import find_name
from sfumato.errors import QueryError
from sfumato.query.decided_comparisons import add_caution
from sfumato.query.different_rows import count_different_rows
from sfumato.query.dp_options import DpOptions
from sfumato.query.empty_groups import warn_of_empty_groups
from sfumato.query.finish import RELEASED, build_finish, select_released
from sfumato.query.from_clause import FromBinder
from sfumato.query.grouping_sets import expand_grouping_sets
from sfumato.query.hints import ONLY_PUBLIC
from sfumato.query.lifted_select import LiftedSelect, needs_lifting
from sfumato.query.parse import DP_OPTIONS, build_syntax_refusal, parse
from sfumato.query.public_values import MOST_LISTED, find_public_table, list_public_rows
from sfumato.query.query import Query
from sfumato.query.row_expressions import has_aggregate
from sfumato.query.schema_names import check_schema
from sfumato.query.select_binder import SelectBinder, read_limit
from sfumato.query.single_rows import take_single_values
from sfumato.query.with_clause import CTEs, collect_ctes

MOST_QUERIES = 16
NO_REPORT = (
    "report_format is left out: the answer has its own intervals, and to_dict() and `ask --json` write them as JSON."
)
LONG_TABLE = (
    "Join it inside the subquery that is aggregated, or join the answer's rows with it in Python: that is free."
)
RAW_TABLE = "Aggregate the table in a subquery first, or join it inside the subquery that is aggregated."


class ResultBinder:
    """Finds the queries of a question, and what is computed from their released rows."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.queries: list[Query] = []
        self.types: list[tuple[tuple[str, str], ...]] = []
        self._options: DpOptions | None = None

    def bind(self, tree: exp.Query) -> Query:
        """Bind a question."""
        found = tree.meta.get(DP_OPTIONS)
        self._options = found if isinstance(found, DpOptions) else None
        if self._options is not None and self._options.report_format:
            add_caution(NO_REPORT)
        for clause in tree.find_all(exp.Limit, exp.Offset):
            read_limit(clause)
        finished = self.transform(tree, {})
        if not self.queries:
            raise build_syntax_refusal(
                tree,
                "The question does not need the data",
                ONLY_PUBLIC if tree.find(exp.Table) else "Ask about a private table, with COUNT(*), SUM(x) or AVG(x).",
            )
        if any(query.keys and all(key.values is not None for key in query.keys) for query in self.queries):
            warn_of_empty_groups(tree, finished)
        first = self.queries[0]
        if len(self.queries) == 1 and isinstance(finished, exp.Select) and finished.meta.get(RELEASED):
            return first
        finish, together = build_finish(finished, self.queries, tuple(self.types))
        beside = tuple(replace(query, together=together) for query in self.queries[1:])
        return replace(first, finish=finish, together=together, beside=beside)

    def transform(self, node: exp.Expr, known: CTEs) -> exp.Query:
        """The SQL over released rows that has the same rows as a SELECT or UNION."""
        node = node.unnest() if isinstance(node, (exp.Paren, exp.Subquery)) else node
        if isinstance(node, exp.SetOperation):
            return self._transform_union(node, collect_ctes(node, known))
        if not isinstance(node, exp.Select):
            raise build_syntax_refusal(node, "A subquery must be one SELECT", "Write (SELECT ... FROM ...).")
        own = collect_ctes(node, known)
        expanded = expand_grouping_sets(node)
        if expanded is not None:
            return self.transform(expanded, own)
        if self._reads_results(node, own):
            return self._transform_outer(node, own)
        return self._transform_query(node, own)

    def add_query(self, query: Query, types: tuple[tuple[str, str], ...], node: exp.Expr) -> int:
        """The number of a query among the releases. An equal query is released once."""
        if query in self.queries:
            return self.queries.index(query)
        if len(self.queries) >= MOST_QUERIES:
            raise build_syntax_refusal(
                node, f"The question needs more than {MOST_QUERIES} releases", "Ask several questions."
            )
        self.queries.append(query)
        self.types.append(types)
        return len(self.queries) - 1

    def _transform_union(self, node: exp.SetOperation, known: CTEs) -> exp.Query:
        sides = [self.transform(side, known) for side in (node.this, node.expression)]
        made = type(node)(this=sides[0], expression=sides[1], distinct=node.args.get("distinct"))
        for clause in ("order", "limit", "offset"):
            if node.args.get(clause) is not None:
                made.set(clause, node.args[clause].copy())
        return made

    def _transform_query(self, node: exp.Select, known: CTEs) -> exp.Query:
        """A SELECT over rows: it is released as it is, or its aggregates are, and DuckDB computes the rest."""
        source = node.args.get("from_")
        inner, _, scope = (None, "", known) if source is None else self._find_subquery(source.this, known)
        bare = inner.unnest() if isinstance(inner, (exp.Paren, exp.Subquery)) else inner
        counted = count_different_rows(node, bare, lambda rows: FromBinder(self.dataset).bind_rows(rows, scope))
        if counted is not None:
            return self._transform_query(counted, scope)
        binder = SelectBinder(node, self.dataset, known, self._options)
        try:
            query, types = binder.bind_plain()
        except QueryError:
            if not needs_lifting(node):
                raise
            return LiftedSelect(binder, lambda inner: self.transform(inner, known), self.add_query).build()
        return select_released(self.add_query(query, types, node), [name for name, _ in types])

    def _transform_outer(self, node: exp.Select, known: CTEs) -> exp.Query:
        """A SELECT over results: every subquery in it becomes its released rows."""
        made = node.copy()
        made.set("with_", None)
        if node.args.get("from_") is not None:
            made.args["from_"].set("this", self._transform_item(node.args["from_"].this, known))
        for join, copied in zip(node.args.get("joins") or [], made.args.get("joins") or [], strict=True):
            copied.set("this", self._transform_item(join.this, known))
            condition = copied.args.get("on")
            if condition is not None and condition.find(exp.Query) is not None:
                copied.set("on", exp.Paren(this=condition.copy()))
                self.transform_inner(copied.args["on"], known)
        self.transform_inner(made, known)
        _expand_star(made)
        return made

    def transform_inner(self, made: exp.Expr, known: CTEs) -> None:
        """Replace the subqueries inside the expressions of a SELECT by their released rows."""
        for name, value in list(made.args.items()):
            if name in ("from_", "joins", "with_"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, exp.Expr):
                    continue
                if isinstance(child, exp.Subquery):
                    child.replace(exp.Subquery(this=self._transform_inside(child.this, known)))
                elif isinstance(child, exp.Query):
                    child.replace(self._transform_inside(child, known))
                else:
                    self.transform_inner(child, known)

    def _transform_item(self, node: exp.Expr, known: CTEs) -> exp.Expr:
        inner, alias, scope = self._find_subquery(node, known)
        if inner is None:
            table = find_public_table(node, self.dataset)
            rows = None if table is None else list_public_rows(table)
            if table is not None and rows is None:
                what = f"The public table {node.name}[at] has more than {MOST_LISTED:,} rows, and stands beside results"
                raise build_syntax_refusal(node, what, LONG_TABLE)
            if rows is None:
                what = f"The table {node.name}[at] has rows of people, and is combined with results"
                raise build_syntax_refusal(node, what, RAW_TABLE)
            made = exp.Subquery(this=rows)
        else:
            made = exp.Subquery(this=self._transform_inside(inner, scope))
        made.set("alias", exp.TableAlias(this=exp.Identifier(this=alias, quoted=True)))
        return made

    def _transform_inside(self, node: exp.Expr, known: CTEs) -> exp.Query:
        """A subquery beside results: of released rows, or of public tables alone."""
        bare = node.unnest() if isinstance(node, (exp.Paren, exp.Subquery)) else node
        if isinstance(bare, exp.Select) and self._is_public(bare, known):
            return self._transform_outer(bare, collect_ctes(bare, known))
        return self.transform(node, known)

    def _is_public(self, node: exp.Expr | None, known: CTEs) -> bool:
        """Is it a SELECT that reads public tables, and nothing else?"""
        node = node.unnest() if isinstance(node, (exp.Paren, exp.Subquery)) else node
        source = node.args.get("from_") if isinstance(node, exp.Select) else None
        if node is None or source is None:
            return False
        own = collect_ctes(node, known)
        for item in [source.this, *(join.this for join in node.args.get("joins") or [])]:
            inner, _, scope = self._find_subquery(item, own)
            if not (find_public_table(item, self.dataset) if inner is None else self._is_public(inner, scope)):
                return False
        return True

    def _find_subquery(self, node: exp.Expr, known: CTEs) -> tuple[exp.Expr | None, str, CTEs]:
        """The SELECT behind an item of FROM, its alias, and the CTEs that it sees. None: a table."""
        if isinstance(node, exp.Subquery):
            return node.this, node.alias or "subquery", known
        if isinstance(node, exp.Table):
            check_schema(node, self.dataset)
        cte = find_name(node.name, known) if isinstance(node, exp.Table) and node.args.get("db") is None else None
        if cte is not None:
            return known[cte].node, node.alias or cte, known[cte].known
        view = find_name(node.name, self.dataset.views)
        if view is not None:
            return parse(self.dataset.views[view]), node.alias or view, {}
        return None, node.alias_or_name, known

    def _reads_results(self, node: exp.Select, known: CTEs) -> bool:
        source = node.args.get("from_")
        if source is None:
            return not has_aggregate(node)
        items = [source.this, *(join.this for join in node.args.get("joins") or [])]
        return any(self._is_result(*self._find_subquery(item, known)) for item in items)

    def _is_result(self, node: exp.Expr | None, _alias: str, known: CTEs) -> bool:
        """Are its rows released results, and not rows of people?"""
        if node is None:
            return False
        node = node.unnest() if isinstance(node, (exp.Paren, exp.Subquery)) else node
        if isinstance(node, exp.SetOperation):
            own = collect_ctes(node, known)
            return any(self._is_result(side, "", own) for side in (node.this, node.expression))
        if not isinstance(node, exp.Select):
            return False
        own = collect_ctes(node, known)
        if node.args.get("from_") is None or self._reads_results(node, own):
            return True
        if node.args.get("group") is None and not any(has_aggregate(column) for column in node.expressions):
            return False
        return not self._has_own_rows(node, own)

    def _has_own_rows(self, node: exp.Select, known: CTEs) -> bool:
        """Has a SELECT with GROUP BY rows of people, or those of a public table whose keys occur once?"""
        binder = FromBinder(self.dataset)
        if self._is_public(node, known):
            return take_single_values(node, binder.bind_rows(node, known)).args.get("group") is None
        return binder.groups_by_person(node, known)


def _expand_star(select: exp.Select) -> None:
    """Name the columns of SELECT * over one subquery, so that they can be traced to released columns."""
    source = select.args.get("from_")
    inner = None if source is None else source.this
    while isinstance(inner, (exp.Subquery, exp.Paren, exp.SetOperation)):
        inner = inner.this
    if select.args.get("joins") or not isinstance(inner, exp.Select):
        return
    names = [node.alias_or_name for node in inner.expressions]
    expanded: list[exp.Expr] = []
    for node in select.expressions:
        star = isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
        expanded += [exp.Column(this=exp.Identifier(this=name, quoted=True)) for name in names] if star else [node]
    if all(names) and "*" not in names:
        select.set("expressions", expanded)
