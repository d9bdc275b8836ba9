"""The parts of one output: items, attributes, columns, and what an exception carries."""

import builtins
import functools
import types
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice

import numpy as np

from sfumato.answers.answer import DETAILS, Answer

OF_THE_LEDGER = ("plan", "entry", "entries", "ledger_head")  # parts of a signed statement: digests with a key
MOST_CONSUMED = 1_000  # items that are taken from an iterator
_SCALARS_OF_PANDAS = {"NAType", "NaTType", "Timestamp", "Timedelta", "Interval", "Period"}  # their repr has all

Split = tuple[str, dict[str, object]]  # what to add to the name of the type, and the parts by their path


@dataclass(frozen=True, slots=True)
class Unseen:
    """A part that the audit does not look into."""

    what: str


def split_output(output: object) -> Split | None:  # noqa: PLR0911, PLR0912 - one return per kind
    """The parts of a container or an object; None for a single value."""
    match output:
        case None | bool() | int() | float() | str() | bytes() | type():
            return None
        case np.ma.MaskedArray():
            hidden = {".data": np.ma.getdata(output), ".mask": np.ma.getmaskarray(output), ".fill": output.fill_value}
            return f" of {output.dtype}", hidden
        case np.ndarray():
            shape = f" of {output.dtype}, shape {output.shape}"
            return shape, {**_number_items(output.reshape(-1).tolist()), **read_attributes(output)}
        case complex() | np.complexfloating():
            return "", {".real": output.real, ".imag": output.imag}
        case memoryview() | array():
            return f" of {getattr(output, 'format', getattr(output, 'typecode', ''))}", {"": output.tobytes()}
        case Answer():
            return "", _read_answer(output)
        case Mapping():
            return _split_mapping(output)
        case list() | tuple() | deque():
            return f" of {len(output)}", {**_number_items(output), **read_attributes(output)}
        case Set():
            return f" of {len(output)}", {**_number_items(sorted(output, key=write_repr)), **read_attributes(output)}
        case BaseException():
            return "", _split_exception(output)
        case Iterator():
            return "", _consume(output)
        case functools.partial():
            return "", {".func": output.func, ".args": output.args, ".keywords": output.keywords}
        case types.FunctionType():
            cells = [cell.cell_contents for cell in output.__closure__ or ()]
            return f" {output.__qualname__}", {".closure": cells, "()": Unseen("what a returned function computes")}
    split = _read_frame(output)
    if split is not None:
        return split
    own = {**read_attributes(output), **_read_lazy(output)}
    if is_dataclass(output):
        own = {**{f".{part.name}": getattr(output, part.name) for part in fields(output)}, **own}
    elif not own and not _shows_nothing(output):
        return None
    if has_hidden_state(output):
        own[".repr"] = write_repr(output) if not _shows_nothing(output) else None
        own[".inside"] = Unseen(f"the inside of a {type(output).__name__}, apart from its attributes")
    return "", own


def read_attributes(output: object) -> dict[str, object]:
    """The attributes that an object itself holds, in its __dict__ and its __slots__."""
    found = {f".{name}": getattr(output, name) for name in _list_slots(type(output)) if hasattr(output, name)}
    return {**found, **{f".{name}": value for name, value in getattr(output, "__dict__", {}).items()}}


def _read_lazy(output: object) -> dict[str, object]:
    """What an object computes when it is read for the first time, and then keeps."""
    kinds = {name: part for kind in type(output).__mro__ for name, part in vars(kind).items()}
    names = [name for name, part in kinds.items() if isinstance(part, functools.cached_property)]
    return {f".{name}": getattr(output, name) for name in names}


def _read_answer(answer: Answer) -> dict[str, object]:
    """What an answer says: its rows, and all details. Entry and head are the ledger's, and not of the data."""
    parts: dict[str, object] = {f".{name}": getattr(answer, name) for name in ("columns", "rows", *DETAILS)}
    statement: dict[str, object] = answer.disclosure["statement"]
    signed = {name: value for name, value in statement.items() if name not in OF_THE_LEDGER}
    return {**parts, ".disclosure": signed, ".explain()": answer.explain()}


def has_hidden_state(output: object) -> bool:
    """Does this object have room in memory besides its attributes, as objects of compiled libraries do?"""
    kind = type(output)
    places = len(_list_slots(kind)) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__itemsize__ > 0 or kind.__basicsize__ > object.__basicsize__ + 8 * places


def name_type(output: object) -> str:
    """The name of a type; with its package if one of Python's own types has this name, as numpy's bool does."""
    kind = type(output)
    own = getattr(builtins, kind.__name__, kind)
    return kind.__name__ if own is kind else f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def write_repr(output: object) -> str:
    """The repr of an output, or which error it raises."""
    try:
        return repr(output)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"{output:x}" if isinstance(output, int) else f"a repr that raises {type(error).__name__}"


def _shows_nothing(output: object) -> bool:
    """Is its repr only the type and the place in memory?"""
    return type(output).__repr__ is object.__repr__


def _list_slots(kind: type) -> list[str]:
    names = []
    for part in kind.__mro__:
        slots = vars(part).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                hidden = name.startswith("__") and not name.endswith("__")
                names.append(f"_{part.__name__.lstrip('_')}{name}" if hidden else name)
    return names


def _number_items(items: Iterable[object]) -> dict[str, object]:
    return {f"[{place}]": item for place, item in enumerate(items)}


def _split_mapping(output: Mapping[object, object]) -> Split:
    """Values by their keys. A key that has a digit may be noisy: it is a part too."""
    names = [write_repr(key) for key in output]
    values = {f"[{name}]": output[key] for name, key in zip(names, output, strict=True)}
    noisy = {
        f".key[{place}]": key
        for place, (name, key) in enumerate(zip(names, output, strict=True))
        if not isinstance(key, str) or any(letter.isdigit() for letter in name)
    }
    return f" with keys [{', '.join(names)}]", {**values, **noisy, **read_attributes(output)}


def _split_exception(error: BaseException) -> dict[str, object]:
    """What an exception carries besides its message."""
    parts: dict[str, object] = {} if error.args in ((str(error),), ()) else {".args": error.args}
    linked = {".cause": error.__cause__, ".context": error.__context__}
    return {**parts, **read_attributes(error), **{name: part for name, part in linked.items() if part is not None}}


def _consume(output: Iterator[object]) -> dict[str, object]:
    """The items of an iterator, and the error that ends it."""
    items: list[object] = []
    try:
        items.extend(islice(output, MOST_CONSUMED + 1))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        error.__traceback__ = None
        items.append(error)
    if len(items) > MOST_CONSUMED:
        items[MOST_CONSUMED:] = [Unseen(f"items of an iterator after the first {MOST_CONSUMED:,}")]
    return _number_items(items)


def _read_frame(output: object) -> Split | None:
    """Types and columns of a frame of pandas, polars or Arrow, found without importing any of them."""
    library = type(output).__module__.split(".")[0]
    if library == "polars":
        return _read_polars(output)
    if library == "pandas":
        return _read_pandas(output)
    return _read_arrow(output) if library == "pyarrow" else None


def _read_pandas(output: object) -> Split | None:
    name = name_type(output)
    if name in _SCALARS_OF_PANDAS:
        return None
    if not hasattr(output, "tolist") and not hasattr(output, "iloc"):
        return "", {".repr": write_repr(output), ".inside": Unseen(f"the inside of a {name} of pandas")}
    parts: dict[str, object] = {}
    if hasattr(output, "index"):
        parts["index"] = output.index
    if getattr(output, "attrs", None):
        parts[".attrs"] = output.attrs  # type: ignore[attr-defined]
    if hasattr(output, "columns"):
        parts[".columns"] = output.columns
        kinds = [f"{column}: {kind}" for column, kind in output.dtypes.items()]  # type: ignore[attr-defined]
        for place, column in enumerate(output.columns):  # names may repeat: read by place
            values = output.iloc[:, place]  # type: ignore[attr-defined]
            parts[f"[{column!r}, {place}]"] = values.tolist()
            parts.update(_read_categories(values, f"[{column!r}, {place}]"))
        return f" with columns {kinds}", parts
    parts.update(_number_items(output.tolist()))  # type: ignore[attr-defined]
    parts.update(_read_categories(output, ""))
    names = list(getattr(output, "names", [getattr(output, "name", None)]))
    return f" of {output.dtype}, named {names!r}", parts  # type: ignore[attr-defined]


def _read_categories(values: object, path: str) -> dict[str, object]:
    kind = getattr(values, "dtype", None)
    if type(kind).__name__ != "CategoricalDtype":
        return {}
    return {f"{path}.categories": kind.categories.tolist(), f"{path}.ordered": kind.ordered}  # type: ignore[union-attr]


def _read_polars(output: object) -> Split | None:
    name = name_type(output)
    if name == "LazyFrame":
        return "", {".collect()": output.collect()}  # type: ignore[attr-defined]
    if name == "DataFrame":
        schema = output.schema  # type: ignore[attr-defined]
        columns = output.to_dict(as_series=False)  # type: ignore[attr-defined]
        parts = {f"[{column!r}]": values for column, values in columns.items()}
    elif name == "Series":
        schema = {output.name: output.dtype}  # type: ignore[attr-defined]
        parts = _number_items(output.to_list())  # type: ignore[attr-defined]
    else:
        return "", {".repr": write_repr(output), ".inside": Unseen(f"the inside of a {name} of polars")}
    if "Categorical" in str(schema):
        parts[".categories"] = Unseen("the categories of a column of polars")
    return f" with columns {schema}", parts


def _read_arrow(output: object) -> Split | None:
    name = name_type(output)
    if hasattr(output, "schema") and hasattr(output, "column"):
        columns = {
            f"[{column!r}, {place}]": output.column(place)
            for place, column in enumerate(output.schema.names)  # names may repeat
        }
        return f" with columns {' '.join(str(output.schema).split())}", columns
    if hasattr(output, "to_pylist"):
        parts = _number_items(output.to_pylist())
        for place, chunk in enumerate(getattr(output, "chunks", [output])):
            if hasattr(chunk, "dictionary"):
                parts[f".dictionary[{place}]"] = chunk.dictionary.to_pylist()
        return f" of {output.type}", parts  # type: ignore[attr-defined]
    if hasattr(output, "as_py"):
        return f" of {output.type}", {"": output.as_py()}  # type: ignore[attr-defined]
    return "", {".repr": write_repr(output), ".inside": Unseen(f"the inside of a {name} of Arrow")}
