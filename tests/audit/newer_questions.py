"""Random questions of newer forms about the clinic: pivots, FILTER, rows per person and key, joins by a unique key,
subqueries in conditions."""

from collections.abc import Iterator
from random import Random

CONDITIONS = (
    ("city = 'Rome'", "city = 'Oslo'", "city = 'O''slo'"),
    ("age < 30", "age >= 30 AND age < 60", "age >= 60"),
    ("smoker", "NOT smoker"),
)
VALUES = ("age", "income", "income * 2 - age", "LEAST(income, age)")
TOTALS = ("SUM", "AVG", "COUNT", "VARIANCE")
KEYS = ("site", "kind", "urgent", "day", "EXTRACT(dow FROM day)")
LIMITS = ({}, {"max_rows": 2}, {}, {"max_groups": 1}, {"max_rows": 3, "max_groups": 2})


def newer_questions(seed: int) -> Iterator[str]:
    """An endless sequence. Nearly all are accepted; the caller skips those that are refused."""
    random = Random(seed)
    forms = (_pivot, _filter, _per_key, _by_unique_key, _different, _undeclared, _in_condition)
    while True:
        yield random.choice(forms)(random)


def _pivot(random: Random) -> str:
    value, total = random.choice(VALUES), random.choice(TOTALS)
    shown = [f"{total}(CASE WHEN {one} THEN {value} END) AS a{place}" for place, one in enumerate(_conditions(random))]
    return f"SELECT {', '.join(shown)} FROM patients"


def _filter(random: Random) -> str:
    shown = [
        f"{random.choice(('SUM', 'AVG'))}({random.choice(VALUES)}) FILTER (WHERE {one}) AS a{place}"
        for place, one in enumerate(_conditions(random))
    ]
    key = random.choice(("", "smoker", "city"))
    return f"SELECT {key + ', ' if key else ''}{', '.join(shown)} FROM patients{f' GROUP BY {key}' if key else ''}"


def _conditions(random: Random) -> tuple[str, ...]:
    chosen = list(random.choice(CONDITIONS))
    random.shuffle(chosen)
    return tuple(chosen[: random.randint(2, len(chosen))])


def _per_key(random: Random) -> str:
    inner, key = random.choice(("SUM(cost)", "COUNT(*)", "MAX(cost)", "AVG(cost)")), random.choice(KEYS)
    rows = f"SELECT pid, {key} AS k, {inner} AS s FROM visits GROUP BY pid, {key}"
    where = random.choice(("", " WHERE s > 1"))
    return f"SELECT {random.choice(TOTALS)}(s) AS a FROM ({rows}) q{where}"


def _by_unique_key(random: Random) -> str:
    value = random.choice(("v.cost", "t.level", "v.cost * t.level"))
    join = random.choice(("tests t JOIN visits v", "visits v JOIN tests t", "tests t LEFT JOIN visits v"))
    return f"SELECT {random.choice(TOTALS)}({value}) AS a FROM {join} ON t.visit_id = v.visit_id"


def _in_condition(random: Random) -> str:
    key = random.choice(("site", "kind", "urgent", "day"))
    same = f"w.pid = v.pid AND w.{key} = v.{key}"
    condition = random.choice((
        f"EXISTS (SELECT 1 FROM visits w WHERE {same} AND w.cost > 10)",
        f"NOT EXISTS (SELECT 1 FROM visits w WHERE {same} AND w.urgent)",
        f"(SELECT COUNT(*) FROM visits w WHERE {same}) > 1",
        f"v.cost >= (SELECT AVG(w.cost) FROM visits w WHERE {same})",
    ))  # fmt: skip
    return f"SELECT {random.choice(TOTALS)}(v.cost) AS a FROM visits v WHERE {condition}"


def _different(random: Random) -> str:
    columns = random.sample(("site", "kind", "urgent", "day"), k=random.randint(1, 2))
    key = random.choice(("", "urgent"))
    shown = (
        f"COUNT(DISTINCT {columns[0]}) AS a" if len(columns) == 1 else f"COUNT(DISTINCT ({', '.join(columns)})) AS a"
    )
    return f"SELECT {key + ', ' if key else ''}{shown} FROM visits{f' GROUP BY {key}' if key else ''}"


def _undeclared(random: Random) -> str:
    return (
        f"SELECT kind, {random.choice(('COUNT(*)', 'SUM(cost)', 'COUNT(DISTINCT pid)'))} AS a FROM visits GROUP BY kind"
    )
