# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""Declaring columns: from `age:integer:0:120`, or by asking the owner. Only names are read from the source."""

import csv
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from sfumato.cli.refusals import Usage
from sfumato.cli.show import printable
from sfumato.errors import SfumatoError

if TYPE_CHECKING:
    from sfumato.catalog.columns import ColumnDeclaration

KINDS = ("integer", "real", "category", "boolean", "text", "date", "datetime", "id")
SPECIFIED = re.compile(rf"(?P<name>.+?):(?P<kind>{'|'.join(KINDS)})(?::(?P<rest>.*))?", re.DOTALL)
EXAMPLES = {
    "integer": "age:integer:0:120",
    "real": "cost:real:0:500",
    "category": "city:category:Rome,Oslo",
    "date": "born:date:1900-01-01:2025-12-31",
    "datetime": "seen:datetime:2020-01-01T00:00:00:2026-12-31T23:59:59",
    "boolean": "smoker:boolean",
    "text": "job:text",
    "id": "patient_id:id",
}
SKIP = "skip"


def parse_column(text: str, not_null: Sequence[str] = ()) -> "tuple[str, ColumnDeclaration]":
    """Parse `age:integer:0:120` into a name and a declaration."""
    found = SPECIFIED.fullmatch(text)
    if found is None:
        hint = f"Write name:type, with bounds or values: {', '.join(EXAMPLES.values())}."
        raise Usage(f"--column {text}: this does not declare a column.", hint)
    name, kind, rest = found["name"], found["kind"], found["rest"]
    try:
        return name, parse_type(kind, rest, nullable=name not in not_null)
    except Usage as error:
        raise Usage(f"--column {text}: {error.message}", error.hint) from None


def parse_type(kind: str, rest: str | None, *, nullable: bool = True) -> "ColumnDeclaration":
    """Parse a type with its bounds or values."""
    from sfumato.catalog.columns import Boolean, Category, Date, DateTime, Id, Integer, Real, Text

    example = f"For example {EXAMPLES[kind]}."
    if kind in ("boolean", "text", "id"):
        if rest is not None:
            raise Usage(f"{kind} takes nothing after it.", example)
        if kind == "id":
            if not nullable:
                raise Usage("an id has no --not-null: rows without one are dropped.", "Leave --not-null out.")
            return Id()
        return Boolean(nullable=nullable) if kind == "boolean" else Text(nullable=nullable)
    if kind == "category":
        if not rest:
            raise Usage("category takes its public values.", example)
        return Category(_parse_values(rest), nullable=nullable)
    # a moment holds colons too: the upper one begins with its year
    bounds = re.fullmatch(r"(.*?): *([0-9]{4}-.*)" if kind == "datetime" else "(.*?):(.*)", rest or "", re.DOTALL)
    if bounds is None:
        raise Usage(f"{kind} takes a lower and an upper bound.", example)
    lower, upper = bounds.groups()
    if kind in ("date", "datetime"):
        return (Date if kind == "date" else DateTime)(lower.strip(), upper.strip(), nullable=nullable)
    try:
        if kind == "integer":
            return Integer(int(lower), int(upper), nullable=nullable)
        return Real(float(lower), float(upper), nullable=nullable)
    except ValueError as error:
        if isinstance(error, SfumatoError):
            raise
        raise Usage(f"the bounds of {kind} are numbers.", example) from None


def _parse_values(rest: str) -> list[str] | list[int]:
    """Parse values separated by commas; double quotes enclose one with a comma. Integers if all of them are."""
    values = [value.strip() for value in next(csv.reader([rest], skipinitialspace=True))]
    if all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value) for value in values):
        return [int(value) for value in values]
    return values


def prompt_columns(columns: dict[str, str], not_null: Sequence[str] = ()) -> "dict[str, ColumnDeclaration]":
    """Ask the owner to declare each column. Bounds are public, so they never come from the data."""
    typer.echo(
        "Say what each column can hold. Bounds and values are public: give what is possible in general, not what "
        f"the data holds.\nTypes: {', '.join(KINDS)}; {SKIP} leaves a column out, and no question can name it.",
        err=True,
    )
    answers: dict[str, ColumnDeclaration] = {}
    for name, suggested in columns.items():
        while True:
            kind = typer.prompt(f"{printable(name)}: type", default=suggested, err=True).strip().lower()
            if kind == SKIP:
                break
            try:
                if kind not in KINDS:
                    raise Usage(f"There is no type {kind}.", f"Types: {', '.join(KINDS)}, {SKIP}.")
                answers[name] = parse_type(kind, _prompt_bounds(kind), nullable=name not in not_null)
                break
            except SfumatoError as error:
                typer.echo(f"  {printable(str(error))}", err=True)
    return answers


def _prompt_bounds(kind: str) -> str | None:
    if kind in ("boolean", "text", "id"):
        return None
    if kind == "category":
        return str(typer.prompt("  its values, separated by commas", err=True))
    form = {"date": " (year-month-day)", "datetime": " (as 2026-12-31T23:59:59)"}.get(kind, "")
    lower = str(typer.prompt(f"  at least{form}", err=True))
    return f"{lower}:{typer.prompt(f'  at most{form}', err=True)}"
