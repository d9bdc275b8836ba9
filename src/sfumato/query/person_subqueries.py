"""A subquery about rows of the same person -> LEFT JOIN with one row for each person, or for each person and value.

The value that takes its place has the three truth values of SQL: EXISTS is true or false, IN may be unknown, and an
aggregate of no rows is NULL, except that COUNT is 0.
"""

from sqlglot import exp

from sfumato.query.parse import build_syntax_refusal
from sfumato.query.per_unit import resolve_key
from sfumato.query.public_subqueries import Joined, equate_pairs, make_join, name_pairs, pair_listed, read_listed
from sfumato.query.relation import DERIVED, is_hidden
from sfumato.query.row_expressions import RowBinder, has_aggregate, is_aggregate
from sfumato.query.subquery_links import Comparison, Links, SubqueryRows, filters_rows

OTHERS = (
    "Compare with rows of the same person: WHERE v.id = p.id in the subquery. For a number about everyone, ask for it "
    "first, and write the released number into this question."
)
AS_EXISTS = "Write EXISTS (SELECT 1 FROM t WHERE t.id = v.id AND t.x = v.x). NOT IN differs where a value is NULL."
ONE_AGGREGATE = "Select COUNT(*), SUM(x), AVG(x), MIN(x) or MAX(x)."
EACH_GROUP = (
    "Select the keys of GROUP BY too, among them the person's id: (id, x) IN (SELECT id, MAX(x) ... GROUP BY id)."
)
ALWAYS = "Leave it out, or select a column without an aggregate: EXISTS (SELECT 1 FROM ...)."


class PersonSubquery:
    """One subquery, and the joins that replace it."""

    def __init__(self, node: exp.Expr, select: exp.Select, alias: str, rows: SubqueryRows, links: Links) -> None:
        self.node, self.select, self.alias, self.rows, self.links = node, select, alias, rows, links
        self.scope = rows.relation.scope
        self.pairs = list(links.pairs)
        self.group = select.args.get("group")
        self.having = select.args.get("having")
        self.columns: list[exp.Expr] = []
        self.owner: exp.Column | None = None  # the person's id, where only an id that links to its row is compared
        self._measured = 0

    def join(self) -> Joined:  # noqa: PLR0911 - one return a form
        """The joins and the value."""
        self._check_limit()
        selected = any(has_aggregate(column) for column in self.select.expressions)
        aggregated = self.having is not None or selected
        one_row = aggregated and self.group is None
        if isinstance(self.node, exp.In) and selected and not one_row:
            return self._compare_groups(self.node)
        if isinstance(self.node, exp.In) and not one_row:
            self.pairs = [*pair_listed(self.node, self.select, self.rows.relation), *self.pairs]
        if not any(self.scope.leads_to_person(column) for column, _ in self.pairs):
            self.owner = self._find_owner()
        if self.owner is not None and isinstance(self.node, exp.In) and not filters_rows(self.node):
            raise build_syntax_refusal(self.node, "IN (SELECT ...)[at] may be unknown here", AS_EXISTS)
        if self.owner is None and not any(self.scope.leads_to_person(column) for column, _ in self.pairs):
            what = "A subquery[at] compares with rows of other people"
            raise build_syntax_refusal(self.node, what, OTHERS)
        if self.links.comparisons:
            return self._join_comparison()
        if isinstance(self.node, exp.In) and one_row:
            return self._compare_with_aggregate(self.node)
        if isinstance(self.node, exp.Subquery):
            return self._join_aggregate()
        if one_row:
            return self._join_having()
        value = self._is_there("n")
        if not isinstance(self.node, exp.In) or filters_rows(self.node):
            return Joined((self._join_groups(),), value)
        if not any(self.scope.leads_to_person(column) for column, _ in self.links.pairs):
            return Joined((self._join_groups(),), self._compare_ids(self.node, value))
        return self._join_list(self.node, value)

    def _find_owner(self) -> exp.Column | None:
        """orders.oid = lines.oid in a subquery about orders: the person who has the order. The join checks the link."""
        for column, _ in self.pairs:
            item, name = self.scope.resolve(column) if isinstance(column, exp.Column) else (None, "")
            if item is not None and item.person and item.table != DERIVED and name in item.links:
                return exp.column(min(item.person), item.alias)
        return None

    def _check_limit(self) -> None:
        """LIMIT 1 in EXISTS changes nothing. Others would select rows."""
        limit = self.select.args.get("limit")
        if limit is None:
            return
        text = str(limit.expression.this) if isinstance(limit.expression, exp.Literal) else ""
        if not isinstance(self.node, exp.Exists) or not text.isdigit() or int(text) < 1:
            hint = "Leave it out, if the question means the same without it."
            raise build_syntax_refusal(limit, "LIMIT[at] in a subquery about rows of people is not supported", hint)

    def _compare_with_aggregate(self, node: exp.In) -> Joined:
        """x IN (SELECT MAX(y) ...) has one row to compare with: x = (SELECT MAX(y) ...). HAVING may drop the row."""
        measured = self._measure(read_listed(node, self.select, self.rows.relation))
        value: exp.Expr = exp.Paren(this=exp.EQ(this=node.this.copy(), expression=measured))
        if self.having is not None:
            kept = exp.If(this=self._measure(self.having.this), true=value)
            value = exp.Case(ifs=[kept], default=exp.false())
        return Joined((self._join_groups(),), value)

    def _compare_groups(self, node: exp.In) -> Joined:
        """(id, d) IN (SELECT id, MAX(d) ... GROUP BY id): the row of the outer id has this greatest day."""
        listed = pair_listed(node, self.select, self.rows.relation)
        self.pairs = [pair for pair in listed if not has_aggregate(pair[0])] + self.pairs
        linked = any(self.scope.leads_to_person(column) for column, _ in self.pairs)
        if not linked or not filters_rows(node) or self._list_other_keys():
            raise build_syntax_refusal(node, "IN (SELECT ...)[at] lists values of several groups", EACH_GROUP)
        compared = [exp.EQ(this=two.copy(), expression=self._measure(one)) for one, two in listed if has_aggregate(one)]
        return Joined((self._join_groups(),), exp.Paren(this=exp.and_(self._is_there("n"), *compared)))

    def _compare_ids(self, node: exp.In, there: exp.Expr) -> exp.Expr:
        """id NOT IN (SELECT id ...): the list has no NULL. The id may be NULL after an outer join, or if it links."""
        if any(join.side for join in self.select.args.get("joins") or []):
            raise build_syntax_refusal(
                node, "IN (SELECT ...)[at] lists ids that an outer join may leave out", AS_EXISTS
            )
        around = node.find_ancestor(exp.Select)
        kept = [] if around is None else [join for join in around.args.get("joins") or [] if join.side]
        if self.scope.is_person(self.pairs[0][0]) and all(is_hidden(join.this.alias) for join in kept):
            return there
        missing = exp.If(this=exp.Is(this=node.this.copy(), expression=exp.Null()), true=exp.Null())
        return exp.Case(ifs=[missing], default=there)

    def _join_aggregate(self) -> Joined:
        """(SELECT SUM(x) ...) in the place of a number."""
        selected = self.select.expressions[0].unalias() if len(self.select.expressions) == 1 else None
        if selected is None or not has_aggregate(selected) or (self.group is not None and self._list_other_keys()):
            what = "A subquery in the place of a number[at] needs one aggregate, and one row for each outer row"
            raise build_syntax_refusal(self.node, what, ONE_AGGREGATE)
        if self.group is not None:  # no row, and so NULL, where there is no group
            self.columns.append(exp.alias_(selected.copy(), "v"))
            return Joined((self._join_groups(),), self._name("v"))
        value = self._measure(selected)
        if self.having is not None:
            value = exp.Case(ifs=[exp.If(this=self._measure(self.having.this), true=value)])
        return Joined((self._join_groups(),), exp.Paren(this=value))

    def _join_having(self) -> Joined:
        """EXISTS (SELECT 1 ... HAVING COUNT(*) > 3): without GROUP BY there is one row, also of no rows."""
        if self.having is None:
            what = "EXISTS[at] of an aggregate without GROUP BY is always true: it has one row"
            raise build_syntax_refusal(self.node, what, ALWAYS)
        met = exp.Case(ifs=[exp.If(this=self._measure(self.having.this), true=exp.true())], default=exp.false())
        return Joined((self._join_groups(),), met)

    def _measure(self, expression: exp.Expr) -> exp.Expr:
        """An expression of aggregates, with columns of the join in their places. It is computed for the outer row."""
        made = exp.Paren(this=expression.copy())
        for average in [node_below for node_below in made.walk(prune=is_aggregate) if isinstance(node_below, exp.Avg)]:
            self._keep_equal_values(average)
        for node in [node_below for node_below in made.walk(prune=is_aggregate) if is_aggregate(node_below)]:
            name = f"v{self._measured}"
            self._measured += 1
            self.columns.append(exp.alias_(node.copy(), name))
            value = self._name(name)
            if isinstance(node, exp.Count):
                value = exp.Coalesce(this=value, expressions=[exp.Literal.number(0)])
            node.replace(value)
        for column in made.find_all(exp.Column):
            if column.table != self.alias and self.rows.is_inner(column):
                what = "A subquery in the place of a number[at] needs one aggregate"
                raise build_syntax_refusal(column, what, ONE_AGGREGATE)
        return made

    def _keep_equal_values(self, node: exp.Avg) -> None:
        """AVG(x) of equal reals is x, which may be compared with it: others are added up on a grid."""
        if isinstance(node.this, exp.Distinct) or RowBinder(self.scope).bind(node.this).whole:
            return
        least, most = exp.Min(this=node.this.copy()), exp.Max(this=node.this.copy())
        equal = exp.If(this=exp.EQ(this=least, expression=most), true=least.copy())
        node.replace(exp.Case(ifs=[equal], default=node.copy()))

    def _join_comparison(self) -> Joined:
        """EXISTS (... AND inner < outer): the least inner value is below the outer one. NULL makes it false."""
        (one,) = self.links.comparisons
        value = exp.Case(ifs=[exp.If(this=self._compare_ends(one), true=exp.true())], default=exp.false())
        return Joined((self._join_groups(),), value)

    def _compare_ends(self, one: Comparison) -> exp.Expr:
        ends: dict[type[exp.Expr], tuple[type[exp.Expr], ...]] = {
            exp.LT: (exp.Min,), exp.LTE: (exp.Min,), exp.GT: (exp.Max,), exp.GTE: (exp.Max,),
        }  # fmt: skip
        compared = []
        for end in ends.get(one.kind, (exp.Min, exp.Max)):
            measured = self._measure(end(this=one.inner.copy()))
            compared.append(one.kind(this=measured, expression=one.outer.copy()))
        return exp.or_(*compared)

    def _join_list(self, node: exp.In, there: exp.Expr) -> Joined:
        """x IN (SELECT y ...) that may be unknown: if it is not found, and x is NULL or a y is NULL."""
        if self.group is not None:
            raise build_syntax_refusal(node, "IN (SELECT ... GROUP BY ...)[at] compares a value within one person",
                                       AS_EXISTS)  # fmt: skip
        first = self._join_groups()
        listed = f"{self.alias}_list"
        every = PersonSubquery(exp.Exists(this=self.select), self.select, listed, self.rows, self.links)
        every.columns.append(exp.alias_(exp.Count(this=self.pairs[0][0].copy(), big_int=True), "m"))
        fewer = exp.LT(this=every._name("m"), expression=every._name("n"))
        unknown = exp.or_(exp.Is(this=node.this.copy(), expression=exp.Null()), fewer)
        nothing = exp.Is(this=every._name("n"), expression=exp.Null())
        ifs = [exp.If(this=there, true=exp.true()), exp.If(this=nothing, true=exp.false())]
        value = exp.Case(ifs=[*ifs, exp.If(this=unknown, true=exp.Null())], default=exp.false())
        return Joined((first, every._join_groups()), value)

    def _list_other_keys(self) -> list[exp.Expr]:
        """The keys of GROUP BY that are not compared with the outer row. The others have one value for it."""
        compared = {self._write_name(column) for column, _ in self.pairs}
        keys = [resolve_key(key, self.select, self.scope) for key in self.select.args["group"].expressions]
        return [key for key in keys if self._write_name(key) not in compared]

    def _write_name(self, node: exp.Expr) -> str:
        if not isinstance(node, exp.Column):
            return node.sql()
        item, name = self.scope.resolve(node)
        return f"{item.alias}.{name}"

    def _join_groups(self) -> exp.Join:
        """The join with one row for each value of the compared columns."""
        made = self.select.copy()
        others = [] if self.group is None else self._list_other_keys()
        keys, named = [column.copy() for column, _ in self.pairs], name_pairs(self.pairs)
        keys += [] if self.owner is None else [self.owner.copy()]
        counted = exp.alias_(exp.Count(this=exp.Star(), big_int=True), "n")
        inside = [condition.copy() for condition in self.links.inside]
        made.set("where", exp.Where(this=exp.and_(*inside)) if inside else None)
        made.set("expressions", named if others else [*named, counted, *self.columns])
        made.set("group", exp.Group(expressions=[*keys, *(key.copy() for key in others)]))
        if self.group is None:
            made.set("having", None)
        for clause in ("limit", "order", "distinct"):
            made.set(clause, None)
        if others:  # of the groups that HAVING keeps, one row for each value
            inner = exp.Subquery(this=made, alias=exp.TableAlias(this=exp.Identifier(this="grouped")))
            columns = [exp.column(f"k{place}") for place in range(len(self.pairs))]
            made = exp.Select(expressions=[*columns, counted], from_=exp.From(this=inner))
            made.set("group", exp.Group(expressions=[column.copy() for column in columns]))
        return make_join(made, self.alias, equate_pairs(self.pairs, self.alias))

    def _is_there(self, column: str) -> exp.Expr:
        return exp.Not(this=exp.Is(this=self._name(column), expression=exp.Null()))

    def _name(self, column: str) -> exp.Expr:
        """A column of the join. It is NULL where a condition on the outer row does not hold: no row is met then."""
        found = exp.column(column, self.alias)
        if not self.links.outside:
            return found
        return exp.Case(
            ifs=[exp.If(this=exp.and_(*(condition.copy() for condition in self.links.outside)), true=found)]
        )


def compares_ends(node: exp.Expr, select: exp.Select, rows: SubqueryRows, links: Links) -> bool:
    """Is it EXISTS (... AND inner < outer), of which the least or the greatest inner value is enough?"""
    (one, *more) = links.comparisons
    if more or not isinstance(node, exp.Exists) or any(map(select.args.get, ("group", "having"))):
        return False
    if any(has_aggregate(column) for column in select.expressions) or one.inner.find(exp.Query):
        return False
    typed = RowBinder(rows.relation.scope).bind(one.inner)
    return typed.type in ("date", "datetime") or (typed.whole and typed.lower is not None and typed.upper is not None)
