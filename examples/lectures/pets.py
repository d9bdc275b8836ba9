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
# # Pets, by randomised response
#
# "Do you have a pet at home, although the house rules forbid it?" Nobody trusts the person who asks. Each person
# flips two coins. First coin heads: tell the truth. Tails: the second coin decides the answer.

# %%
import math
from fractions import Fraction

import numpy as np

import sfumato as sf

coins = sf.RandomizedResponse(truth=Fraction(3, 4))
print(f"The truth is told with probability 3/4. The loss is ln 3: epsilon = {float(coins.loss.epsilon):.4f}.")

# %% [markdown]
# ## A thousand neighbours answer
# 30 % of them have a pet. Each report is made by the person's own coins, and only the report is sent.

# %%
truth = np.arange(1000) % 10 < 3
reports = coins.randomise(truth)
print(f"{np.mean(reports):.1%} of the reports say yes, and {np.mean(truth):.0%} have a pet.")

# %% [markdown]
# A yes may be a coin. Nobody can be blamed for it. But the share can be estimated: if p people have a pet, 1/4 + p/2
# of the reports say yes.

# %%
estimate = coins.estimate(reports)
print(f"Estimated share: {estimate.value:.3f}, 95 % interval {estimate.low:.3f} to {estimate.high:.3f}")

# %% [markdown]
# ## What the missing curator costs
# A curator who is trusted adds noise once, to the count of all. In the local model everyone adds noise. The error of
# a share falls with the root of the number of people, and with a curator with the number itself.

# %%
trusted = sf.Laplace(sensitivity=1, epsilon=str(round(math.log(3), 4)))
for people in (100, 1_000, 10_000, 100_000):
    local = sf.local.randomiser("rr", k=2, epsilon=str(round(math.log(3), 4))).margin(people)
    curated = trusted.margin(0.95) / people
    print(f"{people:>7,} people: ±{100 * curated:.3f} points with a curator, ±{100 * local:.2f} without")

# %% [markdown]
# ## Several pets
# With more answers than two, each person keeps the truth with some probability and otherwise reports another answer
# at random. `choose` compares the mechanisms.

# %%
print(sf.local.choose(5, epsilon=1, people=1000))

# %% [markdown]
# To ask real people, make a signed survey: see the tutorial for product teams.
