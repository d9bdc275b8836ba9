"""What a budget allows, for the owner who chooses it: odds, and the margins of a first question. It reads no data."""

import math
from typing import Any

from sfumato.answers.answer import Cost
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.service.dataset_drafts import Draft
from sfumato.service.page_views import bound_belief, show_margin

NUMBERS_OF_QUESTIONS = (10, 50, 200)
MOST_GUESS = 1e12


def expect_errors(draft: Draft, people: str) -> dict[str, Any]:
    """What a budget allows: the odds, and the margins of a first question if it is shared among several."""
    rows: list[dict[str, Any]] = []
    try:
        budget = draft.make_dataset().budget
        guess = _read_guess(people)
        sql, columns = _write_example(draft)
        for number in NUMBERS_OF_QUESTIONS:
            epsilon = (
                f"{(budget.epsilon or 1) / number:.4g}" if budget.accounting == "basic" else _afford(draft, sql, number)
            )
            found = draft.preview(sql, epsilon, guess)
            margins = [_show_margin(found.margins.get(name)) for name in columns]
            rows.append({"number": number, "epsilon": epsilon, "margins": margins})
    except SfumatoError as refused:
        return {"rows": [], "belief": "", "columns": [], "refused": refused, "sql": ""}
    belief = bound_belief(Cost(budget.epsilon, budget.delta))
    return {"rows": rows, "belief": belief, "columns": columns, "refused": None, "sql": sql}


def _show_margin(margin: float | None) -> str:
    return "enter your guess" if margin is None else show_margin(margin)


def _afford(draft: Draft, sql: str, number: int) -> str:
    """An epsilon of which so many questions fit under an accounting that adds up more slowly."""
    low, high = 1e-4, 20.0
    for _ in range(14):
        middle = math.sqrt(low * high)
        cost = draft.preview(sql, f"{middle:.4g}").cost
        limit = Cost.from_loss(draft.make_dataset().budget.loss)
        pairs = ((cost.rho, limit.rho), (cost.mu_squared, limit.mu_squared))
        amount, most = next((float(one), float(two)) for one, two in pairs if one is not None and two is not None)
        low, high = (middle, high) if amount * number <= most else (low, middle)
    return f"{low:.3g}"


def _read_guess(people: str) -> dict[str, float] | None:
    try:
        guess = float(people.replace(",", "")) if people.strip() else None
    except ValueError:
        raise InvalidParameter("the number of rows", "must be a number", "something else") from None
    return None if guess is None or not 0 < guess <= MOST_GUESS else {"n": guess}


def _write_example(draft: Draft) -> tuple[str, list[str]]:
    """A count and, if there is a number, its average."""
    number = next((name for name, given in draft.columns.items() if given.get("kind") in ("integer", "real")), None)
    quoted = None if number is None else '"' + number.replace('"', '""') + '"'
    columns = ["n", *(["mean"] if quoted else [])]
    average = f", AVG({quoted}) AS mean" if quoted else ""
    table = '"' + draft.table.replace('"', '""') + '"'
    return f"SELECT COUNT(*) AS n{average} FROM {table}", columns  # noqa: S608 - it is parsed, and reads no data
