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
# # Heights from 1 to 300 cm
#
# The average height of a group is published. How much noise hides one person? The answer depends on what is
# *publicly* known about heights, not on the heights of this group. Publicly known is: a height lies between 1 and
# 300 cm.

# %%
import numpy as np
import pandas as pd

import sfumato as sf

generator = np.random.default_rng(1)
heights = pd.DataFrame({"height": generator.normal(171, 9, 500).round()})

# %% [markdown]
# ## What one person can change
# Five people have a height, and one of them is replaced by another person. The picture shows the neighbour that
# changes the average most: one height goes from one bound to the other. So the average of n heights has the
# sensitivity 299/n.

# %%
sf.lab.neighbours("average")

# %% [markdown]
# ## Declare and ask
# The number of people is public here: 500 were measured. Two tables are neighbours if one person is replaced.

# %%
people = sf.protect(
    heights,
    name="people",
    unit=sf.ROW,
    rows=500,
    neighbours="replace-one",
    columns={"height": sf.Real(1, 300, nullable=False)},
    budget=sf.Budget(epsilon=3),
)
question = "SELECT AVG(height) AS mean FROM people"
people.preview(question, epsilon=1).margins

# %% [markdown]
# The noise is Laplace noise of scale 299/(500 ε). With ε = 1, the margin is about 299/500 · ln 20 = 1.8 cm.

# %%
answer = people.ask(question, epsilon=1)
answer

# %%
print(answer.explain())

# %% [markdown]
# ## Narrower bounds, less noise
# If heights are declared from 100 to 220 cm, the scale falls to 120/(500 ε). A person of 230 cm is then counted with
# 220 cm: noise is traded for bias. The bounds come from what is known about people in general. Bounds from this
# table would reveal its tallest person.

# %%
narrow = people.preview("SELECT AVG(GREATEST(LEAST(height, 220), 100)) AS mean FROM people", epsilon=1)
narrow.margins

# %%
people.close()
