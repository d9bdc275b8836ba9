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
# # Adaptive questions about smokers
#
# An analyst asks one question, reads the answer, and chooses the next question by it. The privacy losses still add
# up. But the answers can mislead: who searches long enough finds something in the noise.

# %%
import numpy as np
import pandas as pd

import sfumato as sf

generator = np.random.default_rng(3)
rows = 5000
age = generator.integers(18, 80, rows)
smoker = generator.random(rows) < np.where(age < 40, 0.3, 0.18)
people = sf.protect(
    pd.DataFrame({"age": age, "smoker": smoker, "sport": generator.random(rows) < 0.4}),
    name="people",
    unit=sf.ROW,
    rows=rows,
    neighbours="replace-one",
    columns={
        "age": sf.Integer(18, 80, nullable=False),
        "smoker": sf.Boolean(nullable=False),
        "sport": sf.Boolean(nullable=False),
    },
    budget=sf.Budget(epsilon=3),
)

# %% [markdown]
# ## One after another
# Where is the age at which half of the smokers are younger? Each question depends on the answer before. Every
# question is charged, and the ledger adds up.

# %%
low, high = 18, 80
total = people.ask("SELECT COUNT(*) AS n FROM people WHERE smoker", epsilon="0.1").rows[0]["n"]
while high - low > 4:
    middle = (low + high) // 2
    younger = people.ask(f"SELECT COUNT(*) AS n FROM people WHERE smoker AND age < {middle}", epsilon="0.1").rows[0][
        "n"
    ]
    print(f"{younger} of about {total} smokers are younger than {middle}")
    low, high = (middle, high) if younger < total / 2 else (low, middle)
print(f"Half of the smokers are younger than about {high}. Spent: epsilon = {people.budget.spent.epsilon}")

# %% [markdown]
# ## One price for ten questions
# A statistical-query oracle is charged once, for ten averages that may be chosen one after another. It states how
# far *all* answers are from the data.

# %%
oracle = people.statistical_queries(k=10, epsilon=1)
for limit in (30, 40, 50, 60):
    share = oracle.mean(f"smoker AND age < {limit}")
    print(f"smokers younger than {limit}: {share:.3f} of all people, up to ±{oracle.empirical_tolerance:.3f} (95 %)")

# %% [markdown]
# Nobody pays for the answers that are not asked: six of the ten are left, in this process.

# %%
oracle.remaining

# %% [markdown]
# ## Wait for one event
# A watch answers "is this count above 800?" for about a hundred questions at one price. It ends with the first yes.

# %%
watch = people.watch("SELECT COUNT(*) AS n FROM people WHERE smoker", above=800, epsilon=1)
for limit in (30, 40, 50, 60, 70):
    above = watch.ask(f"SELECT COUNT(*) AS n FROM people WHERE smoker AND age < {limit}")
    print(f"More than 800 smokers younger than {limit}? {above}")
    if above:
        break
print(f"Left of the budget: epsilon = {people.budget.remaining.epsilon}")

# %%
people.close()
