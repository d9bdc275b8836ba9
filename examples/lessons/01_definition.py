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
# # 1. The definition, and a proof by picture
#
# **After this lesson** you can state ε-differential privacy, decide by a picture whether a mechanism satisfies it, and
# say what ε means for one person's beliefs. **Time:** 40 minutes.
#
# Two tables are *neighbours* if they differ in one person. A mechanism M reads a table and gives a random output.
# M is ε-differentially private if, for all neighbours D and D' and for every output x,
#
# $$P[M(D) = x] \le e^{\varepsilon} \, P[M(D') = x].$$

# %%
import math
from fractions import Fraction

import sfumato as sf

# %% [markdown]
# ## Neighbours
# Eight patients have the diseases 1, 2, 1, 3, 1, 2, 4, 1. How many have disease 1? Here are all neighbours of this
# table. In *add-remove*, one person joins or leaves. In *replace-one*, one person is replaced by another.

# %%
view = sf.lab.neighbours("count")
view

# %% [markdown]
# No neighbour changes the count by more than 1. This number is the *sensitivity* Δ of the count.
#
# ## The picture
# The mechanism adds noise to the count. Two neighbours have the true counts 0 and 1. Their outputs have the same
# curve, slid by Δ = 1.

# %%
picture = sf.lab.mechanism(epsilon=1, sensitivity=1)
picture

# %% [markdown]
# **The proof.** The height of the Laplace curve falls by the factor $e^{\varepsilon}$ over each distance Δ. Sliding the
# curve by Δ therefore changes its height nowhere by more than the factor $e^{\varepsilon}$. In formulas:
# $|x - 1| \le |x| + 1$, so $e^{-\varepsilon |x|} \le e^{\varepsilon} e^{-\varepsilon |x - 1|}$.
#
# The discrete view has the exact probabilities of `sf.Laplace`. They are no floating-point numbers, but exact
# enclosures. So the definition can be checked, output by output:

# %%
first = sf.lab.probabilities(sf.Laplace(sensitivity=1, epsilon=1), 0)
second = sf.lab.probabilities(sf.Laplace(sensitivity=1, epsilon=1), 1)
for output in range(-3, 5):
    ratio = first.p(output) / second.p(output)
    print(f"{output:>3}  {float(first.p(output)):.4f}  {float(second.p(output)):.4f}  ratio {float(ratio):.4f}")
assert float(first.greatest_ratio(second)) <= math.e

# %% [markdown]
# ## From outputs to events
# An analyst may look at any *set* of outputs, for example "the noisy count is above 3". The definition holds for sets
# too: a set's probability is the sum over its outputs, and each summand obeys the bound.

# %%
above = [1 - side.cdf(3) for side in (first, second)]
print(f"P(output > 3) is {float(above[0]):.4f} and {float(above[1]):.4f}; ratio {float(above[1] / above[0]):.4f}")
assert float(above[1] / above[0]) <= math.e

# %% [markdown]
# ## Question for students
# A colleague adds a whole number from -3 to 3 instead, all seven equally likely. The error is never above 3. For which
# ε is this mechanism ε-differentially private?
#
# *Think before you run the next cell.*

# %%
uniform = {output: Fraction(1, 7) for output in range(-3, 4)}
shifted = {output + 1: chance for output, chance in uniform.items()}
only_first = [output for output in uniform if output not in shifted]

# %% [markdown]
# **Answer.** For none. The output -3 is possible if the count is 0, and impossible if it is 1. Whoever sees -3 knows
# the count. The ratio is infinite, however small the probability of -3 is. Noise must reach every output from every
# table: this is why its tails never end.

# %%
print(f"Outputs that reveal the count: {only_first}")
assert only_first == [-3]

# %% [markdown]
# ## What ε means
# Someone has a guess about you, with some probability. After any answer, the odds of the guess have changed by a factor
# between $e^{-\varepsilon}$ and $e^{\varepsilon}$. For small ε these are nearly 1 - ε and 1 + ε.

# %%
sf.lab.epsilon(1)

# %% [markdown]
# ## Question for students
# Your insurance believes with 10 % that you smoke. A study with ε = 0.1 is published, and you took part. What can they
# believe afterwards, at most? And if you had not taken part?

# %%
meaning = sf.lab.epsilon("0.1")
(belief,) = (belief for belief in meaning.beliefs if belief.prior == 0.1)
print(f"Between {100 * belief.least:.1f} % and {100 * belief.most:.1f} %")

# %% [markdown]
# **Answer.** At most 10.9 %, compared with what they would believe without your data. Note what the definition does
# *not* promise: if the study shows that smoking is common in your town, their belief may rise for that reason, whether
# you took part or not.

# %%
assert round(belief.most, 3) == 0.109
