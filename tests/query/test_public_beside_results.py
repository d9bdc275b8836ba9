"""Public rows in the SQL over results: their types, and a limit of time for what they can be multiplied to."""

import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSyntax
from sfumato.query import released_tables

CATALOG = """
[dataset]
name = "clinic"
[budget]
epsilon = "1000"
[tables.visits]
source = "visits.csv"
unit = "row"
columns.level = { type = "category", values = [9, 10] }
[tables.codes]
source = "codes.csv"
public = true
columns.level = { type = "category", values = [9, 10] }
columns.urgent = { type = "category", values = [true, false] }
[tables.long]
source = "long.csv"
public = true
columns.k = { type = "integer", lower = 0, upper = 1000 }
"""
LEVELS = "(SELECT level, COUNT(*) AS n FROM visits GROUP BY level)"


@pytest.fixture
def clinic(tmp_path):
    pd.DataFrame({"level": [9, 10] * 50}).to_csv(tmp_path / "visits.csv", index=False)
    pd.DataFrame({"level": [9, 10], "urgent": ["true", "false"]}).to_csv(tmp_path / "codes.csv", index=False)
    pd.DataFrame({"k": range(1000)}).to_csv(tmp_path / "long.csv", index=False)
    (tmp_path / "catalog.toml").write_text(CATALOG)
    with sf.open(str(tmp_path)) as opened:
        yield opened


def test_categories_keep_the_types_of_their_values(clinic):
    """As texts, 9 would be above 10."""
    asked = f"SELECT MAX(c.level) AS most, SUM(c.level) AS total FROM {LEVELS} r JOIN codes c USING (level)"
    assert clinic.ask(asked, epsilon=100).rows == [{"most": 10, "total": 19}]
    found = clinic.ask(f"SELECT c.urgent FROM {LEVELS} r JOIN codes c USING (level) ORDER BY 1", epsilon=100).rows
    assert found == [{"urgent": False}, {"urgent": True}]


def test_a_join_that_takes_too_long_is_refused_before_it_is_charged(clinic, monkeypatch):
    monkeypatch.setattr(released_tables, "MOST_SECONDS_OF_CHECK", 0.2)
    asked = f"SELECT SUM(a.k * d.k + n) AS s FROM {LEVELS} r, long a, long b, long c, long d"
    with pytest.raises(UnsupportedSyntax, match="takes too long"):
        clinic.preview(asked, epsilon=1)
    assert clinic.budget.spent.epsilon == 0
