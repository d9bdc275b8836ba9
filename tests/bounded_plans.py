"""A plan of one table with a count and a sum, and how to change it."""

from dataclasses import replace

import sfumato as sf
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.neighbours import ROW, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Count, Grid, Measurement, Sum
from sfumato.kernel.row_sources import Scan

AGE = Column("age", ColumnType.INTEGER)
COUNT = Measurement("n", Count(None), sf.PureDP("0.5"))
SUM = Measurement("s", Sum(AGE, Grid(0, 120, 0)), sf.PureDP("0.5"))
PLAN = BoundedPlan("people", Scan("people", "v1"), PrivacyUnit("people", ROW), 1, (), (), (COUNT, SUM))


def changed(measurement, **changes):
    """The measurement with other fields of its quantity, or other bounds of its grid."""
    grid = {name: changes.pop(name) for name in ("lower", "upper", "exponent") if name in changes}
    if grid:
        changes["grid"] = replace(measurement.quantity.grid, **grid)
    return replace(measurement, quantity=replace(measurement.quantity, **changes))
