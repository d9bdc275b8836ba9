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
# # The RAND health insurance experiment
#
# In the 1970s, RAND gave families different health insurance plans at random, and counted their visits to a doctor.
# The main question: do people go to the doctor less often if they pay a part of the price? `statsmodels` ships
# 20,190 person-years of it.
#
# Install the data with `pip install statsmodels`.

# %%
import numpy as np
from statsmodels.datasets import randhie

import sfumato as sf

raw = randhie.load_pandas().data
coinsurance = np.exp(raw["lncoins"]).round() - 1  # the share of the price that the patient pays, in percent
table = raw[["mdvis", "disea"]].assign(
    plan=np.select([coinsurance < 1, coinsurance <= 40], ["free", "25 to 40 %"], "50 % and more"),
    health=np.select([raw["hlthp"] == 1, raw["hlthf"] == 1, raw["hlthg"] == 1], ["poor", "fair", "good"], "excellent"),
    limited=raw["physlm"] > 0.5,
)

# %% [markdown]
# ## What is public
# The table has no id of a person, only rows. One row is one person in one year, and this is the privacy unit here.
# If a person is in the data for up to five years, their protection is that of a group of five: five times the ε.
#
# A year with more than 20 visits counts as 20. The number of chronic diseases is an index up to 60.

# %%
experiment = sf.protect(
    table,
    name="years",
    unit=sf.ROW,
    columns={
        "mdvis": sf.Integer(0, 20),
        "disea": sf.Real(0, 60),
        "plan": sf.Category(["free", "25 to 40 %", "50 % and more"]),
        "health": sf.Category(["excellent", "good", "fair", "poor"]),
        "limited": sf.Boolean(),
    },
    budget=sf.Budget(epsilon=2),
)

# %% [markdown]
# ## Do people with free care go more often?

# %%
plans = experiment.ask("SELECT plan, COUNT(*) AS years, AVG(mdvis) AS visits FROM years GROUP BY plan", epsilon="0.3")
plans

# %%
plans.plot("visits")

# %% [markdown]
# Yes. The more people pay, the less often they go. The intervals do not overlap.
#
# ## Is it health, and not the plan?
# The plans were given at random, so health should be the same in all of them. Shares within each plan are computed
# from the released counts. They cost nothing of their own.

# %%
experiment.ask(
    "SELECT plan, health, COUNT(*) AS years, "
    "ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY plan), 1) AS percent "
    "FROM years GROUP BY plan, health ORDER BY plan, health",
    epsilon="0.3",
)

# %% [markdown]
# ## A model of the visits
# An estimator fits through the curator: one charge for the fit, and no row leaves the engine.

# %%
model = sf.learning.LinearRegression(epsilon="0.8")
model.fit(dataset=experiment, features=["plan", "disea", "limited"], target="mdvis")
low, high = model.coefficient_intervals()
for name, value, least, most in zip(model.design_names_, model.coef_, low, high, strict=True):
    print(f"{name:<24} {value:+.2f} visits per year [{least:+.2f}, {most:+.2f}]")

# %% [markdown]
# The interval is for the noise that was added for privacy. It does not cover sampling.
#
# ## Check the clamping
# How many years had 20 visits or more? If they were many, the averages would be biased.

# %%
experiment.ask("SELECT COUNT(*) AS years FROM years WHERE mdvis >= 20", epsilon="0.1")

# %%
experiment.budget

# %%
experiment.close()
