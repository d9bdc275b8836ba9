"""Everything that an observer can see of one output, in a canonical form: types, shapes, exact bits, errors."""

import re
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.answers.answer import Answer

DEEPEST = 20  # levels of nested containers that are looked into
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # where an object is in memory: differs from run to run


@dataclass(frozen=True, slots=True)
class Observed:
    """One output. `structure` has types, shapes and names; numbers and texts are found by their path in the output.

    Two outputs are equal for an observer if and only if `exact` is equal.
    """

    structure: str
    numbers: dict[str, float]
    texts: dict[str, str]
    exact: Hashable


def run_and_observe(mechanism: Callable[[object], object], data: object) -> Observed:
    """Run a mechanism once. An exception is an output too: its type and message are observed."""
    try:
        output = mechanism(data)
    except Exception as error:
        raised = f"raises {type(error).__name__}"
        message = _ADDRESS.sub("", str(error))
        return Observed(raised, {}, {"message": message}, (raised, message))
    return observe(output)


def observe(output: object) -> Observed:
    """The canonical form of an output."""
    if type(output) is float:
        return Observed("float", {"": output}, {}, struct.pack("<d", output))
    if type(output) is int:
        return Observed("int", {"": to_float(output)}, {}, output)
    contents = _Contents()
    structure = contents.walk(output, "")
    return Observed(structure, contents.numbers, contents.texts, (structure, *contents.exact))


def to_float(number: object) -> float:
    """The nearest float; beyond the floats, infinity. The exact number stays in `Observed.exact`."""
    try:
        return float(number)  # type: ignore[arg-type]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")  # type: ignore[operator]


class _Contents:
    """The numbers and texts of one output, collected while it is walked through."""

    def __init__(self) -> None:
        self.numbers: dict[str, float] = {}
        self.texts: dict[str, str] = {}
        self.exact: list[Hashable] = []
        self._inside: set[int] = set()  # the containers that are being walked through: one may hold itself

    def add_number(self, path: str, number: object) -> None:
        self.numbers[path] = to_float(number)
        self.exact.append(_write_number(number))

    def add_text(self, path: str, text: str) -> None:
        self.texts[path] = text
        self.exact.append(text)

    def walk(self, output: object, path: str, depth: int = 0) -> str:
        """Add what an output holds; return its structure."""
        name = type(output).__name__
        if depth > DEEPEST or id(output) in self._inside:
            return f"{name}, nested too deep"
        split = _split_output(output)
        if split is None:
            return self._add_value(output, path)
        described, parts = split
        self._inside.add(id(output))
        kinds = [self.walk(part, path + key, depth + 1) for key, part in parts.items()]
        self._inside.discard(id(output))
        whole = f"{len(kinds)} of {kinds[0]}" if kinds and len(set(kinds)) == 1 else ", ".join(kinds)
        return f"{name}{described}({whole})"

    def _add_value(self, output: object, path: str) -> str:
        name = type(output).__name__
        match output:
            case None:
                return "None"
            case bool() | int() | float() | Decimal() | Fraction() | np.number() | np.bool_():
                self.add_number(path, output)
            case str() | bytes():
                self.add_text(path, output if isinstance(output, str) else output.hex())
                self.numbers[f"the length of {path or 'the text'}"] = float(len(output))
            case date() | datetime() | time() | timedelta() | BaseException():
                self.add_text(path, str(output))
            case type():
                return f"the type {output.__name__}"
            case _:
                self.add_text(path, _ADDRESS.sub("", repr(output)))
        return name


def _split_output(output: object) -> tuple[str, dict[str, object]] | None:  # noqa: PLR0911 - one return per kind
    """What to add to the name of a container's type, and its parts by their path; None for other outputs."""
    match output:
        case np.ndarray():
            return f" of {output.dtype}, shape {output.shape}", _number_items(output.reshape(-1).tolist())
        case Answer():
            return "", {".columns": list(output.columns), ".rows": output.rows}
        case Mapping():
            return f" with keys {list(output)!r}", {f"[{key!r}]": output[key] for key in output}
        case list() | tuple():
            return f" of {len(output)}", _number_items(output)
        case Set():
            return f" of {len(output)}", _number_items(sorted(output, key=repr))
        case type():
            return None
    if is_dataclass(output):
        return "", {f".{part.name}": getattr(output, part.name) for part in fields(output)}
    if _has_plain_state(output):
        return "", {f".{name}": value for name, value in vars(output).items()}
    return _read_frame(output)


def _number_items(items: Iterable[object]) -> dict[str, object]:
    return {f"[{place}]": item for place, item in enumerate(items)}


def _write_number(number: object) -> Hashable:
    """The bits of a float; the value of every other number. NaN equals a NaN with the same bits, and -0.0 is not 0."""
    return struct.pack("<d", number) if isinstance(number, float) else str(number)


def _read_frame(output: object) -> tuple[str, dict[str, object]] | None:
    """Types and columns of a frame of pandas, polars or Arrow, found without importing any of them."""
    library = type(output).__module__.split(".")[0]
    if library not in ("pandas", "polars", "pyarrow"):
        return None
    if not hasattr(output, "columns"):
        return _read_single_column(output)
    if library == "pandas":
        kinds = [f"{name}: {kind}" for name, kind in output.dtypes.items()]  # type: ignore[attr-defined]
        index = list(output.index)  # type: ignore[attr-defined]
        columns = enumerate(output.columns)  # names may repeat: read by place  # type: ignore[attr-defined]
        found = {f"[{name!r}, {place}]": output.iloc[:, place].tolist() for place, name in columns}  # type: ignore[attr-defined]
        return f" with columns {kinds}", {"index": index, **found}
    schema = str(output.schema)  # type: ignore[attr-defined]
    table = output.to_dict(as_series=False) if library == "polars" else output.to_pydict()  # type: ignore[attr-defined]
    return f" with columns {' '.join(schema.split())}", {f"[{name!r}]": values for name, values in table.items()}


def _read_single_column(output: object) -> tuple[str, dict[str, object]] | None:
    """Type and values of a series of pandas or polars, or of an Arrow array."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(output, method):
            kind = getattr(output, "dtype", getattr(output, "type", ""))
            return f" of {kind}, named {getattr(output, 'name', None)!r}", _number_items(getattr(output, method)())
    return None


def _has_plain_state(output: object) -> bool:
    """Is this an object whose repr shows its place in memory only, so that its attributes are what it holds?"""
    return type(output).__repr__ is object.__repr__ and hasattr(output, "__dict__")
