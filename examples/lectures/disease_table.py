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
# # The disease table
#
# In the lectures, a database is a table of types and counts: how many patients have each disease. Two databases are
# neighbours if one count differs by 1.

# %%
import pandas as pd

import sfumato as sf

diseases = pd.DataFrame({"disease": ["flu", "gout", "mumps", "rare"], "ward": [1, 2, 2, 2], "n": [812, 40, 7, 1]})

# %% [markdown]
# `unit=sf.COUNTS("n")` declares such a table. A record with n = 812 stands for 812 people, and each of them is
# protected.

# %%
hospital = sf.protect(
    diseases,
    name="diseases",
    unit=sf.COUNTS("n"),
    columns={"disease": sf.Category(["flu", "gout", "mumps", "rare", "cholera"]), "ward": sf.Category([1, 2])},
    budget=sf.Budget(epsilon=3),
)
sf.lab.neighbours("histogram")

# %% [markdown]
# ## The histogram
# One patient changes one count by 1. All counts together cost one ε.

# %%
counts = hospital.ask("SELECT disease, SUM(n) AS people FROM diseases GROUP BY disease", epsilon=1)
counts

# %%
counts.plot()

# %% [markdown]
# Cholera is declared and nobody has it: its noisy count may be 2 or -1. The answer does not tell whether anybody has
# it. If it showed only the diseases that occur, the one patient with the rare disease would be revealed.
#
# ## Sums of counts are free
# The wards can be computed from the released counts. This is post-processing: it costs nothing. But the noise of
# three counts adds up. Asking the wards costs ε, and has the noise of one count.

# %%
hospital.ask("SELECT ward, SUM(n) AS people FROM diseases GROUP BY ward", epsilon=1)

# %% [markdown]
# ## Which disease is the most frequent?
# `MODE` chooses privately: it prefers the fullest cell.

# %%
hospital.ask("SELECT MODE(disease) AS most_frequent FROM diseases", epsilon="0.5")

# %%
hospital.close()
