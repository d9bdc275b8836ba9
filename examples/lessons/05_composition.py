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
# # 5. Composition, budgets and adaptive questions
#
# **After this lesson** you can add up privacy losses, explain why every dataset needs a budget, and say what an
# adaptive analyst may do. **Time:** 45 minutes.

# %%
import pandas as pd

import sfumato as sf

# %% [markdown]
# ## Two answers
# The same count is released twice, each time with ε = 0.5. What do both answers together reveal? The noises are
# independent, so the probabilities multiply, and so do the ratios.

# %%
half = sf.Laplace(sensitivity=1, epsilon="0.5")
here, there = sf.lab.probabilities(half, 0), sf.lab.probabilities(half, 1)
alone = here.greatest_ratio(there)
both = alone * alone
print(f"one answer: ratio {float(alone):.4f}; both: {float(both):.4f}; e = 2.7183")

# %% [markdown]
# **Basic composition**: an ε₁-private and an ε₂-private answer together are (ε₁ + ε₂)-private. Sfumato adds exact
# decimals.

# %%
total = sf.PureDP("0.5").compose(sf.PureDP("0.5"))
print(total)
sf.lab.epsilon(total.epsilon)

# %% [markdown]
# ## Question for students
# An analyst repeats the question a thousand times, with ε = 0.1 each, and takes the average. How large is the error of
# the average, and what is the total loss?

# %%
slides = sf.lab.seeded(7)
tenth = sf.Laplace(sensitivity=1, epsilon="0.1")
answers = [slides.release(tenth, 42) for _ in range(1000)]
average = sum(answers) / len(answers)

# %% [markdown]
# **Answer.** One answer has an error of about 10. The average of a thousand has an error of about 0.4: it reveals the
# true count. The losses add up to ε = 100, which is no protection at all. Without a budget, every noisy system can be
# averaged away.

# %%
print(f"first answers {answers[:5]}, average {average:.2f}")
assert abs(average - 42) < 3

# %% [markdown]
# ## A budget
# So each dataset has a budget. A curator charges each question before it reads the data, and refuses what does not fit.

# %%
people = sf.protect(
    pd.DataFrame({"age": [34, 71, 28, 55] * 250, "smoker": [True, False, False, False] * 250}),
    name="people",
    unit=sf.ROW,
    columns={"age": sf.Integer(0, 120), "smoker": sf.Boolean()},
    budget=sf.Budget(epsilon=1),
)
smokers = people.ask("SELECT COUNT(*) AS n FROM people WHERE smoker", epsilon="0.4")
print(smokers.rows, "left:", people.budget.remaining.epsilon)

# %% [markdown]
# ## Question for students
# What does the same question cost the second time? And what should the curator answer?

# %%
again = people.ask("SELECT COUNT(*) AS n FROM people WHERE smoker", epsilon="0.4")

# %% [markdown]
# **Answer.** Nothing, and the same answer. The curator stores it. A stored answer reveals nothing new, so repeating the
# question is free, and averaging does not help.

# %%
assert again.rows == smokers.rows
assert again.cached
print("left:", people.budget.remaining.epsilon)

# %% [markdown]
# ## Adaptive questions
# The next question may depend on earlier answers. Composition still holds, because each answer is private *whatever*
# the question is. So an analyst may explore.

# %%
old = people.ask("SELECT COUNT(*) AS n FROM people WHERE age > 50", epsilon="0.3")
limit = 60 if old.rows[0]["n"] > 100 else 40
people.ask(f"SELECT COUNT(*) AS n FROM people WHERE age > {limit}", epsilon="0.3").rows

# %% [markdown]
# The budget is used up. A further question is refused, and the refusal says what is left:

# %%
try:
    people.ask("SELECT COUNT(*) AS n FROM people WHERE age > 20", epsilon="0.3")
except sf.errors.BudgetExceeded as refused:
    print(refused)
people.close()

# %% [markdown]
# ## Better than adding up
# For many questions, *zero-concentrated* privacy (zCDP) is cheaper: its losses ρ add up, and one conversion at the end
# gives (ε, δ). Gaussian noise has such a loss.

# %%
for questions in (1, 10, 100, 1000):
    basic = sf.PureDP("0.1").group(questions).epsilon  # the sum of so many losses
    rho = sf.PureDP("0.1").to_zcdp().rho * questions
    converted = sf.ZCDP(rho).to_approx("1e-6").epsilon
    print(
        f"{questions:>4} questions: epsilon {float(basic):6.1f} added up, {float(converted):5.1f} by zCDP (delta 1e-6)"
    )

# %% [markdown]
# ## Question for students
# From which number of questions on is zCDP better here? Why not from the first one?

# %%
better = next(
    questions
    for questions in range(1, 2000)
    if sf.ZCDP(sf.PureDP("0.1").to_zcdp().rho * questions).to_approx("1e-6").epsilon
    < questions * sf.PureDP("0.1").epsilon
)

# %% [markdown]
# **Answer.** The sum grows like k, and the converted loss like √k plus a price for δ. For few questions the price
# dominates.

# %%
print(f"From {better} questions on")
assert 10 < better < 1000

# %% [markdown]
# ## Many questions for the price of one
# "Has the number of cases reached 100 yet?" Such a question can be asked every day: the whole sequence up to the first
# *yes* costs one ε. The mechanism is *above threshold*. Here is the exact probability of each day of the first yes, for
# a count that grows by 10 a day:

# %%
clinic = sf.protect(
    pd.DataFrame({"day": list(range(200))}), name="cases", unit=sf.ROW,
    columns={"day": sf.Integer(0, 365)}, budget=sf.Budget(epsilon=1),
)  # fmt: skip
watch = clinic.watch("SELECT COUNT(*) AS n FROM cases WHERE day < 10", above=100, epsilon=1)
counts = list(range(70, 150, 10))
law = sf.lab.probabilities(watch.sequence, counts)
for day, chance in law.items():
    print(f"{'no yes' if day is None else f'count {counts[day]}':>10}: {float(chance):.4f}")
clinic.close()
