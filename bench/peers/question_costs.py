"""What one question costs, as a 95 % margin at epsilon 1, beside the best that is known for it.

The margins are those of previews, which follow from declarations alone. `best` is the margin of the one release that
the question needs, by the textbook's formula: sensitivity * ln(20) for Laplace noise; a whole number for whole counts.
"""

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pandas as pd

import sfumato as sf

if TYPE_CHECKING:
    from sfumato.curator import Curator

MARGIN = math.log(20)  # of Laplace noise with scale 1, at 95 %
ORDERS, LINES = 40, 160  # rows of one person


@dataclass(frozen=True, slots=True)
class QuestionCost:
    """A question, its margin, and the best known one."""

    what: str
    ours: float
    best: float

    @property
    def ratio(self) -> float:
        return self.ours / self.best


def list_costs() -> list[QuestionCost]:
    """The questions of this page, in its order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*_list_of_rows(), *_list_of_people()]


def _list_of_rows() -> list[QuestionCost]:
    columns = {"x": sf.Real(0, 5), "d": sf.Category(["a", "b", "c"])}
    frame = pd.DataFrame({"x": [1.0], "d": ["a"]})
    rows = sf.protect(frame, name="t", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=9))
    sums = ", ".join(f"SUM(x + {shift}) AS s{shift}" for shift in range(90))
    pivots = ", ".join(f"SUM(CASE WHEN d = '{kind}' THEN x END) AS {kind}" for kind in "abc")
    filters = ", ".join(f"COUNT(*) FILTER (WHERE d = '{kind}') AS {kind}" for kind in "abc")
    first, sum_of_a, count_of_a = (
        _margin(rows, " ".join(("SELECT", columns, "FROM t")), name)
        for columns, name in ((sums, "s0"), (pivots, "a"), (filters, "a"))
    )
    return [
        QuestionCost("90 sums of x + k, x up to 5: the first", first, 5 * MARGIN),
        QuestionCost("Sums of x for three values of d", sum_of_a, 5 * MARGIN),
        QuestionCost("Counts for three values of d, with FILTER", count_of_a, 3.0),
    ]


def _list_of_people() -> list[QuestionCost]:
    join = "SELECT COUNT(*) AS n FROM orders o JOIN lines l ON o.cid = l.cid AND o.oid = l.oid"
    days = "SELECT day, COUNT(*) AS n FROM orders GROUP BY day"
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        unique, plain = _open_shop(Path(one), 'unique = ["oid", "day"]'), _open_shop(Path(two), "")
        capped = _margin(plain, join, "n", max_rows=LINES)
        found = [
            QuestionCost("Orders (40) joined with lines (160), unique key", _margin(unique, join, "n"), LINES * MARGIN),
            QuestionCost("The same without a key, max_rows=160", capped, LINES * MARGIN),
            QuestionCost("Count by day, one row a day, max_groups=3", _margin(unique, days, "n", max_groups=3), 9.0),
        ]
        unique.close()
        plain.close()
    return found


def _open_shop(folder: Path, unique: str) -> "Curator":
    columns = 'columns.oid = { type = "id" }\ncolumns.day = { type = "integer", lower = 1, upper = 30 }'
    tables = [
        f'[tables.{name}]\nsource = "{name}.csv"\nunit_column = "cid"\nmax_rows_per_unit = {most}\n'
        f"max_groups_per_unit = 9\n{more}\n{columns}\n"
        for name, most, more in (("orders", ORDERS, unique), ("lines", LINES, ""))
    ]
    (folder / "catalog.toml").write_text('[dataset]\nname = "shop"\n[budget]\nepsilon = "9"\n' + "".join(tables))
    for name in ("orders", "lines"):
        (folder / f"{name}.csv").write_text("cid,oid,day\na,1,1\n")
    return sf.open(folder)


def _margin(curator: "Curator", sql: str, column: str, **limits: int) -> float:
    found = curator.preview(sql, epsilon=1, **limits).margins[column]
    return math.inf if found is None else found
