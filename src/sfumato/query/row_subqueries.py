"""IN (SELECT ...), EXISTS (SELECT ...) and (SELECT COUNT(*) ...) in a condition on rows -> LEFT JOIN.

The subquery is about the same person (one row for each person and value is joined) or about a public table that has at
most one row for each value. A row then meets one row at most, so the join neither repeats rows nor costs anything.
"""

from dataclasses import dataclass

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.catalog.names import find_name
from sfumato.kernel.row_sources import derive_extent
from sfumato.query.from_clause import FromBinder
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.relation import Relation
from sfumato.query.row_expressions import flatten, has_aggregate, is_aggregate
from sfumato.query.with_clause import CTEs

ALIAS = "__sfumato_subquery"
OTHERS = (
    "Compare with rows of the same person: WHERE v.id = p.id in the subquery. For a number about everyone, ask for it "
    "first, and write the released number into this question."
)
AS_EXISTS = "Write EXISTS (SELECT 1 FROM t WHERE t.id = v.id AND t.x = v.x). NOT IN differs where a value is NULL."
KNOWN = "The table is public: compute the value from it yourself, and write it into the question."
ONE_ROW = "Compare with a column that has each value once in the public table, and declare that it is unique."
EQUALITY = "Write the condition as inner column = outer column, or use an inner join."


def join_subqueries(tree: exp.Select, dataset: Dataset, ctes: CTEs) -> exp.Select:
    """The SELECT with its subqueries over rows as joins. One without such subqueries is returned as it is."""
    if not _find_subqueries(tree, dataset, ctes):
        return tree
    made = tree.copy()
    for number, node in enumerate(_find_subqueries(made, dataset, ctes)):
        joined = _Subquery(node, f"{ALIAS}{number}", dataset, ctes).join()
        made.append("joins", joined.join)
        node.replace(joined.value)
    return made


def _find_subqueries(tree: exp.Select, dataset: Dataset, ctes: CTEs) -> list[exp.Expr]:
    """The subqueries in WHERE, and those in other clauses that are about the same row."""
    found: list[exp.Expr] = []
    if all(inner is tree for inner in tree.find_all(exp.Query)):
        return found
    for clause in ("where", "group"):
        if tree.args.get(clause) is not None:
            found += _list_outermost(tree.args[clause])
    for column in tree.expressions:
        found += [node for node in _list_outermost(column) if _is_about_a_row(node, tree)]
    return found


def _list_outermost(node: exp.Expr) -> list[exp.Expr]:
    def is_subquery(inner: exp.Expr) -> bool:
        listed = isinstance(inner, exp.In) and inner.args.get("query") is not None
        return listed or isinstance(inner, (exp.Exists, exp.Subquery))

    return [inner for inner in node.walk(prune=is_subquery) if is_subquery(inner)]


def _is_about_a_row(node: exp.Expr, tree: exp.Select) -> bool:
    """Does a subquery among the selected columns name a table of the outer SELECT, or stand in an aggregate?"""
    items = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or [])]
    outer = [item.alias_or_name for item in items] if tree.args.get("from_") is not None else []
    above = node.parent
    while above is not None and above is not tree:
        if is_aggregate(above):
            return True
        above = above.parent
    return any(find_name(column.table, outer) is not None for column in node.find_all(exp.Column) if column.table)


def _split_and(node: exp.Expr) -> list[exp.Expr]:
    return flatten(node) if isinstance(node.unnest(), exp.And) else [node]


@dataclass(frozen=True, slots=True)
class _Joined:
    """The join that replaces a subquery, and the value that stands in its place."""

    join: exp.Join
    value: exp.Expr


class _Subquery:
    """One subquery: its rows, the equalities that link it to the outer row, and its other conditions."""

    def __init__(self, node: exp.Expr, alias: str, dataset: Dataset, ctes: CTEs) -> None:
        self.node, self.alias = node, alias
        inner = node.args["query"] if isinstance(node, exp.In) else node.this
        inner = inner.unnest() if isinstance(inner, (exp.Subquery, exp.Paren)) else inner
        if not isinstance(inner, exp.Select) or inner.args.get("from_") is None:
            raise build_syntax_refusal(
                node, "A subquery in a condition must be one SELECT", "Write (SELECT ... FROM ...)."
            )
        self.select = inner
        self.pairs: list[tuple[exp.Expr, exp.Expr]] = []  # inner column, outer expression
        self.others: list[exp.Expr] = []
        self.relation = self._bind_rows(dataset, ctes)
        self._read_links()

    def _bind_rows(self, dataset: Dataset, ctes: CTEs) -> Relation:
        """The rows of its FROM, before its conditions."""
        probe = exp.Select(from_=self.select.args["from_"].copy(), expressions=[exp.Star()])
        joins = self.select.args.get("joins") or []
        probe.set("joins", [join.copy() for join in joins])
        return FromBinder(dataset).bind_rows(probe, ctes)

    def _is_inner(self, column: exp.Column) -> bool:
        aliases = [item.alias for item in self.relation.items]
        if column.table:
            return find_name(column.table, aliases) is not None
        return self.relation.scope.has_column(column.name)

    def _read_links(self) -> None:
        where = self.select.args.get("where")
        for condition in [] if where is None else _split_and(where.this):
            if all(map(self._is_inner, condition.find_all(exp.Column))):
                self.others.append(condition)
                continue
            bare = condition.unnest()
            sides = [(bare.this, bare.expression), (bare.expression, bare.this)] if isinstance(bare, exp.EQ) else []
            linked = [(one.unnest(), two) for one, two in sides if self._is_side(one) and self._is_outer(two)]
            if not linked:
                raise build_syntax_refusal(
                    condition, "This condition[at] links a subquery to the outer row other than by '='", EQUALITY
                )
            self.pairs.append(linked[0])
        if isinstance(self.node, exp.In):
            (selected, *more) = self.select.expressions
            if more or isinstance(selected, exp.Star):
                raise build_syntax_refusal(self.node, "IN (SELECT ...) needs one column", "Select one column.")
            self.pairs.insert(0, (selected.unalias(), self.node.this))

    def _is_side(self, node: exp.Expr) -> bool:
        bare = node.unnest()
        return isinstance(bare, exp.Column) and self._is_inner(bare)

    def _is_outer(self, node: exp.Expr) -> bool:
        columns = list(node.find_all(exp.Column))
        return bool(columns) and not any(map(self._is_inner, columns))

    def join(self) -> _Joined:
        """The join and the value."""
        return self._join_person() if derive_extent(self.relation.source).private else self._join_public()

    def _join_person(self) -> _Joined:
        """One row for each person, and for each value of the other columns that are compared."""
        scope = self.relation.scope
        if not any(scope.leads_to_person(column) for column, _ in self.pairs):
            what = "A subquery[at] compares with rows of other people"
            raise build_syntax_refusal(self.node, what, OTHERS)
        if len(self.pairs) > 1 and isinstance(self.node, exp.In):  # NULL in the list makes NOT IN true for no row
            raise build_syntax_refusal(self.node, "IN (SELECT ...)[at] compares a value within one person", AS_EXISTS)
        made = self.select.copy()
        columns = [exp.alias_(column.copy(), f"k{place}") for place, (column, _) in enumerate(self.pairs)]
        columns.append(exp.alias_(exp.Count(this=exp.Star(), big_int=True), "n"))
        value: exp.Expr = exp.Not(this=exp.Is(this=self._name("n"), expression=exp.Null()))
        if isinstance(self.node, exp.Subquery):
            selected = self.select.expressions[0].unalias() if len(self.select.expressions) == 1 else None
            if selected is None or not has_aggregate(selected):
                what = "A subquery in the place of a number[at] needs one aggregate"
                raise build_syntax_refusal(self.node, what, "Select COUNT(*), SUM(x), AVG(x), MIN(x) or MAX(x).")
            columns.append(exp.alias_(selected.copy(), "v"))
            value = self._name("v")
            if isinstance(selected, exp.Count):
                value = exp.Coalesce(this=value, expressions=[exp.Literal.number(0)])
        made.set("expressions", columns)
        made.set("where", exp.Where(this=exp.and_(*(one.copy() for one in self.others))) if self.others else None)
        made.set("group", exp.Group(expressions=[column.copy() for column, _ in self.pairs]))
        for clause in ("limit", "order", "distinct"):
            made.set(clause, None)
        return _Joined(self._make_join(made, self._equate_pairs()), value)

    def _join_public(self) -> _Joined:
        """The row of a public table that has the value."""
        if not self.pairs:
            raise build_syntax_refusal(self.node, "A subquery[at] has one value for all rows", KNOWN)
        if any(has_aggregate(column) for column in self.select.expressions) or self.select.args.get("group"):
            raise build_syntax_refusal(self.node, "A subquery[at] aggregates a public table", KNOWN)
        most = []
        for column, _ in self.pairs:
            if isinstance(column, exp.Column):
                item, name = self.relation.scope.resolve(column)
                most.append((item.public or {}).get(name, 0))
        if not most or min(most) != 1:
            what = "Several rows of the public table may have the same value here"
            raise build_syntax_refusal(self.node, what, ONE_ROW)
        columns = [exp.alias_(column.copy(), f"k{place}") for place, (column, _) in enumerate(self.pairs)]
        there = exp.Not(this=exp.Is(this=self._name("k0"), expression=exp.Null()))
        value: exp.Expr = there
        if isinstance(self.node, exp.In):  # NULL IN (...) is NULL
            unknown = exp.If(this=exp.Is(this=self.node.this.copy(), expression=exp.Null()), true=exp.Null())
            value = exp.Case(ifs=[unknown], default=there)
        elif isinstance(self.node, exp.Subquery):
            columns.append(exp.alias_(self.select.expressions[0].unalias().copy(), "v"))
            value = self._name("v")
        made = exp.Select(expressions=columns, from_=self.select.args["from_"].copy())
        made.set("joins", [join.copy() for join in self.select.args.get("joins") or []])
        if self.others:
            made.set("where", exp.Where(this=exp.and_(*(one.copy() for one in self.others))))
        return _Joined(self._make_join(made, self._equate_pairs()), value)

    def _equate_pairs(self) -> exp.Expr:
        """The condition that links the outer row to the row of the subquery."""
        return exp.and_(
            *(exp.EQ(this=two.copy(), expression=self._name(f"k{place}")) for place, (_, two) in enumerate(self.pairs))
        )

    def _name(self, column: str) -> exp.Column:
        return exp.column(column, self.alias)

    def _make_join(self, select: exp.Select, on: exp.Expr) -> exp.Join:
        alias = exp.TableAlias(this=exp.Identifier(this=self.alias, quoted=True))
        return exp.Join(this=exp.Subquery(this=select, alias=alias), side="LEFT", on=on)
