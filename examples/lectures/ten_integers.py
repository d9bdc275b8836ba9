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
# # Maximum, sum and histogram of ten integers
#
# Ten people each hold a whole number from 1 to 10. Three questions about the same table have three different
# sensitivities.

# %%
import pandas as pd

import sfumato as sf

numbers = [3, 7, 7, 1, 10, 4, 8, 2, 7, 5]
table = sf.protect(
    pd.DataFrame({"x": numbers}),
    name="numbers",
    unit=sf.ROW,
    columns={"x": sf.Integer(1, 10)},
    budget=sf.Budget(epsilon=10),
)

# %% [markdown]
# ## The sum
# Adding or removing one person changes the sum by at most 10.

# %%
table.ask("SELECT SUM(x) AS total FROM numbers", epsilon=1)

# %% [markdown]
# ## The histogram
# One person is in one cell. Adding or removing a person changes one count by 1, so all ten cells together have the
# sensitivity 1. The noise of a cell does not depend on the number of cells.

# %%
histogram = table.ask("SELECT x, COUNT(*) AS people FROM numbers GROUP BY x", epsilon=1)
histogram.plot()

# %% [markdown]
# ## The maximum
# One person can move the maximum over the whole range, by 9. Laplace noise of scale 9/ε would hide everything.

# %%
sf.lab.neighbours("maximum")

# %% [markdown]
# Sfumato chooses one of the ten values at random instead, and prefers values that more people reach. One person
# changes each of these counts by 1 only.

# %%
print(table.preview("SELECT MAX(x) AS top FROM numbers", epsilon=1).explain())

# %%
table.ask("SELECT MAX(x) AS top FROM numbers", epsilon=2)

# %% [markdown]
# With ten people the choice is still uncertain: an error of a few rows in rank is most of the table. With a thousand
# people the same ε gives the right value nearly always.

# %%
many = sf.protect(
    pd.DataFrame({"x": numbers * 100}),
    name="numbers",
    unit=sf.ROW,
    columns={"x": sf.Integer(1, 10)},
    budget=sf.Budget(epsilon=10),
)
[many.ask(f"SELECT MAX(x) AS top FROM numbers WHERE x <= {most}", epsilon=1).rows[0]["top"] for most in (10, 9, 8)]

# %%
many.close()
table.close()
