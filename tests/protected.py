"""A small clinic, and a curator of it."""

import numpy as np
import pandas as pd

import sfumato as sf

PEOPLE = 600


def clinic():
    index = np.arange(2 * PEOPLE)
    return pd.DataFrame(
        {
            "person_id": [f"p{row // 2}" for row in index],
            "age": 20 + (index * 7) % 60,
            "income": 1000.0 * ((index * 13) % 90),
            "city": np.array(["Rome", "Oslo", "Lima"])[index % 3],
            "smoker": index % 4 == 0,
        }
    )


COLUMNS = {
    "person_id": sf.Id(),
    "age": sf.Integer(0, 120, nullable=False),
    "income": sf.Real(0, 100_000),
    "city": sf.Category(["Rome", "Oslo", "Lima", "Bonn"]),
    "smoker": sf.Boolean(),
}


def protect(budget=None, **options):
    settings = {"unit": "person_id", "max_rows_per_unit": 2, "max_groups_per_unit": 2} | options
    columns = COLUMNS if settings["unit"] is not sf.ROW else {k: v for k, v in COLUMNS.items() if k != "person_id"}
    if settings["unit"] is sf.ROW:
        settings |= {"max_rows_per_unit": 1, "max_groups_per_unit": 1}
    return sf.protect(clinic(), name="people", columns=columns, budget=budget or sf.Budget(epsilon=3), **settings)
