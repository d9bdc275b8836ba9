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
# # 7. Attacks: why every part of the definition is needed
#
# **After this lesson** you can carry out four attacks on naive releases, and name the limit that differential privacy
# sets to every attacker. **Time:** 60 minutes.
#
# Each attack below runs twice: against a naive release, and against the same release by Sfumato. All data is generated.

# %%
import math

import sfumato as sf

# %% [markdown]
# ## The limit
# An attacker guesses one bit about you: are you in the data, or not? Without an answer, half of the guesses are right.
# With an ε-private answer, the odds change by the factor $e^{\varepsilon}$ at most, so at most
# $e^{\varepsilon}/(1 + e^{\varepsilon})$ are right.

# %%
for epsilon in (0.1, 0.5, 1, 3):
    limit = math.exp(epsilon) / (1 + math.exp(epsilon))
    print(f"epsilon {epsilon:>3}: at most {100 * limit:.1f} % of the guesses are right")

# %% [markdown]
# ## Removing names is not enough
# A hospital publishes rows without names. A public voter list has birth dates, postcodes and names.

# %%
sf.lab.linkage(seed=1)

# %% [markdown]
# ## Question for students
# The hospital now publishes ranges instead, such that every combination occurs at least four times (4-anonymity). A
# neighbour of yours is in one of these groups, and all four patients of the group have the same disease. What does the
# attacker learn?

# %%
homogeneity = sf.lab.homogeneity(seed=1)

# %% [markdown]
# **Answer.** The disease, although nobody was identified. Hiding in a group does not help if the group says it all.

# %%
homogeneity

# %% [markdown]
# ## Exact statistics are not enough
# The teacher publishes only the average, once before and once after a student drops out.

# %%
sf.lab.differencing(seed=1)

# %% [markdown]
# ## Question for students
# The teacher adds noise now, but answers the same question as often as it is asked. How does the attack go on?

# %%
averaging = sf.lab.averaging(seed=1)

# %% [markdown]
# **Answer.** Average the answers. A curator with a ledger answers the same question with the stored answer, and
# variants of it run out of budget (lesson 5).

# %%
averaging

# %% [markdown]
# ## The textbook formula is not enough
# Even with the right scale and a budget, floating-point noise leaks: some outputs are possible for one value only.

# %%
bits = sf.lab.least_significant_bits(seed=1)
bits

# %% [markdown]
# ## Question for students
# All protected releases stayed within the limit. Can you conclude that Sfumato is private?

# %%
results = [homogeneity, averaging, bits]
within = [not result.exceeds_limit for result in results]

# %% [markdown]
# **Answer.** No. An attack that fails proves nothing: a better one may succeed. Only the proof counts, and the proof
# must be about the code. Attacks and audits find mistakes in proofs and programs; they cannot replace them.

# %%
print(within)
assert all(within)
