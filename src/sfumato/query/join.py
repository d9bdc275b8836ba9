"""One JOIN: the rows of two relations that belong together, with the person carried through."""

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from sfumato.kernel.expressions import Column, ColumnType, Expression
from sfumato.kernel.row_sources import MOST_MET, MOST_REPEATED, Derived, Join, Source, extent
from sfumato.query.capped_scans import cap_scans
from sfumato.query.parse import syntax_refusal
from sfumato.query.query import Typed
from sfumato.query.relation import FromItem, Relation, Scope
from sfumato.query.row_expressions import RowBinder, flatten
from sfumato.query.size_limits import PartCounter

COLUMN_TYPES = {
    "number": ColumnType.REAL, "text": ColumnType.TEXT, "boolean": ColumnType.BOOLEAN,
    "date": ColumnType.DATE, "datetime": ColumnType.DATETIME, "id": ColumnType.ID,
}  # fmt: skip
DECLARED_AS = {"number": "integer"}  # what a type is called in a catalog, where that is another name
JOINED_ON = "Join on the person's id in both tables, or on the declared link between them (unit_through)."


class JoinBinder:
    """One JOIN: its conditions, told apart, and the source that they make."""

    def __init__(self, node: exp.Join, left: Relation, right: Relation, outer: bool) -> None:
        self.node, self.left, self.right, self.outer = node, left, right, outer
        self.pairs: list[tuple[Typed, Typed]] = []
        self.same_person = False
        self.multiplicity: int | None = None
        self.others: list[exp.Expr] = []
        self._counter = PartCounter()
        self._read_conditions()

    def _read_conditions(self) -> None:
        using = self.node.args.get("using") or []
        for name in using:
            self._add_pair(self.node, exp.column(name.name), exp.column(name.name))
        on = self.node.args.get("on")
        for each in [] if on is None else flatten(on) if isinstance(on.unnest(), exp.And) else [on]:
            bare = each.unnest()
            if isinstance(bare, exp.EQ) and self._read_equality(bare):
                continue
            self.others.append(each)
        if not using and on is None:
            raise syntax_refusal(self.node, "A join needs a condition", "Write JOIN ... ON a.id = b.id.")

    def _find_side(self, node: exp.Expr) -> Relation | None:
        """The one side that an expression is about."""
        both = Scope((*self.left.items, *self.right.items))
        names = {id(both.resolve(each)[0]) for each in node.find_all(exp.Column)}
        for side in (self.left, self.right):
            if names and names <= {id(part) for part in side.items}:
                return side
        return None

    def _read_equality(self, node: exp.EQ) -> bool:
        sides = self._find_side(node.this), self._find_side(node.expression)
        if sides == (self.left, self.right) and sides[0] is self.left:
            return self._add_pair(node, node.this, node.expression)
        if sides[0] is self.right and sides[1] is self.left:
            return self._add_pair(node, node.expression, node.this)
        return False

    def _add_pair(self, node: exp.Expr, one: exp.Expr, two: exp.Expr) -> bool:
        mine, theirs = self._bind_side(self.left, one), self._bind_side(self.right, two)
        for each in (mine, theirs):
            self._counter.add(node, each.expression)
        if "id" in (mine.type, theirs.type) and isinstance(one, exp.Column) and isinstance(two, exp.Column):
            (left, a), (right, b) = self.left.scope.resolve(one), self.right.scope.resolve(two)
            if a in left.person and b in right.person:
                self.same_person = True
                return True
            if a in left.person or b in right.person:
                raise syntax_refusal(
                    node, "A person's id is compared with that of another table's people only", JOINED_ON
                )
            linked = a in left.links and b in right.links and left.links[a] == right.links[b]
            if not linked and right.public is None:
                raise syntax_refusal(node, f"{a} and {b} do not name the same thing", JOINED_ON)
            if mine.type != theirs.type:  # an id has one canonical text, whatever its spelling; a text is as it stands
                other, name = (theirs.type, b) if mine.type == "id" else (mine.type, a)
                hint = f'Declare it as an id too: columns.{name} = {{ type = "id" }}.'
                raise syntax_refusal(node, f"An id is compared with a {other}", hint)
            self.same_person |= linked
        elif mine.type != theirs.type or (mine.type == "number" and not (mine.whole and theirs.whole)):
            hint = JOINED_ON
            if self.right.items[0].public is not None and isinstance(two, exp.Column):
                kind = DECLARED_AS.get(mine.type, mine.type)
                hint = f'Declare the public column like the other: columns.{two.name} = {{ type = "{kind}", ... }}.'
            raise syntax_refusal(
                node, "A join compares two values of one type: whole numbers, texts, dates or ids", hint
            )
        self.pairs.append((mine, theirs))
        if isinstance(two, exp.Column):
            part, name = self.right.scope.resolve(two)
            if part.public is not None and name in part.public:
                self.multiplicity = min(part.public[name], self.multiplicity or part.public[name])
        return True

    def _bind_side(self, side: Relation, node: exp.Expr) -> Typed:
        bare = node.unnest()
        if isinstance(bare, exp.Column):
            part, name = side.scope.resolve(bare)
            return part.columns[name]
        return RowBinder(side.scope).bind(bare)

    def bind(self, next_prefix: Callable[[], str]) -> Relation:
        private = extent(self.right.source).private
        if private and not self.same_person:
            raise syntax_refusal(self.node, "This join could bring two people's rows together", JOINED_ON)
        if not private and self.multiplicity is None:
            hint = "Join on a column of the public table."
            raise syntax_refusal(self.node, "This join does not compare a column of the public table", hint)
        right = self.right
        if self.outer:
            right = self._bind_outer_right(next_prefix)
        more = extent(self.right.source).repeated if private else self.multiplicity or 1
        if extent(self.left.source).repeated * more > MOST_REPEATED:
            hint = f"Join on keys that are unique, or nearly: one row becomes at most {MOST_REPEATED:,}."
            raise syntax_refusal(self.node, "Public tables would make too many rows of one", hint)
        pairs = tuple((one.expression, two.expression) for one, two in self.pairs)
        sides = self._cap_rows(right.source) if private else (self.left.source, right.source)
        source = Join(*sides, self.outer, pairs, None if private else self.multiplicity)
        filters = (*self.left.filters, *right.filters)
        joined = Relation(source, filters, (*self.left.items, *right.items), self.left.has_person_id)
        if not self.others or self.outer:
            return joined
        above = [condition for each in self.others for condition in RowBinder(joined.scope).bind_conditions(each)]
        return replace(joined, filters=(*filters, *above))

    def _cap_rows(self, other: Source) -> tuple[Source, Source]:
        """Both sides, each with a bounded number of rows of one person."""
        left, right = cap_scans(self.left.source), cap_scans(other)
        if (extent(left).rows_met or 1) * (extent(right).rows_met or 1) > MOST_MET:
            hint = "Declare a smaller max_rows_per_unit, or make one row of each person in a subquery first."
            raise syntax_refusal(self.node, "One person could have too many rows in this join", hint)
        return left, right

    def _bind_outer_right(self, next_prefix: Callable[[], str]) -> Relation:
        """The right side of LEFT JOIN: its conditions stay below the join, and all its columns may be NULL above."""
        right, conditions = self.right, []
        for each in self.others:
            if self._find_side(each) is not right:
                hint = "Compare columns of the right table with values, or use WHERE."
                raise syntax_refusal(each, "LEFT JOIN takes equalities, and conditions on its right table", hint)
            conditions += RowBinder(right.scope).bind_conditions(each)
        plain = not right.filters and not conditions and all(_is_plain(part) for part in right.items)
        if plain:
            return replace(right, items=tuple(_make_nullable(part) for part in right.items))
        prefix = next_prefix()
        columns: list[tuple[str, Expression]] = []
        parts = []
        for number, part in enumerate(right.items):
            renamed: dict[str, Typed] = {}
            for place, (name, typed) in enumerate(part.columns.items(), start=1):
                made = f"{prefix}part{number + 1}.column{place}"  # what an analyst wrote is never a name
                if name not in part.person:
                    columns.append((made, typed.expression))
                renamed[name] = replace(typed, expression=Column(made, COLUMN_TYPES[typed.type], True), nullable=True)
            parts.append(replace(part, columns=renamed))
        self.pairs = [(one, _rename_key(two, columns, prefix)) for one, two in self.pairs]
        return Relation(Derived(right.source, (*right.filters, *conditions), tuple(columns)), (), tuple(parts))


def _rename_key(two: Typed, columns: list[tuple[str, Expression]], prefix: str) -> Typed:
    """A join key of the right side, as a column of what is below the join."""
    name = next((name for name, expression in columns if expression == two.expression), None)
    if name is None:
        name = f"{prefix}key{len(columns)}"
        columns.append((name, two.expression))
    return replace(two, expression=Column(name, COLUMN_TYPES[two.type]))


def _is_plain(part: FromItem) -> bool:
    return all(isinstance(each.expression, Column) for each in part.columns.values())


def _make_nullable(part: FromItem) -> FromItem:
    columns = {}
    for name, typed in part.columns.items():
        made = replace(typed.expression, nullable=True) if isinstance(typed.expression, Column) else typed.expression
        columns[name] = replace(typed, expression=made, nullable=True)
    return replace(part, columns=columns)
