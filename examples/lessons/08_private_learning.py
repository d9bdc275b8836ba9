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
# # 8. Private learning from statistical queries
#
# **After this lesson** you can turn a learner that needs only averages into a private learner, and compute how many
# examples it needs. **Time:** 50 minutes.
#
# A *statistical query* (SQ) asks for the average of a function ψ(x, y) ∈ [0, 1] over the examples, up to a tolerance τ.
# An SQ learner uses the data through such averages only. A curator answers averages privately. So **every SQ learner is
# a private learner**.

# %%
import math

import pandas as pd

import sfumato as sf

# %% [markdown]
# ## The task: a conjunction
# Each example has five yes-or-no features and a label. The unknown rule: the label is yes if and only if x1 and x4 are
# yes. (A seeded source makes the data; it is generated.)

# %%
source = sf.lab.seeded(11)
features = ["x1", "x2", "x3", "x4", "x5"]
rows = 4000


def make_examples(size):
    """Examples with five features, and the label by the unknown rule."""
    table = pd.DataFrame({name: source.coins(0.7, size) for name in features})
    return table.assign(y=table.x1 & table.x4)


examples = make_examples(rows)

# %% [markdown]
# ## The learner
# Start with the conjunction of all features. A feature does *not* belong to the rule if there are positive examples
# without it. So ask, for each feature, for the share of examples with label yes and feature no, and drop the feature if
# the share is above a limit.
#
# ## Question for students
# Which five statistical queries does the learner ask? What is the sensitivity of each average over m examples, if one
# example is replaced?

# %%
queries = [f"SELECT COUNT(*) AS n FROM examples WHERE y AND NOT {name}" for name in features]

# %% [markdown]
# **Answer.** ψᵢ(x, y) = 1 if y is yes and xᵢ is no, otherwise 0. One replaced example changes the average by at most
# 1/m. With K queries and a total of ε, each average gets Laplace noise of scale K/(εm).
#
# Here each count gets ε = 0.2. The two curves are the noisy counts of two neighbours:

# %%
sf.lab.mechanism(epsilon="0.2", sensitivity=1)

# %% [markdown]
# ## How many examples?
# For K queries with tolerance τ, all at once with probability 1 - β,
#
# $$m = \frac{2K}{\varepsilon\tau} \ln\frac{2K}{\beta} + \frac{2}{\tau^2} \ln\frac{4K}{\beta}$$
#
# examples are enough. The first summand pays for the noise, the second for the sampling.

# %%
questions, epsilon, tolerance, beta = len(features), 1.0, 0.08, 0.05
for_noise = 2 * questions / (epsilon * tolerance) * math.log(2 * questions / beta)
for_sampling = 2 / tolerance**2 * math.log(4 * questions / beta)
print(
    f"{for_noise:,.0f} for the noise, {for_sampling:,.0f} for the sampling: {for_noise + for_sampling:,.0f} of {rows:,}"
)
assert for_noise + for_sampling <= rows

# %% [markdown]
# ## Ask privately
# The number of examples is public, and one example is one person.

# %%
curator = sf.protect(
    examples, name="examples", unit=sf.ROW, neighbours="replace-one", rows=rows,
    columns={name: sf.Boolean() for name in [*features, "y"]}, budget=sf.Budget(epsilon=1),
)  # fmt: skip
shares = {
    name: curator.ask(query, epsilon="0.2").rows[0]["n"] / rows for name, query in zip(features, queries, strict=True)
}
learned = [name for name, share in shares.items() if share <= tolerance]
print({name: round(share, 3) for name, share in shares.items()}, "->", " AND ".join(learned))
print("left:", curator.budget.remaining.epsilon)

# %% [markdown]
# ## Question for students
# The budget is spent. May the learner now be tested on the same examples? On others?

# %%
fresh = make_examples(2000)
predicted = fresh[learned].all(axis=1)
error = float((predicted != fresh.y).mean())

# %% [markdown]
# **Answer.** On the same examples not without further loss: the number of mistakes is an answer about them too. On
# fresh public examples, yes. The rule itself is post-processing of private answers, so it can be published and used
# freely.

# %%
print(f"learned: {' AND '.join(learned)}; error on fresh examples: {100 * error:.1f} %")
assert learned == ["x1", "x4"]
assert error <= 0.05
curator.close()

# %% [markdown]
# ## What the noise cost
# Without privacy, the same shares have only the sampling error. Compare:

# %%
exact = {name: float((examples.y & ~examples[name]).mean()) for name in features}
worst = max(abs(shares[name] - exact[name]) for name in features)
print(f"greatest difference to the exact shares: {worst:.4f}, with a tolerance of {tolerance}")
assert worst < tolerance / 2

# %% [markdown]
# ## The same with a proven guarantee
# `sf.learning` has this learner. Before anything is spent, it states how many examples it needs for an error of at most
# α with probability 1 - β ([learning](../../docs/learning.md)). The guarantee holds for every distribution of the
# examples, so with 4,000 of them it promises less than it achieves here.

# %%
learner = sf.learning.Conjunction(features, "y", monotone=True)
print(learner.guarantee(alpha=0.1, beta=0.05, epsilon=1))
with sf.protect(
    make_examples(rows), name="examples", unit=sf.ROW, neighbours="replace-one", rows=rows,
    columns={name: sf.Boolean(nullable=False) for name in [*features, "y"]}, budget=sf.Budget(epsilon=1),
) as others:  # fmt: skip
    fitted = learner.fit(others, epsilon=1, beta=0.05)
print(f"{fitted.sql}, with an error of at most {100 * float(fitted.alpha):.0f} %")
