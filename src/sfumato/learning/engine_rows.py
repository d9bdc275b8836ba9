"""Rows in an engine: the subquery whose columns are the features, the target, and what is computed from them.

A column that is read often (a score, a clamped value) is computed once for each row, in a layer of its own.
"""

from sfumato.catalog.dataset import Table
from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal, collect_columns
from sfumato.kernel.row_sources import Derived, Source
from sfumato.learning.feature_columns import Classes, Coded, Feature, Numeric, Target
from sfumato.learning.row_functions import TARGET, clamp_expression


class EngineRows:
    """Makes the expressions that row functions and cells read, and collects the columns that they need."""

    def __init__(self, table: Table, features: tuple[Feature, ...], target: Target | None) -> None:
        self.features, self.target = features, target
        self._table = table
        self._names: dict[Expression, str] = {}
        self._layers: dict[str, int] = {}  # 0: read from the table
        self._columns: dict[str, Column] = {}

    def number(self, feature: int) -> Expression:
        """A number between its bounds; NULL is the middle. (A snapshot has no NaN.)"""
        return self.compute(self._clamp(self._find_numeric(feature)))

    def scaled(self, column: int) -> Expression:
        """Whole steps from -SCALE to SCALE, by the same operations as `scale_column`."""
        declared = self._find_numeric(column)
        away = Call("-", (self._clamp(declared), Literal(declared.middle)))
        steps = Call("+", (Call("*", (away, Literal(declared.steps_per_unit))), Literal(0.5)))
        return self.compute(Call("floor", (steps,)))

    def _clamp(self, declared: Numeric) -> Expression:
        known = Call("coalesce", (self._table.column(declared.name), Literal(declared.middle)))
        return clamp_expression(known, declared.lower, declared.upper)

    def _find_numeric(self, column: int) -> Numeric:
        declared = self._find(column)
        if not isinstance(declared, Numeric):
            raise KernelFault("Numbers are of a numeric column.")
        return declared

    def code(self, feature: int) -> Expression:
        """A coded column as it is stored."""
        declared = self._find(feature)
        if not isinstance(declared, Coded | Classes):
            raise KernelFault("Codes are of a coded column.")
        return self.compute(self._table.column(declared.name))

    def label(self) -> Expression:
        """The target's label."""
        return self.code(TARGET)

    def is_label(self, place: int) -> Expression:
        """1 where the label is the one at this place, 0 elsewhere."""
        return Call("case", (self._compare_labels()[place], Literal(1.0), Literal(0.0)))

    def is_labelled(self) -> Expression:
        """1 where the label is one of the declared classes, 0 elsewhere."""
        same = self._compare_labels()
        known = Call("or", same) if len(same) > 1 else same[0]
        return self.compute(Call("case", (known, Literal(1.0), Literal(0.0))))

    def _compare_labels(self) -> tuple[Call, ...]:
        """Whether the label is this one, for each class."""
        if not isinstance(self.target, Classes):
            raise KernelFault("Labels are of a target with declared classes.")
        return tuple(Call("=", (self.label(), Literal(label))) for label in self.target.labels)

    def compute(self, expression: Expression) -> Expression:
        """A column that holds the expression's value, in a layer above the columns that it reads."""
        if isinstance(expression, Column) and expression.name in self._columns:
            return expression
        if expression not in self._names:
            name = f"c{len(self._names)}"
            below = [self._layers[read] for read in collect_columns(expression) if read in self._layers]
            self._layers[name] = 1 + max(below, default=-1)
            kind = expression.type if isinstance(expression, Column) else ColumnType.REAL
            self._columns[name] = Column(name, kind)
            self._names[expression] = name
        return self._columns[self._names[expression]]

    def derive(self, scan: Source) -> Source:
        """The rows of a table, with every column that was asked for."""
        source = scan
        expressions = {name: expression for expression, name in self._names.items()}
        for layer in range(1 + max(self._layers.values(), default=-1)):
            columns = tuple(
                (name, expressions[name] if level == layer else self._columns[name])
                for name, level in self._layers.items()
                if level <= layer
            )
            source = Derived(source, (), columns)
        return source

    def _find(self, column: int) -> Feature | Target:
        if column != TARGET:
            return self.features[column]
        if self.target is None:
            raise KernelFault("This estimator has no target.")
        return self.target
