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
# # 4. Randomised response: privacy without a curator
#
# **After this lesson** you can run a private poll with coins, estimate the true share, and state what the missing
# curator costs. **Time:** 40 minutes, of which 10 for a real poll with coins.
#
# "Did you cheat in an exam?" Each student flips a coin. Heads: tell the truth. Tails: flip again, and say yes for
# heads, no for tails. The truth is told with probability 3/4.

# %%
import math
from fractions import Fraction

import sfumato as sf

# %%
two_coins = sf.RandomizedResponse(truth=Fraction(3, 4))
yes = sf.lab.probabilities(two_coins, True)
no = sf.lab.probabilities(two_coins, False)
print(f"P(report yes | yes) = {yes.p(True)}, P(report yes | no) = {no.p(True)}")

# %% [markdown]
# ## Question for students
# Which ε does this poll have? Use the definition: compare the probabilities of one report under the two answers.

# %%
ratio = yes.greatest_ratio(no)

# %% [markdown]
# **Answer.** The greatest ratio is (3/4)/(1/4) = 3, so ε = ln 3 ≈ 1.1. It is exact: the probabilities are fractions.
# Each student has this protection against everyone, also against the teacher.

# %%
print(f"ratio {ratio}, epsilon {math.log(3):.4f}, as the mechanism states: {float(two_coins.loss.epsilon):.4f}")
assert ratio.low == 3

# %% [markdown]
# ## The poll
# 100 students, of whom 30 would say yes. The seed makes the slide reproducible; in class, use real coins.

# %%
poll = sf.lab.randomized_response(students=100, share="0.3", seed=1)
poll

# %% [markdown]
# ## Question for students
# In expectation, which share of the reports is yes if a share $p$ of the students would say yes? Solve for $p$.

# %%
share_of_yes = poll.reported_yes / poll.students
estimate = 2 * (share_of_yes - 0.25)

# %% [markdown]
# **Answer.** $\bar Y = \tfrac34 p + \tfrac14 (1 - p) = \tfrac14 + \tfrac12 p$, so the estimate is $2(\bar Y -
# \tfrac14)$. It is unbiased, and can be below 0 or above 1 in a small class.

# %%
print(f"reports {share_of_yes:.2f}, estimate {estimate:.2f}, by the mechanism {poll.estimate.value:.2f}")
assert abs(estimate - poll.estimate.value) < 1e-9

# %% [markdown]
# ## The price of having no curator
# Each student's coin adds variance, and the variances add up: the error of the *count* grows with √n. A trusted
# curator adds noise once, and its error does not grow.

# %%
for error in poll.errors:
    print(f"{error.students:>5} students: local error {error.local:6.1f}, central error {error.central:4.1f}")
assert poll.errors[-1].local > 10 * poll.errors[-1].central

# %% [markdown]
# ## Question for students
# With a curator, a school of 100 students gets an error of about 1.2 for ε = ln 3. How many students must a poll with
# coins have, so that its error of the *share* is as good as that of the curator in the school?

# %%
central_share_error = poll.errors[1].central_theory / 100
needed = math.ceil(0.75 / central_share_error**2)

# %% [markdown]
# **Answer.** The error of the share is about $\sqrt{0.75/n}$. It must be 0.0122, so $n \approx 5{,}000$: fifty times as
# many. Large companies poll without a curator; a school class hardly can.

# %%
print(f"{needed:,} students")
assert 4_000 < needed < 6_000

# %% [markdown]
# ## More than yes or no
# With several categories, the other answers share the lies. `sf.local` has better randomisers for many categories; all
# of them publish their exact probabilities.

# %%
browsers = sf.local.randomiser("krr", k=4, epsilon=1)
for report, chance in sf.lab.probabilities(browsers, 0).items():
    print(f"report {report}: {float(chance):.4f}")
