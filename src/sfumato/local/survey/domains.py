"""The domain of a survey's answers: one of several labels, a number, yes or no to questions, or any word."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.entropy import Entropy
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.heavy_hitters import HeavyHitters
from sfumato.local.randomisers.mean_randomisers import MeanRandomiser
from sfumato.local.randomisers.questions import Questions
from sfumato.local.randomisers.report_forms import Reports
from sfumato.local.randomisers.word_bits import Words, pack_numbers

Table = Randomiser | MeanRandomiser | Questions | HeavyHitters
Answer = (
    int | str
)  # the input of a table, as canonical JSON: a category, a position, or the hex of a row of bits or bytes


@dataclass(frozen=True, slots=True)
class Categories:
    """One of these labels."""

    labels: tuple[str, ...]

    def read(self, value: object, table: Table) -> Answer:
        """Return the index of a label. The index itself is accepted too."""
        if isinstance(value, str) and value in self.labels:
            return self.labels.index(value)
        if isinstance(value, bool | np.bool_) and len(self.labels) == 2:
            return int(value)
        if isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < len(self.labels):
            return int(value)
        raise _build_refusal("must be one of the survey's labels, or its index from 0", value)


@dataclass(frozen=True, slots=True)
class Numbers:
    """A number between these bounds. A number outside is clamped to the nearer bound."""

    lower: Decimal
    upper: Decimal

    def read(self, value: object, table: Table) -> Answer:
        """Return the position of the number between the bounds, from 0 to 2**32."""
        number = isinstance(value, int | float | Decimal | np.integer | np.floating) and not isinstance(value, bool)
        if not number or not math.isfinite(_to_float(value)) or not isinstance(table, MeanRandomiser):
            raise _build_refusal("must be a finite number", value)
        return int(table.positions(_to_float(value))[0][0])


@dataclass(frozen=True, slots=True)
class YesNo:
    """Yes or no to each of these questions."""

    labels: tuple[str, ...]

    def read(self, value: object, table: Table) -> Answer:
        """Return a row of bits in hex, from a mapping of labels to True or False, or a list in the labels' order."""
        row = [value.get(label) for label in self.labels] if isinstance(value, Mapping) else value
        if isinstance(value, Mapping) and value.keys() != set(self.labels):
            row = None
        if isinstance(row, str | bytes) or not isinstance(row, Sequence | np.ndarray) or len(row) != len(self.labels):
            raise _build_refusal("must be yes or no (True or False) for each of the survey's labels", value)
        if not all(isinstance(answer, bool | np.bool_) for answer in row):
            raise _build_refusal("must be yes or no (True or False) for each of the survey's labels", value)
        return np.packbits(np.array(row, np.bool_), bitorder="little").tobytes().hex()


@dataclass(frozen=True, slots=True)
class AnyWord:
    """Any text. What is longer than the code allows is cut: `words.decode(words.encode(text))` is what is reported."""

    words: Words

    def read(self, value: object, table: Table) -> Answer:
        """Return the bits of the text in hex, the first bit highest."""
        if not isinstance(value, str) or not value or "\0" in value or not _is_whole_text(value):
            raise _build_refusal("must be a text of one or more characters", value)
        if self.words.alphabet and not set(value[: self.words.length]) <= set(self.words.alphabet):
            raise _build_refusal("must use only characters of the survey's alphabet", value)
        return pack_numbers([self.words.encode(value)], self.words.bits).tobytes().hex()


Domain = Categories | Numbers | YesNo | AnyWord


def draw_report(table: Table, answer: Answer, entropy: Entropy) -> int | str:
    """Draw one person's report, as a JSON value."""
    drawn: Reports
    match table, answer:
        case Randomiser(mechanism), int():
            drawn = mechanism.draw(np.array([answer], np.int64), entropy)
        case MeanRandomiser(table=finite), int():
            drawn = finite.draw(np.array([answer], np.int64), entropy)
        case Questions(count=count), str():
            packed = np.frombuffer(bytes.fromhex(answer), np.uint8)
            drawn = table.draw(np.unpackbits(packed, count=count, bitorder="little").astype(np.bool_)[None], entropy)
        case HeavyHitters(), str():
            drawn = table.draw(np.frombuffer(bytes.fromhex(answer), np.uint8)[None], entropy)
        case _:
            raise AssertionError("the answer was read by the domain of another table")
    return table.form.encode(drawn)[0]


def _is_whole_text(value: str) -> bool:
    """Whether it has no half of a surrogate pair, which has no UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _to_float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # any object: what float() refuses is NaN
    except (OverflowError, ValueError, TypeError):
        return math.nan


def _build_refusal(rule: str, value: object) -> InvalidParameter:
    return InvalidParameter("value", rule, "another" if isinstance(value, str | int) else describe_kind(value))
