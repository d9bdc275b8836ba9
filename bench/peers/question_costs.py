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
DEVIATION = 47


@dataclass(frozen=True, slots=True)
class QuestionCost:
    """A question, its margin (or another number), and the best known one."""

    what: str
    ours: float
    best: float
    sign: str = "±"  # before the numbers; "" if they are no margins
    more: bool = False  # is a larger number the better one?

    @property
    def ratio(self) -> float:
        return self.best / self.ours if self.more else self.ours / self.best


def list_costs() -> list[QuestionCost]:
    """The questions of this page, in its order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*_list_of_bounds(), *_list_of_rows(), *_list_of_people(), *_list_of_budgets(), _count_minutes()]


def _list_of_bounds() -> list[QuestionCost]:
    """Costs up to 500, five rows of one person. The question says that it needs them up to 100."""
    frame = pd.DataFrame({"pid": ["a"], "cost": [1.0]})
    columns = {"pid": sf.Id(), "cost": sf.Real(0, 500)}
    visits = sf.protect(frame, name="t", unit="pid", columns=columns, budget=sf.Budget(epsilon=9), max_rows_per_unit=5)
    asked = {
        "SUM(LEAST(cost, 100)), costs up to 500, 5 rows": ("SUM(LEAST(cost, 100)) AS s FROM t", 500),
        "SUM(CASE WHEN cost > 100 THEN 100 ELSE cost END)": (
            "SUM(CASE WHEN cost > 100 THEN 100 ELSE cost END) AS s FROM t", 500,
        ),
        "SUM(cost) WHERE cost BETWEEN 0 AND 100": ("SUM(cost) AS s FROM t WHERE cost BETWEEN 0 AND 100", 500),
        "SUM(cost, contribution_bounds_per_row => (0, 100))": (
            "SUM(cost, contribution_bounds_per_row => (0, 100)) AS s FROM t", 500,
        ),
        "SUM(cost, contribution_bounds_per_group => (0, 100))": (
            "SUM(cost, contribution_bounds_per_group => (0, 100)) AS s FROM t", 100,
        ),
    }  # fmt: skip
    return [
        QuestionCost(what, _margin(visits, f"SELECT {sql}", "s"), most * MARGIN) for what, (sql, most) in asked.items()
    ]


def _list_of_budgets() -> list[QuestionCost]:
    """How many counts with a standard deviation of 47 a budget of (3, 1e-6) allows."""
    found = []
    for accounting, best in (("zcdp", 822), ("gdp", 932)):
        budget = sf.Budget(epsilon=3, delta=1e-6, accounting=accounting)
        frame = pd.DataFrame({"x": [1]})
        with sf.protect(frame, name="t", unit=sf.ROW, columns={"x": sf.Integer(0, 9)}, budget=budget) as rows:
            rho = 1 / (2 * DEVIATION**2)
            cost = rows.preview("SELECT COUNT(*) AS n FROM t", rho=rho).cost
            limit = rows.budget.limit
            spent, most = (cost.rho, limit.rho) if accounting == "zcdp" else (cost.mu_squared, limit.mu_squared)
        found.append(QuestionCost(f"Counts with a deviation of 47 under (3, 1e-6), {accounting}",
                                  float(most // spent), best, "", more=True))  # fmt: skip
    return found


def _count_minutes() -> QuestionCost:
    """The keys of two days of minutes, in a month."""
    columns = {"at": sf.DateTime("2024-01-01T00:00:00", "2024-01-31T23:59:59")}
    frame = pd.DataFrame({"at": [pd.Timestamp("2024-01-05")]})
    sql = (
        "SELECT DATE_TRUNC('minute', at) AS m, COUNT(*) AS n FROM t "
        "WHERE at >= TIMESTAMP '2024-01-03 00:00:00' AND at < TIMESTAMP '2024-01-05 00:00:00' GROUP BY m"
    )
    with sf.protect(frame, name="t", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=9)) as rows:
        cells = rows.preview(sql, epsilon=1)._details.planned.plan.cells
    return QuestionCost("Keys of two days of minutes, in a month", float(cells or math.inf), 2_880, "")


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
