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
# # Models of made-up visits to a clinic
#
# Estimators with scikit-learn's names fit through the curator: one charge for each fit, and no row leaves the
# engine. The data is made up, so the truth is known.

# %%
import numpy as np
import pandas as pd

import sfumato as sf

PEOPLE = 20_000
generator = np.random.default_rng(5)
rows = PEOPLE + PEOPLE // 2  # one or two visits for each person
age, smoker = generator.integers(18, 90, rows), generator.random(rows) < 0.3
cost = np.clip(40 + 2.0 * age + 60 * smoker + generator.normal(0, 20, rows), 0, 500)
ill = generator.random(rows) < 1 / (1 + np.exp(-(age - 60) / 8 - 2 * smoker + 1))
visits = sf.protect(
    pd.DataFrame({"person": np.arange(rows) % PEOPLE, "age": age, "smoker": smoker, "cost": cost, "ill": ill}),
    name="visits",
    unit="person",
    max_rows_per_unit=2,
    columns={
        "person": sf.Id(),
        "age": sf.Integer(18, 100),
        "smoker": sf.Boolean(),
        "cost": sf.Real(0, 500),
        "ill": sf.Boolean(),
    },
    budget=sf.Budget(epsilon=3),
)

# %% [markdown]
# ## Naive Bayes

# %%
bayes = sf.learning.GaussianNB(epsilon=1).fit(dataset=visits, features=["age", "smoker"], target="ill")
chances = bayes.predict_proba(pd.DataFrame({"age": [30, 70], "smoker": [False, True]}))[:, 1]
print("Chance of being ill at 30, and at 70 as a smoker:", chances.round(2))

# %% [markdown]
# ## Linear regression
# The truth is 2 per year of age, and 60 more for smokers. The interval is for the noise.

# %%
line = sf.learning.LinearRegression(epsilon=1).fit(dataset=visits, features=["age", "smoker"], target="cost")
low, high = line.coefficient_intervals()
for name, value, least, most in zip(line.design_names_, line.coef_, low, high, strict=True):
    print(f"Cost by {name}: {value:.1f} (without noise, probably from {least:.1f} to {most:.1f})")

# %% [markdown]
# ## A density

# %%
ages = sf.learning.HistogramDensity(epsilon="0.5", bins=8).fit(dataset=visits, features=["age"])
print("Shares of the ages, in eight bins:", ages.probabilities_.round(3))
print("Spent:", visits.budget.spent)

# %%
visits.close()
