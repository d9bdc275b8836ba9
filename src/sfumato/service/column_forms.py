"""Columns as a form declares them: a type, and bounds or values."""

import csv
import re
from collections.abc import Mapping

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Id, Integer, Real, Text
from sfumato.errors import InvalidParameter

KINDS = ("integer", "real", "category", "boolean", "text", "date", "datetime", "id")
_FILE_TYPES = {"BOOLEAN": "boolean", "DATE": "date"}


def suggest_kind(file_type: str) -> str:
    """A type for a column, from the type that its file declares; nothing for a text, which a CSV file has only."""
    if file_type.endswith(("INT", "INTEGER")):
        return "integer"
    if file_type in ("FLOAT", "DOUBLE") or file_type.startswith("DECIMAL"):
        return "real"
    return "datetime" if file_type.startswith("TIMESTAMP") else _FILE_TYPES.get(file_type, "")


def read_column(name: str, given: Mapping[str, str]) -> ColumnDeclaration:  # noqa: PLR0911 - one for each type
    """The declaration that a form describes."""
    kind, lower, upper = given["kind"], given.get("lower", "").strip(), given.get("upper", "").strip()
    nullable = not given.get("not_null")
    try:
        match kind:
            case "integer":
                return Integer(int(lower), int(upper), nullable=nullable)
            case "real":
                return Real(float(lower), float(upper), nullable=nullable)
            case "date":
                return Date(lower, upper, nullable=nullable)
            case "datetime":
                return DateTime(lower, upper, nullable=nullable)
            case "category":
                return Category(_read_values(given.get("values", "")), nullable=nullable)
            case "boolean":
                return Boolean(nullable=nullable)
            case "text":
                return Text(nullable=nullable)
            case "id":
                return Id()
    except ValueError as error:
        if isinstance(error, InvalidParameter):
            raise
        raise InvalidParameter(name, f"needs a lower and an upper bound of type {kind}", "something else") from None
    raise InvalidParameter(name, f"must have one of the types {', '.join(KINDS)}", "another")


def _read_values(text: str) -> list[str] | list[int]:
    """Values with commas between them; double quotes enclose one with a comma. Whole numbers, if all of them are."""
    values = [value.strip() for value in next(csv.reader([text.replace("\n", ",")], skipinitialspace=True), [])]
    values = [value for value in values if value]
    if values and all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value) for value in values):
        return [int(value) for value in values]
    return values
