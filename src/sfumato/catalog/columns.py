"""Declared columns: their types and bounds."""

import math
import operator
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from numbers import Real as AnyReal
from typing import Any, SupportsIndex, TypeVar

from sfumato.catalog.catalog_errors import build_catalog_error, show_value
from sfumato.catalog.names import is_encodable
from sfumato.errors import describe_kind
from sfumato.kernel.expressions import ColumnType

MOST_BOUND = 2**53  # every whole number up to here is a double


MOST_VALUES = 100_000


NOT_GIVEN: Any = None  # what a bound is without its argument: the constructor then says what a bound is for

Bound = TypeVar("Bound", int, float, date)


@dataclass(frozen=True, slots=True)
class Integer:
    """Whole numbers. Values outside the bounds are clamped."""

    lower: int = NOT_GIVEN
    upper: int = NOT_GIVEN
    nullable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        _require_bounds(self.lower, self.upper, "Integer(0, 120)")
        freeze(self, lower=_read_whole(self.lower, "lower"), upper=_read_whole(self.upper, "upper"))
        _check_order(self.lower, self.upper)
        read_flag(self.nullable, "nullable")


@dataclass(frozen=True, slots=True)
class Real:
    """Numbers. Values outside the bounds are clamped."""

    lower: float = NOT_GIVEN
    upper: float = NOT_GIVEN
    nullable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        _require_bounds(self.lower, self.upper, "Real(0, 500)")
        freeze(self, lower=_read_real(self.lower, "lower"), upper=_read_real(self.upper, "upper"))
        _check_order(self.lower, self.upper)
        read_flag(self.nullable, "nullable")


@dataclass(frozen=True, slots=True, init=False)
class Category:
    """One of a public list of values: all texts, all whole numbers or all truth values."""

    values: tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]
    nullable: bool

    def __init__(self, values: Sequence[str | int | bool] = NOT_GIVEN, *, nullable: bool = True) -> None:
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            raise build_catalog_error(
                f"values must be a list; got {describe_kind(values)}.", 'For example: values = ["north", "south"].'
            )
        if not 1 <= len(values) <= MOST_VALUES:
            raise build_catalog_error(
                f"values must hold 1 to {MOST_VALUES:,} values; got {len(values):,}.", "List the public values."
            )
        types = {type(value) for value in values}
        if len(types) != 1 or not types <= {str, int, bool}:
            hint = "Quote the values to make them all texts; an array's own .tolist() gives plain Python values."
            raise build_catalog_error("values must be all texts, all whole numbers or all truth values.", hint)
        value, times = Counter(values).most_common(1)[0]
        if times > 1:
            raise build_catalog_error(f"values holds {show_value(value)} {times} times.", "Keep one of them.")
        if types == {str} and not all(is_encodable(str(value)) for value in values):
            raise build_catalog_error("values holds text that is not Unicode (a lone surrogate).", "Repair the text.")
        if types == {int} and not all(abs(int(value)) <= 2**53 for value in values):
            raise build_catalog_error(
                "values holds a whole number beyond 2**53.", "Quote the values to make them texts."
            )
        freeze(self, values=tuple(values), nullable=read_flag(nullable, "nullable"))


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""

    nullable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        read_flag(self.nullable, "nullable")


@dataclass(frozen=True, slots=True)
class Text:
    """Any text."""

    nullable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        read_flag(self.nullable, "nullable")


@dataclass(frozen=True, slots=True, init=False)
class Date:
    """Days. Values outside the bounds are clamped."""

    lower: date
    upper: date
    nullable: bool

    def __init__(self, lower: str | date = NOT_GIVEN, upper: str | date = NOT_GIVEN, *, nullable: bool = True) -> None:
        _require_bounds(lower, upper, "Date('2025-01-01', '2025-12-31')")
        freeze(
            self,
            lower=_read_day(lower, "lower"),
            upper=_read_day(upper, "upper"),
            nullable=read_flag(nullable, "nullable"),
        )
        _check_order(self.lower, self.upper)


@dataclass(frozen=True, slots=True, init=False)
class DateTime:
    """Dates with a time, to the microsecond. Values with a time zone are converted to UTC. Clamped to the bounds."""

    lower: datetime
    upper: datetime
    nullable: bool

    def __init__(
        self, lower: str | datetime = NOT_GIVEN, upper: str | datetime = NOT_GIVEN, *, nullable: bool = True
    ) -> None:
        _require_bounds(lower, upper, "DateTime('2025-01-01T00:00:00', '2025-12-31T23:59:59')")
        freeze(
            self,
            lower=_read_moment(lower, "lower"),
            upper=_read_moment(upper, "upper"),
            nullable=read_flag(nullable, "nullable"),
        )
        _check_order(self.lower, self.upper)


@dataclass(frozen=True, slots=True)
class Id:
    """An identifier of a person or thing. Queries can count it and join on it; no answer shows it.

    `unique`: no two rows of one person have the same one. A load drops rows that repeat it.
    """

    unique: bool = field(default=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        read_flag(self.unique, "unique")


ColumnDeclaration = Integer | Real | Category | Boolean | Text | Date | DateTime | Id


_TYPES = {
    Integer: ColumnType.INTEGER,
    Real: ColumnType.REAL,
    Boolean: ColumnType.BOOLEAN,
    Text: ColumnType.TEXT,
    Date: ColumnType.DATE,
    DateTime: ColumnType.DATETIME,
    Id: ColumnType.ID,
    str: ColumnType.TEXT,  # these three: a category of such values
    int: ColumnType.INTEGER,
    bool: ColumnType.BOOLEAN,
}


def column_type(declaration: ColumnDeclaration) -> ColumnType:
    """The type of a declared column in the snapshot."""
    return _TYPES[type(declaration.values[0] if isinstance(declaration, Category) else declaration)]


def freeze(thing: object, **values: object) -> None:
    """Set fields of a frozen dataclass, in its constructor."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)


def _require_bounds(lower: object, upper: object, example: str) -> None:
    if lower is None or upper is None:
        name, _, _ = example.partition("(")
        raise build_catalog_error(
            f"{name} needs a lower and an upper bound: they limit what one person can change.",
            f"For example sf.{example}. Take them from what is known without the data (docs/how-to/choose-bounds.md).",
        )


def _check_order(lower: Bound, upper: Bound) -> None:
    if lower > upper:
        hint = f"Swap them: lower = {upper}, upper = {lower}."
        raise build_catalog_error(f"lower ({lower}) must not exceed upper ({upper}).", hint)


def read_flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise build_catalog_error(f"{name} must be true or false; got {describe_kind(value)}.")
    return value


def _read_whole(value: object, name: str) -> int:
    number = MOST_BOUND + 1
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        with suppress(TypeError):  # an array of several numbers has the method, and raises
            number = operator.index(value)
    if abs(number) > MOST_BOUND:
        hint = "Other numbers belong in a real column."
        raise build_catalog_error(f"{name} must be a whole number within 2**53; got {describe_kind(value)}.", hint)
    return number


def _read_real(value: object, name: str) -> float:
    try:
        number = float(value) if isinstance(value, AnyReal | Decimal) and not isinstance(value, bool) else math.nan
    except (OverflowError, ValueError):
        number = math.nan
    if not abs(number) <= MOST_BOUND:
        raise build_catalog_error(
            f"{name} must be a number within 2**53; got {describe_kind(value)}.", f"For example: {name} = 0.5."
        )
    return number + 0.0  # there is one zero


def _read_day(value: object, name: str) -> date:
    if type(value) is date:
        return value
    try:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise build_catalog_error(
        f"{name} must be a date; got {describe_kind(value)}.", f'Write year-month-day: {name} = "1900-01-31".'
    )


def _read_moment(value: object, name: str) -> datetime:
    if type(value) is datetime and value.tzinfo is None:
        return value.replace(fold=0)
    try:
        form = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
        if isinstance(value, str) and re.fullmatch(form, value):
            return datetime.fromisoformat(value)
    except ValueError:
        pass
    hint = f'Write the date, T and the time: {name} = "1900-01-31T23:59:59".'
    got, text = describe_kind(value), value.isoformat() if type(value) is date else value
    if isinstance(text, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        got = "a date without a time"
        hint = f'Write the time too: {name} = "{text}T{"23:59:59" if name == "upper" else "00:00:00"}".'
    raise build_catalog_error(f"{name} must be a date and time without a time zone; got {got}.", hint)
