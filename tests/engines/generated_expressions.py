"""Random expressions over a row: numbers and conditions, of columns whose kinds are known."""

from dataclasses import dataclass
from random import Random

WHOLE, REAL, TRUTH, LISTED = "whole", "real", "truth", "listed"
TEXT, DATE, MOMENT, LINK = "text", "date", "moment", "link"
NUMBERS = (WHOLE, REAL)
LITERALS = {
    WHOLE: ("0", "1", "2", "3", "40", "-7"),
    REAL: ("0", "0.5", "3", "-2.25", "1e-3", "12.7"),
    LISTED: ("'Rome'", "'O''slo'", "'n'", "'yes'", "'Bern'", "''"),
    TEXT: ("'smith'", "'priest'", "''", "'ß:a'", "'a'"),
    DATE: ("DATE '2024-02-29'", "DATE '1980-06-01'", "'2024-05-31'", "DATE '2100-01-01'"),
    MOMENT: ("TIMESTAMP '2024-03-31 01:30:00'", "'2024-01-01 00:00:00'", "DATE '2024-06-01'"),
    TRUTH: ("TRUE", "FALSE"),
}
PATTERNS = ("'s%'", "'%i%'", "'_'", "'%'", "'O''_%o'", "'.%'")


@dataclass(frozen=True)
class Rows:
    """What follows FROM, how its columns are written, and the parts of WITH that it needs."""

    text: str
    columns: tuple[tuple[str, str], ...]
    person: str | None
    parts: tuple[str, ...] = ()
    tables: int = 1  # private ones that meet in a row
    alone: bool = True  # one item of FROM: it may stand at the right of JOIN

    def of(self, *kinds: str) -> list[str]:
        """The columns of these kinds."""
        return [name for name, kind in self.columns if kind in kinds]

    @property
    def values(self) -> list[str]:
        """The columns that may be read."""
        return [name for name, kind in self.columns if kind != LINK]


class Expressions:
    """Writes expressions, from a source of chance."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def pick(self, *several):
        return self.random.choice(several)

    def literal(self, kind: str) -> str:
        return self.random.choice(LITERALS[kind])

    def number(self, rows: Rows, depth: int = 2) -> str:
        columns = rows.of(*NUMBERS)
        if not columns or self.chance(5):
            return self.literal(REAL)
        one = self.random.choice(columns)
        if depth == 0 or self.chance(30):
            return one
        inner, condition = self.number(rows, depth - 1), self.truth(rows, depth - 1)
        forms = [
            f"{one} {self.pick('+', '-', '*')} {inner}",
            f"({inner} {self.pick('+', '-')} {self.literal(REAL)}) * {self.pick('0.1', '3', '-2')}",
            f"{inner} / (ABS({one}) + {self.pick('1', '0.5', '7')})",
            f"{one} / {self.pick('3', '-0.7', '1e3')}",
            f"-({inner})",
            f"{self.pick('ABS', 'FLOOR', 'CEIL')}({inner})",
            f"COALESCE({one}, {self.literal(WHOLE)})",
            f"CASE WHEN {condition} THEN {inner} WHEN {self.truth(rows, 0)} THEN {one} ELSE 2 END",
            f"CASE WHEN {condition} THEN {inner} END",
        ]
        for day in rows.of(DATE, MOMENT)[:2]:
            part = self.pick("month", "year", "day", "week", "dow", "doy", "quarter")
            unit = self.pick("day", "month", "quarter", "year")  # in DuckDB itself a week has seven days, from any day
            forms += [f"EXTRACT({part} FROM {day})", f"DATE_DIFF('{unit}', {day}, DATE '2024-03-01')"]
        return self.random.choice(forms)

    def varying(self, rows: Rows) -> str:
        """A number that is not a constant."""
        if not rows.of(*NUMBERS):
            return f"CASE WHEN {self.truth(rows, 1)} THEN 1 ELSE 0.5 END"
        while True:
            made = self.number(rows)
            if any(name in made for name in rows.values):
                return made

    def truth(self, rows: Rows, depth: int = 2) -> str:
        if depth and self.chance(40):
            one, two = self.truth(rows, depth - 1), self.truth(rows, depth - 1)
            return self.pick(f"({one} AND {two})", f"({one} OR {two})", f"NOT ({one})")
        others = self._about_others(rows)
        if others and self.chance(60):
            return self.random.choice(others)
        one, two, sign = self.number(rows, 0), self.number(rows, 0), self._sign()
        return self.pick(
            f"{self.number(rows, max(depth - 1, 0))} {sign} {self.literal(REAL)}",
            f"{one} {sign} {two}",
            f"{one} / {two} {sign} {self.literal(REAL)}",
            f"{one} {self.pick('', 'NOT ')}BETWEEN {self.pick('-3', '0', '1.5')} AND {self.pick('2', '30.5')}",
            f"{one} {self.pick('', 'NOT ')}IN (1, 2, {self.literal(WHOLE)})",
        )

    def _about_others(self, rows: Rows) -> list[str]:
        """Conditions on columns that are not numbers."""
        found = [f"{column} IS {self.pick('', 'NOT ')}NULL" for column in rows.values]
        for column, kind in rows.columns:
            if kind in (LISTED, TEXT):
                found += [
                    f"{column} {self.pick('=', '<>', '<', '>=')} {self.literal(kind)}",
                    f"{column} {self.pick('', 'NOT ')}LIKE {self.pick(*PATTERNS)}",
                    f"{column} IN ({self.literal(kind)}, {self.literal(kind)})",
                ]
            elif kind in (DATE, MOMENT):
                found.append(f"{column} {self._sign()} {self.literal(kind)}")
            elif kind == TRUTH:
                found.append(column)
        return found

    def _sign(self) -> str:
        return self.pick("=", "<>", "<", "<=", ">", ">=")

    def where(self, rows: Rows, percent: int = 60) -> str:
        """WHERE with one or two conditions, or nothing."""
        if not self.chance(percent):
            return ""
        return " WHERE " + " AND ".join(self.truth(rows) for _ in range(self.pick(1, 1, 2)))
