"""Everything that an observer can see of one output, in a canonical form: types, shapes, exact bits, errors."""

import hashlib
import re
import struct
from array import array
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import reduce

import numpy as np

from sfumato.lab.auditing.output_parts import (
    Unseen,
    has_hidden_state,
    name_type,
    read_attributes,
    split_output,
    write_repr,
)

DEEPEST = 20  # levels of nested containers that are looked into
EXACT = 1 << 53  # floats hold every whole number up to here
MOST_EXACT, SHOWN_EXACT = 64, 6  # values of an output that are kept as they are; of more, so many and a digest
MODULUS = 240  # the least common multiple of the moduli of the search
REMAINDER = f" modulo {MODULUS}"  # the end of the path of a remainder
HEXADECIMAL = " in hexadecimal"  # the end of the path of bytes
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # where an object is in memory: differs from run to run
_PLAIN_VALUES = (date, time, timedelta, range, slice, re.Pattern, type(...), type(NotImplemented))  # their repr has all


@dataclass(frozen=True, slots=True)
class Observed:
    """One output. `structure` has types, shapes and names; numbers and texts are found by their path in the output.

    Two outputs are equal for an observer if and only if `exact` is equal, apart from what `unseen` lists.
    """

    structure: str
    numbers: "dict[str, float] | PackedNumbers"
    texts: dict[str, str]
    exact: Hashable
    unseen: frozenset[str] = frozenset()

    def pack(self, known: dict[tuple[str, ...], tuple[str, ...]]) -> "Observed":
        """The same in less memory. `known` has the paths of earlier outputs, which most outputs share."""
        paths = tuple(self.numbers)
        packed = PackedNumbers(known.setdefault(paths, paths), array("d", (value for _, value in self.numbers.items())))
        return replace(self, numbers=packed)


@dataclass(frozen=True, slots=True)
class PackedNumbers:
    """Numbers by their path, eight bytes each."""

    paths: tuple[str, ...]
    values: "array[float]"

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def items(self) -> Iterator[tuple[str, float]]:
        """Paths and numbers, as of a dict."""
        return zip(self.paths, self.values, strict=True)


def run_and_observe(mechanism: Callable[[object], object], data: object) -> Observed:
    """Run a mechanism once. An exception is an output too. Only Ctrl-C of the user ends the audit."""
    try:
        output = mechanism(data)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        error.__traceback__ = None
        contents = _Contents()
        structure = f"raises {contents.walk(error, '')}"
        return contents.finish(structure)
    return observe(output)


def observe(output: object) -> Observed:
    """The canonical form of an output."""
    if type(output) is float:
        return Observed("float", {"": output}, {}, struct.pack("<d", output))
    if type(output) is int and -EXACT <= output <= EXACT:
        return Observed("int", {"": float(output)}, {}, output)
    contents = _Contents()
    return contents.finish(contents.walk(output, ""))


def to_float(number: object) -> float:
    """The nearest float; beyond the floats, infinity. The exact number stays in `Observed.exact`."""
    try:
        return float(number)  # type: ignore[arg-type]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")  # type: ignore[operator]
    except ValueError:  # a signalling NaN
        return float("nan")


class _Contents:
    """The numbers and texts of one output, collected while it is walked through."""

    def __init__(self) -> None:
        self.numbers: dict[str, float] = {}
        self.texts: dict[str, str] = {}
        self.exact: list[Hashable] = []
        self.unseen: set[str] = set()
        self._inside: set[int] = set()  # the containers that are being walked through: one may hold itself

    def finish(self, structure: str) -> Observed:
        exact = tuple(self.exact)
        if len(exact) > MOST_EXACT:  # a digest stands for the rest: runs are many
            exact = (*exact[:SHOWN_EXACT], hashlib.sha256(repr(exact).encode()).hexdigest())
        return Observed(structure, self.numbers, self.texts, (structure, *exact), frozenset(self.unseen))

    def add_number(self, path: str, number: object) -> None:
        self.numbers[path] = to_float(number)
        self.exact.append(_write_number(number))
        match number:
            case int() | np.integer():
                self._add_remainder(path, int(number))
            case Decimal() if number.is_finite():
                _, digits, exponent = number.as_tuple()
                self.numbers[f"{path} exponent"] = float(exponent)
                self.numbers[path + REMAINDER] = reduce(lambda rest, digit: (10 * rest + digit) % MODULUS, digits, 0.0)
            case Fraction():
                self.numbers[f"{path} denominator"] = to_float(number.denominator)
                self._add_remainder(f"{path} denominator", number.denominator)
                self.numbers[f"{path} numerator{REMAINDER}"] = float(number.numerator % MODULUS)
            case _:
                pass

    def _add_remainder(self, path: str, number: int) -> None:
        if not -EXACT <= number <= EXACT:
            self.numbers[path + REMAINDER] = float(number % MODULUS)

    def add_text(self, path: str, text: str) -> None:
        self.texts[path] = text
        self.exact.append(text)

    def walk(self, output: object, path: str, depth: int = 0) -> str:
        """Add what an output holds; return its structure."""
        name = name_type(output)
        if id(output) in self._inside:
            return f"{name}, around itself"
        if depth > DEEPEST:
            self.unseen.add(f"what is nested deeper than {DEEPEST} levels")
            return f"{name}, nested too deep"
        self._inside.add(id(output))
        try:
            return self._look_into(output, path, depth)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # code of the output, such as __repr__ or a property
            self.unseen.add(f"a {name} that raises {type(error).__name__} when it is read")
            return f"{name} that raises {type(error).__name__}"
        finally:
            self._inside.discard(id(output))

    def _look_into(self, output: object, path: str, depth: int) -> str:
        name = name_type(output)
        split = split_output(output)
        if split is None:
            described = self._add_value(output, path)
            if type(output).__module__ == "builtins":
                return described
            own = read_attributes(output)
            return described + self._walk_parts(own, path, depth) if own else described
        described, parts = split
        if isinstance(output, BaseException):
            self.add_text(f"{path}.message" if path else "message", _ADDRESS.sub("", str(output)))
            return name + self._walk_parts(parts, path, depth) if parts else name
        return f"{name}{described}{self._walk_parts(parts, path, depth)}"

    def _walk_parts(self, parts: dict[str, object], path: str, depth: int) -> str:
        kinds = []
        for key, part in parts.items():
            if isinstance(part, Unseen):
                self.unseen.add(part.what)
                kinds.append("unseen")
            else:
                kinds.append(self.walk(part, path + key, depth + 1))
        whole = f"{len(kinds)} of {kinds[0]}" if kinds and len(set(kinds)) == 1 else ", ".join(kinds)
        return f"({whole})"

    def _add_value(self, output: object, path: str) -> str:
        name = name_type(output)
        match output:
            case None:
                return "None"
            case np.datetime64() | np.timedelta64():
                self.add_text(path, f"{output!s} {output.dtype}")
                self.numbers[path] = float(output.astype(np.int64))
            case bool() | int() | float() | Decimal() | Fraction() | np.number() | np.bool_():
                self.add_number(path, output)
            case str():
                self.add_text(path, output)
                self.numbers[f"the length of {path or 'the text'}"] = float(len(output))
            case bytes() | bytearray():
                self.add_text(path + HEXADECIMAL, output.hex())
                self.numbers[f"the length of {path or 'the bytes'}"] = float(len(output))
            case type():
                if "<locals>" in output.__qualname__:
                    self.unseen.add("the attributes of a class")
                return f"the type {output.__module__}.{output.__qualname__}"
            case _:
                if not isinstance(output, _PLAIN_VALUES) and has_hidden_state(output):
                    self.unseen.add(f"the inside of a {name}, apart from its repr")
                self.add_text(path, _ADDRESS.sub("", write_repr(output)))
        return name


def _write_number(number: object) -> Hashable:
    """The bits of a float; the value of every other number. NaN equals a NaN with the same bits, and -0.0 is not 0."""
    match number:
        case float():
            return struct.pack("<d", number)
        case bool() | np.number() | np.bool_() | Decimal():
            return str(number)
        case Fraction():
            return f"{number.numerator:x}/{number.denominator:x}"
        case int():  # in hexadecimal: Python refuses to write more than 4,300 decimal digits
            return f"{number:x}"
        case _:
            return write_repr(number)
