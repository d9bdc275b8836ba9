"""Cap the rows of one unit that a join of private tables, or GROUP BY on undeclared keys, reads from each table."""

from dataclasses import replace
from typing import assert_never

from sfumato.kernel.row_sources import (
    TIMES_MET,
    Capped,
    Derived,
    Join,
    PerKey,
    PerUnit,
    PublicScan,
    Scan,
    Source,
    Union,
)


def cap_scans(source: Source) -> Source:
    """Return the source with a bounded number of rows of one unit in each table."""
    match source:
        case Scan(max_rows=most):
            return replace(source, most_met=TIMES_MET * most)
        case PublicScan() | PerUnit() | PerKey():  # PerUnit has one row for each unit; below PerKey, scans are capped
            return source
        case Derived(inner) | Capped(inner):
            return replace(source, source=cap_scans(inner))
        case Join(left):  # its right side is public, or was capped when the join was built
            return replace(source, left=cap_scans(left))
        case Union(parts):
            return replace(source, parts=tuple(cap_scans(part) for part in parts))
        case _:
            assert_never(source)
