"""Sfumato on the tasks of bench/peers/compare.py."""

import itertools
import sys
from pathlib import Path

import numpy as np
from speed import KEYS, MOST_ROWS, run

import sfumato as sf

PATH = Path(sys.argv[1])
COLUMNS = {"k": sf.Category(KEYS), "x": sf.Real(0, 1, nullable=False)}
EPSILONS = itertools.count(1)  # a better answer each time, so that none is a stored one


def open_rows(unit: object, columns: dict[str, object], most: int, *, groups: int = 1) -> sf.Curator:
    return sf.protect(
        PATH, name="t", unit=unit, columns=columns, budget=sf.Budget(epsilon=10**6, delta="0.1"),
        max_rows_per_unit=most, max_groups_per_unit=groups,
    )  # fmt: skip


OPENED: dict[str, sf.Curator] = {}


def ask(name: str, question: str, unit: object, columns: dict[str, object], most: int, **options: object) -> object:
    """The first run pins the rows, as an owner does once; the others ask."""
    if name not in OPENED:
        OPENED[name] = open_rows(unit, columns, most, groups=20 if "delta" in options else 1)
    return OPENED[name].ask(question, epsilon=next(EPSILONS), **options).rows


GROUPED = "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY k"
PERSON = COLUMNS | {"p": sf.Id()}
run(
    {
        "grouped": lambda: ask("grouped", GROUPED, sf.ROW, COLUMNS, 1),
        "person": lambda: ask("person", GROUPED, "p", PERSON, MOST_ROWS),
        "median": lambda: ask("median", "SELECT MEDIAN(x) AS m FROM t", sf.ROW, COLUMNS, 1),
        "keys": lambda: ask(
            "keys",
            "SELECT item, COUNT(DISTINCT p) AS n FROM t GROUP BY item",
            "p",
            {"p": sf.Id(), "item": sf.Text()},
            MOST_ROWS,
            delta="1e-6",
        ),
        "noise": lambda: sf.Laplace(sensitivity=1, epsilon=1, of="reals").release(np.linspace(0, 1, 1_000_000)),
    }
)
