"""Engines run a plan and return integers. `sf.engines.spark(session)` chooses the one that `sf.open` uses."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.engines.postgres import choose as postgres
    from sfumato.engines.spark import choose as spark

    __all__ = ["postgres", "spark"]

_CHOICES = ("duckdb", "postgres", "spark")


def __getattr__(name: str) -> object:
    if name in _CHOICES:
        return import_module(f"sfumato.engines.{name}")
    raise AttributeError(f"module 'sfumato.engines' has no attribute {name!r}")
