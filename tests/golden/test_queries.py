"""SQL -> bound query, certificate and DuckDB SQL, or the exact refusal. SFUMATO_GOLDEN=write regenerates the file."""

import os
import re
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.answering.suggestions import Asked, suggest
from sfumato.answers.output_sensitivity import find_sensitivities
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.measured_cells import Added
from sfumato.engines.sql.lowering import lower, lower_bins, lower_different, lower_people
from sfumato.errors import QueryError
from sfumato.ingest.pinned_rows import find_grids
from sfumato.kernel.certify import certify
from sfumato.kernel.expressions import Call, Column, Literal
from sfumato.kernel.plan import Choice, Different, Keys, People
from sfumato.kernel.row_sources import Derived, Join, PerKey, PerUnit, PublicScan, Scan, Union
from sfumato.planning.planner import choose_plan
from sfumato.query import sql_text, token_forms
from sfumato.query.bind import bind
from sfumato.query.parse import parse
from sfumato.query.query import AggregateRef, KeyRef, PostCall
from sfumato.query.sql_text import normalise_sql, print_sql
from sfumato.query.tokens import read_tokens

GOLDEN = Path(__file__).parent / "queries.md"
WRITES = os.environ.get("SFUMATO_GOLDEN") == "write"
HEAD = """# Questions and their plans or refusals

After each question stand the bound query (one part per line), the certificate and the SQL for DuckDB, or the refusal.
Add questions to this file. `SFUMATO_GOLDEN=write pytest tests/golden` writes the rest; review the difference.

- `people(age integer 0..120, pay real 0..9000, base real 10..20 not null, city Rome/Oslo, ward 1/2, smoker boolean,
  job text, born date)`: each row is one person
- `visits(person id, cost real 0..500, kind a/b, seen datetime)`: contribution bound 10 rows, 2 groups
- `homes(person id, rooms integer 1..9, town text)`: contribution bound 2 rows
- `kinds(kind a/b, price real 0..9)`: a public table with one row per kind and at most two per price
- `dear`: a view, `SELECT person, cost, kind FROM visits WHERE cost > 100`
"""
DATASET = Dataset(
    "clinic",
    [
        Table(
            "people", None, sf.ROW,
            {
                "age": sf.Integer(0, 120), "pay": sf.Real(0, 9_000), "base": sf.Real(10, 20, nullable=False),
                "city": sf.Category(["Rome", "Oslo"]), "ward": sf.Category([1, 2]), "smoker": sf.Boolean(),
                "job": sf.Text(), "born": sf.Date("1900-01-01", "2025-12-31"),
            },
        ),
        Table(
            "visits", None, "person",
            {
                "person": sf.Id(), "cost": sf.Real(0, 500), "kind": sf.Category(["a", "b"]),
                "seen": sf.DateTime("2026-01-01T00:00:00", "2026-06-30T23:59:59"),
            },
            max_rows_per_unit=10, max_groups_per_unit=2,
        ),
        Table(
            "homes", None, "person", {"person": sf.Id(), "rooms": sf.Integer(1, 9), "town": sf.Text()},
            max_rows_per_unit=2,
        ),
        Table(
            "kinds", None, None, {"kind": sf.Category(["a", "b"]), "price": sf.Real(0, 9)}, public=True,
            multiplicities=(("kind", 1), ("price", 2)),
        ),
    ],
    sf.Budget(epsilon=9, delta=1e-6),
    views={"dear": "SELECT person, cost, kind FROM visits WHERE cost > 100"},
)  # fmt: skip


VERSIONS = dict.fromkeys(DATASET.tables, "1")


def shown(part):
    """A part of a query as one readable text: calls in prefix form."""
    match part:
        case Column(name):
            return name
        case Literal(value):
            return repr(value) if not hasattr(value, "isoformat") else value.isoformat()
        case Call(function, arguments, str(unit)):
            return f"({' '.join([function, unit, *map(shown, arguments)])})"
        case Call(function, arguments) | PostCall(function, arguments):
            return f"({' '.join([function, *map(shown, arguments)])})"
        case KeyRef(index):
            return f"key{index}"
        case AggregateRef(index):
            return f"aggregate{index}"
    raise AssertionError(part)


def summary(query):
    lines = [f"from {from_what(query.source)}"]
    lines += [f"where {shown(condition)}" for condition in query.filters]
    lines += [f"key{index} {shown(key.expression)} {within(key)}" for index, key in enumerate(query.keys)]
    for index, aggregate in enumerate(query.aggregates):
        value = aggregate.value
        text = f"aggregate{index} {aggregate.function}" + (f" {aggregate.fraction}" if aggregate.fraction else "")
        if value is not None:
            ends = f" in [{value.lower:g}, {value.upper:g}]" if value.bounded else ""
            text += f" {shown(value.expression)}{ends}{' whole' * value.whole}{' or NULL' * value.nullable}"
        text += "".join(f", {shown(other.expression)}" for other in aggregate.also)
        lines.append(text)
    lines += [f"select {shown(post)} as {name}" for name, post in query.columns]
    lines += [f"having {shown(query.having)}"] if query.having is not None else []
    for order in query.order:
        lines.append(
            f"order by {shown(order.by)}{' descending' * order.descending}{', NULL first' * order.nulls_first}"
        )
    lines += [f"limit {query.limit}"] if query.limit is not None else []
    lines += [f"offset {query.offset}"] if query.offset else []
    for number, other in enumerate(query.beside, start=1):
        lines += [f"released{number}: {line}" for line in summary(other).split("\n")]
    return "\n".join([*lines, *([f"finish {query.finish.sql}"] if query.finish is not None else [])])


def within(key):
    if key.values is None:
        return "undeclared"
    return f"in {[str(value) if hasattr(value, 'year') else value for value in key.values]}"


def from_what(source):
    """A source as nested words."""
    match source:
        case Scan(table, _, most, prefix, met):
            rows = f" ({most} rows each{f' of at most {met}' if met else ''})" if most > 1 or met else ""
            return f"{table}{rows}{f' as {prefix}' if prefix else ''}"
        case PublicScan(table, _, prefix):
            return f"public {table} as {prefix}"
        case Derived(inner, filters, columns):
            made = ", ".join(f"{shown(value)} as {name}" for name, value in columns)
            return f"({made} of {from_what(inner)}{''.join(f' where {shown(condition)}' for condition in filters)})"
        case Join(left, right, outer, on, multiplicity):
            pairs = " and ".join(f"{shown(one)} = {shown(two)}" for one, two in on)
            how = "on the person" if multiplicity is None else f"at most {multiplicity} each"
            return f"({from_what(left)} {'left join' if outer else 'join'} {from_what(right)} {how} {pairs})"
        case Union(parts):
            return f"({' and '.join(from_what(part) for part in parts)})"
        case PerUnit(inner, filters, columns):
            made = ", ".join(
                f"{column.function} {shown(column.value) if column.value else ''} as {column.name}"
                for column in columns
            )
            kept = "".join(f" where {shown(condition)}" for condition in filters)
            return f"(for each person {made} of {from_what(inner)}{kept})"
        case PerKey(inner, filters, columns, keys, most):
            made = [
                f"{column.function} {shown(column.value) if column.value else ''} as {column.name}"
                for column in columns
            ]
            made += [f"{shown(value)} as {name}" for name, value in keys]
            kept = "".join(f" where {shown(condition)}" for condition in filters)
            return f"(for each person and key {', '.join(made)} of {from_what(inner)}{kept}, {most} rows each)"
    raise AssertionError(source)


def certified(plan):
    """The sensitivity and the loss of each measurement."""
    lines = []
    for measurement in certify(plan).measurements:
        rule = f", threshold {measurement.threshold}" if measurement.threshold is not None else ""
        moves = float(measurement.sensitivity.l1) * 2.0**measurement.exponent
        lines.append(f"{measurement.name} moves by {moves:g}, {measurement.loss}{rule}")
    return "\n".join([f"one unit reaches {plan.reach}", *lines])


def outcome(sql):
    try:
        query = bind(parse(sql), DATASET)
    except QueryError as error:
        return f"```refusal\n{type(error).__name__}: {error.message}\n{error.hint}\n```"
    plan = choose_plan(query, sf.PureDP(1), DATASET, VERSIONS).plan
    lowered = []
    stored = find_grids(DATASET.table(plan.source.table)) if isinstance(plan.source, Scan) else {}
    if any(isinstance(measurement.quantity, Added) for measurement in plan.measurements):
        lowered.append(lower(plan, stored).sql("duckdb"))
    if any(isinstance(measurement.quantity, People | Keys) for measurement in plan.measurements):
        lowered.append(lower_people(plan).sql("duckdb"))
    chosen = [measurement for measurement in plan.measurements if isinstance(measurement.quantity, Choice)]
    lowered += [lower_bins(plan, measurement.name, measurement.quantity).sql("duckdb") for measurement in chosen]
    apart = [one.quantity for one in plan.measurements if isinstance(one.quantity, Different)]
    lowered += [lower_different(plan, quantity).sql("duckdb") for quantity in apart]
    said = [f"```query\n{summary(query)}\n```", f"```certificate\n{certified(plan)}\n```"]
    return "\n".join([*said, f"```duckdb\n{chr(10).join(lowered)}\n```"])


def entries():
    """(question, the golden text below it), in the order of the file."""
    parts = re.split(r"^```sql\n(.*?)\n```\n", GOLDEN.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [(sql, said.strip()) for sql, said in zip(parts[1::2], parts[2::2], strict=True)]


if WRITES:
    _parts = [f"```sql\n{sql}\n```\n{outcome(sql)}\n" for sql, _ in entries()]
    GOLDEN.write_text("\n".join([HEAD, *_parts]))


@pytest.mark.parametrize(("sql", "said"), entries(), ids=lambda text: text.splitlines()[0][:60] if text else "new")
def test_it_becomes_what_is_written(sql, said):
    assert outcome(sql) == said


def test_nothing_was_written_by_this_run():
    """A run that writes the file proves nothing, and says so."""
    assert not WRITES, "the file was written anew: review it, and run again without SFUMATO_GOLDEN"


def test_printed_sql_is_the_same_question():
    """The SQL that the ledger records, and that a frame prints, gives the same query when it is asked again."""
    for sql, said in entries():
        if "```refusal" not in said:
            for text in (print_sql(parse(sql)), normalise_sql(parse(sql))):
                assert bind(parse(text), DATASET) == bind(parse(sql), DATASET), text


def test_a_question_that_needs_no_copy_is_recorded_the_same(monkeypatch):
    """Most trees are printed as they are. The text is the same as by way of a copy, and the tree is unchanged."""
    trees = [parse(sql) for sql, said in entries() if "```refusal" not in said]
    plain = [tree for tree in trees if all(map(sql_text._is_normal, tree.walk()))]
    assert len(plain) > 20
    before, texts = [repr(tree) for tree in plain], [normalise_sql(tree) for tree in plain]
    assert [repr(tree) for tree in plain] == before
    monkeypatch.setattr(sql_text, "_is_normal", lambda node: False)
    assert [normalise_sql(tree) for tree in plain] == texts


def test_kinds_of_tokens_that_are_never_keywords_have_no_form(monkeypatch):
    """The shortcut of `is_keyword_here` says what its long way says, for every token of every question."""
    questions = [list(read_tokens(sql)[0]) for sql, said in entries() if "```refusal" not in said]

    def list_words():
        return [token_forms.is_keyword_here(tokens, place) for tokens in questions for place in range(len(tokens))]

    short = list_words()
    monkeypatch.setattr(token_forms, "NEVER_KEYWORDS", frozenset())
    assert list_words() == short
    assert sum(short) > 5


def test_both_kinds_are_here():
    said = [text for _, text in entries()]
    refused = sum("```refusal" in text for text in said)
    assert refused >= 25
    assert len(said) - refused >= 25


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_what_one_person_changes_is_said_of_every_question(neighbours):
    """Sensitivities and suggestions can be computed for every golden question."""
    parts = {field.name: getattr(DATASET, field.name) for field in fields(Dataset)}
    dataset = Dataset(**parts | {"neighbours": neighbours})
    said = 0
    for sql, outcome_said in entries():
        if "```refusal" in outcome_said:
            continue
        query = bind(parse(sql), dataset)
        asked = find_sensitivities(query, choose_plan(query, sf.PureDP(1), dataset, VERSIONS), {})
        assert [error.column for error in asked] == [
            name for name, post in query.columns if not isinstance(post, KeyRef)
        ]
        assert all("one person" in str(error) for error in asked), sql
        suggest(Asked(sql, sf.PureDP(1), None, Fraction(19, 20), None), dataset, VERSIONS)
        said += 1
    assert said >= 25
