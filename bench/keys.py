"""Undeclared keys that are found, and questions that a budget allows, beside the best known figures.

Run `python bench/keys.py`. A line ends in "met" or "MISSED"; the program fails if any line is missed. The figure
of the policy Gaussian is for another draw of the same distribution.
"""

import sys
import warnings

import dp_accounting
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import sfumato as sf

PEOPLE, ITEMS, MOST = 50_000, 121_000, 1_000
TIMES = 5
LEAST_KEYS, RECORD = 890, 908  # policy Gaussian
DEVIATION = 2**0.5 / 0.03  # of a count with Laplace noise of epsilon 0.03


def make_baskets() -> pd.DataFrame:
    """Sets of Zipf items: sizes lognormal(2.5, 1.3) up to 1,000, exponent 1.05."""
    generator = np.random.default_rng(1)
    sizes = np.clip(np.round(generator.lognormal(2.5, 1.3, PEOPLE)), 1, MOST).astype(int)
    chances = np.arange(1, ITEMS + 1) ** -1.05
    drawn = np.searchsorted(np.cumsum(chances / chances.sum()), generator.random(sizes.sum()))
    baskets = pd.DataFrame({"person": np.repeat(np.arange(PEOPLE), sizes), "item": drawn}).drop_duplicates()
    return baskets.assign(item="item " + baskets["item"].astype(str))


def count_keys(baskets: pd.DataFrame, neighbours: str) -> int:
    """Keys alone, at epsilon = 1 and delta = 1e-5: the mean of several answers, which differ in an absent item."""
    with warnings.catch_warnings(), sf.protect(
        baskets, name="t", unit="person", columns={"person": sf.Id(), "item": sf.Text()}, neighbours=neighbours,
        budget=sf.Budget(epsilon=9, delta="1e-3"), max_rows_per_unit=MOST, max_groups_per_unit=MOST,
    ) as curator:  # fmt: skip
        questions = (f"SELECT item FROM t WHERE item <> 'absent {number}' GROUP BY item" for number in range(TIMES))  # noqa: S608 - numbers
        found = [len(curator.ask(question, epsilon=1, delta="1e-5").rows) for question in questions]
        return round(sum(found) / TIMES)


def main() -> None:
    table = Table("What", "Sfumato", "Best known", "Limit", "", title="Keys and budgets")
    missed = 0

    def line(what: str, ours: int, best: str, least: int) -> None:
        nonlocal missed
        missed += ours < least
        table.add_row(what, f"{ours:,}", best, f"≥ {least:,}", "met" if ours >= least else "MISSED")

    baskets = make_baskets()
    line("Keys found, add-remove", count_keys(baskets, "add-remove"), f"{RECORD} (policy Gaussian)", LEAST_KEYS)
    table.add_row("Keys found, replace-one", f"{count_keys(baskets, 'replace-one'):,}", "", "", "")
    gdp = sf.Budget(epsilon=3, delta="1e-6", accounting="gdp").loss
    smallest = dp_accounting.get_sigma_gaussian(3, 1e-6)  # of all questions together
    best = int((DEVIATION / smallest) ** 2)
    line(
        "Counts of deviation 47 under (3, 1e-6)", int(float(gdp.mu_squared) * DEVIATION**2), f"{best}", int(best / 1.05)
    )
    Console(width=120).print(table)
    sys.exit(f"{missed} limits missed" if missed else 0)


if __name__ == "__main__":
    main()
