"""No text of an analyst becomes a name or other syntax in the SQL that an engine gets."""

import re

import pytest
from sqlglot import exp, parse_one

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.sql.lowering import lower, lower_bins, lower_people
from sfumato.kernel.plan import Choice, Count, Keys, People, Sum
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

VISITS = Table("visits", None, "pid", {"pid": sf.Id(), "cost": sf.Real(0, 9), "kind": sf.Text()}, 3, 2)
HOMES = Table("homes", None, "pid", {"pid": sf.Id(), "rooms": sf.Integer(1, 9)}, 2)
SITES = Table(
    "sites", None, None, {"kind": sf.Text(), "beds": sf.Real(0, 9)}, public=True, multiplicities=(("kind", 2),)
)
DATASET = Dataset("clinic", [VISITS, HOMES, SITES], sf.Budget(epsilon=9, delta="1e-6"))
EVIL = '"evil""; DROP"'
UNION = f"SELECT pid AS {EVIL}, cost AS evil2 FROM visits UNION ALL SELECT pid, rooms FROM homes"
OWN = re.compile(
    r"t\d+\.(cost|kind|pid|rooms|beds|column\d+|part\d+\.column\d+|of_unit\d+|key\d+)|__sfumato_\w+|of_unit\d+"
    r"|cost|kind|rooms|beds|visits|homes|sites|l|r|source|inside|part|parts|one|unit|units|place|scaled|rounded|weight"
    r"|declared|ranked|named|found|kept|few|many|held_keys|pairs|of_units|(count|sum|keys|people|choice)\d+|(halves|thirds|curve)\d+\.\d"
)


@pytest.mark.parametrize("question", [
    f"SELECT SUM(evil2) AS evil3 FROM ({UNION}) AS evil4",
    f"SELECT FLOOR(evil4.evil2) AS evil5, COUNT(*) AS n FROM ({UNION}) AS evil4 "
    f"JOIN homes evil6 ON evil4.{EVIL} = evil6.pid GROUP BY 1",
    f"SELECT COUNT(*) AS n FROM homes evil1 LEFT JOIN (SELECT pid AS {EVIL}, cost * 2 AS evil2 FROM visits) evil3 "
    f"ON evil1.pid = evil3.{EVIL} WHERE evil3.evil2 IS NULL",
    f"SELECT COUNT(*) AS n FROM homes evil1 LEFT JOIN ({UNION}) evil3 ON evil1.pid = evil3.{EVIL} WHERE evil2 IS NULL",
    f"WITH evil1 AS (SELECT pid AS {EVIL}, MAX(cost) AS evil2, COUNT(*) AS evil3 FROM visits GROUP BY pid) "
    "SELECT evil3 AS evil4, AVG(evil2) AS evil5 FROM evil1 GROUP BY evil3 HAVING COUNT(*) > 3",
    f"WITH evil1 AS (SELECT pid AS {EVIL}, MAX(cost) AS evil2 FROM visits GROUP BY pid) SELECT MEDIAN(evil2) AS evil5, "
    f"COUNT(DISTINCT homes.pid) AS evil6 FROM homes LEFT JOIN evil1 ON homes.pid = evil1.{EVIL}",
    "SELECT evil2, COUNT(*) AS evil3 FROM (SELECT evil1.kind AS evil2, evil4.beds AS evil5 FROM visits AS evil1 "
    "LEFT JOIN (SELECT kind AS evil6, beds FROM sites) AS evil4 ON evil1.kind = evil4.evil6) AS evil7 GROUP BY evil2",
])  # fmt: skip
def test_names_are_the_catalogs_or_our_own(question):
    plan = choose_plan(bind(parse(question), DATASET), sf.PureDP(1), DATASET, dict.fromkeys(DATASET.tables, "1")).plan
    quantities = [measurement.quantity for measurement in plan.measurements]
    trees = [lower(plan, {})] if any(isinstance(quantity, Count | Sum) for quantity in quantities) else []
    trees += [lower_people(plan)] if any(isinstance(quantity, People | Keys) for quantity in quantities) else []
    trees += [lower_bins(plan, "q", quantity) for quantity in quantities if isinstance(quantity, Choice)]
    assert trees
    for tree in trees:
        text = tree.sql("duckdb")
        assert "evil" not in text, text
        for identifier in parse_one(text, dialect="duckdb").find_all(exp.Identifier):
            assert OWN.fullmatch(identifier.name), identifier.name
