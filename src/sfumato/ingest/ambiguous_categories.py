"""Values of a category that are one number. In a column of numbers, the owner cannot mean both of them.

Without this check a value would still be read by itself, so no proof rests on this file.
"""

from sfumato.catalog.columns import Category, ColumnDeclaration
from sfumato.ingest.canonical import is_decimal
from sfumato.ingest.parsing import NUMBERS, group_by_number, is_read_as_text
from sfumato.ingest.source_refusals import build_one_number_error


def refuse_ambiguous(table: str, name: str, declared: ColumnDeclaration, kind: str) -> None:
    """Refuse a column of numbers or truth values for two declared texts that are one number or truth value."""
    is_number = kind in (*NUMBERS, "BOOLEAN") or is_decimal(kind)
    if is_number and isinstance(declared, Category) and is_read_as_text(declared):
        for values in group_by_number(declared).values():
            if len(values) > 1:
                raise build_one_number_error(table, name, (values[0], values[1]))
