"""A pinned numeric column on the grid of its declared bounds. Part of the trusted perimeter."""

from sfumato.catalog.columns import ColumnDeclaration, Integer
from sfumato.errors import KernelFault
from sfumato.ingest.parsing import double, rounded
from sfumato.ingest.sql_quoting import quoted
from sfumato.kernel.plan import Grid


def steps_of(name: str, declared: ColumnDeclaration, each: Grid) -> str:
    """A numeric column on its grid, ⌊x/γ + ½⌋: within its bounds in steps, since x is and rounding keeps order."""
    column = quoted(name)
    if not isinstance(declared, Integer):
        return f"CAST({rounded(f'({column} * {double(2.0**-each.exponent)})')} AS {width(each)})"
    if each.exponent > 0:
        raise KernelFault("The grid of whole numbers is one, or finer.")
    return f"(CAST({column} AS {width(each)}) * {1 << -each.exponent})"


def width(each: Grid) -> str:
    """The type of a column's steps, also of those less the middle of the bounds."""
    return "INTEGER" if max(abs(each.lower), abs(each.upper)) < 1 << 30 else "BIGINT"
