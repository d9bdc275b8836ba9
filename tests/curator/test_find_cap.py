"""Contribution bounds that are bought: the race over truncations, what it costs, and max_rows_per_unit="auto"."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.answering.find_cap import CANDIDATES
from sfumato.catalog.catalog_file import load_catalog

COLUMNS = {"id": sf.Id(), "x": sf.Integer(0, 9)}


def visits(people=3_000, most=20, heavy=0):
    draw = np.random.default_rng(8)
    owned = [*draw.integers(1, most + 1, people), *([5_000] * heavy)]
    return pd.DataFrame({"id": np.repeat(np.arange(len(owned)), owned), "x": 1})


def protect(data, budget="10", **options):
    settings = {"max_rows_per_unit": 1} | options
    budget = sf.Budget(epsilon=budget)
    with pytest.warns() if settings["max_rows_per_unit"] == 1 else pytest.MonkeyPatch.context():
        return sf.protect(data, name="visits", unit="id", columns=COLUMNS, budget=budget, **settings)


def test_the_cap_is_what_nearly_everybody_keeps_to():
    data = visits()
    rows = data.groupby("id").size()
    with protect(data) as curator:
        found = curator.find_cap("visits", epsilon="0.5")
        assert found.max_rows_per_unit in (16, 24)
        assert (rows > found.max_rows_per_unit).sum() <= found.people_above < 40
        assert found.cost.epsilon == curator.budget.spent.epsilon == sf.Budget(epsilon="0.5").epsilon
        again = curator.find_cap("visits", epsilon="0.5")
        assert (again.max_rows_per_unit, again.cost.epsilon) == (found.max_rows_per_unit, 0), (
            "it is recorded, and fixed"
        )
        assert "declare max_rows_per_unit" in str(found)


def test_a_few_people_with_very_many_rows_do_not_move_it():
    """One person reaches a candidate as one person, however many rows they have."""
    plain, heavy = (
        [protect(visits(heavy=count)).find_cap(epsilon=1).max_rows_per_unit for _ in range(3)] for count in (0, 3)
    )
    assert set(plain) | set(heavy) <= {16, 24}


def test_few_people_get_the_smallest_cap():
    assert protect(visits(people=5)).find_cap(epsilon="0.1").max_rows_per_unit == 1


def test_candidates_are_public_and_ordered():
    assert CANDIDATES[:8] == (1, 2, 3, 4, 6, 8, 12, 16)
    assert CANDIDATES[-1] == 1 << 20
    assert list(CANDIDATES) == sorted(set(CANDIDATES))


def test_auto_declares_the_cap_and_charges_for_it():
    with protect(visits(), max_rows_per_unit="auto", cap_epsilon="0.5") as curator:
        declared = curator.dataset.table("visits").max_rows_per_unit
        assert declared in (16, 24)
        assert curator.budget.spent.epsilon == sf.Budget(epsilon="0.5").epsilon
        margin = curator.preview("SELECT COUNT(*) AS n FROM visits", epsilon=1).margins["n"]
        assert margin == pytest.approx(3 * declared, rel=0.01)
        answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=5)
        assert answer.rows[0]["n"] == pytest.approx(len(visits()), rel=0.05)
        assert curator.load_report["visits"].people.max_rows_per_unit == declared


def test_auto_on_a_stored_ledger_is_bought_once(tmp_path):
    spent = []
    for _ in range(2):
        path = tmp_path / "ledger.db"
        with protect(visits(), max_rows_per_unit="auto", cap_epsilon="0.5", ledger=path) as curator:
            spent.append((curator.dataset.table("visits").max_rows_per_unit, str(curator.budget.spent.epsilon)))
    assert spent[0] == spent[1]


def test_what_is_refused(tmp_path):
    with pytest.raises(sf.errors.BudgetExceeded):
        protect(visits(), budget="0.01", max_rows_per_unit="auto")
    with pytest.raises(sf.errors.InvalidParameter, match="auto"):
        protect(visits(), max_rows_per_unit="many")
    rows = sf.protect(
        pd.DataFrame({"x": [1]}), name="t", unit=sf.ROW, columns={"x": sf.Integer(0, 9)}, budget=sf.Budget(1)
    )
    with pytest.raises(sf.errors.InvalidParameter, match="people have ids"):
        rows.find_cap()
    text = (
        '[dataset]\nname = "d"\n[budget]\nepsilon = "1"\n[tables.t]\nunit_column = "id"\nmax_rows_per_unit = "auto"\n'
    )
    (tmp_path / "catalog.toml").write_text(text)
    with pytest.raises(sf.errors.CatalogError, match="sfumato cap t --epsilon"):
        load_catalog(tmp_path)


def test_a_preview_costs_nothing_and_says_what_the_bound_costs(tmp_path):
    with protect(visits()) as curator:
        shown = curator.preview_cap("visits", epsilon="0.5")
        assert curator.budget.spent.epsilon == 0
        found = curator.find_cap("visits", epsilon="0.5")
        assert (shown.cost.epsilon, shown.people_above) == (found.cost.epsilon, found.people_above)
        assert "0.5" in str(shown)
        assert curator.budget.spent.epsilon == shown.cost.epsilon
