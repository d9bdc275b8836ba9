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
# # 3. Sensitivity: exercises with answers
#
# **After this lesson** you can find the sensitivity of a query under both neighbouring relations, and you know when
# noise is the wrong tool. **Time:** 45 minutes.
#
# The *sensitivity* Δ of a query f is the most that one person can change its answer, over **all** pairs of neighbours:
# $\Delta = \max_{D \sim D'} \lVert f(D) - f(D') \rVert_1$. It is a property of the query and of what is publicly known
# about the values. It never depends on the data at hand.

# %%
import sfumato as sf

# %% [markdown]
# ## Exercises
# Everyone has a whole number from 1 to 10. Give the sensitivity under *add-remove* and under *replace-one*.
#
# 1. How many people have a number above 4?
# 2. The sum of all numbers.
# 3. The largest number.
# 4. The histogram: for each number, how many people have it.
# 5. The average height of five people, if heights are from 1 to 300 cm.
#
# Write your answers here, then run the next cell. It enumerates every neighbour of a small table.

# %%
mine = {"count": (None, None), "sum": (None, None), "maximum": (None, None), "histogram": (None, None)}

# %% [markdown]
# ## Answer to 1: the count

# %%
sf.lab.neighbours("count", "integers")

# %% [markdown]
# One person adds or removes at most one, and a replaced person leaves or enters the count: Δ = 1 in both relations.
#
# ## Answer to 2: the sum

# %%
total = sf.lab.neighbours("sum", "integers")
total

# %% [markdown]
# Adding a person with a 10 changes the sum by 10. Replacing a 1 by a 10 changes it by 9. So Δ = 10 under add-remove,
# and 9 under replace-one. Note that the worst change of *this* table may be smaller: the table has no 1 to replace.
# The noise must cover every table.

# %%
assert [found.bound for found in total.relations] == [10, 9]
assert total.relations[1].worst.distance == 8

# %% [markdown]
# ## Answer to 3: the maximum

# %%
largest = sf.lab.neighbours("maximum")
largest

# %% [markdown]
# Δ = 9 in both relations: one person with a 10 can enter a table of ones. Noise of scale 9/ε on a number from 1 to
# 10 is useless. Use a *choice* instead: each candidate n gets a score, and the mechanism picks a good candidate. The
# score below is the number of people at or above n (at most 3), minus the number of people above n. One person changes
# it by at most 1, and the maximum has the best score if three people reach it.

# %%
numbers = [2, 3, 3, 5, 7, 7, 7, 8, 8, 8, 8, 8]
scores = [min(sum(x >= n for x in numbers), 3) - sum(x > n for x in numbers) for n in range(1, 11)]
chances = sf.lab.probabilities(sf.PrivateChoice(sensitivity=1, epsilon=2), scores)
for index, chance in chances.items():
    print(f"{index + 1:>2}  score {scores[index]:>3}  chosen with probability {float(chance):.3f}")

# %% [markdown]
# ## Answer to 4: the histogram

# %%
histogram = sf.lab.neighbours("histogram")
histogram

# %% [markdown]
# A person is in one cell. Adding one changes one cell by 1: Δ = 1. Replacing one takes 1 from a cell and adds 1 to
# another: Δ = 2. So a histogram with a thousand cells needs no more noise in each cell than a single count.

# %%
assert [found.bound for found in histogram.relations] == [1, 2]

# %% [markdown]
# ## Answer to 5: the average

# %%
heights = sf.lab.neighbours("average", "heights")
heights

# %% [markdown]
# With five people, Δ = 299/5 = 59.8 cm. Under add-remove the number of people is private too. Then an average is
# computed from a noisy sum and a noisy count.
#
# ## Question for students
# The owner of the data says: "In my table, nobody is taller than 195 cm, so use 1 to 195 as the range." What is wrong?

# %%
private_range = sf.lab.neighbours("average", "heights", rows=(152, 164, 171, 180, 195))
one_tall_person = sf.lab.neighbours("average", "heights", rows=(152, 164, 171, 180, 231))

# %% [markdown]
# **Answer.** The range would depend on the data. A neighbour with one person of 231 cm would have another range, hence
# another amount of noise, and the amount of noise would reveal that person. Bounds must be public: declared before
# anyone looks at the data. Values outside are clamped.

# %%
print(f"Declared 1 to 300: the bound is {float(private_range.relations[1].bound):g} for both tables")
assert private_range.relations[1].bound == one_tall_person.relations[1].bound

# %% [markdown]
# ## Question for students
# A hospital asks two counts about the same patients: how many smoke, and how many are over 65. What is the L1
# sensitivity of both counts together, under add-remove? And of the counts "under 20", "20 to 64", "65 and over"?

# %%
together = {"smokers, over 65": 2, "three age groups": 1}

# %% [markdown]
# **Answer.** 2, because one patient can be in both counts. But 1 for the age groups, because everyone is in exactly
# one: they are a histogram. The curator finds this by itself:

# %%
import pandas as pd

patients = pd.DataFrame({"age": [30, 70, 80, 15] * 25, "smoker": [True, True, False, False] * 25})
clinic = sf.protect(
    patients, name="clinic", unit=sf.ROW, budget=sf.Budget(epsilon=1),
    columns={"age": sf.Integer(0, 120), "smoker": sf.Boolean()},
)  # fmt: skip
preview = clinic.preview("SELECT smoker, COUNT(*) AS n FROM clinic GROUP BY smoker", epsilon=1)
print(preview.explain().splitlines()[1])
clinic.close()
