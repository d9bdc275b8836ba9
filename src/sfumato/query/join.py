"""Two relations and a JOIN -> one Relation, with the person's id carried along."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from sfumato.catalog.names import find_name
from sfumato.kernel.expressions import Column, ColumnType, Expression, Literal
from sfumato.kernel.row_sources import Derived, Join, PerUnit, Source, derive_extent, list_unique
from sfumato.query import functions
from sfumato.query.capped_scans import cap_scans
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.query import Typed
from sfumato.query.relation import FromItem, Relation, Scope
from sfumato.query.row_expressions import RowBinder, flatten
from sfumato.query.size_limits import PartCounter
from sfumato.query.source_outline import MOST_MET, MOST_REPEATED, outline_source

Pairs = tuple[tuple[Expression, Expression], ...]
COLUMN_TYPES = {
    "number": ColumnType.REAL, "text": ColumnType.TEXT, "boolean": ColumnType.BOOLEAN,
    "date": ColumnType.DATE, "datetime": ColumnType.DATETIME, "id": ColumnType.ID,
}  # fmt: skip
DECLARED_AS = {"number": "integer"}  # a type -> its name in a catalog, where the two differ
NO_CONDITION = "Write JOIN ... ON a.id = b.id, or an equality of two columns in WHERE."
BOTH_SIDES = (
    "Write an inner join with this condition, or a subquery that filters the second table. Neither means quite the "
    "same: an inner join leaves out rows without a partner."
)
JOINED_ON = "Join on the person's id in both tables, or on the declared link between them (unit_through)."


class JoinBinder:
    """Binds one JOIN: sorts its conditions into pairs of equal values and others, and builds the joined source."""

    def __init__(
        self, node: exp.Join, left: Relation, right: Relation, outer: bool, named: Sequence[exp.Column] = ()
    ) -> None:
        self.node, self.left, self.right, self.outer = node, left, right, outer
        self.named = named  # the columns that the SELECT names, but for those of this join's own condition
        self.pairs: list[tuple[Typed, Typed]] = []
        self.same_person = False
        self.multiplicity: int | None = None
        self.others: list[exp.Expr] = []  # conditions that are not an equality between the two sides
        self._counter = PartCounter()
        self._using = [name.name for name in self.node.args.get("using") or []]
        if self.node.args.get("method") == "NATURAL":
            self._using = self._find_common_names()

    def bind_with(self, conditions: list[exp.Expr], next_prefix: Callable[[], str]) -> tuple[Relation, list[exp.Expr]]:
        """Build the joined relation. A join without a condition takes its equalities from WHERE."""
        left_over = self._read_conditions(conditions)
        joined = self.bind(next_prefix)
        merged = frozenset(name for using in self._using for name in self._find_spellings(using))
        items = tuple(
            replace(item, merged=item.merged | merged & item.columns.keys())
            if item.alias in self._right_names
            else item
            for item in joined.items
        )
        return replace(joined, items=items), left_over

    @property
    def _right_names(self) -> set[str]:
        return {item.alias for item in self.right.items}

    def _find_spellings(self, name: str) -> list[str]:
        found = (find_name(name, item.columns) for item in self.right.items)
        return [spelling for spelling in found if spelling is not None]

    def _find_common_names(self) -> list[str]:
        """The columns that both sides of a NATURAL JOIN have."""
        mine = [name for item in self.left.items for name in item.columns if name not in item.merged]
        return [name for name in mine if self._find_spellings(name)]

    def _read_conditions(self, conditions: list[exp.Expr]) -> list[exp.Expr]:
        using = self._using
        for name in using:
            self._add_pair(self.node, exp.column(name), exp.column(name))
        on = self.node.args.get("on")
        if not using and on is None:
            left_over = [condition for condition in conditions if not self._reads_where(condition.unnest())]
            if len(left_over) == len(conditions):
                both = derive_extent(self.left.source).private and derive_extent(self.right.source).private
                effect = (
                    "combine rows of different people" if both else "repeat each row for every row of a public table"
                )
                what = f"This join[at] has no condition, so it would {effect}"
                raise build_syntax_refusal(self.node, what, NO_CONDITION)
            return left_over
        for condition in [] if on is None else flatten(on) if isinstance(on.unnest(), exp.And) else [on]:
            bare = condition.unnest()
            if isinstance(bare, exp.EQ) and self._read_equality(bare):
                continue
            self.others.append(condition)
        return conditions

    def _reads_where(self, condition: exp.Expr) -> bool:
        """Is a condition of WHERE an equality between the two sides? Then it belongs to this join."""
        if not isinstance(condition, exp.EQ):
            return False
        both = Scope((*self.left.items, *self.right.items))
        aliases = [item.alias for item in both.items]
        for column in condition.find_all(exp.Column):
            known = find_name(column.table, aliases) is not None if column.table else both.has_column(column.name)
            if not known:
                return False  # it is about a table that is joined later
        return self._read_equality(condition)

    def _find_side(self, node: exp.Expr) -> Relation | None:
        """The side whose columns an expression uses. None if it uses both or neither."""
        both = Scope((*self.left.items, *self.right.items))
        used = {id(both.resolve(column)[0]) for column in node.find_all(exp.Column)}
        for side in (self.left, self.right):
            if used and used <= {id(item) for item in side.items}:
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
        for typed in (mine, theirs):
            self._counter.add(node, typed.expression)
        if "id" in (mine.type, theirs.type) and isinstance(one, exp.Column) and isinstance(two, exp.Column):
            (left, a), (right, b) = self.left.scope.resolve(one), self.right.scope.resolve(two)
            if a in left.person and b in right.person:
                self.same_person = True
                self._require_ids(left.partners.get(a), right.partners.get(b))
                return True
            if a in left.person or b in right.person:
                raise build_syntax_refusal(node, "A person's id can be compared only with a person's id", JOINED_ON)
            linked = a in left.links and b in right.links and left.links[a] == right.links[b]
            # ids of one name in two tables of one person: the join must compare the person too
            alike = linked or (a in left.links and b in right.links and left.links[a][1] == right.links[b][1])
            if not alike and right.public is None:
                raise build_syntax_refusal(node, f"{a} and {b} are ids of different things", JOINED_ON)
            if mine.type != theirs.type:  # an id is compared by its canonical text, a text as it is written
                other, name = (theirs.type, b) if mine.type == "id" else (mine.type, a)
                hint = f'Declare {name} as an id too: columns.{name} = {{ type = "id" }}.'
                raise build_syntax_refusal(node, f"The join compares an id with a {other}", hint)
            self.same_person |= linked
        elif mine.type != theirs.type or (mine.type == "number" and not (mine.whole and theirs.whole)):
            hint = JOINED_ON
            if mine.type == theirs.type == "number":
                hint = (
                    "Real numbers are hardly ever equal. Rounded ones are another question: CAST(a.x AS INTEGER) = b.y."
                )
            elif self.right.items[0].public is not None and isinstance(two, exp.Column):
                kind = DECLARED_AS.get(mine.type, mine.type)
                hint = f'Give the public column the same type: columns.{two.name} = {{ type = "{kind}", ... }}.'
            raise build_syntax_refusal(
                node, "A join needs two values of the same type[at]: whole numbers, texts, dates or ids", hint
            )
        self.pairs.append((mine, theirs))
        if isinstance(two, exp.Column):
            item, name = self.right.scope.resolve(two)
            if item.public is not None and name in item.public:
                self.multiplicity = min(item.public[name], self.multiplicity or item.public[name])
        return True

    def _require_ids(self, mine: Typed | None, theirs: Typed | None) -> None:
        """Rows meet by the person. Where an outer join before made an id NULL, it equals no other."""
        there = functions.type_literal(1)
        if mine is not None:
            self.pairs.append((mine, there))
        if theirs is not None:
            self.pairs.append((there, theirs))

    def _bind_side(self, side: Relation, node: exp.Expr) -> Typed:
        bare = node.unnest()
        if isinstance(bare, exp.Column):
            item, name = side.scope.resolve(bare)
            return item.columns[name]
        return RowBinder(side.scope).bind(bare)

    def bind(self, next_prefix: Callable[[], str]) -> Relation:
        """Build the joined relation. Private rows are joined only with rows of the same person or of a public table."""
        private = derive_extent(self.right.source).private
        if private and not self.same_person:
            raise build_syntax_refusal(self.node, "This join could combine rows of two people", JOINED_ON)
        if not private and self.multiplicity is None:
            hint = "Write ON a.x = b.y, where b.y is a column of the public table."
            raise build_syntax_refusal(self.node, "This join has no equality with a column of the public table", hint)
        right = self.right
        if self.outer:
            right = self._bind_outer_right(next_prefix)
        more = outline_source(self.right.source).repeated if private else self.multiplicity or 1
        if outline_source(self.left.source).repeated * more > MOST_REPEATED:
            what = f"The public tables could turn one row into more than {MOST_REPEATED:,} rows"
            raise build_syntax_refusal(self.node, what, "Join on a column that has fewer rows with the same value.")
        pairs = tuple((one.expression, two.expression) for one, two in self.pairs)
        source = self._join_sources(right.source, pairs, private=private)
        filters = (*self.left.filters, *right.filters)
        joined = Relation(source, filters, (*self.left.items, *right.items), self.left.has_person_id)
        if not self.others or self.outer:
            return joined
        binder = RowBinder(joined.scope)
        above = [condition for node in self.others for condition in binder.bind_conditions(node)]
        return joined.filter(above)

    def _join_sources(self, right: Source, pairs: Pairs, *, private: bool) -> Join:
        """The joined source. Where a unique key is compared, the rows of the other side meet one row each."""
        left = self.left.source
        if not private:
            return Join(left, right, self.outer, pairs, self.multiplicity)
        if _compares_unique_key(right, [two for _, two in pairs]):
            return Join(left, right, self.outer, pairs, meets_one=True)
        if not self.outer and _compares_unique_key(left, [compared for compared, _ in pairs]):
            return Join(right, left, self.outer, tuple((two, one) for one, two in pairs), meets_one=True)
        if self.outer and any(item.hidden for item in self.right.items) and not _has_one_row(right):
            what = "A subquery[at] compares a computed value, or a real number, with the outer row"
            raise build_syntax_refusal(self.node, what, "Compare columns as they are.")
        return Join(*self._cap_rows(right), self.outer, pairs)

    def _cap_rows(self, other: Source) -> tuple[Source, Source]:
        """Both sides, each with a bound on the rows that one person has in it."""
        left, right = cap_scans(self.left.source), cap_scans(other)
        if (outline_source(left).rows_met or 1) * (outline_source(right).rows_met or 1) > MOST_MET:
            hint = "Declare a smaller max_rows_per_unit, or first make one row per person in a subquery."
            raise build_syntax_refusal(self.node, "One person could have too many rows in this join", hint)
        return left, right

    def _bind_outer_right(self, next_prefix: Callable[[], str]) -> Relation:
        """The right side of a LEFT JOIN. Its conditions apply before the join; after it, every column may be NULL."""
        right, conditions = self.right, []
        for condition in self.others:
            side = self._find_side(condition)
            if side is self.left or condition.find(exp.Column) is None:
                self._add_own_condition(condition)
            elif side is right:
                conditions += RowBinder(right.scope).bind_conditions(condition)
            else:
                what = "This condition of an outer join[at] compares columns of both tables, other than by '='"
                raise build_syntax_refusal(condition, what, BOTH_SIDES)
        counted = any(self._names_id(item) for item in right.items)
        if not right.filters and not conditions and not counted and all(_is_plain(item) for item in right.items):
            return replace(right, items=tuple(_make_nullable(item) for item in right.items))
        prefix = next_prefix()
        columns: list[tuple[str, Expression]] = []
        partner = Typed(Column(f"{prefix}partner", ColumnType.REAL, True), "number", True, 1.0, 1.0, True)
        if counted:
            columns.append((f"{prefix}partner", Literal(1)))
        items = []
        for number, item in enumerate(right.items, start=1):
            renamed: dict[str, Typed] = {}
            held: dict[Expression, str] = {}
            for place, (name, typed) in enumerate(item.columns.items(), start=1):
                made = f"{prefix}part{number}.column{place}"  # text that an analyst wrote never becomes a name in SQL
                if name not in item.person:
                    made = held.setdefault(typed.expression, made)  # one name a value: a unique key stays one
                    if made not in dict(columns):
                        columns.append((made, typed.expression))
                renamed[name] = replace(typed, expression=Column(made, _find_type(typed), True), nullable=True)
            partners = dict.fromkeys(item.person, partner) if counted else {}
            for place, (name, typed) in enumerate(item.partners.items(), start=1):  # it may have been NULL before
                made = f"{prefix}part{number}.partner{place}"
                columns.append((made, typed.expression))
                partners[name] = replace(typed, expression=Column(made, ColumnType.REAL, True))
            items.append(replace(item, columns=renamed, partners=partners))
        self.pairs = [(one, _rename_key(two, columns, prefix)) for one, two in self.pairs]
        return Relation(Derived(right.source, (*right.filters, *conditions), tuple(columns)), (), tuple(items))

    def _names_id(self, item: FromItem) -> bool:
        """Does the SELECT name an id of this item? COUNT(id) counts only the rows that have a partner."""
        for column in self.named:
            starred = isinstance(column.this, exp.Star)
            if (
                starred
                and item.person
                and not item.hidden
                and (not column.table or find_name(column.table, (item.alias,)) is not None)
            ):
                return True
            if find_name(column.name, {*item.person, *item.links}) is None:
                continue
            if find_name(column.table, (item.alias,)) is not None or (not column.table and not self._using):
                return True
        return False

    def _add_own_condition(self, condition: exp.Expr) -> None:
        """A condition on the kept side of an outer join: where it is not true, the row has no partner."""
        binder = RowBinder(self.left.scope)
        typed = binder.bind(condition)
        if typed.type != "boolean":
            raise build_syntax_refusal(condition, "ON needs a condition", "Write a comparison, such as age > 65.")
        held = functions.choose([typed], [functions.type_literal(1)], functions.type_literal(0))
        self.pairs.append((held, functions.type_literal(1)))


def _has_one_row(source: Source) -> bool:
    """Is it one row for each person? Several rows would share its weight, also where they weigh 1 together."""
    return isinstance(source, PerUnit) or (isinstance(source, Derived) and _has_one_row(source.source))


def _compares_unique_key(source: Source, compared: list[Expression]) -> bool:
    names = {expression.name for expression in compared if isinstance(expression, Column)}
    return any(key <= names for key in list_unique(source))


def _rename_key(two: Typed, columns: list[tuple[str, Expression]], prefix: str) -> Typed:
    """A join key of the right side, as a column of the derived right source."""
    name = next((name for name, expression in columns if expression == two.expression), None)
    if name is None:
        name = f"{prefix}key{len(columns)}"
        columns.append((name, two.expression))
    return replace(two, expression=Column(name, _find_type(two)))


def _find_type(typed: Typed) -> ColumnType:
    """The type of a column that holds a value. A column keeps its own: a whole number stays one."""
    return typed.expression.type if isinstance(typed.expression, Column) else COLUMN_TYPES[typed.type]


def _is_plain(item: FromItem) -> bool:
    return all(isinstance(typed.expression, Column) for typed in item.columns.values())


def _make_nullable(item: FromItem) -> FromItem:
    columns = {}
    for name, typed in item.columns.items():
        made = replace(typed.expression, nullable=True) if isinstance(typed.expression, Column) else typed.expression
        columns[name] = replace(typed, expression=made, nullable=True)
    return replace(item, columns=columns)
