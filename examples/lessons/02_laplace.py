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
# # 2. The Laplace mechanism
#
# **After this lesson** you can choose the scale of the noise, predict the error before asking, and choose ε for a
# wanted error. **Time:** 40 minutes.
#
# A number whose sensitivity is Δ gets noise of *scale* Δ/ε:
#
# $$P[\text{noise} = z] \;\propto\; e^{-|z|\,\varepsilon/\Delta}.$$

# %%
import math

import sfumato as sf

# %% [markdown]
# ## Six releases
# The true count is 42. For a slide, the noise should be the same every time, so we use seeded noise. It protects
# nobody: real releases use `mechanism.release`, which has no seed.

# %%
count = sf.Laplace(sensitivity=1, epsilon=1)
slides = sf.lab.seeded(1)
[slides.release(count, 42) for _ in range(6)]

# %% [markdown]
# ## Smaller ε, wider noise

# %%
sf.lab.mechanism(epsilon="0.25", sensitivity=1)

# %%
for epsilon in ("2", "1", "0.5", "0.1"):
    mechanism = sf.Laplace(sensitivity=1, epsilon=epsilon)
    print(f"epsilon {epsilon:>3}: |error| is at most {mechanism.margin(0.95):>2} with probability 95 %")

# %% [markdown]
# ## The error, in theory
# The noise exceeds $t$ with probability about $e^{-t\varepsilon/\Delta}$. Solve for $t$: with probability $1 - \beta$,
#
# $$|\text{error}| \;\le\; \frac{\Delta}{\varepsilon} \ln\frac{1}{\beta}.$$
#
# Whole numbers need the next whole number: answers are counts, not real numbers.
#
# ## The error, measured
# A real curator answers the same question many times. (Asked in the same words again, it would return the stored
# answer for free.)

# %%
measured = sf.lab.error("count", epsilon=1, rows=100, repeats=40)
measured

# %% [markdown]
# ## Question for students
# The class has 100 students in the experiment. What happens to the error of the count if it has 10,000?

# %%
large = sf.lab.error("count", epsilon=1, rows=10_000, repeats=15)
mean_error = sum(abs(error) for error in large.errors) / len(large.errors)

# %% [markdown]
# **Answer.** Nothing: the noise depends on Δ and ε only. The *relative* error falls: an error of 3 is a lot among 25
# smokers, and little among 2,500. Differential privacy favours questions about many people.

# %%
print(f"Mean error with 10,000 students: {mean_error:.2f}")
assert mean_error < 5

# %% [markdown]
# ## Question for students
# You need a count that is within 10 with probability 95 %. Which ε do you choose? First use the formula, then check it.

# %%
wanted, beta = 10, 0.05
by_formula = math.log(1 / beta) / wanted
checked = sf.Laplace(sensitivity=1, epsilon=f"{by_formula:.3f}").margin(0.95)

# %% [markdown]
# **Answer.** ε = ln(20)/10 ≈ 0.3. In practice, ask for the margin instead of an ε: `people.ask(sql, margin={"n": 10})`
# finds the smallest ε that gives it.

# %%
print(f"epsilon {by_formula:.3f} gives a margin of {checked}")
assert checked <= wanted

# %% [markdown]
# ## An average
# For m values in [0, b], one replaced person changes the average by at most b/m. The noise is Lap(b/(mε)), and the
# error falls with m.

# %%
average = sf.lab.error("average", epsilon=1, rows=100, repeats=20)
print(f"Sensitivity {average.sensitivity:g}; 95 % of the errors are at most {average.bounds[3].bound:g}")
assert average.sensitivity == 0.1

# %% [markdown]
# ## Why the noise is discrete
# A computer has no real numbers. The textbook's `value + numpy.random.laplace(...)` can give some floating-point
# numbers for one value only, and whoever sees such a number knows the value (lesson 7). Sfumato draws exact noise on a
# public grid, so every output is possible for every value, with the right ratio.

# %%
grid = sf.lab.probabilities(sf.Laplace(sensitivity="0.1", epsilon=1), 7.3)
nearest = grid.output(grid.centre)
print(f"Outputs are multiples of {float(grid.step):g}. P(output = {nearest}) = {float(grid.p(nearest)):.2e}")
assert grid.p(7.3).high == 0  # 7.3 itself is not on the grid: the mechanism never gives it
