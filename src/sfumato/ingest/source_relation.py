"""A source that is open: what to select from, and how its values are read. Part of the trusted perimeter: K-50."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.catalog.columns import ColumnDeclaration
from sfumato.catalog.text_format import PLAIN_TEXT, TextFormat


@dataclass(frozen=True, slots=True)
class SourceRelation:
    """What follows FROM, and the type of each column: as DuckDB names it, or as `canonical.py` does.

    Of CSV files also the number of records, and by file the numbers of the malformed lines that were dropped.
    """

    relation: str
    columns: Mapping[str, str]
    records: int | None = None
    malformed: Mapping[str, Sequence[int]] = field(default_factory=dict)
    reading: TextFormat = PLAIN_TEXT
    untyped: bool = False  # every column is a text because the source has no types
    doubtful: Collection[str] | None = None  # the columns whose outcomes are written with the rows; None: all

    def list_doubtful(self, kept: Mapping[str, ColumnDeclaration]) -> dict[str, ColumnDeclaration]:
        """Those columns whose outcomes are written with the rows."""
        return {name: declared for name, declared in kept.items() if self.doubtful is None or name in self.doubtful}
