"""Checks of simple arguments: paths, texts and truth values. A wrong one is refused by name before it is used."""

import os
from pathlib import Path

import numpy as np

from sfumato.errors import InvalidParameter, describe_kind

LONGEST_NAME = 200  # bytes of a file's name; files next to it have longer names
LONGEST_PATH = 3_000


def check_path(value: object, name: str) -> Path:
    """A path that a file system accepts."""
    hint = "For example 'clinic/ledger.db'."
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidParameter(name, "must be a path", describe_kind(value), hint)
    path = os.fspath(value)
    if not isinstance(path, str) or not path or "\x00" in path:
        raise InvalidParameter(name, "must be a path", "a text that is none", hint)
    try:
        parts = [os.fsencode(part) for part in path.split(os.sep)]
    except UnicodeError:
        raise InvalidParameter(name, "must be a path", "a text that is no Unicode", hint) from None
    if max(map(len, parts)) > LONGEST_NAME or sum(map(len, parts)) > LONGEST_PATH:
        raise InvalidParameter(name, "must be a path", "one that is too long", hint)
    return Path(path)


def check_file_path(value: object, name: str) -> Path:
    """The path of a file that exists, or that can be made: its folder exists."""
    path = check_path(value, name)
    if path.is_dir():
        raise InvalidParameter(name, "must be the path of a file", "a folder", "Add a name: clinic/ledger.db.")
    if not path.absolute().parent.is_dir():
        raise InvalidParameter(name, "must be in a folder that exists", "another", "Make the folder first.")
    return path


def check_text(value: object, name: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise InvalidParameter(name, "must be text", describe_kind(value))
    return value


def check_truth(value: object, name: str) -> bool:
    """True or False; numpy's are accepted too."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidParameter(name, "must be True or False", describe_kind(value))
    return bool(value)
