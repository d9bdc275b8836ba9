"""The embedded engine: DuckDB over a pinned snapshot."""

import sys
from typing import TYPE_CHECKING

from sfumato.engines.callable_package import CallablePackage

if TYPE_CHECKING:
    from sfumato.engines.backend import Backend


def choose() -> "Backend":
    """DuckDB as the engine of `sf.open` and `sf.protect`: it is also what they use by themselves."""
    from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine  # noqa: PLC0415 - not before it is wanted

    return DuckDBEngine  # its class methods pin and open


def read_declared(declared: str) -> "Backend":
    """What a catalog declares: `engine = "duckdb"`."""
    return choose()


sys.modules[__name__].__class__ = CallablePackage
