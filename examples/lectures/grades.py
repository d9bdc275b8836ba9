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
# # Class grades, and the student who leaves
#
# A class of 30 has an average grade. One student leaves, and the average is published again. Both averages are
# harmless alone. Together they reveal a grade.

# %%
import pandas as pd

import sfumato as sf

grades = [4 + (7 * number) % 7 + number % 3 * 0.5 for number in range(29)] + [9.5]
before = sum(grades) / 30
after = sum(grades[:-1]) / 29
print(f"Average of 30: {before:.4f}. Average of 29: {after:.4f}.")
print(f"The student who left had {30 * before - 29 * after:.2f}.")

# %% [markdown]
# No noise, no privacy: this attack needs two numbers and one subtraction. It is called *differencing*.
#
# ## The same two questions, privately
# The number of students is public in both weeks. Grades are from 0 to 10. Both tables are about the same people, so
# they share one budget: `population` names it.


# %%
def protect(rows, version):
    return sf.protect(
        pd.DataFrame({"grade": rows}),
        name="grades",
        unit=sf.ROW,
        rows=len(rows),
        neighbours="replace-one",
        columns={"grade": sf.Real(0, 10, nullable=False)},
        budget=sf.Budget(epsilon=2),
        population="class 4b",
        version=version,
    )


question = "SELECT AVG(grade) AS mean FROM grades"
with protect(grades, "March") as march:
    first = march.ask(question, epsilon=1)
with protect(grades[:-1], "April") as april:
    second = april.ask(question, epsilon=1)
    left = april.budget.remaining.epsilon
print(f"March: {first.rows[0]['mean']:.2f}, April: {second.rows[0]['mean']:.2f}, left of the budget: {left}")

# %% [markdown]
# The same subtraction now multiplies the noise by about 30.

# %%
guess = 30 * first.rows[0]["mean"] - 29 * second.rows[0]["mean"]
print(f"The attacker computes {guess:.1f}. The truth is 9.5, and grades are from 0 to 10.")

# %% [markdown]
# The two answers together cost ε = 2, and the ledger says so. A third question is refused, whoever asks it.

# %%
with protect(grades[:-1], "April") as april:
    try:
        april.ask("SELECT MEDIAN(grade) AS middle FROM grades", epsilon=1)
    except sf.errors.BudgetExceeded as refused:
        print(refused.message)
