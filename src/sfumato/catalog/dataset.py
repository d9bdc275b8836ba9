"""What the owner declares: tables, privacy units and the budget. Nothing here is derived from the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

from sfumato.catalog.analysts import MOST_LETTERS, check_analysts
from sfumato.catalog.budget import Budget
from sfumato.catalog.catalog_errors import MOST_CHARACTERS, build_catalog_error, name_place, show_value
from sfumato.catalog.columns import ColumnDeclaration, Id, column_type, freeze, read_flag
from sfumato.catalog.counts_unit import ONE_PERSON, read_count_limit
from sfumato.catalog.names import build_unknown_name, find_name, read_name, read_text, refuse_twins, suggest_names
from sfumato.catalog.text_format import PLAIN_TEXT, TextFormat
from sfumato.catalog.unique_keys import drop_flags, gather_unique
from sfumato.errors import KernelFault, describe_kind
from sfumato.kernel.expressions import Column, Scalar
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit, Row
from sfumato.number_arguments import read_whole_number

MOST_ROWS = 1 << 40


@dataclass(frozen=True, slots=True)
class ContributionBound:
    """How many rows and groups of one unit are counted."""

    max_rows_per_unit: int = 1
    max_groups_per_unit: int = 1

    def __post_init__(self) -> None:
        if min(self.max_rows_per_unit, self.max_groups_per_unit) < 1:
            raise KernelFault("A contribution bound is at least 1.")


@dataclass(frozen=True, slots=True)
class Table:
    """A table, its declared columns and its privacy unit. `unit` is None if `unit_through` declares the unit."""

    name: str
    source: str | None
    unit: str | Literal[Row.ROW] | None
    columns: Mapping[str, ColumnDeclaration] = field(hash=False)
    max_rows_per_unit: int = 1
    max_groups_per_unit: int = 1
    rows: int | None = None
    public: bool = False
    unit_through: tuple[str, str] | None = None
    multiplicities: tuple[tuple[str, int], ...] = ()  # of a public table: the most rows with one value, by column
    people: int | None = None  # like rows, for a table whose unit is an id: the public number of people
    reading: TextFormat = PLAIN_TEXT
    count_column: str | None = None  # of a counts table (unit ROW): each unit of this column is one person
    most_count: int | None = None  # of a counts table: larger counts are clamped to it
    unique: tuple[tuple[str, ...], ...] = ()  # keys that no two rows of one person share
    public_rows: tuple[tuple[Scalar, ...], ...] | None = field(default=None, compare=False, repr=False)  # if not many

    def __post_init__(self) -> None:
        freeze(self, name=read_name(self.name, "a table's name"))
        with name_place(f"tables.{self.name}"):
            freeze(
                self,
                source=None if self.source is None else read_text(self.source, "source", 10_000),
                columns=self._freeze_columns(),
                max_rows_per_unit=_read_bound(self.max_rows_per_unit, "max_rows_per_unit"),
                max_groups_per_unit=_read_bound(self.max_groups_per_unit, "max_groups_per_unit"),
                rows=None if self.rows is None else read_whole_number(self.rows, "rows", 1),
                people=None if self.people is None else read_whole_number(self.people, "people", 1),
                public=read_flag(self.public, "public"),
            )
            if not isinstance(self.reading, TextFormat):
                raise build_catalog_error(f"reading must be a TextFormat; got {describe_kind(self.reading)}.")
            freeze(self, unit_through=self._link())
            freeze(self, unit=self._read_unit())
            has_id = not self.public and self.unit is not ROW
            freeze(self, unique=gather_unique(self.unique, self.columns, has_id=has_id))
            freeze(self, columns=MappingProxyType(drop_flags(self.columns)))
            if self.count_column is not None:
                self._declare_count_column(self.count_column)
            if not isinstance(self.unit, str) and not self.unit_through and self._bound != ContributionBound():
                rule = "max_rows_per_unit and max_groups_per_unit must be 1 if the unit is the row"
                raise build_catalog_error(f"{rule}.", "Remove them, or declare the people's id column as the unit.")
            if self.rows is not None and (self.public or self.unit is not ROW):
                hint = "Remove rows." if self.public else "Declare the number of people instead: people = n."
                raise build_catalog_error("rows is only for tables whose unit is the row.", hint)
            if self.people is not None and (self.public or self.unit is ROW):
                hint = "Remove people." if self.public else "Declare the number of rows instead: rows = n."
                raise build_catalog_error("people is only for tables whose unit is an id.", hint)

    def __reduce__(self) -> tuple[type["Table"], tuple[object, ...]]:
        return Table, _list_arguments(self)

    def column(self, name: str) -> Column:
        """The declared column of this name. Case does not matter."""
        found = find_name(name, self.columns)
        if found is None:
            raise build_unknown_name("column", name, self.columns, f" in table {self.name}")
        declaration = self.columns[found]
        return Column(found, column_type(declaration), getattr(declaration, "nullable", True))

    @property
    def _bound(self) -> ContributionBound:
        return ContributionBound(self.max_rows_per_unit, self.max_groups_per_unit)

    def _freeze_columns(self) -> Mapping[str, ColumnDeclaration]:
        if not isinstance(self.columns, Mapping):
            hint = 'For example columns={"age": sf.Integer(0, 120), "city": sf.Category(["Rome", "Oslo"])}.'
            raise build_catalog_error(f"columns must map names to types; got {describe_kind(self.columns)}.", hint)
        for name, declaration in self.columns.items():
            read_name(name, "a column's name")
            if not isinstance(declaration, ColumnDeclaration):
                hint = "Use Integer, Real, Category, Boolean, Text, Date, DateTime or Id, with brackets: Boolean()."
                raise build_catalog_error(f"columns.{name} is not a declared type.", hint)
        refuse_twins(self.columns, "columns")
        return MappingProxyType({str.__str__(name): declaration for name, declaration in self.columns.items()})

    def _read_unit(self) -> str | Literal[Row.ROW] | None:
        """The unit, in the declared spelling. A public table gets ROW, which `Dataset.unit` never returns."""
        if self.public:
            if self.unit not in (None, ROW) or self.unit_through:
                raise build_catalog_error("a public table has no privacy unit.", "Remove the unit, or public = true.")
            return ROW
        if self.unit_through:
            if self.unit is not None and self._read_id_column(self.unit) != self.unit_through[0]:
                raise build_catalog_error("unit and unit_through contradict each other.", "Give one of the two.")
            return None
        return ROW if self.unit is ROW else self._read_id_column(self.unit)

    def _declare_count_column(self, given: str) -> None:
        """Declare the count column as what it is in questions: 1 for each person."""
        if self.public or self.unit is not ROW:
            hint = 'Remove it, or write unit = "counts".' if not self.public else "Remove it, or public = true."
            raise build_catalog_error("count_column is only for private counts tables.", hint)
        name = find_name(given, self.columns) or read_name(given, "count_column")
        declared = self.columns.get(name)
        if declared != ONE_PERSON:
            freeze(self, most_count=read_count_limit(name, declared))
        columns = MappingProxyType({**self.columns, name: ONE_PERSON})
        freeze(self, count_column=name, columns=columns)

    def _link(self) -> tuple[str, str] | None:
        match self.unit_through:
            case None:
                return None
            case (str(column), str(table)):
                return self._read_id_column(column), table
            case _:
                hint = 'For example: unit_through = { column = "visit_id", table = "visits" }.'
                raise build_catalog_error("unit_through must name a column and a table.", hint)

    def _read_id_column(self, name: object) -> str:
        """The declared spelling of a column that must be an id."""
        found = find_name(name, self.columns)
        if not isinstance(name, str):
            hint = "Name the column that identifies people, or use ROW if every row is one person."
            raise build_catalog_error(
                f"the unit must be a column's name, ROW or COUNTS(column); got {describe_kind(name)}.", hint
            )
        if found is None or not isinstance(self.columns[found], Id):
            wrong = "is not declared" if found is None else "must be declared as an id"
            hint = f'Declare it: columns.{found or name} = {{ type = "id" }}, or Id() in Python.'
            raise build_catalog_error(f"the unit's column {show_value(name)} {wrong}.", hint)
        return found


@dataclass(frozen=True, slots=True, init=False)
class Dataset:
    """Tables about one population, with one budget."""

    name: str
    tables: Mapping[str, Table] = field(hash=False)
    budget: Budget
    population: str
    neighbours: Neighbours
    ledger_id: str | None
    analysts: Mapping[str, Budget] = field(hash=False)
    views: Mapping[str, str] = field(hash=False)
    ledger: str | None  # the ledger's path, relative to the folder, or its URL; None: ledger.db in the folder
    schemas: tuple[str, ...]  # other names that a question may write before a table: schema.table
    engine: str | None  # where tables are pinned and asked: a name, or the URL of a server; None: DuckDB

    def __init__(  # noqa: PLR0917 - the order of the fields
        self,
        name: str,
        tables: Mapping[str, Table] | Sequence[Table],
        budget: Budget,
        population: str | None = None,
        neighbours: str | Neighbours = Neighbours.ADD_REMOVE,
        ledger_id: str | None = None,
        analysts: Mapping[str, Budget] = MappingProxyType({}),
        views: Mapping[str, str] = MappingProxyType({}),
        ledger: str | None = None,
        schemas: Sequence[str] = (),
        engine: str | None = None,
    ) -> None:
        with name_place("dataset"):
            freeze(
                self,
                name=read_name(name, "name"),
                population=read_name(name if population is None else population, "population"),
                neighbours=Neighbours.read(neighbours),
                ledger_id=None if ledger_id is None else read_text(ledger_id, "ledger_id", MOST_CHARACTERS),
                ledger=None if ledger is None else read_text(ledger, "ledger", 10_000),
                schemas=_read_schemas(schemas),
                engine=None if engine is None else read_text(engine, "engine", 10_000),
            )
        if not isinstance(budget, Budget):
            raise build_catalog_error(
                f"budget must be a Budget; got {describe_kind(budget)}.", "For example: Budget(epsilon=3)."
            )
        if not isinstance(analysts, Mapping):
            raise build_catalog_error(f"analysts must map names to budgets; got {describe_kind(analysts)}.")
        freeze(self, budget=budget, tables=_read_tables(tables), analysts=MappingProxyType(dict(analysts)))
        freeze(self, views=self._name_views(views))
        for table in self.tables.values():
            with name_place(f"tables.{table.name}"):
                for key in ("rows", "people"):
                    if getattr(table, key) is not None and self.neighbours is not Neighbours.REPLACE_ONE:
                        hint = f'Remove {key}, or set neighbours = "replace-one" for the dataset.'
                        raise build_catalog_error(
                            f"{key} makes the number of {key} public, which only replace-one allows.", hint
                        )
                if table.most_count is not None and self.neighbours is Neighbours.REPLACE_ONE:
                    hint = f"Remove {table.count_column} from the columns: counts are then not clamped."
                    raise build_catalog_error("a largest count is not allowed with replace-one.", hint)
                replaces_rows = self.neighbours is Neighbours.REPLACE_ONE and table.unit is ROW and not table.public
                if replaces_rows and table.reading.on_error == "skip":  # a replaced record could be dropped: K-25
                    hint = 'Use on_error = "refuse" and correct the file, or set neighbours = "add-remove".'
                    raise build_catalog_error('on_error = "skip" is not allowed with replace-one.', hint)
                self._find_owner(table)
        for analyst, limit in self.analysts.items():
            with name_place(f"analysts.{read_name(analyst, 'an analyst', MOST_LETTERS)}"):
                if not isinstance(limit, Budget) or limit.accounting != budget.accounting:
                    raise build_catalog_error(
                        f"must be a Budget with {budget.accounting} accounting, as the dataset's."
                    )
        check_analysts(self.analysts)

    def __reduce__(self) -> tuple[type["Dataset"], tuple[object, ...]]:
        return Dataset, _list_arguments(self)

    def table(self, name: str) -> Table:
        """The declared table of this name. Case does not matter."""
        found = find_name(name, self.tables)
        if found is None:
            raise build_unknown_name("table", name, self.tables, f" in dataset {self.name}")
        return self.tables[found]

    def unit(self, table: str) -> PrivacyUnit:
        """The privacy unit of a private table."""
        declared = self.table(table)
        owner = self._find_owner(declared).unit
        if declared.public or owner is None:
            raise build_catalog_error(
                f"tables.{declared.name}: a public table has no privacy unit.", "Ask about a private table."
            )
        return PrivacyUnit(declared.name, owner, self.neighbours)

    def _name_views(self, views: Mapping[str, str]) -> Mapping[str, str]:
        if not isinstance(views, Mapping):
            raise build_catalog_error(f"views must map names to SQL; got {describe_kind(views)}.")
        for name, sql in views.items():
            with name_place(f"views.{read_name(name, 'a view')}"):
                if not isinstance(sql, str) or not sql.strip():
                    raise build_catalog_error(
                        "sql must be a SELECT.", 'For example: sql = "SELECT * FROM visits WHERE cost > 0".'
                    )
        refuse_twins([*views, *self.tables], "tables and views")
        return MappingProxyType(dict(views))

    def _find_owner(self, table: Table) -> Table:
        """The table that declares the unit: this one, or the last one of its unit_through links."""
        seen = [table]
        while (link := seen[-1].unit_through) is not None:
            column, through = link
            found = find_name(through, self.tables)
            if found is None:
                raise build_catalog_error(
                    f"unit_through names no table: {show_value(through)}.", suggest_names(through, self.tables)
                )
            seen.append(self.tables[found])
            if seen[-1] in seen[:-1]:
                raise build_catalog_error(
                    "unit_through leads in a circle.", "Declare unit_column in one of these tables."
                )
            with name_place(f"through tables.{found}"):
                seen[-1]._read_id_column(column)
        if len(seen) > 1 and not isinstance(seen[-1].unit, str):
            hint = f"Give tables.{seen[-1].name} a unit column."
            raise build_catalog_error("unit_through must lead to a table with a unit column.", hint)
        return seen[-1]


def _read_schemas(schemas: object) -> tuple[str, ...]:
    if not isinstance(schemas, list | tuple):
        raise build_catalog_error(
            f"schemas must be a list of names; got {describe_kind(schemas)}.", 'For example: schemas = ["public"].'
        )
    return tuple(read_name(name, "a schema") for name in schemas)


def _read_bound(value: object, name: str) -> int:
    """A contribution bound."""
    number = read_whole_number(value, name, 1)
    if number > MOST_ROWS:
        raise build_catalog_error(f"{name} must be at most {MOST_ROWS:,}.", "Such a bound has no effect.")
    return number


def _read_tables(tables: object) -> Mapping[str, Table]:
    given = tuple(tables.values()) if isinstance(tables, Mapping) else tables
    if not isinstance(given, list | tuple) or not all(isinstance(table, Table) for table in given):
        raise build_catalog_error("tables must be a list of Table, or map their names to them.")
    if isinstance(tables, Mapping) and list(tables) != [table.name for table in given]:
        raise build_catalog_error("tables must map every table's own name to it.")
    refuse_twins([table.name for table in given], "tables")
    return MappingProxyType({table.name: table for table in given})


def change_dataset(dataset: Dataset, **changes: object) -> Dataset:
    """The dataset with these fields changed."""
    parts: dict[str, Any] = {part.name: getattr(dataset, part.name) for part in fields(Dataset)}
    return Dataset(**parts | changes)


def replace_tables(dataset: Dataset, tables: Mapping[str, Table]) -> Dataset:
    """The dataset with these tables instead of its own."""
    return change_dataset(dataset, tables=dict(tables))


def _list_arguments(thing: Table | Dataset) -> tuple[object, ...]:
    """The constructor's arguments for pickle, which cannot handle a MappingProxyType."""
    values = (getattr(thing, part.name) for part in fields(thing))
    return tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)
