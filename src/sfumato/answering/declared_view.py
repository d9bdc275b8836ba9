"""What the owner declared, as users list it: tables and columns. All of it is public, and none of it is data."""

from collections.abc import Iterator
from dataclasses import dataclass

from sfumato.answering.table_words import describe_bounds, describe_unit, write_table_json
from sfumato.catalog.columns import ColumnDeclaration
from sfumato.catalog.dataset import Dataset, Table
from sfumato.catalog.names import build_unknown_name, find_name
from sfumato.drawing.cards import make_card, make_details, make_note
from sfumato.drawing.pages import make_table
from sfumato.drawing.text_tables import write_text_table

COLUMN_HEADINGS = ("column", "type", "bounds or values", "nullable")


@dataclass(frozen=True, slots=True)
class DeclaredColumns:
    """The columns of some tables. It lists their names; `columns["age"]` is the declaration."""

    tables: tuple[Table, ...]

    def list_named(self) -> dict[str, ColumnDeclaration]:
        """Each column under its name; under table.column, where there are several tables."""
        many = len(self.tables) > 1
        return {
            f"{table.name}.{name}" if many else name: declared
            for table in self.tables
            for name, declared in table.columns.items()
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self.list_named())

    def __len__(self) -> int:
        return len(self.list_named())

    def __getitem__(self, name: str) -> ColumnDeclaration:
        named = self.list_named()
        found = find_name(name, named)
        if found is None:
            raise build_unknown_name("column", name, named, "")
        return named[found]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def list_rows(self) -> list[list[str]]:
        """A line for each column: its name, type, bounds or values, and whether it can be NULL."""
        described = [column for table in self.tables for column in write_table_json(table)["columns"]]
        return [
            [name, column["type"], describe_bounds(column), "yes" if column["nullable"] else "no"]
            for name, column in zip(self, described, strict=True)
        ]

    def __repr__(self) -> str:
        return write_text_table(COLUMN_HEADINGS, self.list_rows())

    def _repr_html_(self) -> str:
        return make_card("Columns", make_table(COLUMN_HEADINGS, self.list_rows()))


@dataclass(frozen=True, slots=True)
class DeclaredTables:
    """The tables of a dataset. It lists their names; `tables["visits"]` has the columns of that table."""

    dataset: Dataset

    def __iter__(self) -> Iterator[str]:
        return iter(self.dataset.tables)

    def __len__(self) -> int:
        return len(self.dataset.tables)

    def __getitem__(self, name: str) -> DeclaredColumns:
        return DeclaredColumns((self.dataset.table(name),))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    @property
    def columns(self) -> DeclaredColumns:
        """The columns of all tables."""
        return DeclaredColumns(tuple(self.dataset.tables.values()))

    def list_rows(self) -> list[list[str]]:
        """A line for each table: its name, its columns, and its privacy unit."""
        return [[table.name, ", ".join(table.columns), describe_unit(table)] for table in self.dataset.tables.values()]

    def __repr__(self) -> str:
        return write_text_table(("table", "columns", "privacy unit"), self.list_rows())

    def make_html(self) -> str:
        """Each table with its columns, to stand in a card."""
        pieces = []
        for table in self.dataset.tables.values():
            columns = make_table(COLUMN_HEADINGS, DeclaredColumns((table,)).list_rows())
            summary = f"{table.name}: {', '.join(table.columns)}"
            pieces.append(make_details(summary, make_note(describe_unit(table)) + columns))
        return "".join(pieces)

    def _repr_html_(self) -> str:
        return make_card("Tables", self.make_html())
