"""What `make audit` audits: mechanisms and randomisers, the oracle, aggregates in every setting, random questions."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path

from audit_bench import Bench
from audited_engines import ACCOUNTING, ENGINES
from generated_questions import questions
from hostile_clinic import SITES, declare_tables
from newer_questions import LIMITS as NEWER_LIMITS
from newer_questions import newer_questions
from oracle_audit import PAIRS, audit_oracle

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table, replace_tables
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import SfumatoError
from sfumato.lab.auditing.audit_stage import Setting, read_dataset, set_stage
from sfumato.lab.auditing.query_audit import audit_pairs
from sfumato.lab.auditing.query_replay import ReplayResult, replay_pairs
from sfumato.lab.auditing.question_checks import check_question
from sfumato.lab.auditing.question_pairs import make_pairs
from sfumato.lab.auditing.real_mechanisms import REAL_MECHANISMS
from sfumato.lab.auditing.throwaway_desk import PinnedRows

COLUMNS = {
    "person": sf.Id(),
    "cost": sf.Real(-5, 500),
    "age": sf.Integer(0, 120, nullable=False),
    "city": sf.Category(["Rome", "Oslo", "Bonn"]),
    "job": sf.Text(),
    "day": sf.Date("2024-01-01", "2024-12-31"),
    "smoker": sf.Boolean(),
}
AGGREGATES = {
    "count": "SELECT COUNT(*) AS n FROM t",
    "count of values": "SELECT COUNT(cost) AS n FROM t WHERE smoker",
    "sum": "SELECT SUM(cost) AS s FROM t",
    "sum, filtered": "SELECT SUM(cost * 2 - age) AS s FROM t WHERE city <> 'Rome' OR age IS NULL",
    "mean": "SELECT AVG(age) AS a FROM t",
    "variance": "SELECT VARIANCE(age) AS v FROM t",
    "deviation": "SELECT STDDEV(cost) AS d FROM t",
    "people": "SELECT COUNT(DISTINCT person) AS p FROM t",
    "people by city": "SELECT city, COUNT(DISTINCT person) AS p FROM t GROUP BY city",
    "different texts": "SELECT COUNT(DISTINCT job) AS n FROM t WHERE smoker",
    "different values by city": "SELECT city, COUNT(DISTINCT age) n, COUNT(DISTINCT smoker) s FROM t GROUP BY city",
    "sum of different values": "SELECT SUM(DISTINCT age) AS s, AVG(DISTINCT cost) AS a FROM t",
    "correlation": "SELECT CORR(age, cost) AS c, REGR_SLOPE(cost, age) AS s FROM t",
    "latest day": "SELECT MAX(day) AS d FROM t",
    "median": "SELECT MEDIAN(cost) AS m FROM t",
    "quantiles": "SELECT QUANTILE_CONT(age, 0.25) AS l, QUANTILE_CONT(age, 0.9) AS h FROM t",
    "minimum": "SELECT MIN(age) AS l FROM t",
    "maximum": "SELECT MAX(cost) AS h FROM t",
    "mode": "SELECT MODE(city) AS m FROM t",
    "top values": "SELECT TOP_K(city, 2) AS m FROM t",
    "histogram": "SELECT city, smoker, COUNT(*) AS n, SUM(cost) AS s FROM t GROUP BY city, smoker",
    "undeclared keys": "SELECT job, COUNT(*) AS n, SUM(age) AS s FROM t GROUP BY job",
    "undeclared keys by weight": "SELECT job, COUNT(*) AS n FROM t GROUP BY job",
    "pivot": "SELECT SUM(CASE WHEN city = 'Rome' THEN cost END) r, SUM(CASE WHEN city = 'Oslo' THEN cost END) o FROM t",
    "rows per person and key": (
        "SELECT SUM(c) AS s, COUNT(*) AS n FROM (SELECT person, city, SUM(cost) AS c FROM t GROUP BY person, city) q"
    ),
    "joined, at most 3 rows": "SELECT SUM(a.cost) AS s FROM t a JOIN t b ON a.person = b.person",
    "exists, by a further key": (
        "SELECT COUNT(*) AS n, SUM(a.cost) AS s FROM t a "
        "WHERE EXISTS (SELECT 1 FROM t b WHERE b.person = a.person AND b.city = a.city AND b.smoker)"
    ),
    "joined by a unique key": "SELECT SUM(a.cost) AS s FROM t a JOIN t b ON a.person = b.person AND a.day = b.day",
}
LIMITS = {"joined, at most 3 rows": {"max_rows": 3}, "people by city": {"max_groups": 1}}
MANY_KEYS, UNIQUE = "undeclared keys by weight", "joined by a unique key"
JOINED = {"rows per person and key", "joined, at most 3 rows", "exists, by a further key", UNIQUE}
OF_PEOPLE = {"people", "people by city", MANY_KEYS, *JOINED}
CHOICES = {"latest day", "median", "quantiles", "minimum", "maximum", "mode", "top values"}
UNITS = ("person", "row", "count", "public number of people", "public number of rows")
PUBLIC_ANSWERS = {("count", "public number of rows"), ("people", "public number of people")}  # refused: no noise
OF_ROWS = {"row", "count", "public number of rows"}
HARD_PAIRS = 4  # of a random question
RANDOM_QUESTIONS = 50
NEWER_QUESTIONS = 30
BUDGETS = {
    "basic": sf.Budget(epsilon=9, delta="1e-6"),
    "zcdp": sf.Budget(rho=9, delta="1e-6", accounting="zcdp"),
    "gdp": sf.Budget(mu=3, delta="1e-6", accounting="gdp"),
}
READ_BY = {
    "count",
    "sum, filtered",
    "histogram",
    MANY_KEYS,
    UNIQUE,
}  # how a source is read does not depend on a question
WITHOUT_PAIRS = {"count", "histogram", "median"}  # of the plain engine: what has no pair knows little of the engine
ALTERNATING = {
    "count",
    "public number of people",
    "public number of rows",
}  # one question has half of the pairs, the next the others
FEWER = 3  # samples under zCDP and Gaussian DP, divided by this: 20,000 draws of each noise are compared as well
PART = 14  # aggregates that share their datasets in one process


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    what: str
    claim: str
    lower_bound: float | None
    share: float | None  # of a certified sensitivity that one person used, by replay
    samples: int
    verdict: str
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Case:
    """Something to audit. `kind` is "mechanism", "oracle", "aggregate" or "random"."""

    kind: str
    name: str
    unit: str = "person"
    neighbours: str = "add-remove"
    accounting: str = "basic"
    engine: str = "duckdb"
    number: int = 0

    @property
    def text(self) -> str:
        if self.kind != "aggregate":
            return self.name
        return f"{self.name} · {self.unit} · {self.neighbours} · {self.accounting} · {self.engine}"


def list_cases() -> Iterator[Case]:
    """All cases. A combination that cannot be declared is left out."""
    for place, real in enumerate(REAL_MECHANISMS):
        yield Case("mechanism", real.name, number=place)
    for neighbours in PAIRS:
        yield Case("oracle", f"two adaptive statistical queries · {neighbours}", neighbours=neighbours)
    combinations = product(AGGREGATES, UNITS, ("add-remove", "replace-one"), ACCOUNTING, ENGINES)
    for place, (name, unit, neighbours, accounting, engine) in enumerate(combinations):
        turn = place // (len(ACCOUNTING) * len(ENGINES)) % len(ACCOUNTING)
        if ENGINES[engine].rotates and accounting != ACCOUNTING[turn]:
            continue
        if ("public" in unit and neighbours == "add-remove") or (unit in OF_ROWS and name in OF_PEOPLE):
            continue
        if (name, unit) in PUBLIC_ANSWERS:
            continue
        yield Case("aggregate", name, unit, neighbours, accounting, engine)
    for number in range(RANDOM_QUESTIONS + NEWER_QUESTIONS):
        accounting, engine = ACCOUNTING[number % 3], ("duckdb", "reference")[number % 4 == 3]
        yield Case("random", f"random question {number}", accounting=accounting, engine=engine, number=number)


def list_batches(cases: list[Case]) -> list[list[Case]]:
    """Cases that share datasets, together. The longest batches come first, so that all cores end at about one time."""
    batches: dict[object, list[Case]] = {}
    places = {name: place // PART for place, name in enumerate(AGGREGATES)}
    for case in sorted(cases, key=lambda case: ("oracle", "aggregate", "random", "mechanism").index(case.kind)):
        shared: object = case.number // 5
        if case.kind in ("oracle", "aggregate"):
            shared = case.unit, case.neighbours, places.get(case.name)
        batches.setdefault((case.kind, shared), []).append(case)
    return list(batches.values())


def declare(case: Case) -> Dataset:
    """The dataset of an aggregate's case."""
    of_rows = case.unit in OF_ROWS
    columns = {name: kind for name, kind in COLUMNS.items() if name != "person" or not of_rows}
    most = 8 if case.name == MANY_KEYS else 2
    bounds = {} if of_rows else {"max_rows_per_unit": most, "max_groups_per_unit": most}
    if case.name == UNIQUE:
        bounds["unique"] = (("day",),)
    if "public" in case.unit:
        bounds["rows" if of_rows else "people"] = 10
    if case.unit == "count":
        bounds["count_column"] = "n"
    table = Table("t", None, sf.ROW if of_rows else "person", columns, **bounds)
    return Dataset("t", [table], BUDGETS[case.accounting], None, case.neighbours)


def run_case(case: Case, samples: int, bench: Bench | None = None) -> Row:
    """Audit one case. With 0 samples, questions are only replayed."""
    match case.kind:
        case "mechanism":
            found = REAL_MECHANISMS[case.number].audit(samples or 2_000)
            return Row(case.text, repr(found.claim), found.lower_bound, None, found.samples, found.verdict, found.event)
        case "oracle":
            found = audit_oracle(case.neighbours, samples or 40)
            return Row(case.text, repr(found.claim), found.lower_bound, None, found.samples, found.verdict, found.event)
        case "aggregate" if bench is None:
            with Bench() as own:
                return _run_aggregate(case, samples, own)
        case "aggregate":
            return _run_aggregate(case, samples, bench)
        case _:
            return _run_random(case)


def _run_aggregate(case: Case, samples: int, bench: Bench) -> Row:
    keys = case.name.startswith("undeclared keys")
    gaussian = case.accounting != "basic" and case.name not in CHOICES and not keys
    price = {"rho": "0.5"} if gaussian else {"epsilon": 1}
    others = case.name == "count" and case.accounting == "basic"  # once for each declaration
    limits = LIMITS.get(case.name, {})
    sql, load = AGGREGATES[case.name], bench.find_load(case.engine)
    shared = {"load": load, "pinned": bench.pinned, "tested": bench.tested}
    setting = Setting(**price, **limits, **shared, engine=case.engine, with_others=others)
    stage = set_stage(declare(case), sql)
    declaration = case.unit, case.neighbours, case.name if case.name in (MANY_KEYS, UNIQUE) else ""
    asked = case.name, case.accounting if keys else ""  # a threshold depends on the accounting
    whole = case.accounting == "basic" and case.engine == "duckdb"
    found_pairs = bench.find_pairs(declaration, asked, stage, setting)
    every, all_of_its_own = ENGINES[case.engine].every[case.accounting], keys and case.engine == "duckdb"
    formats, crowds = whole and case.name in READ_BY, whole
    if whole and case.unit in ALTERNATING:
        found_pairs, every = found_pairs.alternate(list(AGGREGATES).index(case.name) % 2), 1
    pairs = found_pairs.choose(every, all_of_its_own=all_of_its_own, formats=formats, crowds=crowds)
    if case.accounting != "basic":
        samples //= FEWER
    if samples and case.engine == "duckdb":
        # a crowd hides what one person changes in a choice among bins: nobody against one person is the second pair
        found = audit_pairs(stage, sql, pairs, setting, samples, 2 if case.name in CHOICES else 1)
        claim, share = repr(found.claim), found.replayed.share
        return Row(case.text, claim, found.lower_bound, share, found.samples, found.verdict, found.event)
    needed = case.engine == "duckdb" or (case.accounting == "basic" and case.name in WITHOUT_PAIRS and load is None)
    checked = check_question(stage, pairs[0], setting) if needed else ()
    replayed = ReplayResult(sql, case.engine, tuple(replay_pairs(stage, sql, pairs, setting)), checked)
    detail = " ".join(replayed.faults)
    ((parameter, amount),) = price.items()
    return Row(case.text, f"{parameter}={amount}", None, replayed.share, 0, replayed.verdict, detail)


def _clinic(case: Case) -> Dataset:
    """The clinic of the engines' tests: five tables, one linked through another, one public.

    In half of the cases visits have a unique key.
    """
    tables = declare_tables(most_rows=2, most_groups=2)
    if case.number % 2:
        tables = [replace(one, unique=(("visit_id",),)) if one.name == "visits" else one for one in tables]
    engine = DuckDBEngine.of_tables({table.name: (table, SITES) for table in tables if table.public})
    try:
        dataset = Dataset("clinic", tables, BUDGETS[case.accounting])
        return replace_tables(dataset, {**dataset.tables, **engine.tables})
    finally:
        engine.close()


def _run_random(case: Case) -> Row:
    """The first accepted question of a seed, on its hard pairs and on random ones."""
    dataset, newer = _clinic(case), case.number >= RANDOM_QUESTIONS
    setting = Setting(engine=case.engine, **(NEWER_LIMITS[case.number % len(NEWER_LIMITS)] if newer else {}))
    old = (question.text for question in questions(1000 + case.number))
    for text in islice(newer_questions(case.number) if newer else old, 20):
        try:
            stage = set_stage(read_dataset(dataset), text)
            setting.bind(text, stage.dataset)
        except SfumatoError:  # a question that Sfumato refuses
            continue
        with tempfile.TemporaryDirectory() as folder, PinnedRows() as rows:
            setting = replace(setting, pinned=rows)
            pairs = list(make_pairs(stage, Path(folder), 3, case.number, setting))
            chosen = [*pairs[case.number % 3 : -3 : max(1, (len(pairs) - 3) // HARD_PAIRS)], *pairs[-3:]]
            replayed = list(replay_pairs(stage, text, chosen, setting))
        faults = [f"{found.pair}: {fault}" for found in replayed for fault in found.faults]
        verdict = "violated" if faults else "consistent" if any(not found.note for found in replayed) else "refused"
        share = max(found.share for found in replayed)
        return Row(case.text, "epsilon=1", None, share, 0, verdict, " ".join(faults) or text)
    return Row(case.text, "epsilon=1", None, None, 0, "refused", "every question of this seed is refused")
