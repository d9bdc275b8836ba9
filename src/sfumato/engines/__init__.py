"""Engines run a plan and return integers. `sf.engines.postgres(...)` chooses the one that `sf.open` uses."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.engines.postgres import choose as postgres

    __all__ = ["postgres"]

_CHOICES = ("duckdb", "postgres")


def __getattr__(name: str) -> object:
    if name in _CHOICES:
        return import_module(f"sfumato.engines.{name}")
    raise AttributeError(f"module 'sfumato.engines' has no attribute {name!r}")
