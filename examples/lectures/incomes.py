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
# # Incomes: a long tail
#
# A few people earn a hundred times as much as the others. The sum and the average of incomes need bounds. Which?

# %%
import numpy as np
import pandas as pd

import sfumato as sf

generator = np.random.default_rng(2)
income = np.round(30_000 * np.exp(0.7 * generator.standard_normal(20_000)), 2)
people = sf.protect(
    pd.DataFrame({"income": income}),
    name="people",
    unit=sf.ROW,
    columns={"income": sf.Real(0, 10_000_000)},
    budget=sf.Budget(epsilon=20),
)

# %% [markdown]
# ## The bounds decide the noise
# An income may be as high as ten million. So one person can change the sum by ten million, and the margin of an
# average is large. A lower bound on what is added up makes the noise smaller, and clamps the largest incomes.

# %%
for most in (10_000_000, 1_000_000, 200_000, 100_000, 50_000):
    sql = f"SELECT AVG(LEAST(income, {most})) AS mean FROM people"
    answer = people.ask(sql, epsilon=0.1)
    low, high = answer.intervals[0]["mean"]
    clamped = np.minimum(income, most).mean()
    print(
        f"at most {most:>10,}: {answer.rows[0]['mean']:>12,.0f} [{low:,.0f}, {high:,.0f}]; without noise {clamped:,.0f}"
    )

# %% [markdown]
# The last column is exact, and only made-up data may be shown like this. From 200,000 down the noise is small, and
# the bias grows: at 50,000 the average is too low by thousands. The intervals cover the noise, not the bias.
#
# ## Ask for the share that is clamped
# A count of the people above the bound costs little, and says how large the bias can be.

# %%
above = people.ask("SELECT COUNT_IF(income > 100000) AS above, COUNT(*) AS people FROM people", epsilon=0.1)
above

# %% [markdown]
# ## The median needs no bound to be chosen
# A median is chosen among public bins, and its error is in *rank*. One person changes a rank by one, however rich
# they are.

# %%
people.ask("SELECT MEDIAN(income) AS middle FROM people", epsilon=0.5)

# %%
people.ask("SELECT QUANTILE_CONT(income, [0.1, 0.25, 0.5, 0.75, 0.9]) AS spread FROM people", epsilon=0.5)

# %% [markdown]
# ## A histogram
# Bins of 20,000 up to 200,000, and everyone above in the last one.

# %%
bins = people.ask(
    "SELECT FLOOR(LEAST(income, 199999) / 20000) * 20000 AS from_income, COUNT(*) AS people FROM people GROUP BY 1",
    epsilon=0.2,
)
bins.plot()

# %%
people.close()
