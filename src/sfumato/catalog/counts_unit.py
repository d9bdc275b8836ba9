"""The privacy unit of a counts table: each record has a count, and each unit of the count is one person."""

import re
from dataclasses import dataclass
from typing import Literal

from sfumato.catalog.catalog_errors import build_catalog_error
from sfumato.catalog.columns import Integer
from sfumato.catalog.names import read_name
from sfumato.kernel.neighbours import ROW, Row

MOST_PEOPLE = 100_000_000  # in one counts table, and so in one record: a pinned table has a row for each of them
ONE_PERSON = Integer(0, 1, nullable=False)  # the count column in questions: it is 1 for each person
COUNTS_TEXT = re.compile(r"COUNTS\((.+)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Counts:
    """The unit of a counts table. A record whose `column` is 5 stands for 5 people."""

    column: str

    def __post_init__(self) -> None:
        read_name(self.column, "the count column")


COUNTS = Counts


def split_unit(unit: "str | Literal[Row.ROW] | Counts") -> tuple[str | Literal[Row.ROW], str | None]:
    """The unit of the pinned rows, and the count column if the unit is COUNTS."""
    return (ROW, unit.column) if isinstance(unit, Counts) else (unit, None)


def read_unit(text: str) -> str | Literal[Row.ROW] | Counts:
    """The unit that a text names: ROW, COUNTS(n), or a column."""
    counts = COUNTS_TEXT.fullmatch(text)
    if counts is not None:
        return Counts(counts[1].strip())
    return ROW if text == "ROW" else text


def read_count_limit(column: str, declared: object) -> int | None:
    """The largest count of one record, by the owner's declaration of the count column. Larger counts are clamped."""
    match declared:
        case None:
            return None
        case Integer(lower=0, upper=upper, nullable=True) if upper >= 1:
            return upper
        case _:
            hint = f"Leave {column} out of the columns. To clamp large counts, declare it as an integer from 0."
            raise build_catalog_error(f"the count column {column} is declared as something else than a count.", hint)
