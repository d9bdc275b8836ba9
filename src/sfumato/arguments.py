"""What is passed to the first calls: paths, texts and tables, each refused by name before anything is made of it."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sfumato.catalog.budget import Budget
from sfumato.errors import InvalidParameter
from sfumato.ingest.frame_kinds import kind_of_frame
from sfumato.ingest.frames import NOT_A_FRAME
from sfumato.kernel.parameters import kind_of

LONGEST_NAME = 200  # bytes of a file's name: files beside it add endings
LONGEST_PATH = 3_000
SINGLE = ("Series", "Index", "Array", "ChunkedArray")
A_TABLE = "must be a frame (pandas, polars, Arrow) or the path of a file"


def table_of_rows(data: object) -> object:
    """A frame, or the path of a file."""
    kind = type(data)
    if isinstance(data, str):
        return existing_text(data, "data")
    if isinstance(data, os.PathLike):
        return a_path(data, "data")
    if kind_of_frame(data) is not None:
        return data
    if kind.__name__ in SINGLE:
        hint = "A frame has named columns: use .to_frame('name') of a series, or pandas.DataFrame({'name': data})."
    elif isinstance(data, (Mapping, list, tuple)) or kind.__name__ == "ndarray":
        hint = "Make a frame of it first: pandas.DataFrame(data)."
    elif hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__dataframe__"):
        hint = NOT_A_FRAME
    else:
        hint = "For example a pandas DataFrame, or 'visits.csv'."
    raise InvalidParameter("data", A_TABLE, kind_of(data), hint)


def existing_text(value: object, name: str) -> str:
    """A text that a file system could take."""
    if not isinstance(value, str):
        raise InvalidParameter(name, "must be text", kind_of(value))
    a_path(value, name)
    return value


def a_path(value: object, name: str) -> Path:
    """A path that a file system could take."""
    hint = "For example 'clinic/ledger.db'."
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidParameter(name, "must be a path", kind_of(value), hint)
    path = os.fspath(value)
    if not isinstance(path, str) or not path or "\x00" in path:
        raise InvalidParameter(name, "must be a path", "a text that is none", hint)
    try:
        parts = [os.fsencode(each) for each in path.split(os.sep)]
    except UnicodeError:
        raise InvalidParameter(name, "must be a path", "a text that is no Unicode", hint) from None
    if max(map(len, parts)) > LONGEST_NAME or sum(map(len, parts)) > LONGEST_PATH:
        raise InvalidParameter(name, "must be a path", "one that is too long", hint)
    return Path(path)


def a_new_file(value: object, name: str) -> Path:
    """The path of a file that is there, or can be made: its folder is there."""
    path = a_path(value, name)
    if path.is_dir():
        raise InvalidParameter(name, "must be the path of a file", "a folder", "Add a name: clinic/ledger.db.")
    if not path.absolute().parent.is_dir():
        raise InvalidParameter(name, "must be in a folder that is there", "another", "Make the folder first.")
    return path


def a_text(value: object, name: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise InvalidParameter(name, "must be text", kind_of(value))
    return value


def a_truth(value: object, name: str) -> bool:
    """True or False, also numpy's."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidParameter(name, "must be True or False", kind_of(value))
    return bool(value)


def limits_of_analysts(value: Mapping[str, Budget] | None) -> dict[str, Budget]:
    """A budget for each analyst; what they are is the catalog's to check."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        hint = "For example analysts={'ann': sf.Budget(epsilon=1)}."
        raise InvalidParameter("analysts", "must map names to budgets", kind_of(value), hint)
    return dict(value)
