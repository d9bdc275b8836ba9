"""The catalog and the questions of docs/tpch.md, and an engine for asking them often."""

import re
from pathlib import Path

from sfumato.kernel.plan import compute_answer_key, compute_digest
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
        if compute_answer_key(plan) not in self._known:
            self._engine.check(plan)

    def aggregate(self, plan):
        if compute_answer_key(plan) not in self._known:
            self._known[compute_answer_key(plan)] = self._engine.aggregate(plan)
        exact = self._known[compute_answer_key(plan)]
        return ExactAggregates(compute_digest(plan), exact._integers, exact._keys, exact._bins)
