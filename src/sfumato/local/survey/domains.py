"""What may be answered: one of some labels, a number between bounds, or yes or no to each of some questions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from sfumato.errors import InvalidParameter, kind_of
from sfumato.kernel.entropy import Entropy
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.questions import Questions

Table = Randomiser | MeanRandomiser | Questions
Answer = int | str  # what goes into a table, as canonical JSON: a category, a position, or the hex of a row of bits


@dataclass(frozen=True, slots=True)
class Categories:
    """One of these labels."""

    labels: tuple[str, ...]

    def read(self, value: object, table: Table) -> Answer:
        """The place of a label; or the place itself, from 0."""
        if isinstance(value, str) and value in self.labels:
            return self.labels.index(value)
        if isinstance(value, bool | np.bool_) and len(self.labels) == 2:
            return int(value)
        if isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < len(self.labels):
            return int(value)
        raise _refused("must be one of the survey's labels, or its place from 0", value)


@dataclass(frozen=True, slots=True)
class Numbers:
    """A number between these bounds; what lies outside counts as the nearer one."""

    lower: Decimal
    upper: Decimal

    def read(self, value: object, table: Table) -> Answer:
        """Where the number lies between the bounds, from 0 to 2**32."""
        number = isinstance(value, int | float | Decimal | np.integer | np.floating) and not isinstance(value, bool)
        if not number or not math.isfinite(_as_float(value)) or not isinstance(table, MeanRandomiser):
            raise _refused("must be a finite number", value)
        return int(table.positions(_as_float(value))[0][0])


@dataclass(frozen=True, slots=True)
class YesNo:
    """Yes or no to each of these."""

    labels: tuple[str, ...]

    def read(self, value: object, table: Table) -> Answer:
        """A row of bits, in hex, as reports have them: True or False for each label, or in the labels' order."""
        row = [value.get(label) for label in self.labels] if isinstance(value, Mapping) else value
        if isinstance(value, Mapping) and value.keys() != set(self.labels):
            row = None
        if isinstance(row, str | bytes) or not isinstance(row, Sequence | np.ndarray) or len(row) != len(self.labels):
            raise _refused("must be yes or no (True or False) for each of the survey's labels", value)
        if not all(isinstance(each, bool | np.bool_) for each in row):
            raise _refused("must be yes or no (True or False) for each of the survey's labels", value)
        return np.packbits(np.array(row, np.bool_), bitorder="little").tobytes().hex()


Domain = Categories | Numbers | YesNo


def draw_one(table: Table, answer: Answer, entropy: Entropy) -> int | str:
    """One person's report, as a JSON value."""
    match table, answer:
        case Randomiser(mechanism), int():
            drawn = mechanism.draw(np.array([answer], np.int64), entropy)
        case MeanRandomiser(table=finite), int():
            drawn = finite.draw(np.array([answer], np.int64), entropy)
        case Questions(count=count), str():
            packed = np.frombuffer(bytes.fromhex(answer), np.uint8)
            drawn = table.draw(np.unpackbits(packed, count=count, bitorder="little").astype(np.bool_)[None], entropy)
        case _:
            raise AssertionError("an answer is read by the domain of its own table")
    return table.form.encode(drawn)[0]


def _as_float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, ValueError, TypeError):
        return math.nan


def _refused(rule: str, value: object) -> InvalidParameter:
    return InvalidParameter("value", rule, "another" if isinstance(value, str | int) else kind_of(value))
