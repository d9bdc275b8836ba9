"""The numbers of rows and people that the catalog makes public."""

from dataclasses import dataclass

from sfumato.catalog.dataset import Dataset
from sfumato.kernel.neighbours import ROW, Neighbours
from sfumato.kernel.row_sources import PerUnit, Scan
from sfumato.query.query import Query


@dataclass(frozen=True, slots=True)
class PublicNumbers:
    """The public numbers of the rows that a question is about; None where the catalog declares none."""

    rows: int | None = None  # their weights add up to it
    people: int | None = None


def find_public_numbers(query: Query, dataset: Dataset) -> PublicNumbers:
    """The numbers of all rows of one table, or of one row for each of its people. Filters and keys make them private.

    Everybody in a table has a row there.
    """
    if dataset.neighbours is not Neighbours.REPLACE_ONE or query.filters or query.keys:
        return PublicNumbers()
    match query.source:
        case Scan(name, max_rows=most):
            table = dataset.table(name)
            if table.unit is ROW:
                return PublicNumbers(table.rows)
            return PublicNumbers(table.people if most == 1 else None, table.people)
        case PerUnit(Scan(name), ()):
            people = dataset.table(name).people
            return PublicNumbers(people, people)
        case _:
            return PublicNumbers()


def find_largest_numbers(query: Query, dataset: Dataset) -> tuple[float | None, float | None]:
    """The most rows and people that a question can be about, where the catalog makes it public."""
    if dataset.neighbours is not Neighbours.REPLACE_ONE or not isinstance(query.source, Scan):
        return None, None
    table = dataset.table(query.source.table)
    if table.unit is ROW:
        return table.rows, table.rows
    return (None if table.people is None else table.people * query.source.max_rows), table.people
