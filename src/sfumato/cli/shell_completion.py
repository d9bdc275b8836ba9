# ruff: noqa: PLC0415 - what is heavy is imported when it is needed
"""What the shell completes: words of SQL, tables and columns as they are declared. Nothing of it is data."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.catalog.dataset import Dataset

WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "AS", "AND", "OR", "NOT", "IN", "BETWEEN",
    "LIKE", "IS NULL", "IS NOT NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "JOIN", "LEFT JOIN", "ON", "USING",
    "DISTINCT", "DESC", "WITH", "UNION ALL",
)  # fmt: skip
AGGREGATES = (
    "COUNT(", "SUM(", "AVG(", "MIN(", "MAX(", "MEDIAN(", "QUANTILE(", "VARIANCE(", "STDDEV(", "MODE(", "TOP_K(",
    "HISTOGRAM(", "CORR(",
)  # fmt: skip
NAMED = re.compile(r"\b(?:FROM|JOIN)\s+([\w\"]+)(?:\s+(?:AS\s+)?(\w+))?", re.IGNORECASE)
NO_ALIAS = {"where", "group", "order", "having", "join", "left", "right", "on", "using", "limit", "union", "inner"}


def complete_word(word: str, line: str, tables: Mapping[str, Sequence[str]], commands: Sequence[str]) -> list[str]:
    """What the word at the end of a line can become. `tables` are the declared columns, by table."""
    if word.startswith("\\"):
        return [command for command in commands if command.startswith(word)]
    if "." in word:
        named, start = word.rsplit(".", 1)
        table = find_aliases(line, tables).get(named.casefold())
        return [f"{named}.{column}" for column in tables.get(table or "", ()) if _begins(column, start)]
    if re.search(r"\b(FROM|JOIN)\s+\w*$", line, re.IGNORECASE) or re.match(r"\\(columns|d)\b", line):
        return [table for table in tables if _begins(table, word)]
    names = [*tables, *dict.fromkeys(column for columns in tables.values() for column in columns)]
    known = [name for name in names if _begins(name, word)]
    if known and word == word.lower():  # words of SQL are usually typed in capitals, or written out
        return known
    from sfumato.query.function_words import ROW_FUNCTIONS

    functions = (*AGGREGATES, *(f"{name}(" for name in ROW_FUNCTIONS))
    return [*known, *(candidate for candidate in (*WORDS, *functions) if word and _begins(candidate, word))]


def find_aliases(line: str, tables: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The table that each name of a question means: its own name, or one given after FROM or JOIN."""
    names = {table.casefold(): table for table in tables}
    meant = dict(names)
    for table, alias in NAMED.findall(line):
        found = names.get(table.strip('"').casefold())
        if found is not None and alias and alias.casefold() not in NO_ALIAS:
            meant[alias.casefold()] = found
    return meant


def list_declared(dataset: "Dataset") -> dict[str, list[str]]:
    """The columns of each table."""
    return {table.name: list(table.columns) for table in dataset.tables.values()}


def _begins(name: str, start: str) -> bool:
    return name.casefold().startswith(start.casefold())
