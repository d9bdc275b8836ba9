"""What the owner declares: columns, tables, whose privacy, how much of it may be spent; never what the data says."""

import difflib
import math
import operator
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from numbers import Real as AnyReal
from types import MappingProxyType
from typing import Literal, TypeVar

from sfumato.errors import CatalogError, InvalidParameter, UnknownName
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit, Row
from sfumato.kernel.parameters import Number, kind_of, positive_decimal, whole_number
from sfumato.kernel.plan import Column, ColumnType, ContributionBound

MOST_BOUND = 2**53  # every whole number up to here is a double
MOST_VALUES = 100_000
MOST_ROWS = 1 << 40
MOST_CHARACTERS = 100
MOST_SHOWN = 30

Bound = TypeVar("Bound", int, float, date)


@dataclass(frozen=True, slots=True)
class Integer:
    """Whole numbers; those outside the bounds are clamped to them."""

    lower: int
    upper: int
    nullable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        _freeze(self, lower=_whole(self.lower, "lower"), upper=_whole(self.upper, "upper"))
        _in_order(self.lower, self.upper)
        _flag(self.nullable, "nullable")


@dataclass(frozen=True, slots=True)
class Real:
    """Numbers; those outside the bounds are clamped to them."""

    lower: float
    upper: float
    nullable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        _freeze(self, lower=_real(self.lower, "lower"), upper=_real(self.upper, "upper"))
        _in_order(self.lower, self.upper)
        _flag(self.nullable, "nullable")


@dataclass(frozen=True, slots=True, init=False)
class Category:
    """One of a public list of values: all texts, all whole numbers or all truth values."""

    values: tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]
    nullable: bool

    def __init__(self, values: Sequence[str | int | bool], *, nullable: bool = True) -> None:
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            raise refusal(f"values must be a list; got {kind_of(values)}.", 'For example: values = ["north", "south"].')
        if not 1 <= len(values) <= MOST_VALUES:
            raise refusal(f"values must hold 1 to {MOST_VALUES:,} values; got {len(values):,}.", "List public ones.")
        types = {type(value) for value in values}
        if len(types) != 1 or not types <= {str, int, bool}:
            hint = "Quote the values to make them all texts; an array's own .tolist() gives plain Python values."
            raise refusal("values must be all texts, all whole numbers or all truth values.", hint)
        value, times = Counter(values).most_common(1)[0]
        if times > 1:
            raise refusal(f"values holds {_shown(value)} {times} times.", "Keep one of them.")
        if types == {str} and not all(_encodable(str(value)) for value in values):
            raise refusal("values holds text that is not Unicode (a lone surrogate).", "Repair the text.")
        if types == {int} and not all(abs(int(value)) <= 2**53 for value in values):
            raise refusal("values holds a whole number beyond 2**53.", "Quote the values to make them texts.")
        _freeze(self, values=tuple(values), nullable=_flag(nullable, "nullable"))


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""

    nullable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        _flag(self.nullable, "nullable")


@dataclass(frozen=True, slots=True)
class Text:
    """Any text."""

    nullable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        _flag(self.nullable, "nullable")


@dataclass(frozen=True, slots=True, init=False)
class Date:
    """Days; those outside the bounds are clamped to them."""

    lower: date
    upper: date
    nullable: bool

    def __init__(self, lower: str | date, upper: str | date, *, nullable: bool = True) -> None:
        _freeze(self, lower=_day(lower, "lower"), upper=_day(upper, "upper"), nullable=_flag(nullable, "nullable"))
        _in_order(self.lower, self.upper)


@dataclass(frozen=True, slots=True, init=False)
class DateTime:
    """Moments, to the microsecond and without a zone (UTC, where a source has zones); clamped to the bounds."""

    lower: datetime
    upper: datetime
    nullable: bool

    def __init__(self, lower: str | datetime, upper: str | datetime, *, nullable: bool = True) -> None:
        _freeze(
            self, lower=_moment(lower, "lower"), upper=_moment(upper, "upper"), nullable=_flag(nullable, "nullable")
        )
        _in_order(self.lower, self.upper)


@dataclass(frozen=True, slots=True)
class Id:
    """A name for a person or thing: may be counted and joined on, never shown."""


ColumnDeclaration = Integer | Real | Category | Boolean | Text | Date | DateTime | Id


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """A limit on privacy loss: epsilon and perhaps delta; under zcdp accounting, rho, or the two exchanged for it."""

    epsilon: Decimal | None
    delta: Decimal
    accounting: Literal["basic", "zcdp"]
    rho: Decimal | None

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number = 0,
        accounting: str = "basic",
        rho: Number | None = None,
    ) -> None:
        if accounting not in ("basic", "zcdp"):
            raise refusal(f"accounting must be 'basic' or 'zcdp'; got {_shown(accounting)}.")
        if accounting == "basic" and (epsilon is None or rho is not None):
            raise refusal("basic accounting takes epsilon, not rho.", 'Give epsilon, or say accounting = "zcdp".')
        if (epsilon is None) == (rho is None):
            raise refusal("zcdp accounting takes either rho, or epsilon and delta.", "Give one of the two.")
        with at(""):
            _freeze(
                self,
                epsilon=None if epsilon is None else positive_decimal(epsilon, "epsilon"),
                delta=ApproxDP(0, delta).delta,
                accounting=accounting,
                rho=None if rho is None else positive_decimal(rho, "rho"),
            )
            if rho is None and accounting == "zcdp" and not self.delta:
                raise refusal("zcdp accounting of an epsilon needs a delta above zero.", 'For example: delta = "1e-6".')
            _ = self.loss  # so that a limit that cannot be exchanged is refused here

    @property
    def loss(self) -> PureDP | ApproxDP | ZCDP:
        """The limit as a loss; an epsilon and delta under zcdp accounting are exchanged for rho, rounded down."""
        if self.epsilon is None:
            return ZCDP(self.rho or 0, self.delta)
        if self.accounting == "zcdp":
            return ZCDP(_largest_rho(self.epsilon, self.delta))
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)


@dataclass(frozen=True, slots=True)
class Table:
    """A table, its declared columns, and whose rows they are. `unit` is None where `unit_through` says it."""

    name: str
    source: str | None
    unit: str | Literal[Row.ROW] | None
    columns: Mapping[str, ColumnDeclaration] = field(hash=False)
    max_rows_per_unit: int = 1
    max_groups_per_unit: int = 1
    rows: int | None = None
    public: bool = False
    unit_through: tuple[str, str] | None = None
    multiplicities: tuple[tuple[str, int], ...] = ()  # of a pinned public table: how often a value stands in a column

    def __post_init__(self) -> None:
        _freeze(self, name=_name(self.name, "a table's name"))
        with at(f"tables.{self.name}"):
            _freeze(
                self,
                source=None if self.source is None else _text(self.source, "source", 10_000),
                columns=self._frozen_columns(),
                max_rows_per_unit=_few(self.max_rows_per_unit, "max_rows_per_unit"),
                max_groups_per_unit=_few(self.max_groups_per_unit, "max_groups_per_unit"),
                rows=None if self.rows is None else whole_number(self.rows, "rows", 1),
                public=_flag(self.public, "public"),
            )
            _freeze(self, unit_through=self._link())
            _freeze(self, unit=self._unit())
            if not isinstance(self.unit, str) and not self.unit_through and self._bound != ContributionBound():
                rule = "max_rows_per_unit and max_groups_per_unit must be 1 unless rows belong to people"
                raise refusal(f"{rule}.", "Remove them, or name the column that tells people apart as the unit.")
            if self.rows is not None and (self.public or self.unit is not ROW):
                raise refusal("rows is only for tables whose unit is the row.", "Remove rows.")

    def __reduce__(self) -> tuple[type["Table"], tuple[object, ...]]:
        return Table, _parts(self)

    def column(self, name: str) -> Column:
        """The declared column of that name, in any case."""
        found = find(name, self.columns)
        if found is None:
            raise unknown("column", name, self.columns, f" in table {self.name}")
        declaration = self.columns[found]
        return Column(found, column_type(declaration), getattr(declaration, "nullable", True))

    @property
    def _bound(self) -> ContributionBound:
        return ContributionBound(self.max_rows_per_unit, self.max_groups_per_unit)

    def _frozen_columns(self) -> Mapping[str, ColumnDeclaration]:
        if not isinstance(self.columns, Mapping):
            raise refusal(f"columns must map names to types; got {kind_of(self.columns)}.")
        for name, declaration in self.columns.items():
            _name(name, "a column's name")
            if not isinstance(declaration, ColumnDeclaration):
                hint = "Use Integer, Real, Category, Boolean, Text, Date, DateTime or Id, with brackets: Boolean()."
                raise refusal(f"columns.{name} is not a declared type.", hint)
        _no_twins(self.columns, "columns")
        return MappingProxyType({str.__str__(name): each for name, each in self.columns.items()})

    def _unit(self) -> str | Literal[Row.ROW] | None:
        """The unit, in the declared spelling; a public table's is nominal, and Dataset.unit refuses it."""
        if self.public:
            if self.unit not in (None, ROW) or self.unit_through:
                raise refusal(
                    "a public table protects nobody, so it has no unit.", "Remove the unit, or public = true."
                )
            return ROW
        if self.unit_through:
            if self.unit is not None and self._id(self.unit) != self.unit_through[0]:
                raise refusal("unit and unit_through contradict each other.", "Give one of the two.")
            return None
        return ROW if self.unit is ROW else self._id(self.unit)

    def _link(self) -> tuple[str, str] | None:
        match self.unit_through:
            case None:
                return None
            case (str(column), str(table)):
                return self._id(column), table
            case _:
                hint = 'For example: unit_through = { column = "visit_id", table = "visits" }.'
                raise refusal("unit_through must name a column and a table.", hint)

    def _id(self, name: object) -> str:
        """The declared spelling of a column that must be an id."""
        found = find(name, self.columns)
        if not isinstance(name, str):
            hint = "Name the column that tells people apart, or say that every row is one person (ROW)."
            raise refusal(f"the unit must be a column's name or ROW; got {kind_of(name)}.", hint)
        if found is None or not isinstance(self.columns[found], Id):
            wrong = "is not declared" if found is None else "must be declared as an id"
            hint = f'Declare it: columns.{found or name} = {{ type = "id" }}, or Id() in Python.'
            raise refusal(f"the unit's column {_shown(name)} {wrong}.", hint)
        return found


@dataclass(frozen=True, slots=True, init=False)
class Dataset:
    """Tables about one population, under one budget."""

    name: str
    tables: Mapping[str, Table] = field(hash=False)
    budget: Budget
    population: str
    neighbours: Neighbours
    ledger_id: str | None
    analysts: Mapping[str, Budget] = field(hash=False)
    views: Mapping[str, str] = field(hash=False)

    def __init__(  # noqa: PLR0917
        self,
        name: str,
        tables: Mapping[str, Table] | Sequence[Table],
        budget: Budget,
        population: str | None = None,
        neighbours: str | Neighbours = Neighbours.ADD_REMOVE,
        ledger_id: str | None = None,
        analysts: Mapping[str, Budget] = MappingProxyType({}),
        views: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        with at("dataset"):
            _freeze(
                self,
                name=_name(name, "name"),
                population=_name(name if population is None else population, "population"),
                neighbours=Neighbours.read(neighbours),
                ledger_id=None if ledger_id is None else _text(ledger_id, "ledger_id", MOST_CHARACTERS),
            )
        if not isinstance(budget, Budget):
            raise refusal(f"budget must be a Budget; got {kind_of(budget)}.", "For example: Budget(epsilon=3).")
        if not isinstance(analysts, Mapping):
            raise refusal(f"analysts must map names to budgets; got {kind_of(analysts)}.")
        _freeze(self, budget=budget, tables=_by_name(tables), analysts=MappingProxyType(dict(analysts)))
        _freeze(self, views=self._named_views(views))
        for table in self.tables.values():
            with at(f"tables.{table.name}"):
                if table.rows is not None and self.neighbours is not Neighbours.REPLACE_ONE:
                    hint = 'Remove rows, or set neighbours = "replace-one" for the dataset.'
                    raise refusal("rows makes the number of rows public, which only replace-one allows.", hint)
                self._owner(table)
        for analyst, limit in self.analysts.items():
            with at(f"analysts.{_name(analyst, 'an analyst')}"):
                if not isinstance(limit, Budget) or limit.accounting != budget.accounting:
                    raise refusal(f"must be a Budget with {budget.accounting} accounting, as the dataset's.")
        _no_twins(self.analysts, "analysts")

    def __reduce__(self) -> tuple[type["Dataset"], tuple[object, ...]]:
        return Dataset, _parts(self)

    def table(self, name: str) -> Table:
        """The declared table of that name, in any case."""
        found = find(name, self.tables)
        if found is None:
            raise unknown("table", name, self.tables, f" in dataset {self.name}")
        return self.tables[found]

    def unit(self, table: str) -> PrivacyUnit:
        """Whose privacy a private table's answers protect."""
        declared = self.table(table)
        owner = self._owner(declared).unit
        if declared.public or owner is None:
            raise refusal(f"tables.{declared.name}: a public table has no privacy unit.", "Ask about a private table.")
        return PrivacyUnit(declared.name, owner, self.neighbours)

    def bound(self, table: str) -> ContributionBound:
        """How much of one unit is let into a private table's answers."""
        declared = self.table(self.unit(table).table)
        return declared._bound

    def _named_views(self, views: Mapping[str, str]) -> Mapping[str, str]:
        if not isinstance(views, Mapping):
            raise refusal(f"views must map names to SQL; got {kind_of(views)}.")
        for name, sql in views.items():
            with at(f"views.{_name(name, 'a view')}"):
                if not isinstance(sql, str) or not sql.strip():
                    raise refusal("sql must be a SELECT.", 'For example: sql = "SELECT * FROM visits WHERE cost > 0".')
        _no_twins([*views, *self.tables], "tables and views")
        return MappingProxyType(dict(views))

    def _owner(self, table: Table) -> Table:
        """The table that says whose rows these are: itself, or the end of the way through others."""
        seen = [table]
        while (link := seen[-1].unit_through) is not None:
            column, through = link
            found = find(through, self.tables)
            if found is None:
                raise refusal(f"unit_through names no table: {_shown(through)}.", _choices(through, self.tables))
            seen.append(self.tables[found])
            if seen[-1] in seen[:-1]:
                raise refusal("unit_through goes in a circle.", "Let one table name its unit's own column.")
            with at(f"through tables.{found}"):
                seen[-1]._id(column)
        if len(seen) > 1 and not isinstance(seen[-1].unit, str):
            hint = f"Give tables.{seen[-1].name} a unit column."
            raise refusal("unit_through must lead to a table whose people have an id.", hint)
        return seen[-1]


_TYPES = {
    Integer: ColumnType.INTEGER,
    Real: ColumnType.REAL,
    Boolean: ColumnType.BOOLEAN,
    Text: ColumnType.TEXT,
    Date: ColumnType.DATE,
    DateTime: ColumnType.DATETIME,
    Id: ColumnType.ID,
    str: ColumnType.TEXT,  # these three: a category of such values
    int: ColumnType.INTEGER,
    bool: ColumnType.BOOLEAN,
}


def column_type(declaration: ColumnDeclaration) -> ColumnType:
    """What the snapshot holds for a declared column."""
    return _TYPES[type(declaration.values[0] if isinstance(declaration, Category) else declaration)]


def refusal(message: str, hint: str = "") -> CatalogError:
    return CatalogError("catalog", message, hint)


@contextmanager
def at(where: str) -> Iterator[None]:
    """Say where in the catalog a rule was broken."""
    try:
        yield
    except (CatalogError, InvalidParameter) as error:
        raise refusal(f"{where}: {error.message}" if where else error.message, error.hint) from None


@cache
def _largest_rho(epsilon: Decimal, delta: Decimal) -> Decimal:
    """The largest rho of six digits that implies (epsilon, delta): each is tried, so it is never too large."""

    def fits(digits: int, power: int) -> bool:
        return ZCDP(Decimal(f"{digits}e{power}")).to_approx(delta).epsilon <= epsilon

    power = epsilon.adjusted()
    while fits(1, power + 1):
        power += 1
    while not fits(1, power):
        power -= 1
        if power < -1000:
            raise refusal("no rho is small enough for this epsilon and delta.", "Give rho itself, or a larger delta.")
    low, high = 100_000, 1_000_000  # with power - 5: the first fits, the second does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle, power - 5) else (low, middle)
    return ZCDP(Decimal(f"{low}e{power - 5}")).rho


def _freeze(thing: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(thing, name, value)


def _in_order(lower: Bound, upper: Bound) -> None:
    if lower > upper:
        hint = f"Swap them: lower = {upper}, upper = {lower}."
        raise refusal(f"lower ({lower}) must not exceed upper ({upper}).", hint)


def _few(value: object, name: str) -> int:
    """A bound on what one person contributes."""
    number = whole_number(value, name, 1)
    if number > MOST_ROWS:
        raise refusal(f"{name} must be at most {MOST_ROWS:,}.", "A bound that large bounds nothing.")
    return number


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise refusal(f"{name} must be true or false; got {kind_of(value)}.")
    return value


def _whole(value: object, name: str) -> int:
    try:
        number = MOST_BOUND + 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = MOST_BOUND + 1
    if abs(number) > MOST_BOUND:
        hint = "Other numbers belong in a real column."
        raise refusal(f"{name} must be a whole number within 2**53; got {kind_of(value)}.", hint)
    return number


def _real(value: object, name: str) -> float:
    try:
        number = float(value) if isinstance(value, AnyReal | Decimal) and not isinstance(value, bool) else math.nan
    except (OverflowError, ValueError):
        number = math.nan
    if not abs(number) <= MOST_BOUND:
        raise refusal(f"{name} must be a number within 2**53; got {kind_of(value)}.", f"For example: {name} = 0.5.")
    return number + 0.0  # there is one zero


def _day(value: object, name: str) -> date:
    if type(value) is date:
        return value
    try:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise refusal(f"{name} must be a day; got {kind_of(value)}.", f'Write year-month-day: {name} = "1900-01-31".')


def _moment(value: object, name: str) -> datetime:
    if type(value) is datetime and value.tzinfo is None:
        return value.replace(fold=0)
    try:
        form = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
        if isinstance(value, str) and re.fullmatch(form, value):
            return datetime.fromisoformat(value)
    except ValueError:
        pass
    hint = f'Write day, T and time: {name} = "1900-01-31T23:59:59".'
    raise refusal(f"{name} must be a moment without a time zone; got {kind_of(value)}.", hint)


def _name(value: object, what: str) -> str:
    name = _text(value, what, MOST_CHARACTERS)
    if _folded(name).startswith("__sfumato"):
        raise refusal(f"{what} must not start with __sfumato: {_shown(name)}.", "Such names are Sfumato's own.")
    return name


def _text(value: object, what: str, most_characters: int) -> str:
    if not isinstance(value, str):
        raise refusal(f"{what} must be text; got {kind_of(value)}.")
    if not value.strip() or len(value) > most_characters:
        raise refusal(f"{what} must have 1 to {most_characters} characters, not all blank; got {len(value)}.")
    if any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in value):
        raise refusal(
            f"{what} must not hold control characters: {_shown(value)}.", "Remove line ends, tabs and the like."
        )
    return str.__str__(value)


def _encodable(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


def _folded(name: str) -> str:
    """Equal for names that differ only in case, or in how accents are encoded."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def find(name: object, declared: Iterable[str]) -> str | None:
    """The declared spelling of a name; names are the same in any case."""
    if not isinstance(name, str):
        return None
    return next((each for each in declared if _folded(each) == _folded(name)), None)


def _no_twins(names: Iterable[str], where: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        twin = seen.get(_folded(name))
        if twin is not None:
            raise refusal(f"{where}: {_shown(twin)} and {_shown(name)} are the same name.", "Rename one of them.")
        seen[_folded(name)] = name


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 2 * MOST_CHARACTERS else text[:MOST_CHARACTERS] + "..."


def _choices(name: object, declared: Iterable[str]) -> str:
    folded = {_folded(each): each for each in declared}
    close = difflib.get_close_matches(_folded(name), folded, 1) if isinstance(name, str) else []
    shown = ", ".join(list(folded.values())[:MOST_SHOWN]) + (", ..." if len(folded) > MOST_SHOWN else "")
    return (f"Did you mean {folded[close[0]]}? " if close else "") + f"Declared: {shown or 'none'}."


def unknown(kind: str, name: object, declared: Iterable[str], where: str) -> UnknownName:
    return UnknownName("unknown-name", f"There is no {kind} {_shown(name)}{where}.", _choices(name, declared))


def _by_name(tables: object) -> Mapping[str, Table]:
    given = tuple(tables.values()) if isinstance(tables, Mapping) else tables
    if not isinstance(given, list | tuple) or not all(isinstance(table, Table) for table in given):
        raise refusal("tables must be a list of Table, or map their names to them.")
    if isinstance(tables, Mapping) and list(tables) != [table.name for table in given]:
        raise refusal("tables must map each table's own name to it.")
    _no_twins([table.name for table in given], "tables")
    return MappingProxyType({table.name: table for table in given})


def with_tables(dataset: Dataset, tables: Mapping[str, Table]) -> Dataset:
    """The dataset with other declarations of its tables."""
    parts = {each.name: getattr(dataset, each.name) for each in fields(Dataset)}
    return Dataset(**parts | {"tables": dict(tables)})


def _parts(thing: Table | Dataset) -> tuple[object, ...]:
    """The constructor's arguments, for pickle, which does not take a MappingProxyType."""
    values = (getattr(thing, each.name) for each in fields(thing))
    return tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)
