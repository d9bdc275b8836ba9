"""The catalog and the questions of docs/tpch.md, and an engine for asking them often."""

import re
from pathlib import Path

from sfumato.answering.plan_digests import name_plan
from sfumato.kernel.release import ExactAggregates

DOCUMENT = (Path(__file__).parents[2] / "docs" / "tpch.md").read_text()
(CATALOG,) = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)
QUESTIONS = {
    int(number): sql for number, sql in re.findall(r"### Query (\d+):.*?```sql\n(.*?)```", DOCUMENT, re.DOTALL)
}


class MeasuredOnce:
    """An engine that measures a plan's integers once: only the noise differs from one asking to the next."""

    def __init__(self, engine):
        self._engine = engine
        self._known = {}

    def check(self, plan):
        if name_plan(plan)[1] not in self._known:
            self._engine.check(plan)

    def aggregate(self, plan):
        if name_plan(plan)[1] not in self._known:
            self._known[name_plan(plan)[1]] = self._engine.aggregate(plan)
        exact = self._known[name_plan(plan)[1]]
        return ExactAggregates(plan, exact._integers, exact._keys, exact._bins)
