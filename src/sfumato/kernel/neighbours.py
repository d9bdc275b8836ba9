"""The privacy unit and the neighbouring relation: which pairs of datasets must be hard to distinguish."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from sfumato.errors import InvalidParameter, describe_kind


class Row(Enum):
    """The unit of protection when every row is one person."""

    ROW = "row"


ROW: Final = Row.ROW


class Neighbours(Enum):
    """Two datasets are neighbours when they differ in one person: present or absent, or one replaced by another."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    @classmethod
    def read(cls, value: object) -> "Neighbours":
        """The relation of that name.

        Claim: K-14. Only a known relation is ever used: an unknown one is refused, never taken for another.
        Checked by: tests/kernel/test_neighbours.py::test_unknown_relations_are_refused
        """
        for relation in cls:
            if value is relation or (isinstance(value, str) and value == relation.value):
                return relation
        raise InvalidParameter("neighbours", "must be 'add-remove' or 'replace-one'", describe_kind(value))

    @property
    def people_moved(self) -> Literal[1, 2]:
        """How many people's records the two datasets do not share: a replacement removes one and adds one."""
        return 1 if self is Neighbours.ADD_REMOVE else 2


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """One row of `table`, or all rows that share a value of `id_column`, under a neighbouring relation."""

    table: str
    id_column: str | Literal[Row.ROW]
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        for name in (self.table, "row" if self.id_column is ROW else self.id_column):
            if not isinstance(name, str) or not name.strip():
                raise InvalidParameter("table and id_column", "must be names", "nothing to name it by")
        object.__setattr__(self, "neighbours", Neighbours.read(self.neighbours))

    @property
    def per_row(self) -> bool:
        return self.id_column is ROW
