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
# # 6. Group privacy: families, and people with many rows
#
# **After this lesson** you can state the protection of a group, and choose the privacy unit of a dataset.
# **Time:** 30 minutes.
#
# The definition compares tables that differ in *one* person. A family of four differs in four. Change one person after
# the other: each step costs the factor $e^{\varepsilon}$, so a group of t has $t\varepsilon$.

# %%
import math

import pandas as pd

import sfumato as sf

# %%
count = sf.Laplace(sensitivity=1, epsilon="0.5")
alone = sf.lab.probabilities(count, 0)
for size in (1, 2, 4, 8):
    family = sf.lab.probabilities(count, size)
    ratio = float(family.greatest_ratio(alone))
    print(f"group of {size}: ratio {ratio:8.3f} = e^{math.log(ratio):.1f}")

# %% [markdown]
# The picture: the two curves are further apart, and the ratio between them is $e^{t\varepsilon}$.

# %%
sf.lab.epsilon("0.5", people=4)

# %% [markdown]
# ## Question for students
# A family of five wants the protection ε = 1 as a family. Which ε must the release have for one person?

# %%
for_one = sf.PureDP("0.2")
for_family = for_one.group(5)

# %% [markdown]
# **Answer.** 1/5. Group privacy degrades fast. It must: if large groups were fully protected, the release could say
# nothing about the crowd either.

# %%
print(for_one, "->", for_family)
assert for_family.epsilon == 1

# %% [markdown]
# ## With δ, groups are worse off
# For (ε, δ), the δ of a group grows with $e^{\varepsilon}$ too.

# %%
for size in (1, 2, 4, 8):
    print(size, sf.ApproxDP("0.5", "1e-6").group(size))

# %% [markdown]
# ## One person with many rows
# A patient with ten visits is a group of ten rows. If each *row* is the privacy unit, the patient has only ten times
# the loss. Declare the person as the unit instead: then the curator bounds what one person contributes.

# %%
visits = pd.DataFrame({"patient": [f"p{index // 10}" for index in range(1000)], "cost": [20.0, 35.5] * 500})
costs = {"cost": sf.Real(0, 100)}
by_row = sf.protect(visits, name="visits", unit=sf.ROW, columns=costs, budget=sf.Budget(epsilon=1))
by_person = sf.protect(
    visits, name="visits", unit="patient", columns={**costs, "patient": sf.Id()},
    budget=sf.Budget(epsilon=1), max_rows_per_unit=10,
)  # fmt: skip
question = "SELECT COUNT(*) AS n FROM visits"
margins = [curator.preview(question, epsilon=1).margins["n"] for curator in (by_row, by_person)]
by_row.close()
by_person.close()

# %% [markdown]
# ## Question for students
# The first curator has a margin of 3, the second one of about 30, for the same ε. Is the first one better?

# %%
print(f"unit row: ±{margins[0]:g}; unit person: ±{margins[1]:.1f}")

# %% [markdown]
# **Answer.** No. It protects less: a patient with ten visits has a loss of 10ε = 10 there, and ε = 1 with the second.
# For the same protection of the patient, both have the same noise. Always ask: whose privacy, one row's or one
# person's?

# %%
same = sf.Laplace(sensitivity=1, epsilon="0.1").margin(0.95)
print(f"unit row with epsilon 1/10: ±{same}")
assert abs(same - margins[1]) < 2
