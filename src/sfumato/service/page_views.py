"""What the pages show, as plain values for the templates. Everything here is declared, released or about the budget."""

import json
import math
from dataclasses import dataclass
from decimal import Decimal
from keyword import iskeyword
from typing import Any

from sfumato.answering.entry_words import describe_question, show_time, write_loss_as_json
from sfumato.answering.preview import Preview
from sfumato.answering.table_words import describe_bounds, describe_unit, write_table_json
from sfumato.answers.answer import Answer, Cost
from sfumato.answers.shown_values import format_value
from sfumato.catalog.dataset import Dataset
from sfumato.curator import Curator
from sfumato.errors import SfumatoError
from sfumato.number_arguments import read_positive_decimal
from sfumato.query.tokens import KNOWN_FUNCTIONS
from sfumato.service.accounts import Grant, User
from sfumato.service.saved_answers import SavedAnswer
from sfumato.shown_amounts import Rounding, write_amounts

KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "ON", "USING", "AND", "OR",
    "NOT", "IN", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END", "AS", "DISTINCT", "IS NULL", "LIKE",
    "WITH", "UNION ALL",
)  # fmt: skip
MOST_ENTRIES = 100
ASSUME = "It depends on how many rows there are. Enter your guess to see it."


@dataclass(frozen=True, slots=True)
class Gauge:
    """A budget as a bar: shares of its limit in percent, and the same in words."""

    spent: float
    own: float | None  # what the reader's own grant still allows
    text: str


def make_gauge(curator: Curator, user: User, grant: Grant | None) -> Gauge:
    """How much of a dataset's budget is spent, and what the reader may still spend."""
    budget = curator.budget
    remains = _show(budget.remaining, "down")
    limit, spent = _measure(budget.limit), _measure(budget.spent)
    words = f"Spent by everybody so far: {_show(budget.spent)} of {_show(budget.limit)}."
    if grant is None:
        return Gauge(100 * spent / limit if limit else 100, None, f"{words} Left: {remains}.")
    left = Cost.from_loss(curator.ledger().totals(user.name).remaining)
    may, can = _show(left, "down"), min(_measure(left), _measure(budget.remaining))
    own = f"You may still spend {may}" + ("." if _measure(left) <= _measure(budget.remaining) else
          f", but only {remains} is left for everybody.")  # fmt: skip
    return Gauge(100 * spent / limit if limit else 100, 100 * can / limit if limit else 0, f"{own} {words}")


def _measure(cost: Cost) -> float:
    """The part of a cost that runs out first in practice: epsilon, rho or mu squared."""
    found = next(value for value in (cost.mu_squared, cost.rho, cost.epsilon) if value is not None)
    return float(found)


def _show(cost: Cost, rounding: Rounding = "up") -> str:
    return write_amounts(cost.as_text(), rounding) or "ε = 0"


def show_margin(margin: float) -> str:
    """A margin with three digits that count: ± 0.0254, ± 59.9, ± 2,000."""
    if not 999.5 <= margin < 1e15:
        return f"± {margin:.3g}"
    return f"± {round(margin, 2 - math.floor(math.log10(margin))):,.0f}"


def count_more(answers: list[SavedAnswer], curator: Curator, user: User, grant: Grant | None) -> str:
    """About how many more questions like the last one fit."""
    if not answers:
        return ""
    last = {name: Decimal(text) for name, text in answers[0].wire["cost"].items()}
    price = float(next((last[name] for name in ("mu_squared", "rho", "epsilon") if last.get(name)), Decimal(0)))
    if not price:
        return ""
    left = _measure(curator.budget.remaining)
    if grant is not None:
        left = min(left, _measure(Cost.from_loss(curator.ledger().totals(user.name).remaining)))
    number = math.floor(left / price + 1e-9)
    return f"About {number:,} more question{'' if number == 1 else 's'} like your last one."


def list_tables(dataset: Dataset) -> list[dict[str, Any]]:
    """The tables, with each column's type and bounds in words."""
    made = []
    for table in dataset.tables.values():
        shown = write_table_json(table)
        columns = [
            {"name": column["name"], "type": column["type"], "bounds": describe_bounds(column),
             "nullable": column["nullable"]}
            for column in shown["columns"]
        ]  # fmt: skip
        made.append({"name": table.name, "unit": describe_unit(table), "columns": columns})
    return made


def write_completions(dataset: Dataset) -> str:
    """The words that the editor completes and colours, as JSON."""
    tables = {table.name: list(table.columns) for table in dataset.tables.values()}
    words = {"keywords": KEYWORDS, "functions": sorted(KNOWN_FUNCTIONS), "tables": tables}
    return json.dumps(words)


def write_builder(dataset: Dataset) -> str:
    """The private tables and the types of their columns, as JSON for the query builder."""
    made = [
        {"name": table.name, "columns": [{"name": column["name"], "type": column["type"]} for column in
                                         write_table_json(table)["columns"]]}
        for table in dataset.tables.values()
        if not table.public
    ]  # fmt: skip
    return json.dumps(made)


def suggest_question(dataset: Dataset) -> str:
    """A first question about the first private table, from its declarations."""
    table = next((table for table in dataset.tables.values() if not table.public), None)
    if table is None:
        return ""
    columns = write_table_json(table)["columns"]
    key = next((column["name"] for column in columns if column["type"] in ("category", "boolean")), None)
    number = next((column["name"] for column in columns if column["type"] in ("integer", "real")), None)
    quoted = {name: name if name.isidentifier() and name.isascii() else f'"{name}"' for name in (key, number) if name}
    selected = [
        *([quoted[key]] if key else []),
        "COUNT(*) AS n",
        *([f"AVG({quoted[number]}) AS mean"] if number else []),
    ]
    text = f"SELECT {', '.join(selected)}\nFROM {table.name}"
    return f"{text}\nGROUP BY {quoted[key]}" if key else text


def bound_belief(cost: Cost) -> str:
    """What a cost means for one person: the odds on any statement about them."""
    if cost.epsilon is None or cost.epsilon > 20:
        return ""
    percent = min(math.ceil(1000 / (1 + math.exp(-float(cost.epsilon)))) / 10, 100)
    delta = "" if not cost.delta else f" (except with probability {cost.delta:.1g})"
    return (
        "What this tells about one person: a suspicion of 50\u00a0% about anybody in the data becomes "
        f"at most {percent:g}\u00a0%{delta}."
    )


def bound_belief_of(epsilon: str) -> str:
    """What an epsilon that somebody typed means for one person; nothing if it is no amount."""
    try:
        return bound_belief(Cost(read_positive_decimal(epsilon, "epsilon"), Decimal(0)))
    except SfumatoError:
        return ""


def show_preview(found: Preview) -> dict[str, Any]:
    """A preview for the page beside the editor."""
    price = _show(found.cost)
    free = not any(Decimal(text) for text in found.cost.as_text().values())
    whose = " of your own limit" if found.cached and not free else ""
    return {
        "price": f"{price}{whose}",
        "button": "Show the answer: asked before, free" if free else f"Spend {price}{whose} and ask",
        "free": free,
        "fits": found.fits,
        "belief": "" if free else bound_belief(found.cost),
        "margins": [
            {"column": name, "margin": "unknown" if margin is None else show_margin(margin),
             "reason": ASSUME if "assume=" in found.reasons.get(name, "") else found.reasons.get(name, "")}
            for name, margin in found.margins.items()
        ],
        "confidence": f"{100 * found.confidence:g} %",
        "warnings": list(found.warnings),
        "suggestions": [str(suggestion) for suggestion in found.suggestions],
    }  # fmt: skip


def show_answer(saved: SavedAnswer, answer: Answer) -> dict[str, Any]:
    """An answer for its page: the table, and a sentence that says what the numbers mean."""
    rows = [
        [
            {"text": format_value(row[name], ends.get(name)), "number": name not in answer.keys}
            for name in answer.columns
        ]
        for row, ends in zip(answer.rows, answer.intervals, strict=True)
    ]
    drawn = [name for name in answer.columns if any(name in ends for ends in answer.intervals)]
    return {
        "rows": rows,
        "columns": answer.columns,
        "keys": answer.keys,
        "drawn": drawn,
        "sentence": write_meaning(answer),
        "price": answer.price(),
        "warnings": answer.warnings,
        "note": answer.interval_note,
        "explanation": answer.explain(),
        "python": write_python(saved),
        "belief": bound_belief(answer.cost) if not answer.cached else "",
    }


def write_meaning(answer: Answer) -> str:
    """What the first number of an answer means, for a reader who has never heard of differential privacy."""
    for row, ends in zip(answer.rows, answer.intervals, strict=True):
        for name in answer.columns:
            if name in ends and row[name] is not None:
                low, high = (_write_end(end, ends[name]) for end in ends[name])
                where = ", ".join(f"{key} = {row[key]}" for key in answer.keys)
                about = f"{name} of {where}" if where else name
                return (
                    f"The numbers are true up to random noise, which protects the people in the data. For example, "
                    f"{about} is between {low} and {high} with {100 * answer.confidence:g}\u00a0% confidence."
                )
    return "The numbers are true up to random noise, which protects the people in the data."


def _write_end(end: float, ends: tuple[float, float]) -> str:
    """An end of an interval, with one digit more than the interval is wide."""
    width = ends[1] - ends[0]
    if not 0 < width < math.inf:
        return f"{end:,.6g}"
    return f"{end:,.{max(0, 1 - math.floor(math.log10(width)))}f}"


def write_python(saved: SavedAnswer) -> str:
    """The same question in Python."""
    price = ", ".join(f'{name}="{value}"' for name, value in saved.asked.items() if name != "sql")
    sql, name = str(saved.asked["sql"]), saved.dataset
    plain = "\n" in sql and "\\" not in sql and '"""' not in sql and not sql.endswith('"')
    quoted = f'"""{sql}"""' if plain else json.dumps(sql, ensure_ascii=False)
    variable = name if name.isidentifier() and name.isascii() and not iskeyword(name) else "data"
    named = json.dumps(name, ensure_ascii=False)
    return (
        f"import sfumato as sf\n\n{variable} = sf.connect(ADDRESS, TOKEN, {named})\n"
        f"answer = {variable}.ask({quoted}, {price})"
    )


def list_entries(curator: Curator, user: User, before: int | None = None) -> list[dict[str, Any]]:
    """A page of the ledger, newest entries first: of everybody for an owner, their own for an analyst."""
    own = "" if user.role == "owner" else user.name
    shown = curator.ledger().entries(MOST_ENTRIES, analyst=own, before=before)
    return [
        {
            "number": entry.number, "time": show_time(entry.time), "analyst": entry.analyst, "kind": entry.kind,
            "loss": write_amounts(write_loss_as_json(entry.loss)),
            "spent": write_amounts(write_loss_as_json(entry.spent)),
            "question": describe_question(json.loads(entry.question) if entry.question else None),
        }
        for entry in reversed(shown)
    ]  # fmt: skip
